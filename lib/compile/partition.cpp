// partition: an equation goes to the most preferred backend that supports it. Equations of one
// backend that feed each other merge into a group where the backend says so and no cycle arises.
// The groups are sorted topologically.
//
// It runs after simplify, because duplicates that simplify merges would be fused twice, and before
// plan, which needs to know what is one step.
// SPDX-License-Identifier: Apache-2.0
#include "partition.h"

#include <plait/primitives/primitives.h>

#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "group_order.h"
#include "input_free.h"

namespace plait::compile_passes {
namespace {

// A fictitious address for roots, from which Alias rules compute offsets.
char* const pretended_memory = reinterpret_cast<char*>(std::uintptr_t(1) << 40);

class Partitioner {
 public:
  Partitioner(const Jaxpr& program, std::span<const Backend* const> backends, Device device)
      : program_(program),
        backends_(backends),
        device_(device),
        group_of_var_(program->avals.size(), -1) {}

  Partition run() {
    count_uses();
    find_layouts();
    is_input_free_ = find_input_free(program_);
    for (std::size_t index = 0; index < program_->equations.size(); ++index)
      if (!result_.is_alias[index]) place(int(index));
    join_siblings();
    sort_groups();
    for (Group& group : result_.groups)
      if (group.backend) close_group(group);
    return std::move(result_);
  }

 private:
  struct Work {
    Group group;
    std::vector<int> seen_through;  // groups whose results it reads through views
    int last = 0;                   // its last equation
  };

  void find_layouts() {
    const JaxprData& data = *program_;
    std::vector<Layout>& layouts = result_.layouts;
    layouts.resize(data.avals.size());
    auto make_root = [&](int var) {
      layouts[var] = {var, in_memory(data.avals[var]).shape.to_sizes(), {}, 0};
      layouts[var].strides = dense_strides(layouts[var].shape);
    };
    for (int i = 0; i < data.num_binders; ++i) make_root(i);
    result_.is_alias.assign(data.equations.size(), false);
    for (std::size_t index = 0; index < data.equations.size(); ++index) {
      const Equation& equation = data.equations[index];
      const Alias::Rule* alias = Alias::table().find(*equation.primitive);
      if (is_constant_view(equation)) {
        add_constant_view(equation, *alias);
        result_.is_alias[index] = true;
        continue;
      }
      bool aliased = alias && equation.inputs.size() == equation.outputs.size();
      for (std::size_t i = 0; aliased && i < equation.outputs.size(); ++i) {
        const int out = equation.outputs[i].id;
        aliased = equation.inputs[i].is_var();
        if (!aliased) break;
        const Layout& from = layouts[equation.inputs[i].var().id];
        const View view{pretended_memory, data.avals[out].dtype, from.shape, from.strides};
        const std::optional<View> seen =
            (*alias)(view, data.avals[out].shape.to_sizes(), equation.params);
        aliased = seen.has_value();
        if (aliased)
          layouts[out] = {from.root, seen->shape, seen->strides,
                          from.byte_offset + (static_cast<char*>(seen->data) - pretended_memory)};
      }
      if (!aliased)
        for (Var var : equation.outputs) make_root(var.id);
      result_.is_alias[index] = aliased && !(*equation.primitive == barrier_p);
      if (result_.is_alias[index])
        for (std::size_t i = 0; i < equation.outputs.size(); ++i)
          alias_source_.emplace(equation.outputs[i].id,
                                Seen{equation.inputs[i].var().id, int(index)});
    }
  }

  // Whether it repeats a literal for updates alone: their kernels read what they write once, so a
  // view costs no more than what is dense. Generated loops compute it where they need it.
  bool is_constant_view(const Equation& view) const {
    if (!(*view.primitive == broadcast_in_dim_p) || view.inputs[0].is_var()) return false;
    const Atom made = view.outputs[0];
    const std::vector<Atom>& outputs = program_->outputs;
    const std::vector<int>& readers = readers_[std::size_t(view.outputs[0].id)];
    return std::find(outputs.begin(), outputs.end(), made) == outputs.end() &&
           std::all_of(readers.begin(), readers.end(), [&](int index) {
             const Equation& reader = program_->equations[std::size_t(index)];
             const int operand = reader.primitive->overwritten();
             return operand >= 0 && !(reader.inputs[std::size_t(operand)] == made) &&
                    is_for_kernels(reader);
           });
  }
  bool is_for_kernels(const Equation& equation) const {
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program_->aval(atom));
    for (Var var : equation.outputs) outputs.push_back(program_->aval(var));
    for (const Backend* backend : backends_)
      if (backend->supports(equation, inputs, outputs, device_)) return backend->runs_eagerly();
    return false;
  }
  void add_constant_view(const Equation& equation, const Alias::Rule& alias) {
    const int out = equation.outputs[0].id;
    const Literal& literal = equation.inputs[0].literal();
    const std::optional<View> seen =
        alias(View{pretended_memory, literal.dtype, {}, {}},
              program_->avals[std::size_t(out)].shape.to_sizes(), equation.params);
    result_.layouts[std::size_t(out)] = {out, seen->shape, seen->strides, 0};
    result_.constants.emplace_back(out, literal);
  }

  // The group that computes a var, -1 for binders.
  int producer_of(const Atom& atom) {
    if (!atom.is_var()) return -1;
    int var = atom.var().id;
    for (auto at = alias_source_.find(var); at != alias_source_.end(); at = alias_source_.find(var))
      var = at->second.var;
    return group_of_var_[var] < 0 ? -1 : order_.find(group_of_var_[var]);
  }

  void place(int index) {
    const Equation& equation = program_->equations[index];
    Work work;
    work.last = index;
    work.group.equations = {index};
    work.group.is_input_free = is_input_free_[std::size_t(index)];
    std::vector<int> producers;
    for (const Atom& atom : equation.inputs) {
      const int producer = producer_of(atom);
      if (producer < 0) continue;
      if (!contains(producers, producer)) producers.push_back(producer);
      if (alias_source_.count(atom.var().id)) work.seen_through.push_back(producer);
    }
    const std::size_t num_data = producers.size();
    if (is_effectful(equation)) {
      if (last_effect_ >= 0) producers.push_back(last_effect_);
      last_effect_ = int(work_.size());
    }
    const int mine = order_.add(producers);
    producers.resize(num_data);
    work_.push_back(std::move(work));
    for (Var var : equation.outputs) group_of_var_[var.id] = mine;
    if (*equation.primitive == barrier_p) return;
    choose_backend(work_[mine].group, equation);
    // A producer's backend may take the equation as its epilogue, even one that it does not support
    // alone.
    for (const Backend* backend : backends_)
      for (int producer : producers) join(backend, order_.find(producer), order_.find(mine));
  }

  bool is_preferred(const Backend* one, const Backend* other) const {
    return std::find(backends_.begin(), backends_.end(), one) <
           std::find(backends_.begin(), backends_.end(), other);
  }

  void join(const Backend* backend, int producer, int consumer) {
    if (producer == consumer) return;
    Work &a = work_[producer], &b = work_[consumer];
    if (a.group.is_input_free != b.group.is_input_free) return;
    if (a.group.backend != backend || (b.group.equations.size() > 1 && b.group.backend != backend))
      return;
    if (is_preferred(b.group.backend, backend)) return;  // it has claimed the equation
    const bool through_views =
        std::any_of(b.seen_through.begin(), b.seen_through.end(),
                    [&](int group) { return order_.find(group) == producer; });
    if (through_views && !backend->takes_views()) return;
    std::vector<int> views = b.group.views;
    if (through_views) add_views(b.group.equations, producer, views);
    auto with = [](std::vector<int> equations, const std::vector<int>& more) {
      equations.insert(equations.end(), more.begin(), more.end());
      return equations;
    };
    const bool has_views = !views.empty() || !a.group.views.empty();
    if (!(has_views ? backend->joins(program_, uses_, with(a.group.equations, a.group.views),
                                     with(b.group.equations, views))
                    : backend->joins(program_, uses_, a.group.equations, b.group.equations)))
      return;
    if (!order_.merge(producer, consumer)) return;
    b.group.views = std::move(views);
    absorb(producer, consumer);
  }

  // Moves the contents of a merged group into the remaining one.
  void absorb(int into, int group) {
    Work &a = work_[into], &b = work_[group];
    for (int view : b.group.views)  // both may read through the same view
      if (!contains(a.group.views, view)) a.group.views.push_back(view);
    a.group.equations.insert(a.group.equations.end(), b.group.equations.begin(),
                             b.group.equations.end());
    a.seen_through.insert(a.seen_through.end(), b.seen_through.begin(), b.seen_through.end());
    if (a.group.refusals.empty()) a.group.refusals = std::move(b.group.refusals);
    a.last = std::max(a.last, b.last);
    b = {};
  }

  // Merges each group with the previous one of the same sibling key, unless one depends on the
  // other.
  void join_siblings() {
    std::unordered_map<std::string, int> before;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const Group& group = work_[i].group;
      if (order_.is_merged(int(i)) || !group.backend || !group.views.empty() || group.is_input_free)
        continue;
      const std::string key = group.backend->sibling_key(program_, group.equations);
      if (key.empty()) continue;
      const auto [found, is_new] = before.emplace(std::string(group.backend->name()) + key, int(i));
      if (is_new) continue;
      const int other = std::exchange(found->second, int(i));
      std::vector<int> both = work_[other].group.equations;
      both.insert(both.end(), group.equations.begin(), group.equations.end());
      if (group.backend->sibling_key(program_, both) != key) continue;
      const int merged = order_.merge_apart(other, int(i));
      if (merged < 0) continue;
      absorb(merged, merged == other ? int(i) : other);
      found->second = merged;
    }
  }

  // Adds the views through which these equations read what the producer computes.
  void add_views(std::span<const int> equations, int producer, std::vector<int>& views) {
    for (int index : equations)
      for (const Atom& atom : program_->equations[index].inputs) {
        if (producer_of(atom) != producer) continue;
        int var = atom.var().id;
        for (auto at = alias_source_.find(var); at != alias_source_.end();
             at = alias_source_.find(var)) {
          if (!contains(views, at->second.equation)) views.push_back(at->second.equation);
          var = at->second.var;
        }
      }
  }

  void choose_backend(Group& group, const Equation& equation) {
    std::vector<Aval> inputs, outputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(program_->aval(atom));
    for (Var var : equation.outputs) outputs.push_back(program_->aval(var));
    for (const Backend* backend : backends_) {
      const Support support = backend->supports(equation, inputs, outputs, device_);
      if (support) {
        // What runs once is not worth compiling for long, where there is a choice.
        const bool is_best = !group.is_input_free || backend->runs_eagerly();
        if (is_best || !group.backend) group.backend = backend;
        if (is_best) return;
      } else if (!support.reason.empty()) {
        group.refusals += (group.refusals.empty() ? "" : "; ") + std::string(backend->name()) +
                          ": " + support.reason;
      }
    }
    if (group.backend) return;
    throw_missing_rule(Eval::table(), *equation.primitive);
  }

  // Topological order, early equations first.
  void sort_groups() {
    std::vector<int> waiting(work_.size(), 0);
    std::vector<std::vector<int>> consumers(work_.size());
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (order_.is_merged(int(i))) continue;
      const std::vector<int> producers = order_.producers(int(i));
      waiting[i] = int(producers.size());
      for (int producer : producers) consumers[producer].push_back(int(i));
    }
    auto later = [this](int a, int b) { return work_[a].last > work_[b].last; };
    std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
    std::size_t num_groups = 0;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      if (order_.is_merged(int(i))) continue;
      ++num_groups;
      if (waiting[i] == 0) ready.push(int(i));
    }
    while (!ready.empty()) {
      const int group = ready.top();
      ready.pop();
      std::sort(work_[group].group.equations.begin(), work_[group].group.equations.end());
      std::sort(work_[group].group.views.begin(), work_[group].group.views.end());
      result_.groups.push_back(std::move(work_[group].group));
      for (int consumer : consumers[group])
        if (--waiting[consumer] == 0) ready.push(consumer);
    }
    if (result_.groups.size() != num_groups)
      throw InternalError("partition: groups depend on each other in a cycle");
  }

  // Makes the jaxpr of a group. Outputs are what other groups or the program's caller see.
  void close_group(Group& group) {
    std::vector<int> all = group.equations;
    all.insert(all.end(), group.views.begin(), group.views.end());
    std::sort(all.begin(), all.end());
    Builder builder;
    std::unordered_map<int, Var> vars;
    for (int index : all)
      for (Var var : program_->equations[index].outputs) vars.emplace(var.id, Var{});
    for (int index : all)
      for (const Atom& atom : program_->equations[index].inputs) {
        if (!atom.is_var() || vars.count(atom.var().id)) continue;
        vars.emplace(atom.var().id, builder.add_binder(program_->aval(atom)));
        group.inputs.push_back(atom);
      }
    for (int index : all) {
      const Equation& equation = program_->equations[index];
      std::vector<Atom> inputs;
      for (const Atom& atom : equation.inputs)
        inputs.push_back(atom.is_var() ? Atom(vars.at(atom.var().id)) : atom);
      std::vector<Aval> avals;
      for (Var var : equation.outputs) avals.push_back(program_->aval(var));
      const std::vector<Var> outputs =
          builder.add(*equation.primitive, std::move(inputs), equation.params, equation.source,
                      std::move(avals));
      for (std::size_t i = 0; i < outputs.size(); ++i) vars[equation.outputs[i].id] = outputs[i];
    }
    std::unordered_map<int, int> inner_uses = count_inner_uses(group);
    std::vector<Atom> outputs;
    const bool is_single =
        group.equations.size() == 1;  // keeps unused outputs: kernels write them all
    for (int index : group.equations)
      for (Var var : program_->equations[index].outputs)
        if (is_single || uses_[var.id] > inner_uses[var.id]) {
          group.outputs.push_back(var);
          outputs.push_back(vars.at(var.id));
        }
    group.jaxpr = builder.close(std::move(outputs));
  }

  // By var: the number of reads in the group. A view counts only if all its readers are in the
  // group.
  std::unordered_map<int, int> count_inner_uses(const Group& group) const {
    std::unordered_map<int, int> uses;
    auto add = [&](int index) {
      for (const Atom& atom : program_->equations[index].inputs)
        if (atom.is_var()) ++uses[atom.var().id];
    };
    for (int index : group.equations) add(index);
    for (auto view = group.views.rbegin(); view != group.views.rend(); ++view) {
      bool is_inner = true;
      for (Var var : program_->equations[*view].outputs) is_inner &= uses[var.id] == uses_[var.id];
      if (is_inner) add(*view);
    }
    return uses;
  }

  void count_uses() {
    uses_.assign(program_->avals.size(), 0);
    readers_.resize(program_->avals.size());
    for (std::size_t index = 0; index < program_->equations.size(); ++index)
      for (const Atom& atom : program_->equations[index].inputs) {
        if (!atom.is_var()) continue;
        ++uses_[atom.var().id];
        readers_[std::size_t(atom.var().id)].push_back(int(index));
      }
    for (const Atom& atom : program_->outputs)
      if (atom.is_var()) ++uses_[atom.var().id];
  }

  static bool contains(const std::vector<int>& list, int value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  }

  const Jaxpr& program_;
  const std::span<const Backend* const> backends_;
  const Device device_;
  Partition result_;
  std::vector<Work> work_;
  GroupOrder order_;
  std::vector<int> group_of_var_;
  struct Seen {
    int var, equation;
  };
  std::unordered_map<int, Seen> alias_source_;  // by var: what it views, by which equation
  std::vector<bool> is_input_free_;             // by equation
  std::vector<int> uses_;
  std::vector<std::vector<int>> readers_;  // by var
  int last_effect_ = -1;
};

}  // namespace

Partition partition_program(const Jaxpr& program, std::span<const Backend* const> backends,
                            Device device) {
  return Partitioner(program, backends, device).run();
}

}  // namespace plait::compile_passes
