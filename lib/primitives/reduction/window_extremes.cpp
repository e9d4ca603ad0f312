// Extremes over small windows of leading axes, such as the pooling of channels-last images. They
// are computed window by window, with the extremes in registers, whereas reduce_window's kernel
// makes one pass per axis over the array.
// SPDX-License-Identifier: Apache-2.0
#include "window_extremes.h"

#include <plait/base/pool.h>

namespace plait {
namespace {

constexpr std::int64_t largest_window = 16, least_run = 4;

// The positions of a window's axis that fall on elements, with their offsets from the start of the
// array.
struct Read {
  std::int64_t place, offset;
};
using Reads = std::vector<Read>;

// The array as [slices, windowed axes ..., inner], and for every window of every axis its reads.
struct Geometry {
  std::int64_t slices = 1, in_size = 1, inner = 1, positions = 1;
  std::vector<std::vector<Reads>> axes;

  Geometry(const Windows& w, const Sizes64& in, const Sizes64& out) {
    int first = 0, last = int(in.size()) - 1;
    while (is_trivial(w, first)) slices *= in[first++];
    while (is_trivial(w, last)) inner *= in[last--];
    std::int64_t stride = inner, places = 1;
    for (int axis = last; axis >= first; --axis) {
      std::vector<Reads> windows;
      for (std::int64_t o = 0; o < out[axis]; ++o) {
        Reads reads;
        for (std::int64_t k = 0; k < w.window[axis].constant(); ++k) {
          const std::int64_t position = o * w.strides[axis].constant() +
                                        k * w.window_dilation[axis].constant() -
                                        w.low[axis].constant(),
                             dilation = w.base_dilation[axis].constant();
          if (position >= 0 && position % dilation == 0 && position / dilation < in[axis])
            reads.push_back({k * places, position / dilation * stride});
        }
        windows.push_back(std::move(reads));
      }
      axes.insert(axes.begin(), std::move(windows));
      positions *= out[axis];
      places *= w.window[axis].constant();
      stride *= in[axis];
    }
    in_size = stride;
  }

  // The reads of a window, over all axes, in order of positions.
  void collect(std::int64_t position, Reads& reads) const {
    reads.assign(1, {0, 0});
    for (std::size_t axis = axes.size(); axis-- > 0;) {
      const std::int64_t count = std::int64_t(axes[axis].size());
      Reads all;
      for (const Read& outer : axes[axis][position % count])
        for (const Read& inner : reads)
          all.push_back({outer.place + inner.place, outer.offset + inner.offset});
      reads = std::move(all);
      position /= count;
    }
  }
};

struct Greater {
  template <class T>
  static bool beats(T x, T best) {
    return x > best;
  }
};
struct Less {
  template <class T>
  static bool beats(T x, T best) {
    return x < best;
  }
};

// The first extreme of n neighbouring columns in each of these windows, or the first NaN.
template <class Op, class T>
void find_values(const Reads& reads, const T* x, std::int64_t n, T identity, T* out) {
  if (reads.empty()) {
    std::fill_n(out, n, identity);
    return;
  }
  std::copy_n(x + reads[0].offset, n, out);
  for (std::size_t k = 1; k < reads.size(); ++k) {
    const T* values = x + reads[k].offset;
    for (std::int64_t i = 0; i < n; ++i) {
      const T value = values[i], best = out[i];
      out[i] = (Op::beats(value, best) | ((value != value) & (best == best))) ? value : best;
    }
  }
}

template <class Op, class T>
void find_places(const Reads& reads, const T* x, std::int64_t n, T* best, std::int32_t* out) {
  std::fill_n(out, n, reads.empty() ? -1 : std::int32_t(reads[0].place));
  if (reads.empty()) return;
  std::copy_n(x + reads[0].offset, n, best);
  for (std::size_t k = 1; k < reads.size(); ++k) {
    const T* values = x + reads[k].offset;
    const std::int32_t place = std::int32_t(reads[k].place);
    for (std::int64_t i = 0; i < n; ++i) {
      const T value = values[i];
      const bool wins = Op::beats(value, best[i]) | ((value != value) & (best[i] == best[i]));
      best[i] = wins ? value : best[i];
      out[i] = wins ? place : out[i];
    }
  }
}

// Calls find(reads, start in the array, start in the result, n) for runs of neighbours.
template <class Find>
void for_windows(const Geometry& g, const Find& find) {
  constexpr std::int64_t tile = 1024;
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / (g.inner * largest_window) + 1);
  parallel_for(g.positions, std::max<std::int64_t>(1, grain / g.slices),
               [&](std::int64_t begin, std::int64_t end) {
                 Reads reads;
                 for (std::int64_t position = begin; position < end; ++position) {
                   g.collect(position, reads);
                   for (std::int64_t slice = 0; slice < g.slices; ++slice)
                     for (std::int64_t at = 0; at < g.inner; at += tile)
                       find(reads, slice * g.in_size + at,
                            (slice * g.positions + position) * g.inner + at,
                            std::min(tile, g.inner - at));
                 }
               });
}

}  // namespace

bool has_small_windows(const Windows& w, const Sizes64& in) {
  std::int64_t window = 1, inner = 1;
  bool is_inner = true, any = false;
  for (std::size_t axis = in.size(); axis-- > 0;) {
    const bool trivial = is_trivial(w, int(axis));
    any |= !trivial;
    is_inner &= trivial;
    if (is_inner) inner *= in[axis];
    window *= w.window[axis].constant();
  }
  return any && inner >= least_run && window <= largest_window;
}

template <class T>
void eval_extremes(const std::string& kind, const Windows& w, const Sizes64& in, const Sizes64& out,
                   const T* x, T identity, void* result) {
  const Geometry geometry(w, in, out);
  const bool greatest = kind == "max" || kind == "argmax";
  if (kind == "max" || kind == "min") {
    T* values = static_cast<T*>(result);
    for_windows(
        geometry, [&](const Reads& reads, std::int64_t from, std::int64_t to, std::int64_t n) {
          (greatest ? find_values<Greater, T> : find_values<Less, T>)(reads, x + from, n, identity,
                                                                      values + to);
        });
    return;
  }
  std::int32_t* places = static_cast<std::int32_t*>(result);
  for_windows(geometry,
              [&](const Reads& reads, std::int64_t from, std::int64_t to, std::int64_t n) {
                T best[1024];
                (greatest ? find_places<Greater, T> : find_places<Less, T>)(reads, x + from, n,
                                                                            best, places + to);
              });
}

template void eval_extremes(const std::string&, const Windows&, const Sizes64&, const Sizes64&,
                            const float*, float, void*);
template void eval_extremes(const std::string&, const Windows&, const Sizes64&, const Sizes64&,
                            const double*, double, void*);

}  // namespace plait
