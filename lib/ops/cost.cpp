// The cost of each primitive, and of programs. See cost.h for what is counted.
// SPDX-License-Identifier: Apache-2.0
#include <plait/check.h>
#include <plait/cost.h>
#include <plait/host_call.h>
#include <plait/ir/remembered.h>
#include <plait/ops.h>
#include <plait/ops_control.h>
#include <plait/ops_linalg.h>
#include <plait/trace/interpret.h>

#include <cmath>
#include <numeric>

#include "ops/conv.h"
#include "ops/dot.h"

namespace plait {

Work& Work::operator+=(const Work& other) {
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  known &= other.known;
  return *this;
}

Work Work::times(double count) const {
  return {flops * count, bytes_read * count, bytes_written * count, known};
}

namespace {

using Avals = std::span<const Aval>;

double value_of(Dim size) {
  if (size.is_constant()) return double(size.constant());
  throw ValueError("work_of: the size " + size.to_string() + " is not known",
                   "instantiate the program first: instantiate(jaxpr, {{\"n\", 128}})");
}
double elements_of(const Shape& shape) {
  double count = 1;
  for (const Dim size : shape) count *= value_of(size);
  return count;
}
double elements_of(const Aval& aval) { return elements_of(aval.shape); }

// Operations of a multiply and an add.
double multiply_add(DType dtype) { return is_complex(dtype) ? 8 : 2; }

// flops is a function of (inputs, outputs, params).
template <class Flops>
Cost::Rule arithmetic(Flops flops) {
  return [flops](Work& work, Avals inputs, Avals outputs, const Params& params) {
    work.flops = flops(inputs, outputs, params);
  };
}
Cost::Rule for_each_result(double flops) {
  return arithmetic([flops](Avals, Avals outputs, const Params&) {
    return outputs.empty() ? 0 : flops * elements_of(outputs[0]);
  });
}
Cost::Rule for_each_operand(double flops) {
  return arithmetic(
      [flops](Avals inputs, Avals, const Params&) { return flops * elements_of(inputs[0]); });
}
Cost::Rule moves() {
  return [](Work&, Avals, Avals, const Params&) {};
}
// Reads of its first operand as much as it gives.
Cost::Rule moves_parts() {
  return [](Work& work, Avals inputs, Avals, const Params&) {
    work.bytes_read += work.bytes_written - bytes_of(inputs[0]);
  };
}

// --- Contraction and windows ---------------------------------------------------------------------

double dot_flops(Avals inputs, Avals outputs, const Params& params) {
  double terms = 1;
  for (const int axis : DotAxes(params).lhs_contract) terms *= value_of(inputs[0].shape[axis]);
  return multiply_add(outputs[0].dtype) * terms * elements_of(outputs[0]);
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// How many pairs of a result and a kernel element meet an element that is there, along one axis:
// result o and kernel element k meet place o * stride + k * window_dilation - low of the axis with
// holes, of which every base_dilation'th is an element.
double pairs_along(const Windows& windows, int axis, std::int64_t size, std::int64_t count) {
  const auto at = [&](const Shape& list) { return list[axis].constant(); };
  const std::int64_t stride = at(windows.strides), holes = at(windows.base_dilation),
                     last = (size - 1) * holes, period = holes / std::gcd(stride, holes);
  double pairs = 0;
  for (std::int64_t k = 0; size > 0 && k < at(windows.window); ++k) {
    const std::int64_t place = k * at(windows.window_dilation) - at(windows.low);  // of result 0
    std::int64_t first = std::max<std::int64_t>(0, -floor_div(place, stride));
    const std::int64_t end = std::min(count - 1, floor_div(last - place, stride));
    std::int64_t steps = 0;
    while (steps < period && (first * stride + place) % holes != 0) ++first, ++steps;
    if (steps < period && first <= end) pairs += double((end - first) / period + 1);
  }
  return pairs;
}

double conv_flops(Avals inputs, Avals outputs, const Params& params) {
  const Conv conv(params, inputs[1].shape);
  const auto& [lhs, rhs, out] = conv.dimensions;
  const Shape &image = inputs[0].shape, &result = outputs[0].shape;
  double flops = multiply_add(outputs[0].dtype) * value_of(result[out[0]]) *
                 value_of(result[out[1]]) * value_of(inputs[1].shape[rhs[1]]);
  for (std::size_t i = 2; i < out.size(); ++i)
    flops *=
        pairs_along(conv.windows, int(i - 2), image[lhs[i]].constant(), result[out[i]].constant());
  return flops;
}

double window_flops(Avals, Avals outputs, const Params& params) {
  return elements_of(outputs[0]) * elements_of(windows_of(params).window);
}

// --- Order ---------------------------------------------------------------------------------------

double comparisons(double count) { return count < 2 ? 0 : std::ceil(std::log2(count)); }

double sort_flops(Avals inputs, Avals, const Params& params) {
  return elements_of(inputs[0]) *
         comparisons(value_of(inputs[0].shape[std::size_t(params.integer("axis"))]));
}
double top_k_flops(Avals inputs, Avals, const Params& params) {
  return elements_of(inputs[0]) * (1 + comparisons(value_of(params.get<Dim>("k"))));
}
double scatter_flops(Avals inputs, Avals, const Params& params) {
  return params.text("kind") == "set" ? 0 : elements_of(inputs[2]);
}

// --- Factorizations ------------------------------------------------------------------------------

struct MatrixSizes {
  double count = 1, rows, columns, least;
  explicit MatrixSizes(const Aval& aval)
      : rows(value_of(aval.shape[std::size_t(aval.rank() - 2)])),
        columns(value_of(aval.shape[std::size_t(aval.rank() - 1)])),
        least(std::min(rows, columns)) {
    for (int i = 0; i < aval.rank() - 2; ++i) count *= value_of(aval.shape[std::size_t(i)]);
  }
};

// flops is a function of (sizes, params), of a real matrix.
template <class Flops>
Cost::Rule of_matrices(Flops flops) {
  return arithmetic([flops](Avals inputs, Avals, const Params& params) {
    const MatrixSizes sizes(inputs[0]);
    return multiply_add(inputs[0].dtype) / 2 * sizes.count * flops(sizes, params);
  });
}

double lu_flops(const MatrixSizes& x, const Params&) {
  const double k = x.least;
  return 2 * (x.rows * x.columns * k - (x.rows + x.columns) * k * k / 2 + k * k * k / 3);
}
double qr_flops(const MatrixSizes& x, const Params& params) {
  const double k = x.least, m = x.rows, q = params.flag("full_matrices") ? m : k;
  return 2 * lu_flops(x, params) + 4 * m * q * k - 2 * (m + q) * k * k + 4 * k * k * k / 3;
}
double svd_flops(const MatrixSizes& x, bool vectors, bool full) {
  const double m = std::max(x.rows, x.columns), n = x.least;
  if (!vectors) return 4 * m * n * n - 4 * n * n * n / 3;
  return full ? 4 * m * m * n + 22 * n * n * n : 6 * m * n * n + 20 * n * n * n;
}

// --- The catalogue -------------------------------------------------------------------------------

const auto moving_rules = [] {
  for (const Primitive* primitive : {&real_p,
                                     &imag_p,
                                     &cast_p,
                                     &bitcast_p,
                                     &reshape_p,
                                     &transpose_p,
                                     &broadcast_in_dim_p,
                                     &pad_p,
                                     &concatenate_p,
                                     &split_p,
                                     &rev_p,
                                     &iota_p,
                                     &dynamic_update_slice_p,
                                     &stop_gradient_p,
                                     &tag_p,
                                     &barrier_p,
                                     &dim_as_value_p,
                                     &check_sizes_p,
                                     &empty_stack_p,
                                     &pivots_to_permutation_p})
    rules<Cost>().on(*primitive, moves());
  for (const Primitive* primitive : {&slice_p, &dynamic_slice_p, &gather_p})
    rules<Cost>().on(*primitive, moves_parts());
  return 0;
}();

const auto arithmetic_rules =
    rules<Cost>()
        .on(host_call_p, [](Work& work, auto, auto, auto&) { work.known = false; })
        .on(ordered_host_call_p, [](Work& work, auto, auto, auto&) { work.known = false; })
        .on(dot_general_p, arithmetic(dot_flops))
        .on(conv_p, arithmetic(conv_flops))
        .on(reduce_window_p, arithmetic(window_flops))
        .on(reduce_p, for_each_operand(1))
        .on(argreduce_p, for_each_operand(1))
        .on(cumreduce_p, for_each_operand(1))
        .on(recurrence_p, for_each_operand(2))
        .on(check_p, for_each_operand(1))
        .on(random_bits_p, for_each_result(1))
        .on(random_fold_p, for_each_result(1))
        .on(scatter_p, arithmetic(scatter_flops))
        .on(sort_p, arithmetic(sort_flops))
        .on(top_k_p, arithmetic(top_k_flops))
        .on(cholesky_p, of_matrices([](const MatrixSizes& x, const Params&) {
              return x.rows * x.rows * x.rows / 3;
            }))
        .on(lu_p, of_matrices(lu_flops))
        .on(det_p, of_matrices(lu_flops))
        .on(qr_p, of_matrices(qr_flops))
        .on(eigh_p, of_matrices([](const MatrixSizes& x, const Params& params) {
              const double cube = x.rows * x.rows * x.rows;
              return params.flag("compute_vectors") ? 9 * cube : 4 * cube / 3;
            }))
        .on(svd_p, of_matrices([](const MatrixSizes& x, const Params& params) {
              return svd_flops(x, params.flag("compute_uv"), params.flag("full_matrices"));
            }))
        .on(pinv_p, of_matrices([](const MatrixSizes& x, const Params&) {
              return svd_flops(x, true, false) + 2 * x.rows * x.columns * x.least;
            }))
        .on(triangular_solve_p, arithmetic([](Avals inputs, Avals, const Params&) {
              const MatrixSizes a(inputs[0]);
              return multiply_add(inputs[0].dtype) / 2 * a.rows * elements_of(inputs[1]);
            }));

}  // namespace

// --- Equations and programs ----------------------------------------------------------------------

double bytes_of(const Aval& aval) {
  return aval.stack > 0 ? 0 : elements_of(aval) * double(size_of(aval.dtype));
}

Work work_of(const JaxprData& jaxpr, const Equation& equation) {
  std::vector<Aval> inputs, outputs;
  Work work;
  if (const std::vector<BodyRun> runs = bodies_run(equation); !runs.empty()) {
    for (const BodyRun& run : runs) {
      if (run.times > 0) work += work_of(run.body).times(run.times);
      work.known &= run.known;
    }
    return work;
  }
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const Atom& atom = equation.inputs[i];
    inputs.push_back(jaxpr.aval(atom));
    const auto begin = equation.inputs.begin(), here = begin + std::ptrdiff_t(i);
    if (atom.is_var() && std::find(begin, here, atom) == here)
      work.bytes_read += bytes_of(inputs.back());
  }
  for (const Var& var : equation.outputs) {
    outputs.push_back(jaxpr.aval(var));
    work.bytes_written += bytes_of(outputs.back());
  }
  const Primitive& primitive = *equation.primitive;
  if (const Cost::Rule* rule = Cost::table().find(primitive))
    (*rule)(work, inputs, outputs, equation.params);
  else if (Pointwise::table().find(primitive))
    work.flops = elements_of(outputs[0]);
  else if (Decompose::table().find(primitive))
    work = work_of(decomposition(primitive, inputs, equation.params));
  else
    work.known = false;
  return work;
}

Work work_of(const Jaxpr& jaxpr) {
  return remembered(jaxpr, "work", [&] {
    Work work;
    for (const Equation& equation : jaxpr->equations) work += work_of(*jaxpr, equation);
    return work;
  });
}

}  // namespace plait
