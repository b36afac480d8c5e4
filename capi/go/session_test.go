// SPDX-License-Identifier: Apache-2.0

package pyflamert

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

const digits = "../../samples/digits/"

// message joins the fields of a protobuf message.
func message(fields ...[]byte) []byte { return bytes.Join(fields, nil) }

// field is one of fewer than 128 bytes.
func field(number byte, content []byte) []byte {
	return append([]byte{number<<3 | 2, byte(len(content))}, content...)
}

func integer(number, value byte) []byte { return []byte{number << 3, value} }

// identity is an ONNX model y = Identity(x); dims are an encoded shape.
func identity(elementType ElementType, dims []byte) []byte {
	tensor := message(integer(1, byte(elementType)), field(2, dims))
	value := func(name string) []byte { return message(field(1, []byte(name)), field(2, field(1, tensor))) }
	node := message(field(1, []byte("x")), field(2, []byte("y")), field(4, []byte("Identity")))
	graph := message(field(1, node), field(2, []byte("g")), field(11, value("x")), field(12, value("y")))
	return message(integer(1, 8), field(7, graph), field(8, integer(2, 17)))
}

// withSequenceAndDefault is a model of a sequence y = [x] and a tensor z = x + c, where c is 2 unless it is given.
func withSequenceAndDefault() []byte {
	tensor := integer(1, byte(Float32))
	value := func(name string, kind []byte) []byte { return message(field(1, []byte(name)), field(2, kind)) }
	sequence := message(field(1, []byte("x")), field(2, []byte("y")), field(4, []byte("SequenceConstruct")))
	sum := message(field(1, []byte("x")), field(1, []byte("c")), field(2, []byte("z")), field(4, []byte("Add")))
	two := message(integer(2, byte(Float32)), field(8, []byte("c")), field(9, []byte{0, 0, 0, 0x40}))
	graph := message(field(1, sequence), field(1, sum), field(2, []byte("g")), field(5, two),
		field(11, value("x", field(1, tensor))), field(11, value("c", field(1, tensor))),
		field(12, value("y", field(4, field(1, field(1, tensor))))), field(12, value("z", field(1, tensor))))
	return message(integer(1, 8), field(7, graph), field(8, integer(2, 17)))
}

// anyLength is the shape of one dimension n.
var anyLength = field(1, field(2, []byte("n")))

func load(t *testing.T, elementType ElementType, dims []byte) *Session {
	t.Helper()
	session, err := LoadBytes(identity(elementType, dims), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func loadDigits(t *testing.T, options map[string]string) *Session {
	t.Helper()
	session, err := Load(digits+"digits.onnx", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func image(pixels []byte) map[string]Tensor {
	data := make([]float32, 64)
	for i, pixel := range pixels {
		data[i] = float32(pixel) / 16
	}
	return map[string]Tensor{"image": {Shape: []int64{1, 1, 8, 8}, Data: data}}
}

// countRight runs the session on all held-out images.
func countRight(session *Session) (right int, err error) {
	file, err := os.ReadFile(digits + "digits_test.bin")
	if err != nil {
		return 0, err
	}
	for file = file[20:]; len(file) >= 65; file = file[65:] {
		outputs, err := session.Run(context.Background(), image(file[1:65]), nil)
		if err != nil {
			return 0, err
		}
		probabilities := outputs["probabilities"].Data.([]float32)
		best := 0
		for c := range probabilities {
			if probabilities[c] > probabilities[best] {
				best = c
			}
		}
		if best == int(file[0]) {
			right++
		}
	}
	return right, nil
}

func TestDigitsAreClassified(t *testing.T) {
	right, err := countRight(loadDigits(t, nil))
	if right != 291 || err != nil {
		t.Error(right, err)
	}
}

func TestGoroutinesShareASession(t *testing.T) {
	session := loadDigits(t, map[string]string{"num_threads": "1"})
	failed := make(chan error)
	for i := 0; i < 2; i++ {
		go func() {
			right, err := countRight(session)
			if err == nil && right != 291 {
				err = errors.New("other digits")
			}
			failed <- err
		}()
	}
	for i := 0; i < 2; i++ {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func TestInputsAndOutputsAreListed(t *testing.T) {
	session := loadDigits(t, nil)
	inputs, outputs := session.Inputs(), session.Outputs()
	if len(inputs) != 1 || len(outputs) != 1 || outputs[0].Name != "probabilities" {
		t.Fatal(inputs, outputs)
	}
	if in := inputs[0]; in.Name != "image" || in.Kind != KindTensor || in.Type != Float32 || in.Optional ||
		!reflect.DeepEqual(in.Shape, []int64{-1, 1, 8, 8}) {
		t.Error(in)
	}
	if in := load(t, Int8, anyLength).Inputs()[0]; in.Type != Int8 || !reflect.DeepEqual(in.DimNames, []string{"n"}) {
		t.Error(in)
	}
}

func TestElementsOfEveryTypeComeAndGo(t *testing.T) {
	for _, data := range []any{
		[]float32{1.5, -2}, []float64{1e300, -0.5}, []int8{-128, 127}, []int16{-32768, 1}, []int32{-1 << 31, 7},
		[]int64{-1 << 63, 1 << 62}, []uint8{0, 255}, []uint16{1, 65535}, []uint32{1, 1<<32 - 1}, []uint64{1, 1<<64 - 1},
		[]bool{true, false}, []F16{0x3c00, 0x7bff}, []BF16{0x3f80, 0xc000}, []complex64{1 + 2i, -1},
		[]complex128{1 - 2i, 3}, []string{"é", "", "a\x00b", "\xff", strings.Repeat("long ", 1000)},
	} {
		all := reflect.ValueOf(data)
		var elementType ElementType
		for _, row := range elements {
			if row.goType == all.Type().Elem() {
				elementType = row.elementType
			}
		}
		t.Run(elementType.String(), func(t *testing.T) {
			session := load(t, elementType, anyLength)
			if found := session.Outputs()[0].Type; found != elementType {
				t.Error(found)
			}
			comesAndGoes := func(session *Session, given Tensor) {
				t.Helper()
				outputs, err := session.Run(context.Background(), map[string]Tensor{"x": given}, nil)
				if err != nil || !reflect.DeepEqual(outputs["y"], given) {
					t.Error(given, outputs, err)
				}
			}
			for _, n := range []int{all.Len(), 0, 1} {
				comesAndGoes(session, Tensor{[]int64{int64(n)}, all.Slice(0, n).Interface()})
			}
			comesAndGoes(load(t, elementType, nil), Tensor{[]int64{}, all.Slice(0, 1).Interface()})
		})
	}
}

// failed holds an error to its code and to words of its message.
func failed(t *testing.T, err error, code Code, words ...string) {
	t.Helper()
	var failed *Error
	if !errors.As(err, &failed) || failed.Code != code || !errors.Is(err, code) {
		t.Fatalf("%v is not '%v'", err, code)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("'%s' is not in: %v", word, err)
		}
	}
}

func TestWrongNamesShapesTypesAndFilesAreErrors(t *testing.T) {
	session := loadDigits(t, nil)
	run := func(name string, shape []int64, data any, outputs ...string) error {
		inputs := map[string]Tensor{name: {shape, data}}
		_, err := session.Run(context.Background(), inputs, &RunOptions{Outputs: outputs})
		return err
	}
	square, pixels := []int64{1, 1, 8, 8}, make([]float32, 64)
	failed(t, run("picture", square, pixels), Input, "picture", "image")
	failed(t, run("image", []int64{64}, pixels), ShapeMismatch, "image", "64")
	failed(t, run("image", square, pixels[:63]), ShapeMismatch, "image", "[1 1 8 8]", "63 elements")
	failed(t, run("image", []int64{-1, -64}, pixels), ShapeMismatch, "[-1 -64]")
	failed(t, run("image", []int64{1 << 62, 1 << 62}, pixels), ShapeMismatch, "image")
	failed(t, run("image", square, make([]float64, 64)), DtypeMismatch, "image", "float32", "float64")
	failed(t, run("image", square, pixels, "classes"), Input, "classes", "probabilities")
	for _, data := range []any{nil, 1.5, "text", []int{1}, map[string]int{}} {
		failed(t, run("image", square, data), DtypeMismatch, "image", "give a slice")
	}
	_, err := session.Run(context.Background(), nil, nil)
	failed(t, err, Input, "image")

	_, err = Load("/no/such.onnx", nil)
	failed(t, err, NotFound, "/no/such.onnx")
	_, err = LoadBytes([]byte("no model"), nil)
	failed(t, err, UnsupportedFormat, "onnx")
	_, err = LoadBytes(nil, nil)
	if err == nil {
		t.Error("no bytes are no model")
	}
	_, err = Load(digits+"digits.onnx", map[string]string{"num_thread": "1"})
	failed(t, err, InvalidArgument, "num_thread", "num_threads")
	if _, err = session.Run(context.Background(), image(nil), nil); err != nil {
		t.Error(err)
	}
}

func TestAClosedSessionIsAnError(t *testing.T) {
	session := loadDigits(t, nil)
	for i := 0; i < 2; i++ {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := session.Run(context.Background(), image(nil), nil)
	failed(t, err, InvalidArgument, "has been closed")
}

func TestClosingWaitsForNobodyAndHarmsNoRun(t *testing.T) {
	session := loadDigits(t, nil)
	ended := make(chan error)
	go func() {
		for {
			if _, err := session.Run(context.Background(), image(nil), nil); err != nil {
				ended <- err
				return
			}
		}
	}()
	session.Close()
	failed(t, <-ended, InvalidArgument, "has been closed")
}

func TestInputsMayHaveDefaultsAndOutputsBeLeftOut(t *testing.T) {
	session, err := LoadBytes(withSequenceAndDefault(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if in := session.Inputs(); in[0].Name != "x" || in[0].Optional || in[0].Shape != nil || !in[1].Optional {
		t.Error(in)
	}
	if kind := session.Outputs()[0].Kind; kind != KindSequence {
		t.Error(kind)
	}
	x, c := Tensor{[]int64{2}, []float32{1, 2}}, Tensor{nil, []float32{10}}
	_, err = session.Run(context.Background(), map[string]Tensor{"x": x}, nil)
	failed(t, err, Unsupported, "'y' is of kind sequence", "RunOptions.Outputs")
	for _, try := range []struct {
		inputs map[string]Tensor
		z      []float32
	}{
		{map[string]Tensor{"x": x}, []float32{3, 4}},
		{map[string]Tensor{"x": x, "c": c}, []float32{11, 12}},
	} {
		outputs, err := session.Run(context.Background(), try.inputs, &RunOptions{Outputs: []string{"z"}})
		if err != nil || len(outputs) != 1 || !reflect.DeepEqual(outputs["z"].Data, try.z) {
			t.Error(outputs, err)
		}
	}
}

func TestRunsAreToldWhatToDo(t *testing.T) {
	session := load(t, Float32, anyLength)
	x := map[string]Tensor{"x": {[]int64{2}, []float32{1, 2}}}
	ctx, cancel := context.WithCancel(context.Background())
	options := &RunOptions{
		Outputs: []string{"y"}, Timeout: time.Hour, NumThreads: 1, MemoryLimit: 1 << 30, Tag: "first",
	}
	if outputs, err := session.Run(ctx, x, options); err != nil || !reflect.DeepEqual(outputs["y"], x["x"]) {
		t.Error(outputs, err)
	}
	cancel()
	_, err := session.Run(ctx, x, options)
	failed(t, err, Cancelled)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	late, cancelLate := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancelLate()
	if _, err = session.Run(late, x, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	_, err = session.Run(context.Background(), x, &RunOptions{MemoryLimit: 1})
	failed(t, err, OutOfMemory)
	_, err = session.Run(context.Background(), x, &RunOptions{Timeout: -1})
	failed(t, err, InvalidArgument, "timeout_ms")
}

func TestManySessionsOpenAndClose(t *testing.T) {
	x := Tensor{[]int64{1}, []int32{7}}
	for i := 0; i < 100; i++ {
		session, err := LoadBytes(identity(Int32, anyLength), nil)
		if err != nil {
			t.Fatal(err)
		}
		if outputs, err := session.Run(context.Background(), map[string]Tensor{"x": x}, nil); err != nil ||
			!reflect.DeepEqual(outputs["y"], x) {
			t.Fatal(outputs, err)
		}
		session.Close()
	}
}

// The names of codes and types are those of the library, whatever numbers they have.
func TestNumbersHaveTheLibrarysNames(t *testing.T) {
	for number := ElementType(1); number <= Int2; number++ {
		if strings.HasPrefix(number.String(), "element type") {
			t.Error(number)
		}
	}
	for code := InvalidArgument; code <= Busy; code++ {
		if strings.HasPrefix(code.Error(), "code") {
			t.Error(code)
		}
	}
	if Code(99).Error() != "code 99" || ElementType(99).String() != "element type 99" {
		t.Error(Code(99), ElementType(99))
	}
}

// A process opens the library once: this test runs itself in another.
func TestALibraryThatIsNotThereIsAnError(t *testing.T) {
	const missing = "/no/such/libpyflamert_c.so"
	if os.Getenv("PYFLAME_RT_LIBRARY") == missing {
		for i := 0; i < 2; i++ {
			_, err := Load("digits.onnx", nil)
			failed(t, err, NotFound, "opening the library: PYFLAME_RT_LIBRARY names", missing, "No such file",
				"set PYFLAME")
		}
		return
	}
	again := exec.Command(os.Args[0], "-test.run", "^TestALibraryThatIsNotThereIsAnError$")
	again.Env = append(os.Environ(), "PYFLAME_RT_LIBRARY="+missing)
	if said, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}
