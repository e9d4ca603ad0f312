// Masked functions on batches. See ragged.h.
// SPDX-License-Identifier: Apache-2.0
#include "ragged.h"

#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/guard.h>
#include <plait/rules/interpret.h>

#include <list>
#include <mutex>
#include <numeric>

#include "lanes.h"
#include "stage_program.h"
#include "stages.h"

namespace plait {
namespace {

constexpr std::int64_t largest_group = 256;
// What one more group costs, in units of one more element along a size.
constexpr std::int64_t group_cost = 32;
constexpr std::size_t most_programs = 64;     // that a kernel keeps
constexpr std::int64_t least_work = 500'000;  // elements computed, below which padding is cheap
constexpr std::int64_t least_weights = 1024;  // of products, for which examples are packed
constexpr std::int64_t least_shared_copy = 1 << 18;             // bytes that threads share
constexpr std::int64_t steps_of_size = 8, steps_of_total = 32;  // of what sizes are rounded to

// The next larger size on a scale with that many steps, of 8 or more, from nothing to the size.
// With 8 of them: 8, 16, ..., 64, 80, 96, 112, 128, 160, ... It is at most the bound.
std::int64_t rounded(std::int64_t size, std::int64_t steps, std::int64_t bound) {
  std::int64_t step = 8;
  while (step * steps < size) step *= 2;
  return std::min(bound, std::max<std::int64_t>(8, (size + step - 1) / step * step));
}
bool is_power_of_four(std::int64_t n) {
  while (n % 4 == 0) n /= 4;
  return n == 1;
}

std::int64_t work_of(const MaskedParams& masked) {
  std::int64_t work = 0;
  for (const Equation& equation : masked.body->equations) {
    std::int64_t elements = 0;
    for (Var var : equation.outputs) {
      const Shape shape = masked.padded(masked.body->aval(var)).shape;
      if (!shape.is_constant()) return 0;
      elements += num_elements(shape.to_sizes());
    }
    if (*equation.primitive == dot_general_p) {
      const Shape lhs = masked.padded(masked.body->aval(equation.inputs[0])).shape;
      for (int axis : equation.params.ints("lhs_contract"))
        if (lhs[axis].is_constant())
          elements *= std::max<std::int64_t>(1, lhs[axis].constant() / 16);
    }
    work += elements;
  }
  return work;
}

// The part of padded memory that holds smaller sizes; of one example where it has one for each.
View block_of(const View& all, const Sizes64& shape, std::optional<std::int64_t> example) {
  View block{all.data, all.dtype, shape, all.strides};
  if (!example) return block;
  block.strides.erase(0);
  block.data = all.as<char>() + *example * all.strides[0] * size_of(all.dtype);
  return block;
}

// The part of memory from `begin` on along an axis, as long as it is there.
View part_along(View memory, int axis, std::int64_t begin, std::int64_t size) {
  memory.data = memory.as<char>() + begin * memory.strides[axis] * size_of(memory.dtype);
  memory.shape[axis] = size;
  return memory;
}

// Zeros in dense memory from `begin` on along an axis.
void clear_along(const View& memory, int axis, std::int64_t begin, const Stream& stream) {
  std::int64_t outer = 1, inner = size_of(memory.dtype);
  for (int i = 0; i < axis; ++i) outer *= memory.shape[i];
  for (int i = axis + 1; i < memory.rank(); ++i) inner *= memory.shape[i];
  const std::int64_t size = memory.shape[axis];
  const std::int64_t bytes = (size - begin) * inner;
  for (std::int64_t i = 0; i < outer; ++i)
    clear({memory.as<char>() + (i * size + begin) * inner, DType::uint8, {bytes}, {1}}, stream);
}

// What PLAIT_BY_SIZE decides.
std::optional<bool> decision() {
  const char* wanted = std::getenv("PLAIT_BY_SIZE");
  if (!wanted || !*wanted) return std::nullopt;
  return std::string_view(wanted) == "always";
}

// A stage, and its programs by the number of examples and the bounds.
class StagePrograms {
 public:
  struct Program {
    Program(const MaskedParams& params, const std::vector<bool>& zero_padded, Device device)
        : body(stage_program(params, zero_padded), device) {
      for (const Aval& real : params.body->input_avals())
        inputs.push_back(params.padded(real).shape.to_sizes());
      for (const Aval& real : params.body->output_avals())
        outputs.push_back(params.padded(real).shape.to_sizes());
    }
    CompiledBody body;
    std::vector<Sizes64> inputs, outputs;  // shapes, of one example
  };

  // zero_padded: which operands of the stage are 0 in their padding.
  StagePrograms(MaskedParams params, std::vector<bool> zero_padded, Device device, Source source)
      : params_(std::move(params)),
        zero_padded_(std::move(zero_padded)),
        device_(device),
        source_(std::move(source)) {}

  // Rules of Python may run while a program is made, so no lock is held: of threads that race, the
  // first one's stays.
  std::shared_ptr<const Program> at(std::int64_t num_examples, const Sizes64& bounds) const {
    auto find = [&]() -> std::shared_ptr<const Program> {
      for (auto at = programs_.begin(); at != programs_.end(); ++at)
        if (at->first.first == num_examples && at->first.second == bounds) {
          programs_.splice(programs_.begin(), programs_, at);
          return at->second;
        }
      return nullptr;
    };
    {
      const std::lock_guard lock(mutex_);
      if (auto found = find()) return found;
    }
    MaskedParams params = params_;
    params.bounds = Shape::of(bounds);
    for (Lane& lane : params.lanes) lane.size = num_examples;
    const SourceScope scope(source_);
    auto made = std::make_shared<const Program>(params, zero_padded_, device_);
    const std::lock_guard lock(mutex_);
    if (auto found = find()) return found;
    programs_.push_front({{num_examples, bounds}, made});
    if (programs_.size() > most_programs) programs_.pop_back();
    return made;
  }

 private:
  const MaskedParams params_;
  const std::vector<bool> zero_padded_;
  const Device device_;
  const Source source_;
  mutable std::mutex mutex_;
  using Key = std::pair<std::int64_t, Sizes64>;
  mutable std::list<std::pair<Key, std::shared_ptr<const Program>>> programs_;  // latest first
};

// The stages of a masked function, with their programs. Kernels of one function, one for each tier,
// share them.
struct RaggedPrograms {
  RaggedPrograms(const MaskedParams& masked, std::int64_t least_weights, Device device,
                 const Source& source)
      : stages(stages_of(masked, least_weights)) {
    for (const Stage& stage : stages.stages)
      of_stage.push_back(std::make_unique<StagePrograms>(
          params_of(masked, stage), zero_padded_inputs(stage), device, source));
  }
  Stages stages;
  std::vector<std::unique_ptr<StagePrograms>> of_stage;

 private:
  // Values with one ragged axis that pass from stage to stage are 0 in their padding. A group may
  // read an operand where it lies, with whatever padding it has.
  std::vector<bool> zero_padded_inputs(const Stage& stage) const {
    std::vector<bool> flags;
    for (int var : stage.inputs)
      flags.push_back(stages.axes[std::size_t(var)] &&
                      (stage.is_packed || var >= stages.num_binders));
    return flags;
  }

  MaskedParams params_of(const MaskedParams& masked, const Stage& stage) const {
    MaskedParams params = masked;
    params.body = stage.body;
    params.checked = false;
    if (stage.is_packed) {
      params.lanes.clear();
      return params;
    }
    Lane& lane = params.lanes[0];
    lane.batched.resize(masked.num_ragged());
    lane.summed.clear();
    for (int var : stage.inputs)
      lane.batched.push_back(var < stages.num_binders
                                 ? masked.lanes[0].batched[masked.num_ragged() + std::size_t(var)]
                                 : !stages.shared[std::size_t(var)]);
    for (const StageOutput& output : stage.outputs)
      lane.summed.push_back(output.result && masked.lanes[0].sums(*output.result));
    return params;
  }
};

std::shared_ptr<const RaggedPrograms> programs_of(const MaskedParams& masked, Device device,
                                                  const Source& source) {
  struct Made {
    using Result = RaggedPrograms;
    Params without_body;
    std::int64_t least_weights;
    Device device;
    bool operator==(const Made&) const = default;
  };
  const Made made{masked.to_params().without("body"), decision() ? 0 : least_weights, device};
  return masked.body->memo.get(made, [&] {
    return std::make_shared<const RaggedPrograms>(masked, made.least_weights, device, source);
  });
}

class RaggedKernel final : public Kernel {
 public:
  RaggedKernel(const Jaxpr& group, Device device)
      : masked_(group->equations[0].params),
        programs_(programs_of(masked_, device, group->equations[0].source)),
        stages_(programs_->stages),
        bounds_(masked_.bounds.to_sizes()),
        operands_(group, device, bounds_.size()),
        num_examples_(masked_.lanes[0].size.constant()),
        outputs_(masked_.body->output_avals()),
        source_(group->equations[0].source) {
    if (masked_.checked) check_.emplace(check_program(), device);
    if (device.is_host()) return;
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      sums_.push_back(masked_.lanes[0].sums(o) ? sum_of_two(outputs_[o], device) : nullptr);
  }

  // The sizes.
  bool reads_on_host(std::size_t input) const override {
    for (std::size_t name = 0; name < bounds_.size(); ++name)
      if (operands_.reads(input, name)) return true;
    return false;
  }
  void enqueue(std::span<const View> inputs, std::span<const View> outputs, void*,
               const Launch& launch) const override {
    const Stream& stream = launch.stream;
    std::vector<Buffer> copies;
    const std::vector<View> operands = operands_.collect(inputs, copies, stream);
    if (check_) run_check(operands, stream);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool is_padded = !masked_.lanes[0].sums(o) && !outputs_[o].shape.is_constant();
      if (num_examples_ == 0 || is_padded) clear(outputs[o], stream);
    }
    if (num_examples_ > 0) Call(*this, operands, outputs, stream).run();
  }

  std::string note() const override {
    const auto packed = std::count_if(stages_.stages.begin(), stages_.stages.end(),
                                      [](const Stage& stage) { return stage.is_packed; });
    std::string text = std::to_string(num_examples_) + " examples, grouped by size";
    if (packed > 0)
      text += "; packed in " + std::to_string(packed) + " of " +
              std::to_string(stages_.stages.size()) + " stages";
    return text;
  }

 private:
  // The check reads sizes as other programs do.
  void run_check(std::vector<View> operands, const Stream& stream) const {
    std::vector<Buffer> owned;
    for (std::size_t name = 0; name < bounds_.size(); ++name)
      operands[name] = placed(operands[name], owned, stream);
    CompiledBody::Lease(*check_).run(operands, {}, stream);
  }
  // Memory of the host, which owned may hold, as programs of the stream's device read it.
  static View placed(View host, std::vector<Buffer>& owned, const Stream& stream) {
    if (stream.is_host()) return host;
    owned.push_back(Buffer::empty(host.dtype, host.shape, stream));
    upload(host, owned.back().placed(), stream);
    return owned.back().placed();
  }
  // The sum of a carry and another array.
  static std::unique_ptr<CompiledBody> sum_of_two(const Aval& aval, Device device) {
    Builder builder;
    const Atom sum = builder.add_binder(aval), more = builder.add_binder(aval);
    const std::vector<Var> result = builder.add(add_p, {sum, more}, {}, {});
    return std::make_unique<CompiledBody>(builder.close({result[0]}), device, 1);
  }
  bool is_batched(std::size_t operand) const { return masked_.lanes[0].batched[operand]; }
  bool is_operand(int var) const { return var < stages_.num_binders; }
  std::size_t operand_of(int var) const { return bounds_.size() + std::size_t(var); }

  // A shape of the body for one example.
  Sizes64 real_shape(const Shape& shape, std::span<const Sizes64> sizes,
                     std::int32_t example) const {
    std::vector<std::pair<Dim, Dim>> values;
    for (std::size_t i = 0; i < masked_.sizes.size(); ++i)
      values.emplace_back(masked_.body->sizes[i], masked_.sizes[i]);
    for (std::size_t name = 0; name < bounds_.size(); ++name)
      values.emplace_back(masked_.ragged[name], Dim(sizes[name][std::size_t(example)]));
    Sizes64 real;
    for (Dim dim : shape) real.push_back(dim.substitute(values).constant());
    return real;
  }

  // Only the check of the sizes.
  Jaxpr check_program() const {
    Builder builder;
    for (const Aval& aval : masked_.body->input_avals()) builder.add_binder(aval);
    for (const Constraint& constraint : masked_.body->constraints)
      builder.add_constraint(constraint);
    MaskedParams params = masked_;
    params.body = builder.close({}, masked_.body->sizes);
    for (Lane& lane : params.lanes) lane.summed.clear();
    const SourceScope scope(source_);
    std::vector<Aval> avals(bounds_.size(), Aval{{}, DType::int32});
    for (const Aval& real : masked_.body->input_avals()) avals.push_back(params.padded(real));
    for (std::size_t i = 0; i < avals.size(); ++i)
      if (is_batched(i)) avals[i].shape.insert(0, params.lanes[0].size);
    return decomposition(masked_p, avals, params.to_params());
  }

  // One run. Values that pass from stage to stage are packed, or by group, or both.
  class Call {
   public:
    Call(const RaggedKernel& kernel, std::span<const View> operands, std::span<const View> outputs,
         const Stream& stream)
        : kernel_(kernel),
          stream_(stream),
          stages_(kernel.stages_),
          operands_(operands),
          outputs_(outputs),
          values_(stages_.avals.size()),
          is_written_(outputs.size(), false) {
      for (std::size_t name = 0; name < kernel.bounds_.size(); ++name) {
        sizes_.emplace_back();
        begins_.push_back({0});
        for (std::int64_t i = 0; i < kernel.num_examples_; ++i) {
          sizes_.back().push_back(std::clamp<std::int64_t>(
              operands[name].as<std::int32_t>()[kernel.is_batched(name) ? i : 0], 0,
              kernel.bounds_[name]));
          begins_.back().push_back(begins_.back().back() + sizes_.back().back());
        }
        totals_.push_back(std::int32_t(begins_.back().back()));
        capacities_.push_back(rounded(begins_.back().back(), steps_of_total,
                                      kernel.num_examples_ * kernel.bounds_[name]));
      }
      groups_ = group_by_size(sizes_, kernel.bounds_);
      for (Value& value : values_) value.groups.resize(groups_.size());
      rows_.resize(std::size_t(kernel.num_examples_));
      for (std::size_t g = 0; g < groups_.size(); ++g)
        for (std::size_t r = 0; r < groups_[g].rows.size(); ++r)
          rows_[std::size_t(groups_[g].rows[r])] = {g, r};
    }

    void run() {
      for (std::size_t s = 0; s < stages_.stages.size(); ++s) {
        const Stage& stage = stages_.stages[s];
        if (stage.is_packed)
          run_packed(stage, *kernel_.programs_->of_stage[s]);
        else
          run_grouped(stage, *kernel_.programs_->of_stage[s]);
        for (int var : stage.inputs)
          if (stages_.last_use[std::size_t(var)] == int(s)) values_[std::size_t(var)] = {};
      }
    }

   private:
    struct Value {
      std::optional<Buffer> whole;  // packed, or shared
      std::vector<std::optional<Buffer>> groups;
    };

    void run_packed(const Stage& stage, const StagePrograms& programs) {
      const auto program = programs.at(1, capacities_);
      std::vector<View> in, out;
      std::vector<Buffer> real;
      for (std::int32_t& total : totals_)
        in.push_back(placed(View{&total, DType::int32, {}, {}}, real, stream_));
      for (std::size_t name = 0; name < totals_.size(); ++name)
        in.push_back(real_places(std::span(&totals_[name], 1), {capacities_[name]}, real));
      for (std::size_t i = 0; i < stage.inputs.size(); ++i) in.push_back(whole(stage.inputs[i]));
      std::vector<std::pair<std::size_t, Buffer>> results;
      for (std::size_t o = 0; o < stage.outputs.size(); ++o) {
        const StageOutput& output = stage.outputs[o];
        if (output.result && kernel_.masked_.lanes[0].sums(*output.result)) {
          out.push_back(outputs_[*output.result]);
          continue;
        }
        Buffer made = Buffer::empty(dtype_of(output.var), program->outputs[o], stream_);
        out.push_back(made.placed());
        if (output.result)
          results.emplace_back(o, std::move(made));
        else
          values_[std::size_t(output.var)].whole = std::move(made);
      }
      CompiledBody::Lease(program->body).run(in, out, stream_);
      for (const StageOutput& output : stage.outputs)
        if (!output.result && stages_.axes[std::size_t(output.var)])
          clear_packed(values_[std::size_t(output.var)].whole->placed(), output.var);
      for (const auto& [o, made] : results)
        unpack(made.placed(), stage.outputs[o].var, outputs_[*stage.outputs[o].result]);
    }

    void run_grouped(const Stage& stage, const StagePrograms& programs) {
      for (int var : stage.inputs) spread(var);
      for (std::size_t group = 0; group < groups_.size(); ++group)
        run_group(stage, programs, group);
    }

    void run_group(const Stage& stage, const StagePrograms& programs, std::size_t number) {
      const SizeGroup& group = groups_[number];
      const auto program = programs.at(std::int64_t(group.rows.size()), group.bounds);
      std::vector<Buffer> owned;
      std::vector<View> sizes, in, out;
      for (std::size_t name = 0; name < kernel_.bounds_.size(); ++name)
        sizes.push_back(
            gather(operands_[name], {}, kernel_.is_batched(name), group.rows, owned, {}));
      for (const View& each : sizes) in.push_back(placed(each, owned, stream_));
      for (std::size_t name = 0; name < kernel_.bounds_.size(); ++name) {
        Sizes64 shape{group.bounds[name]};
        if (kernel_.is_batched(name)) shape.insert(0, sizes[name].size());
        in.push_back(real_places({sizes[name].as<std::int32_t>(), std::size_t(sizes[name].size())},
                                 shape, owned));
      }
      for (std::size_t i = 0; i < stage.inputs.size(); ++i)
        in.push_back(of_group(stage.inputs[i], program->inputs[i], number, owned));
      for (std::size_t o = 0; o < stage.outputs.size(); ++o) {
        const StageOutput& output = stage.outputs[o];
        const bool sums = output.result && kernel_.masked_.lanes[0].sums(*output.result);
        if (sums && !is_written_[*output.result]) {
          out.push_back(outputs_[*output.result]);
          continue;
        }
        Sizes64 shape = program->outputs[o];
        if (!sums) shape.insert(0, std::int64_t(group.rows.size()));
        const DType dtype = output.result ? outputs_[*output.result].dtype : dtype_of(output.var);
        Buffer made = Buffer::empty(dtype, shape, stream_);
        out.push_back(made.placed());
        if (output.result)
          owned.push_back(std::move(made));
        else
          values_[std::size_t(output.var)].groups[number] = std::move(made);
      }
      {
        const Sizes64 axes{kernel_.num_examples_};
        const ExampleScope scope(&group.rows, axes);
        CompiledBody::Lease(program->body).run(in, out, stream_);
      }
      for (std::size_t o = 0; o < stage.outputs.size(); ++o) {
        if (!stage.outputs[o].result) {
          clear_group(out[o], stage.outputs[o].var, group);
          continue;
        }
        const std::size_t result = *stage.outputs[o].result;
        if (!kernel_.masked_.lanes[0].sums(result))
          scatter(out[o], outputs_[result], kernel_.outputs_[result].shape, group.rows);
        else if (is_written_[result])
          add_to(result, out[o]);
        is_written_[result] = true;
      }
    }

    // Which places lie within the sizes: bool, with a last axis of places.
    View real_places(std::span<const std::int32_t> sizes, const Sizes64& shape,
                     std::vector<Buffer>& owned) const {
      owned.push_back(Buffer::empty(DType::bool_, shape));
      const std::int64_t bound = shape.back();
      bool* places = owned.back().view().as<bool>();
      for (std::int32_t size : sizes) {
        const std::int64_t real = std::clamp<std::int64_t>(size, 0, bound);
        std::fill_n(places, real, true);
        std::fill_n(places + real, bound - real, false);
        places += bound;
      }
      return placed(owned.back().view(), owned, stream_);
    }

    DType dtype_of(int var) const { return in_memory(stages_.avals[std::size_t(var)]).dtype; }

    // --- Packed ----------------------------------------------------------------------------------

    // A value for a packed stage.
    View whole(int var) {
      Value& value = values_[std::size_t(var)];
      if (value.whole) return value.whole->placed();
      const std::optional<RaggedAxis>& ragged = stages_.axes[std::size_t(var)];
      if (!ragged) return operands_[kernel_.operand_of(var)];  // which all share
      if (const auto view = whole_as_it_lies(var, *ragged)) return *view;
      value.whole = Buffer::empty(dtype_of(var), shape_of(var, capacities_[ragged->name]), stream_);
      const View& memory = value.whole->placed();
      for_each_example(bytes_of(memory), [&](std::int64_t i) {
        const View place = packed_place(memory, *ragged, i);
        copy(example_of(var, place.shape, i), place, stream_);
      });
      clear_packed(memory, var);
      return memory;
    }

    // Without padding, batches lie as if packed.
    std::optional<View> whole_as_it_lies(int var, const RaggedAxis& ragged) const {
      const std::size_t name = ragged.name;
      const Value& value = values_[std::size_t(var)];
      const std::int64_t bound =
          kernel_.is_operand(var) ? kernel_.bounds_[name] : groups_[0].bounds[name];
      const bool is_full = capacities_[name] == totals_[name] && is_outermost(var, ragged) &&
                           std::all_of(sizes_[name].begin(), sizes_[name].end(),
                                       [&](std::int64_t size) { return size == bound; });
      if (!is_full) return std::nullopt;
      const Sizes64 shape = shape_of(var, capacities_[name]);
      if (kernel_.is_operand(var)) {
        const std::size_t operand = kernel_.operand_of(var);
        if (!kernel_.is_batched(operand)) return std::nullopt;
        return View{operands_[operand].data, dtype_of(var), shape, dense_strides(shape)};
      }
      if (groups_.size() > 1) return std::nullopt;
      return View{value.groups[0]->placed().data, dtype_of(var), shape, dense_strides(shape)};
    }

    // The real elements of an example, from an operand or a group.
    View example_of(int var, const Sizes64& shape, std::int64_t example) const {
      if (kernel_.is_operand(var)) {
        const std::size_t operand = kernel_.operand_of(var);
        return block_of(operands_[operand], shape,
                        kernel_.is_batched(operand) ? std::optional(example) : std::nullopt);
      }
      const auto [group, row] = rows_[std::size_t(example)];
      return block_of(values_[std::size_t(var)].groups[group]->placed(), shape, std::int64_t(row));
    }

    // The shape of a value with one ragged axis, for this many places.
    Sizes64 shape_of(int var, std::int64_t places) const {
      Sizes64 shape;
      for (Dim dim : stages_.avals[std::size_t(var)].shape)
        shape.push_back(dim.is_constant() ? dim.constant() : places);
      return shape;
    }
    bool is_outermost(int var, const RaggedAxis& ragged) const {
      const Shape& shape = stages_.avals[std::size_t(var)].shape;
      return std::all_of(shape.begin(), shape.begin() + ragged.axis,
                         [](Dim dim) { return dim == Dim(1); });
    }

    void clear_packed(const View& memory, int var) const {
      const RaggedAxis& ragged = *stages_.axes[std::size_t(var)];
      clear_along(memory, ragged.axis, totals_[ragged.name], stream_);
    }

    // Where an example lies.
    View packed_place(const View& memory, const RaggedAxis& ragged, std::int64_t example) const {
      const std::size_t i = std::size_t(example);
      return part_along(memory, ragged.axis, begins_[ragged.name][i], sizes_[ragged.name][i]);
    }

    void unpack(const View& memory, int var, const View& all) const {
      const RaggedAxis& ragged = *stages_.axes[std::size_t(var)];
      for_each_example(bytes_of(memory), [&](std::int64_t i) {
        const View place = packed_place(memory, ragged, i);
        copy(place, block_of(all, place.shape, i), stream_);
      });
    }

    template <class Body>
    void for_each_example(std::int64_t bytes, const Body& body) const {
      const std::int64_t count = kernel_.num_examples_;
      const bool is_shared = stream_.is_host() && bytes >= least_shared_copy;
      const std::int64_t grain = is_shared ? 1 : count;
      parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) body(i);
      });
    }

    // --- By group --------------------------------------------------------------------------------

    View of_group(int var, const Sizes64& shape, std::size_t number, std::vector<Buffer>& owned) {
      Value& value = values_[std::size_t(var)];
      const SizeGroup& group = groups_[number];
      if (value.groups.size() > number && value.groups[number])
        return value.groups[number]->placed();
      if (kernel_.is_operand(var)) {
        const std::size_t operand = kernel_.operand_of(var);
        return gather(operands_[operand], shape, kernel_.is_batched(operand), group.rows, owned,
                      stream_);
      }
      if (stages_.shared[std::size_t(var)]) return value.whole->placed();
      const RaggedAxis& ragged = *stages_.axes[std::size_t(var)];
      View view = packed_place(value.whole->placed(), ragged, group.rows[0]);
      view.shape = shape, view.shape.insert(0, std::int64_t(group.rows.size()));
      view.strides = dense_strides(view.shape);
      return view;
    }

    // Gives every group its part of a packed value, but those for which it lies as they need it.
    void spread(int var) {
      Value& value = values_[std::size_t(var)];
      if (kernel_.is_operand(var) || !value.whole || stages_.shared[std::size_t(var)]) return;
      const RaggedAxis& ragged = *stages_.axes[std::size_t(var)];
      const View& memory = value.whole->placed();
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if (value.groups[g] || lies_packed(var, ragged, groups_[g])) continue;
        Sizes64 shape = shape_of(var, groups_[g].bounds[ragged.name]);
        shape.insert(0, std::int64_t(groups_[g].rows.size()));
        value.groups[g] = Buffer::empty(dtype_of(var), shape, stream_);
      }
      for_each_example(bytes_of(memory), [&](std::int64_t i) {
        const auto [group, row] = rows_[std::size_t(i)];
        if (!value.groups[group]) return;
        const View place = packed_place(memory, ragged, i);
        copy(place, block_of(value.groups[group]->placed(), place.shape, std::int64_t(row)),
             stream_);
      });
      for (std::size_t g = 0; g < groups_.size(); ++g)
        if (value.groups[g]) clear_group(value.groups[g]->placed(), var, groups_[g]);
    }

    bool lies_packed(int var, const RaggedAxis& ragged, const SizeGroup& group) const {
      if (!is_outermost(var, ragged)) return false;
      for (std::size_t r = 0; r < group.rows.size(); ++r)
        if (group.rows[r] != group.rows[0] + std::int32_t(r) ||
            sizes_[ragged.name][std::size_t(group.rows[r])] != group.bounds[ragged.name])
          return false;
      return true;
    }

    void clear_group(const View& rows, int var, const SizeGroup& group) const {
      const std::optional<RaggedAxis>& ragged = stages_.axes[std::size_t(var)];
      if (!ragged) return;
      const Sizes64 shape(rows.shape.begin() + 1, rows.shape.end());
      for (std::size_t r = 0; r < group.rows.size(); ++r)
        clear_along(block_of(rows, shape, std::int64_t(r)), ragged->axis,
                    sizes_[ragged->name][std::size_t(group.rows[r])], stream_);
    }

    // The rows of a group, dense.
    static View gather(const View& all, const Sizes64& shape, bool is_batched,
                       std::span<const std::int32_t> rows, std::vector<Buffer>& owned,
                       const Stream& stream) {
      if (!is_batched) {
        const View block = block_of(all, shape, {});
        if (block.is_dense()) return block;
        owned.push_back(Buffer::empty(block.dtype, block.shape, stream));
        copy(block, owned.back().placed(), stream);
        return owned.back().placed();
      }
      Sizes64 together = shape;
      together.insert(0, std::int64_t(rows.size()));
      const auto apart = [](std::int32_t a, std::int32_t b) { return b != a + 1; };
      if (std::adjacent_find(rows.begin(), rows.end(), apart) == rows.end()) {
        View block = block_of(all, shape, rows[0]);
        if (block.is_dense() && (rows.size() == 1 || all.strides[0] == num_elements(shape))) {
          block.shape = together, block.strides = dense_strides(together);
          return block;
        }
      }
      owned.push_back(Buffer::empty(all.dtype, together, stream));
      const View& dense = owned.back().placed();
      for (std::size_t r = 0; r < rows.size(); ++r)
        copy(block_of(all, shape, rows[r]), block_of(dense, shape, std::int64_t(r)), stream);
      return dense;
    }

    // The real elements of the rows; those beside them stay as they are.
    void scatter(const View& rows, const View& all, const Shape& shape,
                 std::span<const std::int32_t> numbers) const {
      for (std::size_t r = 0; r < numbers.size(); ++r) {
        const Sizes64 real = kernel_.real_shape(shape, sizes_, numbers[r]);
        copy(block_of(rows, real, std::int64_t(r)), block_of(all, real, numbers[r]), stream_);
      }
    }

    void add_to(std::size_t result, const View& more) const {
      const View &sum = outputs_[result], both[2] = {sum, more};
      if (stream_.is_host())
        rule<Eval>(add_p)(both, std::span(&sum, 1), Params());
      else
        CompiledBody::Lease(*kernel_.sums_[result]).run(both, std::span(&sum, 1), stream_);
    }

    const RaggedKernel& kernel_;
    const Stream& stream_;
    const Stages& stages_;
    const std::span<const View> operands_, outputs_;
    std::vector<Sizes64> sizes_, begins_;  // by name, for each example
    std::vector<std::int32_t> totals_;
    Sizes64 capacities_;  // what totals are padded to
    std::vector<SizeGroup> groups_;
    std::vector<std::pair<std::size_t, std::size_t>> rows_;  // by example: its group, and where
    std::vector<Value> values_;                              // by var
    std::vector<bool> is_written_;
  };

  const MaskedParams masked_;
  const std::shared_ptr<const RaggedPrograms> programs_;
  const Stages& stages_;
  const Sizes64 bounds_;
  const DenseOperands operands_;
  const std::int64_t num_examples_;
  const std::vector<Aval> outputs_;  // of the body
  const Source source_;
  std::optional<CompiledBody> check_;
  std::vector<std::unique_ptr<CompiledBody>> sums_;  // by output, on a device
};

}  // namespace

// The cheapest cut of the examples, sorted by size, into groups of 1, 4, 16, ... or one of all.
std::vector<SizeGroup> group_by_size(std::span<const Sizes64> sizes, const Sizes64& bounds) {
  const std::int64_t count = sizes.empty() ? 0 : std::int64_t(sizes[0].size());
  std::vector<std::int32_t> order(std::size_t(count), 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    for (const Sizes64& of_name : sizes)
      if (of_name[std::size_t(a)] != of_name[std::size_t(b)])
        return of_name[std::size_t(a)] < of_name[std::size_t(b)];
    return false;
  });
  std::vector<std::int64_t> cost(std::size_t(count) + 1, 0), length(std::size_t(count) + 1, 0);
  for (std::int64_t end = 1; end <= count; ++end) {
    Sizes64 largest(bounds.size(), 0);
    cost[std::size_t(end)] = std::numeric_limits<std::int64_t>::max();
    for (std::int64_t n = 1; n <= std::min(end, largest_group); ++n) {
      for (std::size_t name = 0; name < bounds.size(); ++name)
        largest[name] =
            std::max(largest[name], sizes[name][std::size_t(order[std::size_t(end - n)])]);
      if (n != count && !is_power_of_four(n)) continue;
      std::int64_t elements = group_cost;
      for (std::size_t name = 0; name < bounds.size(); ++name)
        elements += n * rounded(largest[name], steps_of_size, bounds[name]);
      if (cost[std::size_t(end - n)] + elements >= cost[std::size_t(end)]) continue;
      cost[std::size_t(end)] = cost[std::size_t(end - n)] + elements;
      length[std::size_t(end)] = n;
    }
  }
  std::vector<SizeGroup> groups;
  for (std::int64_t end = count; end > 0; end -= length[std::size_t(end)]) {
    SizeGroup group;
    group.rows.assign(order.begin() + (end - length[std::size_t(end)]), order.begin() + end);
    for (std::size_t name = 0; name < bounds.size(); ++name) {
      std::int64_t largest = 0;
      for (std::int32_t row : group.rows)
        largest = std::max(largest, sizes[name][std::size_t(row)]);
      group.bounds.push_back(rounded(largest, steps_of_size, bounds[name]));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

bool runs_by_size(const Equation& equation) {
  const MaskedParams masked(equation.params);
  if (masked.lanes.size() != 1 || !masked.lanes[0].size.is_constant() ||
      !masked.bounds.is_constant() || !masked.sizes.is_constant())
    return false;
  const auto& batched = masked.lanes[0].batched;
  if (std::none_of(batched.begin(), batched.begin() + std::ptrdiff_t(masked.num_ragged()),
                   [](bool flag) { return flag; }))
    return false;
  const auto has_stack = [](const Aval& aval) { return aval.stack > 0; };
  const std::vector<Aval> outputs = masked.body->output_avals();
  if (std::any_of(outputs.begin(), outputs.end(), has_stack) ||
      std::any_of(masked.body->input_avals().begin(), masked.body->input_avals().end(), has_stack))
    return false;
  if (needs_guard(masked.body) || holds_callable(masked.body)) return false;
  if (const std::optional<bool> decided = decision()) return *decided;
  return work_of(masked) * masked.lanes[0].size.constant() >= least_work;
}

std::unique_ptr<Kernel> compile_by_size(const Jaxpr& group, Device device) {
  return std::make_unique<RaggedKernel>(group, device);
}

static const bool has_masked = register_control({&masked_p, compile_by_size, runs_by_size});

}  // namespace plait
