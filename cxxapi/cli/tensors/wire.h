// SPDX-License-Identifier: Apache-2.0
//
// The protobuf wire format, read field by field from borrowed bytes. Malformed input throws
// UsageError; nothing is read past the end.
#pragma once

#include <cstdint>
#include <string_view>

#include "cxxapi/cli/line/usage_error.h"

namespace cli {

class WireReader {
 public:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(std::string_view bytes) : at_(bytes.data()), end_(at_ + bytes.size()) {}

  // Reads the next field and its type; returns false at the end. One of the readers below must
  // follow, or skip().
  bool next() {
    if (at_ == end_) return false;
    const uint64_t tag = raw_varint();
    field_ = static_cast<uint32_t>(tag >> 3);
    type_ = static_cast<uint32_t>(tag & 7);
    if (field_ == 0) fail();
    return true;
  }
  uint32_t field() const { return field_; }
  uint32_t type() const { return type_; }
  bool done() const { return at_ == end_; }

  uint64_t varint() {
    expect(kVarint);
    return raw_varint();
  }
  std::string_view bytes() {
    expect(kBytes);
    const uint64_t size = raw_varint();
    return take(size);
  }
  void skip() {
    switch (type_) {
      case kVarint:
        (void)raw_varint();
        break;
      case kFixed64:
        (void)take(8);
        break;
      case kBytes:
        (void)take(raw_varint());
        break;
      case kFixed32:
        (void)take(4);
        break;
      default:
        fail();
    }
  }
  // Reads a number without a tag before it, as inside a packed field.
  uint64_t raw_varint() {
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) fail();
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail();
  }
  std::string_view take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) fail();
    const std::string_view out(at_, static_cast<size_t>(size));
    at_ += size;
    return out;
  }

 private:
  [[noreturn]] static void fail() { throw UsageError("the bytes are not a protobuf message"); }
  void expect(uint32_t type) const {
    if (type_ != type) fail();
  }
  const char* at_;
  const char* end_;
  uint32_t field_ = 0, type_ = 0;
};

}  // namespace cli
