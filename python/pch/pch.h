// The precompiled header of the extension module: pybind11 and the headers that bindings.h needs,
// which take most of the time of its files. Every file still includes what it uses.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/base/tree.h>
#include <plait/functions/catalogue.h>
#include <plait/trace/trace.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
