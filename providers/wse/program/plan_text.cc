// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "providers/wse/program/device_plan.h"

namespace pfrt::wse {
namespace {

__attribute__((format(printf, 1, 2))) std::string print(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  const int size = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return std::string(text, static_cast<size_t>(std::clamp(size, 0, int{sizeof text} - 1)));
}

std::string shortened(std::string_view name, size_t most) {
  return name.size() <= most ? std::string(name) : message(name.substr(0, most - 3), "...");
}

std::string algorithm_of(const Layer& layer, const Mapping& mapping) {
  return layer.is_product() ? std::string(name_of(mapping.algorithm)) : std::string();
}

double seconds(const Target& target, double cycles) { return cycles / target.machine.clock_hz; }

std::string totals(const Target& target, const Placement& plan) {
  std::string out =
      print("%s cycles from input to output (%.3f us), a result every %s cycles (%.0f a second)",
            with_commas(whole(plan.cycles())).c_str(), 1e6 * seconds(target, plan.cycles()),
            with_commas(whole(plan.slowest())).c_str(),
            plan.slowest() > 0 ? 1 / seconds(target, plan.slowest()) : 0);
  if (target.chips.count() > 1)
    out += print(", on %lld of %lld wafers, %s elements between them%s",
                 static_cast<long long>(plan.chips_used()),
                 static_cast<long long>(target.chips.count()),
                 with_commas(whole(plan.elements_between_chips)).c_str(),
                 target.chips.latency_given ? "" : " (latency of links: none given, taken as 0)");
  return out;
}

}  // namespace

std::string simulated_line(const Machine& machine) {
  return message("simulated ", machine.identity(), "; ",
                 machine.validated ? "products, collectives and language-model layers are held "
                                     "against published figures (pfrt wse validate), convolutions, "
                                     "normalisations and moves against none"
                                   : "no published figure was held against this machine");
}

std::string plan_text(const Target& target, const Placement& plan) {
  std::string out = simulated_line(target.machine) + "\n";
  out += message(name_of(target.arithmetic), ", ",
                 plan.streaming ? "weights streamed from the host" : "layers side by side", "\n\n");
  out += print("%-28s %-14s %-9s %5s %11s %9s %13s %6s  %s\n", "layer", "operator", "algorithm",
               "wafer", "rectangle", "B a PE", "cycles", "used", "bound by");
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Layer& layer = plan.layers[i];
    const Mapping& m = plan.mappings[i];
    const Stage& stage = plan.stages[plan.stage_of[i]];
    out += print("%-28s %-14s %-9s %5lld %5lldx%-5lld %9s %13s %5.1f%%  %s\n",
                 shortened(layer.name, 28).c_str(), shortened(layer.op, 14).c_str(),
                 algorithm_of(layer, m).c_str(), static_cast<long long>(stage.chip),
                 static_cast<long long>(m.side), static_cast<long long>(m.side),
                 with_commas(m.bytes()).c_str(), with_commas(whole(m.cycles)).c_str(),
                 100 * m.utilisation(layer, target.machine, target.arithmetic),
                 std::string(m.bound()).c_str());
  }
  out += "\n" + totals(target, plan) + "\n";
  if (!plan.remedy.empty()) out += plan.remedy + "\n";
  return out;
}

std::string plan_json(const Target& target, const Placement& plan) {
  using Json = nlohmann::ordered_json;
  Json out;
  out["simulated"] = true;
  out["machine"] = target.machine.name;
  out["hash"] = target.machine.hash;
  out["validated"] = target.machine.validated;
  out["clock_hz"] = target.machine.clock_hz;
  out["arithmetic"] = name_of(target.arithmetic);
  out["streaming"] = plan.streaming;
  out["chips"] = {target.chips.columns, target.chips.rows};
  out["chips_used"] = plan.chips_used();
  out["cycles"] = plan.cycles();
  out["cycles_a_result"] = plan.slowest();
  out["elements_between_chips"] = plan.elements_between_chips;
  out["remedy"] = plan.remedy;
  out["layers"] = Json::array();
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Mapping& m = plan.mappings[i];
    const Stage& stage = plan.stages[plan.stage_of[i]];
    Json phases = Json::array();
    for (const Phase& phase : m.phases)
      phases.push_back({{"name", phase.name}, {"cycles", phase.cycles}, {"busy", phase.busy}});
    out["layers"].push_back(
        {{"name", plan.layers[i].name},
         {"operator", plan.layers[i].op},
         {"algorithm", algorithm_of(plan.layers[i], m)},
         {"chip", stage.chip},
         {"stage", plan.stage_of[i]},
         {"rectangle", {stage.rect.x, stage.rect.y, stage.rect.columns, stage.rect.rows}},
         {"weight_bytes_a_pe", m.weight_bytes},
         {"buffer_bytes_a_pe", m.buffer_bytes},
         {"colors", m.colors},
         {"cycles", m.cycles},
         {"utilisation", m.utilisation(plan.layers[i], target.machine, target.arithmetic)},
         {"bound_by", m.bound()},
         {"phases", phases}});
  }
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace pfrt::wse
