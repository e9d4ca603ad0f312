// Identities with a meaning for transforms: stop_gradient, tag, barrier.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/put.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

// Each output is the corresponding input.
Family pass_through() {
  return {
      "pass_through", [](Definition& definition) {
        const Primitive& primitive = definition.primitive();
        definition.takes_stored()
            .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
              return std::vector<Aval>(inputs.begin(), inputs.end());
            })
            .rule<Eval>(
                [](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
                  for (std::size_t i = 0; i < inputs.size(); ++i)
                    copy_elements(inputs[i], outputs[i]);
                })
            .rule<Alias>([](const View& input, const Sizes64&, const Params&) {
              return std::optional(input);
            })
            .rule<Emit>([](loops::Writer&, const Equation&, std::span<const loops::Tensor> inputs) {
              return loops::Tensors(inputs.begin(), inputs.end());
            })
            .refuse<Put>("it marks a value, and shows no part of it")
            .rule<Cost>(cost::moves())
            .rule<Autocast>(Autocast::follows)
            .rule<PictureGroup>(PictureGroup::movement)
            .rule<Jvp>(
                [&primitive](auto, std::span<const Tangent> tangents, auto, const Params& params) {
                  Arrays nonzero;
                  for (const Tangent& tangent : tangents)
                    if (!tangent.is_zero()) nonzero.push_back(tangent.array());
                  const Arrays passed = bind(primitive, nonzero, params);
                  Tangents result;
                  std::size_t next = 0;
                  for (const Tangent& tangent : tangents)
                    result.push_back(tangent.is_zero() ? tangent : Tangent(passed[next++]));
                  return result;
                })
            .rule<Transpose>([](std::span<const Tangent> cotangents, auto, const Params&) {
              return Tangents(cotangents.begin(), cotangents.end());
            })
            .rule<Batch>([&primitive](Dim, std::span<const Batched> inputs, const Params& params) {
              Arrays arrays;
              for (const Batched& input : inputs) arrays.push_back(input.array);
              const Arrays outputs = bind(primitive, arrays, params);
              std::vector<Batched> results;
              for (std::size_t i = 0; i < outputs.size(); ++i)
                results.push_back({outputs[i], inputs[i].dim});
              return results;
            })
            .rule<Mask>([&primitive](std::span<const Masked> inputs, auto, const Params& params,
                                     const SizeValues&) {
              Arrays padded;
              for (const Masked& input : inputs) padded.push_back(input.padded);
              return Arrays(bind(primitive, padded, params));
            })
            .rule<Samples>([] { return std::vector<Sample>{{{{{{2, 3}, DType::float64}}}, {}}}; });
      }};
}

}  // namespace

constinit const Primitive stop_gradient_p{"stop_gradient"};
static const auto stop_gradient_def =
    define(stop_gradient_p, "The operand, as a constant for differentiation.")
        .family(pass_through())
        .rule<Spelling>(spelling::function())
        .rule<Speculate>({})
        .refuse<Motion>("its place means something to transforms")
        .rule<Separate>(separate::always)
        .rule<Jvp>(zero_derivative());
Array lax::stop_gradient(Operand x) { return bind(stop_gradient_p, {x}); }

constinit const Primitive tag_p{"tag"};
static const auto tag_def =
    define(tag_p, "The operand under a name, for remat policies, probes and profiles.")
        .family(pass_through())
        .refuse<Spelling>(spelling::no_function)
        .refuse<Speculate>("its place means something to transforms")
        .refuse<Motion>("its place means something to transforms")
        .rule<Separate>(separate::always)
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{{{{2, 3}, DType::float64}}}, {{"name", std::string("here")}}}};
        });

constinit const Primitive device_put_p{"device_put"};
static const auto device_put_def =
    define(device_put_p,
           "The operand on a device, or wherever it is used if none is named; its cotangent on the "
           "one that it came from, if that is known.")
        .family(pass_through())
        .refuse<Spelling>(spelling::no_function)
        .refuse<Speculate>("it copies between devices")
        .refuse<Motion>("it copies between devices")
        .rule<Separate>(separate::always)
        .rule<Transpose>([](std::span<const Tangent> cotangents, auto, const Params& params) {
          if (cotangents[0].is_zero()) return Tangents(cotangents.begin(), cotangents.end());
          const Params back{{"device", params.text("source")}, {"source", std::string()}};
          return Tangents{Array(bind(device_put_p, {cotangents[0].array()}, back))};
        })
        .rule<Samples>([] {
          return std::vector<Sample>{
              {{{{{2, 3}, DType::float64}}},
               {{"device", std::string("cpu:0")}, {"source", std::string()}}}};
        });
Array device_put(Operand x, Device device) {
  const std::optional<Buffer> known = x.known_buffer();
  return bind(
      device_put_p, {x},
      {{"device", device.to_string()},
       {"source", known && !known->is_free() ? known->device().to_string() : std::string()}});
}

constinit const Primitive barrier_p{"barrier"};
static const auto barrier_def = define(barrier_p,
                                       "The operands, behind a wall that common-subexpression "
                                       "elimination and reordering do not pass.")
                                    .family(pass_through())
                                    .rule<Autocast>(Autocast::full)
                                    .refuse<Spelling>(spelling::no_function)
                                    .refuse<Speculate>("its place means something to transforms")
                                    .refuse<Motion>("its place means something to transforms");

}  // namespace plait
