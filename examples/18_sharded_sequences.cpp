// Lesson 18: sequences of unequal length, of which each place has some: lengths travel with their
// sequences.
//
// A mean over all steps of all sequences is a sum over a count, and both are summed over places: a
// mean of the places' means would weigh steps unequally. Alone this process is all places, here
// four or as many as the first argument says; on ranks each is one place, with the same bits:
//
//   plait run -n 4 build/tests/example_18_sharded_sequences
//
// Prints the same numbers as its twin, 18_sharded_sequences.py.
// SPDX-License-Identifier: Apache-2.0
#include <plait/control.h>
#include <plait/mesh.h>
#include <plait/numpy.h>
#include <plait/plait.h>
#include <plait/random.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

using plait::Array, plait::P;
namespace jnp = plait::numpy;
namespace lax = plait::lax;
namespace random_ = plait::random;

constexpr int count = 40, longest = 12, width = 3;  // 2, 4 and 5 places divide the count

struct Weights {
  Array in, state, out;
};

// The sum of squared errors of one sequence of n steps: a recurrent net that predicts y from x.
Array errors(const Weights& weights, const Array& x, const Array& y) {
  const auto step = [&](const Array& before, const Array& now) {
    const Array state =
        jnp::tanh(jnp::matmul(now, weights.in) + jnp::matmul(before, weights.state));
    return std::pair{state, jnp::matmul(state, weights.out)};
  };
  const Array guesses = lax::scan(step, jnp::zeros(plait::Shape{width}), x).second;
  return jnp::sum(jnp::square(guesses - y));
}

// Of a batch that is padded to `longest`: what the padding holds is never read.
const auto of_batch =
    plait::vmap(plait::mask(errors, {std::nullopt, "n 3", "n"}), {std::nullopt, 0, 0, 0});

Array loss_of_part(const Weights& weights, const Array& x, const Array& y, const Array& lengths) {
  const Array total = jnp::sum(of_batch(weights, x, y, plait::Sizes{{"n", lengths}}));
  return lax::psum(total, "data") / lax::psum(jnp::sum(lengths), "data");
}

int main(int argc, char** argv) {
  const int ranks = plait::process_count();
  const int places = ranks > 1 ? ranks : argc > 1 ? std::atoi(argv[1]) : 4;
  const plait::Mesh mesh({places}, {"data"});
  const P part("data");
  const auto loss = plait::shard_map(loss_of_part, mesh, {P(), part, part, part}, P());

  const Array keys = random_::split(random_::key(0), {6});
  const auto key = [&](int i) { return jnp::take(keys, i, 0); };
  const Array lengths = random_::randint(key(5), {count}, 1, longest + 1);
  const Weights weights{random_::normal(key(0), {width, width}),
                        random_::normal(key(1), {width, width}) * 0.5,
                        random_::normal(key(2), {width})};
  const Array is_step = jnp::less(jnp::arange(longest), jnp::expand_dims(lengths, {1}));
  const Array x = jnp::where(jnp::expand_dims(is_step, {2}),
                             random_::normal(key(3), {count, longest, width}), NAN);
  const Array y = jnp::where(is_step, random_::normal(key(4), {count, longest}), NAN);

  const auto [value, gradients] = plait::jit(plait::value_and_grad(loss))(weights, x, y, lengths);

  const std::vector<std::int32_t> sizes = lengths.to_vector<std::int32_t>();
  int num_steps = 0;
  for (const std::int32_t n : sizes) num_steps += n;
  const auto one_by_one = [&](const Weights& weights) -> Array {
    Array total = 0.0f;
    for (int i = 0; i < count; ++i) {
      const auto first_steps = [&](const Array& all) {
        return lax::slice_in_dim(jnp::take(all, i, 0), 0, sizes[i]);
      };
      total = total + errors(weights, first_steps(x), first_steps(y));
    }
    return total / num_steps;
  };
  const auto [expected, by_weights] = plait::value_and_grad(one_by_one)(weights);
  if (plait::process_index() > 0) return 0;
  std::printf("%d sequences of %d steps: %d of padding\n", count, num_steps,
              longest * count - num_steps);
  std::printf("mean error %.5f in places, %.5f one by one\n", value.item<double>(),
              expected.item<double>());
  const auto show = [](const char* name, const Array& gradient, const Array& expected) {
    const double off = jnp::max(jnp::abs(gradient - expected)).item<double>();
    std::printf("gradient by %s equal to rounding: %s\n", name, off < 1e-5 ? "True" : "False");
  };
  show("in", gradients.in, by_weights.in);
  show("state", gradients.state, by_weights.state);
  show("out", gradients.out, by_weights.out);
}
