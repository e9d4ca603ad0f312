// Tables that a program makes of numbers alone, as the twiddle factors of a transform, the weights
// of a window or the positions of a sequence, are the same at every call:
//
//   v1 = iota[n=1024]              once
//   v2 = mul v1 0.00613            once
//   v3 = cos v2                    once
//   v4 = mul v0 v3                 at every call
//
// It is worth the memory where they are made by more than movement and plain arithmetic, which
// loops over them repeat as quickly as they read. Results of the program are its callers' own, so
// these are always made anew.
// SPDX-License-Identifier: Apache-2.0
#include "input_free.h"

#include <plait/rules/cost.h>
#include <plait/rules/motion.h>
#include <plait/rules/rules.h>

#include <algorithm>

namespace plait::compile_passes {
namespace {

constexpr double most_bytes = 4 << 20;  // of all of them
constexpr double most_ns = 2e7;         // that compilation may take for them

class Finder {
 public:
  explicit Finder(const Jaxpr& program)
      : program_(program), maker_(program->avals.size(), -1), is_output_(program->avals.size()) {}

  std::vector<bool> run() {
    find_outputs();
    const std::vector<Equation>& equations = program_->equations;
    std::vector<bool> is_once(equations.size(), false);
    for (std::size_t i = 0; i < equations.size(); ++i) {
      if (!may_be_free(equations[i]) || !takes_little(equations[i])) continue;
      is_once[i] = moves_as(*equations[i].primitive, Motion::moves);
      for (const Atom& atom : equations[i].inputs)
        is_once[i] = is_once[i] || (atom.is_var() && is_once[maker_of(atom)]);
      for (const Var var : equations[i].outputs) maker_[std::size_t(var.id)] = int(i);
    }
    for (std::size_t i = equations.size(); i-- > 0;)  // what they are made of
      if (is_once[i])
        for (const Atom& atom : equations[i].inputs)
          if (atom.is_var()) is_once[maker_of(atom)] = true;
    return is_once;
  }

 private:
  std::size_t maker_of(const Atom& atom) const {
    return std::size_t(maker_[std::size_t(atom.var().id)]);
  }

  // The results of the program, and what they may be views of.
  void find_outputs() {
    for (const Atom& atom : program_->outputs)
      if (atom.is_var()) is_output_[std::size_t(atom.var().id)] = true;
    for (auto at = program_->equations.rbegin(); at != program_->equations.rend(); ++at) {
      if (!Alias::table().find(*at->primitive)) continue;
      for (std::size_t i = 0; i < std::min(at->inputs.size(), at->outputs.size()); ++i)
        if (at->inputs[i].is_var() && is_output_[std::size_t(at->outputs[i].id)])
          is_output_[std::size_t(at->inputs[i].var().id)] = true;
    }
  }

  bool may_be_free(const Equation& equation) const {
    const auto is_known = [&](const Atom& atom) {
      return !atom.is_var() || maker_[std::size_t(atom.var().id)] >= 0;
    };
    return may_move(*equation.primitive) && !holds_bodies(equation.params) &&
           std::all_of(equation.inputs.begin(), equation.inputs.end(), is_known) &&
           std::none_of(equation.outputs.begin(), equation.outputs.end(),
                        [&](Var var) { return is_output_[std::size_t(var.id)]; });
  }
  // It is counted then.
  bool takes_little(const Equation& equation) {
    if (Alias::table().find(*equation.primitive)) return true;
    double bytes = bytes_;
    for (const Var var : equation.outputs) bytes += bytes_of(program_->aval(var));
    const double ns = ns_ + estimated_time(program_, equation);
    if (bytes > most_bytes || ns > most_ns) return false;
    bytes_ = bytes, ns_ = ns;
    return true;
  }

  const Jaxpr& program_;
  std::vector<int> maker_;       // by var: the equation that makes it, without inputs; or -1
  std::vector<bool> is_output_;  // by var
  double bytes_ = 0, ns_ = 0;
};

}  // namespace

std::vector<bool> find_input_free(const Jaxpr& program) { return Finder(program).run(); }

}  // namespace plait::compile_passes
