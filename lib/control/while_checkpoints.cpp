// Reverse mode through a while loop that keeps a bounded number of carries, whatever its trip
// count, instead of the residuals of every step.
//
// The loop runs in segments and keeps the carry at the start of each. It fills half of a store with
// segments of equal length. If the loop has not ended by then, neighbours in the store merge into
// one segment, the length doubles, and the other half is filled. The linear part is a scan over the
// store. It runs each segment again, as a loop that pushes residuals, and differentiates that loop.
// Of n steps, a segment has at most n / h + 1, where h is half of the store. The store is online
// checkpointing (Stumm and Walther 2010, New algorithms for optimal online checkpointing) with
// segments of equal length.
//
// Both parts are under checkpoint, so that higher derivatives rematerialise segments, too.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/check.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/bodies.h>

#include "control/bodies.h"

namespace plait {
namespace {

Array int64(std::int64_t value) {
  return Array::literal(Literal{DType::int64, false, value, 0, 0});
}

// A function under checkpoint that saves only its operands.
Arrays again(const Function& function, const Arrays& inputs) {
  return flat::checkpoint(function, inputs, flat::nothing_saveable(), "while_loop");
}

// Every other element along the first axis.
Array alternate(const Array& array, std::int64_t first) {
  Shape start(array.ndim(), 0), strides(array.ndim(), 1);
  start[0] = first;
  strides[0] = 2;
  return bind(slice_p, {array}, {{"start", start}, {"limit", array.shape()}, {"strides", strides}});
}

// Merges neighbours in the store into one segment. It starts where the first one does, or the
// second where the first is empty.
Arrays merged(const Arrays& store) {
  const Array steps = alternate(store[0], 0);
  const Array is_full = lax::gt(steps, int64(0));
  Arrays results;
  results.push_back(lax::add(steps, alternate(store[0], 1)));
  for (const Array& carries : std::span(store).subspan(1)) {
    const Array first = alternate(carries, 0), second = alternate(carries, 1);
    results.push_back(lax::select(
        lax::broadcast_in_dim(is_full, first.shape(), std::vector<int>{0}), first, second));
  }
  return results;
}

struct Segmented {
  Arrays carry;
  Arrays store;  // the number of steps of each segment, and the carries at their starts
};

class SegmentedLoop {
 public:
  SegmentedLoop(const WhileParams& loop, std::span<const Array> primals)
      : loop_(loop),
        half_(std::max<std::int64_t>(1, *loop.checkpoints / 2)),
        carry_(slice(primals, 0, loop.num_carry)),
        cond_consts_(slice(primals, loop.num_carry, loop.num_carry + loop.num_cond_consts)),
        body_consts_(slice(primals, loop.num_carry + loop.num_cond_consts, primals.size())) {}

  Segmented run() const {
    const std::size_t n = loop_.num_carry;
    // (steps so far, segment length), the carry, the store
    Arrays init = concatenate(Arrays{int64(0), int64(1)}, carry_);
    init.push_back(lax::zeros_like(Aval{{2 * half_}, DType::int64}));
    for (const Array& array : carry_) {
      Aval aval = array.aval();
      aval.weak = false;
      aval.shape.insert(0, 2 * half_);
      init.push_back(lax::zeros_like(aval));
    }
    const Function phase = [&](std::span<const Array> now) {
      const Arrays front = merged(slice(now, 2 + n, now.size()));
      const flat::Scanned filled = fill(concatenate(Arrays{now[0]}, slice(now, 2, 2 + n)), now[1]);
      Arrays next{filled.carry[0], lax::mul(now[1], int64(2))};
      next.insert(next.end(), filled.carry.begin() + 1, filled.carry.end());
      for (std::size_t i = 0; i < front.size(); ++i)
        next.push_back(lax::concatenate(Arrays{front[i], filled.ys[i]}, 0));
      return next;
    };
    const Function goes_on = [&](std::span<const Array> now) {
      return Arrays{holds(now[0], now.subspan(2, n))};
    };
    const Arrays last = flat::while_loop(goes_on, phase, init, {.select = loop_.select});
    if (loop_.max_steps)
      check(lax::bitwise_not(condition(std::span(last).subspan(2, n))),
            "while_loop: the condition still holds after max_steps = " +
                std::to_string(*loop_.max_steps) + " steps");
    return {slice(last, 2, 2 + n), slice(last, 2 + n, last.size())};
  }

 private:
  Array condition(std::span<const Array> carry) const {
    return eval_jaxpr(loop_.cond, concatenate(slice(carry, 0, carry.size()), cond_consts_))[0];
  }
  Array holds(const Array& steps, std::span<const Array> carry) const {
    const Array condition_holds = condition(carry);
    if (!loop_.max_steps) return condition_holds;
    return lax::bitwise_and(condition_holds, lax::lt(steps, int64(*loop_.max_steps)));
  }

  // Runs as many segments of this length as half of the store holds. Those past the end are empty.
  flat::Scanned fill(const Arrays& state, const Array& length) const {
    const Function segment = [&](std::span<const Array> now) {
      const Array end = lax::add(now[0], now[now.size() - 1]);
      return flat::while_loop(
          [&](std::span<const Array> inner) {
            return Arrays{
                lax::bitwise_and(lax::lt(inner[0], end), holds(inner[0], inner.subspan(1)))};
          },
          [&](std::span<const Array> inner) {
            const Arrays carry = slice(inner, 1, inner.size());
            return concatenate(Arrays{lax::add(inner[0], int64(1))},
                               eval_jaxpr(loop_.body, concatenate(carry, body_consts_)));
          },
          now.first(now.size() - 1), {.select = loop_.select});
    };
    const Function step = [&](std::span<const Array> now) {
      const Arrays before = slice(now, 0, now.size());
      Arrays results = again(segment, concatenate(before, Arrays{length}));
      results.push_back(lax::sub(results[0], before[0]));
      results.insert(results.end(), before.begin() + 1, before.end());
      return results;
    };
    return flat::scan(step, state, {}, {Dim(half_)});
  }

  const WhileParams& loop_;
  const std::int64_t half_;
  const Arrays carry_, cond_consts_, body_consts_;
};

// Runs a given number of steps: (carry, number of steps, consts of the body) -> carry.
Jaxpr counted_loop(const WhileParams& loop) {
  const std::size_t n = loop.num_carry;
  const Jaxpr body = without_effects(loop.body);
  std::vector<Aval> avals(body->input_avals().begin(), body->input_avals().end());
  avals.insert(avals.begin() + std::ptrdiff_t(n), Aval{{}, DType::int64});
  return make_closed_jaxpr(
      [&](std::span<const Array> in) {
        const Arrays consts = slice(in, n + 1, in.size());
        const Arrays last = flat::while_loop(
            [&](std::span<const Array> now) { return Arrays{lax::lt(now[n], in[n])}; },
            [&](std::span<const Array> now) {
              Arrays next = eval_jaxpr(body, concatenate(slice(now, 0, n), consts));
              next.push_back(lax::add(now[n], int64(1)));
              return next;
            },
            concatenate(slice(in, 0, n), Arrays{int64(0)}), {.select = loop.select});
        return slice(last, 0, n);
      },
      avals, body->sizes);
}

}  // namespace

Differentiated linearize_segmented(const WhileParams& loop, std::span<const Array> primals,
                                   const Tangents& carry_tangents, const Tangents& const_tangents,
                                   Trace* linear) {
  const std::size_t n = loop.num_carry;
  const Segmented done = SegmentedLoop(loop, primals).run();
  const Jaxpr counted = counted_loop(loop);
  const Flags has_carry = nonzero(carry_tangents), has_const = nonzero(const_tangents);
  const Flags has = concatenate(concatenate(has_carry, {false}), has_const);
  const auto jaxprs = linearize_jaxpr(counted, has, has_carry);
  const Arrays body_consts = slice(primals, n + loop.num_cond_consts, primals.size());
  const Arrays pushed_consts = nonzero_arrays(const_tangents);

  TraceScope scope(linear);
  const Arrays init = nonzero_arrays(carry_tangents);
  // One segment: (tangents of its first carry, number of steps, first carry) -> tangents of the
  // last.
  const Function segment = [&](std::span<const Array> in) {
    const std::size_t c = init.size();
    const Arrays start = slice(in, c + 1, in.size());
    const Arrays known =
        eval_jaxpr(jaxprs->known, concatenate(concatenate(start, Arrays{in[c]}), body_consts));
    return eval_jaxpr(jaxprs->linear, concatenate(concatenate(slice(in, 0, c), pushed_consts),
                                                  slice(known, n, known.size())));
  };
  const flat::Scanned pushed = flat::scan(
      [&](std::span<const Array> now) { return again(segment, slice(now, 0, now.size())); }, init,
      done.store);
  Differentiated result{done.carry, {}};
  result.tangents = spread(pushed.carry, has_carry, avals_of(done.carry));
  return result;
}

}  // namespace plait
