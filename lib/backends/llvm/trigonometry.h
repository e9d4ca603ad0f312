// The one step of base/math that is not lane by lane: the reduction of an angle. Found by
// math::sin(Lane<T>) and its kin in place of the general one, through the argument's type.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/math.h>

#include "emit.h"
#include "functions.h"

namespace plait::llvm {

template <std::floating_point T>
math::TrigReduced<Lane<T>> reduce_trig(Lane<T> x) {
  using V = Lane<T>;
  using C = math::TrigConstants<T>;
  // As math::reduce_trig up to its branch.
  const V shifted = fma(x, V(C::two_over_pi), V(math::Format<T>::magic));
  const V n = shifted - V(math::Format<T>::magic);
  const V r = fma(n, V(-C::half_pi[0]), x);
  const V rest = fma(n, V(-C::half_pi[1]), r);
  V low = fma(n, V(-C::half_pi[1]), r - rest);
  low = select(math::abs(rest) > V(T(0x1p-8)), low, V(0));
  const math::TrigReduced<V> near{fma(n, V(-C::half_pi[2]), rest), low, to_bits(shifted)};
  const Mask is_far = !(math::abs(x) <= V(C::limit));

  Emitter& emitter = Emitter::current();
  const Value all[] = {x.v, near.r.v, near.r_low.v, near.n.v};
  Value far[4], results[4];
  const Value any = emitter.any(is_far.v);
  const Block before = emitter.here();
  Block after_call;
  emitter.branch_if(any, [&] {
    const Type pointer = emitter.pointer();
    for (int i = 0; i < 4; ++i) emitter.store(all[i], emitter.vector_memory(i), 64);
    emitter.call(far_reduction(dtype_of<T>()),
                 {pointer, pointer, pointer, pointer, emitter.integer(64)},
                 {emitter.vector_memory(0), emitter.vector_memory(1), emitter.vector_memory(2),
                  emitter.vector_memory(3), emitter.constant(emitter.lanes())});
    for (int i = 1; i < 4; ++i)
      far[i] = emitter.load(api().TypeOf(all[i]), emitter.vector_memory(i), 64);
    after_call = emitter.here();
  });
  for (int i = 1; i < 4; ++i) results[i] = emitter.merge(all[i], before, far[i], after_call);
  return {V::of(results[1]), V::of(results[2]), Lane<BitsOf<T>>::of(results[3])};
}

}  // namespace plait::llvm
