// SPDX-License-Identifier: Apache-2.0
//
// Load, run, explain and save of models with the n-th allocation failing, for every n or many: each
// time the outcome is a success with the right results or OUT_OF_MEMORY, nothing is left behind,
// and the environment works as before. Within what is measured the test itself allocates nothing.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "pyflame_rt/custom.h"
#include "test/allocation/failing_allocator.h"
#include "test/hosts/models.h"

namespace {

const pfrt_api& api() {
  static const pfrt_api* const table = pfrt_get_api(PFRT_ABI_VERSION, nullptr);
  return *table;
}

pfrt_string str(std::string_view text) { return {text.data(), text.size()}; }

struct Port {
  pfrt_dtype dtype;
  std::array<int64_t, 4> dims;
  uint32_t rank;
  void* data;
  uint64_t bytes;
  pfrt_io io() const {
    pfrt_io out{};
    out.struct_size = sizeof out;
    out.tensor.struct_size = sizeof(pfrt_tensor);
    out.tensor.dtype = dtype;
    out.tensor.rank = rank;
    out.tensor.dims = dims.data();
    out.tensor.data = data;
    out.tensor.bytes = bytes;
    return out;
  }
};

// ---- operators of the model "registered" ----

pfrt_code infer_texts(void*, const pfrt_op_infer* call) {
  const bool marks = call->input_count == 1;
  return call->set_output(call, 0, PFRT_DTYPE_STRING, marks ? call->inputs[0].rank : -1,
                          call->inputs[0].dims);
}

// The state of Repeat is a number, that of Mark the length and bytes of a text.
pfrt_code create_state(void*, const pfrt_op_create* call, void** out_state) {
  const bool marks = call->input_count == 1;
  auto* const state = static_cast<int64_t*>(std::malloc(64));
  if (!state) return PFRT_CODE_OUT_OF_MEMORY;
  *state = marks ? static_cast<int64_t>(call->node->attrs[0].s.size)
                 : *static_cast<const int64_t*>(call->inputs[1].data);
  if (marks) std::memcpy(state + 1, call->node->attrs[0].s.data, static_cast<size_t>(*state));
  *out_state = state;
  return PFRT_CODE_OK;
}

void release_state(void*, void* state) { std::free(state); }

pfrt_code repeat(void*, const pfrt_op_compute* call) {
  const int64_t words = call->inputs[0].dims[0], times = *static_cast<int64_t*>(call->state);
  const int64_t count = words * times;
  void* out = nullptr;
  pfrt_code code = call->alloc_output(call, 0, PFRT_DTYPE_STRING, &count, 1, &out);
  const auto* const texts = static_cast<const pfrt_string*>(call->inputs[0].data);
  for (int64_t i = 0; i < times && code == PFRT_CODE_OK; ++i)
    code = call->set_strings(call, 0, static_cast<uint64_t>(i * words), texts,
                             static_cast<uint64_t>(words));
  return code;
}

pfrt_code mark(void*, const pfrt_op_compute* call) {
  const auto* const state = static_cast<const int64_t*>(call->state);
  for (int64_t i = 0; i < call->inputs[0].dims[0]; ++i) {
    const pfrt_string text = static_cast<const pfrt_string*>(call->inputs[0].data)[i];
    std::array<char, 64> marked;
    std::memcpy(marked.data(), text.data, text.size);
    std::memcpy(marked.data() + text.size, state + 1, static_cast<size_t>(*state));
    const pfrt_string whole = {marked.data(), text.size + static_cast<size_t>(*state)};
    if (const pfrt_code code = call->set_strings(call, 0, static_cast<uint64_t>(i), &whole, 1))
      return code;
  }
  return PFRT_CODE_OK;
}

pfrt_status* register_operators(pfrt_env* env) {
  static constexpr pfrt_dtype kTypes[] = {PFRT_DTYPE_STRING, PFRT_DTYPE_INT64};
  pfrt_custom_op op{};
  op.struct_size = sizeof op;
  op.name = str("Repeat");
  op.domain = str("acme");
  op.min_inputs = op.input_type_count = 2;
  op.input_types = op.output_types = kTypes;
  op.output_type_count = 1;
  op.flags = PFRT_OP_DATA_DEPENDENT;
  op.infer = infer_texts;
  op.compute = repeat;
  op.create_state = create_state;
  op.release_state = release_state;
  if (pfrt_status* status = api().env->register_operator(env, &op)) return status;
  op.name = str("Mark");
  op.min_inputs = op.input_type_count = 1;
  op.flags = 0;
  op.compute = mark;
  return api().env->register_operator(env, &op);
}

struct Case {
  bool operators = false;  // the environment needs those above
  const char* name;
  std::string path, save_to;
  std::vector<Port> inputs;
  size_t outputs = 0;
};

// Copies the data of |value|, strings one after another; returns the bytes written.
size_t copy_out(const pfrt_value* value, char* to, size_t room) {
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  if (pfrt_status* status = api().value->tensor(value, &t)) {
    api().status->release(status);
    return 0;
  }
  if (t.dtype != PFRT_DTYPE_STRING) {
    const size_t n = std::min<size_t>(room, t.bytes);
    std::memcpy(to, t.data, n);
    return n;
  }
  size_t at = 0;
  const auto* texts = static_cast<const pfrt_string*>(t.data);
  for (int64_t i = 0; i < (t.rank ? t.dims[0] : 1); ++i) {
    const size_t n = std::min(room - at, texts[i].size);
    std::memcpy(to + at, texts[i].data, n);
    at += n;
  }
  return at;
}

struct Outcome {
  pfrt_code code = PFRT_CODE_OK;
  const char* stage = "";
  std::array<char, 200> message{};
  std::array<char, 1024> results{};
  size_t result_bytes = 0;

  bool failed(const char* where, pfrt_status* status) {
    if (!status) return false;
    stage = where;
    code = api().status->code(status);
    const pfrt_string text = api().status->message(status);
    std::memcpy(message.data(), text.data, std::min(text.size, message.size() - 1));
    api().status->release(status);
    return true;
  }
};

Outcome work(pfrt_env* env, const Case& c, const pfrt_options* options) {
  Outcome out;
  pfrt_model* model = nullptr;
  pfrt_session* session = nullptr;
  pfrt_report* report = nullptr;
  std::array<pfrt_io, 4> inputs{}, outputs{};
  for (size_t i = 0; i < c.inputs.size(); ++i) inputs[i] = c.inputs[i].io();
  for (size_t i = 0; i < c.outputs; ++i) outputs[i].struct_size = sizeof(pfrt_io);
  const auto all = [&] {
    if (out.failed("load", api().model->load_file(env, str(c.path), nullptr, &model))) return;
    pfrt_session_desc desc{};
    desc.struct_size = sizeof desc;
    desc.model = model;
    desc.options = options;
    if (out.failed("session", api().session->create(env, &desc, &session))) return;
    if (out.failed("run", api().session->run(session, inputs.data(), c.inputs.size(),
                                             outputs.data(), c.outputs, nullptr)))
      return;
    if (out.failed("explain", api().session->explain(session, &report))) return;
    if (out.failed("save", api().model->save(env, model, str(c.save_to), nullptr))) return;
  };
  all();
  for (size_t i = 0; i < c.outputs; ++i) {
    if (outputs[i].value)
      out.result_bytes += copy_out(outputs[i].value, out.results.data() + out.result_bytes,
                                   out.results.size() - out.result_bytes);
    api().value->release(outputs[i].value);
  }
  api().report->release(report);
  api().session->release(session);
  api().model->release(model);
  return out;
}

// Does the same in an environment that it creates and releases.
Outcome work_alone(const Case& c, const pfrt_options* env_options, const pfrt_options* options) {
  Outcome out;
  pfrt_env* env = nullptr;
  if (out.failed("environment", api().env->create(env_options, &env))) return out;
  if (!c.operators || !out.failed("operators", register_operators(env)))
    out = work(env, c, options);
  api().env->release(env);
  return out;
}

testing::AssertionResult as_expected(const Outcome& got, const Outcome& expected) {
  if (got.code == PFRT_CODE_OK) {
    if (got.result_bytes == expected.result_bytes && got.results == expected.results)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << "success with other results";
  }
  if (got.code == PFRT_CODE_OUT_OF_MEMORY && got.message[0]) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << got.stage << " failed with code " << got.code << ": " << got.message.data();
}

class AllocationFailure : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("pfrt_allocation_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    case_.name = GetParam();
    const bool control = GetParam() == std::string_view("control");
    const bool tuned = GetParam() == std::string_view("tuned");
    case_.operators = GetParam() == std::string_view("registered");
    const std::string onnx = folder_ / "model.onnx";
    std::ofstream(onnx, std::ios::binary) << (control           ? pfrt_models::control()
                                              : tuned           ? pfrt_models::divided()
                                              : case_.operators ? pfrt_models::registered()
                                                                : pfrt_models::layers());
    case_.path = onnx;
    case_.save_to = folder_ / (control ? "saved.pfm" : "saved.onnx");
    if (control) {
      case_.inputs = {{PFRT_DTYPE_FLOAT32, {1, 3}, 2, x_.data(), 12},
                      {PFRT_DTYPE_BOOL, {}, 0, &flag_, 1},
                      {PFRT_DTYPE_STRING, {2}, 1, words_, sizeof words_}};
      case_.outputs = 3;
    } else if (case_.operators) {
      case_.inputs = {{PFRT_DTYPE_STRING, {2}, 1, words_, sizeof words_}};
      case_.outputs = 1;
    } else {
      const auto side = tuned ? 24 : 8, channels = tuned ? 16 : 3;
      x_ = pfrt_models::numbers(static_cast<size_t>(channels * side * side), 9);
      case_.inputs = {{PFRT_DTYPE_FLOAT32, {1, channels, side, side}, 4, x_.data(), 4 * x_.size()}};
      case_.outputs = 1;
    }
    pfrt_options* made = nullptr;
    ASSERT_EQ(api().options->create(PFRT_OPTIONS_ENV, &made), nullptr);
    ASSERT_EQ(api().options->set_text(made, str("log_level"), str("off")), nullptr);
    env_options_ = made;
    options_ = session_options("1");
    if (tuned) {
      ASSERT_EQ(api().options->set_text(options_, str("tune"), str("on")), nullptr);
    }
    if (GetParam() == std::string_view("pfm")) {
      in_child([&] {
        Case first = case_;
        first.save_to = folder_ / "model.pfm";
        return work_alone(first, env_options_, options_).code;
      });
      case_.path = folder_ / "model.pfm";
      case_.save_to = folder_ / "saved.pfm";
    }
  }
  void TearDown() override {
    api().options->release(env_options_);
    api().options->release(options_);
    std::filesystem::remove_all(folder_);
  }

  static pfrt_options* session_options(std::string_view threads) {
    pfrt_options* made = nullptr;
    EXPECT_EQ(api().options->create(PFRT_OPTIONS_SESSION, &made), nullptr);
    EXPECT_EQ(api().options->set_text(made, str("num_threads"), str(threads)), nullptr);
    return made;
  }

  // Runs |fn| in a child; false with a note when it ends with anything but 0.
  template <typename Fn>
  static testing::AssertionResult in_child(Fn fn) {
    const pid_t child = fork();
    if (child == 0) _exit(fn() == 0 ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) return testing::AssertionSuccess();
    return testing::AssertionFailure()
           << (WIFSIGNALED(status) ? "signal " : "exit code ")
           << (WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }

  size_t leftovers() const {
    size_t files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
    return files;
  }

  // Uses a single environment for all failures. Every third request fails, or each with
  // PFRT_ALLOCATION_ALL.
  void sweep_warm(bool lasting) {
    const uint64_t step = std::getenv("PFRT_ALLOCATION_ALL") ? 1 : 3;
    pfrt_env* env = nullptr;
    ASSERT_EQ(api().env->create(env_options_, &env), nullptr);
    if (case_.operators) {
      ASSERT_EQ(register_operators(env), nullptr);
    }
    // Everything that is made once and kept is made here.
    failing::arm(1, false);
    EXPECT_EQ(work(env, case_, options_).code, PFRT_CODE_OUT_OF_MEMORY);
    failing::disarm();
    (void)work(env, case_, options_);
    const Outcome expected = work(env, case_, options_);
    ASSERT_EQ(expected.code, PFRT_CODE_OK) << expected.stage << ": " << expected.message.data();
    ASSERT_GT(expected.result_bytes, 0u);
    const size_t files = leftovers();
    uint64_t n = 1;
    for (bool reached = true; reached && !HasFailure(); n += step) {
      const int64_t live = failing::live();
      failing::arm(n, lasting);
      const Outcome got = work(env, case_, options_);
      reached = failing::disarm();
      const int64_t left = failing::live() - live;
      EXPECT_TRUE(as_expected(got, expected)) << "request " << n;
      EXPECT_EQ(left, 0) << "request " << n << ", " << got.stage;
      if (n % 16 != 1 && reached) continue;
      const Outcome after = work(env, case_, options_);
      EXPECT_EQ(after.code, PFRT_CODE_OK)
          << "after request " << n << " failed: " << after.message.data();
      EXPECT_TRUE(as_expected(after, expected));
      EXPECT_EQ(leftovers(), files) << "request " << n;
    }
    RecordProperty("requests", static_cast<int>(n));
    EXPECT_GT(n, 100u);
    api().env->release(env);
  }

  // Uses a process for each failure, which opens its environment and plug-ins itself and must work
  // again afterwards. Every |usual|-th request fails, or each with PFRT_ALLOCATION_ALL.
  void sweep_cold(bool lasting, uint64_t usual) {
    const uint64_t step = std::getenv("PFRT_ALLOCATION_ALL") ? 1 : usual;
    uint64_t n = 1;
    for (bool reached = true; reached && !HasFailure(); n += step) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      EXPECT_TRUE(in_child([&] {
        failing::arm(n, lasting);
        const Outcome got = work_alone(case_, env_options_, options_);
        const char failed = failing::disarm() ? 1 : 0;
        if (write(ends[1], &failed, 1) != 1) return 1;
        const Outcome after = work_alone(case_, env_options_, options_);
        if (after.code != PFRT_CODE_OK)
          std::fprintf(stderr, "afterwards %s: %s\n", after.stage, after.message.data());
        const auto verdict = as_expected(got, after);
        if (!verdict) std::fprintf(stderr, "%s\n", verdict.message());
        return after.code == PFRT_CODE_OK && verdict ? 0 : 1;
      })) << "request "
          << n;
      char failed = 0;
      close(ends[1]);
      if (read(ends[0], &failed, 1) != 1) failed = 1;  // it crashed
      close(ends[0]);
      reached = failed != 0;
    }
    RecordProperty("requests", static_cast<int>(n));
    EXPECT_GT(n, 100u);
  }

  std::filesystem::path folder_;
  Case case_;
  pfrt_options *env_options_ = nullptr, *options_ = nullptr;
  std::vector<float> x_ = pfrt_models::numbers(192, 9);
  uint8_t flag_ = 1;
  pfrt_string words_[2] = {{"Some", 4}, {"WORDS, longer than short strings", 32}};
};

TEST_P(AllocationFailure, of_one_request_is_an_error_or_unnoticed) { sweep_warm(false); }
TEST_P(AllocationFailure, that_lasts_is_an_error) { sweep_warm(true); }
TEST_P(AllocationFailure, of_one_request_while_everything_is_opened) { sweep_cold(false, 7); }
TEST_P(AllocationFailure, that_lasts_from_the_opening) { sweep_cold(true, 7); }

INSTANTIATE_TEST_SUITE_P(Models, AllocationFailure,
                         testing::Values("layers", "control", "pfm", "registered"),
                         [](const auto& row) { return std::string(row.param); });

// Each process measures its steps anew, which takes long.
class TunedAllocationFailure : public AllocationFailure {};

TEST_P(TunedAllocationFailure, of_one_request_is_an_error_or_unnoticed) { sweep_cold(false, 11); }
TEST_P(TunedAllocationFailure, that_lasts_is_an_error) { sweep_cold(true, 11); }

INSTANTIATE_TEST_SUITE_P(Models, TunedAllocationFailure, testing::Values("tuned"),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
