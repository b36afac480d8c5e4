// SPDX-License-Identifier: Apache-2.0
//
// The schema of options: one table a kind has every key with its type, default, choices and
// meaning. The texts are what `pfrt options` and the documentation print.
#pragma once

#include <span>
#include <string_view>

#include "pyflame_rt/pyflame_rt.h"

namespace pfrt {

struct OptionRow {
  std::string_view key;
  pfrt_option_type type;
  std::string_view default_text;
  std::string_view choices;  // space-separated; empty = any
  std::string_view doc;
};

namespace schema {

inline constexpr OptionRow kEnv[] = {
    {"plugin_path", PFRT_OPTION_STRING, "", "",
     "folders to search for plug-ins before all others, colon-separated"},
    {"log_level", PFRT_OPTION_STRING, "warning", "debug info warning error off",
     "least severe line to log"},
    {"threads", PFRT_OPTION_INT, "0", "",
     "threads a run may use at most; 0 = what affinity and quota allow"},
    {"executor", PFRT_OPTION_STRING, "pool", "",
     "whose threads loops of runs use: pool = the library's own; another word = those of the "
     "plug-in of kind executor whose file has it in its name: tbb = oneTBB's, in the arena of the "
     "calling thread, which a host that is built on oneTBB then shares with its sessions"},
    {"guard_mapped_files", PFRT_OPTION_BOOL, "true", "",
     "model files are mapped, and one that is cut short or written to while it is in use makes "
     "runs fail with 'data loss' (replace it by renaming another over it); false = the signal "
     "SIGBUS is left to the host: files are read into memory of "
     "their size instead, and what becomes of them later does not matter"},
    {"memory_limit", PFRT_OPTION_INT, "0", "",
     "bytes of host memory that tensors of its models, sessions and runs may take at a time; what "
     "would take more fails with 'out of memory'; 0 = no limit"},
    {"async_queue", PFRT_OPTION_INT, "1024", "",
     "asynchronous runs that may wait at a time; one more is refused with 'busy'; 0 = no limit"},
    {"cache_max_bytes", PFRT_OPTION_INT, "8589934592", "",
     "of a cache of compiled models that a load or session opens: bytes of its files, beyond which "
     "entries go that were not used for longest; 0 = no limit"},
    {"cache_max_entries", PFRT_OPTION_INT, "100", "", "likewise, by their number"},
    {"cache_ttl_s", PFRT_OPTION_INT, "86400", "",
     "seconds after which an entry of such a cache is made again; 0 = never"},
    {"memory_pressure", PFRT_OPTION_STRING, "off", "off watch",
     "watch = runs, every quarter of a second, and a thread of the environment's, every second, "
     "look "
     "whether memory is about to run out, by the system and the cgroups around the process "
     "(memory.max, memory.high, memory.pressure), and then give back what idle sessions keep; off "
     "= "
     "they do so when an allocation has failed"},
    {"memory_idle_s", PFRT_OPTION_INT, "0", "",
     "seconds after which memory that runs have left for the next one is freed, where none came; a "
     "thread of the environment's does it; 0 = it is kept until something else is short of it"},
    {"memory_pressure_root", PFRT_OPTION_STRING, "", "",
     "of memory_pressure=watch: a folder whose proc and sys are read in place of the system's"},
};

inline constexpr OptionRow kLoad[] = {
    {"validate", PFRT_OPTION_BOOL, "true", "", "check the graph's structure"},
    {"infer_shapes", PFRT_OPTION_BOOL, "true", "", "fill in types and shapes of inner values"},
    {"timeout_ms", PFRT_OPTION_INT, "0", "",
     "loading fails with 'deadline exceeded' after so many milliseconds; 0 = never"},
    {"confine", PFRT_OPTION_STRING, "links", "links strict",
     "where files beside the model may be: links = in the model's folder or, where its path is a "
     "symbolic link, in the folder of the file it leads to; strict = in the folder that the path "
     "names, which no link may leave"},
    {"memory_limit", PFRT_OPTION_INT, "0", "",
     "bytes of host memory that the model's constants may take, mapped files not counted; 0 = no "
     "limit but the environment's"},
    {"cache_dir", PFRT_OPTION_STRING, "", "",
     "the session option of this name, for what is known of the model's file; give both"},
    {"entry", PFRT_OPTION_STRING, "", "",
     "which method of a file that may have several, such as TorchScript's, is loaded; empty = the "
     "one that its format takes for the first"},
};

inline constexpr OptionRow kSession[] = {
    {"device", PFRT_OPTION_STRING, "cpu", "",
     "a device's word, as 'pfrt providers' lists them: short for a list of the provider that opens "
     "it, then the CPU's"},
    {"providers", PFRT_OPTION_STRINGS, "", "",
     "execution providers, by their names or short, as 'cpu'; empty = those of the device. The "
     "order is one of priority: between estimates that differ by less than a tenth, where one is "
     "of "
     "a simulated device, and for who takes over where one fails"},
    {"assign", PFRT_OPTION_STRING, "cost", "cost priority",
     "who runs a node: cost = who estimates the lowest, what crosses between providers counted; "
     "priority = the first of the list that accepts it"},
    {"num_threads", PFRT_OPTION_INT, "0", "", "threads a run may use; 0 = the environment's"},
    {"execution_mode", PFRT_OPTION_STRING, "sequential", "sequential parallel",
     "sequential = one step after another, each parallel inside; parallel = independent steps at "
     "once, which share the threads"},
    {"optimization_level", PFRT_OPTION_STRING, "extended", "none basic extended all",
     "how far the graph is optimised: none leaves a step for each node, basic folds constants and "
     "removes dead code, extended also joins and fuses operators, all also moves layouts"},
    {"skip_passes", PFRT_OPTION_STRINGS, "", "", "optimisation passes to leave out, by name"},
    {"verbose_optimization", PFRT_OPTION_BOOL, "false", "", "log what each pass did"},
    {"strict_dimension_names", PFRT_OPTION_BOOL, "false", "",
     "true = a run whose inputs have other sizes for dimensions of one name is an error; false = "
     "it "
     "is accepted unless it has a state, with one warning, and takes a plan in which each "
     "dimension "
     "of an input stands for itself"},
    {"verify", PFRT_OPTION_STRING, "off", "off on",
     "on = the graph is run before and after each pass, on inputs made up; a rewrite that changes "
     "results is found, undone and named"},
    {"enable_profiling", PFRT_OPTION_BOOL, "false", "",
     "time every step and keep every run until the profile is ended; explain shows the last run's "
     "times"},
    {"profile_file_prefix", PFRT_OPTION_STRING, "pyflame_rt_profile", "",
     "where the profile goes: PREFIX_YYYY-MM-DD_HH-MM-SS_P_N.json, P being the "
     "process's number and N the session's. Where it is set, a profile that nobody ended is "
     "written when the session goes"},
    {"log_level", PFRT_OPTION_STRING, "warning", "debug info warning error off",
     "least severe line to log"},
    {"precision", PFRT_OPTION_STRING, "fp32", "ieee fp32 fast bf16 auto",
     "arithmetic of float32 products; auto = for each the cheapest with which outputs stay within "
     "max_error of fp32, as measured while the session is made"},
    {"node_precision", PFRT_OPTION_STRINGS, "", "",
     "precision of single nodes, in place of that of all: NAME=ieee, =fp32, =fast or =bf16 by the "
     "name of the node, or of a value it makes, as the optimised graph has it; of a node in a body "
     "behind the name of the node around it, as loop/MatMul_3"},
    {"max_error", PFRT_OPTION_FLOAT, "0.001", "",
     "of precision auto: the largest error of an element, relative to its output's largest "
     "magnitude"},
    {"deterministic", PFRT_OPTION_STRING, "threads", "threads batch",
     "threads = results have the same bits on any number of threads; batch = also each row of a "
     "batch by itself and among any others, which takes plain arithmetic and so more time where "
     "products would run on tiles"},
    {"tune", PFRT_OPTION_STRING, "off", "off on cached",
     "on = blockings chosen by a model of the machine are refined by measurement, which makes the "
     "first run of new shapes seconds longer; what is found goes to the cache folder, where there "
     "is one, and is not measured again on this machine; explain shows the change; results stay "
     "bit-equal. cached = what is found there is used, and nothing is measured. off = neither"},
    {"tune_budget_s", PFRT_OPTION_FLOAT, "0", "",
     "of tune=on: seconds that the session may measure for in all; 0 = 3 for each plan"},
    {"tune_search", PFRT_OPTION_STRING, "race", "race random model",
     "of tune=on: which blockings of a step are measured. race = the few that are usually worth "
     "it; random = ten of these, then some of many more at random; model = ten, then those of "
     "which a model of their times (a Gaussian process) expects the largest improvement"},
    {"tune_iterations", PFRT_OPTION_INT, "30", "",
     "of tune_search random and model: blockings of a step that are measured after the first ten, "
     "at most"},
    {"tune_repeats", PFRT_OPTION_INT, "0", "",
     "of tune=on: runs by which a blocking is measured; 0 = some milliseconds of them"},
    {"cache_dir", PFRT_OPTION_STRING, "", "",
     "folder where compiled models are kept for other processes, which then start without "
     "optimising and packing; made where it is not there. off = none; empty = the environment "
     "variable PFRT_CACHE_DIR, none where that is unset"},
    {"enable_mem_reuse", PFRT_OPTION_BOOL, "true", "",
     "values that a run computes and that are not in use at the same time lie in the same memory; "
     "false = each has a place of its own, which takes more"},
    {"enable_mem_pattern", PFRT_OPTION_BOOL, "true", "",
     "the block that a run works in is kept for the next; false = it is freed after each run, "
     "which "
     "takes less between runs and more time"},
    {"session.use_env_allocators", PFRT_OPTION_BOOL, "true", "",
     "memory of the session and its runs is the environment's allocator's, where it has one; false "
     "= the library's own. Packed constants are shared, and of the session that made them first"},
    {"session.set_denormal_as_zero", PFRT_OPTION_BOOL, "false", "",
     "true = runs take denormal numbers, which many processors are slow with, for zero where they "
     "read and compute them; results below 1.2e-38 in float32 and 2.2e-308 in float64 are then 0. "
     "Numbers that are only moved stay as they are"},
    {"image.max_pixels", PFRT_OPTION_INT, "67108864", "",
     "ImageDecoder fails on larger images, before it takes memory for them"},
    {"create_timeout_ms", PFRT_OPTION_INT, "0", "",
     "making the session fails with 'deadline exceeded' after so many milliseconds; 0 = never"},
    {"session.fallback", PFRT_OPTION_STRING, "on", "on off",
     "on = where a provider fails, to open, compile or run, the next one takes over; off = every "
     "failure is an error"},
    {"session.halve_batch", PFRT_OPTION_STRING, "on", "on off",
     "on = a run that memory does not suffice for, once caches were released, is done in parts of "
     "half its batch, or of half of that, down to one row, where the graph is known to compute "
     "each "
     "row by itself. Results are those of runs of so many rows: the same bits with deterministic "
     "'batch', else within rounding. Not with session.fallback off, nor for runs with a state"},
    {"session.device_reopen_ms", PFRT_OPTION_INT, "60000", "",
     "a device that is lost is opened again, and given up when it is lost within so many "
     "milliseconds of that; 0 = given up when it is lost a second time"},
};

inline constexpr OptionRow kOptimizer[] = {
    {"timeout_ms", PFRT_OPTION_INT, "0", "",
     "a call that runs passes fails with 'deadline exceeded' after so many milliseconds; 0 = "
     "never"},
    {"level", PFRT_OPTION_STRING, "extended", "none basic extended all",
     "passes and rewrites above it are left out"},
    {"max_iterations", PFRT_OPTION_INT, "10", "",
     "most rounds of all passes when run until nothing changes"},
    {"verbose", PFRT_OPTION_BOOL, "false", "", "log what each pass did"},
    {"validate_after_pass", PFRT_OPTION_BOOL, "false", "", "check the graph after each pass"},
    {"strict_dimension_names", PFRT_OPTION_BOOL, "false", "",
     "dimensions of inputs that have one name are taken for equal, as the session option of this "
     "name demands of runs; false = the result holds for runs in which they differ too"},
    {"skip_passes", PFRT_OPTION_STRINGS, "", "", "passes to leave out, by name"},
    {"verify", PFRT_OPTION_STRING, "off", "off on",
     "on = compare results before and after each pass; a rewrite that changes them is undone"},
    {"providers", PFRT_OPTION_STRINGS, "CPUExecutionProvider", "",
     "who computes constants and is asked what it can run as one"},
    {"constant_folding.max_tensor_bytes", PFRT_OPTION_INT, "16777216", "",
     "larger results are not computed beforehand, but for weights that products read transposed"},
    {"constant_folding.fold_shape_ops", PFRT_OPTION_BOOL, "true", "",
     "read known shapes, and arithmetic on them, off the graph"},
    {"constant_folding.fold_expensive_ops", PFRT_OPTION_BOOL, "false", "",
     "products and convolutions too"},
    {"constant_folding.exclude_ops", PFRT_OPTION_STRINGS, "", "", "operators never folded"},
    {"dce.remove_initializers", PFRT_OPTION_BOOL, "true", "", "remove weights that nobody uses"},
    {"dce.remove_identity", PFRT_OPTION_BOOL, "true", "", "remove Identity"},
    {"dce.remove_dropout", PFRT_OPTION_BOOL, "true", "", "remove Dropout in inference"},
    {"cse.check_attributes", PFRT_OPTION_BOOL, "true", "",
     "compare nodes by their attributes too; false = leave nodes that have some alone"},
    {"cse.max_comparisons", PFRT_OPTION_INT, "1000", "", "a node"},
    {"fusion.fuse_conv_bn", PFRT_OPTION_BOOL, "true", "", "BatchNormalization into products"},
    {"fusion.fuse_conv_bn_activation", PFRT_OPTION_BOOL, "true", "",
     "the same where an activation follows"},
    {"fusion.fuse_matmul_add", PFRT_OPTION_BOOL, "true", "", "MatMul and Add to Gemm"},
    {"fusion.fuse_elementwise_activation", PFRT_OPTION_BOOL, "true", "",
     "Add or Mul and an activation"},
    {"fusion.check_backend_support", PFRT_OPTION_BOOL, "true", "",
     "only fuse what the target backend says it runs as one"},
    {"fusion.target_backend", PFRT_OPTION_STRING, "cpu", "", "a device word or a provider's name"},
    {"layout.conv_layout", PFRT_OPTION_STRING, "nchw", "nchw nhwc nc4hw4",
     "preferred layout of convolutions"},
    {"layout.insert_transposes", PFRT_OPTION_BOOL, "true", "",
     "put Transpose nodes where a layout has to change"},
    {"layout.propagate_layout", PFRT_OPTION_BOOL, "true", "",
     "move them through the graph to where they cancel"},
    {"layout.target_backend", PFRT_OPTION_STRING, "cpu", "", "as fusion.target_backend"},
    {"dataflow.target_backend", PFRT_OPTION_STRING, "", "",
     "the provider, by its name, that is asked what takes less time; empty = the first of "
     "providers"},
    {"dataflow.device", PFRT_OPTION_STRING, "", "",
     "which of its devices, by its word; empty = the first"},
};

inline constexpr OptionRow kAsk[] = {
    {"timeout_ms", PFRT_OPTION_INT, "0", "",
     "the question fails with 'deadline exceeded' after so many milliseconds; 0 = never"},
    {"device", PFRT_OPTION_STRING, "", "",
     "which device of the provider is asked, by its word; empty = the first"},
};

inline constexpr OptionRow kBatcher[] = {
    {"max_batch_size", PFRT_OPTION_INT, "32", "", "rows that a shared run has at most"},
    {"max_latency_us", PFRT_OPTION_INT, "1000", "",
     "microseconds that a request waits for others at most, where a run is to spare; it waits only "
     "where that pays by the times of runs so far, or for min_batch_size"},
    {"min_batch_size", PFRT_OPTION_INT, "1", "", "rows that are waited for, within max_latency_us"},
    {"preferred_sizes", PFRT_OPTION_STRINGS, "1,2,4,8,16,32", "",
     "sizes that batches have, if enable_padding; plans are made for few sizes then"},
    {"enable_padding", PFRT_OPTION_BOOL, "true", "",
     "batches of other sizes are filled up to a preferred one with copies of a row, whose results "
     "nobody gets"},
    {"num_workers", PFRT_OPTION_INT, "4", "",
     "threads that run batches and give answers; runs at a time are also limited by the processors "
     "and the session's threads; 0 = the number of processors"},
    {"queue_capacity", PFRT_OPTION_INT, "1000", "",
     "requests that may wait at a time; one more is refused with 'busy'"},
    {"queue_timeout_ms", PFRT_OPTION_INT, "5000", "",
     "a request that has waited so many milliseconds ends with 'deadline exceeded'; 0 = never"},
    {"by_priority", PFRT_OPTION_BOOL, "false", "",
     "requests of higher priority go first: each step counts as 10 ms of waiting, so that the "
     "others "
     "go too"},
};

inline constexpr OptionRow kStreams[] = {
    {"num_streams", PFRT_OPTION_INT, "4", "", "queues, each with a thread that runs its requests"},
    {"enable_pipelining", PFRT_OPTION_BOOL, "true", "",
     "runs of different streams overlap; false = one run at a time"},
    {"callback_threads", PFRT_OPTION_INT, "2", "",
     "threads that give answers; 0 = the stream's own gives them, and goes on afterwards"},
    {"max_pending", PFRT_OPTION_INT, "100", "",
     "requests that may be unanswered at a time; one more is refused with 'busy'"},
    {"enable_profiling", PFRT_OPTION_BOOL, "true", "",
     "answers and statistics have the times in the queue and of the run"},
};

}  // namespace schema

constexpr std::span<const OptionRow> option_schema(pfrt_options_kind kind) {
  switch (kind) {
    case PFRT_OPTIONS_ENV:
      return schema::kEnv;
    case PFRT_OPTIONS_LOAD:
      return schema::kLoad;
    case PFRT_OPTIONS_SESSION:
      return schema::kSession;
    case PFRT_OPTIONS_OPTIMIZER:
      return schema::kOptimizer;
    case PFRT_OPTIONS_ASK:
      return schema::kAsk;
    case PFRT_OPTIONS_BATCHER:
      return schema::kBatcher;
    case PFRT_OPTIONS_STREAMS:
      return schema::kStreams;
    default:
      return {};
  }
}

}  // namespace pfrt
