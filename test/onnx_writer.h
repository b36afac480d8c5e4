// SPDX-License-Identifier: Apache-2.0
//
// ONNX models byte by byte, good and bad: a protobuf wire writer and, over it, the messages that
// tests need. Field numbers are the ONNX standard's. Header-only and independent of the runtime, so
// that it cannot share a mistake with the reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onnx_writer {

// A protobuf message under construction; each call appends a field.
class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    varint(field << 3 | 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& real(uint32_t field, float value) {
    varint(field << 3 | 5);
    char raw[4];
    std::memcpy(raw, &value, 4);
    bytes_.append(raw, 4);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes_); }
  Message& raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value > 127; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

constexpr int64_t kFloat = 1, kInt64 = 7, kString = 8, kBool = 9;

inline Message tensor(std::string_view name, int64_t dtype, const std::vector<int64_t>& dims,
                      std::string_view raw) {
  Message m;
  for (int64_t d : dims) m.number(1, d);
  return m.number(2, dtype).text(8, name).text(9, raw);
}

// A tensor whose bytes are in the file |location|.
inline Message external_tensor(std::string_view name, int64_t dtype,
                               const std::vector<int64_t>& dims, std::string_view location,
                               const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Message m;
  for (int64_t d : dims) m.number(1, d);
  m.number(2, dtype).text(8, name).number(14, 1);
  m.message(13, Message().text(1, "location").text(2, location));
  for (const auto& [key, value] : more) m.message(13, Message().text(1, key).text(2, value));
  return m;
}

// Dimensions below 0 are named "N".
inline Message value_info(std::string_view name, int64_t dtype, const std::vector<int64_t>& dims) {
  Message shape;
  for (int64_t d : dims) shape.message(1, d < 0 ? Message().text(2, "N") : Message().number(1, d));
  const Message type = Message().message(1, Message().number(1, dtype).message(2, shape));
  return Message().text(1, name).message(2, type);
}

inline Message int_attribute(std::string_view name, int64_t value) {
  return Message().text(1, name).number(3, value).number(20, 2);
}
inline Message ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  Message m;
  m.text(1, name);
  for (int64_t v : values) m.number(8, v);
  return m.number(20, 7);
}
inline Message float_attribute(std::string_view name, float value) {
  return Message().text(1, name).real(2, value).number(20, 1);
}
inline Message string_attribute(std::string_view name, std::string_view value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}
inline Message graph_attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).number(20, 5);
}

inline Message node(std::string_view op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::vector<Message>& attributes = {}, std::string_view name = {},
                    std::string_view domain = {}) {
  Message m;
  for (const std::string& i : inputs) m.text(1, i);
  for (const std::string& o : outputs) m.text(2, o);
  if (!name.empty()) m.text(3, name);
  m.text(4, op);
  for (const Message& a : attributes) m.message(5, a);
  if (!domain.empty()) m.text(7, domain);
  return m;
}

struct Graph {
  std::vector<Message> nodes, initializers, inputs, outputs;
  std::string name = "g";

  Message message() const {
    Message m;
    for (const Message& n : nodes) m.message(1, n);
    m.text(2, name);
    for (const Message& i : initializers) m.message(5, i);
    for (const Message& i : inputs) m.message(11, i);
    for (const Message& o : outputs) m.message(12, o);
    return m;
  }
};

struct Opset {
  std::string domain;
  int64_t version;
};

inline Message model(const Graph& graph, const std::vector<Opset>& opsets = {{"", 17}},
                     const std::vector<Message>& functions = {}, int64_t ir_version = 8) {
  Message m;
  m.number(1, ir_version).text(2, "onnx_writer").message(7, graph.message());
  for (const Opset& o : opsets) m.message(8, Message().text(1, o.domain).number(2, o.version));
  for (const Message& f : functions) m.message(25, f);
  return m;
}

// A function of the model, with its inputs, outputs, names of attributes and nodes.
inline Message function(std::string_view domain, std::string_view name,
                        const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes,
                        const std::vector<Message>& nodes, const std::vector<Opset>& opsets) {
  Message m;
  m.text(1, name);
  for (const std::string& i : inputs) m.text(4, i);
  for (const std::string& o : outputs) m.text(5, o);
  for (const std::string& a : attributes) m.text(6, a);
  for (const Message& n : nodes) m.message(7, n);
  for (const Opset& o : opsets) m.message(9, Message().text(1, o.domain).number(2, o.version));
  return m.text(10, domain);
}

// An attribute in a function's body that takes the value of the function's attribute |from|.
inline Message reference_attribute(std::string_view name, std::string_view from, int64_t type) {
  return Message().text(1, name).number(20, type).text(21, from);
}

}  // namespace onnx_writer
