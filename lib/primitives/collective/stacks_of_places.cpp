// Stacks that differ between places, as programs in one process keep them from one to the next: a
// stack whose elements are those of the places.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>
#include <plait/primitives/communicate.h>
#include <plait/primitives/families.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/on_host.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include "primitives/cost.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

Family of_handles() {
  return {"over a mesh", [](Definition& definition) {
            definition.rule<OnHost>("the handle of a stack")
                .rule<Cost>(cost::moves())
                .rule<Autocast>(Autocast::full)
                .rule<PictureGroup>(PictureGroup::other)
                .refuse<Spelling>(spelling::no_function)
                .refuse<Speculate>("it may cost more than a branch")
                .refuse<Motion>("loops seldom repeat it")
                .refuse<Jvp>("programs are differentiated before they are compiled for places")
                .refuse<Batch>("programs are batched before they are compiled for places")
                .refuse<Mask>("programs are masked before they are compiled for places")
                .rule<Samples>([] { return std::vector<Sample>(); });  // it never runs alone
          }};
}

}  // namespace

constinit const Primitive stacks_of_places_p{"stacks_of_places"};
static const auto stacks_of_places_def =
    define(stacks_of_places_p, "A stack whose elements are these stacks, one of each place.")
        .family(of_handles())
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          Aval aval = inputs[0];
          ++aval.stack;
          return std::vector<Aval>{aval};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs, const Params&) {
          const auto all = std::make_shared<Stack>(true);
          all->begin(0, nullptr, sizeof(Stack::Handle));
          for (const View& input : inputs)
            *static_cast<Stack::Handle*>(all->push()) = *input.as<Stack::Handle>();
          *outputs[0].as<Stack::Handle>() = all;
        });
Array communicate::stacks_of_places(const Arrays& stacks) {
  return bind(stacks_of_places_p, stacks);
}

constinit const Primitive stack_of_place_p{"stack_of_place"};
static const auto stack_of_place_def =
    define(stack_of_place_p, "The stack of a place, from a stack of those of all.")
        .family(of_handles())
        .operands(1)
        .takes_stored()
        .rule<Abstract>([](std::span<const Aval> inputs, const Params&) {
          Aval aval = inputs[0];
          --aval.stack;
          return std::vector<Aval>{aval};
        })
        .rule<Eval>([](std::span<const View> inputs, std::span<const View> outputs,
                       const Params& params) {
          const Stack::Handle& all = *inputs[0].as<Stack::Handle>();
          auto& mine = *outputs[0].as<Stack::Handle>();
          if (!all) return mine.reset();  // zeros
          const Stack::Segment& segment = all->segments()[0];
          mine = *static_cast<const Stack::Handle*>(segment.elements->at(params.integer("place")));
        });
Array communicate::stack_of_place(const Array& stacks, std::size_t place) {
  return bind(stack_of_place_p, {stacks}, {{"place", Dim(std::int64_t(place))}});
}

}  // namespace plait
