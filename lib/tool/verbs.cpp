// The table of verbs. See command.h.
// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"
#include "tool/deploy.h"
#include "tool/inputs.h"

namespace plait::tool {
namespace {

std::vector<Option> operator+(std::vector<Option> own, std::span<const Option> more) {
  own.insert(own.end(), more.begin(), more.end());
  return own;
}

constexpr char inputs_help[] =
    "Arrays come from .npz, .npy and .safetensors files, by the names that plait info lists\n"
    "(x, weights['w'] or weights.w), by position (arr_0, arr_1, ...), or one by one:\n"
    "--inputs x=photo.npy. Without --inputs and --set it runs on the test vector of the file.\n";

constexpr char processes_help[] =
    "\n"
    "A script or an executable program runs too, with the words that follow it:\n"
    "plait run -n 4 train.py --rate 0.1 starts four ranks by the mpirun of this machine, or by "
    "the\n"
    "command in PLAIT_MPIRUN, each with its share of the cores (PLAIT_THREADS). Under another\n"
    "launcher, as in `srun plait run train.py`, it is one rank.\n";

}  // namespace

std::span<const Verb> verbs() {
  static const std::string run_help = std::string(inputs_help) + processes_help;
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
      {"code",
       "FILE [ENTRY]",
       1,
       2,
       "the program as Python that makes it again",
       "",
       {{"--cpp", nullptr, "as C++"}},
       &code},
      {"check",
       "FILE [ENTRY]",
       1,
       2,
       "whether a file is sound, and computes what it did when it was saved",
       "Reads the whole file, checks the invariants of every program in it and runs the test\n"
       "vectors: what does not fit is an error, and the exit code is 1.\n",
       {},
       &check},
      {"summary",
       "FILE [ENTRY]",
       1,
       2,
       "what a program costs, by named scope: parameters, FLOPs, bytes, memory",
       "",
       {size_option, {"--json", nullptr, "as JSON: an object of lists by entry"}},
       &summary},
      {"diff",
       "FILE FILE [ENTRY]",
       2,
       3,
       "how two programs differ, by equation; the exit code is 1 where they do",
       "Entries of one name are compared, or the only ones; constants too, by name.\n",
       {},
       &diff},
      {"draw", "FILE [ENTRY]", 1, 2, "a picture of an entry: a page for a browser, or an SVG",
       "Colours by time and backend run the entry, on what --inputs and --set give, or on the "
       "test\nvector of the file.\n",
       std::vector<Option>{{"-o", "OUTPUT", "page.html or picture.svg"},
                           {"--color", "kind", "or bytes, time, backend"},
                           size_option} +
           input_options(),
       &draw},
      {"run", "FILE [ENTRY]", 1, 2,
       "runs an entry on arrays from files, and prints or writes the results", run_help.c_str(),
       std::vector<Option>{
           {"-o", "FILE", "where results go: .npz, .npy or .safetensors; else a table"},
           {"-n", "N", "as the first option: on so many ranks, which MPI starts"}} +
           input_options(),
       &run},
      {"profile", "FILE [ENTRY]", 1, 2,
       "what the steps of an entry take, by line, scope and transform", inputs_help,
       std::vector<Option>{{"--trace", "FILE", "write a trace for Perfetto (ui.perfetto.dev)"},
                           {"--flame", "FILE", "write a flame graph, a page for a browser"},
                           {"--json", nullptr, "print JSON instead of tables"},
                           {"--repeat", "N", "how many calls; else what takes 0.3 seconds"}} +
           input_options(),
       &profile},
      {"bench", "FILE [ENTRY]", 1, 2, "how long an entry takes: the median of repeated calls",
       inputs_help,
       std::vector<Option>{{"--repeat", "N", "how many calls; else what takes half a second"}} +
           input_options(),
       &bench},
      {"strip",
       "FILE",
       1,
       1,
       "writes a smaller file, without some of its parts",
       "The licence stays. Constants that are left out are given again where the file is used:\n"
       "plait run --constants, or constants= in plait.load.\n",
       {{"-o", "OUTPUT", "the file to write"},
        {"--constants", nullptr, "leave out the arrays that functions captured: the weights"},
        {"--test-vectors", nullptr, "leave out the test vectors"},
        {"--sources", nullptr, "leave out the lines of the code that it was traced from"},
        {"--meta", nullptr, "leave out the texts that were saved with it"}},
       &strip},
      {"upgrade",
       "FILE",
       1,
       1,
       "writes a file in the newest format, after running its test vectors",
       "Files of every format load for ever; newer formats are checked better.\n",
       {{"-o", "OUTPUT", "the file to write; else it takes the place of the old one"}},
       &upgrade},
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
        {"--device", "NAME", "the device that it runs on; else the CPU"},
        {"--kernels", nullptr, "kernels alone, without programs that transforms make"},
        {"--claims", nullptr, "what the backend says that it takes; nothing is run"}},
       &conformance},
      {"completions",
       "bash|zsh|fish",
       1,
       1,
       "prints what a shell needs to complete these commands",
       "The first lines of what is printed say where it goes.\n",
       {},
       &completions},
  };
  return all;
}

}  // namespace plait::tool
