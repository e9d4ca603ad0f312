// plait.scipy.signal: convolution and correlation of arrays of any number of axes.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/numpy_fft.h>
#include <plait/functions/scipy_signal.h>

#include <cmath>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

std::vector<int> every_axis(const Array& x) {
  std::vector<int> axes;
  for (int axis = 0; axis < x.ndim(); ++axis) axes.push_back(axis);
  return axes;
}

// The part of a convolution that is asked for.
enum class Part : std::uint8_t { full, same, valid };
Part part_of(const char* function, const std::string& mode) {
  if (mode == "full") return Part::full;
  if (mode == "same") return Part::same;
  if (mode == "valid") return Part::valid;
  throw ValueError(std::string(function) + ": mode is '" + mode + "'",
                   "choose 'full', 'same' or 'valid'");
}

// Two arrays of one dtype, of as many axes, with elements; bools as integers.
Arrays operands_of(const char* function, const Array& in1, const Array& in2) {
  const auto shapes = [&] {
    return std::string(function) + ": arrays of shapes (" + in1.shape().to_string() + ") and (" +
           in2.shape().to_string() + ")";
  };
  if (in1.ndim() != in2.ndim()) throw ShapeError(shapes(), "give both as many axes");
  for (const Array& x : {in1, in2})
    for (const Dim& size : x.shape())
      if (size == Dim(0)) throw ShapeError(shapes(), "give arrays with elements");
  Arrays both{in1, in2};
  promote_dtypes(both, function);
  if (is_bool(both[0].dtype()))
    for (Array& x : both) x = astype(x, default_int());
  return both;
}

// Whether the first array is the larger one along these axes; nothing where named sizes do not say.
std::optional<bool> is_first_larger(const char* function, const Arrays& x,
                                    const std::vector<int>& axes) {
  bool first = true, second = true, known = true;
  for (const int axis : axes) {
    const auto up = less_equal(x[1].shape(axis), x[0].shape(axis)),
               down = less_equal(x[0].shape(axis), x[1].shape(axis));
    first &= up.value_or(true), second &= down.value_or(true);
    known &= up.has_value();
  }
  if (!first && !second)
    throw ValueError(std::string(function) + ": mode 'valid' for arrays of shapes (" +
                         x[0].shape().to_string() + ") and (" + x[1].shape().to_string() + ")",
                     "make one the larger along all axes, or choose 'full' or 'same'");
  return known ? std::optional(first) : std::nullopt;
}

// Of a full convolution along axes. is_late: the middle of an even number is the later one.
Array cut_to(Part wanted, Array full, const Shape& in1, const Shape& in2,
             const std::vector<int>& axes, bool is_late = false) {
  if (wanted == Part::full) return full;
  for (const int axis : axes) {
    const Dim n = in1[axis], m = in2[axis], shorter = minimum(n, m), longer = maximum(n, m);
    const Dim first = wanted == Part::valid ? shorter - 1 : floor_divide(is_late ? m : m - 1, 2);
    full = part(full, axis, first, wanted == Part::valid ? longer : first + n);
  }
  return full;
}

// The sums of products of x, with padding around it, and the reversed kernel at every position.
Array slid(const Array& x, const Array& kernel, const std::vector<std::pair<Dim, Dim>>& padding) {
  const auto with_features = [](const Array& array) {
    Shape shape{1, 1};
    for (const Dim& size : array.shape()) shape.push_back(size);
    return lax::reshape(array, shape);
  };
  const Array sums = lax::conv_general_dilated(with_features(x),
                                               with_features(lax::rev(kernel, every_axis(kernel))),
                                               Shape(std::size_t(x.ndim()), 1), padding);
  return lax::squeeze(sums, {0, 1});
}

Array direct(const char* function, Arrays x, Part wanted, bool is_late = false) {
  const std::vector<int> axes = every_axis(x[0]);
  if (axes.empty()) return lax::mul(x[0], x[1]);
  const Shape shape1 = x[0].shape(), shape2 = x[1].shape();
  std::vector<std::pair<Dim, Dim>> padding(axes.size());
  if (wanted == Part::valid) {
    const std::optional<bool> is_larger = is_first_larger(function, x, axes);
    if (is_larger) return *is_larger ? slid(x[0], x[1], padding) : slid(x[1], x[0], padding);
  }
  for (const int axis : axes) {
    const Dim m = shape2[axis], before = floor_divide(is_late ? m : m - 1, 2);
    padding[std::size_t(axis)] =
        wanted == Part::same ? std::pair(m - 1 - before, before) : std::pair(m - 1, m - 1);
  }
  const Array sums = slid(x[0], x[1], padding);
  return wanted == Part::valid ? cut_to(wanted, sums, shape1, shape2, axes) : sums;
}

// The smallest size, from n on, that has no prime factor above 7: transforms of it are fast.
Dim fast_size(Dim n) {
  if (!n.is_constant()) return n;
  for (std::int64_t size = n.constant();; ++size) {
    std::int64_t rest = size;
    for (const int factor : {2, 3, 5, 7})
      while (rest % factor == 0) rest /= factor;
    if (rest == 1) return size;
  }
}

Array by_transforms(const Arrays& given, Part wanted, const std::vector<int>& axes) {
  if (axes.empty()) return numpy::multiply(given[0], given[1]);
  const DType dtype = to_inexact(given[0]).dtype();
  Shape sizes, fast;
  for (const int axis : axes) {
    sizes.push_back(given[0].shape(axis) + given[1].shape(axis) - 1);
    fast.push_back(fast_size(sizes.back()));
  }
  Array product;
  if (is_complex(dtype)) {
    product = numpy::fft::ifftn(numpy::multiply(numpy::fft::fftn(given[0], fast, axes),
                                                numpy::fft::fftn(given[1], fast, axes)),
                                fast, axes);
  } else {
    product = numpy::fft::irfftn(numpy::multiply(numpy::fft::rfftn(given[0], fast, axes),
                                                 numpy::fft::rfftn(given[1], fast, axes)),
                                 fast, axes);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) product = part(product, axes[i], 0, sizes[i]);
  return cut_to(wanted, astype(product, dtype), given[0].shape(), given[1].shape(), axes);
}

// Whether transforms take less time than sums, by the number of operations.
bool prefers_transforms(const Arrays& x) {
  if (!is_inexact(x[0].dtype())) return false;
  double sums = 1, size = 1;
  for (int axis = 0; axis < x[0].ndim(); ++axis) {
    if (!x[0].shape(axis).is_constant() || !x[1].shape(axis).is_constant()) return false;
    const double n = double(x[0].shape(axis).constant()), m = double(x[1].shape(axis).constant());
    sums *= n * m, size *= n + m - 1;
  }
  return sums > 10 * size * std::log2(size);
}

Array convolved(const char* function, const Arrays& x, const std::string& mode,
                const std::string& method) {
  const Part wanted = part_of(function, mode);
  if (method != "auto" && method != "direct" && method != "fft")
    throw ValueError(std::string(function) + ": method is '" + method + "'",
                     "choose 'auto', 'direct' or 'fft'");
  if (method == "direct" || (method == "auto" && !prefers_transforms(x)))
    return direct(function, x, wanted);
  const std::vector<int> axes = every_axis(x[0]);
  if (wanted == Part::valid) is_first_larger(function, x, axes);
  const Array result = by_transforms(x, wanted, axes);
  return is_inexact(x[0].dtype()) ? result : astype(lax::round(result), x[0].dtype());
}

Array reversed(const Array& x) { return lax::rev(numpy::conj(x), every_axis(x)); }

Array convolved_2d(const char* function, const Arrays& x, const std::string& mode,
                   const std::string& boundary, const Operand& fillvalue, bool is_late) {
  const Part wanted = part_of(function, mode);
  if (x[0].ndim() != 2)
    throw ShapeError(std::string(function) + ": arrays of shape (" + x[0].shape().to_string() + ")",
                     "give two matrices");
  if (boundary != "fill" && boundary != "wrap" && boundary != "symm")
    throw ValueError(std::string(function) + ": boundary is '" + boundary + "'",
                     "choose 'fill', 'wrap' or 'symm'");
  if (fillvalue.ndim() != 0)
    throw ShapeError(
        std::string(function) + ": a fillvalue of shape (" + fillvalue.shape().to_string() + ")",
        "give a number");
  const std::optional<Literal> fill = Array(fillvalue).as_literal();
  const bool fills_zeros = boundary == "fill" && fill && fill->as_complex() == 0.0;
  if (wanted == Part::valid || fills_zeros) return direct(function, x, wanted, is_late);
  const Dim rows = x[1].shape(0) - 1, columns = x[1].shape(1) - 1;
  const PadWidth around{{rows, rows}, {columns, columns}};
  const Array wide = boundary == "fill"
                         ? numpy::pad(x[0], around, "constant", astype(fillvalue, x[0].dtype()))
                         : numpy::pad(x[0], around, boundary == "wrap" ? "wrap" : "symmetric");
  return cut_to(wanted, slid(wide, x[1], {{0, 0}, {0, 0}}), x[0].shape(), x[1].shape(), {0, 1},
                is_late);
}

}  // namespace

Array signal::fftconvolve(Operand in1, Operand in2, const std::string& mode, const Axes& axes) {
  const Part wanted = part_of("fftconvolve", mode);
  const Arrays x = operands_of("fftconvolve", in1, in2);
  const std::vector<int> along = axes.of(x[0].ndim(), "fftconvolve");
  for (int axis = 0; axis < x[0].ndim(); ++axis) {
    const Dim n = x[0].shape(axis), m = x[1].shape(axis);
    const bool is_along = std::find(along.begin(), along.end(), axis) != along.end();
    if (!is_along && !(n == m) && !(n == Dim(1)) && !(m == Dim(1)))
      throw ShapeError("fftconvolve: arrays of shapes (" + x[0].shape().to_string() + ") and (" +
                           x[1].shape().to_string() + ") do not broadcast along axis " +
                           std::to_string(axis),
                       "give arrays of equal sizes along axes that are not convolved");
  }
  if (wanted == Part::valid) is_first_larger("fftconvolve", x, along);
  return by_transforms(x, wanted, along);
}

Array signal::convolve(Operand in1, Operand in2, const std::string& mode,
                       const std::string& method) {
  return convolved("convolve", operands_of("convolve", in1, in2), mode, method);
}
Array signal::correlate(Operand in1, Operand in2, const std::string& mode,
                        const std::string& method) {
  Arrays x = operands_of("correlate", in1, in2);
  x[1] = reversed(x[1]);
  return convolved("correlate", x, mode, method);
}
Array signal::convolve2d(Operand in1, Operand in2, const std::string& mode,
                         const std::string& boundary, Operand fillvalue) {
  const Arrays x = operands_of("convolve2d", in1, in2);
  return convolved_2d("convolve2d", x, mode, boundary, fillvalue, false);
}
Array signal::correlate2d(Operand in1, Operand in2, const std::string& mode,
                          const std::string& boundary, Operand fillvalue) {
  Arrays x = operands_of("correlate2d", in1, in2);
  x[1] = reversed(x[1]);
  return convolved_2d("correlate2d", x, mode, boundary, fillvalue, true);
}

namespace {

constexpr const char* of_modes =
    " mode: 'full'; 'same', the middle, of in1's shape; 'valid', where the smaller one lies inside "
    "of the larger one.";
std::string with_modes(const char* what, const char* more) {
  return std::string(what) + of_modes + more;
}
constexpr const char* of_methods =
    " method: 'direct', by sums; 'fft'; 'auto', the faster one by estimate, and sums for integers. "
    "ShapeError unless both have as many axes, and elements.";
constexpr const char* of_boundaries =
    " Around in1 lies the fillvalue (boundary='fill'), in1 again ('wrap') or its mirror image "
    "('symm'). ShapeError unless both are matrices with elements.";

[[maybe_unused]] const FunctionInfo* const convolution_functions[] = {
    function("scipy.signal", "fftconvolve(in1, in2, mode='full', axes=None)",
             with_modes("The convolution of two arrays over some axes, or all, by Fourier "
                        "transforms; along the other axes they broadcast.",
                        " Integers are float32.")
                 .c_str(),
             &signal::fftconvolve),
    function("scipy.signal", "convolve(in1, in2, mode='full', method='auto', precision=None!)",
             with_modes("The convolution of two arrays of as many axes.", of_methods).c_str(),
             &signal::convolve),
    function(
        "scipy.signal", "correlate(in1, in2, mode='full', method='auto', precision=None!)",
        with_modes("The convolution of in1 with in2 reversed and conjugated.", of_methods).c_str(),
        &signal::correlate),
    function("scipy.signal",
             "convolve2d(in1, in2, mode='full', boundary='fill', fillvalue=0, precision=None!)",
             with_modes("The convolution of two matrices.", of_boundaries).c_str(),
             &signal::convolve2d),
    function("scipy.signal",
             "correlate2d(in1, in2, mode='full', boundary='fill', fillvalue=0, precision=None!)",
             with_modes("The convolution of a matrix with another, reversed and conjugated.",
                        of_boundaries)
                 .c_str(),
             &signal::correlate2d),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
