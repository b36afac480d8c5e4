// SPDX-License-Identifier: Apache-2.0

package pyflamert

// #include <pyflame_rt/types.h>
import "C"

import "fmt"

// A Code is the kind of an error. It is an error itself, so that errors.Is(err, pyflamert.ShapeMismatch) asks for it.
type Code uint32

// The codes, by the numbers of the C header.
const (
	InvalidArgument     Code = C.PFRT_CODE_INVALID_ARGUMENT     // a caller's mistake
	Input               Code = C.PFRT_CODE_INPUT                // a missing, unknown or repeated input or output
	ShapeMismatch       Code = C.PFRT_CODE_SHAPE_MISMATCH       // a tensor has another shape than is wanted
	DtypeMismatch       Code = C.PFRT_CODE_DTYPE_MISMATCH       // a tensor has another element type than is wanted
	NotFound            Code = C.PFRT_CODE_NOT_FOUND            // a file, provider, name or key is not there
	InvalidModel        Code = C.PFRT_CODE_INVALID_MODEL        // a file of a model is malformed or truncated
	UnsupportedFormat   Code = C.PFRT_CODE_UNSUPPORTED_FORMAT   // a file is none that the library reads
	UnsupportedOperator Code = C.PFRT_CODE_UNSUPPORTED_OPERATOR // no provider runs some of the model's nodes
	Validation          Code = C.PFRT_CODE_VALIDATION           // a graph is not valid; Faults has them one by one
	Unsupported         Code = C.PFRT_CODE_UNSUPPORTED          // known, but not available here
	Provider            Code = C.PFRT_CODE_PROVIDER             // a provider failed
	Plugin              Code = C.PFRT_CODE_PLUGIN               // a plug-in was rejected
	Cancelled           Code = C.PFRT_CODE_CANCELLED            // the run's context was cancelled
	Deadline            Code = C.PFRT_CODE_DEADLINE             // the run took longer than its timeout
	OutOfMemory         Code = C.PFRT_CODE_OUT_OF_MEMORY        // memory did not suffice, or a limit of it
	DataLoss            Code = C.PFRT_CODE_DATA_LOSS            // a file changed or failed while it was in use
	DeviceLost          Code = C.PFRT_CODE_DEVICE_LOST          // a device is gone
	IO                  Code = C.PFRT_CODE_IO                   // reading or writing failed
	Internal            Code = C.PFRT_CODE_INTERNAL             // a fault of the library
	Busy                Code = C.PFRT_CODE_BUSY                 // in use, or full: later it will do
)

var codeWords = map[Code]string{
	InvalidArgument: "invalid argument", Input: "input error", ShapeMismatch: "shape mismatch",
	DtypeMismatch: "dtype mismatch", NotFound: "not found", InvalidModel: "invalid model",
	UnsupportedFormat: "unsupported format", UnsupportedOperator: "unsupported operator",
	Validation: "graph validation failed", Unsupported: "unsupported", Provider: "provider failed",
	Plugin: "plug-in rejected", Cancelled: "cancelled", Deadline: "deadline exceeded",
	OutOfMemory: "out of memory", DataLoss: "data loss", DeviceLost: "device lost", IO: "input/output error",
	Internal: "internal error", Busy: "busy",
}

// Error is the code in words.
func (c Code) Error() string {
	if word, ok := codeWords[c]; ok {
		return word
	}
	return fmt.Sprintf("code %d", uint32(c))
}

// An Error is what the package's functions return: errors.As finds it.
type Error struct {
	Code    Code
	Message string   // says what was attempted, on what, what was found and the nearest fix
	Faults  []string // single faults where there are several, as of a graph that is not valid
	cause   error    // the context's, where it ended the run
}

func (e *Error) Error() string { return e.Message }

// Is says whether target is the error's Code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// Unwrap returns the error of the context that ended the run, as context.Canceled, and else nil.
func (e *Error) Unwrap() error { return e.cause }

func fail(code Code, format string, values ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, values...)}
}
