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
  struct Key {  // what only its own functions have
    explicit Key() = default;
  };

 public:
  explicit Buffer(Key);
  // Zeroed, 64-byte aligned, from the thread's MemoryScope, counted in its budget;
  // OUT_OF_MEMORY rather than an exception.
  static Result<std::shared_ptr<Buffer>> allocate(uint64_t bytes, bool zeroed = true);
  // The same for memory that grows or goes on its own: on pages of its own, so that neither the C
  // library nor an allocator for what lasts comes to keep what large blocks leave. Not zeroed.
  static Result<std::shared_ptr<Buffer>> allocate_pages(uint64_t bytes);
  // Borrows |data| until the last reference goes, then calls |release| (may be empty).
  static Result<std::shared_ptr<Buffer>> wrap(void* data, uint64_t bytes,
                                              std::function<void()> release);
  // Bytes that |fill| makes, all of them and the same each time, on any thread: when data() is
  // first asked for, which keeps them, or for a copy, which does not. It may throw std::bad_alloc.
  // |origin|: what they are made from where that may be the mapping of a file, else null.
  static Result<std::shared_ptr<Buffer>> deferred(uint64_t bytes, std::function<void(void*)> fill,
                                                  const void* origin = nullptr);
  // Borrows what never changes, as wrap does, at any address: deferred, so that data() is an
  // aligned copy where it is not aligned itself. Copying lets go of the pages of a file's mapping.
  static Result<std::shared_ptr<Buffer>> unaligned(void* source, uint64_t bytes,
                                                   std::function<void()> release);
  // Strings: |count| empty pfrt_string, whose texts the buffer owns.
  static Result<std::shared_ptr<Buffer>> strings(uint64_t count);
  // Memory of |device|, which it keeps: data() is an address there, not one of the host's. |work|:
  // the number of the DeviceWork that it is first for.
  static Result<std::shared_ptr<Buffer>> on_device(std::shared_ptr<Device> device, uint64_t bytes,
                                                   uint64_t work = 0, uint32_t alignment = 64);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Of deferred bytes: throws std::bad_alloc when there is no memory to keep them in.
  void* data() const {
    void* data = data_.load(std::memory_order_acquire);
    return data || !deferral_ ? data : make();
  }
  // Nobody has asked for data() yet.
  bool deferred() const { return deferral_ && !data_.load(std::memory_order_acquire); }
  // All bytes; deferred ones stay so.
  void copy_to(void* out) const;
  // That its bytes count in; null where nothing limits them.
  const BudgetPtr& budget() const { return budget_; }
  // data(), but for those of unaligned() that nobody has asked for where they lie, at any address.
  const void* at_any_address() const;
  // Whether origin() has the same bytes, at any address.
  bool lies_at_origin() const;
  // data(), but for deferred bytes what they are made from.
  const void* origin() const;
  // An address of its own, the same before and after deferred bytes are made.
  const void* identity() const { return deferral_ ? this : data(); }
  uint64_t bytes() const { return bytes_; }
  // Whether it takes host memory: neither borrowed nor deferred until somebody asks.
  bool resident() const { return owned_ || keeps_copy(); }
  bool owned() const { return owned_; }                              // allocated here, not borrowed
  const std::shared_ptr<Device>& device() const { return device_; }  // null = the host
  // Gives what memory it can of the bytes from |offset| on back to the system: their contents are
  // undefined from now on. False where the memory came from elsewhere than the C library.
  bool drop_from(uint64_t offset);
  // Copies |text| into the buffer's own memory and points element |index| at it. Not thread-safe.
  Status set_string(uint64_t index, std::string_view text);

 private:
  struct Texts;
  struct Deferral;
  template <typename T>
  struct WithRoom;
  static std::shared_ptr<Buffer> make_small(uint64_t bytes);
  // |allocator|: null = the C library.
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
  BudgetPtr budget_;        // that they count in
  std::function<void()> release_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Texts> texts_;
  std::unique_ptr<Deferral> deferral_;
};

// A dense row-major tensor. Default-constructed: no tensor (dtype 0).
struct Tensor {
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  Dims dims;
  std::shared_ptr<Buffer> buffer;
  uint64_t offset = 0;  // bytes into the buffer

  static Result<Tensor> allocate(pfrt_dtype dtype, Dims dims, bool zeroed = true);
  // A copy of |count| elements at |data|.
  static Result<Tensor> copy_of(pfrt_dtype dtype, Dims dims, const void* data);
  // What |fill| writes, all of it and the same each time, on any thread: later, as Buffer::deferred
  // says, where it is much, else at once. |fill| may throw std::bad_alloc.
  static Result<Tensor> made_by(std::function<void(void*)> fill, pfrt_dtype dtype, Dims dims,
                                const void* origin);
  // In memory of |device|; contents are undefined. Not for strings.
  static Result<Tensor> allocate_on(std::shared_ptr<Device> device, pfrt_dtype dtype, Dims dims,
                                    uint64_t work = 0);
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
  // This tensor, or a copy of deferred bytes, which stay so: for who reads them once.
  Result<Tensor> readable() const;
  // All bytes; deferred ones stay so.
  void copy_to(void* out) const;
  // Calls |reader| once with all bytes, at any address; deferred ones stay so, and are copied only
  // where they are not those of Buffer::unaligned. What |reader| throws passes through.
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

  static ValuePtr of(Tensor tensor);
  static ValuePtr sequence(std::vector<ValuePtr> elements, pfrt_dtype element_dtype);
  static ValuePtr optional(ValuePtr element);
};

// |value| itself when nobody else can see its bytes, else a deep copy of what is shared or
// borrowed.
Result<ValuePtr> exclusive(ValuePtr value);

}  // namespace pfrt
