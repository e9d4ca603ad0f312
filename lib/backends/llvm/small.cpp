// The equations on small arrays: movement only renames registers; what computes does so for every
// element, in the order of the reference. See small.h.
// SPDX-License-Identifier: Apache-2.0
#include "small.h"

#include <plait/primitives/kernels.h>
#include <plait/primitives/narrow.h>
#include <plait/primitives/primitives.h>

#include <algorithm>

#include "primitives/contraction/dot.h"
#include "primitives/reduction/reduce.h"
#include "random_bits.h"
#include "reduction.h"
#include "segments.h"
#include "small_gather.h"
#include "small_linalg.h"
#include "small_windows.h"

namespace plait::llvm {
namespace {

struct Lowering {
  const Equation& equation;
  std::span<const Small* const> inputs;
  std::span<const Aval> outputs;
  std::span<const int> axes;
  Value first_example;
  const Params& params() const { return equation.params; }
  const Small& in(std::size_t i) const { return *inputs[i]; }
  Small result(std::size_t i = 0) const { return Small(outputs[i], axes[i]); }
};

// Every element of the result from the element of the operand that `from` names.
template <class From>
Small moved(const Lowering& l, const From& from, std::size_t output = 0) {
  Small result = l.result(output);
  for_each_index(result.shape, result.axis,
                 [&](const Sizes64& index) { result.at(index) = l.in(0).at(from(index)); });
  return result;
}

bool same_registers(std::span<const Register> a, std::span<const Register> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Register& x, const Register& y) { return x.v == y.v; });
}

Small elementwise(const Lowering& l) {
  Small result = l.result();
  std::vector<Register> operands(l.inputs.size()), before;
  Register last;
  for_each_index(result.shape, result.axis, [&](const Sizes64& index) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      operands[i] = l.in(i).shape.empty() ? l.in(i).elements[0] : l.in(i).at(index);
    // What was broadcast is computed once.
    if (before.empty() || !same_registers(operands, before))
      last = lower(l.equation, operands, result.dtype);
    before = operands;
    result.at(index) = last;
  });
  return result;
}

Small broadcast(const Lowering& l) {
  const std::vector<int> dims = l.params().ints("dims");
  return moved(l, [&](const Sizes64& index) {
    Sizes64 from;
    for (std::size_t i = 0; i < dims.size(); ++i)
      from.push_back(l.in(0).shape[i] == 1 ? 0 : index[dims[i]]);
    return from;
  });
}

Small reshape(const Lowering& l) {
  Small result = l.result();
  result.elements = l.in(0).elements;  // row-major before and after
  return result;
}

Small transpose(const Lowering& l) {
  const std::vector<int> order = l.params().ints("permutation");
  return moved(l, [&](const Sizes64& index) {
    Sizes64 from(index.size(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) from[order[i]] = index[i];
    return from;
  });
}

Small slice(const Lowering& l) {
  const Sizes64 start = l.params().get<Shape>("start").to_sizes(),
                strides = l.params().get<Shape>("strides").to_sizes();
  return moved(l, [&](Sizes64 index) {
    for (std::size_t i = 0; i < index.size(); ++i) index[i] = start[i] + index[i] * strides[i];
    return index;
  });
}

std::vector<Small> split(const Lowering& l) {
  const int axis = int(l.params().integer("axis"));
  std::vector<Small> pieces;
  std::int64_t first = 0;
  for (std::size_t o = 0; o < l.outputs.size(); ++o) {
    pieces.push_back(moved(
        l,
        [&](Sizes64 index) {
          index[axis] += first;
          return index;
        },
        o));
    first += pieces.back().shape[axis];
  }
  return pieces;
}

Small concatenate(const Lowering& l) {
  const int axis = int(l.params().integer("axis"));
  Small result = l.result();
  std::int64_t first = 0;
  for (const Small* piece : l.inputs) {
    for_each_index(piece->shape, piece->axis, [&](const Sizes64& index) {
      Sizes64 to = index;
      to[axis] += first;
      result.at(to) = piece->at(index);
    });
    first += piece->shape[axis];
  }
  return result;
}

Small reverse(const Lowering& l) {
  const std::vector<int> axes = l.params().ints("axes");
  return moved(l, [&](Sizes64 index) {
    for (int axis : axes) index[axis] = l.in(0).shape[axis] - 1 - index[axis];
    return index;
  });
}

Small pad(const Lowering& l) {
  const Sizes64 low = l.params().get<Shape>("low").to_sizes(),
                interior = l.params().get<Shape>("interior").to_sizes();
  Small result = l.result();
  std::fill(result.elements.begin(), result.elements.end(), l.in(1).elements[0]);
  for_each_index(l.in(0).shape, l.in(0).axis, [&](const Sizes64& index) {
    Sizes64 to = index;
    bool lies_inside = true;
    for (std::size_t i = 0; i < index.size(); ++i) {
      to[i] = low[i] + index[i] * (interior[i] + 1);
      lies_inside &= to[i] >= 0 && to[i] < result.shape[i];
    }
    if (lies_inside) result.at(to) = l.in(0).at(index);
  });
  return result;
}

Register whole_number(DType dtype, std::int64_t value) {
  Literal literal{DType::int64, false, 0, 0, 0};
  literal.integer = value;
  return constant_of(cast(literal, dtype, false));
}

Small iota(const Lowering& l) {
  const int axis = int(l.params().integer("axis"));
  Small result = l.result();
  Register numbers;
  if (axis == result.axis) {
    const Equation conversion{&cast_p, {}, {{"dtype", result.dtype}, {"weak", false}}, {}, {}};
    const Register whole{Emitter::current().ramp(l.first_example), DType::int64};
    numbers = result.dtype == DType::int64 ? whole
                                           : lower(conversion, std::span(&whole, 1), result.dtype);
  }
  for_each_index(result.shape, result.axis, [&](const Sizes64& index) {
    result.at(index) = axis == result.axis ? numbers : whole_number(result.dtype, index[axis]);
  });
  return result;
}

// --- reduce --------------------------------------------------------------------------------------

// In the stages of lib/primitives/reduction/reduce.cpp, see NOTE: [reduction order], which count
// the examples too.
Small reduce(const Lowering& l) {
  const std::vector<int> axes = l.params().ints("axes");
  const Small& in = l.in(0);
  const Reduction reduction(l.params().text("kind"), in.dtype);
  Sizes64 shape = in.shape;
  if (in.axis >= 0) shape[in.axis] = 1;
  std::vector<Value> numbers;
  for_each_index(in.shape, in.axis,
                 [&](const Sizes64& index) { numbers.push_back(in.at(index).v); });
  int axis = int(shape.size());
  for (const ReductionStage& stage : reduction_stages(in.shape, axes)) {
    Sizes64 left = shape;
    for (std::int64_t n = 1; n < stage.n;) {
      if (!std::binary_search(axes.begin(), axes.end(), --axis)) continue;
      n *= shape[axis];
      left[axis] = 1;
    }
    const Sizes64 strides = dense_strides(left);
    std::vector<std::vector<Value>> terms(std::size_t(num_elements(left)));
    std::size_t next = 0;
    for_each_index(shape, -1, [&](const Sizes64& index) {
      std::int64_t place = 0;
      for (int i = 0; i < int(index.size()); ++i)
        if (left[i] > 1) place += index[i] * strides[i];
      terms[std::size_t(place)].push_back(numbers[next++]);
    });
    numbers.clear();
    for (const std::vector<Value>& t : terms)
      numbers.push_back(stage.is_by_rows() ? reduction.combine_row(t)
                                           : reduction.combine_in_order(t));
    shape = left;
  }
  Small result = l.result();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    result.elements[i] = {rounded(in.dtype, numbers[i]), in.dtype};
  return result;
}

// --- dot_general ---------------------------------------------------------------------------------

struct ProductSizes {
  std::int64_t m = 1, k = 1, n = 1;
};
ProductSizes product_sizes(const Params& params, const Sizes64& lhs, const Sizes64& rhs) {
  const DotAxes axes(params);
  ProductSizes sizes;
  for (int axis : free_axes(int(lhs.size()), axes.lhs_contract, axes.lhs_batch))
    sizes.m *= lhs[std::size_t(axis)];
  for (int axis : free_axes(int(rhs.size()), axes.rhs_contract, axes.rhs_batch))
    sizes.n *= rhs[std::size_t(axis)];
  for (int axis : axes.lhs_contract) sizes.k *= lhs[std::size_t(axis)];
  return sizes;
}
ProductSizes product_sizes(const Params& params, std::span<const Aval> inputs) {
  return product_sizes(params, inputs[0].shape.to_sizes(), inputs[1].shape.to_sizes());
}

// In so many interleaved parts.
template <class T>
Value sum_of_products(std::span<const Value> lhs, std::span<const Value> rhs, std::size_t parts) {
  std::vector<Lane<T>> sums(parts, Lane<T>(T(0)));
  for (std::size_t k = 0; k < lhs.size(); ++k) {
    const Lane<T> a = Lane<T>::of(lhs[k]), b = Lane<T>::of(rhs[k]);
    Lane<T>& sum = sums[k % parts];
    if constexpr (std::is_floating_point_v<T>)
      sum = fma(a, b, sum);
    else
      sum = sum + a * b;
  }
  for (; parts > 1; parts /= 2)
    for (std::size_t part = 0; part < parts / 2; ++part)
      sums[part] = sums[part] + sums[part + parts / 2];
  return sums[0].v;
}

Small dot(const Lowering& l) {
  const DotAxes axes(l.params());
  const Small &lhs = l.in(0), &rhs = l.in(1);
  const std::vector<int> lhs_free =
                             free_axes(int(lhs.shape.size()), axes.lhs_contract, axes.lhs_batch),
                         rhs_free =
                             free_axes(int(rhs.shape.size()), axes.rhs_contract, axes.rhs_batch);
  const ProductSizes sizes = product_sizes(l.params(), lhs.shape, rhs.shape);
  const bool by_parts = is_floating(lhs.dtype) && is_summed_by_parts(sizes.m, sizes.k, sizes.n);
  Sizes64 contracted;
  for (int axis : axes.lhs_contract) contracted.push_back(lhs.shape[axis]);
  Small result = l.result();
  for_each_index(result.shape, result.axis, [&](const Sizes64& index) {
    Sizes64 a(lhs.shape.size(), 0), b(rhs.shape.size(), 0);
    std::size_t at = 0;
    for (std::size_t i = 0; i < axes.lhs_batch.size(); ++i, ++at)
      a[axes.lhs_batch[i]] = b[axes.rhs_batch[i]] = index[at];
    for (int axis : lhs_free) a[axis] = index[at++];
    for (int axis : rhs_free) b[axis] = index[at++];
    std::vector<Value> left, right;
    for_each_index(contracted, -1, [&](const Sizes64& k) {
      for (std::size_t i = 0; i < k.size(); ++i)
        a[axes.lhs_contract[i]] = b[axes.rhs_contract[i]] = k[i];
      left.push_back(lhs.at(a).v);
      right.push_back(rhs.at(b).v);
    });
    const Value sum = visit_dtype(result.dtype, [&](auto element) -> Value {
      using T = plait::detail::Compute<decltype(element)>;
      if constexpr (is_complex_v<T> || std::is_same_v<T, bool>)
        throw InternalError("llvm: a product of a dtype that has no registers");
      else
        return sum_of_products<T>(left, right, by_parts ? Reduction::width : 1);
    });
    result.at(index) = {rounded(result.dtype, sum), result.dtype};
  });
  return result;
}

// --- random numbers ------------------------------------------------------------------------------

using Word = Lane<std::uint32_t>;

Word example_words(Value first_example) {
  const Emitter& emitter = Emitter::current();
  return Word::of(api().BuildTrunc(emitter.builder(), emitter.ramp(first_example),
                                   emitter.vector(emitter.integer(32)), ""));
}

Small random_bits(const Lowering& l) {
  const Small& keys = l.in(0);
  Small result = l.result();
  const int num_keys = int(keys.shape.size()) - 1;  // axes
  Sizes64 each(result.shape.begin() + num_keys, result.shape.end());
  const Sizes64 strides = dense_strides(each);
  for_each_index(result.shape, result.axis, [&](const Sizes64& index) {
    Sizes64 key(index.begin(), index.begin() + num_keys);
    key.push_back(0);
    const Word first = Word::of(keys.at(key).v);
    key.back() = 1;
    const Word second = Word::of(keys.at(key).v);
    std::int64_t number = 0;
    for (std::size_t i = 0; i < each.size(); ++i) number += index[num_keys + i] * strides[i];
    Word counter = Word(std::uint32_t(number));
    if (result.axis >= num_keys)
      counter = counter + Word(std::uint32_t(strides[result.axis - num_keys])) *
                              example_words(l.first_example);
    const auto [x, y] = threefry(first, second, Word(0u), counter);
    result.at(index) = {random_word(result.dtype, x, y), result.dtype};
  });
  return result;
}

Small random_fold(const Lowering& l) {
  const Small &keys = l.in(0), &data = l.in(1);
  Small result = l.result();
  for_each_index(result.shape, result.axis, [&](const Sizes64& index) {
    if (index.back() != 0) return;
    Sizes64 key = keys.shape.size() == 1 ? Sizes64{0} : index;
    const Sizes64 datum = data.shape.empty() ? Sizes64{} : Sizes64(index.begin(), index.end() - 1);
    const Word first = Word::of(keys.at(key).v);
    key.back() = 1;
    const auto [x, y] =
        threefry(first, Word::of(keys.at(key).v), Word(0u), Word::of(data.at(datum).v));
    Sizes64 to = index;
    result.at(to) = {x.v, DType::uint32};
    to.back() = 1;
    result.at(to) = {y.v, DType::uint32};
  });
  return result;
}

}  // namespace

Small::Small(const Aval& aval, int axis)
    : dtype(aval.dtype),
      shape(aval.shape.to_sizes()),
      axis(axis),
      elements(std::size_t(example_size(aval, axis))) {}

std::int64_t Small::place(const Sizes64& index) const {
  std::int64_t place = 0;
  for (int i = 0; i < int(shape.size()); ++i)
    if (i != axis) place = place * shape[i] + index[i];
  return place;
}

std::int64_t example_size(const Aval& aval, int axis) {
  std::int64_t size = 1;
  for (int i = 0; i < aval.rank(); ++i)
    if (i != axis) size *= aval.shape[i].constant();
  return size;
}

std::string small_refusal(const Equation& equation, std::span<const Aval> inputs,
                          std::span<const Aval> outputs, std::span<const int> axes) {
  const Primitive& primitive = *equation.primitive;
  for (const auto& avals : {inputs, outputs})
    for (const Aval& aval : avals) {
      if (aval.stack > 0) return "a stack";
      if (!has_registers(aval.dtype)) return std::string(name_of(aval.dtype));
    }
  if (primitive == iota_p &&
      (outputs[0].dtype == DType::bool_ || outputs[0].dtype == DType::float16 ||
       outputs[0].dtype == DType::bfloat16))
    return "iota of " + std::string(name_of(outputs[0].dtype));
  if (primitive == reduce_p) {
    for (const ReductionStage& stage :
         reduction_stages(inputs[0].shape.to_sizes(), equation.params.ints("axes"))) {
      if (stage.n == 0) return "an empty reduction";
      if (stage.num_blocks() > 1) return "a long reduction";
    }
    return "";
  }
  if (primitive == dot_general_p) {
    const ProductSizes sizes = product_sizes(equation.params, inputs);
    if (inputs[0].dtype != outputs[0].dtype || is_bool(inputs[0].dtype)) return "a mixed product";
    if (!is_floating(inputs[0].dtype)) return "";
    const bool by_parts = is_summed_by_parts(sizes.m, sizes.k, sizes.n);
    return is_summed_in_order(sizes.m, sizes.k, sizes.n) ||
                   (by_parts && sizes.k <= Reduction::block)
               ? ""
               : "a large product";
  }
  if (is_register_gather(equation, axes)) return register_gather_refusal(equation, inputs, axes);
  if (has_window(equation)) return window_refusal(equation, inputs, axes);
  if (is_factorization(equation)) return factorization_refusal(inputs, equation);
  if (primitive == narrow_p) {
    const bool is_wide = inputs[0].dtype == DType::uint64 || outputs[0].dtype == DType::uint64;
    return axes[0] >= 0 || is_wide ? "`narrow` of this kind" : "";
  }
  if (primitive == random_bits_p)
    return outputs[0].shape.num_elements().constant() >> 31 ? "many random numbers" : "";
  if (primitive == random_fold_p && axes[1] >= 0 && axes[0] >= 0 && axes[0] != axes[1])
    return "keys and data of other shapes";
  for (const Primitive* known :
       {&broadcast_in_dim_p, &reshape_p, &transpose_p, &slice_p, &split_p, &concatenate_p, &rev_p,
        &pad_p, &iota_p, &barrier_p, &random_fold_p})
    if (primitive == *known) return "";
  if (is_elementwise(equation, inputs, outputs)) return "";
  return "`" + std::string(primitive.name()) + "`";
}

double small_weight(const Equation& equation, std::span<const Aval> inputs,
                    std::span<const Aval> outputs, std::span<const int> axes,
                    std::span<const int> output_axes) {
  const Primitive& primitive = *equation.primitive;
  const double size = double(example_size(outputs[0], output_axes[0]));
  if (primitive == reduce_p) return double(example_size(inputs[0], axes[0])) + 2;
  if (primitive == dot_general_p)
    return 2 * size * double(product_sizes(equation.params, inputs).k);
  if (primitive == random_bits_p) return 110 * size;
  if (primitive == random_fold_p) return 55 * size;
  if (is_factorization(equation)) {
    const std::int64_t matrix = inputs[0].shape[inputs[0].rank() - 1].constant() *
                                inputs[0].shape[inputs[0].rank() - 2].constant();
    return double(example_size(inputs[0], axes[0]) / matrix) *
           factorization_weight(equation, inputs);
  }
  if (is_register_gather(equation, axes)) return register_gather_weight(equation, inputs, size);
  if (primitive == narrow_p) return 2 * size;
  if (has_window(equation)) return 2 * double(size + example_size(inputs[0], axes[0]));
  if (Pointwise::table().find(primitive)) return size * weight_of(equation) / 2;
  return 0;
}

std::vector<Small> lower_small(const Equation& equation, std::span<const Small* const> inputs,
                               std::span<const Aval> outputs, std::span<const int> output_axes,
                               const Surroundings& around) {
  std::vector<int> axes;
  for (const Small* input : inputs) axes.push_back(input->axis);
  if (is_register_gather(equation, axes))
    return {lower_register_gather(equation, *inputs[0], *inputs[1], outputs[0], output_axes[0],
                                  around.failed)};
  if (has_window(equation))
    return {lower_window(equation, inputs, outputs[0], output_axes[0], around.failed)};
  if (is_factorization(equation))
    return lower_factorization(equation, inputs, outputs, output_axes);
  if (*equation.primitive == narrow_p) return {lower_narrow(*inputs[0], outputs[0], around.failed)};
  const Lowering l{equation, inputs, outputs, output_axes, around.first_example};
  using Rule = Small (*)(const Lowering&);
  static const std::pair<const Primitive*, Rule> rules[] = {{&broadcast_in_dim_p, broadcast},
                                                            {&reshape_p, reshape},
                                                            {&transpose_p, transpose},
                                                            {&slice_p, slice},
                                                            {&concatenate_p, concatenate},
                                                            {&rev_p, reverse},
                                                            {&pad_p, pad},
                                                            {&iota_p, iota},
                                                            {&reduce_p, reduce},
                                                            {&dot_general_p, dot},
                                                            {&random_bits_p, random_bits},
                                                            {&random_fold_p, random_fold}};
  for (const auto& [primitive, rule] : rules)
    if (*equation.primitive == *primitive) return {rule(l)};
  if (*equation.primitive == split_p) return split(l);
  if (*equation.primitive == barrier_p) {
    std::vector<Small> same;
    for (const Small* input : inputs) same.push_back(*input);
    return same;
  }
  return {elementwise(l)};
}

}  // namespace plait::llvm
