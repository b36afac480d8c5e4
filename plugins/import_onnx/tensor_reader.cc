// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "core/base/dtype.h"
#include "core/base/os/pages.h"
#include "plugins/import_onnx/sha1.h"
#include "plugins/import_onnx/type_info.h"

namespace pfrt::onnx {
namespace {

constexpr uint64_t kCopyChunk = uint64_t{4} << 20;
// Smaller copies leave the source's pages alone.
constexpr uint64_t kDropPagesFrom = uint64_t{1} << 20;
// Larger ones that lie at odd addresses are wrapped all the same.
constexpr uint64_t kCopiedUpTo = uint64_t{64} << 10;

// The data field in which the standard puts elements of |dtype| when they are not raw.
uint32_t data_field(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_FLOAT32:
    case PFRT_DTYPE_COMPLEX64:
      return kFloatData;
    case PFRT_DTYPE_FLOAT64:
    case PFRT_DTYPE_COMPLEX128:
      return kDoubleData;
    case PFRT_DTYPE_INT64:
      return kInt64Data;
    case PFRT_DTYPE_UINT32:
    case PFRT_DTYPE_UINT64:
      return kUint64Data;
    case PFRT_DTYPE_STRING:
      return kStringData;
    default:
      return kInt32Data;
  }
}

const char* field_name(uint32_t field) {
  switch (field) {
    case kFloatData:
      return "float_data";
    case kInt32Data:
      return "int32_data";
    case kStringData:
      return "string_data";
    case kInt64Data:
      return "int64_data";
    case kDoubleData:
      return "double_data";
    case kUint64Data:
      return "uint64_data";
    default:
      return "raw_data";
  }
}

// Complex numbers are aligned as their parts, packed elements as bytes.
size_t alignment_of(pfrt_dtype dtype) {
  switch (dtype) {
    case PFRT_DTYPE_COMPLEX64:
      return 4;
    case PFRT_DTYPE_COMPLEX128:
      return 8;
    default:
      return std::max<size_t>(1, dtype_size(dtype));
  }
}

bool parse_number(const std::string& text, uint64_t* out) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *out);
  return parsed.ec == std::errc() && parsed.ptr == end && !text.empty();
}

}  // namespace

struct TensorReader::Form {
  const std::string& what;
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  const int64_t* dims = nullptr;
  size_t rank = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;

  // "initializer 'w' of float32 [2,3]".
  std::string text() const {
    std::string out = message(what, " of ", dtype_name(dtype), " [");
    for (size_t i = 0; i < rank; ++i) out += message(i ? "," : "", dims[i]);
    return out + "]";
  }

  Status mismatch(uint64_t expected, uint64_t found, std::string_view unit) const {
    return error(Code::kINVALID_MODEL, "reading ", text(), ": expected ", expected, " ", unit,
                 ", found ", found, "; the model is damaged or its dims are wrong");
  }
};

TensorReader::TensorReader(const pfrt_import_request& request, const pfrt_sink& sink,
                           std::vector<Payload> payloads)
    : request_(request), api_(*request.api), sink_(sink), payloads_(std::move(payloads)) {}

TensorReader::~TensorReader() {
  for (auto& [location, file] : files_) request_.file_release(file.file, nullptr);
}

Result<ValueRef> TensorReader::read(const wire::TensorProto& tensor, const std::string& what) {
  Form form{what};
  form.dtype = static_cast<pfrt_dtype>(tensor.data_type());
  form.dims = tensor.dims().data();
  form.rank = static_cast<size_t>(tensor.dims_size());
  if (tensor.data_type() == 0)
    return error(Code::kINVALID_MODEL, "reading ", what, ": it has no data_type");
  if (!dtype_known(form.dtype))
    return error(Code::kUNSUPPORTED, "reading ", what, ": data_type ", tensor.data_type(),
                 " is not known to this version");
  if (form.rank > kMaxRank)
    return error(Code::kINVALID_MODEL, "reading ", what, ": it has ", form.rank, " dims; at most ",
                 kMaxRank, " are read");
  const int64_t count = element_count(form.dims, form.rank);
  if (count < 0 ||
      (form.dtype != PFRT_DTYPE_STRING && tensor_bytes(form.dtype, count) == UINT64_MAX))
    return error(Code::kINVALID_MODEL, "reading ", form.text(),
                 ": dims are negative or their product overflows");
  form.count = static_cast<uint64_t>(count);
  form.bytes = form.dtype == PFRT_DTYPE_STRING ? 0 : tensor_bytes(form.dtype, count);
  if (tensor.has_segment())
    return error(Code::kUNSUPPORTED, "reading ", form.text(),
                 ": it is stored in segments, which no exporter writes; "
                 "save the model with whole tensors");
  if (tensor.data_location() == kExternalLocation) {
    if (form.dtype == PFRT_DTYPE_STRING)
      return error(Code::kINVALID_MODEL, "reading ", form.text(),
                   ": strings cannot be external data");
    PFRT_ASSIGN(const Extent extent, external(form, tensor));
    return read_raw(form, extent);
  }
  if (tensor.has_payload()) {
    if (tensor.payload() >= payloads_.size())
      return error(Code::kINTERNAL, "reading ", form.text(), ": no payload ", tensor.payload());
    return read_packed(form, payloads_[tensor.payload()]);
  }
  return read_fields(form, tensor);
}

Result<ValueRef> TensorReader::read_packed(const Form& form, const Payload& payload) {
  const uint32_t field = payload.field;
  if (field != kRawData && field != data_field(form.dtype))
    return error(Code::kINVALID_MODEL, "reading ", form.text(), ": its data is in ",
                 field_name(field), ", expected in ", field_name(data_field(form.dtype)),
                 " or raw_data");
  if (field == kRawData && form.dtype == PFRT_DTYPE_STRING)
    return error(Code::kINVALID_MODEL, "reading ", form.text(), ": strings cannot be raw_data");
  // Packed floats are raw bytes on the wire.
  if (field == kRawData || field == kFloatData || field == kDoubleData)
    return read_raw(form, {payload.data, payload.size, request_.file});
  const uint8_t* at = payload.data;
  const uint8_t* end = at + payload.size;
  const auto stored =
      static_cast<uint64_t>(std::count_if(at, end, [](uint8_t byte) { return byte < 0x80; }));
  return read_integers(form, stored, [at, end](int64_t* out) mutable {
    uint64_t value = 0;
    at = read_varint(at, end, &value);
    *out = static_cast<int64_t>(value);
    return at != nullptr;
  });
}

Result<ValueRef> TensorReader::read_fields(const Form& form, const wire::TensorProto& tensor) {
  const auto raw = [&](const void* data, size_t size) {
    return read_raw(form, {static_cast<const uint8_t*>(data), size, nullptr});
  };
  if (form.dtype == PFRT_DTYPE_STRING) return read_strings(form, tensor);
  if (tensor.has_raw_data()) return raw(tensor.raw_data().data(), tensor.raw_data().size());
  switch (data_field(form.dtype)) {
    case kFloatData:
      return raw(tensor.float_data().data(),
                 sizeof(float) * static_cast<size_t>(tensor.float_data_size()));
    case kDoubleData:
      return raw(tensor.double_data().data(),
                 sizeof(double) * static_cast<size_t>(tensor.double_data_size()));
    case kInt64Data:
      return raw(tensor.int64_data().data(),
                 sizeof(int64_t) * static_cast<size_t>(tensor.int64_data_size()));
    case kUint64Data: {
      const auto* at = tensor.uint64_data().data();
      return read_integers(form, static_cast<uint64_t>(tensor.uint64_data_size()),
                           [at](int64_t* out) mutable {
                             *out = static_cast<int64_t>(*at++);
                             return true;
                           });
    }
    default: {
      const auto* at = tensor.int32_data().data();
      return read_integers(form, static_cast<uint64_t>(tensor.int32_data_size()),
                           [at](int64_t* out) mutable {
                             *out = *at++;
                             return true;
                           });
    }
  }
}

// Reads |stored| numbers, one an element, or one a byte of packed elements. Any number that fits
// the element's bits is taken, signed or not: exporters write 16-bit patterns both ways.
template <typename Next>
Result<ValueRef> TensorReader::read_integers(const Form& form, uint64_t stored, Next next) {
  const uint32_t bits = std::max(8u, dtype_bits(form.dtype));
  const uint64_t expected = form.bytes / (bits / 8);
  if (stored != expected)
    return form.mismatch(expected, stored,
                         message("numbers in ", field_name(data_field(form.dtype))));
  auto tensor = sized<pfrt_tensor>();
  PFRT_ASSIGN(ValueRef value, create(form, &tensor));
  auto* to = static_cast<uint8_t*>(tensor.data);
  for (uint64_t i = 0; i < expected; ++i, to += bits / 8) {
    int64_t number = 0;
    if (!next(&number))
      return error(Code::kINVALID_MODEL, "reading ", form.text(), ": number ", i,
                   " of its data is malformed");
    if (form.dtype == PFRT_DTYPE_BOOL) number = number != 0;
    if (bits < 64 && (number < -(int64_t{1} << (bits - 1)) || number >= int64_t{1} << bits))
      return error(Code::kINVALID_MODEL, "reading ", form.text(), ": number ", i,
                   " of its data is ", number, ", which does not fit ", bits, " bits");
    std::memcpy(to, &number, bits / 8);
  }
  return value;
}

Result<ValueRef> TensorReader::read_strings(const Form& form, const wire::TensorProto& tensor) {
  const auto found = static_cast<uint64_t>(tensor.string_data_size());
  if (found != form.count) return form.mismatch(form.count, found, "strings");
  auto view = sized<pfrt_tensor>();
  PFRT_ASSIGN(ValueRef value, create(form, &view));
  for (uint64_t i = 0; i < found; ++i)
    PFRT_TRY(take_status(api_, api_.value->set_string(
                                   value.get(), i, to_c(tensor.string_data(static_cast<int>(i))))));
  return value;
}

Result<ValueRef> TensorReader::read_raw(const Form& form, Extent extent) {
  if (extent.size != form.bytes) return form.mismatch(form.bytes, extent.size, "bytes");
  // Bytes of a bool may be anything in a file; kernels see 0 and 1 only, so that these are copied.
  const bool wraps = extent.file && form.bytes > 0 && form.dtype != PFRT_DTYPE_BOOL;
  if (wraps && reinterpret_cast<uintptr_t>(extent.data) % alignment_of(form.dtype) == 0)
    return wrap(form, extent, api_.value->wrap_tensor);
  if (wraps && form.bytes > kCopiedUpTo) return wrap(form, extent, api_.value->wrap_unaligned);
  auto tensor = sized<pfrt_tensor>();
  PFRT_ASSIGN(ValueRef value, create(form, &tensor));
  PFRT_TRY(copy(form, extent, static_cast<uint8_t*>(tensor.data)));
  return value;
}

Result<ValueRef> TensorReader::create(const Form& form, pfrt_tensor* out_view) {
  pfrt_value* value = nullptr;
  Status status =
      take_status(api_, api_.value->create_tensor(form.dtype, form.dims, form.rank, &value));
  if (!status.ok()) return std::move(status.prepend("reading " + form.text()));
  ValueRef own(value, api_.value->release);
  PFRT_TRY(take_status(api_, api_.value->tensor(value, out_view)));
  return own;
}

Result<ValueRef> TensorReader::wrap(const Form& form, Extent extent,
                                    decltype(pfrt_value_api::wrap_tensor) wrap_as) {
  auto tensor = sized<pfrt_tensor>();
  tensor.dtype = form.dtype;
  tensor.rank = static_cast<uint32_t>(form.rank);
  tensor.data = const_cast<uint8_t*>(extent.data);
  tensor.bytes = extent.size;
  tensor.dims = form.dims;
  pfrt_value* value = nullptr;
  request_.file_retain(extent.file);
  Status status = take_status(api_, wrap_as(&tensor, request_.file_release, extent.file, &value));
  if (!status.ok()) return std::move(status.prepend("reading " + form.text()));
  return ValueRef(value, api_.value->release);
}

Status TensorReader::copy(const Form& form, Extent from, uint8_t* to) {
  const bool drop = from.file && request_.path.size > 0 && from.size >= kDropPagesFrom;
  for (uint64_t done = 0; done < from.size; done += kCopyChunk) {
    const auto size = static_cast<size_t>(std::min(kCopyChunk, from.size - done));
    const uint8_t* source = from.data + done;
    if (form.dtype == PFRT_DTYPE_BOOL)
      std::transform(source, source + size, to + done,
                     [](uint8_t byte) { return static_cast<uint8_t>(byte != 0); });
    else
      std::memcpy(to + done, source, size);
    if (drop) os::drop_pages(source, size);
    if (const pfrt_code code = sink_.stop(&sink_))
      return error(static_cast<Code>(code), "loading stopped while reading ", form.what);
  }
  return {};
}

Result<TensorReader::Extent> TensorReader::external(const Form& form,
                                                    const wire::TensorProto& tensor) {
  const std::string *location = nullptr, *checksum = nullptr;
  uint64_t offset = 0, length = form.bytes;
  for (const auto& entry : tensor.external_data()) {
    uint64_t* number = entry.key() == "offset"   ? &offset
                       : entry.key() == "length" ? &length
                                                 : nullptr;
    if (entry.key() == "location") location = &entry.value();
    if (entry.key() == "checksum") checksum = &entry.value();
    if (number && !parse_number(entry.value(), number))
      return error(Code::kINVALID_MODEL, "reading external data of ", form.text(), ": ",
                   entry.key(), " '", entry.value(), "' is not a number of bytes");
  }
  if (!location)
    return error(Code::kINVALID_MODEL, "reading external data of ", form.text(),
                 ": no location is given");
  if (length != form.bytes)
    return form.mismatch(form.bytes, length,
                         message("bytes of external data in '", *location, "'"));
  PFRT_ASSIGN(const Extent file, open(*location, form.text()));
  if (offset > file.size || length > file.size - offset)
    return error(Code::kINVALID_MODEL, "reading external data of ", form.text(), ": it needs ",
                 length, " bytes from byte ", offset, " of '", *location, "', which has ",
                 file.size);
  if (checksum) PFRT_TRY(verify(*location, file, *checksum, form));
  return Extent{file.data + offset, length, file.file};
}

Status TensorReader::verify(const std::string& location, Extent file, const std::string& checksum,
                            const Form& form) {
  std::string wanted = checksum;
  for (char& c : wanted) c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  if (wanted.size() != 40 || wanted.find_first_not_of("0123456789abcdef") != std::string::npos)
    return error(Code::kINVALID_MODEL, "reading external data of ", form.text(), ": checksum '",
                 checksum, "' is no SHA-1 digest of 40 hexadecimal digits");
  const auto [at, fresh] = digests_.try_emplace(location);
  if (fresh) {
    Sha1 sha1;
    for (uint64_t done = 0; done < file.size; done += kCopyChunk) {
      sha1.add(file.data + done, std::min(kCopyChunk, file.size - done));
      if (const pfrt_code code = sink_.stop(&sink_))
        return error(static_cast<Code>(code), "loading stopped while checking '", location, "'");
    }
    at->second = sha1.digest();
  }
  if (at->second == wanted) return {};
  return error(Code::kDATA_LOSS, "reading external data of ", form.text(),
               ": the model says that '", location, "' has SHA-1 ", wanted, ", it has ", at->second,
               "; the file is damaged or belongs to another model, restore it from where it came");
}

Result<TensorReader::Extent> TensorReader::open(const std::string& location,
                                                const std::string& what) {
  if (const auto found = files_.find(location); found != files_.end()) return found->second;
  MessageSink sink(sink_);
  Extent file;
  const void* data = nullptr;
  const pfrt_code code =
      request_.open_beside(&request_, to_c(location), sink.get(), &file.file, &data, &file.size);
  if (code != PFRT_CODE_OK)
    return std::move(sink.status(code).prepend("reading external data of " + what));
  file.data = static_cast<const uint8_t*>(data);
  files_.emplace(location, file);
  return file;
}

Result<ValueRef> TensorReader::read_sparse(const wire::SparseTensorProto& tensor,
                                           const std::string& what) {
  PFRT_ASSIGN(ValueRef values, read(tensor.values(), what + " (values)"));
  PFRT_ASSIGN(ValueRef indices, read(tensor.indices(), what + " (indices)"));
  auto value_view = sized<pfrt_tensor>(), index_view = sized<pfrt_tensor>();
  PFRT_TRY(take_status(api_, api_.value->tensor(values.get(), &value_view)));
  PFRT_TRY(take_status(api_, api_.value->tensor(indices.get(), &index_view)));
  if (value_view.rank != 1)
    return error(Code::kINVALID_MODEL, "reading ", what, ": its values have rank ", value_view.rank,
                 ", expected 1");
  PFRT_TRY(check_indices(what, index_view, static_cast<uint64_t>(value_view.dims[0]), tensor));
  pfrt_value* value = nullptr;
  PFRT_TRY(
      take_status(api_, api_.value->create_sparse(values.get(), indices.get(), tensor.dims().data(),
                                                  static_cast<size_t>(tensor.dims_size()), &value))
          .prepend("reading " + what));
  return ValueRef(value, api_.value->release);
}

Status TensorReader::check_indices(const std::string& what, const pfrt_tensor& indices,
                                   uint64_t nonzeros, const wire::SparseTensorProto& tensor) {
  const auto rank = static_cast<size_t>(tensor.dims_size());
  const int64_t count = element_count(tensor.dims().data(), rank);
  if (rank > kMaxRank || count < 0)
    return error(Code::kINVALID_MODEL, "reading ", what,
                 ": its dense dims are negative, too many or overflow");
  const bool linear = indices.rank == 1;
  if (indices.dtype != PFRT_DTYPE_INT64 || (!linear && indices.rank != 2) ||
      static_cast<uint64_t>(indices.dims[0]) != nonzeros ||
      (!linear && static_cast<uint64_t>(indices.dims[1]) != rank))
    return error(Code::kINVALID_MODEL, "reading ", what, ": its indices must be int64 [", nonzeros,
                 "] or [", nonzeros, ",", rank, "], found ", dtype_name(indices.dtype), " of rank ",
                 indices.rank);
  const auto* index = static_cast<const int64_t*>(indices.data);
  for (uint64_t i = 0; i < nonzeros; ++i) {
    for (size_t axis = 0; axis < (linear ? 1 : rank); ++axis, ++index) {
      const int64_t limit = linear ? count : tensor.dims(static_cast<int>(axis));
      if (*index < 0 || *index >= limit)
        return error(Code::kINVALID_MODEL, "reading ", what, ": index ", *index, " of non-zero ", i,
                     " is outside [0, ", limit, ")");
    }
  }
  return {};
}

}  // namespace pfrt::onnx
