// SPDX-License-Identifier: Apache-2.0
//
// Cycle counts and rates that others have published, as they published them. Numbers only: what
// they are held against is computed beside this file.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace pfrt::wse::published {

// V1, V2: a two-phase reduce of fp32 wavelets in the vendor's simulator, WSE-2
// (pr0f3ss/SpMM_Cerebras, src/mpi_collectives/reduce_0_pe). S = P is a chain.
struct TwoPhasePoint {
  int64_t pes, wavelets, group;
  double cycles;
};
inline constexpr std::array<TwoPhasePoint, 9> kTwoPhase = {{{512, 4096, 2, 10055},
                                                            {512, 4096, 4, 9421},
                                                            {512, 4096, 8, 9117},
                                                            {512, 4096, 16, 8989},
                                                            {512, 4096, 32, 8973},
                                                            {512, 4096, 64, 9061},
                                                            {512, 4096, 128, 9297},
                                                            {512, 4096, 256, 9800},
                                                            {512, 4096, 512, 7218}}};
// The mean of two runs, 925 and 928.
inline constexpr TwoPhasePoint kSmallTwoPhase = {512, 64, 28, 926.5};

// V3: an fp32 product on one PE, WSE-2: kt x m calls on nt elements each (the same repository,
// benchmarks/GEMM_benchmark.csv and memory_access_latency).
struct OnePePoint {
  int64_t nt, kt, m;
  double cycles;
  bool fitted;
};
inline constexpr std::array<OnePePoint, 6> kOnePe = {{{64, 48, 64, 476866, true},
                                                      {128, 8, 64, 150760, false},
                                                      {8, 8, 32, 9756, false},
                                                      {32, 32, 32, 88795, false},
                                                      {8, 8, 128, 38844, true},
                                                      {32, 32, 128, 357853, false}}};

// V4: a timeline of SUMMA in the vendor's simulator, WSE-2: 4 x 4 PEs, fp32 tiles of 14 x 14.
struct SummaTimeline {
  int64_t side, tile, h2d_words, d2h_words;
  double h2d, compute, d2h, total;  // cycles
};
inline constexpr SummaTimeline kSummaTimeline = {4, 14, 6272, 3136, 7226, 45783, 10522, 64013};

// V6: MeshGEMM in the vendor's simulator, WSE-3 (junesookang/WaferLLM, MeshGEMM/WSE-3-col-major):
// mean cycles with each step's product done 0, 1 and 2 times. Tiles of mt x 8 and 8 x 8, fp16.
struct MeshGemmPoint {
  int64_t side, mt;
  std::array<double, 3> cycles;  // by repeats
};
inline constexpr std::array<MeshGemmPoint, 48> kMeshGemmSweep = {
    {{3, 1, {524.0, 2095.8, 3716.0}},    {3, 2, {530.4, 2104.8, 3724.2}},
     {3, 3, {544.5, 2129.0, 3794.4}},    {3, 4, {557.1, 2148.7, 3813.7}},
     {3, 5, {568.3, 2166.7, 3831.7}},    {3, 6, {581.1, 2184.1, 3849.7}},
     {3, 7, {602.4, 2202.0, 3867.0}},    {3, 8, {619.9, 2211.7, 3831.7}},
     {3, 9, {641.4, 2560.5, 4544.5}},    {3, 10, {661.8, 2543.6, 4487.6}},
     {3, 11, {682.9, 2679.8, 4736.4}},   {3, 12, {707.7, 2631.1, 4615.4}},
     {3, 13, {736.0, 2743.6, 4820.0}},   {3, 14, {762.5, 2759.8, 4829.0}},
     {3, 15, {790.7, 2941.9, 5173.9}},   {3, 16, {813.6, 2801.4, 4823.9}},
     {6, 1, {1032.8, 4171.1, 7412.3}},   {6, 2, {1051.0, 4192.0, 7432.3}},
     {6, 3, {1083.4, 4248.4, 7578.3}},   {6, 4, {1108.6, 4283.9, 7614.4}},
     {6, 5, {1143.0, 4333.7, 7663.8}},   {6, 6, {1175.9, 4373.2, 7702.5}},
     {6, 7, {1222.8, 4416.5, 7746.0}},   {6, 8, {1262.8, 4444.6, 7684.9}},
     {6, 9, {1320.9, 5139.0, 9101.3}},   {6, 10, {1365.3, 5118.7, 9006.7}},
     {6, 11, {1415.2, 5398.5, 9515.2}},  {6, 12, {1467.7, 5303.8, 9275.8}},
     {6, 13, {1528.8, 5537.4, 9689.4}},  {6, 14, {1592.9, 5575.8, 9715.8}},
     {6, 15, {1654.6, 5965.1, 10435.1}}, {6, 16, {1723.1, 5675.8, 9727.6}},
     {9, 1, {1465.2, 6173.2, 11034.3}},  {9, 2, {1499.4, 6201.6, 11062.5}},
     {9, 3, {1545.4, 6282.2, 11277.9}},  {9, 4, {1580.5, 6334.2, 11329.7}},
     {9, 5, {1629.6, 6404.9, 11399.9}},  {9, 6, {1675.6, 6459.4, 11454.2}},
     {9, 7, {1739.4, 6520.2, 11515.1}},  {9, 8, {1798.2, 6558.6, 11418.6}},
     {9, 9, {1877.4, 7601.3, 13548.2}},  {9, 10, {1939.3, 7558.8, 13390.8}},
     {9, 11, {2006.1, 7972.8, 14144.4}}, {9, 12, {2084.1, 7830.5, 13788.5}},
     {9, 13, {2172.9, 8176.3, 14404.3}}, {9, 14, {2259.1, 8225.7, 14438.4}},
     {9, 15, {2354.0, 8790.7, 15497.6}}, {9, 16, {2452.2, 8362.7, 14438.6}}}};
// Cycles of a multiply-add on n = 1 ... 16 elements under a map, from that sweep.
inline constexpr std::array<double, 16> kMapCall = {8.44,  8.43,  8.67,  8.67,  8.67,  8.67,
                                                    8.67,  8.44,  10.33, 10.13, 10.71, 10.33,
                                                    10.81, 10.78, 11.62, 10.53};

// V7 to V11: WaferLLM (OSDI'25), on a WSE-2. Rates in tokens a second; the
// paper comes from cycles to seconds with this clock.
inline constexpr double kPaperClock = 1.1e9;
inline constexpr int64_t kTokens = 4096;  // of the prompt, and before the token that is decoded
inline constexpr std::array<int64_t, 3> kDecodeSides = {420, 540, 660};
inline constexpr std::array<int64_t, 3> kDecodeGroups = {21, 27, 30};  // of the tree
inline constexpr std::array<int64_t, 3> kPrefillSides = {480, 600, 720};

struct ModelRates {
  std::string_view name;
  int64_t layers, width, inner;
  bool fitted;  // dsd_setup and divide, on its decode rates
  bool scaled;  // its rates are those of some of its layers, scaled up
  std::array<double, 3> prefill, decode;
};
inline constexpr std::array<ModelRates, 4> kModels = {
    {{"LLaMA3-8B",
      32,
      4096,
      14336,
      true,
      false,
      {20320.6, 25037.2, 27686.5},
      {2699.9, 2501.5, 2243.3}},
     {"LLaMA2-13B",
      40,
      5120,
      13824,
      false,
      false,
      {13685.1, 16854.2, 17498.3},
      {2039.2, 1899.4, 1739.8}},
     {"CodeLLaMA-34B",
      48,
      8192,
      22016,
      true,
      true,
      {5471.4, 7540.1, 8526},
      {1450.8, 1407.7, 1359.2}},
     {"QWen2-72B", 80, 8192, 29568, false, true, {2785.2, 3775.5, 4421.6}, {839.7, 824.3, 787.1}}}};

// A vector of K by a matrix of K x K in fp16, on squares of PEs and groups that the paper does not
// name; cycles.
struct VectorPoint {
  int64_t size;
  double cycles;
};
inline constexpr std::array<VectorPoint, 2> kVectors = {{{16384, 1320}, {32768, 2233}}};

// New tokens a second of LLaMA3-8B, prompt included. The paper's search for grids gave these two;
// the published configuration of the second has 18 groups.
struct EndToEndPoint {
  int64_t tokens, fresh;
  double rate;
};
inline constexpr std::array<EndToEndPoint, 4> kEndToEnd = {
    {{2048, 128, 764.4}, {4096, 128, 604.4}, {2048, 2048, 2370.3}, {4096, 4096, 2459.0}}};
inline constexpr int64_t kEndToEndPrefillSide = 660, kEndToEndDecodeSide = 360, kEndToEndGroup = 20;

// Tokens that caches hold, on a mesh of 360 rows.
struct CachePoint {
  std::string_view name;
  int64_t layers, width, heads, kv_heads, inner;
  double shifted, concatenated;
};
inline constexpr int64_t kCacheSide = 360;
inline constexpr std::array<CachePoint, 2> kCaches = {
    {{"LLaMA3-8B", 32, 4096, 32, 8, 14336, 137548, 382},
     {"LLaMA2-13B", 40, 5120, 40, 40, 13824, 6168, 16}}};

// V12: "WSE-3 characterization, findings" (luozoupi/FABRICA), with the section of each.
struct Measured {
  std::string_view point, unit, section;
  double value;
};
inline constexpr Measured kOneVector = {"one vector of 4,096 fp16 multiply-adds", "cycles", "10",
                                        1040};
inline constexpr Measured kWhileForm = {"while, 256 x 16 multiply-adds", "cycles", "10", 4617};
inline constexpr Measured kMapForm = {"map, 256 x 16 multiply-adds", "cycles", "10", 2840};
inline constexpr Measured kForMapForm = {"for and map, 16 x 16 x 16 multiply-adds", "cycles", "10",
                                         3032};
inline constexpr Measured kVectorAdd = {"vector addition of 2,048", "cycles", "10k", 514};
inline constexpr Measured kAddAndScalars = {"the same and 256 dependent scalar steps", "cycles",
                                            "10k", 1027};
inline constexpr Measured kReduction = {"reduction of 2,048", "cycles an element", "10d", 2.00};
inline constexpr Measured kDot = {"dot product of 2,048", "cycles an element", "10d", 2.25};
// Elements a cycle: in the simulator and on the machine.
inline constexpr Measured kCopy16 = {"copy, fp16", "elements a cycle", "3", 8.00};
inline constexpr Measured kCopy32 = {"copy, fp32", "elements a cycle", "3", 4.00};
inline constexpr Measured kFmac16 = {"multiply-add, fp16", "elements a cycle", "3", 4.00};
inline constexpr Measured kFmac32 = {"multiply-add, fp32", "elements a cycle", "3", 0.50};
inline constexpr Measured kSiliconCopy16 = {"copy, fp16", "elements a cycle", "3", 4.82};
inline constexpr Measured kSiliconCopy32 = {"copy, fp32", "elements a cycle", "3", 2.44};
inline constexpr Measured kSiliconFmac16 = {"multiply-add, fp16", "elements a cycle", "3", 2.92};
inline constexpr Measured kSiliconFmac32 = {"multiply-add, fp32", "elements a cycle", "3", 0.50};
inline constexpr Measured kHop = {"hop", "cycles", "4", 2.000};
inline constexpr Measured kTurn = {"turn", "cycles", "4", 20};

// Cycles of a message of 8 wavelets over a hop, from its dispatch to the task at the receiver.
inline constexpr Measured kMessage = {"message of 8 wavelets over a hop", "cycles", "10j", 19};

// Whole messages of B wavelets passed on over N hops: their fit to their points (10g).
inline constexpr std::array<int64_t, 4> kRelayHops = {1, 2, 4, 8};
inline constexpr std::array<int64_t, 2> kRelayWavelets = {64, 512};
constexpr double relay_cycles(double hops, double wavelets) {
  return 1.001 * hops * wavelets + 16.1 * hops + 16.5;
}

}  // namespace pfrt::wse::published
