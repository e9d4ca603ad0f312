// See planted.h.
// SPDX-License-Identifier: Apache-2.0
#include "planted.h"

#include <plait/control/primitives.h>
#include <plait/transforms/bodies.h>

namespace plait::laws {
namespace {

Jaxpr edited_body(const Jaxpr& body, const Edit& edit) {
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) { return eval_edited(body, inputs, edit); },
      body->input_avals(), body->sizes);
}

Params edited_bodies(const Params& params, const Edit& edit) {
  Params result = params;
  for (const auto& [name, value] : params.entries()) {
    if (const Jaxpr* body = std::get_if<Jaxpr>(&value)) {
      result = result.with(name, edited_body(*body, edit));
    } else if (const auto* bodies = std::get_if<std::vector<Jaxpr>>(&value)) {
      std::vector<Jaxpr> all;
      for (const Jaxpr& body : *bodies) all.push_back(edited_body(body, edit));
      result = result.with(name, all);
    }
  }
  return result;
}

struct EditingInterpreter {
  using Value = Array;
  const Edit& edit;
  Array lift(const Array& array) { return array; }
  Arrays process(const Equation& equation, std::span<const Array> inputs) {
    if (std::optional<Arrays> results = edit(equation, inputs)) return *results;
    return bind(*equation.primitive, inputs, edited_bodies(equation.params, edit));
  }
};

}  // namespace

Arrays eval_edited(const Jaxpr& program, std::span<const Array> inputs, const Edit& edit) {
  return interpret(EditingInterpreter{edit}, program, Arrays(inputs.begin(), inputs.end()));
}

Arrays run_edited(const Function& function, std::span<const Array> inputs, const Edit& edit) {
  const Traced traced = make_jaxpr(function, avals_of(inputs));
  return eval_edited(traced.jaxpr,
                     concatenate(Arrays(inputs.begin(), inputs.end()), traced.captured), edit);
}

Definition like(const Primitive& mutant, const Primitive& right, std::string doc, const char* file,
                int line) {
  return define(mutant, std::move(doc), file, line)
      .rule<Abstract>([&right](std::span<const Aval> inputs,
                               const Params& params) { return infer(right, inputs, params); },
                      file, line)
      .rule<Decompose>(
          [&right](std::span<const Array> inputs, const Params& params) {
            return Arrays(bind(right, inputs, params));
          },
          file, line)
      .rule<Samples>([&right] { return rule<Samples>(right)(); }, file, line);
}

// --- Derivatives ---------------------------------------------------------------------------------

Linearize::Rule linearize_negative(const Primitive& right) {
  return [&right](std::span<const Array> primals, std::span<const Tangent> tangents,
                  const Params& params, Trace* linear) {
    Differentiated result = rule<Linearize>(right)(primals, tangents, params, linear);
    TraceScope scope(linear);
    for (Tangent& tangent : result.tangents)
      if (!tangent.is_zero()) tangent = lax::neg(tangent.array());
    return result;
  };
}

Linearize::Rule linearize_without(const Primitive& right, std::size_t input) {
  return [&right, input](std::span<const Array> primals, std::span<const Tangent> tangents,
                         const Params& params, Trace* linear) {
    Tangents some(tangents.begin(), tangents.end());
    some[input] = Tangent(some[input].aval());
    if (!nonzero_arrays(some).empty()) return rule<Linearize>(right)(primals, some, params, linear);
    Differentiated result{Arrays(bind(right, primals, params)), {}};
    for (const Array& output : result.outputs) result.tangents.push_back(Tangent(output.aval()));
    return result;
  };
}

Linearize::Rule linearize_edited(const Primitive& right, Edit edit) {
  return [&right, edit](std::span<const Array> primals, std::span<const Tangent> tangents,
                        const Params& params, Trace* linear) {
    if (linear == Trace::current())
      return rule<Linearize>(right)(primals, tangents, params, linear);
    LinearTrace mine("mutant");
    Tangents inner;
    for (const Tangent& tangent : tangents)
      inner.push_back(tangent.is_zero() ? tangent : Tangent(mine.add_input(tangent.aval())));
    Differentiated result = rule<Linearize>(right)(primals, inner, params, &mine);
    const Flags has = nonzero(result.tangents);
    const Traced traced = mine.close(nonzero_arrays(result.tangents));
    TraceScope scope(linear);
    const Arrays pushed =
        eval_edited(traced.jaxpr, concatenate(nonzero_arrays(tangents), traced.captured), edit);
    result.tangents = spread(pushed, has, avals_of(result.outputs));
    return result;
  };
}

Jvp::Rule jvp_without(const Primitive& right, std::size_t output) {
  return [&right, output](std::span<const Array> primals, std::span<const Tangent> tangents,
                          std::span<const Array> outputs, const Params& params) {
    Tangents results = rule<Jvp>(right)(primals, tangents, outputs, params);
    if (output < results.size()) results[output] = Tangent(results[output].aval());
    return results;
  };
}

Jvp::Rule jvp_scaled(const Primitive& right, std::size_t output, double factor) {
  return [&right, output, factor](std::span<const Array> primals, std::span<const Tangent> tangents,
                                  std::span<const Array> outputs, const Params& params) {
    Tangents results = rule<Jvp>(right)(primals, tangents, outputs, params);
    if (output < results.size() && !results[output].is_zero())
      results[output] = results[output].array() * factor;
    return results;
  };
}

Transpose::Rule transpose_negative(const Primitive& right) {
  return [&right](std::span<const Tangent> cotangents, std::span<const TransposeInput> inputs,
                  const Params& params) {
    Tangents results = rule<Transpose>(right)(cotangents, inputs, params);
    for (Tangent& result : results)
      if (!result.is_zero()) result = lax::neg(result.array());
    return results;
  };
}

// --- Batches and sizes ---------------------------------------------------------------------------

Array rolled(const Array& x, int axis) {
  const Dim size = x.shape(axis);
  const Array first = lax::slice_in_dim(x, Dim(0), Dim(1), 1, axis),
              rest = lax::slice_in_dim(x, Dim(1), size, 1, axis);
  return lax::concatenate(Arrays{rest, first}, axis);
}

Batch::Rule batch_rolled(const Primitive& right) {
  return [&right](Dim size, std::span<const Batched> inputs, const Params& params) {
    std::vector<Batched> results = rule<Batch>(right)(size, inputs, params);
    for (Batched& result : results)
      if (result.dim && result.array.aval().stack == 0)
        result.array = rolled(result.array, *result.dim);
    return results;
  };
}

Batch::Rule batch_edited(const Primitive& right, Edit edit) {
  return [&right, edit](Dim size, std::span<const Batched> inputs, const Params& params) {
    std::vector<std::optional<int>> dims;
    Arrays arrays;
    for (const Batched& input : inputs) arrays.push_back(input.array);
    const Function batched = [&](std::span<const Array> operands) {
      std::vector<Batched> values;
      for (std::size_t i = 0; i < operands.size(); ++i)
        values.push_back({operands[i], inputs[i].dim});
      Arrays outputs;
      dims.clear();
      for (const Batched& output : rule<Batch>(right)(size, values, params)) {
        outputs.push_back(output.array);
        dims.push_back(output.dim);
      }
      return outputs;
    };
    std::vector<Batched> results;
    for (Array& output : run_edited(batched, arrays, edit))
      results.push_back({std::move(output), dims[results.size()]});
    return results;
  };
}

Mask::Rule mask_of_bounds(const Primitive& right) {
  return [&right](std::span<const Masked> inputs, std::span<const Aval> outputs,
                  const Params& params, const SizeValues& sizes) {
    SizeValues bounds = sizes;
    bounds.value = [&](Dim dim) {
      return Array::literal(double(sizes.bound(dim).constant()), DType::int32);
    };
    return rule<Mask>(right)(inputs, outputs, params, bounds);
  };
}

Edit in_lanes(Edit edit) {
  return [edit](const Equation& equation, std::span<const Array> inputs) -> std::optional<Arrays> {
    if (!(*equation.primitive == lanes_p)) return std::nullopt;
    return eval_edited(decomposition(lanes_p, avals_of(inputs), equation.params), inputs, edit);
  };
}

Edit lanes_as(const Primitive& mutant) {
  return
      [&mutant](const Equation& equation, std::span<const Array> inputs) -> std::optional<Arrays> {
        if (!(*equation.primitive == lanes_p)) return std::nullopt;
        return Arrays(bind(mutant, inputs, equation.params));
      };
}

}  // namespace plait::laws
