// SPDX-License-Identifier: Apache-2.0

package pyflamert

// #include <pyflame_rt/types.h>
import "C"

import (
	"fmt"
	"reflect"
)

// An ElementType is the type of a tensor's elements.
type ElementType uint32

// The element types, by the numbers of the C header. Those after Bfloat16 have no form in Go: they occur in
// descriptions alone.
const (
	Float32        ElementType = C.PFRT_DTYPE_FLOAT32
	Uint8          ElementType = C.PFRT_DTYPE_UINT8
	Int8           ElementType = C.PFRT_DTYPE_INT8
	Uint16         ElementType = C.PFRT_DTYPE_UINT16
	Int16          ElementType = C.PFRT_DTYPE_INT16
	Int32          ElementType = C.PFRT_DTYPE_INT32
	Int64          ElementType = C.PFRT_DTYPE_INT64
	String         ElementType = C.PFRT_DTYPE_STRING
	Bool           ElementType = C.PFRT_DTYPE_BOOL
	Float16        ElementType = C.PFRT_DTYPE_FLOAT16
	Float64        ElementType = C.PFRT_DTYPE_FLOAT64
	Uint32         ElementType = C.PFRT_DTYPE_UINT32
	Uint64         ElementType = C.PFRT_DTYPE_UINT64
	Complex64      ElementType = C.PFRT_DTYPE_COMPLEX64
	Complex128     ElementType = C.PFRT_DTYPE_COMPLEX128
	Bfloat16       ElementType = C.PFRT_DTYPE_BFLOAT16
	Float8E4M3FN   ElementType = C.PFRT_DTYPE_FLOAT8E4M3FN
	Float8E4M3FNUZ ElementType = C.PFRT_DTYPE_FLOAT8E4M3FNUZ
	Float8E5M2     ElementType = C.PFRT_DTYPE_FLOAT8E5M2
	Float8E5M2FNUZ ElementType = C.PFRT_DTYPE_FLOAT8E5M2FNUZ
	Uint4          ElementType = C.PFRT_DTYPE_UINT4
	Int4           ElementType = C.PFRT_DTYPE_INT4
	Float4E2M1     ElementType = C.PFRT_DTYPE_FLOAT4E2M1
	Float8E8M0     ElementType = C.PFRT_DTYPE_FLOAT8E8M0
	Uint2          ElementType = C.PFRT_DTYPE_UINT2
	Int2           ElementType = C.PFRT_DTYPE_INT2
)

// F16 is a half-precision number, as its bits.
type F16 uint16

// BF16 is a bfloat16 number, as its bits: the upper half of a float32's.
type BF16 uint16

// elements has a row for each type that elements may have in Go.
var elements = []struct {
	elementType ElementType
	name        string
	goType      reflect.Type
}{
	{Float32, "float32", reflect.TypeOf(float32(0))},
	{Uint8, "uint8", reflect.TypeOf(uint8(0))},
	{Int8, "int8", reflect.TypeOf(int8(0))},
	{Uint16, "uint16", reflect.TypeOf(uint16(0))},
	{Int16, "int16", reflect.TypeOf(int16(0))},
	{Int32, "int32", reflect.TypeOf(int32(0))},
	{Int64, "int64", reflect.TypeOf(int64(0))},
	{String, "string", reflect.TypeOf("")},
	{Bool, "bool", reflect.TypeOf(false)},
	{Float16, "float16", reflect.TypeOf(F16(0))},
	{Float64, "float64", reflect.TypeOf(float64(0))},
	{Uint32, "uint32", reflect.TypeOf(uint32(0))},
	{Uint64, "uint64", reflect.TypeOf(uint64(0))},
	{Complex64, "complex64", reflect.TypeOf(complex64(0))},
	{Complex128, "complex128", reflect.TypeOf(complex128(0))},
	{Bfloat16, "bfloat16", reflect.TypeOf(BF16(0))},
}

var otherNames = map[ElementType]string{
	Float8E4M3FN: "float8e4m3fn", Float8E4M3FNUZ: "float8e4m3fnuz", Float8E5M2: "float8e5m2",
	Float8E5M2FNUZ: "float8e5m2fnuz", Uint4: "uint4", Int4: "int4", Float4E2M1: "float4e2m1",
	Float8E8M0: "float8e8m0", Uint2: "uint2", Int2: "int2",
}

// String is the type's name in the library's messages.
func (t ElementType) String() string {
	for _, row := range elements {
		if row.elementType == t {
			return row.name
		}
	}
	if name, ok := otherNames[t]; ok {
		return name
	}
	return fmt.Sprintf("element type %d", uint32(t))
}

// A Kind is what an input or an output is.
type Kind uint32

// The kinds, by the numbers of the C header. All but tensors have no form in Go: leave them out of a run.
const (
	KindUnknown  Kind = C.PFRT_VALUE_UNSET
	KindTensor   Kind = C.PFRT_VALUE_TENSOR
	KindSequence Kind = C.PFRT_VALUE_SEQUENCE
	KindMap      Kind = C.PFRT_VALUE_MAP
	KindOptional Kind = C.PFRT_VALUE_OPTIONAL
	KindSparse   Kind = C.PFRT_VALUE_SPARSE
)

var kindWords = map[Kind]string{
	KindTensor: "tensor", KindSequence: "sequence", KindMap: "map", KindOptional: "optional", KindSparse: "sparse tensor",
}

// String is the kind in a word.
func (k Kind) String() string {
	if word, ok := kindWords[k]; ok {
		return word
	}
	return "value"
}

// A Tensor is dense and row-major. As the input of a run it is read during the call only; that of an output is the
// caller's.
type Tensor struct {
	Shape []int64 // empty for a scalar
	// A slice of float32, float64, int8 to int64, uint8 to uint64, complex64, complex128, bool, string, F16 or BF16,
	// with as many elements as the product of Shape.
	Data any
}

// describe returns the element type of the data and how many elements there are.
func (t Tensor) describe(name string) (ElementType, error) {
	data := reflect.ValueOf(t.Data)
	if data.Kind() == reflect.Slice {
		for _, row := range elements {
			if row.goType == data.Type().Elem() {
				return row.elementType, t.checkShape(name, data.Len())
			}
		}
	}
	return 0, fail(DtypeMismatch, "running: the data of input '%s' are %T; give a slice of float32, float64, int8 to "+
		"int64, uint8 to uint64, complex64, complex128, bool, string, F16 or BF16", name, t.Data)
}

func (t Tensor) checkShape(name string, length int) error {
	size := int64(1)
	for _, dim := range t.Shape {
		if dim < 0 || (dim > 0 && size > int64(length)/dim && length > 0) {
			size = -1
			break
		}
		size *= dim
	}
	if size != int64(length) {
		return fail(ShapeMismatch, "running: input '%s' has shape %v and %d elements; give as many as the shape has",
			name, t.Shape, length)
	}
	return nil
}

// goType is the type of the elements in Go, and nil where there is none.
func (t ElementType) goType() reflect.Type {
	for _, row := range elements {
		if row.elementType == t {
			return row.goType
		}
	}
	return nil
}
