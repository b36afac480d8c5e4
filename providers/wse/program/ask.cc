// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/ask.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "providers/kit/answer.h"
#include "providers/wse/program/estimate.h"
#include "providers/wse/program/words.h"
#include "providers/wse/published/validate.h"

namespace pfrt::wse {
namespace {

Status answer_machine(Device& device, const Words& words, const pfrt_answer& out) {
  PFRT_TRY(words.only({"json"}));
  const Machine& machine = device.settings.target.machine;
  if (words.has("json")) {
    nlohmann::ordered_json json{{"simulated", true},      {"name", machine.name},
                                {"title", machine.title}, {"hash", machine.hash},
                                {"held", machine.held},   {"changed", machine.changed}};
    for (const auto& [name, value] : numbers_of(machine))
      json["numbers"][name] = {value, machine.sources.at(name)};
    say(out, json.dump(1) + "\n");
    return {};
  }
  std::string text = simulated_line(machine, machine.held) + "\n" + machine.title + "\n\n";
  for (const auto& [name, value] : numbers_of(machine)) {
    char line[64];
    std::snprintf(line, sizeof line, "%-24s %14.6g  ", name.c_str(), value);
    text += line + machine.sources.at(name) + "\n";
  }
  say(out, text);
  return {};
}

// Bytes that a stage takes on its PEs: the weights of all its layers, and the buffers of one at a
// time.
int64_t bytes_of(const Placement& plan, const Stage& stage) {
  int64_t weights = 0, buffers = 0;
  for (const uint32_t layer : stage.layers) {
    weights += plan.mappings[layer].weight_bytes;
    buffers = std::max(buffers, plan.mappings[layer].buffer_bytes);
  }
  return (weights + buffers) * stage.rect.columns * stage.rect.rows;
}

// Gives, by layer: its name and the node in the session's graph, its stage, its wafer and its
// cycles; by stage: cycles with those to the next, and bytes of memory; then the totals: cycles of
// a run and between results, bytes between wafers.
void give_plan(const Target& target, const Placement& plan, const pfrt_answer& out) {
  std::vector<pfrt_string> name;
  std::vector<int64_t> node, stage, chip, cycles, bytes, stage_cycles, stage_bytes;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Stage& of = plan.stages[plan.stage_of[i]];
    name.push_back(to_c(plan.layers[i].name));
    node.push_back(plan.layers[i].node);
    stage.push_back(plan.stage_of[i]);
    chip.push_back(of.chip);
    cycles.push_back(whole(plan.mappings[i].cycles));
    bytes.push_back(plan.mappings[i].bytes() * of.rect.columns * of.rect.rows);
  }
  for (const Stage& of : plan.stages) {
    stage_cycles.push_back(whole(of.cycles + of.transfer_cycles + of.host_cycles));
    stage_bytes.push_back(bytes_of(plan, of));
  }
  give(out, "name", name);
  give(out, "node", node);
  give(out, "stage", stage);
  give(out, "chip", chip);
  give(out, "cycles", cycles);
  give(out, "bytes", bytes);
  give(out, "stage_cycles", stage_cycles);
  give(out, "stage_bytes", stage_bytes);
  give(out, "run_cycles", plan.cycles());
  give(out, "result_cycles", plan.slowest());
  give(out, "comm_bytes",
       plan.elements_between_chips * static_cast<double>(bytes_of(target.arithmetic)));
  give(out, "clock_hz", target.machine.clock_hz);
  give(out, "streaming", std::vector<int64_t>{plan.streaming ? 1 : 0});
}

Status answer_plan(Device& device, const Words& words, const pfrt_answer& out) {
  PFRT_TRY(words.only({"text", "json", "svg"}));
  const std::shared_ptr<DevicePlan> plan = device.latest();
  if (plan == nullptr)
    return error(
        Code::kNOT_FOUND,
        "nothing lies on this wafer: make a session with it first, in the same environment");
  const Placement now = plan->snapshot();
  const Target& target = device.settings.target;
  say(out, words.has("svg")    ? plan_svg(target, now)
           : words.has("json") ? plan_json(target, now)
                               : plan_text(target, now));
  give_plan(target, now, out);
  return {};
}

Status answer_traffic(Device& device, const Words& words, const pfrt_answer& out) {
  PFRT_TRY(words.only({}));
  say(out, message("to_device ", device.bytes_to_device.load(), " to_host ",
                   device.bytes_to_host.load(), " on_device ", device.bytes_on_device.load()));
  return {};
}

Status answer_validate(const Words& words, const pfrt_answer& out, const pfrt_sink& sink) {
  std::vector<Change> changes;
  bool json = false;
  for (const auto& [key, value] : words.all()) {
    if (key == "json" && value.empty()) {
      json = true;
      continue;
    }
    double number = 0;
    const auto [end, fault] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (fault != std::errc() || end != value.data() + value.size())
      return error(Code::kINVALID_ARGUMENT, "'", key, "=", value,
                   "' changes no number of a machine file: give it as hop=2");
    changes.push_back({key, number});
  }
  PFRT_ASSIGN(const Validation done,
              validate(changes, [&] { return sink.stop(&sink) != PFRT_CODE_OK; }));
  say(out, json ? validation_json(done) : validation_text(done));
  give(out, "not_met", std::vector<int64_t>{done.not_met});
  return {};
}

}  // namespace

Status answer(Device& device, const pfrt_question& question, const pfrt_answer& out,
              const pfrt_sink& sink) {
  const std::string_view verb = view(question.verb);
  PFRT_ASSIGN(const Words words, Words::read(view(question.request)));
  if (verb == "machine") return answer_machine(device, words, out);
  if (verb == "plan") return answer_plan(device, words, out);
  if (verb == "traffic") return answer_traffic(device, words, out);
  if (verb == "validate") return answer_validate(words, out, sink);
  if (verb == "product" || verb == "language-model") {
    PFRT_ASSIGN(const std::string text, verb == "product"
                                            ? estimate_product(device.settings, words)
                                            : estimate_language_model(device.settings, words));
    say(out, text);
    return {};
  }
  return error(Code::kUNSUPPORTED, "the wafer has no verb '", verb,
               "'; it has machine, plan, traffic, validate, product and language-model");
}

}  // namespace pfrt::wse
