// SPDX-License-Identifier: Apache-2.0
//
// Machine code for matmuls of a few rows with weights of 2, 4 or 8 bits: weights are widened in
// registers, on their way from memory, and never stored in another width. Rows are float32, or
// int8 with a scale for each block of k. Up to four panels are read at once, since reading memory
// in several places is faster than in one. For AVX2, AVX-512, and AVX-512 with VNNI; all have the
// same bits, and a row has the same whatever other rows are multiplied with it. Immutable;
// thread-safe.
//
// A panel is 16 columns of weights. Block by block of k it has
//   lines of 64 bytes: 32 bits for each column, which are fields of 32 / bits neighbours of k;
//   field f, at bit f * bits, is k = f % (8 / bits) * 4 + f / (8 / bits) of them, so that four
//   neighbours are bytes of one shift of the line; 16 float32 scales.
// After its last block come the zero points, 16 a block: bytes or float32, or none where all are
// 2^(bits - 1). A weight is (field - zero point) * scale.
#pragma once

#include <cstdint>

namespace pfrt::cpu {

// The layout of weights of a few bits in memory, which all instruction sets share.
struct NBitsPanel {
  enum class Zeros : uint8_t { kMiddle, kUint8, kFloat };
  static constexpr int64_t kColumns = 16;
  static constexpr int64_t kLine = 64;  // bytes

  int64_t bits = 4, block = 32, blocks = 0;  // of k: elements, number
  Zeros zeros = Zeros::kMiddle;

  static constexpr bool takes(int64_t bits, int64_t block) {
    return (bits == 2 || bits == 4 || bits == 8) && (block & (block - 1)) == 0 && block >= 16 &&
           block <= 256;
  }
  int64_t fields() const { return 32 / bits; }
  int64_t lines() const { return block / fields(); }  // a block
  int64_t block_bytes() const { return (lines() + 1) * kLine; }
  int64_t zero_bytes() const {  // a block
    return zeros == Zeros::kMiddle ? 0 : zeros == Zeros::kUint8 ? kColumns : kLine;
  }
  int64_t zeros_at() const { return blocks * block_bytes(); }
  int64_t bytes() const { return (zeros_at() + blocks * zero_bytes() + kLine - 1) / kLine * kLine; }
};

class NBitsMicrokernel {
 public:
  using Zeros = NBitsPanel::Zeros;
  enum class Rows : uint8_t { kFloat, kInt8 };
  static constexpr int64_t kMostRows = 12, kMostPanels = 4;
  // Sums of products are added to the result, times the scale, after at most as many k.
  static constexpr int64_t kChain = 64;
  // k that a sum of int16 may have before it is one of int32.
  static constexpr int64_t kShortSum = 32;

  // nullptr where the machine, or PFRT_ISA, has no AVX2, or code cannot be made executable, and for
  // rows of bytes with zero points that are floats.
  static const NBitsMicrokernel* get(Rows rows, int64_t bits, Zeros zeros);
  // The one for float rows and weights of |bits| that widen() made floats, with the same bits as
  // results: widening once pays where many rows share it.
  static const NBitsMicrokernel* get_widened(int64_t bits);

  // The factors of a call: equal blocks of k of 1 to rows() rows and of some panels.
  //
  // Rows are packed together, block by block. A block of float rows has for each k the floats of
  // all rows. A block of int8 rows has the scales of all rows, then their corrections, then for
  // each four neighbours of k the bytes of all rows. A correction is an int32: the sum of the row's
  // block, negative, times the zero point if that is 2^(bits - 1). Where zero points are bytes it
  // has only the lower 16 bits of that sum, and 0 above.
  struct Blocks {
    const void* a;
    const uint8_t* b;
    const uint8_t* zeros;  // of the first block; unused with Zeros::kMiddle
    int64_t b_panel;       // bytes to the next panel, of b and of zeros
    int64_t blocks;        // 1 or more
    int64_t block_bytes;   // of a panel
    int64_t scales_at;     // bytes from the beginning of a block
    int64_t segments;      // of a block, and lines of one: see segment()
    int64_t segment_lines;
    float* c;  // sums to add to: 16 floats a row, all rows of a panel after another
  };
  static int64_t row_bytes(Rows rows, int64_t block) {  // of a block of one row
    return rows == Rows::kFloat ? block * 4 : block + 8;
  }
  // Fills in what follows from the panel's layout.
  void set_blocks(const NBitsPanel& panel, Blocks& blocks) const;
  // Bytes of a widened block: each weight less its zero point, field by field of a line, then the
  // scales.
  static int64_t widened_bytes(const NBitsPanel& panel) {
    return (panel.block + 1) * NBitsPanel::kLine;
  }
  // Widens |blocks| blocks of a panel, from |b| and |zeros| on, to floats at |to|. Only
  // microkernels of float rows can.
  void widen(const NBitsPanel& panel, const uint8_t* b, const uint8_t* zeros, int64_t blocks,
             float* to) const;

  int64_t rows() const { return rows_; }
  // Panels that |rows| rows read at once.
  int64_t panels(int64_t rows) const { return panels_[rows - 1]; }
  void run_one(int64_t rows, const Blocks& blocks) const { one_[rows - 1](&blocks); }
  void run_several(int64_t rows, const Blocks& blocks) const { several_[rows - 1](&blocks); }

 private:
  friend class NBitsMicrokernelSet;
  using Code = void (*)(const Blocks* blocks);
  int64_t segment_ = kChain;
  bool widened_ = false;
  Code widen_ = nullptr;
  int64_t rows_ = 0;
  int64_t panels_[kMostRows] = {};
  Code one_[kMostRows] = {}, several_[kMostRows] = {};
};

}  // namespace pfrt::cpu
