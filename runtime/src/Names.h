// Shared by the verifiers: names of records must be there, be UTF-8 and be unique.
#ifndef BATTEN_RT_NAMES_H
#define BATTEN_RT_NAMES_H

#include "Reader.h"

namespace batten::rt {

/// Checks the names of all records of a section, nameOf(i) being the string of record i: not empty, in STRINGS, UTF-8, and
/// no two alike among records of the same group, groupOf(i).
template <typename NameOf, typename GroupOf>
[[nodiscard]] Status verifyNames(const FileView &view, u32 kind, u64 count, NameOf nameOf, GroupOf groupOf,
                                 const Report &report) noexcept {
  struct Entry {
    Text name;
    u32 index, group;
  };
  Array<Entry> sorted;
  // Twice a record of 24 bytes at most; checked against the file's size by the section table.
  if (!sorted.create(count))
    return report.outOfMemory(count * sizeof(Entry));
  for (u32 i = 0; i < count; ++i) {
    Text name;
    if (!view.text(nameOf(i), &name) || name.bytes == 0)
      return report.fail(BATTEN_CORRUPT, sectionName(kind), i, nameOf(i).offset,
                         view.section(BATTEN_SECTION_STRINGS).count,
                         "its name is empty, no UTF-8, or leaves the strings");
    sorted[i] = {name, i, groupOf(i)};
  }
  sortInPlace(sorted.data(), count, [](const Entry &a, const Entry &b) {
    if (a.group != b.group)
      return a.group < b.group;
    int order = a.name.compare(b.name);
    return order != 0 ? order < 0 : a.index < b.index;
  });
  for (u32 i = 1; i < count; ++i)
    if (sorted[i - 1].group == sorted[i].group && sorted[i - 1].name.equals(sorted[i].name))
      return report.fail(BATTEN_CORRUPT, sectionName(kind), sorted[i].index, sorted[i - 1].index, 0,
                         "name \"%.*s\" is record %u's already", BATTEN_TEXT(sorted[i].name), sorted[i - 1].index);
  return BATTEN_OK;
}

template <typename NameOf>
[[nodiscard]] Status verifyNames(const FileView &view, u32 kind, u64 count, NameOf nameOf,
                                 const Report &report) noexcept {
  return verifyNames(view, kind, count, nameOf, [](u32) { return 0u; }, report);
}

} // namespace batten::rt

#endif // BATTEN_RT_NAMES_H
