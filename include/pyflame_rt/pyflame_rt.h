/* SPDX-License-Identifier: Apache-2.0
 *
 * The client ABI: one exported function hands out a table of areas, each a table of functions under one noun.
 *
 * Rules (README.md beside this file has them at length):
 *  - Handles are opaque and reference-counted: create gives one reference; retain and release add and drop one.
 *    release(NULL) is a no-op. Accessors borrow: what they return lives as long as the handle they were asked on.
 *  - Functions that can fail return pfrt_status*; NULL means success. Out-parameters come last, are written on
 *    success and set to NULL (or zero) on failure. Arguments are borrowed unless marked PFRT_OWN.
 *  - Every struct starts with struct_size, set by whoever allocates it; zero in any other field means "unset".
 *  - Functions are thread-safe unless they say "externally synchronised".
 */
#ifndef PYFLAME_RT_PYFLAME_RT_H_
#define PYFLAME_RT_PYFLAME_RT_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pfrt_status pfrt_status;   /* an error with its message and, for lists of faults, its children */
typedef struct pfrt_env pfrt_env;         /* logging, plug-in search, threads */
typedef struct pfrt_options pfrt_options; /* typed keys and values with a schema */
typedef struct pfrt_value pfrt_value;     /* tensor, sequence, map, optional or sparse tensor */
typedef struct pfrt_graph pfrt_graph;     /* an editable graph; not shared between threads */
typedef struct pfrt_model pfrt_model;     /* an immutable graph with its constants, shared by sessions */
typedef struct pfrt_session pfrt_session; /* a model planned for its providers */
typedef struct pfrt_report pfrt_report;   /* rows of explain */
typedef struct pfrt_state pfrt_state;     /* what one run leaves for the next */
typedef struct pfrt_service pfrt_service; /* a running service of a plug-in */

/* Called when borrowed memory is no longer needed. */
typedef void (*pfrt_release_fn)(void* user, void* data);

/* ------------------------------------------------------------------ status */
/* What a status says. Every function takes NULL, which is success. */
typedef struct pfrt_status_api {
  uint32_t struct_size;
  uint32_t abi;
  /* OK for NULL. */
  pfrt_code (*code)(const pfrt_status* status);
  /* What was attempted, on what, what was found and the nearest fix. Lives as long as the status. */
  pfrt_string (*message)(const pfrt_status* status);
  size_t (*child_count)(const pfrt_status* status);
  /* Borrowed; NULL when |index| is out of range. */
  const pfrt_status* (*child)(const pfrt_status* status, size_t index);
  void (*release)(PFRT_OWN pfrt_status* status);
  /* The fixed text of a code ("shape mismatch"); "unknown code" for one this library does not know. */
  pfrt_string (*code_text)(pfrt_code code);
} pfrt_status_api;

/* ------------------------------------------------------------------ options */
/* What options are for. */
typedef uint32_t pfrt_options_kind;
enum {
  PFRT_OPTIONS_UNSET = 0,
  PFRT_OPTIONS_ENV = 1,
  PFRT_OPTIONS_LOAD = 2,
  PFRT_OPTIONS_SESSION = 3,
  PFRT_OPTIONS_RUN = 4,
  PFRT_OPTIONS_OPTIMIZER = 5,
  PFRT_OPTIONS_ASK = 6, /* of env->ask */
  PFRT_OPTIONS_FORCE32 = 0x7fffffff
};

/* Of an option's value. */
typedef uint32_t pfrt_option_type;
enum {
  PFRT_OPTION_UNSET = 0,
  PFRT_OPTION_BOOL = 1,
  PFRT_OPTION_INT = 2,
  PFRT_OPTION_FLOAT = 3,
  PFRT_OPTION_STRING = 4,
  PFRT_OPTION_STRINGS = 5, /* an ordered list */
  PFRT_OPTION_FORCE32 = 0x7fffffff
};

/* One option that there is. Strings live as long as the library. */
typedef struct pfrt_option_info {
  uint32_t struct_size;
  pfrt_option_type type; /* of its value */
  pfrt_string key; /* As set_... takes it. */
  pfrt_string default_value; /* as text */
  pfrt_string choices;       /* "none basic extended all", or empty */
  pfrt_string doc; /* A sentence without a full stop */
} pfrt_option_info;

/* How far long work has come: |fraction| from 0 to 1 never falls within one call and is 1 at the end of one that
 * succeeds; |stage| says what is being done ("read", "import", "check", "infer shapes", "write"). Called on the thread
 * that does the work, between its steps. It may cancel the options it was set on; it must not throw, release them, or
 * use what is being made. */
typedef void (*pfrt_progress_fn)(void* user, double fraction, pfrt_string stage);

/* Sees a value of a run, which is borrowed for the call: copy what is to be kept, it may lie in the caller's own memory.
 * 0 to go on; another code ends the run with it. Must not throw. */
typedef pfrt_code (*pfrt_observe_fn)(void* user, pfrt_string name, pfrt_value* value);

/* Setting an unknown key, a wrong type or a value outside the choices is INVALID_ARGUMENT naming the nearest key.
 * Setters are externally synchronised; cancel and reset_cancel may be called from any thread at any time. */
typedef struct pfrt_options_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Every option has its default. */
  pfrt_status* (*create)(pfrt_options_kind kind, PFRT_OWN pfrt_options** out_options);
  void (*retain)(pfrt_options* options);
  void (*release)(PFRT_OWN pfrt_options* options);
  /* |value| 0 is false. */
  pfrt_status* (*set_bool)(pfrt_options* options, pfrt_string key, uint32_t value);
  /* For keys of type INT. */
  pfrt_status* (*set_int)(pfrt_options* options, pfrt_string key, int64_t value);
  /* For keys of type FLOAT. */
  pfrt_status* (*set_float)(pfrt_options* options, pfrt_string key, double value);
  /* For keys of type STRING; the text is copied. */
  pfrt_status* (*set_string)(pfrt_options* options, pfrt_string key, pfrt_string value);
  /* For keys of type STRINGS; the texts are copied. */
  pfrt_status* (*set_strings)(pfrt_options* options, pfrt_string key, const pfrt_string* values, size_t count);
  /* Parses |text| by the key's type; lists are comma-separated. */
  pfrt_status* (*set_text)(pfrt_options* options, pfrt_string key, pfrt_string text);
  /* The value as text; lives until the key is set again or the handle goes. */
  pfrt_status* (*get_text)(const pfrt_options* options, pfrt_string key, pfrt_string* out_text);
  size_t (*schema_count)(pfrt_options_kind kind);
  pfrt_status* (*schema_at)(pfrt_options_kind kind, size_t index, pfrt_option_info* out_info);
  /* Options of every kind but ENV: work that uses them stops with CANCELLED, now and later, until reset. */
  void (*cancel)(pfrt_options* options);
  /* Lets work use the options again after cancel. */
  void (*reset_cancel)(pfrt_options* options);

  /* LOAD and ASK options: |fn| hears from what uses them; NULL = nobody does. Calls on several threads
   * with the same options call it from each. |user| is borrowed until the options go or another |fn| is set.
   * Externally synchronised. INVALID_ARGUMENT for options of another kind. */
  pfrt_status* (*set_progress)(pfrt_options* options, pfrt_progress_fn fn, void* user);
  /* RUN options: runs that use them have |state|, which the options keep; NULL = none. Externally synchronised.
   * INVALID_ARGUMENT for options of another kind. */
  pfrt_status* (*set_state)(pfrt_options* options, pfrt_state* state);
  /* RUN options: |fn| sees the session's extra outputs (pfrt_session_desc) in their order once a run has computed them and
   * before it returns, on the thread of the run; the run may leave them out of its outputs (PFRT_IO_SKIP). So any value of
   * a model can be looked at, while all others are fused as ever. NULL = nobody does. |user| is borrowed until the options
   * go or another |fn| is set. INVALID_ARGUMENT for options of another kind. */
  pfrt_status* (*set_observer)(pfrt_options* options, pfrt_observe_fn fn, void* user);
} pfrt_options_api;

/* ------------------------------------------------------------------ environment */
/* A file of the plug-in search path. Strings live until refresh_plugins. */
typedef struct pfrt_plugin_info {
  uint32_t struct_size;
  uint32_t loaded;    /* 1 when open and accepted */
  pfrt_string kind;   /* provider, import, ops, pass, service, transport, executor */
  pfrt_string name;   /* from the file name */
  pfrt_string path; /* of the file */
  pfrt_string version; /* the plug-in's own; empty when it was not opened */
  pfrt_string reason; /* why it was rejected, or empty */
  uint32_t abi_major, abi_minor; /* of the ABI that it was built with; 0 when it was not opened */
} pfrt_plugin_info;

/* A provider that sessions can name. Strings live until refresh_plugins. */
typedef struct pfrt_provider_info {
  uint32_t struct_size;
  uint32_t available; /* 1 when its plug-in can be opened */
  pfrt_string name;    /* CPUExecutionProvider */
  pfrt_string devices; /* comma-separated device words */
  pfrt_string path; /* of its plug-in; empty for one that the client registered */
  pfrt_string reason;  /* why it is not available, or empty */
} pfrt_provider_info;

/* A kernel of a provider. Strings live as long as the environment. */
typedef struct pfrt_kernel_info {
  uint32_t struct_size;
  uint32_t since, until; /* canonical opset range; until 0 = still current */
  /* Its operator and domain ("" is ai.onnx), element types, own name, and the instruction set that it needs. */
  pfrt_string op, domain, types, name, isa;
} pfrt_kernel_info;

/* An operator that the library knows. */
typedef struct pfrt_operator_info {
  uint32_t struct_size;
  uint32_t since, until; /* opset range this row accepts; until 0 = still current */
  pfrt_string op, domain; /* its name and domain ("" is ai.onnx) */
  pfrt_string runs_in; /* provider or host */
  pfrt_string note;    /* what was followed where the standard and its implementations differ, or empty */
} pfrt_operator_info;

/* Takes a line of the log, without its end. May be called from any thread, several at once. */
typedef void (*pfrt_log_fn)(void* user, pfrt_log_level level, pfrt_string message);

struct pfrt_custom_op;
struct pfrt_client_provider;
struct pfrt_custom_pass;

/* Where an environment's bytes come from: tensors of its runs and models, the blocks that runs work in, packed
 * constants. Not those of value->create_tensor, which belongs to no environment. Functions are called from any thread,
 * several at once. |allocate| returns |bytes| (never 0) aligned to |alignment| (a power of two, 64 at least), or NULL,
 * which becomes OUT_OF_MEMORY; so does memory with another alignment, which is given back. Every allocation is given
 * back once, with its size. |release| (may be NULL) is called once, when the environment has another allocator or is
 * gone and the last allocation has been given back. */
typedef struct pfrt_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment);
  /* Takes back what allocate gave, with its size. */
  void (*free)(void* user, void* data, uint64_t bytes);
  void (*release)(void* user);
} pfrt_allocator;

/* A buffer that a run works in, for a planner to place. */
typedef struct pfrt_memory_item {
  uint32_t struct_size;
  uint32_t alignment; /* of its offset: a power of two, 64 at least */
  pfrt_string name;   /* of the value that it holds, or else of the node that uses it first; may be empty */
  uint64_t bytes;     /* how much it is */
  uint32_t first, last; /* steps, from 0, both included, that it is in use in; those of one number may run at once */
} pfrt_memory_item;

/* What a planner is asked, and where it answers; valid during the call. */
typedef struct pfrt_memory_request {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string graph;  /* its name */
  pfrt_string memory; /* "host", or the provider whose device the block is on */
  const pfrt_memory_item* items; /* [count], struct_size of the first apart */
  size_t count;      /* length of |items| */
  uint64_t* offsets; /* [count], to be filled: where each item begins in the block */
  uint64_t bytes;    /* to be set: of the block */
  /* Keeps |message|, which the run's error has, and returns |code|. */
  pfrt_code (*fail)(const struct pfrt_memory_request* request, pfrt_code code, pfrt_string message);
  void* host; /* of fail */
} pfrt_memory_request;

/* A client's own planner of runs' memory. It is called from any thread, several at once, when a run needs a plan for
 * dimensions that it has none for. Items that are in use at the same time may not overlap, nor lie outside of the block;
 * what is wrong with an answer is the run's error, INVALID_ARGUMENT with the items' names. Anything but 0 is the error's
 * code. |release| (may be NULL) is called once, when the environment has another planner or is gone and no run uses it. */
typedef struct pfrt_memory_planner {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  /* Answers in |request|. */
  pfrt_code (*create_plan)(void* user, pfrt_memory_request* request);
  void (*release)(void* user);
} pfrt_memory_planner;

/* A client's own threads. |loop| calls fn(arg, i, worker) once for every i < n, on this thread or others, and returns
 * when all calls have returned; |worker| < |workers|, and calls that overlap in time have different ones. It is called
 * from any thread, several times at once, and inside such a call. A run whose loop was cut short, or called with a
 * worker out of range, fails with PROVIDER. While fn runs, the thread's floating-point control is that of the run.
 * |submit| (may be NULL: run_async is UNSUPPORTED then) has fn(arg) called
 * once, later, on a thread of the client's; anything but 0 = refused, fn is not called. |width| is how many threads
 * there are; 0 = what the processor's affinity and quota allow. |release| (may be NULL) is called once, when the
 * environment has another executor or is gone and no run uses it. */
typedef struct pfrt_executor {
  uint32_t struct_size;
  uint32_t width;
  void* user;
  void (*loop)(void* user, uint32_t workers, uint64_t n, void (*fn)(void* arg, uint64_t i, uint32_t worker), void* arg);
  pfrt_code (*submit)(void* user, void (*fn)(void* arg), void* arg);
  void (*release)(void* user);
} pfrt_executor;

/* How the runtime's own threads come and go. |create| starts a thread that calls main(arg) once; anything but 0 means
 * that there is none, and runs go on with fewer. |join| waits until |thread| has returned from main; it is called once
 * for every thread created. |release| (may be NULL) is called once, after the last join. Any thread may call them. */
typedef struct pfrt_thread_hooks {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  pfrt_code (*create)(void* user, void (*main)(void* arg), void* arg, void** out_thread);
  void (*join)(void* user, void* thread);
  void (*release)(void* user);
} pfrt_thread_hooks;

/* What a device can do at most, as its provider has measured it. */
typedef struct pfrt_measurement {
  uint32_t struct_size;
  uint32_t threads;     /* that took part; 0 = not measured, |note| says why */
  pfrt_string provider; /* that measured it; the library fills it in */
  pfrt_string name;     /* "fp32 fma", "read L2": what follows a comma or the last blank says where operands lie */
  pfrt_string unit;     /* GFLOP/s, GOP/s or GB/s, 10^9 each, of all threads together */
  pfrt_string note;     /* instructions, bytes walked through */
  double median, best;  /* of several short bursts, spread over the whole time */
} pfrt_measurement;

/* What env->measure shall measure, and who hears the figures. */
typedef struct pfrt_measure_request {
  uint32_t struct_size;
  uint32_t threads; /* figures are for one thread and for so many; 0 = as many as a run may have */
  double seconds;   /* how long a provider may take, about; 0 = 10 */
  pfrt_string only; /* what names must begin with; empty = everything */
  void* user;
  /* Both are called on the calling thread. Each name is reported once for each number of threads, or once with none. */
  void (*report)(void* user, const pfrt_measurement* measurement);
  /* May be NULL. |fraction| grows from 0 to 1; anything but 0 ends the measurement, which fails with that code. */
  pfrt_code (*progress)(void* user, double fraction);
} pfrt_measure_request;

typedef struct pfrt_reply pfrt_reply; /* what a device answered; immutable */

/* A question to the device of a provider, which needs no model. All of it is borrowed for the call. */
typedef struct pfrt_ask_desc {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string provider; /* as a session's list names it: "CPUExecutionProvider", "cpu" */
  pfrt_string verb;     /* what to do, in the provider's own word; not empty */
  pfrt_string request;  /* how, in the form that the verb wants; may be empty */
  pfrt_value* const* values; /* [value_count], tensors in host memory that the verb works on */
  size_t value_count;
  /* Of kind ASK, or NULL: the provider's own by "provider.<word>.<key>", as a session takes them; which of its devices;
   * a timeout. They may be cancelled, and hear of progress. */
  const pfrt_options* options;
} pfrt_ask_desc;

/* Environments: plug-ins, providers, threads, logging, and what a client registers. */
typedef struct pfrt_env_api {
  uint32_t struct_size;
  uint32_t abi;
  /* |options| of kind ENV or NULL. */
  pfrt_status* (*create)(const pfrt_options* options, PFRT_OWN pfrt_env** out_env);
  void (*retain)(pfrt_env* env);
  void (*release)(PFRT_OWN pfrt_env* env);
  /* Sends log lines to |fn| instead of stderr; NULL restores stderr. |fn| may be called from any thread. */
  pfrt_status* (*set_logger)(pfrt_env* env, pfrt_log_fn fn, void* user);
  /* Listing opens every plug-in file in the search path, so that each row says whether it would load.
   * Indices stay valid until refresh_plugins. */
  pfrt_status* (*refresh_plugins)(pfrt_env* env);
  size_t (*plugin_count)(pfrt_env* env);
  pfrt_status* (*plugin_at)(pfrt_env* env, size_t index, pfrt_plugin_info* out_info);
  size_t (*provider_count)(pfrt_env* env);
  pfrt_status* (*provider_at)(pfrt_env* env, size_t index, pfrt_provider_info* out_info);
  pfrt_status* (*kernel_count)(pfrt_env* env, pfrt_string provider, size_t* out_count);
  pfrt_status* (*kernel_at)(pfrt_env* env, pfrt_string provider, size_t index, pfrt_kernel_info* out_info);
  size_t (*operator_count)(void);
  pfrt_status* (*operator_at)(size_t index, pfrt_operator_info* out_info);
  /* The options that |provider| adds to a session's: keys as a session takes them, "provider.<word>.<key>". Strings
   * live as long as the environment. NOT_FOUND when there is no such provider; it is not opened. */
  pfrt_status* (*provider_option_count)(pfrt_env* env, pfrt_string provider, size_t* out_count);
  pfrt_status* (*provider_option_at)(pfrt_env* env, pfrt_string provider, size_t index, pfrt_option_info* out_info);
  /* Starts the service that a plug-in of kind service gives under |name|, the plug-in's own ("Heartbeat") or that of its
   * file ("heartbeat"), and returns once it serves. The handle keeps the environment and the plug-in. NOT_FOUND lists
   * the services there are; an option that the service does not know is INVALID_ARGUMENT. */
  pfrt_status* (*service_start)(pfrt_env* env, pfrt_string name, const pfrt_key_value* options, size_t option_count,
                                PFRT_OWN pfrt_service** out_service);
  /* Ends the service and frees the handle; returns when none of its threads runs any more. Not from one of them. */
  void (*service_stop)(PFRT_OWN pfrt_service* service);
  /* Where it can be reached, or empty when the service has no address. Lives until service_stop. */
  pfrt_string (*service_address)(const pfrt_service* service);
  /* The structs are those of custom.h, which says how long they live. Models and sessions that exist keep what
   * they have; those made later see the change.
   * INVALID_ARGUMENT naming both when there is an operator of that name and domain already, built in or registered. */
  pfrt_status* (*register_operator)(pfrt_env* env, const struct pfrt_custom_op* op);
  /* NOT_FOUND when none of that name is registered. */
  pfrt_status* (*unregister_operator)(pfrt_env* env, pfrt_string domain, pfrt_string name);
  /* The registered operators, those of plug-ins of kind ops included (which are opened). Indices stay valid until one
   * is registered or unregistered. */
  pfrt_status* (*custom_operator_count)(pfrt_env* env, size_t* out_count);
  pfrt_status* (*custom_operator_at)(pfrt_env* env, size_t index, pfrt_operator_info* out_info);
  /* A provider that sessions can name. INVALID_ARGUMENT naming both when there is one of that name, in a plug-in too. */
  pfrt_status* (*register_provider)(pfrt_env* env, const struct pfrt_client_provider* provider);
  /* A pass for sessions made later, but for those of optimisation level none. INVALID_ARGUMENT when there is a pass of
   * that name, NOT_FOUND when there is none of the name it shall come after. */
  pfrt_status* (*register_pass)(pfrt_env* env, const struct pfrt_custom_pass* pass);
  /* Each takes effect for what begins afterwards; NULL restores the library's own. The struct is copied,
   * |release| is called for it also when the call fails. INVALID_ARGUMENT when a function is missing. */
  pfrt_status* (*set_allocator)(pfrt_env* env, const pfrt_allocator* allocator);
  /* Runs of this environment then start no thread of the library's. NULL restores that of the option "executor". */
  pfrt_status* (*set_executor)(pfrt_env* env, const pfrt_executor* executor);
  /* This environment's runs then use a pool of its own, whose threads these functions make; they end with the
   * environment's last handle (where that goes inside a callback of run_async: when the library is used next, or
   * unloaded). An executor goes first. */
  pfrt_status* (*set_thread_hooks)(pfrt_env* env, const pfrt_thread_hooks* hooks);
  /* Has |provider| (empty = every one that can) measure its device's peaks, with threads of its own that are gone
   * afterwards. Figures are the machine's only while it does nothing else. UNSUPPORTED when the provider, or every one,
   * has no such function; INVALID_ARGUMENT when it cannot have so many threads. */
  pfrt_status* (*measure)(pfrt_env* env, pfrt_string provider, const pfrt_measure_request* request);
  /* Opens the device for the call, or shares it with sessions that have it open, and gives what it answers. UNSUPPORTED
   * when the provider takes no questions (the message lists who does) or does not know the verb; NOT_FOUND when there is
   * no such provider; else what the device says, CANCELLED or DEADLINE. */
  pfrt_status* (*ask)(pfrt_env* env, const pfrt_ask_desc* desc, PFRT_OWN pfrt_reply** out_reply);
  /* Ends the life of a reply; NULL is ignored. */
  void (*reply_release)(PFRT_OWN pfrt_reply* reply);
  /* May be empty. Lives as long as the reply. */
  pfrt_string (*reply_text)(const pfrt_reply* reply);
  /* The answer's tensors. Names live as long as the reply; the value is borrowed. */
  size_t (*reply_count)(const pfrt_reply* reply);
  pfrt_status* (*reply_at)(const pfrt_reply* reply, size_t index, pfrt_string* out_name, pfrt_value** out_value);
  /* Gives back what can be made again: plans, idle blocks and second plans of all sessions, idle memory of the global pool
   * and of the C library. Runs under way keep what they use; the next of a session plans anew. |out_bytes| (may be
   * NULL): bytes of blocks and pools that this was. */
  pfrt_status* (*trim)(pfrt_env* env, uint64_t* out_bytes);
  /* As set_allocator. For plans that runs make from now on, not for those that sessions have: sessions share an
   * environment's planner. */
  pfrt_status* (*set_memory_planner)(pfrt_env* env, const pfrt_memory_planner* planner);
} pfrt_env_api;

/* ------------------------------------------------------------------ values */
/* Values are immutable once shared, but for a tensor's bytes, which whoever holds it may write while no run
 * uses it. */
typedef struct pfrt_value_api {
  uint32_t struct_size;
  uint32_t abi;
  void (*retain)(pfrt_value* value);
  void (*release)(PFRT_OWN pfrt_value* value);
  /* UNSET for NULL. */
  pfrt_value_kind (*kind)(const pfrt_value* value);
  /* A tensor of its own memory, zeroed (strings: empty), 64-byte aligned. */
  pfrt_status* (*create_tensor)(pfrt_dtype dtype, const int64_t* dims, size_t rank, PFRT_OWN pfrt_value** out_value);
  /* A tensor over the caller's row-major memory; |release| (may be NULL) is called once when the last reference goes. */
  pfrt_status* (*wrap_tensor)(const pfrt_tensor* tensor, pfrt_release_fn release, void* user,
                              PFRT_OWN pfrt_value** out_value);
  /* The view of a tensor; for strings |data| is an array of pfrt_string. set_string is externally synchronised. */
  pfrt_status* (*tensor)(const pfrt_value* value, pfrt_tensor* out_tensor);
  /* Element |index|, row-major, of a tensor of strings; |text| is copied. INVALID_ARGUMENT beyond the last one. */
  pfrt_status* (*set_string)(pfrt_value* value, uint64_t index, pfrt_string text);
  /* Number of elements of a sequence, entries of a map, 0 or 1 for an optional. */
  pfrt_status* (*count)(const pfrt_value* value, size_t* out_count);
  /* The element of a sequence or optional, borrowed. */
  pfrt_status* (*element)(const pfrt_value* value, size_t index, pfrt_value** out_element);
  /* |element_dtype| types an empty sequence of tensors; elements are retained. */
  pfrt_status* (*create_sequence)(pfrt_dtype element_dtype, pfrt_value* const* elements, size_t count,
                                  PFRT_OWN pfrt_value** out_value);
  /* |element| NULL makes an empty optional. */
  pfrt_status* (*create_optional)(pfrt_value* element, PFRT_OWN pfrt_value** out_value);
  /* |keys| is a rank-1 tensor (strings or integers), |values| a tensor with as many rows. */
  pfrt_status* (*create_map)(pfrt_value* keys, pfrt_value* values, PFRT_OWN pfrt_value** out_value);
  /* Keys and values of a map, as create_map takes them; borrowed. */
  pfrt_status* (*map_parts)(const pfrt_value* value, pfrt_value** out_keys, pfrt_value** out_values);
  /* COO: |indices| int64 [nnz, rank] (or [nnz] of linear indices), |values| [nnz]. */
  pfrt_status* (*create_sparse)(pfrt_value* values, pfrt_value* indices, const int64_t* dims, size_t rank,
                                PFRT_OWN pfrt_value** out_value);
  /* What create_sparse was given; borrowed. */
  pfrt_status* (*sparse_parts)(const pfrt_value* value, pfrt_value** out_values, pfrt_value** out_indices,
                               const int64_t** out_dims, size_t* out_rank);
  /* Element type of a tensor, sequence, optional, sparse tensor, or of a map's values. */
  pfrt_dtype (*dtype)(const pfrt_value* value);
  /* A tensor in the memory of the device that |provider| (a name of the session's list; empty = the first in use with
   * memory of its own) has open for |session|; contents are undefined. tensor() gives its device address with memory
   * kind DEVICE: never to be read or written. The value keeps the device open and the plug-in loaded. UNSUPPORTED when
   * the provider has no memory of its own. Strings cannot live on a device. */
  pfrt_status* (*create_on)(pfrt_session* session, pfrt_string provider, pfrt_dtype dtype, const int64_t* dims,
                            size_t rank, PFRT_OWN pfrt_value** out_value);
  /* Copies the elements of tensor |from| to tensor |to| (same type and number of bytes, not strings), wherever either
   * lives; done when it returns. No run may use |to| meanwhile. */
  pfrt_status* (*copy)(const pfrt_value* from, pfrt_value* to);
  /* As wrap_tensor, for memory at any address that never changes, such as that of a file: it is copied when somebody
   * asks for the tensor's view, which keeps the copy, or for as long as it takes to give it a provider's layout. Not for
   * strings. */
  pfrt_status* (*wrap_unaligned)(const pfrt_tensor* tensor, pfrt_release_fn release, void* user,
                                 PFRT_OWN pfrt_value** out_value);
} pfrt_value_api;

/* ------------------------------------------------------------------ graphs */
/* A described input, output or inner value. */
typedef struct pfrt_value_info {
  uint32_t struct_size;
  pfrt_value_kind kind; /* what the value is */
  pfrt_dtype dtype;  /* of the tensor, or of the elements */
  int32_t rank;      /* -1 when unknown */
  pfrt_string name; /* empty where it has none */
  const int64_t* dims;          /* -1 where dynamic */
  const pfrt_string* dim_names; /* empty where a dimension has no name; may be NULL */
  pfrt_dtype key_dtype;         /* of a map */
  uint32_t has_initializer;     /* an input with a default value */
} pfrt_value_info;

/* An attribute of a node: |type| says which member has it. Borrowed by calls that take one; when read, strings and
 * arrays live until the graph is edited, values and graphs as long as the graph. */
typedef struct pfrt_attr {
  uint32_t struct_size;
  pfrt_attr_type type;
  pfrt_string name; /* unique in the node */
  int64_t i; /* INT */
  float f; /* FLOAT */
  uint32_t reserved;
  pfrt_string s; /* STRING; TYPE as text: "seq(tensor(float))", "tensor(float,[2,N,?])" */
  const int64_t* ints; /* INTS: [count] */
  const float* floats; /* FLOATS: [count] */
  const pfrt_string* strings; /* STRINGS: [count] */
  size_t count;       /* of ints, floats, strings, tensors or graphs */
  pfrt_value* tensor; /* TENSOR and SPARSE */
  pfrt_value* const* tensors; /* TENSORS: [count] */
  pfrt_graph* graph;  /* GRAPH: a body made by create_subgraph; when read, a borrowed view */
  pfrt_graph* const* graphs; /* GRAPHS: [count] */
} pfrt_attr;

/* A node of a graph. Borrowed by calls that take one; when read, all of it lives until the graph is edited. */
typedef struct pfrt_node {
  uint32_t struct_size;
  uint32_t id; /* stable while the node lives; ignored by add_node */
  /* Its own name (may be empty), operator, the operator's domain ("" is ai.onnx), and remarks. */
  pfrt_string name, op, domain, doc;
  const pfrt_string* inputs; /* value names; empty = absent optional input */
  size_t input_count;
  const pfrt_string* outputs; /* names of the values it makes; empty = an output that nobody wants */
  size_t output_count;
  size_t attr_count;
  const pfrt_attr* attrs; /* [attr_count], as far apart as the struct_size of the first says */
} pfrt_node;

/* No node: where a node id is asked for or given, none is meant. */
#define PFRT_NO_NODE 0xffffffffu

/* Externally synchronised, a graph together with its bodies. Reading functions take const graphs; strings and arrays
 * they return live until the graph, one around it or one inside it is edited, or the handle is released. Values and
 * bodies they return live as long as the handle, but for the value of an initializer that is replaced or removed:
 * retain what is to be kept. A failed edit leaves the graph as it was.
 *
 * Node ids are stable while the node lives and never given again; a clone, and the graph of a model made from a graph,
 * keep them. A body may be edited in place through the handle that its attribute gives; bodies nest at most 64 deep.
 * Constants are shared between graphs, models and sessions and never change under them: initializer_for_write copies
 * what is shared. */
typedef struct pfrt_graph_api {
  uint32_t struct_size;
  uint32_t abi;
  /* An empty graph. */
  pfrt_status* (*create)(pfrt_string name, PFRT_OWN pfrt_graph** out_graph);
  void (*retain)(pfrt_graph* graph);
  void (*release)(PFRT_OWN pfrt_graph* graph);
  /* A body for a GRAPH attribute of a node of |outer|: names it does not define are captured from |outer|. */
  pfrt_status* (*create_subgraph)(pfrt_graph* outer, pfrt_string name, PFRT_OWN pfrt_graph** out_graph);

  /* Unless set, each domain has the newest opset this library knows. */
  pfrt_status* (*set_opset)(pfrt_graph* graph, pfrt_string domain, int64_t version);
  /* Replaces an entry of the same key. */
  pfrt_status* (*set_metadata)(pfrt_graph* graph, pfrt_string key, pfrt_string value);
  /* At the end. VALIDATION when a value of that name is made already. */
  pfrt_status* (*add_input)(pfrt_graph* graph, const pfrt_value_info* info);
  /* At the end. The value may be added later; validate says what is missing. */
  pfrt_status* (*add_output)(pfrt_graph* graph, const pfrt_value_info* info);
  /* Declares type and shape of an inner value. */
  pfrt_status* (*set_value_info)(pfrt_graph* graph, const pfrt_value_info* info);
  /* Copies the tensor (COPY: |release| NULL and |borrow| 0) or borrows its memory until |release| is called. */
  pfrt_status* (*add_initializer)(pfrt_graph* graph, pfrt_string name, const pfrt_tensor* tensor, uint32_t borrow,
                                  pfrt_release_fn release, void* user);
  /* Retains |value| (a tensor or sparse tensor). */
  pfrt_status* (*add_initializer_value)(pfrt_graph* graph, pfrt_string name, pfrt_value* value);
  /* Names may refer to values that are added later; validate says what is missing. |out_id| may be NULL. */
  pfrt_status* (*add_node)(pfrt_graph* graph, const pfrt_node* node, uint32_t* out_id);
  /* Replaces an attribute of the same name; everything in |attr| is copied, values and bodies are retained. */
  pfrt_status* (*set_attr)(pfrt_graph* graph, uint32_t node_id, const pfrt_attr* attr);
  /* What it made is then made by nobody: validate says who still takes it. */
  pfrt_status* (*remove_node)(pfrt_graph* graph, uint32_t node_id);

  /* Empty when it has none. */
  pfrt_string (*name)(const pfrt_graph* graph);
  size_t (*opset_count)(const pfrt_graph* graph);
  pfrt_status* (*opset_at)(const pfrt_graph* graph, size_t index, pfrt_string* out_domain, int64_t* out_version);
  size_t (*metadata_count)(const pfrt_graph* graph);
  pfrt_status* (*metadata_at)(const pfrt_graph* graph, size_t index, pfrt_key_value* out_entry);
  size_t (*input_count)(const pfrt_graph* graph);
  pfrt_status* (*input_at)(const pfrt_graph* graph, size_t index, pfrt_value_info* out_info);
  size_t (*output_count)(const pfrt_graph* graph);
  pfrt_status* (*output_at)(const pfrt_graph* graph, size_t index, pfrt_value_info* out_info);
  size_t (*initializer_count)(const pfrt_graph* graph);
  pfrt_status* (*initializer_at)(const pfrt_graph* graph, size_t index, pfrt_string* out_name, pfrt_value** out_value);
  size_t (*node_count)(const pfrt_graph* graph);
  /* Nodes in the order they were added. */
  pfrt_status* (*node_at)(const pfrt_graph* graph, size_t index, pfrt_node* out_node);
  /* Type and shape of any value, as far as they are known. NOT_FOUND for a name that the graph does not have. */
  pfrt_status* (*value_info)(const pfrt_graph* graph, pfrt_string name, pfrt_value_info* out_info);
  /* Node ids, producers first; VALIDATION when the graph has a cycle. The array lives until the next edit. */
  pfrt_status* (*topological_order)(pfrt_graph* graph, const uint32_t** out_ids, size_t* out_count);

  /* VALIDATION with one child a fault, all of them at once. */
  pfrt_status* (*validate)(pfrt_graph* graph);
  /* Fills in types and shapes of inner values as far as they follow from the inputs. */
  pfrt_status* (*infer_shapes)(pfrt_graph* graph);

  /* A graph of its own with the same ids; constants are shared. Cloning a body gives a body. */
  pfrt_status* (*clone)(const pfrt_graph* graph, PFRT_OWN pfrt_graph** out_graph);
  /* |name| may be empty. */
  pfrt_status* (*set_name)(pfrt_graph* graph, pfrt_string name);
  /* NOT_FOUND when the domain is not imported, or the metadata has no such key. */
  pfrt_status* (*remove_opset)(pfrt_graph* graph, pfrt_string domain);
  /* NOT_FOUND when there is no such key. */
  pfrt_status* (*remove_metadata)(pfrt_graph* graph, pfrt_string key);

  /* NOT_FOUND once the node is removed. */
  pfrt_status* (*node_by_id)(const pfrt_graph* graph, uint32_t id, pfrt_node* out_node);
  /* The first node of that name; NOT_FOUND when there is none. */
  pfrt_status* (*find_node)(const pfrt_graph* graph, pfrt_string name, uint32_t* out_id);
  /* The node added after |id|, whether or not |id| is still there; the first for PFRT_NO_NODE; PFRT_NO_NODE at the end.
   * A walk by it may edit: what is removed ahead is skipped, what is added comes once, at the end. */
  uint32_t (*next_node)(const pfrt_graph* graph, uint32_t id);
  /* The node that makes |value|: PFRT_NO_NODE for an input, an initializer or a captured value. NOT_FOUND for a name
   * that the graph does not have. */
  pfrt_status* (*producer)(const pfrt_graph* graph, pfrt_string value, uint32_t* out_id);
  /* Ids of the nodes that take |value|, or whose bodies capture it, each once, in order of ids. The array lives until
   * the next call of consumers or the next edit. */
  pfrt_status* (*consumers)(pfrt_graph* graph, pfrt_string value, const uint32_t** out_ids, size_t* out_count);

  /* |name| may be empty. */
  pfrt_status* (*rename_node)(pfrt_graph* graph, uint32_t id, pfrt_string name);
  /* Puts another list in place of the node's; names as in add_node. An output that another node makes already, or
   * that is an input or initializer, is VALIDATION. */
  pfrt_status* (*set_node_inputs)(pfrt_graph* graph, uint32_t id, const pfrt_string* names, size_t count);
  /* As set_node_inputs, for outputs. */
  pfrt_status* (*set_node_outputs)(pfrt_graph* graph, uint32_t id, const pfrt_string* names, size_t count);
  /* NOT_FOUND when the node has no such attribute. */
  pfrt_status* (*remove_attr)(pfrt_graph* graph, uint32_t id, pfrt_string name);

  /* Nodes (but for |except|; PFRT_NO_NODE = none), their bodies and the graph's outputs that use |from| use |to|. Where
   * a node makes both, an output keeps its name: the two values swap theirs. So to put a node behind a value, add it
   * with that value as input, then replace the uses of the value by the node's output, except in the node.
   * VALIDATION when a body defines a value of its own under the name that it would have to capture. */
  pfrt_status* (*replace_uses)(pfrt_graph* graph, pfrt_string from, pfrt_string to, uint32_t except);
  /* The value has another name wherever it is used, bodies included. VALIDATION when |to| is in use here, or a body
   * that captures the value has a |to| of its own. */
  pfrt_status* (*rename_value)(pfrt_graph* graph, pfrt_string from, pfrt_string to);

  /* By index, as input_at and output_at count. replace keeps the place; remove closes the gap. */
  pfrt_status* (*replace_input)(pfrt_graph* graph, size_t index, const pfrt_value_info* info);
  /* Nodes that take it are left as they are: validate says which. */
  pfrt_status* (*remove_input)(pfrt_graph* graph, size_t index);
  /* Keeps the place. */
  pfrt_status* (*replace_output)(pfrt_graph* graph, size_t index, const pfrt_value_info* info);
  /* What makes the value stays. */
  pfrt_status* (*remove_output)(pfrt_graph* graph, size_t index);

  /* Initializers by name; add_initializer and add_initializer_value replace one of the same name. */
  pfrt_status* (*initializer)(const pfrt_graph* graph, pfrt_string name, pfrt_value** out_value);
  /* NOT_FOUND when there is none of that name. */
  pfrt_status* (*remove_initializer)(pfrt_graph* graph, pfrt_string name);
  /* The dense tensor with memory of the graph's own: copied first when a model, another graph or a retained value
   * shares it, or when it is mapped or borrowed. It may be written until the graph is cloned, made a model of, or the
   * value is given to any other call; ask again afterwards. UNSUPPORTED for sparse tensors. */
  pfrt_status* (*initializer_for_write)(pfrt_graph* graph, pfrt_string name, pfrt_value** out_value);

  /* Everything that is wrong, in one list: what validate finds, operators that |env| (NULL: the library alone) does not
   * know, their versions, arity and attribute types, and types and shapes that contradict each other. VALIDATION with
   * one child a fault, each with a code of its own. */
  pfrt_status* (*validate_all)(pfrt_graph* graph, pfrt_env* env);
  /* The part that computes |outputs| from |inputs|, as a graph of its own with the same ids that runs alone; constants are
   * shared. Inputs may be any values: nodes that make them are not there. Inputs of |graph| that the part needs besides
   * are its inputs too, after them. Types are filled in as far as infer_shapes would. NOT_FOUND for names that there are
   * not, INVALID_ARGUMENT for a value named twice or an input that nothing in between reads, UNSUPPORTED for a body. */
  pfrt_status* (*extract)(const pfrt_graph* graph, const pfrt_string* inputs, size_t input_count,
                          const pfrt_string* outputs, size_t output_count, PFRT_OWN pfrt_graph** out_graph);
} pfrt_graph_api;

/* ------------------------------------------------------------------ models */
/* Whether a model's bytes are copied or borrowed. */
typedef uint32_t pfrt_memory_mode;
enum { PFRT_MEMORY_MODE_UNSET = 0, PFRT_COPY = 1, PFRT_BORROW = 2, PFRT_MEMORY_MODE_FORCE32 = 0x7fffffff };

/* A model's bytes as the caller can read them: from an archive, a network, after decryption. Every callback is called
 * on the loading thread, during load_reader alone. */
typedef struct pfrt_reader {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t size;    /* of the whole */
  pfrt_string name; /* for messages, and its extension for the format; may be empty */
  /* Puts up to |bytes| (at least 1) bytes from |offset| on at |out| and their number at |out_read|. 0 says that there
   * are no more: short of |size| that is DATA_LOSS. A code other than 0 ends the load with that code. */
  pfrt_code (*read_at)(void* user, uint64_t offset, uint64_t bytes, void* out, uint64_t* out_read);
  /* May be NULL: the model then has no files beside it. Fills |out_reader| (struct_size set by the library) for the
   * bytes of the file that the model calls |location|, or gives NOT_FOUND. */
  pfrt_code (*open_beside)(void* user, pfrt_string location, struct pfrt_reader* out_reader);
  /* May be NULL. Called once when the library needs the reader no more, also on failure. */
  void (*release)(void* user);
  void* user;
} pfrt_reader;

/* What a model says of itself. Strings live as long as the model. */
typedef struct pfrt_model_info {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string graph_name, description; /* of the graph; empty where the file has none */
  /* What wrote the file, its version, and the model's own domain. */
  pfrt_string producer_name, producer_version, domain;
  int64_t model_version; /* 0 where the file has none */
  pfrt_string format; /* onnx, pfm, graph */
  /* Of the graph and the bodies of its nodes; parameters are the elements of initializers and of what Constant nodes
   * hold. */
  uint64_t node_count, initializer_count, parameter_count, parameter_bytes;
  double import_ms; /* how long the import took, in milliseconds */
} pfrt_model_info;

/* Models: loading, saving, and what they hold. Immutable, hence safe on any thread. */
typedef struct pfrt_model_api {
  uint32_t struct_size;
  uint32_t abi;
  /* The format is found by extension, then by content. |options| of kind LOAD or NULL. The file is mapped (environment
   * option guard_mapped_files): once it was written to, runs are DATA_LOSS. Renaming another over it does no harm. */
  pfrt_status* (*load_file)(pfrt_env* env, pfrt_string path, const pfrt_options* options, PFRT_OWN pfrt_model** out_model);
  /* COPY needs |data| during the call only. BORROW keeps views into it until |release| is called (also on failure). */
  pfrt_status* (*load_memory)(pfrt_env* env, const void* data, size_t size, pfrt_memory_mode mode,
                              pfrt_release_fn release, void* user, const pfrt_options* options,
                              PFRT_OWN pfrt_model** out_model);
  /* Copies the graph (constants are shared), which stays usable and editable. */
  pfrt_status* (*from_graph)(pfrt_env* env, const pfrt_graph* graph, const pfrt_options* options,
                             PFRT_OWN pfrt_model** out_model);
  void (*retain)(pfrt_model* model);
  void (*release)(PFRT_OWN pfrt_model* model);
  /* Writes the model as loaded; the format is that of the extension. The old file stays until the new one is whole. */
  pfrt_status* (*save)(pfrt_env* env, const pfrt_model* model, pfrt_string path);
  /* An editable copy. */
  pfrt_status* (*graph)(const pfrt_model* model, PFRT_OWN pfrt_graph** out_graph);
  /* Fills |out_info|, whose struct_size is set. */
  pfrt_status* (*info)(const pfrt_model* model, pfrt_model_info* out_info);
  size_t (*metadata_count)(const pfrt_model* model);
  pfrt_status* (*metadata_at)(const pfrt_model* model, size_t index, pfrt_key_value* out_entry);
  size_t (*warning_count)(const pfrt_model* model);
  pfrt_status* (*warning_at)(const pfrt_model* model, size_t index, pfrt_string* out_warning);

  /* Reads all bytes once, in order and in pieces of at most 4 MiB, into memory that the model's constants are views
   * of. |reader|'s release is called before this returns. */
  pfrt_status* (*load_reader)(pfrt_env* env, const pfrt_reader* reader, const pfrt_options* options,
                              PFRT_OWN pfrt_model** out_model);
  /* save with |options| of kind LOAD or NULL, whose cancel and progress count. A cancelled save leaves the old file. */
  pfrt_status* (*save_with)(pfrt_env* env, const pfrt_model* model, pfrt_string path, const pfrt_options* options);
} pfrt_model_api;

/* ------------------------------------------------------------------ sessions */
/* Inputs of one run, by name. */
typedef struct pfrt_sample {
  uint32_t struct_size;
  uint32_t reserved;
  const pfrt_string* names; /* [count], the session's input names */
  pfrt_value* const* values; /* [count], in the order of |names| */
  size_t count; /* length of both */
} pfrt_sample;

/* What a session is made of. */
typedef struct pfrt_session_desc {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_model* model; /* retained by the session */
  const pfrt_options* options;      /* kind SESSION, or NULL */
  const pfrt_string* extra_outputs; /* inner values to append to the model's outputs, by name */
  size_t extra_output_count;
  /* What precision "auto" is measured on, in place of inputs made up, and "verify" besides those. All required inputs
   * each. Retained while the session lives. */
  const pfrt_sample* samples; /* [sample_count], as far apart as the struct_size of the first says */
  size_t sample_count;
} pfrt_session_desc;

/* Of an input or output of a run. */
typedef uint64_t pfrt_io_flags;
enum {
  PFRT_IO_SKIP = 1,     /* an output that is not wanted */
  /* An output whose memory may be an input's, just that: the cache before and after a step. The result is what memory of
   * its own would have; where the output can be made in place nothing is copied, and a run that fails has spoilt it. */
  PFRT_IO_IN_PLACE = 4,
  PFRT_IO_ON_DEVICE = 2 /* an output that the run allocates stays in the memory of the device that makes it; without
                           the flag, and where no device made it, it comes to host memory */
};

/* One input or output of a run.
 * Input: |value|, or a view; dtype 0 without a value = not fed (allowed where the input has an initializer).
 * Output: |tensor.data| NULL = allocate, |value| receives a reference; otherwise the result is written there (its
 * bytes must be the result's exactly) and |value| stays NULL. An output |value| given by the caller is written into.
 * A |value| may live on a device, of this session or of another: where provider and device are the same nothing is
 * copied. */
typedef struct pfrt_io {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_io_flags flags; /* PFRT_IO_SKIP and the like, or 0 */
  pfrt_tensor tensor; /* the view, where there is no |value| */
  pfrt_value* value;
} pfrt_io;

/* Whether a provider of a session is in use. */
typedef uint32_t pfrt_provider_condition;
enum {
  PFRT_PROVIDER_CONDITION_UNSET = 0,
  PFRT_PROVIDER_ACTIVE = 1,    /* in use, and has never failed */
  PFRT_PROVIDER_RECOVERED = 2, /* in use again after a failure: memory was released, or its device opened again */
  PFRT_PROVIDER_FAILING = 3,   /* its last use failed and nobody took over: the next run asks it again */
  PFRT_PROVIDER_FAILED = 4,    /* not used any more: what it would have run goes to those after it */
  PFRT_PROVIDER_CONDITION_FORCE32 = 0x7fffffff
};

/* What became of a provider of a session's list. */
typedef struct pfrt_provider_state {
  uint32_t struct_size;
  pfrt_provider_condition condition; /* whether it is in use */
  pfrt_string name; /* as the session's options have it */
  pfrt_string reason; /* of the last failure: what was attempted and what the provider said; empty = none */
  pfrt_code code;     /* of the last failure */
  uint32_t failures;  /* so far */
} pfrt_provider_state;

/* Called once for a run_async that returned NULL, on a thread of the runtime (or of the executor), also when the run
 * failed or was stopped. |status| NULL = success; it and every |value| in |outputs| (the array given to run_async, copied)
 * belong to the callee, which may release anything here, the session and environment included. The next runs wait while
 * it works. */
typedef void (*pfrt_run_done_fn)(void* user, PFRT_OWN pfrt_status* status, pfrt_io* outputs, size_t output_count);

/* What a session's runs have done so far; grows while they go on. */
typedef struct pfrt_session_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t runs, failures; /* that succeeded, and that did not */
  /* Plans that runs made for dimensions, or contents that decide some, which they had not seen or had forgotten; one for
   * each part of the graph whose dimensions are known before it runs. */
  uint64_t plans;
  uint64_t planning_ns; /* nanoseconds that this took */
  uint64_t in_parts;    /* of |runs|: those that were done in parts for want of memory; session option "session.halve_batch" */
} pfrt_session_statistics;

/* Bytes of host memory that a session takes. */
typedef struct pfrt_memory_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t weights; /* the model's constants that are in memory; mapped files are not counted. Its sessions share them */
  uint64_t packed;  /* constants in providers' own layouts, which sessions share too */
  uint64_t in_use;  /* blocks of runs under way */
  uint64_t idle;    /* blocks that wait for the next run */
  uint64_t peak;    /* of blocks, since the session was made or planned anew */
} pfrt_memory_report;

/* Where a session stands: of several runs at once, that in most trouble. */
typedef uint32_t pfrt_session_phase;
enum {
  PFRT_PHASE_UNSET = 0,
  PFRT_PHASE_INITIALIZING = 1, /* create has not returned */
  PFRT_PHASE_READY = 2,
  PFRT_PHASE_EXECUTING = 3,       /* a run is at work in a block of the session's */
  PFRT_PHASE_INIT_ERROR = 4,      /* create failed: there is no handle that would say so, but a line of the log */
  PFRT_PHASE_RUNTIME_ERROR = 5,   /* a run failed */
  PFRT_PHASE_MEMORY_ERROR = 6,    /* a run is out of memory */
  PFRT_PHASE_DEVICE_ERROR = 7,    /* a device is lost */
  PFRT_PHASE_RECOVERING = 8,      /* the graph is being planned without a provider */
  PFRT_PHASE_MEMORY_RECOVERY = 9, /* caches and idle memory are being released */
  PFRT_PHASE_DEVICE_RECOVERY = 10, /* a device is being opened again */
  PFRT_PHASE_FATAL_ERROR = 11,     /* the last run failed, and nothing helped; the next that succeeds ends it */
  PFRT_PHASE_CLEANUP = 12,         /* the last reference goes: a line of the log */
  PFRT_PHASE_FORCE32 = 0x7fffffff
};

/* Sessions: safe to use from many threads at once. */
typedef struct pfrt_session_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Plans the model: optimises its graph and has providers compile their parts. NOT_FOUND for a provider that there is
   * not, UNSUPPORTED_OPERATOR with one child a node that nobody runs, CANCELLED and DEADLINE by |desc->options|.
   *
   * Where the processor has AMX, the CPU provider asks the system for its tiles, for the process and for good. From then
   * on the system refuses a sigaltstack that a tile's registers do not fit in as well, in the host's threads too: of
   * fewer bytes than getauxval(AT_MINSIGSTKSZ), about 11,000. PFRT_ISA=avx512_bf16 in the environment leaves tiles alone. */
  pfrt_status* (*create)(pfrt_env* env, const pfrt_session_desc* desc, PFRT_OWN pfrt_session** out_session);
  void (*retain)(pfrt_session* session);
  void (*release)(PFRT_OWN pfrt_session* session);
  /* Inputs: those that must be fed, then those with initializers. Outputs: the model's, then the extra ones. */
  size_t (*input_count)(const pfrt_session* session);
  pfrt_status* (*input_at)(const pfrt_session* session, size_t index, pfrt_value_info* out_info);
  size_t (*output_count)(const pfrt_session* session);
  pfrt_status* (*output_at)(const pfrt_session* session, size_t index, pfrt_value_info* out_info);
  /* Where an input or output of that name stands in session order; NOT_FOUND names those there are. */
  pfrt_status* (*input_index)(const pfrt_session* session, pfrt_string name, size_t* out_index);
  /* As input_index. */
  pfrt_status* (*output_index)(const pfrt_session* session, pfrt_string name, size_t* out_index);
  size_t (*provider_count)(const pfrt_session* session); /* opened when the session was made */
  pfrt_string (*provider_at)(const pfrt_session* session, size_t index);
  /* Both arrays are in session order; |options| of kind RUN or NULL. Safe from many threads at once. On failure no
   * output value is returned; memory given for outputs may have been written. */
  pfrt_status* (*run)(pfrt_session* session, const pfrt_io* inputs, size_t input_count, pfrt_io* outputs,
                      size_t output_count, const pfrt_options* options);
  /* As run, by name: |inputs| and |outputs| are in the order of their names, each name once. Inputs that are not named are
   * not fed, outputs that are not named are not wanted. INPUT names what is unknown, missing or repeated. */
  pfrt_status* (*run_named)(pfrt_session* session, const pfrt_string* input_names, const pfrt_io* inputs,
                            size_t input_count, const pfrt_string* output_names, pfrt_io* outputs, size_t output_count,
                            const pfrt_options* options);
  /* What runs where and why; with times of the last profiled run where there was one. */
  pfrt_status* (*explain)(pfrt_session* session, PFRT_OWN pfrt_report** out_report);
  pfrt_model* (*model)(const pfrt_session* session); /* borrowed */
  /* Every provider the session was asked to use, in order of preference, also those that did not open. A state is
   * what it is now; runs on other threads may change it. The strings live as long as the session. */
  size_t (*provider_state_count)(const pfrt_session* session);
  /* State |index|, from 0 on, of provider_state_count. INVALID_ARGUMENT beyond. */
  pfrt_status* (*provider_state)(const pfrt_session* session, size_t index, pfrt_provider_state* out_state);
  /* As run, but returns at once and calls |done| when the run is over. The session, |options| and input and
   * output values are retained until then; memory behind views has to stay. The arrays themselves may go. Options are
   * read now (a deadline counts from now), cancelling works until the end. An error returned here means that nothing
   * was started: |done| is not called; BUSY when as many wait as the environment's option "async_queue" allows. A few
   * threads serve all runs of the process, by the option "priority" and then in the order of the calls. */
  pfrt_status* (*run_async)(pfrt_session* session, const pfrt_io* inputs, size_t input_count, const pfrt_io* outputs,
                            size_t output_count, pfrt_options* options, pfrt_run_done_fn done, void* user);
  /* Takes |provider|, its name or word, which was set aside after a failure, into use again: opens its device and plans
   * the graph anew, while runs go on as before. Nothing is done where it is in use. NOT_FOUND when the session was made
   * without it; what opening and planning say, and it stays aside. */
  pfrt_status* (*readmit)(pfrt_session* session, pfrt_string provider);
  /* Any thread. */
  pfrt_status* (*statistics)(const pfrt_session* session, pfrt_session_statistics* out_statistics);
  /* Writes the profile that the option "enable_profiling" opened, to a file by the option "profile_file_prefix", and
   * closes it: later runs are not recorded. |out_path| is the file's, and lives as long as the session; the same again
   * when it is called again, and empty where the option is off. The file is an object whose "traceEvents" are of the
   * Trace Event format: every run with its tag, its steps and what it waited for, how the model was loaded and the session
   * made, memory and threads over time. On failure the profile stays open. Any thread; runs may be under way, and what
   * they have not done is missing. */
  pfrt_status* (*end_profiling)(pfrt_session* session, pfrt_string* out_path);
  /* When the profile began, in nanoseconds on CLOCK_MONOTONIC; 0 where there is none. Any thread. */
  uint64_t (*profiling_start_ns)(const pfrt_session* session);
  /* Gives back the session's idle blocks; plans stay, so that the next run takes memory and is otherwise as fast.
   * |out_bytes| (may be NULL) is how much this was. */
  pfrt_status* (*trim)(pfrt_session* session, uint64_t* out_bytes);
  /* What the session takes. |row| (may be NULL) is called on this thread with each signature that plans are kept for, as
   * "x[8,3,224,224]", and the bytes of the block that its runs work in; the string lives for the call. */
  pfrt_status* (*memory_report)(const pfrt_session* session, pfrt_memory_report* out_report,
                                void (*row)(void* user, pfrt_string signature, uint64_t bytes), void* user);
  /* Where the session stands. |out_name| (may be NULL): the same in words, as "Ready"; it lives as long as the library. */
  pfrt_status* (*phase)(const pfrt_session* session, pfrt_session_phase* out_phase, pfrt_string* out_name);
} pfrt_session_api;

/* ------------------------------------------------------------------ states */
/* How a value changes its dimensions from run to run. */
typedef uint32_t pfrt_state_growth;
enum {
  PFRT_STATE_BY_NAMES = 0, /* it grows along the axis whose dimension has another name in the output, if there is one */
  PFRT_STATE_REPLACED = 1, /* not at all */
  PFRT_STATE_GROWS = 2,    /* it grows along |axis| */
  PFRT_STATE_GROWTH_FORCE32 = 0x7fffffff
};

/* An output of a run and the input that it is for the next one. */
typedef struct pfrt_state_pair {
  uint32_t struct_size;
  pfrt_state_growth growth; /* how its dimensions change */
  uint32_t axis; /* for PFRT_STATE_GROWS */
  uint32_t reserved;
  pfrt_string input;  /* names a session's input */
  pfrt_string output; /* names the output that is its value in the next run */
} pfrt_state_pair;

/* States: key-value caches, recurrent layers. A run whose options have a state takes its inputs from there, and once it
 * has succeeded the state has what it left; a run that fails changes nothing. Values stay in the memory that runs leave
 * them in, a device's too, and cross to the host only when they are asked for. Runs with different states may be under way
 * at once on one session; a second run with a state that one has is BUSY, and so is changing it meanwhile.
 * Safe from any thread. */
typedef struct pfrt_state_api {
  uint32_t struct_size;
  uint32_t abi;
  /* |pairs| are as far apart as the struct_size of the first says. |pair_count| 0: the names tell, as "past_0" and
   * "present_0", "past_key_values.0.key" and "present.0.key", "h" and "h_out" or "hN", "in_h" and "out_h" do. Until it is
   * set or a run has left one, a value is of zeros, with nothing along the axis that it grows along; other dimensions are
   * those that inputs of the run have by the same name, else 1. The session is kept. NOT_FOUND for names that it does
   * not have, INVALID_ARGUMENT for pairs that do not fit each other. */
  pfrt_status* (*create)(pfrt_session* session, const pfrt_state_pair* pairs, size_t pair_count,
                         PFRT_OWN pfrt_state** out_state);
  void (*retain)(pfrt_state* state);
  void (*release)(PFRT_OWN pfrt_state* state);
  /* The inputs that it has for runs. The name lives as long as the session. */
  size_t (*input_count)(const pfrt_state* state);
  /* Input |index|, from 0 on, of input_count. */
  pfrt_status* (*input_at)(const pfrt_state* state, size_t index, pfrt_string* out_name);
  /* A state of its own with the same values, which takes no memory until runs make new ones. */
  pfrt_status* (*clone)(const pfrt_state* state, PFRT_OWN pfrt_state** out_state);
  /* What there is along the axes that values grow along, the most of them; 0 = nothing yet, or none grows. */
  int64_t (*length)(const pfrt_state* state);
  /* Leaves the first |length| along these axes. 0 leaves the state as it was made, values that are set before too.
   * UNSUPPORTED for more than 0 where a value is replaced by each run. */
  pfrt_status* (*truncate)(pfrt_state* state, int64_t length);
  /* A copy, in host memory, of the value that input |input| will have; NULL where there is none yet. */
  pfrt_status* (*get)(const pfrt_state* state, pfrt_string input, PFRT_OWN pfrt_value** out_value);
  /* The value that input |input| will have; |value| is retained and must not be written any more. */
  pfrt_status* (*set)(pfrt_state* state, pfrt_string input, pfrt_value* value);
  /* Writes a .pfm file of the values, which load reads into a state of the same pairs. The file is there whole or not at
   * all, and its checksums are looked at: DATA_LOSS. Tensors only: UNSUPPORTED. */
  pfrt_status* (*save)(const pfrt_state* state, pfrt_string path);
  /* Values that the file does not have are as in a new state. On failure nothing changes. */
  pfrt_status* (*load)(pfrt_state* state, pfrt_string path);
} pfrt_state_api;

/* ------------------------------------------------------------------ reports */
/* A step of a session's plan. Strings live as long as the report. */
typedef struct pfrt_report_row {
  uint32_t struct_size;
  uint32_t index; /* its place in the plan, from 0 on */
  pfrt_string nodes;    /* origin nodes, comma-separated */
  pfrt_string ops;      /* their operators */
  pfrt_string provider; /* or "host" */
  pfrt_string kernel; /* as the provider names it */
  pfrt_string reason;   /* why this provider */
  pfrt_string refused;  /* who refused it and why, or empty */
  uint64_t bytes, flops; /* read and written, and operations done, as the provider counts them */
  double estimated_ns; /* as the provider estimated it; 0 = not */
  double measured_ns;   /* 0 = not measured */
  double started_ns; /* where measured: since the first of the report's steps */
  uint32_t lane;     /* of the steps that ran at once with others, in execution mode "parallel": who ran it, from 0 on */
  uint32_t reserved;
  /* How its work is divided, where the session's option "tune" was on and the kernel has forms to choose from; else empty.
   * "NAME=NUMBER", separated by spaces: block sizes and the like as the kernel names them, then |gain|, the default's time
   * by that of the form that was chosen, and |measured|, how many forms were measured for this plan; 0 = it was known. */
  pfrt_string tuning;
} pfrt_report_row;

/* A figure that a device counted by itself in the last run of some steps. Strings live as long as the report. */
typedef struct pfrt_report_counter {
  uint32_t struct_size;
  uint32_t first_row; /* of the steps that it counts: |row_count| rows from this one on, which one provider runs */
  uint32_t row_count; /* 1 = one step */
  uint32_t reserved;
  pfrt_string provider; /* whose device it is */
  pfrt_string name;     /* as the provider names it: "cycles" */
  pfrt_string unit;     /* may be empty */
  double value;         /* any, also infinity and what is not a number */
} pfrt_report_counter;

/* What session->explain gave; immutable. */
typedef struct pfrt_report_api {
  uint32_t struct_size;
  uint32_t abi;
  void (*release)(PFRT_OWN pfrt_report* report);
  size_t (*row_count)(const pfrt_report* report);
  pfrt_status* (*row_at)(const pfrt_report* report, size_t index, pfrt_report_row* out_row);
  /* Sentences about the whole: level and passes, providers opened or not, memory. */
  size_t (*note_count)(const pfrt_report* report);
  pfrt_string (*note_at)(const pfrt_report* report, size_t index);
  /* Figures of devices that count by themselves, in the order of their first rows. */
  size_t (*counter_count)(const pfrt_report* report);
  pfrt_status* (*counter_at)(const pfrt_report* report, size_t index, pfrt_report_counter* out_counter);
} pfrt_report_api;

/* ------------------------------------------------------------------ optimisation */
/* Passes that rewrite a graph, in order, outside of any session: what sessions do by their optimisation level, to be
 * configured pass by pass and watched. Options of kind OPTIMIZER say which level, how often, and what each pass may
 * do ("constant_folding.max_tensor_bytes", "fusion.target_backend", ...: the schema has them all). */
typedef struct pfrt_optimizer pfrt_optimizer;
typedef struct pfrt_optimization pfrt_optimization; /* what a run has done */

/* What passes did, counted. */
typedef struct pfrt_pass_stats {
  uint32_t struct_size;
  uint32_t modified; /* non-zero when the graph is another than before */
  uint64_t nodes_removed; /* nodes of the graph before that are gone */
  uint64_t nodes_added; /* nodes that were not there before */
  uint64_t nodes_fused; /* patterns */
  uint64_t constants_folded; /* values computed beforehand */
  uint64_t initializers_removed; /* that nobody used */
} pfrt_pass_stats;

/* One pass over all its runs. */
typedef struct pfrt_pass_report {
  uint32_t struct_size;
  uint32_t runs; /* how often it ran */
  pfrt_string pass; /* its name */
  double milliseconds; /* of all runs */
  uint64_t nodes_before; /* of the first run */
  uint64_t nodes_after;  /* of the last */
  pfrt_pass_stats stats; /* of all runs */
} pfrt_pass_report;

/* Optimizers. Externally synchronised; results are immutable. */
typedef struct pfrt_optimizer_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Without passes. |options| of kind OPTIMIZER, copied; NULL = defaults. */
  pfrt_status* (*create)(pfrt_env* env, const pfrt_options* options, PFRT_OWN pfrt_optimizer** out_optimizer);
  void (*release)(PFRT_OWN pfrt_optimizer* optimizer);
  /* The built-in passes of the options' level. */
  pfrt_status* (*add_default_passes)(pfrt_optimizer* optimizer);
  /* A built-in pass, or one of a plug-in, at the end; one of the same name is replaced in place. |options| of kind
   * OPTIMIZER configure it; NULL = the optimizer's. NOT_FOUND lists the names there are. */
  pfrt_status* (*add_pass)(pfrt_optimizer* optimizer, pfrt_string name, const pfrt_options* options);
  /* custom.h; |pass->after| is not looked at. The graph it gets is the one being optimised. */
  pfrt_status* (*add_custom_pass)(pfrt_optimizer* optimizer, const struct pfrt_custom_pass* pass);
  size_t (*pass_count)(const pfrt_optimizer* optimizer);
  pfrt_string (*pass_at)(const pfrt_optimizer* optimizer, size_t index);

  /* Rewrites |graph| in place: |pass| alone whatever its level, or, when it is empty, each pass of the level that is
   * not skipped, once or |until_fixed_point| (as often as max_iterations allows). Built-in passes
   * work on the canonical form (the newest opset, attributes decoded, shapes inferred); afterwards the graph is written
   * in standard operators at the lowest opset that has them. Initializers that are inputs too are not taken for
   * constants. On failure the graph is as it was. Externally synchronised, as the graph is. */
  pfrt_status* (*run)(pfrt_optimizer* optimizer, pfrt_graph* graph, pfrt_string pass, uint32_t until_fixed_point,
                      PFRT_OWN pfrt_optimization** out_result);

  void (*release_result)(PFRT_OWN pfrt_optimization* result);
  /* Of all passes together. */
  pfrt_status* (*totals)(const pfrt_optimization* result, pfrt_pass_stats* out_stats);
  size_t (*report_count)(const pfrt_optimization* result);
  pfrt_status* (*report_at)(const pfrt_optimization* result, size_t index, pfrt_pass_report* out_report);
  /* Rewrites of that pass by the name of the rule, and how often each was done. */
  size_t (*rule_count)(const pfrt_optimization* result, size_t report);
  /* Rewrite |index|, from 0 on, of rule_count(result, report). INVALID_ARGUMENT beyond. */
  pfrt_status* (*rule_at)(const pfrt_optimization* result, size_t report, size_t index, pfrt_string* out_rule,
                          uint64_t* out_count);
  size_t (*warning_count)(const pfrt_optimization* result);
  pfrt_string (*warning_at)(const pfrt_optimization* result, size_t index);

  /* All rewrites of the built-in passes: pass, rule, lowest level word or "by name", what becomes of what in a line. */
  size_t (*known_rule_count)(void);
  /* Rewrite |index|, from 0 on, of known_rule_count. The strings live as long as the library. */
  pfrt_status* (*known_rule_at)(size_t index, pfrt_string* out_pass, pfrt_string* out_rule, pfrt_string* out_level,
                                pfrt_string* out_text);
} pfrt_optimizer_api;

/* Patterns of nodes, to be looked for in graphs. Externally synchronised. */
typedef struct pfrt_pattern pfrt_pattern;
typedef struct pfrt_matches pfrt_matches; /* keeps its graph */
/* In add_edge: whichever input takes it. */
#define PFRT_ANY_INPUT UINT32_MAX

/* Patterns, and where they were found. */
typedef struct pfrt_pattern_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Without nodes. */
  pfrt_status* (*create)(PFRT_OWN pfrt_pattern** out_pattern);
  void (*release)(PFRT_OWN pfrt_pattern* pattern);
  /* A node of operator |op| (empty = any) of |domain| ("" = ai.onnx); |name| is its name in the pattern. */
  pfrt_status* (*add_node)(pfrt_pattern* pattern, pfrt_string op, pfrt_string domain, pfrt_string name);
  /* Output |output| of |from| is input |input| (or PFRT_ANY_INPUT) of |to|. */
  pfrt_status* (*add_edge)(pfrt_pattern* pattern, pfrt_string from, uint32_t output, pfrt_string to, uint32_t input);
  /* The node from which the others are reached along edges; the last one added unless it is set. */
  pfrt_status* (*set_root)(pfrt_pattern* pattern, pfrt_string name);
  /* One match for each node that can be the root, producers first; they may share other nodes. */
  pfrt_status* (*find_all)(const pfrt_pattern* pattern, pfrt_graph* graph, PFRT_OWN pfrt_matches** out_matches);
  void (*release_matches)(PFRT_OWN pfrt_matches* matches);
  size_t (*match_count)(const pfrt_matches* matches);
  /* PFRT_NO_NODE once the node is removed. */
  pfrt_status* (*node)(const pfrt_matches* matches, size_t match, pfrt_string name, uint32_t* out_id);
  /* Whether nothing but one node of the match uses what the node makes, as the graph is now. */
  pfrt_status* (*is_single_consumer)(const pfrt_matches* matches, size_t match, pfrt_string name, uint32_t* out_yes);
} pfrt_pattern_api;

/* ---- the cache of compiled models ----
 * A folder of files that may be shared by threads and processes and can all be made again: what is torn, damaged, older
 * or another machine's is not used, and a line in the log says so. Loads and sessions use one by their option cache_dir
 * or the environment variable PFRT_CACHE_DIR; these functions look after it, and keep graphs of the client's in it.
 * Files are for this user alone; entries that others may write to are not used. */
/* An environment's cache in one folder. */
typedef struct pfrt_cache pfrt_cache;

/* Zero is as the comments say. */
typedef struct pfrt_cache_config {
  uint32_t struct_size;
  uint32_t copy;        /* 0 = entries are mapped, so that processes share them; else each reads a copy */
  pfrt_string folder;   /* made with the first entry; not empty */
  uint64_t max_bytes;   /* of all entries, of which those unused for longest go; 0 = no limit */
  uint64_t max_entries; /* likewise */
  int64_t ttl_s;        /* seconds after which an entry is not used any more; 0 = never */
} pfrt_cache_config;

/* Strings live for the call that hands this out. */
typedef struct pfrt_cache_entry {
  uint32_t struct_size;
  uint32_t valid; /* whole and not too old */
  pfrt_string key;  /* as key gives it, or put was given */
  pfrt_string kind; /* "compiled": what a session has made of a model; "graph": what put was given; "tuned": measurements */
  pfrt_string of;   /* the model's path, the graph's name, or how many measurements of which provider and machine */
  pfrt_string path; /* of the file */
  uint64_t bytes; /* of the file */
  int64_t created_ns, used_ns; /* since 1970; the last use to a second */
} pfrt_cache_entry;

/* Of an environment's cache in one folder, since it was first used. */
typedef struct pfrt_cache_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t hits, misses; /* a miss for each entry that was not there, too old or not usable */
  uint64_t stores, evictions; /* entries that were added, and that the limits took */
  uint64_t invalid; /* that were not usable */
} pfrt_cache_statistics;

/* Thread-safe. */
typedef struct pfrt_cache_api {
  uint32_t struct_size;
  uint32_t abi;
  /* The cache in |config|'s folder, with these limits from now on for loads and sessions of the environment that use
   * the folder. INVALID_ARGUMENT for a folder without a name. */
  pfrt_status* (*open)(pfrt_env* env, const pfrt_cache_config* config, PFRT_OWN pfrt_cache** out_cache);
  void (*retain)(pfrt_cache* cache);
  void (*release)(PFRT_OWN pfrt_cache* cache);
  /* The same, for loads and sessions of the environment that do not say cache_dir; NULL: that of PFRT_CACHE_DIR again. */
  pfrt_status* (*set_default)(pfrt_env* env, const pfrt_cache_config* config);
  /* The key of the entry that a session of the model at |path| with |options| (of kind SESSION, or NULL) has in any cache:
   * another one for other bytes, options, providers or processors. Calls |fn| once with it. Fails as making the session
   * does, and with UNSUPPORTED, saying why, where such a session is not kept. */
  pfrt_status* (*key)(pfrt_env* env, pfrt_string path, const pfrt_options* options,
                      void (*fn)(void* user, pfrt_string key), void* user);
  /* Whether there is a usable entry of that key, of any kind. */
  pfrt_status* (*has)(pfrt_cache* cache, pfrt_string key, uint32_t* out_has);
  /* The graph that put was given, or the model's that a session has compiled, where its file is as it was; NULL where
   * there is none. */
  pfrt_status* (*get)(pfrt_cache* cache, pfrt_string key, PFRT_OWN pfrt_graph** out_graph);
  /* Keeps a copy with all its constants, in place of one of that key. IO where it cannot be written. */
  pfrt_status* (*put)(pfrt_cache* cache, pfrt_string key, const pfrt_graph* graph);
  /* |out_removed|: whether there was one; may be NULL. */
  pfrt_status* (*remove)(pfrt_cache* cache, pfrt_string key, uint32_t* out_removed);
  /* All entries; |out_removed|: how many there were; may be NULL. */
  pfrt_status* (*clear)(pfrt_cache* cache, uint64_t* out_removed);
  /* What is beyond the limits or too old goes, as it does when an entry is added. */
  pfrt_status* (*evict)(pfrt_cache* cache, uint64_t* out_removed);
  /* Calls |fn| for each entry, those used last first. |check|: 0 = heads are looked at; else files are read as a whole. */
  pfrt_status* (*list)(pfrt_cache* cache, uint32_t check, void (*fn)(void* user, const pfrt_cache_entry* entry),
                       void* user);
  /* Any thread. */
  pfrt_status* (*statistics)(pfrt_cache* cache, pfrt_cache_statistics* out_statistics);
} pfrt_cache_api;

/* ------------------------------------------------------------------ memory */
/* Memory for many blocks of similar sizes: freed blocks of the size classes wait for the next of their class; larger ones
 * are joined with their free neighbours, and the smallest that fits is taken. */
typedef struct pfrt_memory_pool pfrt_memory_pool;

/* What a pool is not to do. */
enum {
  PFRT_POOL_ONE_THREAD = 1, /* externally synchronised */
  PFRT_POOL_NO_STATS = 2,   /* pool_stats is zero */
  PFRT_POOL_NO_GROWTH = 4   /* nothing beyond initial_pool_size */
};

/* How a pool works. All sizes are bytes. */
typedef struct pfrt_pool_config {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t flags; /* PFRT_POOL_ONE_THREAD and the like, or 0 */
  const uint64_t* size_classes; /* [size_class_count], in any order; none = powers of two from 64 to 4 Mi */
  size_t size_class_count;
  uint64_t max_blocks_per_class; /* that wait; 0 = 64 */
  uint64_t alignment;         /* of every block, a power of two up to 2 Mi; 0 = 64 */
  uint64_t memory_limit;      /* that the pool may hold, what waits included; 0 = none */
  uint64_t initial_pool_size; /* taken when the pool is made */
} pfrt_pool_config;

/* What a pool has done. Sizes are bytes as they were asked for. */
typedef struct pfrt_pool_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t total_allocated, total_freed; /* of all calls together */
  uint64_t num_allocations, num_frees; /* how often */
  uint64_t pool_hits, pool_misses; /* allocations from what the pool had, and with new memory */
  uint64_t current_usage, peak_usage; /* in blocks that were not deallocated, now and at most */
} pfrt_pool_stats;

/* Pools of memory. Safe from any thread, but for pools that are to be of one. */
typedef struct pfrt_memory_api {
  uint32_t struct_size;
  uint32_t abi;
  /* |config| NULL = defaults. |base| (NULL = the system) gives the pool its memory; it is copied, and released as with
   * env->set_allocator. What is not given back goes with the last reference. INVALID_ARGUMENT names the field. */
  pfrt_status* (*create_pool)(const pfrt_pool_config* config, const pfrt_allocator* base,
                              PFRT_OWN pfrt_memory_pool** out_pool);
  /* Adds a reference. */
  void (*retain_pool)(pfrt_memory_pool* pool);
  /* Drops one; NULL is ignored. */
  void (*release_pool)(PFRT_OWN pfrt_memory_pool* pool);
  /* |bytes|, whose contents are undefined; |alignment| 0 = the pool's. OUT_OF_MEMORY says whether the limit is reached. */
  pfrt_status* (*allocate)(pfrt_memory_pool* pool, uint64_t bytes, uint64_t alignment, void** out_data);
  /* NULL is ignored. NOT_FOUND: not of this pool; INVALID_ARGUMENT: freed already, or inside a block. */
  pfrt_status* (*deallocate)(pfrt_memory_pool* pool, void* data);
  /* Keeps contents, and the address where there is room. |data| NULL = allocate; on failure |data| stays as it is. */
  pfrt_status* (*reallocate)(pfrt_memory_pool* pool, void* data, uint64_t bytes, void** out_data);
  /* Frees every block. UNSUPPORTED for the global pool, whose blocks runs have. */
  pfrt_status* (*reset)(pfrt_memory_pool* pool);
  /* Has |bytes| ready in one piece. */
  pfrt_status* (*reserve)(pfrt_memory_pool* pool, uint64_t bytes);
  /* Gives back what no block lies in; |out_bytes| (may be NULL) is how much this was. */
  pfrt_status* (*trim)(pfrt_memory_pool* pool, uint64_t* out_bytes);
  /* All zero for a pool without statistics. */
  pfrt_status* (*pool_stats)(const pfrt_memory_pool* pool, pfrt_pool_stats* out_stats);
  /* Blocks in use go on to count in current_usage. */
  pfrt_status* (*reset_stats)(pfrt_memory_pool* pool);
  /* From now on (NULL: no longer), tensors of value->create_tensor and of runs, and the blocks that runs work in, come from
   * a new pool of the process, in every environment that has no allocator of its own; constants of models and sessions
   * do not. What would take it beyond its limit fails with OUT_OF_MEMORY. Memory taken before goes back where it came
   * from. INVALID_ARGUMENT for one of one thread. */
  pfrt_status* (*set_global_pool)(const pfrt_pool_config* config);
  /* The pool of set_global_pool, else one of defaults, which only the caller takes from. Its statistics count also the
   * runs' memory outside of it: each tensor is a miss there, a block that a run has from one before it is a hit, and idle
   * blocks are in use. */
  pfrt_status* (*global_pool)(PFRT_OWN pfrt_memory_pool** out_pool);
} pfrt_memory_api;

/* ------------------------------------------------------------------ the table */
/* All areas. Lives as long as the library. */
typedef struct pfrt_api {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_status_api* status; /* errors */
  const pfrt_options_api* options; /* of environments, loads, sessions, runs and optimizers */
  const pfrt_env_api* env; /* plug-ins, providers, threads */
  const pfrt_value_api* value; /* tensors and other values */
  const pfrt_graph_api* graph; /* building and editing */
  const pfrt_model_api* model; /* loading and saving */
  const pfrt_session_api* session; /* running */
  const pfrt_report_api* report; /* what explain gives */
  const pfrt_optimizer_api* optimizer; /* passes outside of sessions */
  const pfrt_pattern_api* pattern; /* looking for nodes */
  const pfrt_state_api* state; /* what runs leave for the next */
  const pfrt_cache_api* cache; /* compiled models, kept in files */
  const pfrt_memory_api* memory; /* pools */
} pfrt_api;

/* What pfrt_get_api says of the library. Strings live as long as it. */
typedef struct pfrt_abi_info {
  uint32_t struct_size;
  uint32_t abi;       /* what this library implements */
  pfrt_string version; /* "0.1.0" */
  pfrt_string message; /* why NULL was returned, or empty */
} pfrt_abi_info;

/* The only exported symbol. |abi_version| is PFRT_ABI_VERSION as the caller was compiled. Returns NULL on another
 * major version, or a newer minor; |out_info| (may be NULL, its struct_size set by the caller) says why. The table
 * lives as long as the library. */
PFRT_EXPORT const pfrt_api* pfrt_get_api(uint32_t abi_version, pfrt_abi_info* out_info);

#ifdef __cplusplus
}
#endif
#endif
