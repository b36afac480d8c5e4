// SPDX-License-Identifier: Apache-2.0
//
// A folder that a test may fill, and the small models that tests share. Not thread-safe.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <pyflame_rt/graph.hpp>
#include <string>
#include <vector>

namespace pfrt_test {

// Makes a folder the current one of the process, and removes it with its contents in the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_, before_;
};

class InTemporaryFolder : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

void write_file(const std::string& path, const std::string& bytes);
std::string read_file(const std::string& path);

std::shared_ptr<pyflame_rt::Node> make_node(const std::string& name, const std::string& op,
                                            const std::vector<std::string>& inputs,
                                            const std::vector<std::string>& outputs);
// A graph with "input" of |shape| through one |op| to "output".
pyflame_rt::Graph one_node(const std::string& op, const pyflame_rt::Shape& shape);
// Returns the bytes of an ONNX file with a Relu from "input" to "output", both float32 [1,10].
std::string onnx_relu();

}  // namespace pfrt_test
