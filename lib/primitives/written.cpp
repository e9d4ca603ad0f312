// See written.h.
// SPDX-License-Identifier: Apache-2.0
#include "primitives/written.h"

#include <plait/base/internal_error.h>
#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>

namespace plait::written {
namespace {

thread_local Writing* innermost = nullptr;

Number computed(DType dtype, const Primitive& primitive, std::initializer_list<Number> operands,
                const Params& params = {}) {
  loops::Values values;
  for (const Number& operand : operands) values.push_back(operand.value);
  const Writing& writing = Writing::current();
  return {writing.writer.compute(primitive, params, std::move(values), writing.source), dtype};
}
Number compared(const char* direction, Number x, Number y) {
  return computed(DType::bool_, cmp_p, {x, y}, {{"direction", std::string(direction)}});
}
bool is_mixed(Number x, Number y) { return is_complex(x.dtype) && !is_complex(y.dtype); }

}  // namespace

Writing::Writing(loops::Writer& writer, Source source)
    : writer(writer), source(source), outer_(std::exchange(innermost, this)) {}
Writing::~Writing() { innermost = outer_; }
Writing& Writing::current() {
  if (!innermost) throw InternalError("a number is written outside of a rule");
  return *innermost;
}

void require_no_kernels(loops::Writer& writer) {
  if (writer.has_kernels()) writer.refuse("a library has it");
}

Number literal(double value, DType dtype) {
  Literal literal{dtype, false, 0, 0, 0};
  if (is_inexact(dtype))
    literal.real = value;
  else
    literal.integer = std::int64_t(value);
  return {Writing::current().writer.literal(literal), dtype};
}
Number number_of(const Index& index) {
  return {Writing::current().writer.number(index), DType::int64};
}
Index index_of(Number integer) {
  return {0, {{Writing::current().writer.index(integer.value), 1}}};
}
Index index_below(Number integer, std::int64_t size) {
  loops::Writer& w = Writing::current().writer;
  return {0, {{w.checked(w.index(integer.value), 0, size - 1), 1}}};
}
Index sum_of(const Index& a, const Index& b) {
  Index sum = a;
  sum.offset += b.offset;
  sum.terms.insert(sum.terms.end(), b.terms.begin(), b.terms.end());
  return sum;
}
Index times(const Index& index, std::int64_t factor) {
  Index product = index;
  product.offset *= factor;
  for (loops::Place::Term& term : product.terms) term.stride *= factor;
  return product;
}

Number operator+(Number x, Number y) { return computed(x.dtype, add_p, {x, y}); }
Number operator-(Number x, Number y) { return computed(x.dtype, sub_p, {x, y}); }
Number operator*(Number x, Number y) {
  if (is_mixed(y, x)) return y * x;
  if (is_mixed(x, y)) return complex_of(real(x) * y, imag(x) * y);
  return computed(x.dtype, mul_p, {x, y});
}
Number operator/(Number x, Number y) {
  if (is_mixed(x, y)) return complex_of(real(x) / y, imag(x) / y);
  return computed(x.dtype, div_p, {x, y});
}
Number operator%(Number x, Number y) { return computed(x.dtype, rem_p, {x, y}); }
Number operator-(Number x) { return computed(x.dtype, neg_p, {x}); }
Number fma(Number x, Number y, Number z) {
  if (!is_floating(x.dtype)) return x * y + z;
  return computed(x.dtype, fma_p, {x, y, z});
}
Number sqrt(Number x) { return computed(x.dtype, sqrt_p, {x}); }
Number power(Number x, Number y) { return computed(x.dtype, pow_p, {x, y}); }
Number maximum(Number x, Number y) { return computed(x.dtype, max_p, {x, y}); }
Number minimum(Number x, Number y) { return computed(x.dtype, min_p, {x, y}); }
Number cast(Number x, DType dtype) {
  if (x.dtype == dtype) return x;
  return computed(dtype, cast_p, {x}, {{"dtype", dtype}, {"weak", false}});
}
Number select(Number truth, Number x, Number y) {
  return computed(x.dtype, select_p, {truth, x, y});
}

Number operator<(Number x, Number y) { return compared("lt", x, y); }
Number operator<=(Number x, Number y) { return compared("le", x, y); }
Number operator>(Number x, Number y) { return compared("gt", x, y); }
Number operator>=(Number x, Number y) { return compared("ge", x, y); }
Number operator==(Number x, Number y) { return compared("eq", x, y); }
Number operator!=(Number x, Number y) { return compared("ne", x, y); }
Number operator&(Number x, Number y) { return computed(x.dtype, and_p, {x, y}); }
Number operator|(Number x, Number y) { return computed(x.dtype, or_p, {x, y}); }
Number operator!(Number truth) { return computed(truth.dtype, not_p, {truth}); }

Number real(Number x) {
  return is_complex(x.dtype) ? computed(real_dtype_of(x.dtype), real_p, {x}) : x;
}
Number imag(Number x) {
  return is_complex(x.dtype) ? computed(real_dtype_of(x.dtype), imag_p, {x}) : literal(0, x.dtype);
}
Number complex_of(Number real, Number imag) {
  return computed(real.dtype == DType::float32 ? DType::complex64 : DType::complex128, complex_p,
                  {real, imag});
}
Number conj(Number x) { return is_complex(x.dtype) ? complex_of(real(x), -imag(x)) : x; }
Number abs(Number x) { return computed(real_dtype_of(x.dtype), abs_p, {x}); }
Number squared_size(Number x) {
  if (!is_complex(x.dtype)) return x * x;
  const Number re = real(x), im = imag(x);
  return fma(re, re, im * im);
}

Number get(const loops::Tensor& array, const Indices& at) {
  return {Writing::current().writer.element(array, at), array.aval.dtype};
}
void put(const loops::Tensor& array, const Indices& at, Number number) {
  loops::Place place = array.place;
  for (std::size_t axis = 0; axis < at.size(); ++axis)
    loops::add_index(place, at[axis], array.strides[axis]);
  Writing::current().writer.store(place, cast(number, array.aval.dtype).value);
}

namespace {

enum class Order : std::uint8_t { in_turn, by_parts };
Number combined(const Primitive& by, Number identity, std::int64_t count, Order order,
                const std::function<Number(const Index&)>& term) {
  const Writing& writing = Writing::current();
  return {writing.writer.combine(
              by, identity.value, count, order == Order::in_turn,
              [&](const Index& index) { return loops::Values{term(index).value}; }, writing.source),
          identity.dtype};
}

}  // namespace

Number combined(const Primitive& by, Number identity, std::int64_t count,
                const std::function<Number(const Index&)>& term) {
  return combined(by, identity, count, Order::by_parts, term);
}
Number combined_in_turn(const Primitive& by, Number identity, std::int64_t count,
                        const std::function<Number(const Index&)>& term) {
  return combined(by, identity, count, Order::in_turn, term);
}
Number sum(DType dtype, std::int64_t count, const std::function<Number(const Index&)>& term) {
  return combined(add_p, literal(0, dtype), count, term);
}
Number sum_of_products(DType dtype, std::int64_t count,
                       const std::function<std::array<Number, 2>(const Index&)>& factors) {
  if (!is_floating(dtype))
    return sum(dtype, count, [&](const Index& index) {
      const auto [x, y] = factors(index);
      return x * y;
    });
  const Writing& writing = Writing::current();
  return {writing.writer.combine(
              dot_general_p, literal(0, dtype).value, count, false,
              [&](const Index& index) {
                const auto [x, y] = factors(index);
                return loops::Values{x.value, y.value};
              },
              writing.source),
          dtype};
}

void for_all(const Shape& shape, const std::function<void(const Indices&)>& f) {
  Indices at(std::size_t(shape.rank()));
  const auto run = [&](const auto& self, int axis) -> void {
    if (axis == shape.rank()) return f(at);
    for_all(shape[axis].constant(), [&](const Index& index) {
      at[std::size_t(axis)] = index;
      self(self, axis + 1);
    });
  };
  run(run, 0);
}
void for_all(std::int64_t count, const std::function<void(const Index&)>& f) {
  if (count == 1) return f({0});
  Writing::current().writer.for_each_apart(count, f);
}
void for_steps(std::int64_t steps, const std::function<void(const Index&)>& f) {
  repeated(steps, {}, [&](const Index& step, const Numbers&) {
    f(step);
    return Numbers();
  });
}

namespace {

loops::Values values_of(const Numbers& numbers) {
  loops::Values values;
  for (const Number& number : numbers) values.push_back(number.value);
  return values;
}
Numbers with_dtypes(std::span<const loops::Value> values, const Numbers& like) {
  Numbers numbers;
  for (std::size_t i = 0; i < like.size(); ++i) numbers.push_back({values[i], like[i].dtype});
  return numbers;
}

}  // namespace

Numbers repeated(std::int64_t steps, const Numbers& first,
                 const std::function<Numbers(const Index&, const Numbers&)>& next) {
  const loops::Values last = Writing::current().writer.repeat_numbers(
      steps, values_of(first), [&](const Index& step, std::span<const loops::Value> numbers) {
        return values_of(next(step, with_dtypes(numbers, first)));
      });
  return with_dtypes(last, first);
}
Numbers repeated_while(const Numbers& first, const std::function<Number(const Numbers&)>& condition,
                       const std::function<Numbers(const Numbers&)>& next) {
  const loops::Values last = Writing::current().writer.repeat_numbers_while(
      values_of(first),
      [&](std::span<const loops::Value> numbers) {
        return condition(with_dtypes(numbers, first)).value;
      },
      [&](std::span<const loops::Value> numbers) {
        return values_of(next(with_dtypes(numbers, first)));
      });
  return with_dtypes(last, first);
}
void only_where(Number truth, const std::function<void()>& f) {
  Writing::current().writer.branch(cast(truth, DType::int32).value, 2, [&](std::size_t i) {
    if (i == 1) f();
    return loops::Tensors();
  });
}

Indices digits_of(const Index& index, std::span<const std::int64_t> sizes) {
  Indices digits(sizes.size(), Index{0});
  Number rest = number_of(index);
  std::size_t first = 0;  // that is not always 0
  while (first < sizes.size() && sizes[first] == 1) ++first;
  for (std::size_t i = sizes.size(); i-- > first;) {
    if (sizes[i] == 1) continue;
    digits[i] = index_of(i == first ? rest : rest % integer(sizes[i]));
    if (i > first) rest = rest / integer(sizes[i]);
  }
  return digits;
}

loops::Tensor make(const Shape& shape, DType dtype) {
  return Writing::current().writer.make({shape, dtype});
}

}  // namespace plait::written
