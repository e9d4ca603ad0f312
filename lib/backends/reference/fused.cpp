// A fused loop without generated code. A block of elements at a time goes through the Pointwise
// loop of each equation, and intermediate values stay in the first-level cache. The loops, and so
// the bits, are those of eager evaluation.
// SPDX-License-Identifier: Apache-2.0
#include "fused.h"

#include <plait/base/pool.h>
#include <plait/primitives/kernels.h>

namespace plait::reference {
namespace {

constexpr std::int64_t largest_block = 1024, smallest_block = 256;
constexpr std::int64_t cache_bytes = 32 << 10;  // for the blocks of one thread
constexpr int max_operands = 4;

// The location of an instruction's operand or result.
struct Place {
  enum class Kind : std::uint8_t { input, output, literal, scratch } kind;
  int index;                // of the input, output or literal
  std::int64_t offset = 0;  // scratch: bytes for one element of the block
};

struct Instruction {
  Chunk chunk;
  int operands[max_operands];  // values
  int num_operands, result;    // value
};

class FusedKernel final : public Kernel {
 public:
  explicit FusedKernel(const Jaxpr& group) {
    const JaxprData& data = *group;
    shape_ = data.avals[data.equations[0].outputs[0].id].shape.to_sizes();
    size_ = num_elements(shape_);
    num_inputs_ = data.num_binders;
    read_equations(data);
    assign_places();
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void*,
           const Stream&) const override;

  // An output is written when its equation runs, block by block; it may overwrite an input that is
  // not read afterwards.
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    if (sizes_[input] != size_of(output_dtypes_[output])) return false;
    return last_read_[input] <= written_[output];
  }

  std::string note() const override { return "blocks of " + std::to_string(block_); }

 private:
  // Values: inputs, then literals, then results.
  void read_equations(const JaxprData& data) {
    std::vector<int> value(data.avals.size(), -1);
    for (int i = 0; i < data.num_binders; ++i) {
      value[i] = i;
      sizes_.push_back(size_of(data.avals[i].dtype));
    }
    std::vector<Literal> literals;
    for (const Equation& equation : data.equations)
      for (const Atom& atom : equation.inputs)
        if (!atom.is_var() && find(literals, atom.literal()) < 0)
          literals.push_back(atom.literal());
    for (const Literal& literal : literals) {
      literals_.push_back(Array::literal(literal).buffer());
      sizes_.push_back(size_of(literal.dtype));
    }
    for (const Equation& equation : data.equations) {
      Instruction instruction{};
      DType dtypes[max_operands];
      for (const Atom& atom : equation.inputs) {
        dtypes[instruction.num_operands] = data.aval(atom).dtype;
        instruction.operands[instruction.num_operands++] =
            atom.is_var() ? value[atom.var().id] : num_inputs_ + find(literals, atom.literal());
      }
      instruction.chunk =
          rule<Pointwise>(*equation.primitive)({dtypes, equation.inputs.size()}, equation.params);
      if (!instruction.chunk.loop)
        throw InternalError("`" + std::string(equation.primitive->name()) + "` has no loop for " +
                            std::string(name_of(dtypes[0])));
      const int out = equation.outputs[0].id;
      instruction.result = value[out] = int(sizes_.size());
      sizes_.push_back(size_of(data.avals[out].dtype));
      instructions_.push_back(instruction);
    }
    last_read_.assign(sizes_.size(), -1);
    for (std::size_t i = 0; i < instructions_.size(); ++i)
      for (int k = 0; k < instructions_[i].num_operands; ++k)
        last_read_[instructions_[i].operands[k]] = int(i);
    for (const Atom& atom : data.outputs) {
      outputs_.push_back(value[atom.var().id]);
      output_dtypes_.push_back(data.aval(atom).dtype);
    }
  }

  static int find(const std::vector<Literal>& literals, const Literal& literal) {
    const auto at = std::find(literals.begin(), literals.end(), literal);
    return at == literals.end() ? -1 : int(at - literals.begin());
  }

  // Intermediate results live in scratch blocks, which are reused once they are dead. Every input
  // has a block of its own, in case it must be gathered.
  void assign_places() {
    places_.resize(sizes_.size());
    std::int64_t bytes = 0;  // for one element of the block
    for (int i = 0; i < num_inputs_; ++i) {
      places_[i] = {Place::Kind::input, i, bytes};
      bytes += sizes_[i];
    }
    for (std::size_t i = 0; i < literals_.size(); ++i)
      places_[num_inputs_ + i] = {Place::Kind::literal, int(i)};
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      places_[outputs_[i]] = {Place::Kind::output, int(i)};
    written_.assign(outputs_.size(), 0);
    std::vector<std::vector<std::int64_t>> free(17);  // by size of an element
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      const Instruction& instruction = instructions_[i];
      // A loop may overwrite its operand, if their elements have the same size.
      for (int k = 0; k < instruction.num_operands; ++k) {
        const int operand = instruction.operands[k];
        if (places_[operand].kind != Place::Kind::scratch || last_read_[operand] != int(i))
          continue;
        auto& list = free[sizes_[operand]];
        if (std::find(list.begin(), list.end(), places_[operand].offset) == list.end())
          list.push_back(places_[operand].offset);
      }
      const int result = instruction.result;
      if (const auto at = std::find(outputs_.begin(), outputs_.end(), result);
          at != outputs_.end()) {
        for (std::size_t o = 0; o < outputs_.size(); ++o)
          if (outputs_[o] == result) written_[o] = int(i);
        continue;
      }
      auto& list = free[sizes_[result]];
      if (list.empty()) {
        places_[result] = {Place::Kind::scratch, 0, bytes};
        bytes += sizes_[result];
      } else {
        places_[result] = {Place::Kind::scratch, 0, list.back()};
        list.pop_back();
      }
    }
    bytes_ = bytes;
    block_ = std::clamp(cache_bytes / std::max<std::int64_t>(1, bytes) / 64 * 64, smallest_block,
                        largest_block);
    for (const Buffer& literal : literals_) {
      Buffer splat = Buffer::empty(literal.dtype(), {block_});
      gather_run(View{literal.view().data, literal.dtype(), {}, {}}, 0, block_,
                 splat.mutable_data());
      splats_.push_back(std::move(splat));
    }
  }

  void run_blocks(std::span<const View> inputs, std::span<const View> outputs, std::int64_t block,
                  std::int64_t begin, std::int64_t end) const;

  Sizes64 shape_;
  std::int64_t size_ = 0, block_ = 0, bytes_ = 0;
  int num_inputs_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<Buffer> literals_, splats_;
  std::vector<std::int64_t> sizes_;  // by value: bytes of an element
  std::vector<Place> places_;        // by value
  std::vector<int> outputs_;         // values
  std::vector<DType> output_dtypes_;
  std::vector<int> last_read_, written_;
};

bool is_splat(const View& view, std::int64_t n) { return view.size() == 1 && n > 1; }

// Elements [at, at + count) in place, if they are contiguous.
const void* run_in_place(const View& view, std::int64_t at, std::int64_t count) {
  const int last = view.rank() - 1;
  if (last < 0 || view.strides[last] != 1 || at % view.shape[last] + count > view.shape[last])
    return nullptr;
  std::int64_t offset = 0;
  for (int axis = last; axis >= 0; --axis) {
    offset += at % view.shape[axis] * view.strides[axis];
    at /= view.shape[axis];
  }
  return view.as<char>() + offset * size_of(view.dtype);
}

void FusedKernel::run(std::span<const View> inputs, std::span<const View> outputs, void*,
                      const Stream&) const {
  if (size_ == 0) return;
  // Blocks that end with rows let broadcast rows be read in place.
  std::int64_t block = block_;
  for (const View& view : inputs) {
    if (view.rank() == 0 || view.is_dense() || view.strides.back() != 1) continue;
    if (const std::int64_t row = view.shape.back(); row >= 128 && row <= block_) block = row;
  }
  const std::int64_t blocks = (size_ + block - 1) / block;
  const std::int64_t cost = block * std::int64_t(instructions_.size());
  parallel_for(blocks, std::max<std::int64_t>(1, 262144 / cost),
               [&](std::int64_t begin, std::int64_t end) {
                 run_blocks(inputs, outputs, block, begin * block, std::min(size_, end * block));
               });
}

void FusedKernel::run_blocks(std::span<const View> inputs, std::span<const View> outputs,
                             std::int64_t block, std::int64_t begin, std::int64_t end) const {
  constexpr std::int64_t on_stack = 48 << 10;
  alignas(64) char stack[on_stack];
  const std::int64_t length = std::min(block, end - begin);
  // Offsets are per element; blocks of any length keep the alignment of their elements' size.
  const std::int64_t room = (std::min(block_, (length + 63) / 64 * 64));
  const std::int64_t bytes = bytes_ * room;
  struct Free {
    std::int64_t bytes;
    void operator()(char* memory) const { deallocate(memory, bytes); }
  };
  std::unique_ptr<char, Free> heap(nullptr, Free{bytes});
  if (bytes > on_stack) heap.reset(static_cast<char*>(allocate(bytes)));
  char* scratch = heap ? heap.get() : stack;

  enum class Access : std::uint8_t { dense, splat, gather };
  constexpr int inline_values = 64;
  const void* inline_pointers[inline_values];
  Access inline_access[inline_values];
  std::vector<const void*> more_pointers;
  std::vector<Access> more_access;
  const void** pointers = inline_pointers;
  Access* access = inline_access;
  if (places_.size() > inline_values) {
    more_pointers.resize(places_.size());
    more_access.resize(places_.size());
    pointers = more_pointers.data();
    access = more_access.data();
  }
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (places_[i].kind == Place::Kind::literal)
      pointers[i] = splats_[places_[i].index].data();
    else if (places_[i].kind == Place::Kind::scratch)
      pointers[i] = scratch + places_[i].offset * room;
  for (int i = 0; i < num_inputs_; ++i) {
    const View& view = inputs[i];
    access[i] = is_splat(view, size_) ? Access::splat
                : view.is_dense()     ? Access::dense
                                      : Access::gather;
    if (access[i] != Access::splat) continue;
    char* copy = scratch + places_[i].offset * room;
    gather_run(View{view.data, view.dtype, {}, {}}, 0, length, copy);
    pointers[i] = copy;
  }
  for (std::int64_t at = begin; at < end; at += block) {
    const std::int64_t count = std::min(block, end - at);
    for (int i = 0; i < num_inputs_; ++i) {
      if (access[i] == Access::dense) pointers[i] = inputs[i].as<char>() + at * sizes_[i];
      if (access[i] != Access::gather) continue;
      pointers[i] = run_in_place(inputs[i], at, count);
      if (pointers[i]) continue;
      char* copy = scratch + places_[i].offset * room;
      gather_run(inputs[i], at, count, copy);
      pointers[i] = copy;
    }
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      pointers[outputs_[o]] =
          outputs[places_[outputs_[o]].index].as<char>() + at * sizes_[outputs_[o]];
    for (const Instruction& instruction : instructions_) {
      const void* sources[max_operands];
      for (int k = 0; k < instruction.num_operands; ++k)
        sources[k] = pointers[instruction.operands[k]];
      instruction.chunk.loop(sources, const_cast<void*>(pointers[instruction.result]), count,
                             instruction.chunk.argument);
    }
  }
}

}  // namespace

std::unique_ptr<Kernel> compile_fused(const Jaxpr& group) {
  return std::make_unique<FusedKernel>(group);
}

}  // namespace plait::reference
