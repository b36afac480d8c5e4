// SPDX-License-Identifier: Apache-2.0
#include "providers/cpu/kernels/recurrent/layer.h"

#include <initializer_list>
#include <string_view>

#include "providers/cpu/kernel/kernel.h"
#include "providers/cpu/kernel/signature.h"

namespace pfrt::cpu {
namespace {

Status read_options(const SnapshotNode& node, Layer& layer) {
  const bool lstm = node.op() == "LSTM" || node.op() == "DynamicQuantizeLSTM";
  layer.cell = lstm ? Cell::kLstm : node.op() == "GRU" ? Cell::kGru : Cell::kRnn;
  const std::string_view direction = node.attr_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return kernel_error("direction is '", direction, "': forward, reverse or bidirectional");
  layer.directions = direction == "bidirectional" ? 2 : 1;
  layer.reverse = direction == "reverse";
  layer.batch_first = node.attr_int("layout", 0) != 0;
  layer.linear_before_reset = node.attr_int("linear_before_reset", 0) != 0;
  layer.input_forget = node.attr_int("input_forget", 0) != 0;
  layer.clip = static_cast<double>(node.attr_float("clip", 0));
  if (!(layer.clip >= 0)) return kernel_error("clip is ", layer.clip, ": 0 (none) or greater");
  const size_t activations = layer.cell == Cell::kLstm ? 3 : layer.cell == Cell::kGru ? 2 : 1;
  PFRT_ASSIGN(layer.all_activations,
              activations_of(node, activations * static_cast<size_t>(layer.directions)));
  return {};
}

Status check_input(const SnapshotNode& node, LayerInput i, pfrt_dtype dtype,
                   std::initializer_list<int64_t> dims) {
  if (!node.has_input(i)) return {};
  if (node.input_dtype(i) != dtype)
    return error(Code::kDTYPE_MISMATCH, "input ", static_cast<uint32_t>(i), " is ",
                 dtype_name(node.input_dtype(i)), ": ", dtype_name(dtype));
  if (node.input_rank(i) >= 0 && same_dims(node.input_dims(i), dims)) return {};
  return kernel_error("input ", static_cast<uint32_t>(i), " has dimensions ",
                      dims_text(node.input_dims(i)), ": ", dims_text(dims));
}

Status check_output(const SnapshotNode& node, uint32_t i, pfrt_dtype dtype,
                    std::initializer_list<int64_t> dims) {
  if (!node.has_output(i)) return {};
  if (node.output_dtype(i) != dtype)
    return error(Code::kDTYPE_MISMATCH, "output ", i, " is ", dtype_name(node.output_dtype(i)),
                 ": ", dtype_name(dtype));
  return need_output_dims(node, i, dims);
}

}  // namespace

Result<Layer> Layer::make(const SnapshotNode& node) {
  PFRT_TRY(need(node, 3, 0));
  Layer layer;
  PFRT_TRY(read_options(node, layer));
  const auto x = node.input_dims(kInputX), r = node.input_dims(kInputR);
  if (x.size() != 3 || r.size() != 3)
    return kernel_error("X and R need rank 3, found ", x.size(), " and ", r.size());
  layer.dtype = node.input_dtype(kInputX);
  layer.time = x[layer.batch_first ? 1 : 0];
  layer.batch = x[layer.batch_first ? 0 : 1];
  layer.features = x[2];
  // Quantized weights have one column a unit, the others one row.
  const bool quantized = node.op() == "DynamicQuantizeLSTM";
  layer.hidden = r[quantized ? 1 : 2];

  const int64_t d = layer.directions, h = layer.hidden, b = layer.batch, t = layer.time;
  if (h > INT32_MAX) return kernel_error("a hidden size of ", h, " is too large");
  const int64_t rows = layer.gates() * h;
  const int64_t f = layer.features;
  if (quantized) {
    PFRT_TRY(check_input(node, kInputW, node.input_dtype(kInputW), {d, f, rows}));
    PFRT_TRY(check_input(node, kInputR, node.input_dtype(kInputR), {d, h, rows}));
  } else {
    PFRT_TRY(check_input(node, kInputW, layer.dtype, {d, rows, f}));
    PFRT_TRY(check_input(node, kInputR, layer.dtype, {d, rows, h}));
  }
  PFRT_TRY(check_input(node, kInputB, layer.dtype, {d, 2 * rows}));
  PFRT_TRY(check_input(node, kInputLengths, PFRT_DTYPE_INT32, {b}));
  const bool first = layer.batch_first;
  const std::initializer_list<int64_t> state = {first ? b : d, first ? d : b, h};
  PFRT_TRY(check_input(node, kInputHidden, layer.dtype, state));
  uint32_t inputs = kInputHidden + 1;
  if (layer.cell == Cell::kLstm) {
    PFRT_TRY(check_input(node, kInputCell, layer.dtype, state));
    PFRT_TRY(check_input(node, kInputPeepholes, layer.dtype, {d, 3 * h}));
    inputs = kInputPeepholes + 1;
  }
  for (uint32_t i = 0; i < inputs; ++i)
    if (node.has_input(i)) layer.inputs |= uint32_t{1} << i;
  PFRT_TRY(check_output(node, 0, layer.dtype, {first ? b : t, first ? t : d, first ? d : b, h}));
  PFRT_TRY(check_output(node, 1, layer.dtype, state));
  PFRT_TRY(check_output(node, 2, layer.dtype, state));
  const uint32_t outputs = layer.cell == Cell::kLstm ? 3 : 2;
  for (uint32_t i = 0; i < outputs; ++i) layer.wanted[i] = node.has_output(i);
  return layer;
}

}  // namespace pfrt::cpu
