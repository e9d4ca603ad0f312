// The order of a sum is that of a reduction by rows: eight interleaved parts for each block of 1024
// terms, see NOTE: [reduction order]. Where the columns of the matrix are contiguous, a pack holds
// a part of some terms of one column; where its rows are, a part of one term of some columns. Large
// matrices of that kind are read by rows, with the parts of many columns in a cache.
// See vector_products.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/contraction/vector_products.h"

#include <plait/base/math.h>
#include <plait/base/pool.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/spinning.h"
#include "primitives/reduction/reduce.h"

namespace plait {
namespace {

constexpr std::int64_t worth_a_thread = 1 << 16;
constexpr std::int64_t block_terms = ReductionStage::row_block;
constexpr int parts = 8;
constexpr std::int64_t near_bytes = 1 << 20;  // of a matrix that the second-level cache holds

template <class T>
using Lanes = Pack<T, sizeof(T) == 4 ? 8 : 4>;
template <class T>
constexpr int width = Lanes<T>::width;

// One vector, and a range of columns of one matrix.
template <class T>
struct Columns {
  const T *lhs, *rhs;
  std::int64_t lhs_stride, row_stride, column_stride, k, n;
  T* out;

  Columns part(std::int64_t first, std::int64_t count) const {
    Columns some = *this;
    some.rhs += first * column_stride;
    some.out += first;
    some.n = count;
    return some;
  }
  T factor(std::int64_t i) const { return lhs[i * lhs_stride]; }
};

// The parts of a sum as one number.
template <class V>
V joined(V (&sums)[parts]) {
  for (int half = parts / 2; half > 0; half /= 2)
    for (int part = 0; part < half; ++part) sums[part] = sums[part] + sums[part + half];
  return sums[0];
}

// --- One block of terms --------------------------------------------------------------------------

// Contiguous columns, as many as `columns`, and a contiguous vector.
template <class T, int columns>
void sum_columns(const Columns<T>& c, const T* factors, T* out) {
  constexpr int packs = parts / width<T>;
  Lanes<T> sums[columns][packs];
  for (auto& of : sums)
    for (Lanes<T>& sum : of) sum = Lanes<T>(T(0));
  std::int64_t i = 0;
  for (; i + parts <= c.k; i += parts)
#pragma GCC unroll 2
    for (int p = 0; p < packs; ++p) {
      const Lanes<T> factor = Lanes<T>::load(factors + i + p * width<T>);
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j)
        sums[j][p] = math::fma(
            factor, Lanes<T>::load(c.rhs + j * c.column_stride + i + p * width<T>), sums[j][p]);
    }
  for (int j = 0; j < columns; ++j) {
    T numbers[parts];
    for (int p = 0; p < packs; ++p) sums[j][p].store(numbers + p * width<T>);
    for (std::int64_t rest = i; rest < c.k; ++rest)
      numbers[rest - i] =
          std::fma(factors[rest], c.rhs[j * c.column_stride + rest], numbers[rest - i]);
    out[j] = joined(numbers);
  }
}

// A pack of neighbouring columns of contiguous rows, or one column.
template <class T, class V>
V sum_rows(const Columns<T>& c, const T* factors, std::int64_t first) {
  V sums[parts];
  for (V& sum : sums) sum = V(T(0));
  const auto term = [&](std::int64_t i) {
    const T* const at = c.rhs + i * c.row_stride + first * c.column_stride;
    if constexpr (std::is_same_v<V, T>)
      return *at;
    else
      return V::load(at);
  };
  std::int64_t i = 0;
  for (; i + parts <= c.k; i += parts)
#pragma GCC unroll 8
    for (int part = 0; part < parts; ++part)
      sums[part] = math::fma(V(factors[i + part]), term(i + part), sums[part]);
  for (int part = 0; i < c.k; ++i, ++part)
    sums[part] = math::fma(V(factors[i]), term(i), sums[part]);
  return joined(sums);
}

// Adds terms [first, first + parts * each) of columns from j on, `each` to every part. The parts of
// all columns are c.n apart.
template <class V, int each, class T>
void add_terms(const Columns<T>& c, const T* factors, std::int64_t first, std::int64_t j, T* sums) {
  const T* row = c.rhs + first * c.row_stride + j;
#pragma GCC unroll 8
  for (int part = 0; part < parts; ++part) {
    V sum;
    std::memcpy(&sum, sums + part * c.n + j, sizeof sum);
#pragma GCC unroll 4
    for (int i = 0; i < each; ++i) {
      V term;
      std::memcpy(&term, row + (i * parts + part) * c.row_stride, sizeof term);
      sum = math::fma(V(factors[first + i * parts + part]), term, sum);
    }
    std::memcpy(sums + part * c.n + j, &sum, sizeof sum);
  }
}

// Contiguous rows, many at once: each is read from end to end, which the hardware foresees, and the
// parts are loaded and stored once for several rows.
template <class T>
void sum_long_rows(const Columns<T>& c, const T* factors, T* out) {
  constexpr int each = 4;
  std::vector<T> sums(std::size_t(parts * c.n));
  std::int64_t i = 0;
  for (; i + each * parts <= c.k; i += each * parts) {
    std::int64_t j = 0;
    for (; j + width<T> <= c.n; j += width<T>)
      add_terms<Lanes<T>, each>(c, factors, i, j, sums.data());
    for (; j < c.n; ++j) add_terms<T, each>(c, factors, i, j, sums.data());
  }
  for (; i < c.k; ++i) {
    T* const sum = sums.data() + i % parts * c.n;
    for (std::int64_t j = 0; j < c.n; ++j)
      sum[j] = std::fma(factors[i], c.rhs[i * c.row_stride + j], sum[j]);
  }
  for (int half = parts / 2; half > 0; half /= 2)
    for (std::int64_t j = 0; j < half * c.n; ++j)
      sums[std::size_t(j)] += sums[std::size_t(half * c.n + j)];
  std::copy_n(sums.data(), c.n, out);
}

// The sums over at most block_terms.
template <class T>
void sum_block(const Columns<T>& c, const T* factors, T* out) {
  std::int64_t j = 0;
  if (c.row_stride == 1 && (c.column_stride != 1 || c.n == 1)) {
    for (; j + 4 <= c.n; j += 4) sum_columns<T, 4>(c.part(j, 4), factors, out + j);
    for (; j < c.n; ++j) sum_columns<T, 1>(c.part(j, 1), factors, out + j);
    return;
  }
  if (c.column_stride == 1 && c.n >= width<T>) {
    if (c.k * c.row_stride * std::int64_t(sizeof(T)) > near_bytes)
      return sum_long_rows(c, factors, out);
    for (; j + width<T> <= c.n; j += width<T>) sum_rows<T, Lanes<T>>(c, factors, j).store(out + j);
  }
  for (; j < c.n; ++j) out[j] = sum_rows<T, T>(c, factors, j);
}

// --- All of them ---------------------------------------------------------------------------------

template <class T>
T added_pairwise(const T* numbers, std::int64_t count, std::int64_t apart) {
  if (count == 1) return *numbers;
  const std::int64_t half = count / 2;
  return added_pairwise(numbers, half, apart) +
         added_pairwise(numbers + half * apart, count - half, apart);
}

// Products of contiguous vectors, some at a time, so that no fma waits for the one before: those of
// the same terms of both operands, which are so far apart.
template <class T>
struct Vectors {
  const T *lhs, *rhs;
  std::int64_t lhs_apart, rhs_apart, terms;

  Vectors from(std::int64_t first) const {
    return {lhs + first * lhs_apart, rhs + first * rhs_apart, lhs_apart, rhs_apart, terms};
  }
};

template <class T, int at_once>
void sum_vectors(const Vectors<T>& v, T* out) {
  constexpr int packs = parts / width<T>;
  Lanes<T> sums[at_once][packs];
  for (auto& of : sums)
    for (Lanes<T>& sum : of) sum = Lanes<T>(T(0));
  std::int64_t i = 0;
  for (; i + parts <= v.terms; i += parts)
#pragma GCC unroll 2
    for (int p = 0; p < packs; ++p)
#pragma GCC unroll 4
      for (int j = 0; j < at_once; ++j) {
        const std::int64_t at = i + p * width<T>;
        sums[j][p] = math::fma(Lanes<T>::load(v.lhs + j * v.lhs_apart + at),
                               Lanes<T>::load(v.rhs + j * v.rhs_apart + at), sums[j][p]);
      }
  for (int j = 0; j < at_once; ++j) {
    T numbers[parts];
    for (int p = 0; p < packs; ++p) sums[j][p].store(numbers + p * width<T>);
    for (std::int64_t rest = i; rest < v.terms; ++rest)
      numbers[rest - i] =
          std::fma(v.lhs[j * v.lhs_apart + rest], v.rhs[j * v.rhs_apart + rest], numbers[rest - i]);
    out[j] = joined(numbers);
  }
}

template <class T>
void sum_all_vectors(const Vectors<T>& v, std::int64_t count, T* out) {
  constexpr int at_once = 4;
  std::int64_t j = 0;
  for (; j + at_once <= count; j += at_once) sum_vectors<T, at_once>(v.from(j), out + j);
  for (; j < count; ++j) sum_vectors<T, 1>(v.from(j), out + j);
}

// A product of two contiguous vectors of several blocks.
template <class T>
T multiply_vectors(const T* lhs, const T* rhs, std::int64_t k) {
  const std::int64_t whole = k / block_terms, blocks = (k + block_terms - 1) / block_terms;
  std::vector<T> numbers(static_cast<std::size_t>(blocks));
  const std::int64_t grain = grain_while_spinning(k, worth_a_thread);
  const Vectors<T> all{lhs, rhs, block_terms, block_terms, block_terms};
  parallel_for(whole, std::max<std::int64_t>(4, grain / block_terms),
               [&](std::int64_t begin, std::int64_t end) {
                 sum_all_vectors(all.from(begin), end - begin, numbers.data() + begin);
               });
  if (whole < blocks) {
    Vectors<T> rest = all.from(whole);
    rest.terms = k - whole * block_terms;
    sum_vectors<T, 1>(rest, numbers.data() + whole);
  }
  return added_pairwise(numbers.data(), blocks, 1);
}

template <class T>
void multiply_columns(const Columns<T>& c) {
  if (c.n == 1 && c.k > block_terms && c.row_stride == 1 && c.lhs_stride == 1) {
    *c.out = multiply_vectors(c.lhs, c.rhs, c.k);
    return;
  }
  std::vector<T> gathered;
  const T* factors = c.lhs;
  if (c.lhs_stride != 1 && c.k > 1) {
    for (std::int64_t i = 0; i < c.k; ++i) gathered.push_back(c.factor(i));
    factors = gathered.data();
  }
  if (c.k <= block_terms) return sum_block(c, factors, c.out);
  const std::int64_t blocks = (c.k + block_terms - 1) / block_terms;
  std::vector<T> numbers(std::size_t(blocks * c.n));
  for (std::int64_t block = 0; block < blocks; ++block) {
    Columns<T> some = c;
    some.rhs += block * block_terms * c.row_stride;
    some.k = std::min(block_terms, c.k - block * block_terms);
    sum_block(some, factors + block * block_terms, numbers.data() + block * c.n);
  }
  for (std::int64_t j = 0; j < c.n; ++j) c.out[j] = added_pairwise(numbers.data() + j, blocks, c.n);
}

template <class T>
void multiply_all(const MatrixStack<T>& lhs, const MatrixStack<T>& rhs, std::int64_t batch,
                  std::int64_t k, std::int64_t n, T* out) {
  constexpr std::int64_t line = 64 / sizeof(T), widest = 1024;
  if (n == 1 && k <= block_terms && lhs.column_stride == 1 && rhs.row_stride == 1) {
    const Vectors<T> all{lhs.data, rhs.data, lhs.batch_stride, rhs.batch_stride, k};
    const std::int64_t grain = grain_while_spinning(batch * k, worth_a_thread);
    return parallel_for(batch, std::max<std::int64_t>(4, grain / std::max<std::int64_t>(1, k)),
                        [&](std::int64_t begin, std::int64_t end) {
                          sum_all_vectors(all.from(begin), end - begin, out + begin);
                        });
  }
  // Blocks small enough that all threads have work, in whole cache lines.
  const std::int64_t shared = ((n + num_threads() - 1) / num_threads() + line - 1) / line * line;
  const std::int64_t block = std::clamp(batch > 1 ? n : shared, line, widest);
  const std::int64_t blocks = (n + block - 1) / block;
  const std::int64_t work = std::max<std::int64_t>(1, std::min(block, n) * k);
  const std::int64_t grain = grain_while_spinning(batch * blocks * work, worth_a_thread);
  parallel_for(batch * blocks, std::max<std::int64_t>(1, grain / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const std::int64_t matrix = index / blocks, first = index % blocks * block;
                   const Columns<T> all{lhs.data + matrix * lhs.batch_stride,
                                        rhs.data + matrix * rhs.batch_stride,
                                        lhs.column_stride,
                                        rhs.row_stride,
                                        rhs.column_stride,
                                        k,
                                        n,
                                        out + matrix * n};
                   multiply_columns(all.part(first, std::min(block, n - first)));
                 }
               });
}

}  // namespace

void multiply_vector(const MatrixStack<float>& lhs, const MatrixStack<float>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, float* out) {
  multiply_all<float>(lhs, rhs, batch, k, n, out);
}
void multiply_vector(const MatrixStack<double>& lhs, const MatrixStack<double>& rhs,
                     std::int64_t batch, std::int64_t k, std::int64_t n, double* out) {
  multiply_all<double>(lhs, rhs, batch, k, n, out);
}

}  // namespace plait
