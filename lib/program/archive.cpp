// Reads archives. See archive.h.
// SPDX-License-Identifier: Apache-2.0
#include "archive.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <plait/program/program.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace plait {
namespace {

// The functions of libzip, found at run time.
struct ZipLibrary {
  // clang-format off
#define PLAIT_ZIP_FUNCTIONS(F) \
  F(zip_open) F(zip_discard) F(zip_strerror) F(zip_name_locate) F(zip_stat_index) \
  F(zip_stat_init) F(zip_fopen_index) F(zip_fread) F(zip_fclose) F(zip_error_init_with_code) \
  F(zip_error_strerror) F(zip_error_fini) F(zip_get_num_entries) F(zip_get_name)
// clang-format on
#define PLAIT_DECLARE(name) decltype(&::name) name = nullptr;
  PLAIT_ZIP_FUNCTIONS(PLAIT_DECLARE)
#undef PLAIT_DECLARE

  static const ZipLibrary& instance() {
    static const ZipLibrary library = open();
    return library;
  }

 private:
  static ZipLibrary open() {
    void* handle = nullptr;
    for (const char* name : {"libzip.so.5", "libzip.so.4", "libzip.so"})
      if ((handle = dlopen(name, RTLD_NOW | RTLD_LOCAL))) break;
    if (!handle)
      throw FileError("saved programs need libzip, which is not installed",
                      "install it: the package is libzip4 or libzip5 on Debian");
    ZipLibrary library;
#define PLAIT_FIND(name)                                                         \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name)); \
  if (!library.name) throw FileError("this libzip has no " #name, "install libzip 1.7 or newer");
    PLAIT_ZIP_FUNCTIONS(PLAIT_FIND)
#undef PLAIT_FIND
    return library;
  }
};
const ZipLibrary& zip() { return ZipLibrary::instance(); }

std::string text_of_error(int code) {
  zip_error_t error;
  zip().zip_error_init_with_code(&error, code);
  std::string text = zip().zip_error_strerror(&error);
  zip().zip_error_fini(&error);
  return text;
}

}  // namespace

struct ArchiveReader::Data {
  std::string path;
  ArchiveUse use;
  zip_t* archive = nullptr;
  int file = -1;  // the archive's file
  std::size_t file_size = 0;
  zip_uint64_t unpacked = 0;  // so far

  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError(std::string(use.verb) + ": " + path + ": " + what,
                     std::string("the file is damaged, or is no ") + use.kind + "; save it again");
  }
  zip_uint64_t locate(const std::string& name) const {
    const zip_int64_t index = zip().zip_name_locate(archive, name.c_str(), 0);
    if (index < 0) fail("the member " + name + " is missing");
    return zip_uint64_t(index);
  }
  zip_stat_t stat(const std::string& name, zip_uint64_t index) const {
    zip_stat_t stat;
    zip().zip_stat_init(&stat);
    if (zip().zip_stat_index(archive, index, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_SIZE))
      fail("the member " + name + " has no size");
    return stat;
  }
  void read(const std::string& name, zip_uint64_t index, char* to, std::size_t size) const {
    zip_file_t* file = zip().zip_fopen_index(archive, index, 0);
    if (!file) fail("the member " + name + " cannot be read: " + zip().zip_strerror(archive));
    std::size_t done = 0;
    char past_end;
    while (done <= size) {  // one extra read, so that libzip compares the checksum
      const std::size_t left = size - done;
      const zip_int64_t got = zip().zip_fread(file, left ? to + done : &past_end, left ? left : 1);
      if (got <= 0) {
        zip().zip_fclose(file);
        if (got == 0 && left == 0) return;
        fail("the member " + name + " is damaged at byte " + std::to_string(done));
      }
      done += std::size_t(got);
    }
    zip().zip_fclose(file);
    fail("the member " + name + " is longer than the archive says");
  }

  // Refuses archives that unpack to many times the size of the file, which are made to exhaust
  // memory.
  void charge(const std::string& name, const zip_stat_t& stat) {
    constexpr zip_uint64_t harmless = 64 << 20, most_times = 100;
    if (stat.comp_size > file_size)
      fail("the member " + name + " has " + std::to_string(stat.comp_size) +
           " bytes, and the file " + std::to_string(file_size));
    if (__builtin_add_overflow(unpacked, stat.size, &unpacked) ||
        (unpacked > harmless && unpacked / most_times > file_size))
      fail("its members up to " + name + " unpack to " + std::to_string(unpacked) +
           " bytes, and the file has " + std::to_string(file_size));
  }

  // The offset of a member that is the first of the file and not compressed.
  std::optional<std::size_t> offset_of_first(const std::string& name,
                                             const zip_stat_t& stat) const {
    if (stat.comp_method != ZIP_CM_STORE || stat.size != stat.comp_size) return std::nullopt;
    std::string header(local_header + name.size(), '\0');
    if (pread(file, header.data(), header.size(), 0) != ssize_t(header.size()) ||
        header.compare(0, 4, "PK\3\4", 4) != 0)
      return std::nullopt;
    const auto number = [&](std::size_t at) {
      return std::size_t(std::uint8_t(header[at]) | std::uint8_t(header[at + 1]) << 8);
    };
    const std::size_t offset = local_header + number(26) + number(28);
    const bool is_it = number(26) == name.size() && header.substr(local_header) == name &&
                       offset + stat.size <= file_size;
    return is_it ? std::optional(offset) : std::nullopt;
  }

  // Null where the file system does not support mapping.
  std::optional<Storage> map(std::size_t offset, std::size_t size) const {
    // Private and writable: a program that reuses donated memory does not change the file.
    const std::size_t length = file_size;
    void* bytes = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (bytes == MAP_FAILED) return std::nullopt;
    return Storage::foreign(static_cast<char*>(bytes) + offset, size,
                            [bytes, length] { munmap(bytes, length); });
  }
  bool read_at(std::size_t offset, char* to, std::size_t size) const {
    while (size > 0) {
      const ssize_t got = pread(file, to, size, off_t(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      offset += std::size_t(got), to += got, size -= std::size_t(got);
    }
    return true;
  }
};

ArchiveReader::ArchiveReader(std::string path, ArchiveUse use) : data_(std::make_unique<Data>()) {
  data_->path = std::move(path);
  data_->use = use;
  int code = 0;
  data_->archive = zip().zip_open(data_->path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (data_->archive) {
    struct stat facts;
    data_->file = open(data_->path.c_str(), O_RDONLY | O_CLOEXEC);
    if (data_->file >= 0 && fstat(data_->file, &facts) == 0)
      data_->file_size = std::size_t(facts.st_size);
    return;
  }
  // All other codes concern the content of the file; newer libraries have more of them.
  constexpr std::array unreadable{ZIP_ER_NOENT, ZIP_ER_OPEN, ZIP_ER_READ, ZIP_ER_SEEK,
                                  ZIP_ER_MEMORY};
  if (std::ranges::find(unreadable, code) == unreadable.end())
    data_->fail("it is no zip archive: " + text_of_error(code));
  throw FileError(
      std::string(use.verb) + ": cannot read " + data_->path + ": " + text_of_error(code),
      std::string("give the path of a ") + use.kind);
}
ArchiveReader::~ArchiveReader() {
  if (data_->archive) zip().zip_discard(data_->archive);
  if (data_->file >= 0) close(data_->file);
}

const std::string& ArchiveReader::path() const { return data_->path; }
bool ArchiveReader::has(const std::string& name) const {
  return zip().zip_name_locate(data_->archive, name.c_str(), 0) >= 0;
}

std::vector<std::string> ArchiveReader::names() const {
  std::vector<std::string> names;
  const zip_int64_t count = zip().zip_get_num_entries(data_->archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip().zip_get_name(data_->archive, zip_uint64_t(i), 0);
    if (!name) data_->fail("the member number " + std::to_string(i) + " has no name");
    names.push_back(name);
  }
  return names;
}

std::string ArchiveReader::text(const std::string& name, std::size_t limit) const {
  const zip_uint64_t index = data_->locate(name);
  const zip_stat_t stat = data_->stat(name, index);
  if (stat.size > limit)
    data_->fail("the member " + name + " has " + std::to_string(stat.size) + " bytes, and " +
                std::to_string(limit) + " are the limit");
  data_->charge(name, stat);
  std::string text(std::size_t(stat.size), '\0');
  data_->read(name, index, text.data(), text.size());
  return text;
}

Storage ArchiveReader::data(const std::string& name, Access access) const {
  const zip_uint64_t index = data_->locate(name);
  const zip_stat_t stat = data_->stat(name, index);
  data_->charge(name, stat);
  const auto offset = access == Access::mapped ? data_->offset_of_first(name, stat) : std::nullopt;
  if (offset)
    if (const auto mapped = data_->map(*offset, stat.size)) return *mapped;
  Storage storage = Storage::allocate(std::size_t(stat.size));
  data_->read(name, index, static_cast<char*>(storage.data()), std::size_t(stat.size));
  return storage;
}

std::optional<ArchiveReader::PartialReader> ArchiveReader::partial_reader(
    const std::string& name) const {
  const zip_stat_t stat = data_->stat(name, data_->locate(name));
  const auto offset = data_->offset_of_first(name, stat);
  if (!offset) return std::nullopt;
  data_->charge(name, stat);
  const Storage storage = Storage::allocate(std::size_t(stat.size));
  return PartialReader{
      storage, [this, offset = *offset, storage](std::size_t begin, std::size_t end) {
        return data_->read_at(offset + begin, static_cast<char*>(storage.data()) + begin,
                              end - begin);
      }};
}

}  // namespace plait
