// outer_products: jaxpr -> jaxpr. A dot_general whose contracted axes have one element, such as the
// gradient of weights by a single example, sums nothing. As a multiplication it fuses into the loop
// of its consumer, and a result as large as the weights is never in memory.
//
// It runs after simplify, whose loop-invariant code motion looks for products. Simplify then runs
// once more on the result. The bits stay the same: kernels begin sums at +0, as the addition here
// does, and round once.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/outer_products.h"

#include <plait/primitives/primitives.h>

#include "ir/environment.h"
#include "primitives/contraction/dot.h"

namespace plait::compile_passes {
namespace {

bool is_outer_product(const Jaxpr& program, const Equation& equation) {
  if (!(*equation.primitive == dot_general_p)) return false;
  const Aval &lhs = program->aval(equation.inputs[0]), &rhs = program->aval(equation.inputs[1]);
  const DType dtype = equation.params.get<DType>("dtype");
  if (is_complex(dtype) || dtype == DType::bool_ || lhs.dtype != dtype || rhs.dtype != dtype)
    return false;
  if (!equation.inputs[0].is_var() || !equation.inputs[1].is_var()) return false;
  for (int axis : equation.params.ints("lhs_contract"))
    if (!(lhs.shape[axis] == Dim(1))) return false;
  return true;
}

class Rewriter {
 public:
  explicit Rewriter(const Jaxpr& program) : program_(program) {}

  Jaxpr run() {
    std::vector<Atom> binders;
    for (const Aval& aval : program_->input_avals()) binders.push_back(builder_.add_binder(aval));
    Environment environment(program_, std::move(binders));
    for (const Equation& equation : program_->equations) {
      std::vector<Atom> inputs = environment.read(equation.inputs);
      if (is_outer_product(program_, equation))
        environment.set(equation.outputs[0], multiplication(equation, inputs[0], inputs[1]));
      else
        environment.set(equation.outputs,
                        builder_.add(*equation.primitive, std::move(inputs), equation.params,
                                     equation.source, output_avals(*program_, equation)));
    }
    return builder_.close(environment.read(program_->outputs));
  }

 private:
  Atom add(const Primitive& primitive, std::vector<Atom> inputs, Params params, Source source) {
    return builder_.add(primitive, std::move(inputs), std::move(params), source)[0];
  }

  // Transposes an operand to its batch and free axes and broadcasts it to the result, where its
  // free axes start at first_free.
  Atom spread(const Atom& operand, const std::vector<int>& batch, const std::vector<int>& contract,
              int first_free, const Shape& result, Source source) {
    const Shape whole = builder_.aval(operand).shape;
    std::vector<int> order = batch;
    const std::vector<int> free = free_axes(whole.rank(), contract, batch);
    order.insert(order.end(), free.begin(), free.end());
    Shape shape, dims;
    for (std::size_t i = 0; i < order.size(); ++i) {
      shape.push_back(whole[order[i]]);
      dims.push_back(i < batch.size() ? int(i) : first_free + int(i - batch.size()));
    }
    order.insert(order.end(), contract.begin(), contract.end());
    const Atom moved = add(transpose_p, {operand}, {{"permutation", to_shape(order)}}, source);
    const Atom shaped = add(reshape_p, {moved}, {{"shape", shape}}, source);
    return add(broadcast_in_dim_p, {shaped}, {{"shape", result}, {"dims", dims}}, source);
  }

  Atom multiplication(const Equation& equation, const Atom& lhs, const Atom& rhs) {
    const DotAxes axes(equation.params);
    const Shape& result = program_->avals[equation.outputs[0].id].shape;
    const int num_batch = int(axes.lhs_batch.size());
    const int lhs_free = builder_.aval(lhs).rank() - num_batch - int(axes.lhs_contract.size());
    const Atom product =
        add(mul_p,
            {spread(lhs, axes.lhs_batch, axes.lhs_contract, num_batch, result, equation.source),
             spread(rhs, axes.rhs_batch, axes.rhs_contract, num_batch + lhs_free, result,
                    equation.source)},
            {}, equation.source);
    const Literal zero = *Array::literal(0, builder_.aval(product).dtype).as_literal();
    return add(add_p, {product, zero}, {}, equation.source);
  }

  const Jaxpr& program_;
  Builder builder_;
};

}  // namespace

Jaxpr multiply_outer_products(const Jaxpr& program) {
  const auto& equations = program->equations;
  const bool any = std::any_of(equations.begin(), equations.end(), [&](const Equation& equation) {
    return is_outer_product(program, equation);
  });
  return any ? Rewriter(program).run() : Jaxpr();
}

}  // namespace plait::compile_passes
