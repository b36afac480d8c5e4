/* SPDX-License-Identifier: Apache-2.0
 *
 * A client whose structs may be larger or smaller than the library's: it makes y = 2 a b^T of two
 * inputs, reads its node back, and runs it at once, by name, and later.
 */
#include <pthread.h>
#include <pyflame_rt/pyflame_rt.h>
#include <stdio.h>
#include <string.h>

static const pfrt_api* api;

static pfrt_string text(const char* s) { return (pfrt_string){s, strlen(s)}; }

#define REQUIRE(condition)                                            \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition); \
      return 1;                                                       \
    }                                                                 \
  } while (0)

static int good(pfrt_status* status) {
  if (status == NULL) return 1;
  const pfrt_string message = api->status->message(status);
  fprintf(stderr, "%.*s\n", (int)message.size, message.data);
  api->status->release(status);
  return 0;
}

static pfrt_value_info port(const char* name, const int64_t* dims) {
  pfrt_value_info info = {.struct_size = sizeof info};
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = 2;
  info.name = text(name);
  info.dims = dims;
  return info;
}

static const int64_t kA[] = {2, 3}, kB[] = {2, 3}, kY[] = {2, 2};

static int make_graph(pfrt_graph** out) {
  REQUIRE(good(api->graph->create(text("ages"), out)));
  const pfrt_value_info a = port("a", kA), b = port("b", kB), y = port("y", kY), n = port("n", kY);
  REQUIRE(good(api->graph->add_input(*out, &a)) && good(api->graph->add_input(*out, &b)));
  REQUIRE(good(api->graph->add_output(*out, &y)) && good(api->graph->add_output(*out, &n)));
  pfrt_attr attrs[2] = {{.struct_size = sizeof(pfrt_attr)}, {.struct_size = sizeof(pfrt_attr)}};
  attrs[0].type = PFRT_ATTR_FLOAT;
  attrs[0].name = text("alpha");
  attrs[0].f = 2;
  attrs[1].type = PFRT_ATTR_INT;
  attrs[1].name = text("transB");
  attrs[1].i = 1;
  const pfrt_string ins[] = {text("a"), text("b")}, outs[] = {text("y")}, last[] = {text("n")};
  pfrt_node node = {.struct_size = sizeof node};
  node.op = text("Gemm");
  node.inputs = ins;
  node.input_count = 2;
  node.outputs = outs;
  node.output_count = 1;
  node.attrs = attrs;
  node.attr_count = 2;
  REQUIRE(good(api->graph->add_node(*out, &node, NULL)));
  pfrt_node negation = {.struct_size = sizeof negation};
  negation.op = text("Neg");
  negation.inputs = outs;
  negation.input_count = 1;
  negation.outputs = last;
  negation.output_count = 1;
  REQUIRE(good(api->graph->add_node(*out, &negation, NULL)));

  pfrt_node back = {.struct_size = sizeof back};
  REQUIRE(good(api->graph->node_at(*out, 0, &back)) && back.attr_count == 2);
  for (size_t i = 0; i < 2; ++i) {
    const pfrt_attr* attr = (const pfrt_attr*)pfrt_at(back.attrs, back.attrs->struct_size, i);
    REQUIRE(attr->name.size == attrs[i].name.size &&
            memcmp(attr->name.data, attrs[i].name.data, attr->name.size) == 0);
    REQUIRE(attr->type == attrs[i].type && attr->i == attrs[i].i);
  }
  return 0;
}

static float a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 0, 1, 0, 1, 0};
static const float kWant[] = {8, 4, 20, 10};

static pfrt_io input(float* data) {
  pfrt_io io = {.struct_size = sizeof io};
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
    pfrt_tensor tensor = {.struct_size = sizeof tensor};
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
  const pfrt_io empty = {.struct_size = sizeof empty};
  pfrt_io outputs[] = {empty, empty};
  REQUIRE(good(api->session->run(session, inputs, 2, outputs, 2, NULL)));
  REQUIRE(right(outputs) == 0);

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

int main(void) {
  pfrt_abi_info info = {.struct_size = sizeof info};
  /* The oldest version that has the functions called here. */
  api = pfrt_get_api(PFRT_MAKE_ABI(PFRT_ABI_MAJOR, 0), &info);
  REQUIRE(api != NULL);
  pfrt_env* env = NULL;
  pfrt_graph* graph = NULL;
  pfrt_model* model = NULL;
  pfrt_session* session = NULL;
  REQUIRE(good(api->env->create(NULL, &env)));
  REQUIRE(make_graph(&graph) == 0);
  REQUIRE(good(api->model->from_graph(env, graph, NULL, &model)));
  pfrt_session_desc desc = {.struct_size = sizeof desc};
  desc.model = model;
  REQUIRE(good(api->session->create(env, &desc, &session)));
  REQUIRE(run(session) == 0);
  api->session->release(session);
  api->model->release(model);
  api->graph->release(graph);
  api->env->release(env);
  return 0;
}
