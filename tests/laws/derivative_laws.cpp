// Laws of derivatives. See laws.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <plait/inspect/tolerance.h>
#include "laws.h"

namespace plait::laws {
namespace {

std::vector<bool> differentiable_inputs(const Case& one) {
  std::vector<bool> flags;
  for (const Sample::Input& input : one.inputs) flags.push_back(is_differentiable(input.aval));
  return flags;
}

bool any(const std::vector<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}

// The subsets of the differentiable inputs.
std::vector<std::vector<bool>> differentiable_subsets(const Case& one) {
  std::vector<std::vector<bool>> subsets = nonempty_subsets(one.inputs.size());
  const std::vector<bool> allowed = differentiable_inputs(one);
  std::erase_if(subsets, [&](const std::vector<bool>& subset) {
    for (std::size_t i = 0; i < subset.size(); ++i)
      if (subset[i] && !allowed[i]) return true;
    return false;
  });
  if (any(allowed) && std::find(subsets.begin(), subsets.end(), allowed) == subsets.end())
    subsets.push_back(allowed);
  return subsets;
}

Arrays directions_for(std::span<const Array> primals, unsigned seed) {
  Arrays directions;
  for (std::size_t i = 0; i < primals.size(); ++i)
    directions.push_back(normal_like(primals[i].aval(), seed + unsigned(i)));
  return directions;
}

Tangents tangents_of(const Arrays& directions, const std::vector<bool>& wrt) {
  Tangents tangents;
  for (std::size_t i = 0; i < directions.size(); ++i)
    tangents.push_back(wrt[i] ? Tangent(directions[i]) : Tangent(directions[i].aval()));
  return tangents;
}

Arrays moved_along(const Arrays& primals, const Arrays& directions, const std::vector<bool>& wrt,
                   double step) {
  Arrays result = primals;
  for (std::size_t i = 0; i < primals.size(); ++i)
    if (wrt[i]) result[i] = moved(primals[i], directions[i], step);
  return result;
}

// How far rounding to a dtype moves a number, relative to it.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    case DType::float32:
    case DType::complex64:
      return 0x1p-24;
    default:
      return 0x1p-53;
  }
}

double largest(const Array& array) {
  double most = 0;
  for (complex128 number : numbers_of(array))
    if (const double size = std::abs(number); std::isfinite(size)) most = std::max(most, size);
  return most;
}

// (high - low) / (2 step), in the numbers' own dtype.
Array quotient(const Array& high, const Array& low, double step) {
  return moved(moved(normal_like(high.aval(), 0), normal_like(high.aval(), 0), -1),
               moved(high, low, -1), 0.5 / step);
}

// Tangents against differences of f along the directions; integer results have no tangent.
Verdict tangents_are_differences(const Function& f, const Arrays& primals, const Arrays& directions,
                                 const std::vector<bool>& wrt, const Tangents& tangents,
                                 const Arrays& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const DType dtype = outputs[i].dtype();
    const std::string which = "the tangent of result " + std::to_string(i);
    if (!is_inexact(dtype)) {
      if (!tangents[i].is_zero())
        return which + ", which is " + outputs[i].aval().to_string() + ", is not a symbolic zero";
      continue;
    }
    DType coarsest = dtype;
    for (std::size_t k = 0; k < primals.size(); ++k)
      if (wrt[k] && tolerance_of(primals[k].dtype()).step > tolerance_of(coarsest).step)
        coarsest = primals[k].dtype();
    const Tolerance tolerance = tolerance_of(coarsest);
    const Array low = f(moved_along(primals, directions, wrt, -tolerance.step))[i];
    const Array high = f(moved_along(primals, directions, wrt, tolerance.step))[i];
    // Results are rounded, and the quotient of differences with them.
    const double rounding = rounding_of(coarsest) * largest(high) / tolerance.step;
    if (auto found = difference(tangents[i].instantiate(), quotient(high, low, tolerance.step),
                                tolerance.derivative + rounding))
      return which + ": " + *found;
  }
  return std::nullopt;
}

// Random cotangents for the inexact outputs that are chosen.
Tangents cotangents_for(const Arrays& outputs, const std::vector<bool>& chosen, unsigned seed) {
  Tangents cotangents;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Aval& aval = outputs[i].aval();
    if (chosen[i] && is_inexact(aval.dtype))
      cotangents.push_back(normal_like(aval, seed + unsigned(i)));
    else
      cotangents.push_back(Tangent(aval));
  }
  return cotangents;
}

bool all_zero(const Tangents& tangents) {
  return std::all_of(tangents.begin(), tangents.end(),
                     [](const Tangent& tangent) { return tangent.is_zero(); });
}

// A sum of products, and what its rounding errors grow with.
struct Pairing {
  double value = 0, scale = 0;
  void add(const Tangent& a, const Tangent& b) {
    if (a.is_zero() || b.is_zero()) return;
    const double term = dot(a.array(), b.array());
    value += term;
    double squares = 0;
    const std::vector<complex128> left = numbers_of(a.array()), right = numbers_of(b.array());
    for (std::size_t i = 0; i < left.size(); ++i) squares += std::norm(left[i] * right[i]);
    scale += std::abs(term) + std::sqrt(squares);
  }
};

double pairing_tolerance(const Arrays& values) {
  double tolerance = derivative_order;
  for (const Array& value : values)
    tolerance = std::max(tolerance, tolerance_of(value.dtype()).value);
  return tolerance;
}

}  // namespace

Verdict jvp_is_difference(const Case& one) {
  const Arrays primals = one.values(), directions = directions_for(primals, 100);
  const Function f = one.function();
  for (const std::vector<bool>& wrt : differentiable_subsets(one)) {
    const Differentiated result = flat::jvp(f, primals, tangents_of(directions, wrt));
    if (auto found = difference_in_results(one, result.outputs, f(primals)))
      return "the primal of jvp: " + *found;
    if (auto found =
            tangents_are_differences(f, primals, directions, wrt, result.tangents, result.outputs))
      return found;
  }
  return std::nullopt;
}

Verdict vjp_is_adjoint(const Case& one) {
  const Arrays primals = one.values(), directions = directions_for(primals, 100);
  const Function f = one.function();
  for (const std::vector<bool>& wrt : differentiable_subsets(one)) {
    const Differentiated pushed = flat::jvp(f, primals, tangents_of(directions, wrt));
    const flat::Pullback pullback = flat::vjp(f, primals, wrt);
    if (auto found = difference(pullback.outputs, pushed.outputs))
      return "the outputs of vjp: " + *found;
    for (const std::vector<bool>& chosen : nonempty_subsets(pushed.outputs.size())) {
      const Tangents cotangents = cotangents_for(pushed.outputs, chosen, 200);
      Pairing forward, backward;
      for (std::size_t i = 0; i < cotangents.size(); ++i)
        forward.add(pushed.tangents[i], cotangents[i]);
      const Tangents pulled = pullback.pull(cotangents);
      std::size_t next = 0;
      for (std::size_t i = 0; i < primals.size(); ++i) {
        if (!wrt[i]) continue;
        const Tangent& cotangent = pulled.at(next++);
        if (!(cotangent.aval().shape == primals[i].shape()) ||
            cotangent.aval().dtype != primals[i].dtype())
          return "the cotangent of input " + std::to_string(i) + " is " +
                 cotangent.aval().to_string() + ", and the input " + primals[i].aval().to_string();
        backward.add(Tangent(directions[i]), cotangent);
      }
      Arrays all = primals;
      all.insert(all.end(), pushed.outputs.begin(), pushed.outputs.end());
      if (auto found = difference(backward.value, forward.value, forward.scale + backward.scale,
                                  pairing_tolerance(all)))
        return "<v, J'w> is " + *found + " for <Jv, w>";
    }
  }
  return std::nullopt;
}

Verdict second_derivative_is_difference(const Case& one) {
  const std::vector<bool> wrt = differentiable_inputs(one);
  if (!any(wrt)) return std::nullopt;
  const Arrays primals = one.values(), directions = directions_for(primals, 300);
  const Function f = one.function();
  const Arrays outputs = f(primals);
  const Tangents cotangents = cotangents_for(outputs, std::vector<bool>(outputs.size(), true), 400);
  if (all_zero(cotangents)) return std::nullopt;
  const Function pull = [&](std::span<const Array> inputs) {
    Arrays gradients;
    for (const Tangent& tangent : flat::vjp(f, inputs, wrt).pull(cotangents))
      gradients.push_back(tangent.instantiate());
    return gradients;
  };
  const Differentiated result = flat::jvp(pull, primals, tangents_of(directions, wrt));
  return tangents_are_differences(pull, primals, directions, wrt, result.tangents, result.outputs);
}

// --- Linear primitives ---------------------------------------------------------------------------

namespace {

// Whether f is linear in these inputs, numerically.
bool is_linear_in(const Case& one, const Arrays& primals, const std::vector<bool>& subset) {
  const Arrays u = directions_for(primals, 500), v = directions_for(primals, 600);
  auto at = [&](auto&& value_of) {
    Arrays inputs = primals;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (subset[i]) inputs[i] = value_of(i);
    return one(inputs);
  };
  const Arrays of_u = at([&](std::size_t i) { return u[i]; }),
               of_v = at([&](std::size_t i) { return v[i]; });
  const Arrays of_sum = at([&](std::size_t i) { return moved(u[i], v[i], -2.5); });
  for (std::size_t i = 0; i < of_sum.size(); ++i) {
    if (!is_inexact(of_sum[i].dtype())) return false;
    if (difference(of_sum[i], moved(of_u[i], of_v[i], -2.5),
                   std::max(derivative_order, tolerance_of(of_sum[i].dtype()).value)))
      return false;
  }
  // Of nothing, everything is linear.
  return std::any_of(of_sum.begin(), of_sum.end(), [](const Array& array) {
    return array.shape().num_elements().constant() > 0;
  });
}

}  // namespace

Verdict transpose_is_adjoint(const Case& one) {
  if (!one.primitive) return vjp_is_adjoint(one);
  const Transpose::Rule* transpose = Transpose::table().find(*one.primitive);
  if (!transpose) return std::nullopt;  // coverage says whether there must be one
  const Arrays primals = one.values(), directions = directions_for(primals, 700);
  for (const std::vector<bool>& subset : differentiable_subsets(one)) {
    if (!is_linear_in(one, primals, subset)) continue;
    Arrays inputs = primals;
    std::vector<TransposeInput> arguments;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (subset[i]) inputs[i] = directions[i];
      arguments.push_back(subset[i] ? TransposeInput(primals[i].aval())
                                    : TransposeInput(primals[i]));
    }
    const Arrays outputs = one(inputs);
    for (const std::vector<bool>& chosen : nonempty_subsets(outputs.size())) {
      const Tangents cotangents = cotangents_for(outputs, chosen, 800);
      if (all_zero(cotangents)) continue;
      const Tangents pulled = (*transpose)(cotangents, arguments, one.params);
      if (pulled.size() != inputs.size())
        return "the Transpose rule gives " + std::to_string(pulled.size()) + " cotangents";
      Pairing forward, backward;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        forward.add(Tangent(outputs[i]), cotangents[i]);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!subset[i]) continue;
        if (!pulled[i].is_zero() && !(pulled[i].aval().shape == inputs[i].shape()))
          return "the cotangent of input " + std::to_string(i) + " is " +
                 pulled[i].aval().to_string();
        backward.add(Tangent(inputs[i]), pulled[i]);
      }
      Arrays all = inputs;
      all.insert(all.end(), outputs.begin(), outputs.end());
      if (auto found = difference(backward.value, forward.value, forward.scale + backward.scale,
                                  pairing_tolerance(all)))
        return "<x, A'w> is " + *found + " for <Ax, w>";
    }
  }
  return std::nullopt;
}

}  // namespace plait::laws
