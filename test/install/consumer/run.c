/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the digits model on a blank image through the C ABI and prints the number of outputs. With a
 * second argument, fails when protobuf or an importer is in the process afterwards. */
#include <pyflame_rt/pyflame_rt.h>
#include <stdio.h>
#include <string.h>

static int failed(const pfrt_api* api, pfrt_status* status) {
  if (status == NULL) return 0;
  const pfrt_string text = api->status->message(status);
  fprintf(stderr, "run_c: %.*s\n", (int)text.size, text.data);
  api->status->release(status);
  return 1;
}

static int mapped(const char* name) {
  char line[4096];
  int found = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
    found |= strstr(line, name) != NULL;
  if (maps != NULL) fclose(maps);
  return found;
}

int main(int argc, char** argv) {
  pfrt_abi_info info = {sizeof info};
  const pfrt_api* api = pfrt_get_api(PFRT_ABI_VERSION, &info);
  if (api == NULL || argc < 2) return 2;
  pfrt_env* env = NULL;
  pfrt_model* model = NULL;
  pfrt_session* session = NULL;
  const pfrt_string path = {argv[1], strlen(argv[1])};
  if (failed(api, api->env->create(NULL, &env))) return 1;
  if (failed(api, api->model->load_file(env, path, NULL, &model))) return 1;
  pfrt_session_desc desc = {sizeof desc};
  desc.model = model;
  if (failed(api, api->session->create(env, &desc, &session))) return 1;

  static float pixels[64];
  const int64_t dims[4] = {1, 1, 8, 8};
  pfrt_io input = {sizeof input}, output = {sizeof output};
  input.tensor.struct_size = output.tensor.struct_size = sizeof input.tensor;
  input.tensor.dtype = PFRT_DTYPE_FLOAT32;
  input.tensor.rank = 4;
  input.tensor.dims = dims;
  input.tensor.data = pixels;
  input.tensor.bytes = sizeof pixels;
  if (failed(api, api->session->run(session, &input, 1, &output, 1, NULL))) return 1;
  pfrt_tensor result = {sizeof result};
  if (failed(api, api->value->tensor(output.value, &result))) return 1;
  printf("%lld classes\n", (long long)result.dims[1]);
  api->value->release(output.value);
  api->session->release(session);
  api->model->release(model);
  const int unwanted = argc > 2 && (mapped("libprotobuf") || mapped("libpyflamert_import"));
  if (unwanted) fprintf(stderr, "run_c: protobuf or an importer was loaded for a .pfm model\n");
  api->env->release(env);
  return unwanted;
}
