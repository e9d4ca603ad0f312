// grad, value_and_grad, jacfwd, jacrev: compositions of vjp, jvp and vmap.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/argument_names.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/interpret.h>
#include <plait/transforms/transforms.h>

namespace plait {
namespace {

// A holomorphic function has complex derivatives by complex arguments. Other functions have real
// ones: by cotangents also with respect to complex arguments, where x + iy counts as two real ones.
enum class By { tangents, cotangents };

void check_inputs(std::span<const Array> inputs, const std::vector<bool>& wrt,
                  const std::string& transform, By by, bool holomorphic) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!wrt[i]) continue;
    const DType dtype = inputs[i].dtype();
    const auto argument = [&] {
      return transform + ": " + ArgumentNames::of(i) + " has dtype " + std::string(name_of(dtype));
    };
    if (!is_inexact(dtype))
      throw DtypeError(argument() + ", which has no derivative",
                       "convert it to float, or leave it out of argnums");
    if (holomorphic && !is_complex(dtype))
      throw DtypeError(argument() + ", and holomorphic functions are of complex arguments",
                       "convert it to complex, or leave holomorphic=True away");
    if (!holomorphic && is_complex(dtype) && by == By::tangents)
      throw DtypeError(argument() + ", by which only holomorphic functions have one derivative",
                       "give holomorphic=True for one that is, else use jacrev or jvp");
  }
}

void check_output(const std::string& what, DType dtype, By by, bool holomorphic,
                  const std::string& fix) {
  const std::string output = what + std::string(name_of(dtype));
  if (!is_inexact(dtype)) throw DtypeError(output + ", which has no derivative", fix);
  if (holomorphic && !is_complex(dtype))
    throw DtypeError(output + ", and holomorphic functions have complex values",
                     "return a complex value, or leave holomorphic=True away");
  if (!holomorphic && is_complex(dtype) && by == By::cotangents)
    throw DtypeError(output + ", of which only holomorphic functions have one derivative",
                     "give holomorphic=True for one that is, else use vjp, or take real and imag");
}

// The standard basis of an array, as a batch: 1 at one element and 0 elsewhere.
Array basis(const Aval& aval) {
  const Dim n = aval.shape.num_elements();
  const Array rows = lax::iota(DType::int32, {n, n}, 0),
              columns = lax::iota(DType::int32, {n, n}, 1);
  Shape shape{n};
  for (Dim dim : aval.shape) shape.push_back(dim);
  const Array ones = lax::convert_element_type(lax::eq(rows, columns), aval.dtype, aval.weak);
  return lax::reshape(ones, shape);
}

Shape joined(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (Dim dim : b) shape.push_back(dim);
  return shape;
}

// Checks the differentiated outputs, and returns their number.
std::size_t check_outputs(const Arrays& outputs, const flat::JacobianOptions& options,
                          const std::string& transform, By by) {
  const std::size_t count =
      options.num_differentiated ? options.num_differentiated() : outputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::string output =
        options.output_name ? options.output_name(i) : "output " + std::to_string(i);
    check_output(
        transform + ": " + output + " has dtype ", outputs[i].dtype(), by, options.holomorphic,
        Source::is_python() ? "return floats, and the rest as auxiliary data with has_aux=True"
                            : "return a float, or a pair of it and the rest");
  }
  return count;
}

}  // namespace

flat::ValueAndGrad flat::value_and_grad(const Function& function, std::span<const Array> inputs,
                                        const std::vector<bool>& wrt, const GradOptions& options) {
  check_inputs(inputs, wrt, options.transform, By::cotangents, options.holomorphic);
  const ArgumentNames none({});  // what runs below has its own arguments
  const Pullback pullback = vjp(function, inputs, wrt);
  const Array& value = pullback.outputs.at(0);
  if (value.ndim() != 0)
    throw ShapeError(options.transform + ": the function returns an array of shape (" +
                         value.shape().to_string() + "), and a gradient is of a scalar",
                     "reduce the output, for example by sum or mean, or use jacrev or vjp");
  check_output(options.transform + ": the function returns ", value.dtype(), By::cotangents,
               options.holomorphic, "return a float");
  Tangents cotangents;
  for (std::size_t i = 0; i < pullback.outputs.size(); ++i) {
    const Aval& aval = pullback.outputs[i].aval();
    cotangents.push_back(i == 0 ? Tangent(Array::literal(Literal{aval.dtype, aval.weak, 0, 1, 0}))
                                : Tangent(aval));
  }
  ValueAndGrad result{pullback.outputs, {}};
  for (const Tangent& tangent : pullback.pull(cotangents))
    result.gradients.push_back(tangent.instantiate());
  return result;
}

flat::Jacobian flat::jacfwd(const Function& function, std::span<const Array> inputs,
                            const std::vector<bool>& wrt, const JacobianOptions& options) {
  check_inputs(inputs, wrt, "jacfwd", By::tangents, options.holomorphic);
  const ArgumentNames none({});  // what runs below has its own arguments
  const LinearMap map = linearize(function, inputs, wrt);
  Jacobian result{map.outputs, {}};
  const std::size_t count = check_outputs(map.outputs, options, "jacfwd", By::tangents);
  std::vector<Arrays> columns;  // by input, then output
  for (int input : map.inputs) {
    const Aval aval = inputs[input].aval();
    auto push = [&](std::span<const Array> direction) {
      Arrays arguments;
      for (int other : map.inputs)
        arguments.push_back(other == input ? direction[0] : lax::zeros_like(inputs[other].aval()));
      arguments.insert(arguments.end(), map.residuals.begin(), map.residuals.end());
      return eval_jaxpr(map.jaxpr, arguments);
    };
    VmapOptions batch;
    batch.in_dims = {0};
    batch.chunk = options.chunk;
    batch.out_dims = [](std::size_t n) { return std::vector<std::optional<int>>(n, -1); };
    const Arrays pushed = vmap(push, Arrays{basis(aval)}, batch);
    columns.emplace_back();
    std::size_t next = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const Shape shape = joined(map.outputs[k].shape(), aval.shape);
      const bool has = next < pushed.size() && map.outputs_with_tangent[next] == int(k);
      columns.back().push_back(has ? lax::reshape(pushed[next++], shape)
                                   : lax::full(shape, 0, map.outputs[k].dtype()));
    }
  }
  for (std::size_t k = 0; k < count; ++k)
    for (const Arrays& column : columns) result.derivatives.push_back(column[k]);
  return result;
}

flat::Jacobian flat::jacrev(const Function& function, std::span<const Array> inputs,
                            const std::vector<bool>& wrt, const JacobianOptions& options) {
  check_inputs(inputs, wrt, "jacrev", By::cotangents, options.holomorphic);
  const ArgumentNames none({});  // what runs below has its own arguments
  const Pullback pullback = vjp(function, inputs, wrt);
  Jacobian result{pullback.outputs, {}};
  const std::size_t count = check_outputs(pullback.outputs, options, "jacrev", By::cotangents);
  for (std::size_t output = 0; output < count; ++output) {
    const Aval& aval = pullback.outputs[output].aval();
    auto pull = [&](std::span<const Array> direction) {
      Tangents cotangents;
      for (std::size_t k = 0; k < pullback.outputs.size(); ++k)
        cotangents.push_back(k == output ? Tangent(direction[0])
                                         : Tangent(pullback.outputs[k].aval()));
      Arrays pulled;
      for (const Tangent& tangent : pullback.pull(cotangents))
        pulled.push_back(tangent.instantiate());
      return pulled;
    };
    VmapOptions batch;
    batch.in_dims = {0};
    batch.chunk = options.chunk;
    std::size_t next = 0;
    const Arrays pulled = vmap(pull, Arrays{basis(aval)}, batch);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (wrt[i])
        result.derivatives.push_back(
            lax::reshape(pulled[next++], joined(aval.shape, inputs[i].shape())));
  }
  return result;
}

}  // namespace plait
