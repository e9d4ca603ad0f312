// Running a program into memory that the caller owns.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/array.h>

namespace plait {

// Runs a program on concrete inputs and lets its results take the place of what the arrays
// `outputs` hold, in their memory; an Array that holds nothing gets memory. Nobody else may see
// these arrays: no other Array, view or input. Errors, which name the function: TreeError for
// another number of outputs, ShapeError and DtypeError for arrays of another type, ValueError for
// memory that others see or that is not dense, TracerError where anything is traced.
void run_into(const Jaxpr& program, std::span<const Array> inputs, std::span<Array> outputs,
              std::string_view function);

// What runs it; `run` installs it when the library is loaded.
using EvaluatorInto = void (*)(const Jaxpr& program, std::span<const Array> inputs,
                               std::span<const Array> outputs);
void set_evaluator_into(EvaluatorInto evaluator);

}  // namespace plait
