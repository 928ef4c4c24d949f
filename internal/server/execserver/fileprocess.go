// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A fileProcess is a helper: a process in a sandbox that performs requests about files. The kernel
// judges each access there, so a path that changes its meaning between two calls opens nothing. It
// is for one goroutine, except stop.
type fileProcess struct {
	key     string            // of its sandbox
	holds   *config.Effective // nil without a ceiling
	process executor.Process
	stream  wire.Stream
	next    int64 // the ID of the next request
	used    time.Time
	broken  bool            // it cannot be used any more
	life    context.Context // of the connection
}

// newFileProcess starts a helper with the policy, /tmp and level of a spec, which ends with the
// connection. Ends counts it until then.
func newFileProcess(c *connection, ends *sync.WaitGroup, key string,
	spec *executor.Spec) (*fileProcess, error) {
	s := c.server
	if len(s.opts.FileHelper) == 0 {
		return nil, refuse("file operations in a sandbox are not available in this exec-server")
	}
	policy, err := seesProgram(spec.Policy, s.opts.FileHelper[0])
	if err != nil {
		return nil, err
	}
	requests, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, answers, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, requests.Close(), in.Close())
	}
	process, err := s.exec.Start(c.life, &executor.Spec{
		Args: s.opts.FileHelper, Dir: "/", Env: core(s.opts.Environ), Policy: policy, Tmp: spec.Tmp,
		Level: spec.Level, NoCaches: true,
		Stdin: requests, Stdout: answers, Grace: -1,
	})
	_, _ = requests.Close(), answers.Close() // the process has its own
	if err != nil {
		_, _ = in.Close(), out.Close()
		failure := startFailure(err)
		failure.Message = "cannot start the sandbox for file operations: " + failure.Message
		return nil, failure
	}
	h := &fileProcess{key: key, process: process, stream: wire.Lines(out, in), used: time.Now(), life: c.life}
	ends.Go(func() { _, _ = process.Wait() }) // a helper that ended is noticed by its streams
	return h, nil
}

// seesProgram returns the policy with which a program can be executed. What a policy does not
// list is added for that file; what it denies stays denied.
func seesProgram(p sandbox.Policy, program string) (sandbox.Policy, error) {
	const unlisted = "not listed"
	ruling, rule := p.Explain(sandbox.Access{Op: sandbox.Exec, Path: program})
	switch {
	case ruling == sandbox.Allow:
		return p, nil
	case rule == unlisted:
		return p.WithEntries(sandbox.PathEntry(program, sandbox.LevelRead)), nil
	}
	return p, refuse(fmt.Sprintf("file operations under this policy are not available: it denies %s, which performs them (%s)", program, rule))
}

// core returns the variables that processes inherit at least.
func core(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return !slices.Contains(coreNames, name)
	})
}

// call performs a request. It blocks until the helper has answered, or it or the connection has
// ended.
func (h *fileProcess) call(r *files.Request) (any, error) {
	defer context.AfterFunc(h.life, h.stop)()
	h.next++
	id := wire.Number(h.next)
	text, err := wire.Request(id, r.Method, r.Params, wire.Trace{})
	if err != nil {
		return nil, err
	}
	m, err := h.exchange(text)
	switch {
	case err == nil && m.ID == id && m.Kind == wire.KindResponse:
		return m.Result, nil
	case err == nil && m.ID == id && m.Kind == wire.KindError:
		return nil, m.Error
	}
	h.broken = true
	if err == nil {
		err = errors.New("it sent something else than the answer")
	}
	return nil, &wire.Error{
		Code:    wire.CodeInternal,
		Message: fmt.Sprintf("the process that performs file operations in the sandbox has ended: %v; the operation may have been performed in part", err),
	}
}

// exchange sends a request and returns what comes next.
func (h *fileProcess) exchange(request []byte) (*wire.Message, error) {
	if err := h.stream.Write(request); err != nil {
		return nil, err
	}
	answer, err := h.stream.Read()
	if err != nil {
		return nil, err
	}
	return wire.DecodeMessage(answer)
}

// stop ends the helper. It may be called more than once and does not wait.
func (h *fileProcess) stop() {
	h.process.Stop()
	_ = h.stream.Close() // a call in progress ends
}

// ServeFiles performs the requests about files that come in, one a line, and answers them. It
// judges nothing: [Server] runs it in the sandbox of the requests. It returns when in ends.
func ServeFiles(in io.ReadCloser, out io.WriteCloser) error {
	var here local.Executor
	host, err := here.Host(context.Background())
	if err != nil {
		return err
	}
	return files.Serve(host.OS, in, out)
}
