// See plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/fourier/plan.h"

#include <plait/base/pool.h>

#include <algorithm>
#include <list>
#include <mutex>

#include "primitives/scratch.h"

namespace plait::fourier {
namespace {

constexpr std::int64_t shortest_matrix = 64;  // rows up to it are faster number by number
constexpr std::int64_t longest_passes = 1 << 14;
// Numbers in memory that a core's caches hold, to and fro.
template <class T>
constexpr std::int64_t longest_side_by_side = 1 << (sizeof(T) == 4 ? 12 : 11);

// Rows that take 20 us or more.
std::int64_t grain_of(std::int64_t n) {
  const double work = 5.0 * double(n) * std::log2(double(n) + 1);
  return std::max<std::int64_t>(1, std::int64_t(100000 / work));
}

// The divisor next to the root from below, of those that passes are made for.
std::int64_t half_of(std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t i = 2; i * i <= n && i <= longest_passes; ++i)
    if (n % i == 0) best = i;
  return best;
}

// Lanes of rows that lie side by side, at the same distances in the memory of the first.
template <class T>
bool are_neighbours(std::int64_t count, const Row<T>* rows, std::int64_t distance) {
  for (std::int64_t i = 1; i < count; ++i)
    if (rows[i].re != rows[0].re + i * distance ||
        (rows[0].im && rows[i].im != rows[0].im + i * distance))
      return false;
  return true;
}

// One part of all numbers of rows, lane by lane.
template <int lanes, class T>
void load_part(std::int64_t n, std::int64_t count, const Row<const T>* rows,
               const T* Row<const T>::* part, std::int64_t distance, T* to) {
  const T* const first = rows[0].*part;
  if (!first) {
    std::fill_n(to, n * lanes, T(0));
    return;
  }
  const std::int64_t stride = rows[0].stride;
  if (count == lanes && distance) {
    for (std::int64_t j = 0; j < n; ++j)
      for (int lane = 0; lane < lanes; ++lane)
        to[j * lanes + lane] = first[j * stride + lane * distance];
    return;
  }
  for (int lane = 0; lane < lanes; ++lane) {
    const T* const row = lane < count ? rows[lane].*part : nullptr;
    for (std::int64_t j = 0; j < n; ++j) to[j * lanes + lane] = row ? row[j * stride] : T(0);
  }
}

template <int lanes, class T>
void store_part(std::int64_t n, std::int64_t count, const T* from, T scale, const Row<T>* rows,
                T* Row<T>::* part, std::int64_t distance) {
  T* const first = rows[0].*part;
  if (!first) return;
  const std::int64_t stride = rows[0].stride;
  if (count == lanes && distance) {
    for (std::int64_t j = 0; j < n; ++j)
      for (int lane = 0; lane < lanes; ++lane)
        first[j * stride + lane * distance] = from[j * lanes + lane] * scale;
    return;
  }
  for (std::int64_t lane = 0; lane < count; ++lane) {
    T* const row = rows[lane].*part;
    for (std::int64_t j = 0; j < n; ++j) row[j * stride] = from[j * lanes + lane] * scale;
  }
}

// The distance between neighbours in memory, or 0.
template <class T>
std::int64_t distance_of(std::int64_t count, const Row<T>* rows) {
  for (const std::int64_t distance : {1, 2})
    if (are_neighbours(count, rows, distance)) return distance;
  return 0;
}

}  // namespace

template <class T>
Plan<T>::Plan(std::int64_t n) : n_(n) {
  if (!is_smooth(n, largest_summed)) {
    make_convolution();
    return;
  }
  if (n <= longest_passes) make_passes();
  if (n > shortest_matrix) make_matrix();
}

template <class T>
void Plan<T>::make_passes() {
  std::int64_t left = n_, s = 1;
  for (const int radix : radices_of(n_, largest_summed)) {
    Pass<T> pass{radix, left / radix, s, {}, {}};
    for (int j = 1; radix > largest_radix && 2 * j < radix; ++j)
      for (int k = 1; 2 * k < radix; ++k) {
        pass.cosines.push_back(T(root(j * k, radix).real()));
        pass.sines.push_back(T(-root(j * k, radix).imag()));
      }
    for (std::int64_t p = 0; p < pass.m; ++p)
      for (int k = 1; k < radix; ++k) {
        const std::complex<double> w = root(p * k, left);
        pass.of_re.push_back(T(w.real()));
        pass.of_im.push_back(T(w.imag()));
      }
    left /= radix;
    s *= radix;
    passes_.push_back(std::move(pass));
  }
}

template <class T>
void Plan<T>::make_matrix() {
  const std::int64_t n1 = half_of(n_), n2 = n_ / n1, blocks = (n2 + lanes - 1) / lanes;
  columns_ = of(n1);
  rows_ = of(n2);
  of_blocks_.resize(std::size_t(blocks * n1));
  for (std::int64_t k = 0; k < n1; ++k)
    for (std::int64_t block = 0; block < blocks; ++block)
      of_blocks_[std::size_t(k * blocks + block)] = std::complex<T>(root(block * lanes * k, n_));
  for (std::int64_t k = 0; k < n1; ++k)
    for (int lane = 0; lane < lanes; ++lane) {
      const std::complex<double> w = root(lane * k, n_);
      of_lanes_re_.push_back(T(w.real()));
      of_lanes_im_.push_back(T(w.imag()));
    }
}

template <class T>
void Plan<T>::make_convolution() {
  const std::int64_t size = good_size(2 * n_ - 1);
  convolution_ = of(size);
  filter_.resize(std::size_t(size));
  for (std::int64_t j = 0; j < n_; ++j) {
    const std::complex<double> c = chirp(j, n_);
    chirp_.emplace_back(c);
    filter_[std::size_t(j)] = filter_[std::size_t((size - j) % size)] =
        std::complex<T>(std::conj(c));
  }
  T* const parts = reinterpret_cast<T*>(filter_.data());
  convolution_->one({parts, parts + 1, 2}, {parts, parts + 1, 2}, T(1));
}

template <class T>
void Plan<T>::side_by_side(std::int64_t count, const Row<const T>* from, const Row<T>* to,
                           T scale) const {
  const Scratch<V> memory(4 * n_);
  const Split<V> x{memory.get(), memory.get() + n_}, y{x.im + n_, x.im + 2 * n_};
  const std::int64_t between = distance_of(count, from);
  load_part<lanes>(n_, count, from, &Row<const T>::re, between, reinterpret_cast<T*>(x.re));
  load_part<lanes>(n_, count, from, &Row<const T>::im, between, reinterpret_cast<T*>(x.im));
  const Split<V> result = run_passes(passes_, x, y);
  const std::int64_t apart = distance_of(count, to);
  store_part<lanes>(n_, count, reinterpret_cast<T*>(result.re), scale, to, &Row<T>::re, apart);
  store_part<lanes>(n_, count, reinterpret_cast<T*>(result.im), scale, to, &Row<T>::im, apart);
}

template <class T>
void Plan<T>::one(const Row<const T>& from, const Row<T>& to, T scale) const {
  if (convolution_) return as_convolution(from, to, scale);
  if (columns_) return as_matrix(from, to, scale);
  short_row(from, to, scale);
}

template <class T>
void Plan<T>::short_row(const Row<const T>& from, const Row<T>& to, T scale) const {
  T memory[4][shortest_matrix];
  for (std::int64_t j = 0; j < n_; ++j) {
    memory[0][j] = from.re[j * from.stride];
    memory[1][j] = from.im ? from.im[j * from.stride] : T(0);
  }
  const Split<T> result =
      run_passes(passes_, Split<T>{memory[0], memory[1]}, Split<T>{memory[2], memory[3]});
  for (std::int64_t k = 0; k < n_; ++k) {
    to.re[k * to.stride] = result.re[k] * scale;
    if (to.im) to.im[k * to.stride] = result.im[k] * scale;
  }
}

// With j = j1 n2 + j2 and k = k1 + n1 k2: X[k] = sum_j2 w^(j2 k1) w2^(j2 k2) sum_j1 w1^(j1 k1)
// x[j].
template <class T>
void Plan<T>::as_matrix(const Row<const T>& from, const Row<T>& to, T scale) const {
  const std::int64_t n1 = columns_->n_, n2 = rows_->n_, blocks = (n2 + lanes - 1) / lanes;
  const Scratch<T> between(2 * n_);
  const Split<T> matrix{between.get(), between.get() + n_};
  const auto has_im = from.im != nullptr;
  parallel_for(blocks, grain_of(n1 * lanes), [&](std::int64_t begin, std::int64_t end) {
    const Scratch<V> memory(4 * n1);
    const Split<V> x{memory.get(), memory.get() + n1}, y{x.im + n1, x.im + 2 * n1};
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t j2 = block * lanes, count = std::min<std::int64_t>(lanes, n2 - j2);
      Row<const T> columns[lanes];
      for (std::int64_t lane = 0; lane < count; ++lane) {
        const std::int64_t at = (j2 + lane) * from.stride;
        columns[lane] = {from.re + at, has_im ? from.im + at : nullptr, n2 * from.stride};
      }
      const std::int64_t apart = distance_of(count, columns);
      load_part<lanes>(n1, count, columns, &Row<const T>::re, apart, reinterpret_cast<T*>(x.re));
      load_part<lanes>(n1, count, columns, &Row<const T>::im, apart, reinterpret_cast<T*>(x.im));
      const Split<V> result = run_passes(columns_->passes_, x, y);
      for (std::int64_t k1 = 0; k1 < n1; ++k1) {
        const std::complex<T> of_block = of_blocks_[std::size_t(k1 * blocks + block)];
        const Number<V> of_lanes{V::load(of_lanes_re_.data() + k1 * lanes),
                                 V::load(of_lanes_im_.data() + k1 * lanes)};
        const Number<V> w = times(of_lanes, of_block.real(), of_block.imag());
        const V re = result.re[k1], im = result.im[k1];
        fma(re, w.re, -(im * w.im)).store(matrix.re + k1 * n2 + j2, int(count));
        fma(re, w.im, im * w.re).store(matrix.im + k1 * n2 + j2, int(count));
      }
    }
  });
  rows_->transform(
      n1,
      [&](std::int64_t k1) { return Row<const T>{matrix.re + k1 * n2, matrix.im + k1 * n2, 1}; },
      [&](std::int64_t k1) {
        const std::int64_t at = k1 * to.stride;
        return Row<T>{to.re + at, to.im ? to.im + at : nullptr, n1 * to.stride};
      },
      scale);
}

template <class T>
void Plan<T>::as_convolution(const Row<const T>& from, const Row<T>& to, T scale) const {
  const std::int64_t size = convolution_->n_;
  const Scratch<T> memory(2 * size);
  T *const re = memory.get(), *const im = re + size;
  for (std::int64_t j = 0; j < n_; ++j) {
    const std::complex<T> c = chirp_[std::size_t(j)];
    const T x = from.re[j * from.stride], y = from.im ? from.im[j * from.stride] : T(0);
    re[j] = x * c.real() - y * c.imag();
    im[j] = x * c.imag() + y * c.real();
  }
  std::fill(re + n_, re + size, T(0));
  std::fill(im + n_, im + size, T(0));
  convolution_->one({re, im, 1}, {re, im, 1}, T(1));
  for (std::int64_t j = 0; j < size; ++j) {
    const std::complex<T> f = filter_[std::size_t(j)];
    const T x = re[j];
    re[j] = x * f.real() - im[j] * f.imag();
    im[j] = x * f.imag() + im[j] * f.real();
  }
  // The inverse is the transform with the parts exchanged.
  convolution_->one({im, re, 1}, {im, re, 1}, scale / T(size));
  for (std::int64_t k = 0; k < n_; ++k) {
    const std::complex<T> c = chirp_[std::size_t(k)];
    to.re[k * to.stride] = re[k] * c.real() - im[k] * c.imag();
    if (to.im) to.im[k * to.stride] = re[k] * c.imag() + im[k] * c.real();
  }
}

template <class T>
void Plan<T>::transform(std::int64_t rows, const From& from, const To& to, T scale) const {
  const bool is_one_by_one =
      convolution_ || n_ > longest_side_by_side<T> || (rows < lanes / 2 && n_ <= shortest_matrix);
  if (is_one_by_one) {
    const auto run = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) one(from(row), to(row), scale);
    };
    if (rows < 2 * num_threads()) return run(0, rows);  // each on all threads
    return parallel_for(rows, grain_of(n_), run);
  }
  if (rows < lanes / 2) {
    for (std::int64_t row = 0; row < rows; ++row) one(from(row), to(row), scale);
    return;
  }
  const std::int64_t groups = (rows + lanes - 1) / lanes;
  parallel_for(groups, grain_of(n_ * lanes), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t group = begin; group < end; ++group) {
      const std::int64_t first = group * lanes, count = std::min<std::int64_t>(lanes, rows - first);
      Row<const T> sources[lanes];
      Row<T> targets[lanes];
      for (std::int64_t lane = 0; lane < count; ++lane) {
        sources[lane] = from(first + lane);
        targets[lane] = to(first + lane);
      }
      side_by_side(count, sources, targets, scale);
    }
  });
}

template <class T>
const std::vector<std::complex<T>>& Plan<T>::half_turns() const {
  std::call_once(has_half_turns_, [&] {
    for (std::int64_t k = 0; 2 * k <= n_; ++k) half_turns_.emplace_back(root(k, 2 * n_));
  });
  return half_turns_;
}

// NOTE: [plans that are kept] Tables cost more than a transform, so that plans are kept by length,
// and the latest ones stay. A plan that is used lives as long as its call.
template <class T>
std::shared_ptr<const Plan<T>> Plan<T>::of(std::int64_t n) {
  struct Kept {
    std::mutex mutex;
    std::list<std::shared_ptr<const Plan>> plans;  // the latest first
  };
  static Kept& kept = *new Kept;
  constexpr std::size_t most = 64;
  constexpr std::int64_t most_numbers = 1 << 22;
  {
    std::lock_guard lock(kept.mutex);
    for (auto plan = kept.plans.begin(); plan != kept.plans.end(); ++plan)
      if ((*plan)->n_ == n) {
        kept.plans.splice(kept.plans.begin(), kept.plans, plan);
        return kept.plans.front();
      }
  }
  auto plan = std::make_shared<const Plan>(n);  // which may ask for others
  std::lock_guard lock(kept.mutex);
  kept.plans.push_front(plan);
  std::int64_t numbers = 0;
  for (const auto& each : kept.plans) numbers += each->n_;
  for (; kept.plans.size() > 1 && (kept.plans.size() > most || numbers > most_numbers);
       kept.plans.pop_back())
    numbers -= kept.plans.back()->n_;
  return plan;
}

template class Plan<float>;
template class Plan<double>;

}  // namespace plait::fourier
