// fft as loops: passes of radix 16 and less over memory, a convolution where a length has a large
// prime (roots.h). Real signals are complex ones here.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include "primitives/fourier/fft.h"
#include "primitives/fourier/roots.h"
#include "primitives/written.h"

namespace plait::fourier {
namespace {

using namespace written;  // NOLINT
using written::Number;

Number cos_of(Number x) {
  const Writing& writing = Writing::current();
  return {writing.writer.compute(cos_p, {}, {x.value}, writing.source), x.dtype};
}
Number sin_of(Number x) {
  const Writing& writing = Writing::current();
  return {writing.writer.compute(sin_p, {}, {x.value}, writing.source), x.dtype};
}
Number literal(std::complex<double> z, DType dtype) {
  return {Writing::current().writer.literal(Literal{dtype, false, 0, z.real(), z.imag()}), dtype};
}
Number times_i(Number z) { return complex_of(-imag(z), real(z)); }
// Of float64 numbers or arrays of them: the factor exp(i angle) in a complex dtype.
Number turn(Number angle, DType dtype) {
  const DType part = real_dtype_of(dtype);
  return complex_of(cast(cos_of(angle), part), cast(sin_of(angle), part));
}

std::vector<int> radices_in_loops(std::int64_t n) {
  std::vector<int> radices;
  for (const int radix : {16, 8, 4, 2, 3, 5, 7, 11, 13})
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  return radices;
}

// The transform of a few numbers.
Numbers transform_of(const Numbers& a) {
  const std::int64_t n = std::int64_t(a.size());
  const DType dtype = a[0].dtype;
  if (n == 1) return a;
  Numbers result(a.size());
  if (n % 2 == 0) {
    Numbers evens, odds;
    for (std::size_t i = 0; i < a.size(); ++i) (i % 2 == 0 ? evens : odds).push_back(a[i]);
    evens = transform_of(evens);
    odds = transform_of(odds);
    for (std::int64_t k = 0; k < n / 2; ++k) {
      Number odd = odds[std::size_t(k)];
      if (4 * k == n)
        odd = -times_i(odd);
      else if (k > 0)
        odd = odd * literal(root(k, n), dtype);
      result[std::size_t(k)] = evens[std::size_t(k)] + odd;
      result[std::size_t(k + n / 2)] = evens[std::size_t(k)] - odd;
    }
    return result;
  }
  // Numbers at k and n - k together.
  Numbers sums, gaps;
  result[0] = a[0];
  for (std::int64_t k = 1; 2 * k < n; ++k) {
    const Number x = a[std::size_t(k)], y = a[std::size_t(n - k)];
    sums.push_back(x + y);
    gaps.push_back(x - y);
    result[0] = result[0] + sums.back();
  }
  const DType part = real_dtype_of(dtype);
  for (std::int64_t j = 1; 2 * j < n; ++j) {
    Number even = a[0], odd{};
    for (std::int64_t k = 1; 2 * k < n; ++k) {
      const std::complex<double> w = root(j * k % n, n);
      even = even + sums[std::size_t(k - 1)] * written::literal(w.real(), part);
      const Number term = gaps[std::size_t(k - 1)] * written::literal(w.imag(), part);
      odd = k == 1 ? term : odd + term;
    }
    odd = times_i(odd);
    result[std::size_t(j)] = even + odd;
    result[std::size_t(n - j)] = even - odd;
  }
  return result;
}

Index moved(Index index, std::int64_t by) {
  index.offset += by;
  return index;
}
Indices joined(const Indices& batch, Index last) {
  Indices all = batch;
  all.push_back(std::move(last));
  return all;
}
Shape joined(const Shape& batch, std::int64_t last) {
  Shape all = batch;
  all.push_back(last);
  return all;
}

void fill_with_zeros(const loops::Tensor& rows, const Indices& batch, std::int64_t begin,
                     std::int64_t end) {
  if (begin == end) return;
  for_all(end - begin, [&](const Index& j) {
    put(rows, joined(batch, moved(j, begin)), written::literal(0, rows.aval.dtype));
  });
}

// What is read of each row, and what becomes of its transform.
using Read = std::function<Number(const Indices& batch, const Index& j)>;
using Finish = std::function<Number(Number)>;

class Transforms {
 public:
  Transforms(Shape batch, DType dtype) : batch_(std::move(batch)), dtype_(dtype) {}

  // Rows of n complex numbers; what `finish` makes of the results, in its dtype.
  loops::Tensor of(std::int64_t n, const Read& read, DType to, const Finish& finish) const {
    return is_smooth(n) ? by_passes(n, read, to, finish) : by_convolution(n, read, to, finish);
  }

 private:
  loops::Tensor by_passes(std::int64_t n, Read read, DType to, const Finish& finish) const {
    if (n == 1) {
      const loops::Tensor result = make(joined(batch_, 1), to);
      for_all(batch_, [&](const Indices& batch) {
        put(result, joined(batch, {0}), finish(read(batch, {0})));
      });
      return result;
    }
    const loops::Tensor factors = make({n}, dtype_);
    for_all(n, [&](const Index& t) {
      const Number angle = cast(number_of(t), DType::float64) *
                           written::literal(-2 * M_PI / double(n), DType::float64);
      put(factors, {t}, turn(angle, dtype_));
    });
    loops::Tensor result;
    std::int64_t left = n, s = 1;
    for (const int radix : radices_in_loops(n)) {
      const std::int64_t m = left / radix;
      const bool is_last = m == 1;
      const loops::Tensor next = make(joined(batch_, n), is_last ? to : dtype_);
      for_all(batch_, [&](const Indices& batch) {
        for_all(m, [&](const Index& p) {
          for_all(s, [&](const Index& q) {
            const Index from = sum_of(q, times(p, s)), at = sum_of(q, times(p, s * radix));
            Numbers numbers;
            for (int k = 0; k < radix; ++k) numbers.push_back(read(batch, moved(from, s * m * k)));
            numbers = transform_of(numbers);
            for (int k = 0; k < radix; ++k) {
              Number number = numbers[std::size_t(k)];
              if (k > 0 && !is_last) number = number * get(factors, {times(p, s * k)});
              put(next, joined(batch, moved(at, s * k)), is_last ? finish(number) : number);
            }
          });
        });
      });
      left = m;
      s *= radix;
      result = next;
      read = [next](const Indices& batch, const Index& j) { return get(next, joined(batch, j)); };
    }
    return result;
  }

  loops::Tensor by_convolution(std::int64_t n, const Read& read, DType to,
                               const Finish& finish) const {
    const std::int64_t size = good_size(2 * n - 1);
    const loops::Tensor chirps = make({n}, dtype_), filter = make({size}, dtype_);
    for_all(n, [&](const Index& j) {
      const Number squared = number_of(j) * number_of(j) % integer(2 * n);
      put(chirps, {j},
          turn(cast(squared, DType::float64) * written::literal(-M_PI / double(n), DType::float64),
               dtype_));
    });
    for_all(size, [&](const Index& t) {
      const Number place = number_of(t), back = integer(size) - place;
      const Number nearest = minimum(place, back);
      const Number value = conj(get(chirps, {index_below(minimum(nearest, integer(n - 1)), n)}));
      put(filter, {t}, select(nearest < integer(n), value, written::literal(0, dtype_)));
    });
    const Finish same = [](Number number) { return number; };
    const loops::Tensor of_filter =
        Transforms({}, dtype_)
            .of(
                size, [&](const Indices&, const Index& j) { return get(filter, {j}); }, dtype_,
                same);
    const loops::Tensor turned = make(joined(batch_, size), dtype_);
    for_all(batch_, [&](const Indices& batch) {
      for_all(n, [&](const Index& j) {
        put(turned, joined(batch, j), read(batch, j) * get(chirps, {j}));
      });
      fill_with_zeros(turned, batch, n, size);
    });
    const loops::Tensor spectrum = of(
        size, [&](const Indices& batch, const Index& j) { return get(turned, joined(batch, j)); },
        dtype_, same);
    // The inverse is the conjugate of the transform of conjugates.
    const loops::Tensor signal = of(
        size,
        [&](const Indices& batch, const Index& j) {
          return conj(get(spectrum, joined(batch, j)) * get(of_filter, {j}));
        },
        dtype_, same);
    const loops::Tensor result = make(joined(batch_, n), to);
    const Number scale = written::literal(1 / double(size), real_dtype_of(dtype_));
    for_all(batch_, [&](const Indices& batch) {
      for_all(n, [&](const Index& k) {
        const Number number = conj(get(signal, joined(batch, k))) * get(chirps, {k});
        put(result, joined(batch, k), finish(number * scale));
      });
    });
    return result;
  }

  const Shape batch_;
  const DType dtype_;
};

}  // namespace

loops::Tensors emit_fft(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  const Form form(equation.params);
  const std::int64_t n = form.length.constant();
  constexpr std::int64_t longest_beside_kernels = 16;
  if (w.has_kernels() && (n > longest_beside_kernels || !is_smooth(n))) w.refuse("a kernel has it");
  const Writing writing(w, equation.source);
  const loops::Tensor x = w.in_memory(inputs[0]);
  const std::size_t axis = std::size_t(form.axis);
  Shape batch = x.aval.shape;
  batch.erase(form.axis);
  const DType dtype = complex_dtype_of(real_dtype_of(x.aval.dtype));
  const auto at = [&](const Indices& of_batch, const Index& j) {
    Indices all = of_batch;
    all.insert(all.begin() + std::ptrdiff_t(axis), j);
    return get(x, all);
  };
  const Transforms transforms(batch, dtype);
  const Number scale = written::literal(1 / double(n), real_dtype_of(dtype));
  const Finish inverted = [&](Number number) { return conj(number) * scale; };
  loops::Tensor rows;
  switch (form.kind) {
    case Form::Kind::fft:
      rows = transforms.of(n, at, dtype, [](Number number) { return number; });
      break;
    case Form::Kind::ifft:
      rows = transforms.of(
          n, [&](const Indices& b, const Index& j) { return conj(at(b, j)); }, dtype, inverted);
      break;
    case Form::Kind::rfft:
      rows = transforms.of(
          n,
          [&](const Indices& b, const Index& j) {
            return complex_of(at(b, j), written::literal(0, x.aval.dtype));
          },
          dtype, [](Number number) { return number; });
      rows.aval.shape.back() = n / 2 + 1;
      break;
    case Form::Kind::irfft: {
      // real(ifft(weights x)), without the half that is not there.
      const loops::Tensor spectrum = make(joined(batch, n), dtype);
      for_all(batch, [&](const Indices& b) {
        for_all(n / 2 + 1, [&](const Index& k) {
          const Number place = number_of(k), one = written::literal(1, real_dtype_of(dtype)),
                       two = written::literal(2, real_dtype_of(dtype));
          const Number is_once = (place == integer(0)) | (place * integer(2) == integer(n));
          put(spectrum, joined(b, k), conj(at(b, k)) * select(is_once, one, two));
        });
        fill_with_zeros(spectrum, b, n / 2 + 1, n);
      });
      rows = transforms.of(
          n, [&](const Indices& b, const Index& j) { return get(spectrum, joined(b, j)); },
          real_dtype_of(dtype), [&](Number number) { return real(number) * scale; });
      break;
    }
  }
  // The same memory with the axis where it was.
  const std::int64_t stride = rows.strides.back();
  rows.strides.pop_back();
  rows.strides.insert(axis, stride);
  batch.insert(axis, rows.aval.shape.back());
  rows.aval.shape = batch;
  return {rows};
}

}  // namespace plait::fourier
