// See small_gather.h.
// SPDX-License-Identifier: Apache-2.0
#include "small_gather.h"

#include <plait/primitives/indexing.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <functional>

#include "loop_plan.h"

namespace plait::llvm {
namespace {

// Places of a window among which a start chooses.
constexpr std::int64_t most_choices = 64;

struct Gather {
  std::vector<int> axes, collapse;
  int batch_dims;
  Sizes64 window;  // along the operand's axes behind the shared ones
  bool is_checked;

  explicit Gather(const Params& params)
      : axes(params.ints("axes")),
        collapse(params.ints("collapse")),
        batch_dims(int(params.integer("batch_dims"))),
        window(params.get<Shape>("slice_sizes").to_sizes()),
        is_checked(params.text("mode") == "check") {}

  // The last start along an axis of the operand.
  std::int64_t last(const Sizes64& operand, int axis) const {
    return operand[axis] - window[axis - batch_dims];
  }
  std::int64_t choices(const Sizes64& operand) const {
    std::int64_t count = 1;
    for (int axis : axes) count *= last(operand, axis) + 1;
    return count;
  }
  bool is_collapsed(int axis) const {
    return std::find(collapse.begin(), collapse.end(), axis) != collapse.end();
  }
};

Value constant_like(const Register& index, std::int64_t value) {
  const Emitter& emitter = Emitter::current();
  return emitter.splat_bits(emitter.element(index.dtype), std::uint64_t(value),
                            8 * int(size_of(index.dtype)));
}
Value compare(const Register& index, detail::Compare how, std::int64_t value) {
  const auto kind = is_signed_integer(index.dtype) ? detail::Kind::signed_integer
                                                   : detail::Kind::unsigned_integer;
  return detail::compare(how, kind, index.v, constant_like(index, value)).v;
}

void check_start(const Register& start, std::int64_t last, Value failed) {
  Emitter& emitter = Emitter::current();
  Value outside = compare(start, detail::Compare::gt, last);
  if (is_signed_integer(start.dtype))
    outside = api().BuildOr(emitter.builder(), outside, compare(start, detail::Compare::lt, 0), "");
  emitter.branch_if(emitter.any(outside), [&] { emitter.store(emitter.constant(1), failed, 8); });
}

}  // namespace

bool is_register_gather(const Equation& equation, std::span<const int> axes) {
  return *equation.primitive == gather_p &&
         (axes[1] >= 0 || equation.params.integer("batch_dims") != 0);
}

std::string register_gather_refusal(const Equation& equation, std::span<const Aval> inputs,
                                    std::span<const int> axes) {
  const Gather gather(equation.params);
  const Sizes64 shape = inputs[0].shape.to_sizes();
  if (inputs[1].dtype == DType::uint64) return "an index of 64 bits without sign";
  if (equation.params.text("mode") == "fill") return "`gather` that fills";
  if (inputs[0].shape.num_elements() == Dim(0)) return "an empty array";
  if (axes[0] >= 0 && (axes[0] != axes[1] || axes[0] >= gather.batch_dims))
    return "`gather` along examples";
  if (axes[1] >= inputs[1].rank() - 1) return "`gather` by examples";
  if (gather.choices(shape) > most_choices || example_size(inputs[0], axes[0]) > largest_value)
    return "`gather` from a large array";
  return "";
}

double register_gather_weight(const Equation& equation, std::span<const Aval> inputs,
                              double result_size) {
  return 2 * result_size * double(Gather(equation.params).choices(inputs[0].shape.to_sizes()));
}

Small lower_register_gather(const Equation& equation, const Small& operand, const Small& indices,
                            const Aval& output, int output_axis, Value failed) {
  const Gather gather(equation.params);
  Small result(output, output_axis);
  std::vector<Register> starts;
  Sizes64 from;  // an index of the operand
  // The element for starts from number i on.
  std::function<Register(std::size_t)> choose = [&](std::size_t i) -> Register {
    if (i == starts.size()) return operand.at(from);
    const int axis = gather.axes[i];
    const std::int64_t first = from[axis], last = gather.last(operand.shape, axis);
    from[axis] = first + last;
    Register chosen = choose(i + 1);
    for (std::int64_t start = last; start-- > 0;) {
      from[axis] = first + start;
      const Value is_here = compare(starts[i], detail::Compare::le, start);
      chosen.v =
          api().BuildSelect(Emitter::current().builder(), is_here, choose(i + 1).v, chosen.v, "");
    }
    from[axis] = first;
    return chosen;
  };
  const Sizes64 rows(indices.shape.begin(), indices.shape.end() - 1);
  for_each_index(rows, indices.axis, [&](const Sizes64& row) {
    starts.clear();
    Sizes64 index = row;
    index.push_back(0);
    for (; index.back() < indices.shape.back(); ++index.back()) starts.push_back(indices.at(index));
    for (std::size_t i = 0; gather.is_checked && i < starts.size(); ++i)
      check_start(starts[i], gather.last(operand.shape, gather.axes[i]), failed);
    for_each_index(gather.window, -1, [&](const Sizes64& place) {
      from = Sizes64(row.begin(), row.begin() + gather.batch_dims);
      Sizes64 to = row;
      for (int i = 0; i < int(place.size()); ++i) {
        from.push_back(place[i]);
        if (!gather.is_collapsed(gather.batch_dims + i)) to.push_back(place[i]);
      }
      result.at(to) = choose(0);
    });
  });
  return result;
}

}  // namespace plait::llvm
