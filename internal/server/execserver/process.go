// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The bounds of the output that a process keeps for reads. The oldest chunks go first.
const (
	maxKept   = 1 << 20 // bytes
	maxChunks = 50_000
	// maxSpilled is how many bytes the file has, and maxIndex of how many chunks, those in memory
	// included. A read that begins there gets at most maxPage bytes.
	maxSpilled = 64 << 20
	maxIndex   = 150_000
	maxPage    = 1 << 20
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
	tells   bool // its outcome
	audited records.Audited
	asked   time.Time // when the server got the request to start it
	started chan struct{}
	over    chan struct{} // closed when it has ended entirely, or was not started

	place *osprocess.Place[*process]

	// These are set before started is closed. A nil running means that it did not start.
	spec    *executor.Spec
	running executor.Process
	leave   func()                // of Options.Admit
	most    time.Duration         // how long it may run; 0 for no limit
	input   *osprocess.InputQueue // nil when it takes none
	stream  func(executor.Stream) string

	// order is held while an event gets its number and is queued for the client, and from
	// before the start until its answer is queued. A holder may wait for the client.
	order sync.Mutex
	pace  output.Pace // used by onOutput

	mu       sync.Mutex
	next     uint64        // the number of the next event
	log      *output.Log   // the output, of all streams
	chunks   []chunk       // what is retained of it, the oldest first
	gone     uint64        // the number of the newest chunk that is not; 0 for none
	kept     int           // index of the first one that reads without a limit get
	dropped  uint64        // the number of the chunk before it; 0 for none
	end      uint64        // offset of the end of the output
	changed  chan struct{} // closed with the next event; nil while no read waits
	stopping bool
	grace    *time.Timer // calls stop; nil unless a client gave time
	limit    *time.Timer // the same for the time that the ceiling gives
	graceEnd time.Time
	exited   bool
	code     int
	signal   string // the name of the one that ended it; empty for none
	closed   bool
	failure  string // why the end is not known; empty when it is
	denials  []sandbox.Denial
	denied   bool
	outcome  json.RawMessage // nil until it is closed, and where tells is false
	lost     bool            // a server before this one had it, and its end is not known
	before   uint64          // bytes of output before the first one of log, for a process of such a server

	saved *durable.Log // that a next server finds; nil for none
}

// A chunk is a part of the output that has a number: from an offset up to that of the next one.
type chunk struct {
	seq, offset uint64
	stream      string
}

func newProcess(s *session, w *wire.Start) *process {
	return &process{session: s, id: w.ProcessID, argv: w.Argv, tty: w.TTY, tells: w.Confine != nil,
		asked: time.Now(), started: make(chan struct{}), over: make(chan struct{}), next: 1, log: s.server.newLog(),
		audited: records.NewAudited(s.server.opts.Audit, s.id+"/"+w.ProcessID)}
}

// abandon forgets a process that was not started.
func (p *process) abandon() {
	p.place.Forget()
	p.place.End(0)
	p.free()
	close(p.started)
	close(p.over)
}

// free frees the disk.
func (p *process) free() {
	p.saved.Remove()
	_ = p.log.Close() // a file without a name is gone with the server at the latest
}

// start starts the process, and answers the request and those that repeat it.
func (p *process) start(c *connection, id wire.ID, s *wire.Start, once *start) {
	p.order.Lock() // what it prints comes after the answer
	defer p.order.Unlock()
	if failure := p.begin(s); failure != nil {
		p.running = nil
		p.abandon()
		once.End(nil)
		c.fail(id, failure)
		return
	}
	if s.PipeStdin || s.TTY {
		p.input = osprocess.NewInputQueue(func() osprocess.InputTaker { return p.running }, s.TTY, 0)
	}
	if p.most > 0 {
		p.limit = time.AfterFunc(p.most, func() { p.stop() })
	}
	p.saves(p.running.Sandbox().Level)
	close(p.started)
	go p.follow()
	if p.session.isStopped() {
		p.stop()
	}
	enforced := p.running.Sandbox()
	p.audited.Runs(p.spec, enforced)
	result := wire.StartResult{ProcessID: p.id, SandboxType: sandboxType(enforced)}
	if p.tells {
		result.Sandbox = &enforced
	}
	once.End(&startAnswer{session: p.session.id, result: result})
	c.answer(id, result)
}

// begin has the process run, if the server lets it.
func (p *process) begin(s *wire.Start) (failure *wire.Error) {
	server := p.session.server
	if p.session.lost {
		return refuse("the session was lost with the server that had it; start a new one")
	}
	if p.session.isStopped() || !server.enter() {
		return server.ending()
	}
	defer func() {
		if failure != nil {
			server.leave()
		}
	}()
	if p.leave, failure = server.admit(p.session.id); failure != nil {
		return failure
	}
	if p.spec, failure = server.spec(s, p); failure != nil {
		p.audited.Refused(s.Argv, s.CWD, failure.Message)
	} else {
		failure = p.launch()
	}
	if failure != nil {
		p.leave()
	}
	return failure
}

// launch has the process run.
func (p *process) launch() *wire.Error {
	p.spec.Digest = p.audited.Keeps()
	err := p.audited.Begins(p.spec)
	if err != nil {
		return refuse(err.Error())
	}
	if p.running, err = p.session.launch(p.session.server.life, p.spec); err != nil {
		_ = p.audited.Ended(nil, err, 0) // it did not run, and the client hears why
		return startFailure(err)
	}
	return nil
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
	exit, err := p.running.Wait()
	outcome := p.outcomeOf(exit)
	if p.input != nil {
		p.input.Close()
	}
	err = errors.Join(err, p.audited.Ended(exit, err, time.Since(p.asked)))
	if err != nil {
		p.mu.Lock()
		p.failure = err.Error()
		exited := p.exited
		p.mu.Unlock()
		if !exited {
			p.onExit(-1, 0)
		}
	}
	p.leave()
	retained := 0
	p.event(wire.MethodClosed, func(seq uint64) any {
		p.closed, retained = true, int(p.end-p.offset(p.kept))+len(p.id)+len(outcome)
		for _, arg := range p.argv {
			retained += len(arg)
		}
		for _, t := range []*time.Timer{p.grace, p.limit} {
			if t != nil {
				t.Stop()
			}
		}
		p.save(durable.End, seq, outcome)
		p.spec, p.denials, p.outcome = nil, nil, outcome // the first two only the exit needed
		return wire.Closed{ProcessID: p.id, Seq: seq, Outcome: outcome}
	}, nil)
	p.place.End(retained)
	close(p.over)
}

// onOutput is [executor.Spec.OnOutput].
func (p *process) onOutput(s executor.Stream, data []byte) {
	begin := time.Now()
	for part := range slices.Chunk(data, chunkSize) {
		sent := &wire.Output{ProcessID: p.id, Chunk: wire.Chunk{Stream: p.stream(s)}}
		p.event(wire.MethodOutput, func(seq uint64) any {
			sent.Seq = seq
			p.keep(chunk{seq: seq, offset: p.end, stream: sent.Stream}, part)
			return sent
		}, func() { sent.Chunk.Chunk = bytes.Clone(part) })
	}
	if p.session.receiver() == nil {
		p.pace.Wait(begin, len(data))
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
		exited := wire.Exited{ProcessID: p.id, Seq: seq, ExitCode: code, SandboxDenied: p.denied,
			Signal: p.signal}
		p.save(durable.Exit, seq, exited)
		return &exited
	}, nil)
}

// onDenied is [executor.Spec.OnDenied].
func (p *process) onDenied(d sandbox.Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials = append(p.denials, d)
}

// event records an event, which note describes while p.mu is held, and sends it, once fill has
// completed it. Events are sent in the order of their numbers. It waits while the queue of the connection
// is full.
func (p *process) event(method string, note func(seq uint64) any, fill func()) {
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
	if fill != nil {
		fill()
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
		if text, err := wire.Notification(method, params); err == nil { // such values always encode
			_ = c.conn.Send(text)
		}
	}
}

// keep keeps a chunk for reads.
func (p *process) keep(c chunk, data []byte) {
	if p.saved != nil {
		p.saved.Write(durable.Frame{Kind: durable.Output, Number: c.seq, Before: p.end, Data: data,
			Stream: byte(slices.Index(streamNames[:], c.stream))})
	}
	p.log.Write(executor.Stdout, data) // the chunks have the streams
	p.end += uint64(len(data))
	p.chunks = append(p.chunks, c)
	for p.end-p.offset(p.kept) > maxKept || len(p.chunks)-p.kept > maxChunks {
		p.dropped = p.chunks[p.kept].seq
		p.kept++
	}
	p.forget()
}

// forget forgets the chunks that are not retained any more.
func (p *process) forget() {
	since := p.log.Since()
	for n := p.kept; n > 0 && (p.chunks[0].offset < since || len(p.chunks) > maxIndex); n-- {
		p.gone = p.chunks[0].seq
		p.chunks = p.chunks[1:]
		p.kept--
	}
}

// offset returns where chunk number i begins.
func (p *process) offset(i int) uint64 {
	if i < len(p.chunks) {
		return p.chunks[i].offset
	}
	return p.end
}

// read returns the chunks from number i up to number j, and false if they are not retained any more.
func (p *process) read(i, j int) ([]wire.Chunk, bool) {
	list, from := []wire.Chunk{}, p.offset(i)
	data := make([]byte, p.offset(j)-from)
	if !p.log.ReadAt(data, from) {
		return nil, false
	}
	for ; i < j; i++ {
		c := p.chunks[i]
		list = append(list, wire.Chunk{Seq: c.seq, Stream: c.stream,
			Chunk: data[c.offset-from : p.offset(i+1)-from : p.offset(i+1)-from]})
	}
	return list, true
}

// page returns the answer to a read. Changed is nil when it can be sent at once; otherwise the
// read may wait, and changed is closed with the next event.
func (p *process) page(r *wire.Read) (page wire.ReadResult, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	page = wire.ReadResult{Chunks: []wire.Chunk{}, NextSeq: p.next, Exited: p.exited, Closed: p.closed,
		SandboxDenied: p.denied, Signal: p.signal, SandboxType: sandboxType(p.running.Sandbox()),
		Outcome: p.outcome, Lost: p.lost}
	if p.exited {
		code := p.code
		page.ExitCode = &code
	}
	if p.failure != "" {
		failure := p.failure
		page.Failure = &failure
	}
	for retained := false; !retained; {
		p.forget()
		page.Chunks, retained = p.part(r, &page)
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

// part returns the chunks for a read, and tells in its page which are missing. False means that they
// were just lost.
func (p *process) part(r *wire.Read, page *wire.ReadResult) ([]wire.Chunk, bool) {
	first, gone := 0, p.gone
	if r.MaxBytes == nil { // a client without takes a page for all that there is
		first, gone = p.kept, p.dropped
	}
	page.TruncatedBefore, page.TruncatedBytes = 0, 0
	if r.AfterSeq < gone {
		// the newest chunk is always kept
		page.TruncatedBefore, page.TruncatedBytes = p.chunks[first].seq, p.before+p.offset(first)
	}
	first += sort.Search(len(p.chunks)-first, func(i int) bool { return p.chunks[first+i].seq > r.AfterSeq })
	last, most := len(p.chunks), uint64(math.MaxUint64)
	if r.MaxBytes != nil {
		most = *r.MaxBytes
	}
	if first < p.kept {
		most = min(most, maxPage)
	}
	if p.end-p.offset(first) > most {
		last = min(last, first+1) // one in any case
		for p.offset(last+1)-p.offset(first) <= most {
			last++
		}
	}
	return p.read(first, last)
}
