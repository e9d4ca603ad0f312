// The parameters of an equation: an immutable record from names to values, equal by value.
//
// Integers and sizes are one kind of value (Dim), lists of them another (Shape): a size that varies
// may stand wherever an integer may. A Callable is a host function or a policy; it is compared by
// identity, printed @name#3, and refused by save and parse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/dtype.h>
#include <plait/base/error.h>
#include <plait/base/shape.h>

#include <any>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

namespace plait {

struct JaxprData;

// A program: closed and immutable; a counted pointer to its data (jaxpr.h). Equal when the
// programs are structurally equal, whatever lines and names they came from.
class Jaxpr {
 public:
  Jaxpr() = default;
  explicit Jaxpr(std::shared_ptr<const JaxprData> data) : data_(std::move(data)) {}
  explicit operator bool() const { return data_ != nullptr; }
  const JaxprData* operator->() const { return data_.get(); }
  const JaxprData& operator*() const { return *data_; }
  std::size_t hash() const;
  std::string to_string() const;
  bool operator==(const Jaxpr& other) const;

 private:
  std::shared_ptr<const JaxprData> data_;
};

class Callable {
 public:
  Callable() = default;
  template <class T>
  Callable(std::string name, std::shared_ptr<T> target)
      : Callable(std::move(name), std::shared_ptr<void>(std::move(target)), typeid(T)) {
    static_assert(!std::is_void_v<T>);
  }
  const std::string& name() const { return name_; }
  int number() const { return number_; }
  // Whether it was made from a T; as throws an InternalError where it was not.
  template <class T>
  bool holds() const {
    return target_ && type_ == typeid(T);
  }
  template <class T>
  T& as() const {
    if (!holds<T>()) throw_other_type(typeid(T));
    return *static_cast<T*>(target_.get());
  }
  bool operator==(const Callable& other) const { return target_ == other.target_; }

 private:
  friend class Params;
  Callable(std::string name, std::shared_ptr<void> target, std::type_index type);
  [[noreturn]] void throw_other_type(std::type_index wanted) const;
  std::string name_;
  std::shared_ptr<void> target_;
  std::type_index type_ = typeid(void);
  int number_ = 0;
};

using ParamValue =
    std::variant<bool, Dim, Shape, double, DType, std::string, Jaxpr, std::vector<Jaxpr>, Callable>;

class Params {
 public:
  using Entry = std::pair<std::string, ParamValue>;
  Params() = default;  // empty
  Params(std::initializer_list<Entry> entries);
  explicit Params(
      std::vector<Entry> entries);  // sorted by name; a repeated name is an InternalError

  bool has(std::string_view name) const { return find(name) != nullptr; }
  const ParamValue* find(std::string_view name) const;
  // The value as T; InternalError when the name is absent or holds another kind.
  template <class T>
  const T& get(std::string_view name) const;
  std::int64_t integer(std::string_view name) const { return get<Dim>(name).constant(); }
  bool flag(std::string_view name) const { return get<bool>(name); }
  std::vector<int> ints(std::string_view name) const { return to_ints(get<Shape>(name)); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }

  // A copy in which name has this value (added when absent), or is removed.
  Params with(std::string_view name, ParamValue value) const;
  Params without(std::string_view name) const;

  std::span<const Entry> entries() const;
  std::size_t hash() const;
  std::string to_string() const;  // "axis=0, shape=(3,n)"
  bool operator==(const Params& other) const;

 private:
  struct Record;
  std::shared_ptr<const Record> record_;
};

[[noreturn]] void throw_missing_param(const Params& params, std::string_view name);

template <class T>
const T& Params::get(std::string_view name) const {
  const ParamValue* value = find(name);
  const T* typed = value ? std::get_if<T>(value) : nullptr;
  if (!typed) throw_missing_param(*this, name);
  return *typed;
}

// Every named size that occurs in a value, added to sizes in order of first occurrence.
void collect_sizes(const ParamValue& value, std::vector<Dim>& sizes);
void collect_sizes(const Shape& shape, std::vector<Dim>& sizes);
using SizeSubstitution = std::span<const std::pair<Dim, Dim>>;
Shape substitute(const Shape& shape, SizeSubstitution replacements);
// Sizes inside nested jaxprs are bound there and stay; the list "sizes" of their values changes.
Params substitute(const Params& params, SizeSubstitution replacements);

}  // namespace plait
