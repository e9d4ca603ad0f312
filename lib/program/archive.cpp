// See archive.h.
// SPDX-License-Identifier: Apache-2.0
#include "archive.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <plait/program.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

#include <cstring>
#include <deque>

namespace plait {
namespace {

// The functions of libzip, found at run time.
struct ZipLibrary {
#define PLAIT_ZIP_FUNCTIONS(F)                                                              \
  F(zip_open)                                                                               \
  F(zip_close)                                                                              \
  F(zip_discard) F(zip_strerror) F(zip_name_locate) F(zip_stat_index) F(zip_stat_init)      \
      F(zip_fopen_index) F(zip_fread) F(zip_fclose) F(zip_file_add) F(zip_source_buffer)    \
          F(zip_source_buffer_fragment) F(zip_source_free) F(zip_set_file_compression)      \
              F(zip_file_extra_field_set) F(zip_error_init_with_code) F(zip_error_strerror) \
                  F(zip_error_fini) F(zip_file_set_mtime)
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

constexpr std::size_t alignment = 64, local_header = 30;
constexpr zip_uint16_t padding_field = 0xD935;  // as Android's zipalign calls it

}  // namespace

// --- Writing -------------------------------------------------------------------------------------

struct ArchiveWriter::Data {
  std::string path;
  zip_t* archive = nullptr;
  std::deque<std::string> texts;
  std::deque<std::vector<zip_buffer_fragment_t>> fragments;
  bool is_empty = true;

  [[noreturn]] void fail() const {
    throw FileError("save: cannot write " + path + ": " + zip().zip_strerror(archive),
                    "give a path in a folder that can be written, with room for the file");
  }
  void add(const std::string& name, zip_source_t* source, bool stores) {
    if (!source) fail();
    const zip_int64_t index =
        zip().zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8 | ZIP_FL_OVERWRITE);
    if (index < 0) {
      zip().zip_source_free(source);
      fail();
    }
    const zip_uint64_t at = zip_uint64_t(index);
    // The same bytes for the same program, whenever it is saved: 1980-01-01, the first that zip
    // has.
    zip().zip_file_set_mtime(archive, at, 315532800, 0);
    if (stores) zip().zip_set_file_compression(archive, at, ZIP_CM_STORE, 0);
    if (stores && is_empty) {
      const std::size_t header = local_header + name.size() + 4;  // 4: of the field itself
      const std::string zeros((alignment - header % alignment) % alignment, '\0');
      zip().zip_file_extra_field_set(archive, at, padding_field, ZIP_EXTRA_FIELD_NEW,
                                     reinterpret_cast<const zip_uint8_t*>(zeros.data()),
                                     zip_uint16_t(zeros.size()), ZIP_FL_LOCAL);
    }
    is_empty = false;
  }
};

ArchiveWriter::ArchiveWriter(std::string path) : data_(std::make_unique<Data>()) {
  data_->path = std::move(path);
  int code = 0;
  data_->archive = zip().zip_open(data_->path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code);
  if (!data_->archive)
    throw FileError("save: cannot write " + data_->path + ": " + text_of_error(code),
                    "give the path of a file in a folder that can be written");
}
ArchiveWriter::~ArchiveWriter() {
  if (data_->archive) zip().zip_discard(data_->archive);
}

void ArchiveWriter::add_text(const std::string& name, std::string text) {
  const std::string& kept = data_->texts.emplace_back(std::move(text));
  data_->add(name, zip().zip_source_buffer(data_->archive, kept.data(), kept.size(), 0), false);
}

void ArchiveWriter::add_data(const std::string& name, std::vector<std::string_view> parts) {
  std::vector<zip_buffer_fragment_t>& kept = data_->fragments.emplace_back();
  for (std::string_view part : parts)
    if (!part.empty())
      kept.push_back({reinterpret_cast<zip_uint8_t*>(const_cast<char*>(part.data())), part.size()});
  data_->add(name, zip().zip_source_buffer_fragment(data_->archive, kept.data(), kept.size(), 0),
             true);
}

void ArchiveWriter::commit() {
  if (zip().zip_close(data_->archive) != 0) data_->fail();
  data_->archive = nullptr;
}

// --- Reading -------------------------------------------------------------------------------------

struct ArchiveReader::Data {
  std::string path;
  zip_t* archive = nullptr;

  [[noreturn]] void fail(const std::string& what) const {
    throw ValueError("load: " + path + ": " + what,
                     "the file is damaged, or is no .plait file; save it again");
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
    while (done <= size) {  // and once more, so that the checksum is compared
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

  // Where a member lies whose header is the first of the file, if it is stored as it is.
  std::optional<std::size_t> offset_of_first(const std::string& name, const zip_stat_t& stat,
                                             const unsigned char* bytes, std::size_t size) const {
    if (stat.comp_method != ZIP_CM_STORE || size < local_header ||
        std::memcmp(bytes, "PK\3\4", 4) != 0)
      return std::nullopt;
    const std::size_t name_size = bytes[26] | bytes[27] << 8, extra = bytes[28] | bytes[29] << 8;
    const std::size_t offset = local_header + name_size + extra;
    if (name_size != name.size() || offset + stat.size > size || stat.size != stat.comp_size ||
        std::memcmp(bytes + local_header, name.data(), name_size) != 0)
      return std::nullopt;
    return offset;
  }

  std::optional<Storage> map_first(const std::string& name, const zip_stat_t& stat) const {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    struct stat facts;
    void* bytes = MAP_FAILED;
    std::size_t size = 0;
    if (fstat(file, &facts) == 0 && facts.st_size > 0) {
      size = std::size_t(facts.st_size);
      // Private and writable: nothing that donates such memory changes the file.
      bytes = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    }
    close(file);
    if (bytes == MAP_FAILED) return std::nullopt;
    const auto offset = offset_of_first(name, stat, static_cast<const unsigned char*>(bytes), size);
    if (!offset) {
      munmap(bytes, size);
      return std::nullopt;
    }
    return Storage::foreign(static_cast<char*>(bytes) + *offset, std::size_t(stat.size),
                            [bytes, size] { munmap(bytes, size); });
  }
};

ArchiveReader::ArchiveReader(std::string path) : data_(std::make_unique<Data>()) {
  data_->path = std::move(path);
  int code = 0;
  data_->archive = zip().zip_open(data_->path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (data_->archive) return;
  const bool is_damaged = code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS;
  if (is_damaged) data_->fail("it is no zip archive: " + text_of_error(code));
  throw FileError("load: cannot read " + data_->path + ": " + text_of_error(code),
                  "give the path of a file that save wrote");
}
ArchiveReader::~ArchiveReader() {
  if (data_->archive) zip().zip_discard(data_->archive);
}

const std::string& ArchiveReader::path() const { return data_->path; }
bool ArchiveReader::has(const std::string& name) const {
  return zip().zip_name_locate(data_->archive, name.c_str(), 0) >= 0;
}

std::string ArchiveReader::text(const std::string& name, std::size_t limit) const {
  const zip_uint64_t index = data_->locate(name);
  const zip_stat_t stat = data_->stat(name, index);
  if (stat.size > limit)
    data_->fail("the member " + name + " has " + std::to_string(stat.size) + " bytes, and " +
                std::to_string(limit) + " are the limit");
  std::string text(std::size_t(stat.size), '\0');
  data_->read(name, index, text.data(), text.size());
  return text;
}

Storage ArchiveReader::data(const std::string& name, bool map) const {
  // What unpacks to more than so many times its size was made to fill memories.
  constexpr zip_uint64_t harmless = 64 << 20, most_times = 100;
  const zip_uint64_t index = data_->locate(name);
  const zip_stat_t stat = data_->stat(name, index);
  if (stat.size > harmless && stat.size / most_times > stat.comp_size)
    data_->fail("the member " + name + " unpacks to " + std::to_string(stat.size) + " bytes from " +
                std::to_string(stat.comp_size));
  if (map)
    if (std::optional<Storage> mapped = data_->map_first(name, stat)) return *mapped;
  Storage storage = Storage::allocate(std::size_t(stat.size));
  data_->read(name, index, static_cast<char*>(storage.data()), std::size_t(stat.size));
  return storage;
}

}  // namespace plait
