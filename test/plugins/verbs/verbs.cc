// SPDX-License-Identifier: Apache-2.0
//
// A provider that answers questions, counts, and has a fingerprint. The verb of a question, and its
// options "report" and "fingerprint", say what it does badly, and the host has to cope. Option
// "build" is part of the fingerprint.
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/plugins/compile_each.h"
#include "test/plugins/elementwise.h"

namespace verbs {
namespace {

using elementwise::text;

std::string_view view(pfrt_string s) {
  return s.data ? std::string_view(s.data, s.size) : std::string_view();
}

struct Provider {
  std::map<std::string, std::string, std::less<>> options;
  std::string device, fingerprint;

  std::string_view option(std::string_view key) const {
    const auto at = options.find(key);
    return at == options.end() ? std::string_view() : at->second;
  }
};

struct Executable {
  Provider* provider;
  elementwise::Region region;
};

// The base comes first, since fill() and the host use pointers to it.
struct Program : elementwise::Program {
  std::atomic<int> steps_run{0};
};

Provider& of(pfrt_provider* p) { return *reinterpret_cast<Provider*>(p); }
Executable& of(pfrt_executable* e) { return *reinterpret_cast<Executable*>(e); }

pfrt_code fail(const pfrt_sink* sink, pfrt_code code, std::string_view why) {
  return sink->fail(sink, code, PFRT_NO_INDEX, text(why));
}

pfrt_code open(pfrt_string device, const pfrt_key_value* options, size_t count,
               const pfrt_sink* sink, pfrt_provider** out) {
  *out = nullptr;
  auto p = std::make_unique<Provider>();
  p->device = view(device);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key = view(options[i].key);
    if (key != "build" && key != "report" && key != "fingerprint")
      return fail(sink, PFRT_CODE_INVALID_ARGUMENT, "an option that it does not have");
    p->options.emplace(key, view(options[i].value));
  }
  p->fingerprint = "verbs of " + p->device + ", build " + std::string(p->option("build"));
  *out = reinterpret_cast<pfrt_provider*>(p.release());
  return PFRT_CODE_OK;
}

void close(pfrt_provider* p) { delete &of(p); }

pfrt_code claim(pfrt_provider*, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink*) {
  for (uint32_t n = 0; n < snapshot->node_count; ++n) {
    if (elementwise::find(*snapshot, n)) {
      claims->accept(claims, n, 0, 0);
    } else {
      claims->refuse(claims, n, text("not one of its operators"));
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code compile_one(pfrt_provider* p, const pfrt_region* region, const pfrt_sink*,
                      pfrt_executable** out) {
  auto made = std::make_unique<Executable>(Executable{&of(p), elementwise::Region(*region)});
  *out = reinterpret_cast<pfrt_executable*>(made.release());
  return PFRT_CODE_OK;
}

void release_executable(pfrt_executable* e) { delete &of(e); }

pfrt_code run(void* state, const pfrt_step_context* context) {
  const auto& step = *static_cast<const elementwise::Step*>(state);
  step.compute(context->buffers);
  ++static_cast<Program*>(step.owner)->steps_run;
  return PFRT_CODE_OK;
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink*,
                     pfrt_program* out) {
  auto program = std::make_unique<Program>();
  auto plain = of(e).region.specialise(*shapes, PFRT_MEMORY_HOST, run, program.get());
  static_cast<elementwise::Program&>(*program) = std::move(*plain);
  elementwise::fill(program.release(), out);
  return PFRT_CODE_OK;
}

void release_program(pfrt_executable*, pfrt_program* program) {
  delete static_cast<Program*>(static_cast<elementwise::Program*>(program->handle));
}

// ---- report ----

pfrt_code report(pfrt_executable* e, const pfrt_program* program, const pfrt_counters* counters,
                 const pfrt_sink* sink) {
  const auto& p =
      static_cast<const Program&>(*static_cast<const elementwise::Program*>(program->handle));
  const std::string_view how = of(e).provider->option("report");
  if (how == "throws") throw std::runtime_error("report threw this");
  if (how == "fails") return fail(sink, PFRT_CODE_DEVICE_LOST, "the counters are gone");
  if (how == "nameless") counters->add(counters, {nullptr, 5}, 1, text("cycles"), 0);
  if (how == "step") counters->add(counters, text("cycles"), 1, {}, program->step_count);
  if (how == "odd") {
    counters->add(counters, text("\xff\xfe odd"), std::numeric_limits<double>::quiet_NaN(),
                  {nullptr, 7}, 0);
    counters->add(counters, text("endless"), std::numeric_limits<double>::infinity(), text("\xc3"),
                  PFRT_NO_INDEX);
  }
  if (p.steps_run == 0) return PFRT_CODE_OK;
  counters->add(counters, text("cycles"), 1, text("cycles"), 0);
  counters->add(counters, text("cycles"), 40, text("cycles"), 0);  // the later value counts
  counters->add(counters, text("steps run"), p.steps_run, {}, PFRT_NO_INDEX);
  return PFRT_CODE_OK;
}

// ---- fingerprint ----

pfrt_code fingerprint(pfrt_provider* p, const pfrt_sink* sink, pfrt_string* out) {
  const std::string_view how = of(p).option("fingerprint");
  if (how == "throws") throw std::runtime_error("fingerprint threw this");
  if (how == "fails") return fail(sink, PFRT_CODE_PROVIDER, "nobody knows it");
  *out = text(of(p).fingerprint);
  if (how == "empty") out->size = 0;
  if (how == "null") out->data = nullptr;
  if (how == "long") out->size = 1u << 20;  // must not be read
  return PFRT_CODE_OK;
}

// ---- ask ----

// Answers with a tensor that the host must refuse, or must take unchanged; |how| says which.
void answer_tensor(std::string_view how, const pfrt_answer* answer) {
  static const float kData[] = {1, 2};
  static const int64_t kDims[] = {2}, kNegative[] = {-2}, kHuge[] = {int64_t{1} << 62, 8};
  static const pfrt_string kTexts[] = {{nullptr, 3}, {"\xff", 1}};
  static pfrt_quantization quantization{};
  pfrt_tensor t{};
  t.struct_size = sizeof t;
  t.dtype = PFRT_DTYPE_FLOAT32;
  t.rank = 1;
  t.data = const_cast<float*>(kData);
  t.bytes = sizeof kData;
  t.dims = kDims;
  if (how == "null") return answer->tensor(answer, text("a"), nullptr);
  if (how == "nameless") return answer->tensor(answer, {nullptr, 4}, &t);
  if (how == "size") t.struct_size = 8;
  if (how == "rank") t.rank = 1000000;
  if (how == "dims") t.dims = nullptr;
  if (how == "negative") t.dims = kNegative;
  if (how == "huge") t.dims = kHuge, t.rank = 2;
  if (how == "bytes") t.bytes = 4;
  if (how == "dtype") t.dtype = 250;
  if (how == "data") t.data = nullptr;
  if (how == "device") t.memory = PFRT_MEMORY_DEVICE;
  if (how == "strides") t.strides = kDims;
  if (how == "quantized") t.quantization = &quantization;
  if (how == "texts") {
    t.dtype = PFRT_DTYPE_STRING;
    t.data = const_cast<pfrt_string*>(kTexts);
    t.bytes = sizeof kTexts;
  }
  answer->tensor(answer, text("a"), &t);
  if (how == "twice") answer->tensor(answer, text("a"), &t);
}

pfrt_code echo(const pfrt_question& question, const pfrt_answer* answer) {
  answer->text(answer, question.request);
  answer->text(answer, {nullptr, 100});
  answer->text(answer, text("."));
  for (size_t i = 0; i < question.tensor_count; ++i) {
    const std::string name = "t" + std::to_string(i);
    const void* t = pfrt_at(question.tensors, question.tensor_size, i);
    answer->tensor(answer, text(name), static_cast<const pfrt_tensor*>(t));
  }
  return PFRT_CODE_OK;
}

// Answers with a made-up rate, in an answer that is damaged where the request says so.
pfrt_code measure(const pfrt_question& question, const pfrt_answer* answer, const pfrt_sink* sink) {
  const std::string_view request = view(question.request);
  for (const double done : {0.5, 1.0}) {
    sink->progress(sink, done);
    if (const pfrt_code code = sink->stop(sink)) return code;
  }
  const pfrt_string name = text("ticks"), unit = text("GOP/s"), note = question.request;
  const int64_t one = 1, threads = question.threads;
  const double median = 1, best = 2;
  const auto give = [&](const char* key, pfrt_dtype dtype, const void* data, size_t bytes) {
    pfrt_tensor t{};
    t.struct_size = sizeof t;
    t.dtype = dtype;
    t.rank = 1;
    t.data = const_cast<void*>(data);
    t.bytes = bytes;
    t.dims = &one;
    if (request != std::string("only=no ") + key) answer->tensor(answer, text(key), &t);
  };
  give("name", PFRT_DTYPE_STRING, &name, sizeof name);
  give("unit", PFRT_DTYPE_STRING, &unit, sizeof unit);
  give("note", PFRT_DTYPE_STRING, &note, sizeof note);
  give("threads", PFRT_DTYPE_INT64, &threads, sizeof threads);
  give("median", PFRT_DTYPE_FLOAT64, &median, sizeof median);
  if (request == "only=other type") {
    give("best", PFRT_DTYPE_INT64, &one, sizeof one);
  } else if (request == "only=too short") {
    pfrt_tensor none{};
    none.struct_size = sizeof none;
    none.dtype = PFRT_DTYPE_FLOAT64;
    none.rank = 1;
    const int64_t zero = 0;
    none.dims = &zero;
    answer->tensor(answer, text("best"), &none);
  } else {
    give("best", PFRT_DTYPE_FLOAT64, &best, sizeof best);
  }
  return PFRT_CODE_OK;
}

// Waits until it is told to stop.
pfrt_code wait(const pfrt_sink* sink) {
  double done = 0;
  sink->progress(sink, std::numeric_limits<double>::quiet_NaN());
  for (;;) {
    if (const pfrt_code code = sink->stop(sink)) return code;
    sink->progress(sink, done += 0.25);  // beyond 1, too
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

pfrt_code ask(pfrt_provider* p, const pfrt_question* question, const pfrt_answer* answer,
              const pfrt_sink* sink) {
  const std::string_view verb = view(question->verb);
  if (verb == "echo") return echo(*question, answer);
  if (verb == "who") return answer->text(answer, text(of(p).fingerprint)), PFRT_CODE_OK;
  if (verb == "wait") return wait(sink);
  if (verb == "measure") return measure(*question, answer, sink);
  if (verb == "answer") return answer_tensor(view(question->request), answer), PFRT_CODE_OK;
  if (verb == "bytes") return answer->text(answer, text("\xff\xfe\x80")), PFRT_CODE_OK;
  if (verb == "refuse") return fail(sink, PFRT_CODE_INVALID_ARGUMENT, "not like this");
  if (verb == "silent") return PFRT_CODE_PROVIDER;
  if (verb == "lose") return fail(sink, PFRT_CODE_DEVICE_LOST, "it is gone");
  if (verb == "new code") return fail(sink, 4711, "what a later version says");
  if (verb == "throw") throw std::runtime_error("ask threw this");
  if (verb == "throw a number") throw 7;
  return fail(sink, PFRT_CODE_UNSUPPORTED, "it knows echo, who, wait and a few more");
}

// Member by member, so that a member of a later header stays zero, which is "not there".
constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof(pfrt_provider_table);
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"verbs,words", 11};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = pfrt_test::compile_each<compile_one, release_executable>;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  table.report = report;
  table.fingerprint = fingerprint;
  table.ask = ask;
  return table;
}();

}  // namespace
}  // namespace verbs

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  return elementwise::describe(host, out, "VerbsExecutionProvider",
                               PFRT_PROVIDER_REPORT | PFRT_PROVIDER_FINGERPRINT | PFRT_PROVIDER_ASK,
                               &verbs::kTable);
}
