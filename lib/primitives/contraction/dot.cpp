// dot_general: contraction of two arrays over any axes, batched over others. Reference kernel on
// Eigen.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/contraction/dot.h"

#include <plait/base/pool.h>
#include <plait/primitives/emitted.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/emit.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/separate.h>
#include <plait/rules/speculate.h>

#include <Eigen/Core>

#include "primitives/axis.h"
#include "primitives/contraction/complex_products.h"
#include "primitives/contraction/small_products.h"
#include "primitives/contraction/vector_products.h"
#include "primitives/cost.h"
#include "primitives/last_params.h"
#include "primitives/reduction/reduce.h"
#include "primitives/spelling.h"
#include "primitives/written.h"

namespace plait {
namespace {

using lax::DotDimensions;

Params dot_params(const DotDimensions& d, DType dtype) {
  return {{"lhs_contract", to_shape(d.lhs_contract)},
          {"rhs_contract", to_shape(d.rhs_contract)},
          {"lhs_batch", to_shape(d.lhs_batch)},
          {"rhs_batch", to_shape(d.rhs_batch)},
          {"dtype", dtype}};
}

// An operand as a stack of matrices [batch, rows, columns]: a view where each group of axes merges
// into one, a copy otherwise.
struct Matrices {
  std::int64_t batch, rows, columns, batch_stride, row_stride, column_stride;
  const void* data;
  Buffer copy;
};

Matrices as_matrices(const View& view, std::span<const int> batch, std::span<const int> rows,
                     std::span<const int> columns) {
  auto merge = [&](std::span<const int> axes, std::int64_t& size, std::int64_t& stride) {
    size = 1;
    stride = 1;
    bool first = true, merges = true;
    for (std::size_t i = axes.size(); i-- > 0;) {
      const std::int64_t n = view.shape[axes[i]], s = view.strides[axes[i]];
      if (n != 1) {
        if (first)
          stride = s;
        else
          merges &= s == stride * size;
        first = false;
      }
      size *= n;
    }
    return merges;
  };
  Matrices m;
  bool merged = merge(batch, m.batch, m.batch_stride);
  merged &= merge(rows, m.rows, m.row_stride);
  merged &= merge(columns, m.columns, m.column_stride);
  m.data = view.data;
  // Eigen requires one unit stride and positive strides.
  if (merged && m.row_stride > 0 && m.column_stride > 0 &&
      (m.column_stride == 1 || m.row_stride == 1 || m.columns == 1 || m.rows == 1))
    return m;
  View moved{view.data, view.dtype, {}, {}};
  for (const auto* group : {&batch, &rows, &columns})
    for (int axis : *group)
      moved.shape.push_back(view.shape[axis]), moved.strides.push_back(view.strides[axis]);
  m.copy = Buffer::copy_of(moved);
  m.data = m.copy.data();
  m.column_stride = 1;
  m.row_stride = m.columns;
  m.batch_stride = m.rows * m.columns;
  return m;
}

// Sums of products of numbers side by side: parts of complex ones lie apart, so that the loop over
// the sums runs in registers.
template <class T>
class Sums {
 public:
  static constexpr std::int64_t most = 256;

  explicit Sums(std::int64_t count) : count_(count) {
    std::fill_n(real_, count, Real(0));
    if constexpr (is_complex_v<T>) std::fill_n(imag_, count, Real(0));
  }
  void add(T factor, const T* terms, std::int64_t stride) {
    if (stride == 1)
      add_products(factor, terms, std::integral_constant<std::int64_t, 1>());
    else
      add_products(factor, terms, stride);
  }
  void store(T* out) const {
    for (std::int64_t j = 0; j < count_; ++j)
      if constexpr (is_complex_v<T>)
        out[j] = {real_[j], imag_[j]};
      else
        out[j] = real_[j];
  }

 private:
  template <class Stride>
  void add_products(T factor, const T* terms, Stride stride) {
    if constexpr (is_complex_v<T>) {
      const Real a = factor.real(), b = factor.imag();
      const Real* parts = reinterpret_cast<const Real*>(terms);  // [complex.numbers]/4
      for (std::int64_t j = 0; j < count_; ++j) {
        const Real c = parts[2 * j * stride], d = parts[2 * j * stride + 1];
        real_[j] = std::fma(a, c, std::fma(-b, d, real_[j]));
        imag_[j] = std::fma(a, d, std::fma(b, c, imag_[j]));
      }
    } else {
      for (std::int64_t j = 0; j < count_; ++j)
        real_[j] = std::fma(factor, terms[j * stride], real_[j]);
    }
  }

  using Real = decltype(std::real(T()));
  const std::int64_t count_;
  Real real_[most], imag_[is_complex_v<T> ? most : 1];
};

// Matrices too narrow for blocking, and vectors of complex numbers: each sum in the order of its
// terms, whatever the strides. Eigen's order would depend on the layout here, and jit, which
// chooses layouts, would differ from eager calls.
template <class T>
void multiply_in_order(const Matrices& a, const Matrices& b, T* out) {
  const std::int64_t M = a.rows, K = a.columns, N = b.columns;
  const std::int64_t width =
      b.column_stride == 1 ? Sums<T>::most : 16;  // strided columns: as many as stay cached
  const std::int64_t blocks = (N + width - 1) / width;
  const std::int64_t work = std::max<std::int64_t>(1, std::min(N, width) * K);
  parallel_for(a.batch * M * blocks, std::max<std::int64_t>(1, 65536 / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const std::int64_t batch = index / (M * blocks), row = index / blocks % M,
                                      first = index % blocks * width;
                   const std::int64_t count = std::min(width, N - first);
                   const T* lhs =
                       static_cast<const T*>(a.data) + batch * a.batch_stride + row * a.row_stride;
                   const T* rhs = static_cast<const T*>(b.data) + batch * b.batch_stride +
                                  first * b.column_stride;
                   Sums<T> sums(count);
                   for (std::int64_t k = 0; k < K; ++k)
                     sums.add(lhs[k * a.column_stride], rhs + k * b.row_stride, b.column_stride);
                   sums.store(out + (batch * M + row) * N + first);
                 }
               });
}

// The same matrices transposed.
Matrices exchanged(const Matrices& m) {
  return {m.batch,         m.columns,    m.rows, m.batch_stride,
          m.column_stride, m.row_stride, m.data, m.copy};
}

template <class T>
MatrixStack<T> stack_of(const Matrices& m) {
  return {static_cast<const T*>(m.data), m.batch_stride, m.row_stride, m.column_stride};
}

// out = a b of `rows` rows. Calls Eigen's kernel directly: its product expression would also
// compile the paths for vectors and small matrices, for each of the layouts.
template <class T, int lhs_order, int rhs_order>
void multiply_chunk(const Matrices& a, const Matrices& b, const T* lhs, const T* rhs,
                    std::int64_t rows, T* out) {
  using namespace Eigen;  // NOLINT
  using Product = internal::general_matrix_matrix_product<Index, T, lhs_order, false, T, rhs_order,
                                                          false, RowMajor, 1>;
  const std::int64_t K = a.columns, N = b.columns;
  const std::int64_t lhs_stride = lhs_order == RowMajor ? a.row_stride : a.column_stride;
  const std::int64_t rhs_stride = rhs_order == RowMajor ? b.row_stride : b.column_stride;
  std::fill_n(out, rows * N, T(0));
  internal::gemm_blocking_space<RowMajor, T, T, Dynamic, Dynamic, Dynamic> blocking(rows, N, K, 1,
                                                                                    true);
  Product::run(rows, N, K, lhs, lhs_stride, rhs, rhs_stride, out, 1, N, T(1), blocking, nullptr);
}

// Eigen multiplies chunks of rows of nearly the same size, so that its blocking does not depend on
// the number of threads. Two or more where they are worth a thread; none has a single row, which
// would be a vector.
std::int64_t num_chunks(std::int64_t rows) {
  constexpr std::int64_t least = 32, most = 256;
  return rows < 2 * least ? 1 : (rows + 2 * most - 1) / (2 * most) * 2;
}

// Real numbers, by Eigen.
template <class T>
void multiply_chunks(const Matrices& a, const Matrices& b, T* out) {
  const std::int64_t M = a.rows, K = a.columns, N = b.columns;
  const std::int64_t chunks = num_chunks(M);
  const std::int64_t work = std::max<std::int64_t>(1, M / chunks * N * K);
  auto by_rows = [](const Matrices& m) { return m.column_stride == 1 || m.columns == 1; };
  constexpr int R = Eigen::RowMajor, C = Eigen::ColMajor;
  const auto multiply_chunk_of =
      by_rows(a) ? (by_rows(b) ? multiply_chunk<T, R, R> : multiply_chunk<T, R, C>)
                 : (by_rows(b) ? multiply_chunk<T, C, R> : multiply_chunk<T, C, C>);
  parallel_for(a.batch * chunks, std::max<std::int64_t>(1, 65536 / work),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const std::int64_t batch = index / chunks, chunk = index % chunks,
                                      first = M * chunk / chunks, end = M * (chunk + 1) / chunks;
                   const T* lhs = static_cast<const T*>(a.data) + batch * a.batch_stride +
                                  first * a.row_stride;
                   const T* rhs = static_cast<const T*>(b.data) + batch * b.batch_stride;
                   multiply_chunk_of(a, b, lhs, rhs, end - first, out + (batch * M + first) * N);
                 }
               });
}

template <class T>
void multiply(const Matrices& a, const Matrices& b, T* out) {
  const std::int64_t M = a.rows, K = a.columns, N = b.columns;
  if constexpr (std::is_floating_point_v<T>) {
    if (is_small_product(M, K, N))
      return multiply_small(stack_of<T>(a), stack_of<T>(b), a.batch, M, K, N, out);
    if (is_summed_by_parts(M, K, N)) {
      const Matrices &row = M == 1 ? a : exchanged(b), &matrix = M == 1 ? b : exchanged(a);
      return multiply_vector(stack_of<T>(row), stack_of<T>(matrix), a.batch, K, matrix.columns,
                             out);
    }
    if (is_summed_in_order(M, K, N)) return multiply_in_order(a, b, out);
    multiply_chunks(a, b, out);
  } else {
    constexpr std::int64_t few = 4;  // rows or columns
    if (N == 1) return multiply_in_order(exchanged(b), exchanged(a), out);
    if (std::min(M, N) < few || K < few) return multiply_in_order(a, b, out);
    multiply_complex(stack_of<T>(a), stack_of<T>(b), a.batch, M, K, N, out);
  }
}

// Integers wrap, so blocking gains no precision: plain loops, which compile quickly.
template <class T>
void multiply_integers(const Matrices& a, const Matrices& b, T* out) {
  using U = std::make_unsigned_t<T>;
  const std::int64_t M = a.rows, K = a.columns, N = b.columns;
  parallel_for(a.batch * M, std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, N * K)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t index = begin; index < end; ++index) {
                   const T* lhs = static_cast<const T*>(a.data) + index / M * a.batch_stride +
                                  index % M * a.row_stride;
                   const T* rhs = static_cast<const T*>(b.data) + index / M * b.batch_stride;
                   T* row = out + index * N;
                   std::fill_n(row, N, T(0));
                   for (std::int64_t k = 0; k < K; ++k)
                     for (std::int64_t j = 0; j < N; ++j)
                       row[j] = T(U(row[j]) + std::uint64_t(U(lhs[k * a.column_stride])) *
                                                  U(rhs[k * b.row_stride + j * b.column_stride]));
                 }
               });
}

View cast_view(const View& view, DType dtype, Buffer& keep) {
  if (view.dtype == dtype) return view;
  keep = Buffer::empty(dtype, view.shape);
  run_pointwise(
      rule<Pointwise>(cast_p)(std::span(&view.dtype, 1), {{"dtype", dtype}, {"weak", false}}),
      std::span(&view, 1), keep.view());
  return keep.view();
}

void dot_eval(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  const AxisList lhs_contract = axis_list(params, "lhs_contract"),
                 rhs_contract = axis_list(params, "rhs_contract"),
                 lhs_batch = axis_list(params, "lhs_batch"),
                 rhs_batch = axis_list(params, "rhs_batch");
  const View& out = outputs[0];
  if (num_elements(out.shape) == 0) return;
  // 16-bit floats and bools multiply in a wider type and round once.
  DType compute = out.dtype;
  if (compute == DType::float16 || compute == DType::bfloat16) compute = DType::float32;
  if (compute == DType::bool_) compute = DType::int32;
  Buffer keep[3];
  const View lhs = cast_view(inputs[0], compute, keep[0]),
             rhs = cast_view(inputs[1], compute, keep[1]);
  const Matrices a =
      as_matrices(lhs, lhs_batch, free_axes(lhs.rank(), lhs_contract, lhs_batch), lhs_contract);
  const Matrices b =
      as_matrices(rhs, rhs_batch, rhs_contract, free_axes(rhs.rank(), rhs_contract, rhs_batch));
  View target = out;
  if (compute != out.dtype) {
    keep[2] = Buffer::empty(compute, out.shape);
    target = keep[2].view();
  }
  visit_dtype(compute, [&](auto element) {
    using T = decltype(element);
    if constexpr (!std::is_same_v<T, bool> && !detail::is_half<T>) {
      if (a.columns == 0)
        std::fill_n(target.as<T>(), num_elements(out.shape), T(0));
      else if constexpr (std::is_integral_v<T>)
        multiply_integers<T>(a, b, target.as<T>());
      else
        multiply<T>(a, b, target.as<T>());
    }
  });
  if (compute != out.dtype)
    run_pointwise(
        rule<Pointwise>(cast_p)(std::span(&compute, 1), {{"dtype", out.dtype}, {"weak", false}}),
        std::span(&target, 1), out);
}

// The cotangent of one operand: contracts the result's cotangent with the other operand over its
// free axes, then restores the operand's order of axes. Where the result is wider than the
// operands, so is its cotangent; it is rounded to the dtype of the operand's cotangent at the end.
Array transpose_operand(const Array& cotangent, const Array& other, const Aval& operand,
                        const DotAxes& axes, bool is_lhs) {
  const Array ct = lax::convert_element_type(cotangent, other.dtype());
  const auto& my_contract = is_lhs ? axes.lhs_contract : axes.rhs_contract;
  const auto& other_contract = is_lhs ? axes.rhs_contract : axes.lhs_contract;
  const auto& my_batch = is_lhs ? axes.lhs_batch : axes.rhs_batch;
  const auto& other_batch = is_lhs ? axes.rhs_batch : axes.lhs_batch;
  const std::vector<int> my_free = free_axes(operand.rank(), my_contract, my_batch);
  const std::vector<int> other_free = free_axes(other.ndim(), other_contract, other_batch);
  const int num_batch = int(my_batch.size());
  // The result's axes are batch, lhs free, rhs free.
  DotDimensions d;
  for (int i = 0; i < num_batch; ++i) {
    d.lhs_batch.push_back(i);
    d.rhs_batch.push_back(other_batch[i]);
  }
  const int other_start = num_batch + (is_lhs ? int(my_free.size()) : 0);
  for (std::size_t i = 0; i < other_free.size(); ++i) {
    d.lhs_contract.push_back(other_start + int(i));
    d.rhs_contract.push_back(other_free[i]);
  }
  // The operand's contracted axes come from the other operand, in its order, and the free ones from
  // ct. Whichever the operand has first goes first in the product, so that mostly no transpose is
  // needed.
  const bool contracted_first =
      !my_contract.empty() &&
      (my_free.empty() || *std::min_element(my_contract.begin(), my_contract.end()) < my_free[0]);
  if (contracted_first) {
    std::swap(d.lhs_batch, d.rhs_batch);
    std::swap(d.lhs_contract, d.rhs_contract);
  }
  const Array product = contracted_first ? lax::dot_general(other, ct, d, operand.dtype)
                                         : lax::dot_general(ct, other, d, operand.dtype);
  std::vector<int> position(operand.rank());
  int at = 0;
  for (int axis : my_batch) position[axis] = at++;
  if (!contracted_first)
    for (int axis : my_free) position[axis] = at++;
  std::vector<int> order(other_contract.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = int(i);
  std::sort(order.begin(), order.end(),
            [&](int i, int j) { return other_contract[i] < other_contract[j]; });
  for (int i : order) position[my_contract[i]] = at++;
  if (contracted_first)
    for (int axis : my_free) position[axis] = at++;
  return lax::transpose(product, position);
}

// Distances along the axes of the result, which are the batch axes and the free ones of both sides.
Sizes64 strides_in_result(const Sizes64& of_operand, const std::vector<int>& batch,
                          const std::vector<int> (&free)[2], int side) {
  Sizes64 strides;
  for (int axis : batch) strides.push_back(of_operand[std::size_t(axis)]);
  for (int of = 0; of < 2; ++of)
    for (int axis : free[of]) strides.push_back(of == side ? of_operand[std::size_t(axis)] : 0);
  return strides;
}

// A sum of products, as the kernels add them: in order, or in eight interleaved parts. Integers
// wrap, whatever the order.
struct SumOfProducts {
  loops::Writer& w;
  DType dtype;
  std::int64_t count;
  bool by_parts;
  Source source;
  using Factors = std::function<std::array<loops::Value, 2>(const loops::Index&)>;

  bool is_of_integers() const { return is_integer(dtype); }
  bool is_written() const { return count <= loops::few; }
  std::int64_t block() const {
    return by_parts || is_of_integers() ? ReductionStage::row_block : count;
  }
  loops::Value zero() const { return w.literal(Literal{dtype, false, 0, 0, 0}); }

  loops::Value of(const Factors& factors) const {
    if (is_written()) return written(factors);
    const Primitive& by = is_of_integers() ? add_p : dot_general_p;
    loops::Values blocks;
    for (std::int64_t first = 0; first < count; first += block())
      blocks.push_back(w.combine(
          by, zero(), std::min(block(), count - first), !by_parts && !is_of_integers(),
          [&](const loops::Index& index) {
            const auto [a, b] = factors({index.offset + first, index.terms});
            if (!is_of_integers()) return loops::Values{a, b};
            return loops::Values{w.compute(mul_p, {}, {a, b}, source)};
          },
          source));
    return emit_pairwise(w, add_p, blocks, source);
  }

 private:
  loops::Value written(const Factors& factors) const {
    loops::Values sums(by_parts ? 8 : 1, zero());
    for (std::int64_t i = 0; i < count; ++i) {
      loops::Value& sum = sums[std::size_t(i) % sums.size()];
      const auto [a, b] = factors({i});
      sum = is_of_integers()
                ? w.compute(add_p, {}, {w.compute(mul_p, {}, {a, b}, source), sum}, source)
                : w.compute(fma_p, {}, {a, b, sum}, source);
    }
    for (std::size_t width = sums.size() / 2; width > 0; width /= 2)
      for (std::size_t part = 0; part < width; ++part)
        sums[part] = w.compute(add_p, {}, {sums[part], sums[part + width]}, source);
    return sums[0];
  }
};

// Refuses what the kernels compute otherwise, or with more threads. count: of the terms of a sum.
void require_sums(loops::Writer& w, const DotAxes& axes, std::span<const loops::Tensor> inputs,
                  const SumOfProducts& sum, std::int64_t m, std::int64_t n) {
  constexpr double most_integers = 1 << 16;
  if (inputs[0].aval.dtype != sum.dtype ||
      !(sum.is_of_integers() || sum.dtype == DType::float32 || sum.dtype == DType::float64))
    w.refuse("a product of " + std::string(name_of(inputs[0].aval.dtype)));
  if (sum.is_of_integers() ? double(m) * double(n) * double(sum.count) > most_integers
                           : sum.count > 1 && !sum.by_parts && !is_summed_in_order(m, sum.count, n))
    w.refuse("a product of matrices");
  if (sum.count > 16 * sum.block()) w.refuse("a product of long vectors");
  for (const std::vector<int>* contract : {&axes.lhs_contract, &axes.rhs_contract})
    for (std::size_t i = 0; i + 1 < contract->size(); ++i)
      if ((*contract)[i + 1] != (*contract)[i] + 1) w.refuse("a product over scattered axes");
}

// What kernels multiply, in sums over every axis and in any dtype: terms are those of one index
// over all axes that are contracted. Long sums are cut in blocks, which threads share.
class AnyProduct {
 public:
  AnyProduct(const DotAxes& axes, std::span<const loops::Tensor> inputs, DType dtype)
      : axes_(axes), inputs_(inputs), dtype_(dtype) {
    for (const int axis : axes.lhs_contract) {
      sizes_.push_back(inputs[0].aval.shape[axis].constant());
      count_ *= sizes_.back();
    }
  }

  loops::Tensor emit(loops::Writer& w, const Shape& shape, Source source) {
    constexpr std::int64_t block = ReductionStage::row_block, most_outputs = 1 << 14;
    const written::Writing writing(w, source);
    for (int side = 0; side < 2; ++side) operands_[side] = w.in_memory(inputs_[std::size_t(side)]);
    const std::int64_t outputs = shape.num_elements().constant();
    if (count_ < 2 * block || outputs > most_outputs) {
      const loops::Tensor result = written::make(shape, dtype_);
      written::for_all(shape, [&](const loops::Indices& at) {
        written::put(result, at, terms(at, {0}, count_));
      });
      return result;
    }
    Shape blocks = shape;
    blocks.push_back((count_ + block - 1) / block);
    const loops::Tensor partial = written::make(blocks, computed());
    const auto sums = [&](std::int64_t first, std::int64_t count, std::int64_t length) {
      Shape some = shape;
      some.push_back(count);
      written::for_all(some, [&](loops::Indices at) {
        at.back().offset += first;
        const loops::Index begin = written::times(at.back(), block);
        written::put(partial, at, terms({at.begin(), at.end() - 1}, begin, length));
      });
    };
    sums(0, count_ / block, block);
    if (count_ % block > 0) sums(count_ / block, 1, count_ % block);
    const int last = shape.rank();
    return cast_to(w, emit_reduction(w, "sum", partial, std::span(&last, 1), source), source);
  }

 private:
  // 16-bit floats and bools multiply in a wider type and round once.
  DType computed() const {
    if (dtype_ == DType::float16 || dtype_ == DType::bfloat16) return DType::float32;
    return dtype_ == DType::bool_ ? DType::int32 : dtype_;
  }
  loops::Tensor cast_to(loops::Writer& w, const loops::Tensor& sums, Source source) const {
    if (sums.aval.dtype == dtype_) return sums;
    loops::Formula formula;
    formula.reads = w.reads_of(sums);
    formula.element = [&w, sums, source, params = Params{{"dtype", dtype_}, {"weak", false}}](
                          std::span<const loops::Index> at) {
      return w.compute(cast_p, params, {w.element(sums, at)}, source);
    };
    return w.computed({sums.aval.shape, dtype_}, std::move(formula));
  }

  written::Number terms(const loops::Indices& at, const loops::Index& begin,
                        std::int64_t count) const {
    return written::sum_of_products(computed(), count, [&](const loops::Index& index) {
      const loops::Indices digits = written::digits_of(written::sum_of(index, begin), sizes_);
      return std::array{factor(0, at, digits), factor(1, at, digits)};
    });
  }
  written::Number factor(int side, const loops::Indices& at, const loops::Indices& digits) const {
    const std::vector<int>&batch = side ? axes_.rhs_batch : axes_.lhs_batch,
          &contract = side ? axes_.rhs_contract : axes_.lhs_contract;
    loops::Indices inside(std::size_t(inputs_[std::size_t(side)].aval.rank()));
    for (std::size_t i = 0; i < batch.size(); ++i) inside[std::size_t(batch[i])] = at[i];
    for (std::size_t i = 0; i < contract.size(); ++i) inside[std::size_t(contract[i])] = digits[i];
    const int lhs_rank = inputs_[0].aval.rank();
    std::size_t next = side ? std::size_t(lhs_rank) - axes_.lhs_contract.size() : batch.size();
    for (const int axis : free_axes(int(inside.size()), contract, batch))
      inside[std::size_t(axis)] = at[next++];
    return written::cast(written::get(operands_[side], inside), computed());
  }

  const DotAxes& axes_;
  const std::span<const loops::Tensor> inputs_;
  const DType dtype_;
  loops::Tensor operands_[2];
  Sizes64 sizes_;  // of the contracted axes
  std::int64_t count_ = 1;
};

// Whether the rule below refuses it.
bool needs_kernels(const DotAxes& axes, std::span<const loops::Tensor> inputs,
                   const SumOfProducts& sum, std::int64_t m, std::int64_t n) {
  const auto is_apart = [](const std::vector<int>& contract) {
    for (std::size_t i = 0; i + 1 < contract.size(); ++i)
      if (contract[i + 1] != contract[i] + 1) return true;
    return false;
  };
  return inputs[0].aval.dtype != sum.dtype ||
         !(sum.is_of_integers() || sum.dtype == DType::float32 || sum.dtype == DType::float64) ||
         sum.count >= 2 * ReductionStage::row_block ||
         (sum.count > 1 && !sum.by_parts && !is_summed_in_order(m, sum.count, n)) ||
         is_apart(axes.lhs_contract) || is_apart(axes.rhs_contract);
}

loops::Tensors emit_dot(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  const DotAxes axes(equation.params);
  const DType dtype = equation.params.get<DType>("dtype");
  const std::vector<int> lhs_free =
                             free_axes(inputs[0].aval.rank(), axes.lhs_contract, axes.lhs_batch),
                         rhs_free =
                             free_axes(inputs[1].aval.rank(), axes.rhs_contract, axes.rhs_batch);
  const auto sizes = [&](int operand, const std::vector<int>& of) {
    Shape shape;
    for (int axis : of) shape.push_back(inputs[std::size_t(operand)].aval.shape[axis]);
    return shape;
  };
  Shape shape = sizes(0, axes.lhs_batch);
  const Shape lhs_sizes = sizes(0, lhs_free), rhs_sizes = sizes(1, rhs_free);
  for (const Shape& part : {lhs_sizes, rhs_sizes})
    for (Dim size : part) shape.push_back(size);
  const std::int64_t m = lhs_sizes.num_elements().constant(),
                     n = rhs_sizes.num_elements().constant(),
                     k = sizes(0, axes.lhs_contract).num_elements().constant();
  const bool by_parts = !is_integer(dtype) && is_summed_by_parts(m, k, n);
  const SumOfProducts sum{w, dtype, k, by_parts, equation.source};
  if (!w.has_kernels() && needs_kernels(axes, inputs, sum, m, n))
    return {AnyProduct(axes, inputs, dtype).emit(w, shape, equation.source)};
  require_sums(w, axes, inputs, sum, m, n);
  const bool is_of_numbers = sum.is_written() && shape.num_elements().constant() <= loops::few;
  bool reads_list = false;
  loops::Tensor operands[2];
  std::vector<int> free[2] = {lhs_free, rhs_free};
  std::vector<loops::Formula::Read> reads;
  for (int side = 0; side < 2; ++side) {
    const std::vector<int>&contract = side ? axes.rhs_contract : axes.lhs_contract,
          &batch = side ? axes.rhs_batch : axes.lhs_batch;
    loops::Tensor& operand = operands[side];
    operand = inputs[std::size_t(side)];
    // What several results read is computed once; numbers that are known stay as they are.
    const bool is_list = !operand.formula && !operand.is_in_memory();
    if (is_list ? !is_of_numbers : !operand.formula || (side ? m : n) > 1)
      operand = w.in_memory(operand);
    else
      reads_list |= operand.elements.size() > 1;
    operand = loops::merged(w, operand, contract);
    for (loops::Formula::Read& read : w.reads_of(operand)) {
      read.strides =
          read.is_anywhere ? Sizes64{} : strides_in_result(read.strides, batch, free, side);
      reads.push_back(std::move(read));
    }
  }
  const std::size_t num_batch = axes.lhs_batch.size();
  loops::Formula formula;
  formula.reads = std::move(reads);
  formula.element = [&](std::span<const loops::Index> indices) {
    const auto term = [&](int side, const loops::Index& at) {
      loops::Indices inside(std::size_t(operands[side].aval.rank()));
      const std::vector<int>& batch = side ? axes.rhs_batch : axes.lhs_batch;
      for (std::size_t i = 0; i < num_batch; ++i) inside[std::size_t(batch[i])] = indices[i];
      const std::size_t first = num_batch + (side ? lhs_free.size() : 0);
      for (std::size_t i = 0; i < free[side].size(); ++i)
        inside[std::size_t(free[side][i])] = indices[first + i];
      const std::vector<int>& contract = side ? axes.rhs_contract : axes.lhs_contract;
      if (!contract.empty()) inside[std::size_t(contract.back())] = at;
      return w.element(operands[side], inside);
    };
    return sum.of([&](const loops::Index& at) { return std::array{term(0, at), term(1, at)}; });
  };
  if (!reads_list) return {w.combined({shape, dtype}, formula, !by_parts)};
  // A list is read at places that are known: its products are a list too.
  loops::Tensor result{{shape, dtype}};
  const std::int64_t count = shape.num_elements().constant();
  for (std::int64_t number = 0; number < count; ++number) {
    loops::Indices at(std::size_t(shape.rank()));
    std::int64_t rest = number;
    for (int axis = shape.rank(); axis-- > 0; rest /= shape[axis].constant())
      at[std::size_t(axis)] = {rest % shape[axis].constant()};
    result.elements.push_back(formula.element(at));
  }
  return {result};
}

double dot_flops(cost::Avals inputs, cost::Avals outputs, const Params& params) {
  double terms = 1;
  for (const int axis : DotAxes(params).lhs_contract) terms *= value_of(inputs[0].shape[axis]);
  return cost::multiply_add(outputs[0].dtype) * terms * elements_of(outputs[0]);
}

spelling::Text spell_dot(const EquationWriter& w) {
  const std::string lhs_contract = w.items("lhs_contract"), rhs_contract = w.items("rhs_contract"),
                    lhs_batch = w.items("lhs_batch"), rhs_batch = w.items("rhs_batch");
  const std::string dimensions =
      w.is_python() ? w.list({w.list({lhs_contract, rhs_contract}), w.list({lhs_batch, rhs_batch})})
                    : "plait::lax::DotDimensions" +
                          w.list({lhs_contract, rhs_contract, lhs_batch, rhs_batch});
  std::vector<std::string> arguments{w.operand(0), w.operand(1), dimensions};
  spelling::add_dtype(w, arguments, "preferred_element_type");
  return w.call("dot_general", arguments);
}

}  // namespace

constinit const Primitive dot_general_p{"dot_general"};
static const auto dot_general_def =
    define(dot_general_p,
           "Sums products over the contracted axes; the result has the batch axes, then the free "
           "axes of lhs, then "
           "those of rhs. 16-bit floats accumulate in float32.")
        .operands(2)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const DotAxes axes(params);
          const Aval &lhs = inputs[0], &rhs = inputs[1];
          if (lhs.dtype != rhs.dtype)
            throw DtypeError("dot_general: operands have dtypes " +
                                 std::string(name_of(lhs.dtype)) + " and " +
                                 std::string(name_of(rhs.dtype)),
                             "convert one with astype, or use matmul, which promotes");
          auto check_list = [&](const std::vector<int>& a, const std::vector<int>& b,
                                const char* what) {
            if (a.size() != b.size())
              throw ShapeError(std::string("dot_general: ") + std::to_string(a.size()) + " and " +
                                   std::to_string(b.size()) + " axes to " + what,
                               "name as many axes of each operand");
            for (std::size_t i = 0; i < a.size(); ++i) {
              equation_axis(a[i], lhs.rank(), "dot_general");
              equation_axis(b[i], rhs.rank(), "dot_general");
              if (!(lhs.shape[a[i]] == rhs.shape[b[i]]))
                throw ShapeError(
                    std::string("dot_general: cannot ") + what + " axis " + std::to_string(a[i]) +
                        " of shape (" + lhs.shape.to_string() + ") with axis " +
                        std::to_string(b[i]) + " of shape (" + rhs.shape.to_string() + "): sizes " +
                        lhs.shape[a[i]].to_string() + " and " + rhs.shape[b[i]].to_string(),
                    "make the sizes equal, or transpose an operand");
            }
          };
          check_list(axes.lhs_contract, axes.rhs_contract, "contract");
          check_list(axes.lhs_batch, axes.rhs_batch, "batch");
          auto check_once = [](std::vector<int> named, const std::vector<int>& others,
                               const char* which) {
            named.insert(named.end(), others.begin(), others.end());
            std::sort(named.begin(), named.end());
            if (std::adjacent_find(named.begin(), named.end()) != named.end())
              throw ShapeError(std::string("dot_general: an axis of ") + which + " is named twice",
                               "name each axis once");
          };
          check_once(axes.lhs_contract, axes.lhs_batch, "lhs");
          check_once(axes.rhs_contract, axes.rhs_batch, "rhs");
          Aval out{{},
                   params.get<DType>("dtype"),
                   lhs.weak && rhs.weak && params.get<DType>("dtype") == lhs.dtype};
          for (int axis : axes.lhs_batch) out.shape.push_back(lhs.shape[axis]);
          for (int axis : free_axes(lhs.rank(), axes.lhs_contract, axes.lhs_batch))
            out.shape.push_back(lhs.shape[axis]);
          for (int axis : free_axes(rhs.rank(), axes.rhs_contract, axes.rhs_batch))
            out.shape.push_back(rhs.shape[axis]);
          return std::vector<Aval>{out};
        })
        .rule<Eval>(dot_eval)
        .rule<Emit>(emit_dot)
        .rule<Cost>(cost::arithmetic(dot_flops))
        .rule<Autocast>(Autocast::low)
        .rule<Spelling>(spell_dot)
        .rule<PictureGroup>(PictureGroup::product)
        .refuse<Speculate>("it may cost more than a branch")
        .rule<Motion>(Motion::moves)
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params& params) -> Tangents {
          Tangent total(outputs[0].aval());
          if (!tangents[0].is_zero())
            total = Array(bind(dot_general_p, {tangents[0].array(), primals[1]}, params));
          if (!tangents[1].is_zero())
            total = add_tangents(
                total, Array(bind(dot_general_p, {primals[0], tangents[1].array()}, params)));
          return {total};
        })
        .rule<Transpose>([](auto cotangents, auto inputs, const Params& params) -> Tangents {
          const DotAxes axes(params);
          Tangents result{Tangent(inputs[0].aval()), Tangent(inputs[1].aval())};
          const int linear = inputs[0].is_linear() ? 0 : 1;
          result[linear] = transpose_operand(cotangents[0].array(), inputs[1 - linear].known(),
                                             inputs[linear].aval(), axes, linear == 0);
          return result;
        })
        .rule<Batch>([](Dim, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          DotAxes axes(params);
          auto shift = [](std::vector<int>& list, int dim) {
            for (int& axis : list) axis += axis >= dim;
          };
          const int num_batch = int(axes.lhs_batch.size());
          const int lhs_rank = example_aval(inputs[0]).rank(),
                    rhs_rank = example_aval(inputs[1]).rank();
          const std::vector<int> lhs_free = free_axes(lhs_rank, axes.lhs_contract, axes.lhs_batch);
          const std::vector<int> rhs_free = free_axes(rhs_rank, axes.rhs_contract, axes.rhs_batch);
          if (inputs[0].dim)
            shift(axes.lhs_contract, *inputs[0].dim), shift(axes.lhs_batch, *inputs[0].dim);
          if (inputs[1].dim)
            shift(axes.rhs_contract, *inputs[1].dim), shift(axes.rhs_batch, *inputs[1].dim);
          int result_dim = 0;
          if (inputs[0].dim && inputs[1].dim) {
            axes.lhs_batch.insert(axes.lhs_batch.begin(), *inputs[0].dim);
            axes.rhs_batch.insert(axes.rhs_batch.begin(), *inputs[1].dim);
          } else if (inputs[0].dim) {  // the batch axis is one more free axis
            result_dim = num_batch;
            for (int axis : lhs_free) result_dim += axis < *inputs[0].dim;
          } else {
            result_dim = num_batch + int(lhs_free.size());
            for (int axis : rhs_free) result_dim += axis < *inputs[1].dim;
          }
          const DotDimensions d{axes.lhs_contract, axes.rhs_contract, axes.lhs_batch,
                                axes.rhs_batch};
          return {{Array(bind(dot_general_p, {inputs[0].array, inputs[1].array},
                              dot_params(d, params.get<DType>("dtype")))),
                   result_dim}};
        })
        .rule<Separate>([](const Separate::Along& along, const Params& params) {
          if (!along.from[0] || !along.from[1]) return true;  // of rows, or columns, by themselves
          const DotAxes axes(params);
          const auto& of_lhs = along.to[0] ? axes.lhs_batch : axes.lhs_contract;
          return std::find(of_lhs.begin(), of_lhs.end(), *along.from[0]) != of_lhs.end();
        })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) {
          // Fills both operands, because 0 * NaN is NaN.
          const DotAxes axes(params);
          const Array zero = Array::literal(0, inputs[0].aval.dtype);
          return Arrays(bind(dot_general_p,
                             {fill_padding(inputs[0], zero, sizes, axes.lhs_contract),
                              fill_padding(inputs[1], zero, sizes, axes.rhs_contract)},
                             params));
        })
        .rule<Samples>([] {
          auto input = [](Shape shape) {
            return Sample::Input{{std::move(shape), DType::float64}};
          };
          return std::vector<Sample>{
              {{input({2, 3}), input({3, 4})}, dot_params({{1}, {0}, {}, {}}, DType::float64)},
              {{input({2, 3}), input({2, 4})}, dot_params({{0}, {0}, {}, {}}, DType::float64)},
              {{input({5, 2, 3}), input({5, 3, 4})},
               dot_params({{2}, {1}, {0}, {0}}, DType::float64)},
              {{input({3, 5, 2}), input({4, 2, 5})},
               dot_params({{2}, {1}, {1}, {2}}, DType::float64)},
              {{input({2, 3, 4}), input({4, 3})},
               dot_params({{1, 2}, {1, 0}, {}, {}}, DType::float64)},
              {{input({3}), input({3})}, dot_params({{0}, {0}, {}, {}}, DType::float64)},
              {{input({2}), input({3})}, dot_params({{}, {}, {}, {}}, DType::float64)}};
        });
Array lax::dot_general(Operand lhs, Operand rhs, const DotDimensions& dimensions,
                       std::optional<DType> preferred_element_type) {
  const DType dtype = preferred_element_type.value_or(lhs.dtype());
  const Params params =
      last_params([&] { return dot_params(dimensions, dtype); }, dimensions.lhs_contract,
                  dimensions.rhs_contract, dimensions.lhs_batch, dimensions.rhs_batch, dtype);
  return bind(dot_general_p, {lhs, rhs}, params);
}

}  // namespace plait
