// Primitives with one wrong rule each: the laws must find every one. The ordinary run leaves out
// primitives whose names begin with mutant_.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/primitives/families.h>
#include <plait/rules/commute.h>
#include <plait/rules/put.h>

#include <algorithm>
#include <array>
#include <string>

#include "../laws.h"
#include "planted.h"

using namespace plait;
using namespace plait::laws;

namespace {

const auto sine_loop = unary_loops<floating>([](auto x) { return math::sin(x); });

// sin, with nothing wrong: what most mutants are but for one rule.
Family sine() {
  return {"sine", [](Definition& definition) {
            elementwise(floating).apply(definition);
            definition.rule<Pointwise>(sine_loop)
                .rule<Jvp>(unary([](const Array& x, const Array&) { return lax::cos(x); }))
                .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
                  return Arrays{lax::sin(inputs[0])};
                });
          }};
}

// x + y, with nothing wrong.
Family sum(const Primitive& primitive) {
  return {"sum", [&primitive](Definition& definition) {
            elementwise(floating, 2).apply(definition);
            definition.rule<Pointwise>(binary_loops<floating>([](auto x, auto y) { return x + y; }))
                .rule<Jvp>([&primitive](std::span<const Array>, std::span<const Tangent> tangents,
                                        std::span<const Array> outputs, const Params&) {
                  const Array x = broadcast_tangent(tangents[0], outputs[0].aval()).instantiate();
                  const Array y = broadcast_tangent(tangents[1], outputs[0].aval()).instantiate();
                  return Tangents{Array(bind(primitive, {x, y}))};
                })
                .rule<Transpose>([](std::span<const Tangent> cotangents,
                                    std::span<const TransposeInput> inputs, const Params&) {
                  Tangents results;
                  for (const TransposeInput& input : inputs)
                    results.push_back(input.is_linear()
                                          ? unbroadcast_cotangent(cotangents[0], input.aval())
                                          : Tangent(input.aval()));
                  return results;
                });
          }};
}

std::vector<Sample> matrix_samples() { return {{{{{{3, 4}, DType::float64}}}, {}}}; }
std::vector<Aval> same_aval(std::span<const Aval> inputs, const Params&) { return {inputs[0]}; }
void evaluate_sine(std::span<const View> inputs, std::span<const View> outputs) {
  run_pointwise(sine_loop(std::array{inputs[0].dtype}, {}), inputs, outputs[0]);
}

// --- Nothing wrong -------------------------------------------------------------------------------

constinit const Primitive right_sine{"mutant_of_nothing"};
const auto right_sine_def = define(right_sine, "sin").family(sine());
constinit const Primitive right_sum{"mutant_of_no_sum"};
const auto right_sum_def = define(right_sum, "x + y").family(sum(right_sum));

// --- Jvp, Linearize, Transpose -------------------------------------------------------------------

constinit const Primitive jvp_sign{"mutant_jvp_sign"};
const auto jvp_sign_def =
    define(jvp_sign, "sin, whose derivative has the other sign")
        .family(sine())
        .rule<Jvp>(unary([](const Array& x, const Array&) { return -lax::cos(x); }));

constinit const Primitive jvp_drops{"mutant_jvp_drops"};
const auto jvp_drops_def =
    define(jvp_drops, "x + y, whose tangent forgets y")
        .family(sum(jvp_drops))
        .rule<Jvp>([](std::span<const Array>, std::span<const Tangent> tangents,
                      std::span<const Array> outputs, const Params&) {
          return Tangents{broadcast_tangent(tangents[0], outputs[0].aval())};
        });

constinit const Primitive second{"mutant_second_derivative"};
const auto second_def = define(second, "sin, whose derivative is a constant to the next one")
                            .family(sine())
                            .rule<Jvp>(unary([](const Array& x, const Array&) {
                              return lax::stop_gradient(lax::cos(x));
                            }));

constinit const Primitive linearize_zero{"mutant_linearize"};
const auto linearize_zero_def =
    define(linearize_zero, "sin, whose linearization is zero")
        .family(sine())
        .rule<Linearize>(
            [](std::span<const Array> primals, std::span<const Tangent>, const Params&, Trace*) {
              const Array output = lax::sin(primals[0]);
              return Differentiated{{output}, {Tangent(output.aval())}};
            });

constinit const Primitive transpose_drops{"mutant_transpose_drops"};
const auto transpose_drops_def =
    define(transpose_drops, "x + y, whose transpose drops the cotangent of y")
        .family(sum(transpose_drops))
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params&) {
          return Tangents{inputs[0].is_linear()
                              ? unbroadcast_cotangent(cotangents[0], inputs[0].aval())
                              : Tangent(inputs[0].aval()),
                          Tangent(inputs[1].aval())};
        });

constinit const Primitive transpose_unused{"mutant_transpose_unused"};
const auto transpose_unused_def =
    define(transpose_unused, "x + y, whose transpose, which its own jvp does not use, is negative")
        .family(sum(transpose_unused))
        .rule<Jvp>(binary([](auto&, auto&, auto&) { return Array::literal(1, DType::float64); },
                          [](auto&, auto&, auto&) { return Array::literal(1, DType::float64); }))
        .rule<Transpose>([](std::span<const Tangent> cotangents,
                            std::span<const TransposeInput> inputs, const Params&) {
          Tangents results;
          for (const TransposeInput& input : inputs)
            results.push_back(
                input.is_linear()
                    ? Tangent(lax::neg(unbroadcast_cotangent(cotangents[0], input.aval()).array()))
                    : Tangent(input.aval()));
          return results;
        });

// --- Batch ---------------------------------------------------------------------------------------

const int first_axis[] = {0};

constinit const Primitive batch_axis{"mutant_batch_axis"};
const auto batch_axis_def =
    define(batch_axis, "rev along axis 0, also when that is the batch")
        .rule<Abstract>(same_aval)
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::rev(inputs[0], first_axis)};
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params&) {
          return std::vector<Batched>{{lax::rev(batch_to_front(inputs[0], size), first_axis), 0}};
        })
        .rule<Samples>(matrix_samples);

constinit const Primitive batch_out{"mutant_batch_out"};
const auto batch_out_def =
    define(batch_out, "sin, whose batched results claim to have the batch first")
        .family(sine())
        .rule<Batch>([](Dim, std::span<const Batched> inputs, const Params&) {
          return std::vector<Batched>{{Array(bind(batch_out, {inputs[0].array})), 0}};
        });

constinit const Primitive batch_unmapped{"mutant_batch_unmapped"};
const auto batch_unmapped_def =
    define(batch_unmapped, "x + y, whose batch takes x for y where y is not mapped")
        .family(sum(batch_unmapped))
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          const std::vector<Batched> both = {
              inputs[0], inputs[0].dim && !inputs[1].dim ? inputs[0] : inputs[1]};
          return batch_elementwise(batch_unmapped)(size, both, params);
        });

// --- Mask ----------------------------------------------------------------------------------------

constinit const Primitive mask_reads{"mutant_mask_reads"};
const auto mask_reads_def =
    define(mask_reads, "The sum along axis 0, whose mask reads padding")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          return std::vector<Aval>{
              {Shape(inputs[0].shape.begin() + 1, inputs[0].shape.end()), inputs[0].dtype}};
        })
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::reduce_sum(inputs[0], first_axis)};
        })
        .rule<Mask>(
            [](std::span<const Masked> inputs, std::span<const Aval>, const Params&,
               const SizeValues&) { return Arrays{lax::reduce_sum(inputs[0].padded, first_axis)}; })
        .rule<Samples>(matrix_samples);

constinit const Primitive mask_bound{"mutant_mask_bound"};
const auto mask_bound_def =
    define(mask_bound, "x times the size of axis 0, which mask takes for its bound")
        .rule<Abstract>(same_aval)
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::mul(
              inputs[0],
              lax::convert_element_type(lax::dim_as_value(inputs[0].shape(0)), DType::float64))};
        })
        .rule<Mask>(
            [](std::span<const Masked> inputs, std::span<const Aval>, const Params&,
               const SizeValues&) { return Arrays{Array(bind(mask_bound, {inputs[0].padded}))}; })
        .rule<Samples>(matrix_samples);

constinit const Primitive mask_empty{"mutant_mask_empty"};
const auto mask_empty_def =
    define(mask_empty,
           "The sum along axis 0, whose mask takes the running sum at the last real row, of which "
           "there may be none")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          return std::vector<Aval>{
              {Shape(inputs[0].shape.begin() + 1, inputs[0].shape.end()), inputs[0].dtype}};
        })
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::reduce_sum(inputs[0], first_axis)};
        })
        .rule<Mask>([](std::span<const Masked> inputs, std::span<const Aval>, const Params&,
                       const SizeValues& sizes) {
          const Array sums = lax::cumsum(inputs[0].padded, 0),
                      size = sizes.value(inputs[0].aval.shape[0]);
          return Arrays{
              lax::dynamic_index_in_dim(sums,
                                        lax::max(lax::sub(size, Array::literal(1, DType::int32)),
                                                 Array::literal(0, DType::int32)),
                                        0, false)};
        })
        .rule<Samples>(matrix_samples);

// --- Chunks --------------------------------------------------------------------------------------

constinit const Primitive batch_of_two{"mutant_batch_of_two"};
const auto batch_of_two_def =
    define(batch_of_two, "sin, but cos of two examples at once")
        .family(sine())
        .rule<Batch>([](Dim size, std::span<const Batched> inputs, const Params& params) {
          if (size == Dim(2))
            return std::vector<Batched>{{lax::cos(inputs[0].array), inputs[0].dim}};
          return batch_elementwise(batch_of_two)(size, inputs, params);
        });

// --- Eval, Alias, Fold, Pointwise, Decompose -----------------------------------------------------

constinit const Primitive eval_last{"mutant_eval_last"};
const auto eval_last_def =
    define(eval_last, "sin, but for the last element")
        .rule<Abstract>(same_aval)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          evaluate_sine(inputs, outputs);
          outputs[0].as<double>()[outputs[0].size() - 1] += 1e-6;
        })
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::sin(inputs[0])};
        })
        .rule<Samples>(matrix_samples);

constinit const Primitive eval_strides{"mutant_eval_strides"};
const auto eval_strides_def =
    define(eval_strides, "sin, whose kernel takes every input for dense")
        .rule<Abstract>(same_aval)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          View dense = inputs[0];
          dense.strides = dense_strides(dense.shape);
          evaluate_sine(std::array{dense}, outputs);
        })
        .rule<Samples>([] { return std::vector<Sample>{{{{{{4}, DType::float64}}}, {}}}; });

constinit const Primitive eval_random{"mutant_eval_unstable"};
const auto eval_random_def =
    define(eval_random, "sin, and a little more at every call")
        .rule<Abstract>(same_aval)
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          static double calls = 0;
          evaluate_sine(inputs, outputs);
          outputs[0].as<double>()[0] += 1e-12 * ++calls;
        })
        .rule<Samples>(matrix_samples);

constinit const Primitive jvp_looks{"mutant_jvp_looks"};
const auto jvp_looks_def =
    define(jvp_looks, "sin, whose derivative is another where values are not known")
        .family(sine())
        .rule<Jvp>(unary([](const Array& x, const Array&) {
          return x.known_buffer()
                     ? lax::cos(x)
                     : lax::mul(lax::cos(x), Array::literal(1 + 1e-15, DType::float64));
        }));

constinit const Primitive jvp_doubles{"mutant_jvp_doubles"};
const auto jvp_doubles_def =
    define(jvp_doubles, "sin, whose derivative is twice as large where values are not known")
        .family(sine())
        .rule<Jvp>(unary([](const Array& x, const Array&) {
          return x.known_buffer() ? lax::cos(x) : lax::cos(x) * 2.0;
        }));

constinit const Primitive decompose_wrong{"mutant_decompose"};
const auto decompose_wrong_def =
    define(decompose_wrong, "sin, which decomposes to cos")
        .family(sine())
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::cos(inputs[0])};
        });

constinit const Primitive alias_strides{"mutant_alias_strides"};
const auto alias_strides_def =
    define(alias_strides, "The transpose of a matrix, whose alias forgets to exchange strides")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          return std::vector<Aval>{{{inputs[0].shape[1], inputs[0].shape[0]}, inputs[0].dtype}};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          View view = inputs[0];
          std::swap(view.shape[0], view.shape[1]);
          std::swap(view.strides[0], view.strides[1]);
          copy_elements(view, outputs[0]);
        })
        .rule<Alias>([](const View& input, const Sizes64&, const Params&) {
          View view = input;
          std::swap(view.shape[0], view.shape[1]);
          view.strides = dense_strides(view.shape);
          return std::optional(view);
        })
        .rule<Samples>(matrix_samples);

constinit const Primitive fold_wrong{"mutant_fold"};
const auto fold_wrong_def = define(fold_wrong, "sin, of which literals fold to themselves")
                                .family(sine())
                                .rule<Fold>([](std::span<const Literal> inputs, const Params&) {
                                  return std::optional(std::vector<Literal>{inputs[0]});
                                });

constinit const Primitive commute_wrong{"mutant_commute"};
const auto commute_wrong_def =
    define(commute_wrong, "x - y, which is said to commute")
        .family(sum(commute_wrong))
        .rule<Commute>(commute::always)
        .rule<Pointwise>(binary_loops<floating>([](auto x, auto y) { return x - y; }));

constinit const Primitive accumulate_wrong{"mutant_accumulate"};
const auto accumulate_wrong_def =
    define(accumulate_wrong, "x + y, whose cotangents are added to nothing")
        .family(sum(accumulate_wrong))
        .rule<Accumulate>([](const Array& sum, const Array&, std::span<const TransposeInput>,
                             const Params&) { return sum; });

constinit const Primitive put_wrong{"mutant_put"};
const auto put_wrong_def = define(put_wrong, "sin, into which values are put as they are")
                               .family(sine())
                               .rule<Put>([](const Array&, const Array& value, std::size_t,
                                             const Params&) { return value; });

constinit const Primitive pointwise_half{"mutant_pointwise_dtype"};
const auto pointwise_half_def =
    define(pointwise_half, "sin, but cos of bfloat16")
        .family(sine())
        .rule<Pointwise>([](std::span<const DType> in, const Params& params) {
          if (in[0] != DType::bfloat16) return sine_loop(in, params);
          return unary_loops<floating>([](auto x) { return math::cos(x); })(in, params);
        });

constinit const Primitive pointwise_other{"mutant_pointwise_other"};
const auto pointwise_other_def =
    define(pointwise_other, "sin, whose kernel and whose loop differ")
        .family(sine())
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          run_pointwise(unary_loops<floating>([](auto x) { return math::cos(x); })(
                            std::array{inputs[0].dtype}, {}),
                        inputs, outputs[0]);
        });

// --- Abstract, Identity, names -------------------------------------------------------------------

constinit const Primitive abstract_weak{"mutant_abstract_weak"};
const auto abstract_weak_def =
    define(abstract_weak, "sin, which states that it is weak")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          return std::vector<Aval>{{inputs[0].shape, inputs[0].dtype, params.flag("weak")}};
        })
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::sin(inputs[0])};
        })
        .rule<Samples>([] {
          std::vector<Sample> samples = matrix_samples();
          for (Sample& sample : samples) sample.params = {{"weak", true}};
          return samples;
        });

constinit const Primitive abstract_dtype{"mutant_abstract_dtype"};
const auto abstract_dtype_def =
    define(abstract_dtype, "sin, whose Abstract rule says float32")
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          return std::vector<Aval>{{inputs[0].shape, DType::float32}};
        })
        .rule<Decompose>([](std::span<const Array> inputs, const Params&) {
          return Arrays{lax::sin(inputs[0])};
        })
        .rule<Samples>(matrix_samples);

constinit const Primitive abstract_unstable{"mutant_abstract_unstable"};
const auto abstract_unstable_def =
    define(abstract_unstable, "sin, whose Abstract rule changes its mind")
        .family(sine())
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          static bool narrow = false;
          narrow = !narrow;
          const DType dtype = narrow ? DType::float32 : inputs[0].dtype;
          return std::vector<Aval>{{inputs[0].shape, dtype}};
        });

constinit const Primitive identity_named{"mutant_identity_named"};
const auto identity_named_def =
    define(identity_named, "sin, nothing at named sizes")
        .family(sine())
        .rule<Identity>([](std::span<const Aval> inputs, const Params&) {
          return !inputs[0].shape.is_constant();
        });

constinit const Primitive identity_wrong{"mutant_identity_wrong"};
const auto identity_wrong_def =
    define(identity_wrong, "sin, which claims to do nothing")
        .family(sine())
        .rule<Identity>([](std::span<const Aval>, const Params&) { return true; });

constinit const Primitive bad_name{"mutant_name of two words"};
const auto bad_name_def = define(bad_name, "sin, whose name is no name").family(sine());

constinit const Primitive no_samples{"mutant_no_samples"};
const auto no_samples_def =
    define(no_samples, "sin, which says nothing of its samples").family(sine()).rule<Samples>([] {
      return std::vector<Sample>{};
    });

const Mutant mutants[] = {
    {jvp_sign, {"jvp"}},
    {jvp_drops, {"jvp"}},
    {second, {"second derivative"}},
    {linearize_zero, {"jvp"}},
    {transpose_drops, {"adjoint", "transpose"}},
    {transpose_unused, {"transpose"}},
    {batch_axis, {"vmap"}},
    {batch_out, {"vmap"}},
    {batch_unmapped, {"vmap"}},
    {mask_reads, {"mask"}},
    {mask_bound, {"mask", "ragged"}},
    {mask_empty, {"ragged"}},
    {batch_of_two, {"chunk"}},
    {eval_last, {"decompose", "vmap"}},
    {eval_strides, {"eval"}},
    {eval_random, {"jit"}},
    {jvp_looks, {"jit", "tape"}},
    {jvp_doubles, {"recorded gradient"}},
    {decompose_wrong, {"decompose"}},
    {alias_strides, {"eval"}},
    {fold_wrong, {"fold"}},
    {commute_wrong, {"commute"}},
    {accumulate_wrong, {"accumulate"}},
    {put_wrong, {"put"}},
    {pointwise_half, {"dtype"}},
    {pointwise_other, {"eval"}},
    {abstract_weak, {"abstract", "weak"}},
    {abstract_dtype, {"abstract"}},
    {abstract_unstable, {"check"}},
    {identity_named, {"instantiate"}},
    {identity_wrong, {"eval"}},
    {bad_name, {"text"}},
    {no_samples, {"jvp", "vmap", "jit", "mask"}},
};

}  // namespace

TEST_CASE("a primitive without a mistake passes every law") {
  for (const Primitive* primitive : {&right_sine, &right_sum})
    for (const Law& law : all_laws) {
      const std::string name(law.name), found = violation(law, *primitive).value_or("");
      CAPTURE(name);
      CAPTURE(found);
      CHECK(found.empty());
    }
}

TEST_CASE("the laws find every mutant") {
  for (const Mutant& mutant : mutants)
    for (const std::string& law : mutant.laws) {
      const std::string primitive(mutant.primitive.name());
      CAPTURE(primitive);
      CAPTURE(law);
      CHECK(violation(law_named(law), mutant.primitive));
    }
}

TEST_CASE("every law has a mutant") {
  for (const Law& law : all_laws) {
    const std::string name(law.name);
    CAPTURE(name);
    const auto is_found = [&](const Mutant& mutant) {
      return std::find(mutant.laws.begin(), mutant.laws.end(), name) != mutant.laws.end();
    };
    const std::span<const Mutant> others = control_mutants();
    const bool found = std::any_of(std::begin(mutants), std::end(mutants), is_found) ||
                       std::any_of(others.begin(), others.end(), is_found);
    CHECK(found);
  }
}
