// plait.scipy.signal: trends, and spectra by transforms of segments. Welch 1967, The use of fast
// Fourier transform for the estimation of power spectra.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/lax.h>
#include <plait/functions/numpy_fft.h>
#include <plait/functions/numpy_pad.h>
#include <plait/functions/scipy_signal.h>

#include <algorithm>
#include <numeric>

#include "functions/functions.h"

namespace plait {
using namespace functions;  // NOLINT

namespace scipy {
namespace {

using Count = std::optional<int>;

int last_axis(const Array& x) { return x.ndim() - 1; }
Array along_last(const Array& x, int axis, const char* function) {
  return moved(x, normalize_axis(axis, x.ndim(), function), last_axis(x));
}

// --- Trends --------------------------------------------------------------------------------------

Array without_trend(const char* function, const Array& x, const std::string& type) {
  const int axis = last_axis(x);
  const bool is_line = type == "linear" || type == "l";
  if (!is_line && type != "constant" && type != "c")
    throw ValueError(std::string(function) + ": the trend '" + type + "'",
                     "choose 'linear' or 'constant'");
  const Array centred = numpy::subtract(x, numpy::mean(x, {axis}, {}, true));
  if (!is_line || x.shape(axis) == Dim(1)) return centred;
  // The slope is sum_i t[i] x[i] / sum_i t[i]^2 for t with the mean 0.
  const Dim n = x.shape(axis);
  const DType real = real_dtype_of(x.dtype());
  const Array t =
      lax::sub(counting(n, real), lax::mul(number_of(n - 1, real), Array::literal(0.5, real)));
  const Array slope = numpy::divide(numpy::sum(numpy::multiply(centred, t), {axis}, {}, true),
                                    numpy::sum(numpy::square(t)));
  return numpy::subtract(centred, numpy::multiply(slope, t));
}

// --- Segments ------------------------------------------------------------------------------------

// How a signal is cut: the size of segments, the distance between their beginnings, the points of
// their transforms.
struct Cutting {
  int length, step, points;
  Array factors;  // of the window
};

void require_positive(const char* function, const char* name, const Count& count) {
  if (count && *count < 1)
    throw ValueError(std::string(function) + ": " + name + " is " + std::to_string(*count),
                     "give at least 1");
}

Cutting cutting_of(const char* function, const signal::Window& window, int length,
                   const Count& noverlap, const Count& nfft, DType real) {
  const int shared = noverlap.value_or(length / 2), points = nfft.value_or(length);
  if (shared >= length || shared < 0)
    throw ValueError(std::string(function) + ": noverlap is " + std::to_string(shared) +
                         " for segments of " + std::to_string(length) + " points",
                     "give at least 0, and less than nperseg");
  if (points < length)
    throw ValueError(std::string(function) + ": nfft is " + std::to_string(points) +
                         " for segments of " + std::to_string(length) + " points",
                     "give at least nperseg");
  return {length, length - shared, points, window.of(function, length, real)};
}

// The size of segments of a signal of n points.
int segment_size(const char* function, const signal::Window& window, const Count& nperseg, Dim n) {
  require_positive(function, "nperseg", nperseg);
  if (n == Dim(0))
    throw ShapeError(std::string(function) + ": a signal of 0 points", "give at least one");
  if (const auto& values = window.values()) {
    if (values->ndim() != 1 || !values->shape(0).is_constant())
      throw ShapeError(
          std::string(function) + ": a window of shape (" + values->shape().to_string() + ")",
          "give a vector with a factor for each point of a segment");
    const int size = int(values->shape(0).constant());
    if (nperseg.value_or(size) != size)
      throw ValueError(std::string(function) + ": nperseg is " + std::to_string(*nperseg) +
                           ", and the window has " + std::to_string(size) + " points",
                       "leave out nperseg");
    if (less_equal(size, n) == false)
      throw ValueError(std::string(function) + ": a window of " + std::to_string(size) +
                           " points, and a signal of " + n.to_string(),
                       "give a window that is not longer than the signal");
    return size;
  }
  const int size = nperseg.value_or(256);
  return n.is_constant() ? int(std::min<std::int64_t>(size, n.constant())) : size;
}

// Segments whose beginnings are step apart consist of blocks of a common divisor of both sizes:
// block j of segment i is block i * stride + j of the signal.
struct Blocks {
  int size, parts, stride;
  Blocks(int length, int step)
      : size(std::gcd(length, step)), parts(length / size), stride(step / size) {}
  bool are_few() const { return parts <= 32; }
};

// The places of segments' points in the signal.
Array places_of(Dim count, int length, int step) {
  const Array begins = lax::mul(counting(count, DType::int32), Array::literal(step, DType::int32));
  return numpy::add(numpy::expand_dims(begins, {1}), counting(length, DType::int32));
}

// [..., n] as [..., segments, length].
Array segments_of(const Array& x, int length, int step) {
  const int axis = last_axis(x);
  const Dim count = floor_divide(x.shape(axis) - length, step) + 1;
  const Blocks blocks(length, step);
  if (!blocks.are_few()) return numpy::take(x, places_of(count, length, step), axis, "clip");
  const Dim total = (count - 1) * blocks.stride + blocks.parts;
  Shape shape = x.shape();
  shape[axis] = total;
  shape.push_back(blocks.size);
  const Array all = lax::reshape(part(x, axis, 0, total * blocks.size), shape);
  Arrays parts;
  for (int j = 0; j < blocks.parts; ++j)
    parts.push_back(part(all, axis, j, (count - 1) * blocks.stride + j + 1, blocks.stride));
  return parts.size() == 1 ? parts[0] : lax::concatenate(parts, axis + 1);
}

// The transpose of segments_of: [..., segments, length] added up as [..., n].
Array added_up(const Array& segments, int step) {
  const int axis = last_axis(segments) - 1;
  const int length = int(segments.shape(axis + 1).constant());
  const Dim count = segments.shape(axis), total = (count - 1) * step + length;
  const Blocks blocks(length, step);
  Shape shape = segments.shape();
  shape.pop_back();
  shape[axis] = total;
  if (!blocks.are_few()) {
    const Array zeros = lax::full(shape, 0, segments.dtype());
    return update_item(zeros, {Ellipsis(), places_of(count, length, step)}, segments,
                       UpdateKind::add, {lax::GatherScatterMode::promise, std::nullopt});
  }
  std::optional<Array> sum;
  for (int j = 0; j < blocks.parts; ++j) {
    std::vector<lax::Padding> around(std::size_t(segments.ndim()));
    around[std::size_t(axis)] = {j, blocks.parts - 1 - j, blocks.stride - 1};
    const Array piece = lax::pad(part(segments, axis + 1, j * blocks.size, (j + 1) * blocks.size),
                                 Array::literal(0, segments.dtype()), around);
    sum = sum ? lax::add(*sum, piece) : piece;
  }
  return lax::reshape(*sum, shape);
}

// --- Spectra -------------------------------------------------------------------------------------

Array in_fft_dtype(const Array& x) {
  const Array inexact = to_inexact(x);
  return size_of(inexact.dtype()) < 4 ? astype(inexact, DType::float32) : inexact;
}

// The transforms of the segments of [..., n]: [..., segments, frequencies].
Array transforms_of(const char* function, const Array& x, const Cutting& cutting,
                    const signal::Detrend& detrend, bool is_onesided) {
  Array segments = segments_of(x, cutting.length, cutting.step);
  if (!detrend.type().empty()) segments = without_trend(function, segments, detrend.type());
  const Array windowed = numpy::multiply(segments, cutting.factors);
  return is_onesided ? numpy::fft::rfft(windowed, Dim(cutting.points))
                     : numpy::fft::fft(windowed, Dim(cutting.points));
}

Array frequencies_of(const Cutting& cutting, bool is_onesided, const Array& fs, DType real) {
  const Array distance = numpy::divide(1.0, fs);
  return is_onesided ? numpy::fft::rfftfreq(cutting.points, distance, real)
                     : numpy::fft::fftfreq(cutting.points, distance, real);
}

Array per_rate(const Array& counts, const Array& fs) {
  return numpy::divide(counts, numpy::astype(fs, counts.dtype()));
}

// The median of n numbers of exponential distribution, whose mean is 1.
double bias_of_median(std::int64_t n) {
  double bias = 1;
  for (std::int64_t i = 2; i <= n - 1 - (n - 1) % 2; i += 2)
    bias += 1 / double(i + 1) - 1 / double(i);
  return bias;
}

// Over segments, the axis before the last.
Array averaged(const char* function, const Array& x, const std::string& average) {
  const int axis = last_axis(x) - 1;
  if (average == "mean") return numpy::mean(x, {axis});
  if (average != "median")
    throw ValueError(std::string(function) + ": average is '" + average + "'",
                     "choose 'mean' or 'median'");
  if (!x.shape(axis).is_constant())
    throw ShapeError(
        std::string(function) + ": the median of " + x.shape(axis).to_string() + " segments",
        "give a signal whose size is a number, or take the mean");
  const double bias = bias_of_median(x.shape(axis).constant());
  if (!is_complex(x.dtype())) return numpy::divide(numpy::median(x, {axis}), bias);
  return numpy::divide(
      lax::complex(numpy::median(lax::real(x), {axis}), numpy::median(lax::imag(x), {axis})), bias);
}

// Axes before the last broadcast; the last gets zeros at its end until both are equal.
void match_signals(Arrays& both) {
  Shape batches[2];
  for (int i = 0; i < 2; ++i)
    batches[i] =
        Shape(both[std::size_t(i)].shape().begin(), both[std::size_t(i)].shape().end() - 1);
  const Dim n = both[0].shape(last_axis(both[0])), m = both[1].shape(last_axis(both[1]));
  const Dim longest = n == m ? n : maximum(n, m);
  for (Array& x : both) {
    std::vector<lax::Padding> padding(std::size_t(x.ndim()));
    padding.back().high = longest - x.shape(last_axis(x));
    if (!(n == m)) x = lax::pad(x, Array::literal(0, x.dtype()), padding);
    Shape shape = broadcast_shapes(batches, "csd");
    shape.push_back(longest);
    x = plait::broadcast_to(x, shape);
  }
}

std::pair<Array, Array> power_spectrum(const char* function, const Array& x,
                                       const std::optional<Array>& y, const Array& fs,
                                       const signal::Window& window, const Count& nperseg,
                                       const Count& noverlap, const Count& nfft,
                                       const signal::Detrend& detrend, bool return_onesided,
                                       const std::string& scaling, int axis,
                                       const std::string& average) {
  if (scaling != "density" && scaling != "spectrum")
    throw ValueError(std::string(function) + ": scaling is '" + scaling + "'",
                     "choose 'density' or 'spectrum'");
  Arrays signals{along_last(in_fft_dtype(x), axis, function)};
  if (y) {
    signals.push_back(along_last(in_fft_dtype(*y), axis, function));
    promote_dtypes(signals, function);
    match_signals(signals);
  }
  const DType real = real_dtype_of(signals[0].dtype());
  const int length =
      segment_size(function, window, nperseg, signals[0].shape(last_axis(signals[0])));
  const Cutting cutting = cutting_of(function, window, length, noverlap, nfft, real);
  const bool is_onesided = return_onesided && !is_complex(signals[0].dtype());
  const Array spectrum = transforms_of(function, signals[0], cutting, detrend, is_onesided);
  Array power;
  if (y) {
    const Array other = transforms_of(function, signals[1], cutting, detrend, is_onesided);
    power = numpy::multiply(numpy::conj(spectrum), other);
  } else {
    power = numpy::add(numpy::square(lax::real(spectrum)), numpy::square(lax::imag(spectrum)));
  }
  const Array weight =
      scaling == "density"
          ? numpy::multiply(numpy::astype(fs, real), numpy::sum(numpy::square(cutting.factors)))
          : numpy::square(numpy::sum(cutting.factors));
  power = numpy::divide(averaged(function, power, average), weight);
  if (is_onesided) {  // the negative frequencies of all but 0 and, of an even number, the last one
    std::vector<double> twice(std::size_t(cutting.points / 2 + 1), 2.0);
    twice.front() = 1;
    if (cutting.points % 2 == 0) twice.back() = 1;
    power = numpy::multiply(power, numpy::asarray(twice, real));
  }
  return {frequencies_of(cutting, is_onesided, fs, real),
          moved(power, last_axis(power), normalize_axis(axis, power.ndim(), function))};
}

// Half a segment more at both ends.
Array extended(const Array& x, int width, const std::string& boundary) {
  std::vector<PadWidth::Pair> widths(std::size_t(x.ndim()), {0, 0});
  widths.back() = {width, width};
  if (boundary == "zeros") return numpy::pad(x, widths);
  if (boundary == "constant") return numpy::pad(x, widths, "edge");
  numpy::PadOptions options;
  options.reflect_type = boundary;
  if (boundary == "even" || boundary == "odd") return numpy::pad(x, widths, "reflect", options);
  throw ValueError("stft: boundary is '" + boundary + "'",
                   "choose 'zeros', 'even', 'odd', 'constant' or None");
}

}  // namespace

Array signal::detrend(Operand data, int axis, const std::string& type, const std::vector<int>& bp) {
  const int dim = normalize_axis(axis, data.ndim(), "detrend");
  const Array x = moved(to_inexact(data), dim, data.ndim() - 1);
  const Dim size = x.shape(last_axis(x));
  if (size == Dim(0)) throw ShapeError("detrend: an axis of 0 points", "give at least one");
  if (type == "constant" || type == "c") {  // one mean for all parts, as in SciPy
    const Array centred = without_trend("detrend", x, type);
    return moved(centred, last_axis(centred), dim);
  }
  Shape breaks;
  std::vector<int> sorted = bp;
  std::sort(sorted.begin(), sorted.end());
  for (const int place : sorted) {
    if (place < 0 || less_equal(size, place) == true)
      throw ValueError("detrend: the break point " + std::to_string(place) + " for " +
                           size.to_string() + " points",
                       "give places inside of the axis");
    if (place > 0 && (breaks.empty() || !(breaks.back() == Dim(place)))) breaks.push_back(place);
  }
  breaks.push_back(size);
  Arrays parts;
  Dim begin = 0;
  for (const Dim& end : breaks) {
    parts.push_back(without_trend("detrend", part(x, last_axis(x), begin, end), type));
    begin = end;
  }
  const Array result = parts.size() == 1 ? parts[0] : lax::concatenate(parts, last_axis(x));
  return moved(result, last_axis(result), dim);
}

std::pair<Array, Array> signal::csd(Operand x, const std::optional<Array>& y, Operand fs,
                                    const Window& window, const Count& nperseg,
                                    const Count& noverlap, const Count& nfft,
                                    const Detrend& detrend, bool return_onesided,
                                    const std::string& scaling, int axis,
                                    const std::string& average) {
  return power_spectrum("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                        scaling, axis, average);
}

std::pair<Array, Array> signal::welch(Operand x, Operand fs, const Window& window,
                                      const Count& nperseg, const Count& noverlap,
                                      const Count& nfft, const Detrend& detrend,
                                      bool return_onesided, const std::string& scaling, int axis,
                                      const std::string& average) {
  return power_spectrum("welch", x, std::nullopt, fs, window, nperseg, noverlap, nfft, detrend,
                        return_onesided, scaling, axis, average);
}

std::tuple<Array, Array, Array> signal::stft(Operand x, Operand fs, const Window& window,
                                             const Count& nperseg, const Count& noverlap,
                                             const Count& nfft, const Detrend& detrend,
                                             bool return_onesided,
                                             const std::optional<std::string>& boundary,
                                             bool padded, int axis) {
  const int dim = normalize_axis(axis, x.ndim(), "stft");
  Array signal = moved(in_fft_dtype(x), dim, x.ndim() - 1);
  const int last = last_axis(signal);
  const DType real = real_dtype_of(signal.dtype());
  const int length = segment_size("stft", window, nperseg, signal.shape(last));
  const Cutting cutting = cutting_of("stft", window, length, noverlap, nfft, real);
  if (boundary) signal = extended(signal, length / 2, *boundary);
  if (padded) {
    std::vector<lax::Padding> padding(std::size_t(signal.ndim()));
    padding.back().high = modulo(Dim(length) - signal.shape(last), cutting.step);
    signal = lax::pad(signal, Array::literal(0, signal.dtype()), padding);
  }
  const bool is_onesided = return_onesided && !is_complex(signal.dtype());
  const Array spectra = numpy::divide(transforms_of("stft", signal, cutting, detrend, is_onesided),
                                      numpy::sum(cutting.factors));
  const Array steps =
      lax::mul(counting(spectra.shape(last), real), Array::literal(cutting.step, real));
  const Array middles = boundary ? steps : lax::add(steps, Array::literal(length / 2.0, real));
  return {frequencies_of(cutting, is_onesided, fs, real), per_rate(middles, fs),
          moved(spectra, last_axis(spectra), dim)};
}

std::pair<Array, Array> signal::istft(Operand Zxx, Operand fs, const Window& window,
                                      const Count& nperseg, const Count& noverlap,
                                      const Count& nfft, bool input_onesided, bool boundary,
                                      int time_axis, int freq_axis) {
  if (Zxx.ndim() < 2)
    throw ShapeError("istft: an array of shape (" + Zxx.shape().to_string() + ")",
                     "give spectra with an axis of frequencies and one of times");
  const int time = normalize_axis(time_axis, Zxx.ndim(), "istft"),
            frequency = normalize_axis(freq_axis, Zxx.ndim(), "istft");
  if (time == frequency)
    throw ValueError("istft: time_axis and freq_axis are both " + std::to_string(time),
                     "give two axes");
  if (!Zxx.shape(frequency).is_constant())
    throw ShapeError("istft: " + Zxx.shape(frequency).to_string() + " frequencies",
                     "give spectra of a number of frequencies that is not named");
  const int given = int(Zxx.shape(frequency).constant());
  const int points = input_onesided ? 2 * (given - 1) : given;
  require_positive("istft", "nperseg", nperseg);
  const int length = nperseg.value_or(points);
  // An odd number of points has the same number of frequencies as the even one before it.
  const int transformed = nfft.value_or(input_onesided && length == points + 1 ? length : points);
  Array spectra = Zxx;
  spectra = in_fft_dtype(is_complex(spectra.dtype()) ? spectra : to_inexact(spectra));
  const DType real = real_dtype_of(spectra.dtype());
  const Cutting cutting = cutting_of("istft", window, length, noverlap, transformed, real);
  // [..., times, frequencies]
  spectra = moved(spectra, time, spectra.ndim() - 1);
  spectra = moved(spectra, frequency - (time < frequency), spectra.ndim() - 1);
  const int last = last_axis(spectra);
  Array segments = input_onesided ? numpy::fft::irfft(spectra, Dim(cutting.points))
                                  : numpy::fft::ifft(spectra, Dim(cutting.points));
  segments = part(segments, last, 0, length);
  const Array factors = cutting.factors, total = numpy::sum(factors);
  Array sums = added_up(numpy::multiply(segments, numpy::multiply(factors, total)), cutting.step);
  Array weights =
      added_up(plait::broadcast_to(numpy::square(factors), {segments.shape(last - 1), length}),
               cutting.step);
  if (boundary) {
    const Dim end = sums.shape(last - 1) - length / 2;
    sums = part(sums, last - 1, length / 2, end);
    weights = part(weights, 0, length / 2, end);
  }
  const Array divisor = numpy::where(numpy::greater(weights, 1e-10), weights, 1.0);
  Array signal = numpy::divide(sums, divisor);
  const Array times = per_rate(counting(signal.shape(last - 1), real), fs);
  return {times, moved(signal, last_axis(signal), time - (frequency < time))};
}

namespace {

constexpr const char* of_segments =
    " A segment has nperseg points: 256, or the size of the window or the axis where it is "
    "smaller. "
    "It shares noverlap points, half by default, with the next one, is freed from its trend, is "
    "multiplied by the window and is transformed at nfft points. window: a name, such as 'hann', a "
    "name with numbers, such as ('kaiser', 5.0), or an array. fs: points per unit of time. Spectra "
    "of real signals have their frequencies from 0 on, and others, or those without "
    "return_onesided, the negative ones too.";
constexpr const char* of_powers =
    " scaling: 'density', per unit of frequency, or 'spectrum'. average: 'mean' or 'median'. "
    "ValueError for a window that is not known, and for sizes that do not fit each other.";
std::string on_segments(const char* what, const char* more) {
  return std::string(what) + of_segments + more;
}

[[maybe_unused]] const FunctionInfo* const spectra_functions[] = {
    function("scipy.signal", "detrend(data, axis=-1, type='linear', bp=0, overwrite_data=None!)",
             "The data without their mean (type='constant') or their line of least squares "
             "('linear') along an axis; bp: where parts begin that have lines of their own. "
             "ValueError for a place outside of the axis. Integers are float32.",
             &signal::detrend),
    function("scipy.signal",
             "csd(x, y=None, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, "
             "detrend='constant', return_onesided=True, scaling='density', axis=-1, "
             "average='mean')",
             on_segments("The frequencies, and the cross power spectrum of x and y: the average "
                         "over segments of conj(X) Y; of x alone, real. x and y broadcast, and the "
                         "shorter one ends with zeros.",
                         of_powers)
                 .c_str(),
             &signal::csd),
    function("scipy.signal",
             "welch(x, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, "
             "detrend='constant', return_onesided=True, scaling='density', axis=-1, "
             "average='mean')",
             on_segments("The frequencies, and the power spectrum of x: the average over segments "
                         "of |X|^2.",
                         of_powers)
                 .c_str(),
             &signal::welch),
    function("scipy.signal",
             "stft(x, fs=1.0, window='hann', nperseg=256, noverlap=None, nfft=None, detrend=False, "
             "return_onesided=True, boundary='zeros', padded=True, axis=-1)",
             on_segments("The frequencies, the times of segments, and their spectra: frequencies "
                         "along axis, segments along a new last axis.",
                         " Half a segment is added at both ends as boundary says: 'zeros', 'even', "
                         "'odd', 'constant' or None; padded adds zeros until segments fit.")
                 .c_str(),
             &signal::stft),
    function("scipy.signal",
             "istft(Zxx, fs=1.0, window='hann', nperseg=None, noverlap=None, nfft=None, "
             "input_onesided=True, boundary=True, time_axis=-1, freq_axis=-2)",
             "The times and the signal whose stft, with the same window, nperseg, noverlap, nfft "
             "and boundary, is Zxx: segments are added up, and divided by the sum of the squares "
             "of the window's factors. Without input_onesided it is complex.",
             &signal::istft),
};

}  // namespace
}  // namespace scipy
}  // namespace plait
