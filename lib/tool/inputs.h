// The arrays on which verbs run an entry: from files, from the command line, or its test vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.h"

namespace plait::tool {

inline constexpr Option size_option = {"--size", "n=32", "the number for a size with a name"};
// --inputs, --set, --cast and --constants, with their help.
std::span<const Option> input_options();

// The program in the file of operand 0, with the constants that --constants gives.
Program program_of(const Arguments& arguments);
// The entry that operand 1 names, or the only one.
const Entry& entry_of(const Program& program, const Arguments& arguments);

struct Inputs {
  Arrays operands;  // of the entry's jaxpr: converted leaves, and constants
  Jaxpr jaxpr;      // for these: without named sizes
  bool is_example;  // whether they are the file's test vector, the default
};
// ValueError for a missing argument; Usage error for one that is unknown or given twice.
Inputs inputs_of(const Entry& entry, const Arguments& arguments);

// Applies --threads to all later work.
void choose_threads(const Arguments& arguments);

// ValueError for a size of --size that none of the entries has.
void check_sizes(std::span<const Entry> entries, const Arguments& arguments);
// The program with the numbers of --size substituted for named sizes.
Jaxpr sized(const Entry& entry, const Arguments& arguments);
// The same; ValueError where a size remains without a number.
Jaxpr sized_whole(const Entry& entry, const Arguments& arguments);

}  // namespace plait::tool
