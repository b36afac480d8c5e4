// SPDX-License-Identifier: Apache-2.0
//
// The edge: C structs in, Status and exceptions to codes and the host's sink.
#include "providers/cpu/provider.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/abi/sized.h"
#include "providers/cpu/compile/executable.h"
#include "providers/cpu/compile/fusion_groups.h"
#include "providers/cpu/epilogue/row_norm.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/loop/lower.h"
#include "providers/cpu/measure/answer.h"
#include "providers/cpu/program/build_program.h"
#include "providers/cpu/registry/registry.h"
#include "providers/kit/guard.h"

namespace pfrt::cpu {
namespace {

constexpr const char* kWho = "the CPU provider";
constexpr int64_t kTypicalDim = 64;  // stands for a symbolic dimension in estimates

struct KernelText {
  pfrt_kernel_info info;
  std::string types;
};

struct Provider {
  std::vector<KernelText> kernels;
  std::string fingerprint;
};

void list_kernels(std::vector<KernelText>& out) {
  const auto add = [&](const KernelRow& row) {
    KernelText& text = out.emplace_back();
    text.types = row.types.text();
    text.info.since = 1;
    text.info.op = to_c(row.op);
    text.info.domain = to_c(row.domain);
    text.info.name = to_c(row.name);
    text.info.isa = to_c(row.isa);
  };
  for (std::string_view isa : {"avx512", "avx2"})
    for (std::span<const ElementwiseRow> rows : elementwise_rows())
      for (const ElementwiseRow& row : rows)
        add({.domain = "",
             .op = row.op,
             .types = row.types,
             .name = "elementwise_jit",
             .isa = isa,
             .refuse = nullptr,
             .make = nullptr});
  for (std::span<const KernelRow> family : kernels())
    for (const KernelRow& row : family) add(row);
}

pfrt_code open(pfrt_string device, const pfrt_key_value* options, size_t option_count,
               const pfrt_sink* sink, pfrt_provider** out_provider) {
  *out_provider = nullptr;
  return guarded(sink, kWho, [&] {
    if (view(device) != "cpu")
      return report_status(sink, error(Code::kNOT_FOUND, "the CPU provider opens no device '",
                                       device, "': give cpu"));
    if (option_count > 0)
      return report_status(sink, error(Code::kINVALID_ARGUMENT, "the CPU provider has no option '",
                                       options[0].key, "': it has none"));
    if (const Result<Isa> cap = isa_cap(); !cap.ok()) return report_status(sink, cap.status());
    auto provider = std::make_unique<Provider>();
    list_kernels(provider->kernels);
    // It has no options, and neither caches nor threads change what it computes or compiles.
    provider->fingerprint =
        message("CPUExecutionProvider ", PFRT_VERSION_TEXT, ", isa ", isa_name(isa()));
    *out_provider = reinterpret_cast<pfrt_provider*>(provider.release());
    return pfrt_code{PFRT_CODE_OK};
  });
}

void close(pfrt_provider* provider) { delete reinterpret_cast<Provider*>(provider); }

uint64_t typical_bytes(pfrt_dtype dtype, std::span<const int64_t> dims) {
  double bytes = static_cast<double>(dtype_bits(dtype)) / 8;
  for (int64_t d : dims) bytes *= static_cast<double>(d >= 0 ? d : kTypicalDim);
  return static_cast<uint64_t>(std::min(bytes, 1e15));
}

// Bytes that convolutions of 16 bits move besides their values: these are widened to memory of the
// step, and results rounded from there.
uint64_t widening_bytes(const SnapshotNode& node) {
  if ((node.op() != "Conv" && node.op() != "ConvTranspose") ||
      node.input_dtype(0) != PFRT_DTYPE_FLOAT16)
    return 0;
  return 2 * (typical_bytes(PFRT_DTYPE_FLOAT32, node.input_dims(0)) +
              typical_bytes(PFRT_DTYPE_FLOAT32, node.output_dims(0)));
}

// Operations of a node: two for each product of an output element in matrix products and
// convolutions; else one an element.
double typical_flops(const SnapshotNode& node, uint64_t output_bytes) {
  const size_t size = std::max<size_t>(dtype_size(node.output_dtype(0)), 1);
  const double outputs = static_cast<double>(output_bytes) / static_cast<double>(size);
  const std::string_view op = node.op();
  const bool by_rows =
      op == "MatMul" || op == "Gemm" || op == "MatMulInteger" || op == "QLinearMatMul";
  const bool by_filter =
      op == "Conv" || op == "ConvTranspose" || op == "ConvInteger" || op == "QLinearConv";
  if (!by_rows && !by_filter) return outputs;
  const uint32_t second = op.starts_with("QLinear") ? 3 : 1;
  const std::span<const int64_t> dims = by_filter ? node.input_dims(second) : node.input_dims(0);
  double products = 1;
  if (by_filter && dims.size() > 1) {
    for (int64_t d : dims.subspan(1)) products *= static_cast<double>(d >= 0 ? d : kTypicalDim);
  } else if (by_rows && !dims.empty()) {
    const bool transposed = op == "Gemm" && node.attr_int("transA", 0) != 0;
    const int64_t depth = transposed ? dims.front() : dims.back();
    products = static_cast<double>(depth >= 0 ? depth : kTypicalDim);
  }
  return 2 * outputs * products;
}

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink* sink) {
  return guarded(sink, kWho, *snapshot, [&] {
    for (uint32_t n = 0; n < snapshot->node_count; ++n) {
      const SnapshotNode node(*snapshot, n);
      std::string reason = refuse_values(*snapshot, node);
      if (reason.empty()) (void)find_kernel(KernelRequest(node), &reason);
      if (!reason.empty()) {
        claims->refuse(claims, n, to_c(reason));
        continue;
      }
      uint64_t bytes = 0;
      for (uint32_t i = 0; i < node.input_count(); ++i)
        if (node.has_input(i)) bytes += typical_bytes(node.input_dtype(i), node.input_dims(i));
      for (uint32_t i = 0; i < node.output_count(); ++i)
        if (node.has_output(i)) bytes += typical_bytes(node.output_dtype(i), node.output_dims(i));
      const uint64_t written =
          node.has_output(0) ? typical_bytes(node.output_dtype(0), node.output_dims(0)) : 0;
      claims->accept(claims, n,
                     estimate_ns(typical_flops(node, written), bytes + widening_bytes(node)),
                     bytes);
    }
    return pfrt_code{PFRT_CODE_OK};
  });
}

pfrt_code compile_one(pfrt_provider*, const pfrt_region* region, const pfrt_sink* sink,
                      pfrt_executable** out_executable) {
  if (const pfrt_code code = sink->stop(sink)) return code;
  return guarded(sink, kWho, [&] {
    uint32_t node = PFRT_NO_INDEX;
    Result<std::unique_ptr<Executable>> made =
        Executable::compile(*region->snapshot, *region, node);
    if (!made.ok()) return report_status(sink, made.status(), node);
    *out_executable = reinterpret_cast<pfrt_executable*>(made.take().release());
    return pfrt_code{PFRT_CODE_OK};
  });
}

pfrt_code constants(pfrt_executable* executable, const pfrt_sink*,
                    const pfrt_packed_constant** out_constants, size_t* out_size,
                    size_t* out_count) {
  const auto& list = reinterpret_cast<const Executable*>(executable)->constants();
  *out_constants = list.data();
  *out_size = sizeof list[0];
  *out_count = list.size();
  return PFRT_CODE_OK;
}

void release_executable(pfrt_executable* executable) {
  delete reinterpret_cast<Executable*>(executable);
}

pfrt_code compile(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                  size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                  size_t* out_region) {
  return guarded(sink, kWho, HostRegions{regions, region_size, count}, [&] {
    return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables,
                             out_region, compile_one, release_executable);
  });
}

pfrt_code specialise(pfrt_executable* executable, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out_program) {
  return guarded(sink, kWho, *shapes, [&] {
    uint32_t node = PFRT_NO_INDEX;
    Result<std::unique_ptr<Program>> made =
        build_program(*reinterpret_cast<Executable*>(executable), abi::known(shapes), *sink, node);
    if (!made.ok()) return report_status(sink, made.status(), node);
    if (const pfrt_code code = sink->stop(sink)) return code;  // measuring may have taken long
    made.value()->describe(*out_program);
    out_program->handle = made.take().release();
    return pfrt_code{PFRT_CODE_OK};
  });
}

void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(program->handle);
  program->handle = nullptr;
}

std::string refuse_query(const pfrt_op_query& query) {
  const SnapshotNode node(*query.snapshot, query.node);
  std::string reason = refuse_values(*query.snapshot, node);
  const KernelRow* row = reason.empty() ? find_kernel(KernelRequest(node), &reason) : nullptr;
  if (row == nullptr || query.tail_count == 0) return reason;
  const int registers = ElementwiseLoop::register_limit(isa());
  if (registers == 0)
    return message("an epilogue needs a generated loop, and those need avx2; usable is ",
                   isa_name(isa()));
  std::span epilogue(query.tail, query.tail_count);
  if (epilogue.size() > kMostEpilogue)
    return message("an epilogue has at most ", kMostEpilogue, " nodes, got ", epilogue.size());
  std::vector<uint32_t> nodes{query.node};
  if (plan_loop(
          *query.snapshot, nodes, [](uint32_t) { return true; }, registers)) {
    // Connected operators that loops know become one anyway.
    nodes.insert(nodes.end(), epilogue.begin(), epilogue.end());
    const SnapshotNode last(*query.snapshot, nodes.back());
    const auto stored = [&](uint32_t v) { return last.has_output(0) && v == last.output_index(0); };
    (void)plan_loop(*query.snapshot, nodes, stored, registers, &reason);
    return reason;
  }
  KernelRequest request(node);
  request.epilogue = true;
  if (find_kernel(request, &reason) == nullptr) return reason;
  for (uint32_t i = 1; i < node.output_count(); ++i)
    if (node.has_output(i)) return message(node.op(), " takes an epilogue only as its one output");
  uint32_t head = query.node;
  const SnapshotNode last(*query.snapshot, epilogue.back());
  if (is_row_norm(last)) {
    reason = refuse_row_norm(last);
    epilogue = epilogue.first(epilogue.size() - 1);
  }
  if (reason.empty() && !epilogue.empty() &&
      SnapshotNode(*query.snapshot, epilogue.front()).op() == "MaxPool") {
    head = epilogue.front();
    const SnapshotNode pool(*query.snapshot, head);
    request.pool = &pool;
    (void)find_kernel(request, &reason);
    epilogue = epilogue.subspan(1);
  }
  if (reason.empty() && !epilogue.empty())
    (void)plan_epilogue(*query.snapshot, head, epilogue, registers, &reason);
  return reason;
}

pfrt_code supports(pfrt_provider*, const pfrt_op_query* query, const pfrt_sink* sink) {
  return guarded(sink, kWho, *query, [&] {
    const std::string reason = refuse_query(*query);
    if (reason.empty()) return pfrt_code{PFRT_CODE_OK};
    return sink->fail(sink, PFRT_CODE_UNSUPPORTED_OPERATOR, query->node, to_c(reason));
  });
}

size_t kernel_count(pfrt_provider* provider) {
  return reinterpret_cast<Provider*>(provider)->kernels.size();
}

pfrt_code kernel_at(pfrt_provider* provider, size_t index, pfrt_kernel_info* out_info) {
  const std::vector<KernelText>& kernels = reinterpret_cast<Provider*>(provider)->kernels;
  if (index >= kernels.size()) return PFRT_CODE_INVALID_ARGUMENT;
  pfrt_kernel_info info = kernels[index].info;
  info.types = to_c(kernels[index].types);
  return put(out_info, info);
}

pfrt_code ask(pfrt_provider*, const pfrt_question* question, const pfrt_answer* reply,
              const pfrt_sink* sink) {
  return guarded(sink, kWho, *question, [&] {
    const Status status = answer(*question, *reply, *sink);
    return status.ok() ? pfrt_code{PFRT_CODE_OK} : report_status(sink, status);
  });
}

pfrt_code fingerprint(pfrt_provider* provider, const pfrt_sink*, pfrt_string* out_text) {
  *out_text = to_c(reinterpret_cast<Provider*>(provider)->fingerprint);
  return PFRT_CODE_OK;
}

// Member by member: what a later header adds stays zero, which is "not there".
constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof(pfrt_provider_table);
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"cpu", 3};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = compile;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  table.supports = supports;
  table.constants = constants;
  table.kernel_count = kernel_count;
  table.kernel_at = kernel_at;
  table.fingerprint = fingerprint;
  table.ask = ask;
  return table;
}();

}  // namespace

const pfrt_provider_table& provider_table() { return kTable; }

}  // namespace pfrt::cpu
