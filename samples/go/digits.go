// SPDX-License-Identifier: Apache-2.0
//
// Classifies handwritten digits through the C ABI: prints the class of the first held-out image and its
// probability, then how many of all are right. Argument: the folder with digits.onnx and digits_test.bin.
package main

/*
#cgo LDFLAGS: -lpyflamert_c
#include <pyflame_rt/pyflame_rt.h>
#include <stdlib.h>

// Go calls C functions by name, not by pointer: one line for each slot of the tables that is used.
static pfrt_string status_message(const pfrt_api* api, const pfrt_status* s) { return api->status->message(s); }
static void status_release(const pfrt_api* api, pfrt_status* s) { api->status->release(s); }
static pfrt_status* env_create(const pfrt_api* api, pfrt_env** out) { return api->env->create(NULL, out); }
static void env_release(const pfrt_api* api, pfrt_env* env) { api->env->release(env); }
static pfrt_status* model_load(const pfrt_api* api, pfrt_env* env, pfrt_string path, pfrt_model** out) {
  return api->model->load_file(env, path, NULL, out);
}
static void model_release(const pfrt_api* api, pfrt_model* model) { api->model->release(model); }
static pfrt_status* session_create(const pfrt_api* api, pfrt_env* env, pfrt_model* model, pfrt_session** out) {
  const pfrt_session_desc desc = {.struct_size = sizeof desc, .model = model};
  return api->session->create(env, &desc, out);
}
static void session_release(const pfrt_api* api, pfrt_session* s) { api->session->release(s); }

// The structs are made here because C may not be given Go memory that has pointers to Go memory.
static pfrt_status* classify(const pfrt_api* api, pfrt_session* session, float image[64], float out[10]) {
  static const int64_t dims[4] = {1, 1, 8, 8};
  const pfrt_io input = {
      .struct_size = sizeof input,
      .tensor = {.struct_size = sizeof input.tensor, .dtype = PFRT_DTYPE_FLOAT32, .rank = 4, .dims = dims,
                 .data = image, .bytes = 64 * sizeof *image}};
  pfrt_io output = {
      .struct_size = sizeof output,
      .tensor = {.struct_size = sizeof output.tensor, .dtype = PFRT_DTYPE_FLOAT32,
                 .data = out, .bytes = 10 * sizeof *out}};
  return api->session->run(session, &input, 1, &output, 1, NULL);
}
*/
import "C"

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"
)

type digit struct {
	Label  uint8
	Pixels [64]uint8 // 0..16
}

// The layout is described in samples/digits/train.py.
func readDigits(path string) ([]digit, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w; the argument is the folder of the digits", err)
	}
	var header struct {
		Magic                [8]byte
		Count, Height, Width uint32
	}
	file := bytes.NewReader(content)
	err = binary.Read(file, binary.LittleEndian, &header)
	if err != nil || string(header.Magic[:]) != "PFRTDIG1" || header.Count == 0 || header.Height != 8 ||
		header.Width != 8 {
		return nil, fmt.Errorf("%s is not a file of 8x8 digits", path)
	}
	if uint64(file.Len()) < uint64(header.Count)*65 {
		return nil, fmt.Errorf("%s is truncated", path)
	}
	digits := make([]digit, header.Count)
	return digits, binary.Read(file, binary.LittleEndian, digits)
}

func words(text C.pfrt_string) string {
	return C.GoStringN(text.data, C.int(text.size))
}

type session struct {
	api    *C.pfrt_api
	handle *C.pfrt_session
}

func check(api *C.pfrt_api, status *C.pfrt_status) error {
	if status == nil {
		return nil
	}
	defer C.status_release(api, status)
	return errors.New(words(C.status_message(api, status)))
}

func openSession(path string) (*session, error) {
	info := C.pfrt_abi_info{struct_size: C.sizeof_pfrt_abi_info}
	api := C.pfrt_get_api(C.PFRT_ABI_VERSION, &info)
	if api == nil {
		return nil, errors.New(words(info.message))
	}
	var env *C.pfrt_env
	if err := check(api, C.env_create(api, &env)); err != nil {
		return nil, err
	}
	defer C.env_release(api, env) // the session keeps what it needs of it, and of the model
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	var model *C.pfrt_model
	if err := check(api, C.model_load(api, env, C.pfrt_string{text, C.size_t(len(path))}, &model)); err != nil {
		return nil, err
	}
	defer C.model_release(api, model)
	opened := &session{api: api}
	return opened, check(api, C.session_create(api, env, model, &opened.handle))
}

func (s *session) close() { C.session_release(s.api, s.handle) }

func (s *session) classify(pixels *[64]uint8) (probabilities [10]float32, err error) {
	var image [64]float32
	for p, pixel := range pixels {
		image[p] = float32(pixel) / 16
	}
	in, out := (*C.float)(&image[0]), (*C.float)(&probabilities[0])
	err = check(s.api, C.classify(s.api, s.handle, in, out))
	return probabilities, err
}

func work() error {
	folder := "."
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	digits, err := readDigits(folder + "/digits_test.bin")
	if err != nil {
		return err
	}
	session, err := openSession(folder + "/digits.onnx")
	if err != nil {
		return err
	}
	defer session.close()
	right := 0
	for i := range digits {
		probabilities, err := session.classify(&digits[i].Pixels)
		if err != nil {
			return err
		}
		best := 0
		for c, probability := range probabilities {
			if probability > probabilities[best] {
				best = c
			}
		}
		if i == 0 {
			fmt.Printf("the first image is a %d with probability %.6f\n", best, probabilities[best])
		}
		if best == int(digits[i].Label) {
			right++
		}
	}
	fmt.Printf("%d of %d held-out images are right\n", right, len(digits))
	fmt.Printf("accuracy %.1f %%\n", 100*float64(right)/float64(len(digits)))
	return nil
}

func main() {
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "digits:", err)
		os.Exit(1)
	}
}
