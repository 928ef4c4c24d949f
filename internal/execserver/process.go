// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/input"
	"github.com/sallyport-dev/sallyport/internal/jsonrpc"
	osprocess "github.com/sallyport-dev/sallyport/internal/process"
	"github.com/sallyport-dev/sallyport/internal/replay"
	"github.com/sallyport-dev/sallyport/internal/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The bounds of the output that a process keeps for reads. The oldest chunks go first.
const (
	maxKept   = 1 << 20 // bytes
	maxChunks = 50_000
	// chunkSize is the largest chunk in bytes.
	chunkSize = 64 << 10
)

// killed is the exit code of a process that SIGKILL ended.
const killed = 128 + 9

// A process is a process of a session.
type process struct {
	session *session
	id      string
	argv    []string
	tty     bool
	asked   time.Time // when the server got the request to start it
	started chan struct{}

	// These are guarded by session.mu.
	timer    *time.Timer // forgets it
	retained int         // bytes of output and arguments that the session counts

	// These are set before started is closed. A nil running means that it did not start.
	spec    *executor.Spec
	running executor.Process
	input   *input.Queue // nil when it takes none
	stream  func(executor.Stream) string

	// order is held while an event gets its number and is queued for the client, and from
	// before the start until its answer is queued. A holder may wait for the client.
	order sync.Mutex

	mu       sync.Mutex
	next     uint64 // the number of the next event
	kept     []wire.Chunk
	log      replay.Log    // what was kept before
	size     int           // bytes in kept
	dropped  uint64        // the number of the last chunk that is not in kept any more; 0 for none
	bytes    uint64        // of the chunks up to that one
	changed  chan struct{} // closed with the next event; nil while no read waits
	stopping bool
	grace    *time.Timer // calls stop; nil unless a client gave time
	graceEnd time.Time
	exited   bool
	code     int
	signal   string // the name of the one that ended it; empty for none
	closed   bool
	failure  string // why the end is not known; empty when it is
	denials  []sandbox.Denial
	denied   bool
}

func newProcess(s *session, w *wire.Start) *process {
	return &process{session: s, id: w.ProcessID, argv: w.Argv, tty: w.TTY, asked: time.Now(), started: make(chan struct{}), next: 1, log: s.server.disk.NewLog()}
}

// abandon forgets a process that was not started.
func (p *process) abandon() {
	p.session.forget(p)
	close(p.started)
}

// start starts the process and answers the request.
func (p *process) start(c *connection, id jsonrpc.ID, s *wire.Start) {
	server := p.session.server
	p.order.Lock() // what it prints comes after the answer
	defer p.order.Unlock()
	if !server.enter() {
		p.abandon()
		c.fail(id, refuse("the server is closing"))
		return
	}
	var failure *jsonrpc.Error
	if p.spec, failure = server.spec(s, p); failure == nil {
		var err error
		if p.running, err = p.session.launch(server.life, p.spec); err != nil {
			failure = startFailure(err)
		}
	}
	if failure != nil {
		server.leave()
		p.running = nil
		p.abandon()
		c.fail(id, failure)
		return
	}
	if s.PipeStdin || s.TTY {
		p.input = input.NewQueue(func() input.Taker { return p.running }, s.TTY, 0)
	}
	close(p.started)
	go p.follow()
	if p.session.isStopped() {
		p.stop()
	}
	c.answer(id, wire.StartResult{ProcessID: p.id, SandboxType: sandboxType(p.running.Sandbox())})
}

// sandboxType returns the word of the protocol for a sandbox.
func sandboxType(s executor.Sandbox) string {
	switch s.Level {
	case "", "none":
		return "none"
	case "seatbelt":
		return "macosSeatbelt"
	}
	return "linuxSeccomp"
}

// stop kills the process tree, and reports whether the process was running.
func (p *process) stop() bool {
	<-p.started
	if p.running == nil {
		return false
	}
	p.mu.Lock()
	p.stopping = true
	running := !p.exited
	p.mu.Unlock()
	p.running.Stop()
	return running
}

// follow waits for the end of the process tree.
func (p *process) follow() {
	defer p.session.server.leave()
	_, err := p.running.Wait()
	if p.input != nil {
		p.input.Close()
	}
	if err != nil {
		p.mu.Lock()
		p.failure = err.Error()
		exited := p.exited
		p.mu.Unlock()
		if !exited {
			p.onExit(-1, 0)
		}
	}
	retained := 0
	p.event(wire.MethodClosed, func(seq uint64) any {
		p.closed, retained = true, p.size+len(p.id)
		for _, arg := range p.argv {
			retained += len(arg)
		}
		if p.grace != nil {
			p.grace.Stop()
		}
		p.spec, p.denials = nil, nil // what only the exit needed
		return wire.Closed{ProcessID: p.id, Seq: seq}
	})
	p.session.ended(p, retained)
}

// onOutput is [executor.Spec.OnOutput].
func (p *process) onOutput(s executor.Stream, data []byte) {
	for part := range slices.Chunk(data, chunkSize) {
		p.event(wire.MethodOutput, func(seq uint64) any {
			chunk := wire.Chunk{Seq: seq, Stream: p.stream(s), Chunk: bytes.Clone(part)}
			p.keep(chunk)
			return &wire.Output{ProcessID: p.id, Chunk: chunk}
		})
	}
}

// onExit is [executor.Spec.OnExit].
func (p *process) onExit(code, signal int) {
	p.event(wire.MethodExited, func(seq uint64) any {
		if code < 0 && p.stopping {
			code, signal = killed, killed-128 // the tree was killed before the code was known
		}
		p.exited, p.code, p.signal = true, code, osprocess.SignalName(signal)
		p.denied = p.wasDenied()
		return &wire.Exited{ProcessID: p.id, Seq: seq, ExitCode: code, SandboxDenied: p.denied, Signal: p.signal}
	})
}

// onDenied is [executor.Spec.OnDenied].
func (p *process) onDenied(d sandbox.Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials = append(p.denials, d)
}

// event records an event, which note describes while p.mu is held, and sends it. Events are sent
// in the order of their numbers. It waits while the queue of the connection is full.
func (p *process) event(method string, note func(seq uint64) any) {
	p.order.Lock()
	defer p.order.Unlock()
	p.mu.Lock()
	params := note(p.next)
	p.next++
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	p.mu.Unlock()
	c := p.session.receiver()
	if c == nil {
		return // it is kept for a client that resumes the session
	}
	c.notify(method, params)
}

// notify queues a notification. A connection that has ended needs none.
func (c *connection) notify(method string, params any) {
	if exited, ok := params.(*wire.Exited); ok && !c.extends {
		exited.Signal = "" // as clients of the protocol know it
	}
	output, ok := params.(*wire.Output)
	switch {
	case ok && c.binary:
		_ = c.conn.SendLate(wire.OutputFrame{Output: output}, true)
	case ok:
		_ = c.conn.SendLate(wire.OutputMessage{Output: output}, false)
	default:
		if text, err := jsonrpc.Notification(method, params); err == nil { // such values always encode
			_ = c.conn.Send(text)
		}
	}
}

// keep keeps a chunk for reads.
func (p *process) keep(chunk wire.Chunk) {
	p.kept = append(p.kept, chunk)
	p.size += len(chunk.Chunk)
	for p.size > maxKept || len(p.kept) > maxChunks {
		p.size -= len(p.kept[0].Chunk)
		p.dropped = p.kept[0].Seq
		p.bytes += uint64(len(p.kept[0].Chunk))
		p.log.Add(p.kept[0])
		p.kept[0] = wire.Chunk{} // frees its bytes
		p.kept = p.kept[1:]
	}
}

// closeLog frees the disk.
func (p *process) closeLog() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log.Close()
}

// page returns the answer to a read. Changed is nil when it can be sent at once; otherwise the
// read may wait, and changed is closed with the next event.
func (p *process) page(r *wire.Read) (page wire.ReadResult, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page = wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: p.next, Exited: p.exited, Closed: p.closed, SandboxDenied: p.denied, Signal: p.signal, SandboxType: sandboxType(p.running.Sandbox())}
	if p.exited {
		code := p.code
		page.ExitCode = &code
	}
	if p.failure != "" {
		failure := p.failure
		page.Failure = &failure
	}
	if r.MaxBytes != nil { // a client without takes a page for all that there is
		page.Chunks = append(page.Chunks, p.log.After(r.AfterSeq, *r.MaxBytes)...)
	}
	if len(page.Chunks) > 0 {
		if first := page.Chunks[0].Seq; r.AfterSeq < p.log.Gone() {
			page.TruncatedBefore, page.TruncatedBytes = first, p.bytes-p.log.Held()
		}
		page.NextSeq = page.Chunks[len(page.Chunks)-1].Seq + 1
		return page, nil
	}
	if r.AfterSeq < p.dropped {
		page.TruncatedBefore, page.TruncatedBytes = p.kept[0].Seq, p.bytes // the newest chunk is always kept
	}
	size := uint64(0)
	first := sort.Search(len(p.kept), func(i int) bool { return p.kept[i].Seq > r.AfterSeq })
	for _, chunk := range p.kept[first:] {
		size += uint64(len(chunk.Chunk))
		if r.MaxBytes != nil && len(page.Chunks) > 0 && size > *r.MaxBytes {
			break
		}
		page.Chunks = append(page.Chunks, chunk)
	}
	if n := len(page.Chunks); n > 0 && r.MaxBytes != nil {
		page.NextSeq = page.Chunks[n-1].Seq + 1
	}
	if len(page.Chunks) > 0 || p.closed || p.exited && r.AfterSeq < p.next-1 {
		return page, nil
	}
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return page, p.changed
}
