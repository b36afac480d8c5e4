/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the last member of every struct of ABI 1.0 stands, and how large the structs were: an older
 * client or plug-in passes these sizes. A newer band may make a struct larger, so sizes are held
 * only while 1.0 is the newest.
 */
#include <assert.h>
#include <stddef.h>

#include "pyflame_rt/plugin.h"

#define PFRT_ENDS(type, member, offset) \
  static_assert(offsetof(type, member) == (offset), #type "." #member " has moved")
#if PFRT_ABI_MAJOR == 1 && PFRT_ABI_MINOR == 0
#define PFRT_SIZE(type, size) static_assert(sizeof(type) == (size), #type " has another size")
#else
#define PFRT_SIZE(type, size) static_assert(sizeof(type) >= (size), #type " is smaller")
#endif

#if defined(__x86_64__) || defined(__aarch64__)
PFRT_ENDS(pfrt_string, size, 8);
PFRT_SIZE(pfrt_string, 16);
PFRT_ENDS(pfrt_key_value, value, 16);
PFRT_SIZE(pfrt_key_value, 32);
PFRT_ENDS(pfrt_tensor, strides, 40);
PFRT_SIZE(pfrt_tensor, 48);
PFRT_ENDS(pfrt_status_api, code_text, 48);
PFRT_SIZE(pfrt_status_api, 56);
PFRT_ENDS(pfrt_option_info, doc, 56);
PFRT_SIZE(pfrt_option_info, 72);
PFRT_ENDS(pfrt_options_api, reset_cancel, 112);
PFRT_SIZE(pfrt_options_api, 120);
PFRT_ENDS(pfrt_plugin_info, abi_minor, 92);
PFRT_SIZE(pfrt_plugin_info, 96);
PFRT_ENDS(pfrt_provider_info, reason, 56);
PFRT_SIZE(pfrt_provider_info, 72);
PFRT_ENDS(pfrt_kernel_info, isa, 80);
PFRT_SIZE(pfrt_kernel_info, 96);
PFRT_ENDS(pfrt_operator_info, runs_in, 48);
PFRT_SIZE(pfrt_operator_info, 64);
PFRT_ENDS(pfrt_env_api, operator_at, 104);
PFRT_SIZE(pfrt_env_api, 112);
PFRT_ENDS(pfrt_value_api, dtype, 128);
PFRT_SIZE(pfrt_value_api, 136);
PFRT_ENDS(pfrt_value_info, has_initializer, 52);
PFRT_SIZE(pfrt_value_info, 56);
PFRT_ENDS(pfrt_attr, graphs, 112);
PFRT_SIZE(pfrt_attr, 120);
PFRT_ENDS(pfrt_node, attrs, 112);
PFRT_SIZE(pfrt_node, 120);
PFRT_ENDS(pfrt_graph_api, infer_shapes, 248);
PFRT_SIZE(pfrt_graph_api, 256);
PFRT_ENDS(pfrt_model_info, import_ms, 144);
PFRT_SIZE(pfrt_model_info, 152);
PFRT_ENDS(pfrt_model_api, warning_at, 96);
PFRT_SIZE(pfrt_model_api, 104);
PFRT_ENDS(pfrt_session_desc, extra_output_count, 32);
PFRT_SIZE(pfrt_session_desc, 40);
PFRT_ENDS(pfrt_io, value, 64);
PFRT_SIZE(pfrt_io, 72);
PFRT_ENDS(pfrt_session_api, model, 96);
PFRT_SIZE(pfrt_session_api, 104);
PFRT_ENDS(pfrt_report_row, measured_ns, 128);
PFRT_SIZE(pfrt_report_row, 136);
PFRT_ENDS(pfrt_report_api, note_at, 40);
PFRT_SIZE(pfrt_report_api, 48);
PFRT_ENDS(pfrt_api, report, 64);
PFRT_SIZE(pfrt_api, 72);
PFRT_ENDS(pfrt_abi_info, message, 24);
PFRT_SIZE(pfrt_abi_info, 40);
PFRT_ENDS(pfrt_host_info, version, 24);
PFRT_SIZE(pfrt_host_info, 40);
PFRT_ENDS(pfrt_plugin_desc, table, 72);
PFRT_SIZE(pfrt_plugin_desc, 80);
PFRT_ENDS(pfrt_sink, log, 24);
PFRT_SIZE(pfrt_sink, 32);
PFRT_ENDS(pfrt_snapshot_value, consumer_count, 76);
PFRT_SIZE(pfrt_snapshot_value, 80);
PFRT_ENDS(pfrt_snapshot_attr, tensor, 80);
PFRT_SIZE(pfrt_snapshot_attr, 128);
PFRT_ENDS(pfrt_snapshot_node, attr_count, 88);
PFRT_SIZE(pfrt_snapshot_node, 96);
PFRT_ENDS(pfrt_snapshot, values, 40);
PFRT_SIZE(pfrt_snapshot, 48);
PFRT_ENDS(pfrt_op_query, reserved, 36);
PFRT_SIZE(pfrt_op_query, 40);
PFRT_ENDS(pfrt_claims, group, 32);
PFRT_SIZE(pfrt_claims, 40);
PFRT_ENDS(pfrt_region, hints, 48);
PFRT_SIZE(pfrt_region, 56);
PFRT_ENDS(pfrt_packed_constant, user, 48);
PFRT_SIZE(pfrt_packed_constant, 56);
PFRT_ENDS(pfrt_shapes, reserved, 28);
PFRT_SIZE(pfrt_shapes, 32);
PFRT_ENDS(pfrt_buffer, offset, 32);
PFRT_SIZE(pfrt_buffer, 40);
PFRT_ENDS(pfrt_step_context, fail, 64);
PFRT_SIZE(pfrt_step_context, 72);
PFRT_ENDS(pfrt_step, kernel, 88);
PFRT_ENDS(pfrt_step, flags, 104);
PFRT_ENDS(pfrt_step, detail, 112);
PFRT_SIZE(pfrt_step, 128);
PFRT_ENDS(pfrt_program, handle, 40);
PFRT_SIZE(pfrt_program, 48);
PFRT_ENDS(pfrt_provider_table, kernel_at, 104);
PFRT_SIZE(pfrt_provider_table, 112);
PFRT_ENDS(pfrt_import_request, set_info, 128);
PFRT_SIZE(pfrt_import_request, 136);
PFRT_ENDS(pfrt_export_request, stop, 80);
PFRT_SIZE(pfrt_export_request, 88);
PFRT_ENDS(pfrt_importer_table, save, 40);
PFRT_SIZE(pfrt_importer_table, 48);
#endif

/* Numbers that cross the border as data. */
#define PFRT_IS(name, number) static_assert(name == (number), #name " has another number")
PFRT_IS(PFRT_CODE_OK, 0);
PFRT_IS(PFRT_CODE_INVALID_ARGUMENT, 1);
PFRT_IS(PFRT_CODE_INPUT, 2);
PFRT_IS(PFRT_CODE_SHAPE_MISMATCH, 3);
PFRT_IS(PFRT_CODE_DTYPE_MISMATCH, 4);
PFRT_IS(PFRT_CODE_NOT_FOUND, 5);
PFRT_IS(PFRT_CODE_INVALID_MODEL, 6);
PFRT_IS(PFRT_CODE_UNSUPPORTED_FORMAT, 7);
PFRT_IS(PFRT_CODE_UNSUPPORTED_OPERATOR, 8);
PFRT_IS(PFRT_CODE_VALIDATION, 9);
PFRT_IS(PFRT_CODE_UNSUPPORTED, 10);
PFRT_IS(PFRT_CODE_PROVIDER, 11);
PFRT_IS(PFRT_CODE_PLUGIN, 12);
PFRT_IS(PFRT_CODE_CANCELLED, 13);
PFRT_IS(PFRT_CODE_DEADLINE, 14);
PFRT_IS(PFRT_CODE_OUT_OF_MEMORY, 15);
PFRT_IS(PFRT_CODE_DATA_LOSS, 16);
PFRT_IS(PFRT_CODE_DEVICE_LOST, 17);
PFRT_IS(PFRT_CODE_IO, 18);
PFRT_IS(PFRT_CODE_INTERNAL, 19);
PFRT_IS(PFRT_DTYPE_FLOAT32, 1);
PFRT_IS(PFRT_DTYPE_UINT8, 2);
PFRT_IS(PFRT_DTYPE_INT8, 3);
PFRT_IS(PFRT_DTYPE_UINT16, 4);
PFRT_IS(PFRT_DTYPE_INT16, 5);
PFRT_IS(PFRT_DTYPE_INT32, 6);
PFRT_IS(PFRT_DTYPE_INT64, 7);
PFRT_IS(PFRT_DTYPE_STRING, 8);
PFRT_IS(PFRT_DTYPE_BOOL, 9);
PFRT_IS(PFRT_DTYPE_FLOAT16, 10);
PFRT_IS(PFRT_DTYPE_FLOAT64, 11);
PFRT_IS(PFRT_DTYPE_UINT32, 12);
PFRT_IS(PFRT_DTYPE_UINT64, 13);
PFRT_IS(PFRT_DTYPE_COMPLEX64, 14);
PFRT_IS(PFRT_DTYPE_COMPLEX128, 15);
PFRT_IS(PFRT_DTYPE_BFLOAT16, 16);
PFRT_IS(PFRT_DTYPE_FLOAT8E4M3FN, 17);
PFRT_IS(PFRT_DTYPE_FLOAT8E4M3FNUZ, 18);
PFRT_IS(PFRT_DTYPE_FLOAT8E5M2, 19);
PFRT_IS(PFRT_DTYPE_FLOAT8E5M2FNUZ, 20);
PFRT_IS(PFRT_DTYPE_UINT4, 21);
PFRT_IS(PFRT_DTYPE_INT4, 22);
PFRT_IS(PFRT_DTYPE_FLOAT4E2M1, 23);
PFRT_IS(PFRT_DTYPE_FLOAT8E8M0, 24);
PFRT_IS(PFRT_DTYPE_UINT2, 25);
PFRT_IS(PFRT_DTYPE_INT2, 26);
PFRT_IS(PFRT_VALUE_TENSOR, 1);
PFRT_IS(PFRT_VALUE_SEQUENCE, 2);
PFRT_IS(PFRT_VALUE_MAP, 3);
PFRT_IS(PFRT_VALUE_OPTIONAL, 4);
PFRT_IS(PFRT_VALUE_SPARSE, 5);
PFRT_IS(PFRT_MEMORY_HOST, 0);
PFRT_IS(PFRT_MEMORY_DEVICE, 1);
PFRT_IS(PFRT_LOG_DEBUG, 1);
PFRT_IS(PFRT_LOG_INFO, 2);
PFRT_IS(PFRT_LOG_WARNING, 3);
PFRT_IS(PFRT_LOG_ERROR, 4);
PFRT_IS(PFRT_LOG_OFF, 5);
PFRT_IS(PFRT_ATTR_FLOAT, 1);
PFRT_IS(PFRT_ATTR_INT, 2);
PFRT_IS(PFRT_ATTR_STRING, 3);
PFRT_IS(PFRT_ATTR_TENSOR, 4);
PFRT_IS(PFRT_ATTR_GRAPH, 5);
PFRT_IS(PFRT_ATTR_FLOATS, 6);
PFRT_IS(PFRT_ATTR_INTS, 7);
PFRT_IS(PFRT_ATTR_STRINGS, 8);
PFRT_IS(PFRT_ATTR_TENSORS, 9);
PFRT_IS(PFRT_ATTR_GRAPHS, 10);
PFRT_IS(PFRT_ATTR_SPARSE, 11);
PFRT_IS(PFRT_ATTR_TYPE, 13);
PFRT_IS(PFRT_OPTIONS_ENV, 1);
PFRT_IS(PFRT_OPTIONS_LOAD, 2);
PFRT_IS(PFRT_OPTIONS_SESSION, 3);
PFRT_IS(PFRT_OPTIONS_RUN, 4);
PFRT_IS(PFRT_OPTION_BOOL, 1);
PFRT_IS(PFRT_OPTION_INT, 2);
PFRT_IS(PFRT_OPTION_FLOAT, 3);
PFRT_IS(PFRT_OPTION_STRING, 4);
PFRT_IS(PFRT_OPTION_STRINGS, 5);
PFRT_IS(PFRT_COPY, 1);
PFRT_IS(PFRT_BORROW, 2);
PFRT_IS(PFRT_IO_SKIP, 1);
PFRT_IS(PFRT_PLUGIN_PROVIDER, 1);
PFRT_IS(PFRT_PLUGIN_IMPORT, 2);
PFRT_IS(PFRT_PLUGIN_OPS, 3);
PFRT_IS(PFRT_PLUGIN_PASS, 4);
PFRT_IS(PFRT_PLUGIN_SERVICE, 5);
PFRT_IS(PFRT_PLUGIN_TRANSPORT, 6);
PFRT_IS(PFRT_SANITIZER_NONE, 0);
PFRT_IS(PFRT_SANITIZER_ADDRESS, 1);
PFRT_IS(PFRT_SANITIZER_THREAD, 2);
PFRT_IS(PFRT_SNAPSHOT_CONSTANT, 1);
PFRT_IS(PFRT_SNAPSHOT_GRAPH_INPUT, 2);
PFRT_IS(PFRT_SNAPSHOT_GRAPH_OUTPUT, 4);
PFRT_IS(PFRT_SNAPSHOT_NOT_TENSOR, 8);
PFRT_IS(PFRT_COMPILE_RUN_ONCE, 1);
PFRT_IS(PFRT_COMPILE_PLAIN, 2);
PFRT_IS(PFRT_BUFFER_IN, 1);
PFRT_IS(PFRT_BUFFER_OUT, 2);
PFRT_IS(PFRT_BUFFER_TEMP, 3);
PFRT_IS(PFRT_BUFFER_CONST, 4);
PFRT_IS(PFRT_BUFFER_INITIALIZER, 5);
PFRT_IS(PFRT_BUFFER_STATE, 6);
PFRT_IS(PFRT_BUFFER_PART, 7);
PFRT_IS(PFRT_PROVIDER_SUPPORTS, 1);
PFRT_IS(PFRT_PROVIDER_SIMULATED, 2);
PFRT_IS(PFRT_PROVIDER_CONSTANTS, 4);
PFRT_IS(PFRT_PROVIDER_KERNELS, 8);
PFRT_IS(PFRT_IMPORTER_SAVE, 1);
