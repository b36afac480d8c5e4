// SPDX-License-Identifier: Apache-2.0
#include "core/base/abi/sized.h"

namespace pfrt::abi {
namespace {

std::string here() {
  return message("ABI ", PFRT_ABI_MAJOR, ".", PFRT_ABI_MINOR, ", which is implemented here,");
}

Status wrong_size(const char* doing, const FirstVersion& first, size_t size) {
  const std::string found = size == 0            ? std::string("not set")
                            : size < first.bytes ? message(size, ", fewer bytes than the ",
                                                           first.bytes, " of its first version")
                                                 : message(size, ", which no version of it has");
  return error(Code::kINVALID_ARGUMENT, doing, " a ", first.name,
               first.says_size ? ": its struct_size is " : ": its size in the array is ", found,
               "; set it to sizeof(", first.name, ")");
}

}  // namespace

Status check_size(const FirstVersion& first, const void* from, size_t size, size_t known) {
  if (!is_size(first, size)) return wrong_size("reading", first, size);
  const auto* bytes = static_cast<const unsigned char*>(from);
  const auto* set = std::find_if(bytes + std::min(known, size), bytes + size,
                                 [](unsigned char byte) { return byte != 0; });
  if (set == bytes + size) return {};
  return error(Code::kUNSUPPORTED, "reading a ", first.name, " of ", size, " bytes: ", here(),
               " has ", known, " of them, and byte ", set - bytes,
               " is not zero: a member of newer headers is set; leave it zero, or install a "
               "version that knows it");
}

Status no_room(const FirstVersion& first, size_t size) {
  return wrong_size("filling in", first, size);
}

Status reserved_word(const char* name, uint64_t found) {
  return error(Code::kUNSUPPORTED, "reading a ", name, ": its reserved word is ", found,
               ", to which ", here(),
               " gives no meaning; set it to 0, or install a version that knows it");
}

Status unknown_flags(const char* name, uint64_t flags) {
  return error(Code::kUNSUPPORTED, "reading a ", name, ": ", here(), " does not know its flags ",
               flags, "; leave them out, or install a version that knows them");
}

Status unequal_sizes(const char* name, size_t index, size_t size, size_t first) {
  return error(Code::kINVALID_ARGUMENT, "reading an array of ", name,
               ": the struct_size of element ", index, " is ", size, ", that of the first ", first,
               "; set each to sizeof(", name, ")");
}

Status unknown_number(std::string_view doing, std::string_view what, uint64_t value) {
  return error(Code::kUNSUPPORTED, doing, ": ", here(), " does not know ", what, " ", value,
               "; give one of its headers, or install a version that knows it");
}

Status by_plugin(Status fault, Code code) {
  if (fault.ok() || fault.code() != Code::kINVALID_ARGUMENT) return fault;
  return error(code, fault.message());
}

}  // namespace pfrt::abi
