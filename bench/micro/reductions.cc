// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {
namespace {

void add_reduction(const char* op, const Dims& dims, const Dims& axes) {
  Node node;
  node.op = op;
  node.inputs = {dims};
  node.output = dims;
  node.indices = axes;
  for (const int64_t axis : axes) node.output[static_cast<size_t>(axis)] = 1;
  for (const int64_t d : dims) node.shape += (node.shape.empty() ? "" : "x") + std::to_string(d);
  for (const int64_t axis : axes) node.shape += "_" + std::to_string(axis);
  add(node);
}

}  // namespace

void add_reductions() {
  // Planes of squeeze-and-excite and of global response normalisation.
  for (const Dims& image :
       {Dims{1, 16, 112, 112}, Dims{1, 96, 56, 56}, Dims{1, 240, 14, 14}, Dims{1, 960, 7, 7}}) {
    add_reduction("ReduceMean", image, {2, 3});
    add_reduction("ReduceL2", image, {2, 3});
  }
  // Tokens, features, short rows, and sums over the first axis.
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceSumSquare"}) {
    add_reduction(op, {8, 197, 384}, {1});
    add_reduction(op, {8, 197, 384}, {2});
    add_reduction(op, {1, 49, 96}, {2});
    add_reduction(op, {64, 1024}, {0});
  }
  for (const int64_t width : {4, 8, 16, 31, 64}) add_reduction("ReduceSum", {4096, width}, {1});
  add_reduction("ReduceSum", {2, 3, 4, 5, 6}, {1, 3});
  add_reduction("ReduceSum", {16, 12, 64, 64}, {0, 2});
  add_reduction("ReduceSum", {1, 224, 224, 3}, {1, 2});
  add_reduction("ReduceSum", {64, 128, 1024}, {0, 1, 2});
  add_reduction("ReduceSum", {8192, 4096}, {0});
  add_reduction("ReduceProd", {1024, 64}, {1});
  for (const auto& [rows, width] : {std::pair<int64_t, int64_t>{1536, 128}, {1, 50257}})
    add({"",
         "LogSoftmax",
         {{rows, width}},
         {},
         {rows, width},
         {{"axis", {-1}}},
         std::to_string(rows) + "x" + std::to_string(width)});
  add({"", "Mod", {{64, 1024}, {64, 1024}}, {}, {64, 1024}, {{"fmod", {1}}}, "64x1024"});
}

}  // namespace micro
