// first_nan: a program run one equation at a time, up to the one that makes the first NaN. See
// first_nan.h.
//
// An equation that holds programs is run first, and looked into where it made a NaN: the branch
// that was taken; a loop step by step; of what vmap and mask apply to many examples, that example
// alone, without padding, since what other examples and padding hold is no fault.
// SPDX-License-Identifier: Apache-2.0
#include <plait/inspect/first_nan.h>
#include <plait/rules/bodies.h>
#include <plait/rules/interpret.h>
#include <plait/rules/steps.h>
#include <plait/transforms/transforms.h>
#include "control/rows.h"

#include <cmath>

namespace plait {
namespace {

// The place of the first NaN of an array in memory; of a stack, its element's number comes first.
std::optional<Sizes64> nan_in(const Array& array) {
  if (!is_inexact(array.dtype())) return std::nullopt;
  if (array.aval().stack > 0) {
    for (std::int64_t i = 0; i < num_slices(array); ++i)
      if (std::optional<Sizes64> place = nan_in(slice_at(array, i))) {
        place->insert(0, i);
        return place;
      }
    return std::nullopt;
  }
  const Buffer dense = array.host_buffer().dense();
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

bool any_nan(std::span<const Array> arrays) {
  return std::any_of(arrays.begin(), arrays.end(),
                     [](const Array& array) { return nan_in(array).has_value(); });
}

// --- The program ---------------------------------------------------------------------------------

std::string text_of(const Equation& equation, std::span<const Array> inputs, const Array& output) {
  std::string text(equation.primitive->name());
  if (const std::string params = equation.params.to_string();
      !params.empty() && !holds_bodies(equation.params))
    text += "[" + params + "]";
  for (const Array& input : inputs) text += " " + input.aval().to_string();
  return text + " -> " + output.aval().to_string();
}

struct Interpreter {
  using Value = Array;
  std::vector<FirstNan::Holder> path = {};

  Array lift(const Array& array) { return array; }

  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    Arrays outputs = bind(*equation.primitive, inputs, equation.params);
    for (const Array& output : outputs) {
      const std::optional<Sizes64> place = nan_in(output);
      if (!place) continue;
      if (any_nan(inputs)) break;
      look_into(equation, inputs, {place->begin() + output.aval().stack, place->end()});
      throw FirstNan{text_of(equation, inputs, output), equation.source, path, *place,
                     output.aval()};
    }
    return outputs;
  }

 private:
  // Throws what is found in the programs that an equation holds; element is that of a NaN in its
  // result. A loop runs all of a step at once, and is looked into where that makes a NaN.
  void look_into(const Equation& equation, std::span<const Array> inputs,
                 std::span<const std::int64_t> element) const {
    if (!holds_bodies(equation.params)) return;
    const Primitive& primitive = *equation.primitive;
    if (const Steps::Rule* steps = Steps::table().find(primitive)) {
      const bool is_loop = has_loop_body(equation);
      return (*steps)(inputs, equation.params, element,
                      [&](const Steps::Run& run) { return is_loop ? step(run) : look_into(run); });
    }
    if (!Decompose::table().find(primitive)) return;
    const std::vector<Aval> avals = avals_of(inputs);
    look_into({decomposition(primitive, avals, equation.params),
               {inputs.begin(), inputs.end()},
               std::string(primitive.name())});
  }

  Arrays look_into(const Steps::Run& run) const {
    Interpreter inner{path};
    inner.path.push_back({run.holder, run.where});
    return interpret(inner, run.body, run.inputs);
  }

  Arrays step(const Steps::Run& run) const {
    Arrays outputs = flat::call(run.body, run.inputs, run.holder);
    if (any_nan(outputs) && !any_nan(run.inputs)) look_into(run);
    return outputs;
  }
};

}  // namespace

std::optional<FirstNan> first_nan(const Jaxpr& jaxpr, std::span<const Array> inputs) {
  const std::vector<Aval> avals = avals_of(inputs);
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
  for (auto holder = path.rbegin(); holder != path.rend(); ++holder)
    text += "\n  in `" + holder->name + "`" + (holder->where.empty() ? "" : ", " + holder->where);
  return text;
}

}  // namespace plait
