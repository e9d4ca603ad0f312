// The content of a compiled object: decomposed programs, constants, and the list of what they need.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>
#include <plait/rules/bodies.h>
#include <plait/trace/sizes.h>

#include <charconv>

#include "compile/passes/pipeline.h"
#include "tool/deploy.h"
#include "tool/deployed/bundle.h"

namespace plait::tool {
namespace {

// The same simplification as in compilation.
Jaxpr simplified(const Jaxpr& jaxpr) {
  std::vector<const Backend*> eager = backends_of();
  std::erase_if(eager, [](const Backend* backend) { return !backend->runs_eagerly(); });
  return compile_passes::prepare(jaxpr, eager, {});
}

// For a program with named sizes: sample sizes at which it can be compiled.
std::map<std::string, Dim> sample_sizes(const DeployedEntry& deployed, std::int64_t size) {
  std::map<std::string, Dim> values;
  for (std::size_t i = 0; i < deployed.bounds.size(); ++i)
    values.emplace(deployed.jaxpr->sizes[i].to_string(), Dim(std::min(size, deployed.bounds[i])));
  return values;
}

// What programs may meet while they are compiled at run time.
struct Needs {
  std::set<const Primitive*> primitives;
  bool runs_bodies = false;     // holds programs that stay programs; calls do not
  bool makes_programs = false;  // of a part of the examples, or of other sizes, while it runs
};

// Bodies are compiled as programs are.
void collect(const Jaxpr& jaxpr, Needs& needs) {
  for (const Equation& equation : jaxpr->equations) {
    needs.primitives.insert(equation.primitive);
    for (const Body& body : bodies_of(equation)) {
      needs.runs_bodies |= body.runs != Body::Runs::once;
      needs.makes_programs |= body.runs == Body::Runs::per_example;
    }
    for_each_body(equation.params, [&](const Jaxpr& body) {
      collect(body, needs);
      if (body->sizes.empty()) collect(simplified(body), needs);
    });
  }
}

Needs needs_of(std::span<const DeployedEntry> entries) {
  Needs needs;
  for (const DeployedEntry& deployed : entries) {
    collect(deployed.jaxpr, needs);
    if (deployed.bounds.empty()) continue;
    for (std::int64_t size : tried_sizes) try {
        collect(simplified(instantiate(deployed.jaxpr, sample_sizes(deployed, size))), needs);
      } catch (const UserError&) {
        // a size that the program refuses
      }
  }
  return needs;
}

// "lib/primitives/contraction/dot.cpp" from the path given to the compiler.
void add_file(const std::string& path, std::set<std::string>& files) {
  for (const char* top : {"lib/", "transforms/"})
    if (const std::size_t at = path.rfind(top); at != std::string::npos)
      files.insert(path.substr(at));
}

}  // namespace

SizeChoices::SizeChoices(std::span<const std::string> words) {
  for (const std::string& word : words) {
    const std::size_t less = word.find("<="), equals = word.find('=');
    const bool is_bound = less != std::string::npos;
    const std::string name = word.substr(0, is_bound ? less : equals);
    std::int64_t number = 0;
    if (equals != std::string::npos) {
      const char* const end = word.data() + word.size();
      const auto [stop, error] = std::from_chars(word.data() + equals + 1, end, number);
      if (error != std::errc() || stop != end) number = -1;
    }
    if (name.empty() || equals == std::string::npos || number < 0)
      throw Usage("--size needs n=32 or n<=64, not `" + word + "`");
    (is_bound ? bounds : fixed)[name] = number;
  }
}

DeployedEntry prepare_entry(const Entry& entry, const SizeChoices& choices) {
  std::map<std::string, Dim> numbers;
  std::vector<std::int64_t> bounds;
  for (Dim size : entry.jaxpr()->sizes) {
    const std::string name = size.to_string();
    const auto fixed = choices.fixed.find(name), bound = choices.bounds.find(name);
    if (fixed != choices.fixed.end())
      numbers.emplace(name, Dim(fixed->second));
    else if (bound != choices.bounds.end())
      bounds.push_back(bound->second);
    else
      throw ValueError("compile: nothing is said of the size " + name + " of entry " + entry.name(),
                       "add --size " + name + "=32 to fix it, or --size '" + name +
                           "<=32' to make it an argument");
  }
  Jaxpr jaxpr = numbers.empty() ? entry.jaxpr() : instantiate(entry.jaxpr(), numbers);
  if (bounds.empty()) jaxpr = simplified(jaxpr);
  return {entry, std::move(jaxpr), std::move(bounds)};
}

std::string bundle_of(std::span<const DeployedEntry> entries) {
  deployed::BundleWriter bundle;
  bundle.add(deployed::bundle_format);
  bundle.add_count(entries.size());
  for (const DeployedEntry& deployed : entries) {
    const Entry& entry = deployed.entry;
    bundle.add(entry.name());
    bundle.add(print(deployed.jaxpr));
    std::vector<std::string> inputs, outputs, bounds;
    for (std::size_t i = 0; i < entry.inputs().size(); ++i)
      inputs.push_back(input_name(entry, int(i)));
    for (int i = 0; i < entry.result().num_leaves(); ++i) outputs.push_back(output_name(entry, i));
    for (std::int64_t bound : deployed.bounds) bounds.push_back(std::to_string(bound));
    bundle.add_lines(inputs);
    bundle.add_lines(outputs);
    bundle.add_lines(bounds);
    bundle.add_count(entry.constants().size());
    for (const Array& constant : entry.constants()) {
      const Buffer dense = constant.host_buffer().dense();
      bundle.add({static_cast<const char*>(dense.data()), std::size_t(dense.bytes())});
    }
  }
  // Code addresses its data within 2 GB.
  if (bundle.bytes().size() > std::size_t(2000) << 20)
    throw ValueError("compile: the constants take " +
                         bytes_text(std::int64_t(bundle.bytes().size())) +
                         ", and an object holds 2 GB",
                     "make the large ones arguments of the function, and save it again");
  return bundle.bytes();
}

SourceFiles files_for(std::span<const DeployedEntry> entries, bool has_loop_programs) {
  Needs needs = needs_of(entries);
  // Rules Emit compute with elementwise primitives that the program does not name.
  if (has_loop_programs)
    for (const PrimitiveInfo* info : all_primitives())
      if (Pointwise::table().find(*info->primitive)) needs.primitives.insert(info->primitive);
  std::vector<std::string_view> kinds = {"abstract",  "alias",  "decompose", "eval",
                                         "fold",      "guard",  "identity",  "inline",
                                         "pointwise", "bodies", "prune"};
  SourceFiles files;
  files.needed = {"lib/compile/evaluate.cpp", "lib/trace/trace.cpp",
                  "lib/backends/reference/reference.cpp"};
  // Loops and branches are run by a backend of their own, which may map and pad their bodies.
  if (needs.runs_bodies) files.needed.insert("lib/backends/control/control.cpp");
  if (needs.makes_programs) {
    files.needed.insert({"lib/backends/control/lanes.cpp", "lib/backends/control/ragged.cpp",
                         "lib/backends/control/stages.cpp",
                         "lib/backends/control/stage_program.cpp", "lib/control/cond.cpp"});
    kinds.insert(kinds.end(), {"batch", "diverge", "mask", "separate"});
  }
  for (const Primitive* primitive : needs.primitives) {
    add_file(info_of(*primitive).file, files.needed);
    for (std::string_view kind : kinds) {
      const AnyRuleTable* table = AnyRuleTable::find(kind);
      const RuleOrigin* origin = table ? table->origin(*primitive) : nullptr;
      if (origin) add_file(origin->file, files.needed);
    }
  }
  if (needs.makes_programs) return files;
  for (const PrimitiveInfo* info : all_primitives()) {
    add_file(info->file, files.idle);
    for (const AnyRuleTable* table : AnyRuleTable::all())
      if (const RuleOrigin* origin = table->origin(*info->primitive))
        add_file(origin->file, files.idle);
  }
  for (const std::string& file : files.needed) files.idle.erase(file);
  return files;
}

}  // namespace plait::tool
