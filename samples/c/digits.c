/* SPDX-License-Identifier: Apache-2.0
 *
 * Classifies handwritten digits through the C ABI: prints the class of the first held-out image and
 * its probability, then how many of all are right. Argument: the folder with digits.onnx and
 * digits_test.bin. */
#include <pyflame_rt/pyflame_rt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPixels = 64, kClasses = 10 };

typedef struct Digit {
  uint8_t label;
  uint8_t pixels[kPixels]; /* 0..16 */
} Digit;

/* The layout is described in samples/digits/train.py. The caller frees the digits. */
static Digit* read_digits(const char* path, uint32_t* out_count) {
  FILE* file = fopen(path, "rb");
  if (file == NULL) {
    fprintf(stderr, "digits: %s cannot be opened; the argument is the folder of the digits\n",
            path);
    return NULL;
  }
  char magic[8];
  uint32_t header[3]; /* count, height, width */
  Digit* digits = NULL;
  if (fread(magic, sizeof magic, 1, file) != 1 || fread(header, sizeof header, 1, file) != 1 ||
      memcmp(magic, "PFRTDIG1", sizeof magic) != 0 || header[0] == 0 || header[1] != 8 ||
      header[2] != 8) {
    fprintf(stderr, "digits: %s is not a file of 8x8 digits\n", path);
  } else if ((digits = calloc(header[0], sizeof *digits)) == NULL ||
             fread(digits, sizeof *digits, header[0], file) != header[0]) {
    fprintf(stderr, "digits: %s is truncated\n", path);
    free(digits);
    digits = NULL;
  }
  fclose(file);
  *out_count = header[0];
  return digits;
}

static int failed(const pfrt_api* api, pfrt_status* status) {
  if (status == NULL) return 0;
  const pfrt_string message = api->status->message(status);
  fprintf(stderr, "digits: %.*s\n", (int)message.size, message.data);
  api->status->release(status);
  return 1;
}

static int open_session(const pfrt_api* api, const char* path, pfrt_session** out_session) {
  pfrt_env* env = NULL;
  pfrt_model* model = NULL;
  pfrt_session_desc desc = {.struct_size = sizeof desc};
  const pfrt_string model_path = {path, strlen(path)};
  int bad = failed(api, api->env->create(NULL, &env)) ||
            failed(api, api->model->load_file(env, model_path, NULL, &model));
  if (!bad) {
    desc.model = model;
    bad = failed(api, api->session->create(env, &desc, out_session));
  }
  api->model->release(model); /* the session keeps what it needs */
  api->env->release(env);
  return bad;
}

/* Writes the probability of each class. */
static int classify(const pfrt_api* api, pfrt_session* session, const Digit* digit,
                    float probabilities[kClasses]) {
  static const int64_t kDims[4] = {1, 1, 8, 8};
  float image[kPixels];
  for (int p = 0; p < kPixels; ++p) image[p] = (float)digit->pixels[p] / 16.0f;
  pfrt_io input = {.struct_size = sizeof input,
                   .tensor = {.struct_size = sizeof input.tensor,
                              .dtype = PFRT_DTYPE_FLOAT32,
                              .rank = 4,
                              .data = image,
                              .bytes = sizeof image,
                              .dims = kDims}};
  pfrt_io output = {.struct_size = sizeof output,
                    .tensor = {.struct_size = sizeof output.tensor,
                               .dtype = PFRT_DTYPE_FLOAT32,
                               .data = probabilities,
                               .bytes = kClasses * sizeof *probabilities}};
  return failed(api, api->session->run(session, &input, 1, &output, 1, NULL));
}

static int classify_all(const pfrt_api* api, pfrt_session* session, const Digit* digits,
                        uint32_t count) {
  uint32_t right = 0;
  for (uint32_t i = 0; i < count; ++i) {
    float probabilities[kClasses];
    if (classify(api, session, &digits[i], probabilities)) return 1;
    int best = 0;
    for (int c = 1; c < kClasses; ++c) best = probabilities[c] > probabilities[best] ? c : best;
    if (i == 0)
      printf("the first image is a %d with probability %.6f\n", best, (double)probabilities[best]);
    right += best == digits[i].label;
  }
  printf("%u of %u held-out images are right\n", right, count);
  printf("accuracy %.1f %%\n", 100.0 * right / count);
  return 0;
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : ".";
  char test_path[4096], model_path[4096];
  const int length = snprintf(test_path, sizeof test_path, "%s/digits_test.bin", folder);
  if (length < 0 || (size_t)length >= sizeof test_path) {
    fprintf(stderr, "digits: the folder's name is longer than %zu bytes\n", sizeof test_path);
    return 1;
  }
  snprintf(model_path, sizeof model_path, "%s/digits.onnx", folder);

  pfrt_abi_info info = {.struct_size = sizeof info};
  const pfrt_api* api = pfrt_get_api(PFRT_ABI_VERSION, &info);
  if (api == NULL) {
    fprintf(stderr, "digits: %.*s\n", (int)info.message.size, info.message.data);
    return 1;
  }
  uint32_t count = 0;
  Digit* digits = read_digits(test_path, &count);
  if (digits == NULL) return 1;
  pfrt_session* session = NULL;
  const int bad =
      open_session(api, model_path, &session) || classify_all(api, session, digits, count);
  api->session->release(session);
  free(digits);
  return bad;
}
