// Views: arrays that show elements of another array, their base, and through which it is written.
//
// NOTE: [views] A view knows its base and how to read its elements from it: by a subscript, or by a
// function of the catalogue that only moves elements. A write hides the views of the array that is
// written to: they drop their values, and read them again from their base at their next use. So a
// write costs nothing for views that nobody reads, and it happens in place if nobody else holds the
// memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

#include <plait/functions/subscript.h>

namespace plait::python {

// A call of a function of the catalogue whose first argument is the base.
struct ViewCall {
  const FunctionInfo* info;
  std::vector<Argument> arguments;  // the base takes the place of the first one
};

// How a view reads its base: by subscripts, or by a call, one of whose results it may be.
struct ViewMap {
  Subscripts subscripts;
  std::shared_ptr<const ViewCall> call = {};
  std::optional<std::size_t> part = {};

  Array read(const Array& base) const;
  Arrays read_parts(const Array& base) const;  // all results of the call
  // base with value in place of the elements that are read.
  Array write(const Array& base, const Array& value) const;
};

struct ViewOf {
  ArrayObject* base;  // a strong reference; null: not a view, and not writable
  ViewMap map;
  const char* made_by;  // what made a value that is not writable; null: it is writable
  bool records = true;  // whether the tape records the next read of its base
  ArrayObject *next = nullptr, *previous = nullptr;  // among the base's views
};

// What a function of the catalogue returns, as in NumPy: new arrays, views, or read-only views.
enum class Gives { values, views, unwritable };
Gives given_by(const FunctionInfo& info);
// Wraps the results of a function that gives views. first: the object given for its first
// parameter; arguments: all of them.
py::object give_views(const FunctionInfo& info, Gives gives, PyObject* first,
                      std::vector<Argument> arguments, const Argument& result);

// Writes values to the elements of array that subscripts name, in its own memory. Nobody else may
// see that memory, and nothing may be traced. False if the elements cannot be written in place.
bool write_memory(const Array& array, const Subscripts& subscripts, const Array& values);

// A new reference to an array that shows a part of base. made_by: see ViewOf.
PyObject* wrap_view(ArrayObject* base, ViewMap map, Array array, const char* made_by = nullptr);
// Makes every view of base, and of those views, hold its value again.
void show_views(ArrayObject* base);
void forget_view(ArrayObject* self);  // it stops being a view
// A new reference to an array that is not a view and cannot be written to.
PyObject* wrap_unwritable(Array array, const char* made_by);

}  // namespace plait::python
