// SPDX-License-Identifier: Apache-2.0
//
// Numbers looked up in a sorted list of keys: LabelEncoder between numbers, OneHotEncoder. If a key
// is repeated, its last value counts. Every NaN is one key, after all numbers; zeros are equal
// whatever their sign.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "providers/cpu/elements/convert.h"
#include "providers/cpu/kernel/signature.h"
#include "providers/cpu/kernels/ml/ml.h"

namespace pfrt::cpu {
namespace {

constexpr int64_t kTask = 4096;

template <typename K>
bool before(K a, K b) {
  if constexpr (std::is_floating_point_v<K>)
    return a < b || (b != b && a == a);
  else
    return a < b;
}

// Keys in order, each with its position in the model's list.
template <typename K>
class Index {
 public:
  Index() = default;
  explicit Index(const std::vector<K>& keys) {
    entries_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) entries_[i] = {keys[i], static_cast<int64_t>(i)};
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const Entry& a, const Entry& b) { return before(a.key, b.key); });
  }
  // -1 when it is not there.
  int64_t find(K key) const {
    const auto after = std::upper_bound(entries_.begin(), entries_.end(), key,
                                        [](K k, const Entry& e) { return before(k, e.key); });
    if (after == entries_.begin() || before((after - 1)->key, key)) return -1;
    return (after - 1)->position;
  }

 private:
  struct Entry {
    K key;
    int64_t position;
  };
  std::vector<Entry> entries_;
};

// ------------------------------------------------------------------ LabelEncoder
struct Encoder {
  bool floats = false;
  Index<double> reals;
  Index<int64_t> integers;
  pfrt_dtype to = PFRT_DTYPE_UNSET;
  size_t size = 0;           // of an element
  std::vector<char> values;  // and the default behind them
};

Result<const pfrt_tensor*> tensor_of(const SnapshotNode& node, std::string_view name) {
  const pfrt_snapshot_attr* attr = node.attr(name);
  if (attr == nullptr || attr->type != PFRT_ATTR_TENSOR)
    return attribute_error(name, "is no tensor");
  const int64_t count = element_count(attr->tensor.dims, attr->tensor.rank);
  if (count < 0 || dtype_size(attr->tensor.dtype) == 0 ||
      tensor_bytes(attr->tensor.dtype, count) > attr->tensor.bytes)
    return attribute_error(name, "has less data than its dimensions tell");
  return &attr->tensor;
}

template <typename K>
std::vector<K> load(const pfrt_tensor& tensor) {
  std::vector<K> out(static_cast<size_t>(element_count(tensor.dims, tensor.rank)));
  // Data of a file may be unaligned.
  const size_t size = dtype_size(tensor.dtype);
  alignas(16) char element[16];
  for (size_t i = 0; i < out.size(); ++i) {
    std::memcpy(element, static_cast<const char*>(tensor.data) + i * size, size);
    load_block(tensor.dtype, element, 1, &out[i]);
  }
  return out;
}

}  // namespace

Result<Prepared> prepare_label_encoder(const SnapshotNode& node) {
  auto encoder = std::make_shared<Encoder>();
  PFRT_ASSIGN(const pfrt_tensor* keys, tensor_of(node, "keys_tensor"));
  PFRT_ASSIGN(const pfrt_tensor* values, tensor_of(node, "values_tensor"));
  PFRT_ASSIGN(const pfrt_tensor* fallback, tensor_of(node, "default_tensor"));
  const int64_t count = element_count(keys->dims, keys->rank);
  if (element_count(values->dims, values->rank) != count || fallback->dtype != values->dtype ||
      element_count(fallback->dims, fallback->rank) != 1)
    return attribute_error("values_tensor", "does not fit 'keys_tensor' and 'default_tensor'");
  encoder->floats = dtype_is_float(keys->dtype);
  if (encoder->floats)
    encoder->reals = Index<double>(load<double>(*keys));
  else
    encoder->integers = Index<int64_t>(load<int64_t>(*keys));
  encoder->to = values->dtype;
  encoder->size = dtype_size(values->dtype);
  const auto bytes = static_cast<size_t>(count) * encoder->size;
  encoder->values.resize(bytes + encoder->size);
  if (bytes) std::memcpy(encoder->values.data(), values->data, bytes);
  std::memcpy(encoder->values.data() + bytes, fallback->data, encoder->size);
  return Prepared(std::move(encoder));
}

Result<Kernel> make_label_encoder(const KernelRequest& node) {
  auto encoder = std::static_pointer_cast<const Encoder>(node.prepared);
  PFRT_TRY(need(node, 1, 1));
  PFRT_TRY(need_output_dims(node, 0, node.input_dims(0)));
  if (node.output_dtype(0) != encoder->to)
    return error(Code::kDTYPE_MISMATCH, "the values are ", dtype_name(encoder->to));
  Kernel kernel;
  kernel.run = [encoder, from = node.input_dtype(0), n = node.input_elements(0)](const Run& run) {
    const size_t size = encoder->size;
    const auto none = static_cast<int64_t>(encoder->values.size() / size - 1);
    run.blocks(n, kTask, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const void* x = element(from, run.input(0), i);
        int64_t at = encoder->floats ? encoder->reals.find(load_scalar<double>(from, x))
                                     : encoder->integers.find(load_scalar<int64_t>(from, x));
        if (at < 0) at = none;
        std::memcpy(run.output<char>(0) + static_cast<size_t>(i) * size,
                    encoder->values.data() + static_cast<size_t>(at) * size, size);
      }
    });
    return run.stop();
  };
  return kernel;
}

// ------------------------------------------------------------------ OneHotEncoder
struct OneHot {
  Index<int64_t> index;
  int64_t categories = 0;
  bool zeros = true;
};

Result<Prepared> prepare_one_hot(const SnapshotNode& node) {
  auto one_hot = std::make_shared<OneHot>();
  const auto list = node.attr_ints("cats_int64s");
  if (list.empty()) return attribute_error("cats_int64s", "is absent or empty");
  one_hot->index = Index<int64_t>({list.begin(), list.end()});
  one_hot->categories = static_cast<int64_t>(list.size());
  one_hot->zeros = node.attr_int("zeros", 1) != 0;
  return Prepared(std::move(one_hot));
}

Result<Kernel> make_one_hot(const KernelRequest& node) {
  auto one_hot = std::static_pointer_cast<const OneHot>(node.prepared);
  PFRT_TRY(need(node, 1, 1));
  const auto in = node.input_dims(0);
  std::vector<int64_t> dims(in.begin(), in.end());
  dims.push_back(one_hot->categories);
  PFRT_TRY(need_output_dims(node, 0, dims));
  Kernel kernel;
  kernel.run = [one_hot, from = node.input_dtype(0),
                n = node.input_elements(0)](const Run& run) -> pfrt_code {
    const int64_t width = one_hot->categories;
    const int64_t block = std::max<int64_t>(1, kTask / width);
    // The first element without a category, for one message whatever the threads did.
    std::atomic<int64_t> unknown{n};
    run.blocks(n, block, [&](int64_t begin, int64_t end) {
      float* y = run.output<float>(0);
      std::fill(y + begin * width, y + end * width, 0.0f);
      for (int64_t i = begin; i < end; ++i) {
        // Floats are cast to integers first, as the standard has it.
        const int64_t at =
            one_hot->index.find(load_scalar<int64_t>(from, element(from, run.input(0), i)));
        if (at >= 0) {
          y[i * width + at] = 1;
        } else if (!one_hot->zeros) {
          int64_t known = unknown.load();
          while (i < known && !unknown.compare_exchange_weak(known, i)) {
          }
        }
      }
    });
    if (unknown < n && run.stop() == PFRT_CODE_OK)
      return run.fail(Code::kINVALID_ARGUMENT, "element ", unknown.load(),
                      " of input 0 is in no category of 'cats_int64s', and 'zeros' is 0");
    return run.stop();
  };
  return kernel;
}

}  // namespace pfrt::cpu
