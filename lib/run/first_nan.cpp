// first_nan: a program run one equation at a time, up to the one that makes the first NaN. See
// first_nan.h.
//
// An equation that holds programs is run first, and looked into where it made a NaN: the branch
// that was taken; a loop step by step; of what vmap and mask apply to many examples, that example
// alone, without padding, since what other examples and padding hold is no fault.
// SPDX-License-Identifier: Apache-2.0
#include <plait/bodies.h>
#include <plait/first_nan.h>
#include <plait/ops.h>
#include <plait/trace/interpret.h>
#include <plait/transforms.h>
#include "rows.h"

#include <cmath>

namespace plait {
namespace {

// --- Arrays and stacks ---------------------------------------------------------------------------

Aval slice_of(const Aval& aval) { return slices_of({aval})[0]; }

std::int64_t num_slices(const Array& array) {
  if (array.aval().stack == 0) return array.shape(0).constant();
  const Stack::Handle& stack = *array.buffer().view().as<Stack::Handle>();
  return stack ? stack->size() : 0;
}

// A slice along the first axis, or an element of a stack: zeros behind its end.
Array slice_at(const Array& array, std::int64_t index) {
  const Aval aval = slice_of(array.aval()), memory = in_memory(aval);
  const Sizes64 shape = memory.shape.to_sizes();
  const View like{nullptr, memory.dtype, shape, dense_strides(shape)};
  if (array.aval().stack == 0) {
    const Buffer whole = array.buffer().dense();
    const std::int64_t bytes = like.size() * size_of(like.dtype);
    return Array(
        new ConcreteNode(aval, whole.view_as(like.shape, like.strides, index * bytes), false));
  }
  if (index >= num_slices(array)) return lax::zeros_like(aval);
  StackReader reader(*array.buffer().view().as<Stack::Handle>(), aval);
  const View& element = reader.at(index);
  if (aval.stack == 0) return Array(new ConcreteNode(aval, Buffer::copy_of(element), false));
  const Storage storage = allocate_handle();
  View view = like;
  view.data = storage.data();
  *view.as<Stack::Handle>() = *element.as<Stack::Handle>();
  return Array(new ConcreteNode(aval, Buffer(storage, view), false));
}

// The example of an array, or of each element of a stack.
Array example_at(const Array& array, std::int64_t index) {
  if (array.aval().stack == 0) return slice_at(array, index);
  return map_stacks(std::span(&array, 1), [&](std::span<const Array> element) {
    const Array& all = element[0];
    Shape start(all.ndim(), Dim(0)), limit = all.shape(), shape = limit;
    start[0] = index;
    limit[0] = index + 1;
    shape.erase(0);
    return lax::reshape(lax::slice(all, start, limit), shape);
  });
}

// The array, or each element of a stack, without padding.
Array without_padding(const Array& array, const Shape& real) {
  if (array.shape() == real) return array;
  const Shape start(array.ndim(), Dim(0));
  if (array.aval().stack == 0) return lax::slice(array, start, real);
  return map_stacks(std::span(&array, 1), [&](std::span<const Array> element) {
    return lax::slice(element[0], start, real);
  });
}

std::int64_t integer_of(const Array& array) {
  return lax::convert_element_type(array, DType::int64).item<std::int64_t>();
}

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
  // Throws what is found in the programs that an equation holds; place is that of a NaN in its
  // result.
  void look_into(const Equation& equation, std::span<const Array> inputs,
                 std::span<const std::int64_t> place) const {
    const Primitive& primitive = *equation.primitive;
    if (!holds_bodies(equation.params)) return;
    if (primitive == call_p) return look_into_call(equation, inputs);
    if (primitive == cond_p) return look_into_cond(CondParams(equation.params), inputs);
    if (primitive == while_p) return look_into_while(WhileParams(equation.params), inputs);
    if (primitive == scan_p) return look_into_scan(ScanParams(equation.params), inputs);
    if (primitive == lanes_p) {
      const LanesParams lanes(equation.params);
      Arrays example = example_of(lanes.lanes, place, inputs);
      if (lanes.guarded) example.erase(example.begin());
      return run(lanes.body, example, {"vmap", example_text(lanes.lanes, place)});
    }
    if (primitive == masked_p)
      return look_into_masked(MaskedParams(equation.params), inputs, place);
    if (!Decompose::table().find(primitive)) return;
    const std::vector<Aval> avals = avals_of(inputs);
    run(decomposition(primitive, avals, equation.params), inputs, {std::string(primitive.name())});
  }

  void run(const Jaxpr& body, std::span<const Array> inputs, FirstNan::Holder holder) const {
    Interpreter inner{path};
    inner.path.push_back(std::move(holder));
    interpret(inner, body, Arrays(inputs.begin(), inputs.end()));
  }

  void look_into_call(const Equation& equation, std::span<const Array> inputs) const {
    const ParamValue* name = equation.params.find("name");
    run(body_of_call(equation.params), inputs,
        {name ? std::get<std::string>(*name) : std::string(equation.primitive->name())});
  }

  void look_into_cond(const CondParams& cond, std::span<const Array> inputs) const {
    const std::int64_t last = std::int64_t(cond.branches.size()) - 1;
    const std::int64_t branch = std::clamp<std::int64_t>(integer_of(inputs[0]), 0, last);
    run(cond.branches[std::size_t(branch)], inputs.subspan(1),
        {"cond", "branch " + std::to_string(branch)});
  }

  // One step of a loop: all at once, and equation by equation where that makes a NaN.
  Arrays step(const Jaxpr& body, const Arrays& inputs, const char* loop,
              std::int64_t number) const {
    Arrays outputs = flat::call(body, inputs, {{"name", std::string(loop)}});
    if (any_nan(outputs) && !any_nan(inputs))
      run(body, inputs, {loop, "step " + std::to_string(number)});
    return outputs;
  }

  void look_into_while(const WhileParams& loop, std::span<const Array> inputs) const {
    const std::size_t n = loop.num_carry;
    Arrays carry = slice(inputs, 0, n);
    const Arrays of_cond = slice(inputs, n, n + loop.num_cond_consts),
                 of_body = slice(inputs, n + loop.num_cond_consts, inputs.size());
    for (std::int64_t number = 0; !loop.max_steps || number < *loop.max_steps; ++number) {
      const Arrays holds =
          flat::call(loop.cond, concatenate(carry, of_cond), {{"name", std::string("while")}});
      if (integer_of(holds[0]) == 0) return;
      carry = slice(step(loop.body, concatenate(carry, of_body), "while", number), 0, n);
    }
  }

  void look_into_scan(const ScanParams& scan, std::span<const Array> inputs) const {
    const std::size_t n = scan.num_carry, first_const = n + scan.num_xs;
    Arrays carry = slice(inputs, 0, n);
    const Arrays consts = slice(inputs, first_const, inputs.size());
    std::int64_t length = scan.length ? scan.length->constant() : 0;
    for (std::size_t i = n; !scan.length && i < first_const; ++i)
      length = std::max(length, num_slices(inputs[i]));
    for (std::int64_t number = 0; number < length; ++number) {
      const std::int64_t index = scan.reverse ? length - 1 - number : number;
      Arrays xs;
      for (std::size_t i = n; i < first_const; ++i) xs.push_back(slice_at(inputs[i], index));
      if (scan.flagged && integer_of(xs[0]) == 0) continue;  // another example's step
      carry =
          slice(step(scan.body, concatenate(concatenate(carry, xs), consts), "scan", index), 0, n);
    }
  }

  // --- Examples ---

  static Arrays example_of(std::span<const Lane> lanes, std::span<const std::int64_t> place,
                           std::span<const Array> inputs) {
    Arrays example(inputs.begin(), inputs.end());
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      for (std::size_t i = 0; i < example.size(); ++i)
        if (lanes[lane].batched[i]) example[i] = example_at(example[i], place[lane]);
    return example;
  }
  static std::string example_text(std::span<const Lane> lanes,
                                  std::span<const std::int64_t> place) {
    std::string text;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane)
      text += (lane ? ", " : "") + std::to_string(place[lane]);
    return "example " + (lanes.size() > 1 ? "(" + text + ")" : text);
  }

  // The body at the real sizes of that example, on arrays without padding.
  void look_into_masked(const MaskedParams& masked, std::span<const Array> inputs,
                        std::span<const std::int64_t> place) const {
    Arrays example = example_of(masked.lanes, place, inputs);
    const std::vector<std::pair<Dim, Dim>> ragged = masked.open_bounds();
    std::vector<std::pair<Dim, Dim>> sizes;
    std::string text;
    for (std::size_t i = 0; i < ragged.size(); ++i) {
      sizes.emplace_back(ragged[i].first, Dim(integer_of(example[i])));
      text += (i ? ", " : "") + std::string(masked.ragged[i].name()) + " = " +
              sizes.back().second.to_string();
    }
    const Jaxpr body = instantiate(masked.open_body(), sizes);
    Arrays real;
    for (int i = 0; i < body->num_binders; ++i)
      real.push_back(
          without_padding(example[ragged.size() + std::size_t(i)], body->avals[i].shape));
    if (!masked.lanes.empty()) text += ", " + example_text(masked.lanes, place);
    run(body, real, {"mask", text});
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
