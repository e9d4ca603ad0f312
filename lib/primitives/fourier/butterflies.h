// Passes of a transform over columns that lie side by side: of packs, so that each lane is a
// transform of its own, or of numbers.
//
// Stockham's form, which needs no reordering: with n = R m numbers left in each of s transforms, a
// pass takes x[q + s (p + m k)] for k < R, and gives y[q + s (R p + k)] = w^(p k) times their
// transform of length R, w = exp(-2 pi i / n). C. Van Loan, "Computational frameworks for the fast
// Fourier transform" (1992), section 1.7.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/pack.h>

#include <utility>

#include "primitives/fourier/roots.h"

namespace plait::fourier {

using math::fma;

// Complex numbers in two arrays.
template <class V>
struct Split {
  V *re, *im;
};

template <class V>
struct Number {
  V re, im;
  friend Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
  friend Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
};
template <class V>
Number<V> times_minus_i(Number<V> a) {
  return {a.im, -a.re};
}
template <class V, class T>
Number<V> times(Number<V> a, T re, T im) {
  return {fma(a.re, V(re), -(a.im * V(im))), fma(a.re, V(im), a.im * V(re))};
}

// The transform of R numbers in place.
template <int R, class V>
struct Butterfly;

template <class V>
struct Butterfly<2, V> {
  static void run(Number<V>* a) {
    const Number<V> sum = a[0] + a[1];
    a[1] = a[0] - a[1];
    a[0] = sum;
  }
};

template <class V>
struct Butterfly<4, V> {
  static void run(Number<V>* a) {
    const Number<V> even = a[0] + a[2], odd = a[1] + a[3], gap = a[0] - a[2],
                    turned = times_minus_i(a[1] - a[3]);
    a[0] = even + odd;
    a[1] = gap + turned;
    a[2] = even - odd;
    a[3] = gap - turned;
  }
};

// Of an odd number: those at k and R - k together.
template <int R, class V>
struct Butterfly {
  template <class T>
  static void run(Number<V>* a, const T (&cosines)[R], const T (&sines)[R]) {
    constexpr int half = (R - 1) / 2;
    Number<V> sums[half], gaps[half], results[R];
    results[0] = a[0];
    for (int k = 1; k <= half; ++k) {
      sums[k - 1] = a[k] + a[R - k];
      gaps[k - 1] = times_minus_i(a[k] - a[R - k]);
      results[0] = results[0] + sums[k - 1];
    }
    for (int j = 1; j <= half; ++j) {
      Number<V> even = a[0], odd{V(T(0)), V(T(0))};
      for (int k = 1; k <= half; ++k) {
        const V c(cosines[j * k % R]), s(sines[j * k % R]);
        even = {fma(sums[k - 1].re, c, even.re), fma(sums[k - 1].im, c, even.im)};
        odd = {fma(gaps[k - 1].re, s, odd.re), fma(gaps[k - 1].im, s, odd.im)};
      }
      results[j] = even + odd;
      results[R - j] = even - odd;
    }
    std::copy_n(results, R, a);
  }
};

template <class T>
struct Pass {
  int radix;
  std::int64_t m, s;            // see above
  std::vector<T> of_re, of_im;  // w^(p k) for k = 1 .. radix - 1, for each p
  // Of a radix without a butterfly of its own: cos and sin(2 pi j k / radix), for j and k of the
  // first half from 1 on.
  std::vector<T> cosines = {}, sines = {};
};

template <int R, class V, class T>
void run_pass(const Pass<T>& pass, Split<V> x, Split<V> y) {
  const std::int64_t m = pass.m, s = pass.s;
  T cosines[R], sines[R];
  if constexpr (R % 2 == 1)
    for (int k = 0; k < R; ++k) {
      cosines[k] = T(root(k, R).real());
      sines[k] = T(-root(k, R).imag());
    }
  for (std::int64_t p = 0; p < m; ++p) {
    const T *w_re = pass.of_re.data() + p * (R - 1), *w_im = pass.of_im.data() + p * (R - 1);
    for (std::int64_t q = 0; q < s; ++q) {
      Number<V> a[R];
      for (int k = 0; k < R; ++k) {
        const std::int64_t at = q + s * (p + m * k);
        a[k] = {x.re[at], x.im[at]};
      }
      if constexpr (R % 2 == 1)
        Butterfly<R, V>::run(a, cosines, sines);
      else
        Butterfly<R, V>::run(a);
      const std::int64_t to = q + s * R * p;
      y.re[to] = a[0].re;
      y.im[to] = a[0].im;
      for (int k = 1; k < R; ++k) {
        const Number<V> turned = times(a[k], w_re[k - 1], w_im[k - 1]);
        y.re[to + s * k] = turned.re;
        y.im[to + s * k] = turned.im;
      }
    }
  }
}

// The transform of the numbers of an odd radix up to largest_summed, as run_pass.
template <class V, class T>
struct AnyRadix {
  static constexpr int most = (largest_summed - 1) / 2;

  explicit AnyRadix(const Pass<T>& pass) : pass(pass), half((pass.radix - 1) / 2) {}
  const Pass<T>& pass;
  const int half;
  Number<V> first, sums[most], gaps[most];

  // Results j, j + 1 and so on, less one, and those at radix - j, by store(k, number).
  template <int count, class Store>
  void run(int j, const Store& store) const {
    Number<V> even[count], odd[count];
    for (int i = 0; i < count; ++i) even[i] = first, odd[i] = {V(T(0)), V(T(0))};
    const T *const cosines = pass.cosines.data() + j * half, *sines = pass.sines.data() + j * half;
    for (int k = 0; k < half; ++k)
#pragma GCC unroll 2
      for (int i = 0; i < count; ++i) {
        const V c(cosines[i * half + k]), s(sines[i * half + k]);
        even[i] = {fma(sums[k].re, c, even[i].re), fma(sums[k].im, c, even[i].im)};
        odd[i] = {fma(gaps[k].re, s, odd[i].re), fma(gaps[k].im, s, odd[i].im)};
      }
    for (int i = 0; i < count; ++i) {
      store(j + 1 + i, even[i] + odd[i]);
      store(pass.radix - 1 - j - i, even[i] - odd[i]);
    }
  }
};

template <class V, class T>
void run_any_pass(const Pass<T>& pass, Split<V> x, Split<V> y) {
  const std::int64_t m = pass.m, s = pass.s;
  const int R = pass.radix;
  AnyRadix<V, T> numbers(pass);
  for (std::int64_t p = 0; p < m; ++p) {
    const T *w_re = pass.of_re.data() + p * (R - 1), *w_im = pass.of_im.data() + p * (R - 1);
    for (std::int64_t q = 0; q < s; ++q) {
      const auto number = [&](int k) {
        const std::int64_t at = q + s * (p + m * k);
        return Number<V>{x.re[at], x.im[at]};
      };
      const std::int64_t to = q + s * R * p;
      const auto store = [&](int k, Number<V> result) {
        const Number<V> turned = times(result, w_re[k - 1], w_im[k - 1]);
        y.re[to + s * k] = turned.re;
        y.im[to + s * k] = turned.im;
      };
      Number<V> total = numbers.first = number(0);
      for (int k = 1; k <= numbers.half; ++k) {
        const Number<V> a = number(k), b = number(R - k);
        numbers.sums[k - 1] = a + b;
        numbers.gaps[k - 1] = times_minus_i(a - b);
        total = total + numbers.sums[k - 1];
      }
      y.re[to] = total.re;
      y.im[to] = total.im;
      int j = 0;
      for (; j + 2 <= numbers.half; j += 2) numbers.template run<2>(j, store);
      if (j < numbers.half) numbers.template run<1>(j, store);
    }
  }
}

// All passes, to and fro between two places; gives the one that holds the result.
template <class V, class T>
Split<V> run_passes(const std::vector<Pass<T>>& passes, Split<V> x, Split<V> y) {
  for (const Pass<T>& pass : passes) {
    switch (pass.radix) {
      case 2:
        run_pass<2>(pass, x, y);
        break;
      case 3:
        run_pass<3>(pass, x, y);
        break;
      case 4:
        run_pass<4>(pass, x, y);
        break;
      case 5:
        run_pass<5>(pass, x, y);
        break;
      case 7:
        run_pass<7>(pass, x, y);
        break;
      case 11:
        run_pass<11>(pass, x, y);
        break;
      case 13:
        run_pass<13>(pass, x, y);
        break;
      default:
        run_any_pass(pass, x, y);
    }
    std::swap(x, y);
  }
  return x;
}

}  // namespace plait::fourier
