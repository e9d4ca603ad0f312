// bench_files: what saved programs cost, in lines "name value": nanoseconds of printing an equation
// and of parsing and checking it, in programs of 10,000 and of 200,000; milliseconds of writing and
// reading a model of 100 MB beside plain safetensors, and from a mapped file to the first call's
// trace.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <plait/functions/numpy.h>
#include <plait/plait.h>
#include <plait/program/program.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "right.h"

using namespace plait;

namespace {

// The best of several rounds, by a clock: of the process where nothing waits for a disk.
template <class F>
double milliseconds(int rounds, const F& f, clockid_t clock = CLOCK_MONOTONIC) {
  const auto now = [clock] {
    timespec time;
    clock_gettime(clock, &time);
    return double(time.tv_sec) * 1e3 + double(time.tv_nsec) * 1e-6;
  };
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double start = now();
    f();
    best = std::min(best, now() - start);
  }
  return best;
}

// Equations of several kinds, as programs have them.
Array network(Array x, const Array& w, const Array& b, int layers) {
  for (int i = 0; i < layers; ++i) {
    const Array h = numpy::matmul(x, w) + b;
    x = x + numpy::tanh(h) * 0.5 - numpy::max(h, 1, true);
  }
  return x;
}

Jaxpr chain(int layers) {
  const Array x = numpy::ones({8, 32}), w = numpy::ones({32, 32}), b = numpy::ones({32});
  return make_jaxpr([&](const Array& x, const Array& w,
                        const Array& b) -> Array { return network(x, w, b, layers); },
                    x, w, b)
      .jaxpr;
}

void texts() {
  // The small one first: what large ones leave behind makes memory slower to get.
  const Jaxpr small = chain(1000), large = chain(20000);
  const auto each = [](const Jaxpr& jaxpr, int rounds, const auto& f) {
    return milliseconds(rounds, f, CLOCK_PROCESS_CPUTIME_ID) * 1e6 /
           double(jaxpr->equations.size());  // ns
  };
  std::string text;
  text = print(small);
  require(parse(text) == small, "a program read from its text is another one");
  require(parse(print(large)) == large, "a long program read from its text is another one");
  std::printf("parse_ns %.1f\n", each(small, 30, [&] { parse(text); }));
  text = print(small, ShowSources::yes);
  std::printf("parse_lines_ns %.1f\n", each(small, 30, [&] { parse(text); }));
  std::printf("print_ns %.1f\n", each(large, 5, [&] { text = print(large); }));
  std::printf("parse_large_ns %.1f\n", each(large, 5, [&] { parse(text); }));
}

std::string place(const char* name) {
  return (std::filesystem::temp_directory_path() / ("plait_bench_" + std::to_string(getpid())))
             .string() +
         name;
}

// The least that a reader and a writer of safetensors do: a header, and the bytes.
void write_plain(const std::string& path, const std::vector<Buffer>& arrays) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const char header[72] = {64};
  if (write(file, header, sizeof header) < 0) std::abort();
  for (const Buffer& array : arrays)
    if (write(file, array.data(), std::size_t(array.bytes())) != array.bytes()) std::abort();
  close(file);
}
void read_plain(const std::string& path, std::vector<Buffer>& arrays) {
  const int file = open(path.c_str(), O_RDONLY);
  char header[72];
  if (read(file, header, sizeof header) < 0) std::abort();
  for (Buffer& array : arrays) {
    Buffer fresh = Buffer::empty(array.dtype(), array.shape());
    if (read(file, fresh.view().data, std::size_t(array.bytes())) != array.bytes()) std::abort();
    array = fresh;
  }
  close(file);
}

void model() {
  constexpr int layers = 25, width = 1024;  // of 4 MB
  std::vector<Buffer> buffers;
  Arrays weights;
  for (int i = 0; i < layers; ++i) {
    Buffer buffer = Buffer::empty(DType::float32, {width, width});
    for (std::int64_t e = 0; e < width * width; ++e)
      static_cast<float*>(buffer.mutable_data())[e] = float((e * 7919 + i) % 1000) * 1e-4f;
    buffers.push_back(buffer);
    weights.push_back(Array(buffer));
  }
  auto f = [weights](const Array& x) {
    Array y = x;
    for (const Array& w : weights) y = numpy::tanh(numpy::matmul(y, w));
    return y;
  };
  const Array x = numpy::ones({1, width});
  const TracedFunction function = traced(f, x);
  const std::string plain = place(".safetensors"), saved = place(".plait");
  std::printf("plain_write_ms %.2f\n", milliseconds(5, [&] { write_plain(plain, buffers); }));
  std::printf("save_ms %.2f\n",
              milliseconds(5, [&] { save(saved, {{"f", function}}, {.test_vectors = false}); }));
  const Array expected = f(x), given = load(saved).entry<Array(Array)>()(x);
  for (std::int64_t e = 0; e < width; e += 97)
    require_near(static_cast<const float*>(given.buffer().dense().data())[e],
                 static_cast<const float*>(expected.buffer().dense().data())[e], 1e-5,
                 "a result of the saved program");
  require(std::abs(static_cast<const float*>(expected.buffer().dense().data())[0]) > 1e-3,
          "the model gives nothing");
  std::printf("plain_read_ms %.2f\n", milliseconds(5, [&] { read_plain(plain, buffers); }));
  std::printf("load_ms %.2f\n", milliseconds(5, [&] { load(saved, {.map_memory = false}); }));
  std::printf("map_ms %.2f\n", milliseconds(5, [&] {
                const auto loaded = load(saved).entry<Array(Array)>();
                make_jaxpr(loaded, x);
              }));
  std::filesystem::remove(plain);
  std::filesystem::remove(saved);
}

}  // namespace

int main() {
  texts();
  model();
}
