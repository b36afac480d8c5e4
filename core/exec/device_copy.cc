// SPDX-License-Identifier: Apache-2.0
#include "core/exec/device_copy.h"

#include <new>
#include <utility>

namespace pfrt {

Status copy_to_host(const std::vector<ValuePtr*>& values, const RunControl& control) {
  Transfers transfers;
  std::vector<std::pair<ValuePtr*, ValuePtr>> moved;
  for (ValuePtr* value : values) {
    if (!*value || (*value)->kind != PFRT_VALUE_TENSOR || !(*value)->tensor.device()) continue;
    const Tensor& there = (*value)->tensor;
    PFRT_ASSIGN(Tensor here, Tensor::allocate(there.dtype, there.dims, false));
    transfers.add(here.data(), nullptr, there.data(), there.device(), there.bytes());
    moved.emplace_back(value, Value::of(std::move(here)));
  }
  if (transfers.empty() && moved.empty()) return {};
  PFRT_TRY(transfers.run(control.devices, control.stopper()));
  for (auto& [value, here] : moved) *value = std::move(here);
  return {};
}

namespace {

Status place_outputs(const std::vector<OutputRequest>& requests, std::vector<ValuePtr>& outputs,
                     const RunControl& control) {
  Transfers transfers;
  std::vector<std::pair<size_t, ValuePtr>> moved;
  for (size_t i = 0; i < requests.size() && i < outputs.size(); ++i) {
    const OutputRequest& request = requests[i];
    if (!request.wanted || outputs[i]->kind != PFRT_VALUE_TENSOR) continue;
    const Tensor& from = outputs[i]->tensor;
    Tensor to;
    if (request.data && !request.at_most) {
      const bool both_host = !request.device() && !from.device();
      const bool there = request.data == from.data() && request.device() == from.device();
      // A request that does not fit is refused by the code that gets it.
      if (both_host || there || request.bytes != from.bytes() || from.dtype == PFRT_DTYPE_STRING)
        continue;
      to.dtype = from.dtype;
      to.dims = from.dims;
      if (request.buffer) {
        to.buffer = request.buffer;
        to.offset = static_cast<uint64_t>(static_cast<char*>(request.data) -
                                          static_cast<char*>(request.buffer->data()));
      } else {
        PFRT_ASSIGN(to.buffer, Buffer::wrap(request.data, request.bytes, {}));
      }
    } else if (from.device() && !request.on_device) {
      PFRT_ASSIGN(to, Tensor::allocate(from.dtype, from.dims, false));
    } else {
      continue;
    }
    transfers.add(to.data(), to.device(), from.data(), from.device(), from.bytes());
    moved.emplace_back(i, Value::of(std::move(to)));
    if (request.in_place) control.overwrote_input = true;
  }
  if (moved.empty()) return {};
  PFRT_TRY(transfers.run(control.devices, control.stopper()));
  for (auto& [i, value] : moved) outputs[i] = std::move(value);
  return {};
}

}  // namespace

Status run_and_copy_back(RunnableGraph& graph, std::vector<ValuePtr> inputs,
                         const std::vector<OutputRequest>& requests, const RunControl& control,
                         std::vector<ValuePtr>& outputs) {
  Status status;
  try {
    status = graph.run(std::move(inputs), requests, control, outputs);
    if (status.ok()) status = place_outputs(requests, outputs, control);
  } catch (const std::bad_alloc&) {  // devices may be closed once the run is over
    if (!control.devices.idle()) (void)control.devices.finish(control.stopper()).ok();
    throw;
  }
  if (control.devices.idle()) return status;
  Status finished = control.devices.finish(control.stopper());
  return status.ok() ? finished : status;
}

}  // namespace pfrt
