// The rule kinds: what the block of a primitive may state. Those of running and of the transforms
// are here. Abstract, Identity and Fold are in ir/abstract.h, and the others have a header each
// beside this one:
//
//   programs that equations hold   Bodies, Inline, Steps, Prune, Diverge
//   what a compiler may do         Motion, Speculate, Guard, Commute, Separate, Cost, OnHost
//   transforms and views           Autocast, Put
//   people                         PictureGroup, Spelling
//
// A transform from outside declares its own kind in the same way, next to itself.
//
// VJP rules do not exist: they follow from Jvp and Transpose. A primitive without a rule for some
// kind is run through its Decompose rule, by every interpreter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/ir/abstract.h>
#include <plait/trace/trace.h>

namespace plait {

// --- Running -------------------------------------------------------------------------------------

// Computes results into dense, preallocated outputs. Inputs may have any strides. This is the
// kernel of the reference backend, and the only one: eager calls, constant folding and fallbacks
// all run it.
struct Eval {
  static constexpr auto name = "eval";
  using Rule = std::function<void(std::span<const View> inputs, std::span<const View> outputs,
                                  const Params& params)>;
  static RuleTable<Eval>& table();
};

// For equations that only reinterpret memory (transpose, broadcast, slice, ...): a view of the
// input; nullopt when it must be copied (a reshape of strided memory).
struct Alias {
  static constexpr auto name = "alias";
  using Rule = std::function<std::optional<View>(const View& input, const Sizes64& output_shape,
                                                 const Params& params)>;
  static RuleTable<Alias>& table();
};

// Elementwise equations as loops over dense runs, called by Eval, fused loops and small blocks. A
// chunk reads n elements from each input and writes n to the output; input and output may be the
// same memory.
struct Chunk {
  using Loop = void (*)(const void* const* inputs, void* output, std::int64_t n,
                        std::int64_t argument);
  Loop loop = nullptr;
  std::int64_t argument = 0;  // a parameter of the primitive (integer_pow's n)
};
struct Pointwise {
  static constexpr auto name = "pointwise";
  // The loop for these input dtypes; a null loop means that the Abstract rule should have refused.
  using Rule = std::function<Chunk(std::span<const DType> inputs, const Params& params)>;
  static RuleTable<Pointwise>& table();
};

// --- Differentiation -----------------------------------------------------------------------------

// A tangent or cotangent: an Array, or a symbolic zero.
class Tangent {
 public:
  explicit Tangent(Aval aval) : aval_(std::move(aval)) {}                  // symbolic zero
  Tangent(Array array) : aval_(array.aval()), array_(std::move(array)) {}  // NOLINT
  bool is_zero() const { return !array_.is_valid(); }
  const Array& array() const { return array_; }  // of a tangent that is not zero
  const Aval& aval() const { return aval_; }
  Array instantiate() const;  // zeros when symbolic

 private:
  Aval aval_;
  Array array_;
};
using Tangents = std::vector<Tangent>;
Tangent add_tangents(const Tangent& a, const Tangent& b);
// The aval of a value's tangents: its own. Where is_differentiable is false (integers and bools),
// the tangent is a symbolic zero.
Aval tangent_aval(const Aval& primal);
bool is_differentiable(const Aval& aval);

// Tangents of the outputs. At least one input tangent is not zero.
struct Jvp {
  static constexpr auto name = "jvp";
  using Rule =
      std::function<Tangents(std::span<const Array> primals, std::span<const Tangent> tangents,
                             std::span<const Array> outputs, const Params& params)>;
  static RuleTable<Jvp>& table();
};

// An input of an equation being transposed: known, or linear with its aval only.
class TransposeInput {
 public:
  explicit TransposeInput(Aval aval) : aval_(std::move(aval)) {}                  // linear
  TransposeInput(Array known) : aval_(known.aval()), known_(std::move(known)) {}  // NOLINT
  bool is_linear() const { return !known_.is_valid(); }
  const Array& known() const { return known_; }
  const Aval& aval() const { return aval_; }

 private:
  Aval aval_;
  Array known_;
};

// Cotangents of the inputs (symbolic zero for known ones) from those of the outputs, of which at
// least one is not zero.
struct Transpose {
  static constexpr auto name = "transpose";
  using Rule =
      std::function<Tangents(std::span<const Tangent> cotangents,
                             std::span<const TransposeInput> inputs, const Params& params)>;
  static RuleTable<Transpose>& table();
};

// For primitives whose one result shows part of their first operand, which alone is linear: a sum
// of cotangents of that operand with that of this equation added, where it belongs. Transpose gives
// an array of zeros elsewhere, which takes as long as the operand is large.
struct Accumulate {
  static constexpr auto name = "accumulate";
  using Rule = std::function<Array(const Array& sum, const Array& cotangent,
                                   std::span<const TransposeInput> inputs, const Params& params)>;
  static RuleTable<Accumulate>& table();
};

// Only for primitives that hold jaxprs: outputs and tangents together. Runs with the trace of the
// primals current. Values that depend on tangents must be bound with `linear` current (the same
// trace in forward mode).
struct Differentiated {
  Arrays outputs;
  Tangents tangents;
};
struct Linearize {
  static constexpr auto name = "linearize";
  using Rule = std::function<Differentiated(std::span<const Array> primals,
                                            std::span<const Tangent> tangents, const Params& params,
                                            Trace* linear)>;
  static RuleTable<Linearize>& table();
};

// --- Batching ------------------------------------------------------------------------------------

// A value under vmap: the array with a batch dimension somewhere, or without one.
struct Batched {
  Array array;
  std::optional<int> dim;
};

// Applies the primitive to every example at once. At least one input is batched; size is the batch
// size, which may be an expression.
struct Batch {
  static constexpr auto name = "batch";
  using Rule = std::function<std::vector<Batched>(Dim size, std::span<const Batched> inputs,
                                                  const Params& params)>;
  static RuleTable<Batch>& table();
};

// Puts the batch dimension of a value at axis 0, by transpose when it is elsewhere and by broadcast
// when there is none.
Array batch_to_front(const Batched& value, Dim size);
// The aval of one example.
Aval example_aval(const Batched& value);

// --- Masking -------------------------------------------------------------------------------------

// A value whose axes may be ragged: an array padded to fixed sizes, and its real aval, in named
// sizes. The padding is never read.
struct Masked {
  Array padded;
  Aval aval;
};

// The run-time values of named sizes.
struct SizeValues {
  std::function<Array(Dim)> value;  // a size expression as an int32 scalar
  std::function<Dim(Dim)> bound;    // the fixed size to which it is padded
  bool checked = true;              // whether sizes out of bounds are errors: false in padded lanes
};

// The padded results. outputs are the real avals; each result has such a shape with every size
// replaced by its bound.
struct Mask {
  static constexpr auto name = "mask";
  using Rule = std::function<Arrays(std::span<const Masked> inputs, std::span<const Aval> outputs,
                                    const Params& params, const SizeValues& sizes)>;
  static RuleTable<Mask>& table();
};

// value with fill in the padding of the given axes (all ragged ones by default).
Array fill_padding(const Masked& value, const Array& fill, const SizeValues& sizes);
Array fill_padding(const Masked& value, const Array& fill, const SizeValues& sizes,
                   std::span<const int> axes);
// True at real positions of a shape, false in its padding; nullopt when no axis is ragged.
std::optional<Array> validity(const Shape& shape, const SizeValues& sizes);

// --- Last resort and samples ---------------------------------------------------------------------

// The same computation expressed in other primitives.
struct Decompose {
  static constexpr auto name = "decompose";
  using Rule = std::function<Arrays(std::span<const Array> inputs, const Params& params)>;
  static RuleTable<Decompose>& table();
};

// Typical applications, for the laws that every primitive must obey.
struct Sample {
  // The kind of values of an input, so that the function is defined and smooth there.
  struct Input {
    Aval aval;
    enum class Values {
      normal,
      positive,
      unit,
      open_unit,
      nonzero,
      distinct,
      indices,
      boolean,
      key
    } values = Values::normal;
    std::int64_t limit = 0;  // indices: in [0, limit)
  };
  std::vector<Input> inputs;
  Params params;
};
struct Samples {
  static constexpr auto name = "samples";
  using Rule = std::function<std::vector<Sample>()>;
  static RuleTable<Samples>& table();
};

}  // namespace plait
