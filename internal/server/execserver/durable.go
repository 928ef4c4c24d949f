// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"encoding/json"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// ofProcess is the kind of the records of processes.
const ofProcess = "process"

// streamNames are the streams of chunks. A log has the number of one.
var streamNames = [...]string{"stdout", "stderr", "pty"}

// saves makes the log of a process that has started, which a next server finds.
func (p *process) saves(level string) {
	ses := p.session
	p.saved = ses.server.opts.Durable.Create(durable.Record{Kind: ofProcess, Session: ses.id,
		Credential: ses.credential, ID: p.id, Argv: p.argv, TTY: p.tty, Level: level, Started: p.asked})
}

// save appends what happened to the log. What is said of it is a value that always encodes.
func (p *process) save(kind byte, seq uint64, of any) {
	if p.saved != nil {
		text, _ := json.Marshal(of)
		p.saved.Write(durable.Frame{Kind: kind, Number: seq, Before: p.before + p.end, Data: text})
	}
}

// revive makes the session of a server before this one that a credential has, of which only logs are left.
func (s *Server) revive(id, credential string) {
	var left []*durable.Left
	for _, l := range s.opts.Durable.Left() {
		if l.Kind == ofProcess && l.Session == id && l.Credential == credential {
			left = append(left, l)
		}
	}
	s.reviving.Lock() // one at a time: a session may be large
	defer s.reviving.Unlock()
	s.mu.Lock()
	known := s.sessions[id] != nil || s.closed
	s.mu.Unlock()
	if known || len(left) == 0 {
		return
	}
	ses := newSession(s, id, credential)
	ses.lost = true
	for _, l := range left {
		ses.revive(l)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		ses.free()
		return
	}
	s.sessions[id] = ses
	s.origins[ses.id] = ses.origin
}

// revive makes a process of a log. One whose end is not in it was lost.
func (s *session) revive(l *durable.Left) {
	p := newProcess(s, &wire.Start{ProcessID: l.ID, Argv: l.Argv, TTY: l.TTY})
	p.asked, p.running = l.Started, &durable.Ended{Box: executor.Sandbox{Level: l.Level}}
	var exited wire.Exited
	err := l.Read(func(f durable.Frame) {
		switch f.Kind {
		case durable.Output:
			if p.next == 1 && f.Number > 1 {
				p.before, p.gone, p.dropped = f.Before, f.Number-1, f.Number-1
			}
			p.keep(chunk{seq: f.Number, offset: p.end, stream: streamNames[f.Stream%3]}, f.Data)
		case durable.Exit:
			p.exited = json.Unmarshal(f.Data, &exited) == nil
		case durable.End:
			p.closed = true
			p.outcome = slices.Clone(f.Data)
		}
		p.next = f.Number + 1
	})
	if err != nil {
		p.failure = "not all of the output can be read: " + err.Error()
	}
	p.code, p.signal, p.denied = exited.ExitCode, exited.Signal, exited.SandboxDenied
	if !p.exited {
		p.code, p.lost, p.exited = wire.LostCode, true, true
		p.next++
	}
	if !p.closed {
		p.closed = true
		p.next++
	}
	close(p.started)
	close(p.over)
	place, err := s.processes.Reserve(maxClosed)
	if err == nil {
		p.place = place
		_, err = place.Enter(p.id, p)
		place.End(0)
	}
	if err != nil {
		p.free() // the ID was used twice, and the first one is known
	}
}
