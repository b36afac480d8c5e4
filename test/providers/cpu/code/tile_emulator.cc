// SPDX-License-Identifier: Apache-2.0
#include "test/providers/cpu/code/tile_emulator.h"

#include <immintrin.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "providers/cpu/isa/amx.h"
#include "providers/cpu/isa/isa.h"

namespace pfrt::test {
namespace tile_emulation {
namespace {

constexpr int kTiles = 8, kMostRows = 16, kMostBytes = 64;

struct Tile {
  int rows = 0, bytes = 0;  // bytes in a row
  uint8_t data[kMostRows][kMostBytes];
};

struct TileState {
  bool configured = false;
  int start_row = 0;
  Tile tiles[kTiles];
};

thread_local TileState state;
std::atomic<uint64_t> executed_count, byte_count, bfloat16_count;
struct sigaction without;

// A decoded instruction with a VEX prefix of three bytes, of the map 0F 38.
struct Decoded {
  enum Prefix : uint8_t { kNone, k66, kF3, kF2 };
  Prefix prefix;
  uint8_t opcode;
  bool in_registers;   // ModRM.mod is 3
  bool has_index;      // the operand in memory has a SIB byte
  int reg, rm, third;  // third: VEX.vvvv
  uint64_t address;    // address of the operand in memory, without the index
  uint64_t stride;     // the index times its scale
  int length;
};

uint64_t general(const ucontext_t& context, int number) {
  constexpr int kPlaces[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                             REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                             REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uint64_t>(context.uc_mcontext.gregs[kPlaces[number]]);
}

template <typename T>
T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool decode(const ucontext_t& context, Decoded& out) {
  const auto rip = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto* at = reinterpret_cast<const uint8_t*>(rip);
  const auto* const begin = at;
  if (at[0] != 0xc4) return false;
  const uint8_t first = at[1], second = at[2];
  const bool w = second & 0x80, l = second & 4;
  if ((first & 0x1f) != 2 || w || l) return false;
  const int r = first & 0x80 ? 0 : 8, x = first & 0x40 ? 0 : 8, b = first & 0x20 ? 0 : 8;
  out.prefix = static_cast<Decoded::Prefix>(second & 3);
  out.third = ~second >> 3 & 15;
  out.opcode = at[3];
  const uint8_t modrm = at[4];
  at += 5;
  const int mod = modrm >> 6;
  out.reg = r + (modrm >> 3 & 7);
  out.rm = b + (modrm & 7);
  out.in_registers = mod == 3;
  out.has_index = false;
  out.address = out.stride = 0;
  if (!out.in_registers) {
    bool based = true, after_rip = false;
    int base = out.rm;
    if ((modrm & 7) == 4) {
      const uint8_t sib = *at++;
      const int index = x + (sib >> 3 & 7);
      base = b + (sib & 7);
      out.has_index = true;
      if (index != 4) out.stride = general(context, index) << (sib >> 6);
      based = mod != 0 || (sib & 7) != 5;
    } else if (mod == 0 && (modrm & 7) == 5) {
      based = false, after_rip = true;
    }
    if (based) out.address = general(context, base);
    if (mod == 1) {
      out.address += static_cast<uint64_t>(int64_t{read<int8_t>(at)});
      at += 1;
    } else if (mod == 2 || !based) {
      out.address += static_cast<uint64_t>(int64_t{read<int32_t>(at)});
      at += 4;
    }
    if (after_rip) out.address += reinterpret_cast<uint64_t>(at);
  }
  out.length = static_cast<int>(at - begin);
  return true;
}

bool configure(uint64_t address) {
  uint8_t memory[64];
  std::memcpy(memory, reinterpret_cast<const void*>(address), sizeof memory);
  TileState next;
  if (memory[0] > 1) return false;
  if (memory[0] == 0) {  // the same as tilerelease
    state = TileState{};
    return true;
  }
  for (int i = 2; i < 16; ++i)
    if (memory[i] != 0) return false;
  for (int i = 0; i < 16; ++i) {
    const int bytes = read<uint16_t>(memory + 16 + 2 * i), rows = memory[48 + i];
    if ((i >= kTiles && (bytes != 0 || rows != 0)) || bytes > kMostBytes || rows > kMostRows ||
        (bytes == 0) != (rows == 0))
      return false;
    if (i < kTiles) next.tiles[i].rows = rows, next.tiles[i].bytes = bytes;
  }
  for (Tile& tile : next.tiles) std::memset(tile.data, 0, sizeof tile.data);
  next.configured = true;
  next.start_row = memory[1];
  state = next;
  return true;
}

// Returns the tile of that number; null when it is not configured.
Tile* tile_of(int number) {
  if (!state.configured || number >= kTiles || state.tiles[number].rows == 0) return nullptr;
  return &state.tiles[number];
}

bool load(const Decoded& in) {
  Tile* const tile = tile_of(in.reg);
  if (tile == nullptr || state.start_row >= tile->rows) return false;
  for (int row = state.start_row; row < tile->rows; ++row) {
    const uint64_t from = in.address + static_cast<uint64_t>(row) * in.stride;
    std::memset(tile->data[row], 0, kMostBytes);
    std::memcpy(tile->data[row], reinterpret_cast<const void*>(from),
                static_cast<size_t>(tile->bytes));
  }
  state.start_row = 0;
  return true;
}

bool store(const Decoded& in) {
  const Tile* const tile = tile_of(in.reg);
  if (tile == nullptr || state.start_row >= tile->rows) return false;
  for (int row = state.start_row; row < tile->rows; ++row) {
    const uint64_t to = in.address + static_cast<uint64_t>(row) * in.stride;
    std::memcpy(reinterpret_cast<void*>(to), tile->data[row], static_cast<size_t>(tile->bytes));
  }
  state.start_row = 0;
  return true;
}

// sums += a b, with signed or unsigned bytes. It is not sanitized, since it takes most of the time.
__attribute__((no_sanitize("address", "undefined", "thread"))) void multiply_bytes(
    Tile& sums, const Tile& a, const Tile& b, bool a_signed, bool b_signed) {
  const int steps = a.bytes / 4, columns = sums.bytes / 4;
  int32_t of_b[kMostBytes][kMostRows];  // by k and column
  for (int k = 0; k < 4 * steps; ++k)
    for (int n = 0; n < columns; ++n) {
      const uint8_t byte = b.data[k / 4][4 * n + k % 4];
      of_b[k][n] = b_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
    }
  for (int m = 0; m < sums.rows; ++m) {
    uint32_t row[kMostRows];
    std::memcpy(row, sums.data[m], sizeof row);
    for (int k = 0; k < 4 * steps; ++k) {
      const uint8_t byte = a.data[m][k];
      const int32_t x = a_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
      for (int n = 0; n < columns; ++n) row[n] += static_cast<uint32_t>(x * of_b[k][n]);
    }
    std::memcpy(sums.data[m], row, sizeof row);
  }
}

// sums += a b, with pairs of bfloat16. The first products of all pairs are summed and rounded, then
// the second ones, then both sums. Denormal numbers are 0, as factors and as results.
__attribute__((target("avx2,fma"), no_sanitize("address", "undefined", "thread"))) void
multiply_pairs(Tile& sums, const Tile& a, const Tile& b) {
  constexpr unsigned kRoundToNearestMasked = 0x1f80, kFlushed = 0x8040;
  constexpr int kLanes = 8;
  const unsigned control = _mm_getcsr();
  _mm_setcsr(kRoundToNearestMasked | kFlushed);
  const auto* const of_b = reinterpret_cast<const uint32_t(*)[kMostRows]>(b.data);
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000));
  for (int m = 0; m < sums.rows; ++m)
    for (int n = 0; n < kMostRows; n += kLanes) {
      __m256 first = _mm256_setzero_ps(), second = _mm256_setzero_ps();
      for (int k = 0; k < a.bytes / 4; ++k) {
        int pair;
        std::memcpy(&pair, a.data[m] + 4 * k, sizeof pair);
        const __m256i x = _mm256_set1_epi32(pair),
                      y = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_b[k] + n));
        first = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
                                _mm256_castsi256_ps(_mm256_slli_epi32(y, 16)), first);
        second = _mm256_fmadd_ps(_mm256_castsi256_ps(_mm256_and_si256(x, upper)),
                                 _mm256_castsi256_ps(_mm256_and_si256(y, upper)), second);
      }
      float* const to = reinterpret_cast<float*>(sums.data[m]) + n;
      _mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_add_ps(first, second)));
    }
  _mm_setcsr(control);
  for (int m = 0; m < sums.rows; ++m)
    std::memset(sums.data[m] + sums.bytes, 0, static_cast<size_t>(kMostBytes - sums.bytes));
}

bool multiply(const Decoded& in) {
  Tile* const sums = tile_of(in.reg);
  const Tile *const a = tile_of(in.rm), *const b = tile_of(in.third);
  if (sums == nullptr || a == nullptr || b == nullptr || sums == a || sums == b || a == b)
    return false;
  if (a->rows != sums->rows || b->bytes != sums->bytes || a->bytes != 4 * b->rows ||
      sums->bytes % 4 != 0)
    return false;
  const bool pairs = in.opcode == 0x5c;
  if (pairs) {
    if (in.prefix != Decoded::kF3) return false;
    multiply_pairs(*sums, *a, *b);
  } else {
    multiply_bytes(*sums, *a, *b, in.prefix == Decoded::kF2 || in.prefix == Decoded::kF3,
                   in.prefix == Decoded::kF2 || in.prefix == Decoded::k66);
  }
  for (int row = sums->rows; row < kMostRows; ++row) std::memset(sums->data[row], 0, kMostBytes);
  state.start_row = 0;
  (pairs ? bfloat16_count : byte_count).fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool execute(const Decoded& in) {
  if (in.opcode == 0x5c || in.opcode == 0x5e) return in.in_registers && multiply(in);
  if (in.third != 0) return false;
  if (in.opcode == 0x49 && !in.in_registers)
    return in.prefix == Decoded::kNone && (in.reg & 7) == 0 && configure(in.address);
  if (in.opcode == 0x49 && in.prefix == Decoded::kNone) {  // tilerelease
    state = TileState{};
    return in.reg == 0 && in.rm == 0;
  }
  if (in.opcode == 0x49) {  // tilezero
    Tile* const tile = tile_of(in.reg);
    if (tile == nullptr || in.prefix != Decoded::kF2 || in.rm != 0) return false;
    std::memset(tile->data, 0, sizeof tile->data);
    state.start_row = 0;
    return true;
  }
  if (in.opcode != 0x4b || in.in_registers || !in.has_index) return false;
  if (in.prefix == Decoded::kF3) return store(in);
  return in.prefix != Decoded::kNone && load(in);  // with kF2, or with k66 as a hint
}

void handle(int, siginfo_t*, void* pointer) {
  auto& context = *static_cast<ucontext_t*>(pointer);
  Decoded decoded;
  if (decode(context, decoded) && execute(decoded)) {
    executed_count.fetch_add(1, std::memory_order_relaxed);
    context.uc_mcontext.gregs[REG_RIP] += decoded.length;
    return;
  }
  // The instruction is tried again, now with the former handler of the signal.
  sigaction(SIGILL, &without, nullptr);
}

}  // namespace
}  // namespace tile_emulation

TileEmulator::TileEmulator()
    : native_(!cpu::amx_emulated() && cpu::amx_usable()),
      installed_(!native_ && !cpu::amx_emulated()) {
  if (!installed_) return;
  struct sigaction action {};
  action.sa_sigaction = tile_emulation::handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGILL, &action, &tile_emulation::without) != 0) std::abort();
  cpu::set_amx_emulated(true);
}

TileEmulator::~TileEmulator() {
  if (!installed_) return;
  cpu::set_amx_emulated(false);
  sigaction(SIGILL, &tile_emulation::without, nullptr);
}

uint64_t TileEmulator::executed() { return tile_emulation::executed_count; }
uint64_t TileEmulator::byte_products() { return tile_emulation::byte_count; }
uint64_t TileEmulator::bfloat16_products() { return tile_emulation::bfloat16_count; }

}  // namespace pfrt::test
