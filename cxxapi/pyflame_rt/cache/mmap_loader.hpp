// SPDX-License-Identifier: Apache-2.0
//
// Files as memory: their pages are read when they are first touched, and shared with all who map
// the same file. Models are always loaded so; MappedFile and LazyTensor do it for other files.
// A file that is cut short while it is mapped raises SIGBUS in who touches what is gone.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <pyflame_rt/model_io.hpp>
#include <pyflame_rt/tensor.hpp>
#include <string>
#include <utility>
#include <vector>

namespace pyflame_rt::cache {

// A file mapped into memory; movable. Writes to the memory are this object's own and do not reach
// the file. Thread-safe but for moves.
class MappedFile {
 public:
  // The way in which the memory will be used.
  enum class Advice { Normal, Sequential, Random, WillNeed, DontNeed };

  // Makes an object without a file.
  MappedFile() noexcept = default;
  ~MappedFile() { close(); }
  MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    if (this == &other) return *this;
    close();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Maps the regular file at |path|; returns null when there is none, it is empty or cannot be
  // mapped.
  static std::unique_ptr<MappedFile> open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return nullptr;
    struct stat info {};
    std::unique_ptr<MappedFile> file;
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      const auto size = static_cast<size_t>(info.st_size);
      void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
      if (data != MAP_FAILED) {
        file = std::make_unique<MappedFile>();
        file->data_ = data;
        file->size_ = size;
      }
    }
    ::close(fd);
    return file;
  }

  // Whether a file is mapped.
  bool is_valid() const noexcept { return data_ != nullptr; }
  // The file's bytes; null where there is no file.
  const void* data() const noexcept { return data_; }
  void* data() noexcept { return data_; }
  // Size in bytes.
  size_t size() const noexcept { return size_; }

  // Advises the system on |length| bytes from |offset| on (0 = to the end), in whole pages. Returns
  // false when the system refuses.
  bool advise(Advice advice, size_t offset = 0, size_t length = 0) const noexcept {
    static constexpr int kAdvice[] = {MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM, MADV_WILLNEED,
                                      MADV_DONTNEED};
    const auto which = static_cast<size_t>(advice);
    if (data_ == nullptr || offset >= size_ || which > 4) return false;
    const size_t bytes = length == 0 || length > size_ - offset ? size_ - offset : length;
    const size_t before = offset % page();
    return ::madvise(static_cast<char*>(data_) + (offset - before), bytes + before,
                     kAdvice[which]) == 0;
  }
  // Keeps all of it in memory; false when the system does not allow so much (ulimit -l).
  bool lock() const noexcept { return data_ != nullptr && ::mlock(data_, size_) == 0; }
  // Undoes lock().
  bool unlock() const noexcept { return data_ != nullptr && ::munlock(data_, size_) == 0; }

 private:
  friend class MMapLoader;
  static size_t page() noexcept { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  void close() noexcept {
    if (data_ != nullptr) ::munmap(data_, size_);
  }

  void* data_ = nullptr;
  size_t size_ = 0;
};

// Loads models from mapped files, as load_model does too.
class MMapLoader {
 public:
  // Whether the file is there, not empty, and may be mapped.
  static bool can_mmap(const std::string& path) { return MappedFile::open(path) != nullptr; }
  // Returns the graph, whose constants are views of the file. Throws what Model::load throws.
  static std::shared_ptr<Graph> load(const std::string& path) {
    return std::make_shared<Graph>(load_model(path));
  }
  // Alignment in bytes for parts of a file that are to be mapped by themselves.
  static size_t page_alignment() noexcept { return MappedFile::page(); }
};

// A tensor in a file, which is not read before it is asked for. Copies share the tensor once it is
// made. Thread-safe.
class LazyTensor {
 public:
  // The tensor has row-major elements from byte |offset| of |file| on. Throws InputError when the
  // file is null or too short, the shape impossible or the type not one of numbers.
  LazyTensor(std::shared_ptr<MappedFile> file, size_t offset, std::vector<int64_t> shape,
             DType dtype)
      : shape_(std::move(shape)), dtype_(dtype), made_(std::make_shared<Made>()) {
    const int64_t count = pyflame_rt::detail::count_of(shape_);
    const size_t bits = dtype_bits(dtype);
    const std::string what = "LazyTensor " + pyflame_rt::detail::shape_text(shape_);
    if (file == nullptr || !file->is_valid()) throw InputError(what + ": there is no file");
    if (count < 0 || bits == 0 || dtype == DType::String ||
        static_cast<uint64_t>(count) > (UINT64_MAX - 7) / bits)
      throw InputError(what + ": the shape is impossible, or the type not one of numbers");
    bytes_ = (static_cast<size_t>(count) * bits + 7) / 8;
    if (offset > file->size() || bytes_ > file->size() - offset)
      throw InputError(what + ": its " + std::to_string(bytes_) + " bytes from " +
                       std::to_string(offset) + " on are more than the file's " +
                       std::to_string(file->size()));
    data_ = static_cast<char*>(file->data()) + offset;
    file_ = std::move(file);
  }

  // Shape as given.
  const std::vector<int64_t>& shape() const noexcept { return shape_; }
  // Element type as given.
  DType dtype() const noexcept { return dtype_; }
  // Product of the dimensions.
  int64_t num_elements() const noexcept { return pyflame_rt::detail::count_of(shape_); }
  // Size of the packed elements in bytes.
  size_t size_bytes() const noexcept { return bytes_; }
  // False when the object was moved from.
  bool is_valid() const noexcept { return file_ != nullptr; }
  // Whether the tensor has been asked for.
  bool is_materialized() const {
    const std::lock_guard<std::mutex> lock(made_->mutex);
    return made_->tensor.is_valid();
  }
  // Returns the tensor, the same each time: a view of the file, which it keeps mapped, or a copy
  // where the elements lie at an address that their type does not allow.
  Tensor materialize() const {
    const std::lock_guard<std::mutex> lock(made_->mutex);
    if (!made_->tensor.is_valid()) made_->tensor = make();
    return made_->tensor;
  }

 private:
  struct Made {
    std::mutex mutex;
    Tensor tensor;
  };
  Tensor make() const {
    const size_t element = dtype_bits(dtype_) < 8 ? 1 : dtype_bits(dtype_) / 8;
    const size_t alignment = element < 8 ? element : 8;
    if (bytes_ == 0 || reinterpret_cast<uintptr_t>(data_) % alignment != 0) {
      Tensor copy(shape_, dtype_);
      if (bytes_ > 0) std::memcpy(copy.data(), data_, bytes_);
      return copy;
    }
    pfrt_tensor c{};
    c.struct_size = sizeof(c);
    c.dtype = to_c(dtype_);
    c.rank = static_cast<uint32_t>(shape_.size());
    c.data = data_;
    c.bytes = bytes_;
    c.dims = shape_.data();
    const auto drop = [](void* user, void*) {
      delete static_cast<std::shared_ptr<MappedFile>*>(user);
    };
    pyflame_rt::detail::Handle<pfrt_value> value;
    // wrap_tensor takes ownership, also when it fails.
    auto* const keep = new std::shared_ptr<MappedFile>(file_);
    pyflame_rt::detail::check(api().value->wrap_tensor(&c, drop, keep, value.out()));
    return Tensor::from_handle(std::move(value));
  }

  std::vector<int64_t> shape_;
  DType dtype_;
  size_t bytes_ = 0;
  std::shared_ptr<MappedFile> file_;
  char* data_ = nullptr;
  std::shared_ptr<Made> made_;
};

}  // namespace pyflame_rt::cache
