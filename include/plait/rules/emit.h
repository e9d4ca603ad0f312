// The rule kind Emit: an equation as statements of a loop program (lib/codegen), in which a loop of
// the user's, whatever its body, is one loop over numbers and memory.
//
// An array of few elements is a list of numbers. A larger one is a view of memory, whose start may
// depend on numbers, or a formula: what each of its elements is made of. A rule says what the
// results are made of. It decides nothing about memory: the writer knows what may be written over,
// copies the rest, and computes a formula where its elements are needed.
//
//   elementwise families   each element from the elements of the operands: nothing is stated
//   movement               a view of the same memory, by the rule Alias: nothing is stated
//   others                 state a rule, or loops that hold them run step by step
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/rules/bodies.h>
#include <plait/rules/rules.h>

namespace plait {
namespace loops {

using Value = int;  // a number, defined once; its number in the program
using Values = std::vector<Value>;

// An element of memory: at offset + sum(index * stride), in elements.
struct Place {
  struct Term {
    Value index;  // an int64
    std::int64_t stride;
    bool operator==(const Term&) const = default;
  };
  int memory = -1;
  std::int64_t offset = 0;
  std::vector<Term> terms = {};
  bool operator==(const Place&) const = default;
};

// An index along an axis: offset + sum(index * stride).
struct Index {
  std::int64_t offset = 0;
  std::vector<Place::Term> terms = {};
  bool operator==(const Index&) const = default;
};
using Indices = std::vector<Index>;

// What the elements of an array are made of that no memory holds.
struct Formula {
  std::function<Value(std::span<const Index> indices)> element;
  // What it reads: memory from a place on, with a distance for each of its axes, or anywhere.
  struct Read {
    Place place;
    Sizes64 strides = {};
    bool is_anywhere = false;
  };
  std::vector<Read> reads = {};
  double work = 0;  // operations of an element
  // Where along an axis it begins to be made of something else: loops are split there.
  struct Cut {
    int axis;
    std::int64_t at;
    bool operator==(const Cut&) const = default;
  };
  std::vector<Cut> cuts = {};
  // Whether an element depends on its indices by what it reads there alone. Indices that go on
  // behind an axis are then those of the next one, where memory goes on so.
  bool is_by_reads = false;
};

// An array.
struct Tensor {
  Aval aval;
  Values elements = {};  // row-major, of an array of few
  Place place = {};      // of any other: its first element, and the distance of the next ones
  Sizes64 strides = {};
  std::shared_ptr<const Formula> formula = {};  // of one that no memory holds

  bool is_in_memory() const { return place.memory >= 0; }
};
using Tensors = std::vector<Tensor>;

inline constexpr std::int64_t few = 8;

// The smallest and the largest value of an integer, as far as they are known.
struct Range {
  std::int64_t low, high;
};

class Writer {
 public:
  virtual ~Writer() = default;

  // --- Numbers -----------------------------------------------------------------------------------

  virtual Value literal(const Literal& literal) = 0;
  Value integer(std::int64_t value) { return literal(Literal{DType::int64, false, value, 0, 0}); }
  // The result of an elementwise primitive.
  virtual Value compute(const Primitive& primitive, const Params& params, Values operands,
                        Source source) = 0;
  virtual Value load(const Place& place) = 0;
  virtual void store(const Place& place, Value value) = 0;
  // An integer as an int64, and moved to the nearest one from low to high.
  virtual Value index(Value integer) = 0;
  virtual Value clamped(Value index, std::int64_t low, std::int64_t high) = 0;
  // Calls raise with an index that is not from low to high, when the statement runs.
  virtual void check(Value index, std::int64_t low, std::int64_t high,
                     std::function<void(std::int64_t)> raise, Source source) = 0;

  // An index of which checks before this have shown that it is from low to high. It is known to be
  // so here and in inner blocks, not where the checks do not run.
  virtual Value checked(Value index, std::int64_t low, std::int64_t high) = 0;

  virtual Value number(const Index& index) = 0;  // as an int64
  virtual Range range(const Index& index) const = 0;
  // Combines what `terms` gives for an index from 0 to count - 1: by an elementwise primitive whose
  // `identity` that is, or, by dot_general, as the sum of products of two. in_order: one after the
  // other, else in eight interleaved parts, as NOTE: [reduction order] says; at most 1024.
  virtual Value combine(const Primitive& by, Value identity, std::int64_t count, bool in_order,
                        const std::function<Values(const Index& index)>& terms, Source source) = 0;

  // The same for an index at each index of a shape, in order.
  virtual void check_each(const Shape& shape,
                          const std::function<Value(std::span<const Index>)>& index_at,
                          std::int64_t low, std::int64_t high,
                          std::function<void(std::int64_t)> raise, Source source) = 0;

  // --- Arrays ------------------------------------------------------------------------------------

  virtual Value element(const Tensor& tensor, std::span<const Index> indices) = 0;
  virtual Values elements_of(const Tensor& tensor) = 0;
  // The array that a formula says.
  virtual Tensor computed(const Aval& aval, Formula formula) = 0;
  // The same now, for formulas that combine, in_order or not. Where what they read is contiguous
  // along an axis of the array decides which loop is the inner one.
  virtual Tensor combined(const Aval& aval, const Formula& formula, bool in_order) = 0;
  // The same into memory.
  virtual void combine_into(const Tensor& to, const Formula& formula, bool in_order) = 0;
  // An array in which others lie, each from an index on, apart from each other. elsewhere: what the
  // rest holds, if there is any: an array of the same shape, or one number.
  struct Part {
    Tensor tensor;
    Sizes64 start;
  };
  virtual Tensor composed(const Aval& aval, const std::vector<Part>& parts,
                          const std::optional<Tensor>& elsewhere, Source source) = 0;
  // What the formula of an array reads that is made of this one.
  static std::vector<Formula::Read> reads_of(const Tensor& tensor);
  virtual Tensor in_memory(const Tensor& tensor) = 0;
  // Memory of its own, not yet written.
  virtual Tensor make(const Aval& aval) = 0;
  virtual void copy(const Tensor& from, const Tensor& to) = 0;
  // Arrays of one shape in new memory, in the order of the first of them along the last axis, as
  // the primitive sort has it. keys: where those are known to lie, as integers. Only where kernels
  // may not run equations: there, threads do it together.
  virtual Tensors sorted(std::span<const Tensor> arrays, bool descending, std::optional<Range> keys,
                         Source source) = 0;
  // Memory that holds this operand of the equation, and may be written over: its own where nothing
  // reads that later, else a copy.
  virtual Tensor to_overwrite(std::size_t operand) = 0;

  // --- Control flow ------------------------------------------------------------------------------

  // What a step gives: the next carries, and arrays that are written elsewhere.
  struct Next {
    Tensors carries;
    std::vector<std::pair<Tensor, Tensor>> copies = {};  // from, to
  };
  using Step = std::function<Next(Value step, std::span<const Tensor> carry)>;
  // Runs step for 0 .. steps - 1, with the carries of the step before it. The carries are operands
  // of the equation, in order, from the first on; each may grow by a known number at every step.
  virtual Tensors repeat(std::int64_t steps, std::size_t num_carry,
                         std::span<const std::optional<std::int64_t>> growth, const Step& step) = 0;
  using Condition = std::function<Value(std::span<const Tensor> carry)>;
  virtual Tensors repeat_while(std::size_t num_carry, const Condition& condition,
                               const Step& step) = 0;
  // The same for numbers alone, from the first ones on. What next writes, no formula reads that is
  // still to be computed.
  using NextNumbers = std::function<Values(const Index& step, std::span<const Value> numbers)>;
  virtual Values repeat_numbers(std::int64_t steps, const Values& first,
                                const NextNumbers& next) = 0;
  using NumbersHold = std::function<Value(std::span<const Value> numbers)>;
  virtual Values repeat_numbers_while(
      const Values& first, const NumbersHold& condition,
      const std::function<Values(std::span<const Value>)>& next) = 0;
  // The results of the alternative that index, an int32, chooses; it is clamped.
  virtual Tensors branch(Value index, std::size_t count,
                         const std::function<Tensors(std::size_t)>& alternative) = 0;
  // The equations of a program. owned: the inputs whose memory it may write over.
  virtual Tensors lower(const Jaxpr& program, Tensors inputs, const Flags& owned) = 0;
  // Runs f with every index of an array of this shape, in order.
  virtual void for_each(const Shape& shape,
                        const std::function<void(std::span<const Index>)>& f) = 0;
  // Runs f with every index below a count, in any order: what it writes is different for each, and
  // none reads what another one writes.
  virtual void for_each_apart(std::int64_t count, const std::function<void(const Index&)>& f) = 0;
  // The results of the equation, an axis of examples first: f gives those of one example, for its
  // operands. batched: the operands of the equation that have such an axis. f may write over those
  // of the first num_overwritten that do, which are like the results. How often bodies of control
  // flow run is counted where examples go their own ways.
  using Example = std::function<Tensors(Tensors operands, const Flags& owned)>;
  virtual Tensors for_each_example(std::int64_t count, const Flags& batched,
                                   std::size_t num_overwritten, std::span<const Aval> results,
                                   const Example& f) = 0;
  // Whether nothing reads the memory of this operand of the equation later.
  virtual bool is_owned(std::size_t operand) const = 0;

  // Whether kernels may run equations as well. Where they may not, on a GPU, a rule that refuses
  // leaves the equation to the CPU; where they may, a rule refuses what they run better.
  virtual bool has_kernels() const = 0;
  // Refuses where a program that grows by so many statements would be too long to generate code
  // for.
  virtual void require_room(double statements) = 0;
  // Ends lowering: the loop runs step by step. reason: for explain.
  [[noreturn]] virtual void refuse(const std::string& reason) = 0;
};

// Adds index * stride to a place.
void add_index(Place& place, const Index& index, std::int64_t stride);
// The part of an array that starts at these indices, which lie inside.
Tensor window(const Tensor& tensor, std::span<const Value> starts, const Shape& shape);
// The slice of an array at an index along its first axis.
Tensor slice_at(const Tensor& tensor, Value index);
// The same elements with some neighbouring axes, which are in order, as one: the last of them; the
// others have the size 1. Copies them where memory that they are read from is not laid out so.
Tensor merged(Writer& writer, const Tensor& tensor, std::span<const int> axes);

}  // namespace loops

struct Emit {
  static constexpr auto name = "emit";
  using Rule = std::function<loops::Tensors(loops::Writer& writer, const Equation& equation,
                                            std::span<const loops::Tensor> inputs)>;
  static RuleTable<Emit>& table();
};

}  // namespace plait
