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

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

bool is_held(const Machine& machine, const std::string& program) {
  return std::find(machine.held.begin(), machine.held.end(), program) != machine.held.end();
}

// Kinds of programs that the layers of |plan| are, each once.
std::vector<std::string> programs_of(const Target& target, const Placement& plan) {
  std::vector<std::string> out;
  for (size_t i = 0; i < plan.layers.size(); ++i) {
    const Layer& layer = plan.layers[i];
    std::string kind = layer.op == "Conv" ? "convolutions"
                       : layer.is_product()
                           ? program_name(name_of(plan.mappings[i].algorithm), target.arithmetic)
                           : message("operators of kind ", name_of(layer.row->family));
    if (std::find(out.begin(), out.end(), kind) == out.end()) out.push_back(std::move(kind));
  }
  return out;
}

std::string algorithm_of(const Layer& layer, const Mapping& mapping) {
  return layer.is_product() ? std::string(name_of(mapping.algorithm)) : std::string();
}

double seconds(const Target& target, double cycles) { return cycles / target.machine.clock_hz; }

// Lists at most a few of |nodes|.
std::string some_of(const std::vector<std::string>& nodes) {
  constexpr size_t kMost = 4;
  const std::vector<std::string> few(
      nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(std::min(kMost, nodes.size())));
  return nodes.size() > kMost ? message(list_of(few), " and ", nodes.size() - kMost, " more")
                              : list_of(few);
}

// A run's time and pace are those of the wafer only where all of it runs there.
std::string totals(const Target& target, const Placement& plan) {
  const std::vector<std::string> others = plan.run_by_others();
  if (!others.empty())
    return print("%s cycles (%.3f us) are those of the wafer's layers alone",
                 with_commas(whole(plan.cycles())).c_str(), 1e6 * seconds(target, plan.cycles())) +
           message("; what others run (", some_of(others),
                   ") is in none of these numbers, so that neither the time of a run nor results "
                   "a second are given");
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

std::string program_name(std::string_view algorithm, Arithmetic arithmetic) {
  return message(algorithm, " ", name_of(arithmetic));
}

bool all_held(const Machine& machine, const std::vector<std::string>& programs) {
  return !programs.empty() &&
         std::all_of(programs.begin(), programs.end(),
                     [&](const std::string& p) { return is_held(machine, p); });
}

std::string simulated_line(const Machine& machine, const std::vector<std::string>& programs) {
  std::string out = message("simulated ", machine.identity(), "; ");
  if (!machine.changed.empty())
    return out + message("no published figure was held against these numbers: the caller changed ",
                         list_of(machine.changed));
  std::vector<std::string> held, others;
  for (const std::string& p : programs) (is_held(machine, p) ? held : others).push_back(p);
  if (held.empty())
    return out + message("no published figure was held against ",
                         others.empty() ? "this machine" : list_of(others));
  out += message(list_of(held), ": held against published figures (pfrt wse validate)");
  return others.empty() ? out : out + message("; ", list_of(others), ": against none");
}

std::string plan_text(const Target& target, const Placement& plan) {
  std::string out = simulated_line(target.machine, programs_of(target, plan)) + "\n";
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
    if (!plan.refused[i].empty()) out += "  runs elsewhere: " + plan.refused[i] + "\n";
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
  out["validated"] = all_held(target.machine, programs_of(target, plan));
  out["clock_hz"] = target.machine.clock_hz;
  out["arithmetic"] = name_of(target.arithmetic);
  out["streaming"] = plan.streaming;
  out["chips"] = {target.chips.columns, target.chips.rows};
  out["chips_used"] = plan.chips_used();
  const std::vector<std::string> others = plan.run_by_others();
  out["wafer_cycles"] = plan.cycles();
  out["cycles"] = others.empty() ? Json(plan.cycles()) : Json();
  out["cycles_a_result"] = others.empty() ? Json(plan.slowest()) : Json();
  out["run_by_others"] = others;
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
         {"refused", plan.refused[i]},
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
