// Random compositions. See compositions.h.
// SPDX-License-Identifier: Apache-2.0
#include "compositions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <plait/inspect/tolerance.h>
#include "laws.h"

namespace plait::laws {

// --- Layers --------------------------------------------------------------------------------------

namespace {

using Shaped = Transformed;  // of float64 arrays

std::vector<Aval> twice(const std::vector<Aval>& avals) {
  std::vector<Aval> result = avals;
  result.insert(result.end(), avals.begin(), avals.end());
  return result;
}

// Which axis of each input vmap maps; some of them it does not, as the bits of `unmapped` say.
std::vector<std::optional<int>> in_dims_of(const Shaped& f, unsigned unmapped) {
  std::vector<std::optional<int>> dims;
  for (std::size_t i = 0; i < f.avals.size(); ++i)
    dims.push_back(i == unmapped % f.avals.size() || !(unmapped >> i % 8 & 1)
                       ? std::optional(int(i + unmapped / 16) % (f.avals[i].rank() + 1))
                       : std::nullopt);
  return dims;
}

Shaped vmap_shape(const Shaped& f, unsigned unmapped) {
  Shaped g{{}, f.avals};
  const std::vector<std::optional<int>> dims = in_dims_of(f, unmapped);
  for (std::size_t i = 0; i < g.avals.size(); ++i)
    if (dims[i]) g.avals[i].shape.insert(*dims[i], 2);
  return g;
}

// What the transform makes of f.
Shaped transformed_by(Layer layer, const Shaped& f, unsigned unmapped) {
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
      Shaped g = vmap_shape(f, unmapped);
      g.function = [=](std::span<const Array> x) {
        flat::VmapOptions options;
        options.in_dims = in_dims_of(f, unmapped);
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

Buffer zeros_of(const Sizes64& shape) {
  Buffer buffer = Buffer::empty(DType::float64, shape);
  std::fill_n(static_cast<double*>(buffer.mutable_data()), num_elements(shape), 0.0);
  return buffer;
}

// The derivatives of f's outputs along a direction, and after them how far off each element may be:
// central differences of halving steps, extrapolated, of which the estimate counts that moved the
// least (Ridders, Advances in Engineering Software 4, 1982). Loops here may be close to chaotic.
Arrays differences_along(const Function& f, std::span<const Array> x, const Arrays& direction,
                         int levels) {
  std::vector<Arrays> below(levels), above(levels);
  double step = tolerance_of(DType::float64).step;
  std::vector<double> steps;
  for (int level = 0; level < levels; ++level, step /= 2) {
    Arrays low, high;
    for (std::size_t i = 0; i < x.size(); ++i) {
      low.push_back(moved(x[i], direction[i], -step));
      high.push_back(moved(x[i], direction[i], step));
    }
    below[level] = f(low);
    above[level] = f(high);
    steps.push_back(step);
  }
  Arrays slopes, errors;
  for (std::size_t k = 0; k < below[0].size(); ++k) {
    const Sizes64 shape = below[0][k].shape().to_sizes();
    std::vector<std::vector<complex128>> low(levels), high(levels);
    for (int level = 0; level < levels; ++level) {
      low[level] = numbers_of(below[level][k]);
      high[level] = numbers_of(above[level][k]);
    }
    Buffer slope = zeros_of(shape), error = zeros_of(shape);
    for (std::size_t e = 0; e < low[0].size(); ++e) {
      std::vector<double> column(levels);
      double best = 0, off = std::numeric_limits<double>::infinity();
      for (int level = 0; level < levels; ++level) {
        // The row of the table that ends here, over the one before it.
        double above_it = column[0];
        column[0] = (high[level][e] - low[level][e]).real() / (2 * steps[std::size_t(level)]);
        for (int order = 1; order <= level; ++order) {
          const double weight = std::pow(4.0, order), wider = above_it;
          above_it = column[order];
          column[order] = column[order - 1] + (column[order - 1] - wider) / (weight - 1);
          const double change = std::max(std::abs(column[order] - column[order - 1]),
                                         std::abs(column[order] - wider));
          if (change < off) off = change, best = column[order];
        }
      }
      static_cast<double*>(slope.mutable_data())[e] = best;
      static_cast<double*>(error.mutable_data())[e] = off;
    }
    slopes.push_back(Array(slope));
    errors.push_back(Array(error));
  }
  slopes.insert(slopes.end(), errors.begin(), errors.end());
  return slopes;
}

// The same by loops and other modes: differences of so many steps if any, which cannot be nested;
// its outputs, and those of what is made of it, are then followed by how far off they may be.
Shaped reference_of(Layer layer, const Shaped& f, int differences, unsigned unmapped) {
  const std::size_t n = f.avals.size();
  const Function inner = f.function;
  auto along = [=](std::span<const Array> x, const Arrays& direction) {  // derivative of inner at x
    if (differences > 0) return differences_along(inner, x, direction, differences);
    Tangents tangents;
    for (const Array& array : direction) tangents.push_back(array);
    Arrays results;
    for (const Tangent& tangent : flat::jvp(inner, x, tangents).tangents)
      results.push_back(tangent.instantiate());
    return results;
  };
  auto unit = [=](std::size_t input, std::int64_t element) {  // a basis vector of all inputs
    Arrays direction;
    for (std::size_t i = 0; i < n; ++i) {
      Buffer buffer = zeros_of(f.avals[i].shape.to_sizes());
      if (i == input) static_cast<double*>(buffer.mutable_data())[element] = 1;
      direction.push_back(Array(buffer));
    }
    return direction;
  };
  switch (layer) {
    case Layer::jvp:
      return {[=](std::span<const Array> x) {
                const Arrays direction(x.begin() + std::ptrdiff_t(n), x.end());
                if (differences > 0) return along(x.first(n), direction);
                // Through reverse mode: <J v, e> = <v, J' e>.
                const flat::Pullback pullback =
                    flat::vjp(inner, x.first(n), std::vector<bool>(n, true));
                Arrays results;
                for (std::size_t k = 0; k < pullback.outputs.size(); ++k) {
                  Buffer result =
                      Buffer::empty(DType::float64, pullback.outputs[k].shape().to_sizes());
                  for (std::int64_t e = 0; e < num_elements(result.shape()); ++e) {
                    Tangents cotangents;
                    for (const Array& output : pullback.outputs)
                      cotangents.push_back(Tangent(output.aval()));
                    Buffer basis = zeros_of(result.shape());
                    static_cast<double*>(basis.mutable_data())[e] = 1;
                    cotangents[k] = Array(basis);
                    double value = 0;
                    const Tangents pulled = pullback.pull(cotangents);
                    for (std::size_t i = 0; i < n; ++i)
                      if (!pulled[i].is_zero()) value += dot(direction[i], pulled[i].array());
                    static_cast<double*>(result.mutable_data())[e] = value;
                  }
                  results.push_back(Array(result));
                }
                return results;
              },
              twice(f.avals)};
    case Layer::grad:
      return {[=](std::span<const Array> x) {
                Arrays results, errors;
                for (std::size_t i = 0; i < n; ++i) {
                  Buffer result = zeros_of(f.avals[i].shape.to_sizes()),
                         error = zeros_of(result.shape());
                  for (std::int64_t e = 0; e < num_elements(result.shape()); ++e) {
                    const Arrays outputs = along(x, unit(i, e));
                    for (std::size_t k = 0; k < outputs.size(); ++k)
                      for (complex128 value : numbers_of(outputs[k])) {
                        const bool is_error = differences > 0 && k >= outputs.size() / 2;
                        Buffer& sum = is_error ? error : result;
                        static_cast<double*>(sum.mutable_data())[e] += value.real();
                      }
                  }
                  results.push_back(Array(result));
                  errors.push_back(Array(error));
                }
                if (differences > 0) results.insert(results.end(), errors.begin(), errors.end());
                return results;
              },
              f.avals};
    case Layer::vmap: {
      Shaped g = vmap_shape(f, unmapped);
      g.function = [=](std::span<const Array> x) {
        const std::vector<std::optional<int>> dims = in_dims_of(f, unmapped);
        std::vector<Arrays> examples;
        for (std::int64_t index = 0; index < 2; ++index) {
          Arrays arguments;
          for (std::size_t i = 0; i < n; ++i)
            arguments.push_back(dims[i] ? row_of(x[i], index, *dims[i]) : x[i]);
          examples.push_back(inner(arguments));
        }
        Arrays results;
        for (std::size_t k = 0; k < examples[0].size(); ++k)
          results.push_back(stacked(Arrays{examples[0][k], examples[1][k]}));
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

Shaped base_of(const Program& program, Style style = Style::structured) {
  return {program.function(style),
          std::vector<Aval>(program.num_inputs, Aval{{rows, columns}, DType::float64})};
}

}  // namespace

Transformed transformed(const Composition& composition) {
  Shaped f = base_of(composition.program);
  for (const Layer layer : composition.layers) f = transformed_by(layer, f, composition.unmapped);
  return f;
}

// --- Comparison ----------------------------------------------------------------------------------

namespace {

// By loops; the outermost derivative by differences of so many steps or, of none, like those below
// it by the other mode.
Arrays reference_results(const Composition& composition, int differences,
                         std::span<const Array> inputs) {
  const auto& layers = composition.layers;
  std::size_t outermost = layers.size();
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (is_derivative(layers[i]) && differences > 0) outermost = i;
  Shaped reference = base_of(composition.program, Style::plain);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    // Loops need numbers: below another derivative the transforms themselves stand, of a program
    // without control flow.
    bool traced = false;
    for (std::size_t k = i + 1; k < layers.size(); ++k)
      traced |= is_derivative(layers[k]) && k != outermost;
    reference = traced && is_derivative(layers[i])
                    ? transformed_by(layers[i], reference, composition.unmapped)
                    : reference_of(layers[i], reference, i == outermost ? differences : 0,
                                   composition.unmapped);
  }
  return reference.function(inputs);
}

// What differs by more than differences leave open: nothing at all where they cannot tell.
std::optional<std::optional<std::string>> differs_from(const Arrays& given,
                                                       const Arrays& differences) {
  const double tolerance = 2 * tolerance_of(DType::float64).derivative;
  bool all = true;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const Array &expected = differences[k], &error = differences[given.size() + k];
    if (given[k].shape() != expected.shape()) return difference(given[k], expected);
    const auto values = numbers_of(given[k]), slopes = numbers_of(expected),
               errors = numbers_of(error);
    for (std::size_t e = 0; e < slopes.size(); ++e) {
      const double size = 1 + std::abs(slopes[e]), off = 4 * std::abs(errors[e]);
      if (!(off < 1e-3 * size))
        all = false;
      else if (!(std::abs(values[e] - slopes[e]) <= tolerance * size + off))
        return difference(given[k], expected, tolerance);
    }
  }
  return all ? std::optional(std::optional<std::string>()) : std::nullopt;
}

}  // namespace

std::optional<std::string> disagreement(const Composition& composition) {
  try {
    const bool differentiates =
        std::any_of(composition.layers.begin(), composition.layers.end(), is_derivative);
    const Transformed actual = transformed(composition);
    Arrays inputs;
    for (std::size_t i = 0; i < actual.avals.size(); ++i)
      inputs.push_back(normal_like(actual.avals[i], 50 + unsigned(i)));
    const Arrays given = actual.function(inputs);
    std::optional<std::optional<std::string>> told;
    for (const int steps : {2, 5})  // more where two leave a doubt
      if (differentiates && (!told || *told))
        told = differs_from(given, reference_results(composition, steps, inputs));
    if (!told)
      told =
          difference(given, reference_results(composition, 0, inputs),
                     differentiates ? tolerance_of(DType::float64).derivative : derivative_order);
    if (*told) return *told;
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
  result.program = random_program(generator);
  result.unmapped = unsigned(generator() % 256);
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
    for (Program& program : smaller_programs(smallest.program)) {
      Composition candidate = smallest;
      candidate.program = std::move(program);
      if (attempt(std::move(candidate))) break;
    }
  }
  return smallest;
}

std::string Composition::to_string() const {
  std::string stack = "f";
  for (Layer layer : layers) stack = std::string(name_of(layer)) + "(" + stack + ")";
  const Shaped base = base_of(program);
  try {
    return stack + " where f is\n" + print(make_jaxpr(base.function, base.avals).jaxpr);
  } catch (const Error& error) {
    return stack + " where tracing f throws: " + error.what();
  }
}

}  // namespace plait::laws
