// scan as a function, and loops built from scan and while: fori_loop, map, associative_scan.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>
#include <plait/transforms/bodies.h>

#include "control/bodies.h"

namespace plait {
namespace {

// The dtype of an index that runs from lower to upper: theirs, or int32 where both are weak.
DType index_type(const Array& lower, const Array& upper, std::string_view name) {
  for (const Array* bound : {&lower, &upper})
    if (bound->ndim() != 0 || !is_integer(bound->dtype()))
      throw DtypeError(std::string(name) + ": a bound is " + bound->aval().to_string() +
                           ", and should be an integer scalar",
                       "give integers from the first index to the one behind the last");
  if (lower.aval().weak && upper.aval().weak) return DType::int32;
  if (lower.aval().weak) return upper.dtype();
  return upper.aval().weak ? lower.dtype() : promote_types(lower.dtype(), upper.dtype());
}

// Elements begin, begin + step, ... of an axis, excluding end.
Arrays every(const Arrays& arrays, int axis, std::int64_t begin, std::int64_t end, int step = 1) {
  Arrays results;
  for (const Array& array : arrays)
    results.push_back(lax::slice_in_dim(array, Dim(begin), Dim(end), Dim(step), axis));
  return results;
}

// even[0], odd[0], even[1], odd[1], ...; there are as many odd elements as even ones, or one fewer.
Array interleave(const Array& even, const Array& odd, int axis) {
  const std::int64_t n = even.shape(axis).constant(), m = odd.shape(axis).constant();
  auto spaced = [&](const Array& array, std::int64_t low, std::int64_t high) {
    std::vector<lax::Padding> padding(std::size_t(array.ndim()));
    padding[std::size_t(axis)] = {low, high, 1};
    return lax::pad(array, Array::literal(0, array.dtype()), padding);
  };
  // Each has zeros where the other has elements.
  const Array a = spaced(even, 0, n == m ? 1 : 0), b = spaced(odd, 1, n == m ? 0 : 1);
  return a.dtype() == DType::bool_ ? lax::bitwise_or(a, b) : lax::add(a, b);
}

Arrays scan_pairs(const Function& function, const Arrays& elements, int axis) {
  const std::int64_t n = elements[0].shape(axis).constant();
  if (n < 2) return elements;
  auto combine = [&](const Arrays& a, const Arrays& b) { return function(concatenate(a, b)); };
  const Arrays pairs = combine(every(elements, axis, 0, n - 1, 2), every(elements, axis, 1, n, 2));
  const Arrays odd = scan_pairs(function, pairs, axis);
  const std::int64_t num_odd = n / 2;
  const Arrays before = n % 2 == 0 ? every(odd, axis, 0, num_odd - 1) : odd;
  const Arrays rest = n == 2 ? Arrays{} : combine(before, every(elements, axis, 2, n, 2));
  Arrays results;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    Array even = lax::slice_in_dim(elements[i], Dim(0), Dim(1), 1, axis);
    if (!rest.empty()) even = lax::concatenate(Arrays{even, rest[i]}, axis);
    results.push_back(interleave(even, odd[i], axis));
  }
  return results;
}

Arrays reversed(const Arrays& arrays, int axis) {
  Arrays results;
  for (const Array& array : arrays) results.push_back(lax::rev(array, std::vector<int>{axis}));
  return results;
}

Dim length_of(std::span<const Array> xs, const flat::ScanOptions& options, std::size_t num_carry,
              std::string_view name) {
  std::optional<Dim> length = options.length;
  std::string whose = "length";
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const std::string mine = ArgumentNames::of(num_carry + i);
    if (xs[i].ndim() == 0)
      throw ShapeError(
          std::string(name) + ": " + mine + " is a scalar, and has no axis to scan over",
          "give an array with a leading axis, or close over it");
    const Dim here = xs[i].shape(0);
    if (length && !(*length == here))
      throw ShapeError(std::string(name) + ": xs differ in their leading axis: " + whose + " has " +
                           length->to_string() + ", " + mine + " has " + here.to_string(),
                       "scan over arrays with equal leading axes");
    if (!length) whose = mine;
    length = here;
  }
  if (!length)
    throw ValueError(std::string(name) + ": there are no xs, and no length",
                     "give length, the number of steps");
  if (less_equal(*length, Dim(-1)).value_or(false))
    throw ValueError(std::string(name) + ": length is " + length->to_string(),
                     "give a length of 0 or more");
  return *length;
}

}  // namespace

flat::Scanned flat::scan(const Function& body, std::span<const Array> init,
                         std::span<const Array> xs, const ScanOptions& options,
                         std::string_view name) {
  ScanParams scan;
  scan.length = length_of(xs, options, init.size(), name);
  scan.reverse = options.reverse;
  if (options.unroll < 0)
    throw ValueError(std::string(name) + ": unroll is " + std::to_string(options.unroll),
                     "give a number of steps, or 0 for all of them");
  require_checkpoints(options.checkpoints, name);
  const bool is_number = scan.length->is_constant();
  if (options.checkpoints && !is_number)
    throw ShapeError(std::string(name) + ": checkpoints is given for a length that is the named " +
                         "size " + scan.length->to_string(),
                     "leave checkpoints out, and put the body under checkpoint");
  if (is_number && scan.length->constant() > 0 && (options.checkpoints || options.unroll != 1))
    return scan_in_chunks(body, init, xs, scan.length->constant(), options, name);
  return scan_like(scan, body, init, xs, name);
}

flat::Scanned scan_like(const ScanParams& like, const Function& body, std::span<const Array> init,
                        std::span<const Array> xs, std::string_view name) {
  ScanParams scan = like;
  scan.num_carry = init.size();
  scan.num_xs = xs.size();
  Arrays operands(init.begin(), init.end());
  const Traced traced = trace_carried(body, operands, slices_of(avals_of(xs)), name);
  operands.insert(operands.end(), xs.begin(), xs.end());
  operands.insert(operands.end(), traced.captured.begin(), traced.captured.end());
  scan.body = traced.jaxpr;
  const Arrays outputs = bind(scan_p, operands, scan.to_params());
  return {slice(outputs, 0, init.size()), slice(outputs, init.size(), outputs.size())};
}

Arrays flat::fori_loop(const Array& lower, const Array& upper, const Function& body,
                       std::span<const Array> init, std::int64_t unroll, std::string_view name) {
  const DType dtype = index_type(lower, upper, name);
  auto step = [&](std::span<const Array> now) {
    Arrays next = body(now);
    if (next.size() != init.size())
      throw TreeError(std::string(name) + ": the body returns " + std::to_string(next.size()) +
                          " arrays for a carry of " + std::to_string(init.size()),
                      "return a carry of the structure that came in");
    next.insert(next.begin(), lax::add(now[0], Array::literal(1, dtype)));
    return next;
  };
  const Arrays carry =
      concatenate(Arrays{yielded(lower, dtype, false, name)}, Arrays(init.begin(), init.end()));
  const std::optional<Literal> first = lower.as_literal(), end = upper.as_literal();
  Arrays last;
  if (first && end) {
    const std::int64_t length = end->integer - first->integer;
    const Dim steps = std::max<std::int64_t>(0, length);
    last = flat::scan(step, carry, {}, {.length = steps, .unroll = unroll}, name).carry;
  } else if (unroll != 1) {
    throw ValueError(std::string(name) + ": unroll is " + std::to_string(unroll) +
                         ", and how many steps there are is not known while tracing",
                     "give numbers as bounds, or leave unroll out");
  } else {
    const Array limit = yielded(upper, dtype, false, name);
    last = flat::while_loop(
        [&](std::span<const Array> now) -> Arrays { return {lax::lt(now[0], limit)}; }, step, carry,
        {}, name);
  }
  return slice(last, 1, last.size());
}

Arrays flat::map(const Function& function, std::span<const Array> xs,
                 std::optional<std::int64_t> batch_size, std::string_view name) {
  auto one_by_one = [&](const Function& each, std::span<const Array> arrays) {
    return flat::scan(each, {}, arrays, {}, name).ys;
  };
  if (!batch_size) return one_by_one(function, xs);
  if (*batch_size < 1)
    throw ValueError(std::string(name) + ": batch_size is " + std::to_string(*batch_size),
                     "give a batch size of 1 or more");
  if (xs.empty() || xs[0].ndim() == 0 || !xs[0].shape(0).is_constant())
    return one_by_one(function, xs);
  const std::int64_t n = xs[0].shape(0).constant(),
                     b = std::min(*batch_size, std::max<std::int64_t>(n, 1));
  const std::int64_t whole = n / b * b;
  const Function batch = [&](std::span<const Array> arrays) {
    VmapOptions options;
    options.in_dims.assign(arrays.size(), 0);
    return flat::vmap(function, arrays, options);
  };
  Arrays batches, rest;
  for (const Array& x : xs) {
    if (x.ndim() == 0 || !(x.shape(0) == Dim(n))) return one_by_one(function, xs);  // raises
    Shape shape = x.shape();
    shape[0] = b;
    shape.insert(0, n / b);
    batches.push_back(lax::reshape(lax::slice_in_dim(x, Dim(0), whole), shape));
    rest.push_back(lax::slice_in_dim(x, whole, n));
  }
  Arrays results = one_by_one(batch, batches);
  for (Array& result : results) {
    Shape shape = result.shape();
    shape.erase(0);
    shape[0] = whole;
    result = lax::reshape(result, shape);
  }
  if (whole == n) return results;
  const Arrays last = batch(rest);
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = lax::concatenate(Arrays{results[i], last[i]}, 0);
  return results;
}

Arrays flat::associative_scan(const Function& function, std::span<const Array> given, bool reverse,
                              int axis, std::string_view name) {
  Arrays elements(given.begin(), given.end());
  if (elements.empty())
    throw ValueError(std::string(name) + ": there are no elements", "give at least one array");
  int normal = 0;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    normal = normalize_axis(axis, elements[i].ndim(), std::string(name));
    const Dim size = elements[i].shape(normal);
    if (!size.is_constant())
      throw ShapeError(std::string(name) + ": " + ArgumentNames::of(i) + " has the named size " +
                           size.to_string() + " along the axis",
                       "use scan, which goes step by step, for a size that varies");
    if (!(size == elements[0].shape(normalize_axis(axis, elements[0].ndim(), std::string(name)))))
      throw ShapeError(
          std::string(name) + ": the elements differ in the size of axis " + std::to_string(axis),
          "give arrays of equal size along the axis");
  }
  const Function checked = [&](std::span<const Array> pair) {
    const Arrays results = function(pair);
    bool fits = results.size() == elements.size();
    for (std::size_t i = 0; fits && i < results.size(); ++i)
      fits = results[i].shape() == pair[i].shape() && results[i].dtype() == pair[i].dtype();
    if (!fits)
      throw ShapeError(std::string(name) + ": the function returns other types than it takes",
                       "return arrays of the shapes and dtypes of one element");
    return results;
  };
  if (reverse) elements = reversed(elements, normal);
  const Arrays results = scan_pairs(checked, elements, normal);
  return reverse ? reversed(results, normal) : results;
}

}  // namespace plait
