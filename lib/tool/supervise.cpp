// A process that watches one rank: it says how the rank ended, before the launcher ends the job.
// See job.h.
//
// Launchers say it in their own ways, and not all of them which rank it was.
// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/job.h"
#include "tool/job.h"

namespace plait::tool {
namespace {

constexpr int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM};

void become(const std::vector<std::string>& command, pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // launchers may end the process above alone
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execvp(words[0], words.data());
  std::fprintf(stderr, "plait: %s cannot be run: %s\n", words[0], std::strerror(errno));
  _exit(127);
}

void say_how_it_ended(pid_t process, int number) {
  const Job job = job_of_environment().value_or(Job{});
  char machine[HOST_NAME_MAX + 1] = {};
  gethostname(machine, sizeof machine - 1);
  const char* name = sigabbrev_np(number);
  std::string text = "plait: rank " + std::to_string(job.rank) +
                     (job.size > 0 ? " of " + std::to_string(job.size) : "") + " (process " +
                     std::to_string(process) + " on " + machine + ") was ended by SIG" +
                     (name ? name : std::to_string(number)) + ", and the job with it";
  if (number == SIGKILL)
    text += "\n  fix: where nobody sent it, the machine has run out of memory: see dmesg there";
  text += "\n";
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  usleep(50000);  // launchers drop what they have not read yet
}

// As the process below did, so that a launcher sees what it would see without this one.
[[noreturn]] void end_by(int number) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // there is one of the process below
  signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigprocmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
  _exit(128 + number);
}

}  // namespace

int supervise(const std::vector<std::string>& command) {
  sigset_t set, outer;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : passed_on) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, &outer);
  const pid_t parent = getpid();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0)
    throw BackendError(std::string("no process can be started: ") + std::strerror(errno),
                       "end other processes, or raise their limit (ulimit -u)");
  if (child == 0) become(command, parent, outer);
  bool is_told = false;  // by the launcher, or the user
  for (;;) {
    siginfo_t info;
    const int number = sigwaitinfo(&set, &info);
    if (number < 0) continue;
    if (number != SIGCHLD) {
      is_told = is_told || (number != SIGUSR1 && number != SIGUSR2 && number != SIGCONT);
      // What a terminal sends reaches both.
      if (info.si_code != SI_KERNEL) kill(child, number);
      continue;
    }
    int status = 0;
    if (waitpid(child, &status, WNOHANG) != child) continue;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    if (!WIFSIGNALED(status)) continue;
    sigset_t pending;  // the launcher may have ended both at once
    sigpending(&pending);
    is_told = is_told || sigismember(&pending, SIGTERM) || sigismember(&pending, SIGINT);
    if (!is_told) say_how_it_ended(child, WTERMSIG(status));
    end_by(WTERMSIG(status));
  }
}

}  // namespace plait::tool
