// SPDX-License-Identifier: Apache-2.0
//
// TfIdfVectorizer: a trie of the pool's n-grams, walked from every position of a row with every
// distance between items. The graph's attributes were checked when it was made canonical.
#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "core/exec/host/call.h"

namespace pfrt::host {
namespace {

// Bytes that finding an item compares, about.
size_t compared_bytes(int64_t) { return sizeof(int64_t); }
size_t compared_bytes(std::string_view text) { return text.size(); }

// N-grams of items of type T.
template <typename T>
class Grams {
 public:
  // |least| and |most| bound the lengths to be found; all n-grams of the pool are numbered in its
  // order.
  template <typename Item>
  Status read(const Call& call, const std::vector<Item>& pool, const std::vector<int64_t>& counts,
              int64_t least, int64_t most) {
    int64_t gram = 0;
    for (size_t n = 0; n < counts.size(); ++n) {
      const size_t size = n + 1;
      const auto begin = static_cast<size_t>(counts[n]);
      const size_t end = n + 1 < counts.size() ? static_cast<size_t>(counts[n + 1]) : pool.size();
      const bool wanted = static_cast<int64_t>(size) >= least && static_cast<int64_t>(size) <= most;
      for (size_t at = begin; at + size <= end; at += size, ++gram) {
        if (!wanted) continue;
        Place* place = &root_;
        for (size_t i = 0; i < size; ++i) {
          PFRT_TRY(call.walked(compared_bytes(pool[at + i])));
          place = &place->next[pool[at + i]];
        }
        place->gram = gram;
      }
    }
    return {};
  }

  // Calls |found| with the number of every n-gram in |row|.
  template <typename Found>
  Status find(const Call& call, std::span<const T> row, int64_t least, int64_t most, int64_t skips,
              Found found) const {
    const auto length = static_cast<int64_t>(row.size());
    // Distances beyond the row find single items only, which count once.
    const int64_t farthest = std::min(skips, std::max<int64_t>(length - 1, 0)) + 1;
    for (int64_t distance = 1; distance <= farthest; ++distance) {
      const int64_t shortest = distance == 1 ? least : std::max<int64_t>(least, 2);
      if (shortest > most) return {};
      for (int64_t start = 0; start < length; ++start) {
        const Place* place = &root_;
        int64_t size = 1;
        for (int64_t at = start; at < length && size <= most; at += distance, ++size) {
          PFRT_TRY(call.walked(compared_bytes(row[static_cast<size_t>(at)])));
          const auto next = place->next.find(row[static_cast<size_t>(at)]);
          if (next == place->next.end()) break;
          place = &next->second;
          if (size >= shortest && place->gram >= 0) found(static_cast<size_t>(place->gram));
        }
      }
    }
    return {};
  }

 private:
  struct Place {
    int64_t gram = -1;
    std::map<T, Place> next;
  };
  Place root_;
};

struct Rows {
  int64_t count = 1, length = 1;
};

// |pool| has items of type T, or texts that outlive the result.
template <typename T, typename Item>
Status count_all(const Call& call, const std::vector<Item>& pool, std::span<const T> items,
                 const Rows& rows, size_t width, float* out) {
  const Node& node = call.node;
  const int64_t least = node.attr_int("min_gram_length", 1),
                most = node.attr_int("max_gram_length", 1),
                skips = node.attr_int("max_skip_count", 0);
  const std::vector<int64_t>& columns = *node.attr_ints("ngram_indexes");
  const auto read = [&]() -> Result<std::shared_ptr<const Grams<T>>> {
    auto made = std::make_shared<Grams<T>>();
    PFRT_TRY(made->read(call, pool, *node.attr_ints("ngram_counts"), least, most));
    return std::shared_ptr<const Grams<T>>(std::move(made));
  };
  PFRT_ASSIGN(const auto grams, call.prepared.get<Grams<T>>(call.control, read));
  for (int64_t r = 0; r < rows.count; ++r) {
    const auto row =
        items.subspan(static_cast<size_t>(r * rows.length), static_cast<size_t>(rows.length));
    float* const counts = out + static_cast<size_t>(r) * width;
    PFRT_TRY(grams->find(call, row, least, most, skips,
                         [&](size_t gram) { counts[static_cast<size_t>(columns[gram])] += 1; }));
  }
  return {};
}

// 'weights' are those of the n-grams in the order of the pool, 'ngram_indexes' their columns. If
// several n-grams have one column, the first counts.
std::vector<float> column_weights(const Node& node, size_t width) {
  std::vector<float> out(width, 1);
  const Attribute* weights = node.attr("weights");
  const std::vector<int64_t>& columns = *node.attr_ints("ngram_indexes");
  if (!weights || weights->floats.empty()) return out;
  for (size_t i = std::min(columns.size(), weights->floats.size()); i-- > 0;)
    out[static_cast<size_t>(columns[i])] = weights->floats[i];
  return out;
}

Status tf_idf(const Call& call) {
  PFRT_ASSIGN(const Value* value, need(call, 0, PFRT_VALUE_TENSOR, "a tensor"));
  const Tensor& t = value->tensor;
  const Node& node = call.node;
  const std::vector<int64_t>* columns = node.attr_ints("ngram_indexes");
  if (t.dims.size() > 2)
    return error(Code::kSHAPE_MISMATCH, "the input has rank ", t.dims.size(),
                 ", expected [C] or [N,C]");
  Rows rows;
  Dims dims;
  if (!t.dims.empty()) rows.length = t.dims.back();
  if (t.dims.size() == 2) dims.push_back(rows.count = t.dims[0]);
  const auto width = static_cast<size_t>(*std::max_element(columns->begin(), columns->end())) + 1;
  dims.push_back(static_cast<int64_t>(width));
  PFRT_ASSIGN(Tensor out, Tensor::allocate(PFRT_DTYPE_FLOAT32, std::move(dims)));
  float* const counts = out.as<float>();
  if (const Attribute* texts = node.attr("pool_strings")) {
    PFRT_ASSIGN(const Tensor* strings, need_tensor(call, 0, PFRT_DTYPE_STRING));
    std::vector<std::string_view> items;
    items.reserve(strings->strings().size());
    for (const pfrt_string& s : strings->strings()) items.push_back(view(s));
    PFRT_TRY(count_all(call, texts->strings, std::span<const std::string_view>(items), rows, width,
                       counts));
  } else {
    const bool wide = t.dtype == PFRT_DTYPE_INT64;
    const std::vector<int64_t> widened = wide ? std::vector<int64_t>() : to_int64s(t);
    const std::span<const int64_t> items =
        wide ? std::span(t.as<const int64_t>(), static_cast<size_t>(t.count()))
             : std::span(widened);
    if (static_cast<int64_t>(items.size()) != t.count())
      return error(Code::kDTYPE_MISMATCH, "the input must hold integers, not ",
                   dtype_name(t.dtype));
    PFRT_TRY(count_all(call, node.attr("pool_int64s")->ints, items, rows, width, counts));
  }
  const std::string_view mode = node.attr_string("mode", "TF");
  if (mode != "TF" && out.count() > 0) {
    const std::vector<float> weights = column_weights(node, width);
    const bool presence = mode == "IDF";
    BytePace pace(call.control);
    float* at = counts;
    for (int64_t r = 0; r < rows.count; ++r)
      for (size_t c = 0; c < width; ++c, ++at) {
        PFRT_TRY(pace.after(sizeof *at));
        *at = presence ? (*at > 0 ? weights[c] : 0) : *at * weights[c];
      }
  }
  call.out[0] = Value::of(std::move(out));
  return {};
}

constexpr HostOp kTfIdfOps[] = {
    {"", "TfIdfVectorizer", tf_idf},
};

}  // namespace

std::span<const HostOp> tf_idf_ops() { return kTfIdfOps; }

}  // namespace pfrt::host
