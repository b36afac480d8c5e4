/* SPDX-License-Identifier: Apache-2.0 */
#include <pyflame_rt/pyflame_rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const pfrt_api* api;

static void check(pfrt_status* status) {
  if (!status) return;
  const pfrt_string text = api->status->message(status);
  fprintf(stderr, "%.*s\n", (int)text.size, text.data);
  exit(1);
}

int main(int count, char** arguments) {
  pfrt_abi_info info = {.struct_size = sizeof info};
  api = pfrt_get_api(PFRT_ABI_VERSION, &info);
  if (!api || count < 2) return 1;
  pfrt_env* env;
  pfrt_model* model;
  pfrt_session* session;
  const pfrt_string path = {arguments[1], strlen(arguments[1])};
  check(api->env->create(NULL, &env));
  check(api->model->load_file(env, path, NULL, &model));
  const pfrt_session_desc desc = {.struct_size = sizeof desc, .model = model};
  check(api->session->create(env, &desc, &session));
  float pixels[64] = {0};
  const int64_t dims[] = {1, 1, 8, 8};
  pfrt_io image = {.struct_size = sizeof image,
                   .tensor = {.struct_size = sizeof image.tensor,
                              .dtype = PFRT_DTYPE_FLOAT32,
                              .rank = 4,
                              .dims = dims,
                              .data = pixels,
                              .bytes = sizeof pixels}};
  pfrt_io result = {.struct_size = sizeof result, .tensor = {.struct_size = sizeof result.tensor}};
  check(api->session->run(session, &image, 1, &result, 1, NULL));
  pfrt_tensor probabilities = {.struct_size = sizeof probabilities};
  check(api->value->tensor(result.value, &probabilities));
  printf("%.4f\n", ((const float*)probabilities.data)[5]);
  api->value->release(result.value);
  api->session->release(session);
  api->model->release(model);
  api->env->release(env);
}
