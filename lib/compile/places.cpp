// From places of a mesh to values in memory. See places.h.
//
// NOTE: [same bits] Both ways the same operations run on the same blocks, and a sum over places
// adds neighbours, level by level (base/collectives.h). So a program gives the same bits in one
// process as on ranks.
// SPDX-License-Identifier: Apache-2.0
#include "compile/places.h"

#include <plait/base/communicator.h>
#include <plait/control/primitives.h>
#include <plait/primitives/communicate.h>
#include <plait/primitives/mesh.h>
#include <plait/rules/interpret.h>
#include <plait/trace/trace.h>
#include <plait/transforms/applied.h>

#include <algorithm>
#include <utility>

namespace plait::compile_passes {
namespace {

using places::axis_of;
using places::spec_of;

bool holds_varying(const Jaxpr& program) {
  struct HoldsVarying : Property<bool> {};
  return *program->memo.get(HoldsVarying{}, [&] {
    const auto varies = [](const Aval& aval) { return !aval.varying.empty(); };
    bool found = std::ranges::any_of(program->avals, varies);
    for (const Equation& equation : program->equations)
      for_each_body(equation.params,
                    [&](const Jaxpr& body) { found = found || holds_varying(body); });
    return found;
  });
}

// A value of the program as values in memory: one for each place along the axes along which it
// varies, in row-major order of their coordinates; or a single one.
struct Value {
  MeshAxes varying;
  Arrays at;
};

struct Lowering {
  using Value = compile_passes::Value;
  enum class Of { all_places, one_place } of;
  // The places whose coordinates along some axes are these: nothing varies along them. Where places
  // go ways of their own, each is compiled so.
  MeshAxes fixed = {};
  std::vector<std::pair<MeshAxis, std::int64_t>> at = {};

  // --- Places ------------------------------------------------------------------------------------

  MeshAxes free(MeshAxes axes) const { return axes.without(fixed); }
  std::size_t count(MeshAxes axes) const {
    return of == Of::one_place ? 1 : std::size_t(free(axes).num_places());
  }
  // The coordinate along an axis of the i-th place along axes.
  static std::int64_t coordinate(MeshAxes axes, std::size_t i, const MeshAxis& axis) {
    std::int64_t stride = 1, found = 0;
    const std::vector<MeshAxis> all = axes.axes();
    for (auto each = all.rbegin(); each != all.rend(); ++each) {
      if (*each == axis) found = std::int64_t(i) / stride % each->size;
      stride *= each->size;
    }
    return found;
  }
  // Its number along others, where axes that it has not are at `at`, an axis and a coordinate, or
  // 0.
  static std::size_t along(MeshAxes axes, std::size_t i, MeshAxes others,
                           const std::pair<const MeshAxis*, std::int64_t>& at = {}) {
    std::size_t number = 0;
    for (const MeshAxis& axis : others.axes())
      number = number * std::size_t(axis.size) +
               std::size_t(at.first && *at.first == axis ? at.second : coordinate(axes, i, axis));
    return number;
  }
  const Array& place(const Value& value, MeshAxes axes, std::size_t i,
                     const std::pair<const MeshAxis*, std::int64_t>& at = {}) const {
    return of == Of::one_place ? value.at[0] : value.at[along(axes, i, value.varying, at)];
  }
  Value made(MeshAxes axes, const std::function<Array(std::size_t i)>& make) const {
    const MeshAxes varying = free(axes);
    Value value{varying, {}};
    for (std::size_t i = 0; i < count(varying); ++i) value.at.push_back(make(i));
    return value;
  }
  std::int64_t my_coordinate(MeshAxes axes, std::size_t i, const MeshAxis& axis) const {
    for (const auto& [known, coordinate] : at)
      if (known == axis) return coordinate;
    return of == Of::one_place ? axis.coordinate(communicator()->rank())
                               : coordinate(axes, i, axis);
  }

  // --- Interpretation ----------------------------------------------------------------------------

  Value lift(const Array& array) { return {{}, {array}}; }

  std::vector<Value> process(const Equation& equation, std::span<const Value> inputs) {
    MeshAxes varying;
    for (const Value& input : inputs) varying |= input.varying;
    const Primitive& primitive = *equation.primitive;
    const Params& params = equation.params;
    if (primitive == pvary_p) return {spread(inputs[0], varying | axes_of(params))};
    if (primitive == shard_p) return {shard(inputs[0], spec_of(params))};
    if (primitive == unshard_p) return {unshard(inputs[0], spec_of(params))};
    if (primitive == mesh_axis_index_p) {
      const MeshAxis axis = axis_of(params);
      const MeshAxes along(axis);
      return {made(along, [&](std::size_t i) {
        return Array::literal(
            Literal{DType::int32, false, my_coordinate(free(along), i, axis), 0, 0});
      })};
    }
    if (primitive == mesh_reduce_p)
      return {reduce(inputs[0], axis_of(params), params.text("kind"))};
    if (primitive == mesh_all_gather_p)
      return {all_gather(inputs[0], axis_of(params), int(params.integer("at")))};
    if (primitive == mesh_all_to_all_p)
      return {all_to_all(inputs[0], axis_of(params), int(params.integer("split")),
                         int(params.integer("concat")))};
    if (primitive == mesh_invariant_p) return {invariant(inputs[0], axis_of(params))};
    if (primitive == mesh_ppermute_p) return {ppermute(inputs[0], axis_of(params), params)};
    bool communicates = false;
    for_each_body(params, [&](const Jaxpr& body) { communicates |= !communicated(body).empty(); });
    if (!communicates) return apart(equation, inputs, varying);
    const MeshAxes ways = of == Of::one_place ? MeshAxes() : ways_of(equation, inputs);
    return ways.empty() ? together(equation, inputs) : each_way(equation, inputs, ways);
  }

  // The axes along which places go ways of their own.
  static MeshAxes ways_of(const Equation& equation, std::span<const Value> inputs) {
    if (*equation.primitive == cond_p) return inputs[0].varying;
    if (*equation.primitive == scan_p) {  // flags say which steps a place takes
      const ScanParams scan(equation.params);
      return scan.flagged ? inputs[scan.num_carry].varying : MeshAxes();
    }
    if (*equation.primitive != while_p) return {};
    const Jaxpr cond = WhileParams(equation.params).cond;
    return cond->aval(cond->outputs[0]).varying;
  }
  std::vector<Value> each_way(const Equation& equation, std::span<const Value> inputs,
                              MeshAxes given) const {
    const MeshAxes ways = free(given);
    std::vector<std::vector<Value>> results;
    for (std::size_t w = 0; w < std::size_t(ways.num_places()); ++w) {
      Lowering way = *this;
      way.fixed |= ways;
      for (const MeshAxis& axis : ways.axes()) way.at.emplace_back(axis, coordinate(ways, w, axis));
      std::vector<Value> operands;
      for (const Value& input : inputs)
        operands.push_back(way.made(input.varying, [&](std::size_t i) {
          return input.at[joined(way.free(input.varying), i, ways, w, input.varying)];
        }));
      results.push_back(way.together(equation, operands));
    }
    std::vector<Value> values;
    for (std::size_t o = 0; o < results[0].size(); ++o) {
      const MeshAxes inner = results[0][o].varying;
      values.push_back(made(inner | ways, [&](std::size_t i) {
        const std::size_t w = along(inner | ways, i, ways);
        return results[w][o].at[along(inner | ways, i, inner)];
      }));
    }
    return values;
  }
  // The number along others of the place that is the i-th along axes and the w-th along ways.
  static std::size_t joined(MeshAxes axes, std::size_t i, MeshAxes ways, std::size_t w,
                            MeshAxes others) {
    std::size_t number = 0;
    for (const MeshAxis& axis : others.axes())
      number = number * std::size_t(axis.size) + std::size_t(ways.includes(MeshAxes(axis))
                                                                 ? coordinate(ways, w, axis)
                                                                 : coordinate(axes, i, axis));
    return number;
  }

  // Each place by itself.
  std::vector<Value> apart(const Equation& equation, std::span<const Value> inputs,
                           MeshAxes varying) {
    const Params params = map_bodies(
        equation.params, [](const Jaxpr& body) { return lowered(body, {Of::one_place}); });
    std::vector<Arrays> results;
    for (std::size_t i = 0; i < count(varying); ++i) {
      Arrays operands;
      for (const Value& input : inputs) operands.push_back(place(input, varying, i));
      results.push_back(bind(*equation.primitive, operands, params));
    }
    std::vector<Value> values;
    for (std::size_t o = 0; o < results[0].size(); ++o)
      values.push_back(made(varying, [&](std::size_t i) { return results[i][o]; }));
    return values;
  }

  // --- What places give each other ---------------------------------------------------------------

  Value spread(const Value& value, MeshAxes axes) const {
    const MeshAxes wanted = free(axes);
    return made(wanted, [&](std::size_t i) { return place(value, wanted, i); });
  }

  Value reduce(const Value& given, const MeshAxis& axis, const std::string& kind) const {
    const Value value = spread(given, given.varying | MeshAxes(axis));
    const MeshAxes kept = value.varying.without(MeshAxes(axis));
    return made(kept, [&](std::size_t i) {
      if (of == Of::one_place) return communicate::reduce(value.at[0], axis, kind);
      Arrays level;
      for (std::int64_t k = 0; k < axis.size; ++k)
        level.push_back(place(value, kept, i, {&axis, k}));
      while (level.size() > 1) {
        Arrays next;
        for (std::size_t k = 0; k < level.size(); k += 2)
          next.push_back(k + 1 == level.size() ? level[k]
                         : kind == "sum"       ? lax::add(level[k], level[k + 1])
                         : kind == "max"       ? lax::max(level[k], level[k + 1])
                                               : lax::min(level[k], level[k + 1]));
        level = std::move(next);
      }
      return level[0];
    });
  }

  static Array stacked(const Arrays& parts, int at) {
    Arrays rows;
    for (const Array& part : parts) {
      Shape shape = part.shape();
      shape.insert(at, 1);
      rows.push_back(lax::reshape(part, shape));
    }
    return lax::concatenate(rows, at);
  }

  Value all_gather(const Value& given, const MeshAxis& axis, int at) const {
    const Value value = spread(given, given.varying | MeshAxes(axis));
    return made(value.varying, [&](std::size_t i) {
      if (of == Of::one_place) {
        const Array rows = communicate::all_gather(value.at[0], axis);
        return moved_axis(rows, 0, at);
      }
      Arrays parts;
      for (std::int64_t k = 0; k < axis.size; ++k)
        parts.push_back(place(value, value.varying, i, {&axis, k}));
      return stacked(parts, at);
    });
  }

  static Array moved_axis(const Array& x, int from, int to) {
    std::vector<int> order;
    for (int i = 0; i < x.ndim(); ++i)
      if (i != from) order.push_back(i);
    order.insert(order.begin() + to, from);
    return from == to ? x : lax::transpose(x, order);
  }

  Value all_to_all(const Value& given, const MeshAxis& axis, int split, int concat) const {
    const Value value = spread(given, given.varying | MeshAxes(axis));
    return made(value.varying, [&](std::size_t i) {
      if (of == Of::one_place) {
        const Array rows = communicate::all_to_all(moved_axis(value.at[0], split, 0), axis);
        return moved_axis(rows, 0, concat);
      }
      const std::int64_t mine = coordinate(value.varying, i, axis);
      Arrays parts;
      for (std::int64_t k = 0; k < axis.size; ++k)
        parts.push_back(
            lax::index_in_dim(place(value, value.varying, i, {&axis, k}), mine, split, false));
      return stacked(parts, concat);
    });
  }

  Value ppermute(const Value& given, const MeshAxis& axis, const Params& params) const {
    const Value value = spread(given, given.varying | MeshAxes(axis));
    const Shape &from = params.get<Shape>("from"), &to = params.get<Shape>("to");
    std::vector<std::int64_t> sources(std::size_t(axis.size), -1), targets = sources;
    for (std::size_t i = 0; i < from.size(); ++i) {
      sources[std::size_t(to[int(i)].constant())] = from[int(i)].constant();
      targets[std::size_t(from[int(i)].constant())] = to[int(i)].constant();
    }
    return made(value.varying, [&](std::size_t i) {
      const auto mine = std::size_t(my_coordinate(value.varying, i, axis));
      if (of == Of::one_place)
        return communicate::send(value.at[0], axis, sources[mine], targets[mine]);
      return sources[mine] < 0 ? lax::zeros_like(place(value, value.varying, i).aval())
                               : place(value, value.varying, i, {&axis, sources[mine]});
    });
  }

  Value invariant(const Value& given, const MeshAxis& axis) const {
    const Value value = spread(given, given.varying | MeshAxes(axis));
    return made(value.varying.without(MeshAxes(axis)), [&](std::size_t i) {
      if (of == Of::one_place)
        return lax::index_in_dim(communicate::all_gather(value.at[0], axis), 0, 0, false);
      return place(value, value.varying.without(MeshAxes(axis)), i, {&axis, 0});
    });
  }

  // --- Blocks ------------------------------------------------------------------------------------

  Value shard(const Value& given, const MeshSpec& spec) const {
    const MeshAxes axes = free(given.varying | spec.axes());
    return made(axes, [&](std::size_t i) {
      Array x = place(given, axes, i);
      for (std::size_t d = 0; d < spec.parts.size(); ++d) {
        if (spec.parts[d].empty()) continue;
        std::int64_t part = 0;
        for (const MeshAxis& axis : spec.parts[d])
          part = part * axis.size + my_coordinate(axes, i, axis);
        const Dim size = x.shape(int(d)).constant() / spec.num_parts(d);
        x = lax::slice_in_dim(x, size * Dim(part), size * Dim(part + 1), 1, int(d));
      }
      return x;
    });
  }

  Value unshard(const Value& given, const MeshSpec& spec) const {
    Value value = spread(given, given.varying | spec.axes());
    // The innermost axis of the last axis first, so that blocks lie in order.
    for (std::size_t d = spec.parts.size(); d-- > 0;)
      for (auto axis = spec.parts[d].rbegin(); axis != spec.parts[d].rend(); ++axis) {
        const Value gathered = all_gather(value, *axis, int(d));
        const MeshAxes kept = value.varying.without(MeshAxes(*axis));
        value = made(kept, [&](std::size_t i) {
          const Array& rows = place(gathered, kept, i);
          Shape shape = rows.shape();
          shape[int(d)] = shape[int(d)] * shape[int(d) + 1];
          shape.erase(int(d) + 1);
          return lax::reshape(rows, shape);
        });
      }
    return value;
  }

  // --- Bodies in which places communicate --------------------------------------------------------

  // The values for binders of these types, one after the other.
  Arrays flat(std::span<const Value> values, std::span<const Aval> avals) const {
    Arrays all;
    for (std::size_t i = 0; i < values.size(); ++i)
      for (Array& array : spread(values[i], avals[i].varying).at) all.push_back(std::move(array));
    return all;
  }
  std::size_t count(std::span<const Aval> avals) const {
    std::size_t total = 0;
    for (const Aval& aval : avals) total += count(aval.varying);
    return total;
  }
  std::vector<Value> grouped(const Arrays& arrays, const std::vector<Aval>& avals) const {
    std::vector<Value> values;
    std::size_t next = 0;
    for (const Aval& aval : avals)
      values.push_back(made(aval.varying, [&](std::size_t) { return arrays[next++]; }));
    return values;
  }

  std::vector<Value> together(const Equation& equation, std::span<const Value> inputs) {
    const Primitive& primitive = *equation.primitive;
    if (primitive == scan_p) {
      ScanParams scan(equation.params);
      const std::span<const Aval> binders = scan.body->input_avals();
      const std::vector<Aval> results = scan.body->output_avals();
      const Arrays operands = flat(inputs, binders);
      const std::size_t num_carry = count(binders.first(scan.num_carry)),
                        num_xs = count(binders.subspan(scan.num_carry, scan.num_xs));
      scan.body = lowered(scan.body, *this);
      scan.num_carry = num_carry, scan.num_xs = num_xs;
      return grouped(bind(scan_p, operands, scan.to_params()), results);
    }
    if (primitive == while_p) {
      WhileParams loop(equation.params);
      const std::span<const Aval> cond = loop.cond->input_avals(), body = loop.body->input_avals();
      const std::vector<Aval> results = loop.body->output_avals();
      std::vector<Aval> binders(cond.begin(), cond.end());
      binders.insert(binders.end(), body.begin() + std::ptrdiff_t(loop.num_carry), body.end());
      const Arrays operands = flat(inputs, binders);
      const std::size_t num_carry = count(body.first(loop.num_carry));
      loop.num_cond_consts = count(cond.subspan(loop.num_carry));
      loop.cond = lowered(loop.cond, *this);
      loop.body = lowered(loop.body, *this);
      loop.num_carry = num_carry;
      return grouped(bind(while_p, operands, loop.to_params()), results);
    }
    if (primitive == cond_p) {
      CondParams cond(equation.params);
      const std::vector<Aval> results = cond.branches[0]->output_avals();
      Arrays operands{inputs[0].at[0]};
      for (Array& operand : flat(inputs.subspan(1), cond.branches[0]->input_avals()))
        operands.push_back(std::move(operand));
      for (Jaxpr& branch : cond.branches) branch = lowered(branch, *this);
      return grouped(bind(cond_p, operands, cond.to_params()), results);
    }
    if (equation.params.has("body") && bodies_of(equation).size() == 1 &&
        bodies_of(equation)[0].runs == Body::Runs::once) {
      const Jaxpr body = open_body(equation.params);
      return interpret(*this, body, {inputs.begin(), inputs.end()});
    }
    if (Decompose::table().find(primitive)) {
      std::vector<Aval> avals;
      for (const Value& input : inputs) {
        avals.push_back(input.at[0].aval());
        avals.back().varying = input.varying;
      }
      return interpret(*this, decomposition(primitive, avals, equation.params),
                       {inputs.begin(), inputs.end()});
    }
    throw ValueError("`" + std::string(primitive.name()) +
                         "` holds a program in which places of a mesh communicate",
                     "move the communication out of it, or use scan, while_loop, cond or a call");
  }

  // A body: each input and output that varies is several.
  static Jaxpr lowered(const Jaxpr& body, Lowering lowering) {
    if (!holds_varying(body) && communicated(body).empty()) return body;
    std::vector<Aval> avals;
    for (Aval aval : body->input_avals()) {
      const std::size_t times = lowering.count(aval.varying);
      aval.varying = {};
      avals.insert(avals.end(), times, aval);
    }
    return make_closed_jaxpr(
        [&](std::span<const Array> arrays) {
          const std::vector<Aval> binders(body->input_avals().begin(), body->input_avals().end());
          const std::vector<Value> results =
              interpret(lowering, body, lowering.grouped({arrays.begin(), arrays.end()}, binders));
          return lowering.flat(results, body->output_avals());
        },
        avals, body->sizes);
  }

  // --- Parameters --------------------------------------------------------------------------------

  static MeshAxes axes_of(const Params& params) {
    return places::axes_in(params.get<std::string>("axes"));
  }
};

}  // namespace

Jaxpr with_places(const Jaxpr& program) {
  if (!holds_varying(program) && communicated(program).empty()) return program;
  if (are_places_ranks()) {
    if (communicated(program).empty()) return Lowering::lowered(program, {Lowering::Of::one_place});
    const communicate::Scope scope(program);
    return scope.agreed(Lowering::lowered(program, {Lowering::Of::one_place}));
  }
  Lowering lowering{Lowering::Of::all_places};
  std::vector<Aval> avals;
  for (Aval aval : program->input_avals()) {
    const MeshAxes varying = std::exchange(aval.varying, {});
    if (aval.stack > 0)
      aval.stack += varying.empty() ? 0 : 1;
    else if (!varying.empty())
      aval.shape.insert(0, Dim(varying.num_places()));
    avals.push_back(std::move(aval));
  }
  return make_closed_jaxpr(
      [&](std::span<const Array> arrays) {
        std::vector<Value> inputs;
        for (std::size_t i = 0; i < arrays.size(); ++i) {
          const MeshAxes varying = program->avals[i].varying;
          inputs.push_back(lowering.made(varying, [&](std::size_t place) {
            if (varying.empty()) return arrays[i];
            return arrays[i].aval().stack > 0
                       ? communicate::stack_of_place(arrays[i], place)
                       : lax::index_in_dim(arrays[i], std::int64_t(place), 0, false);
          }));
        }
        Arrays results;
        const std::vector<Aval> outputs = program->output_avals();
        const std::vector<Value> values = interpret(lowering, program, std::move(inputs));
        for (std::size_t i = 0; i < values.size(); ++i) {
          const Value value = lowering.spread(values[i], outputs[i].varying);
          results.push_back(value.varying.empty()          ? value.at[0]
                            : value.at[0].aval().stack > 0 ? communicate::stacks_of_places(value.at)
                                                           : Lowering::stacked(value.at, 0));
        }
        return results;
      },
      avals, program->sizes);
}

}  // namespace plait::compile_passes
