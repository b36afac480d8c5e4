// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/host_snapshot.h"

#include <cstring>

namespace cli::check {
namespace {

constexpr Guards kLent = {"struct-size-host", "struct-size-host", "read-only-arguments"};
constexpr Guards kConstant = {"read-only-arguments", "reads-past-buffer", "read-only-arguments"};

}  // namespace

Guarded* HostSnapshot::lend(const void* data, size_t bytes, size_t alignment,
                            const std::string& label) {
  Guarded& memory = lent_.emplace_back(bytes, label, kLent, alignment);
  if (bytes) std::memcpy(memory.data(), data, bytes);
  return &memory;
}

template <typename T>
const T* HostSnapshot::array(const std::vector<T>& from, const std::string& label) {
  if (from.empty()) return nullptr;
  return reinterpret_cast<const T*>(
      lend(from.data(), from.size() * sizeof(T), alignof(T), label)->data());
}

template <typename T>
const T* HostSnapshot::strided(const std::vector<T>& elements, const std::string& label) {
  const size_t stride = sizeof(T) + more_;
  std::vector<char> bytes(stride * elements.size());
  for (size_t i = 0; i < elements.size(); ++i)
    std::memcpy(bytes.data() + i * stride, &elements[i], sizeof(T));
  return reinterpret_cast<const T*>(lend(bytes.data(), bytes.size(), alignof(T), label)->data());
}

pfrt_string HostSnapshot::text(const std::string& s) {
  return s.empty() ? pfrt_string{}
                   : pfrt_string{lend(s.data(), s.size(), 1, "a name")->data(), s.size()};
}

HostSnapshot::HostSnapshot(const Case& c, const Case* other, Age age)
    : more_(age == Age::kNewer ? kMore : 0), constant_of_(c.values.size(), nullptr) {
  std::vector<pfrt_snapshot_value> values;
  for (size_t i = 0; i < c.values.size(); ++i)
    values.push_back(value(c.values[i], other ? &other->values[i] : nullptr, &constant_of_[i]));
  for (uint32_t v : c.inputs) values[v].flags |= PFRT_SNAPSHOT_GRAPH_INPUT;
  for (uint32_t v : c.outputs) {
    values[v].flags |= PFRT_SNAPSHOT_GRAPH_OUTPUT;
    ++values[v].consumer_count;
  }
  std::vector<pfrt_snapshot_node> nodes;
  for (const CaseNode& from : c.nodes) {
    nodes.push_back(node(from, static_cast<uint32_t>(nodes.size())));
    for (uint32_t v : from.inputs) ++values[v].consumer_count;
  }
  pfrt_snapshot snapshot{};
  snapshot.node_size = static_cast<uint32_t>(sizeof(pfrt_snapshot_node) + more_);
  snapshot.value_size = static_cast<uint32_t>(sizeof(pfrt_snapshot_value) + more_);
  snapshot.attr_size = static_cast<uint32_t>(sizeof(pfrt_snapshot_attr) + more_);
  snapshot.node_count = static_cast<uint32_t>(nodes.size());
  snapshot.value_count = static_cast<uint32_t>(values.size());
  snapshot.nodes = strided(nodes, "the snapshot's nodes");
  snapshot.values = strided(values, "the snapshot's values");
  snapshot_ = std::make_unique<Sized<pfrt_snapshot>>(age, snapshot, "the snapshot");
  make_region(c, age);
  for (Guarded& memory : lent_) memory.allow(Guarded::Access::kRead);
  snapshot_->make_read_only();
  region_->make_read_only();
}

pfrt_snapshot_value HostSnapshot::value(const CaseValue& from, const CaseValue* other,
                                        const Guarded** constant) {
  pfrt_snapshot_value to{};
  to.name = text(from.name);
  to.dtype = from.dtype;
  to.rank = static_cast<int32_t>(from.dims.size());
  std::vector<int64_t> dims = from.dims;
  for (size_t d = 0; other && d < dims.size(); ++d)
    if (other->dims[d] != dims[d]) dims[d] = -1;
  to.dims = array(dims, "a value's dims");
  to.producer = from.producer;
  if (from.constant) {
    const std::vector<char> bytes = to_bytes(from.dtype, from.data);
    Guarded& data = constants_.emplace_back(bytes.size(), "constant '" + from.name + "'", kConstant,
                                            element_bytes(from.dtype));
    if (!bytes.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
    data.allow(Guarded::Access::kRead);
    *constant = &data;
    to.flags |= PFRT_SNAPSHOT_CONSTANT;
    to.data = data.data();
    to.bytes = bytes.size();
  }
  return to;
}

pfrt_snapshot_node HostSnapshot::node(const CaseNode& from, uint32_t id) {
  pfrt_snapshot_node to{};
  to.name = text("n" + std::to_string(id));
  to.op = text(from.op);
  to.domain = text(from.domain);
  to.id = id;
  to.canonical = 1;
  to.inputs = array(from.inputs, "a node's inputs");
  to.input_count = static_cast<uint32_t>(from.inputs.size());
  to.outputs = array(from.outputs, "a node's outputs");
  to.output_count = static_cast<uint32_t>(from.outputs.size());
  std::vector<pfrt_snapshot_attr> attrs;
  for (const CaseAttr& a : from.attrs) {
    pfrt_snapshot_attr attr{};
    attr.name = text(a.name);
    attr.type = a.type;
    attr.f = a.f;
    attr.i = a.i;
    attr.s = text(a.s);
    attr.ints = array(a.ints, "an attribute's ints");
    attr.count = a.ints.size();
    attrs.push_back(attr);
  }
  if (!attrs.empty()) to.attrs = strided(attrs, "the attributes of a node");
  to.attr_count = attrs.size();
  return to;
}

// Makes a region of all nodes of |c|.
void HostSnapshot::make_region(const Case& c, Age age) {
  std::vector<uint32_t> all(c.nodes.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  pfrt_region region{};
  region.snapshot = snapshot_->get();
  region.nodes = array(all, "the region's nodes");
  region.node_count = static_cast<uint32_t>(all.size());
  region.inputs = array(c.inputs, "the region's inputs");
  region.input_count = static_cast<uint32_t>(c.inputs.size());
  region.outputs = array(c.outputs, "the region's outputs");
  region.output_count = static_cast<uint32_t>(c.outputs.size());
  region_ = std::make_unique<Sized<pfrt_region>>(age, region, "the region");
}

const void* HostSnapshot::constant(uint32_t value) const {
  return value < constant_of_.size() && constant_of_[value] ? constant_of_[value]->data() : nullptr;
}
size_t HostSnapshot::constant_bytes(uint32_t value) const { return constant_of_[value]->size(); }

void HostSnapshot::end_call() {
  lent_.clear();
  snapshot_.reset();
  region_.reset();
}

std::vector<const int64_t*> varying_dims(const Case& c, const Case& other) {
  std::vector<const int64_t*> out;
  for (size_t v = 0; v < c.values.size(); ++v)
    out.push_back(c.values[v].dims == other.values[v].dims ? nullptr : c.values[v].dims.data());
  return out;
}

HostShapes::HostShapes(const Case& c, Age age, const Case* least) {
  for (const CaseValue& v : c.values) {
    ranks_.push_back(static_cast<int32_t>(v.dims.size()));
    dims_.push_back(v.dims);
  }
  for (const auto& d : dims_) pointers_.push_back(d.data());
  pfrt_shapes shapes{};
  shapes.ranks = ranks_.data();
  shapes.dims = pointers_.data();
  shapes.value_count = static_cast<uint32_t>(ranks_.size());
  if (least) {
    least_ = varying_dims(*least, c);
    shapes.least = least_.data();
  }
  shapes_ = std::make_unique<Sized<pfrt_shapes>>(age, shapes, "the shapes");
}

}  // namespace cli::check
