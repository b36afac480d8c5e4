// SPDX-License-Identifier: Apache-2.0
//
// Reports a session's memory and phase, and gives back memory.
#include <iterator>
#include <unordered_set>

#include "core/session/session.h"
#include "core/session/state.h"

namespace pfrt {
namespace {

constexpr std::string_view kPhases[] = {
    "",           "Initializing",   "Ready",          "Executing",
    "InitError",  "RuntimeError",   "MemoryError",    "DeviceError",
    "Recovering", "MemoryRecovery", "DeviceRecovery", "FatalError",
    "Cleanup"};

// Adds the bytes of constants in memory, each counted once.
void add_weights(const Graph& graph, std::unordered_set<const Buffer*>& counted, uint64_t& bytes) {
  for (const ValueId id : graph.initializers()) {
    const ValuePtr& constant = graph.at(id).constant;
    const Buffer* const buffer = constant ? constant->tensor.buffer.get() : nullptr;
    if (buffer && buffer->resident() && counted.insert(buffer).second) bytes += buffer->bytes();
  }
}

}  // namespace

std::string_view phase_name(pfrt_session_phase phase) {
  return phase < std::size(kPhases) ? kPhases[phase] : "";
}

uint64_t Session::trim(uint64_t given_ns) {
  const std::shared_ptr<Plans> plans = current();
  uint64_t bytes = 0;
  if (plans) plans->each([&](CompiledGraph& graph) { bytes += graph.trim(given_ns); });
  return bytes;
}

Session::MemoryReport Session::memory_report() const {
  MemoryReport out;
  const std::shared_ptr<Plans> plans = current();
  std::unordered_set<const Buffer*> counted;
  add_weights(model_->signature(), counted, out.weights);
  add_weights(*plans->optimised->graph, counted, out.weights);
  plans->each([&](const CompiledGraph& graph) { graph.add_memory(out); });
  for (const auto& state : states_.all()) state->add_memory(counted, out);
  return out;
}

pfrt_session_phase Session::phase() const {
  const pfrt_session_phase now = phase_.load();
  if (now != PFRT_PHASE_READY) return now;
  bool at_work = false;
  current()->each([&](const CompiledGraph& graph) { at_work = at_work || graph.at_work(); });
  return at_work ? pfrt_session_phase{PFRT_PHASE_EXECUTING} : now;
}

std::string memory_note(const Session::MemoryReport& m) {
  return message(
      "memory: weights ", m.weights, " bytes, packed constants ", m.packed, ", blocks of ",
      m.signatures.size(), " plans ", m.in_use, " in use and ", m.idle, " idle, ", m.peak,
      " at most",
      m.device_in_use + m.device_idle == 0
          ? std::string()
          : message("; on devices ", m.device_in_use, " in use and ", m.device_idle, " idle"),
      m.states + m.device_states == 0
          ? std::string()
          : message("; states ", m.states, " and on devices ", m.device_states));
}

}  // namespace pfrt
