// Mistakes to plant in loop programs: what an emitter might get wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codegen/program.h"

namespace plait::codegen {

struct PlantedError {
  std::string name;
  // Changes the first statement of the program that can have the mistake, outside of while loops,
  // which might not end then; false where there is none.
  bool (*plant)(LoopProgram& program);
  std::vector<std::string> loops;  // of written_loops, in each of which it must be found
};
const std::vector<PlantedError>& planted_errors();

// The same in what is written: one text in place of another.
struct PlantedText {
  std::string name;
  std::string right, wrong;
  std::vector<std::string> loops;
};
const std::vector<PlantedText>& planted_texts();

}  // namespace plait::codegen
