// The text of the kernels that copy. See copies.h.
// SPDX-License-Identifier: Apache-2.0
#include "copies.h"

namespace plait::cuda {
const char* word_text(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return "unsigned char";
    case 2:
      return "unsigned short";
    case 4:
      return "unsigned";
    case 8:
      return "unsigned long";
    default:
      return "TwoWords";
  }
}

// Every parameter is a number or an address: a dimension has three.
std::string text_of_copy(std::size_t bytes, bool is_wide) {
  const std::string type = word_text(bytes), index = is_wide ? "long" : "unsigned";
  std::string parameters, lists;
  for (const char* list : {"sizes", "from_strides", "to_strides"}) {
    std::string values;
    for (std::size_t dim = 0; dim < most_copied_dims; ++dim) {
      const std::string name = list[0] + std::to_string(dim);
      parameters += ", long " + name;
      values += (dim == 0 ? "" : ", ") + name;
    }
    lists += "  const long " + std::string(list) + "[] = {" + values + "};\n";
  }
  return "#include \"plait/copy.h\"\n\nextern \"C\" __global__ void copy(In<" + type +
         "> from, Out<" + type + "> to, long count, int rank" + parameters + ") {\n" + lists +
         "  copy_strided<" + type + ", " + index + ">(from, to, " + index +
         "(count), rank, sizes, from_strides, to_strides);\n}\n";
}

}  // namespace plait::cuda
