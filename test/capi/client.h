// SPDX-License-Identifier: Apache-2.0
//
// Tools for tests of the C library: handles that release themselves, statuses as values, graphs and
// runs in a line each. They use the installed headers and the library alone, as any client does.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pyflame_rt/pyflame_rt.h"

namespace pfrt_test {

const pfrt_api& api();

int threads_now();  // number of threads of this process

inline pfrt_string str(std::string_view text) { return {text.data(), text.size()}; }
inline std::string text(pfrt_string s) {
  return s.size ? std::string(s.data, s.size) : std::string();
}

// The contents of a status, copied.
struct Failure {
  pfrt_code code = PFRT_CODE_OK;
  std::string message;
  std::vector<Failure> children;
  bool ok() const { return code == PFRT_CODE_OK; }
};
Failure take(pfrt_status* status);

// Expects success; a status is released.
testing::AssertionResult ok(Failure failure);
testing::AssertionResult ok(pfrt_status* status);
// Expects a failure with |code| and a message that has every one of |parts|.
testing::AssertionResult fails(const Failure& failure, pfrt_code code,
                               std::initializer_list<std::string_view> parts);
testing::AssertionResult fails(pfrt_status* status, pfrt_code code,
                               std::initializer_list<std::string_view> parts);

struct Releaser {
  void operator()(pfrt_options* p) const { api().options->release(p); }
  void operator()(pfrt_env* p) const { api().env->release(p); }
  void operator()(pfrt_value* p) const { api().value->release(p); }
  void operator()(pfrt_graph* p) const { api().graph->release(p); }
  void operator()(pfrt_model* p) const { api().model->release(p); }
  void operator()(pfrt_session* p) const { api().session->release(p); }
  void operator()(pfrt_report* p) const { api().report->release(p); }
};
template <typename T>
using Handle = std::unique_ptr<T, Releaser>;

using Settings = std::vector<std::pair<std::string_view, std::string_view>>;
Handle<pfrt_options> make_options(pfrt_options_kind kind, const Settings& settings = {});
// The settings of a run that a test gives, in the order of pfrt_run_desc.
struct RunSettings {
  pfrt_log_level log_level = PFRT_LOG_UNSET;
  const uint32_t* cancel = nullptr;  // written through std::atomic_ref
  int64_t timeout_ms = 0, num_threads = 0, priority = 0, memory_limit = 0;
  std::string_view tag = {};
  pfrt_run_flags flags = 0;
  pfrt_state* state = nullptr;
  pfrt_observe_fn observe = nullptr;
  void* observe_user = nullptr;
};
// RunDesc({.timeout_ms = 30}).get() is what runs take.
struct RunDesc : pfrt_run_desc {
  explicit RunDesc(const RunSettings& settings = {});
  const pfrt_run_desc* get() const { return this; }
};
// Creates an environment, without log lines unless |settings| ask for them.
Handle<pfrt_env> make_env(const Settings& settings = {});

template <typename T>
constexpr pfrt_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) return PFRT_DTYPE_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return PFRT_DTYPE_FLOAT64;
  if constexpr (std::is_same_v<T, int64_t>) return PFRT_DTYPE_INT64;
  if constexpr (std::is_same_v<T, int32_t>) return PFRT_DTYPE_INT32;
  if constexpr (std::is_same_v<T, uint8_t>) return PFRT_DTYPE_UINT8;
  if constexpr (std::is_same_v<T, bool>) return PFRT_DTYPE_BOOL;
  return PFRT_DTYPE_UNSET;
}

// A tensor in the test's own memory.
struct Array {
  pfrt_dtype dtype = PFRT_DTYPE_UNSET;
  std::vector<int64_t> dims;
  std::vector<char> bytes;

  pfrt_tensor view() const;
  pfrt_io io() const;
  template <typename T>
  std::vector<T> as() const {
    std::vector<T> out(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return out;
  }
};
template <typename T>
Array array(std::vector<int64_t> dims, const std::vector<T>& values) {
  Array a{dtype_of<T>(), std::move(dims), {}};
  a.bytes.resize(values.size() * sizeof(T));
  if (!a.bytes.empty()) std::memcpy(a.bytes.data(), values.data(), a.bytes.size());
  return a;
}
Array floats(std::vector<int64_t> dims, const std::vector<float>& values);
Array int64s(std::vector<int64_t> dims, const std::vector<int64_t>& values);
// |count| pseudo-random numbers in [-1, 1).
std::vector<float> random_floats(size_t count, uint32_t seed);
// Returns a float32 tensor of random_floats.
Array noise(std::vector<int64_t> dims, uint32_t seed);
// Copies a tensor value.
Array array_of(const pfrt_value* value);
Handle<pfrt_value> value_of(const Array& array);

// A dimension: a number, a name, or (empty name) unknown.
struct DimSpec {
  DimSpec(int64_t n) : size(n) {}                // NOLINT(google-explicit-constructor)
  DimSpec(const char* n) : size(-1), name(n) {}  // NOLINT(google-explicit-constructor)
  int64_t size;
  std::string name;
};

struct Attr {
  std::string name;
  pfrt_attr_type type = PFRT_ATTR_UNSET;
  int64_t i = 0;
  float f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<std::string> strings;
  pfrt_graph* graph = nullptr;
  pfrt_value* tensor = nullptr;

  static Attr of_int(std::string name, int64_t value);
  static Attr of_float(std::string name, float value);
  static Attr of_string(std::string name, std::string value);
  static Attr of_ints(std::string name, std::vector<int64_t> values);
  static Attr of_graph(std::string name, pfrt_graph* graph);
};

// A graph under construction. Every call is expected to succeed, except try_node.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string_view name = "g");
  GraphBuilder(GraphBuilder& outer, std::string_view name);  // a body
  pfrt_graph* get() const { return graph_.get(); }

  void opset(int64_t version, std::string_view domain = "");
  void input(std::string_view name, pfrt_dtype dtype, const std::vector<DimSpec>& dims);
  void output(std::string_view name);
  void constant(std::string_view name, const Array& value);
  uint32_t node(std::string_view op, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::vector<Attr>& attrs = {},
                std::string_view name = {}, std::string_view domain = {});
  Failure try_node(std::string_view op, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs, const std::vector<Attr>& attrs = {},
                   std::string_view name = {}, std::string_view domain = {},
                   uint32_t* out_id = nullptr);

 private:
  Handle<pfrt_graph> graph_;
};

Handle<pfrt_model> make_model(pfrt_env* env, const GraphBuilder& graph);
Failure try_model(pfrt_env* env, const GraphBuilder& graph);
Handle<pfrt_session> make_session(pfrt_env* env, pfrt_model* model,
                                  const pfrt_options* options = nullptr,
                                  const std::vector<std::string>& extra = {});
Handle<pfrt_session> make_session(pfrt_env* env, const GraphBuilder& graph,
                                  const pfrt_options* options = nullptr,
                                  const std::vector<std::string>& extra = {});
Failure try_session(pfrt_env* env, pfrt_model* model, const pfrt_options* options = nullptr,
                    const std::vector<std::string>& extra = {});
Failure try_session(pfrt_env* env, const GraphBuilder& graph, const pfrt_options* options = nullptr,
                    const std::vector<std::string>& extra = {});

// Names of the session's providers that are in use.
std::vector<std::string> providers_of(const pfrt_session* session);

// Runs with inputs in session order; outputs are allocated by the run and copied.
Failure try_run(pfrt_session* session, const std::vector<Array>& inputs,
                std::vector<Array>* outputs = nullptr, const pfrt_run_desc* desc = nullptr);
std::vector<Array> run(pfrt_session* session, const std::vector<Array>& inputs,
                       const pfrt_run_desc* desc = nullptr);

// y = x + b, with x float32[N,3] and b = {1, 2, 3}: the smallest network that computes something.
GraphBuilder add_graph();

// y = x W, repeated so often that a run can be stopped in the middle.
GraphBuilder slow_graph();

// h = x W, y = h W with x float32[N,512]; with 512 rows each value takes 1 MiB.
GraphBuilder two_products();

}  // namespace pfrt_test
