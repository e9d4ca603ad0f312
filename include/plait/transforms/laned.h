// Shared by the equations with lanes, `masked` and `lanes`. Each applies a body of one example to
// many, and every transform except evaluation rewrites the body and keeps the lanes.
//
// Their parameters P have a body, lanes and to_params(). Operands may come before the body's. The
// cotangent of an unbatched operand is summed over the batch. `masked` equations sum it themselves,
// while they compute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/transforms/bodies.h>
#include <plait/transforms/masked.h>

namespace plait {

inline std::size_t num_before(const MaskedParams& masked) { return masked.num_ragged(); }
// The cotangent of operand i from that of its examples: their sum where operand i is unbatched.
inline Array sum_shared(const MaskedParams&, const Array& cotangent, std::size_t) {
  return cotangent;  // the equation has summed it
}
// Other parameters P have overloads of both.
template <class P>
constexpr bool sums_results = std::is_same_v<P, MaskedParams>;

// Collects the operands of an equation derived from another, with their lanes.
template <class P>
class LanedEquation {
 public:
  // before: the operands that come before the body's.
  LanedEquation(const Primitive& primitive, const P& from, const Jaxpr& body,
                std::span<const Array> before)
      : primitive_(primitive), from_(from), params_(from) {
    params_.body = body;
    for (Lane& lane : params_.lanes) lane.batched.clear(), lane.summed.clear();
    for (std::size_t i = 0; i < num_before(from); ++i) add_like(before[i], i);
  }
  // An operand with the lanes of operand `like` of the original equation, or with every lane.
  void add_like(const Array& operand, std::size_t like) {
    operands_.push_back(operand);
    for (std::size_t i = 0; i < params_.lanes.size(); ++i)
      params_.lanes[i].batched.push_back(from_.lanes[i].batched[like]);
  }
  void add_result(const Array& operand) {
    operands_.push_back(operand);
    for (Lane& lane : params_.lanes) lane.batched.push_back(true);
  }
  // The cotangent of an output of the original equation.
  void add_cotangent(const Array& operand, std::size_t output) {
    operands_.push_back(operand);
    for (std::size_t i = 0; i < params_.lanes.size(); ++i)
      params_.lanes[i].batched.push_back(!from_.lanes[i].sums(output));
  }
  // The kind of the next output: like one of the original equation, or the cotangent of an operand.
  void add_output_like(std::size_t output) {
    for (std::size_t i = 0; i < params_.lanes.size(); ++i)
      params_.lanes[i].summed.push_back(from_.lanes[i].sums(output));
  }
  void add_cotangent_of(std::size_t operand) {
    for (std::size_t i = 0; i < params_.lanes.size(); ++i)
      params_.lanes[i].summed.push_back(sums_results<P> && !from_.lanes[i].batched[operand]);
  }
  // Omits the checks that the original equation has made.
  void uncheck() {
    if constexpr (requires { params_.checked; }) params_.checked = false;
  }
  // Outputs without a kind are not summed.
  Arrays bind() const { return plait::bind(primitive_, operands_, params_.to_params()); }

 private:
  const Primitive& primitive_;
  const P& from_;
  P params_;
  Arrays operands_;
};

template <class P>
Differentiated linearize_laned(const Primitive& primitive, const P& laned,
                               std::span<const Array> primals, std::span<const Tangent> tangents,
                               Trace* linear) {
  const std::size_t first = num_before(laned), num_outputs = laned.body->outputs.size();
  const auto jaxprs = linearize_jaxpr(laned.body, nonzero(tangents.subspan(first)));
  LanedEquation<P> known(primitive, laned, jaxprs->known, primals);
  for (std::size_t i = first; i < primals.size(); ++i) known.add_like(primals[i], i);
  for (std::size_t i = 0; i < num_outputs; ++i) known.add_output_like(i);
  const Arrays results = known.bind();
  LanedEquation<P> derivative(primitive, laned, jaxprs->linear, primals);
  derivative.uncheck();
  for (std::size_t i = first; i < tangents.size(); ++i)
    if (!tangents[i].is_zero()) derivative.add_like(tangents[i].array(), i);
  for (std::size_t i = num_outputs; i < results.size(); ++i) derivative.add_result(results[i]);
  for (std::size_t i = 0; i < num_outputs; ++i)
    if (jaxprs->nonzero_outputs[i]) derivative.add_output_like(i);
  Differentiated result{slice(results, 0, num_outputs), {}};
  TraceScope scope(linear);
  result.tangents = spread(derivative.bind(), jaxprs->nonzero_outputs, avals_of(result.outputs));
  return result;
}

template <class P>
Tangents transpose_laned(const Primitive& primitive, const P& laned,
                         std::span<const Tangent> cotangents,
                         std::span<const TransposeInput> inputs) {
  const std::size_t first = num_before(laned);
  Flags linear;
  Arrays before;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (i < first)
      before.push_back(inputs[i].known());
    else
      linear.push_back(inputs[i].is_linear());
  }
  const auto transposed = transpose_jaxpr(laned.body, linear, nonzero(cotangents));
  LanedEquation<P> equation(primitive, laned, transposed->jaxpr, before);
  equation.uncheck();
  for (std::size_t i = first; i < inputs.size(); ++i)
    if (!inputs[i].is_linear()) equation.add_like(inputs[i].known(), i);
  for (std::size_t i = 0; i < cotangents.size(); ++i)
    if (!cotangents[i].is_zero()) equation.add_cotangent(cotangents[i].array(), i);
  std::size_t next = 0, at = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].is_linear() && transposed->nonzero_inputs[at++]) equation.add_cotangent_of(i);
  const Arrays outputs = equation.bind();
  Tangents results;
  at = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].is_linear() || !transposed->nonzero_inputs[at++]) {
      results.push_back(Tangent(inputs[i].aval()));
      continue;
    }
    results.push_back(Tangent(sum_shared(laned, outputs[next++], i)));
  }
  return results;
}

template <class P>
std::vector<Batched> batch_laned(const Primitive& primitive, P laned, Dim size,
                                 std::span<const Batched> inputs) {
  Arrays operands;
  Lane lane{size, {}};
  for (const Batched& input : inputs) {
    operands.push_back(input.dim ? batch_to_front(input, size) : input.array);
    lane.batched.push_back(input.dim.has_value());
  }
  laned.lanes.insert(laned.lanes.begin(), std::move(lane));
  std::vector<Batched> results;
  for (Array& output : bind(primitive, operands, laned.to_params()))
    results.push_back({std::move(output), 0});
  return results;
}

}  // namespace plait
