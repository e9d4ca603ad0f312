// Roots of unity, and the sizes that transforms like.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

namespace plait::fourier {

// exp(-2 pi i t / n) for 0 <= t, from an angle of at most an eighth of a turn: within an ulp or so
// of float64.
inline std::complex<double> root(std::int64_t t, std::int64_t n) {
  t %= n;
  double sin_sign = -1, cos_sign = 1;
  if (2 * t > n) {
    t = n - t;
    sin_sign = 1;
  }
  if (4 * t > n) {
    t = n - 2 * t;
    n *= 2;
    cos_sign = -1;
  }
  const bool is_swapped = 8 * t > n;
  if (is_swapped) {
    t = n - 4 * t;
    n *= 4;
  }
  const double angle = 2 * M_PI * (double(t) / double(n)), c = std::cos(angle), s = std::sin(angle);
  return {cos_sign * (is_swapped ? s : c), sin_sign * (is_swapped ? c : s)};
}

// The factors that a transform is made of: up to `largest`. The last radix is 1 where a larger
// prime is left.
inline constexpr int largest_radix = 13;   // of butterflies
inline constexpr int largest_summed = 61;  // whose sums cost less than a convolution
inline std::vector<int> radices_of(std::int64_t n, int largest = largest_radix) {
  std::vector<int> radices;
  const auto divide = [&](int radix) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  };
  for (const int radix : {4, 2, 3, 5, 7, 11, 13}) divide(radix);
  for (int radix = largest_radix + 4; radix <= largest; radix += 2) divide(radix);
  if (n > 1) radices.push_back(1);
  return radices;
}
inline bool is_smooth(std::int64_t n, int largest = largest_radix) {
  const std::vector<int> radices = radices_of(n, largest);
  return radices.empty() || radices.back() != 1;
}

// The least size from n on that 2, 3 and 5 divide to 1.
inline std::int64_t good_size(std::int64_t n) {
  std::int64_t best = 1;
  while (best < n) best *= 2;
  for (std::int64_t fives = 1; fives < best; fives *= 5)
    for (std::int64_t size = fives; size < best; size *= 3) {
      std::int64_t candidate = size;
      while (candidate < n) candidate *= 2;
      if (candidate < best) best = candidate;
    }
  return best;
}

// c[j] = exp(-pi i j^2 / n), with which a transform of any length is a convolution: since
// 2 j k = j^2 + k^2 - (k - j)^2, X[k] = c[k] sum_j x[j] c[j] conj(c[k - j]). L. Bluestein, "A
// linear filtering approach to the computation of discrete Fourier transform" (1970).
inline std::complex<double> chirp(std::int64_t j, std::int64_t n) { return root(j * j, 2 * n); }

}  // namespace plait::fourier
