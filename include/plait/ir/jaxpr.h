// The program form: a jaxpr is a list of equations over typed vars.
//
// A jaxpr is closed (it holds no arrays: constants are operands) and immutable. Its
// equations are in canonical order: depth-first from effectful equations in program order, then
// from the outputs. The Builder alone establishes this order. C++ does not fix the order in which
// operands are evaluated, so that two compilers would otherwise trace different programs.
//
//   { lambda n d ; a:f32[n,d] b:f32[d] . let
//       c:f32[n] = dot_general[lhs_contract=(1), ...] a b
//       e:f32[n] = mul c 2.0:f32
//     in (e,) }
//
// Invariants. check() tests them: tests call it on the output of every transform, ProgramBuilder
// and Pass on what users make, `plait check` on files.
//   J1 a var is bound once, before use          J4 output avals = Abstract rule of the inputs
//   J2 vars and sizes used are bound            J5 literals fit their dtype
//   J3 primitives are defined                   J6 nothing is dead
//   J7 orders of sizes that its shapes need are decided, or among its constraints
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/source.h>
#include <plait/ir/aval.h>
#include <plait/ir/memo.h>
#include <plait/ir/params.h>
#include <plait/ir/primitive.h>

namespace plait {

struct Var {
  int id = -1;
  bool operator==(const Var&) const = default;
};

// An inline scalar. The value is kept exactly: integers and bools as int64 (uint64 by bit pattern),
// floats as double, complex as two doubles.
struct Literal {
  DType dtype = DType::float32;
  bool weak = false;
  std::int64_t integer = 0;
  double real = 0, imaginary = 0;

  Aval aval() const { return {{}, dtype, weak}; }
  complex128 as_complex() const;  // any literal as a number
  double as_double() const { return as_complex().real(); }
  std::string to_string() const;  // "2.0:f32"
  std::size_t hash() const;
  bool operator==(const Literal& other) const;  // by bits: 0.0 and -0.0 differ, NaN equals itself
};
Literal cast(const Literal& literal, DType dtype, bool weak);

class Atom {
 public:
  Atom(Var var) : var_(var) {}                  // NOLINT
  Atom(Literal literal) : literal_(literal) {}  // NOLINT
  bool is_var() const { return var_.id >= 0; }
  Var var() const { return var_; }
  const Literal& literal() const { return literal_; }
  bool operator==(const Atom& other) const {
    return var_ == other.var_ && (is_var() || literal_ == other.literal_);
  }

 private:
  Var var_;
  Literal literal_;
};

struct Equation {
  const Primitive* primitive = nullptr;
  std::vector<Atom> inputs;
  Params params;
  std::vector<Var> outputs;
  Source source;
};

// An order that tracing needed and the sizes did not decide: left <= right is checked at each call.
struct Constraint {
  Dim left, right;
  bool operator==(const Constraint&) const = default;
};

struct JaxprData {
  std::vector<Dim> sizes;  // binders of named sizes
  std::vector<Constraint> constraints;
  int num_binders = 0;      // vars 0 .. num_binders-1
  std::vector<Aval> avals;  // of every var, by id
  std::vector<Equation> equations;
  std::vector<Atom> outputs;
  bool effectful = false;
  std::size_t hash = 0;
  Memo memo;

  const Aval& aval(Var var) const { return avals[var.id]; }
  Aval aval(const Atom& atom) const {
    return atom.is_var() ? avals[atom.var().id] : atom.literal().aval();
  }
  std::span<const Aval> input_avals() const { return {avals.data(), std::size_t(num_binders)}; }
  std::vector<Aval> output_avals() const;
};

// Collects equations and closes them into a jaxpr: removes dead ones, puts the rest in canonical
// order, and numbers vars in order of definition.
class Builder {
 public:
  Var add_binder(Aval aval);
  // The outputs get the avals of the Abstract rule.
  std::vector<Var> add(const Primitive& primitive, std::vector<Atom> inputs, Params params,
                       Source source);
  // The same, when the avals are already known.
  std::vector<Var> add(const Primitive& primitive, std::vector<Atom> inputs, Params params,
                       Source source, std::vector<Aval> avals);
  void add_constraint(Constraint constraint);
  const Aval& aval(Var var) const { return avals_[var.id]; }
  Aval aval(const Atom& atom) const {
    return atom.is_var() ? avals_[atom.var().id] : atom.literal().aval();
  }
  std::size_t num_equations() const { return equations_.size(); }
  // sizes: the named sizes to bind, in order. Those that outputs and equations use and the list
  // lacks are appended.
  Jaxpr close(std::vector<Atom> outputs, std::vector<Dim> sizes = {}) const;

 private:
  std::vector<Var> binders_;
  std::vector<Aval> avals_;
  std::vector<int> definition_;  // equation that defines a var, -1 for binders
  std::vector<Equation> equations_;
  std::vector<Constraint> constraints_;
};

// Throws InternalError that cites the broken invariant (J1..J7) and prints the jaxpr.
void check(const Jaxpr& jaxpr);

enum class ShowSources { no, yes };
std::string print(const Jaxpr& jaxpr, ShowSources sources = ShowSources::no);
// The name that text gives to a var: a, b, ..., z, aa, ...
std::string var_name(int id);
// The exact inverse of print; ValueError says line, column and what was expected.
Jaxpr parse(std::string_view text);

// The same program with integers, or other expressions, in place of named sizes: its text equals
// that of tracing at those sizes. ValueError names a size that the jaxpr does not bind.
Jaxpr instantiate(const Jaxpr& jaxpr, SizeSubstitution sizes);

// Visits every jaxpr that parameters hold, in order, including those in lists, but not nested ones.
template <class Visit>
void for_each_body(const Params& params, Visit&& visit) {
  for (const auto& [name, value] : params.entries()) {
    if (const Jaxpr* body = std::get_if<Jaxpr>(&value)) visit(*body);
    if (const auto* bodies = std::get_if<std::vector<Jaxpr>>(&value))
      for (const Jaxpr& body : *bodies) visit(body);
  }
}
// The parameters with f applied to each of these jaxprs.
Params map_bodies(const Params& params, const std::function<Jaxpr(const Jaxpr&)>& f);
bool holds_bodies(const Params& params);
// Whether a Callable is among the parameters, or in their bodies at any depth.
bool holds_callable(const Params& params);
bool holds_callable(const Jaxpr& jaxpr);

// True when the equation, or a jaxpr that it holds, has an effect: it is never merged, dropped or
// reordered.
bool is_effectful(const Equation& equation);

// The sizes of a nested jaxpr are the values of the parameter "sizes" of its equation, in order.
// This is the jaxpr of a parameter over the enclosing program's sizes.
Jaxpr open_body(const Params& params, std::string_view name = "body");
// Substitutes those sizes that are integers into the bodies.
Params instantiate_bodies(const Params& params);

// Output avals of a primitive applied to inputs.
std::vector<Aval> infer(const Primitive& primitive, std::span<const Aval> inputs,
                        const Params& params);

// The outputs of an equation that need not be recorded: its first input when it is an identity
// (reshape to the same shape, cast to the same dtype, ...), or literals when all inputs are
// literals. Every way of adding equations asks this first, so that tracing and instantiate agree.
std::optional<std::vector<Atom>> simplify(const Primitive& primitive, std::span<const Atom> inputs,
                                          std::span<const Aval> avals, const Params& params);

// Requires left <= right. Does nothing when the sizes decide it, throws the ShapeError of
// describe() when they decide against it, and else adds a constraint to the jaxpr being traced (an
// error outside tracing).
void require_less_equal(Dim left, Dim right, const std::function<ShapeError()>& describe);
// Receives undecided constraints; returns false when nothing is being traced. Set by the trace
// layer.
void set_constraint_sink(bool (*sink)(const Constraint& constraint));

// In its scope, on this thread, undecided constraints bypass that function: those of an existing
// program are granted, and others are errors. check, parse and instantiate run its rules again in
// this scope.
class GrantedConstraints {
 public:
  enum class All { granted };
  explicit GrantedConstraints(std::span<const Constraint> constraints);
  explicit GrantedConstraints(All);
  ~GrantedConstraints();
  GrantedConstraints(const GrantedConstraints&) = delete;
  bool includes(const Constraint& constraint) const;

 private:
  const GrantedConstraints* previous_;
  bool all_ = false;
  std::span<const Constraint> constraints_;
};

}  // namespace plait
