// Views: arrays that show elements of another one, their base, and through which it is written to.
//
// NOTE: [views] A view knows its base and how to read what it shows: by a subscript, or by a
// function of the catalogue that only moves elements. A write hides the views of what is written
// to: they drop their values, and read them again from their base when they are next used. So a
// write costs nothing for views that nobody reads, and where nobody else holds the memory it is
// written in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bindings.h"

#include <plait/functions/subscript.h>

namespace plait::python {

// A call of a function of the catalogue whose first argument is the base.
struct ViewCall {
  const FunctionInfo* info;
  std::vector<Argument> arguments;  // the first one is put in
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
  ArrayObject* base;  // a strong reference; null for a value that is no view but is not writable
  ViewMap map;
  const char* made_by;  // what made a value that cannot be written to; null where it can
  bool records = true;  // whether the tape records it when it reads its base again
  ArrayObject *next = nullptr, *previous = nullptr;  // among the base's views
};

// What a catalogued function gives, as NumPy's does: new arrays, views, or views that cannot be
// written to.
enum class Gives { values, views, unwritable };
Gives given_by(const FunctionInfo& info);
// Results of a function that gives views. first is the object that was given for its first
// parameter, arguments are all of them.
py::object give_views(const FunctionInfo& info, Gives gives, PyObject* first,
                      std::vector<Argument> arguments, const Argument& result);

// Writes values over the elements of array that subscripts name, in its own memory. Nobody else
// may see that, and nothing may be traced. False where that is not possible.
bool write_memory(const Array& array, const Subscripts& subscripts, const Array& values);

// A new reference to an array that shows a part of base. made_by: see ViewOf.
PyObject* wrap_view(ArrayObject* base, ViewMap map, Array array, const char* made_by = nullptr);
// Every view of base, and of those, holds its value again.
void show_views(ArrayObject* base);
void forget_view(ArrayObject* self);  // it is no view any more
// A new reference to an array that is no view and cannot be written to.
PyObject* wrap_unwritable(Array array, const char* made_by);

}  // namespace plait::python
