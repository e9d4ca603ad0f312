// The oneDNN backend against the reference: products and convolutions of every layout, dtype and
// form, NaN and infinities, equal bits in eager evaluation and jit.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/base/pool.h>
#include <plait/functions/nn.h>
#include <plait/plait.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/composites.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "../same_bits.h"
#include "backend_here.h"

using namespace plait;

namespace {

Array random_values(const Shape& shape, DType dtype, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Buffer buffer = Buffer::empty(DType::float32, shape.to_sizes());
  for (std::int64_t i = 0; i < num_elements(buffer.shape()); ++i)
    static_cast<float*>(buffer.mutable_data())[i] = normal(generator);
  return lax::convert_element_type(Array(buffer), dtype);
}

// One equation on one backend.
Buffer run_on(std::string_view backend, const Primitive& primitive, const Arrays& inputs,
              const Params& params) {
  Builder builder;
  std::vector<Atom> atoms;
  std::vector<View> views;
  for (const Array& input : inputs) {
    atoms.push_back(builder.add_binder(input.aval()));
    views.push_back(input.buffer().view());
  }
  const Var out = builder.add(primitive, atoms, params, {})[0];
  const Aval aval = builder.aval(out);
  const Jaxpr group = builder.close({out});
  std::vector<Aval> avals;
  for (const Array& input : inputs) avals.push_back(input.aval());
  const Backend* found = find_backend(backend);
  const Support support = found->supports(group->equations[0], avals, std::span(&aval, 1), {});
  CAPTURE(support.reason);
  REQUIRE(support.is_supported);
  Buffer result = Buffer::empty(aval.dtype, aval.shape.to_sizes());
  found->compile(group, {})->enqueue(views, std::span(&result.view(), 1), nullptr, {});
  return result;
}

double tolerance_of(DType dtype) {
  return dtype == DType::float32 ? 2e-5 : dtype == DType::float16 ? 4e-3 : 3e-2;
}

// The largest |a - b| / (scale + |b|), where scale is that of the sums.
double distance(const Buffer& a, const Buffer& b, double scale) {
  const Buffer x = lax::convert_element_type(Array(a), DType::float64).buffer().dense();
  const Buffer y = lax::convert_element_type(Array(b), DType::float64).buffer().dense();
  double worst = 0;
  for (std::int64_t i = 0; i < num_elements(x.shape()); ++i) {
    const double p = static_cast<const double*>(x.data())[i],
                 q = static_cast<const double*>(y.data())[i];
    if (std::isnan(p) != std::isnan(q)) return INFINITY;
    if (std::isnan(p) || p == q) continue;
    if (std::isinf(p) || std::isinf(q)) return INFINITY;
    worst = std::max(worst, std::abs(p - q) / (scale + std::abs(q)));
  }
  return worst;
}

// The equation that f traces to: its primitive and parameters.
Equation equation_of(const std::function<Array(const Arrays&)>& f, const Arrays& inputs) {
  std::vector<Aval> avals;
  for (const Array& input : inputs) avals.push_back(input.aval());
  return make_jaxpr([&](std::span<const Array> in) { return Arrays{f({in.begin(), in.end()})}; },
                    avals)
      .jaxpr->equations.back();
}

void check_backends_agree(const std::function<Array(const Arrays&)>& f, const Arrays& inputs,
                          double scale) {
  const Equation equation = equation_of(f, inputs);
  const Buffer ours = run_on("onednn", *equation.primitive, inputs, equation.params);
  const Buffer reference = run_on("reference", *equation.primitive, inputs, equation.params);
  CHECK(distance(ours, reference, scale) <= tolerance_of(inputs[0].dtype()));
}

std::vector<DType> dtypes_here() {
  std::vector<DType> found;
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Arrays inputs{random_values({64, 64}, dtype, 1), random_values({64, 64}, dtype, 2)};
    const Equation equation = equation_of(
        [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}}); },
        inputs);
    const std::vector<Aval> avals{inputs[0].aval(), inputs[1].aval()}, out{inputs[0].aval()};
    if (find_backend("onednn")->supports(equation, avals, out, {})) found.push_back(dtype);
  }
  return found;
}

}  // namespace

TEST_CASE("the distance of infinities of other signs, and of any to numbers, is infinite") {
  auto number = [](double value) { return Buffer::scalar(value); };
  CHECK(distance(number(INFINITY), number(INFINITY), 1) == 0);
  CHECK(distance(number(NAN), number(NAN), 1) == 0);
  CHECK(distance(number(INFINITY), number(-INFINITY), 1) == INFINITY);
  CHECK(distance(number(INFINITY), number(1), 1) == INFINITY);
  CHECK(distance(number(1), number(INFINITY), 1) == INFINITY);
  CHECK(distance(number(NAN), number(1), 1) == INFINITY);
  CHECK(distance(number(1), number(3), 1) == 0.5);
}

TEST_CASE("products agree with the reference in every layout" * needs_backend("onednn")) {
  const std::vector<int> swap{1, 0};
  for (DType dtype : dtypes_here()) {
    CAPTURE(name_of(dtype));
    unsigned seed = 1;
    // Of float32, vectors by matrices are left to plain loops, but for long sums.
    const int k_of_vectors = dtype == DType::float32 ? 17000 : 300;
    for (auto [m, k, n] :
         {std::array{64, 64, 64}, std::array{128, 200, 33}, std::array{1, k_of_vectors, 200},
          std::array{500, k_of_vectors, 1}, std::array{7, 5000, 9}}) {
      const Array a = random_values({m, k}, dtype, seed++),
                  b = random_values({k, n}, dtype, seed++);
      const double scale = std::sqrt(double(k));
      check_backends_agree(
          [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}}); },
          {a, b}, scale);
      check_backends_agree(
          [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{1}, {1}, {}, {}}); },
          {a, lax::transpose(b, swap)}, scale);
      check_backends_agree(
          [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{0}, {0}, {}, {}}); },
          {lax::transpose(a, swap), b}, scale);
    }
    const Array x = random_values({6, 5, 40, 36}, dtype, 91),
                y = random_values({5, 6, 36, 20}, dtype, 92);
    check_backends_agree(
        [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{3}, {2}, {0, 1}, {1, 0}}); },
        {x, y}, 6);
    check_backends_agree(
        [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{1, 3}, {0, 2}, {}, {}}); },
        {x, y}, 12);
    const std::vector<int> first{0};
    check_backends_agree(
        [&](const Arrays& in) { return lax::dot_general(in[0], in[1], {{2}, {1}, {0}, {0}}); },
        {random_values({8, 40, 36}, dtype, 93),
         lax::broadcast_in_dim(random_values({36, 20}, dtype, 94), {8, 36, 20},
                               std::vector<int>{1, 2})},
        6);
  }
}

TEST_CASE("products of 16 bits give float32 where asked, with the same bits in jit" *
          needs_backend("onednn")) {
  for (DType dtype : dtypes_here()) {
    if (dtype == DType::float32) continue;
    CAPTURE(name_of(dtype));
    auto product = [](const Array& a, const Array& b) -> Array {
      return lax::dot_general(a, b, {{1}, {0}, {}, {}}, DType::float32);
    };
    const Array a = random_values({70, 130}, dtype, 1), b = random_values({130, 50}, dtype, 2);
    check_backends_agree([&](const Arrays& in) { return product(in[0], in[1]); }, {a, b}, 12);
    const Array eager = product(a, b);
    CHECK(eager.dtype() == DType::float32);
    CHECK(same_bits(jit(product)(a, b), eager));
  }
}

TEST_CASE("a product may be called from many threads, and with other strides than before" *
          needs_backend("onednn")) {
  const std::vector<int> swap{1, 0};
  const Array a = random_values({64, 64}, DType::float32, 1),
              b = random_values({64, 64}, DType::float32, 2);
  const Array plain = lax::dot_general(a, b, {{1}, {0}, {}, {}}),
              turned = lax::dot_general(lax::transpose(a, swap), b, {{1}, {0}, {}, {}});
  auto check = [&] {
    bool good = true;
    for (int i = 0; i < 50; ++i) {
      good &= same_bits(lax::dot_general(a, b, {{1}, {0}, {}, {}}), plain);
      good &= same_bits(lax::dot_general(lax::transpose(a, swap), b, {{1}, {0}, {}, {}}), turned);
    }
    return good;
  };
  std::atomic<int> good{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { good += check(); });
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 4);
}

TEST_CASE("products keep NaN and infinities" * needs_backend("onednn")) {
  Array a = random_values({64, 64}, DType::float32, 5);
  Buffer buffer = Buffer::copy_of(a.buffer().view());
  static_cast<float*>(buffer.mutable_data())[3] = NAN;
  static_cast<float*>(buffer.mutable_data())[70] = INFINITY;
  check_backends_agree(
      [](const Arrays& in) { return lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}}); },
      {Array(buffer), random_values({64, 64}, DType::float32, 6)}, 8);
}

TEST_CASE(
    "a product has the same bits eagerly, in jit, in every layout and for every number of "
    "threads" *
    needs_backend("onednn")) {
  const std::vector<int> swap{1, 0};
  const Array a = random_values({96, 210}, DType::float32, 1),
              b = random_values({210, 70}, DType::float32, 2);
  const Array at = Array(lax::transpose(a, swap).buffer().dense()),
              bt = Array(lax::transpose(b, swap).buffer().dense());
  auto product = [](const Array& x, const Array& y) -> Array {
    return lax::tanh(lax::dot_general(x, y, {{1}, {0}, {}, {}}) * 0.1);
  };
  auto from_transposed = [&](const Array& x, const Array& y) -> Array {
    return product(lax::transpose(x, swap), lax::transpose(y, swap));
  };
  const Array expected = product(a, b);
  CHECK(same_bits(jit(product)(a, b), expected));
  CHECK(same_bits(from_transposed(at, bt), expected));
  CHECK(same_bits(jit(from_transposed)(at, bt), expected));
  const int threads = num_threads();
  for (int count : {1, 2}) {
    set_num_threads(count);
    CHECK(same_bits(jit(product)(a, b), expected));
  }
  set_num_threads(threads);
}

TEST_CASE("convolutions and both their gradients agree with the reference" *
          needs_backend("onednn")) {
  struct Case {
    Shape lhs, rhs, strides, rhs_dilation;
    const char* padding;
    std::int64_t groups;
  };
  const Case cases[] = {{{2, 8, 16, 16}, {12, 8, 3, 3}, {1, 1}, {1, 1}, "SAME", 1},
                        {{2, 8, 17, 15}, {12, 8, 3, 3}, {2, 2}, {1, 1}, "VALID", 1},
                        {{2, 8, 17, 15}, {12, 8, 3, 2}, {2, 3}, {1, 1}, "SAME", 1},
                        {{2, 8, 16, 16}, {12, 8, 3, 3}, {1, 1}, {2, 2}, "SAME", 1},
                        {{2, 8, 16, 16}, {12, 2, 3, 3}, {1, 1}, {1, 1}, "SAME", 4},
                        {{3, 8, 100}, {12, 8, 5}, {2}, {1}, "SAME", 1}};
  for (DType dtype : dtypes_here()) {
    if (dtype != DType::float32) continue;
    for (const Case& one : cases) {
      const Array x = random_values(one.lhs, dtype, 7), w = random_values(one.rhs, dtype, 8);
      CAPTURE(one.lhs.to_string());
      CAPTURE(one.strides.to_string());
      auto conv = [&](const Array& lhs, const Array& rhs) -> Array {
        return lax::conv_general_dilated(lhs, rhs, one.strides, one.padding, {}, one.rhs_dilation,
                                         {}, one.groups);
      };
      check_backends_agree([&](const Arrays& in) { return conv(in[0], in[1]); }, {x, w}, 9);
      // Gradients: whatever convolutions they are made of, on either backend.
      const Array y = conv(x, w), ct = random_values(y.shape(), dtype, 9);
      for (bool by_data : {true, false}) {
        const Jaxpr pull =
            make_jaxpr(
                [&](std::span<const Array> in) {
                  const flat::Pullback pullback = flat::vjp(
                      [&](std::span<const Array> z) {
                        return Arrays{conv(by_data ? z[0] : in[0], by_data ? in[1] : z[0])};
                      },
                      std::vector<Array>{in[by_data ? 0 : 1]}, {true});
                  const Tangents tangents = pullback.pull(std::vector<Tangent>{Tangent(in[2])});
                  return Arrays{tangents[0].array()};
                },
                std::vector<Aval>{x.aval(), w.aval(), ct.aval()})
                .jaxpr;
        std::vector<Array> values{x, w, ct};
        values.resize(pull->avals.size());
        Buffer ours, reference;
        for (const Equation& equation : pull->equations) {
          Arrays inputs;
          for (const Atom& atom : equation.inputs)
            inputs.push_back(atom.is_var() ? values[atom.var().id]
                                           : Array::literal(atom.literal()));
          const Arrays outputs = bind(*equation.primitive, inputs, equation.params);
          for (std::size_t i = 0; i < outputs.size(); ++i)
            values[equation.outputs[i].id] = outputs[i];
          if (!(*equation.primitive == conv_p)) continue;
          std::vector<View> views;
          for (const Array& input : inputs) views.push_back(input.buffer().view());
          reference = Buffer::empty(outputs[0].dtype(), outputs[0].shape().to_sizes());
          rule<Eval>(conv_p)(views, std::span(&reference.view(), 1), equation.params);
          CAPTURE(by_data);
          CHECK(distance(outputs[0].buffer(), reference, 12) <= tolerance_of(dtype));
        }
      }
    }
  }
}

TEST_CASE("convolutions have the same bits in every layout" * needs_backend("onednn")) {
  const Array x = random_values({3, 12, 17, 15}, DType::float32, 1),
              w = random_values({8, 6, 3, 3}, DType::float32, 2);
  const std::vector<int> last{0, 2, 3, 1}, kernel_last{2, 3, 1, 0}, first{0, 3, 1, 2};
  auto conv = [](const Array& lhs, const Array& rhs, const char* lhs_spec, const char* rhs_spec) {
    return lax::conv_general_dilated(lhs, rhs, {2, 1}, "SAME", {}, {},
                                     lax::conv_dimension_numbers(lhs_spec, rhs_spec, lhs_spec), 2);
  };
  const Array expected = conv(x, w, "NCHW", "OIHW"),
              moved = Array(lax::transpose(x, last).buffer().dense()),
              moved_kernel = Array(lax::transpose(w, kernel_last).buffer().dense());
  CHECK(same_bits(lax::transpose(conv(moved, moved_kernel, "NHWC", "HWIO"), first), expected));
  CHECK(same_bits(conv(x, moved_kernel, "NCHW", "HWIO"), conv(x, w, "NCHW", "OIHW")));
  CHECK(same_bits(conv(lax::transpose(moved, first), w, "NCHW", "OIHW"), expected));
}

TEST_CASE("gradients of convolutions of every example by kernels are those of each" *
          needs_backend("onednn")) {
  const Array x = random_values({5, 2, 14, 13, 6}, DType::float32, 1),
              ct = random_values({5, 2, 14, 13, 8}, DType::float32, 2);
  for (std::int64_t groups : {1, 2}) {
    const Shape shape{3, 3, 6 / groups, 8};
    const Function by_kernel = [&](std::span<const Array> in) {
      const flat::Pullback pullback = flat::vjp(
          [&](std::span<const Array> w) {
            return Arrays{lax::conv_general_dilated(
                in[0], w[0], {1, 1}, "SAME", {}, {},
                lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC"), groups)};
          },
          std::vector<Array>{lax::full(shape, 0, DType::float32)}, {true});
      return Arrays{pullback.pull(std::vector<Tangent>{Tangent(in[1])})[0].array()};
    };
    const Function each = [&](std::span<const Array> in) {
      flat::VmapOptions options;
      options.in_dims = {0, 0};
      options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, 0); };
      return flat::vmap(by_kernel, in, options);
    };
    const Array all = each(Arrays{x, ct})[0];
    CHECK(same_bits(flat::Jit(each, "each")(Arrays{x, ct})[0], all));
    const std::vector<Aval> avals{x.aval(), ct.aval()};
    CHECK(compile(make_jaxpr(each, avals).jaxpr)->explain().find("[weight gradient]") !=
          std::string::npos);
    auto example = [](const Array& array, std::int64_t i) {
      Buffer buffer = array.buffer();
      View view = buffer.view();
      view.data = view.as<char>() + i * view.strides[0] * size_of(view.dtype);
      view.shape.erase(0), view.strides.erase(0);
      return Array(Buffer::copy_of(view));
    };
    for (std::int64_t i = 0; i < 5; ++i) {
      const Array one = by_kernel(Arrays{example(x, i), example(ct, i)})[0];
      CHECK(distance(example(all, i).buffer(), one.buffer(), 20) <= tolerance_of(DType::float32));
    }
  }
}

TEST_CASE("layer_norm and attention agree with their bodies, and keep NaN and infinities" *
          needs_backend("onednn")) {
  auto check = [](const Function& f, const Arrays& inputs, const char* symbol) {
    std::vector<Aval> avals;
    for (const Array& input : inputs) avals.push_back(input.aval());
    const Jaxpr program = make_jaxpr(f, avals).jaxpr;
    CHECK(compile(program)->explain().find("onednn") != std::string::npos);
    const Equation& call = program->equations.back();
    REQUIRE(call.params.text("symbol") == symbol);
    const Array whole = f(inputs)[0];
    CHECK(same_bits(flat::Jit(f, "f")(inputs)[0], whole));
    const Array body = eval_jaxpr(call.params.get<Jaxpr>("body"), inputs)[0];
    CHECK(distance(whole.buffer(), body.buffer(), 1) <= 2e-5);
  };
  auto with = [](const Array& x, std::int64_t place, float value) {
    Buffer buffer = Buffer::copy_of(x.buffer().view());
    static_cast<float*>(buffer.mutable_data())[place] = value;
    return Array(buffer);
  };
  const Array x = random_values({6, 50}, DType::float32, 1),
              scale = random_values({50}, DType::float32, 2),
              bias = random_values({50}, DType::float32, 3);
  const Function norm = [](std::span<const Array> in) {
    return Arrays{nn::layer_norm(in[0], in[1], in[2])};
  };
  for (const Array& input : {x, with(x, 70, NAN), with(x, 71, INFINITY), with(x, 200, 1e30f)})
    check(norm, {input, scale, bias}, "layer_norm");
  const auto explained = [&](std::int64_t rows) {
    const std::vector<Aval> avals{Aval{{rows, 1024}, DType::float32}, Aval{{1024}, DType::float32},
                                  Aval{{1024}, DType::float32}};
    return compile(make_jaxpr(norm, avals).jaxpr)->explain();
  };
  CHECK(explained(1024).find("onednn") != std::string::npos);
  CHECK(explained(8192).find("onednn") == std::string::npos);  // loops read it once
  const Array q = random_values({2, 3, 40, 16}, DType::float32, 4),
              k = random_values({2, 3, 50, 16}, DType::float32, 5),
              v = random_values({2, 3, 50, 16}, DType::float32, 6);
  const Function mix = [](std::span<const Array> in) {
    return Arrays{composite(*find_composite("attention"), in, {{"scale", 0.25}})};
  };
  check(mix, {q, k, v}, "attention");
  check(mix, {with(q, 33, NAN), k, v}, "attention");
  check(mix, {q, with(k, 900, NAN), v}, "attention");
  check(mix, {q, k, with(v, 17, NAN)}, "attention");
  check(mix, {q, k, with(v, 17, -INFINITY)}, "attention");
}

TEST_CASE("explain says where products run, and why small ones do not run here" *
          needs_backend("onednn")) {
  auto table = [](std::int64_t n) {
    const Aval aval{{n, n}, DType::float32};
    return compile(make_jaxpr(
                       [](std::span<const Array> in) {
                         return Arrays{lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}})};
                       },
                       std::vector<Aval>{aval, aval})
                       .jaxpr)
        ->explain();
  };
  CHECK(table(128).find("onednn") != std::string::npos);
  CHECK(table(128).find("reference") == std::string::npos);
  CHECK(table(8).find("reference") != std::string::npos);
  CHECK(table(8).find("onednn: small: 512 products") != std::string::npos);
}

TEST_CASE("epilogues of products and convolutions give the bits of the equations alone" *
          needs_backend("onednn")) {
  auto check = [](const Function& f, const Arrays& inputs, const char* fused) {
    std::vector<Aval> avals;
    for (const Array& input : inputs) avals.push_back(input.aval());
    const std::string table = compile(make_jaxpr(f, avals).jaxpr)->explain();
    CAPTURE(table);
    CHECK(table.find(fused) != std::string::npos);
    CHECK(same_bits(flat::Jit(f, "f")(inputs)[0], f(inputs)[0]));
  };
  auto value = [](const Shape& shape, unsigned seed) {
    return random_values(shape, DType::float32, seed);
  };
  auto bias = [](const Array& b, const Array& like, int axis) {
    return lax::broadcast_in_dim(b, like.shape(), std::vector<int>{axis});
  };
  auto dot = [](const Array& a, const Array& b) {
    return lax::dot_general(a, b, {{1}, {0}, {}, {}});
  };
  for (auto [m, k, n] : {std::array{64, 64, 64}, std::array{37, 300, 51}, std::array{2, 700, 90},
                         std::array{600, 90, 2}}) {
    const Arrays inputs{value({m, k}, 1), value({k, n}, 2), value({n}, 3)};
    check(
        [&](std::span<const Array> in) {
          const Array y = dot(in[0], in[1]);
          return Arrays{y + bias(in[2], y, 1)};
        },
        inputs, "dot_general add");
    check(
        [&](std::span<const Array> in) {
          const Array y = dot(in[0], in[1]);
          return Arrays{bias(in[2], y, 1) * (y * 0.3 - 2.0) / 3.0};
        },
        inputs, "dot_general mul sub mul div");
    check(
        [&](std::span<const Array> in) {
          const Array y = dot(in[0], in[1]);
          return Arrays{lax::tanh(y - bias(in[2], y, 1))};
        },
        inputs, "dot_general sub");
  }
  // A result that is read twice, an operand as large as the result and one along rows stay outside.
  const Arrays inputs{value({64, 64}, 1), value({64, 64}, 2), value({64}, 3)};
  const char* const alone = "f32[64,64]  16384  dot_general\n";
  check(
      [&](std::span<const Array> in) {
        const Array y = dot(in[0], in[1]);
        return Arrays{y + bias(in[2], y, 1), y};
      },
      inputs, alone);
  check(
      [&](std::span<const Array> in) {
        const Array y = dot(in[0], in[1]);
        return Arrays{y + in[0]};
      },
      inputs, alone);
  check(
      [&](std::span<const Array> in) {
        const Array y = dot(in[0], in[1]);
        return Arrays{y + bias(in[2], y, 0)};
      },
      inputs, alone);
  check(
      [&](std::span<const Array> in) {
        const Array y = dot(in[0], in[1]);
        return Arrays{1.0 - y};
      },
      inputs, alone);

  const Arrays images{value({2, 8, 16, 16}, 4), value({12, 8, 3, 3}, 5), value({12}, 6)};
  check(
      [&](std::span<const Array> in) {
        const Array y = lax::conv_general_dilated(in[0], in[1], {1, 1}, "SAME");
        return Arrays{(y + bias(in[2], y, 1)) * 0.5};
      },
      images, "conv add mul");
  const Arrays channels_last{value({2, 16, 16, 8}, 4), value({3, 3, 8, 12}, 5), value({12}, 6)};
  check(
      [&](std::span<const Array> in) {
        const Array y =
            lax::conv_general_dilated(in[0], in[1], {2, 2}, "VALID", {}, {},
                                      lax::conv_dimension_numbers("NHWC", "HWIO", "NHWC"));
        return Arrays{y + bias(in[2], y, 3)};
      },
      channels_last, "conv add");
}

TEST_CASE("epilogues keep NaN and infinities" * needs_backend("onednn")) {
  Buffer buffer = Buffer::copy_of(random_values({64, 64}, DType::float32, 5).buffer().view());
  static_cast<float*>(buffer.mutable_data())[3] = NAN;
  static_cast<float*>(buffer.mutable_data())[70] = INFINITY;
  Buffer bias = Buffer::copy_of(random_values({64}, DType::float32, 6).buffer().view());
  static_cast<float*>(bias.mutable_data())[7] = NAN;
  static_cast<float*>(bias.mutable_data())[8] = -INFINITY;
  const Function f = [](std::span<const Array> in) {
    const Array y = lax::dot_general(in[0], in[1], {{1}, {0}, {}, {}});
    return Arrays{(y + lax::broadcast_in_dim(in[2], {64, 64}, std::vector<int>{1})) * 0.0};
  };
  const Arrays inputs{Array(buffer), random_values({64, 64}, DType::float32, 7), Array(bias)};
  CHECK(distance(flat::Jit(f, "f")(inputs)[0].buffer(), f(inputs)[0].buffer(), 1) == 0);
}

TEST_CASE("avg_pool agrees with its body in every padding, and keeps NaN and infinities" *
          needs_backend("onednn")) {
  Buffer image =
      Buffer::copy_of(random_values({2, 3, 9, 11, 5}, DType::float32, 1).buffer().view());
  static_cast<float*>(image.mutable_data())[77] = NAN;
  static_cast<float*>(image.mutable_data())[1000] = INFINITY;
  for (const char* padding : {"VALID", "SAME"})
    for (bool counts : {true, false})
      for (const Shape& strides : {Shape{}, Shape{2, 3}}) {
        const Function f = [&](std::span<const Array> in) {
          return Arrays{nn::avg_pool(in[0], {3, 2}, strides, padding, counts)};
        };
        const Arrays inputs{Array(image)};
        const Jaxpr program = make_jaxpr(f, std::vector<Aval>{inputs[0].aval()}).jaxpr;
        CHECK(compile(program)->explain().find("onednn") != std::string::npos);
        const Array body =
            eval_jaxpr(program->equations.back().params.get<Jaxpr>("body"), inputs)[0];
        CHECK(distance(f(inputs)[0].buffer(), body.buffer(), 1) <= 2e-6);
        CHECK(same_bits(flat::Jit(f, "f")(inputs)[0], f(inputs)[0]));
      }
}
