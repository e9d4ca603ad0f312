// See epilogue.h.
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cublaslt/epilogue.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cuda/cublaslt/relu.h"
#include "primitives/contraction/dot.h"

namespace plait::cuda {
namespace {

constexpr std::size_t most_added = 2;  // an array and a row

bool is_16_bit(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// A number, as 16-bit floats round it too.
bool is_about(const Atom& atom, double number) {
  constexpr double rounding = 0.004;
  return !atom.is_var() &&
         std::abs(atom.literal().as_double() - number) <= rounding * std::abs(number);
}

// Finds what follows, equation by equation, and appends it to an epilogue.
class Follower {
 public:
  Follower(const JaxprData& program, std::span<const int> uses, int first, Rows rows,
           const Epilogues& taken)
      : program_(program), uses_(uses), next_(first + 1), rows_(rows), taken_(taken) {
    found_.result = program.equations[std::size_t(first)].outputs[0];
  }

  Epilogue run() {
    if (!is_inexact(program_.aval(found_.result).dtype)) return found_;
    if (taken_.scales) add_scale();
    while (found_.added.size() < most_added && add_operand()) {
    }
    if (taken_.relu_keeps_nan) add_relu();
    if (taken_.has_gelu && found_.activation == Activation::none) add_gelu();
    return found_;
  }

 private:
  // The next equation that reads a var.
  int reader_of(Var var) const {
    const auto& equations = program_.equations;
    for (std::size_t i = std::size_t(next_); i < equations.size(); ++i)
      if (std::find(equations[i].inputs.begin(), equations[i].inputs.end(), Atom(var)) !=
          equations[i].inputs.end())
        return int(i);
    return -1;
  }
  const Equation& equation(int index) const { return program_.equations[std::size_t(index)]; }
  bool is_read_once(Var var) const { return uses_[std::size_t(var.id)] == 1; }
  void accept(int index) {
    found_.equations.push_back(index);
    found_.result = equation(index).outputs[0];
  }
  // The operand of an equation that is not this var.
  static const Atom& other_than(Var var, const Equation& equation) {
    return equation.inputs[equation.inputs[0] == Atom(var) ? 1 : 0];
  }

  void add_scale() {
    if (!is_read_once(found_.result)) return;
    const int index = reader_of(found_.result);
    if (index < 0 || !(*equation(index).primitive == mul_p)) return;
    const Atom& number = other_than(found_.result, equation(index));
    if (number.is_var()) return;
    found_.scale = number.literal().as_double();
    accept(index);
  }

  bool add_operand() {
    if (!is_read_once(found_.result)) return false;
    const int index = reader_of(found_.result);
    if (index < 0 || !(*equation(index).primitive == add_p)) return false;
    const Atom& operand = other_than(found_.result, equation(index));
    if (!operand.is_var() || !(program_.aval(operand).shape == program_.aval(found_.result).shape))
      return false;
    if (rows_ == Rows::known && !may_add(operand.var())) return false;
    found_.added.push_back(operand.var());
    accept(index);
    return true;
  }
  // One row, and one array of all elements.
  bool may_add(Var operand) const {
    const Equation* const made = definition_of(operand);
    const bool is_repeated = made && *made->primitive == broadcast_in_dim_p;
    if (is_repeated && !is_row(*made)) return false;
    if (found_.added.empty()) return true;
    const Equation* const first = definition_of(found_.added[0]);
    return is_repeated != (first && *first->primitive == broadcast_in_dim_p);
  }
  const Equation* definition_of(Var var) const {
    if (var.id < program_.num_binders) return nullptr;
    for (const Equation& e : program_.equations)
      if (std::find(e.outputs.begin(), e.outputs.end(), var) != e.outputs.end()) return &e;
    return nullptr;
  }
  // Whether it repeats a row, which may have axes of size 1 besides.
  bool is_row(const Equation& repeated) const {
    const std::vector<int>&axes = taken_.row_axes, dims = repeated.params.ints("dims");
    if (!repeated.inputs[0].is_var() || axes.empty()) return false;
    const Shape &whole = program_.aval(repeated.outputs[0]).shape,
                &row = program_.aval(repeated.inputs[0]).shape;
    std::size_t found = 0;
    for (std::size_t i = 0; i < dims.size(); ++i)
      if (found < axes.size() && dims[i] == axes[found] && row[int(i)] == whole[dims[i]])
        ++found;
      else if (!(row[int(i)] == Dim(1)))
        return false;
    return found == axes.size();
  }

  // max(x, 0), or 0 where x <= 0.
  void add_relu() {
    const Var x = found_.result;
    const int index = reader_of(x);
    if (index < 0) return;
    const Equation& first = equation(index);
    if (*first.primitive == max_p && is_read_once(x)) {
      if (!is_about(other_than(x, first), 0) || !taken_.relu_keeps_nan()) return;
      found_.activation = Activation::relu;
      return accept(index);
    }
    if (!(*first.primitive == cmp_p) || first.params.text("direction") != "le" ||
        !(first.inputs[0] == Atom(x)) || !is_about(first.inputs[1], 0) ||
        uses_[std::size_t(x.id)] != 2 || !is_read_once(first.outputs[0]))
      return;
    const int second = reader_of(first.outputs[0]);
    if (second < 0 || !(*equation(second).primitive == select_p)) return;
    const std::vector<Atom>& inputs = equation(second).inputs;
    if (!(inputs[0] == Atom(first.outputs[0])) || !is_about(inputs[1], 0) ||
        !(inputs[2] == Atom(x)) || !taken_.relu_keeps_nan())
      return;
    found_.activation = Activation::relu;
    accept(index);
    accept(second);
  }

  // The equation with these operands in either order, or none.
  std::optional<int> find(const Primitive& primitive, const Atom& a, std::optional<double> number,
                          const Atom& b) const {
    const auto is = [&](const Atom& x, const Atom& y) {
      return x == a && (number ? is_about(y, *number) : y == b);
    };
    for (std::size_t i = std::size_t(next_); i < program_.equations.size(); ++i) {
      const Equation& e = program_.equations[i];
      if (!(*e.primitive == primitive)) continue;
      if (e.inputs.size() == 1 ? e.inputs[0] == a
                               : is(e.inputs[0], e.inputs[1]) || is(e.inputs[1], e.inputs[0]))
        return int(i);
    }
    return std::nullopt;
  }

  // x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, as the composite gelu writes it.
  void add_gelu() {
    const Var x = found_.result;
    if (uses_[std::size_t(x.id)] != 5) return;
    std::vector<int> chain;
    Var last = x;
    const auto follow = [&](const Primitive& primitive, std::optional<double> number,
                            std::optional<Var> var) {
      const std::optional<int> index = find(primitive, last, number, var ? Atom(*var) : Atom(last));
      if (!index) return false;
      chain.push_back(*index);
      last = equation(*index).outputs[0];
      return true;
    };
    const bool is_gelu = follow(mul_p, {}, x) && follow(mul_p, {}, x) &&
                         follow(mul_p, 0.044715, {}) && follow(add_p, {}, x) &&
                         follow(mul_p, 0.7978845608, {}) && follow(tanh_p, {}, {}) &&
                         follow(add_p, 1, {}) && follow(mul_p, 0.5, {}) && follow(mul_p, {}, x);
    if (!is_gelu) return;
    for (std::size_t i = 0; i + 1 < chain.size(); ++i)
      if (!is_read_once(equation(chain[i]).outputs[0])) return;
    found_.activation = Activation::gelu;
    for (const int index : chain) accept(index);
  }

  const JaxprData& program_;
  const std::span<const int> uses_;
  const int next_;  // behind the product
  const Rows rows_;
  const Epilogues& taken_;
  Epilogue found_;
};

}  // namespace

int num_columns_of(const JaxprData& program, const Equation& product) {
  const DotAxes axes(product.params);
  return program.aval(product.inputs[1]).rank() -
         int(axes.rhs_contract.size() + axes.rhs_batch.size());
}

std::vector<int> count_uses(const JaxprData& program) {
  std::vector<int> uses(program.avals.size(), 0);
  const auto add = [&](const Atom& atom) {
    if (atom.is_var()) ++uses[std::size_t(atom.var().id)];
  };
  for (const Equation& equation : program.equations)
    for (const Atom& atom : equation.inputs) add(atom);
  for (const Atom& atom : program.outputs) add(atom);
  return uses;
}

Epilogue epilogue_of(const JaxprData& program, std::span<const int> uses, int equation, Rows rows,
                     const Epilogues& taken) {
  return Follower(program, uses, equation, rows, taken).run();
}

Epilogue epilogue_of(const JaxprData& program, std::span<const int> uses, int product, Rows rows) {
  const Equation& equation = program.equations[std::size_t(product)];
  const Aval& result = program.aval(equation.outputs[0]);
  Epilogues taken;
  taken.scales = !is_complex(result.dtype);
  if (is_16_bit(result.dtype) || result.dtype == DType::float32) {
    for (int i = num_columns_of(program, equation); i > 0; --i)
      taken.row_axes.push_back(result.rank() - i);
    taken.relu_keeps_nan = relu_keeps_nan;
  }
  // The library may take tanh less exactly than float32 has it.
  taken.has_gelu = is_16_bit(result.dtype);
  return epilogue_of(program, uses, product, rows, taken);
}

}  // namespace plait::cuda
