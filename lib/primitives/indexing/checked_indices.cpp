// checked_indices: the masked form of gather and scatter of mode check, where the size that bounds
// an index is known at run time only.
// SPDX-License-Identifier: Apache-2.0
#include <plait/rules/autocast.h>
#include <plait/rules/guard.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/indexing/index_rows.h"
#include "primitives/spelling.h"
#include "primitives/written.h"

namespace plait {
namespace {

using namespace indexing;

void eval_checked_indices(std::span<const View> inputs, std::span<const View> outputs,
                          const Params& params) {
  copy_elements(inputs[0], outputs[0]);
  const std::vector<int> axes = params.ints("axes");
  std::vector<std::int64_t> starts, last, sizes;
  for (auto [view, list] :
       {std::pair(&inputs[0], &starts), {&inputs[1], &last}, {&inputs[2], &sizes}}) {
    const Buffer dense = Buffer::copy_of(*view);
    visit_dtype(dense.dtype(), [&, list = list](auto element) {
      using T = decltype(element);
      const T* data = static_cast<const T*>(dense.data());
      if constexpr (std::is_integral_v<T>) list->assign(data, data + num_elements(dense.shape()));
    });
  }
  for (std::size_t i = 0; i < starts.size(); ++i)
    if (starts[i] < 0 || starts[i] > last[i])
      throw_outside(params.text("primitive"), axes[i % axes.size()], starts[i], last[i], sizes[i]);
}

// A check says what one number is: the start and its bound, packed, where the window has one
// element, and else, of 21 bits each, those and the size of the window. -1 where all is well.
constexpr std::int64_t bound_bits = 31, part_bits = 21, start_bias = std::int64_t(1) << 31,
                       part_bias = 1 << 20;

loops::Tensors emit_checked_indices(loops::Writer& w, const Equation& equation,
                                    std::span<const loops::Tensor> inputs) {
  written::require_no_kernels(w);
  const std::vector<int> axes = equation.params.ints("axes");
  const Shape& shape = inputs[0].aval.shape;
  const std::string name = equation.params.text("primitive");
  if (shape.empty() || shape.back() != Dim(std::int64_t(axes.size())))
    w.refuse("`checked_indices` of other indices than one for each axis");
  const written::Writing writing(w, equation.source);
  loops::Tensor operands[3];
  for (std::size_t i = 0; i < 3; ++i) operands[i] = w.in_memory(inputs[i]);
  Shape rows = shape;
  rows.pop_back();
  const auto check = [&](std::size_t component, bool is_of_one, const auto& packed,
                         std::function<void(std::int64_t)> raise) {
    w.check_each(
        rows,
        [&](std::span<const loops::Index> row) {
          using namespace written;  // NOLINT
          Indices at(row.begin(), row.end());
          at.push_back({std::int64_t(component)});
          const auto whole = [&](const loops::Tensor& tensor) {
            return cast(get(tensor, at), DType::int64);
          };
          const Number start = whole(operands[0]), last = whole(operands[1]),
                       size = whole(operands[2]) - last;
          const Number fails = (start < integer(0)) | (start > last), is_one = size == integer(1);
          return select(fails & (is_of_one ? is_one : !is_one), packed(start, last, size),
                        integer(-1))
              .value;
        },
        -1, -1, std::move(raise), equation.source);
  };
  for (std::size_t i = 0; i < axes.size(); ++i) {
    using namespace written;  // NOLINT
    const auto within = [](Number x, std::int64_t low, std::int64_t high) {
      return minimum(maximum(x, integer(low)), integer(high));
    };
    check(
        i, true,
        [&](Number start, Number last, Number) {
          return (within(start, -start_bias, start_bias - 1) + integer(start_bias)) *
                     integer(std::int64_t(1) << bound_bits) +
                 within(last + integer(1), 0, (std::int64_t(1) << bound_bits) - 1);
        },
        [name, axis = axes[i]](std::int64_t packed) {
          const std::int64_t size = packed & ((std::int64_t(1) << bound_bits) - 1);
          throw_outside(name, axis, (packed >> bound_bits) - start_bias, size - 1, size);
        });
    check(
        i, false,
        [&](Number start, Number last, Number window) {
          const Number scale = integer(std::int64_t(1) << part_bits);
          const std::int64_t most = (std::int64_t(1) << part_bits) - 1;
          return ((within(start, -part_bias, part_bias - 1) + integer(part_bias)) * scale +
                  within(last + integer(part_bias), 0, most)) *
                     scale +
                 within(window, 0, most);
        },
        [name, axis = axes[i]](std::int64_t packed) {
          const std::int64_t most = (std::int64_t(1) << part_bits) - 1;
          const std::int64_t last = (packed >> part_bits & most) - part_bias;
          throw_outside(name, axis, (packed >> 2 * part_bits) - part_bias, last,
                        last + (packed & most));
        });
  }
  return {inputs[0]};
}

Array zero_unless(const Array& live, const Array& array) {
  return lax::select(broadcast_to(live, array.shape()), array,
                     lax::full(array.shape(), 0, array.dtype()));
}

// The starts along the indexed axes of an array of this shape, with the largest start and the size
// of each axis.
struct Starts {
  Array starts, last, sizes;
};
Starts starts_in(const Array& rows, const Shape& array, const lax::IndexDimensions& dimensions,
                 const Shape& window, const std::function<Array(Dim)>& value_of) {
  Arrays greatest, extents;
  for (int axis : dimensions.axes) {
    extents.push_back(value_of(array[axis]));
    greatest.push_back(value_of(array[axis] - window[axis - dimensions.batch_dims]));
  }
  auto spread = [&](const Arrays& scalars) {
    return broadcast_to(by_component(scalars, rows), rows.shape());
  };
  return {rows, spread(greatest), spread(extents)};
}

}  // namespace

constinit const Primitive checked_indices_p{"checked_indices"};
static const auto checked_indices_def =
    define(checked_indices_p,
           "Starts of windows, the first operand, as they are: an IndexError unless each is from 0 "
           "to the second operand, the "
           "greatest start along an axis whose size is the third.")
        .operands(3)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          for (const Aval& input : inputs)
            if (!(input.shape == inputs[0].shape) || input.dtype != inputs[0].dtype)
              throw ShapeError("checked_indices: operands of types " + inputs[0].to_string() +
                                   " and " + input.to_string(),
                               "give equal types");
          return std::vector<Aval>{inputs[0]};
        })
        .rule<Eval>(eval_checked_indices)
        .rule<Emit>(emit_checked_indices)
        .rule<Cost>(cost::for_each_operand(1))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may raise")
        .refuse<Motion>("it may raise")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          Arrays arrays;
          for (const Batched& input : inputs) arrays.push_back(batch_to_front(input, size));
          return std::vector<Batched>{{Array(bind(checked_indices_p, arrays, params)), 0}};
        })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          // Padding is filled with 0, which is in bounds.
          Arrays filled;
          for (const Masked& input : inputs)
            filled.push_back(fill_padding(input, literal_like(input.padded, 0), sizes));
          return Arrays(bind(checked_indices_p, filled, params));
        })
        .rule<Guard>({{},
                      [](const Array& live, std::span<const Array> inputs, const Params& params) {
                        return Arrays(bind(
                            checked_indices_p,
                            {zero_unless(live, inputs[0]), zero_unless(live, inputs[1]), inputs[2]},
                            params));
                      },
                      true})
        .rule<Samples>([] {
          const Sample::Input zeros{{{3, 2}, DType::int32}, Sample::Input::Values::indices, 1};
          const Sample::Input sizes{{{3, 2}, DType::int32}, Sample::Input::Values::positive};
          return std::vector<Sample>{
              {{zeros, sizes, sizes},
               {{"primitive", std::string("gather")}, {"axes", Shape{0, 1}}}}};
        });

static Array bind_checked(const std::string& primitive, const Starts& starts,
                          const lax::IndexDimensions& dimensions) {
  return bind(checked_indices_p, {starts.starts, starts.last, starts.sizes},
              {{"primitive", primitive}, {"axes", to_shape(dimensions.axes)}});
}

Array indexing::checked_rows(const std::string& primitive, const Array& rows,
                             const Shape& real_rows, const Masked& array,
                             const lax::IndexDimensions& dimensions, const Shape& window,
                             const SizeValues& sizes) {
  if (dimensions.axes.empty() || !sizes.checked) return rows;
  Starts starts = starts_in(rows, array.aval.shape, dimensions, window, sizes.value);
  if (const std::optional<Array> real = validity(real_rows, sizes)) {
    const Array zero = literal_like(rows, 0);
    starts.starts = lax::select(*real, starts.starts, zero);
    starts.last = lax::select(*real, starts.last, zero);
  }
  return bind_checked(primitive, starts, dimensions);
}

Array indexing::guarded_rows(const std::string& primitive, const Array& live, const Array& rows,
                             const Shape& array, const lax::IndexDimensions& dimensions,
                             const Shape& window) {
  if (dimensions.axes.empty()) return rows;
  Starts starts = starts_in(rows, array, dimensions, window, [](Dim dim) {
    return dim.is_constant() ? Array::literal(Literal{DType::int64, false, dim.constant(), 0, 0})
                             : Array(lax::dim_as_value(dim));
  });
  starts.starts = zero_unless(live, starts.starts);
  starts.last = zero_unless(live, starts.last);
  return bind_checked(primitive, starts, dimensions);
}

}  // namespace plait
