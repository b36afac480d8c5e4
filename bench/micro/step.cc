// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/step.h"

#include <immintrin.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>

#include "providers/cpu/isa/isa.h"

namespace micro {
namespace {

using pfrt::cpu::Kernel;
using pfrt::cpu::KernelRequest;
using pfrt::cpu::KernelRow;
using pfrt::cpu::Run;

class Memory {
 public:
  explicit Memory(uint64_t bytes)
      : bytes_(bytes),
        data_(static_cast<float*>(std::aligned_alloc(kLine, (bytes / kLine + 1) * kLine))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  float* get() const { return data_.get(); }
  void forget() const {
    for (uint64_t i = 0; i < bytes_; i += kLine)
      _mm_clflush(reinterpret_cast<const char*>(data_.get()) + i);
  }

 private:
  static constexpr uint64_t kLine = 64;
  struct Free {
    void operator()(float* data) const { std::free(data); }
  };
  uint64_t bytes_;
  std::unique_ptr<float, Free> data_;
};

int64_t count(const Dims& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

class Made final : public Step {
 public:
  // Inputs hold numbers where they are |filled|.
  explicit Made(Node node, bool filled = true) : node_(std::move(node)) {
    std::mt19937_64 engine(1);
    std::normal_distribution<float> normal;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const int64_t n = count(node_.inputs[i]);
      bytes_ += static_cast<double>(n) * sizeof(float);
      float* const data = add(n);
      for (int64_t j = 0; filled && j < n; ++j) data[j] = normal(engine);
      pfrt_snapshot_value& v = value(node_.inputs[i]);
      if (i < node_.constant.size() && node_.constant[i]) {
        v.flags = PFRT_SNAPSHOT_CONSTANT;
        v.data = data;
        v.bytes = static_cast<uint64_t>(n) * sizeof(float);
      }
      in_.push_back(static_cast<uint32_t>(i));
    }
    if (!node_.indices.empty()) {
      const size_t bytes = node_.indices.size() * sizeof(int64_t);
      float* const data = add(bytes_as_floats(bytes));
      std::memcpy(data, node_.indices.data(), bytes);
      pfrt_snapshot_value& v = value(indices_dims_);
      v.dtype = PFRT_DTYPE_INT64;
      v.flags = PFRT_SNAPSHOT_CONSTANT;
      v.data = data;
      v.bytes = bytes;
      in_.push_back(static_cast<uint32_t>(in_.size()));
    }
    bytes_ += static_cast<double>(count(node_.output)) * sizeof(float);
    add(count(node_.output));
    value(node_.output);
    out_.push_back(static_cast<uint32_t>(in_.size()));
    for (const auto& [name, numbers] : node_.ints) {
      pfrt_snapshot_attr attr{};
      attr.name = pfrt::to_c(name);
      attr.type = numbers.size() == 1 ? PFRT_ATTR_INT : PFRT_ATTR_INTS;
      attr.i = numbers.front();
      attr.ints = numbers.data();
      attr.count = numbers.size();
      attrs_.push_back(attr);
    }
    snapshot_node_.domain = pfrt::to_c(node_.domain);
    snapshot_node_.op = pfrt::to_c(node_.op);
    snapshot_node_.canonical = 1;
    snapshot_node_.inputs = in_.data();
    snapshot_node_.input_count = static_cast<uint32_t>(in_.size());
    snapshot_node_.outputs = out_.data();
    snapshot_node_.output_count = 1;
    snapshot_node_.attrs = attrs_.data();
    snapshot_node_.attr_count = attrs_.size();
    snapshot_.struct_size = sizeof snapshot_;
    snapshot_.abi = PFRT_ABI_VERSION;
    snapshot_.node_size = sizeof(pfrt_snapshot_node);
    snapshot_.value_size = sizeof(pfrt_snapshot_value);
    snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
    snapshot_.node_count = 1;
    snapshot_.value_count = static_cast<uint32_t>(values_.size());
    snapshot_.nodes = &snapshot_node_;
    snapshot_.values = values_.data();
  }

  const KernelRow* chosen() const { return find_kernel(request(), nullptr); }

  // Returns why |row| does not take the node; empty when it does and the kernel is made.
  std::string make(const KernelRow& row, bool packs) {
    const pfrt::SnapshotNode node(snapshot_, 0);
    const auto needs = pfrt::cpu::isa_from_name(row.isa);
    if (!needs.ok() || needs.value() > pfrt::cpu::isa()) return "needs " + std::string(row.isa);
    if (!row.types.has(PFRT_DTYPE_FLOAT32)) return "does not take float32";
    KernelRequest request = this->request();
    if (request.any_nchw16c() && !row.has(pfrt::cpu::kNchw16c)) return "takes no nChw16c";
    if (row.refuse != nullptr)
      if (std::string why = row.refuse(request); !why.empty()) return why;
    const bool may_pack = row.pack != nullptr && (packs || !row.has(pfrt::cpu::kPackOptional));
    const auto packed = may_pack ? row.pack(node) : std::nullopt;
    if (packed && row.has(pfrt::cpu::kPackOptional)) request.packed = &*packed;
    if (row.prepare != nullptr) {
      auto prepared = row.prepare(node);
      if (!prepared.ok()) return std::string(prepared.status().message());
      request.prepared = std::move(*prepared);
    }
    auto kernel = row.make(request);
    if (!kernel.ok()) return std::string(kernel.status().message());
    kernel_ = std::move(*kernel);
    name_ = kernel_.name.empty() ? row.name : kernel_.name;
    if (packed) {
      extras_.packed = static_cast<uint32_t>(buffers_.size());
      float* const memory = add(bytes_as_floats(packed->bytes));
      packed->pack(buffers_[packed->input], memory);
    }
    if (kernel_.shared_bytes > 0) {
      extras_.shared = static_cast<uint32_t>(buffers_.size());
      add(bytes_as_floats(kernel_.shared_bytes));
    }
    scratch_ = std::make_unique<Memory>(kernel_.scratch_bytes);
    context_.struct_size = sizeof context_;
    context_.abi = PFRT_ABI_VERSION;
    context_.host = this;
    context_.buffers = buffers_.data();
    context_.workers = 1;
    context_.parallel = [](const pfrt_step_context*, uint64_t n,
                           void (*fn)(void*, uint64_t, uint32_t), void* arg) {
      for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
    };
    context_.stop = [](const pfrt_step_context*) { return pfrt_code{PFRT_CODE_OK}; };
    context_.scratch = [](const pfrt_step_context* c, uint32_t) {
      return static_cast<void*>(static_cast<Made*>(c->host)->scratch_->get());
    };
    context_.alloc_output = [](const pfrt_step_context*, uint32_t, const int64_t*, uint32_t,
                               void**) { return pfrt_code{PFRT_CODE_INTERNAL}; };
    context_.fail = [](const pfrt_step_context* c, pfrt_code code, pfrt_string text) {
      static_cast<Made*>(c->host)->message_.assign(text.data, text.size);
      return code;
    };
    return {};
  }

  void run() override {
    if (kernel_.run(Run(&context_, in_.data(), out_.data(), extras_)) != PFRT_CODE_OK)
      throw std::runtime_error(message_);
  }
  double flops() const override { return kernel_.flops; }
  double bytes() const override { return bytes_; }
  std::string_view name() const override { return name_; }
  void forget_constants() const override {
    for (size_t i = 0; i < memory_.size(); ++i)
      if (i == extras_.packed || (i < values_.size() && values_[i].data != nullptr))
        memory_[i].forget();
    _mm_mfence();
  }
  std::span<const float> output() const override {
    return {static_cast<const float*>(buffers_[out_[0]]), static_cast<size_t>(count(node_.output))};
  }
  uint64_t memory_bytes() const override { return kernel_.scratch_bytes + kernel_.shared_bytes; }

 private:
  KernelRequest request() const {
    KernelRequest out{pfrt::SnapshotNode(snapshot_, 0)};
    out.sides = node_.sides;
    return out;
  }
  static int64_t bytes_as_floats(uint64_t bytes) {
    return static_cast<int64_t>(bytes / sizeof(float) + 1);
  }
  float* add(int64_t floats) {
    memory_.emplace_back(static_cast<uint64_t>(floats) * sizeof(float));
    buffers_.push_back(memory_.back().get());
    return memory_.back().get();
  }
  pfrt_snapshot_value& value(const Dims& dims) {
    pfrt_snapshot_value v{};
    v.dtype = PFRT_DTYPE_FLOAT32;
    v.rank = static_cast<int32_t>(dims.size());
    v.dims = dims.data();
    v.producer = PFRT_NO_INDEX;
    return values_.emplace_back(v);
  }

  const Node node_;
  const Dims indices_dims_ = {static_cast<int64_t>(node_.indices.size())};
  std::vector<Memory> memory_;
  std::vector<void*> buffers_;
  std::vector<uint32_t> in_, out_;
  std::vector<pfrt_snapshot_value> values_;
  std::vector<pfrt_snapshot_attr> attrs_;
  pfrt_snapshot_node snapshot_node_{};
  pfrt_snapshot snapshot_{};
  double bytes_ = 0;
  Kernel kernel_;
  std::string_view name_;
  Run::Extras extras_;
  std::unique_ptr<Memory> scratch_;
  pfrt_step_context context_{};
  std::string message_;
};

}  // namespace

const KernelRow* chosen_row(const Node& node) { return Made(node, false).chosen(); }

std::unique_ptr<Step> Step::make(const KernelRow& row, const Node& node, std::string& why,
                                 bool packs) {
  auto made = std::make_unique<Made>(node);
  why = made->make(row, packs);
  if (!why.empty()) return nullptr;
  return made;
}

}  // namespace micro
