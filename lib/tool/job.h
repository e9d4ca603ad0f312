// plait run of programs other than saved ones: on several ranks, by an MPI launcher, or as one of
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "tool/command.h"

namespace plait::tool {

// The exit code of `plait run` where it starts processes; nothing where the words after the verb
// name a saved program that runs here. Usage.
std::optional<int> run_processes(std::span<const std::string> words);

// Whether it is a script, an executable program or one that is on PATH: the words that follow are
// its own.
bool names_a_program(const std::string& path);

// The command that starts a job of so many ranks, up to the program. BackendError where there is no
// launcher.
std::vector<std::string> launch_command(int num_ranks);
// Runs the command as a process below this one, passes signals on to it, and ends as it does. Where
// a signal that nobody asked for ends it, a message names the rank.
int supervise(const std::vector<std::string>& command);

}  // namespace plait::tool
