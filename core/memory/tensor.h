// SPDX-License-Identifier: Apache-2.0
//
// Data at rest: Buffer (reference-counted bytes with an owner), Tensor (type, dimensions and a
// Buffer) and Value (tensor, sequence, map, optional or sparse tensor). Copies are shallow and
// share bytes; a Buffer's bytes may be written by whoever holds it while no run reads them.
// Reference counts are thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/status.h"
#include "core/memory/allocator.h"
#include "core/memory/budget.h"
#include "core/memory/device.h"

namespace pfrt {

using Dims = std::vector<int64_t>;

class Buffer {
  struct Key {  // only Buffer's own functions have one
    explicit Key() = default;
  };

 public:
  explicit Buffer(Key);
  // Zeroed, 64-byte aligned, from the thread's MemoryScope, counted in its budget;
  // OUT_OF_MEMORY rather than an exception.
  static Result<std::shared_ptr<Buffer>> allocate(uint64_t bytes, bool zeroed = true);
  // Allocates memory that grows or is freed by itself, on pages of its own, so that neither the C
  // library nor an allocator for long-lived memory keeps the space that large blocks leave. Not
  // zeroed.
  static Result<std::shared_ptr<Buffer>> allocate_pages(uint64_t bytes);
  // Borrows |data| until the last reference goes, then calls |release| (may be empty).
  static Result<std::shared_ptr<Buffer>> wrap(void* data, uint64_t bytes,
                                              std::function<void()> release);
  // Bytes that |fill| makes, all of them and the same each time, on any thread: when data() is
  // first called, which keeps them, or for a copy, which does not. |fill| may throw std::bad_alloc.
  // |origin| is the source that they are made from, if that may be the mapping of a file, else
  // null.
  static Result<std::shared_ptr<Buffer>> deferred(uint64_t bytes, std::function<void(void*)> fill,
                                                  const void* origin = nullptr);
  // Borrows constant bytes at any address, as wrap does: they are deferred, so that data() is an
  // aligned copy if |source| is not aligned. Copying lets go of the pages of a file's mapping.
  static Result<std::shared_ptr<Buffer>> unaligned(void* source, uint64_t bytes,
                                                   std::function<void()> release);
  // A buffer of |count| empty pfrt_string, whose texts it owns.
  static Result<std::shared_ptr<Buffer>> strings(uint64_t count);
  // Memory of |device|, which the buffer keeps: data() is an address there, not one of the host's.
  // |work| is the number of the DeviceWork that first uses it.
  static Result<std::shared_ptr<Buffer>> on_device(std::shared_ptr<Device> device, uint64_t bytes,
                                                   const Stop& stop = {}, uint64_t work = 0,
                                                   uint32_t alignment = 64);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Throws std::bad_alloc when there is no memory to keep deferred bytes in.
  void* data() const {
    void* data = data_.load(std::memory_order_acquire);
    return data || !deferral_ ? data : make();
  }
  // Whether the bytes are deferred and data() was not called yet.
  bool deferred() const { return deferral_ && !data_.load(std::memory_order_acquire); }
  // Copies all bytes; deferred ones stay so.
  void copy_to(void* out) const;
  // The budget that its bytes count in; null where nothing limits them.
  const BudgetPtr& budget() const { return budget_; }
  // Like data(), except that the bytes of unaligned(), if they were not copied yet, are where they
  // lie, at any address.
  const void* at_any_address() const;
  // Whether origin() has the same bytes, at any address.
  bool lies_at_origin() const;
  // Like data(), except that deferred bytes give the source they are made from.
  const void* origin() const;
  // An address of its own, the same before and after deferred bytes are made.
  const void* identity() const { return deferral_ ? this : data(); }
  uint64_t bytes() const { return bytes_; }
  // Whether it takes host memory: it is neither borrowed nor still deferred.
  bool resident() const { return owned_ || keeps_copy(); }
  bool owned() const { return owned_; }                              // allocated here, not borrowed
  const std::shared_ptr<Device>& device() const { return device_; }  // null = the host
  // Gives as much memory as possible from |offset| on back to the system, after which the contents
  // there are undefined. False where the memory came from elsewhere than the C library.
  bool drop_from(uint64_t offset);
  // Copies |text| into the buffer's own memory and points element |index| at it. Not thread-safe.
  Status set_string(uint64_t index, std::string_view text);
  // Sets all strings, which are empty, to copies of texts that have a byte of 0 between two, and
  // none within.
  Status set_first_strings(std::string_view text);

 private:
  struct Texts;
  struct Deferral;
  template <typename T>
  struct WithRoom;
  static std::shared_ptr<Buffer> make_small(uint64_t bytes);
  // A null |allocator| is the C library.
  static Result<std::shared_ptr<Buffer>> allocate_from(AllocatorPtr allocator, uint64_t bytes,
                                                       bool zeroed);
  void* make() const;
  bool keeps_copy() const;
  mutable std::atomic<void*> data_ = nullptr;
  uint64_t bytes_ = 0;
  bool owned_ = false;
  bool mapped_ = false;     // owned bytes are pages of their own
  bool inside_ = false;     // owned bytes lie in the same allocation as this
  AllocatorPtr allocator_;  // of owned bytes
  BudgetPtr budget_;        // the one that they count in
  std::function<void()> release_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Texts> texts_;
  std::unique_ptr<Deferral> deferral_;
};

// A dense row-major tensor. By default it is none (dtype 0).
struct Tensor {
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  Dims dims;
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0;  // bytes into the buffer

  static Result<Tensor> allocate(pfrt_dtype dtype, Dims dims, bool zeroed = true);
  // Copies |count| elements at |data|.
  static Result<Tensor> copy_of(pfrt_dtype dtype, Dims dims, const void* data);
  // A tensor that |fill| writes, all of it and the same each time, on any thread: if it is large,
  // later, as Buffer::deferred says, else at once. |fill| may throw std::bad_alloc.
  static Result<Tensor> made_by(std::function<void(void*)> fill, pfrt_dtype dtype, Dims dims,
                                const void* origin);
  // A tensor in memory of |device|, with undefined contents. Not for strings.
  static Result<Tensor> allocate_on(std::shared_ptr<Device> device, pfrt_dtype dtype, Dims dims,
                                    const Stop& stop = {}, uint64_t work = 0);
  static Result<Tensor> of_int64(const std::vector<int64_t>& values);  // rank 1
  static Result<Tensor> scalar_int64(int64_t value);                   // rank 0
  static Result<Tensor> of_float(const std::vector<float>& values);    // rank 1

  bool valid() const { return dtype != PFRT_DTYPE_UNSET; }
  int64_t count() const { return element_count(dims.data(), dims.size()); }
  uint64_t bytes() const { return tensor_bytes(dtype, count()); }
  Device* device() const { return buffer ? buffer->device().get() : nullptr; }
  void* data() const { return buffer ? static_cast<char*>(buffer->data()) + offset : nullptr; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data());
  }
  // Whether it is the whole of a buffer whose bytes are deferred.
  bool deferred() const {
    return buffer && buffer->deferred() && offset == 0 && bytes() == buffer->bytes();
  }
  // This tensor, or a copy of deferred bytes, which stay so: for readers that read them once.
  Result<Tensor> readable() const;
  // Copies all bytes; deferred ones stay so.
  void copy_to(void* out) const;
  // Calls |reader| once with all bytes, at any address. Deferred bytes stay so, and are copied only
  // where they are not those of Buffer::unaligned. Exceptions of |reader| pass through.
  Status read(const std::function<void(const void*)>& reader) const;
  const void* origin() const { return buffer ? buffer->origin() : nullptr; }
  const void* at_any_address() const {
    return buffer ? static_cast<const char*>(buffer->at_any_address()) + offset : nullptr;
  }
  std::span<const pfrt_string> strings() const {
    return {as<const pfrt_string>(), static_cast<size_t>(count())};
  }
};

// The elements of an integer or bool tensor as int64; empty for other types.
std::vector<int64_t> to_int64s(const Tensor& tensor);

struct Value;
using ValuePtr = std::shared_ptr<const Value>;

struct Value {
  pfrt_value_kind kind = PFRT_VALUE_UNSET;
  Tensor tensor;                                // TENSOR; SPARSE: the non-zero values
  Tensor indices;                               // SPARSE: int64 [nnz, rank] or [nnz]
  Dims dense_dims;                              // SPARSE
  std::vector<ValuePtr> elements;               // SEQUENCE; OPTIONAL: none or one
  pfrt_dtype element_dtype = PFRT_DTYPE_UNSET;  // of an empty SEQUENCE or OPTIONAL
  ValuePtr keys, values;                        // MAP: a rank-1 tensor each
  uint32_t nesting = 0;                         // SEQUENCE, OPTIONAL: levels of such within

  static ValuePtr of(Tensor tensor);
  static ValuePtr sequence(std::vector<ValuePtr> elements, pfrt_dtype element_dtype);
  static ValuePtr optional(ValuePtr element);
};

// Returns |value| itself when nobody else can see its bytes, else a deep copy of the shared or
// borrowed parts. Keys of maps are copied only where they are borrowed.
Result<ValuePtr> exclusive(ValuePtr value);

}  // namespace pfrt
