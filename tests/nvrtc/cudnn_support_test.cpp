// Which graphs cuDNN takes: the library tells it without a device, from the description of one. For
// each version there is a table, tests/nvrtc/cudnn/VERSION.txt, of the convolutions that laws,
// conformance and benchmarks are made of, and of attention, as the backend describes them. The
// stand-in of cuDNN has to answer as the version that it pretends to be.
//
// The wheel is large, and most machines that run tests have none; then the stand-in alone is asked,
// which is said. PLAIT_REQUIRE_CUDNN=1 makes that a failure. A table is written anew with
// PLAIT_UPDATE=1.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <plait/transforms/transforms.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "../backends/backend_here.h"
#include "backends/cuda/cudnn/attention.h"
#include "backends/cuda/cudnn/kernel.h"
#include "backends/cuda/library.h"
#include "primitives/convolution/conv.h"

using namespace plait;

namespace {

// --- The library, and devices for it -------------------------------------------------------------

std::string folder_of_stand_ins() {
  char self[4096] = "";
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  REQUIRE(length > 0);
  const std::string path(self, std::size_t(length));
  return path.substr(0, path.rfind('/')) + "/cuda";
}

bool is_stand_in() {
  Dl_info info;
  REQUIRE(dladdr(reinterpret_cast<void*>(cuda::cudnn_api()->cudnnGetVersion), &info) != 0);
  void* const library = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return library && dlsym(library, "standin_graphs");
}

// cuDNN asks the driver for what it can do, and is content with the stand-in's answers. Where it is
// not installed, its stand-in is asked.
void find_cudnn() {
  const std::string folder = folder_of_stand_ins();
  REQUIRE(dlopen((folder + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr);
  (void)cuda::nvrtc_api();  // that of other tests, which is no stand-in
  if (!cuda::load_library("libcudnn.so.9", cuda::Origin::wheels).handle)
    setenv("PLAIT_CUDA_LIBRARIES", folder.c_str(), 1);
  REQUIRE_MESSAGE(cuda::cudnn_api(), cuda::why_no_cudnn());
  if (is_required("cudnn")) REQUIRE(!is_stand_in());
  if (is_stand_in()) MESSAGE("cuDNN is not installed: its stand-in answers");
}

struct DeviceSort {
  int architecture, processors, shared_memory;
};
constexpr DeviceSort sorts[] = {{80, 108, 166912}, {90, 132, 232448}, {100, 148, 232448}};

std::string json_of(const DeviceSort& sort) {
  std::string text = "{";
  const auto add = [&](const char* name, const std::string& value) {
    text += std::string(text.size() > 1 ? ", " : "") + "\"" + name + "\": " + value;
  };
  add("deviceVer", std::to_string(sort.architecture * 10));
  add("multiProcessorCount", std::to_string(sort.processors));
  add("maxSharedMemoryPerBlockOptin", std::to_string(sort.shared_memory));
  add("maxGridSize", "[2147483647, 65535, 65535]");
  add("maxBlockSize", "[1024, 1024, 64]");
  add("regsPerBlock", "65536");
  add("warpSize", "32");
  add("maxSharedMemoryPerBlock", "49152");
  add("reservedSharedMemoryPerBlock", "1024");
  add("maxRegistersPerSM", "65536");
  add("maxCtasPerSM", "32");
  add("maxThreadsPerBlock", "1024");
  add("maxThreadsPerSM", "2048");
  add("pciDeviceId", "0");
  add("isTccDriver", "0");
  add("supportCoopLaunch", "1");
  add("totalGlobalMem", "85899345920");
  add("smClockRateKHz", "1755000");
  add("memClockRateKHz", "2619000");
  add("l2CacheSize", "52428800");
  add("cudaDeviceId", "0");
  add("driverVer", "13000");
  add("deviceName", "\"described\"");
  add("smCountOrigin", "0");  // the last three since 9.2x
  add("oversizedSharedMemoryPerBlock", "0");
  add("memoryBusWidth", "5120");
  return text + "}";
}

// The number of the engine that takes a graph, or "no".
template <class Graph>
std::string answer_of(const Graph& graph, const cuda::Descriptor& device) {
  cuda::Machine machine;
  machine.description = device.get();
  try {
    return std::to_string(cuda::Plan(describe(graph), machine).engine());
  } catch (const BackendError&) {
    return "no";
  }
}

// --- The graphs ----------------------------------------------------------------------------------

struct Convolved {
  Shape lhs, rhs, strides = {}, dilations = {};
  const char* padding = "SAME";
  const char *lhs_spec = "NCHW", *rhs_spec = "OIHW";
  std::int64_t groups = 1;
};
const Convolved programs[] = {
    // Small and odd, as laws have them.
    {{2, 3, 4, 5}, {4, 3, 2, 3}, {1, 1}, {}, "VALID"},
    {{1, 2, 6, 5}, {3, 2, 3, 2}, {2, 3}, {1, 2}},
    {{2, 6, 15, 13}, {9, 2, 3, 2}, {2, 1}, {}, "VALID", "NCHW", "OIHW", 3},
    {{2, 5, 4, 3}, {3, 3, 3, 2}, {1, 1}, {}, "SAME", "NHWC", "HWIO"},
    {{2, 3, 7}, {2, 3, 3}, {2}, {2}, "SAME", "NCW", "OIW"},
    {{2, 4, 7, 6, 5}, {8, 4, 3, 2, 3}, {1, 2, 1}, {}, "SAME", "NCDHW", "OIDHW"},
    // As networks have them.
    {{32, 3, 224, 224}, {64, 3, 7, 7}, {2, 2}},
    {{8, 64, 56, 56}, {128, 64, 3, 3}},
    {{8, 64, 56, 56}, {128, 64, 3, 3}, {2, 2}},
    {{8, 64, 56, 56}, {256, 64, 1, 1}, {1, 1}, {}, "VALID"},
    {{8, 64, 56, 56}, {128, 64, 3, 3}, {1, 1}, {2, 2}},
    {{8, 64, 56, 56}, {128, 16, 3, 3}, {1, 1}, {}, "SAME", "NCHW", "OIHW", 4},
    {{8, 56, 56, 64}, {3, 3, 64, 128}, {1, 1}, {}, "SAME", "NHWC", "HWIO"},
    {{8, 56, 56, 64}, {3, 3, 1, 64}, {1, 1}, {}, "SAME", "NHWC", "HWIO", 64},
    {{128, 28, 28, 1}, {5, 5, 1, 32}, {1, 1}, {}, "VALID", "NHWC", "HWIO"},
    {{16, 80, 3000}, {384, 80, 3}, {1}, {}, "SAME", "NCW", "OIW"},
    {{2, 32, 16, 64, 64}, {64, 32, 3, 3, 3}, {1, 1, 1}, {}, "SAME", "NCDHW", "OIDHW"},
};

// The convolutions of a program and of its gradients.
std::vector<cuda::ConvolutionGraph> graphs_of(const Convolved& one) {
  const lax::ConvDimensions dimensions =
      lax::conv_dimension_numbers(one.lhs_spec, one.rhs_spec, one.lhs_spec);
  const Function forward = [&](std::span<const Array> in) {
    return Arrays{lax::conv_general_dilated(in[0], in[1], one.strides, one.padding, {},
                                            one.dilations, dimensions, one.groups)};
  };
  const std::vector<Aval> avals{{one.lhs, DType::float32}, {one.rhs, DType::float32}};
  const Function all = [&](std::span<const Array> in) {
    const flat::Pullback pullback =
        flat::vjp(forward, std::vector<Array>{in[0], in[1]}, {true, true});
    Arrays results;
    for (const Tangent& each : pullback.pull(std::vector<Tangent>{Tangent(in[2])}))
      results.push_back(each.array());
    results.push_back(forward(in)[0]);
    return results;
  };
  const Jaxpr program = make_jaxpr(forward, avals).jaxpr;
  std::vector<Aval> with_cotangent = avals;
  with_cotangent.push_back(program->aval(program->outputs[0]));
  const Jaxpr gradients = make_jaxpr(all, with_cotangent).jaxpr;
  std::vector<cuda::ConvolutionGraph> graphs;
  for (const Equation& equation : gradients->equations) {
    if (!(*equation.primitive == conv_p)) continue;
    const Atom atoms[] = {equation.inputs[0], equation.inputs[1], equation.outputs[0]};
    std::array<View, 3> arrays;
    for (std::size_t i = 0; i < 3; ++i) {
      arrays[i] = {nullptr, DType::float32, gradients->aval(atoms[i]).shape.to_sizes(), {}};
      arrays[i].strides = dense_strides(arrays[i].shape);
    }
    for (const bool is_reversed : {false, true}) {  // as gradients read kernels
      if (is_reversed)
        for (const int axis : spatial(equation.params.ints("rhs_spec")))
          arrays[1].strides[std::size_t(axis)] *= -1;
      for (const cuda::ConvolutionForm& form : cuda::forms_of(equation.params, arrays)) {
        graphs.push_back(form.graph);
        graphs.back().layout = cuda::layout_of(form, arrays);
      }
    }
  }
  return graphs;
}

// With all that may follow a convolution, and with memory that is aligned to its elements alone.
std::vector<cuda::ConvolutionGraph> varied(const cuda::ConvolutionGraph& graph) {
  std::vector<cuda::ConvolutionGraph> all{graph, graph};
  all.back().alignment = 1;
  if (graph.direction != cuda::Direction::forward) return all;
  all.push_back(graph);
  all.back().adds_array = all.back().adds_bias = all.back().has_relu = true;
  return all;
}

std::vector<cuda::AttentionGraph> attentions() {
  std::vector<cuda::AttentionGraph> graphs;
  for (const cuda::AttentionPart part :
       {cuda::AttentionPart::forward, cuda::AttentionPart::training, cuda::AttentionPart::gradient})
    for (const bool is_causal : {false, true})
      for (const std::int64_t depth : {64, 128, 80, 20}) {
        const Shape q{2, 4, 300, depth}, k{2, 4, 277, depth}, rows{2, 4, 300};
        std::vector<Aval> inputs{{q, DType::bfloat16}, {k, DType::bfloat16}, {k, DType::bfloat16}};
        if (part == cuda::AttentionPart::gradient)
          for (const Aval& more :
               {Aval{q, DType::bfloat16}, Aval{rows, DType::float32}, Aval{q, DType::bfloat16}})
            inputs.push_back(more);
        graphs.push_back(cuda::dense_attention(
            part, is_causal ? Params{{"scale", 1.0}, {"causal", true}} : Params{{"scale", 1.0}},
            inputs));
        if (depth != 64 || is_causal) continue;
        cuda::AttentionGraph masked = graphs.back();
        for (const DType dtype : {DType::bfloat16, DType::float16})
          for (const cuda::FourSizes& bias :
               {cuda::FourSizes{2, 4, 300, 277}, {1, 1, 300, 277}, {2, 1, 1, 277}}) {
            masked.dtype = dtype, masked.bias = bias;
            graphs.push_back(masked);
          }
      }
  return graphs;
}

// "forward ...: float32 28 70 11, float64 ...".
std::string table_of_version() {
  std::vector<cuda::Descriptor> devices;
  for (const DeviceSort& sort : sorts) devices.push_back(cuda::describe_machine(json_of(sort)));
  std::string table =
      "# A graph, and the engines that take it on sm_80, sm_90 and sm_100, for each dtype.\n";
  std::set<std::string> known;
  const auto answers = [&](const auto& graph) {
    std::string text = " " + std::string(name_of(graph.dtype));
    for (const cuda::Descriptor& device : devices) text += " " + answer_of(graph, device);
    return text;
  };
  for (const Convolved& program : programs)
    for (const cuda::ConvolutionGraph& base : graphs_of(program))
      for (cuda::ConvolutionGraph graph : varied(base)) {
        std::string line = graph.to_string() + ":";
        line.erase(line.find(" float32"), 8);
        if (!known.insert(line).second) continue;
        const bool is_aligned = graph.alignment == cuda::tensor_alignment;
        for (const DType dtype :
             {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
          graph.dtype = dtype;
          if (!is_aligned) graph.alignment = std::int64_t(size_of(dtype));
          line += answers(graph);
        }
        table += line + "\n";
      }
  for (const cuda::AttentionGraph& graph : attentions())
    table += graph.to_string() + ":" + answers(graph) + "\n";
  return table;
}

// Whether graphs are taken, for a library whose engines have other numbers.
std::string without_numbers(const std::string& table) {
  static const std::regex taken(" [0-9]+(?= |\n)");
  return std::regex_replace(table, taken, " +");
}
}  // namespace

TEST_CASE("cuDNN takes the graphs that its version is known to take") {
  find_cudnn();
  const std::size_t version = cuda::cudnn_api()->cudnnGetVersion();
  const std::string path = "tests/nvrtc/cudnn/" + std::to_string(version / 10000) + "." +
                           std::to_string(version / 100 % 100) + "." +
                           std::to_string(version % 100) + ".txt",
                    table = table_of_version();
  std::stringstream expected;
  expected << std::ifstream(path).rdbuf();
  CAPTURE(path);
  if (is_stand_in()) {
    CHECK(without_numbers(table) == without_numbers(expected.str()));
    return;
  }
  const bool is_same = table == expected.str();  // too long to be shown
  CHECK(is_same);
  const char* const update = std::getenv("PLAIT_UPDATE");
  if (update && *update && !is_same) std::ofstream(path) << table;
}
