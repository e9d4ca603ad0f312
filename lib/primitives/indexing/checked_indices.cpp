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
