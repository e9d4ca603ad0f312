// Random compositions. See compositions.h.
// SPDX-License-Identifier: Apache-2.0
#include "compositions.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "laws.h"
#include "tolerance.h"

namespace plait::laws {
namespace {

const Primitive* mutant = nullptr;
constexpr std::int64_t rows = 4, columns = 3;  // no other axis has so many elements as rows

std::vector<int> all_axes(const Array& x) {
  std::vector<int> axes;
  for (int i = 0; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

// --- Operations ----------------------------------------------------------------------------------

// Smooth, bounded functions; every result has finite derivatives everywhere.
Array elementwise_operation(unsigned choice, const Array& x) {
  switch (choice % 9) {
    case 0:
      return lax::sin(x);
    case 1:
      return lax::cos(x);
    case 2:
      return lax::tanh(x);
    case 3:
      return lax::erf(x);
    case 4:
      return lax::exp(lax::sin(x));
    case 5:
      return lax::log(x * x + 1.5);
    case 6:
      return lax::sqrt(x * x + 0.7);
    case 7:
      return 1.0 / (x * x + 1.2);
    default:
      return -lax::integer_pow(lax::tanh(x), 3);
  }
}

// Brings y to the shape of x: through its sum where nothing else fits.
Array fitted(const Array& y, const Array& x) {
  if (y.shape() == x.shape()) return y;
  return broadcast_to(y.ndim() == 0 ? y : lax::reduce_sum(y, all_axes(y)), x.shape());
}

Array binary_operation(unsigned choice, const Array& x, const Array& other) {
  const Array y = fitted(other, x);
  switch (choice % 5) {
    case 0:
      return x + y;
    case 1:
      return x - y;
    case 2:
      return lax::tanh(x) * y;
    case 3:
      return x / (y * y + 1.1);
    default:
      return lax::atan2(x, y * y + 0.9);
  }
}

// Works at any sizes; sizes of axes are read from the operand.
Array movement_operation(unsigned choice, const Array& x, const Array& other, bool any_size) {
  const int rank = x.ndim();
  if (rank == 0) return broadcast_to(x, {Dim(columns)}) * Array(0.5);
  const int last[] = {rank - 1}, first[] = {0};
  std::vector<int> reversed = all_axes(x);
  std::reverse(reversed.begin(), reversed.end());
  switch (choice % 9) {
    case 0:
      return lax::transpose(x, reversed);
    case 1:
      return lax::reduce_sum(x, first);
    case 2:
      return lax::reduce_sum(x, last);
    case 3:
      return lax::rev(x, first);
    case 4: {  // a new axis; of a length that no named size happens to have
      Shape shape{Dim(any_size ? 5 : 2)};
      std::vector<int> axes;
      if (rank > 2) return x;
      for (int i = 0; i < rank; ++i) shape.push_back(x.shape(i)), axes.push_back(i + 1);
      return lax::broadcast_in_dim(x, shape, axes);
    }
    case 5: {  // a longer last axis, cut again
      if (any_size) return x;
      const Array twice = lax::concatenate(Arrays{x, lax::sin(x)}, rank - 1);
      return lax::slice_in_dim(twice, Dim(1), x.shape(rank - 1) + Dim(1), 1, rank - 1);
    }
    case 6: {  // x x'
      const Array y = fitted(other, x);
      return lax::tanh(lax::dot_general(x, y, {{rank - 1}, {rank - 1}, {}, {}}));
    }
    case 7: {  // every second element of the last axis
      if (any_size) return x;
      const Array even = lax::eq(
          lax::rem(lax::iota(DType::int32, x.shape(), rank - 1), Array::literal(2, DType::int32)),
          Array::literal(0, DType::int32));
      return lax::select(even, x, fitted(other, x));
    }
    default: {  // rows of one, in another shape and back
      if (any_size) return x * Array(0.9);
      return lax::sin(
          lax::reshape(lax::cos(lax::reshape(x, {x.shape().num_elements()})), x.shape()));
    }
  }
}

Array operation(unsigned choice, const Array& x, const Array& y, bool any_size) {
  if (choice == mutant_choice && mutant) return bind(*mutant, {x});
  const unsigned kind = choice % 3;
  if (kind == 0) return elementwise_operation(choice / 3, x);
  if (kind == 1) return binary_operation(choice / 3, x, y);
  const Array result = movement_operation(choice / 3, x, y, any_size);
  return result.ndim() > 3 ? lax::reduce_sum(result, std::vector<int>{0}) : result;
}

}  // namespace

void set_mutant(const Primitive* primitive) { mutant = primitive; }

Function Program::function() const {
  return [steps = steps, any_size = any_size](std::span<const Array> inputs) -> Arrays {
    Arrays values(inputs.begin(), inputs.end());
    for (const Step& step : steps)
      values.push_back(operation(step.choice, values[step.first % values.size()],
                                 values[step.second % values.size()], any_size));
    return {values.back()};
  };
}

// --- Layers --------------------------------------------------------------------------------------

namespace {

// A function of float64 arrays with the shapes of its inputs.
struct Shaped {
  Function function;
  std::vector<Aval> avals;
};

std::vector<Aval> twice(const std::vector<Aval>& avals) {
  std::vector<Aval> result = avals;
  result.insert(result.end(), avals.begin(), avals.end());
  return result;
}
Array total(const Array& x) { return x.ndim() == 0 ? x : lax::reduce_sum(x, all_axes(x)); }

Shaped vmap_shape(const Shaped& f) {
  Shaped g{{}, f.avals};
  for (std::size_t i = 0; i < g.avals.size(); ++i)
    g.avals[i].shape.insert(int(i) % (g.avals[i].rank() + 1), 2);
  return g;
}

// What the transform makes of f.
Shaped transformed_by(Layer layer, const Shaped& f) {
  const std::size_t n = f.avals.size();
  const Function inner = f.function;
  switch (layer) {
    case Layer::jit:
      return {[jitted = flat::Jit(inner, "f")](std::span<const Array> x) { return jitted(x); },
              f.avals};
    case Layer::checkpoint:
      return {[=](std::span<const Array> x) {
                return flat::checkpoint(inner, x, flat::nothing_saveable(), "f");
              },
              f.avals};
    case Layer::jvp:
      return {[=](std::span<const Array> x) {
                Tangents tangents;
                for (std::size_t i = 0; i < n; ++i) tangents.push_back(x[n + i]);
                Arrays results;
                for (const Tangent& tangent : flat::jvp(inner, x.first(n), tangents).tangents)
                  results.push_back(tangent.instantiate());
                return results;
              },
              twice(f.avals)};
    case Layer::grad:
      return {[=](std::span<const Array> x) {
                const Function scalar = [&](std::span<const Array> y) {
                  Array sum = Array::literal(0, DType::float64);
                  for (const Array& output : inner(y)) sum = sum + total(output);
                  return Arrays{sum};
                };
                return flat::value_and_grad(scalar, x, std::vector<bool>(n, true)).gradients;
              },
              f.avals};
    case Layer::vmap: {
      Shaped g = vmap_shape(f);
      g.function = [=](std::span<const Array> x) {
        flat::VmapOptions options;
        for (std::size_t i = 0; i < n; ++i)
          options.in_dims.push_back(int(i) % (f.avals[i].rank() + 1));
        return flat::vmap(inner, x, options);
      };
      return g;
    }
    case Layer::mask:
      return {[=](std::span<const Array> x) {
                flat::MaskOptions options;
                Arrays padded;
                for (const Array& array : x) {
                  Aval aval = array.aval();
                  std::vector<lax::Padding> padding(array.ndim());
                  for (int axis = 0; axis < array.ndim(); ++axis)
                    if (aval.shape[axis] == Dim(rows))
                      aval.shape[axis] = Dim::size("n"), padding[axis].high = 2;
                  padded.push_back(
                      lax::pad(array, Array::literal(std::nan(""), DType::float64), padding));
                  options.in_shapes.push_back(Spec(aval));
                }
                options.sizes = {{"n", Array(rows)}};
                const std::vector<Aval> real = make_jaxpr(inner, f.avals).jaxpr->output_avals();
                Arrays outputs = flat::mask(inner, padded, options);
                for (std::size_t i = 0; i < outputs.size(); ++i)
                  outputs[i] = lax::slice(outputs[i], Shape(real[i].rank(), Dim(0)), real[i].shape);
                return outputs;
              },
              f.avals};
  }
  return f;
}

// The same by loops and other modes: differences where `differences` says, which cannot be nested.
Shaped reference_of(Layer layer, const Shaped& f, bool differences) {
  const std::size_t n = f.avals.size();
  const Function inner = f.function;
  const double step = tolerance_of(DType::float64).step;
  auto along = [=](std::span<const Array> x, const Arrays& direction) {  // derivative of inner at x
    Arrays results;
    if (!differences) {
      Tangents tangents;
      for (const Array& array : direction) tangents.push_back(array);
      for (const Tangent& tangent : flat::jvp(inner, x, tangents).tangents)
        results.push_back(tangent.instantiate());
      return results;
    }
    Arrays low, high;
    for (std::size_t i = 0; i < n; ++i) {
      low.push_back(moved(x[i], direction[i], -step));
      high.push_back(moved(x[i], direction[i], step));
    }
    const Arrays below = inner(low), above = inner(high);
    for (std::size_t i = 0; i < below.size(); ++i) {
      const Array change = moved(above[i], below[i], -1);
      results.push_back(moved(change, change, 0.5 / step - 1));
    }
    return results;
  };
  auto unit = [=](std::size_t input, std::int64_t element) {  // a basis vector of all inputs
    Arrays direction;
    for (std::size_t i = 0; i < n; ++i) {
      Buffer buffer = Buffer::empty(DType::float64, f.avals[i].shape.to_sizes());
      std::fill_n(static_cast<double*>(buffer.data()), num_elements(buffer.shape()), 0.0);
      if (i == input) static_cast<double*>(buffer.data())[element] = 1;
      direction.push_back(Array(buffer));
    }
    return direction;
  };
  switch (layer) {
    case Layer::jvp:
      return {
          [=](std::span<const Array> x) {
            const Arrays direction(x.begin() + std::ptrdiff_t(n), x.end());
            if (differences) return along(x.first(n), direction);
            // Through reverse mode: <J v, e> = <v, J' e>.
            const flat::Pullback pullback =
                flat::vjp(inner, x.first(n), std::vector<bool>(n, true));
            Arrays results;
            for (std::size_t k = 0; k < pullback.outputs.size(); ++k) {
              Buffer result = Buffer::empty(DType::float64, pullback.outputs[k].shape().to_sizes());
              for (std::int64_t e = 0; e < num_elements(result.shape()); ++e) {
                Tangents cotangents;
                for (const Array& output : pullback.outputs)
                  cotangents.push_back(Tangent(output.aval()));
                Buffer basis = Buffer::empty(DType::float64, result.shape());
                std::fill_n(static_cast<double*>(basis.data()), num_elements(result.shape()), 0.0);
                static_cast<double*>(basis.data())[e] = 1;
                cotangents[k] = Array(basis);
                double value = 0;
                const Tangents pulled = pullback.pull(cotangents);
                for (std::size_t i = 0; i < n; ++i)
                  if (!pulled[i].is_zero()) value += dot(direction[i], pulled[i].array());
                static_cast<double*>(result.data())[e] = value;
              }
              results.push_back(Array(result));
            }
            return results;
          },
          twice(f.avals)};
    case Layer::grad:
      return {[=](std::span<const Array> x) {
                Arrays results;
                for (std::size_t i = 0; i < n; ++i) {
                  Buffer result = Buffer::empty(DType::float64, f.avals[i].shape.to_sizes());
                  for (std::int64_t e = 0; e < num_elements(result.shape()); ++e) {
                    double sum = 0;
                    for (const Array& output : along(x, unit(i, e)))
                      for (complex128 value : numbers_of(output)) sum += value.real();
                    static_cast<double*>(result.data())[e] = sum;
                  }
                  results.push_back(Array(result));
                }
                return results;
              },
              f.avals};
    case Layer::vmap: {
      Shaped g = vmap_shape(f);
      g.function = [=](std::span<const Array> x) {
        std::vector<Arrays> examples;
        for (std::int64_t index = 0; index < 2; ++index) {
          Arrays arguments;
          for (std::size_t i = 0; i < n; ++i)
            arguments.push_back(example_of(x[i], int(i) % (f.avals[i].rank() + 1), index));
          examples.push_back(inner(arguments));
        }
        Arrays results;
        for (std::size_t k = 0; k < examples[0].size(); ++k) {
          Sizes64 shape = examples[0][k].shape().to_sizes();
          shape.insert(0, 2);
          Buffer stack = Buffer::empty(DType::float64, shape);
          shape.erase(0);
          for (int index = 0; index < 2; ++index) {
            const Sizes64 strides = dense_strides(shape);
            copy_elements(examples[index][k].buffer().view(),
                          stack.view_as(shape, strides, index * num_elements(shape) * 8).view());
          }
          results.push_back(Array(stack));
        }
        return results;
      };
      return g;
    }
    default:
      return f;  // jit, checkpoint and mask change no value
  }
}

bool is_derivative(Layer layer) { return layer == Layer::jvp || layer == Layer::grad; }

const char* name_of(Layer layer) {
  constexpr const char* names[] = {"jvp", "grad", "vmap", "jit", "checkpoint", "mask"};
  return names[int(layer)];
}

Shaped base_of(const Program& program) {
  return {program.function(),
          std::vector<Aval>(program.num_inputs, Aval{{rows, columns}, DType::float64})};
}

}  // namespace

// --- Comparison ----------------------------------------------------------------------------------

std::optional<std::string> disagreement(const Composition& composition) {
  try {
    Shaped actual = base_of(composition.program), reference = actual;
    // The outermost derivative is a difference; those below it are analytic in the other mode.
    const auto& layers = composition.layers;
    std::size_t outermost = layers.size();
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (is_derivative(layers[i])) outermost = i;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      // Loops and differences need values: below another derivative the transforms themselves
      // stand.
      bool traced = false;
      for (std::size_t k = i + 1; k < layers.size(); ++k)
        traced |= is_derivative(layers[k]) && k != outermost;
      reference = traced ? transformed_by(layers[i], reference)
                         : reference_of(layers[i], reference, i == outermost);
      actual = transformed_by(layers[i], actual);
    }
    Arrays inputs;
    for (std::size_t i = 0; i < actual.avals.size(); ++i)
      inputs.push_back(normal_like(actual.avals[i], 50 + unsigned(i)));
    const Arrays given = actual.function(inputs);
    const double tolerance =
        outermost < layers.size() ? 2 * tolerance_of(DType::float64).derivative : derivative_order;
    if (auto found = difference(given, reference.function(inputs), tolerance)) return found;
    if (auto found = difference_in_bits(flat::Jit(actual.function, "f")(inputs), given))
      return "under jit: " + *found;
  } catch (const Error& error) {
    return std::string("threw: ") + error.what();
  }
  return std::nullopt;
}

Composition random_composition(unsigned seed) {
  std::mt19937 generator(seed * 977 + 5);
  Composition result;
  result.program.num_inputs = 1 + generator() % 2;
  const std::size_t num_steps = 1 + generator() % 10;
  for (std::size_t i = 0; i < num_steps; ++i) {
    const std::size_t known = result.program.num_inputs + i;
    // Mostly the latest value, so that little is dead.
    const std::size_t first = generator() % 3 ? known - 1 : generator() % known;
    result.program.steps.push_back(
        {unsigned(generator() % 270), first, std::size_t(generator() % known)});
  }
  const std::size_t depth = 1 + generator() % 3;
  for (std::size_t i = 0; i < depth; ++i) {
    result.layers.push_back(Layer(generator() % (result.program.any_size ? 5 : 6)));
    result.program.any_size |= result.layers.back() == Layer::mask;
  }
  return result;
}

Composition shrink(const Composition& composition) {
  Composition smallest = composition;
  for (bool smaller = true; smaller;) {
    smaller = false;
    auto attempt = [&](Composition candidate) {
      if (!disagreement(candidate)) return false;
      smallest = std::move(candidate);
      return smaller = true;
    };
    for (std::size_t i = 0; i < smallest.layers.size(); ++i) {
      Composition candidate = smallest;
      candidate.layers.erase(candidate.layers.begin() + std::ptrdiff_t(i));
      if (!candidate.layers.empty() && attempt(candidate)) break;
    }
    for (std::size_t i = smallest.program.steps.size(); i-- > 0;) {
      Composition candidate = smallest;
      candidate.program.steps.erase(candidate.program.steps.begin() + std::ptrdiff_t(i));
      const std::size_t gone = candidate.program.num_inputs + i;
      for (Step& step : candidate.program.steps)
        for (std::size_t* operand : {&step.first, &step.second})
          if (*operand >= gone && *operand > 0) --*operand;
      if (!candidate.program.steps.empty() && attempt(candidate)) break;
    }
  }
  return smallest;
}

std::string Composition::to_string() const {
  std::string stack = "f";
  for (Layer layer : layers) stack = std::string(name_of(layer)) + "(" + stack + ")";
  const Shaped base = base_of(program);
  return stack + " where f is\n" + print(make_jaxpr(base.function, base.avals).jaxpr);
}

}  // namespace plait::laws
