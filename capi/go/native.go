// SPDX-License-Identifier: Apache-2.0

package pyflamert

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <pyflame_rt/pyflame_rt.h>

// Opens the library, and returns its one symbol; NULL with the loader's words in |reason|, which are the caller's to
// free. Both are done here because they are said to the thread that asked.
static void* open_library(_GoString_ path, char** reason) {
  char* terminated = strndup(_GoStringPtr(path), _GoStringLen(path));
  void* library = dlopen(terminated, RTLD_NOW);
  void* symbol = library == NULL ? NULL : dlsym(library, "pfrt_get_api");
  if (symbol == NULL) *reason = strdup(dlerror());
  free(terminated);
  return symbol;
}

// Every library of major version 2 has what 2.0 has.
static const pfrt_api* get_api(void* symbol, pfrt_abi_info* info) {
  return ((const pfrt_api* (*)(uint32_t, pfrt_abi_info*))symbol)(PFRT_MAKE_ABI(2, 0), info);
}

static uint32_t table_size(const void* table) { return table == NULL ? 0 : *(const uint32_t*)table; }

static pfrt_string text(_GoString_ words) {
  const pfrt_string result = {_GoStringPtr(words), _GoStringLen(words)};
  return result;
}

// Go calls C functions by name, not by pointer: there is a line for each slot of the tables that is used.
static pfrt_code status_code(const pfrt_api* api, const pfrt_status* s) { return api->status->code(s); }
static pfrt_string status_message(const pfrt_api* api, const pfrt_status* s) { return api->status->message(s); }
static size_t status_child_count(const pfrt_api* api, const pfrt_status* s) { return api->status->child_count(s); }
static const pfrt_status* status_child(const pfrt_api* api, const pfrt_status* s, size_t i) {
  return api->status->child(s, i);
}
static void status_release(const pfrt_api* api, pfrt_status* s) { api->status->release(s); }
static pfrt_status* options_create(const pfrt_api* api, pfrt_options** out) {
  return api->options->create(PFRT_OPTIONS_SESSION, out);
}
static pfrt_status* options_set(const pfrt_api* api, pfrt_options* options, _GoString_ key, _GoString_ value) {
  return api->options->set_text(options, text(key), text(value));
}
static void options_release(const pfrt_api* api, pfrt_options* options) { api->options->release(options); }
static pfrt_status* env_create(const pfrt_api* api, pfrt_env** out) { return api->env->create(NULL, out); }
static pfrt_status* model_load_file(const pfrt_api* api, pfrt_env* env, _GoString_ path, pfrt_model** out) {
  return api->model->load_file(env, text(path), NULL, out);
}
static pfrt_status* model_load_memory(const pfrt_api* api, pfrt_env* env, const void* data, size_t size,
                                      pfrt_model** out) {
  return api->model->load_memory(env, data, size, PFRT_COPY, NULL, NULL, NULL, out);
}
static void model_release(const pfrt_api* api, pfrt_model* model) { api->model->release(model); }
static pfrt_status* session_create(const pfrt_api* api, pfrt_env* env, pfrt_model* model, pfrt_options* options,
                                   pfrt_session** out) {
  const pfrt_session_desc desc = {.struct_size = sizeof desc, .model = model, .options = options};
  return api->session->create(env, &desc, out);
}
static void session_retain(const pfrt_api* api, pfrt_session* s) { api->session->retain(s); }
static void session_release(const pfrt_api* api, pfrt_session* s) { api->session->release(s); }
static size_t session_input_count(const pfrt_api* api, pfrt_session* s) { return api->session->input_count(s); }
static size_t session_output_count(const pfrt_api* api, pfrt_session* s) { return api->session->output_count(s); }
static pfrt_status* session_input_at(const pfrt_api* api, pfrt_session* s, size_t i, pfrt_value_info* out) {
  return api->session->input_at(s, i, out);
}
static pfrt_status* session_output_at(const pfrt_api* api, pfrt_session* s, size_t i, pfrt_value_info* out) {
  return api->session->output_at(s, i, out);
}
static pfrt_status* session_run(const pfrt_api* api, pfrt_session* session, const pfrt_string* input_names,
                                const pfrt_io* inputs, size_t input_count, const pfrt_string* output_names,
                                pfrt_io* outputs, size_t output_count, const pfrt_run_desc* desc) {
  return api->session->run_named(session, input_names, inputs, input_count, output_names, outputs, output_count, desc);
}
static void value_release(const pfrt_api* api, pfrt_value* value) { api->value->release(value); }
static pfrt_value_kind value_kind(const pfrt_api* api, const pfrt_value* value) { return api->value->kind(value); }
static pfrt_status* value_create_tensor(const pfrt_api* api, pfrt_dtype dtype, const int64_t* dims, size_t rank,
                                        pfrt_value** out) {
  return api->value->create_tensor(dtype, dims, rank, out);
}
static pfrt_status* value_tensor(const pfrt_api* api, const pfrt_value* value, pfrt_tensor* out) {
  return api->value->tensor(value, out);
}
static pfrt_status* value_create_strings(const pfrt_api* api, const int64_t* dims, size_t rank, _GoString_ joined,
                                         const uint64_t* ends, pfrt_value** out) {
  return api->value->create_strings(dims, rank, _GoStringPtr(joined), _GoStringLen(joined), ends, out);
}
static pfrt_status* value_strings(const pfrt_api* api, const pfrt_value* value, char* bytes, size_t capacity,
                                  size_t* size, uint64_t* ends) {
  return api->value->strings(value, bytes, capacity, size, ends);
}
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"unsafe"
)

const libraryFile = "libpyflamert_c.so"

type (
	handle = *C.pfrt_session
	model  = *C.pfrt_model
)

// A library is the C library's tables, and the process's environment.
type library struct {
	api *C.pfrt_api
	env *C.pfrt_env
}

var (
	opening    sync.Mutex
	theLibrary *library // nil until it has been opened
)

// getLibrary opens the library where it has not been yet. What failed is attempted again by the next call.
func getLibrary() (*library, error) {
	opening.Lock()
	defer opening.Unlock()
	if theLibrary != nil {
		return theLibrary, nil
	}
	opened, err := openLibrary()
	if err == nil {
		theLibrary = opened
	}
	return opened, err
}

// findLibrary returns the file to open and, for an error, how it came to be that one.
func findLibrary() (file, why string) {
	if given := os.Getenv("PYFLAME_RT_LIBRARY"); given != "" {
		return given, fmt.Sprintf("PYFLAME_RT_LIBRARY names '%s'", given)
	}
	program, _ := os.Executable()
	folder := filepath.Dir(program)
	native, beside := filepath.Join(folder, "native", libraryFile), filepath.Join(folder, libraryFile)
	for _, own := range []string{native, beside} {
		if _, err := os.Stat(own); err == nil {
			return own, fmt.Sprintf("PYFLAME_RT_LIBRARY is not set, and '%s' is there", own)
		}
	}
	return libraryFile, fmt.Sprintf("PYFLAME_RT_LIBRARY is not set, there is neither '%s' nor '%s', and the loader was "+
		"asked", native, beside)
}

func openLibrary() (*library, error) {
	file, why := findLibrary()
	var reason *C.char
	symbol := C.open_library(file, &reason)
	if symbol == nil {
		defer C.free(unsafe.Pointer(reason))
		return nil, fail(NotFound, "opening the library: %s: %s; set PYFLAME_RT_LIBRARY to the path of %s, or put its "+
			"folder on the loader's path", why, C.GoString(reason), libraryFile)
	}
	info := C.pfrt_abi_info{struct_size: C.sizeof_pfrt_abi_info}
	api := C.get_api(symbol, &info)
	if api == nil {
		return nil, fail(Unsupported, "opening the library %s: %s", file, words(info.message))
	}
	if err := checkTables(api); err != nil {
		return nil, err
	}
	opened := &library{api: api}
	return opened, opened.check(C.env_create(api, &opened.env))
}

// checkTables looks at the size of each table before anything in it is called.
func checkTables(api *C.pfrt_api) error {
	const slot = unsafe.Sizeof(uintptr(0))
	check := func(name string, table unsafe.Pointer, last uintptr) error {
		if has := uintptr(C.table_size(table)); has < last+slot {
			return fail(Unsupported, "opening the library: its table '%s' has %d bytes, %d are needed: it is not a "+
				"PyFlameRT library of ABI 2", name, has, last+slot)
		}
		return nil
	}
	if err := check("api", unsafe.Pointer(api), unsafe.Offsetof(api.session)); err != nil {
		return err
	}
	for _, table := range []struct {
		name  string
		table unsafe.Pointer
		last  uintptr
	}{
		{"status", unsafe.Pointer(api.status), unsafe.Offsetof(api.status.release)},
		{"options", unsafe.Pointer(api.options), unsafe.Offsetof(api.options.set_text)},
		{"env", unsafe.Pointer(api.env), unsafe.Offsetof(api.env.create)},
		{"value", unsafe.Pointer(api.value), unsafe.Offsetof(api.value.strings)},
		{"model", unsafe.Pointer(api.model), unsafe.Offsetof(api.model.release)},
		{"session", unsafe.Pointer(api.session), unsafe.Offsetof(api.session.run_named)},
	} {
		if err := check(table.name, table.table, table.last); err != nil {
			return err
		}
	}
	return nil
}

func words(text C.pfrt_string) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(text.data)), int(text.size)))
}

// check turns a status into an error, and releases it.
func (l *library) check(status *C.pfrt_status) error {
	if status == nil {
		return nil
	}
	defer C.status_release(l.api, status)
	failed := &Error{Code: Code(C.status_code(l.api, status)), Message: words(C.status_message(l.api, status))}
	for i, n := C.size_t(0), C.status_child_count(l.api, status); i < n; i++ {
		child := C.status_child(l.api, status, i)
		failed.Faults = append(failed.Faults, words(C.status_message(l.api, child)))
	}
	return failed
}

func (l *library) loadFile(path string) (loaded model, err error) {
	err = l.check(C.model_load_file(l.api, l.env, path, &loaded))
	return loaded, err
}

func (l *library) loadBytes(bytes []byte) (loaded model, err error) {
	err = l.check(C.model_load_memory(l.api, l.env, unsafe.Pointer(first(bytes)), C.size_t(len(bytes)), &loaded))
	return loaded, err
}

// newSession makes a session, which keeps what it needs of the model.
func (l *library) newSession(given map[string]string, load func(*library) (model, error)) (made handle, err error) {
	var options *C.pfrt_options
	if err := l.check(C.options_create(l.api, &options)); err != nil {
		return nil, err
	}
	defer C.options_release(l.api, options)
	for key, value := range given {
		if err := l.check(C.options_set(l.api, options, key, value)); err != nil {
			return nil, err
		}
	}
	loaded, err := load(l)
	if err != nil {
		return nil, err
	}
	defer C.model_release(l.api, loaded)
	err = l.check(C.session_create(l.api, l.env, loaded, options, &made))
	return made, err
}

func (l *library) retainSession(session handle)  { C.session_retain(l.api, session) }
func (l *library) releaseSession(session handle) { C.session_release(l.api, session) }

func (l *library) describe(session handle) (inputs, outputs []ValueInfo, err error) {
	for i, n := C.size_t(0), C.session_input_count(l.api, session); i < n; i++ {
		info := C.pfrt_value_info{struct_size: C.sizeof_pfrt_value_info}
		if err := l.check(C.session_input_at(l.api, session, i, &info)); err != nil {
			return nil, nil, err
		}
		inputs = append(inputs, readInfo(&info))
	}
	for i, n := C.size_t(0), C.session_output_count(l.api, session); i < n; i++ {
		info := C.pfrt_value_info{struct_size: C.sizeof_pfrt_value_info}
		if err := l.check(C.session_output_at(l.api, session, i, &info)); err != nil {
			return nil, nil, err
		}
		outputs = append(outputs, readInfo(&info))
	}
	return inputs, outputs, nil
}

func readInfo(info *C.pfrt_value_info) ValueInfo {
	result := ValueInfo{
		Name: words(info.name), Kind: Kind(info.kind), Type: ElementType(info.dtype), Optional: info.has_initializer != 0,
	}
	if info.rank < 0 {
		return result
	}
	result.Shape = make([]int64, info.rank)
	result.DimNames = make([]string, info.rank)
	for i, dim := range unsafe.Slice(info.dims, len(result.Shape)) {
		result.Shape[i] = int64(dim)
	}
	if info.dim_names != nil {
		for i, name := range unsafe.Slice(info.dim_names, len(result.DimNames)) {
			result.DimNames[i] = words(name)
		}
	}
	return result
}

// A call has what one run uses, in memory of C's: C may keep no pointers to Go's during a call.
type call struct {
	*library
	blocks []unsafe.Pointer
	values []*C.pfrt_value
	desc   *C.pfrt_run_desc
	cancel *uint32 // anything but 0 ends the run
}

func (l *library) newCall() *call {
	c := &call{library: l}
	c.cancel = (*uint32)(c.allocate(1, C.sizeof_uint32_t))
	c.desc = (*C.pfrt_run_desc)(c.allocate(1, C.sizeof_pfrt_run_desc))
	c.desc.struct_size = C.sizeof_pfrt_run_desc
	c.desc.cancel = (*C.uint32_t)(unsafe.Pointer(c.cancel))
	return c
}

func (c *call) free() {
	for _, value := range c.values {
		C.value_release(c.api, value)
	}
	for _, block := range c.blocks {
		C.free(block)
	}
}

// allocate returns memory of zeros, which stays until free.
func (c *call) allocate(count int, size C.size_t) unsafe.Pointer {
	bytes := C.size_t(count)*size + 1
	block := C.malloc(bytes) // which never is nil
	C.memset(block, 0, bytes)
	c.blocks = append(c.blocks, block)
	return block
}

func (c *call) text(words string) C.pfrt_string {
	data := c.allocate(len(words), 1)
	copy(unsafe.Slice((*byte)(data), len(words)), words)
	return C.pfrt_string{data: (*C.char)(data), size: C.size_t(len(words))}
}

func (c *call) tell(options *RunOptions) {
	// The library counts milliseconds, takes 0 for no timeout, and refuses negative numbers.
	if options.Timeout > 0 {
		c.desc.timeout_ms = C.int64_t(options.Timeout.Milliseconds() + 1)
	} else if options.Timeout < 0 {
		c.desc.timeout_ms = -1
	}
	c.desc.num_threads = C.int64_t(options.NumThreads)
	c.desc.memory_limit = C.int64_t(options.MemoryLimit)
	c.desc.tag = c.text(options.Tag)
}

// arrays returns the names and places of count inputs or outputs.
func (c *call) arrays(count int) ([]C.pfrt_string, []C.pfrt_io) {
	names := unsafe.Slice((*C.pfrt_string)(c.allocate(count, C.sizeof_pfrt_string)), count)
	ios := unsafe.Slice((*C.pfrt_io)(c.allocate(count, C.sizeof_pfrt_io)), count)
	for i := range ios {
		ios[i].struct_size = C.sizeof_pfrt_io
		ios[i].tensor.struct_size = C.sizeof_pfrt_tensor
	}
	return names, ios
}

func (c *call) run(session handle, inputs map[string]Tensor, wanted []string) (map[string]Tensor, error) {
	inputNames, given := c.arrays(len(inputs))
	i := 0
	for name, tensor := range inputs {
		value, err := c.newValue(name, tensor)
		if err != nil {
			return nil, err
		}
		inputNames[i], given[i].value = c.text(name), value
		i++
	}
	outputNames, results := c.arrays(len(wanted))
	for i, name := range wanted {
		outputNames[i] = c.text(name)
	}
	err := c.check(C.session_run(c.api, session, first(inputNames), first(given), C.size_t(len(given)),
		first(outputNames), first(results), C.size_t(len(results)), c.desc))
	if err != nil {
		return nil, err
	}
	for _, result := range results {
		c.values = append(c.values, result.value)
	}
	outputs := make(map[string]Tensor, len(wanted))
	for i, name := range wanted {
		if outputs[name], err = c.readValue(name, results[i].value); err != nil {
			return nil, err
		}
	}
	return outputs, nil
}

// first returns where the elements are, and nil where there are none.
func first[T any](elements []T) *T {
	if len(elements) == 0 {
		return nil
	}
	return &elements[0]
}

// newValue returns a copy of the tensor, which stays until free.
func (c *call) newValue(name string, tensor Tensor) (value *C.pfrt_value, err error) {
	tensor.Shape = append([]int64(nil), tensor.Shape...) // what is checked is what C reads
	elementType, err := tensor.describe(name)
	if err != nil {
		return nil, err
	}
	dims, rank := (*C.int64_t)(first(tensor.Shape)), C.size_t(len(tensor.Shape))
	data := reflect.ValueOf(tensor.Data)
	if elementType == String {
		texts := make([]string, data.Len())
		ends := make([]C.uint64_t, data.Len())
		end := 0
		for i := range texts {
			texts[i] = data.Index(i).String()
			end += len(texts[i])
			ends[i] = C.uint64_t(end)
		}
		err = c.check(C.value_create_strings(c.api, dims, rank, strings.Join(texts, ""), first(ends), &value))
		c.values = append(c.values, value)
		return value, err
	}
	if err := c.check(C.value_create_tensor(c.api, C.pfrt_dtype(elementType), dims, rank, &value)); err != nil {
		return nil, err
	}
	c.values = append(c.values, value)
	view := C.pfrt_tensor{struct_size: C.sizeof_pfrt_tensor}
	if err := c.check(C.value_tensor(c.api, value, &view)); err != nil {
		return nil, err
	}
	size := data.Len() * int(data.Type().Elem().Size())
	copy(unsafe.Slice((*byte)(view.data), size), unsafe.Slice((*byte)(data.UnsafePointer()), size))
	return value, nil
}

// readValue returns a copy of what a run gave as the output of that name.
func (c *call) readValue(name string, value *C.pfrt_value) (Tensor, error) {
	withoutForm := func(what string) error {
		return fail(Unsupported, "running: output '%s' is %s, which has no form in Go; name the others in "+
			"RunOptions.Outputs", name, what)
	}
	if kind := Kind(C.value_kind(c.api, value)); kind != KindTensor {
		return Tensor{}, withoutForm("of kind " + kind.String())
	}
	view := C.pfrt_tensor{struct_size: C.sizeof_pfrt_tensor}
	if err := c.check(C.value_tensor(c.api, value, &view)); err != nil {
		return Tensor{}, err
	}
	shape, count := make([]int64, view.rank), 1
	for i, dim := range unsafe.Slice(view.dims, len(shape)) {
		shape[i] = int64(dim)
		count *= int(dim)
	}
	elementType := ElementType(view.dtype)
	goType := elementType.goType()
	switch {
	case goType == nil:
		return Tensor{}, withoutForm("a tensor of " + elementType.String())
	case elementType == String:
		texts, err := c.readStrings(value, count)
		return Tensor{shape, texts}, err
	case elementType == Bool: // a byte other than 0 and 1 is no bool of Go's
		bools := make([]bool, count)
		for i, element := range unsafe.Slice((*byte)(view.data), count) {
			bools[i] = element != 0
		}
		return Tensor{shape, bools}, nil
	}
	data := reflect.MakeSlice(reflect.SliceOf(goType), count, count)
	size := count * int(goType.Size())
	copy(unsafe.Slice((*byte)(data.UnsafePointer()), size), unsafe.Slice((*byte)(view.data), size))
	return Tensor{shape, data.Interface()}, nil
}

func (c *call) readStrings(value *C.pfrt_value, count int) ([]string, error) {
	if count == 0 {
		return []string{}, nil
	}
	ends := make([]C.uint64_t, count)
	var size C.size_t
	if err := c.check(C.value_strings(c.api, value, nil, 0, &size, &ends[0])); err != nil {
		return nil, err
	}
	bytes := make([]byte, size)
	text := (*C.char)(unsafe.Pointer(first(bytes)))
	if err := c.check(C.value_strings(c.api, value, text, size, &size, &ends[0])); err != nil {
		return nil, err
	}
	texts, start := make([]string, count), C.uint64_t(0)
	for i := range texts {
		texts[i] = string(bytes[start:ends[i]])
		start = ends[i]
	}
	return texts, nil
}
