// NumPy arrays that a call reads where they lie, without a copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// The inputs of a call that are memory of NumPy arrays. Results that lie in that memory are copied.
class BorrowedMemory {
 public:
  // The array in NumPy's memory, which it keeps alive; nothing where it has to be copied: memory
  // that is not row-major, aligned and in the machine's byte order.
  std::optional<Array> read(PyObject* array);
  bool empty() const { return starts_.empty(); }
  // Replaces arrays that lie in NumPy's memory by copies.
  void copy_all(Arrays& arrays) const;
  void clear() { starts_.clear(); }

 private:
  bool is_borrowed(const Array& array) const;
  std::vector<const void*> starts_;
};

// The type of a NumPy array that plait can read as it is; nothing for others.
std::optional<Aval> aval_of_numpy(PyObject* array);

}  // namespace plait::python
