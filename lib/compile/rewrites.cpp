// Rewrite rows: one bit-exact law each, whatever the numbers are. `x + 0 -> x` is not one of them:
// it turns -0 into 0. See simplify.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>

#include "simplify.h"

#include <bit>

namespace plait::compile_passes {
namespace {

using Result = std::optional<Replacement>;

Replacement equation(const Primitive& primitive, std::vector<Atom> inputs, Params params) {
  return {&primitive, std::move(inputs), std::move(params), std::nullopt, std::nullopt};
}
Replacement same_as(const Atom& atom) { return {nullptr, {}, {}, atom, std::nullopt}; }

// The equation of this primitive that defines an input, if that is what defines it.
const Equation* defined_by(const Candidate& c, std::size_t input, const Primitive& primitive) {
  const Equation* found = c.definition(c.inputs[input]);
  return found && *found->primitive == primitive ? found : nullptr;
}

// A value that is one scalar everywhere: the scalar's atom.
std::optional<Atom> splat_of(const Candidate& c, const Atom& atom) {
  const Equation* found = c.definition(atom);
  if (!found || !(*found->primitive == broadcast_in_dim_p)) return std::nullopt;
  if (c.aval(found->inputs[0]).rank() != 0) return std::nullopt;
  return found->inputs[0];
}

Params broadcast_params(const Shape& shape, const Shape& dims) {
  return {{"shape", shape}, {"dims", dims}};
}

Result transpose_of_transpose(const Candidate& c) {
  if (!(c.primitive == transpose_p)) return std::nullopt;
  const Equation* inner = defined_by(c, 0, transpose_p);
  if (!inner) return std::nullopt;
  const Shape &p = inner->params.get<Shape>("permutation"), &q = c.params.get<Shape>("permutation");
  Shape composed;
  for (Dim axis : q) composed.push_back(p[std::size_t(axis.constant())]);
  return equation(transpose_p, {inner->inputs[0]}, {{"permutation", composed}});
}

Result reshape_of_reshape(const Candidate& c) {
  if (!(c.primitive == reshape_p)) return std::nullopt;
  const Equation* inner = defined_by(c, 0, reshape_p);
  if (!inner) return std::nullopt;
  return equation(reshape_p, {inner->inputs[0]}, c.params);
}

Result broadcast_of_broadcast(const Candidate& c) {
  if (!(c.primitive == broadcast_in_dim_p)) return std::nullopt;
  const Equation* inner = defined_by(c, 0, broadcast_in_dim_p);
  if (!inner) return std::nullopt;
  Shape dims;
  for (Dim dim : inner->params.get<Shape>("dims"))
    dims.push_back(c.params.get<Shape>("dims")[std::size_t(dim.constant())]);
  return equation(broadcast_in_dim_p, {inner->inputs[0]},
                  broadcast_params(c.params.get<Shape>("shape"), dims));
}

// A scalar everywhere looks the same from everywhere.
Result movement_of_splat(const Candidate& c) {
  if (!(c.primitive == reshape_p) && !(c.primitive == transpose_p)) return std::nullopt;
  const std::optional<Atom> scalar = splat_of(c, c.inputs[0]);
  if (!scalar) return std::nullopt;
  const Shape shape = infer(c.primitive, c.avals, c.params)[0].shape;
  if (shape.empty()) return same_as(*scalar);
  return equation(broadcast_in_dim_p, {*scalar}, broadcast_params(shape, {}));
}

// Elementwise equations take scalars as they are; where all operands are scalars, so is the result.
Result pointwise_of_splats(const Candidate& c) {
  if (c.inputs.empty() || !Pointwise::table().find(c.primitive)) return std::nullopt;
  std::vector<Atom> scalars(c.inputs.begin(), c.inputs.end());
  bool any = false;
  Shape shape;
  for (std::size_t i = 0; i < scalars.size(); ++i) {
    if (c.avals[i].rank() == 0) continue;
    if (const std::optional<Atom> scalar = splat_of(c, scalars[i])) {
      if (shape.empty()) shape = c.avals[i].shape;
      scalars[i] = *scalar;
      any = true;
    }
  }
  if (!any) return std::nullopt;
  bool all = true;
  for (const Atom& atom : scalars) all &= c.aval(atom).rank() == 0;
  Replacement result = equation(c.primitive, std::move(scalars), c.params);
  if (all) result.splat_to = shape;
  return result;
}

// Whether every value of `from` is one of `to`.
bool is_exact(DType from, DType to) {
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
    // bfloat16 has more exponents than float16, and fewer digits.
    return to == DType::float64 || (to == DType::float32 && from != DType::float64);
  }
  if (is_inexact(to)) return to != DType::float16 && bits <= mantissa(to);
  const bool to_signed =
      to == DType::int8 || to == DType::int16 || to == DType::int32 || to == DType::int64;
  return to != DType::bool_ && (to_signed || !is_signed) &&
         bits <= 8 * int(size_of(to)) - to_signed;
}

// Weakness means nothing to a running program.
Result cast_to_same(const Candidate& c) {
  if (!(c.primitive == cast_p) || c.params.get<DType>("dtype") != c.avals[0].dtype)
    return std::nullopt;
  return same_as(c.inputs[0]);
}

Result cast_of_exact_cast(const Candidate& c) {
  if (!(c.primitive == cast_p)) return std::nullopt;
  const Equation* inner = defined_by(c, 0, cast_p);
  if (!inner) return std::nullopt;
  const DType from = c.aval(inner->inputs[0]).dtype, to = c.params.get<DType>("dtype");
  if (!is_exact(from, c.avals[0].dtype)) return std::nullopt;
  if (is_complex(c.avals[0].dtype) != is_complex(to)) return std::nullopt;
  if (from == to) return same_as(inner->inputs[0]);
  return equation(cast_p, {inner->inputs[0]}, c.params);
}

Result select_by_literal(const Candidate& c) {
  if (!(c.primitive == select_p) || c.inputs[0].is_var()) return std::nullopt;
  const std::size_t chosen = c.inputs[0].literal().integer ? 1 : 2;
  if (c.avals[chosen].rank() < c.avals[3 - chosen].rank()) return std::nullopt;
  return same_as(c.inputs[chosen]);
}

Result involution(const Candidate& c) {
  if (!(c.primitive == neg_p) && !(c.primitive == not_p)) return std::nullopt;
  const Equation* inner = defined_by(c, 0, c.primitive);
  if (!inner) return std::nullopt;
  return same_as(inner->inputs[0]);
}

bool is_literal(const Candidate& c, std::size_t input, double value) {
  if (c.inputs[input].is_var()) return false;
  const Literal& literal = c.inputs[input].literal();
  if (is_complex(literal.dtype)) return false;
  return std::bit_cast<std::uint64_t>(literal.as_double()) == std::bit_cast<std::uint64_t>(value);
}

// x * 1, x / 1, x - 0, x + -0; of integers x + 0 too.
Result neutral_operand(const Candidate& c) {
  if (c.inputs.size() != 2 || c.avals[0].dtype == DType::bool_ || is_complex(c.avals[0].dtype))
    return std::nullopt;
  const bool is_float = is_inexact(c.avals[0].dtype);
  const bool right = (c.primitive == mul_p && is_literal(c, 1, 1)) ||
                     (c.primitive == div_p && is_literal(c, 1, 1)) ||
                     (c.primitive == sub_p && is_literal(c, 1, 0)) ||
                     (c.primitive == add_p && is_literal(c, 1, is_float ? -0.0 : 0.0));
  if (right) return same_as(c.inputs[0]);
  const bool left = (c.primitive == mul_p && is_literal(c, 0, 1)) ||
                    (c.primitive == add_p && is_literal(c, 0, is_float ? -0.0 : 0.0));
  if (left) return same_as(c.inputs[1]);
  return std::nullopt;
}

constexpr Row rows[] = {
    {"transpose(transpose(x, p), q) = transpose(x, p o q)", transpose_of_transpose},
    {"reshape(reshape(x, s), t) = reshape(x, t)", reshape_of_reshape},
    {"broadcast(broadcast(x, d), e) = broadcast(x, e o d)", broadcast_of_broadcast},
    {"move(splat(x)) = splat(x)", movement_of_splat},
    {"pointwise(x, splat(y)) = pointwise(x, y)", pointwise_of_splats},
    {"cast(x, dtype of x) = x", cast_to_same},
    {"cast(cast(x, a), b) = cast(x, b) where a holds every x", cast_of_exact_cast},
    {"select(true, x, y) = x", select_by_literal},
    {"neg(neg(x)) = x, not(not(x)) = x", involution},
    {"x * 1 = x / 1 = x - 0 = x + -0 = x", neutral_operand},
};

}  // namespace

std::span<const Row> rewrite_rows() { return rows; }

}  // namespace plait::compile_passes
