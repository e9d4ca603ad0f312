// The laws by which simplify rewrites. Each is exact to the bit for all values. `x + 0 -> x` is not
// one of them: it turns -0 into 0. See rewriting/peephole.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>
#include <plait/rules/speculate.h>

#include <algorithm>
#include <bit>

#include "compile/passes/simplify.h"
#include "primitives/reduction/reduce.h"

namespace plait::compile_passes {
namespace {

Replacement add(const Peephole& e, const Primitive& primitive, const Atom& operand, Params params) {
  return e.program.add(primitive, {operand}, params, e.source);
}
Replacement same_as(const Atom& atom) { return std::vector<Atom>{atom}; }

// The scalar of a value that is a broadcast scalar.
std::optional<Atom> splat_of(const Peephole& e, std::size_t input) {
  const Equation* found = e.defined_by(input, broadcast_in_dim_p);
  if (!found || e.program.aval(found->inputs[0]).rank() != 0) return std::nullopt;
  return found->inputs[0];
}

Replacement splat(const Peephole& e, const Atom& scalar, const Shape& shape) {
  return add(e, broadcast_in_dim_p, scalar, {{"shape", shape}, {"dims", Shape{}}});
}

Replacement transpose_of_transpose(const Peephole& e) {
  const Equation* inner = e.defined_by(0, transpose_p);
  if (!inner) return std::nullopt;
  const Shape &p = inner->params.get<Shape>("permutation"), &q = e.params.get<Shape>("permutation");
  Shape composed;
  for (Dim axis : q) composed.push_back(p[std::size_t(axis.constant())]);
  return add(e, transpose_p, inner->inputs[0], {{"permutation", composed}});
}

Replacement reshape_of_reshape(const Peephole& e) {
  const Equation* inner = e.defined_by(0, reshape_p);
  if (!inner) return std::nullopt;
  return add(e, reshape_p, inner->inputs[0], e.params);
}

Replacement broadcast_of_broadcast(const Peephole& e) {
  const Equation* inner = e.defined_by(0, broadcast_in_dim_p);
  if (!inner) return std::nullopt;
  Shape dims;
  for (Dim dim : inner->params.get<Shape>("dims"))
    dims.push_back(e.params.get<Shape>("dims")[std::size_t(dim.constant())]);
  return add(e, broadcast_in_dim_p, inner->inputs[0],
             {{"shape", e.params.get<Shape>("shape")}, {"dims", dims}});
}

// Moving the elements of a broadcast scalar gives a broadcast scalar.
Replacement movement_of_splat(const Peephole& e) {
  const std::optional<Atom> scalar = splat_of(e, 0);
  if (!scalar) return std::nullopt;
  const Shape shape = infer(e.primitive, e.avals, e.params)[0].shape;
  return shape.empty() ? same_as(*scalar) : splat(e, *scalar, shape);
}

// Elementwise equations take scalars as they are. If all operands are scalars, so is the result.
Replacement pointwise_of_splats(const Peephole& e) {
  if (e.inputs.empty() || !Pointwise::table().find(e.primitive)) return std::nullopt;
  std::vector<Atom> scalars;
  Shape shape;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    if (e.avals[i].rank() == 0) continue;
    const std::optional<Atom> scalar = splat_of(e, i);
    if (!scalar) continue;
    if (scalars.empty()) {
      scalars = e.operands();
      shape = e.avals[i].shape;
    }
    scalars[i] = *scalar;
  }
  if (scalars.empty()) return std::nullopt;
  const bool all = std::all_of(scalars.begin(), scalars.end(),
                               [&](const Atom& atom) { return e.program.aval(atom).rank() == 0; });
  std::vector<Atom> results = e.program.add(e.primitive, std::move(scalars), e.params, e.source);
  if (all) return splat(e, results[0], shape);
  return results;
}

// Whether `to` represents every value of `from`.
bool is_exact(DType from, DType to) {
  if (is_stored(from) || is_stored(to)) return from == to;
  if (from == to || from == DType::bool_) return true;
  if (is_complex(from)) return to == DType::complex128 || from == to;
  if (is_complex(to)) return is_exact(from, real_dtype_of(to));
  auto mantissa = [](DType dtype) {
    return dtype == DType::float64   ? 53
           : dtype == DType::float32 ? 24
           : dtype == DType::float16 ? 11
                                     : 8;
  };
  const bool is_signed =
      from == DType::int8 || from == DType::int16 || from == DType::int32 || from == DType::int64;
  const int bits = 8 * int(size_of(from)) - is_signed;
  if (is_inexact(from)) {
    // bfloat16 has a wider exponent than float16, and a shorter mantissa.
    return to == DType::float64 || (to == DType::float32 && from != DType::float64);
  }
  if (is_inexact(to)) return to != DType::float16 && bits <= mantissa(to);
  const bool to_signed =
      to == DType::int8 || to == DType::int16 || to == DType::int32 || to == DType::int64;
  return to != DType::bool_ && (to_signed || !is_signed) &&
         bits <= 8 * int(size_of(to)) - to_signed;
}

// Weakness has no meaning at run time.
Replacement cast_to_same(const Peephole& e) {
  if (e.params.get<DType>("dtype") != e.avals[0].dtype) return std::nullopt;
  return same_as(e.inputs[0]);
}

Replacement cast_of_exact_cast(const Peephole& e) {
  const Equation* inner = e.defined_by(0, cast_p);
  if (!inner) return std::nullopt;
  const DType from = e.program.aval(inner->inputs[0]).dtype, to = e.params.get<DType>("dtype");
  if (!is_exact(from, e.avals[0].dtype)) return std::nullopt;
  if (is_complex(e.avals[0].dtype) != is_complex(to)) return std::nullopt;
  if (from == to) return same_as(inner->inputs[0]);
  return add(e, cast_p, inner->inputs[0], e.params);
}

Replacement select_by_literal(const Peephole& e) {
  if (e.inputs[0].is_var()) return std::nullopt;
  const std::size_t chosen = e.inputs[0].literal().integer ? 1 : 2;
  if (e.avals[chosen].rank() < e.avals[3 - chosen].rank()) return std::nullopt;
  return same_as(e.inputs[chosen]);
}

Replacement involution(const Peephole& e) {
  const Equation* inner = e.defined_by(0, e.primitive);
  if (!inner) return std::nullopt;
  return same_as(inner->inputs[0]);
}

Replacement pass_through(const Peephole& e) { return e.operands(); }

// Compares a real literal, to the bit.
bool is_literal(const Peephole& e, std::size_t input, double value) {
  if (e.inputs[input].is_var()) return false;
  const Literal& literal = e.inputs[input].literal();
  if (is_complex(literal.dtype)) return false;
  return std::bit_cast<std::uint64_t>(literal.as_double()) == std::bit_cast<std::uint64_t>(value);
}

// The other operand, where this one is the neutral literal.
Replacement without(const Peephole& e, std::size_t input, double neutral) {
  const DType dtype = e.avals[0].dtype;
  if (dtype == DType::bool_ || is_complex(dtype) || !is_literal(e, input, neutral))
    return std::nullopt;
  return same_as(e.inputs[1 - input]);
}
Replacement without_one_behind(const Peephole& e) { return without(e, 1, 1); }
Replacement without_one_before(const Peephole& e) { return without(e, 0, 1); }
Replacement without_zero_behind(const Peephole& e) { return without(e, 1, 0); }
// The neutral element of addition: -0; of integers, 0.
double nothing_to_add(const Peephole& e) { return is_inexact(e.avals[0].dtype) ? -0.0 : 0.0; }
Replacement without_zero_added_behind(const Peephole& e) {
  return without(e, 1, nothing_to_add(e));
}
Replacement without_zero_added_before(const Peephole& e) {
  return without(e, 0, nothing_to_add(e));
}

// Where a window of an array starts, if that is known.
std::optional<Shape> start_of_window(const Equation& equation, std::size_t first) {
  Shape start;
  for (std::size_t i = first; i < equation.inputs.size(); ++i) {
    if (equation.inputs[i].is_var()) return std::nullopt;
    start.push_back(equation.inputs[i].literal().integer);
  }
  return start;
}
bool is_zero(const Atom& atom) {
  if (atom.is_var() || is_complex(atom.literal().dtype)) return false;
  return std::bit_cast<std::uint64_t>(atom.literal().as_double()) == 0;
}
bool has_step(const Shape& shape, std::int64_t step) {
  return std::all_of(shape.begin(), shape.end(), [&](Dim dim) { return dim == Dim(step); });
}

// Whether an atom is the window of x that starts there: a slice, or one with a start that is given
// as numbers.
bool is_window(const Peephole& e, const Atom& atom, const Atom& x, const Shape& start) {
  const Equation* slice = e.program.definition(atom);
  if (!slice || !(slice->inputs[0] == x)) return false;
  if (*slice->primitive == slice_p)
    return slice->params.get<Shape>("start") == start &&
           has_step(slice->params.get<Shape>("strides"), 1);
  return *slice->primitive == dynamic_slice_p && start_of_window(*slice, 1) == start;
}

// The cotangent of an array of which a window is updated by a function of that window: the one part
// is x with zeros in the window, the other is the window alone.
Replacement window_put_back(const Peephole& e) {
  for (const std::size_t input : {0, 1}) {
    const Equation *cut = e.defined_by(input, dynamic_update_slice_p),
                   *padded = e.defined_by(1 - input, pad_p);
    if (!cut || !padded || !is_zero(padded->inputs[1])) continue;
    const Atom x = cut->inputs[0], window = padded->inputs[0];
    const Equation* zeros = e.program.definition(cut->inputs[1]);
    if (!zeros || !(*zeros->primitive == broadcast_in_dim_p) || !is_zero(zeros->inputs[0]))
      continue;
    const std::optional<Shape> start = start_of_window(*cut, 2);
    if (!start || !(*start == padded->params.get<Shape>("low")) ||
        !has_step(padded->params.get<Shape>("interior"), 0) ||
        !(e.program.aval(window).shape == e.program.aval(cut->inputs[1]).shape) ||
        !is_window(e, window, x, *start))
      continue;
    // A start that does not fit would be moved: what is padded fits.
    const Shape& high = padded->params.get<Shape>("high");
    if (std::any_of(high.begin(), high.end(), [](Dim n) { return less_equal(0, n) != true; }) ||
        std::any_of(start->begin(), start->end(), [](Dim n) { return less_equal(0, n) != true; }))
      continue;
    return e.program.add(add_p, {x, padded->inputs[1]}, e.params, e.source);
  }
  return std::nullopt;
}

// --- Arrays without elements ---------------------------------------------------------------------

bool has_no_elements(const Aval& aval) {
  return std::any_of(aval.shape.begin(), aval.shape.end(), [](Dim dim) { return dim == Dim(0); });
}
bool is_any_without_elements(const Peephole& e) {
  return std::any_of(e.avals.begin(), e.avals.end(), has_no_elements);
}
Atom zero_of(DType dtype) { return Literal{dtype, false, 0, 0, 0}; }

// One such array is like another. What may fail is still to be run.
Replacement nothing_of_nothing(const Peephole& e) {
  if (!is_any_without_elements(e) || !Speculate::table().find(e.primitive) ||
      e.primitive == broadcast_in_dim_p)
    return std::nullopt;
  std::vector<Atom> results;
  for (const Aval& aval : infer(e.primitive, e.avals, e.params)) {
    if (aval.stack > 0 || !has_no_elements(aval)) return std::nullopt;
    results.push_back((*splat(e, zero_of(aval.dtype), aval.shape))[0]);
  }
  return results;
}

// A result that has elements, all of them this one.
Replacement all_are(const Peephole& e, const Atom& scalar) {
  const Shape shape = infer(e.primitive, e.avals, e.params)[0].shape;
  return shape.empty() ? same_as(scalar) : splat(e, scalar, shape);
}
Replacement reduce_of_nothing(const Peephole& e) {
  if (!has_no_elements(e.avals[0])) return std::nullopt;
  return all_are(e, identity_of(e.params.text("kind"), e.avals[0].dtype));
}
Replacement dot_of_nothing(const Peephole& e) {
  if (!is_any_without_elements(e)) return std::nullopt;
  return all_are(e, zero_of(e.params.get<DType>("dtype")));
}
Replacement pad_of_nothing(const Peephole& e) {
  if (!has_no_elements(e.avals[0])) return std::nullopt;
  return all_are(e, e.inputs[1]);
}
Replacement concatenate_with_nothing(const Peephole& e) {
  std::vector<Atom> others;
  for (std::size_t i = 0; i < e.inputs.size(); ++i)
    if (!has_no_elements(e.avals[i])) others.push_back(e.inputs[i]);
  if (others.empty() || others.size() == e.inputs.size()) return std::nullopt;
  if (others.size() == 1) return others;
  return e.program.add(e.primitive, std::move(others), e.params, e.source);
}
Replacement update_of_nothing(const Peephole& e) {
  // Rows that say where nothing is scattered are still to be checked.
  if (!std::all_of(e.avals.begin() + 1, e.avals.begin() + (e.primitive == scatter_p ? 3 : 2),
                   has_no_elements))
    return std::nullopt;
  return same_as(e.inputs[0]);
}

}  // namespace

const PeepholeRules& algebra() {
  static const auto& rules = *new PeepholeRules({
      {"stop_gradient(x) = x, tag(x) = x", {&stop_gradient_p, &tag_p}, pass_through},
      {"transpose(transpose(x, p), q) = transpose(x, p o q)",
       {&transpose_p},
       transpose_of_transpose},
      {"reshape(reshape(x, s), t) = reshape(x, t)", {&reshape_p}, reshape_of_reshape},
      {"broadcast(broadcast(x, d), e) = broadcast(x, e o d)",
       {&broadcast_in_dim_p},
       broadcast_of_broadcast},
      {"move(splat(x)) = splat(x)", {&reshape_p, &transpose_p}, movement_of_splat},
      {"pointwise(x, splat(y)) = pointwise(x, y)", {}, pointwise_of_splats},
      {"cast(x, dtype of x) = x", {&cast_p}, cast_to_same},
      {"cast(cast(x, a), b) = cast(x, b) where a holds every x", {&cast_p}, cast_of_exact_cast},
      {"select(true, x, y) = x", {&select_p}, select_by_literal},
      {"neg(neg(x)) = x, not(not(x)) = x", {&neg_p, &not_p}, involution},
      {"x * 1 = x / 1 = x", {&mul_p, &div_p}, without_one_behind},
      {"1 * x = x", {&mul_p}, without_one_before},
      {"x - 0 = x", {&sub_p}, without_zero_behind},
      {"x + -0 = x", {&add_p}, without_zero_added_behind},
      {"-0 + x = x", {&add_p}, without_zero_added_before},
      {"x with 0 in a window, + that window of x = x + 0", {&add_p}, window_put_back},
      {"f(x) = 0 where neither has elements", {}, nothing_of_nothing},
      {"reduce(x) = its identity where x has no elements", {&reduce_p}, reduce_of_nothing},
      {"dot(x, y) = 0 where an operand has no elements", {&dot_general_p}, dot_of_nothing},
      {"pad(x, y) = y where x has no elements", {&pad_p}, pad_of_nothing},
      {"concatenate(x, y) = x where y has no elements", {&concatenate_p}, concatenate_with_nothing},
      {"update(x, y) = x where y has no elements",
       {&scatter_p, &dynamic_update_slice_p},
       update_of_nothing},
  });
  return rules;
}

}  // namespace plait::compile_passes
