// How views read their base, and how writes to a view reach it, whatever function made the view.
//
// A view made by a function of the catalogue reads its base by calling the function again. A write
// goes back through the primitives from the base to the view, by their Put rules. So a function
// needs no rule of its own. The list below exists because NumPy defines which functions give views.
// SPDX-License-Identifier: Apache-2.0
#include "views.h"

#include <plait/rules/put.h>
#include <plait/rules/rules.h>

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

// A call of a function of several arrays, as a call on one of them.
ViewCall call_for_one(const FunctionInfo& info, const Array& result) {
  if (info.name != "broadcast_arrays") return {&info, {Argument()}};
  const FunctionInfo* one = find_function("numpy", "broadcast_to");
  Argument::List shape;
  for (Dim dim : result.shape()) shape.push_back(Argument(dim));
  return {one, {Argument(), Argument(std::move(shape))}};
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
  return put_through([&](const Array& x) { return read(x); }, base, value);
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
  // diag of a vector is a new matrix, and imag of real numbers a new array of zeros.
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
  arguments[0] = Argument();  // the call would keep the base's value alive
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

// Updates arrays in the given memory in place, and binds other equations unchanged.
class MemoryTrace final : public Trace {
 public:
  explicit MemoryTrace(const void* memory) : Trace("x[...] = v"), memory_(memory) {}
  Arrays bind(const Primitive& primitive, std::span<const Array> inputs,
              const Params& params) override {
    TraceScope scope(parent());
    if (primitive.overwritten() != 0 || inputs[0].buffer().storage().data() != memory_)
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
  // False if a strided array was copied first.
  return update_item(array, subscripts, values, UpdateKind::set).buffer().storage().data() ==
         memory;
}

}  // namespace plait::python
