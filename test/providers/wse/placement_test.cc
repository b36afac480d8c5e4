// SPDX-License-Identifier: Apache-2.0
//
// Places of layers: side by side without overlap where there is room, one after another where there
// is none, and an error that a person can act on where a layer has no place at all.
#include "providers/wse/place/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "test/providers/wse/values.h"

namespace pfrt::wse::test {
namespace {

Target target_of(int64_t columns, int64_t rows, Chips chips = {}) {
  Target out;
  out.machine = machine_of("wse2");
  out.fabric = {0, 0, columns, rows};
  out.chips = chips;
  return out;
}

Layer product_layer(std::string name, int64_t m, int64_t k, int64_t n) {
  Layer out;
  out.name = std::move(name);
  out.op = "MatMul";
  out.m = m;
  out.k = k;
  out.n = n;
  out.constant_b = true;
  out.inputs = m * k;
  out.outputs = m * n;
  out.weights = k * n;
  return out;
}

Layer element_layer(std::string name, std::string_view op, int64_t count, int64_t weights = 0) {
  Layer out;
  out.name = std::move(name);
  out.op = op;
  out.row = find_operator("", op);
  EXPECT_NE(out.row, nullptr) << op;
  out.inputs = out.outputs = count;
  out.weights = weights;
  return out;
}

// Makes each layer read the one before it.
std::vector<Layer> in_a_chain(std::vector<Layer> layers) {
  for (uint32_t i = 1; i < layers.size(); ++i) layers[i].reads = {i - 1};
  return layers;
}

// Returns |count| products of a vector with 512 x 512 in fp16, each of which takes at least 4 x 4
// PEs.
std::vector<Layer> products(int count) {
  std::vector<Layer> out;
  for (int i = 0; i < count; ++i) out.push_back(product_layer(message("p", i), 1, 512, 512));
  return in_a_chain(std::move(out));
}

// Size of a fabric for 16 of them, with the PEs between them that streams take.
constexpr int64_t kColumns = 21, kRows = 20;

Placement placed(const Target& target, const std::vector<Layer>& layers) {
  uint32_t layer = 0;
  Result<Placement> out = place(target, layers, &layer);
  EXPECT_TRUE(out.ok()) << out.status().message();
  return out.ok() ? out.take() : Placement();
}

bool overlap(const Rect& a, const Rect& b) {
  return a.x < b.x + b.columns && b.x < a.x + a.columns && a.y < b.y + b.rows && b.y < a.y + a.rows;
}

// Checks the rules of every placement.
void expect_sound(const Target& target, const Placement& plan, size_t layers) {
  ASSERT_EQ(plan.layers.size(), layers);
  ASSERT_EQ(plan.mappings.size(), layers);
  ASSERT_EQ(plan.stage_of.size(), layers);
  uint32_t next = 0;
  double cycles = 0, slowest = 0;
  for (uint32_t s = 0; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[s];
    const Rect& rect = stage.rect;
    EXPECT_EQ(rect.columns, rect.rows);
    EXPECT_GE(rect.x, target.fabric.x);
    EXPECT_GE(rect.y, target.fabric.y);
    EXPECT_LE(rect.x + rect.columns, target.fabric.x + target.fabric.columns);
    EXPECT_LE(rect.y + rect.rows, target.fabric.y + target.fabric.rows);
    EXPECT_GE(stage.chip, 0);
    EXPECT_LT(stage.chip, target.chips.count());
    int64_t weights = 0, buffers = 0;
    double own = 0;
    for (const uint32_t i : stage.layers) {
      EXPECT_EQ(i, next++) << "in the order in which they run";
      EXPECT_EQ(plan.stage_of[i], s);
      EXPECT_EQ(plan.mappings[i].side, rect.columns);
      weights += plan.mappings[i].weight_bytes;
      buffers = std::max(buffers, plan.mappings[i].buffer_bytes);
      own += plan.mappings[i].cycles;
    }
    EXPECT_LE(weights + buffers, target.machine.data_bytes());
    EXPECT_DOUBLE_EQ(stage.cycles, own);
    EXPECT_GT(stage.cycles, 0);
    cycles += stage.cycles + stage.transfer_cycles + stage.host_cycles;
    slowest = std::max(slowest, stage.cycles + stage.transfer_cycles);
    for (uint32_t o = 0; o < s && !plan.streaming; ++o)
      EXPECT_FALSE(plan.stages[o].chip == stage.chip && overlap(plan.stages[o].rect, rect))
          << o << " and " << s;
  }
  EXPECT_EQ(next, layers);
  EXPECT_DOUBLE_EQ(plan.cycles(), cycles);
  EXPECT_DOUBLE_EQ(plan.slowest(), plan.streaming ? cycles : slowest);
}

TEST(Placement, layers_that_fit_lie_side_by_side_without_overlap) {
  const Target target = target_of(750, 994);
  const std::vector<Layer> layers = products(9);
  const Placement plan = placed(target, layers);
  expect_sound(target, plan, layers.size());
  EXPECT_FALSE(plan.streaming);
  EXPECT_EQ(plan.remedy, "");
  EXPECT_EQ(plan.stages.size(), layers.size());
  EXPECT_EQ(plan.chips_used(), 1);
  EXPECT_EQ(plan.elements_between_chips, 0);
}

TEST(Placement, a_fabric_of_any_shape_is_filled_within_its_rim) {
  for (const auto& [columns, rows] : std::vector<std::pair<int64_t, int64_t>>{
           {4, 100}, {16, 16}, {17, 19}, {33, 9}, {5, 7}, {100, 90}})
    for (const int count : {1, 5, 40}) {
      SCOPED_TRACE(message(columns, "x", rows, ", ", count, " layers"));
      Target target = target_of(columns, rows);
      target.fabric.x = 3;
      target.fabric.y = 2;
      const std::vector<Layer> layers = products(count);
      const Placement plan = placed(target, layers);
      expect_sound(target, plan, layers.size());
      EXPECT_EQ(plan.streaming, !plan.remedy.empty());
    }
}

TEST(Placement, what_follows_a_product_stays_on_its_pes) {
  const Target target = target_of(100, 100);
  const std::vector<Layer> layers =
      in_a_chain({element_layer("first", "Relu", 512), product_layer("a", 4, 512, 512),
                  element_layer("bias", "Add", 2048), element_layer("act", "Relu", 2048),
                  product_layer("b", 4, 512, 512), element_layer("last", "Softmax", 2048)});
  const Placement plan = placed(target, layers);
  expect_sound(target, plan, layers.size());
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stage_of, (std::vector<uint32_t>{0, 0, 0, 0, 1, 1}));
  EXPECT_GT(plan.stages[0].transfer_cycles, 0);
  EXPECT_EQ(plan.stages[1].transfer_cycles, 0);
}

TEST(Placement, nothing_to_place_takes_nothing) {
  const Placement plan = placed(target_of(10, 10), {});
  EXPECT_TRUE(plan.stages.empty());
  EXPECT_EQ(plan.cycles(), 0);
  EXPECT_EQ(plan.slowest(), 0);
  EXPECT_EQ(plan.chips_used(), 0);
}

TEST(Placement, a_model_that_does_not_fit_streams_and_says_what_would_help) {
  const Target target = target_of(kColumns, kRows);
  const Placement fits = placed(target, products(16));
  EXPECT_FALSE(fits.streaming) << fits.remedy;
  const std::vector<Layer> layers = products(20);
  const Placement plan = placed(target, layers);
  expect_sound(target, plan, layers.size());
  EXPECT_TRUE(plan.streaming);
  EXPECT_TRUE(contains(plan.remedy, "20 layers")) << plan.remedy;
  EXPECT_TRUE(contains(plan.remedy, "2 chips (chips=WxH)")) << plan.remedy;
  EXPECT_EQ(plan.chips_used(), 1);
  const Machine& m = target.machine;
  // Each channel moves an element in a word, which is slower than the host's bytes per second.
  const double words = 512.0 * 512.0 / (m.h2d_words * m.channels);
  EXPECT_GT(words, 6 * 512.0 * 512.0 * 2.0 / m.host_bytes_per_second * m.clock_hz);
  for (const Stage& stage : plan.stages) EXPECT_DOUBLE_EQ(stage.host_cycles, words);
}

// The model needs fewer PEs than there are and still has no room; the error gives the obstacle.
TEST(Placement, a_model_that_needs_fewer_pes_than_there_are_says_what_is_in_the_way) {
  const Machine m = machine_of("wse2");
  // Weights that need squares of 48 PEs a side: two fit beside each other, and there is no second
  // shelf.
  const auto filling = [&](const char* name, int64_t side) {
    const auto width = static_cast<int64_t>(
        std::sqrt(static_cast<double>(m.data_bytes() / 2 * side * side)) * 0.97);
    return product_layer(name, 1, width, width);
  };
  const std::vector<Layer> layers =
      in_a_chain({filling("first", 40), filling("second", 40), filling("third", 40)});
  const Placement plan = placed(target_of(140, 60), layers);
  EXPECT_TRUE(plan.streaming);
  EXPECT_TRUE(contains(plan.remedy, "stand in shelves")) << plan.remedy;
  EXPECT_TRUE(contains(plan.remedy, "finds no room beside those before it")) << plan.remedy;
  EXPECT_TRUE(contains(plan.remedy, "chips (chips=WxH)")) << plan.remedy;
}

TEST(Placement, streaming_that_was_asked_for_needs_no_remedy) {
  Target target = target_of(100, 100);
  target.execution = Execution::kStreaming;
  const Placement plan = placed(target, products(3));
  expect_sound(target, plan, 3);
  EXPECT_TRUE(plan.streaming);
  EXPECT_EQ(plan.remedy, "");
  EXPECT_GT(plan.stages[0].host_cycles, 0);
}

TEST(Placement, a_pipeline_that_does_not_fit_is_refused_with_what_would_help) {
  Target target = target_of(kColumns, kRows);
  target.execution = Execution::kPipelined;
  expect_sound(target, placed(target, products(16)), 16);
  uint32_t layer = 99;
  const Result<Placement> out = place(target, products(20), &layer);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kUNSUPPORTED);
  EXPECT_EQ(layer, 0U);
  EXPECT_TRUE(contains(out.status().message(), "chips=WxH")) << out.status().message();
}

// Reads the number in "needs N B per PE".
int64_t bytes_needed(const std::string& text) {
  const std::string before = "does not fit: needs ";
  size_t at = text.find(before);
  int64_t out = 0;
  if (at == std::string::npos) return -1;
  for (at += before.size(); at < text.size() && text[at] != ' '; ++at)
    if (text[at] != ',') out = out * 10 + (text[at] - '0');
  return text.substr(at).starts_with(" B per PE") ? out : -1;
}

TEST(Placement, a_layer_too_large_for_any_rectangle_is_refused_with_its_bytes) {
  for (const auto execution : {Execution::kAuto, Execution::kPipelined, Execution::kStreaming}) {
    Target target = target_of(8, 6);
    target.execution = execution;
    std::vector<Layer> layers = products(2);
    layers.insert(layers.begin() + 1, product_layer("huge", 1, 4096, 4096));
    uint32_t layer = 99;
    const Result<Placement> out = place(target, layers, &layer);
    ASSERT_FALSE(out.ok());
    EXPECT_EQ(out.status().code(), Code::kUNSUPPORTED);
    EXPECT_EQ(layer, 1U);
    const std::string& text = out.status().message();
    EXPECT_TRUE(contains(text, "layer 'huge' does not fit: needs ")) << text;
    EXPECT_TRUE(contains(text, "on rectangle 6x6")) << text;
    EXPECT_TRUE(contains(text, "limit 49,152 B")) << text;
    const Mapping mapping = map_layer(target.machine, target.arithmetic, layers[1], 6);
    EXPECT_EQ(bytes_needed(text), mapping.bytes() + 5776) << text;
    EXPECT_GT(bytes_needed(text), 49152);
  }
}

TEST(Placement, an_elementwise_layer_too_large_is_refused_too) {
  uint32_t layer = 99;
  const Result<Placement> out =
      place(target_of(4, 4), {element_layer("wide", "Relu", 10'000'000)}, &layer);
  ASSERT_FALSE(out.ok());
  EXPECT_EQ(out.status().code(), Code::kUNSUPPORTED);
  EXPECT_EQ(layer, 0U);
  EXPECT_GT(bytes_needed(out.status().message()), 49152) << out.status().message();
}

// Each layer fits on the PEs of the stage, but not all together. They get stages of their own, or
// the refusal names more bytes than there are.
TEST(Placement, layers_that_fit_alone_but_not_together_are_not_refused_with_less_than_the_limit) {
  const Target target = target_of(4, 4);
  // Each PE holds 30,000 B of weights.
  const std::vector<Layer> layers = {product_layer("a", 1, 480, 480),
                                     element_layer("scale", "Mul", 480, 240000)};
  for (const Layer& layer : layers)
    ASSERT_LE(map_layer(target.machine, target.arithmetic, layer, 4).bytes(),
              target.machine.data_bytes());
  uint32_t failed = 99;
  const Result<Placement> out = place(target, layers, &failed);
  if (out.ok()) return expect_sound(target, out.value(), layers.size());
  EXPECT_EQ(out.status().code(), Code::kUNSUPPORTED);
  EXPECT_GT(bytes_needed(out.status().message()), 49152) << out.status().message();
}

TEST(Placement, chips_take_what_one_has_no_room_for) {
  for (const auto& [columns, rows] :
       std::vector<std::pair<int64_t, int64_t>>{{2, 1}, {1, 2}, {2, 2}, {1, 3}}) {
    const Target target =
        target_of(kColumns, kRows, {.columns = columns, .rows = rows, .latency_seconds = 1e-6});
    const std::vector<Layer> layers = products(20);
    const Placement plan = placed(target, layers);
    SCOPED_TRACE(message(columns, "x", rows));
    expect_sound(target, plan, layers.size());
    EXPECT_FALSE(plan.streaming);
    EXPECT_EQ(plan.remedy, "");
    EXPECT_GE(plan.chips_used(), 2);
    EXPECT_LE(plan.chips_used(), target.chips.count());
    double between = 0;
    for (size_t i = 0; i + 1 < plan.stages.size(); ++i) {
      EXPECT_LE(plan.stages[i].chip, plan.stages[i + 1].chip);
      if (plan.stages[i].chip == plan.stages[i + 1].chip) continue;
      between += 512;
      const double seconds =
          target.chips.transfer(plan.stages[i].chip, plan.stages[i + 1].chip, 512 * 2);
      EXPECT_DOUBLE_EQ(plan.stages[i].transfer_cycles, seconds * target.machine.clock_hz);
    }
    EXPECT_EQ(plan.elements_between_chips, between) << "512 elements at each border";
  }
}

TEST(Placement, links_between_chips_are_those_of_their_grid) {
  const Chips chips{.columns = 3, .rows = 2, .bytes_per_second = 1e9, .latency_seconds = 1e-6};
  EXPECT_EQ(chips.count(), 6);
  EXPECT_EQ(chips.distance(0, 0), 0);
  EXPECT_EQ(chips.distance(0, 2), 2);
  EXPECT_EQ(chips.distance(2, 3), 3);
  EXPECT_EQ(chips.distance(1, 4), 1);
  EXPECT_EQ(chips.transfer(4, 4, 1e9), 0);
  EXPECT_DOUBLE_EQ(chips.transfer(2, 3, 1e6), 1e-3 + 3e-6);
}

TEST(Placement, a_chips_memory_bounds_what_lies_on_it) {
  Chips chips{.columns = 2, .rows = 2};
  const int64_t pe_bytes = machine_of("wse2").data_bytes();
  chips.memory_bytes = 64 * pe_bytes;
  const Target target = target_of(100, 100, chips);
  const std::vector<Layer> layers = products(10);
  const Placement plan = placed(target, layers);
  expect_sound(target, plan, layers.size());
  EXPECT_FALSE(plan.streaming);
  EXPECT_GE(plan.chips_used(), 3);
  std::map<int64_t, int64_t> bytes;
  for (const Stage& stage : plan.stages)
    bytes[stage.chip] += stage.rect.columns * stage.rect.rows * pe_bytes;
  for (const auto& [chip, used] : bytes) EXPECT_LE(used, chips.memory_bytes) << chip;
}

TEST(Placement, a_model_that_a_chips_memory_has_no_room_for_streams) {
  Chips chips;
  chips.memory_bytes = 64 * machine_of("wse2").data_bytes();
  const Target target = target_of(100, 100, chips);
  const Placement plan = placed(target, products(5));
  expect_sound(target, plan, 5);
  EXPECT_TRUE(plan.streaming);
  EXPECT_NE(plan.remedy, "");
}

// "Bytes of a wafer that may be used" also limits layers that run one at a time.
TEST(Placement, layers_that_stream_keep_to_a_chips_memory) {
  Chips chips;
  chips.memory_bytes = 64 * machine_of("wse2").data_bytes();
  const Placement plan = placed(target_of(100, 100, chips), products(5));
  EXPECT_TRUE(plan.streaming);
  for (const Stage& stage : plan.stages)
    EXPECT_LE(stage.rect.columns * stage.rect.rows, 64) << "PEs of a layer";
}

// There are 5 layers of at least 16 PEs each; 64 PEs may be used, on which 4 fit.
TEST(Placement, a_remedy_counts_what_may_be_used) {
  Chips chips;
  chips.memory_bytes = 64 * machine_of("wse2").data_bytes();
  const Placement with_memory = placed(target_of(100, 100, chips), products(5));
  EXPECT_TRUE(contains(with_memory.remedy, "there are 64")) << with_memory.remedy;
  // The number of PEs would do, but not with the room between rectangles.
  const Placement with_room = placed(target_of(kColumns, kRows), products(20));
  EXPECT_FALSE(contains(with_room.remedy, "need 320 PEs") &&
               contains(with_room.remedy, "there are 420"))
      << with_room.remedy;
}

TEST(Placement, rectangles_shrink_where_there_are_many) {
  const Target target = target_of(64, 64);
  const std::vector<Layer> one = {product_layer("p", 64, 512, 512)};
  int64_t last = 1000;
  for (const int count : {1, 4, 16, 64}) {
    const auto layers = in_a_chain(std::vector<Layer>(static_cast<size_t>(count), one[0]));
    const Placement plan = placed(target, layers);
    expect_sound(target, plan, layers.size());
    EXPECT_FALSE(plan.streaming);
    int64_t largest = 0;
    for (const Stage& stage : plan.stages) largest = std::max(largest, stage.rect.columns);
    EXPECT_LE(largest, last) << count;
    if (count == 64) {
      EXPECT_LE(largest, 8);
    }
    last = largest;
  }
}

TEST(Placement, a_layer_alone_has_the_square_that_suits_it) {
  const Target target = target_of(720, 720);
  const Layer layer = product_layer("p", 64, 512, 512);
  const Placement plan = placed(target, {layer});
  for (const int64_t side : {4, 8, 16, 32, 64, 128, 256, 512, 720}) {
    const Mapping mapping = map_layer(target.machine, target.arithmetic, layer, side);
    if (mapping.bytes() > target.machine.data_bytes()) continue;
    EXPECT_LE(plan.stages[0].cycles, mapping.cycles) << side;
  }
}

TEST(Mappings, a_layer_fits_on_larger_squares_once_it_does) {
  const Machine m = machine_of("wse2");
  for (const Layer& layer : {product_layer("p", 64, 512, 512), product_layer("v", 1, 1000, 3000),
                             element_layer("r", "Relu", 100000)}) {
    int64_t last = std::numeric_limits<int64_t>::max();
    for (const int64_t side : {1, 2, 4, 8, 16, 32, 64}) {
      const Mapping mapping = map_layer(m, Arithmetic::kFp16, layer, side);
      EXPECT_EQ(mapping.side, side);
      EXPECT_GT(mapping.cycles, 0);
      EXPECT_LE(mapping.weight_bytes, last) << layer.name << " " << side;
      EXPECT_GE(mapping.utilisation(layer, m, Arithmetic::kFp16), 0);
      EXPECT_LE(mapping.utilisation(layer, m, Arithmetic::kFp16), 1) << layer.name << " " << side;
      last = mapping.weight_bytes;
    }
  }
}

TEST(Mappings, wider_numbers_take_more_bytes) {
  const Machine m = machine_of("wse2");
  const Layer layer = product_layer("p", 64, 512, 512);
  const Mapping narrow = map_layer(m, Arithmetic::kFp16, layer, 16),
                wide = map_layer(m, Arithmetic::kFp32, layer, 16);
  EXPECT_EQ(wide.weight_bytes, 2 * narrow.weight_bytes);
  EXPECT_GT(wide.cycles, narrow.cycles);
}

TEST(Mappings, numbers_are_written_with_commas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(58240), "58,240");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-1000), "-1,000");
}

TEST(Mappings, a_refusal_may_say_from_where_a_layer_fits) {
  const Target target = target_of(750, 994);
  const Layer layer = product_layer("p", 1, 4096, 4096);
  const Mapping mapping = map_layer(target.machine, target.arithmetic, layer, 8);
  EXPECT_TRUE(contains(does_not_fit(target, layer, mapping, 32), "Fits from 32x32."));
  EXPECT_TRUE(contains(does_not_fit(target, layer, mapping, 0), "no rectangle"));
}

}  // namespace
}  // namespace pfrt::wse::test
