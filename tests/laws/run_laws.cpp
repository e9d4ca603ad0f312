// Laws of running: jit, kernels, decompositions, folding, dtypes. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/compile.h>
#include <plait/rules/commute.h>
#include <plait/rules/interpret.h>
#include <plait/rules/put.h>

#include <algorithm>
#include <cmath>

#include <plait/inspect/tolerance.h>
#include "laws.h"

namespace plait::laws {

Verdict jit_is_eager(const Case& one) {
  const Arrays inputs = one.values();
  const Function f = one.function();
  const Arrays eager = f(inputs);
  const flat::Jit jitted(f, one.name);
  for (int call = 0; call < 2; ++call)
    if (auto found = difference_in_bits(jitted(inputs), eager)) return "jit: " + *found;
  std::vector<Buffer> buffers;
  for (const Array& input : inputs) buffers.push_back(input.buffer());
  Arrays compiled;
  for (const Buffer& buffer : compile(make_jaxpr(f, one.avals()).jaxpr)->run(buffers))
    compiled.push_back(Array(buffer));
  if (auto found = difference_in_bits(compiled, eager)) return "compile: " + *found;
  Arrays scattered;
  for (const Array& input : inputs) scattered.push_back(strided(input));
  if (auto found = difference_in_bits(jitted(scattered), eager))
    return "jit of arrays with gaps: " + *found;

  std::vector<bool> wrt;
  for (const Sample::Input& input : one.inputs) wrt.push_back(is_differentiable(input.aval));
  if (std::none_of(wrt.begin(), wrt.end(), [](bool flag) { return flag; })) return std::nullopt;
  if (one.primitive && Jvp::table().origin(*one.primitive) && !Jvp::table().find(*one.primitive))
    return std::nullopt;  // refused
  const Function gradient = [&](std::span<const Array> x) {
    const flat::Pullback pullback = flat::vjp(f, x, wrt);
    Tangents cotangents;
    for (std::size_t i = 0; i < pullback.outputs.size(); ++i) {
      const Aval& aval = pullback.outputs[i].aval();
      cotangents.push_back(is_differentiable(aval)
                               ? Tangent(normal_like(eager[i].aval(), 900 + unsigned(i)))
                               : Tangent(aval));
    }
    Arrays results;
    for (const Tangent& tangent : pullback.pull(cotangents))
      results.push_back(tangent.instantiate());
    return results;
  };
  if (auto found = difference_in_bits(flat::Jit(gradient, "gradient")(inputs), gradient(inputs)))
    return "jit of the gradient: " + *found;
  return std::nullopt;
}

namespace {

// The body of the composite that the case is named after; nothing when it applies none.
std::optional<Jaxpr> body_of(const Case& one) {
  const Jaxpr program = make_jaxpr(one.function(), one.avals()).jaxpr;
  if (program->equations.size() != 1) return std::nullopt;
  const Equation& equation = program->equations[0];
  if (!(*equation.primitive == composite_p) || equation.params.text("symbol") != one.name)
    return std::nullopt;
  return equation.params.get<Jaxpr>("body");
}

}  // namespace

std::optional<std::string> has_no_decomposition(const Case& one) {
  if (!one.primitive)
    return body_of(one) ? std::nullopt : std::optional<std::string>("a function of several");
  if (!Decompose::table().find(*one.primitive)) return "it has a kernel alone";
  if (!Eval::table().find(*one.primitive)) return "it runs as what it decomposes to";
  return std::nullopt;
}

Verdict eval_is_decomposition(const Case& one) {
  if (has_no_decomposition(one)) return std::nullopt;
  const Arrays inputs = one.values();
  const Jaxpr program =
      one.primitive ? decomposition(*one.primitive, one.avals(), one.params) : *body_of(one);
  if (auto found = difference(eval_jaxpr(program, inputs), one(inputs)))
    return "the decomposition: " + *found;
  return std::nullopt;
}

namespace {

// The Eval rule by itself, into dense memory.
Arrays evaluated(const Case& one, const Arrays& inputs) {
  std::vector<View> sources, targets;
  std::vector<Buffer> buffers;
  std::vector<Aval> avals;
  for (const Array& input : inputs) {
    sources.push_back(input.buffer().view());
    avals.push_back(input.aval());
  }
  for (const Aval& aval : infer(*one.primitive, avals, one.params))
    buffers.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes()));
  for (const Buffer& buffer : buffers) targets.push_back(buffer.view());
  rule<Eval> (*one.primitive)(sources, targets, one.params);
  Arrays results;
  for (const Buffer& buffer : buffers) results.push_back(Array(buffer));
  return results;
}

}  // namespace

Verdict bind_is_eval(const Case& one) {
  if (!one.primitive || !Eval::table().find(*one.primitive)) return std::nullopt;
  const Arrays inputs = one.values();
  const Arrays dense = evaluated(one, inputs), given = one(inputs);
  if (auto found = library_of(one) ? difference(given, dense) : difference_in_bits(given, dense))
    return "applied: " + *found + " by its Eval rule";
  Arrays scattered;
  for (const Array& input : inputs) scattered.push_back(strided(input));
  if (auto found = difference_in_bits(evaluated(one, scattered), dense))
    return "Eval of arrays with gaps: " + *found + " as when dense";
  if (auto found = difference_in_bits(one(scattered), given))
    return "applied to arrays with gaps: " + *found + " as when dense";
  const Alias::Rule* alias = Alias::table().find(*one.primitive);
  if (!alias) return std::nullopt;
  for (std::size_t i = 0; i < dense.size() && i < inputs.size(); ++i)
    for (const Array& input : {inputs[i], scattered[i]}) {
      const Buffer buffer = input.buffer();
      if (const std::optional<View> view =
              (*alias)(buffer.view(), dense[i].shape().to_sizes(), one.params))
        if (auto found = difference_in_bits(Array(Buffer::copy_of(*view)), dense[i]))
          return "its Alias: " + *found + " by its Eval rule";
    }
  return std::nullopt;
}

Verdict fold_is_eval(const Case& one) {
  if (!one.primitive || !Fold::table().find(*one.primitive) || !Eval::table().find(*one.primitive))
    return std::nullopt;
  std::vector<Literal> literals;
  Arrays inputs;
  for (const Sample::Input& input : one.inputs) {
    if (input.aval.rank() != 0) return std::nullopt;
    inputs.push_back(values_for(input, 3 + unsigned(inputs.size())));
    const complex128 value = numbers_of(inputs.back())[0];
    Literal literal{input.aval.dtype, input.aval.weak, 0, 0, 0};
    if (is_inexact(input.aval.dtype))
      literal.real = value.real(), literal.imaginary = value.imag();
    else
      literal.integer = std::int64_t(value.real());
    literals.push_back(literal);
  }
  const auto folded = (*Fold::table().find(*one.primitive))(literals, one.params);
  if (!folded) return std::nullopt;
  const std::vector<Aval> avals = infer(*one.primitive, one.avals(), one.params);
  Arrays results;
  for (std::size_t i = 0; i < folded->size(); ++i) {
    if (!((*folded)[i].aval() == avals.at(i)))
      return "folding gives " + (*folded)[i].aval().to_string() + ", and Abstract says " +
             avals[i].to_string();
    results.push_back(Array::literal((*folded)[i]));
  }
  if (auto found = difference_in_bits(results, evaluated(one, inputs)))
    return "folding literals: " + *found + " by its Eval rule";
  return std::nullopt;
}

// --- Dtypes --------------------------------------------------------------------------------------

namespace {

// Whether an integer dtype holds a number that float64 holds exactly.
bool holds(DType dtype, double value) {
  if (dtype == DType::bool_) return value == 0 || value == 1;
  const int bits = 8 * int(size_of(dtype)) - (is_unsigned_integer(dtype) ? 0 : 1);
  const double limit = std::min(std::ldexp(1.0, bits), 0x1p53);
  return value < limit && value >= (is_unsigned_integer(dtype) ? 0 : -limit);
}

// What a dtype's results are to be compared with: the float64 result where both can represent it.
Verdict agrees(const Array& actual, const Array& wide, DType dtype) {
  if (!(actual.shape() == wide.shape()))
    return "the shape is " + actual.aval().to_string() + ", and in float64 " +
           wide.aval().to_string();
  const std::vector<complex128> a = numbers_of(actual), b = numbers_of(wide);
  const double factor = is_inexact(dtype) ? tolerance_of(dtype).value : 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i].real(), y = b[i].real();
    if (std::isnan(y) && is_inexact(actual.dtype()) && is_inexact(dtype)) {
      if (!std::isnan(x))
        return "element " + std::to_string(i) + " is " + std::to_string(x) +
               " where float64 gives NaN";
      continue;
    }
    if (!std::isfinite(y)) continue;
    // Integers: where the real result is one that fits.
    if (!is_inexact(dtype) && (y != std::round(y) || !holds(dtype, y))) continue;
    if (!(std::abs(x - y) <= factor * (1 + std::abs(y))) ||
        !(std::abs(a[i].imag() - b[i].imag()) <= factor * (1 + std::abs(y))))
      return "element " + std::to_string(i) + " is " + std::to_string(x) + " where float64 gives " +
             std::to_string(y);
  }
  return std::nullopt;
}

}  // namespace

Verdict dtypes_agree(const Case& one) {
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16, DType::int32, DType::int64,
                      DType::int16, DType::int8, DType::uint64, DType::uint32, DType::uint16,
                      DType::uint8, DType::bool_, DType::complex128, DType::complex64}) {
    const std::optional<Case> other = with_dtype(one, dtype);
    if (!other) continue;
    Arrays narrow, wide;
    for (std::size_t i = 0; i < one.inputs.size(); ++i) {
      // Numbers that every dtype tried holds exactly.
      const Array value = values_for(one.inputs[i], 21 + 17 * unsigned(i));
      if (one.inputs[i].aval.dtype != DType::float64) {
        narrow.push_back(value);
        wide.push_back(value);
        continue;
      }
      const Array far = moved(value, value, 2);
      const Array whole = is_inexact(dtype)            ? converted(value, DType::bfloat16)
                          : is_unsigned_integer(dtype) ? converted(lax::abs(far), dtype)
                                                       : converted(far, dtype);
      narrow.push_back(converted(whole, dtype));
      wide.push_back(converted(whole, DType::float64));
    }
    const Arrays results = (*other)(narrow), expected = one(wide);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (auto found = agrees(results[i], expected[i], dtype))
        return "as " + std::string(name_of(dtype)) + ", result " + std::to_string(i) + ": " +
               *found;
  }
  return std::nullopt;
}

Verdict operands_commute(const Case& one) {
  const Commute::Rule* rule = one.primitive ? Commute::table().find(*one.primitive) : nullptr;
  const Arrays inputs = one.values();
  if (!rule || inputs.size() != 2 || !(*rule)(one.params)) return std::nullopt;
  if (auto found = difference_in_bits(one(Arrays{inputs[1], inputs[0]}), one(inputs)))
    return "its operands exchanged: " + *found;
  return std::nullopt;
}

Verdict put_is_shown(const Case& one) {
  if (!one.primitive || !Put::table().find(*one.primitive)) return std::nullopt;
  const Array x = one.values()[0];
  const Arrays shown = one(Arrays{x});
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const Sample::Input like{shown[i].aval(), one.inputs[0].values, one.inputs[0].limit};
    const Array value = values_for(like, 17);
    const auto put = [&](const Array& written) {
      return put_through([&](const Array& base) { return one(Arrays{base})[i]; }, x, written);
    };
    const std::int64_t size = num_elements(x.shape().to_sizes());
    if (num_elements(value.shape().to_sizes()) > size) {  // elements are shown more than once
      try {
        put(value);
        return "put of an element that is shown more than once does not throw";
      } catch (const ValueError&) {
        continue;
      }
    }
    if (auto found = difference_in_bits(put(shown[i]), x))
      return "put of what it shows: " + *found + " before";
    Arrays expected = shown;
    expected[i] = value;
    if (auto found = difference_in_bits(one(Arrays{put(value)}), expected))
      return "put of another value: " + *found + " as put";
  }
  return std::nullopt;
}

Verdict accumulate_is_transpose(const Case& one) {
  const Accumulate::Rule* rule = one.primitive ? Accumulate::table().find(*one.primitive) : nullptr;
  const Arrays inputs = one.values();
  if (!rule || inputs.empty() || !is_differentiable(inputs[0].aval())) return std::nullopt;
  const Array result = one(inputs)[0];
  const Array cotangent = values_for({result.aval()}, 31), sum = values_for({inputs[0].aval()}, 32);
  std::vector<TransposeInput> operands{TransposeInput(inputs[0].aval())};
  operands.insert(operands.end(), inputs.begin() + 1, inputs.end());
  const Tangent given(cotangent);
  const Tangents apart =
      (*Transpose::table().find(*one.primitive))({&given, 1}, operands, one.params);
  const Array wanted = lax::add(sum, apart[0].instantiate());
  const Array got = (*rule)(sum, cotangent, operands, one.params);
  if (auto found = agrees(got, wanted, wanted.dtype())) return "a sum of cotangents: " + *found;
  return std::nullopt;
}

}  // namespace plait::laws
