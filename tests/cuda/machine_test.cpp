// Kernels on the machine of fibers (on_cpu): right ones give the right numbers in every order of
// their threads, and wrong ones are found out, whatever numbers they give.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "loaded.h"

using namespace plait::cuda;

namespace {

const std::string begin = "#include \"plait/kernel.h\"\n";

// The text with one thing changed, which makes it wrong.
std::string mutant(std::string text, const std::string& was, const std::string& is) {
  const std::size_t at = text.find(was);
  REQUIRE_MESSAGE(at != std::string::npos, was);
  return text.replace(at, was.size(), is);
}

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

struct Found {
  std::vector<float> values;  // empty: there was an error
  std::string error;
};
// kernel(In<float> input, Out<float> output, Grid* zeros, int n), of the text.
Found run(const std::string& text, const Sizes& sizes, const std::vector<float>& input,
          std::size_t num_outputs, unsigned seed, int n = -1) {
  OnDevice on;
  loaded().standin_set_seed(seed);
  const Module module(begin + text);
  const CUdeviceptr from = on.upload(input), to = on.allocate(num_outputs * sizeof(float)),
                    zeros = on.upload(std::vector<int>(4));
  loaded().cuMemsetD8Async(to, 0, num_outputs * sizeof(float), on.stream);
  CHECK(launch(on, module["kernel"], sizes, from, to, zeros, n < 0 ? int(input.size()) : n) ==
        CUDA_SUCCESS);
  Found found;
  found.values = on.download<float>(to, num_outputs);
  found.error = loaded().standin_last_error();
  CHECK(found.values.empty() == !found.error.empty());
  return found;
}

void check_right(const std::string& text, const Sizes& sizes, const std::vector<float>& input,
                 const std::vector<float>& expected) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    const Found found = run(text, sizes, input, expected.size(), seed);
    CHECK(found.error == "");
    CHECK(found.values == expected);
  }
}

// With every seed.
void check_wrong(const std::string& text, const Sizes& sizes, const std::vector<float>& input,
                 std::size_t num_outputs, const std::string& error, int n = -1) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    CAPTURE(seed);
    const std::string found = run(text, sizes, input, num_outputs, seed, n).error;
    CAPTURE(found);
    CHECK(found.find(error) != std::string::npos);
    CHECK(found.find("kernel kernel, block ") == 0);
  }
}

const std::string twice = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  const long i = long(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  m1[i] = m0[i] * 2;
})";

const std::string block_sum = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  SHARED(float, s0, 256);
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += m0[i];
  s0[threadIdx.x] = sum;
  __syncthreads();  // first
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) s0[threadIdx.x] += s0[threadIdx.x + half];
    __syncthreads();  // in the loop
  }
  if (threadIdx.x == 0) m1[blockIdx.x] = s0[0];
})";

// Eight lanes make each sum; a warp has some without work.
const std::string octet_sum = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8, lane = threadIdx.x % 8;
  if (row >= n / 8) return;
  const unsigned mask = 0xffu << (threadIdx.x & 24u);
  float sum = m0[row * 8 + lane];
  for (int half = 4; half > 0; half /= 2) sum += __shfl_down_sync(mask, sum, half, 8);
  if (lane == 0) m1[row] = sum;
})";

const std::string atomic_sum = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&m1[0], m0[i]);
})";

// Octets meet, each for itself, before their warp does.
const std::string warp_of_octets = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  SHARED(float, first, 64);
  SHARED(float, second, 64);
  const int i = threadIdx.x;
  first[i] = m0[i];
  __syncwarp(0xffu << (i & 24u));
  second[i] = first[i ^ 7];
  __syncwarp();
  m1[i] = second[i ^ 31];
})";

// Each block takes what its neighbour left.
const std::string grid_rotation = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  m1[i] = m0[i];
  sync_grid(grid);  // first
  const float next = m1[(i + blockDim.x) % n];
  sync_grid(grid);  // second
  m1[i] = next;
})";

// The block that comes last adds what all have left.
const std::string last_block = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  SHARED(int, is_last, 1);
  if (threadIdx.x == 0) {
    m1[1 + blockIdx.x] = m0[blockIdx.x];
    __threadfence();  // before
    is_last[0] = atomicAdd(on_cpu::Pointer<unsigned>{(unsigned long)grid}, 1u) == gridDim.x - 1;
    __threadfence();  // after
  }
  __syncthreads();
  if (is_last[0] == 0 || threadIdx.x != 0) return;
  float sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += m1[1 + i];
  m1[0] = sum;
})";

const std::string dynamic = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  SHARED_BYTES(bytes);
  const auto s0 = (Out<float>)bytes;
  s0[threadIdx.x] = m0[threadIdx.x];
  __syncthreads();
  m1[threadIdx.x] = s0[blockDim.x - 1 - threadIdx.x];
})";

const std::string fours = R"(
extern "C" __global__ void kernel(In<float> m0, Out<float> m1, Grid* grid, int n) {
  Four<float> four = load4(m0, 4 * threadIdx.x);
  for (float& x : four.at) x += 1;
  store4(m1, 4 * threadIdx.x, four);
})";

std::vector<float> doubled(std::size_t count) {
  std::vector<float> values = ramp(count);
  for (float& x : values) x *= 2;
  return values;
}

}  // namespace

TEST_CASE("elementwise kernels") {
  const Sizes sizes{4, 256};
  check_right(twice, sizes, ramp(1000), doubled(1000));
  const auto wrong = [&](const std::string& was, const std::string& is, const std::string& error) {
    check_wrong(mutant(twice, was, is), sizes, ramp(1000), 1000, error);
  };
  wrong("if (i >= n) return;", "", "bytes behind a block of 4000 bytes");
  wrong("i >= n", "i > n", "0 bytes behind a block of 4000 bytes");
  wrong("m0[i]", "m0[i - 1]", "4 bytes before a block of 4000 bytes");
  wrong("m1[i] =", "m1[i / 2] =", "a race: writes 4 bytes");
  wrong("m0[i] * 2", "m1[i == 0 ? n - 1 : i - 1]", "a race");
  wrong("m0[i] * 2", "*(Out<float>{m1.address + 2})", "which is not aligned to 4");
  wrong("m0[i] * 2", "*(In<float>{(unsigned long)&n})", "which is no address of this device");
  wrong("m1[i] = m0[i] * 2", "m1[i] = 1; m1[i] = In<float>{m1.address}[i]", "through In<T>");
}

TEST_CASE("what is written through In does not compile") {
  std::string log;
  CHECK(compiled(begin + mutant(twice, "m1[i] =", "m0[i] ="), &log).empty());
  CHECK(log.find("kernels.cu:6") != std::string::npos);
}

TEST_CASE("blocks that meet") {
  const Sizes sizes{3, 256};
  const float sum = 1000 * 1001 / 2;
  check_right(block_sum, sizes, ramp(1000), {sum, sum, sum});
  const auto wrong = [&](const std::string& was, const std::string& is, const std::string& error) {
    check_wrong(mutant(block_sum, was, is), sizes, ramp(1000), 3, error);
  };
  wrong("__syncthreads();  // first", "", "");
  wrong("__syncthreads();  // first", "__syncwarp();", "");
  wrong("__syncthreads();  // in the loop", "", "a race");
  wrong("blockDim.x / 2; half", "blockDim.x; half", "shared memory outside of s0: byte ");
  wrong("s0[threadIdx.x] = sum;", "if (threadIdx.x != 77) s0[threadIdx.x] = sum;",
        "shared memory that nobody has written, of s0: byte 308 of 1024");
  wrong("if (threadIdx.x < half) s0", "if (threadIdx.x <= half) s0", "");
  wrong("__syncthreads();  // first", "if (threadIdx.x != 3) __syncthreads();", "");
  wrong("if (threadIdx.x == 0) m1", "m1", "a race");
  check_wrong(mutant(block_sum, "256", "64 * 256"), sizes, ramp(1000), 3, "no room");
}

TEST_CASE("threads that have exited are not waited for") {
  const std::string text =
      mutant(block_sum, "SHARED(float", "if (threadIdx.x > 200) return;\n  SHARED(float");
  check_wrong(text, {1, 256}, ramp(1000), 1, "shared memory that nobody has written");
  const std::string early = mutant(mutant(block_sum, "__syncthreads();  // first",
                                          "__syncthreads(); if (threadIdx.x >= 128) return;"),
                                   "for (int half", "for (unsigned half");
  check_right(early, {1, 256}, ramp(256), {256 * 257 / 2});
}

TEST_CASE("octets of lanes") {
  const std::vector<float> expected = [] {
    std::vector<float> sums;
    for (int row = 0; row < 10; ++row) sums.push_back(float(64 * row + 36));
    return sums;
  }();
  const Sizes sizes{2, 64};
  check_right(octet_sum, sizes, ramp(80), expected);
  const auto wrong = [&](const std::string& was, const std::string& is, const std::string& error) {
    check_wrong(mutant(octet_sum, was, is), sizes, ramp(80), 10, error);
  };
  wrong("0xffu << (threadIdx.x & 24u)", "0xffu", "lacks its own lane");
  wrong("0xffu << (threadIdx.x & 24u)", "lane == 3 ? 0xffffffffu : 0xffu << (threadIdx.x & 24u)",
        "meets lanes");
  wrong("if (row >= n / 8) return;", "if (row >= n / 8 || lane == 5) return;", "which has exited");
  // Whoever is not in the mask has no number to give.
  const std::string halves =
      mutant(octet_sum, "0xffu << (threadIdx.x & 24u)", "0xfu << (threadIdx.x & 28u)");
  const Found found = run(halves, sizes, ramp(80), 10, 1);
  CHECK(found.error == "");
  CHECK(std::ranges::all_of(found.values, [](float x) { return x != x; }));
}

TEST_CASE("some lanes may meet while others wait for all of them") {
  std::vector<float> expected;
  for (int i = 0; i < 64; ++i) expected.push_back(ramp(64)[std::size_t(i ^ 24)]);
  check_right(warp_of_octets, {1, 64}, ramp(64), expected);
  const auto wrong = [&](const std::string& was, const std::string& error) {
    check_wrong(mutant(warp_of_octets, was, ""), {1, 64}, ramp(64), 64, error);
  };
  wrong("__syncwarp(0xffu << (i & 24u));", "");
  wrong("__syncwarp();", "");
  check_wrong(mutant(warp_of_octets, "__syncwarp();", "if (i != 9) __syncwarp();"), {1, 64},
              ramp(64), 64, "");
}

TEST_CASE("atomics") {
  check_right(atomic_sum, {4, 64}, ramp(1000), {1000 * 1001 / 2});
  check_wrong(mutant(atomic_sum, "atomicAdd(&m1[0], m0[i]);", "m1[0] += m0[i];"), {4, 64},
              ramp(1000), 1, "a race");
  check_wrong(mutant(atomic_sum, "atomicAdd(&m1[0], m0[i]);",
                     "atomicAdd(&m1[0], m0[i] + 0 * float(m1[0]));"),
              {4, 64}, ramp(1000), 1, "");
}

TEST_CASE("grids that meet") {
  const Sizes sizes{5, 32, 0, Together::yes};
  std::vector<float> expected = ramp(160);
  std::rotate(expected.begin(), expected.begin() + 32, expected.end());
  check_right(grid_rotation, sizes, ramp(160), expected);
  const auto wrong = [&](const std::string& was, const std::string& is, const std::string& error) {
    check_wrong(mutant(grid_rotation, was, is), sizes, ramp(160), 160, error);
  };
  wrong("sync_grid(grid);  // first", "", "a race");
  wrong("sync_grid(grid);  // second", "", "a race");
  wrong("sync_grid(grid);  // first", "__syncthreads();", "a race");
  wrong("sync_grid(grid);  // first", "if (blockIdx.x != 2) sync_grid(grid);", "");
  wrong("sync_grid(grid);  // first", "if (threadIdx.x == 0) return; sync_grid(grid);", "exited");
  check_wrong(grid_rotation, {5, 32}, ramp(160), 160, "needs a cooperative launch");
}

TEST_CASE("blocks that tell others by fences and atomics") {
  std::vector<float> expected = ramp(7);
  expected.insert(expected.begin(), 28.0f);
  check_right(last_block, {7, 32}, ramp(7), expected);
  check_wrong(mutant(last_block, "__threadfence();  // before", ""), {7, 32}, ramp(7), 8, "a race");
  check_wrong(mutant(last_block, "__threadfence();  // after", ""), {7, 32}, ramp(7), 8, "a race");
}

TEST_CASE("dynamic shared memory") {
  std::vector<float> expected = ramp(64);
  std::reverse(expected.begin(), expected.end());
  check_right(dynamic, {1, 64, 256}, ramp(64), expected);
  check_wrong(dynamic, {1, 64, 252}, ramp(64), 64, "byte 252 of 252");
  check_wrong(dynamic, {1, 64}, ramp(64), 64, "without dynamic shared memory");
}

TEST_CASE("four neighbours at once") {
  std::vector<float> expected = ramp(64);
  for (float& x : expected) x += 1;
  check_right(fours, {1, 16}, ramp(64), expected);
  check_wrong(mutant(fours, "load4(m0, 4 *", "load4(m0, 1 + 4 *"), {1, 16}, ramp(65), 64,
              "aligned to 16");
}

TEST_CASE("a kernel leaves word of the failure of the lowest order") {
  OnDevice on;
  const Module module(begin + R"(
extern "C" __global__ void kernel(Out<int> failed, Failure* failure, int step) {
  if (threadIdx.x >= 40) fail({failed, 1, failure, step}, 3, threadIdx.x, 100 - long(threadIdx.x));
})");
  struct Failure {
    int step, code;
    long values[7];
  };
  void* memory = nullptr;
  REQUIRE(loaded().cuMemHostAlloc(&memory, sizeof(Failure), 0) == CUDA_SUCCESS);
  auto* failure = new (memory) Failure{};
  const CUdeviceptr failed = on.upload(std::vector<int>(1));
  CHECK(launch(on, module["kernel"], {2, 64}, failed, failure, 7) == CUDA_SUCCESS);
  CHECK(loaded().cuStreamSynchronize(on.stream) == CUDA_SUCCESS);
  CHECK(failure->step == 7);
  CHECK(failure->code == 3);
  CHECK(failure->values[0] == 63);
  CHECK(loaded().cuMemFreeHost(memory) == CUDA_SUCCESS);
}

TEST_CASE("parameters, and what a launch may not be") {
  OnDevice on;
  const Module module(begin + R"(
extern "C" __global__ void __launch_bounds__(128) kernel(In<float> m0, int n, double x, bool b) {}
)");
  const CUfunction kernel = module["kernel"];
  std::size_t offset = 0, size = 0;
  const std::size_t offsets[] = {0, 8, 16, 24}, sizes[] = {8, 4, 8, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(loaded().cuFuncGetParamInfo(kernel, i, &offset, &size) == CUDA_SUCCESS);
    CHECK(offset == offsets[i]);
    CHECK(size == sizes[i]);
  }
  CHECK(loaded().cuFuncGetParamInfo(kernel, 4, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  const auto start = [&](const Sizes& sizes) {
    return launch(on, kernel, sizes, CUdeviceptr{0}, 1, 1.0, true);
  };
  CHECK(start({1, 128}) == CUDA_SUCCESS);
  CHECK(start({1, 129}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(start({0, 1}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(start({0x80000000, 1}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(start({1, 128, 49153}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(loaded().cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    227 << 10) == CUDA_SUCCESS);
  CHECK(start({1, 128, 227 << 10}) == CUDA_SUCCESS);
  CHECK(loaded().cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (227 << 10) + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(start({6 * 16 + 1, 128, 0, Together::yes}) == 720);
  CHECK(start({6 * 16, 128, 0, Together::yes}) == CUDA_SUCCESS);
}
