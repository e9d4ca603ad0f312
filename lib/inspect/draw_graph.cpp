// The boxes of a picture: a tree of named scopes, calls, loops and their branches, whose leaves are
// equations, inputs and outputs.
//
// Values flow into the bodies of calls as if these were inlined; bodies of loops and branches have
// inputs of their own. An input is drawn at its first use. The scopes of the forward and of the
// backward pass are separate boxes, because otherwise each would precede the other.
// SPDX-License-Identifier: Apache-2.0
#include "inspect/draw_graph.h"
#include "ir/equation_text.h"

#include <plait/control/primitives.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/cost.h>
#include <plait/rules/inline.h>
#include <plait/rules/picture_group.h>
#include <plait/transforms/transforms.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace plait::inspect {
namespace {

using Kind = DrawNode::Kind;
constexpr std::size_t max_nodes = 200'000;  // further bodies stay closed: each call draws its own

// Like bytes_of, with named sizes as 1.
double least_bytes_of(Aval aval) {
  for (Dim& dim : aval.shape)
    if (!dim.is_constant()) dim = 1;
  return bytes_of(aval);
}

std::string group_of(const Equation& equation) {
  if (equation.primitive->is_effectful()) return std::string(PictureGroup::effect);
  const PictureGroup::Rule* group = PictureGroup::table().find(*equation.primitive);
  return std::string(group ? *group : PictureGroup::other);
}

class GraphBuilder {
 public:
  explicit GraphBuilder(const DrawOptions& options) : options_(options) {}

  DrawGraph build(const Jaxpr& jaxpr) {
    has_numbers_ = jaxpr->sizes.empty();
    add({Kind::scope, -1, options_.title, {}, {}, {}, "scope"});
    std::vector<int> values;
    for (int i = 0; i < jaxpr->num_binders; ++i)
      values.push_back(add_value(name_at(options_.input_names, i, "in"), jaxpr->avals[i]));
    const std::vector<int> inputs = values;
    const std::vector<int> results = add_program(jaxpr, 0, std::move(values));
    add_outputs(jaxpr, results);
    add_unused(inputs);
    split(0);
    count();
    return std::move(graph_);
  }

 private:
  // The value of a var: the leaf that computes it, once drawn.
  struct Value {
    std::string name;
    Aval aval;
    int node = -1;
  };

  static std::string name_at(const std::vector<std::string>& names, int index,
                             const char* otherwise) {
    if (std::size_t(index) < names.size() && !names[std::size_t(index)].empty())
      return names[std::size_t(index)];
    return otherwise + ("[" + std::to_string(index) + "]");
  }

  int add(DrawNode node) {
    const int index = int(graph_.nodes.size());
    if (node.parent >= 0) graph_.nodes[std::size_t(node.parent)].children.push_back(index);
    graph_.nodes.push_back(std::move(node));
    return index;
  }
  int add_value(std::string name, const Aval& aval, int node = -1) {
    values_.push_back({std::move(name), aval, node});
    return int(values_.size()) - 1;
  }

  // The box for the scopes of this line, inside another box.
  int scope_of(int parent, const Source& source) {
    if (!source || source->scope.empty()) return parent;
    const auto key = std::pair(parent, &*source);
    if (const auto found = scope_of_line_.find(key); found != scope_of_line_.end())
      return found->second;
    std::string_view rest = source->scope, transforms = source->transforms;
    int node = parent;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('/'), rest.size());
      const std::string name(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      auto [place, is_new] = scopes_.try_emplace({node, name + "\n" + std::string(transforms)}, -1);
      if (is_new)
        place->second = add({Kind::scope, node, name, std::string(transforms), {}, {}, "scope"});
      node = place->second;
      transforms = {};  // shown by the outermost
    }
    return scope_of_line_[key] = node;
  }

  void add_input(Value& value, int parent) {
    value.node = add({Kind::input,
                      parent,
                      value.name,
                      type_of(value.aval),
                      {},
                      {},
                      "input",
                      0,
                      least_bytes_of(value.aval)});
  }
  // Adds a node that reads values, after drawing its missing inputs.
  int add_reader(DrawNode made, const std::vector<int>& inputs) {
    for (int value : inputs)
      if (value >= 0 && values_[std::size_t(value)].node < 0)
        add_input(values_[std::size_t(value)], made.parent);
    const int node = add(std::move(made));
    for (int value : inputs) {
      if (value < 0) continue;
      const Value& from = values_[std::size_t(value)];
      graph_.edges.push_back({from.node, node, type_of(from.aval), least_bytes_of(from.aval)});
    }
    return node;
  }

  const std::string& type_of(const Aval& aval) {
    const auto [place, is_new] = types_.try_emplace(aval);
    if (is_new) place->second = aval.to_string();
    return place->second;
  }

  // Draws a program whose binders have these values; returns those of its outputs, -1 for literals.
  std::vector<int> add_program(const Jaxpr& jaxpr, int parent, std::vector<int> values) {
    values.resize(jaxpr->avals.size(), -1);
    for (const Equation& equation : jaxpr->equations) {
      const int box = scope_of(parent, equation.source);
      std::vector<int> inputs;
      for (const Atom& atom : equation.inputs)
        inputs.push_back(atom.is_var() ? values[std::size_t(atom.var().id)] : -1);
      const bool is_open = holds_bodies(equation.params) && graph_.nodes.size() < max_nodes;
      const std::vector<int> results = !is_open ? add_equation(*jaxpr, equation, box, inputs)
                                       : Inline::table().find(*equation.primitive)
                                           ? add_call(*jaxpr, equation, box, inputs)
                                           : add_control(*jaxpr, equation, box, inputs);
      for (std::size_t i = 0; i < results.size(); ++i)
        values[std::size_t(equation.outputs[i].id)] = results[i];
    }
    std::vector<int> outputs;
    for (const Atom& atom : jaxpr->outputs)
      outputs.push_back(atom.is_var() ? values[std::size_t(atom.var().id)] : -1);
    return outputs;
  }

  DrawNode node_of(const JaxprData& program, const Equation& equation, int parent, Kind kind) {
    DrawNode node{kind, parent, std::string(equation.primitive->name())};
    node.source = equation.source;
    node.num_equations = kind == Kind::equation ? 1 : 0;
    node.group = kind == Kind::equation ? group_of(equation) : "control";
    if (!equation.outputs.empty()) node.type = type_of(program.aval(equation.outputs[0]));
    if (equation.outputs.size() > 1)
      node.type += " +" + std::to_string(equation.outputs.size() - 1);
    node.text = text_without_bodies(program, equation);
    count_work(node, program, equation);
    return node;
  }
  static std::string text_without_bodies(const JaxprData& program, const Equation& equation) {
    if (!holds_bodies(equation.params)) return text_of(program, equation);
    std::vector<Params::Entry> plain;
    for (const Params::Entry& entry : equation.params.entries())
      if (!std::holds_alternative<Jaxpr>(entry.second) &&
          !std::holds_alternative<std::vector<Jaxpr>>(entry.second))
        plain.push_back(entry);
    Equation shown = equation;
    shown.params = Params(std::move(plain));
    return text_of(program, shown);
  }

  // A call costs what its body does; loops and branches cost more than their drawn bodies.
  void count_work(DrawNode& node, const JaxprData& program, const Equation& equation) const {
    if (Inline::table().find(*equation.primitive) && node.kind == Kind::body) return;
    node.is_counted = true;
    if (has_numbers_) {
      const Work work = work_of(program, equation);
      node.flops = work.flops;
      node.bytes = work.bytes_written;
    } else {
      for (Var var : equation.outputs) node.bytes += least_bytes_of(program.aval(var));
    }
  }

  std::vector<int> outputs_of(const JaxprData& program, const Equation& equation, int node) {
    std::vector<int> results;
    for (Var var : equation.outputs) results.push_back(add_value({}, program.aval(var), node));
    return results;
  }

  std::vector<int> add_equation(const JaxprData& program, const Equation& equation, int parent,
                                const std::vector<int>& inputs) {
    const int node = add_reader(node_of(program, equation, parent, Kind::equation), inputs);
    return outputs_of(program, equation, node);
  }

  std::vector<int> add_call(const JaxprData& program, const Equation& equation, int parent,
                            const std::vector<int>& inputs) {
    DrawNode made = node_of(program, equation, parent, Kind::body);
    const std::string* title = title_of(*equation.primitive, equation.params);
    if (title && !title->empty()) made.name = *title;
    const int node = add(std::move(made));
    const Jaxpr body = open_body(equation.params);
    std::vector<int> values = inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] < 0 && !equation.inputs[i].is_var())
        values[i] = add_value(equation.inputs[i].literal().to_string(), body->avals[i]);
    std::vector<int> results = add_program(body, node, std::move(values));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i] < 0) results[i] = add_value({}, program.aval(equation.outputs[i]), node);
    return results;
  }

  std::vector<int> add_control(const JaxprData& program, const Equation& equation, int parent,
                               const std::vector<int>& inputs) {
    const int node = add_reader(node_of(program, equation, parent, Kind::body), inputs);
    auto add_body = [&](const std::string& name, const Jaxpr& body) {
      const int box = add({Kind::body, node, name, {}, {}, {}, "control"});
      std::vector<int> values;
      for (int i = 0; i < body->num_binders; ++i)
        values.push_back(add_value(var_name(i), body->avals[i]));
      add_program(body, box, std::move(values));
    };
    for (const auto& [name, value] : open_bodies(equation.params).entries()) {
      if (const Jaxpr* body = std::get_if<Jaxpr>(&value)) add_body(name, *body);
      if (const auto* list = std::get_if<std::vector<Jaxpr>>(&value))
        for (std::size_t i = 0; i < list->size(); ++i)
          add_body("branch " + std::to_string(i), (*list)[i]);
    }
    return outputs_of(program, equation, node);
  }

  void add_outputs(const Jaxpr& jaxpr, const std::vector<int>& results) {
    constexpr std::size_t few = 4;  // too few for a box of their own
    const int box = results.size() <= few ? 0
                                          : add({Kind::scope,
                                                 0,
                                                 std::to_string(results.size()) + " results",
                                                 {},
                                                 {},
                                                 {},
                                                 "output"});
    for (std::size_t i = 0; i < results.size(); ++i) {
      const Aval aval = jaxpr->aval(jaxpr->outputs[i]);
      std::string name = name_at(options_.output_names, int(i), "out");
      if (results[i] < 0 && !jaxpr->outputs[i].is_var())
        name += " = " + jaxpr->outputs[i].literal().to_string();
      add_reader({Kind::output, box, std::move(name), type_of(aval), {}, {}, "output"},
                 {results[i]});
    }
  }

  void add_unused(const std::vector<int>& inputs) {
    int box = -1;
    for (int value : inputs) {
      Value& input = values_[std::size_t(value)];
      if (input.node >= 0) continue;
      if (box < 0) box = add({Kind::scope, 0, "unused inputs", {}, {}, {}, "input"});
      add_input(input, box);
    }
  }

  // Groups consecutive children where a box holds many.
  void split(int root) {
    std::vector<int> open = {root};
    while (!open.empty()) {
      const int box = open.back();
      open.pop_back();
      const std::vector<int> children = graph_.nodes[std::size_t(box)].children;
      if (int(children.size()) > max_children) split_children(box, children);
      for (int child : graph_.nodes[std::size_t(box)].children)
        if (!graph_.nodes[std::size_t(child)].is_leaf()) open.push_back(child);
    }
  }
  void split_children(int box, const std::vector<int>& children) {
    constexpr std::size_t wanted = 24;
    const std::size_t length =
        std::max<std::size_t>((children.size() + wanted - 1) / wanted, max_children / 4);
    graph_.nodes[std::size_t(box)].children.clear();
    for (std::size_t begin = 0; begin < children.size(); begin += length) {
      const int run = add({Kind::run, box, {}, {}, {}, {}, "scope"});
      const std::size_t end = std::min(begin + length, children.size());
      for (std::size_t i = begin; i < end; ++i) {
        graph_.nodes[std::size_t(run)].children.push_back(children[i]);
        graph_.nodes[std::size_t(children[i])].parent = run;
      }
      name_run(run);
    }
  }
  // Names a run after its most frequent content.
  void name_run(int run) {
    std::map<std::string, int> counts;
    Source line;
    for (int child : graph_.nodes[std::size_t(run)].children) {
      const DrawNode& node = graph_.nodes[std::size_t(child)];
      if (!node.name.empty()) ++counts[node.name];
      if (!line) line = node.source;
    }
    std::set<std::string> most;
    for (int i = 0; i < 2 && !counts.empty(); ++i) {
      const auto next = std::max_element(counts.begin(), counts.end(),
                                         [](auto& a, auto& b) { return a.second < b.second; });
      most.insert(next->first);
      counts.erase(next);
    }
    std::string name;
    for (const std::string& part : most) name += (name.empty() ? "" : ", ") + part;
    graph_.nodes[std::size_t(run)].name = name + (counts.empty() ? "" : ", …");
    graph_.nodes[std::size_t(run)].source = line;
  }

  // Sums over the children of boxes, and boxes in program order.
  void count() {
    std::vector<int> order, open = {0};
    while (!open.empty()) {
      order.push_back(open.back());
      open.pop_back();
      const std::vector<int>& children = graph_.nodes[std::size_t(order.back())].children;
      open.insert(open.end(), children.rbegin(), children.rend());
    }
    std::vector<int> place(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[std::size_t(order[i])] = int(i);
    std::vector<DrawNode> nodes;
    nodes.reserve(order.size());
    for (int index : order) nodes.push_back(std::move(graph_.nodes[std::size_t(index)]));
    for (DrawNode& node : nodes) {
      if (node.parent >= 0) node.parent = place[std::size_t(node.parent)];
      for (int& child : node.children) child = place[std::size_t(child)];
    }
    for (DrawEdge& edge : graph_.edges) {
      edge.from = place[std::size_t(edge.from)];
      edge.to = place[std::size_t(edge.to)];
    }
    for (std::size_t i = nodes.size(); i-- > 1;) {
      if (nodes[i].kind == Kind::input) continue;
      DrawNode& parent = nodes[std::size_t(nodes[i].parent)];
      parent.num_equations += nodes[i].num_equations;
      if (parent.is_counted) continue;
      parent.bytes += nodes[i].bytes;
      parent.flops += nodes[i].flops;
    }
    graph_.nodes = std::move(nodes);
  }

  struct HashAval {
    std::size_t operator()(const Aval& aval) const { return aval.hash(); }
  };
  const DrawOptions& options_;
  bool has_numbers_ = true;  // no size is named
  DrawGraph graph_;
  std::vector<Value> values_;
  std::map<std::pair<int, std::string>, int> scopes_;
  std::map<std::pair<int, const Source::Line*>, int> scope_of_line_;
  std::unordered_map<Aval, std::string, HashAval> types_;
};

}  // namespace

std::vector<int> open_at_first(const DrawGraph& graph) {
  constexpr std::size_t enough = 36;  // boxes
  std::vector<int> open = {0}, level = {0};
  std::size_t shown = graph.nodes[0].children.size();
  while (!level.empty()) {
    std::vector<int> next;
    for (int box : level)
      for (int child : graph.nodes[std::size_t(box)].children)
        if (!graph.nodes[std::size_t(child)].is_leaf()) next.push_back(child);
    std::stable_sort(next.begin(), next.end(), [&](int a, int b) {
      return graph.nodes[std::size_t(a)].children.size() <
             graph.nodes[std::size_t(b)].children.size();
    });
    level.clear();
    for (int box : next) {
      const std::size_t parts = graph.nodes[std::size_t(box)].children.size();
      if (shown + parts > enough) break;
      shown += parts;
      level.push_back(box);
    }
    open.insert(open.end(), level.begin(), level.end());
  }
  return open;
}

DrawGraph make_graph(const Jaxpr& jaxpr, const DrawOptions& options) {
  const bool is_measured = options.color == DrawColor::time || options.color == DrawColor::backend;
  if (is_measured && !options.profile)
    throw ValueError("draw: colours by time and by backend need a profile",
                     "give one in DrawOptions: profile(jaxpr, inputs)");
  DrawGraph graph = GraphBuilder(options).build(jaxpr);
  if (options.profile) add_profile(graph, *options.profile);
  return graph;
}

}  // namespace plait::inspect
