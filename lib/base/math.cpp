// The routines of base/math that have no vector form: Payne-Hanek reduction, lgamma, digamma.
// SPDX-License-Identifier: Apache-2.0
#include "plait/base/math.h"

#include <array>
#include <cstdint>

namespace plait::math {
namespace {

// 2/pi in binary, 64 bits a word, after one word of zeros: bit b of word w weighs 2^-(64 (w-1) + b+1),
// b = 0 the highest.
constexpr std::array<std::uint64_t, 21> two_over_pi = {
    0,
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

constexpr double pi = 3.141592653589793;
using Wide = unsigned __int128;

// 64 bits of 2/pi from the one that weighs 2^-(bit + 1) on; bit >= -64.
std::uint64_t window(int bit) {
  const int word = (bit + 64) / 64, offset = (bit + 64) % 64;
  const std::uint64_t high = two_over_pi[word] << offset;
  return offset == 0 ? high : high | two_over_pi[word + 1] >> (64 - offset);
}

}  // namespace

// x = m 2^e with an integer m. The bits of 2/pi above 2^-(e - 2) contribute multiples of 4 turns and
// are left out; the 192 bits that follow, times m, modulo 2^192, are x 2/pi modulo 4.
QuarterTurns reduce_quarter_turns(double x) {
  const std::int64_t bits = to_bits(abs(x));
  const int exponent = static_cast<int>(bits >> 52);
  if (exponent == 0x7ff) return {x - x, 0};
  if (exponent < 1023) return {x, 0};  // below 1 only in error: callers come with large x
  const std::uint64_t m = (bits & Format<double>::mantissa_mask) | std::uint64_t{1} << 52;
  const int first = exponent - 1075 - 2;
  const Wide low = Wide{m} * window(first + 128);
  const Wide middle = Wide{m} * window(first + 64) + static_cast<std::uint64_t>(low >> 64);
  std::uint64_t p2 = m * window(first) + static_cast<std::uint64_t>(middle >> 64);
  std::uint64_t p1 = static_cast<std::uint64_t>(middle), p0 = static_cast<std::uint64_t>(low);

  // Two integer bits, then the fraction, made signed by rounding to the nearest quarter turn.
  int n = static_cast<int>(p2 >> 62);
  p2 <<= 2, p2 |= p1 >> 62, p1 <<= 2, p1 |= p0 >> 62, p0 <<= 2;
  const bool is_negative = p2 >> 63;
  if (is_negative) {
    n += 1;
    p2 = ~p2, p1 = ~p1, p0 = ~p0;  // minus one unit of 2^-192: below the precision kept
  }
  int zeros = p2 != 0 ? std::countl_zero(p2) : 64 + std::countl_zero(p1);
  if (zeros >= 64) p2 = p1, p1 = p0, p0 = 0;
  if (const int shift = zeros % 64; shift != 0)
    p2 = p2 << shift | p1 >> (64 - shift), p1 = p1 << shift | p0 >> (64 - shift);
  // The fraction in two doubles of 53 bits, times pi/2 in two.
  const double unit = from_bits(std::int64_t{1023 - 53 - zeros} << 52);
  const double high = static_cast<double>(p2 >> 11) * unit;
  const double low_part = static_cast<double>((p2 & 0x7ff) << 42 | p1 >> 22) * (unit * 0x1p-53);
  constexpr double half_pi = 1.5707963267948966, half_pi_low = 6.123233995736766e-17;
  const double r = product(high, half_pi);
  const double r_low = fma(low_part, half_pi, fma(high, half_pi_low, fma(high, half_pi, -r)));
  const double sum = r + r_low;
  if (to_bits(x) < 0) return {is_negative ? sum : -sum, -n};
  return {is_negative ? -sum : sum, n};
}

namespace {

// lgamma(1 + y) / y and lgamma(2 + y) / y on [-1/2, 1/2], quotients.
constexpr std::array gamma1_p{-0.5772156649015329, -1.3950015763749022, -0.6706060200330016,
                              0.8935180585781445,  1.1606690733316165,  0.49691955263778426,
                              0.08691580848376548, 0.0048007683861564406};
constexpr std::array gamma1_q{1.0,
                              3.8416639475252166,
                              5.941561437985147,
                              4.72007564834048,
                              2.0318821639591285,
                              0.4564916254387694,
                              0.04623436500717106,
                              0.0013537821823661187,
                              -6.993695339364846e-06};
constexpr std::array gamma2_p{0.42278433509846713, 0.951376472017773,    0.7656265416764313,
                              0.2826326006222639,  0.04907030189022551,  0.003541742187415545,
                              6.963618032635354e-05};
constexpr std::array gamma2_q{1.0,
                              1.4875419602459625,
                              0.835640231639472,
                              0.2194375049444628,
                              0.026874146167842936,
                              0.001307976782397977,
                              1.5027047085904027e-05};
// (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) x in 1 / x^2, for x >= 8.
constexpr std::array stirling{0.08333333333333333,   -0.0027777777777547906, 0.0007936507750389146,
                              -0.0005952324853114118, 0.0008409560410124847,
                              -0.0018607620492191086, 0.004427269529603458};

// digamma(1 + t) / (1 + t - root) on [0, 1], and (log x - 1/2x - digamma(x)) x^2 in 1 / x^2.
constexpr double digamma_root = 1.4616321449683622, digamma_root_low = 9.549995429965697e-17;
constexpr std::array digamma_p{1.2503801375034054,  1.7839106586730005,   0.8597262554486731,
                               0.16872638221813457, 0.01244789354562984, 0.00022696134043070435};
constexpr std::array digamma_q{1.0,
                               2.1102414698806764,
                               1.528229135619322,
                               0.48108940524366595,
                               0.06652201970968959,
                               0.0034603818348764217,
                               4.012498549171845e-05};
constexpr std::array digamma_far{0.08333333333333333,   -0.008333333333316898, 0.003968253951812853,
                                 -0.004166659311138325, 0.007574037683825566,
                                 -0.020872894289113857, 0.06851990318067076};

double near_one(double y) { return y * (polynomial(y, gamma1_p) / polynomial(y, gamma1_q)); }
double near_two(double y) { return y * (polynomial(y, gamma2_p) / polynomial(y, gamma2_q)); }

}  // namespace

// Quotients around the zeros 1 and 2, the recurrence up to 8, Stirling's series beyond; the reflection
// Gamma(x) Gamma(-x) = -pi / (x sin(pi x)) on the left.
double lgamma(double x) {
  if (is_nan(x)) return x;
  if (x <= 0) {
    const double y = -x, turn = y - round(y);
    if (turn == 0) return Format<double>::infinity;  // the poles, and -infinity's NaN is next
    if (is_nan(turn)) return Format<double>::infinity;
    if (y < 0x1p-60) return -log(y);
    return log(pi / (y * abs(sin(pi * turn)))) - lgamma(y);
  }
  if (x < 0.5) return fma(near_one(x), 1.0, -log(x));
  if (x < 1.5) return near_one(x - 1);
  if (x < 2.5) return near_two(x - 2);
  if (x < 8) {
    double factor = 1;
    while (x >= 2.5) x -= 1, factor *= x;
    return fma(near_two(x - 2), 1.0, log(factor));
  }
  const double inverse = 1 / x;
  const double series = inverse * polynomial(inverse * inverse, stirling);
  constexpr double half_log_2pi_minus_half = 0.4189385332046728;
  return fma(x - 0.5, log(x) - 1, fma(series, 1.0, half_log_2pi_minus_half));
}

// A quotient around the positive zero, the recurrence between 0 and 10, the asymptotic series beyond;
// the reflection digamma(x) = digamma(1 - x) - pi / tan(pi x) on the left.
double digamma(double x) {
  if (x == 0) return copysign(Format<double>::infinity, -x);
  if (x < 0) {
    const double turn = x - round(x);
    if (!(turn != 0) || is_nan(turn)) return Format<double>::nan;
    return digamma(1 - x) - pi / tan(pi * turn);
  }
  if (x >= 10) {
    const double inverse = 1 / x, z = inverse * inverse;
    return log(x) - fma(z, polynomial(z, digamma_far), 0.5 * inverse);
  }
  double sum = 0;
  while (x > 2) x -= 1, sum += 1 / x;
  while (x < 1) sum -= 1 / x, x += 1;
  const double distance = (x - digamma_root) - digamma_root_low;
  return fma(distance, polynomial(x - 1, digamma_p) / polynomial(x - 1, digamma_q), sum);
}

}  // namespace plait::math
