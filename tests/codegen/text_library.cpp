// See text_library.h.
// SPDX-License-Identifier: Apache-2.0
#include "text_library.h"

#include <dlfcn.h>
#include <plait/base/internal_error.h>
#include <plait/compile/backend.h>
#include <plait/inspect/samples.h>
#include <plait/primitives/kernels.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "codegen/calls.h"
#include "codegen/interpreter.h"
#include "cpp_text.h"

namespace plait::codegen {
namespace {

constexpr int untouched = 0x5a;  // what no run has written

std::vector<Buffer> make_results(std::span<const Aval> avals) {
  std::vector<Buffer> buffers;
  for (const Aval& aval : avals) {
    buffers.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes()));
    std::memset(buffers.back().mutable_data(), untouched, std::size_t(buffers.back().bytes()));
  }
  return buffers;
}

std::vector<View> views_of(std::span<const Buffer> buffers) {
  std::vector<View> views;
  for (const Buffer& buffer : buffers) views.push_back(buffer.view());
  return views;
}
std::vector<Buffer> dense(const Arrays& arrays) {
  std::vector<Buffer> buffers;
  for (const Array& array : arrays) buffers.push_back(array.buffer().dense());
  return buffers;
}

// Memory with a margin of zeros on both sides.
class Fenced {
 public:
  explicit Fenced(std::int64_t bytes)
      : bytes_(bytes), storage_(Storage::allocate(std::size_t(bytes + 2 * margin))) {
    std::memset(storage_.data(), 0, std::size_t(bytes + 2 * margin));
    std::memset(data(), untouched, std::size_t(bytes));
  }
  char* data() const { return static_cast<char*>(storage_.data()) + margin; }
  // Whether nothing was written to the margins.
  bool is_intact() const {
    const auto is_zero = [](char byte) { return byte == 0; };
    return std::all_of(data() - margin, data(), is_zero) &&
           std::all_of(data() + bytes_, data() + bytes_ + margin, is_zero);
  }

 private:
  static constexpr std::int64_t margin = 1 << 16;
  std::int64_t bytes_;
  Storage storage_;
};

// run(operands, results) as an outcome.
template <class Run>
Outcome outcome_of(const Arrays& operands, std::span<const Aval> results, const Run& run) {
  const std::vector<Buffer> inputs = dense(operands), outputs = make_results(results);
  try {
    run(views_of(inputs), views_of(outputs));
  } catch (const Error& error) {
    return {{}, error.what()};
  }
  return {{outputs.begin(), outputs.end()}, {}};
}

// Throws an InternalError where a kernel writes past the memory that it was given.
void run_fenced(const Kernel& kernel, const std::vector<View>& inputs,
                const std::vector<View>& outputs) {
  const Fenced scratch(kernel.scratch_bytes());
  std::vector<Fenced> memory;
  std::vector<View> fenced = outputs;
  for (View& view : fenced) {
    memory.emplace_back(view.size() * size_of(view.dtype));
    view.data = memory.back().data();
  }
  kernel.enqueue(inputs, fenced, scratch.data(), {});
  const auto is_intact = [](const Fenced& each) { return each.is_intact(); };
  if (!scratch.is_intact() || !std::all_of(memory.begin(), memory.end(), is_intact))
    throw InternalError("a kernel writes past its memory");
  for (std::size_t i = 0; i < outputs.size(); ++i) copy_elements(fenced[i], outputs[i]);
}

// With one NaN for all: which of two a sum gives is the compiler's choice.
Array with_one_nan(const Array& array) {
  Buffer buffer = Buffer::copy_of(array.buffer().view());
  visit_dtype(buffer.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto replace = [&](auto* numbers, std::int64_t count) {
      using Number = std::decay_t<decltype(*numbers)>;
      for (std::int64_t i = 0; i < count; ++i)
        if (const double value = double(plait::detail::Compute<Number>(numbers[i])); value != value)
          numbers[i] = Number(std::numeric_limits<float>::quiet_NaN());
    };
    const std::int64_t size = num_elements(buffer.shape());
    if constexpr (is_complex_v<T>)
      replace(static_cast<typename T::value_type*>(buffer.mutable_data()), 2 * size);
    else if constexpr (!std::is_integral_v<T>)
      replace(static_cast<T*>(buffer.mutable_data()), size);
  });
  return Array(buffer);
}
Arrays with_one_nan(const Arrays& arrays) {
  Arrays results;
  for (const Array& array : arrays) results.push_back(with_one_nan(array));
  return results;
}

}  // namespace

std::optional<std::string> difference(const Outcome& actual, const Outcome& expected) {
  if (actual.error != expected.error)
    return "it " + (actual.error.empty() ? "gives arrays" : "throws " + actual.error) +
           "; it should " + (expected.error.empty() ? "give arrays" : "throw " + expected.error);
  return laws::difference_in_bits(with_one_nan(actual.results), with_one_nan(expected.results));
}

Outcome interpreted(const LoopProgram& program, const Arrays& operands,
                    std::span<const Aval> results) {
  return outcome_of(
      operands, results, [&](const std::vector<View>& inputs, const std::vector<View>& outputs) {
        const Interpreter interpreter(program);
        const Storage frame = Storage::allocate(std::size_t(interpreter.frame_bytes()));
        interpreter.run(inputs, outputs, frame.data());
      });
}

Generated generated(const Jaxpr& loop, const Arrays& operands) {
  const Backend* const llvm = find_backend("llvm");
  if (!llvm) return {{}, "there is no llvm"};
  const std::vector<Aval> results = loop->output_avals();
  const Equation& equation = loop->equations[0];
  std::vector<Aval> inputs;
  for (const Atom& atom : equation.inputs) inputs.push_back(loop->aval(atom));
  const Support support = llvm->supports(equation, inputs, results, {});
  if (!support) return {{}, support.reason.empty() ? "there is no libLLVM" : support.reason};
  const std::unique_ptr<Kernel> kernel = llvm->compile(loop, {});
  return {outcome_of(operands, results,
                     [&](const std::vector<View>& inputs, const std::vector<View>& outputs) {
                       run_fenced(*kernel, inputs, outputs);
                     }),
          {}};
}

// --- Texts ---------------------------------------------------------------------------------------

namespace {

using Function = long(void* const* memory, long* index,
                      bool (*call)(void* calls, long number, void* const* places), void* calls);

// The kernels that a text calls; their error waits until it has returned.
struct CallsOfText {
  RunningCalls calls;
  std::exception_ptr error = {};

  static bool run(void* self, long number, void* const* places) {
    auto& of_text = *static_cast<CallsOfText*>(self);
    try {
      of_text.calls.run(int(number), places);
      return false;
    } catch (...) {
      of_text.error = std::current_exception();
      return true;
    }
  }
};

std::string contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

std::optional<std::string> TextLibrary::compiler() {
  const char* const chosen = std::getenv("CXX");
  const std::string command = chosen && *chosen ? chosen : "c++";
  if (std::system((command + " --version > /dev/null 2>&1").c_str()) != 0) return {};
  return command;
}

TextLibrary::~TextLibrary() {
  if (library_) dlclose(library_);
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::size_t TextLibrary::add(const LoopProgram& program,
                             const std::function<std::string(std::string)>& edit) {
  programs_.push_back(std::make_unique<const LoopProgram>(program));
  const std::size_t number = programs_.size() - 1;
  const std::string text = cpp_text(*programs_.back(), "program_" + std::to_string(number));
  text_ += (edit ? edit(text) : text) + "\n";
  return number;
}

// The options of the library that say which bits numbers have, and integers that wrap.
void TextLibrary::compile() {
  std::string folder = std::filesystem::temp_directory_path() / "plait_texts_XXXXXX";
  if (!mkdtemp(folder.data())) throw std::runtime_error("no folder for texts: " + folder);
  folder_ = folder;
  const std::string source = folder + "/texts.cpp", library = folder + "/texts.so",
                    log = folder + "/log";
  std::ofstream(source) << cpp_text_beginning() << text_;
  const std::string command =
      compiler().value() +
      " -std=c++20 -O1 -march=x86-64-v3 -ffp-contract=off -fno-math-errno -fwrapv -w -fPIC -shared"
      " -Itests -Iinclude -Ilib " +
      source + " -o " + library + " > " + log + " 2>&1";
  if (std::system(command.c_str()) != 0)
    throw std::runtime_error("texts do not compile:\n" + contents(log).substr(0, 4000));
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) throw std::runtime_error(dlerror());
  for (std::size_t i = 0; i < programs_.size(); ++i)
    functions_.push_back(dlsym(library_, ("program_" + std::to_string(i)).c_str()));
}

Outcome TextLibrary::run(std::size_t number, const Arrays& operands,
                         std::span<const Aval> results) const {
  const LoopProgram& program = *programs_.at(number);
  const auto run = [&](const std::vector<View>& inputs, const std::vector<View>& outputs) {
    std::vector<Fenced> fenced;
    std::vector<void*> memory;
    for (const Memory& each : program.memories) {
      const std::int64_t bytes = each.size * size_of(each.dtype);
      fenced.emplace_back(bytes);
      memory.push_back(fenced.back().data());
      if (each.space == Memory::Space::operand)
        std::memcpy(memory.back(), inputs[std::size_t(each.index)].data, std::size_t(bytes));
    }
    const Calls calls(program);
    const Storage scratch = Storage::allocate(std::size_t(calls.scratch_bytes()));
    const Launch launch;
    CallsOfText of_text{{calls, scratch.data(), launch}};
    long index = 0;
    const long failed = reinterpret_cast<Function*>(functions_.at(number))(
        memory.data(), &index, &CallsOfText::run, &of_text);
    if (of_text.error) std::rethrow_exception(of_text.error);
    if (failed > 0) raise(*checks_of(program)[std::size_t(failed - 1)], index);
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (const Memory& each = program.memories[i]; each.space == Memory::Space::result)
        std::memcpy(outputs[std::size_t(each.index)].data, memory[i],
                    std::size_t(each.size * size_of(each.dtype)));
  };
  return outcome_of(operands, results, run);
}

}  // namespace plait::codegen
