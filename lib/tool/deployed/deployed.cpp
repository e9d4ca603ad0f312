// The run time of an object made by plait compile: sessions, each with compiled programs, memory
// that is kept, and slots for the caller's buffers.
//
// The generated code calls the four functions with C names, which the object hides. Programs are
// parsed and compiled once per process and shared by sessions. See bundle.h and
// lib/tool/header.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "tool/deployed/bundle.h"

#include <plait/base/allocator.h>
#include <plait/compile/compile.h>
#include <plait/trace/sizes.h>
#include <plait/trace/wait.h>

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <mutex>

#include "compile/modules.h"
#include "tool/deployed/memory.h"

namespace plait::deployed {
namespace {

// The thread that loads the object registers its cache of memory now: a C library that finds no
// memory for that ends the process, instead of the call.
[[maybe_unused]] const bool is_registered = (Storage::allocate(1), true);

// The codes of the generated header.
enum Code : int { ok = 0, bad_argument = 1, out_of_memory = 2, refused = 3, broken = 4 };

struct Entry {
  std::string name;
  Jaxpr jaxpr;
  std::vector<std::string> inputs, outputs;
  std::vector<std::int64_t> bounds;
  std::vector<std::string_view> constants;
};

struct Program {
  std::vector<Entry> entries;
};

// The message of the last failed call on this thread, without allocation.
thread_local char message[1024] = "";

int fail(Code code, std::initializer_list<std::string_view> parts) noexcept {
  std::size_t size = 0;
  for (std::string_view part : parts) size += part.copy(message + size, sizeof message - 1 - size);
  message[size] = 0;
  return code;
}

// An error caused by the program's own conditions, or by the caller's sizes.
int fail(Code code, const Error& error) noexcept {
  return fail(code, {error.problem(), error.fix().empty() ? "" : "; ", error.fix()});
}

// Runs work and converts exceptions to a code and a message, because C has no exceptions.
template <class Work>
int guarded(const Work& work) {
  try {
    return work();
  } catch (const MemoryError& error) {
    return fail(out_of_memory, error);
  } catch (const std::bad_alloc&) {
    return fail(out_of_memory, {"there is not enough memory"});
  } catch (const InternalError& error) {
    return fail(broken, error);
  } catch (const Error& error) {
    return fail(refused, error);
  } catch (const std::exception& error) {
    return fail(broken, {error.what()});
  } catch (const abi::__forced_unwind&) {
    throw;  // lets the cancellation of a thread proceed
  } catch (...) {
    return fail(broken, {"what was thrown is no error that plait knows"});
  }
}

Program read(const void* bundle, std::size_t size) {
  BundleReader reader(bundle, size);
  if (reader.next() != bundle_format)
    throw InternalError("the bundle in this object is not of this version");
  Program program;
  program.entries.resize(reader.next_count());
  for (Entry& entry : program.entries) {
    entry.name = reader.next();
    entry.jaxpr = parse(reader.next());
    entry.inputs = reader.next_lines();
    entry.outputs = reader.next_lines();
    for (const std::string& bound : reader.next_lines()) entry.bounds.push_back(std::stoll(bound));
    entry.constants.resize(reader.next_count());
    for (std::string_view& constant : entry.constants) constant = reader.next();
  }
  return program;
}

// The program of the bundle, read at the first call: an object has one bundle.
const Program& program_of(const void* bundle, std::size_t size) {
  static std::mutex mutex;
  static const Program* program = nullptr;  // never destroyed: sessions may outlive main
  const std::lock_guard lock(mutex);
  if (!program) {
    load_modules_only({});
    program = new Program(read(bundle, size));
  }
  return *program;
}

View dense_view(const Aval& aval) {
  const Sizes64 shape = aval.shape.to_sizes();
  return {nullptr, carrier_of(aval.dtype), shape, dense_strides(shape)};
}

// An entry at some sizes, ready to run for one thread at a time.
class Prepared {
 public:
  Prepared(const Entry& entry, std::span<const std::int64_t> sizes)
      : entry_(entry), sizes_(sizes.begin(), sizes.end()) {
    Jaxpr jaxpr = entry.jaxpr;
    if (!sizes.empty()) {
      std::map<std::string, Dim> values;
      for (std::size_t i = 0; i < sizes.size(); ++i)
        values.emplace(jaxpr->sizes[i].to_string(), Dim(sizes[i]));
      jaxpr = instantiate(jaxpr, values);
    }
    const Waiting waiting;  // compiles everything now: no background thread compiles later
    executable_ = compile(jaxpr);
    session_ = executable_->open();
    for (const Aval& aval : jaxpr->input_avals()) inputs_.push_back(dense_view(aval));
    for (const Aval& aval : executable_->outputs()) outputs_.push_back(dense_view(aval));
    const std::size_t num_inputs = entry.inputs.size();
    for (std::size_t i = 0; i < entry.constants.size(); ++i)
      inputs_[num_inputs + i].data = const_cast<char*>(entry.constants[i].data());
    places_.resize(num_inputs + outputs_.size());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const View& view = i < num_inputs ? inputs_[i] : outputs_[i - num_inputs];
      bytes_.push_back(view.size() * size_of(view.dtype));
    }
  }

  bool is_for(const Entry& entry, std::span<const std::int64_t> sizes) const {
    return &entry == &entry_ && std::equal(sizes.begin(), sizes.end(), sizes_.begin());
  }

  int run(const void* const* inputs, void* const* outputs) {
    for (std::size_t i = 0; i < entry_.inputs.size(); ++i)
      inputs_[i].data = const_cast<void*>(inputs[i]);
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = outputs[i];
    if (const int code = check_places()) return code;
    session_->run(inputs_, outputs_);
    return ok;
  }

 private:
  struct Place {
    const char *begin, *end;
    std::size_t index;  // of an input or, after the inputs, of an output
  };

  const std::string& name_of(std::size_t index) const {
    return index < entry_.inputs.size() ? entry_.inputs[index]
                                        : entry_.outputs[index - entry_.inputs.size()];
  }

  // Checks that every buffer is set, and that no written buffer overlaps another.
  int check_places() {
    const std::size_t num_inputs = entry_.inputs.size();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const View& view = i < num_inputs ? inputs_[i] : outputs_[i - num_inputs];
      const char* const begin = view.as<const char>();
      places_[i] = {begin, begin + bytes_[i], i};
      if (!begin && bytes_[i] > 0)
        return fail(bad_argument, {entry_.name, ": ", name_of(i), " is a null pointer"});
    }
    if (are_few_apart()) return ok;
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return a.begin < b.begin; });
    const Place* furthest[2] = {};  // of inputs, of outputs: the one that ends last so far
    for (const Place& place : places_) {
      const bool is_output = place.index >= num_inputs;
      for (int other = is_output ? 0 : 1; other < 2; ++other)
        if (furthest[other] && place.begin < furthest[other]->end && place.begin < place.end)
          return fail(bad_argument, {entry_.name, ": ", name_of(place.index), " overlaps ",
                                     name_of(furthest[other]->index)});
      if (!furthest[is_output] || place.end > furthest[is_output]->end)
        furthest[is_output] = &place;
    }
    return ok;
  }

  // Of few places, whether no output overlaps another place: quicker than sorting them.
  bool are_few_apart() const {
    constexpr std::size_t few = 8;
    if (places_.size() > few) return false;
    for (std::size_t o = entry_.inputs.size(); o < places_.size(); ++o)
      for (std::size_t i = 0; i < o; ++i)
        if (places_[i].begin < places_[o].end && places_[o].begin < places_[i].end) return false;
    return true;
  }

  const Entry& entry_;
  const std::vector<std::int64_t> sizes_;
  std::shared_ptr<const Executable> executable_;
  std::unique_ptr<plait::Session> session_;
  std::vector<View> inputs_, outputs_;
  std::vector<Place> places_;
  std::vector<std::int64_t> bytes_;  // by place
};

// Lives as long as a session, and longer than its contents.
struct Keeping {
  Keeping() { begin_keeping_memory(); }
  ~Keeping() { end_keeping_memory(); }
  Keeping(const Keeping&) = delete;
};

struct Session {
  explicit Session(const Program& program) : program(program) {}
  static constexpr std::size_t most = 16;  // of entries with named sizes, at distinct sizes
  const Keeping keeping;
  const Program& program;
  std::vector<std::unique_ptr<Prepared>> fixed;  // by entry; null where sizes are named
  std::vector<std::unique_ptr<Prepared>> sized;  // the most recently used first
};

Prepared& prepared(Session& session, const Entry& entry, std::size_t index,
                   std::span<const std::int64_t> sizes) {
  if (sizes.empty()) return *session.fixed[index];
  auto& all = session.sized;
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const auto& one) { return one->is_for(entry, sizes); });
  if (found == all.end()) {
    auto made = std::make_unique<Prepared>(entry, sizes);
    if (all.size() == Session::most) all.pop_back();
    all.insert(all.begin(), std::move(made));
  } else {
    std::rotate(all.begin(), found, found + 1);
  }
  return *all.front();
}

}  // namespace
}  // namespace plait::deployed

using namespace plait::deployed;

extern "C" {

// embed registers kernels, if there are any.
int plait_deployed_open(const void* bundle, std::size_t size,
                        void (*embed)(const char* kernels, std::size_t size), const char* kernels,
                        std::size_t kernels_size, void** session) {
  if (!session) return fail(bad_argument, {"open: the place for the session is a null pointer"});
  *session = nullptr;
  return guarded([&] {
    if (embed) embed(kernels, kernels_size);
    const Program& program = program_of(bundle, size);
    auto made = std::make_unique<Session>(program);
    made->sized.reserve(Session::most);
    for (const Entry& entry : program.entries)
      made->fixed.push_back(entry.bounds.empty()
                                ? std::make_unique<Prepared>(entry, std::span<std::int64_t>())
                                : nullptr);
    *session = made.release();
    return int(ok);
  });
}

int plait_deployed_call(void* session, int number, const std::int64_t* sizes,
                        const void* const* inputs, void* const* outputs) {
  if (!session) return fail(bad_argument, {"the session is a null pointer"});
  return guarded([&] {
    auto& opened = *static_cast<Session*>(session);
    const auto index = std::size_t(number);
    if (number < 0 || index >= opened.program.entries.size())
      return fail(bad_argument, {"there is no entry of number ", std::to_string(number)});
    const Entry& entry = opened.program.entries[index];
    const std::size_t num_sizes = entry.bounds.size();
    for (std::size_t i = 0; i < num_sizes; ++i)
      if (sizes[i] < 0 || sizes[i] > entry.bounds[i])
        return fail(bad_argument, {entry.name, ": the size ", entry.jaxpr->sizes[i].to_string(),
                                   " is ", std::to_string(sizes[i]), ", and may be 0 to ",
                                   std::to_string(entry.bounds[i])});
    Prepared& ready = prepared(opened, entry, index, {sizes, num_sizes});
    return inputs || outputs ? ready.run(inputs, outputs) : int(ok);
  });
}

void plait_deployed_close(void* session) { delete static_cast<Session*>(session); }

const char* plait_deployed_message() { return message; }
}
