// Random compositions of transforms to depth 3 agree with the plain function.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/primitives/families.h>

#include <cstdlib>

#include "compositions.h"

using namespace plait;
using namespace plait::laws;

namespace {

constinit const Primitive bent_sine{"mutant_composed"};
const auto bent_sine_def =
    define(bent_sine, "sin, whose derivative has the other sign")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return math::sin(x); }))
        .rule<Jvp>(unary([](const Array& x, const Array&) { return -lax::cos(x); }));

}  // namespace

TEST_CASE(
    "random programs under random stacks of transforms agree with loops, differences and no jit") {
  // PLAIT_FIRST_SEED=2000 tries others.
  const char* first = std::getenv("PLAIT_FIRST_SEED");
  const unsigned begin = first ? unsigned(std::atoi(first)) : 0;
  for (unsigned seed = begin; seed < begin + 2000; ++seed) {
    const Composition composition = random_composition(seed);
    if (!disagreement(composition)) continue;
    const Composition smallest = shrink(composition);
    const std::string what = disagreement(smallest).value_or("it agrees the second time"),
                      text = smallest.to_string();
    FAIL_CHECK("seed " << seed << ": " << what << "\n" << text);
  }
}

TEST_CASE("shrinking leaves the one equation and the one transform that fail") {
  set_mutant(&bent_sine);
  Composition composition = random_composition(3);
  composition.layers = {Layer::checkpoint, Layer::grad, Layer::jit};
  composition.program.steps = {{0, 0, 0}, {mutant_choice, 1, 0}, {1, 2, 0}, {6, 3, 0}};
  composition.program.num_inputs = 1;
  REQUIRE(disagreement(composition));
  const Composition smallest = shrink(composition);
  CHECK(smallest.layers == std::vector<Layer>{Layer::grad});
  REQUIRE(smallest.program.steps.size() == 1);
  CHECK(smallest.program.steps[0].choice == mutant_choice);
  set_mutant(nullptr);
}
