// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a model as values of the host. Payloads in the model's file, or in files beside it,
// become views into the mapping where they are aligned for their element and need no decoding; all
// else is copied, and a mapped file that is copied from does not stay in memory. Nothing is
// allocated before the sizes agree. Belongs to one thread; files opened here are given back with
// it, views keep theirs.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "pfrt_onnx.pb.h"
#include "plugins/import_onnx/host.h"
#include "plugins/import_onnx/wire.h"
#include "pyflame_rt/plugin.h"

namespace pfrt::onnx {

namespace wire = ::pfrt_onnx_wire;

class TensorReader {
 public:
  // |request| and |sink| outlive this; |payloads| are those of the slim message.
  TensorReader(const pfrt_import_request& request, const pfrt_sink& sink,
               std::vector<Payload> payloads);
  ~TensorReader();
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;

  // |what| names the tensor in messages: "initializer 'w'". INVALID_MODEL when dims and data
  // disagree.
  Result<ValueRef> read(const wire::TensorProto& tensor, const std::string& what);
  // INVALID_MODEL also when an index is outside the dense dims.
  Result<ValueRef> read_sparse(const wire::SparseTensorProto& tensor, const std::string& what);

 private:
  struct Form;  // type, dims and name of the tensor at hand
  // Bytes of a tensor. |file| is who holds them, or nullptr when they are in the parsed message.
  struct Extent {
    const uint8_t* data = nullptr;
    uint64_t size = 0;
    pfrt_file* file = nullptr;
  };

  Result<ValueRef> read_raw(const Form& form, Extent extent);
  Result<ValueRef> read_packed(const Form& form, const Payload& payload);
  Result<ValueRef> read_fields(const Form& form, const wire::TensorProto& tensor);
  Result<ValueRef> read_strings(const Form& form, const wire::TensorProto& tensor);
  template <typename Next>
  Result<ValueRef> read_integers(const Form& form, uint64_t stored, Next next);
  Result<Extent> external(const Form& form, const wire::TensorProto& tensor);
  Result<Extent> open(const std::string& location, const std::string& what);
  // Holds the file at |location| against the SHA-1 digest that the model gives of it; once each.
  Status verify(const std::string& location, Extent file, const std::string& checksum,
                const Form& form);
  Result<ValueRef> create(const Form& form, pfrt_tensor* out_view);
  Result<ValueRef> wrap(const Form& form, Extent extent,
                        decltype(pfrt_value_api::wrap_tensor) wrap_as);
  Status copy(const Form& form, Extent from, uint8_t* to);
  Status check_indices(const std::string& what, const pfrt_tensor& indices, uint64_t nonzeros,
                       const wire::SparseTensorProto& tensor);

  const pfrt_import_request& request_;
  const pfrt_api& api_;
  const pfrt_sink& sink_;
  std::vector<Payload> payloads_;
  std::unordered_map<std::string, Extent> files_;         // by location
  std::unordered_map<std::string, std::string> digests_;  // by location, of those asked for
};

}  // namespace pfrt::onnx
