// The table of a program by named scope. See inspect.h.
//
// One walk over the equations and the bodies that they run. A value is an output of the scopes
// around its equation that do not contain all of its uses. A value occupies memory from its
// equation to its last use, in program order.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/inspect.h>
#include <plait/rules/interpret.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <ostream>

namespace plait {
namespace {

struct Node {
  int parent = -1;
  ScopeSummary row;
  std::map<std::string, int, std::less<>> children;
  std::vector<int> order;   // children in order of first appearance
  std::vector<bool> reads;  // by input of the program
};

// The state of the walk over a program: its scope, the inputs of the whole program that its inputs
// are (-1: none), the number of its runs, and the memory of values around it.
struct Place {
  int scope = 0;
  std::vector<int> inputs = {};
  double times = 1, live_bytes = 0;
};

class Scopes {
 public:
  explicit Scopes(const Jaxpr& jaxpr) : program_(jaxpr) {
    nodes_.push_back(Node{});
    nodes_[0].reads.resize(std::size_t(jaxpr->num_binders));
    Place place;
    place.inputs.resize(std::size_t(jaxpr->num_binders));
    std::iota(place.inputs.begin(), place.inputs.end(), 0);
    for (const Atom& atom : jaxpr->outputs) read(0, atom, place);
    walk(jaxpr, place);
    nodes_[0].row.outputs = jaxpr->output_avals();
  }

  std::vector<ScopeSummary> rows() {
    std::vector<ScopeSummary> rows;
    add_rows(0, rows);
    return rows;
  }

 private:
  Node& at(int scope) { return nodes_[std::size_t(scope)]; }

  // The nested scope `path` inside another.
  int within(int scope, std::string_view path) {
    while (!path.empty()) {
      const std::string_view name = path.substr(0, path.find('/'));
      path.remove_prefix(std::min(path.size(), name.size() + 1));
      const auto found = at(scope).children.find(name);
      scope = found == at(scope).children.end() ? add(scope, std::string(name)) : found->second;
    }
    return scope;
  }
  int add(int parent, const std::string& name) {
    const int index = int(nodes_.size());
    Node node;
    node.parent = parent;
    node.row.depth = at(parent).row.depth + 1;
    node.row.path = parent == 0 ? name : at(parent).row.path + "/" + name;
    node.reads.resize(at(parent).reads.size());
    at(parent).children.emplace(name, index);
    at(parent).order.push_back(index);
    nodes_.push_back(std::move(node));
    return index;
  }
  // The innermost scope that contains both.
  int common(int a, int b) {
    while (a != b) {
      int& deeper = at(a).row.depth >= at(b).row.depth ? a : b;
      deeper = at(deeper).parent;
    }
    return a;
  }
  // Calls body(node) for a scope and all scopes around it, up to the whole program.
  template <class Body>
  void upwards(int scope, const Body& body) {
    for (; scope >= 0; scope = at(scope).parent) body(at(scope));
  }

  void read(int scope, const Atom& atom, const Place& place) {
    if (!atom.is_var() || atom.var().id >= int(place.inputs.size())) return;
    if (const int input = place.inputs[std::size_t(atom.var().id)]; input >= 0)
      upwards(scope, [&](Node& node) { node.reads[std::size_t(input)] = true; });
  }

  // Counts the equations of a program; returns its peak memory.
  double walk(const Jaxpr& jaxpr, const Place& place) {
    std::vector<int> scopes;
    for (const Equation& equation : jaxpr->equations)
      scopes.push_back(equation.source ? within(place.scope, equation.source->scope) : place.scope);
    add_outputs(*jaxpr, place.scope, scopes);
    const std::vector<int> last = last_uses(jaxpr);
    double live = place.live_bytes, most = live;
    for (std::size_t i = 0; i < jaxpr->equations.size(); ++i) {
      const Equation& equation = jaxpr->equations[i];
      for (const Atom& atom : equation.inputs) read(scopes[i], atom, place);
      for (const Var& var : equation.outputs) live += bytes_of(jaxpr->aval(var));
      Place inside = place;
      inside.scope = scopes[i];
      inside.live_bytes = live;
      const double here = count(*jaxpr, equation, std::move(inside));
      upwards(scopes[i],
              [&](Node& node) { node.row.live_bytes = std::max(node.row.live_bytes, here); });
      most = std::max(most, here);
      live -= ending_at(*jaxpr, last, int(i));
    }
    return most;
  }

  // Bytes of values whose last use is an equation.
  static double ending_at(const JaxprData& jaxpr, const std::vector<int>& last, int index) {
    const Equation& equation = jaxpr.equations[std::size_t(index)];
    double bytes = 0;
    for (auto atom = equation.inputs.begin(); atom != equation.inputs.end(); ++atom) {
      const bool made = atom->is_var() && atom->var().id >= jaxpr.num_binders;
      if (made && last[std::size_t(atom->var().id)] == index &&
          std::find(equation.inputs.begin(), atom, *atom) == atom)
        bytes += bytes_of(jaxpr.aval(*atom));
    }
    for (const Var& var : equation.outputs)
      if (last[std::size_t(var.id)] < 0) bytes += bytes_of(jaxpr.aval(var));
    return bytes;
  }

  // Counts one equation and its bodies; returns its peak memory.
  double count(const JaxprData& jaxpr, const Equation& equation, Place place) {
    const std::vector<BodyRun> runs = bodies_run(equation);
    Work work;
    if (++counted_ > most_equations)
      throw ValueError("summary: bodies in bodies hold more than " +
                           std::to_string(most_equations) + " equations",
                       "look at a part of the program");
    if (runs.empty()) work = work_of(jaxpr, equation).times(place.times);
    for (const BodyRun& run : runs) work.known &= run.known;
    upwards(place.scope, [&](Node& node) {
      node.row.work += work;
      ++node.row.equations;
    });
    double most = place.live_bytes;
    for (const BodyRun& run : runs) {
      Place inside{place.scope, {}, place.times * run.times, place.live_bytes};
      for (const int operand : run.operands) {
        const Atom* atom = operand < 0 ? nullptr : &equation.inputs[std::size_t(operand)];
        const bool is_input = atom && atom->is_var() && atom->var().id < jaxpr.num_binders;
        inside.inputs.push_back(is_input ? place.inputs[std::size_t(atom->var().id)] : -1);
      }
      most = std::max(most, walk(run.body, inside));
    }
    return most;
  }

  // Adds each value to the scopes that do not contain all of its uses.
  void add_outputs(const JaxprData& jaxpr, int root, const std::vector<int>& scopes) {
    std::vector<int> holder(jaxpr.avals.size(), -1);  // the innermost scope of all uses
    const auto use = [&](const Atom& atom, int scope) {
      if (!atom.is_var()) return;
      int& held = holder[std::size_t(atom.var().id)];
      held = held < 0 ? scope : common(held, scope);
    };
    for (std::size_t i = 0; i < scopes.size(); ++i)
      for (const Atom& atom : jaxpr.equations[i].inputs) use(atom, scopes[i]);
    for (const Atom& atom : jaxpr.outputs) use(atom, root);
    for (std::size_t i = 0; i < scopes.size(); ++i)
      for (const Var& var : jaxpr.equations[i].outputs) {
        const int held = holder[std::size_t(var.id)];
        if (held < 0) continue;
        const int outside = common(held, scopes[i]);
        for (int scope = scopes[i]; scope != outside; scope = at(scope).parent)
          at(scope).row.outputs.push_back(jaxpr.aval(var));
      }
  }

  void add_rows(int scope, std::vector<ScopeSummary>& rows) {
    Node& node = at(scope);
    for (std::size_t i = 0; i < node.reads.size(); ++i)
      if (node.reads[i] && program_->avals[i].stack == 0)
        node.row.parameters += double(program_->avals[i].shape.num_elements().constant());
    rows.push_back(std::move(node.row));
    for (const int child : node.order) add_rows(child, rows);
  }

  // Nested calls can double the number of equations at each level.
  static constexpr std::int64_t most_equations = 10'000'000;

  Jaxpr program_;
  std::vector<Node> nodes_;
  std::int64_t counted_ = 0;
};

// "1.23 M": three digits and a power of 1000.
std::string quantity(double value) {
  static constexpr const char* units[] = {"", " k", " M", " G", " T", " P", " E"};
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(units)) value /= 1000, ++unit;
  char text[32];
  const int digits = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f%s", digits, value, units[unit]);
  return text;
}

std::string outputs_text(const std::vector<Aval>& outputs) {
  constexpr std::size_t shown = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, outputs.size()); ++i)
    text += (i ? " " : "") + outputs[i].to_string();
  if (outputs.size() > shown) text += " +" + std::to_string(outputs.size() - shown);
  return text;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\')
      result += std::string("\\") + c;
    else if (static_cast<unsigned char>(c) < 0x20)
      std::snprintf(escape, sizeof escape, "\\u%04x", c), result += escape;
    else
      result += c;
  }
  return result + "\"";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

Summary summary(const Jaxpr& jaxpr, std::string title) {
  if (!jaxpr->sizes.empty()) {
    std::string names;
    for (const Dim size : jaxpr->sizes) names += (names.empty() ? "" : ", ") + size.to_string();
    throw ValueError("summary: the program has sizes that are no numbers: " + names,
                     "give arrays, or instantiate the program with a number for each");
  }
  return {std::move(title), Scopes(jaxpr).rows(), plait::widenings(jaxpr)};
}

std::string Summary::to_string() const {
  std::vector<std::vector<std::string>> table{
      {"scope", "outputs", "parameters", "equations", "FLOPs", "bytes", "live bytes"}};
  for (const ScopeSummary& row : rows_) {
    const std::string about = row.work.known ? "" : "~";  // the estimate depends on data
    table.push_back(
        {std::string(std::size_t(2 * row.depth), ' ') + (row.depth == 0 ? title_ : row.name()),
         outputs_text(row.outputs), quantity(row.parameters), std::to_string(row.equations),
         about + quantity(row.work.flops), about + quantity(row.work.bytes()),
         quantity(row.live_bytes)});
  }
  std::vector<std::size_t> widths(table[0].size());
  for (const auto& row : table)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (std::size_t r = 0; r < table.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string space(widths[i] - table[r][i].size(), ' ');
      text += (i ? "  " : "") + (i < 2 ? table[r][i] + space : space + table[r][i]);
    }
    text += "\n";
    if (r > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += (i ? "  " : "") + std::string(widths[i], '-');
    text += "\n";
  }
  for (const Widening& widening : widenings_) text += widening.to_string() + "\n";
  return text;
}

std::string Summary::to_json() const {
  std::string text = "[";
  for (const ScopeSummary& row : rows_) {
    std::string outputs;
    for (const Aval& aval : row.outputs)
      outputs += (outputs.empty() ? "" : ", ") + quoted(aval.to_string());
    text += (text.size() > 1 ? ",\n " : "") + std::string("{\"scope\": ") + quoted(row.path) +
            ", \"depth\": " + std::to_string(row.depth) + ", \"outputs\": [" + outputs +
            "], \"parameters\": " + number(row.parameters) +
            ", \"equations\": " + std::to_string(row.equations) +
            ", \"flops\": " + number(row.work.flops) +
            ", \"bytes_read\": " + number(row.work.bytes_read) +
            ", \"bytes_written\": " + number(row.work.bytes_written) +
            ", \"known\": " + (row.work.known ? "true" : "false") +
            ", \"live_bytes\": " + number(row.live_bytes) + "}";
  }
  return text + "]";
}

std::ostream& operator<<(std::ostream& out, const Summary& summary) {
  return out << summary.to_string();
}

}  // namespace plait
