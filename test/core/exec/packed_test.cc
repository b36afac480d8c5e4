// SPDX-License-Identifier: Apache-2.0
#include "core/exec/packed.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "core/base/digest.h"
#include "core/base/os/file.h"
#include "core/exec/compiled_graph.h"
#include "test/core/one_checksum.h"
#include "test/plugins/compile_each.h"

namespace pfrt {
namespace {

// Counts of a provider of Mul by a constant of one number, which it packs as the number's double.
// It behaves like a small plug-in, and has no other state.
struct Doubler {
  std::atomic<int> packed{0};
  uint32_t alignment = 0;
  pfrt_code answer = PFRT_CODE_OK;
};
Doubler doubler;

struct Compiled {
  uint32_t source;
  pfrt_packed_constant constant;
  pfrt_buffer buffers[3];
  uint32_t reads[2] = {0, 2};
  uint32_t writes[1] = {1};
  pfrt_step step{};
};

pfrt_code compile_one(pfrt_provider*, const pfrt_region* region, const pfrt_sink*,
                      pfrt_executable** out) {
  auto* made = new Compiled{};
  made->source = region->snapshot->nodes[region->nodes[0]].inputs[1];
  made->constant.sources = &made->source;
  made->constant.source_count = 1;
  made->constant.alignment = doubler.alignment;
  made->constant.recipe = to_c("doubled");
  made->constant.bytes = sizeof(float);
  made->constant.pack = [](void*, const void* const* sources, void* bytes,
                           const pfrt_sink*) -> pfrt_code {
    ++doubler.packed;
    const float twice = 2 * *static_cast<const float*>(sources[0]);
    std::memcpy(bytes, &twice, sizeof twice);
    return doubler.answer;
  };
  *out = reinterpret_cast<pfrt_executable*>(made);
  return PFRT_CODE_OK;
}

void release_executable(pfrt_executable* e) { delete reinterpret_cast<Compiled*>(e); }

pfrt_code specialise(pfrt_executable* executable, const pfrt_shapes*, const pfrt_sink*,
                     pfrt_program* program) {
  auto& made = *reinterpret_cast<Compiled*>(executable);
  made.buffers[0] = {PFRT_BUFFER_IN, 0, sizeof(float), 0, 0, PFRT_MEMORY_HOST, 0, 0};
  made.buffers[1] = {PFRT_BUFFER_OUT, 0, sizeof(float), 0, 0, PFRT_MEMORY_HOST, 0, 0};
  made.buffers[2] = {PFRT_BUFFER_CONST, 0, sizeof(float), 0, 0, PFRT_MEMORY_HOST, 0, 0};
  made.step.run = [](void*, const pfrt_step_context* context) -> pfrt_code {
    const auto at = [&](int i) { return static_cast<float*>(context->buffers[i]); };
    *at(1) = *at(0) * *at(2);
    return PFRT_CODE_OK;
  };
  made.step.reads = made.reads;
  made.step.read_count = 2;
  made.step.writes = made.writes;
  made.step.write_count = 1;
  made.step.kernel = to_c("doubled_mul");
  program->buffer_size = sizeof(pfrt_buffer);
  program->step_size = sizeof(pfrt_step);
  program->buffer_count = 3;
  program->step_count = 1;
  program->buffers = made.buffers;
  program->steps = &made.step;
  return PFRT_CODE_OK;
}

std::shared_ptr<Provider> open_doubler() {
  static const pfrt_provider_table table = [] {
    pfrt_provider_table t{};
    t.struct_size = sizeof t;
    t.abi = PFRT_ABI_VERSION;
    t.open = [](pfrt_string, const pfrt_key_value*, size_t, const pfrt_sink*,
                pfrt_provider** out) -> pfrt_code {
      *out = reinterpret_cast<pfrt_provider*>(&doubler);
      return PFRT_CODE_OK;
    };
    t.close = [](pfrt_provider*) {};
    t.claim = [](pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                 const pfrt_sink*) -> pfrt_code {
      for (uint32_t n = 0; n < snapshot->node_count; ++n) claims->accept(claims, n, 1, 1);
      return PFRT_CODE_OK;
    };
    t.compile = pfrt_test::compile_each<compile_one, release_executable>;
    t.release_executable = release_executable;
    t.specialise = specialise;
    t.release_program = [](pfrt_executable*, pfrt_program*) {};
    t.constants = [](pfrt_executable* e, const pfrt_sink*, const pfrt_packed_constant** out,
                     size_t* size, size_t* count) -> pfrt_code {
      *size = sizeof(pfrt_packed_constant);
      *out = &reinterpret_cast<Compiled*>(e)->constant;
      *count = 1;
      return PFRT_CODE_OK;
    };
    return t;
  }();
  ProviderSource source;
  source.name = "Doubler";
  source.table = &table;
  source.features = PFRT_PROVIDER_CONSTANTS;
  auto opened = Provider::open(source, nullptr);
  EXPECT_TRUE(opened.ok());
  return opened.take();
}

// A graph of y = x * w with the constant |w|.
std::shared_ptr<const Graph> product_with(float w) {
  auto g = std::make_shared<Graph>("product");
  g->inputs.push_back(g->value("x"));
  g->at(g->find("x")).type = Type::tensor(PFRT_DTYPE_FLOAT32, Shape{Dim(1)});
  auto tensor = Tensor::of_float({w});
  EXPECT_TRUE(tensor.ok());
  g->at(g->value("w")).constant = Value::of(tensor.take());
  g->at(g->find("w")).type = Type::tensor(PFRT_DTYPE_FLOAT32, Shape{Dim(1)});
  Node node;
  node.op = "Mul";
  node.inputs = {g->find("x"), g->find("w")};
  node.outputs = {g->value("y")};
  EXPECT_TRUE(g->add_node(std::move(node)).ok());
  g->at(g->find("y")).type = Type::tensor(PFRT_DTYPE_FLOAT32, Shape{Dim(1)});
  g->outputs.push_back(g->find("y"));
  return g;
}

class Packed : public testing::Test {
 protected:
  void SetUp() override {
    doubler.packed = 0;
    doubler.alignment = 0;
    doubler.answer = PFRT_CODE_OK;
    services_.candidates.push_back({"Doubler", open_doubler(), {}});
    services_.packed = &store_;
  }
  Result<std::unique_ptr<CompiledGraph>> compile_graph(const std::shared_ptr<const Graph>& graph) {
    return CompiledGraph::create(graph, services_, options_);
  }
  static float run(CompiledGraph& graph, float x) {
    auto tensor = Tensor::of_float({x});
    std::vector<ValuePtr> outputs;
    const Status status = graph.run({Value::of(tensor.take())}, {}, RunControl{}, outputs);
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok() ? *outputs[0]->tensor.as<float>() : 0;
  }
  PackedStore store_;
  CompileServices services_;
  CompileOptions options_;
};

TEST_F(Packed, constants_are_packed_once_for_all_that_share_them) {
  const auto graph = product_with(3);
  auto one = compile_graph(graph), two = compile_graph(graph);
  ASSERT_TRUE(one.ok() && two.ok()) << one.status().message();
  EXPECT_EQ(doubler.packed, 1);
  EXPECT_EQ(run(**one, 5), 30);
  EXPECT_EQ(run(**two, 7), 42);
  auto other = compile_graph(product_with(4));
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(doubler.packed, 2) << "other contents";
  EXPECT_EQ(run(**other, 5), 40);
}

TEST_F(Packed, constants_are_known_by_what_they_hold) {
  auto one = compile_graph(product_with(3)), two = compile_graph(product_with(3));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(doubler.packed, 1) << "two copies of one model";
  EXPECT_EQ(run(**one, 5), 30);
  EXPECT_EQ(run(**two, 7), 42);
}

// A constant in memory that held another one before does not get the other's packed form.
TEST(Contents, are_read_anew_when_another_buffer_is_at_an_address) {
  Contents contents;
  float bytes[] = {3};
  const auto key = [&] {
    Tensor tensor;
    tensor.dtype = PFRT_DTYPE_FLOAT32;
    tensor.dims = {1};
    auto buffer = Buffer::wrap(bytes, sizeof bytes, {});
    EXPECT_TRUE(buffer.ok());
    tensor.buffer = buffer.take();
    return contents.key_of(tensor);
  };
  auto kept = Tensor::of_float({3});
  ASSERT_TRUE(kept.ok());
  const std::string three = contents.key_of(*kept);
  EXPECT_EQ(key(), three);
  bytes[0] = 4;
  EXPECT_NE(key(), three);
}

TEST(Contents, of_other_types_and_dimensions_are_others) {
  Contents contents;
  auto one = Tensor::of_float({1, 2});
  ASSERT_TRUE(one.ok());
  Tensor column = *one, bits = *one;
  column.dims = {2, 1};
  bits.dtype = PFRT_DTYPE_INT32;
  EXPECT_NE(contents.key_of(*one), contents.key_of(column));
  EXPECT_NE(contents.key_of(*one), contents.key_of(bits));
  Tensor second = *one;
  second.dims = {1};
  second.offset = 4;
  EXPECT_NE(contents.key_of(*one), contents.key_of(second));
}

Tensor bytes_of(const std::string& text) {
  auto tensor = Tensor::copy_of(PFRT_DTYPE_UINT8, {static_cast<int64_t>(text.size())}, text.data());
  EXPECT_TRUE(tensor.ok());
  return tensor.take();
}

// The maker of a model can give its constants the checksum of another model's.
TEST(Contents, of_one_checksum_are_compared) {
  const auto [one, other] = pfrt_test::of_one_checksum(4096);
  ASSERT_NE(one, other);
  ASSERT_EQ(checksum(one.data(), one.size()), checksum(other.data(), other.size()));
  Contents contents;
  const Tensor a = bytes_of(one), b = bytes_of(other), copy = bytes_of(one);
  EXPECT_NE(contents.key_of(a), contents.key_of(b));
  EXPECT_EQ(contents.key_of(a), contents.key_of(copy));
}

// The contents of a buffer that is gone cannot be compared, so its key does not come back.
TEST(Contents, of_a_buffer_that_is_gone_are_new) {
  Contents contents;
  const std::string former = contents.key_of(bytes_of("same bytes"));
  EXPECT_NE(contents.key_of(bytes_of("same bytes")), former);
  auto strings = Tensor::allocate(PFRT_DTYPE_STRING, {1});
  ASSERT_TRUE(strings.ok());
  const std::string of_strings = contents.key_of(*strings);
  EXPECT_EQ(contents.key_of(*strings), of_strings);
  for (int i = 0; i < 100; ++i) {  // some get the same address
    strings = Tensor();
    strings = Tensor::allocate(PFRT_DTYPE_STRING, {1});
    ASSERT_TRUE(strings.ok());
    EXPECT_NE(contents.key_of(*strings), of_strings);
  }
}

// A file that is loaded twice has one set of constants, and is not read a third time for that.
TEST(Contents, of_one_file_are_alike) {
  char path[] = "/tmp/pfrt_contents_XXXXXX";
  const int fd = ::mkstemp(path);
  ASSERT_GE(fd, 0);
  const std::string text(8192, 'y');
  ASSERT_EQ(::write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  Contents contents;
  const auto mapped = [&] {
    auto file = os::MappedFile::open(path, true);
    EXPECT_TRUE(file.ok());
    Tensor tensor;
    tensor.dtype = PFRT_DTYPE_UINT8;
    tensor.dims = {4096};
    tensor.offset = 1024;
    auto* const data = const_cast<void*>(file.value()->data());
    auto buffer = Buffer::wrap(data, text.size(), [keep = file.value()] {});
    EXPECT_TRUE(buffer.ok());
    tensor.buffer = buffer.take();
    return tensor;
  };
  const Tensor one = mapped(), two = mapped();
  EXPECT_EQ(contents.key_of(one), contents.key_of(two));
  // A file that was written to shares its constants with nobody.
  ASSERT_EQ(::pwrite(fd, "z", 1, 8000), 1);
  const timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::futimens(fd, long_ago), 0);
  const Tensor three = mapped();
  EXPECT_NE(contents.key_of(one), contents.key_of(three));
  ::close(fd);
  ::unlink(path);
}

TEST_F(Packed, unused_constants_go_and_are_packed_again) {
  const auto graph = product_with(3);
  for (int round = 1; round <= 2; ++round) {
    auto compiled = compile_graph(graph);
    ASSERT_TRUE(compiled.ok());
    EXPECT_EQ(doubler.packed, round);
    EXPECT_EQ(run(**compiled, 1), 6);
  }
}

TEST_F(Packed, threads_that_need_one_constant_pack_it_once) {
  const auto graph = product_with(3);
  std::vector<std::unique_ptr<CompiledGraph>> made(8);
  std::vector<std::thread> threads;
  for (auto& slot : made)
    threads.emplace_back([&] {
      auto compiled = compile_graph(graph);
      ASSERT_TRUE(compiled.ok());
      slot = compiled.take();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(doubler.packed, 1);
  for (auto& one : made) EXPECT_EQ(run(*one, 2), 12);
}

TEST_F(Packed, failures_name_the_recipe) {
  options_.fallback = false;
  doubler.answer = PFRT_CODE_PROVIDER;
  auto failed = compile_graph(product_with(3));
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.status().message().find("'doubled'"), std::string::npos);
  doubler.answer = PFRT_CODE_OK;
  doubler.alignment = 4096;
  auto refused = compile_graph(product_with(3));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::kUNSUPPORTED);
  EXPECT_NE(refused.status().message().find("4096"), std::string::npos);
}

}  // namespace
}  // namespace pfrt
