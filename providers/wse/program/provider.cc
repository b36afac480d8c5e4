// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/provider.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "providers/kit/guard.h"
#include "providers/wse/program/ask.h"
#include "providers/wse/program/executable.h"

namespace pfrt::wse {
namespace {

constexpr const char* kWho = "the wafer-scale provider";
constexpr int64_t kClaimSide = 128;  // PEs along a side that estimates are for

Device& of(pfrt_provider* provider) { return *reinterpret_cast<Device*>(provider); }
Executable& of(pfrt_executable* executable) { return *reinterpret_cast<Executable*>(executable); }

pfrt_code open(pfrt_string device, const pfrt_key_value* options, size_t count,
               const pfrt_sink* sink, pfrt_provider** out) {
  *out = nullptr;
  return guarded(sink, kWho, [&] {
    Result<Settings> settings = read_settings(view(device), options, count);
    if (!settings.ok()) return report_status(sink, settings.status());
    auto made = std::make_unique<Device>();
    made->settings = settings.take();
    *out = reinterpret_cast<pfrt_provider*>(made.release());
    return pfrt_code{PFRT_CODE_OK};
  });
}

void close(pfrt_provider* provider) { delete &of(provider); }

pfrt_code claim(pfrt_provider* provider, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink* sink) {
  return guarded(sink, kWho, *snapshot, [&] {
    const Target& target = of(provider).settings.target;
    const int64_t most = std::min(target.fabric.columns, target.fabric.rows);
    for (uint32_t n = 0; n < snapshot->node_count; ++n) {
      if (n % 64 == 0) {
        const pfrt_code stop = sink->stop(sink);
        if (stop != PFRT_CODE_OK) return stop;
      }
      const SnapshotNode node(*snapshot, n);
      if (const std::string why = refusal(node); !why.empty()) {
        claims->refuse(claims, n, to_c(why));
        continue;
      }
      const Layer layer = layer_of(node, kTypicalDim);
      // Nothing is larger than the whole fabric: what does not fit there goes elsewhere at once.
      const Mapping widest = map_layer(target.machine, target.arithmetic, layer, most);
      if (widest.bytes() > target.machine.data_bytes()) {
        claims->refuse(claims, n, to_c(does_not_fit(target, layer, widest, 0)));
        continue;
      }
      const Mapping mapping =
          map_layer(target.machine, target.arithmetic, layer, std::min<int64_t>(most, kClaimSide));
      claims->accept(claims, n, mapping.cycles / target.machine.clock_hz * 1e9,
                     static_cast<uint64_t>((layer.inputs + layer.outputs + layer.weights) * 4));
    }
    return pfrt_code{PFRT_CODE_OK};
  });
}

const pfrt_region& region_at(const pfrt_region* regions, size_t size, size_t i) {
  return *static_cast<const pfrt_region*>(pfrt_at(regions, size, i));
}

// A layer for each node of |region|, with those of the region that it reads.
void add_layers(const pfrt_region& region, std::vector<Layer>& layers) {
  std::map<uint32_t, uint32_t> made_by;  // layer by value
  for (uint32_t i = 0; i < region.node_count; ++i) {
    const SnapshotNode node(*region.snapshot, region.nodes[i]);
    const auto index = static_cast<uint32_t>(layers.size());
    Layer& layer = layers.emplace_back(layer_of(node, kTypicalDim));
    for (uint32_t k = 0; k < node.input_count(); ++k) {
      const auto from = node.has_input(k) ? made_by.find(node.input_index(k)) : made_by.end();
      if (from != made_by.end()) layer.reads.push_back(from->second);
    }
    for (uint32_t k = 0; k < node.output_count(); ++k)
      if (node.has_output(k)) made_by[node.output_index(k)] = index;
  }
}

// Nodes of the regions' graphs that are in no region: others run them.
std::vector<std::string> nodes_elsewhere(const pfrt_region* regions, size_t size, size_t count) {
  std::map<const pfrt_snapshot*, std::vector<bool>> here;
  for (size_t r = 0; r < count; ++r) {
    const pfrt_region& region = region_at(regions, size, r);
    std::vector<bool>& nodes = here[region.snapshot];
    nodes.resize(region.snapshot->node_count);
    for (uint32_t i = 0; i < region.node_count; ++i) nodes[region.nodes[i]] = true;
  }
  std::vector<std::string> out;
  for (const auto& [snapshot, nodes] : here)
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n]) continue;
      const SnapshotNode node(*snapshot, n);
      out.push_back(node.name().empty() ? std::string(node.op())
                                        : message(node.op(), " '", node.name(), "'"));
    }
  return out;
}

// All layers of all regions share the wafer.
pfrt_code compile(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                  size_t count, const pfrt_sink* sink, pfrt_executable** out, size_t* out_region) {
  return guarded(sink, kWho, HostRegions{regions, region_size, count}, [&] {
    Device& device = of(provider);
    std::vector<Layer> layers;
    std::vector<size_t> region_of;
    for (size_t r = 0; r < count; ++r) {
      add_layers(region_at(regions, region_size, r), layers);
      region_of.resize(layers.size(), r);
    }
    const std::vector<Layer> all = layers;
    uint32_t failed = 0;
    pfrt_code stopped = PFRT_CODE_OK;
    Result<Placement> placement = place(device.settings.target, std::move(layers), &failed, [&] {
      stopped = sink->stop(sink);
      return stopped != PFRT_CODE_OK;
    });
    if (stopped != PFRT_CODE_OK) return stopped;
    if (!placement.ok()) {
      *out_region = failed < region_of.size() ? region_of[failed] : 0;
      return report_status(sink, placement.status(),
                           failed < all.size() ? all[failed].node : PFRT_NO_INDEX);
    }
    Placement placed = placement.take();
    placed.elsewhere = nodes_elsewhere(regions, region_size, count);
    auto plan = std::make_shared<DevicePlan>(device.settings.target, std::move(placed));
    std::vector<std::unique_ptr<Executable>> made;
    uint32_t first = 0;
    for (size_t r = 0; r < count; ++r) {
      const pfrt_region& region = region_at(regions, region_size, r);
      made.push_back(std::make_unique<Executable>(device, region, plan, first));
      first += region.node_count;
    }
    for (size_t r = 0; r < count; ++r)
      out[r] = reinterpret_cast<pfrt_executable*>(made[r].release());
    const std::lock_guard lock(device.mutex);
    device.plan = std::move(plan);
    return pfrt_code{PFRT_CODE_OK};
  });
}

void release_executable(pfrt_executable* executable) { delete &of(executable); }

pfrt_code specialise(pfrt_executable* executable, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  return guarded(sink, kWho, *shapes, [&] {
    uint32_t node = PFRT_NO_INDEX;
    Result<std::unique_ptr<Program>> made = make_program(of(executable), abi::known(shapes), &node);
    if (!made.ok()) {
      const Executable& refused = of(executable);
      if (made.status().code() == Code::kUNSUPPORTED)
        refused.plan->refuse(refused.first_layer, refused.nodes.size(),
                             std::string(made.status().message()));
      return report_status(sink, made.status(), node);
    }
    Program* const program = made.take().release();
    out->buffer_size = sizeof(pfrt_buffer);
    out->step_size = sizeof(pfrt_step);
    out->buffer_count = static_cast<uint32_t>(program->buffers.size());
    out->step_count = static_cast<uint32_t>(program->rows.size());
    out->buffers = program->buffers.data();
    out->steps = program->rows.data();
    out->handle = program;
    return pfrt_code{PFRT_CODE_OK};
  });
}

void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(program->handle);
}

constexpr std::string_view kProducts[] = {"MatMul", "Gemm", "Conv"};

size_t kernel_count(pfrt_provider*) { return std::size(kProducts) + operators().size(); }
pfrt_code kernel_at(pfrt_provider*, size_t index, pfrt_kernel_info* out) {
  pfrt_kernel_info info{};
  info.since = 1;
  info.types = to_c("float32");
  info.isa = to_c("simulated");
  if (index < std::size(kProducts)) {
    info.op = to_c(kProducts[index]);
    info.name = to_c("MeshGEMM or MeshGEMV");
  } else if (index - std::size(kProducts) < operators().size()) {
    const Operator& row = operators()[index - std::size(kProducts)];
    info.op = to_c(row.op);
    info.domain = to_c(row.domain);
    info.name = to_c(name_of(row.family));
    if (row.family == Family::kMove || row.family == Family::kLookup)
      info.types = to_c("float32 int64 int32 bool");
  } else {
    return PFRT_CODE_INVALID_ARGUMENT;
  }
  return put(out, info);
}

size_t option_count() { return option_list().size(); }
pfrt_code option_at(size_t index, pfrt_option_info* out) {
  if (index >= option_list().size()) return PFRT_CODE_INVALID_ARGUMENT;
  return put(out, option_list()[index]);
}

// Device memory is the host's own here: only the device looks at it.
pfrt_code allocate(pfrt_provider*, uint64_t, uint64_t bytes, uint32_t alignment,
                   const pfrt_sink* sink, void** out) {
  const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  *out = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
  if (*out != nullptr) return PFRT_CODE_OK;
  return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX,
                    to_c("the simulated wafer has no host memory for a tensor"));
}
void release_memory(pfrt_provider*, void* memory) { std::free(memory); }

pfrt_code copy(pfrt_provider* provider, uint64_t, const pfrt_device_copy* copies, size_t size,
               size_t count, const pfrt_sink* sink) {
  constexpr uint64_t kPart = uint64_t{16} << 20;
  return guarded(sink, kWho, HostCopies{copies, size, count}, [&] {
    Device& device = of(provider);
    for (size_t i = 0; i < count; ++i) {
      const auto& c = *static_cast<const pfrt_device_copy*>(pfrt_at(copies, size, i));
      // On the device both sides may overlap.
      const uint64_t part = c.direction == PFRT_ON_DEVICE ? c.bytes : kPart;
      for (uint64_t done = 0; done < c.bytes; done += part) {
        if (const pfrt_code code = sink->stop(sink)) return code;
        std::memmove(static_cast<char*>(c.dst) + done, static_cast<const char*>(c.src) + done,
                     std::min(part, c.bytes - done));
      }
      (c.direction == PFRT_TO_DEVICE ? device.bytes_to_device
       : c.direction == PFRT_TO_HOST ? device.bytes_to_host
                                     : device.bytes_on_device) += c.bytes;
    }
    return pfrt_code{PFRT_CODE_OK};
  });
}

// Reports the bytes that cross to and from the wafer for a run, and their cycles: a word an
// element, whatever its type there.
template <typename Add>
void add_host(const Program& program, const Machine& machine, const Add& add) {
  double to = 0, from = 0;
  for (const pfrt_buffer& buffer : program.buffers) {
    if (buffer.kind == PFRT_BUFFER_IN) to += static_cast<double>(buffer.bytes);
    if (buffer.kind == PFRT_BUFFER_OUT) from += static_cast<double>(buffer.bytes);
  }
  const double cycles = (to / machine.h2d_words + from / machine.d2h_words) / 4 / machine.channels;
  const double least = (to + from) / machine.host_bytes_per_second * machine.clock_hz;
  add("bytes to the wafer", to, "B", PFRT_NO_INDEX);
  add("bytes from the wafer", from, "B", PFRT_NO_INDEX);
  add("simulated cycles of transfers, if all of them cross", std::max(cycles, least), "cycles",
      PFRT_NO_INDEX);
}

pfrt_code report(pfrt_executable* executable, const pfrt_program* program,
                 const pfrt_counters* counters, const pfrt_sink* sink) {
  return guarded(sink, kWho, [&] {
    const Target& target = of(executable).device.settings.target;
    const auto& steps = static_cast<Program*>(program->handle)->steps;
    const auto add = [&](std::string_view name, double value, std::string_view unit,
                         uint32_t step) {
      counters->add(counters, to_c(name), value, to_c(unit), step);
    };
    double all = 0;
    for (uint32_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      if (!step.ran) return pfrt_code{PFRT_CODE_OK};
      all += step.mapping.cycles;
    }
    for (uint32_t i = 0; i < steps.size(); ++i) {
      const Step& step = steps[i];
      add("simulated cycles", step.mapping.cycles, "cycles", i);
      add("PEs", static_cast<double>(step.mapping.side * step.mapping.side), "", i);
      add("bytes a PE", static_cast<double>(step.mapping.bytes()), "B", i);
      add("PEs used", 100 * step.mapping.utilisation(step.layer, target.machine, target.arithmetic),
          "%", i);
    }
    add_host(*static_cast<Program*>(program->handle), target.machine, add);
    add("simulated cycles of all layers", all, "cycles", PFRT_NO_INDEX);
    add("simulated time of all layers", all / target.machine.clock_hz * 1e6, "us", PFRT_NO_INDEX);
    add(message("simulated ", target.machine.identity()), target.machine.clock_hz, "Hz",
        PFRT_NO_INDEX);
    return pfrt_code{PFRT_CODE_OK};
  });
}

pfrt_code fingerprint(pfrt_provider* provider, const pfrt_sink*, pfrt_string* out) {
  *out = to_c(of(provider).settings.text);
  return PFRT_CODE_OK;
}

pfrt_code ask(pfrt_provider* provider, const pfrt_question* question, const pfrt_answer* reply,
              const pfrt_sink* sink) {
  return guarded(sink, kWho, *question, [&] {
    const Status status = answer(of(provider), *question, *reply, *sink);
    return status.ok() ? pfrt_code{PFRT_CODE_OK} : report_status(sink, status);
  });
}

constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof table;
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"wse,wse2,wse3", 13};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = compile;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  table.kernel_count = kernel_count;
  table.kernel_at = kernel_at;
  table.option_count = option_count;
  table.option_at = option_at;
  table.allocate = allocate;
  table.release_memory = release_memory;
  table.copy = copy;
  table.report = report;
  table.fingerprint = fingerprint;
  table.ask = ask;
  return table;
}();

}  // namespace

const pfrt_provider_table& provider_table() { return kTable; }

}  // namespace pfrt::wse
