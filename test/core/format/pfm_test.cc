// SPDX-License-Identifier: Apache-2.0
#include "core/format/pfm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/base/digest.h"
#include "core/format/pfm_checksum.h"
#include "core/format/pfm_layout.h"
#include "core/ir/verify.h"
#include "pfm_generated.h"

namespace pfrt {
namespace {

Progress nobody;  // does not listen

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

// Loads from memory that is aligned as a mapped file is.
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

// A graph that holds every kind of thing that a graph can hold.
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

// The graph is read from the bytes that were checked, though somebody writes to the file meanwhile.
TEST(Pfm, bytes_that_are_overwritten_while_they_are_read) {
  std::string bytes = save(*everything());
  struct Head {
    char* begin;
    uint32_t size;
  } head{bytes.data() + sizeof(pfm::Header), 0};
  std::memcpy(&head.size, head.begin, sizeof head.size);
  head.size += sizeof head.size;
  const auto overwrite = [](void* user, double, pfrt_string) {
    const auto* const at = static_cast<const Head*>(user);
    std::memset(at->begin, 0xEE, at->size);
  };
  Progress progress(nullptr, overwrite, &head);
  const auto loaded = load_pfm(bytes.data(), bytes.size(), nullptr, progress);
  EXPECT_EQ(bytes[sizeof(pfm::Header)], '\xEE') << "before the nodes are read";
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  expect_equal(*everything(), *loaded->graph);
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

// A file of y = x + w with w = [1.5, -2], written by the writer of version 1.
constexpr std::string_view kVersion1 =
    "50464d0001000000bc020000100000000000000008000c0004000800080000002400000004000000000000000000"
    "16002800040008000c001000140018001c002000240016000000780000006c000000580000004400000030000000"
    "24000000180000000c0000000400000000000000010000005c000000010000008000000001000000380100000300"
    "0000f00100008c010000d80000000100000004000000010000007900000001000000040000000100000078000000"
    "00000000000000000100000067000000080014000400080008000000100000001c00000000000000000000000000"
    "0000000012002000040008000c001000140018001c001200000064000000580000004c0000004000000020000000"
    "0c000000040000000000000001000000040000000100000079000000020000001000000004000000010000007700"
    "00000100000078000000000000000000000000000000000000000300000041646400000000000000000000ffffff"
    "000000011c00000001000000010000000000000004000000010000000c000000010000007900000050ffffff1000"
    "00000200000000000000000000000000000000000a001200040008000c000a000000540000000100000014000000"
    "00000e002800040008000c0014001c000e0000000100000020000000000300000000000008000000000000007ef7"
    "d657031d522800000000010000000200000000000000000000000100000077000000b0ffffff000000011c000000"
    "01000000010000000000000004000000010000001400000001000000770000000800140008000400080000001000"
    "0000020000000000000000000000000000000000000010001c0008000c0010001400070018001000000000000001"
    "1c000000010000000100000000000000040000000100000014000000010000007800000008001000080004000800"
    "00000c00000002000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000000000000000000c03f000000c0";

std::string of_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return bytes;
}

TEST(Pfm, files_of_version_1_are_read) {
  const auto loaded = load(of_hex(kVersion1));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded.value().version, 1u);
  const Graph& graph = *loaded.value().graph;
  const Tensor* w = graph.constant(graph.find("w"));
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->as<float>()[0], 1.5f);
  EXPECT_EQ(w->as<float>()[1], -2.0f);
  ASSERT_EQ(graph.node_count(), 1u);
  auto again = load(save(graph));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->version, 2u);
  expect_equal(graph, *again->graph);
}

// The version in the file is changed to 1, and checksums of version 1 do not cover it.
TEST(Pfm, files_of_version_2_are_none_of_version_1) {
  std::string bytes = save(*everything());
  bytes[4] = 1;
  EXPECT_FALSE(load(bytes).ok());
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
    (void)save(*loaded.value().graph);
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

TEST(PfmDamage, every_changed_byte_is_noticed) {
  const std::string good = save(*everything());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {0x01, 0x03, 0x80, 0xff}) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ flip);
      const auto loaded = load(bytes);
      ASSERT_FALSE(loaded.ok()) << "byte " << at << " of " << good.size() << " ^ " << flip;
      const Code code = loaded.status().code();
      EXPECT_TRUE(code == Code::kDATA_LOSS || code == Code::kINVALID_MODEL ||
                  code == Code::kUNSUPPORTED_FORMAT)
          << code_text(code) << ": " << loaded.status().message();
    }
  }
  for (const size_t more : {size_t{1}, size_t{64}, size_t{1000}})
    EXPECT_FALSE(load(good + std::string(more, '\0')).ok()) << more;
}

// Gives changed bytes the checksum that they should have, so that only the parser can refuse them.
std::string sealed(std::string bytes) {
  pfm::Header header{};
  uint32_t size = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(&size, bytes.data() + sizeof header, sizeof size);
  header.checksum = pfm::checksum_of(header, bytes.data() + sizeof header,
                                     std::min<uint64_t>(size + 4, bytes.size() - sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST(PfmDamage, flipped_bytes_with_the_right_checksum) {
  const std::string good = save(*everything());
  std::minstd_rand random(2000);
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = good;
    const size_t at = sizeof(pfm::Header) + 4 + random() % (bytes.size() - sizeof(pfm::Header) - 4);
    bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 + random() % 255));
    bytes = sealed(std::move(bytes));
    SCOPED_TRACE("flip " + std::to_string(i) + " at " + std::to_string(at));
    expect_answered(bytes);
    if (testing::Test::HasFailure()) return;
  }
}

// Returns a file without constants, with |graph| of |builder|.
std::string file_of(flatbuffers::FlatBufferBuilder& builder,
                    flatbuffers::Offset<pfm::Graph> graph) {
  builder.FinishSizePrefixed(pfm::CreateModel(builder, graph));
  pfm::Header header{};
  std::memcpy(header.magic, pfm::kMagic, sizeof header.magic);
  header.version = pfm::kVersion;
  header.file_bytes = sizeof header + builder.GetSize();
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes.append(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  return sealed(std::move(bytes));
}

// The file names one attribute of 64 KB 16,384 times: 1 GB from 128 KB.
TEST(PfmDamage, parts_that_are_named_over_and_over) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<int64_t> numbers(8 << 10);
  const auto list = builder.CreateVector(numbers);
  const auto attr =
      pfm::CreateAttribute(builder, builder.CreateString("a"), PFRT_ATTR_INTS, 0, 0, 0, list);
  const auto attrs = builder.CreateVector(std::vector(16 << 10, attr));
  const auto node = pfm::CreateNode(builder, builder.CreateString("n"), builder.CreateString("Op"),
                                    0, 0, 0, 0, attrs);
  const auto nodes = builder.CreateVector(std::vector(1, node));
  const auto graph = pfm::CreateGraph(builder, 0, 0, 0, 0, 0, 0, nodes);
  const auto loaded = load(file_of(builder, graph));
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("over and over"), std::string::npos)
      << loaded.status().message();
}

// Each of 40 bodies occurs twice in the body around it.
TEST(PfmDamage, bodies_that_are_named_twice_at_every_depth) {
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString("x");
  flatbuffers::Offset<pfm::Graph> graph = pfm::CreateGraph(builder);
  for (int depth = 0; depth < 40; ++depth) {
    const auto bodies = builder.CreateVector(std::vector(2, graph));
    const auto attr =
        pfm::CreateAttribute(builder, text, PFRT_ATTR_GRAPHS, 0, 0, 0, 0, 0, 0, 0, bodies);
    const auto attrs = builder.CreateVector(std::vector(1, attr));
    const auto node = pfm::CreateNode(builder, text, text, 0, 0, 0, 0, attrs);
    const auto nodes = builder.CreateVector(std::vector(1, node));
    graph = pfm::CreateGraph(builder, 0, 0, 0, 0, 0, 0, nodes);
  }
  const auto loaded = load(file_of(builder, graph));
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), Code::kINVALID_MODEL) << loaded.status().message();
}

TEST(PfmDamage, constants_that_share_bytes) {
  flatbuffers::FlatBufferBuilder builder;
  const auto dims = builder.CreateVector(std::vector<int64_t>{4});
  std::vector<flatbuffers::Offset<pfm::Constant>> constants;
  const float payload[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const auto& [name, offset] : {std::pair{"a", 1024}, std::pair{"b", 1032}}) {
    const uint64_t sum = checksum(payload + (offset - 1024) / 4, 16);
    const auto tensor = pfm::CreateTensor(builder, PFRT_DTYPE_FLOAT32, dims,
                                          static_cast<uint64_t>(offset), 16, sum);
    constants.push_back(
        pfm::CreateConstant(builder, builder.CreateString(name), PFRT_VALUE_TENSOR, tensor));
  }
  const auto list = builder.CreateVector(constants);
  std::string bytes = file_of(builder, pfm::CreateGraph(builder, 0, 0, 0, 0, 0, list));
  ASSERT_LT(bytes.size(), 1024u);
  bytes.resize(1024);
  bytes.append(reinterpret_cast<const char*>(payload), sizeof payload);
  pfm::Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  header.file_bytes = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  const auto loaded = load(sealed(bytes));
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.status().message().find("something else in the file"), std::string::npos)
      << loaded.status().message();
}

}  // namespace
}  // namespace pfrt
