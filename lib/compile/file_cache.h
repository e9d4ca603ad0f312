// Compiled code that outlives the process: a folder of files, shared by all processes of a user.
//
// It is PLAIT_CACHE_DIR, else plait in XDG_CACHE_HOME, else ~/.cache/plait; "" or 0 is none. A file
// appears whole or not at all, is read only where it belongs to this user and its checksum holds,
// and the oldest go when there are too many. A folder that cannot be written is read all the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace plait {

// The files of one backend, by their ending. Thread-safe.
class FileCache {
 public:
  // 128 bits that stand for a text.
  using Key = std::array<std::uint64_t, 2>;
  static Key key_of(std::string_view text);

  // ending: ".o". backend: its name, for the log.
  FileCache(std::string ending, std::string backend);
  std::optional<std::string> read(const Key& key) const;
  void write(const Key& key, std::string_view bytes);

 private:
  std::string path_of(const Key& key) const;
  void stop_writing(const char* action, int error);
  void trim() const;

  const std::string ending_, backend_;
  std::atomic<bool> is_writable_{true};
  std::atomic<std::int64_t> bytes_left_{0};  // to be written before the folder is looked through
  std::atomic<int> count_{0};
};

}  // namespace plait
