// SPDX-License-Identifier: Apache-2.0
//
// Random elementwise regions through the provider's table, from compile to run, compared with an
// evaluator of single elements, on each instruction set that the machine has. Results of generated
// loops are defined to the bit. Buffers are between guard pages.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <span>

#include "core/base/status.h"
#include "providers/cpu/isa/isa.h"
#include "providers/cpu/provider.h"
#include "test/providers/cpu/guarded.h"
#include "test/providers/cpu/step_host.h"

namespace pfrt::test {
namespace {

using Floats = std::vector<float>;

float maximum(float a, float b) { return a != a ? a : b != b ? b : a > b ? a : b; }
float minimum(float a, float b) { return a != a ? a : b != b ? b : a < b ? a : b; }
float bounded(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

constexpr float kAlpha = 0.3f;

struct Operator {
  const char* op;
  size_t least, most;  // numbers of inputs
  float (*evaluate)(std::span<const float>);
  bool alpha = false;
};

using In = std::span<const float>;
float fold(In in, float (*fn)(float, float)) {
  float all = in[0];
  for (float x : in.subspan(1)) all = fn(all, x);
  return all;
}
float sum(In in) {
  return fold(in, [](float a, float b) { return a + b; });
}

constexpr Operator kOperators[] = {
    {"Add", 2, 2, sum},
    {"Sub", 2, 2, [](In in) { return in[0] - in[1]; }},
    {"Mul", 2, 2, [](In in) { return in[0] * in[1]; }},
    {"Div", 2, 2, [](In in) { return in[0] / in[1]; }},
    {"Sum", 1, 4, sum},
    {"Mean", 1, 4, [](In in) { return sum(in) / static_cast<float>(in.size()); }},
    {"Max", 1, 4, [](In in) { return fold(in, maximum); }},
    {"Min", 1, 4, [](In in) { return fold(in, minimum); }},
    {"PRelu", 2, 2, [](In in) { return in[0] < 0 ? in[1] * in[0] : in[0]; }},
    {"Neg", 1, 1, [](In in) { return -in[0]; }},
    {"Abs", 1, 1, [](In in) { return std::fabs(in[0]); }},
    {"Sign", 1, 1, [](In in) { return in[0] < 0   ? -1
                                      : in[0] > 0 ? 1
                                                  : in[0]; }},
    {"Sqrt", 1, 1, [](In in) { return std::sqrt(in[0]); }},
    {"Floor", 1, 1, [](In in) { return std::floor(in[0]); }},
    {"Ceil", 1, 1, [](In in) { return std::ceil(in[0]); }},
    {"Round", 1, 1, [](In in) { return std::nearbyint(in[0]); }},
    {"Reciprocal", 1, 1, [](In in) { return 1 / in[0]; }},
    {"Relu", 1, 1, [](In in) { return in[0] < 0 ? 0 : in[0]; }},
    {"LeakyRelu", 1, 1, [](In in) { return in[0] < 0 ? kAlpha * in[0] : in[0]; }, true},
    {"ThresholdedRelu", 1, 1, [](In in) { return in[0] > kAlpha ? in[0] : 0; }, true},
    {"HardSigmoid", 1, 1, [](In in) { return bounded(kAlpha * in[0] + 0.5f); }, true},
    {"HardSwish", 1, 1, [](In in) { return in[0] * bounded((1.0f / 6) * in[0] + 0.5f); }},
    {"Softsign", 1, 1, [](In in) { return in[0] / (1 + std::fabs(in[0])); }},
    {"Identity", 1, 1, [](In in) { return in[0]; }},
    // Generated loops lack this operator, so it divides regions.
    {"Cos", 1, 1, [](In in) { return std::cos(in[0]); }},
};

struct Value {
  std::vector<int64_t> dims;
  Floats elements;  // a single one, or one for each of the region's
  bool constant = false;
  uint32_t producer = PFRT_NO_INDEX;
};

struct Node {
  const Operator* op;
  std::vector<uint32_t> inputs;
  uint32_t output;
};

// A graph of elementwise nodes, with the contents of every value.
class Region {
 public:
  explicit Region(uint64_t seed);
  std::string text() const;
  const std::vector<Value>& values() const { return values_; }
  const std::vector<uint32_t>& inputs() const { return inputs_; }
  const std::vector<uint32_t>& outputs() const { return outputs_; }
  size_t size() const { return nodes_.size(); }
  // Valid until the next call.
  const pfrt_snapshot& snapshot();

 private:
  uint32_t below(size_t n) { return static_cast<uint32_t>(random_() % n); }
  float number();
  uint32_t add(Value value) {
    values_.push_back(std::move(value));
    return static_cast<uint32_t>(values_.size() - 1);
  }
  void add_node(const Operator& op, const std::vector<uint32_t>& whole,
                const std::vector<uint32_t>& scalars);

  std::mt19937_64 random_;
  std::vector<int64_t> dims_;
  size_t elements_ = 0;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<std::string> names_;
  std::vector<pfrt_snapshot_value> c_values_;
  std::vector<pfrt_snapshot_node> c_nodes_;
  pfrt_snapshot_attr alpha_{};
  pfrt_snapshot snapshot_{};
};

float Region::number() {
  switch (below(30)) {
    case 0:
      return NAN;
    case 1:
      return below(2) ? INFINITY : -INFINITY;
    case 2:
      return below(2) ? 0.0f : -0.0f;
    case 3:
      return 1e-42f;
    default:
      return std::normal_distribution<float>(0, 3)(random_);
  }
}

Region::Region(uint64_t seed) : random_(seed) {
  constexpr int64_t kSizes[] = {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 100, 16385};
  const int64_t n = kSizes[below(below(4) ? std::size(kSizes) - 1 : std::size(kSizes))];
  dims_ = below(2) ? std::vector<int64_t>{n} : std::vector<int64_t>{n, 1, 3};
  elements_ = static_cast<size_t>(n) * (dims_.size() == 1 ? 1 : 3);
  std::vector<uint32_t> whole, scalars;
  const auto fill = [&](size_t count) {
    Floats out(count);
    for (float& x : out) x = number();
    return out;
  };
  for (uint32_t i = 1 + below(6); i > 0; --i) whole.push_back(add({dims_, fill(elements_)}));
  inputs_ = whole;
  for (uint32_t i = below(4); i > 0; --i) {
    const bool constant = below(2);
    scalars.push_back(add({std::vector<int64_t>(below(2), 1), fill(1), constant}));
    if (!constant) inputs_.push_back(scalars.back());
  }
  for (uint32_t i = 1 + below(below(4) ? 12 : 70); i > 0; --i) {
    add_node(kOperators[below(std::size(kOperators))], whole, scalars);
    whole.push_back(nodes_.back().output);
  }
  for (const Node& node : nodes_)
    if (&node == &nodes_.back() || below(5) == 0) outputs_.push_back(node.output);
}

void Region::add_node(const Operator& op, const std::vector<uint32_t>& whole,
                      const std::vector<uint32_t>& scalars) {
  Node node{&op, {}, 0};
  const size_t count = op.least + below(op.most - op.least + 1);
  const auto recent = [&] {
    const size_t reach = below(3) ? std::min<size_t>(4, whole.size()) : whole.size();
    return whole[whole.size() - 1 - below(reach)];
  };
  node.inputs.push_back(recent());
  while (node.inputs.size() < count)
    node.inputs.push_back(!scalars.empty() && below(4) == 0 ? scalars[below(scalars.size())]
                                                            : recent());
  Value y{dims_, Floats(elements_), false, static_cast<uint32_t>(nodes_.size())};
  Floats in(count);
  for (size_t i = 0; i < elements_; ++i) {
    for (size_t k = 0; k < count; ++k) {
      const Floats& x = values_[node.inputs[k]].elements;
      in[k] = x.size() == 1 ? x[0] : x[i];
    }
    y.elements[i] = op.evaluate(in);
  }
  node.output = add(std::move(y));
  nodes_.push_back(std::move(node));
}

std::string Region::text() const {
  std::string out = std::to_string(elements_) + " elements:";
  for (const Node& node : nodes_) {
    out += std::string(" ") + std::to_string(node.output) + "=" + node.op->op + "(";
    for (uint32_t i : node.inputs) out += (out.back() == '(' ? "" : ",") + std::to_string(i);
    out += ")";
  }
  return out;
}

const pfrt_snapshot& Region::snapshot() {
  c_values_.clear();
  c_nodes_.clear();
  for (const Value& value : values_) {
    pfrt_snapshot_value v{};
    v.flags = value.constant ? PFRT_SNAPSHOT_CONSTANT : 0;
    v.dtype = PFRT_DTYPE_FLOAT32;
    v.rank = static_cast<int32_t>(value.dims.size());
    v.dims = value.dims.data();
    v.data = value.constant ? value.elements.data() : nullptr;
    v.bytes = value.constant ? value.elements.size() * sizeof(float) : 0;
    v.producer = value.producer;
    c_values_.push_back(v);
  }
  alpha_.name = to_c("alpha");
  alpha_.type = PFRT_ATTR_FLOAT;
  alpha_.f = kAlpha;
  for (const Node& node : nodes_) {
    pfrt_snapshot_node c{};
    c.op = to_c(node.op->op);
    c.id = static_cast<uint32_t>(c_nodes_.size());
    c.canonical = 1;
    c.inputs = node.inputs.data();
    c.input_count = static_cast<uint32_t>(node.inputs.size());
    c.outputs = &node.output;
    c.output_count = 1;
    c.attrs = &alpha_;
    c.attr_count = node.op->alpha ? 1 : 0;
    c_nodes_.push_back(c);
  }
  snapshot_ = {};
  snapshot_.struct_size = sizeof snapshot_;
  snapshot_.abi = PFRT_ABI_VERSION;
  snapshot_.node_size = sizeof(pfrt_snapshot_node);
  snapshot_.value_size = sizeof(pfrt_snapshot_value);
  snapshot_.attr_size = sizeof(pfrt_snapshot_attr);
  snapshot_.node_count = static_cast<uint32_t>(c_nodes_.size());
  snapshot_.value_count = static_cast<uint32_t>(c_values_.size());
  snapshot_.nodes = c_nodes_.data();
  snapshot_.values = c_values_.data();
  return snapshot_;
}

pfrt_code report(const pfrt_sink* sink, pfrt_code code, uint32_t, pfrt_string text) {
  static_cast<std::string*>(sink->host)->assign(text.data, text.size);
  return code;
}

// An opened provider, a region compiled in it and its program, in the order of release.
class Compiled {
 public:
  Compiled(Region& region, uint32_t workers);
  ~Compiled();
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  // Returns why it was not compiled or run; empty when it was.
  const std::string& fault() const { return fault_; }
  size_t steps() const { return program_.step_count; }
  Floats output(size_t i) const;

 private:
  bool compile(Region& region);
  void run(const Region& region, uint32_t workers);
  const pfrt_provider_table& table_ = cpu::provider_table();
  std::string fault_;
  pfrt_sink sink_{sizeof(pfrt_sink),
                  PFRT_ABI_VERSION,
                  &fault_,
                  report,
                  [](const pfrt_sink*, pfrt_log_level, pfrt_string) {},
                  [](const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; },
                  [](const pfrt_sink*, double) {},
                  nullptr};
  pfrt_provider* provider_ = nullptr;
  pfrt_executable* executable_ = nullptr;
  pfrt_program program_{};
  std::vector<void*> buffers_;
  std::deque<Guarded> memory_;
};

Compiled::Compiled(Region& region, uint32_t workers) {
  if (compile(region))
    run(region, workers);
  else if (fault_.empty())
    fault_ = "failed without a message";
}

bool Compiled::compile(Region& region) {
  if (table_.open(to_c("cpu"), nullptr, 0, &sink_, &provider_)) return false;
  std::vector<uint32_t> nodes(region.size());
  for (uint32_t i = 0; i < nodes.size(); ++i) nodes[i] = i;
  pfrt_region c{};
  c.struct_size = sizeof c;
  c.abi = PFRT_ABI_VERSION;
  c.nodes = nodes.data();
  c.node_count = static_cast<uint32_t>(nodes.size());
  c.inputs = region.inputs().data();
  c.input_count = static_cast<uint32_t>(region.inputs().size());
  c.outputs = region.outputs().data();
  c.output_count = static_cast<uint32_t>(region.outputs().size());
  c.snapshot = &region.snapshot();
  size_t at = 0;
  if (table_.compile(provider_, &c, sizeof c, 1, &sink_, &executable_, &at)) return false;
  std::vector<int32_t> ranks;
  std::vector<const int64_t*> dims;
  for (const Value& value : region.values()) {
    ranks.push_back(static_cast<int32_t>(value.dims.size()));
    dims.push_back(value.dims.data());
  }
  const pfrt_shapes shapes{sizeof shapes,
                           PFRT_ABI_VERSION,
                           ranks.data(),
                           dims.data(),
                           static_cast<uint32_t>(ranks.size()),
                           0,
                           nullptr};
  program_.struct_size = sizeof program_;
  return table_.specialise(executable_, &shapes, &sink_, &program_) == PFRT_CODE_OK;
}

void Compiled::run(const Region& region, uint32_t workers) {
  for (uint32_t b = 0; b < program_.buffer_count; ++b) {
    const pfrt_buffer& buffer = program_.buffers[b];
    Guarded& memory = memory_.emplace_back(static_cast<size_t>(buffer.bytes));
    buffers_.push_back(memory.data());
    const bool is_input = buffer.kind == PFRT_BUFFER_IN;
    if (!is_input && buffer.kind != PFRT_BUFFER_INITIALIZER) continue;
    const Floats& from =
        region.values()[is_input ? region.inputs()[buffer.index] : buffer.index].elements;
    if (!from.empty()) std::memcpy(memory.data(), from.data(), memory.size());
    memory.make_read_only();
  }
  for (uint32_t s = 0; s < program_.step_count && fault_.empty(); ++s) {
    const pfrt_step& step = program_.steps[s];
    const StepHost host(buffers_, workers, step.scratch_bytes);
    if (step.run(step.state, host.context())) fault_ = "run: " + host.message();
  }
}

Floats Compiled::output(size_t i) const {
  for (uint32_t b = 0; b < program_.buffer_count; ++b) {
    if (program_.buffers[b].kind != PFRT_BUFFER_OUT || program_.buffers[b].index != i) continue;
    Floats out(memory_[b].size() / sizeof(float));
    if (!out.empty()) std::memcpy(out.data(), memory_[b].data(), memory_[b].size());
    return out;
  }
  return {};
}

Compiled::~Compiled() {
  if (program_.handle != nullptr) table_.release_program(executable_, &program_);
  if (executable_ != nullptr) table_.release_executable(executable_);
  if (provider_ != nullptr) table_.close(provider_);
}

// Forces one instruction set, if the machine has it.
class Jit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const char* set = std::getenv("PFRT_ISA")) before_ = set;
    if (cpu::isa_from_name(GetParam()).value() > cpu::machine_isa())
      GTEST_SKIP() << "this machine has no " << GetParam();
    setenv("PFRT_ISA", GetParam(), 1);
  }
  void TearDown() override {
    if (before_.empty())
      unsetenv("PFRT_ISA");
    else
      setenv("PFRT_ISA", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

void check(uint64_t seed, uint32_t workers) {
  Region region(seed);
  const Compiled compiled(region, workers);
  const auto what = [&] { return message("seed ", seed, ", ", region.text(), "\n  "); };
  ASSERT_EQ(compiled.fault(), "") << what();
  for (size_t o = 0; o < region.outputs().size(); ++o) {
    const Floats& want = region.values()[region.outputs()[o]].elements;
    const Floats got = compiled.output(o);
    ASSERT_EQ(got.size(), want.size()) << what() << "value " << region.outputs()[o];
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_TRUE(got[i] == want[i] || (got[i] != got[i] && want[i] != want[i]))
          << what() << "value " << region.outputs()[o] << " element " << i << " is " << got[i]
          << ", not " << want[i];
  }
}

TEST_P(Jit, random_regions) {
  for (uint64_t seed = 1; seed <= 250 && !HasFatalFailure(); ++seed) check(seed, 1);
}

TEST_P(Jit, random_regions_on_threads) {
  for (uint64_t seed = 1001; seed <= 1040 && !HasFatalFailure(); ++seed) check(seed, 3);
}

// Generated code lets nodes share steps.
TEST_P(Jit, joins_nodes) {
  size_t fewer = 0, regions = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Region region(seed);
    fewer += Compiled(region, 1).steps() < region.size();
    ++regions;
  }
  const bool generates = std::string(GetParam()) != "generic";
  EXPECT_TRUE(!generates || fewer > regions / 2) << fewer << " of " << regions;
}

INSTANTIATE_TEST_SUITE_P(Isa, Jit, testing::Values("generic", "avx2", "avx512"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace pfrt::test
