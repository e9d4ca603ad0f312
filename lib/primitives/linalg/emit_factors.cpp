// small_factors.h over the numbers of a loop program: a matrix is loaded, its factors are computed
// without loops, and stored. The matrices of a stack are steps of one loop, that is lanes.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/linalg/emit_factors.h"

#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>

#include <numeric>

#include "primitives/linalg/emit_matrices.h"
#include "primitives/linalg/small_factors.h"

namespace plait {
namespace {

// Statements of one matrix, roughly. Beyond, the kernel is as fast as what would be generated.
constexpr double most_statements = 1100;

// The rule that runs on this thread: what constants and operators write to.
class Writing {
 public:
  Writing(loops::Writer& writer, Source source)
      : writer(writer), source_(source), outer_(std::exchange(current(), this)) {}
  ~Writing() { current() = outer_; }
  Writing(const Writing&) = delete;

  static Writing*& current() {
    thread_local Writing* writing = nullptr;
    return writing;
  }
  loops::Value compute(const Primitive& primitive, loops::Values operands,
                       const Params& params = {}) const {
    return writer.compute(primitive, params, std::move(operands), source_);
  }

  loops::Writer& writer;

 private:
  const Source source_;
  Writing* const outer_;
};

struct Truth {
  loops::Value value = -1;
};

// A number of the program, as small_factors.h takes it.
template <class T>
struct Number {
  loops::Value value = -1;

  Number() {}         // g++ 12 fails to compile arrays of it with a defaulted one
  Number(T constant)  // implicit, as Pack's
      : value(Writing::current()->writer.literal(
            Literal{dtype_of<T>(), false, 0, double(constant), 0})) {}
  static Number of(loops::Value value) {
    Number number;
    number.value = value;
    return number;
  }
  static Number computed(const Primitive& primitive, loops::Values operands) {
    return of(Writing::current()->compute(primitive, std::move(operands)));
  }
  static Truth compared(const char* direction, Number x, Number y) {
    return {Writing::current()->compute(cmp_p, {x.value, y.value},
                                        {{"direction", std::string(direction)}})};
  }

  friend Number operator-(Number x) { return computed(neg_p, {x.value}); }
  friend Number operator*(Number x, Number y) { return computed(mul_p, {x.value, y.value}); }
  friend Number operator/(Number x, Number y) { return computed(div_p, {x.value, y.value}); }
  friend Truth operator<(Number x, Number y) { return compared("lt", x, y); }
  friend Truth operator>(Number x, Number y) { return compared("gt", x, y); }
  friend Truth operator<=(Number x, Number y) { return compared("le", x, y); }
  friend Truth operator==(Number x, Number y) { return compared("eq", x, y); }
  friend Number select(Truth truth, Number x, Number y) {
    return computed(select_p, {truth.value, x.value, y.value});
  }
  friend Number fma(Number x, Number y, Number z) {
    return computed(fma_p, {x.value, y.value, z.value});
  }
  friend Number sqrt(Number x) { return computed(sqrt_p, {x.value}); }
};

Dim from_back(const Aval& aval, int axis) { return aval.shape[aval.rank() - axis]; }
std::int64_t rows_of(const Aval& aval) { return from_back(aval, 2).constant(); }
std::int64_t columns_of(const Aval& aval) { return from_back(aval, 1).constant(); }

// Refuses what the kernels compute otherwise, or as fast.
void require_small(loops::Writer& w, const Equation& equation,
                   std::span<const loops::Tensor> inputs, std::size_t num_inputs,
                   std::int64_t largest, double statements) {
  const std::string name = "`" + std::string(equation.primitive->name()) + "`";
  if (inputs.size() != num_inputs) w.refuse(name + " of padded matrices");
  for (const loops::Tensor& input : inputs) {
    if (input.aval.dtype != DType::float32 && input.aval.dtype != DType::float64)
      w.refuse(name + " of " + std::string(name_of(input.aval.dtype)));
    if (std::max(rows_of(input.aval), columns_of(input.aval)) > largest)
      w.refuse(name + " of large matrices");
  }
  if (statements > most_statements) w.refuse(name + " of large matrices");
  w.require_room(statements);
}

// Whether kernels would have to compute what require_small refuses, where there are none.
bool is_left_over(const loops::Writer& w, std::span<const loops::Tensor> inputs,
                  std::size_t num_inputs, std::int64_t largest, double statements) {
  if (w.has_kernels() || inputs.size() != num_inputs) return false;
  return statements > most_statements ||
         std::any_of(inputs.begin(), inputs.end(), [&](const loops::Tensor& input) {
           return is_complex(input.aval.dtype) ||
                  std::max(rows_of(input.aval), columns_of(input.aval)) > largest;
         });
}

// The matrices of an operand, by the number of each.
class Stack {
 public:
  Stack(loops::Writer& w, const loops::Tensor& operand)
      : w_(w), tensor_(operand), rows(rows_of(operand.aval)), columns(columns_of(operand.aval)) {
    const int rank = operand.aval.rank();
    for (int axis = 0; axis < rank - 2; ++axis) count_ *= operand.aval.shape[axis].constant();
    if (operand.formula || (count_ > 1 && !operand.is_in_memory())) tensor_ = w.in_memory(operand);
    if (rank < 4) return;
    std::vector<int> batch(std::size_t(rank - 2));
    std::iota(batch.begin(), batch.end(), 0);
    tensor_ = loops::merged(w, tensor_, batch);
  }
  std::int64_t count() const { return count_; }

  // Row-major.
  template <class T>
  std::vector<Number<T>> load(const loops::Index& number) const {
    const auto rank = std::size_t(tensor_.aval.rank());
    loops::Indices at(rank, loops::Index{0});
    if (rank > 2) at[rank - 3] = number;
    std::vector<Number<T>> elements;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns; ++column) {
        at[rank - 2] = {row}, at[rank - 1] = {column};
        elements.push_back(Number<T>::of(w_.element(tensor_, at)));
      }
    return elements;
  }

 private:
  loops::Writer& w_;
  loops::Tensor tensor_;
  std::int64_t count_ = 1;

 public:
  const std::int64_t rows, columns;
};

// A result: as many numbers for each matrix, in memory or in a list.
class Parts {
 public:
  Parts(loops::Writer& w, const Aval& aval, std::int64_t count)
      : w_(w), each_(aval.shape.num_elements().constant() / count) {
    if (each_ * count > loops::few)
      tensor_ = w.make(aval);
    else
      tensor_ = {aval, loops::Values(std::size_t(each_ * count))};
  }
  bool is_list() const { return !tensor_.is_in_memory(); }
  const loops::Tensor& tensor() const { return tensor_; }

  template <class T>
  void store(const loops::Index& number, const std::vector<Number<T>>& elements) {
    const DType dtype = tensor_.aval.dtype;
    for (std::int64_t i = 0; i < each_; ++i) {
      const loops::Value value = Writing::current()->compute(
          cast_p, {elements[std::size_t(i)].value}, {{"dtype", dtype}, {"weak", false}});
      if (is_list()) {
        tensor_.elements[std::size_t(number.offset * each_ + i)] = value;
        continue;
      }
      loops::Place place = tensor_.place;
      loops::add_index(place, number, each_);
      place.offset += i;
      w_.store(place, value);
    }
  }

 private:
  loops::Writer& w_;
  const std::int64_t each_;
  loops::Tensor tensor_;
};

// Runs f<T>(number) for each matrix of a stack, whose results are `parts`.
template <class F>
loops::Tensors for_matrices(loops::Writer& w, const Equation& equation, const Aval& matrices,
                            std::int64_t count, std::vector<Parts>& parts, const F& f) {
  const Writing writing(w, equation.source);
  const auto run = [&](const loops::Index& number) {
    if (matrices.dtype == DType::float32)
      f.template operator()<float>(number);
    else
      f.template operator()<double>(number);
  };
  const bool has_lists =
      std::any_of(parts.begin(), parts.end(), [](const Parts& each) { return each.is_list(); });
  if (count == 1 || has_lists)
    for (std::int64_t number = 0; number < count; ++number) run({number});
  else
    w.for_each_apart(count, run);
  loops::Tensors results;
  for (const Parts& each : parts) results.push_back(each.tensor());
  return results;
}

Aval with_last(const Aval& matrices, std::initializer_list<std::int64_t> sizes, DType dtype) {
  Aval aval{Shape(matrices.shape.begin(), matrices.shape.end() - 2), dtype};
  for (const std::int64_t size : sizes) aval.shape.push_back(size);
  return aval;
}

double statements_of_lu(std::int64_t m, std::int64_t n) {
  return double(std::min(m, n) * m) * (1.5 * double(n) + 5);
}

}  // namespace

loops::Tensors emit_lu(loops::Writer& w, const Equation& equation,
                       std::span<const loops::Tensor> inputs) {
  const Aval& x = inputs[0].aval;
  const std::int64_t m = rows_of(x), n = columns_of(x), k = std::min(m, n);
  if (is_left_over(w, inputs, 1, small::largest_lu, statements_of_lu(m, n))) {
    const written::Writing writing(w, equation.source);
    return emit_any_lu(w.in_memory(inputs[0]));
  }
  require_small(w, equation, inputs, 1, small::largest_lu, statements_of_lu(m, n));
  const Stack stack(w, inputs[0]);
  std::vector<Parts> parts;
  parts.emplace_back(w, with_last(x, {m, n}, x.dtype), stack.count());
  for (const std::int64_t size : {k, m})
    parts.emplace_back(w, with_last(x, {size}, DType::int32), stack.count());
  return for_matrices(
      w, equation, x, stack.count(), parts, [&]<class T>(const loops::Index& number) {
        using Numbers = std::vector<Number<T>>;
        Numbers a = stack.load<T>(number), pivots((std::size_t(k))), order((std::size_t(m)));
        small::lu<T>(small::Elements<Number<T>>{a.data(), n, 1}, pivots.data(), order.data(), m, n);
        parts[0].store(number, a);
        parts[1].store(number, pivots);
        parts[2].store(number, order);
      });
}

loops::Tensors emit_det(loops::Writer& w, const Equation& equation,
                        std::span<const loops::Tensor> inputs) {
  const Aval& x = inputs[0].aval;
  const std::int64_t n = rows_of(x);
  if (is_left_over(w, inputs, 1, small::largest_lu, statements_of_lu(n, n))) {
    const written::Writing writing(w, equation.source);
    return {emit_any_det(w.in_memory(inputs[0]))};
  }
  require_small(w, equation, inputs, 1, small::largest_lu, statements_of_lu(n, n));
  const Stack stack(w, inputs[0]);
  std::vector<Parts> parts;
  parts.emplace_back(w, with_last(x, {}, x.dtype), stack.count());
  return for_matrices(
      w, equation, x, stack.count(), parts, [&]<class T>(const loops::Index& number) {
        std::vector<Number<T>> a = stack.load<T>(number);
        const Number<T> product = small::det<T>(small::Elements<Number<T>>{a.data(), n, 1}, n);
        parts[0].store(number, std::vector{product});
      });
}

loops::Tensors emit_cholesky(loops::Writer& w, const Equation& equation,
                             std::span<const loops::Tensor> inputs) {
  const Aval& x = inputs[0].aval;
  const std::int64_t n = rows_of(x);
  const double statements = double(n) * double(n) * (double(n) / 6 + 2);
  if (is_left_over(w, inputs, 1, small::largest, statements)) {
    const written::Writing writing(w, equation.source);
    return {emit_any_cholesky(w.in_memory(inputs[0]))};
  }
  require_small(w, equation, inputs, 1, small::largest, statements);
  const Stack stack(w, inputs[0]);
  std::vector<Parts> parts;
  parts.emplace_back(w, x, stack.count());
  return for_matrices(w, equation, x, stack.count(), parts,
                      [&]<class T>(const loops::Index& number) {
                        std::vector<Number<T>> a = stack.load<T>(number), l(a.size());
                        small::cholesky<T>(small::Elements<Number<T>>{a.data(), n, 1}, l.data(), n);
                        parts[0].store(number, l);
                      });
}

// As solve_kernel in cholesky.cpp has it.
loops::Tensors emit_triangular_solve(loops::Writer& w, const Equation& equation,
                                     std::span<const loops::Tensor> inputs) {
  const Params& params = equation.params;
  const bool left = params.flag("left_side"), turned = params.flag("transpose_a") == left,
             reversed = params.flag("lower") == turned;
  const Aval &x = inputs[0].aval, &y = inputs[1].aval;
  const std::int64_t n = rows_of(x), m = left ? columns_of(y) : rows_of(y);
  const double statements = double(n) * (double(m) * (double(n) / 2 + 2) + double(n));
  if (is_left_over(w, inputs, 2, small::largest, statements)) {
    const written::Writing writing(w, equation.source);
    return {emit_any_triangular_solve(w.in_memory(inputs[0]), w.in_memory(inputs[1]), params)};
  }
  require_small(w, equation, inputs, 2, small::largest, statements);
  const Stack triangles(w, inputs[0]), sides(w, inputs[1]);
  std::vector<Parts> parts;
  parts.emplace_back(w, y, sides.count());
  return for_matrices(
      w, equation, x, sides.count(), parts, [&]<class T>(const loops::Index& number) {
        using Elements = small::Elements<Number<T>>;
        const auto turned_if = [&](bool is_transposed, Elements elements) {
          if (is_transposed) elements = elements.transposed();
          return reversed ? elements.rows_reversed(n) : elements;
        };
        std::vector<Number<T>> a = triangles.load<T>(number), b = sides.load<T>(number),
                               result(b.size());
        Elements l = turned_if(turned, {a.data(), n, 1});
        if (reversed) l = l.transposed().rows_reversed(n).transposed();
        small::System<T, Number<T>>{l,
                                    turned_if(!left, {b.data(), sides.columns, 1}),
                                    turned_if(!left, {result.data(), sides.columns, 1}),
                                    n,
                                    m,
                                    params.flag("unit_diagonal")}
            .solve();
        parts[0].store(number, result);
      });
}

}  // namespace plait
