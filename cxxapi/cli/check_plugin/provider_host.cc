// SPDX-License-Identifier: Apache-2.0
#include "cxxapi/cli/check_plugin/provider_host.h"

#include <algorithm>
#include <cmath>

namespace cli::check {
namespace {

constexpr Guards kPacked = {"writes-past-buffer", "reads-past-buffer", "writes-undeclared"};

}  // namespace

Device::Device(Trial& trial, const PluginFile& file, Age age)
    : trial_(trial), desc_(file.describe(trial)), age_(age) {
  table_ = static_cast<const pfrt_provider_table*>(desc_.table);
  const std::string devices = text_of(table_->devices);
  device_ = devices.substr(0, devices.find(','));
  HostSink sink(age_);
  pfrt_provider* handle = nullptr;
  const pfrt_code code = call(trial_, "refusal", "device '" + device_ + "' was opened", [&] {
    return table_->open(c_text(device_), nullptr, 0, sink.get(), &handle);
  });
  if (code != PFRT_CODE_OK) {
    trial_.expect(!handle && !sink.text().empty(), "refusal",
                  "opening device '" + device_ + "' failed with " + sink.reason(code) +
                      (handle ? ", and yet gave a handle" : ", without a message"));
    trial_.skip("device '" + device_ + "' does not open (" + sink.reason(code) + ")");
    return;
  }
  trial_.expect(handle != nullptr, "refusal", "open returned ok and no handle");
  handle_ = handle;
}
std::vector<Claim> claim(Trial& trial, Device& device, const HostSnapshot& snapshot,
                         const Case& c) {
  std::vector<Claim> answers(c.nodes.size());
  struct Collector {
    std::vector<Claim>* answers;
    bool outside = false, odd_transfer = false, odd_group = false;
  } collector{&answers};
  pfrt_claims claims{};
  claims.host = &collector;
  claims.accept = [](const pfrt_claims* t, uint32_t node, double ns, uint64_t bytes) {
    auto& to = *static_cast<Collector*>(t->host);
    if (node >= to.answers->size()) {
      to.outside = true;
      return;
    }
    Claim& a = (*to.answers)[node];
    a = {a.answers + 1, true, ns, bytes, {}};
  };
  claims.refuse = [](const pfrt_claims* t, uint32_t node, pfrt_string reason) {
    auto& to = *static_cast<Collector*>(t->host);
    if (node >= to.answers->size()) {
      to.outside = true;
      return;
    }
    Claim& a = (*to.answers)[node];
    a = {a.answers + 1, false, 0, 0, text_of(reason)};
  };
  claims.group = [](const pfrt_claims* t, const uint32_t* nodes, uint32_t count, double ns) {
    auto& to = *static_cast<Collector*>(t->host);
    to.odd_group |= !(ns >= 0) || (count && !nodes);
    for (uint32_t i = 0; i < count && nodes; ++i)
      to.odd_group |= nodes[i] >= to.answers->size() || !(*to.answers)[nodes[i]].accepted;
  };
  claims.transfer = [](const pfrt_claims* t, double ns, double ns_per_byte) {
    auto& to = *static_cast<Collector*>(t->host);
    to.odd_transfer |= !(ns >= 0 && ns_per_byte >= 0);
  };
  Sized<pfrt_claims> table(device.age(), claims, "the claims table");
  table.make_read_only();
  HostSink sink(device.age());
  const pfrt_code code = call(trial, "claim-complete", "claim was asked for " + c.name, [&] {
    return device.table().claim(device.handle(), snapshot.get(), table.get(), sink.get());
  });
  if (!trial.expect(code == PFRT_CODE_OK, "claim-complete",
                    "claim failed on " + c.name + ": " + sink.reason(code)))
    throw Broken("claim");
  trial.expect(!collector.outside, "claim-complete",
               "claim named a node that the snapshot of " + c.name + " does not have");
  trial.expect(!collector.odd_group, "group",
               "claim made a group of nodes of " + c.name +
                   " that it had not accepted, or that saves no length of time");
  trial.expect(!collector.odd_transfer, "claim-complete",
               "claim gave a cost of crossing that is no length of time");
  for (const Claim& a : answers) {
    trial.expect(a.answers == 1, "claim-complete",
                 "a node of " + c.name + " was answered " + std::to_string(a.answers) + " times");
    trial.expect(a.accepted || !a.reason.empty(), "refusal",
                 "claim refused a node of " + c.name + " without a reason");
    trial.expect(!std::isnan(a.ns) && a.ns >= 0, "claim-complete",
                 "claim estimated " + std::to_string(a.ns) + " ns for a node of " + c.name);
  }
  return answers;
}

std::vector<std::unique_ptr<Guarded>> pack_constants(Trial& trial, Device& device,
                                                     pfrt_executable* compiled,
                                                     const HostSnapshot& snapshot, const Case& c) {
  std::vector<std::unique_ptr<Guarded>> out;
  if (!device.has(PFRT_PROVIDER_CONSTANTS)) return out;
  const pfrt_packed_constant* given = nullptr;
  size_t size = 0, count = 0;
  HostSink sink(device.age());
  const pfrt_code code = call(trial, "program", "constants of " + c.name + " were listed", [&] {
    return device.table().constants(compiled, sink.get(), &given, &size, &count);
  });
  if (!trial.expect(code == PFRT_CODE_OK && (given || count == 0), "program",
                    "constants failed on " + c.name))
    throw Broken("constants");
  if (!trial.expect(count == 0 || size >= kLeast<pfrt_packed_constant>, "struct-size-plugin",
                    "its packed constants are " + std::to_string(size) + " bytes apart"))
    throw Broken("constants");
  const auto list = copy_elements(given, size, count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<const void*> sources;
    for (uint32_t s = 0; s < list[i].source_count; ++s) {
      sources.push_back(snapshot.constant(list[i].sources[s]));
      if (!trial.expect(sources.back() != nullptr, "program",
                        "it packs value " + std::to_string(list[i].sources[s]) + " of " + c.name +
                            ", which is no constant"))
        throw Broken("constants");
    }
    out.push_back(std::make_unique<Guarded>(list[i].bytes, "a packed constant", kPacked,
                                            std::max<uint32_t>(list[i].alignment, 64)));
    const pfrt_code packed = call(
        trial, "writes-past-buffer", "constants of " + c.name + " were packed",
        [&] { return list[i].pack(list[i].user, sources.data(), out.back()->data(), sink.get()); });
    trial.expect(packed == PFRT_CODE_OK, "program",
                 "packing a constant of " + c.name + " failed: " + code_text(packed));
    out.back()->allow(Guarded::Access::kRead);
  }
  return out;
}

}  // namespace cli::check
