// Writing rows: row by row, pass by pass over the row, with what one pass leaves for the next in a
// cache. See row_writer.h.
// SPDX-License-Identifier: Apache-2.0
#include "row_writer.h"

#include <plait/primitives/primitives.h>

#include "picks.h"
#include "primitives/indexing/index_rows.h"
#include "primitives/reduction/reduce.h"
#include "reduction.h"

namespace plait::llvm {
namespace {

constexpr std::int64_t column_block = ReductionStage::column_block;
// NOTE: [rows ahead] A pass that computes leaves the memory idle, and the first pass of the next
// row waits for it. So later passes ask for the next row, each for some of the inputs, those with
// more work for more: a third of a softmax's time. What is ahead must stay in the second-level
// cache, with the row.
constexpr std::int64_t most_ahead = 1 << 19;  // bytes
// Blocks of a row, or rows of one block, that are reduced side by side: where a vector is little
// work, each waits for its accumulators alone.
constexpr double light = 8, medium = 24;  // weights
std::int64_t most_beside(double weight) { return weight <= light ? 4 : weight <= medium ? 2 : 1; }

class RowWriter {
 public:
  RowWriter(const JaxprData& data, const Rows& rows, const Segments& segments,
            std::span<const RowInput> inputs, int lanes, const std::vector<bool>& streams)
      : data_(data),
        rows_(rows),
        segments_(segments),
        inputs_(inputs),
        streams_(streams),
        emitter_(lanes),
        registers_(data.avals.size()) {
    const std::size_t num_pointers = data.num_binders + data.outputs.size() + 1;
    for (std::size_t i = 0; i < num_pointers; ++i)
      memory_.push_back(
          emitter_.load(emitter_.pointer(),
                        emitter_.at(emitter_.pointer(), emitter_.parameter(0), constant(i)), 8));
    bases_.resize(data.num_binders);
    places_.resize(data.avals.size());
    choose_ahead();
    Value row = emitter_.parameter(1);
    const Value end = emitter_.parameter(2);
    if (const std::int64_t beside = rows_beside(); beside > 1) {
      const Value count = api().BuildSub(emitter_.builder(), end, row, "");
      const Value whole =
          emitter_.add(row, api().BuildAnd(emitter_.builder(), count, constant(-beside), ""));
      emitter_.loop(row, whole, beside, [&](Value first) { write_rows_beside(first, beside); });
      row = whole;
    }
    emitter_.loop(row, end, 1, [&](Value each) { write_row(each); });
    emitter_.return_void();
  }
  Object compile() const { return emitter_.compile(); }

 private:
  using Access = RowInput::Access;
  Value constant(std::int64_t value) const { return emitter_.constant(value); }
  DType dtype(int var) const { return data_.avals[var].dtype; }
  Type element(int var) const { return emitter_.element(dtype(var)); }

  double weight_of_segment(int segment) const {
    double weight = 0;
    for (int e : segments_.equations[segment]) weight += weight_of(data_.equations[e]);
    return weight;
  }

  // See NOTE: [rows ahead].
  void choose_ahead() {
    next_.assign(data_.num_binders, nullptr);
    ahead_.assign(data_.num_binders, -1);
    std::int64_t bytes = segments_.bytes * rows_.length;
    for (int i = 0; i < data_.num_binders; ++i)
      if (inputs_[i].access == Access::row) bytes += 2 * rows_.length * size_of(dtype(i));
    if (rows_.count < 2 || bytes > most_ahead) return;
    std::vector<double> share(segments_.size());  // of what has to be asked for, by segment
    for (int i = 0; i < data_.num_binders; ++i) {
      const RowInput& input = inputs_[i];
      if (input.access != Access::row || input.strides.empty() || input.strides.back() == 0)
        continue;
      for (int s = 0; s < segments_.size(); ++s) {
        if (segments_.pass[s] == 0 || segments_.equations[s].empty()) continue;
        const bool is_first = ahead_[i] < 0;
        if (is_first || weight_of_segment(s) / (1 + share[s]) >
                            weight_of_segment(ahead_[i]) / (1 + share[ahead_[i]]))
          ahead_[i] = s;
      }
      if (ahead_[i] >= 0) ++share[ahead_[i]];
    }
  }

  void start_ahead(Value row) {
    const Value last = emitter_.add(emitter_.parameter(2), constant(-1));
    const Value next = emitter_.smaller(emitter_.add(row, constant(1)), last);
    for (int i = 0; i < data_.num_binders; ++i)
      if (ahead_[i] >= 0)
        next_[i] = emitter_.at(element(i), memory_[i], row_offset(inputs_[i], next));
  }

  // The elements from i on of the rows that come next, as far as this segment asks for them.
  void ask_ahead(int segment, Value i) {
    constexpr std::int64_t line = 64;
    for (int input = 0; input < data_.num_binders; ++input) {
      if (ahead_[input] != segment) continue;
      const std::int64_t size = size_of(dtype(input));
      for (std::int64_t at = 0; at < emitter_.lanes() * size; at += line)
        emitter_.prefetch(
            emitter_.at(element(input), next_[input], emitter_.add(i, constant(at / size))));
    }
  }

  void write_row(Value row) {
    start_row(row);
    start_columns(row);
    const Value first = emitter_.multiply(row, constant(rows_.length));
    int segment = 0;
    for (int pass = 0; pass <= rows_.num_passes; ++pass) {
      write_before(pass);
      for (; segment < segments_.size(); ++segment) {
        if (segments_.pass[segment] != pass) break;
        write_segment(segment, first);
      }
    }
    store_numbers(row);
  }

  void start_row(Value row) {
    registers_.assign(data_.avals.size(), {});
    start_ahead(row);
    for (int i = 0; i < data_.num_binders; ++i) {
      bases_[i] = emitter_.at(element(i), memory_[i], row_offset(inputs_[i], row));
      if (inputs_[i].access != Access::row) registers_[i] = load_splat(dtype(i), bases_[i]);
    }
  }
  void write_before(int pass) {
    for (int e = 0; e < int(data_.equations.size()); ++e)
      if (rows_.pass[e] == pass) write_once(data_.equations[e]);
  }
  void store_numbers(Value row) {
    for (std::size_t o = 0; o < data_.outputs.size(); ++o) {
      const int var = data_.outputs[o].var().id;
      if (!rows_.is_row[var]) continue;
      const Value number = emitter_.extract(to_memory(registers_[var]), 0);
      emitter_.store(number, emitter_.at(element(var), memory_[data_.num_binders + o], row),
                     int(size_of(dtype(var))));
    }
  }

  // How many rows are written side by side: those of one block that are reduced in one light pass.
  // The rows of few vectors meet in the processor anyway.
  std::int64_t rows_beside() const {
    constexpr std::int64_t fewest_vectors = 16;
    if (rows_.num_passes != 1 || segments_.size() != 1 || !segments_.slots.empty()) return 1;
    if (rows_.length > Reduction::block || rows_.length < fewest_vectors * emitter_.lanes())
      return 1;
    bool reduces = false;
    for (int e : segments_.equations[0]) {
      const Equation& equation = data_.equations[e];
      if (*equation.primitive == scatter_p || rows_.is_column[equation.outputs[0].id]) return 1;
      reduces |= *equation.primitive == reduce_p;
    }
    const std::int64_t most = reduces ? most_beside(weight_of_segment(0)) : 1;
    return rows_.count < most ? 1 : most;
  }

  // Rows from one on, with a loop over the elements of them all.
  void write_rows_beside(Value row, std::int64_t beside) {
    struct State {
      Value row, first;
      std::vector<Value> bases;
      std::vector<Register> registers;
    };
    std::vector<State> states;
    const std::vector<Running> running = reductions_of(0);
    std::vector<Value> values;
    for (std::int64_t k = 0; k < beside; ++k) {
      const Value mine = emitter_.add(row, constant(k));
      start_row(mine);
      write_before(segments_.pass[0]);
      states.push_back({mine, emitter_.multiply(mine, constant(rows_.length)), bases_, registers_});
      for (const Running& r : running) values.push_back(r.reduction.start());
    }
    const std::size_t each = running.size();
    values = over_lanes(
        constant(0), constant(rows_.length), rows_.length, std::move(values),
        [&](Value i, int count, const std::vector<Value>& carried) {
          std::vector<Value> all;
          for (std::size_t k = 0; k < states.size(); ++k) {
            bases_ = states[k].bases;
            registers_ = states[k].registers;
            const auto mine = carried.begin() + std::ptrdiff_t(k * each);
            for (Value value : write_vector(0, running, {mine, mine + std::ptrdiff_t(each)}, i,
                                            states[k].first, count))
              all.push_back(value);
          }
          return all;
        });
    for (std::size_t k = 0; k < states.size(); ++k) {
      bases_ = states[k].bases;
      registers_ = states[k].registers;
      for (std::size_t r = 0; r < each; ++r)
        finish(running[r], running[r].reduction.finish(values[k * each + r]));
      for (int pass = segments_.pass[0] + 1; pass <= rows_.num_passes; ++pass) write_before(pass);
      store_numbers(states[k].row);
    }
  }

  // The numbers of the block of rows that a row is in; where it is the first, they are nothing yet.
  void start_columns(Value row) {
    columns_.assign(data_.avals.size(), nullptr);
    const Value block = api().BuildUDiv(emitter_.builder(), row, constant(column_block), "");
    const Value inside = api().BuildURem(emitter_.builder(), row, constant(column_block), "");
    for (std::size_t o = 0; o < data_.outputs.size(); ++o) {
      const int var = data_.outputs[o].var().id;
      if (!rows_.is_column[var]) continue;
      const Type type = emitter_.element(number_dtype(var));
      columns_[var] = emitter_.at(type, memory_[data_.num_binders + o],
                                  emitter_.multiply(block, constant(rows_.length)));
      const Register nothing{reduction_of(var).identity(emitter_.lanes()), number_dtype(var)};
      emitter_.branch_if(emitter_.is_less(inside, constant(1)), [&] {
        over_lanes(constant(0), constant(rows_.length), rows_.length, {},
                   [&](Value i, int count, const std::vector<Value>& none) {
                     store_lanes(nothing, emitter_.at(type, columns_[var], i), count);
                     return none;
                   });
      });
    }
  }

  DType number_dtype(int var) const { return sum_dtype(dtype(var)); }
  Reduction reduction_of(int var) const {
    for (const Equation& equation : data_.equations)
      if (equation.outputs[0].id == var) return Reduction(equation.params.text("kind"), dtype(var));
    throw InternalError("llvm: a reduction without an equation");
  }

  void add_to_column(int var, const Register& value, Value i, int count) {
    const Value address = emitter_.at(emitter_.element(number_dtype(var)), columns_[var], i);
    const Value sum = load_lanes(number_dtype(var), address, count).v;
    store_lanes({reduction_of(var).combine(sum, value.v), number_dtype(var)}, address, count);
  }

  Value row_offset(const RowInput& input, Value row) const {
    Value offset = constant(0), rest = row;
    for (int loop = int(input.sizes.size()); loop-- > 0;) {
      Value index = rest;
      if (loop > 0) {
        const Value size = constant(input.sizes[loop]);
        index = api().BuildURem(emitter_.builder(), rest, size, "");
        rest = api().BuildUDiv(emitter_.builder(), rest, size, "");
      }
      if (input.strides[loop] != 0)
        offset = emitter_.add(offset, emitter_.multiply(index, constant(input.strides[loop])));
    }
    return offset;
  }

  // What is computed once for a row: every lane has it.
  void write_once(const Equation& equation) {
    const Primitive& primitive = *equation.primitive;
    const int out = equation.outputs[0].id;
    if (!rows_.is_row[out] || primitive == reduce_p) return;
    if (primitive == reshape_p || primitive == broadcast_in_dim_p) {
      registers_[out] = operand(equation.inputs[0], registers_);
      return;
    }
    registers_[out] = primitive == gather_p ? take_one(equation) : lower_with(equation, registers_);
  }

  Register operand(const Atom& atom, const std::vector<Register>& registers) const {
    return atom.is_var() ? registers[atom.var().id] : constant_of(atom.literal());
  }

  // An element of the row, in every lane.
  Register take_one(const Equation& equation) {
    const Atom& array = equation.inputs[0];
    const Value places = picked_place(data_, equation, registers_[equation.inputs[1].var().id]);
    const Value place = emitter_.extract(places, 0);
    const Value length = constant(rows_.length);
    const Value inside = api().BuildAnd(emitter_.builder(), emitter_.is_less(constant(-1), place),
                                        emitter_.is_less(place, length), "");
    const Value safe = api().BuildSelect(emitter_.builder(), inside, place, constant(0), "");
    const Register element = recompute(array.var().id, safe);
    const Register fill = constant_of(indexing::fill_literal(element.dtype, equation.params));
    return {api().BuildSelect(emitter_.builder(), emitter_.splat(inside), element.v, fill.v, ""),
            element.dtype};
  }

  Register recompute(int var, Value place) {
    if (registers_[var].v) return registers_[var];
    if (var < data_.num_binders)
      return load_splat(dtype(var), emitter_.at(element(var), bases_[var], place));
    for (const Equation& equation : data_.equations) {
      if (equation.outputs[0].id != var) continue;
      if (*equation.primitive == broadcast_in_dim_p) return operand(equation.inputs[0], registers_);
      std::vector<Register> inputs;
      for (const Atom& atom : equation.inputs)
        inputs.push_back(atom.is_var() ? recompute(atom.var().id, place)
                                       : constant_of(atom.literal()));
      return lower(equation, inputs, dtype(var));
    }
    throw InternalError("llvm: an element that nobody computes");
  }

  // Elements of the row from `i` on.
  Register write_full(const Equation& equation, const std::vector<Register>& registers, Value i) {
    const Primitive& primitive = *equation.primitive;
    if (primitive == broadcast_in_dim_p) return operand(equation.inputs[0], registers);
    if (primitive == iota_p) return count_in(dtype(equation.outputs[0].id), emitter_.ramp(i));
    if (primitive == scatter_p)
      return scatter_one(equation, operand(equation.inputs[0], registers), is_picked(equation, i),
                         operand(equation.inputs[2], registers));
    return lower_with(equation, registers);
  }

  // Of the lanes from i on the one, if it is among them, that a scatter changes.
  Mask is_picked(const Equation& equation, Value i) const {
    const Value place = places_[equation.outputs[0].id];
    const Value lane = api().BuildSub(emitter_.builder(), place, i, "");
    const Value inside = api().BuildAnd(emitter_.builder(), emitter_.is_less(constant(-1), lane),
                                        emitter_.is_less(lane, constant(emitter_.lanes())), "");
    const Value known = api().BuildSelect(emitter_.builder(), inside, lane, constant(-1), "");
    const Type i32 = emitter_.integer(32);
    Value lanes[64];
    for (int k = 0; k < emitter_.lanes(); ++k) lanes[k] = api().ConstInt(i32, unsigned(k), false);
    using Lanes = Lane<std::int32_t>;
    return Lanes::of(api().ConstVector(lanes, unsigned(emitter_.lanes()))) ==
           Lanes::of(emitter_.splat(api().BuildTrunc(emitter_.builder(), known, i32, "")));
  }

  // Where in the row a segment's scatters change an element.
  void start_places(int segment) {
    for (int e : segments_.equations[segment]) {
      const Equation& equation = data_.equations[e];
      if (!(*equation.primitive == scatter_p)) continue;
      places_[equation.outputs[0].id] = emitter_.extract(
          picked_place(data_, equation, operand(equation.inputs[1], registers_)), 0);
    }
  }

  Register lower_with(const Equation& equation, const std::vector<Register>& registers) const {
    std::vector<Register> inputs;
    for (const Atom& atom : equation.inputs) inputs.push_back(operand(atom, registers));
    return lower(equation, inputs, dtype(equation.outputs[0].id));
  }

  struct Running {
    int equation;
    Reduction reduction;
  };

  std::vector<Running> reductions_of(int segment) const {
    std::vector<Running> running;
    for (int e : segments_.equations[segment]) {
      const Equation& equation = data_.equations[e];
      if (*equation.primitive == reduce_p && rows_.is_row[equation.outputs[0].id])
        running.push_back(
            {e, Reduction(equation.params.text("kind"), dtype(equation.outputs[0].id))});
    }
    return running;
  }

  // A segment over the whole row; its reductions block by block.
  void write_segment(int segment, Value first) {
    if (segments_.equations[segment].empty()) return;
    start_places(segment);
    const std::vector<Running> running = reductions_of(segment);
    const std::int64_t length = rows_.length;
    if (running.empty()) {
      write_range(segment, running, constant(0), constant(length), first, length);
      return;
    }
    const std::int64_t blocks = (length + Reduction::block - 1) / Reduction::block;
    if (blocks == 1) {
      const std::vector<Value> all =
          write_range(segment, running, constant(0), constant(length), first, length);
      for (std::size_t r = 0; r < running.size(); ++r)
        finish(running[r], running[r].reduction.finish(all[r]));
      return;
    }
    std::vector<Value> partials;
    for (const Running& r : running) partials.push_back(partials_of(r, blocks));
    const std::int64_t whole = length / Reduction::block;
    const std::int64_t beside = std::min(most_beside(weight_of_segment(segment)), whole);
    const std::int64_t grouped = beside > 1 ? whole / beside * beside : 0;
    if (grouped > 0) write_beside(segment, running, partials, beside, grouped, first);
    if (grouped < blocks) write_blocks(segment, running, partials, grouped, blocks, first);
    for (std::size_t r = 0; r < running.size(); ++r) {
      std::vector<Value> numbers;
      for (std::int64_t b = 0; b < blocks; ++b)
        numbers.push_back(
            emitter_.load(number_type(running[r]),
                          emitter_.at(number_type(running[r]), partials[r], constant(b)), 1));
      finish(running[r], running[r].reduction.combine_pairwise(numbers));
    }
  }

  // The numbers of blocks from one on, of which the last may be short.
  void write_blocks(int segment, const std::vector<Running>& running,
                    const std::vector<Value>& partials, std::int64_t from, std::int64_t to,
                    Value first) {
    const std::int64_t length = rows_.length;
    emitter_.loop(constant(from), constant(to), 1, [&](Value b) {
      const Value begin = emitter_.multiply(b, constant(Reduction::block));
      const Value end =
          emitter_.smaller(emitter_.add(begin, constant(Reduction::block)), constant(length));
      const std::vector<Value> all = write_range(segment, running, begin, end, first, length);
      for (std::size_t r = 0; r < running.size(); ++r) {
        const Value number = running[r].reduction.finish(all[r]);
        emitter_.store(number, emitter_.at(api().TypeOf(number), partials[r], b), 1);
      }
    });
  }

  // The same of whole blocks, so many side by side.
  void write_beside(int segment, const std::vector<Running>& running,
                    const std::vector<Value>& partials, std::int64_t beside, std::int64_t to,
                    Value first) {
    const std::size_t each = running.size();
    emitter_.loop(constant(0), constant(to), beside, [&](Value b) {
      const Value begin = emitter_.multiply(b, constant(Reduction::block));
      std::vector<Value> values;
      for (std::int64_t k = 0; k < beside; ++k)
        for (const Running& r : running) values.push_back(r.reduction.start());
      values = emitter_.loop_carrying(
          begin, emitter_.add(begin, constant(Reduction::block)), emitter_.lanes(),
          std::move(values), [&](Value i, const std::vector<Value>& carried) {
            std::vector<Value> all;
            for (std::int64_t k = 0; k < beside; ++k) {
              const auto mine = carried.begin() + std::ptrdiff_t(std::size_t(k) * each);
              for (Value value : write_vector(segment, running, {mine, mine + std::ptrdiff_t(each)},
                                              emitter_.add(i, constant(k * Reduction::block)),
                                              first, emitter_.lanes()))
                all.push_back(value);
            }
            return all;
          });
      for (std::size_t k = 0; k < values.size(); ++k) {
        const Value number = running[k % each].reduction.finish(values[k]);
        const Value block = emitter_.add(b, constant(std::int64_t(k / each)));
        emitter_.store(number, emitter_.at(api().TypeOf(number), partials[k % each], block), 1);
      }
    });
  }

  Type number_type(const Running& running) const {
    const DType type = dtype(data_.equations[running.equation].outputs[0].id);
    if (is_bool(type)) return emitter_.integer(1);
    return emitter_.element(sum_dtype(type));
  }
  Value partials_of(const Running& running, std::int64_t blocks) const {
    return emitter_.frame_memory(number_type(running), blocks);
  }
  void finish(const Running& running, Value number) {
    registers_[data_.equations[running.equation].outputs[0].id] = running.reduction.result(number);
  }

  // Elements [begin, end) of the row, of which end may be its last; the accumulators after that.
  std::vector<Value> write_range(int segment, const std::vector<Running>& running, Value begin,
                                 Value end, Value first, std::int64_t length) {
    std::vector<Value> values;
    for (const Running& r : running) values.push_back(r.reduction.start());
    return over_lanes(begin, end, length, std::move(values),
                      [&](Value i, int count, const std::vector<Value>& carried) {
                        return write_vector(segment, running, carried, i, first, count);
                      });
  }

  template <class Body>
  std::vector<Value> over_lanes(Value begin, Value end, std::int64_t length,
                                std::vector<Value> values, const Body& body) {
    const std::int64_t lanes = emitter_.lanes(), left = length % lanes;
    Value whole = end;
    if (left != 0) whole = api().BuildAnd(emitter_.builder(), end, constant(-lanes), "");
    if (length >= lanes)
      values = emitter_.loop_carrying(
          begin, whole, lanes, std::move(values),
          [&](Value i, const std::vector<Value>& carried) { return body(i, int(lanes), carried); });
    if (left != 0)
      values = emitter_.branch_carrying(
          emitter_.is_less(whole, end), std::move(values),
          [&](const std::vector<Value>& carried) { return body(whole, int(left), carried); });
    return values;
  }

  std::vector<Value> write_vector(int segment, const std::vector<Running>& running,
                                  std::vector<Value> carried, Value i, Value first, int count) {
    ask_ahead(segment, i);
    std::vector<Register> registers = registers_;  // what is the same along the row
    const std::vector<bool> computed = segments_.computed_by(segment, data_);
    for (int e : segments_.equations[segment])
      for (const Atom& atom : data_.equations[e].inputs) {
        if (!atom.is_var()) continue;
        const int var = atom.var().id;
        if (registers[var].v || computed[var]) continue;
        registers[var] =
            segments_.written[var] >= 0
                ? load_lanes(dtype(var), slot_at(var, i), emitter_.lanes())
                : load_lanes(dtype(var), emitter_.at(element(var), bases_[var], i), count);
      }
    std::size_t next = 0;
    for (int e : segments_.equations[segment]) {
      const Equation& equation = data_.equations[e];
      const int out = equation.outputs[0].id;
      if (rows_.is_column[out]) {
        add_to_column(out, registers[equation.inputs[0].var().id], i, count);
        continue;
      }
      if (*equation.primitive == reduce_p) {
        const Reduction& reduction = running[next].reduction;
        carried[next] =
            reduction.take(carried[next], registers[equation.inputs[0].var().id], count);
        ++next;
        continue;
      }
      registers[out] = write_full(equation, registers, i);
      if (segments_.slot_of[out] >= 0)
        store_lanes(registers[out], slot_at(out, i), emitter_.lanes());
    }
    for (std::size_t o = 0; o < data_.outputs.size(); ++o) {
      const int var = data_.outputs[o].var().id;
      if (rows_.is_row[var] || rows_.is_column[var] || segments_.written[var] != segment) continue;
      const Value index = emitter_.add(first, i);
      store_lanes(registers[var], emitter_.at(element(var), memory_[data_.num_binders + o], index),
                  count, streams_[o]);
    }
    return carried;
  }

  Value slot_at(int var, Value i) const {
    const std::int64_t lanes = emitter_.lanes();
    const std::int64_t padded = (rows_.length + lanes - 1) / lanes * lanes;
    const Value slot = emitter_.at(emitter_.integer(8), memory_.back(),
                                   constant(segments_.offset_of(segments_.slot_of[var], padded)));
    return emitter_.at(element(var), slot, i);
  }

  const JaxprData& data_;
  const Rows& rows_;
  const Segments& segments_;
  const std::span<const RowInput> inputs_;
  const std::vector<bool>& streams_;  // by output: past the caches
  Emitter emitter_;
  std::vector<Register> registers_;  // by var: what is the same along the row
  std::vector<Value> memory_;        // inputs, outputs, slots
  std::vector<Value> bases_;         // by input: where its part of the row begins
  std::vector<int> ahead_;           // by input: the segment that asks for its next row, or -1
  std::vector<Value> next_;          // by input: where that row begins
  std::vector<Value> places_;        // by var that a scatter gives: the place along the row
  std::vector<Value> columns_;       // by var: the numbers of the row's block
};

}  // namespace

DType sum_dtype(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

Object write_rows(const JaxprData& group, const Rows& rows, const Segments& segments,
                  std::span<const RowInput> inputs, int lanes, const std::vector<bool>& streams) {
  return RowWriter(group, rows, segments, inputs, lanes, streams).compile();
}

}  // namespace plait::llvm
