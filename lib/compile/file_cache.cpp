// See file_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "compile/file_cache.h"

#include <plait/compile/backend.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

namespace plait {
namespace {

constexpr std::int64_t byte_limit = 256 << 20;
constexpr std::int64_t bytes_between_trims = byte_limit / 16;
constexpr std::time_t day = 24 * 60 * 60;

struct Header {
  char magic[8];
  FileCache::Key key, checksum;
  std::uint64_t size;
};
constexpr char magic[8] = {'p', 'l', 'a', 'i', 't', 'k', '1', '\n'};

struct File {
  int descriptor = -1;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
};

std::string find_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::getenv("PLAIT_CACHE_DIR")) {
    const std::string asked = variable("PLAIT_CACHE_DIR");
    return asked == "0" ? "" : asked;
  }
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/plait";
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return home + "/.cache/plait";
  return {};
}

const std::string& folder() {
  static const std::string& folder = *new const std::string(find_folder());
  return folder;
}

bool make_folder() {
  for (std::size_t slash = folder().find('/', 1);; slash = folder().find('/', slash + 1)) {
    if (mkdir(folder().substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST &&
        (slash == std::string::npos || errno != EROFS))
      return false;
    if (slash == std::string::npos) return true;
  }
}

bool write_all(int descriptor, const void* data, std::size_t size) {
  const char* from = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(descriptor, from, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    size -= std::size_t(written);
  }
  return true;
}

bool read_all(int descriptor, void* data, std::size_t size) {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(descriptor, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= std::size_t(got);
  }
  return true;
}

}  // namespace

FileCache::FileCache(std::string ending, std::string backend)
    : ending_(std::move(ending)), backend_(std::move(backend)) {}

std::string FileCache::path_of(const Key& key) const {
  constexpr char digits[] = "0123456789abcdef";
  std::string path = folder() + "/";
  for (std::uint64_t word : key)
    for (int shift = 60; shift >= 0; shift -= 4) path += digits[word >> shift & 15];
  return path + ending_;
}

void FileCache::stop_writing(const char* action, int error) {
  if (is_writable_.exchange(false))
    log_line(backend_ + ": kernels are not kept in " + folder() + ": " + action + ": " +
             std::strerror(error));
}

// Removes what was used longest ago, and what writers that died left behind.
void FileCache::trim() const {
  DIR* directory = opendir(folder().c_str());
  if (!directory) return;
  struct Entry {
    std::string name;
    std::time_t time;
    std::int64_t bytes;
  };
  std::vector<Entry> entries;
  std::int64_t total = 0;
  const std::time_t now = std::time(nullptr);
  while (const dirent* found = readdir(directory)) {
    const std::string name = found->d_name;
    struct stat file;
    if (!(name.ends_with(ending_) || name.ends_with(".tmp")) ||
        fstatat(dirfd(directory), name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (name.ends_with(".tmp")) {
      if (file.st_mtime < now - day) unlinkat(dirfd(directory), name.c_str(), 0);
      continue;
    }
    entries.push_back({name, file.st_mtime, std::int64_t(file.st_blocks) * 512});
    total += entries.back().bytes;
  }
  if (total > byte_limit) {
    std::sort(entries.begin(), entries.end(),
              [](const Entry& a, const Entry& b) { return a.time < b.time; });
    for (const Entry& entry : entries) {
      if (total <= byte_limit / 4 * 3) break;
      if (unlinkat(dirfd(directory), entry.name.c_str(), 0) == 0) total -= entry.bytes;
    }
  }
  closedir(directory);
}

// FNV-1a of 128 bits (Fowler, Noll and Vo).
FileCache::Key FileCache::key_of(std::string_view text) {
  using Wide = unsigned __int128;
  constexpr Wide prime = (Wide(1) << 88) + 0x13b;
  Wide hash = (Wide(0x6c62272e07bb0142) << 64) + 0x62b821756295c58d;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  return {std::uint64_t(hash >> 64), std::uint64_t(hash)};
}

std::optional<std::string> FileCache::read(const Key& key) const {
  if (folder().empty()) return {};
  File file{open(path_of(key).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat status;
  if (file.descriptor < 0 || fstat(file.descriptor, &status) != 0) return {};
  // It will be run: another user must not have been able to write it.
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_mode & 022) return {};
  Header header;
  if (!read_all(file.descriptor, &header, sizeof header) ||
      std::memcmp(header.magic, magic, sizeof magic) != 0 || header.key != key ||
      header.size != std::uint64_t(status.st_size) - sizeof header)
    return {};
  std::string bytes(header.size, 0);
  if (!read_all(file.descriptor, bytes.data(), header.size) || key_of(bytes) != header.checksum)
    return {};
  if (status.st_mtime < std::time(nullptr) - day) futimens(file.descriptor, nullptr);
  return bytes;
}

void FileCache::write(const Key& key, std::string_view bytes) {
  if (folder().empty() || !is_writable_) return;
  const std::string path = path_of(key);
  const std::string temporary =
      path + "." + std::to_string(getpid()) + "." + std::to_string(count_++) + ".tmp";
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  File file{open(temporary.c_str(), flags, 0600)};
  if (file.descriptor < 0 && errno == ENOENT) {
    if (!make_folder()) return stop_writing("the folder cannot be made", errno);
    file.descriptor = open(temporary.c_str(), flags, 0600);
  }
  if (file.descriptor < 0) return stop_writing("no file can be made", errno);
  Header header{{}, key, key_of(bytes), bytes.size()};
  std::memcpy(header.magic, magic, sizeof magic);
  if (!write_all(file.descriptor, &header, sizeof header) ||
      !write_all(file.descriptor, bytes.data(), bytes.size()) ||
      rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return stop_writing("a file cannot be written", error);
  }
  // The first file of a process trims too: many short processes fill a folder as one long one does.
  if (bytes_left_.fetch_sub(std::int64_t(bytes.size())) > 0) return;
  bytes_left_ = bytes_between_trims;
  trim();
}

}  // namespace plait
