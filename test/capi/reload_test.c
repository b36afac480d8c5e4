/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the library, loads and runs a .pfm model on several threads, releases everything and closes
 * the library, many times: threads and mappings are at the end what they were after the first
 * rounds. Every other round closes the library first: live handles keep it, and the last to be
 * released unloads it. Usage: reload_test LIBRARY MODEL ROUNDS [EXECUTOR]; MODEL is written first.
 * An executor's threads, and what it is loaded with, stay from the first round on.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pyflame_rt/pyflame_rt.h"

static int threads_now(void) {
  int count = 0;
  DIR* folder = opendir("/proc/self/task");
  while (folder && readdir(folder)) ++count;
  if (folder) closedir(folder);
  return count - 2;
}

/* Of the environment's option; NULL: the library's own threads. */
static const char* executor = NULL;

/* A thread that was joined is listed for a moment longer. */
static int settled_threads(void) {
  for (int i = 0; i < 10000 && threads_now() > 1 && !executor; ++i) usleep(1000);
  return threads_now();
}

static int mappings_now(void) {
  FILE* file = fopen("/proc/self/maps", "r");
  int count = 0;
  for (int c; file && (c = fgetc(file)) != EOF;) count += c == '\n';
  if (file) fclose(file);
  return count;
}

static long resident_kib(void) {
  char line[256];
  long kib = 0;
  FILE* file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "VmRSS: %ld", &kib);
  if (file) fclose(file);
  return kib;
}

static int failed(const pfrt_api* api, pfrt_status* status, const char* what) {
  if (!status) return 0;
  const pfrt_string text = api->status->message(status);
  fprintf(stderr, "%s: %.*s\n", what, (int)text.size, text.data);
  api->status->release(status);
  return 1;
}

/* Rows enough for loops on several threads. */
enum { kRows = 1024 };

/* Writes y = Softmax(x) with x float32[kRows,64]. */
static int write_model(const char* library, const char* model_path) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fprintf(stderr, "%s\n", dlerror()), 1;
  const pfrt_api* (*get)(uint32_t, pfrt_abi_info*) = NULL;
  *(void**)&get = dlsym(handle, "pfrt_get_api");
  const pfrt_api* api = get ? get(PFRT_ABI_VERSION, NULL) : NULL;
  if (!api) return fprintf(stderr, "no table\n"), 1;
  const pfrt_string name = {"g", 1}, x = {"x", 1}, y = {"y", 1}, op = {"Softmax", 7};
  const int64_t dims[] = {kRows, 64};
  pfrt_value_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  info.kind = PFRT_VALUE_TENSOR;
  info.dtype = PFRT_DTYPE_FLOAT32;
  info.rank = 2;
  info.name = x;
  info.dims = dims;
  pfrt_value_info result = info;
  result.name = y;
  pfrt_node node;
  memset(&node, 0, sizeof node);
  node.struct_size = sizeof node;
  node.op = op;
  node.inputs = &x;
  node.outputs = &y;
  node.input_count = node.output_count = 1;
  pfrt_env* env = NULL;
  pfrt_graph* graph = NULL;
  pfrt_model* model = NULL;
  const pfrt_string path = {model_path, strlen(model_path)};
  const int bad = failed(api, api->env->create(NULL, &env), "environment") ||
                  failed(api, api->graph->create(name, &graph), "graph") ||
                  failed(api, api->graph->add_input(graph, &info), "input") ||
                  failed(api, api->graph->add_node(graph, &node, NULL), "node") ||
                  failed(api, api->graph->add_output(graph, &result), "output") ||
                  failed(api, api->model->from_graph(env, graph, NULL, &model), "model") ||
                  failed(api, api->model->save(env, model, path, NULL), "save");
  api->model->release(model);
  api->graph->release(graph);
  api->env->release(env);
  dlclose(handle);
  return bad;
}

#if (defined(__OPTIMIZE__) && !defined(PFRT_SANITIZE_ADDRESS) && !defined(PFRT_SANITIZE_THREAD))
static int loaded(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle) dlclose(handle);
  return handle != NULL;
}
#else
static int loaded(const char* library) { return library == NULL; }
#endif

/* Holds a status longer than all else, the library's own handle included. Returns 0 on success. */
static int last_status(const char* library) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  const pfrt_api* (*get)(uint32_t, pfrt_abi_info*) = NULL;
  *(void**)&get = dlsym(handle, "pfrt_get_api");
  const pfrt_api* api = get(PFRT_ABI_VERSION, NULL);
  const pfrt_string none = {"/nowhere/model.pfm", 18};
  pfrt_env* env = NULL;
  pfrt_model* model = NULL;
  if (failed(api, api->env->create(NULL, &env), "environment")) return 1;
  pfrt_status* status = api->model->load_file(env, none, NULL, &model);
  api->env->release(env);
  dlclose(handle);
  const int bad = !status || api->status->message(status).size == 0;
  api->status->release(status);
  if (loaded(library)) return fprintf(stderr, "a status left the library loaded\n"), 1;
  return bad;
}

/* Returns 0 on success. */
static int one_round(const char* library, const char* model_path, int close_first) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return fprintf(stderr, "%s\n", dlerror()), 1;
  const pfrt_api* (*get)(uint32_t, pfrt_abi_info*) = NULL;
  *(void**)&get = dlsym(handle, "pfrt_get_api");
  const pfrt_api* api = get ? get(PFRT_ABI_VERSION, NULL) : NULL;
  if (!api) return fprintf(stderr, "no table\n"), 1;
  pfrt_env* env = NULL;
  pfrt_model* model = NULL;
  pfrt_options* options = NULL;
  pfrt_session* session = NULL;
  static float x[kRows * 64];
  const int64_t dims[] = {kRows, 64};
  pfrt_io in, out;
  memset(&in, 0, sizeof in);
  memset(&out, 0, sizeof out);
  in.struct_size = out.struct_size = sizeof in;
  in.tensor.struct_size = sizeof in.tensor;
  in.tensor.dtype = PFRT_DTYPE_FLOAT32;
  in.tensor.rank = 2;
  in.tensor.dims = dims;
  in.tensor.data = x;
  in.tensor.bytes = sizeof x;
  const pfrt_string path = {model_path, strlen(model_path)}, threads = {"num_threads", 11};
  const pfrt_string key = {"executor", 8}, word = {executor, executor ? strlen(executor) : 0};
  pfrt_options* own = NULL;
  int bad = failed(api, api->options->create(PFRT_OPTIONS_ENV, &own), "options") ||
            (executor && failed(api, api->options->set_string(own, key, word), "executor")) ||
            failed(api, api->env->create(own, &env), "environment") ||
            failed(api, api->model->load_file(env, path, NULL, &model), "model") ||
            failed(api, api->options->create(PFRT_OPTIONS_SESSION, &options), "options") ||
            failed(api, api->options->set_int(options, threads, 3), "num_threads");
  pfrt_session_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.model = model;
  desc.options = options;
  bad = bad || failed(api, api->session->create(env, &desc, &session), "session") ||
        failed(api, api->session->run(session, &in, 1, &out, 1, NULL), "run");
  pfrt_value* first = out.value;
  if (close_first) {
    dlclose(handle);
    out.value = NULL;
    bad = bad || failed(api, api->session->run(session, &in, 1, &out, 1, NULL), "run, closed");
  }
  api->value->release(first);
  api->session->release(session);
  api->options->release(options);
  api->options->release(own);
  api->model->release(model);
  api->env->release(env);
  if (close_first && out.value) api->value->release(out.value);
  if (!close_first) dlclose(handle);
  if (loaded(library)) return fprintf(stderr, "the library is still loaded\n"), 1;
  return bad;
}

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5)
    return fprintf(stderr, "usage: %s LIBRARY MODEL ROUNDS [EXECUTOR]\n", argv[0]), 2;
  if (argc == 5) executor = argv[4];
  if (write_model(argv[1], argv[2])) return 1;
  const int rounds = atoi(argv[3]);
  int threads = 0, mappings = 0;
  long resident = 0;
  for (int i = 0; i < rounds; ++i) {
    if (one_round(argv[1], argv[2], i % 2) || last_status(argv[1])) return 1;
    if (i != 19) continue;
    threads = settled_threads();
    mappings = mappings_now();
    resident = resident_kib();
  }
  printf("threads %d then %d, mappings %d then %d, resident %ld then %ld KiB\n", threads,
         settled_threads(), mappings, mappings_now(), resident, resident_kib());
#if defined(PFRT_SANITIZE_ADDRESS) || defined(PFRT_SANITIZE_THREAD)
  return settled_threads() != threads; /* the sanitizer never lets go of a library's memory */
#endif
  /* The allocator may take a few mappings more or less. */
  return settled_threads() != threads || mappings_now() > mappings + 8 ||
         resident_kib() > resident + 4096;
}
