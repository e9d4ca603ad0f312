// plait run: an entry on arrays from files. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/compile/compile.h>

#include <cstdio>

#include "tool/arrays.h"
#include "tool/inputs.h"

namespace plait::tool {
namespace {

template <class T>
std::string text_of(T value) {
  char text[64];
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(value);
  else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
    std::snprintf(text, sizeof text, "%.6g%+.6gj", double(value.real()), double(value.imag()));
  else
    std::snprintf(text, sizeof text, "%.6g", double(float(value)));
  return text;
}
template <>
std::string text_of(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// The first elements in row-major order.
std::string first_values(const Buffer& array) {
  constexpr std::int64_t most = 6;
  const Buffer dense = array.dense();
  const std::int64_t count = num_elements(dense.shape());
  std::string text;
  visit_dtype(dense.dtype(), [&](auto zero) {
    const auto* values = static_cast<const decltype(zero)*>(dense.data());
    for (std::int64_t i = 0; i < std::min(count, most); ++i)
      text += (text.empty() ? "" : " ") + text_of(values[i]);
  });
  return text + (count > most ? " ..." : "");
}

void print_table(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> types;
  std::size_t name_width = 0, type_width = 0;
  for (const NamedArray& named : arrays) {
    types.push_back(Aval{Shape::of(named.array.shape()), named.array.dtype()}.to_string());
    name_width = std::max(name_width, named.name.size());
    type_width = std::max(type_width, types.back().size());
  }
  for (std::size_t i = 0; i < arrays.size(); ++i)
    std::printf("%-*s  %-*s  %s\n", int(name_width), arrays[i].name.c_str(), int(type_width),
                types[i].c_str(), first_values(arrays[i].array).c_str());
}

}  // namespace

int run(const Arguments& arguments) {
  choose_threads(arguments);
  const Program program = program_of(arguments);
  const Entry& entry = entry_of(program, arguments);
  const std::string path = arguments.value("-o");
  if (arguments.has("-o")) check_arrays_path(path, std::size_t(entry.result().num_leaves()));
  const Inputs inputs = inputs_of(entry, arguments);
  std::vector<Buffer> operands;
  for (const Array& array : inputs.operands) operands.push_back(array.buffer());
  const std::vector<Buffer> outputs = plait::compile(inputs.jaxpr)->run(operands);
  std::vector<NamedArray> arrays;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    arrays.push_back({output_name(entry, int(i)), outputs[i]});
  if (inputs.is_example) std::fprintf(stderr, "on the test vector of the file\n");
  if (arguments.has("-o"))
    write_arrays(path, std::move(arrays));
  else
    print_table(arrays);
  return 0;
}

}  // namespace plait::tool
