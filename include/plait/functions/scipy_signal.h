// plait::scipy::signal: convolution, trends and spectra of signals under SciPy's names.
//
// Arrays are real or complex; integers are float32 where a Fourier transform or a mean is taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

#include <string>
#include <vector>

namespace plait::scipy::signal {

// --- Convolution ---------------------------------------------------------------------------------

// mode: "full", all of the convolution; "same", its middle, of in1's shape; "valid", where the
// smaller array lies inside of the larger one. ValueError for another mode, or where neither is the
// larger one along all axes; ShapeError for different numbers of axes, or no elements.
//
// Over some axes, or all, by Fourier transforms; the other axes broadcast.
Array fftconvolve(Operand in1, Operand in2, const std::string& mode = "full",
                  const Axes& axes = {});
// method: "direct", by sums; "fft"; "auto", the faster one by estimate, and sums for integers.
Array convolve(Operand in1, Operand in2, const std::string& mode = "full",
               const std::string& method = "auto");
// The convolution with in2 reversed and conjugated.
Array correlate(Operand in1, Operand in2, const std::string& mode = "full",
                const std::string& method = "auto");
// Of matrices. boundary says what lies around in1: "fill", the fillvalue; "wrap", in1 again;
// "symm", its mirror image.
Array convolve2d(Operand in1, Operand in2, const std::string& mode = "full",
                 const std::string& boundary = "fill", Operand fillvalue = 0);
Array correlate2d(Operand in1, Operand in2, const std::string& mode = "full",
                  const std::string& boundary = "fill", Operand fillvalue = 0);

// --- Trends and spectra --------------------------------------------------------------------------

// Without the mean ("constant") or the line of least squares ("linear") along an axis. bp: where
// parts begin that have lines of their own.
Array detrend(Operand data, int axis = -1, const std::string& type = "linear",
              const std::vector<int>& bp = {0});

// The factors of the points of a segment: a name ("hann", "hamming", "blackman", "boxcar", ...), a
// name with numbers (("kaiser", 5.0), ("gaussian", 3.0), ("tukey", 0.25)), or an array of them.
class Window {
 public:
  static constexpr const char* argument_type = "str, (str, float, ...) or array";
  static std::optional<Window> from_argument(const Argument& argument);

  Window(const char* name) : name_(name) {}                   // NOLINT
  Window(std::string name, std::vector<double> numbers = {})  // NOLINT
      : name_(std::move(name)), numbers_(std::move(numbers)) {}
  Window(Array values) : values_(std::move(values)) {}  // NOLINT
  const std::optional<Array>& values() const { return values_; }
  // The factors of a periodic signal. ValueError for a name that is not known, wrong numbers, or an
  // array of another length.
  Array of(std::string_view function, int length, DType dtype) const;

 private:
  std::string name_;
  std::vector<double> numbers_;
  std::optional<Array> values_;
};

// What is taken from each segment: "constant", "linear", or nothing.
class Detrend {
 public:
  static constexpr const char* argument_type = "str or False";
  static std::optional<Detrend> from_argument(const Argument& argument);

  Detrend(bool none) : type_() { (void)none; }           // NOLINT: false
  Detrend(const char* type) : type_(type) {}             // NOLINT
  Detrend(std::string type) : type_(std::move(type)) {}  // NOLINT
  const std::string& type() const { return type_; }      // empty: nothing

 private:
  std::string type_;
};

// A signal is cut into segments of nperseg points (256, or the size of the window or the axis where
// it is smaller), which share noverlap points (half by default). Each is freed from its trend,
// multiplied by the window and transformed at nfft points. fs is the number of points per unit of
// time. Spectra of real signals have their frequencies from 0 on, and others, or those without
// return_onesided, the negative ones too.

// The frequencies, and the average over segments of conj(X) Y: "density", per unit of frequency, or
// "spectrum". average: "mean" or "median". Without y, x with itself, as real numbers.
std::pair<Array, Array> csd(Operand x, const std::optional<Array>& y = {}, Operand fs = 1.0,
                            const Window& window = "hann", const std::optional<int>& nperseg = {},
                            const std::optional<int>& noverlap = {},
                            const std::optional<int>& nfft = {},
                            const Detrend& detrend = "constant", bool return_onesided = true,
                            const std::string& scaling = "density", int axis = -1,
                            const std::string& average = "mean");
// The power spectrum of x: csd of x with itself.
std::pair<Array, Array> welch(Operand x, Operand fs = 1.0, const Window& window = "hann",
                              const std::optional<int>& nperseg = {},
                              const std::optional<int>& noverlap = {},
                              const std::optional<int>& nfft = {},
                              const Detrend& detrend = "constant", bool return_onesided = true,
                              const std::string& scaling = "density", int axis = -1,
                              const std::string& average = "mean");
// The frequencies, the times of the segments, and the spectrum of each: along axis frequencies, and
// along a new last axis segments. boundary says what half a segment at both ends is: "zeros",
// "even", "odd", "constant", or nothing; padded adds zeros until segments fit.
std::tuple<Array, Array, Array> stft(Operand x, Operand fs = 1.0, const Window& window = "hann",
                                     const std::optional<int>& nperseg = 256,
                                     const std::optional<int>& noverlap = {},
                                     const std::optional<int>& nfft = {},
                                     const Detrend& detrend = false, bool return_onesided = true,
                                     const std::optional<std::string>& boundary = "zeros",
                                     bool padded = true, int axis = -1);
// The times and the signal whose stft is Zxx, made with the same window, nperseg, noverlap, nfft
// and boundary.
std::pair<Array, Array> istft(Operand Zxx, Operand fs = 1.0, const Window& window = "hann",
                              const std::optional<int>& nperseg = {},
                              const std::optional<int>& noverlap = {},
                              const std::optional<int>& nfft = {}, bool input_onesided = true,
                              bool boundary = true, int time_axis = -1, int freq_axis = -2);

}  // namespace plait::scipy::signal
