// Zip archives. They are read by libzip and written here, since libzip writes in pieces of 8 KB
// and sums them slowly; texts are packed by zlib. These libraries are loaded when a program is
// first saved or loaded: what runs and saves nothing does not pay for them.
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

// What messages say of an archive: who uses it, and what it ought to be.
struct ArchiveUse {
  const char *verb, *kind;
};

class ArchiveWriter {
 public:
  explicit ArchiveWriter(std::string path, const char* verb = "save");
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  // Names are of one member each. Texts are packed; data is stored as it is, at a multiple of 64
  // bytes, so that it can be mapped, and read when the archive is committed.
  void add_text(const std::string& name, std::string text);
  void add_data(const std::string& name, std::vector<std::string_view> parts);
  // Writes a new file and puts it in the place of the old one.
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
  // unpack to far more than the file holds.
  std::string text(const std::string& name, std::size_t limit) const;
  // How a member comes into memory: compared with the archive's checksum, or mapped, which compares
  // nothing, where it is the first of the file and stored as it is.
  enum class Access { checked, mapped };
  Storage data(const std::string& name, Access access) const;
  // The same for who compares on the way: memory, and what reads bytes of the member to their
  // places in it, from several threads; false where the file ends. Nothing for what is not mapped.
  struct Pieces {
    Storage storage;
    std::function<bool(std::size_t begin, std::size_t end)> read;
  };
  std::optional<Pieces> pieces(const std::string& name) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace plait
