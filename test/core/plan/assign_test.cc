// SPDX-License-Identifier: Apache-2.0
#include "core/plan/assign.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace pfrt {
namespace {

int device;  // all handles point to it

std::shared_ptr<Provider> provider(const std::string& name, bool simulated = false) {
  static const pfrt_provider_table table = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.open = [](pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
                pfrt_provider** out) -> pfrt_code {
      *out = reinterpret_cast<pfrt_provider*>(&device);
      return PFRT_CODE_OK;
    };
    t.close = [](pfrt_provider*) {};
    return t;
  }();
  ProviderSource source;
  source.name = name;
  source.table = &table;
  source.features = simulated ? PFRT_PROVIDER_SIMULATED : 0;
  auto opened = Provider::open(source, nullptr);
  EXPECT_TRUE(opened.ok());
  return opened.take();
}

// A graph whose nodes are given as lists of the nodes that they read from.
struct Plan {
  explicit Plan(const std::vector<std::vector<uint32_t>>& reads) {
    for (uint32_t i = 0; i < reads.size(); ++i) {
      Node node;
      node.op = "Sum";
      for (uint32_t from : reads[i]) node.inputs.push_back(graph.value(message("v", from)));
      node.outputs.push_back(graph.value(message("v", i)));
      auto added = graph.add_node(std::move(node));
      EXPECT_TRUE(added.ok());
      order.push_back(added.take());
    }
    host.assign(reads.size(), false);
    splits.assign(reads.size(), false);
  }
  // Adds a provider with its estimate for each node; negative = refused.
  void add(const std::vector<double>& ns, bool simulated = false) {
    const std::string name = message("P", candidates.size());
    candidates.push_back({name, provider(name, simulated), {}});
    claims.emplace_back();
    for (double one : ns) claims.back().nodes.push_back({one >= 0, one, 0, "refused"});
  }
  Assignment run(AssignBy by = AssignBy::kCost) {
    Assignment out = assign(graph, order, candidates, claims, host, splits, by);
    std::vector<size_t> place(order.size(), SIZE_MAX);
    for (size_t i = 0; i < out.sequence.size(); ++i) place[out.sequence[i]] = i;
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_NE(place[i], SIZE_MAX) << "node " << i << " is not listed";
      for (ValueId v : graph.node(order[i])->inputs) {
        const auto from = std::find(order.begin(), order.end(), graph.at(v).producer);
        if (from == order.end()) continue;
        EXPECT_LT(place[static_cast<size_t>(from - order.begin())], place[i]);
      }
    }
    return out;
  }

  Graph graph{"g"};
  std::vector<NodeId> order;
  std::vector<Candidate> candidates;
  std::vector<Claims> claims;
  std::vector<bool> host, splits;
};

using Owners = std::vector<int>;
using Sequence = std::vector<uint32_t>;

TEST(Assign, cheapest_provider_has_the_node_and_the_first_of_equals) {
  Plan s({{}, {0}, {1}, {2}});
  s.add({5, 7, -1, -1});
  s.add({3, 7, 2, -1});
  const Assignment out = s.run();
  EXPECT_EQ(out.owner, (Owners{1, 0, 1, kNobody}));
  EXPECT_EQ(out.nodes[3].refused, "P0: refused; P1: refused");
}

TEST(Assign, order_decides_between_costs_that_a_measurement_cannot_tell_apart) {
  Plan s({{}, {0}, {1}});
  s.add({100, 100, 100});
  s.add({91, 89, 100});
  EXPECT_EQ(s.run().owner, (Owners{0, 1, 0}));
}

TEST(Assign, by_priority_the_first_that_accepts_has_the_node) {
  Plan s({{}, {0}, {1}});
  s.add({100, -1, 100});
  s.add({1, 100, 1});
  const Assignment out = s.run(AssignBy::kPriority);
  EXPECT_EQ(out.owner, (Owners{0, 1, 0}));
  EXPECT_EQ(out.nodes[0].reason, "the first of the list that accepts it");
}

// Assigns a chain of which the second provider takes every other node, with values of 4 MiB.
Assignment by_turns(double saved, TransferCost transfer) {
  Plan s({{}, {0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}});
  for (ValueId v = 0; v < s.graph.value_count(); ++v)
    s.graph.at(v).type = Type::tensor(PFRT_DTYPE_FLOAT32, Shape{Dim(1 << 20)});
  std::vector<double> second(10, -1);
  for (size_t i = 1; i < second.size(); i += 2) second[i] = 1000 - saved;
  s.add(std::vector<double>(10, 1000));
  s.add(second);
  s.claims[1].transfer = transfer;
  return s.run();
}

TEST(Assign, nodes_stay_together_where_crossing_costs_more_than_is_saved) {
  const Owners together(10, 0), apart{0, 1, 0, 1, 0, 1, 0, 1, 0, 1};
  EXPECT_EQ(by_turns(900, {}).owner, apart);
  // Values cross there and back, except the last, which nobody reads.
  EXPECT_EQ(by_turns(900, {400, 0}).owner, apart);
  const Assignment latency = by_turns(900, {1000, 0});
  EXPECT_EQ(latency.owner, together);
  EXPECT_NE(latency.nodes[1].reason.find("on their way"), std::string::npos);
  EXPECT_EQ(by_turns(900, {0, 1e-3}).owner, together);
  EXPECT_EQ(by_turns(900, {0, 1e-5}).owner, apart);
}

TEST(Assign, a_run_of_nodes_that_pays_its_way_moves_as_one) {
  Plan s({{}, {0}, {1}, {2}});
  s.add({100, 1000, 1000, 100});
  s.add({-1, 10, 10, -1});
  s.claims[1].transfer = {500, 0};
  EXPECT_EQ(s.run().owner, (Owners{0, 1, 1, 0}));
  s.claims[1].transfer = {1100, 0};
  EXPECT_EQ(s.run().owner, (Owners{0, 0, 0, 0}));
}

TEST(Assign, simulated_costs_are_not_compared) {
  Plan s({{}, {0}});
  s.add({9000, -1}, true);
  s.add({1, 1});
  EXPECT_EQ(s.run().owner, (Owners{0, 1}));
  Plan later({{}, {0}});
  later.add({1, -1});
  later.add({0, 9000}, true);
  EXPECT_EQ(later.run().owner, (Owners{0, 1}));
}

TEST(Assign, group_goes_as_a_whole_or_not_at_all) {
  for (const double saved : {3.0, 1.0}) {
    Plan s({{}, {0}, {1}});
    s.add({2, 2, 2});
    s.add({1, 4, 3});  // alone it would have node 0
    s.claims[1].groups.push_back({{0, 1, 2}, saved});
    EXPECT_EQ(s.run().owner, saved > 2 ? (Owners{1, 1, 1}) : (Owners{0, 0, 0})) << saved;
  }
}

TEST(Assign, group_with_a_refused_host_or_splitting_node_is_not_taken) {
  for (const int kind : {0, 1, 2}) {
    Plan s({{}, {0}, {1}});
    s.add({2, 2, 2});
    s.add({1, kind == 0 ? -1.0 : 1.0, 1});
    s.host[1] = kind == 1;
    s.splits[1] = kind == 2;
    s.claims[1].groups.push_back({{0, 1, 2}, 100});
    EXPECT_EQ(s.run().owner, (Owners{0, kind == 1 ? kHost : 0, 0})) << kind;
  }
}

TEST(Assign, group_that_a_path_leaves_and_enters_again_is_not_taken) {
  Plan s({{}, {0}, {0, 1}});
  s.add({2, 2, 2});
  s.add({1, -1, 1});
  s.claims[1].groups.push_back({{0, 2}, 100});
  EXPECT_EQ(s.run().owner, (Owners{0, 0, 0}));
}

TEST(Assign, groups_that_wait_for_each_other_are_dissolved) {
  // 0 -> 3 and 1 -> 2: {0, 2} and {1, 3} are convex, but neither can come first.
  Plan s({{}, {}, {1}, {0}});
  s.add({2, 2, 2, 2});
  s.add({1, 1, 1, 1});
  s.claims[1].groups.push_back({{0, 2}, 100});
  s.claims[1].groups.push_back({{1, 3}, 50});
  EXPECT_EQ(s.run().owner, (Owners{0, 0, 0, 0}));
}

TEST(Assign, node_that_only_a_group_would_run_takes_the_group_whatever_it_costs) {
  Plan s({{}, {0}});
  s.add({1, -1});
  s.add({50, 50});
  s.claims[1].groups.push_back({{0, 1}, 0});
  EXPECT_EQ(s.run().owner, (Owners{1, 1}));
}

TEST(Assign, overlapping_groups_yield_to_the_one_that_saves_more) {
  Plan s({{}, {0}, {1}});
  s.add({5, 5, 5});
  s.add({4, 4, 4});
  s.claims[1].groups.push_back({{0, 1}, 1});
  s.claims[1].groups.push_back({{1, 2}, 2});
  EXPECT_EQ(s.run().owner, (Owners{0, 1, 1}));
}

TEST(Assign, order_keeps_owners_and_groups_together) {
  // Two chains stand side by side, with a provider for each.
  Plan s({{}, {}, {0}, {1}, {2}, {3}});
  s.add({1, -1, 1, -1, 1, -1});
  s.add({-1, 1, -1, 1, -1, 1});
  EXPECT_EQ(s.run().sequence, (Sequence{0, 2, 4, 1, 3, 5}));
  Plan one({{}, {}, {0}, {1}, {2}, {3}});
  one.add({1, 1, 1, 1, 1, 1});
  EXPECT_EQ(one.run().sequence, (Sequence{0, 1, 2, 3, 4, 5})) << "one owner: nothing moves";
  one.claims[0].groups.push_back({{1, 5, 3}, 1});
  std::sort(one.claims[0].groups[0].nodes.begin(), one.claims[0].groups[0].nodes.end());
  EXPECT_EQ(one.run().sequence, (Sequence{0, 1, 3, 5, 2, 4}));
}

TEST(Assign, random_graphs_are_listed_whole_and_in_order) {
  const uint32_t seed = 20;
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
    const uint32_t count = 1 + draw(24);
    std::vector<std::vector<uint32_t>> reads(count);
    for (uint32_t i = 1; i < count; ++i)
      for (uint32_t k = draw(3); k > 0; --k) reads[i].push_back(draw(i));
    Plan s(reads);
    for (uint32_t p = 0; p < 1 + draw(3); ++p) {
      std::vector<double> ns;
      for (uint32_t i = 0; i < count; ++i) ns.push_back(draw(5) == 0 ? -1.0 : draw(9));
      s.add(ns);
      for (uint32_t g = draw(4); g > 0; --g) {
        ClaimGroup group{{}, static_cast<double>(draw(20))};
        for (uint32_t i = 0; i < count; ++i)
          if (draw(4) == 0) group.nodes.push_back(i);
        if (!group.nodes.empty()) s.claims.back().groups.push_back(group);
      }
    }
    const Assignment out = s.run();
    for (uint32_t i = 0; i < count; ++i) {
      const int owner = out.owner[i];
      if (owner < 0) continue;
      EXPECT_TRUE(s.claims[static_cast<size_t>(owner)].nodes[i].accepted)
          << "seed " << seed << ", round " << round << ", node " << i;
    }
  }
}

}  // namespace
}  // namespace pfrt
