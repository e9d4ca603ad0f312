// Cases that need a process of their own: others of its environment, or a device that they break.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace plait::cuda {

// What becomes of cases of a file of this program in a process of its own, with these variables: 0,
// or what is not, as main returns it.
inline int in_own_process(const std::string& file, const std::string& cases,
                          const std::vector<std::pair<const char*, const char*>>& variables) {
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : variables) setenv(name, value, 1);
    setenv("STANDIN_ALONE", "1", 1);
    const int nowhere = open("/dev/null", O_WRONLY);
    if (!getenv("STANDIN_SHOW")) dup2(nowhere, 1), dup2(nowhere, 2);
    execl("/proc/self/exe", "test_cuda", ("--source-file=*" + file).c_str(),
          ("--test-case=" + cases).c_str(), nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

inline bool is_in_own_process() { return std::getenv("STANDIN_ALONE") != nullptr; }

}  // namespace plait::cuda
