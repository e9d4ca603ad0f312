// A stand-in for cuDNN's graph interface: descriptors take the attributes that plait sets, once
// each and before they are finalized, and are checked when they are; graphs of a convolution, or
// one of its gradients, with sums and relu behind it run one element after the other on the streams
// of the driver's stand-in.
//
// Heuristics propose engines that plait must not use, first: their notes say that they round
// (tensor cores for float32), add up in any order or spread NaN, and they do so; one is refused
// when it becomes a plan. Variable of the environment: STANDIN_RELU=drops_nan makes relu max(x, 0).
// SPDX-License-Identifier: Apache-2.0
#include "libcudnn.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/plait/base/dtype.h"
#include "driver/hooks.h"

#define STANDIN_EXPORT extern "C" [[gnu::visibility("default")]]

namespace plait::cuda {
struct cudnnContext {
  int device = 0;
  CUstream stream = nullptr;
};
}  // namespace plait::cuda

namespace {

using namespace plait::cuda;
using Numbers = std::vector<std::int64_t>;

std::atomic<long> num_graphs{0}, num_handles{0};
std::atomic<bool> is_fused{true}, are_proposed{true};
std::mutex mutex;
std::string last_graph, failing_call;
int failing_status = 0;
thread_local std::string said;

// A failure with its reason.
cudnnStatus_t refuse(cudnnStatus_t status, std::string why) {
  said = std::move(why);
  return status;
}
cudnnStatus_t bad(std::string why) { return refuse(CUDNN_STATUS_BAD_PARAM, std::move(why)); }

std::optional<cudnnStatus_t> asked_to_fail(const char* call) {
  const std::lock_guard lock(mutex);
  if (failing_call != call) return std::nullopt;
  failing_call.clear();
  return refuse(failing_status, "as asked");
}

// --- Descriptors ---------------------------------------------------------------------------------

struct Known {
  int kind, attribute, type;
  bool is_needed;
};
constexpr Known known[] = {
    {CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
     CUDNN_TYPE_CHAR, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, true},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE, true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
     true},
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION,
     CUDNN_TYPE_NAN_PROPOGATION, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     false},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, true},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, false},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
     true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, true},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     true},
};

// The attributes of the three operations, in the order of Direction.
struct ConvolutionNames {
  int kind, image, kernel, result, how, scale, old_scale;
};
constexpr ConvolutionNames directions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

const ConvolutionNames* names_of(int kind) {
  for (const ConvolutionNames& names : directions)
    if (names.kind == kind) return &names;
  return nullptr;
}

// nullptr: no such attribute.
std::optional<Known> find_known(int kind, int attribute) {
  for (const Known& each : known)
    if (each.kind == kind && each.attribute == attribute) return each;
  if (const ConvolutionNames* names = names_of(kind)) {
    for (const int object : {names->image, names->kernel, names->result, names->how})
      if (object == attribute) return Known{kind, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, true};
    for (const int scale : {names->scale, names->old_scale})
      if (scale == attribute) return Known{kind, attribute, CUDNN_TYPE_FLOAT, true};
  }
  return std::nullopt;
}

std::size_t bytes_of(int type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

struct Object;
bool is_alive(const Object* object);

struct Object {
  struct Value {
    int type = 0;
    std::int64_t count = 0;
    std::vector<char> bytes;
  };
  explicit Object(int kind) : kind(kind) {}
  const int kind;
  bool is_finalized = false;
  int engine = 0;  // of an engine, a configuration, a plan
  std::int64_t workspace = 0;
  const Object* graph = nullptr;  // of a configuration
  std::map<int, Value> values;

  bool has(int attribute) const { return values.count(attribute) != 0; }
  template <class T>
  std::vector<T> all(int attribute) const {
    const Value& value = values.at(attribute);
    std::vector<T> read(std::size_t(value.count));
    std::memcpy(read.data(), value.bytes.data(), value.bytes.size());
    return read;
  }
  template <class T>
  T one(int attribute) const {
    return all<T>(attribute).at(0);
  }
  // Finalized, of a kind, and there; null otherwise.
  const Object* object(int attribute, int wanted) const {
    if (!has(attribute)) return nullptr;
    const Object* found = one<Object*>(attribute);
    return is_alive(found) && found->is_finalized && found->kind == wanted ? found : nullptr;
  }
};

std::set<const Object*>& alive() {
  static std::set<const Object*>& all = *new std::set<const Object*>;
  return all;
}
bool is_alive(const Object* object) {
  const std::lock_guard lock(mutex);
  return alive().count(object) != 0;
}

// --- Tensors and operations ----------------------------------------------------------------------

struct Tensor {
  explicit Tensor(const Object& object)
      : number(object.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)),
        alignment(object.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT)),
        type(object.one<int>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
        is_virtual(object.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL)),
        sizes(object.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        strides(object.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES)) {}
  std::int64_t number, alignment;
  int type;
  bool is_virtual;
  Numbers sizes, strides;

  std::int64_t count() const {
    std::int64_t product = 1;
    for (const std::int64_t size : sizes) product *= size;
    return product;
  }
  std::size_t element() const {
    return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
  }
  bool is_packed(bool channels_last) const {
    std::int64_t step = 1;
    bool is_so = true;
    const auto check = [&](std::size_t axis) {
      is_so &= strides[axis] == step;
      step *= sizes[axis];
    };
    if (channels_last) check(1);
    for (std::size_t axis = sizes.size(); axis-- > 2;) check(axis);
    if (!channels_last) check(1);
    check(0);
    return is_so;
  }
};

cudnnStatus_t check_tensor(const Object& object) {
  const Tensor tensor(object);
  if (tensor.sizes.size() != tensor.strides.size() || tensor.sizes.size() < 3 ||
      tensor.sizes.size() > 5)
    return bad("a tensor's dimensions");
  for (const Numbers* numbers : {&tensor.sizes, &tensor.strides})
    for (const std::int64_t number : *numbers)
      if (number < 1) return bad("a tensor has sizes or strides below 1");
  if (tensor.alignment % std::int64_t(tensor.element()) != 0) return bad("a tensor's alignment");
  for (const int type : {CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16})
    if (tensor.type == type) return CUDNN_STATUS_SUCCESS;
  return bad("a tensor's type");
}

// A convolution or one of its gradients.
struct Convolution {
  explicit Convolution(const Object& object)
      : names(*names_of(object.kind)),
        image(*object.object(names.image, CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
        kernel(*object.object(names.kernel, CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
        result(*object.object(names.result, CUDNN_BACKEND_TENSOR_DESCRIPTOR)) {
    const Object& how = *object.object(names.how, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    before = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    after = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    strides = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    dilations = how.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    sums = how.one<int>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  }
  const ConvolutionNames& names;
  Tensor image, kernel, result;
  Numbers before, after, strides, dilations;
  int sums;
  int direction() const { return int(&names - directions); }
  const Tensor& written() const {
    return direction() == 0 ? result : direction() == 1 ? image : kernel;
  }
};

cudnnStatus_t check_how(const Object& how) {
  const std::size_t count = std::size_t(how.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
  for (const int attribute :
       {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS,
        CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_DILATIONS}) {
    const bool is_padding = attribute == CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS ||
                            attribute == CUDNN_ATTR_CONVOLUTION_POST_PADDINGS;
    const Numbers numbers = how.all<std::int64_t>(attribute);
    if (numbers.size() != count) return bad("a convolution's dimensions");
    for (const std::int64_t number : numbers)
      if (number < (is_padding ? 0 : 1)) return bad("a convolution's paddings or strides");
  }
  if (how.one<int>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return bad("a convolution's mode");
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const Object& object) {
  const ConvolutionNames& names = *names_of(object.kind);
  for (const int attribute : {names.image, names.kernel, names.result})
    if (!object.object(attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
      return bad("an operation's tensor");
  if (!object.object(names.how, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR))
    return bad("an operation's convolution");
  const Convolution c(object);
  const std::size_t rank = c.image.sizes.size();
  if (c.kernel.sizes.size() != rank || c.result.sizes.size() != rank ||
      c.strides.size() + 2 != rank)
    return bad("an operation's dimensions");
  const std::int64_t in_group = c.kernel.sizes[1], groups = c.image.sizes[1] / in_group;
  if (c.image.sizes[1] % in_group != 0 || c.kernel.sizes[0] % groups != 0 ||
      c.result.sizes[1] != c.kernel.sizes[0] || c.result.sizes[0] != c.image.sizes[0])
    return bad("an operation's channels");
  for (std::size_t i = 0; i < c.strides.size(); ++i) {
    const std::int64_t room = c.image.sizes[i + 2] + c.before[i] + c.after[i] -
                              c.dilations[i] * (c.kernel.sizes[i + 2] - 1) - 1;
    if (room < 0 || room / c.strides[i] + 1 != c.result.sizes[i + 2])
      return bad("an operation's spatial sizes");
  }
  const bool is_wide = c.sums == CUDNN_DATA_DOUBLE;
  for (const Tensor* tensor : {&c.image, &c.kernel, &c.result}) {
    if (tensor->is_virtual && tensor->type != c.sums) return bad("the type of sums between");
    if (!tensor->is_virtual && (tensor->type == CUDNN_DATA_DOUBLE) != is_wide)
      return bad("an operation's types");
  }
  const int type = is_wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  for (const int scale : {names.scale, names.old_scale})
    if (object.values.at(scale).type != type) return bad("the type of an operation's scales");
  const auto scale = [&](int attribute) {
    return is_wide ? object.one<double>(attribute) : double(object.one<float>(attribute));
  };
  return scale(names.scale) == 1 && scale(names.old_scale) == 0 ? CUDNN_STATUS_SUCCESS
                                                                : bad("an operation's scales");
}

struct Pointwise {
  explicit Pointwise(const Object& object)
      : x(*object.object(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
        y(*object.object(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR)) {
    const Object& how = *object.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                                       CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    mode = how.one<int>(CUDNN_ATTR_POINTWISE_MODE);
    keeps_nan = how.has(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) &&
                how.one<int>(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION) == CUDNN_PROPAGATE_NAN;
    if (const Object* b =
            object.object(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
      added.emplace(*b);
  }
  Tensor x, y;
  std::optional<Tensor> added;
  int mode = 0;
  bool keeps_nan = false;
};

cudnnStatus_t check_pointwise(const Object& object) {
  for (const int attribute :
       {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC})
    if (!object.object(attribute, CUDNN_BACKEND_TENSOR_DESCRIPTOR))
      return bad("an operation's tensor");
  if (!object.object(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                     CUDNN_BACKEND_POINTWISE_DESCRIPTOR))
    return bad("an operation's mode");
  const Pointwise p(object);
  if (p.x.sizes != p.y.sizes || !p.x.is_virtual) return bad("an operation's tensors");
  if (p.mode == CUDNN_POINTWISE_RELU_FWD)
    return p.added ? bad("relu of two tensors") : CUDNN_STATUS_SUCCESS;
  if (p.mode != CUDNN_POINTWISE_ADD || !p.added) return bad("an operation's mode");
  for (std::size_t i = 0; i < p.x.sizes.size(); ++i)
    if (p.added->sizes[i] != p.x.sizes[i] && p.added->sizes[i] != 1)
      return bad("the sizes of what is added");
  return CUDNN_STATUS_SUCCESS;
}

// --- Graphs --------------------------------------------------------------------------------------

struct Graph {
  explicit Graph(const Object& object) {
    const std::vector<Object*> operations = object.all<Object*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    convolution.emplace(*operations.at(0));
    for (std::size_t i = 1; i < operations.size(); ++i) steps.emplace_back(*operations[i]);
  }
  std::optional<Convolution> convolution;
  std::vector<Pointwise> steps;

  const Tensor& written() const { return steps.empty() ? convolution->written() : steps.back().y; }
  std::vector<Tensor> in_memory() const {
    std::vector<Tensor> all;
    for (const Tensor* tensor : {&convolution->image, &convolution->kernel, &convolution->result})
      if (!tensor->is_virtual) all.push_back(*tensor);
    for (const Pointwise& step : steps) {
      if (step.added) all.push_back(*step.added);
      if (!step.y.is_virtual) all.push_back(step.y);
    }
    return all;
  }
  bool is_wide() const { return convolution->sums == CUDNN_DATA_DOUBLE; }
  bool is_float() const { return convolution->image.type == CUDNN_DATA_FLOAT; }
};

cudnnStatus_t check_graph(const Object& object) {
  const std::vector<Object*> operations = object.all<Object*>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  for (std::size_t i = 0; i < operations.size(); ++i) {
    if (!is_alive(operations[i]) || !operations[i]->is_finalized) return bad("a graph's operation");
    const bool is_pointwise = operations[i]->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
    if (is_pointwise != (i > 0) || (i == 0 && !names_of(operations[i]->kind)))
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "a graph that is no convolution");
  }
  const Graph graph(object);
  std::int64_t last = graph.convolution->written().number;
  for (const Pointwise& step : graph.steps) {
    if (step.x.number != last) return bad("a graph's order");
    last = step.y.number;
  }
  if (graph.written().is_virtual) return bad("a graph without a result");
  std::set<std::int64_t> numbers;
  for (const Tensor& tensor : graph.in_memory())
    if (!numbers.insert(tensor.number).second) return bad("two tensors of one number");
  return CUDNN_STATUS_SUCCESS;
}

// Whether engines run it: in one layout throughout; relu behind a sum alone.
cudnnStatus_t check_taken(const Graph& graph) {
  for (const bool channels_last : {false, true}) {
    const std::vector<Tensor> all = graph.in_memory();
    if (std::all_of(all.begin(), all.end(),
                    [&](const Tensor& tensor) { return tensor.is_packed(channels_last); })) {
      if (graph.steps.empty()) return CUDNN_STATUS_SUCCESS;
      if (is_fused && graph.convolution->direction() == 0 &&
          graph.steps[0].mode == CUDNN_POINTWISE_ADD)
        return CUDNN_STATUS_SUCCESS;
      return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine has such steps");
    }
  }
  return refuse(CUDNN_STATUS_NOT_SUPPORTED, "no engine has such strides");
}

// Engines by number.
constexpr int with_tf32 = 7, with_winograd = 8, in_any_order = 9, never_a_plan = 10, exact = 11,
              exact_fallback = 1;
constexpr std::int64_t big_workspace = 4096;

std::vector<int> proposed(const Graph& graph, int mode) {
  if (check_taken(graph) != CUDNN_STATUS_SUCCESS) return {};
  if (mode == CUDNN_HEUR_MODE_FALLBACK) return {in_any_order, exact_fallback};
  if (!are_proposed) return {with_winograd};
  if (graph.is_wide()) return {in_any_order, never_a_plan, exact};
  return {with_tf32, with_winograd, in_any_order, never_a_plan, exact};
}
std::vector<int> notes_of(int engine, const Graph& graph) {
  switch (engine) {
    case with_tf32:
      return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
    case with_winograd:
      return {CUDNN_NUMERICAL_NOTE_WINOGRAD};
    case in_any_order:
      return {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    default:
      return graph.is_float() ? std::vector<int>{}
                              : std::vector<int>{CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  }
}

cudnnStatus_t check_plan(Object& plan) {
  const Object* configuration =
      plan.object(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  if (!configuration || !is_alive(configuration->graph)) return bad("a plan's configuration");
  if (plan.has(CUDNN_ATTR_EXECUTION_PLAN_HANDLE) == plan.has(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP))
    return bad("a plan's device");
  if (configuration->engine == never_a_plan)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "an engine that never runs");
  plan.engine = configuration->engine;
  plan.graph = configuration->graph;
  plan.workspace =
      plan.engine == exact && Graph(*plan.graph).written().count() > 512 ? big_workspace : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_object(Object& object) {
  for (const Known& each : known)
    if (each.kind == object.kind && each.is_needed && !object.has(each.attribute))
      return bad("attribute " + std::to_string(each.attribute) + " is not set");
  if (const ConvolutionNames* names = names_of(object.kind)) {
    for (const int attribute :
         {names->image, names->kernel, names->result, names->how, names->scale, names->old_scale})
      if (!object.has(attribute))
        return bad("attribute " + std::to_string(attribute) + " is not set");
    return check_convolution(object);
  }
  switch (object.kind) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(object);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return check_how(object);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return check_pointwise(object);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return check_graph(object);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return object.object(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                           CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                 ? CUDNN_STATUS_SUCCESS
                 : bad("a heuristic's graph");
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return check_plan(object);
    default:
      return CUDNN_STATUS_SUCCESS;
  }
}

// --- Execution -----------------------------------------------------------------------------------

bool drops_nan() {
  static const bool is_asked = [] {
    const char* relu = std::getenv("STANDIN_RELU");
    return relu != nullptr && std::string_view(relu) == "drops_nan";
  }();
  return is_asked;
}

// T: of tensors in memory, S: of sums.
template <class T, class S>
struct Execution {
  const Graph& graph;
  int engine;
  const std::map<std::int64_t, void*>& memory;

  const T* values(const Tensor& tensor) const {
    return static_cast<const T*>(memory.at(tensor.number));
  }
  S rounded(T value) const {
    S wide = S(value);
    if (engine == with_tf32) {
      float small = float(wide);
      std::uint32_t bits;
      std::memcpy(&bits, &small, sizeof bits);
      bits &= ~std::uint32_t(0x1fff);
      std::memcpy(&small, &bits, sizeof bits);
      wide = S(small);
    }
    return wide;
  }

  // Adds up in the order of the result's elements, of kernels' and of channels.
  std::vector<S> convolved() const {
    const Convolution& c = *graph.convolution;
    const std::size_t n = c.strides.size();
    std::vector<S> sums(std::size_t(c.written().count()));
    const T* const image = c.direction() == 1 ? nullptr : values(c.image);
    const T* const kernel = c.direction() == 2 ? nullptr : values(c.kernel);
    const T* const result = c.direction() == 0 ? nullptr : values(c.result);
    const std::int64_t in_group = c.kernel.sizes[1],
                       out_group = c.kernel.sizes[0] / (c.image.sizes[1] / in_group);
    // Spatial offsets of a kernel's pixel at a result's pixel; false outside of the image.
    const auto each_pixel = [&](const auto& f) {
      Numbers at(n, 0), tap(n, 0);
      const auto next = [&](Numbers& place, const Numbers& sizes) {
        for (std::size_t i = n; i-- > 0;) {
          if (++place[i] < sizes[i + 2]) return true;
          place[i] = 0;
        }
        return false;
      };
      do {
        std::fill(tap.begin(), tap.end(), 0);
        do {
          std::int64_t x = 0, w = 0, y = 0;
          bool is_inside = true;
          for (std::size_t i = 0; i < n; ++i) {
            const std::int64_t pixel = at[i] * c.strides[i] + tap[i] * c.dilations[i] - c.before[i];
            is_inside &= pixel >= 0 && pixel < c.image.sizes[i + 2];
            x += pixel * c.image.strides[i + 2];
            w += tap[i] * c.kernel.strides[i + 2];
            y += at[i] * c.result.strides[i + 2];
          }
          if (is_inside) f(x, w, y);
        } while (next(tap, c.kernel.sizes));
      } while (next(at, c.result.sizes));
    };
    for (std::int64_t b = 0; b < c.image.sizes[0]; ++b)
      for (std::int64_t k = 0; k < c.kernel.sizes[0]; ++k)
        for (std::int64_t i = 0; i < in_group; ++i) {
          const std::int64_t channel = k / out_group * in_group + i;
          each_pixel([&](std::int64_t x, std::int64_t w, std::int64_t y) {
            x += b * c.image.strides[0] + channel * c.image.strides[1];
            w += k * c.kernel.strides[0] + i * c.kernel.strides[1];
            y += b * c.result.strides[0] + k * c.result.strides[1];
            if (c.direction() == 0)
              sums[std::size_t(y)] += rounded(image[x]) * rounded(kernel[w]);
            else if (c.direction() == 1)
              sums[std::size_t(x)] += rounded(result[y]) * rounded(kernel[w]);
            else
              sums[std::size_t(w)] += rounded(image[x]) * rounded(result[y]);
          });
        }
    return sums;
  }

  void apply(const Pointwise& step, std::vector<S>& sums) const {
    if (step.mode == CUDNN_POINTWISE_RELU_FWD) {
      const bool keeps_nan = step.keeps_nan && !drops_nan();
      for (S& sum : sums) sum = keeps_nan ? (sum <= 0 ? S(0) : sum) : std::fmax(sum, S(0));
      return;
    }
    const Tensor& b = *step.added;
    const T* const added = values(b);
    Numbers at(b.sizes.size(), 0);
    for (std::size_t left = sums.size(); left > 0; --left) {
      std::int64_t from = 0, to = 0;
      for (std::size_t i = 0; i < at.size(); ++i) {
        from += b.sizes[i] == 1 ? 0 : at[i] * b.strides[i];
        to += at[i] * step.x.strides[i];
      }
      sums[std::size_t(to)] += S(added[from]);
      for (std::size_t i = at.size(); i-- > 0;) {
        if (++at[i] < step.x.sizes[i]) break;
        at[i] = 0;
      }
    }
  }

  void run() const {
    std::vector<S> sums = convolved();
    for (const Pointwise& step : graph.steps) apply(step, sums);
    T* const written = static_cast<T*>(memory.at(graph.written().number));
    const bool is_spoilt = engine == with_winograd || engine == in_any_order;
    for (std::size_t i = 0; i < sums.size(); ++i)
      written[i] = is_spoilt ? T(std::numeric_limits<float>::quiet_NaN()) : T(sums[i]);
  }
};

struct Call {
  Graph graph;
  int engine, device;
  std::map<std::int64_t, std::uint64_t> addresses;
  std::uint64_t workspace;
  std::int64_t workspace_bytes;

  void run() const {
    std::map<std::int64_t, void*> memory;
    for (const Tensor& tensor : graph.in_memory()) {
      void* const data =
          standin_memory(device, addresses.at(tensor.number),
                         std::size_t(tensor.count()) * tensor.element(), "a convolution's tensor");
      if (data == nullptr) return;
      memory.emplace(tensor.number, data);
    }
    if (workspace_bytes > 0) {
      void* const spoilt = standin_memory(device, workspace, std::size_t(workspace_bytes),
                                          "the workspace of a convolution");
      if (spoilt == nullptr) return;
      std::memset(spoilt, 0xab, std::size_t(workspace_bytes));
    }
    switch (graph.convolution->image.type) {
      case CUDNN_DATA_DOUBLE:
        return Execution<double, double>{graph, engine, memory}.run();
      case CUDNN_DATA_HALF:
        return Execution<plait::float16, float>{graph, engine, memory}.run();
      case CUDNN_DATA_BFLOAT16:
        return Execution<plait::bfloat16, float>{graph, engine, memory}.run();
      default:
        return Execution<float, float>{graph, engine, memory}.run();
    }
  }
};

std::string joined(const Numbers& numbers) {
  std::string text;
  for (const std::int64_t number : numbers)
    text += (text.empty() ? "" : "x") + std::to_string(number);
  return text;
}
std::string text_of(const Graph& graph) {
  static constexpr const char* names[] = {"forward", "data gradient", "kernel gradient"};
  const Convolution& c = *graph.convolution;
  std::string text = std::string(names[c.direction()]) + " " + joined(c.image.sizes) + " by " +
                     joined(c.kernel.sizes) + (c.image.is_packed(true) ? " last" : " first");
  for (const Pointwise& step : graph.steps)
    text += step.mode == CUDNN_POINTWISE_RELU_FWD     ? " relu"
            : step.added->count() == c.result.count() ? " array"
                                                      : " bias";
  return text;
}

Object& object_of(cudnnBackendDescriptor_t descriptor) { return *static_cast<Object*>(descriptor); }

cudnnStatus_t copy_out(const void* from, std::int64_t count, std::size_t bytes, std::int64_t most,
                       std::int64_t* found, void* into) {
  *found = count;
  std::memcpy(into, from, std::size_t(std::min(count, most)) * bytes);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_proposals(const Object& heuristic, std::int64_t most, std::int64_t* count,
                             void* into) {
  const Object* graph = heuristic.one<Object*>(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  if (graph->has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) ==
      heuristic.has(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP))
    return bad("a heuristic's device");
  const std::vector<int> engines =
      proposed(Graph(*graph), heuristic.one<int>(CUDNN_ATTR_ENGINEHEUR_MODE));
  *count = std::int64_t(engines.size());
  for (std::int64_t i = 0; i < std::min(*count, most); ++i) {
    Object& configuration = object_of(static_cast<cudnnBackendDescriptor_t*>(into)[i]);
    if (configuration.kind != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR) return bad("no configuration");
    configuration.engine = engines[std::size_t(i)];
    configuration.graph = graph;
    configuration.is_finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

STANDIN_EXPORT std::size_t cudnnGetVersion() { return 91900; }
STANDIN_EXPORT const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
      return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
STANDIN_EXPORT void cudnnGetLastErrorString(char* message, std::size_t most) {
  if (most == 0) return;
  const std::size_t count = std::min(most - 1, said.size());
  std::memcpy(message, said.data(), count);
  message[count] = '\0';
  said.clear();
}
STANDIN_EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (const auto asked = asked_to_fail("cudnnCreate")) return *asked;
  const int device = standin_current_device();
  if (device < 0) return refuse(CUDNN_STATUS_NOT_INITIALIZED, "no device is current");
  *handle = new cudnnContext{device, nullptr};
  ++num_handles;
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, CUstream stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(int kind,
                                                          cudnnBackendDescriptor_t* descriptor) {
  auto* made = new Object(kind);
  const std::lock_guard lock(mutex);
  alive().insert(made);
  *descriptor = made;
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  {
    const std::lock_guard lock(mutex);
    if (alive().erase(static_cast<const Object*>(descriptor)) == 0) return CUDNN_STATUS_BAD_PARAM;
  }
  delete static_cast<Object*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                      int attribute, int type, std::int64_t count,
                                                      const void* values) {
  Object& object = object_of(descriptor);
  if (object.is_finalized) return bad("a descriptor that is finalized");
  const std::optional<Known> found = find_known(object.kind, attribute);
  const bool is_wide_scale = found && found->type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE;
  if (!found || (found->type != type && !is_wide_scale) || count < 1 || values == nullptr)
    return bad("attribute " + std::to_string(attribute) + " of descriptor " +
               std::to_string(object.kind));
  const char* const bytes = static_cast<const char*>(values);
  Object::Value value{type, count, {bytes, bytes + std::size_t(count) * bytes_of(type)}};
  if (!object.values.emplace(attribute, std::move(value)).second)
    return bad("attribute " + std::to_string(attribute) + " is set twice");
  return CUDNN_STATUS_SUCCESS;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Object& object = object_of(descriptor);
  if (object.is_finalized) return bad("a descriptor that is finalized");
  if (object.kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    if (const auto asked = asked_to_fail("plan")) return *asked;
  const cudnnStatus_t status = check_object(object);
  object.is_finalized = status == CUDNN_STATUS_SUCCESS;
  return status;
}
STANDIN_EXPORT cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                                      int attribute, int type, std::int64_t most,
                                                      std::int64_t* count, void* values) {
  const Object& object = object_of(descriptor);
  if (!object.is_finalized) return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "it is asked of");
  if (attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    return give_proposals(object, most, count, values);
  if (attribute == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    Object& engine = object_of(*static_cast<cudnnBackendDescriptor_t*>(values));
    engine.engine = object.engine;
    engine.graph = object.graph;
    engine.is_finalized = true;
    *count = 1;
    return CUDNN_STATUS_SUCCESS;
  }
  if (attribute == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
    const std::vector<int> notes = notes_of(object.engine, Graph(*object.graph));
    return copy_out(notes.data(), std::int64_t(notes.size()), sizeof(int), most, count, values);
  }
  const std::int64_t number = object.engine;
  if (attribute == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64)
    return copy_out(&number, 1, sizeof number, most, count, values);
  if (attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64)
    return copy_out(&object.workspace, 1, sizeof object.workspace, most, count, values);
  return bad("attribute " + std::to_string(attribute) + " is asked for");
}

STANDIN_EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle,
                                                 cudnnBackendDescriptor_t descriptor,
                                                 cudnnBackendDescriptor_t pack) {
  if (const auto asked = asked_to_fail("cudnnBackendExecute")) return *asked;
  const Object &plan = object_of(descriptor), &given = object_of(pack);
  if (handle == nullptr || handle->device != standin_current_device())
    return refuse(CUDNN_STATUS_NOT_INITIALIZED, "another device is current");
  if (!plan.is_finalized || !given.is_finalized || !is_alive(plan.graph))
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "a plan or its memory");
  const Numbers numbers = given.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto data = given.all<std::uint64_t>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  Call call{Graph(*plan.graph),
            plan.engine,
            handle->device,
            {},
            given.one<std::uint64_t>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE),
            plan.workspace};
  if (numbers.size() != data.size()) return bad("the number of tensors");
  for (std::size_t i = 0; i < data.size(); ++i) call.addresses.emplace(numbers[i], data[i]);
  const std::vector<Tensor> tensors = call.graph.in_memory();
  if (tensors.size() != call.addresses.size()) return bad("the number of tensors");
  const std::int64_t written = call.graph.written().number;
  for (const Tensor& tensor : tensors) {
    const auto at = call.addresses.find(tensor.number);
    if (at == call.addresses.end() || at->second == 0) return bad("a tensor without memory");
    if (at->second % std::uint64_t(tensor.alignment) != 0) return bad("memory that is not aligned");
    if (tensor.number != written && at->second == call.addresses.at(written))
      return bad("a result that is an operand");
  }
  {
    const std::lock_guard lock(mutex);
    last_graph = text_of(call.graph);
  }
  ++num_graphs;
  return standin_submit(handle->stream, [call] { call.run(); }) == CUDA_SUCCESS
             ? CUDNN_STATUS_SUCCESS
             : refuse(CUDNN_STATUS_EXECUTION_FAILED, "the stream takes nothing");
}

STANDIN_EXPORT long standin_graphs() { return num_graphs; }
STANDIN_EXPORT long standin_handles() { return num_handles; }
STANDIN_EXPORT const char* standin_last_graph() {
  static thread_local std::string shown;
  const std::lock_guard lock(mutex);
  shown = last_graph;
  return shown.c_str();
}
STANDIN_EXPORT void standin_fail_cudnn(const char* call, int status) {
  const std::lock_guard lock(mutex);
  failing_call = call == nullptr ? "" : call;
  failing_status = status;
}
STANDIN_EXPORT void standin_set_fused(bool are_taken) { is_fused = are_taken; }
STANDIN_EXPORT void standin_set_proposals(bool are_there) { are_proposed = are_there; }
