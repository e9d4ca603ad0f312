// What goes into a compiled object: decomposed programs, constants, and the list of what they need.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/backend.h>
#include <plait/sizes.h>

#include <charconv>

#include "compile/prepare.h"
#include "tool/deploy.h"
#include "tool/deployed/bundle.h"

namespace plait::tool {
namespace {

// As compilation does it.
Jaxpr simplified(const Jaxpr& jaxpr) {
  std::vector<const Backend*> eager = backends_of();
  std::erase_if(eager, [](const Backend* backend) { return !backend->runs_eagerly(); });
  return compile_passes::prepare(jaxpr, eager);
}

// Of a program with named sizes: some sizes at which it is one that can be compiled.
std::map<std::string, Dim> sample_sizes(const DeployedEntry& deployed, std::int64_t size) {
  std::map<std::string, Dim> values;
  for (std::size_t i = 0; i < deployed.bounds.size(); ++i)
    values.emplace(deployed.jaxpr->sizes[i].to_string(), Dim(std::min(size, deployed.bounds[i])));
  return values;
}

bool is_one_of(const Primitive* primitive, const std::set<std::string_view>& names) {
  return names.count(primitive->name()) > 0;
}
// Whether equations of it hold programs that stay programs; calls do not.
bool holds_programs(const Primitive* primitive) {
  return is_one_of(primitive, {"scan", "while", "cond", "masked", "lanes"});
}
// Whether it makes programs while it runs: of a part of the examples, or of other sizes.
bool makes_programs(const Primitive* primitive) {
  return is_one_of(primitive, {"masked", "lanes"});
}

// Bodies are compiled as programs are.
void collect(const Jaxpr& jaxpr, std::set<const Primitive*>& primitives) {
  for (const Equation& equation : jaxpr->equations) {
    primitives.insert(equation.primitive);
    for_each_body(equation.params, [&](const Jaxpr& body) {
      collect(body, primitives);
      if (body->sizes.empty()) collect(simplified(body), primitives);
    });
  }
}

// Everything that these programs may meet while they are compiled at run time.
std::set<const Primitive*> primitives_of(std::span<const DeployedEntry> entries) {
  std::set<const Primitive*> primitives;
  for (const DeployedEntry& deployed : entries) {
    collect(deployed.jaxpr, primitives);
    if (deployed.bounds.empty()) continue;
    for (std::int64_t size : tried_sizes) try {
        collect(simplified(instantiate(deployed.jaxpr, sample_sizes(deployed, size))), primitives);
      } catch (const UserError&) {
        // A size that the program refuses.
      }
  }
  return primitives;
}

// "lib/ops/dot.cpp" of the path that the compiler was given.
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
      const Buffer dense = constant.buffer().dense();
      bundle.add({static_cast<const char*>(dense.data()), std::size_t(dense.bytes())});
    }
  }
  // Code reaches its data within 2 GB.
  if (bundle.bytes().size() > std::size_t(2000) << 20)
    throw ValueError("compile: the constants take " +
                         bytes_text(std::int64_t(bundle.bytes().size())) +
                         ", and an object holds 2 GB",
                     "make the large ones arguments of the function, and save it again");
  return bundle.bytes();
}

SourceFiles files_for(std::span<const DeployedEntry> entries) {
  const std::set<const Primitive*> primitives = primitives_of(entries);
  std::vector<std::string_view> kinds = {"abstract", "alias", "decompose", "eval",
                                         "fold",     "guard", "identity",  "pointwise"};
  SourceFiles files;
  files.needed = {"lib/run/evaluate.cpp", "lib/trace/trace.cpp", "lib/ops/call.cpp",
                  "lib/backends/reference/reference.cpp"};
  // Loops and branches are run by a backend of their own, which may map and pad their bodies.
  const bool makes_any = std::any_of(primitives.begin(), primitives.end(), makes_programs);
  if (std::any_of(primitives.begin(), primitives.end(), holds_programs))
    files.needed.insert("lib/run/control.cpp");
  if (makes_any) {
    files.needed.insert({"lib/run/lanes.cpp", "lib/run/ragged.cpp"});
    kinds.insert(kinds.end(), {"batch", "mask"});
  }
  for (const Primitive* primitive : primitives) {
    add_file(info_of(*primitive).file, files.needed);
    for (std::string_view kind : kinds) {
      const AnyRuleTable* table = AnyRuleTable::find(kind);
      const RuleOrigin* origin = table ? table->origin(*primitive) : nullptr;
      if (origin) add_file(origin->file, files.needed);
    }
  }
  if (makes_any) return files;
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
