// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/probe.h"

#include <algorithm>

#include "plugins/import_onnx/wire.h"

namespace pfrt::onnx {
namespace {

constexpr uint64_t kMaxIrVersion = 40;
constexpr uint32_t kVarint = 0, kLength = 2;

// The wire type of a field of ModelProto, or 8 when there is no such field.
uint32_t wire_type_of(uint64_t field) {
  switch (field) {
    case 1:
    case 5:
      return kVarint;
    case 2:
    case 3:
    case 4:
    case 6:
    case 7:
    case 8:
    case 14:
    case 20:
    case 25:
    case 26:
      return kLength;
    default:
      return 8;
  }
}

}  // namespace

uint32_t probe(const void* data, uint64_t size) {
  const auto* at = static_cast<const uint8_t*>(data);
  const uint8_t* end = at + size;
  bool version = false, graph = false, opset = false;
  while (at < end) {
    uint64_t tag = 0, value = 0;
    at = read_varint(at, end, &tag);
    if (!at || wire_type_of(tag >> 3) != (tag & 7)) return 0;
    at = read_varint(at, end, &value);
    if (!at) return 0;
    const uint64_t field = tag >> 3;
    if (field == 1) {
      if (value == 0 || value > kMaxIrVersion) return 0;
      version = true;
    }
    graph |= field == 7;
    opset |= field == 8;
    // Content that goes past what is at hand ends the look.
    if ((tag & 7) == kLength) at += std::min<uint64_t>(value, static_cast<uint64_t>(end - at));
  }
  if (version && (graph || opset)) return 95;
  return version ? 60 : graph ? 40 : 0;
}

}  // namespace pfrt::onnx
