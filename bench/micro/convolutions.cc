// SPDX-License-Identifier: Apache-2.0
#include "bench/micro/micro.h"

namespace micro {

void add_convolutions() {
  struct Shape {
    int64_t in, size, out, kernel, stride, groups;
  };
  // Convolutions of ResNet-50, MobileNet and Inception, and first layers.
  constexpr Shape kShapes[] = {
      {3, 224, 64, 7, 2, 1},     {3, 224, 32, 3, 2, 1},     {64, 56, 64, 1, 1, 1},
      {64, 56, 64, 3, 1, 1},     {64, 56, 256, 1, 1, 1},    {256, 56, 128, 1, 2, 1},
      {128, 28, 128, 3, 1, 1},   {512, 28, 128, 1, 1, 1},   {256, 14, 256, 3, 1, 1},
      {256, 14, 1024, 1, 1, 1},  {1024, 14, 256, 1, 1, 1},  {512, 7, 512, 3, 1, 1},
      {512, 7, 2048, 1, 1, 1},   {2048, 7, 512, 1, 1, 1},   {32, 112, 32, 3, 1, 32},
      {144, 56, 144, 3, 2, 144}, {576, 14, 576, 3, 1, 576}, {24, 56, 144, 1, 1, 1},
      {64, 28, 96, 5, 1, 1},
  };
  for (const Shape& s : kShapes) {
    const int64_t pad = s.kernel / 2, side = (s.size + 2 * pad - s.kernel) / s.stride + 1;
    add({"",
         "Conv",
         {{1, s.in, s.size, s.size}, {s.out, s.in / s.groups, s.kernel, s.kernel}},
         {false, true},
         {1, s.out, side, side},
         {{"kernel_shape", {s.kernel, s.kernel}},
          {"strides", {s.stride, s.stride}},
          {"pads", {pad, pad, pad, pad}},
          {"group", {s.groups}}},
         std::to_string(s.in) + "x" + std::to_string(s.size) + "->" + std::to_string(s.out) + "/" +
             std::to_string(s.kernel) + "x" + std::to_string(s.kernel) + "/" +
             std::to_string(s.stride) + (s.groups > 1 ? "/depthwise" : "")});
  }
}

}  // namespace micro
