// empty_stack: a stack of zeros.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {

// A stack whose elements are all zero: the result of a branch that is not taken, and a zero
// tangent.
constinit const Primitive empty_stack_p{"empty_stack"};
static const auto empty_stack_def =
    define(empty_stack_p, "A stack that holds zeros, however many are read.")
        .rule<Abstract>([](std::span<const Aval>, const Params& params) {
          return std::vector<Aval>{{params.get<Shape>("shape"), params.get<DType>("dtype"), false,
                                    std::uint8_t(params.integer("depth"))}};
        })
        .rule<Eval>([](std::span<const View>, std::span<const View> outputs, const Params&) {
          outputs[0].as<Stack::Handle>()->reset();
        })
        .rule<OnHost>("the handle of a stack")
        .rule<Cost>(cost::moves())
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::other)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>(zero_derivative())
        .rule<Batch>([](Dim, std::span<const Batched>, const Params& params) {
          return std::vector<Batched>{{Array(bind(empty_stack_p, {}, params)), std::nullopt}};
        })
        .rule<Mask>([](std::span<const Masked>, std::span<const Aval> outputs, const Params& params,
                       const SizeValues& sizes) {
          Shape shape;
          for (Dim dim : outputs[0].shape) shape.push_back(sizes.bound(dim));
          return Arrays(bind(empty_stack_p, {}, params.with("shape", shape)));
        })
        .rule<Samples>([] { return std::vector<Sample>{}; });

}  // namespace plait
