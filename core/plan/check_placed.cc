// SPDX-License-Identifier: Apache-2.0
#include "core/plan/blocks.h"

namespace pfrt {

Status check_placed(const std::vector<BlockItem>& items, uint64_t bytes) {
  const auto text = [&](size_t i) {
    const BlockItem& item = items[i];
    return message("item ", i, item.name.empty() ? "" : " ('", item.name,
                   item.name.empty() ? " (" : "', ", item.bytes, " bytes of steps ", item.first,
                   " to ", item.last, ")", " at ", item.offset);
  };
  const auto wrong = [](const auto&... parts) {
    return error(Code::kINVALID_ARGUMENT, "placing buffers: the memory planner put ", parts...);
  };
  if (bytes > uint64_t{1} << 61)
    return wrong("them into ", bytes, " bytes, more than there can be");
  for (size_t i = 0; i < items.size(); ++i) {
    const BlockItem& item = items[i];
    if (item.bytes > bytes || item.offset > bytes - item.bytes)
      return wrong(text(i), ", which is not inside of the ", bytes, " bytes that it asked for");
    if (item.offset % item.alignment != 0)
      return wrong(text(i), ", which is no multiple of ", item.alignment);
    for (size_t k = 0; k < i && item.bytes; ++k) {
      const BlockItem& other = items[k];
      if (other.bytes && item.first <= other.last && other.first <= item.last &&
          item.offset < other.offset + other.bytes && other.offset < item.offset + item.bytes)
        return wrong(text(i), " and ", text(k), ": they overlap, and are in use at the same time");
    }
  }
  return {};
}

}  // namespace pfrt
