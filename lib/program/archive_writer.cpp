// Writes archives. See archive.h. Source of the format: PKWARE's APPNOTE.TXT 6.3, with its section
// 4.3.14 (zip64) for sizes beyond 32 bits.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <fcntl.h>
#include <plait/base/error.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "archive.h"
#include "crc32.h"

namespace plait {
namespace {

constexpr std::uint64_t most16 = 0xFFFF, most32 = 0xFFFFFFFF;
constexpr std::uint64_t alignment = 64;
constexpr std::uint64_t padding_field = 0xD935;  // the name in Android's zipalign
constexpr std::uint64_t zip64_field = 1, stored = 0, deflated = 8;

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += char(value >> 8 * i & 255);
  return text;
}
std::string field(std::uint64_t id, std::string_view content) {
  return number(id, 2) + number(content.size(), 2) + std::string(content);
}

struct Member {
  std::string name;
  std::string text;                     // compressed
  std::vector<std::string_view> parts;  // as they are stored
  std::uint64_t method = stored, size = 0, packed_size = 0, offset = 0;
  std::uint32_t checksum = 0;

  bool is_long() const { return size >= most32 || packed_size >= most32; }

  // The local header. Its length does not depend on the checksum.
  std::string local() const {
    std::string extra;
    if (is_long()) extra = field(zip64_field, number(size, 8) + number(packed_size, 8));
    if (method == stored) {
      const std::uint64_t end = offset + local_header + name.size() + extra.size() + 4;
      extra += field(padding_field, std::string((alignment - end % alignment) % alignment, '\0'));
    }
    return "PK\3\4" + number(version(), 2) + facts(is_long()) + number(extra.size(), 2) + name +
           extra;
  }
  // The entry in the central directory.
  std::string central() const {
    const bool is_far = is_long() || offset >= most32;
    std::string extra;
    if (is_far)
      extra = field(zip64_field, number(size, 8) + number(packed_size, 8) + number(offset, 8));
    constexpr std::uint64_t by_unix = 3 << 8, regular_file = 0100666u << 16;
    return "PK\1\2" + number(by_unix | version(), 2) + number(version(), 2) + facts(is_far) +
           number(extra.size(), 2) + number(0, 6) + number(regular_file, 4) +
           number(is_far ? most32 : offset, 4) + name + extra;
  }

 private:
  std::uint64_t version() const { return is_long() || offset >= most32 ? 45 : 20; }
  // Reproducible: the date is always 1980-01-01, the first of the format.
  std::string facts(bool elsewhere) const {
    constexpr std::uint64_t is_utf8 = 1 << 11, first_day = 0x21;
    return number(is_utf8, 2) + number(method, 2) + number(0, 2) + number(first_day, 2) +
           number(checksum, 4) + number(elsewhere ? most32 : packed_size, 4) +
           number(elsewhere ? most32 : size, 4) + number(name.size(), 2);
  }
};

// The functions of zlib, found at run time.
struct Deflate {
  decltype(&::deflateInit2_) begin = nullptr;
  decltype(&::deflate) step = nullptr;
  decltype(&::deflateEnd) end = nullptr;

  static const Deflate& instance() {
    static const Deflate library = open();
    return library;
  }
  std::string operator()(std::string_view text) const {
    constexpr int level = 6, raw = -15, memory = 8;
    constexpr std::size_t most = 1 << 30;
    z_stream stream{};
    if (begin(&stream, level, Z_DEFLATED, raw, memory, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
              int(sizeof stream)) != Z_OK)
      throw FileError("zlib packs nothing: it is of another version", "install zlib 1.2 or newer");
    std::string packed;
    std::vector<Bytef> piece(1 << 16);
    int state = Z_OK;
    while (state != Z_STREAM_END) {
      if (stream.avail_in == 0) {
        stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
        stream.avail_in = uInt(std::min(text.size(), most));
        text.remove_prefix(stream.avail_in);
      }
      stream.next_out = piece.data();
      stream.avail_out = uInt(piece.size());
      state = step(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
      packed.append(reinterpret_cast<char*>(piece.data()), piece.size() - stream.avail_out);
    }
    end(&stream);
    return packed;
  }

 private:
  static Deflate open() {
    void* const handle = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto find = [handle](auto& function, const char* name) {
      using Function = std::remove_reference_t<decltype(function)>;
      if (handle) function = reinterpret_cast<Function>(dlsym(handle, name));
      if (!function)
        throw FileError("saving needs zlib, which is not installed",
                        "install it: the package is zlib1g on Debian");
    };
    Deflate library;
    find(library.begin, "deflateInit2_");
    find(library.step, "deflate");
    find(library.end, "deflateEnd");
    return library;
  }
};

// A new file beside the target, which it replaces once it is complete.
class FreshFile {
 public:
  explicit FreshFile(const std::string& path) : path_(path) {
    static std::atomic<unsigned> count{0};
    do {
      fresh_ = path + "." + std::to_string(getpid()) + "-" + std::to_string(++count);
      file_ = open(fresh_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file_ < 0 && errno == EEXIST);
    is_good_ = is_unfinished_ = file_ >= 0;
    struct stat old;
    if (is_good_ && stat(path.c_str(), &old) == 0)
      is_good_ = fchmod(file_, old.st_mode & 07777) == 0;
  }
  FreshFile(const FreshFile&) = delete;
  ~FreshFile() {
    if (file_ >= 0) close(file_);
    if (is_unfinished_) unlink(fresh_.c_str());
  }

  // After a failure nothing is done, and errno gives the reason.
  void write(std::string_view bytes) {
    while (is_good_ && !bytes.empty()) {
      const ssize_t done = ::write(file_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      is_good_ = done >= 0;
      if (is_good_) bytes.remove_prefix(std::size_t(done)), size_ += std::uint64_t(done);
    }
  }
  void rewrite(std::uint64_t at, const std::string& bytes) {
    is_good_ =
        is_good_ && pwrite(file_, bytes.data(), bytes.size(), off_t(at)) == ssize_t(bytes.size());
  }
  bool commit() {
    is_good_ = is_good_ && close(std::exchange(file_, -1)) == 0 &&
               rename(fresh_.c_str(), path_.c_str()) == 0;
    if (is_good_) is_unfinished_ = false;
    return is_good_;
  }
  std::uint64_t size() const { return size_; }

 private:
  const std::string path_;
  std::string fresh_;
  int file_ = -1;
  std::uint64_t size_ = 0;
  bool is_good_ = false, is_unfinished_ = false;
};

// Checksums data in chunks that fit a cache, and writes them from there.
void write_member(FreshFile& file, Member& member) {
  constexpr std::size_t most = 256 << 10;
  member.offset = file.size();
  file.write(member.local());
  file.write(member.text);
  if (member.parts.empty()) return;
  for (std::string_view part : member.parts)
    for (; !part.empty(); part.remove_prefix(std::min(part.size(), most))) {
      const std::string_view piece = part.substr(0, most);
      member.checksum = crc32(member.checksum, piece);
      file.write(piece);
    }
  file.rewrite(member.offset, member.local());
}

void write_directory(FreshFile& file, const std::vector<Member>& members) {
  const std::uint64_t begin = file.size(), count = members.size();
  std::string lines;
  for (const Member& member : members) lines += member.central();
  file.write(lines);
  const std::uint64_t size = lines.size(), end = file.size();
  if (count >= most16 || size >= most32 || begin >= most32)
    file.write("PK\6\6" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) +
               number(count, 8) + number(count, 8) + number(size, 8) + number(begin, 8) + "PK\6\7" +
               number(0, 4) + number(end, 8) + number(1, 4));
  const std::uint64_t short_count = std::min(count, most16);
  file.write("PK\5\6" + number(0, 4) + number(short_count, 2) + number(short_count, 2) +
             number(std::min(size, most32), 4) + number(std::min(begin, most32), 4) + number(0, 2));
}

}  // namespace

struct ArchiveWriter::Data {
  std::string path, verb;
  std::vector<Member> members;

  Member& add(const std::string& name) {
    if (name.size() > most16)
      throw ValueError(
          verb + ": a name of " + std::to_string(name.size()) + " bytes does not fit an archive",
          "give a shorter name");
    Member& member = members.emplace_back();
    member.name = name;
    return member;
  }
};

ArchiveWriter::ArchiveWriter(std::string path, const char* verb)
    : data_(std::make_unique<Data>(Data{std::move(path), verb, {}})) {}
ArchiveWriter::~ArchiveWriter() = default;

void ArchiveWriter::add_text(const std::string& name, std::string text) {
  Member& member = data_->add(name);
  member.method = deflated;
  member.size = text.size();
  member.checksum = crc32(0, text);
  member.text = Deflate::instance()(text);
  member.packed_size = member.text.size();
}

void ArchiveWriter::add_data(const std::string& name, std::vector<std::string_view> parts) {
  Member& member = data_->add(name);
  for (std::string_view part : parts) member.size += part.size();
  member.packed_size = member.size;
  member.parts = std::move(parts);
}

void ArchiveWriter::commit() {
  errno = 0;
  FreshFile file(data_->path);
  for (Member& member : data_->members) write_member(file, member);
  write_directory(file, data_->members);
  if (!file.commit())
    throw FileError(data_->verb + ": cannot write " + data_->path + ": " + std::strerror(errno),
                    "give a path in a folder that can be written, with room for the file");
}

}  // namespace plait
