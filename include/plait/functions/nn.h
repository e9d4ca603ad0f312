// Functions of neural networks: activations, softmax and normalisation as composites, attention,
// and initialisers. Names and arguments are jax.nn's; initialisers are functions of a key and a
// shape.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/functions/numpy.h>

namespace plait::nn {

// --- Activations ---------------------------------------------------------------------------------

Array relu(Operand x);  // the derivative at 0 is 0
Array relu6(Operand x);
Array leaky_relu(Operand x, Operand negative_slope = 0.01);
Array elu(Operand x, Operand alpha = 1.0);
Array celu(Operand x, Operand alpha = 1.0);
Array selu(Operand x);
Array gelu(Operand x, bool approximate = true);
Array sigmoid(Operand x);
Array log_sigmoid(Operand x);
Array softplus(Operand x);
Array sparse_plus(Operand x);
Array sparse_sigmoid(Operand x);
Array soft_sign(Operand x);
Array silu(Operand x);
Array swish(Operand x);
Array mish(Operand x);
Array tanh(Operand x);
Array hard_tanh(Operand x);
Array hard_sigmoid(Operand x);
Array hard_silu(Operand x);
Array hard_swish(Operand x);
Array squareplus(Operand x, Operand b = 4.0);
Array glu(Operand x, int axis = -1);
Array identity(Operand x);

// --- Over axes -----------------------------------------------------------------------------------

// where: the elements that count; the others are 0 in softmax, and -inf in log_softmax.
Array softmax(Operand x, const Axes& axis = -1, const std::optional<Array>& where = {});
Array log_softmax(Operand x, const Axes& axis = -1, const std::optional<Array>& where = {});
// b: factors of the exponentials. The result is -inf where all elements are -inf.
Array logsumexp(Operand a, const Axes& axis = {}, const std::optional<Array>& b = {},
                bool keepdims = false, const std::optional<Array>& where = {});
// (log |sum|, its sign), for factors that are negative.
std::pair<Array, Array> logsumexp_with_sign(Operand a, const Axes& axis = {},
                                            const std::optional<Array>& b = {},
                                            bool keepdims = false,
                                            const std::optional<Array>& where = {});
Array logmeanexp(Operand x, const Axes& axis = {}, const std::optional<Array>& where = {},
                 bool keepdims = false);
Array standardize(Operand x, const Axes& axis = -1, double epsilon = 1e-5);
// (x - mean) / sqrt(var + epsilon) over an axis, times scale, plus bias; both have the size of the
// axis.
Array layer_norm(Operand x, const std::optional<Array>& scale = {},
                 const std::optional<Array>& bias = {}, int axis = -1, double epsilon = 1e-5);
Array rms_norm(Operand x, const std::optional<Array>& scale = {}, int axis = -1,
               double epsilon = 1e-5);
Array one_hot(Operand x, Dim num_classes, std::optional<DType> dtype = {}, int axis = -1);

// --- Attention -----------------------------------------------------------------------------------

// softmax(scale q k^T) v for q[..., t, d], k[..., s, d], v[..., s, e], with equal leading axes;
// mask (bool, broadcast to [..., t, s]) says which pairs count. scale: 1 / sqrt(d) unless given.
Array attention(Operand q, Operand k, Operand v, const std::optional<Array>& mask = {},
                std::optional<double> scale = {});
// jax.nn's: query [b, t, n, h] and key, value [b, s, m, h] where m divides n; b may be absent in
// all. bias and mask are broadcast to [b, n, t, s].
// Lengths, an integer for each example, say how many queries and keys there are;
// local_window_size, one size or (left, right), how far from its own place a query looks.
Array dot_product_attention(Operand query, Operand key, Operand value,
                            const std::optional<Array>& bias = {},
                            const std::optional<Array>& mask = {}, std::optional<double> scale = {},
                            bool is_causal = false,
                            const std::optional<Array>& query_seq_lengths = {},
                            const std::optional<Array>& key_value_seq_lengths = {},
                            const std::optional<Shape>& local_window_size = {});
// The same, and the logarithms of the sums of exponentials, [b, t, n].
std::pair<Array, Array> dot_product_attention_with_residual(
    Operand query, Operand key, Operand value, const std::optional<Array>& bias = {},
    const std::optional<Array>& mask = {}, std::optional<double> scale = {}, bool is_causal = false,
    const std::optional<Array>& query_seq_lengths = {},
    const std::optional<Array>& key_value_seq_lengths = {},
    const std::optional<Shape>& local_window_size = {});

// --- Pooling -------------------------------------------------------------------------------------

// Pooling as in Flax, over the spatial axes between the batch axes and the feature axis, which is
// last. Strides default to 1. With count_include_pad, padding counts as zeros in the mean; without,
// it does not count.
Array avg_pool(Operand inputs, const Shape& window_shape, const Shape& strides = {},
               const lax::WindowPadding& padding = "VALID", bool count_include_pad = true);
Array max_pool(Operand inputs, const Shape& window_shape, const Shape& strides = {},
               const lax::WindowPadding& padding = "VALID");
Array min_pool(Operand inputs, const Shape& window_shape, const Shape& strides = {},
               const lax::WindowPadding& padding = "VALID");

// --- Initialisers --------------------------------------------------------------------------------

// Initial values of the arrays of a network.
namespace initializers {

// The axes of the inputs, the outputs and the batch of networks; the others are a receptive field.
struct FanAxes {
  std::vector<int> in_axis = {-2}, out_axis = {-1}, batch_axis = {};
};

Array zeros(Operand key, const Shape& shape, std::optional<DType> dtype = {});
Array ones(Operand key, const Shape& shape, std::optional<DType> dtype = {});
Array constant(Operand key, const Shape& shape, std::optional<DType> dtype = {},
               Operand value = 0.0);
Array uniform(Operand key, const Shape& shape, std::optional<DType> dtype = {},
              double scale = 1e-2);
Array normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
             double stddev = 1e-2);
Array truncated_normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                       double stddev = 1e-2, double lower = -2.0, double upper = 2.0);
// mode: fan_in, fan_out, fan_avg or fan_geo_avg; distribution: truncated_normal, normal or uniform.
Array variance_scaling(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                       double scale = 1.0, const std::string& mode = "fan_in",
                       const std::string& distribution = "truncated_normal",
                       const FanAxes& axes = {});
Array glorot_uniform(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                     const FanAxes& axes = {});
Array glorot_normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                    const FanAxes& axes = {});
Array xavier_uniform(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                     const FanAxes& axes = {});
Array xavier_normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                    const FanAxes& axes = {});
Array he_uniform(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                 const FanAxes& axes = {});
Array he_normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                const FanAxes& axes = {});
Array kaiming_uniform(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                      const FanAxes& axes = {});
Array kaiming_normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                     const FanAxes& axes = {});
Array lecun_uniform(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                    const FanAxes& axes = {});
Array lecun_normal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                   const FanAxes& axes = {});
// Orthogonal columns along column_axis (or rows, where there are more columns than rows) of length
// scale. Saxe et al., 2013.
Array orthogonal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                 double scale = 1.0, int column_axis = -1);
// A kernel (spatial ..., inputs, outputs) with orthogonal at its center and 0 elsewhere. Xiao et
// al., 2018.
Array delta_orthogonal(Operand key, const Shape& shape, std::optional<DType> dtype = {},
                       double scale = 1.0, int column_axis = -1);

}  // namespace initializers
}  // namespace plait::nn
