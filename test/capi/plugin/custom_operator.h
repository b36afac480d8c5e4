// SPDX-License-Identifier: Apache-2.0
//
// Operators for tests: lambdas behind the C callbacks, which count their releases.
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "pyflame_rt/custom.h"
#include "test/capi/client.h"

namespace pfrt_test {

struct TestOperator {
  explicit TestOperator(std::string operator_name, std::string operator_domain = "acme")
      : name(std::move(operator_name)), domain(std::move(operator_domain)) {
    c.struct_size = sizeof c;
    c.abi = PFRT_ABI_VERSION;
    c.min_inputs = 1;
    c.compute = [](void* user, const pfrt_op_compute* call) { return of(user)->compute(call); };
    c.release = [](void* user) {
      const std::unique_ptr<Self> self(static_cast<Self*>(user));
      if (**self) ++(**self)->released;
    };
  }
  // The environment may outlive the operator; what it releases then is not counted.
  ~TestOperator() { *self_ = nullptr; }
  TestOperator(const TestOperator&) = delete;
  TestOperator& operator=(const TestOperator&) = delete;

  Failure add_to(pfrt_env* env) {
    c.name = str(name);
    c.domain = str(domain);
    c.user = new Self(self_);
    if (infer)
      c.infer = [](void* user, const pfrt_op_infer* call) { return of(user)->infer(call); };
    if (create_state) {
      c.create_state = [](void* user, const pfrt_op_create* call, void** out_state) {
        return of(user)->create_state(call, out_state);
      };
      c.release_state = [](void* user, void* state) {
        TestOperator& self = *of(user);
        ++self.states_released;
        if (self.release_state) self.release_state(state);
      };
    }
    c.input_types = input_types.data();
    c.input_type_count = static_cast<uint32_t>(input_types.size());
    c.output_types = output_types.data();
    c.output_type_count = static_cast<uint32_t>(output_types.size());
    return take(api().env->register_operator(env, &c));
  }

  std::string name, domain;
  pfrt_custom_op c{};
  std::function<pfrt_code(const pfrt_op_infer*)> infer;  // empty: none
  std::function<pfrt_code(const pfrt_op_compute*)> compute;
  std::function<pfrt_code(const pfrt_op_create*, void**)> create_state;  // empty: none
  std::function<void(void*)> release_state;                              // empty: only counted
  std::vector<pfrt_dtype> input_types, output_types;
  std::atomic<int> released{0}, states_released{0};

 private:
  using Self = std::shared_ptr<TestOperator*>;
  static TestOperator* of(void* user) { return **static_cast<Self*>(user); }

  Self self_ = std::make_shared<TestOperator*>(this);
};

// Gives output 0 the type and shape of input 0.
inline pfrt_code infer_like_input(const pfrt_op_infer* call) {
  return call->set_output(call, 0, call->inputs[0].dtype, call->inputs[0].rank,
                          call->inputs[0].dims);
}

// Gives output 0 the shape of input 0 and |dtype|.
inline auto infer_shape_as(pfrt_dtype dtype) {
  return [dtype](const pfrt_op_infer* call) {
    return call->set_output(call, 0, dtype, call->inputs[0].rank, call->inputs[0].dims);
  };
}

inline uint64_t count_of(const pfrt_tensor& tensor) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < tensor.rank; ++i) count *= static_cast<uint64_t>(tensor.dims[i]);
  return count;
}

inline const pfrt_snapshot_attr* attribute(const pfrt_snapshot_node& node, uint32_t attr_size,
                                           std::string_view name) {
  for (uint64_t i = 0; i < node.attr_count; ++i) {
    const auto* attr = reinterpret_cast<const pfrt_snapshot_attr*>(
        reinterpret_cast<const char*>(node.attrs) + i * attr_size);
    if (text(attr->name) == name) return attr;
  }
  return nullptr;
}

// Computes y = factor * x on float32; the factor is 2 unless the node has an attribute for it.
inline pfrt_code compute_scaled(const pfrt_op_compute* call) {
  const pfrt_snapshot_attr* factor = attribute(*call->node, call->attr_size, "factor");
  const float f = factor ? factor->f : 2.0f;
  const auto* x = static_cast<const float*>(call->inputs[0].data);
  void* data = call->outputs[0].data;
  if (!call->outputs[0].dims) {
    const pfrt_code code = call->alloc_output(call, 0, call->inputs[0].dtype, call->inputs[0].dims,
                                              call->inputs[0].rank, &data);
    if (code != PFRT_CODE_OK) return code;
  }
  for (uint64_t i = 0; i < count_of(call->inputs[0]); ++i) static_cast<float*>(data)[i] = f * x[i];
  return PFRT_CODE_OK;
}

inline std::unique_ptr<TestOperator> scale_operator(bool with_infer = true) {
  auto op = std::make_unique<TestOperator>("Scale");
  if (with_infer) op->infer = infer_like_input;
  op->compute = compute_scaled;
  return op;
}

// y = Relu(Scale(x + 1)), x float32[N,3]; the Scale node is called "scaling".
GraphBuilder scale_graph(const std::vector<Attr>& attrs = {});
// A graph of a single node of |op|, called "n1", on x float32[N,3].
GraphBuilder one_node(const TestOperator& op, const std::vector<Attr>& attrs = {});
// Runs with values, those of a string included, and gives the first output.
Failure try_run_values(pfrt_session* session, const std::vector<pfrt_value*>& inputs,
                       Handle<pfrt_value>* output);
Handle<pfrt_value> texts_value(const std::vector<int64_t>& dims,
                               const std::vector<std::string>& texts);
std::vector<std::string> texts_of(const pfrt_value* value);
inline const Array kRow = floats({1, 3}, {-3, 0, 1});

}  // namespace pfrt_test
