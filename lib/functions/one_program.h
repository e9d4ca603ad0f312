// Functions of many steps over large arrays as one program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/trace/trace.h>

namespace plait::functions {

// The result of body for these inputs. Where nothing is traced, the inputs are in memory, and the
// work is large or was often asked for, body is traced once for these avals and attributes, and its
// program runs: steps that would each pass over memory become one loop, with the same bits.
// Elsewhere body is called. name and attributes must identify the body, which must not branch on
// values.
Array in_one_program(std::string_view name, std::span<const Array> inputs, const Params& attributes,
                     Dim work, const Function& body);
// The work is that of a step over the largest input.
Array in_one_program(std::string_view name, std::span<const Array> inputs, const Function& body);
// The same for bodies of a few cheap steps: of large arrays, each of them costs less than a program
// that is not compiled yet.
Array few_in_one_program(std::string_view name, std::span<const Array> inputs,
                         const Function& body);

}  // namespace plait::functions
