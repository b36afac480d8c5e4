// SPDX-License-Identifier: Apache-2.0
//
// Tensors on a device and bindings to it, from C++, on the fake device of test/plugins/device.
#include "test/plugins/device/device.h"

#include <gtest/gtest.h>

#include <pyflame_rt/pyflame_rt.hpp>

namespace pyflame_rt {
namespace {

fake_device::Counters counters;

// y = x + {1, 2}
InferenceSession increment() {
  Graph graph("increment");
  graph.add_input(TensorInfo("x", {{2}}, DType::Float32));
  graph.add_initializer("k", Tensor::from_vector<float>({1, 2}, {2}));
  graph.add_node(std::make_shared<Node>("add", "Add", std::vector<std::string>{"x", "k"},
                                        std::vector<std::string>{"y"}));
  graph.add_output(TensorInfo("y", {{2}}, DType::Float32));
  SessionOptions options;
  options.providers = {"DeviceExecutionProvider", "CPUExecutionProvider"};
  options.extra["provider.device.counters"] = std::to_string(reinterpret_cast<intptr_t>(&counters));
  return InferenceSession(graph, options);
}

int64_t copied() {
  return counters.copies[PFRT_TO_DEVICE] + counters.copies[PFRT_TO_HOST] +
         counters.copies[PFRT_ON_DEVICE];
}

std::vector<float> elements(const Tensor& tensor) {
  const Tensor host = tensor.to_host();
  return {host.data_ptr<float>(), host.data_ptr<float>() + host.num_elements()};
}

TEST(CxxDevice, tensors_on_a_device_are_copied_never_read) {
  const InferenceSession session = increment();
  Tensor there = session.create_tensor({2}, DType::Float32);
  EXPECT_TRUE(there.on_device());
  EXPECT_EQ(there.data(), nullptr);
  there.copy_from(Tensor::from_vector<float>({3, 4}, {2}));
  EXPECT_EQ(elements(there), (std::vector<float>{3, 4}));
  const Tensor copy = there.clone();
  EXPECT_FALSE(copy.on_device());
  EXPECT_THROW(there.data_ptr<float>(), InputError);
  EXPECT_THROW(there.fill(1.0f), InputError);
  EXPECT_THROW(there.zero(), InputError);
  EXPECT_THROW(there.reshape({1, 2}), InputError);
  EXPECT_THROW(there.view(), InputError);
  EXPECT_THROW(session.create_tensor({2}, DType::Float32, "CPUExecutionProvider"), PyFlameRTError);
  const auto results = session.run({}, {{"x", there}});
  EXPECT_FALSE(results[0].on_device());
  EXPECT_EQ(elements(results[0]), (std::vector<float>{4, 6}));
}

TEST(CxxDevice, bound_values_stay_on_the_device_between_runs) {
  const InferenceSession session = increment();
  Tensor x = session.create_tensor({2}, DType::Float32);
  x.copy_from(Tensor::from_vector<float>({0, 0}, {2}));
  IOBinding binding(session);
  binding.bind_input("x", x);
  binding.bind_output("y", OutputMemory::Device);
  binding.run();
  counters.reset();
  for (int i = 0; i < 4; ++i) {
    binding.bind_input("x", binding.output("y"));
    binding.run();
  }
  EXPECT_EQ(copied(), 0);
  EXPECT_TRUE(binding.output("y").tensor().on_device());
  EXPECT_EQ(elements(binding.output("y").tensor()), (std::vector<float>{5, 10}));
}

TEST(CxxDevice, bound_memory_is_written_by_each_run) {
  const InferenceSession session = increment();
  Tensor x = Tensor::from_vector<float>({1, 1}, {2}), host({2}, DType::Float32);
  Tensor there = session.create_tensor({2}, DType::Float32);
  IOBinding binding(session);
  EXPECT_THROW(binding.output("y"), InputError);
  EXPECT_THROW(binding.bind_input("z", x), InputError);
  EXPECT_THROW(binding.bind_input("x", Value()), InputError);
  EXPECT_THROW(binding.bind_output("z"), InputError);
  binding.bind_input("x", x);
  binding.bind_output("y", there);
  binding.run();
  EXPECT_EQ(elements(there), (std::vector<float>{2, 3}));
  x.data_ptr<float>()[0] = 10;
  binding.bind_output("y", host);
  binding.run(RunOptions());
  EXPECT_EQ(elements(host), (std::vector<float>{11, 3}));
  EXPECT_EQ(elements(there), (std::vector<float>{2, 3}));
  binding.bind_output("y");
  binding.run();
  ASSERT_EQ(binding.outputs().size(), 1u);
  EXPECT_EQ(elements(binding.outputs()[0].tensor()), (std::vector<float>{11, 3}));
  binding.clear_outputs();
  binding.run();
  EXPECT_TRUE(binding.outputs().empty());
  binding.clear_inputs();
  EXPECT_THROW(binding.run(), InputError);
}

}  // namespace
}  // namespace pyflame_rt
