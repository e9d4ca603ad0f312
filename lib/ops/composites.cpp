// Composites as calls, and the store of their traced bodies. See composites.h.
//
// Eager calls pass here each time, so the store is asked with what is at hand, the avals, and gives
// parameters that are ready to bind.
// SPDX-License-Identifier: Apache-2.0
#include <plait/composites.h>
#include <plait/ops.h>

#include <map>
#include <unordered_map>

namespace plait {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, Composite, std::less<>> composites;
};
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

struct StoredCall {
  const Composite* composite;
  Params attributes;
  std::vector<Aval> avals;
  Params params;
};
struct Store {
  static constexpr std::size_t capacity = 4096;
  std::mutex mutex;
  std::unordered_multimap<std::size_t, StoredCall> calls;
};
Store& store() {
  static Store* instance = new Store;
  return *instance;
}

std::size_t mix(std::size_t hash, std::size_t value) {
  return (hash ^ value) * 0x9e3779b97f4a7c15u;
}

// A composite with a rule of its own is a call to a call: the inner one, which has the rule, is
// seen through by linearize, and the outer one keeps the symbol.
Arrays apply_body(const Composite& composite, std::span<const Array> inputs,
                  const Params& attributes, const std::vector<Dim>& sizes) {
  if (!composite.jvp) return composite.body(inputs, attributes);
  std::vector<Aval> avals = avals_of(inputs);
  const Jaxpr body = make_closed_jaxpr(
      [&](std::span<const Array> x) { return composite.body(x, attributes); }, avals, sizes);
  const std::vector<Aval> tangents = avals;
  avals.insert(avals.end(), tangents.begin(), tangents.end());
  const Jaxpr jvp = make_closed_jaxpr(
      [&](std::span<const Array> x) { return composite.jvp(x, attributes); }, avals, sizes);
  std::vector<Params::Entry> entries{{"body", body}, {"jvp", jvp}, {"name", composite.symbol}};
  if (!sizes.empty()) entries.emplace_back("sizes", Shape(sizes.begin(), sizes.end()));
  return bind(call_p, inputs, Params(std::move(entries)));
}

Params trace_call(const Composite& composite, std::span<const Aval> avals,
                  const Params& attributes) {
  std::vector<Dim> sizes;
  for (const Aval& aval : avals) collect_sizes(aval.shape, sizes);
  for (const Params::Entry& entry : attributes.entries()) collect_sizes(entry.second, sizes);
  const Jaxpr body = make_closed_jaxpr(
      [&](std::span<const Array> inputs) {
        return apply_body(composite, inputs, attributes, sizes);
      },
      avals, sizes);
  std::vector<Params::Entry> entries(attributes.entries().begin(), attributes.entries().end());
  entries.emplace_back("body", body);
  entries.emplace_back("name", composite.symbol);
  entries.emplace_back("symbol", composite.symbol);
  if (!sizes.empty()) entries.emplace_back("sizes", Shape(sizes.begin(), sizes.end()));
  return Params(std::move(entries));
}

}  // namespace

const Composite& define_composite(Composite composite) {
  std::lock_guard lock(registry().mutex);
  std::string symbol = composite.symbol;
  auto [entry, added] = registry().composites.try_emplace(std::move(symbol), std::move(composite));
  if (!added) throw InternalError("the composite " + entry->first + " is defined twice");
  return entry->second;
}

const Composite* find_composite(std::string_view symbol) {
  std::lock_guard lock(registry().mutex);
  auto found = registry().composites.find(symbol);
  return found == registry().composites.end() ? nullptr : &found->second;
}

std::vector<const Composite*> all_composites() {
  std::lock_guard lock(registry().mutex);
  std::vector<const Composite*> all;
  for (const auto& [symbol, composite] : registry().composites) all.push_back(&composite);
  return all;
}

Params composite_params(const Composite& composite, std::span<const Aval> inputs,
                        const Params& attributes) {
  std::size_t hash = mix(attributes.hash(), std::hash<const void*>{}(&composite));
  for (const Aval& aval : inputs) hash = mix(hash, aval.hash());
  {
    std::lock_guard lock(store().mutex);
    auto [call, end] = store().calls.equal_range(hash);
    for (; call != end; ++call) {
      const StoredCall& stored = call->second;
      if (stored.composite == &composite && stored.attributes == attributes &&
          std::equal(stored.avals.begin(), stored.avals.end(), inputs.begin(), inputs.end()))
        return stored.params;
    }
  }
  StoredCall made{&composite,
                  attributes,
                  {inputs.begin(), inputs.end()},
                  trace_call(composite, inputs, attributes)};
  Params params = made.params;
  std::lock_guard lock(store().mutex);
  if (store().calls.size() >= Store::capacity) store().calls.clear();
  store().calls.emplace(hash, std::move(made));
  return params;
}

Results composite(const Composite& composite, std::span<const Array> inputs,
                  const Params& attributes) {
  const std::vector<Aval> avals = avals_of(inputs);
  return bind(call_p, inputs, composite_params(composite, avals, attributes));
}

}  // namespace plait
