// What the kernels of control flow share: bodies that are executables, and operands in memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/system_memory.h"
#include "compile/operands.h"
#include "control/rows.h"

#include <plait/base/interrupt.h>
#include <plait/base/stack.h>
#include <plait/base/transfer.h>
#include <plait/compile/compile.h>
#include <plait/control/primitives.h>

#include <atomic>
#include <cstring>

namespace plait {

// An executable with a session that the next call takes, if no other has it.
class CompiledBody {
 public:
  CompiledBody(const Jaxpr& jaxpr, Device device, std::size_t num_carries = 0)
      : executable_(compile(jaxpr, {.num_carries = num_carries, .device = device})),
        in_place_(executable_->carries_in_place()) {}
  ~CompiledBody() { delete spare_.load(); }
  CompiledBody(const CompiledBody&) = delete;

  // Whether a carry's next value may be given the carry's memory, and is then not copied.
  bool is_in_place(std::size_t carry) const { return carry < in_place_.size() && in_place_[carry]; }

  class Lease {
   public:
    explicit Lease(const CompiledBody& body)
        : body_(body), session_(body.spare_.exchange(nullptr, std::memory_order_acquire)) {
      if (!session_) session_ = body.executable_->open().release();
    }
    ~Lease() {
      Session* expected = nullptr;
      if (!body_.spare_.compare_exchange_strong(expected, session_, std::memory_order_release))
        delete session_;
    }
    Lease(const Lease&) = delete;
    void run(std::span<const View> inputs, std::span<const View> outputs, const Stream& stream) {
      session_->run(inputs, outputs, stream);
    }

   private:
    const CompiledBody& body_;
    Session* session_;
  };

 private:
  const std::shared_ptr<const Executable> executable_;
  const std::vector<bool> in_place_;
  mutable std::atomic<Session*> spare_{nullptr};
};

// An equation's operands as dense memory.
class DenseOperands {
 public:
  DenseOperands(const Jaxpr& group, Device device, std::size_t num_on_host = 0)
      : operands_(group->equations[0], group, device, num_on_host),
        atoms_(group->equations[0].inputs) {}
  // Whether an input of the group is this operand of the equation, and no other.
  bool is_only(std::size_t input, std::size_t operand) const {
    const Atom atom = Var{int(input)};
    return operand < atoms_.size() && atoms_[operand] == atom &&
           std::count(atoms_.begin(), atoms_.end(), atom) == 1;
  }
  // Whether an input of the group is this operand.
  bool reads(std::size_t input, std::size_t operand) const {
    return atoms_[operand] == Atom(Var{int(input)});
  }
  std::vector<View> collect(std::span<const View> inputs, std::vector<Buffer>& copies,
                            const Stream& stream) const {
    std::vector<View> views(operands_.size());
    operands_.collect(inputs, views.data());
    for (View& view : views) {
      if (view.is_dense()) continue;
      copies.push_back(Buffer::empty(view.dtype, view.shape, stream));
      copy(view, copies.back().placed(), stream);
      view = copies.back().placed();
    }
    return views;
  }

 private:
  const GroupOperands operands_;
  const std::vector<Atom> atoms_;
};

// Carries are often a few bytes.
inline void copy_dense(const View& from, const View& to, const Stream& stream) {
  if (!stream.is_host()) return copy(from, to, stream);
  if (const std::int64_t bytes = bytes_of(to); bytes > 0 && from.data != to.data)
    std::memcpy(to.data, from.data, std::size_t(bytes));
}

// Places for carries in scratch memory.
class Carries {
 public:
  explicit Carries(std::span<const Aval> avals) {
    for (const Aval& aval : avals) {
      offsets_.push_back(bytes_);
      const std::int64_t bytes = num_elements(aval.shape.to_sizes()) * size_of(aval.dtype);
      bytes_ += memory::staggered(bytes);
    }
  }
  std::int64_t bytes() const { return bytes_; }
  std::vector<View> views(std::span<const View> like, void* scratch) const {
    std::vector<View> views(like.begin(), like.end());
    for (std::size_t i = 0; i < views.size(); ++i)
      views[i].data = static_cast<char*>(scratch) + offsets_[i];
    return views;
  }

 private:
  std::vector<std::int64_t> offsets_;
  std::int64_t bytes_ = 0;
};

// A stack to be filled with elements that have every row.
inline Stack::Handle make_stack(const Aval& element, const Stream& stream) {
  auto stack = std::make_shared<Stack>(element.stack > 0, stream);
  stack->begin(0, nullptr, bytes_of(element_view(element)));
  return stack;
}

// The error of a loop that has not ended after max_steps.
[[noreturn]] void throw_endless(std::int64_t steps, Source source);

// The kernel of a primitive, registered by the file that holds it: no name leads there, so that a
// compiled object holds the files of those alone that its program needs.
struct ControlKernel {
  const Primitive* primitive;
  std::unique_ptr<Kernel> (*compile)(const Jaxpr& group, Device device);
  bool (*takes)(const Equation& equation) = nullptr;  // none: every equation of it
};
bool register_control(ControlKernel kernel);

// The kernel of this class for a group.
template <class Made>
std::unique_ptr<Kernel> make_kernel(const Jaxpr& group, Device device) {
  return std::make_unique<Made>(group, device);
}

}  // namespace plait
