// SPDX-License-Identifier: Apache-2.0
//
// What a CPU kernel is. A family is a table of rows, best first; the first row that neither its
// types nor its refuse function turn away makes the step. A row is made anew for each input
// signature, when all dimensions are known, and returns the work as a closure over what it computed
// beforehand (strides, block sizes, coefficients).
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

// A set of element types.
class Types {
 public:
  constexpr Types() = default;
  constexpr Types(std::initializer_list<uint32_t> dtypes) {
    for (uint32_t d : dtypes) bits_ |= uint64_t{1} << d;
  }
  constexpr bool has(pfrt_dtype dtype) const { return dtype < 64 && (bits_ >> dtype & 1) != 0; }
  friend constexpr Types operator|(Types a, Types b) {
    a.bits_ |= b.bits_;
    return a;
  }
  // "float32 float64"
  std::string text() const;

 private:
  uint64_t bits_ = 0;
};

inline constexpr Types kFloat32{PFRT_DTYPE_FLOAT32};
// What is computed in float32.
inline constexpr Types kShortFloats{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT16, PFRT_DTYPE_BFLOAT16};
inline constexpr Types kFloats{PFRT_DTYPE_FLOAT32, PFRT_DTYPE_FLOAT64, PFRT_DTYPE_FLOAT16,
                               PFRT_DTYPE_BFLOAT16};
// The 8-bit floats that have a sign, as the standard's "all floats" knows them.
inline constexpr Types kFloat8{PFRT_DTYPE_FLOAT8E4M3FN, PFRT_DTYPE_FLOAT8E4M3FNUZ,
                               PFRT_DTYPE_FLOAT8E5M2, PFRT_DTYPE_FLOAT8E5M2FNUZ};
inline constexpr Types kSignedInts{PFRT_DTYPE_INT8, PFRT_DTYPE_INT16, PFRT_DTYPE_INT32,
                                   PFRT_DTYPE_INT64};
inline constexpr Types kUnsignedInts{PFRT_DTYPE_UINT8, PFRT_DTYPE_UINT16, PFRT_DTYPE_UINT32,
                                     PFRT_DTYPE_UINT64};
inline constexpr Types kInts = kSignedInts | kUnsignedInts;
inline constexpr Types kNumbers = kFloats | kInts;
inline constexpr Types kBool{PFRT_DTYPE_BOOL};
inline constexpr Types kIndices{PFRT_DTYPE_INT32, PFRT_DTYPE_INT64};
// Everything whose elements are whole bytes: for kernels that only move data.
inline constexpr Types kMovable =
    kNumbers | kBool | Types{PFRT_DTYPE_COMPLEX64,    PFRT_DTYPE_COMPLEX128,
                             PFRT_DTYPE_FLOAT8E4M3FN, PFRT_DTYPE_FLOAT8E4M3FNUZ,
                             PFRT_DTYPE_FLOAT8E5M2,   PFRT_DTYPE_FLOAT8E5M2FNUZ,
                             PFRT_DTYPE_FLOAT8E8M0};
// Several elements a byte in memory.
inline constexpr Types kPacked{PFRT_DTYPE_UINT4, PFRT_DTYPE_INT4, PFRT_DTYPE_FLOAT4E2M1,
                               PFRT_DTYPE_UINT2, PFRT_DTYPE_INT2};
// Everything but strings: for kernels that move data of stored_size().
inline constexpr Types kElements = kMovable | kPacked;
// Bytes of an element as kernels see it: packed types come unpacked, one to a byte (integers with
// their sign, floats as their bits), unless the row takes them packed.
size_t stored_size(pfrt_dtype dtype);

class Tail;
class RowNorm;
struct Widened;

// What the closure gets in a run. Pointers are aligned for their element only.
class Run {
 public:
  // What a step has besides the node's inputs and outputs.
  struct Extras {
    Precision precision = Precision::kFloat32;
    uint32_t packed = PFRT_NO_INDEX, shared = PFRT_NO_INDEX;  // buffers
    // What follows in the same step, |tail| first; null without one.
    const Tail* tail = nullptr;
    const RowNorm* norm = nullptr;
  };
  Run(const pfrt_step_context* context, const uint32_t* inputs, const uint32_t* outputs)
      : context_(context), inputs_(inputs), outputs_(outputs) {}
  Run(const pfrt_step_context* context, const uint32_t* inputs, const uint32_t* outputs,
      const Extras& extras)
      : context_(context), inputs_(inputs), outputs_(outputs), extras_(extras) {}
  // The same run as a kernel in float32 sees it; |widened| outlives it.
  Run(const Run& run, const Widened& widened) : Run(run) { widened_ = &widened; }

  Precision precision() const { return extras_.precision; }
  // What KernelRow::pack wrote; null where there was nothing to pack.
  template <typename T>
  const T* packed() const {
    return extras_.packed == PFRT_NO_INDEX
               ? nullptr
               : static_cast<const T*>(context_->buffers[extras_.packed]);
  }
  // Memory of the whole step, of Kernel::shared_bytes; null where that is 0.
  template <typename T>
  T* shared() const {
    return extras_.shared == PFRT_NO_INDEX ? nullptr
                                           : static_cast<T*>(context_->buffers[extras_.shared]);
  }

  // nullptr when absent (or, for an output, unwanted).
  template <typename T = void>
  const T* input(uint32_t i) const {
    if (widened_ != nullptr)
      if (const void* const wide = widened_input(i)) return static_cast<const T*>(wide);
    return inputs_[i] == PFRT_NO_INDEX ? nullptr
                                       : static_cast<const T*>(context_->buffers[inputs_[i]]);
  }
  template <typename T = void>
  T* output(uint32_t i) const {
    if (widened_ != nullptr && i == 0) return static_cast<T*>(widened_output());
    return outputs_[i] == PFRT_NO_INDEX ? nullptr : static_cast<T*>(context_->buffers[outputs_[i]]);
  }
  // fn(i, worker) for every i < n, in any order, on any thread. Results may depend on i alone,
  // never on worker.
  template <typename Fn>
  void parallel(int64_t n, Fn&& fn) const {
    if (n <= 0) return;
    using F = std::remove_reference_t<Fn>;
    context_->parallel(
        context_, static_cast<uint64_t>(n),
        [](void* arg, uint64_t i, uint32_t worker) {
          (*static_cast<F*>(arg))(static_cast<int64_t>(i), worker);
        },
        const_cast<void*>(static_cast<const void*>(&fn)));
  }
  // Blocks of |block| elements of [0, n): fn(begin, end). The split depends on n and block alone.
  template <typename Fn>
  void blocks(int64_t n, int64_t block, Fn&& fn) const {
    parallel((n + block - 1) / block,
             [&](int64_t i, uint32_t) { fn(i * block, std::min(n, (i + 1) * block)); });
  }
  // This worker's scratch, of Kernel::scratch_bytes.
  template <typename T>
  T* scratch(uint32_t worker) const {
    return static_cast<T*>(context_->scratch(context_, worker));
  }
  // Elements [begin, end) of output 0 are final: nothing reads or writes them any more. Rows that
  // take tails call it for each element once, in pieces as large as stay in the cache, on any
  // thread; the tail is then computed over them in place, and rows that are whole are normalised.
  // Without either it costs a comparison.
  void finished(int64_t begin, int64_t end) const {
    if (extras_.tail != nullptr || extras_.norm != nullptr || widened_ != nullptr)
      run_tail(begin, end);
  }
  // Memory for an output whose dimensions only the run knows; nullptr when there is none left.
  void* alloc_output(uint32_t i, std::span<const int64_t> dims) const;
  // A fault in the data: index out of range, negative repeat. Returns the code for the closure to
  // return.
  template <typename... Parts>
  pfrt_code fail(Code code, const Parts&... parts) const {
    const std::string text = message(parts...);
    return context_->fail(context_, static_cast<pfrt_code>(code), to_c(text));
  }
  pfrt_code stop() const { return context_->stop(context_); }
  // For the body of a loop that may take milliseconds: it asks after every 10 to 1000 microseconds
  // of work and leaves its results half done.
  bool stopped() const { return stop() != PFRT_CODE_OK; }

 private:
  void run_tail(int64_t begin, int64_t end) const;
  // in_float32.h
  const void* widened_input(uint32_t i) const;
  void* widened_output() const;
  const pfrt_step_context* context_;
  const uint32_t* inputs_;
  const uint32_t* outputs_;
  Extras extras_;
  const Widened* widened_ = nullptr;
};

struct Alternative;

// A row made for one signature.
struct Kernel {
  std::function<pfrt_code(const Run&)> run;  // returns 0, or what fail returned
  std::string_view name;                     // static; empty: its row's
  double flops = 0;
  uint64_t scratch_bytes = 0;  // a worker
  uint64_t shared_bytes = 0;   // of all workers together
  uint32_t width = 0;          // widest useful parallelism; 0 = any
  int32_t may_alias = -1;      // input whose memory output 0 may take when that input dies here
  bool packed_alone = false;   // of the packed input it reads nothing but the packed form
  // Other divisions of the work, all with the same bits as results; null: there is none to choose.
  std::function<std::vector<Alternative>()> alternatives = nullptr;
};

// What a model of the machine did not choose, and a measurement may (tune.h).
struct Alternative {
  std::string change;  // "band 14 -> 28", from the kernel that offers it
  Kernel kernel;       // as that one, but for |run| and what memory it takes
};
// Adds |what| to |text|, the change of an alternative, where it is another.
void add_change(std::string& text, std::string_view what, int64_t from, int64_t to);
// Whether as many threads have work in |tasks| as in |of|, or as in |wanted|, which are enough.
constexpr bool enough_tasks(int64_t tasks, int64_t of, int64_t wanted) {
  return tasks >= of || tasks >= wanted;
}

// What a row makes of a node's attributes alone, once a compiled region: a packed model.
using Prepared = std::shared_ptr<const void>;

// Which of input 0 and output 0 lie in blocks of 16 channels (README.md, "Blocks of channels").
struct Blocked {
  bool input = false, output = false;
};

// A constant input in a row's own layout, made once and shared between sessions.
struct PackedInput {
  uint32_t input = 0;
  std::string recipe;  // names layout and dimensions completely
  uint64_t bytes = 0;
  std::function<void(const void* source, void* out)> pack;
};

struct KernelRow {
  std::string_view domain, op;  // canonical form
  Types types;                  // of input |typed_input|, or of output 0 when there are no inputs
  std::string_view name;        // "conv_direct_ref"
  std::string_view isa;         // lowest PFRT_ISA word it needs: generic, avx2, avx512, ...
  // Empty when this row can run the node; the dimensions may still be symbolic (negative) or
  // unknown. May be null.
  std::string (*refuse)(const SnapshotNode& node);
  // All input dimensions are known; output dimensions too unless the operator is data-dependent.
  Result<Kernel> (*make)(const SnapshotNode& node);
  uint32_t typed_input = 0;
  // With them, |make| is null: what takes long is not done again for each signature. A fault of
  // prepare refuses the node when the model is loaded.
  Result<Prepared> (*prepare)(const SnapshotNode& node) = nullptr;
  Result<Kernel> (*make_with)(const SnapshotNode& node, const Prepared& prepared) = nullptr;
  bool packed = false;  // takes and makes kPacked types as they lie in memory
  // Calls Run::finished where output 0 is of kShortFloats; its dimensions are known before the run.
  bool takes_tail = false;
  // A form that gives the pooling of output 0 instead; null without one. Empty when it can. Where
  // |refuse_blocked| takes input 0 and output 0 in blocks, it does so of the pooling's output.
  std::string (*refuse_pool)(const SnapshotNode& node, const SnapshotNode& pool) = nullptr;
  Result<Kernel> (*make_pooled)(const SnapshotNode& node, const SnapshotNode& pool,
                                Blocked sides) = nullptr;
  // A form for images in blocks of channels; null without one. |refuse_blocked| is empty when input
  // 0 and output 0, of one type of kShortFloats, may lie so.
  std::string (*refuse_blocked)(const SnapshotNode& node, Blocked sides) = nullptr;
  Result<Kernel> (*make_blocked)(const SnapshotNode& node, Blocked sides) = nullptr;
  // A form for an image whose channels are yet to be shuffled: channel c of input 0 is the buffer's
  // c % groups * (channels / groups) + c / groups. Null without one.
  Result<Kernel> (*make_shuffled)(const SnapshotNode& node, int64_t groups) = nullptr;
  // Called once a compiled region, for nodes that refuse did not turn away. May be null.
  std::optional<PackedInput> (*pack)(const SnapshotNode& node) = nullptr;
  // Takes the place of |make| for nodes of which something was packed; null without.
  Result<Kernel> (*make_packed)(const SnapshotNode& node, const PackedInput& packed) = nullptr;
};

constexpr KernelRow with_tail(KernelRow row) {
  row.takes_tail = true;
  return row;
}

constexpr KernelRow with_blocks(KernelRow row, decltype(KernelRow::refuse_blocked) refuse,
                                decltype(KernelRow::make_blocked) make) {
  row.refuse_blocked = refuse;
  row.make_blocked = make;
  return row;
}

constexpr KernelRow with_shuffle(KernelRow row, decltype(KernelRow::make_shuffled) make) {
  row.make_shuffled = make;
  return row;
}

constexpr KernelRow with_pool(KernelRow row, decltype(KernelRow::refuse_pool) refuse,
                              decltype(KernelRow::make_pooled) make) {
  row.refuse_pool = refuse;
  row.make_pooled = make;
  return row;
}

// All families in the order of kernels.cc.
std::span<const std::span<const KernelRow>> kernels();
// The first row that takes the node, the last where it has_empty (empty.h), or nullptr with every
// candidate's reason in |reason|.
const KernelRow* find_kernel(const SnapshotNode& node, std::string* reason);
// Why the kernel of |node| does not run |pool|, which takes its output, in the same step; empty
// when it does.
std::string refuse_pooled(const SnapshotNode& node, const SnapshotNode& pool);

// "axis 3 is outside [-2, 2)" errors of make: prefixed with the operator by the caller.
template <typename... Parts>
Status kernel_error(const Parts&... parts) {
  return error(Code::kSHAPE_MISMATCH, parts...);
}

}  // namespace pfrt::cpu
