// See several_devices.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/several_devices.h"

#include <plait/primitives/primitives.h>
#include <plait/trace/devices.h>

#include <algorithm>
#include <map>
#include <set>

#include "compile/passes/pipeline.h"
#include "run/several_executable.h"

namespace plait {
namespace {

// Where a device_put puts its operand; none: wherever it is used.
std::optional<Device> target_of(const Equation& equation) {
  const std::string& name = equation.params.text("device");
  return name.empty() ? std::nullopt : std::optional(Device::named(name));
}

int number_of(Device device) { return int(device.kind) * 256 + device.index; }

// Parts run by level; those of a level need nothing of each other.
struct Home {
  int level;
  Device device;
  bool operator<(const Home& other) const {
    return std::pair(level, number_of(device)) < std::pair(other.level, number_of(other.device));
  }
  // The level from which on another device can use what is made here.
  int level_on(Device other) const { return level + (other == device ? 0 : 1); }
};

class Cutting {
 public:
  Cutting(Jaxpr program, const CompileOptions& options)
      : program_(std::move(program)), options_(options), values_(program_->avals.size()) {
    for (int i = 0; i < program_->num_binders; ++i) {
      const Device device =
          options_.input_devices.empty() ? options_.device : options_.input_devices[std::size_t(i)];
      values_[std::size_t(i)].home = Home{0, device};
      slot_of(i, device);
    }
    for (const Equation& equation : program_->equations) place(equation);
    for (std::size_t i = 0; i < program_->outputs.size(); ++i) place_result(i);
    for (auto& [home, drawn] : drawn_) draw(drawn);
  }

  Stages stages() {
    Stages all;
    for (auto& [home, drawn] : drawn_) all.stages.push_back(stage_of(home, drawn));
    Stage& last = all.stages.emplace_back();
    for (std::size_t i = 0; i < program_->outputs.size(); ++i)
      all.results.push_back(result_slot(i, last.transfers));
    all.num_inputs = std::size_t(program_->num_binders);
    all.num_slots = slots_.size();
    all.num_carries = options_.num_carries;
    compile(all);
    return all;
  }

 private:
  struct Value {
    std::optional<Home> home;              // none: it is computed in every part that uses it
    std::optional<Var> copied = {};        // what it is a copy of
    const Equation* definition = nullptr;  // nullptr for inputs
    std::vector<Var> sources = {};         // of one without home: what it is computed of
  };
  // The program of a part, as it is drawn.
  struct Drawn {
    std::vector<const Equation*> equations = {};
    std::vector<std::size_t> results = {};  // of the whole program, which have no home
    Builder builder = {};
    std::map<int, Atom> known = {};  // by var of the whole program
    std::vector<Var> inputs = {}, outputs = {};
  };
  Value& value(Var var) { return values_[std::size_t(var.id)]; }
  Var original(Var var) { return value(var).copied.value_or(var); }
  bool is_stack(Var var) const { return program_->aval(var).stack > 0; }

  // --- Where equations run -----------------------------------------------------------------------

  void place(const Equation& equation) {
    const bool is_put = *equation.primitive == device_put_p;
    if (is_put && place_copy(equation)) return;
    if (!is_put) require_one_device_within(equation);
    std::optional<Device> device = is_put ? target_of(equation) : device_of_operands(equation);
    if (!device && (is_effectful(equation) ||
                    std::ranges::any_of(equation.outputs, [&](Var var) { return is_stack(var); })))
      device = options_.device;
    const std::vector<Var> sources = sources_of(equation.inputs);
    std::optional<Home> home;
    if (device) {
      home = Home{level_of(sources, *device), *device};
      if (is_effectful(equation)) {
        if (last_effect_) home->level = std::max(home->level, last_effect_->level_on(*device));
        last_effect_ = home;
      }
      drawn_[*home].equations.push_back(&equation);
    }
    for (const Var var : equation.outputs)
      value(var) = {home, {}, &equation, home ? std::vector<Var>() : sources};
  }
  // A value that lies on another device is copied between parts.
  bool place_copy(const Equation& put) {
    const std::optional<Device> device = target_of(put);
    if (!device || !put.inputs[0].is_var()) return false;
    const Var operand = put.inputs[0].var();
    const std::optional<Home>& home = value(operand).home;
    if (!home || home->device == *device) return false;
    value(put.outputs[0]) = {Home{home->level_on(*device), *device}, original(operand)};
    return true;
  }
  // A result without home is made on the program's device.
  void place_result(std::size_t i) {
    const Atom& atom = program_->outputs[i];
    if (atom.is_var() && value(atom.var()).home) return give(original(atom.var()));
    drawn_[{level_of(sources_of({&atom, 1}), options_.device), options_.device}].results.push_back(
        i);
  }

  // As outside of programs (common_device): numbers of the host go where the others are.
  std::optional<Device> device_of_operands(const Equation& equation) {
    std::optional<std::size_t> named;
    bool is_any_placed = false;
    for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
      const Atom& atom = equation.inputs[i];
      if (!atom.is_var() || !value(atom.var()).home) continue;
      is_any_placed = true;
      const Device device = value(atom.var()).home->device;
      if (is_stack(atom.var()) || (device.is_host() && program_->aval(atom).rank() == 0)) continue;
      if (!named)
        named = i;
      else if (value(equation.inputs[*named].var()).home->device != device)
        refuse_two_devices(equation, *named, i);
    }
    if (named) return value(equation.inputs[*named].var()).home->device;
    return is_any_placed ? std::optional(Device{}) : std::nullopt;
  }
  [[noreturn]] void refuse_two_devices(const Equation& equation, std::size_t first,
                                       std::size_t second) {
    const auto operand = [&](std::size_t i) {
      return PlacedOperand{i, program_->aval(equation.inputs[i]),
                           value(equation.inputs[i].var()).home->device};
    };
    try {
      throw_two_devices(equation.primitive->name(), operand(first), operand(second));
    } catch (Error& error) {
      error.at(equation.source);
      throw;
    }
  }
  void require_one_device_within(const Equation& equation) {
    for_each_body(equation.params, [&](const Jaxpr& body) {
      if (!puts_elsewhere(body, options_.device)) return;
      BackendError error("a program for " + options_.device.to_string() +
                             " puts a value on another device within " +
                             std::string(equation.primitive->name()),
                         "call device_put outside of loops and branches");
      error.at(equation.source);
      throw error;
    });
  }

  std::vector<Var> sources_of(std::span<const Atom> atoms) {
    std::set<int> ids;
    for (const Atom& atom : atoms) {
      if (!atom.is_var()) continue;
      if (value(atom.var()).home)
        ids.insert(atom.var().id);
      else
        for (const Var source : value(atom.var()).sources) ids.insert(source.id);
    }
    std::vector<Var> sources;
    for (const int id : ids) sources.push_back({id});
    return sources;
  }
  int level_of(std::span<const Var> sources, Device device) {
    int level = 0;
    for (const Var source : sources) level = std::max(level, value(source).home->level_on(device));
    return level;
  }

  // --- Parts -------------------------------------------------------------------------------------

  // Earlier parts learn from later ones what they are to give.
  void draw(Drawn& drawn) {
    for (const Equation* equation : drawn.equations) add(drawn, *equation);
    for (const std::size_t i : drawn.results) here(drawn, program_->outputs[i]);
  }
  void add(Drawn& drawn, const Equation& equation) {
    std::vector<Atom> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(here(drawn, atom));
    std::vector<Aval> avals;
    for (const Var var : equation.outputs) avals.push_back(program_->aval(var));
    const std::vector<Var> outputs = drawn.builder.add(
        *equation.primitive, std::move(inputs), equation.params, equation.source, std::move(avals));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      drawn.known.emplace(equation.outputs[i].id, outputs[i]);
  }
  // A value of the whole program in a part.
  Atom here(Drawn& drawn, const Atom& atom) {
    if (!atom.is_var()) return atom;
    const Var var = original(atom.var());
    if (const auto found = drawn.known.find(var.id); found != drawn.known.end())
      return found->second;
    const Value& wanted = value(var);
    if (wanted.home) {
      drawn.inputs.push_back(var);
      give(var);
      return drawn.known.emplace(var.id, drawn.builder.add_binder(program_->aval(var)))
          .first->second;
    }
    if (*wanted.definition->primitive == device_put_p)
      return here(drawn, wanted.definition->inputs[0]);
    add(drawn, *wanted.definition);
    return drawn.known.at(var.id);
  }
  // Asks the part that makes a value for it.
  void give(Var var) {
    if (!value(var).definition) return;
    std::vector<Var>& outputs = drawn_.at(*value(var).home).outputs;
    if (std::ranges::find(outputs, var) == outputs.end()) outputs.push_back(var);
  }

  Stage stage_of(const Home& home, Drawn& drawn) {
    Stage stage;
    Part part{home.device, nullptr, {}, {}};
    for (const Var var : drawn.inputs)
      part.inputs.push_back(slot_on(var, home.device, stage.transfers));
    std::vector<Atom> outputs;
    for (const Var var : drawn.outputs) {
      outputs.push_back(drawn.known.at(var.id));
      part.outputs.push_back(slot_of(var.id, home.device));
    }
    for (const std::size_t i : drawn.results) {
      outputs.push_back(here(drawn, program_->outputs[i]));
      part.outputs.push_back(slot_of_result(i));
    }
    programs_.push_back(drawn.builder.close(std::move(outputs)));
    stage.part = std::move(part);
    return stage;
  }

  // Compiles the parts, once it is known who uses a value last: such memory is free for results.
  void compile(Stages& all) {
    std::vector<std::size_t> last(all.num_slots, 0);
    for (std::size_t k = 0; k < all.stages.size(); ++k) {
      for (const Transfer& transfer : all.stages[k].transfers)
        last[std::size_t(transfer.from)] = last[std::size_t(transfer.to)] = k;
      if (!all.stages[k].part) continue;
      for (const std::vector<Slot>* slots :
           {&all.stages[k].part->inputs, &all.stages[k].part->outputs})
        for (const Slot slot : *slots) last[std::size_t(slot)] = k;
    }
    for (const Slot slot : all.results) last[std::size_t(slot)] = all.stages.size();
    for (std::size_t slot = all.num_inputs; slot < all.num_slots; ++slot)
      if (last[slot] < all.stages.size()) all.stages[last[slot]].last_used.push_back(Slot(slot));
    for (std::size_t k = 0; k < programs_.size(); ++k) {
      Part& part = *all.stages[k].part;
      CompileOptions options{.device = part.device};
      if (part.device == options_.device) options.backends = options_.backends;
      for (const Slot slot : part.inputs) {
        const auto i = std::size_t(slot);
        const bool is_ours =
            i >= all.num_inputs || (i < options_.donate.size() && options_.donate[i]);
        options.donate.push_back(is_ours && last[i] == k);
      }
      part.executable = plait::compile(programs_[k], options);
    }
  }

  // --- Slots -------------------------------------------------------------------------------------

  Slot slot_of(int id, Device device) {
    return slots_.try_emplace({id, number_of(device)}, Slot(slots_.size())).first->second;
  }
  Slot slot_of_result(std::size_t i) { return slot_of(-1 - int(i), options_.device); }
  // A value on a device, copied there unless it lies there. Stacks stay: their handles lie on the
  // host.
  Slot slot_on(Var var, Device device, std::vector<Transfer>& transfers) {
    const Device from = value(var).home->device;
    if (from == device || is_stack(var)) return slot_of(var.id, from);
    const bool is_new = !slots_.contains({var.id, number_of(device)});
    const Slot slot = slot_of(var.id, device);
    if (is_new) transfers.push_back({slot_of(var.id, from), slot, device, program_->aval(var)});
    return slot;
  }
  Slot result_slot(std::size_t i, std::vector<Transfer>& transfers) {
    const Atom& result = program_->outputs[i];
    if (!result.is_var() || !value(result.var()).home) return slot_of_result(i);
    return slot_on(original(result.var()), value(result.var()).home->device, transfers);
  }

  const Jaxpr program_;
  const CompileOptions& options_;
  std::vector<Value> values_;  // by var
  std::optional<Home> last_effect_;
  std::map<Home, Drawn> drawn_;
  std::map<std::pair<int, int>, Slot> slots_;  // by var or result, and device
  std::vector<Jaxpr> programs_;                // of parts
};

// Whether any equation, in bodies too, puts a value somewhere for which the answer is yes.
template <class Answer>
bool puts_any(const Jaxpr& program, const Answer& answer) {
  return std::ranges::any_of(program->equations, [&](const Equation& equation) {
    if (*equation.primitive == device_put_p) return answer(target_of(equation));
    bool found = false;
    for_each_body(equation.params,
                  [&](const Jaxpr& body) { found = found || puts_any(body, answer); });
    return found;
  });
}

}  // namespace

bool puts_elsewhere(const Jaxpr& program, Device device) {
  return puts_any(program,
                  [=](std::optional<Device> target) { return target.value_or(device) != device; });
}
bool puts_values(const Jaxpr& program) {
  return puts_any(program, [](std::optional<Device>) { return true; });
}

std::shared_ptr<const Executable> compile_on_several(const Jaxpr& program,
                                                     std::vector<Aval> outputs,
                                                     const CompileOptions& options) {
  // Calls, and composites that move values, become their bodies.
  const Jaxpr plain =
      compile_passes::simplify_program(program, [&](const Equation& equation, auto, auto) {
        bool moves = false;
        for_each_body(equation.params, [&](const Jaxpr& body) {
          moves = moves || puts_elsewhere(body, options.device);
        });
        return !moves;
      });
  Stages stages = Cutting(plain, options).stages();
  stages.outputs = std::move(outputs);
  return make_several_executable(std::move(stages));
}

}  // namespace plait
