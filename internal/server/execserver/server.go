// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// Options say how a Server serves. The zero Options are the defaults.
type Options struct {
	// Version is told to clients; it may be empty.
	Version string
	// Environ holds the variables that processes may inherit, as "NAME=value".
	Environ []string
	// Dir is the working directory that clients are told; absolute, or empty.
	Dir string
	// Detached is how long a session lives without a connection. Zero means 15 minutes,
	// negative means not at all.
	Detached time.Duration
	// Drain is how long the end of the server waits for clients, beside the longest time that a run
	// has between SIGTERM and SIGKILL. Zero means 2 seconds.
	Drain time.Duration
	// Starts is how many processes are started at once for one connection. Zero means 1.
	Starts int
	// Hidden are absolute paths that no process in a sandbox reads: the secrets of the server
	// itself.
	Hidden []string
	// Kept are absolute paths of files that decide who is let in. No process in a sandbox changes them.
	Kept []string
	// FileHelper is the program, by its absolute path, and the arguments that call [ServeFiles]
	// with its standard input and output. It performs what a client wants done with files in a
	// sandbox. Without it that is refused.
	FileHelper []string
	// LogDir is where output is kept that is more than memory keeps of a process; made with mode
	// 0700. Empty means that it is not kept.
	LogDir string
	// Isolate starts each process in a sandbox of its own. False starts those of a session that are
	// confined and have equal networks in one shared sandbox, so that they reach each other.
	Isolate bool
	// Managed is the directory of the managed configuration, which bounds processes, files and HTTP
	// requests as it bounds runs; empty is that of the system.
	Managed string
	// Durable keeps the output of processes and runs, and what is known of them, for the next server, which
	// has them in sessions and runs that can be read. The caller closes it after the Server. Nil keeps
	// nothing.
	Durable *durable.Store
	// Leftovers records what runs, so that the next server ends what is left of it when this one is killed.
	// The caller closes it after the Server. Nil records nothing.
	Leftovers *osprocess.Leftovers
	// RequireSandbox refuses processes, runs and requests about files that would have no sandbox, as the
	// managed configuration with a mode does.
	RequireSandbox bool
	// AllowHTTP lets clients make HTTP requests from this machine, to every host that it reaches.
	AllowHTTP bool
	// HTTPEnv are the names of variables in Environ whose values clients may put into headers of
	// such requests; "*" means all. Who may send a value can also learn it.
	HTTPEnv []string
	// Busy, if not nil, is called with 1 when there is something more for which the server must
	// go on, such as a process that starts, and with -1 when that is over.
	Busy func(change int)
	// Prepare returns what runs for run/start; nil means that the methods run/* are not served.
	Prepare runs.Prepare
	// Questions are what the server serves, and nothing else: only the methods question/* about
	// them. Nil means that it serves all methods, these about the questions of runs.
	Questions *runs.Questions
	// Audit keeps what happens to processes of clients that are no runs; nil keeps nothing.
	Audit records.ServerLog
	// RunNumber gives the runs their numbers; nil means that they count from 1.
	RunNumber runs.Number
	// RunPrefix begins the ID of each run, before its number; it may be empty.
	RunPrefix string
	// MaxRuns is how many runs of one credential are alive at once, those that are starting included. Zero
	// means 64.
	MaxRuns int
	// MaxDetached is how many sessions without a connection are kept; of too many, the one that is without
	// for longest ends, of those of the group which has most. Zero means 256.
	MaxDetached int
	// Group returns the group of a credential, so that one group does not displace the sessions of another.
	// Nil has all be one group.
	Group func(credential string) string
	// Admit is called before each start of a process or a run for a session with an ID. An error refuses it:
	// a *wire.Error is the answer as it is, and every other one is the text of an invalid request. Leave is
	// called once when the process has ended entirely, before the client is told, or the run has ended, or
	// when they did not start; it may be nil. Both may be called from several goroutines at once, and must
	// not wait for the Server. A start that is answered with an earlier one is not admitted, nor are the
	// processes for requests about files. Nil admits everything.
	Admit func(session string) (leave func(), err error)
}

const (
	defaultDetached    = 15 * time.Minute
	defaultDrain       = 2 * time.Second
	defaultMaxDetached = 256
)

// ErrClosed is returned by Serve and Dial after Shutdown or Close. A client does not try to resume its
// session then.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string { return "the server is closed" }
func (closedError) Unwrap() error { return wire.ErrServerEnded }

// A Server has the sessions of all clients. Make one with New.
type Server struct {
	opts Options
	exec local.Executor
	runs *runs.Table // nil if they are not served
	info func() *wire.Environment
	life context.Context // ends with the last connection
	end  context.CancelFunc
	// serving ends when the server begins to end, and with it what is no matter of a process.
	serving context.Context
	stop    context.CancelCauseFunc
	spills  output.Store
	work    sync.WaitGroup // processes; added to under mu while not closed
	near    sync.WaitGroup // clients in memory, and who watches; as work
	left    atomic.Int64   // requests about files that are in progress for no connection
	starts  runs.Starts[*startAnswer]

	stages      runs.Changes
	watchStages func() error // has stages be told of changes; done at the first call

	mu          sync.Mutex
	closed      bool
	sessions    map[string]*session // that can be resumed
	origins     map[string]*origin  // by the IDs of their sessions
	connections map[*connection]struct{}

	reviving sync.Mutex // held while a session is made of logs
}

// New returns a Server. The caller must call Close.
func New(opts Options) *Server {
	opts.Detached = cmp.Or(opts.Detached, defaultDetached)
	opts.Drain = cmp.Or(opts.Drain, defaultDrain)
	opts.MaxDetached = cmp.Or(opts.MaxDetached, defaultMaxDetached)
	opts.Starts = max(opts.Starts, 1)
	if opts.Busy == nil {
		opts.Busy = func(int) {}
	}
	s := &Server{opts: opts, sessions: make(map[string]*session), origins: make(map[string]*origin),
		connections: make(map[*connection]struct{})}
	s.spills.Dir, s.spills.Own = opts.LogDir, true
	s.exec.Started = opts.Leftovers.Add
	for _, dir := range []string{opts.Leftovers.Dir(), opts.Durable.Dir()} {
		if dir != "" {
			s.opts.Hidden = append(slices.Clone(s.opts.Hidden), dir)
		}
	}
	s.life, s.end = context.WithCancel(context.Background())
	s.serving, s.stop = context.WithCancelCause(s.life)
	s.info, s.watchStages = sync.OnceValue(s.environment), sync.OnceValue(s.followStages)
	if opts.Questions != nil {
		s.info = func() *wire.Environment { return nil }
	}
	if opts.Prepare != nil {
		s.runs = runs.New(opts.Prepare, opts.RunNumber, s.opts.Hidden, opts.Kept, opts.Busy)
		s.runs.Record(opts.Leftovers)
		s.runs.Durable = opts.Durable
		s.runs.Prefix, s.runs.Live = opts.RunPrefix, opts.MaxRuns
	}
	return s
}

// Serve speaks with one client until the connection ends, and closes the stream. Credential
// identifies the client: a session is resumed only with the credential that made it. Serve
// returns nil when the client has ended the connection properly, and ErrClosed when the server has.
func (s *Server) Serve(stream wire.Stream, credential string) error {
	return s.ServeSession(stream, credential, "")
}

// ServeSession is [Server.Serve] for a connection whose session has an ID that the caller chose, if it does
// not resume one. While [Server.Sessions] has a session with the ID, none is opened with it again. An empty
// ID is one that the Server makes.
func (s *Server) ServeSession(stream wire.Stream, credential, session string) error {
	c := newConnection(s, stream, credential)
	c.opens = session
	defer c.finish()
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.connections[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if s.runs != nil {
		s.runs.Restore(credential)
	}
	err := c.serve()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case s.closed:
		return ErrClosed
	}
	return err
}

// Dial connects a client in this process, in memory: one message a line. Their credential is one that no
// other client has.
func (s *Server) Dial(context.Context) (io.ReadWriteCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	client, own := net.Pipe()
	s.near.Go(func() { _ = s.Serve(wire.LinesOn(own), nearby) }) // the client sees the end
	return client, nil
}

// nearby is the credential of clients in this process.
const nearby = "this process"

// newLog returns the log of the output of a process.
func (s *Server) newLog() *output.Log {
	return output.NewTail(maxKept, func() (*output.File, error) { return s.spills.Create(maxSpilled) })
}

// enter announces a process, and reports false when the server is closed. It ends with leave.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
		s.opts.Busy(1)
	}
	return !s.closed
}

// leave ends what enter announced.
func (s *Server) leave() {
	s.opts.Busy(-1)
	s.work.Done()
}

// open makes a session for a connection.
func (s *Server) open(c *connection) (*session, *wire.Error) {
	ses := newSession(s, cmp.Or(c.opens, wire.NewSessionID()), c.credential)
	ses.attach(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, refuse("the server is closing")
	case s.origins[ses.id] != nil:
		return nil, refuse("session " + ses.id + " exists")
	}
	s.sessions[ses.id] = ses
	s.origins[ses.id] = ses.origin
	return ses, nil
}

// resume gives a connection a session that has none, or with takeOver that of another one, which it
// cuts. A session of another credential is as unknown as one that does not exist.
func (s *Server) resume(c *connection, id string, takeOver bool) (*session, *wire.Error) {
	s.revive(id, c.credential)
	for {
		s.mu.Lock()
		ses := s.sessions[id]
		if ses == nil || ses.credential != c.credential {
			s.mu.Unlock()
			return nil, refuse("unknown session id " + id)
		}
		other, left := ses.attach(c)
		s.mu.Unlock()
		switch {
		case other == nil:
			return ses, nil
		case !takeOver:
			return nil, &wire.Error{Code: wire.CodeAttached, Message: "session " + id +
				" is already attached to another connection"}
		}
		other.cut()
		select {
		case <-left:
		case <-c.life.Done():
			return nil, refuse("the connection has ended")
		}
	}
}

// detached keeps a session that has lost its connection for a while. Of too many, the one of the largest
// group that is without a connection for longest ends.
func (s *Server) detached(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[ses.id] != ses {
		ses.detach(0, nil) // it is ending
		return
	}
	ses.detach(s.opts.Detached, func() { s.expire(ses) })
	type group struct {
		count  int
		oldest *session
		since  time.Time
	}
	groups, n, most := make(map[string]*group), 0, new(group)
	for _, other := range s.sessions {
		since, detached := other.since()
		if !detached {
			continue
		}
		name := ""
		if s.opts.Group != nil {
			name = s.opts.Group(other.credential)
		}
		g := groups[name]
		if g == nil {
			g = new(group)
			groups[name] = g
		}
		n, g.count = n+1, g.count+1
		if g.oldest == nil || since.Before(g.since) {
			g.oldest, g.since = other, since
		}
		if g.count > most.count {
			most = g
		}
	}
	if n > s.opts.MaxDetached {
		s.unlist(most.oldest)
		go s.retire(most.oldest)
	}
}

// expire ends a session that has no connection.
func (s *Server) expire(ses *session) {
	s.mu.Lock()
	_, detached := ses.since()
	if detached = detached && s.sessions[ses.id] == ses; detached {
		s.unlist(ses)
	}
	s.mu.Unlock()
	if detached {
		s.retire(ses)
	}
}

// refuse returns the error for a request that does not fit the state of the server.
func refuse(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: message}
}

// invalid returns the error for parameters.
func invalid(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidParams, Message: message}
}
