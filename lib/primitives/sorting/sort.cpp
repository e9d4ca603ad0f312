// sort: elements along an axis in the order of one or several keys, in vectors where the
// processor has wide ones, else by radix sort. NaN is greater than every number, as in NumPy.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>
#include <plait/rules/picture_group.h>
#include <plait/rules/speculate.h>

#include <cmath>
#include <cstring>

#include "primitives/cost.h"
#include "primitives/last_params.h"
#include "primitives/reduction/order.h"
#include "primitives/scratch.h"
#include "primitives/sorting/emit_sort.h"
#include "primitives/sorting/sort_numbers.h"
#include "primitives/spelling.h"

namespace plait {
namespace {

using Values = Sample::Input::Values;

// The rows of a view whose axis is last, dense: the view itself, or a copy.
Buffer dense_rows(const View& rows) {
  return rows.is_dense() ? Buffer({}, rows) : Buffer::copy_of(rows);
}

std::int64_t rows_grain(std::int64_t row) {
  return std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(row, 1));
}

// Ascending keys; those of a descending order are inverted.
template <class T>
auto key_in(bool descending) {
  using Key = UnsignedOf<sizeof(T)>;
  return [flip = descending ? Key(~Key(0)) : Key(0)](T x) { return Key(order_key(x) ^ flip); };
}

// Sorts rows by key_of(item), from src to dst: long rows one at a time on all threads, others by
// one thread each.
template <class Item, class KeyOf>
void sort_rows(const Item* src, Item* dst, std::int64_t rows, std::int64_t n, const KeyOf& key_of) {
  if (n >= wide_sort && num_threads() > 1 && rows < 2 * num_threads()) {
    const Scratch<Item> scratch(n);
    for (std::int64_t row = 0; row < rows; ++row)
      radix_sort_wide(src + row * n, dst + row * n, scratch.get(), n, key_of);
    return;
  }
  const Scratch<Item> scratch(rows * n);  // every thread touches one row of it
  parallel_for(rows, rows_grain(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      if (src != dst) std::copy_n(src + row * n, n, dst + row * n);
      radix_sort(dst + row * n, scratch.get() + begin * n, n, key_of);
    }
  });
}

// sort_row(row, threads) of every row: of long rows one at a time, else a row is one thread's.
template <class SortRow>
void for_rows(std::int64_t rows, std::int64_t n, const SortRow& sort_row) {
  if (rows < num_threads()) {
    for (std::int64_t row = 0; row < rows; ++row) sort_row(row, Threads::all);
    return;
  }
  parallel_for(rows, rows_grain(n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) sort_row(row, Threads::one);
  });
}

template <class T>
void sort_numbers(const T* src, T* dst, std::int64_t rows, std::int64_t n, bool descending) {
  if constexpr (sizeof(T) >= 4)
    if (sorts_in_vectors<T>(n))
      return for_rows(rows, n, [&](std::int64_t row, Threads threads) {
        sort_in_vectors(src + row * n, dst + row * n, n, descending, threads);
      });
  sort_rows(src, dst, rows, n, key_in<T>(descending));
}

// A key and its payload: for argsort, the index.
template <class T, class Value>
struct Pair {
  T key;
  Value value;
};

template <class T, class Value>
void sort_pairs(const T* keys, const Value* values, T* sorted_keys, Value* sorted_values,
                std::int64_t rows, std::int64_t n, bool descending) {
  if (sorts_in_vectors<T>(n))
    return for_rows(rows, n, [&](std::int64_t row, Threads threads) {
      const std::int64_t first = row * n;
      sort_pairs_in_vectors(keys + first, values + first, sorted_keys + first,
                            sorted_values + first, n, descending, threads);
    });
  using Item = Pair<T, Value>;
  const Scratch<Item> pairs(rows * n), sorted(rows * n);
  const std::int64_t grain = 16384;
  parallel_for(rows * n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) pairs.get()[i] = {keys[i], values[i]};
  });
  sort_rows(pairs.get(), sorted.get(), rows, n,
            [key_of = key_in<T>(descending)](const Item& item) { return key_of(item.key); });
  parallel_for(rows * n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      sorted_keys[i] = sorted.get()[i].key;
      sorted_values[i] = sorted.get()[i].value;
    }
  });
}

// Whether sort_pairs supports these: the common key types, with values of four or eight bytes.
bool are_pairs(std::span<const View> inputs, std::int64_t num_keys) {
  if (inputs.size() != 2 || num_keys != 1) return false;
  const int key_bytes = size_of(inputs[0].dtype), value_bytes = size_of(inputs[1].dtype);
  return !is_complex(inputs[0].dtype) && (key_bytes == 4 || key_bytes == 8) &&
         (value_bytes == 4 || value_bytes == 8);
}

// The number of keys of an operand, from the least significant to the most: for a complex number
// the imaginary part, the real part and, above both, a key for NaN in either.
int num_parts(DType dtype) { return is_complex(dtype) ? 3 : 1; }

// Sorts the order of one row by one part of one key; stable, so later calls take precedence.
template <class Key, class KeyAt>
void sort_order(std::uint32_t* order, std::int64_t n, Ranked<Key>* items, bool descending,
                KeyAt key_at) {
  for (std::int64_t i = 0; i < n; ++i) {
    const Key key = key_at(order[i]);
    items[i] = {descending ? Key(~key) : key, order[i]};
  }
  radix_sort(items, items + n, n, [](const Ranked<Key>& item) { return item.key; });
  for (std::int64_t i = 0; i < n; ++i) order[i] = items[i].index;
}

template <class T>
void sort_order_by(const T* row, int part, std::uint32_t* order, std::int64_t n, void* scratch,
                   bool descending) {
  if constexpr (is_complex_v<T>) {
    using R = typename T::value_type;
    using Key = UnsignedOf<sizeof(R)>;
    if (part == 2)
      sort_order(order, n, static_cast<Ranked<std::uint8_t>*>(scratch), descending,
                 [&](std::uint32_t i) {
                   return std::uint8_t(2 * std::isnan(row[i].real()) + std::isnan(row[i].imag()));
                 });
    else
      sort_order(order, n, static_cast<Ranked<Key>*>(scratch), descending, [&](std::uint32_t i) {
        return order_key(part == 1 ? row[i].real() : row[i].imag());
      });
  } else {
    using Key = UnsignedOf<sizeof(T)>;
    sort_order(order, n, static_cast<Ranked<Key>*>(scratch), descending,
               [&](std::uint32_t i) { return order_key(row[i]); });
  }
}

// dst[i] = src[order[i]], elements moved as bytes.
void permute(const char* src, char* dst, const std::uint32_t* order, std::int64_t n,
             std::int64_t bytes) {
  auto move = [&](auto element) {
    using T = decltype(element);
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(dst + i * sizeof(T), src + order[i] * sizeof(T), sizeof(T));
  };
  switch (bytes) {
    case 1:
      return move(std::uint8_t{});
    case 2:
      return move(std::uint16_t{});
    case 4:
      return move(std::uint32_t{});
    case 8:
      return move(std::uint64_t{});
    default:
      return move(complex128{});
  }
}

// Any operands: computes the order by the keys, then applies it to all operands.
void sort_by_keys(std::span<const View> inputs, const std::vector<Buffer>& sources,
                  const std::vector<View>& targets, std::int64_t num_keys, std::int64_t rows,
                  std::int64_t n, bool descending) {
  const Scratch<std::uint32_t> orders(rows * n);  // each thread touches one row of each
  const Scratch<Ranked<std::uint64_t>> scratches(2 * rows * n);
  parallel_for(rows, rows_grain(n), [&](std::int64_t begin, std::int64_t end) {
    std::uint32_t* const order = orders.get() + begin * n;
    void* const scratch = scratches.get() + 2 * begin * n;
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t i = 0; i < n; ++i) order[i] = std::uint32_t(i);
      for (std::int64_t key = num_keys; key-- > 0;)
        for (int part = 0; part < num_parts(inputs[key].dtype); ++part)
          visit_dtype(inputs[key].dtype, [&](auto element) {
            using T = decltype(element);
            sort_order_by(static_cast<const T*>(sources[key].data()) + row * n, part, order, n,
                          scratch, descending);
          });
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const std::int64_t bytes = size_of(inputs[i].dtype);
        permute(static_cast<const char*>(sources[i].data()) + row * n * bytes,
                targets[i].as<char>() + row * n * bytes, order, n, bytes);
      }
    }
  });
}

void sort_eval(std::span<const View> inputs, std::span<const View> outputs, const Params& params) {
  const int axis = int(params.integer("axis"));
  const std::int64_t num_keys = params.integer("num_keys"), n = inputs[0].shape[axis];
  const bool descending = params.flag("descending");
  if (num_elements(inputs[0].shape) == 0) return;
  const std::int64_t rows = num_elements(inputs[0].shape) / n;
  std::vector<View> targets;  // of the results, axis last
  std::vector<Buffer> keep;
  for (const View& output : outputs) {
    View target = with_axis_last(output, axis);
    if (!target.is_dense()) {
      keep.push_back(Buffer::empty(output.dtype, target.shape));
      target = keep.back().view();
    }
    targets.push_back(target);
  }
  std::vector<Buffer> sources;
  for (const View& input : inputs) sources.push_back(dense_rows(with_axis_last(input, axis)));
  if (inputs.size() == 1 && !is_complex(inputs[0].dtype)) {
    visit_dtype(inputs[0].dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (!is_complex_v<T>)
        sort_numbers(static_cast<const T*>(sources[0].data()), targets[0].as<T>(), rows, n,
                     descending);
    });
  } else if (are_pairs(inputs, num_keys)) {
    visit_dtype(inputs[0].dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (!is_complex_v<T> && sizeof(T) >= 4) {
        auto sort_with = [&](auto value) {
          using Value = decltype(value);
          sort_pairs(static_cast<const T*>(sources[0].data()),
                     static_cast<const Value*>(sources[1].data()), targets[0].as<T>(),
                     targets[1].as<Value>(), rows, n, descending);
        };
        if (size_of(inputs[1].dtype) == 4)
          sort_with(std::uint32_t{});
        else
          sort_with(std::uint64_t{});
      }
    });
  } else {
    sort_by_keys(inputs, sources, targets, num_keys, rows, n, descending);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (targets[i].data != outputs[i].data)
      copy_elements(targets[i], with_axis_last(outputs[i], axis));
}

Arrays sort_arrays(const Arrays& operands, int dimension, bool is_stable, int num_keys,
                   bool descending) {
  if (operands.empty())
    throw ValueError("sort: there is nothing to sort", "give at least one operand");
  const int axis = normalize_axis(dimension, operands[0].ndim(), "sort");
  const Params params = last_params(
      [&] {
        return Params{{"axis", Dim(axis)},
                      {"num_keys", Dim(num_keys)},
                      {"stable", is_stable},
                      {"descending", descending}};
      },
      axis, num_keys, is_stable, descending);
  return bind(sort_p, operands, params);
}

// A single operand needs no flag: padding that is greatest, or least when descending, comes after
// the real elements or equals one.
// real elements, or is equal to one.
Array fill_last(const Masked& input, const SizeValues& sizes, int axis, bool descending) {
  const DType dtype = input.aval.dtype;
  Array fill = descending ? lowest_of(dtype) : highest_of(dtype);
  if (is_inexact(dtype) && !descending) {
    const double imaginary = is_complex(dtype) ? NAN : 0;
    fill = Array::literal(Literal{dtype, false, 0, NAN, imaginary});
  }
  return fill_padding(input, fill, sizes, std::span(&axis, 1));
}

double sort_flops(cost::Avals inputs, cost::Avals, const Params& params) {
  return elements_of(inputs[0]) *
         cost::comparisons(value_of(inputs[0].shape[std::size_t(params.integer("axis"))]));
}

}  // namespace

constinit const Primitive sort_p{"sort"};
static const auto sort_def =
    define(sort_p,
           "The operands along an axis in the order of the first num_keys of them, least first, or "
           "greatest first when descending. NaN is greatest; -0.0 equals 0.0; complex numbers are "
           "ordered as pairs.")
        .operands_at_least(1)
        .rule<Abstract>([](std::span<const Aval> inputs, const Params& params) {
          const std::int64_t num_keys = params.integer("num_keys");
          if (inputs.empty() || num_keys < 1 || num_keys > std::int64_t(inputs.size()))
            throw ValueError("sort: " + std::to_string(num_keys) + " keys among " +
                                 std::to_string(inputs.size()) + " operands",
                             "use at least one key, and no more keys than operands");
          const int axis = checked_axis(params, inputs[0], "sort");
          std::vector<Aval> avals;
          for (const Aval& input : inputs) {
            if (!(input.shape == inputs[0].shape))
              throw ShapeError("sort: operands have shapes (" + inputs[0].shape.to_string() +
                                   ") and (" + input.shape.to_string() + ")",
                               "give operands of one shape");
            avals.push_back(input);
          }
          const Dim size = inputs[0].shape[axis];
          if (size.is_constant() && size.constant() > std::numeric_limits<std::uint32_t>::max())
            throw ShapeError("sort: an axis of " + size.to_string() + " elements is too long",
                             "sort parts of it");
          return avals;
        })
        .rule<Eval>(sort_eval)
        .rule<Emit>(emit_sort)
        .rule<Cost>(cost::arithmetic(sort_flops))
        .rule<Autocast>(Autocast::full)
        .refuse<Spelling>(spelling::no_function)
        .rule<PictureGroup>(PictureGroup::reduction)
        .refuse<Speculate>("it may cost more than a branch")
        .refuse<Motion>("loops seldom repeat it")
        .rule<Jvp>([](auto primals, std::span<const Tangent> tangents,
                      std::span<const Array> outputs, const Params& params) -> Tangents {
          // Tangents move with the elements: iota, sorted along, gives the source of each.
          const int axis = int(params.integer("axis"));
          Arrays operands(primals.begin(), primals.end());
          operands.push_back(lax::iota(DType::int32, primals[0].shape(), axis));
          const Array origin = Arrays(bind(sort_p, operands, params)).back();
          Tangents results;
          for (std::size_t i = 0; i < outputs.size(); ++i)
            results.push_back(tangents[i].is_zero()
                                  ? Tangent(outputs[i].aval())
                                  : Tangent(take_along(tangents[i].array(), origin, axis)));
          return results;
        })
        .rule<Batch>([](Dim size, std::span<const Batched> inputs,
                        const Params& params) -> std::vector<Batched> {
          // Where all operands have the same batch axis, no axis is moved.
          bool aligned = true;
          for (const Batched& input : inputs) aligned &= input.dim == inputs[0].dim;
          Arrays arrays;
          for (const Batched& input : inputs)
            arrays.push_back(aligned ? input.array : batch_to_front(input, size));
          const int dim = aligned ? *inputs[0].dim : 0;
          const int axis = batched_axis(int(params.integer("axis")), dim);
          std::vector<Batched> results;
          for (Array& output : bind(sort_p, arrays, params.with("axis", Dim(axis))))
            results.push_back({std::move(output), dim});
          return results;
        })
        .rule<Mask>([](std::span<const Masked> inputs, auto, const Params& params,
                       const SizeValues& sizes) -> Arrays {
          const int axis = int(params.integer("axis"));
          const bool descending = params.flag("descending");
          if (inputs.size() == 1)
            return bind(sort_p, {fill_last(inputs[0], sizes, axis, descending)}, params);
          Shape flags;  // ragged along the sorted axis only
          for (int i = 0; i < inputs[0].aval.rank(); ++i)
            flags.push_back(i == axis ? inputs[0].aval.shape[i] : inputs[0].padded.shape(i));
          const std::optional<Array> valid = validity(flags, sizes);
          Arrays operands;
          if (valid) operands.push_back(descending ? *valid : lax::bitwise_not(*valid));
          for (const Masked& input : inputs) operands.push_back(input.padded);
          const Dim num_keys = params.integer("num_keys") + (valid ? 1 : 0);
          Arrays outputs = bind(sort_p, operands, params.with("num_keys", num_keys));
          if (valid) outputs.erase(outputs.begin());
          return outputs;
        })
        .rule<Samples>([] {
          const Sample::Input x{{{3, 4}, DType::float64}, Values::distinct};
          const Sample::Input key{{{3, 4}, DType::int32}, Values::indices, 3};
          auto params = [](int axis, int num_keys, bool descending) {
            return Params{{"axis", Dim(axis)},
                          {"num_keys", Dim(num_keys)},
                          {"stable", true},
                          {"descending", descending}};
          };
          return std::vector<Sample>{{{x}, params(0, 1, false)},
                                     {{x}, params(1, 1, true)},
                                     {{x, x}, params(1, 1, false)},
                                     {{key, x}, params(1, 2, false)},
                                     {{key, x, x}, params(0, 2, true)},
                                     {{{{{5, 0}, DType::float64}}}, params(1, 1, false)},
                                     {{{{{1}, DType::float64}}}, params(0, 1, false)}};
        });
Array lax::sort(Operand operand, int dimension, bool is_stable, bool descending) {
  return sort_arrays({operand}, dimension, is_stable, 1, descending)[0];
}
Arrays lax::sort(Operands operands, int dimension, bool is_stable, int num_keys, bool descending) {
  return sort_arrays(operands, dimension, is_stable, num_keys, descending);
}

}  // namespace plait
