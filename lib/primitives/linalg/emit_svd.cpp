// svd and pinv by Jacobi's method for one side: columns of the matrix are rotated in pairs until
// all are orthogonal. Their lengths are the singular values, and the product of the rotations is V.
// The pairs of a round are independent of each other. Wide matrices are transposed.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include <limits>

#include "primitives/linalg/emit_wide.h"

namespace plait {
namespace {

using namespace written;  // NOLINT

class Svd {
 public:
  explicit Svd(const loops::Tensor& x)
      : x_(x),
        is_tall_(num_rows(x.aval) >= num_columns(x.aval)),
        m_(std::max(num_rows(x.aval), num_columns(x.aval))),
        n_(std::min(num_rows(x.aval), num_columns(x.aval))),
        pairs_(n_),
        shape_(batch_of(x.aval)),
        wide_(wide_dtype_of(x.aval.dtype)),
        real_(real_dtype_of(wide_)),
        columns_(make_stack(shape_, {n_, m_}, wide_)),
        right_(make_stack(shape_, {n_, n_}, wide_)),
        gaps_(make_stack(shape_, {pairs_.per_round()}, real_)),
        sizes_(make_stack(shape_, {n_}, real_)) {}

  loops::Tensor singular_values() const {
    const loops::Tensor of_s = make_stack(shape_, {n_}, real_dtype_of(x_.aval.dtype));
    for_all(shape_, [&](const Indices& batch) {
      const Extent extent = decompose(batch, false);
      for_all(n_, [&](const Index& j) { put_value(batch, extent, j, of_s); });
    });
    return of_s;
  }

  // s, u and vh.
  loops::Tensors with_vectors(bool is_full) const {
    const DType dtype = x_.aval.dtype;
    const std::int64_t count = is_full ? m_ : n_;
    const loops::Tensor of_s = make_stack(shape_, {n_}, real_dtype_of(dtype)),
                        left = make_stack(shape_, {count, m_}, wide_),
                        right = make_stack(shape_, {n_, n_}, wide_),
                        rest = make_stack(shape_, {m_}, real_),
                        vector = make_stack(shape_, {m_}, wide_),
                        factors = make_stack(shape_, {count}, wide_);
    const auto rows = num_rows(x_.aval), columns = num_columns(x_.aval);
    const loops::Tensor of_u = make_stack(shape_, {rows, is_full ? rows : n_}, dtype),
                        of_vh = make_stack(shape_, {is_full ? columns : n_, columns}, dtype);
    for_all(shape_, [&](const Indices& batch) {
      const Extent extent = decompose(batch, true);
      const MatrixIn u{left, batch, true}, v{right, batch, true}, w{columns_, batch, true},
          turned{right_, batch, true};
      const VectorIn sizes{sizes_, batch};
      for_elements(count, m_,
                   [&](const Index& j, const Index& i) { u.put(i, j, literal(0, wide_)); });
      for_all(n_, [&](const Index& j) {
        const Index place = put_value(batch, extent, j, of_s);
        const Number size = sizes(j), is_none = !(size > literal(0, real_));
        for_all(m_, [&](const Index& i) {
          u.put(i, place, select(is_none, literal(0, wide_), w(i, j) / size));
        });
        for_all(n_, [&](const Index& i) { v.put(i, place, turned(i, j)); });
      });
      const Number known = sum(DType::int64, n_, [&](const Index& j) {
        return cast(sizes(j) > literal(0, real_), DType::int64);
      });
      complete(u, known, count, VectorIn{rest, batch}, VectorIn{vector, batch},
               VectorIn{factors, batch});
      store(batch, extent, is_tall_ ? u : v, is_tall_ ? v : u, of_u, of_vh);
    });
    return {of_s, of_u, of_vh};
  }

  loops::Tensor pseudo_inverse(double rtol) const {
    const DType dtype = x_.aval.dtype;
    const double epsilon = real_dtype_of(dtype) == DType::float32
                               ? double(std::numeric_limits<float>::epsilon())
                               : std::numeric_limits<double>::epsilon();
    const double relative = rtol >= 0 ? rtol : 10 * double(m_) * epsilon;
    const loops::Tensor inverses = make_stack(shape_, {n_}, real_),
                        result =
                            make_stack(shape_, {num_columns(x_.aval), num_rows(x_.aval)}, dtype);
    for_all(shape_, [&](const Indices& batch) {
      const Extent extent = decompose(batch, true);
      const MatrixIn w{columns_, batch, true}, v{right_, batch, true}, to{result, batch};
      const VectorIn sizes{sizes_, batch}, inverse{inverses, batch};
      const Number zero = literal(0, real_);
      const Number largest = combined(max_p, zero, n_, [&](const Index& j) { return sizes(j); });
      const Number least = largest * literal(relative, real_);
      for_all(n_, [&](const Index& j) {
        const Number size = sizes(j);
        inverse.put(j,
                    select(size <= least, zero, literal(1, real_) / (size * size * extent.scale)));
      });
      for_elements(n_, m_, [&](const Index& i, const Index& j) {
        const Number element = sum_of_products(wide_, n_, [&](const Index& k) {
          return std::array{v(i, k) * inverse(k), conj(w(j, k))};
        });
        const Number finite = select(extent.is_finite, element, literal(NAN, wide_));
        if (is_tall_)
          to.put(i, j, finite);
        else
          to.put(j, i, conj(finite));
      });
    });
    return result;
  }

 private:
  // Columns of x, or of its adjoint, become orthogonal; sizes_ are their lengths, over the scale.
  Extent decompose(const Indices& batch, bool has_vectors) const {
    const MatrixIn w{columns_, batch, true}, v{right_, batch, true};
    const VectorIn sizes{sizes_, batch};
    const auto given = [&](const Index& i, const Index& j) {
      const MatrixIn x{x_, batch};
      return cast(is_tall_ ? x(i, j) : conj(x(j, i)), wide_);
    };
    const Extent extent = extent_of(m_, n_, wide_, given);
    for_elements(n_, m_,
                 [&](const Index& j, const Index& i) { w.put(i, j, given(i, j) / extent.scale); });
    if (has_vectors)
      for_elements(n_, n_, [&](const Index& j, const Index& i) {
        v.put(i, j, select(number_of(i) == number_of(j), literal(1, wide_), literal(0, wide_)));
      });
    if (n_ > 1) iterate(batch, has_vectors);
    for_all(n_, [&](const Index& j) {
      sizes.put(j, sqrt(sum(real_, m_, [&](const Index& i) { return squared_size(w(i, j)); })));
    });
    return extent;
  }

  void iterate(const Indices& batch, bool has_vectors) const {
    const VectorIn gaps{gaps_, batch};
    repeat_sweeps([&] {
      for_all(pairs_.per_round(), [&](const Index& pair) { gaps.put(pair, literal(0, real_)); });
      for_steps(pairs_.num_rounds(), [&](const Index& round) {
        for_all(pairs_.per_round(), [&](const Index& pair) {
          pairs_.run(round, pair, [&](const Index& p, const Index& q) {
            rotate(batch, p, q, pair, has_vectors);
          });
        });
      });
      return combined(max_p, literal(0, real_), pairs_.per_round(),
                      [&](const Index& pair) { return gaps(pair); });
    });
  }

  void rotate(const Indices& batch, const Index& p, const Index& q, const Index& pair,
              bool has_vectors) const {
    const MatrixIn w{columns_, batch, true}, v{right_, batch, true};
    const VectorIn gaps{gaps_, batch};
    const auto square = [&](const Index& j) {
      return sum(real_, m_, [&](const Index& i) { return squared_size(w(i, j)); });
    };
    const Number first = square(p), second = square(q);
    const Number product = sum_of_products(
        wide_, m_, [&](const Index& i) { return std::array{conj(w(i, p)), w(i, q)}; });
    const Number both = sqrt(first) * sqrt(second), zero = literal(0, real_);
    const Number gap = select(both > zero, abs(product) / both, zero);
    gaps.put(pair, maximum(gaps(pair), gap));
    only_where(gap > literal(0x1p-53, real_), [&] {
      const Rotation rotation = rotation_of(first, second, product);
      const auto turn = [&](const MatrixIn& columns, std::int64_t rows) {
        for_all(rows, [&](const Index& i) {
          const Number x = columns(i, p), y = columns(i, q);
          columns.put(i, p, x * rotation.c - conj(rotation.s) * y);
          columns.put(i, q, rotation.s * x + y * rotation.c);
        });
      };
      turn(w, m_);
      if (has_vectors) turn(v, n_);
    });
  }

  // Stores a singular value; gives its place among them, the largest first.
  Index put_value(const Indices& batch, const Extent& extent, const Index& j,
                  const loops::Tensor& of_s) const {
    const VectorIn sizes{sizes_, batch}, s{of_s, batch};
    const Number mine = sizes(j);
    const Number found = sum(DType::int64, n_, [&](const Index& i) {
      const Number other = sizes(i), is_before = number_of(i) < number_of(j);
      return cast((other > mine) | ((other == mine) & is_before), DType::int64);
    });
    const Index place = index_below(select(extent.is_finite, found, number_of(j)), n_);
    s.put(place, select(extent.is_finite, mine * extent.scale, literal(NAN, real_)));
    return place;
  }

  // The columns behind the known ones: each is the unit vector that is farthest from those before
  // it, made orthogonal to them, twice.
  void complete(const MatrixIn& u, Number known, std::int64_t count, const VectorIn& rest,
                const VectorIn& vector, const VectorIn& factors) const {
    for_steps(count, [&](const Index& step) {
      const Number column = number_of(step);
      only_where(column >= known, [&] {
        for_all(m_, [&](const Index& i) {
          rest.put(i, literal(1, real_) -
                          sum(real_, count, [&](const Index& k) { return squared_size(u(i, k)); }));
        });
        const Number most =
            combined(max_p, literal(-1, real_), m_, [&](const Index& i) { return rest(i); });
        const Number found = combined(min_p, integer(m_ - 1), m_, [&](const Index& i) {
          return select(rest(i) == most, number_of(i), integer(m_ - 1));
        });
        for_all(m_, [&](const Index& i) {
          vector.put(i, select(number_of(i) == found, literal(1, wide_), literal(0, wide_)));
        });
        for (int pass = 0; pass < 2; ++pass) {
          for_all(count, [&](const Index& k) {
            factors.put(k, sum_of_products(wide_, m_, [&](const Index& i) {
                          return std::array{conj(u(i, k)), vector(i)};
                        }));
          });
          for_all(m_, [&](const Index& i) {
            vector.put(i, vector(i) - sum_of_products(wide_, count, [&](const Index& k) {
                            return std::array{u(i, k), factors(k)};
                          }));
          });
        }
        const Number size =
            sqrt(sum(real_, m_, [&](const Index& i) { return squared_size(vector(i)); }));
        for_all(m_, [&](const Index& i) { u.put(i, step, vector(i) / size); });
      });
    });
  }

  // Vectors, with the phases that matrices.h says.
  void store(const Indices& batch, const Extent& extent, const MatrixIn& u, const MatrixIn& v,
             const loops::Tensor& of_u, const loops::Tensor& of_vh) const {
    const MatrixIn to_u{of_u, batch}, to_vh{of_vh, batch};
    const auto if_finite = [&](Number number) {
      return select(extent.is_finite, number, literal(NAN, number.dtype));
    };
    const std::int64_t rows = num_rows(x_.aval), columns = num_columns(x_.aval),
                       of_left = num_columns(of_u.aval), of_right = num_rows(of_vh.aval);
    const auto store_u = [&](const Index& j, Number phase) {
      for_all(rows, [&](const Index& i) { to_u.put(i, j, if_finite(u(i, j) * phase)); });
    };
    const auto store_v = [&](const Index& j, Number phase) {
      for_all(columns, [&](const Index& i) { to_vh.put(j, i, if_finite(conj(v(i, j) * phase))); });
    };
    const auto phase_in = [&](const MatrixIn& vectors, std::int64_t size, const Index& j) {
      return phase_of(size, [&](const Index& i) { return vectors(i, j); });
    };
    for_all(n_, [&](const Index& j) {
      const Number phase = phase_in(u, rows, j);
      store_u(j, phase);
      store_v(j, phase);
    });
    const auto behind = [&](std::int64_t count, const auto& store_one) {
      if (count > n_) for_all(count - n_, [&](const Index& j) { store_one(sum_of(j, {n_})); });
    };
    behind(of_left, [&](const Index& j) { store_u(j, phase_in(u, rows, j)); });
    behind(of_right, [&](const Index& j) { store_v(j, phase_in(v, columns, j)); });
  }

  const loops::Tensor x_;
  const bool is_tall_;
  const std::int64_t m_, n_;
  const Pairs pairs_;
  const Shape shape_;
  const DType wide_, real_;
  const loops::Tensor columns_, right_, gaps_, sizes_;
};

}  // namespace

loops::Tensors emit_svd(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  const Svd svd(w.in_memory(inputs[0]));
  if (!equation.params.flag("compute_uv")) return {svd.singular_values()};
  return svd.with_vectors(equation.params.flag("full_matrices"));
}

loops::Tensors emit_pinv(loops::Writer& w, const Equation& equation,
                         std::span<const loops::Tensor> inputs) {
  require_any_matrices(w, inputs, 1);
  const Writing writing(w, equation.source);
  return {Svd(w.in_memory(inputs[0])).pseudo_inverse(equation.params.get<double>("rtol"))};
}

}  // namespace plait
