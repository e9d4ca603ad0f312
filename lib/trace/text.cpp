// Arrays as text, in the format of NumPy's str(): columns aligned, at most eight digits after the
// point, and only the ends of long arrays.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stored.h>
#include <plait/trace/donated.h>
#include <plait/trace/trace.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

namespace plait {
namespace {

constexpr int max_decimals = 8;
constexpr std::int64_t summarised_above = 1000, edge_items = 3;
constexpr std::size_t line_width = 75;

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

template <class... Format>
std::string chars(Format... format) {
  char text[512];
  return {text, std::to_chars(text, text + sizeof text, format...).ptr};
}

// The digits after the point that distinguish the value from its neighbours; "" for none.
template <class T>
std::string fixed(T value) {
  std::string text = chars(value, std::chars_format::fixed);
  const std::size_t point = text.find('.');
  if (point != text.npos && text.size() - point - 1 > std::size_t(max_decimals))
    text = chars(value, std::chars_format::fixed, max_decimals);
  if (text.find('.') == text.npos) return text + '.';
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}
template <class T>
std::string scientific(T value, std::optional<int> decimals) {
  if (decimals) return chars(value, std::chars_format::scientific, *decimals);
  std::string text = chars(value, std::chars_format::scientific);
  const std::size_t point = text.find('.'), e = text.find('e');
  if (point != text.npos && e - point - 1 > std::size_t(max_decimals))
    text = chars(value, std::chars_format::scientific, max_decimals);
  return text;
}

// The shortest decimal number whose nearest 16-bit float is this one, as a double.
template <class T>
double shortest(T half) {
  for (int digits = 1; digits < 9; ++digits) {
    const std::string text = chars(double(float(half)), std::chars_format::scientific, digits);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    if (T(float(value)).bits == half.bits) return value;
  }
  return double(float(half));
}

// The real numbers of one array, all of one width.
template <class T>
class RealFormat {
 public:
  RealFormat(const std::vector<T>& values, bool shows_sign) : shows_sign_(shows_sign) {
    T largest = 0, smallest = INFINITY;
    for (const T value : values) {
      if (!std::isfinite(value) || value == 0) continue;
      largest = std::max(largest, std::abs(value));
      smallest = std::min(smallest, std::abs(value));
    }
    is_scientific_ =
        largest > 0 && (largest >= T(1e8) || smallest < T(1e-4) || largest / smallest > T(1000));
    if (is_scientific_) {
      int decimals = 0;
      for (const T value : values)
        if (std::isfinite(value)) {
          const std::string text = scientific(value, {});
          const std::size_t point = text.find('.');
          if (point != text.npos) decimals = std::max(decimals, int(text.find('e') - point) - 1);
        }
      decimals_ = decimals;
    }
    for (const T value : values) {
      if (!std::isfinite(value)) continue;
      const std::string text = digits(value);
      const std::size_t point = std::min(text.find('.'), text.find('e'));
      before_ = std::max(before_, point);
      after_ = std::max(after_, text.size() - point);
    }
    for (const T value : values)
      if (!std::isfinite(value)) width_ = std::max(width_, special(value).size());
    width_ = std::max(width_, before_ + after_);
  }

  std::string operator()(T value) const {
    if (!std::isfinite(value)) return padded(special(value), width_);
    const std::string text = digits(value);
    const std::size_t point = std::min(text.find('.'), text.find('e'));
    std::string result = std::string(width_ - after_ - point, ' ') + text;
    return result + std::string(width_ - result.size(), ' ');
  }

 private:
  static std::string padded(const std::string& text, std::size_t width) {
    return std::string(width - text.size(), ' ') + text;
  }
  std::string special(T value) const {
    const char* plus = shows_sign_ ? "+" : "";
    if (std::isnan(value)) return std::string(plus) + "nan";
    return value > 0 ? std::string(plus) + "inf" : "-inf";
  }
  std::string digits(T value) const {
    std::string text = is_scientific_ ? scientific(value, decimals_) : fixed(value);
    if (is_scientific_ && text.find('.') == text.npos) text.insert(text.find('e'), ".");
    return shows_sign_ && !std::signbit(value) ? "+" + text : text;
  }
  bool shows_sign_, is_scientific_ = false;
  int decimals_ = 0;
  std::size_t before_ = 0, after_ = 0, width_ = 0;
};

template <class T>
std::vector<std::string> texts_of(const std::vector<T>& values) {
  std::vector<std::string> texts;
  if constexpr (is_half<T>) {
    std::vector<double> wide;
    for (const T value : values) wide.push_back(shortest(value));
    return texts_of(wide);
  } else if constexpr (std::is_floating_point_v<T>) {
    const RealFormat<T> format(values, false);
    for (const T value : values) texts.push_back(format(value));
  } else if constexpr (std::is_integral_v<T>) {
    std::size_t width = 0;
    for (const T value : values) {
      if constexpr (std::is_same_v<T, bool>)
        texts.emplace_back(value ? "True" : "False");
      else
        texts.push_back(std::to_string(value));
      width = std::max(width, texts.back().size());
    }
    if (std::is_same_v<T, bool>) width = 5;
    for (std::string& text : texts) text.insert(0, width - text.size(), ' ');
  } else {
    using Real = typename T::value_type;
    std::vector<Real> reals, imaginaries;
    for (const T value : values) {
      reals.push_back(value.real());
      imaginaries.push_back(value.imag());
    }
    const RealFormat<Real> real(reals, false), imaginary(imaginaries, true);
    for (const T value : values) {
      std::string i = imaginary(value.imag());
      i.insert(i.find_last_not_of(' ') + 1, "j");
      texts.push_back(real(value.real()) + i);
    }
  }
  return texts;
}

// A single number, as Python writes one.
template <class T>
std::string scalar_text(T value) {
  if constexpr (is_half<T>)
    return scalar_text(shortest(value));
  else if constexpr (std::is_same_v<T, bool>)
    return value ? "True" : "False";
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    const T size = std::abs(value);
    if (size != 0 && (size >= T(1e16) || size < T(1e-4)))
      return chars(value, std::chars_format::scientific);
    const std::string text = chars(value, std::chars_format::fixed);
    return text.find('.') == text.npos ? text + ".0" : text;
  } else
    return texts_of(std::vector<T>{value})[0];
}

// The indices along an axis that are shown; -1 stands for "...".
std::vector<std::int64_t> shown(std::int64_t size, bool summarised) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < size; ++i) {
    if (summarised && size > 2 * edge_items && i == edge_items) {
      places.push_back(-1);
      i = size - edge_items;
    }
    places.push_back(i);
  }
  return places;
}

class Writer {
 public:
  explicit Writer(const Sizes64& shape)
      : shape_(shape), summarised_(num_elements(shape) > summarised_above) {}

  // The elements that are shown, in order.
  void collect(std::vector<std::int64_t>& places, std::size_t axis = 0,
               std::int64_t first = 0) const {
    if (axis == shape_.size()) return places.push_back(first);
    for (const std::int64_t i : shown(shape_[axis], summarised_))
      if (i >= 0) collect(places, axis + 1, first * shape_[axis] + i);
  }

  std::string write(const std::vector<std::string>& texts) {
    text_ = texts.begin();
    return write_axis(0, line_width);
  }

 private:
  std::string write_axis(std::size_t axis, std::size_t width) {
    const std::string indent(axis + 1, ' ');
    std::string result, line = indent;
    if (axis + 1 == shape_.size()) {
      for (const std::int64_t i : shown(shape_[axis], summarised_)) {
        const std::string word = i < 0 ? "..." : *text_++;
        if (line.size() > indent.size() && line.size() + word.size() > width - 1) {
          result += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
          line = indent;
        }
        line += word + " ";
      }
      if (shape_[axis] > 0) line.pop_back();
      result += line;
    } else {
      for (const std::int64_t i : shown(shape_[axis], summarised_)) {
        if (!result.empty()) result += std::string(shape_.size() - axis - 1, '\n');
        result += indent + (i < 0 ? "..." : write_axis(axis + 1, width - 1));
      }
    }
    return "[" + (result.empty() ? result : result.substr(indent.size())) + "]";
  }

  const Sizes64& shape_;
  const bool summarised_;
  std::vector<std::string>::const_iterator text_;
};

std::string text_of(const Buffer& dense) {
  return visit_dtype(dense.dtype(), [&](auto zero) -> std::string {
    using T = decltype(zero);
    const T* data = static_cast<const T*>(dense.data());
    if (dense.shape().empty()) return scalar_text(*data);
    Writer writer(dense.shape());
    std::vector<std::int64_t> places;
    writer.collect(places);
    if (places.empty()) return "[]";
    std::vector<T> values;
    for (const std::int64_t place : places) values.push_back(data[place]);
    return writer.write(texts_of(values));
  });
}

}  // namespace

std::string Array::to_string() const {
  if (!is_valid()) return "Array()";
  if (const auto* donated = dynamic_cast<const DonatedNode*>(node_))
    return "Array<" + aval().to_string() + ", donated to " + donated->function + ">";
  if (const std::optional<Buffer> value = known_buffer()) {
    const Buffer dense = value->on_host().dense();
    if (!is_stored(dtype())) return text_of(dense);
    return (dtype() == DType::key ? aval().to_string() + " of words " : "") +
           text_of(numbers_of_stored(dense, dtype()));
  }
  for (Trace* trace = Trace::current(); trace; trace = trace->parent())
    if (trace->owns(*this))
      return "Traced<" + aval().to_string() + " in " + std::string(trace->name()) + ">";
  return "Traced<" + aval().to_string() + ", whose trace has ended>";
}

std::ostream& operator<<(std::ostream& out, const Array& array) { return out << array.to_string(); }

}  // namespace plait
