// SPDX-License-Identifier: Apache-2.0
#include "providers/kit/host_structs.h"

namespace pfrt {
namespace {

constexpr pfrt_compile_hints kKnownHints =
    PFRT_COMPILE_RUN_ONCE | PFRT_COMPILE_PLAIN | PFRT_COMPILE_FAST | PFRT_COMPILE_BF16 |
    PFRT_COMPILE_TUNE | PFRT_COMPILE_APART | PFRT_COMPILE_BATCH;

Status check_hints(pfrt_compile_hints hints) {
  return hints & ~kKnownHints ? abi::unknown_flags("pfrt_region", hints & ~kKnownHints) : Status();
}

template <typename T>
const T& at(const T* array, size_t size, size_t i) {
  return *static_cast<const T*>(pfrt_at(array, size, i));
}

}  // namespace

Status check_host(const pfrt_snapshot& snapshot) {
  PFRT_TRY(abi::check(snapshot));
  PFRT_TRY(abi::check_elements(snapshot.nodes, snapshot.node_size, snapshot.node_count));
  PFRT_TRY(abi::check_elements(snapshot.values, snapshot.value_size, snapshot.value_count));
  if (snapshot.attr_size == sizeof(pfrt_snapshot_attr)) return {};
  for (uint32_t n = 0; n < snapshot.node_count; ++n) {
    const pfrt_snapshot_node& node = at(snapshot.nodes, snapshot.node_size, n);
    PFRT_TRY(abi::check_elements(node.attrs, snapshot.attr_size, node.attr_count));
  }
  return {};
}

Status check_host(const HostRegions& regions) {
  const pfrt_snapshot* last = nullptr;
  for (size_t r = 0; r < regions.count; ++r) {
    const pfrt_region& region = at(regions.regions, regions.size, r);
    PFRT_TRY(abi::check(region));
    PFRT_TRY(check_hints(region.hints));
    for (uint32_t n = 0; region.node_hints != nullptr && n < region.node_count; ++n)
      PFRT_TRY(check_hints(region.node_hints[n]));
    if (region.snapshot != last) PFRT_TRY(check_host(*region.snapshot));
    last = region.snapshot;
  }
  return {};
}

Status check_host(const HostCopies& copies) {
  PFRT_TRY(abi::check_elements(copies.copies, copies.size, copies.count));
  for (size_t i = 0; i < copies.count; ++i) {
    const pfrt_direction to = at(copies.copies, copies.size, i).direction;
    if (to == PFRT_DIRECTION_UNSET)
      return error(Code::kINVALID_ARGUMENT, "copying: the direction of copy ", i, " is not set");
    if (to > PFRT_ON_DEVICE) return abi::unknown_number("copying", "direction", to);
  }
  return {};
}

Status check_host(const pfrt_op_query& query) {
  PFRT_TRY(abi::check(query));
  return check_host(*query.snapshot);
}

Status check_host(const pfrt_shapes& shapes) { return abi::check(shapes); }

Status check_host(const pfrt_question& question) {
  PFRT_TRY(abi::check(question));
  return abi::check_elements(question.tensors, question.tensor_size, question.tensor_count);
}

}  // namespace pfrt
