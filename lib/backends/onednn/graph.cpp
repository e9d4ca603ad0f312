// The engine, the streams and compiled partitions. See graph.h.
// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

namespace plait::onednn {

// Never destroyed: kernels may outlive main.
const dnnl::engine& engine() {
  static const dnnl::engine& engine = *new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A stream serves one thread.
dnnl::stream& stream() {
  static thread_local dnnl::stream stream(engine());
  return stream;
}

// oneDNN's default attributes are an object that exit destroys; these are not destroyed.
dnnl::reorder reorder_of(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  return dnnl::reorder(
      dnnl::reorder::primitive_desc(engine(), from, engine(), to, dnnl::primitive_attr()));
}

void throw_failed(const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory)
    throw MemoryError("oneDNN could not allocate its scratch memory",
                      "work on smaller pieces, or drop arrays that are no longer needed");
  throw BackendError(std::string("oneDNN failed: ") + error.what(),
                     "set ONEDNN_VERBOSE=all to see why");
}

namespace {

// Tensors of the Graph are float32.
Tensor tensor_of(std::size_t id, const TensorSpec& spec) {
  return {id, Tensor::data_type::f32, spec.dims, spec.strides};
}

}  // namespace

dnnl::memory::data_type element_of(DType dtype) {
  using Type = dnnl::memory::data_type;
  return dtype == DType::bfloat16 ? Type::bf16 : dtype == DType::float16 ? Type::f16 : Type::f32;
}

bool has_type(DType dtype) {
  const auto isa = dnnl::get_effective_cpu_isa();
  auto has = [isa](dnnl::cpu_isa wanted) {
    return (unsigned(isa) & unsigned(wanted)) == unsigned(wanted);
  };
  if (dtype == DType::bfloat16) return has(dnnl::cpu_isa::avx512_core_bf16);
  if (dtype == DType::float16) return has(dnnl::cpu_isa::avx512_core_fp16);
  return dtype == DType::float32;
}

std::shared_ptr<const Compiled> Compiled::make(std::span<const TensorSpec> inputs,
                                               const TensorSpec& output, std::int64_t work,
                                               const Build& build) {
  const int max_threads = work <= narrow_work ? 1 : num_threads();
  const Entered entered(max_threads);
  if (entered.use.is_refused()) return nullptr;
  try {
    auto compiled = std::make_shared<Compiled>();
    compiled->max_threads_ = max_threads;
    for (const TensorSpec& spec : inputs)
      compiled->inputs_.push_back(tensor_of(compiled->inputs_.size(), spec));
    compiled->output_ = tensor_of(inputs.size(), output);
    dnnl::graph::graph graph(dnnl::engine::kind::cpu);
    build(graph, compiled->inputs_, compiled->output_);
    graph.finalize();
    const auto partitions = graph.get_partitions(dnnl::graph::partition::policy::fusion);
    if (partitions.size() != 1 || !partitions[0].is_supported()) {
      log_line("onednn: no partition for an equation; the reference runs it");
      return nullptr;
    }
    compiled->partition_ = partitions[0].compile(compiled->inputs_, {compiled->output_}, engine());
    return compiled;
  } catch (const std::exception& error) {  // a std::future_error on a second refusal
    log_line(std::string("onednn: ") + error.what() + "; the reference runs the equation");
    return nullptr;
  }
}

void Compiled::run(std::span<void* const> inputs, void* output) const {
  const Entered entered(max_threads_);
  entered.use.stop_if_refused();
  std::vector<dnnl::graph::tensor> sources;
  sources.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    sources.emplace_back(inputs_[i], engine(), inputs[i]);
  try {
    partition_.execute(stream(), sources, {dnnl::graph::tensor(output_, engine(), output)});
    stream().wait();
  } catch (const dnnl::error& error) {
    throw_failed(error);
  }
}

}  // namespace plait::onednn
