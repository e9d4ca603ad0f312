// What C++ programs do with an Array besides transforming it: making, printing, reading, indexing.
// Expected texts are NumPy's.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <plait/plait.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "../problem.h"

using namespace plait;

namespace {

std::string text(const Array& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}
Array f64(std::initializer_list<double> values) { return numpy::array(values, DType::float64); }

template <class T>
T wave(const T& x) {
  using std::exp, std::pow, std::sin, std::sqrt;
  return exp(-x) * sin(2.0 * x) + pow(x, 3.0) + sqrt(x);
}

}  // namespace

TEST_CASE("arrays print as NumPy prints them") {
  const double inf = INFINITY;
  CHECK(text(numpy::array({1., 2.5, -3.})) == "[ 1.   2.5 -3. ]");
  CHECK(text(numpy::array({{1, 20}, {3, 4}})) == "[[ 1 20]\n [ 3  4]]");
  CHECK(text(numpy::full({}, 2., DType::float32)) == "2.0");
  CHECK(text(numpy::array({true, false})) == "[ True False]");
  CHECK(text(numpy::array({1e-9, 1., NAN})) == "[1.e-09 1.e+00    nan]");
  CHECK(text(f64({1e10, 1.5})) == "[1.0e+10 1.5e+00]");
  CHECK(text(numpy::array({inf, -1.25, 0.1})) == "[  inf -1.25  0.1 ]");
  CHECK(text(numpy::arange(2000)) == "[   0    1    2 ... 1997 1998 1999]");
  CHECK(text(numpy::arange(24.0).reshape({2, 3, 4})) ==
        "[[[ 0.  1.  2.  3.]\n  [ 4.  5.  6.  7.]\n  [ 8.  9. 10. 11.]]\n\n"
        " [[12. 13. 14. 15.]\n  [16. 17. 18. 19.]\n  [20. 21. 22. 23.]]]");
  CHECK(text(numpy::array({complex64(1, 2), complex64(-0.f, -0.5f)})) == "[ 1.+2.j  -0.-0.5j]");
  CHECK(text(numpy::arange(30).astype(DType::float64) * 1.1) ==
        "[ 0.   1.1  2.2  3.3  4.4  5.5  6.6  7.7  8.8  9.9 11.  12.1 13.2 14.3\n"
        " 15.4 16.5 17.6 18.7 19.8 20.9 22.  23.1 24.2 25.3 26.4 27.5 28.6 29.7\n"
        " 30.8 31.9]");
  CHECK(text(f64({0.1, 1.0 / 3})) == "[0.1        0.33333333]");
  CHECK(text(numpy::zeros({0})) == "[]");
  CHECK(text(numpy::zeros({2, 0})) == "[]");
  CHECK(text(f64({1.0 / 3, 0.5}).astype(DType::float16)) == "[0.3333 0.5   ]");
  CHECK(text(numpy::zeros({40, 40})) ==
        "[[0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n ...\n"
        " [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]\n [0. 0. 0. ... 0. 0. 0.]]");
  CHECK(text(f64({-0.0, 1e5})) == "[    -0. 100000.]");
}

TEST_CASE("what is traced prints as its type, and what grad knows as its value") {
  std::string staged, known;
  jit([&](const Array& x) -> Array {
    staged = x.to_string();
    return x;
  })(numpy::ones({3}));
  CHECK(staged == "Traced<f32[3] in jit>");
  grad([&](const Array& x) -> Array {
    known = x.to_string();
    return x.sum();
  })(numpy::ones({3}));
  CHECK(known == "[1. 1. 1.]");
  CHECK(text(Array()) == "Array()");
}

TEST_CASE("lists of numbers have the default dtype, and memory keeps its own") {
  CHECK(numpy::array({1., 2.}).aval().to_string() == "f32[2]");
  CHECK(numpy::array({1, 2}).aval().to_string() == "i32[2]");
  CHECK(numpy::array({1, 2.5}).aval().to_string() == "f32[2]");
  CHECK(numpy::array({{1.}, {2.}}).aval().to_string() == "f32[2,1]");
  CHECK(numpy::array({{3.}}).aval().to_string() == "f32[1,1]");
  CHECK(numpy::array({{1., 2., 3.}, {4., 5., 6.}}, DType::float64).aval().to_string() ==
        "f64[2,3]");
  CHECK(numpy::asarray(std::vector<double>{1, 2}).aval().to_string() == "f64[2]");
  CHECK(numpy::asarray(std::vector<long long>{1}).aval().to_string() == "i64[1]");
  CHECK(numpy::asarray(std::vector<bool>{true, false}).aval().to_string() == "bool[2]");
  const std::array<std::int16_t, 3> memory{1, 2, 3};
  CHECK(numpy::asarray(std::span(memory)).aval().to_string() == "i16[3]");
  CHECK(numpy::array({numpy::ones({2}), numpy::zeros({2})}).aval().to_string() == "f32[2,2]");
  CHECK(problem_and_fix([] { numpy::array({{1., 2.}, {3.}}); }) ==
        "array: row 1 has 1 elements, and row 0 has 2 | give rows of one length");
  CHECK(problem([] { numpy::array({3000000000u}); }).find("3000000000 does not fit int32") !=
        std::string::npos);
  CHECK(numpy::array({3000000000u}, DType::int64).item<std::int64_t>() == 3000000000);
  CHECK(numpy::asarray(complex128(0, 1)).item<bool>());
  // The 0 of {5, 0} is no file.
  static_assert(!std::is_constructible_v<Operand, int, int> &&
                !std::is_constructible_v<Operand, Array, int>);
}

TEST_CASE("sizes and unsigned integers are numbers, and those beyond 64 bits with a sign are not") {
  const std::vector<int> v{1, 2, 3};
  const Array z = v.size();
  CHECK(z.item<int>() == 3);
  CHECK((numpy::ones({2}) * 3u).to_vector<float>() == std::vector<float>{3, 3});
  CHECK(problem_and_fix([] {
          const Array x = std::numeric_limits<std::uint64_t>::max();
        }).starts_with("the integer 18446744073709551615 does not fit"));
}

TEST_CASE("elements are copied out as another type, or seen where they lie") {
  const Array x = numpy::array({{1., 2., 3.}, {4., 5., 6.}});
  CHECK(x.to_vector<double>() == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(x.T().to_vector<int>() == std::vector<int>{1, 4, 2, 5, 3, 6});
  CHECK((x > 3).to_vector<bool>() == std::vector<bool>{false, false, false, true, true, true});
  const std::span<const float> seen = x.span<float>();
  CHECK(seen.size() == 6);
  CHECK(seen.data() == x.buffer().data());
  CHECK(problem_and_fix([&] { x.span<double>(); }) ==
        "span: the elements are float32, and float64 was asked for | ask for the array's dtype, or "
        "take a copy with to_vector");
  const Array turned = x.T();
  CHECK(problem_and_fix([&] {
          turned.span<float>();
        }).starts_with("span: the elements do not lie in the"));
  const Array straight = turned.copy();
  CHECK(straight.span<float>()[1] == 4);
  CHECK(problem_and_fix([&] {
          (x * complex128(0, 1)).to_vector<double>();
        }).starts_with("to_vector: complex numbers have no real value"));
}

TEST_CASE("foreign memory is an array without a copy, as long as anybody reads it, of its size") {
  auto memory = std::make_shared<const std::vector<float>>(std::vector<float>{1, 2, 3, 4, 5, 6});
  const std::weak_ptr<const std::vector<float>> watched = memory;
  {
    Array x = numpy::frombuffer(memory, Shape{2, 3});
    CHECK(x.buffer().data() == memory->data());
    memory.reset();
    CHECK(!watched.expired());
    const Array row = x[1];
    x = Array();
    CHECK(row.to_vector<float>() == std::vector<float>{4, 5, 6});
  }
  CHECK(watched.expired());
  const float few[3] = {1, 2, 3};
  CHECK(problem_and_fix(
            [&] { numpy::frombuffer(std::span<const float>(few), nullptr, Shape{2, 2}); }) ==
        "frombuffer: an array of shape (2,2) has 4 elements, and the memory holds 3 | give a shape "
        "of as many elements as there are");
  const auto* odd = reinterpret_cast<const float*>(reinterpret_cast<const char*>(few) + 1);
  CHECK(problem_and_fix([&] {
          numpy::frombuffer(std::span<const float>(odd, 2), nullptr);
        }).starts_with("frombuffer: the memory does not begin at a multiple of the 4 bytes"));
}

TEST_CASE("x += v is x = x + v for that name alone, and may promote and broadcast") {
  Array x = numpy::array({1., 2.});
  const Array start = x;
  x += 1;
  CHECK(start.to_vector<double>() == std::vector<double>{1, 2});
  CHECK(x.to_vector<double>() == std::vector<double>{2, 3});
  x *= f64({10, 100});
  CHECK(x.aval().to_string() == "f64[2]");
  x -= numpy::array({{1., 2.}, {3., 4.}});
  CHECK(x.to_vector<double>() == std::vector<double>{19, 298, 17, 296});
  x /= 2;
  CHECK(x.to_vector<double>() == std::vector<double>{9.5, 149, 8.5, 148});
}

TEST_CASE("subscripts read rows, elements, ranges and masks, and at writes to a new value") {
  const Array x = numpy::arange(12).reshape({3, 4});
  CHECK(x[1].to_vector<int>() == std::vector<int>{4, 5, 6, 7});
  CHECK(x[-1][0].item<int>() == 8);
  CHECK(x[{2, 3}].item<int>() == 11);
  CHECK(x[{Ellipsis{}, -1}].to_vector<int>() == std::vector<int>{3, 7, 11});
  CHECK(x[{0, Range{1, 3}}].to_vector<int>() == std::vector<int>{1, 2});
  CHECK(x[Range{.step = -2}].to_vector<int>() == std::vector<int>{8, 9, 10, 11, 0, 1, 2, 3});
  CHECK(x[{NewAxis{}, 0}].aval().to_string() == "i32[1,4]");
  CHECK(x[x > 9].to_vector<int>() == std::vector<int>{10, 11});
  CHECK(x[numpy::array({0, 2})].aval().to_string() == "i32[2,4]");
  const Array y = x.at({1, 2}).set(-5).at(0).add(10);
  CHECK(y.to_vector<int>() == std::vector<int>{10, 11, 12, 13, 4, 5, -5, 7, 8, 9, 10, 11});
  CHECK(x[{1, 2}].item<int>() == 6);
  const Array slope = grad([](const Array& v) -> Array { return v[1] * v[2]; })(f64({1, 2, 3}));
  CHECK(slope.to_vector<double>() == std::vector<double>{0, 3, 2});
}

TEST_CASE("methods and operators are NumPy's functions") {
  const Array x = f64({3, 1, 2});
  CHECK(x.sum().item<double>() == 6);
  CHECK(x.mean().item<double>() == 2);
  CHECK(x.std().item<double>() == doctest::Approx(std::sqrt(2.0 / 3)));
  CHECK(x.var({}, {}, 1).item<double>() == 1);
  CHECK(x.max().item<double>() == 3);
  CHECK(x.argmin().item<int>() == 1);
  CHECK(x.prod().item<double>() == 6);
  CHECK(x.cumsum().to_vector<double>() == std::vector<double>{3, 4, 6});
  CHECK(x.sort().to_vector<double>() == std::vector<double>{1, 2, 3});
  CHECK(x.clip(1.5, 2.5).to_vector<double>() == std::vector<double>{2.5, 1.5, 2});
  CHECK(x.dot(x).item<double>() == 14);
  CHECK(x.reshape({3, 1}).T().aval().to_string() == "f64[1,3]");
  CHECK(x.reshape({3, 1}).squeeze().ravel().aval().to_string() == "f64[3]");
  CHECK(x.astype(DType::int32).repeat(2).to_vector<int>() == std::vector<int>{3, 3, 1, 1, 2, 2});
  CHECK(x.take(numpy::array({2, 0})).to_vector<int>() == std::vector<int>{2, 3});
  CHECK(((x > 1) & ~(x >= 3)).to_vector<bool>() == std::vector<bool>{false, false, true});
  CHECK((x < 2).any().item<bool>());
  CHECK(!(x <= 2).all().item<bool>());
  CHECK(x.size() == Dim(3));
}

TEST_CASE("a template over double finds the functions of Array by its argument") {
  const double x = 0.7;
  CHECK(wave(Array(x)).item<double>() == doctest::Approx(wave(x)));
  const double h = 1e-6, slope = (wave(x + h) - wave(x - h)) / (2 * h);
  CHECK(grad([](const Array& v) -> Array { return wave(v); })(x).item<double>() ==
        doctest::Approx(slope).epsilon(1e-6));
  using namespace plait::numpy;  // the same function then, and not ambiguous
  CHECK(exp(Array(0.0)).item<double>() == 1);
}

TEST_CASE("errors of methods, subscripts and jitted calls name the line of the call") {
  const Array x = numpy::ones({2, 3});
  auto place = [](auto f) {
    try {
      f();
    } catch (const Error& error) {
      return error.source() ? error.source()->line : 0;
    }
    return -1;
  };
  auto step = jit([](const Array& a, const Array& b) -> Array { return numpy::matmul(a, b); });
  const std::function<Array(const Array&)> wrapped = [&](const Array& a) { return step(a, a); };
  const int line = __LINE__;
  CHECK(place([&] { x.reshape({7}); }) == line + 1);
  CHECK(place([&] { x.sum(2); }) == line + 2);
  CHECK(place([&] { x[5]; }) == line + 3);
  CHECK(place([&] { x.at({0, 9}).set(1.0); }) == line + 4);
  CHECK(place([&] { grad([](const Array& v) { return v; })(x); }) == line + 5);
  CHECK(place([&] { vmap([](const Array& v) { return v; }, 5)(x); }) == line + 6);
  CHECK(place([&] { wrapped(x); }) == line - 2);  // in the function, not where std calls it
}
