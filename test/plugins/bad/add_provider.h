/* SPDX-License-Identifier: Apache-2.0
 *
 * A provider that adds two float32 tensors of one shape. It is right unless the file that includes
 * this spoils something: #define SPOIL .writes_past = 1
 */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "test/plugins/bad/describe.h"

struct spoils {
  int double_release;   /* release_executable frees what release_program has freed */
  int wrong_claim;      /* accepts Sub, and adds */
  int writes_past;      /* whole vectors of eight */
  int never_stops;      /* declares its step long, and asks nobody */
  int plain_arrays;     /* takes nodes and values for arrays of its own structs */
  int short_steps;      /* says that its step structs are smaller than they are */
  int leaks;            /* never frees a program */
  int impure_claim;     /* each claim estimates another time */
  int silent;           /* refuses to open without a word */
  int undeclared;       /* reads a buffer that its step does not list */
  int rounds_up;        /* leaves another rounding mode */
  int reads_past;       /* looks one element ahead */
  int new_fingerprint;  /* is another for each device that is opened */
  int odd_fingerprint;  /* is in Latin-1 */
  int knows_all_verbs;  /* answers whatever it is asked */
  int nameless_counter; /* counts something and does not say what */
  int counts_early;     /* counts before there was a run */
  int counts_step_7;    /* counts for a step that is not there */
  int odd_group;        /* makes a group of nodes that do not exist */
  int silent_word;      /* lists a device that it does not open, without a word */
  int one_size;         /* takes a range, and computes its least size */
  int writes_to_lent;   /* marks the nodes of a snapshot */
  int starts_threads;   /* starts one for each device, undeclared */
  int answers_twice;    /* accepts each node two times */
  int names_node_7;     /* names it as the node of its step */
  int counts_threads;   /* the last bit of a result says whether there are many */
  int crashes_unloaded; /* crashes after a device was open */
  int newer_steps;      /* has steps of a later minor, with a member that is set */
};
static const struct spoils spoil = {SPOIL};

static pfrt_string text(const char* s) { return (pfrt_string){s, strlen(s)}; }
static int is(pfrt_string s, const char* word) {
  return s.size == strlen(word) && (s.size == 0 || memcmp(s.data, word, s.size) == 0);
}

static const pfrt_snapshot_node* node_at(const pfrt_snapshot* s, uint32_t i) {
  if (spoil.plain_arrays) return &s->nodes[i];
  return (const pfrt_snapshot_node*)(const void*)((const char*)s->nodes + (size_t)s->node_size * i);
}
static const pfrt_snapshot_value* value_at(const pfrt_snapshot* s, uint32_t i) {
  if (spoil.plain_arrays) return &s->values[i];
  return (const pfrt_snapshot_value*)(const void*)((const char*)s->values +
                                                   (size_t)s->value_size * i);
}

static const char* refusal(const pfrt_snapshot* s, uint32_t index) {
  const pfrt_snapshot_node* node = node_at(s, index);
  const int known = is(node->op, "Add") || (spoil.wrong_claim && is(node->op, "Sub"));
  if (!known || !is(node->domain, "") || node->input_count != 2) return "it only adds";
  const pfrt_snapshot_value* a = value_at(s, node->inputs[0]);
  const pfrt_snapshot_value* b = value_at(s, node->inputs[1]);
  if (a->dtype != PFRT_DTYPE_FLOAT32 || b->dtype != PFRT_DTYPE_FLOAT32) return "it adds float32";
  if ((a->flags | b->flags) & PFRT_SNAPSHOT_CONSTANT) return "it adds what changes";
  if (a->rank < 0 || a->rank != b->rank) return "it adds tensors of one rank";
  for (int32_t d = 0; d < a->rank; ++d)
    if (a->dims[d] != b->dims[d]) return "it adds tensors of one shape";
  return NULL;
}

struct device {
  char fingerprint[32];
  pthread_t thread;
  _Atomic int closing;
};
static int opened = 0;

static void* idle(void* device) {
  while (!((struct device*)device)->closing) usleep(1000);
  return NULL;
}
__attribute__((destructor)) static void unloaded(void) {
  if (spoil.crashes_unloaded && opened) abort();
}

static pfrt_code open_add(pfrt_string device, const pfrt_key_value* options, size_t count,
                          const pfrt_sink* sink, pfrt_provider** out) {
  (void)options;
  *out = NULL;
  if (spoil.silent && !is(device, "none")) return PFRT_CODE_NOT_FOUND;
  if (spoil.silent_word && is(device, "moon")) return PFRT_CODE_NOT_FOUND;
  if (!is(device, "none") || count != 0)
    return sink->fail(sink, PFRT_CODE_INVALID_ARGUMENT, PFRT_NO_INDEX,
                      text("it opens 'none' without options"));
  struct device* made = calloc(1, sizeof *made);
  if (!made) return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no memory"));
  strcpy(made->fingerprint, spoil.odd_fingerprint ? "add, fa\xe7on 1" : "add, build 1");
  if (spoil.new_fingerprint) made->fingerprint[4] = (char)('a' + opened % 26);
  if (spoil.starts_threads) pthread_create(&made->thread, NULL, idle, made);
  ++opened;
  *out = (pfrt_provider*)(void*)made;
  return PFRT_CODE_OK;
}
static void close_add(pfrt_provider* provider) {
  struct device* device = (struct device*)(void*)provider;
  device->closing = 1;
  if (spoil.starts_threads) pthread_join(device->thread, NULL);
  free(device);
}

static pfrt_code claim_add(pfrt_provider* provider, const pfrt_snapshot* s,
                           const pfrt_claims* claims, const pfrt_sink* sink) {
  (void)provider, (void)sink;
  for (uint32_t i = 0; i < s->node_count; ++i) {
    const char* reason = refusal(s, i);
    if (spoil.writes_to_lent) ((pfrt_snapshot_node*)(void*)node_at(s, i))->opset = 99;
    if (spoil.answers_twice && !reason) claims->accept(claims, i, 100, 0);
    if (reason) {
      claims->refuse(claims, i, text(reason));
    } else {
      static double asked = 0;
      asked += spoil.impure_claim;
      claims->accept(claims, i, 100 + asked, 0);
    }
  }
  const uint32_t nobody[] = {99, 100};
  if (spoil.odd_group) claims->group(claims, nobody, 2, 10);
  return PFRT_CODE_OK;
}

struct newer_step {
  pfrt_step step;
  uint64_t more[3];
};
struct program {
  pfrt_buffer buffers[3];
  pfrt_step step;
  struct newer_step newer;
  uint32_t reads[2], write;
  uint64_t count;
  _Atomic int ran;
};
struct executable {
  uint32_t inputs[2]; /* values of the region */
  uint32_t result;    /* a value too */
  struct program* last;
};

static uint32_t position(const uint32_t* list, uint32_t count, uint32_t value) {
  for (uint32_t i = 0; i < count; ++i)
    if (list[i] == value) return i;
  return PFRT_NO_INDEX;
}

static pfrt_code compile_one(pfrt_provider* provider, const pfrt_region* region,
                             const pfrt_sink* sink, pfrt_executable** out) {
  const pfrt_snapshot* s = region->snapshot;
  (void)provider;
  *out = NULL;
  const char* reason = region->node_count == 1 ? refusal(s, region->nodes[0]) : "one node a region";
  if (reason)
    return sink->fail(sink, PFRT_CODE_UNSUPPORTED_OPERATOR, region->nodes[0], text(reason));
  struct executable* made = calloc(1, sizeof *made);
  if (!made) return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no memory"));
  const pfrt_snapshot_node* node = node_at(s, region->nodes[0]);
  for (int i = 0; i < 2; ++i)
    made->inputs[i] = position(region->inputs, region->input_count, node->inputs[i]);
  made->result = node->outputs[0];
  *out = (pfrt_executable*)(void*)made;
  return PFRT_CODE_OK;
}
static void release_add(pfrt_executable* executable) {
  struct executable* made = (struct executable*)(void*)executable;
  if (spoil.double_release) free(made->last);
  free(made);
}
static pfrt_code compile_add(pfrt_provider* provider, const pfrt_region* regions,
                             size_t region_size, size_t count, const pfrt_sink* sink,
                             pfrt_executable** out_executables, size_t* out_region) {
  return pfrt_compile_each(provider, regions, region_size, count, sink, out_executables, out_region,
                           compile_one, release_add);
}

static pfrt_code run_add(void* state, const pfrt_step_context* context) {
  struct program* p = state;
  const float* a = context->buffers[p->reads[0]];
  const float* b = context->buffers[p->reads[1]];
  float* y = context->buffers[p->write];
  for (uint64_t i = 0; i < p->count; ++i) y[i] = a[i] + b[i];
  p->ran = 1;
  if (spoil.counts_threads && context->workers > 1)
    for (uint64_t i = 0; i < p->count; ++i) y[i] *= 1.0000002f;
  if (spoil.rounds_up) _mm_setcsr(_mm_getcsr() | 0x4000u);
  if (spoil.reads_past && a[p->count] > 1e30f) y[0] = 0;
  if (spoil.writes_past)
    for (uint64_t i = p->count; i % 8 != 0; ++i) y[i] = 0;
  return PFRT_CODE_OK;
}

static pfrt_code specialise_add(pfrt_executable* executable, const pfrt_shapes* shapes,
                                const pfrt_sink* sink, pfrt_program* out) {
  struct executable* made = (struct executable*)(void*)executable;
  struct program* p = calloc(1, sizeof *p);
  if (!p) return sink->fail(sink, PFRT_CODE_OUT_OF_MEMORY, PFRT_NO_INDEX, text("no memory"));
  static const uint32_t kNodes[] = {0, 7};
  p->count = 1;
  for (int32_t d = 0; d < shapes->ranks[made->result]; ++d)
    p->count *= (uint64_t)shapes->dims[made->result][d];
  const uint64_t most = p->count;
  if (shapes->least && shapes->least[made->result]) {
    if (!spoil.one_size) {
      free(p);
      return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX, text("of one size"));
    }
    p->count = 1;
    for (int32_t d = 0; d < shapes->ranks[made->result]; ++d)
      p->count *= (uint64_t)shapes->least[made->result][d];
  }
  for (uint32_t i = 0; i < 3; ++i) {
    p->buffers[i].kind = i < 2 ? PFRT_BUFFER_IN : PFRT_BUFFER_OUT;
    p->buffers[i].index = i < 2 ? made->inputs[i] : 0;
    p->buffers[i].bytes = most * sizeof(float);
  }
  p->reads[1] = 1;
  p->write = 2;
  p->step.run = run_add;
  p->step.state = p;
  p->step.reads = p->reads;
  p->step.read_count = spoil.undeclared ? 1 : 2;
  p->step.writes = &p->write;
  p->step.write_count = 1;
  p->step.nodes = &kNodes[spoil.names_node_7];
  p->step.node_count = 1;
  p->step.kernel = text("add");
  if (spoil.never_stops) p->step.flags = PFRT_STEP_LONG;
  out->abi = PFRT_ABI_VERSION;
  out->buffer_size = sizeof(pfrt_buffer);
  out->step_size = spoil.short_steps ? 8 : sizeof(pfrt_step);
  out->buffer_count = 3;
  out->step_count = 1;
  out->buffers = p->buffers;
  out->steps = &p->step;
  out->handle = p;
  if (spoil.newer_steps) {
    p->newer.step = p->step;
    p->newer.more[1] = 1;
    out->step_size = sizeof p->newer;
    out->steps = &p->newer.step;
  }
  made->last = p;
  return PFRT_CODE_OK;
}
/* ---- answers about itself ---- */

static pfrt_code fingerprint_add(pfrt_provider* provider, const pfrt_sink* sink, pfrt_string* out) {
  (void)sink;
  *out = text(((const struct device*)(const void*)provider)->fingerprint);
  return PFRT_CODE_OK;
}

static pfrt_code ask_add(pfrt_provider* provider, const pfrt_question* question,
                         const pfrt_answer* answer, const pfrt_sink* sink) {
  (void)provider;
  if (!is(question->verb, "build") && !spoil.knows_all_verbs)
    return sink->fail(sink, PFRT_CODE_UNSUPPORTED, PFRT_NO_INDEX, text("it knows the verb build"));
  answer->text(answer, text("1"));
  return PFRT_CODE_OK;
}

static pfrt_code report_add(pfrt_executable* executable, const pfrt_program* program,
                            const pfrt_counters* counters, const pfrt_sink* sink) {
  const struct program* p = program->handle;
  (void)executable, (void)sink;
  if (!p->ran && !spoil.counts_early) return PFRT_CODE_OK;
  counters->add(counters, text(spoil.nameless_counter ? "" : "elements"), (double)p->count,
                text("1"), spoil.counts_step_7 ? 7 : 0);
  return PFRT_CODE_OK;
}

static void release_program_add(pfrt_executable* executable, pfrt_program* program) {
  (void)executable;
  if (!spoil.leaks) free(program->handle);
}

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  table.open = open_add;
  table.close = close_add;
  table.claim = claim_add;
  table.compile = compile_add;
  table.release_executable = release_add;
  table.specialise = specialise_add;
  table.release_program = release_program_add;
  table.report = report_add;
  table.fingerprint = fingerprint_add;
  table.ask = ask_add;
  describe(out_desc);
  out_desc->features =
      PFRT_PROVIDER_REPORT | PFRT_PROVIDER_FINGERPRINT | PFRT_PROVIDER_ASK | PFRT_PROVIDER_RANGES;
  return PFRT_CODE_OK;
}
