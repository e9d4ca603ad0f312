// Shared by the families of primitives. See families.h.
// SPDX-License-Identifier: Apache-2.0

#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/primitives/stacks.h>

#include <plait/rules/autocast.h>
#include <plait/rules/commute.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>
#include <plait/rules/spelling.h>

#include "primitives/cost.h"
#include "primitives/elementwise_aval.h"

namespace plait {
namespace {

std::string shapes_text(std::span<const Aval> inputs) {
  std::string text;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    text += (i == 0                   ? ""
             : i + 1 == inputs.size() ? " and "
                                      : ", ") +
            ("(" + inputs[i].shape.to_string() + ")");
  return text;
}

std::vector<Sample> elementwise_samples(DTypes types, int num_operands,
                                        Sample::Input::Values values) {
  const DType dtype = types.has(DType::float64)      ? DType::float64
                      : types.has(DType::int32)      ? DType::int32
                      : types.has(DType::complex128) ? DType::complex128
                                                     : DType::bool_;
  auto sample = [&](auto shape_of) {
    Sample sample;
    for (int i = 0; i < num_operands; ++i)
      sample.inputs.push_back({{shape_of(i), dtype, false}, values, 0});
    return sample;
  };
  std::vector<Sample> samples = {sample([](int) { return Shape{2, 3}; }),
                                 sample([](int) { return Shape{}; })};
  if (num_operands > 1)
    samples.push_back(sample([](int i) { return i == 0 ? Shape{4} : Shape{}; }));
  return samples;
}

}  // namespace

Aval elementwise_aval(std::string_view name, std::span<const Aval> inputs, DTypes types,
                      ResultType result) {
  Aval aval{{}, inputs[0].dtype, true};
  for (const Aval& input : inputs) {
    if (input.dtype != aval.dtype)
      throw DtypeError(std::string(name) + ": operands have dtypes " +
                           std::string(name_of(aval.dtype)) + " and " +
                           std::string(name_of(input.dtype)),
                       "convert one with astype, or use the plait.numpy function, which promotes");
    aval.weak &= input.weak;
    if (input.rank() == 0) continue;
    if (aval.rank() == 0)
      aval.shape = input.shape;
    else if (!(aval.shape == input.shape))
      throw ShapeError(std::string(name) + ": operands have shapes " + shapes_text(inputs),
                       "give equal shapes, or use the plait.numpy function, which broadcasts");
  }
  require_dtype(name, inputs[0], types);
  if (result == ResultType::truth) aval.dtype = DType::bool_, aval.weak = false;
  if (result == ResultType::real) aval.dtype = real_dtype_of(aval.dtype);
  return aval;
}

Family elementwise(DTypes types, int num_operands, ResultType result,
                   Sample::Input::Values values) {
  return {
      "elementwise", [=](Definition& definition) {
        const Primitive& primitive = definition.primitive();
        definition.operands(num_operands)
            .rule<Abstract>([=, &primitive](std::span<const Aval> inputs, const Params&) {
              return std::vector<Aval>{elementwise_aval(primitive.name(), inputs, types, result)};
            })
            .rule<Eval>([&primitive](std::span<const View> inputs, std::span<const View> outputs,
                                     const Params& params) {
              eval_pointwise(primitive, inputs, outputs, params);
            })
            .rule<Fold>([&primitive](std::span<const Literal> inputs, const Params& params) {
              return fold_pointwise(primitive, inputs, params);
            })
            .rule<Cost>(cost::for_each_result(1))
            .rule<Autocast>(Autocast::full)
            .rule<Commute>(commute::never)
            .rule<PictureGroup>(PictureGroup::elementwise)
            .rule<Speculate>({})
            .rule<Motion>(Motion::moves)
            .rule<Separate>(separate::always)
            .rule<Batch>(batch_elementwise(primitive))
            .rule<Mask>(mask_elementwise(primitive))
            .rule<Samples>([=] { return elementwise_samples(types, num_operands, values); });
      }};
}

void eval_pointwise(const Primitive& primitive, std::span<const View> inputs,
                    std::span<const View> outputs, const Params& params) {
  DType dtypes[4];
  for (std::size_t i = 0; i < inputs.size(); ++i) dtypes[i] = inputs[i].dtype;
  const Chunk chunk = rule<Pointwise>(primitive)({dtypes, inputs.size()}, params);
  if (!chunk.loop)
    throw InternalError("`" + std::string(primitive.name()) + "` has no loop for " +
                        std::string(name_of(dtypes[0])));
  run_pointwise(chunk, inputs, outputs[0]);
}

std::optional<std::vector<Literal>> fold_pointwise(const Primitive& primitive,
                                                   std::span<const Literal> inputs,
                                                   const Params& params) {
  std::vector<Aval> avals;
  std::vector<Buffer> buffers;
  std::vector<View> views;
  for (const Literal& literal : inputs) {
    avals.push_back(literal.aval());
    buffers.push_back(Array::literal(literal).buffer());
    views.push_back(buffers.back().view());
  }
  const Aval aval = infer(primitive, avals, params)[0];
  Buffer result = Buffer::empty(aval.dtype, {});
  eval_pointwise(primitive, views, std::span<const View>(&result.view(), 1), params);
  return std::vector<Literal>{*Array(new ConcreteNode(aval, result, true)).as_literal()};
}

// --- Literals ------------------------------------------------------------------------------------

namespace {
Array finite_extreme(DType dtype, bool largest) {
  Literal literal{dtype, false, 0, 0, 0};
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_same_v<T, float16>)
      literal.real = largest ? 65504.0 : -65504.0;
    else if constexpr (std::is_same_v<T, bfloat16>)
      literal.real = std::ldexp(largest ? 1.9921875 : -1.9921875, 127);
    else if constexpr (is_complex_v<T>)
      literal.real = std::numeric_limits<typename T::value_type>::max() * (largest ? 1 : -1);
    else if constexpr (std::is_floating_point_v<T>)
      literal.real = largest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
    else
      literal.integer =
          std::int64_t(largest ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest());
  });
  return Array::literal(literal);
}
}  // namespace

Array lowest_finite(DType dtype) { return finite_extreme(dtype, false); }
Array largest_finite(DType dtype) { return finite_extreme(dtype, true); }

// --- Differentiation -----------------------------------------------------------------------------

Array Tangent::instantiate() const { return is_zero() ? lax::zeros_like(aval_) : array_; }

Tangent add_tangents(const Tangent& a, const Tangent& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  const Array both[] = {a.array(), b.array()};
  if (a.aval().stack == 0) return Array(bind(add_p, both));
  return map_stacks(both, [](std::span<const Array> elements) {
    return add_tangents(elements[0], elements[1]).array();
  });
}

bool is_differentiable(const Aval& aval) { return is_inexact(aval.dtype); }
Aval tangent_aval(const Aval& primal) { return primal; }

Tangent broadcast_tangent(const Tangent& tangent, const Aval& to) {
  if (tangent.is_zero()) return Tangent(to);
  if (tangent.aval().rank() == to.rank()) return tangent;
  return broadcast_to(tangent.array(), to.shape);
}

Tangent unbroadcast_cotangent(const Tangent& cotangent, const Aval& to) {
  if (cotangent.is_zero()) return Tangent(to);
  if (cotangent.aval().rank() == to.rank()) return cotangent;
  std::vector<int> axes(cotangent.aval().rank());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = int(i);
  return lax::reduce_sum(cotangent.array(), axes);
}

Jvp::Rule unary(std::function<Array(const Array&, const Array&)> multiplier) {
  return [=](std::span<const Array> primals, std::span<const Tangent> tangents,
             std::span<const Array> outputs, const Params&) -> Tangents {
    const Array factor = multiplier(primals[0], outputs[0]);
    return {Array(tangents[0].array() * factor)};
  };
}

Jvp::Rule binary(Partial dx, Partial dy) {
  return [=](std::span<const Array> primals, std::span<const Tangent> tangents,
             std::span<const Array> outputs, const Params&) -> Tangents {
    Tangent total(outputs[0].aval());
    for (int i = 0; i < 2; ++i) {
      if (tangents[i].is_zero()) continue;
      const Array factor = (i == 0 ? dx : dy)(primals[0], primals[1], outputs[0]);
      const Tangent term = Array(tangents[i].array() * factor);
      total = add_tangents(total, broadcast_tangent(term, outputs[0].aval()));
    }
    return {total};
  };
}

Jvp::Rule zero_derivative() {
  return [](std::span<const Array>, std::span<const Tangent>, std::span<const Array> outputs,
            const Params&) {
    Tangents tangents;
    for (const Array& output : outputs) tangents.push_back(Tangent(output.aval()));
    return tangents;
  };
}

// --- Batching ------------------------------------------------------------------------------------

Aval example_aval(const Batched& value) {
  Aval aval = value.array.aval();
  if (value.dim) aval.shape.erase(*value.dim);
  return aval;
}

Array batch_to_front(const Batched& value, Dim size) {
  if (value.array.aval().stack > 0) {
    if (value.dim == 0) return value.array;
    return map_stacks(std::span(&value.array, 1), [&](std::span<const Array> element) {
      return batch_to_front({element[0], value.dim}, size);
    });
  }
  const int rank = value.array.ndim();
  if (!value.dim) {
    Shape shape{size};
    std::vector<int> dims;
    for (int i = 0; i < rank; ++i) {
      shape.push_back(value.array.shape(i));
      dims.push_back(i + 1);
    }
    return lax::broadcast_in_dim(value.array, shape, dims);
  }
  if (*value.dim == 0) return value.array;
  std::vector<int> permutation{*value.dim};
  for (int i = 0; i < rank; ++i)
    if (i != *value.dim) permutation.push_back(i);
  return lax::transpose(value.array, permutation);
}

Arrays align_batched(Dim size, std::span<const Batched> inputs) {
  Shape example;
  for (const Batched& input : inputs)
    if (Aval aval = example_aval(input); aval.rank() > 0) example = aval.shape;
  Shape full{size};
  for (Dim dim : example) full.push_back(dim);
  Arrays aligned;
  for (const Batched& input : inputs) {
    const int rank = example_aval(input).rank();
    if (!input.dim && rank == 0) {
      aligned.push_back(input.array);
    } else if (input.dim && rank == 0 && !example.empty()) {
      const int first[] = {0};
      aligned.push_back(lax::broadcast_in_dim(input.array, full, first));
    } else {
      aligned.push_back(batch_to_front(input, size));
    }
  }
  return aligned;
}

Batch::Rule batch_elementwise(const Primitive& primitive) {
  return [&primitive](Dim size, std::span<const Batched> inputs,
                      const Params& params) -> std::vector<Batched> {
    // Where every batched operand has the same batch axis and the others are scalars, no axis is
    // moved.
    std::optional<int> common;
    bool aligned = true;
    for (const Batched& input : inputs) {
      if (!input.dim) {
        aligned &= input.array.ndim() == 0;
      } else {
        aligned &= !common || *common == *input.dim;
        common = input.dim;
      }
    }
    int rank = -1;
    for (const Batched& input : inputs)
      if (input.dim) {
        aligned &= rank < 0 || rank == input.array.ndim();
        rank = input.array.ndim();
      }
    if (aligned) {
      Arrays arrays;
      for (const Batched& input : inputs) arrays.push_back(input.array);
      return {{Array(bind(primitive, arrays, params)), common}};
    }
    return {{Array(bind(primitive, align_batched(size, inputs), params)), 0}};
  };
}

// --- Masking -------------------------------------------------------------------------------------

Mask::Rule mask_elementwise(const Primitive& primitive) {
  return [&primitive](std::span<const Masked> inputs, std::span<const Aval>, const Params& params,
                      const SizeValues&) {
    Arrays padded;
    for (const Masked& input : inputs) padded.push_back(input.padded);
    return Arrays(bind(primitive, padded, params));
  };
}

// --- Programs ------------------------------------------------------------------------------------

Family holds_programs() {
  return {"holds_programs", [](Definition& definition) {
            definition.takes_stored()
                .states_varying()
                .rule<Autocast>(Autocast::full)
                .rule<PictureGroup>(PictureGroup::control)
                .refuse<Spelling>("the programs that it holds are written as functions")
                .refuse<Speculate>("what it holds may raise")
                .refuse<Motion>("what it holds may raise");
          }};
}

// --- Movement ------------------------------------------------------------------------------------

Family movement() {
  return {
      "movement", [](Definition& definition) {
        const Primitive& primitive = definition.primitive();
        definition.operands(1)
            .takes_stored()
            .rule<Cost>(cost::moves())
            .rule<Autocast>(Autocast::follows)
            .rule<PictureGroup>(PictureGroup::movement)
            .rule<Speculate>({})
            .rule<Motion>(Motion::layout);
        definition.rule<Eval>([&primitive](std::span<const View> inputs,
                                           std::span<const View> outputs, const Params& params) {
          const std::optional<View> view =
              rule<Alias>(primitive)(inputs[0], outputs[0].shape, params);
          if (view) return copy_elements(*view, outputs[0]);
          // A dense operand would be a view of the whole result: then it is made there.
          View whole = outputs[0];
          whole.shape = inputs[0].shape;
          whole.strides = dense_strides(whole.shape);
          const std::optional<View> there = rule<Alias>(primitive)(whole, outputs[0].shape, params);
          if (there && there->data == whole.data && there->strides == outputs[0].strides)
            return copy_elements(inputs[0], whole);
          const Buffer dense = Buffer::copy_of(inputs[0]);
          copy_elements(*rule<Alias>(primitive)(dense.view(), outputs[0].shape, params),
                        outputs[0]);
        });
      }};
}

Jvp::Rule linear_through(const Primitive& primitive) {
  return [&primitive](std::span<const Array> primals, std::span<const Tangent> tangents,
                      std::span<const Array> outputs, const Params& params) -> Tangents {
    Arrays inputs(primals.begin(), primals.end());
    if (tangents[0].is_zero()) return {Tangent(outputs[0].aval())};
    inputs[0] = tangents[0].array();
    return {Array(bind(primitive, inputs, params))};
  };
}

void require_dtype(std::string_view name, const Aval& aval, DTypes types) {
  if (!types.has(aval.dtype))
    throw DtypeError(std::string(name) + ": an operand of dtype " +
                         std::string(name_of(aval.dtype)) + " is not " + to_string(types),
                     "convert it with astype");
}

}  // namespace plait
