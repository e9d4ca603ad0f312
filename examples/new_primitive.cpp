// Recipe: a primitive from outside, in one block. It has every transform from here on.
// SPDX-License-Identifier: Apache-2.0
#include <plait/families.h>
#include <plait/plait.h>

#include <cstdio>

using namespace plait;

// softsign(x) = x / (1 + |x|). Its family gives Abstract, Eval, Fold, Batch, Mask and samples.
constinit const Primitive softsign_p{"softsign"};
static const auto softsign_def =
    define(softsign_p, "x / (1 + |x|): a cheap relative of tanh.")
        .family(elementwise(floating))
        .rule<Pointwise>(unary_loops<floating>([](auto x) { return x / (math::abs(x) + 1); }))
        .rule<Jvp>(unary([](auto x, auto) {  // d softsign = dx / (1 + |x|)^2
          const Array d = lax::abs(x) + 1.0;
          return 1.0 / (d * d);
        }));
Array softsign(Operand x) { return bind(softsign_p, {x}); }

Array loss(const Array& x) {
  return lax::reduce_sum(softsign(x) * softsign(x), std::vector<int>{0});
}

int main() {
  const Array x = lax::iota(DType::float64, {4}, 0) * 0.5 - 0.75;
  std::puts(print(make_jaxpr(loss, x).jaxpr).c_str());
  std::printf("%.6f\n", jit(loss)(x).item<double>());
  const Array hessian_diagonal =
      vmap(jit(hessian([](const Array& v) -> Array { return softsign(v) * softsign(v); })))(x);
  for (int i = 0; i < 4; ++i)
    std::printf("%.6f ", static_cast<const double*>(hessian_diagonal.buffer().dense().data())[i]);
  std::printf("\n%.6f\n", grad(jit(loss))(x).buffer().view().as<double>()[0]);
}
