/* SPDX-License-Identifier: Apache-2.0
 *
 * A client whose structs may be larger or smaller than the library's and the plug-ins'. It builds a
 * graph, imports a model, runs both in every way, replaces the library's memory and threads, adds
 * an operator and a pass, and reads every list. Arguments: the library, a model in ONNX with one
 * input, folders of plug-ins, a folder to write to.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <pyflame_rt/custom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const pfrt_api* api;

static pfrt_string text(const char* s) { return (pfrt_string){s, strlen(s)}; }
static int equals(pfrt_string s, const char* word) {
  return s.size == strlen(word) && memcmp(s.data, word, s.size) == 0;
}

#define REQUIRE(condition)                                            \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      return 1;                                                       \
    }                                                                 \
  } while (0)
#define SIZED(type, name)        \
  type name;                     \
  memset(&name, 0, sizeof name); \
  name.struct_size = sizeof name

static int good(pfrt_status* status) {
  if (status == NULL) return 1;
  const pfrt_string message = api->status->message(status);
  fprintf(stderr, "%.*s\n", (int)message.size, message.data);
  api->status->release(status);
  return 0;
}

/* Whether a call was refused with |code|, and its message names |what|. */
static int refused(pfrt_status* status, pfrt_code code, const char* what) {
  if (status == NULL) return 0;
  const pfrt_string message = api->status->message(status);
  int found = 0;
  for (size_t i = 0; i + strlen(what) <= message.size; ++i)
    found |= memcmp(message.data + i, what, strlen(what)) == 0;
  const int as_expected = api->status->code(status) == code && found;
  if (!as_expected) fprintf(stderr, "%.*s\n", (int)message.size, message.data);
  api->status->release(status);
  return as_expected;
}

/* Whether this client's headers are newer than the library. */
static int is_newer(void) { return api->abi < PFRT_ABI_VERSION; }
/* Sets the last member of a struct, which only newer headers have. */
static void ask_more(void* newer, size_t size) {
  const uint64_t more = 1;
  memcpy((char*)newer + size - sizeof more, &more, sizeof more);
}

/* ---- a graph of the client's own: y = 2 a b^T, n = -y, s = Relu(y) ---- */

static pfrt_value_info port(const char* name, const int64_t* dims) {
  SIZED(pfrt_value_info, info);
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = 2;
  info.name = text(name);
  info.dims = dims;
  return info;
}

static const int64_t kA[] = {2, 3}, kB[] = {2, 3}, kY[] = {2, 2};

static int add_unary(pfrt_graph* graph, const char* op, const char* domain, const char* in,
                     const char* out) {
  const pfrt_string ins[] = {text(in)}, outs[] = {text(out)};
  SIZED(pfrt_node, node);
  node.op = text(op);
  node.domain = text(domain);
  node.inputs = ins;
  node.input_count = 1;
  node.outputs = outs;
  node.output_count = 1;
  return good(api->graph->add_node(graph, &node, NULL));
}

static int make_graph(pfrt_graph** out) {
  REQUIRE(good(api->graph->create(text("ages"), out)));
  const pfrt_value_info a = port("a", kA), b = port("b", kB), y = port("y", kY), n = port("n", kY);
  REQUIRE(good(api->graph->add_input(*out, &a)) && good(api->graph->add_input(*out, &b)));
  REQUIRE(good(api->graph->add_output(*out, &y)) && good(api->graph->add_output(*out, &n)));
  pfrt_attr attrs[2];
  memset(attrs, 0, sizeof attrs);
  attrs[0].struct_size = attrs[1].struct_size = sizeof attrs[0];
  attrs[0].type = PFRT_ATTR_FLOAT;
  attrs[0].name = text("alpha");
  attrs[0].f = 2;
  attrs[1].type = PFRT_ATTR_INT;
  attrs[1].name = text("transB");
  attrs[1].i = 1;
  const pfrt_string ins[] = {text("a"), text("b")}, outs[] = {text("y")};
  SIZED(pfrt_node, node);
  node.op = text("Gemm");
  node.inputs = ins;
  node.input_count = 2;
  node.outputs = outs;
  node.output_count = 1;
  node.attrs = attrs;
  node.attr_count = 2;
  if (is_newer()) {
    pfrt_node asks = node;
    ask_more(&asks, sizeof asks);
    REQUIRE(refused(api->graph->add_node(*out, &asks, NULL), PFRT_CODE_UNSUPPORTED, "pfrt_node"));
    ask_more(&attrs[1], sizeof attrs[1]);
    REQUIRE(refused(api->graph->add_node(*out, &node, NULL), PFRT_CODE_UNSUPPORTED, "pfrt_attr"));
    memset((char*)&attrs[1] + sizeof attrs[1] - 8, 0, 8);
  }
  REQUIRE(good(api->graph->add_node(*out, &node, NULL)));
  REQUIRE(add_unary(*out, "Neg", "", "y", "n"));

  SIZED(pfrt_node, back);
  REQUIRE(good(api->graph->node_at(*out, 0, &back)) && back.attr_count == 2);
  REQUIRE(back.struct_size == sizeof back && equals(back.op, "Gemm"));
  for (size_t i = 0; i < 2; ++i) {
    const pfrt_attr* attr = (const pfrt_attr*)pfrt_at(back.attrs, back.attrs->struct_size, i);
    REQUIRE(attr->name.size == attrs[i].name.size &&
            memcmp(attr->name.data, attrs[i].name.data, attr->name.size) == 0);
    REQUIRE(attr->type == attrs[i].type && attr->i == attrs[i].i);
  }
  SIZED(pfrt_value_info, input);
  REQUIRE(good(api->graph->input_at(*out, 1, &input)) && equals(input.name, "b"));
  return 0;
}

/* ---- runs ---- */

static float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 1, 0, 1, 0};
static const float kWant[] = {8, 4, 20, 10};

static pfrt_io input(float* data) {
  SIZED(pfrt_io, io);
  io.tensor.struct_size = sizeof io.tensor;
  io.tensor.dtype = PFRT_DTYPE_FLOAT32;
  io.tensor.rank = 2;
  io.tensor.dims = kA;
  io.tensor.data = data;
  io.tensor.bytes = sizeof a;
  return io;
}

/* |outputs| are y, then n. */
static int right(pfrt_io* outputs) {
  for (size_t o = 0; o < 2; ++o) {
    SIZED(pfrt_tensor, tensor);
    REQUIRE(outputs[o].value != NULL && good(api->value->tensor(outputs[o].value, &tensor)));
    REQUIRE(tensor.bytes == sizeof kWant);
    for (size_t i = 0; i < 4; ++i)
      REQUIRE(((const float*)tensor.data)[i] == (o == 0 ? kWant[i] : -kWant[i]));
    api->value->release(outputs[o].value);
    outputs[o].value = NULL;
  }
  return 0;
}

struct later {
  pthread_mutex_t mutex;
  pthread_cond_t over;
  int done, wrong;
};

static void done(void* user, pfrt_status* status, pfrt_io* outputs, size_t count) {
  struct later* later = user;
  const int wrong = !good(status) || count != 2 || right(outputs);
  pthread_mutex_lock(&later->mutex);
  later->wrong = wrong;
  later->done = 1;
  pthread_cond_signal(&later->over);
  pthread_mutex_unlock(&later->mutex);
}

static int run(pfrt_session* session) {
  const pfrt_io inputs[] = {input(a), input(b)};
  SIZED(pfrt_io, empty);
  pfrt_io outputs[] = {empty, empty};
  REQUIRE(good(api->session->run(session, inputs, 2, outputs, 2, NULL)));
  REQUIRE(right(outputs) == 0);
  if (is_newer()) {
    pfrt_io asks[] = {input(a), input(b)};
    ask_more(&asks[1], sizeof asks[1]);
    REQUIRE(refused(api->session->run(session, asks, 2, outputs, 2, NULL), PFRT_CODE_UNSUPPORTED,
                    "pfrt_io"));
  }

  const pfrt_string names[] = {text("b"), text("a")}, wanted[] = {text("n"), text("y")};
  const pfrt_io swapped[] = {input(b), input(a)};
  REQUIRE(good(api->session->run_named(session, names, swapped, 2, wanted, outputs, 2, NULL)));
  pfrt_io in_order[] = {outputs[1], outputs[0]};
  REQUIRE(right(in_order) == 0);

  struct later later = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
  pfrt_io later_outputs[] = {empty, empty};
  REQUIRE(good(api->session->run_async(session, inputs, 2, later_outputs, 2, NULL, done, &later)));
  pthread_mutex_lock(&later.mutex);
  while (!later.done) pthread_cond_wait(&later.over, &later.mutex);
  pthread_mutex_unlock(&later.mutex);
  return later.wrong;
}

/* ---- what a session says of itself ---- */

static int look(pfrt_session* session) {
  SIZED(pfrt_provider_state, state);
  REQUIRE(good(api->session->provider_state(session, 0, &state)) && state.name.size > 0);
  SIZED(pfrt_session_statistics, statistics);
  REQUIRE(good(api->session->statistics(session, &statistics)) && statistics.runs > 0);
  SIZED(pfrt_memory_report, memory);
  REQUIRE(good(api->session->memory_report(session, &memory, NULL, NULL)));
  SIZED(pfrt_value_info, output);
  REQUIRE(good(api->session->output_at(session, 0, &output)) && output.name.size > 0);
  pfrt_report* report = NULL;
  REQUIRE(good(api->session->explain(session, &report)));
  REQUIRE(api->report->row_count(report) > 0);
  for (size_t i = 0; i < api->report->row_count(report); ++i) {
    SIZED(pfrt_report_row, row);
    REQUIRE(good(api->report->row_at(report, i, &row)) && row.index == i && row.provider.size > 0);
  }
  api->report->release(report);
  return 0;
}

static int make_session(pfrt_env* env, pfrt_model* model, const char* providers,
                        pfrt_session** out) {
  pfrt_options* options = NULL;
  REQUIRE(good(api->options->create(PFRT_OPTIONS_SESSION, &options)));
  REQUIRE(good(api->options->set_text(options, text("providers"), text(providers))));
  SIZED(pfrt_session_desc, desc);
  desc.model = model;
  desc.options = options;
  if (is_newer()) {
    pfrt_session_desc asks = desc;
    ask_more(&asks, sizeof asks);
    REQUIRE(
        refused(api->session->create(env, &asks, out), PFRT_CODE_UNSUPPORTED, "pfrt_session_desc"));
  }
  REQUIRE(good(api->session->create(env, &desc, out)));
  api->options->release(options);
  return 0;
}

static const char* const kBoth = "CustomExecutionProvider,CPUExecutionProvider";

static int own_graph(pfrt_env* env) {
  pfrt_graph* graph = NULL;
  pfrt_model* model = NULL;
  pfrt_session* session = NULL;
  REQUIRE(make_graph(&graph) == 0);
  REQUIRE(good(api->model->from_graph(env, graph, NULL, &model)));
  REQUIRE(make_session(env, model, kBoth, &session) == 0);
  REQUIRE(run(session) == 0 && look(session) == 0);
  api->session->release(session);
  api->model->release(model);
  api->graph->release(graph);
  return 0;
}

/* ---- a graph that the sample provider runs, with a state and samples: h_out = Relu(h + h) ---- */

static int states(pfrt_env* env) {
  pfrt_graph* graph = NULL;
  pfrt_model* model = NULL;
  pfrt_session* session = NULL;
  REQUIRE(good(api->graph->create(text("state"), &graph)));
  const pfrt_value_info h = port("h", kA), h_out = port("h_out", kA);
  REQUIRE(good(api->graph->add_input(graph, &h)) && good(api->graph->add_output(graph, &h_out)));
  const pfrt_string ins[] = {text("h"), text("h")}, outs[] = {text("sum")};
  SIZED(pfrt_node, node);
  node.op = text("Add");
  node.inputs = ins;
  node.input_count = 2;
  node.outputs = outs;
  node.output_count = 1;
  REQUIRE(good(api->graph->add_node(graph, &node, NULL)));
  REQUIRE(add_unary(graph, "Relu", "", "sum", "h_out"));
  REQUIRE(good(api->model->from_graph(env, graph, NULL, &model)));

  pfrt_value* value = NULL;
  REQUIRE(good(api->value->create_tensor(PFRT_DTYPE_FLOAT32, kA, 2, &value)));
  const pfrt_string name = text("h");
  pfrt_sample samples[2];
  memset(samples, 0, sizeof samples);
  for (size_t i = 0; i < 2; ++i) {
    samples[i].struct_size = sizeof samples[i];
    samples[i].names = &name;
    samples[i].values = &value;
    samples[i].count = 1;
  }
  pfrt_options* options = NULL;
  REQUIRE(good(api->options->create(PFRT_OPTIONS_SESSION, &options)));
  REQUIRE(good(api->options->set_text(options, text("providers"), text(kBoth))));
  SIZED(pfrt_session_desc, desc);
  desc.model = model;
  desc.options = options;
  desc.samples = samples;
  desc.sample_count = 2;
  REQUIRE(good(api->session->create(env, &desc, &session)));
  api->options->release(options);
  api->value->release(value);

  SIZED(pfrt_state_pair, pair);
  pair.growth = PFRT_STATE_REPLACED;
  pair.input = text("h");
  pair.output = text("h_out");
  pfrt_state* state = NULL;
  if (is_newer()) {
    pfrt_state_pair asks = pair;
    ask_more(&asks, sizeof asks);
    REQUIRE(refused(api->state->create(session, &asks, 1, &state), PFRT_CODE_UNSUPPORTED,
                    "pfrt_state_pair"));
  }
  REQUIRE(good(api->state->create(session, &pair, 1, &state)));
  SIZED(pfrt_run_desc, settings);
  settings.state = state;
  pfrt_io in = input(a);
  SIZED(pfrt_io, out);
  pfrt_value* first = NULL;
  REQUIRE(good(api->value->wrap_tensor(&in.tensor, NULL, NULL, &first)));
  REQUIRE(good(api->state->set(state, text("h"), first)));
  api->value->release(first);
  SIZED(pfrt_io, none);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(good(api->session->run(session, &none, 1, &out, 1, &settings)));
    SIZED(pfrt_tensor, view);
    REQUIRE(good(api->value->tensor(out.value, &view)));
    REQUIRE(((const float*)view.data)[1] == (i == 0 ? 4 : 8));
    api->value->release(out.value);
    out.value = NULL;
  }
  if (is_newer()) {
    ask_more(&settings, sizeof settings);
    REQUIRE(refused(api->session->run(session, &none, 1, &out, 1, &settings), PFRT_CODE_UNSUPPORTED,
                    "pfrt_run_desc"));
  }
  REQUIRE(look(session) == 0);
  api->state->release(state);
  api->session->release(session);
  api->model->release(model);
  api->graph->release(graph);
  return 0;
}

/* ---- a model that a plug-in reads and writes ---- */

struct bytes {
  FILE* file;
  int released;
};
static pfrt_code read_at(void* user, uint64_t offset, uint64_t size, void* out,
                         uint64_t* out_read) {
  FILE* file = ((struct bytes*)user)->file;
  if (fseek(file, (long)offset, SEEK_SET) != 0) return PFRT_CODE_IO;
  *out_read = fread(out, 1, size, file);
  return PFRT_CODE_OK;
}
static void reader_release(void* user) { ++((struct bytes*)user)->released; }

static int load_by_reader(pfrt_env* env, const char* path, pfrt_model** out) {
  struct bytes bytes = {fopen(path, "rb"), 0};
  REQUIRE(bytes.file != NULL && fseek(bytes.file, 0, SEEK_END) == 0);
  SIZED(pfrt_reader, reader);
  reader.size = (uint64_t)ftell(bytes.file);
  reader.name = text("model.onnx");
  reader.read_at = read_at;
  reader.release = reader_release;
  reader.user = &bytes;
  REQUIRE(good(api->model->load_reader(env, &reader, NULL, out)) && bytes.released == 1);
  fclose(bytes.file);
  return 0;
}

/* Runs a model of one input on zeros, and gives the first number of its output. */
static int first_number(pfrt_env* env, pfrt_model* model, float* out_number) {
  pfrt_session* session = NULL;
  REQUIRE(make_session(env, model, kBoth, &session) == 0);
  SIZED(pfrt_value_info, info);
  REQUIRE(api->session->input_count(session) == 1);
  REQUIRE(good(api->session->input_at(session, 0, &info)));
  int64_t dims[8];
  REQUIRE(info.rank > 0 && info.rank <= 8);
  for (int32_t i = 0; i < info.rank; ++i) dims[i] = info.dims[i] < 0 ? 1 : info.dims[i];
  SIZED(pfrt_io, in);
  SIZED(pfrt_io, out);
  REQUIRE(good(api->value->create_tensor(info.dtype, dims, (size_t)info.rank, &in.value)));
  REQUIRE(good(api->session->run(session, &in, 1, &out, 1, NULL)));
  SIZED(pfrt_tensor, view);
  REQUIRE(good(api->value->tensor(out.value, &view)) && view.bytes >= sizeof *out_number);
  memcpy(out_number, view.data, sizeof *out_number);
  REQUIRE(look(session) == 0);
  api->value->release(out.value);
  api->value->release(in.value);
  api->session->release(session);
  return 0;
}

static int imported(pfrt_env* env, const char* path, const char* folder) {
  char copy[4096];
  snprintf(copy, sizeof copy, "%s/copy.onnx", folder);
  pfrt_model *model = NULL, *again = NULL;
  REQUIRE(good(api->model->load_file(env, text(path), NULL, &model)));
  SIZED(pfrt_model_info, info);
  REQUIRE(good(api->model->info(model, &info)) && equals(info.format, "onnx"));
  REQUIRE(info.node_count > 0 && info.parameter_count > 0);
  REQUIRE(good(api->model->save(env, model, text(copy), NULL)));
  REQUIRE(load_by_reader(env, copy, &again) == 0);
  float one = 0, other = 1;
  REQUIRE(first_number(env, model, &one) == 0 && first_number(env, again, &other) == 0);
  REQUIRE(one == other);
  api->model->release(again);
  api->model->release(model);
  return 0;
}

/* ---- the client's own operator, and a pass that puts it in the place of Neg ---- */

static pfrt_code infer(void* user, const pfrt_op_infer* c) {
  (void)user;
  return c->set_output(c, 0, c->inputs[0].dtype, c->inputs[0].rank, c->inputs[0].dims);
}
static pfrt_code compute(void* user, const pfrt_op_compute* c) {
  const float* x = c->inputs[0].data;
  float* y = c->outputs[0].data;
  for (uint64_t i = 0; i < c->inputs[0].bytes / sizeof *x; ++i) y[i] = -x[i];
  ++*(int*)user;
  return PFRT_CODE_OK;
}
static pfrt_code rewrite(void* user, pfrt_pass_call* call) {
  uint32_t id = PFRT_NO_NODE;
  (void)user;
  while ((id = call->api->graph->next_node(call->graph, id)) != PFRT_NO_NODE) {
    SIZED(pfrt_node, node);
    if (!good(call->api->graph->node_by_id(call->graph, id, &node))) return PFRT_CODE_INTERNAL;
    if (!equals(node.op, "Neg")) continue;
    char in[64] = {0}, out[64] = {0};
    memcpy(in, node.inputs[0].data, node.inputs[0].size);
    memcpy(out, node.outputs[0].data, node.outputs[0].size);
    if (!good(call->api->graph->remove_node(call->graph, id)) ||
        !add_unary(call->graph, "Minus", "ages", in, out))
      return PFRT_CODE_INTERNAL;
    call->stats->modified = 1;
    ++call->stats->nodes_fused;
  }
  return PFRT_CODE_OK;
}

static int additions(pfrt_env* env) {
  int calls = 0;
  SIZED(pfrt_custom_op, op);
  op.abi = PFRT_ABI_VERSION;
  op.name = text("Minus");
  op.domain = text("ages");
  op.min_inputs = 1;
  op.infer = infer;
  op.compute = compute;
  op.user = &calls;
  if (is_newer()) {
    pfrt_custom_op asks = op;
    ask_more(&asks, sizeof asks);
    REQUIRE(
        refused(api->env->register_operator(env, &asks), PFRT_CODE_UNSUPPORTED, "pfrt_custom_op"));
  }
  REQUIRE(good(api->env->register_operator(env, &op)));
  SIZED(pfrt_custom_pass, pass);
  pass.abi = PFRT_ABI_VERSION;
  pass.name = text("MinusPass");
  pass.run = rewrite;
  pfrt_optimizer* optimizer = NULL;
  REQUIRE(good(api->optimizer->create(env, NULL, &optimizer)));
  REQUIRE(good(api->optimizer->add_custom_pass(optimizer, &pass)));
  pfrt_graph* graph = NULL;
  REQUIRE(make_graph(&graph) == 0);
  pfrt_optimization* result = NULL;
  REQUIRE(good(api->optimizer->run(optimizer, graph, text(""), 0, &result)));
  SIZED(pfrt_pass_stats, totals);
  REQUIRE(good(api->optimizer->totals(result, &totals)) && totals.nodes_fused == 1);
  SIZED(pfrt_pass_report, report);
  REQUIRE(good(api->optimizer->report_at(result, 0, &report)) && equals(report.pass, "MinusPass"));
  REQUIRE(report.stats->modified && report.stats->nodes_fused == 1);
  api->optimizer->release_result(result);
  api->optimizer->release(optimizer);
  pfrt_model* model = NULL;
  pfrt_session* session = NULL;
  REQUIRE(good(api->model->from_graph(env, graph, NULL, &model)));
  REQUIRE(make_session(env, model, kBoth, &session) == 0);
  REQUIRE(run(session) == 0 && calls == 3);
  api->session->release(session);
  api->model->release(model);
  api->graph->release(graph);
  return 0;
}

/* ---- the client's own memory, threads and plans of memory ---- */

static int allocations, plans;

static void* allocate(void* user, uint64_t bytes, uint64_t alignment) {
  (void)user;
  ++allocations;
  return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}
static void give_back(void* user, void* data, uint64_t bytes) {
  (void)user, (void)bytes;
  free(data);
}
static void loop(void* user, uint32_t workers, uint64_t n, void (*fn)(void*, uint64_t, uint32_t),
                 void* arg) {
  (void)user, (void)workers;
  for (uint64_t i = 0; i < n; ++i) fn(arg, i, 0);
}
static pfrt_code submit(void* user, void (*fn)(void*), void* arg) {
  (void)user;
  fn(arg);
  return PFRT_CODE_OK;
}
static pfrt_code create_plan(void* user, pfrt_memory_request* request) {
  (void)user;
  ++plans;
  for (size_t i = 0; i < request->count; ++i) {
    const pfrt_memory_item* item = pfrt_at(request->items, request->items->struct_size, i);
    request->bytes = (request->bytes + item->alignment - 1) / item->alignment * item->alignment;
    request->offsets[i] = request->bytes;
    request->bytes += item->bytes;
  }
  return PFRT_CODE_OK;
}

static int replacements(pfrt_env* env, const char* path, const char* folder) {
  SIZED(pfrt_allocator, allocator);
  allocator.allocate = allocate;
  allocator.free = give_back;
  SIZED(pfrt_executor, executor);
  executor.width = 2;
  executor.loop = loop;
  executor.submit = submit;
  SIZED(pfrt_memory_planner, planner);
  planner.create_plan = create_plan;
  REQUIRE(good(api->env->set_allocator(env, &allocator)));
  REQUIRE(good(api->env->set_executor(env, &executor)));
  REQUIRE(good(api->env->set_memory_planner(env, &planner)));
  REQUIRE(own_graph(env) == 0 && imported(env, path, folder) == 0);
  REQUIRE(allocations > 0 && plans > 0);
  REQUIRE(good(api->env->set_memory_planner(env, NULL)));
  REQUIRE(good(api->env->set_executor(env, NULL)));
  REQUIRE(good(api->env->set_allocator(env, NULL)));
  return 0;
}

/* ---- lists, and areas that need no model ---- */

static int lists(pfrt_env* env, const char* folder) {
  for (size_t i = 0; i < api->env->plugin_count(env); ++i) {
    SIZED(pfrt_plugin_info, plugin);
    REQUIRE(good(api->env->plugin_at(env, i, &plugin)));
    if (!plugin.loaded) fprintf(stderr, "%.*s\n", (int)plugin.reason.size, plugin.reason.data);
    REQUIRE(plugin.loaded);
  }
  SIZED(pfrt_provider_info, provider);
  REQUIRE(good(api->env->provider_at(env, 0, &provider)) && provider.available);
  SIZED(pfrt_kernel_info, kernel);
  REQUIRE(good(api->env->kernel_at(env, text("CPUExecutionProvider"), 0, &kernel)));
  REQUIRE(kernel.op.size > 0 && kernel.types.size > 0);
  SIZED(pfrt_operator_info, op);
  REQUIRE(good(api->env->operator_at(0, &op)) && op.op.size > 0);
  SIZED(pfrt_option_info, option);
  REQUIRE(good(api->options->schema_at(PFRT_OPTIONS_SESSION, 0, &option)) && option.key.size > 0);
  SIZED(pfrt_ask_desc, question);
  question.provider = text("CPUExecutionProvider");
  question.verb = text("measure");
  question.request = text("threads=1 seconds=0.01 only=read L1");
  pfrt_reply* reply = NULL;
  REQUIRE(good(api->env->ask(env, &question, &reply)) && api->env->reply_text(reply).size > 0);
  api->env->reply_release(reply);

  SIZED(pfrt_pool_config, pool_config);
  pool_config.memory_limit = 1 << 20;
  pfrt_memory_pool* pool = NULL;
  REQUIRE(good(api->memory->create_pool(&pool_config, NULL, &pool)));
  SIZED(pfrt_pool_stats, stats);
  REQUIRE(good(api->memory->pool_stats(pool, &stats)) && stats.num_allocations == 0);
  api->memory->release_pool(pool);

  SIZED(pfrt_cache_config, config);
  config.folder = text(folder);
  pfrt_cache* cache = NULL;
  REQUIRE(good(api->cache->open(env, &config, &cache)));
  SIZED(pfrt_cache_statistics, uses);
  REQUIRE(good(api->cache->statistics(cache, &uses)));
  api->cache->release(cache);
  return 0;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 5);
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(library != NULL);
  const pfrt_api* (*get_api)(uint32_t, pfrt_abi_info*) = NULL;
  *(void**)&get_api = dlsym(library, "pfrt_get_api");
  SIZED(pfrt_abi_info, info);
  /* The oldest version that has the functions called here. */
  api = get_api(PFRT_MAKE_ABI(PFRT_ABI_MAJOR, 0), &info);
  REQUIRE(api != NULL && info.version.size > 0);
  pfrt_options* options = NULL;
  REQUIRE(good(api->options->create(PFRT_OPTIONS_ENV, &options)));
  REQUIRE(good(api->options->set_text(options, text("plugin_path"), text(argv[3]))));
  pfrt_env* env = NULL;
  REQUIRE(good(api->env->create(options, &env)));
  api->options->release(options);
  REQUIRE(lists(env, argv[4]) == 0);
  REQUIRE(own_graph(env) == 0);
  REQUIRE(states(env) == 0);
  REQUIRE(imported(env, argv[2], argv[4]) == 0);
  REQUIRE(replacements(env, argv[2], argv[4]) == 0);
  REQUIRE(additions(env) == 0);
  api->env->release(env);
  return 0;
}
