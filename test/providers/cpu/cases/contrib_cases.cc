// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "test/providers/cpu/cases/cases.h"

namespace pfrt::test {
namespace {

Case cdist(Random& random, pfrt_dtype dtype, int64_t size) {
  const int64_t n = random.from_to(0, 40);
  const int64_t most = std::max<int64_t>(2, static_cast<int64_t>(std::sqrt(size)));
  const int64_t m = random.from_to(size < kLarge ? 0 : most / 2, most);
  const int64_t k = random.from_to(size < kLarge ? 0 : most / 2, most);
  const bool root = random.once_in(2);
  Case c;
  c.inputs = {random.data(dtype, {m, n}), random.data(dtype, {k, n})};
  c.attrs = {{"metric", std::string(root ? "euclidean" : "sqeuclidean")}};
  Values out;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < n; ++p)
        sum += std::pow(c.inputs[0].values[static_cast<size_t>(i * n + p)] -
                            c.inputs[1].values[static_cast<size_t>(j * n + p)],
                        2);
      out.push_back(root ? std::sqrt(sum) : sum);
    }
  c.outputs = {expected(dtype, {m, k}, out)};
  c.relative = 4 + static_cast<double>(n);
  return c;
}

// A product of a permutation, powers of two and shears has an exact inverse.
Case inverse(Random& random, pfrt_dtype dtype, int64_t size) {
  const int64_t n = random.from_to(1, 9), batch = size < kLarge ? random.from_to(0, 3) : 200;
  const size_t order = static_cast<size_t>(n);
  Values all, inverses;
  for (int64_t b = 0; b < batch; ++b) {
    Values a(order * order, 0), inverse(a);
    std::vector<size_t> to(order);
    std::iota(to.begin(), to.end(), size_t{0});
    for (size_t i = order; i-- > 1;)
      std::swap(to[i], to[static_cast<size_t>(random.below(static_cast<int64_t>(i) + 1))]);
    for (size_t i = 0; i < order; ++i) {
      const double by = std::ldexp(random.once_in(2) ? 1 : -1, static_cast<int>(random.below(3)));
      a[i * order + to[i]] = by;
      inverse[to[i] * order + i] = 1 / by;
    }
    for (int64_t shears = order > 1 ? random.below(4) : 0; shears > 0; --shears) {
      const size_t r = static_cast<size_t>(random.below(n));
      const size_t s = (r + 1 + static_cast<size_t>(random.below(n - 1))) % order;
      const double by = static_cast<double>(random.from_to(-2, 2));
      for (size_t j = 0; j < order; ++j) {
        a[r * order + j] += by * a[s * order + j];
        inverse[j * order + s] -= by * inverse[j * order + r];
      }
    }
    all.insert(all.end(), a.begin(), a.end());
    inverses.insert(inverses.end(), inverse.begin(), inverse.end());
  }
  Case c;
  c.inputs = {expected(dtype, {batch, n, n}, all)};
  c.outputs = {expected(dtype, {batch, n, n}, inverses)};
  c.relative = 16;
  c.absolute = 64 * step_error(dtype);
  return c;
}

Case repeat_block(Random& random, pfrt_dtype, int64_t size) {
  const int64_t batch = size < kLarge ? random.from_to(1, 3) : 40, length = random.from_to(0, 20),
                words = random.from_to(1, 6), n = random.from_to(1, 4);
  Case c;
  c.inputs = {random.data(PFRT_DTYPE_INT64, {batch, length}, 0, static_cast<double>(words - 1)),
              random.data(PFRT_DTYPE_FLOAT32, {batch, words})};
  c.attrs = {{"ngram_size", n}};
  Values out = c.inputs[1].values;
  for (int64_t b = 0; b < batch; ++b) {
    const auto row = c.inputs[0].values.begin() + b * length;
    // Bans every word that would repeat an n-gram of the row.
    for (int64_t word = 0; word < words && length >= n - 1; ++word) {
      Values gram(row + length - (n - 1), row + length);
      gram.push_back(static_cast<double>(word));
      if (std::search(row, row + length, gram.begin(), gram.end()) != row + length)
        out[static_cast<size_t>(b * words + word)] = -std::numeric_limits<double>::infinity();
    }
  }
  c.outputs = {expected(PFRT_DTYPE_FLOAT32, {batch, words}, out)};
  return c;
}

Case bifurcation(Random& random, pfrt_dtype dtype, int64_t) {
  const int64_t n = random.from_to(1, 14), current = random.from_to(0, 5),
                start = random.from_to(0, n), least = random.from_to(1, 2),
                most = random.from_to(least, 4);
  Case c;
  c.inputs = {random.data(dtype, {n}, 0, 3),
              random.data(dtype, {current}, 0, 3),
              expected(dtype, {1}, {static_cast<double>(start)}),
              {}};
  Values tokens = c.inputs[1].values;
  const Values& source = c.inputs[0].values;
  if (random.once_in(2)) {
    Data guesses = random.data(dtype, {n + 1 - start}, 0, 3);
    const int64_t agreed = random.from_to(0, n - start);
    std::copy_n(source.begin() + start, agreed, guesses.values.begin());
    size_t used = 0;
    while (start + static_cast<int64_t>(used) < n &&
           guesses.values[used] == source[static_cast<size_t>(start) + used])
      ++used;
    tokens.insert(tokens.end(), guesses.values.begin(),
                  guesses.values.begin() + static_cast<int64_t>(used) + 1);
    c.inputs[3] = std::move(guesses);
  }
  const int64_t count = static_cast<int64_t>(tokens.size());
  int64_t match = -1;
  for (int64_t length = least; length <= std::min(most, count); ++length) {
    std::vector<int64_t> places;
    for (int64_t at = 0; at + length <= n; ++at)
      if (std::equal(source.begin() + at, source.begin() + at + length, tokens.end() - length))
        places.push_back(at);
    if (places.empty()) break;
    match = places.front() + length;
    if (match >= n) break;
    if (places.size() > 1) match = -1;
  }
  c.attrs = {{"min_ngram_size", least}, {"max_ngram_size", most}};
  c.outputs = {expected(dtype, {count}, tokens),
               expected(dtype, {1}, {static_cast<double>(match)})};
  return c;
}

Case time_warping(Random& random, pfrt_dtype dtype, int64_t) {
  const int64_t m = random.from_to(1, 12), n = random.from_to(1, 12);
  Case c;
  c.inputs = {random.data(dtype, random.once_in(2) ? Dims{m, n} : Dims{1, m, n}, 0, 9)};
  // Least cost from each point to the last one. This looks forwards, where the kernel looks back.
  Values left(static_cast<size_t>(m * n));
  const auto at = [&](int64_t r, int64_t s) -> double& {
    return left[static_cast<size_t>(r * n + s)];
  };
  const auto after = [&](int64_t r, int64_t s) {
    return r < m && s < n ? at(r, s) : std::numeric_limits<double>::infinity();
  };
  for (int64_t r = m - 1; r >= 0; --r)
    for (int64_t s = n - 1; s >= 0; --s) {
      const double best = std::min({after(r + 1, s), after(r, s + 1), after(r + 1, s + 1)});
      at(r, s) = c.inputs[0].values[static_cast<size_t>(r * n + s)] + (std::isinf(best) ? 0 : best);
    }
  Values rows, columns;
  for (int64_t r = 0, s = 0; r < m && s < n;) {
    rows.push_back(static_cast<double>(r));
    columns.push_back(static_cast<double>(s));
    const double best = std::min({after(r + 1, s), after(r, s + 1), after(r + 1, s + 1)});
    if (std::isinf(best)) break;
    const bool down = best == after(r + 1, s), right = best == after(r, s + 1);
    if (down || !right) ++r;
    if (right || !down) ++s;
  }
  const int64_t length = static_cast<int64_t>(rows.size());
  rows.insert(rows.end(), columns.begin(), columns.end());
  c.outputs = {expected(PFRT_DTYPE_INT32, {2, length}, rows)};
  return c;
}

uint32_t hash_of(const std::vector<unsigned char>& bytes, uint32_t seed) {
  const auto turn = [](uint64_t x, int by) { return (x << by | x >> (32 - by)) & 0xffffffffu; };
  uint64_t h = seed;
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    uint64_t k = 0;
    for (size_t j = 4; j-- > 0;) k = k * 256 + bytes[i + j];
    k = turn(k * 0xcc9e2d51u & 0xffffffffu, 15) * 0x1b873593u & 0xffffffffu;
    h = (turn(h ^ k, 13) * 5 + 0xe6546b64u) & 0xffffffffu;
  }
  h ^= bytes.size();
  h = (h ^ h >> 16) * 0x85ebca6bu & 0xffffffffu;
  h = (h ^ h >> 13) * 0xc2b2ae35u & 0xffffffffu;
  return static_cast<uint32_t>(h ^ h >> 16);
}

Case hash(Random& random, pfrt_dtype dtype, int64_t size) {
  Case c;
  const uint32_t seed = static_cast<uint32_t>(random.below(1000));
  const bool natural = random.once_in(2);
  c.inputs = {random.data(dtype, random.dims(2, size), -900, 900)};
  c.attrs = {{"seed", static_cast<int64_t>(seed)}, {"positive", static_cast<int64_t>(natural)}};
  const size_t bytes = dtype_size(dtype);
  std::vector<unsigned char> all(c.inputs[0].values.size() * bytes);
  store(dtype, c.inputs[0].values, all.data());
  Values out;
  for (size_t i = 0; i < all.size(); i += bytes) {
    const auto first = all.begin() + static_cast<int64_t>(i);
    const uint32_t h = hash_of({first, first + static_cast<int64_t>(bytes)}, seed);
    out.push_back(natural ? static_cast<double>(h) : static_cast<double>(static_cast<int32_t>(h)));
  }
  c.outputs = {expected(natural ? PFRT_DTYPE_UINT32 : PFRT_DTYPE_INT32, c.inputs[0].dims, out)};
  return c;
}

// Boxes are on quarters and sizes are one more than powers of two, so places are exact.
Case crop(Random& random, pfrt_dtype dtype, int64_t size) {
  static constexpr int64_t kSizes[] = {1, 2, 3, 5, 9};
  const auto pick = [&] { return kSizes[random.below(5)]; };
  const int64_t images = random.from_to(1, 3), channels = random.from_to(1, 3), h = pick(),
                w = pick(), boxes = size < kLarge ? random.from_to(0, 4) : 300, rows = pick(),
                columns = pick();
  const bool nearest = random.once_in(2);
  const double outside = 0.25;
  Case c;
  Data box = expected(dtype, {boxes, 4}, {});
  for (int64_t i = 0; i < 4 * boxes; ++i)
    box.values.push_back(static_cast<double>(random.from_to(-1, 5)) / 4);
  c.inputs = {
      random.data(dtype, {images, channels, h, w}), std::move(box),
      random.data(PFRT_DTYPE_INT32, {boxes}, 0, static_cast<double>(images - 1)),
      expected(PFRT_DTYPE_INT32, {2}, {static_cast<double>(rows), static_cast<double>(columns)})};
  c.attrs = {{"mode", std::string(nearest ? "nearest" : "bilinear")},
             {"extrapolation_value", static_cast<float>(outside)}};
  const auto place = [](double begin, double end, int64_t i, int64_t count, int64_t length) {
    const double part = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0.5;
    return (begin + (end - begin) * part) * static_cast<double>(length - 1);
  };
  Values out;
  for_each_index({boxes, channels, rows, columns}, [&](const Dims& at) {
    const auto corner = [&](int64_t k) {
      return c.inputs[1].values[static_cast<size_t>(at[0] * 4 + k)];
    };
    const double y = place(corner(0), corner(2), at[2], rows, h),
                 x = place(corner(1), corner(3), at[3], columns, w);
    if (y < 0 || x < 0 || y > static_cast<double>(h - 1) || x > static_cast<double>(w - 1)) {
      out.push_back(outside);
      return;
    }
    const int64_t image = static_cast<int64_t>(c.inputs[2].values[static_cast<size_t>(at[0])]);
    const auto pixel = [&](double py, double px) {
      const Dims index = {image, at[1], static_cast<int64_t>(py), static_cast<int64_t>(px)};
      return c.inputs[0].values[position(index, c.inputs[0].dims)];
    };
    if (nearest) {
      out.push_back(pixel(std::round(y), std::round(x)));
      return;
    }
    double sum = 0;
    for (const double py : {std::floor(y), std::floor(y) + 1})
      for (const double px : {std::floor(x), std::floor(x) + 1}) {
        const double weight = (1 - std::fabs(y - py)) * (1 - std::fabs(x - px));
        if (weight > 0) sum += weight * pixel(py, px);
      }
    out.push_back(sum);
  });
  c.outputs = {expected(dtype, {boxes, channels, rows, columns}, out)};
  c.relative = nearest ? 0 : 4;
  c.absolute = nearest ? 0 : 16 * step_error(dtype);
  return c;
}

// Tables to four digits; the recorded outputs of ONNX Runtime check all digits.
constexpr double kNf4[] = {-1,     -0.6962, -0.5251, -0.3949, -0.2844, -0.1848, -0.0911, 0,
                           0.0796, 0.1609,  0.2461,  0.3379,  0.4407,  0.5626,  0.7230,  1};
constexpr double kFp4[] = {0,    0.0052,  0.6667,  1,  0.3333,  0.5,  0.1667,  0.25,
                           -0.0, -0.0052, -0.6667, -1, -0.3333, -0.5, -0.1667, -0.25};

Case bnb4(Random& random, pfrt_dtype dtype, int64_t size) {
  const int64_t block = int64_t{16} << random.below(3), k = random.from_to(1, 70),
                n = size < kLarge ? random.from_to(1, 20) : 300,
                m = size < kLarge ? random.from_to(0, 5) : 60, type = random.below(2);
  const int64_t count = n * k, scales = (count + block - 1) / block;
  Case c;
  c.inputs = {random.data(dtype, random.once_in(3) ? Dims{1, m, k} : Dims{m, k}),
              random.data(PFRT_DTYPE_UINT8, {(count + 1) / 2}, 0, 255),
              random.data(dtype, {scales}, 0.5, 2)};
  c.attrs = {{"K", k}, {"N", n}, {"block_size", block}, {"quant_type", type}};
  Values out;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        const int64_t e = j * k + p;
        const int both = static_cast<int>(c.inputs[1].values[static_cast<size_t>(e / 2)]);
        const size_t code = static_cast<size_t>(e % 2 == 0 ? both / 16 : both % 16);
        sum += c.inputs[0].values[static_cast<size_t>(i * k + p)] *
               (type == 0 ? kFp4 : kNf4)[code] * c.inputs[2].values[static_cast<size_t>(e / block)];
      }
      out.push_back(sum);
    }
  Dims dims = c.inputs[0].dims;
  dims.back() = n;
  c.outputs = {expected(dtype, dims, out)};
  c.relative = 64;
  c.absolute = static_cast<double>(k) * (4e-4 + 8 * step_error(dtype));
  return c;
}

Case gather_block(Random& random, pfrt_dtype dtype, int64_t size) {
  const int64_t bits = int64_t{2} << random.below(3), each = 8 / bits,
                block = 16 << random.below(4), rows = random.from_to(1, 9),
                middle = random.from_to(1, 3), bytes = random.from_to(1, 90), wide = bytes * each,
                blocks = (wide + block - 1) / block;
  const pfrt_dtype scale = random.once_in(2) ? PFRT_DTYPE_FLOAT32 : PFRT_DTYPE_FLOAT16;
  Case c;
  c.inputs = {random.data(dtype, {rows, middle, bytes}, 0, 255),
              random.data(random.once_in(2) ? PFRT_DTYPE_INT32 : PFRT_DTYPE_INT64,
                          size < kLarge ? random.dims(2, 6) : Dims{200}, -static_cast<double>(rows),
                          static_cast<double>(rows - 1)),
              random.data(scale, {rows, middle, blocks}, 0.25, 2),
              {}};
  const bool zeros = random.once_in(2);
  if (zeros) c.inputs[3] = random.data(dtype, {rows, middle, (blocks + each - 1) / each}, 0, 255);
  c.attrs = {{"bits", bits},
             {"block_size", block},
             {"gather_axis", int64_t{0}},
             {"quantize_axis", int64_t{2}}};
  const auto code = [&](const Data& data, int64_t row, int64_t i) {
    const int64_t line = data.dims.back();
    const int value = static_cast<int>(data.values[static_cast<size_t>(row * line + i / each)]);
    return static_cast<double>(value / (1 << (i % each * bits)) % (1 << bits));
  };
  Values out;
  for (const double index : c.inputs[1].values) {
    const int64_t row = static_cast<int64_t>(index) + (index < 0 ? rows : 0);
    for (int64_t line = row * middle; line < (row + 1) * middle; ++line)
      for (int64_t i = 0; i < wide; ++i) {
        const double zero =
            zeros ? code(c.inputs[3], line, i / block) : std::ldexp(1, static_cast<int>(bits) - 1);
        out.push_back((code(c.inputs[0], line, i) - zero) *
                      c.inputs[2].values[static_cast<size_t>(line * blocks + i / block)]);
      }
  }
  Dims dims = c.inputs[1].dims;
  dims.insert(dims.end(), {middle, wide});
  c.outputs = {expected(scale, dims, out)};
  c.relative = 1;
  return c;
}

// Rounds elements of |x| to the levels that their range has in uint8.
Values on_levels(const Values& x, size_t first, size_t count) {
  double low = 0, high = 0;
  for (size_t i = first; i < first + count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const double scale = low == high ? 1 : (high - low) / 255;
  const double zero = std::nearbyint(-low / scale);
  Values out;
  for (size_t i = first; i < first + count; ++i)
    out.push_back((std::clamp(std::nearbyint(x[i] / scale) + zero, 0.0, 255.0) - zero) * scale);
  return out;
}

Case quantized_lstm(Random& random, pfrt_dtype dtype, int64_t size) {
  const size_t directions = random.once_in(2) ? 2 : 1,
               time = static_cast<size_t>(random.from_to(1, 4)),
               batch = size < kLarge ? static_cast<size_t>(random.from_to(1, 3)) : 16,
               features = static_cast<size_t>(random.from_to(1, 9)),
               hidden = static_cast<size_t>(size < kLarge ? random.from_to(1, 9) : 90),
               units = 4 * hidden;
  const bool reverse = directions == 1 && random.once_in(2), columns = random.once_in(2);
  const pfrt_dtype weights = random.once_in(2) ? PFRT_DTYPE_INT8 : PFRT_DTYPE_UINT8;
  const auto dims = [](std::initializer_list<size_t> sizes) {
    return Dims(sizes.begin(), sizes.end());
  };
  const auto bytes = [&](Dims d) { return random.data(weights, std::move(d), -128, 127); };
  const Dims each = columns ? dims({directions, units}) : dims({directions});
  Case c;
  c.inputs = {
      random.data(dtype, dims({time, batch, features})),
      bytes(dims({directions, features, units})),
      bytes(dims({directions, hidden, units})),
      random.once_in(3) ? Data{} : random.data(dtype, dims({directions, 8 * hidden}), -1, 1),
      random.once_in(2)
          ? Data{}
          : random.data(PFRT_DTYPE_INT32, dims({batch}), 0, static_cast<double>(time)),
      {},
      {},
      {},
      random.data(dtype, each, 0.002, 0.01),
      bytes(each),
      random.data(dtype, each, 0.002, 0.01),
      bytes(each)};
  if (random.once_in(2)) {
    c.inputs[5] = random.data(dtype, dims({directions, batch, hidden}), -1, 1);
    c.inputs[6] = random.data(dtype, dims({directions, batch, hidden}), -1, 1);
  }
  c.inputs[1].constant = c.inputs[2].constant = random.once_in(2);
  c.attrs = {{"direction", std::string(directions == 2 ? "bidirectional"
                                       : reverse       ? "reverse"
                                                       : "forward")}};
  std::vector<std::string> activations;
  for (size_t d = 0; d < directions; ++d)
    activations.insert(activations.end(), {"Sigmoid", "Tanh", "Tanh"});
  c.attrs.push_back({"activations", activations});
  const auto in = [&](size_t input, size_t i) { return c.inputs[input].values[i]; };
  const auto weight = [&](size_t input, size_t d, size_t k, size_t rows, size_t j) {
    const size_t p = columns ? d * units + j : d, scale = input == 1 ? 8 : 10;
    return (in(input, (d * rows + k) * units + j) - in(scale + 1, p)) * in(scale, p);
  };
  const Values x = on_levels(c.inputs[0].values, 0, c.inputs[0].values.size());
  Values y(time * directions * batch * hidden, 0), last_h(directions * batch * hidden, 0),
      last_c(last_h);
  for (size_t d = 0; d < directions; ++d) {
    const size_t first = d * batch * hidden;
    Values h(batch * hidden, 0), cell(h);
    for (size_t i = 0; i < h.size() && c.inputs[5].dtype; ++i)
      h[i] = in(5, first + i), cell[i] = in(6, first + i);
    for (size_t s = 0; s < time; ++s) {
      const Values q = on_levels(h, 0, h.size());
      for (size_t b = 0; b < batch; ++b) {
        const size_t length = c.inputs[4].dtype ? static_cast<size_t>(in(4, b)) : time;
        if (s >= length) continue;
        const size_t t = reverse || d == 1 ? length - 1 - s : s;
        for (size_t u = 0; u < hidden; ++u) {
          double gate[4];
          for (size_t g = 0; g < 4; ++g) {
            const size_t j = g * hidden + u;
            gate[g] =
                c.inputs[3].dtype ? in(3, d * 2 * units + j) + in(3, d * 2 * units + units + j) : 0;
            for (size_t k = 0; k < features; ++k)
              gate[g] += x[(t * batch + b) * features + k] * weight(1, d, k, features, j);
            for (size_t k = 0; k < hidden; ++k)
              gate[g] += q[b * hidden + k] * weight(2, d, k, hidden, j);
          }
          const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
          double& state = cell[b * hidden + u];
          state = sigmoid(gate[2]) * state + sigmoid(gate[0]) * std::tanh(gate[3]);
          h[b * hidden + u] = sigmoid(gate[1]) * std::tanh(state);
          y[((t * directions + d) * batch + b) * hidden + u] = h[b * hidden + u];
        }
      }
    }
    std::copy(h.begin(), h.end(), last_h.begin() + static_cast<int64_t>(first));
    std::copy(cell.begin(), cell.end(), last_c.begin() + static_cast<int64_t>(first));
  }
  c.outputs = {expected(dtype, dims({time, directions, batch, hidden}), y),
               expected(dtype, dims({directions, batch, hidden}), last_h),
               expected(dtype, dims({directions, batch, hidden}), last_c)};
  c.absolute = 1e-4;
  return c;
}

}  // namespace

const Generators& contrib_cases() {
  static const Generators all = {
      {"CDist", cdist},
      {"Inverse", inverse},
      {"NGramRepeatBlock", repeat_block},
      {"BifurcationDetector", bifurcation},
      {"DynamicTimeWarping", time_warping},
      {"MurmurHash3", hash},
      {"CropAndResize", crop},
      {"MatMulBnb4", bnb4},
      {"GatherBlockQuantized", gather_block},
      {"DynamicQuantizeLSTM", quantized_lstm},
  };
  return all;
}

}  // namespace pfrt::test
