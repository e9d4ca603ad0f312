// Runs programs with named sizes at the sizes of their calls. See sized.h.
//
// A padded call runs one `masked` equation around the program, whose bounds are the padded sizes.
// Ordinary operations pad the arguments and slice the results, so transforms apply to all of it.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/size_facts.h>
#include <plait/compile/sized.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/cost.h>
#include <plait/trace/accepts.h>
#include <plait/transforms/masked.h>

#include <bit>
#include <cstdio>

namespace plait {
namespace {

using Pairs = std::vector<std::pair<Dim, Dim>>;

const Dim* find(const Pairs& pairs, Dim size) {
  for (const auto& [name, value] : pairs)
    if (name == size) return &value;
  return nullptr;
}

// The name and the unit by which the options refer to a size: t and 8 for t_8.
std::pair<std::string, std::int64_t> name_and_unit(Dim size) {
  return whole_of(size).value_or(std::pair(std::string(size.name()), std::int64_t(1)));
}

template <class Map>
const typename Map::mapped_type* option_for(const Map& options, Dim size) {
  for (const std::string& name : {std::string(size.name()), name_and_unit(size).first})
    if (const auto at = options.find(name); at != options.end()) return &at->second;
  return nullptr;
}

std::string text_of_values(const Pairs& sizes) {
  std::string text;
  for (const auto& [size, value] : sizes) {
    const auto [name, unit] = name_and_unit(size);
    text += (text.empty() ? "" : ", ") + name + " = " + (value * unit).to_string();
  }
  return text;
}

// The program in one masked equation: (values of the padded sizes, padded inputs) -> padded
// results.
Jaxpr padded_program(const Jaxpr& program, const Pairs& fixed, const Pairs& padded) {
  MaskedParams masked;
  masked.body = fixed.empty() ? program : instantiate(program, fixed);
  for (const auto& [size, bound] : padded) {
    masked.ragged.push_back(size);
    masked.bounds.push_back(bound);
  }
  masked.body = with_sizes(masked.body, masked.ragged);
  masked.checked = false;  // solve_program_sizes checks
  std::vector<Aval> avals(padded.size(), Aval{{}, DType::int32});
  for (const Aval& aval : masked.body->input_avals()) avals.push_back(masked.padded(aval));
  const Params params = masked.to_params();
  return make_closed_jaxpr(
      [&](std::span<const Array> inputs) -> Arrays { return bind(masked_p, inputs, params); },
      avals);
}

Array resized(const Array& array, const Shape& shape) {
  if (array.shape() == shape) return array;
  std::vector<lax::Padding> padding(array.ndim());
  for (int axis = 0; axis < array.ndim(); ++axis)
    padding[axis].high = shape[axis] - array.shape(axis);
  return lax::pad(array, Array::literal(0, array.dtype()), padding);
}

bool are_numbers(const Pairs& sizes) {
  return std::all_of(sizes.begin(), sizes.end(),
                     [](const auto& pair) { return pair.second.is_constant(); });
}

}  // namespace

double padding_share(const Jaxpr& program, SizeSubstitution sizes, SizeSubstitution padded) {
  Pairs larger(sizes.begin(), sizes.end());
  for (auto& [size, value] : larger)
    for (const auto& [name, bound] : padded)
      if (name == size) value = bound;
  const Work real = work_of(instantiate(program, sizes)),
             all = work_of(instantiate(program, larger));
  const bool computes = all.flops > 0;  // else it only moves memory
  const double of = computes ? all.flops : all.bytes(),
               needed = computes ? real.flops : real.bytes();
  return of > needed ? 100 * (of - needed) / of : 0;
}

SizedProgram::SizedProgram(Jaxpr program, SizeOptions options, std::string name, std::string who)
    : program_(std::move(program)),
      options_(std::move(options)),
      name_(std::move(name)),
      who_(std::move(who)) {
  require_sizes();
}

void SizedProgram::require_sizes() const {
  auto check = [&](const std::string& size, const char* what) {
    const bool is_known =
        size.empty() || std::any_of(program_->sizes.begin(), program_->sizes.end(), [&](Dim one) {
          return one.name() == size || name_and_unit(one).first == size;
        });
    if (!is_known)
      throw ValueError(who_ + ": " + std::string(what) + " speaks of the size '" + size +
                           "', and `" + name_ + "` has none of that name",
                       "name sizes that the specs name");
  };
  for (const auto& [size, list] : options_.buckets) {
    check(size, "buckets");
    const bool good = std::all_of(list.begin(), list.end(), [](auto one) { return one >= 1; }) &&
                      std::is_sorted(list.begin(), list.end());
    if (!good)
      throw ValueError(who_ + ": the buckets" + (size.empty() ? "" : " of " + size) +
                           " are no ascending sizes of 1 or more",
                       "give sizes such as [16, 64, 256]");
  }
  for (const auto& [size, bound] : options_.bound) {
    check(size, "bound");
    if (bound < 1)
      throw ValueError(who_ + ": the bound of " + size + " is " + std::to_string(bound),
                       "give a size of 1 or more");
  }
  if (options_.executables == 0)
    throw ValueError(who_ + ": no executables are to be kept", "keep 1 or more");
}

// What a size is padded to at this value; nullopt if it is not padded.
std::optional<std::int64_t> SizedProgram::padded_value(Dim size, std::int64_t value) const {
  const auto whole = name_and_unit(size);
  const std::string& name = whole.first;
  const std::int64_t unit = whole.second;
  auto too_large = [&](const std::string& what, std::int64_t largest) {
    return ShapeError(who_ + ": the size " + name + " of `" + name_ + "` is " +
                          std::to_string(value * unit) + ", and " + what + " is " +
                          std::to_string(largest),
                      "give arrays of at most that size, or a larger one to jit");
  };
  if (const std::int64_t* bound = option_for(options_.bound, size)) {
    if (value * unit > *bound) throw too_large("its bound", *bound);
    return *bound / unit;
  }
  const std::vector<std::int64_t>* buckets = option_for(options_.buckets, size);
  const auto every = options_.buckets.find("");
  if (!buckets && every != options_.buckets.end()) buckets = &every->second;
  if (!buckets) return std::nullopt;
  if (buckets->empty())
    return std::int64_t(std::bit_ceil(std::uint64_t(std::max<std::int64_t>(value, 1))));
  for (std::int64_t bucket : *buckets)
    if (bucket / unit >= value) return bucket / unit;
  throw too_large("the largest bucket", buckets->back());
}

SizedProgram::Instance SizedProgram::instance_for(std::span<const Aval> inputs) {
  const NoSizeFacts nothing;  // the instance is kept for later calls, of which other facts hold
  Instance instance;
  instance.sizes = solve_program_sizes(program_, inputs, who_);
  Pairs fixed;
  // Inside a program with named sizes of its own, nothing is padded yet.
  const bool are_known = are_numbers(instance.sizes);
  for (const auto& [size, value] : instance.sizes) {
    std::optional<std::int64_t> larger;
    if (are_known) larger = padded_value(size, value.constant());
    if (larger)
      instance.padded.emplace_back(size, *larger);
    else
      fixed.emplace_back(size, value);
  }
  Pairs key = instance.padded;
  key.insert(key.end(), fixed.begin(), fixed.end());
  {
    std::lock_guard lock(mutex_);
    for (auto at = kept_.begin(); at != kept_.end(); ++at)
      if (at->key == key) {
        kept_.splice(kept_.begin(), kept_, at);
        instance.program = at->program;
        return instance;
      }
  }
  if (!instance.padded.empty())
    instance.program = padded_program(program_, fixed, instance.padded);
  else if (are_known && fixed.size() == program_->sizes.size())
    instance.program = instantiate(program_, fixed);
  else
    instance.program = instantiate_for(program_, inputs);
  std::lock_guard lock(mutex_);
  kept_.push_front({std::move(key), instance.program});
  if (kept_.size() > options_.executables) kept_.pop_back();
  return instance;
}

Arrays SizedProgram::pad(const Instance& instance, std::span<const Array> inputs) const {
  Arrays operands;
  for (const auto& [size, bound] : instance.padded)
    operands.push_back(
        Array::literal(double(find(instance.sizes, size)->constant()), DType::int32));
  const std::size_t first = operands.size();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    operands.push_back(resized(inputs[i], instance.program->avals[first + i].shape));
  return operands;
}

Arrays SizedProgram::cut(const Instance& instance, Arrays results) const {
  if (instance.padded.empty()) return results;
  const std::vector<Aval> real = program_->output_avals();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Shape shape = substitute(real[i].shape, instance.sizes);
    if (!(results[i].shape() == shape))
      results[i] = lax::slice(results[i], Shape(shape.size(), Dim(0)), shape);
  }
  return results;
}

Arrays SizedProgram::operator()(std::span<const Array> inputs) {
  const Instance instance = instance_for(avals_of(inputs));
  return cut(instance, flat::call(instance.program, pad(instance, inputs), name_));
}

std::string SizedProgram::describe(const Instance& instance) {
  std::string text = "sizes: " + text_of_values(instance.sizes);
  if (instance.padded.empty()) {
    text += "; an executable for each";
  } else {
    char share[32];
    std::snprintf(share, sizeof share, "%.1f",
                  padding_share(program_, instance.sizes, instance.padded));
    text += "; masked, padded to " + text_of_values(instance.padded) + ": " + share +
            " % of the work is padding";
  }
  std::lock_guard lock(mutex_);
  return text + "; " + std::to_string(kept_.size()) + " of at most " +
         std::to_string(options_.executables) + " executables kept\n";
}

std::string SizedProgram::explain(std::span<const Aval> inputs) {
  const Instance instance = instance_for(inputs);
  return describe(instance) + compile(instance.program)->explain();
}

// --- jit -----------------------------------------------------------------------------------------

namespace flat {

std::shared_ptr<const SizedJit::Entry> SizedJit::entry_for(const Call& call) const {
  const std::vector<Aval> actual = avals_of(call.inputs);
  const auto matches = [&](const Entry& entry) {
    return entry.structures == call.structures &&
           std::equal(actual.begin(), actual.end(), entry.formal.begin(), entry.formal.end(),
                      [](const Aval& a, const Aval& b) { return accepts(b, a); });
  };
  if (std::shared_ptr<const Entry> found = state_->traces.find(matches)) return found;
  TransformScope scope("jit", state_->name);
  // A number in a spec, and extents that share a name, are checked before the function runs.
  const Constraints constraints(state_->options.constraints);
  std::vector<Dim> sizes;
  std::vector<Aval> formal;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const Spec spec = call.specs.at(i).substitute(constraints.multiples());
    spec.collect_sizes(sizes);
    formal.push_back(spec.resolve(actual[i], "jit: " + ArgumentNames::of(i) + ": "));
  }
  solve_sizes(sizes, formal, actual, "jit");
  auto made = std::make_shared<Entry>();
  Traced traced = trace_with_specs(call.function, call.specs,
                                   std::vector<std::optional<Aval>>(actual.begin(), actual.end()),
                                   "jit", constraints);
  const std::span<const Aval> inputs = traced.jaxpr->input_avals().first(actual.size());
  made->structures = call.structures;
  made->formal.assign(inputs.begin(), inputs.end());
  made->captured = std::move(traced.captured);
  made->result = *call.result;
  made->program = std::make_shared<SizedProgram>(traced.jaxpr, state_->options, state_->name);
  for (const Array& array : made->captured)
    if (!array.is_concrete()) return made;  // an outer tracer: valid for this call only
  return state_->traces.add(made, matches);
}

std::pair<Arrays, TreeDef> SizedJit::operator()(const Call& call) const {
  const std::shared_ptr<const Entry> entry = entry_for(call);
  Arrays inputs(call.inputs.begin(), call.inputs.end());
  inputs.insert(inputs.end(), entry->captured.begin(), entry->captured.end());
  return {(*entry->program)(inputs), entry->result};
}

std::string SizedJit::explain(const Call& call) const {
  const std::shared_ptr<const Entry> entry = entry_for(call);
  std::vector<Aval> avals = avals_of(call.inputs);
  for (const Array& array : entry->captured) avals.push_back(array.aval());
  return entry->program->explain(avals);
}

std::size_t SizedJit::num_traces() const { return state_->traces.entries().size(); }

}  // namespace flat
}  // namespace plait
