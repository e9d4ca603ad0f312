// Texts of kernels to libraries of the CPU, by the C++ compiler and the second definition of their
// language in on_cpu: one text at a time, or many that were collected, in few units.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cuda_standin {

std::string contents(const std::filesystem::path& path);

// Options of NVRTC as those of the C++ compiler that are equal in meaning; nothing where one has no
// equal, which is unknown then.
std::optional<std::vector<std::string>> translated(const std::vector<std::string>& options,
                                                   std::string& unknown);

struct Text {
  std::string name, source;
  std::vector<std::string> options;  // translated
};
struct Compiled {
  bool is_content = false;
  std::string library, log;  // the library's bytes
};
Compiled compiled(const Text& text);

// The variable STANDIN_KERNELS names a folder for texts that are compiled together. With
// STANDIN_COLLECT=1 a text that no library there has is put there, and not compiled.
// standin_compile_collected compiles them; then an image is a name: image_prefix, the path of a
// library, a line's end, and the number of the text in plait_kernel_lists there.
inline constexpr char image_prefix[] = "kernels of ";
enum class Kept { no, collected, yes };
Kept kept(const Text& text, std::string& image);

}  // namespace cuda_standin

extern "C" {
// The collected texts, by so many compilers at once. Returns how many texts there were; those that
// it cannot compile together are compiled one by one when they are asked for.
[[gnu::visibility("default")]] int standin_compile_collected(int jobs);
}
