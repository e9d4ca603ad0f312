// plait.scipy.signal: windows of segments, by name. Harris 1978, On the use of windows for harmonic
// analysis with the discrete Fourier transform.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/catalogue.h>
#include <plait/functions/scipy_signal.h>

#include <cmath>

namespace plait::scipy {
namespace {

// sum_k (-1)^k a[k] cos(2 pi k i / last).
double cosines(std::initializer_list<double> factors, double i, double last) {
  double sum = 0, sign = 1, k = 0;
  for (const double factor : factors) {
    sum += sign * factor * std::cos(2 * M_PI * k * i / last);
    sign = -sign, ++k;
  }
  return sum;
}

double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= (x / 2 / k) * (x / 2 / k);
    sum += term;
  }
  return sum;
}

double parzen(double distance, double half) {  // from the middle
  const double x = std::abs(distance) / half;
  return x <= 0.5 ? 1 - 6 * x * x * (1 - x) : 2 * std::pow(1 - x, 3);
}

// A window of points 0 to last, symmetric, at point i; numbers are those behind the name.
struct Shaped {
  std::string_view name;
  std::size_t least, most;  // numbers
  double (*at)(double i, double last, const std::vector<double>& numbers);
};

using Numbers = const std::vector<double>&;
constexpr Shaped shapes[] = {
    {"boxcar", 0, 0, [](double, double, Numbers) { return 1.0; }},
    {"triang", 0, 0,
     [](double i, double last, Numbers) {
       const double odd = std::fmod(last, 2) == 0 ? 2 : 1;  // of an odd number of points, no zeros
       return 1 - std::abs(2 * i - last) / (last + odd);
     }},
    {"bartlett", 0, 0,
     [](double i, double last, Numbers) { return 1 - std::abs(2 * i / last - 1); }},
    {"cosine", 0, 0,
     [](double i, double last, Numbers) { return std::sin(M_PI / (last + 1) * (i + 0.5)); }},
    {"hann", 0, 0, [](double i, double last, Numbers) { return cosines({0.5, 0.5}, i, last); }},
    {"hamming", 0, 0,
     [](double i, double last, Numbers) { return cosines({0.54, 0.46}, i, last); }},
    {"general_hamming", 1, 1,
     [](double i, double last, Numbers n) { return cosines({n[0], 1 - n[0]}, i, last); }},
    {"blackman", 0, 0,
     [](double i, double last, Numbers) { return cosines({0.42, 0.5, 0.08}, i, last); }},
    {"nuttall", 0, 0,
     [](double i, double last, Numbers) {
       return cosines({0.3635819, 0.4891775, 0.1365995, 0.0106411}, i, last);
     }},
    {"blackmanharris", 0, 0,
     [](double i, double last, Numbers) {
       return cosines({0.35875, 0.48829, 0.14128, 0.01168}, i, last);
     }},
    {"flattop", 0, 0,
     [](double i, double last, Numbers) {
       return cosines({0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368}, i, last);
     }},
    {"bohman", 0, 0,
     [](double i, double last, Numbers) {
       const double x = std::abs(2 * i / last - 1);
       return i == 0 || i == last ? 0 : (1 - x) * std::cos(M_PI * x) + std::sin(M_PI * x) / M_PI;
     }},
    {"parzen", 0, 0,
     [](double i, double last, Numbers) { return parzen(i - last / 2, (last + 1) / 2); }},
    {"tukey", 0, 1,
     [](double i, double last, Numbers n) {
       const double tapered = n.empty() ? 0.5 : n[0], edge = std::min(i, last - i);
       if (tapered <= 0) return 1.0;
       const double width = std::min(tapered, 1.0) * last / 2;
       return edge >= width ? 1.0 : 0.5 * (1 - std::cos(M_PI * edge / width));
     }},
    {"kaiser", 1, 1,
     [](double i, double last, Numbers n) {
       const double x = 2 * i / last - 1;
       return bessel_i0(n[0] * std::sqrt(std::max(0.0, 1 - x * x))) / bessel_i0(n[0]);
     }},
    {"gaussian", 1, 1,
     [](double i, double last, Numbers n) {
       return std::exp(-0.5 * std::pow((i - last / 2) / n[0], 2));
     }},
    {"general_gaussian", 2, 2,
     [](double i, double last, Numbers n) {
       return std::exp(-0.5 * std::pow(std::abs((i - last / 2) / n[1]), 2 * n[0]));
     }},
    {"exponential", 0, 2,
     [](double i, double last, Numbers n) {  // (centre, which is the middle; tau)
       return std::exp(-std::abs(i - last / 2) / (n.empty() ? 1 : n.back()));
     }},
};

std::string_view canonical(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> others[] = {
      {"hanning", "hann"},  {"han", "hann"},          {"rectangular", "boxcar"},
      {"box", "boxcar"},    {"ones", "boxcar"},       {"rect", "boxcar"},
      {"hamm", "hamming"},  {"black", "blackman"},    {"triangle", "triang"},
      {"bart", "bartlett"}, {"halfcosine", "cosine"}, {"gauss", "gaussian"},
      {"flat", "flattop"},  {"tuk", "tukey"},         {"ksr", "kaiser"}};
  for (const auto& [other, known] : others)
    if (name == other) return known;
  return name;
}

}  // namespace

std::optional<signal::Window> signal::Window::from_argument(const Argument& argument) {
  if (const auto* name = std::get_if<std::string>(&argument.value)) return Window(*name);
  if (const auto* array = std::get_if<Array>(&argument.value)) return Window(*array);
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list || list->empty()) return std::nullopt;
  if (const auto* name = std::get_if<std::string>(&list->front().value)) {
    std::vector<double> numbers;
    for (std::size_t i = 1; i < list->size(); ++i) {
      if ((*list)[i].is_none()) continue;
      const std::optional<double> number = detail::as_double((*list)[i]);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    return Window(*name, std::move(numbers));
  }
  const std::optional<Arrays> numbers = detail::as_arrays(argument);
  if (!numbers) return std::nullopt;
  return Window(numpy::stack(*numbers));
}

Array signal::Window::of(std::string_view function, int length, DType dtype) const {
  const std::string start = std::string(function) + ": ";
  if (values_) {
    if (values_->ndim() != 1 || !(values_->shape(0) == Dim(length)))
      throw ShapeError(start + "a window of shape (" + values_->shape().to_string() +
                           ") for segments of " + std::to_string(length) + " points",
                       "give a vector with a factor for each point of a segment");
    return numpy::astype(*values_, dtype);
  }
  for (const Shaped& shape : shapes) {
    if (shape.name != canonical(name_)) continue;
    if (numbers_.size() < shape.least || numbers_.size() > shape.most)
      throw ValueError(
          start + "the window '" + name_ + "' with " + std::to_string(numbers_.size()) + " numbers",
          shape.least > 0 ? "give a tuple of the name and " + std::to_string(shape.least) +
                                ", as in ('kaiser', 5.0)"
                          : "give its name alone");
    // The symmetric window of one point more is periodic without the last one.
    std::vector<double> factors;
    for (int i = 0; i < length; ++i)
      factors.push_back(length == 1 ? 1 : shape.at(i, length, numbers_));
    return numpy::asarray(factors, dtype);
  }
  std::string known;
  for (const Shaped& shape : shapes) known += (known.empty() ? "" : ", ") + std::string(shape.name);
  throw ValueError(start + "the window '" + name_ + "' is not known",
                   "choose one of " + known + ", or give its factors as an array");
}

std::optional<signal::Detrend> signal::Detrend::from_argument(const Argument& argument) {
  if (const auto* type = std::get_if<std::string>(&argument.value)) return Detrend(*type);
  const bool* flag = std::get_if<bool>(&argument.value);
  if (flag ? !*flag : argument.is_none()) return Detrend(false);
  return std::nullopt;
}

}  // namespace plait::scipy
