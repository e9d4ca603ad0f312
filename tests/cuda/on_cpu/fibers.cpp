// See fibers.h.
// SPDX-License-Identifier: Apache-2.0
#include "fibers.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace on_cpu {
namespace {

constexpr std::size_t stack_bytes = 64 << 10, stacks_at_once = 256;
constexpr std::uint64_t at_end_of_stack = 0x5AFE57AC5AFE57AC;

}  // namespace

// Saves what a called function must preserve, and takes up the other stack where it was left.
extern "C" void on_cpu_change_stack(void** from, void* to);
asm(R"(
  .text
  .type on_cpu_change_stack, @function
on_cpu_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size on_cpu_change_stack, . - on_cpu_change_stack
)");

void Fibers::change(Fiber& from, const Fiber& to) {
  on_cpu_change_stack(&from.stack_pointer, to.stack_pointer);
}

void Fibers::start(Fiber& fiber) const {
  *reinterpret_cast<std::uint64_t*>(fiber.stack) = at_end_of_stack;
  // Six registers, the address of work, and a place for an address to return to: so the stack is
  // aligned as after a call.
  auto** top = reinterpret_cast<void**>(fiber.stack + stack_bytes) - 8;
  for (int i = 0; i < 8; ++i) top[i] = nullptr;
  top[6] = reinterpret_cast<void*>(work_);
  fiber.stack_pointer = top;
}

Fibers::Fiber* Fibers::take() {
  if (idle_.empty()) {
    // Not given back: machines live as long as the process.
    auto* stacks =
        static_cast<char*>(mmap(nullptr, stack_bytes * stacks_at_once, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (stacks == MAP_FAILED) {
      std::fprintf(stderr, "stand-in of CUDA: no address space for stacks\n");
      std::abort();
    }
    for (std::size_t i = 0; i < stacks_at_once; ++i) {
      all_.push_back(std::make_unique<Fiber>());
      all_.back()->stack = stacks + i * stack_bytes;
      start(*all_.back());
      idle_.push_back(all_.back().get());
    }
  }
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void Fibers::forget() {
  idle_.clear();
  for (const auto& fiber : all_) {
    start(*fiber);
    idle_.push_back(fiber.get());
  }
}

bool Fibers::is_full(const Fiber& fiber) {
  return *reinterpret_cast<std::uint64_t*>(fiber.stack) != at_end_of_stack;
}

}  // namespace on_cpu
