// Disables the registrations of archive members whose definitions are not used.
//
// NOTE: [idle members] The linker takes an object file out of the run-time library because some
// function in it is called: reduce.cpp for lax::reduce_sum, which a derivative rule calls. Its
// static initialisers then register all of its kernels, so none of them can be dropped. Without its
// list of initialisers (the section .init_array) nothing refers to the kernels, and --gc-sections
// drops them.
// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include <charconv>
#include <cstring>

#include "tool/deploy.h"

namespace plait::tool {
namespace {

constexpr std::string_view magic = "!<arch>\n";
constexpr std::size_t header_size = 60, name_size = 16, length_at = 48, length_size = 10;

// Turns the sections of initialisers of a member into unreferenced data: their names lose the dot,
// and the linker keeps only those with the usual name.
void drop_initializers(char* member) {
  Elf64_Ehdr header;
  std::memcpy(&header, member, sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto section_at = [&](std::size_t index) {
    return member + header.e_shoff + index * header.e_shentsize;
  };
  Elf64_Shdr names, section;
  std::memcpy(&names, section_at(header.e_shstrndx), sizeof names);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    std::memcpy(&section, section_at(i), sizeof section);
    const char* const name = member + names.sh_offset + section.sh_name;
    if (section.sh_type != SHT_INIT_ARRAY || std::string_view(name) != ".init_array") continue;
    section.sh_type = SHT_PROGBITS;
    ++section.sh_name;
    std::memcpy(section_at(i), &section, sizeof section);
  }
}

std::string_view up_to(std::string_view text, std::string_view end) {
  return text.substr(0, text.find(end));
}

}  // namespace

void make_idle(std::string& archive, const std::set<std::string>& members) {
  if (!archive.starts_with(magic)) return;
  std::string_view long_names;
  for (std::size_t at = magic.size(); at + header_size <= archive.size();) {
    const std::string_view header(archive.data() + at, header_size);
    std::size_t length = 0, offset = 0;
    const std::string_view digits = up_to(header.substr(length_at, length_size), " ");
    std::from_chars(digits.data(), digits.data() + digits.size(), length);
    char* const content = archive.data() + at + header_size;
    if (length > archive.size() - at - header_size) return;
    std::string_view name = header.substr(0, name_size);
    if (name.starts_with("// ")) {
      long_names = {content, length};
    } else if (name[0] == '/' && name[1] >= '0' && name[1] <= '9') {
      std::from_chars(name.data() + 1, name.data() + name.size(), offset);
      name = offset < long_names.size() ? long_names.substr(offset) : std::string_view();
    }
    if (members.count(std::string(up_to(name, "/"))) > 0) drop_initializers(content);
    at += header_size + length + length % 2;
  }
}

}  // namespace plait::tool
