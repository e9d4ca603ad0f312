// fft on the CPU. A real signal of even length is a complex one of half the length: even numbers
// are the real parts, odd ones the imaginary parts. The inverse transform is the transform of
// numbers whose parts are exchanged.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>

#include "primitives/fourier/fft.h"
#include "primitives/fourier/plan.h"
#include "primitives/reduction/order.h"

namespace plait::fourier {
namespace {

// Rows of an array along an axis, as the parts of their numbers.
template <class T>
class Rows {
 public:
  Rows(const View& array, int axis) : rows_(with_axis_last(array, axis)) {
    is_complex_ = is_complex(array.dtype);
    size_ = rows_.shape.back();
    stride_ = rows_.strides.back() * width();
    rows_.shape.pop_back();
    rows_.strides.pop_back();
    count_ = num_elements(rows_.shape);
  }
  std::int64_t count() const { return count_; }
  std::int64_t size() const { return size_; }
  T* start(std::int64_t row) const {
    std::int64_t offset = 0;
    for (std::size_t i = rows_.shape.size(); i-- > 0; row /= rows_.shape[i])
      offset += row % rows_.shape[i] * rows_.strides[i];
    return static_cast<T*>(rows_.data) + offset * width();
  }
  // Numbers as they are.
  Row<T> operator()(std::int64_t row) const {
    T* const re = start(row);
    return {re, is_complex_ ? re + 1 : nullptr, stride_};
  }
  // Neighbouring real numbers as a complex one.
  Row<T> in_pairs(std::int64_t row) const {
    T* const re = start(row);
    return {re, re + stride_, 2 * stride_};
  }

 private:
  std::int64_t width() const { return is_complex_ ? 2 : 1; }

  View rows_;
  bool is_complex_;
  std::int64_t size_, stride_, count_;
};

template <class T>
Row<T> exchanged(Row<T> row) {
  std::swap(row.re, row.im);
  return row;
}
template <class T>
std::complex<std::remove_const_t<T>> number(const Row<T>& row, std::int64_t i) {
  return {row.re[i * row.stride], row.im[i * row.stride]};
}
template <class T>
void put(const Row<T>& row, std::int64_t i, std::complex<T> number) {
  row.re[i * row.stride] = number.real();
  row.im[i * row.stride] = number.imag();
}
template <class T>
std::complex<T> product(std::complex<T> x, std::complex<T> y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
template <class T>
std::complex<T> times_i(std::complex<T> x) {
  return {-x.imag(), x.real()};
}

// The spectrum of a real row from that of its pairs, Z, in place: with E and O the spectra of even
// and odd numbers, Z = E + i O, and X[k] = E[k] + w^k O[k]. Of some k from 1 to half / 2, which are
// each written with half - k.
template <class T>
void unpack(const Row<T>& row, std::int64_t half, const std::vector<std::complex<T>>& w,
            std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) {
    const std::complex<T> a = number(row, k), b = std::conj(number(row, half - k));
    const std::complex<T> even = (a + b) * T(0.5), odd = times_i(b - a) * T(0.5);
    const std::complex<T> turned = product(w[std::size_t(k)], odd);
    put(row, k, even + turned);
    put(row, half - k, std::conj(even - turned));
  }
}
template <class T>
void unpack_ends(const Row<T>& row, std::int64_t half) {
  const std::complex<T> first = number(row, 0);
  put(row, 0, {first.real() + first.imag(), T(0)});
  put(row, half, {first.real() - first.imag(), T(0)});
}

// Twice the spectrum of pairs from that of a real row.
template <class T>
void pack(const Row<const T>& from, const Row<T>& to, std::int64_t half,
          const std::vector<std::complex<T>>& w, std::int64_t begin, std::int64_t end) {
  for (std::int64_t k = begin; k < end; ++k) {
    const std::complex<T> a = number(from, k), b = std::conj(number(from, half - k));
    const std::complex<T> even = a + b, odd = times_i(product(a - b, std::conj(w[std::size_t(k)])));
    put(to, k, even + odd);
    put(to, half - k, std::conj(even - odd));
  }
}
template <class T>
void pack_ends(const Row<const T>& from, const Row<T>& to, std::int64_t half) {
  const T first = from.re[0], last = from.re[half * from.stride];
  put(to, 0, {first + last, first - last});
}

template <class T>
class Transform {
 public:
  Transform(const View& from, const View& to, const Form& form)
      : from_(from, form.axis), to_(to, form.axis), n_(form.length.constant()) {}

  void run(Form::Kind kind) const {
    switch (kind) {
      case Form::Kind::fft:
        return Plan<T>::of(n_)->transform(from_.count(), from_, to_, T(1));
      case Form::Kind::ifft:
        return Plan<T>::of(n_)->transform(
            from_.count(), [&](std::int64_t row) { return exchanged(from_(row)); },
            [&](std::int64_t row) { return exchanged(to_(row)); }, T(1) / T(n_));
      case Form::Kind::rfft:
        return n_ % 2 == 0 ? real_of_even_length() : real_of_odd_length();
      case Form::Kind::irfft:
        return n_ % 2 == 0 ? inverse_of_even_length() : inverse_of_odd_length();
    }
  }

 private:
  void real_of_even_length() const {
    const std::int64_t half = n_ / 2;
    const auto plan = Plan<T>::of(half);
    plan->transform(
        from_.count(), [&](std::int64_t row) { return from_.in_pairs(row); }, to_, T(1));
    for_parts(half, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
      if (begin == 1) unpack_ends(to_(row), half);
      unpack(to_(row), half, plan->half_turns(), begin, end);
    });
  }

  void inverse_of_even_length() const {
    const std::int64_t half = n_ / 2;
    const auto plan = Plan<T>::of(half);
    const Buffer packed = scratch(half);
    for_parts(half, [&](std::int64_t row, std::int64_t begin, std::int64_t end) {
      if (begin == 1) pack_ends(from_(row), in(packed, half, row), half);
      pack(from_(row), in(packed, half, row), half, plan->half_turns(), begin, end);
    });
    plan->transform(
        from_.count(), [&](std::int64_t row) { return constant(exchanged(in(packed, half, row))); },
        [&](std::int64_t row) { return exchanged(to_.in_pairs(row)); }, T(1) / T(n_));
  }

  void real_of_odd_length() const {
    const Buffer whole = scratch(n_);
    Plan<T>::of(n_)->transform(
        from_.count(), from_, [&](std::int64_t row) { return in(whole, n_, row); }, T(1));
    for_rows([&](std::int64_t row) {
      const Row<T> spectrum = in(whole, n_, row), result = to_(row);
      for (std::int64_t k = 0; k < to_.size(); ++k) put(result, k, number(spectrum, k));
    });
  }

  void inverse_of_odd_length() const {
    const Buffer whole = scratch(n_);
    for_rows([&](std::int64_t row) {
      const Row<const T> half = from_(row);
      const Row<T> spectrum = in(whole, n_, row);
      put(spectrum, 0, {half.re[0], T(0)});
      for (std::int64_t k = 1; 2 * k < n_; ++k) {
        const std::complex<T> x = number(half, k);
        put(spectrum, k, x);
        put(spectrum, n_ - k, std::conj(x));
      }
    });
    // The real part alone: exchanged, the one that is dropped comes first, so that both are kept.
    Plan<T>::of(n_)->transform(
        from_.count(), [&](std::int64_t row) { return constant(exchanged(in(whole, n_, row))); },
        [&](std::int64_t row) { return exchanged(in(whole, n_, row)); }, T(1) / T(n_));
    for_rows([&](std::int64_t row) {
      const Row<T> signal = in(whole, n_, row), result = to_(row);
      for (std::int64_t j = 0; j < n_; ++j)
        result.re[j * result.stride] = signal.re[j * signal.stride];
    });
  }

  // Complex numbers for each row.
  Buffer scratch(std::int64_t size) const {
    return Buffer::empty(dtype_of<std::complex<T>>(), {from_.count(), size});
  }
  static Row<T> in(const Buffer& scratch, std::int64_t size, std::int64_t row) {
    T* const re = static_cast<T*>(scratch.view().data) + 2 * size * row;
    return {re, re + 1, 2};
  }
  static Row<const T> constant(const Row<T>& row) { return {row.re, row.im, row.stride}; }

  // Parts of 1 .. half / 2 of every row.
  template <class Body>
  void for_parts(std::int64_t half, const Body& body) const {
    constexpr std::int64_t part = 8192;
    const std::int64_t last = half / 2 + 1,
                       parts = std::max<std::int64_t>(1, (last + part - 2) / part);
    const std::int64_t grain = std::max<std::int64_t>(1, part / std::max<std::int64_t>(half, 1));
    parallel_for(from_.count() * parts, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = 1 + i % parts * part;
        body(i / parts, first, std::min(first + part, last));
      }
    });
  }
  template <class Body>
  void for_rows(const Body& body) const {
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / n_);
    parallel_for(from_.count(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) body(row);
    });
  }

  const Rows<const T> from_;
  const Rows<T> to_;
  const std::int64_t n_;
};

}  // namespace

void eval_fft(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  if (num_elements(outputs[0].shape) == 0) return;
  const Form form(params);
  if (real_dtype_of(inputs[0].dtype) == DType::float32)
    Transform<float>(inputs[0], outputs[0], form).run(form.kind);
  else
    Transform<double>(inputs[0], outputs[0], form).run(form.kind);
}

}  // namespace plait::fourier
