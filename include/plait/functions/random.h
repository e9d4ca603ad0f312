// Random numbers from keys: the same key gives the same numbers, and split gives new keys. The
// generator is Threefry, bit for bit as in JAX (with partitionable threefry, its default). A key is
// an array of rank 0 of dtype key<fry>, or its words, uint32[2], which the functions take too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/arguments.h>
#include <plait/primitives/primitives.h>

namespace plait::random {

Array key(Operand seed);       // of an integer
Array PRNGKey(Operand seed);   // its words
Array key_data(Operand keys);  // their words, along a new last axis
Array wrap_key_data(Operand key_bits_array);
Array clone(Operand key);
Array split(Operand key, const Shape& num = {2});
Array fold_in(Operand key, Operand data);

Array bits(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array uniform(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {},
              Operand minval = 0.0, Operand maxval = 1.0);
Array randint(Operand key, const Shape& shape, Operand minval, Operand maxval,
              std::optional<DType> dtype = {});
Array normal(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array truncated_normal(Operand key, Operand lower, Operand upper,
                       const std::optional<Shape>& shape = {}, std::optional<DType> dtype = {});
Array bernoulli(Operand key, Operand p = 0.5, const std::optional<Shape>& shape = {});
Array rademacher(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array exponential(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array laplace(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array logistic(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array gumbel(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array cauchy(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array pareto(Operand key, Operand b, const std::optional<Shape>& shape = {},
             std::optional<DType> dtype = {});
Array rayleigh(Operand key, Operand scale, const std::optional<Shape>& shape = {},
               std::optional<DType> dtype = {});
Array weibull_min(Operand key, Operand scale, Operand concentration, const Shape& shape = {},
                  std::optional<DType> dtype = {});
Array lognormal(Operand key, Operand sigma = 1.0, const std::optional<Shape>& shape = {},
                std::optional<DType> dtype = {});

// Of gamma, differentiable in the parameters (gamma.cpp).
Array gamma(Operand key, Operand a, const std::optional<Shape>& shape = {},
            std::optional<DType> dtype = {});
Array loggamma(Operand key, Operand a, const std::optional<Shape>& shape = {},
               std::optional<DType> dtype = {});
Array beta(Operand key, Operand a, Operand b, const std::optional<Shape>& shape = {},
           std::optional<DType> dtype = {});
Array dirichlet(Operand key, Operand alpha, const std::optional<Shape>& shape = {},
                std::optional<DType> dtype = {});
Array chisquare(Operand key, Operand df, const std::optional<Shape>& shape = {},
                std::optional<DType> dtype = {});
Array f(Operand key, Operand dfnum, Operand dfden, const std::optional<Shape>& shape = {},
        std::optional<DType> dtype = {});
Array t(Operand key, Operand df, const std::optional<Shape>& shape = {},
        std::optional<DType> dtype = {});
Array generalized_normal(Operand key, Operand p, const Shape& shape = {},
                         std::optional<DType> dtype = {});
Array ball(Operand key, Dim d, Operand p = 2, const Shape& shape = {},
           std::optional<DType> dtype = {});

// Counts (counts.cpp).
Array poisson(Operand key, Operand lam, const std::optional<Shape>& shape = {},
              std::optional<DType> dtype = {});
Array binomial(Operand key, Operand n, Operand p, const std::optional<Shape>& shape = {},
               std::optional<DType> dtype = {});
Array multinomial(Operand key, Operand n, Operand p, const std::optional<Shape>& shape = {},
                  std::optional<DType> dtype = {}, int unroll = 1);
Array geometric(Operand key, Operand p, const std::optional<Shape>& shape = {},
                std::optional<DType> dtype = {});

// Vectors, matrices, and transformed numbers (vectors.cpp).
Array multivariate_normal(Operand key, Operand mean, Operand cov,
                          const std::optional<Shape>& shape = {}, std::optional<DType> dtype = {},
                          const std::string& method = "cholesky");
Array orthogonal(Operand key, Dim n, const Shape& shape = {}, std::optional<DType> dtype = {},
                 const std::optional<Dim>& m = {});
Array maxwell(Operand key, const Shape& shape = {}, std::optional<DType> dtype = {});
Array double_sided_maxwell(Operand key, Operand loc, Operand scale, const Shape& shape = {},
                           std::optional<DType> dtype = {});
Array triangular(Operand key, Operand left, Operand mode, Operand right,
                 const std::optional<Shape>& shape = {}, std::optional<DType> dtype = {});
Array wald(Operand key, Operand mean, const std::optional<Shape>& shape = {},
           std::optional<DType> dtype = {});

// What is permuted or sampled from: an array, or a size n, which stands for arange(n).
class Population {
 public:
  static constexpr const char* argument_type = "int or array";
  static std::optional<Population> from_argument(const Argument& argument);

  template <std::integral Count>
  Population(Count count) : count_(std::int64_t(count)) {}  // NOLINT
  Population(Dim count) : count_(count) {}                  // NOLINT
  Population(Array array);  // NOLINT: a scalar is a count; TracerError where it is not known
  const std::optional<Dim>& count() const { return count_; }
  const Array& array() const { return *array_; }  // where there is no count

 private:
  std::optional<Dim> count_;
  std::optional<Array> array_;
};
// Permutes whole slices along the axis, or, if independent, each row by itself.
Array permutation(Operand key, const Population& x, int axis = 0, bool independent = false);
Array choice(Operand key, const Population& a, const Shape& shape = {}, bool replace = true,
             const std::optional<Array>& p = {}, int axis = 0);
Array categorical(Operand key, Operand logits, int axis = -1,
                  const std::optional<Shape>& shape = {});

}  // namespace plait::random
