// The table of verbs. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"
#include "tool/deploy.h"

namespace plait::tool {

std::span<const Verb> verbs() {
  static const std::vector<Verb> all = {
      {"info",
       "FILE",
       1,
       1,
       "what a saved program holds: entries, arguments, constants",
       "",
       {},
       &info},
      {"show",
       "FILE [ENTRY]",
       1,
       2,
       "the program as text: one entry, or all",
       "",
       {{"--sources", nullptr, "with the lines of the code that it was traced from"}},
       &show},
      {"summary",
       "FILE [ENTRY]",
       1,
       2,
       "what a program costs, by named scope: operations, bytes, memory",
       "",
       {{"--size", "n=32", "a number for the size n; may be given several times"},
        {"--json", nullptr, "as JSON"}},
       &summarize},
      {"code",
       "FILE [ENTRY]",
       1,
       2,
       "the program as Python that makes it again",
       "",
       {{"--cpp", nullptr, "as C++"}},
       &code_of},
      {"diff",
       "FILE FILE [ENTRY]",
       2,
       3,
       "how the programs in two files differ, equation by equation",
       "Constants are not compared. The exit code is 1 when programs differ.\n",
       {},
       &diff_of},
      {"check",
       "FILE [ENTRY]",
       1,
       2,
       "whether a file is sound, and computes what it did when it was saved",
       "Reads the whole file, checks the invariants of every program in it and runs the test\n"
       "vectors: what does not fit is an error, and the exit code is 1.\n",
       {},
       &check},
      {"compile",
       "FILE",
       1,
       1,
       "an object with a C interface, which needs no plait to run: model.so or model.a",
       "The object holds the programs, their constants and the kernels that they need; a header "
       "is\n"
       "written beside it, with a function for every entry. It needs a C++ compiler here, and "
       "where\n"
       "it runs the C++ standard library alone. A size with a name is fixed, or an argument of "
       "the\n"
       "function up to a bound.\n",
       {{"-o", "OUTPUT", "model.so, or model.a"},
        {"--entry", "NAME", "only this entry; may be given several times"},
        {"--size", "n=32", "fix the size n; n<=64: make it an argument, up to 64"},
        {"--name", "NAME", "what names in the header begin with; else that of the output"},
        {"--header", "FILE", "where the header goes; else beside the output"},
        {"--with", "BACKEND",
         "link in llvm (generated loops), or onednn (which must be there to run)"},
        {"--runtime", "FILE", "the run-time library, if it is not the one beside libplait"}},
       &compile},
      {"conformance",
       "[PRIMITIVE...]",
       0,
       1000,
       "whether a backend obeys the laws, for every primitive and dtype or those named",
       "Each line says what passed, what the backend refuses (and who runs it then), and what\n"
       "failed, with the law and the sample. The exit code is 1 when anything failed.\n",
       {{"--backend", "NAME", "the backend: onednn, llvm, reference, or a module's"},
        {"--module", "PATH", "a shared object to load first, which registers the backend"},
        {"--kernels", nullptr, "kernels alone, without programs that transforms make"}},
       &conformance},
  };
  return all;
}

}  // namespace plait::tool
