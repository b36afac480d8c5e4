/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain types shared by the client ABI (pyflame_rt.h) and the plug-in ABI (plugin.h): versions, status codes,
 * element types, strings and tensor views. C11, self-contained; nothing here allocates or owns anything.
 */
#ifndef PYFLAME_RT_TYPES_H_
#define PYFLAME_RT_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of both ABIs. No major mixes with another; a minor only adds at the end of structs that are not "frozen". */
#define PFRT_ABI_MAJOR 2u
/* The minor version of these headers. */
#define PFRT_ABI_MINOR 0u
/* A version as one number, as pfrt_get_api takes it. */
#define PFRT_MAKE_ABI(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
/* The version of these headers. */
#define PFRT_ABI_VERSION PFRT_MAKE_ABI(PFRT_ABI_MAJOR, PFRT_ABI_MINOR)

/* Marks a reference that passes from callee to caller (or, on an argument, from caller to callee). */
#define PFRT_OWN

#if defined(__GNUC__)
/* Marks a symbol that a shared object exports. */
#define PFRT_EXPORT __attribute__((visibility("default")))
#else
/* Marks a symbol that a shared object exports. */
#define PFRT_EXPORT
#endif

/* Element |i| of an array whose elements are |size| bytes apart. Whoever made an array says how far apart its elements
 * are; a reader built with other headers takes as much of each as both know, and the rest as zero. */
static inline const void* pfrt_at(const void* array, size_t size, size_t i) {
  return (const char*)array + size * i;
}

/* UTF-8, not terminated. {NULL, 0} is the empty string. Frozen. */
typedef struct pfrt_string {
  const char* data; /* may be NULL when |size| is 0 */
  size_t size; /* in bytes */
} pfrt_string;

/* A key with its value, both UTF-8. Frozen. */
typedef struct pfrt_key_value {
  pfrt_string key; /* what is set or said */
  pfrt_string value; /* as text, whatever the key's type */
} pfrt_key_value;

/* Status codes: X(NAME, number, text). */
#define PFRT_CODE_TABLE(X)                                                                  \
  X(OK, 0, "ok")                                                                            \
  X(INVALID_ARGUMENT, 1, "invalid argument")         /* a caller's mistake                */ \
  X(INPUT, 2, "input error")                         /* missing, unknown or repeated input */ \
  X(SHAPE_MISMATCH, 3, "shape mismatch")                                                    \
  X(DTYPE_MISMATCH, 4, "dtype mismatch")                                                    \
  X(NOT_FOUND, 5, "not found")                       /* a file, provider, name or key      */ \
  X(INVALID_MODEL, 6, "invalid model")               /* malformed or truncated file        */ \
  X(UNSUPPORTED_FORMAT, 7, "unsupported format")                                            \
  X(UNSUPPORTED_OPERATOR, 8, "unsupported operator")                                        \
  X(VALIDATION, 9, "graph validation failed")        /* children: one fault each           */ \
  X(UNSUPPORTED, 10, "unsupported")                  /* known, but not available here      */ \
  X(PROVIDER, 11, "provider failed")                                                        \
  X(PLUGIN, 12, "plug-in rejected")                                                         \
  X(CANCELLED, 13, "cancelled")                                                             \
  X(DEADLINE, 14, "deadline exceeded")                                                      \
  X(OUT_OF_MEMORY, 15, "out of memory")                                                     \
  X(DATA_LOSS, 16, "data loss")                      /* a file changed or failed under us  */ \
  X(DEVICE_LOST, 17, "device lost")                                                         \
  X(IO, 18, "input/output error")                                                           \
  X(INTERNAL, 19, "internal error")                                                         \
  X(BUSY, 20, "busy")                                /* in use, or full: later it will do  */

/* Kind of a failure; 0 is success. PFRT_CODE_TABLE has them all. */
typedef uint32_t pfrt_code;
enum {
#define PFRT_X(name, number, text) PFRT_CODE_##name = number,
  PFRT_CODE_TABLE(PFRT_X)
#undef PFRT_X
      PFRT_CODE_FORCE32 = 0x7fffffff
};

/* Element types: X(NAME, number (ONNX's, used in C), guide number (used in C++ and Python), bits, name, ONNX name).
 * Sub-byte types are packed two or four to a byte, low bits first, as the standard packs them. STRING elements are
 * pfrt_string. */
#define PFRT_DTYPE_TABLE(X)                                            \
  X(FLOAT32, 1, 0, 32, "float32", "float")                             \
  X(UINT8, 2, 8, 8, "uint8", "uint8")                                  \
  X(INT8, 3, 7, 8, "int8", "int8")                                     \
  X(UINT16, 4, 10, 16, "uint16", "uint16")                             \
  X(INT16, 5, 6, 16, "int16", "int16")                                 \
  X(INT32, 6, 5, 32, "int32", "int32")                                 \
  X(INT64, 7, 4, 64, "int64", "int64")                                 \
  X(STRING, 8, 11, 0, "string", "string")                              \
  X(BOOL, 9, 9, 8, "bool", "bool")                                     \
  X(FLOAT16, 10, 1, 16, "float16", "float16")                          \
  X(FLOAT64, 11, 3, 64, "float64", "double")                           \
  X(UINT32, 12, 12, 32, "uint32", "uint32")                            \
  X(UINT64, 13, 13, 64, "uint64", "uint64")                            \
  X(COMPLEX64, 14, 14, 64, "complex64", "complex64")                   \
  X(COMPLEX128, 15, 15, 128, "complex128", "complex128")               \
  X(BFLOAT16, 16, 2, 16, "bfloat16", "bfloat16")                       \
  X(FLOAT8E4M3FN, 17, 16, 8, "float8e4m3fn", "float8e4m3fn")           \
  X(FLOAT8E4M3FNUZ, 18, 17, 8, "float8e4m3fnuz", "float8e4m3fnuz")     \
  X(FLOAT8E5M2, 19, 18, 8, "float8e5m2", "float8e5m2")                 \
  X(FLOAT8E5M2FNUZ, 20, 19, 8, "float8e5m2fnuz", "float8e5m2fnuz")     \
  X(UINT4, 21, 20, 4, "uint4", "uint4")                                \
  X(INT4, 22, 21, 4, "int4", "int4")                                   \
  X(FLOAT4E2M1, 23, 22, 4, "float4e2m1", "float4e2m1")                 \
  X(FLOAT8E8M0, 24, 23, 8, "float8e8m0", "float8e8m0")                 \
  X(UINT2, 25, 24, 2, "uint2", "uint2")                                \
  X(INT2, 26, 25, 2, "int2", "int2")

/* An element type. PFRT_DTYPE_TABLE has them all. */
typedef uint32_t pfrt_dtype;
enum {
  PFRT_DTYPE_UNSET = 0,
#define PFRT_X(name, number, guide, bits, text, onnx) PFRT_DTYPE_##name = number,
  PFRT_DTYPE_TABLE(PFRT_X)
#undef PFRT_X
      PFRT_DTYPE_FORCE32 = 0x7fffffff
};

/* Kind of a value. */
typedef uint32_t pfrt_value_kind;
enum {
  PFRT_VALUE_UNSET = 0,
  PFRT_VALUE_TENSOR = 1,
  PFRT_VALUE_SEQUENCE = 2,
  PFRT_VALUE_MAP = 3,
  PFRT_VALUE_OPTIONAL = 4,
  PFRT_VALUE_SPARSE = 5,
  PFRT_VALUE_FORCE32 = 0x7fffffff
};

/* Place where bytes live; 0 means host memory. */
typedef uint32_t pfrt_memory_kind;
enum { PFRT_MEMORY_HOST = 0, PFRT_MEMORY_DEVICE = 1, PFRT_MEMORY_FORCE32 = 0x7fffffff };

/* Severity of a line of the log. */
typedef uint32_t pfrt_log_level;
enum {
  PFRT_LOG_UNSET = 0,
  PFRT_LOG_DEBUG = 1,
  PFRT_LOG_INFO = 2,
  PFRT_LOG_WARNING = 3,
  PFRT_LOG_ERROR = 4,
  PFRT_LOG_OFF = 5,
  PFRT_LOG_FORCE32 = 0x7fffffff
};

/* Attribute types. Numbers are ONNX's AttributeProto.AttributeType where both have the type. */
typedef uint32_t pfrt_attr_type;
enum {
  PFRT_ATTR_UNSET = 0,
  PFRT_ATTR_FLOAT = 1,
  PFRT_ATTR_INT = 2,
  PFRT_ATTR_STRING = 3,
  PFRT_ATTR_TENSOR = 4,
  PFRT_ATTR_GRAPH = 5,
  PFRT_ATTR_FLOATS = 6,
  PFRT_ATTR_INTS = 7,
  PFRT_ATTR_STRINGS = 8,
  PFRT_ATTR_TENSORS = 9,
  PFRT_ATTR_GRAPHS = 10,
  PFRT_ATTR_SPARSE = 11,
  PFRT_ATTR_TYPE = 13,
  PFRT_ATTR_FORCE32 = 0x7fffffff
};

/* Meaning of integers that stand for real numbers: (q - zero_point) * scale. */
typedef struct pfrt_quantization {
  uint32_t struct_size;
  int32_t axis; /* along which scales differ, where there are several; negative = one for the whole tensor */
  uint64_t block; /* elements along |axis| that share a scale; 0 = 1 */
  const struct pfrt_tensor* scales; /* one for the tensor, for each place on |axis|, or for each block there */
  const struct pfrt_tensor* zero_points; /* as many as scales; NULL = 0 */
} pfrt_quantization;

/* A borrowed view of a dense tensor. |strides| count elements; NULL means row-major without gaps. The first element is
 * |offset| bytes behind |data|; |bytes| is the size of the memory from there on, checked against dims and strides. It may
 * be aligned for its element only. Frozen: what comes later is at |extension|. */
typedef struct pfrt_tensor {
  uint32_t struct_size;
  pfrt_dtype dtype; /* of the elements; strings are pfrt_string */
  uint32_t rank; /* length of |dims| and |strides|; 0 is a scalar */
  pfrt_memory_kind memory; /* HOST, or DEVICE: |data| is then an address of the device's, not to be read or written */
  void* data;
  uint64_t offset;
  uint64_t bytes;
  const int64_t* dims; /* [rank], none negative; may be NULL for a scalar */
  const int64_t* strides;
  const pfrt_quantization* quantization; /* NULL = numbers as they are, all that this version takes */
  const void* extension; /* NULL in this version */
  uint32_t device; /* of memory DEVICE, set by the library: equal numbers are one opened device; 0 = host */
  uint32_t reserved;
} pfrt_tensor;

#ifdef __cplusplus
}
#endif
#endif
