// SPDX-License-Identifier: Apache-2.0
//
// Operators on sequences of tokens, and hashes.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/data_dependent_output.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/contrib/make.h"

namespace pfrt::cpu {
namespace {

// ------------------------------------------------------------------ MurmurHash3, 32 bits

uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

// The hash of |words| of 32 bits, as Austin Appleby's MurmurHash3_x86_32 (public domain) has it.
uint32_t hashed(const uint32_t* words, uint32_t count, uint32_t seed) {
  uint32_t h = seed;
  for (uint32_t i = 0; i < count; ++i) {
    h ^= rotated(words[i] * 0xcc9e2d51u, 15) * 0x1b873593u;
    h = rotated(h, 13) * 5 + 0xe6546b64u;
  }
  h ^= count * 4;
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

// ------------------------------------------------------------------ BifurcationDetector

// The position after the only place where the last tokens occur in |source|, for the longest of the
// lengths [least, most] that still has one place; -1 for none.
int64_t suffix_match(const Run& run, const int64_t* source, int64_t n, const int64_t* tokens,
                     int64_t count, int64_t least, int64_t most) {
  int64_t found = -1;
  for (int64_t length = least; length <= std::min(most, count) && !run.stopped(); ++length) {
    const int64_t *const begin = tokens + count - length, *const end = tokens + count;
    const int64_t* const at = std::search(source, source + n, begin, end);
    if (at == source + n) break;
    found = at - source + length;
    if (found >= n) break;
    if (std::search(at + 1, source + n, begin, end) != source + n) found = -1;
  }
  return found;
}

// ------------------------------------------------------------------ DynamicTimeWarping

enum class From : uint8_t { kDiagonal, kRow, kColumn };

// The cheapest path from (0, 0) to (m, n), last point first. A step from (r, c) leads to a
// neighbour that is further in either direction or in both.
std::vector<std::pair<int32_t, int32_t>> cheapest_path(const Run& run, const float* cost, int64_t m,
                                                       int64_t n) {
  std::vector<From> from(static_cast<size_t>(m * n));
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  std::vector<float> above(static_cast<size_t>(n) + 1, kInfinite), row(above);
  above[0] = 0;
  for (int64_t r = 0; r < m; ++r) {
    if (run.stopped()) return {};
    row[0] = kInfinite;
    for (size_t c = 0; c < static_cast<size_t>(n); ++c) {
      const float diagonal = above[c], up = above[c + 1], left = row[c];
      float least = left;
      From how = From::kColumn;
      if (diagonal < up && diagonal < left) {
        least = diagonal;
        how = From::kDiagonal;
      } else if (up < diagonal && up < left) {
        least = up;
        how = From::kRow;
      }
      from[static_cast<size_t>(r * n) + c] = how;
      row[c + 1] = cost[r * n + static_cast<int64_t>(c)] + least;
    }
    std::swap(above, row);
  }
  std::vector<std::pair<int32_t, int32_t>> path;
  for (int64_t r = m - 1, c = n - 1; r >= 0 && c >= 0;) {
    path.emplace_back(static_cast<int32_t>(r), static_cast<int32_t>(c));
    // The borders lead along themselves.
    const From how = r == 0   ? From::kColumn
                     : c == 0 ? From::kRow
                              : from[static_cast<size_t>(r * n + c)];
    if (how != From::kColumn) --r;
    if (how != From::kRow) --c;
  }
  return path;
}

}  // namespace

Result<Kernel> make_hash(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  if (dtype_size(node.output_dtype(0)) != 4)
    return error(Code::kDTYPE_MISMATCH, "hashes are ", dtype_name(node.output_dtype(0)),
                 ": int32 or uint32");
  const int64_t n = node.input_elements(0);
  const size_t size = dtype_size(node.input_dtype(0));
  const uint32_t seed = static_cast<uint32_t>(node.attr_int("seed", 0));
  Kernel kernel;
  kernel.flops = 16 * static_cast<double>(n);
  kernel.run = [=](const Run& run) {
    const char* const from = run.input<char>(0);
    uint32_t* const out = run.output<uint32_t>(0);
    run.blocks(n, 16 * kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        uint32_t words[2];
        std::memcpy(words, from + static_cast<size_t>(i) * size, size);
        out[i] = hashed(words, static_cast<uint32_t>(size / 4), seed);
      }
    });
    return run.stop();
  };
  return kernel;
}

// Scores of tokens that would complete an n-gram for the second time become -infinity.
Result<Kernel> make_repeat_block(const KernelRequest& node) {
  PFRT_TRY(need(node, 2, 1));
  PFRT_TRY(need_like_output(node, 1));
  const auto tokens = node.input_dims(0), scores = node.input_dims(1);
  if (tokens.size() != 2 || scores.size() != 2 || tokens[0] != scores[0] ||
      node.input_dtype(1) != PFRT_DTYPE_FLOAT32)
    return kernel_error("tokens are ", dims_text(tokens), " and scores ", dims_text(scores),
                        ": two matrices with as many rows, scores float32");
  const int64_t length = tokens[1], words = scores[1], n = node.attr_int("ngram_size", 0);
  if (n < 1) return kernel_error("ngram_size is ", n, ": 1 or more");
  Kernel kernel;
  kernel.flops = static_cast<double>(node.input_elements(0) + node.input_elements(1));
  kernel.run = [=, batch = tokens[0]](const Run& run) -> pfrt_code {
    if (words == 0) return PFRT_CODE_OK;
    std::vector<int64_t> bad(static_cast<size_t>(batch), 0);
    run.parallel(batch, [&](int64_t b, uint32_t) {
      const int64_t* const row = run.input<int64_t>(0) + b * length;
      float* const out = run.output<float>(0) + b * words;
      std::copy_n(run.input<float>(1) + b * words, words, out);
      if (n > length) return;
      const int64_t* const tail = row + length - (n - 1);
      for (int64_t i = 0; i + n <= length; ++i) {
        if (i % kBlock == 0 && run.stopped()) return;
        if (!std::equal(row + i, row + i + n - 1, tail)) continue;
        const int64_t token = row[i + n - 1];
        if (token < 0 || token >= words) {
          bad[static_cast<size_t>(b)] = i + n;
          return;
        }
        out[token] = -std::numeric_limits<float>::infinity();
      }
    });
    for (size_t b = 0; b < bad.size(); ++b)
      if (bad[b])
        return run.fail(Code::kINVALID_ARGUMENT, "token ", bad[b] - 1, " of row ", b, " is ",
                        run.input<int64_t>(0)[static_cast<int64_t>(b) * length + bad[b] - 1],
                        ": there are scores for ", words);
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_bifurcation(const KernelRequest& node) {
  PFRT_TRY(need(node, 3, 0));
  for (const uint32_t i : {0u, 1u, 3u})
    if (node.has_input(i) && node.input_rank(i) != 1)
      return kernel_error("input ", i, " has rank ", node.input_rank(i), ": 1");
  for (uint32_t i = 0; i < 4; ++i)
    if (node.has_input(i) && node.input_dtype(i) != PFRT_DTYPE_INT64)
      return error(Code::kDTYPE_MISMATCH, "input ", i, " is ", dtype_name(node.input_dtype(i)),
                   ": int64");
  PFRT_TRY(need_scalar(node, 2));
  const bool predicted = node.has_input(3);
  const int64_t n = node.input_elements(0), current = node.input_elements(1),
                guesses = predicted ? node.input_elements(3) : 0;
  const int64_t least = node.attr_int("min_ngram_size", 1),
                most = node.attr_int("max_ngram_size", 1);
  std::vector<int64_t> match_dims(node.input_dims(2).begin(), node.input_dims(2).end());
  Kernel kernel;
  kernel.width = 1;
  kernel.run = [=, tokens_out = Outlet(node, 0),
                match_out = Outlet(node, 1)](const Run& run) -> pfrt_code {
    const int64_t *const source = run.input<int64_t>(0), *const pred = run.input<int64_t>(3);
    const int64_t start = *run.input<int64_t>(2);
    std::vector<int64_t> tokens(run.input<int64_t>(1), run.input<int64_t>(1) + current);
    if (predicted) {
      if (start < 0 || start > n || guesses != n + 1 - start)
        return run.fail(Code::kINVALID_ARGUMENT, "prev_suffix_match_idx is ", start, " of ", n,
                        " source tokens, and ", guesses,
                        " tokens are predicted: one more than the source has from there on");
      int64_t agreed = 0;
      while (agreed < n - start && pred[agreed] == source[start + agreed]) ++agreed;
      tokens.insert(tokens.end(), pred, pred + agreed + 1);
    }
    const int64_t count = static_cast<int64_t>(tokens.size());
    void* out = nullptr;
    if (const pfrt_code code = tokens_out.open(run, {{count}}, &out)) return code;
    if (out) std::copy(tokens.begin(), tokens.end(), static_cast<int64_t*>(out));
    if (const pfrt_code code = match_out.open(run, match_dims, &out)) return code;
    if (out)
      *static_cast<int64_t*>(out) = suffix_match(run, source, n, tokens.data(), count, least, most);
    return run.stop();
  };
  return kernel;
}

Result<Kernel> make_time_warping(const KernelRequest& node) {
  PFRT_TRY(need(node, 1, 0));
  auto dims = node.input_dims(0);
  if (dims.size() == 3 && dims[0] == 1) dims = dims.subspan(1);
  if (dims.size() != 2)
    return kernel_error("the costs are ", dims_text(node.input_dims(0)), ": a matrix");
  const int64_t m = dims[0], n = dims[1];
  if (m < 1 || n < 1 || m > INT32_MAX || n > INT32_MAX)
    return kernel_error("the costs are ", dims_text(dims), ": 1 to ", INT32_MAX,
                        " rows and columns");
  Kernel kernel;
  kernel.flops = 3 * static_cast<double>(m) * static_cast<double>(n);
  kernel.width = 1;
  kernel.run = [=, outlet = Outlet(node, 0)](const Run& run) -> pfrt_code {
    const auto path = cheapest_path(run, run.input<float>(0), m, n);
    if (const pfrt_code code = run.stop()) return code;
    const int64_t count = static_cast<int64_t>(path.size());
    void* out = nullptr;
    if (const pfrt_code code = outlet.open(run, {{2, count}}, &out)) return code;
    int32_t* const points = static_cast<int32_t*>(out);
    for (int64_t i = 0; points && i < count; ++i) {
      points[i] = path[static_cast<size_t>(count - 1 - i)].first;
      points[count + i] = path[static_cast<size_t>(count - 1 - i)].second;
    }
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
