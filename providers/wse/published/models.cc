// SPDX-License-Identifier: Apache-2.0
//
// V7, V8, V10, V11 and V14: language models on a square of PEs, and what is known of their
// algorithms in no more than an order.
#include <algorithm>

#include "providers/wse/published/data.h"
#include "providers/wse/published/rows.h"
#include "providers/wse/schedule/llm.h"

namespace pfrt::wse::published {
namespace {

ValidationRow wafer_llm_row(std::string_view id, std::string_view source) {
  ValidationRow row;
  row.id = id;
  row.source = message("WaferLLM, OSDI'25, ", source);
  row.kind = "silicon";
  row.machine = "wse2";
  return row;
}

// The model of the published program: one head, so that keys and values are as wide as the model.
Llama one_head(const ModelRates& model) { return {model.layers, model.width, 1, 1, model.inner}; }

double rate_of(const ModelRates& model, double tokens, double cycles_a_layer) {
  return kPaperClock * tokens / (static_cast<double>(model.layers) * cycles_a_layer);
}

double weights_of(const ModelRates& model) {
  const auto width = static_cast<double>(model.width), inner = static_cast<double>(model.inner);
  return static_cast<double>(model.layers) * width * (4 * width + 3 * inner);
}

double decode(Schedule& s, const ModelRates& model, size_t side) {
  decode_layer(s, one_head(model), kTokens, kDecodeGroups[side]);
  return s.finish();
}

Schedule square_of(const Machine& m, int64_t side) {
  return Schedule(m, Arithmetic::kFp16, side, side);
}

Status add_ratio(Rows& rows, const Machine& m, const CachePoint& p) {
  // The ratio does not depend on the number of layers, so one layer's memory is enough.
  const LlamaMemory memory = llama_memory({p.layers, p.width, p.heads, p.kv_heads, p.inner},
                                          kCacheSide, Arithmetic::kFp16);
  const CacheCapacity cache =
      cache_capacity(memory, 1, kCacheSide, m.data_bytes() - memory.weights - memory.activations);
  ValidationRow row = wafer_llm_row("V11", "table 5");
  row.point = message(p.name, ", 360 rows, shifted / concatenated");
  row.unit = "times";
  row.target = p.shifted / p.concatenated;
  row.ours = static_cast<double>(cache.shifted) / static_cast<double>(cache.concatenated);
  row.tolerance_percent = 8;
  row.evidence = Evidence::kConstruction;
  row.note = "by the rule every row holds as much as the last one does";
  return rows.add(std::move(row), message("tokens in a row: ", cache.concatenated));
}

Status add_capacity(Rows& rows, const Machine& m, const CachePoint& p) {
  // Four regions of 360 x 360 fit on the wafer: each has a quarter of the layers.
  const int64_t layers = p.layers / 4;
  const LlamaMemory memory = llama_memory({p.layers, p.width, p.heads, p.kv_heads, p.inner},
                                          kCacheSide, Arithmetic::kFp16);
  const int64_t used = layers * memory.weights + memory.activations;
  const CacheCapacity cache = cache_capacity(memory, layers, kCacheSide, m.data_bytes() - used);
  ValidationRow row = wafer_llm_row("V11", "table 5");
  row.unit = "tokens";
  row.verdict = Verdict::kShown;
  row.note = message("the published layout is not known; here 4 regions of ", layers,
                     " layers, weights and buffers ", number_text(static_cast<double>(used)),
                     " of ", number_text(static_cast<double>(m.data_bytes())), " bytes a PE");
  row.point = message(p.name, ", shifted");
  row.target = p.shifted;
  row.ours = static_cast<double>(cache.shifted);
  PFRT_TRY(rows.add(row));
  row.point = message(p.name, ", concatenated");
  row.target = p.concatenated;
  row.ours = static_cast<double>(cache.concatenated);
  return rows.add(std::move(row));
}

// |schedules| are to take more and more cycles.
Status add_order(Rows& rows, ValidationRow row, const std::vector<Schedule>& schedules) {
  row.unit = "holds";
  row.evidence = Evidence::kOrder;
  row.target = row.ours = 1;
  std::string derivation;
  for (size_t i = 0; i < schedules.size(); ++i) {
    row.note += message(i ? ", " : "cycles: ", number_text(schedules[i].finish()));
    derivation += message(i ? "; " : "", largest_phases(schedules[i]));
    if (i > 0 && schedules[i].finish() <= schedules[i - 1].finish()) row.ours = 0;
  }
  return rows.add(std::move(row), derivation);
}

}  // namespace

Status add_decode(Rows& rows, const Machines& machines) {
  const size_t first = rows.size();
  ValidationRow row = wafer_llm_row("V7", "table 4");
  row.unit = "tokens/s";
  row.program = "decode fp16";
  row.baseline_name = "8B's rate by the number of layers";
  for (const ModelRates& model : kModels)
    for (size_t i = 0; i < kDecodeSides.size(); ++i) {
      Schedule s = square_of(machines.wse2, kDecodeSides[i]);
      row.evidence = model.scaled ? Evidence::kScaled : Evidence::kPrediction;
      row.baseline = kModels[0].decode[i] * static_cast<double>(kModels[0].layers) /
                     static_cast<double>(model.layers);
      row.ours = rate_of(model, 1, decode(s, model, i));
      row.target = model.decode[i];
      row.point = message(model.name, " decode, ", kDecodeSides[i], "x", kDecodeSides[i]);
      row.verdict = model.fitted ? Verdict::kFitted : Verdict::kMet;
      row.tolerance_percent = 12;
      PFRT_TRY(rows.add(row, largest_phases(s)));
    }
  row.point = "median of 13B and 72B";
  row.evidence = Evidence::kMedian;
  row.baseline = 0;
  row.target = 0;
  row.verdict = Verdict::kMet;
  row.tolerance_percent = 6;
  return rows.add_median(std::move(row), first);
}

Status add_prefill(Rows& rows, const Machines& machines) {
  const size_t first = rows.size();
  ValidationRow row = wafer_llm_row("V8", "table 3");
  row.unit = "tokens/s";
  row.program = "prefill fp16";
  row.baseline_name = "8B's rate by the number of weights";
  row.tolerance_percent = 15;
  for (const ModelRates& model : kModels)
    for (size_t i = 0; i < kPrefillSides.size(); ++i) {
      Schedule s = square_of(machines.wse2, kPrefillSides[i]);
      row.evidence = model.scaled ? Evidence::kScaled : Evidence::kPrediction;
      row.baseline = &model == &kModels[0]
                         ? 0
                         : kModels[0].prefill[i] * weights_of(kModels[0]) / weights_of(model);
      prefill_layer(s, one_head(model), kTokens);
      row.ours = rate_of(model, static_cast<double>(kTokens), s.finish());
      row.target = model.prefill[i];
      row.point = message(model.name, " prefill, ", kPrefillSides[i], "x", kPrefillSides[i]);
      PFRT_TRY(rows.add(row, largest_phases(s)));
    }
  row.point = "median of all";
  row.evidence = Evidence::kMedian;
  row.baseline = 0;
  row.target = 0;
  row.tolerance_percent = 8;
  return rows.add_median(std::move(row), first);
}

Status add_end_to_end(Rows& rows, const Machines& machines) {
  const ModelRates& model = kModels[0];
  ValidationRow row = wafer_llm_row("V10", "end to end");
  row.unit = "tokens/s";
  row.program = "decode fp16";
  row.tolerance_percent = 15;
  row.evidence = Evidence::kPartlyFitted;  // most of it is V7's decoding of 8B, on another grid
  row.baseline_name = "the best rates of tables 3 and 4";
  row.note = message("prefill on ", kEndToEndPrefillSide, "x", kEndToEndPrefillSide, ", decode on ",
                     kEndToEndDecodeSide, "x", kEndToEndDecodeSide,
                     ", each token with those before it on the average");
  for (const EndToEndPoint& p : kEndToEnd) {
    const auto tokens = static_cast<double>(p.tokens), fresh = static_cast<double>(p.fresh);
    Schedule prompt = square_of(machines.wse2, kEndToEndPrefillSide);
    prefill_layer(prompt, one_head(model), p.tokens);
    Schedule token = square_of(machines.wse2, kEndToEndDecodeSide);
    decode_layer(token, one_head(model), p.tokens + p.fresh / 2, kEndToEndGroup);
    const auto rate = [&](double prefill, double decode) {
      return fresh / (tokens / prefill + fresh / decode);
    };
    row.point = message(model.name, ", ", p.tokens, " in, ", p.fresh, " out");
    row.target = p.rate;
    row.ours = rate(rate_of(model, tokens, prompt.finish()), rate_of(model, 1, token.finish()));
    row.baseline = rate(*std::max_element(model.prefill.begin(), model.prefill.end()),
                        *std::max_element(model.decode.begin(), model.decode.end()));
    PFRT_TRY(rows.add(row));
  }
  return {};
}

Status add_caches(Rows& rows, const Machines& machines) {
  for (const CachePoint& point : kCaches) PFRT_TRY(add_ratio(rows, machines.wse2, point));
  for (const CachePoint& point : kCaches) PFRT_TRY(add_capacity(rows, machines.wse2, point));
  return {};
}

Status add_orderings(Rows& rows, const Machines& machines) {
  constexpr int64_t kSide = 480, kPart = (4096 + kSide - 1) / kSide;
  ValidationRow row = wafer_llm_row("V14", "figure 9, text");
  row.point = "MeshGEMM < Cannon < SUMMA, 4096^3 fp16, 480x480";
  std::vector<Schedule> schedules;
  for (const ProductAlgorithm algorithm :
       {ProductAlgorithm::kMeshGemm, ProductAlgorithm::kCannon, ProductAlgorithm::kSumma}) {
    GemmOptions options;
    options.algorithm = algorithm;
    schedules.push_back(square_of(machines.wse2, kSide));
    gemm(schedules.back(), {kPart, kPart, kPart}, options);
  }
  PFRT_TRY(add_order(rows, std::move(row), schedules));

  for (const ModelRates& model : kModels) {
    row = wafer_llm_row("V14", "table 4");
    row.point = message(model.name, " decode slower on more PEs");
    schedules.clear();
    for (size_t i = 0; i < kDecodeSides.size(); ++i) {
      schedules.push_back(square_of(machines.wse2, kDecodeSides[i]));
      decode(schedules.back(), model, i);
    }
    PFRT_TRY(add_order(rows, std::move(row), schedules));
  }
  return {};
}

}  // namespace pfrt::wse::published
