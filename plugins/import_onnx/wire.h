// SPDX-License-Identifier: Apache-2.0
//
// The protobuf wire format walked by hand, so that the bytes of tensors go around the parser: a
// model file is cut into a slim message (what protobuf parses) and payloads (views into the file),
// and a slim message is joined with payloads for writing. Both are one pass over the bytes outside
// payloads. Pure functions over borrowed memory; thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace pfrt::onnx {

// Tensor data of fewer bytes stays in the message.
inline constexpr uint64_t kMinPayloadBytes = 512;
// Messages inside messages. A graph in a graph takes three levels, so that 64 graphs fit into each
// other.
inline constexpr int kMaxMessageDepth = 200;
// Bodies in bodies, and calls of functions in them, that are read and written.
inline constexpr int kMaxDepth = 64;

inline constexpr int32_t kExternalLocation = 1;  // TensorProto.data_location

// Fields of TensorProto that hold tensor data.
inline constexpr uint32_t kFloatData = 4, kInt32Data = 5, kStringData = 6, kInt64Data = 7,
                          kRawData = 9, kDoubleData = 10, kUint64Data = 11;

// The content of a length-delimited data field: raw bytes, or packed numbers as the wire has them.
struct Payload {
  uint32_t field = 0;
  const uint8_t* data = nullptr;
  uint64_t size = 0;
};

struct SlimMessage {
  std::string bytes;
  std::vector<Payload> payloads;  // TensorProto.payload of the slim message counts from 0 into it
};

// Cuts the serialised ModelProto at |model|. A tensor with exactly one data field, of
// kMinPayloadBytes or more, loses it to the payloads; a payload field that the file itself has is
// dropped. Contents of training_info are left out. INVALID_MODEL with the byte offset of the first
// thing that is not a well-formed field.
Result<SlimMessage> cut_payloads(const void* model, uint64_t size);

struct Piece {
  const void* data;
  uint64_t size;
};

// The pieces of a file in the order in which they are written: views into the slim message, into
// payloads and into |headers|.
struct JoinedMessage {
  std::vector<Piece> pieces;
  std::deque<std::string> headers;
  uint64_t size = 0;
};

// The inverse: every TensorProto.payload becomes raw_data with that payload's bytes. |slim| must
// come from our own serialiser.
Result<JoinedMessage> join_payloads(const std::string& slim, const std::vector<Payload>& payloads);

// Reads a varint at |at|; the byte after it, or nullptr when it is cut off or longer than ten
// bytes.
const uint8_t* read_varint(const uint8_t* at, const uint8_t* end, uint64_t* out_value);

}  // namespace pfrt::onnx
