// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/writer.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/dtype.h"
#include "pfrt_onnx.pb.h"
#include "plugins/import_onnx/arena.h"
#include "plugins/import_onnx/denotations.h"
#include "plugins/import_onnx/host.h"
#include "plugins/import_onnx/optionals.h"
#include "plugins/import_onnx/order.h"
#include "plugins/import_onnx/type_info.h"
#include "plugins/import_onnx/wire.h"

namespace pfrt::onnx {
namespace {

// Newest IR version for models that do not say theirs; they get the version that came with their
// opset, up to this one.
constexpr int64_t kNewestUnsaid = 10;
// Oldest IR version that has initializers that are no inputs.
constexpr int64_t kLeastIrVersion = 4;
constexpr uint64_t kMessageLimit = INT_MAX;
constexpr uint64_t kSidecarAlignment = 64;
constexpr uint64_t kWriteChunk = uint64_t{16} << 20;

// The first version that has the type.
int64_t ir_version_of(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT8E4M3FN:
    case PFRT_DTYPE_FLOAT8E4M3FNUZ:
    case PFRT_DTYPE_FLOAT8E5M2:
    case PFRT_DTYPE_FLOAT8E5M2FNUZ:
      return 9;
    case PFRT_DTYPE_UINT4:
    case PFRT_DTYPE_INT4:
      return 10;
    case PFRT_DTYPE_FLOAT4E2M1:
      return 11;
    case PFRT_DTYPE_FLOAT8E8M0:
      return 12;
    case PFRT_DTYPE_UINT2:
    case PFRT_DTYPE_INT2:
      return 13;
    default:
      return kLeastIrVersion;
  }
}

int64_t ir_version_of_kind(pfrt_value_kind kind) {
  switch (kind) {
    case PFRT_VALUE_SPARSE:
    case PFRT_VALUE_OPTIONAL:
      return 8;
    default:
      return kLeastIrVersion;
  }
}

// The version that the release of the standard had in which |opset| of ai.onnx was new.
int64_t ir_version_of_opset(int64_t opset) {
  struct Row {
    int64_t opset, ir_version;
  };
  constexpr Row kRows[] = {{21, 10}, {19, 9}, {15, 8}, {12, 7}, {11, 6}, {10, 5}};
  for (const Row& row : kRows)
    if (opset >= row.opset) return std::min(row.ir_version, kNewestUnsaid);
  return kLeastIrVersion;
}

// A tensor's bytes in the second file.
struct SidecarEntry {
  const void* data;
  uint64_t size;
  uint64_t padding;  // zeros before it
};

class ModelWriter {
 public:
  ModelWriter(const pfrt_export_request& request, const pfrt_sink& sink)
      : request_(request), sink_(sink), graphs_(*request.api->graph), values_(*request.api->value) {
    const std::string_view path = view(request.path);
    sidecar_name_ = message(path.substr(path.rfind('/') + 1), ".data");
  }

  Status write();

 private:
  // The message with every large tensor standing aside; |sidecar| sends initializers to the second
  // file.
  Status build(bool sidecar);
  Status write_info();
  Status write_graph(const pfrt_graph* graph, wire::GraphProto* out);
  template <typename Add>
  Status write_metadata(const pfrt_graph* graph, Add add);
  Status write_denotations_of(const pfrt_graph* graph, wire::GraphProto* out);
  Status write_values(const pfrt_graph* graph, wire::GraphProto* out);
  Status write_initializers(const pfrt_graph* graph, wire::GraphProto* out);
  Status write_nodes(const pfrt_graph* graph, wire::GraphProto* out);
  Status write_attribute(const pfrt_attr& attr, wire::AttributeProto* out);
  Status write_body(const pfrt_graph* graph, wire::GraphProto* out);
  // Writes a tensor; with |external| its data may go to the second file.
  Status write_tensor(const pfrt_value* value, bool external, wire::TensorProto* out);
  Status write_sparse(const pfrt_value* value, wire::SparseTensorProto* out);
  void write_external(const pfrt_tensor& tensor, wire::TensorProto* out);
  void write_value(const pfrt_value_info& info, wire::ValueInfoProto* out);
  // Notes that something needs an IR version of at least this.
  void need(int64_t ir_version) { ir_version_ = std::max(ir_version_, ir_version); }
  Status write_pieces();
  Status write_sidecar();
  Status put(uint32_t file, const void* data, uint64_t size);

  Status host(pfrt_status* status) const { return take_status(*request_.api, status); }

  const pfrt_export_request& request_;
  const pfrt_sink& sink_;
  const pfrt_graph_api& graphs_;
  const pfrt_value_api& values_;
  std::string sidecar_name_;
  google::protobuf::Arena arena_{arena_options()};
  wire::ModelProto& model_ = *google::protobuf::Arena::CreateMessage<wire::ModelProto>(&arena_);
  std::vector<Payload> payloads_;
  std::vector<SidecarEntry> entries_;
  uint64_t written_ = 0, expected_ = 1;
  uint64_t sidecar_size_ = 0;
  int64_t ir_version_ = kLeastIrVersion;
  bool sidecar_ = false;
  int depth_ = 0;
};

Status ModelWriter::write() {
  PFRT_TRY(build(false));
  uint64_t size = model_.ByteSizeLong();
  for (const Payload& payload : payloads_) size += payload.size;
  // Lengths of enclosing messages grow too, by a few bytes a payload.
  if (size + 64 * payloads_.size() > kMessageLimit) PFRT_TRY(build(true));
  PFRT_TRY(write_pieces());
  return entries_.empty() ? Status() : write_sidecar();
}

Status ModelWriter::build(bool sidecar) {
  model_.Clear();
  payloads_.clear();
  entries_.clear();
  sidecar_size_ = 0;
  sidecar_ = sidecar;
  ir_version_ = kLeastIrVersion;
  PFRT_TRY(write_info());
  int64_t unsaid = kLeastIrVersion;
  for (size_t i = 0; i < graphs_.opset_count(request_.graph); ++i) {
    pfrt_string domain{};
    int64_t version = 0;
    PFRT_TRY(host(graphs_.opset_at(request_.graph, i, &domain, &version)));
    auto* opset = model_.add_opset_import();
    opset->set_domain(domain.data, domain.size);
    opset->set_version(version);
    if (domain.size == 0) unsaid = ir_version_of_opset(version);
  }
  if (!model_.has_ir_version()) need(unsaid);
  PFRT_TRY(write_metadata(request_.graph, [this] { return model_.add_metadata_props(); }));
  PFRT_TRY(write_graph(request_.graph, model_.mutable_graph()));
  declare_optional_sequences(model_.mutable_graph());
  model_.set_ir_version(std::max(model_.ir_version(), ir_version_));
  return {};
}

Status ModelWriter::write_info() {
  model_.set_producer_name("pyflame_rt");
  const auto number = [](pfrt_string text) {
    int64_t value = 0;
    std::from_chars(text.data, text.data + text.size, value);
    return value;
  };
  for (size_t i = 0; i < request_.info_count; ++i) {
    const std::string_view key = view(request_.info[i].key);
    const pfrt_string value = request_.info[i].value;
    if (value.size == 0) continue;
    if (key == "producer_name") model_.set_producer_name(value.data, value.size);
    if (key == "producer_version") model_.set_producer_version(value.data, value.size);
    if (key == "domain") model_.set_domain(value.data, value.size);
    if (key == "description") model_.set_doc_string(value.data, value.size);
    if (key == "model_version") model_.set_model_version(number(value));
    if (key == "ir_version") model_.set_ir_version(number(value));
  }
  return {};
}

Status ModelWriter::write_graph(const pfrt_graph* graph, wire::GraphProto* out) {
  const pfrt_string name = graphs_.name(graph);
  // The standard wants a name.
  if (name.size)
    out->set_name(name.data, name.size);
  else
    out->set_name("graph");
  PFRT_TRY(write_initializers(graph, out));
  PFRT_TRY(write_nodes(graph, out));
  PFRT_TRY(write_values(graph, out));
  PFRT_TRY(write_denotations_of(graph, out));
  sort_nodes(out);
  return {};
}

// Writes the metadata, but for denotations, to the entries that |add| adds.
template <typename Add>
Status ModelWriter::write_metadata(const pfrt_graph* graph, Add add) {
  for (size_t i = 0; i < graphs_.metadata_count(graph); ++i) {
    pfrt_key_value entry{};
    PFRT_TRY(host(graphs_.metadata_at(graph, i, &entry)));
    if (view(entry.key).starts_with(kDenotationKey)) continue;
    auto* to = add();
    to->set_key(entry.key.data, entry.key.size);
    to->set_value(entry.value.data, entry.value.size);
  }
  return {};
}

Status ModelWriter::write_denotations_of(const pfrt_graph* graph, wire::GraphProto* out) {
  std::unordered_map<std::string_view, std::string_view> kept;  // by name of the value
  for (size_t i = 0; i < graphs_.metadata_count(graph); ++i) {
    pfrt_key_value entry{};
    PFRT_TRY(host(graphs_.metadata_at(graph, i, &entry)));
    if (view(entry.key).starts_with(kDenotationKey))
      kept.emplace(view(entry.key).substr(kDenotationKey.size()), view(entry.value));
  }
  if (kept.empty()) return {};
  for (auto* list : {out->mutable_input(), out->mutable_output(), out->mutable_value_info()})
    for (auto& info : *list)
      if (const auto at = kept.find(info.name()); at != kept.end() && info.has_type())
        write_denotations(at->second, info.mutable_type());
  return {};
}

Status ModelWriter::write_values(const pfrt_graph* graph, wire::GraphProto* out) {
  auto info = sized<pfrt_value_info>();
  for (size_t i = 0; i < graphs_.input_count(graph); ++i) {
    PFRT_TRY(host(graphs_.input_at(graph, i, &info)));
    write_value(info, out->add_input());
  }
  std::vector<std::string> outputs;
  for (size_t i = 0; i < graphs_.output_count(graph); ++i) {
    PFRT_TRY(host(graphs_.output_at(graph, i, &info)));
    write_value(info, out->add_output());
    outputs.emplace_back(view(info.name));
  }
  std::sort(outputs.begin(), outputs.end());
  for (const auto& node : out->node()) {
    for (const auto& name : node.output()) {
      if (name.empty() || std::binary_search(outputs.begin(), outputs.end(), name)) continue;
      // A value nobody described is no fault.
      if (!host(graphs_.value_info(graph, to_c(name), &info)).ok() ||
          info.kind == PFRT_VALUE_UNSET || info.dtype == PFRT_DTYPE_UNSET)
        continue;
      write_value(info, out->add_value_info());
      out->mutable_value_info(out->value_info_size() - 1)->set_name(name);
    }
  }
  return {};
}

Status ModelWriter::write_initializers(const pfrt_graph* graph, wire::GraphProto* out) {
  for (size_t i = 0; i < graphs_.initializer_count(graph); ++i) {
    pfrt_string name{};
    pfrt_value* value = nullptr;
    PFRT_TRY(host(graphs_.initializer_at(graph, i, &name, &value)));
    Status status;
    if (values_.kind(value) == PFRT_VALUE_SPARSE) {
      auto* sparse = out->add_sparse_initializer();
      status = write_sparse(value, sparse);
      sparse->mutable_values()->set_name(name.data, name.size);
    } else {
      auto* tensor = out->add_initializer();
      status = write_tensor(value, true, tensor);
      tensor->set_name(name.data, name.size);
    }
    if (!status.ok()) return std::move(status.prepend(message("writing initializer '", name, "'")));
  }
  return {};
}

Status ModelWriter::write_nodes(const pfrt_graph* graph, wire::GraphProto* out) {
  auto node = sized<pfrt_node>();
  for (size_t i = 0; i < graphs_.node_count(graph); ++i) {
    if (const pfrt_code code = i % 256 == 0 ? sink_.stop(&sink_) : 0)
      return error(static_cast<Code>(code), "saving an ONNX model was stopped");
    PFRT_TRY(host(graphs_.node_at(graph, i, &node)));
    auto* to = out->add_node();
    const auto set = [](pfrt_string text) { return std::string(view(text)); };
    if (node.name.size) to->set_name(set(node.name));
    if (node.domain.size) to->set_domain(set(node.domain));
    if (node.doc.size) to->set_doc_string(set(node.doc));
    to->set_op_type(set(node.op));
    for (size_t k = 0; k < node.input_count; ++k) to->add_input(set(node.inputs[k]));
    for (size_t k = 0; k < node.output_count; ++k) to->add_output(set(node.outputs[k]));
    for (size_t k = 0; k < node.attr_count; ++k) {
      const auto& attr =
          *static_cast<const pfrt_attr*>(pfrt_at(node.attrs, node.attrs->struct_size, k));
      Status status = write_attribute(attr, to->add_attribute());
      if (!status.ok())
        return std::move(status.prepend(
            message("writing attribute '", attr.name, "' of ", node.op, " '", node.name, "'")));
    }
  }
  return {};
}

Status ModelWriter::write_attribute(const pfrt_attr& attr, wire::AttributeProto* out) {
  out->set_name(attr.name.data, attr.name.size);
  out->set_type(static_cast<int32_t>(attr.type));
  switch (attr.type) {
    case PFRT_ATTR_FLOAT:
      out->set_f(attr.f);
      return {};
    case PFRT_ATTR_INT:
      out->set_i(attr.i);
      return {};
    case PFRT_ATTR_STRING:
      out->set_s(std::string(view(attr.s)));
      return {};
    case PFRT_ATTR_TYPE:
      return parse_type(view(attr.s), out->mutable_tp());
    case PFRT_ATTR_FLOATS:
      out->mutable_floats()->Add(attr.floats, attr.floats + attr.count);
      return {};
    case PFRT_ATTR_INTS:
      out->mutable_ints()->Add(attr.ints, attr.ints + attr.count);
      return {};
    case PFRT_ATTR_STRINGS:
      for (size_t i = 0; i < attr.count; ++i) out->add_strings(std::string(view(attr.strings[i])));
      return {};
    case PFRT_ATTR_TENSOR:
      return write_tensor(attr.tensor, false, out->mutable_t());
    case PFRT_ATTR_SPARSE:
      return write_sparse(attr.tensor, out->mutable_sparse_tensor());
    case PFRT_ATTR_TENSORS:
      for (size_t i = 0; i < attr.count; ++i)
        PFRT_TRY(write_tensor(attr.tensors[i], false, out->add_tensors()));
      return {};
    case PFRT_ATTR_GRAPH:
      return write_body(attr.graph, out->mutable_g());
    case PFRT_ATTR_GRAPHS:
      for (size_t i = 0; i < attr.count; ++i)
        PFRT_TRY(write_body(attr.graphs[i], out->add_graphs()));
      return {};
    default:
      return error(Code::kUNSUPPORTED, "attribute type ", attr.type, " is not known");
  }
}

Status ModelWriter::write_body(const pfrt_graph* graph, wire::GraphProto* out) {
  constexpr int64_t kMetadataOfGraphs = 10;
  if (depth_ >= kMaxDepth)
    return error(Code::kUNSUPPORTED, "bodies are nested more than ", kMaxDepth, " deep");
  PFRT_TRY(write_metadata(graph, [&] {
    need(kMetadataOfGraphs);
    return out->add_metadata_props();
  }));
  ++depth_;
  Status status = write_graph(graph, out);
  --depth_;
  return status;
}

Status ModelWriter::write_tensor(const pfrt_value* value, bool external, wire::TensorProto* out) {
  if (values_.kind(value) != PFRT_VALUE_TENSOR)
    return error(Code::kUNSUPPORTED, "ONNX has no constants that are sequences, maps or optionals");
  auto tensor = sized<pfrt_tensor>();
  PFRT_TRY(host(values_.tensor(value, &tensor)));
  if (tensor.strides) return error(Code::kUNSUPPORTED, "the tensor has strides; make it row-major");
  out->mutable_dims()->Add(tensor.dims, tensor.dims + tensor.rank);
  out->set_data_type(static_cast<int32_t>(tensor.dtype));
  need(ir_version_of(tensor.dtype));
  const int64_t count = element_count(tensor.dims, tensor.rank);
  if (tensor.dtype == PFRT_DTYPE_STRING) {
    const auto* texts = static_cast<const pfrt_string*>(tensor.data);
    for (int64_t i = 0; i < count; ++i) out->add_string_data(std::string(view(texts[i])));
    return {};
  }
  tensor.bytes = tensor_bytes(tensor.dtype, count);
  if (tensor.bytes == UINT64_MAX) return error(Code::kINTERNAL, "the tensor has no size");
  if (tensor.bytes < kMinPayloadBytes) {
    out->set_raw_data(tensor.data, static_cast<size_t>(tensor.bytes));
  } else if (external && sidecar_) {
    write_external(tensor, out);
  } else {
    out->set_payload(static_cast<uint32_t>(payloads_.size()));
    payloads_.push_back({kRawData, static_cast<const uint8_t*>(tensor.data), tensor.bytes});
  }
  return {};
}

void ModelWriter::write_value(const pfrt_value_info& info, wire::ValueInfoProto* out) {
  write_value_info(info, out);
  need(ir_version_of(info.dtype));
  need(ir_version_of_kind(info.kind));
}

void ModelWriter::write_external(const pfrt_tensor& tensor, wire::TensorProto* out) {
  const uint64_t offset =
      (sidecar_size_ + kSidecarAlignment - 1) / kSidecarAlignment * kSidecarAlignment;
  entries_.push_back({tensor.data, tensor.bytes, offset - sidecar_size_});
  sidecar_size_ = offset + tensor.bytes;
  out->set_data_location(kExternalLocation);
  const auto add = [out](const char* key, std::string value) {
    auto* entry = out->add_external_data();
    entry->set_key(key);
    entry->set_value(std::move(value));
  };
  add("location", sidecar_name_);
  add("offset", std::to_string(offset));
  add("length", std::to_string(tensor.bytes));
}

Status ModelWriter::write_sparse(const pfrt_value* value, wire::SparseTensorProto* out) {
  constexpr int64_t kSparseConstants = 6;
  need(kSparseConstants);
  pfrt_value *values = nullptr, *indices = nullptr;
  const int64_t* dims = nullptr;
  size_t rank = 0;
  PFRT_TRY(host(values_.sparse_parts(value, &values, &indices, &dims, &rank)));
  PFRT_TRY(write_tensor(values, false, out->mutable_values()));
  PFRT_TRY(write_tensor(indices, false, out->mutable_indices()));
  out->mutable_dims()->Add(dims, dims + rank);
  return {};
}

Status ModelWriter::put(uint32_t file, const void* data, uint64_t size) {
  const auto* at = static_cast<const char*>(data);
  for (uint64_t done = 0; done < size; done += kWriteChunk) {
    MessageSink sink(sink_);
    if (const pfrt_code code = request_.write(&request_, file, at + done,
                                              std::min(kWriteChunk, size - done), sink.get()))
      return sink.status(code);
    written_ += std::min(kWriteChunk, size - done);
    sink_.progress(&sink_, static_cast<double>(written_) / static_cast<double>(expected_));
    if (const pfrt_code code = sink_.stop(&sink_))
      return error(static_cast<Code>(code), "saving an ONNX model was stopped");
  }
  return {};
}

Status ModelWriter::write_pieces() {
  const auto too_large = [this](uint64_t size) {
    return error(
        Code::kUNSUPPORTED, "saving '", request_.path, "': ", size,
        " bytes outside initializers are more than the 2 GiB an ONNX file can have; save as .pfm");
  };
  if (model_.ByteSizeLong() > kMessageLimit) return too_large(model_.ByteSizeLong());
  std::string slim;
  if (!model_.SerializeToString(&slim))
    return error(Code::kINTERNAL, "serialising the model failed");
  PFRT_ASSIGN(const JoinedMessage joined, join_payloads(slim, payloads_));
  expected_ = joined.size + sidecar_size_;
  if (joined.size > kMessageLimit) return too_large(joined.size);
  for (const Piece& piece : joined.pieces) PFRT_TRY(put(0, piece.data, piece.size));
  return {};
}

Status ModelWriter::write_sidecar() {
  MessageSink sink(sink_);
  uint32_t file = 0;
  if (const pfrt_code code =
          request_.add_sidecar(&request_, to_c(sidecar_name_), sink.get(), &file))
    return sink.status(code);
  const std::string zeros(kSidecarAlignment, '\0');
  for (const SidecarEntry& entry : entries_) {
    PFRT_TRY(put(file, zeros.data(), entry.padding));
    PFRT_TRY(put(file, entry.data, entry.size));
  }
  return {};
}

}  // namespace

Status write_model(const pfrt_export_request& request, const pfrt_sink& sink) {
  return ModelWriter(request, sink).write();
}

}  // namespace pfrt::onnx
