// Executables: fusion, the arena, memory that is taken over, calls from many threads, errors.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cstring>
#include <thread>

using namespace plait;

namespace {

Jaxpr program_of(const std::function<Arrays(std::span<const Array>)>& f, std::vector<Aval> avals) {
  return make_jaxpr(f, avals).jaxpr;
}

Array ramp(const Shape& shape, DType dtype = DType::float32) {
  return lax::reshape(lax::sin(lax::iota(dtype, {shape.num_elements()}, 0) * 0.7), shape);
}

bool same_bits(const Buffer& a, const Buffer& b) {
  const Buffer x = a.dense(), y = b.dense();
  return x.dtype() == y.dtype() && x.shape() == y.shape() &&
         std::memcmp(x.data(), y.data(), std::size_t(x.bytes())) == 0;
}

// jit gives what eager evaluation gives, to the bit.
void check_same(const Function& f, const Arrays& inputs) {
  std::vector<Aval> avals;
  std::vector<Buffer> buffers;
  for (const Array& input : inputs)
    avals.push_back(input.aval()), buffers.push_back(input.buffer());
  const Arrays eager = f(inputs);
  const auto executable = compile(program_of(f, avals));
  for (int call = 0; call < 2; ++call) {
    const std::vector<Buffer> results = executable->run(buffers);
    REQUIRE(results.size() == eager.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      CHECK(same_bits(results[i], eager[i].buffer()));
  }
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++found;
  return found;
}

}  // namespace

TEST_CASE("elementwise equations of one shape become one step, whatever feeds them") {
  const std::vector<int> swap{1, 0}, row{1};
  const Function f = [=](std::span<const Array> in) {
    const Array bias = lax::broadcast_in_dim(in[1], in[0].shape(), row);
    const Array a = lax::tanh(lax::add(in[0], bias)), b = lax::mul(a, lax::transpose(in[2], swap));
    return Arrays{lax::sub(b, lax::mul(a, Array::literal(0.5, DType::float32))), a};
  };
  const Arrays inputs{ramp({130, 260}), ramp({260}), ramp({260, 130})};
  check_same(f, inputs);
  const std::string table =
      compile(program_of(f, {inputs[0].aval(), inputs[1].aval(), inputs[2].aval()}))->explain();
  CAPTURE(table);
  CHECK(count(table, "fused: ") == 1);
  CHECK(table.find("\n   1") == std::string::npos);
}

TEST_CASE("what its own group reads twice through one view is written for others too") {
  const std::vector<int> last{1}, rows{0};
  check_same(
      [=](std::span<const Array> in) {
        const Array sum = lax::reduce_sum(in[0], last);
        const Array seen = lax::broadcast_in_dim(sum, in[0].shape(), rows);
        return Arrays{lax::add(lax::mul(in[0], seen), seen), sum};
      },
      {ramp({40, 70})});
}

TEST_CASE("a square result that is read transposed is not fused with its reader") {
  const std::vector<int> swap{1, 0};
  check_same(
      [=](std::span<const Array> in) {
        const Array a = lax::tanh(in[0]);
        return Arrays{lax::add(a, lax::transpose(a, swap))};
      },
      {ramp({70, 70})});
}

TEST_CASE("equations around a reduction fuse without a cycle") {
  const std::vector<int> last{1}, first{0};
  check_same(
      [=](std::span<const Array> in) {
        const Array e = lax::exp(in[0]);
        const Array total = lax::reduce_sum(e, last);
        const Array p = lax::div(e, lax::broadcast_in_dim(total, e.shape(), first));
        return Arrays{lax::mul(p, lax::sub(e, in[0])), total};
      },
      {ramp({33, 65})});
}

TEST_CASE("many dtypes and many live values in one step") {
  check_same(
      [](std::span<const Array> in) {
        Arrays terms;
        for (int i = 0; i < 60; ++i)
          terms.push_back(lax::sin(lax::mul(in[0], Array::literal(0.01 * i, DType::float32))));
        Array total = terms[0];
        for (int i = 59; i > 0; --i)
          total = lax::add(total, lax::select(lax::gt(terms[i], terms[i / 2]), terms[i], total));
        const Array wide = lax::convert_element_type(total, DType::float64);
        return Arrays{total, lax::exp(wide), lax::convert_element_type(wide, DType::int8),
                      lax::gt(wide, Array::literal(0.0, DType::float64))};
      },
      {ramp({1000})});
}

TEST_CASE("scalars, empty arrays, literals and inputs as outputs") {
  check_same(
      [](std::span<const Array> in) {
        return Arrays{lax::add(in[0], Array::literal(1, DType::float32)), in[0],
                      Array::literal(3, DType::int32), lax::exp(in[1]),
                      lax::reduce_sum(in[1], std::vector<int>{0})};
      },
      {ramp({}), ramp({0, 3})});
}

TEST_CASE("dead values leave the arena to later ones") {
  const Function f = [](std::span<const Array> in) {
    Array x = in[0];
    for (int i = 0; i < 10; ++i) x = lax::sort(x);
    return Arrays{x};
  };
  const Aval aval{{1024}, DType::float32};
  CHECK(compile(program_of(f, {aval}))->arena_bytes() == 2 * 4096);
}

TEST_CASE("elementwise steps write over their dying operands") {
  const Function f = [](std::span<const Array> in) {
    Array x = lax::sort(in[0]);
    for (int i = 0; i < 3; ++i) x = lax::sort(lax::sin(x));
    return Arrays{x};
  };
  const Aval aval{{1024}, DType::float32};
  CHECK(compile(program_of(f, {aval}))->arena_bytes() == 2 * 4096);
}

TEST_CASE("a donated input that nobody else holds becomes an output") {
  const Function f = [](std::span<const Array> in) { return Arrays{lax::add(in[0], in[1])}; };
  const Aval aval{{256}, DType::float32};
  const auto executable = compile(program_of(f, {aval, aval}), {.donate = {true, false}});
  Buffer x = Buffer::copy_of(ramp({256}).buffer().view());
  const Buffer y = ramp({256}).buffer();
  const Buffer* inputs[] = {&x, &y};
  Buffer output;
  const void* memory = x.data();
  executable->run(inputs, std::span<Buffer>(&output, 1));
  CHECK(output.data() == memory);
  const Buffer held = x = Buffer::copy_of(y.view());
  executable->run(inputs, std::span<Buffer>(&output, 1));
  CHECK(output.data() != x.data());
}

TEST_CASE("strided inputs give the same bits") {
  const std::vector<int> swap{1, 0};
  const Array x = lax::transpose(ramp({40, 50}), swap);
  check_same(
      [](std::span<const Array> in) {
        return Arrays{lax::tanh(in[0]), lax::dot_general(in[0], in[0], {{0}, {0}, {}, {}})};
      },
      {x});
}

TEST_CASE("one executable is called from many threads at once") {
  const Function f = [](std::span<const Array> in) {
    const Array h = lax::tanh(lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}}));
    return Arrays{lax::dot_general(h, in[1], {{1}, {1}, {}, {}})};
  };
  const Array x = ramp({64, 96}), w = ramp({96, 80});
  const auto executable = compile(program_of(f, {x.aval(), w.aval()}));
  const std::vector<Buffer> inputs{x.buffer(), w.buffer()};
  const Buffer expected = executable->run(inputs)[0];
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) wrong += !same_bits(executable->run(inputs)[0], expected);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("an index error passes through, and the executable runs again") {
  const Function f = [](std::span<const Array> in) {
    return Arrays{lax::gather(in[0], in[1], lax::IndexDimensions{{0}, {0}, 0}, {1},
                              lax::GatherScatterMode::check)};
  };
  const Array x = ramp({4});
  auto index = [](std::int64_t value) {
    return lax::reshape(
        lax::convert_element_type(Array(value), DType::int32) + lax::iota(DType::int32, {1}, 0),
        {1, 1});
  };
  const auto executable = compile(program_of(f, {x.aval(), index(0).aval()}));
  CHECK_THROWS_AS(executable->run(std::vector<Buffer>{x.buffer(), index(9).buffer()}), IndexError);
  CHECK(same_bits(executable->run(std::vector<Buffer>{x.buffer(), index(2).buffer()})[0],
                  f(std::vector<Array>{x, index(2)})[0].buffer()));
}

TEST_CASE("a program is compiled once") {
  const Jaxpr program =
      program_of([](std::span<const Array> in) { return Arrays{lax::sin(in[0])}; },
                 {Aval{{3}, DType::float32}});
  CHECK(compile(program) == compile(program));
  CHECK(compile(program, {.donate = {true}}) != compile(program));
}
