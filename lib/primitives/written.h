// Arithmetic of rules Emit: numbers of a loop program, with the operators of the language, and
// loops over indices.
//
//   const Writing writing(w, equation.source);
//   for_all(w, shape, [&](const Indices& at) { put(y, at, sqrt(get(x, at)) + real(1, dtype)); });
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/emit.h>

namespace plait::written {

using loops::Index;
using loops::Indices;

// The rule that runs on this thread: what operators write to.
class Writing {
 public:
  Writing(loops::Writer& writer, Source source);
  ~Writing();
  Writing(const Writing&) = delete;
  static Writing& current();

  loops::Writer& writer;
  const Source source;

 private:
  Writing* const outer_;
};

// Ends the rule where kernels may run the equation, which are better.
void require_no_kernels(loops::Writer& writer);

struct Number {
  loops::Value value = -1;
  DType dtype = DType::float64;
};
using Numbers = std::vector<Number>;

Number literal(double value, DType dtype);  // of any dtype but uint64
inline Number integer(std::int64_t value) {
  return {Writing::current().writer.integer(value), DType::int64};
}
Number number_of(const Index& index);
Index index_of(Number integer);
// An index that is known to be from 0 to size - 1.
Index index_below(Number integer, std::int64_t size);
Index sum_of(const Index& a, const Index& b);
Index times(const Index& index, std::int64_t factor);

// Of one dtype; * and / also of a complex number and a real one.
Number operator+(Number x, Number y);
Number operator-(Number x, Number y);
Number operator*(Number x, Number y);
Number operator/(Number x, Number y);
Number operator%(Number x, Number y);
Number operator-(Number x);
Number fma(Number x, Number y, Number z);  // x y + z, rounded once where it is real
Number sqrt(Number x);
Number power(Number x, Number y);
Number maximum(Number x, Number y);
Number minimum(Number x, Number y);
Number cast(Number x, DType dtype);
Number select(Number truth, Number x, Number y);

Number operator<(Number x, Number y);
Number operator<=(Number x, Number y);
Number operator>(Number x, Number y);
Number operator>=(Number x, Number y);
Number operator==(Number x, Number y);
Number operator!=(Number x, Number y);
Number operator&(Number x, Number y);
Number operator|(Number x, Number y);
Number operator!(Number truth);
inline Number is_nan(Number x) { return x != x; }

// Of real numbers too.
Number real(Number x);
Number imag(Number x);  // 0 of a real number
Number conj(Number x);
Number abs(Number x);
Number squared_size(Number x);  // |x|^2
Number complex_of(Number real, Number imag);

// The element of an array, and of one in memory that is written.
Number get(const loops::Tensor& array, const Indices& at);
void put(const loops::Tensor& array, const Indices& at, Number number);

// Terms for counters below a count, combined by a primitive whose identity that is: in eight
// interleaved parts.
Number combined(const Primitive& by, Number identity, std::int64_t count,
                const std::function<Number(const Index&)>& term);
// The same one after the other.
Number combined_in_turn(const Primitive& by, Number identity, std::int64_t count,
                        const std::function<Number(const Index&)>& term);
Number sum(DType dtype, std::int64_t count, const std::function<Number(const Index&)>& term);
// The sum of products, of real or complex numbers, or of integers.
Number sum_of_products(DType dtype, std::int64_t count,
                       const std::function<std::array<Number, 2>(const Index&)>& factors);

// Runs f with every index of a shape, in any order: what it writes is different for each, and none
// reads what another one writes.
void for_all(const Shape& shape, const std::function<void(const Indices&)>& f);
void for_all(std::int64_t count, const std::function<void(const Index&)>& f);
// Runs f for 0 .. steps - 1, one after the other.
void for_steps(std::int64_t steps, const std::function<void(const Index&)>& f);
// The same, and gives the numbers that f carries from step to step.
Numbers repeated(std::int64_t steps, const Numbers& first,
                 const std::function<Numbers(const Index& step, const Numbers&)>& next);
Numbers repeated_while(const Numbers& first, const std::function<Number(const Numbers&)>& condition,
                       const std::function<Numbers(const Numbers&)>& next);
// Runs f where a truth holds.
void only_where(Number truth, const std::function<void()>& f);

// The digits of an index below the product of the sizes, the last of which counts fastest.
Indices digits_of(const Index& index, std::span<const std::int64_t> sizes);

// An array in memory, not yet written.
loops::Tensor make(const Shape& shape, DType dtype);

}  // namespace plait::written
