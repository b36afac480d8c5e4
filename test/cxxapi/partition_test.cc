// SPDX-License-Identifier: Apache-2.0
//
// Graphs on wafer-scale chips from C++, with the wafer-scale provider's simulator.
#include <gtest/gtest.h>

#include <pyflame_rt/partition/wse.hpp>

namespace pyflame_rt {
namespace {

using partition::WSEChipConfig;
using partition::WSEPlan;

Tensor matrix(int64_t rows, int64_t columns, int seed) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 13) % 19) / 19 - 0.5F;
  return Tensor::from_vector<float>(values, {rows, columns});
}

std::shared_ptr<Node> node_of(const std::string& name, const std::string& op,
                              std::vector<std::string> inputs, const std::string& output) {
  return std::make_shared<Node>(name, op, std::move(inputs), std::vector<std::string>{output});
}

// A chain of |count| products of 256 x 256, then NonZero, which the wafer does not take.
Graph chain(int count) {
  Graph graph("chain");
  graph.add_input(TensorInfo("x", {{16, 256}}, DType::Float32));
  std::string last = "x";
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    graph.add_initializer("w" + number, matrix(256, 256, i));
    graph.add_node(node_of("product" + number, "MatMul", {last, "w" + number}, "y" + number));
    last = "y" + number;
  }
  graph.add_node(node_of("", "NonZero", {last}, "where"));
  graph.add_output(TensorInfo("where", {{2, std::nullopt}}, DType::Int64));
  return graph;
}

std::string message_of(const Graph& graph, const WSEChipConfig& config,
                       const std::string& machine = "wse2") {
  try {
    (void)partition::wse::partition_for_multi_chip(graph, config, machine);
  } catch (const InvalidArgumentError& e) {
    return e.what();
  }
  return "no InvalidArgumentError";
}

TEST(Partition, all_of_a_graph_on_one_chip) {
  const WSEPlan plan = partition::wse::partition_for_wse(chain(3));
  EXPECT_EQ(plan.machine, "wse2");
  EXPECT_TRUE(plan.simulated);
  EXPECT_FALSE(plan.streaming);
  ASSERT_EQ(plan.partitions.size(), 1u);
  EXPECT_EQ(plan.partitions[0].nodes,
            (std::vector<std::string>{"product0", "product1", "product2"}));
  EXPECT_GT(plan.partitions[0].memory_bytes, 3 * 256 * 256 * 2);
  EXPECT_NEAR(plan.partitions[0].compute_time_us,
              static_cast<double>(plan.partitions[0].cycles) / 850, 1e-6);
  EXPECT_GT(plan.total_latency_us, plan.pipeline_interval_us);
  EXPECT_GT(plan.pipeline_interval_us, 0);
  EXPECT_EQ(plan.total_comm_bytes, 0);
  EXPECT_EQ(plan.load_imbalance, 0);
  EXPECT_EQ(plan.unplaced, std::vector<std::string>{"where"});
  EXPECT_NE(plan.text.find("simulated wse2"), std::string::npos);
  EXPECT_NE(plan.svg().find("<svg"), std::string::npos);
}

TEST(Partition, over_the_chips_of_a_grid) {
  WSEChipConfig config;
  config.num_chips = 4;
  config.topology = {2, 2};
  config.inter_chip_bandwidth = 1e12;
  config.inter_chip_latency = 100;
  config.chip_memory_bytes = uint64_t{40} << 30;
  EXPECT_EQ(config.total_chips(), 4);
  EXPECT_EQ(partition::wse::partition_for_multi_chip(chain(3), config).partitions.size(), 1u);
  config.chip_memory_bytes = 400'000'000;
  const WSEPlan plan = partition::wse::partition_for_multi_chip(chain(3), config);
  const WSEPlan again = partition::wse::partition_for_wse(chain(3), config, "wse3");
  EXPECT_EQ(again.machine, "wse3");
  config.chip_memory_bytes = uint64_t{47'000} * 64 * 64;
  const WSEPlan apart = partition::wse::partition_for_multi_chip(chain(3), config);
  ASSERT_GT(apart.partitions.size(), 1u);
  EXPECT_EQ(apart.total_comm_bytes,
            static_cast<int64_t>(apart.partitions.size() - 1) * 16 * 256 * 2);
  EXPECT_GT(apart.total_latency_us, plan.total_latency_us);
  EXPECT_EQ(apart.node_to_partition.at("product0"), 0);
  EXPECT_GE(apart.load_imbalance, 0);
}

TEST(Partition, what_does_not_fit_at_once_is_streamed) {
  WSEChipConfig config;
  config.chip_memory_bytes = 200'000;
  const WSEPlan plan = partition::wse::partition_for_wse(chain(3), config);
  EXPECT_TRUE(plan.streaming);
  EXPECT_EQ(plan.total_latency_us, plan.pipeline_interval_us);
  ASSERT_EQ(plan.partitions.size(), 1u);
}

TEST(Partition, nothing_on_the_wafer) {
  const WSEPlan plan = partition::wse::partition_for_wse(chain(0));
  EXPECT_TRUE(plan.partitions.empty());
  EXPECT_EQ(plan.unplaced, std::vector<std::string>{"where"});
  EXPECT_EQ(plan.total_latency_us, 0);
  EXPECT_EQ(plan.svg(), "");
}

TEST(Partition, products_of_one_input_become_one_for_the_wafer) {
  Graph graph("projections");
  graph.add_input(TensorInfo("x", {{16, 256}}, DType::Float32));
  for (const char* name : {"q", "k", "v"}) {
    const std::string weight = std::string("w_") + name;
    graph.add_initializer(weight, matrix(256, 256, name[0]));
    graph.add_node(node_of(name, "MatMul", {"x", weight}, std::string(name) + "_out"));
    graph.add_output(TensorInfo(std::string(name) + "_out", {{16, 256}}, DType::Float32));
  }
  const Graph made = partition::wse::optimize_for_wse_dataflow(graph);
  EXPECT_EQ(graph.num_nodes(), 3u);
  ASSERT_EQ(made.num_nodes(), 2u);
  const std::unordered_map<std::string, Tensor> feed{{"x", matrix(16, 256, 5)}};
  const std::vector<Tensor> want = InferenceSession(graph).run({}, feed),
                            got = InferenceSession(made).run({}, feed);
  ASSERT_EQ(got.size(), 3u);
  for (size_t i = 0; i < got.size(); ++i)
    for (int64_t k = 0; k < got[i].num_elements(); ++k)
      ASSERT_NEAR(got[i].data_ptr<float>()[k], want[i].data_ptr<float>()[k], 1e-3);
  EXPECT_THROW((void)partition::wse::optimize_for_wse_dataflow(graph, "cpu"), InvalidArgumentError);
  EXPECT_FALSE(opt::DataflowPass().should_run(OptLevel::All));
}

TEST(Partition, errors_say_what_was_given_and_what_to_give) {
  const Graph graph = chain(1);
  WSEChipConfig config;
  config.topology = {2, 0};
  EXPECT_EQ(message_of(graph, config),
            "topology of wafer-scale chips is [2, 0]; give two positive whole numbers, columns and "
            "rows, as {2, 2}");
  config.topology = {2};
  EXPECT_THROW((void)partition::wse::partition_for_wse(graph, config), InvalidArgumentError);
  config.topology = {2, 2};
  config.num_chips = 3;
  EXPECT_EQ(message_of(graph, config),
            "num_chips is 3, but topology [2, 2] has 4 chips; make them equal, or leave num_chips "
            "at 1");
  config.num_chips = 0;
  EXPECT_NE(message_of(graph, config).find("num_chips of wafer-scale chips is 0"),
            std::string::npos);
  config.num_chips = 1;
  config.inter_chip_latency = -1;
  EXPECT_NE(message_of(graph, config).find("inter_chip_latency of wafer-scale chips is -1; give "),
            std::string::npos);
  config.inter_chip_latency = 0;
  EXPECT_NE(message_of(graph, config, "cpu").find("no wafer-scale machine 'cpu'; there are wse"),
            std::string::npos);
  EXPECT_EQ(message_of(graph, config), "no InvalidArgumentError");
}

}  // namespace
}  // namespace pyflame_rt
