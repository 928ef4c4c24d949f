// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A Request is a decoded request about files.
type Request struct {
	Method  string
	Params  json.RawMessage
	Sandbox *wire.Sandbox // nil for none, and for requests about a handle
	Handle  string
	Use     HandleUse
	Writes  bool // it changes what exists
	// Perform does it with what this process may do. The error is for [Failure].
	Perform func(context.Context, *Server) (any, error)
}

// HandleUse is what a request does with a handle.
type HandleUse uint8

// The uses of a handle.
const (
	NoHandle HandleUse = iota
	OpensHandle
	UsesHandle
	ClosesHandle
)

// Has reports whether there is a method, and whether it is none of the protocol.
func Has(method string) (known, extension bool) {
	_, known = decoders()[method]
	return known, extensions[method]
}

// Decode reads the parameters of a request with a method that there is.
func Decode(method string, params json.RawMessage) (*Request, error) {
	r, err := decoders()[method](params)
	if err != nil {
		return nil, err
	}
	r.Method, r.Params = method, params
	r.Writes = r.Writes || !reads[method]
	return r, nil
}

// A Server performs requests about files. It is for one goroutine. The caller must call Close.
type Server struct {
	System  string // of the files, such as "linux"; for errors
	handles Handles
}

// Close closes the files that are open. It may be called more than once.
func (s *Server) Close() { s.handles.CloseAll() }

// target returns the file that a request is about.
func (s *Server) target(f *wire.File) (Target, error) {
	path, err := s.Path(f.Path)
	return Target{Path: path, NoFollow: !f.Follow}, err
}

// Path returns the path of a URI. The error is a *jsonrpc.Error.
func (s *Server) Path(uri string) (string, error) {
	path, err := wire.Path(uri, s.System)
	var foreign *wire.HostError
	switch {
	case errors.As(err, &foreign):
		return "", refuse(err.Error())
	case err != nil:
		return "", invalid(err.Error())
	}
	return path, nil
}

// Inspect returns nil for a root without capabilities. All that it knows to have none are empty
// directories: an error is better than to say that there are none.
func (s *Server) Inspect(root wire.CapabilityRoot) error {
	if root.Sandbox != nil {
		return errors.New("discovery in a sandbox is not supported by this exec-server")
	}
	path, err := s.Path(root.Path)
	if err != nil {
		return err
	}
	info, err := Stat(Target{Path: path})
	if err != nil {
		return err
	}
	if !info.IsDirectory {
		return errors.New("it is not a directory")
	}
	entries, err := ReadDirectory(path)
	if err == nil && len(entries) > 0 {
		err = errors.New("discovery of capabilities is not supported by this exec-server: the protocol does not define the files of plugins and skills; use `fs/walk` to see what exists")
	}
	return err
}

// Serve performs the requests that come in, one a line, and answers them. It returns when in ends.
func Serve(system string, in io.ReadCloser, out io.WriteCloser) error {
	s := &Server{System: system}
	defer s.Close()
	stream := wire.Lines(in, out)
	for {
		text, err := stream.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var m *wire.Message
		if err == nil {
			m, err = wire.DecodeMessage(text)
		}
		if err == nil {
			err = stream.Write(s.answer(m))
		}
		if err != nil {
			return fmt.Errorf("cannot serve file operations: %w", err)
		}
	}
}

// answer performs a request and returns the message that answers it.
func (s *Server) answer(m *wire.Message) []byte {
	result, err := s.perform(m.Method, m.Params)
	var text []byte
	if err == nil {
		text, err = wire.Response(m.ID, result)
	}
	if err != nil {
		text, _ = wire.Failure(m.ID, Failure(err)) // texts and numbers always encode
	}
	return text
}

func (s *Server) perform(name string, params json.RawMessage) (any, error) {
	decode, ok := decoders()[name]
	if !ok {
		return nil, refuse("there is no method " + name)
	}
	r, err := decode(params)
	if err != nil {
		return nil, invalid(err.Error())
	}
	return r.Perform(context.Background(), s)
}

// Failure returns the error of a request about files, by its kind and in the words that
// clients know.
func Failure(err error) *wire.Error {
	var known *wire.Error
	var inv *InvalidError
	var handle *HandleError
	var errno syscall.Errno
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &inv):
		return refuse(inv.Error())
	case errors.As(err, &handle):
		return &wire.Error{Code: wire.CodeNotFound, Message: handle.Error()}
	case !errors.As(err, &errno):
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	}
	failure := &wire.Error{Code: wire.CodeInternal, Message: systemText(errno)}
	switch errno {
	case syscall.ENOENT:
		failure.Code = wire.CodeNotFound
	case syscall.EACCES, syscall.EPERM, syscall.EINVAL:
		failure.Code = wire.CodeInvalidRequest
	}
	return failure
}

// systemText returns the text of an error of the system as clients know it.
func systemText(errno syscall.Errno) string {
	text := errno.Error()
	return fmt.Sprintf("%s%s (os error %d)", strings.ToUpper(text[:1]), text[1:], int(errno))
}

func refuse(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: message}
}

func invalid(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: message}
}
