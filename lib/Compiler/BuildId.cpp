//===- BuildId.cpp - Which compiler made the code -------------------------===//
//
// Part of the linattn project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildId.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include <cstring>
#include <elf.h>
#include <link.h>

namespace {

struct Search {
  uintptr_t address;
  std::string id;
};

/// Reads the build id out of a note segment.
std::string findBuildIdNote(const char *notes, size_t size) {
  auto align = [](size_t n) { return (n + 3) & ~size_t(3); };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    size_t nameOffset = sizeof(note);
    size_t idOffset = nameOffset + align(note.n_namesz);
    size_t end = idOffset + align(note.n_descsz);
    if (end > size)
      return "";
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes + nameOffset, "GNU", 4) == 0)
      return llvm::toHex(
          llvm::ArrayRef<uint8_t>(
              reinterpret_cast<const uint8_t *>(notes + idOffset),
              note.n_descsz),
          /*LowerCase=*/true);
    notes += end;
    size -= end;
  }
  return "";
}

/// Stops at the object whose code contains the given address.
int visitObject(dl_phdr_info *info, size_t, void *opaque) {
  auto *search = static_cast<Search *>(opaque);
  bool contains = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto &segment = info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    contains |= segment.p_type == PT_LOAD && search->address >= start &&
                search->address < start + segment.p_memsz;
  }
  if (!contains)
    return 0;
  for (int i = 0; i < info->dlpi_phnum && search->id.empty(); ++i) {
    const auto &segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search->id = findBuildIdNote(
          reinterpret_cast<const char *>(info->dlpi_addr + segment.p_vaddr),
          segment.p_memsz);
  }
  return 1;
}

} // namespace

const std::string &linattn::detail::getBuildId() {
  static const std::string id = [] {
    Search search{reinterpret_cast<uintptr_t>(&visitObject), ""};
    dl_iterate_phdr(visitObject, &search);
    return search.id;
  }();
  return id;
}
