// Writing nests. See point_writer.h.
//
// Rows: eight accumulators of a reduction live in registers, as in row kernels. Columns: a tile of
// accumulators lives in the first-level cache, and rows are added to it four at a time, so that
// they are read as four streams and the tile once. The order of additions is that of
// NOTE: [reduction order].
// SPDX-License-Identifier: Apache-2.0
#include "point_writer.h"

#include <plait/primitives/primitives.h>

#include "reduction.h"

namespace plait::llvm {
namespace {

using Role = PointLayout::Role;
using Kind = PointNest::Kind;

constexpr std::int64_t rows_at_once = 4;
constexpr double light = 24;  // vectors of so much weight are written out for several rows

class PointWriter {
 public:
  PointWriter(const JaxprData& group, const PointNest& nest, const PointLayout& layout,
              const PointUnits& units, int lanes, const std::vector<bool>& streams)
      : group_(group),
        nest_(nest),
        layout_(layout),
        units_(units),
        streams_(streams),
        emitter_(lanes),
        points_(group, levels(), num_levels(), layout.lane, layout.strides) {
    find_definitions();
    pull_all();
    read_memory();
    values_.resize(std::size_t(points_.size()));
    place_.counters.assign(layout.counters.size(), constant(0));
    place_.count = lanes;
    points_.emit(0, place_, values_);
    emitter_.loop(emitter_.parameter(1), emitter_.parameter(2), 1, [&](Value unit) {
      const auto values = values_;
      const auto place = place_;
      write_unit(unit);
      values_ = values;
      place_ = place;
    });
    emitter_.return_void();
  }
  Object compile() const { return emitter_.compile(); }

 private:
  struct Sum {
    int result;  // var
    Reduction reduction;
    std::vector<int> nodes;  // one, or by number of a short inner axis
    DType dtype;             // of numbers
  };

  Value constant(std::int64_t value) const { return emitter_.constant(value); }
  DType dtype(int var) const { return group_.avals[var].dtype; }
  int num_levels() const { return nest_.kind == Kind::columns ? 3 : 2; }

  std::vector<int> levels() const {
    std::vector<int> levels;
    for (int i = 0; i < int(layout_.counters.size()); ++i) {
      const bool is_row = nest_.kind == Kind::columns && layout_.counters[i].role == Role::reduced;
      levels.push_back(i == layout_.lane ? num_levels() : is_row ? 2 : 1);
    }
    return levels;
  }

  void find_definitions() {
    for (const Equation& equation : group_.equations)
      for (int var : nest_.reduced)
        if (equation.outputs[0].id == var) {
          const DType type = dtype(var);
          const bool is_half = type == DType::float16 || type == DType::bfloat16;
          sums_.push_back({var,
                           Reduction(equation.params.text("kind"), type),
                           {},
                           is_half ? DType::float32 : type});
          operands_.push_back(equation.inputs[0]);
        }
  }

  void pull_all() {
    Indices place;
    for (int counter : layout_.counter_of)
      place.push_back(counter < 0 ? points_.fixed(0) : points_.counter(counter));
    for (int var : nest_.stored) stored_.push_back(points_.pull(Var{var}, place));
    const std::vector<int> inner =
        nest_.kind == Kind::rows ? layout_.with_role(Role::inner) : std::vector<int>{};
    std::int64_t numbers = 1;
    for (int counter : inner) numbers *= layout_.counters[counter].size;
    for (std::size_t s = 0; s < sums_.size(); ++s)
      for (std::int64_t k = 0; k < numbers; ++k) {
        std::int64_t rest = k;
        for (std::size_t i = inner.size(); i-- > 0;) {
          const std::int64_t size = layout_.counters[inner[i]].size;
          for (std::size_t axis = 0; axis < place.size(); ++axis)
            if (layout_.counter_of[axis] == inner[i]) place[axis] = points_.fixed(rest % size);
          rest /= size;
        }
        sums_[s].nodes.push_back(points_.pull(operands_[s], place));
      }
  }

  void read_memory() {
    std::vector<Value> inputs;
    const std::size_t total = std::size_t(group_.num_binders) + nest_.stored.size() + sums_.size();
    for (std::size_t i = 0; i < total; ++i) {
      const Value address =
          emitter_.at(emitter_.pointer(), emitter_.parameter(0), constant(std::int64_t(i)));
      const Value memory = emitter_.load(emitter_.pointer(), address, 8);
      (int(i) < group_.num_binders ? inputs : outputs_).push_back(memory);
    }
    points_.set_memory(std::move(inputs));
  }

  // --- Units -------------------------------------------------------------------------------------

  // The last of what a value counts, which has that size; the value counts the others then.
  Value take(Value& value, std::int64_t size) const {
    if (size == 1) return constant(0);
    const Value last = api().BuildURem(emitter_.builder(), value, constant(size), "");
    value = api().BuildUDiv(emitter_.builder(), value, constant(size), "");
    return last;
  }

  void set_counters(Value value, std::span<const int> counters, Points::Place& place) const {
    for (std::size_t i = counters.size(); i-- > 0;)
      place.counters[counters[i]] =
          i == 0 ? value : take(value, layout_.counters[counters[i]].size);
  }

  std::vector<int> without_lane(std::vector<int> counters) const {
    std::erase(counters, layout_.lane);
    return counters;
  }

  void write_unit(Value unit) {
    const Value tile = take(unit, units_.tiles);
    if (nest_.kind == Kind::rows) return write_row(unit);
    const Value first = emitter_.multiply(tile, constant(units_.tile));
    const Value end =
        emitter_.smaller(emitter_.add(first, constant(units_.tile)), constant(layout_.lane_size));
    if (nest_.kind == Kind::columns) return write_columns(unit, first, end);
    set_counters(unit, without_lane(layout_.with_role(Role::outer)), place_);
    points_.emit(1, place_, values_);
    over_lanes(first, end, {}, [&](int, const std::vector<Value>& none) {
      points_.emit(2, place_, values_);
      store_all(place_, values_);
      return none;
    });
  }

  // Vectors of elements [first, end) along the lanes' axis, of which end may be the last.
  template <class Body>
  std::vector<Value> over_lanes(Value first, Value end, std::vector<Value> carried,
                                const Body& body) {
    const std::int64_t lanes = emitter_.lanes(), left = layout_.lane_size % lanes;
    const auto values = values_;
    auto write = [&](Value i, std::int64_t count, const std::vector<Value>& now) {
      place_.counters[layout_.lane] = i;
      place_.count = int(count);
      std::vector<Value> next = body(int(count), now);
      values_ = values;
      return next;
    };
    Value whole = end;
    if (left != 0) whole = api().BuildAnd(emitter_.builder(), end, constant(-lanes), "");
    if (layout_.lane_size >= lanes)
      carried = emitter_.loop_carrying(
          first, whole, lanes, std::move(carried),
          [&](Value i, const std::vector<Value>& now) { return write(i, lanes, now); });
    if (left != 0)
      carried = emitter_.branch_carrying(
          emitter_.is_less(whole, end), std::move(carried),
          [&](const std::vector<Value>& now) { return write(whole, left, now); });
    return carried;
  }

  void store_all(const Points::Place& place, const std::vector<Register>& values) {
    if (stored_.empty()) return;
    Value index = constant(0);
    std::int64_t stride = 1;
    for (std::size_t i = layout_.counters.size(); i-- > 0; stride *= layout_.counters[i].size)
      if (layout_.counters[i].size > 1)
        index = emitter_.add(index, emitter_.multiply(place.counters[i], constant(stride)));
    for (std::size_t o = 0; o < stored_.size(); ++o)
      store_lanes(values[stored_[o]],
                  emitter_.at(emitter_.element(dtype(nest_.stored[o])), outputs_[o], index),
                  place.count, streams_[o]);
  }

  // --- Rows --------------------------------------------------------------------------------------

  void write_row(Value unit) {
    const Value block = take(unit, units_.blocks);
    set_counters(unit, layout_.with_role(Role::outer), place_);
    points_.emit(1, place_, values_);
    Value first = constant(0), end = constant(layout_.lane_size);
    if (units_.blocks > 1) {
      first = emitter_.multiply(block, constant(Reduction::block));
      end = emitter_.smaller(emitter_.add(first, constant(Reduction::block)), end);
    }
    std::vector<Value> start;
    for (const Sum& sum : sums_) start.insert(start.end(), sum.nodes.size(), sum.reduction.start());
    const std::vector<Value> all =
        over_lanes(first, end, start, [&](int count, const std::vector<Value>& now) {
          points_.emit(2, place_, values_);
          std::vector<Value> next;
          for (const Sum& sum : sums_)
            for (int node : sum.nodes)
              next.push_back(sum.reduction.take(now[next.size()], values_[node], count));
          store_all(place_, values_);
          return next;
        });
    std::size_t next = 0;
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      const std::int64_t numbers = std::int64_t(sums_[s].nodes.size());
      for (std::int64_t k = 0; k < numbers; ++k) {
        const Value number = sums_[s].reduction.finish(all[next++]);
        const Value row = emitter_.add(emitter_.multiply(unit, constant(numbers)), constant(k));
        const Value index = emitter_.add(emitter_.multiply(row, constant(units_.blocks)), block);
        const Register result = is_direct(nest_) ? sums_[s].reduction.result(number)
                                                 : Register{emitter_.splat(number), sums_[s].dtype};
        emitter_.store(emitter_.extract(to_memory(result), 0),
                       emitter_.at(emitter_.element(result.dtype), output_of(s), index),
                       int(size_of(result.dtype)));
      }
    }
  }

  Value output_of(std::size_t sum) const { return outputs_[nest_.stored.size() + sum]; }

  // --- Columns -----------------------------------------------------------------------------------

  void write_columns(Value unit, Value first, Value end) {
    const Value inner = take(unit, layout_.count(Role::inner) / layout_.lane_size);
    const Value block = take(unit, units_.blocks);
    set_counters(unit, layout_.with_role(Role::outer), place_);
    set_counters(inner, without_lane(layout_.with_role(Role::inner)), place_);
    points_.emit(1, place_, values_);
    if (tiles_.empty())
      for (const Sum& sum : sums_)
        tiles_.push_back(emitter_.frame_memory(
            emitter_.element(sum.dtype),
            (units_.tile + emitter_.lanes() - 1) / emitter_.lanes() * emitter_.lanes()));
    over_lanes(first, end, {}, [&](int, const std::vector<Value>& none) {
      for (std::size_t s = 0; s < sums_.size(); ++s)
        store_lanes({sums_[s].reduction.identity(emitter_.lanes()), sums_[s].dtype},
                    tile_at(s, first), emitter_.lanes());
      return none;
    });
    const std::int64_t n = nest_.stages[0].n;
    const Value from = emitter_.multiply(block, constant(ReductionStage::column_block));
    const Value to =
        emitter_.smaller(emitter_.add(from, constant(ReductionStage::column_block)), constant(n));
    const bool at_once = points_.weight(3) * double(sums_.size()) <= light && n >= rows_at_once;
    Value rest = from;
    if (at_once) {
      const Value count = api().BuildSub(emitter_.builder(), to, from, "");
      rest = emitter_.add(from,
                          api().BuildAnd(emitter_.builder(), count, constant(-rows_at_once), ""));
      emitter_.loop(from, rest, rows_at_once,
                    [&](Value row) { add_rows(row, rows_at_once, first, end); });
    }
    if (!at_once || n % rows_at_once != 0)
      emitter_.loop(rest, to, 1, [&](Value row) { add_rows(row, 1, first, end); });
    const Value row = emitter_.add(emitter_.multiply(unit, constant(units_.blocks)), block);
    const Value start = emitter_.multiply(
        emitter_.add(
            emitter_.multiply(row, constant(layout_.count(Role::inner) / layout_.lane_size)),
            inner),
        constant(layout_.lane_size));
    over_lanes(first, end, {}, [&](int count, const std::vector<Value>& none) {
      const Value index = emitter_.add(start, place_.counters[layout_.lane]);
      for (std::size_t s = 0; s < sums_.size(); ++s) {
        Register sum = load_lanes(sums_[s].dtype, tile_at(s, first), emitter_.lanes());
        if (is_direct(nest_)) {
          const DType type = dtype(sums_[s].result);
          sum = {rounded(type, sum.v), type};
        }
        store_lanes(sum, emitter_.at(emitter_.element(sum.dtype), output_of(s), index), count);
      }
      return none;
    });
  }

  Value tile_at(std::size_t sum, Value first) const {
    const Value offset =
        api().BuildSub(emitter_.builder(), place_.counters[layout_.lane], first, "");
    return emitter_.at(emitter_.element(sums_[sum].dtype), tiles_[sum], offset);
  }

  // Adds rows, one after another, to the tile.
  void add_rows(Value row, std::int64_t count, Value first, Value end) {
    const auto values = values_;
    std::vector<std::vector<Register>> by_row;
    std::vector<Points::Place> places;
    for (std::int64_t r = 0; r < count; ++r) {
      places.push_back(place_);
      by_row.push_back(values);
      set_counters(emitter_.add(row, constant(r)), layout_.with_role(Role::reduced), places.back());
      points_.emit(2, places.back(), by_row.back());
    }
    over_lanes(first, end, {}, [&](int lanes, const std::vector<Value>& none) {
      std::vector<Value> sums;
      for (std::size_t s = 0; s < sums_.size(); ++s)
        sums.push_back(load_lanes(sums_[s].dtype, tile_at(s, first), emitter_.lanes()).v);
      for (std::size_t r = 0; r < places.size(); ++r) {
        places[r].counters[layout_.lane] = place_.counters[layout_.lane];
        places[r].count = lanes;
        std::vector<Register> now = by_row[r];
        points_.emit(3, places[r], now);
        for (std::size_t s = 0; s < sums_.size(); ++s)
          sums[s] = sums_[s].reduction.combine(sums[s], now[sums_[s].nodes[0]].v);
        store_all(places[r], now);
      }
      for (std::size_t s = 0; s < sums_.size(); ++s)
        store_lanes({sums[s], sums_[s].dtype}, tile_at(s, first), emitter_.lanes());
      return none;
    });
    values_ = values;
  }

  const JaxprData& group_;
  const PointNest& nest_;
  const PointLayout& layout_;
  const PointUnits& units_;
  const std::vector<bool>& streams_;  // by stored result: past the caches
  Emitter emitter_;
  Points points_;
  std::vector<Sum> sums_;
  std::vector<Atom> operands_;  // of the sums
  std::vector<int> stored_;     // nodes
  std::vector<Value> outputs_, tiles_;
  std::vector<Register> values_;
  Points::Place place_;
};

}  // namespace

Object write_points(const JaxprData& group, const PointNest& nest, const PointLayout& layout,
                    const PointUnits& units, int lanes, const std::vector<bool>& streams) {
  return PointWriter(group, nest, layout, units, lanes, streams).compile();
}

}  // namespace plait::llvm
