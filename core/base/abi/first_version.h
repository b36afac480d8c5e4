// SPDX-License-Identifier: Apache-2.0
//
// The structs of the C headers as they were in the first version that had them: a side that is
// older than this one may pass so few bytes. Rows never change; test/abi/complete.py holds them to
// those of layout_test.c. The tables of the client ABI have none, since a library reads none of
// them.
#pragma once

#include "pyflame_rt/custom.h"

namespace pfrt::abi {

struct FirstVersion {
  const char* name;
  uint32_t bytes;  // up to the end of the last member
  bool says_size;  // has struct_size
  bool frozen;     // never larger: it is part of other structs
};

template <typename T>
concept SaysSize = requires(T t) {
  t.struct_size;
};

template <typename T>
inline constexpr FirstVersion kFirst = {"", 0, false, false};

#define PFRT_FIRST(type, last)                                                                    \
  template <>                                                                                     \
  inline constexpr FirstVersion kFirst<type> = {#type, offsetof(type, last) + sizeof(type::last), \
                                                SaysSize<type>, false}

// NOLINTBEGIN(bugprone-sizeof-expression): some of the last members are pointers.
PFRT_FIRST(pfrt_quantization, zero_points);
PFRT_FIRST(pfrt_option_info, doc);
PFRT_FIRST(pfrt_weights, meta_count);
PFRT_FIRST(pfrt_definition, fail);
PFRT_FIRST(pfrt_plugin_info, abi_minor);
PFRT_FIRST(pfrt_provider_info, reason);
PFRT_FIRST(pfrt_kernel_info, isa);
PFRT_FIRST(pfrt_operator_info, types);
PFRT_FIRST(pfrt_allocator, release);
PFRT_FIRST(pfrt_memory_item, last);
PFRT_FIRST(pfrt_memory_request, host);
PFRT_FIRST(pfrt_memory_planner, release);
PFRT_FIRST(pfrt_executor, release);
PFRT_FIRST(pfrt_thread_hooks, release);
PFRT_FIRST(pfrt_ask_desc, options);
PFRT_FIRST(pfrt_service_desc, event_user);
PFRT_FIRST(pfrt_value_part, tensor);
PFRT_FIRST(pfrt_value_info, has_initializer);
PFRT_FIRST(pfrt_attr, graphs);
PFRT_FIRST(pfrt_node, attrs);
PFRT_FIRST(pfrt_reader, user);
PFRT_FIRST(pfrt_model_info, entries);
PFRT_FIRST(pfrt_sample, count);
PFRT_FIRST(pfrt_sample_source, rewind);
PFRT_FIRST(pfrt_session_desc, log_release);
PFRT_FIRST(pfrt_io, value);
PFRT_FIRST(pfrt_run_desc, observe_user);
PFRT_FIRST(pfrt_provider_state, failures);
PFRT_FIRST(pfrt_session_statistics, in_parts);
PFRT_FIRST(pfrt_state_pair, capacity);
PFRT_FIRST(pfrt_report_row, tuning);
PFRT_FIRST(pfrt_report_counter, value);
PFRT_FIRST(pfrt_pass_stats, initializers_removed);
PFRT_FIRST(pfrt_pass_report, stats);
PFRT_FIRST(pfrt_cache_config, ttl_s);
PFRT_FIRST(pfrt_cache_entry, used_ns);
PFRT_FIRST(pfrt_cache_statistics, invalid);
PFRT_FIRST(pfrt_request_desc, priority);
PFRT_FIRST(pfrt_response, latency_ns);
PFRT_FIRST(pfrt_batch_time, ns);
PFRT_FIRST(pfrt_batcher_statistics, unshared);
PFRT_FIRST(pfrt_streams_statistics, seconds);
PFRT_FIRST(pfrt_abi_info, message);
PFRT_FIRST(pfrt_host_info, version);
PFRT_FIRST(pfrt_plugin_desc, table);
PFRT_FIRST(pfrt_sink, tuning);
PFRT_FIRST(pfrt_tuning, left_ns);
PFRT_FIRST(pfrt_snapshot_value, consumer_count);
PFRT_FIRST(pfrt_snapshot_attr, tensor);
PFRT_FIRST(pfrt_snapshot_node, opset);
PFRT_FIRST(pfrt_snapshot, values);
PFRT_FIRST(pfrt_op_query, tail);
PFRT_FIRST(pfrt_claims, transfer);
PFRT_FIRST(pfrt_region, node_hints);
PFRT_FIRST(pfrt_packed_constant, user);
PFRT_FIRST(pfrt_shapes, least);
PFRT_FIRST(pfrt_buffer, offset);
PFRT_FIRST(pfrt_step_context, set_strings);
PFRT_FIRST(pfrt_step, tuning);
PFRT_FIRST(pfrt_program, handle);
PFRT_FIRST(pfrt_device_copy, reserved);
PFRT_FIRST(pfrt_counters, add);
PFRT_FIRST(pfrt_question, reserved);
PFRT_FIRST(pfrt_answer, tensor);
PFRT_FIRST(pfrt_provider_table, ask);
PFRT_FIRST(pfrt_import_request, define);
PFRT_FIRST(pfrt_export_request, add_sidecar);
PFRT_FIRST(pfrt_importer_table, option_at);
PFRT_FIRST(pfrt_events, event);
PFRT_FIRST(pfrt_service_request, events);
PFRT_FIRST(pfrt_service_table, ask);
PFRT_FIRST(pfrt_executor_table, create);
PFRT_FIRST(pfrt_op_infer, fail);
PFRT_FIRST(pfrt_op_create, fail);
PFRT_FIRST(pfrt_op_compute, set_strings);
PFRT_FIRST(pfrt_custom_op, release_state);
PFRT_FIRST(pfrt_ops_table, count);
PFRT_FIRST(pfrt_client_provider, user);
PFRT_FIRST(pfrt_pass_call, stats);
PFRT_FIRST(pfrt_custom_pass, user);
PFRT_FIRST(pfrt_pass_table, count);
PFRT_FIRST(pfrt_memory_report, device_states);
PFRT_FIRST(pfrt_pool_config, initial_pool_size);
PFRT_FIRST(pfrt_pool_stats, peak_usage);
// NOLINTEND(bugprone-sizeof-expression)
#undef PFRT_FIRST

template <>
inline constexpr FirstVersion kFirst<pfrt_tensor> = {"pfrt_tensor", sizeof(pfrt_tensor), true,
                                                     true};

// The flags of a struct's member |flags| that this version gives a meaning.
template <typename T>
inline constexpr uint64_t kKnownFlags = ~uint64_t{0};
template <>
inline constexpr uint64_t kKnownFlags<pfrt_io> =
    PFRT_IO_SKIP | PFRT_IO_IN_PLACE | PFRT_IO_ON_DEVICE;
template <>
inline constexpr uint64_t kKnownFlags<pfrt_run_desc> = PFRT_RUN_KEEPS_STATE;
template <>
inline constexpr uint64_t kKnownFlags<pfrt_pool_config> =
    PFRT_POOL_ONE_THREAD | PFRT_POOL_NO_STATS | PFRT_POOL_NO_GROWTH;
template <>
inline constexpr uint64_t kKnownFlags<pfrt_custom_op> = PFRT_OP_SERIAL | PFRT_OP_DATA_DEPENDENT;
template <>
inline constexpr uint64_t kKnownFlags<pfrt_step> = PFRT_STEP_LONG;
template <>
inline constexpr uint64_t kKnownFlags<pfrt_snapshot_value> =
    PFRT_SNAPSHOT_CONSTANT | PFRT_SNAPSHOT_GRAPH_INPUT | PFRT_SNAPSHOT_GRAPH_OUTPUT |
    PFRT_SNAPSHOT_NOT_TENSOR;

}  // namespace pfrt::abi
