// The language of kernels, on a CPU: the second definition, by which the text that a GPU gets runs
// in tests. Every access is checked, and threads meet by the machine of fibers (../machine.h). The
// first definition is lib/backends/cuda/device/plait/kernel.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "../interface.h"

// Set when the text is loaded.
extern "C" {
[[gnu::visibility("default"), gnu::used]] inline on_cpu::Machine* plait_kernel_machine = nullptr;
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define threadIdx (plait_kernel_machine->place->thread)
#define blockIdx (plait_kernel_machine->place->block)
#define blockDim (plait_kernel_machine->place->block_size)
#define gridDim (plait_kernel_machine->place->grid_size)

namespace on_cpu {

template <class T>
inline constexpr bool is_element = std::is_trivially_copyable_v<T>;

template <class T>
T* checked(unsigned long address, Access access) {
  static_assert(is_element<T>);
  return static_cast<T*>(plait_kernel_machine->access(address, sizeof(T), alignof(T), access));
}
template <class T>
T load(unsigned long address, Access access) {
  T value;
  std::memcpy(&value, checked<T>(address, access), sizeof(T));
  return value;
}
template <class T>
void store(unsigned long address, const T& value) {
  std::memcpy(static_cast<void*>(checked<T>(address, Access::write)), &value, sizeof(T));
}

template <class T>
struct Pointer;

// An element of memory. Its address is a Pointer.
template <class T>
class Element {
 public:
  explicit Element(unsigned long address) : address_(address) {}
  Element(const Element&) = default;
  operator T() const { return load<T>(address_, Access::read); }
  Element& operator=(const T& value) { return store<T>(address_, value), *this; }
  Element& operator=(const Element& other) { return *this = T(other); }
  Element& operator+=(const T& value) { return *this = T(T(*this) + value); }
  Element& operator-=(const T& value) { return *this = T(T(*this) - value); }
  Element& operator*=(const T& value) { return *this = T(T(*this) * value); }
  Element& operator/=(const T& value) { return *this = T(T(*this) / value); }
  Element& operator|=(const T& value) { return *this = T(T(*this) | value); }
  Element& operator&=(const T& value) { return *this = T(T(*this) & value); }
  Element& operator^=(const T& value) { return *this = T(T(*this) ^ value); }
  Element& operator++() { return *this += T(1); }
  Pointer<T> operator&() const { return {address_}; }

 private:
  const unsigned long address_;
};

// What T* is on a GPU.
template <class T>
struct Pointer {
  unsigned long address;
  Element<T> operator[](long i) const { return Element<T>(address + (unsigned long)i * sizeof(T)); }
  Element<T> operator*() const { return Element<T>(address); }
  Pointer operator+(long n) const { return {address + (unsigned long)n * sizeof(T)}; }
  Pointer operator-(long n) const { return {address - (unsigned long)n * sizeof(T)}; }
  Pointer& operator+=(long n) { return *this = *this + n; }
  bool operator==(const Pointer&) const = default;
  // A reinterpret_cast, as C writes it.
  template <class U>
  explicit operator Pointer<U>() const {
    return {address};
  }
};

// What const T* __restrict__ is on a GPU.
template <class T>
struct Constant {
  unsigned long address;
  T operator[](long i) const {
    return load<T>(address + (unsigned long)i * sizeof(T), Access::constant);
  }
  T operator*() const { return (*this)[0]; }
  Constant operator+(long n) const { return {address + (unsigned long)n * sizeof(T)}; }
  bool operator==(const Constant&) const = default;
  template <class U>
  explicit operator Constant<U>() const {
    return {address};
  }
  // A cast that C allows as well: what is read as if it might change.
  template <class U>
  explicit operator Pointer<U>() const {
    return {address};
  }
};

template <class T>
T* atomic(Pointer<T> pointer) {
  static_assert(std::is_arithmetic_v<T>);
  return checked<T>(pointer.address, Access::atomic);
}
// What was there; f of it is there now.
template <class T, class F>
T exchange(Pointer<T> pointer, const F& f) {
  T* memory = atomic(pointer);
  T old;  // which the host may change at the same time
  __atomic_load(memory, &old, __ATOMIC_SEQ_CST);
  for (T value = f(old);
       !__atomic_compare_exchange(memory, &old, &value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
       value = f(old)) {
  }
  return old;
}

template <class T>
using Same = std::type_identity_t<T>;
template <class T, class... U>
concept OneOf = (std::is_same_v<T, U> || ...);
template <class T>
concept Shuffled =
    OneOf<T, int, unsigned, long, unsigned long, long long, unsigned long long, float, double>;

template <Shuffled T>
T meet(Meeting meeting, unsigned mask, T value, int argument, int width, Site site) {
  unsigned long word = 0;
  std::memcpy(&word, &value, sizeof(T));
  word = plait_kernel_machine->meet(meeting, mask, word, argument, width, site);
  std::memcpy(&value, &word, sizeof(T));
  return value;
}

}  // namespace on_cpu

template <class T>
using In = on_cpu::Constant<T>;
template <class T>
using Out = on_cpu::Pointer<T>;
template <class T>
using InOut = Out<T>;

#define SHARED(T, name, count)                                            \
  static const char name##_key = 0;                                       \
  const on_cpu::Pointer<T> name {                                         \
    plait_kernel_machine->shared(&name##_key, #name, sizeof(T) * (count)) \
  }
#define SHARED_BYTES(name) \
  const on_cpu::Pointer<unsigned char> name { plait_kernel_machine->dynamic_shared() }

#define PLAIT_SITE \
  on_cpu::Site { __builtin_FILE(), __builtin_LINE() }

inline void __syncthreads(on_cpu::Site site = PLAIT_SITE) {
  plait_kernel_machine->sync_block(site);
}
inline void __syncwarp(unsigned mask = 0xffffffff, on_cpu::Site site = PLAIT_SITE) {
  plait_kernel_machine->meet(on_cpu::Meeting::sync, mask, 0, 0, 32, site);
}
template <class T>
T __shfl_sync(unsigned mask, T x, int lane, int width = 32, on_cpu::Site site = PLAIT_SITE) {
  return on_cpu::meet(on_cpu::Meeting::index, mask, x, lane, width, site);
}
template <class T>
T __shfl_down_sync(unsigned mask, T x, unsigned delta, int width = 32,
                   on_cpu::Site site = PLAIT_SITE) {
  return on_cpu::meet(on_cpu::Meeting::down, mask, x, int(delta), width, site);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned delta, int width = 32,
                 on_cpu::Site site = PLAIT_SITE) {
  return on_cpu::meet(on_cpu::Meeting::up, mask, x, int(delta), width, site);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, int lane_mask, int width = 32,
                  on_cpu::Site site = PLAIT_SITE) {
  return on_cpu::meet(on_cpu::Meeting::exclusive_or, mask, x, lane_mask, width, site);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, on_cpu::Site site = PLAIT_SITE) {
  return on_cpu::meet(on_cpu::Meeting::ballot, mask, unsigned(predicate != 0), 0, 32, site);
}
#undef PLAIT_SITE

inline void __threadfence() { plait_kernel_machine->fence(); }
inline void __threadfence_system() { plait_kernel_machine->fence(); }
inline void __nanosleep(unsigned) {}

// Of the types that CUDA has them for.
template <on_cpu::OneOf<int, unsigned, unsigned long long, float, double> T>
T atomicAdd(on_cpu::Pointer<T> p, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [x](T old) { return T(old + x); });
}
template <on_cpu::OneOf<int, unsigned, unsigned long long, float> T>
T atomicExch(on_cpu::Pointer<T> p, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [x](T) { return x; });
}
template <on_cpu::OneOf<int, unsigned, unsigned long long, unsigned short> T>
T atomicCAS(on_cpu::Pointer<T> p, on_cpu::Same<T> expected, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [=](T old) { return old == expected ? x : old; });
}
template <on_cpu::OneOf<int, unsigned, long long, unsigned long long> T>
T atomicMin(on_cpu::Pointer<T> p, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [x](T old) { return x < old ? x : old; });
}
template <on_cpu::OneOf<int, unsigned, long long, unsigned long long> T>
T atomicMax(on_cpu::Pointer<T> p, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [x](T old) { return x > old ? x : old; });
}
template <on_cpu::OneOf<int, unsigned, unsigned long long> T>
T atomicAnd(on_cpu::Pointer<T> p, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [x](T old) { return old & x; });
}
template <on_cpu::OneOf<int, unsigned, unsigned long long> T>
T atomicOr(on_cpu::Pointer<T> p, on_cpu::Same<T> x) {
  return on_cpu::exchange(p, [x](T old) { return old | x; });
}

template <class T>
struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) Four {
  T at[4];
};
// Of Constant or Pointer.
template <template <class> class Memory, class T>
bool begins_fours(Memory<T> memory) {
  return memory.address % alignof(Four<T>) == 0;
}
template <template <class> class Memory, class T>
Four<T> load4(Memory<T> memory, long i) {
  return Memory<Four<T>>(memory + i)[0];
}
template <class T>
void store4(Out<T> memory, long i, const Four<T>& four) {
  Out<Four<T>>(memory + i)[0] = four;
}

struct Failure {
  int step;
  int code;
  long value;
  long order;
  long values[4];
  long stop;
};
namespace on_cpu {
template <class T>
Pointer<T> pointer_to(T& member) {
  return {std::bit_cast<unsigned long>(&member)};
}
}  // namespace on_cpu
namespace on_cpu {
// What others may change meanwhile.
template <class T>
T changing(Pointer<T> pointer) {
  return __atomic_load_n(atomic(pointer), __ATOMIC_ACQUIRE);
}
}  // namespace on_cpu
struct Word {
  Out<int> failed;
  int kernel;
  Failure* failure;
  int step;
};
inline bool has_failed_before(Out<int> failed, int kernel) {
  const int number = on_cpu::changing(failed);
  return number != 0 && number < kernel;
}
inline void fail(const Word& word, int code, long value, long order) {
  Failure* const failure = word.failure;
  atomicExch(word.failed, word.kernel);
  constexpr int being_written = -1;
  const auto step = on_cpu::pointer_to(failure->step);
  const auto before = on_cpu::pointer_to(failure->order);
  const auto is_later = [&] { return order >= on_cpu::changing(before); };
  int known;
  do {
    while ((known = on_cpu::changing(step)) == being_written) __nanosleep(20);
    if (known != 0 && (known != word.step || is_later())) return;
  } while (atomicCAS(step, known, being_written) != known);
  if (known == 0 || !is_later()) {
    *on_cpu::pointer_to(failure->code) = code;
    *on_cpu::pointer_to(failure->value) = value;
    *before = order;
  }
  __threadfence_system();
  atomicExch(step, word.step);
}
inline bool has_failed(const Word& word) { return on_cpu::changing(word.failed) != 0; }
inline bool is_stopped(const Word& word) {
  if (on_cpu::changing(on_cpu::pointer_to(word.failure->stop)) != 0) fail(word, -1, 0, 0);
  return on_cpu::changing(on_cpu::pointer_to(word.failure->step)) != 0;
}
inline bool from_first_thread(bool x) {
  SHARED(bool, said, 1);
  __syncthreads();
  if (threadIdx.x == 0) said[0] = x;
  __syncthreads();
  return said[0];
}

// The whole grid meets in the machine; the memory is only looked at.
struct Grid {
  unsigned arrived, meetings;
  unsigned said;
};
inline void sync_grid(Grid* grid, on_cpu::Site site = {__builtin_FILE(), __builtin_LINE()}) {
  plait_kernel_machine->sync_grid(std::bit_cast<unsigned long>(grid), site);
}
inline bool from_first_block(bool x, Grid* grid) {
  sync_grid(grid);
  if (blockIdx.x == 0 && threadIdx.x == 0) *on_cpu::pointer_to(grid->said) = x;
  sync_grid(grid);
  return *on_cpu::pointer_to(grid->said) != 0;
}
