// base/math: accuracy against the C library in a wider type, equal bits in packs and scalars,
// special values as C99 has them.
//
// PLAIT_MATH_STRIDE=1 visits every float (hours); PLAIT_MATH_REPORT=1 prints the errors found and
// the time per element.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace plait;

namespace {

template <class T>
using NativePack = Pack<T, 32 / sizeof(T)>;
template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, long double>;

constexpr double pi = 3.141592653589793;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

bool is_reporting() { return std::getenv("PLAIT_MATH_REPORT") != nullptr; }

template <class T>
bool same_bits(T a, T b) {
  return math::to_bits(a) == math::to_bits(b);
}

// |y - exact| in units of the last place of exact, or of floor where exact is below it. A large
// number where one is NaN and the other is not, or the infinities differ.
template <class T>
double error_in_ulps(T y, Wider<T> exact, Wider<T> floor) {
  using L = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(y)) return std::isnan(exact) && std::isnan(y) ? 0 : 1e30;
  if (same_bits(y, static_cast<T>(exact))) return std::isinf(y) ? 0 : 0.5;
  if (std::isinf(y) || std::isinf(static_cast<T>(exact))) {
    // One step from overflow either way is an error of one place.
    return std::min(std::abs(static_cast<T>(exact)), std::abs(y)) >
                   L::max() * (1 - 2 * L::epsilon())
               ? 1
               : 1e30;
  }
  const Wider<T> size = std::max(std::abs(exact), floor);
  const int exponent = std::max(std::ilogb(size), L::min_exponent - 1);
  return static_cast<double>(std::abs(y - exact) /
                             std::scalbn(Wider<T>(1), exponent - (L::digits - 1)));
}

// Floats by a stride through all bit patterns; doubles at random, over all patterns and near 0.
template <class T>
std::vector<T> samples() {
  std::vector<T> xs;
  if constexpr (std::is_same_v<T, float>) {
    const char* text = std::getenv("PLAIT_MATH_STRIDE");
    const std::uint64_t stride = text ? std::strtoull(text, nullptr, 10) : 8191;
    for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += stride)
      xs.push_back(math::from_bits(static_cast<std::uint32_t>(bits)));
  } else {
    std::mt19937_64 random(1);
    const char* text = std::getenv("PLAIT_MATH_SAMPLES");
    const int count = text ? std::atoi(text) : 40000;
    for (int i = 0; i < count; ++i) xs.push_back(math::from_bits(std::uint64_t{random()}));
    for (double scale : {0.25, 1.0, 2.0, 8.0, 30.0, 200.0, 760.0, 1e5, 1e9})
      for (int i = 0; i < count; ++i)
        xs.push_back(std::uniform_real_distribution<double>(-scale, scale)(random));
    for (double x = -40; x <= 40; x += 0.25)
      for (double step : {-1.0, 0.0, 1.0}) xs.push_back(std::nextafter(x, x + step));
  }
  for (double x : {0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, inf, -inf, quiet_nan})
    xs.push_back(T(x));
  while (xs.size() % NativePack<T>::width != 0) xs.push_back(T(0.75));
  return xs;
}

template <class T, class F>
double nanoseconds(F f, T low, T high) {
  std::vector<T> xs(4096), ys(4096);
  std::mt19937 random(2);
  for (T& x : xs) x = std::uniform_real_distribution<T>(low, high)(random);
  double best = inf;
  for (int round = 0; round < 200; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < xs.size(); i += NativePack<T>::width)
      f(NativePack<T>::load(&xs[i])).store(&ys[i]);
    asm volatile("" : : "r"(ys.data()) : "memory");  // the stores count as read
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / xs.size());
  }
  return best;
}

struct Range {
  double low, high;
};

using Floor = double (*)(double x);
double no_floor(double) { return 0; }

template <class T, class F, class Exact>
void check_unary(const std::string& name, F f, Exact exact, double limit, Range timed,
                 Floor floor) {
  static const std::vector<T> xs = samples<T>();
  using V = NativePack<T>;
  double worst = 0;
  T worst_x = 0;
  std::size_t unequal = 0;
  for (std::size_t i = 0; i < xs.size(); i += V::width) {
    const V ys = f(V::load(&xs[i]));
    for (int lane = 0; lane < V::width; ++lane) {
      const T x = xs[i + lane], y = ys[lane];
      unequal += !same_bits(f(x), y);
      const double error = error_in_ulps<T>(y, exact(Wider<T>(x)), floor(x));
      if (error > worst) worst = error, worst_x = x;
    }
  }
  if (is_reporting())
    std::printf("%-10s %s  %8.3f ulp at %-24.17g %6.2f ns\n", name.c_str(),
                sizeof(T) == 4 ? "f32" : "f64", worst, double(worst_x),
                nanoseconds<T>(f, T(timed.low), T(timed.high)));
  CAPTURE(name);
  CAPTURE(sizeof(T));
  CAPTURE(worst_x);
  CHECK(worst <= limit);
  CHECK(unequal == 0);  // packs and scalars
}

// limit32 and limit64 in ulp.
template <class F, class Exact>
void check_both(const std::string& name, F f, Exact exact, double limit32, double limit64,
                Range timed, Floor floor = no_floor) {
  check_unary<float>(name, f, exact, limit32, timed, floor);
  check_unary<double>(name, f, exact, limit64, timed, floor);
}

long double exact_digamma(long double x) {
  if (x == 0) return std::copysign(inf, -x);
  if (std::isnan(x) || (x < 0 && (x == std::floor(x)))) return quiet_nan;
  constexpr long double exact_pi = 3.14159265358979323846264338327950288L;
  if (x < 0) return exact_digamma(1 - x) - exact_pi / std::tan(exact_pi * (x - std::round(x)));
  long double sum = 0;
  for (; x < 40; x += 1) sum -= 1 / x;
  const long double z = 1 / (x * x);
  return sum + std::log(x) - 0.5L / x -
         z * (1 / 12.L - z * (1 / 120.L - z * (1 / 252.L - z * (1 / 240.L - z / 132))));
}

long double exact_erf_inv(long double x) {
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? x * inf : quiet_nan;
  if (x == 0) return x;
  const long double a = std::abs(x);
  long double y = math::erf_inv(static_cast<double>(a));
  if (!std::isfinite(y)) y = 5.8L;
  for (int i = 0; i < 4; ++i) {
    const long double error = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const long double u = error * 0.886226925452758013649083741671L * std::exp(y * y);
    y -= u / (1 + u * y);
  }
  return std::copysign(y, x);
}

}  // namespace

TEST_CASE("exponentials are accurate, and equal in packs and scalars") {
  check_both(
      "exp", [](auto x) { return math::exp(x); }, [](auto x) { return std::exp(x); }, 1.1, 1.1,
      {-10, 10});
  check_both(
      "exp2", [](auto x) { return math::exp2(x); }, [](auto x) { return std::exp2(x); }, 1.0, 1.0,
      {-10, 10});
  check_both(
      "expm1", [](auto x) { return math::expm1(x); }, [](auto x) { return std::expm1(x); }, 1.5,
      1.5, {-2, 2});
  check_both(
      "sinh", [](auto x) { return math::sinh(x); }, [](auto x) { return std::sinh(x); }, 2.0, 2.0,
      {-3, 3});
  check_both(
      "cosh", [](auto x) { return math::cosh(x); }, [](auto x) { return std::cosh(x); }, 2.0, 2.0,
      {-3, 3});
  check_both(
      "tanh", [](auto x) { return math::tanh(x); }, [](auto x) { return std::tanh(x); }, 1.5, 1.5,
      {-3, 3});
  check_both(
      "logistic", [](auto x) { return math::logistic(x); },
      [](auto x) {
        const auto e = std::exp(-std::abs(x));
        return (x < 0 ? e : 1) / (1 + e);
      },
      2.0, 2.0, {-5, 5});
}

TEST_CASE("logarithms are accurate, and equal in packs and scalars") {
  check_both(
      "log", [](auto x) { return math::log(x); }, [](auto x) { return std::log(x); }, 1.1, 1.1,
      {0.01, 10});
  check_both(
      "log2", [](auto x) { return math::log2(x); }, [](auto x) { return std::log2(x); }, 1.2, 1.2,
      {0.01, 10});
  check_both(
      "log10", [](auto x) { return math::log10(x); }, [](auto x) { return std::log10(x); }, 1.5,
      1.5, {0.01, 10});
  check_both(
      "log1p", [](auto x) { return math::log1p(x); }, [](auto x) { return std::log1p(x); }, 1.5,
      1.5, {-0.5, 2});
  check_both(
      "asinh", [](auto x) { return math::asinh(x); }, [](auto x) { return std::asinh(x); }, 1.0,
      2.5, {-3, 3});
  check_both(
      "acosh", [](auto x) { return math::acosh(x); }, [](auto x) { return std::acosh(x); }, 1.0,
      2.5, {1, 5});
  check_both(
      "atanh", [](auto x) { return math::atanh(x); }, [](auto x) { return std::atanh(x); }, 1.0,
      2.5, {-1, 1});
}

TEST_CASE("circular functions are accurate, and equal in packs and scalars") {
  check_both(
      "sin", [](auto x) { return math::sin(x); }, [](auto x) { return std::sin(x); }, 1.5, 1.5,
      {-10, 10});
  check_both(
      "cos", [](auto x) { return math::cos(x); }, [](auto x) { return std::cos(x); }, 1.5, 1.5,
      {-10, 10});
  check_both(
      "tan", [](auto x) { return math::tan(x); }, [](auto x) { return std::tan(x); }, 2.0, 2.0,
      {-10, 10});
  check_both(
      "asin", [](auto x) { return math::asin(x); }, [](auto x) { return std::asin(x); }, 2.0, 2.0,
      {-1, 1});
  check_both(
      "acos", [](auto x) { return math::acos(x); }, [](auto x) { return std::acos(x); }, 2.0, 2.0,
      {-1, 1});
  check_both(
      "atan", [](auto x) { return math::atan(x); }, [](auto x) { return std::atan(x); }, 2.0, 2.0,
      {-4, 4});
}

TEST_CASE("error and gamma functions are accurate, and equal in packs and scalars") {
  check_both(
      "erf", [](auto x) { return math::erf(x); }, [](auto x) { return std::erf(x); }, 1.5, 1.5,
      {-3, 3});
  check_both(
      "erfc", [](auto x) { return math::erfc(x); }, [](auto x) { return std::erfc(x); }, 1.0, 4.0,
      {-3, 3});
  check_both(
      "erf_inv", [](auto x) { return math::erf_inv(x); },
      [](auto x) { return static_cast<decltype(x)>(exact_erf_inv(x)); }, 1.0, 4.0, {-1, 1});
  check_both(
      "lgamma", [](auto x) { return math::lgamma(x); }, [](auto x) { return std::lgamma(x); }, 1.0,
      4.0, {0, 10}, [](double x) { return x < 0 ? std::max(1.0, std::abs(std::lgamma(-x))) : 0; });
  check_both(
      "digamma", [](auto x) { return math::digamma(x); },
      [](auto x) { return static_cast<decltype(x)>(exact_digamma(x)); }, 1.0, 4.0, {0, 12},
      [](double x) {  // on the left, of the larger of the two terms of the reflection
        if (x > 0) return 0.01;
        return std::log(1 - x) + std::abs(pi / std::tan(pi * (x - std::round(x))));
      });
  check_both(
      "cbrt", [](auto x) { return math::cbrt(x); }, [](auto x) { return std::cbrt(x); }, 1.0, 1.0,
      {-10, 10});
}

TEST_CASE_TEMPLATE("sin and cos keep relative accuracy beside multiples of pi/2", T, float,
                   double) {
  constexpr long double half_pi = 1.57079632679489661923132169163975144L;
  double worst = 0;
  for (double step : {1.0, 1e6 + 1, 1e15 + 1})
    for (int i = 1; i < 20000; ++i) {
      const T x = static_cast<T>(i * step * half_pi);
      for (T y : {x, std::nextafter(x, T(0)), -x}) {
        worst = std::max(worst, error_in_ulps<T>(math::sin(y), std::sin(Wider<T>(y)), 0));
        worst = std::max(worst, error_in_ulps<T>(math::cos(y), std::cos(Wider<T>(y)), 0));
      }
    }
  CHECK(worst <= 1.5);
}

TEST_CASE("cos of the double nearest to a multiple of pi/2") {
  const double x = std::ldexp(6381956970095103.0, 797);  // Muller, Elementary Functions
  CHECK(math::cos(x) == -4.68716592425462761112e-19);
  CHECK(math::sin(x) == 1);
}

namespace {

// Pairs of moderate size, of any size, and of special values.
template <class T>
std::vector<std::pair<T, T>> sample_pairs() {
  std::vector<std::pair<T, T>> pairs;
  std::mt19937_64 random(3);
  const char* text = std::getenv("PLAIT_MATH_SAMPLES");
  const int count = text ? std::atoi(text) : 40000;
  const auto any_value = [&] { return math::from_bits(static_cast<BitsOf<T>>(random())); };
  const auto add = [&](T x, T y) { pairs.emplace_back(x, y); };
  for (int i = 0; i < count; ++i) {
    const T x = any_value(), y = any_value();
    add(x, y);
  }
  for (T range : {T(1), T(3), T(40)})
    for (int i = 0; i < count; ++i) {
      std::uniform_real_distribution<T> around(-range, range);
      const T x = around(random), y = around(random);
      add(x, y);
      add(std::abs(x), y * 10);
      add(std::exp(x), std::exp(y));
      add(1 + x * T(1e-4), y * T(1e4));
    }
  const T specials[] = {T(0),
                        T(-0.0),
                        T(1),
                        T(-1),
                        T(2),
                        T(-2),
                        T(3),
                        T(-3),
                        T(0.5),
                        T(-0.5),
                        T(2.5),
                        T(inf),
                        T(-inf),
                        T(quiet_nan),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::lowest(),
                        std::numeric_limits<T>::min(),
                        std::numeric_limits<T>::denorm_min(),
                        -std::numeric_limits<T>::denorm_min()};
  for (T x : specials)
    for (T y : specials) add(x, y);
  while (pairs.size() % NativePack<T>::width != 0) add(1, 1);
  return pairs;
}

template <class T, class F, class Exact>
void check_binary(const std::string& name, F f, Exact exact, double limit) {
  static const auto pairs = sample_pairs<T>();
  using V = NativePack<T>;
  double worst = 0;
  T worst_x = 0, worst_y = 0;
  std::size_t unequal = 0, wrong_zeros = 0;
  for (std::size_t i = 0; i < pairs.size(); i += V::width) {
    V xs, ys;
    for (int lane = 0; lane < V::width; ++lane)
      xs.v[lane] = pairs[i + lane].first, ys.v[lane] = pairs[i + lane].second;
    const V zs = f(xs, ys);
    for (int lane = 0; lane < V::width; ++lane) {
      const T x = xs[lane], y = ys[lane], z = zs[lane];
      const Wider<T> expected = exact(Wider<T>(x), Wider<T>(y));
      unequal += !same_bits(f(x, y), z);
      wrong_zeros += expected == 0 && std::signbit(expected) != std::signbit(z);
      const double error = error_in_ulps<T>(z, expected, 0);
      if (error > worst) worst = error, worst_x = x, worst_y = y;
    }
  }
  if (is_reporting())
    std::printf("%-10s %s  %8.3f ulp at %.17g, %.17g %6.2f ns\n", name.c_str(),
                sizeof(T) == 4 ? "f32" : "f64", worst, double(worst_x), double(worst_y),
                nanoseconds<T>([&](auto x) { return f(x, decltype(x)(T(1.75))); }, T(0.1), T(9)));
  CAPTURE(name);
  CAPTURE(sizeof(T));
  CAPTURE(worst_x);
  CAPTURE(worst_y);
  CHECK(worst <= limit);
  CHECK(unequal == 0);
  CHECK(wrong_zeros == 0);
}

template <class F, class Exact>
void check_both(const std::string& name, F f, Exact exact, double limit32, double limit64) {
  check_binary<float>(name, f, exact, limit32);
  check_binary<double>(name, f, exact, limit64);
}

}  // namespace

TEST_CASE(
    "pow, atan2 and rem are accurate, equal in packs and scalars, and C99's at special values") {
  check_both(
      "pow", [](auto x, auto y) { return math::pow(x, y); },
      [](auto x, auto y) { return std::pow(x, y); }, 1.0, 1.0);
  check_both(
      "atan2", [](auto y, auto x) { return math::atan2(y, x); },
      [](auto y, auto x) { return std::atan2(y, x); }, 2.0, 2.0);
  check_both(
      "rem", [](auto x, auto y) { return math::rem(x, y); },
      [](auto x, auto y) { return std::fmod(x, y); }, 0.5, 0.5);
}
