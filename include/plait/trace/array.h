// Array: the value that user functions are written over. Concrete (a Buffer) or traced; one counted
// pointer, cheap to copy, immutable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>
#include <plait/base/source.h>
#include <plait/ir/aval.h>
#include <plait/ir/jaxpr.h>

#include <atomic>
#include <optional>
#include <vector>

namespace plait {

class Trace;

// What an Array points to. Tracers of a transform derive from it and keep the transform's value.
class ArrayNode {
 public:
  ArrayNode(Aval aval, const Trace* trace) : aval_(std::move(aval)), trace_(trace) {}
  ArrayNode(const ArrayNode&) = delete;
  virtual ~ArrayNode() = default;
  const Aval& aval() const { return aval_; }
  bool is_concrete() const { return trace_ == nullptr; }
  // Whether the tape knows how it was made: a TapedNode (tape_nodes.h).
  bool is_taped() const { return !trace_ && trace_id_ != 0; }
  bool is_plain() const { return !trace_ && trace_id_ == 0; }  // concrete, and off the tape

 protected:
  friend class Array;
  friend class Trace;
  Aval aval_;
  const Trace* trace_;  // null: concrete. Compared only; may dangle after an escape
  // Tells a dead trace from a new one at the same address; not 0 in a concrete node on the tape.
  std::uint64_t trace_id_ = 0;
  std::atomic<std::int64_t> references_{0};
  Source birth_;  // line where a tracer was born
};

// A number in memory. A scalar that was written as a C++ or Python number is a literal: tracing
// puts it inline instead of making it an operand.
class ConcreteNode : public ArrayNode {
 public:
  ConcreteNode(Aval aval, Buffer buffer, bool literal)
      : ArrayNode(std::move(aval), nullptr), buffer(std::move(buffer)), is_literal(literal) {}
  const Buffer buffer;
  const bool is_literal;
};

class Array {
 public:
  Array() = default;            // holds nothing; using it is a ValueError
  Array(const char*) = delete;  // not a bool
  Array(bool value);            // NOLINT: numbers are arrays. bool is strong; the others are weak
  Array(int value) : Array(static_cast<std::int64_t>(value)) {}  // NOLINT
  Array(std::int64_t value);                                     // NOLINT: weak int64
  Array(double value);                                           // NOLINT: weak float64
  Array(complex128 value);                                       // NOLINT: weak complex128
  Array(Dim size);  // NOLINT: a size as a number: weak int64, see dim_as_value
  explicit Array(Buffer buffer, bool weak = false);
  explicit Array(ArrayNode* node) : node_(node) { retain(); }
  // A strong scalar literal of the given dtype.
  static Array literal(const Literal& literal);
  static Array literal(double value, DType dtype);

  Array(const Array& other) noexcept : node_(other.node_) { retain(); }
  Array(Array&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  Array& operator=(const Array& other) noexcept {
    Array copy(other);
    std::swap(node_, copy.node_);
    return *this;
  }
  Array& operator=(Array&& other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~Array() {
    if (node_ && node_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete node_;
  }

  explicit operator bool() const = delete;  // use item<bool>(), cond or where
  bool is_valid() const { return node_ != nullptr; }
  const Aval& aval() const { return used().aval_; }
  DType dtype() const { return aval().dtype; }
  const Shape& shape() const { return aval().shape; }
  Dim shape(int axis) const {  // IndexError for one that it does not have
    if (axis < 0 || axis >= ndim()) throw_axis(axis);
    return aval().shape[axis];
  }
  int ndim() const { return aval().rank(); }
  bool is_concrete() const { return used().is_concrete(); }
  ArrayNode* node() const { return node_; }
  bool is_same(const Array& other) const { return node_ == other.node_; }

  // The value in memory. Under grad or vmap, the known value beneath a tracer; a TracerError, which
  // names the line and the way out, when there is none.
  Buffer buffer() const;
  std::optional<Buffer> known_buffer() const;
  // The value as an inline scalar, when it is a literal.
  std::optional<Literal> as_literal() const;
  // The only element, converted. ShapeError when there is not exactly one.
  template <class T>
  T item() const;

  Source birth() const { return used().birth_; }

 private:
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
    if (file) Source::remember(file, line);
  }
  template <class T>
    requires(std::is_arithmetic_v<T>)
  Operand(T value, const char* file = PLAIT_HERE_FILE, int line = PLAIT_HERE_LINE)  // NOLINT
      : Array([&] {
          if constexpr (std::is_same_v<T, bool>)
            return Array(value);
          else if constexpr (std::is_integral_v<T>)
            return Array(static_cast<std::int64_t>(value));
          else
            return Array(static_cast<double>(value));
        }()) {
    if (file) Source::remember(file, line);
  }
  Operand(Dim value) : Array(value) {}  // NOLINT
};

using Arrays = std::vector<Array>;

// The types of arrays, or of other values that have one.
template <class Values>
std::vector<Aval> avals_of(const Values& values) {
  std::vector<Aval> avals;
  avals.reserve(values.size());
  for (const auto& value : values) avals.push_back(value.aval());
  return avals;
}

}  // namespace plait
