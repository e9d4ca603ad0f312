// draw_blocks: jaxpr -> jaxpr. A slice moves inwards, through elementwise operations, to the random
// numbers that they are made of, where nothing else reads the rest of them:
//   before   bits = random_bits(key, (1000, 8)); x = f(bits); y = x[250:500]
//   after    y = f(threefry(key, 2000 + iota(2000)))
// An element depends on the key and its number alone, so that the bits stay the same. A rank of a
// job draws its block of an array and no more, though the program says that it draws the whole.
//
// It runs after simplify, which inlines calls: the draw is outside of shard_map, and the slice
// inside. Simplify then runs once more on the result, and drops what nobody reads.
// SPDX-License-Identifier: Apache-2.0
#include "compile/passes/draw_blocks.h"

#include <plait/primitives/emitted.h>
#include <plait/primitives/primitives.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/environment.h"

namespace plait::compile_passes {
namespace {

struct Block {
  Shape start, sizes;
  bool operator==(const Block&) const = default;
};

bool is(const Equation& equation, const Primitive& primitive) {
  return *equation.primitive == primitive;
}

// A slice of steps of one, whose sizes are known.
std::optional<Block> block_of(const Equation& equation) {
  if (!is(equation, slice_p)) return std::nullopt;
  const Shape &start = equation.params.get<Shape>("start"),
              &limit = equation.params.get<Shape>("limit");
  Block block{start, limit};
  for (int i = 0; i < start.rank(); ++i) {
    if (!start[i].is_constant() || !limit[i].is_constant() ||
        !(equation.params.get<Shape>("strides")[i] == Dim(1)))
      return std::nullopt;
    block.sizes[i] = limit[i] - start[i];
  }
  return block;
}

// What a slice is made of, by equations that can give a block of their result: those that nothing
// but the slice and each other reads.
class Cone {
 public:
  Cone(const Jaxpr& program, std::span<const int> definition,
       std::span<const std::vector<int>> readers, int slice)
      : program_(program), definition_(definition), readers_(readers), slice_(slice) {
    ask(program_->equations[std::size_t(slice)].inputs[0],
        *block_of(program_->equations[std::size_t(slice)]));
    while (!next_.empty()) {
      const int at = *next_.rbegin();  // all that read it come later, and were here
      next_.erase(at);
      const Equation& equation = program_->equations[std::size_t(at)];
      const auto wanted = wanted_.find(equation.outputs[0].id);
      if (!wanted->second || !is_alone(equation) || !gives_blocks(equation)) continue;
      equations_.insert(at);
      draws_ = draws_ || is(equation, random_bits_p);
      for (const Atom& input : equation.inputs)
        if (const std::optional<Block> block = block_of_input(equation, input, *wanted->second))
          ask(input, *block);
    }
  }

  bool draws() const { return draws_; }
  const std::set<int>& equations() const { return equations_; }  // in order
  const Block& block(const Equation& equation) const { return *wanted_.at(equation.outputs[0].id); }
  // The block of an operand, if the operation takes one; else it takes the whole.
  std::optional<Block> block_of_input(const Equation& equation, const Atom& input,
                                      const Block& block) const {
    if (is(equation, random_bits_p)) return std::nullopt;
    const Shape& shape = program_->aval(input).shape;
    if (is(equation, slice_p)) {
      Block inner = *block_of(equation);
      inner.sizes = block.sizes;
      for (int i = 0; i < shape.rank(); ++i) inner.start[i] = inner.start[i] + block.start[i];
      return inner;
    }
    if (is(equation, broadcast_in_dim_p)) {
      const std::vector<int> dims = equation.params.ints("dims");
      Block inner{Shape(shape.size(), Dim(0)), shape};
      for (int i = 0; i < shape.rank(); ++i) {
        if (shape[i] == Dim(1)) continue;
        inner.start[i] = block.start[dims[std::size_t(i)]];
        inner.sizes[i] = block.sizes[dims[std::size_t(i)]];
      }
      return inner;
    }
    return shape.rank() == 0 ? std::nullopt : std::optional(block);
  }

 private:
  void ask(const Atom& atom, const Block& block) {
    if (!atom.is_var()) return;
    const auto [wanted, is_first] = wanted_.emplace(atom.var().id, block);
    if (!is_first && wanted->second && !(*wanted->second == block)) wanted->second.reset();
    const int at = definition_[std::size_t(atom.var().id)];
    if (is_first && at >= 0) next_.insert(at);
  }

  bool is_alone(const Equation& equation) const {
    return equation.outputs.size() == 1 &&
           std::ranges::all_of(readers_[std::size_t(equation.outputs[0].id)], [&](int reader) {
             return reader == slice_ || equations_.contains(reader);
           });
  }

  bool gives_blocks(const Equation& equation) const {
    const Aval& aval = program_->aval(equation.outputs[0]);
    if (is_effectful(equation) || aval.stack > 0 || !aval.shape.is_constant()) return false;
    if (is(equation, random_bits_p))
      return program_->aval(equation.inputs[0]).rank() ==
             (program_->aval(equation.inputs[0]).dtype == DType::uint32 ? 1 : 0);
    if (is(equation, iota_p)) return is_integer(aval.dtype);
    if (is(equation, slice_p)) return block_of(equation).has_value();
    if (is(equation, broadcast_in_dim_p)) return true;
    return Pointwise::table().find(*equation.primitive) &&
           std::ranges::all_of(equation.inputs, [&](const Atom& input) {
             const Shape& shape = program_->aval(input).shape;
             return shape.rank() == 0 || shape == aval.shape;
           });
  }

  const Jaxpr& program_;
  std::span<const int> definition_;
  std::span<const std::vector<int>> readers_;
  int slice_;
  std::map<int, std::optional<Block>> wanted_;  // by var; none where readers want several
  std::set<int> next_, equations_;
  bool draws_ = false;
};

class BlockRewriter {
 public:
  explicit BlockRewriter(const Jaxpr& program)
      : program_(program), definition_(program->avals.size(), -1), readers_(program->avals.size()) {
    for (std::size_t e = 0; e < program->equations.size(); ++e) {
      for (Var var : program->equations[e].outputs) definition_[std::size_t(var.id)] = int(e);
      for (const Atom& input : program->equations[e].inputs)
        if (input.is_var()) readers_[std::size_t(input.var().id)].push_back(int(e));
    }
    for (const Atom& output : program->outputs)
      if (output.is_var()) readers_[std::size_t(output.var().id)].push_back(-1);
    for (std::size_t e = 0; e < program->equations.size(); ++e) {
      if (!block_of(program->equations[e])) continue;
      Cone cone(program_, definition_, readers_, int(e));
      if (cone.draws()) cones_.emplace(int(e), std::move(cone));
    }
  }

  Jaxpr run() {
    if (cones_.empty()) return {};
    std::vector<Atom> binders;
    for (const Aval& aval : program_->input_avals()) binders.push_back(builder_.add_binder(aval));
    Environment environment(program_, std::move(binders));
    std::set<int> moved;
    for (const auto& [slice, cone] : cones_)
      moved.insert(cone.equations().begin(), cone.equations().end());
    for (std::size_t e = 0; e < program_->equations.size(); ++e) {
      const Equation& equation = program_->equations[e];
      if (moved.contains(int(e))) continue;
      if (const auto cone = cones_.find(int(e)); cone != cones_.end())
        environment.set(equation.outputs[0], block(equation, cone->second, environment));
      else
        environment.set(
            equation.outputs,
            builder_.add(*equation.primitive, environment.read(equation.inputs), equation.params,
                         equation.source, output_avals(*program_, equation)));
    }
    return builder_.close(environment.read(program_->outputs));
  }

 private:
  Atom add(const Primitive& primitive, std::vector<Atom> inputs, Params params) {
    return builder_.add(primitive, std::move(inputs), std::move(params), source_)[0];
  }
  Atom sliced(const Atom& whole, const Block& block) {
    Shape limit = block.start;
    for (int i = 0; i < limit.rank(); ++i) limit[i] = limit[i] + block.sizes[i];
    if (limit == builder_.aval(whole).shape && block.sizes == limit) return whole;
    return add(
        slice_p, {whole},
        {{"start", block.start}, {"limit", limit}, {"strides", Shape(limit.size(), Dim(1))}});
  }

  Atom block(const Equation& slice, const Cone& cone, const Environment& environment) {
    std::map<int, Atom> parts;  // by var
    const auto part = [&](const Equation& reader, const Atom& input, const Block& wanted) {
      const std::optional<Block> needed = cone.block_of_input(reader, input, wanted);
      if (!needed) return environment.read(input);
      if (input.is_var())
        if (const auto found = parts.find(input.var().id); found != parts.end())
          return found->second;
      return sliced(environment.read(input), *needed);
    };
    for (const int e : cone.equations()) {
      const Equation& equation = program_->equations[std::size_t(e)];
      const Block& wanted = cone.block(equation);
      source_ = equation.source;
      std::vector<Atom> inputs;
      for (const Atom& input : equation.inputs) inputs.push_back(part(equation, input, wanted));
      Aval aval = program_->aval(equation.outputs[0]);
      aval.shape = wanted.sizes;
      parts.emplace(equation.outputs[0].id, made(equation, std::move(inputs), wanted, aval));
    }
    return part(slice, slice.inputs[0],
                {Shape(block_of(slice)->sizes.size(), Dim(0)), block_of(slice)->sizes});
  }

  Atom made(const Equation& equation, std::vector<Atom> inputs, const Block& block,
            const Aval& aval) {
    if (is(equation, slice_p)) return inputs[0];
    if (is(equation, random_bits_p)) return bits(equation, inputs[0], block, aval.dtype);
    if (is(equation, iota_p)) {
      const Atom numbers = add(iota_p, {}, equation.params.with("shape", block.sizes));
      const Dim first = block.start[int(equation.params.integer("axis"))];
      return first == Dim(0) ? numbers
                             : add(add_p, {numbers, number(first.constant(), aval.dtype)}, {});
    }
    const Params params = is(equation, broadcast_in_dim_p)
                              ? equation.params.with("shape", block.sizes)
                              : equation.params;
    return builder_.add(*equation.primitive, std::move(inputs), params, source_, {aval})[0];
  }

  static Literal number(std::int64_t value, DType dtype) { return {dtype, false, value, 0, 0}; }
  Atom cast(const Atom& x, DType dtype) {
    return add(cast_p, {x}, {{"dtype", dtype}, {"weak", false}});
  }
  // The high and the low half of 64 bits.
  std::array<Atom, 2> halves(const Atom& x) {
    const Atom high =
        add(shift_p, {x, number(32, DType::uint64)}, {{"kind", std::string("right_logical")}});
    return {cast(high, DType::uint32), cast(x, DType::uint32)};
  }
  std::array<Atom, 2> words_of(const Atom& key) {
    if (builder_.aval(key).rank() == 0) {
      const auto [high, low] = halves(key);
      return {low, high};
    }
    const auto word = [&](std::int64_t i) {
      return add(reshape_p, {sliced(key, {Shape{i}, Shape{1}})}, {{"shape", Shape{}}});
    };
    const Atom first = word(0);
    return {first, word(1)};
  }

  // The row-major numbers, in the whole array, of a block's elements.
  Atom numbers_of(const Block& block, const Shape& whole, DType dtype) {
    // Axes behind the last one that is cut count as one.
    int last = block.sizes.rank() - 1;
    while (last > 0 && block.sizes[last] == whole[last]) --last;
    std::int64_t stride = 1, first = 0;
    for (int i = whole.rank() - 1; i > last; --i) stride *= whole[i].constant();
    Shape shape(block.sizes.begin(), block.sizes.begin() + last + 1);
    shape[last] = shape[last] * Dim(stride);
    first = block.start[last].constant() * stride;
    Atom numbers = add(iota_p, {}, {{"shape", shape}, {"dtype", dtype}, {"axis", Dim(last)}});
    stride *= whole[last].constant();
    for (int i = last - 1; i >= 0; stride *= whole[i].constant(), --i) {
      first += block.start[i].constant() * stride;
      if (block.sizes[i] == Dim(1)) continue;
      const Atom along = add(iota_p, {}, {{"shape", shape}, {"dtype", dtype}, {"axis", Dim(i)}});
      numbers = add(add_p, {numbers, add(mul_p, {along, number(stride, dtype)}, {})}, {});
    }
    if (first > 0) numbers = add(add_p, {numbers, number(first, dtype)}, {});
    return shape == block.sizes ? numbers : add(reshape_p, {numbers}, {{"shape", block.sizes}});
  }

  Atom bits(const Equation& equation, const Atom& key, const Block& block, DType dtype) {
    const Shape& whole = equation.params.get<Shape>("shape");
    if (block.sizes.empty()) return builder_.add(random_bits_p, {key}, equation.params, source_)[0];
    constexpr std::int64_t most = std::int64_t(1) << 32;  // that 32 bits number
    Atom high = number(0, DType::uint32), low = high;
    if (whole.num_elements().constant() <= most) {
      low = numbers_of(block, whole, DType::uint32);
    } else {
      const auto both = halves(numbers_of(block, whole, DType::uint64));
      high = both[0], low = both[1];
    }
    const auto key_words = words_of(key);
    const Atom words = add(threefry_p, {key_words[0], key_words[1], high, low}, {});
    if (dtype == DType::uint64) return words;
    const auto [x, y] = halves(words);
    const Atom mixed = add(xor_p, {x, y}, {});
    return dtype == DType::uint32 ? mixed : cast(mixed, dtype);
  }

  const Jaxpr& program_;
  std::vector<int> definition_;            // by var; -1 for binders
  std::vector<std::vector<int>> readers_;  // by var; -1 for outputs of the program
  std::map<int, Cone> cones_;              // by slice
  Builder builder_;
  Source source_;
};

}  // namespace

Jaxpr draw_blocks(const Jaxpr& program) {
  const bool any = std::ranges::any_of(
      program->equations, [](const Equation& equation) { return is(equation, random_bits_p); });
  return any ? BlockRewriter(program).run() : Jaxpr();
}

}  // namespace plait::compile_passes
