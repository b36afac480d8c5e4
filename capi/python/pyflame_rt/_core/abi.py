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


STATUS_API = {
    "code": (8, c_uint32, c_void_p),
    "message": (16, String, c_void_p),
    "child_count": (24, c_size_t, c_void_p),
    "child": (32, c_void_p, c_void_p, c_size_t),
    "release": (40, None, c_void_p),
    "code_text": (48, String, c_uint32),
}


OPTIONS_UNSET = 0
OPTIONS_ENV = 1
OPTIONS_LOAD = 2
OPTIONS_SESSION = 3
OPTIONS_OPTIMIZER = 4
OPTIONS_ASK = 5
OPTIONS_BATCHER = 6
OPTIONS_STREAMS = 7

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


OPTIONS_API = {
    "create": (8, c_void_p, c_uint32, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "set_bool": (32, c_void_p, c_void_p, String, c_uint32),
    "set_int": (40, c_void_p, c_void_p, String, c_int64),
    "set_float": (48, c_void_p, c_void_p, String, c_double),
    "set_string": (56, c_void_p, c_void_p, String, String),
    "set_strings": (64, c_void_p, c_void_p, String, c_void_p, c_size_t),
    "set_text": (72, c_void_p, c_void_p, String, String),
    "get_text": (80, c_void_p, c_void_p, String, c_void_p),
    "schema_count": (88, c_size_t, c_uint32),
    "schema_at": (96, c_void_p, c_uint32, c_size_t, c_void_p),
    "cancel": (104, None, c_void_p),
    "reset_cancel": (112, None, c_void_p),
    "set_progress": (120, c_void_p, c_void_p, c_void_p, c_void_p),
    "set_definer": (128, c_void_p, c_void_p, c_void_p, c_void_p),
}


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


ENV_API = {
    "create": (8, c_void_p, c_void_p, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "set_logger": (32, c_void_p, c_void_p, c_void_p, c_void_p),
    "refresh_plugins": (40, c_void_p, c_void_p),
    "plugin_count": (48, c_size_t, c_void_p),
    "plugin_at": (56, c_void_p, c_void_p, c_size_t, c_void_p),
    "provider_count": (64, c_size_t, c_void_p),
    "provider_at": (72, c_void_p, c_void_p, c_size_t, c_void_p),
    "kernel_count": (80, c_void_p, c_void_p, String, c_void_p),
    "kernel_at": (88, c_void_p, c_void_p, String, c_size_t, c_void_p),
    "operator_count": (96, c_size_t),
    "operator_at": (104, c_void_p, c_size_t, c_void_p),
    "provider_option_count": (112, c_void_p, c_void_p, String, c_void_p),
    "provider_option_at": (120, c_void_p, c_void_p, String, c_size_t, c_void_p),
    "service_option_count": (128, c_void_p, c_void_p, String, c_void_p),
    "service_option_at": (136, c_void_p, c_void_p, String, c_size_t, c_void_p),
    "service_check": (144, c_void_p, c_void_p, c_void_p),
    "service_start": (152, c_void_p, c_void_p, c_void_p, c_void_p),
    "service_stop": (160, None, c_void_p),
    "service_address": (168, String, c_void_p),
    "service_ask": (176, c_void_p, c_void_p, c_void_p, c_void_p),
    "register_operator": (184, c_void_p, c_void_p, c_void_p),
    "unregister_operator": (192, c_void_p, c_void_p, String, String),
    "custom_operator_count": (200, c_void_p, c_void_p, c_void_p),
    "custom_operator_at": (208, c_void_p, c_void_p, c_size_t, c_void_p),
    "register_provider": (216, c_void_p, c_void_p, c_void_p),
    "register_pass": (224, c_void_p, c_void_p, c_void_p),
    "set_allocator": (232, c_void_p, c_void_p, c_void_p),
    "set_executor": (240, c_void_p, c_void_p, c_void_p),
    "set_thread_hooks": (248, c_void_p, c_void_p, c_void_p),
    "ask": (256, c_void_p, c_void_p, c_void_p, c_void_p),
    "reply_release": (264, None, c_void_p),
    "reply_text": (272, String, c_void_p),
    "reply_count": (280, c_size_t, c_void_p),
    "reply_at": (288, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p),
    "trim": (296, c_void_p, c_void_p, c_void_p),
    "set_memory_planner": (304, c_void_p, c_void_p, c_void_p),
    "importer_option_count": (312, c_void_p, c_void_p, String, c_void_p),
    "importer_option_at": (320, c_void_p, c_void_p, String, c_size_t, c_void_p),
    "open_plugin": (328, c_void_p, c_void_p, String, c_void_p),
}


class ValuePart(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_uint32),
        ("count", c_uint64),
        ("tensor", Tensor),
    ]


VALUE_API = {
    "retain": (8, None, c_void_p),
    "release": (16, None, c_void_p),
    "kind": (24, c_uint32, c_void_p),
    "create_tensor": (32, c_void_p, c_uint32, c_void_p, c_size_t, c_void_p),
    "wrap_tensor": (40, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
    "tensor": (48, c_void_p, c_void_p, c_void_p),
    "set_string": (56, c_void_p, c_void_p, c_uint64, String),
    "count": (64, c_void_p, c_void_p, c_void_p),
    "element": (72, c_void_p, c_void_p, c_size_t, c_void_p),
    "create_sequence": (80, c_void_p, c_uint32, c_void_p, c_size_t, c_void_p),
    "create_optional": (88, c_void_p, c_void_p, c_void_p),
    "create_map": (96, c_void_p, c_void_p, c_void_p, c_void_p),
    "map_parts": (104, c_void_p, c_void_p, c_void_p, c_void_p),
    "create_sparse": (112, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "sparse_parts": (120, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
    "dtype": (128, c_uint32, c_void_p),
    "create_on": (136, c_void_p, c_void_p, String, c_uint32, c_void_p, c_size_t, c_void_p),
    "copy": (144, c_void_p, c_void_p, c_void_p),
    "wrap_unaligned": (152, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
    "create_strings": (160, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p),
    "strings": (168, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p),
    "parts": (176, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p),
}


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


GRAPH_API = {
    "create": (8, c_void_p, String, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "create_subgraph": (32, c_void_p, c_void_p, String, c_void_p),
    "set_opset": (40, c_void_p, c_void_p, String, c_int64),
    "set_metadata": (48, c_void_p, c_void_p, String, String),
    "add_input": (56, c_void_p, c_void_p, c_void_p),
    "add_output": (64, c_void_p, c_void_p, c_void_p),
    "set_value_info": (72, c_void_p, c_void_p, c_void_p),
    "add_initializer": (80, c_void_p, c_void_p, String, c_void_p, c_uint32, c_void_p, c_void_p),
    "add_initializer_value": (88, c_void_p, c_void_p, String, c_void_p),
    "add_node": (96, c_void_p, c_void_p, c_void_p, c_void_p),
    "set_attr": (104, c_void_p, c_void_p, c_uint32, c_void_p),
    "remove_node": (112, c_void_p, c_void_p, c_uint32),
    "name": (120, String, c_void_p),
    "opset_count": (128, c_size_t, c_void_p),
    "opset_at": (136, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p),
    "metadata_count": (144, c_size_t, c_void_p),
    "metadata_at": (152, c_void_p, c_void_p, c_size_t, c_void_p),
    "input_count": (160, c_size_t, c_void_p),
    "input_at": (168, c_void_p, c_void_p, c_size_t, c_void_p),
    "output_count": (176, c_size_t, c_void_p),
    "output_at": (184, c_void_p, c_void_p, c_size_t, c_void_p),
    "initializer_count": (192, c_size_t, c_void_p),
    "initializer_at": (200, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p),
    "node_count": (208, c_size_t, c_void_p),
    "node_at": (216, c_void_p, c_void_p, c_size_t, c_void_p),
    "value_info": (224, c_void_p, c_void_p, String, c_void_p),
    "topological_order": (232, c_void_p, c_void_p, c_void_p, c_void_p),
    "validate": (240, c_void_p, c_void_p),
    "infer_shapes": (248, c_void_p, c_void_p),
    "clone": (256, c_void_p, c_void_p, c_void_p),
    "set_name": (264, c_void_p, c_void_p, String),
    "remove_opset": (272, c_void_p, c_void_p, String),
    "remove_metadata": (280, c_void_p, c_void_p, String),
    "node_by_id": (288, c_void_p, c_void_p, c_uint32, c_void_p),
    "find_node": (296, c_void_p, c_void_p, String, c_void_p),
    "next_node": (304, c_uint32, c_void_p, c_uint32),
    "producer": (312, c_void_p, c_void_p, String, c_void_p),
    "consumers": (320, c_void_p, c_void_p, String, c_void_p, c_void_p),
    "rename_node": (328, c_void_p, c_void_p, c_uint32, String),
    "set_node_inputs": (336, c_void_p, c_void_p, c_uint32, c_void_p, c_size_t),
    "set_node_outputs": (344, c_void_p, c_void_p, c_uint32, c_void_p, c_size_t),
    "remove_attr": (352, c_void_p, c_void_p, c_uint32, String),
    "replace_uses": (360, c_void_p, c_void_p, String, String, c_uint32),
    "rename_value": (368, c_void_p, c_void_p, String, String),
    "replace_input": (376, c_void_p, c_void_p, c_size_t, c_void_p),
    "remove_input": (384, c_void_p, c_void_p, c_size_t),
    "replace_output": (392, c_void_p, c_void_p, c_size_t, c_void_p),
    "remove_output": (400, c_void_p, c_void_p, c_size_t),
    "initializer": (408, c_void_p, c_void_p, String, c_void_p),
    "remove_initializer": (416, c_void_p, c_void_p, String),
    "initializer_for_write": (424, c_void_p, c_void_p, String, c_void_p),
    "validate_all": (432, c_void_p, c_void_p, c_void_p),
    "extract": (440, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p),
}


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


MODEL_API = {
    "load_file": (8, c_void_p, c_void_p, String, c_void_p, c_void_p),
    "load_memory": (16, c_void_p, c_void_p, c_void_p, c_size_t, c_uint32, c_void_p, c_void_p, c_void_p, c_void_p),
    "from_graph": (24, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
    "retain": (32, None, c_void_p),
    "release": (40, None, c_void_p),
    "save": (48, c_void_p, c_void_p, c_void_p, String, c_void_p),
    "graph": (56, c_void_p, c_void_p, c_void_p),
    "info": (64, c_void_p, c_void_p, c_void_p),
    "metadata_count": (72, c_size_t, c_void_p),
    "metadata_at": (80, c_void_p, c_void_p, c_size_t, c_void_p),
    "warning_count": (88, c_size_t, c_void_p),
    "warning_at": (96, c_void_p, c_void_p, c_size_t, c_void_p),
    "load_reader": (104, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
}


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


SESSION_API = {
    "create": (8, c_void_p, c_void_p, c_void_p, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "input_count": (32, c_size_t, c_void_p),
    "input_at": (40, c_void_p, c_void_p, c_size_t, c_void_p),
    "output_count": (48, c_size_t, c_void_p),
    "output_at": (56, c_void_p, c_void_p, c_size_t, c_void_p),
    "input_index": (64, c_void_p, c_void_p, String, c_void_p),
    "output_index": (72, c_void_p, c_void_p, String, c_void_p),
    "run": (80, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p),
    "run_named": (88, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p),
    "explain": (96, c_void_p, c_void_p, c_void_p),
    "model": (104, c_void_p, c_void_p),
    "provider_state_count": (112, c_size_t, c_void_p),
    "provider_state": (120, c_void_p, c_void_p, c_size_t, c_void_p),
    "run_async": (128, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p),
    "readmit": (136, c_void_p, c_void_p, String, c_void_p),
    "statistics": (144, c_void_p, c_void_p, c_void_p),
    "end_profiling": (152, c_void_p, c_void_p, c_void_p),
    "profiling_start_ns": (160, c_uint64, c_void_p),
    "trim": (168, c_void_p, c_void_p, c_void_p),
    "memory_report": (176, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p),
    "phase": (184, c_void_p, c_void_p, c_void_p, c_void_p),
}


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


STATE_API = {
    "create": (8, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "input_count": (32, c_size_t, c_void_p),
    "input_at": (40, c_void_p, c_void_p, c_size_t, c_void_p),
    "clone": (48, c_void_p, c_void_p, c_void_p),
    "clone_for": (56, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
    "length": (64, c_int64, c_void_p),
    "truncate": (72, c_void_p, c_void_p, c_int64),
    "select_rows": (80, c_void_p, c_void_p, c_void_p, c_size_t),
    "get": (88, c_void_p, c_void_p, String, c_void_p),
    "set": (96, c_void_p, c_void_p, String, c_void_p),
    "set_outputs": (104, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t),
    "save": (112, c_void_p, c_void_p, String),
    "load": (120, c_void_p, c_void_p, String),
}


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


REPORT_API = {
    "release": (8, None, c_void_p),
    "row_count": (16, c_size_t, c_void_p),
    "row_at": (24, c_void_p, c_void_p, c_size_t, c_void_p),
    "note_count": (32, c_size_t, c_void_p),
    "note_at": (40, String, c_void_p, c_size_t),
    "counter_count": (48, c_size_t, c_void_p),
    "counter_at": (56, c_void_p, c_void_p, c_size_t, c_void_p),
}


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


OPTIMIZER_API = {
    "create": (8, c_void_p, c_void_p, c_void_p, c_void_p),
    "release": (16, None, c_void_p),
    "add_default_passes": (24, c_void_p, c_void_p),
    "add_pass": (32, c_void_p, c_void_p, String, c_void_p),
    "add_custom_pass": (40, c_void_p, c_void_p, c_void_p),
    "pass_count": (48, c_size_t, c_void_p),
    "pass_at": (56, String, c_void_p, c_size_t),
    "run": (64, c_void_p, c_void_p, c_void_p, String, c_uint32, c_void_p),
    "release_result": (72, None, c_void_p),
    "totals": (80, c_void_p, c_void_p, c_void_p),
    "report_count": (88, c_size_t, c_void_p),
    "report_at": (96, c_void_p, c_void_p, c_size_t, c_void_p),
    "rule_count": (104, c_size_t, c_void_p, c_size_t),
    "rule_at": (112, c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_void_p),
    "warning_count": (120, c_size_t, c_void_p),
    "warning_at": (128, String, c_void_p, c_size_t),
    "known_rule_count": (136, c_size_t),
    "known_rule_at": (144, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p),
}


PATTERN_API = {
    "create": (8, c_void_p, c_void_p),
    "release": (16, None, c_void_p),
    "add_node": (24, c_void_p, c_void_p, String, String, String),
    "add_edge": (32, c_void_p, c_void_p, String, c_uint32, String, c_uint32),
    "set_root": (40, c_void_p, c_void_p, String),
    "find_all": (48, c_void_p, c_void_p, c_void_p, c_void_p),
    "release_matches": (56, None, c_void_p),
    "match_count": (64, c_size_t, c_void_p),
    "node": (72, c_void_p, c_void_p, c_size_t, String, c_void_p),
    "is_single_consumer": (80, c_void_p, c_void_p, c_size_t, String, c_void_p),
}


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


CACHE_API = {
    "open": (8, c_void_p, c_void_p, c_void_p, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "set_default": (32, c_void_p, c_void_p, c_void_p),
    "key": (40, c_void_p, c_void_p, String, c_void_p, c_void_p, c_void_p),
    "has": (48, c_void_p, c_void_p, String, c_void_p),
    "get": (56, c_void_p, c_void_p, String, c_void_p),
    "put": (64, c_void_p, c_void_p, String, c_void_p),
    "remove": (72, c_void_p, c_void_p, String, c_void_p),
    "clear": (80, c_void_p, c_void_p, c_void_p),
    "evict": (88, c_void_p, c_void_p, c_void_p),
    "list": (96, c_void_p, c_void_p, c_uint32, c_void_p, c_void_p),
    "statistics": (104, c_void_p, c_void_p, c_void_p),
}


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


MEMORY_API = {
    "create_pool": (8, c_void_p, c_void_p, c_void_p, c_void_p),
    "retain_pool": (16, None, c_void_p),
    "release_pool": (24, None, c_void_p),
    "allocate": (32, c_void_p, c_void_p, c_uint64, c_uint64, c_void_p),
    "deallocate": (40, c_void_p, c_void_p, c_void_p),
    "reallocate": (48, c_void_p, c_void_p, c_void_p, c_uint64, c_void_p),
    "reset": (56, c_void_p, c_void_p),
    "reserve": (64, c_void_p, c_void_p, c_uint64),
    "trim": (72, c_void_p, c_void_p, c_void_p),
    "pool_stats": (80, c_void_p, c_void_p, c_void_p),
    "reset_stats": (88, c_void_p, c_void_p),
    "set_global_pool": (96, c_void_p, c_void_p),
    "global_pool": (104, c_void_p, c_void_p),
}


class RequestDesc(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("stream", c_uint32),
        ("outputs", c_void_p),
        ("output_count", c_size_t),
        ("cancel", c_void_p),
        ("timeout_ms", c_int64),
        ("priority", c_int64),
    ]


class Response(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("stream", c_uint32),
        ("id", c_uint64),
        ("status", c_void_p),
        ("outputs", c_void_p),
        ("output_count", c_size_t),
        ("rows", c_int64),
        ("queued_ns", c_uint64),
        ("ran_ns", c_uint64),
        ("latency_ns", c_uint64),
    ]


ResponseFn = CFUNCTYPE(None, c_void_p, c_void_p)


class BatchTime(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("rows", c_int64),
        ("runs", c_uint64),
        ("ns", c_double),
    ]


class BatcherStatistics(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("submitted", c_uint64),
        ("completed", c_uint64),
        ("failed", c_uint64),
        ("cancelled", c_uint64),
        ("late", c_uint64),
        ("refused", c_uint64),
        ("batches", c_uint64),
        ("rows", c_uint64),
        ("padded_rows", c_uint64),
        ("queued", c_uint64),
        ("running", c_uint64),
        ("latency_ns", c_double),
        ("seconds", c_double),
        ("unshared", String),
    ]


BATCHER_API = {
    "create": (8, c_void_p, c_void_p, c_void_p, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "start": (32, c_void_p, c_void_p),
    "stop": (40, c_void_p, c_void_p),
    "flush": (48, c_void_p, c_void_p),
    "submit": (56, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p),
    "infer": (64, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, c_void_p),
    "cancel": (72, c_void_p, c_void_p, c_uint64),
    "statistics": (80, c_void_p, c_void_p, c_void_p),
    "reset_statistics": (88, c_void_p, c_void_p),
    "times": (96, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p),
}


class StreamsStatistics(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("submitted", c_uint64),
        ("completed", c_uint64),
        ("failed", c_uint64),
        ("cancelled", c_uint64),
        ("late", c_uint64),
        ("refused", c_uint64),
        ("pending", c_uint64),
        ("latency_ns", c_double),
        ("queued_ns", c_double),
        ("ran_ns", c_double),
        ("seconds", c_double),
    ]


STREAMS_API = {
    "create": (8, c_void_p, c_void_p, c_void_p, c_void_p),
    "retain": (16, None, c_void_p),
    "release": (24, None, c_void_p),
    "start": (32, c_void_p, c_void_p),
    "stop": (40, c_void_p, c_void_p),
    "submit": (48, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p),
    "cancel": (56, c_void_p, c_void_p, c_uint64),
    "synchronize": (64, c_void_p, c_void_p, c_uint32),
    "count": (72, c_uint32, c_void_p),
    "select": (80, c_uint32, c_void_p),
    "statistics": (88, c_void_p, c_void_p, c_void_p),
    "reset_statistics": (96, c_void_p, c_void_p),
    "utilization": (104, c_void_p, c_void_p, c_void_p, c_size_t),
}


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
        ("batcher", c_void_p),
        ("streams", c_void_p),
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
