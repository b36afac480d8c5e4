// SPDX-License-Identifier: Apache-2.0
//
// A row of the kernel tables. A family is a table of rows, best first; the first row that neither
// its types nor its refuse function turn away makes the step. A row is made anew for each input
// signature, when all dimensions are known.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/base/status.h"
#include "providers/cpu/kernel/in_place.h"
#include "providers/cpu/kernel/kernel.h"
#include "providers/cpu/kernel/types.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// The result of KernelRow::prepare, made of a node's attributes once a compiled region: a packed
// model.
using Prepared = std::shared_ptr<const void>;

// Tells which of input 0 and output 0 are nChw16c (README.md, "nChw16c").
struct Nchw16cSides {
  bool input = false, output = false;
};

// A constant input in a row's own layout, made once and shared between sessions.
struct PackedInput {
  uint32_t input = 0;
  std::string recipe;  // names layout and dimensions completely
  uint64_t bytes = 0;
  std::function<void(const void* source, void* out)> pack;
  // Further constant inputs that go into the same layout, and what then stands in place of |pack|:
  // it gets |input| first, then these.
  std::vector<uint32_t> others = {};
  std::function<void(const void* const* sources, void* out)> pack_all = nullptr;

  bool has(uint32_t i) const {
    return i == input || std::find(others.begin(), others.end(), i) != others.end();
  }
  void write(const void* const* sources, void* out) const {
    pack_all ? pack_all(sources, out) : pack(sources[0], out);
  }
};

// A node, and what is wanted of its kernel beyond the node's own output. A row's forms say which of
// these wishes it can meet; it meets them in any combination.
struct KernelRequest : SnapshotNode {
  explicit KernelRequest(const SnapshotNode& node) : SnapshotNode(node) {}

  bool any_nchw16c() const { return sides.input || sides.output; }
  // Whether something is wanted that only some rows know.
  bool asks_more() const {
    return any_nchw16c() || shuffle_groups > 0 || pool != nullptr || epilogue;
  }

  // The layouts of the image, input 0, and of output 0 (of the pooling's output where |pool| is
  // set).
  Nchw16cSides sides;
  // Above 0: channel c of input 0 is the buffer's c % groups * (channels / groups) + c / groups.
  int64_t shuffle_groups = 0;
  // The pooling of output 0 is wanted in its place.
  const SnapshotNode* pool = nullptr;
  // The kernel calls Run::apply_epilogue on elements that are final.
  bool epilogue = false;
  // The packed input that KernelRow::pack named; null where the host has not packed it.
  const PackedInput* packed = nullptr;
  Prepared prepared = nullptr;  // of KernelRow::prepare
};

// Forms of a request that a row can meet besides the plain node, and properties of its kernels.
enum RowForm : uint16_t {
  kPlain = 0,
  kEpilogue = 1,       // calls Run::apply_epilogue where output 0 is of kEpilogueTypes
  kNchw16c = 2,        // images in nChw16c
  kShuffled = 4,       // an image whose channels are yet to be shuffled
  kPooled = 8,         // the pooling of output 0
  kPackOptional = 16,  // has a pack function, and can do without what it packs
  kSubByteAsIs = 32,   // takes and makes kSubByte types as they lie in memory
  kUnaligned = 64,     // reads input 0 as bytes
  kLongStep = 128,     // all that grows with the shapes is done in short calls of Run::parallel
  // The following are equal in all rows of an operator.
  kOptionalOutputs = 256,  // outputs after the first may be left out
  kChecksInputs = 512,     // may fail for what inputs hold: indices, lengths, axes, divisors
};

// Members are in the order in which rows are written.
struct KernelRow {
  std::string_view domain, op;  // canonical form
  Types types;                  // of input |typed_input|, or of output 0 when there are no inputs
  std::string_view name;        // "conv_direct_ref"
  std::string_view isa;         // lowest PFRT_ISA word it needs: generic, avx2, avx512, ...
  // Empty when this row can do what is asked; the dimensions may still be symbolic (negative) or
  // unknown. Not asked about forms that the row has not. May be null.
  std::string (*refuse)(const KernelRequest& request);
  // All input dimensions are known; output dimensions too unless the operator is data-dependent.
  Result<Kernel> (*make)(const KernelRequest& request);
  uint32_t typed_input = 0;
  // Does what takes long once, so that it is not done again for each signature. A fault refuses the
  // node when the model is loaded. May be null.
  Result<Prepared> (*prepare)(const SnapshotNode& node) = nullptr;
  uint16_t forms = kPlain;
  // Called once a compiled region, for nodes that refuse did not turn away. May be null.
  std::optional<PackedInput> (*pack)(const SnapshotNode& node) = nullptr;
  // Says in which buffer the values of a node lie whose dimensions are all known; nullopt when it
  // needs a step. Only the first row of an operator is asked. May be null.
  std::optional<InPlace> (*in_place)(const SnapshotNode& node) = nullptr;

  constexpr bool has(RowForm form) const { return (forms & form) != 0; }
};

constexpr KernelRow with(KernelRow row, int forms) {
  row.forms |= static_cast<uint16_t>(forms);
  return row;
}
constexpr KernelRow with_epilogue(KernelRow row) { return with(row, kEpilogue); }
constexpr KernelRow checks_inputs(KernelRow row) { return with(row, kChecksInputs); }
constexpr KernelRow optional_outputs(KernelRow row) { return with(row, kOptionalOutputs); }
constexpr KernelRow long_step(KernelRow row) { return with(row, kLongStep); }
constexpr KernelRow unaligned(KernelRow row) { return with(row, kUnaligned); }
constexpr KernelRow sub_byte_as_is(KernelRow row) { return with(row, kSubByteAsIs); }
constexpr KernelRow with_in_place(decltype(KernelRow::in_place) in_place, KernelRow row) {
  row.in_place = in_place;
  return row;
}
constexpr KernelRow with_pack(KernelRow row, decltype(KernelRow::pack) pack, int forms = kPlain) {
  row.pack = pack;
  return with(row, forms);
}

// The functions of a row that is made one way for images in nChw16c and another for row-major ones.
// |refuse_nchw16c| and |nchw16c| get the sides beside the node.
template <auto refuse_plain, auto refuse_nchw16c>
std::string refuse_layouts(const KernelRequest& request) {
  std::string why;
  if constexpr (!std::is_null_pointer_v<decltype(refuse_plain)>) why = refuse_plain(request);
  return why.empty() && request.any_nchw16c() ? refuse_nchw16c(request, request.sides) : why;
}
template <auto plain, auto nchw16c>
Result<Kernel> make_layouts(const KernelRequest& request) {
  return request.any_nchw16c() ? nchw16c(request, request.sides) : plain(request);
}
// The make function of a row that has another kernel where something was packed for it.
template <auto plain, auto packed>
Result<Kernel> make_packed(const KernelRequest& request) {
  return request.packed != nullptr ? packed(request, *request.packed) : plain(request);
}

}  // namespace pfrt::cpu
