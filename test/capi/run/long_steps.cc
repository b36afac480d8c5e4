// SPDX-License-Identifier: Apache-2.0
#include "test/capi/run/long_steps.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace pfrt_test {
namespace {

using Dims = std::vector<int64_t>;

constexpr pfrt_dtype kF32 = PFRT_DTYPE_FLOAT32, kF64 = PFRT_DTYPE_FLOAT64,
                     kF16 = PFRT_DTYPE_FLOAT16, kU8 = PFRT_DTYPE_UINT8, kI32 = PFRT_DTYPE_INT32,
                     kI64 = PFRT_DTYPE_INT64, kBool = PFRT_DTYPE_BOOL, kText = PFRT_DTYPE_STRING;
constexpr const char* kMl = "ai.onnx.ml";
constexpr const char* kContrib = "com.microsoft";

LongInput noise(pfrt_dtype dtype, Dims dims) { return {dtype, std::move(dims), Fill::kNoise}; }
LongInput f32(Dims dims) { return noise(kF32, std::move(dims)); }
LongInput filled(pfrt_dtype dtype, Dims dims, Fill fill) { return {dtype, std::move(dims), fill}; }
LongInput words(Dims dims) { return filled(kText, std::move(dims), Fill::kWords); }
LongInput pages(Dims dims) { return filled(kText, std::move(dims), Fill::kPages); }
LongInput absent() { return {PFRT_DTYPE_UNSET, {}, Fill::kZeros}; }
LongInput listed(pfrt_dtype dtype, Dims dims, std::vector<double> values) {
  return {dtype, std::move(dims), Fill::kListed, std::move(values), true};
}
LongInput int64s(const std::vector<double>& values) {
  return listed(kI64, {static_cast<int64_t>(values.size())}, values);
}
LongInput scalar(pfrt_dtype dtype, double value) { return listed(dtype, {}, {value}); }

LongAttr integer(std::string name, int64_t value) {
  LongAttr a{std::move(name), PFRT_ATTR_INT};
  a.i = value;
  return a;
}
LongAttr text(std::string name, std::string value) {
  LongAttr a{std::move(name), PFRT_ATTR_STRING};
  a.s = std::move(value);
  return a;
}
LongAttr integers(std::string name, Dims values) {
  LongAttr a{std::move(name), PFRT_ATTR_INTS};
  a.ints = std::move(values);
  return a;
}
LongAttr reals(std::string name, std::vector<float> values) {
  LongAttr a{std::move(name), PFRT_ATTR_FLOATS};
  a.floats = std::move(values);
  return a;
}
LongAttr texts(std::string name, std::vector<std::string> values) {
  LongAttr a{std::move(name), PFRT_ATTR_STRINGS};
  a.strings = std::move(values);
  return a;
}

constexpr int64_t kLongLine = 50'000'000;  // elements of a single line
constexpr int64_t kTexts = 3'000'000;

void add_products(std::vector<LongStep>& all) {
  all.push_back({"MatMul", "", "", {f32({6000, 6000}), f32({6000, 6000})}});
  all.push_back({"MatMul", "float64", "", {noise(kF64, {4000, 4000}), noise(kF64, {4000, 4000})}});
  all.push_back({"MatMul", "float16", "", {noise(kF16, {6000, 6000}), noise(kF16, {6000, 6000})}});
  all.push_back({"MatMul", "int32", "", {noise(kI32, {3000, 3000}), noise(kI32, {3000, 3000})}});
  all.push_back({"MatMul", "one long row", "", {f32({1, kLongLine}), f32({kLongLine, 1})}});
  all.push_back({"MatMul", "many small", "", {f32({4'000'000, 3, 3}), f32({4'000'000, 3, 3})}});
  all.push_back({"Gemm", "", "", {f32({6000, 6000}), f32({6000, 6000})}});
  all.push_back({"MatMulInteger", "", "", {noise(kU8, {8000, 8000}), noise(kU8, {8000, 8000})}});
  all.push_back(
      {"QLinearMatMul",
       "",
       "",
       {noise(kU8, {6000, 6000}), scalar(kF32, 0.1), scalar(kU8, 3), noise(kU8, {6000, 6000}),
        scalar(kF32, 0.1), scalar(kU8, 3), scalar(kF32, 9), scalar(kU8, 3)}});
  all.push_back({"Einsum",
                 "of three",
                 "",
                 {f32({4000, 4000}), f32({4000, 4000}), f32({4000, 4000})},
                 {text("equation", "ij,jk,kl->il")}});
  all.push_back({"Einsum",
                 "of elements",
                 "",
                 {f32({5000, 10000}), f32({5000, 10000})},
                 {text("equation", "ij,ij->ji")}});
  all.push_back({"Einsum",
                 "a long sum",
                 "",
                 {f32({5000, 10000}), f32({5000, 10000})},
                 {text("equation", "ij,ij->")}});
  all.push_back({"Det", "", "", {f32({3000, 3000})}});
  all.push_back({"Attention",
                 "",
                 "",
                 {f32({1, 4, 16384, 64}), f32({1, 4, 16384, 64}), f32({1, 4, 16384, 64})}});
  all.push_back({"MultiHeadAttention",
                 "",
                 kContrib,
                 {f32({1, 16384, 256}), f32({1, 16384, 256}), f32({1, 16384, 256})},
                 {integer("num_heads", 4)}});
}

void add_windows(std::vector<LongStep>& all) {
  const LongAttr pads = integers("pads", {2, 2, 2, 2});
  all.push_back({"Conv", "", "", {f32({1, 64, 1024, 1024}), f32({64, 64, 5, 5})}, {pads}});
  all.push_back({"Conv", "pointwise", "", {f32({1, 512, 400, 400}), f32({512, 512, 1, 1})}});
  all.push_back({"Conv", "3 by 3", "", {f32({1, 128, 600, 600}), f32({128, 128, 3, 3})}});
  all.push_back({"Conv",
                 "depthwise",
                 "",
                 {f32({1, 8, 2048, 2048}), f32({8, 1, 17, 17})},
                 {integer("group", 8)}});
  all.push_back({"Conv", "one dimension", "", {f32({1, 1, 4'000'000}), f32({1, 1, 3001})}});
  all.push_back(
      {"Conv", "three dimensions", "", {f32({1, 16, 100, 100, 100}), f32({16, 16, 5, 5, 5})}});
  all.push_back({"Conv",
                 "float64",
                 "",
                 {noise(kF64, {1, 32, 512, 512}), noise(kF64, {32, 32, 5, 5})},
                 {pads}});
  all.push_back({"ConvTranspose", "", "", {f32({1, 64, 700, 700}), f32({64, 64, 5, 5})}});
  all.push_back({"ConvTranspose",
                 "grouped",
                 "",
                 {f32({1, 64, 1000, 1000}), f32({64, 1, 9, 9})},
                 {integer("group", 64)}});
  all.push_back({"ConvInteger",
                 "",
                 "",
                 {noise(kU8, {1, 64, 1024, 1024}), noise(kU8, {64, 64, 5, 5})},
                 {pads}});
  all.push_back({"DeformConv",
                 "",
                 "",
                 {f32({1, 64, 256, 256}), f32({64, 64, 5, 5}), f32({1, 50, 252, 252})}});
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    all.push_back({op,
                   "a large window",
                   "",
                   {f32({1, 1, 1500, 1500})},
                   {integers("kernel_shape", {512, 512})}});
    all.push_back(
        {op, "a long window", "", {f32({1, 1, 1 << 21})}, {integers("kernel_shape", {1 << 20})}});
    all.push_back({op,
                   "float64",
                   "",
                   {noise(kF64, {1, 1, 1500, 1500})},
                   {integers("kernel_shape", {300, 300})}});
    all.push_back({op,
                   "mostly padding",
                   "",
                   {noise(kF64, {1000, 1, 64})},
                   {integers("kernel_shape", {1 << 20}), integers("pads", {1 << 19, 1 << 19})}});
  }
  all.push_back({"MaxUnpool",
                 "",
                 "",
                 {f32({1, 1, 5000, 5000}), filled(kI64, {1, 1, 5000, 5000}, Fill::kShuffle)},
                 {integers("kernel_shape", {2, 2}), integers("strides", {2, 2})}});
  all.push_back({"MaxRoiPool",
                 "",
                 "",
                 {f32({1, 64, 200, 200}), filled(kF32, {20000, 5}, Fill::kZeros)},
                 {integers("pooled_shape", {14, 14})}});
  all.push_back(
      {"RoiAlign",
       "",
       "",
       {f32({1, 64, 200, 200}), f32({5000, 4}), filled(kI64, {5000}, Fill::kZeros)},
       {integer("output_height", 14), integer("output_width", 14), integer("sampling_ratio", 8)}});
  all.push_back(
      {"RoiAlign",
       "one large region",
       "",
       {f32({1, 1, 4, 4}), listed(kF32, {1, 4}, {0, 0, 5e7, 5e7}), filled(kI64, {1}, Fill::kZeros)},
       {integer("output_height", 64), integer("output_width", 64)}});
  all.push_back(
      {"Col2Im", "", "", {f32({1, 400, 400 * 400}), int64s({419, 419}), int64s({20, 20})}});
  all.push_back({"LRN", "", "", {f32({1, 300, 400, 400})}, {integer("size", 201)}});
  all.push_back({"GridSample",
                 "cubic",
                 "",
                 {f32({1, 16, 64, 64}), f32({1, 2000, 2000, 2})},
                 {text("mode", "cubic")}});
  all.push_back({"GridSample", "linear", "", {f32({1, 16, 64, 64}), f32({1, 2500, 2500, 2})}});
  for (const char* mode : {"nearest", "linear", "cubic"})
    all.push_back({"Resize",
                   mode,
                   "",
                   {f32({1, 1, 64, 64}), absent(), absent(), int64s({1, 1, 10000, 10000})},
                   {text("mode", mode)}});
  all.push_back({"Resize",
                 "antialias",
                 "",
                 {f32({1, 1, 6000, 6000}), absent(), absent(), int64s({1, 1, 500, 500})},
                 {text("mode", "cubic"), integer("antialias", 1)}});
  all.push_back({"AffineGrid", "", "", {f32({1, 2, 3}), int64s({1, 1, 7000, 7000})}});
}

void add_sequences(std::vector<LongStep>& all) {
  const LongAttr hidden = integer("hidden_size", 128);
  all.push_back(
      {"RNN", "", "", {f32({200'000, 1, 64}), f32({1, 128, 64}), f32({1, 128, 128})}, {hidden}});
  all.push_back(
      {"GRU", "", "", {f32({100'000, 1, 64}), f32({1, 384, 64}), f32({1, 384, 128})}, {hidden}});
  all.push_back(
      {"LSTM", "", "", {f32({100'000, 1, 64}), f32({1, 512, 64}), f32({1, 512, 128})}, {hidden}});
  all.push_back(
      {"LSTM",
       "float64",
       "",
       {noise(kF64, {30'000, 1, 64}), noise(kF64, {1, 512, 64}), noise(kF64, {1, 512, 128})},
       {hidden}});
  all.push_back({"DFT", "a large prime", "", {f32({1, 16'777'213, 1})}});
  all.push_back({"DFT", "a power of two", "", {f32({1, 1 << 24, 1})}});
  all.push_back(
      {"STFT", "", "", {f32({1, 4'000'000, 1}), scalar(kI64, 64), absent(), scalar(kI64, 4093)}});
  all.push_back({"MelWeightMatrix",
                 "",
                 "",
                 {scalar(kI64, 4000), scalar(kI64, 50000), scalar(kI64, 48000), scalar(kF32, 0),
                  scalar(kF32, 24000)}});
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"})
    all.push_back({op, "", "", {filled(kI64, {}, Fill::kListed)}});
  for (size_t i = all.size() - 3; i < all.size(); ++i) all[i].inputs[0].listed = {1e8};
  all.push_back({"CumSum", "", "", {f32({kLongLine}), scalar(kI64, 0)}});
  all.push_back({"CumProd", "", "", {f32({kLongLine}), scalar(kI64, 0)}});
}

void add_lines(std::vector<LongStep>& all) {
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax", "ArgMax", "ArgMin"})
    all.push_back({op, "a long line", "", {f32({1, kLongLine})}, {integer("axis", 1)}});
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    all.push_back({op, "float64", "", {noise(kF64, {1, kLongLine})}, {integer("axis", 1)}});
    all.push_back({op, "columns", "", {f32({1'000'000, 48})}, {integer("axis", 0)}});
  }
  all.push_back({"ArgMax", "columns", "", {f32({1'000'000, 48})}, {integer("axis", 0)}});
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceProd", "ReduceL2", "ReduceLogSumExp"}) {
    all.push_back({op, "a long line", "", {f32({1, kLongLine}), int64s({1})}});
    all.push_back({op, "columns", "", {f32({10'000, 5000}), int64s({0})}});
    all.push_back({op, "lines apart", "", {f32({300, 500, 300}), int64s({0, 2})}});
  }
  all.push_back({"LayerNormalization", "", "", {f32({1, kLongLine}), f32({kLongLine})}});
  all.push_back({"RMSNormalization", "", "", {f32({1, kLongLine}), f32({kLongLine})}});
  for (const pfrt_dtype dtype : {kF32, kF16})
    all.push_back({"InstanceNormalization",
                   dtype == kF32 ? "" : "float16",
                   "",
                   {noise(dtype, {1, 1, kLongLine}), noise(dtype, {1}), noise(dtype, {1})}});
  all.push_back({"GroupNormalization",
                 "",
                 "",
                 {f32({1, 2, kLongLine / 2}), f32({2}), f32({2})},
                 {integer("num_groups", 1)}});
  all.push_back({"BatchNormalization",
                 "",
                 "",
                 {f32({1, 2, kLongLine / 2}), f32({2}), f32({2}), f32({2}), f32({2})}});
  all.push_back({"LpNormalization", "", "", {f32({1, kLongLine})}});
  all.push_back({"MeanVarianceNormalization", "", "", {f32({1, 1, 5000, 10000})}});
  all.push_back({"TopK", "half", "", {f32({kLongLine}), int64s({kLongLine / 2.0})}, {}, 2});
  all.push_back(
      {"TopK", "columns", "", {f32({3'000'000, 16}), int64s({1000})}, {integer("axis", 0)}, 2});
  all.push_back({"Unique", "", "", {filled(kI64, {20'000'000}, Fill::kShuffle)}, {}, 4});
  all.push_back({"Unique",
                 "in order of appearance",
                 "",
                 {filled(kI64, {20'000'000}, Fill::kShuffle)},
                 {integer("sorted", 0)},
                 4});
  all.push_back({"NonMaxSuppression",
                 "",
                 "",
                 {filled(kF32, {1, 60'000, 4}, Fill::kRows), f32({1, 1, 60'000}), int64s({60'000}),
                  listed(kF32, {1}, {0.5})}});
  all.push_back({"SoftmaxCrossEntropyLoss", "", "", {f32({1, kLongLine}), listed(kI64, {1}, {3})}});
  all.push_back({"SoftmaxCrossEntropyLoss",
                 "pixels",
                 "",
                 {f32({1, kLongLine / 128, 128}), filled(kI64, {1, 128}, Fill::kZeros)}});
  all.push_back({"NegativeLogLikelihoodLoss",
                 "",
                 "",
                 {f32({10'000'000, 5}), filled(kI64, {10'000'000}, Fill::kZeros)}});
}

void add_moves(std::vector<LongStep>& all) {
  const LongInput shuffled = filled(kI64, {kLongLine / 2}, Fill::kShuffle);
  all.push_back({"Gather", "", "", {f32({kLongLine / 2}), shuffled}});
  all.push_back({"GatherElements", "", "", {f32({kLongLine / 2}), shuffled}});
  all.push_back({"GatherND",
                 "",
                 "",
                 {f32({kLongLine / 2}), filled(kI64, {kLongLine / 2, 1}, Fill::kShuffle)}});
  all.push_back(
      {"ScatterElements", "", "", {f32({kLongLine / 2}), shuffled, f32({kLongLine / 2})}});
  all.push_back({"ScatterElements",
                 "added",
                 "",
                 {f32({kLongLine / 2}), shuffled, f32({kLongLine / 2})},
                 {text("reduction", "add")}});
  all.push_back({"ScatterND",
                 "",
                 "",
                 {f32({kLongLine / 2}), filled(kI64, {kLongLine / 2, 1}, Fill::kShuffle),
                  f32({kLongLine / 2})}});
  all.push_back(
      {"OneHot",
       "",
       "",
       {filled(kI64, {1'000'000}, Fill::kZeros), scalar(kI64, 500), listed(kU8, {2}, {0, 1})}});
  all.push_back({"NonZero", "", "", {filled(kU8, {kLongLine}, Fill::kOnes)}});
  all.push_back({"Compress",
                 "",
                 "",
                 {f32({kLongLine}), filled(kBool, {kLongLine}, Fill::kOnes)},
                 {integer("axis", 0)}});
  all.push_back({"ConstantOfShape", "", "", {filled(kI64, {1}, Fill::kListed)}});
  all.back().inputs[0].listed = {1.5e8};
  all.push_back(
      {"Range", "", "", {scalar(kI32, 0), filled(kI32, {}, Fill::kListed), scalar(kI32, 1)}});
  all.back().inputs[1].listed = {1.5e8};
  all.push_back({"Tile", "", "", {noise(kU8, {3, 5, 7}), int64s({100, 1000, 50})}});
  all.push_back({"Expand", "", "", {noise(kU8, {1000, 1, 5}), int64s({1000, 100'000, 5})}});
  all.push_back({"Pad",
                 "a large border",
                 "",
                 {noise(kU8, {10, 10}), int64s({10'000, 10'000, 10'000, 10'000})}});
  all.push_back({"Pad",
                 "reflected",
                 "",
                 {noise(kU8, {9000, 9000}), int64s({5000, 5000, 5000, 5000})},
                 {text("mode", "reflect")}});
  all.push_back({"Transpose", "", "", {f32({300, 500, 300})}, {integers("perm", {2, 1, 0})}});
  all.push_back(
      {"Transpose", "uint8", "", {noise(kU8, {20'000, 10'000})}, {integers("perm", {1, 0})}});
  all.push_back({"Slice",
                 "backwards",
                 "",
                 {f32({kLongLine}), int64s({-1}), int64s({-1e9}), int64s({0}), int64s({-1})}});
  all.push_back(
      {"Concat", "", "", {f32({kLongLine / 2}), f32({kLongLine / 2})}, {integer("axis", 0)}});
  all.push_back({"ReverseSequence",
                 "",
                 "",
                 {f32({kLongLine / 2, 2}), listed(kI64, {2}, {kLongLine / 2.0, kLongLine / 2.0})}});
  all.push_back({"DepthToSpace", "", "", {f32({1, 64, 800, 800})}, {integer("blocksize", 8)}});
  all.push_back({"SpaceToDepth", "", "", {f32({1, 1, 6400, 6400})}, {integer("blocksize", 8)}});
  all.push_back({"Trilu", "", "", {f32({7000, 7000})}});
  all.push_back({"EyeLike", "", "", {noise(kU8, {20'000, 20'000})}});
}

void add_elements(std::vector<LongStep>& all) {
  for (const char* op : {"Erf", "Sin", "Gelu", "Tan", "Acosh"})
    all.push_back({op, "", "", {f32({kLongLine})}});
  all.push_back({"Sin", "float64", "", {noise(kF64, {kLongLine})}});
  all.push_back({"Pow", "", "", {f32({kLongLine}), f32({kLongLine})}});
  all.push_back(
      {"Mod", "float64", "", {noise(kF64, {kLongLine}), scalar(kF64, 0.7)}, {integer("fmod", 1)}});
  all.push_back({"Cast", "float16", "", {f32({kLongLine})}, {integer("to", 10)}});
  all.push_back({"Cast", "to text", "", {f32({kTexts})}, {integer("to", 8)}});
  all.push_back(
      {"Cast", "from text", "", {filled(kText, {2 * kTexts}, Fill::kNumbers)}, {integer("to", 1)}});
  all.push_back({"QuantizeLinear", "", "", {f32({kLongLine}), scalar(kF32, 0.1), scalar(kU8, 3)}});
  all.push_back({"DynamicQuantizeLinear", "", "", {f32({kLongLine})}, {}, 3});
  const LongAttr shape = integers("shape", {100'000'000});
  all.push_back({"RandomNormal", "", "", {}, {shape}});
  all.push_back({"RandomUniform", "", "", {}, {shape}});
  all.push_back({"Bernoulli", "", "", {filled(kF32, {kLongLine}, Fill::kZeros)}});
  all.push_back({"Multinomial", "", "", {f32({1, 1000})}, {integer("sample_size", 100'000'000)}});
}

void add_texts(std::vector<LongStep>& all) {
  all.push_back({"StringNormalizer",
                 "",
                 "",
                 {words({kTexts})},
                 {text("case_change_action", "UPPER"), texts("stopwords", {"a", "the"})}});
  LongAttr many = texts("stopwords", {});
  many.made_strings = 100'000;
  all.push_back({"StringNormalizer", "many stop words", "", {words({kTexts})}, {many}});
  all.push_back({"StringSplit", "", "", {words({kTexts})}, {}, 2});
  all.push_back({"StringSplit", "one long text", "", {filled(kText, {}, Fill::kWords)}, {}, 2});
  all.push_back({"StringConcat", "", "", {words({kTexts}), words({kTexts})}});
  all.push_back({"StringConcat", "long texts", "", {pages({100, 1}), pages({100})}});
  all.push_back({"Concat", "long texts", "", {pages({800}), pages({800})}, {integer("axis", 0)}});
  const LongAttr pattern = text("pattern", "(a|b|[c-z ])*(x|y)*[a-z]+ .*(a|b)*q?");
  all.push_back({"RegexFullMatch", "", "", {words({kTexts})}, {pattern}});
  all.push_back({"RegexFullMatch", "long texts", "", {pages({800})}, {pattern}});
  all.push_back({"Tokenizer",
                 "",
                 "com.microsoft",
                 {words({kTexts})},
                 {integer("mark", 0), integer("mincharnum", 1), text("pad_value", "#"),
                  text("tokenexp", "[a-z]+")}});
  all.push_back({"TfIdfVectorizer",
                 "many columns",
                 "",
                 {filled(kI64, {10}, Fill::kCount)},
                 {text("mode", "IDF"), integer("min_gram_length", 1), integer("max_gram_length", 1),
                  integer("max_skip_count", 0), integers("ngram_counts", {0}),
                  integers("ngram_indexes", {kLongLine - 1}), integers("pool_int64s", {1}),
                  reals("weights", {2})}});
  all.push_back({"TfIdfVectorizer",
                 "",
                 "",
                 {filled(kI64, {20'000'000}, Fill::kShuffle)},
                 {text("mode", "TF"), integer("min_gram_length", 1), integer("max_gram_length", 3),
                  integer("max_skip_count", 5), integers("ngram_counts", {0, 2}),
                  integers("ngram_indexes", {0, 1, 2}), integers("pool_int64s", {1, 2, 3, 4})}});
  all.push_back({"LabelEncoder",
                 "texts",
                 kMl,
                 {words({kTexts})},
                 {texts("keys_strings", {"a", "b"}), integers("values_int64s", {1, 2})}});
  all.push_back({"Unique", "texts", "", {words({kTexts})}, {}, 4});
  all.push_back({"Gather", "texts", "", {words({kTexts}), filled(kI64, {kTexts}, Fill::kShuffle)}});
}

void add_learned(std::vector<LongStep>& all) {
  constexpr int64_t kRows = 1'000'000, kVectors = 2000, kWidth = 8;
  const std::vector<float> vectors(static_cast<size_t>(kVectors * kWidth), 0.5f);
  const std::vector<float> weights(static_cast<size_t>(kVectors), 0.25f);
  all.push_back({"SVMRegressor",
                 "",
                 kMl,
                 {f32({kRows, kWidth})},
                 {text("kernel_type", "RBF"), reals("kernel_params", {0.5f, 0, 3}),
                  integer("n_supports", kVectors), reals("support_vectors", vectors),
                  reals("coefficients", weights), reals("rho", {0.5f})}});
  all.push_back({"Scaler",
                 "",
                 kMl,
                 {f32({kLongLine / 8, kWidth})},
                 {reals("offset", {1}), reals("scale", {2})}});
  all.push_back({"Normalizer", "", kMl, {f32({1, kLongLine})}, {text("norm", "L2")}});
  all.push_back({"OneHotEncoder",
                 "",
                 kMl,
                 {filled(kI64, {kLongLine / 4}, Fill::kZeros)},
                 {integers("cats_int64s", {0, 1, 2, 3})}});
}

}  // namespace

const std::vector<LongStep>& long_steps() {
  static const std::vector<LongStep> steps = [] {
    std::vector<LongStep> all;
    add_products(all);
    add_windows(all);
    add_sequences(all);
    add_lines(all);
    add_moves(all);
    add_elements(all);
    add_texts(all);
    add_learned(all);
    return all;
  }();
  return steps;
}

std::string name_of(const LongStep& step) {
  return step.op + (step.note.empty() ? "" : " (" + step.note + ")");
}

// ------------------------------------------------------------------ graphs and values

namespace {

pfrt_string view(const std::string& s) { return {s.data(), s.size()}; }

// A generator of noise that is fast rather than good.
class Random {
 public:
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }

 private:
  uint64_t state_ = 1;
};

double element(const LongInput& input, Random& random, int64_t i, int64_t count) {
  switch (input.fill) {
    case Fill::kZeros:
      return 0;
    case Fill::kOnes:
      return 1;
    case Fill::kCount:
      return static_cast<double>(i);
    case Fill::kShuffle:  // multiples of a large prime, modulo the count
      return static_cast<double>(static_cast<uint64_t>(i) * 2'147'483'647u %
                                 static_cast<uint64_t>(count));
    case Fill::kRows:
      return static_cast<double>(i / 4 * 2 + (i % 4 >= 2 ? 1 : 0));
    case Fill::kListed:
      return input.listed[static_cast<size_t>(i)];
    default:
      return static_cast<double>(random.next() % 65536) / 32768 - 1;
  }
}

template <typename T>
void write(const LongInput& input, void* to, int64_t count) {
  Random random;
  const double scale = input.fill == Fill::kNoise && T(0.5) == T(0) ? 8 : 1;
  T* const out = static_cast<T*>(to);
  // Elements that do not depend on their index are made once and repeated.
  const bool placed = input.fill >= Fill::kCount;
  const int64_t made = placed ? count : std::min<int64_t>(count, 1 << 20);
  for (int64_t i = 0; i < made; ++i)
    out[i] = static_cast<T>(element(input, random, i, count) * scale + (scale == 8 ? 8 : 0));
  for (int64_t at = made; at < count; at += made)
    std::memcpy(out + at, out, static_cast<size_t>(std::min(made, count - at)) * sizeof(T));
}

void fill(const LongInput& input, void* to, int64_t count) {
  switch (input.dtype) {
    case kF32:
      return write<float>(input, to, count);
    case kF64:
      return write<double>(input, to, count);
    case kI64:
      return write<int64_t>(input, to, count);
    case kI32:
      return write<int32_t>(input, to, count);
    case kF16:  // 1 or 0.5
      for (int64_t i = 0; i < count; ++i)
        static_cast<uint16_t*>(to)[i] = i % 3 == 0 ? 0x3c00 : 0x3800;
      return;
    default:
      return write<uint8_t>(input, to, count);
  }
}

std::string text_of(const LongInput& input, int64_t i) {
  if (input.fill == Fill::kNumbers) return std::to_string(i) + ".25";
  std::string words = "the word " + std::to_string(i) + " a";
  const size_t least = input.fill == Fill::kPages ? 100'000 : input.dims.empty() ? 50'000'000 : 0;
  while (words.size() < least) words += " " + words;
  return words;
}

}  // namespace

pfrt_status* value_of(const pfrt_api& api, const LongInput& input, pfrt_value** out_value) {
  pfrt_status* status =
      api.value->create_tensor(input.dtype, input.dims.data(), input.dims.size(), out_value);
  if (status) return status;
  int64_t count = 1;
  for (const int64_t d : input.dims) count *= d;
  if (input.dtype == kText) {
    for (int64_t i = 0; i < count && !status; ++i)
      status = api.value->set_string(*out_value, static_cast<uint64_t>(i), view(text_of(input, i)));
    return status;
  }
  pfrt_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  status = api.value->tensor(*out_value, &tensor);
  if (!status) fill(input, const_cast<void*>(static_cast<const void*>(tensor.data)), count);
  return status;
}

namespace {

pfrt_status* add_inputs(const pfrt_api& api, const LongStep& step, pfrt_graph* graph,
                        const std::vector<std::string>& names) {
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const LongInput& input = step.inputs[i];
    if (input.dtype == PFRT_DTYPE_UNSET) continue;
    if (input.constant) {
      pfrt_value* value = nullptr;
      pfrt_status* status = value_of(api, input, &value);
      if (!status) status = api.graph->add_initializer_value(graph, view(names[i]), value);
      api.value->release(value);
      if (status) return status;
      continue;
    }
    pfrt_value_info info{};
    info.struct_size = sizeof info;
    info.name = view(names[i]);
    info.kind = PFRT_VALUE_TENSOR;
    info.dtype = input.dtype;
    info.rank = static_cast<int32_t>(input.dims.size());
    info.dims = input.dims.data();
    if (pfrt_status* status = api.graph->add_input(graph, &info)) return status;
  }
  return nullptr;
}

}  // namespace

pfrt_status* graph_of(const pfrt_api& api, const LongStep& step, pfrt_graph** out_graph) {
  pfrt_status* status = api.graph->create(view("long"), out_graph);
  if (status) return status;
  std::vector<std::string> names;
  for (size_t i = 0; i < step.inputs.size(); ++i)
    names.push_back(step.inputs[i].dtype == PFRT_DTYPE_UNSET ? "" : "x" + std::to_string(i));
  if ((status = add_inputs(api, step, *out_graph, names))) return status;
  std::vector<pfrt_string> inputs, outputs;
  for (const std::string& name : names) inputs.push_back(view(name));
  std::vector<std::string> made;
  for (int i = 0; i < step.outputs; ++i) made.push_back("y" + std::to_string(i));
  for (const std::string& name : made) outputs.push_back(view(name));
  std::vector<pfrt_attr> attrs;
  std::vector<std::vector<pfrt_string>> lists;
  std::deque<std::string> stop_words;
  lists.reserve(step.attrs.size());
  for (const LongAttr& a : step.attrs) {
    pfrt_attr attr{};
    attr.struct_size = sizeof attr;
    attr.name = view(a.name);
    attr.type = a.type;
    attr.i = a.i;
    attr.f = a.f;
    attr.s = view(a.s);
    attr.ints = a.ints.data();
    attr.floats = a.floats.data();
    lists.emplace_back();
    for (const std::string& s : a.strings) lists.back().push_back(view(s));
    for (size_t i = 0; i < a.made_strings; ++i)
      lists.back().push_back(view(stop_words.emplace_back("stop" + std::to_string(i))));
    attr.strings = lists.back().data();
    attr.count = std::max({a.ints.size(), a.floats.size(), lists.back().size()});
    attrs.push_back(attr);
  }
  pfrt_node node{};
  node.struct_size = sizeof node;
  node.op = view(step.op);
  node.domain = view(step.domain);
  node.inputs = inputs.data();
  node.input_count = inputs.size();
  node.outputs = outputs.data();
  node.output_count = outputs.size();
  node.attrs = attrs.data();
  node.attr_count = attrs.size();
  if ((status = api.graph->add_node(*out_graph, &node, nullptr))) return status;
  for (const std::string& name : made) {
    pfrt_value_info info{};
    info.struct_size = sizeof info;
    info.name = view(name);
    info.rank = -1;
    if ((status = api.graph->add_output(*out_graph, &info))) return status;
  }
  return nullptr;
}

}  // namespace pfrt_test
