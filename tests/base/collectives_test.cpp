// Sums over ranks: fixed bits, whatever arrives first; and what happens where messages are lost, or
// ranks disagree. Ranks are threads here; tests/mpi has those of MPI.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/primitives/primitives.h>
#include <plait/trace/array.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/collectives.h"
#include "problem.h"
#include "thread_ranks.h"

using namespace plait;

namespace {

const std::vector<std::string> no_problems(std::size_t n) { return std::vector<std::string>(n); }

// Numbers whose sum depends on the order.
std::vector<float> numbers_of(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank));
  std::vector<float> numbers(count);
  for (float& number : numbers) number = std::normal_distribution<float>(0, 1e3f)(random);
  return numbers;
}

float written_sum(std::vector<float> x) {  // in pairs of neighbours, by recursion from the top
  if (x.size() == 1) return x[0];
  const std::size_t half = std::bit_ceil(x.size()) / 2;
  const std::vector<float> left(x.begin(), x.begin() + std::ptrdiff_t(half)),
      right(x.begin() + std::ptrdiff_t(half), x.end());
  return written_sum(left) + written_sum(right);
}

}  // namespace

TEST_CASE("a sum over ranks is one in pairs of neighbours, on every rank, whatever arrives first") {
  for (const int n : {1, 2, 3, 5, 8, 11})
    for (const std::size_t count : {1, 1000, 30000}) {
      Wires wires;
      wires.random.seed(unsigned(n) + unsigned(count));
      wires.percent_delayed = 70;
      std::vector<float> wanted(count);
      std::vector<std::vector<float>> all;
      for (int rank = 0; rank < n; ++rank) all.push_back(numbers_of(rank, count));
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<float> column;
        for (const auto& one : all) column.push_back(one[i]);
        wanted[i] = written_sum(column);
      }
      std::vector<std::vector<float>> results(static_cast<std::size_t>(n));
      const auto problems = on_ranks(wires, n, [&](Communicator& communicator, const Ranks& ranks) {
        std::vector<float>& out = results[std::size_t(communicator.rank())];
        out = all[std::size_t(communicator.rank())];
        all_reduce(communicator, ranks, Combination::sum, DType::float32, out.data(), out.data(),
                   std::int64_t(count), "psum");
      });
      CHECK(problems == no_problems(std::size_t(n)));
      for (const auto& result : results) CHECK(result == wanted);
    }
}

TEST_CASE("a pair of a sum over ranks has the bits of the primitive, for every dtype") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = HUGE_VALF;
  const std::vector<float> xs = {1.5f, -0.0f, nan, inf, 3e4f, 6e4f, -7.25f, 1e-8f, 100, 127};
  const std::vector<float> ys = {2.5f, 0.0f, 1, -inf, 2e4f, 6e4f, 7.25f, 3e-8f, 100, nan};
  for (int i = 0; i < num_computing_dtypes; ++i) {
    const DType dtype = DType(i);
    const std::size_t count = is_floating(dtype) || is_complex(dtype) ? xs.size() : 1;
    const auto array_of = [&](const std::vector<float>& from) {
      Buffer buffer = Buffer::empty(DType::float32, {std::int64_t(count)});
      std::copy_n(from.begin(), count, static_cast<float*>(buffer.mutable_data()));
      return Array(lax::convert_element_type(Array(buffer), dtype));
    };
    const Array x = array_of(xs), y = array_of(ys);
    const auto check = [&](Combination by, const Array& wanted) {
      const std::vector<const void*> arrays = {x.buffer().data(), y.buffer().data()};
      const std::size_t size = count * std::size_t(size_of(dtype));
      std::vector<char> out(size);
      combine_in_tree(by, dtype, arrays, out.data(), std::int64_t(count));
      INFO(name_of(dtype));
      CHECK(std::memcmp(out.data(), wanted.buffer().data(), size) == 0);
    };
    if (dtype != DType::bool_) check(Combination::sum, lax::add(x, y));
    if (is_complex(dtype)) continue;
    check(Combination::max, lax::max(x, y));
    check(Combination::min, lax::min(x, y));
  }
  CHECK(problem([] { check_combination(Combination::sum, DType::bool_); }) ==
        "a sum over ranks cannot be taken of bool");
  CHECK(problem([] { check_combination(Combination::max, DType::complex64); }) ==
        "a largest or smallest over ranks cannot be taken of complex64");
  Source::forget_line();  // the primitives have remembered lines of this file
}

TEST_CASE("reduce_scatter gives each rank of a group its block, and groups do not meet") {
  Wires wires;
  wires.percent_delayed = 50;
  const auto problems = on_ranks(wires, 6, [&](Communicator& communicator, const Ranks&) {
    const int mine = communicator.rank();
    const Ranks group = mine % 2 == 0 ? Ranks{4, 0, 2} : Ranks{1, 3, 5};
    for (int turn = 0; turn < 20; ++turn) {
      const std::vector<std::int32_t> in = {mine, mine * 10, mine * 100, mine, turn, 1};
      std::vector<std::int32_t> out(2);
      reduce_scatter(communicator, group, Combination::max, DType::int32, in.data(), out.data(), 2,
                     "psum_scatter");
      const int most = mine % 2 == 0 ? 4 : 5;
      const std::vector<std::vector<std::int32_t>> wanted = {
          {most, most * 10}, {most * 100, most}, {turn, 1}};
      if (out != wanted[std::size_t(communicator.place_in(group))])
        throw ValueError("another block", "");
    }
  });
  CHECK(problems == no_problems(6));
}

TEST_CASE("ranks that are about to do different things all say so, with the names of all") {
  Wires wires;
  wires.percent_delayed = 50;
  const auto problems = on_ranks(wires, 4, [&](Communicator& communicator, const Ranks& ranks) {
    agree(communicator, ranks, 7, "psum at train.py:1");
    const bool is_odd = communicator.rank() == 2;
    agree(communicator, ranks, is_odd ? 9 : 8, is_odd ? "pmax at b.py:3" : "psum at train.py:2");
  });
  for (const std::string& text : problems)
    CHECK(text ==
          "the ranks of a job are about to do different things:\n"
          "  ranks 0, 1 and 3: psum at train.py:2 (call 1, program 8)\n"
          "  rank 2: pmax at b.py:3 (call 1, program 9)");
}

TEST_CASE("a message that is lost ends the wait for it, by its deadline") {
  for (int lost = 0; lost < 24; lost += 5) {
    Wires wires;
    wires.drop_message = lost;
    wires.percent_delayed = 30;
    wires.deadline = std::chrono::milliseconds(100);
    const auto problems = on_ranks(wires, 4, [&](Communicator& communicator, const Ranks& ranks) {
      std::vector<float> numbers(30000, 1);
      all_reduce(communicator, ranks, Combination::sum, DType::float32, numbers.data(),
                 numbers.data(), 30000, "psum at train.py:7");
    });
    bool is_told = false;
    for (const std::string& text : problems)
      is_told = is_told || text.find("waits in psum at train.py:7 for rank ") != std::string::npos;
    CHECK(is_told);
  }
}

TEST_CASE("ranks whose programs diverge do not take each other's bytes") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Wires wires;
    wires.deadline = std::chrono::milliseconds(60);
    wires.random.seed(seed);
    const auto problems = on_ranks(wires, 3, [&](Communicator& communicator, const Ranks& ranks) {
      std::mt19937 random(seed);
      const unsigned odd_step = unsigned(random() % 5), change = seed % 3;
      for (unsigned step = 0; step < 5; ++step) {
        const bool is_odd = step == odd_step && communicator.rank() == int(seed % 3);
        std::int64_t count = 1 + std::int64_t(random() % 20000);
        if (is_odd && change == 0) continue;
        if (is_odd && change == 1) ++count;
        std::vector<float> numbers(std::size_t(count), 1);
        all_reduce(communicator, ranks, is_odd && change == 2 ? Combination::max : Combination::sum,
                   DType::float32, numbers.data(), numbers.data(), count, "a collective");
        if (numbers[0] != 3 || numbers.back() != 3) throw ValueError("wrong bytes", "");
      }
    });
    bool is_error = false;
    for (const std::string& text : problems) {
      CHECK(text != "wrong bytes");
      is_error = is_error || !text.empty();
    }
    CHECK(is_error);
  }
}

TEST_CASE("a process without a launcher is alone, and a rank that takes no part is told") {
  CHECK(communicator() == nullptr);
  Wires wires;
  const auto problems = on_ranks(wires, 2, [](Communicator& communicator, const Ranks&) {
    float x = 1;
    if (communicator.rank() == 1)
      all_reduce(communicator, {0}, Combination::sum, DType::float32, &x, &x, 1, "psum");
  });
  CHECK(problems[1] == "rank 1 takes no part in this group of ranks");
}
