// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	inside "github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/strict"
)

// Options say how a Server serves. The zero Options are those of "sallyport exec-server" without flags, but
// do not serve files in a sandbox.
type Options struct {
	// Dir is the working directory that clients are told. Empty means that of this process when New is
	// called, and a relative one is relative to that.
	Dir string
	// Environ holds the variables that commands may inherit, as "NAME=value"; what a client inherits of
	// them is for the client. Nil means those of this process when New is called, empty none.
	Environ []string
	// Managed is the directory of the managed configuration, which bounds what clients may ask for. Empty
	// means that of the system, /etc/sallyport. Where it cannot be read, nothing runs.
	Managed string
	// Approver answers what judged runs need an approval for, in place of the client. Nil means that the
	// client is asked if it says that it answers, and that there is no approval elsewhere.
	Approver approval.Approver
	// FileHelper is a program, by its absolute path, and the arguments with which it calls [ServeFiles] for
	// its standard input and output. It performs requests about files in a sandbox: the Server runs it in
	// that sandbox. Nil means that those requests are refused.
	FileHelper []string
	// Isolate starts each process in a sandbox of its own. False has those of a session that are confined,
	// and have equal networks, share one.
	Isolate bool
	// RequireSandbox refuses processes, runs and requests about files that would have no sandbox.
	RequireSandbox bool
	// Detached is how long a session whose connection was cut can be resumed. Zero means 15 minutes,
	// negative not at all.
	Detached time.Duration
}

// ErrClosed is returned by Serve and Dial after Shutdown or Close.
var ErrClosed = inside.ErrClosed

// ErrStuck is returned by Shutdown and Close when a process does not end although it was killed.
var ErrStuck = inside.ErrStuck

// A Server serves any number of clients. What they run is kept in the audit log of this user, as settings in
// Options.Environ and the managed configuration say; unless these say no, nothing runs that it cannot keep.
// It is made by New. Its methods may be called from several
// goroutines at once.
type Server struct {
	server *inside.Server
	log    *args.Audit
}

// New returns a Server. It does not block. The caller must call Shutdown or Close.
func New(opts Options) *Server {
	o := inside.Options{
		Environ: opts.Environ, Managed: cmp.Or(opts.Managed, config.System), FileHelper: opts.FileHelper,
		Isolate: opts.Isolate, RequireSandbox: opts.RequireSandbox, Detached: opts.Detached,
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	o.Dir, _ = filepath.Abs(opts.Dir) // where there is no directory, clients are told none
	log := args.Complete(&o, nil)
	if opts.Approver != nil {
		prepare := o.Prepare
		o.Prepare = func(ctx context.Context, r *runs.Request) (*runs.Prepared, error) {
			asks := *r
			asks.Approver = opts.Approver
			return prepare(ctx, &asks)
		}
	}
	return &Server{inside.New(o), log}
}

// Serve speaks with one client, which sends and gets one message a line, until the connection ends, and
// closes it. It blocks until then. The end of ctx cuts the connection. Serve returns nil when the client
// has ended the connection properly, [ErrClosed] when the Server has ended, and else why the connection
// ended, which is the cause of ctx where that has. A session whose connection was cut goes on for
// Options.Detached, and is resumed by a client that knows its ID.
//
// There is no authentication: every process that reaches the connection runs commands as the user of this
// process. Close of the connection must end a Read and a Write that wait.
func (s *Server) Serve(ctx context.Context, conn io.ReadWriteCloser) error {
	stream := wire.LinesOn(strict.Conn("the connection", conn))
	if err := strict.CheckContext(ctx); err != nil {
		return errors.Join(err, stream.Close())
	}
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })() // Serve sees the end
	err := s.server.Serve(stream, "")
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// Dial returns a connection in memory, which is served as by Serve: it is for remote.Options.Dial. Sessions
// and runs of such clients are unknown to those of Serve, and theirs to them. Dial does not block, and does
// not use its context. The error is [ErrClosed], or nil.
func (s *Server) Dial(ctx context.Context) (io.ReadWriteCloser, error) { return s.server.Dial(ctx) }

// Shutdown ends all processes and runs, and waits until none is left and the connections have ended.
// Clients get the output that is left, exits, and answers to requests that wait, for at most 2 seconds and
// the longest time that a run has between SIGTERM and SIGKILL, or until ctx ends. The error is nil or
// [ErrStuck], or that of the audit log.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := strict.CheckContext(ctx); err != nil {
		return err
	}
	return errors.Join(s.server.Shutdown(ctx), s.log.Close())
}

// Close is Shutdown without waiting for clients. It may be called more than once, and after Shutdown.
func (s *Server) Close() error { return errors.Join(s.server.Close(), s.log.Close()) }

// ServeFiles performs requests about files that come in, and answers them. It is for the program of
// Options.FileHelper, and returns when in ends.
func ServeFiles(in io.ReadCloser, out io.WriteCloser) error { return inside.ServeFiles(in, out) }
