/* SPDX-License-Identifier: Apache-2.0
 *
 * Callbacks that a client registers with an environment: operators, providers and passes. Plug-ins
 * of kinds ops and pass hand over the same structs in their tables.
 *
 * Registration copies the structs and their strings; functions, |user| and tables must live until |release| is called,
 * once, when the last environment, model and session that can reach them is gone (also when the registration fails).
 * Callbacks may come from any thread and several at once, unless said otherwise; their arguments are valid during the
 * call only. They return a pfrt_code (0 = ok), after |fail| where there is something to say, and throw nothing. They
 * may use the client tables, but not the model or session that they are called for.
 */
#ifndef PYFLAME_RT_CUSTOM_H_
#define PYFLAME_RT_CUSTOM_H_

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------ operators */

/* Arguments of the shape callback: the node, and its inputs as far as they are known. */
typedef struct pfrt_op_infer {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  const pfrt_snapshot_node* node; /* its attributes are |attr_size| bytes apart; inputs and outputs are as below */
  uint32_t attr_size, value_size; /* strides of the arrays */
  uint32_t input_count, output_count;
  /* An entry for each input of the node. An absent one has no name, dtype 0 and rank -1. Dimensions
   * are as in snapshots: negative numbers are unknown ones, equal numbers the same one. |data|
   * is set for constants, and for content inputs whose contents are known. */
  const pfrt_snapshot_value* inputs;
  const pfrt_string* output_names; /* empty: nobody wants that output */
  /* Describes output |index|. A negative number among |dims| is that dimension of an input, or
   * unknown when no input has it; |rank| -1 says that nothing is known of the shape. Once all
   * inputs' dimensions (and content inputs) are numbers, dims must be too, unless the operator
   * is PFRT_OP_DATA_DEPENDENT. An output that is not set has the dtype that the operator names in
   * |output_types|, else that which the graph declares, else that of input 0. */
  pfrt_code (*set_output)(const struct pfrt_op_infer* context, uint32_t index, pfrt_dtype dtype, int32_t rank,
                          const int64_t* dims);
  /* Keeps the message for the caller, with node and operator before it; returns |code|. */
  pfrt_code (*fail)(const struct pfrt_op_infer* context, pfrt_code code, pfrt_string message);
} pfrt_op_infer;

/* Arguments of the create_state callback: the node, its types, and the values of its constant inputs. */
typedef struct pfrt_op_create {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  const pfrt_snapshot_node* node; /* its attributes are |attr_size| bytes apart; inputs and outputs are as below */
  uint32_t attr_size, value_size; /* strides of the arrays */
  uint32_t input_count, output_count;
  /* An entry for each input and output of the node; one that is absent or not wanted has no name, dtype 0 and rank -1.
   * Dimensions that differ from run to run are negative, as in snapshots. |data| is set for constants alone and, unlike
   * all else here, lives until release_state. An input that a graph around the node's passes into its body is no
   * constant there. */
  const pfrt_snapshot_value *inputs, *outputs;
  /* Returns 0 to go on, or the reason to stop, which create_state then returns. Ask every few milliseconds. */
  pfrt_code (*stop)(const struct pfrt_op_create* context);
  /* Keeps the message for the caller, with node and operator before it; returns |code|. */
  pfrt_code (*fail)(const struct pfrt_op_create* context, pfrt_code code, pfrt_string message);
} pfrt_op_create;

/* Arguments of the compute callback. */
typedef struct pfrt_op_compute {
  uint32_t struct_size;
  uint32_t abi;
  void* host;
  const pfrt_snapshot_node* node; /* its attributes are |attr_size| bytes apart */
  uint32_t attr_size, reserved; /* stride of the node's attributes */
  uint32_t input_count, output_count;
  const pfrt_tensor* inputs; /* row-major, read-only; absent: dtype 0 */
  /* Row-major. dtype 0: nobody wants it. data NULL with rank 0 and dims NULL: ask alloc_output. Otherwise write |bytes|
   * bytes at |data|, for the dimensions that the shape callback gave; texts are set by set_strings alone. */
  const pfrt_tensor* outputs;
  /* Names, [input_count] and [output_count]; empty where absent or not wanted. */
  const pfrt_string *input_names, *output_names;
  /* Gives memory for output |index|, once for each output: needed where the dimensions were not
   * known before. Where they were, |dtype| and |dims| must agree with them (SHAPE_MISMATCH,
   * DTYPE_MISMATCH). For an output nobody wants it succeeds and gives NULL. Strings are empty, and
   * read as an array of pfrt_string. */
  pfrt_code (*alloc_output)(const struct pfrt_op_compute* context, uint32_t index, pfrt_dtype dtype,
                            const int64_t* dims, uint32_t rank, void** out_data);
  /* Runs fn(arg, i, worker) for every i < n, as pfrt_step_context's parallel does. */
  void (*parallel)(const struct pfrt_op_compute* context, uint64_t n,
                   void (*fn)(void* arg, uint64_t i, uint32_t worker), void* arg);
  /* Returns 0 to go on, or the reason to stop, as pfrt_step_context's stop does. */
  pfrt_code (*stop)(const struct pfrt_op_compute* context);
  /* Keeps the message for the caller; returns |code|. May be called from functions under
   * parallel; the first message counts. */
  pfrt_code (*fail)(const struct pfrt_op_compute* context, pfrt_code code, pfrt_string message);
  /* Most pixels of an image that an operator decodes: the session's option "image.max_pixels". */
  uint64_t max_pixels;
  /* What create_state made for this node, NULL without it. Other calls, on other threads, may have the same. */
  void* state;
  /* Copies |count| texts to output |index|, which holds strings and has its memory, from element |first| on, row-major;
   * elements that are not set stay empty. Any thread, and functions under parallel. INVALID_ARGUMENT beyond the last
   * element; OK and without effect for an output nobody wants. */
  pfrt_code (*set_strings)(const struct pfrt_op_compute* context, uint32_t index, uint64_t first,
                           const pfrt_string* texts, uint64_t count);
} pfrt_op_compute;

/* Flags of an operator. */
typedef uint64_t pfrt_custom_op_flags;
enum {
  PFRT_OP_SERIAL = 1,        /* compute is called by one thread at a time, over all sessions */
  PFRT_OP_DATA_DEPENDENT = 2 /* dimensions of outputs may be known only when compute has run */
};

/* Any number of inputs or outputs, for max_inputs and max_outputs. */
#define PFRT_ANY_NUMBER UINT32_MAX

/* An operator on dense tensors of numbers, bools or strings. Attributes reach it as in snapshots: a node with a graph,
 * type or sparse tensor among its attributes is refused.
 *
 * Operators of one name and domain stand side by side if they differ in versions or types. A node gets one that is
 * known at the opset that its model imports of the domain (node->opset; the newest where it imports none), takes as
 * many inputs and outputs as the node has, and names no other type than the node has. Of several, the one that names
 * more types of inputs is taken, then more of outputs, then the one registered first. Where none fits, the session's
 * error lists the types there are; where a type that is not known decides, it says which. Two with the same types
 * whose versions overlap cannot be registered. */
typedef struct pfrt_custom_op {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_string name; /* without the domain */
  pfrt_string domain;     /* "" and "ai.onnx" are ONNX's own domain, where built-in names are taken */
  /* First and last opset of the domain in which the operator is known; since 0 = 1; until 0 = still current. */
  uint32_t since_version, until_version;
  uint32_t min_inputs, max_inputs;   /* max 0 = min; PFRT_ANY_NUMBER; trailing optional inputs count as absent */
  uint32_t min_outputs, max_outputs; /* min 0 = 1; max 0 = min; PFRT_ANY_NUMBER */
  /* Element types that it is for, by position; the last one is that of all further inputs or outputs. UNSET, and an
   * empty list, are any type. */
  const pfrt_dtype *input_types, *output_types; /* [input_type_count], [output_type_count] */
  uint32_t input_type_count, output_type_count;
  /* Bit i: infer wants the contents of input i (a shape, axes); i < 32. Texts are known only of constants. */
  uint32_t content_inputs;
  uint32_t reserved;
  pfrt_custom_op_flags flags; /* PFRT_OP_SERIAL and the like, or 0 */
  /* Infers types and shapes of the outputs. May be NULL: the operator is then
   * PFRT_OP_DATA_DEPENDENT. It must be pure: equal arguments give equal answers. */
  pfrt_code (*infer)(void* user, const pfrt_op_infer* context);
  /* Computes the outputs that are wanted. */
  pfrt_code (*compute)(void* user, const pfrt_op_compute* context);
  void (*release)(void* user); /* may be NULL */
  void* user;
  /* Prepares what all runs of a node share: a compiled pattern, a table, a vocabulary. May be NULL. Called once for
   * each node of a plan, before its first run: when a session is made, and when it plans its graph anew for another
   * kind of request or because a provider failed. An error is that of the session, or of the run that needed the plan,
   * and names the node. */
  pfrt_code (*create_state)(void* user, const pfrt_op_create* context, void** out_state);
  /* Releases a state, once, after the last run that uses it. May be NULL; not called for a state that is NULL. */
  void (*release_state)(void* user, void* state);
} pfrt_custom_op;

/* The table of a plug-in of kind ops. Its operators are registered when a model needs an operator that nobody knows. */
typedef struct pfrt_ops_table {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_custom_op* const* ops; /* [count] */
  size_t count; /* length of |ops| */
} pfrt_ops_table;

/* ------------------------------------------------------------------ providers */

/* A provider of the client's own. Its device word is the first of table->devices. */
typedef struct pfrt_client_provider {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_string name; /* name that sessions use: "MyExecutionProvider" */
  pfrt_provider_features features; /* as a plug-in's; a bit without its function is refused */
  const pfrt_provider_table* table; /* its functions; open may be NULL when |open| here is not */
  /* Opens a device in place of table->open, with |user| first. May be NULL: table->open is
   * called. */
  pfrt_code (*open)(void* user, pfrt_string device, const pfrt_key_value* options, size_t option_count,
                    const pfrt_sink* sink, pfrt_provider** out_provider);
  void (*release)(void* user); /* may be NULL */
  void* user;
} pfrt_client_provider;

/* ------------------------------------------------------------------ passes */

/* The lowest optimisation level at which a pass runs. */
typedef uint32_t pfrt_pass_level;
enum {
  PFRT_PASS_LEVEL_UNSET = 0, /* basic */
  PFRT_PASS_BASIC = 1,       /* runs at optimisation level basic and above */
  PFRT_PASS_EXTENDED = 2,
  PFRT_PASS_ALL = 3,
  PFRT_PASS_LEVEL_FORCE32 = 0x7fffffff
};

/* A call of a pass, valid while it lasts. Edits count when stats->modified is set to non-zero. The
 * pass's counts in |stats| and its warnings through |sink| are reported. */
typedef struct pfrt_pass_call {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_api* api; /* the client tables: the graph is read and edited with them */
  pfrt_graph* graph; /* a copy of the model's, to be edited in place; constants are shared */
  const pfrt_sink* sink;
  pfrt_pass_stats* stats; /* the library's, all zero but for struct_size */
} pfrt_pass_call;

/* A rewrite of graphs, run when a session is made. */
typedef struct pfrt_custom_pass {
  uint32_t struct_size;
  uint32_t abi;
  pfrt_string name; /* unique among passes */
  pfrt_string after; /* runs right after the registered pass of that name; empty = last. In an optimizer: after those
                        of these names, separated by commas, where they are there */
  pfrt_pass_level level; /* lowest level of sessions and optimizers at which it runs */
  uint32_t reserved;
  /* Edits |call|'s graph through the graph table, and keeps its inputs and outputs. A graph that was modified is
   * validated afterwards. */
  pfrt_code (*run)(void* user, pfrt_pass_call* call);
  void (*release)(void* user); /* may be NULL */
  void* user;
} pfrt_custom_pass;

/* The table of a plug-in of kind pass: what register_pass would be given. Sessions run such passes beside
 * the registered ones; an optimizer takes them by name. */
typedef struct pfrt_pass_table {
  uint32_t struct_size;
  uint32_t abi;
  const pfrt_custom_pass* const* passes; /* [count] */
  size_t count; /* length of |passes| */
} pfrt_pass_table;

#ifdef __cplusplus
}
#endif
#endif
