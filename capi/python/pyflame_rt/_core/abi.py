# SPDX-License-Identifier: Apache-2.0
"""The C ABI's structs and constants, written from the headers by generate.py; not to be edited."""
from ctypes import (CFUNCTYPE, Structure, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32,
                    c_uint64, c_void_p)

ABI_VERSION = 2 << 16 | 0
# ONNX's number, the guide's number, bits, name, ONNX's name
DTYPES = (
    (1, 0, 32, 'float32', 'float'),
    (2, 8, 8, 'uint8', 'uint8'),
    (3, 7, 8, 'int8', 'int8'),
    (4, 10, 16, 'uint16', 'uint16'),
    (5, 6, 16, 'int16', 'int16'),
    (6, 5, 32, 'int32', 'int32'),
    (7, 4, 64, 'int64', 'int64'),
    (8, 11, 0, 'string', 'string'),
    (9, 9, 8, 'bool', 'bool'),
    (10, 1, 16, 'float16', 'float16'),
    (11, 3, 64, 'float64', 'double'),
    (12, 12, 32, 'uint32', 'uint32'),
    (13, 13, 64, 'uint64', 'uint64'),
    (14, 14, 64, 'complex64', 'complex64'),
    (15, 15, 128, 'complex128', 'complex128'),
    (16, 2, 16, 'bfloat16', 'bfloat16'),
    (17, 16, 8, 'float8e4m3fn', 'float8e4m3fn'),
    (18, 17, 8, 'float8e4m3fnuz', 'float8e4m3fnuz'),
    (19, 18, 8, 'float8e5m2', 'float8e5m2'),
    (20, 19, 8, 'float8e5m2fnuz', 'float8e5m2fnuz'),
    (21, 20, 4, 'uint4', 'uint4'),
    (22, 21, 4, 'int4', 'int4'),
    (23, 22, 4, 'float4e2m1', 'float4e2m1'),
    (24, 23, 8, 'float8e8m0', 'float8e8m0'),
    (25, 24, 2, 'uint2', 'uint2'),
    (26, 25, 2, 'int2', 'int2'),
)
NO_INDEX = 0xffffffff
NO_NODE = 0xffffffff
ANY_INPUT = 0xffffffff
ANY_NUMBER = 0xffffffff


class String(Structure):
    _fields_ = [
        ("data", c_void_p),
        ("size", c_size_t),
    ]


class KeyValue(Structure):
    _fields_ = [
        ("key", String),
        ("value", String),
    ]


CODE_OK = 0
CODE_INVALID_ARGUMENT = 1
CODE_INPUT = 2
CODE_SHAPE_MISMATCH = 3
CODE_DTYPE_MISMATCH = 4
CODE_NOT_FOUND = 5
CODE_INVALID_MODEL = 6
CODE_UNSUPPORTED_FORMAT = 7
CODE_UNSUPPORTED_OPERATOR = 8
CODE_VALIDATION = 9
CODE_UNSUPPORTED = 10
CODE_PROVIDER = 11
CODE_PLUGIN = 12
CODE_CANCELLED = 13
CODE_DEADLINE = 14
CODE_OUT_OF_MEMORY = 15
CODE_DATA_LOSS = 16
CODE_DEVICE_LOST = 17
CODE_IO = 18
CODE_INTERNAL = 19
CODE_BUSY = 20

DTYPE_UNSET = 0
DTYPE_FLOAT32 = 1
DTYPE_UINT8 = 2
DTYPE_INT8 = 3
DTYPE_UINT16 = 4
DTYPE_INT16 = 5
DTYPE_INT32 = 6
DTYPE_INT64 = 7
DTYPE_STRING = 8
DTYPE_BOOL = 9
DTYPE_FLOAT16 = 10
DTYPE_FLOAT64 = 11
DTYPE_UINT32 = 12
DTYPE_UINT64 = 13
DTYPE_COMPLEX64 = 14
DTYPE_COMPLEX128 = 15
DTYPE_BFLOAT16 = 16
DTYPE_FLOAT8E4M3FN = 17
DTYPE_FLOAT8E4M3FNUZ = 18
DTYPE_FLOAT8E5M2 = 19
DTYPE_FLOAT8E5M2FNUZ = 20
DTYPE_UINT4 = 21
DTYPE_INT4 = 22
DTYPE_FLOAT4E2M1 = 23
DTYPE_FLOAT8E8M0 = 24
DTYPE_UINT2 = 25
DTYPE_INT2 = 26

VALUE_UNSET = 0
VALUE_TENSOR = 1
VALUE_SEQUENCE = 2
VALUE_MAP = 3
VALUE_OPTIONAL = 4
VALUE_SPARSE = 5

MEMORY_HOST = 0
MEMORY_DEVICE = 1

LOG_UNSET = 0
LOG_DEBUG = 1
LOG_INFO = 2
LOG_WARNING = 3
LOG_ERROR = 4
LOG_OFF = 5

ATTR_UNSET = 0
ATTR_FLOAT = 1
ATTR_INT = 2
ATTR_STRING = 3
ATTR_TENSOR = 4
ATTR_GRAPH = 5
ATTR_FLOATS = 6
ATTR_INTS = 7
ATTR_STRINGS = 8
ATTR_TENSORS = 9
ATTR_GRAPHS = 10
ATTR_SPARSE = 11
ATTR_TYPE = 13


class Quantization(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("axis", c_int32),
        ("block", c_uint64),
        ("scales", c_void_p),
        ("zero_points", c_void_p),
    ]


class Tensor(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_uint32),
        ("rank", c_uint32),
        ("memory", c_uint32),
        ("data", c_void_p),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("dims", c_void_p),
        ("strides", c_void_p),
        ("quantization", c_void_p),
        ("extension", c_void_p),
        ("device", c_uint32),
        ("reserved", c_uint32),
    ]


ReleaseFn = CFUNCTYPE(None, c_void_p, c_void_p)


class StatusApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("code", CFUNCTYPE(c_uint32, c_void_p)),
        ("message", CFUNCTYPE(String, c_void_p)),
        ("child_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("child", CFUNCTYPE(c_void_p, c_void_p, c_size_t)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("code_text", CFUNCTYPE(String, c_uint32)),
    ]


OPTIONS_UNSET = 0
OPTIONS_ENV = 1
OPTIONS_LOAD = 2
OPTIONS_SESSION = 3
OPTIONS_OPTIMIZER = 4
OPTIONS_ASK = 5

OPTION_UNSET = 0
OPTION_BOOL = 1
OPTION_INT = 2
OPTION_FLOAT = 3
OPTION_STRING = 4
OPTION_STRINGS = 5


class OptionInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("type", c_uint32),
        ("key", String),
        ("default_value", String),
        ("choices", String),
        ("doc", String),
    ]


ProgressFn = CFUNCTYPE(None, c_void_p, c_double, String)


class Weights(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("names", c_void_p),
        ("values", c_void_p),
        ("count", c_size_t),
        ("meta", c_void_p),
        ("meta_count", c_size_t),
    ]


class Definition(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("graph", c_void_p),
        ("weights", c_void_p),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, String)),
    ]


DefineFn = CFUNCTYPE(c_uint32, c_void_p, c_void_p)


class OptionsApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_uint32, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("set_bool", CFUNCTYPE(c_void_p, c_void_p, String, c_uint32)),
        ("set_int", CFUNCTYPE(c_void_p, c_void_p, String, c_int64)),
        ("set_float", CFUNCTYPE(c_void_p, c_void_p, String, c_double)),
        ("set_string", CFUNCTYPE(c_void_p, c_void_p, String, String)),
        ("set_strings", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p, c_size_t)),
        ("set_text", CFUNCTYPE(c_void_p, c_void_p, String, String)),
        ("get_text", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("schema_count", CFUNCTYPE(c_size_t, c_uint32)),
        ("schema_at", CFUNCTYPE(c_void_p, c_uint32, c_size_t, c_void_p)),
        ("cancel", CFUNCTYPE(None, c_void_p)),
        ("reset_cancel", CFUNCTYPE(None, c_void_p)),
        ("set_progress", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("set_definer", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


class PluginInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("loaded", c_uint32),
        ("kind", String),
        ("name", String),
        ("path", String),
        ("version", String),
        ("reason", String),
        ("abi_major", c_uint32),
        ("abi_minor", c_uint32),
    ]


class ProviderInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("available", c_uint32),
        ("name", String),
        ("devices", String),
        ("path", String),
        ("reason", String),
    ]


class KernelInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("since", c_uint32),
        ("until", c_uint32),
        ("reserved", c_uint32),
        ("op", String),
        ("domain", String),
        ("types", String),
        ("name", String),
        ("isa", String),
    ]


class OperatorInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("since", c_uint32),
        ("until", c_uint32),
        ("reserved", c_uint32),
        ("op", String),
        ("domain", String),
        ("runs_in", String),
        ("note", String),
        ("types", String),
    ]


LogFn = CFUNCTYPE(None, c_void_p, c_uint32, String)


class Allocator(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_uint64, c_uint64)),
        ("free", CFUNCTYPE(None, c_void_p, c_void_p, c_uint64)),
        ("release", CFUNCTYPE(None, c_void_p)),
    ]


class MemoryItem(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("alignment", c_uint32),
        ("name", String),
        ("bytes", c_uint64),
        ("first", c_uint32),
        ("last", c_uint32),
    ]


class MemoryRequest(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("graph", String),
        ("memory", String),
        ("items", c_void_p),
        ("count", c_size_t),
        ("offsets", c_void_p),
        ("bytes", c_uint64),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, String)),
        ("host", c_void_p),
    ]


class MemoryPlanner(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("create_plan", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    ]


class Executor(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("width", c_uint32),
        ("user", c_void_p),
        ("loop", CFUNCTYPE(None, c_void_p, c_uint32, c_uint64, c_void_p, c_void_p)),
        ("submit", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    ]


class ThreadHooks(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("create", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("join", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
    ]


class AskDesc(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("provider", String),
        ("verb", String),
        ("request", String),
        ("values", c_void_p),
        ("value_count", c_size_t),
        ("options", c_void_p),
    ]


EventFn = CFUNCTYPE(None, c_void_p, String, String)


class ServiceDesc(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("name", String),
        ("options", c_void_p),
        ("option_count", c_size_t),
        ("call", c_void_p),
        ("event", CFUNCTYPE(None, c_void_p, String, String)),
        ("event_user", c_void_p),
    ]


class EnvApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("set_logger", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("refresh_plugins", CFUNCTYPE(c_void_p, c_void_p)),
        ("plugin_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("plugin_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("provider_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("provider_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("kernel_count", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("kernel_at", CFUNCTYPE(c_void_p, c_void_p, String, c_size_t, c_void_p)),
        ("operator_count", CFUNCTYPE(c_size_t)),
        ("operator_at", CFUNCTYPE(c_void_p, c_size_t, c_void_p)),
        ("provider_option_count", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("provider_option_at", CFUNCTYPE(c_void_p, c_void_p, String, c_size_t, c_void_p)),
        ("service_option_count", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("service_option_at", CFUNCTYPE(c_void_p, c_void_p, String, c_size_t, c_void_p)),
        ("service_check", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("service_start", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("service_stop", CFUNCTYPE(None, c_void_p)),
        ("service_address", CFUNCTYPE(String, c_void_p)),
        ("service_ask", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("register_operator", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("unregister_operator", CFUNCTYPE(c_void_p, c_void_p, String, String)),
        ("custom_operator_count", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("custom_operator_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("register_provider", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("register_pass", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_allocator", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_executor", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_thread_hooks", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("ask", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("reply_release", CFUNCTYPE(None, c_void_p)),
        ("reply_text", CFUNCTYPE(String, c_void_p)),
        ("reply_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("reply_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("trim", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_memory_planner", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("importer_option_count", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("importer_option_at", CFUNCTYPE(c_void_p, c_void_p, String, c_size_t, c_void_p)),
    ]


class ValuePart(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("count", c_uint64),
        ("tensor", Tensor),
    ]


class ValueApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("kind", CFUNCTYPE(c_uint32, c_void_p)),
        ("create_tensor", CFUNCTYPE(c_void_p, c_uint32, c_void_p, c_size_t, c_void_p)),
        ("wrap_tensor", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("tensor", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_string", CFUNCTYPE(c_void_p, c_void_p, c_uint64, String)),
        ("count", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("element", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("create_sequence", CFUNCTYPE(c_void_p, c_uint32, c_void_p, c_size_t, c_void_p)),
        ("create_optional", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("create_map", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("map_parts", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("create_sparse", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)),
        ("sparse_parts", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("dtype", CFUNCTYPE(c_uint32, c_void_p)),
        ("create_on", CFUNCTYPE(c_void_p, c_void_p, String, c_uint32, c_void_p, c_size_t, c_void_p)),
        ("copy", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("wrap_unaligned", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("create_strings", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("strings", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("parts", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p)),
    ]


class ValueInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("dtype", c_uint32),
        ("rank", c_int32),
        ("name", String),
        ("dims", c_void_p),
        ("dim_names", c_void_p),
        ("key_dtype", c_uint32),
        ("has_initializer", c_uint32),
    ]


class Attr(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("type", c_uint32),
        ("name", String),
        ("i", c_int64),
        ("f", c_float),
        ("reserved", c_uint32),
        ("s", String),
        ("ints", c_void_p),
        ("floats", c_void_p),
        ("strings", c_void_p),
        ("count", c_size_t),
        ("tensor", c_void_p),
        ("tensors", c_void_p),
        ("graph", c_void_p),
        ("graphs", c_void_p),
    ]


class Node(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("id", c_uint32),
        ("name", String),
        ("op", String),
        ("domain", String),
        ("doc", String),
        ("inputs", c_void_p),
        ("input_count", c_size_t),
        ("outputs", c_void_p),
        ("output_count", c_size_t),
        ("attr_count", c_size_t),
        ("attrs", c_void_p),
    ]


class GraphApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, String, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("create_subgraph", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("set_opset", CFUNCTYPE(c_void_p, c_void_p, String, c_int64)),
        ("set_metadata", CFUNCTYPE(c_void_p, c_void_p, String, String)),
        ("add_input", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("add_output", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_value_info", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("add_initializer", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p, c_uint32, c_void_p, c_void_p)),
        ("add_initializer_value", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("add_node", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("set_attr", CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_void_p)),
        ("remove_node", CFUNCTYPE(c_void_p, c_void_p, c_uint32)),
        ("name", CFUNCTYPE(String, c_void_p)),
        ("opset_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("opset_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("metadata_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("metadata_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("input_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("input_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("output_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("output_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("initializer_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("initializer_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("node_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("node_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("value_info", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("topological_order", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("validate", CFUNCTYPE(c_void_p, c_void_p)),
        ("infer_shapes", CFUNCTYPE(c_void_p, c_void_p)),
        ("clone", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("set_name", CFUNCTYPE(c_void_p, c_void_p, String)),
        ("remove_opset", CFUNCTYPE(c_void_p, c_void_p, String)),
        ("remove_metadata", CFUNCTYPE(c_void_p, c_void_p, String)),
        ("node_by_id", CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_void_p)),
        ("find_node", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("next_node", CFUNCTYPE(c_uint32, c_void_p, c_uint32)),
        ("producer", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("consumers", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p, c_void_p)),
        ("rename_node", CFUNCTYPE(c_void_p, c_void_p, c_uint32, String)),
        ("set_node_inputs", CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_void_p, c_size_t)),
        ("set_node_outputs", CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_void_p, c_size_t)),
        ("remove_attr", CFUNCTYPE(c_void_p, c_void_p, c_uint32, String)),
        ("replace_uses", CFUNCTYPE(c_void_p, c_void_p, String, String, c_uint32)),
        ("rename_value", CFUNCTYPE(c_void_p, c_void_p, String, String)),
        ("replace_input", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("remove_input", CFUNCTYPE(c_void_p, c_void_p, c_size_t)),
        ("replace_output", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("remove_output", CFUNCTYPE(c_void_p, c_void_p, c_size_t)),
        ("initializer", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("remove_initializer", CFUNCTYPE(c_void_p, c_void_p, String)),
        ("initializer_for_write", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("validate_all", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("extract", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p)),
    ]


MEMORY_MODE_UNSET = 0
COPY = 1
BORROW = 2


class Reader(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("size", c_uint64),
        ("name", String),
        ("read_at", CFUNCTYPE(c_uint32, c_void_p, c_uint64, c_uint64, c_void_p, c_void_p)),
        ("open_beside", CFUNCTYPE(c_uint32, c_void_p, String, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("user", c_void_p),
    ]


class ModelInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("graph_name", String),
        ("description", String),
        ("producer_name", String),
        ("producer_version", String),
        ("domain", String),
        ("model_version", c_int64),
        ("format", String),
        ("node_count", c_uint64),
        ("initializer_count", c_uint64),
        ("parameter_count", c_uint64),
        ("parameter_bytes", c_uint64),
        ("import_ms", c_double),
        ("entry", String),
        ("entries", String),
    ]


class ModelApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("load_file", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p, c_void_p)),
        ("load_memory", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("from_graph", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("save", CFUNCTYPE(c_void_p, c_void_p, c_void_p, String, c_void_p)),
        ("graph", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("info", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("metadata_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("metadata_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("warning_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("warning_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("load_reader", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


class Sample(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("names", c_void_p),
        ("values", c_void_p),
        ("count", c_size_t),
    ]


class SampleSource(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("user", c_void_p),
        ("next", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("rewind", CFUNCTYPE(c_uint32, c_void_p)),
    ]


class SessionDesc(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("model", c_void_p),
        ("options", c_void_p),
        ("extra_outputs", c_void_p),
        ("extra_output_count", c_size_t),
        ("samples", c_void_p),
        ("sample_count", c_size_t),
        ("sample_source", c_void_p),
        ("log", CFUNCTYPE(None, c_void_p, c_uint32, String)),
        ("log_user", c_void_p),
        ("log_release", CFUNCTYPE(None, c_void_p)),
    ]


IO_SKIP = 1
IO_IN_PLACE = 4
IO_ON_DEVICE = 2


class Io(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("flags", c_uint64),
        ("tensor", Tensor),
        ("value", c_void_p),
    ]


ObserveFn = CFUNCTYPE(c_uint32, c_void_p, String, c_void_p)

RUN_KEEPS_STATE = 1


class RunDesc(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("log_level", c_uint32),
        ("cancel", c_void_p),
        ("timeout_ms", c_int64),
        ("num_threads", c_int64),
        ("priority", c_int64),
        ("memory_limit", c_int64),
        ("tag", String),
        ("flags", c_uint64),
        ("state", c_void_p),
        ("observe", CFUNCTYPE(c_uint32, c_void_p, String, c_void_p)),
        ("observe_user", c_void_p),
    ]


PROVIDER_CONDITION_UNSET = 0
PROVIDER_ACTIVE = 1
PROVIDER_RECOVERED = 2
PROVIDER_FAILING = 3
PROVIDER_FAILED = 4


class ProviderState(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("condition", c_uint32),
        ("name", String),
        ("reason", String),
        ("code", c_uint32),
        ("failures", c_uint32),
    ]


RunDoneFn = CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t)


class SessionStatistics(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("runs", c_uint64),
        ("failures", c_uint64),
        ("plans", c_uint64),
        ("planning_ns", c_uint64),
        ("in_parts", c_uint64),
    ]


class MemoryReport(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("weights", c_uint64),
        ("packed", c_uint64),
        ("in_use", c_uint64),
        ("idle", c_uint64),
        ("peak", c_uint64),
        ("states", c_uint64),
        ("device_in_use", c_uint64),
        ("device_idle", c_uint64),
        ("device_states", c_uint64),
    ]


PHASE_UNSET = 0
PHASE_INITIALIZING = 1
PHASE_READY = 2
PHASE_EXECUTING = 3
PHASE_INIT_ERROR = 4
PHASE_RUNTIME_ERROR = 5
PHASE_MEMORY_ERROR = 6
PHASE_DEVICE_ERROR = 7
PHASE_RECOVERING = 8
PHASE_MEMORY_RECOVERY = 9
PHASE_DEVICE_RECOVERY = 10
PHASE_FATAL_ERROR = 11
PHASE_CLEANUP = 12


class SessionApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("input_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("input_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("output_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("output_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("input_index", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("output_index", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("run", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p)),
        ("run_named", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p)),
        ("explain", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("model", CFUNCTYPE(c_void_p, c_void_p)),
        ("provider_state_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("provider_state", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("run_async", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)),
        ("readmit", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("statistics", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("end_profiling", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("profiling_start_ns", CFUNCTYPE(c_uint64, c_void_p)),
        ("trim", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("memory_report", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("phase", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


STATE_BY_NAMES = 0
STATE_REPLACED = 1
STATE_GROWS = 2
STATE_IN_PLACE = 3


class StatePair(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("growth", c_uint32),
        ("axis", c_uint32),
        ("reserved", c_uint32),
        ("input", String),
        ("output", String),
        ("capacity", c_uint64),
    ]


class StateApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("input_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("input_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("clone", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("clone_for", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p)),
        ("length", CFUNCTYPE(c_int64, c_void_p)),
        ("truncate", CFUNCTYPE(c_void_p, c_void_p, c_int64)),
        ("select_rows", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_size_t)),
        ("get", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("set", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("set_outputs", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p, c_size_t)),
        ("save", CFUNCTYPE(c_void_p, c_void_p, String)),
        ("load", CFUNCTYPE(c_void_p, c_void_p, String)),
    ]


class ReportRow(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("index", c_uint32),
        ("nodes", String),
        ("ops", String),
        ("provider", String),
        ("kernel", String),
        ("reason", String),
        ("refused", String),
        ("bytes", c_uint64),
        ("flops", c_uint64),
        ("estimated_ns", c_double),
        ("measured_ns", c_double),
        ("started_ns", c_double),
        ("lane", c_uint32),
        ("reserved", c_uint32),
        ("tuning", String),
    ]


class ReportCounter(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("first_row", c_uint32),
        ("row_count", c_uint32),
        ("reserved", c_uint32),
        ("provider", String),
        ("name", String),
        ("unit", String),
        ("value", c_double),
    ]


class ReportApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("row_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("row_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("note_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("note_at", CFUNCTYPE(String, c_void_p, c_size_t)),
        ("counter_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("counter_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
    ]


class PassStats(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("modified", c_uint32),
        ("nodes_removed", c_uint64),
        ("nodes_added", c_uint64),
        ("nodes_fused", c_uint64),
        ("constants_folded", c_uint64),
        ("initializers_removed", c_uint64),
    ]


class PassReport(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("runs", c_uint32),
        ("pass", String),
        ("milliseconds", c_double),
        ("nodes_before", c_uint64),
        ("nodes_after", c_uint64),
        ("stats", c_void_p),
    ]


class OptimizerApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("add_default_passes", CFUNCTYPE(c_void_p, c_void_p)),
        ("add_pass", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("add_custom_pass", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("pass_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("pass_at", CFUNCTYPE(String, c_void_p, c_size_t)),
        ("run", CFUNCTYPE(c_void_p, c_void_p, c_void_p, String, c_uint32, c_void_p)),
        ("release_result", CFUNCTYPE(None, c_void_p)),
        ("totals", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("report_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("report_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)),
        ("rule_count", CFUNCTYPE(c_size_t, c_void_p, c_size_t)),
        ("rule_at", CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p)),
        ("warning_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("warning_at", CFUNCTYPE(String, c_void_p, c_size_t)),
        ("known_rule_count", CFUNCTYPE(c_size_t)),
        ("known_rule_at", CFUNCTYPE(c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


class PatternApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("add_node", CFUNCTYPE(c_void_p, c_void_p, String, String, String)),
        ("add_edge", CFUNCTYPE(c_void_p, c_void_p, String, c_uint32, String, c_uint32)),
        ("set_root", CFUNCTYPE(c_void_p, c_void_p, String)),
        ("find_all", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("release_matches", CFUNCTYPE(None, c_void_p)),
        ("match_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("node", CFUNCTYPE(c_void_p, c_void_p, c_size_t, String, c_void_p)),
        ("is_single_consumer", CFUNCTYPE(c_void_p, c_void_p, c_size_t, String, c_void_p)),
    ]


class CacheConfig(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("copy", c_uint32),
        ("folder", String),
        ("max_bytes", c_uint64),
        ("max_entries", c_uint64),
        ("ttl_s", c_int64),
    ]


class CacheEntry(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("valid", c_uint32),
        ("key", String),
        ("kind", String),
        ("of", String),
        ("path", String),
        ("bytes", c_uint64),
        ("created_ns", c_int64),
        ("used_ns", c_int64),
    ]


class CacheStatistics(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("hits", c_uint64),
        ("misses", c_uint64),
        ("stores", c_uint64),
        ("evictions", c_uint64),
        ("invalid", c_uint64),
    ]


class CacheApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("open", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("retain", CFUNCTYPE(None, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("set_default", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("key", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p, c_void_p, c_void_p)),
        ("has", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("get", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("put", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("remove", CFUNCTYPE(c_void_p, c_void_p, String, c_void_p)),
        ("clear", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("evict", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("list", CFUNCTYPE(c_void_p, c_void_p, c_uint32, c_void_p, c_void_p)),
        ("statistics", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
    ]


POOL_ONE_THREAD = 1
POOL_NO_STATS = 2
POOL_NO_GROWTH = 4


class PoolConfig(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("flags", c_uint64),
        ("size_classes", c_void_p),
        ("size_class_count", c_size_t),
        ("max_blocks_per_class", c_uint64),
        ("alignment", c_uint64),
        ("memory_limit", c_uint64),
        ("initial_pool_size", c_uint64),
    ]


class PoolStats(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("total_allocated", c_uint64),
        ("total_freed", c_uint64),
        ("num_allocations", c_uint64),
        ("num_frees", c_uint64),
        ("pool_hits", c_uint64),
        ("pool_misses", c_uint64),
        ("current_usage", c_uint64),
        ("peak_usage", c_uint64),
    ]


class MemoryApi(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create_pool", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_void_p)),
        ("retain_pool", CFUNCTYPE(None, c_void_p)),
        ("release_pool", CFUNCTYPE(None, c_void_p)),
        ("allocate", CFUNCTYPE(c_void_p, c_void_p, c_uint64, c_uint64, c_void_p)),
        ("deallocate", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("reallocate", CFUNCTYPE(c_void_p, c_void_p, c_void_p, c_uint64, c_void_p)),
        ("reset", CFUNCTYPE(c_void_p, c_void_p)),
        ("reserve", CFUNCTYPE(c_void_p, c_void_p, c_uint64)),
        ("trim", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("pool_stats", CFUNCTYPE(c_void_p, c_void_p, c_void_p)),
        ("reset_stats", CFUNCTYPE(c_void_p, c_void_p)),
        ("set_global_pool", CFUNCTYPE(c_void_p, c_void_p)),
        ("global_pool", CFUNCTYPE(c_void_p, c_void_p)),
    ]


class Api(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("status", c_void_p),
        ("options", c_void_p),
        ("env", c_void_p),
        ("value", c_void_p),
        ("graph", c_void_p),
        ("model", c_void_p),
        ("session", c_void_p),
        ("report", c_void_p),
        ("optimizer", c_void_p),
        ("pattern", c_void_p),
        ("state", c_void_p),
        ("cache", c_void_p),
        ("memory", c_void_p),
    ]


class AbiInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("version", String),
        ("message", String),
    ]


PLUGIN_UNSET = 0
PLUGIN_PROVIDER = 1
PLUGIN_IMPORT = 2
PLUGIN_OPS = 3
PLUGIN_PASS = 4
PLUGIN_SERVICE = 5
PLUGIN_TRANSPORT = 6
PLUGIN_EXECUTOR = 7

SANITIZER_NONE = 0
SANITIZER_ADDRESS = 1
SANITIZER_THREAD = 2


class HostInfo(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("abi_major", c_uint32),
        ("min_minor", c_uint32),
        ("max_minor", c_uint32),
        ("sanitizer", c_uint32),
        ("version", String),
    ]


class PluginDesc(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("abi_major", c_uint32),
        ("min_minor", c_uint32),
        ("max_minor", c_uint32),
        ("kind", c_uint32),
        ("sanitizer", c_uint32),
        ("reserved", c_uint32),
        ("features", c_uint64),
        ("name", String),
        ("version", String),
        ("table", c_void_p),
    ]


PluginQueryFn = CFUNCTYPE(c_uint32, c_void_p, c_void_p)

TUNE_UNSET = 0
TUNE_RACE = 1
TUNE_RANDOM = 2
TUNE_MODEL = 3


class Tuning(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("search", c_uint32),
        ("iterations", c_uint32),
        ("repeats", c_uint32),
        ("reserved", c_uint32),
        ("recall", CFUNCTYPE(c_uint32, c_void_p, String, c_void_p)),
        ("remember", CFUNCTYPE(c_uint32, c_void_p, String, String)),
        ("left_ns", CFUNCTYPE(c_uint64, c_void_p, c_uint64)),
    ]


class Sink(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_uint32, String)),
        ("log", CFUNCTYPE(None, c_void_p, c_uint32, String)),
        ("stop", CFUNCTYPE(c_uint32, c_void_p)),
        ("progress", CFUNCTYPE(None, c_void_p, c_double)),
        ("tuning", c_void_p),
    ]


SNAPSHOT_CONSTANT = 1
SNAPSHOT_GRAPH_INPUT = 2
SNAPSHOT_GRAPH_OUTPUT = 4
SNAPSHOT_NOT_TENSOR = 8


class SnapshotValue(Structure):
    _fields_ = [
        ("name", String),
        ("flags", c_uint64),
        ("dtype", c_uint32),
        ("rank", c_int32),
        ("dims", c_void_p),
        ("data", c_void_p),
        ("bytes", c_uint64),
        ("hash", c_uint64 * 2),
        ("producer", c_uint32),
        ("consumer_count", c_uint32),
    ]


class SnapshotAttr(Structure):
    _fields_ = [
        ("name", String),
        ("type", c_uint32),
        ("f", c_float),
        ("i", c_int64),
        ("s", String),
        ("ints", c_void_p),
        ("floats", c_void_p),
        ("strings", c_void_p),
        ("count", c_uint64),
        ("tensor", Tensor),
    ]


class SnapshotNode(Structure):
    _fields_ = [
        ("name", String),
        ("op", String),
        ("domain", String),
        ("id", c_uint32),
        ("canonical", c_uint32),
        ("inputs", c_void_p),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
        ("outputs", c_void_p),
        ("attrs", c_void_p),
        ("attr_count", c_uint64),
        ("tail_of", c_uint32),
        ("opset", c_uint32),
    ]


class Snapshot(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("node_size", c_uint32),
        ("value_size", c_uint32),
        ("attr_size", c_uint32),
        ("node_count", c_uint32),
        ("value_count", c_uint32),
        ("reserved", c_uint32),
        ("nodes", c_void_p),
        ("values", c_void_p),
    ]


class OpQuery(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("snapshot", c_void_p),
        ("node", c_uint32),
        ("tail_count", c_uint32),
        ("tail", c_void_p),
    ]


class Claims(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("accept", CFUNCTYPE(None, c_void_p, c_uint32, c_double, c_uint64)),
        ("refuse", CFUNCTYPE(None, c_void_p, c_uint32, String)),
        ("group", CFUNCTYPE(None, c_void_p, c_void_p, c_uint32, c_double)),
        ("transfer", CFUNCTYPE(None, c_void_p, c_double, c_double)),
    ]


COMPILE_RUN_ONCE = 1
COMPILE_PLAIN = 2
COMPILE_FAST = 4
COMPILE_BF16 = 8
COMPILE_TUNE = 16
COMPILE_APART = 32
COMPILE_BATCH = 64


class Region(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("snapshot", c_void_p),
        ("nodes", c_void_p),
        ("inputs", c_void_p),
        ("outputs", c_void_p),
        ("node_count", c_uint32),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
        ("reserved", c_uint32),
        ("hints", c_uint64),
        ("node_hints", c_void_p),
    ]


class PackedConstant(Structure):
    _fields_ = [
        ("sources", c_void_p),
        ("source_count", c_uint32),
        ("alignment", c_uint32),
        ("recipe", String),
        ("bytes", c_uint64),
        ("pack", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("user", c_void_p),
    ]


class Shapes(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("ranks", c_void_p),
        ("dims", c_void_p),
        ("value_count", c_uint32),
        ("reserved", c_uint32),
        ("least", c_void_p),
    ]


BUFFER_UNSET = 0
BUFFER_IN = 1
BUFFER_OUT = 2
BUFFER_TEMP = 3
BUFFER_CONST = 4
BUFFER_INITIALIZER = 5
BUFFER_PART = 6


class Buffer(Structure):
    _fields_ = [
        ("kind", c_uint32),
        ("index", c_uint32),
        ("bytes", c_uint64),
        ("alignment", c_uint32),
        ("may_alias", c_uint32),
        ("memory", c_uint32),
        ("reserved", c_uint32),
        ("offset", c_uint64),
    ]


class StepContext(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("buffers", c_void_p),
        ("run", c_uint64),
        ("workers", c_uint32),
        ("reserved", c_uint32),
        ("parallel", CFUNCTYPE(None, c_void_p, c_uint64, c_void_p, c_void_p)),
        ("stop", CFUNCTYPE(c_uint32, c_void_p)),
        ("scratch", CFUNCTYPE(c_void_p, c_void_p, c_uint32)),
        ("alloc_output", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_void_p, c_uint32, c_void_p)),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, String)),
        ("dims", c_void_p),
        ("set_strings", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_uint64, c_void_p, c_uint64)),
    ]


STEP_LONG = 1


class Step(Structure):
    _fields_ = [
        ("run", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("state", c_void_p),
        ("reads", c_void_p),
        ("writes", c_void_p),
        ("read_count", c_uint32),
        ("write_count", c_uint32),
        ("nodes", c_void_p),
        ("node_count", c_uint32),
        ("width", c_uint32),
        ("scratch_bytes", c_uint64),
        ("est_ns", c_double),
        ("flops", c_uint64),
        ("bytes", c_uint64),
        ("kernel", String),
        ("flags", c_uint64),
        ("detail", String),
        ("tuning", String),
    ]


class Program(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("buffer_size", c_uint32),
        ("step_size", c_uint32),
        ("buffer_count", c_uint32),
        ("step_count", c_uint32),
        ("buffers", c_void_p),
        ("steps", c_void_p),
        ("handle", c_void_p),
    ]


PROVIDER_SUPPORTS = 1
PROVIDER_SIMULATED = 2
PROVIDER_CONSTANTS = 4
PROVIDER_KERNELS = 8
PROVIDER_OPTIONS = 16
PROVIDER_MEMORY = 32
PROVIDER_FENCES = 64
PROVIDER_DEFERRED = 256
PROVIDER_NO_FOLD = 512
PROVIDER_OWN_THREADS = 1024
PROVIDER_RUNS = 2048
PROVIDER_REPORT = 4096
PROVIDER_FINGERPRINT = 8192
PROVIDER_ASK = 16384
PROVIDER_RANGES = 65536
PROVIDER_BATCH = 131072

DIRECTION_UNSET = 0
TO_DEVICE = 1
TO_HOST = 2
ON_DEVICE = 3


class DeviceCopy(Structure):
    _fields_ = [
        ("dst", c_void_p),
        ("src", c_void_p),
        ("bytes", c_uint64),
        ("direction", c_uint32),
        ("reserved", c_uint32),
    ]


class Counters(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("add", CFUNCTYPE(None, c_void_p, String, c_double, String, c_uint32)),
    ]


class Question(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("verb", String),
        ("request", String),
        ("tensors", c_void_p),
        ("tensor_size", c_size_t),
        ("tensor_count", c_size_t),
        ("threads", c_uint32),
        ("reserved", c_uint32),
    ]


class Answer(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("text", CFUNCTYPE(None, c_void_p, String)),
        ("tensor", CFUNCTYPE(None, c_void_p, String, c_void_p)),
    ]


class ProviderTable(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("devices", String),
        ("open", CFUNCTYPE(c_uint32, String, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("close", CFUNCTYPE(None, c_void_p)),
        ("claim", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("compile", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p, c_void_p)),
        ("release_executable", CFUNCTYPE(None, c_void_p)),
        ("specialise", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("release_program", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("supports", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("constants", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("kernel_count", CFUNCTYPE(c_size_t, c_void_p)),
        ("kernel_at", CFUNCTYPE(c_uint32, c_void_p, c_size_t, c_void_p)),
        ("option_count", CFUNCTYPE(c_size_t)),
        ("option_at", CFUNCTYPE(c_uint32, c_size_t, c_void_p)),
        ("allocate", CFUNCTYPE(c_uint32, c_void_p, c_uint64, c_uint64, c_uint32, c_void_p, c_void_p)),
        ("release_memory", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("copy", CFUNCTYPE(c_uint32, c_void_p, c_uint64, c_void_p, c_size_t, c_size_t, c_void_p)),
        ("signal", CFUNCTYPE(c_uint32, c_void_p, c_uint64, c_void_p, c_void_p)),
        ("wait", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("release_fence", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("run_begin", CFUNCTYPE(c_uint32, c_void_p, c_uint64, c_void_p)),
        ("run_end", CFUNCTYPE(None, c_void_p, c_uint64)),
        ("report", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("fingerprint", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("ask", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


IMPORTER_SAVE = 1
IMPORTER_OPTIONS = 2


class ImportRequest(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("api", c_void_p),
        ("graph", c_void_p),
        ("path", String),
        ("data", c_void_p),
        ("size", c_uint64),
        ("file", c_void_p),
        ("options", c_void_p),
        ("option_count", c_size_t),
        ("file_retain", CFUNCTYPE(None, c_void_p)),
        ("file_release", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("open_beside", CFUNCTYPE(c_uint32, c_void_p, String, c_void_p, c_void_p, c_void_p, c_void_p)),
        ("warn", CFUNCTYPE(None, c_void_p, String)),
        ("set_info", CFUNCTYPE(None, c_void_p, String, String)),
        ("choose_entry", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("add_state", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("define", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
    ]


class ExportRequest(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("api", c_void_p),
        ("graph", c_void_p),
        ("path", String),
        ("info", c_void_p),
        ("info_count", c_size_t),
        ("write", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_void_p, c_uint64, c_void_p)),
        ("add_sidecar", CFUNCTYPE(c_uint32, c_void_p, String, c_void_p, c_void_p)),
    ]


class ImporterTable(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("extensions", c_void_p),
        ("extension_count", c_size_t),
        ("probe", CFUNCTYPE(c_uint32, c_void_p, c_uint64)),
        ("load", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("save", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("option_count", CFUNCTYPE(c_size_t)),
        ("option_at", CFUNCTYPE(c_uint32, c_size_t, c_void_p)),
    ]


class Events(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("event", CFUNCTYPE(None, c_void_p, String, String)),
    ]


class ServiceRequest(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("api", c_void_p),
        ("env", c_void_p),
        ("options", c_void_p),
        ("option_count", c_size_t),
        ("events", c_void_p),
    ]


SERVICE_ADDRESS = 1
SERVICE_OPTIONS = 2
SERVICE_CHECK = 4
SERVICE_ASK = 8


class ServiceTable(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("start", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("stop", CFUNCTYPE(None, c_void_p)),
        ("address", CFUNCTYPE(String, c_void_p)),
        ("option_count", CFUNCTYPE(c_size_t)),
        ("option_at", CFUNCTYPE(c_uint32, c_size_t, c_void_p)),
        ("check", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("ask", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]


class ExecutorTable(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("create", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
    ]


class OpInfer(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("node", c_void_p),
        ("attr_size", c_uint32),
        ("value_size", c_uint32),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
        ("inputs", c_void_p),
        ("output_names", c_void_p),
        ("set_output", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_uint32, c_int32, c_void_p)),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, String)),
    ]


class OpCreate(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("node", c_void_p),
        ("attr_size", c_uint32),
        ("value_size", c_uint32),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
        ("inputs", c_void_p),
        ("outputs", c_void_p),
        ("stop", CFUNCTYPE(c_uint32, c_void_p)),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, String)),
    ]


class OpCompute(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("host", c_void_p),
        ("node", c_void_p),
        ("attr_size", c_uint32),
        ("reserved", c_uint32),
        ("input_count", c_uint32),
        ("output_count", c_uint32),
        ("inputs", c_void_p),
        ("outputs", c_void_p),
        ("input_names", c_void_p),
        ("output_names", c_void_p),
        ("alloc_output", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_uint32, c_void_p, c_uint32, c_void_p)),
        ("parallel", CFUNCTYPE(None, c_void_p, c_uint64, c_void_p, c_void_p)),
        ("stop", CFUNCTYPE(c_uint32, c_void_p)),
        ("fail", CFUNCTYPE(c_uint32, c_void_p, c_uint32, String)),
        ("max_pixels", c_uint64),
        ("state", c_void_p),
        ("set_strings", CFUNCTYPE(c_uint32, c_void_p, c_uint32, c_uint64, c_void_p, c_uint64)),
    ]


OP_SERIAL = 1
OP_DATA_DEPENDENT = 2


class CustomOp(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("name", String),
        ("domain", String),
        ("since_version", c_uint32),
        ("until_version", c_uint32),
        ("min_inputs", c_uint32),
        ("max_inputs", c_uint32),
        ("min_outputs", c_uint32),
        ("max_outputs", c_uint32),
        ("input_types", c_void_p),
        ("output_types", c_void_p),
        ("input_type_count", c_uint32),
        ("output_type_count", c_uint32),
        ("content_inputs", c_uint32),
        ("reserved", c_uint32),
        ("flags", c_uint64),
        ("infer", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("compute", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("user", c_void_p),
        ("create_state", CFUNCTYPE(c_uint32, c_void_p, c_void_p, c_void_p)),
        ("release_state", CFUNCTYPE(None, c_void_p, c_void_p)),
    ]


class OpsTable(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("ops", c_void_p),
        ("count", c_size_t),
    ]


class ClientProvider(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("name", String),
        ("features", c_uint64),
        ("table", c_void_p),
        ("open", CFUNCTYPE(c_uint32, c_void_p, String, c_void_p, c_size_t, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("user", c_void_p),
    ]


PASS_LEVEL_UNSET = 0
PASS_BASIC = 1
PASS_EXTENDED = 2
PASS_ALL = 3


class PassCall(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("api", c_void_p),
        ("graph", c_void_p),
        ("sink", c_void_p),
        ("stats", c_void_p),
    ]


class CustomPass(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("name", String),
        ("after", String),
        ("level", c_uint32),
        ("reserved", c_uint32),
        ("run", CFUNCTYPE(c_uint32, c_void_p, c_void_p)),
        ("release", CFUNCTYPE(None, c_void_p)),
        ("user", c_void_p),
    ]


class PassTable(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("abi", c_uint32),
        ("passes", c_void_p),
        ("count", c_size_t),
    ]
