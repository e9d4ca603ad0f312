// The parameters of equations. See params.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/hash.h>
#include <plait/ir/jaxpr.h>
#include <plait/ir/params.h>

#include <algorithm>
#include <atomic>
#include <bit>

namespace plait {

struct Params::Record {
  std::vector<Entry> entries;
  std::size_t hash;
};

namespace {

std::size_t hash_of(const ParamValue& value) {
  const std::size_t hash = std::visit(
      [](const auto& v) -> std::size_t {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, bool>)
          return v;
        else if constexpr (std::is_same_v<T, double>)
          return std::hash<std::uint64_t>{}(std::bit_cast<std::uint64_t>(v));
        else if constexpr (std::is_same_v<T, DType>)
          return static_cast<std::size_t>(v);
        else if constexpr (std::is_same_v<T, std::string>)
          return std::hash<std::string>{}(v);
        else if constexpr (std::is_same_v<T, std::vector<Jaxpr>>) {
          std::size_t h = v.size();
          for (const Jaxpr& jaxpr : v) h = hash_combine(h, jaxpr.hash());
          return h;
        } else if constexpr (std::is_same_v<T, Callable>)
          return v.number();
        else
          return v.hash();
      },
      value);
  return hash_combine(value.index(), hash);
}

bool same(const ParamValue& a, const ParamValue& b) {
  if (a.index() != b.index()) return false;
  // Floats are compared by bits: 0.0 and -0.0 are different programs, NaN is one program.
  if (const double* x = std::get_if<double>(&a))
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(std::get<double>(b));
  return a == b;
}

}  // namespace

Callable::Callable(std::string name, std::shared_ptr<void> target, std::type_index type)
    : name_(std::move(name)), target_(std::move(target)), type_(type) {
  static std::atomic<int> count{0};
  number_ = ++count;
}

void Callable::throw_other_type(std::type_index wanted) const {
  throw InternalError("the callable @" + name_ + "#" + std::to_string(number_) + " is a " +
                      type_.name() + " where a " + wanted.name() + " is needed");
}

Params::Params(std::initializer_list<Entry> entries) : Params(std::vector<Entry>(entries)) {}

Params::Params(std::vector<Entry> entries) {
  if (entries.empty()) return;
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::size_t hash = entries.size();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i && entries[i].first == entries[i - 1].first)
      throw InternalError("the parameter '" + entries[i].first + "' is given twice");
    hash = hash_combine(hash_combine(hash, std::hash<std::string>{}(entries[i].first)),
                        hash_of(entries[i].second));
  }
  record_ = std::make_shared<const Record>(Record{std::move(entries), hash});
}

const ParamValue* Params::find(std::string_view name) const {
  if (record_)
    for (const Entry& entry : record_->entries)
      if (entry.first == name) return &entry.second;
  return nullptr;
}

Params Params::with(std::string_view name, ParamValue value) const {
  std::vector<Entry> entries;
  for (const Entry& entry : this->entries())
    if (entry.first != name) entries.push_back(entry);
  entries.emplace_back(std::string(name), std::move(value));
  return Params(std::move(entries));
}

Params Params::without(std::string_view name) const {
  std::vector<Entry> entries;
  for (const Entry& entry : this->entries())
    if (entry.first != name) entries.push_back(entry);
  return Params(std::move(entries));
}

std::span<const Params::Entry> Params::entries() const {
  return record_ ? std::span<const Entry>(record_->entries) : std::span<const Entry>();
}

std::size_t Params::hash() const { return record_ ? record_->hash : 0; }

bool Params::operator==(const Params& other) const {
  if (record_ == other.record_) return true;
  if (hash() != other.hash() || entries().size() != other.entries().size()) return false;
  for (std::size_t i = 0; i < entries().size(); ++i)
    if (entries()[i].first != other.entries()[i].first ||
        !same(entries()[i].second, other.entries()[i].second))
      return false;
  return true;
}

void throw_missing_param(const Params& params, std::string_view name) {
  throw InternalError("no parameter '" + std::string(name) + "' of the wanted kind in [" +
                      params.to_string() + "]");
}

void collect_sizes(const Shape& shape, std::vector<Dim>& sizes) {
  for (Dim dim : shape)
    if (!dim.is_constant())
      for (Dim size : dim.sizes())
        if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
}

void collect_sizes(const ParamValue& value, std::vector<Dim>& sizes) {
  if (const Dim* dim = std::get_if<Dim>(&value)) collect_sizes(Shape{*dim}, sizes);
  if (const Shape* shape = std::get_if<Shape>(&value)) collect_sizes(*shape, sizes);
}

Shape substitute(const Shape& shape, SizeSubstitution replacements) {
  Shape result = shape;
  for (Dim& dim : result)
    if (!dim.is_constant()) dim = dim.substitute(replacements);
  return result;
}

Params substitute(const Params& params, SizeSubstitution replacements) {
  bool changed = false;
  std::vector<Params::Entry> entries(params.entries().begin(), params.entries().end());
  for (Params::Entry& entry : entries) {
    if (Dim* dim = std::get_if<Dim>(&entry.second)) {
      if (dim->is_constant()) continue;
      *dim = dim->substitute(replacements);
      changed = true;
    } else if (Shape* shape = std::get_if<Shape>(&entry.second)) {
      if (shape->is_constant()) continue;
      *shape = substitute(*shape, replacements);
      changed = true;
    }
  }
  return changed ? Params(std::move(entries)) : params;
}

}  // namespace plait
