/* SPDX-License-Identifier: Apache-2.0
 *
 * A service that does nothing and keeps every rule, with all features; each plug-in that includes
 * this spoils one thing of it by a macro.
 */
#pragma once

#include <string.h>

#include "pyflame_rt/plugin.h"

#define TEXT(literal) ((pfrt_string){literal, sizeof literal - 1})

static pfrt_code service_fail(const pfrt_sink* sink, pfrt_code code, const char* why) {
  return sink->fail(sink, code, PFRT_NO_INDEX, (pfrt_string){why, strlen(why)});
}

#ifndef DEFAULT_COLOUR
#define DEFAULT_COLOUR "red"
#endif
static size_t option_count(void) { return 1; }
static pfrt_code option_at(size_t index, pfrt_option_info* out) {
  if (index > 0) return PFRT_CODE_INVALID_ARGUMENT;
  out->type = PFRT_OPTION_STRING;
  out->key = TEXT("colour");
  out->default_value = TEXT(DEFAULT_COLOUR);
  out->choices = TEXT("red green");
  out->doc = TEXT("Colour of nothing");
  return PFRT_CODE_OK;
}

#ifndef EVENT_NAME
#define EVENT_NAME "started"
#endif
#ifndef SECOND_FRACTION
#define SECOND_FRACTION 0.75
#endif
#ifndef WHEN_STOPPED
#define WHEN_STOPPED(code) (code)
#endif
static pfrt_code start(const pfrt_service_request* request, const pfrt_sink* sink,
                       pfrt_service_instance** out) {
  static int handle;
  *out = NULL;
  sink->progress(sink, 0.5);
  sink->progress(sink, SECOND_FRACTION);
  const pfrt_code stopped = sink->stop(sink);
  if (stopped) return service_fail(sink, WHEN_STOPPED(stopped), "it was stopped");
  request->events->event(request->events, TEXT(EVENT_NAME), TEXT(""));
  *out = (pfrt_service_instance*)(void*)&handle;
  return PFRT_CODE_OK;
}
static void stop(pfrt_service_instance* service) { (void)service; }
static pfrt_string address(const pfrt_service_instance* service) {
  (void)service;
  return TEXT("nowhere");
}

#ifndef CHECK_CODE
#define CHECK_CODE PFRT_CODE_OK
#endif
static pfrt_code check(const pfrt_service_request* request, const pfrt_sink* sink) {
  (void)request;
  return CHECK_CODE == PFRT_CODE_OK ? (pfrt_code)PFRT_CODE_OK
                                    : service_fail(sink, CHECK_CODE, "it takes no options at all");
}

#ifndef UNKNOWN_VERB
#define UNKNOWN_VERB PFRT_CODE_UNSUPPORTED
#endif
static pfrt_code ask(pfrt_service_instance* service, const pfrt_question* question,
                     const pfrt_answer* answer, const pfrt_sink* sink) {
  (void)service;
  if (question->verb.size == 5 && memcmp(question->verb.data, "hello", 5) == 0) {
    answer->text(answer, question->request);
    return PFRT_CODE_OK;
  }
  return UNKNOWN_VERB == PFRT_CODE_OK ? (pfrt_code)PFRT_CODE_OK
                                      : service_fail(sink, UNKNOWN_VERB, "it knows hello");
}

static const pfrt_service_table kTable = {
    .struct_size = sizeof(pfrt_service_table),
    .abi = PFRT_ABI_VERSION,
    .start = start,
    .stop = stop,
    .address = address,
    .option_count = option_count,
    .option_at = option_at,
    .check = check,
    .ask = ask,
};

PFRT_EXPORT pfrt_code pfrt_plugin_query(const pfrt_host_info* host, pfrt_plugin_desc* out_desc) {
  (void)host;
  out_desc->abi = PFRT_ABI_VERSION;
  out_desc->abi_major = PFRT_ABI_MAJOR;
  out_desc->max_minor = PFRT_ABI_MINOR;
  out_desc->kind = PFRT_PLUGIN_SERVICE;
#if defined(PFRT_SANITIZE_ADDRESS)
  out_desc->sanitizer = PFRT_SANITIZER_ADDRESS;
#elif defined(PFRT_SANITIZE_THREAD)
  out_desc->sanitizer = PFRT_SANITIZER_THREAD;
#endif
  out_desc->features =
      PFRT_SERVICE_ADDRESS | PFRT_SERVICE_OPTIONS | PFRT_SERVICE_CHECK | PFRT_SERVICE_ASK;
  out_desc->name = TEXT(SERVICE_NAME);
  out_desc->version = TEXT("9.9");
  out_desc->table = &kTable;
  return PFRT_CODE_OK;
}
