// Which function of plait::lax an equation is. See code.h.
//
// A function is named where calling it makes this equation and no other: it must not convert or
// check more than the equation says. Python's functions convert numbers and weak operands, so that
// equations of weak operands are bound as they are.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "inspect/code.h"

namespace plait {
namespace {

struct Writer {
  const JaxprData& jaxpr;
  const Equation& equation;
  const CodeWords& words;

  const Params& params() const { return equation.params; }
  std::string operand(std::size_t index) const { return words.atom(equation.inputs[index]); }
  std::string number(std::size_t index) const { return words.number(equation.inputs[index]); }
  std::string dims(const char* name) const { return words.shape(params().get<Shape>(name)); }
  std::string ints(const char* name) const { return words.ints(params().get<Shape>(name)); }
  std::string dim(const char* name) const { return words.dim(params().get<Dim>(name)); }
  std::string flag(const char* name) const { return words.flag(params().flag(name)); }
  std::string dtype(const char* name) const { return words.dtype(params().get<DType>(name)); }

  std::string call(const std::string& function, const std::vector<std::string>& arguments) const {
    std::string name = function;
    if (words.is_python()) return "lax." + name + "(" + joined(arguments) + ")";
    for (std::size_t at = 0; (at = name.find('.')) != std::string::npos;) name.replace(at, 1, "::");
    return "plait::lax::" + name + "(" + joined(arguments) + ")";
  }
  std::vector<std::string> operands() const {
    std::vector<std::string> list;
    for (const Atom& atom : equation.inputs) list.push_back(words.atom(atom));
    return list;
  }
  bool has_weak() const {
    return std::any_of(equation.inputs.begin(), equation.inputs.end(),
                       [&](const Atom& atom) { return jaxpr.aval(atom).weak; });
  }
  // Operands from the first on, of which strong literals may be numbers, for another has their
  // dtype.
  std::vector<std::string> numbers(std::size_t first = 0) const {
    std::vector<std::string> list;
    const auto is_var = [](const Atom& atom) { return atom.is_var(); };
    const bool some =
        std::any_of(equation.inputs.begin() + std::ptrdiff_t(first), equation.inputs.end(), is_var);
    for (std::size_t i = 0; i < equation.inputs.size(); ++i)
      list.push_back(i >= first && some ? number(i) : operand(i));
    return list;
  }
};

using Text = std::optional<std::string>;
using Write = Text (*)(const Writer& w);

Text elementwise(const Writer& w) {
  static const auto& renamed = *new const std::map<std::string_view, std::string_view>{
      {"not", "bitwise_not"}, {"and", "bitwise_and"}, {"or", "bitwise_or"}, {"xor", "bitwise_xor"}};
  const std::string_view name = w.equation.primitive->name();
  const auto found = renamed.find(name);
  return w.call(std::string(found == renamed.end() ? name : found->second),
                w.equation.inputs.size() == 1 ? w.operands() : w.numbers());
}
Text cast_text(const Writer& w) {
  if (w.params().flag("weak")) return {};
  return w.call("convert_element_type", {w.operand(0), w.dtype("dtype")});
}
Text bitcast_text(const Writer& w) {
  return w.call("bitcast_convert_type", {w.operand(0), w.dtype("dtype")});
}
Text integer_pow_text(const Writer& w) { return w.call("integer_pow", {w.operand(0), w.dim("y")}); }
Text shift_text(const Writer& w) { return w.call("shift_" + w.params().text("kind"), w.numbers()); }
Text cmp_text(const Writer& w) { return w.call(w.params().text("direction"), w.numbers()); }
Text select_text(const Writer& w) { return w.call("select", w.numbers(1)); }

Text reshape_text(const Writer& w) { return w.call("reshape", {w.operand(0), w.dims("shape")}); }
Text transpose_text(const Writer& w) {
  return w.call("transpose", {w.operand(0), w.ints("permutation")});
}
Text broadcast_text(const Writer& w) {
  return w.call("broadcast_in_dim", {w.operand(0), w.dims("shape"), w.ints("dims")});
}
Text slice_text(const Writer& w) {
  std::vector<std::string> arguments{w.operand(0), w.dims("start"), w.dims("limit")};
  const Shape& strides = w.params().get<Shape>("strides");
  if (!std::all_of(strides.begin(), strides.end(), [](Dim stride) { return stride == Dim(1); }))
    arguments.push_back(w.words.shape(strides));
  return w.call("slice", arguments);
}
Text pad_text(const Writer& w) {
  const Shape &low = w.params().get<Shape>("low"), &high = w.params().get<Shape>("high"),
              &interior = w.params().get<Shape>("interior");
  std::vector<std::string> axes;
  for (std::size_t i = 0; i < low.size(); ++i)
    axes.push_back(
        w.words.list({w.words.dim(low[i]), w.words.dim(high[i]), w.words.dim(interior[i])}));
  return w.call("pad", {w.operand(0), w.number(1), w.words.list(axes)});
}
Text concatenate_text(const Writer& w) {
  return w.call("concatenate", {w.words.list(w.operands()), w.dim("axis")});
}
Text split_text(const Writer& w) {
  return w.call("split", {w.operand(0), w.dims("pieces"), w.dim("axis")});
}
Text rev_text(const Writer& w) { return w.call("rev", {w.operand(0), w.ints("axes")}); }
Text iota_text(const Writer& w) {
  return w.call(w.words.is_python() ? "broadcasted_iota" : "iota",
                {w.dtype("dtype"), w.dims("shape"), w.dim("axis")});
}

Text reduce_text(const Writer& w) {
  const std::vector<int> axes = w.params().ints("axes");
  if (axes.empty() || !std::is_sorted(axes.begin(), axes.end())) return {};
  return w.call("reduce_" + w.params().text("kind"), {w.operand(0), w.ints("axes")});
}
Text argreduce_text(const Writer& w) {
  return w.call("arg" + w.params().text("kind"), {w.operand(0), w.dim("axis"), w.dtype("dtype")});
}
Text cumreduce_text(const Writer& w) {
  return w.call("cum" + w.params().text("kind"), {w.operand(0), w.dim("axis"), w.flag("reverse")});
}
Text recurrence_text(const Writer& w) {
  return w.call("linear_recurrence",
                {w.operand(0), w.operand(1), w.dim("axis"), w.flag("reverse")});
}

// A dtype that is that of the operands is left out.
void add_dtype(const Writer& w, std::vector<std::string>& arguments, const char* keyword) {
  if (w.params().get<DType>("dtype") == w.jaxpr.aval(w.equation.inputs[0]).dtype) return;
  arguments.push_back((w.words.is_python() ? std::string(keyword) + "=" : "") + w.dtype("dtype"));
}
Text dot_general_text(const Writer& w) {
  std::vector<std::string> axes;
  for (const char* name : {"lhs_contract", "rhs_contract", "lhs_batch", "rhs_batch"})
    axes.push_back(w.words.is_python() ? w.ints(name) : w.dims(name).substr(12));
  const std::string numbers =
      w.words.is_python()
          ? w.words.list({w.words.list({axes[0], axes[1]}), w.words.list({axes[2], axes[3]})})
          : "plait::lax::DotDimensions" + w.words.list(axes);
  std::vector<std::string> arguments{w.operand(0), w.operand(1), numbers};
  add_dtype(w, arguments, "preferred_element_type");
  return w.call("dot_general", arguments);
}
Text conv_text(const Writer& w) {
  const Shape &low = w.params().get<Shape>("padding_low"),
              &high = w.params().get<Shape>("padding_high");
  std::vector<std::string> padding, specs;
  for (std::size_t i = 0; i < low.size(); ++i)
    padding.push_back(w.words.list({w.words.dim(low[i]), w.words.dim(high[i])}));
  for (const char* name : {"lhs_spec", "rhs_spec", "out_spec"})
    specs.push_back(w.words.is_python() ? w.ints(name) : w.dims(name).substr(12));
  const std::string pairs = w.words.is_python() ? w.words.list(padding)
                                                : "std::vector<std::pair<plait::Dim, plait::Dim>>" +
                                                      w.words.list(padding);
  std::vector<std::string> arguments{
      w.operand(0),
      w.operand(1),
      w.dims("window_strides"),
      pairs,
      w.dims("lhs_dilation"),
      w.dims("rhs_dilation"),
      (w.words.is_python() ? "" : "plait::lax::ConvDimensions") + w.words.list(specs),
      w.dim("feature_group_count"),
      w.dim("batch_group_count")};
  add_dtype(w, arguments, "preferred_element_type");
  return w.call("conv_general_dilated", arguments);
}
Text cholesky_text(const Writer& w) {
  if (w.equation.inputs.size() != 1) return {};
  return w.call("linalg.cholesky", {w.operand(0), w.words.flag(false)});
}
Text triangular_solve_text(const Writer& w) {
  if (w.equation.inputs.size() != 2) return {};
  return w.call("linalg.triangular_solve",
                {w.operand(0), w.operand(1), w.flag("left_side"), w.flag("lower"),
                 w.flag("transpose_a"), w.flag("conjugate_a"), w.flag("unit_diagonal")});
}

const std::map<std::string_view, Write>& table() {
  static const auto& all = *new const std::map<std::string_view, Write>([] {
    std::map<std::string_view, Write> table{{"cast", cast_text},
                                            {"bitcast", bitcast_text},
                                            {"integer_pow", integer_pow_text},
                                            {"shift", shift_text},
                                            {"cmp", cmp_text},
                                            {"select", select_text},
                                            {"reshape", reshape_text},
                                            {"transpose", transpose_text},
                                            {"broadcast_in_dim", broadcast_text},
                                            {"slice", slice_text},
                                            {"pad", pad_text},
                                            {"concatenate", concatenate_text},
                                            {"split", split_text},
                                            {"rev", rev_text},
                                            {"iota", iota_text},
                                            {"reduce", reduce_text},
                                            {"argreduce", argreduce_text},
                                            {"cumreduce", cumreduce_text},
                                            {"recurrence", recurrence_text},
                                            {"dot_general", dot_general_text},
                                            {"conv", conv_text},
                                            {"cholesky", cholesky_text},
                                            {"triangular_solve", triangular_solve_text}};
    for (const char* name :
         {"neg",     "abs",     "floor",   "ceil", "round", "exp",          "expm1",
          "log",     "log1p",   "sqrt",    "sin",  "cos",   "tanh",         "erf",
          "erf_inv", "lgamma",  "digamma", "not",  "real",  "imag",         "add",
          "sub",     "mul",     "div",     "rem",  "pow",   "max",          "min",
          "atan2",   "complex", "and",     "or",   "xor",   "stop_gradient"})
      table.emplace(name, elementwise);
    return table;
  }());
  return all;
}

}  // namespace

std::optional<std::string> lax_call(const JaxprData& jaxpr, const Equation& equation,
                                    const CodeWords& words) {
  const auto found = table().find(equation.primitive->name());
  const Writer writer{jaxpr, equation, words};
  if (found == table().end() || writer.has_weak()) return {};
  return found->second(writer);
}

}  // namespace plait
