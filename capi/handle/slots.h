// SPDX-License-Identifier: Apache-2.0
//
// The tables of the ABI, and those of their functions that have a file of their own.
#pragma once

#include "core/memory/allocator.h"
#include "pyflame_rt/pyflame_rt.h"

namespace pfrt::capi {

// Entries of the environment's table that concern services (service.cc).
pfrt_status* service_option_count(pfrt_env* env, pfrt_string name, size_t* out);
pfrt_status* service_option_at(pfrt_env* env, pfrt_string name, size_t index,
                               pfrt_option_info* out);
pfrt_status* service_check(pfrt_env* env, const pfrt_service_desc* desc);
pfrt_status* service_start(pfrt_env* env, const pfrt_service_desc* desc, pfrt_service** out);
void service_stop(pfrt_service* service);
pfrt_string service_address(const pfrt_service* service);
pfrt_status* service_ask(pfrt_service* service, const pfrt_ask_desc* desc, pfrt_reply** out);
// Entries of the environment's table for questions (ask.cc).
pfrt_status* ask(pfrt_env* env, const pfrt_ask_desc* desc, pfrt_reply** out);
void release_reply(pfrt_reply* reply);
pfrt_string reply_text(const pfrt_reply* reply);
size_t reply_count(const pfrt_reply* reply);
pfrt_status* reply_at(const pfrt_reply* reply, size_t index, pfrt_string* out_name,
                      pfrt_value** out_value);

// Entries of the environment's table that have a file of their own.
pfrt_status* provider_option_count(pfrt_env* env, pfrt_string provider, size_t* out);
pfrt_status* provider_option_at(pfrt_env* env, pfrt_string provider, size_t index,
                                pfrt_option_info* out);
pfrt_status* importer_option_count(pfrt_env* env, pfrt_string importer, size_t* out);
pfrt_status* importer_option_at(pfrt_env* env, pfrt_string importer, size_t index,
                                pfrt_option_info* out);

pfrt_status* create_on(pfrt_session* session, pfrt_string provider, pfrt_dtype dtype,
                       const int64_t* dims, size_t rank, pfrt_value** out);
pfrt_status* copy_value(const pfrt_value* from, pfrt_value* to);
pfrt_status* create_strings(const int64_t* dims, size_t rank, const char* text, size_t size,
                            const uint64_t* ends, pfrt_value** out);
pfrt_status* strings(const pfrt_value* value, char* text, size_t capacity, size_t* out_size,
                     uint64_t* ends);
pfrt_status* value_parts(const pfrt_value* const* values, size_t value_count,
                         pfrt_value_part* parts, size_t capacity, size_t* out_count);
// Entries of the environment's table that have files of their own.
pfrt_status* register_operator(pfrt_env* env, const pfrt_custom_op* op);
pfrt_status* unregister_operator(pfrt_env* env, pfrt_string domain, pfrt_string name);
pfrt_status* custom_operator_count(pfrt_env* env, size_t* out_count);
pfrt_status* custom_operator_at(pfrt_env* env, size_t index, pfrt_operator_info* out_info);
pfrt_status* register_provider(pfrt_env* env, const pfrt_client_provider* provider);
pfrt_status* register_pass(pfrt_env* env, const pfrt_custom_pass* pass);

// The client's functions as an allocator; its release is called whatever becomes of this.
Result<AllocatorPtr> allocator_of(const pfrt_allocator* client);
pfrt_status* set_allocator(pfrt_env* env, const pfrt_allocator* allocator);
pfrt_status* set_executor(pfrt_env* env, const pfrt_executor* executor);
pfrt_status* set_memory_planner(pfrt_env* env, const pfrt_memory_planner* planner);
pfrt_status* set_thread_hooks(pfrt_env* env, const pfrt_thread_hooks* hooks);

extern const pfrt_status_api kStatusApi;
extern const pfrt_options_api kOptionsApi;
extern const pfrt_env_api kEnvApi;
extern const pfrt_value_api kValueApi;
extern const pfrt_graph_api kGraphApi;
extern const pfrt_model_api kModelApi;
extern const pfrt_session_api kSessionApi;
extern const pfrt_report_api kReportApi;
extern const pfrt_optimizer_api kOptimizerApi;
extern const pfrt_pattern_api kPatternApi;
extern const pfrt_state_api kStateApi;
extern const pfrt_cache_api kCacheApi;
extern const pfrt_memory_api kMemoryApi;
extern const pfrt_batcher_api kBatcherApi;
extern const pfrt_streams_api kStreamsApi;
extern const pfrt_api kApi;

}  // namespace pfrt::capi
