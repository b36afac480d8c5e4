// SPDX-License-Identifier: Apache-2.0
//
// Structs of the C ABI that the other side made with older or newer headers. Bytes that an older
// one lacks are read as zero. In a newer one, what is not known here has to be zero: the other side
// asks for something otherwise, which is UNSUPPORTED, as are flags, words and numbers that have no
// meaning yet. Pure; thread-safe.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/abi/first_version.h"
#include "core/base/status.h"

namespace pfrt::abi {

// No version of any struct is larger: a larger struct_size is one that was never set.
inline constexpr size_t kLargest = 4096;

// Whether some version of a struct may have that size.
constexpr bool is_size(const FirstVersion& first, size_t size) {
  return size == first.bytes ||
         (!first.frozen && size > first.bytes && size <= kLargest && size % alignof(uint64_t) == 0);
}

// ---- what is called only for a struct of another size, or one that is refused ----

// Bytes from |known| on have to be zero.
Status check_size(const FirstVersion& first, const void* from, size_t size, size_t known);
// Says why an out-parameter cannot have that size.
Status no_room(const FirstVersion& first, size_t size);
Status reserved_word(const char* name, uint64_t found);
Status unknown_flags(const char* name, uint64_t flags);
Status unequal_sizes(const char* name, size_t index, size_t size, size_t first);
// UNSUPPORTED: number |value| of |what| is none of this version's, as in "creating options: kind
// 99".
Status unknown_number(std::string_view doing, std::string_view what, uint64_t value);
// The fault of a plug-in's struct: |code| in place of that of a caller's mistake.
Status by_plugin(Status fault, Code code);

// ---- what is read ----

// Checks members whose value has no meaning in this version; |from| has this version's size.
template <typename T>
Status check_words(const T& from) {
  if constexpr (requires { from.reserved; })
    if (from.reserved) [[unlikely]]
      return reserved_word(kFirst<T>.name, from.reserved);
  if constexpr (requires { from.flags; })
    if (from.flags & ~kKnownFlags<T>) [[unlikely]]
      return unknown_flags(kFirst<T>.name, from.flags & ~kKnownFlags<T>);
  return {};
}

// Checks a struct of the other side's before it is read.
template <typename T>
Status check(const T& from) {
  static_assert(kFirst<T>.bytes != 0, "first_version.h has no row of this struct");
  if (from.struct_size != sizeof(T)) [[unlikely]]
    PFRT_TRY(check_size(kFirst<T>, &from, from.struct_size, sizeof(T)));
  return check_words(from);
}

// Copies the members that both sides know; others are zero. A size that no version has, or NULL,
// gives zeros. Nothing else is checked.
template <typename T>
T known(const T* from) {
  if (from && from->struct_size == sizeof(T)) return *from;
  T out{};
  if (from && is_size(kFirst<T>, from->struct_size))
    std::memcpy(static_cast<void*>(&out), from, std::min<size_t>(from->struct_size, sizeof(T)));
  out.struct_size = sizeof(T);
  return out;
}

// Checks and copies; NULL gives zeros.
template <typename T>
Result<T> read(const T* from) {
  if (from) PFRT_TRY(check(*from));
  return known(from);
}

// Element |i| of an array whose elements are as far apart as the struct_size of the first says.
template <typename T>
const T& element(const T* list, size_t i) {
  return *static_cast<const T*>(pfrt_at(list, list->struct_size, i));
}

// Checks such an array before any of its elements is read.
template <typename T>
Status check_array(const T* list, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const T& one = element(list, i);
    if (one.struct_size != list->struct_size) [[unlikely]]
      return unequal_sizes(kFirst<T>.name, i, one.struct_size, list->struct_size);
    PFRT_TRY(check(one));
  }
  return {};
}

// Checks an array whose elements are |stride| bytes apart and do not say how large they are.
template <typename T>
Status check_elements(const T* list, size_t stride, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const T& one = *static_cast<const T*>(pfrt_at(list, stride, i));
    if (stride != sizeof(T)) [[unlikely]]
      PFRT_TRY(check_size(kFirst<T>, &one, stride, sizeof(T)));
    PFRT_TRY(check_words(one));
  }
  return {};
}

// ---- what is written ----

// Fills an out-parameter, of which only struct_size is read, as far as its maker knows it. Bytes
// beyond what is known here become zero.
template <typename T>
Status write(T* to, T from) {
  const size_t size = to->struct_size;
  if (!is_size(kFirst<T>, size)) return no_room(kFirst<T>, size);
  from.struct_size = static_cast<uint32_t>(size);
  std::memcpy(static_cast<void*>(to), &from, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(to) + sizeof(T), 0, size - sizeof(T));
  return {};
}

}  // namespace pfrt::abi
