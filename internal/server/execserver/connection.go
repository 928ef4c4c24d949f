// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// maxReads is how many reads of one connection, and requests about its runs, wait at once.
const maxReads = 1024

// A connection speaks with one client.
type connection struct {
	server     *Server
	conn       *wire.Conn
	credential string
	opens      string          // the ID of the session that it opens; empty for a new one
	life       context.Context // ends with the connection
	end        context.CancelFunc
	starts     chan struct{}  // holds a value for each start in progress
	reads      atomic.Int64   // requests that wait
	pages      chan struct{}  // holds a value while the output of a run is on its way
	work       sync.WaitGroup // goroutines of requests; added to while turn is held, or by one of them
	asked      asked
	cancels    cancels
	files      fileLane
	watches    watches
	http       httpRequests

	turn     sync.Mutex // held while a message is handled, or a start is made after all
	over     bool       // no further one is; guarded by turn, as is usesRuns
	usesRuns bool       // the client has asked for a run
	parts    runs.Parts // of the result that is being read; guarded by turn

	// Only the goroutine of serve uses these, and who holds turn.
	session  *session        // nil before initialize
	ready    bool            // initialized has come
	approves bool            // it answers run/approve
	observes bool            // the session is that of another connection
	trace    *wire.Trace     // of the request that is performed; nil for none
	started  <-chan struct{} // closed when the newest process/start has begun, or never will

	// These are set by initialize, before the session sends events.
	binary  bool // output is sent in binary messages
	extends bool // the client has asked for extension methods
}

func newConnection(s *Server, stream wire.Stream, credential string) *connection {
	c := &connection{server: s, conn: wire.NewConn(stream), credential: credential,
		starts: make(chan struct{}, s.opts.Starts), pages: make(chan struct{}, 1)}
	c.life, c.end = context.WithCancel(s.life)
	c.files, c.started = fileLane{connection: c, last: idle}, idle
	return c
}

// errProtocol ends a connection whose client does not speak the protocol.
var errProtocol = errors.New("the client sent a message that the protocol does not allow")

// serve reads and performs requests until the connection ends. The error is io.EOF when the
// client has ended it.
func (c *connection) serve() error {
	for {
		m, err := c.conn.Read()
		var malformed *wire.MalformedError
		switch {
		case errors.As(err, &malformed):
			c.fail(wire.Malformed(), refuse(malformed.Error()))
			continue
		case errors.Is(err, io.EOF):
			c.leave() // its processes send nothing any more
			late := time.AfterFunc(finishTime, c.end)
			c.last() // what was asked for is done
			select {
			case <-c.started:
			case <-c.life.Done():
			}
			late.Stop()
			c.end()
			c.settle()
			c.conn.Finish()
			return err
		case err != nil:
			return err
		}
		if err := c.handle(m); err != nil {
			return err
		}
	}
}

// handle handles a message. The error ends the connection.
func (c *connection) handle(m *wire.Message) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	switch {
	case c.over:
	case m.Kind == wire.KindRequest:
		c.request(m)
	case m.Kind == wire.KindNotification && m.Method == "initialized" && c.session != nil:
		c.ready = true
	case m.Kind == wire.KindNotification && m.Method == "request/cancel" && c.extends:
		return c.cancelRequest(m)
	case (m.Kind == wire.KindResponse || m.Kind == wire.KindError) && c.asked.end(m):
	default:
		return errProtocol
	}
	return nil
}

// cut ends the connection from outside.
func (c *connection) cut() {
	c.end()
	c.conn.Close()
}

// finish ends the connection and everything that belongs to it alone.
func (c *connection) finish() {
	c.cut()
	c.detach()
	c.settle()
	c.http.close()
}

const (
	// finishTime is how long what a client asked for before it went is performed.
	finishTime = 10 * time.Minute
	// lateTime is how long is waited for what does not end although everything has that it could wait
	// for: then the system holds it up, as with a file system that does not answer.
	lateTime = 5 * time.Second
)

// settle waits for the goroutines of requests, and leaves those that do not end with the connection.
func (c *connection) settle() {
	done := make(chan struct{})
	go func() {
		c.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-c.life.Done():
	}
	timer := time.NewTimer(lateTime)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		c.server.leaves(done)
	}
}

// detach cancels what waits for the client and leaves the session.
func (c *connection) detach() {
	c.end()
	c.leave()
}

// leave leaves the session to another connection.
func (c *connection) leave() {
	c.turn.Lock()
	ses := c.session
	c.session = nil
	c.turn.Unlock()
	switch {
	case ses == nil:
	case c.observes:
		ses.unwatch(c)
	default:
		c.server.detached(ses)
	}
}

// answer sends the result of a request. A connection that has ended needs none.
func (c *connection) answer(id wire.ID, result any) {
	text, err := wire.Response(id, result)
	if err != nil {
		c.fail(id, &wire.Error{Code: wire.CodeInternal, Message: err.Error()})
		return
	}
	if len(text) > wire.MaxFrame {
		c.fail(id, tooLong())
		return
	}
	_ = c.conn.Send(text)
}

// tooLong returns the error for a request whose answer no message carries.
func tooLong() *wire.Error {
	return refuse(fmt.Sprintf("the answer is longer than %d bytes, the most that one message carries; ask for less", wire.MaxFrame))
}

// fail sends the error of a request.
func (c *connection) fail(id wire.ID, e *wire.Error) {
	if text, err := wire.Failure(id, e); err == nil { // texts and numbers always encode
		_ = c.conn.Send(text)
	}
}

// A method decodes the parameters of a request, and returns the function that performs it.
type method struct {
	family string // in errors about the handshake
	extra  bool   // it is no method of the protocol
	decode func(json.RawMessage) (func(*connection, wire.ID), error)
}

// on returns the method with a decoder and a function that answers.
func on[P any](family string, decode func(json.RawMessage) (P, error),
	perform func(*connection, wire.ID, P)) method {
	return method{family: family, decode: func(params json.RawMessage) (func(*connection, wire.ID), error) {
		p, err := decode(params)
		return func(c *connection, id wire.ID) { perform(c, id, p) }, err
	}}
}

// extension returns a method for clients that ask for extension methods.
func extension(m method) method {
	m.extra = true
	return m
}

// methods are the methods that are served.
var methods = sync.OnceValue(func() map[string]method {
	return map[string]method{
		"initialize":         on("", wire.Decode[wire.Initialize], (*connection).initialize),
		"environment/info":   on("environment info", wire.DecodeNothing, (*connection).environmentInfo),
		"environment/status": on("environment status", wire.DecodeNothing, (*connection).environmentStatus),
		"fs/watchMissing":    on("filesystem", wire.Decode[wire.WatchMissing], (*connection).watchMissing),
		"process/start":      on("exec", wire.Decode[wire.Start], (*connection).startProcess),
		"process/read":       on("exec", wire.Decode[wire.Read], (*connection).readProcess),
		"process/write":      on("exec", wire.Decode[wire.Write], (*connection).writeProcess),
		"process/signal":     on("exec", decodeSignal, (*connection).signalProcess),
		"process/terminate":  on("exec", wire.Decode[wire.Terminate], (*connection).terminateProcess),
		"process/resize":     extension(on("exec", wire.Decode[wire.Resize], (*connection).resizeProcess)),
		"process/closeStdin": extension(on("exec", wire.Decode[wire.CloseStdin], (*connection).closeStdin)),
		"process/awaitInput": extension(on("exec", wire.Decode[wire.Await], (*connection).awaitInput)),
		"process/list":       extension(on("exec", wire.DecodeNothing, (*connection).listProcesses)),
		"http/request":       on("http", wire.Decode[wire.HTTPRequest], (*connection).requestHTTP),

		"environmentConfig/read": on("environment config", wire.Decode[wire.ReadConfig],
			(*connection).readConfig),
		"capabilityRoots/discoverV1": on("capability discovery", wire.Decode[wire.Discover],
			(*connection).discover),
	}
})

// method returns a method that is served to the client.
func (c *connection) method(name string) (known method, ok bool) {
	if c.extends && (c.server.runs != nil || c.server.opts.Questions != nil) {
		if known, ok = questionMethods()[name]; ok {
			return known, true
		}
	}
	if c.server.opts.Questions != nil && name != "initialize" {
		return known, false
	}
	if known, ok = methods()[name]; !ok && c.server.runs != nil && c.extends {
		known, ok = runMethods()[name]
		c.usesRuns = c.usesRuns || ok && name != "run/list"
	}
	if !ok && c.extends {
		known, ok = stageMethods()[name]
	}
	if !ok {
		known, ok = fileMethod(name)
	}
	return known, ok
}

// request performs a request. Parameters are decoded before anything else is looked at, as
// clients expect.
func (c *connection) request(m *wire.Message) {
	known, ok := c.method(m.Method)
	if !ok || known.extra && !c.extends {
		c.fail(m.ID, &wire.Error{Code: wire.CodeNoMethod,
			Message: fmt.Sprintf("exec-server stub does not implement `%s` yet", m.Method)})
		return
	}
	perform, err := known.decode(m.Params)
	switch {
	case err != nil && known.family == "run":
		c.fail(m.ID, invalidRun(m.Method, err))
	case err != nil:
		c.fail(m.ID, invalid(err.Error()))
	case known.family != "" && c.session == nil:
		c.fail(m.ID, refuse("client must call initialize before using "+known.family+" methods"))
	case c.observes && !observing[m.Method]:
		c.fail(m.ID, refuse("this connection observes a session: it may list and read its processes, and nothing else"))
	case known.family != "" && !c.ready:
		c.fail(m.ID, refuse("client must send initialized before using "+known.family+" methods"))
	default:
		c.trace = m.Trace
		perform(c, m.ID)
	}
}

func (c *connection) initialize(id wire.ID, p *wire.Initialize) {
	if c.session != nil {
		c.fail(id, refuse("initialize may only be sent once per connection"))
		return
	}
	var failure *wire.Error
	switch {
	case p.Observe != "":
		c.session, failure = c.server.observe(c, p.Observe)
	case p.Resume != "":
		c.session, failure = c.server.resume(c, p.Resume, p.TakeOver)
	default:
		c.session, failure = c.server.open(c)
	}
	if failure != nil {
		c.fail(id, failure)
		return
	}
	c.observes = p.Observe != ""
	c.extends, c.approves = p.ExtensionMethods, p.Approvals
	c.binary = p.BinaryOutput && c.conn.HasBinary()
	c.answer(id, wire.InitializeResult{SessionID: c.session.id, Environment: c.server.info()})
	if !c.observes {
		c.session.follow(c) // events come after the answer
	}
}

func (c *connection) environmentInfo(id wire.ID, _ struct{}) { c.answer(id, c.server.info()) }

func (c *connection) environmentStatus(id wire.ID, _ struct{}) {
	c.answer(id, wire.EnvironmentStatus{Status: "ready"})
}

// startProcess starts a process beside the other requests, as many at once as the server
// allows.
func (c *connection) startProcess(id wire.ID, s *wire.Start) {
	once, first := c.server.starts.Begin(runs.KeyOf(s.Key, "process/start", c.credential))
	if !first {
		c.startAgain(id, s, once)
		return
	}
	p, failure := c.session.reserve(s)
	if failure != nil {
		once.End(nil)
		c.fail(id, failure)
		return
	}
	ctx, done := c.cancelable(id)
	before, written, began := c.started, c.files.last, make(chan struct{})
	c.started = began
	c.work.Go(func() {
		defer done()
		ok := c.awaitStart(ctx, before, written)
		if !ok {
			p.abandon()
			once.End(nil)
			c.wasCanceled(ctx, id)
			<-before // starts keep their order
		}
		close(began)
		if ok {
			done()
			p.start(c, id, s, once)
			<-c.starts
		}
	})
}

// awaitStart waits until a process may start: after the starts before it and what its client wrote
// before, and when there are not too many starts. It reports false when ctx has ended meanwhile.
// Otherwise starts has its value.
func (c *connection) awaitStart(ctx context.Context, before, written <-chan struct{}) bool {
	for _, earlier := range []<-chan struct{}{before, written} {
		select {
		case <-earlier: // a start that need not wait is not dropped with the connection
			continue
		default:
		}
		select {
		case <-earlier:
		case <-ctx.Done():
			return false
		}
	}
	select {
	case c.starts <- struct{}{}:
	default:
		select {
		case c.starts <- struct{}{}:
		case <-ctx.Done():
			return false
		}
	}
	if errors.Is(context.Cause(ctx), errCanceled) {
		<-c.starts
		return false
	}
	return true
}

// process returns a process whose start is over; nil when there is none, or the connection ends before.
func (c *connection) process(id string) *process {
	p := c.session.find(id)
	if p == nil {
		return nil
	}
	select {
	case <-p.started:
	case <-c.life.Done():
		return nil
	}
	if p.running == nil {
		return nil
	}
	return p
}

func (c *connection) readProcess(id wire.ID, r *wire.Read) {
	p := c.process(r.ProcessID)
	if p == nil {
		c.fail(id, refuse("unknown process id "+r.ProcessID))
		return
	}
	page, changed := p.page(r)
	if changed == nil || r.WaitMs == 0 {
		c.answer(id, c.known(page))
		return
	}
	c.beside(id, func(ctx context.Context) (any, error) {
		page, err := wait(ctx, p, r, changed)
		return c.known(page), err
	})
}

// known returns a page with what the client knows.
func (c *connection) known(page wire.ReadResult) wire.ReadResult {
	if !c.extends {
		page.Signal, page.SandboxType = "", "" // as clients of the protocol know it
	}
	return page
}

// admit counts a request that waits beside others, and ends with reads.Add(-1). It answers one that
// is too many, and reports false.
func (c *connection) admit(id wire.ID) bool {
	if c.reads.Add(1) <= maxReads {
		return true
	}
	c.reads.Add(-1)
	c.fail(id, refuse(fmt.Sprintf("limit of waiting requests (%d) reached; wait for the answer to one of them first", maxReads)))
	return false
}

// milliseconds returns the duration, at most a day.
func milliseconds(n uint64) time.Duration {
	const most = uint64(24 * time.Hour / time.Millisecond)
	return time.Duration(min(n, most)) * time.Millisecond
}

// wait waits until a read has something to return, or its time is over. The error is the cause of ctx.
func wait(ctx context.Context, p *process, r *wire.Read,
	changed <-chan struct{}) (page wire.ReadResult, err error) {
	timer := time.NewTimer(milliseconds(r.WaitMs))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return page, context.Cause(ctx)
		case <-timer.C:
			page, _ = p.page(r)
			return page, nil
		case <-changed:
			if page, changed = p.page(r); changed == nil {
				return page, nil
			}
		}
	}
}

func (c *connection) writeProcess(id wire.ID, w *wire.Write) {
	c.takeInput(id, w.ProcessID, w.WriteID, w.Chunk, false)
}

// takeInput answers a request to write to a process, or to close its input.
func (c *connection) takeInput(id wire.ID, process, write string, data []byte, end bool) {
	p := c.process(process)
	if p == nil {
		c.answer(id, wire.WriteResult{Status: wire.WriteUnknown})
		return
	}
	err := osprocess.ErrInputEnded
	if p.input != nil {
		_, err = p.input.Put(write, data, end,
			func() { c.answer(id, wire.WriteResult{Status: wire.WriteAccepted}) })
	}
	switch {
	case errors.Is(err, osprocess.ErrInputEnded):
		c.answer(id, wire.WriteResult{Status: wire.WriteStdinClosed})
	case err != nil:
		c.fail(id, &wire.Error{Code: wire.CodeInternal,
			Message: "failed to write to process stdin: " + err.Error()})
	}
}
