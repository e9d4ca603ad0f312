// The catalogue of public functions: parsing signatures, and arguments from any language. See
// catalogue.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/functions/catalogue.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace plait {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, FunctionInfo> functions;
};
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

// Splits at commas outside brackets and quotes.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  bool quoted = false;
  std::string part;
  for (char c : text) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (c == '(' || c == '[')) ++depth;
    if (!quoted && (c == ')' || c == ']')) --depth;
    if (c == ',' && depth == 0 && !quoted) {
      parts.push_back(trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trimmed(part).empty()) parts.push_back(trimmed(part));
  return parts;
}

Argument literal_of(const std::string& text) {
  if (text == "None") return {};
  if (text == "True" || text == "False") return Argument(text == "True");
  if (text.front() == '\'') return Argument(text.substr(1, text.size() - 2));
  if (text.front() == '(' || text.front() == '[') {
    Argument::List list;
    for (const std::string& part : split(std::string_view(text).substr(1, text.size() - 2)))
      list.push_back(literal_of(part));
    return Argument(std::move(list));
  }
  if (std::optional<DType> dtype = dtype_from_name(text)) return Argument(*dtype);
  std::size_t used = 0;
  if (text.find_first_of(".einf") == std::string::npos)
    return Argument(std::int64_t(std::stoll(text, &used)));
  return Argument(std::stod(text, &used));
}

}  // namespace

FunctionInfo& detail::add_function(std::string module, std::string signature, std::string doc) {
  FunctionInfo info;
  const std::size_t open = signature.find('(');
  info.module = std::move(module);
  info.name = signature.substr(0, open);
  info.doc = std::move(doc);
  bool keyword_only = false;
  const std::string text = std::move(signature);
  signature.clear();
  std::remove_copy(text.begin(), text.end(), std::back_inserter(signature), '!');
  for (const std::string& part :
       split(std::string_view(text).substr(open + 1, text.rfind(')') - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    if (part == "/") continue;
    Parameter parameter;
    const std::size_t equals = part.find('=');
    parameter.name = trimmed(part.substr(0, equals));
    if (parameter.name.front() == '*') {
      parameter.name.erase(0, 1);
      parameter.variadic = true;
    }
    parameter.keyword_only = keyword_only;
    keyword_only |= parameter.variadic;
    if (equals != std::string::npos) {
      parameter.accepted = part.back() == '!';
      parameter.fallback_text =
          trimmed(part.substr(equals + 1, part.size() - equals - 1 - parameter.accepted));
      if (parameter.accepted) parameter.type = "object";
      parameter.fallback = literal_of(parameter.fallback_text);
    }
    info.parameters.push_back(std::move(parameter));
  }
  info.signature = std::move(signature);
  std::lock_guard lock(registry().mutex);
  auto [entry, added] = registry().functions.try_emplace({info.module, info.name}, std::move(info));
  if (!added)
    throw InternalError("the function " + entry->first.first + "." + entry->first.second +
                        " is in the catalogue twice");
  return entry->second;
}

std::vector<std::size_t> detail::taken_parameters(const FunctionInfo& info, std::size_t count) {
  std::vector<std::size_t> taken;
  for (std::size_t i = 0; i < info.parameters.size(); ++i)
    if (!info.parameters[i].accepted) taken.push_back(i);
  if (taken.size() != count) throw InternalError(info.signature + " does not fit its C++ function");
  return taken;
}

detail::Accepted::Accepted(const FunctionInfo& info, std::span<const Argument> arguments) {
  struct Case {
    std::string_view name;
    std::span<const std::string_view> words;  // besides None
    const char* fix;
  };
  static constexpr std::string_view orders[] = {"C", "K", "A"};
  static constexpr Case cases[] = {
      {"out", {}, "arrays are not written to: use the result"},
      {"order", orders, "arrays are in row-major order: leave it out"},
      {"out_sharding", {}, "leave it out"},
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!info.parameters[i].accepted || arguments[i].is_none()) continue;
    const auto* word = std::get_if<std::string>(&arguments[i].value);
    if (info.parameters[i].name == "device") {
      if (!word) throw_argument(info, i, arguments[i], "the name of a device");
      scope_.emplace(Device::named(*word));
      continue;
    }
    for (const Case& known : cases) {
      if (known.name != info.parameters[i].name) continue;
      if (!word || std::find(known.words.begin(), known.words.end(), *word) == known.words.end())
        throw ValueError(info.name + ": argument '" + info.parameters[i].name + "' is " +
                             (word ? "'" + *word + "'" : "given"),
                         known.fix);
    }
  }
}

Argument detail::Accepted::placed(Argument result) const {
  auto* array = std::get_if<Array>(&result.value);
  if (scope_ && array && array->is_concrete()) *array = moved_to(*array, DeviceScope::current());
  return result;
}

std::vector<const FunctionInfo*> all_functions() {
  std::lock_guard lock(registry().mutex);
  std::vector<const FunctionInfo*> all;
  for (const auto& [key, info] : registry().functions) all.push_back(&info);
  return all;
}

const FunctionInfo* find_function(std::string_view module, std::string_view name) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().functions.find({std::string(module), std::string(name)});
  return found == registry().functions.end() ? nullptr : &found->second;
}

namespace {

// An array inside an argument whose value is traced; null where there is none.
const Array* unknown_in(const Argument& argument) {
  if (const auto* array = std::get_if<Array>(&argument.value))
    return array->known_buffer() ? nullptr : array;
  if (const auto* list = std::get_if<Argument::List>(&argument.value))
    for (const Argument& part : *list)
      if (const Array* found = unknown_in(part)) return found;
  return nullptr;
}

}  // namespace

void detail::throw_argument(const FunctionInfo& info, std::size_t index, const Argument& argument,
                            const char* wanted) {
  static const char* const kinds[] = {
      "None",    "a bool", "an integer", "a float", "a complex number", "a string",
      "a dtype", "a size", "an array",   "a tree",  "a sequence",       "a function"};
  if (const Array* unknown = unknown_in(argument))
    throw TracerError(
        info.name + ": argument '" + info.parameters[index].name + "' should be " + wanted +
            ", and holds a traced value of type " + unknown->aval().to_string() +
            ": it decides about the shape of the result or the program, which is traced once for "
            "all values",
        "mark the argument static (static_argnames), take the number from a shape, or give the "
        "size a name (sizes=)");
  throw DtypeError(info.name + ": argument '" + info.parameters[index].name + "' is " +
                       kinds[argument.value.index()] + " and should be " + wanted,
                   "call it as " + info.signature);
}

std::optional<Array> detail::as_array(const Argument& argument) {
  if (const auto* array = std::get_if<Array>(&argument.value)) return *array;
  if (const auto* flag = std::get_if<bool>(&argument.value)) return Array(*flag);
  if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) return Array(*integer);
  if (const auto* real = std::get_if<double>(&argument.value)) return Array(*real);
  if (const auto* complex = std::get_if<complex128>(&argument.value)) return Array(*complex);
  if (const auto* dim = std::get_if<Dim>(&argument.value)) return Array(*dim);
  return std::nullopt;
}

std::optional<std::int64_t> detail::as_integer(const Argument& argument) {
  if (const auto* integer = std::get_if<std::int64_t>(&argument.value)) return *integer;
  if (const auto* dim = std::get_if<Dim>(&argument.value); dim && dim->is_constant())
    return dim->constant();
  // NumPy treats an array of one integer as an index.
  if (const auto* array = std::get_if<Array>(&argument.value))
    if (is_integer(array->dtype()) && array->ndim() == 0 && array->known_buffer()) {
      const std::int64_t value = array->item<std::int64_t>();
      if (value < 0 && is_unsigned_integer(array->dtype())) return std::nullopt;  // above 2^63
      return value;
    }
  return std::nullopt;
}

std::optional<double> detail::as_double(const Argument& argument) {
  if (const auto* real = std::get_if<double>(&argument.value)) return *real;
  if (const auto* flag = std::get_if<bool>(&argument.value)) return *flag;
  if (const auto* array = std::get_if<Array>(&argument.value))
    if (array->ndim() == 0 && !is_complex(array->dtype()) && array->known_buffer())
      return array->item<double>();
  if (auto integer = as_integer(argument)) return double(*integer);
  return std::nullopt;
}

std::optional<Shape> detail::as_shape(const Argument& argument) {
  Shape shape;
  auto add = [&](const Argument& part) {
    if (const auto* dim = std::get_if<Dim>(&part.value))
      shape.push_back(*dim);
    else if (auto integer = as_integer(part))
      shape.push_back(*integer);
    else
      return false;
    return true;
  };
  if (const auto* list = std::get_if<Argument::List>(&argument.value)) {
    for (const Argument& part : *list)
      if (!add(part)) return std::nullopt;
    return shape;
  }
  // NumPy treats a vector of integers as a sequence.
  if (const auto* array = std::get_if<Array>(&argument.value);
      array && array->ndim() == 1 && is_integer(array->dtype()) && array->known_buffer()) {
    for (std::int64_t size : array->to_vector<std::int64_t>()) shape.push_back(size);
    return shape;
  }
  if (!add(argument)) return std::nullopt;
  return shape;
}

std::optional<std::vector<int>> detail::as_ints(const Argument& argument) {
  std::optional<Shape> shape = as_shape(argument);
  if (!shape || !shape->is_constant()) return std::nullopt;
  return to_ints(*shape);
}

std::optional<Arrays> detail::as_arrays(const Argument& argument) {
  const auto* list = std::get_if<Argument::List>(&argument.value);
  if (!list) return std::nullopt;
  Arrays arrays;
  for (const Argument& part : *list) {
    std::optional<Array> array = as_array(part);
    if (!array) return std::nullopt;
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

}  // namespace plait
