// Every law at sizes that libraries take, in every dtype that they claim, with all that jit makes
// compiled by every backend before it runs; and how much of what they claim backends take.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/compile/backend.h>
#include <plait/compile/compile.h>
#include <plait/trace/wait.h>

#include <algorithm>
#include <map>
#include <set>

#include "../backends/backend_here.h"
#include "laws.h"

using namespace plait;
using namespace plait::laws;

namespace {

constexpr DType float_dtypes[] = {DType::float32, DType::bfloat16, DType::float16};

// What the oneDNN backend says that it takes, by primitive or composite; products and convolutions
// of 16 bits where the processor has them.
struct Claim {
  std::string_view name;
  bool takes_16_bits;
};
constexpr Claim claims_of_onednn[] = {{"dot_general", true},
                                      {"conv", true},
                                      {"layer_norm", false},
                                      {"attention", false},
                                      {"avg_pool", false}};

const Claim* claim_of(const Case& one) {
  const auto found = std::find_if(std::begin(claims_of_onednn), std::end(claims_of_onednn),
                                  [&](const Claim& claim) { return claim.name == one.name; });
  return found == std::end(claims_of_onednn) ? nullptr : found;
}

// The claimed cases, but those in dtypes that this processor computes nothing in.
std::vector<Case> claimed_by_onednn(const Backend& onednn) {
  std::vector<Case> cases;
  for (const Case& one : large_cases())
    for (DType dtype : float_dtypes) {
      const Claim* claim = claim_of(one);
      if (!claim || (dtype != DType::float32 && !claim->takes_16_bits)) continue;
      std::optional<Case> other = with_dtype(one, dtype);
      REQUIRE(other);
      if (accepts(onednn, *other).reason == "no " + std::string(name_of(dtype)) + " here") continue;
      cases.push_back(std::move(*other));
    }
  return cases;
}

// What a law finds wrong with a case, or the error that it throws.
Verdict judged(const Law& law, const Case& one) {
  try {
    return law.check(one);
  } catch (const std::exception& error) {
    return std::string("threw: ") + error.what();
  }
}

}  // namespace

TEST_CASE("oneDNN takes what it claims, in large cases of every claimed primitive and dtype" *
          needs_backend("onednn")) {
  const Backend& onednn = backend_here("onednn");
  std::map<std::string, std::pair<int, int>> counts;  // by name and dtype: taken, claimed
  int taken = 0, claimed = 0;
  for (const Case& one : claimed_by_onednn(onednn)) {
    const Support support = accepts(onednn, one);
    const std::string text = one.to_string();
    CAPTURE(text);
    CAPTURE(support.reason);
    auto& [mine, all] = counts[one.name + " " + std::string(name_of(one.inputs[0].aval.dtype))];
    mine += bool(support), ++all;
    taken += bool(support), ++claimed;
    // What supports() says is what programs and single operations do.
    const std::string table = compile(make_jaxpr(one.function(), one.avals()).jaxpr)->explain();
    CAPTURE(table);
    CHECK(support.is_supported == (table.find("onednn") != std::string::npos));
    CHECK(support.is_supported == (library_of(one) == &onednn));
  }
  for (const auto& entry : counts) {
    CAPTURE(entry.first);
    CHECK(entry.second.first > 0);
  }
  CHECK(counts.size() >= std::size(claims_of_onednn));
  CHECK(taken >= 0.95 * claimed);
  MESSAGE("onednn takes " << taken << " of " << claimed << " cases that it claims");
}

TEST_CASE("every law holds of what oneDNN takes" * needs_backend("onednn")) {
  const Backend& onednn = backend_here("onednn");
  for (const Law& law : all_laws)
    for (const Case& one : claimed_by_onednn(onednn)) {
      const std::string name(law.name), text = one.to_string();
      CAPTURE(name);
      CAPTURE(text);
      const std::string found = judged(law, one).value_or("");
      CHECK(found == "");
    }
}

// --- Generated loops -----------------------------------------------------------------------------

namespace {

constexpr std::int64_t examples = 23;  // at once: more than a vector, and a rest

constexpr DType real_dtypes[] = {DType::float64, DType::float32, DType::bfloat16, DType::float16,
                                 DType::int32,   DType::int64,   DType::int16,    DType::int8,
                                 DType::uint64,  DType::uint32,  DType::uint16,   DType::uint8};

// What the llvm backend says that it takes in every real dtype: what is elementwise, and functions
// of places.
bool is_claimed_by_llvm(const Primitive& primitive) {
  static const std::set<std::string_view> others = {"reduce", "broadcast_in_dim", "pad", "rev",
                                                    "transpose"};
  return primitive.name() != "complex" &&
         (Pointwise::table().find(primitive) || others.contains(primitive.name()));
}

// The first sample of each such primitive, for so many examples, in each dtype that it has.
std::vector<Case> claimed_by_llvm() {
  std::vector<Case> cases;
  for (const PrimitiveInfo* info : primitives_under_law()) {
    if (!is_claimed_by_llvm(*info->primitive)) continue;
    for (const Case& one : cases_of(*info->primitive)) {
      const std::optional<Case> larger = enlarged(one, examples);
      if (!larger || larger->inputs[0].aval.dtype != DType::float64) continue;
      for (DType dtype : real_dtypes)
        if (dtype == DType::float64)
          cases.push_back(*larger);
        else if (const std::optional<Case> other = with_dtype(*larger, dtype))
          cases.push_back(*other);
      break;
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("generated loops take what they claim" * needs_backend("llvm")) {
  const Backend& llvm = backend_here("llvm");
  std::map<std::string, std::string> refused;
  std::set<std::string> names;
  int taken = 0, claimed = 0;
  for (const Case& one : claimed_by_llvm()) {
    const Support support = accepts(llvm, one);
    names.insert(one.name);
    taken += bool(support), ++claimed;
    if (!support) refused[one.name] += " " + std::string(name_of(one.inputs[0].aval.dtype));
  }
  std::string text;
  for (const auto& [name, dtypes] : refused) text += "\n  " + name + ":" + dtypes;
  CAPTURE(text);
  CHECK(names.size() > 30);
  CHECK(taken >= 0.95 * claimed);
  MESSAGE("llvm takes " << taken << " of " << claimed << " cases that it claims");
}

// The other laws meet generated loops where PLAIT_WAIT=1 runs them all again.
TEST_CASE("the law of jit holds of what generated loops take" * needs_backend("llvm")) {
  const Backend& llvm = backend_here("llvm");
  const Waiting waiting;
  const Law& law = law_named("jit");
  int count = 0;
  for (const Case& one : claimed_by_llvm()) {
    if (!accepts(llvm, one) || reasoned_exception(law, *one.primitive)) continue;
    const std::string text = one.to_string();
    CAPTURE(text);
    const std::string found = judged(law, one).value_or("");
    CHECK(found == "");
    ++count;
  }
  CHECK(count > 200);
}

TEST_CASE("the decompose law compares something, or says why there is nothing to compare") {
  std::map<std::string, std::set<std::string>> by_reason;
  for (const PrimitiveInfo* info : primitives_under_law())
    for (const Case& one : cases_of(*info->primitive))
      by_reason[has_no_decomposition(one).value_or("compared")].insert(one.name);
  std::size_t composites = 0;
  for (const Case& one : large_cases())
    if (!one.primitive) composites += !has_no_decomposition(one);
  CHECK(composites == 5);  // layer_norm, attention, avg_pool, softmax, gelu
  for (const auto& [given, names] : by_reason) {
    const std::string& reason = given;
    CAPTURE(reason);
    CHECK((reason == "compared" || reason == "it has a kernel alone" ||
           reason == "it runs as what it decomposes to" || reason == "a function of several"));
    std::string text;
    for (const std::string& name : names) text += " " + name;
    MESSAGE(reason << ": " << names.size() << " primitives:" << text);
  }
}
