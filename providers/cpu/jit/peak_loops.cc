// SPDX-License-Identifier: Apache-2.0
//
//   rdi  data        rsi  blocks         rdx  passes left
//   rax  block       rcx  blocks left    r8   bytes of a row of a tile
//   r9, r10  bytes to the second and to the fourth stream
//   Arithmetic in registers is an outer product, as in the inner loop of a matrix product: |rows|
//   registers hold one factor; each of four vectors of a block is loaded and multiplied with all of
//   them. On tiles it is 2 x 2 tiles, tmm0-3 the sums, tmm4-5 and tmm6-7 the factors, all loaded
//   anew in each block.
#include "providers/cpu/jit/peak_loops.h"

#include "providers/cpu/jit/code_pages.h"

namespace pfrt::cpu {
namespace {

constexpr size_t kCapacity = 32768;
constexpr int kColumns = 4, kTileBytes = 1024, kReads = 16, kStreams = 4;

class Generator final : public PeakLoops, HasCodePages, Xbyak::CodeGenerator {
 public:
  explicit Generator(Isa isa)
      : CodeGenerator(kCapacity, Xbyak::DontSetProtectRWE, &pages),
        isa_(isa),
        wide_(isa >= Isa::kAvx512),
        vector_bytes_(wide_               ? 64
                      : isa >= Isa::kAvx2 ? 32
                                          : 16) {}

  bool write(bool tiles) {
    if (Xbyak::GetError() != Xbyak::ERR_NONE) return seal(*this);  // no memory to write to
    reads();
    if (isa_ >= Isa::kAvx2) {
      fma();
      int8_dot();
    }
    if (isa_ >= Isa::kAvx512Bf16) bf16_dot();
    if (tiles) on_tiles();
    return seal(*this);
  }

 private:
  Xbyak::Xmm vector(int index) const {
    if (wide_) return Xbyak::Zmm(index);
    return isa_ >= Isa::kAvx2 ? Xbyak::Ymm(index) : Xbyak::Xmm(index);
  }

  size_t at_vector(int index) const {
    return static_cast<size_t>(index) * static_cast<size_t>(vector_bytes_);
  }
  static size_t at_tile(int index) { return static_cast<size_t>(index) * kTileBytes; }

  // The loops around a block; |begin| prepares registers, |end| gives back what it took.
  template <typename Begin, typename Block, typename End>
  void loop(Kind kind, PeakLoop made, Begin&& begin, Block&& block, End&& end, int streams = 1) {
    const int advance = static_cast<int>(made.block_bytes) / streams;
    Xbyak::Label pass, next;
    align(64);
    made.run = getCurr<decltype(made.run)>();
    begin();
    imul(r9, rsi, advance);
    lea(r10, ptr[r9 + r9 * 2]);
    L(pass);
    mov(rax, rdi);
    mov(rcx, rsi);
    align(32);
    L(next);
    block();
    add(rax, static_cast<uint32_t>(advance));
    dec(rcx);
    jnz(next, T_NEAR);
    dec(rdx);
    jnz(pass, T_NEAR);
    end();
    ret();
    loops_[kind] = made;
  }

  // Memory is read at four places at once: one stream keeps too few lines on their way.
  Xbyak::RegExp stream(int index) const {
    constexpr int kFourth = 3;
    if (index == kFourth) return rax + r10;
    return index == 0 ? Xbyak::RegExp(rax) : rax + r9 * index;
  }

  void reads() {
    const int bytes = kReads * vector_bytes_;
    const PeakLoop made{wide_                ? "vmovups zmm"
                        : isa_ >= Isa::kAvx2 ? "vmovups ymm"
                                             : "movups xmm",
                        PeakData::kFloat32, bytes, bytes};
    const auto block = [&] {
      for (int i = 0; i < kReads; ++i) {
        constexpr int kEach = kReads / kStreams;
        const Xbyak::Address at = ptr[stream(i / kEach) + at_vector(i % kEach)];
        if (isa_ >= Isa::kAvx2) {
          vmovups(vector(i), at);
        } else {
          movups(Xbyak::Xmm(i), at);
        }
      }
    };
    loop(
        kRead, made, [] {}, block, [&] { end_vectors(); }, kStreams);
  }

  void end_vectors() {
    if (isa_ >= Isa::kAvx2) vzeroupper();
  }

  // Registers: |rows| factors, their sums, the vector at hand. |operations| of one
  // multiply(sum, a, b).
  template <typename Multiply>
  void outer_product(Kind kind, int rows, int operations, std::string_view instructions,
                     PeakData data, Multiply&& multiply, int ones = -1) {
    const int bytes = kColumns * vector_bytes_;
    const auto begin = [&] {
      for (int r = 0; r < rows; ++r) vmovups(vector(r), ptr[rdi + at_vector(r)]);
      for (int i = 0; i < rows * kColumns; ++i) clear(rows + i);
      if (ones < 0) return;
      mov(eax, 0x00010001);
      vmovd(Xbyak::Xmm(ones), eax);
      vpbroadcastd(vector(ones), Xbyak::Xmm(ones));
    };
    const auto block = [&] {
      for (int c = 0; c < kColumns; ++c) {
        const Xbyak::Xmm column = vector(rows * (kColumns + 1));
        vmovups(column, ptr[rax + at_vector(c)]);
        for (int r = 0; r < rows; ++r) multiply(vector(rows + r * kColumns + c), vector(r), column);
      }
    };
    loop(kind,
         {instructions, data, bytes, static_cast<int64_t>(rows) * kColumns * operations, nullptr},
         begin, block, [&] { end_vectors(); });
  }

  void clear(int index) {
    if (wide_) {
      vpxord(vector(index), vector(index), vector(index));
    } else {
      vpxor(vector(index), vector(index), vector(index));
    }
  }

  void fma() {
    outer_product(kFma, wide_ ? 6 : 3, 2 * vector_bytes_ / 4,
                  wide_ ? "vfmadd231ps zmm" : "vfmadd231ps ymm", PeakData::kFloat32,
                  [&](const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
                    vfmadd231ps(sum, a, b);
                  });
  }

  void bf16_dot() {
    outer_product(kBf16Dot, 6, 2 * vector_bytes_ / 2, "vdpbf16ps zmm", PeakData::kBfloat16,
                  [&](const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
                    vdpbf16ps(sum, a, b);
                  });
  }

  void int8_dot() {
    const int operations = 2 * vector_bytes_;
    if (isa_ >= Isa::kAvx512Bf16) {
      return outer_product(kInt8Dot, 6, operations, "vpdpbusd zmm", PeakData::kInt8,
                           [&](const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
                             vpdpbusd(sum, a, b);
                           });
    }
    constexpr int kRows = 2, kOnes = 14, kProduct = 15;  // pairs are summed by a product with ones
    outer_product(
        kInt8Dot, kRows, operations,
        wide_ ? "vpmaddubsw, vpmaddwd, vpaddd zmm" : "vpmaddubsw, vpmaddwd, vpaddd ymm",
        PeakData::kInt8,
        [&](const Xbyak::Xmm& sum, const Xbyak::Xmm& a, const Xbyak::Xmm& b) {
          vpmaddubsw(vector(kProduct), a, b);
          vpmaddwd(vector(kProduct), vector(kProduct), vector(kOnes));
          vpaddd(sum, sum, vector(kProduct));
        },
        kOnes);
  }

  // Calls |block| between setting tiles up and giving them back.
  template <typename Block>
  void tile_loop(Kind kind, const PeakLoop& made, Block&& block, int streams = 1) {
    const auto begin = [&] {
      ldtilecfg(ptr[rip + palette_]);
      mov(r8d, 64);
    };
    loop(
        kind, made, begin, block, [&] { tilerelease(); }, streams);
  }

  template <typename Product>
  void tile_product(Kind kind, PeakData data, int depth, std::string_view instructions,
                    Product&& product) {
    constexpr int kTiles = 4;
    const auto load = [&](int tile, int place) {
      tileloadd(Xbyak::Tmm(tile), ptr[rax + r8 + at_tile(place)]);
    };
    const auto block = [&] {
      load(4, 0);
      load(6, 1);
      product(Xbyak::Tmm(0), Xbyak::Tmm(4), Xbyak::Tmm(6));
      load(7, 2);
      product(Xbyak::Tmm(1), Xbyak::Tmm(4), Xbyak::Tmm(7));
      load(5, 3);
      product(Xbyak::Tmm(2), Xbyak::Tmm(5), Xbyak::Tmm(6));
      product(Xbyak::Tmm(3), Xbyak::Tmm(5), Xbyak::Tmm(7));
    };
    tile_loop(
        kind,
        {instructions, data, kTiles * kTileBytes, int64_t{kTiles} * 16 * 16 * depth * 2, nullptr},
        block);
  }

  void on_tiles() {
    align(64);
    L(palette_);  // palette 1, eight tiles of 16 rows of 64 bytes
    for (int i = 0; i < 64; ++i) {
      const bool width = i >= 16 && i < 32 && i % 2 == 0, height = i >= 48 && i < 56;
      db(i == 0 ? 1 : width ? 64 : height ? 16 : 0);
    }
    tile_product(kBf16Tiles, PeakData::kBfloat16, 32, "tdpbf16ps",
                 [&](const Xbyak::Tmm& sum, const Xbyak::Tmm& a, const Xbyak::Tmm& b) {
                   tdpbf16ps(sum, a, b);
                 });
    tile_product(kInt8Tiles, PeakData::kInt8, 64, "tdpbssd",
                 [&](const Xbyak::Tmm& sum, const Xbyak::Tmm& a, const Xbyak::Tmm& b) {
                   tdpbssd(sum, a, b);
                 });
    constexpr int kLoads = 8, kEach = kLoads / kStreams;
    const auto block = [&] {
      for (int i = 0; i < kLoads; ++i) {
        lea(r11, ptr[stream(i / kEach) + at_tile(i % kEach)]);
        tileloadd(Xbyak::Tmm(i), ptr[r11 + r8]);
      }
    };
    tile_loop(kTileLoad,
              {"tileloadd", PeakData::kFloat32, kLoads * kTileBytes, kLoads * kTileBytes, nullptr},
              block, kStreams);
  }

  const Isa isa_;
  const bool wide_;
  const int vector_bytes_;
  Xbyak::Label palette_;
};

}  // namespace

Result<std::unique_ptr<PeakLoops>> PeakLoops::make(Isa isa, bool tiles) {
  Xbyak::ClearError();
  auto made = std::make_unique<Generator>(isa);
  if (!made->write(tiles))
    return error(Code::kPROVIDER,
                 "generating the loops that measure this machine: the system does not let their "
                 "memory become executable");
  return std::unique_ptr<PeakLoops>(std::move(made));
}

}  // namespace pfrt::cpu
