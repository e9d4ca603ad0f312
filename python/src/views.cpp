// How views read their base and how it is written to through them, whatever function made them.
//
// A call of the catalogue is read by calling it again. To be written through, it is followed: an
// interpreter notes which primitives lead from the base to the view, and each has an inverse that
// puts elements back. So a function needs no rule of its own; it is in the list below, because
// NumPy says whether it gives views.
// SPDX-License-Identifier: Apache-2.0
#include "views.h"

#include <plait/ops.h>
#include <plait/trace/interpret.h>

#include <algorithm>

namespace plait::python {

// --- Which functions give views ------------------------------------------------------------------

Gives given_by(const FunctionInfo& info) {
  using Names = std::vector<std::string_view>;
  static const Names views{"reshape",    "ravel",       "transpose",  "permute_dims",
                           "swapaxes",   "moveaxis",    "rollaxis",   "matrix_transpose",
                           "squeeze",    "expand_dims", "atleast_1d", "atleast_2d",
                           "atleast_3d", "split",       "hsplit",     "vsplit",
                           "dsplit",     "array_split", "unstack",    "flip",
                           "fliplr",     "flipud",      "rot90",      "real",
                           "imag"};
  static const Names unwritable{"diagonal", "diag", "broadcast_to", "broadcast_arrays"};
  const auto has = [&](const Names& names) {
    return std::find(names.begin(), names.end(), info.name) != names.end();
  };
  if (info.module != "numpy" && info.module != "numpy.linalg") return Gives::values;
  return has(views) ? Gives::views : has(unwritable) ? Gives::unwritable : Gives::values;
}

namespace {

const Array* array_in(const Argument& argument) { return std::get_if<Array>(&argument.value); }

// A function of several arrays, as a call for one of them.
ViewCall call_for_one(const FunctionInfo& info, const Array& result) {
  if (info.name != "broadcast_arrays") return {&info, {Argument()}};
  const FunctionInfo* one = find_function("numpy", "broadcast_to");
  Argument::List shape;
  for (Dim dim : result.shape()) shape.push_back(Argument(dim));
  return {one, {Argument(), Argument(std::move(shape))}};
}

// --- The way from a base to a view ---------------------------------------------------------------

// A value on the way, and the equation that made it of the one before; the base has none.
struct Step {
  Array value;
  std::shared_ptr<const Step> from = {};
  const Primitive* primitive = nullptr;
  Params params = {};
  std::size_t output = 0;
};

struct WayInterpreter {
  using Value = std::shared_ptr<const Step>;
  Aval aval(const Value& step) const { return step->value.aval(); }
  std::optional<Array> known(const Value& step) const { return step->value; }
  Value lift(const Array& array) const { return std::make_shared<const Step>(Step{array}); }
  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) const {
    Arrays arrays;
    for (const Value& input : inputs) arrays.push_back(input->value);
    const Arrays results = bind(*equation.primitive, arrays, equation.params);
    std::vector<Value> steps;
    for (std::size_t i = 0; i < results.size(); ++i)
      steps.push_back(std::make_shared<const Step>(
          Step{results[i], inputs[0], equation.primitive, equation.params, i}));
    return steps;
  }
};

// x with a piece of it, from start on along an axis, replaced.
Array put_piece(const Array& x, int axis, Dim start, const Array& piece) {
  Subscripts subscripts(std::size_t(axis), Range{});
  subscripts.push_back(Range{start, start + piece.shape(axis), {}});
  return update_item(x, subscripts, piece, UpdateKind::set);
}

// What a step started from, if it is to give value: the inverse of each primitive that moves
// elements.
Array undo(const Step& step, const Array& value) {
  const Array& x = step.from->value;
  const Primitive& primitive = *step.primitive;
  if (primitive == reshape_p || primitive == broadcast_in_dim_p)  // the latter adds axes of size 1
    return lax::reshape(value, x.shape());
  if (primitive == transpose_p) {
    const std::vector<int> order = step.params.ints("permutation");
    std::vector<int> inverse(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) inverse[std::size_t(order[i])] = int(i);
    return lax::transpose(value, inverse);
  }
  if (primitive == rev_p) return lax::rev(value, step.params.ints("axes"));
  if (primitive == slice_p) {
    const Shape &start = step.params.get<Shape>("start"), &limit = step.params.get<Shape>("limit"),
                &strides = step.params.get<Shape>("strides");
    Subscripts subscripts;
    for (std::size_t i = 0; i < start.size(); ++i)
      subscripts.push_back(Range{start[i], limit[i], strides[i]});
    return update_item(x, subscripts, value, UpdateKind::set);
  }
  if (primitive == split_p) {
    Dim start = 0;
    const Shape& pieces = step.params.get<Shape>("pieces");
    for (std::size_t i = 0; i < step.output; ++i) start = start + pieces[i];
    return put_piece(x, int(step.params.get<Dim>("axis").constant()), start, value);
  }
  if (primitive == real_p) return lax::complex(value, lax::imag(x));
  if (primitive == imag_p) return lax::complex(lax::real(x), value);
  throw InternalError("a view was made by " + std::string(primitive.name()) +
                      ", which has no inverse");
}

}  // namespace

Arrays ViewMap::read_parts(const Array& base) const {
  std::vector<Argument> arguments = call->arguments;
  const bool collects = call->info->parameters[0].variadic;
  arguments[0] = collects ? Argument(Argument::List{Argument(base)}) : Argument(base);
  for (std::size_t i = arguments.size(); i < call->info->parameters.size(); ++i)
    arguments.push_back(call->info->parameters[i].fallback.value_or(Argument()));
  const Argument result = call->info->call(arguments);
  if (const Array* array = array_in(result)) return {*array};
  Arrays parts;
  for (const Argument& item : std::get<Argument::List>(result.value))
    parts.push_back(*array_in(item));
  return parts;
}

Array ViewMap::read(const Array& base) const {
  return call ? read_parts(base).at(part.value_or(0)) : getitem(base, subscripts);
}

Array ViewMap::write(const Array& base, const Array& value) const {
  if (!call) return update_item(base, subscripts, value, UpdateKind::set);
  WayInterpreter interpreter;
  OnlineTrace<WayInterpreter> trace("a view", interpreter);
  std::shared_ptr<const Step> step;
  {
    TraceScope scope(&trace);
    step = trace.value_of(read(trace.wrap(interpreter.lift(base))));
  }
  Array result = value;
  for (; step->from; step = step->from) result = undo(*step, result);
  return result;
}

namespace {

bool asks_for_copy(const FunctionInfo& info, std::span<const Argument> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (info.parameters[i].name == "copy")
      if (const bool* asks = std::get_if<bool>(&arguments[i].value)) return *asks;
  return false;
}

}  // namespace

py::object give_views(const FunctionInfo& info, Gives gives, PyObject* first,
                      std::vector<Argument> arguments, const Argument& result) {
  if (asks_for_copy(info, arguments)) return to_python(std::get<Array>(result.value));
  const char* made_by = gives == Gives::unwritable ? info.name.c_str() : nullptr;
  // diag of a vector is a new matrix, imag of real numbers a new array of zeros.
  const bool is_new = info.name == "diag" && array_in(arguments[0])->ndim() == 1;
  if (info.name == "imag" && !is_complex(array_in(arguments[0])->dtype()))
    made_by = "imag of real numbers";
  auto give = [&](PyObject* base, const Array& array, ViewMap map) {
    if (is_new || !is_array(base)) return to_python(array);
    return owned(wrap_view(reinterpret_cast<ArrayObject*>(base), std::move(map), array, made_by));
  };
  const bool is_variadic = info.parameters[0].variadic;
  const Array* single = array_in(result);
  if (single && is_variadic) {
    PyObject* base = PyTuple_GET_ITEM(first, 0);
    return give(base, *single, {{}, std::make_shared<ViewCall>(call_for_one(info, *single))});
  }
  arguments[0] = Argument();  // the base would keep itself alive
  const auto call = std::make_shared<const ViewCall>(ViewCall{&info, std::move(arguments)});
  if (single) return give(first, *single, {{}, call});
  const auto& list = std::get<Argument::List>(result.value);
  py::tuple views(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Array& array = *array_in(list[i]);
    if (is_variadic)
      views[i] = give(PyTuple_GET_ITEM(first, Py_ssize_t(i)), array,
                      {{}, std::make_shared<ViewCall>(call_for_one(info, array))});
    else
      views[i] = give(first, array, {{}, call, i});
  }
  return views;
}

// --- Writing to memory ---------------------------------------------------------------------------

namespace {

// Updates of arrays that lie in some memory take place there; other equations are as they are.
class MemoryTrace final : public Trace {
 public:
  explicit MemoryTrace(const void* memory) : Trace("x[...] = v"), memory_(memory) {}
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
              const Params& params) override {
    TraceScope scope(parent());
    const bool updates = primitive == dynamic_update_slice_p || primitive == scatter_p;
    if (!updates || inputs[0].buffer().storage().data() != memory_)
      return plait::bind(primitive, inputs, params);
    std::vector<View> views;
    for (const Array& input : inputs) views.push_back(input.buffer().view());
    rule<Eval>(primitive)(views, std::span(views).first(1), params);
    return {inputs[0]};
  }
  std::string why_unknown() const override { return "its memory is written to"; }

 private:
  const void* memory_;
};

}  // namespace

bool write_memory(const Array& array, const Subscripts& subscripts, const Array& values) {
  if (write_item(array, subscripts, values)) return true;
  const void* memory = array.buffer().storage().data();
  MemoryTrace trace(memory);
  TraceScope scope(&trace);
  // What is strided may have been copied first.
  return update_item(array, subscripts, values, UpdateKind::set).buffer().storage().data() ==
         memory;
}

}  // namespace plait::python
