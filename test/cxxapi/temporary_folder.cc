// SPDX-License-Identifier: Apache-2.0
#include "test/cxxapi/temporary_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace pfrt_test {
namespace {

// Writes a length-delimited field of a protocol buffer; |bytes| is shorter than 128.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string number(int field_number, int value) {
  return {static_cast<char>(field_number << 3), static_cast<char>(value)};
}

std::string value_info(const std::string& name) {
  constexpr int kFloat = 1;
  const std::string shape = field(1, number(1, 1)) + field(1, number(1, 10));
  return field(1, name) + field(2, field(1, number(1, kFloat) + field(2, shape)));
}

}  // namespace

TemporaryFolder::TemporaryFolder() : before_(std::filesystem::current_path()) {
  std::string name = std::filesystem::temp_directory_path() / "pfrt_test_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder " + name);
  path_ = name;
  std::filesystem::current_path(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::current_path(before_, ignored);
  std::filesystem::remove_all(path_, ignored);
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::shared_ptr<pyflame_rt::Node> make_node(const std::string& name, const std::string& op,
                                            const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& outputs) {
  return std::make_shared<pyflame_rt::Node>(name, op, inputs, outputs);
}

pyflame_rt::Graph one_node(const std::string& op, const pyflame_rt::Shape& shape) {
  pyflame_rt::Graph graph("one_" + op);
  graph.add_input({"input", shape, pyflame_rt::DType::Float32});
  graph.add_output({"output", shape, pyflame_rt::DType::Float32});
  graph.add_node(make_node("the_node", op, {"input"}, {"output"}));
  return graph;
}

std::string onnx_relu() {
  const std::string node =
      field(1, "input") + field(2, "output") + field(3, "relu_0") + field(4, "Relu");
  const std::string graph = field(1, node) + field(2, "simple_relu") +
                            field(11, value_info("input")) + field(12, value_info("output"));
  return number(1, 8) + field(2, "a test") + field(7, graph) +
         field(8, field(1, "") + number(2, 17));
}

}  // namespace pfrt_test
