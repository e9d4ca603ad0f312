// Zip archives, by libzip, which is loaded when a program is first saved or loaded: what runs and
// saves nothing does not pay for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <plait/base/buffer.h>

#include <memory>
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
  // The bytes are read when the archive is committed. Members that are stored as they are begin at
  // a multiple of 64 bytes where they are added first, so that they can be mapped.
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
  // How a member comes into memory. The first of a file that is stored as it is need not be
  // compared with the archive's checksum: it is mapped, or copied for a caller who compares.
  enum class Access { checked, copied, mapped };
  Storage data(const std::string& name, Access access) const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace plait
