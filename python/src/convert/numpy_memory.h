// NumPy arrays that a call reads in place, without a copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

namespace plait::python {

// The inputs of a call that are in NumPy's memory. Results in that memory are copied.
class BorrowedMemory {
 public:
  // An array in NumPy's memory, which it keeps alive. Nullopt if the memory must be copied: it is
  // not row-major, aligned and in native byte order.
  std::optional<Array> read(PyObject* array);
  bool empty() const { return starts_.empty(); }
  // Replaces arrays in NumPy's memory by copies.
  void copy_all(Arrays& arrays) const;
  void clear() { starts_.clear(); }

 private:
  bool is_borrowed(const Array& array) const;
  std::vector<const void*> starts_;
};

// The type of a NumPy array whose dtype plait reads as it is; nullopt for others.
std::optional<Aval> aval_of_numpy(PyObject* array);

}  // namespace plait::python
