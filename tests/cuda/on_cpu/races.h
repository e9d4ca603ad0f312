// What threads did to 8 neighbouring bytes lately, packed, and which of it races.
//
// Time is a number that grows whenever threads meet. Two accesses of a byte by different threads
// race when one of them writes, one is not atomic, and nothing orders them: the later thread knows
// of the other's accesses only before a certain time.
//
// Four accesses are kept of each 8 bytes. Where more threads are concerned, one of the older ones
// is forgotten: then a race may stay unseen with one seed, and none is ever made up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../memory.h"
#include "interface.h"

namespace on_cpu {

// thread: 24 bits, time: 30, bytes: 8, is_write, is_atomic.
struct Past {
  static constexpr std::uint32_t most_threads = 1u << 24, most_time = (1u << 30) - 1;

  std::uint64_t word = 0;
  static Past make(std::uint32_t thread, std::uint32_t time, unsigned bytes, Access access) {
    return {std::uint64_t{thread} << 40 | std::uint64_t{time} << 10 | bytes << 2 |
            unsigned(access >= Access::write) << 1 | unsigned(access == Access::atomic)};
  }
  std::uint32_t thread() const { return std::uint32_t(word >> 40); }
  std::uint32_t time() const { return std::uint32_t(word >> 10) & most_time; }
  unsigned bytes() const { return unsigned(word >> 2) & 0xff; }
  bool is_write() const { return word & 2; }
  bool is_atomic() const { return word & 1; }
};

enum class Race { none, race, constant };  // constant: In<T> was written in this launch

// Looks for what races with an access, and remembers it. is_known(past): whether that access is
// over for the thread. start: when the launch began; all that is older is over.
template <class IsKnown>
inline Race access_bytes(cuda_standin::Accesses& accesses, Past now, Access access,
                         std::uint32_t start, std::uint32_t random, const IsKnown& is_known,
                         Past& other) {
  int at = -1, empty = -1;
  bool is_needless = false;
  for (int i = 0; i < 4; ++i) {
    const Past past{accesses.last[i]};
    if (past.time() < start || past.bytes() == 0) {
      empty = i;
      continue;
    }
    const unsigned common = past.bytes() & now.bytes();
    if (common == 0) continue;
    const bool is_own = past.thread() == now.thread();
    if (past.is_write() && access == Access::constant) return other = past, Race::constant;
    const bool conflicts =
        (past.is_write() || now.is_write()) && !is_own && !(past.is_atomic() && now.is_atomic());
    const bool known = is_own || is_known(past);
    if (conflicts && !known) return other = past, Race::race;
    // Whoever races with the older access races with the newer one too.
    const bool says_more =
        (now.is_write() || !past.is_write()) && (past.is_atomic() || !now.is_atomic());
    if (known && says_more && common == past.bytes()) at = i;
    if (is_own && past.time() == now.time() && common == now.bytes() &&
        (past.is_write() || !now.is_write()) && (now.is_atomic() || !past.is_atomic()))
      is_needless = true;
  }
  if (is_needless) return Race::none;
  if (at < 0) at = empty;
  if (at < 0) at = int(random & 3);
  accesses.last[at] = now.word;
  return Race::none;
}

}  // namespace on_cpu
