// Placing and relocating the sections of an object file. See object.h.
// SPDX-License-Identifier: Apache-2.0
#include "object.h"

#include <plait/base/dtype.h>
#include <plait/base/error.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "functions.h"

namespace plait::llvm {
namespace {

[[noreturn]] void fail(const std::string& reason) {
  throw BackendError("llvm: the object file of a kernel " + reason,
                     "remove the folder that PLAIT_CACHE_DIR names, and report this");
}

// The two libraries that hold what kernels call, and what writes kernels.
std::array<Dl_info, 2> find_libraries() {
  std::string_view (*const core)(DType) = &name_of;
  std::array<Dl_info, 2> found{};
  const void* const inside[] = {reinterpret_cast<const void*>(core),
                                reinterpret_cast<const void*>(&find_libraries)};
  for (int i = 0; i < 2; ++i)
    if (!dladdr(inside[i], &found[i])) found[i].dli_fbase = nullptr;
  return found;
}
const std::array<Dl_info, 2>& libraries() {
  static const std::array<Dl_info, 2> found = find_libraries();
  return found;
}

// What the linker noted of a library's contents; where it did not, the file's size and time.
std::string identity_of(const Dl_info& library) {
  std::string identity;
  struct Search {
    const void* base;
    std::string* identity;
  } search{library.dli_fbase, &identity};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        const auto& search = *static_cast<Search*>(argument);
        if (reinterpret_cast<const void*>(info->dlpi_addr) != search.base) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
          const char* at =
              reinterpret_cast<const char*>(info->dlpi_addr) + info->dlpi_phdr[i].p_vaddr;
          const char* const end = at + info->dlpi_phdr[i].p_memsz;
          while (at + sizeof(ElfW(Nhdr)) <= end) {
            const auto& note = *reinterpret_cast<const ElfW(Nhdr)*>(at);
            const char* const text = at + sizeof note + (note.n_namesz + 3) / 4 * 4;
            if (note.n_type == NT_GNU_BUILD_ID) search.identity->assign(text, note.n_descsz);
            at = text + (note.n_descsz + 3) / 4 * 4;
          }
        }
        return 1;
      },
      &search);
  struct stat file;
  if (identity.empty() && stat(library.dli_fname, &file) == 0)
    identity = std::to_string(file.st_size) + " " + std::to_string(file.st_mtim.tv_sec) + "." +
               std::to_string(file.st_mtim.tv_nsec);
  return identity;
}

// A garbled or outdated file may name anything.
const char* address_of(const char* name) {
  const void* const function = function_named(name);
  if (!function) fail("calls `" + std::string(name) + "`, which plait does not know");
  return static_cast<const char*>(function);
}

// A view of the file, which may be cut or garbled.
class Elf {
 public:
  explicit Elf(const std::string& bytes) : bytes_(bytes) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_->e_ident, ELFMAG, SELFMAG) != 0 || header_->e_type != ET_REL ||
        header_->e_machine != EM_X86_64 || header_->e_shentsize != sizeof(Elf64_Shdr))
      fail("is not one for this processor");
    for (int i = 0; i < header_->e_shnum; ++i)
      sections.push_back(*at<Elf64_Shdr>(header_->e_shoff + i * sizeof(Elf64_Shdr)));
  }

  template <class T>
  const T* at(std::uint64_t offset, std::uint64_t count = 1) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) fail("is cut off");
    return reinterpret_cast<const T*>(bytes_.data() + offset);
  }
  const Elf64_Shdr& section(std::uint64_t index) const {
    if (index >= sections.size()) fail("is garbled");
    return sections[index];
  }
  const char* string(std::uint64_t table, std::uint64_t offset) const {
    const Elf64_Shdr& strings = section(table);
    const char* all = at<char>(strings.sh_offset, strings.sh_size);
    if (offset >= strings.sh_size || !std::memchr(all + offset, 0, strings.sh_size - offset))
      fail("is garbled");
    return all + offset;
  }
  const char* name_of_section(const Elf64_Shdr& section) const {
    return string(header_->e_shstrndx, section.sh_name);
  }

  std::vector<Elf64_Shdr> sections;

 private:
  const std::string& bytes_;
  const Elf64_Ehdr* header_;
};

constexpr std::size_t stub_size = 16;  // jmp *[rip]; address

// Lays the sections out in one piece of memory, with a stub for every function that is called,
// because those may be too far away for a call.
class Linker {
 public:
  explicit Linker(const Object& object) : elf_(object.bytes) {
    for (std::size_t i = 0; i < elf_.sections.size(); ++i) {
      const Elf64_Shdr& section = elf_.sections[i];
      if (!is_placed(section)) continue;
      const std::size_t alignment = std::max<std::size_t>(section.sh_addralign, 1);
      size_ = (size_ + alignment - 1) / alignment * alignment;
      places_[i] = size_;
      if (section.sh_size > (std::size_t(1) << 30)) fail("is garbled");
      size_ += section.sh_size;
    }
    size_ = (size_ + stub_size - 1) / stub_size * stub_size;
    stubs_at_ = size_;
    for (const Elf64_Shdr& section : elf_.sections)
      if (section.sh_type == SHT_RELA && places_.count(section.sh_info))
        size_ += stub_size * (section.sh_size / sizeof(Elf64_Rela));  // at most
  }

  std::size_t size() const { return size_; }

  // Returns the place of the kernel.
  char* link(char* memory) {
    for (const auto& [index, place] : places_) {
      const Elf64_Shdr& section = elf_.section(index);
      if (section.sh_type != SHT_NOBITS)
        std::memcpy(memory + place, elf_.at<char>(section.sh_offset, section.sh_size),
                    section.sh_size);
    }
    char* entry = nullptr;
    for (const Elf64_Shdr& section : elf_.sections) {
      if (section.sh_type == SHT_SYMTAB) entry = find_kernel(section, memory);
      if (section.sh_type != SHT_RELA || !places_.count(section.sh_info)) continue;
      const std::size_t count = section.sh_size / sizeof(Elf64_Rela);
      const auto* all = elf_.at<Elf64_Rela>(section.sh_offset, count);
      for (std::size_t i = 0; i < count; ++i) relocate(section, all[i], memory);
    }
    if (!entry) fail("holds no kernel");
    return entry;
  }

 private:
  bool is_placed(const Elf64_Shdr& section) const {
    return section.sh_flags & SHF_ALLOC && section.sh_size > 0 &&
           (section.sh_type == SHT_PROGBITS || section.sh_type == SHT_NOBITS) &&
           std::strcmp(elf_.name_of_section(section), ".eh_frame") != 0;
  }

  char* find_kernel(const Elf64_Shdr& table, char* memory) const {
    const std::size_t count = table.sh_size / sizeof(Elf64_Sym);
    const auto* symbols = elf_.at<Elf64_Sym>(table.sh_offset, count);
    for (std::size_t i = 0; i < count; ++i)
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && symbols[i].st_shndx != SHN_UNDEF &&
          std::strcmp(elf_.string(table.sh_link, symbols[i].st_name), kernel_name) == 0)
        return place_of(symbols[i], memory);
    return nullptr;
  }

  char* place_of(const Elf64_Sym& symbol, char* memory) const {
    const auto section = places_.find(symbol.st_shndx);
    if (section == places_.end() || symbol.st_value > size_) fail("refers to what it has not");
    return memory + section->second + symbol.st_value;
  }

  void relocate(const Elf64_Shdr& section, const Elf64_Rela& rela, char* memory) {
    const Elf64_Shdr& target = elf_.section(section.sh_info);
    const auto type = ELF64_R_TYPE(rela.r_info);
    const std::size_t width = type == R_X86_64_64 ? 8 : 4;
    if (rela.r_offset + width > target.sh_size) fail("is garbled");
    char* const place = memory + places_.at(section.sh_info) + rela.r_offset;
    const Elf64_Shdr& table = elf_.section(section.sh_link);
    const auto& symbol = elf_.at<Elf64_Sym>(
        table.sh_offset,
        table.sh_size / sizeof(Elf64_Sym))[index_of(table, ELF64_R_SYM(rela.r_info))];
    const char* const value = symbol.st_shndx == SHN_UNDEF
                                  ? stub_of(elf_.string(table.sh_link, symbol.st_name), memory)
                                  : place_of(symbol, memory);
    if (type == R_X86_64_64) {
      const auto absolute = reinterpret_cast<std::int64_t>(value) + rela.r_addend;
      std::memcpy(place, &absolute, sizeof absolute);
    } else if (type == R_X86_64_PC32 || type == R_X86_64_PLT32) {
      const auto distance = std::int32_t(value + rela.r_addend - place);
      std::memcpy(place, &distance, sizeof distance);
    } else {
      fail("has a relocation of type " + std::to_string(type));
    }
  }

  static std::size_t index_of(const Elf64_Shdr& table, std::size_t symbol) {
    if (symbol >= table.sh_size / sizeof(Elf64_Sym)) fail("is garbled");
    return symbol;
  }

  const char* stub_of(const char* symbol, char* memory) {
    const auto [found, is_new] = stubs_.emplace(symbol, nullptr);
    if (!is_new) return found->second;
    char* const stub = memory + stubs_at_ + stub_size * (stubs_.size() - 1);
    const char jump[] = {'\xff', '\x25', 0, 0, 0, 0};
    const char* const address = address_of(symbol);
    std::memcpy(stub, jump, sizeof jump);
    std::memcpy(stub + sizeof jump, &address, sizeof address);
    return found->second = stub;
  }

  const Elf elf_;
  std::map<std::size_t, std::size_t> places_;  // by section
  std::map<std::string, const char*> stubs_;   // by symbol
  std::size_t size_ = 0, stubs_at_ = 0;
};

}  // namespace

bool is_in_plait(const void* function) {
  Dl_info info;
  if (!dladdr(function, &info)) return false;
  return std::any_of(libraries().begin(), libraries().end(),
                     [&](const Dl_info& library) { return library.dli_fbase == info.dli_fbase; });
}

const std::string& build_identity() {
  static const std::string& identity =
      *new const std::string(identity_of(libraries()[0]) + identity_of(libraries()[1]));
  return identity;
}

Code::Code(const Object& object) {
  Linker linker(object);
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  size_ = (linker.size() + page - 1) / page * page;
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("finds no memory");
  memory_ = static_cast<char*>(memory);
  try {
    entry_ = linker.link(memory_);
    if (mprotect(memory_, size_, PROT_READ | PROT_EXEC) != 0)
      fail("may not be run: this system does not let memory be made executable");
  } catch (...) {
    munmap(memory_, size_);
    throw;
  }
}

Code::~Code() { munmap(memory_, size_); }

}  // namespace plait::llvm
