// Zip archives. They are read by libzip and written here, because libzip writes in chunks of 8 KB
// and checksums them slowly; texts are compressed by zlib. These libraries are loaded when a
// program is first saved or loaded, so that other programs do not pay for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

// How messages describe an archive: the operation, and the expected kind of file.
struct ArchiveUse {
  const char *verb, *kind;
};

// Bytes of a member's local header before its name.
inline constexpr std::size_t local_header = 30;

class ArchiveWriter {
 public:
  explicit ArchiveWriter(std::string path, const char* verb = "save");
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  // Names are unique. Texts are compressed. Data is stored uncompressed at a multiple of 64 bytes,
  // so that it can be mapped; it is read when the archive is committed.
  void add_text(const std::string& name, std::string text);
  void add_data(const std::string& name, std::vector<std::string_view> parts);
  // Writes a new file, then replaces the old one.
  void commit();

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

class ArchiveReader {
 public:
  explicit ArchiveReader(std::string path, ArchiveUse use = {"load", ".plait file"});
  ~ArchiveReader();
  ArchiveReader(const ArchiveReader&) = delete;
  const std::string& path() const;
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;  // of all members, in the order of the file
  // ValueError where a member is missing, damaged, or larger than the limit, and where members
  // unpack to far more than the file's size.
  std::string text(const std::string& name, std::size_t limit) const;
  // How a member is read: with a check of the archive's checksum, or, where it is the first of the
  // file and uncompressed, mapped, without a check.
  enum class Access { checked, mapped };
  Storage data(const std::string& name, Access access) const;
  // The same for readers that compare checksums themselves: memory, and a function that reads bytes
  // of the member into it, from several threads; false at the end of the file. Null where the
  // member cannot be mapped.
  struct PartialReader {
    Storage storage;
    std::function<bool(std::size_t begin, std::size_t end)> read;
  };
  std::optional<PartialReader> partial_reader(const std::string& name) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace plait
