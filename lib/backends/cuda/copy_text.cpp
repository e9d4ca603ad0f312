// The text of the kernels that copy. See copies.h.
// SPDX-License-Identifier: Apache-2.0
#include "copies.h"

namespace plait::cuda {

// A kernel for each size of elements and width of indices. Every parameter is a number or an
// address: a dimension has three.
std::string text_of_copies() {
  struct Element {
    const char *bytes, *type;
  };
  std::string text = "#include \"plait/copy.h\"\n";
  for (const Element& element :
       {Element{"1", "unsigned char"}, Element{"2", "unsigned short"}, Element{"4", "unsigned"},
        Element{"8", "unsigned long"}, Element{"16", "TwoWords"}})
    for (const char* index : {"unsigned", "long"}) {
      const std::string type = element.type;
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
      text += "\nextern \"C\" __global__ void copy_" + std::string(element.bytes) + "_" + index +
              "(In<" + type + "> from, Out<" + type + "> to, long count, int rank" + parameters +
              ") {\n" + lists + "  copy_strided<" + type + ", " + index + ">(from, to, " + index +
              "(count), rank, sizes, from_strides, to_strides);\n}\n";
    }
  return text;
}

}  // namespace plait::cuda
