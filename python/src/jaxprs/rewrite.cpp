// Builders of programs, queries about them, rules and passes, for _rewrite.py, which handles
// functions and trees.
// SPDX-License-Identifier: Apache-2.0
#include "atoms.h"

#include <plait/rewriting/rewrite.h>
#include <plait/transforms/composites.h>

#include <atomic>

namespace plait::python {
namespace {

// --- Builders ------------------------------------------------------------------------------------

struct BuilderObject {
  explicit BuilderObject(const py::object& jaxpr) : number(2 * ++made - 1) {
    owners.push_back(number);
    if (jaxpr.is_none()) return;
    origin = jaxpr_of(jaxpr);
    builder = ProgramBuilder(origin);
    owners.push_back(owner_of(origin));
  }
  static inline std::atomic<std::uintptr_t> made{0};
  std::uintptr_t number;  // odd, unlike the address of any program
  Jaxpr origin;           // the program it began with, whose vars it accepts
  std::vector<std::uintptr_t> owners;
  ProgramBuilder builder;

  py::object object(const Atom& atom) const {
    if (!atom.is_var()) return to_python(Array::literal(atom.literal()));
    return var_object(atom.var(), builder.aval(atom), number);
  }
  template <class Atoms>
  py::list objects(const Atoms& atoms) const {
    py::list list;
    for (const auto& atom : atoms) list.append(object(atom));
    return list;
  }
  std::vector<Atom> atoms(py::handle sequence, const char* what) const {
    std::vector<Atom> atoms;
    for (py::handle item : sequence) atoms.push_back(to_atom(item, owners, what));
    return atoms;
  }
  Var var(py::handle object, const char* what) const { return to_var(object, owners, what); }
};

// Plain numbers take the dtype of the values beside them, if it is of their category or a wider
// one.
void fit_numbers(const ProgramBuilder& builder, std::vector<Atom>& inputs) {
  const auto value =
      std::find_if(inputs.begin(), inputs.end(), [](const Atom& atom) { return atom.is_var(); });
  if (value == inputs.end()) return;
  const DType dtype = builder.aval(*value).dtype;
  auto category = [](DType of) {
    return of == DType::bool_ ? 0 : is_integer(of) ? 1 : is_complex(of) ? 3 : 2;
  };
  for (Atom& atom : inputs)
    if (!atom.is_var() && atom.literal().weak && category(atom.literal().dtype) <= category(dtype))
      atom = cast(atom.literal(), dtype, false);
}

Params changed(Params params, const py::dict& changes) {
  for (auto [name, value] : changes) {
    const std::string key = utf8_of(name.ptr());
    params = params.with(key, to_param(value, key));
  }
  return params;
}

// One equation of a builder.
struct BuilderEquation {
  py::object owner;
  int index;
  const BuilderObject& builder() const { return owner.cast<const BuilderObject&>(); }
  const Equation& equation() const { return builder().builder.equation(index); }
};

py::list equation_objects(const py::object& self, std::vector<int> indices) {
  py::list list;
  for (int index : indices) list.append(py::cast(BuilderEquation{self, index}));
  return list;
}

py::list add_equation(BuilderObject& self, const py::object& of, const py::args& inputs,
                      const py::kwargs& given) {
  const Primitive* primitive = nullptr;
  Params params;
  Source source = Source::current();
  auto like = [&](const Equation& equation) {
    primitive = equation.primitive;
    params = equation.params;
    source = equation.source;
  };
  if (py::isinstance<EquationView>(of))
    like(of.cast<const EquationView&>().equation());
  else if (py::isinstance<BuilderEquation>(of))
    like(of.cast<const BuilderEquation&>().equation());
  else
    primitive = find_primitive(of.cast<std::string>());
  if (!primitive)
    throw ValueError("add: there is no primitive named " + text_of(of.ptr()),
                     "name one of those that plait.rules('abstract') lists");
  std::vector<Atom> atoms = self.atoms(inputs, "add");
  fit_numbers(self.builder, atoms);
  return self.objects(
      self.builder.add(*primitive, std::move(atoms), changed(params, given), source));
}

void add_builder(py::module_& module) {
  py::class_<BuilderEquation>(module, "BuilderEquation", "One equation of a builder.")
      .def_readonly("index", &BuilderEquation::index, "Its number, which stays.")
      .def_property_readonly(
          "primitive",
          [](const BuilderEquation& e) { return std::string(e.equation().primitive->name()); })
      .def_property_readonly(
          "inputs",
          [](const BuilderEquation& e) { return e.builder().objects(e.equation().inputs); },
          "Vars, and literals as arrays.")
      .def_property_readonly(
          "outputs",
          [](const BuilderEquation& e) { return e.builder().objects(e.equation().outputs); })
      .def_property_readonly("params",
                             [](const BuilderEquation& e) {
                               return params_object(e.equation().params, Callables::names);
                             })
      .def_property_readonly("source", [](const BuilderEquation& e) { return e.equation().source; })
      .def("__eq__",
           [](const BuilderEquation& a, py::object b) {
             return py::isinstance<BuilderEquation>(b) &&
                    a.owner.is(b.cast<const BuilderEquation&>().owner) &&
                    a.index == b.cast<const BuilderEquation&>().index;
           })
      .def("__hash__", [](const BuilderEquation& e) { return e.index; });
  py::class_<BuilderObject>(module, "ProgramBuilder")
      .def(py::init<py::object>())
      .def("input",
           [](BuilderObject& self, py::object aval) {
             return self.object(self.builder.add_input(to_aval(aval.ptr(), {"input"})));
           })
      .def("add", &add_equation)
      .def("splice",
           [](BuilderObject& self, const Jaxpr& jaxpr, py::object inputs) {
             return self.objects(self.builder.splice(jaxpr, self.atoms(inputs, "splice")));
           })
      .def("replace",
           [](BuilderObject& self, py::object var, py::object with) {
             const Var old = self.var(var, "replace");
             Atom atom = to_atom(with, self.owners, "replace");
             const Aval aval = self.builder.aval(old);
             if (!atom.is_var() && atom.literal().weak)
               atom = cast(atom.literal(), aval.dtype, aval.weak);
             self.builder.replace(old, atom);
           })
      .def("set_params",
           [](BuilderObject& self, const BuilderEquation& equation, py::kwargs changes) {
             if (&equation.builder() != &self)
               throw ValueError("set_params: the equation is another builder's",
                                "give one that this builder lists");
             self.builder.set_params(equation.index, changed(equation.equation().params, changes));
           })
      .def_property_readonly(
          "inputs", [](const BuilderObject& self) { return self.objects(self.builder.inputs()); })
      .def_property(
          "outputs", [](const BuilderObject& self) { return self.objects(self.builder.outputs()); },
          [](BuilderObject& self, py::object atoms) {
            self.builder.set_outputs(self.atoms(atoms, "outputs"));
          })
      .def_property_readonly("equations",
                             [](py::object self) {
                               return equation_objects(
                                   self, self.cast<BuilderObject&>().builder.equations());
                             })
      .def("aval",
           [](const BuilderObject& self, py::object atom) {
             return aval_object(self.builder.aval(to_atom(atom, self.owners, "aval")));
           })
      .def("users_of",
           [](py::object object, py::object var) {
             const auto& self = object.cast<const BuilderObject&>();
             return equation_objects(object, self.builder.users_of(self.var(var, "users_of")));
           })
      .def("definition_of",
           [](py::object object, py::object var) -> py::object {
             const auto& self = object.cast<const BuilderObject&>();
             const auto found = self.builder.definition_of(self.var(var, "definition_of"));
             return found ? py::cast(BuilderEquation{object, *found}) : py::object(py::none());
           })
      .def("depends_on",
           [](const BuilderObject& self, py::object value, py::object on) {
             return self.builder.depends_on(to_atom(value, self.owners, "depends_on"),
                                            self.var(on, "depends_on"));
           })
      .def("take_sizes",
           [](BuilderObject& self, const Jaxpr& jaxpr) { self.builder.take_sizes(jaxpr); })
      .def("close", [](const BuilderObject& self) { return self.builder.close(); });
}

// --- Queries -------------------------------------------------------------------------------------

struct UsesObject {
  explicit UsesObject(const Jaxpr& jaxpr) : jaxpr(jaxpr), uses(jaxpr), owners{owner_of(jaxpr)} {}
  Jaxpr jaxpr;
  Uses uses;
  std::vector<std::uintptr_t> owners;
  py::object equation(int index) const { return py::cast(EquationView{jaxpr, std::size_t(index)}); }
};

void add_uses(py::module_& module) {
  py::class_<UsesObject>(
      module, "Uses",
      "Who defines and who uses each var of a jaxpr: Uses(jaxpr). ValueError for vars of others.")
      .def(py::init([](const py::object& jaxpr) {
             // The result of make_jaxpr holds a jaxpr.
             const bool is_closed = !py::isinstance<Jaxpr>(jaxpr) && py::hasattr(jaxpr, "jaxpr");
             const py::object program = is_closed ? jaxpr.attr("jaxpr") : jaxpr;
             if (!py::isinstance<Jaxpr>(program))
               throw DtypeError("Uses: " + text_of(program.ptr()) + " of type " +
                                    type_name_of(program.ptr()) + " is no program",
                                "give a Jaxpr, such as plait.make_jaxpr(f)(x)");
             return std::make_unique<UsesObject>(jaxpr_of(program));
           }),
           py::arg("jaxpr"))
      .def(
          "users_of",
          [](const UsesObject& self, py::object var) {
            py::list list;
            for (int e : self.uses.users_of(to_var(var, self.owners, "users_of")))
              list.append(self.equation(e));
            return list;
          },
          py::arg("var"), "The equations that take a var, in order.")
      .def(
          "definition_of",
          [](const UsesObject& self, py::object var) -> py::object {
            const auto found = self.uses.definition_of(to_var(var, self.owners, "definition_of"));
            return found ? self.equation(*found) : py::object(py::none());
          },
          py::arg("var"), "The equation that defines a var; None for an input.")
      .def(
          "is_output",
          [](const UsesObject& self, py::object var) {
            return self.uses.is_output(to_var(var, self.owners, "is_output"));
          },
          py::arg("var"), "Whether the program returns it.")
      .def(
          "depends_on",
          [](const UsesObject& self, py::object value, py::object on) {
            return self.uses.depends_on(to_atom(value, self.owners, "depends_on"),
                                        to_var(on, self.owners, "depends_on"));
          },
          py::arg("value"), py::arg("on"), "Whether value is the var `on`, or computed from it.");
}

// --- Rules and passes ----------------------------------------------------------------------------

// The function of a pattern. It is traced at candidate types, so a Python exception may only mean
// that these types do not match: it becomes a ValueError. A wrong name, or reading the value of a
// tracer, is a mistake at all types and is raised.
Function to_pattern(py::object callable, const std::string& name) {
  return [function = to_function(std::move(callable), name)](std::span<const Array> inputs) {
    try {
      return function(inputs);
    } catch (py::error_already_set& error) {
      py::gil_scoped_acquire gil;
      for (PyObject* mistake : {PyExc_NameError, PyExc_AttributeError, PyExc_ImportError})
        if (error.matches(mistake)) throw;
      const std::string type = py::str(error.type().attr("__name__"));
      if (type == "TracerError" || !error.matches(PyExc_Exception)) throw;
      throw ValueError(error.what(), "write patterns as functions of arrays");
    }
  };
}

struct MatchObject {
  Match match;
};

Rule make_rule(py::object pattern, py::object replacement, int num_arguments, py::object where,
               const std::string& name, std::vector<std::string> any_params, py::object like) {
  RuleOptions options{name, {}, std::move(any_params), {}};
  if (!like.is_none())
    for (py::handle spec : like) options.like.push_back(to_spec(spec.ptr()));
  if (!where.is_none())
    options.where = [shared = share(where), name](const Match& match) {
      py::gil_scoped_acquire gil;
      const py::object answer =
          borrowed(static_cast<PyObject*>(shared.get()))(py::cast(MatchObject{match}));
      if (answer.is_none())
        throw DtypeError("rewrite: where of `" + name + "` returned None", "return True or False");
      const int truth = PyObject_IsTrue(answer.ptr());
      if (truth < 0) throw py::error_already_set();
      return truth == 1;
    };
  return Rule(to_pattern(std::move(pattern), name), to_function(std::move(replacement), name),
              num_arguments, std::move(options));
}

py::dict statistics_object(const PassStatistics& statistics) {
  py::dict result;
  result["name"] = statistics.name;
  result["equations_before"] = statistics.equations_before;
  result["equations_after"] = statistics.equations_after;
  result["matches"] = statistics.matches;
  result["seconds"] = statistics.seconds;
  py::list parts;
  for (const PassStatistics& part : statistics.parts) parts.append(statistics_object(part));
  result["parts"] = parts;
  result["text"] = statistics.to_string();
  return result;
}

void add_passes(py::module_& module) {
  py::class_<Rule>(module, "RewriteRule").def_property_readonly("name", &Rule::name);
  py::class_<MatchObject>(module, "Match", "A place where a pattern matches.")
      .def_property_readonly(
          "avals",
          [](const MatchObject& self) {
            py::list list;
            for (const Aval& aval : self.match.avals) list.append(aval_object(aval));
            return list;
          },
          "The types of the arguments.")
      .def_property_readonly(
          "values",
          [](const MatchObject& self) {
            py::list list;
            for (const Atom& atom : self.match.arguments)
              list.append(atom.is_var() ? py::object(py::none())
                                        : to_python(Array::literal(atom.literal())));
            return list;
          },
          "The numbers that arguments stand for, where these are literals; else None.")
      .def_property_readonly(
          "primitives",
          [](const MatchObject& self) {
            py::list list;
            for (const Equation& equation : self.match.equations)
              list.append(std::string(equation.primitive->name()));
            return list;
          },
          "The primitives of the equations, in the order of the pattern's.")
      .def_property_readonly(
          "params",
          [](const MatchObject& self) {
            py::list list;
            for (const Equation& equation : self.match.equations)
              list.append(params_object(equation.params, Callables::names));
            return list;
          },
          "The parameters of these equations, a dict for each.")
      .def_property_readonly(
          "source", [](const MatchObject& self) { return self.match.equations.back().source; },
          "The user's line of the last of them.");
  py::class_<Pass>(module, "ProgramPass")
      .def_property_readonly("name", &Pass::name)
      .def_property_readonly("statistics",
                             [](const Pass& pass) { return statistics_object(pass.statistics()); })
      .def("run", [](const Pass& pass, const Jaxpr& jaxpr) { return pass(jaxpr); })
      .def("apply", [](const Pass& pass, py::object function, py::object inputs,
                       const std::string& name) {
        TransformScope scope(pass.name(), name);
        return from_arrays(flat::apply_pass(to_function(function, name), to_arrays(inputs), pass));
      });
  module.def("make_rule", &make_rule);
  module.def("make_rewrite", [](const std::vector<Rule>& rules, bool nested, bool repeat,
                                bool verify, double low, double high) {
    return rewrite(rules, {nested ? Nested::yes : Nested::no, repeat, verify, low, high});
  });
  module.def("make_pass", [](py::object function, const std::string& name) {
    return apply_pass(
        [shared = share(std::move(function)), name](const Jaxpr& jaxpr) {
          py::gil_scoped_acquire gil;
          const py::object result =
              borrowed(static_cast<PyObject*>(shared.get()))(jaxpr_object(jaxpr));
          if (!py::isinstance<Jaxpr>(result))
            throw TreeError("the pass `" + name + "` returned " + text_of(result.ptr()) +
                                " of type " + type_name_of(result.ptr()),
                            "return a plait.Jaxpr, such as what a builder's close gives");
          return jaxpr_of(result);
        },
        name);
  });
  module.def("make_pipeline", [](const std::vector<Pass>& passes, const std::string& name) {
    return pipeline(passes, name);
  });
  module.def("make_verified",
             [](const Pass& pass, double low, double high) { return verified(pass, low, high); });
  module.def("count_equations", [](const Jaxpr& jaxpr) { return num_equations(jaxpr); });
  module.def("bodies_of", [](const EquationView& view) {
    py::list bodies;
    for_each_body(view.equation().params,
                  [&](const Jaxpr& body) { bodies.append(jaxpr_object(body)); });
    return bodies;
  });
  module.def("map_bodies", [](BuilderObject& self, const EquationView& view, py::object inputs,
                              py::object function) {
    const Equation& equation = view.equation();
    const Equation mapped = map_bodies(
        equation, [&](const Jaxpr& body) { return jaxpr_of(function(jaxpr_object(body))); });
    return self.objects(self.builder.add(*mapped.primitive, self.atoms(inputs, "rebuild"),
                                         mapped.params, equation.source));
  });
}

}  // namespace

void add_rewrite(py::module_& module) {
  add_builder(module);
  add_uses(module);
  add_passes(module);
  for (const char* name : {"BuilderEquation", "RewriteRule", "Match", "ProgramPass"})
    forbid_construction(module.attr(name));
}

}  // namespace plait::python
