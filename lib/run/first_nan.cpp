// first_nan: a program run one equation at a time, up to the one that makes the first NaN. An
// equation that holds a program is run first, and looked into where it made one. See first_nan.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/first_nan.h>
#include <plait/ops.h>
#include <plait/trace/interpret.h>
#include <plait/transforms.h>

#include <cmath>

namespace plait {
namespace {

// The place of the first NaN of an array in memory.
std::optional<Sizes64> nan_in(const Array& array) {
  if (!is_inexact(array.dtype())) return std::nullopt;
  const Buffer dense = array.buffer().dense();
  const std::int64_t size = num_elements(dense.shape());
  const std::int64_t found = visit_dtype(dense.dtype(), [&](auto element) -> std::int64_t {
    using T = decltype(element);
    const T* data = static_cast<const T*>(dense.data());
    for (std::int64_t i = 0; i < size; ++i) {
      if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>) {
        if (std::isnan(data[i].real()) || std::isnan(data[i].imag())) return i;
      } else if constexpr (!std::is_integral_v<T>) {
        if (std::isnan(float(data[i]))) return i;
      }
    }
    return size;
  });
  if (found == size) return std::nullopt;
  Sizes64 place = dense.shape();
  std::int64_t rest = found;
  for (std::size_t axis = place.size(); axis-- > 0;) {
    const std::int64_t extent = dense.shape()[axis];
    place[axis] = rest % extent;
    rest /= extent;
  }
  return place;
}

bool holds_program(const Params& params) {
  for (const auto& [name, value] : params.entries())
    if (std::holds_alternative<Jaxpr>(value) || std::holds_alternative<std::vector<Jaxpr>>(value))
      return true;
  return false;
}

std::string text_of(const Equation& equation, std::span<const Array> inputs, const Array& output) {
  std::string text(equation.primitive->name());
  if (const std::string params = equation.params.to_string();
      !params.empty() && !holds_program(equation.params))
    text += "[" + params + "]";
  for (const Array& input : inputs) text += " " + input.aval().to_string();
  return text + " -> " + output.aval().to_string();
}

struct Interpreter {
  using Value = Array;
  std::vector<std::string> path = {};

  Array lift(const Array& array) { return array; }

  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    Arrays outputs = bind(*equation.primitive, inputs, equation.params);
    for (const Array& output : outputs) {
      const std::optional<Sizes64> place = nan_in(output);
      if (!place) continue;
      if (std::any_of(inputs.begin(), inputs.end(),
                      [](const Array& input) { return nan_in(input).has_value(); }))
        break;
      look_into(equation, inputs);
      throw FirstNan{text_of(equation, inputs, output), equation.source, path, *place,
                     output.aval()};
    }
    return outputs;
  }

 private:
  void look_into(const Equation& equation, std::span<const Array> inputs) const {
    if (!holds_program(equation.params)) return;
    Jaxpr body;
    if (*equation.primitive == call_p) {
      body = body_of_call(equation.params);
    } else if (Decompose::table().find(*equation.primitive)) {
      std::vector<Aval> avals;
      for (const Array& input : inputs) avals.push_back(input.aval());
      body = decomposition(*equation.primitive, avals, equation.params);
    } else {
      return;
    }
    Interpreter inner{path};
    const ParamValue* name = equation.params.find("name");
    inner.path.push_back(name ? std::get<std::string>(*name)
                              : std::string(equation.primitive->name()));
    interpret(inner, body, Arrays(inputs.begin(), inputs.end()));
  }
};

}  // namespace

std::optional<FirstNan> first_nan(const Jaxpr& jaxpr, std::span<const Array> inputs) {
  std::vector<Aval> avals;
  for (const Array& input : inputs) avals.push_back(input.aval());
  const Jaxpr program = jaxpr->sizes.empty() ? jaxpr : instantiate_for(jaxpr, avals);
  try {
    interpret(Interpreter{}, program, Arrays(inputs.begin(), inputs.end()));
  } catch (FirstNan& found) {
    return std::move(found);
  }
  return std::nullopt;
}

std::string FirstNan::to_string() const {
  std::string text = "NaN first at element (";
  for (std::size_t i = 0; i < element.size(); ++i)
    text += (i ? ", " : "") + std::to_string(element[i]);
  text += element.size() == 1 ? ",)" : ")";
  text += " of the result of `" + equation + "`";
  if (source) text += "\n  " + source.to_string();
  for (auto name = path.rbegin(); name != path.rend(); ++name) text += "\n  in `" + *name + "`";
  return text;
}

}  // namespace plait
