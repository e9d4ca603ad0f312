// plait.numpy.fft.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/numpy_fft.h>
#include <plait/primitives/fourier.h>

#include "functions/functions.h"
#include "functions/numpy/fourier_arguments.h"

namespace plait {
using namespace functions;  // NOLINT

namespace {

using namespace fourier_arguments;  // NOLINT

struct Kind {
  const char* name;
  bool is_inverse, takes_real;
};
constexpr Kind fft_kind{"fft", false, false}, ifft_kind{"ifft", true, false},
    rfft_kind{"rfft", false, true}, irfft_kind{"irfft", true, false};

// Of a dtype that transforms take.
Array prepared(const char* function, const Kind& kind, const Array& x) {
  Array a = to_inexact(x);
  if (a.dtype() == DType::float16 || a.dtype() == DType::bfloat16) a = astype(a, DType::float32);
  if (!kind.takes_real)
    return is_complex(a.dtype()) ? a : lax::complex(a, lax::zeros_like(a.aval()));
  return floating_only(function, a);
}

Array scaled(const Array& x, Factor factor, bool is_inverse, Dim length) {
  if (factor == Factor::backward) return x;
  Array count = number_of(length, real_dtype_of(x.dtype()));
  if (factor == Factor::ortho) count = lax::sqrt(count);
  const Array by = is_inverse ? count : lax::div(constant(1, count), count);
  if (!is_complex(x.dtype())) return lax::mul(x, by);
  return lax::complex(lax::mul(lax::real(x), by), lax::mul(lax::imag(x), by));
}

Array over_axis(const char* function, const Kind& kind, const Array& x, const Points& n, int axis,
                Factor factor) {
  const int normal = normalize_axis(axis, x.ndim(), function);
  const bool is_half = std::string_view(kind.name) == "irfft";
  const Dim present = x.shape(normal);
  const Dim length = is_given(n) ? *n : is_half ? Dim(2) * (present - 1) : present;
  if (length.is_constant() && length.constant() < 1)
    throw ValueError(std::string(function) + ": " + length.to_string() + " points",
                     is_half ? "give the number of points, n" : "transform at least one point");
  const Array a = fitted(x, normal, is_half ? floor_divide(length, 2) + 1 : length);
  return scaled(lax::fft_along(a, kind.name, normal, length), factor, kind.is_inverse, length);
}

Array one(const char* function, const Kind& kind, Operand a, const Points& n, int axis,
          const Norm& norm) {
  return over_axis(function, kind, prepared(function, kind, a), n, axis, factor_of(function, norm));
}

Array several(const char* function, const Kind& kind, Operand a, const Points2& s, const Axes& axes,
              const Norm& norm) {
  const Factor factor = factor_of(function, norm);
  Array x = prepared(function, kind, a);
  const auto all = axes_of(function, x, s, axes);
  if (all.empty()) return x;
  const auto& [last, points] = all.back();
  const std::string_view name = kind.name;
  if (name == "rfft") x = over_axis(function, kind, x, points, last, factor);
  const bool is_real = name == "rfft" || name == "irfft";
  const Kind& others = kind.is_inverse ? ifft_kind : fft_kind;
  for (std::size_t i = 0; i + std::size_t(is_real) < all.size(); ++i)
    x = over_axis(function, others, x, all[i].second, all[i].first, factor);
  if (name == "irfft") x = over_axis(function, kind, x, points, last, factor);
  return x;
}

Array shifted(const char* function, const Array& x, const Axes& axes, bool is_back) {
  Array result = x;
  for (const int axis : axes.of(x.ndim(), function)) {
    const Dim n = x.shape(axis), first = floor_divide(is_back ? n : n + 1, 2);
    result = lax::concatenate({part(result, axis, first, n), part(result, axis, 0, first)}, axis);
  }
  return result;
}

Array frequencies(const char* function, Dim n, Dim count, bool has_negative, const Operand& d,
                  const std::optional<DType>& dtype) {
  const DType to = dtype.value_or(default_float());
  if (!is_floating(to))
    throw DtypeError(std::string(function) + ": dtype " + std::string(name_of(to)),
                     "choose a floating dtype");
  if (n.is_constant() && n.constant() < 1)
    throw ValueError(std::string(function) + ": " + n.to_string() + " points", "give at least one");
  Array k = counting(count);
  if (has_negative) {
    const Array limit = number_of(floor_divide(n + 1, 2), k.dtype());
    k = lax::select(lax::lt(k, limit), k, lax::sub(k, number_of(n, k.dtype())));
  }
  return lax::div(astype(k, to), lax::mul(number_of(n, to), astype(d, to)));
}

}  // namespace

namespace numpy {

Array fft::fft(Operand a, const Points& n, int axis, const Norm& norm) {
  return one("fft", fft_kind, a, n, axis, norm);
}
Array fft::ifft(Operand a, const Points& n, int axis, const Norm& norm) {
  return one("ifft", ifft_kind, a, n, axis, norm);
}
Array fft::rfft(Operand a, const Points& n, int axis, const Norm& norm) {
  return one("rfft", rfft_kind, a, n, axis, norm);
}
Array fft::irfft(Operand a, const Points& n, int axis, const Norm& norm) {
  return one("irfft", irfft_kind, a, n, axis, norm);
}
Array fft::hfft(Operand a, const Points& n, int axis, const Norm& norm) {
  const Array x = prepared("hfft", irfft_kind, a);
  return over_axis("hfft", irfft_kind, numpy::conj(x), n, axis, opposite(factor_of("hfft", norm)));
}
Array fft::ihfft(Operand a, const Points& n, int axis, const Norm& norm) {
  const Array x = prepared("ihfft", rfft_kind, a);
  return numpy::conj(over_axis("ihfft", rfft_kind, x, n, axis, opposite(factor_of("ihfft", norm))));
}

Array fft::fft2(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("fft2", fft_kind, a, s, axes, norm);
}
Array fft::ifft2(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("ifft2", ifft_kind, a, s, axes, norm);
}
Array fft::rfft2(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("rfft2", rfft_kind, a, s, axes, norm);
}
Array fft::irfft2(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("irfft2", irfft_kind, a, s, axes, norm);
}
Array fft::fftn(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("fftn", fft_kind, a, s, axes, norm);
}
Array fft::ifftn(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("ifftn", ifft_kind, a, s, axes, norm);
}
Array fft::rfftn(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("rfftn", rfft_kind, a, s, axes, norm);
}
Array fft::irfftn(Operand a, const Points2& s, const Axes& axes, const Norm& norm) {
  return several("irfftn", irfft_kind, a, s, axes, norm);
}

Array fft::fftfreq(Dim n, Operand d, OptionalDType dtype) {
  return frequencies("fftfreq", n, n, true, d, dtype);
}
Array fft::rfftfreq(Dim n, Operand d, OptionalDType dtype) {
  return frequencies("rfftfreq", n, floor_divide(n, 2) + 1, false, d, dtype);
}
Array fft::fftshift(Operand x, const Axes& axes) { return shifted("fftshift", x, axes, false); }
Array fft::ifftshift(Operand x, const Axes& axes) { return shifted("ifftshift", x, axes, true); }

}  // namespace numpy

namespace {

constexpr const char* with_points =
    " n: the number of points, to which a is cut or padded with zeros. norm: 'backward', 'ortho' "
    "(the factor 1 / sqrt(n)) or 'forward' (1 / n).";
std::string doc(const char* what, const char* more = "") {
  return std::string(what) + with_points + (*more ? " " : "") + more;
}
constexpr const char* with_sizes =
    " s: the points along each axis; axes: all, or the last ones that s speaks of.";
std::string doc_of_axes(const char* what) { return std::string(what) + with_sizes; }

namespace of_fft = numpy::fft;

[[maybe_unused]] const FunctionInfo* const fft_functions[] = {
    function("numpy.fft", "fft(a, n=None, axis=-1, norm=None)",
             doc("X[k] = sum_j a[j] exp(-2 pi i j k / n) along an axis, complex.",
                 "Integers and 16-bit floats are float32.")
                 .c_str(),
             &of_fft::fft),
    function("numpy.fft", "ifft(a, n=None, axis=-1, norm=None)",
             doc("The inverse of fft: sum_k a[k] exp(2 pi i j k / n) / n along an axis.").c_str(),
             &of_fft::ifft),
    function("numpy.fft", "rfft(a, n=None, axis=-1, norm=None)",
             doc("The fft of real numbers, of which the first n // 2 + 1 are given: the others are "
                 "their conjugates.")
                 .c_str(),
             &of_fft::rfft),
    function(
        "numpy.fft", "irfft(a, n=None, axis=-1, norm=None)",
        doc("The inverse of rfft: n real numbers, 2 (m - 1) of a spectrum of m without n.").c_str(),
        &of_fft::irfft),
    function("numpy.fft", "hfft(a, n=None, axis=-1, norm=None)",
             doc("The real spectrum of n numbers of a signal that is conjugate about its start, of "
                 "which the first n // 2 + 1 are given.")
                 .c_str(),
             &of_fft::hfft),
    function("numpy.fft", "ihfft(a, n=None, axis=-1, norm=None)",
             doc("The inverse of hfft: the first n // 2 + 1 numbers of the signal.").c_str(),
             &of_fft::ihfft),
    function("numpy.fft", "fft2(a, s=None, axes=(-2, -1), norm=None)",
             doc_of_axes("fft over two axes.").c_str(), &of_fft::fft2),
    function("numpy.fft", "ifft2(a, s=None, axes=(-2, -1), norm=None)",
             doc_of_axes("ifft over two axes.").c_str(), &of_fft::ifft2),
    function("numpy.fft", "rfft2(a, s=None, axes=(-2, -1), norm=None)",
             doc_of_axes("rfft over the last of two axes, fft over the other.").c_str(),
             &of_fft::rfft2),
    function("numpy.fft", "irfft2(a, s=None, axes=(-2, -1), norm=None)",
             doc_of_axes("The inverse of rfft2.").c_str(), &of_fft::irfft2),
    function("numpy.fft", "fftn(a, s=None, axes=None, norm=None)",
             doc_of_axes("fft over several axes.").c_str(), &of_fft::fftn),
    function("numpy.fft", "ifftn(a, s=None, axes=None, norm=None)",
             doc_of_axes("ifft over several axes.").c_str(), &of_fft::ifftn),
    function("numpy.fft", "rfftn(a, s=None, axes=None, norm=None)",
             doc_of_axes("rfft over the last of several axes, fft over the others.").c_str(),
             &of_fft::rfftn),
    function("numpy.fft", "irfftn(a, s=None, axes=None, norm=None)",
             doc_of_axes("The inverse of rfftn.").c_str(), &of_fft::irfftn),
    function("numpy.fft", "fftfreq(n, d=1.0, *, dtype=None, device=None!)",
             "The frequencies of fft's n numbers, in cycles per unit of the distance d of points: "
             "0, 1, ..., -2, -1, over n d.",
             &of_fft::fftfreq),
    function("numpy.fft", "rfftfreq(n, d=1.0, *, dtype=None, device=None!)",
             "The frequencies of rfft's n // 2 + 1 numbers: 0, 1, ..., n // 2, over n d.",
             &of_fft::rfftfreq),
    function("numpy.fft", "fftshift(x, axes=None)",
             "x with frequency 0 in the middle of its axes, or of some.", &of_fft::fftshift),
    function("numpy.fft", "ifftshift(x, axes=None)", "The inverse of fftshift.",
             &of_fft::ifftshift),
    function("lax", "fft(x, fft_type, fft_lengths)",
             "The discrete Fourier transform over as many of the last axes as there are lengths. "
             "fft_type: 'fft' or 'ifft' of complex numbers, 'rfft' of real ones, 'irfft' back to "
             "them. The last of fft_lengths is the number of points of the signal.",
             &lax::fft),
};

}  // namespace
}  // namespace plait
