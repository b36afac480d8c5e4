/* SPDX-License-Identifier: Apache-2.0
 *
 * Opens the library by the path that is its argument. Prints the path of each plug-in that it finds
 * and can load, a line each, and then what it says of a provider that is not there.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "pyflame_rt/pyflame_rt.h"

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!library) {
    fprintf(stderr, "%s\n", argc == 2 ? dlerror() : "usage: list_plugins LIBRARY");
    return 2;
  }
  const pfrt_api* (*get_api)(uint32_t, pfrt_abi_info*) = NULL;
  *(void**)&get_api = dlsym(library, "pfrt_get_api");
  if (!get_api) return 3;
  const pfrt_api* api = get_api(PFRT_ABI_VERSION, NULL);
  if (!api) return 4;
  pfrt_env* env = NULL;
  if (api->env->create(NULL, &env)) return 5;
  for (size_t i = 0; i < api->env->plugin_count(env); ++i) {
    pfrt_plugin_info info = {0};
    info.struct_size = sizeof info;
    if (api->env->plugin_at(env, i, &info)) return 6;
    if (info.loaded) printf("%.*s\n", (int)info.path.size, info.path.data);
  }
  size_t count = 0;
  const pfrt_string nobody = {"Nobody", 6};
  pfrt_status* none = api->env->kernel_count(env, nobody, &count);
  const pfrt_string text = api->status->message(none);
  printf("%.*s\n", (int)text.size, text.data);
  api->status->release(none);
  api->env->release(env);
  return 0;
}
