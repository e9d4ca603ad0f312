// What elements of each primitive are made of. See points.h.
// SPDX-License-Identifier: Apache-2.0
#include <plait/base/error.h>
#include <plait/primitives/primitives.h>

#include "picks.h"
#include "points.h"
#include "primitives/indexing/index_rows.h"
#include "primitives/indexing/indexing.h"
#include "primitives/reduction/reduce.h"
#include "reduction.h"

namespace plait::llvm {
namespace {

Builder here() { return Emitter::current().builder(); }

constexpr std::int64_t longest_written_out = 8;
constexpr std::size_t most_parts = 8;  // of a concatenation

std::vector<int> longer_axes(const Shape& shape) {
  std::vector<int> axes;
  for (int axis = 0; axis < shape.rank(); ++axis)
    if (!(shape[axis] == Dim(1))) axes.push_back(axis);
  return axes;
}

// The axes of both shapes that are not 1 are the same.
bool is_squeezing(const Shape& from, const Shape& to) {
  const std::vector<int> a = longer_axes(from), b = longer_axes(to);
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(from[a[i]] == to[b[i]])) return false;
  return true;
}

bool all_zero(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& dim) { return dim == Dim(0); });
}

}  // namespace

bool is_written_out(const JaxprData& program, const Equation& reduction) {
  const ReductionStages stages = reduction_stages(
      program.aval(reduction.inputs[0]).shape.to_sizes(), reduction.params.ints("axes"));
  return stages.size() == 1 && stages[0].n <= longest_written_out;
}

bool is_pointwise(const JaxprData& program, const Equation& equation) {
  std::vector<Aval> inputs, outputs;
  for (const Atom& atom : equation.inputs) inputs.push_back(program.aval(atom));
  for (Var var : equation.outputs) outputs.push_back(program.avals[var.id]);
  auto fits = [](const Aval& aval) {
    if (!has_registers(aval.dtype) || aval.stack != 0) return false;
    for (std::int64_t size : aval.shape.to_sizes())
      if (size == 0 || size > std::numeric_limits<std::int32_t>::max()) return false;
    return true;
  };
  if (outputs.size() != 1 || !std::all_of(inputs.begin(), inputs.end(), fits) || !fits(outputs[0]))
    return false;
  const Primitive& p = *equation.primitive;
  if (is_elementwise(equation, inputs, outputs) || p == broadcast_in_dim_p || p == transpose_p ||
      p == slice_p || p == rev_p)
    return true;
  if (p == reshape_p) return is_squeezing(inputs[0].shape, outputs[0].shape);
  if (p == iota_p) return can_count(outputs[0].dtype);
  if (p == pad_p) return all_zero(equation.params.get<Shape>("interior"));
  if (p == concatenate_p) return inputs.size() <= most_parts;
  if (p == reduce_p) return equation.inputs[0].is_var() && is_written_out(program, equation);
  auto is_index = [](const Aval& aval) { return aval.dtype != DType::uint64; };
  if (p == gather_p) return is_index(inputs[1]);
  if (p == random_bits_p)
    return num_elements(outputs[0].shape.to_sizes()) <= std::numeric_limits<std::int32_t>::max();
  if (p == scatter_p) return picks_one(program, equation);
  if (p == dynamic_slice_p) return std::all_of(inputs.begin() + 1, inputs.end(), is_index);
  return false;
}

int Points::pull_equation(const Equation& equation, const Indices& place, int mask) {
  const Primitive& p = *equation.primitive;
  const Params& params = equation.params;
  Indices from;
  if (p == broadcast_in_dim_p) {
    const std::vector<int> dims = params.ints("dims");
    const Shape& shape = data_.aval(equation.inputs[0]).shape;
    for (std::size_t i = 0; i < dims.size(); ++i)
      from.push_back(shape[i] == Dim(1) ? fixed(0) : place[dims[i]]);
    return pull(equation.inputs[0], from, mask);
  }
  if (p == reshape_p) {
    const Shape &shape = data_.aval(equation.inputs[0]).shape,
                &to = data_.avals[equation.outputs[0].id].shape;
    from.assign(shape.size(), fixed(0));
    const std::vector<int> a = longer_axes(shape), b = longer_axes(to);
    for (std::size_t i = 0; i < a.size(); ++i) from[a[i]] = place[b[i]];
    return pull(equation.inputs[0], from, mask);
  }
  if (p == transpose_p) {
    const std::vector<int> permutation = params.ints("permutation");
    from = place;
    for (std::size_t i = 0; i < permutation.size(); ++i) from[permutation[i]] = place[i];
    return pull(equation.inputs[0], from, mask);
  }
  if (p == slice_p) {
    const Sizes64 start = params.get<Shape>("start").to_sizes(),
                  strides = params.get<Shape>("strides").to_sizes();
    for (std::size_t i = 0; i < place.size(); ++i)
      from.push_back(place[i].times(strides[i]).plus(start[i]));
    return pull(equation.inputs[0], from, mask);
  }
  if (p == rev_p) {
    from = place;
    const Sizes64 sizes = data_.aval(equation.inputs[0]).shape.to_sizes();
    for (int axis : params.ints("axes")) from[axis] = place[axis].times(-1).plus(sizes[axis] - 1);
    return pull(equation.inputs[0], from, mask);
  }
  if (p == iota_p) return pull_iota(equation, place);
  if (p == pad_p) return pull_pad(equation, place, mask);
  if (p == concatenate_p) return pull_concatenate(equation, place, mask);
  if (p == reduce_p) return pull_short_reduction(equation, place, mask);
  if (p == gather_p) return pull_gather(equation, place, mask);
  if (p == random_bits_p) return pull_random_bits(equation, place, mask);
  if (p == scatter_p) return pull_scatter(equation, place, mask);
  if (p == dynamic_slice_p) return pull_dynamic_slice(equation, place, mask);
  return pull_elementwise(equation, place, mask);
}

// --- Masks ---------------------------------------------------------------------------------------

int Points::within(const Index& index, std::int64_t begin, std::int64_t end) {
  const auto key = std::make_tuple(index, begin, end);
  if (const auto found = ranges_.find(key); found != ranges_.end()) return found->second;
  const int node = add(level_of(index), 4, [=, this](const Emission& emission) {
    const Emitter& emitter = Emitter::current();
    if (index.computed >= 0) {
      const auto lanes = Lane<std::int64_t>::of(lanes_of(index, emission));
      return Register{((lanes >= Lane<std::int64_t>(begin)) & (lanes < Lane<std::int64_t>(end))).v,
                      DType::bool_};
    }
    if (index.steps[lane_] == 0) {
      const Value i = scalar_of(index, emission.place);
      const Value not_less =
          api().BuildNot(here(), emitter.is_less(i, emitter.constant(begin)), "");
      const Value is_inside =
          api().BuildAnd(here(), not_less, emitter.is_less(i, emitter.constant(end)), "");
      return Register{emitter.splat(is_inside), DType::bool_};
    }
    const auto lanes = Lane<std::int32_t>::of(short_lanes_of(index, emission));
    return Register{((lanes >= Lane<std::int32_t>(std::int32_t(begin))) &
                     (lanes < Lane<std::int32_t>(std::int32_t(end))))
                        .v,
                    DType::bool_};
  });
  ranges_.emplace(key, node);
  return node;
}

int Points::both(int a, int b) {
  if (a < 0 || b < 0 || a == b) return std::max(a, b);
  const auto key = std::minmax(a, b);
  if (const auto found = conjunctions_.find(key); found != conjunctions_.end())
    return found->second;
  const int node = add(std::max(level_of(a), level_of(b)), 1, [a, b](const Emission& emission) {
    return Register{api().BuildAnd(here(), emission.values[a].v, emission.values[b].v, ""),
                    DType::bool_};
  });
  conjunctions_.emplace(key, node);
  return node;
}

int Points::choose(int mask, int yes, int no) {
  return add(
      std::max({level_of(mask), level_of(yes), level_of(no)}), 1, [=](const Emission& emission) {
        const Register &a = emission.values[yes], &b = emission.values[no];
        return Register{api().BuildSelect(here(), emission.values[mask].v, a.v, b.v, ""), a.dtype};
      });
}

// --- Movement ------------------------------------------------------------------------------------

int Points::pull_iota(const Equation& equation, const Indices& place) {
  const Index index = place[std::size_t(equation.params.integer("axis"))];
  const DType dtype = data_.avals[equation.outputs[0].id].dtype;
  return add(level_of(index), 2, [=, this](const Emission& emission) {
    return count_in(dtype, lanes_of(index, emission));
  });
}

int Points::pull_pad(const Equation& equation, const Indices& place, int mask) {
  const Sizes64 low = equation.params.get<Shape>("low").to_sizes(),
                high = equation.params.get<Shape>("high").to_sizes(),
                sizes = data_.aval(equation.inputs[0]).shape.to_sizes();
  Indices from;
  int inside = -1;
  for (std::size_t i = 0; i < place.size(); ++i) {
    from.push_back(place[i].plus(-low[i]));
    if (low[i] > 0 || high[i] > 0) inside = both(inside, within(from[i], 0, sizes[i]));
  }
  const int element = pull(equation.inputs[0], from, both(mask, inside));
  if (inside < 0) return element;
  return choose(inside, element, pull(equation.inputs[1], {}, mask));
}

int Points::pull_concatenate(const Equation& equation, const Indices& place, int mask) {
  const std::size_t axis = std::size_t(equation.params.integer("axis"));
  std::int64_t start = 0;
  std::vector<std::pair<int, int>> parts;  // the mask of a part, and its element
  for (const Atom& atom : equation.inputs) {
    const std::int64_t size = data_.aval(atom).shape.to_sizes()[axis];
    const int inside = within(place[axis], start, start + size);
    Indices from = place;
    if (data_.aval(atom).shape.rank() > 0) from[axis] = place[axis].plus(-start);
    parts.emplace_back(inside, pull(atom, from, both(mask, inside)));
    start += size;
  }
  int element = parts.back().second;
  for (std::size_t i = parts.size() - 1; i-- > 0;)
    element = choose(parts[i].first, parts[i].second, element);
  return element;
}

// In the order of NOTE: [reduction order], for the few elements that one block has.
int Points::pull_short_reduction(const Equation& equation, const Indices& place, int mask) {
  const Sizes64 sizes = data_.aval(equation.inputs[0]).shape.to_sizes();
  const std::vector<int> axes = equation.params.ints("axes");
  const ReductionStage stage = reduction_stages(sizes, axes)[0];
  Indices from;
  std::size_t kept = 0;
  for (int axis = 0; axis < int(sizes.size()); ++axis)
    from.push_back(std::binary_search(axes.begin(), axes.end(), axis) ? fixed(0) : place[kept++]);
  std::vector<int> elements;
  int level = 0;
  for (std::int64_t i = 0; i < stage.n; ++i) {
    std::int64_t rest = i;
    for (std::size_t a = axes.size(); a-- > 0; rest /= sizes[axes[a]])
      from[axes[a]] = fixed(rest % sizes[axes[a]]);
    elements.push_back(pull(equation.inputs[0], from, mask));
    level = std::max(level, level_of(elements.back()));
  }
  const DType dtype = data_.avals[equation.outputs[0].id].dtype;
  const Reduction reduction(equation.params.text("kind"), dtype);
  const bool is_by_rows = stage.is_by_rows();
  return add(level, double(2 * stage.n), [=](const Emission& emission) {
    const Value nothing = reduction.identity(Emitter::current().lanes());
    std::vector<Value> sums(is_by_rows ? Reduction::width : 1, nothing);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Value& sum = sums[is_by_rows ? i : 0];
      sum = reduction.combine(sum, emission.values[elements[i]].v);
    }
    for (std::size_t half = sums.size() / 2; half > 0; half /= 2)
      for (std::size_t i = 0; i < half; ++i) sums[i] = reduction.combine(sums[i], sums[i + half]);
    return Register{rounded(dtype, sums[0]), dtype};
  });
}

// --- Places that are computed --------------------------------------------------------------------

int Points::to_index(int node, DType dtype) {
  return add(level_of(node), 1, [=](const Emission& emission) {
    const Value v = emission.values[node].v;
    const Type type = Emitter::current().vector(Emitter::current().integer(64));
    if (size_of(dtype) == 8) return Register{v, DType::int64};
    auto* const extend = is_signed_integer(dtype) ? api().BuildSExt : api().BuildZExt;
    return Register{extend(here(), v, type, ""), DType::int64};
  });
}

int Points::clamped(int node, std::int64_t last) {
  return add(level_of(node), 2, [=](const Emission& emission) {
    using Places = Lane<std::int64_t>;
    const Places place = Places::of(emission.values[node].v);
    return Register{lesser(greater(place, Places(0)), Places(last)).v, DType::int64};
  });
}

Index Points::moved(const Index& index, int node) {
  Index result = index;
  result.computed = node;
  result.scale = 1;
  if (index.computed < 0) return result;
  result.computed =
      add(std::max(level_of(node), level_of(index.computed)), 2, [=](const Emission& emission) {
        const Emitter& emitter = Emitter::current();
        const Value first = emitter.multiply(emission.values[index.computed].v,
                                             emitter.splat(emitter.constant(index.scale)));
        return Register{emitter.add(first, emission.values[node].v), DType::int64};
      });
  return result;
}

Index Points::sum(const Index& a, const Index& b) {
  Index result = a.plus(b.constant);
  for (std::size_t i = 0; i < b.steps.size(); ++i) result.steps[i] += b.steps[i];
  if (b.computed < 0) return result;
  const int node = add(level_of(b.computed), 1, [b](const Emission& emission) {
    const Emitter& emitter = Emitter::current();
    return Register{
        emitter.multiply(emission.values[b.computed].v, emitter.splat(emitter.constant(b.scale))),
        DType::int64};
  });
  return moved(result, node);
}

int Points::pull_gather(const Equation& equation, const Indices& place, int mask) {
  using Mode = lax::GatherScatterMode;
  const Params& params = equation.params;
  const lax::IndexDimensions dimensions = indexing::dimensions_of(params);
  const Mode mode = indexing::mode_of(params);
  const Atom &array = equation.inputs[0], &rows = equation.inputs[1];
  const Sizes64 sizes = data_.aval(array).shape.to_sizes(),
                window = params.get<Shape>("slice_sizes").to_sizes();
  const std::size_t batch = std::size_t(dimensions.batch_dims),
                    leading = std::size_t(data_.aval(rows).rank() - 1);
  Indices from(place.begin(), place.begin() + std::ptrdiff_t(batch));
  std::size_t next = leading;
  for (std::size_t axis = batch; axis < sizes.size(); ++axis)
    from.push_back(indexing::contains(dimensions.collapse, int(axis)) ? fixed(0) : place[next++]);
  int inside = -1;
  for (std::size_t m = 0; m < dimensions.axes.size(); ++m) {
    Indices row(place.begin(), place.begin() + std::ptrdiff_t(leading));
    row.push_back(fixed(std::int64_t(m)));
    const std::size_t axis = std::size_t(dimensions.axes[m]);
    const std::int64_t last = sizes[axis] - window[axis - batch];
    int start = to_index(pull(rows, row, mask), data_.aval(rows).dtype);
    if (mode == Mode::fill)
      inside = both(inside, within(moved(fixed(0), start), 0, last + 1));
    else if (mode != Mode::check)
      start = clamped(start, last);
    from[axis] = moved(from[axis], start);
  }
  const int element = pull(array, from, both(mask, inside));
  if (inside < 0) return element;
  const Literal fill = fill_literal(data_.aval(array).dtype, params);
  return choose(inside, element, pull(Atom(fill), {}, -1));
}

int Points::pull_scatter(const Equation& equation, const Indices& place, int mask) {
  const Atom &rows = equation.inputs[1], &update = equation.inputs[2];
  Indices batch(place.begin(), place.end() - 1);
  auto one_of = [&](const Atom& atom) {
    Indices from = batch;
    from.resize(std::size_t(data_.aval(atom).rank()), fixed(0));
    return pull(atom, from, mask);
  };
  const int row = one_of(rows), added = one_of(update),
            operand = pull(equation.inputs[0], place, mask);
  const Index index = place.back();
  const int level = std::max({level_of(row), level_of(added), level_of(operand), level_of(index)});
  return add(level, 6, [=, this, &equation](const Emission& emission) {
    using Places = Lane<std::int64_t>;
    const Value at = picked_place(data_, equation, emission.values[row]);
    const Mask is_here = Places::of(lanes_of(index, emission)) == Places::of(at);
    return scatter_one(equation, emission.values[operand], is_here, emission.values[added]);
  });
}

int Points::pull_dynamic_slice(const Equation& equation, const Indices& place, int mask) {
  const Sizes64 sizes = data_.aval(equation.inputs[0]).shape.to_sizes(),
                window = equation.params.get<Shape>("slice_sizes").to_sizes();
  Indices from = place;
  for (std::size_t i = 0; i < place.size(); ++i) {
    if (sizes[i] == window[i]) continue;
    const Atom& start = equation.inputs[i + 1];
    const int node = to_index(pull(start, {}, -1), data_.aval(start).dtype);
    from[i] = moved(place[i], clamped(node, sizes[i] - window[i]));
  }
  return pull(equation.inputs[0], from, mask);
}

}  // namespace plait::llvm
