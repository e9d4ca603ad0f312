// Running a program into memory that the caller owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// Runs a program on concrete inputs and writes its results over the values of the arrays `outputs`,
// in their memory; an empty Array gets memory. Nothing else may share these arrays: no other Array,
// view or input. Errors, which name the function: TreeError for another number of outputs,
// ShapeError and DtypeError for arrays of another type, ValueError for memory that is shared or not
// dense, TracerError where anything is traced.
void run_into(const Jaxpr& program, std::span<const Array> inputs, std::span<Array> outputs,
              std::string_view function);

// The evaluator behind it. Set by lib/compile when the library is loaded.
using EvaluatorInto = void (*)(const Jaxpr& program, std::span<const Array> inputs,
                               std::span<const Array> outputs);
void set_evaluator_into(EvaluatorInto evaluator);

}  // namespace plait
