// Reading and changing programs: walk, def-use queries, and a builder that cannot make an
// ill-formed program. Passes are written with them; rewrite.h makes transforms from passes.
//
//   plait::ProgramBuilder builder(jaxpr);
//   for (int e : builder.equations())
//     if (*builder.equation(e).primitive == neg_p) builder.replace(...);
//   jaxpr = builder.close();
//
// A jaxpr has no order beyond the dependencies of its equations: an equation may be added anywhere,
// and close() puts all in canonical order, without dead ones. Effects stay in the order in which
// they were added.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/jaxpr.h>

namespace plait {

// The definition and the users of each var of a program. A var of another program is a ValueError.
class Uses {
 public:
  explicit Uses(const Jaxpr& jaxpr);
  // The equations that take the var, in order, each once.
  std::span<const int> users_of(Var var) const;
  // The equation that defines it; nullopt for an input.
  std::optional<int> definition_of(Var var) const;
  bool is_output(Var var) const;
  // How often equations and outputs name it.
  int num_uses(Var var) const;
  // Whether value is `on`, or computed from it.
  bool depends_on(const Atom& value, Var on) const;

 private:
  void require(Var var) const;
  Jaxpr jaxpr_;
  std::vector<int> definition_;     // by var, -1: an input
  std::vector<int> begin_, users_;  // the users of var v: users_[begin_[v]] .. users_[begin_[v+1]]
  std::vector<int> num_uses_;
  std::vector<char> is_output_;
};

// Whether the bodies of equations (of calls, loops and branches) are entered.
enum class Nested { no, yes };

// Calls visit with every equation, in order, and the program that holds it. The equations of bodies
// follow the one that holds them.
void walk(const Jaxpr& jaxpr,
          const std::function<void(const Jaxpr& owner, const Equation& equation)>& visit,
          Nested nested = Nested::yes);
// The number of equations, including those of bodies.
std::size_t num_equations(const Jaxpr& jaxpr);

class ProgramBuilder {
 public:
  ProgramBuilder() = default;
  // Starts from a program, whose vars and equations keep their numbers.
  explicit ProgramBuilder(const Jaxpr& jaxpr);

  Var add_input(const Aval& aval);
  // The outputs of a new equation; or existing atoms, where it is an identity or all its inputs are
  // literals. ShapeError, DtypeError and ValueError say what does not fit.
  std::vector<Atom> add(const Primitive& primitive, std::vector<Atom> inputs, const Params& params,
                        Source source = Source::current());
  // The equations of a whole program, applied to these inputs: its outputs.
  std::vector<Atom> splice(const Jaxpr& jaxpr, std::vector<Atom> inputs);
  // Replaces a var by `with`, of the same type, in all its uses except those from which `with` is
  // computed.
  void replace(Var var, const Atom& with);
  // Sets the parameters of an equation, or its primitive too; its outputs keep their types.
  void set_params(int equation, Params params);
  void set(int equation, const Primitive& primitive, Params params);
  void set_outputs(std::vector<Atom> outputs);
  // Prepends the named sizes of a program, in order, and its constraints.
  void take_sizes(const Jaxpr& jaxpr);

  const std::vector<Var>& inputs() const { return inputs_; }
  const std::vector<Atom>& outputs() const { return outputs_; }
  Aval aval(const Atom& atom) const;
  // Equations are numbered from 0 as they are added; erased ones are left out.
  std::vector<int> equations() const;
  std::size_t num_equations() const { return equations_.size(); }  // erased ones too
  bool is_erased(int equation) const { return !equations_[equation].primitive; }
  const Equation& equation(int index) const;
  std::vector<int> users_of(Var var) const;  // in order of number, each once
  std::optional<int> definition_of(Var var) const;
  bool is_output(Var var) const;
  bool depends_on(const Atom& value, Var on) const;

  // The program, in canonical order and checked. Its sizes are the initial ones, then new ones.
  Jaxpr close() const;

  // --- For passes over large programs, without checks -------------------------------------------

  // Adds an equation whose output avals are known to be correct: used by rewrite.
  std::vector<Var> add_known(const Primitive& primitive, std::vector<Atom> inputs,
                             const Params& params, Source source, std::vector<Aval> avals);
  void add_constraint(const Constraint& constraint);
  const Aval& known_aval(Var var) const { return avals_[var.id]; }
  int known_definition(Var var) const { return definition_[var.id]; }  // -1: an input
  // Each use of a var, and uses by erased equations.
  std::span<const int> uses_of(Var var) const { return users_[var.id]; }
  // Replaces every use. `with` does not depend on var.
  void replace_all(Var var, const Atom& with);
  // Erases the equation if its outputs are unused, then those that only it used.
  void erase_unused(int equation);
  // Whether any of these values depends on an output of one of the equations.
  bool any_depends_on(std::span<const Atom> values, std::span<const int> equations) const;
  // The same program as close() gives, unchecked; with these outputs in place of its own.
  Jaxpr close_unchecked() const { return close_unchecked(outputs_); }
  Jaxpr close_unchecked(std::vector<Atom> outputs) const;

 private:
  void require(const Atom& atom, std::string_view what) const;
  bool reaches(std::span<const Atom> values, int least_order,
               const std::function<bool(int)>& is_target) const;

  std::vector<Aval> avals_;
  std::vector<int> definition_;          // by var, -1: an input
  std::vector<std::vector<int>> users_;  // an entry for each use; some may be erased
  std::vector<int> num_uses_;            // by equations that are not
  std::vector<int> output_uses_;
  std::vector<Equation> equations_;  // an erased one has no primitive
  // While is_ordered_, an equation does not precede those that define its inputs in this order, so
  // that searches for dependencies can stop early.
  std::vector<int> order_;
  bool is_ordered_ = true;
  std::vector<Var> inputs_;
  std::vector<Atom> outputs_;
  std::vector<Dim> sizes_;
  std::vector<Constraint> constraints_;
};

// Rebuilds a program with rule applied to each equation: rule adds equations to the builder and
// returns an atom for each output, or nullopt to keep the equation. Bodies come first.
using EquationRule = std::function<std::optional<std::vector<Atom>>(
    ProgramBuilder& builder, const Equation& equation, std::span<const Atom> inputs)>;
Jaxpr rebuild(const Jaxpr& jaxpr, const EquationRule& rule, Nested nested = Nested::yes);

}  // namespace plait
