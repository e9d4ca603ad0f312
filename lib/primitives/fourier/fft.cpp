// fft: discrete Fourier transforms along an axis.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/fourier/fft.h"

#include <plait/primitives/families.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <algorithm>

#include "primitives/conjugate.h"
#include "primitives/cost.h"
#include "primitives/fourier/roots.h"
#include "primitives/reduction/order.h"
#include "primitives/spelling.h"

namespace plait {
namespace fourier {
namespace {

constexpr std::pair<const char*, Form::Kind> kinds[] = {{"fft", Form::Kind::fft},
                                                        {"ifft", Form::Kind::ifft},
                                                        {"rfft", Form::Kind::rfft},
                                                        {"irfft", Form::Kind::irfft}};

std::string name_of_kind(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return char(std::tolower(c)); });
  for (const auto& [name, kind] : kinds)
    if (text == name) return text;
  throw ValueError("fft: there is no transform '" + text + "'",
                   "choose 'fft', 'ifft', 'rfft' or 'irfft'");
}

}  // namespace

Form::Form(const Params& params)
    : kind(std::ranges::find_if(
               kinds,
               [&](const auto& entry) { return params.get<std::string>("kind") == entry.first; })
               ->second),
      axis(int(params.integer("axis"))),
      length(params.get<Dim>("length")) {}

namespace {

Dim half_of(Dim length) { return floor_divide(length, 2) + 1; }

Array along(const Array& x, const char* kind, int axis, Dim length) {
  return bind(fft_p, {x}, {{"kind", std::string(kind)}, {"axis", Dim(axis)}, {"length", length}});
}

std::vector<Aval> fft_abstract(std::span<const Aval> inputs, const Params& params) {
  const Form form(params);
  const Aval& x = inputs[0];
  const std::string& name = params.get<std::string>("kind");
  if (form.kind == Form::Kind::rfft)
    require_dtype(name, x, dtypes<float, double>());
  else
    require_dtype(name, x, dtypes<complex64, complex128>());
  if (form.axis < 0 || form.axis >= x.rank())
    throw ValueError(name + ": axis " + std::to_string(form.axis) + " of an array of " +
                         std::to_string(x.rank()) + " axes",
                     "choose one of its axes");
  if (form.length.is_constant() && form.length.constant() < 1)
    throw ValueError(name + ": a transform of " + form.length.to_string() + " points",
                     "transform at least one point");
  const Dim wanted = form.kind == Form::Kind::irfft ? half_of(form.length) : form.length;
  if (!(x.shape[form.axis] == wanted))
    throw ShapeError(name + ": axis " + std::to_string(form.axis) + " of shape (" +
                         x.shape.to_string() + ") does not have " + wanted.to_string() +
                         " elements, which a signal of " + form.length.to_string() + " points has",
                     "cut or pad it");
  Aval result = x;
  if (form.kind == Form::Kind::rfft) result = {x.shape, complex_dtype_of(x.dtype)};
  if (form.kind == Form::Kind::irfft) result = {x.shape, real_dtype_of(x.dtype)};
  result.shape[form.axis] = form.kind == Form::Kind::rfft ? half_of(form.length) : form.length;
  return {result};
}

// --- Derivatives ---------------------------------------------------------------------------------

Array as_complex(const Array& x) { return lax::complex(x, lax::zeros_like(x.aval())); }

// A vector along an axis, for use with x.
Array along_axis(const Array& vector, const Array& x, int axis) {
  return lax::broadcast_in_dim(vector, x.shape(), std::vector<int>{axis});
}

Array padded_to(const Array& x, int axis, Dim size) {
  std::vector<lax::Padding> padding(std::size_t(x.ndim()));
  padding[std::size_t(axis)].high = size - x.shape(axis);
  return lax::pad(x, Array::literal(0, x.dtype()), padding);
}
Array cut_to(const Array& x, int axis, Dim size) {
  return lax::slice_in_dim(x, std::nullopt, size, 1, axis);
}
Array integer(std::int64_t value, DType dtype = DType::int32) {
  return Array::literal(double(value), dtype);
}

// How often a number of a half spectrum counts in the whole one: once at 0 and, of an even length,
// at the end; else twice. length: an int32 scalar.
Array weights(Dim size, const Array& length, DType dtype) {
  const Array k = lax::iota(DType::int32, {size}, 0);
  const Array is_once =
      lax::bitwise_or(lax::eq(k, integer(0)), lax::eq(lax::mul(k, integer(2)), length));
  return lax::select(is_once, lax::full({size}, 1, dtype), lax::full({size}, 2, dtype));
}

// Both directions are symmetric matrices. A cotangent of rfft is that of the half that was kept,
// and the signal's is real. irfft is real(ifft(weights x)), without the half that is not there.
Tangents fft_transpose(std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                       const Params& params) {
  const Form form(params);
  const Array& ct = cotangents[0].array();
  switch (form.kind) {
    case Form::Kind::fft:
    case Form::Kind::ifft:
      return {Array(bind(fft_p, {ct}, params))};
    case Form::Kind::rfft:
      return {
          lax::real(along(padded_to(ct, form.axis, form.length), "fft", form.axis, form.length))};
    case Form::Kind::irfft:
      break;
  }
  const Array spectrum = along(ct, "rfft", form.axis, form.length);
  const Aval& input = inputs[0].aval();
  const DType real = real_dtype_of(input.dtype);
  const Array length =
      form.length.is_constant()
          ? integer(form.length.constant())
          : lax::convert_element_type(lax::dim_as_value(form.length), DType::int32);
  const Array scale = lax::div(weights(input.shape[form.axis], length, real),
                               lax::convert_element_type(length, real));
  const Array factor = along_axis(scale, spectrum, form.axis);
  return {lax::complex(lax::mul(lax::real(spectrum), factor),
                       lax::neg(lax::mul(lax::imag(spectrum), factor)))};
}

// --- Ragged axes ---------------------------------------------------------------------------------

// exp(-pi i j^2 / n) for j below a size, where n is known when the program runs.
Array chirp_of(const Array& length, Dim size, DType dtype) {
  const Array n = lax::convert_element_type(lax::max(length, integer(1)), DType::int64);
  const Array j = lax::iota(DType::int64, {size}, 0);
  const Array turns = lax::rem(lax::mul(j, j), lax::mul(n, integer(2, DType::int64)));
  const Array angle = lax::div(lax::mul(lax::convert_element_type(turns, DType::float64),
                                        Array::literal(-M_PI, DType::float64)),
                               lax::convert_element_type(n, DType::float64));
  const DType real = real_dtype_of(dtype);
  return lax::complex(lax::convert_element_type(lax::cos(angle), real),
                      lax::convert_element_type(lax::sin(angle), real));
}

// The transform of the first `length` numbers along an axis, the others of which are 0: a
// convolution with a chirp (see roots.h), whose sizes are those of the padded array.
Array fft_of_length(const Array& x, int axis, const Array& length) {
  const Dim size = x.shape(axis);
  if (!size.is_constant())
    throw ShapeError("mask: fft along an axis that is padded to " + size.to_string(),
                     "give the bound of its size as an integer");
  const std::int64_t n = size.constant(), wide = good_size(2 * n - 1);
  const Array chirp = chirp_of(length, size, x.dtype()), inverse = conjugate(chirp);
  // At -j as at j.
  Array filter = padded_to(inverse, 0, wide - n + 1);
  if (n > 1) {
    const Array later = lax::rev(lax::slice_in_dim(inverse, Dim(1), size), std::vector<int>{0});
    filter = lax::concatenate({filter, later}, 0);
  }
  const Array of_filter = along(filter, "fft", 0, wide);
  const Array turned = lax::mul(x, along_axis(chirp, x, axis));
  const Array spectrum = along(padded_to(turned, axis, wide), "fft", axis, wide);
  const Array product = lax::mul(spectrum, along_axis(of_filter, spectrum, axis));
  const Array result = cut_to(along(product, "ifft", axis, wide), axis, size);
  return lax::mul(result, along_axis(chirp, result, axis));
}

Arrays fft_mask(std::span<const Masked> inputs, std::span<const Aval> outputs, const Params& params,
                const SizeValues& sizes) {
  const Form form(params);
  const Masked& x = inputs[0];
  if (form.length.is_constant()) return bind(fft_p, {x.padded}, params);
  const int axis = form.axis;
  const Array zeros = Array::literal(0, x.aval.dtype);
  const Array clean = fill_padding(x, zeros, sizes, std::span(&axis, 1));
  const Array length = sizes.value(form.length);
  const Dim bound = sizes.bound(outputs[0].shape[axis]);
  if (form.kind == Form::Kind::fft) return {fft_of_length(clean, axis, length)};
  if (form.kind == Form::Kind::rfft)
    return {cut_to(fft_of_length(as_complex(clean), axis, length), axis, bound)};
  const DType real = real_dtype_of(x.aval.dtype);
  Array spectrum = clean;
  if (form.kind == Form::Kind::irfft) {
    const Array weight = along_axis(weights(clean.shape(axis), length, real), clean, axis);
    spectrum = padded_to(
        lax::complex(lax::mul(lax::real(clean), weight), lax::mul(lax::imag(clean), weight)), axis,
        bound);
  }
  // The inverse is the conjugate of the transform of conjugates.
  const Array signal = conjugate(fft_of_length(conjugate(spectrum), axis, length));
  const Array count = lax::convert_element_type(lax::max(length, integer(1)), real);
  const Array of_real = lax::div(lax::real(signal), count);
  if (form.kind == Form::Kind::irfft) return {of_real};
  return {lax::complex(of_real, lax::div(lax::imag(signal), count))};
}

double fft_flops(cost::Avals inputs, cost::Avals outputs, const Params& params) {
  const Form form(params);
  const bool is_real = form.kind == Form::Kind::rfft || form.kind == Form::Kind::irfft;
  const double n = value_of(form.length);
  const double rows = elements_of(inputs[0]) / value_of(inputs[0].shape[form.axis]);
  (void)outputs;
  return (is_real ? 2.5 : 5.0) * rows * n * std::log2(std::max(n, 1.0));
}

std::vector<Sample> fft_samples() {
  std::vector<Sample> samples;
  const auto add = [&](const char* kind, Shape shape, DType dtype, int axis, std::int64_t length) {
    samples.push_back(
        {{{{std::move(shape), dtype}}},
         {{"kind", std::string(kind)}, {"axis", Dim(axis)}, {"length", Dim(length)}}});
  };
  add("fft", {6}, DType::complex128, 0, 6);
  add("fft", {3, 2}, DType::complex128, 0, 3);
  add("fft", {2, 17}, DType::complex128, 1, 17);
  add("ifft", {5}, DType::complex128, 0, 5);
  add("rfft", {2, 8}, DType::float64, 1, 8);
  add("rfft", {5, 2}, DType::float64, 0, 5);
  add("irfft", {5}, DType::complex128, 0, 8);
  add("irfft", {2, 4}, DType::complex128, 1, 7);
  return samples;
}

}  // namespace
}  // namespace fourier

using namespace fourier;  // NOLINT

constinit const Primitive fft_p{"fft"};
static const auto fft_def =
    define(fft_p,
           "The discrete Fourier transform along an axis: fft and ifft of complex numbers, rfft of "
           "a real signal, whose spectrum has length // 2 + 1 numbers, and irfft, its inverse. "
           "length is the number of points of the signal; inverses have the factor 1 / length.")
        .operands(1)
        .rule<Abstract>(fft_abstract)
        .rule<Eval>(eval_fft)
        .rule<Emit>(emit_fft)
        .rule<Cost>(cost::arithmetic(fft_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::product)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(linear_through(fft_p))
        .rule<Transpose>(fft_transpose)
        .rule<Batch>([](Dim, std::span<const Batched> inputs, const Params& params) {
          const int dim = *inputs[0].dim, axis = batched_axis(int(params.integer("axis")), dim);
          return std::vector<Batched>{
              {Array(bind(fft_p, {inputs[0].array}, params.with("axis", Dim(axis)))), dim}};
        })
        .rule<Mask>(fft_mask)
        .rule<Samples>(fft_samples);

Array lax::fft_along(Operand x, const std::string& fft_type, int axis, Dim length) {
  const std::string kind = name_of_kind(fft_type);
  return along(x, kind.c_str(), normalize_axis(axis, x.ndim(), kind), length);
}

Array lax::fft(Operand x, const std::string& fft_type, const Shape& fft_lengths) {
  const std::string kind = name_of_kind(fft_type);
  const int count = int(fft_lengths.size()), first = x.ndim() - count;
  if (count < 1 || first < 0)
    throw ValueError(kind + ": " + std::to_string(count) + " lengths for an array of " +
                         std::to_string(x.ndim()) + " axes",
                     "give a length for each of the last axes");
  Array result = x;
  const int last = x.ndim() - 1;
  if (kind == "rfft") result = along(result, "rfft", last, fft_lengths[std::size_t(count - 1)]);
  const bool is_real = kind == "rfft" || kind == "irfft";
  for (int i = 0; i < count - int(is_real); ++i)
    result = along(result,
                   kind == "rfft"    ? "fft"
                   : kind == "irfft" ? "ifft"
                                     : kind.c_str(),
                   first + i, fft_lengths[std::size_t(i)]);
  if (kind == "irfft") result = along(result, "irfft", last, fft_lengths[std::size_t(count - 1)]);
  return result;
}

}  // namespace plait
