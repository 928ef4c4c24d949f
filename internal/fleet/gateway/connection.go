// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A connection is that of one client.
type connection struct {
	gateway    *Gateway
	stream     wire.Stream
	credential string
	life       context.Context // ends with the connection
	end        context.CancelFunc
	work       sync.WaitGroup

	// Only the goroutine of serve uses these.
	hello  *wire.Initialize // nil before initialize
	failed *wire.Error      // the answer to initialize, where the URL was wrong
	ready  bool             // initialized has come
	id     string           // of the session; set with is
	kept   fleet.KeptSession

	writing sync.Mutex // held while something is written to the client

	mu      sync.Mutex
	main    *link.Link // to the node of the session; nil before it has one
	node    fleet.Record
	lost    *executor.LostError     // of the node of the session
	pending map[wire.ID]pending     // requests that the node has not answered
	known   map[string]uint64       // processes that have not ended, and the numbers of their last events
	sides   map[string]*wire.Client // to other nodes
	cancels map[wire.ID]context.CancelFunc
}

// A pending is a request that waits for its answer.
type pending struct {
	method string
	of     subject
}

// A subject is what a request is about.
type subject struct {
	ProcessID string `json:"processId"`
	RunID     string `json:"runId"`
	AfterSeq  uint64 `json:"afterSeq"`
	After     uint64 `json:"after"` // of run/read
	Key       string `json:"idempotencyKey"`
	Args      []string
	Confine   *struct{ Level string }
}

func newConnection(g *Gateway, s wire.Stream, credential string) *connection {
	c := &connection{gateway: g, stream: s, credential: credential, pending: make(map[wire.ID]pending),
		known: make(map[string]uint64), sides: make(map[string]*wire.Client),
		cancels: make(map[wire.ID]context.CancelFunc)}
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// errProtocol ends a connection whose client does not speak the protocol.
var errProtocol = errors.New("the client sent a message that the protocol does not allow")

// serve handles what the client sends until it ends. Nil is a proper end.
func (c *connection) serve() error {
	refresh := time.AfterFunc(refreshTime, c.refresh)
	defer refresh.Stop()
	for {
		data, err := c.stream.Read()
		if errors.Is(err, io.EOF) {
			if l := c.link(); l != nil {
				_ = l.Close() // what was asked for before is performed
			}
			return nil
		}
		if err != nil {
			return err //nolint:wrapcheck // it says what ended
		}
		m, err := wire.DecodeMessage(data)
		var malformed *wire.MalformedError
		switch {
		case errors.As(err, &malformed):
			c.fail(wire.Malformed(), refuse("%v", malformed))
			continue
		case err != nil:
			return err //nolint:wrapcheck // it says what was wrong
		}
		if err := c.handle(m, data); err != nil {
			return err
		}
	}
}

// leave ends the connection properly.
func (c *connection) leave() {
	c.end() // ends the wait for a place
	c.writing.Lock()
	defer c.writing.Unlock()
	wire.CloseFor(c.stream, statusGoingAway, "the gateway ends")
}

const (
	statusGoingAway = 1001
	// refreshTime is how often the hub is told that a session is in use, whose record it would forget
	// otherwise.
	refreshTime = 12 * time.Hour
)

// finish ends everything that belongs to the connection.
func (c *connection) finish() {
	c.end()
	if l := c.link(); l != nil {
		l.Cut("the client was cut")
	}
	_ = c.stream.Close() // it has ended
	c.mu.Lock()
	sides := c.sides
	c.sides = nil
	c.mu.Unlock()
	for _, s := range sides {
		_ = s.Close() // its node sees the end
	}
	c.work.Wait()
}

func (c *connection) link() *link.Link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.main
}

// write writes messages to the client. One that takes none is cut by the stream.
func (c *connection) write(messages ...wire.Outgoing) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	if b, ok := c.stream.(wire.BatchStream); ok {
		return b.WriteBatch(messages) //nolint:wrapcheck // it says what ended
	}
	for _, m := range messages {
		if err := c.stream.Write(m.Data); err != nil {
			return err //nolint:wrapcheck // likewise
		}
	}
	return nil
}

func (c *connection) send(text []byte, err error) {
	if err == nil { // our own values always encode
		_ = c.write(wire.Outgoing{Data: text}) // the reader sees the end
	}
}

func (c *connection) answer(id wire.ID, result any)        { c.send(wire.Response(id, result)) }
func (c *connection) fail(id wire.ID, failure *wire.Error) { c.send(wire.Failure(id, failure)) }

func refuse(format string, args ...any) *wire.Error {
	return &wire.Error{Code: wire.CodeInvalidRequest, Message: fmt.Sprintf(format, args...)}
}

// handle handles a message of the client. The error ends the connection.
func (c *connection) handle(m *wire.Message, data []byte) error {
	switch {
	case m.Kind == wire.KindRequest && m.Method == "initialize" && c.hello == nil:
		c.initialize(m, data)
	case m.Kind == wire.KindRequest && c.hello == nil:
		c.fail(m.ID, refuse("client must call initialize before using other methods"))
	case m.Kind == wire.KindRequest:
		c.request(m, data)
	case m.Kind == wire.KindNotification && m.Method == "initialized" && c.hello != nil:
		c.ready = true
		if l := c.link(); l != nil {
			c.pass(l, data)
		}
	case m.Kind == wire.KindNotification && m.Method == wire.MethodCancel && c.hello != nil:
		c.cancel(m, data)
	default:
		l := c.link()
		if l == nil {
			return errProtocol
		}
		c.pass(l, data) // the node judges
	}
	return nil
}

// pass passes a message on to the node of the session. That the link is over is seen where it is read.
func (c *connection) pass(l *link.Link, data []byte) { _ = l.Write(data) }

// initialize gives the client a session: a new one, whose node is chosen later, or that of before.
func (c *connection) initialize(m *wire.Message, data []byte) {
	p, err := wire.Decode[wire.Initialize](m.Params)
	var ext struct {
		Labels map[string]string `json:"labels"`
	}
	if err == nil {
		err = json.Unmarshal(m.Params, &ext)
	}
	switch {
	case c.failed != nil:
		c.fail(m.ID, c.failed)
		return
	case err != nil:
		c.fail(m.ID, &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()})
		return
	}
	for key, value := range ext.Labels {
		c.kept.Labels = set(c.kept.Labels, key, value)
	}
	if id := p.Resume + p.Observe; id != "" {
		if failure := c.resume(p, id, m.ID, data); failure != nil {
			c.fail(m.ID, failure)
		}
		return
	}
	c.kept.Started, c.kept.Credential = time.Now().UnixMilli(), c.credential
	c.is(wire.NewSessionID())
	info, failure := c.info()
	if failure == nil && !c.gateway.opts.Narrow { // a client of this process does not outlive it
		failure = c.keep()
	}
	if failure != nil {
		c.fail(m.ID, failure)
		return
	}
	c.hello = p
	c.answer(m.ID, map[string]any{"sessionId": c.id, "environmentInfo": info})
}

func (c *connection) is(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id = id
}

// infoTime is how long a client that has no node yet waits for one that fits: less than its handshake may
// take.
const infoTime = 5 * time.Second

// info returns what a client is told of its environment before it has a node: that of one which fits.
func (c *connection) info() (json.RawMessage, *wire.Error) {
	r, err := c.gateway.like(c.life, c.kept.Labels, infoTime)
	if err != nil {
		return nil, placeFailure(err)
	}
	return r.Info, nil
}

// keep has the hub keep where the session is.
func (c *connection) keep() *wire.Error {
	text, err := json.Marshal(&c.kept)
	if err == nil {
		err = c.gateway.sessions.Put(c.life, c.id, text)
	}
	if err != nil {
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	}
	return nil
}

// refresh writes the record of the session again.
func (c *connection) refresh() {
	ctx, cancel := context.WithTimeout(c.life, time.Minute)
	defer cancel()
	c.mu.Lock()
	id := c.id
	c.mu.Unlock()
	if text, _, err := c.gateway.sessions.Get(ctx, id); err == nil {
		_ = c.gateway.sessions.Put(ctx, id, text) // there are three more times
	}
	if c.life.Err() == nil {
		time.AfterFunc(refreshTime, c.refresh)
	}
}

// resume gives the client a session of before.
func (c *connection) resume(p *wire.Initialize, id string, of wire.ID, data []byte) *wire.Error {
	unknown := refuse("unknown session id %s", id)
	if !bus.Token(id) {
		return unknown
	}
	text, _, err := c.gateway.sessions.Get(c.life, id)
	var kept fleet.KeptSession
	switch {
	case errors.Is(err, bus.ErrNoKey):
		return unknown
	case err != nil:
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	case json.Unmarshal(text, &kept) != nil || kept.Credential != c.credential:
		return unknown
	}
	c.is(id)
	c.kept = kept
	if kept.Node == "" {
		info, failure := c.info()
		if failure == nil && p.Observe == "" {
			c.kept.Resumed++
			failure = c.keep()
		}
		if failure == nil {
			c.hello = p
			c.answer(of, map[string]any{"sessionId": id, "environmentInfo": info})
		}
		return failure
	}
	node, err := c.gateway.node(c.life, &kept)
	if lost := new(executor.LostError); errors.As(err, &lost) {
		if again, ok := c.gateway.registry.Find(kept.Node); ok && c.revive(&again, p, data) {
			return nil
		}
		info, failure := c.info()
		if failure != nil {
			info = json.RawMessage("null")
		}
		c.hello, c.lost = p, lost
		c.answer(of, map[string]any{"sessionId": id, "environmentInfo": info})
		return nil
	}
	if errors.Is(err, errLeft) {
		return unknown
	}
	if err == nil {
		err = c.join(&node, p)
	}
	if errors.As(err, new(*executor.LostError)) { // just now
		return c.resume(p, id, of, data)
	}
	if err != nil {
		return &wire.Error{Code: wire.CodeInternal, Message: err.Error()}
	}
	c.hello = p
	_ = c.expect(of, pending{method: "initialize"}) // its node was found
	l := c.link()
	c.pass(l, data)
	c.work.Go(func() { c.pump(l) })
	return nil
}

// revive gives the client a session of a node that was lost and is back, which may have kept the output.
func (c *connection) revive(node *fleet.Record, p *wire.Initialize, data []byte) bool {
	kept := c.kept
	c.kept.Boot, c.kept.Epoch = 0, 0
	if err := c.join(node, p); err != nil {
		c.kept = kept
		return false
	}
	m, text, err := c.exchange(c.main, data)
	if err != nil || m.Kind != wire.KindResponse {
		c.leaveNode("the session is not known", kept)
		return false
	}
	c.hello = p
	c.kept.Boot, c.kept.Epoch = node.Boot, node.Epoch
	c.send(text, nil)
	l := c.link()
	c.work.Go(func() { c.pump(l) })
	return true
}

// leaveNode ends the link to a node that does not take the session, which then has the node of kept, or none.
func (c *connection) leaveNode(why string, kept fleet.KeptSession) {
	if l := c.link(); l != nil {
		l.Cut(why)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.main, c.kept = nil, kept
}

// join opens the link to the node of the session, for what the client has asked. What it sends is not read
// yet.
func (c *connection) join(node *fleet.Record, p *wire.Initialize) error {
	l, err := c.gateway.open(node, fleet.Opening{Session: c.id, Credential: c.credential, Epoch: c.kept.Epoch,
		TakesOver: p.TakeOver, Observes: p.Observe != ""})
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.main, c.node = l, *node
	c.mu.Unlock()
	return nil
}

// request performs a request, or has a node perform it.
func (c *connection) request(m *wire.Message, data []byte) {
	of := subject{}
	_ = json.Unmarshal(m.Params, &of) // the node says what is wrong
	c.mu.Lock()
	lost, placed, waiting := c.lost, c.main != nil, len(c.pending)+len(c.cancels)
	c.mu.Unlock()
	switch kind := methods[m.Method]; {
	case waiting >= maxWaiting:
		c.fail(m.ID, refuse("limit of requests that wait (%d) reached", maxWaiting))
	case m.Method == "initialize":
		c.fail(m.ID, refuse("initialize may only be sent once per connection"))
	case !c.ready:
		c.fail(m.ID, refuse("client must send initialized before using other methods"))
	case kind == forAll && c.hello.ExtensionMethods:
		c.beside(m.ID, func(ctx context.Context) (any, error) { return c.all(ctx, m.Method, m.Params) })
	case kind == forSome && c.hello.ExtensionMethods:
		c.beside(m.ID, func(ctx context.Context) (any, error) { return c.some(ctx, m.Method, m.Params) })
	case c.hello.ExtensionMethods && c.elsewhere(m.Method, &of):
		c.beside(m.ID, func(ctx context.Context) (any, error) { return c.aside(ctx, m.Method, m.Params, &of) })
	case lost != nil:
		c.answerLost(m.ID, lost, pending{m.Method, of})
	case !placed && m.Method == "environment/info":
		if info, failure := c.info(); failure != nil {
			c.fail(m.ID, failure)
		} else {
			c.answer(m.ID, info)
		}
	case !placed && m.Method == "environment/status":
		c.answer(m.ID, map[string]string{"status": "ready"})
	case !placed && c.hello.Observe != "" && m.Method == "process/list":
		c.answer(m.ID, map[string]any{"processes": []any{}})
	case !placed && c.hello.Observe != "":
		c.fail(m.ID, refuse("the session that is observed has started nothing yet"))
	default:
		c.start(m, data, of)
	}
}

// elsewhere reports whether a request is about a run of another node than that of the session.
func (c *connection) elsewhere(method string, of *subject) bool {
	if !strings.HasPrefix(method, "run/") || of.RunID == "" {
		return false
	}
	node, boot, ok := fleet.SplitRun(of.RunID)
	c.mu.Lock()
	defer c.mu.Unlock()
	return ok && (c.main == nil && c.lost == nil || node != c.kept.Node || boot != c.kept.Boot)
}

// start has the node of the session perform a request, which it gets one for if it has none.
func (c *connection) start(m *wire.Message, data []byte, of subject) {
	starts := m.Method == "run/start" || m.Method == "process/start"
	if starts && of.Key != "" {
		if done := c.keyed(m, &of); done {
			return
		}
	} else if err := c.place(starts, need(&of, c.kept.Labels)); err != nil {
		c.fail(m.ID, placeFailure(err))
		return
	}
	l := c.link()
	if lost := c.expect(m.ID, pending{m.Method, of}); lost != nil {
		c.answerLost(m.ID, lost, pending{m.Method, of})
		return
	}
	c.pass(l, data)
}

// maxWaiting is how many requests wait for their answers at once: more than a node takes.
const maxWaiting = 2048

// maxKnown is how many processes that have not ended, as far as the connection knows, are told as lost.
const maxKnown = 4096

// expect notes a request that the node will answer, unless it is lost.
func (c *connection) expect(id wire.ID, p pending) *executor.LostError {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		p.of.Args, p.of.Confine = nil, nil
		c.pending[id] = p
		if p.of.ProcessID != "" && p.method != "process/start" && len(c.known) < maxKnown {
			c.known[p.of.ProcessID] = max(c.known[p.of.ProcessID], p.of.AfterSeq)
		}
	}
	return c.lost
}

// cancel withdraws a request.
func (c *connection) cancel(m *wire.Message, data []byte) {
	p, err := wire.Decode[wire.Canceled](m.Params)
	c.mu.Lock()
	var withdraw context.CancelFunc
	if err == nil {
		withdraw = c.cancels[p.ID]
	}
	l := c.main
	c.mu.Unlock()
	switch {
	case withdraw != nil:
		withdraw()
	case l != nil:
		c.pass(l, data)
	}
}

// beside performs a request beside others.
func (c *connection) beside(id wire.ID, perform func(context.Context) (any, error)) {
	ctx, cancel := context.WithCancel(c.life)
	c.mu.Lock()
	c.cancels[id] = cancel
	c.mu.Unlock()
	c.work.Go(func() {
		result, err := perform(ctx)
		canceled := ctx.Err() != nil
		c.mu.Lock()
		delete(c.cancels, id)
		c.mu.Unlock()
		cancel()
		var failure *wire.Error
		switch {
		case err == nil:
			c.answer(id, result)
		case canceled:
			c.fail(id, &wire.Error{Code: wire.CodeCanceled, Message: "the request was canceled"})
		case errors.As(err, &failure):
			c.fail(id, failure)
		default:
			c.fail(id, &wire.Error{Code: wire.CodeInternal, Message: err.Error()})
		}
	})
}
