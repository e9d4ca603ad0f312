// See arrays.h.
// SPDX-License-Identifier: Apache-2.0
#include "tool/arrays.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>

#include "program/archive.h"
#include "program/npy.h"
#include "tool/command.h"

namespace plait::tool {
namespace {

enum class Kind { npz, npy, safetensors };

std::optional<Kind> kind_of(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npz") return Kind::npz;
  if (extension == ".npy") return Kind::npy;
  if (extension == ".safetensors") return Kind::safetensors;
  return std::nullopt;
}

std::string_view bytes_of(const Storage& storage) {
  return {static_cast<const char*>(storage.data()), storage.bytes()};
}
std::string_view bytes_of(const Buffer& buffer) {
  return {static_cast<const char*>(buffer.data()), std::size_t(buffer.bytes())};
}

Storage read_file(const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw FileError("cannot read " + path + ": " + why, "give the path of a file of arrays");
  };
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail(std::strerror(errno));
  const struct Closer {
    int file;
    ~Closer() { close(file); }
  } closer{file};
  struct stat facts;
  if (fstat(file, &facts) != 0) fail(std::strerror(errno));
  if (!S_ISREG(facts.st_mode)) fail("it is no regular file");
  Storage storage = Storage::allocate(std::size_t(facts.st_size));
  for (std::size_t done = 0; done < storage.bytes();) {
    char* const to = static_cast<char*>(storage.data()) + done;
    const ssize_t got = read(file, to, storage.bytes() - done);
    if (got <= 0) fail(got == 0 ? "it became shorter" : std::strerror(errno));
    done += std::size_t(got);
  }
  return storage;
}

std::vector<NamedArray> read_npz(const std::string& path) {
  const ArchiveReader archive(path, {"cannot use the file", ".npz file"});
  std::vector<NamedArray> arrays;
  std::set<std::string> seen;
  for (const std::string& member : archive.names()) {
    const std::string where = path + ", member " + member;
    if (!member.ends_with(".npy"))
      throw ValueError(where + ": it is no array", "give a file that numpy.savez wrote");
    if (!seen.insert(member).second)
      throw ValueError(where + ": the name occurs twice", "the file is damaged");
    const Storage storage = archive.data(member, ArchiveReader::Access::checked);
    arrays.push_back(
        {member.substr(0, member.size() - 4), read_npy(bytes_of(storage), storage, where)});
  }
  return arrays;
}

// Turns names into safe member names of an archive: without folders, and unique.
void make_members(std::vector<NamedArray>& arrays) {
  std::set<std::string> seen;
  for (NamedArray& named : arrays) {
    std::replace_if(
        named.name.begin(), named.name.end(),
        [](unsigned char c) { return c == '/' || c == '\\' || c < ' '; }, '_');
    const std::string wanted = named.name;
    for (int number = 2; !seen.insert(named.name).second; ++number)
      named.name = wanted + "." + std::to_string(number);
  }
}

void write_npz(const std::string& path, const std::vector<NamedArray>& arrays) {
  ArchiveWriter archive(path, "cannot use the file");
  std::deque<std::string> headers;
  for (const NamedArray& named : arrays)
    archive.add_data(named.name + ".npy",
                     {headers.emplace_back(npy_header(named.array)), bytes_of(named.array)});
  archive.commit();
}

void write_parts(const std::string& path, const std::vector<std::string_view>& parts) {
  const std::string unfinished = path + "." + std::to_string(getpid());
  std::ofstream file(unfinished, std::ios::binary);
  for (std::string_view part : parts) file.write(part.data(), std::streamsize(part.size()));
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(unfinished, path, error);
  if (file && !error) return;
  const std::string why = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(unfinished, error);
  throw FileError("cannot write " + path + ": " + why,
                  "give a path in a folder that can be written, with room for the file");
}

}  // namespace

std::vector<NamedArray> read_arrays(const std::string& path) {
  const std::optional<Kind> kind = kind_of(path);
  if (!kind)
    throw ValueError(path + " is no file of arrays by its name",
                     "give a file whose name ends in .npz, .npy or .safetensors");
  if (kind == Kind::npz) return read_npz(path);
  const Storage storage = read_file(path);
  if (kind == Kind::npy) return {{"", read_npy(bytes_of(storage), storage, path)}};
  return read_safetensors(static_cast<const char*>(storage.data()), storage.bytes(), storage, path);
}

void check_arrays_path(const std::string& path, std::size_t num_arrays) {
  const std::optional<Kind> kind = kind_of(path);
  if (!kind) throw Usage("-o needs a name that ends in .npz, .npy or .safetensors: `" + path + "`");
  if (kind == Kind::npy && num_arrays != 1)
    throw Usage("an .npy file holds one array, and the result has " + std::to_string(num_arrays) +
                ": give -o a name that ends in .npz");
}

void write_arrays(const std::string& path, std::vector<NamedArray> arrays) {
  check_arrays_path(path, arrays.size());
  for (NamedArray& named : arrays) named.array = named.array.dense();
  if (kind_of(path) == Kind::npz) {
    make_members(arrays);
    return write_npz(path, arrays);
  }
  const bool is_npy = kind_of(path) == Kind::npy;
  const std::string header = is_npy ? npy_header(arrays[0].array) : safetensors_header(arrays);
  std::vector<std::string_view> parts{header};
  for (const NamedArray& named : arrays) parts.push_back(bytes_of(named.array));
  write_parts(path, parts);
}

}  // namespace plait::tool
