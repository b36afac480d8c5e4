// SPDX-License-Identifier: Apache-2.0
//
// Grows a random model node by node. It tracks types, sizes and rough bounds of values, so that the
// model is valid and mostly finite. The operators' methods write the form of the model's opset:
// axes as attributes or inputs, and so on. Not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "test/optimise/model.h"
#include "test/optimise/random.h"

namespace pfrt_optimise {

// A value of the model; |low| and |high| roughly bound its elements.
struct Value {
  std::string name;
  DType type = DType::Float32;
  Dims dims;
  double low = -1, high = 1;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const;
  double magnitude() const;
  bool fixed() const;  // no dimension varies
  const Dim& dim(int64_t axis) const { return dims[static_cast<size_t>(axis)]; }
};
using Values = std::vector<Value>;
using Axes = std::vector<int64_t>;

constexpr int64_t kNewestOpset = 28;
constexpr int64_t kMaxElements = 2048;

class Builder {
 public:
  // Builds a body when there is an |outer|.
  Builder(Random& random_, ModelSpec& model, GraphSpec& graph, Builder* outer);

  Random& random;
  bool takes_empty = false;  // whether want() may give values without elements
  int64_t opset() const { return model_.opset; }
  GraphSpec& graph() { return graph_; }
  ModelSpec& model() { return model_; }
  bool is_body() const { return outer_ != nullptr; }
  size_t node_count() const { return pfrt_optimise::node_count(graph_); }

  // Adds a node; |out| describes its output, except for the name.
  Value add(const std::string& op, const Values& in, Value out, Attributes attributes = {});
  Values add_all(const std::string& op, const Values& in, Values outs, Attributes attributes = {},
                 std::vector<BodySpec> bodies = {});

  // Adds an input of the graph or body.
  Value input(DType type, const Dims& dims, double low, double high);
  // Adds an initializer, a Constant node, or nodes that fold to a constant.
  Value constant(DType type, const std::vector<int64_t>& dims, double low, double high);
  Value constant_of(const Tensor& tensor, double low, double high);
  Value initializer(const Tensor& tensor, double low, double high);
  Value scalar(DType type, double value);    // has rank 0
  Value like(const Value& x, double value);  // a scalar, or [1], for an operation with |x|
  Value ints(const Axes& values);            // an initializer or a Constant
  Tensor random_tensor(DType type, const std::vector<int64_t>& dims, double low, double high);

  // Returns an earlier value, of this graph or from around the body; the latest is likeliest.
  std::optional<Value> pick(const std::function<bool(const Value&)>& fits);
  // Returns a value of that rank with elements: an earlier one, or a new one.
  Value want(DType type, int64_t min_rank, int64_t max_rank);
  Value want_float(int64_t min_rank, int64_t max_rank);
  Dims random_dims(int64_t rank, bool may_vary = true);
  Dim any_size();
  Dim varying_size();  // one of the two varying sizes that inputs have
  int new_symbol() { return ++shared_.last_symbol; }
  // Returns the graph's inputs with their bounds.
  const std::map<std::string, Value>& inputs() const { return shared_.inputs; }
  // Returns another operand for an elementwise operator, whose result keeps the dimensions of
  // |value|.
  Value partner(const Value& value);
  // Returns |value|, scaled down where it may exceed |limit|.
  Value bounded(const Value& value, double limit);
  // Lets pick() find |value|.
  void publish(const Value& value) { pool_.push_back(value); }
  std::string new_name(const std::string& stem);

  Value unary(const std::string& op, const Value& x, Attributes attributes = {});
  Value binary(const std::string& op, const Value& a, const Value& b);
  Value compare(const std::string& op, const Value& a, const Value& b);
  Value where(const Value& condition, const Value& a, const Value& b);
  Value cast(const Value& x, DType to);
  Value clip(const Value& x, double low, double high);
  Value dropout(const Value& x);
  Value transpose(const Value& x, const Axes& perm);
  // Reshapes by a constant shape, with -1 and 0 as in ONNX; |dims| are the result's dimensions.
  Value reshape(const Value& x, const Axes& shape, const Dims& dims);
  Value squeeze(const Value& x, Axes axes);
  Value unsqueeze(const Value& x, Axes axes);
  Value flatten(const Value& x, int64_t axis);
  Value slice(const Value& x, int64_t axis, int64_t start, int64_t end, int64_t step = 1);
  Values split(const Value& x, int64_t axis, const Axes& parts);
  Value concat(const Values& parts, int64_t axis);
  Value pad(const Value& x, const Axes& pads, const std::string& mode, double value);
  Value gather(const Value& x, const Axes& indices, const Axes& index_dims, int64_t axis);
  Value expand(const Value& x, const Axes& shape, const Dims& dims);
  Value tile(const Value& x, const Axes& repeats);
  Value shape(const Value& x);
  Value reduce(const std::string& op, const Value& x, Axes axes, bool keep);
  Value softmax(const Value& x, int64_t axis, bool log = false);
  Value matmul(const Value& a, const Value& b);
  Value gemm(const Value& a, const Value& b, const std::optional<Value>& c, Attributes attributes);
  struct Window {
    Axes kernel, strides, dilations, pads;
    int64_t group = 1;
  };
  Value conv(const Value& x, int64_t channels, const Window& window, bool bias);
  Value batch_norm(const Value& x);
  Value pool(const std::string& op, const Value& x, const Window& window);
  Value quantize(const Value& x, double scale, double zero_point, DType to);
  Value dequantize(const Value& x, double scale, double zero_point);

  // Returns |axis|, sometimes counted from the end where the opset allows it.
  int64_t spell(int64_t axis, int64_t rank, int64_t negative_since = 11);

 private:
  struct Shared {  // by a graph and its bodies
    int last_symbol = 0, last_name = 0;
    std::vector<Dim> varying;
    std::vector<Value> weights;  // initializers of the graph itself
    std::map<std::string, Value> inputs;
  };
  Axes spell_all(Axes axes, int64_t rank);
  std::optional<Value> find(const std::function<bool(const Value&)>& fits, int percent) const;
  // Adds nodes that fold to a constant of that type and those dimensions.
  Value folded(DType type, const std::vector<int64_t>& dims, double low, double high);
  Value typed(const Tensor& tensor, double low, double high) const;

  ModelSpec& model_;
  GraphSpec& graph_;
  Builder* outer_;
  std::vector<Value> pool_;
  Shared own_;
  Shared& shared_;
};

// Returns the shape of an elementwise result; nullopt where the shapes do not fit.
std::optional<Dims> broadcast(const Dims& a, const Dims& b);

}  // namespace pfrt_optimise
