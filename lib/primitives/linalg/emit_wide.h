// What the rules Emit of qr, eigh, svd and pinv share: the dtype that they compute in, rotations of
// pairs of vectors, and the phases of results.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "primitives/linalg/emit_matrices.h"

namespace plait {

// Refuses where kernels are better, and real sizes of padded matrices.
void require_any_matrices(loops::Writer& w, std::span<const loops::Tensor> inputs,
                          std::size_t num_inputs);

// As Wide in matrices.h: float64 for float32, rounded once.
DType wide_dtype_of(DType dtype);

// The n / 2 pairs of a round in which each of n things meets one other; after n - 1 rounds, each
// has met all. n is even: the last one is no thing where their number is odd.
struct Pairs {
  explicit Pairs(std::int64_t count) : count(count), even(count + count % 2) {}
  std::int64_t count, even;
  std::int64_t num_rounds() const { return even - 1; }
  std::int64_t per_round() const { return even / 2; }
  // Runs f(p, q), p < q, where both are things.
  void run(const loops::Index& round, const loops::Index& pair,
           const std::function<void(const loops::Index& p, const loops::Index& q)>& f) const;
};

// The unitary [[c, s], [-conj(s), c]] that, of columns p and q with these products, makes
// orthogonal ones: first = |p|^2, second = |q|^2, product = p^H q, which is not 0.
struct Rotation {
  written::Number c, s;
};
Rotation rotation_of(written::Number first, written::Number second, written::Number product);

// Whether all elements are finite, and the largest part of one, or 1 where all are 0.
struct Extent {
  written::Number is_finite, scale;
};
Extent extent_of(std::int64_t rows, std::int64_t columns, DType dtype,
                 const std::function<written::Number(const loops::Index&, const loops::Index&)>& x);

// As phase_of in matrices.h, of a vector of numbers.
written::Number phase_of(std::int64_t size,
                         const std::function<written::Number(const loops::Index&)>& x);

// Repeats sweeps until one begins with numbers below a limit, and so ends with them far below it:
// sweep gives what the largest one was.
void repeat_sweeps(const std::function<written::Number()>& sweep);

}  // namespace plait
