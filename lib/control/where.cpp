// where with functions: a cond under one vmap for each axis, which every transform sees as such.
// Which function an element takes is decided last. See where.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/control/where.h>
#include <plait/primitives/primitives.h>

namespace plait {
namespace {

Arrays for_each_element(const Function& function, std::span<const Array> arrays, int rank) {
  if (rank == 0) return function(arrays);
  const Function inner = [&](std::span<const Array> parts) {
    return for_each_element(function, parts, rank - 1);
  };
  flat::VmapOptions options;
  options.in_dims.assign(arrays.size(), 0);
  options.out_dims = [](std::size_t count) { return std::vector<std::optional<int>>(count, 0); };
  return flat::vmap(inner, arrays, options);
}

Function giving_scalars(const Function& function) {
  return [&function](std::span<const Array> element) {
    Arrays outputs = function(element);
    for (const Array& output : outputs)
      if (output.ndim() > 0)
        throw ShapeError(
            "where: a function returned " + output.aval().to_string() + " for one element",
            "return a scalar; give arrays that it uses as further arguments, so that "
            "it gets their elements");
    return outputs;
  };
}

}  // namespace

Arrays flat::where(const Array& condition, const Function& f, const Function& g,
                   std::span<const Array> xs, const OutputName& output_name) {
  Arrays arrays{lax::convert_element_type(condition, DType::bool_)};
  arrays.insert(arrays.end(), xs.begin(), xs.end());
  std::vector<Shape> shapes;
  for (const Array& array : arrays) shapes.push_back(array.shape());
  const Shape shape = broadcast_shapes(std::span<const Shape>(shapes), "where");
  for (Array& array : arrays) array = broadcast_to(array, shape);
  const std::vector<Function> branches{giving_scalars(g), giving_scalars(f)};
  return for_each_element(
      [&](std::span<const Array> element) {
        return cond(element[0], branches, element.subspan(1), "where", output_name, true);
      },
      arrays, shape.rank());
}

}  // namespace plait
