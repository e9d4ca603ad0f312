// What the fuzzers feed: readers of untrusted bytes. A reader may refuse what it is given, by a
// UserError; whatever else it throws, and whatever it reads outside its bytes, is a finding.
//
// The ordinary tests replay the corpus through the same functions (tests/program/corpus_test.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/program/program.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "codegen/parse.h"
#include "program/npy.h"
#include "program/safetensors.h"

namespace fuzz {

// Reads every byte, so that a sanitizer sees those that are not there.
inline void touch(const plait::Buffer& buffer) {
  volatile char sum = 0;
  const char* bytes = static_cast<const char*>(buffer.data());
  for (std::int64_t i = 0; i < buffer.bytes(); ++i) sum = char(sum + bytes[i]);
}

// A text that is a jaxpr is one that print writes again.
inline void parse(std::string_view text) {
  plait::Jaxpr jaxpr;
  try {
    jaxpr = plait::parse(text);
  } catch (const plait::UserError&) {
    return;
  }
  for (auto sources : {plait::ShowSources::no, plait::ShowSources::yes})
    if (!(plait::parse(plait::print(jaxpr, sources)) == jaxpr))
      throw std::logic_error("parse(print(j)) is another program than j");
}

// The same of a loop program, whose calls are of kernels that do nothing.
inline void loops(std::string_view text) {
  struct NoKernel final : plait::Kernel {
    void enqueue(std::span<const plait::View>, std::span<const plait::View>, void*,
                 const plait::Launch&) const override {}
  };
  const auto kernel = [](const plait::Jaxpr&, std::span<const plait::Sizes64>) {
    return std::make_shared<const NoKernel>();
  };
  plait::codegen::LoopProgram program;
  try {
    program = plait::codegen::parse(text, kernel);
  } catch (const plait::UserError&) {
    return;
  }
  for (auto sources : {plait::ShowSources::no, plait::ShowSources::yes}) {
    const std::string printed = print(program, sources);
    if (print(plait::codegen::parse(printed, kernel), sources) != printed)
      throw std::logic_error("print(parse(print(p))) is another text than print(p)");
  }
}

// Memory of its own, of this size exactly.
inline plait::Storage copy_of(std::string_view bytes) {
  const plait::Storage storage = plait::Storage::allocate(bytes.size() + 1);
  std::memcpy(storage.data(), bytes.data(), bytes.size());
  return storage;
}

inline void safetensors(std::string_view bytes) {
  const plait::Storage storage = copy_of(bytes);
  try {
    for (const plait::NamedArray& named : plait::read_safetensors(
             static_cast<const char*>(storage.data()), bytes.size(), storage, "fuzz"))
      touch(named.array);
  } catch (const plait::UserError&) {
  }
}

// An array that was read is one that is written and read again, to the bit.
inline void npy(std::string_view bytes) {
  const auto read = [](std::string_view bytes) {
    const plait::Storage storage = copy_of(bytes);
    return plait::read_npy({static_cast<const char*>(storage.data()), bytes.size()}, storage,
                           "fuzz");
  };
  const auto elements_of = [](const plait::Buffer& array) {
    return std::string(static_cast<const char*>(array.data()), std::size_t(array.bytes()));
  };
  plait::Buffer array;
  try {
    array = read(bytes);
  } catch (const plait::UserError&) {
    return;
  }
  touch(array);
  array = array.dense();
  const plait::Buffer again = read(plait::npy_header(array) + elements_of(array));
  if (again.dtype() != array.dtype() || again.shape() != array.shape() ||
      elements_of(again) != elements_of(array))
    throw std::logic_error("an array that was written is read as another");
}

// --- Archives ------------------------------------------------------------------------------------

inline std::uint32_t crc32(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> table;
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int k = 0; k < 8; ++k) value = value & 1 ? 0xEDB88320u ^ (value >> 1) : value >> 1;
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t value = ~0u;
  for (char c : bytes) value = table[(value ^ std::uint8_t(c)) & 255] ^ (value >> 8);
  return ~value;
}

// A zip archive that stores its members as they are.
class Zip {
 public:
  void add(std::string_view name, std::string_view bytes) {
    const std::string facts = number(0, 2) + number(0, 2) + number(0, 2) + number(0x21, 2) +
                              number(crc32(bytes), 4) + number(bytes.size(), 4) +
                              number(bytes.size(), 4) + number(name.size(), 2) + number(0, 2);
    central_ += "PK\1\2" + number(20, 2) + number(20, 2) + facts + number(0, 2) + number(0, 2) +
                number(0, 2) + number(0, 4) + number(file_.size(), 4) + std::string(name);
    file_ += "PK\3\4" + number(20, 2) + facts + std::string(name) + std::string(bytes);
    ++count_;
  }
  std::string bytes() const {
    return file_ + central_ + "PK\5\6" + number(0, 2) + number(0, 2) + number(count_, 2) +
           number(count_, 2) + number(central_.size(), 4) + number(file_.size(), 4) + number(0, 2);
  }

 private:
  static std::string number(std::uint64_t value, int bytes) {
    std::string text;
    for (int i = 0; i < bytes; ++i) text += char(value >> 8 * i & 255);
    return text;
  }
  std::string file_, central_;
  std::uint64_t count_ = 0;
};

// An archive as text, which mutations keep readable: members behind lines "=== name".
inline std::string archive_of(std::string_view text) {
  constexpr std::string_view mark = "=== ";
  Zip zip;
  for (std::size_t at = text.find(mark); at != std::string_view::npos;) {
    const std::size_t name = at + mark.size();
    const std::size_t end = std::min(text.find('\n', name), text.size());
    at = text.find("\n=== ", end);
    at = at == std::string_view::npos ? at : at + 1;
    const std::size_t start = std::min(end + 1, text.size());
    zip.add(text.substr(name, end - name), text.substr(start, std::min(at, text.size()) - start));
  }
  return zip.bytes();
}

// Bytes of a .plait file, or such a text.
inline void load(std::string_view bytes) {
  const std::string file = bytes.starts_with("PK") ? std::string(bytes) : archive_of(bytes);
  const int memory = memfd_create("fuzz", MFD_CLOEXEC);
  if (memory < 0 || write(memory, file.data(), file.size()) != ssize_t(file.size())) std::abort();
  try {
    for (bool map : {false, true}) {
      const plait::Program program =
          plait::load("/proc/self/fd/" + std::to_string(memory), {.map_memory = map});
      for (const plait::Entry& entry : program.entries()) {
        for (const plait::Array& constant : entry.constants()) touch(constant.buffer());
        if (!(plait::parse(plait::print(entry.jaxpr())) == entry.jaxpr()))
          throw std::logic_error("a loaded program is not what its text says");
        (void)entry.arguments().to_string();
      }
    }
  } catch (const plait::UserError&) {
  }
  close(memory);
}

}  // namespace fuzz
