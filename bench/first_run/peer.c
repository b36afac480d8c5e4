/* SPDX-License-Identifier: Apache-2.0 */
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>

static const OrtApi* api;

static void check(OrtStatus* status) {
  if (!status) return;
  fprintf(stderr, "%s\n", api->GetErrorMessage(status));
  exit(1);
}

int main(int count, char** arguments) {
  api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!api || count < 2) return 1;
  OrtEnv* env;
  OrtSessionOptions* options;
  OrtSession* session;
  OrtMemoryInfo* memory;
  check(api->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "first_run", &env));
  check(api->CreateSessionOptions(&options));
  check(api->CreateSession(env, arguments[1], options, &session));
  float pixels[64] = {0};
  const int64_t dims[] = {1, 1, 8, 8};
  OrtValue* image = NULL;
  OrtValue* result = NULL;
  check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeCPU, &memory));
  check(api->CreateTensorWithDataAsOrtValue(memory, pixels, sizeof pixels, dims, 4,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &image));
  const char* inputs[] = {"image"};
  const char* outputs[] = {"probabilities"};
  check(api->Run(session, NULL, inputs, (const OrtValue* const*)&image, 1, outputs, 1, &result));
  float* probabilities;
  check(api->GetTensorMutableData(result, (void**)&probabilities));
  printf("%.4f\n", probabilities[5]);
  api->ReleaseValue(result);
  api->ReleaseValue(image);
  api->ReleaseMemoryInfo(memory);
  api->ReleaseSession(session);
  api->ReleaseSessionOptions(options);
  api->ReleaseEnv(env);
}
