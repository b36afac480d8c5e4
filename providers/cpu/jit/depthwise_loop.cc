// SPDX-License-Identifier: Apache-2.0
//
//   rdi  the arguments, then nothing     rsi, rdx  pixels and positions of the band's first row
//   rcx  weights     r8  bias            r9  bands left in the middle
//   rax, r10  pixels and positions in a loop over columns     r11  its turns left
//   vectors 0 and on  weights, where all of them have room; then the sums, rows x vectors of them,
//   the pixels of those vectors, and a weight
//
// A band is |rows| rows of positions. For each row of pixels that they see, and each tap along it,
// the pixels are loaded once, and multiplied by the weights of all rows that see them.
#include "providers/cpu/jit/depthwise_loop.h"

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "providers/cpu/jit/code_pages.h"
#include "providers/cpu/jit/published.h"

namespace pfrt::cpu {
namespace {

constexpr int kLanes = 8, kBlock = 16;
constexpr int kRegisters = 16, kFewTaps = 9;  // so few taps stay in registers
constexpr int kWideRegisters = 32, kWideFewTaps = 25;
constexpr int64_t kMostRows = 7;
constexpr size_t kCapacity = 192 << 10;
constexpr int64_t kMostReach = 1 << 28;  // bytes that an instruction reaches

class Generator final : public DepthwiseLoop, HasCodePages, Xbyak::CodeGenerator {
 public:
  explicit Generator(const Shape& shape)
      : CodeGenerator(kCapacity, Xbyak::DontSetProtectRWE, &pages),
        s_(shape),
        unit_(shape.nchw16c ? kBlock : 1),
        taps_(shape.taps[0] * shape.taps[1]),
        held_(taps_ <= (shape.wide ? kWideFewTaps : kFewTaps)) {
    shape_ = shape;
    const int64_t height = s_.positions[0];
    const bool one = !s_.nchw16c && s_.positions[1] <= kLanes;
    vectors_ = held_ || one ? 1 : 2;
    const int64_t registers = s_.wide ? kWideRegisters : kRegisters;
    const int64_t most = held_ ? std::min<int64_t>(registers - taps_ - others(), kMostRows)
                               : std::min((registers - others() - 1) / vectors_, kMostRows);
    const int64_t bands = (height + most - 1) / most;
    band_rows_ = (height + bands - 1) / bands;
    int64_t row = 0;
    for (; row < height && !(whole(row) && sees_all(row)); row += rows_at(row))
      top_rows_ += rows_at(row);
    for (; row < height && whole(row) && sees_all(row); row += band_rows_) ++middle_bands_;
    bottom_rows_ = height - row;
  }

  bool write() {
    emit();
    if (!seal(*this)) return false;
    code_ = getCode<decltype(code_)>();
    publish(s_.nchw16c ? "depthwise_nchw16c" : "depthwise_planes", CodeGenerator::getCode(),
            getSize());
    return true;
  }

 private:
  using X = Xbyak::CodeGenerator;

  // A vector's first position of a row; |moves| where it is one turn's in a loop, and sees no edge.
  struct Lane {
    int64_t position;
    bool moves;
  };
  // Pixels that a tap of a vector loads: all, some, or none of them on the image.
  struct Load {
    int64_t column;
    int first, last;
  };

  int64_t rows_at(int64_t row) const { return std::min(band_rows_, s_.positions[0] - row); }
  bool whole(int64_t row) const { return rows_at(row) == band_rows_; }
  int64_t pixel_row(int64_t row) const { return row * s_.strides[0] - s_.pads[0]; }
  bool on_image(int64_t row) const { return row >= 0 && row < s_.image[0]; }
  bool sees_all(int64_t row) const {
    return on_image(pixel_row(row)) &&
           on_image(pixel_row(row + band_rows_ - 1) + (s_.taps[0] - 1) * s_.dilations[0]);
  }

  int64_t row_bytes() const { return s_.image[1] * unit_ * 4; }
  int64_t out_row_bytes() const { return pitch() * unit_ * 4; }
  int64_t column_of(int64_t position, int64_t tap) const {
    return position * s_.strides[1] - s_.pads[1] + tap * s_.dilations[1];
  }
  bool pairs() const { return !s_.nchw16c && s_.strides[1] == 2; }
  Load load_at(int64_t column) const {
    if (s_.nchw16c) {
      const bool inside = column >= 0 && column < s_.image[1];
      return {column, 0, inside ? kLanes : 0};
    }
    const auto first = std::clamp<int64_t>(-column, 0, kLanes);
    const auto last = std::clamp<int64_t>(s_.image[1] - column, first, kLanes);
    return {column, static_cast<int>(first), static_cast<int>(last)};
  }
  // Whether a vector's pixels are all on the image.
  bool inside(int64_t position) const {
    for (int64_t x = 0; x < s_.taps[1]; ++x) {
      const Load load = load_at(column_of(position, x));
      if (load.last - load.first < kLanes) return false;
      if (pairs() && load_at(load.column + kLanes).last < kLanes) return false;
    }
    return true;
  }

  Xbyak::Xmm vector(int i) const {
    return s_.wide ? static_cast<Xbyak::Xmm>(Xbyak::Zmm(i))
                   : static_cast<Xbyak::Xmm>(Xbyak::Ymm(i));
  }
  Xbyak::Xmm sum(int64_t r, int64_t v) const {
    return vector(static_cast<int>((held_ ? taps_ : 0) + r * vectors_ + v));
  }
  // Registers for pixels: of a couple of taps there are two for each vector, and one at hand.
  int64_t others() const { return pairs() ? 2 * vectors_ + 1 : vectors_; }
  Xbyak::Xmm other(int64_t i) const { return vector(static_cast<int>(sum(rows_, 0).getIdx() + i)); }
  Xbyak::Xmm pixels(int64_t v, int64_t second) const { return other(second * vectors_ + v); }
  Xbyak::Xmm at_hand() const { return other(2 * vectors_); }
  Xbyak::Xmm weight_register() const { return other(others()); }
  Xbyak::Address weight_at(int64_t tap) const {
    return ptr[rcx + static_cast<size_t>(tap * unit_ * 4)];
  }
  void load_weight(const Xbyak::Xmm& to, int64_t tap) {
    if (s_.nchw16c)
      vmovups(to, weight_at(tap));
    else
      vbroadcastss(to, weight_at(tap));
  }

  // Where the pixel of a lane is in memory, in row |q| of those that the band sees.
  Xbyak::Address pixel_at(const Lane& lane, int64_t q, int64_t column) const {
    const int64_t at = q * row_bytes() + column * unit_ * 4;
    return ptr[(lane.moves ? rax : rsi) + static_cast<size_t>(at)];
  }

  void mask_for(const Xbyak::Xmm& to, const Load& load) {
    masks_.push_back({load.first, load.last});
    size_t i = 0;
    while (masks_[i] != masks_.back()) ++i;
    if (i + 1 < masks_.size()) masks_.pop_back();
    if (labels_.size() < masks_.size()) labels_.emplace_back();
    vmovups(to, ptr[rip + labels_[i]]);
  }
  void load_pixels(const Xbyak::Xmm& to, const Lane& lane, int64_t q, const Load& load) {
    const Xbyak::Address at = pixel_at(lane, q, load.column);
    if (load.last == load.first && s_.wide)
      vpxord(to, to, to);
    else if (load.last == load.first)
      vxorps(to, to, to);
    else if (load.last - load.first == kLanes)
      vmovups(to, at);
    else
      mask_for(to, load), vmaskmovps(to, to, at);
  }
  // Every second pixel from |column| on, and those between them for |second| where there is one.
  // Lanes are in the order 0, 1, 4, 5, 2, 3, 6, 7 until they are stored.
  void load_pairs(const Xbyak::Xmm& first, const Xbyak::Xmm* second, const Lane& lane, int64_t q,
                  int64_t column) {
    constexpr uint8_t kEven = 0b10'00'10'00, kOdd = 0b11'01'11'01, kEvenThenOdd = 0b11'01'10'00;
    const int64_t high = column + kLanes - (second == nullptr);
    load_pixels(first, lane, q, load_of(lane, column));
    load_pixels(at_hand(), lane, q, load_of(lane, high));
    if (second == nullptr) return vshufps(first, first, at_hand(), kEvenThenOdd);
    vshufps(*second, first, at_hand(), kOdd);
    vshufps(first, first, at_hand(), kEven);
  }
  Load load_of(const Lane& lane, int64_t column) const {
    return lane.moves ? Load{column, 0, kLanes} : load_at(column);
  }
  // Whether some position of a vector sees the image by tap |x| along a row.
  bool sees(const Lane& lane, int64_t x) const {
    const int64_t column = column_of(lane.position, x);
    const Load low = load_of(lane, column), high = load_of(lane, column + kLanes - 1);
    return low.last > low.first || (pairs() && high.last > high.first);
  }

  // Exchanges the two pairs in the middle of 8 lanes.
  void exchange_middle(const Xbyak::Xmm& to, const Xbyak::Operand& from) {
    vpermpd(Xbyak::Ymm(to.getIdx()), from, 0b11'01'10'00);
  }

  // Writes the sums of |lanes| in all rows of a band; |top| is the row of pixels that it begins at,
  // if it may see an edge.
  void body(const std::vector<Lane>& lanes, const int64_t* top) {
    const auto n = static_cast<int64_t>(lanes.size());
    const auto out_at = [&](int64_t r, const Lane& lane) {
      const int64_t at = r * out_row_bytes() + lane.position * unit_ * 4;
      return ptr[(lane.moves ? r10 : rdx) + static_cast<size_t>(at)];
    };
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t v = 0; v < n; ++v)
        if (s_.adds && pairs())
          exchange_middle(sum(r, v), out_at(r, lanes[static_cast<size_t>(v)]));
        else if (s_.adds)
          vmovups(sum(r, v), out_at(r, lanes[static_cast<size_t>(v)]));
        else if (s_.nchw16c)
          vmovups(sum(r, v), ptr[r8]);
        else
          vbroadcastss(sum(r, v), ptr[r8]);
    const int64_t reach = (rows_ - 1) * s_.strides[0] + (s_.taps[0] - 1) * s_.dilations[0] + 1;
    for (int64_t q = 0; q < reach; ++q) {
      if (top != nullptr && !on_image(*top + q)) continue;
      for (int64_t x = 0; x < s_.taps[1]; x += together()) columns(lanes, q, x);
    }
    for (int64_t r = 0; r < rows_; ++r)
      for (int64_t v = 0; v < n; ++v) {
        const Lane& lane = lanes[static_cast<size_t>(v)];
        if (pairs()) exchange_middle(sum(r, v), sum(r, v));
        vmovups(out_at(r, lane), sum(r, v));
      }
  }
  int64_t together() const { return pairs() && s_.dilations[1] == 1 ? 2 : 1; }
  // Row |q| of pixels, taps from |x| on along it, as many as are loaded together.
  void columns(const std::vector<Lane>& lanes, int64_t q, int64_t x) {
    std::vector<std::pair<int64_t, int64_t>> users;  // rows of positions, of taps
    for (int64_t y = s_.taps[0]; y-- > 0;) {
      const int64_t below = q - y * s_.dilations[0];
      if (below >= 0 && below % s_.strides[0] == 0 && below / s_.strides[0] < rows_)
        users.emplace_back(below / s_.strides[0], y);
    }
    if (users.empty()) return;
    const int64_t end = std::min(x + together(), s_.taps[1]);
    const auto n = static_cast<int64_t>(lanes.size());
    for (int64_t v = 0; v < n; ++v) {
      const Lane& lane = lanes[static_cast<size_t>(v)];
      const int64_t column = column_of(lane.position, x);
      if (!sees(lane, x) && !sees(lane, end - 1)) continue;
      if (pairs()) {
        const Xbyak::Xmm second = pixels(v, 1);
        load_pairs(pixels(v, 0), end > x + 1 ? &second : nullptr, lane, q, column);
      } else {
        load_pixels(pixels(v, 0), lane, q, load_of(lane, column));
      }
    }
    for (int64_t i = x; i < end; ++i)
      for (const auto& [r, y] : users) {
        const int64_t tap = y * s_.taps[1] + i;
        const Xbyak::Xmm weight = held_ ? vector(static_cast<int>(tap)) : weight_register();
        if (!held_) load_weight(weight, tap);
        for (int64_t v = 0; v < n; ++v)
          if (sees(lanes[static_cast<size_t>(v)], i))
            vfmadd231ps(sum(r, v), weight, pixels(v, i - x));
      }
  }

  // Writes a band of |rows| rows.
  void band(int64_t rows, const int64_t* top) {
    rows_ = rows;
    const int64_t length = s_.positions[1], step = s_.nchw16c ? 1 : kLanes;
    std::vector<int64_t> starts;
    for (int64_t p = 0; p < length; p += step)
      starts.push_back(s_.nchw16c || s_.adds || length < kLanes ? p : std::min(p, length - kLanes));
    const auto group = [&](size_t begin, size_t end) {
      std::vector<Lane> lanes;
      for (size_t i = begin; i < std::min(end, starts.size()); ++i)
        lanes.push_back({starts[i], false});
      if (!lanes.empty()) body(lanes, top);
    };
    const auto together = static_cast<size_t>(vectors_);
    size_t first = 0, last;  // vectors that see no edge and follow each other in equal steps
    while (first < starts.size() && !inside(starts[first])) first += together;
    first = std::min(first, starts.size());
    for (last = first; last < starts.size() && inside(starts[last]) &&
                       starts[last] == static_cast<int64_t>(last) * step;)
      ++last;
    const size_t turns = (last - first) / together;
    for (size_t i = 0; i < first; i += together) group(i, std::min(i + together, first));
    if (turns > 1) {
      const int64_t from = starts[first];
      lea(rax, ptr[rsi + static_cast<size_t>(from * s_.strides[1] * unit_ * 4)]);
      lea(r10, ptr[rdx + static_cast<size_t>(from * unit_ * 4)]);
      mov(r11d, static_cast<uint32_t>(turns));
      std::vector<Lane> lanes;
      for (size_t v = 0; v < together; ++v) lanes.push_back({static_cast<int64_t>(v) * step, true});
      Xbyak::Label next;
      L(next);
      body(lanes, top);
      const int64_t moved = static_cast<int64_t>(together) * step;
      add(rax, static_cast<uint32_t>(moved * s_.strides[1] * unit_ * 4));
      add(r10, static_cast<uint32_t>(moved * unit_ * 4));
      dec(r11d);
      jnz(next, T_NEAR);
      first += turns * together;
    }
    for (size_t i = first; i < starts.size(); i += together) group(i, i + together);
    add(rsi, static_cast<uint32_t>(rows * s_.strides[0] * row_bytes()));
    add(rdx, static_cast<uint32_t>(rows * out_row_bytes()));
  }
  void bands(int64_t row, int64_t end) {
    for (int64_t rows; row < end; row += rows) {
      rows = rows_at(row);
      const int64_t top = pixel_row(row);
      band(rows, &top);
    }
  }

  void emit() {
    Xbyak::Label plane, middle, bottom, next, done, out;
    const auto arg = [&](size_t offset) { return ptr[rdi + offset]; };
    mov(rsi, arg(offsetof(Arguments, in)));
    mov(rdx, arg(offsetof(Arguments, out)));
    mov(rcx, arg(offsetof(Arguments, weights)));
    mov(r8, arg(offsetof(Arguments, bias)));
    L(plane);
    for (int64_t t = 0; held_ && t < taps_; ++t) load_weight(vector(static_cast<int>(t)), t);
    const int64_t rows = s_.positions[0];
    if (top_rows_ > 0) {
      cmp(qword[rdi + offsetof(Arguments, top)], 0);
      je(middle, T_NEAR);
      bands(0, top_rows_);
      L(middle);
    }
    if (middle_bands_ > 0) {
      mov(r9, arg(offsetof(Arguments, middle)));
      test(r9, r9);
      jz(bottom, T_NEAR);
      L(next);
      band(band_rows_, nullptr);
      dec(r9);
      jnz(next, T_NEAR);
      L(bottom);
    }
    if (bottom_rows_ > 0) {
      cmp(qword[rdi + offsetof(Arguments, bottom)], 0);
      je(done, T_NEAR);
      bands(rows - bottom_rows_, rows);
      L(done);
    }
    // The next plane: its positions follow those of this one, or are the same.
    dec(qword[rdi + offsetof(Arguments, planes)]);
    jz(out, T_NEAR);
    if (s_.adds) {
      mov(rsi, arg(offsetof(Arguments, in)));
      add(rsi, static_cast<uint32_t>(s_.image[0] * row_bytes()));
      mov(arg(offsetof(Arguments, in)), rsi);
      mov(rdx, arg(offsetof(Arguments, out)));
    } else {
      add(rsi, static_cast<uint32_t>((s_.image[0] - rows * s_.strides[0]) * row_bytes()));
    }
    add(rcx, static_cast<uint32_t>(taps_ * 4));
    add(r8, arg(offsetof(Arguments, bias_step)));
    jmp(plane, T_NEAR);
    L(out);
    vzeroupper();
    ret();
    align(32);
    for (size_t i = 0; i < masks_.size(); ++i) {
      L(labels_[i]);
      for (int lane = 0; lane < kLanes; ++lane)
        dd(lane >= masks_[i].first && lane < masks_[i].second ? 0xffffffff : 0);
    }
  }

  const Shape s_;
  const int64_t unit_, taps_;
  const bool held_;
  int64_t vectors_ = 1, rows_ = 0;
  std::vector<std::pair<int, int>> masks_;
  std::vector<Xbyak::Label> labels_;
};

}  // namespace

std::shared_ptr<const DepthwiseLoop> DepthwiseLoop::make(const Shape& s) {
  const int64_t unit = s.nchw16c ? kBlock : 1;
  for (size_t d = 0; d < 2; ++d)
    if (s.image[d] < 1 || s.positions[d] < 1 || s.image[d] > kMostReach ||
        s.positions[d] > kMostReach || s.pads[d] < 0 || s.pads[d] > kMostReach || s.taps[d] < 1 ||
        s.taps[d] > kMostTaps || s.strides[d] < 1 || s.dilations[d] < 1 ||
        s.strides[d] > s.image[d] + s.pads[d] || s.dilations[d] > s.image[d] + s.pads[d])
      return nullptr;
  if (s.taps[0] * s.taps[1] > kMostTaps || (!s.nchw16c && s.strides[1] > 2)) return nullptr;
  // The bands of one call, and what an instruction of one reaches.
  const int64_t width = std::max(s.image[1] + s.pads[1], s.positions[1]) * unit * 4;
  const int64_t reach = kMostRows * s.strides[0] + s.taps[0] * s.dilations[0];
  if (width > kMostReach || reach > kMostReach / width) return nullptr;
  Xbyak::ClearError();
  const auto made = std::make_shared<Generator>(s);
  if (Xbyak::GetError() == Xbyak::ERR_CANT_ALLOC) {
    Xbyak::ClearError();
    throw std::bad_alloc();
  }
  return made->write() ? made : nullptr;
}

int64_t DepthwiseLoop::first_row(int64_t band) const {
  if (band >= bands()) return shape_.positions[0];
  if (top_rows_ > 0) return band == 0 ? 0 : top_rows_ + (band - 1) * band_rows_;
  return band * band_rows_;
}

void DepthwiseLoop::run(const float* in, const float* weights, const float* bias, float* out,
                        int64_t begin, int64_t end, int64_t planes, int64_t bias_step) const {
  const int64_t unit = shape_.nchw16c ? kBlock : 1, row = first_row(begin);
  const int64_t has_top = top_rows_ > 0, first_bottom = has_top + middle_bands_;
  Arguments arguments;
  // The address of the first pixel may lie before the image; rows there are not read.
  const int64_t pixels = (row * shape_.strides[0] - shape_.pads[0]) * shape_.image[1] * unit;
  arguments.in = reinterpret_cast<uintptr_t>(in) + static_cast<uintptr_t>(pixels * 4);
  arguments.weights = weights;
  arguments.bias = bias;
  arguments.out = shape_.adds ? out : out + row * pitch() * unit;
  arguments.top = begin < has_top && begin < end;
  arguments.middle = std::max<int64_t>(std::min(end, first_bottom) - std::max(begin, has_top), 0);
  arguments.bottom = bottom_rows_ > 0 && end > first_bottom;
  arguments.planes = planes;
  arguments.bias_step = bias_step * int64_t{sizeof(float)};
  code_(&arguments);
}

}  // namespace pfrt::cpu
