// SPDX-License-Identifier: Apache-2.0
//
// A provider that fails when its options say so, and works otherwise. |stage| is the call that
// fails, |code| its error; it fails after |after| calls that succeed, |times| times (0 = from then
// on). A step that fails has already spoilt its output; with |throws|, a body of its loop throws.
// With |delay_ms| the call takes so long and then succeeds. |alignment| is that of temporaries.
#include "test/plugins/fault/fault.h"

#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "test/plugins/compile_each.h"
#include "test/plugins/elementwise.h"

namespace fault {
namespace {

constexpr std::string_view kStageNames[] = {"open", "claim", "compile", "specialise", "run"};

struct CodeName {
  std::string_view name;
  pfrt_code code;
};
constexpr CodeName kCodes[] = {
    {"provider", PFRT_CODE_PROVIDER},
    {"internal", PFRT_CODE_INTERNAL},
    {"unsupported", PFRT_CODE_UNSUPPORTED},
    {"device_lost", PFRT_CODE_DEVICE_LOST},
    {"out_of_memory", PFRT_CODE_OUT_OF_MEMORY},
    {"invalid_argument", PFRT_CODE_INVALID_ARGUMENT},
    {"shape_mismatch", PFRT_CODE_SHAPE_MISMATCH},
    {"cancelled", PFRT_CODE_CANCELLED},
    {"deadline", PFRT_CODE_DEADLINE},
    {"new", 4711},  // a code of a later version
};

struct OptionRow {
  std::string_view key;
  pfrt_option_type type;
  std::string_view default_value, choices;
};
constexpr OptionRow kOptions[] = {
    {"stage", PFRT_OPTION_STRING, "none", "none open claim compile specialise run"},
    {"code", PFRT_OPTION_STRING, "provider",
     "provider internal unsupported device_lost out_of_memory invalid_argument shape_mismatch "
     "cancelled deadline new"},
    {"after", PFRT_OPTION_INT, "0", ""},
    {"times", PFRT_OPTION_INT, "0", ""},
    {"name_node", PFRT_OPTION_BOOL, "false", ""},  // compile names the node at fault
    {"counters", PFRT_OPTION_INT, "0", ""},
    {"delay_ms", PFRT_OPTION_INT, "0", ""},
    {"throws", PFRT_OPTION_BOOL, "false", ""},
    {"alignment", PFRT_OPTION_INT, "64", ""},
};

struct Provider {
  Counters own;
  Counters* counters = &own;
  std::string_view stage = "none";
  pfrt_code code = PFRT_CODE_PROVIDER;
  int64_t after = 0, times = 0, delay_ms = 0, alignment = 64;
  bool name_node = false, throws = false;

  bool fails(Stage now) {
    const int64_t n = counters->calls[now]++;
    if (stage != kStageNames[now] || n < after || (times && n >= after + times)) return false;
    ++counters->injected;
    if (delay_ms) std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    return delay_ms == 0;
  }
};

struct Executable {
  Provider* provider;
  elementwise::Region region;
};

using elementwise::text;

Provider& of(pfrt_provider* p) { return *reinterpret_cast<Provider*>(p); }
Executable& of(pfrt_executable* e) { return *reinterpret_cast<Executable*>(e); }

pfrt_code fail(const pfrt_sink* sink, pfrt_code code, Stage stage, uint32_t node = PFRT_NO_INDEX) {
  const std::string said = "injected fault in " + std::string(kStageNames[stage]);
  return sink->fail(sink, code, node, text(said));
}

pfrt_code open(pfrt_string, const pfrt_key_value* options, size_t count, const pfrt_sink* sink,
               pfrt_provider** out) {
  *out = nullptr;
  auto p = std::make_unique<Provider>();
  for (size_t i = 0; i < count; ++i) {
    const std::string_view key(options[i].key.data, options[i].key.size);
    const std::string_view value(options[i].value.data, options[i].value.size);
    int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    if (key == "stage")
      for (std::string_view name : kStageNames)
        if (name == value) p->stage = name;
    if (key == "code")
      for (const CodeName& c : kCodes)
        if (c.name == value) p->code = c.code;
    if (key == "delay_ms") p->delay_ms = number;
    if (key == "alignment") p->alignment = number;
    if (key == "after") p->after = number;
    if (key == "times") p->times = number;
    if (key == "throws") p->throws = value == "true";
    if (key == "name_node") p->name_node = value == "true";
    if (key == "counters" && number) p->counters = reinterpret_cast<Counters*>(number);
  }
  if (p->fails(kOpen)) return fail(sink, p->code, kOpen);
  *out = reinterpret_cast<pfrt_provider*>(p.release());
  return PFRT_CODE_OK;
}

void close(pfrt_provider* p) {
  ++of(p).counters->closes;
  delete &of(p);
}

pfrt_code claim(pfrt_provider* p, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                const pfrt_sink* sink) {
  if (of(p).fails(kClaim)) return fail(sink, of(p).code, kClaim);
  for (uint32_t n = 0; n < snapshot->node_count; ++n) {
    if (elementwise::find(*snapshot, n)) {
      claims->accept(claims, n, 0, 0);
    } else {
      claims->refuse(claims, n, text("not one of four operators"));
    }
  }
  return PFRT_CODE_OK;
}

pfrt_code compile_one(pfrt_provider* p, const pfrt_region* region, const pfrt_sink* sink,
                      pfrt_executable** out) {
  *out = nullptr;
  if (of(p).fails(kCompile))
    return fail(sink, of(p).code, kCompile, of(p).name_node ? region->nodes[0] : PFRT_NO_INDEX);
  ++of(p).counters->executables;
  *out = reinterpret_cast<pfrt_executable*>(new Executable{&of(p), elementwise::Region(*region)});
  return PFRT_CODE_OK;
}

void release_executable(pfrt_executable* e) {
  --of(e).provider->counters->executables;
  delete &of(e);
}

pfrt_code run(void* state, const pfrt_step_context* context) {
  const auto& step = *static_cast<const elementwise::Step*>(state);
  Provider& provider = *static_cast<Provider*>(step.owner);
  const auto address = reinterpret_cast<intptr_t>(context->buffers[step.write]);
  if (address % provider.alignment == 0) ++provider.counters->aligned;
  if (!provider.fails(kRun)) {
    step.compute(context->buffers);
    return PFRT_CODE_OK;
  }
  auto* out = static_cast<float*>(context->buffers[step.write]);
  for (uint64_t i = 0; i < step.counts.back(); ++i) out[i] = std::nanf("");
  if (provider.throws) {
    context->parallel(
        context, 1000,
        [](void*, uint64_t i, uint32_t) {
          if (i % 10 == 7) throw std::length_error("injected");
        },
        nullptr);
    return PFRT_CODE_OK;
  }
  const std::string said =
      "injected fault in run, the " + std::to_string(provider.counters->injected) + ".";
  return context->fail(context, provider.code, text(said));
}

pfrt_code specialise(pfrt_executable* e, const pfrt_shapes* shapes, const pfrt_sink* sink,
                     pfrt_program* out) {
  Provider& provider = *of(e).provider;
  if (provider.fails(kSpecialise)) return fail(sink, provider.code, kSpecialise);
  ++provider.counters->programs;
  auto program = of(e).region.specialise(*shapes, PFRT_MEMORY_HOST, run, &provider);
  for (pfrt_buffer& buffer : program->buffers)
    if (buffer.kind == PFRT_BUFFER_TEMP)
      buffer.alignment = static_cast<uint32_t>(provider.alignment);
  elementwise::fill(program.release(), out);
  return PFRT_CODE_OK;
}

void release_program(pfrt_executable* e, pfrt_program* program) {
  --of(e).provider->counters->programs;
  delete static_cast<elementwise::Program*>(program->handle);
}

size_t option_count() { return std::size(kOptions); }

pfrt_code option_at(size_t index, pfrt_option_info* out) {
  if (index >= std::size(kOptions)) return PFRT_CODE_INVALID_ARGUMENT;
  const OptionRow& row = kOptions[index];
  out->type = row.type;
  out->key = text(row.key);
  out->default_value = text(row.default_value);
  out->choices = text(row.choices);
  out->doc = text("see fault.cc");
  return PFRT_CODE_OK;
}

// Member by member, so that a member of a later header stays zero, which is "not there".
constexpr pfrt_provider_table kTable = [] {
  pfrt_provider_table table{};
  table.struct_size = sizeof(pfrt_provider_table);
  table.abi = PFRT_ABI_VERSION;
  table.devices = {"fault", 5};
  table.open = open;
  table.close = close;
  table.claim = claim;
  table.compile = pfrt_test::compile_each<compile_one, release_executable>;
  table.release_executable = release_executable;
  table.specialise = specialise;
  table.release_program = release_program;
  table.option_count = option_count;
  table.option_at = option_at;
  return table;
}();

}  // namespace
}  // namespace fault

extern "C" PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host,
                                                   pfrt_plugin_desc* out) {
  return elementwise::describe(host, out, "FaultExecutionProvider", PFRT_PROVIDER_OPTIONS,
                               &fault::kTable);
}
