/* SPDX-License-Identifier: Apache-2.0
 *
 * The plug-in ABI: what a shared object named libpyflamert_<kind>_<name>.so exports and what it is given.
 *
 * A plug-in exports one symbol, pfrt_plugin_query, links nothing of the runtime, and owns nothing that crosses but
 * what its own release functions take back. The host negotiates: the plug-in states the range of ABI versions it
 * can serve, the host picks one. Every struct starts with {struct_size, abi}, set by whoever allocates it; a
 * reader takes no more than the smaller of both sizes. Functions return a pfrt_code (0 = ok) and report the message
 * to the sink they were given; no status object and no exception crosses.
 *
 * Threads: claim, supports, compile, specialise, report and ask may be called from any thread, one at a time for each provider handle; run functions of steps may be called from many threads at
 * once (each run has its own buffers), and so may the functions of device memory and fences.
 *
 * Failures: the code that open, claim, compile, specialise, a step or a copy returns decides what the host does.
 *  - INVALID_ARGUMENT, INPUT, SHAPE_MISMATCH, DTYPE_MISMATCH, INVALID_MODEL, VALIDATION and DATA_LOSS are the caller's,
 *    the model's or the run's own fault, CANCELLED and DEADLINE nobody's: they are returned as they are, and the
 *    provider stays in use. (compile alone may name a node with any of them: that refuses the node.)
 *  - OUT_OF_MEMORY: the host releases its caches and idle memory and asks once more; then it is the run's error.
 *  - UNSUPPORTED of specialise refuses the dimensions at hand: runs with these go to the next provider, and this one
 *    stays in use for all others.
 *  - DEVICE_LOST: the host opens the device again and asks again; the lost handle is closed when nothing of it is in use
 *    any more, which may be after the second open. Within session.device_reopen_ms of that it counts as any other:
 *  - PROVIDER, INTERNAL, UNSUPPORTED elsewhere and all other codes say that this provider cannot go on: the session
 *    plans its nodes for the next provider and runs again from the caller's inputs. A step must therefore never write to
 *    a buffer that it does not declare as written.
 * With the option session.fallback=off every failure is returned as it is.
 */
#ifndef PYFLAME_RT_PLUGIN_H_
#define PYFLAME_RT_PLUGIN_H_

#include "pyflame_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ negotiation */
/* Kind of a plug-in. */
typedef uint32_t pfrt_plugin_kind;
enum {
  PFRT_PLUGIN_UNSET = 0,
  PFRT_PLUGIN_PROVIDER = 1,
  PFRT_PLUGIN_IMPORT = 2,
  PFRT_PLUGIN_OPS = 3,
  PFRT_PLUGIN_PASS = 4,
  PFRT_PLUGIN_SERVICE = 5,
  PFRT_PLUGIN_TRANSPORT = 6, /* has no table yet: this version rejects it */
  PFRT_PLUGIN_EXECUTOR = 7,
  PFRT_PLUGIN_FORCE32 = 0x7fffffff
};

/* Sanitizer that code was instrumented by: host and plug-in have to agree. */
typedef uint32_t pfrt_sanitizer;
enum {
  PFRT_SANITIZER_NONE = 0,
  PFRT_SANITIZER_ADDRESS = 1,
  PFRT_SANITIZER_THREAD = 2,
  PFRT_SANITIZER_FORCE32 = 0x7fffffff
};

/* Description of the host that asks a plug-in for its own. */
typedef struct pfrt_host_info {
  uint32_t struct_size;
  uint32_t abi;                 /* newest version the host speaks */
  uint32_t abi_major, min_minor, max_minor; /* major version of the ABI, and the minors of it that the host speaks */
  pfrt_sanitizer sanitizer; /* the host's; a plug-in with another is rejected */
  pfrt_string version;          /* of the runtime */
} pfrt_host_info;

/* A plug-in's description of itself. */
typedef struct pfrt_plugin_desc {
  uint32_t struct_size;
  uint32_t abi; /* the plug-in was built with */
  uint32_t abi_major, min_minor, max_minor; /* and can serve */
  pfrt_plugin_kind kind; /* the same as in the file's name */
  pfrt_sanitizer sanitizer; /* sanitizer that it was built with */
  uint32_t reserved;
  uint64_t features;   /* kind-specific bits; a bit without its function is a load error */
  pfrt_string name;    /* CPUExecutionProvider, ONNX, ... */
  pfrt_string version; /* its own, for lists */
  const void* table;   /* pfrt_provider_table, pfrt_importer_table, pfrt_service_table, pfrt_ops_table,
                        * pfrt_pass_table or pfrt_executor_table, by kind */
} pfrt_plugin_desc;

/* The only symbol of a plug-in. Fills |out_desc| (struct_size set by the host); strings and table live as long as
 * the library is loaded. Must not start threads or touch the model. */
typedef pfrt_code (*pfrt_plugin_query_fn)(const pfrt_host_info* host, pfrt_plugin_desc* out_desc);
/* The name of a plug-in's symbol. */
#define PFRT_PLUGIN_QUERY_SYMBOL "pfrt_plugin_query"

/* No node or value, where an index is given. */
#define PFRT_NO_INDEX 0xffffffffu

/* Search for the fastest of several forms of a step. */
typedef uint32_t pfrt_tune_search;
enum {
  PFRT_TUNE_UNSET = 0,
  PFRT_TUNE_RACE = 1,   /* the few forms that are usually worth it, in turns */
  PFRT_TUNE_RANDOM = 2, /* ten of these, then some of all others at random */
  PFRT_TUNE_MODEL = 3,  /* ten of these, then those that a model of times favours */
  PFRT_TUNE_FORCE32 = 0x7fffffff
};

/* Given to specialise by a session that tunes: ways to measure, and results found before, in
 * this process or another on the same machine. Valid during the call, on its thread. */
typedef struct pfrt_tuning {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  pfrt_tune_search search; /* one that the provider does not know counts as RACE */
  uint32_t iterations; /* for RANDOM and MODEL: most forms to measure after the first ten */
  uint32_t repeats; /* runs by which a form is measured; 0 = as the provider likes */
  uint32_t reserved;
  /* Finds the value that remember was given under |key| by this provider with this fingerprint,
   * on this machine and for this build of its library; |out_value| lives until the next call of
   * recall, and until specialise returns. NOT_FOUND where there is nothing or, without a cache
   * folder, always; then |out_value| is empty. A value written by another version of the
   * provider may be anything: a provider measures again where it does not understand one. */
  pfrt_code (*recall)(const struct pfrt_tuning* tuning, pfrt_string key, pfrt_string* out_value);
  /* Stores |value| in the session's cache folder, in place of one of that key; both are copied.
   * |key| names the step and its dimensions and has 1 to 4096 bytes, |value| 1 to 4096:
   * INVALID_ARGUMENT otherwise. Thousands are kept; the oldest are removed first. OK also where
   * there is no folder, or it cannot be written: that is a line in the log. */
  pfrt_code (*remember)(const struct pfrt_tuning* tuning, pfrt_string key, pfrt_string value);
  /* Returns the nanoseconds that specialise may still measure, after |spent_ns| more that it has
   * measured for since it last asked. Ask before and after each step that is measured. 0:
   * nothing more is measured. */
  uint64_t (*left_ns)(const struct pfrt_tuning* tuning, uint64_t spent_ns);
} pfrt_tuning;

/* Takes the reports of a plug-in's call, and tells whether the call is still wanted.
 * Valid during the call, on the thread of the call. |node| is an index into the snapshot at
 * hand, or PFRT_NO_INDEX. The host copies the message. fail returns |code|, so that `return
 * sink->fail(...)` reads well. */
typedef struct pfrt_sink {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  /* Keeps |message| for the caller's error, and returns |code|. */
  pfrt_code (*fail)(const struct pfrt_sink* sink, pfrt_code code, uint32_t node, pfrt_string message);
  /* Writes a line to the environment's log. */
  void (*log)(const struct pfrt_sink* sink, pfrt_log_level level, pfrt_string message);
  /* Returns 0 to go on, or the reason to stop, which the call then returns: CANCELLED, DEADLINE, or
   * what else has ended the run that the call is for. Work that takes more than a few milliseconds
   * asks every few milliseconds. */
  pfrt_code (*stop)(const struct pfrt_sink* sink);
  /* Tells how far the call has come, from 0 to 1. Calls that take a second or more tell it where
   * they ask stop. */
  void (*progress)(const struct pfrt_sink* sink, double fraction);
  /* Set for specialise where the session's option "tune" is not "off"; NULL elsewhere. With the
   * hint PFRT_COMPILE_TUNE, steps that nothing is known of may be measured; without it they are
   * not. */
  const pfrt_tuning* tuning;
} pfrt_sink;

/* ------------------------------------------------------------------ snapshots */
/* Properties of a value that is not only an inner one. */
typedef uint64_t pfrt_snapshot_value_flags;
enum {
  PFRT_SNAPSHOT_CONSTANT = 1,     /* a constant */
  PFRT_SNAPSHOT_GRAPH_INPUT = 2,
  PFRT_SNAPSHOT_GRAPH_OUTPUT = 4,
  PFRT_SNAPSHOT_NOT_TENSOR = 8    /* sequence, map, optional: never given to a provider's nodes */
};

/* A value of a snapshot. Dimensions: >= 0 known; < 0 symbolic, equal numbers being equal
 * dimensions. */
typedef struct pfrt_snapshot_value {
  pfrt_string name; /* empty where it has none */
  pfrt_snapshot_value_flags flags; /* kinds of value that it is besides an inner one */
  pfrt_dtype dtype; /* UNSET where it is not known */
  int32_t rank; /* -1 unknown */
  const int64_t* dims; /* [rank]; NULL where the rank is not known */
  const void* data; /* of a constant, row-major; NULL otherwise, and as PFRT_PROVIDER_DEFERRED says */
  uint64_t bytes; /* of |data|, also while that is deferred */
  uint64_t hash[2]; /* of a constant's type, shape and bytes; 0 = not computed */
  uint32_t producer; /* node index or PFRT_NO_INDEX */
  uint32_t consumer_count; /* uses by nodes, plus one if a graph output */
} pfrt_snapshot_value;

/* An attribute: |type| says which member has it. All of it is borrowed. */
typedef struct pfrt_snapshot_attr {
  pfrt_string name; /* as the standard has it */
  pfrt_attr_type type; /* FLOAT INT STRING TENSOR FLOATS INTS STRINGS; others never reach a provider */
  float f; /* FLOAT */
  int64_t i; /* INT */
  pfrt_string s; /* STRING */
  const int64_t* ints; /* INTS: [count] */
  const float* floats; /* FLOATS: [count] */
  const pfrt_string* strings; /* STRINGS: [count] */
  uint64_t count; /* of ints, floats or strings */
  pfrt_tensor tensor; /* TENSOR, row-major */
} pfrt_snapshot_attr;

/* A node of a snapshot. All of it is borrowed. */
typedef struct pfrt_snapshot_node {
  pfrt_string name, op, domain; /* domain "" is ai.onnx */
  uint32_t id;                  /* stable over snapshots of one graph */
  uint32_t canonical;           /* canonical form number: 1 = the meaning of opset 28, see README.md */
  const uint32_t* inputs;       /* value indices; PFRT_NO_INDEX = absent */
  uint32_t input_count;
  uint32_t output_count;
  const uint32_t* outputs; /* value indices; PFRT_NO_INDEX = nobody wants it */
  const pfrt_snapshot_attr* attrs; /* [attr_count], attr_size bytes apart */
  uint64_t attr_count;
  /* 1 + the index of an earlier node: this elementwise node (or Cast, QuantizeLinear, DequantizeLinear) is of that one's
   * tail (supports() agreed), which takes the output before it and which nothing else uses, so that one step should do
   * all of it. Nodes of a tail follow each other. The first after a Conv may be its MaxPool; the last may be a
   * LayerNormalization or RMSNormalization of the last dimension, whose input others may use as well. Only a wish: run
   * on its own the node means the same. 0 = none. */
  uint32_t tail_of;
  uint32_t opset; /* that the model imports of the domain, for operators that are not built in; 0 = built in, or none */
} pfrt_snapshot_node;

/* A read-only graph in flat arrays, nodes in topological order. |node_size| and the like are the strides of the
 * arrays in bytes, so that elements can grow. Valid until the call it is passed to returns, except that constant
 * data stays as long as the executable compiled from it. */
typedef struct pfrt_snapshot {
  uint32_t struct_size;
  uint32_t abi;
  /* Bytes from one element of nodes, of values and of a node's attrs to the next. */
  uint32_t node_size, value_size, attr_size;
  uint32_t node_count, value_count, reserved;
  const pfrt_snapshot_node* nodes; /* [node_count], node_size bytes apart */
  const pfrt_snapshot_value* values; /* [value_count], value_size bytes apart */
} pfrt_snapshot;

/* A canonical operator, for supports(). */
typedef struct pfrt_op_query {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_snapshot* snapshot; /* holds the operator and its tail, nothing else */
  uint32_t node;                 /* the operator */
  uint32_t tail_count;           /* length of |tail| */
  const uint32_t* tail;          /* following operators in order, as in tail_of */
} pfrt_op_query;

/* ------------------------------------------------------------------ claims */
/* A provider says yes or no to each node of a snapshot; the host copies reasons. accept's |est_ns| is for the known
 * (or typical) shapes. group says that the nodes must stay together and what that saves. */
typedef struct pfrt_claims {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  /* The provider would run |node|, in |est_ns| nanoseconds, moving |est_bytes| bytes. */
  void (*accept)(const struct pfrt_claims* claims, uint32_t node, double est_ns, uint64_t est_bytes);
  /* The provider would not run |node|; |reason| is for a person. */
  void (*refuse)(const struct pfrt_claims* claims, uint32_t node, pfrt_string reason);
  /* The |count| |nodes|, all accepted, must stay together, which saves |saved_ns| nanoseconds. */
  void (*group)(const struct pfrt_claims* claims, const uint32_t* nodes, uint32_t count, double saved_ns);
  /* The cost of a value that comes from another provider or goes to one: |ns| nanoseconds and
   * |ns_per_byte| for each byte. It is weighed against what the provider's nodes save; without a
   * call it is 0. */
  void (*transfer)(const struct pfrt_claims* claims, double ns, double ns_per_byte);
} pfrt_claims;

/* ------------------------------------------------------------------ compiled regions */
/* Wishes for the compilation of a region. */
typedef uint64_t pfrt_compile_hints;
enum {
  PFRT_COMPILE_RUN_ONCE = 1, /* no JIT, no packing */
  /* Precision of float32 products; a provider may be more precise than asked, never less. */
  PFRT_COMPILE_PLAIN = 2, /* precision "ieee": float32 sums of float32 products, nothing flushed to 0 */
  PFRT_COMPILE_FAST = 4,  /* "fast": about 5e-6 relative to the largest products */
  /* "bf16": factors rounded to bfloat16, float32 sums; beside weights of at most 8 bits, to int8 by blocks of k */
  PFRT_COMPILE_BF16 = 8,
  PFRT_COMPILE_TUNE = 16, /* specialise may measure how to divide the work; results may not depend on it */
  PFRT_COMPILE_APART = 32, /* a step for each node, none joined with others: the session's level is "none" */
  /* deterministic=batch: where rows of the first dimension do not depend on each other, each has
   * the same bits whatever other rows are in the run, and however many. Given only to providers
   * with PFRT_PROVIDER_BATCH. */
  PFRT_COMPILE_BATCH = 64
};

/* A convex set of nodes given to compile. Inputs and outputs are value indices: inputs come from outside (constants
 * not among them), outputs are used outside. */
typedef struct pfrt_region {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_snapshot* snapshot; /* of the model's graph or of a body in it; indices refer to it */
  const uint32_t* nodes; /* [node_count], in topological order */
  const uint32_t* inputs; /* [input_count] */
  const uint32_t* outputs; /* [output_count] */
  uint32_t node_count, input_count, output_count, reserved;
  pfrt_compile_hints hints; /* wishes for its compilation; 0 = as the provider likes */
  const pfrt_compile_hints* node_hints; /* by position in |nodes|: the precision of each, in place of the one in
                                           |hints|; NULL = that of |hints| for all */
} pfrt_region;

/* A constant in a provider's own layout, made by the host once and shared between sessions. |pack| writes |bytes|
 * bytes at |out| from the sources' data (in order). |recipe| names the layout completely: equal recipe, bytes
 * and contents of the sources mean equal contents. |pack| may be called from any thread. */
typedef struct pfrt_packed_constant {
  const uint32_t* sources; /* value indices */
  uint32_t source_count;
  uint32_t alignment; /* a power of two; 0 = 64 */
  pfrt_string recipe;
  uint64_t bytes;
  pfrt_code (*pack)(void* user, const void* const* sources, void* out, const pfrt_sink* sink);
  void* user; /* lives as long as the executable */
} pfrt_packed_constant;

/* Dimensions of every value of the region at one input signature: rank and dims by value index of the snapshot
 * compiled from; rank -1 where the value is not in the region, or where only a run can tell (see alloc_output). */
typedef struct pfrt_shapes {
  uint32_t struct_size;
  uint32_t abi;
  const int32_t* ranks; /* [value_count] */
  const int64_t* const* dims; /* [value_count], each [rank]; NULL where the rank is -1 or 0 */
  uint32_t value_count;
  uint32_t reserved;
  /* PFRT_PROVIDER_RANGES. NULL: |dims| are those of every run. Else [value_count], each [rank]: runs will differ in some
   * dimensions, which are from |least| to |dims|; NULL where a value has the same in all of them. Only the run says which
   * combination is at hand (see pfrt_step_context). Buffers are declared with the bytes that |dims| need. */
  const int64_t* const* least;
} pfrt_shapes;

/* Owner and place of a buffer's memory. */
typedef uint32_t pfrt_buffer_kind;
enum {
  PFRT_BUFFER_UNSET = 0,
  PFRT_BUFFER_IN = 1,       /* index: region input */
  PFRT_BUFFER_OUT = 2,      /* index: region output */
  PFRT_BUFFER_TEMP = 3,     /* planned by the host, dead outside its first and last step */
  PFRT_BUFFER_CONST = 4,    /* index: packed constant of the executable */
  PFRT_BUFFER_INITIALIZER = 5, /* index: snapshot value index of a constant, in place */
  PFRT_BUFFER_PART = 6,     /* index: buffer of the program, of another kind and known size, in which it lies at
                             * |offset|; lives as long, and is written where that one may be */
  PFRT_BUFFER_FORCE32 = 0x7fffffff
};

/* Bytes of a buffer that only a run can tell. */
#define PFRT_BYTES_UNKNOWN UINT64_MAX
/* A buffer of a program: its kind and the memory it needs. */
typedef struct pfrt_buffer {
  pfrt_buffer_kind kind; /* owner and place of its memory */
  uint32_t index; /* index of the thing that |kind| names; unused for TEMP */
  uint64_t bytes;      /* PFRT_BYTES_UNKNOWN: the step calls alloc_output */
  uint32_t alignment;  /* for TEMP, a power of two; 0 = 64. Of INITIALIZER 1: read at any address, as bytes that lie in a file */
  uint32_t may_alias;  /* 1 + buffer it may share memory with when that one dies in the step that writes it; 0 = none */
  pfrt_memory_kind memory; /* DEVICE: the provider's own, with its feature MEMORY; any kind of buffer may be */
  uint32_t reserved;
  uint64_t offset;     /* for PART: bytes from the start of the buffer it lies in */
} pfrt_buffer;

/* Arguments of a step. Everything is valid during the call. */
typedef struct pfrt_step_context {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  void* const* buffers;   /* by buffer index of the program; NULL where unknown until alloc_output */
  uint64_t run;           /* number of the run; 0 for a provider that has neither MEMORY nor RUNS */
  uint32_t workers;       /* most run functions at once: worker < workers */
  uint32_t reserved;
  /* Runs fn(arg, i, worker) for every i < n, on this thread and others, in any order; returns when all are done. Once
   * the run is cancelled, remaining calls are left out: the step then returns stop()'s code. */
  void (*parallel)(const struct pfrt_step_context* context, uint64_t n,
                   void (*fn)(void* arg, uint64_t i, uint32_t worker), void* arg);
  /* Returns 0 to go on, or the reason to stop: CANCELLED, DEADLINE, OUT_OF_MEMORY of a loop's
   * body. Ask every few milliseconds. */
  pfrt_code (*stop)(const struct pfrt_step_context* context);
  /* Returns scratch of this worker, of the step's scratch_bytes, 64-byte aligned; contents are
   * undefined. */
  void* (*scratch)(const struct pfrt_step_context* context, uint32_t worker);
  /* Gives memory for an OUT buffer of unknown bytes. */
  pfrt_code (*alloc_output)(const struct pfrt_step_context* context, uint32_t buffer, const int64_t* dims, uint32_t rank,
                            void** out_data);
  /* Keeps the message for the caller's error, and returns |code|. Any thread; the first message counts. */
  pfrt_code (*fail)(const struct pfrt_step_context* context, pfrt_code code, pfrt_string message);
  /* Dimensions of this run, for a program that was made with shapes->least: by value index of
   * the snapshot, those of each value that has |least|, within these bounds; NULL for others.
   * Buffers hold the run's elements without gaps. NULL for other programs. */
  const int64_t* const* dims;
  /* Copies |count| texts into an OUT buffer of strings that has its memory, from element |first| on. The buffer is an
   * array of pfrt_string, which is not written otherwise; elements that are not set are empty. Any thread.
   * INVALID_ARGUMENT for another buffer, and beyond the last element. */
  pfrt_code (*set_strings)(const struct pfrt_step_context* context, uint32_t buffer, uint64_t first,
                           const pfrt_string* texts, uint64_t count);
} pfrt_step_context;

/* Properties of a step that the host should know. */
typedef uint64_t pfrt_step_flags;
enum {
  /* The step may take long, and promises to end soon after the run is stopped: it asks stop()
   * every few milliseconds, or spends its time in parallel(), which asks between calls. A step
   * without the flag is expected to be short. */
  PFRT_STEP_LONG = 1
};

/* A call of a function. Arrays and strings live as long as the program. */
typedef struct pfrt_step {
  /* Returns 0, or the code of what went wrong, after fail. Throws nothing. */
  pfrt_code (*run)(void* state, const pfrt_step_context* context);
  void* state; /* handed to |run|; shared by runs on several threads */
  const uint32_t* reads;  /* buffer indices */
  const uint32_t* writes; /* buffer indices; no other buffer is written */
  uint32_t read_count, write_count;
  const uint32_t* nodes;  /* origin: snapshot node indices */
  uint32_t node_count;
  uint32_t width;         /* widest useful parallelism; 0 = any */
  uint64_t scratch_bytes; /* bytes for each worker */
  double est_ns; /* nanoseconds, about; 0 = not known */
  uint64_t flops, bytes; /* operations done, and bytes read and written, for reports */
  pfrt_string kernel; /* its name, for reports */
  pfrt_step_flags flags; /* PFRT_STEP_LONG and the like, or 0 */
  pfrt_string detail;     /* addition of explain to the reason of the step; may be empty */
  /* Division of the work, where that was tuned; else empty. "NAME=NUMBER", separated by spaces:
   * the block sizes and the like by the kernel's own names, as "band=28 positions=512", then
   * |gain|, the default's time divided by this form's, and |measured|, the number of forms that
   * were measured for this program; 0 = none, the result was remembered. */
  pfrt_string tuning;
} pfrt_step;

/* A region at one signature: buffers, and steps in an order that is right when they run one
 * after another. */
typedef struct pfrt_program {
  uint32_t struct_size;
  uint32_t abi;
  uint32_t buffer_size, step_size; /* strides; a reader takes what is missing at the end of an element for zero */
  uint32_t buffer_count, step_count;
  const pfrt_buffer* buffers; /* [buffer_count], buffer_size bytes apart */
  const pfrt_step* steps; /* [step_count], step_size bytes apart */
  void* handle; /* the provider's own, for release_program */
} pfrt_program;

/* ------------------------------------------------------------------ providers */
typedef struct pfrt_provider pfrt_provider;     /* an opened device */
typedef struct pfrt_executable pfrt_executable; /* a compiled region */

/* Features of a provider besides the functions that all have. */
typedef uint64_t pfrt_provider_features;
enum {
  PFRT_PROVIDER_SUPPORTS = 1,  /* has supports() */
  PFRT_PROVIDER_SIMULATED = 2, /* claims only when named; its cost is not compared with others' */
  PFRT_PROVIDER_CONSTANTS = 4, /* has constants() */
  PFRT_PROVIDER_KERNELS = 8,   /* has kernel_count() and kernel_at() */
  PFRT_PROVIDER_OPTIONS = 16,  /* has option_count() and option_at() */
  PFRT_PROVIDER_MEMORY = 32,   /* has memory of its own: allocate(), release_memory() and copy() */
  PFRT_PROVIDER_FENCES = 64,   /* works behind the caller's back: signal(), wait() and release_fence(); needs MEMORY */
  /* The provider reads constants of more than 64 KiB only as sources of packed constants and in
   * steps: in snapshots their data may be NULL, and the host need not keep those that all
   * providers have packed. */
  PFRT_PROVIDER_DEFERRED = 256,
  /* The provider computes other results than the model means, as a device of half precision
   * does: it is not asked to fold constants. Another provider of the session does, or nobody. */
  PFRT_PROVIDER_NO_FOLD = 512,
  /* The provider has threads of its own while it is open, as libraries of devices do. They are
   * gone when close returns. */
  PFRT_PROVIDER_OWN_THREADS = 1024,
  PFRT_PROVIDER_RUNS = 2048,        /* has run_begin() and run_end() */
  PFRT_PROVIDER_REPORT = 4096,      /* has report() */
  PFRT_PROVIDER_FINGERPRINT = 8192, /* has fingerprint() */
  PFRT_PROVIDER_ASK = 16384,        /* has ask() */
  /* The provider may be asked for programs in which dimensions vary, as a decoder's that grows
   * by a token a run (pfrt_shapes.least). UNSUPPORTED then refuses these only, and the same is
   * asked for the dimensions at hand. */
  PFRT_PROVIDER_RANGES = 65536,
  PFRT_PROVIDER_BATCH = 131072 /* does what PFRT_COMPILE_BATCH says; sessions that ask for it take no other */
};

/* ---- device memory ----
 * A provider with the feature MEMORY may return programs with buffers of memory kind PFRT_MEMORY_DEVICE. Addresses of
 * device memory are the provider's affair: the host adds offsets to them, hands them to steps and copies, and never
 * reads or writes there. Without the feature FENCES a step or copy is done when it returns. With it, a step or copy may
 * return when it is queued, and the device does what is queued as if in the order of the calls on its handle. Memory,
 * programs and executables may be released while queued work still needs them: the provider sees to it.
 *
 * ---- runs ----
 * Steps, copies, allocations and fences say by a number whose they are: a run's of a client, or a piece of work of the
 * host's own, such as bringing constants to the device. Numbers are never 0 and never come again; 0 is nobody's. A failure
 * of queued work is reported by wait on a fence of the same number, and by no other; what others have queued goes on. The
 * host waits for each number that has queued something before it calls the work done. */

/* Side of a copy that is the device's. */
typedef uint32_t pfrt_direction;
enum {
  PFRT_DIRECTION_UNSET = 0,
  PFRT_TO_DEVICE = 1, /* |src| is host memory, and free to change when copy returns, fences or not */
  PFRT_TO_HOST = 2,   /* |dst| is host memory, and whole when copy returns or, with fences, after a wait */
  PFRT_ON_DEVICE = 3, /* both are memory of this device */
  PFRT_DIRECTION_FORCE32 = 0x7fffffff
};

/* A copy from or to a device's memory, or within it. */
typedef struct pfrt_device_copy {
  void* dst; /* destination */
  const void* src; /* source */
  uint64_t bytes; /* size of the copy; never 0 */
  pfrt_direction direction; /* the side that is the device's */
  uint32_t reserved;
} pfrt_device_copy;

typedef struct pfrt_fence pfrt_fence; /* a point in what was queued */

/* ---- what a device says of itself ---- */
/* Takes the figures that report counts. Valid during the call, on its thread. */
typedef struct pfrt_counters {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  /* Adds a figure of the program's last run: any |value|, in |unit| ("cycles", "%"; may be
   * empty). |name| is not empty. |step| is an index into the program's steps, or PFRT_NO_INDEX
   * for all of the program. The host copies the strings; of two figures with one name and step
   * the later one counts. */
  void (*add)(const struct pfrt_counters* counters, pfrt_string name, double value, pfrt_string unit, uint32_t step);
} pfrt_counters;

/* A request to a device outside of any program, or to a service. All of it is borrowed for the call. */
typedef struct pfrt_question {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_string verb;    /* what to do, in the plug-in's own word: "validate", "reload"; not empty */
  pfrt_string request; /* how, in the form that the verb wants; may be empty */
  /* [tensor_count], tensor_size bytes apart: row-major, in host memory, never written. */
  const pfrt_tensor* tensors;
  size_t tensor_size; /* bytes from one to the next */
  size_t tensor_count;
  uint32_t threads; /* as many as a run may have: the answer takes no more unless the request says so */
  uint32_t reserved;
} pfrt_question;

/* Takes the answer to a question; the host copies. Valid during the call, on its thread. The
 * answer counts only when ask returns OK. */
typedef struct pfrt_answer {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  /* Adds |text| at the end of the answer's text. */
  void (*text)(const struct pfrt_answer* answer, pfrt_string text);
  /* Adds a tensor to the answer: row-major, in host memory, without quantization; for strings
   * |data| is an array of pfrt_string. |name| is not empty, and no other tensor of the answer
   * has it. */
  void (*tensor)(const struct pfrt_answer* answer, pfrt_string name, const pfrt_tensor* tensor);
} pfrt_answer;

/* The functions of a provider that a session calls, in this order. */
typedef struct pfrt_provider_table {
  uint32_t struct_size;
  uint32_t abi;
  /* Device words this provider can open, comma-separated ("cpu"). Lives as long as the library. */
  pfrt_string devices;
  /* Opens a device. |options| are by key without prefix; an unknown key is INVALID_ARGUMENT. */
  pfrt_code (*open)(pfrt_string device, const pfrt_key_value* options, size_t option_count, const pfrt_sink* sink,
                    pfrt_provider** out_provider);
  /* Closes the device. Everything compiled was released before. */
  void (*close)(pfrt_provider* provider);
  /* Says yes or no to every node of the snapshot. */
  pfrt_code (*claim)(pfrt_provider* provider, const pfrt_snapshot* snapshot, const pfrt_claims* claims,
                     const pfrt_sink* sink);
  /* Compiles all regions of a session that the provider has, |region_size| bytes apart: those of
   * the graph and those of bodies in it, in the order in which they first run, so that a device
   * can be divided among them. Dimensions are known as far as the snapshots have them. On
   * failure nothing is kept, and |out_region| is the region whose snapshot has the node given to
   * fail. pfrt_compile_each does it one by one. */
  pfrt_code (*compile)(pfrt_provider* provider, const pfrt_region* regions, size_t region_size, size_t count,
                       const pfrt_sink* sink, pfrt_executable** out_executables, size_t* out_region);
  /* Releases an executable. All of its programs were released before. */
  void (*release_executable)(pfrt_executable* executable);
  /* Makes a program for |shapes|, which are borrowed for the call. |out_program| (struct_size
   * set by the host) lives until release_program. */
  pfrt_code (*specialise)(pfrt_executable* executable, const pfrt_shapes* shapes, const pfrt_sink* sink,
                          pfrt_program* out_program);
  /* Releases a program. No run uses it any more. */
  void (*release_program)(pfrt_executable* executable, pfrt_program* program);
  /* PFRT_PROVIDER_SUPPORTS: whether the provider runs an operator with its tail as one step. CANCELLED and DEADLINE
   * are no answer: they end what the session is made for. */
  pfrt_code (*supports)(pfrt_provider* provider, const pfrt_op_query* query, const pfrt_sink* sink);
  /* PFRT_PROVIDER_CONSTANTS: packed constants that the executable wants, |out_size| bytes apart. The array lives as long
   * as the executable. */
  pfrt_code (*constants)(pfrt_executable* executable, const pfrt_sink* sink,
                         const pfrt_packed_constant** out_constants, size_t* out_size, size_t* out_count);
  size_t (*kernel_count)(pfrt_provider* provider);
  /* PFRT_PROVIDER_KERNELS: kernel |index|, from 0 on, of kernel_count. The strings live as long as the library. */
  pfrt_code (*kernel_at)(pfrt_provider* provider, size_t index, pfrt_kernel_info* out_info);
  /* PFRT_PROVIDER_OPTIONS: options of open, by key without prefix. A session gives them as
   * "provider.<word>.<key>", <word> being the provider's name in lower case without
   * "ExecutionProvider". The host checks keys, types and choices before open. Any thread, also
   * before open; strings live as long as the library. */
  size_t (*option_count)(void);
  /* Option |index|, from 0 on, of option_count. */
  pfrt_code (*option_at)(size_t index, pfrt_option_info* out_info);
  /* PFRT_PROVIDER_MEMORY. Allocates |bytes| > 0; |alignment| is a power of two, 64 or more;
   * |run| is the run that first needs the memory, or 0; sink->stop tells when it is stopped. The
   * memory belongs to the host until release_memory, which may come long after everything compiled is released (values on the
   * device outlive sessions); the handle is closed later still. */
  pfrt_code (*allocate)(pfrt_provider* provider, uint64_t run, uint64_t bytes, uint32_t alignment, const pfrt_sink* sink,
                        void** out_memory);
  /* Frees memory. No step or copy that uses it is called any more. */
  void (*release_memory)(pfrt_provider* provider, void* memory);
  /* Copies to, from or within device memory. All copies of a region's border in one direction come
   * in one call, |copy_size| bytes apart; they do not overlap each other. A call that fails, or is
   * stopped, may have made some of them; without FENCES it writes no host memory any more. */
  pfrt_code (*copy)(pfrt_provider* provider, uint64_t run, const pfrt_device_copy* copies, size_t copy_size, size_t count,
                    const pfrt_sink* sink);
  /* PFRT_PROVIDER_FENCES. signal gives a fence that is reached when all that was queued for |run| before is done. */
  pfrt_code (*signal)(pfrt_provider* provider, uint64_t run, const pfrt_sink* sink, pfrt_fence** out_fence);
  /* Blocks until the fence is reached, or sink->stop gives a reason to return. Returns the code
   * of what failed of the fence's run, or that of stop; after either, work queued for the run
   * writes no host memory any more: that memory is about to be freed. */
  pfrt_code (*wait)(pfrt_provider* provider, pfrt_fence* fence, const pfrt_sink* sink);
  /* Releases a fence after wait, whatever that returned. */
  void (*release_fence)(pfrt_provider* provider, pfrt_fence* fence);
  /* PFRT_PROVIDER_RUNS. Called before the first step, copy or allocation of that number on this
   * device. */
  pfrt_code (*run_begin)(pfrt_provider* provider, uint64_t run, const pfrt_sink* sink);
  /* Called after each run_begin that succeeded, when no work of that number is queued any more,
   * nor will be. */
  void (*run_end)(pfrt_provider* provider, uint64_t run);
  /* PFRT_PROVIDER_REPORT. Reports the device's counts in the last run of |program| that has
   * ended; nothing where none has. Runs of the program may be under way. A failure is a note in
   * the report, and has no other consequence. */
  pfrt_code (*report)(pfrt_executable* executable, const pfrt_program* program, const pfrt_counters* counters,
                      const pfrt_sink* sink);
  /* PFRT_PROVIDER_FINGERPRINT. Names all that answers, results and compiled forms depend on: device, version, machine
   * description, configuration. Two handles with the same text of one provider are the same to the host, in other
   * processes too. UTF-8, not empty, 64 KiB at most; asked for once, after open, which fails when this fails. |out_text|
   * lives until close. */
  pfrt_code (*fingerprint)(pfrt_provider* provider, const pfrt_sink* sink, pfrt_string* out_text);
  /* PFRT_PROVIDER_ASK. Answers |question|. A verb that the provider does not know is
   * UNSUPPORTED, and the message lists those that it knows; a request or tensors that the verb
   * cannot take are INVALID_ARGUMENT. README.md has the form of "measure". May take long, and
   * asks stop and tells progress as all calls with a sink do. */
  pfrt_code (*ask)(pfrt_provider* provider, const pfrt_question* question, const pfrt_answer* answer,
                   const pfrt_sink* sink);
} pfrt_provider_table;

/* Implements compile for a provider whose regions are independent: calls |compile_one| for each
 * and, when one fails, |release| for those made before. */
static inline pfrt_code pfrt_compile_each(pfrt_provider* provider, const pfrt_region* regions, size_t region_size,
                                          size_t count, const pfrt_sink* sink, pfrt_executable** out_executables,
                                          size_t* out_region,
                                          pfrt_code (*compile_one)(pfrt_provider* provider, const pfrt_region* region,
                                                                   const pfrt_sink* sink,
                                                                   pfrt_executable** out_executable),
                                          void (*release)(pfrt_executable* executable)) {
  size_t i;
  for (i = 0; i < count; ++i) {
    const pfrt_code code = compile_one(provider, (const pfrt_region*)pfrt_at(regions, region_size, i), sink,
                                       &out_executables[i]);
    if (code == PFRT_CODE_OK) continue;
    *out_region = i;
    while (i > 0) {
      release(out_executables[--i]);
      out_executables[i] = NULL;
    }
    return code;
  }
  return PFRT_CODE_OK;
}

/* ------------------------------------------------------------------ importers */
/* An importer fills a graph from a file's bytes.
 *  - Choosing one: the importer that the file's extension names is asked first, then the others by what probe says of
 *    the first bytes. probe guesses from these; load decides for good. When load returns UNSUPPORTED_FORMAT, "not mine
 *    after all", with a message that says why, the next one is asked, with an empty graph. If all decline, the caller's
 *    error has each one's message. Every other code ends the load.
 *  - Weights without a graph: load calls define, or returns UNSUPPORTED_FORMAT where that is NULL. The message then
 *    says what the file is, how many tensors it holds, and that a definer is needed.
 *  - Default inputs: an input with an initializer of its name has that value where it is not fed. The type given to
 *    add_input, which may be dynamic, says what may be fed.
 *  - States: add_state says which outputs are inputs of the next run.
 */
/* Features of an importer besides load. */
typedef uint64_t pfrt_importer_features;
enum {
  PFRT_IMPORTER_SAVE = 1,   /* has save() */
  PFRT_IMPORTER_OPTIONS = 2 /* has option_count() and option_at(); without it, a load takes no options for it */
};

/* A file's bytes as the host mapped or read them; reference-counted. */
typedef struct pfrt_file pfrt_file;

/* Arguments of an importer; valid during its call. */
typedef struct pfrt_import_request {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  const pfrt_api* api; /* the client tables: the graph is built with them */
  /* Empty, to be filled. After load, a handle of it (or of one of its bodies) that was retained refuses every edit. */
  pfrt_graph* graph;
  pfrt_string path;    /* empty when the model came from memory */
  const void* data;    /* the whole model */
  uint64_t size; /* bytes at |data| */
  pfrt_file* file;     /* owner of |data|: retain it for every initializer that is a view into it */
  /* Load options given by the caller for this importer, by its own keys, each checked against option_at. */
  const pfrt_key_value* options;
  size_t option_count;
  /* Adds a reference to the file. */
  void (*file_retain)(pfrt_file* file);
  /* Drops a reference. It has the shape of a pfrt_release_fn: user is the file. */
  void (*file_release)(void* file, void* data);
  /* Opens a file beside the model: |location| is relative and must stay inside the model's folder, symbolic links
   * included. Gives one reference. */
  pfrt_code (*open_beside)(const struct pfrt_import_request* request, pfrt_string location, const pfrt_sink* sink,
                           pfrt_file** out_file, const void** out_data, uint64_t* out_size);
  /* Adds a sentence for the caller about anything that was read otherwise than the file has it. */
  void (*warn)(const struct pfrt_import_request* request, pfrt_string message);
  /* Model-level metadata keys: graph_name, producer_name, producer_version, domain,
   * model_version, description, ir_version. */
  void (*set_info)(const struct pfrt_import_request* request, pfrt_string key, pfrt_string value);
  /* For formats whose files may have several methods: |names| are all of the file's, the default first. |out_index| is
   * the one to read, which the load option "entry" names. INVALID_ARGUMENT, which lists them, where it names none of
   * them. A load with that option fails where the importer does not ask. */
  pfrt_code (*choose_entry)(const struct pfrt_import_request* request, const pfrt_string* names, size_t count,
                            const pfrt_sink* sink, size_t* out_index);
  /* Declares that an output of a run is an input of the next one. The model keeps that as metadata
   * "pyflame_rt.state.<input>", in saved files too, and state->create without pairs goes by it. */
  pfrt_code (*add_state)(const struct pfrt_import_request* request, const pfrt_state_pair* pair,
                         const pfrt_sink* sink);
  /* Has the caller's definer fill the graph; NULL where the caller gave none. A failure is the load's error, whatever
   * load returns. |weights| need to live during the call; the definer may retain the values. */
  pfrt_code (*define)(const struct pfrt_import_request* request, const pfrt_weights* weights, const pfrt_sink* sink);
} pfrt_import_request;

/* Arguments of an exporter; valid during its call. */
typedef struct pfrt_export_request {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  const pfrt_api* api; /* the client tables: the graph is read with them */
  const pfrt_graph* graph; /* graph to write */
  pfrt_string path; /* final name, for messages and for naming a sidecar */
  const pfrt_key_value* info; /* keys and values as set_info takes them */
  size_t info_count;
  /* Appends to the file; the host renames it into place when save returns ok. |file| 0 is the model, others come
   * from add_sidecar. */
  pfrt_code (*write)(const struct pfrt_export_request* request, uint32_t file, const void* data, uint64_t size,
                     const pfrt_sink* sink);
  /* Adds a file beside the model, called |name|; |out_file| is for write. */
  pfrt_code (*add_sidecar)(const struct pfrt_export_request* request, pfrt_string name, const pfrt_sink* sink,
                           uint32_t* out_file);
} pfrt_export_request;

/* The functions of an importer. */
typedef struct pfrt_importer_table {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_string* extensions; /* "onnx", without the dot */
  size_t extension_count;
  /* Returns 0 for certainly not this format up to 100 for certainly. |data| are the first |size| bytes, which may be
   * fewer than the file has: what it says is a guess by the first record, and load decides. */
  uint32_t (*probe)(const void* data, uint64_t size);
  /* Fills the request's graph. UNSUPPORTED_FORMAT: the bytes are not of this format after all. */
  pfrt_code (*load)(const pfrt_import_request* request, const pfrt_sink* sink);
  /* PFRT_IMPORTER_SAVE: writes a graph. */
  pfrt_code (*save)(const pfrt_export_request* request, const pfrt_sink* sink);
  /* PFRT_IMPORTER_OPTIONS: options of load, by key without prefix. A load gives them as "import.<word>.<key>", <word>
   * being the importer's name in lower case. The host checks keys, types and choices before load. Any thread; strings
   * live as long as the library. */
  size_t (*option_count)(void);
  /* Option |index|, from 0 on, of option_count. */
  pfrt_code (*option_at)(size_t index, pfrt_option_info* out_info);
} pfrt_importer_table;

/* ------------------------------------------------------------------ services */
/* Something that serves while the program goes on: a model server, a watcher, an exporter of measurements. It reaches
 * the runtime through the client tables and may start threads of its own, which are gone when stop returns. */
typedef struct pfrt_service_instance pfrt_service_instance; /* the plug-in's own */

/* Tells the client that something happened. Lives until stop has returned; any thread, several at once, also during
 * start and stop. */
typedef struct pfrt_events {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  /* |name| is the service's own word ("loaded"), not empty; |text| says more and may be empty. The client may ask the
   * service before this returns: no lock that ask takes may be held. */
  void (*event)(const struct pfrt_events* events, pfrt_string name, pfrt_string text);
} pfrt_events;

/* Arguments of a service's start and check. */
typedef struct pfrt_service_request {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_api* api;             /* the client tables */
  pfrt_env* env;                   /* borrowed until stop has returned */
  /* Those that the client gave, valid during the call; with PFRT_SERVICE_OPTIONS the host has checked them, else an
   * unknown key is INVALID_ARGUMENT. One that is not there has its default. */
  const pfrt_key_value* options;
  size_t option_count;
  const pfrt_events* events;       /* for start; NULL for check */
} pfrt_service_request;

/* Features of a service besides start and stop. */
typedef uint64_t pfrt_service_features;
enum {
  PFRT_SERVICE_ADDRESS = 1, /* has address() */
  PFRT_SERVICE_OPTIONS = 2, /* has option_count() and option_at() */
  PFRT_SERVICE_CHECK = 4,   /* has check() */
  PFRT_SERVICE_ASK = 8      /* has ask() */
};

/* The functions of a service. */
typedef struct pfrt_service_table {
  uint32_t struct_size;
  uint32_t abi;
  /* Returns once the service serves, or fails and leaves nothing. |sink| stays valid until stop has returned, for log
   * from any thread; fail, stop and progress belong to this call. A start that takes long asks stop every few
   * milliseconds and tells progress: on the client's cancel or deadline it returns stop's code, and leaves nothing. May
   * be called again while an instance runs. */
  pfrt_code (*start)(const pfrt_service_request* request, const pfrt_sink* sink, PFRT_OWN pfrt_service_instance** out);
  /* Ends the service: when it returns, no thread of it runs and every handle it held is released. Called once, when no
   * call of ask is under way. */
  void (*stop)(PFRT_OWN pfrt_service_instance* service);
  /* PFRT_SERVICE_ADDRESS: address of the service ("http://127.0.0.1:8080"); lives until stop.
   * Any thread. */
  pfrt_string (*address)(const pfrt_service_instance* service);
  /* PFRT_SERVICE_OPTIONS: options of start. The host checks keys, types and choices before start and check. Any thread,
   * also while nothing runs; strings live as long as the library. */
  size_t (*option_count)(void);
  /* Option |index|, from 0 on, of option_count. */
  pfrt_code (*option_at)(size_t index, pfrt_option_info* out_info);
  /* PFRT_SERVICE_CHECK: tells whether start would take the request's options, as far as that can be told without
   * starting: it may read files, and starts no thread, takes no port and writes nothing. What it refuses start would
   * refuse with the same code. Any thread, also while an instance runs. */
  pfrt_code (*check)(const pfrt_service_request* request, const pfrt_sink* sink);
  /* PFRT_SERVICE_ASK: answers |question|. The verbs are the service's own: "load", "unload", "reload", "stats",
   * "drain". One that it does not know is UNSUPPORTED, and the message lists those that it knows; a request or tensors
   * that the verb cannot take are INVALID_ARGUMENT. May take long, and asks stop and tells progress as all calls with a
   * sink do; stop is raised also when the service is about to be stopped. Any thread, several at once. */
  pfrt_code (*ask)(pfrt_service_instance* service, const pfrt_question* question, const pfrt_answer* answer,
                   const pfrt_sink* sink);
} pfrt_service_table;

/* ------------------------------------------------------------------ executors */
/* Where an executor comes from: threads for the runs of an environment whose option "executor" names the plug-in. */
typedef struct pfrt_executor_table {
  uint32_t struct_size;
  uint32_t abi;
  /* Fills in |out_executor| (struct_size set by the host, the rest zero) for one environment, or fails and leaves nothing
   * behind. Its functions are held to what pfrt_executor says, with two exceptions: where submit is NULL, asynchronous runs
   * begin on threads of the library's and their loops are the executor's; and in a forked child, which has the library's
   * own threads, loop and submit are not called. Threads that have called loop may end after release. Any thread. */
  pfrt_code (*create)(const pfrt_sink* sink, pfrt_executor* out_executor);
} pfrt_executor_table;

#ifdef __cplusplus
}
#endif
#endif
