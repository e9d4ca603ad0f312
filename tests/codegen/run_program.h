// Runs loop programs on numbers, for tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/compile/backend.h>

#include "codegen/interpreter.h"
#include "codegen/parse.h"

namespace plait::codegen {

using Numbers = std::vector<double>;

// The kernels of the reference backend, for calls.
inline std::shared_ptr<const Kernel> reference_kernel(const Jaxpr& program,
                                                      std::span<const Sizes64> strides) {
  return find_backend("reference")->compile(program, {{}, strides});
}

// The operands or the results of a program, in order, in which every number is
// number(array, element).
template <class F>
std::vector<Buffer> arrays_of(const LoopProgram& program, Memory::Space space, const F& number) {
  std::vector<Buffer> arrays;
  for (const Memory& memory : program.memories) {
    if (memory.space != space) continue;
    const auto index = std::size_t(memory.index);
    if (arrays.size() <= index) arrays.resize(index + 1);
    arrays[index] = Buffer::empty(memory.dtype, {memory.size});
    visit_dtype(memory.dtype, [&](auto element) {
      using T = decltype(element);
      auto* const data = static_cast<T*>(arrays[index].mutable_data());
      for (std::int64_t i = 0; i < memory.size; ++i)
        if constexpr (std::is_arithmetic_v<T>)
          data[i] = T(number(index, std::size_t(i)));
        else
          data[i] = T(float(number(index, std::size_t(i))));
    });
  }
  return arrays;
}
inline Numbers numbers_of(const Buffer& buffer) {
  Numbers numbers;
  visit_dtype(buffer.dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (std::is_arithmetic_v<T>)
      for (std::int64_t i = 0; i < buffer.view().size(); ++i)
        numbers.push_back(double(static_cast<const T*>(buffer.data())[i]));
  });
  return numbers;
}

// runner: an Interpreter, or a Kernel, whose memory has this many bytes.
template <class Runner, class F>
std::vector<Buffer> run_with(const LoopProgram& program, const Runner& runner, std::int64_t bytes,
                             const F& number) {
  const std::vector<Buffer> given = arrays_of(program, Memory::Space::operand, number);
  const std::vector<Buffer> made =
      arrays_of(program, Memory::Space::result, [](std::size_t, std::size_t) { return 77; });
  std::vector<View> inputs, outputs;
  for (const Buffer& buffer : given) inputs.push_back(buffer.view());
  for (const Buffer& buffer : made) outputs.push_back(buffer.view());
  const Storage scratch = Storage::allocate(std::size_t(bytes + 1));
  if constexpr (std::is_base_of_v<Kernel, Runner>)
    runner.enqueue(inputs, outputs, scratch.data(), {});
  else
    runner.run(inputs, outputs, scratch.data());
  return made;
}
template <class Runner>
std::vector<Numbers> run(const LoopProgram& program, const Runner& runner, std::int64_t bytes,
                         const std::vector<Numbers>& operands) {
  std::vector<Numbers> results;
  for (const Buffer& buffer :
       run_with(program, runner, bytes,
                [&](std::size_t array, std::size_t i) { return operands[array][i]; }))
    results.push_back(numbers_of(buffer));
  return results;
}
inline std::vector<Numbers> interpret(const LoopProgram& program,
                                      const std::vector<Numbers>& operands) {
  const Interpreter interpreter(program);
  return run(program, interpreter, interpreter.frame_bytes(), operands);
}

}  // namespace plait::codegen
