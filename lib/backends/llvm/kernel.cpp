// One generated function for a group: every input is loaded a vector at a time, goes through all
// equations in registers, and every output is stored; nothing in between touches memory.
//
// The function covers a range of vectors of the one loop, or a range of rows of a nest, so that
// threads share it. What is left of a row after the last whole vector runs under a constant mask.
// SPDX-License-Identifier: Apache-2.0
#include "kernel.h"

#include <plait/base/pool.h>
#include <plait/kernels.h>
#include <plait/ops.h>
#include <unistd.h>

#include <chrono>
#include <mutex>

#include "nest.h"
#include "primitives.h"

namespace plait::llvm {
namespace {

using Function = void(void* const* memory, std::int64_t begin, std::int64_t end);

std::int64_t last_level_cache() {
  static const std::int64_t bytes = std::max<std::int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 8 << 20);
  return bytes;
}

// Lanes for the narrowest type that is computed with: 4 bytes when there is one.
int lanes_for(const JaxprData& data) {
  bool has[9] = {};
  for (const Aval& aval : data.avals)
    has[is_floating(aval.dtype) ? std::max<std::int64_t>(4, size_of(aval.dtype))
                                : size_of(aval.dtype)] = true;
  return machine().vector_bytes / (has[4] ? 4 : has[8] ? 8 : has[2] ? 2 : 1);
}

class Writer {
 public:
  Writer(const JaxprData& data, const Nest& nest, int lanes, const std::vector<bool>& streams)
      : data_(data),
        nest_(nest),
        streams_(streams),
        emitter_(lanes),
        registers_(data.avals.size()) {
    read_parameters();
    if (nest_.loops.size() > 1)
      write_rows();
    else
      write_line();
    api().BuildRetVoid(emitter_.builder());
  }
  std::unique_ptr<const Code> compile() const { return emitter_.compile(); }
  std::string text() const { return emitter_.text(); }

 private:
  Value constant(std::int64_t value) const { return emitter_.constant(value); }
  Type element(int var) const { return emitter_.element(data_.avals[var].dtype); }
  int bytes(int var) const { return int(size_of(data_.avals[var].dtype)); }

  void read_parameters() {
    const int num_inputs = data_.num_binders, num_outputs = int(data_.outputs.size());
    for (int i = 0; i < num_inputs + num_outputs; ++i)
      memory_.push_back(
          emitter_.load(emitter_.pointer(),
                        emitter_.at(emitter_.pointer(), emitter_.parameter(0), constant(i)), 8));
    rows_.assign(num_inputs, nullptr);
    for (int i = 0; i < num_inputs; ++i)
      if (nest_.access[i] == Access::splat) registers_[i] = load_splat(i, memory_[i]);
    bool calls = false;
    for (const Equation& equation : data_.equations) {
      std::vector<DType> dtypes;
      for (const Atom& atom : equation.inputs) dtypes.push_back(data_.aval(atom).dtype);
      calls |= !has_instructions(*equation.primitive, dtypes, equation.params);
    }
    if (calls) call_memory_ = make_call_memory();
  }

  Register load_splat(int var, Value pointer) const {
    return from_memory(emitter_.splat(emitter_.load(element(var), pointer, bytes(var))),
                       data_.avals[var].dtype);
  }

  void write_line() {
    const std::int64_t lanes = emitter_.lanes(), left = nest_.size() % lanes;
    const Value begin = emitter_.parameter(1), end = emitter_.parameter(2);
    Value whole = end;
    if (left != 0) whole = api().BuildAnd(emitter_.builder(), end, constant(-lanes), "");
    if (nest_.size() >= lanes)
      emitter_.loop(begin, whole, lanes, [&](Value i) { write_vector(i, i, int(lanes)); });
    if (left == 0) return;
    const Value is_last = api().BuildICmp(emitter_.builder(), 40 /* signed less */, whole, end, "");
    emitter_.branch_if(is_last, [&] { write_vector(whole, whole, int(left)); });
  }

  void write_rows() {
    const std::int64_t lanes = emitter_.lanes(), inner = nest_.inner(), left = inner % lanes;
    emitter_.loop(emitter_.parameter(1), emitter_.parameter(2), 1, [&](Value row) {
      start_row(row);
      const Value first = emitter_.multiply(row, constant(inner));
      if (inner >= lanes)
        emitter_.loop(constant(0), constant(inner - left), lanes,
                      [&](Value j) { write_vector(emitter_.add(first, j), j, int(lanes)); });
      if (left != 0)
        write_vector(emitter_.add(first, constant(inner - left)), constant(inner - left),
                     int(left));
    });
  }

  // Where every input's row begins; what is the same along the row is loaded.
  void start_row(Value row) {
    const int last = int(nest_.loops.size()) - 1;
    std::vector<Value> index(last);
    Value rest = row;
    for (int loop = last; loop-- > 0;) {
      const Value size = constant(nest_.loops[loop]);
      index[loop] = loop == 0 ? rest : api().BuildURem(emitter_.builder(), rest, size, "");
      if (loop > 0) rest = api().BuildUDiv(emitter_.builder(), rest, size, "");
    }
    for (int i = 0; i < data_.num_binders; ++i) {
      if (nest_.access[i] != Access::rows) continue;
      Value offset = constant(0);
      for (int loop = 0; loop < last; ++loop)
        if (nest_.strides[i][loop] != 0)
          offset = emitter_.add(offset,
                                emitter_.multiply(index[loop], constant(nest_.strides[i][loop])));
      rows_[i] = emitter_.at(element(i), memory_[i], offset);
      if (nest_.strides[i][last] == 0) registers_[i] = load_splat(i, rows_[i]);
    }
  }

  Value lane_mask(int count) const {
    Value bits[64];
    for (int i = 0; i < emitter_.lanes(); ++i)
      bits[i] = api().ConstInt(emitter_.integer(1), i < count, false);
    return api().ConstVector(bits, unsigned(emitter_.lanes()));
  }

  Register load(int var, Value address, int count) const {
    const Type type = emitter_.vector(element(var));
    const Value value =
        count == emitter_.lanes()
            ? emitter_.load(type, address, bytes(var))
            : emitter_.intrinsic("llvm.masked.load", {type, emitter_.pointer()},
                                 {address, api().ConstInt(emitter_.integer(32), bytes(var), false),
                                  lane_mask(count), api().ConstNull(type)});
    return from_memory(value, data_.avals[var].dtype);
  }

  // The elements from `index` on, of which the first lies at `inner` of its row.
  void write_vector(Value index, Value inner, int count) {
    for (int i = 0; i < data_.num_binders; ++i) {
      const Access access = nest_.access[i];
      const bool is_row = access == Access::rows;
      if (access == Access::splat || (is_row && nest_.strides[i].back() == 0)) continue;
      registers_[i] = load(i,
                           is_row ? emitter_.at(element(i), rows_[i], inner)
                                  : emitter_.at(element(i), memory_[i], index),
                           count);
    }
    for (const Equation& equation : data_.equations) {
      std::vector<Register> inputs;
      for (const Atom& atom : equation.inputs)
        inputs.push_back(atom.is_var() ? registers_[atom.var().id] : constant_of(atom.literal()));
      const int out = equation.outputs[0].id;
      registers_[out] = lower(equation, inputs, data_.avals[out].dtype, call_memory_);
    }
    for (std::size_t o = 0; o < data_.outputs.size(); ++o) {
      const int var = data_.outputs[o].var().id;
      const Value value = to_memory(registers_[var]);
      const Value address = emitter_.at(element(var), memory_[data_.num_binders + o], index);
      if (count == emitter_.lanes())
        emitter_.store(value, address, bytes(var), streams_[o]);
      else
        emitter_.intrinsic("llvm.masked.store", {api().TypeOf(value), emitter_.pointer()},
                           {value, address, api().ConstInt(emitter_.integer(32), bytes(var), false),
                            lane_mask(count)});
    }
  }

  const JaxprData& data_;
  const Nest& nest_;
  const std::vector<bool>& streams_;  // by output: past the caches
  Emitter emitter_;
  std::vector<Register> registers_;  // by var
  std::vector<Value> memory_;        // inputs, then outputs
  std::vector<Value> rows_;          // by input: where its row begins
  CallMemory call_memory_{};
};

class LoopKernel final : public Kernel {
 public:
  LoopKernel(const Jaxpr& group, std::span<const Sizes64> strides) : group_(group) {
    const JaxprData& data = *group_;
    lanes_ = lanes_for(data);
    nest_ =
        make_nest(data.avals[data.equations[0].outputs[0].id].shape.to_sizes(), strides, lanes_);
    for (int i = 0; i < data.num_binders; ++i) {
      const bool packed = nest_.access[i] == Access::packed;
      packed_at_.push_back(packed ? scratch_bytes_ : -1);
      if (packed) scratch_bytes_ += (nest_.size() * bytes(i) + 63) / 64 * 64;
    }
    if (nest_.size() == 0) return;
    choose_streams();
    code_ = write(streams_);
    plan_threads();
  }

  void run(std::span<const View> inputs, std::span<const View> outputs, void* scratch,
           const Stream&) const override {
    if (nest_.size() == 0) return;
    constexpr std::size_t usual = 32;
    void* few[usual];
    std::vector<void*> many(inputs.size() + outputs.size() > usual ? inputs.size() + outputs.size()
                                                                   : 0);
    void** const memory = many.empty() ? few : many.data();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      memory[i] = packed_at_[i] < 0 ? inputs[i].data
                                    : pack(inputs[i], static_cast<char*>(scratch) + packed_at_[i]);
    bool aligned = true;
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      memory[inputs.size() + o] = outputs[o].data;
      aligned &= reinterpret_cast<std::uintptr_t>(outputs[o].data) % 64 == 0;
    }
    Function* const function = (aligned ? *code_ : unaligned()).as<Function>();
    parallel_for(units_, grain_, [&](std::int64_t begin, std::int64_t end) {
      function(memory, begin * unit_, std::min(end * unit_, length_));
    });
  }

  std::int64_t scratch_bytes() const override { return scratch_bytes_; }

  // A vector is stored after all of its inputs are loaded, so what lies in place may be.
  bool may_overwrite(std::size_t input, std::size_t output) const override {
    return bytes(int(input)) == bytes(group_->outputs[output].var().id);
  }

  std::string note() const override {
    std::string text = std::to_string(lanes_) + " lanes";
    if (nest_.loops.size() > 1) text += ", rows of " + std::to_string(nest_.inner());
    if (scratch_bytes_ > 0) text += ", " + std::to_string(scratch_bytes_) + " bytes packed";
    return text;
  }

 private:
  std::int64_t bytes(int var) const { return size_of(group_->avals[var].dtype); }

  // Outputs of a kernel that outgrows the caches need not go through them; the instruction wants
  // aligned memory.
  void choose_streams() {
    std::int64_t total = 0;
    for (int i = 0; i < group_->num_binders; ++i)
      if (nest_.access[i] == Access::dense) total += nest_.size() * bytes(i);
    for (const Atom& atom : group_->outputs) total += nest_.size() * bytes(atom.var().id);
    for (const Atom& atom : group_->outputs) {
      const std::int64_t step = nest_.loops.size() > 1 ? nest_.inner() : lanes_;
      const std::int64_t vector = lanes_ * bytes(atom.var().id);
      streams_.push_back(total > last_level_cache() && vector % 64 == 0 &&
                         step * bytes(atom.var().id) % 64 == 0);
      streams_any_ |= streams_.back();
    }
  }

  std::unique_ptr<const Code> write(const std::vector<bool>& streams) const {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const Writer writer(*group_, nest_, lanes_, streams);
    const auto written = Clock::now();
    std::unique_ptr<const Code> code = writer.compile();
    auto ms = [](auto from, auto to) {
      return std::to_string(std::chrono::duration<double, std::milli>(to - from).count());
    };
    log_line("llvm: " + std::to_string(group_->equations.size()) + " equations written in " +
             ms(start, written) + " ms, compiled in " + ms(written, Clock::now()) + " ms");
    return code;
  }

  // The same without streaming, for a caller's memory that is not aligned: made when first met.
  const Code& unaligned() const {
    if (!streams_any_) return *code_;
    std::call_once(unaligned_once_,
                   [&] { unaligned_code_ = write(std::vector<bool>(streams_.size(), false)); });
    return *unaligned_code_;
  }

  // What one thread takes at least: about 20 us.
  void plan_threads() {
    double nanoseconds = 0;  // an element, roughly
    for (const Aval& aval : group_->avals) nanoseconds += 0.02 * double(size_of(aval.dtype));
    for (const Equation& equation : group_->equations) {
      const Primitive& p = *equation.primitive;
      const bool is_cheap = p == add_p || p == sub_p || p == mul_p || p == neg_p || p == abs_p ||
                            p == cmp_p || p == select_p || p == max_p || p == min_p ||
                            p == cast_p || p == and_p || p == or_p || p == xor_p || p == not_p;
      nanoseconds += is_cheap ? 0.05 : 0.5;
    }
    const bool is_line = nest_.loops.size() <= 1;
    length_ = is_line ? nest_.size() : nest_.size() / nest_.inner();
    unit_ = is_line ? 64 * lanes_ : 1;
    units_ = (length_ + unit_ - 1) / unit_;
    const double per_unit = nanoseconds * double(is_line ? unit_ : nest_.inner());
    grain_ = std::max<std::int64_t>(1, std::int64_t(20000 / per_unit));
  }

  void* pack(const View& view, char* dst) const {
    const std::int64_t element = size_of(view.dtype);
    parallel_for(nest_.size(), 32768, [&](std::int64_t begin, std::int64_t end) {
      gather_run(view, begin, end - begin, dst + begin * element);
    });
    return dst;
  }

  const Jaxpr group_;
  Nest nest_;
  int lanes_;
  std::vector<std::int64_t> packed_at_;  // by input: offset in scratch, or -1
  std::int64_t scratch_bytes_ = 0;
  std::vector<bool> streams_;
  bool streams_any_ = false;
  std::unique_ptr<const Code> code_;
  mutable std::once_flag unaligned_once_;
  mutable std::unique_ptr<const Code> unaligned_code_;
  // The function's range, cut into units.
  std::int64_t length_ = 0, unit_ = 1, units_ = 0, grain_ = 1;
};

}  // namespace

std::unique_ptr<Kernel> make_kernel(const Jaxpr& group, std::span<const Sizes64> strides) {
  return std::make_unique<LoopKernel>(group, strides);
}

}  // namespace plait::llvm
