// SPDX-License-Identifier: Apache-2.0
//
// The .pb files of ONNX backend tests: one serialized TensorProto, SequenceProto or OptionalProto.
// A small reader of the protobuf wire format; whatever a file contains, it is read or refused. No
// state.
#pragma once

#include <pyflame_rt/types.hpp>
#include <pyflame_rt/value.hpp>
#include <string>

namespace cli {

struct NamedValue {
  std::string name;  // empty when the file has none
  pyflame_rt::Value value;
};

// Reads a file whose contents |arg| describes. A tensor where a sequence is described is read as a
// tensor (maps are stored so), and 16-bit integers where a 16-bit float is described are its bits.
// Throws UsageError when the file is malformed.
NamedValue read_pb(const std::string& path, const pyflame_rt::NodeArg& arg);

}  // namespace cli
