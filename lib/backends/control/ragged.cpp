// Masked functions on batches. See ragged.h.
// SPDX-License-Identifier: Apache-2.0
#include "ragged.h"

#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/guard.h>
#include <plait/rules/interpret.h>

#include <list>
#include <mutex>
#include <numeric>

#include "lanes.h"

namespace plait {
namespace {

constexpr std::int64_t largest_group = 256;
// What one more group costs, in units of one more element along a size: weights are read again.
constexpr std::int64_t group_cost = 64;
constexpr std::size_t most_programs = 64;     // that a kernel keeps
constexpr std::int64_t least_work = 500'000;  // elements computed, below which padding is cheap

// The next of 8, 16, 24, 32, 48, 64, 96, ..., but at most the bound.
std::int64_t rounded(std::int64_t size, std::int64_t bound) {
  std::int64_t step = 8;
  while (step * 4 < size) step *= 2;
  return std::min(bound, std::max<std::int64_t>(8, (size + step - 1) / step * step));
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

class RaggedKernel final : public Kernel {
 public:
  explicit RaggedKernel(const Jaxpr& group)
      : masked_(group->equations[0].params),
        operands_(group),
        num_examples_(masked_.lanes[0].size.constant()),
        bounds_(masked_.bounds.to_sizes()),
        inputs_(masked_.body->input_avals().begin(), masked_.body->input_avals().end()),
        outputs_(masked_.body->output_avals()),
        source_(group->equations[0].source) {
    if (masked_.checked) check_.emplace(check_program());
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream&) const override {
    std::vector<Buffer> copies;
    const std::vector<View> operands = operands_.collect(inputs, copies);
    if (check_) CompiledBody::Lease(*check_).run(operands, {});
    std::vector<Sizes64> sizes;
    for (std::size_t name = 0; name < bounds_.size(); ++name) {
      sizes.emplace_back();
      for (std::int64_t i = 0; i < num_examples_; ++i)
        sizes.back().push_back(std::clamp<std::int64_t>(
            operands[name].as<std::int32_t>()[is_batched(name) ? i : 0], 0, bounds_[name]));
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool is_padded = !masked_.lanes[0].sums(o) && !outputs_[o].shape.is_constant();
      if (num_examples_ == 0 || is_padded)
        std::memset(outputs[o].data, 0, std::size_t(bytes_of(outputs[o])));
    }
    bool is_first = true;
    for (const SizeGroup& group : group_by_size(sizes, bounds_)) {
      run_group(group, operands, outputs, is_first);
      is_first = false;
    }
  }

  std::string note() const override {
    return std::to_string(num_examples_) + " examples, grouped by size";
  }

 private:
  bool is_batched(std::size_t operand) const { return masked_.lanes[0].batched[operand]; }

  MaskedParams params_for(std::int64_t num_examples, const Sizes64& bounds) const {
    MaskedParams params = masked_;
    params.bounds = Shape::of(bounds);
    params.lanes[0].size = num_examples;
    params.checked = false;
    return params;
  }

  std::vector<Aval> operand_avals(const MaskedParams& params) const {
    std::vector<Aval> avals(bounds_.size(), Aval{{}, DType::int32});
    for (const Aval& real : inputs_) avals.push_back(params.padded(real));
    for (std::size_t i = 0; i < avals.size(); ++i)
      if (is_batched(i)) avals[i].shape.insert(0, params.lanes[0].size);
    return avals;
  }

  // Only the check of the sizes.
  Jaxpr check_program() const {
    Builder builder;
    for (const Aval& aval : inputs_) builder.add_binder(aval);
    for (const Constraint& constraint : masked_.body->constraints)
      builder.add_constraint(constraint);
    MaskedParams params = masked_;
    params.body = builder.close({}, masked_.body->sizes);
    for (Lane& lane : params.lanes) lane.summed.clear();
    const SourceScope scope(source_);
    return decomposition(masked_p, operand_avals(params), params.to_params());
  }

  struct Program {
    Program(const Jaxpr& jaxpr, MaskedParams params, std::vector<Sizes64> inputs)
        : body(jaxpr), params(std::move(params)), inputs(std::move(inputs)) {}
    CompiledBody body;
    MaskedParams params;
    std::vector<Sizes64> inputs;  // shapes, of one example
  };

  // Rules of Python may run while a program is made, so no lock is held: of threads that race, the
  // first one's stays.
  std::shared_ptr<const Program> program_for(std::int64_t num_examples,
                                             const Sizes64& bounds) const {
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
    MaskedParams params = params_for(num_examples, bounds);
    std::vector<Sizes64> shapes;
    for (const Aval& real : inputs_) shapes.push_back(params.padded(real).shape.to_sizes());
    const SourceScope scope(source_);
    auto made = std::make_shared<const Program>(
        decomposition(masked_p, operand_avals(params), params.to_params()), params, shapes);
    const std::lock_guard lock(mutex_);
    if (auto found = find()) return found;
    programs_.push_front({{num_examples, bounds}, made});
    if (programs_.size() > most_programs) programs_.pop_back();
    return made;
  }

  void run_group(const SizeGroup& group, std::span<const View> operands,
                 std::span<const View> outputs, bool is_first) const {
    const auto program = program_for(std::int64_t(group.rows.size()), group.bounds);
    std::vector<Buffer> owned;
    std::vector<View> in, out;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool is_size = i < bounds_.size();
      const Sizes64 shape = is_size ? Sizes64{} : program->inputs[i - bounds_.size()];
      in.push_back(gather(operands[i], shape, is_batched(i), group.rows, owned));
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool sums = masked_.lanes[0].sums(o);
      if (sums && is_first) {
        out.push_back(outputs[o]);
        continue;
      }
      Sizes64 shape = program->params.padded(outputs_[o]).shape.to_sizes();
      if (!sums) shape.insert(0, std::int64_t(group.rows.size()));
      owned.push_back(Buffer::empty(outputs[o].dtype, shape));
      out.push_back(owned.back().view());
    }
    {
      const Sizes64 axes{num_examples_};
      const ExampleScope scope(&group.rows, axes);
      CompiledBody::Lease(program->body).run(in, out);
    }
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      if (!masked_.lanes[0].sums(o))
        scatter(out[o], outputs[o], group.rows);
      else if (!is_first)
        add_to(outputs[o], out[o]);
    }
  }

  // The rows of a group, dense.
  static View gather(const View& all, const Sizes64& shape, bool is_batched,
                     std::span<const std::int32_t> rows, std::vector<Buffer>& owned) {
    if (!is_batched) {
      const View block = block_of(all, shape, {});
      if (block.is_dense()) return block;
      owned.push_back(Buffer::copy_of(block));
      return owned.back().view();
    }
    Sizes64 together = shape;
    together.insert(0, std::int64_t(rows.size()));
    if (rows.size() == 1) {
      View block = block_of(all, shape, rows[0]);
      if (block.is_dense()) {
        block.shape = together, block.strides = dense_strides(together);
        return block;
      }
    }
    owned.push_back(Buffer::empty(all.dtype, together));
    const View& dense = owned.back().view();
    for (std::size_t r = 0; r < rows.size(); ++r)
      copy_elements(block_of(all, shape, rows[r]), block_of(dense, shape, std::int64_t(r)));
    return dense;
  }

  static void scatter(const View& rows, const View& all, std::span<const std::int32_t> numbers) {
    const Sizes64 shape(rows.shape.begin() + 1, rows.shape.end());
    for (std::size_t r = 0; r < numbers.size(); ++r)
      copy_elements(block_of(rows, shape, std::int64_t(r)), block_of(all, shape, numbers[r]));
  }

  static void add_to(const View& sum, const View& more) {
    const View both[2] = {sum, more};
    rule<Eval>(add_p)(both, std::span(&sum, 1), Params());
  }

  const MaskedParams masked_;
  const DenseOperands operands_;
  const std::int64_t num_examples_;
  const Sizes64 bounds_;
  const std::vector<Aval> inputs_, outputs_;  // of the body
  const Source source_;
  std::optional<CompiledBody> check_;
  mutable std::mutex mutex_;
  using Key = std::pair<std::int64_t, Sizes64>;
  mutable std::list<std::pair<Key, std::shared_ptr<const Program>>> programs_;  // latest first
};

}  // namespace

// The cheapest cut of the examples, sorted by size, into groups of 1, 2, 4, ...
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
      if ((n & (n - 1)) != 0) continue;
      std::int64_t elements = group_cost;
      for (std::size_t name = 0; name < bounds.size(); ++name)
        elements += n * rounded(largest[name], bounds[name]);
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
      group.bounds.push_back(rounded(largest, bounds[name]));
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
  const char* wanted = std::getenv("PLAIT_BY_SIZE");
  if (wanted && *wanted) return std::string_view(wanted) == "always";
  return work_of(masked) * masked.lanes[0].size.constant() >= least_work;
}

std::unique_ptr<Kernel> compile_by_size(const Jaxpr& group) {
  return std::make_unique<RaggedKernel>(group);
}

static const bool has_masked = register_control({&masked_p, compile_by_size, runs_by_size});

}  // namespace plait
