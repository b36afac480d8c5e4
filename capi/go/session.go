// SPDX-License-Identifier: Apache-2.0

// Package pyflamert runs ONNX models with PyFlameRT: a Session is loaded from a file and run with Tensors by name.
//
// The package opens libpyflamert_c.so at its first use. It looks for the library where the environment variable
// PYFLAME_RT_LIBRARY says, else beside the program (in its folder native, then in its own), else where the loader looks.
// There is one environment (threads, plug-ins, log) for the process, made at the first use and kept until the process
// ends.
package pyflamert

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A ValueInfo describes an input or an output.
type ValueInfo struct {
	Name     string // what runs take
	Kind     Kind
	Type     ElementType // of its elements; 0 where the model does not say
	Shape    []int64     // -1 where a dimension may have any size; nil where the model does not say how many there are
	DimNames []string    // the names of dimensions, "" where one has none; as long as Shape
	Optional bool        // whether an input has a default value, and need not be given
}

// RunOptions is what a run may be told. Zero fields and nil are a plain run.
type RunOptions struct {
	Outputs     []string      // names of the outputs that are wanted; empty = all
	Timeout     time.Duration // the run ends with Deadline after so long; 0 = never
	NumThreads  int64         // threads of this run; 0 = the session's
	MemoryLimit int64         // bytes of memory that the run and its results may take; 0 = no limit of its own
	Tag         string        // the name of the run in logs and profiles
}

// A Session is a model that is loaded and planned. Any number of goroutines may use it at once.
type Session struct {
	mutex   sync.Mutex
	handle  handle // nil once it is closed
	inputs  []ValueInfo
	outputs []ValueInfo
}

// Load loads the model in a file. The options are the library's of a session by their names, as in
// map[string]string{"num_threads": "1"}; `pfrt run --help` lists them. They may be nil. The error is NotFound where
// there is no such file.
func Load(path string, options map[string]string) (*Session, error) {
	return open(options, func(library *library) (model, error) { return library.loadFile(path) })
}

// LoadBytes loads a model from its bytes, which are copied.
func LoadBytes(bytes []byte, options map[string]string) (*Session, error) {
	return open(options, func(library *library) (model, error) { return library.loadBytes(bytes) })
}

func open(options map[string]string, load func(*library) (model, error)) (*Session, error) {
	library, err := getLibrary()
	if err != nil {
		return nil, err
	}
	handle, err := library.newSession(options, load)
	if err != nil {
		return nil, err
	}
	session := &Session{handle: handle}
	runtime.SetFinalizer(session, (*Session).Close)
	if session.inputs, session.outputs, err = library.describe(handle); err != nil {
		session.Close()
		return nil, err
	}
	return session, nil
}

// Inputs describes the inputs: those that must be given, then those with a default value.
func (s *Session) Inputs() []ValueInfo { return append([]ValueInfo(nil), s.inputs...) }

// Outputs describes the outputs.
func (s *Session) Outputs() []ValueInfo { return append([]ValueInfo(nil), s.outputs...) }

// Run runs the model on inputs by name, and returns outputs by name. It ends soon after ctx is done; errors.Is then
// finds Cancelled, and the context's own error. The options may be nil.
func (s *Session) Run(ctx context.Context, inputs map[string]Tensor, options *RunOptions) (map[string]Tensor, error) {
	handle, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer theLibrary.releaseSession(handle)
	if options == nil {
		options = &RunOptions{}
	}
	wanted := options.Outputs
	if len(wanted) == 0 {
		for _, output := range s.outputs {
			wanted = append(wanted, output.Name)
		}
	}
	call := theLibrary.newCall()
	defer call.free()
	call.tell(options)
	defer listen(ctx, call.cancel)()
	outputs, err := call.run(handle, inputs, wanted)
	if failed, ok := err.(*Error); ok && failed.Code == Cancelled {
		failed.cause = ctx.Err()
	}
	return outputs, err
}

// Close frees the session, once the runs in progress are over; runs that begin later are an error. It returns nil.
func (s *Session) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.handle != nil {
		theLibrary.releaseSession(s.handle)
		s.handle = nil
		runtime.SetFinalizer(s, nil)
	}
	return nil
}

// acquire returns the session's handle with a reference for the caller, so that Close does no harm to a run.
func (s *Session) acquire() (handle, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.handle == nil {
		return nil, fail(InvalidArgument, "running: the session has been closed; load another")
	}
	theLibrary.retainSession(s.handle)
	return s.handle, nil
}

// listen sets the flag when ctx is done. The function that it returns ends that, and the flag may go.
func listen(ctx context.Context, flag *uint32) func() {
	if ctx.Err() != nil {
		*flag = 1
	}
	if ctx.Done() == nil || *flag != 0 {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
			atomic.StoreUint32(flag, 1)
		case <-over:
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}
