// Texts of kernels to machine code, by NVRTC. What was compiled once is kept on disk.
//
// A text includes "plait/kernel.h" and others of device_texts() (texts.h), and nothing from disk.
// Reading these takes longer than most kernels, and NVRTC reads for one program at a time, whatever
// the number of threads: texts are compiled as few programs. Each of them is found again by itself.
// Its file holds its machine code, or names the file of the program that it was a part of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compile/file_cache.h"

namespace plait::cuda {

struct Cubin {
  std::string bytes;
  std::string log;  // warnings, registers and spills; empty where it was kept from before
};

// Of one text.
struct Compiled {
  std::shared_ptr<const Cubin> cubin;
  FileCache::Key key{};  // of the cubin: equal for texts that were compiled together
  std::string ending;    // behind the names that the text gives its kernels
};

// architecture: "sm_90". BackendError where there is no NVRTC, or it does not know the
// architecture; InternalError, with the compiler's log, for a text that is wrong.
std::optional<Compiled> find_compiled(const std::string& source, std::string_view architecture);
// As one program, of one of the groups below.
std::vector<Compiled> compile_together(std::span<const std::string> sources,
                                       std::string_view architecture);
// One text: found, or compiled alone.
Cubin compile(const std::string& source, std::string_view architecture);

// Texts by number, in groups to be compiled each as a program, by so many threads at most: those
// that take the least time. What is defined before the includes is the same within a group.
// PLAIT_CUDA_TOGETHER=0: each alone.
std::vector<std::vector<std::size_t>> programs_of(std::span<const std::string> sources,
                                                  std::size_t most_threads);

}  // namespace plait::cuda
