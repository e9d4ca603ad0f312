// plait.image: each axis is a product with a matrix of weights.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/image.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

enum class Method { nearest, linear, cubic, lanczos3, lanczos5 };

Method method_of(std::string_view function, const std::string& word) {
  if (word == "nearest") return Method::nearest;
  if (word == "linear" || word == "bilinear" || word == "trilinear" || word == "triangle")
    return Method::linear;
  if (word == "cubic" || word == "bicubic" || word == "tricubic") return Method::cubic;
  if (word == "lanczos3") return Method::lanczos3;
  if (word == "lanczos5") return Method::lanczos5;
  throw ValueError(std::string(function) + ": method is '" + word + "'",
                   "choose 'nearest', 'linear', 'cubic', 'lanczos3' or 'lanczos5'");
}

// Keys' cubic convolution, of support 2: Keys, 1981, with a = -1/2.
Array cubic_kernel(const Array& x) {
  const Array near = ((1.5 * x - 2.5) * x) * x + 1.0;
  const Array far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0;
  return numpy::where(x >= 2.0, 0.0, numpy::where(x >= 1.0, far, near));
}
// sinc(x) sinc(x / radius) within the radius.
Array lanczos_kernel(const Array& x, double radius) {
  return numpy::where(x > radius, 0.0, numpy::sinc(x) * numpy::sinc(x / radius));
}
Array kernel(Method method, const Array& x) {
  switch (method) {
    case Method::cubic:
      return cubic_kernel(x);
    case Method::lanczos3:
      return lanczos_kernel(x, 3);
    case Method::lanczos5:
      return lanczos_kernel(x, 5);
    default:
      return numpy::maximum(1.0 - x, 0.0);
  }
}

// How much each of `from` elements counts for each of `to`: a matrix of that shape.
Array weights_of(Method method, Dim from, Dim to, const Array& scale, const Array& translation,
                 bool antialias, DType dtype) {
  const Array inverse = 1.0 / scale;
  const Array widening = antialias ? numpy::maximum(inverse, 1.0) : Array(1.0);
  const Array place = (counting(to, dtype) + 0.5) * inverse - translation * inverse - 0.5;
  const Array distance =
      numpy::abs(numpy::subtract(place, numpy::expand_dims(counting(from, dtype), {1})));
  const Array raw = kernel(method, distance / widening);
  const Array total = numpy::sum(raw, 0, {}, true);
  const double least = 1000 * (dtype == DType::float64 ? 2.2e-16 : 1.2e-7);
  const Array is_some = numpy::abs(total) > least;
  const Array weights =
      numpy::where(is_some, numpy::divide(raw, numpy::where(is_some, total, 1.0)), 0.0);
  const Array inside = numpy::logical_and(
      place >= -0.5, numpy::less_equal(place, numpy::subtract(number_of(from, dtype), 0.5)));
  return plait::functions::astype(numpy::where(inside, weights, 0.0), dtype);
}

Array contracted(const Array& x, int axis, const Array& weights) {
  const int last = x.ndim() - 1;
  const Array product = numpy::matmul(moved(x, axis, last), weights);
  return moved(product, last, axis);
}

void require_rank(std::string_view function, const Array& image, const Shape& shape) {
  if (shape.rank() != image.ndim())
    throw ShapeError(std::string(function) + ": a shape of " + std::to_string(shape.rank()) +
                         " sizes for an image of shape (" + image.shape().to_string() + ")",
                     "give a size for each axis");
}

// The element whose square holds the centre of each square of the result.
Array nearest(Array x, const Shape& shape) {
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const Dim from = x.shape(axis), to = shape[axis];
    if (from == to) continue;
    const Array centre =
        numpy::divide(numpy::multiply(counting(to) * 2 + 1, number_of(from, default_int())),
                      number_of(2 * to, default_int()));
    x = numpy::take(x, plait::functions::astype(numpy::floor(centre), default_int()), axis, "clip");
  }
  return x;
}

}  // namespace

Array image::resize(Operand image, const Shape& shape, const std::string& method, bool antialias) {
  const Method how = method_of("resize", method);
  require_rank("resize", image, shape);
  if (how == Method::nearest) return nearest(image, shape);
  Array x = to_inexact(image);
  const DType dtype = real_dtype_of(x.dtype());
  for (int axis = 0; axis < x.ndim(); ++axis) {
    const Dim from = x.shape(axis), to = shape[axis];
    if (from == to) continue;
    const Array scale = numpy::divide(number_of(to, dtype), number_of(from, dtype));
    x = contracted(x, axis, weights_of(how, from, to, scale, 0.0, antialias, dtype));
  }
  return x;
}

Array image::scale_and_translate(Operand image, const Shape& shape,
                                 const std::vector<int>& spatial_dims, Operand scale,
                                 Operand translation, const std::string& method, bool antialias) {
  const Method how = method_of("scale_and_translate", method);
  if (how == Method::nearest)
    throw ValueError("scale_and_translate: method is 'nearest'", "use resize, or 'linear'");
  require_rank("scale_and_translate", image, shape);
  Array x = to_inexact(image);
  const Shape wanted{std::int64_t(spatial_dims.size())};
  if (!(scale.shape() == wanted) || !(translation.shape() == wanted))
    throw ShapeError("scale_and_translate: scale and translation of shapes (" +
                         scale.shape().to_string() + ") and (" + translation.shape().to_string() +
                         ") for " + std::to_string(spatial_dims.size()) + " axes",
                     "give a number for each of spatial_dims");
  const DType dtype = real_dtype_of(x.dtype());
  for (std::size_t i = 0; i < spatial_dims.size(); ++i) {
    const int axis = normalize_axis(spatial_dims[i], x.ndim(), "scale_and_translate");
    auto at = [&](const Array& values) {
      return plait::functions::astype(lax::index_in_dim(values, std::int64_t(i), 0, false), dtype);
    };
    x = contracted(
        x, axis,
        weights_of(how, x.shape(axis), shape[axis], at(scale), at(translation), antialias, dtype));
  }
  if (!(x.shape() == shape))
    throw ShapeError("scale_and_translate: the shape (" + shape.to_string() +
                         ") differs from the image's outside of spatial_dims",
                     "name every axis that changes its size");
  return x;
}

namespace {

[[maybe_unused]] const FunctionInfo* const image_functions[] = {
    function("image", "resize(image, shape, method, antialias=True, precision=None!)",
             "image in another shape, each axis that changes resampled. method: 'nearest', "
             "'linear', 'cubic' (Keys, a = -1/2), 'lanczos3' or 'lanczos5'; with antialias their "
             "kernels widen where the image shrinks. Integers become float32, but for 'nearest'.",
             &image::resize),
    function("image",
             "scale_and_translate(image, shape, spatial_dims, scale, translation, method, "
             "antialias=True, precision=None!)",
             "image scaled and moved along spatial_dims: element i of axis k lies at (i + 1/2 - "
             "translation[k]) / scale[k] - 1/2 of the image, and is 0 where that is outside. scale "
             "and translation may be traced. method is as in resize, without 'nearest'.",
             &image::scale_and_translate),
};

}  // namespace
}  // namespace plait
