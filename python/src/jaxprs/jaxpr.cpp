// Jaxprs in Python, and Python functions as functions over flat lists of arrays.
// SPDX-License-Identifier: Apache-2.0
#include "atoms.h"
#include "ir/equation_text.h"

#include <plait/rewriting/edit.h>
#include <plait/rules/cost.h>
#include <plait/rules/interpret.h>

namespace plait::python {
namespace {

py::object param_object(const ParamValue& value, Callables callables) {
  return std::visit(
      [callables](const auto& item) -> py::object {
        using T = std::decay_t<decltype(item)>;
        if constexpr (std::is_same_v<T, Dim>)
          return dim_object(item);
        else if constexpr (std::is_same_v<T, Shape>)
          return shape_object(item);
        else if constexpr (std::is_same_v<T, DType>)
          return dtype_object(item);
        else if constexpr (std::is_same_v<T, Jaxpr>)
          return jaxpr_object(item);
        else if constexpr (std::is_same_v<T, std::vector<Jaxpr>>) {
          py::tuple result(item.size());
          for (std::size_t i = 0; i < item.size(); ++i) result[i] = jaxpr_object(item[i]);
          return result;
        } else if constexpr (std::is_same_v<T, Callable>) {
          const bool named = callables == Callables::names || !item.template holds<PyObject>();
          if (named) return py::str("@" + item.name());
          return borrowed(&item.template as<PyObject>());
        } else {
          return py::cast(item);
        }
      },
      value);
}

}  // namespace

py::dict params_object(const Params& params, Callables callables) {
  py::dict result;
  for (const auto& [name, value] : params.entries())
    result[py::str(name)] = param_object(value, callables);
  return result;
}

namespace {

// A subclass of str, so that a var as a dict key or in text is its name in the printed program.
py::handle var_type() {
  static const py::handle type = [] {
    py::dict members;
    members["__doc__"] =
        "A var of a program: its name, as text gives it, with `aval`, its type, and `id`, its "
        "number.";
    members["__module__"] = "plait";
    return borrowed(reinterpret_cast<PyObject*>(&PyType_Type))(
               "Var", py::make_tuple(borrowed(reinterpret_cast<PyObject*>(&PyUnicode_Type))),
               members)
        .release();
  }();
  return type;
}

}  // namespace

py::object var_object(Var var, const Aval& aval, std::uintptr_t owner) {
  py::object object = var_type()(var_name(var.id));
  object.attr("aval") = aval_object(aval);
  object.attr("id") = var.id;
  object.attr("_owner") = owner;
  return object;
}

py::object atom_object(const Atom& atom, const JaxprData& jaxpr) {
  if (!atom.is_var()) return to_python(Array::literal(atom.literal()));
  return var_object(atom.var(), jaxpr.aval(atom.var()), reinterpret_cast<std::uintptr_t>(&jaxpr));
}

Var to_var(py::handle object, std::span<const std::uintptr_t> owners, const char* what) {
  const bool is_var = PyUnicode_Check(object.ptr()) && py::hasattr(object, "_owner");
  const auto owner = is_var ? object.attr("_owner").cast<std::uintptr_t>() : 0;
  if (std::find(owners.begin(), owners.end(), owner) == owners.end() || !is_var)
    throw ValueError(std::string(what) + ": " + text_of(object.ptr()) +
                         (is_var ? " is a var of another program" : " is no var"),
                     "give a var of the same program or builder");
  return {object.attr("id").cast<int>()};
}

Atom to_atom(py::handle object, std::span<const std::uintptr_t> owners, const char* what) {
  if (PyUnicode_Check(object.ptr())) return to_var(object, owners, what);
  const Array array = to_array(object.ptr(), {what});
  if (std::optional<Literal> literal = array.as_literal()) return *literal;
  throw ValueError(
      std::string(what) + ": an array of type " + array.aval().to_string() + " is no literal",
      "give vars and numbers; arrays are inputs of a program");
}

py::object jaxpr_object(const Jaxpr& jaxpr) { return py::cast(jaxpr); }
const Jaxpr& jaxpr_of(py::handle object) { return object.cast<const Jaxpr&>(); }

Arrays to_arrays(py::handle sequence) {
  Arrays arrays;
  for (py::handle item : sequence) arrays.push_back(to_array(item.ptr()));
  return arrays;
}

py::list from_arrays(std::span<const Array> arrays) {
  py::list list(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i)
    PyList_SET_ITEM(list.ptr(), i, to_python(arrays[i]).release().ptr());
  return list;
}

Function to_function(py::object callable, std::string what, Traces traces) {
  const std::uint64_t around = Trace::current() ? Trace::current()->id() : 0;
  // The last owner may release the callable without the GIL.
  return [shared = share(std::move(callable)), what = std::move(what), traces,
          around](std::span<const Array> inputs) {
    py::gil_scoped_acquire gil;
    const ArgumentNames none({});
    const LivingArrays living;
    const py::object function = borrowed(static_cast<PyObject*>(shared.get()));
    py::object result = function(from_arrays(inputs));
    Arrays outputs;
    for (py::handle item : result) outputs.push_back(to_array(item.ptr(), {what}));
    result = {};
    const bool ends = Trace::current() && Trace::current()->id() != around;
    if (traces == Traces::function && ends && living.count() != 0)
      check_nothing_left(function, py::list());
    return outputs;
  };
}

void check_nothing_left(const py::object& function, const py::list& objects) {
  py::module_::import("plait._left").attr("check")(function, objects);
}

ArgumentNames::Name to_names(const py::object& place) {
  return [place](std::size_t index) { return std::string(py::str(place(index))); };
}

bool is_worth_releasing_gil(const Jaxpr& program) {
  constexpr double some_time = 8000;  // ns
  constexpr double many = 1000;       // the steps of a loop of unknown length
  // What an equation of a compiled program costs less than alone. It is subtracted once per
  // equation, not once per step of a loop.
  constexpr double saved = 48;
  return estimated_time(program, many) - saved * double(num_equations(program)) > some_time;
}

void add_jaxpr(py::module_& module) {
  py::class_<EquationView>(module, "JaxprEquation", "One equation of a jaxpr.")
      .def_property_readonly(
          "primitive",
          [](const EquationView& view) { return std::string(view.equation().primitive->name()); })
      .def_property_readonly(
          "inputs",
          [](const EquationView& view) {
            py::list result;
            for (const Atom& atom : view.equation().inputs)
              result.append(atom_object(atom, *view.jaxpr));
            return result;
          },
          "Vars, and literals as arrays.")
      .def_property_readonly("outputs",
                             [](const EquationView& view) {
                               py::list result;
                               for (const Var& var : view.equation().outputs)
                                 result.append(atom_object(var, *view.jaxpr));
                               return result;
                             })
      .def_property_readonly("in_avals",
                             [](const EquationView& view) {
                               py::list result;
                               for (const Atom& atom : view.equation().inputs)
                                 result.append(aval_object(view.jaxpr->aval(atom)));
                               return result;
                             })
      .def_property_readonly("out_avals",
                             [](const EquationView& view) {
                               py::list result;
                               for (const Var& var : view.equation().outputs)
                                 result.append(aval_object(view.jaxpr->aval(var)));
                               return result;
                             })
      .def_property_readonly("params",
                             [](const EquationView& view) {
                               return params_object(view.equation().params, Callables::names);
                             })
      .def_property_readonly("source",
                             [](const EquationView& view) { return view.equation().source; })
      .def("__str__",
           [](const EquationView& view) { return text_of(*view.jaxpr, view.equation()); })
      .def("__repr__",
           [](const EquationView& view) { return text_of(*view.jaxpr, view.equation()); })
      .def(
          "bind",
          [](const EquationView& view, py::args arguments) {
            const Equation& equation = view.equation();
            const std::size_t wanted = equation.inputs.size();
            if (arguments.size() != wanted)
              throw TreeError("bind: `" + std::string(equation.primitive->name()) + "` takes " +
                                  std::to_string(wanted) + " arrays, and got " +
                                  std::to_string(arguments.size()),
                              "give one for each input of the equation");
            return from_arrays(bind(*equation.primitive, to_arrays(arguments), equation.params));
          },
          "The list of outputs of its primitive, with its parameters, on other arrays.");
  py::class_<Jaxpr>(module, "Jaxpr",
                    "A program: typed inputs, equations, outputs. Its text is what str() gives.")
      .def_property_readonly("in_avals",
                             [](const Jaxpr& jaxpr) {
                               py::list result;
                               for (const Aval& aval : jaxpr->input_avals())
                                 result.append(aval_object(aval));
                               return result;
                             })
      .def_property_readonly("out_avals",
                             [](const Jaxpr& jaxpr) {
                               py::list result;
                               for (const Aval& aval : jaxpr->output_avals())
                                 result.append(aval_object(aval));
                               return result;
                             })
      .def_property_readonly("sizes",
                             [](const Jaxpr& jaxpr) {
                               py::list result;
                               for (Dim size : jaxpr->sizes) result.append(dim_object(size));
                               return result;
                             })
      .def_property_readonly("inputs",
                             [](const Jaxpr& jaxpr) {
                               py::list result;
                               for (int i = 0; i < jaxpr->num_binders; ++i)
                                 result.append(atom_object(Var{i}, *jaxpr));
                               return result;
                             })
      .def_property_readonly("outputs",
                             [](const Jaxpr& jaxpr) {
                               py::list result;
                               for (const Atom& atom : jaxpr->outputs)
                                 result.append(atom_object(atom, *jaxpr));
                               return result;
                             })
      .def_property_readonly("eqns",
                             [](const Jaxpr& jaxpr) {
                               py::list result;
                               for (std::size_t i = 0; i < jaxpr->equations.size(); ++i)
                                 result.append(py::cast(EquationView{jaxpr, i}));
                               return result;
                             })
      .def(
          "with_lines", [](const Jaxpr& jaxpr) { return print(jaxpr, ShowSources::yes); },
          "The text with the user's line beside each equation.")
      .def("__call__",
           [](const Jaxpr& jaxpr, py::args arguments) {
             return from_arrays(eval_jaxpr(jaxpr, to_arrays(arguments)));
           })
      .def("__str__", [](const Jaxpr& jaxpr) { return print(jaxpr); })
      .def("__repr__", [](const Jaxpr& jaxpr) { return print(jaxpr); })
      .def("__hash__", &Jaxpr::hash)
      .def("__copy__", [](py::object self) { return self; })
      .def("__deepcopy__", [](py::object self, py::object) { return self; })
      .def("__reduce__",
           [](const Jaxpr& jaxpr) {
             if (holds_callable(jaxpr))
               throw ValueError("pickle: the jaxpr holds functions of this process",
                                "save the program with plait.save, which names what it lacks");
             return py::make_tuple(py::module_::import("plait._plait").attr("parse_jaxpr"),
                                   py::make_tuple(print(jaxpr)));
           })
      .def("__eq__", [](const Jaxpr& a, py::object b) {
        return py::isinstance<Jaxpr>(b) && a == b.cast<Jaxpr>();
      });
  module.attr("Var") = var_type();
  module.def("parse_jaxpr", [](const std::string& text) { return parse(text); });
  module.def("eval_jaxpr", [](const Jaxpr& jaxpr, py::object inputs) {
    return from_arrays(eval_jaxpr(jaxpr, to_arrays(inputs)));
  });
  module.def("decomposition", [](const Jaxpr& owner, std::size_t index) {
    const Equation& equation = owner->equations[index];
    std::vector<Aval> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(owner->aval(atom));
    return decomposition(*equation.primitive, inputs, equation.params);
  });
}

}  // namespace plait::python
