// SPDX-License-Identifier: Apache-2.0
//
// The run as a kernel's closure sees it: buffers, threads, scratch, and a way to fail.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "core/base/status.h"
#include "providers/cpu/kernel/float_range.h"
#include "providers/kit/node.h"

namespace pfrt::cpu {

class Epilogue;
class RowNorm;
struct Widened;

// Gives a kernel's closure the buffers, threads and scratch of one step in one run. Pointers are
// aligned for their element only.
class Run {
 public:
  // Parts of a step besides the node's inputs and outputs.
  struct Extras {
    Precision precision = Precision::kFloat32;
    uint32_t packed = PFRT_NO_INDEX, shared = PFRT_NO_INDEX;  // buffers
    // Computed on the kernel's output in the same step, |epilogue| first; null without one.
    const Epilogue* epilogue = nullptr;
    const RowNorm* norm = nullptr;
    uint32_t given_range = PFRT_NO_INDEX;  // buffer
  };
  Run(const pfrt_step_context* context, const uint32_t* inputs, const uint32_t* outputs)
      : context_(context), inputs_(inputs), outputs_(outputs) {}
  Run(const pfrt_step_context* context, const uint32_t* inputs, const uint32_t* outputs,
      const Extras& extras)
      : context_(context), inputs_(inputs), outputs_(outputs), extras_(extras) {}
  // This constructor gives |run| as a kernel in float32 sees it; |widened| outlives it.
  Run(const Run& run, const Widened& widened) : Run(run) { widened_ = &widened; }

  Precision precision() const { return extras_.precision; }
  // The packed form that KernelRow::pack wrote; null where there was nothing to pack.
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

  // The range of input 0, from the step that made that input (Kernel::range_of_input); null where
  // that step gave none.
  const FloatRange* given_range() const {
    return extras_.given_range == PFRT_NO_INDEX
               ? nullptr
               : static_cast<const FloatRange*>(context_->buffers[extras_.given_range]);
  }

  // Returns nullptr when the tensor is absent (or, for an output, unwanted).
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
  // Calls fn(i, worker) for every i < n, in any order, on any thread. Results may depend on i
  // alone, never on worker.
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
  // Number of threads that may run |fn| at once.
  uint32_t workers() const { return context_->workers; }
  // Calls fn(begin, end) for blocks of |block| elements of [0, n). The split depends on n and block
  // alone.
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
  // take epilogues call it for each element once, in pieces as large as stay in the cache, on any
  // thread; the epilogue is then computed over them, and rows that are whole are normalised. The
  // epilogue's results may be of another type than the node's. Results of equal size replace the
  // elements in place; others go elsewhere, and output 0 is then memory of the step that nobody
  // else reads. The row need not know which. Without an epilogue the call costs a comparison.
  void apply_epilogue(int64_t begin, int64_t end) const {
    if (extras_.epilogue != nullptr || extras_.norm != nullptr || widened_ != nullptr)
      run_epilogue(begin, end);
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
  // Asked in the body of a loop that may take milliseconds, after every 10 to 1000 microseconds of
  // work. A loop that is stopped leaves its results half done.
  bool stopped() const { return stop() != PFRT_CODE_OK; }

 private:
  void run_epilogue(int64_t begin, int64_t end) const;
  // epilogue/in_float32.h
  const void* widened_input(uint32_t i) const;
  void* widened_output() const;
  const pfrt_step_context* context_;
  const uint32_t* inputs_;
  const uint32_t* outputs_;
  Extras extras_;
  const Widened* widened_ = nullptr;
};

}  // namespace pfrt::cpu
