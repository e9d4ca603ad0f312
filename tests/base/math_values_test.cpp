// base/math: special values as C99 has them, and what is exact.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

using namespace plait;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

template <class T>
bool same_bits(T a, T b) {
  return math::to_bits(a) == math::to_bits(b);
}

template <class F>
void check_values(const std::string& name, F f,
                  const std::vector<std::pair<double, double>>& table) {
  for (const auto& row : table) {
    const double x = row.first, expected = row.second;
    CAPTURE(name);
    CAPTURE(x);
    const auto check = [&](auto y) {
      using T = decltype(y);
      if (std::isnan(expected))
        CHECK(std::isnan(y));
      else
        CHECK(same_bits(y, T(expected)));
    };
    check(f(x));
    check(f(static_cast<float>(x)));
    check(f(Pack<double, 4>(x))[3]);
    check(f(Pack<float, 8>(static_cast<float>(x)))[7]);
  }
}

}  // namespace

TEST_CASE("special values are C99's: NaN, infinities, signed zeros, domain errors, exact results") {
  using Table = std::vector<std::pair<double, double>>;
  const Table odd{{0, 0}, {-0.0, -0.0}, {quiet_nan, quiet_nan}, {1e-320, 1e-320}, {-1e-40, -1e-40}};
  const auto with = [](Table table, const Table& more) {
    table.insert(table.end(), more.begin(), more.end());
    return table;
  };
  constexpr double half_pi = 1.5707963267948966;
  check_values(
      "exp", [](auto x) { return math::exp(x); },
      {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, 0}, {quiet_nan, quiet_nan}, {1000, inf}, {-1000, 0}});
  check_values("exp2", [](auto x) { return math::exp2(x); },
               {{0, 1},
                {3, 8},
                {-4, 0.0625},
                {-149, 0x1p-149},
                {-126, 0x1p-126},
                {127, 0x1p127},
                {inf, inf},
                {-inf, 0},
                {quiet_nan, quiet_nan},
                {2000, inf}});
  check_values(
      "expm1", [](auto x) { return math::expm1(x); },
      with(odd, {{inf, inf}, {-inf, -1}, {-200, -1}, {1000, inf}}));
  check_values("sinh", [](auto x) { return math::sinh(x); }, with(odd, {{inf, inf}, {-inf, -inf}}));
  check_values("cosh", [](auto x) { return math::cosh(x); },
               {{0, 1}, {-0.0, 1}, {inf, inf}, {-inf, inf}, {quiet_nan, quiet_nan}});
  check_values(
      "tanh", [](auto x) { return math::tanh(x); },
      with(odd, {{inf, 1}, {-inf, -1}, {30, 1}, {-30, -1}}));
  check_values(
      "logistic", [](auto x) { return math::logistic(x); },
      {{0, 0.5}, {-0.0, 0.5}, {inf, 1}, {-inf, 0}, {quiet_nan, quiet_nan}, {100, 1}, {-800, 0}});
  const Table logarithm{{1, 0},     {0, -inf},         {-0.0, -inf},          {-1, quiet_nan},
                        {inf, inf}, {-inf, quiet_nan}, {quiet_nan, quiet_nan}};
  check_values("log", [](auto x) { return math::log(x); }, logarithm);
  check_values(
      "log2", [](auto x) { return math::log2(x); },
      with(logarithm, {{8, 3}, {0.25, -2}, {0x1p-149, -149}, {0x1p127, 127}}));
  check_values(
      "log10", [](auto x) { return math::log10(x); },
      with(logarithm, {{10, 1}, {100, 2}, {1000, 3}, {1e4, 4}, {1e5, 5}, {1e9, 9}, {1e10, 10}}));
  check_values(
      "log1p", [](auto x) { return math::log1p(x); },
      with(odd, {{-1, -inf}, {-2, quiet_nan}, {inf, inf}, {-inf, quiet_nan}}));
  check_values(
      "asinh", [](auto x) { return math::asinh(x); }, with(odd, {{inf, inf}, {-inf, -inf}}));
  check_values("acosh", [](auto x) { return math::acosh(x); },
               {{1, 0},
                {0.5, quiet_nan},
                {-3, quiet_nan},
                {inf, inf},
                {-inf, quiet_nan},
                {quiet_nan, quiet_nan}});
  check_values(
      "atanh", [](auto x) { return math::atanh(x); },
      with(odd, {{1, inf}, {-1, -inf}, {2, quiet_nan}, {inf, quiet_nan}}));
  check_values(
      "sin", [](auto x) { return math::sin(x); }, with(odd, {{inf, quiet_nan}, {-inf, quiet_nan}}));
  check_values("cos", [](auto x) { return math::cos(x); },
               {{0, 1}, {-0.0, 1}, {inf, quiet_nan}, {-inf, quiet_nan}, {quiet_nan, quiet_nan}});
  check_values(
      "tan", [](auto x) { return math::tan(x); }, with(odd, {{inf, quiet_nan}, {-inf, quiet_nan}}));
  check_values(
      "asin", [](auto x) { return math::asin(x); },
      with(odd, {{1, half_pi}, {-1, -half_pi}, {1.5, quiet_nan}, {inf, quiet_nan}}));
  check_values("acos", [](auto x) { return math::acos(x); },
               {{1, 0},
                {-1, 2 * half_pi},
                {0, half_pi},
                {-1.5, quiet_nan},
                {inf, quiet_nan},
                {quiet_nan, quiet_nan}});
  check_values(
      "atan", [](auto x) { return math::atan(x); },
      with(odd, {{inf, half_pi}, {-inf, -half_pi}, {1, half_pi / 2}}));
  check_values("erf", [](auto x) { return math::erf(x); },
               {{0, 0}, {-0.0, -0.0}, {inf, 1}, {-inf, -1}, {7, 1}, {quiet_nan, quiet_nan}});
  check_values("erfc", [](auto x) { return math::erfc(x); },
               {{0, 1}, {inf, 0}, {-inf, 2}, {30, 0}, {-30, 2}, {quiet_nan, quiet_nan}});
  check_values("erf_inv", [](auto x) { return math::erf_inv(x); },
               {{0, 0},
                {-0.0, -0.0},
                {1, inf},
                {-1, -inf},
                {1.5, quiet_nan},
                {-inf, quiet_nan},
                {quiet_nan, quiet_nan}});
  check_values("lgamma", [](auto x) { return math::lgamma(x); },
               {{1, 0},
                {2, 0},
                {0, inf},
                {-0.0, inf},
                {-3, inf},
                {inf, inf},
                {-inf, inf},
                {quiet_nan, quiet_nan}});
  check_values("digamma", [](auto x) { return math::digamma(x); },
               {{0, -inf},
                {-0.0, inf},
                {-3, quiet_nan},
                {inf, inf},
                {-inf, quiet_nan},
                {quiet_nan, quiet_nan}});
  check_values("cbrt", [](auto x) { return math::cbrt(x); },
               {{0, 0},
                {-0.0, -0.0},
                {8, 2},
                {-27, -3},
                {0x1p-126, 0x1p-42},
                {inf, inf},
                {-inf, -inf},
                {quiet_nan, quiet_nan}});
  check_values("round", [](auto x) { return math::round(x); },
               {{0.5, 0},
                {1.5, 2},
                {2.5, 2},
                {-0.5, -0.0},
                {-1.5, -2},
                {0x1p60, 0x1p60},
                {inf, inf},
                {quiet_nan, quiet_nan}});
  check_values("floor", [](auto x) { return math::floor(x); },
               {{1.5, 1}, {-1.5, -2}, {-0.0, -0.0}});
  check_values("ceil", [](auto x) { return math::ceil(x); }, {{1.5, 2}, {-0.5, -0.0}, {-1.5, -1}});
  check_values("trunc", [](auto x) { return math::trunc(x); },
               {{1.5, 1}, {-0.5, -0.0}, {-1.5, -1}});
  check_values("sqrt", [](auto x) { return math::sqrt(x); },
               {{4, 2}, {-0.0, -0.0}, {inf, inf}, {-1, quiet_nan}, {quiet_nan, quiet_nan}});
  check_values("abs", [](auto x) { return math::abs(x); }, {{-2, 2}, {-0.0, 0}, {-inf, inf}});
}

TEST_CASE("minimum and maximum keep NaN and order the zeros") {
  const std::vector<std::array<double, 4>> table{
      {1, 2, 1, 2}, {2, 1, 1, 2}, {-0.0, 0, -0.0, 0}, {0, -0.0, -0.0, 0}, {-inf, inf, -inf, inf}};
  for (const auto& row : table) {
    const double a = row[0], b = row[1], low = row[2], high = row[3];
    CHECK(same_bits(math::minimum(a, b), low));
    CHECK(same_bits(math::maximum(a, b), high));
    CHECK(same_bits(math::minimum(Pack<double, 4>(a), Pack<double, 4>(b))[2], low));
    CHECK(same_bits(math::maximum(Pack<float, 8>(float(a)), Pack<float, 8>(float(b)))[5],
                    float(high)));
  }
  for (double b : {1.0, quiet_nan}) {
    const double a = quiet_nan;
    CHECK(std::isnan(math::maximum(b, a)));
    CHECK(std::isnan(math::minimum(a, b)));
    CHECK(std::isnan(math::maximum(Pack<double, 4>(a), Pack<double, 4>(b))[1]));
  }
}

TEST_CASE("digamma keeps relative accuracy beside its positive zero") {
  // Values of mpmath.
  for (auto [x, expected] : {std::pair{1.4616321449683622, -9.24126552172942747920e-17},
                             std::pair{1.4616, -3.11062512303416496576e-05}})
    CHECK(std::abs(math::digamma(x) / expected - 1) < 1e-15);
}

TEST_CASE("partial loads read and write only their lanes") {
  const float src[3] = {1, 2, 3};
  float dst[4] = {9, 9, 9, 9};
  const auto x = Pack<float, 8>::load(src, 3);
  CHECK(x[2] == 3);
  CHECK(x[3] == 0);
  (x + 1.0f).store(dst, 3);
  CHECK(dst[2] == 4);
  CHECK(dst[3] == 9);
}

TEST_CASE("complex functions follow C99, and pow NumPy at zero") {
  using C = std::complex<double>;
  const auto close = [](C a, C b) { return std::abs(a - b) <= 1e-14 * std::abs(b); };
  CHECK(close(math::exp(C(1, 2)), std::exp(C(1, 2))));
  CHECK(math::sqrt(C(-4, -0.0)) == C(0, -2));
  CHECK(math::log(C(-1, 0)).imag() == doctest::Approx(3.141592653589793));
  CHECK(math::pow(C(0, 0), C(0, 0)) == C(1, 0));
  CHECK(math::pow(C(0, 0), C(2, 1)) == C(0, 0));
  CHECK(std::isnan(math::pow(C(0, 0), C(-1, 0)).real()));
  CHECK(math::pow(C(0, 1), C(2, 0)) == C(-1, 0));
  CHECK(math::pow(C(1, 1), C(-2, 0)) == C(0, -0.5));
  CHECK(close(math::pow(C(1.5, -0.25), C(0.75, 2)), std::pow(C(1.5, -0.25), C(0.75, 2))));
  CHECK(close(math::pow(C(-2, 0), C(0.5, 0)), std::pow(C(-2, 0), C(0.5, 0))));
  CHECK(math::pow(C(4, 0), C(0.5, 0)) == C(2, 0));
  const std::complex<float> z(0.3f, -1.2f);
  CHECK(math::tanh(z) == std::complex<float>(std::tanh(C(z))));
  CHECK(math::pow(z, std::complex<float>(3, 0)) == std::complex<float>(math::pow(C(z), C(3, 0))));
}
