// SPDX-License-Identifier: Apache-2.0
//
// The keys of the schema as constants, each with its kind of options and the type of its values: a
// key that the schema does not have, or has with another type, does not compile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/options/schema.h"

namespace pfrt {

template <typename T>
constexpr pfrt_option_type option_type() {
  if constexpr (std::is_same_v<T, bool>) return PFRT_OPTION_BOOL;
  if constexpr (std::is_same_v<T, int64_t>) return PFRT_OPTION_INT;
  if constexpr (std::is_same_v<T, double>) return PFRT_OPTION_FLOAT;
  if constexpr (std::is_same_v<T, std::string>) return PFRT_OPTION_STRING;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return PFRT_OPTION_STRINGS;
  return PFRT_OPTION_UNSET;
}

template <pfrt_options_kind kind, typename T>
struct Option {
  std::string_view key;

  consteval explicit Option(std::string_view name) : key(name) {
    for (const OptionRow& row : option_schema(kind))
      if (row.key == name && row.type == option_type<T>()) return;
    throw "the schema has no such key of this type";
  }
};

namespace env_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_ENV, T>;

inline constexpr Key<std::string> kPluginPath{"plugin_path"};
inline constexpr Key<std::string> kLogLevel{"log_level"};
inline constexpr Key<int64_t> kThreads{"threads"};
inline constexpr Key<std::string> kExecutor{"executor"};
inline constexpr Key<bool> kGuardMappedFiles{"guard_mapped_files"};
inline constexpr Key<int64_t> kMemoryLimit{"memory_limit"};
inline constexpr Key<int64_t> kAsyncQueue{"async_queue"};
inline constexpr Key<int64_t> kCacheMaxBytes{"cache_max_bytes"};
inline constexpr Key<int64_t> kCacheMaxEntries{"cache_max_entries"};
inline constexpr Key<int64_t> kCacheTtlS{"cache_ttl_s"};
inline constexpr Key<std::string> kMemoryPressure{"memory_pressure"};
inline constexpr Key<int64_t> kMemoryIdleS{"memory_idle_s"};
inline constexpr Key<std::string> kMemoryPressureRoot{"memory_pressure_root"};

}  // namespace env_option

namespace load_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_LOAD, T>;

inline constexpr Key<bool> kValidate{"validate"};
inline constexpr Key<bool> kInferShapes{"infer_shapes"};
inline constexpr Key<int64_t> kTimeoutMs{"timeout_ms"};
inline constexpr Key<std::string> kConfine{"confine"};
inline constexpr Key<int64_t> kMemoryLimit{"memory_limit"};
inline constexpr Key<std::string> kCacheDir{"cache_dir"};
inline constexpr Key<std::string> kEntry{"entry"};

}  // namespace load_option

namespace session_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_SESSION, T>;

inline constexpr Key<std::string> kDevice{"device"};
inline constexpr Key<std::vector<std::string>> kProviders{"providers"};
inline constexpr Key<std::string> kAssign{"assign"};
inline constexpr Key<int64_t> kNumThreads{"num_threads"};
inline constexpr Key<std::string> kExecutionMode{"execution_mode"};
inline constexpr Key<std::string> kOptimizationLevel{"optimization_level"};
inline constexpr Key<std::vector<std::string>> kSkipPasses{"skip_passes"};
inline constexpr Key<bool> kVerboseOptimization{"verbose_optimization"};
inline constexpr Key<bool> kStrictDimensionNames{"strict_dimension_names"};
inline constexpr Key<std::string> kVerify{"verify"};
inline constexpr Key<bool> kEnableProfiling{"enable_profiling"};
inline constexpr Key<std::string> kProfileFilePrefix{"profile_file_prefix"};
inline constexpr Key<std::string> kLogLevel{"log_level"};
inline constexpr Key<std::string> kPrecision{"precision"};
inline constexpr Key<std::vector<std::string>> kNodePrecision{"node_precision"};
inline constexpr Key<double> kMaxError{"max_error"};
inline constexpr Key<std::string> kDeterministic{"deterministic"};
inline constexpr Key<std::string> kTune{"tune"};
inline constexpr Key<double> kTuneBudgetS{"tune_budget_s"};
inline constexpr Key<std::string> kTuneSearch{"tune_search"};
inline constexpr Key<int64_t> kTuneIterations{"tune_iterations"};
inline constexpr Key<int64_t> kTuneRepeats{"tune_repeats"};
inline constexpr Key<std::string> kCacheDir{"cache_dir"};
inline constexpr Key<bool> kEnableMemReuse{"enable_mem_reuse"};
inline constexpr Key<bool> kEnableMemPattern{"enable_mem_pattern"};
inline constexpr Key<bool> kUseEnvAllocators{"session.use_env_allocators"};
inline constexpr Key<bool> kSetDenormalAsZero{"session.set_denormal_as_zero"};
inline constexpr Key<int64_t> kImageMaxPixels{"image.max_pixels"};
inline constexpr Key<int64_t> kCreateTimeoutMs{"create_timeout_ms"};
inline constexpr Key<std::string> kFallback{"session.fallback"};
inline constexpr Key<std::string> kHalveBatch{"session.halve_batch"};
inline constexpr Key<int64_t> kDeviceReopenMs{"session.device_reopen_ms"};

}  // namespace session_option

namespace optimizer_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_OPTIMIZER, T>;

inline constexpr Key<int64_t> kTimeoutMs{"timeout_ms"};
inline constexpr Key<std::string> kLevel{"level"};
inline constexpr Key<int64_t> kMaxIterations{"max_iterations"};
inline constexpr Key<bool> kVerbose{"verbose"};
inline constexpr Key<bool> kValidateAfterPass{"validate_after_pass"};
inline constexpr Key<bool> kStrictDimensionNames{"strict_dimension_names"};
inline constexpr Key<std::vector<std::string>> kSkipPasses{"skip_passes"};
inline constexpr Key<std::string> kVerify{"verify"};
inline constexpr Key<std::vector<std::string>> kProviders{"providers"};
inline constexpr Key<int64_t> kConstantFoldingMaxTensorBytes{"constant_folding.max_tensor_bytes"};
inline constexpr Key<bool> kConstantFoldingFoldShapeOps{"constant_folding.fold_shape_ops"};
inline constexpr Key<bool> kConstantFoldingFoldExpensiveOps{"constant_folding.fold_expensive_ops"};
inline constexpr Key<std::vector<std::string>> kConstantFoldingExcludeOps{
    "constant_folding.exclude_ops"};
inline constexpr Key<bool> kDceRemoveInitializers{"dce.remove_initializers"};
inline constexpr Key<bool> kDceRemoveIdentity{"dce.remove_identity"};
inline constexpr Key<bool> kDceRemoveDropout{"dce.remove_dropout"};
inline constexpr Key<bool> kCseCheckAttributes{"cse.check_attributes"};
inline constexpr Key<int64_t> kCseMaxComparisons{"cse.max_comparisons"};
inline constexpr Key<bool> kFusionFuseConvBn{"fusion.fuse_conv_bn"};
inline constexpr Key<bool> kFusionFuseConvBnActivation{"fusion.fuse_conv_bn_activation"};
inline constexpr Key<bool> kFusionFuseMatmulAdd{"fusion.fuse_matmul_add"};
inline constexpr Key<bool> kFusionFuseElementwiseActivation{"fusion.fuse_elementwise_activation"};
inline constexpr Key<bool> kFusionCheckBackendSupport{"fusion.check_backend_support"};
inline constexpr Key<std::string> kFusionTargetBackend{"fusion.target_backend"};
inline constexpr Key<std::string> kLayoutConvLayout{"layout.conv_layout"};
inline constexpr Key<bool> kLayoutInsertTransposes{"layout.insert_transposes"};
inline constexpr Key<bool> kLayoutPropagateLayout{"layout.propagate_layout"};
inline constexpr Key<std::string> kLayoutTargetBackend{"layout.target_backend"};
inline constexpr Key<std::string> kDataflowTargetBackend{"dataflow.target_backend"};
inline constexpr Key<std::string> kDataflowDevice{"dataflow.device"};

}  // namespace optimizer_option

namespace ask_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_ASK, T>;

inline constexpr Key<int64_t> kTimeoutMs{"timeout_ms"};
inline constexpr Key<std::string> kDevice{"device"};

}  // namespace ask_option

namespace batcher_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_BATCHER, T>;

inline constexpr Key<int64_t> kMaxBatchSize{"max_batch_size"};
inline constexpr Key<int64_t> kMaxLatencyUs{"max_latency_us"};
inline constexpr Key<int64_t> kMinBatchSize{"min_batch_size"};
inline constexpr Key<std::vector<std::string>> kPreferredSizes{"preferred_sizes"};
inline constexpr Key<bool> kEnablePadding{"enable_padding"};
inline constexpr Key<int64_t> kNumWorkers{"num_workers"};
inline constexpr Key<int64_t> kQueueCapacity{"queue_capacity"};
inline constexpr Key<int64_t> kQueueTimeoutMs{"queue_timeout_ms"};
inline constexpr Key<bool> kByPriority{"by_priority"};

}  // namespace batcher_option

namespace streams_option {

template <typename T>
using Key = Option<PFRT_OPTIONS_STREAMS, T>;

inline constexpr Key<int64_t> kNumStreams{"num_streams"};
inline constexpr Key<bool> kEnablePipelining{"enable_pipelining"};
inline constexpr Key<int64_t> kCallbackThreads{"callback_threads"};
inline constexpr Key<int64_t> kMaxPending{"max_pending"};
inline constexpr Key<bool> kEnableProfiling{"enable_profiling"};

}  // namespace streams_option

}  // namespace pfrt
