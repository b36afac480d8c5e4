// SPDX-License-Identifier: Apache-2.0
#include "core/op/engine/lookup.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace pfrt {
namespace {

std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

// All rows, by domain and name and then in the order of the families, and a hash table of where the
// rows of each name begin. It has no heap memory and no destructor, since exit() may come while
// another thread still looks up.
class RowIndex {
 public:
  RowIndex() {
    for (const std::span<const OperatorDef>& family : operators())
      for (const OperatorDef& row : family) rows_.at(count_++) = &row;
    std::stable_sort(rows_.begin(), end(),
                     [](const OperatorDef* a, const OperatorDef* b) { return key(*a) < key(*b); });
    for (size_t i = 0; i < count_; ++i) {
      if (i > 0 && key(*rows_[i]) == key(*rows_[i - 1])) continue;
      size_t slot = slot_of(rows_[i]->domain, rows_[i]->name);
      while (first_.at(slot) != kNone) slot = (slot + 1) % kSlots;
      first_.at(slot) = static_cast<uint16_t>(i);
    }
  }
  std::span<const OperatorDef* const> find(std::string_view domain, std::string_view name) const {
    for (size_t slot = slot_of(domain, name); first_[slot] != kNone; slot = (slot + 1) % kSlots) {
      const size_t first = first_[slot];
      if (rows_[first]->name != name || rows_[first]->domain != domain) continue;
      size_t last = first + 1;
      while (last < count_ && rows_[last]->name == name && rows_[last]->domain == domain) ++last;
      return {rows_.data() + first, last - first};
    }
    return {};
  }

 private:
  static constexpr size_t kMost = 1024, kSlots = 4 * kMost;
  static constexpr uint16_t kNone = UINT16_MAX;
  using Rows = std::array<const OperatorDef*, kMost>;
  static size_t slot_of(std::string_view domain, std::string_view name) {
    uint32_t hash = 0x811c9dc5u;  // FNV-1a
    for (const std::string_view part : {domain, name})
      for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
    return (hash ^ hash >> 16) % kSlots;
  }
  static std::pair<std::string_view, std::string_view> key(const OperatorDef& row) {
    return {row.domain, row.name};
  }
  static constexpr std::array<uint16_t, kSlots> filled() {
    std::array<uint16_t, kSlots> none{};
    none.fill(kNone);
    return none;
  }
  Rows::iterator end() { return rows_.begin() + static_cast<std::ptrdiff_t>(count_); }

  Rows rows_{};
  size_t count_ = 0;
  std::array<uint16_t, kSlots> first_ = filled();
};

std::span<const OperatorDef* const> rows_of(std::string_view domain, std::string_view name) {
  static const RowIndex index;
  return index.find(canonical_domain(domain), name);
}

}  // namespace

const OperatorDef* find_operator(std::string_view domain, std::string_view name, int64_t opset) {
  for (const OperatorDef* row : rows_of(domain, name))
    if (row->since <= opset && (row->until == 0 || opset <= row->until)) return row;
  return nullptr;
}

bool is_built_in(std::string_view domain, std::string_view name) {
  return !rows_of(domain, name).empty();
}

int64_t newest_opset(std::string_view domain) {
  domain = canonical_domain(domain);
  if (domain.empty()) return 28;
  if (domain == "ai.onnx.ml") return 5;
  if (domain == "com.microsoft") return 1;
  if (domain == "ai.onnx.preview") return 1;
  if (domain == kStringDomain) return 1;
  if (domain == "ai.onnx.preview.training") return 1;
  return 0;
}

}  // namespace pfrt
