// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// holdTime is how long processes that a command left may hold its output.
	holdTime = 250 * time.Millisecond
	// endTime is how long the end of the events is waited for after that.
	endTime = 3 * time.Second
	// maxWrite is how much input one request carries, in bytes.
	maxWrite = 1 << 20
	// defaultGrace is [executor.Spec.Grace] when it is zero.
	defaultGrace = 2 * time.Second
)

// A process is a process of a session.
type process struct {
	executor *Executor
	client   *wire.Client
	can      wire.Capabilities
	id       string
	spec     executor.Spec // without what only the start needs
	guarded  *osprocess.Calls
	sandbox  executor.Sandbox
	hosts    *hosts // nil without a managed network
	out      *retained
	life     context.Context // ends with the process
	quit     context.CancelFunc
	work     sync.WaitGroup // added to under mu while err is nil or before done

	input  sync.Mutex // held by a write
	writes uint64     // guarded by input, as closed
	closed bool       // the input

	ended chan struct{} // closed after the exit
	done  chan struct{} // closed when everything is over
	exit  executor.Exit // complete when done is closed

	mu      sync.Mutex
	changed sync.Cond // events or err has
	events  sorter
	running bool // the server has it
	calls   int  // requests that wait for an answer
	filling bool // read runs
	again   bool // it has to read once more
	stopped bool
	isEnded bool
	gone    bool   // its machine was lost
	failure string // what the server says about an end that is not known
	lost    LostOutputError
	stopErr error
	outcome *wire.Outcome // nil until the server has told it
	err     error         // why no further event comes
}

// lose gives up the process. The caller holds p.mu.
func (p *process) lose(err error) {
	if p.err == nil && !p.events.end {
		p.err = &Error{Class: ClassTransport, Err: err}
	}
	p.changed.Broadcast()
}

// abandon is lose for those who do not hold p.mu.
func (p *process) abandon(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose(err)
}

// deliver passes on the events of the process until the last.
func (p *process) deliver() {
	for e := p.take1(); e.kind != kindClosed; e = p.take1() {
		switch e.kind {
		case kindOutput:
			p.out.Write(e.stream, e.data)
			if p.spec.OnOutput != nil && len(e.data) > 0 {
				p.spec.OnOutput(e.stream, e.data)
			}
		case kindGap:
			p.out.miss(e.lost.Bytes)
			p.mu.Lock()
			p.lost.Bytes += e.lost.Bytes
			p.lost.Chunks += e.lost.Chunks
			p.mu.Unlock()
		case kindExit:
			p.exited(&e)
		}
		p.mu.Lock()
		p.events.size -= e.size()
		p.changed.Broadcast()
		p.mu.Unlock()
	}
	p.finish()
}

// take1 returns the next event; one of kindClosed when no further one comes.
func (p *process) take1() event {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.events.ready) == 0 && p.err == nil {
		p.changed.Wait()
	}
	if len(p.events.ready) == 0 {
		return event{kind: kindClosed}
	}
	e := p.events.ready[0]
	p.events.ready[0] = event{}
	p.events.ready = p.events.ready[1:]
	return e
}

// exited notes the exit of the command. A server without processExitSignal tells no signal: 128 and more
// may be one.
func (p *process) exited(e *event) {
	p.mu.Lock()
	p.isEnded, p.gone = true, e.gone
	p.exit.Code, p.exit.Signal, p.exit.Stopped = e.code, e.signal, p.stopped && !e.gone
	p.mu.Unlock()
	close(p.ended)
	if e.code >= 0 && p.spec.OnExit != nil {
		p.spec.OnExit(e.code, e.signal)
	}
	if !p.spec.AwaitStreams && p.spec.TTY == nil {
		p.work.Go(p.release)
	}
}

// release ends what holds the output streams of a command that has ended.
func (p *process) release() {
	timer := time.NewTimer(holdTime)
	defer timer.Stop()
	select {
	case <-p.life.Done():
		return
	case <-timer.C:
	}
	// The end may have been told while the connection was away.
	var page wire.ReadResult
	err := p.call("process/read", wire.Read{ProcessID: p.id, AfterSeq: math.MaxInt64}, &page)
	p.mu.Lock()
	if err == nil && page.Closed {
		p.fill()
		p.mu.Unlock()
		return
	}
	p.exit.StreamsLeftOpen = !p.events.end
	p.mu.Unlock()
	p.terminate(0)
	timer.Reset(endTime)
	select {
	case <-p.life.Done():
	case <-timer.C: // such processes have left the group that a server of the protocol kills
		p.mu.Lock()
		if p.err == nil && !p.events.end {
			p.events.end = true
			p.events.push(event{kind: kindClosed})
		}
		p.changed.Broadcast()
		p.mu.Unlock()
	}
}

// finish makes the end of the process known.
func (p *process) finish() {
	p.mu.Lock()
	ask, after := p.err == nil && p.exit.Code < 0 && p.failure == "" && !p.gone, p.events.next
	p.mu.Unlock()
	var page wire.ReadResult
	if ask { // why the end is not known is told to those who read only
		_ = p.client.Repeat(p.life, "process/read", wire.Read{ProcessID: p.id, AfterSeq: after}, &page)
	}
	p.complete()
	p.quit()
	p.executor.forget(p)
	p.out.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	if page.Failure != nil {
		p.failure = *page.Failure
	}
	if !p.isEnded {
		p.isEnded = true
		close(p.ended)
		p.exit.Stopped = p.stopped
	}
	switch {
	case p.err != nil:
	case p.gone:
		p.err = &Error{Class: ClassTransport, Err: new(executor.LostError)}
	case p.failure != "":
		p.err = &Error{Class: ClassTransport, Err: errors.New(p.failure)}
	case p.exit.Code < 0 && !p.stopped:
		p.err = &Error{Class: ClassTransport,
			Err: errors.New("the exec-server does not know the end of the process")}
	}
	if p.outcome == nil {
		p.exit.Sandbox = p.sandbox
	}
	if p.hosts != nil {
		refused := p.hosts.Close()
		p.exit.NetworkDenials = refused.Network
		p.exit.Denials, p.exit.DenialsOmitted = append(p.exit.Denials, refused.Denials...),
			p.exit.DenialsOmitted+refused.Omitted
	}
	if p.exit.Stopped {
		p.exit.LastSignal = p.lastSignal()
	}
	close(p.done)
}

// lastSignal returns the signal that ended a process that was stopped.
func (p *process) lastSignal() int {
	if kill := osprocess.SignalNumber("SIGKILL"); p.spec.Grace < 0 || p.exit.Code == 128+kill ||
		!p.can.ProcessTerminateGrace {
		return kill
	}
	return osprocess.SignalNumber("SIGTERM")
}

// Wait implements [executor.Process]. The error is an *Error of ClassTransport when the end is not
// known, and a *LostOutputError when the end is known and output is missing.
func (p *process) Wait() (*executor.Exit, error) {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	exit := p.exit // release may still look whether the streams have ended
	err := p.err
	if lost := p.lost; lost.Chunks > 0 {
		err = errors.Join(err, &lost)
	}
	return &exit, p.guarded.Tell(&exit, errors.Join(err, p.stopErr))
}

// Stop implements [executor.Process].
func (p *process) Stop() {
	grace := p.spec.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	if grace < 0 || !p.can.ProcessTerminateGrace {
		grace = 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.events.end {
		return
	}
	p.stopped = p.stopped || !p.isEnded
	p.work.Go(func() { p.terminate(grace) })
}

// terminate ends the process tree, and then reads what the end was.
func (p *process) terminate(grace time.Duration) {
	t := wire.Terminate{ProcessID: p.id, GraceMs: uint64(grace.Milliseconds())}
	err := p.call("process/terminate", t, nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.life.Err() == nil {
		p.stopErr = &Error{Class: ClassTerminate, Err: err}
	}
	p.fill()
}

// call performs a request about the process, again after a cut, unless the process ends before that.
func (p *process) call(method string, params, result any) error {
	return p.ask(p.life, method, params, result)
}

// ask performs a request about the process, again after a cut.
func (p *process) ask(ctx context.Context, method string, params, result any) error {
	p.mu.Lock()
	p.calls++
	p.changed.Broadcast() // events are taken while it waits
	p.mu.Unlock()
	err := p.client.Repeat(ctx, method, params, result)
	p.mu.Lock()
	p.calls--
	p.mu.Unlock()
	return err
}

// feed performs a request for input. The end of the process, which the input may cause, does not end
// it: the answer says whether the input was taken.
func (p *process) feed(method string, params any) error {
	select {
	case <-p.done:
		return &Error{Class: ClassWrite, Err: io.ErrClosedPipe}
	default:
	}
	var result wire.WriteResult
	err := p.ask(context.Background(), method, params, &result)
	switch {
	case err == nil && result.Status == wire.WriteAccepted:
		return nil
	case err == nil && (result.Status == wire.WriteUnknown || result.Status == wire.WriteStdinClosed):
		err = io.ErrClosedPipe
	case err == nil:
		err = fmt.Errorf("the exec-server answers %q", result.Status)
	}
	return &Error{Class: ClassWrite, Err: err}
}

// control is call for what has no effect on a process that has ended.
func (p *process) control(method string, params any) error {
	select {
	case <-p.ended:
		return os.ErrProcessDone
	default:
	}
	err := p.call(method, params, nil)
	if err != nil && p.life.Err() != nil {
		return os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("%s failed: %w", method, err)
	}
	return nil
}

// Write implements [executor.Process]. What it returned as written was taken by the server, which
// passes it on in order.
func (p *process) Write(b []byte) (int, error) {
	p.input.Lock()
	defer p.input.Unlock()
	switch {
	case p.spec.TTY == nil && !p.spec.PipeStdin:
		return 0, errNoInput
	case p.closed:
		return 0, os.ErrClosed
	}
	n := 0
	for n < len(b) {
		part := b[n:min(n+maxWrite, len(b))]
		p.writes++
		if err := p.feed("process/write", wire.Write{ProcessID: p.id, Chunk: part,
			WriteID: strconv.FormatUint(p.writes, 10)}); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// CloseInput implements [executor.Process]. Servers without the extension cannot close a pipe.
func (p *process) CloseInput() error {
	if p.spec.TTY != nil && !p.can.ProcessCloseStdin {
		_, err := p.Write([]byte{4}) // the end-of-file character, unless a program has changed it
		return err
	}
	p.input.Lock()
	defer p.input.Unlock()
	switch {
	case p.spec.TTY == nil && !p.spec.PipeStdin, p.closed:
		return nil
	case !p.can.ProcessCloseStdin:
		return errCloseIn
	}
	p.closed = p.spec.TTY == nil
	p.writes++
	err := p.feed("process/closeStdin", wire.CloseStdin{ProcessID: p.id,
		WriteID: strconv.FormatUint(p.writes, 10)})
	if errors.Is(err, io.ErrClosedPipe) {
		return nil // it has ended
	}
	return err
}

// SetInputDeadline implements [executor.Process]. How much of a write that is given up was taken
// would not be known.
func (p *process) SetInputDeadline(time.Time) error {
	return fmt.Errorf("deadlines for input are not supported by exec-server sessions: %w",
		errors.ErrUnsupported)
}

// Resize implements [executor.Process].
func (p *process) Resize(s executor.Size) error {
	switch {
	case p.spec.TTY == nil:
		return errNoTTY
	case !p.can.ProcessResize:
		return errResize
	}
	s = s.OrUsual()
	return p.control("process/resize", wire.Resize{ProcessID: p.id, Cols: s.Cols, Rows: s.Rows})
}

// Signal implements [executor.Process]. Signals go by their names.
func (p *process) Signal(sig int) error {
	name := osprocess.SignalName(sig)
	if name == "SIGINT" {
		name = wire.Interrupt
	}
	if name == "" || name != wire.Interrupt && !p.can.ProcessSignalNames {
		return fmt.Errorf("signal %d is not supported by exec-server sessions: %w", sig,
			errors.ErrUnsupported)
	}
	return p.control("process/signal", wire.Signal{ProcessID: p.id, Signal: name})
}

// Output implements [executor.Process].
func (p *process) Output() executor.Output { return p.out }

// Sandbox implements [executor.Process].
func (p *process) Sandbox() executor.Sandbox { return p.sandbox }
