// Epilogues: additions, subtractions, multiplications and divisions after a product, which oneDNN
// applies before it writes the result. Their bits are those of the separate equations, because a
// product is complete when its post-operations start. An operand as large as the result is left to
// a separate loop, because oneDNN would copy it first.
// SPDX-License-Identifier: Apache-2.0
#include <plait/primitives/primitives.h>

#include "graph.h"

namespace plait::onednn {
namespace {

constexpr std::size_t most_epilogues = 4;

// The equations that are post-operations.
struct PostOperation {
  const Primitive* primitive;
  dnnl::algorithm algorithm;
  bool commutes;
};
const PostOperation operations[] = {
    {&add_p, dnnl::algorithm::binary_add, true},
    {&sub_p, dnnl::algorithm::binary_sub, false},
    {&mul_p, dnnl::algorithm::binary_mul, true},
    {&div_p, dnnl::algorithm::binary_div, false},
};

// The products that have them.
struct ProductKind {
  const Primitive* primitive;
  // Axes of the result along which a vector may lie.
  std::vector<int> (*feature_axes)(const Jaxpr& program, const Equation& product);
  // Whether oneDNN does epilogues behind it.
  bool (*takes_epilogues)(const Jaxpr& program, const Equation& product);
};

// The free axes of the right factor, which come last.
std::vector<int> columns_of(const Jaxpr& program, const Equation& product) {
  const int rank = program->avals[product.outputs[0].id].rank();
  const int free =
      program->aval(product.inputs[1]).rank() -
      int(product.params.ints("rhs_contract").size() + product.params.ints("rhs_batch").size());
  std::vector<int> axes;
  for (int axis = rank - free; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}
std::vector<int> channels_of(const Jaxpr&, const Equation& product) {
  return {product.params.ints("out_spec")[1]};
}

// Products of vectors add in another order when they have epilogues, so rows and columns are to be
// more than one.
bool is_matrix(const Jaxpr& program, const Equation& product) {
  Dim columns = 1, rows = 1;
  const Shape& shape = program->avals[product.outputs[0].id].shape;
  const std::vector<int> features = columns_of(program, product);
  const int num_batch = product.params.get<Shape>("lhs_batch").rank();
  for (int axis = num_batch; axis < shape.rank(); ++axis) {
    const bool is_feature = std::find(features.begin(), features.end(), axis) != features.end();
    (is_feature ? columns : rows) = (is_feature ? columns : rows) * shape[axis];
  }
  return !(rows == Dim(1)) && !(columns == Dim(1));
}

const ProductKind products[] = {{&dot_general_p, columns_of, is_matrix},
                                {&conv_p, channels_of, has_post_operations}};

// The entry of an equation in one of these tables, or none.
template <class Entry, std::size_t n>
const Entry* entry_of(const Equation& equation, const Entry (&table)[n]) {
  for (const Entry& entry : table)
    if (*entry.primitive == *equation.primitive) return &entry;
  return nullptr;
}

// The operand that is not the product: 1, or 0 where the operation commutes.
int operand_of(const Equation& equation, const PostOperation& operation, Var product) {
  const bool is_first = equation.inputs[0].is_var() && equation.inputs[0].var() == product;
  return is_first || !operation.commutes ? 1 : 0;
}

std::vector<int> feature_axes(const Jaxpr& program, const Equation& product) {
  return entry_of(product, products)->feature_axes(program, product);
}

const Equation* definition_of(const Jaxpr& program, Var var) {
  if (var.id < program->num_binders) return nullptr;
  const auto& equations = program->equations;
  const auto defines = [&](const Equation& equation) {  // an equation without outputs is an effect
    return std::find(equation.outputs.begin(), equation.outputs.end(), var) !=
           equation.outputs.end();
  };
  const auto found = std::find_if(equations.begin(), equations.end(), defines);
  return found == equations.end() ? nullptr : &*found;
}

// A scalar, or a vector repeated along all axes but those of the features.
bool is_small(const Jaxpr& program, const Atom& operand, const Equation& product) {
  if (program->aval(operand).rank() == 0) return true;
  const Equation* definition = definition_of(program, operand.var());
  if (!definition || !(*definition->primitive == broadcast_in_dim_p)) return false;
  const std::vector<int> axes = feature_axes(program, product);
  Shape features;
  for (int axis : axes) features.push_back(program->aval(operand).shape[axis]);
  return !axes.empty() && definition->params.ints("dims") == axes &&
         program->aval(definition->inputs[0]).shape == features;
}

}  // namespace

bool joins_product(const Jaxpr& program, std::span<const int> uses, std::span<const int> group,
                   std::span<const int> more) {
  if (more.size() != 1 || group.size() > most_epilogues) return false;
  const Equation &product = program->equations[group[0]], &equation = program->equations[more[0]];
  const PostOperation* operation = entry_of(equation, operations);
  const ProductKind* kind = entry_of(product, products);
  if (!operation || !kind || !kind->takes_epilogues(program, product)) return false;
  const Var last = program->equations[group.back()].outputs[0];
  if (uses[last.id] != 1 || program->avals[last.id].dtype != DType::float32) return false;
  const int operand = operand_of(equation, *operation, last);
  const Atom& other = equation.inputs[1 - operand];
  return other.is_var() && other.var() == last &&
         is_small(program, equation.inputs[operand], product);
}

Epilogues::Epilogues(const Jaxpr& group)
    : group_(group), feature_axes_(feature_axes(group, group->equations[0])) {
  for (std::size_t i = 1; i < group->equations.size(); ++i) {
    const Equation& equation = group->equations[i];
    const PostOperation& operation = *entry_of(equation, operations);
    Epilogue epilogue{operation.algorithm, -1, 0, &equation};
    const Atom& operand =
        equation.inputs[operand_of(equation, operation, group->equations[i - 1].outputs[0])];
    if (operand.is_var())
      epilogue.input = operand.var().id;
    else
      epilogue.number = float(operand.literal().as_double());
    list_.push_back(epilogue);
  }
}

void Epilogues::add_operands(std::span<const View> inputs, int place, int rank,
                             std::vector<TensorSpec>& specs, std::vector<void*>& memory,
                             std::vector<Buffer>& copies) const {
  copies.reserve(copies.size() + list_.size());
  for (const Epilogue& epilogue : list_) {
    TensorSpec spec{DType::float32, Dims(rank, 1), Dims(rank, 1)};
    if (epilogue.input < 0) {
      memory.push_back(const_cast<float*>(&epilogue.number));
    } else if (inputs[epilogue.input].rank() == 0) {
      memory.push_back(inputs[epilogue.input].data);
    } else {
      const View& whole = inputs[epilogue.input];
      View vector{whole.data, whole.dtype, {}, {}};
      for (int axis : feature_axes_)
        vector.shape.push_back(whole.shape[axis]), vector.strides.push_back(whole.strides[axis]);
      if (!vector.is_dense()) {
        copies.push_back(Buffer::copy_of(vector));
        vector.data = copies.back().mutable_data();
      }
      memory.push_back(vector.data);
      spec.dims[place] = num_elements(vector.shape);
      for (int axis = 0; axis < place; ++axis) spec.strides[axis] = spec.dims[place];
    }
    specs.push_back(std::move(spec));
  }
}

dnnl::post_ops Epilogues::post_operations(std::span<const dnnl::memory::desc> operands) const {
  dnnl::post_ops operations;
  for (std::size_t i = 0; i < list_.size(); ++i)
    operations.append_binary(list_[i].algorithm, operands[i]);
  return operations;
}

void Epilogues::evaluate(std::span<const View> inputs, const View& output) const {
  for (const Epilogue& epilogue : list_) {
    const Equation& equation = *epilogue.equation;
    Buffer literal;
    View views[2];
    for (int i = 0; i < 2; ++i) {
      const Atom& atom = equation.inputs[i];
      if (!atom.is_var())
        literal = Array::literal(atom.literal()).buffer(), views[i] = literal.view();
      else
        views[i] = atom.var().id < group_->num_binders ? inputs[atom.var().id] : output;
    }
    rule<Eval> (*equation.primitive)(views, std::span(&output, 1), equation.params);
  }
}

}  // namespace plait::onednn
