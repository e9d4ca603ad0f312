// The padded program of a masked function, with less to do about padding. Comparisons of all places
// with a size become operands: masks that are operands are read by the loops that need them. What
// is filled with zeros anywhere is so wherever it is read, and made so at once, as it is computed;
// what is so already is not filled.
//
// It runs on the program of one example, where the padded axes are known.
// SPDX-License-Identifier: Apache-2.0
#include "stage_program.h"

#include <plait/primitives/primitives.h>

#include <algorithm>
#include <optional>

#include "ir/environment.h"

namespace plait {
namespace {

class GivenPlaces {
 public:
  GivenPlaces(const Jaxpr& program, const MaskedParams& masked,
              const std::vector<bool>& zero_padded)
      : program_(program),
        masked_(masked),
        zero_padded_(zero_padded),
        made_by_(program->avals.size()),
        masks_(program->avals.size()),
        fills_(program->avals.size()),
        is_clear_(is_ragged_by_length()) {}

  Jaxpr run() {
    for (const Equation& equation : program_->equations) {
      for (Var var : equation.outputs) made_by_[std::size_t(var.id)] = &equation;
      masks_[std::size_t(equation.outputs[0].id)] = mask_made(equation);
      if (const auto mask = mask_of_fill(equation)) {
        std::vector<PlacesMask>& fills = fills_[std::size_t(equation.inputs[1].var().id)];
        if (std::find(fills.begin(), fills.end(), *mask) == fills.end()) fills.push_back(*mask);
      }
    }
    return rebuild();
  }

 private:
  // Which places along an axis are real.
  struct PlacesMask {
    std::size_t name;
    int axis;
    bool operator==(const PlacesMask&) const = default;
  };

  // Whether an axis of the body's values is as long as a bound only where it is that size.
  bool is_ragged_by_length() const {
    for (int i = 0; i < masked_.bounds.rank(); ++i)
      for (int j = 0; j < i; ++j)
        if (masked_.bounds[i] == masked_.bounds[j]) return false;
    return has_clear_lengths(masked_.body);
  }
  bool has_clear_lengths(const Jaxpr& body) const {
    for (const Aval& aval : body->avals)
      for (Dim dim : aval.shape)
        if (dim.is_constant() ? std::find(masked_.bounds.begin(), masked_.bounds.end(), dim) !=
                                    masked_.bounds.end()
                              : !dim.is_size())
          return false;
    bool clear = true;
    for (const Equation& equation : body->equations)
      for_each_body(equation.params,
                    [&](const Jaxpr& inner) { clear &= has_clear_lengths(inner); });
    return clear;
  }

  std::optional<PlacesMask> mask_made(const Equation& equation) const {
    const auto is_var = [&](std::size_t i) { return equation.inputs[i].is_var(); };
    if (*equation.primitive == broadcast_in_dim_p && is_var(0)) {
      const auto& spread = masks_[std::size_t(equation.inputs[0].var().id)];
      const std::vector<int> dims = equation.params.ints("dims");
      if (!spread || dims.size() != 1) return std::nullopt;
      return PlacesMask{spread->name, dims[0]};
    }
    if (!(*equation.primitive == cmp_p) || equation.params.text("direction") != "lt" ||
        !is_var(0) || !is_var(1))
      return std::nullopt;
    const Equation* places = made_by_[std::size_t(equation.inputs[0].var().id)];
    const std::size_t size = std::size_t(equation.inputs[1].var().id);
    if (!places || !(*places->primitive == iota_p) || size >= masked_.num_ragged() ||
        !(program_->aval(places->outputs[0]).shape == Shape{masked_.bounds[int(size)]}))
      return std::nullopt;
    return PlacesMask{size, 0};
  }

  // Of an equation that puts zeros beside the real places of a value.
  std::optional<PlacesMask> mask_of_fill(const Equation& equation) const {
    if (!(*equation.primitive == select_p) || !equation.inputs[0].is_var() ||
        !equation.inputs[1].is_var() || equation.inputs[2].is_var())
      return std::nullopt;
    const Literal& fill = equation.inputs[2].literal();
    if (!(fill == Literal{fill.dtype, fill.weak, 0, 0, 0})) return std::nullopt;
    return masks_[std::size_t(equation.inputs[0].var().id)];
  }

  bool is_zero_beside(int var, const PlacesMask& mask) const {
    const int operand = var - int(masked_.num_ragged());
    if (operand < 0 || operand >= masked_.body->num_binders) return false;
    const Shape& real = masked_.body->avals[std::size_t(operand)].shape;
    return zero_padded_[std::size_t(operand)] && real[mask.axis] == masked_.ragged[mask.name];
  }

  Jaxpr rebuild() {
    const std::size_t num_ragged = masked_.num_ragged();
    Builder builder;
    std::vector<Atom> binders, real;
    auto add_binder = [&](std::size_t i) {
      binders.push_back(builder.add_binder(program_->avals[i]));
    };
    for (std::size_t i = 0; i < num_ragged; ++i) add_binder(i);
    for (Dim bound : masked_.bounds) real.push_back(builder.add_binder({{bound}, DType::bool_}));
    for (std::size_t i = num_ragged; i < std::size_t(program_->num_binders); ++i) add_binder(i);
    Environment environment(program_, std::move(binders));

    // What stands for a var: filled at once with what fills it anywhere.
    auto keep = [&](Var var, Atom value, const Source& source) {
      const Aval& aval = program_->aval(var);
      const Literal zero{aval.dtype, aval.weak, 0, 0, 0};
      for (const PlacesMask& mask : fills_[std::size_t(var.id)]) {
        if (!is_clear_) break;
        Atom places = real[mask.name];
        if (aval.rank() > 1)
          places = builder.add(broadcast_in_dim_p, {places},
                               {{"shape", aval.shape}, {"dims", Shape{mask.axis}}}, source)[0];
        value = builder.add(select_p, {places, value, zero}, {}, source)[0];
      }
      environment.set(var, value);
    };
    for (const Equation& equation : program_->equations) {
      const Var made = equation.outputs[0];
      if (*equation.primitive == cmp_p && masks_[std::size_t(made.id)]) {
        environment.set(made, real[masks_[std::size_t(made.id)]->name]);
        continue;
      }
      if (const auto mask = mask_of_fill(equation)) {
        const Var value = equation.inputs[1].var();
        const bool is_made = is_clear_ && made_by_[std::size_t(value.id)];
        if (is_made || is_zero_beside(value.id, *mask)) {
          keep(made, environment.read(value), equation.source);
          continue;
        }
      }
      const std::vector<Var> results =
          builder.add(*equation.primitive, environment.read(equation.inputs), equation.params,
                      equation.source, output_avals(*program_, equation));
      for (std::size_t i = 0; i < results.size(); ++i)
        keep(equation.outputs[i], results[i], equation.source);
    }
    return builder.close(environment.read(program_->outputs));
  }

  const Jaxpr& program_;
  const MaskedParams& masked_;
  const std::vector<bool>& zero_padded_;
  std::vector<const Equation*> made_by_;          // by var; null: an operand
  std::vector<std::optional<PlacesMask>> masks_;  // by var
  std::vector<std::vector<PlacesMask>> fills_;    // by var: what fills it anywhere
  const bool is_clear_;
};

}  // namespace

Jaxpr stage_program(const MaskedParams& masked, const std::vector<bool>& zero_padded) {
  std::vector<Lane> lanes = masked.lanes;
  for (Lane& lane : lanes) {
    const std::vector<bool> sizes(lane.batched.begin(),
                                  lane.batched.begin() + std::ptrdiff_t(masked.num_ragged()));
    lane.batched.insert(lane.batched.begin(), sizes.begin(), sizes.end());
  }
  const Jaxpr program = program_of_example(masked, Padding::unread);
  return with_lanes(GivenPlaces(program, masked, zero_padded).run(), lanes);
}

}  // namespace plait
