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

/* Called when borrowed memory is no longer needed. */
typedef void (*pfrt_release_fn)(void* user, void* data);

/* ------------------------------------------------------------------ status */
typedef struct pfrt_status_api {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_code (*code)(const pfrt_status* status);
  pfrt_string (*message)(const pfrt_status* status);
  size_t (*child_count)(const pfrt_status* status);
  /* Borrowed; NULL when |index| is out of range. */
  const pfrt_status* (*child)(const pfrt_status* status, size_t index);
  void (*release)(PFRT_OWN pfrt_status* status);
  /* The fixed text of a code ("shape mismatch"); "unknown code" for one this library does not know. */
  pfrt_string (*code_text)(pfrt_code code);
} pfrt_status_api;

/* ------------------------------------------------------------------ options */
typedef uint32_t pfrt_options_kind;
enum {
  PFRT_OPTIONS_UNSET = 0,
  PFRT_OPTIONS_ENV = 1,
  PFRT_OPTIONS_LOAD = 2,
  PFRT_OPTIONS_SESSION = 3,
  PFRT_OPTIONS_RUN = 4,
  PFRT_OPTIONS_FORCE32 = 0x7fffffff
};

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

typedef struct pfrt_option_info {
  uint32_t struct_size;
  pfrt_option_type type;
  pfrt_string key;
  pfrt_string default_value; /* as text */
  pfrt_string choices;       /* "none basic extended all", or empty */
  pfrt_string doc;
} pfrt_option_info;

/* Setting an unknown key, a wrong type or a value outside the choices is INVALID_ARGUMENT naming the nearest key.
 * Setters are externally synchronised; cancel and reset_cancel may be called from any thread at any time. */
typedef struct pfrt_options_api {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_status* (*create)(pfrt_options_kind kind, PFRT_OWN pfrt_options** out_options);
  void (*retain)(pfrt_options* options);
  void (*release)(PFRT_OWN pfrt_options* options);
  pfrt_status* (*set_bool)(pfrt_options* options, pfrt_string key, uint32_t value);
  pfrt_status* (*set_int)(pfrt_options* options, pfrt_string key, int64_t value);
  pfrt_status* (*set_float)(pfrt_options* options, pfrt_string key, double value);
  pfrt_status* (*set_string)(pfrt_options* options, pfrt_string key, pfrt_string value);
  pfrt_status* (*set_strings)(pfrt_options* options, pfrt_string key, const pfrt_string* values, size_t count);
  /* Parses |text| by the key's type; lists are comma-separated. */
  pfrt_status* (*set_text)(pfrt_options* options, pfrt_string key, pfrt_string text);
  /* The value as text; lives until the key is set again or the handle goes. */
  pfrt_status* (*get_text)(const pfrt_options* options, pfrt_string key, pfrt_string* out_text);
  size_t (*schema_count)(pfrt_options_kind kind);
  pfrt_status* (*schema_at)(pfrt_options_kind kind, size_t index, pfrt_option_info* out_info);
  /* RUN and LOAD options: work that uses them stops with CANCELLED, now and later, until reset. */
  void (*cancel)(pfrt_options* options);
  void (*reset_cancel)(pfrt_options* options);
} pfrt_options_api;

/* ------------------------------------------------------------------ environment */
typedef struct pfrt_plugin_info {
  uint32_t struct_size;
  uint32_t loaded;    /* 1 when open and accepted */
  pfrt_string kind;   /* provider, import, ops, pass, service, transport */
  pfrt_string name;   /* from the file name */
  pfrt_string path;
  pfrt_string version;
  pfrt_string reason; /* why it was rejected, or empty */
  uint32_t abi_major, abi_minor;
} pfrt_plugin_info;

typedef struct pfrt_provider_info {
  uint32_t struct_size;
  uint32_t available;
  pfrt_string name;    /* CPUExecutionProvider */
  pfrt_string devices; /* comma-separated device words */
  pfrt_string path;
  pfrt_string reason;  /* why it is not available, or empty */
} pfrt_provider_info;

typedef struct pfrt_kernel_info {
  uint32_t struct_size;
  uint32_t since, until; /* canonical opset range; until 0 = still current */
  pfrt_string op, domain, types, name, isa;
} pfrt_kernel_info;

typedef struct pfrt_operator_info {
  uint32_t struct_size;
  uint32_t since, until; /* opset range this row accepts; until 0 = still current */
  pfrt_string op, domain;
  pfrt_string runs_in; /* provider or host */
} pfrt_operator_info;

typedef void (*pfrt_log_fn)(void* user, pfrt_log_level level, pfrt_string message);

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
} pfrt_env_api;

/* ------------------------------------------------------------------ values */
/* Values are immutable once shared, but for a tensor's bytes, which whoever holds it may write while no run
 * uses it. */
typedef struct pfrt_value_api {
  uint32_t struct_size;
  uint32_t abi;
  void (*retain)(pfrt_value* value);
  void (*release)(PFRT_OWN pfrt_value* value);
  pfrt_value_kind (*kind)(const pfrt_value* value);
  /* A tensor of its own memory, zeroed (strings: empty), 64-byte aligned. */
  pfrt_status* (*create_tensor)(pfrt_dtype dtype, const int64_t* dims, size_t rank, PFRT_OWN pfrt_value** out_value);
  /* A tensor over the caller's row-major memory; |release| (may be NULL) is called once when the last reference goes. */
  pfrt_status* (*wrap_tensor)(const pfrt_tensor* tensor, pfrt_release_fn release, void* user,
                              PFRT_OWN pfrt_value** out_value);
  /* The view of a tensor; for strings |data| is an array of pfrt_string. */
  pfrt_status* (*tensor)(const pfrt_value* value, pfrt_tensor* out_tensor);
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
  pfrt_status* (*map_parts)(const pfrt_value* value, pfrt_value** out_keys, pfrt_value** out_values);
  /* COO: |indices| int64 [nnz, rank] (or [nnz] of linear indices), |values| [nnz]. */
  pfrt_status* (*create_sparse)(pfrt_value* values, pfrt_value* indices, const int64_t* dims, size_t rank,
                                PFRT_OWN pfrt_value** out_value);
  pfrt_status* (*sparse_parts)(const pfrt_value* value, pfrt_value** out_values, pfrt_value** out_indices,
                               const int64_t** out_dims, size_t* out_rank);
  /* Element type of a tensor, sequence, optional, sparse tensor, or of a map's values. */
  pfrt_dtype (*dtype)(const pfrt_value* value);
} pfrt_value_api;

/* ------------------------------------------------------------------ graphs */
/* A described input, output or inner value. */
typedef struct pfrt_value_info {
  uint32_t struct_size;
  pfrt_value_kind kind;
  pfrt_dtype dtype;  /* of the tensor, or of the elements */
  int32_t rank;      /* -1 when unknown */
  pfrt_string name;
  const int64_t* dims;          /* -1 where dynamic */
  const pfrt_string* dim_names; /* empty where a dimension has no name; may be NULL */
  pfrt_dtype key_dtype;         /* of a map */
  uint32_t has_initializer;     /* an input with a default value */
} pfrt_value_info;

typedef struct pfrt_attr {
  uint32_t struct_size;
  pfrt_attr_type type;
  pfrt_string name;
  int64_t i;
  float f;
  uint32_t reserved;
  pfrt_string s; /* STRING; TYPE as text: "seq(tensor(float))", "tensor(float,[2,N,?])" */
  const int64_t* ints;
  const float* floats;
  const pfrt_string* strings;
  size_t count;       /* of ints, floats, strings, tensors or graphs */
  pfrt_value* tensor; /* TENSOR and SPARSE */
  pfrt_value* const* tensors;
  pfrt_graph* graph;  /* GRAPH: a body made by create_subgraph; when read, a borrowed view */
  pfrt_graph* const* graphs;
} pfrt_attr;

typedef struct pfrt_node {
  uint32_t struct_size;
  uint32_t id; /* stable while the node lives; ignored by add_node */
  pfrt_string name, op, domain, doc;
  const pfrt_string* inputs; /* value names; empty = absent optional input */
  size_t input_count;
  const pfrt_string* outputs;
  size_t output_count;
  size_t attr_count;
  const pfrt_attr* attrs;
} pfrt_node;

/* Externally synchronised. Reading functions take const graphs; strings and arrays they return live until the graph
 * is edited or released. */
typedef struct pfrt_graph_api {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_status* (*create)(pfrt_string name, PFRT_OWN pfrt_graph** out_graph);
  void (*retain)(pfrt_graph* graph);
  void (*release)(PFRT_OWN pfrt_graph* graph);
  /* A body for a GRAPH attribute of a node of |outer|: names it does not define are captured from |outer|. */
  pfrt_status* (*create_subgraph)(pfrt_graph* outer, pfrt_string name, PFRT_OWN pfrt_graph** out_graph);

  /* Unless set, each domain has the newest opset this library knows. */
  pfrt_status* (*set_opset)(pfrt_graph* graph, pfrt_string domain, int64_t version);
  pfrt_status* (*set_metadata)(pfrt_graph* graph, pfrt_string key, pfrt_string value);
  pfrt_status* (*add_input)(pfrt_graph* graph, const pfrt_value_info* info);
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
  pfrt_status* (*set_attr)(pfrt_graph* graph, uint32_t node_id, const pfrt_attr* attr);
  pfrt_status* (*remove_node)(pfrt_graph* graph, uint32_t node_id);

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
  pfrt_status* (*value_info)(const pfrt_graph* graph, pfrt_string name, pfrt_value_info* out_info);
  /* Node ids, producers first; VALIDATION when the graph has a cycle. The array lives until the next edit. */
  pfrt_status* (*topological_order)(pfrt_graph* graph, const uint32_t** out_ids, size_t* out_count);

  /* VALIDATION with one child a fault, all of them at once. */
  pfrt_status* (*validate)(pfrt_graph* graph);
  /* Fills in types and shapes of inner values as far as they follow from the inputs. */
  pfrt_status* (*infer_shapes)(pfrt_graph* graph);
} pfrt_graph_api;

/* ------------------------------------------------------------------ models */
typedef uint32_t pfrt_memory_mode;
enum { PFRT_MEMORY_MODE_UNSET = 0, PFRT_COPY = 1, PFRT_BORROW = 2, PFRT_MEMORY_MODE_FORCE32 = 0x7fffffff };

typedef struct pfrt_model_info {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_string graph_name, description;
  pfrt_string producer_name, producer_version, domain;
  int64_t model_version;
  pfrt_string format; /* onnx, pfm, graph */
  uint64_t node_count, initializer_count, parameter_count, parameter_bytes;
  double import_ms;
} pfrt_model_info;

typedef struct pfrt_model_api {
  uint32_t struct_size;
  uint32_t abi;
  /* The format is found by extension, then by content. |options| of kind LOAD or NULL. */
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
  pfrt_status* (*info)(const pfrt_model* model, pfrt_model_info* out_info);
  size_t (*metadata_count)(const pfrt_model* model);
  pfrt_status* (*metadata_at)(const pfrt_model* model, size_t index, pfrt_key_value* out_entry);
  size_t (*warning_count)(const pfrt_model* model);
  pfrt_status* (*warning_at)(const pfrt_model* model, size_t index, pfrt_string* out_warning);
} pfrt_model_api;

/* ------------------------------------------------------------------ sessions */
typedef struct pfrt_session_desc {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_model* model;
  const pfrt_options* options;      /* kind SESSION, or NULL */
  const pfrt_string* extra_outputs; /* inner values to append to the model's outputs, by name */
  size_t extra_output_count;
} pfrt_session_desc;

typedef uint64_t pfrt_io_flags;
enum { PFRT_IO_SKIP = 1 /* an output that is not wanted */ };

/* One input or output of a run.
 * Input: |value|, or a view; dtype 0 without a value = not fed (allowed where the input has an initializer).
 * Output: |tensor.data| NULL = allocate, |value| receives a reference; otherwise the result is written there (its
 * bytes must be the result's exactly) and |value| stays NULL. An output |value| given by the caller is written into. */
typedef struct pfrt_io {
  uint32_t struct_size;
  uint32_t reserved;
  pfrt_io_flags flags;
  pfrt_tensor tensor;
  pfrt_value* value;
} pfrt_io;

typedef struct pfrt_session_api {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_status* (*create)(pfrt_env* env, const pfrt_session_desc* desc, PFRT_OWN pfrt_session** out_session);
  void (*retain)(pfrt_session* session);
  void (*release)(PFRT_OWN pfrt_session* session);
  /* Inputs: those that must be fed, then those with initializers. Outputs: the model's, then the extra ones. */
  size_t (*input_count)(const pfrt_session* session);
  pfrt_status* (*input_at)(const pfrt_session* session, size_t index, pfrt_value_info* out_info);
  size_t (*output_count)(const pfrt_session* session);
  pfrt_status* (*output_at)(const pfrt_session* session, size_t index, pfrt_value_info* out_info);
  size_t (*provider_count)(const pfrt_session* session);
  pfrt_string (*provider_at)(const pfrt_session* session, size_t index);
  /* Both arrays are in session order; |options| of kind RUN or NULL. Safe from many threads at once. On failure no
   * output value is returned; memory given for outputs may have been written. */
  pfrt_status* (*run)(pfrt_session* session, const pfrt_io* inputs, size_t input_count, pfrt_io* outputs,
                      size_t output_count, const pfrt_options* options);
  /* What runs where and why; with times of the last profiled run where there was one. */
  pfrt_status* (*explain)(pfrt_session* session, PFRT_OWN pfrt_report** out_report);
  pfrt_model* (*model)(const pfrt_session* session); /* borrowed */
} pfrt_session_api;

/* ------------------------------------------------------------------ reports */
typedef struct pfrt_report_row {
  uint32_t struct_size;
  uint32_t index;
  pfrt_string nodes;    /* origin nodes, comma-separated */
  pfrt_string ops;      /* their operators */
  pfrt_string provider; /* or "host" */
  pfrt_string kernel;
  pfrt_string reason;   /* why this provider */
  pfrt_string refused;  /* who refused it and why, or empty */
  uint64_t bytes, flops;
  double estimated_ns;
  double measured_ns;   /* 0 = not measured */
} pfrt_report_row;

typedef struct pfrt_report_api {
  uint32_t struct_size;
  uint32_t abi;
  void (*release)(PFRT_OWN pfrt_report* report);
  size_t (*row_count)(const pfrt_report* report);
  pfrt_status* (*row_at)(const pfrt_report* report, size_t index, pfrt_report_row* out_row);
  /* Sentences about the whole: level and passes, providers opened or not, memory. */
  size_t (*note_count)(const pfrt_report* report);
  pfrt_string (*note_at)(const pfrt_report* report, size_t index);
} pfrt_report_api;

/* ------------------------------------------------------------------ the table */
typedef struct pfrt_api {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_status_api* status;
  const pfrt_options_api* options;
  const pfrt_env_api* env;
  const pfrt_value_api* value;
  const pfrt_graph_api* graph;
  const pfrt_model_api* model;
  const pfrt_session_api* session;
  const pfrt_report_api* report;
} pfrt_api;

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
