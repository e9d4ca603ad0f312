// The llvm backend against the reference, bit by bit: every elementwise primitive and dtype on
// every kind of value, random programs over memory of every layout, kernels that share threads,
// memory and time.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/compile/backend.h>
#include <plait/plait.h>
#include <plait/primitives/kernels.h>
#include <plait/primitives/primitives.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <thread>

#include "backend_here.h"

using namespace plait;

namespace {

// The backend is asked for before the first program of this process is compiled.
[[maybe_unused]] const bool asked =
    setenv("PLAIT_LLVM", "1", 0) == 0 && setenv("PLAIT_WAIT", "1", 0) == 0;

using Generator = std::mt19937_64;

// Half of them of moderate size, the others any bits at all: NaN, infinities, denormals, -0.
template <class T>
T any_value(Generator& generator) {
  const std::uint64_t bits = generator();
  if constexpr (std::is_same_v<T, bool>) {
    return bits >> 40 & 1;
  } else if constexpr (plait::detail::is_half<T>) {
    if (bits >> 63) return T(float(double(std::int64_t(bits << 1)) / 2e18));
    T value;
    value.bits = std::uint16_t(bits);
    return value;
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr T special[] = {0, -T(0), 1, -1, T(INFINITY), -T(INFINITY), T(NAN), T(0.5), T(1e-30)};
    if (bits >> 60 == 15) return special[bits % 9];
    if (bits >> 63) return T(double(std::int64_t(bits << 1)) / 1e18);
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return bits >> 63 ? T(bits % 7) : T(bits);
  }
}

Buffer any_values(DType dtype, const Sizes64& shape, unsigned seed) {
  Generator generator(seed);
  Buffer buffer = Buffer::empty(dtype, shape);
  visit_dtype(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (!is_complex_v<T>)
      for (std::int64_t i = 0; i < num_elements(shape); ++i)
        static_cast<T*>(buffer.mutable_data())[i] = any_value<T>(generator);
  });
  return buffer;
}

// The first number whose bits differ, all NaN being one; -1 for none. Complex ones are two numbers.
std::int64_t first_difference(const Buffer& a, const Buffer& b) {
  const DType dtype = real_dtype_of(a.dtype());
  const std::int64_t bytes = size_of(dtype), count = num_elements(a.shape()) * size_of(a.dtype());
  for (std::int64_t at = 0; at < count; at += bytes) {
    const char *x = static_cast<const char*>(a.data()) + at,
               *y = static_cast<const char*>(b.data()) + at;
    if (std::memcmp(x, y, std::size_t(bytes)) == 0) continue;
    const bool both_nan = visit_dtype(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_floating_point_v<plait::detail::Compute<T>>) {
        T p, q;
        std::memcpy(&p, x, sizeof p), std::memcpy(&q, y, sizeof q);
        const auto u = plait::detail::Compute<T>(p), v = plait::detail::Compute<T>(q);
        return u != u && v != v;
      } else {
        return false;
      }
    });
    if (!both_nan) return at / bytes;
  }
  return -1;
}

std::vector<Buffer> run_kernel(const Kernel& kernel, const Jaxpr& group,
                               std::span<const View> inputs) {
  std::vector<Buffer> results;
  std::vector<View> outputs;
  for (const Aval& aval : group->output_avals()) {
    results.push_back(Buffer::empty(aval.dtype, aval.shape.to_sizes()));
    outputs.push_back(results.back().view());
  }
  const Buffer scratch =
      Buffer::empty(DType::uint8, {std::max<std::int64_t>(1, kernel.scratch_bytes())});
  kernel.enqueue(inputs, outputs, scratch.view().data, {});
  return results;
}

std::unique_ptr<Kernel> compile_for(const Backend& backend, const Jaxpr& group,
                                    std::span<const View> inputs) {
  std::vector<Sizes64> strides;
  for (const View& view : inputs) strides.push_back(view.strides);
  return backend.compile(group, {{}, strides});
}

void check_same_bits(const Jaxpr& group, std::span<const View> inputs) {
  const auto ours = compile_for(*find_backend("llvm"), group, inputs);
  const auto reference = find_backend("reference")->compile(group, {});
  const std::vector<Buffer> mine = run_kernel(*ours, group, inputs);
  const std::vector<Buffer> expected = run_kernel(*reference, group, inputs);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::int64_t at = first_difference(mine[i], expected[i]);
    if (at < 0) continue;
    CAPTURE(print(group));
    CAPTURE(i);
    CAPTURE(at);
    auto bits = [at](const Buffer& buffer) {
      std::uint64_t value = 0;
      const std::int64_t bytes = size_of(real_dtype_of(buffer.dtype()));
      std::memcpy(&value, static_cast<const char*>(buffer.data()) + at * bytes, bytes);
      return value;
    };
    CAPTURE(bits(mine[i]));
    CAPTURE(bits(expected[i]));
    FAIL("results differ");
  }
}

Jaxpr one_equation(const Primitive& primitive, const std::vector<Aval>& avals,
                   const Params& params) {
  Builder builder;
  std::vector<Atom> atoms;
  for (const Aval& aval : avals) atoms.push_back(builder.add_binder(aval));
  const std::vector<Var> out = builder.add(primitive, atoms, params, {});
  return builder.close({out.begin(), out.end()});
}

}  // namespace

TEST_CASE("every elementwise primitive has the bits of the reference for every dtype" *
          needs_backend("llvm")) {
  const Backend& llvm = backend_here("llvm");
  int num_cases = 0;
  for (const PrimitiveInfo* info : all_primitives()) {
    const Primitive& primitive = *info->primitive;
    if (!Pointwise::table().find(primitive) || !Samples::table().find(primitive)) continue;
    for (const Sample& sample : rule<Samples>(primitive)())
      for (int d = 0; d < num_computing_dtypes; ++d) {
        std::vector<Aval> avals;
        std::vector<DType> dtypes;
        for (const Sample::Input& input : sample.inputs) {
          avals.push_back(input.aval);
          if (avals.back().dtype == DType::float64) avals.back().dtype = DType(d);
          if (avals.back().rank() > 0) avals.back().shape = Shape{1003};
          dtypes.push_back(avals.back().dtype);
        }
        std::vector<Aval> outputs;
        try {
          outputs = infer(primitive, avals, sample.params);
        } catch (const Error&) {
          continue;
        }
        if (primitive == integer_pow_p && is_integer(DType(d)) && sample.params.integer("y") < 0)
          continue;  // refused by lax::integer_pow
        const Jaxpr group = one_equation(primitive, avals, sample.params);
        if (!llvm.supports(group->equations[0], avals, outputs, {})) continue;
        std::vector<Buffer> values;
        std::vector<View> views;
        for (std::size_t i = 0; i < avals.size(); ++i) {
          values.push_back(any_values(dtypes[i], avals[i].shape.to_sizes(), unsigned(i + 1)));
          views.push_back(values.back().view());
        }
        check_same_bits(group, views);
        ++num_cases;
      }
  }
  CHECK(num_cases > 150);
}

TEST_CASE("casts between all dtypes have the bits of the reference" * needs_backend("llvm")) {
  const Primitive& cast = *find_primitive("cast");
  for (int from = 0; from < num_computing_dtypes; ++from)
    for (int to = 0; to < num_computing_dtypes; ++to) {
      if (is_complex(DType(from)) || is_complex(DType(to)) || from == to) continue;
      const Buffer values = any_values(DType(from), {517}, 3);
      const View view = values.view();
      check_same_bits(
          one_equation(cast, {{{517}, DType(from)}}, {{"dtype", DType(to)}, {"weak", false}}),
          std::span(&view, 1));
    }
}

namespace {

// A program of elementwise equations over one shape, with scalars and literals among the operands.
Jaxpr random_program(Generator& generator, const Shape& shape, int num_equations) {
  const DType dtypes[] = {DType::float32, DType::float64, DType::int32, DType::float16};
  const char* binary[] = {"add", "sub", "mul", "max", "min"};
  const char* unary[] = {"neg", "abs", "exp", "tanh", "sin", "log", "sqrt", "floor", "erf"};
  Builder builder;
  std::map<DType, std::vector<Atom>> values;
  for (DType dtype : dtypes) {
    values[dtype].push_back(builder.add_binder({shape, dtype}));
    values[dtype].push_back(builder.add_binder({shape, dtype}));
    values[dtype].push_back(builder.add_binder({{}, dtype}));
  }
  std::vector<Var> all;
  auto pick = [&](DType dtype) {
    const auto& list = values[dtype];
    return list[generator() % list.size()];
  };
  auto add = [&](const char* name, std::vector<Atom> inputs, Params params = {}) {
    bool has_shape = false;
    for (const Atom& atom : inputs) has_shape |= builder.aval(atom.var()).rank() > 0;
    if (!has_shape && shape.rank() > 0) inputs[0] = values[builder.aval(inputs[0].var()).dtype][0];
    all.push_back(builder.add(*find_primitive(name), std::move(inputs), params, {})[0]);
    return all.back();
  };
  for (int i = 0; i < num_equations; ++i) {
    const DType dtype = dtypes[generator() % 4];
    switch (generator() % 5) {
      case 0:
      case 1:
        values[dtype].push_back(add(binary[generator() % 5], {pick(dtype), pick(dtype)}));
        break;
      case 2:
        if (is_floating(dtype))
          values[dtype].push_back(add(unary[generator() % 9], {pick(dtype)}));
        else
          values[dtype].push_back(add(unary[generator() % 2], {pick(dtype)}));
        break;
      case 3: {
        const Var less = add("cmp", {pick(dtype), pick(dtype)}, {{"direction", std::string("lt")}});
        values[dtype].push_back(add("select", {less, pick(dtype), pick(dtype)}));
        break;
      }
      default: {
        const DType to = dtypes[generator() % 4];
        if (to != dtype)
          values[to].push_back(add("cast", {pick(dtype)}, {{"dtype", to}, {"weak", false}}));
      }
    }
  }
  std::vector<Atom> outputs;
  for (std::size_t i = 0; i + 1 < all.size(); i += 5) outputs.push_back(all[i]);
  outputs.push_back(all.back());
  return builder.close(std::move(outputs));
}

// A buffer of this shape in one of several layouts: dense, reversed, transposed, broadcast along
// one axis, with gaps.
View any_layout(Generator& generator, DType dtype, const Sizes64& shape,
                std::vector<Buffer>& storage) {
  const int rank = int(shape.size());
  const int axis = rank > 0 ? int(generator() % std::uint64_t(rank)) : 0;
  const std::uint64_t how = rank > 0 ? generator() % 6 : 0;
  Sizes64 whole = shape;
  if (how == 1) whole[axis] = 1;
  if (how == 2) whole[axis] *= 2;
  if (how == 4) std::reverse(whole.begin(), whole.end());
  storage.push_back(any_values(dtype, whole, unsigned(generator())));
  View view = storage.back().view();
  if (how == 1) view.strides[axis] = 0;
  if (how == 2) view.strides[axis] *= 2;
  if (how == 3 && shape[axis] > 0) {
    view.data = view.as<char>() + (shape[axis] - 1) * view.strides[axis] * size_of(dtype);
    view.strides[axis] *= -1;
  }
  if (how == 4) std::reverse(view.strides.begin(), view.strides.end());
  view.shape = shape;
  return view;
}

}  // namespace

TEST_CASE("random programs over memory of every layout have the bits of the reference" *
          needs_backend("llvm")) {
  const std::vector<Shape> shapes{{},         {1},       {5},        {64},      {1000},
                                  {3, 1},     {2, 3, 5}, {7, 33},    {33, 16},  {4, 1, 100},
                                  {3, 5, 64}, {100, 3},  {2, 70, 5}, {129, 257}};
  Generator generator(17);
  for (const Shape& shape : shapes)
    for (int round = 0; round < 3; ++round) {
      const Jaxpr program = random_program(generator, shape, 20);
      std::vector<Buffer> storage;
      std::vector<View> views;
      for (const Aval& aval : program->input_avals())
        views.push_back(any_layout(generator, aval.dtype, aval.shape.to_sizes(), storage));
      check_same_bits(program, views);
    }
}

TEST_CASE("arrays without elements are left to others" * needs_backend("llvm")) {
  const Jaxpr program = parse("{ lambda ; a:f32[4,0] . let\n b:f32[4,0] = exp a\nin (b) }");
  const Aval empty = program->input_avals()[0];
  CHECK(!backend_here("llvm").supports(program->equations[0], {&empty, 1}, {&empty, 1}, {}));
}

TEST_CASE("an output may lie over an input" * needs_backend("llvm")) {
  const Backend& llvm = backend_here("llvm");
  const Jaxpr program = parse(
      "{ lambda ; a:f32[1003] b:f32[1003] . let\n c:f32[1003] = add a b\n d:f32[1003] = mul a c\n"
      "in (c, d) }");
  const Buffer a = any_values(DType::float32, {1003}, 1), b = any_values(DType::float32, {1003}, 2);
  const View inputs[] = {a.view(), b.view()};
  const auto kernel = llvm.compile(program, {});
  const std::vector<Buffer> apart = run_kernel(*kernel, program, inputs);
  REQUIRE(kernel->may_overwrite(0, 1));
  const Buffer c = Buffer::empty(DType::float32, {1003});
  const View outputs[] = {c.view(), a.view()};
  kernel->enqueue(inputs, outputs, nullptr, {});
  CHECK(first_difference(c, apart[0]) == -1);
  CHECK(first_difference(a, apart[1]) == -1);
}

TEST_CASE("an output past the caches may lie at any address" * needs_backend("llvm")) {
  const Backend& llvm = backend_here("llvm");
  const std::int64_t n = 3 << 22;
  const Jaxpr program = one_equation(*find_primitive("neg"), {{{n}, DType::float32}}, {});
  const Buffer x = Buffer::empty(DType::float32, {n});
  for (std::int64_t i = 0; i < n; ++i) static_cast<float*>(x.view().data)[i] = float(i);
  const Buffer room = Buffer::empty(DType::float32, {n + 1});
  const auto kernel = llvm.compile(program, {});
  for (int offset : {0, 1}) {
    View out = room.view();
    out.data = static_cast<float*>(room.view().data) + offset;
    out.shape = {n};
    const View in = x.view();
    kernel->enqueue(std::span(&in, 1), std::span(&out, 1), nullptr, {});
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < n; ++i) wrong += out.as<float>()[i] != -float(i);
    CHECK(wrong == 0);
  }
}

TEST_CASE("threads share kernels, make them and free them at once" * needs_backend("llvm")) {
  const Backend& llvm = backend_here("llvm");
  Generator generator(23);
  const Jaxpr program = random_program(generator, {333}, 12);
  std::vector<Buffer> storage;
  std::vector<View> views;
  for (const Aval& aval : program->input_avals()) {
    storage.push_back(any_values(aval.dtype, aval.shape.to_sizes(), 5));
    views.push_back(storage.back().view());
  }
  const auto shared = llvm.compile(program, {});
  const std::vector<Buffer> expected = run_kernel(*shared, program, views);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto own = i % 5 == 0 ? llvm.compile(program, {}) : nullptr;
        const std::vector<Buffer> mine = run_kernel(own ? *own : *shared, program, views);
        for (std::size_t k = 0; k < mine.size(); ++k)
          wrong += first_difference(mine[k], expected[k]) >= 0;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("jit runs fused equations on llvm and equals eager evaluation to the bit" *
          needs_backend("llvm")) {
  auto f = [](const Array& x, const Array& y) {
    return numpy::tanh(x * y + 1.0) - numpy::exp(-numpy::abs(x));
  };
  const Array x(any_values(DType::float32, {40, 50}, 1)), y(any_values(DType::float32, {50}, 2));
  const auto jitted = jit(f);
  CHECK(first_difference(jitted(x, y).buffer().dense(), f(x, y).buffer().dense()) == -1);
  const Jaxpr program =
      parse("{ lambda ; a:f32[8] . let\n b:f32[8] = exp a\n c:f32[8] = mul b b\n in (c) }");
  const std::string text = compile(program)->explain();
  CHECK(text.find("llvm") != std::string::npos);
  CHECK(text.find("fused: exp mul") != std::string::npos);
}

TEST_CASE("small updates that do not depend on each other are one kernel" * needs_backend("llvm")) {
  const Function f = [](std::span<const Array> xs) {
    Arrays results;
    Array total = lax::full({}, 0.0, DType::float32);
    for (const Array& x : xs) {
      results.push_back(x * 0.5 + 1.0);
      total = total + numpy::sum(results.back());  // one after the other
    }
    for (const Array& x : xs) results.push_back(numpy::tanh(x) * total);
    return results;
  };
  Arrays xs;
  std::vector<Buffer> inputs;
  for (unsigned i = 0; i < 70; ++i) {
    xs.push_back(random::normal(random::key(i), {i % 2 ? 5 : 3}));
    inputs.push_back(xs.back().buffer());
  }
  const Traced traced = make_jaxpr(f, avals_of(xs), "test");
  const auto executable = compile(traced.jaxpr);
  const std::string text = executable->explain();
  CAPTURE(text);
  CHECK(std::count(text.begin(), text.end(), '\n') < 100);  // of 350 equations
  const std::vector<Buffer> results = executable->run(inputs);
  const Arrays eager = f(xs);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    CHECK(first_difference(results[i].dense(), eager[i].buffer().dense()) == -1);
  }
}

namespace {

Array row_sum(const Array& x) { return numpy::sum(x, -1, {}, true); }
Array row_mean(const Array& x) { return row_sum(x) / double(x.shape().to_sizes().back()); }
Array row_softmax(const Array& x) {
  const Array e = numpy::exp(x - numpy::max(x, -1, true));
  return e / row_sum(e);
}
Array row_normalised(const Array& x, const Array& y) {
  const Array centred = x - row_mean(x);
  return centred / numpy::sqrt(row_mean(centred * centred) + 1e-5) * y + y;
}
Array row_entropy(const Array& x, const Array& y) {
  const Array top = numpy::max(x, -1, true);
  const Array sum = numpy::sum(numpy::exp(x - top), -1);
  return numpy::log(sum) + numpy::min(y - x, -1) - numpy::sum(x * row_softmax(y), -1);
}
Array row_logic(const Array& x, const Array& y) {
  return numpy::where(numpy::any(numpy::greater(x, y), -1, true), numpy::prod(x, -1, {}, true) - y,
                      y);
}
Array row_gradient(const Array& x, const Array& y) {
  return grad([&](const Array& z) { return numpy::sum(row_softmax(z) * y); })(x);
}

// Every kind of reduction, chains of them, and what comes back to the elements of a row.
struct RowFunction {
  const char* name;
  std::function<Array(const Array&, const Array&)> apply;
};
const RowFunction row_functions[] = {
    {"sum of products", [](auto& x, auto& y) { return numpy::sum(x * y, -1); }},
    {"softmax", [](auto& x, auto&) { return row_softmax(x); }},
    {"normalised", row_normalised},
    {"cross-entropy", row_entropy},
    {"logic", row_logic},
    {"gradient of softmax", row_gradient}};

}  // namespace

TEST_CASE("reductions of rows, and chains of them, equal eager evaluation to the bit" *
          needs_backend("llvm")) {
  const std::vector<Shape> shapes{{8},      {1, 8},    {3, 40},   {2, 5, 9},
                                  {33, 64}, {4, 1030}, {9, 5000}, {5, 1, 16}};
  auto check = [](const RowFunction& f, const Array& x, const Array& y) {
    CAPTURE(f.name);
    CAPTURE(x.aval().to_string());
    const Array eager = f.apply(x, y);
    CHECK(first_difference(jit(f.apply)(x, y).buffer().dense(), eager.buffer().dense()) == -1);
  };
  for (const RowFunction& f : row_functions)
    for (const Shape& shape : shapes)
      for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
        const Array x = random::normal(random::key(1), shape, dtype);
        const Array y =
            lax::broadcast_in_dim(random::normal(random::key(2), Shape{shape.back()}, dtype), shape,
                                  std::vector<int>{shape.rank() - 1});
        check(f, x, y);
        check(f, Array(any_values(dtype, shape.to_sizes(), 9)), y);  // NaN and infinities
      }
  const Array x = random::normal(random::key(1), {64, 256});
  const auto traced = make_jaxpr([](const Array& z) { return row_softmax(z); }, x);
  const std::string text = compile(traced.jaxpr)->explain();
  CAPTURE(text);
  CHECK(text.find("one loop program, 1 loop on threads") != std::string::npos);
}

TEST_CASE("what a group sees of its own results under other shapes may be wanted outside too" *
          needs_backend("llvm")) {
  auto f = [](const Array& x) {
    const Array top = numpy::max(x, -1, true);  // read through a broadcast, and an output
    const Array e = numpy::exp(x - top), sum = numpy::sum(e, -1);
    const Array spread =
        numpy::broadcast_to(numpy::expand_dims(sum, std::vector<int>{-1}), x.shape());
    const Array y = e / spread;
    return Arrays{y,
                  top,
                  spread,
                  numpy::matmul(lax::transpose(y, std::vector<int>{1, 0}), spread),
                  numpy::sum(y, 0),
                  sum * 2.0};
  };
  const Array x = random::normal(random::key(4), {24, 100});
  const auto traced = make_jaxpr([&](const Array& z) { return f(z); }, x);
  const Arrays eager = f(x);
  const Buffer input = x.buffer();
  const std::vector<Buffer> results = compile(traced.jaxpr)->run(std::span(&input, 1));
  REQUIRE(results.size() == eager.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(i);
    CHECK(first_difference(results[i].dense(), eager[i].buffer().dense()) == -1);
  }
}
