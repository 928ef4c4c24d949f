// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// maxGrace is the longest time that terminate gives a process.
const maxGrace = 24 * time.Hour

// canTerminate reports whether processes of this system can be asked to end.
func canTerminate() bool { return signalNumber("SIGTERM") != 0 }

// signalNumber returns the number of a signal by the name that clients use; 0 for none.
func signalNumber(name string) int {
	if name == wire.Interrupt {
		name = "SIGINT"
	}
	return osprocess.SignalNumber(name)
}

// decodeSignal reads the parameters of process/signal.
func decodeSignal(params json.RawMessage) (*wire.Signal, error) {
	return wire.DecodeSignal(params, func(name string) bool { return signalNumber(name) != 0 })
}

func (c *connection) signalProcess(id wire.ID, s *wire.Signal) {
	if p := c.process(s.ProcessID); p != nil {
		_ = p.running.Signal(signalNumber(s.Signal)) // of a process that has ended it has no effect
	}
	c.answer(id, struct{}{})
}

func (c *connection) terminateProcess(id wire.ID, t *wire.Terminate) {
	running := false
	if p := c.process(t.ProcessID); p != nil {
		grace := time.Duration(min(t.GraceMs, uint64(maxGrace/time.Millisecond))) * time.Millisecond
		if grace == 0 || !canTerminate() {
			running = p.stop()
		} else {
			running = p.terminate(grace)
		}
	}
	c.answer(id, wire.TerminateResult{Running: running})
}

// terminate asks the process group to end, and reports whether the process was running. What is
// left of the process tree after grace is killed; of several calls, the earliest time counts.
func (p *process) terminate(grace time.Duration) bool {
	p.mu.Lock()
	running, end := !p.exited, time.Now().Add(grace)
	switch {
	case p.closed:
	case p.grace == nil:
		p.grace, p.graceEnd = time.AfterFunc(grace, func() { p.stop() }), end
	case end.Before(p.graceEnd):
		p.grace.Reset(grace)
		p.graceEnd = end
	}
	p.mu.Unlock()
	names := []string{"SIGTERM", "SIGCONT"} // a stopped process handles signals when it is continued
	if p.tty {
		names = append([]string{"SIGHUP"}, names...) // interactive shells ignore SIGTERM
	}
	for _, name := range names {
		_ = p.running.Signal(signalNumber(name)) // it may have ended
	}
	return running
}

func (c *connection) resizeProcess(id wire.ID, r *wire.Resize) {
	p := c.process(r.ProcessID)
	switch {
	case p == nil:
		c.fail(id, refuse("unknown process id "+r.ProcessID))
	case !p.tty:
		c.fail(id, refuse("process "+r.ProcessID+" has no terminal; start it with `tty`"))
	default:
		err := p.running.Resize(executor.Size{Cols: r.Cols, Rows: r.Rows})
		if err != nil && !errors.Is(err, os.ErrProcessDone) { // as a signal, it has no effect then
			c.fail(id, &wire.Error{Code: wire.CodeInternal, Message: err.Error()})
			return
		}
		c.answer(id, struct{}{})
	}
}

func (c *connection) closeStdin(id wire.ID, s *wire.CloseStdin) {
	c.takeInput(id, s.ProcessID, s.WriteID, nil, true)
}

// listProcesses does not wait for processes that are starting.
func (c *connection) listProcesses(id wire.ID, _ struct{}) {
	list := wire.ListResult{Processes: []wire.ListedProcess{}}
	for _, p := range c.session.list() {
		list.Processes = append(list.Processes, p.listed())
	}
	c.answer(id, list)
}

// listed describes the process for a list.
func (p *process) listed() wire.ListedProcess {
	l := wire.ListedProcess{ProcessID: p.id, Argv: p.argv, TTY: p.tty, Started: p.asked.UnixMilli()}
	select {
	case <-p.started:
	default:
		l.Starting = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	l.NextSeq, l.Running, l.Closed = p.next, !l.Starting && p.running != nil && !p.exited, p.closed
	if p.exited {
		code := p.code
		l.ExitCode, l.Signal, l.Lost = &code, p.signal, p.lost
	}
	return l
}
