// SPDX-License-Identifier: Apache-2.0
#include "core/memory/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/base/foreign.h"
#include "core/base/os/mapping_guard.h"
#include "core/base/os/pages.h"
#include "core/memory/global_pool.h"

namespace pfrt {

namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kCopyChunk = uint64_t{4} << 20;
constexpr uint64_t kDeferredAbove = uint64_t{64} << 10;
// Largest size of bytes that share an allocation with their buffer, which the C library then keeps
// in its fastest lists. AddressSanitizer sees more in a separate allocation.
#ifdef __SANITIZE_ADDRESS__
constexpr size_t kSmall = 0;
#else
constexpr size_t kSmall = 640;
#endif

size_t padded_size(uint64_t bytes) {
  return std::max<size_t>((static_cast<size_t>(bytes) + kAlignment - 1) / kAlignment, 1) *
         kAlignment;
}

}  // namespace

// The first texts of elements are stored one behind another, so that millions cost neither an
// allocation nor a release each; later texts of an element are strings of their own. A NUL follows
// each.
struct Buffer::Texts {
  static constexpr size_t kFirst = 256, kLargest = size_t{1} << 20;
  std::vector<std::unique_ptr<char[]>> chunks;
  char* free = nullptr;
  size_t left = 0;
  std::unordered_map<uint64_t, std::string> later;

  std::string_view first(std::string_view text) {
    const size_t bytes = text.size() + 1;
    if (bytes > left) {
      const size_t size =
          std::max(bytes, std::min(kFirst << std::min<size_t>(chunks.size(), 12), kLargest));
      std::unique_ptr<char[]> chunk(new char[size]);
      chunks.push_back(std::move(chunk));
      free = chunks.back().get();
      left = size;
    }
    left -= bytes;
    char* const own = std::exchange(free, free + bytes);
    own[text.copy(own, text.size())] = 0;
    return {own, text.size()};
  }
  // Like first, for all texts at once.
  const char* all(std::string_view text) {
    std::unique_ptr<char[]> chunk(new char[text.size() + 1]);
    chunk[text.copy(chunk.get(), text.size())] = 0;
    chunks.push_back(std::move(chunk));
    return chunks.back().get();
  }
  std::string_view next(uint64_t index, std::string_view text) { return later[index] = text; }
};

struct Buffer::Deferral {
  std::function<void(void*)> fill;
  const void* origin = nullptr;
  bool copies = false;  // the bytes at |origin|
  MemorySource source;  // of the thread that made the buffer
  std::mutex mutex;
  std::shared_ptr<Buffer> kept;
};

Buffer::Buffer(Key) {}

// Allocates |room| more bytes behind the object, and tells where they begin.
template <typename T>
struct Buffer::WithRoom {
  using value_type = T;
  size_t room;
  char** begin;

  WithRoom(size_t r, char** b) : room(r), begin(b) {}
  template <typename U>
  WithRoom(const WithRoom<U>& other)  // NOLINT(google-explicit-constructor)
      : room(other.room), begin(other.begin) {}
  T* allocate(size_t n) {
    char* const made = static_cast<char*>(::operator new(n * sizeof(T) + room));
    *begin = made + n * sizeof(T);
    return reinterpret_cast<T*>(made);
  }
  void deallocate(T* made, size_t) { ::operator delete(made); }
  bool operator==(const WithRoom&) const = default;
};

std::shared_ptr<Buffer> Buffer::make_small(uint64_t bytes) {
  char* room = nullptr;
  const WithRoom<Buffer> allocator(static_cast<size_t>(bytes) + kAlignment - 1, &room);
  auto buffer = std::allocate_shared<Buffer>(allocator, Key());
  const auto at = reinterpret_cast<uintptr_t>(room);
  buffer->data_ = room + (kAlignment - at % kAlignment) % kAlignment;
  buffer->inside_ = true;
  return buffer;
}

namespace {

// Bytes taken from the thread's budget, and given back unless they are kept.
class Charge {
 public:
  Charge() = default;
  ~Charge() {
    if (budget_) budget_->give(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  Status take(BudgetPtr budget, uint64_t bytes) {
    if (!budget) return {};
    PFRT_TRY(budget->take(bytes));
    budget_ = std::move(budget);
    bytes_ = bytes;
    return {};
  }
  BudgetPtr keep() { return std::move(budget_); }

 private:
  BudgetPtr budget_;
  uint64_t bytes_ = 0;
};

}  // namespace

Result<std::shared_ptr<Buffer>> Buffer::allocate(uint64_t bytes, bool zeroed) {
  const MemorySource& source = MemoryScope::current();
  return allocate_from(source.allocator ? source.allocator : global_pool::of_buffers(), bytes,
                       zeroed);
}

Result<std::shared_ptr<Buffer>> Buffer::allocate_from(AllocatorPtr allocator, uint64_t bytes,
                                                      bool zeroed) {
  if (bytes > (uint64_t{1} << 62))
    return error(Code::kOUT_OF_MEMORY, "allocating ", bytes, " bytes: too large");
  const size_t padded = padded_size(bytes);
  Charge charge;
  PFRT_TRY(charge.take(MemoryScope::current().budget, padded));
  std::shared_ptr<Buffer> buffer;
  if (padded <= kSmall && !allocator) {
    buffer = make_small(padded);
  } else {
    buffer = std::make_shared<Buffer>(Key());
    buffer->allocator_ = std::move(allocator);
    buffer->data_ = buffer->allocator_ ? buffer->allocator_->allocate(padded, kAlignment)
                                       : std::aligned_alloc(kAlignment, padded);
    if (!buffer->data())
      return buffer->allocator_
                 ? error(Code::kOUT_OF_MEMORY, buffer->allocator_->refusal(padded))
                 : error(Code::kOUT_OF_MEMORY, "allocating ", bytes, " bytes: no memory left");
    if (!buffer->allocator_) os::prefer_large_pages(buffer->data(), padded);
  }
  if (zeroed) std::memset(buffer->data(), 0, padded);
  buffer->bytes_ = bytes;
  buffer->owned_ = true;
  buffer->budget_ = charge.keep();
  if (!buffer->allocator_) global_pool::count_allocation(padded);
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::allocate_pages(uint64_t bytes) {
  constexpr uint64_t kLeast = uint64_t{128} << 10;
  AllocatorPtr allocator = MemoryScope::current().allocator;
  if (bytes < kLeast && allocator) return allocate_from(std::move(allocator), bytes, false);
  if (!allocator || allocator->lasting()) allocator = global_pool::of_buffers();
  if (bytes < kLeast || allocator) return allocate_from(std::move(allocator), bytes, false);
  Charge charge;
  PFRT_TRY(charge.take(MemoryScope::current().budget, padded_size(bytes)));
  auto buffer = std::make_shared<Buffer>(Key());
  buffer->data_ = os::map_memory(bytes);
  if (!buffer->data())
    return error(Code::kOUT_OF_MEMORY, "allocating ", bytes, " bytes: no memory left");
  buffer->bytes_ = bytes;
  buffer->owned_ = buffer->mapped_ = true;
  buffer->budget_ = charge.keep();
  global_pool::count_allocation(padded_size(bytes));
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::wrap(void* data, uint64_t bytes,
                                             std::function<void()> release) {
  auto buffer = std::make_shared<Buffer>(Key());
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->release_ = std::move(release);
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::deferred(uint64_t bytes, std::function<void(void*)> fill,
                                                 const void* origin) {
  auto buffer = std::make_shared<Buffer>(Key());
  buffer->bytes_ = bytes;
  buffer->deferral_ = std::make_unique<Deferral>();
  buffer->deferral_->fill = std::move(fill);
  buffer->deferral_->origin = origin;
  buffer->deferral_->source = MemoryScope::current();
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::unaligned(void* source, uint64_t bytes,
                                                  std::function<void()> release) {
  const auto fill = [from = static_cast<const char*>(source), bytes,
                     file = os::health_of(source)](void* out) {
    auto* to = static_cast<char*>(out);
    for (uint64_t done = 0; done < bytes; done += kCopyChunk) {
      const uint64_t size = std::min(kCopyChunk, bytes - done);
      std::memcpy(to + done, from + done, size);
      if (file) os::drop_pages(from + done, size);
    }
    if (file) file->check();  // updates the health that others ask
  };
  PFRT_ASSIGN(auto buffer, deferred(bytes, fill, source));
  buffer->deferral_->copies = true;
  buffer->release_ = std::move(release);
  return buffer;
}

void* Buffer::make() const {
  Deferral& d = *deferral_;
  std::lock_guard lock(d.mutex);
  if (d.copies && reinterpret_cast<uintptr_t>(d.origin) % alignof(uint64_t) == 0) {
    data_.store(const_cast<void*>(d.origin), std::memory_order_release);
    return data_;
  }
  if (!d.kept) {
    const MemoryScope scope(d.source);
    auto made = allocate(bytes_, false);
    if (!made.ok()) throw std::bad_alloc();
    d.fill((*made)->data());
    d.kept = made.take();
    data_.store(d.kept->data(), std::memory_order_release);
  }
  return d.kept->data();
}

bool Buffer::keeps_copy() const {
  return deferral_ && !deferred() && data_.load(std::memory_order_relaxed) != deferral_->origin;
}

void Buffer::copy_to(void* out) const {
  if (deferred()) {
    deferral_->fill(out);
  } else if (bytes_) {
    std::memcpy(out, data(), bytes_);
  }
}

bool Buffer::lies_at_origin() const { return deferral_ && deferral_->copies; }

const void* Buffer::at_any_address() const {
  return deferred() && lies_at_origin() ? deferral_->origin : data();
}

const void* Buffer::origin() const { return deferral_ ? deferral_->origin : data(); }

Result<std::shared_ptr<Buffer>> Buffer::strings(uint64_t count) {
  if (count > (uint64_t{1} << 40))
    return error(Code::kOUT_OF_MEMORY, "allocating ", count, " strings: too many");
  PFRT_ASSIGN(auto buffer, allocate(count * sizeof(pfrt_string)));
  buffer->texts_ = std::make_unique<Texts>();
  return buffer;
}

Result<std::shared_ptr<Buffer>> Buffer::on_device(std::shared_ptr<Device> device, uint64_t bytes,
                                                  const Stop& stop, uint64_t work,
                                                  uint32_t alignment) {
  auto buffer = std::make_shared<Buffer>(Key());
  PFRT_ASSIGN(void* data, device->allocate_memory(bytes ? bytes : 1, alignment, work, stop));
  buffer->data_ = data;
  buffer->bytes_ = bytes;
  buffer->device_ = std::move(device);
  return buffer;
}

bool Buffer::drop_from(uint64_t offset) {
  if (!owned_ || allocator_ || device_) return false;
  if (offset < bytes_) os::drop_pages(static_cast<char*>(data()) + offset, bytes_ - offset);
  return true;
}

Buffer::~Buffer() {
  if (owned_ && !allocator_) global_pool::count_free(padded_size(bytes_));
  if (device_) {
    device_->release_memory(data_);
  } else if (mapped_) {
    os::unmap_memory(data_, bytes_);
  } else if (owned_ && allocator_) {
    allocator_->free(data_, padded_size(bytes_));
  } else if (owned_ && !inside_) {
    std::free(data_);
  }
  if (budget_) budget_->give(padded_size(bytes_));
  if (release_) call_foreign(release_);
}

Status Buffer::set_string(uint64_t index, std::string_view text) {
  const uint64_t count = texts_ ? bytes_ / sizeof(pfrt_string) : 0;
  if (index >= count)
    return error(Code::kINVALID_ARGUMENT, "setting string ", index, ": the tensor has ", count,
                 " strings of its own");
  pfrt_string& element = static_cast<pfrt_string*>(data())[index];
  const std::string_view own = element.data ? texts_->next(index, text) : texts_->first(text);
  element = {own.data(), own.size()};
  return {};
}

Status Buffer::set_first_strings(std::string_view text) {
  const uint64_t count = texts_ ? bytes_ / sizeof(pfrt_string) : 0;
  const auto zeros = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\0'));
  if (count == 0 ? !text.empty() : zeros != count - 1)
    return error(Code::kINVALID_ARGUMENT, "setting ", count, " strings: the text has ", zeros,
                 " bytes of 0, of which one stands between two strings");
  const char* at = texts_->all(text);
  auto* const elements = static_cast<pfrt_string*>(data());
  for (uint64_t i = 0; i < count; ++i) {
    elements[i] = {at, std::strlen(at)};
    at += elements[i].size + 1;
  }
  return {};
}

Result<Tensor> Tensor::allocate(pfrt_dtype dtype, Dims dims, bool zeroed) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  const int64_t count = tensor.count();
  const uint64_t bytes = tensor.bytes();
  if (count < 0 || bytes == UINT64_MAX)
    return error(Code::kINVALID_ARGUMENT, "allocating a tensor of ", dtype_name(dtype),
                 ": negative or overflowing dimensions, or an unknown type");
  if (dtype == PFRT_DTYPE_STRING) {
    PFRT_ASSIGN(tensor.buffer, Buffer::strings(static_cast<uint64_t>(count)));
  } else {
    PFRT_ASSIGN(tensor.buffer, Buffer::allocate(bytes, zeroed));
  }
  return tensor;
}

Result<Tensor> Tensor::allocate_on(std::shared_ptr<Device> device, pfrt_dtype dtype, Dims dims,
                                   const Stop& stop, uint64_t work) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  const uint64_t bytes = tensor.bytes();
  if (tensor.count() < 0 || bytes == UINT64_MAX || dtype == PFRT_DTYPE_STRING)
    return error(Code::kINVALID_ARGUMENT, "allocating a tensor of ", dtype_name(dtype),
                 " on a device: negative or overflowing dimensions, strings, or an unknown type");
  PFRT_ASSIGN(tensor.buffer, Buffer::on_device(std::move(device), bytes, stop, work));
  return tensor;
}

Result<Tensor> Tensor::made_by(std::function<void(void*)> fill, pfrt_dtype dtype, Dims dims,
                               const void* origin) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.dims = std::move(dims);
  if (tensor.bytes() > kDeferredAbove && tensor.bytes() != UINT64_MAX) {
    PFRT_ASSIGN(tensor.buffer, Buffer::deferred(tensor.bytes(), std::move(fill), origin));
    return tensor;
  }
  PFRT_ASSIGN(tensor, allocate(dtype, std::move(tensor.dims), false));
  fill(tensor.data());
  return tensor;
}

void Tensor::copy_to(void* out) const {
  if (deferred()) {
    buffer->copy_to(out);
  } else if (const uint64_t size = bytes()) {
    std::memcpy(out, data(), size);
  }
}

Status Tensor::read(const std::function<void(const void*)>& reader) const {
  if (deferred() && buffer->lies_at_origin()) {
    reader(buffer->origin());
    if (const auto file = os::health_of(buffer->origin())) {
      os::drop_pages(buffer->origin(), bytes());
      file->check();  // updates the health that others ask
    }
    return {};
  }
  PFRT_ASSIGN(const Tensor tensor, readable());
  reader(tensor.data());
  return {};
}

Result<Tensor> Tensor::readable() const {
  if (!deferred()) return *this;
  Tensor copy;
  copy.dtype = dtype;
  copy.dims = dims;
  PFRT_ASSIGN(copy.buffer, Buffer::allocate_pages(buffer->bytes()));
  buffer->copy_to(copy.data());
  return copy;
}

Result<Tensor> Tensor::copy_of(pfrt_dtype dtype, Dims dims, const void* data) {
  PFRT_ASSIGN(Tensor tensor, allocate(dtype, std::move(dims), false));
  if (dtype == PFRT_DTYPE_STRING) {
    const auto* texts = static_cast<const pfrt_string*>(data);
    for (int64_t i = 0; i < tensor.count(); ++i)
      PFRT_TRY(tensor.buffer->set_string(static_cast<uint64_t>(i), view(texts[i])));
  } else if (tensor.bytes()) {
    std::memcpy(tensor.data(), data, tensor.bytes());
  }
  return tensor;
}

Result<Tensor> Tensor::of_int64(const std::vector<int64_t>& values) {
  return copy_of(PFRT_DTYPE_INT64, {static_cast<int64_t>(values.size())}, values.data());
}

Result<Tensor> Tensor::scalar_int64(int64_t value) { return copy_of(PFRT_DTYPE_INT64, {}, &value); }

Result<Tensor> Tensor::of_float(const std::vector<float>& values) {
  return copy_of(PFRT_DTYPE_FLOAT32, {static_cast<int64_t>(values.size())}, values.data());
}

namespace {

template <typename T>
std::vector<int64_t> widen(const Tensor& tensor) {
  std::vector<int64_t> out(static_cast<size_t>(tensor.count()));
  const char* data = static_cast<const char*>(tensor.data());
  for (size_t i = 0; i < out.size(); ++i) {
    T element;
    std::memcpy(&element, data + i * sizeof(T), sizeof(T));
    out[i] = static_cast<int64_t>(element);
  }
  return out;
}

}  // namespace

std::vector<int64_t> to_int64s(const Tensor& tensor) {
  switch (tensor.dtype) {
    case PFRT_DTYPE_INT64:
      return widen<int64_t>(tensor);
    case PFRT_DTYPE_INT32:
      return widen<int32_t>(tensor);
    case PFRT_DTYPE_INT16:
      return widen<int16_t>(tensor);
    case PFRT_DTYPE_INT8:
      return widen<int8_t>(tensor);
    case PFRT_DTYPE_UINT64:
      return widen<uint64_t>(tensor);
    case PFRT_DTYPE_UINT32:
      return widen<uint32_t>(tensor);
    case PFRT_DTYPE_UINT16:
      return widen<uint16_t>(tensor);
    case PFRT_DTYPE_UINT8:
    case PFRT_DTYPE_BOOL:
      return widen<uint8_t>(tensor);
    default:
      return {};
  }
}

ValuePtr Value::of(Tensor tensor) {
  auto value = std::make_shared<Value>();
  value->kind = PFRT_VALUE_TENSOR;
  value->tensor = std::move(tensor);
  return value;
}

namespace {

uint32_t nesting_of(const Value& element) {
  const bool nests = element.kind == PFRT_VALUE_SEQUENCE || element.kind == PFRT_VALUE_OPTIONAL;
  return nests ? element.nesting + 1 : 0;
}

}  // namespace

ValuePtr Value::sequence(std::vector<ValuePtr> elements, pfrt_dtype element_dtype) {
  auto value = std::make_shared<Value>();
  value->kind = PFRT_VALUE_SEQUENCE;
  for (const ValuePtr& element : elements)
    value->nesting = std::max(value->nesting, nesting_of(*element));
  value->elements = std::move(elements);
  value->element_dtype = element_dtype;
  return value;
}

ValuePtr Value::optional(ValuePtr element) {
  auto value = std::make_shared<Value>();
  value->kind = PFRT_VALUE_OPTIONAL;
  if (element) {
    value->nesting = nesting_of(*element);
    value->elements.push_back(std::move(element));
  }
  return value;
}

namespace {

// The tensors of a value but for keys of maps, which nobody writes and maps may share.
class Owned {
 public:
  // Makes every value within one that no other has, and finds its tensors.
  Status add(ValuePtr& part) {
    if (!part) return {};
    std::shared_ptr<Value> own = part.use_count() == 1
                                     ? std::const_pointer_cast<Value>(std::move(part))
                                     : std::make_shared<Value>(*part);
    part = own;
    for (Tensor* tensor : {&own->tensor, &own->indices})
      if (tensor->buffer) tensors_.push_back(tensor);
    for (ValuePtr& element : own->elements) PFRT_TRY(add(element));
    if (own->keys && own->keys->tensor.buffer && !own->keys->tensor.buffer->owned()) {
      Tensor keys = own->keys->tensor;
      PFRT_TRY(copy(keys));
      own->keys = Value::of(std::move(keys));
    }
    return add(own->values);
  }

  // Copies the bytes that other tensors, of the value or elsewhere, have too. Parts of one buffer
  // that do not overlap stay where they are.
  Status own() {
    std::sort(tensors_.begin(), tensors_.end(), [](const Tensor* a, const Tensor* b) {
      return std::pair(a->buffer.get(), a->offset) < std::pair(b->buffer.get(), b->offset);
    });
    for (size_t i = 0; i < tensors_.size();) {
      const size_t first = i;
      bool apart = true;
      const Buffer* const buffer = tensors_[first]->buffer.get();
      for (++i; i < tensors_.size() && tensors_[i]->buffer.get() == buffer; ++i)
        apart = apart && tensors_[i - 1]->offset + tensors_[i - 1]->bytes() <= tensors_[i]->offset;
      const bool alone =
          apart && static_cast<size_t>(tensors_[first]->buffer.use_count()) == i - first;
      if (alone && (buffer->owned() || buffer->device())) continue;
      for (size_t k = first; k < i; ++k) PFRT_TRY(copy(*tensors_[k]));
    }
    return {};
  }

 private:
  static Status copy(Tensor& tensor) {
    if (!tensor.device()) {
      PFRT_ASSIGN(tensor, Tensor::copy_of(tensor.dtype, tensor.dims, tensor.data()));
      return {};
    }
    PFRT_ASSIGN(Tensor copy,
                Tensor::allocate_on(tensor.buffer->device(), tensor.dtype, tensor.dims));
    Transfers transfers;
    transfers.add(copy.data(), copy.device(), tensor.data(), tensor.device(), tensor.bytes());
    PFRT_TRY(transfers.run_alone());
    tensor = std::move(copy);
    return {};
  }

  std::vector<Tensor*> tensors_;
};

}  // namespace

Result<ValuePtr> exclusive(ValuePtr value) {
  const bool is_alone = value && value->kind == PFRT_VALUE_TENSOR && value.use_count() == 1 &&
                        value->tensor.buffer && value->tensor.buffer->owned() &&
                        value->tensor.buffer.use_count() == 1;
  if (is_alone) return value;
  Owned owned;
  PFRT_TRY(owned.add(value));
  PFRT_TRY(owned.own());
  return value;
}

}  // namespace pfrt
