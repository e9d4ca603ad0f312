// The evaluator: what bind does when nothing is traced. An equation runs on the backend and the
// kernel that jit would choose for it alone. A call runs its compiled body.
//
// Each thread caches how equations run, so that the usual elementwise operation costs a look-up,
// one allocation and one loop.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/stack.h>
#include <plait/compile/compile.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/bodies.h>
#include <plait/rules/inline.h>
#include <plait/rules/interpret.h>
#include <plait/rules/share.h>
#include <plait/trace/concrete.h>
#include <plait/trace/devices.h>
#include <plait/trace/equation_cache.h>
#include <plait/trace/run_into.h>

#include "compile/carriers.h"
#include "compile/executable_of.h"
#include "compile/places.h"
#include "compile/several_devices.h"

namespace plait {
namespace {

constexpr std::size_t few_inputs = 3;
// Elements of a loop that is called directly. Longer ones go through run_pointwise, whose own cost
// they hide, and which may use several threads.
constexpr std::int64_t serial_limit = 32768;

const Buffer& buffer_of(const Array& array) {
  return static_cast<const ConcreteNode*>(array.node())->buffer;
}

// How an equation runs on inputs of these avals.
struct Prepared : TypedEquation {
  using TypedEquation::TypedEquation;
  std::vector<Aval> outputs;
  std::vector<Sizes64> shapes;  // of the outputs
  bool is_identity = false;
  const Alias::Rule* alias = nullptr;
  const Share::Rule* share = nullptr;
  std::optional<Device> target;                  // of device_put
  Chunk chunk;                                   // its loop, if elementwise on the reference
  std::shared_ptr<const Kernel> kernel;          // otherwise
  std::shared_ptr<const Executable> executable;  // of a decomposition
};

Jaxpr single_equation(const Primitive& primitive, std::span<const Aval> inputs,
                      const Params& params) {
  Builder builder;
  std::vector<Atom> atoms;
  for (const Aval& aval : inputs) atoms.push_back(builder.add_binder(aval));
  // Without a source line: it is cached for calls from other lines.
  const std::vector<Var> outputs = builder.add(primitive, std::move(atoms), params, {});
  return builder.close({outputs.begin(), outputs.end()});
}

// A named size has no value outside its program.
void require_numbers(const std::vector<Aval>& avals) {
  for (const Aval& aval : avals)
    for (Dim dim : aval.shape)
      if (!dim.is_constant())
        throw TracerError(
            "the size " + dim.to_string() + " of an array of type " + aval.to_string() +
                " has no value outside the program that names it",
            "use it inside the function whose spec names it, or give numbers with instantiate");
}

Prepared prepare(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
  Prepared prepared(primitive, inputs, params);
  // First, so that identities are checked like everything else.
  prepared.outputs = infer(primitive, prepared.inputs, params);
  require_numbers(prepared.outputs);
  const Identity::Rule* identity = Identity::table().find(primitive);
  prepared.is_identity = identity && (*identity)(prepared.inputs, params);
  if (prepared.is_identity) return prepared;
  // A loop is compiled as a program: equations may leave it, and it has tiers.
  if (has_loop_body({&primitive, {}, params, {}, {}}) ||
      (!Eval::table().find(primitive) && Decompose::table().find(primitive))) {
    prepared.executable = compile(single_equation(primitive, prepared.inputs, params));
    return prepared;
  }
  for (const Aval& aval : prepared.outputs)
    prepared.shapes.push_back(in_memory(aval).shape.to_sizes());
  if (primitive == device_put_p && !params.text("device").empty())
    prepared.target = Device::named(params.text("device"));
  prepared.alias =
      inputs.size() == prepared.outputs.size() ? Alias::table().find(primitive) : nullptr;
  prepared.share = inputs.size() == 1 ? Share::table().find(primitive) : nullptr;
  const Jaxpr typed = single_equation(primitive, prepared.inputs, params);
  const Jaxpr alone = compile_passes::with_carriers(compile_passes::with_places(typed));
  // Nothing is to run, or an element's carrier, or a program of carriers.
  if (alone->equations.size() != 1) {
    prepared.executable = compile(typed);
    return prepared;
  }
  const std::vector<Aval> carried(alone->avals.begin(), alone->avals.begin() + alone->num_binders),
      made = alone->output_avals();
  for (const Backend* backend : backends_of()) {
    if (!backend->runs_eagerly() || !backend->supports(alone->equations[0], carried, made, {}))
      continue;
    const Pointwise::Rule* pointwise = Pointwise::table().find(primitive);
    if (pointwise && backend->runs_pointwise_loops() && inputs.size() <= 4) {
      std::vector<DType> dtypes;
      for (const Aval& aval : carried) dtypes.push_back(aval.dtype);
      prepared.chunk = (*pointwise)(dtypes, alone->equations[0].params);
    }
    if (!prepared.chunk.loop) prepared.kernel = backend->compile(alone, {});
    break;
  }
  if (!prepared.chunk.loop && !prepared.kernel) throw_missing_rule(Eval::table(), primitive);
  return prepared;
}

Buffer empty_buffer(const Aval& aval, const Sizes64& shape) {
  if (aval.stack == 0) return Buffer::empty(carrier_of(aval.dtype), shape);
  const Storage storage = allocate_handle();
  return Buffer(storage, View{storage.data(), in_memory(aval).dtype, shape, dense_strides(shape)});
}

InlineVector<const Buffer*, 16> buffers_of(std::span<const Array> arrays) {
  InlineVector<const Buffer*, 16> buffers;
  buffers.reserve(arrays.size());
  for (const Array& array : arrays) buffers.push_back(&buffer_of(array));
  return buffers;
}

Arrays run_executable(const Executable& executable, std::span<const Array> inputs) {
  const InlineVector<const Buffer*, 16> buffers = buffers_of(inputs);
  const std::vector<Aval>& avals = executable.outputs();
  Arrays results;
  results.reserve(avals.size());
  if (avals.size() == 1) {
    Buffer output;
    executable.run(buffers, {&output, 1});
    results.push_back(make_concrete(avals[0], std::move(output)));
    return results;
  }
  std::vector<Buffer> outputs(avals.size());
  executable.run(buffers, outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.push_back(make_concrete(avals[i], std::move(outputs[i])));
  return results;
}

Arrays run_pointwise_now(const Prepared& prepared, std::span<const Array> inputs) {
  const Aval& aval = prepared.outputs[0];
  Buffer result = Buffer::empty(carrier_of(aval.dtype), prepared.shapes[0]);
  const std::int64_t n = num_elements(prepared.shapes[0]);
  const void* sources[4];
  bool direct = n <= serial_limit;
  for (std::size_t i = 0; direct && i < inputs.size(); ++i) {
    const Buffer& buffer = buffer_of(inputs[i]);
    sources[i] = buffer.data();
    direct = (n == 1 || inputs[i].ndim() > 0) && buffer.view().is_dense();
  }
  if (direct) {
    prepared.chunk.loop(sources, result.mutable_data(), n, prepared.chunk.argument);
  } else {
    View views[4];
    for (std::size_t i = 0; i < inputs.size(); ++i) views[i] = buffer_of(inputs[i]).view();
    run_pointwise(prepared.chunk, {views, inputs.size()}, result.view());
  }
  Arrays results;
  results.push_back(make_concrete(aval, std::move(result)));
  return results;
}

Storage scratch_of(const Kernel& kernel) {
  const std::int64_t bytes = kernel.scratch_bytes();
  return bytes > 0 ? Storage::allocate(std::size_t(bytes)) : Storage();
}

// The common case: one result of few operands.
Arrays run_kernel_now(const Prepared& prepared, std::span<const Array> inputs) {
  View sources[few_inputs];
  for (std::size_t i = 0; i < inputs.size(); ++i) sources[i] = buffer_of(inputs[i]).view();
  Buffer result = empty_buffer(prepared.outputs[0], prepared.shapes[0]);
  const Storage scratch = scratch_of(*prepared.kernel);
  prepared.kernel->enqueue({sources, inputs.size()}, {&result.view(), 1}, scratch.data(), Launch{});
  Arrays results;
  results.push_back(make_concrete(prepared.outputs[0], std::move(result)));
  return results;
}

// Views of the operand's memory.
Arrays share_now(const Prepared& prepared, const Array& operand) {
  const Buffer& buffer = buffer_of(operand);
  const std::vector<View> views =
      (*prepared.share)(buffer.view(), prepared.shapes, prepared.params);
  Arrays results;
  results.reserve(views.size());
  for (std::size_t i = 0; i < views.size(); ++i)
    results.push_back(make_concrete(prepared.outputs[i], Buffer(buffer.storage(), views[i])));
  return results;
}

Arrays run(const Prepared& prepared, std::span<const Array> inputs) {
  if (prepared.is_identity) return {inputs[0]};
  if (prepared.share) return share_now(prepared, inputs[0]);
  if (prepared.executable) return run_executable(*prepared.executable, inputs);
  if (prepared.chunk.loop) return run_pointwise_now(prepared, inputs);
  Arrays results;
  results.reserve(prepared.outputs.size());
  if (prepared.alias) {
    if (prepared.target) return {moved_to(inputs[0], *prepared.target)};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Buffer& input = buffer_of(inputs[i]);
      const std::optional<View> view =
          (*prepared.alias)(input.view(), prepared.shapes[i], prepared.params);
      if (!view) break;
      const std::int64_t offset =
          static_cast<char*>(view->data) - static_cast<char*>(input.view().data);
      results.push_back(
          make_concrete(prepared.outputs[i], input.view_as(view->shape, view->strides, offset)));
    }
    if (results.size() == inputs.size()) return results;
    results.clear();
  }
  if (inputs.size() <= few_inputs && prepared.outputs.size() == 1)
    return run_kernel_now(prepared, inputs);
  std::vector<View> sources, targets;
  std::vector<Buffer> buffers;
  sources.reserve(inputs.size());
  for (const Array& input : inputs) sources.push_back(buffer_of(input).view());
  for (std::size_t i = 0; i < prepared.outputs.size(); ++i) {
    buffers.push_back(empty_buffer(prepared.outputs[i], prepared.shapes[i]));
    targets.push_back(buffers.back().view());
  }
  const Storage scratch = scratch_of(*prepared.kernel);
  prepared.kernel->enqueue(sources, targets, scratch.data(), Launch{});
  for (std::size_t i = 0; i < buffers.size(); ++i)
    results.push_back(make_concrete(prepared.outputs[i], std::move(buffers[i])));
  return results;
}

Arrays moved(std::span<const Array> inputs, Device device) {
  Arrays arrays;
  arrays.reserve(inputs.size());
  for (const Array& input : inputs) {
    const Buffer& buffer = buffer_of(input);
    arrays.push_back(buffer.device() == device || input.aval().stack > 0
                         ? input
                         : make_concrete(input.aval(), buffer.on(device)));
  }
  return arrays;
}

// Operations on a device are programs of one equation there.
Arrays evaluate_on(Device device, const Primitive& primitive, std::span<const Array> inputs,
                   const Params& params) {
  struct Prepared : TypedEquation {
    using TypedEquation::TypedEquation;
    Device device;
    std::shared_ptr<const Executable> executable;
  };
  const Arrays arrays = moved(inputs, device);
  const Inline::Rule* inlining = Inline::table().find(primitive);
  if (inlining && inlining->when != Inline::When::unclaimed)
    return run_executable(*executable_of(open_body(params), device), arrays);
  static thread_local EquationCache<std::unique_ptr<Prepared>> cache;
  std::unique_ptr<Prepared>& place = cache.place_of(primitive, arrays, params);
  if (place && place->device == device && place->is(primitive, arrays, params))
    return run_executable(*place->executable, arrays);
  Prepared prepared(primitive, arrays, params);
  require_numbers(infer(primitive, prepared.inputs, params));
  prepared.device = device;
  prepared.executable =
      compile(single_equation(primitive, prepared.inputs, params), {.device = device});
  if (holds_callable(params)) return run_executable(*prepared.executable, arrays);
  place = std::make_unique<Prepared>(std::move(prepared));
  return run_executable(*place->executable, arrays);
}

// A call whose body puts values elsewhere may have operands there: its derivative has what it keeps
// of them. None, where all operands lie on one device.
std::optional<Arrays> evaluate_on_several(const Primitive& primitive, std::span<const Array> inputs,
                                          const Params& params) {
  const Inline::Rule* inlining = Inline::table().find(primitive);
  if (!inlining || inlining->when == Inline::When::unclaimed) return {};
  std::optional<Device> first;
  bool are_several = false;
  std::vector<Device> devices;
  for (const Array& input : inputs) {
    const Buffer& buffer = buffer_of(input);
    devices.push_back(buffer.device());
    if (buffer.is_free() || input.aval().stack > 0) continue;
    are_several |= first && *first != buffer.device();
    if (!first) first = buffer.device();
  }
  if (!are_several) return {};
  const Jaxpr body = open_body(params);
  if (!puts_values(body)) return {};
  return run_executable(*compile(body, {.device = *first, .input_devices = std::move(devices)}),
                        inputs);
}

Arrays evaluate_here(const Primitive& primitive, std::span<const Array> inputs,
                     const Params& params) {
  // A call that a backend may claim is prepared like any other equation.
  const Inline::Rule* inlining = Inline::table().find(primitive);
  if (inlining && inlining->when != Inline::When::unclaimed)
    return run_executable(*executable_of(open_body(params)), inputs);
  static thread_local EquationCache<std::unique_ptr<Prepared>> cache;
  std::unique_ptr<Prepared>& place = cache.place_of(primitive, inputs, params);
  if (place && place->is(primitive, inputs, params)) return run(*place, inputs);
  Prepared prepared = prepare(primitive, inputs, params);
  if (holds_callable(params)) return run(prepared, inputs);
  place = std::make_unique<Prepared>(std::move(prepared));
  return run(*place, inputs);
}

Arrays evaluate(const Primitive& primitive, std::span<const Array> inputs, const Params& params) {
  Whereabouts where;
  for (const Array& input : inputs) where.add(buffer_of(input));
  if (where.are_plain()) [[likely]]
    return evaluate_here(primitive, inputs, params);
  if (primitive == device_put_p) {
    const std::string& target = params.text("device");
    return {target.empty() ? inputs[0] : moved_to(inputs[0], Device::named(target))};
  }
  if (std::optional<Arrays> results = evaluate_on_several(primitive, inputs, params))
    return *std::move(results);
  const bool is_simple = where.are_on_host() && DeviceScope::current().is_host();
  const Device device = is_simple ? Device() : common_device(primitive.name(), inputs);
  Arrays results = is_simple          ? evaluate_here(primitive, inputs, params)
                   : device.is_host() ? evaluate_here(primitive, moved(inputs, device), params)
                                      : evaluate_on(device, primitive, inputs, params);
  if (where.are_free()) set_free(results);  // so are they
  return results;
}

void evaluate_into(const Jaxpr& program, std::span<const Array> inputs,
                   std::span<const Array> outputs) {
  Arrays all(inputs.begin(), inputs.end());
  all.insert(all.end(), outputs.begin(), outputs.end());
  const Device device = common_device("run_into", all);
  const Arrays arrays = moved(inputs, device);
  executable_of(program, device)->run_into(buffers_of(arrays), buffers_of(outputs));
}

const bool installed = (set_evaluator(evaluate), set_evaluator_into(evaluate_into), true);

}  // namespace
}  // namespace plait
