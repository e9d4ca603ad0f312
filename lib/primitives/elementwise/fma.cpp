// fma: a product and a sum with one rounding, of which factorizations are made in loop programs.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/emitted.h>
#include <plait/primitives/families.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/autocast.h>
#include <plait/rules/motion.h>

#include "primitives/spelling.h"

namespace plait {
namespace {

template <class T>
void fma_loop(const void* const* inputs, void* output, std::int64_t n, std::int64_t) {
  const T *x = static_cast<const T*>(inputs[0]), *y = static_cast<const T*>(inputs[1]),
          *z = static_cast<const T*>(inputs[2]);
  T* const out = static_cast<T*>(output);
  using detail::Compute, detail::lanes, detail::load;
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>)
    detail::store<T>(
        math::fma(load<T, lanes<T>>(x + i), load<T, lanes<T>>(y + i), load<T, lanes<T>>(z + i)),
        out + i);
  for (; i < n; ++i) out[i] = T(math::fma(Compute<T>(x[i]), Compute<T>(y[i]), Compute<T>(z[i])));
}

}  // namespace

constinit const Primitive fma_p{"fma"};
static const auto fma_def =
    define(fma_p, "x * y + z, rounded once; of 16-bit floats in float32, and then to 16 bits.")
        .family(elementwise(floating, 3))
        .rule<Motion>(Motion::cheap)
        .rule<Pointwise>([](std::span<const DType> in, const Params&) -> Chunk {
          return {detail::choose<floating>(in[0],
                                           []<class T>() -> Chunk::Loop { return &fma_loop<T>; })};
        })
        .rule<Autocast>(Autocast::follows)
        .refuse<Spelling>(spelling::no_function)
        .rule<Jvp>([](auto primals, auto tangents, auto outputs, const Params&) -> Tangents {
          // d(x y + z) = y dx + x dy + dz
          const Aval aval = outputs[0].aval();
          Tangent total = broadcast_tangent(tangents[2], aval);
          for (const int factor : {0, 1})
            if (!tangents[factor].is_zero()) {
              const Array part = lax::mul(tangents[factor].array(), primals[1 - factor]);
              total = add_tangents(total, broadcast_tangent(part, aval));
            }
          return {total};
        });

}  // namespace plait
