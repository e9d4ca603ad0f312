// The routines of base/math that have no vector form: Payne-Hanek reduction, lgamma, digamma,
// complex pow.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/math.h>
#include <plait/base/math/special.h>

#include <array>
#include <cstdint>

namespace plait::math {
namespace {

// 2/pi in binary, 64 bits a word, after one word of zeros: bit b of word w weighs 2^-(64 (w-1) +
// b+1), b = 0 the highest.
constexpr std::array<std::uint64_t, 21> two_over_pi = {0,
                                                       0xa2f9836e4e441529,
                                                       0xfc2757d1f534ddc0,
                                                       0xdb6295993c439041,
                                                       0xfe5163abdebbc561,
                                                       0xb7246e3a424dd2e0,
                                                       0x06492eea09d1921c,
                                                       0xfe1deb1cb129a73e,
                                                       0xe88235f52ebb4484,
                                                       0xe99c7026b45f7e41,
                                                       0x3991d639835339f4,
                                                       0x9c845f8bbdf9283b,
                                                       0x1ff897ffde05980f,
                                                       0xef2f118b5a0a6d1f,
                                                       0x6d367ecf27cb09b7,
                                                       0x4f463f669e5fea2d,
                                                       0x7527bac7ebe5f17b,
                                                       0x3d0739f78a5292ea,
                                                       0x6bfb5fb11f8d5d08,
                                                       0x56033046fc7b6bab,
                                                       0xf0cfbc209af4361d};

constexpr double pi_low = 1.2246467991473532e-16;
using Wide = unsigned __int128;

// The 64 bits of 2/pi from the one of weight 2^-(bit + 1) on; bit >= -64.
std::uint64_t window(int bit) {
  const int word = (bit + 64) / 64, offset = (bit + 64) % 64;
  const std::uint64_t high = two_over_pi[word] << offset;
  return offset == 0 ? high : high | two_over_pi[word + 1] >> (64 - offset);
}

}  // namespace

// x = m 2^e with an integer m. The bits of 2/pi above 2^-(e - 2) contribute multiples of 4 turns
// and are left out; the 192 bits that follow, times m, modulo 2^192, are x 2/pi modulo 4.
QuarterTurns reduce_quarter_turns(double x) {
  const std::uint64_t bits = to_bits(abs(x));
  const int exponent = static_cast<int>(bits >> 52);
  if (exponent == 0x7ff) return {Format<double>::nan, 0, 0};
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
  const double unit = from_bits(static_cast<std::uint64_t>(1023 - 53 - zeros) << 52);
  const double high = static_cast<double>(p2 >> 11) * unit;
  const double low_part = static_cast<double>((p2 & 0x7ff) << 42 | p1 >> 22) * (unit * 0x1p-53);
  constexpr double half_pi = 1.5707963267948966, half_pi_low = 6.123233995736766e-17;
  const double r = product(high, half_pi);
  const double r_low = fma(low_part, half_pi, fma(high, half_pi_low, fma(high, half_pi, -r)));
  const double sum = r + r_low, sum_low = (r - sum) + r_low;
  const bool is_flipped = is_negative != (x < 0);
  return {is_flipped ? -sum : sum, is_flipped ? -sum_low : sum_low, x < 0 ? -n : n};
}

namespace {

// lgamma(x) / ((x - 1) (x - 2)) - 1/2 on [1/2, 5/2] in x - 1/2, a quotient: a value of at most
// 0.27, whose error is small in the sum with 1/2. All poles are far to the left, so that the
// denominator's coefficients are positive and nothing cancels.
constexpr std::array gamma_p{0.2631532572329335,   1.1708570071740554,   1.4745256014629042,
                             -0.30771076290637467, -1.9555328864993173,  -1.4463640349472733,
                             -0.4082663276995493,  -0.04257801246211987, -0.0011411463608446482};
constexpr std::array gamma_q{1.0,
                             6.6645385317387875,
                             17.638806498555944,
                             23.708205579146735,
                             17.215649827134,
                             6.6643383647600425,
                             1.2762384176263932,
                             0.10253081311545043,
                             0.0023273513553834207};
// (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) x in 1 / x^2, for x >= 8.
constexpr std::array stirling{
    0.08333333333333333,   -0.0027777777777547906, 0.0007936507750389146, -0.0005952324853114118,
    0.0008409560410124847, -0.0018607620492191086, 0.004427269529603458};

// digamma(1 + t) / (1 + t - root) on [0, 2], and (log x - 1/2x - digamma(x)) x^2 in 1 / x^2.
constexpr double digamma_root = 1.4616321449683622, digamma_root_low = 9.549995429965697e-17;
constexpr std::array digamma_p{1.2503801375034054,   1.937328882480891,    1.0705702703490372,
                               0.2641911705597156,   0.029345105375746975, 0.0012712452487616964,
                               1.360793254748093e-05};
constexpr std::array digamma_q{1.0,
                               2.232938735461219,
                               1.7807223924191358,
                               0.6561907944232935,
                               0.117893783725478,
                               0.009796509832400149,
                               0.0003120765233519945,
                               2.2104869807909823e-06};
constexpr std::array digamma_far{
    0.08333333333333333,  -0.008333333333316898, 0.003968253951812853, -0.004166659311138325,
    0.007574037683825566, -0.020872894289113857, 0.06851990318067076};

// Horner's rule: slower than polynomial, but where all terms have one sign, only one rounding is at
// full size.
template <std::size_t n>
double horner(double x, const std::array<double, n>& c) {
  double sum = c[n - 1];
  for (std::size_t i = n - 1; i-- > 0;) sum = fma(sum, x, c[i]);
  return sum;
}

}  // namespace

double lgamma_above_one(double y) {
  const double t = y + 0.5;
  return fma(y, y, -y) * (0.5 + horner(t, gamma_p) / horner(t, gamma_q));
}
double stirling_remainder(double x) {
  const double inverse = 1 / x;
  return inverse * polynomial(inverse * inverse, stirling);
}

// A quotient around the zeros 1 and 2, the recurrence up to 8, Stirling's series beyond; the
// reflection Gamma(x) Gamma(-x) = -pi / (x sin(pi x)) on the left.
double lgamma(double x) {
  if (is_nan(x)) return x;
  if (x <= 0) {
    const double y = -x, turn = y - round(y);
    if (turn == 0 || is_nan(turn)) return Format<double>::infinity;  // a pole, or -infinity
    if (y < 0x1p-60) return -log(y);
    return log(pi / (y * abs(sin(pi * turn)))) - lgamma(y);
  }
  if (x < 0.5) return lgamma_above_one(x) - log(x);
  if (x < 2.5) return lgamma_above_one(x - 1);
  if (x < 8) {
    double factor = 1;
    while (x >= 2.5) x -= 1, factor *= x;
    return lgamma_above_one(x - 1) + log(factor);
  }
  constexpr double half_log_2pi_minus_half = 0.4189385332046728;
  return fma(x - 0.5, log(x) - 1, stirling_remainder(x) + half_log_2pi_minus_half);
}

// A quotient around the positive zero, the recurrence below 1 and from 2.5, where its terms have
// one sign, the asymptotic series from 10; the reflection digamma(x) = digamma(1 - x) - pi / tan(pi
// x) on the left.
double digamma(double x) {
  if (abs(x) < 0x1p-60) return -1 / x;
  if (x < 0) {
    const double turn = x - round(x);
    if (!(turn != 0) || is_nan(turn)) return Format<double>::nan;
    // cot(angle + low) is about cot(angle) - low (1 + cot(angle)^2).
    const double angle = pi * turn, low = fma(pi_low, turn, fma(pi, turn, -angle));
    const double cot = 1 / tan(angle);
    return fma(-pi, fma(-(low * cot), cot, cot - low), digamma(1 - x));
  }
  if (x >= 10) {
    const double inverse = 1 / x, z = inverse * inverse;
    return log(x) - fma(z, polynomial(z, digamma_far), 0.5 * inverse);
  }
  double sum = 0;
  while (x > 2.5) x -= 1, sum += 1 / x;
  while (x < 1) sum -= 1 / x, x += 1;
  const double distance = (x - digamma_root) - digamma_root_low;
  return fma(distance, horner(x - 1, digamma_p) / horner(x - 1, digamma_q), sum);
}

namespace {

// The textbook product: infinities need no recovery here, and NaN may stay.
std::complex<double> multiply(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

std::complex<double> integer_power(std::complex<double> z, int n) {
  std::complex<double> power = 1;
  for (int left = n < 0 ? -n : n; left != 0; left /= 2) {
    if (left % 2 != 0) power = multiply(power, z);
    z = multiply(z, z);
  }
  return n < 0 ? 1.0 / power : power;
}

}  // namespace

std::complex<double> pow(std::complex<double> z, std::complex<double> w) {
  const double c = w.real(), d = w.imag();
  if (c == 0 && d == 0) return 1;
  if (z == 0.0)
    return c > 0 ? std::complex<double>(0) : std::complex<double>(std::nan(""), std::nan(""));
  if (!std::isfinite(z.real() + z.imag()) || !std::isfinite(c + d)) return std::pow(z, w);
  if (d == 0 && abs(c) <= 64 && c == trunc(c)) {
    const std::complex<double> power = integer_power(z, static_cast<int>(c));
    if (std::isfinite(power.real() + power.imag())) return power;
  }
  const double modulus = std::hypot(z.real(), z.imag()), angle = atan2(z.imag(), z.real());
  double size = pow(modulus, c);
  double turn = c * angle;
  if (d != 0) {
    const double logarithm = std::log(z).real();
    size *= exp(-d * angle);
    if (!std::isfinite(size)) size = exp(c * logarithm - d * angle);  // infinity times 0
    turn = fma(d, logarithm, turn);
  }
  // A real power stays real, even where its magnitude is infinite.
  return {size * cos(turn), turn == 0 ? turn : size * sin(turn)};
}

}  // namespace plait::math
