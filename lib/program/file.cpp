// Saves programs to files and loads them. See program.h.
//
//   constants.safetensors      first, so that it can be mapped; shared by all entries
//   manifest.json              see manifest.h
//   entries/NAME.jaxpr         text, with the lines of the user's source as comments
//   examples/NAME.safetensors  inputs "in.0", ... and outputs "out.0", ...
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/program/program.h>
#include <plait/rewriting/edit.h>
#include <plait/rules/interpret.h>
#include <plait/trace/concrete.h>
#include <plait/transforms/custom_rules.h>

#include <atomic>
#include <cstring>
#include <deque>

#include "archive.h"
#include "checksum.h"
#include "inspection.h"
#include "manifest.h"
#include "safetensors.h"
#include "utf8.h"

namespace plait {

// The parts of a program that only files access.
struct ProgramFile {
  static Entry make_entry(std::string name, TracedFunction function, Arrays expected) {
    Entry entry(std::move(name), std::move(function));
    auto data = std::make_shared<Entry::Data>(*entry.data_);
    data->expected = std::move(expected);
    entry.data_ = std::move(data);
    return entry;
  }
};

namespace {

constexpr std::size_t longest_text = std::size_t(1) << 30, longest_manifest = 64 << 20;

constexpr const char* constants_member = "constants.safetensors";
constexpr const char* checkpoint_member = "checkpoint.json";  // of python/plait/_checkpoint.py

std::string_view bytes_of(const Buffer& buffer) {
  return {static_cast<const char*>(buffer.data()), std::size_t(buffer.bytes())};
}

std::vector<std::string_view> all_bytes_of(const std::vector<NamedArray>& arrays) {
  std::vector<std::string_view> bytes;
  for (const NamedArray& named : arrays) bytes.push_back(bytes_of(named.array));
  return bytes;
}

// A name that is safe as a file name, whatever tool extracts it.
void check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= 200 && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return std::isalnum(c) || c == '_' || c == '-' || c == '.';
                    });
  if (!good)
    throw ValueError("the name '" + name + "' of an entry is no name of a member of a file",
                     "use letters, digits, _, - and . in it");
}

// The names of all host functions in a program.
void collect_callables(const Jaxpr& jaxpr, std::vector<std::string>& names) {
  for (const Equation& equation : jaxpr->equations) {
    for (const auto& [name, value] : equation.params.entries())
      if (const Callable* callable = std::get_if<Callable>(&value))
        names.push_back("`" + callable->name() + "` of " + std::string(equation.primitive->name()) +
                        (equation.source ? " at " + equation.source.to_string() : ""));
    for_each_body(equation.params, [&](const Jaxpr& body) { collect_callables(body, names); });
  }
}

void refuse_callables(const std::string& entry, const Jaxpr& jaxpr) {
  if (!holds_callable(jaxpr)) return;
  std::vector<std::string> names;
  collect_callables(jaxpr, names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "; ") + name;
  throw ValueError("save: entry " + entry + " calls functions of this process: " + text,
                   "write these parts with plait's functions, or save the function without them");
}

// Each equation with derivative rules that would be traced later, as change(builder, equation,
// inputs) makes it.
template <class Change>
Jaxpr with_changed_rules(const Jaxpr& jaxpr, const Change& change) {
  if (!holds_callable(jaxpr)) return jaxpr;
  return rebuild(
      jaxpr,
      [&](ProgramBuilder& builder, const Equation& equation,
          std::span<const Atom> inputs) -> std::optional<std::vector<Atom>> {
        if (!(*equation.primitive == custom_derivative_p) || !equation.params.has("rules"))
          return {};
        return change(builder, equation, std::vector<Atom>(inputs.begin(), inputs.end()));
      });
}

// With pending rules traced. Where that fails, and in the rules themselves, which may apply their
// own function again, they are dropped: differentiating the loaded program says so.
Jaxpr without_pending_rules(const Jaxpr& jaxpr) {
  using Atoms = std::vector<Atom>;
  const Jaxpr traced = with_changed_rules(
      jaxpr,
      [](ProgramBuilder& builder, const Equation& equation, Atoms inputs) -> std::optional<Atoms> {
        const std::optional<TracedRules> rules = trace_pending_rules(equation.params);
        if (!rules) return {};
        const Atoms captured = builder.splice(rules->captured, {});
        inputs.insert(inputs.end(), captured.begin(), captured.end());
        return builder.add(*equation.primitive, std::move(inputs), rules->params, equation.source);
      });
  return with_changed_rules(traced,
                            [](ProgramBuilder& builder, const Equation& equation, Atoms inputs) {
                              return builder.add(*equation.primitive, std::move(inputs),
                                                 equation.params.without("rules"), equation.source);
                            });
}

// The constants of all entries, each once.
class Constants {
 public:
  // The name under which an array is written: the wanted one, if it is free. An array is recognised
  // by its memory, or by its name and elements, because NumPy arrays are converted anew for each
  // entry.
  std::string add(const std::string& wanted, const Array& array) {
    const Buffer buffer = array.host_buffer();
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (sources_[i].data() == buffer.data() && buffer.bytes() > 0 && is_like(i, buffer) &&
          sources_[i].strides() == buffer.strides())
        return arrays_[i].name;
    const Buffer dense = buffer.dense();
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (arrays_[i].name == wanted && is_like(i, dense) &&
          bytes_of(arrays_[i].array) == bytes_of(dense))
        return wanted;
    std::string name = wanted;
    for (int number = 2; is_taken(name); ++number) name = wanted + "." + std::to_string(number);
    sources_.push_back(buffer);
    arrays_.push_back({name, dense});
    return name;
  }
  const std::vector<NamedArray>& arrays() const { return arrays_; }

 private:
  bool is_like(std::size_t i, const Buffer& buffer) const {
    return sources_[i].dtype() == buffer.dtype() && sources_[i].shape() == buffer.shape();
  }
  bool is_taken(const std::string& name) const {
    return std::any_of(arrays_.begin(), arrays_.end(),
                       [&](const NamedArray& named) { return named.name == name; });
  }
  std::vector<NamedArray> arrays_;
  std::vector<Buffer> sources_;  // as they were passed
};

void add_arrays(ArchiveWriter& archive, const std::string& member,
                const std::vector<NamedArray>& arrays, std::string& header) {
  header = safetensors_header(arrays);
  std::vector<std::string_view> parts{header};
  for (const NamedArray& named : arrays) parts.push_back(bytes_of(named.array));
  archive.add_data(member, std::move(parts));
}

}  // namespace

void save(const std::string& path, const std::map<std::string, TracedFunction>& functions,
          const SaveOptions& options) {
  if (functions.empty()) throw ValueError("save: there is no function", "give at least one");
  Manifest manifest;
  manifest.meta = options.meta;
  manifest.licence = options.licence;
  Constants constants;
  std::vector<Entry> entries;
  for (const auto& [name, given] : functions) {
    check_name(name);
    TracedFunction function = given;
    function.jaxpr = without_pending_rules(given.jaxpr);
    refuse_callables(name, function.jaxpr);
    const Entry& entry = entries.emplace_back(name, function);
    Manifest::Entry written{name,
                            entry.arguments(),
                            entry.result(),
                            entry.argument_names(),
                            {},
                            options.test_vectors && entry.has_example()};
    for (std::size_t i = 0; i < entry.constants().size(); ++i)
      written.constants.push_back(constants.add(entry.constant_names()[i], entry.constants()[i]));
    manifest.entries.push_back(std::move(written));
  }
  const std::vector<std::string> checksums = checksums_of(all_bytes_of(constants.arrays()));
  for (std::size_t i = 0; i < checksums.size(); ++i)
    manifest.checksums.emplace(constants.arrays()[i].name, checksums[i]);
  const ShowSources sources = options.sources ? ShowSources::yes : ShowSources::no;
  ArchiveWriter archive(path);
  std::deque<std::string> headers;
  std::deque<std::vector<NamedArray>> examples;
  if (options.constants)
    add_arrays(archive, constants_member, constants.arrays(), headers.emplace_back());
  archive.add_text("manifest.json", to_json(manifest));
  for (std::size_t e = 0; e < entries.size(); ++e) {
    const Entry& entry = entries[e];
    archive.add_text("entries/" + entry.name() + ".jaxpr", print(entry.jaxpr(), sources) + "\n");
    if (!manifest.entries[e].has_example) continue;
    const Arrays& example = functions.at(entry.name()).example;
    std::vector<NamedArray>& arrays = examples.emplace_back();
    for (std::size_t i = 0; i < example.size(); ++i)
      arrays.push_back({"in." + std::to_string(i), example[i].host_buffer().dense()});
    const Arrays results = entry(example);
    for (std::size_t i = 0; i < results.size(); ++i)
      arrays.push_back({"out." + std::to_string(i), results[i].host_buffer().dense()});
    add_arrays(archive, "examples/" + entry.name() + ".safetensors", arrays,
               headers.emplace_back());
  }
  archive.commit();
}

namespace {

class Loader {
 public:
  enum class Absent { refused, zeros };  // constants
  Loader(const std::string& path, const LoadOptions& options, Absent absent = Absent::refused)
      : archive_(path), options_(options), absent_(absent), where_("load: " + path) {}

  Program load() {
    if (archive_.has(checkpoint_member) && !archive_.has("manifest.json"))
      throw ValueError(where_ + ": it is a checkpoint, which holds values and no program",
                       "read it with plait.load_checkpoint in Python");
    manifest_ = parse_manifest(archive_.text("manifest.json", longest_manifest),
                               where_ + ", manifest.json");
    if (archive_.has(constants_member)) read_constants();
    std::vector<Entry> entries;
    for (const Manifest::Entry& written : manifest_.entries) entries.push_back(entry_of(written));
    if (entries.empty()) fail("it has no entries");
    for (const auto& [name, array] : options_.constants) check_given(name, entries);
    Program program(std::move(entries), manifest_.meta, manifest_.licence);
    if (options_.verify) program.verify();
    return program;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(where_ + ": " + what,
                     "the file is damaged, or is no .plait file; save it again");
  }
  // The archive's checksum covers data that is not mapped. Where the manifest has a checksum for
  // each constant, as in files of format 2, those are compared instead, which is faster.
  void read_constants() {
    const bool has_own = manifest_.format >= 2, maps = options_.map_memory;
    std::vector<std::string> checksums;
    std::vector<NamedArray> arrays;
    const auto reader = has_own && !maps ? archive_.partial_reader(constants_member) : std::nullopt;
    if (reader) {
      arrays = read_partially(*reader, checksums);
    } else {
      using Access = ArchiveReader::Access;
      arrays = arrays_of(constants_member, maps ? Access::mapped : Access::checked);
      if (has_own && (options_.verify || !maps)) checksums = checksums_of(all_bytes_of(arrays));
    }
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::string& name = arrays[i].name;
      const auto wanted = manifest_.checksums.find(name);
      if (has_own && wanted == manifest_.checksums.end())
        fail("the constant " + name + " has no checksum");
      if (!checksums.empty() && checksums[i] != wanted->second)
        fail("the constant " + name + " is damaged: it has another checksum than was saved");
      constants_.emplace(name, std::move(arrays[i].array));
    }
  }
  // Checksums data while it is still in a cache.
  std::vector<NamedArray> read_partially(const ArchiveReader::PartialReader& reader,
                                         std::vector<std::string>& checksums) const {
    constexpr std::size_t most = 256 << 10;
    const std::string where = where_ + ", " + constants_member;
    const std::size_t size = reader.storage.bytes(), begin = std::min<std::size_t>(size, 8);
    const char* const bytes = static_cast<const char*>(reader.storage.data());
    const auto fail_early = [this] { fail("it cannot be read to the end"); };
    if (!reader.read(0, begin)) fail_early();
    const std::size_t data = safetensors_data({bytes, begin}, size, where);
    if (!reader.read(begin, data)) fail_early();
    const std::vector<ArrayPlace> places = safetensors_places({bytes, data}, size, where);
    checksums.resize(places.size());
    std::atomic<bool> ends = false;
    const std::int64_t grain = checksum_grain(places.size(), size);
    parallel_for(std::int64_t(places.size()), grain, [&](std::int64_t first, std::int64_t last) {
      for (auto i = std::size_t(first); i < std::size_t(last); ++i) {
        Checksum sum;
        for (std::size_t at = data + places[i].first; at < data + places[i].last; at += most) {
          const std::size_t end = std::min(at + most, data + places[i].last);
          if (!reader.read(at, end)) ends = true;
          sum.add({bytes + at, end - at});
        }
        checksums[i] = sum.to_string();
      }
    });
    if (ends) fail_early();
    std::vector<NamedArray> arrays;
    for (const ArrayPlace& place : places)
      arrays.push_back({place.name, array_at(place, bytes + data, reader.storage)});
    return arrays;
  }
  std::vector<NamedArray> arrays_of(const std::string& member, ArchiveReader::Access access) const {
    const Storage storage = archive_.data(member, access);
    return read_safetensors(static_cast<const char*>(storage.data()), storage.bytes(), storage,
                            where_ + ", " + member);
  }

  Jaxpr jaxpr_of(const std::string& member) const {
    const std::string text = archive_.text(member, longest_text);
    if (!is_utf8(text)) fail("the member " + member + " is no text");
    try {
      return upgrade_jaxpr(manifest_.format, parse(text));
    } catch (const Error& error) {
      throw ValueError(where_ + ", " + member + ": " + error.problem(), error.fix());
    }
  }

  Entry entry_of(const Manifest::Entry& written) const {
    check_name(written.name);
    TracedFunction function;
    function.jaxpr = jaxpr_of("entries/" + written.name + ".jaxpr");
    function.arguments = written.arguments;
    function.result = written.result;
    function.argument_names = written.argument_names;
    function.constant_names = written.constants;
    const int num_leaves = written.arguments.num_leaves();
    if (function.jaxpr->num_binders != num_leaves + int(written.constants.size()) ||
        int(function.jaxpr->outputs.size()) != written.result.num_leaves())
      fail("entry " + written.name + " has a jaxpr of other inputs or outputs than it says");
    const std::vector<Aval> outputs = function.jaxpr->output_avals();
    const auto is_stack = [](const Aval& aval) { return aval.stack > 0; };
    if (std::ranges::any_of(function.jaxpr->input_avals(), is_stack) ||
        std::ranges::any_of(outputs, is_stack))
      fail("entry " + written.name + " has a jaxpr whose inputs or outputs are no arrays");
    for (std::size_t i = 0; i < written.constants.size(); ++i)
      function.constants.push_back(constant(written.name, written.constants[i],
                                            function.jaxpr->avals[std::size_t(num_leaves) + i]));
    Arrays expected;
    if (written.has_example) read_example(written.name, function, expected);
    return ProgramFile::make_entry(written.name, std::move(function), std::move(expected));
  }

  Array constant(const std::string& entry, const std::string& name, const Aval& aval) const {
    const auto given = options_.constants.find(name);
    const auto found = constants_.find(name);
    const bool is_absent = given == options_.constants.end() && found == constants_.end();
    if (is_absent && absent_ == Absent::zeros) return zeros(aval);
    if (is_absent)
      throw ValueError(where_ + ": the file was saved without the constant " + name + ", a " +
                           aval.to_string() + " of entry " + entry,
                       "give it to load, in constants");
    const Buffer buffer =
        given != options_.constants.end() ? given->second.buffer() : found->second;
    if (!(Shape::of(buffer.shape()) == aval.shape) || buffer.dtype() != carrier_of(aval.dtype))
      throw ShapeError(where_ + ": the constant " + name + " is " +
                           Aval{Shape::of(buffer.shape()), buffer.dtype()}.to_string() +
                           ", and entry " + entry + " needs " + aval.to_string(),
                       "give an array of that shape and dtype");
    Buffer buffer_of_program = buffer;  // it goes where arguments are
    buffer_of_program.set_free(true);
    return make_concrete(aval, std::move(buffer_of_program));
  }

  // One element, broadcast.
  Array zeros(const Aval& aval) const {
    if (!aval.shape.is_constant()) fail("a constant has the type " + aval.to_string());
    const Storage storage = Storage::allocate(std::size_t(size_of(aval.dtype)));
    std::memset(storage.data(), 0, storage.bytes());
    const Sizes64 shape = aval.shape.to_sizes();
    return make_concrete(aval, Buffer(storage, {storage.data(), carrier_of(aval.dtype), shape,
                                                Sizes64(shape.size(), 0)}));
  }

  void check_given(const std::string& name, const std::vector<Entry>& entries) const {
    std::string known;
    for (const Entry& entry : entries)
      for (const std::string& each : entry.constant_names()) {
        if (each == name) return;
        known += (known.empty() ? "" : ", ") + each;
      }
    throw ValueError(
        where_ + ": a constant " + name + " was given, and no entry has one",
        known.empty() ? "give none: it has no constants" : "its constants are " + known);
  }

  // The inputs and outputs of the test vector.
  void read_example(const std::string& name, TracedFunction& function, Arrays& expected) const {
    std::map<std::string, Buffer> arrays;
    for (NamedArray& named :
         arrays_of("examples/" + name + ".safetensors", ArchiveReader::Access::checked))
      arrays.emplace(named.name, std::move(named.array));
    auto take = [&](const std::string& key, const Aval& aval) {
      const auto found = arrays.find(key);
      if (found == arrays.end() || found->second.dtype() != carrier_of(aval.dtype) ||
          int(found->second.shape().size()) != aval.rank())
        fail("the test vector of entry " + name + " has no proper " + key);
      return make_concrete(Aval{Shape::of(found->second.shape()), aval.dtype, aval.weak},
                           found->second);
    };
    for (int i = 0; i < function.arguments.num_leaves(); ++i)
      function.example.push_back(
          take("in." + std::to_string(i), function.jaxpr->avals[std::size_t(i)]));
    const std::vector<Aval> outputs = function.jaxpr->output_avals();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      expected.push_back(take("out." + std::to_string(i), outputs[i]));
  }

  const ArchiveReader archive_;
  const LoadOptions& options_;
  const Absent absent_;
  const std::string where_;
  Manifest manifest_;
  std::map<std::string, Buffer> constants_;
};

}  // namespace

Program load(const std::string& path, const LoadOptions& options) {
  return Loader(path, options).load();
}

Program load_for_inspection(const std::string& path) {
  const LoadOptions options;
  return Loader(path, options, Loader::Absent::zeros).load();
}

bool lacks_constants(const std::string& path) { return !ArchiveReader(path).has(constants_member); }

}  // namespace plait
