// What save writes is what other readers of zip archives take; the checksums.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../fuzz/targets.h"
#include "program/archive.h"
#include "program/crc32.h"

using namespace plait;

TEST_CASE("the checksum of archives is that of a table, at every length and from every state") {
  std::string bytes;
  for (int i = 0; i < 700; ++i) bytes += char(i * 37 % 251);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const std::string_view all = bytes, head = all.substr(0, size), tail = all.substr(size);
    CAPTURE(size);
    CHECK(crc32(0, head) == fuzz::crc32(head));
    CHECK(crc32(crc32(0, head), tail) == fuzz::crc32(all));
  }
}

TEST_CASE("members come back as they were added, and data lies at multiples of 64 bytes") {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("archive_" + std::to_string(getpid()))).string();
  const std::string data(1'000'003, 'd'), text(100'000, 't');
  {
    ArchiveWriter archive(path);
    archive.add_data("first.bin", {data, "end"});
    archive.add_text("é.txt", text);
    archive.add_data("none.bin", {});
    archive.add_data("last.bin", {"la", "st"});
    archive.commit();
  }
  const auto text_of = [](const Storage& storage) {
    return std::string(static_cast<const char*>(storage.data()), storage.bytes());
  };
  using Access = ArchiveReader::Access;
  const ArchiveReader archive(path);
  CHECK(archive.names() == std::vector<std::string>{"first.bin", "é.txt", "none.bin", "last.bin"});
  CHECK(text_of(archive.data("first.bin", Access::checked)) == data + "end");
  const Storage mapped = archive.data("first.bin", Access::mapped);
  CHECK(text_of(mapped) == data + "end");
  CHECK(reinterpret_cast<std::uintptr_t>(mapped.data()) % 64 == 0);
  CHECK(archive.text("é.txt", text.size()) == text);
  CHECK(archive.data("none.bin", Access::checked).bytes() == 0);
  CHECK(text_of(archive.data("last.bin", Access::checked)) == "last");
  const auto reader = archive.partial_reader("first.bin");
  REQUIRE(reader);
  CHECK(reader->read(0, data.size() + 3));
  CHECK(text_of(reader->storage) == data + "end");
  CHECK(!archive.partial_reader("last.bin"));
  CHECK(std::filesystem::file_size(path) < data.size() + 2000);
  std::filesystem::remove(path);
}
