// SPDX-License-Identifier: Apache-2.0
//
// Types between the wire and the ABI: descriptions of values (pfrt_value_info), and the text that
// stands for the type in an attribute, such as "seq(tensor(float))" or "tensor(float,[2,N,?])".
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/rank.h"
#include "core/base/status.h"
#include "pfrt_onnx.pb.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::onnx {

namespace wire = ::pfrt_onnx_wire;

// The ABI's description of a type. |info| points into this object and into the message it was read
// from.
class TypeInfo {
 public:
  // |with_dim_names| false leaves symbolic dimensions nameless.
  static Result<TypeInfo> read(const wire::TypeProto& type, bool with_dim_names);

  // Valid until this object changes or moves.
  pfrt_value_info info(pfrt_string name) const;
  bool known() const { return kind_ != PFRT_VALUE_UNSET; }

 private:
  Status read_tensor(int32_t elem_type, const wire::TensorShapeProto* shape, bool with_dim_names);
  Status read_elements(const wire::TypeProto& type, bool with_dim_names);

  pfrt_value_kind kind_ = PFRT_VALUE_UNSET;
  pfrt_dtype dtype_ = PFRT_DTYPE_UNSET, key_dtype_ = PFRT_DTYPE_UNSET;
  bool has_shape_ = false;
  std::vector<int64_t> dims_;
  std::vector<pfrt_string> dim_names_;
};

// Writes |info| (name and, where it is known, type) into |out|.
void write_value_info(const pfrt_value_info& info, wire::ValueInfoProto* out);

std::string type_text(const wire::TypeProto& type);
// INVALID_ARGUMENT when |text| is not such a text.
Status parse_type(std::string_view text, wire::TypeProto* out);

}  // namespace pfrt::onnx
