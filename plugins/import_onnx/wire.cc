// SPDX-License-Identifier: Apache-2.0
#include "plugins/import_onnx/wire.h"

#include <climits>

namespace pfrt::onnx {
namespace {

constexpr uint32_t kPayloadField = 20000;
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// The content of a length-delimited field. kBytes is anything but a message; kDropped is a message
// that nobody reads.
enum class Kind {
  kBytes,
  kDropped,
  kEntry,  // a message with no message in it
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kFunction,
  kTensor,
  kSparse,
  kAnnotation,
  kValueInfo,
  kType,
  kTypeOfTensor,
  kTypeOfElement,
  kTypeOfMap,
  kShape,
};

Kind model_child(uint32_t field) {
  switch (field) {
    case 7:
      return Kind::kGraph;
    case 8:
    case 14:
    case 26:
      return Kind::kEntry;
    case 20:
      return Kind::kDropped;
    case 25:
      return Kind::kFunction;
    default:
      return Kind::kBytes;
  }
}

Kind graph_child(uint32_t field) {
  switch (field) {
    case 1:
      return Kind::kNode;
    case 5:
      return Kind::kTensor;
    case 11:
    case 12:
    case 13:
      return Kind::kValueInfo;
    case 14:
      return Kind::kAnnotation;
    case 15:
      return Kind::kSparse;
    case 16:
      return Kind::kEntry;
    default:
      return Kind::kBytes;
  }
}

Kind attribute_child(uint32_t field) {
  switch (field) {
    case 5:
    case 10:
      return Kind::kTensor;
    case 6:
    case 11:
      return Kind::kGraph;
    case 14:
    case 15:
      return Kind::kType;
    case 22:
    case 23:
      return Kind::kSparse;
    default:
      return Kind::kBytes;
  }
}

Kind function_child(uint32_t field) {
  switch (field) {
    case 7:
      return Kind::kNode;
    case 9:
    case 14:
      return Kind::kEntry;
    case 11:
      return Kind::kAttribute;
    case 12:
      return Kind::kValueInfo;
    default:
      return Kind::kBytes;
  }
}

Kind type_child(uint32_t field) {
  switch (field) {
    case 1:
    case 8:
      return Kind::kTypeOfTensor;
    case 4:
    case 9:
      return Kind::kTypeOfElement;
    case 5:
      return Kind::kTypeOfMap;
    case 7:
      return Kind::kEntry;
    default:
      return Kind::kBytes;
  }
}

Kind child_of(Kind parent, uint32_t field) {
  switch (parent) {
    case Kind::kModel:
      return model_child(field);
    case Kind::kGraph:
      return graph_child(field);
    case Kind::kNode:
      return field == 5 ? Kind::kAttribute : field == 9 ? Kind::kEntry : Kind::kBytes;
    case Kind::kAttribute:
      return attribute_child(field);
    case Kind::kFunction:
      return function_child(field);
    case Kind::kTensor:
      return field == 3 || field == 13 || field == 16 ? Kind::kEntry : Kind::kBytes;
    case Kind::kSparse:
      return field == 1 || field == 2 ? Kind::kTensor : Kind::kBytes;
    case Kind::kAnnotation:
      return field == 2 ? Kind::kEntry : Kind::kBytes;
    case Kind::kValueInfo:
      return field == 2 ? Kind::kType : field == 4 ? Kind::kEntry : Kind::kBytes;
    case Kind::kType:
      return type_child(field);
    case Kind::kTypeOfTensor:
      return field == 2 ? Kind::kShape : Kind::kBytes;
    case Kind::kTypeOfElement:
      return field == 1 ? Kind::kType : Kind::kBytes;
    case Kind::kTypeOfMap:
      return field == 2 ? Kind::kType : Kind::kBytes;
    case Kind::kShape:
      return field == 1 ? Kind::kEntry : Kind::kBytes;
    case Kind::kBytes:
    case Kind::kDropped:
    case Kind::kEntry:
      break;
  }
  return Kind::kBytes;
}

bool is_tensor_data(uint32_t field) {
  return (field >= kFloatData && field <= kInt64Data) || (field >= 9 && field <= 11);
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
  return out;
}

// A field by byte offsets: [start, length) is its tag, [length, body) its length (of a
// length-delimited field), [body, end) its content.
struct Field {
  uint32_t number = 0;
  uint32_t type = 0;
  uint64_t start = 0, length = 0, body = 0, end = 0;
};

class Bytes {
 public:
  Bytes(const void* data, uint64_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}

  const uint8_t* at(uint64_t offset) const { return data_ + offset; }

  Status damaged(uint64_t offset, const std::string& what) const {
    return error(Code::kINVALID_MODEL, "reading an ONNX model of ", size_, " bytes: ", what,
                 " at byte ", offset, "; the file is truncated, damaged or not ONNX");
  }

  // The field at |offset| of a message that ends at |end|; offset < end.
  Result<Field> field(uint64_t offset, uint64_t end) const {
    Field f;
    f.start = offset;
    uint64_t tag = 0;
    const uint8_t* next = read_varint(at(offset), at(end), &tag);
    if (!next || tag > UINT32_MAX || tag >> 3 == 0) return damaged(offset, "no field tag");
    f.number = static_cast<uint32_t>(tag >> 3);
    f.type = static_cast<uint32_t>(tag & 7);
    f.length = f.body = static_cast<uint64_t>(next - data_);
    uint64_t content = 0;
    switch (f.type) {
      case kVarint: {
        uint64_t ignored = 0;
        next = read_varint(at(f.body), at(end), &ignored);
        if (!next) return damaged(f.body, message("field ", f.number, " has no complete number"));
        f.end = static_cast<uint64_t>(next - data_);
        return f;
      }
      case kFixed64:
        content = 8;
        break;
      case kFixed32:
        content = 4;
        break;
      case kLength:
        next = read_varint(at(f.length), at(end), &content);
        if (!next) return damaged(f.length, message("field ", f.number, " has no complete length"));
        f.body = static_cast<uint64_t>(next - data_);
        break;
      default:
        return damaged(offset, message("field ", f.number, " has wire type ", f.type,
                                       ", which ONNX does not use,"));
    }
    if (content > end - f.body)
      return damaged(f.body, message("field ", f.number, " needs ", content, " bytes, ",
                                     end - f.body, " are left"));
    f.end = f.body + content;
    return f;
  }

 private:
  const uint8_t* data_;
  uint64_t size_;
};

class Cutter {
 public:
  Cutter(const void* model, uint64_t size) : bytes_(model, size), size_(size) {}

  Result<SlimMessage> cut() {
    PFRT_TRY(message_of(Kind::kModel, 0, size_, 0));
    if (out_.bytes.size() > INT_MAX)
      return error(Code::kUNSUPPORTED, "reading an ONNX model of ", size_,
                   " bytes: ", out_.bytes.size(),
                   " of them are not tensor data, more than the 2 GiB a protobuf message can have");
    return std::move(out_);
  }

 private:
  // Copies the message at [begin, end), cut.
  Status message_of(Kind kind, uint64_t begin, uint64_t end, int depth) {
    if (depth > kMaxMessageDepth)
      return bytes_.damaged(begin,
                            message("messages nested deeper than ", kMaxMessageDepth, " levels"));
    uint64_t cut_at = UINT64_MAX;
    if (kind == Kind::kTensor) PFRT_TRY(find_payload(begin, end, &cut_at));
    uint64_t copied = begin;
    for (uint64_t at = begin; at < end;) {
      PFRT_ASSIGN(const Field f, bytes_.field(at, end));
      at = f.end;
      const Kind child = f.type == kLength ? child_of(kind, f.number) : Kind::kBytes;
      if (kind == Kind::kTensor && (f.number == kPayloadField || f.start == cut_at)) {
        copy(copied, f.start);
        if (f.start == cut_at) add_payload(f);
        copied = f.end;
      } else if (child == Kind::kDropped) {
        copy(copied, f.length);
        out_.bytes += '\0';
        copied = f.end;
      } else if (child != Kind::kBytes) {
        // The slim message is never longer than the original, so that its length fits where that
        // one's stood.
        copy(copied, f.body);
        const size_t body = out_.bytes.size();
        PFRT_TRY(message_of(child, f.body, f.end, depth + 1));
        patch_length(body, static_cast<size_t>(f.body - f.length));
        copied = f.end;
      }
    }
    copy(copied, end);
    return {};
  }

  // The start of the tensor's only data field, when that is worth cutting.
  Status find_payload(uint64_t begin, uint64_t end, uint64_t* out_start) const {
    int data_fields = 0;
    Field data;
    for (uint64_t at = begin; at < end;) {
      PFRT_ASSIGN(const Field f, bytes_.field(at, end));
      at = f.end;
      if (!is_tensor_data(f.number)) continue;
      ++data_fields;
      data = f;
    }
    if (data_fields == 1 && data.type == kLength && data.number != kStringData &&
        data.end - data.body >= kMinPayloadBytes)
      *out_start = data.start;
    return {};
  }

  void add_payload(const Field& f) {
    out_.bytes += varint(kPayloadField << 3 | kVarint);
    out_.bytes += varint(out_.payloads.size());
    out_.payloads.push_back({f.number, bytes_.at(f.body), f.end - f.body});
  }

  void copy(uint64_t begin, uint64_t end) {
    out_.bytes.append(reinterpret_cast<const char*>(bytes_.at(begin)),
                      static_cast<size_t>(end - begin));
  }

  // Writes the length of the message from |body| to the end into the |width| bytes before it,
  // padded.
  void patch_length(size_t body, size_t width) {
    uint64_t length = out_.bytes.size() - body;
    for (size_t i = 0; i < width; ++i, length >>= 7)
      out_.bytes[body - width + i] =
          static_cast<char>((length & 0x7f) | (i + 1 < width ? 0x80 : 0));
  }

  Bytes bytes_;
  uint64_t size_;
  SlimMessage out_;
};

class Joiner {
 public:
  Joiner(const std::string& slim, const std::vector<Payload>& payloads)
      : slim_(slim), bytes_(slim.data(), slim.size()), payloads_(payloads) {}

  Result<JoinedMessage> join() {
    uint64_t growth = 0;
    PFRT_TRY(find_edits(Kind::kModel, 0, slim_.size(), &growth));
    JoinedMessage out;
    uint64_t at = 0;
    const auto add = [&out](const void* data, uint64_t size) {
      if (size) out.pieces.push_back({data, size});
      out.size += size;
    };
    for (const Edit& edit : edits_) {
      add(bytes_.at(at), edit.begin - at);
      std::string& header = out.headers.emplace_back(edit.header);
      add(header.data(), header.size());
      if (edit.payload) add(edit.payload->data, edit.payload->size);
      at = edit.end;
    }
    add(bytes_.at(at), slim_.size() - at);
    return out;
  }

 private:
  // [begin, end) of the slim message gives way to |header| and the payload.
  struct Edit {
    uint64_t begin, end;
    std::string header;
    const Payload* payload;
  };

  // Appends the edits of the message at [begin, end), in order; |growth| is what they add to its
  // size.
  Status find_edits(Kind kind, uint64_t begin, uint64_t end, uint64_t* growth) {
    for (uint64_t at = begin; at < end;) {
      PFRT_ASSIGN(const Field f, bytes_.field(at, end));
      at = f.end;
      if (kind == Kind::kTensor && f.number == kPayloadField) {
        uint64_t ordinal = 0;
        read_varint(bytes_.at(f.body), bytes_.at(f.end), &ordinal);
        if (ordinal >= payloads_.size())
          return error(Code::kINTERNAL, "joining payloads: no payload ", ordinal);
        const Payload& payload = payloads_[ordinal];
        Edit edit{f.start, f.end, varint(kRawData << 3 | kLength) + varint(payload.size), &payload};
        *growth += edit.header.size() + payload.size - (f.end - f.start);
        edits_.push_back(std::move(edit));
        continue;
      }
      const Kind child = f.type == kLength ? child_of(kind, f.number) : Kind::kBytes;
      if (child == Kind::kBytes) continue;
      const size_t index = edits_.size();
      edits_.push_back({f.length, f.body, {}, nullptr});
      uint64_t inner = 0;
      PFRT_TRY(find_edits(child, f.body, f.end, &inner));
      if (edits_.size() == index + 1) {
        edits_.pop_back();
        continue;
      }
      std::string header = varint(f.end - f.body + inner);
      *growth += inner + header.size() - (f.body - f.length);
      edits_[index].header = std::move(header);
    }
    return {};
  }

  const std::string& slim_;
  Bytes bytes_;
  const std::vector<Payload>& payloads_;
  std::vector<Edit> edits_;
};

}  // namespace

const uint8_t* read_varint(const uint8_t* at, const uint8_t* end, uint64_t* out_value) {
  uint64_t value = 0;
  for (unsigned shift = 0; at < end && shift < 70; shift += 7) {
    const uint8_t byte = *at++;
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out_value = value;
      return at;
    }
  }
  return nullptr;
}

Result<SlimMessage> cut_payloads(const void* model, uint64_t size) {
  return Cutter(model, size).cut();
}

Result<JoinedMessage> join_payloads(const std::string& slim, const std::vector<Payload>& payloads) {
  return Joiner(slim, payloads).join();
}

}  // namespace pfrt::onnx
