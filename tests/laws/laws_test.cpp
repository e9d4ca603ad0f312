// Every law over every registered primitive.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include <plait/rules/bodies.h>
#include <plait/rules/commute.h>
#include <plait/rules/diverge.h>
#include <plait/rules/interpret.h>
#include <plait/rules/prune.h>
#include <plait/rules/put.h>
#include <plait/rules/steps.h>

#include "laws.h"

using namespace plait;
using namespace plait::laws;

namespace {

void check_law(std::string_view name) {
  const Law& law = law_named(name);
  for (const PrimitiveInfo* info : primitives_under_law()) {
    const std::string primitive(info->primitive->name());
    CAPTURE(primitive);
    if (reasoned_exception(law, *info->primitive)) continue;
    for (const std::string& found : violations(law, *info->primitive)) {
      CAPTURE(found);
      CHECK(found.empty());
    }
  }
}

}  // namespace

TEST_CASE("a primitive that holds jaxprs says which run, on what, and what of them is dead code") {
  for (const PrimitiveInfo* info : primitives_under_law()) {
    CAPTURE(info->primitive->name());
    for (const Sample& sample : rule<Samples> (*info->primitive)()) {
      if (!holds_bodies(sample.params)) continue;
      REQUIRE(Bodies::table().find(*info->primitive));
      CHECK(Prune::table().origin(*info->primitive));
      CHECK(Diverge::table().origin(*info->primitive));
      CHECK(Steps::table().origin(*info->primitive));
      for (const Body& body : (*Bodies::table().find(*info->primitive))(sample.params)) {
        CHECK(body.operands.size() == std::size_t(body.jaxpr->num_binders));
        for (const int operand : body.operands) {
          CHECK(operand >= Body::carried);
          CHECK(operand < int(sample.inputs.size()));
        }
      }
    }
  }
}

TEST_CASE("the steps of every primitive that holds jaxprs are runs of its bodies") {
  for (const PrimitiveInfo* info : primitives_under_law()) {
    CAPTURE(info->primitive->name());
    const Steps::Rule* steps = Steps::table().find(*info->primitive);
    if (!steps) continue;
    for (const Case& one : cases_of(*info->primitive)) {
      const Arrays inputs = one.values();
      const std::vector<std::int64_t> element(4, 0);
      int num_runs = 0;
      (*steps)(inputs, one.params, element, [&](const Steps::Run& run) {
        ++num_runs;
        const std::span<const Aval> wanted = run.body->input_avals();
        REQUIRE(run.inputs.size() == wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          CHECK(run.inputs[i].shape() == wanted[i].shape);
          CHECK(run.inputs[i].dtype() == wanted[i].dtype);
        }
        return eval_jaxpr(run.body, run.inputs);
      });
      CHECK(num_runs > 0);
    }
  }
}

TEST_CASE("every primitive has samples") {
  for (const PrimitiveInfo* info : primitives_under_law()) {
    const std::string primitive(info->primitive->name());
    CAPTURE(primitive);
    CHECK(Samples::table().find(*info->primitive));
    if (Samples::table().find(*info->primitive)) CHECK_FALSE(cases_of(*info->primitive).empty());
  }
}

TEST_CASE("jvp of every primitive agrees with central differences") { check_law("jvp"); }
TEST_CASE("vjp of every primitive is the adjoint of its jvp") { check_law("adjoint"); }
TEST_CASE("the derivative of the gradient of every primitive agrees with central differences") {
  check_law("second derivative");
}
TEST_CASE("the transpose rule of every linear primitive is its adjoint") { check_law("transpose"); }
TEST_CASE("vmap of every primitive is the stack of its results, for every axis and unmapped") {
  check_law("vmap");
}
TEST_CASE("vmap and gradients of every primitive commute, and are those of a loop") {
  check_law("batched gradient");
}
TEST_CASE("effects are those of examples that take a branch or a step") { check_law("effect"); }
TEST_CASE("jit of every primitive and of its gradient is the eager result to the bit") {
  check_law("jit");
}
TEST_CASE("every kernel agrees with the decomposition of its primitive") { check_law("decompose"); }
TEST_CASE("applying a primitive is running its kernel, whatever the strides") { check_law("eval"); }
TEST_CASE("folding literals is running the kernel") { check_law("fold"); }
TEST_CASE("every dtype that a primitive takes gives what float64 gives") { check_law("dtype"); }
TEST_CASE("operands of what commutes may change places") { check_law("commute"); }
TEST_CASE("what is put into a view is what it shows, and nothing else changes") {
  check_law("put");
}
TEST_CASE("every primitive that aliases its operand says how it is written through") {
  for (const PrimitiveInfo* info : primitives_under_law()) {
    CAPTURE(info->primitive->name());
    if (Alias::table().find(*info->primitive)) CHECK(Put::table().origin(*info->primitive));
  }
}
TEST_CASE("check accepts what every transform makes of every primitive") { check_law("check"); }
TEST_CASE("parse is the inverse of print for what every transform makes of every primitive") {
  check_law("text");
}
TEST_CASE("results, tangents and batches have the avals that Abstract says") {
  check_law("abstract");
}
TEST_CASE("operations on weak numbers alone stay weak, and a strong one makes them strong") {
  check_law("weak");
}
TEST_CASE("instantiating a program of named sizes is tracing at those sizes, as text") {
  check_law("instantiate");
}
TEST_CASE("mask of every primitive never reads padding, in values and gradients") {
  check_law("mask");
}
TEST_CASE("vmap of mask of every primitive is a loop over examples of all sizes, compiled once") {
  check_law("ragged");
}
TEST_CASE("vmap of every primitive in chunks is vmap") { check_law("chunk"); }
TEST_CASE("the tape of every primitive gives what vjp gives, to the bit") { check_law("tape"); }
TEST_CASE("gradients that the tape has recorded are differentiated as vjp is") {
  check_law("recorded gradient");
}

TEST_CASE("the tangent of stop_gradient is zero") {
  for (const Case& one : cases_of(stop_gradient_p)) {
    const Arrays inputs = one.values();
    const Differentiated result = flat::jvp(one.function(), inputs, Tangents{Tangent(inputs[0])});
    CHECK(result.tangents[0].is_zero());
  }
}

TEST_CASE("every primitive says what the program asks of all") {
  for (const char* kind : {"cost", "autocast", "spelling", "group", "speculate", "motion"})
    for (const Coverage& line : coverage(kind)) {
      if (line.primitive.starts_with("mutant_")) continue;
      CAPTURE(kind);
      CAPTURE(line.primitive);
      CHECK(line.state != "missing");
    }
}

TEST_CASE("every elementwise primitive of two operands says whether they commute") {
  for (const PrimitiveInfo* info : primitives_under_law()) {
    CAPTURE(info->primitive->name());
    if (Pointwise::table().find(*info->primitive) && info->primitive->min_operands() == 2)
      CHECK(Commute::table().find(*info->primitive));
  }
}

TEST_CASE("some axis of every primitive that takes arrays can have a named size") {
  // Parameters that hold a program of fixed sizes, or a list of them, stay as they are.
  const std::map<std::string, std::string, std::less<>> exceptions = {
      {"call", "the sample's body has fixed sizes"},
      {"checkpoint", "the sample's body has fixed sizes"},
      {"composite", "the sample's body has fixed sizes"},
      {"custom_derivative", "the samples' bodies have fixed sizes"},
      {"cond", "the samples' branches have fixed sizes"},
      {"while", "the sample's body has fixed sizes"},
      {"masked", "the sample's bounds are the sizes of its arrays"},
      {"random_bits", "a key has two words"},
  };
  for (const PrimitiveInfo* info : primitives_under_law()) {
    const std::string primitive(info->primitive->name());
    CAPTURE(primitive);
    bool has_arrays = false;
    std::size_t tried = 0;
    for (const Case& one : cases_of(*info->primitive)) {
      for (const Sample::Input& input : one.inputs) has_arrays |= input.aval.rank() > 0;
      tried += renamings_of(one).size();
    }
    if (has_arrays && !exceptions.contains(primitive)) CHECK(tried > 0);
  }
}

TEST_CASE("no rule that a primitive needs is missing, and refusals are the reasoned ones") {
  std::map<std::string, std::vector<std::string>, std::less<>> may_refuse = {
      {"eval", {"cond", "scan", "while"}},                // their kernels compile jaxprs
      {"transpose", {"host_call", "ordered_host_call"}},  // nobody knows whether they are linear
      // What examples of several sizes give each other is not one array.
      {"mask", {"psum", "pmax", "pmin", "all_gather", "all_to_all", "ppermute", "axis_index"}},
  };
  // Programs over a mesh are compiled for its places first.
  for (const char* primitive :
       {"pvary", "shard", "unshard", "mesh_reduce", "mesh_all_gather", "mesh_all_to_all",
        "mesh_ppermute", "mesh_axis_index", "mesh_invariant"})
    may_refuse["eval"].push_back(primitive);
  // These are there in compiled programs alone.
  for (const char* primitive : {"communicate", "stacks_of_places", "stack_of_place"})
    for (const char* kind : {"jvp", "batch", "mask"}) may_refuse[kind].push_back(primitive);
  auto produces_floats = [](const Primitive& primitive) {
    for (const Case& one : cases_of(primitive)) {
      bool takes = false;
      for (const Sample::Input& input : one.inputs) takes |= is_differentiable(input.aval);
      for (const Aval& aval : make_jaxpr(one.function(), one.avals()).jaxpr->output_avals())
        if (takes && is_differentiable(aval)) return true;
    }
    return false;
  };
  for (const char* kind : {"abstract", "eval", "jvp", "transpose", "batch", "mask"}) {
    for (const Coverage& line : coverage(kind)) {
      if (line.primitive.starts_with("mutant_")) continue;
      const Primitive& primitive = *find_primitive(line.primitive);
      CAPTURE(kind);
      CAPTURE(line.primitive);
      CAPTURE(line.state);
      if (line.state.starts_with("refused")) {
        const auto allowed = may_refuse.find(kind);
        CHECK((allowed != may_refuse.end() &&
               std::find(allowed->second.begin(), allowed->second.end(), line.primitive) !=
                   allowed->second.end()));
        continue;
      }
      if (line.state != "missing") continue;
      const std::string_view asked = kind;
      bool needed = true;
      if (asked == "jvp")
        needed = produces_floats(primitive) && !Linearize::table().find(primitive);
      if (asked == "transpose") {
        // Those whose derivative passes through themselves; the adjoint law fails for any other.
        needed = false;
        if (produces_floats(primitive) &&
            (Jvp::table().find(primitive) || Linearize::table().find(primitive)))
          for (const Case& one : cases_of(primitive)) {
            std::vector<bool> wrt;
            for (const Sample::Input& input : one.inputs)
              wrt.push_back(is_differentiable(input.aval));
            if (std::find(wrt.begin(), wrt.end(), true) == wrt.end()) continue;
            const Jaxpr linear = flat::linearize(one.function(), one.values(), wrt).jaxpr;
            for (const Equation& equation : linear->equations)
              needed |= *equation.primitive == primitive;
          }
      }
      CHECK_FALSE(needed);
    }
  }
}
