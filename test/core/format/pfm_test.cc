// SPDX-License-Identifier: Apache-2.0
#include "core/format/pfm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/ir/verify.h"

namespace pfrt {
namespace {

Progress nobody;  // listens to these

std::string save(const Graph& graph, const InfoList& info = {}) {
  std::string bytes;
  const Status status = save_pfm(
      graph, info,
      [&](const void* data, uint64_t size) {
        bytes.append(static_cast<const char*>(data), size);
        return Status();
      },
      nobody);
  EXPECT_TRUE(status.ok()) << status.message();
  return bytes;
}

// From memory aligned as a mapped file is.
Result<PfmModel> load(const std::string& bytes) {
  auto buffer = Buffer::allocate(bytes.size() + 1, false).take();
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  void* data = buffer->data();
  return load_pfm(data, bytes.size(), std::move(buffer), nobody);
}

Tensor strings(const std::vector<std::string>& texts) {
  Tensor t;
  t.dtype = PFRT_DTYPE_STRING;
  t.dims = {static_cast<int64_t>(texts.size())};
  t.buffer = Buffer::strings(texts.size()).take();
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_TRUE(t.buffer->set_string(i, texts[i]).ok());
  return t;
}

ValuePtr sparse() {
  auto value = std::make_shared<Value>();
  value->kind = PFRT_VALUE_SPARSE;
  value->tensor = Tensor::of_float({5, 6}).take();
  value->indices = Tensor::of_int64({1, 7}).take();
  value->dense_dims = {3, 4};
  return value;
}

// Every kind of thing a graph can hold.
std::shared_ptr<Graph> everything() {
  auto g = std::make_shared<Graph>("everything");
  g->doc = "a graph with one of each";
  g->opsets = {{"", 17}, {"com.microsoft", 1}};
  g->metadata = {{"author", "me"}, {"empty", ""}};
  const ValueId x = g->value("x");
  g->at(x).type = Type::tensor(PFRT_DTYPE_FLOAT32, {g->symbols->symbol("N"), 3, Dim()});
  g->inputs.push_back(x);
  const ValueId list = g->value("list");
  g->at(list).type = {PFRT_VALUE_SEQUENCE, PFRT_DTYPE_INT64, 0, false, {}};
  g->inputs.push_back(list);
  g->set_constant(g->value("words"), Value::of(strings({"one", "", std::string("t\0wo", 4)})));
  g->set_constant(g->value("sparse"), sparse());
  g->set_constant(g->value("weights"), Value::of(Tensor::of_float({1, 2, 3, 4}).take()));
  g->set_constant(g->value("packed"), Value::of(Tensor::allocate(PFRT_DTYPE_INT4, {3}).take()));
  g->set_constant(g->value("none"), Value::of(Tensor::allocate(PFRT_DTYPE_FLOAT32, {0, 4}).take()));

  auto body = Graph::subgraph_of(*g, "body");
  Node inner;
  inner.op = "Neg";
  inner.inputs = {body->value("x")};
  inner.outputs = {body->value("r")};
  EXPECT_TRUE(body->add_node(inner).ok());
  body->set_constant(body->value("k"), Value::of(Tensor::of_int64({9}).take()));
  body->outputs = {body->find("r")};

  Node node;
  node.name = "all";
  node.op = "Everything";
  node.domain = "com.microsoft";
  node.doc = "doc";
  node.inputs = {x, kNoId, g->find("weights")};
  node.outputs = {g->value("y"), kNoId};
  node.set_attr(Attribute::of_int("int", -5));
  node.set_attr(Attribute::of_float("float", 0.25f));
  node.set_attr(Attribute::of_string("string", std::string("a\0b", 3)));
  node.set_attr(Attribute::of_ints("ints", {1, INT64_MIN, INT64_MAX}));
  node.set_attr(Attribute::of_floats("floats", {1.5f, -0.0f}));
  node.set_attr(Attribute::of_ints("no_ints", {}));
  node.set_attr(Attribute::of_tensor("tensor", Tensor::of_int64({4, 5}).take()));
  Attribute a;
  a.name = "strings";
  a.type = PFRT_ATTR_STRINGS;
  a.strings = {"p", "", "q"};
  node.set_attr(a);
  a = {};
  a.name = "tensors";
  a.type = PFRT_ATTR_TENSORS;
  a.tensors = {Value::of(Tensor::of_float({1}).take()), Value::of(strings({"s"}))};
  node.set_attr(a);
  a = {};
  a.name = "sparse";
  a.type = PFRT_ATTR_SPARSE;
  a.tensor = sparse();
  node.set_attr(a);
  a = {};
  a.name = "graph";
  a.type = PFRT_ATTR_GRAPH;
  a.graph = body;
  node.set_attr(a);
  a = {};
  a.name = "graphs";
  a.type = PFRT_ATTR_GRAPHS;
  a.graphs = {Graph::subgraph_of(*g, "empty"), body->clone()};
  node.set_attr(a);
  a = {};
  a.name = "type";
  a.type = PFRT_ATTR_TYPE;
  a.s = "seq(tensor(float,[2,N,?]))";
  node.set_attr(a);
  EXPECT_TRUE(g->add_node(std::move(node)).ok());
  g->outputs = {g->find("y")};
  return g;
}

void expect_equal(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.dims, b.dims);
  ASSERT_EQ(a.bytes(), b.bytes());
  if (a.dtype == PFRT_DTYPE_STRING) {
    for (size_t i = 0; i < a.strings().size(); ++i)
      EXPECT_EQ(view(a.strings()[i]), view(b.strings()[i]));
  } else if (a.bytes()) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
  }
}

void expect_equal(const ValuePtr& a, const ValuePtr& b) {
  ASSERT_EQ(a == nullptr, b == nullptr);
  if (!a) return;
  ASSERT_EQ(a->kind, b->kind);
  expect_equal(a->tensor, b->tensor);
  EXPECT_EQ(a->dense_dims, b->dense_dims);
  if (a->kind == PFRT_VALUE_SPARSE) expect_equal(a->indices, b->indices);
}

void expect_equal(const Graph& a, const Graph& b);

void expect_equal(const Attribute& a, const Attribute& b) {
  SCOPED_TRACE(a.name);
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.type, b.type);
  EXPECT_EQ(a.i, b.i);
  EXPECT_EQ(a.f, b.f);
  EXPECT_EQ(a.s, b.s);
  EXPECT_EQ(a.ints, b.ints);
  EXPECT_EQ(a.floats, b.floats);
  EXPECT_EQ(a.strings, b.strings);
  expect_equal(a.tensor, b.tensor);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) expect_equal(a.tensors[i], b.tensors[i]);
  ASSERT_EQ(a.graph == nullptr, b.graph == nullptr);
  if (a.graph) expect_equal(*a.graph, *b.graph);
  ASSERT_EQ(a.graphs.size(), b.graphs.size());
  for (size_t i = 0; i < a.graphs.size(); ++i) expect_equal(*a.graphs[i], *b.graphs[i]);
}

void expect_equal(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.doc, b.doc);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(print(a), print(b));
  const auto ids = a.node_ids(), other = b.node_ids();
  ASSERT_EQ(ids.size(), other.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    const Node &n = *a.node(ids[i]), &m = *b.node(other[i]);
    EXPECT_EQ(n.name, m.name);
    EXPECT_EQ(n.domain, m.domain);
    EXPECT_EQ(n.doc, m.doc);
    EXPECT_EQ(n.outputs.size(), m.outputs.size());
    ASSERT_EQ(n.attrs.size(), m.attrs.size());
    for (size_t k = 0; k < n.attrs.size(); ++k) expect_equal(n.attrs[k], m.attrs[k]);
  }
  for (ValueId id : a.initializers()) {
    SCOPED_TRACE(a.at(id).name);
    const ValueId same = b.find(a.at(id).name);
    ASSERT_NE(same, kNoId);
    expect_equal(a.at(id).constant, b.at(same).constant);
  }
}

TEST(Pfm, everything_survives_the_round_trip) {
  const auto graph = everything();
  const InfoList info = {{"producer_name", "test"}, {"model_version", "7"}};
  const std::string bytes = save(*graph, info);
  EXPECT_TRUE(is_pfm(bytes.data(), bytes.size()));
  auto loaded = load(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->info, info);
  EXPECT_EQ(loaded->graph->opsets, graph->opsets);
  expect_equal(*graph, *loaded->graph);
  EXPECT_EQ(save(*loaded->graph, info), bytes) << "saving again gives the same bytes";
}

TEST(Pfm, initializers_are_views_aligned_to_64) {
  const std::string bytes = save(*everything());
  auto buffer = Buffer::allocate(bytes.size(), false).take();
  std::memcpy(buffer->data(), bytes.data(), bytes.size());
  const auto* begin = static_cast<const char*>(buffer->data());
  auto loaded = load_pfm(begin, bytes.size(), buffer, nobody);
  ASSERT_TRUE(loaded.ok());
  const Tensor* weights = loaded->graph->constant(loaded->graph->find("weights"));
  ASSERT_NE(weights, nullptr);
  const auto* at = weights->as<const char>();
  EXPECT_GE(at, begin);
  EXPECT_LT(at, begin + bytes.size());
  EXPECT_EQ((at - begin) % 64, 0);
  // The bytes live as long as the initializer.
  buffer.reset();
  const ValuePtr kept = loaded->graph->at(loaded->graph->find("weights")).constant;
  loaded->graph.reset();
  EXPECT_EQ(kept->tensor.as<float>()[3], 4.0f);
}

TEST(Pfm, loads_from_memory_of_any_alignment) {
  const std::string bytes = save(*everything());
  for (size_t shift = 0; shift < 9; ++shift) {
    auto buffer = Buffer::allocate(bytes.size() + shift, false).take();
    char* data = static_cast<char*>(buffer->data()) + shift;
    std::memcpy(data, bytes.data(), bytes.size());
    auto loaded = load_pfm(data, bytes.size(), buffer, nobody);
    ASSERT_TRUE(loaded.ok()) << shift << ": " << loaded.status().message();
    const Tensor* weights = loaded->graph->constant(loaded->graph->find("weights"));
    ASSERT_NE(weights, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weights->data()) % 4, 0u);
    EXPECT_EQ(weights->as<float>()[2], 3.0f);
  }
}

TEST(Pfm, changed_payload_is_data_loss_naming_the_initializer) {
  const std::string good = save(*everything());
  const float weights[] = {1, 2, 3, 4};
  const size_t at = good.find(std::string(reinterpret_cast<const char*>(weights), sizeof weights));
  ASSERT_NE(at, std::string::npos);
  for (size_t i = 0; i < sizeof weights; ++i) {
    std::string bytes = good;
    bytes[at + i] = static_cast<char>(bytes[at + i] ^ 0x10);
    const auto loaded = load(bytes);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.status().code(), Code::kDATA_LOSS);
    EXPECT_NE(loaded.status().message().find("weights"), std::string::npos)
        << loaded.status().message();
  }
}

TEST(Pfm, newer_version_is_refused_by_number) {
  std::string bytes = save(*everything());
  bytes[4] = 77;
  const auto loaded = load(bytes);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), Code::kUNSUPPORTED_FORMAT);
  EXPECT_NE(loaded.status().message().find("77"), std::string::npos) << loaded.status().message();
}

TEST(Pfm, other_bytes_are_no_model) {
  for (const std::string& bytes :
       {std::string(), std::string("PFM"), std::string("PFM\0", 4), std::string(100, 'x')}) {
    const auto loaded = load(bytes);
    EXPECT_FALSE(loaded.ok());
  }
  EXPECT_FALSE(is_pfm("PFM", 3));
  EXPECT_FALSE(is_pfm(nullptr, 0));
}

TEST(Pfm, failing_write_ends_the_save) {
  for (int after = 0; after < 4; ++after) {
    int calls = 0;
    const Status status = save_pfm(
        *everything(), {},
        [&](const void*, uint64_t) {
          return calls++ == after ? error(Code::kIO, "the disk is full") : Status();
        },
        nobody);
    EXPECT_EQ(status.code(), Code::kIO);
    EXPECT_EQ(calls, after + 1);
  }
}

void expect_answered(const std::string& bytes) {
  const auto loaded = load(bytes);
  if (loaded.ok()) {
    EXPECT_FALSE(print(*loaded.value().graph).empty());
    (void)verify(*loaded.value().graph);
    return;
  }
  const Code code = loaded.status().code();
  EXPECT_TRUE(code == Code::kINVALID_MODEL || code == Code::kUNSUPPORTED_FORMAT ||
              code == Code::kDATA_LOSS || code == Code::kUNSUPPORTED || code == Code::kVALIDATION)
      << code_text(code) << ": " << loaded.status().message();
}

TEST(PfmDamage, truncated_at_every_length) {
  const std::string good = save(*everything());
  for (size_t size = 0; size < good.size(); ++size) {
    SCOPED_TRACE(size);
    expect_answered(good.substr(0, size));
    EXPECT_FALSE(load(good.substr(0, size)).ok());
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PfmDamage, flipped_bytes) {
  const std::string good = save(*everything());
  std::minstd_rand random(2000);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = good;
    const size_t at = random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 + random() % 255));
    SCOPED_TRACE("flip " + std::to_string(i) + " at " + std::to_string(at));
    expect_answered(bytes);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace pfrt
