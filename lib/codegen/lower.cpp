// Lowering, and with it placing: which arrays share memory.
//
// A number is computed once, in the outermost loop in which its operands are known: what a loop
// does not change leaves it as it is lowered. Integers whose range is known fold: the tests of an
// index that counts from 0 to n are none.
//
// An array that no memory holds is a formula, and is computed where it is copied to its home, or
// once for several uses. It is computed early where memory that it reads is about to be written.
//
// An array that a loop carries has one home, which the first value is copied to, or has itself
// where nothing reads it later. An update writes into the memory of its operand where that dies,
// else into a copy. At the end of a step what is not at home yet is copied there, or changes places
// with what is. An update that a choice may discard has its stores masked. A copy says why it is
// there.
//
// Examples that go their own ways run one after the other, each to its end. What one of them makes
// has its part of memory that all share, so that threads may take different ones.
// SPDX-License-Identifier: Apache-2.0
#include "codegen/lower.h"

#include <plait/base/hash.h>
#include <plait/primitives/primitives.h>
#include <plait/rules/diverge.h>
#include <plait/rules/motion.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "codegen/overlap.h"
#include "codegen/walk.h"

namespace plait::codegen {
namespace {

using loops::Formula;
using loops::Index;
using loops::Indices;
using Kind = Statement::Kind;

struct Refused {
  std::string reason;
};

Sizes64 dense(const Aval& aval) { return dense_strides(aval.shape.to_sizes()); }
std::int64_t size_of_array(const Aval& aval) { return aval.shape.num_elements().constant(); }

class Lowering final : public loops::Writer {
 public:
  explicit Lowering(const Setting& setting) : setting_(setting) { open_.emplace_back(); }

  LoopProgram run(const Jaxpr& group, std::span<const Sizes64> strides) {
    Tensors operands;
    for (const Aval& aval : group->input_avals()) {
      require_plain(aval);
      const auto number = operands.size();
      const int memory = add_memory(Memory::Space::operand, int(number), aval);
      program_.memories.back().size = reach_of(aval.shape.to_sizes(), strides[number]);
      operands.push_back({aval, {}, {memory}, strides[number]});
    }
    const Flags owned(operands.size(), false);
    const Tensors results = lower_equations(group, std::move(operands), owned);
    for (std::size_t i = 0; i < results.size(); ++i) write_result(int(i), results[i]);
    program_.body = std::move(open_[0].block);
    for (const auto& [size, memory] : counts_) begin_counts(memory, size);
    for (std::size_t value = 0; value < info_.size(); ++value)
      if (info_[value].range) program_.know(Value(value), *info_[value].range);
    return std::move(program_);
  }

  // --- Numbers -----------------------------------------------------------------------------------

  Value literal(const Literal& given) override {
    Literal literal = given;
    literal.weak = false;
    for (const auto& [value, known] : program_.literals)
      if (known == literal) return value;
    std::optional<Range> range;
    if (!is_inexact(literal.dtype) && literal.dtype != DType::uint64)
      range = Range{literal.integer, literal.integer};
    const Value value = define(literal.dtype, 0, range);
    program_.literals.emplace_back(value, literal);
    return value;
  }

  Value compute(const Primitive& primitive, const Params& params, Values operands,
                Source source) override {
    std::vector<Aval> avals;
    for (Value operand : operands) avals.push_back({{}, dtype(operand)});
    const DType result = infer(primitive, avals, params)[0].dtype;
    if (primitive == cast_p && result == dtype(operands[0])) return operands[0];
    if (primitive == select_p)
      if (const std::optional<Range> chosen = info_[std::size_t(operands[0])].range)
        if (chosen->low == chosen->high) return operands[chosen->low ? 1 : 2];
    if (primitive == rem_p && is_inside_divisor(operands)) return operands[0];
    const std::optional<Range> range = range_of(primitive, params, operands, result);
    if (range && range->low == range->high)
      return literal(Literal{result, false, range->low, 0, 0});
    std::size_t level = 0;
    for (Value operand : operands) level = std::max(level, info_[std::size_t(operand)].level);
    std::size_t hash = hash_combine(std::size_t(primitive.index()), params.hash());
    for (Value operand : operands) hash = hash_combine(hash, std::size_t(operand));
    Open& open = open_[level];
    const auto [first, last] = open.computed.equal_range(hash);
    for (auto it = first; it != last; ++it) {
      const Statement& same = open.block[it->second];
      if (*same.primitive == primitive && same.operands == operands && same.params == params)
        return same.value;
    }
    Statement statement;
    statement.source = source;
    statement.value = define(result, level, range);
    if (range) find_linear(primitive, operands, statement.value);
    statement.operands = std::move(operands);
    statement.primitive = &primitive;
    statement.params = params;
    ++changes_;
    open.computed.emplace(hash, open.block.size());
    open.block.push_back(std::move(statement));
    return open.block.back().value;
  }

  Value load(const Place& given) override {
    const Place place = folded(given);
    const Memory& memory = program_.memories[std::size_t(place.memory)];
    const std::uint64_t version = versions_[std::size_t(place.memory)];
    for (auto open = open_.rbegin(); open != open_.rend(); ++open)
      for (const Loaded& loaded : open->loaded)
        if (loaded.version == version && loaded.place == place) return loaded.value;
    // What no statement writes may be read before the loop, if the element exists.
    std::size_t level = open_.size() - 1;
    if (memory.space == Memory::Space::operand && is_inside(place, memory)) {
      level = 0;
      for (const Place::Term& term : place.terms)
        level = std::max(level, info_[std::size_t(term.index)].level);
    }
    Statement statement;
    statement.kind = Kind::load;
    statement.value = define(memory.dtype, level, {});
    statement.place = place;
    ++changes_;
    open_[level].loaded.push_back({place, version, statement.value});
    open_[level].block.push_back(std::move(statement));
    return open_[level].block.back().value;
  }

  void store(const Place& given, Value value) override {
    const Place place = folded(given);
    if (holds(place, value)) return;
    if (is_masked(place.memory)) {
      const Value old = load(place);
      value = compute(select_p, {},
                      mask_->keeps_where_true ? Values{mask_->holds, old, value}
                                              : Values{mask_->holds, value, old},
                      {});
    }
    Statement statement;
    statement.kind = Kind::store;
    statement.reason = reason_;
    statement.operands = {value};
    statement.place = place;
    ++versions_[std::size_t(place.memory)], ++writes_;
    emit(std::move(statement));
    open_.back().loaded.push_back({place, versions_[std::size_t(place.memory)], value});
  }

  Value index(Value integer) override {
    if (!is_integer(dtype(integer)) || dtype(integer) == DType::uint64)
      refuse("an index of dtype " + std::string(name_of(dtype(integer))));
    return compute(cast_p, {{"dtype", DType::int64}, {"weak", false}}, {integer}, {});
  }

  Value number(const Index& index) override {
    std::optional<Value> sum;
    for (const Place::Term& term : index.terms) {
      const Value part = term.stride == 1
                             ? term.index
                             : compute(mul_p, {}, {term.index, integer(term.stride)}, {});
      sum = sum ? compute(add_p, {}, {*sum, part}, {}) : part;
    }
    if (!sum) return integer(index.offset);
    return index.offset == 0 ? *sum : compute(add_p, {}, {*sum, integer(index.offset)}, {});
  }

  Range range(const Index& index) const override {
    __int128 low = index.offset, high = index.offset;
    for (const Place::Term& term : index.terms) {
      const Range known = info_[std::size_t(term.index)].range.value_or(all_int64);
      const __int128 a = __int128(known.low) * term.stride, b = __int128(known.high) * term.stride;
      low += std::min(a, b), high += std::max(a, b);
    }
    const auto nearest = [](__int128 value) {
      return std::int64_t(std::clamp<__int128>(value, all_int64.low, all_int64.high));
    };
    return {nearest(low), nearest(high)};
  }

  Value clamped(Value index, std::int64_t low, std::int64_t high) override {
    if (is_within(index, low, high)) return index;
    return compute(min_p, {}, {compute(max_p, {}, {index, integer(low)}, {}), integer(high)}, {});
  }

  void check(Value index, std::int64_t low, std::int64_t high,
             std::function<void(std::int64_t)> raise, Source source) override {
    if (is_within(index, low, high)) return;
    Statement statement;
    statement.kind = Kind::check;
    statement.source = source;
    statement.operands = {index};
    statement.low = low, statement.high = high;
    statement.raise = std::move(raise);
    emit(std::move(statement));
    program_.fails_by_example |= example_.has_value();
    open_.back().checked.push_back({index, {low, high}});
  }

  // A number of an outer block has another name here: under its own one, what reads memory by it
  // would move out of this block, before the checks, and other blocks would not check it.
  Value checked(Value index, std::int64_t low, std::int64_t high) override {
    const Info known = info_[std::size_t(index)];
    if (known.range)
      low = std::max(low, known.range->low), high = std::min(high, known.range->high);
    if (low > high || (known.range && known.range->low == low && known.range->high == high))
      return index;
    if (known.level + 1 == open_.size()) {
      info_[std::size_t(index)].range = Range{low, high};
      return index;
    }
    for (const Named& named : open_.back().named)
      if (named.index == index && named.range.low == low && named.range.high == high)
        return named.name;
    Statement statement;
    statement.value = define(DType::int64, open_.size() - 1, Range{low, high});
    statement.operands = {index};
    statement.primitive = &cast_p;
    statement.params = {{"dtype", DType::int64}, {"weak", false}};
    if (const auto sum = linear_.find(index); sum != linear_.end())
      linear_[statement.value] = sum->second;
    open_.back().named.push_back({index, {low, high}, statement.value});
    emit(std::move(statement));
    return open_.back().block.back().value;
  }

  Value combine(const Primitive& by, Value identity, std::int64_t count, bool in_order,
                const std::function<Values(const Index&)>& terms, Source source) override {
    Statement statement;
    statement.kind = Kind::combine;
    statement.source = source;
    statement.primitive = &by;
    statement.operands = {identity};
    statement.steps = count;
    statement.is_in_order = in_order;
    open();
    statement.counter = define(DType::int64, open_.size() - 1, Range{0, count - 1});
    for (Value term : terms({0, {{statement.counter, 1}}})) statement.operands.push_back(term);
    statement.blocks.push_back(close());
    statement.value = define(dtype(identity), open_.size() - 1, {});
    emit(std::move(statement));
    return open_.back().block.back().value;
  }

  void check_each(const Shape& shape, const std::function<Value(std::span<const Index>)>& index_at,
                  std::int64_t low, std::int64_t high, std::function<void(std::int64_t)> raise,
                  Source source) override {
    const auto check_all = [&] {
      nest(shape.to_sizes(), -1,
           [&](std::span<const Index> at) { check(index_at(at), low, high, raise, source); });
    };
    const std::int64_t last = shape.empty() ? 1 : (shape.end() - 1)->constant();
    // Threads of a GPU check side by side.
    if (last < 2 * fewest_lanes || !has_kernels()) return check_all();
    // By lanes first, whether there is one outside; then which.
    const Value none = literal(Literal{DType::bool_, false, 0, 0, 0});
    Sizes64 rows = shape.to_sizes();
    rows.erase(rows.size() - 1);
    nest(rows, -1, [&](std::span<const Index> row) {
      bool may_fail = false, is_monotone = false;
      const Value fails = combine(
          or_p, none, last, false,
          [&](const Index& index) {
            Indices at(row.begin(), row.end());
            at.push_back(index);
            const Value value = index_at(at);
            may_fail |= !is_within(value, low, high);
            is_monotone = Direction(*this, index.terms[0].index, low, high, last).is_known(value);
            const auto compared = [&](const char* direction, std::int64_t bound) {
              return compute(cmp_p, {{"direction", std::string(direction)}},
                             {value, integer(bound)}, source);
            };
            return Values{compute(or_p, {}, {compared("lt", low), compared("gt", high)}, source)};
          },
          source);
      if (is_monotone) take_ends(open_.back().block.back());
      if (!may_fail) return;
      choose(compute(cast_p, {{"dtype", DType::int64}, {"weak", false}}, {fails}, source), 2,
             [&](std::size_t is_failing) {
               if (is_failing)
                 nest(Sizes64{last}, -1, [&](std::span<const Index> index) {
                   Indices at(row.begin(), row.end());
                   at.push_back(index[0]);
                   check(index_at(at), low, high, raise, source);
                 });
               return Tensors{};
             });
    });
  }

  // --- Arrays ------------------------------------------------------------------------------------

  Value element(const Tensor& tensor, std::span<const Index> indices) override {
    if (tensor.is_in_memory()) return load(place_of(tensor, indices));
    if (!tensor.formula) return tensor.elements[std::size_t(place_in_list(tensor, indices))];
    const Indices at(indices.begin(), indices.end());
    for (const Computed& known : open_.back().computed_elements)
      if (known.formula == tensor.formula && known.writes == writes_ && known.indices == at)
        return known.value;
    const Value value = tensor.formula->element(indices);
    open_.back().computed_elements.push_back({tensor.formula, at, writes_, value});
    return value;
  }

  Values elements_of(const Tensor& tensor) override {
    if (!tensor.is_in_memory() && !tensor.formula) return tensor.elements;
    if (size_of_array(tensor.aval) > loops::few)
      refuse("numbers of an array of type " + tensor.aval.to_string());
    Values values;
    for_each_index(tensor.aval.shape.to_sizes(), [&](const Sizes64& at) {
      Indices indices;
      for (std::int64_t index : at) indices.push_back({index});
      values.push_back(element(tensor, indices));
    });
    return values;
  }

  Tensor computed(const Aval& aval, Formula formula) override {
    require_plain(aval);
    Tensor tensor{aval};
    tensor.formula = std::make_shared<const Formula>(std::move(formula));
    if (is_few(aval)) return {aval, elements_of(tensor)};
    return tensor;
  }

  Tensor composed(const Aval& aval, const std::vector<Part>& given,
                  const std::optional<Tensor>& given_elsewhere, Source source) override {
    std::vector<Part> parts = given;
    std::optional<Tensor> elsewhere = given_elsewhere;
    // One number has no strides: in memory it is read now.
    if (elsewhere && elsewhere->aval.rank() < aval.rank())
      elsewhere = Tensor{elsewhere->aval, elements_of(*elsewhere)};
    Formula formula;
    if (elsewhere) {
      formula.reads = reads_of(*elsewhere);
      if (elsewhere->formula) {
        formula.work = elsewhere->formula->work;
        formula.cuts = elsewhere->formula->cuts;
      }
    }
    for (Part& part : parts) {
      if (part.tensor.elements.size() > 1 && !is_few(aval)) part.tensor = in_memory(part.tensor);
      const Shape& shape = part.tensor.aval.shape;
      for (int axis = 0; axis < aval.rank(); ++axis)
        for (const std::int64_t at : {std::int64_t(0), shape[axis].constant()})
          add_cut(formula, {axis, part.start[std::size_t(axis)] + at}, aval);
      if (part.tensor.formula) {
        formula.work = std::max(formula.work, part.tensor.formula->work);
        for (const Formula::Cut& cut : part.tensor.formula->cuts)
          add_cut(formula, {cut.axis, part.start[std::size_t(cut.axis)] + cut.at}, aval);
      }
      for (Formula::Read read : reads_of(part.tensor)) {
        for (std::size_t axis = 0; axis < read.strides.size(); ++axis)
          read.place.offset -= part.start[axis] * read.strides[axis];
        formula.reads.push_back(std::move(read));
      }
    }
    formula.work += cheap;
    formula.element = [this, parts, elsewhere, source](std::span<const Index> indices) {
      return element_of_parts(parts, elsewhere, indices, source);
    };
    return computed(aval, std::move(formula));
  }

  Tensor combined(const Aval& aval, const Formula& formula, bool in_order) override {
    if (is_few(aval)) return computed(aval, formula);
    const Tensor to = make(aval);
    combine_into(to, formula, in_order);
    return to;
  }

  void combine_into(const Tensor& to, const Formula& formula, bool in_order) override {
    // Lanes go along an axis of the array, or along the index of combine: see LLVM's loops.
    const Aval& aval = to.aval;
    int inner = -1;
    for (int axis = 0; axis < aval.rank() && inner < 0; ++axis)
      if (aval.shape[axis].constant() >= fewest_lanes && !formula.reads.empty() &&
          std::all_of(formula.reads.begin(), formula.reads.end(), [&](const Formula::Read& read) {
            return !read.is_anywhere && std::abs(read.strides[std::size_t(axis)]) <= 1;
          }))
        inner = axis;
    // A chain of dependent steps has nothing for lanes: several chains have.
    const Sizes64 shape = aval.shape.to_sizes();
    const auto longest = std::max_element(shape.begin(), shape.end());
    if (inner < 0 && in_order && *longest >= fewest_lanes) inner = int(longest - shape.begin());
    nest(
        shape, inner,
        [&](std::span<const Index> indices) {
          store(place_of(to, indices), formula.element(indices));
        },
        {}, true);
  }

  Tensor in_memory(const Tensor& tensor) override {
    if (tensor.is_in_memory()) return tensor;
    Tensor written = make(tensor.aval);
    copy(tensor, written);
    return written;
  }

  Tensor make(const Aval& aval) override {
    const int memory = add_memory(Memory::Space::frame, 0, aval);
    if (!scopes_.empty()) scopes_.back().owned[std::size_t(memory)] = true;
    return {aval, {}, wholes_[std::size_t(memory)].place, dense(aval)};
  }

  Tensors sorted(std::span<const Tensor> arrays, bool descending, std::optional<Range> keys,
                 Source source) override {
    Equation equation;
    equation.primitive = &sort_p;
    equation.source = source;
    equation.params = {{"axis", Dim(arrays[0].aval.rank() - 1)},
                       {"num_keys", Dim(1)},
                       {"stable", true},
                       {"descending", descending}};
    Tensors read;
    std::vector<Aval> avals;
    for (const Tensor& array : arrays) {
      equation.inputs.push_back(Var{int(read.size())});
      read.push_back(in_memory(array));
      avals.push_back(array.aval);
      if (read.back().strides != dense(array.aval))
        throw InternalError("what is sorted does not lie dense");
    }
    return call(program_of(equation, avals), read, avals, keys);
  }

  void copy(const Tensor& given_from, const Tensor& given_to) override {
    const Tensor from = folded(given_from), to = folded(given_to);
    if (from.formula) return copy_together({{from, to}});
    if (!from.is_in_memory()) {
      std::size_t next = 0;
      for_each_element(to, [&](const Place& place) { store(place, from.elements[next++]); });
      return;
    }
    if (from.place == to.place && from.strides == to.strides) return;
    if (is_few(to.aval)) {
      const Values values = elements_of(from);
      return copy({from.aval, values}, to);
    }
    if (is_masked(to.place.memory)) {
      Formula elements;
      elements.element = [this, from](std::span<const Index> at) { return element(from, at); };
      elements.reads = reads_of(from);
      return copy(computed(from.aval, std::move(elements)), to);
    }
    if (from.place.memory == to.place.memory &&
        may_overlap({from.place, from.strides}, {to.place, to.strides}, to.aval.shape.to_sizes())) {
      const Tensor between = make(from.aval);
      copy(from, between, "it overlaps the place that it goes to");
      return copy(between, to);
    }
    Statement statement;
    statement.kind = Kind::copy;
    statement.reason = reason_;
    statement.place = to.place, statement.source_place = from.place;
    statement.shape = to.aval.shape.to_sizes();
    statement.strides = to.strides, statement.source_strides = from.strides;
    ++versions_[std::size_t(to.place.memory)], ++writes_;
    emit(std::move(statement));
  }

  Tensor to_overwrite(std::size_t operand) override {
    const Tensor tensor = operand_of(operand);
    if (tensor.is_in_memory() && is_whole(tensor)) keep_parts(operand, tensor);
    if (tensor.is_in_memory() && is_whole(tensor) && is_owned(operand)) {
      compute_pending([&](const Formula& formula) {
        return std::any_of(formula.reads.begin(), formula.reads.end(), [&](const auto& read) {
          return read.place.memory == tensor.place.memory;
        });
      });
      return tensor;
    }
    Tensor own = make(tensor.aval);
    copy(tensor, own, tensor.is_in_memory() ? why_kept(operand, tensor) : "");
    return own;
  }

  // --- Control flow ------------------------------------------------------------------------------

  Tensors repeat(std::int64_t steps, std::size_t num_carry,
                 std::span<const std::optional<std::int64_t>> growth, const Step& step) override {
    Statement loop;
    loop.kind = Kind::repeat;
    loop.steps = steps;
    compute_pending();
    Carried carried = begin_carries(loop, num_carry);
    open();
    loop.value = define(DType::int64, open_.size() - 1,
                        steps > 0 ? std::optional(Range{0, steps - 1}) : std::nullopt);
    std::vector<std::optional<Range>> ranges;
    for (std::size_t i = 0; i < num_carry; ++i)
      for (Value first : carried.firsts[i]) ranges.push_back(grown(first, growth[i], steps));
    enter_carries(loop, carried, ranges);
    count_in_steps(loop, carried, growth);
    end_step(loop, carried, step(loop.value, carried.inside));
    loop.blocks.push_back(close());
    return end_carries(std::move(loop), carried);
  }

  Tensors repeat_while(std::size_t num_carry, const Condition& condition,
                       const Step& step) override {
    const bool is_counted = std::exchange(is_counted_, false);
    Statement loop;
    loop.kind = Kind::loop;
    compute_pending();
    Carried carried = begin_carries(loop, num_carry);
    open();
    enter_carries(loop, carried, {});
    Statement::Carry taken{-1, integer(0), -1, -1};
    if (is_counted) taken.value = define(DType::int64, open_.size() - 1, {});
    const Value holds = condition(carried.inside);
    loop.operands = {holds};
    loop.blocks.push_back(close());
    open();
    end_step(loop, carried, step(-1, carried.inside));
    if (is_counted) taken.next = compute(add_p, {}, {taken.value, integer(1)}, {});
    loop.blocks.push_back(close());
    if (!is_counted) return end_carries(std::move(loop), carried);
    taken.last = define(DType::int64, open_.size() - 1, {});
    loop.carries.push_back(taken);
    Tensors results = end_carries(std::move(loop), carried);
    count_bodies(taken.last);
    return results;
  }

  Values repeat_numbers(std::int64_t steps, const Values& first, const NextNumbers& next) override {
    if (steps == 0) return first;
    Statement loop;
    loop.kind = Kind::repeat;
    loop.steps = steps;
    open();
    loop.value = define(DType::int64, open_.size() - 1, Range{0, steps - 1});
    const Values inside = carry_numbers(loop, first);
    end_numbers(loop, next({0, {{loop.value, 1}}}, inside));
    loop.blocks.push_back(close());
    return last_numbers(std::move(loop));
  }

  Values repeat_numbers_while(const Values& first, const NumbersHold& condition,
                              const std::function<Values(std::span<const Value>)>& next) override {
    Statement loop;
    loop.kind = Kind::loop;
    open();
    const Values inside = carry_numbers(loop, first);
    loop.operands = {condition(inside)};
    loop.blocks.push_back(close());
    open();
    end_numbers(loop, next(inside));
    loop.blocks.push_back(close());
    return last_numbers(std::move(loop));
  }

  Tensors branch(Value index, std::size_t count,
                 const std::function<Tensors(std::size_t)>& alternative) override {
    if (std::exchange(is_counted_, false)) count_bodies(integer(1));
    compute_pending();
    return choose(index, count, alternative);
  }
  // A branch whose alternatives write to no memory that is there before it.
  Tensors choose(Value index, std::size_t count,
                 const std::function<Tensors(std::size_t)>& alternative) {
    Statement statement;
    statement.kind = Kind::branch;
    statement.operands = {clamped(this->index(index), 0, std::int64_t(count) - 1)};
    std::vector<Open> opened;
    std::vector<Tensors> outputs;
    for (std::size_t i = 0; i < count; ++i) {
      open();
      outputs.push_back(alternative(i));
      for (Tensor& output : outputs.back())
        if (is_few(output.aval)) output = {output.aval, elements_of(output)};
      opened.push_back(std::move(open_.back()));
      open_.pop_back();
    }
    Tensors results;
    std::vector<std::vector<Copy>> copies(count);
    for (std::size_t o = 0; o < outputs[0].size(); ++o) {
      const Aval& aval = outputs[0][o].aval;
      if (is_few(aval)) {
        Tensor result{aval};
        for (std::size_t e = 0; e < outputs[0][o].elements.size(); ++e) {
          Statement::Carry carry{define(dtype(outputs[0][o].elements[e]), open_.size() - 1, {}), -1,
                                 -1, -1};
          for (const Tensors& of : outputs) carry.nexts.push_back(of[o].elements[e]);
          result.elements.push_back(carry.value);
          statement.carries.push_back(std::move(carry));
        }
        results.push_back(std::move(result));
        continue;
      }
      if (is_one(outputs, o)) {
        results.push_back(outputs[0][o]);
        continue;
      }
      const std::optional<Tensor> home = home_of(outputs, o, results);
      results.push_back(home ? *home : make(aval));
      for (std::size_t i = 0; i < count; ++i)
        copies[i].push_back({outputs[i][o], results.back(), "alternatives give other arrays"});
    }
    for (std::size_t i = 0; i < count; ++i) {
      open_.push_back(std::move(opened[i]));
      copy_together(std::move(copies[i]));
      opened[i] = std::move(open_.back());
      open_.pop_back();
    }
    for (Open& of : opened) statement.blocks.push_back(std::move(of.block));
    forget_loads();
    emit(std::move(statement));
    return results;
  }

  // Whether all alternatives give one array.
  static bool is_one(const std::vector<Tensors>& outputs, std::size_t o) {
    return std::all_of(outputs.begin(), outputs.end(), [&](const Tensors& of) {
      return of[o].is_in_memory() && of[o].place == outputs[0][o].place &&
             of[o].strides == outputs[0][o].strides && of[o].place.terms.empty();
    });
  }
  // The array that an alternative leaves as it is, if others may write theirs over it.
  std::optional<Tensor> home_of(const std::vector<Tensors>& outputs, std::size_t output,
                                const Tensors& taken) const {
    const Scope& scope = scopes_.back();
    const auto lies_in = [](const Tensor& tensor, int memory) {
      return tensor.is_in_memory() && tensor.place.memory == memory;
    };
    for (const Tensors& of : outputs) {
      const Tensor& home = of[output];
      const int memory = home.place.memory;
      if (!home.is_in_memory() || !is_whole(home) || !is_owned_memory(scope, memory)) continue;
      bool is_free = std::none_of(taken.begin(), taken.end(),
                                  [&](const Tensor& other) { return lies_in(other, memory); });
      for (std::size_t o = output + 1; o < outputs[0].size(); ++o)
        is_free = is_free && !(is_one(outputs, o) && lies_in(outputs[0][o], memory));
      for (std::size_t var = 0; var < scope.vars.size(); ++var)
        is_free = is_free &&
                  !(lies_in(scope.vars[var], memory) && scope.last_use[var] > int(scope.equation));
      if (is_free) return home;
    }
    return {};
  }

  Tensors lower(const Jaxpr& program, Tensors inputs, const Flags& owned) override {
    const Jaxpr simple = setting_.simplified(program);
    if (!simple->sizes.empty()) refuse("named sizes");
    return lower_equations(simple, std::move(inputs), owned);
  }

  void for_each(const Shape& shape, const std::function<void(std::span<const Index>)>& f) override {
    nest(shape.to_sizes(), -1, f);
  }

  void for_each_apart(std::int64_t count, const std::function<void(const Index&)>& f) override {
    compute_pending();
    nest(Sizes64{count}, 0, [&](std::span<const Index> at) { f(at[0]); });
    Statement& loop = open_.back().block.back();
    loop.is_parallel = is_simple(loop);  // else the steps run one after the other
    loop.is_apart = !has_kernels();      // but on a GPU, whose threads share them
  }

  Tensors for_each_example(std::int64_t count, const Flags& batched, std::size_t num_overwritten,
                           std::span<const Aval> results, const Example& f) override {
    if (example_) refuse("examples of examples");
    Tensors operands, all;
    for (std::size_t i = 0; i < batched.size(); ++i)
      operands.push_back(!batched[i]           ? operand_of(i)
                         : i < num_overwritten ? to_overwrite(i)
                                               : in_memory(operand_of(i)));
    compute_pending();
    for (std::size_t i = 0; i < results.size(); ++i) {
      Aval aval = results[i];
      aval.shape.insert(0, count);
      all.push_back(i < num_overwritten && batched[i] ? operands[i] : make(aval));
    }
    nest(
        Sizes64{count}, -1,
        [&](std::span<const Index> at) {
          example_ = {at[0], count, open_.size() - 1, program_.memories.size()};
          run_example(operands, batched, num_overwritten, all, f);
          example_.reset();
        },
        {}, true);
    for (std::size_t i = 0; i < num_overwritten; ++i)
      if (batched[i]) wholes_[std::size_t(operands[i].place.memory)] = whole_of(operands[i]);
    return all;
  }

  bool is_owned(std::size_t operand) const override {
    const Scope& scope = scopes_.back();
    const Equation& equation = *scope.equations[scope.equation];
    if (!equation.inputs[operand].is_var()) return false;
    const int memory = scope.vars[std::size_t(equation.inputs[operand].var().id)].place.memory;
    if (memory < 0 || !is_owned_memory(scope, memory)) return false;
    for (std::size_t var = 0; var < scope.vars.size(); ++var)
      if (scope.vars[var].place.memory == memory && scope.last_use[var] > int(scope.equation))
        return false;
    return is_read_once(scope, equation, memory);
  }

  bool has_kernels() const override { return setting_.has_kernels; }
  void require_room(double statements) override {
    constexpr double most = 2000;  // below what backends take, for what no rule asks for
    if (double(changes_) + statements > most) refuse("a long program");
  }
  [[noreturn]] void refuse(const std::string& reason) override { throw Refused{reason}; }

 private:
  struct Info {
    std::size_t level;  // of the block that defines it
    std::optional<Range> range;
  };
  // What there is of a memory, for the example that is being lowered: elements in order.
  struct Whole {
    Place place;
    std::int64_t size;
  };
  // An example that is being lowered.
  struct OneExample {
    Index index;
    std::int64_t count;
    std::size_t level;         // of the block in which its number is known
    std::size_t first_memory;  // of those that it makes
  };
  struct Loaded {
    Place place;
    std::uint64_t version;
    Value value;
  };
  struct Computed {
    std::shared_ptr<const Formula> formula;
    Indices indices;
    std::uint64_t writes;
    Value value;
  };
  // An index of an outer block that lies in a range in this one.
  struct Named {
    Value index;
    Range range;
    Value name;
  };
  // A block that is being written.
  struct Open {
    Block block;
    std::vector<Computed> computed_elements;
    std::unordered_multimap<std::size_t, std::size_t> computed;  // hash -> statement
    std::vector<Loaded> loaded;
    std::vector<std::pair<Value, Range>> checked;  // what lies in a range from here on
    std::vector<Named> named;
  };
  // A program that is being lowered.
  struct Scope {
    std::vector<const Equation*> equations;
    std::size_t equation;
    std::vector<Tensor> vars;
    std::vector<int> last_use;  // by var: an equation, or the number of equations for an output
    std::unordered_map<const Equation*, Var> chosen;  // what a choice gives that is made already
    std::unordered_map<std::size_t, bool> owned;      // memory
  };
  struct Carried {
    std::vector<Values> firsts;  // of arrays of few elements
    Tensors inside;              // in a step
    int first_memory = 0;        // of those that a step makes
  };

  // --- Values and blocks -------------------------------------------------------------------------

  DType dtype(Value value) const { return program_.dtypes[std::size_t(value)]; }

  Value define(DType dtype, std::size_t level, std::optional<Range> range) {
    program_.dtypes.push_back(dtype);
    info_.push_back({level, range});
    return Value(program_.dtypes.size()) - 1;
  }

  // Whether an element is known to be this number: what was loaded from it, or stored to it last.
  bool holds(const Place& place, Value value) const {
    const std::uint64_t version = versions_[std::size_t(place.memory)];
    return std::any_of(open_.begin(), open_.end(), [&](const Open& open) {
      return std::any_of(open.loaded.begin(), open.loaded.end(), [&](const Loaded& loaded) {
        return loaded.value == value && loaded.version == version && loaded.place == place;
      });
    });
  }

  void emit(Statement statement) {
    ++changes_;
    open_.back().block.push_back(std::move(statement));
  }
  void open() {
    forget_loads();
    open_.emplace_back();
  }
  Block close() {
    Block block = std::move(open_.back().block);
    open_.pop_back();
    forget_loads();
    return block;
  }
  // Elements that were read before a loop or a branch may be others within and behind it.
  void forget_loads() {
    for (std::size_t i = 0; i < versions_.size(); ++i)
      if (program_.memories[i].space != Memory::Space::operand) ++versions_[i];
  }

  int add_memory(Memory::Space space, int index, const Aval& aval) {
    require_plain(aval);
    ++changes_;
    const int memory = int(program_.memories.size());
    const std::int64_t size = size_of_array(aval);
    program_.memories.push_back({space, index, aval.dtype, size});
    versions_.push_back(0);
    wholes_.push_back({{memory}, size});
    if (example_ && space == Memory::Space::frame) {
      program_.memories.back().size *= example_->count;
      loops::add_index(wholes_.back().place, example_->index, size);
    }
    return memory;
  }

  void require_plain(const Aval& aval) {
    if (aval.stack > 0) refuse("a stack");
    for (Dim dim : aval.shape)
      if (!dim.is_constant()) refuse("named sizes");
    if (size_of_array(aval) == 0) refuse("an array without elements");
  }

  // The sum that an integer is, of int64s; none where it is not known.
  std::optional<Index> linear(Value value) const {
    const std::optional<Range>& range = info_[std::size_t(value)].range;
    if (range && range->low == range->high) return Index{range->low};
    if (const auto found = linear_.find(value); found != linear_.end()) return found->second;
    if (dtype(value) == DType::int64) return Index{0, {{value, 1}}};
    return {};
  }
  // Of a result that its dtype holds.
  void find_linear(const Primitive& primitive, const Values& operands, Value result) {
    if (primitive != cast_p && primitive != add_p && primitive != sub_p && primitive != mul_p)
      return;
    std::vector<Index> terms;
    for (Value operand : operands) {
      if (!is_integer(dtype(operand))) return;
      const std::optional<Index> found = linear(operand);
      if (!found) return;
      terms.push_back(*found);
    }
    Place sum{0, terms[0].offset, terms[0].terms};
    if (primitive == mul_p) {
      if (!terms[0].terms.empty() && !terms[1].terms.empty()) return;
      const bool is_first = terms[1].terms.empty();
      sum = {0};
      loops::add_index(sum, terms[is_first ? 0 : 1], terms[is_first ? 1 : 0].offset);
    } else if (primitive != cast_p) {
      loops::add_index(sum, terms[1], primitive == add_p ? 1 : -1);
    }
    linear_[result] = {sum.offset, std::move(sum.terms)};
  }

  // With sums as their terms, and those that are known as part of the offset.
  Place folded(const Place& place) const {
    Place sum{place.memory, place.offset};
    for (const Place::Term& term : place.terms)
      loops::add_index(sum, *linear(term.index), term.stride);
    return sum;
  }
  Tensor folded(Tensor tensor) const {
    tensor.place = folded(std::move(tensor.place));
    return tensor;
  }

  // --- Ranges ------------------------------------------------------------------------------------

  // Whether an index grows or falls with a counter throughout, so that the first and the last one
  // lie in a range only where all do.
  //
  // One sum may go around the ends of its dtype: what lies before the end is above the range, and
  // what lies behind it below, as the range is far from both, and the first one or the last one is
  // among those; and what is limited afterwards is the same from there on.
  class Direction {
   public:
    Direction(const Lowering& writer, Value counter, std::int64_t low, std::int64_t high,
              std::int64_t steps)
        : writer_(writer), counter_(counter), low_(low), most_(__int128(high) + steps) {}

    bool is_known(Value index) { return low_ >= 0 && visit(index) && depends_; }

   private:
    // Whether it changes in one direction, or is the same for all.
    bool visit(Value value) {
      if (value == counter_) return depends_ = true;
      if (writer_.info_[std::size_t(value)].level + 1 < writer_.open_.size()) return true;
      const Block& block = writer_.open_.back().block;
      const auto s = std::find_if(block.begin(), block.end(),
                                  [&](const Statement& each) { return each.value == value; });
      const DType dtype = writer_.dtype(value);
      if (s == block.end() || s->kind != Kind::compute || !is_integer(dtype)) return false;
      const Primitive& p = *s->primitive;
      const bool is_exact = writer_.info_[std::size_t(value)].range.has_value();
      if (p == cast_p) {
        const DType from = writer_.dtype(s->operands[0]);
        const bool holds_all = from == dtype || (dtype == DType::int64 && from != DType::uint64);
        return is_integer(from) && (is_exact || holds_all) && visit(s->operands[0]);
      }
      if (!(p == add_p || p == sub_p || p == max_p || p == min_p)) return false;
      const bool before = std::exchange(depends_, false);
      const bool all = visit(s->operands[0]);
      const bool first = std::exchange(depends_, false);
      if (!all || !visit(s->operands[1]) || (first && depends_)) return false;
      depends_ |= first || before;
      if (p == max_p || p == min_p || is_exact || !(first || depends_)) return true;
      const bool is_far = fitting(0, most_ + 1, dtype).has_value();
      return !std::exchange(has_wrapped_, true) && is_far;
    }

    const Lowering& writer_;
    Value counter_;
    std::int64_t low_;
    __int128 most_;
    bool depends_ = false, has_wrapped_ = false;
  };

  // Combines the first term and the last one alone.
  void take_ends(Statement& combination) {
    const std::int64_t last = combination.steps - 1;
    Statement ends;
    ends.value = define(DType::int64, open_.size(), Range{0, last});
    ends.operands = {combination.counter, integer(last)};
    ends.primitive = &mul_p;
    for (Statement& s : combination.blocks[0]) rename(s, {{combination.counter, ends.value}});
    combination.steps = 2;
    Block& block = combination.blocks[0];
    block.insert(block.begin(), std::move(ends));
  }

  bool is_within(Value value, std::int64_t low, std::int64_t high) const {
    const std::optional<Range>& range = info_[std::size_t(value)].range;
    if (range && low <= range->low && range->high <= high) return true;
    for (const Open& open : open_)
      for (const auto& [checked, inside] : open.checked)
        if (checked == value && low <= inside.low && inside.high <= high) return true;
    return false;
  }

  // Whether a remainder is the number itself.
  bool is_inside_divisor(const Values& operands) const {
    const std::optional<Range>& by = info_[std::size_t(operands[1])].range;
    return by && by->low == by->high && is_within(operands[0], 0, by->low - 1);
  }

  bool is_inside(const Place& place, const Memory& memory) const {
    const Range reached = range({place.offset, place.terms});
    return reached.low >= 0 && reached.high < memory.size;
  }

  static std::optional<Range> fitting(__int128 low, __int128 high, DType dtype) {
    std::optional<Range> range;
    if (dtype == DType::uint64) return range;
    visit_dtype(dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        if (low >= std::numeric_limits<T>::min() && high <= __int128(std::numeric_limits<T>::max()))
          range = Range{std::int64_t(low), std::int64_t(high)};
    });
    return range;
  }

  // Of a carry that grows by a known number at every step.
  std::optional<Range> grown(Value first, std::optional<std::int64_t> by,
                             std::int64_t steps) const {
    const std::optional<Range>& range = info_[std::size_t(first)].range;
    if (!range || !by || steps == 0) return {};
    const __int128 last = __int128(*by) * (steps - 1);
    return fitting(range->low + std::min<__int128>(0, last),
                   range->high + std::max<__int128>(0, last), dtype(first));
  }

  // The arithmetic of indices. Others have no range.
  std::optional<Range> range_of(const Primitive& primitive, const Params& params,
                                const Values& operands, DType result) const {
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::optional<Range>& range = info_[std::size_t(operands[i])].range;
      const std::optional<Range> known = range ? range : range_of_dtype(dtype(operands[i]));
      if (!known) return {};
      ranges.push_back(*known);
    }
    if (primitive == cmp_p) return compared(params.text("direction"), ranges[0], ranges[1]);
    if (!is_integer(result)) return {};
    const Range &a = ranges[0], &b = ranges.back();
    if (primitive == cast_p)
      return is_inexact(dtype(operands[0])) ? std::nullopt : fitting(a.low, a.high, result);
    if (primitive == add_p)
      return fitting(__int128(a.low) + b.low, __int128(a.high) + b.high, result);
    if (primitive == sub_p)
      return fitting(__int128(a.low) - b.high, __int128(a.high) - b.low, result);
    if (primitive == mul_p) {
      const __int128 ends[] = {__int128(a.low) * b.low, __int128(a.low) * b.high,
                               __int128(a.high) * b.low, __int128(a.high) * b.high};
      return fitting(*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4), result);
    }
    if ((primitive == div_p || primitive == rem_p) && b.low == b.high && b.low > 0) {
      const std::int64_t by = b.low;
      if (primitive == div_p) return Range{a.low / by, a.high / by};
      if (a.low >= 0 && a.high < by) return a;
      return Range{a.low < 0 ? std::max(a.low, 1 - by) : 0,
                   a.high > 0 ? std::min(a.high, by - 1) : 0};
    }
    if (primitive == min_p) return Range{std::min(a.low, b.low), std::min(a.high, b.high)};
    if (primitive == max_p) return Range{std::max(a.low, b.low), std::max(a.high, b.high)};
    if (primitive == select_p)
      return Range{std::min(ranges[1].low, b.low), std::max(ranges[1].high, b.high)};
    return {};
  }

  // Of the integers that an index may be made of; an int64 may be any number.
  static std::optional<Range> range_of_dtype(DType dtype) {
    if (dtype == DType::bool_) return Range{0, 1};
    if (!is_integer(dtype) || dtype == DType::uint64) return {};
    return visit_dtype(dtype, [](auto element) -> std::optional<Range> {
      using T = decltype(element);
      if constexpr (std::is_integral_v<T>)
        return Range{std::int64_t(std::numeric_limits<T>::min()),
                     std::int64_t(std::numeric_limits<T>::max())};
      return std::nullopt;
    });
  }

  static std::optional<Range> compared(const std::string& direction, const Range& a,
                                       const Range& b) {
    const auto known = [](bool truth) { return Range{truth, truth}; };
    const bool is_less = a.high<b.low, is_greater = a.low> b.high, is_at_most = a.high <= b.low,
               is_at_least = a.low >= b.high;
    if (direction == "lt" && (is_less || is_at_least)) return known(is_less);
    if (direction == "le" && (is_at_most || is_greater)) return known(is_at_most);
    if (direction == "gt" && (is_greater || is_at_most)) return known(is_greater);
    if (direction == "ge" && (is_at_least || is_less)) return known(is_at_least);
    if ((direction == "eq" || direction == "ne") && (is_less || is_greater))
      return known(direction == "ne");
    return {};
  }

  // --- Arrays ------------------------------------------------------------------------------------

  template <class F>
  static void for_each_index(const Sizes64& shape, const F& f) {
    Sizes64 at(shape.size(), 0);
    for (std::int64_t i = 0, n = num_elements(shape); i < n; ++i) {
      f(at);
      for (std::size_t axis = shape.size(); axis-- > 0 && ++at[axis] == shape[axis];) at[axis] = 0;
    }
  }
  template <class F>
  static void for_each_element(const Tensor& tensor, const F& f) {
    for_each_index(tensor.aval.shape.to_sizes(), [&](const Sizes64& at) {
      Place place = tensor.place;
      for (std::size_t axis = 0; axis < at.size(); ++axis)
        place.offset += at[axis] * tensor.strides[axis];
      f(place);
    });
  }
  static std::int64_t place_in_list(const Tensor& tensor, std::span<const Index> indices) {
    if (tensor.elements.size() == 1) return 0;
    const Sizes64 strides = dense(tensor.aval);
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      if (!indices[axis].terms.empty()) throw InternalError("a list is read by computed indices");
      place += indices[axis].offset * strides[axis];
    }
    return place;
  }
  static Place place_of(const Tensor& tensor, std::span<const Index> indices) {
    Place place = tensor.place;
    for (std::size_t axis = 0; axis < indices.size(); ++axis)
      loops::add_index(place, indices[axis], tensor.strides[axis]);
    return place;
  }

  // Runs f with every index of a shape, in loops, of which that of the axis `inner` is the
  // innermost and parallel; none where it is -1. bounds: by axis, where its loop is cut in several,
  // with both ends; or none. is_apart: no step reads what another one writes.
  using Bounds = std::vector<std::vector<std::int64_t>>;
  template <class F>
  void nest(const Sizes64& shape, int inner, const F& f, const Bounds& bounds = {},
            bool is_apart = false) {
    Indices indices(shape.size());
    std::vector<int> axes;
    for (int axis = 0; axis < int(shape.size()); ++axis)
      if (axis != inner && shape[std::size_t(axis)] != 1) axes.push_back(axis);
    if (inner >= 0) axes.push_back(inner);
    const auto run = [&](auto& self, std::size_t depth) -> void {
      if (depth == axes.size()) return f(std::span<const Index>(indices));
      const auto axis = std::size_t(axes[depth]);
      const auto loop_from = [&](std::int64_t begin, std::int64_t end) {
        Statement loop;
        loop.kind = Kind::repeat;
        loop.steps = end - begin;
        loop.is_parallel = int(axis) == inner;
        loop.is_apart = is_apart;
        open();
        loop.value = define(DType::int64, open_.size() - 1, Range{0, loop.steps - 1});
        indices[axis] = {begin, {{loop.value, 1}}};
        self(self, depth + 1);
        loop.blocks.push_back(close());
        emit(std::move(loop));
      };
      if (bounds.empty()) return loop_from(0, shape[axis]);
      for (std::size_t i = 0; i + 1 < bounds[axis].size(); ++i) {
        const std::int64_t begin = bounds[axis][i], end = bounds[axis][i + 1];
        if (end - begin > 2) {
          loop_from(begin, end);
          continue;
        }
        for (std::int64_t index = begin; index < end; ++index) {
          indices[axis] = {index};
          self(self, depth + 1);
        }
      }
    };
    run(run, 0);
  }

  // Where to cut the loops over formulas. Loops are cut everywhere if the statements stay few, else
  // around the longest part, so that most steps of the innermost loop have no tests.
  static Bounds bounds_for(const Sizes64& shape, int inner,
                           std::span<const Formula* const> formulas) {
    constexpr double few_operations = 256, most_operations = 1024;
    double work = 0;
    bool has_cuts = false;
    for (const Formula* formula : formulas) {
      work += formula->work;
      has_cuts = has_cuts || !formula->cuts.empty();
    }
    if (!has_cuts) return {};
    Bounds all(shape.size());
    for (std::size_t axis = 0; axis < shape.size(); ++axis) all[axis] = {0, shape[axis]};
    for (const Formula* formula : formulas)
      for (const Formula::Cut& cut : formula->cuts) all[std::size_t(cut.axis)].push_back(cut.at);
    std::vector<std::size_t> order{std::size_t(inner)};
    for (std::size_t axis = shape.size(); axis-- > 0;)
      if (int(axis) != inner) order.push_back(axis);
    for (std::size_t axis : order) {
      std::vector<std::int64_t>& at = all[axis];
      std::sort(at.begin(), at.end());
      at.erase(std::unique(at.begin(), at.end()), at.end());
      const auto pieces = [&] { return double(at.size()) - 1; };
      if (work * pieces() > few_operations) {
        std::size_t longest = 0;
        for (std::size_t i = 0; i + 1 < at.size(); ++i)
          if (at[i + 1] - at[i] > at[longest + 1] - at[longest]) longest = i;
        at = {0, at[longest], at[longest + 1], shape[axis]};
        at.erase(std::unique(at.begin(), at.end()), at.end());
        if (int(axis) != inner && work * pieces() > most_operations) at = {0, shape[axis]};
      }
      work *= pieces();
    }
    return all;
  }

  static void add_cut(Formula& formula, const Formula::Cut& cut, const Aval& aval) {
    if (cut.at > 0 && cut.at < aval.shape[cut.axis].constant() &&
        std::find(formula.cuts.begin(), formula.cuts.end(), cut) == formula.cuts.end())
      formula.cuts.push_back(cut);
  }

  // A part that an index may lie in: where in it, and the number that says whether it does, if that
  // is not known.
  struct Candidate {
    const Part* part;
    Indices clamped, moved;
    std::optional<Value> is_inside;
  };
  std::optional<Candidate> candidate(const Part& part, std::span<const Index> indices,
                                     Source source) {
    Candidate found{&part, {}, {}, {}};
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      Index index = indices[axis];
      index.offset -= part.start[axis];
      const std::int64_t last = part.tensor.aval.shape[int(axis)].constant() - 1;
      const Range known = range(index);
      if (known.high < 0 || known.low > last) return {};
      found.moved.push_back(index);
      const auto test = [&](const char* direction, std::int64_t bound) {
        const Value holds = compute(cmp_p, {{"direction", std::string(direction)}},
                                    {number(index), integer(bound)}, source);
        found.is_inside =
            found.is_inside ? compute(and_p, {}, {*found.is_inside, holds}, source) : holds;
      };
      if (known.low < 0) test("ge", 0);
      if (known.high > last) test("le", last);
      if (known.low < 0 || known.high > last) index = {0, {{clamped(number(index), 0, last), 1}}};
      found.clamped.push_back(std::move(index));
    }
    return found;
  }

  Value element_of_parts(const std::vector<Part>& parts, const std::optional<Tensor>& elsewhere,
                         std::span<const Index> indices, Source source) {
    std::vector<Candidate> candidates;
    for (const Part& part : parts)
      if (std::optional<Candidate> found = candidate(part, indices, source)) {
        if (!found->is_inside) return element(part.tensor, found->clamped);
        candidates.push_back(std::move(*found));
      }
    if (!elsewhere && !candidates.empty())
      if (const std::optional<Value> one = element_of_one_memory(candidates, source)) return *one;
    std::optional<Value> value;
    if (elsewhere) value = element(*elsewhere, indices);
    for (const Candidate& found : candidates) {
      const Value inside = element(found.part->tensor, found.clamped);
      value = value ? compute(select_p, {}, {*found.is_inside, inside, *value}, source) : inside;
    }
    if (!value) throw InternalError("an element of no part of an array");
    return *value;
  }

  // Of parts that lie in one memory by the same strides, as those of roll do: one place is chosen,
  // not one of several numbers.
  std::optional<Value> element_of_one_memory(const std::vector<Candidate>& candidates,
                                             Source source) {
    const auto place = [&](const Candidate& found) {
      return folded(place_of(found.part->tensor, found.moved));
    };
    const Tensor& first = candidates[0].part->tensor;
    for (const Candidate& found : candidates)
      if (!found.part->tensor.is_in_memory() || found.part->tensor.strides != first.strides ||
          place(found).memory != first.place.memory ||
          place(found).terms != place(candidates[0]).terms)
        return {};
    Place chosen = place(candidates[0]);
    Value offset = integer(chosen.offset);
    for (const Candidate& found : std::span(candidates).subspan(1))
      offset =
          compute(select_p, {}, {*found.is_inside, integer(place(found).offset), offset}, source);
    chosen.offset = 0;
    loops::add_index(chosen, {0, {{offset, 1}}}, 1);
    return load(chosen);
  }

  struct Copy {
    Tensor from, to;
    std::string reason = {};  // of one that does not compute
  };
  static bool reads_before_written(const Formula::Read& read, const Copy& copy, bool together) {
    if (read.place.memory != copy.to.place.memory) return false;
    const Sizes64 shape = copy.to.aval.shape.to_sizes();
    const Formula::Read written{copy.to.place, copy.to.strides};
    if (read.strides.size() != shape.size()) return true;
    return !(together && is_same(read, written, shape)) && may_overlap(read, written, shape);
  }

  // Whether what a copy reads is overwritten before, where all are made at once.
  bool must_wait(const std::vector<Copy>& copies, std::size_t i) const {
    const Copy& copy = copies[i];
    for (const Formula::Read& read : reads_of(copy.from))
      for (std::size_t j = 0; j < copies.size(); ++j) {
        const Copy& other = copies[j];
        // What lies in memory is copied after formulas, one by one.
        if (!copy.from.formula && j == i) continue;
        const bool together =
            copy.from.formula && other.from.formula && copy.to.aval.shape == other.to.aval.shape;
        if (reads_before_written(read, other, together)) return true;
      }
    return false;
  }

  // Copies at once, to places that do not overlap: what one of them reads is what was there before
  // all of them. Formulas of one shape are computed together, index by index.
  void copy_together(std::vector<Copy> copies) {
    for (Copy& copy : copies)
      copy.from = folded(std::move(copy.from)), copy.to = folded(std::move(copy.to));
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (!must_wait(copies, i)) continue;
      Copy& copy = copies[i];
      const Tensor between = make(copy.from.aval);
      this->copy(copy.from, between, "what it reads is written at the same time");
      copy.from = between;
    }
    std::vector<bool> is_done(copies.size(), false);
    for (std::size_t first = 0; first < copies.size(); ++first) {
      if (is_done[first] || !copies[first].from.formula) continue;
      std::vector<Copy> group;
      for (std::size_t i = first; i < copies.size(); ++i)
        if (copies[i].from.formula && copies[i].to.aval.shape == copies[first].to.aval.shape) {
          group.push_back(copies[i]);
          is_done[i] = true;
        }
      compute_into(group);
    }
    for (std::size_t i = 0; i < copies.size(); ++i)
      if (!is_done[i]) copy(copies[i].from, copies[i].to, copies[i].reason);
  }

  // Formulas of one shape, none of which reads what another one writes at another index.
  void compute_into(const std::vector<Copy>& copies) {
    const Sizes64 shape = copies[0].to.aval.shape.to_sizes();
    // Lanes go along the axis whose elements lie side by side, however short: loops over short rows
    // become lines later (short_rows.cpp), and a few lanes of many are better than places apart.
    int inner = int(std::max_element(shape.begin(), shape.end()) - shape.begin());
    for (int axis = 0; axis < int(shape.size()); ++axis)
      if (copies[0].to.strides[std::size_t(axis)] == 1 && shape[std::size_t(axis)] > 1)
        inner = axis;
    std::vector<const Formula*> formulas;
    for (const Copy& copy : copies) formulas.push_back(copy.from.formula.get());
    nest(
        shape, inner,
        [&](std::span<const Index> indices) {
          Values values;
          for (const Copy& copy : copies) values.push_back(element(copy.from, indices));
          for (std::size_t i = 0; i < copies.size(); ++i)
            store(place_of(copies[i].to, indices), values[i]);
        },
        bounds_for(shape, inner, formulas), true);
  }

  // Small parts of an array that are read after this equation get memory of their own, where the
  // array can be written over then.
  void keep_parts(std::size_t operand, const Tensor& whole) {
    Scope& scope = scopes_.back();
    const Equation& equation = *scope.equations[scope.equation];
    const int memory = whole.place.memory;
    if (!equation.inputs[operand].is_var() || !is_owned_memory(scope, memory)) return;
    std::vector<std::size_t> parts;
    std::int64_t size = 0;
    for (std::size_t var = 0; var < scope.vars.size(); ++var)
      if (scope.vars[var].place.memory == memory && scope.last_use[var] > int(scope.equation)) {
        parts.push_back(var);
        size += size_of_array(scope.vars[var].aval);
      }
    if (!is_read_once(scope, equation, memory) || 2 * size > size_of_array(whole.aval)) return;
    for (std::size_t var : parts) {
      const Tensor own = make(scopes_.back().vars[var].aval);
      copy(scopes_.back().vars[var], own,
           reader_of(scope, var) + " reads a part of what " + line_of(equation) + " overwrites");
      scopes_.back().vars[var] = own;
    }
  }

  // The arrays that are formulas still, and that an equation after this one reads.
  template <class Wanted>
  void compute_pending(const Wanted& wanted) {
    for (std::size_t s = 0; s < scopes_.size(); ++s)
      for (std::size_t var = 0; var < scopes_[s].vars.size(); ++var) {
        const Tensor tensor = scopes_[s].vars[var];
        if (tensor.formula && scopes_[s].last_use[var] > int(scopes_[s].equation) &&
            wanted(*tensor.formula))
          compute_now(tensor);
      }
  }
  void compute_pending() {
    compute_pending([](const Formula&) { return true; });
  }
  // The operand of an update, where what the update gives may be computed in its memory: it dies,
  // and no element of it is read once it is written, by this formula or by one that is still to be
  // computed.
  std::optional<Tensor> overwritten_by(const Equation& update, const Formula& formula) const {
    const int operand = update.primitive->overwritten();
    if (operand < 0 || !update.inputs[std::size_t(operand)].is_var()) return {};
    const Tensor& old =
        scopes_.back().vars[std::size_t(update.inputs[std::size_t(operand)].var().id)];
    if (!old.is_in_memory() || !is_whole(old) || !is_owned(std::size_t(operand))) return {};
    const Sizes64 shape = old.aval.shape.to_sizes();
    const Formula::Read written{old.place, old.strides};
    for (const Formula::Read& read : formula.reads)
      if (read.place.memory == old.place.memory && !is_same(read, written, shape)) return {};
    for (const Scope& scope : scopes_)
      for (std::size_t var = 0; var < scope.vars.size(); ++var) {
        const std::shared_ptr<const Formula>& other = scope.vars[var].formula;
        if (!other || other.get() == &formula || scope.last_use[var] <= int(scope.equation))
          continue;
        for (const Formula::Read& read : other->reads)
          if (read.place.memory == old.place.memory) return {};
      }
    return old;
  }
  // Wherever a formula stands, the array that it says.
  Tensor compute_now(const Tensor& tensor, const std::optional<Tensor>& home = {}) {
    const std::shared_ptr<const Formula> formula = tensor.formula;  // tensor may be one of the vars
    const Tensor made = home ? *home : in_memory(tensor);
    if (home) copy(tensor, *home);
    for (Scope& scope : scopes_)
      for (Tensor& var : scope.vars)
        if (var.formula == formula) var = {var.aval, {}, made.place, made.strides};
    return made;
  }

  // Whether it is all of its memory, in order.
  bool is_whole(const Tensor& tensor) const {
    const Whole& whole = wholes_[std::size_t(tensor.place.memory)];
    return tensor.place == whole.place && tensor.strides == dense(tensor.aval) &&
           size_of_array(tensor.aval) == whole.size;
  }

  // Whether one operand of the equation alone lies in a memory.
  static bool is_read_once(const Scope& scope, const Equation& equation, int memory) {
    return std::count_if(equation.inputs.begin(), equation.inputs.end(), [&](const Atom& atom) {
             return atom.is_var() && scope.vars[std::size_t(atom.var().id)].place.memory == memory;
           }) == 1;
  }

  static bool is_owned_memory(const Scope& scope, int memory) {
    const auto found = scope.owned.find(std::size_t(memory));
    return found != scope.owned.end() && found->second;
  }

  Tensor tensor_of(const Atom& atom) {
    if (atom.is_var()) return scopes_.back().vars[std::size_t(atom.var().id)];
    return {atom.literal().aval(), {literal(atom.literal())}};
  }
  Tensor operand_of(std::size_t operand) {
    const Scope& scope = scopes_.back();
    return tensor_of(scope.equations[scope.equation]->inputs[operand]);
  }

  // --- Reasons -----------------------------------------------------------------------------------

  // With the reason for it, unless there is an outer one. Few elements are numbers, which are
  // stored.
  void copy(const Tensor& from, const Tensor& to, const std::string& reason) {
    struct Restored {
      std::string& reason;
      const std::string before;
      ~Restored() { reason = before; }
    } restored{reason_, reason_};
    if (reason_.empty() && !is_few(to.aval)) reason_ = reason;
    copy(from, to);
  }
  // An equation, as a user knows it.
  static std::string line_of(const Equation& equation) {
    return equation.source ? "line " + std::to_string(equation.source->line)
                           : "`" + std::string(equation.primitive->name()) + "`";
  }
  // The equation behind this one that reads a var.
  static std::string reader_of(const Scope& scope, std::size_t var) {
    for (std::size_t e = scope.equation + 1; e < scope.equations.size(); ++e)
      for (const Atom& atom : scope.equations[e]->inputs)
        if (atom.is_var() && std::size_t(atom.var().id) == var) return line_of(*scope.equations[e]);
    return "the result";
  }
  Memory::Space space_of(const Tensor& tensor) const {
    return program_.memories[std::size_t(tensor.place.memory)].space;
  }
  // Why an operand of the equation is not written over.
  std::string why_kept(std::size_t operand, const Tensor& tensor) const {
    const Scope& scope = scopes_.back();
    const Equation& equation = *scope.equations[scope.equation];
    const std::string writer = line_of(equation);
    if (!equation.inputs[operand].is_var()) return {};
    const int memory = tensor.place.memory;
    if (space_of(tensor) == Memory::Space::operand) return writer + " overwrites an operand";
    if (!is_whole(tensor)) return writer + " overwrites a part of an array";
    if (!is_owned_memory(scope, memory)) return writer + " overwrites what every step reads";
    for (std::size_t var = 0; var < scope.vars.size(); ++var)
      if (scope.vars[var].place.memory == memory && scope.last_use[var] > int(scope.equation))
        return reader_of(scope, var) + " reads what " + writer + " overwrites";
    return writer + " reads it twice";
  }
  // Why what a step gives is not where the next one expects it.
  std::string why_moved(const Carried& carried, const Tensor& next) const {
    if (!next.is_in_memory()) return {};
    if (is_home(carried, next.place.memory)) return "the next value is another carry";
    if (next.place.memory < carried.first_memory) return "the next value is there before the loop";
    return is_whole(next) ? "the next value is made elsewhere"
                          : "the next value is a part of an array";
  }

  // --- Carries -----------------------------------------------------------------------------------

  Carried begin_carries(Statement& loop, std::size_t num_carry) {
    Carried carried;
    for (std::size_t i = 0; i < num_carry; ++i) {
      const Tensor operand = operand_of(i);
      if (is_few(operand.aval)) {
        carried.firsts.push_back(elements_of(operand));
        carried.inside.push_back({operand.aval});
        for (Value first : carried.firsts.back()) loop.carries.push_back({-1, first, -1, -1});
      } else {
        carried.firsts.emplace_back();
        carried.inside.push_back(to_overwrite(i));
      }
    }
    carried.first_memory = int(program_.memories.size());
    return carried;
  }

  void enter_carries(Statement& loop, Carried& carried,
                     const std::vector<std::optional<Range>>& ranges) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < carried.inside.size(); ++i)
      for (std::size_t e = 0; e < carried.firsts[i].size(); ++e, ++next) {
        Statement::Carry& carry = loop.carries[next];
        carry.value = define(dtype(carry.first), open_.size() - 1,
                             ranges.empty() ? std::nullopt : ranges[next]);
        carried.inside[i].elements.push_back(carry.value);
      }
  }

  // The same of numbers alone.
  Values carry_numbers(Statement& loop, const Values& first) {
    Values inside;
    for (const Value each : first) {
      inside.push_back(define(dtype(each), open_.size() - 1, {}));
      loop.carries.push_back({inside.back(), each, -1, -1});
    }
    return inside;
  }
  static void end_numbers(Statement& loop, const Values& next) {
    for (std::size_t i = 0; i < next.size(); ++i) loop.carries[i].next = next[i];
  }
  Values last_numbers(Statement loop) {
    Values last;
    for (Statement::Carry& carry : loop.carries)
      last.push_back(carry.last = define(dtype(carry.first), open_.size() - 1, {}));
    emit(std::move(loop));
    return last;
  }

  // What grows by a known number is the sum of its first value and the steps, where no step leaves
  // its range.
  void count_in_steps(const Statement& loop, const Carried& carried,
                      std::span<const std::optional<std::int64_t>> growth) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < carried.firsts.size(); ++i)
      for (std::size_t e = 0; e < carried.firsts[i].size(); ++e, ++next) {
        const Statement::Carry& carry = loop.carries[next];
        if (!growth[i] || !info_[std::size_t(carry.value)].range) continue;
        const std::optional<Index> first = linear(carry.first);
        if (!first) continue;
        Place sum{0, first->offset, first->terms};
        loops::add_index(sum, {0, {{loop.value, 1}}}, *growth[i]);
        linear_[carry.value] = {sum.offset, std::move(sum.terms)};
      }
  }

  // The values of the next step go where those of this one were.
  void end_step(Statement& loop, const Carried& carried, Next step) {
    const Tensors& outputs = step.carries;
    std::vector<Copy> copies;
    for (const auto& [from, to] : step.copies)
      if (from.formula)
        copies.push_back({from, to});
      else
        copy(from, to, "every step has its part of the result");
    std::size_t next = 0;
    for (std::size_t i = 0; i < carried.inside.size(); ++i)
      if (!carried.inside[i].is_in_memory())
        for (Value value : elements_of(outputs[i])) loop.carries[next++].next = value;
    const auto is_at_home = [&](std::size_t i) {
      return outputs[i].is_in_memory() && outputs[i].place == carried.inside[i].place &&
             outputs[i].strides == carried.inside[i].strides;
    };
    for (std::size_t i = 0; i < carried.inside.size(); ++i)
      if (carried.inside[i].is_in_memory() && !is_at_home(i))
        copies.push_back({outputs[i], carried.inside[i], why_moved(carried, outputs[i])});
    exchange_pairs(loop, carried, copies);
    exchange(loop, carried, copies);
    if (example_)
      for (const auto& pair : loop.exchanged) {
        const Whole& whole = wholes_[std::size_t(pair[0])];
        loop.regions.push_back({whole.place, {whole.size}, {1}});
      }
    copy_together(std::move(copies));
  }

  static std::ptrdiff_t uses_of(const std::vector<Copy>& copies, int memory) {
    return std::count_if(copies.begin(), copies.end(), [&](const Copy& copy) {
      return copy.from.is_in_memory() && copy.from.place.memory == memory;
    });
  }
  static bool is_home(const Carried& carried, int memory) {
    return std::any_of(carried.inside.begin(), carried.inside.end(), [&](const Tensor& home) {
      return home.is_in_memory() && home.place.memory == memory;
    });
  }
  // Whether a copy goes to a home that may be another one.
  bool may_move(const Carried& carried, const Copy& copy) const {
    return is_whole(copy.to) && is_home(carried, copy.to.place.memory) &&
           size_of_array(copy.to.aval) >= fewest_moved;
  }

  // Two carries, each of which becomes the other one, are not copied: their homes change places.
  void exchange_pairs(Statement& loop, const Carried& carried, std::vector<Copy>& copies) const {
    const auto becomes = [&](const Copy& copy, const Copy& other) {
      return copy.from.is_in_memory() && is_whole(copy.from) && may_move(carried, copy) &&
             copy.from.place.memory == other.to.place.memory &&
             uses_of(copies, copy.from.place.memory) == 1;
    };
    for (std::size_t i = 0; i < copies.size(); ++i)
      for (std::size_t j = i + 1; j < copies.size(); ++j) {
        if (!becomes(copies[i], copies[j]) || !becomes(copies[j], copies[i])) continue;
        loop.exchanged.push_back({copies[i].to.place.memory, copies[j].to.place.memory});
        copies.erase(copies.begin() + std::ptrdiff_t(j));
        copies.erase(copies.begin() + std::ptrdiff_t(i--));
        break;
      }
  }

  // An array that a step makes, or that must wait for others to be read, is not copied to its home:
  // the home becomes another one. Removes the copies that need not be.
  void exchange(Statement& loop, const Carried& carried, std::vector<Copy>& copies) {
    std::vector<int> taken;  // memories that change places already
    for (const auto& pair : loop.exchanged) taken.insert(taken.end(), pair.begin(), pair.end());
    const auto is_free = [&](int memory) {
      return std::find(taken.begin(), taken.end(), memory) == taken.end();
    };
    const auto uses = [&](int memory) { return uses_of(copies, memory); };
    const auto moves = [&](const Copy& copy) {
      return may_move(carried, copy) && is_free(copy.to.place.memory);
    };
    // What is written where it will be is computed before anything that lies in memory is copied.
    for (std::size_t i = 0; i < copies.size(); ++i) {
      Copy& copy = copies[i];
      if (!copy.from.formula || !moves(copy) || !must_wait(copies, i)) continue;
      const int home = copy.to.place.memory;
      // Another carry becomes what this one was: each takes the other's memory.
      const auto other = std::find_if(copies.begin(), copies.end(), [&](const Copy& each) {
        return each.from.is_in_memory() && is_whole(each.from) && each.from.place.memory == home &&
               moves(each);
      });
      const bool is_pair = other != copies.end() && uses(home) == 1;
      const Tensor target = is_pair ? other->to : make(copy.to.aval);
      if (is_pair) {
        const Tensor old = std::exchange(copy.to, target);
        if (must_wait(copies, i)) {
          copy.to = old;
          continue;
        }
        other->to = other->from;
      } else {
        copy.to = target;
      }
      taken.insert(taken.end(), {home, target.place.memory});
      loop.exchanged.push_back({home, target.place.memory});
    }
    for (Copy& copy : copies) {
      if (!copy.from.is_in_memory() || !is_whole(copy.from) || !moves(copy)) continue;
      const int made = copy.from.place.memory, home = copy.to.place.memory;
      if (made < carried.first_memory || uses(made) > 1 || !is_free(made) ||
          program_.memories[std::size_t(made)].space != Memory::Space::frame)
        continue;
      copy.to = copy.from;
      taken.insert(taken.end(), {home, made});
      loop.exchanged.push_back({home, made});
    }
    std::erase_if(copies, [](const Copy& copy) {
      return copy.from.is_in_memory() && copy.from.place == copy.to.place;
    });
  }

  Tensors end_carries(Statement loop, const Carried& carried) {
    Tensors results;
    std::size_t next = 0;
    for (std::size_t i = 0; i < carried.inside.size(); ++i) {
      Tensor result = carried.inside[i];
      for (Value& element : result.elements) {
        Statement::Carry& carry = loop.carries[next++];
        carry.last = element = define(dtype(carry.first), open_.size() - 1, {});
      }
      results.push_back(std::move(result));
    }
    emit(std::move(loop));
    return results;
  }

  // --- Examples ----------------------------------------------------------------------------------

  static Whole whole_of(const Tensor& tensor) { return {tensor.place, size_of_array(tensor.aval)}; }
  Tensor one_of(const Tensor& all) const {
    Tensor one{all.aval, {}, all.place, {all.strides.begin() + 1, all.strides.end()}};
    one.aval.shape.erase(0);
    loops::add_index(one.place, example_->index, all.strides[0]);
    return one;
  }
  void run_example(const Tensors& operands, const Flags& batched, std::size_t num_overwritten,
                   const Tensors& results, const Example& f) {
    Tensors ones;
    Flags owned(operands.size(), false);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Tensor one = batched[i] ? one_of(operands[i]) : operands[i];
      if (is_few(one.aval)) one = {one.aval, elements_of(one)};
      owned[i] = batched[i] && i < num_overwritten && one.is_in_memory();
      if (owned[i]) wholes_[std::size_t(one.place.memory)] = whole_of(one);
      ones.push_back(std::move(one));
    }
    const Tensors next = f(std::move(ones), owned);
    std::vector<Copy> copies;
    for (std::size_t i = 0; i < next.size(); ++i) {
      const Tensor home = one_of(results[i]);
      if (!next[i].is_in_memory() || next[i].place != home.place || next[i].strides != home.strides)
        copies.push_back({next[i], home, "the results of examples lie together"});
    }
    copy_together(std::move(copies));
  }

  // Whether it may differ between the examples.
  bool is_of_example(Value value) const {
    return info_[std::size_t(value)].level >= example_->level;
  }
  bool is_of_example(const Place& place) const {
    return std::size_t(place.memory) >= example_->first_memory ||
           !wholes_[std::size_t(place.memory)].place.terms.empty() ||
           std::any_of(place.terms.begin(), place.terms.end(),
                       [&](const Place::Term& term) { return is_of_example(term.index); });
  }
  bool is_of_example(const Tensor& tensor) const {
    if (tensor.is_in_memory()) return is_of_example(tensor.place);
    if (!tensor.formula)
      return std::any_of(tensor.elements.begin(), tensor.elements.end(),
                         [&](Value element) { return is_of_example(element); });
    const std::vector<Formula::Read>& reads = tensor.formula->reads;
    return reads.empty() || std::any_of(reads.begin(), reads.end(), [&](const Formula::Read& read) {
             return is_of_example(read.place);
           });
  }

  // Whether bodies of control flow run once for each example, which kernels would bring together.
  bool runs_apart(const Equation& equation, const Tensors& operands) const {
    if (!example_) return false;
    Flags own;
    for (const Tensor& operand : operands) own.push_back(is_of_example(operand));
    return diverges(equation, own) && !is_cheap_together(equation);
  }
  // So many more of them have run for the example.
  void count_bodies(Value count) {
    const std::int64_t size = example_->count;
    auto known = std::find_if(counts_.begin(), counts_.end(),
                              [&](const auto& entry) { return entry.first == size; });
    if (known == counts_.end())
      known = counts_.insert(known,
                             {size, add_memory(Memory::Space::counts, 0, {{size}, DType::int64})});
    Place place{known->second};
    loops::add_index(place, example_->index, 1);
    store(place, compute(add_p, {}, {load(place), count}, {}));
  }
  // At the beginning of the program there are none.
  void begin_counts(int memory, std::int64_t size) {
    Statement each, zero;
    each.kind = Kind::repeat;
    each.steps = size;
    each.is_parallel = true;
    each.value = define(DType::int64, 1, Range{0, size - 1});
    zero.kind = Kind::store;
    zero.operands = {integer(0)};
    zero.place = {memory, 0, {{each.value, 1}}};
    each.blocks = {{zero}};
    program_.body.insert(program_.body.begin(), std::move(each));
  }

  // --- Equations ---------------------------------------------------------------------------------

  // The equations of a program, with what overwrites an operand behind what reads it, where nothing
  // else decides.
  static std::vector<const Equation*> readers_first(const JaxprData& program) {
    std::vector<const Equation*> equations;
    for (const Equation& equation : program.equations) equations.push_back(&equation);
    for (std::size_t e = 0; e < equations.size(); ++e) {
      const int operand = equations[e]->primitive->overwritten();
      if (operand < 0 || !equations[e]->inputs[std::size_t(operand)].is_var()) continue;
      const Atom whole = equations[e]->inputs[std::size_t(operand)];
      const auto reads = [](const Equation& equation, const Atom& atom) {
        return std::find(equation.inputs.begin(), equation.inputs.end(), atom) !=
               equation.inputs.end();
      };
      std::size_t last = e;
      for (std::size_t later = e + 1; later < equations.size(); ++later)
        if (reads(*equations[later], whole)) last = later;
      // What depends on the new array stays behind it.
      std::vector<Var> known(equations[e]->outputs.begin(), equations[e]->outputs.end());
      std::vector<const Equation*> before, behind{equations[e]};
      bool may_move = last > e;
      for (std::size_t i = e + 1; may_move && i <= last; ++i) {
        const Equation& equation = *equations[i];
        const bool depends = std::any_of(known.begin(), known.end(),
                                         [&](Var var) { return reads(equation, Atom(var)); });
        may_move = !is_effectful(equation) && !(depends && reads(equation, whole));
        if (depends) known.insert(known.end(), equation.outputs.begin(), equation.outputs.end());
        (depends ? behind : before).push_back(&equation);
      }
      if (!may_move || before.empty()) continue;
      before.insert(before.end(), behind.begin(), behind.end());
      std::copy(before.begin(), before.end(), equations.begin() + std::ptrdiff_t(e));
    }
    return equations;
  }

  Tensors lower_equations(const Jaxpr& program, Tensors inputs, const Flags& owned) {
    Scope scope{readers_first(*program), 0, std::vector<Tensor>(program->avals.size()), {}, {}, {}};
    scope.last_use.assign(program->avals.size(), -1);
    const int end = int(program->equations.size());
    for (int e = 0; e < end; ++e)
      for (const Atom& atom : scope.equations[std::size_t(e)]->inputs)
        if (atom.is_var()) scope.last_use[std::size_t(atom.var().id)] = e;
    for (const Atom& atom : program->outputs)
      if (atom.is_var()) scope.last_use[std::size_t(atom.var().id)] = end;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (owned[i] && inputs[i].is_in_memory())
        scope.owned[std::size_t(inputs[i].place.memory)] = true;
      scope.vars[i] = std::move(inputs[i]);
    }
    scopes_.push_back(std::move(scope));
    const Flags ends_in_results = for_results_only(*program);
    const std::vector<int> uses = num_uses(*program);
    for (int e = 0; e < end; ++e) {
      scopes_.back().equation = std::size_t(e);
      const Equation& equation = *scopes_.back().equations[std::size_t(e)];
      for (Var var : equation.outputs) require_plain(program->avals[std::size_t(var.id)]);
      const bool holds_programs = !bodies_of(equation).empty();
      Tensors operands;
      for (const Atom& atom : equation.inputs) {
        operands.push_back(tensor_of(atom));
        const Formula* const formula = operands.back().formula.get();
        if (formula &&
            (holds_programs || (!formula->cuts.empty() && !keeps_cuts(*equation.primitive))))
          operands.back() = compute_now(operands.back());
      }
      const auto choice = scopes_.back().chosen.find(&equation);
      Tensors outputs = choice == scopes_.back().chosen.end()
                            ? lower_or_mask(*program, equation, operands, uses)
                            : Tensors{tensor_of(choice->second)};
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const std::size_t var = std::size_t(equation.outputs[i].id);
        outputs[i].aval = program->avals[var];
        outputs[i] = folded(std::move(outputs[i]));
        if (is_few(outputs[i].aval)) outputs[i] = {outputs[i].aval, elements_of(outputs[i])};
        const std::shared_ptr<const Formula> formula = outputs[i].formula;
        scopes_.back().vars[var] = std::move(outputs[i]);
        const bool is_for_results = ends_in_results[var] && formula && formula->work <= most_work;
        if (formula && !is_for_results &&
            (formula->work > most_work || (is_kept(*formula) && uses[var] > 1)))
          compute_now(scopes_.back().vars[var], overwritten_by(equation, *formula));
      }
    }
    Tensors results;
    for (const Atom& atom : program->outputs) results.push_back(tensor_of(atom));
    const Scope done = std::move(scopes_.back());
    scopes_.pop_back();
    if (!scopes_.empty()) scopes_.back().owned.insert(done.owned.begin(), done.owned.end());
    return results;
  }

  // The choice between what an equation makes of an array and the array as it was, by one number
  // that is known, if nothing reads either of them otherwise: v = update(u), select(p, u, v).
  const Equation* choice_after(const Equation& update, const std::vector<int>& uses) const {
    const Scope& scope = scopes_.back();
    const int overwritten = update.primitive->overwritten();
    if (overwritten < 0 || !update.inputs[std::size_t(overwritten)].is_var() ||
        uses[std::size_t(update.outputs[0].id)] != 1)
      return nullptr;
    const Atom old = update.inputs[std::size_t(overwritten)], made = update.outputs[0];
    const auto last = std::size_t(scope.last_use[std::size_t(old.var().id)]);
    if (last >= scope.equations.size()) return nullptr;
    const Equation& choice = *scope.equations[last];
    if (*choice.primitive != select_p || !choice.inputs[0].is_var() ||
        scope.vars[std::size_t(choice.inputs[0].var().id)].elements.size() != 1)
      return nullptr;
    const Atom &a = choice.inputs[1], &b = choice.inputs[2];
    if (!(a == old && b == made) && !(a == made && b == old)) return nullptr;
    for (std::size_t e = scope.equation + 1; e < last; ++e)
      if (std::find(scope.equations[e]->inputs.begin(), scope.equations[e]->inputs.end(), old) !=
          scope.equations[e]->inputs.end())
        return nullptr;
    return &choice;
  }
  // An equation whose stores in the array that it overwrites are masked, where a choice decides
  // afterwards whether the array stays as it was.
  Tensors lower_or_mask(const JaxprData& program, const Equation& equation, const Tensors& operands,
                        const std::vector<int>& uses) {
    const Equation* const choice = choice_after(equation, uses);
    if (!choice) return lower_equation(program, equation, operands);
    const auto operand = std::size_t(equation.primitive->overwritten());
    const auto old = std::size_t(equation.inputs[operand].var().id);
    const int last_use = std::exchange(scopes_.back().last_use[old], int(scopes_.back().equation));
    const Tensor& whole = operands[operand];
    if (whole.is_in_memory() && is_whole(whole) && is_owned(operand)) {
      mask_ = {whole.place.memory, tensor_of(choice->inputs[0]).elements[0],
               choice->inputs[2] == Atom(equation.outputs[0])};
      Tensors outputs = lower_equation(program, equation, operands);
      mask_.reset();
      if (outputs[0].place.memory == whole.place.memory)
        scopes_.back().chosen[choice] = equation.outputs[0];
      else  // a kernel made it, in memory of its own
        scopes_.back().last_use[old] = last_use;
      return outputs;
    }
    scopes_.back().last_use[old] = last_use;
    return lower_equation(program, equation, operands);
  }
  bool is_masked(int memory) const { return mask_ && mask_->memory == memory; }

  Tensors lower_equation(const JaxprData& program, const Equation& equation,
                         const Tensors& operands) {
    std::vector<Aval> inputs, outputs;
    for (const Tensor& operand : operands) inputs.push_back(operand.aval);
    for (Var var : equation.outputs) outputs.push_back(program.avals[std::size_t(var.id)]);
    const bool may_call = !is_effectful(equation) && bodies_of(equation).empty() &&
                          !holds_callable(equation.params) && !equation.outputs.empty();
    is_counted_ = runs_apart(equation, operands);
    if (setting_.is_taken(equation, inputs, outputs)) {
      if (!may_call) refuse("a library takes `" + std::string(equation.primitive->name()) + "`");
      return call(equation, operands, outputs);
    }
    if (const Emit::Rule* emit = Emit::table().find(*equation.primitive)) {
      // Rules give lists of more numbers than are few in a program without loops, and read arrays
      // that are not few at any index.
      Tensors readable = operands;
      for (Tensor& operand : readable)
        if (operand.elements.size() > 1 && !is_few(operand.aval)) operand = in_memory(operand);
      const std::size_t before = changes_;
      try {
        return (*emit)(*this, equation, readable);
      } catch (const Refused&) {
        if (!may_call || changes_ != before) throw;
      }
      return call(equation, operands, outputs);
    }
    if (outputs.size() == 1 && Pointwise::table().find(*equation.primitive))
      return {elementwise(equation, operands, outputs[0])};
    const Alias::Rule* alias = Alias::table().find(*equation.primitive);
    if (alias && operands.size() == 1 && outputs.size() == 1 &&
        operands[0].aval.dtype == outputs[0].dtype)
      return {view_of(*alias, equation, operands[0], outputs[0])};
    if (!may_call) refuse("`" + std::string(equation.primitive->name()) + "`");
    return call(equation, operands, outputs);
  }

  // A kernel that reads its operands where they lie.
  Tensors call(const Equation& equation, const Tensors& operands,
               const std::vector<Aval>& outputs) {
    if (!setting_.has_kernels) refuse("`" + std::string(equation.primitive->name()) + "`");
    std::vector<Aval> inputs;
    for (const Tensor& operand : operands) inputs.push_back(operand.aval);
    Tensors read;
    std::vector<int> seen;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Atom& atom = equation.inputs[i];
      if (!atom.is_var() || std::find(seen.begin(), seen.end(), atom.var().id) != seen.end())
        continue;
      seen.push_back(atom.var().id);
      read.push_back(operands[i].formula ? compute_now(tensor_of(atom)) : in_memory(operands[i]));
    }
    program_.fails_by_example |= example_.has_value();
    return call(program_of(equation, inputs), read, outputs, {});
  }
  // keys: of the first operand, which are known to lie there.
  Tensors call(const Jaxpr& program, std::span<const Tensor> operands,
               const std::vector<Aval>& outputs, std::optional<Range> keys) {
    Call call{program, {}, {}};
    Statement statement;
    statement.kind = Kind::call;
    const Equation& equation = program->equations[0];
    statement.source = equation.source;
    if (keys) statement.low = keys->low, statement.high = keys->high;
    for (const Tensor& operand : operands) {
      call.strides.push_back(operand.strides);
      statement.places.push_back(folded(operand.place));
    }
    call.kernel = setting_.kernel(call.program, call.strides);
    if (!call.kernel) refuse("`" + std::string(equation.primitive->name()) + "`");
    Tensors results;
    for (const Aval& aval : outputs) {
      results.push_back(make(aval));
      statement.places.push_back(results.back().place);
    }
    statement.call = std::make_shared<const Call>(std::move(call));
    ++writes_;
    emit(std::move(statement));
    return results;
  }

  // Whether several uses are worth memory. Loops that are cut have no tests for parts.
  static bool is_kept(const Formula& formula) {
    return formula.work - (formula.cuts.empty() ? 0 : cheap) > cheap;
  }
  // Whether the result's loops are cut where those of an operand would be.
  static bool keeps_cuts(const Primitive& primitive) {
    return Pointwise::table().find(primitive) || Alias::table().find(primitive) ||
           primitive == pad_p || primitive == concatenate_p || primitive == dynamic_slice_p ||
           primitive == dynamic_update_slice_p;
  }

  // By var: whether only results of the program are made of it, element by element. They are
  // computed together.
  static Flags for_results_only(const JaxprData& program) {
    Flags ends(program.avals.size(), true);
    for (std::size_t e = program.equations.size(); e-- > 0;) {
      const Equation& equation = program.equations[e];
      const bool is_elementwise =
          equation.outputs.size() == 1 && Pointwise::table().find(*equation.primitive);
      for (const Atom& atom : equation.inputs) {
        if (!atom.is_var()) continue;
        const auto var = std::size_t(atom.var().id);
        const auto result = std::size_t(equation.outputs.empty() ? 0 : equation.outputs[0].id);
        if (!is_elementwise || !ends[result] ||
            program.avals[var].shape != program.avals[result].shape)
          ends[var] = false;
      }
    }
    return ends;
  }
  // By var: in how many equations it is read, the results of the program being one more each.
  static std::vector<int> num_uses(const JaxprData& program) {
    std::vector<int> uses(program.avals.size(), 0);
    std::vector<int> last(program.avals.size(), -1);
    for (std::size_t e = 0; e < program.equations.size(); ++e)
      for (const Atom& atom : program.equations[e].inputs)
        if (atom.is_var() && std::exchange(last[std::size_t(atom.var().id)], int(e)) != int(e))
          ++uses[std::size_t(atom.var().id)];
    for (const Atom& atom : program.outputs)
      if (atom.is_var()) ++uses[std::size_t(atom.var().id)];
    return uses;
  }

  Tensor elementwise_formula(const Equation& equation, Tensors operands, const Aval& result) {
    for (Tensor& operand : operands)
      if (is_few(operand.aval)) operand = {operand.aval, elements_of(operand)};
    Formula formula;
    formula.work = work_of_one(*equation.primitive);
    formula.is_by_reads = std::all_of(operands.begin(), operands.end(), [&](const Tensor& operand) {
      return operand.formula ? operand.formula->is_by_reads
                             : operand.is_in_memory() || operand.elements.size() == 1;
    });
    for (const Tensor& operand : operands) {
      const std::vector<Formula::Read> reads = reads_of(operand);
      formula.reads.insert(formula.reads.end(), reads.begin(), reads.end());
      if (!operand.formula) continue;
      formula.work += operand.formula->work;
      for (const Formula::Cut& cut : operand.formula->cuts)
        if (operand.aval.shape == result.shape) add_cut(formula, cut, result);
    }
    formula.element = [this, operands, primitive = equation.primitive, params = equation.params,
                       source = equation.source](std::span<const Index> indices) {
      Values of_one;
      for (const Tensor& operand : operands) of_one.push_back(element(operand, indices));
      return compute(*primitive, params, std::move(of_one), source);
    };
    return computed(result, std::move(formula));
  }

  // In additions: what is slow to compute is computed once.
  static double work_of_one(const Primitive& primitive) {
    constexpr double division = 4, function = 10;
    if (primitive == div_p || primitive == rem_p) return division;
    return moves_as(primitive, Motion::cheap) || moves_as(primitive, Motion::layout) ? 1 : function;
  }

  Tensor elementwise(const Equation& equation, const Tensors& operands, const Aval& result) {
    // Rules give lists of more numbers than are few in a program without loops.
    const bool is_list = std::any_of(operands.begin(), operands.end(), [](const Tensor& operand) {
      return operand.elements.size() > 1;
    });
    if (!is_few(result) && !is_list) return elementwise_formula(equation, operands, result);
    std::vector<Values> elements;
    for (const Tensor& operand : operands) elements.push_back(elements_of(operand));
    Tensor tensor{result};
    for (std::size_t e = 0; e < std::size_t(size_of_array(result)); ++e) {
      Values of_one;
      for (const Values& values : elements) of_one.push_back(values[values.size() == 1 ? 0 : e]);
      tensor.elements.push_back(
          compute(*equation.primitive, equation.params, std::move(of_one), equation.source));
    }
    return tensor;
  }

  // A view of the operand, as the rule Alias makes it of memory that is not there.
  Tensor view_of(const Alias::Rule& alias, const Equation& equation, const Tensor& operand,
                 const Aval& result) {
    static char* const pretended = reinterpret_cast<char*>(std::uintptr_t(1) << 40);
    if (operand.formula) return view_of_formula(alias, equation, operand, result);
    const bool is_list = !operand.is_in_memory();
    if (is_list && !is_few(result)) {
      if (operand.elements.size() > 1) return view_of(alias, equation, in_memory(operand), result);
      Formula formula{[value = operand.elements[0]](std::span<const Index>) { return value; }};
      formula.is_by_reads = true;
      return computed(result, std::move(formula));
    }
    const DType dtype = operand.aval.dtype;
    const std::optional<View> view = alias(View{pretended, dtype, operand.aval.shape.to_sizes(),
                                                is_list ? dense(operand.aval) : operand.strides},
                                           result.shape.to_sizes(), equation.params);
    if (!view) {
      const Tensor own = make(operand.aval);
      copy(operand, own, line_of(equation) + " needs its elements in order");
      return view_of(alias, equation, own, result);
    }
    Tensor seen{result, {}, operand.place, view->strides};
    seen.place.offset += (static_cast<char*>(view->data) - pretended) / size_of(dtype);
    if (!is_list) return seen;
    Tensor list{result};
    for_each_element(seen, [&](const Place& place) {
      list.elements.push_back(operand.elements[std::size_t(place.offset)]);
    });
    return list;
  }

  Tensor view_of_formula(const Alias::Rule& alias, const Equation& equation, const Tensor& operand,
                         const Aval& result) {
    static char* const pretended = reinterpret_cast<char*>(std::uintptr_t(1) << 40);
    const DType dtype = operand.aval.dtype;
    const Sizes64 shape = operand.aval.shape.to_sizes(), sizes = result.shape.to_sizes();
    const std::optional<View> view =
        alias(View{pretended, dtype, shape, dense(operand.aval)}, sizes, equation.params);
    // A view that repeats elements would compute them again, which is no more than to load them
    // where they are made of their index alone.
    const bool is_of_index = operand.formula->reads.empty() && operand.formula->work <= cheap;
    const bool repeats =
        num_elements(sizes) > num_elements(shape) && operand.formula->work > 0 && !is_of_index;
    std::optional<IndexMap> map;
    if (view && !repeats)
      map = index_map((static_cast<char*>(view->data) - pretended) / size_of(dtype), view->strides,
                      sizes, shape);
    const auto is_lost = [&](const Formula::Cut& cut) {  // a cut that goes along several axes
      const Sizes64& steps = map->steps[std::size_t(cut.axis)];
      return std::count(steps.begin(), steps.end(), 0) + 1 < std::ptrdiff_t(steps.size());
    };
    if (map && std::any_of(operand.formula->cuts.begin(), operand.formula->cuts.end(), is_lost))
      map.reset();
    if (!map) return view_of(alias, equation, compute_now(operand), result);
    Formula formula;
    formula.work = operand.formula->work;
    formula.is_by_reads = operand.formula->is_by_reads;
    for (const Formula::Read& read : operand.formula->reads)
      formula.reads.push_back(through(*map, read));
    for (const Formula::Cut& cut : operand.formula->cuts)
      if (const std::optional<Formula::Cut> seen = through(*map, cut))
        add_cut(formula, *seen, result);
    formula.element = [this, operand, map = *map](std::span<const Index> indices) {
      return element(operand, indices_through(map, indices));
    };
    return computed(result, std::move(formula));
  }

  // --- Results -----------------------------------------------------------------------------------

  // The memory of the result, or a copy of what lies elsewhere or is a result already.
  void write_result(int number, const Tensor& tensor) {
    if (tensor.is_in_memory() && is_whole(tensor)) {
      Memory& memory = program_.memories[std::size_t(tensor.place.memory)];
      if (memory.space == Memory::Space::frame) {
        memory.space = Memory::Space::result, memory.index = number;
        return;
      }
    }
    const char* const reason = !tensor.is_in_memory() ? ""
                               : !is_whole(tensor)    ? "the result is a part of an array"
                               : space_of(tensor) == Memory::Space::operand
                                   ? "the result is an operand"
                                   : "the result is another result too";
    copy(tensor,
         {tensor.aval,
          {},
          {add_memory(Memory::Space::result, number, tensor.aval)},
          dense(tensor.aval)},
         reason);
  }

  // Formulas that are computed again rather than kept, and those that are computed at once.
  static constexpr double cheap = 2, most_work = 1000;
  static constexpr std::int64_t fewest_lanes = 4;
  static constexpr std::int64_t fewest_moved = 64;  // elements of what changes places
  static constexpr Range all_int64{std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()};

  // Whether an array is a list of numbers.
  bool is_few(const Aval& aval) const { return size_of_array(aval) <= setting_.few; }

  const Setting& setting_;
  LoopProgram program_;
  std::string reason_;  // of the copy that is being written
  // Memory that stores change only where a number is false, or only where it is true.
  struct Mask {
    int memory;
    Value holds;
    bool keeps_where_true;
  };
  std::optional<Mask> mask_;
  std::optional<OneExample> example_;
  bool is_counted_ = false;                           // control flow that is being lowered
  std::vector<std::pair<std::int64_t, int>> counts_;  // by number of examples: memory
  std::uint64_t writes_ = 0;
  std::size_t changes_ = 0;                  // statements and memories that were added
  std::vector<Info> info_;                   // by value
  std::unordered_map<Value, Index> linear_;  // of values that are sums of others
  std::vector<std::uint64_t> versions_;      // by memory: changes with every write
  std::vector<Whole> wholes_;                // by memory
  std::vector<Open> open_;                   // by level
  std::vector<Scope> scopes_;
};

}  // namespace

Jaxpr program_of(const Equation& equation, std::span<const Aval> inputs) {
  Builder builder;
  std::vector<Atom> atoms = equation.inputs;
  std::unordered_map<int, Var> binders;
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    if (!atoms[i].is_var()) continue;
    const auto [binder, is_new] = binders.try_emplace(atoms[i].var().id);
    if (is_new) binder->second = builder.add_binder(inputs[i]);
    atoms[i] = binder->second;
  }
  const std::vector<Var> outputs =
      builder.add(*equation.primitive, std::move(atoms), equation.params, equation.source);
  return builder.close({outputs.begin(), outputs.end()});
}

Jaxpr program_of(const JaxprData& program, std::span<const int> equations,
                 std::span<const int> results) {
  Builder builder;
  std::unordered_map<int, Var> vars;
  for (const int index : equations)
    for (const Var var : program.equations[std::size_t(index)].outputs) vars[var.id] = {-1};
  for (const int index : equations)
    for (const Atom& atom : program.equations[std::size_t(index)].inputs)
      if (atom.is_var() && !vars.count(atom.var().id))
        vars[atom.var().id] = builder.add_binder(program.aval(atom));
  for (const int index : equations) {
    const Equation& equation = program.equations[std::size_t(index)];
    std::vector<Atom> atoms = equation.inputs;
    for (Atom& atom : atoms)
      if (atom.is_var()) atom = vars.at(atom.var().id);
    const std::vector<Var> outputs =
        builder.add(*equation.primitive, std::move(atoms), equation.params, equation.source);
    for (std::size_t i = 0; i < outputs.size(); ++i) vars[equation.outputs[i].id] = outputs[i];
  }
  std::vector<Atom> outputs;
  for (const int result : results) outputs.push_back(vars.at(result));
  return builder.close(std::move(outputs));
}

std::int64_t reach_of(const Sizes64& sizes, const Sizes64& strides) {
  std::int64_t last = 0;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) last += (sizes[axis] - 1) * strides[axis];
  return last + 1;
}

Lowered lower(const Jaxpr& group, std::span<const Sizes64> strides, const Setting& setting) {
  try {
    return {Lowering(setting).run(group, strides), {}};
  } catch (Refused& refused) {
    return {{}, std::move(refused.reason)};
  }
}

}  // namespace plait::codegen
