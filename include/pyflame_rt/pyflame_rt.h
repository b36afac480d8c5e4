/* SPDX-License-Identifier: Apache-2.0
 *
 * The client ABI: one exported function hands out a table of areas, each a table of functions under one noun.
 *
 * Rules (README.md beside this file has them at length):
 *  - Handles are opaque and reference-counted: create gives one reference; retain and release add and drop one.
 *    release(NULL) is a no-op. Accessors borrow: what they return lives as long as the handle they were asked on.
 *  - Functions that can fail return pfrt_status*; NULL means success. Out-parameters come last, are written on
 *    success and set to NULL (or zero) on failure. Arguments are borrowed unless marked PFRT_OWN.
 *  - Every struct starts with struct_size, set by whoever allocates it; zero in any other field means "unset". Without
 *    struct_size a struct is INVALID_ARGUMENT. What a library does not know in one (bytes behind its own struct that are
 *    not zero, flags, kinds, reserved words) is UNSUPPORTED. Of an out-parameter only struct_size is read.
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
typedef struct pfrt_state pfrt_state;     /* values that one run leaves for the next */
typedef struct pfrt_service pfrt_service; /* a running service of a plug-in */
typedef struct pfrt_batcher pfrt_batcher; /* a queue of requests that share runs of a session */
typedef struct pfrt_streams pfrt_streams; /* queues of runs of a session, each with a thread */

/* Called when borrowed memory is no longer needed. */
typedef void (*pfrt_release_fn)(void* user, void* data);

/* ------------------------------------------------------------------ status */
/* Reading of a status. Every function takes NULL, which is success. */
typedef struct pfrt_status_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Code of a status; OK for NULL. */
  pfrt_code (*code)(const pfrt_status* status);
  /* Says what was attempted, on what, what was found and the nearest fix. Lives as long as the
   * status. */
  pfrt_string (*message)(const pfrt_status* status);
  size_t (*child_count)(const pfrt_status* status);
  /* A child, borrowed; NULL when |index| is out of range. */
  const pfrt_status* (*child)(const pfrt_status* status, size_t index);
  void (*release)(PFRT_OWN pfrt_status* status);
  /* The fixed text of a code ("shape mismatch"); "unknown code" for one this library does not know. */
  pfrt_string (*code_text)(pfrt_code code);
} pfrt_status_api;

/* ------------------------------------------------------------------ options */
/* The use of an options handle. */
typedef uint32_t pfrt_options_kind;
enum {
  PFRT_OPTIONS_UNSET = 0,
  PFRT_OPTIONS_ENV = 1,
  PFRT_OPTIONS_LOAD = 2,
  PFRT_OPTIONS_SESSION = 3,
  PFRT_OPTIONS_OPTIMIZER = 4,
  PFRT_OPTIONS_ASK = 5, /* for env->ask, and calls that start, check or ask a service */
  PFRT_OPTIONS_BATCHER = 6,
  PFRT_OPTIONS_STREAMS = 7,
  PFRT_OPTIONS_FORCE32 = 0x7fffffff
};

/* Type of an option's value. */
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

/* An option of a kind's schema. Strings live as long as the library. */
typedef struct pfrt_option_info {
  uint32_t struct_size;
  pfrt_option_type type; /* type of its value */
  pfrt_string key; /* the key that the setters take */
  pfrt_string default_value; /* as text */
  pfrt_string choices;       /* "none basic extended all", or empty */
  pfrt_string doc; /* A sentence without a full stop */
} pfrt_option_info;

/* Hears of the progress of long work: |fraction| from 0 to 1 never falls within one call and is
 * 1 at the end of one that succeeds; |stage| says what is being done ("read", "import", "check",
 * "infer shapes", "write"; of a session "open providers", "optimise", "choose precisions",
 * "compile"). Called on the thread that does the work, between its steps. It may cancel the
 * options it was set on; it must not throw, release them, or use the result in the making. */
typedef void (*pfrt_progress_fn)(void* user, double fraction, pfrt_string stage);

/* Named weights of a file, and what else it says. Borrowed for the call that is given them; values may be retained. */
typedef struct pfrt_weights {
  uint32_t struct_size;
  uint32_t reserved;
  const pfrt_string* names;    /* [count], each once */
  pfrt_value* const* values;   /* [count], tensors, in the order of |names| */
  size_t count;                /* length of both arrays */
  const pfrt_key_value* meta;  /* [meta_count], what is no tensor: the epoch that a checkpoint was written in */
  size_t meta_count;           /* length of |meta| */
} pfrt_weights;

/* Arguments of a definer; valid during its call. */
typedef struct pfrt_definition {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  pfrt_graph* graph; /* the model's, to be filled. A handle that is retained refuses every edit once the load is over */
  const pfrt_weights* weights; /* add_initializer_value puts one into the graph without a copy */
  /* Keeps |message| for the load's error, and returns |code|. */
  pfrt_code (*fail)(const struct pfrt_definition* definition, pfrt_code code, pfrt_string message);
} pfrt_definition;

/* Builds the graph of a file that has weights alone. A code other than 0 ends the load with that code. Called on the
 * loading thread, during the load only. Must not throw. */
typedef pfrt_code (*pfrt_define_fn)(void* user, const pfrt_definition* definition);

/* Setting an unknown key, a wrong type or a value outside the choices is INVALID_ARGUMENT naming the nearest key.
 * Setters are externally synchronised; cancel and reset_cancel may be called from any thread at any time. */
typedef struct pfrt_options_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Creates options that all have their defaults. */
  pfrt_status* (*create)(pfrt_options_kind kind, PFRT_OWN pfrt_options** out_options);
  void (*retain)(pfrt_options* options);
  void (*release)(PFRT_OWN pfrt_options* options);
  /* Sets a key of type BOOL; |value| 0 is false. */
  pfrt_status* (*set_bool)(pfrt_options* options, pfrt_string key, uint32_t value);
  /* Sets a key of type INT. */
  pfrt_status* (*set_int)(pfrt_options* options, pfrt_string key, int64_t value);
  /* Sets a key of type FLOAT. */
  pfrt_status* (*set_float)(pfrt_options* options, pfrt_string key, double value);
  /* Sets a key of type STRING; the text is copied. */
  pfrt_status* (*set_string)(pfrt_options* options, pfrt_string key, pfrt_string value);
  /* Sets a key of type STRINGS; the texts are copied. */
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

  /* Options of every kind but ENV: |fn| hears of the progress of work that uses them, of
   * session->create and optimizer->run too; NULL = nobody does. Calls on several threads with the
   * same options call it from each. An optimizer's copy of its options has the same listener, also
   * one that is set later. |user| is borrowed until another |fn| is set, or the options and such
   * optimizers are gone. Externally synchronised. INVALID_ARGUMENT for options of kind ENV. */
  pfrt_status* (*set_progress)(pfrt_options* options, pfrt_progress_fn fn, void* user);
  /* LOAD options: |fn| builds the graph of a file that has weights alone; NULL = nobody does, and such a file is
   * UNSUPPORTED_FORMAT. A load with |fn| of a file that has a graph is INVALID_ARGUMENT. |user| is borrowed until the
   * options go or another |fn| is set. Externally synchronised. INVALID_ARGUMENT for options of another kind. */
  pfrt_status* (*set_definer)(pfrt_options* options, pfrt_define_fn fn, void* user);
} pfrt_options_api;

/* ------------------------------------------------------------------ environment */
/* A file of the plug-in search path. Strings live until refresh_plugins. */
typedef struct pfrt_plugin_info {
  uint32_t struct_size;
  uint32_t loaded;    /* 1 when open and accepted */
  pfrt_string kind;   /* from the file name: provider, import, ops, pass, service, executor; others are rejected */
  pfrt_string name;   /* from the file name */
  pfrt_string path; /* of the file */
  pfrt_string version; /* the plug-in's own; empty when it was not opened */
  pfrt_string reason; /* reason of its rejection, or empty */
  uint32_t abi_major, abi_minor; /* ABI version that it was built with; 0 when it was not opened */
} pfrt_plugin_info;

/* A provider that sessions can name. Strings live until refresh_plugins. */
typedef struct pfrt_provider_info {
  uint32_t struct_size;
  uint32_t available; /* 1 when its plug-in can be opened */
  pfrt_string name;    /* CPUExecutionProvider */
  pfrt_string devices; /* comma-separated device words */
  pfrt_string path; /* plug-in's file; empty for a provider that the client registered */
  pfrt_string reason;  /* reason that it is not available, or empty */
} pfrt_provider_info;

/* A kernel of a provider. Strings live as long as the environment. */
typedef struct pfrt_kernel_info {
  uint32_t struct_size;
  uint32_t since, until; /* canonical opset range; until 0 = still current */
  uint32_t reserved;
  /* Operator and domain ("" is ai.onnx), element types, own name, and the instruction set that
   * it needs. */
  pfrt_string op, domain, types, name, isa;
} pfrt_kernel_info;

/* An operator that the library knows. */
typedef struct pfrt_operator_info {
  uint32_t struct_size;
  uint32_t since, until; /* opset range this row accepts; until 0 = still current */
  uint32_t reserved;
  pfrt_string op, domain; /* its name and domain ("" is ai.onnx) */
  pfrt_string runs_in; /* provider or host */
  pfrt_string note;    /* choice where the standard and its implementations differ, or empty */
  pfrt_string types;   /* element types that a registered operator is for, "float32, any -> float32"; empty = any */
} pfrt_operator_info;

/* Takes a line of the log, without its end. May be called from any thread, several at once. It may use the client
 * tables, set_logger included, but not the model, session or device that the line's call is at work on. A line that it
 * causes on its own thread goes to stderr. */
typedef void (*pfrt_log_fn)(void* user, pfrt_log_level level, pfrt_string message);

struct pfrt_custom_op;
struct pfrt_client_provider;
struct pfrt_custom_pass;

/* Source of an environment's memory: tensors of its runs and models, the blocks that runs work
 * in, and packed constants. Tensors of value->create_tensor belong to no environment and are not
 * included. Functions are called from any thread, several at once. |allocate| returns |bytes|
 * (never 0) aligned to |alignment| (a power of two, 64 at least), or NULL, which becomes
 * OUT_OF_MEMORY; so does memory with another alignment, which is given back. Every allocation is
 * given back once, with its size. |release| (may be NULL) is called once, when the environment
 * has another allocator or is gone and the last allocation has been given back. */
typedef struct pfrt_allocator {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  void* (*allocate)(void* user, uint64_t bytes, uint64_t alignment);
  /* Takes back memory that allocate gave, with its size. */
  void (*free)(void* user, void* data, uint64_t bytes);
  void (*release)(void* user);
} pfrt_allocator;

/* A buffer that a run works in, for a planner to place. */
typedef struct pfrt_memory_item {
  uint32_t struct_size;
  uint32_t alignment; /* alignment of its offset: a power of two, 64 at least */
  pfrt_string name;   /* name of its value, or else of its first node; may be empty */
  uint64_t bytes;     /* size of the buffer */
  /* First and last step that use it, counted from 0; steps of one number may run at once. */
  uint32_t first, last;
} pfrt_memory_item;

/* A question to a planner, and the place for its answer; valid during the call. */
typedef struct pfrt_memory_request {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string graph;  /* name of the graph */
  pfrt_string memory; /* "host", or the provider whose device the block is on */
  const pfrt_memory_item* items; /* [count], struct_size of the first apart */
  size_t count;      /* length of |items| */
  uint64_t* offsets; /* [count], to be filled: where each item begins in the block */
  uint64_t bytes;    /* size of the block, to be set */
  /* Keeps |message| for the run's error, and returns |code|. */
  pfrt_code (*fail)(const struct pfrt_memory_request* request, pfrt_code code, pfrt_string message);
  void* host; /* context of fail */
} pfrt_memory_request;

/* A client's own planner of runs' memory. It is called from any thread, several at once, when a
 * run needs a plan for dimensions that it has none for. Items that are in use at the same time
 * may not overlap, nor lie outside of the block; a wrong answer is the run's error,
 * INVALID_ARGUMENT with the items' names. A returned code other than 0 is the error's code.
 * |release| (may be NULL) is called once, when the environment has another planner or is gone
 * and no run uses it. */
typedef struct pfrt_memory_planner {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  /* Writes its answer to |request|. */
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

/* Functions that start and end the runtime's own threads. |create| starts a thread that calls
 * main(arg) once; a code other than 0 means that there is none, and runs go on with fewer.
 * |join| waits until |thread| has returned from main; it is called once for every thread
 * created. |release| (may be NULL) is called once, after the last join. Any thread may call
 * them. */
typedef struct pfrt_thread_hooks {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  pfrt_code (*create)(void* user, void (*main)(void* arg), void* arg, void** out_thread);
  void (*join)(void* user, void* thread);
  void (*release)(void* user);
} pfrt_thread_hooks;

typedef struct pfrt_reply pfrt_reply; /* the answer of a device or a service; immutable */

/* A question to the device of a provider, or to a running service. All of it is borrowed for the call. */
typedef struct pfrt_ask_desc {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string provider; /* name in a session's list: "CPUExecutionProvider", "cpu"; empty for service_ask */
  pfrt_string verb;     /* what to do, in the provider's or the service's own word; not empty */
  pfrt_string request;  /* how, in the form that the verb wants; may be empty */
  pfrt_value* const* values; /* [value_count], tensors in host memory that the verb works on */
  size_t value_count;
  /* Options of kind ASK, or NULL: the provider's own by "provider.<word>.<key>", as a session
   * takes them; the word of one of its devices; a timeout. They may be cancelled, and hear of
   * progress. */
  const pfrt_options* options;
} pfrt_ask_desc;

/* Hears that something happened in a service: |name| is the service's own word ("loaded"), |text| says more and may be
 * empty; both live for the call. Called from any thread, several at once, from before service_start returns until
 * service_stop has. It must not throw, and must not stop the service. */
typedef void (*pfrt_event_fn)(void* user, pfrt_string name, pfrt_string text);

/* A service to start, or to check. All of it is borrowed for the call, but for |event_user|. */
typedef struct pfrt_service_desc {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string name; /* the plug-in's own ("Heartbeat") or that of its file ("heartbeat") */
  const pfrt_key_value* options; /* [option_count], the service's own; each key once */
  size_t option_count;
  /* Options of kind ASK, or NULL: a timeout for the call. They may be cancelled, and hear of the call's progress. What
   * concerns providers and devices is INVALID_ARGUMENT. */
  const pfrt_options* call;
  pfrt_event_fn event; /* NULL = nobody hears of events; not used by service_check */
  void* event_user;    /* borrowed until service_stop has returned, or service_start has failed */
} pfrt_service_desc;

/* Environments: plug-ins, providers, threads, logging, and what a client registers. */
typedef struct pfrt_env_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Creates an environment; |options| are of kind ENV or NULL. */
  pfrt_status* (*create)(const pfrt_options* options, PFRT_OWN pfrt_env** out_env);
  void (*retain)(pfrt_env* env);
  void (*release)(PFRT_OWN pfrt_env* env);
  /* Sends log lines to |fn| instead of stderr; NULL restores stderr. |fn| may be called from any thread. When this
   * returns, the function set before is no longer called and has returned on all threads, so its |user| may go. Within a
   * log function it may be called too, and then waits for no other: calls that have begun go on, and their |user| has to
   * stay until they return. */
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
  /* The options of the service |name|, which is opened and not started; none for a service that does not list them.
   * Strings live as long as the environment. NOT_FOUND lists the services there are. */
  pfrt_status* (*service_option_count)(pfrt_env* env, pfrt_string name, size_t* out_count);
  pfrt_status* (*service_option_at)(pfrt_env* env, pfrt_string name, size_t index, pfrt_option_info* out_info);
  /* Checks whether service_start would take |desc|, without starting anything. The options are checked against the
   * service's list of them (keys with the nearest name, types, choices), and by the service itself where it can.
   * INVALID_ARGUMENT or the service's own code says what is wrong; UNSUPPORTED when it can do neither. */
  pfrt_status* (*service_check)(pfrt_env* env, const pfrt_service_desc* desc);
  /* Starts the service that a plug-in of kind service gives, and returns once it serves. The handle keeps the
   * environment and the plug-in. NOT_FOUND lists the services there are; an option that the service does not know is
   * INVALID_ARGUMENT. CANCELLED and DEADLINE by |desc->call|: nothing runs then. */
  pfrt_status* (*service_start)(pfrt_env* env, const pfrt_service_desc* desc, PFRT_OWN pfrt_service** out_service);
  /* Ends the service and frees the handle; returns when none of its threads runs any more. Questions under way are
   * cancelled, and waited for; no other may begin. Not from one of its threads, a question or an event. */
  void (*service_stop)(PFRT_OWN pfrt_service* service);
  /* Address of the service, or empty when it has none. Lives until service_stop. */
  pfrt_string (*service_address)(const pfrt_service* service);
  /* Asks the running service; several threads may at once. UNSUPPORTED when it takes no questions or does not know the
   * verb; else the service's code, CANCELLED or DEADLINE. Of |desc->options| the timeout, the cancel flag and the
   * progress count; what concerns providers and devices is INVALID_ARGUMENT, and so is |desc->provider|. */
  pfrt_status* (*service_ask)(pfrt_service* service, const pfrt_ask_desc* desc, PFRT_OWN pfrt_reply** out_reply);
  /* The structs are those of custom.h, which says how long they live. Models and sessions that exist keep what
   * they have; those made later see the change.
   * INVALID_ARGUMENT naming both when an operator of that name and domain is built in, or registered for the same types
   * and some of the same opsets. */
  pfrt_status* (*register_operator)(pfrt_env* env, const struct pfrt_custom_op* op);
  /* Removes all operators of that name, of any version and types and whoever brought them. NOT_FOUND when there is
   * none. */
  pfrt_status* (*unregister_operator)(pfrt_env* env, pfrt_string domain, pfrt_string name);
  /* The registered operators, those of plug-ins of kind ops included (which are opened), one for each version and each
   * list of types. Indices and strings stay valid until one is registered or unregistered. */
  pfrt_status* (*custom_operator_count)(pfrt_env* env, size_t* out_count);
  pfrt_status* (*custom_operator_at)(pfrt_env* env, size_t index, pfrt_operator_info* out_info);
  /* A provider that sessions can name. INVALID_ARGUMENT naming both when there is one of that name, in a plug-in too. */
  pfrt_status* (*register_provider)(pfrt_env* env, const struct pfrt_client_provider* provider);
  /* A pass for sessions made later, but for those of optimisation level none. INVALID_ARGUMENT when there is a pass of
   * that name, NOT_FOUND when there is none of the name it shall come after. */
  pfrt_status* (*register_pass)(pfrt_env* env, const struct pfrt_custom_pass* pass);
  /* Sets the allocator. Each of the set_ functions takes effect for work that begins afterwards;
   * NULL restores the library's own. The struct is copied; |release| is called for it also when
   * the call fails. INVALID_ARGUMENT when a function is missing. */
  pfrt_status* (*set_allocator)(pfrt_env* env, const pfrt_allocator* allocator);
  /* This environment's runs then start no thread of the library's. NULL restores that of the option
   * "executor". */
  pfrt_status* (*set_executor)(pfrt_env* env, const pfrt_executor* executor);
  /* Gives this environment's runs a pool of their own, whose threads these functions make. The
   * threads end with the environment's last handle (where that goes inside a callback of
   * run_async: when the library is used next, or unloaded). An executor goes first. */
  pfrt_status* (*set_thread_hooks)(pfrt_env* env, const pfrt_thread_hooks* hooks);
  /* Opens the device for the call, or shares it with sessions that have it open, and returns its
   * answer. UNSUPPORTED when the provider takes no questions (the message lists those that do)
   * or does not know the verb; NOT_FOUND when there is no such provider; else the device's code,
   * CANCELLED or DEADLINE. */
  pfrt_status* (*ask)(pfrt_env* env, const pfrt_ask_desc* desc, PFRT_OWN pfrt_reply** out_reply);
  /* Frees a reply; NULL is ignored. */
  void (*reply_release)(PFRT_OWN pfrt_reply* reply);
  /* Text of the answer, which may be empty. Lives as long as the reply. */
  pfrt_string (*reply_text)(const pfrt_reply* reply);
  /* The answer's tensors. Names live as long as the reply; the value is borrowed. */
  size_t (*reply_count)(const pfrt_reply* reply);
  pfrt_status* (*reply_at)(const pfrt_reply* reply, size_t index, pfrt_string* out_name, pfrt_value** out_value);
  /* Frees memory whose contents can be made again: plans, idle blocks and second plans of all
   * sessions, idle memory of the global pool and of the C library. Runs under way keep what they
   * use; the next of a session plans anew. |out_bytes| (may be NULL) is the size of the freed
   * blocks and pools. */
  pfrt_status* (*trim)(pfrt_env* env, uint64_t* out_bytes);
  /* Sets the planner, as set_allocator sets an allocator, for plans that runs make from now on.
   * Plans that sessions already have stay. All sessions of an environment share its planner. */
  pfrt_status* (*set_memory_planner)(pfrt_env* env, const pfrt_memory_planner* planner);
  /* The options that |importer|, by its name ("ONNX") or that in lower case, adds to a load's: keys as LOAD options
   * take them, "import.<word>.<key>". A load checks them before the importer is called. Strings live as long as the
   * environment. NOT_FOUND lists the importers there are. */
  pfrt_status* (*importer_option_count)(pfrt_env* env, pfrt_string importer, size_t* out_count);
  /* Option |index|, from 0 on, of importer_option_count. */
  pfrt_status* (*importer_option_at)(pfrt_env* env, pfrt_string importer, size_t index, pfrt_option_info* out_info);
  /* Opens the plug-in of a file, whatever folder it lies in; the name of the file has its kind, as of those in the search
   * path. From then on it is found as these are, by the sessions and loads that begin later. |out_info| (may be NULL) says
   * what it is; its strings live as long as the environment. Nothing is done where the file is open already. NOT_FOUND
   * where there is no such file; PLUGIN with the reason where it is not usable, or another one of its kind and name is
   * open. */
  pfrt_status* (*open_plugin)(pfrt_env* env, pfrt_string path, pfrt_plugin_info* out_info);
} pfrt_env_api;

/* ------------------------------------------------------------------ values */
/* A value, or one within another, as pfrt_value_api.parts describes it. Pointers live as long as the value. */
typedef struct pfrt_value_part {
  uint32_t struct_size;
  pfrt_value_kind kind; /* kind of the value */
  uint64_t count; /* parts directly within: elements, a map's keys and values, a sparse tensor's values and indices */
  pfrt_tensor tensor; /* TENSOR: its view; SPARSE: |rank| and |dims| of the dense shape alone; else zero */
} pfrt_value_part;

/* Values are immutable once shared, but for a tensor's bytes, which any holder may write while
 * no run uses it; a map's keys, which maps of a result share, are never written. */
typedef struct pfrt_value_api {
  uint32_t struct_size;
  uint32_t abi;
  void (*retain)(pfrt_value* value);
  void (*release)(PFRT_OWN pfrt_value* value);
  /* Kind of a value; UNSET for NULL. */
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
  /* Creates a sequence; at most 65 nest. |element_dtype| types an empty one of tensors; elements are retained. */
  pfrt_status* (*create_sequence)(pfrt_dtype element_dtype, pfrt_value* const* elements, size_t count,
                                  PFRT_OWN pfrt_value** out_value);
  /* Creates an optional; |element| NULL makes an empty one. */
  pfrt_status* (*create_optional)(pfrt_value* element, PFRT_OWN pfrt_value** out_value);
  /* Creates a map. |keys| is a rank-1 tensor (strings or integers), |values| a tensor with as
   * many rows. */
  pfrt_status* (*create_map)(pfrt_value* keys, pfrt_value* values, PFRT_OWN pfrt_value** out_value);
  /* Keys and values of a map, as create_map takes them; borrowed. */
  pfrt_status* (*map_parts)(const pfrt_value* value, pfrt_value** out_keys, pfrt_value** out_values);
  /* Creates a sparse tensor in COO form: |indices| int64 [nnz, rank] (or [nnz] of linear
   * indices), |values| [nnz]. */
  pfrt_status* (*create_sparse)(pfrt_value* values, pfrt_value* indices, const int64_t* dims, size_t rank,
                                PFRT_OWN pfrt_value** out_value);
  /* The arguments of create_sparse; borrowed. */
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
  /* Like wrap_tensor, for memory at any address that never changes, such as a mapped file. It is
   * copied when somebody asks for the tensor's view, which keeps the copy, or for as long as it
   * takes to give it a provider's layout. Not for strings. */
  pfrt_status* (*wrap_unaligned)(const pfrt_tensor* tensor, pfrt_release_fn release, void* user,
                                 PFRT_OWN pfrt_value** out_value);
  /* Creates a tensor of strings, row-major, whose texts lie one behind another in the |size| bytes at |text|, which are
   * copied: each ends before its byte of |ends|, one for each element, and begins where the one before ended. With
   * |ends| NULL there is one byte of 0 between two texts, and none within: INVALID_ARGUMENT tells of others. */
  pfrt_status* (*create_strings)(const int64_t* dims, size_t rank, const char* text, size_t size, const uint64_t* ends,
                                 PFRT_OWN pfrt_value** out_value);
  /* Writes the elements of a tensor of strings to |text|, and to |ends|, one for each element, as create_strings reads
   * them; with |ends| NULL a byte of 0 stands between two, which tells them apart only where none has one within.
   * |out_size| is the number of bytes: where that is more than |capacity|, nothing is written. */
  pfrt_status* (*strings)(const pfrt_value* value, char* text, size_t capacity, size_t* out_size, uint64_t* ends);
  /* Describes |value_count| values and all that is within them, each before its own parts and in their order, in
   * |parts|, elements of the struct_size that the caller sets in the first. |out_count| is their number: where that is
   * more than |capacity|, only the first are written. */
  pfrt_status* (*parts)(const pfrt_value* const* values, size_t value_count, pfrt_value_part* parts, size_t capacity,
                        size_t* out_count);
} pfrt_value_api;

/* ------------------------------------------------------------------ graphs */
/* A described input, output or inner value. */
typedef struct pfrt_value_info {
  uint32_t struct_size;
  pfrt_value_kind kind; /* kind of the value */
  pfrt_dtype dtype;  /* of the tensor, or of the elements */
  int32_t rank;      /* -1 when unknown */
  pfrt_string name; /* empty where the value has no name */
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

/* No node, where a node id is asked for or given. */
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
  /* Creates an empty graph. */
  pfrt_status* (*create)(pfrt_string name, PFRT_OWN pfrt_graph** out_graph);
  void (*retain)(pfrt_graph* graph);
  void (*release)(PFRT_OWN pfrt_graph* graph);
  /* Creates a body for a GRAPH attribute of a node of |outer|: names it does not define are
   * captured from |outer|. */
  pfrt_status* (*create_subgraph)(pfrt_graph* outer, pfrt_string name, PFRT_OWN pfrt_graph** out_graph);

  /* Sets the opset of a domain. A domain without one has the newest opset this library knows. */
  pfrt_status* (*set_opset)(pfrt_graph* graph, pfrt_string domain, int64_t version);
  /* Sets a metadata entry, replacing one of the same key. */
  pfrt_status* (*set_metadata)(pfrt_graph* graph, pfrt_string key, pfrt_string value);
  /* Adds an input at the end. VALIDATION when a value of that name is made already. */
  pfrt_status* (*add_input)(pfrt_graph* graph, const pfrt_value_info* info);
  /* Adds an output at the end. The value may be added later; validate says what is missing. */
  pfrt_status* (*add_output)(pfrt_graph* graph, const pfrt_value_info* info);
  /* Declares type and shape of an inner value. */
  pfrt_status* (*set_value_info)(pfrt_graph* graph, const pfrt_value_info* info);
  /* Copies the tensor (COPY: |release| NULL and |borrow| 0) or borrows its memory until |release| is called. */
  pfrt_status* (*add_initializer)(pfrt_graph* graph, pfrt_string name, const pfrt_tensor* tensor, uint32_t borrow,
                                  pfrt_release_fn release, void* user);
  /* Adds or replaces an initializer; retains |value| (a tensor or sparse tensor). */
  pfrt_status* (*add_initializer_value)(pfrt_graph* graph, pfrt_string name, pfrt_value* value);
  /* Adds a node. Its names may refer to values that are added later; validate says what is
   * missing. |out_id| may be NULL. */
  pfrt_status* (*add_node)(pfrt_graph* graph, const pfrt_node* node, uint32_t* out_id);
  /* Sets an attribute, replacing one of the same name; everything in |attr| is copied, values
   * and bodies are retained. */
  pfrt_status* (*set_attr)(pfrt_graph* graph, uint32_t node_id, const pfrt_attr* attr);
  /* Removes a node. Its outputs then have no producer: validate names the nodes that still take
   * them. */
  pfrt_status* (*remove_node)(pfrt_graph* graph, uint32_t node_id);

  /* Name of the graph; empty when it has none. */
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

  /* Checks the graph. VALIDATION with one child for each fault, all of them at once. */
  pfrt_status* (*validate)(pfrt_graph* graph);
  /* Fills in types and shapes of inner values as far as they follow from the inputs. */
  pfrt_status* (*infer_shapes)(pfrt_graph* graph);

  /* Makes a graph of its own with the same ids; constants are shared. Cloning a body gives a
   * body. */
  pfrt_status* (*clone)(const pfrt_graph* graph, PFRT_OWN pfrt_graph** out_graph);
  /* Sets the graph's name, which may be empty. */
  pfrt_status* (*set_name)(pfrt_graph* graph, pfrt_string name);
  /* Removes the import of a domain. NOT_FOUND when the domain is not imported. */
  pfrt_status* (*remove_opset)(pfrt_graph* graph, pfrt_string domain);
  /* Removes a metadata entry. NOT_FOUND when there is no such key. */
  pfrt_status* (*remove_metadata)(pfrt_graph* graph, pfrt_string key);

  /* Reads the node of that id. NOT_FOUND once the node is removed. */
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

  /* Sets a node's name, which may be empty. */
  pfrt_status* (*rename_node)(pfrt_graph* graph, uint32_t id, pfrt_string name);
  /* Puts another list in place of the node's; names as in add_node. An output that another node makes already, or
   * that is an input or initializer, is VALIDATION. */
  pfrt_status* (*set_node_inputs)(pfrt_graph* graph, uint32_t id, const pfrt_string* names, size_t count);
  /* Puts another list in place of the node's outputs, otherwise like set_node_inputs. */
  pfrt_status* (*set_node_outputs)(pfrt_graph* graph, uint32_t id, const pfrt_string* names, size_t count);
  /* Removes an attribute. NOT_FOUND when the node has no such attribute. */
  pfrt_status* (*remove_attr)(pfrt_graph* graph, uint32_t id, pfrt_string name);

  /* Nodes (but for |except|; PFRT_NO_NODE = none), their bodies and the graph's outputs that use |from| use |to|. Where
   * a node makes both, an output keeps its name: the two values swap theirs. So to put a node behind a value, add it
   * with that value as input, then replace the uses of the value by the node's output, except in the node.
   * VALIDATION when a body defines a value of its own under the name that it would have to capture. */
  pfrt_status* (*replace_uses)(pfrt_graph* graph, pfrt_string from, pfrt_string to, uint32_t except);
  /* Renames a value wherever it is used, bodies included. VALIDATION when |to| is in use here,
   * or a body that captures the value has a |to| of its own. */
  pfrt_status* (*rename_value)(pfrt_graph* graph, pfrt_string from, pfrt_string to);

  /* Puts another input in the place of input |index|, as input_at counts. */
  pfrt_status* (*replace_input)(pfrt_graph* graph, size_t index, const pfrt_value_info* info);
  /* Removes input |index| and closes the gap. Nodes that take it are left as they are: validate
   * names them. */
  pfrt_status* (*remove_input)(pfrt_graph* graph, size_t index);
  /* Puts another output in the place of output |index|, as output_at counts. */
  pfrt_status* (*replace_output)(pfrt_graph* graph, size_t index, const pfrt_value_info* info);
  /* Removes output |index| and closes the gap. The node that makes the value stays. */
  pfrt_status* (*remove_output)(pfrt_graph* graph, size_t index);

  /* Initializers by name; add_initializer and add_initializer_value replace one of the same name. */
  pfrt_status* (*initializer)(const pfrt_graph* graph, pfrt_string name, pfrt_value** out_value);
  /* Removes an initializer. NOT_FOUND when there is none of that name. */
  pfrt_status* (*remove_initializer)(pfrt_graph* graph, pfrt_string name);
  /* The dense tensor with memory of the graph's own: copied first when a model, another graph or a retained value
   * shares it, or when it is mapped or borrowed. It may be written until the graph is cloned, made a model of, or the
   * value is given to any other call; ask again afterwards. UNSUPPORTED for sparse tensors. */
  pfrt_status* (*initializer_for_write)(pfrt_graph* graph, pfrt_string name, pfrt_value** out_value);

  /* Checks everything and lists all faults at once: those that validate finds, operators that
   * |env| (NULL: the library alone) does not know, their versions, arity and attribute types,
   * and types and shapes that contradict each other. VALIDATION with one child for each fault,
   * each with a code of its own. */
  pfrt_status* (*validate_all)(pfrt_graph* graph, pfrt_env* env);
  /* Extracts the part that computes |outputs| from |inputs|, as a graph of its own with the same
   * ids that runs alone; constants are shared. Inputs may be any values: the nodes that make
   * them are left out. Further inputs of |graph| that the part needs follow them. Types are
   * filled in as far as infer_shapes would. NOT_FOUND for unknown names, INVALID_ARGUMENT for a
   * value named twice or an input that nothing in between reads, UNSUPPORTED for a body. */
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
  uint64_t size;    /* number of all bytes */
  pfrt_string name; /* for messages, and its extension for the format; may be empty */
  /* Writes up to |bytes| (at least 1) bytes from |offset| on to |out| and their number to
   * |out_read|. 0 says that there are no more: before |size| that is DATA_LOSS. A code other
   * than 0 ends the load with that code. */
  pfrt_code (*read_at)(void* user, uint64_t offset, uint64_t bytes, void* out, uint64_t* out_read);
  /* Fills |out_reader| (struct_size set by the library) for the bytes of the file that the model
   * calls |location|, or gives NOT_FOUND. May be NULL: the model then has no files beside it. */
  pfrt_code (*open_beside)(void* user, pfrt_string location, struct pfrt_reader* out_reader);
  /* Called once when the library needs the reader no more, also on failure. May be NULL. */
  void (*release)(void* user);
  void* user;
} pfrt_reader;

/* Facts about a model. Strings live as long as the model. */
typedef struct pfrt_model_info {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string graph_name, description; /* of the graph; empty where the file has none */
  /* Program that wrote the file, its version, and the model's own domain. */
  pfrt_string producer_name, producer_version, domain;
  int64_t model_version; /* 0 where the file has none */
  pfrt_string format; /* onnx, pfm, graph */
  /* Counts over the graph and the bodies of its nodes. Parameters are the elements of
   * initializers and of the constants in Constant nodes. */
  uint64_t node_count, initializer_count, parameter_count, parameter_bytes;
  double import_ms; /* how long the import took, in milliseconds */
  /* Method of the file that was loaded, as the load option "entry" names it, and all that it has, separated by commas;
   * empty where the format has none. */
  pfrt_string entry, entries;
} pfrt_model_info;

/* Models: loading, saving, and their contents. Immutable, hence safe on any thread. */
typedef struct pfrt_model_api {
  uint32_t struct_size;
  uint32_t abi;
  /* The format is found by extension, then by content. |options| of kind LOAD or NULL. The file is mapped (environment
   * option guard_mapped_files): once it was written to, runs are DATA_LOSS. Renaming another over it does no harm. */
  pfrt_status* (*load_file)(pfrt_env* env, pfrt_string path, const pfrt_options* options, PFRT_OWN pfrt_model** out_model);
  /* Loads a model from bytes. COPY needs |data| during the call only. BORROW keeps views into it
   * until |release| is called (also on failure). */
  pfrt_status* (*load_memory)(pfrt_env* env, const void* data, size_t size, pfrt_memory_mode mode,
                              pfrt_release_fn release, void* user, const pfrt_options* options,
                              PFRT_OWN pfrt_model** out_model);
  /* Copies the graph (constants are shared), which stays usable and editable. */
  pfrt_status* (*from_graph)(pfrt_env* env, const pfrt_graph* graph, const pfrt_options* options,
                             PFRT_OWN pfrt_model** out_model);
  void (*retain)(pfrt_model* model);
  void (*release)(PFRT_OWN pfrt_model* model);
  /* Writes the model as loaded; the format is that of the extension. The old file stays until the new one is whole, also
   * when the save is cancelled. Of |options|, of kind LOAD or NULL, the cancel flag, the timeout and the progress count. */
  pfrt_status* (*save)(pfrt_env* env, const pfrt_model* model, pfrt_string path, const pfrt_options* options);
  /* Gives an editable copy of the model's graph. */
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
} pfrt_model_api;

/* ------------------------------------------------------------------ sessions */
/* Inputs of one run, by name. */
typedef struct pfrt_sample {
  uint32_t struct_size;
  uint32_t reserved;
  const pfrt_string* names; /* [count], the session's input names */
  pfrt_value* const* values; /* [count], in the order of |names| */
  size_t count; /* length of both arrays */
} pfrt_sample;

/* Samples that are asked for one by one, so that they need not be in memory at once. Functions are called on the thread
 * of session->create, and not after it has returned. A code other than 0 is the error of create. */
typedef struct pfrt_sample_source {
  uint32_t struct_size;
  uint32_t reserved;
  void* user;
  /* Fills |out_sample| (struct_size set by the library, the rest zero), whose strings and arrays live until the next
   * call of either function; the library retains the values for as long as it needs them. No inputs say that there are
   * no more samples. */
  pfrt_code (*next)(void* user, pfrt_sample* out_sample);
  /* Lets the next call of next give the first sample again. Called before each reading, the first one too; samples are
   * read many times, and should be the same each time. */
  pfrt_code (*rewind)(void* user);
} pfrt_sample_source;

/* Description of a session to create. */
typedef struct pfrt_session_desc {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_model* model; /* retained by the session */
  const pfrt_options* options;      /* kind SESSION, or NULL */
  const pfrt_string* extra_outputs; /* inner values to append to the model's outputs, by name */
  size_t extra_output_count;
  /* Inputs on which precision "auto" is measured in place of made-up ones, and on which "verify"
   * compares besides made-up ones. Each sample has all required inputs. They are retained while
   * the session lives. */
  const pfrt_sample* samples; /* [sample_count], as far apart as the struct_size of the first says */
  size_t sample_count;
  /* Gives samples in place of |samples|, for the same uses, and is read only for them. Graphs that the session prepares
   * after create, as when a provider has failed, are verified with made-up inputs alone. NULL = none. */
  const pfrt_sample_source* sample_source;
  /* Takes the lines that calls of this session cause, create included, in place of the environment's function; NULL =
   * that one. The session option log_level is its level. Lines of no session's call, as of a thread that looks after
   * memory, go to the environment's. */
  pfrt_log_fn log;
  void* log_user; /* given to both functions */
  void (*log_release)(void* log_user); /* may be NULL; called once, when the session is gone or create has failed */
} pfrt_session_desc;

/* Flags of an input or output of a run. */
typedef uint64_t pfrt_io_flags;
enum {
  PFRT_IO_SKIP = 1,     /* an output that is not wanted */
  /* An output whose memory may be exactly that of an input, such as a cache before and after a
   * step. The result is the same as with memory of its own. Where the output can be made in place
   * nothing is copied, and a run that fails has spoilt it. */
  PFRT_IO_IN_PLACE = 4,
  PFRT_IO_ON_DEVICE = 2 /* an output that the run allocates stays in the memory of the device that makes it; without
                           the flag, and where no device made it, it comes to host memory */
};

/* An input or output of a run.
 * Input: |value|, or a view; dtype 0 without a value = not fed (allowed where the input has an initializer).
 * Output: |tensor.data| NULL = allocate, |value| receives a reference; otherwise the result is written there (its
 * bytes must be the result's exactly) and |value| stays NULL. An output |value| given by the caller is written into; one
 * that is no tensor of numbers is replaced by the result, and the caller's reference to it stays the caller's (run_async
 * keeps one of its own until then).
 * A |value| may live on a device, of this session or of another: where provider and device are the same nothing is
 * copied. */
typedef struct pfrt_io {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_io_flags flags; /* PFRT_IO_SKIP and the like, or 0 */
  pfrt_tensor tensor; /* the view, where there is no |value| */
  pfrt_value* value;
} pfrt_io;

/* Sees a value of a run, which is borrowed for the call: copy what is to be kept, since it may
 * lie in the caller's own memory. Returns 0 to go on; another code ends the run with that code.
 * Must not throw. */
typedef pfrt_code (*pfrt_observe_fn)(void* user, pfrt_string name, pfrt_value* value);

/* Flags of a run. */
typedef uint64_t pfrt_run_flags;
enum {
  /* The run reads its state and leaves it as it is: what it makes goes to the caller only. Several
   * such runs may be under way at once on one state. A cache that other runs write IN_PLACE is not
   * written; this run makes another, if it is to write one. INVALID_ARGUMENT without a state. */
  PFRT_RUN_KEEPS_STATE = 1
};

/* Settings of a run. Zero is the default everywhere; NULL in place of a desc means all defaults. It is read during the
 * call: a client may keep one and change it between runs, and runs on several threads may share it. Numbers below 0 or
 * above 2^40 are INVALID_ARGUMENT, a level that the library does not know is UNSUPPORTED. */
typedef struct pfrt_run_desc {
  uint32_t struct_size;
  pfrt_log_level log_level; /* DEBUG logs the run with its time, others do not; UNSET = as the session's log */
  /* The run stops with CANCELLED, within milliseconds, once the number is not 0; NULL = it cannot be cancelled. Any
   * thread may write it at any time, atomically. It stays where it is until the run is over. */
  const uint32_t* cancel;
  int64_t timeout_ms; /* the run stops with DEADLINE so many milliseconds after the call; 0 = never */
  int64_t num_threads; /* threads of this run, whatever else runs; 0 = the session's, shared by all runs under way */
  int64_t priority; /* asynchronous runs that wait are started by it, the highest first */
  int64_t memory_limit; /* bytes of host memory that the run and its results may take; 0 = the environment's limit */
  pfrt_string tag; /* name of the run in logs and profiles */
  pfrt_run_flags flags; /* PFRT_RUN_KEEPS_STATE, or 0 */
  pfrt_state* state; /* state that the run continues; retained until the run is over; NULL = none */
  /* Sees the session's extra outputs (pfrt_session_desc) in their order once the run has computed them and before it
   * returns, on the thread of the run, which may leave them out of its outputs (PFRT_IO_SKIP). So any value of a model
   * can be looked at, while all others are fused as ever. NULL = nobody does. */
  pfrt_observe_fn observe;
  void* observe_user; /* borrowed until the run is over */
} pfrt_run_desc;

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

/* Condition of a provider of a session's list. */
typedef struct pfrt_provider_state {
  uint32_t struct_size;
  pfrt_provider_condition condition; /* whether it is in use */
  pfrt_string name; /* name in the session's options */
  pfrt_string reason; /* of the last failure: what was attempted and what the provider said; empty = none */
  pfrt_code code;     /* of the last failure */
  uint32_t failures;  /* so far */
} pfrt_provider_state;

/* Called once for a run_async that returned NULL, on a thread of the runtime (or of the executor), also when the run
 * failed or was stopped. |status| NULL = success; it and every |value| in |outputs| (the array given to run_async, copied)
 * belong to the callee, which may release anything here, the session and environment included. The next runs wait while
 * it works. */
typedef void (*pfrt_run_done_fn)(void* user, PFRT_OWN pfrt_status* status, pfrt_io* outputs, size_t output_count);

/* Counts of a session's runs so far; they grow while runs go on. */
typedef struct pfrt_session_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t runs, failures; /* runs that succeeded, and runs that did not */
  /* Plans that runs made for dimensions, or contents that decide some, which they had not seen or had forgotten; one for
   * each part of the graph whose dimensions are known before it runs. */
  uint64_t plans;
  uint64_t planning_ns; /* nanoseconds that making these plans took */
  /* Runs among |runs| that were done in parts because memory did not suffice; session option
   * "session.halve_batch". */
  uint64_t in_parts;
} pfrt_session_statistics;

/* Bytes of memory that a session takes: of the host's, but for those of devices. */
typedef struct pfrt_memory_report {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t weights; /* the model's constants that are in memory; mapped files are not counted. Its sessions share them */
  uint64_t packed;  /* constants in providers' own layouts, which sessions share too */
  uint64_t in_use;  /* blocks of runs under way */
  uint64_t idle;    /* blocks that wait for the next run */
  uint64_t peak;    /* most bytes in blocks since the session was made or planned anew */
  /* Values of the session's states, and room for the next ones. What states share is counted once; what lies in memory
   * of the client's own is not counted. */
  uint64_t states;
  uint64_t device_in_use; /* blocks of runs under way, in the memory of devices */
  uint64_t device_idle;   /* blocks there that wait for the next run */
  uint64_t device_states; /* like |states|, in the memory of devices */
} pfrt_memory_report;

/* Phase of a session's life. While several runs go on it is that of the run in most trouble. */
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
  /* Plans the model: optimises its graph and has providers compile their parts. NOT_FOUND for an
   * unknown provider, UNSUPPORTED_OPERATOR with one child for each node that no provider runs,
   * CANCELLED and DEADLINE by |desc->options|.
   *
   * On a processor with AMX, the CPU provider asks the system for its tiles, for the whole process
   * and until it ends. The system then refuses, in the host's threads too, a sigaltstack that has
   * no room for a tile's registers: one of fewer bytes than getauxval(AT_MINSIGSTKSZ), about
   * 11,000. With PFRT_ISA=avx512_bf16 in the environment no tiles are asked for. */
  pfrt_status* (*create)(pfrt_env* env, const pfrt_session_desc* desc, PFRT_OWN pfrt_session** out_session);
  void (*retain)(pfrt_session* session);
  void (*release)(PFRT_OWN pfrt_session* session);
  /* Inputs: those that must be fed, then those with initializers. Outputs: the model's, then the extra ones. */
  size_t (*input_count)(const pfrt_session* session);
  pfrt_status* (*input_at)(const pfrt_session* session, size_t index, pfrt_value_info* out_info);
  size_t (*output_count)(const pfrt_session* session);
  pfrt_status* (*output_at)(const pfrt_session* session, size_t index, pfrt_value_info* out_info);
  /* Index of the input of that name in session order; NOT_FOUND lists the names there are. */
  pfrt_status* (*input_index)(const pfrt_session* session, pfrt_string name, size_t* out_index);
  /* Index of the output of that name in session order; NOT_FOUND lists the names there are. */
  pfrt_status* (*output_index)(const pfrt_session* session, pfrt_string name, size_t* out_index);
  /* Runs the model. Both arrays are in session order; |desc| may be NULL. Safe from many threads
   * at once. On failure no output value is returned; memory given for outputs may have been
   * written. */
  pfrt_status* (*run)(pfrt_session* session, const pfrt_io* inputs, size_t input_count, pfrt_io* outputs,
                      size_t output_count, const pfrt_run_desc* desc);
  /* Runs the model with inputs and outputs by name: |inputs| is in the order of |input_names|,
   * |outputs| in that of |output_names|, each name once. Inputs that are not named are not fed,
   * outputs that are not named are not wanted. INPUT lists names that are unknown, missing or
   * repeated. */
  pfrt_status* (*run_named)(pfrt_session* session, const pfrt_string* input_names, const pfrt_io* inputs,
                            size_t input_count, const pfrt_string* output_names, pfrt_io* outputs, size_t output_count,
                            const pfrt_run_desc* desc);
  /* Reports the provider, kernel and reason of each step; with times of the last profiled run
   * where there was one. */
  pfrt_status* (*explain)(pfrt_session* session, PFRT_OWN pfrt_report** out_report);
  pfrt_model* (*model)(const pfrt_session* session); /* borrowed */
  /* Every provider the session was asked to use, in order of preference, also those that did not open. A state is
   * what it is now; runs on other threads may change it. The strings live as long as the session. */
  size_t (*provider_state_count)(const pfrt_session* session);
  /* State |index|, from 0 on, of provider_state_count. INVALID_ARGUMENT beyond. */
  pfrt_status* (*provider_state)(const pfrt_session* session, size_t index, pfrt_provider_state* out_state);
  /* Starts a run, returns at once and calls |done| when the run is over. The session, the state
   * of |desc| and input and output values are retained until then; memory behind views and
   * |desc->cancel| have to stay. The arrays and |desc| themselves may go. An error returned here
   * means that nothing was started: |done| is not called; BUSY when as many wait as the
   * environment's option "async_queue" allows. A few threads serve all runs of the process, by
   * |desc->priority| and then in the order of the calls. */
  pfrt_status* (*run_async)(pfrt_session* session, const pfrt_io* inputs, size_t input_count, const pfrt_io* outputs,
                            size_t output_count, const pfrt_run_desc* desc, pfrt_run_done_fn done, void* user);
  /* Uses |provider|, by its name or word, again after it was set aside for a failure: opens its
   * device and plans the graph anew, while runs go on as before. Nothing is done where it is in
   * use. NOT_FOUND when the session was made without it; when opening or planning fails, the
   * provider stays aside and that error is returned. |desc| (may be NULL) has a |timeout_ms| and a
   * |cancel| that end the call with DEADLINE and CANCELLED, and count against nobody; what else it
   * says is for runs. */
  pfrt_status* (*readmit)(pfrt_session* session, pfrt_string provider, const pfrt_run_desc* desc);
  /* Counts of the session's runs. Any thread. */
  pfrt_status* (*statistics)(const pfrt_session* session, pfrt_session_statistics* out_statistics);
  /* Writes the profile that the option "enable_profiling" opened, to a file by the option "profile_file_prefix", and
   * closes it: later runs are not recorded. |out_path| is the file's, and lives as long as the session; the same again
   * when it is called again, and empty where the option is off. The file is an object whose "traceEvents" are of the
   * Trace Event format: every run with its tag, its steps and what it waited for, how the model was loaded and the session
   * made, memory and threads over time. On failure the profile stays open. Any thread; runs may be under way, and what
   * they have not done is missing. */
  pfrt_status* (*end_profiling)(pfrt_session* session, pfrt_string* out_path);
  /* Time when the profile began, in nanoseconds on CLOCK_MONOTONIC; 0 where there is none. Any
   * thread. */
  uint64_t (*profiling_start_ns)(const pfrt_session* session);
  /* Frees the session's idle blocks; plans stay, so that the next run allocates memory and is
   * otherwise as fast. |out_bytes| (may be NULL) is the size of the freed blocks. */
  pfrt_status* (*trim)(pfrt_session* session, uint64_t* out_bytes);
  /* Reports the memory that the session takes. |row| (may be NULL) is called on this thread with
   * each signature that plans are kept for, as "x[8,3,224,224]", and the bytes of the block that
   * its runs work in; the string lives for the call. */
  pfrt_status* (*memory_report)(const pfrt_session* session, pfrt_memory_report* out_report,
                                void (*row)(void* user, pfrt_string signature, uint64_t bytes), void* user);
  /* The session's present phase. |out_name| (may be NULL) is its name, such as "Ready", which
   * lives as long as the library. */
  pfrt_status* (*phase)(const pfrt_session* session, pfrt_session_phase* out_phase, pfrt_string* out_name);
} pfrt_session_api;

/* ------------------------------------------------------------------ states */
/* The way a value's dimensions change from run to run. */
typedef uint32_t pfrt_state_growth;
enum {
  /* It grows along the axis whose dimension has another name in the output, if there is one. Else it is IN_PLACE where
   * a TensorScatter or GroupQueryAttention makes the output from the input, and REPLACED elsewhere. */
  PFRT_STATE_BY_NAMES = 0,
  PFRT_STATE_REPLACED = 1, /* along no axis: each run replaces the value */
  PFRT_STATE_GROWS = 2,    /* it grows along |axis| */
  /* It keeps its dimensions, those of a cache with room for the longest sequence, and a run writes over it where it is:
   * nothing is copied where the provider can do so. The client's own inputs say which part is valid; what a run that
   * fails has written stays. */
  PFRT_STATE_IN_PLACE = 3,
  PFRT_STATE_GROWTH_FORCE32 = 0x7fffffff
};

/* An output of a run and the input that it becomes in the next one. */
typedef struct pfrt_state_pair {
  uint32_t struct_size;
  pfrt_state_growth growth; /* the way the value grows */
  uint32_t axis; /* for PFRT_STATE_GROWS, and for |capacity| */
  uint32_t reserved;
  pfrt_string input;  /* names a session's input */
  pfrt_string output; /* names the output that is its value in the next run */
  /* The length along |axis| that there is room for; 0 = unsaid. A value IN_PLACE that nobody has set is of zeros and as
   * long as this, where the model leaves that dimension open (SHAPE_MISMATCH where it names another number). One that GROWS
   * gets memory for this length with its second run, if there is as much: steps up to it allocate nothing. It may
   * become longer.
   * INVALID_ARGUMENT with another growth. */
  uint64_t capacity;
} pfrt_state_pair;

/* States: key-value caches, hidden states of recurrent layers. A run whose desc has a state
 * takes inputs from it, and leaves its outputs there once it has succeeded; a run that fails
 * changes nothing, except where pairs are IN_PLACE, and one with PFRT_RUN_KEEPS_STATE changes
 * nothing at all. Values stay in the memory that runs leave them in, a device's too, and cross to
 * the host only when they are asked for. Runs with different states may be under way at once on one
 * session; runs with one state take turns, in the order of the calls, whatever their priority, and
 * those that keep it and follow each other have it together. Changing a state that a run has or
 * waits for is BUSY, and so is a run with a state that is called by the thread of a run which it
 * would have to wait for. Reading gives the values from before the run; with pairs that are IN_PLACE
 * it is BUSY too, unless all these runs keep the state. Safe from any thread. */
typedef struct pfrt_state_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Creates a state of |pairs|, which are as far apart as the struct_size of the first says.
   * With |pair_count| 0 they are those that the model declares, by metadata "pyflame_rt.state.<input>" (README.md); where
   * it declares none, names tell which belong together: "past_0" and "present_0",
   * "past_key_values.0.key" and "present.0.key", "h" and "h_out" or "hN", "in_h" and "out_h".
   * Until it is set or a run has left one, a value is of zeros, with length 0 along the axis
   * that it grows along; other dimensions are those that inputs of the run have by the same
   * name, else 1. A value IN_PLACE has to be set where dimensions are neither numbers nor its |capacity|. The session is
   * kept. NOT_FOUND for names that it does not have, INVALID_ARGUMENT for pairs that do not fit each
   * other. */
  pfrt_status* (*create)(pfrt_session* session, const pfrt_state_pair* pairs, size_t pair_count,
                         PFRT_OWN pfrt_state** out_state);
  void (*retain)(pfrt_state* state);
  void (*release)(PFRT_OWN pfrt_state* state);
  /* Number of inputs that the state gives to runs. The name lives as long as the session. */
  size_t (*input_count)(const pfrt_state* state);
  /* Input |index|, from 0 on, of input_count. */
  pfrt_status* (*input_at)(const pfrt_state* state, size_t index, pfrt_string* out_name);
  /* Makes a state of its own with the same values, which takes no memory until runs make new
   * ones; a value IN_PLACE is copied by the first run that writes to it while both have it. */
  pfrt_status* (*clone)(const pfrt_state* state, PFRT_OWN pfrt_state** out_state);
  /* Makes a state of |session| by |pairs|, as create does, which has the values of |state| by the
   * names of inputs: what a session for prompts has read goes on in one for single steps. Values
   * are shared as by clone; those on a device that |session| does not use come to host memory.
   * Inputs that |state| does not have are as in a new state. An error lists every input that does
   * not fit: NOT_FOUND where the new state does not have it, DTYPE_MISMATCH and SHAPE_MISMATCH
   * where its value cannot be that input's, INVALID_ARGUMENT where it grows in another way. */
  pfrt_status* (*clone_for)(const pfrt_state* state, pfrt_session* session, const pfrt_state_pair* pairs,
                            size_t pair_count, PFRT_OWN pfrt_state** out_state);
  /* Length along the axes that values grow along, the largest of them; 0 = nothing yet, or none
   * grows. */
  int64_t (*length)(const pfrt_state* state);
  /* Keeps the first |length| along these axes, and values IN_PLACE as they are. 0 leaves the
   * state as it was made, without values that were set. UNSUPPORTED for a |length| above 0 where
   * each run replaces a value. */
  pfrt_status* (*truncate)(pfrt_state* state, int64_t length);
  /* Keeps the rows |rows|, [count], of the batch, counted from 0 on, in that order: row i of each
   * value is then what row rows[i] was. A row may be named twice and more (a beam search, a prompt
   * that goes on in several ways) or not at all (a request that is done); |count| may be 0. The rows
   * lie along the axis whose dimension has the name of the batch, which is the first name that an
   * input of the session which is not the state's shares with inputs of the state (its first axis is
   * looked at first), else along axis 0. Some values stay: those without dimensions, those whose first
   * dimension is a number while the batch has a name, and those that are not there yet. Nothing is
   * copied where all rows stay in their order; values on a device are copied there. INVALID_ARGUMENT
   * for a row that there is not, SHAPE_MISMATCH where the input's dimension is another number than
   * |count|, UNSUPPORTED for a value that is no tensor or grows along axis 0 itself. On failure nothing
   * changes. */
  pfrt_status* (*select_rows)(pfrt_state* state, const int64_t* rows, size_t count);
  /* Gives a copy, in host memory, of the value that input |input| will have; NULL where there is
   * none yet. */
  pfrt_status* (*get)(const pfrt_state* state, pfrt_string input, PFRT_OWN pfrt_value** out_value);
  /* Sets the value that input |input| will have; |value| is retained and must not be written any
   * more. */
  pfrt_status* (*set)(pfrt_state* state, pfrt_string input, pfrt_value* value);
  /* Sets values by the names of the outputs that leave them, each once: |values| is in the order of
   * |outputs|, both [count]. So a state begins with what a run elsewhere has made, such as that of a
   * model for prompts, which has the outputs and not the inputs. Values are retained and must not be
   * written any more, those on a device stay there; other inputs keep theirs. NOT_FOUND lists outputs
   * that are not the state's. On failure nothing changes. */
  pfrt_status* (*set_outputs)(pfrt_state* state, const pfrt_string* outputs, pfrt_value* const* values,
                              size_t count);
  /* Writes the values to a .pfm file, which load reads into a state of the same pairs. The file
   * is there whole or not at all. UNSUPPORTED for values that are not tensors. */
  pfrt_status* (*save)(const pfrt_state* state, pfrt_string path);
  /* Reads values that save wrote. Those that the file does not have are as in a new state.
   * DATA_LOSS when a checksum is wrong. On failure nothing changes. */
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
  pfrt_string kernel; /* the provider's name for it */
  pfrt_string reason;   /* why this provider */
  pfrt_string refused;  /* who refused it and why, or empty */
  /* Bytes read and written, and arithmetic operations, as the provider counts them. */
  uint64_t bytes, flops;
  double estimated_ns; /* the provider's estimate; 0 = none */
  double measured_ns;   /* 0 = not measured */
  double started_ns; /* start in the measured run, since the report's first step */
  uint32_t lane;     /* which lane ran it, from 0 on, in execution mode "parallel" */
  uint32_t reserved;
  /* Division of its work, where the session's option "tune" was on and the kernel has forms to
   * choose from; else empty. "NAME=NUMBER", separated by spaces: block sizes and the like as the
   * kernel names them, then |gain|, the default's time divided by that of the chosen form, and
   * |measured|, the number of forms that were measured for this plan; 0 = the result was
   * remembered. */
  pfrt_string tuning;
} pfrt_report_row;

/* A figure that a device counted by itself in the last run of some steps. Strings live as long as the report. */
typedef struct pfrt_report_counter {
  uint32_t struct_size;
  uint32_t first_row; /* of |row_count| rows whose steps it counts, all of one provider */
  uint32_t row_count; /* 1 = one step */
  uint32_t reserved;
  pfrt_string provider; /* whose device it is */
  pfrt_string name;     /* the provider's name for it: "cycles" */
  pfrt_string unit;     /* may be empty */
  double value;         /* any, also infinity and what is not a number */
} pfrt_report_counter;

/* Reading of the report that session->explain gives; immutable. */
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
/* Passes that rewrite a graph, in order, outside of any session. They are those that sessions
 * run by optimisation level, here to be configured pass by pass and watched. Options of kind
 * OPTIMIZER set the level, the number of iterations, and limits of each pass
 * ("constant_folding.max_tensor_bytes", "fusion.target_backend", ...: the schema has them all). */
typedef struct pfrt_optimizer pfrt_optimizer;
typedef struct pfrt_optimization pfrt_optimization; /* what a run has done */

/* Counts of changes that passes made. */
typedef struct pfrt_pass_stats {
  uint32_t struct_size;
  uint32_t modified; /* non-zero when the graph is another than before */
  uint64_t nodes_removed; /* nodes of the graph before that are gone */
  uint64_t nodes_added; /* nodes that were not there before */
  uint64_t nodes_fused; /* number of patterns fused */
  uint64_t constants_folded; /* values computed beforehand */
  uint64_t initializers_removed; /* initializers removed because nobody used them */
} pfrt_pass_stats;

/* Report of one pass over all its runs. */
typedef struct pfrt_pass_report {
  uint32_t struct_size;
  uint32_t runs; /* number of its runs */
  pfrt_string pass; /* name of the pass */
  double milliseconds; /* of all runs */
  uint64_t nodes_before; /* of the first run */
  uint64_t nodes_after;  /* of the last */
  const pfrt_pass_stats* stats; /* of all runs; lives as long as the result */
} pfrt_pass_report;

/* Optimizers. Externally synchronised; results are immutable. */
typedef struct pfrt_optimizer_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Creates an optimizer without passes. |options| of kind OPTIMIZER are copied; NULL =
   * defaults. */
  pfrt_status* (*create)(pfrt_env* env, const pfrt_options* options, PFRT_OWN pfrt_optimizer** out_optimizer);
  void (*release)(PFRT_OWN pfrt_optimizer* optimizer);
  /* Adds the built-in passes of the options' level. */
  pfrt_status* (*add_default_passes)(pfrt_optimizer* optimizer);
  /* Adds a built-in pass, or one of a plug-in, at the end; one of the same name is replaced in
   * place. |options| of kind OPTIMIZER configure it; NULL = the optimizer's. NOT_FOUND lists the
   * names there are. */
  pfrt_status* (*add_pass)(pfrt_optimizer* optimizer, pfrt_string name, const pfrt_options* options);
  /* Adds a pass of custom.h; |pass->after| is ignored. The graph it gets is the one being
   * optimised. */
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
  /* Sums over all passes. */
  pfrt_status* (*totals)(const pfrt_optimization* result, pfrt_pass_stats* out_stats);
  size_t (*report_count)(const pfrt_optimization* result);
  pfrt_status* (*report_at)(const pfrt_optimization* result, size_t index, pfrt_pass_report* out_report);
  /* Rewrites of that pass by the name of the rule, and the number of times that each was done. */
  size_t (*rule_count)(const pfrt_optimization* result, size_t report);
  /* Rewrite |index|, from 0 on, of rule_count(result, report). INVALID_ARGUMENT beyond. */
  pfrt_status* (*rule_at)(const pfrt_optimization* result, size_t report, size_t index, pfrt_string* out_rule,
                          uint64_t* out_count);
  size_t (*warning_count)(const pfrt_optimization* result);
  pfrt_string (*warning_at)(const pfrt_optimization* result, size_t index);

  /* Number of rewrites that the built-in passes know. Each has its pass, rule, lowest level word
   * or "by name", and a line that says what it replaces by what. */
  size_t (*known_rule_count)(void);
  /* Rewrite |index|, from 0 on, of known_rule_count. The strings live as long as the library. */
  pfrt_status* (*known_rule_at)(size_t index, pfrt_string* out_pass, pfrt_string* out_rule, pfrt_string* out_level,
                                pfrt_string* out_text);
} pfrt_optimizer_api;

/* Patterns of nodes, to be looked for in graphs. Externally synchronised. */
typedef struct pfrt_pattern pfrt_pattern;
typedef struct pfrt_matches pfrt_matches; /* keeps its graph */
/* For add_edge: any input that takes it. */
#define PFRT_ANY_INPUT UINT32_MAX

/* Patterns, and where they were found. */
typedef struct pfrt_pattern_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Creates a pattern without nodes. */
  pfrt_status* (*create)(PFRT_OWN pfrt_pattern** out_pattern);
  void (*release)(PFRT_OWN pfrt_pattern* pattern);
  /* Adds a node of operator |op| (empty = any) of |domain| ("" = ai.onnx); |name| is its name in
   * the pattern. */
  pfrt_status* (*add_node)(pfrt_pattern* pattern, pfrt_string op, pfrt_string domain, pfrt_string name);
  /* Demands that output |output| of |from| is input |input| (or PFRT_ANY_INPUT) of |to|. */
  pfrt_status* (*add_edge)(pfrt_pattern* pattern, pfrt_string from, uint32_t output, pfrt_string to, uint32_t input);
  /* Sets the node from which the others are reached along edges; without it, the last one added. */
  pfrt_status* (*set_root)(pfrt_pattern* pattern, pfrt_string name);
  /* Finds a match for each node that can be the root, producers first; matches may share other
   * nodes. */
  pfrt_status* (*find_all)(const pfrt_pattern* pattern, pfrt_graph* graph, PFRT_OWN pfrt_matches** out_matches);
  void (*release_matches)(PFRT_OWN pfrt_matches* matches);
  size_t (*match_count)(const pfrt_matches* matches);
  /* The graph's node that stands for the pattern's node |name|; PFRT_NO_NODE once it is removed. */
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

/* Settings of a cache. Zero has the meaning that each comment gives. */
typedef struct pfrt_cache_config {
  uint32_t struct_size;
  uint32_t copy;        /* 0 = entries are mapped, so that processes share them; else each reads a copy */
  pfrt_string folder;   /* made with the first entry; not empty */
  uint64_t max_bytes;   /* of all entries; those unused for longest are removed; 0 = no limit */
  uint64_t max_entries; /* limit of their number; 0 = no limit */
  int64_t ttl_s;        /* seconds after which an entry is not used any more; 0 = never */
} pfrt_cache_config;

/* An entry of a cache. Strings live for the call that hands this out. */
typedef struct pfrt_cache_entry {
  uint32_t struct_size;
  uint32_t valid; /* 1 when whole and not too old */
  pfrt_string key;  /* given by key, or to put */
  /* "compiled": a model as a session compiled it; "graph": given to put; "tuned": measurements. */
  pfrt_string kind;
  pfrt_string of;   /* the model's path, the graph's name, or how many measurements of which provider and machine */
  pfrt_string path; /* of the file */
  uint64_t bytes; /* of the file */
  int64_t created_ns, used_ns; /* since 1970; the last use to a second */
} pfrt_cache_entry;

/* Counts of an environment's cache in one folder, since it was first used. */
typedef struct pfrt_cache_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t hits, misses; /* a miss for each entry that was not there, too old or not usable */
  uint64_t stores, evictions; /* entries that were added, and that the limits took */
  uint64_t invalid; /* entries that were not usable */
} pfrt_cache_statistics;

/* Caches. Thread-safe. */
typedef struct pfrt_cache_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Opens the cache in |config|'s folder, with these limits from now on for loads and sessions
   * of the environment that use the folder. INVALID_ARGUMENT for a folder without a name. */
  pfrt_status* (*open)(pfrt_env* env, const pfrt_cache_config* config, PFRT_OWN pfrt_cache** out_cache);
  void (*retain)(pfrt_cache* cache);
  void (*release)(PFRT_OWN pfrt_cache* cache);
  /* Sets the cache, as open does, of the environment's loads and sessions that do not set
   * cache_dir; NULL restores that of PFRT_CACHE_DIR. */
  pfrt_status* (*set_default)(pfrt_env* env, const pfrt_cache_config* config);
  /* Computes the key under which any cache keeps a session of the model at |path| with |options|
   * (of kind SESSION, or NULL). It differs for other bytes, options, providers or processors.
   * Calls |fn| once with it. Fails as making the session does, and with UNSUPPORTED, saying why,
   * where such a session is not kept. */
  pfrt_status* (*key)(pfrt_env* env, pfrt_string path, const pfrt_options* options,
                      void (*fn)(void* user, pfrt_string key), void* user);
  /* Whether there is a usable entry of that key, of any kind. */
  pfrt_status* (*has)(pfrt_cache* cache, pfrt_string key, uint32_t* out_has);
  /* Reads the graph that was given to put, or that of a model that a session has compiled and
   * whose file is unchanged; NULL where there is none. */
  pfrt_status* (*get)(pfrt_cache* cache, pfrt_string key, PFRT_OWN pfrt_graph** out_graph);
  /* Stores a copy with all its constants, in place of one of that key. IO where it cannot be
   * written. */
  pfrt_status* (*put)(pfrt_cache* cache, pfrt_string key, const pfrt_graph* graph);
  /* Removes an entry. |out_removed| (may be NULL) says whether there was one. */
  pfrt_status* (*remove)(pfrt_cache* cache, pfrt_string key, uint32_t* out_removed);
  /* Removes all entries. |out_removed| (may be NULL) is their number. */
  pfrt_status* (*clear)(pfrt_cache* cache, uint64_t* out_removed);
  /* Removes entries that are too old or beyond the limits, as adding an entry does.
   * |out_removed| (may be NULL) is their number. */
  pfrt_status* (*evict)(pfrt_cache* cache, uint64_t* out_removed);
  /* Calls |fn| for each entry, those used last first. |check| 0 reads only the files' heads;
   * else whole files are read. */
  pfrt_status* (*list)(pfrt_cache* cache, uint32_t check, void (*fn)(void* user, const pfrt_cache_entry* entry),
                       void* user);
  /* Counts of the cache's use. Any thread. */
  pfrt_status* (*statistics)(pfrt_cache* cache, pfrt_cache_statistics* out_statistics);
} pfrt_cache_api;

/* ------------------------------------------------------------------ memory */
/* Memory for many blocks of similar sizes: freed blocks of the size classes wait for the next of their class; larger ones
 * are joined with their free neighbours, and the smallest that fits is taken. */
typedef struct pfrt_memory_pool pfrt_memory_pool;

/* Restrictions of a pool. */
enum {
  PFRT_POOL_ONE_THREAD = 1, /* externally synchronised */
  PFRT_POOL_NO_STATS = 2,   /* pool_stats is zero */
  PFRT_POOL_NO_GROWTH = 4   /* nothing beyond initial_pool_size */
};

/* Settings of a pool. All sizes are bytes. */
typedef struct pfrt_pool_config {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t flags; /* PFRT_POOL_ONE_THREAD and the like, or 0 */
  const uint64_t* size_classes; /* [size_class_count], in any order; none = powers of two from 64 to 4 Mi */
  size_t size_class_count;
  uint64_t max_blocks_per_class; /* most free blocks that a class keeps; 0 = 64 */
  uint64_t alignment;         /* of every block, a power of two up to 2 Mi; 0 = 64 */
  uint64_t memory_limit;      /* most that the pool may hold, free blocks included; 0 = no limit */
  uint64_t initial_pool_size; /* taken when the pool is made */
} pfrt_pool_config;

/* Counts of a pool's work. Sizes are bytes as they were asked for. */
typedef struct pfrt_pool_stats {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t total_allocated, total_freed; /* of all calls together */
  uint64_t num_allocations, num_frees; /* number of calls */
  uint64_t pool_hits, pool_misses; /* allocations from what the pool had, and with new memory */
  uint64_t current_usage, peak_usage; /* bytes in live blocks, now and at most */
} pfrt_pool_stats;

/* Pools of memory. Safe from any thread, but for pools that are to be of one. */
typedef struct pfrt_memory_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Creates a pool. |config| NULL = defaults. |base| (NULL = the system) gives the pool its
   * memory; it is copied, and released as with env->set_allocator. Blocks that are not
   * deallocated are freed with the last reference. INVALID_ARGUMENT names the field. */
  pfrt_status* (*create_pool)(const pfrt_pool_config* config, const pfrt_allocator* base,
                              PFRT_OWN pfrt_memory_pool** out_pool);
  /* Adds a reference. */
  void (*retain_pool)(pfrt_memory_pool* pool);
  /* Drops a reference; NULL is ignored. */
  void (*release_pool)(PFRT_OWN pfrt_memory_pool* pool);
  /* Allocates |bytes|, whose contents are undefined; |alignment| 0 = the pool's. OUT_OF_MEMORY
   * says whether the limit is reached. */
  pfrt_status* (*allocate)(pfrt_memory_pool* pool, uint64_t bytes, uint64_t alignment, void** out_data);
  /* Frees a block; NULL is ignored. NOT_FOUND: not of this pool; INVALID_ARGUMENT: freed
   * already, or inside a block. */
  pfrt_status* (*deallocate)(pfrt_memory_pool* pool, void* data);
  /* Resizes a block. Keeps its contents, and its address where there is room. |data| NULL =
   * allocate; on failure |data| stays as it is. */
  pfrt_status* (*reallocate)(pfrt_memory_pool* pool, void* data, uint64_t bytes, void** out_data);
  /* Frees every block. UNSUPPORTED for the global pool, whose blocks runs have. */
  pfrt_status* (*reset)(pfrt_memory_pool* pool);
  /* Makes |bytes| ready in one piece. */
  pfrt_status* (*reserve)(pfrt_memory_pool* pool, uint64_t bytes);
  /* Frees memory in which no block lies; |out_bytes| (may be NULL) is its size. */
  pfrt_status* (*trim)(pfrt_memory_pool* pool, uint64_t* out_bytes);
  /* Reads the pool's counts, all zero for a pool without statistics. */
  pfrt_status* (*pool_stats)(const pfrt_memory_pool* pool, pfrt_pool_stats* out_stats);
  /* Sets the counts to zero; blocks in use still count in current_usage. */
  pfrt_status* (*reset_stats)(pfrt_memory_pool* pool);
  /* Makes a new pool of the process, or ends its use (NULL). Tensors of value->create_tensor and
   * of runs, and the blocks that runs work in, come from it in every environment that has no
   * allocator of its own; constants of models and sessions do not. Allocations beyond its limit
   * fail with OUT_OF_MEMORY. Memory taken before goes back where it came from. INVALID_ARGUMENT
   * for a pool of one thread. */
  pfrt_status* (*set_global_pool)(const pfrt_pool_config* config);
  /* The pool of set_global_pool, else one of defaults, which only the caller takes from. Its
   * statistics also count the runs' memory outside of it: each tensor is a miss there, a block
   * that a run has from one before it is a hit, and idle blocks are in use. */
  pfrt_status* (*global_pool)(PFRT_OWN pfrt_memory_pool** out_pool);
} pfrt_memory_api;

/* ------------------------------------------------------------------ many requests */
/* Settings of a request. Zero is the default everywhere; NULL in place of a desc means all defaults. Read during the
 * call. Numbers of time and priority below 0 or above 2^40 are INVALID_ARGUMENT. */
typedef struct pfrt_request_desc {
  uint32_t struct_size;
  uint32_t stream; /* of streams: one more than the index of the stream; 0 = the least busy one. Of a batcher: 0 */
  const size_t* outputs; /* [output_count], indices of the outputs that are wanted, in any order; NULL = all */
  size_t output_count;   /* length of |outputs| */
  /* The request ends with CANCELLED once the number is not 0; NULL = only by cancel(id). It may be written as
   * pfrt_run_desc's, and stays where it is until the request is answered. */
  const uint32_t* cancel;
  int64_t timeout_ms; /* the request ends with DEADLINE so many milliseconds after the call; 0 = never */
  /* Of streams, and of a batcher with the option "by_priority": the highest first, where each step counts as 10 ms of
   * waiting, so that none waits for ever. */
  int64_t priority;
} pfrt_request_desc;

/* The answer to a request. */
typedef struct pfrt_response {
  uint32_t struct_size;
  uint32_t stream;  /* the index of the stream that ran it; 0 of a batcher */
  uint64_t id;      /* that submit gave */
  PFRT_OWN pfrt_status* status; /* NULL = success */
  /* [output_count], in session order, NULL where an output is not wanted; all NULL after a failure. Rows of a run that
   * was shared are views of its outputs, which live as long as any of these. The callee owns every value. */
  PFRT_OWN pfrt_value** outputs;
  size_t output_count; /* outputs of the session */
  int64_t rows;        /* of a batcher: of all requests that shared the run; 0 of streams, and without a run */
  uint64_t queued_ns;  /* from submit to the beginning of the run */
  uint64_t ran_ns;     /* of the run */
  uint64_t latency_ns; /* from submit to this call */
} pfrt_response;

/* Called once for each request that submit took. The answer is valid during the call, its status and values are the
 * callee's, which may release anything here, the batcher or streams included. Must not throw: what it throws is logged
 * and dropped. */
typedef void (*pfrt_response_fn)(void* user, pfrt_response* response);

/* Nanoseconds that runs of so many rows take. */
typedef struct pfrt_batch_time {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t rows;  /* padding included */
  uint64_t runs; /* that were measured */
  double ns;     /* of a run, late ones counting more */
} pfrt_batch_time;

/* Counts of a batcher since it was made, or since reset_statistics. */
typedef struct pfrt_batcher_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t submitted;   /* requests that submit took */
  uint64_t completed;   /* answered with success */
  uint64_t failed;      /* whose run failed */
  uint64_t cancelled;   /* by their caller, or by stop */
  uint64_t late;        /* whose time was over */
  uint64_t refused;     /* by submit, as the queue was full */
  uint64_t batches;     /* runs */
  uint64_t rows;        /* of requests, in all runs */
  uint64_t padded_rows; /* that were added to fill a batch up */
  uint64_t queued;      /* requests that wait now */
  uint64_t running;     /* runs under way now */
  double latency_ns;    /* sum over completed requests, from submit to their answer */
  double seconds;       /* since it was started, or since reset_statistics */
  pfrt_string unshared; /* why requests do not share runs; empty where they do. Lives as long as the batcher */
} pfrt_batcher_statistics;

/* Batchers: many threads submit requests, and those that fit together share a run of the session. Safe from any
 * thread; in a forked child a batcher refuses every request. */
typedef struct pfrt_batcher_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Makes a batcher of a session, which it keeps, by |options| of kind BATCHER (NULL = defaults). Requests share a run
   * where the graph is proved to compute each row of a batch by itself; where it does not they run alone, and
   * statistics say why. */
  pfrt_status* (*create)(pfrt_session* session, const pfrt_options* options, PFRT_OWN pfrt_batcher** out_batcher);
  void (*retain)(pfrt_batcher* batcher);
  /* The last release stops it. */
  void (*release)(PFRT_OWN pfrt_batcher* batcher);
  /* Starts its threads; nothing where they run. Requests that came before wait for it. */
  pfrt_status* (*start)(pfrt_batcher* batcher);
  /* Ends its threads: runs under way end as they would, and requests that wait are answered CANCELLED before this
   * returns. It may be started again. Called by |done| of a request, it returns at once and they end later. */
  pfrt_status* (*stop)(pfrt_batcher* batcher);
  /* Waits until every request that was taken before is answered. INVALID_ARGUMENT on a thread of the batcher's; BUSY
   * where it is not started and requests wait. */
  pfrt_status* (*flush)(pfrt_batcher* batcher);
  /* Takes a request and returns; |done| is called once, on a thread of the batcher's. |inputs| are in session order;
   * values are retained, and memory behind views stays until then. |out_id| (may be NULL) gets a number for cancel,
   * before |done| may be called. An error means that nothing was taken: BUSY where the queue is full (what to do is to
   * wait, or to answer the client so), CANCELLED after stop, INPUT and the like for inputs that do not fit. */
  pfrt_status* (*submit)(pfrt_batcher* batcher, const pfrt_io* inputs, size_t input_count, const pfrt_request_desc* desc,
                         pfrt_response_fn done, void* user, uint64_t* out_id);
  /* Submits a request and waits for its answer. The calling thread itself runs it where nothing waits and a run is to
   * spare, so that a single caller pays nothing for the batcher. |outputs| [output_count, the session's] gets the
   * values, NULL where one is not wanted; |out_response| (may be NULL) gets the rest, with its |status| and |outputs|
   * NULL. */
  pfrt_status* (*infer)(pfrt_batcher* batcher, const pfrt_io* inputs, size_t input_count, const pfrt_request_desc* desc,
                        PFRT_OWN pfrt_value** outputs, size_t output_count, pfrt_response* out_response);
  /* Ends a request with CANCELLED: one that waits is not run, and of one whose run is under way the others go on. |id| 0
   * = all that are not answered. NOT_FOUND where it is answered already, or never was. */
  pfrt_status* (*cancel)(pfrt_batcher* batcher, uint64_t id);
  pfrt_status* (*statistics)(const pfrt_batcher* batcher, pfrt_batcher_statistics* out_statistics); /* counts */
  /* Sets the counts to zero; those of what waits and runs stay. */
  pfrt_status* (*reset_statistics)(pfrt_batcher* batcher);
  /* How long runs take by their size, as it was measured while they happened: what the batcher waits by. |count| is the
   * length of |times|; |out_count| (may be NULL) is how many there are. */
  pfrt_status* (*times)(const pfrt_batcher* batcher, pfrt_batch_time* times, size_t count, size_t* out_count);
} pfrt_batcher_api;

/* Counts of streams since they were made. */
typedef struct pfrt_streams_statistics {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t submitted; /* requests that submit took */
  uint64_t completed; /* answered with success */
  uint64_t failed;    /* whose run failed */
  uint64_t cancelled; /* by their caller, or by stop */
  uint64_t late;      /* whose time was over */
  uint64_t refused;   /* by submit, as max_pending were not answered */
  uint64_t pending;   /* requests that are not answered now */
  double latency_ns;  /* sum over completed requests, from submit to their answer */
  double queued_ns;   /* of these, until their run began; 0 without "enable_profiling" */
  double ran_ns;      /* of these, of their runs; 0 without "enable_profiling" */
  double seconds;     /* since they were started */
} pfrt_streams_statistics;

/* Streams: queues of runs of one session. Each stream runs its requests one after another, in their order (a higher
 * priority goes first), on a thread of its own, so that the streams' runs overlap. Answers are given by other threads.
 * Safe from any thread; in a forked child they refuse every request. */
typedef struct pfrt_streams_api {
  uint32_t struct_size;
  uint32_t abi;
  /* Makes streams of a session, which they keep, by |options| of kind STREAMS (NULL = defaults). */
  pfrt_status* (*create)(pfrt_session* session, const pfrt_options* options, PFRT_OWN pfrt_streams** out_streams);
  void (*retain)(pfrt_streams* streams);
  /* The last release stops them. */
  void (*release)(PFRT_OWN pfrt_streams* streams);
  /* Starts the threads; nothing where they run. Requests that came before wait for it. */
  pfrt_status* (*start)(pfrt_streams* streams);
  /* As of a batcher: runs under way end as they would, what waits is answered CANCELLED. */
  pfrt_status* (*stop)(pfrt_streams* streams);
  /* As of a batcher; BUSY where "max_pending" requests are not answered. */
  pfrt_status* (*submit)(pfrt_streams* streams, const pfrt_io* inputs, size_t input_count, const pfrt_request_desc* desc,
                         pfrt_response_fn done, void* user, uint64_t* out_id);
  /* Ends a request with CANCELLED, whether it waits or runs; |id| 0 = all that are not answered. NOT_FOUND where it is
   * answered already, or never was. */
  pfrt_status* (*cancel)(pfrt_streams* streams, uint64_t id);
  /* Waits until what was given to stream |stream| - 1 before is answered; 0 = to every stream. INVALID_ARGUMENT where
   * there is no such stream, or on a thread of the streams'; BUSY where they are not started and requests wait. */
  pfrt_status* (*synchronize)(pfrt_streams* streams, uint32_t stream);
  /* Number of streams. */
  uint32_t (*count)(const pfrt_streams* streams);
  /* Index of the stream with the fewest requests that are not answered. */
  uint32_t (*select)(const pfrt_streams* streams);
  pfrt_status* (*statistics)(const pfrt_streams* streams, pfrt_streams_statistics* out_statistics); /* counts */
  /* Sets the counts to zero; that of what is pending stays. */
  pfrt_status* (*reset_statistics)(pfrt_streams* streams);
  /* The share of the time since the start that each stream has run, from 0 to 1; |count| is the length of |shares|. */
  pfrt_status* (*utilization)(const pfrt_streams* streams, double* shares, size_t count);
} pfrt_streams_api;

/* ------------------------------------------------------------------ the table */
/* All areas. Lives as long as the library. */
typedef struct pfrt_api {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_status_api* status; /* errors */
  const pfrt_options_api* options; /* of environments, loads, sessions, optimizers and questions */
  const pfrt_env_api* env; /* plug-ins, providers, threads */
  const pfrt_value_api* value; /* tensors and other values */
  const pfrt_graph_api* graph; /* building and editing */
  const pfrt_model_api* model; /* loading and saving */
  const pfrt_session_api* session; /* running */
  const pfrt_report_api* report; /* reading of explain's result */
  const pfrt_optimizer_api* optimizer; /* passes outside of sessions */
  const pfrt_pattern_api* pattern; /* looking for nodes */
  const pfrt_state_api* state; /* values that runs leave for the next */
  const pfrt_cache_api* cache; /* compiled models, kept in files */
  const pfrt_memory_api* memory; /* pools */
  const pfrt_batcher_api* batcher; /* requests that share runs */
  const pfrt_streams_api* streams; /* queues of runs */
} pfrt_api;

/* Facts that pfrt_get_api gives about the library. Strings live as long as the library. */
typedef struct pfrt_abi_info {
  uint32_t struct_size;
  uint32_t abi;       /* what this library implements */
  pfrt_string version; /* "0.1.0" */
  pfrt_string message; /* why NULL was returned, or empty */
} pfrt_abi_info;

/* The only exported symbol. |abi_version| is PFRT_ABI_VERSION as the caller was compiled. Returns NULL on another
 * major version, or a newer minor; |out_info| (may be NULL) says why. Also returns NULL, and leaves |out_info| as it is,
 * where its struct_size is not set. The table lives as long as the library. */
PFRT_EXPORT const pfrt_api* pfrt_get_api(uint32_t abi_version, pfrt_abi_info* out_info);

#ifdef __cplusplus
}
#endif
#endif
