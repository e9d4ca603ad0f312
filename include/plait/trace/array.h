// Array: the value that user functions are written over. Concrete (a Buffer) or traced; one counted
// pointer, cheap to copy, immutable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/base/source.h>
#include <plait/ir/aval.h>
#include <plait/ir/jaxpr.h>
#include <plait/trace/axes.h>

#include <atomic>
#include <concepts>
#include <iosfwd>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace plait {

class At;
class Brackets;
class Trace;

// Functions of <cmath> over Arrays, found by argument-dependent lookup: numpy.h.
namespace standard {
struct Arguments {};
}  // namespace standard

// The target of an Array. Tracers of a transform derive from it and hold the transform's value.
class ArrayNode {
 public:
  ArrayNode(Aval aval, const Trace* trace) : aval_(std::move(aval)), trace_(trace) {}
  ArrayNode(const ArrayNode&) = delete;
  virtual ~ArrayNode() = default;
  const Aval& aval() const { return aval_; }
  bool is_concrete() const { return trace_ == nullptr; }
  // Whether it is on the tape: a TapedNode (tape_nodes.h).
  bool is_taped() const { return !trace_ && trace_id_ != 0; }
  bool is_plain() const { return !trace_ && trace_id_ == 0; }  // concrete, and off the tape

 protected:
  friend class Array;
  friend class Trace;
  Aval aval_;
  const Trace* trace_;  // null: concrete. Only compared; dangles after an escape
  // Distinguishes a dead trace from a new one at the same address; not 0 in a concrete node on the
  // tape.
  std::uint64_t trace_id_ = 0;
  std::atomic<std::int64_t> references_{0};
  Source birth_;  // line where a tracer was born
};

// A value in memory. A scalar that was written as a C++ or Python number is a literal: tracing
// inlines it instead of making it an operand.
class ConcreteNode : public ArrayNode {
 public:
  ConcreteNode(Aval aval, Buffer value, bool literal)
      : ArrayNode(std::move(aval), nullptr), buffer(std::move(value)), is_literal(literal) {
    if (this->aval().stack > 0) buffer.set_apart();
  }
  Buffer buffer;  // never another one; only whether it is free (Buffer::is_free) may be said later
  const bool is_literal;
};

class Array : public standard::Arguments {
 public:
  Array() = default;  // holds nothing; using it is a ValueError
  // Numbers are arrays. bool is strong; the others are weak. ValueError beyond 64 bits.
  template <std::same_as<bool> Bool>
  Array(Bool value) : Array(of_bool(value)) {}  // NOLINT
  template <std::integral Integer>
    requires(!std::is_same_v<Integer, bool>)
  Array(Integer value) : Array(of_integer(value)) {}  // NOLINT: weak int64
  template <std::floating_point Float>
  Array(Float value) : Array(of_float(double(value))) {}  // NOLINT: weak float64
  Array(complex128 value);                                // NOLINT: weak complex128
  Array(Dim size);  // NOLINT: a size as a number: weak int64, see dim_as_value
  explicit Array(Buffer buffer, bool weak = false);
  explicit Array(ArrayNode* node) : node_(node) { retain(); }
  // A strong scalar literal of the given dtype.
  static Array literal(const Literal& literal);
  static Array literal(double value, DType dtype);

  Array(const Array& other) noexcept : node_(other.node_) { retain(); }
  Array(Array&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Array& operator=(const Array& other) & noexcept {
    Array copy(other);
    std::swap(node_, copy.node_);
    return *this;
  }
  Array& operator=(Array&& other) & noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  void operator=(const Array& other) && = delete;  // x[i] is a copy: x = x.at(i).set(value)
  ~Array() {
    if (node_ && node_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }

  explicit operator bool() const = delete;  // use item<bool>(), cond or where
  bool is_valid() const { return node_ != nullptr; }
  const Aval& aval() const { return used().aval_; }
  DType dtype() const { return aval().dtype; }
  const Shape& shape() const { return aval().shape; }
  Dim shape(int axis) const {  // IndexError for an axis out of range
    if (axis < 0 || axis >= ndim()) throw_axis(axis);
    return aval().shape[axis];
  }
  int ndim() const { return aval().rank(); }
  bool is_concrete() const { return used().is_concrete(); }
  ArrayNode* node() const { return node_; }
  bool is_same(const Array& other) const { return node_ == other.node_; }

  // The value in memory. Under grad or vmap, the known value beneath a tracer. Where there is none,
  // a TracerError names the line and the fix.
  Buffer buffer() const;
  Buffer host_buffer() const;  // in memory of the host; a copy, and a wait, where it lies elsewhere
  // On the host, and of a stored dtype as numbers: float8 as float32, keys as their words.
  Buffer numbers() const;
  std::optional<Buffer> known_buffer() const;
  // The value as an inline scalar, when it is a literal.
  std::optional<Literal> as_literal() const;
  // The only element, converted. ShapeError when there is not exactly one.
  template <class Element>
  Element item(Here here = PLAIT_HERE) const;
  // All elements in row-major order, converted; DtypeError from complex to real numbers.
  template <class Element>
  std::vector<Element> to_vector(Here here = PLAIT_HERE) const;
  // The elements in place, valid while this array lives. DtypeError for another dtype, ValueError
  // where they are not in row-major order, as after a transpose.
  template <class Element>
  std::span<const Element> span(Here here = PLAIT_HERE) const& {
    const View view = dense_view(dtype_of<Element>(), here);
    return {static_cast<const Element*>(view.data), std::size_t(view.size())};
  }
  template <class Element>
  std::span<const Element> span() && = delete;  // the array would be destroyed: name it first
  // "[1. 2. 3.]", as NumPy prints; where the value is not known, the type and the trace.
  std::string to_string() const;
  friend std::ostream& operator<<(std::ostream& out, const Array& array);

  Source birth() const { return used().birth_; }

  // NumPy's methods: as the functions of these names in numpy.h.
  // x[i], x[{i, plait::Range{1, 3}}]: see subscript.h, which also has x.at(i).set(value).
  Array operator[](const Brackets& where) const;
  At at(const Brackets& where) const;
  Array T(Here here = PLAIT_HERE) const;
  Array mT(Here here = PLAIT_HERE) const;
  Dim size() const { return shape().num_elements(); }
  Array sum(const Axes& axis = {}, std::optional<DType> dtype = {}, bool keepdims = false,
            Here here = PLAIT_HERE) const;
  Array prod(const Axes& axis = {}, std::optional<DType> dtype = {}, bool keepdims = false,
             Here here = PLAIT_HERE) const;
  Array max(const Axes& axis = {}, bool keepdims = false, Here here = PLAIT_HERE) const;
  Array min(const Axes& axis = {}, bool keepdims = false, Here here = PLAIT_HERE) const;
  Array any(const Axes& axis = {}, bool keepdims = false, Here here = PLAIT_HERE) const;
  Array all(const Axes& axis = {}, bool keepdims = false, Here here = PLAIT_HERE) const;
  Array mean(const Axes& axis = {}, std::optional<DType> dtype = {}, bool keepdims = false,
             Here here = PLAIT_HERE) const;
  Array var(const Axes& axis = {}, std::optional<DType> dtype = {}, double ddof = 0,
            bool keepdims = false, Here here = PLAIT_HERE) const;
  Array std(const Axes& axis = {}, std::optional<DType> dtype = {}, double ddof = 0,
            bool keepdims = false, Here here = PLAIT_HERE) const;
  Array argmax(std::optional<int> axis = {}, bool keepdims = false, Here here = PLAIT_HERE) const;
  Array argmin(std::optional<int> axis = {}, bool keepdims = false, Here here = PLAIT_HERE) const;
  Array cumsum(std::optional<int> axis = {}, std::optional<DType> dtype = {},
               Here here = PLAIT_HERE) const;
  Array cumprod(std::optional<int> axis = {}, std::optional<DType> dtype = {},
                Here here = PLAIT_HERE) const;
  Array reshape(const Shape& shape, Here here = PLAIT_HERE) const;
  template <std::convertible_to<Dim> Size>
  Array reshape(Size size, Here here = PLAIT_HERE) const {
    return reshape(Shape{Dim(size)}, here);
  }
  Array ravel(Here here = PLAIT_HERE) const;
  Array flatten(Here here = PLAIT_HERE) const;
  Array transpose(const std::vector<int>& axes, Here here = PLAIT_HERE) const;
  Array swapaxes(int axis1, int axis2, Here here = PLAIT_HERE) const;
  Array squeeze(const Axes& axis = {}, Here here = PLAIT_HERE) const;
  Array astype(DType dtype, Here here = PLAIT_HERE) const;
  Array copy(Here here = PLAIT_HERE) const;
  // A default argument for max would make clang require Array to be complete here.
  Array clip(const std::optional<Array>& min, const std::optional<Array>& max,
             Here here = PLAIT_HERE) const;
  Array clip(const std::optional<Array>& min, Here here = PLAIT_HERE) const;
  Array round(int decimals = 0, Here here = PLAIT_HERE) const;
  Array real(Here here = PLAIT_HERE) const;
  Array imag(Here here = PLAIT_HERE) const;
  Array conj(Here here = PLAIT_HERE) const;
  Array dot(const Array& b, Here here = PLAIT_HERE) const;
  Array sort(std::optional<int> axis = -1, Here here = PLAIT_HERE) const;
  Array argsort(std::optional<int> axis = -1, Here here = PLAIT_HERE) const;
  Array take(const Array& indices, std::optional<int> axis = {}, Here here = PLAIT_HERE) const;
  Array repeat(int repeats, std::optional<int> axis = {}, Here here = PLAIT_HERE) const;
  Array diagonal(int offset = 0, int axis1 = 0, int axis2 = 1, Here here = PLAIT_HERE) const;
  Array trace(int offset = 0, int axis1 = 0, int axis2 = 1, Here here = PLAIT_HERE) const;

 private:
  static Array of_bool(bool value);
  static Array of_integer(std::int64_t value);
  static Array of_float(double value);
  template <std::integral Integer>
  static Array of_integer(Integer value) {
    if (std::is_unsigned_v<Integer> &&
        std::uint64_t(value) > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      throw_too_large(std::uint64_t(value));
    return of_integer(static_cast<std::int64_t>(value));
  }
  [[noreturn]] static void throw_too_large(std::uint64_t value);
  View dense_view(DType dtype, Here here) const;
  const ArrayNode& used() const {
    if (!node_) throw_empty();
    return *node_;
  }
  [[noreturn]] void throw_empty() const;
  [[noreturn]] void throw_axis(int axis) const;
  void retain() {
    if (node_) node_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  ArrayNode* node_ = nullptr;
};

// An argument of a public function: an Array, or a number, with the line of the user's expression.
class Operand : public Array {
 public:
  Operand(Array array, const char* file = PLAIT_HERE_FILE, int line = PLAIT_HERE_LINE)  // NOLINT
      : Array(std::move(array)) {
    Here(file, line).remember();
  }
  template <class Number>
    requires(std::is_arithmetic_v<Number>)
  Operand(Number value, const char* file = PLAIT_HERE_FILE, int line = PLAIT_HERE_LINE)  // NOLINT
      : Array(value) {
    Here(file, line).remember();
  }
  // In {x, 0} the 0 would convert to the file name.
  Operand(Array array, int, int = 0) = delete;
  template <class Number>
    requires(std::is_arithmetic_v<Number>)
  Operand(Number value, int, int = 0) = delete;
  Operand(Dim value) : Array(value) {}         // NOLINT
  Operand(complex128 value) : Array(value) {}  // NOLINT
};

using Arrays = std::vector<Array>;

// The avals of arrays, or of other values that have one.
template <class Values>
std::vector<Aval> avals_of(const Values& values) {
  std::vector<Aval> avals;
  avals.reserve(values.size());
  for (const auto& value : values) avals.push_back(value.aval());
  return avals;
}

}  // namespace plait
