// SPDX-License-Identifier: Apache-2.0
#include "providers/wse/program/estimate.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "providers/wse/program/device_plan.h"
#include "providers/wse/schedule/llm.h"

namespace pfrt::wse {
namespace {

using Json = nlohmann::ordered_json;

Json head(const Settings& settings, const std::vector<std::string>& programs) {
  const Machine& m = settings.target.machine;
  return Json{{"simulated", true},      {"machine", m.name},
              {"hash", m.hash},         {"validated", all_held(m, programs)},
              {"clock_hz", m.clock_hz}, {"arithmetic", name_of(settings.target.arithmetic)}};
}

// "4096x128x64": all of |sizes|.
Status read_product(std::string_view text, std::initializer_list<int64_t*> sizes) {
  const char* at = text.data();
  const char* const end = at + text.size();
  size_t left = sizes.size();
  for (int64_t* const size : sizes) {
    const auto [next, fault] = std::from_chars(at, end, *size);
    --left;
    const bool more = next != end && *next == 'x';
    if (fault != std::errc() || *size < 1 || *size > 1 << 24 || more != (left > 0) ||
        (left == 0 && next != end))
      return error(Code::kINVALID_ARGUMENT, "'", text,
                   "' is no product: gemm=MxKxN and gemv=KxN take sizes from 1 to 16,777,216");
    at = next + 1;
  }
  return {};
}

Result<ProductAlgorithm> read_algorithm(std::string_view text) {
  if (text.empty() || text == "meshgemm") return ProductAlgorithm::kMeshGemm;
  if (text == "cannon") return ProductAlgorithm::kCannon;
  if (text == "summa") return ProductAlgorithm::kSumma;
  return error(Code::kINVALID_ARGUMENT, "there is no algorithm '", text,
               "' for products: meshgemm, cannon and summa are there");
}

Result<int64_t> read_grid(const Settings& settings, std::string_view text) {
  const Rect& fabric = settings.target.fabric;
  const int64_t most = std::min(fabric.columns, fabric.rows);
  int64_t side = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), side);
  if (fault != std::errc() || end != text.data() + text.size() || side < 1 || side > most)
    return error(Code::kINVALID_ARGUMENT, "'", text, "' is no side of a square of PEs: 1 to ", most,
                 " on ", settings.target.machine.name);
  return side;
}

std::string product_text(const Settings& settings, const Json& json, const Schedule& schedule,
                         const std::vector<std::string>& programs) {
  char line[256];
  std::string out = simulated_line(settings.target.machine, programs) + "\n";
  std::snprintf(
      line, sizeof line,
      "%s on %lldx%lld PEs, %s: %s cycles, %.3f us, %.1f %% of the multiply-adds, %s B a PE\n",
      json["algorithm"].get<std::string>().c_str(),
      static_cast<long long>(schedule.grid().columns()),
      static_cast<long long>(schedule.grid().rows()), json["arithmetic"].get<std::string>().c_str(),
      with_commas(json["cycles"].get<int64_t>()).c_str(), json["seconds"].get<double>() * 1e6,
      100 * json["utilisation"].get<double>(),
      with_commas(json["bytes_a_pe"].get<int64_t>()).c_str());
  out += line;
  for (const auto& phase : json["phases"]) {
    std::snprintf(line, sizeof line, "  %-28s %14s cycles, %14s at work\n",
                  phase["name"].get<std::string>().c_str(),
                  with_commas(whole(phase["cycles"].get<double>())).c_str(),
                  with_commas(whole(phase["busy"].get<double>())).c_str());
    out += line;
  }
  return out;
}

// Phases of one name are one line.
Json phases_of(const Schedule& schedule) {
  Json out = Json::array();
  for (const Phase& phase : schedule.phases()) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Json& j) {
      return j["name"].get<std::string>() == phase.name;
    });
    if (same == out.end()) {
      out.push_back({{"name", phase.name}, {"cycles", phase.cycles}, {"busy", phase.busy}});
    } else {
      (*same)["cycles"] = (*same)["cycles"].get<double>() + phase.cycles;
      (*same)["busy"] = (*same)["busy"].get<double>() + phase.busy;
    }
  }
  return out;
}

Result<std::vector<int64_t>> read_list(const Settings& settings, std::string_view text) {
  constexpr size_t kMost = 64;
  std::vector<int64_t> out;
  while (!text.empty()) {
    if (out.size() == kMost)
      return error(Code::kINVALID_ARGUMENT, "a list of grids or groups has ", kMost, " at most");
    const size_t comma = std::min(text.find(','), text.size());
    PFRT_ASSIGN(const int64_t side, read_grid(settings, text.substr(0, comma)));
    out.push_back(side);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return out;
}

struct Request {
  Llama model;
  int64_t context, tokens, fresh;
  std::vector<int64_t> prefill, decode, groups;
};

Result<Request> read_request(const Settings& settings, const Words& words) {
  PFRT_TRY(words.only({"layers", "width", "heads", "kv_heads", "inner", "context", "tokens",
                       "new_tokens", "prefill_grids", "decode_grids", "groups", "json"}));
  Request out{};
  PFRT_ASSIGN(out.model.layers, words.whole("layers", 32, 1));
  PFRT_ASSIGN(out.model.width, words.whole("width", 4096, 1));
  PFRT_ASSIGN(out.model.heads, words.whole("heads", 32, 1));
  PFRT_ASSIGN(out.model.kv_heads, words.whole("kv_heads", 8, 1));
  PFRT_ASSIGN(out.model.inner, words.whole("inner", 14336, 1));
  PFRT_ASSIGN(out.context, words.whole("context", 4096, 1));
  PFRT_ASSIGN(out.tokens, words.whole("tokens", 4096, 1));
  PFRT_ASSIGN(out.fresh, words.whole("new_tokens", 128, 1));
  if (out.model.kv_heads > out.model.heads || out.model.heads % out.model.kv_heads != 0)
    return error(Code::kINVALID_ARGUMENT, "kv_heads=", out.model.kv_heads,
                 " does not divide heads=", out.model.heads);
  const auto list = [&](std::string_view key, std::string_view fallback) {
    return read_list(settings, words.has(key) ? words.text(key) : fallback);
  };
  const int64_t most = std::min(settings.target.fabric.columns, settings.target.fabric.rows);
  const std::string whole = std::to_string(most);
  PFRT_ASSIGN(out.prefill, list("prefill_grids", most >= 720 ? "480,600,720" : whole));
  PFRT_ASSIGN(out.decode, list("decode_grids", most >= 660 ? "420,540,660" : whole));
  PFRT_ASSIGN(out.groups, list("groups", ""));
  if (out.prefill.empty() || out.decode.empty())
    return error(Code::kINVALID_ARGUMENT, "prefill_grids and decode_grids name a grid at least");
  return out;
}

std::vector<std::string> language_programs(const Settings& settings) {
  return {program_name("prefill", settings.target.arithmetic),
          program_name("decode", settings.target.arithmetic)};
}

Json rates_of(const Settings& settings, const Request& r) {
  const Target& t = settings.target;
  Json prefill = Json::array(), decode = Json::array();
  const double clock = t.machine.clock_hz, layers = static_cast<double>(r.model.layers);
  double best_prefill = 0, best_decode = 0;
  for (const int64_t side : r.prefill) {
    Schedule s(t.machine, t.arithmetic, side, side);
    prefill_layer(s, r.model, r.tokens);
    const double rate = static_cast<double>(r.tokens) * clock / (layers * s.finish());
    best_prefill = std::max(best_prefill, rate);
    prefill.push_back({{"grid", side}, {"cycles_a_layer", s.finish()}, {"tokens_a_second", rate}});
  }
  for (size_t i = 0; i < r.decode.size(); ++i) {
    const int64_t side = r.decode[i];
    Schedule s(t.machine, t.arithmetic, side, side);
    decode_layer(s, r.model, r.context, i < r.groups.size() ? r.groups[i] : 0);
    const double rate = clock / (layers * s.finish());
    best_decode = std::max(best_decode, rate);
    const LlamaMemory memory = llama_memory(r.model, side, t.arithmetic);
    const int64_t room = t.machine.data_bytes() - memory.activations;
    const int64_t at_a_time = std::clamp<int64_t>(
        memory.weights > 0 ? room / memory.weights : r.model.layers, 0, r.model.layers);
    const int64_t grids = t.fabric.columns / side * (t.fabric.rows / side);
    const auto cache = cache_capacity(memory, 1, side, room - memory.weights);
    decode.push_back({{"grid", side},
                      {"cycles_a_layer", s.finish()},
                      {"tokens_a_second", rate},
                      {"weight_bytes_a_pe_and_layer", memory.weights},
                      {"layers_a_grid", at_a_time},
                      {"grids_a_wafer", grids},
                      {"wafers", at_a_time * grids > 0 ? (r.model.layers + at_a_time * grids - 1) /
                                                             (at_a_time * grids)
                                                       : 0},
                      {"cache_tokens_of_one_layer_shifted", cache.shifted},
                      {"cache_tokens_of_one_layer_concatenated", cache.concatenated}});
  }
  Json out{{"prefill", prefill}, {"decode", decode}};
  const double seconds =
      static_cast<double>(r.tokens) / best_prefill + static_cast<double>(r.fresh) / best_decode;
  out["end_to_end"] = {{"tokens", r.tokens},
                       {"new_tokens", r.fresh},
                       {"seconds", seconds},
                       {"new_tokens_a_second", static_cast<double>(r.fresh) / seconds}};
  return out;
}

std::string rates_text(const Settings& settings, const Request& r, const Json& json) {
  std::string out = simulated_line(settings.target.machine, language_programs(settings)) + "\n";
  out += message(name_of(settings.target.arithmetic), "; ", r.model.layers, " layers, width ",
                 r.model.width, ", ", r.model.heads, " heads, ", r.model.kv_heads,
                 " of keys and values, inner width ", r.model.inner,
                 "; one layer at a time, as published tables have it\n\n");
  char line[256];
  const auto row = [&](const char* what, const Json& j) {
    std::snprintf(line, sizeof line, "%-8s %4lldx%-4lld %14s cycles a layer %12.1f tokens/s\n",
                  what, static_cast<long long>(j["grid"].get<int64_t>()),
                  static_cast<long long>(j["grid"].get<int64_t>()),
                  with_commas(whole(j["cycles_a_layer"].get<double>())).c_str(),
                  j["tokens_a_second"].get<double>());
    out += line;
  };
  for (const Json& j : json["prefill"]) row("prefill", j);
  for (const Json& j : json["decode"]) row("decode", j);
  for (const Json& j : json["decode"])
    out += message("memory on ", j["grid"].get<int64_t>(), "x", j["grid"].get<int64_t>(), ": ",
                   with_commas(j["weight_bytes_a_pe_and_layer"].get<int64_t>()),
                   " B a PE and layer, so ", j["layers_a_grid"].get<int64_t>(), " layers a grid, ",
                   j["grids_a_wafer"].get<int64_t>(), " grids a wafer: ",
                   j["wafers"].get<int64_t>() > 0
                       ? message(j["wafers"].get<int64_t>(), " wafers for the weights\n")
                       : "no layer fits\n");
  const Json& end = json["end_to_end"];
  std::snprintf(line, sizeof line,
                "%lld tokens in, %lld out: %.4f s, %.1f new tokens/s (fastest grids)\n",
                static_cast<long long>(r.tokens), static_cast<long long>(r.fresh),
                end["seconds"].get<double>(), end["new_tokens_a_second"].get<double>());
  return out + line;
}

}  // namespace

Result<std::string> estimate_product(const Settings& settings, const Words& words) {
  PFRT_TRY(words.only({"gemm", "gemv", "grid", "algorithm", "group", "json"}));
  const Target& t = settings.target;
  if (words.has("gemm") == words.has("gemv"))
    return error(Code::kINVALID_ARGUMENT, "give gemm=MxKxN or gemv=KxN, one of them");
  const bool vector = words.has("gemv");
  int64_t m = 1, k = 0, n = 0;
  PFRT_TRY(vector ? read_product(words.text("gemv"), {&k, &n})
                  : read_product(words.text("gemm"), {&m, &k, &n}));
  PFRT_ASSIGN(const int64_t side,
              read_grid(settings, words.has("grid") ? words.text("grid") : "64"));
  PFRT_ASSIGN(const int64_t group, words.whole("group", tree_group(side), 1));
  GemmOptions options;
  PFRT_ASSIGN(options.algorithm, read_algorithm(words.text("algorithm")));
  const Tile tile{divide_up(m, side), divide_up(k, side), divide_up(n, side)};
  Schedule schedule(t.machine, t.arithmetic, side, side);
  if (vector) {
    options.algorithm = ProductAlgorithm::kMeshGemv;
    gemv(schedule, {1, tile.k, tile.n}, Axis::kY, group);
  } else {
    gemm(schedule, tile, options);
  }
  const int64_t bytes = gemm_bytes(tile, t.arithmetic, options.algorithm);
  const std::vector<std::string> programs = {
      program_name(name_of(options.algorithm), t.arithmetic)};
  Json json = head(settings, programs);
  const Rate& rate = is_16_bit(t.arithmetic) ? t.machine.fp16_fmac : t.machine.fp32_fmac;
  const double peak = rate.group / rate.group_cycles * static_cast<double>(side * side);
  json["algorithm"] = name_of(options.algorithm);
  json["cycles"] = whole(schedule.finish());
  json["seconds"] = schedule.finish() / t.machine.clock_hz;
  json["utilisation"] = static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n) /
                        (peak * schedule.finish());
  json["bytes_a_pe"] = bytes;
  json["fits"] = bytes <= t.machine.data_bytes();
  json["phases"] = phases_of(schedule);
  if (words.has("json")) return json.dump(1) + "\n";
  std::string text = product_text(settings, json, schedule, programs);
  if (bytes > t.machine.data_bytes())
    text += message("it does not fit: ", with_commas(bytes), " B a PE, ",
                    with_commas(t.machine.data_bytes()),
                    " B are there for data; a larger grid has "
                    "smaller tiles\n");
  return text;
}

Result<std::string> estimate_language_model(const Settings& settings, const Words& words) {
  PFRT_ASSIGN(const Request request, read_request(settings, words));
  Json json = head(settings, language_programs(settings));
  json.update(rates_of(settings, request));
  if (words.has("json")) return json.dump(1) + "\n";
  return rates_text(settings, request, json);
}

}  // namespace pfrt::wse
