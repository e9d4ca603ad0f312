// plait.random: keys, bits, uniform numbers, integers and choices, by the algorithms of JAX, whose
// numbers these equal exactly. See random.h; the bits themselves are primitives (random.cpp), and
// continuous distributions are in random_distributions.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "functions/random/functions.h"

#include <plait/base/stored.h>
#include <plait/control/primitives.h>
#include <plait/trace/concrete.h>

#include "functions/known_numbers.h"
#include "functions/one_program.h"

#include <cmath>

namespace plait {
using namespace functions;  // NOLINT

void functions::require_key(std::string_view function, const Array& key) {
  if (key.ndim() == 0 && key.dtype() == DType::key) return;
  if (key.ndim() == 1 && key.dtype() == DType::uint32 && key.shape(0) == Dim(2)) return;
  const bool are_several = key.ndim() == (key.dtype() == DType::key ? 1 : 2);
  throw ShapeError(
      std::string(function) + ": a key is key<fry>[], or its words, u32[2], and this is " +
          key.aval().to_string(),
      are_several ? "use vmap over an array of keys" : "make one with random.key(seed)");
}

DType functions::float_dtype(std::string_view function, std::optional<DType> dtype) {
  const DType result = dtype.value_or(default_float());
  if (!is_floating(result))
    throw DtypeError(
        std::string(function) + ": dtype " + std::string(name_of(result)) + " is not a float",
        "ask for a float dtype");
  return result;
}

FloatFormat functions::format_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return {16, 10, double(0x3c00), 0x1p-14, 0x1p-10};
    case DType::bfloat16:
      return {16, 7, double(0x3f80), 0x1p-126, 0x1p-7};
    case DType::float32:
      return {32, 23, double(0x3f800000), 0x1p-126, 0x1p-23};
    default:
      return {64, 52, double(0x3ff0000000000000), 0x1p-1022, 0x1p-52};
  }
}
Array functions::integer_literal(std::int64_t value, DType dtype) {
  return Array::literal(cast(Literal{DType::int64, false, value, 0, 0}, dtype, false));
}

// x with the rank of a shape to which it broadcasts, expanded only where necessary.
Array functions::to_shape_of(std::string_view function, const Array& x, const Shape& shape) {
  if (x.ndim() == 0) return x;
  const Shape shapes[] = {x.shape(), shape};
  if (!(plait::broadcast_shapes(shapes, function) == shape))
    throw ShapeError(std::string(function) + ": a parameter of shape (" + x.shape().to_string() +
                         ") for numbers of shape (" + shape.to_string() + ")",
                     "give a shape that the parameters broadcast to");
  return plait::broadcast_to(x, shape);
}
Shape functions::shape_or(std::string_view function, const std::optional<Shape>& shape,
                          std::initializer_list<Array> parameters) {
  if (shape) return *shape;
  std::vector<Shape> shapes;
  for (const Array& parameter : parameters) shapes.push_back(parameter.shape());
  return plait::broadcast_shapes(shapes, function);
}

Array functions::uniform_between(const Array& key, const Shape& shape, DType dtype, double low,
                                 double high) {
  return random::uniform(key, shape, dtype, Array::literal(low, dtype),
                         Array::literal(high, dtype));
}

namespace {

using OptionalDType = std::optional<DType>;

DType unsigned_dtype(int bits) {
  return bits == 8    ? DType::uint8
         : bits == 16 ? DType::uint16
         : bits == 32 ? DType::uint32
                      : DType::uint64;
}
// A random mantissa gives a number from 1 to 2; subtracts 1.
Array unit_uniform_steps(const Array& key, const Shape& shape, DType dtype) {
  const FloatFormat format = format_of(dtype);
  const int width = format.mantissa < 8 ? 8 : format.bits;
  const DType words = unsigned_dtype(format.bits);
  const Array bits = astype(lax::random_bits(key, shape, width), words);
  const Array mantissa =
      lax::shift_right_logical(bits, integer_literal(width - format.mantissa, words));
  const Array number = lax::bitwise_or(mantissa, integer_literal(std::int64_t(format.one), words));
  return lax::sub(lax::bitcast_convert_type(number, dtype), Array::literal(1, dtype));
}
Array unit_uniform(const Array& key, const Shape& shape, DType dtype) {
  return in_one_program("uniform", std::span(&key, 1), {{"shape", shape}, {"dtype", dtype}},
                        shape.num_elements(), [&](std::span<const Array> inputs) {
                          return Arrays{unit_uniform_steps(inputs[0], shape, dtype)};
                        });
}

}  // namespace

// --- Keys ----------------------------------------------------------------------------------------

Array random::PRNGKey(Operand seed) {
  if (!is_integer(seed.dtype()) || seed.ndim() != 0)
    throw DtypeError("key: a seed is an integer, and this is " + seed.aval().to_string(),
                     "give an integer");
  // 64-bit seeds use both words; a Python integer that fits 32 bits counts as 32 bits.
  Array high = Array::literal(0, DType::uint32), low;
  const std::optional<Literal> literal = seed.as_literal();
  if (literal && literal->weak) {
    const bool wide = literal->integer < INT32_MIN || literal->integer > std::int64_t(UINT32_MAX);
    if (wide)
      high = integer_literal(std::int64_t(std::uint64_t(literal->integer) >> 32), DType::uint32);
    low = integer_literal(literal->integer & 0xffffffff, DType::uint32);
  } else if (size_of(seed.dtype()) == 8) {
    const Array word =
        lax::bitcast_convert_type(lax::convert_element_type(seed, seed.dtype()), DType::uint64);
    high =
        astype(lax::shift_right_logical(word, integer_literal(32, DType::uint64)), DType::uint32);
    low = astype(lax::bitwise_and(word, integer_literal(0xffffffff, DType::uint64)), DType::uint32);
  } else {
    low = astype(astype(seed, is_signed_integer(seed.dtype()) ? DType::int32 : DType::uint32),
                 DType::uint32);
  }
  return lax::concatenate({lax::reshape(high, {1}), lax::reshape(low, {1})}, 0);
}
Array random::key(Operand seed) { return wrap_key_data(PRNGKey(seed)); }

// Known keys and their words are the same memory; else the program says how its bits are read.
Array random::key_data(Operand keys) {
  if (keys.dtype() == DType::uint32) return keys;
  if (keys.dtype() != DType::key)
    throw DtypeError("key_data: " + keys.aval().to_string() + " is no array of keys",
                     "give keys, as random.key makes them");
  if (keys.is_concrete()) return Array(words_of_keys(keys.buffer()));
  const Array words = bind(bitcast_p, {keys}, {{"dtype", carrier_of(DType::key)}});
  return lax::bitcast_convert_type(words, DType::uint32);
}
Array random::wrap_key_data(Operand key_bits_array) {
  const Aval& aval = key_bits_array.aval();
  if (aval.dtype == DType::key) return key_bits_array;
  if (aval.dtype != DType::uint32 || aval.rank() == 0 || !(aval.shape[aval.rank() - 1] == Dim(2)))
    throw ShapeError(
        "wrap_key_data: words of keys are u32[..., 2], and these are " + aval.to_string(),
        "give what random.key_data gives");
  Shape shape(aval.shape.begin(), aval.shape.end() - 1);
  if (key_bits_array.is_concrete())
    if (std::optional<Buffer> keys = keys_of_words(key_bits_array.buffer()))
      return make_concrete({std::move(shape), DType::key}, *std::move(keys));
  const Array words = lax::bitcast_convert_type(key_bits_array, carrier_of(DType::key));
  return bind(bitcast_p, {words}, {{"dtype", DType::key}});
}
Array random::clone(Operand key) { return key; }

Array random::split(Operand key, const Shape& num) {
  require_key("split", key);
  return lax::random_split(key, num);
}
Array random::fold_in(Operand key, Operand data) {
  require_key("fold_in", key);
  if (!is_integer(data.dtype()))
    throw DtypeError("fold_in: data of dtype " + std::string(name_of(data.dtype())),
                     "give an integer");
  const std::optional<Literal> literal = data.as_literal();
  return lax::random_fold(key, literal
                                   ? integer_literal(literal->integer & 0xffffffff, DType::uint32)
                                   : astype(data, DType::uint32));
}

// --- Uniform numbers -----------------------------------------------------------------------------

Array random::bits(Operand key, const Shape& shape, OptionalDType dtype) {
  require_key("bits", key);
  const DType words = dtype.value_or(DType::uint32);
  if (!is_unsigned_integer(words))
    throw DtypeError("bits: dtype " + std::string(name_of(words)) + " is not an unsigned integer",
                     "ask for uint8, uint16, uint32 or uint64");
  return lax::random_bits(key, shape, int(size_of(words)) * 8);
}

Array random::uniform(Operand key, const Shape& shape, OptionalDType dtype, Operand minval,
                      Operand maxval) {
  require_key("uniform", key);
  const DType to = float_dtype("uniform", dtype);
  const Array unit = unit_uniform(key, shape, to);
  const std::optional<Literal> low = minval.as_literal(), high = maxval.as_literal();
  if (low && high && low->as_complex() == complex128(0) && high->as_complex() == complex128(1))
    return unit;
  const Array least = to_shape_of(
      "uniform", low ? Array::literal(low->as_double(), to) : astype(minval, to), shape);
  const Array most = to_shape_of(
      "uniform", high ? Array::literal(high->as_double(), to) : astype(maxval, to), shape);
  Arrays ends{least, most};
  if (least.ndim() != most.ndim())
    for (Array& end : ends) end = plait::broadcast_to(end, shape);
  // Rounding must not go below the lower end.
  return lax::max(ends[0], lax::add(lax::mul(unit, lax::sub(ends[1], ends[0])), ends[0]));
}

Array random::randint(Operand key, const Shape& shape, Operand minval, Operand maxval,
                      OptionalDType dtype) {
  require_key("randint", key);
  const DType to = dtype.value_or(default_int());
  if (!is_integer(to))
    throw DtypeError("randint: dtype " + std::string(name_of(to)) + " is not an integer",
                     "ask for an integer dtype");
  // Sampled in at least 32 bits; the numbers of a narrower dtype lie within its range.
  const DType sampled = size_of(to) < 4 ? DType::int32 : to;
  const int width = int(size_of(sampled)) * 8;
  const DType words = unsigned_dtype(width);
  const bool is_narrow = sampled != to;
  const Array least = astype(lowest_finite(to), DType::int64);
  const Array most =
      to == DType::uint64 ? largest_finite(DType::int64) : astype(largest_finite(to), DType::int64);
  const Array top = is_narrow ? Array(lax::add(most, integer_literal(1, DType::int64))) : most;
  // An end clipped to the dtype, and whether it was above the range, which then includes one more
  // number.
  struct End {
    Array value, is_above;
  };
  // A number of Python that 32 bits do not hold was meant for a wider dtype.
  const auto require_fits = [&](const char* name, const Array& end) {
    if (!end.aval().weak || size_of(to) > 4) return;
    if (any_known<std::int64_t>(end, [](std::int64_t number) {
          return number < std::numeric_limits<std::int32_t>::min() || number > std::int64_t(1)
                                                                                   << 32;
        }))
      throw ValueError(
          std::string("randint: ") + name + " does not fit " + std::string(name_of(to)),
          "ask for a wider dtype, as in dtype='int64'");
  };
  require_fits("minval", minval);
  require_fits("maxval", maxval);
  auto clipped = [&](const Array& end) -> End {
    if (end.dtype() == to && !is_narrow) return {end, Array(false)};
    const Array whole = lax::convert_element_type(end, DType::int64);
    const Array value = astype(lax::min(lax::max(whole, least), top), sampled);
    return {value, is_narrow ? Array(false) : lax::gt(whole, most)};
  };
  const End first = clipped(minval), last = clipped(maxval);
  const bool are_scalars = minval.ndim() == 0 && maxval.ndim() == 0;  // scalars, which fold
  auto spread = [&](const Array& x) {
    return are_scalars ? x : plait::broadcast_to(to_shape_of("randint", x, shape), shape);
  };
  const Array low = spread(first.value), high = spread(last.value),
              high_above = spread(last.is_above);
  const Array keys = lax::random_split(key, {2});
  const Array higher = lax::random_bits(lax::index_in_dim(keys, 0, 0, false), shape, width);
  const Array lower = lax::random_bits(lax::index_in_dim(keys, 1, 0, false), shape, width);
  // Twice the bits, modulo the span, so that the bias of the remainder is negligible.
  const Array one = integer_literal(1, words);
  const Array difference = lax::sub(high, low);
  Array span = lax::bitcast_convert_type(difference, words);
  const Array is_empty = lax::le(high, low);
  span = lax::select(is_empty, one, span);
  span = lax::select(lax::bitwise_and(high_above, lax::bitwise_not(is_empty)), lax::add(span, one),
                     span);
  const Array half = integer_literal(std::int64_t(1) << (width / 2), words);
  // x % 0 is x: the full span.
  const Array everything = lax::eq(span, integer_literal(0, words));
  const Array divisor = lax::select(everything, one, span);
  auto modulo_span = [&](const Array& x) {
    return lax::select(everything, x, lax::rem(x, divisor));
  };
  Array factor = modulo_span(half);
  factor = modulo_span(lax::mul(factor, factor));
  const Array offset =
      modulo_span(lax::add(lax::mul(modulo_span(higher), factor), modulo_span(lower)));
  return astype(lax::add(low, lax::bitcast_convert_type(offset, sampled)), to);
}

// --- Discrete distributions ----------------------------------------------------------------------

Array random::bernoulli(Operand key, Operand p, const std::optional<Shape>& shape) {
  const DType to = p.aval().weak ? default_float() : p.dtype();
  if (!is_floating(to) || is_integer(p.dtype()) || is_bool(p.dtype()))
    throw DtypeError("bernoulli: a probability of dtype " + std::string(name_of(p.dtype())),
                     "give a float");
  const Shape sizes = shape_or("bernoulli", shape, {p});
  return lax::lt(uniform(key, sizes, to), to_shape_of("bernoulli", astype(p, to), sizes));
}
Array random::rademacher(Operand key, const Shape& shape, OptionalDType dtype) {
  const DType to = dtype.value_or(default_int());
  const Array heads = astype(bernoulli(key, 0.5, shape), to);
  return lax::sub(lax::mul(heads, Array::literal(2, to)), Array::literal(1, to));
}

namespace {

// Key and array after one more sort by random words.
Arrays shuffled_once(const Array& key, const Array& x, int axis) {
  const Array keys = lax::random_split(key, {2});
  const Array words = lax::random_bits(lax::index_in_dim(keys, 1, 0, false), x.shape(), 32);
  return {lax::index_in_dim(keys, 0, 0, false), lax::sort(Operands{words, x}, axis, true, 1)[1]};
}

// Enough rounds that equal words are unlikely to matter: ceil(3 log(count) / log(2^32 - 1)).
constexpr std::int64_t largest_of_one_round = 1625, largest_of_two_rounds = 2642245;

// One more round where count is larger than limit.
Arrays shuffled_beyond(std::int64_t limit, Dim count, const Arrays& key_and_x, int axis) {
  std::vector<Aval> avals{key_and_x[0].aval(), key_and_x[1].aval()};
  std::vector<Dim> sizes;
  collect_sizes(avals[1].shape, sizes);
  CondParams cond;
  cond.branches = {
      make_closed_jaxpr([](std::span<const Array> in) { return Arrays{in[0], in[1]}; }, avals,
                        sizes),
      make_closed_jaxpr(
          [axis](std::span<const Array> in) { return shuffled_once(in[0], in[1], axis); }, avals,
          sizes)};
  const Array is_larger =
      lax::gt(number_of(count, DType::int32), Array::literal(double(limit), DType::int32));
  return bind(
      cond_p,
      Arrays{lax::convert_element_type(is_larger, DType::int32), key_and_x[0], key_and_x[1]},
      cond.to_params());
}

Array shuffle(const Array& key, const Array& x, int axis) {
  const Dim count = x.shape().num_elements();
  Arrays key_and_x{key, x};
  if (less_equal(count, 1).value_or(false)) return x;
  key_and_x = shuffled_once(key, x, axis);  // has no effect on fewer than two elements
  for (const std::int64_t limit : {largest_of_one_round, largest_of_two_rounds}) {
    const std::optional<bool> is_enough = less_equal(count, limit);
    if (is_enough == true) break;
    key_and_x = is_enough ? shuffled_once(key_and_x[0], key_and_x[1], axis)
                          : shuffled_beyond(limit, count, key_and_x, axis);
  }
  return key_and_x[1];
}

}  // namespace

std::optional<random::Population> random::Population::from_argument(const Argument& argument) {
  if (const auto* dim = std::get_if<Dim>(&argument.value)) return Population(*dim);
  if (std::optional<Array> array = detail::as_array(argument)) return Population(*std::move(array));
  return std::nullopt;
}

random::Population::Population(Array array) {
  if (array.ndim() > 0) {
    array_ = std::move(array);
    return;
  }
  if (!is_integer(array.dtype()))
    throw DtypeError("a number of dtype " + std::string(name_of(array.dtype())) +
                         " for what is shuffled or drawn from",
                     "give an integer, or an array");
  count_ = Dim(array.item<std::int64_t>());
}

Array random::permutation(Operand key, const Population& x, int axis, bool independent) {
  require_key("permutation", key);
  if (x.count()) return shuffle(key, counting(*x.count()), 0);
  const Array& array = x.array();
  const int dim = normalize_axis(axis, array.ndim(), "permutation");
  if (independent || array.ndim() == 1) return shuffle(key, array, dim);
  return numpy::take(array, shuffle(key, counting(array.shape(dim)), 0), dim);
}

Array random::choice(Operand key, const Population& population, const Shape& shape, bool replace,
                     const std::optional<Array>& p, int axis) {
  require_key("choice", key);
  const bool is_number = population.count().has_value();
  const Array a = is_number ? Array(counting(*population.count())) : population.array();
  const int dim = is_number ? 0 : normalize_axis(axis, a.ndim(), "choice");
  const Dim count = a.shape(dim), draws = shape.num_elements();
  Shape result = shape;
  if (!is_number) {
    result = Shape(a.shape().begin(), a.shape().begin() + dim);
    for (Dim size : shape) result.push_back(size);
    for (int i = dim + 1; i < a.ndim(); ++i) result.push_back(a.shape(i));
  }
  if (draws == Dim(0)) return numpy::zeros(result, a.dtype());
  if (less_equal(count, 0) == true)
    throw ValueError("choice: nothing to choose from", "give at least one element");
  if (!replace && less_equal(draws, count) == false)
    throw ValueError(
        "choice: " + draws.to_string() + " draws without replacement from " + count.to_string(),
        "draw fewer, or with replace=True");
  Array index;
  if (!p && !replace) {
    const Array shuffled = permutation(key, a, dim);
    return lax::reshape(part(shuffled, dim, 0, draws), result);
  }
  if (!p) {
    index = randint(key, shape, 0, Array(count));
  } else {
    const Array weights = to_inexact(*p);
    if (weights.ndim() != 1 || !(weights.shape(0) == count))
      throw ShapeError("choice: probabilities of shape (" + weights.shape().to_string() + ") for " +
                           count.to_string() + " elements",
                       "give one for each element");
    if (any_known<double>(weights, [](double weight) { return !(weight >= 0); }))
      throw ValueError("choice: a probability is negative or NaN", "give positive ones");
    if (replace) {
      const Array sums = lax::cumsum(weights, 0);
      const Array total = lax::index_in_dim(sums, -1, 0, false);
      const Array r = lax::mul(
          total, lax::sub(Array::literal(1, sums.dtype()), uniform(key, shape, sums.dtype())));
      index = numpy::searchsorted(sums, r);
    } else {  // the largest of perturbed logarithms: the Gumbel-max trick
      const Array perturbed = lax::add(gumbel(key, {count}, weights.dtype()), lax::log(weights));
      index = lax::top_k(perturbed, draws).second;
    }
  }
  return lax::reshape(is_number ? index : numpy::take(a, index, dim), result);
}

Array random::categorical(Operand key, Operand logits, int axis,
                          const std::optional<Shape>& shape) {
  const Array x = to_inexact(logits);
  const int dim = normalize_axis(axis, x.ndim(), "categorical");
  Shape batch = x.shape();
  batch.erase(dim);
  const Shape result = shape.value_or(batch);
  const int leading = result.rank() - batch.rank();
  if (leading < 0 || !std::equal(batch.begin(), batch.end(), result.begin() + leading))
    throw ShapeError("categorical: logits of shape (" + x.shape().to_string() +
                         ") give draws whose shape ends in (" + batch.to_string() + "), and (" +
                         result.to_string() + ") does not",
                     "give a shape that ends so");
  Shape noisy = result;
  noisy.insert(leading + dim, x.shape(dim));
  const Array noise = gumbel(key, noisy, x.dtype());
  return lax::argmax(lax::add(noise, plait::broadcast_to(x, noisy)), leading + dim);
}

namespace {

[[maybe_unused]] const FunctionInfo* const sampling_functions[] = {
    function("random", "key(seed)",
             "A key from an integer: an array of rank 0 of dtype key<fry>, which is no number.",
             &random::key),
    function("random", "PRNGKey(seed)",
             "A key from an integer as its words, uint32[2], which random functions take too.",
             &random::PRNGKey),
    function("random", "key_data(keys)",
             "The words of keys, uint32 along a new last axis of 2; words are given back.",
             &random::key_data),
    function("random", "wrap_key_data(key_bits_array)",
             "Keys from their words, uint32[..., 2]: the keys of which key_data gives these.",
             &random::wrap_key_data),
    function("random", "clone(key)",
             "The key itself: a name for using it a second time on purpose.", &random::clone),
    function("random", "split(key, num=2)", "New keys, so many or of this shape, uint32[num, 2].",
             &random::split),
    function("random", "fold_in(key, data)", "A new key from a key and an integer.",
             &random::fold_in),
    function("random", "bits(key, shape=(), dtype=None)",
             "Random bits as unsigned integers, uint32 by default. Threefry, as JAX's.",
             &random::bits),
    function("random", "uniform(key, shape=(), dtype=None, minval=0.0, maxval=1.0)",
             "Numbers evenly distributed in [minval, maxval): a random mantissa. The ends "
             "broadcast to shape.",
             &random::uniform),
    function(
        "random", "randint(key, shape, minval, maxval, dtype=None)",
        "Integers evenly distributed in [minval, maxval), by the remainder of twice the bits; "
        "minval where that is empty. ValueError for Python's numbers that do not fit the dtype.",
        &random::randint),
    function("random", "bernoulli(key, p=0.5, shape=None)",
             "Bools that are true with probability p, of the shape of p unless given.",
             &random::bernoulli),
    function("random", "rademacher(key, shape=(), dtype=None)", "-1 or 1, int32 by default.",
             &random::rademacher),
    function("random", "permutation(key, x, axis=0, independent=False)",
             "x (or arange(x) of an integer) in random order along an axis, by sorting random "
             "keys; each row by itself when "
             "independent.",
             &random::permutation),
    function(
        "random", "choice(key, a, shape=(), replace=True, p=None, axis=0)",
        "Elements of a (or of arange(a)) along an axis, drawn at random, with probabilities p.",
        &random::choice),
    function("random", "categorical(key, logits, axis=-1, shape=None)",
             "Indices drawn with probabilities softmax(logits), by adding Gumbel's noise.",
             &random::categorical),
};

}  // namespace
}  // namespace plait
