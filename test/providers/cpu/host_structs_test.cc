// SPDX-License-Identifier: Apache-2.0
//
// What a provider takes from a host of a later minor, whose structs are larger, and what it
// refuses: the CPU provider's functions, which check by providers/kit.
#include "providers/kit/host_structs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "providers/cpu/provider.h"

namespace pfrt::cpu {
namespace {

// Elements of a host's array, |kMore| bytes larger than those of this build.
constexpr size_t kMore = 24;
template <typename T>
class Elements {
 public:
  explicit Elements(const std::vector<T>& from) : bytes_(from.size() * stride()) {
    for (size_t i = 0; i < from.size(); ++i)
      std::memcpy(bytes_.data() + i * stride(), &from[i], sizeof(T));
  }
  static constexpr size_t stride() { return sizeof(T) + kMore; }
  T* data() { return reinterpret_cast<T*>(bytes_.data()); }
  T& at(size_t i) { return *reinterpret_cast<T*>(bytes_.data() + i * stride()); }
  // Sets a member of the last element that this build does not know.
  void set_more() { bytes_[bytes_.size() - 3] = 1; }

 private:
  std::vector<char> bytes_;
};

template <typename T>
T sized(size_t more) {
  T out{};
  out.struct_size = static_cast<uint32_t>(sizeof(T) + more);
  out.abi = PFRT_ABI_VERSION;
  return out;
}

pfrt_snapshot_value value_of(const char* name, pfrt_snapshot_value_flags flags) {
  static constexpr int64_t kDims[] = {4};
  pfrt_snapshot_value v{};
  v.name = to_c(name);
  v.flags = flags;
  v.dtype = PFRT_DTYPE_FLOAT32;
  v.rank = 1;
  v.dims = kDims;
  v.producer = PFRT_NO_INDEX;
  return v;
}

pfrt_snapshot_node node_of(const pfrt_snapshot_attr* attrs) {
  static constexpr uint32_t kInput = 0, kOutput = 1;
  pfrt_snapshot_node n{};
  n.op = to_c("Elu");
  n.canonical = 1;
  n.inputs = &kInput;
  n.outputs = &kOutput;
  n.input_count = n.output_count = 1;
  n.attrs = attrs;
  n.attr_count = 1;
  return n;
}

pfrt_snapshot_attr alpha() {
  pfrt_snapshot_attr a{};
  a.name = to_c("alpha");
  a.type = PFRT_ATTR_FLOAT;
  a.f = 1;
  return a;
}

class HostStructs : public testing::Test {
 protected:
  HostStructs() {
    snapshot().node_size = static_cast<uint32_t>(nodes_.stride());
    snapshot().value_size = static_cast<uint32_t>(values_.stride());
    snapshot().attr_size = static_cast<uint32_t>(attrs_.stride());
    snapshot().node_count = 1;
    snapshot().value_count = 2;
    snapshot().nodes = nodes_.data();
    snapshot().values = values_.data();
    sink_.host = this;
    sink_.fail = [](const pfrt_sink* s, pfrt_code code, uint32_t, pfrt_string said) {
      static_cast<HostStructs*>(s->host)->said_ = view(said);
      return code;
    };
    sink_.stop = [](const pfrt_sink*) -> pfrt_code { return PFRT_CODE_OK; };
    claims_.host = this;
    claims_.accept = [](const pfrt_claims* c, uint32_t, double, uint64_t) {
      ++static_cast<HostStructs*>(c->host)->accepted_;
    };
    claims_.refuse = [](const pfrt_claims*, uint32_t, pfrt_string) {};
  }
  pfrt_snapshot& snapshot() { return snapshot_.at(0); }

  pfrt_code claim() {
    accepted_ = 0;
    said_.clear();
    return provider_table().claim(nullptr, snapshot_.data(), &claims_, &sink_);
  }
  pfrt_code compile(Elements<pfrt_region>& region) {
    pfrt_executable* made = nullptr;
    size_t at = 0;
    said_.clear();
    const pfrt_code code =
        provider_table().compile(nullptr, region.data(), region.stride(), 1, &sink_, &made, &at);
    if (made) provider_table().release_executable(made);
    return code;
  }
  pfrt_code supports(Elements<pfrt_op_query>& query) {
    said_.clear();
    return provider_table().supports(nullptr, query.data(), &sink_);
  }
  testing::AssertionResult refused(pfrt_code code, const std::string& part) const {
    if (code == PFRT_CODE_UNSUPPORTED && said_.find(part) != std::string::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << "code " << code << ", '" << said_ << "'";
  }

  Elements<pfrt_snapshot_attr> attrs_{{alpha()}};
  Elements<pfrt_snapshot_node> nodes_{{node_of(attrs_.data())}};
  Elements<pfrt_snapshot_value> values_{
      {value_of("x", PFRT_SNAPSHOT_GRAPH_INPUT), value_of("y", PFRT_SNAPSHOT_GRAPH_OUTPUT)}};
  Elements<pfrt_snapshot> snapshot_{{sized<pfrt_snapshot>(kMore)}};
  pfrt_sink sink_ = sized<pfrt_sink>(0);
  pfrt_claims claims_ = sized<pfrt_claims>(0);
  std::string said_;
  int accepted_ = 0;
};

TEST_F(HostStructs, larger_ones_are_read_by_their_strides) {
  EXPECT_EQ(claim(), PFRT_CODE_OK) << said_;
  EXPECT_EQ(accepted_, 1);
}

TEST_F(HostStructs, members_of_a_snapshot_that_are_not_known_are_unsupported) {
  nodes_.set_more();
  EXPECT_TRUE(refused(claim(), "pfrt_snapshot_node"));
  nodes_ = Elements<pfrt_snapshot_node>({node_of(attrs_.data())});
  snapshot().nodes = nodes_.data();
  values_.set_more();
  EXPECT_TRUE(refused(claim(), "pfrt_snapshot_value"));
  values_ = Elements<pfrt_snapshot_value>({value_of("x", 0), value_of("y", 0)});
  snapshot().values = values_.data();
  attrs_.set_more();
  EXPECT_TRUE(refused(claim(), "pfrt_snapshot_attr"));
  attrs_ = Elements<pfrt_snapshot_attr>({alpha()});
  nodes_.at(0).attrs = attrs_.data();
  snapshot_.set_more();
  EXPECT_TRUE(refused(claim(), "pfrt_snapshot"));
  EXPECT_EQ(accepted_, 0);
}

TEST_F(HostStructs, words_without_a_meaning_are_unsupported) {
  pfrt_question question{};
  question.struct_size = sizeof question;
  question.reserved = 3;
  EXPECT_TRUE(refused(provider_table().ask(nullptr, &question, nullptr, &sink_),
                      "pfrt_question: its reserved word is 3"));
  values_.at(1).flags = 1024;
  EXPECT_TRUE(refused(claim(), "flags 1024"));
}

TEST_F(HostStructs, regions_and_questions_are_checked_too) {
  static constexpr uint32_t kNode = 0, kInput = 0, kOutput = 1;
  auto region = sized<pfrt_region>(kMore);
  region.snapshot = snapshot_.data();
  region.nodes = &kNode;
  region.inputs = &kInput;
  region.outputs = &kOutput;
  region.node_count = region.input_count = region.output_count = 1;
  Elements<pfrt_region> good({region}), newer({region});
  EXPECT_EQ(compile(good), PFRT_CODE_OK) << said_;
  newer.set_more();
  EXPECT_TRUE(refused(compile(newer), "pfrt_region"));
  good.at(0).hints = PFRT_COMPILE_PLAIN | uint64_t{1} << 30;
  EXPECT_TRUE(refused(compile(good), "flags 1073741824"));
  good.at(0).hints = PFRT_COMPILE_PLAIN;
  const pfrt_compile_hints of_node = uint64_t{1} << 31;
  good.at(0).node_hints = &of_node;
  EXPECT_TRUE(refused(compile(good), "flags 2147483648"));

  auto query = sized<pfrt_op_query>(kMore);
  query.snapshot = snapshot_.data();
  Elements<pfrt_op_query> asked({query});
  EXPECT_EQ(supports(asked), PFRT_CODE_OK) << said_;
  asked.set_more();
  EXPECT_TRUE(refused(supports(asked), "pfrt_op_query"));

  auto shapes = sized<pfrt_shapes>(kMore);
  Elements<pfrt_shapes> given({shapes});
  given.set_more();
  pfrt_program program{};
  EXPECT_TRUE(
      refused(provider_table().specialise(nullptr, given.data(), &sink_, &program), "pfrt_shapes"));
  pfrt_question question{};
  question.struct_size = sizeof question + kMore;
  Elements<pfrt_question> questions({question});
  questions.set_more();
  EXPECT_TRUE(
      refused(provider_table().ask(nullptr, questions.data(), nullptr, &sink_), "pfrt_question"));
}

TEST_F(HostStructs, copies_have_a_direction_that_is_known) {
  Elements<pfrt_device_copy> copies({{nullptr, nullptr, 1, PFRT_TO_DEVICE, 0},
                                     {nullptr, nullptr, 1, PFRT_TO_HOST, 0},
                                     {nullptr, nullptr, 1, PFRT_ON_DEVICE, 0}});
  const auto check = [&] { return check_host(HostCopies{copies.data(), copies.stride(), 3}); };
  EXPECT_TRUE(check().ok());
  copies.at(1).direction = PFRT_DIRECTION_UNSET;
  EXPECT_EQ(check().code(), Code::kINVALID_ARGUMENT);
  copies.at(1).direction = 99;
  EXPECT_EQ(check().code(), Code::kUNSUPPORTED);
  EXPECT_NE(check().message().find("direction 99"), std::string::npos);
  copies.at(1).direction = PFRT_TO_HOST;
  copies.at(2).reserved = 1;
  EXPECT_EQ(check().code(), Code::kUNSUPPORTED);
  copies.at(2).reserved = 0;
  copies.set_more();
  EXPECT_EQ(check().code(), Code::kUNSUPPORTED);
}

TEST_F(HostStructs, tensors_of_a_question_have_one_size) {
  auto question = sized<pfrt_question>(0);
  pfrt_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  question.tensors = &tensor;
  question.tensor_size = sizeof tensor;
  question.tensor_count = 1;
  EXPECT_TRUE(check_host(question).ok());
  tensor.reserved = 1;
  EXPECT_EQ(check_host(question).code(), Code::kUNSUPPORTED);
  question.tensor_size = sizeof tensor + 8;
  EXPECT_EQ(check_host(question).code(), Code::kINVALID_ARGUMENT);
}

}  // namespace
}  // namespace pfrt::cpu
