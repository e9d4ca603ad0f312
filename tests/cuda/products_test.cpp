// Products of matrices on CUDA devices (backends/cuda/cublaslt), on the stand-ins: what reaches the
// library, and that it gives what the CPU gives.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/driver.h>
#include <plait/base/transfer.h>
#include <plait/inspect/tolerance.h>
#include <plait/plait.h>
#include <plait/trace/devices.h>

#include <dlfcn.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include "../problem.h"
#include "compared.h"
#include "libcublaslt.h"
#include "loaded.h"
#include "own_process.h"

using namespace plait;
using plait::cuda::compared;
using plait::cuda::first_device;
using plait::cuda::has;
using plait::cuda::in_own_process;
using plait::cuda::loaded;
using plait::cuda::numbers;
using plait::cuda::open_stand_in;

namespace {

struct Library {
#define STANDIN_MEMBER(name, result, ...) result (*name)(__VA_ARGS__);
  STANDIN_CUBLASLT_CONTROLS(STANDIN_MEMBER)
#undef STANDIN_MEMBER
};

const Library& library() {
  static const Library all = [] {
    void* const handle = open_stand_in("libcublasLt.so.13");
    Library found;
#define STANDIN_FIND(name, ...) \
  found.name = reinterpret_cast<decltype(found.name)>(dlsym(handle, #name));
    STANDIN_CUBLASLT_CONTROLS(STANDIN_FIND)
#undef STANDIN_FIND
    return found;
  }();
  return all;
}

struct Run {
  std::string product, steps;  // the last one that the library started; what explain says
  long num_products = 0;
};

// Runs a function on the device, and compares with the CPU.
Run run(const std::function<Array(std::span<const Array>)>& f, const Arrays& inputs) {
  long before = 0;  // compilation may try what the library does
  std::string steps = compared(f, inputs, [&] { before = library().standin_products(); });
  return {library().standin_last_product(), std::move(steps),
          library().standin_products() - before};
}

// One product, and no step beside it.
void check_one(const Run& run, const std::string& product) {
  CAPTURE(run.steps);
  CHECK(run.num_products == 1);
  CHECK(run.product == product);
  CHECK(!has(run.steps, "   1  "));
}

const DType reals[] = {DType::float32, DType::bfloat16, DType::float16};

}  // namespace

TEST_CASE("products reach cuBLASLt in every dtype that it has") {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32, DType::float64,
                            DType::complex64, DType::complex128}) {
    CAPTURE(name_of(dtype));
    const Arrays inputs{numbers({40, 64}, dtype), numbers({64, 24}, dtype)};
    check_one(run([](auto in) { return numpy::matmul(in[0], in[1]); }, inputs), "NN 24x40x64");
  }
  const auto widened = [](auto in) {
    return lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}}, DType::float32);
  };
  for (const DType dtype : {DType::float16, DType::bfloat16})
    check_one(run(widened, {numbers({40, 64}, dtype), numbers({64, 24}, dtype)}), "NN 24x40x64");
}

TEST_CASE("products of int8 as int32 are exact, in the one layout that the library has") {
  const auto f = [](auto in) {
    return lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}}, DType::int32);
  };
  const auto eighths = [](const Shape& shape) { return numbers(shape, DType::int8); };
  check_one(run(f, {eighths({40, 64}), eighths({64, 24})}), "TN 24x40x64");
  CHECK(has(run(f, {eighths({40, 64}), eighths({64, 24})}).steps, "copies rhs"));
  CHECK(has(run(f, {eighths({40, 63}), eighths({63, 24})}).steps, "int8 that does not fill words"));
}

TEST_CASE("operands are read where they lie") {
  const DType dtype = DType::float32;
  const auto transposed = [](auto in) {
    return numpy::matmul(numpy::transpose(in[0]), numpy::transpose(in[1]));
  };
  check_one(run(transposed, {numbers({64, 40}, dtype), numbers({24, 64}, dtype)}), "TT 24x40x64");
  const auto product = [](auto in) { return numpy::matmul(in[0], in[1]); };
  check_one(run(product, {numbers({2, 3, 40, 64}, dtype), numbers({2, 3, 64, 24}, dtype)}),
            "NN 24x40x64 batch 6");
  check_one(run(product, {numbers({2, 40, 64}, dtype), numbers({64, 24}, dtype)}), "NN 24x80x64");
  // The gradient of a dense layer's weights: two axes of examples are one.
  const auto weights = [](auto in) {
    return lax::dot_general(in[0], in[1], {{0, 1}, {0, 1}, {}, {}});
  };
  check_one(run(weights, {numbers({3, 40, 32}, dtype), numbers({3, 40, 48}, dtype)}),
            "NT 48x32x120");
  // One matrix for all examples.
  const auto shared = [](auto in) {
    const std::vector<int> dims{1, 2};
    return numpy::matmul(in[0], lax::broadcast_in_dim(in[1], {2, 64, 24}, dims));
  };
  const Run repeated = run(shared, {numbers({2, 40, 64}, dtype), numbers({64, 24}, dtype)});
  check_one(repeated, "NN 24x40x64 batch 2");
  CHECK(!has(repeated.steps, "copies"));
}

TEST_CASE("operands whose axes do not merge are copied") {
  const auto scores = [](auto in) {
    return lax::dot_general(in[0], in[1], {{3}, {3}, {0, 2}, {0, 2}});
  };
  const Arrays inputs{numbers({2, 40, 3, 64}, DType::float32),
                      numbers({2, 24, 3, 64}, DType::float32)};
  const Run copied = run(scores, inputs);
  check_one(copied, "TN 24x40x64 batch 6");
  CHECK(has(copied.steps, "copies lhs, copies rhs"));
}

TEST_CASE("memory that is not aligned has algorithms of its own") {
  for (const DType dtype : reals) {
    const auto f = [](auto in) {
      return numpy::matmul(lax::slice(in[0], {1, 3}, {41, 64}),
                           lax::slice(in[1], {3, 0}, {64, 24}));
    };
    check_one(run(f, {numbers({41, 64}, dtype), numbers({64, 24}, dtype)}), "NN 24x40x61");
  }
  const auto eighths = [](auto in) {
    return lax::dot_general(lax::slice(in[0], {0, 1}, {40, 65}), in[1], {{1}, {1}, {}, {}},
                            DType::int32);
  };
  check_one(run(eighths, {numbers({40, 68}, DType::int8), numbers({24, 64}, DType::int8)}),
            "TN 24x40x64");
}

TEST_CASE("what follows a product is its epilogue") {
  for (const DType dtype : reals) {
    CAPTURE(name_of(dtype));
    const Array x = numbers({40, 64}, dtype), w = numbers({64, 24}, dtype),
                b = numbers({24}, dtype), y = numbers({40, 24}, dtype);
    check_one(run([](auto in) { return numpy::matmul(in[0], in[1]) + in[2]; }, {x, w, b}),
              "NN 24x40x64 bias");
    check_one(run([](auto in) { return nn::relu(numpy::matmul(in[0], in[1]) + in[2]); }, {x, w, b}),
              "NN 24x40x64 bias relu");
    check_one(run([](auto in) { return numpy::maximum(numpy::matmul(in[0], in[1]), 0); }, {x, w}),
              "NN 24x40x64 relu");
    check_one(run([](auto in) { return in[2] + numpy::matmul(in[0], in[1]); }, {x, w, y}),
              "NN 24x40x64 adds");
    check_one(run([](auto in) { return numpy::matmul(in[0], in[1]) * 0.125 + in[2] + in[3]; },
                  {x, w, y, b}),
              "NN 24x40x64 bias adds");
    check_one(run([](auto in) { return numpy::matmul(in[0], in[1]) + in[2]; },
                  {numbers({3, 40, 64}, dtype), numbers({3, 64, 24}, dtype), b}),
              "NN 24x40x64 batch 3 bias");
  }
  for (const DType dtype : {DType::float64, DType::complex64})
    check_one(run([](auto in) { return in[2] + numpy::matmul(in[0], in[1]); },
                  {numbers({40, 64}, dtype), numbers({64, 24}, dtype), numbers({40, 24}, dtype)}),
              "NN 24x40x64 adds");
}

TEST_CASE("gelu is an epilogue of 16-bit floats, which are rounded once") {
  const auto f = [](auto in) { return nn::gelu(numpy::matmul(in[0], in[1]) + in[2]); };
  for (const DType dtype : {DType::bfloat16, DType::float16})
    check_one(run(f, {numbers({40, 64}, dtype), numbers({64, 24}, dtype), numbers({24}, dtype)}),
              "NN 24x40x64 bias gelu");
  const Run apart = run(f, {numbers({40, 64}, DType::float32), numbers({64, 24}, DType::float32),
                            numbers({24}, DType::float32)});
  CHECK(apart.product == "NN 24x40x64 bias");
  CHECK(has(apart.steps, "tanh"));
}

TEST_CASE("what is read elsewhere too is no epilogue") {
  const auto f = [](auto in) {
    const Array product = numpy::matmul(in[0], in[1]);
    return numpy::maximum(product, 0) * numpy::sin(product);
  };
  const Run apart = run(f, {numbers({40, 64}, DType::float32), numbers({64, 24}, DType::float32)});
  CHECK(apart.product == "NN 24x40x64");
}

TEST_CASE("epilogues that the library does not take run behind the product") {
  library().standin_set_epilogues(false);
  const Array x = numbers({41, 64}, DType::float32), w = numbers({64, 24}, DType::float32),
              b = numbers({24}, DType::float32), y = numbers({41, 24}, DType::float32);
  const Run apart =
      run([](auto in) { return nn::relu(numpy::matmul(in[0], in[1]) * 0.5 + in[2] + in[3]); },
          {x, w, y, b});
  library().standin_set_epilogues(true);
  check_one(apart, "NN 24x41x64");
  CHECK(has(apart.steps, "then one kernel"));
}

TEST_CASE("NaN stays through the relu of a product") {
  Arrays inputs{numbers({40, 64}, DType::float32), numbers({64, 24}, DType::float32)};
  Buffer with_nan = Buffer::copy_of(inputs[0].buffer().view());
  static_cast<float*>(with_nan.mutable_data())[5] = NAN;
  inputs[0] = Array(with_nan);
  check_one(run([](auto in) { return nn::relu(numpy::matmul(in[0], in[1])); }, inputs),
            "NN 24x40x64 relu");
}

TEST_CASE("small products are left to loops") {
  const Run small = run([](auto in) { return numpy::matmul(in[0], in[1]); },
                        {numbers({4, 5}, DType::float32), numbers({5, 6}, DType::float32)});
  CHECK(small.num_products == 0);
  CHECK(has(small.steps, "small: 120 products"));
}

TEST_CASE("a product that cannot be started says why") {
  const Array x = device_put(numbers({40, 64}, DType::float32), first_device()),
              w = device_put(numbers({64, 24}, DType::float32), first_device());
  (void)numpy::matmul(x, w);
  loaded().standin_fail_call("standin_submit", 1, plait::cuda::CUDA_ERROR_OUT_OF_MEMORY);
  const std::string said = problem([&] { (void)numpy::matmul(x, w); });
  loaded().standin_fail_call(nullptr, 0, 0);
  CHECK(said == "cuBLASLt cannot start a product: CUBLAS_STATUS_EXECUTION_FAILED");
}

TEST_CASE("a loop whose products the library refuses is a kernel, and not the host's") {
  const auto steps_of = [](std::int64_t rows) {
    const Function looped = [](std::span<const Array> in) {
      const Array w = in[1];
      const Function step = [&](std::span<const Array> i_and_h) {
        return Arrays{lax::tanh(numpy::matmul(i_and_h[1], w))};
      };
      return flat::fori_loop(Array(0), Array(40), step, in.first(1));
    };
    const std::vector<Aval> avals{{{rows, 256}, DType::float32}, {{256, 256}, DType::float32}};
    return compile(make_jaxpr(looped, avals).jaxpr, {.device = first_device()})->explain();
  };
  const std::string reason = "a library computes the products of its steps";
  CHECK(has(steps_of(33), reason));
  library().standin_refuse_rows(34);
  const std::string refused = steps_of(34);
  library().standin_refuse_rows(0);
  CAPTURE(refused);
  CHECK(!has(refused, reason));
  CHECK(has(refused, "scan  [one kernel"));
}

TEST_CASE("the fastest of the algorithms that are proposed is kept, in this process and the next") {
  const auto chosen = [](std::vector<int> microseconds) {
    library().standin_plant_algorithms(microseconds.data(), int(microseconds.size()));
    const DType dtype = DType::bfloat16;
    const Run made = run([](auto in) { return numpy::matmul(in[0], in[1]); },
                         {numbers({48, 80}, dtype), numbers({80, 56}, dtype)});
    CHECK(made.num_products == 1);
    const int which = library().standin_last_algorithm();
    const int none = 0;
    library().standin_plant_algorithms(&none, 1);
    return which;
  };
  if (!plait::cuda::is_in_own_process()) {
    char folder[] = "/tmp/plait_choices_XXXXXX";
    REQUIRE(mkdtemp(folder) != nullptr);
    for (const auto& [order, measures] : {std::pair("unmeasured", "0"), std::pair("measured", "1"),
                                          std::pair("kept", "1"), std::pair("unmeasured", "0")})
      CHECK(in_own_process("products_test.cpp", "*in this process and the next",
                           {{"PLAIT_CACHE_DIR", folder},
                            {"PLAIT_MEASURE", measures},
                            {"STANDIN_SEED", "0"},
                            {"TEST_ORDER", order}}) == 0);
    std::filesystem::remove_all(folder);
    return;
  }
  const std::string order = std::getenv("TEST_ORDER");
  if (order == "unmeasured") {
    CHECK(chosen({20000, 20000, 0, 20000}) == 0);
  } else if (order == "measured") {
    CHECK(chosen({20000, 20000, 0, 20000}) == 2);
    CHECK(chosen({20000, 0, 20000, 20000}) == 2);  // once in a process
  } else {
    CHECK(chosen({20000, 0, 20000, 20000}) == 2);  // as the process before
  }
}

TEST_CASE("products are captured, and replayed with what memory holds then") {
  const auto f = [](std::span<const Array> in) {
    return Arrays{numpy::matmul(in[0], in[1]) + in[2]};
  };
  const DType dtype = DType::float32;
  const Arrays inputs{numbers({40, 64}, dtype), numbers({64, 24}, dtype), numbers({40, 24}, dtype)};
  std::vector<Aval> avals;
  for (const Array& input : inputs) avals.push_back(input.aval());
  const Jaxpr program = make_jaxpr(f, avals).jaxpr;
  const std::unique_ptr<Kernel> kernel =
      find_backend("cublaslt")->compile(program, {first_device(), {}});
  REQUIRE(kernel->is_capturable());

  const Stream stream = Stream::make(first_device());
  std::vector<Buffer> there;
  std::vector<View> operands;
  for (const Array& input : inputs) {
    there.push_back(Buffer::empty(dtype, input.buffer().shape(), stream));
    operands.push_back(there.back().placed());
  }
  const Buffer result = Buffer::empty(dtype, {40, 24}, stream);
  const Storage scratch = Storage::allocate(std::size_t(kernel->scratch_bytes()), stream);
  const auto handle = reinterpret_cast<plait::cuda::CUstream>(
      std::uintptr_t(*driver_of(first_device().kind)->foreign_number(stream.handle())));

  const plait::cuda::OnDevice current;
  plait::cuda::CUgraph graph = nullptr;
  plait::cuda::CUgraphExec exec = nullptr;
  REQUIRE(loaded().cuStreamBeginCapture(handle, plait::cuda::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) ==
          plait::cuda::CUDA_SUCCESS);
  kernel->enqueue(operands, {&result.placed(), 1}, scratch.data(), {stream});
  REQUIRE(loaded().cuStreamEndCapture(handle, &graph) == plait::cuda::CUDA_SUCCESS);
  REQUIRE(loaded().cuGraphInstantiateWithFlags(&exec, graph, 0) == plait::cuda::CUDA_SUCCESS);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    upload(inputs[i].buffer().view(), operands[i], stream);
  REQUIRE(loaded().cuGraphLaunch(exec, handle) == plait::cuda::CUDA_SUCCESS);
  const Buffer given = Buffer::empty(dtype, {40, 24});
  download(result.placed(), given.view(), stream);
  const std::vector<double> ours = Array(given).to_vector<double>(),
                            theirs = f(inputs)[0].to_vector<double>();
  for (std::size_t i = 0; i < ours.size(); ++i)
    CHECK(std::abs(ours[i] - theirs[i]) <=
          laws::tolerance_of(dtype).value * (1 + std::abs(theirs[i])));
  loaded().cuGraphExecDestroy(exec);
  loaded().cuGraphDestroy(graph);
}
