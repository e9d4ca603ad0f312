// grad, value_and_grad, jacfwd, jacrev: compositions of vjp, jvp and vmap.
// SPDX-License-Identifier: Apache-2.0
#include <plait/ops.h>
#include <plait/transforms.h>

namespace plait {
namespace {

void check_inputs(std::span<const Array> inputs, const std::vector<bool>& wrt, const char* transform) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (wrt[i] && !is_floating(inputs[i].dtype()))
      throw DtypeError(std::string(transform) + ": input " + std::to_string(i) + " has dtype " + std::string(name_of(inputs[i].dtype())) +
                           ", which has no " + (is_complex(inputs[i].dtype()) ? "real derivative" : "derivative"),
                       is_complex(inputs[i].dtype()) ? "split it with real and imag, or use vjp" : "convert it to float, or leave it out of argnums");
}

// The basis of an array: one example for each element, 1 there and 0 elsewhere.
Array basis(const Aval& aval) {
  const Dim n = aval.shape.num_elements();
  const Array rows = lax::iota(DType::int32, {n, n}, 0), columns = lax::iota(DType::int32, {n, n}, 1);
  Shape shape{n};
  for (Dim dim : aval.shape) shape.push_back(dim);
  return lax::reshape(lax::convert_element_type(lax::eq(rows, columns), aval.dtype), shape);
}

Shape joined(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (Dim dim : b) shape.push_back(dim);
  return shape;
}

}  // namespace

flat::ValueAndGrad flat::value_and_grad(const Function& function, std::span<const Array> inputs, const std::vector<bool>& wrt) {
  check_inputs(inputs, wrt, "grad");
  const Pullback pullback = vjp(function, inputs, wrt);
  const Array& value = pullback.outputs.at(0);
  if (value.ndim() != 0)
    throw ShapeError("grad: the function returns an array of shape (" + value.shape().to_string() + "), and a gradient is of a scalar",
                     "reduce the output, for example by sum or mean, or use jacrev or vjp");
  if (!is_floating(value.dtype()))
    throw DtypeError("grad: the function returns " + std::string(name_of(value.dtype())) + ", and a gradient is of a real float",
                     "return a float");
  Tangents cotangents;
  for (std::size_t i = 0; i < pullback.outputs.size(); ++i) {
    const Aval& aval = pullback.outputs[i].aval();
    cotangents.push_back(i == 0 ? Tangent(Array::literal(Literal{aval.dtype, aval.weak, 0, 1, 0})) : Tangent(aval));
  }
  ValueAndGrad result{pullback.outputs, {}};
  for (const Tangent& tangent : pullback.pull(cotangents)) result.gradients.push_back(tangent.instantiate());
  return result;
}

Arrays flat::jacfwd(const Function& function, std::span<const Array> inputs, const std::vector<bool>& wrt, std::optional<std::int64_t> chunk) {
  check_inputs(inputs, wrt, "jacfwd");
  std::vector<Arrays> columns;  // by input, then output
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!wrt[i]) continue;
    const Aval aval = inputs[i].aval();
    auto push = [&](std::span<const Array> direction) {
      Tangents tangents;
      for (std::size_t k = 0; k < inputs.size(); ++k) tangents.push_back(k == i ? Tangent(direction[0]) : Tangent(inputs[k].aval()));
      Arrays results;
      for (const Tangent& tangent : jvp(function, inputs, tangents).tangents) results.push_back(tangent.instantiate());
      return results;
    };
    VmapOptions options;
    options.in_dims = {0};
    options.chunk = chunk;
    options.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, -1); };
    Arrays derivatives;
    for (const Array& result : vmap(push, Arrays{basis(aval)}, options)) {
      Shape output = result.shape();
      output.pop_back();
      derivatives.push_back(lax::reshape(result, joined(output, aval.shape)));
    }
    columns.push_back(std::move(derivatives));
  }
  Arrays results;
  for (std::size_t output = 0; !columns.empty() && output < columns[0].size(); ++output)
    for (const Arrays& column : columns) results.push_back(column[output]);
  return results;
}

Arrays flat::jacrev(const Function& function, std::span<const Array> inputs, const std::vector<bool>& wrt, std::optional<std::int64_t> chunk) {
  check_inputs(inputs, wrt, "jacrev");
  const Pullback pullback = vjp(function, inputs, wrt);
  Arrays results;
  for (std::size_t output = 0; output < pullback.outputs.size(); ++output) {
    const Aval& aval = pullback.outputs[output].aval();
    if (!is_floating(aval.dtype))
      throw DtypeError("jacrev: output " + std::to_string(output) + " has dtype " + std::string(name_of(aval.dtype)) + ", which has no derivative",
                       "return floats, and the rest as auxiliary output with has_aux=True");
    auto pull = [&](std::span<const Array> direction) {
      Tangents cotangents;
      for (std::size_t k = 0; k < pullback.outputs.size(); ++k)
        cotangents.push_back(k == output ? Tangent(direction[0]) : Tangent(pullback.outputs[k].aval()));
      Arrays pulled;
      for (const Tangent& tangent : pullback.pull(cotangents)) pulled.push_back(tangent.instantiate());
      return pulled;
    };
    VmapOptions options;
    options.in_dims = {0};
    options.chunk = chunk;
    std::size_t next = 0;
    const Arrays pulled = vmap(pull, Arrays{basis(aval)}, options);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (wrt[i]) results.push_back(lax::reshape(pulled[next++], joined(aval.shape, inputs[i].shape())));
  }
  return results;
}

}  // namespace plait
