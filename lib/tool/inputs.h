// The arrays that verbs run an entry on: from files, from the command line, or its test vector.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/command.h"

namespace plait::tool {

inline constexpr Option size_option = {"--size", "n=32", "the number for a size with a name"};
// --inputs, --set, --cast and --constants, and what their help says.
std::span<const Option> input_options();

// The program in the file of operand 0, with the constants that --constants gives.
Program program_of(const Words& words);
// The entry that operand 1 names, or the only one.
const Entry& entry_of(const Program& program, const Words& words);

struct Inputs {
  Arrays operands;  // of the entry's jaxpr: leaves as it takes them, and constants
  Jaxpr jaxpr;      // for these: without named sizes
  bool is_example;  // whether they are the file's test vector, as where nothing is given
};
// ValueError for an argument that is not given; Usage for one that is given twice, or is unknown.
Inputs inputs_of(const Entry& entry, const Words& words);

// --threads, for all that follows.
void choose_threads(const Words& words);

// ValueError for a size of --size that none of the entries has.
void check_sizes(std::span<const Entry> entries, const Words& words);
// The program with the numbers that --size gives to sizes with names.
Jaxpr sized(const Entry& entry, const Words& words);
// The same; ValueError where a size is left without a number.
Jaxpr sized_whole(const Entry& entry, const Words& words);

}  // namespace plait::tool
