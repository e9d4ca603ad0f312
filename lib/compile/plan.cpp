// plan: assigns memory to every root: a program input, a new output, a constant, or a range of the
// arena, which values that are not live at the same time share. Kernels that may work in place do.
//
// It runs last, because lifetimes follow from the order of the steps.
// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <plait/base/progress.h>
#include <plait/base/stack.h>
#include <plait/compile/compile.h>
#include <plait/control/primitives.h>

#include "compile/arena.h"
#include "compile/gathering.h"

namespace plait::compile_passes {
namespace {

class Planner {
 public:
  Planner(const Jaxpr& program, Partition partition, const CompileOptions& options,
          const std::function<void()>& between)
      : program_(program),
        partition_(std::move(partition)),
        donate_(options.donate),
        num_carries_(options.num_carries),
        device_(options.device),
        between_(between) {}

  Plan run() {
    const std::size_t num_vars = program_->avals.size();
    storage_of_.assign(num_vars, -1);
    is_given_.assign(program_->num_binders, false);
    find_last_reads();
    for (int i = 0; i < program_->num_binders; ++i)
      storage_of_[i] = make_storage(PlannedView::Segment::input, i, bytes_of(i), i);
    for (const auto& [root, literal] : partition_.constants) {
      plan_.constants.push_back(Array::literal(literal).buffer());
      storage_of_[root] =
          make_storage(PlannedView::Segment::constant, int(plan_.constants.size()) - 1,
                       size_of(literal.dtype), root);
    }
    const Gathering gathering;
    int index = 0;
    ProgressScope progress("compiling, step", std::int64_t(partition_.groups.size()));
    for (Group& group : partition_.groups) {
      add_step(group, index++);
      progress.step();
    }
    place();
    for (Draft& step : steps_) close_step(step);
    for (const Atom& atom : program_->outputs) plan_.results.push_back(view_of(atom));
    const std::span<const Aval> inputs = program_->input_avals();
    plan_.inputs.assign(inputs.begin(), inputs.end());
    plan_.num_carries = num_carries_;
    plan_.outputs = program_->output_avals();
    for (Buffer& constant : plan_.constants) constant = constant.on(device_);
    return std::move(plan_);
  }

 private:
  // A block of memory for one root, or for several in turn.
  struct Memory {
    PlannedView::Segment segment;
    int index;
    std::int64_t bytes;
    int root;                 // the last one in it
    std::int64_t offset = 0;  // in the arena
    int begin = 0, end = -1;  // the steps that first write and last read it
  };
  struct Draft {
    Group* group;
    std::unique_ptr<Kernel> kernel;
    std::int64_t scratch_offset = 0;
  };

  std::int64_t bytes_of(int var) const {
    const Aval aval = in_memory(program_->avals[var]);
    return num_elements(aval.shape.to_sizes()) * size_of(aval.dtype);
  }

  bool is_stack(int var) const { return program_->avals[var].stack > 0; }

  int make_storage(PlannedView::Segment segment, int index, std::int64_t bytes, int root) {
    memories_.push_back({segment, index, bytes, root, 0, 0, -1});
    return int(memories_.size()) - 1;
  }

  void find_last_reads() {
    last_read_.assign(program_->avals.size(), -1);
    is_output_.assign(program_->avals.size(), false);
    int step = 0;
    for (const Group& group : partition_.groups) {
      for (int index : group.equations)
        for (const Atom& atom : program_->equations[index].inputs)
          if (atom.is_var()) last_read_[root_of(atom.var())] = step;
      ++step;
    }
    for (const Atom& atom : program_->outputs)
      if (atom.is_var()) is_output_[root_of(atom.var())] = true;
  }

  int root_of(Var var) const { return partition_.layouts[var.id].root; }

  std::unique_ptr<Kernel> kernel_of(const Group& group) const {
    std::vector<Sizes64> strides;
    for (const Atom& atom : group.inputs)
      strides.push_back(partition_.layouts[atom.var().id].strides);
    between_();
    return group.backend->compile(group.jaxpr, {device_, strides});
  }

  // Computes a group that no input changes; all that it reads are constants by then.
  void add_constants(const Group& group) {
    const std::unique_ptr<Kernel> kernel = kernel_of(group);
    std::vector<View> inputs, outputs;
    for (const Atom& atom : group.inputs) {
      const PlannedView planned = view_of(atom);
      inputs.push_back(planned.view);
      inputs.back().data =
          static_cast<char*>(plan_.constants[std::size_t(planned.index)].mutable_data()) +
          planned.byte_offset;
    }
    for (const Var var : group.outputs) {
      const Aval& aval = program_->aval(var);
      storage_of_[root_of(var)] =
          make_storage(PlannedView::Segment::constant, int(plan_.constants.size()),
                       bytes_of(var.id), root_of(var));
      plan_.constants.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes()));
      outputs.push_back(plan_.constants.back().view());
      plan_.input_free_bytes += bytes_of(var.id);
    }
    const Storage scratch = Storage::allocate(std::size_t(kernel->scratch_bytes()));
    kernel->enqueue(inputs, outputs, scratch.data(), {});
  }

  void add_step(Group& group, int index) {
    if (!group.backend) return;
    if (group.is_input_free && device_.is_host()) return add_constants(group);
    Draft step{&group, kernel_of(group), 0};
    std::vector<int> overwritten;
    for (std::size_t o = 0; o < group.outputs.size(); ++o) {
      const int root = root_of(group.outputs[o]);
      if (const std::optional<int> donor = input_to_overwrite(group, *step.kernel, o, index)) {
        is_given_[*donor] = true;
        storage_of_[root] = make_storage(PlannedView::Segment::output, int(plan_.storages.size()),
                                         bytes_of(root), root);
        plan_.storages.push_back({bytes_of(root), false, *donor, is_carry(*donor)});
        continue;
      }
      const int memory = memory_to_overwrite(group, *step.kernel, o, index, overwritten);
      if (memory >= 0) {
        overwritten.push_back(memory);
        memories_[memory].root = root;
        storage_of_[root] = memory;
      } else {
        storage_of_[root] =
            make_storage(is_stack(root) && !device_.is_host() ? PlannedView::Segment::handles
                                                              : PlannedView::Segment::arena,
                         0, bytes_of(root), root);
        memories_.back().begin = is_stack(root) ? 0 : index;
      }
      Memory& home = memories_[storage_of_[root]];
      home.end = is_stack(root) ? int(partition_.groups.size()) - 1
                                : std::max({home.end, last_read_[root], index});
      if (is_output_[root] && (home.segment == PlannedView::Segment::arena ||
                               home.segment == PlannedView::Segment::handles)) {
        home.segment = PlannedView::Segment::output;
        home.index = int(plan_.storages.size());
        plan_.storages.push_back({home.bytes, is_stack(root), std::nullopt, false});
      }
    }
    if (const std::int64_t scratch = step.kernel->scratch_bytes(); scratch > 0) {
      scratch_of_.emplace(int(steps_.size()), int(memories_.size()));
      make_storage(PlannedView::Segment::arena, 0, scratch, -1);
      memories_.back().begin = memories_.back().end = index;
    }
    index_of_step_.push_back(index);
    steps_.push_back(std::move(step));
  }

  // The donated input that this step reads last and may overwrite with this result of the program.
  // It is preferred to memory of the arena, which has other uses.
  std::optional<int> input_to_overwrite(const Group& group, const Kernel& kernel,
                                        std::size_t output, int index) const {
    const int root = root_of(group.outputs[output]);
    if (!is_output_[root] || is_stack(root)) return std::nullopt;
    for (std::size_t i = 0; i < group.inputs.size(); ++i) {
      const int in = group.inputs[i].var().id;
      if (in >= program_->num_binders || !may_give(in, bytes_of(root), root)) continue;
      if (last_read_[in] == index && reads_alone(group, i) && kernel.may_overwrite(i, output))
        return in;
    }
    return std::nullopt;
  }

  bool is_carry(int input) const { return std::size_t(input) < num_carries_; }
  // A carry may give its memory to its next value alone.
  bool may_give(int input, std::int64_t bytes, int root) const {
    if (is_given_[input] || is_output_[input] || bytes_of(input) != bytes) return false;
    if (!is_carry(input)) return input < int(donate_.size()) && donate_[input];
    const Atom& next = program_->outputs[std::size_t(input)];
    return next.is_var() && root_of(next.var()) == root;
  }

  // Whether no other input of the group is a view of the same memory.
  bool reads_alone(const Group& group, std::size_t input) const {
    const int root = root_of(group.inputs[input].var());
    return std::count_if(group.inputs.begin(), group.inputs.end(),
                         [&](const Atom& atom) { return root_of(atom.var()) == root; }) == 1;
  }

  // The memory of an input that dies here and that this output may overwrite, or -1.
  int memory_to_overwrite(const Group& group, const Kernel& kernel, std::size_t output, int index,
                          const std::vector<int>& taken) const {
    const int out = group.outputs[output].id;
    for (std::size_t i = 0; i < group.inputs.size(); ++i) {
      const int in = group.inputs[i].var().id;
      const Layout& layout = partition_.layouts[in];
      const int memory = storage_of_[layout.root];
      const Memory& home = memories_[memory];
      const bool is_ours = home.segment == PlannedView::Segment::arena ||
                           home.segment == PlannedView::Segment::output;
      if (!is_ours || is_output_[layout.root]) continue;
      if (home.root != layout.root || last_read_[layout.root] != index) continue;
      if (home.bytes != bytes_of(out) || bytes_of(in) != home.bytes || !layout.is_dense()) continue;
      if (std::find(taken.begin(), taken.end(), memory) != taken.end()) continue;
      if (reads_alone(group, i) && kernel.may_overwrite(i, output)) return memory;
    }
    return -1;
  }

  // Places values in the arena, and finds donors for outputs.
  void place() {
    std::vector<Lifetime> lifetimes;
    std::vector<Memory*> owners;
    for (Memory& memory : memories_) {
      if (memory.segment != PlannedView::Segment::arena || memory.end < 0) continue;
      lifetimes.push_back({memory.bytes, memory.begin, memory.end});
      owners.push_back(&memory);
    }
    plan_.arena_bytes =
        place_in_arena(lifetimes, device_.is_host() ? room_on_host : room_on_device);
    for (std::size_t i = 0; i < owners.size(); ++i) owners[i]->offset = lifetimes[i].offset;
    for (Memory& memory : memories_)
      if (memory.segment == PlannedView::Segment::handles)
        memory.offset = std::int64_t(sizeof(Stack::Handle) * plan_.num_handles++);
      else if (memory.segment == PlannedView::Segment::arena && memory.root >= 0 &&
               is_stack(memory.root))
        plan_.arena_stacks.push_back(memory.offset);
    for (auto [step, memory] : scratch_of_) steps_[step].scratch_offset = memories_[memory].offset;
    find_donors();
  }

  // An output may take over the memory of a donated input if it is written after the last read.
  void find_donors() {
    for (const Memory& memory : memories_) {
      if (memory.segment != PlannedView::Segment::output || is_stack(memory.root)) continue;
      std::optional<int>& donor = plan_.storages[memory.index].donor;
      for (int i = 0; i < program_->num_binders && !donor; ++i)
        if (may_give(i, memory.bytes, memory.root) &&
            (last_read_[i] < memory.begin ||
             (last_read_[i] == memory.begin && overwrites_input(memory, i)))) {
          is_given_[i] = true;
          donor = i;
          plan_.storages[memory.index].is_carry = is_carry(i);
        }
    }
  }

  // Whether the step that first writes this memory may overwrite input i, which it reads.
  bool overwrites_input(const Memory& memory, int input) const {
    for (std::size_t s = 0; s < steps_.size(); ++s) {
      if (index_of_step_[s] != memory.begin) continue;
      const Group& group = *steps_[s].group;
      for (std::size_t i = 0; i < group.inputs.size(); ++i)
        for (std::size_t o = 0; o < group.outputs.size(); ++o)
          if (group.inputs[i].var().id == input && reads_alone(group, i) &&
              &memories_[storage_of_[root_of(group.outputs[o])]] == &memory)
            return steps_[s].kernel->may_overwrite(i, o);
    }
    return false;
  }

  PlannedView view_of(const Atom& atom) {
    if (!atom.is_var()) {
      const Buffer constant = Array::literal(atom.literal()).buffer();
      plan_.constants.push_back(constant);
      PlannedView view{PlannedView::Segment::constant, int(plan_.constants.size()) - 1, 0,
                       constant.view()};
      view.view.data = nullptr;
      return view;
    }
    const Layout& layout = partition_.layouts[atom.var().id];
    const Memory& memory = memories_[storage_of_[layout.root]];
    return {memory.segment, memory.index, memory.offset + layout.byte_offset,
            View{nullptr, in_memory(program_->aval(atom)).dtype, layout.shape, layout.strides}};
  }

  static std::size_t num_carries_of(std::span<const Body> held, const Jaxpr& program) {
    for (const Body& body : held)
      if (&*body.jaxpr == &*program) return num_replaced(body);
    return 0;
  }
  Step::Body body_of(std::string label, const Jaxpr& program, std::size_t num_carries = 0) const {
    CompileOptions options;
    options.num_carries = num_carries;
    options.device = device_;
    return {std::move(label), [=] { return compile(program, options); }};
  }
  void add_bodies(const Equation& equation, std::vector<Step::Body>& bodies) const {
    const std::vector<Body> held = bodies_of(equation);
    for (const auto& [name, value] : open_bodies(equation.params).entries()) {
      // A body with named sizes is compiled once these are known.
      if (const Jaxpr* body = std::get_if<Jaxpr>(&value); body && (*body)->sizes.empty())
        bodies.push_back(body_of(name, *body, num_carries_of(held, *body)));
      if (const auto* list = std::get_if<std::vector<Jaxpr>>(&value))
        for (std::size_t i = 0; i < list->size(); ++i)
          bodies.push_back(
              body_of("branch " + std::to_string(i), (*list)[i], num_carries_of(held, (*list)[i])));
    }
  }

  void close_step(Draft& planned) {
    Step step;
    step.backend = planned.group->backend->name();
    for (const Atom& atom : planned.group->inputs) step.inputs.push_back(view_of(atom));
    for (Var var : planned.group->outputs) step.outputs.push_back(view_of(var));
    for (int index : planned.group->equations) {
      const Equation& equation = program_->equations[index];
      step.names += (step.names.empty() ? "" : " ") + std::string(equation.primitive->name());
      if (!planned.kernel->is_whole()) add_bodies(equation, step.bodies);
    }
    step.program = planned.group->jaxpr;
    step.refusals = std::move(planned.group->refusals);
    step.scratch_offset = planned.scratch_offset;
    step.kernel = std::move(planned.kernel);
    plan_.steps.push_back(std::move(step));
  }

  const Jaxpr& program_;
  Partition partition_;
  const std::vector<bool>& donate_;
  const std::size_t num_carries_;
  const Device device_;
  const std::function<void()>& between_;
  Plan plan_;
  std::vector<Memory> memories_;
  std::vector<int> storage_of_;  // by root var: its memory
  std::vector<int> last_read_;   // by root var: the last step that reads it
  std::vector<bool> is_output_;  // by root var
  std::vector<bool> is_given_;   // by input: whether a result takes over its memory
  std::vector<Draft> steps_;
  std::vector<int> index_of_step_;
  std::unordered_map<int, int> scratch_of_;  // step -> memory
};

}  // namespace

Plan make_plan(const Jaxpr& program, Partition partition, const CompileOptions& options,
               const std::function<void()>& between) {
  return Planner(program, std::move(partition), options, between).run();
}

}  // namespace plait::compile_passes
