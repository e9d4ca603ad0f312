// The reference kernel of reduce_window: one axis of a window at a time, over arrays of values or,
// for argmax and argmin, of values and their positions.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/pool.h>

#include <memory>
#include <numeric>

#include "primitives/elementwise/wrapping.h"
#include "window_extremes.h"

namespace plait {
namespace {

// A copy in the compute type of elements.
template <class T, class A>
const A* widen(const T* src, std::int64_t n, A* dst) {
  for (std::int64_t i = 0; i < n; ++i) dst[i] = A(src[i]);
  return dst;
}

// One axis of the window over an array [outer, size, inner]; the result is [outer, count, inner].
struct Pass {
  std::int64_t outer, size, count, inner;
  std::int64_t window, stride, low, base_dilation, window_dilation;
};

// Calls start(result index, n) and then body(result index, element index, n, result step, element
// step, k) for runs of elements that windows read at position k, in order of k.
template <class Start, class Body>
void for_runs(const Pass& p, const Start& start, const Body& body) {
  if (p.inner == 1) {
    // Windows whose position k falls on an element, and not on a hole, are `period` apart.
    const std::int64_t period = p.base_dilation / std::gcd(p.stride, p.base_dilation);
    parallel_for(p.outer, std::max<std::int64_t>(1, 16384 / (p.count + 1)),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     start(row * p.count, p.count);
                     for (std::int64_t k = 0; k < p.window; ++k) {
                       const std::int64_t offset = k * p.window_dilation - p.low;
                       const std::int64_t last =
                           (p.size - 1) * p.base_dilation - offset;  // position of the last element
                       if (last < 0) continue;
                       std::int64_t first = offset < 0 ? (-offset + p.stride - 1) / p.stride : 0,
                                    tries = 0;
                       while (tries < period && (first * p.stride + offset) % p.base_dilation != 0)
                         ++first, ++tries;
                       const std::int64_t limit = std::min(p.count, last / p.stride + 1);
                       if (tries == period || first >= limit) continue;
                       body(row * p.count + first,
                            row * p.size + (first * p.stride + offset) / p.base_dilation,
                            (limit - first + period - 1) / period, period,
                            p.stride * period / p.base_dilation, k);
                     }
                   }
                 });
    return;
  }
  constexpr std::int64_t tile = 2048;  // columns whose results stay in the first-level cache
  parallel_for(p.outer * p.count, std::max<std::int64_t>(1, 16384 / p.inner),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row)
                   for (std::int64_t column = 0; column < p.inner; column += tile) {
                     const std::int64_t n = std::min(tile, p.inner - column);
                     start(row * p.inner + column, n);
                     for (std::int64_t k = 0; k < p.window; ++k) {
                       const std::int64_t position =
                           row % p.count * p.stride + k * p.window_dilation - p.low;
                       if (position < 0 || position % p.base_dilation != 0 ||
                           position / p.base_dilation >= p.size)
                         continue;
                       const std::int64_t element =
                           row / p.count * p.size + position / p.base_dilation;
                       body(row * p.inner + column, element * p.inner + column, n, 1, 1, k);
                     }
                   }
               });
}

struct Sum {
  template <class T>
  static T combine(T a, T b) {
    return T(wrapping(a) + wrapping(b));
  }
};
struct Product {
  template <class T>
  static T combine(T a, T b) {
    return product(a, b);
  }
};
struct Maximum {  // NaN wins
  template <class T>
  static bool beats(T x, T best) {
    return x > best;
  }
  template <class T>
  static T combine(T a, T b) {
    return ((a > b) | (a != a)) ? a : b;
  }
};
struct Minimum {
  template <class T>
  static bool beats(T x, T best) {
    return x < best;
  }
  template <class T>
  static T combine(T a, T b) {
    return ((a < b) | (a != a)) ? a : b;
  }
};

// Calls step(i * to_step, i * from_step) for i below n; common steps are compile-time constants.
template <class Step>
void for_steps(std::int64_t n, std::int64_t to_step, std::int64_t from_step, const Step& step) {
  if (to_step == 1 && from_step == 1)
    for (std::int64_t i = 0; i < n; ++i) step(i, i);
  else if (to_step == 1 && from_step == 2)
    for (std::int64_t i = 0; i < n; ++i) step(i, 2 * i);
  else
    for (std::int64_t i = 0; i < n; ++i) step(i * to_step, i * from_step);
}

template <class Op, class A>
void run_pass(const Pass& p, const A* src, A* dst, A identity) {
  for_runs(
      p, [&](std::int64_t at, std::int64_t n) { std::fill_n(dst + at, n, identity); },
      [&](std::int64_t to, std::int64_t from, std::int64_t n, std::int64_t to_step,
          std::int64_t from_step, std::int64_t) {
        A* y = dst + to;
        const A* x = src + from;
        for_steps(n, to_step, from_step,
                  [=](std::int64_t i, std::int64_t j) { y[i] = Op::combine(y[i], x[j]); });
      });
}

// The same for argmax and argmin: places[i] is the position of src's element i in the axes reduced
// before (null in the first pass); `size` is the number of those positions.
template <class Op, class A>
void run_place_pass(const Pass& p, const A* src, const std::int32_t* places, A* dst,
                    std::int32_t* out, std::int64_t size) {
  for_runs(
      p,
      [&](std::int64_t at, std::int64_t n) {
        std::fill_n(out + at, n, -1);
        std::fill_n(dst + at, n, A(0));
      },
      [&](std::int64_t to, std::int64_t from, std::int64_t n, std::int64_t to_step,
          std::int64_t from_step, std::int64_t k) {
        A* best = dst + to;
        std::int32_t* best_place = out + to;
        const A* x = src + from;
        const std::int32_t base = std::int32_t(k * size);
        auto take = [=](std::int64_t i, A value, std::int32_t place) {
          const bool beats = Op::beats(value, best[i]) | ((value != value) & (best[i] == best[i]));
          const bool wins = (place >= 0) & ((best_place[i] < 0) | beats);
          best[i] = wins ? value : best[i];
          best_place[i] = wins ? base + place : best_place[i];
        };
        if (!places)
          for_steps(n, to_step, from_step,
                    [=](std::int64_t i, std::int64_t j) { take(i, x[j], 0); });
        else
          for_steps(n, to_step, from_step,
                    [=, place = places + from](std::int64_t i, std::int64_t j) {
                      take(i, x[j], place[j]);
                    });
      });
}

// The passes of a window over dense memory: leading axes without windows become slices, which run
// in parallel.
struct Passes {
  std::int64_t slices = 1, in_size = 1, out_size = 1;
  std::vector<Pass> list;
  std::int64_t largest = 1;  // of the arrays between passes
};

Passes plan_passes(const Windows& w, const Sizes64& in, const Sizes64& out, bool last_axis_first) {
  Passes passes;
  const int rank = int(in.size());
  int first = 0;
  while (first < rank && is_trivial(w, first)) passes.slices *= in[first++];
  Sizes64 shape(in.begin() + first, in.end());
  passes.in_size = num_elements(shape);
  std::vector<int> axes;
  for (int axis = first; axis < rank; ++axis)
    if (!is_trivial(w, axis)) axes.push_back(axis);
  if (last_axis_first) std::reverse(axes.begin(), axes.end());
  for (int axis : axes) {
    const AxisLoops loops(shape, axis - first);
    passes.list.push_back({loops.outer, loops.size, out[axis], loops.inner,
                           w.window[axis].constant(), w.strides[axis].constant(),
                           w.low[axis].constant(), w.base_dilation[axis].constant(),
                           w.window_dilation[axis].constant()});
    shape[axis - first] = out[axis];
    passes.largest = std::max(passes.largest, num_elements(shape));
  }
  passes.out_size = num_elements(shape);
  return passes;
}

// T is the type in memory, A the compute type.
template <class Op, class T, class A>
void reduce_slices(const Passes& passes, const T* x, T* out, A identity) {
  parallel_for(passes.slices, std::max<std::int64_t>(1, 65536 / (passes.in_size + 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 const std::int64_t room = std::max(passes.largest, passes.in_size);
                 std::unique_ptr<A[]> scratch[2];
                 auto scratch_of = [&](int i) {
                   if (!scratch[i]) scratch[i].reset(new A[room]);
                   return scratch[i].get();
                 };
                 for (std::int64_t slice = begin; slice < end; ++slice) {
                   const T* from = x + slice * passes.in_size;
                   T* to = out + slice * passes.out_size;
                   const A* src;
                   if constexpr (std::is_same_v<T, A>)
                     src = from;
                   else
                     src = widen(from, passes.in_size, scratch_of(1));
                   for (std::size_t i = 0; i < passes.list.size(); ++i) {
                     A* dst = scratch_of(i % 2);
                     if constexpr (std::is_same_v<T, A>)
                       if (i + 1 == passes.list.size()) dst = to;
                     run_pass<Op>(passes.list[i], src, dst, identity);
                     src = dst;
                   }
                   if (src != static_cast<const void*>(to))
                     for (std::int64_t i = 0; i < passes.out_size; ++i) to[i] = T(src[i]);
                 }
               });
}

template <class Op, class T, class A>
void place_slices(const Passes& passes, const T* x, std::int32_t* out) {
  parallel_for(passes.slices, std::max<std::int64_t>(1, 65536 / (passes.in_size + 1)),
               [&](std::int64_t begin, std::int64_t end) {
                 const std::int64_t room = std::max(passes.largest, passes.in_size);
                 const std::unique_ptr<A[]> values(new A[3 * room]);
                 const std::unique_ptr<std::int32_t[]> places(new std::int32_t[2 * room]);
                 for (std::int64_t slice = begin; slice < end; ++slice) {
                   const T* from = x + slice * passes.in_size;
                   const A* src;
                   if constexpr (std::is_same_v<T, A>)
                     src = from;
                   else
                     src = widen(from, passes.in_size, values.get());
                   const std::int32_t* src_places = nullptr;
                   std::int64_t size = 1;
                   for (std::size_t i = 0; i < passes.list.size(); ++i) {
                     A* dst = values.get() + (1 + i % 2) * room;
                     std::int32_t* dst_places = places.get() + i % 2 * room;
                     if (i + 1 == passes.list.size()) dst_places = out + slice * passes.out_size;
                     run_place_pass<Op>(passes.list[i], src, src_places, dst, dst_places, size);
                     size *= passes.list[i].window;
                     src = dst;
                     src_places = dst_places;
                   }
                   if (!src_places) std::fill_n(out + slice * passes.out_size, passes.out_size, 0);
                 }
               });
}

}  // namespace

Windows windows_of(const Params& params) {
  return {params.get<Shape>("window_dimensions"), params.get<Shape>("window_strides"),
          params.get<Shape>("padding_low"),       params.get<Shape>("padding_high"),
          params.get<Shape>("base_dilation"),     params.get<Shape>("window_dilation")};
}

Array window_identity(const std::string& kind, DType dtype) {
  if (kind == "sum" || kind == "prod") return Array::literal(kind == "sum" ? 0 : 1, dtype);
  return kind == "max" || kind == "argmax" ? lowest_of(dtype) : highest_of(dtype);
}

void eval_reduce_window(std::span<const View> inputs, std::span<const View> outputs,
                        const Params& params) {
  const std::string& kind = params.text("kind");
  const View& out = outputs[0];
  if (num_elements(out.shape) == 0) return;
  const bool places = kind == "argmax" || kind == "argmin",
             extremes = places || kind == "max" || kind == "min";
  const Windows windows = windows_of(params);
  const Passes passes = plan_passes(windows, inputs[0].shape, out.shape, places);
  const Buffer dense = inputs[0].is_dense() ? Buffer({}, inputs[0]) : Buffer::copy_of(inputs[0]);
  const Buffer identity = window_identity(kind, inputs[0].dtype).buffer();
  visit_dtype(inputs[0].dtype, [&](auto element) {
    using E = decltype(element);
    auto run = [&]<class Op, class T>() {
      using A = detail::Compute<T>;
      reduce_slices<Op, T, A>(passes, static_cast<const T*>(dense.data()), out.as<T>(),
                              A(*static_cast<const T*>(identity.data())));
    };
    if constexpr (std::is_same_v<E, float> || std::is_same_v<E, double>)
      if (extremes && has_small_windows(windows, inputs[0].shape))
        return eval_extremes(kind, windows, inputs[0].shape, out.shape,
                             static_cast<const E*>(dense.data()),
                             *static_cast<const E*>(identity.data()), out.data);
    if constexpr (!std::is_same_v<E, bool>) {
      using U = typename UnsignedOf<E>::type;
      if (kind == "sum") return run.template operator()<Sum, U>();
      if (kind == "prod") return run.template operator()<Product, U>();
    }
    if constexpr (!is_complex_v<E>) {
      using A = detail::Compute<E>;
      const E* x = static_cast<const E*>(dense.data());
      if (kind == "max") run.template operator()<Maximum, E>();
      if (kind == "min") run.template operator()<Minimum, E>();
      if (kind == "argmax") place_slices<Maximum, E, A>(passes, x, out.as<std::int32_t>());
      if (kind == "argmin") place_slices<Minimum, E, A>(passes, x, out.as<std::int32_t>());
    }
  });
}

}  // namespace plait
