// Programs that run on the stand-in of cuDNN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include "compared.h"
#include "libcudnn.h"
#include "loaded.h"

namespace plait::cuda {

struct Cudnn {
#define STANDIN_MEMBER(name, result, ...) result (*name)(__VA_ARGS__);
  STANDIN_CUDNN_CONTROLS(STANDIN_MEMBER)
#undef STANDIN_MEMBER
};

inline const Cudnn& cudnn() {
  static const Cudnn all = [] {
    void* const handle = open_stand_in("libcudnn.so.9");
    Cudnn found;
#define STANDIN_FIND(name, ...) \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(handle, #name));
    STANDIN_CUDNN_CONTROLS(STANDIN_FIND)
#undef STANDIN_FIND
    return found;
  }();
  return all;
}

struct GraphRun {
  std::string graph, steps;  // the last one that the library started; what explain says
  long num_graphs = 0;
};

// On the device and here, which must agree.
inline GraphRun run_graphs(const std::function<Array(std::span<const Array>)>& f,
                           const Arrays& inputs) {
  const long before = cudnn().standin_graphs();
  std::string steps = compared(f, inputs);
  return {cudnn().standin_last_graph(), std::move(steps), cudnn().standin_graphs() - before};
}

// One graph, and no step beside it.
inline void check_one_graph(const GraphRun& run, const std::string& graph) {
  CAPTURE(run.steps);
  CHECK(run.num_graphs == 1);
  CHECK(run.graph == graph);
  CHECK(!has(run.steps, "   1  "));
}

}  // namespace plait::cuda
