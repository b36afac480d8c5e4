// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/conv/geometry.h"

#include <algorithm>

#include "providers/cpu/elements/load.h"
#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {
namespace {

Status check_tensors(const SnapshotNode& node, uint32_t x, uint32_t w) {
  PFRT_TRY(need(node, 0, 1));
  for (const uint32_t i : {x, w})
    if (!node.has_input(i) || node.input_rank(i) < 3 || node.input_elements(i) < 0)
      return kernel_error("input ", i, " must have a batch, channels and spatial dimensions");
  if (node.input_rank(x) != node.input_rank(w) || node.output_rank(0) != node.input_rank(x))
    return kernel_error("X, W and Y must have one rank, found ", node.input_rank(x), ", ",
                        node.input_rank(w), " and ", node.output_rank(0));
  return Status();
}

Status check_kernel_shape(const SnapshotNode& node, std::span<const int64_t> kernel) {
  const auto given = node.attr_ints("kernel_shape");
  if (given.empty() || same_dims(given, kernel)) return Status();
  return kernel_error("kernel_shape differs from the dimensions of W");
}

}  // namespace

double ConvGeometry::flops() const {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(groups) *
         static_cast<double>(group_out) * static_cast<double>(depth()) *
         static_cast<double>(window.position_count());
}

Result<ConvGeometry> conv_geometry(const SnapshotNode& node, uint32_t x, uint32_t w) {
  PFRT_TRY(check_tensors(node, x, w));
  const auto in = node.input_dims(x), weights = node.input_dims(w), out = node.output_dims(0);
  ConvGeometry g;
  g.batch = in[0];
  g.groups = node.attr_int("group", 1);
  g.group_in = weights[1];
  if (g.groups < 1 || in[1] != g.groups * g.group_in || weights[0] % g.groups != 0)
    return kernel_error(g.groups, " groups do not fit ", in[1], " channels and weights for ",
                        weights[0], " x ", weights[1]);
  g.group_out = weights[0] / g.groups;
  if (out[0] != g.batch || out[1] != weights[0])
    return kernel_error("Y was planned with ", out[0], " x ", out[1], " planes, expected ", g.batch,
                        " x ", weights[0]);
  PFRT_TRY(check_kernel_shape(node, weights.subspan(2)));
  PFRT_ASSIGN(g.window, Window::make(node, in.subspan(2), out.subspan(2), weights.subspan(2)));
  return g;
}

Result<ConvGeometry> one_type_conv_geometry(const SnapshotNode& node) {
  PFRT_ASSIGN(ConvGeometry g, conv_geometry(node, 0, 1));
  PFRT_TRY(need_types(node, {1, 2}, Types{node.input_dtype(0)}));
  PFRT_TRY(check_bias(node, 2, g.groups * g.group_out));
  return g;
}

pfrt_code fail_unpacked(const Run& run, std::string_view kernel) {
  return run.fail(Code::kINTERNAL, kernel,
                  ": the weights were not packed when the session was made; has PFRT_ISA changed "
                  "since?");
}

Result<ConvGeometry> transposed_geometry(const SnapshotNode& node) {
  PFRT_TRY(check_tensors(node, 0, 1));
  const auto in = node.input_dims(0), weights = node.input_dims(1), out = node.output_dims(0);
  ConvGeometry g;
  g.batch = in[0];
  g.groups = node.attr_int("group", 1);
  g.group_out = weights[1];
  if (g.groups < 1 || weights[0] != in[1] || in[1] % g.groups != 0)
    return kernel_error(g.groups, " groups do not fit ", in[1], " channels and weights for ",
                        weights[0], " x ", weights[1]);
  g.group_in = in[1] / g.groups;
  if (out[0] != g.batch || out[1] != g.groups * g.group_out)
    return kernel_error("Y was planned with ", out[0], " x ", out[1], " planes, expected ", g.batch,
                        " x ", g.groups * g.group_out);
  PFRT_TRY(check_kernel_shape(node, weights.subspan(2)));
  PFRT_ASSIGN(g.window, Window::make(node, out.subspan(2), in.subspan(2), weights.subspan(2)));
  // With a given output shape, or SAME, the pads are what is left over.
  const std::string_view auto_pad = node.attr_string("auto_pad", "NOTSET");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && node.attr_ints("output_shape").empty()) return g;
  const auto extra = node.attr_ints("output_padding");
  Window& w = g.window;
  for (size_t d = 0; d < w.rank(); ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilations[d] + 1;
    const int64_t full =
        w.strides[d] * (w.positions[d] - 1) + (d < extra.size() ? extra[d] : 0) + reach;
    const int64_t total = std::max<int64_t>(full - w.image[d], 0);
    w.pads[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.end_pads[d] = total - w.pads[d];
  }
  return g;
}

Window two_dimensional(Window w) {
  if (w.rank() == 2) return w;
  for (auto* list : {&w.image, &w.positions, &w.kernel, &w.strides, &w.dilations})
    list->insert(list->begin(), 1);
  for (auto* list : {&w.pads, &w.end_pads}) list->insert(list->begin(), 0);
  return w;
}

Window along_rows(Window w) {
  w = two_dimensional(std::move(w));
  if (w.image[1] != 1 || w.kernel[1] != 1 || w.positions[1] != 1 || w.pads[1] != 0) return w;
  for (auto* list :
       {&w.image, &w.positions, &w.kernel, &w.strides, &w.dilations, &w.pads, &w.end_pads})
    std::swap((*list)[0], (*list)[1]);
  return w;
}

Status check_bias(const SnapshotNode& node, uint32_t i, int64_t channels) {
  if (!node.has_input(i) || node.input_elements(i) == channels) return Status();
  return kernel_error("the bias must hold ", channels, " elements, found ", node.input_elements(i));
}

}  // namespace pfrt::cpu
