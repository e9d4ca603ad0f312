// The caching allocator and storage: alignment, reuse, accounting across threads and their ends,
// fork, impossible requests, and the one release of foreign memory.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <plait/base/allocator.h>
#include <plait/base/error.h>
#include <plait/base/memory.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace plait;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool caching = false;
#elif defined(__has_feature)
constexpr bool caching = !__has_feature(address_sanitizer);
#else
constexpr bool caching = true;
#endif

// A block filled with a pattern of its own, so that a block handed out twice is noticed.
struct Filled {
  explicit Filled(std::size_t size, unsigned char fill)
      : data(static_cast<unsigned char*>(allocate(size))), bytes(size), pattern(fill) {
    std::memset(data, pattern, bytes);
  }
  bool is_intact() const {
    for (std::size_t i = 0; i < bytes; i += 61)
      if (data[i] != pattern) return false;
    return bytes == 0 || data[bytes - 1] == pattern;
  }
  void free() const { deallocate(data, bytes); }
  unsigned char* data;
  std::size_t bytes;
  unsigned char pattern;
};

bool churn(unsigned seed, int rounds) {
  std::mt19937 random(seed);
  std::vector<Filled> blocks;
  bool intact = true;
  for (int i = 0; i < rounds; ++i) {
    if (blocks.size() < 40 || random() % 2 == 0) {
      const std::size_t magnitude = std::size_t{1} << (random() % 20);
      blocks.emplace_back(random() % (2 * magnitude), static_cast<unsigned char>(random()));
    } else {
      const std::size_t index = random() % blocks.size();
      intact = intact && blocks[index].is_intact();
      blocks[index].free();
      blocks[index] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Filled& block : blocks) {
    intact = intact && block.is_intact();
    block.free();
  }
  return intact;
}

}  // namespace

TEST_CASE("blocks of every size are aligned, writable and apart") {
  std::vector<Filled> blocks;
  for (std::size_t bytes = 0; bytes < 5000; bytes += 37)
    blocks.emplace_back(bytes, static_cast<unsigned char>(bytes));
  for (int shift = 12; shift < 24; ++shift)
    for (const std::size_t change : {-1, 0, 1})
      blocks.emplace_back((std::size_t{1} << shift) + change, static_cast<unsigned char>(shift));
  for (const Filled& block : blocks) {
    CHECK(reinterpret_cast<std::uintptr_t>(block.data) % 64 == 0);
    CHECK(block.is_intact());
    if (caching && block.bytes >= std::size_t{4} << 20)
      CHECK(reinterpret_cast<std::uintptr_t>(block.data) % (std::size_t{2} << 20) < 4096);
  }
  for (const Filled& block : blocks) block.free();
}

TEST_CASE("arrays of whole pages that are made together begin at different places of their pages") {
  if (!caching) return;  // the size is exact there
  for (const std::size_t bytes :
       {std::size_t{160} << 10, std::size_t{1} << 20, std::size_t{8} << 20}) {
    clear_memory();
    std::vector<char*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(static_cast<char*>(allocate(bytes)));
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      const auto apart = reinterpret_cast<std::uintptr_t>(blocks[i]) -
                         reinterpret_cast<std::uintptr_t>(blocks[i - 1]);
      CHECK(apart % 4096 >= 512);
      CHECK(apart % 4096 <= 4096 - 512);
    }
    for (char* block : blocks) deallocate(block, bytes);
  }
}

TEST_CASE("zero bytes give pointers that differ") {
  void* a = allocate(0);
  void* b = allocate(0);
  CHECK(a != nullptr);
  CHECK(a != b);
  deallocate(a, 0);
  deallocate(b, 0);
  deallocate(nullptr, 0);
}

TEST_CASE("a freed block is handed out again") {
  if (!caching) return;
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{100000}, std::size_t{10000000}}) {
    void* first = allocate(bytes);
    deallocate(first, bytes);
    void* second = allocate(bytes - 1);
    CHECK(second == first);
    deallocate(second, bytes - 1);
  }
}

TEST_CASE("live bytes are what was asked for, cached bytes can be returned") {
  clear_memory();
  const std::size_t live = memory_stats().bytes_in_use;
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(allocate(1000));
  void* large = allocate(3000001);
  CHECK(memory_stats().bytes_in_use == live + 1000 * 1000 + 3000001);
  const std::size_t cached = memory_stats().bytes_cached;
  for (void* block : blocks) deallocate(block, 1000);
  deallocate(large, 3000001);
  CHECK(memory_stats().bytes_in_use == live);
  if (caching) CHECK(memory_stats().bytes_cached >= cached + 1000 * 1000 + 3000001);
  clear_memory();
  CHECK(memory_stats().bytes_cached == 0);
}

TEST_CASE("the cache is bounded") {
  if (!caching) return;
  clear_memory();
  // Never touched, so that no memory is used: 24 GiB pass through, in blocks that coexist.
  constexpr std::size_t bytes = std::size_t{256} << 20;
  for (int round = 0; round < 4; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 24; ++i) blocks.push_back(allocate(bytes));
    for (void* block : blocks) deallocate(block, bytes);
    CHECK(memory_stats().bytes_cached <= (std::size_t{4} << 30));
  }
  // More than the cache may hold is not kept.
  void* enormous = allocate(std::size_t{5} << 30);
  deallocate(enormous, std::size_t{5} << 30);
  CHECK(memory_stats().bytes_cached <= (std::size_t{4} << 30));
  clear_memory();
  CHECK(memory_stats().bytes_cached == 0);
}

TEST_CASE("memory that cannot be had is a MemoryError that names the bytes") {
  std::vector<std::size_t> sizes = {std::numeric_limits<std::size_t>::max(), std::size_t{1} << 63,
                                    (std::size_t{1} << 46) + 1};
  // What the system refuses; AddressSanitizer would end the program instead.
  if (caching) sizes.push_back(std::size_t{1} << 46);
  for (const std::size_t bytes : sizes) {
    const std::size_t live = memory_stats().bytes_in_use;
    try {
      deallocate(allocate(bytes), bytes);
      FAIL("allocated");
    } catch (const MemoryError& error) {
      CHECK(error.problem() == "cannot allocate " + std::to_string(bytes) + " bytes");
      CHECK(!error.fix().empty());
    }
    CHECK(memory_stats().bytes_in_use == live);
  }
}

TEST_CASE("many threads allocate, free and exit at once") {
  const std::size_t live = memory_stats().bytes_in_use;
  std::vector<std::thread> threads;
  std::atomic<int> num_intact{0};
  for (unsigned seed = 0; seed < 8; ++seed)
    threads.emplace_back([&, seed] { num_intact += churn(seed, 20000); });
  for (std::thread& thread : threads) thread.join();
  CHECK(num_intact == 8);
  CHECK(memory_stats().bytes_in_use == live);
}

TEST_CASE("a block may be freed by a thread that did not allocate it") {
  const std::size_t live = memory_stats().bytes_in_use;
  std::vector<Filled> blocks;
  std::thread([&] {
    for (std::size_t i = 0; i < 20000; ++i)
      blocks.emplace_back(i % 300, static_cast<unsigned char>(i));
  }).join();
  for (const Filled& block : blocks) {
    REQUIRE(block.is_intact());
    block.free();
  }
  CHECK(memory_stats().bytes_in_use == live);
}

TEST_CASE("a destructor that runs while its thread exits may free") {
  struct FreesLate {
    Storage storage;
    ~FreesLate() {
      storage = Storage::allocate(50);
      storage = Storage();
    }
  };
  const std::size_t live = memory_stats().bytes_in_use;
  std::thread([] {
    static thread_local FreesLate late;  // constructed first, destroyed after the allocator's own
    late.storage = Storage();
    late.storage = Storage::allocate(100);
  }).join();
  CHECK(memory_stats().bytes_in_use == live);
}

TEST_CASE("the child of fork allocates while other threads of the parent did") {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  // AddressSanitizer's own allocator may be locked by another thread at fork.
  for (unsigned seed = 0; seed < (caching ? 2 : 0); ++seed)
    threads.emplace_back([&, seed] {
      while (!stop) churn(seed, 200);
    });
  void* before = allocate(1000);
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a deadlock is a failure
      const std::size_t live = memory_stats().bytes_in_use;
      bool ok = churn(7, 2000) && memory_stats().bytes_in_use == live;
      deallocate(before, 1000);
      ok = ok && memory_stats().bytes_in_use == live - 1000;
      clear_memory();
      _exit(ok && (!caching || memory_stats().bytes_cached == 0) ? 0 : 1);
    }
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  deallocate(before, 1000);
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("storage is counted and freed with its last reference") {
  const std::size_t live = memory_stats().bytes_in_use;
  {
    Storage a = Storage::allocate(100);
    CHECK(memory_stats().bytes_in_use == live + 100);
    CHECK(a.bytes() == 100);
    CHECK(a.is_unique());
    CHECK(!a.is_foreign());
    Storage b = a;
    CHECK(!a.is_unique());
    CHECK(b.data() == a.data());
    a = Storage();
    CHECK(b.is_unique());
    CHECK(!a);
    CHECK(a.data() == nullptr);
    CHECK(a.bytes() == 0);
    Storage c = std::move(b);
    CHECK(c.is_unique());
    const Storage& itself = c;
    c = itself;
    CHECK(c.is_unique());
  }
  CHECK(memory_stats().bytes_in_use == live);
}

TEST_CASE("foreign memory is released once, on the thread that drops it") {
  int number = 5, num_releases = 0;
  std::thread::id releaser;
  Storage storage = Storage::foreign(&number, sizeof number, [&] {
    ++num_releases;
    releaser = std::this_thread::get_id();
  });
  CHECK(storage.is_foreign());
  CHECK(storage.data() == &number);
  Storage other = storage;
  storage = Storage();
  CHECK(num_releases == 0);
  std::thread::id dropper;
  std::thread([&, moved = std::move(other)]() mutable {
    dropper = std::this_thread::get_id();
    moved = Storage();
  }).join();
  CHECK(num_releases == 1);
  CHECK(releaser == dropper);
  CHECK(Storage::foreign(&number, sizeof number, nullptr).is_foreign());
}
