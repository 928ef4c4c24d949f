// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"slices"

	"github.com/sallyport-dev/sallyport/executor"
	osprocess "github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// maxQueue is how many bytes of output wait for OnOutput before the connection is read no
	// further.
	maxQueue = 8 << 20
	// maxBusy is maxQueue while a request about the process waits for its answer, which comes
	// behind output.
	maxBusy = 64 << 20
	// maxEarly is how many events may wait for ones with lower numbers.
	maxEarly = 100_000
	// overhead is what an event counts beside its data.
	overhead = 64
)

type kind uint8

const (
	kindOutput kind = iota
	kindExit
	kindClosed
	kindGap
)

// An event is what happened to a process.
type event struct {
	kind   kind
	stream executor.Stream
	data   []byte
	code   int
	signal int             // that of an exit, as this system numbers it; 0 for none
	gone   bool            // an exit: the machine of the process was lost
	lost   LostOutputError // of a gap
}

func (e *event) size() int { return len(e.data) + overhead }

// A sorter puts the events of a process in order. Its owner guards it.
type sorter struct {
	next  uint64           // the number of the next event
	early map[uint64]event // with higher numbers
	ready []event          // in order, for the deliverer
	size  int              // of ready
	total uint64           // bytes of output before next, with those that are.lost
	exit  bool             // the exit is in ready or early, or was
	end   bool             // ready ends with the end, or had it
}

func newSorter() sorter { return sorter{next: 1, early: make(map[uint64]event)} }

// add takes an event with its number. One that is known changes nothing.
func (s *sorter) add(seq uint64, e event) error {
	if seq < s.next {
		return nil
	}
	if _, known := s.early[seq]; known {
		return nil
	}
	if len(s.early) >= maxEarly {
		return errFlood
	}
	s.early[seq] = e
	s.exit = s.exit || e.kind == kindExit
	s.advance()
	return nil
}

// advance moves what is in order to ready.
func (s *sorter) advance() {
	for {
		e, ok := s.early[s.next]
		if !ok {
			return
		}
		delete(s.early, s.next)
		s.next++
		s.push(e)
	}
}

func (s *sorter) push(e event) {
	s.total += uint64(len(e.data)) + e.lost.Bytes
	s.end = s.end || e.kind == kindClosed
	s.size += e.size()
	s.ready = append(s.ready, e)
}

// gap reports whether an event is missing.
func (s *sorter) gap() bool { return len(s.early) > 0 }

// merge takes a page of process/read without a limit, which has everything below page.NextSeq that
// the server retains. What is not there is lost.
func (s *sorter) merge(page *wire.ReadResult) error {
	end := page.NextSeq
	for _, c := range page.Chunks {
		if c.Seq < end {
			if err := s.add(c.Seq, outputEvent(c)); err != nil {
				return err
			}
		}
	}
	if end <= s.next {
		return nil
	}
	if _, known := s.early[end-1]; page.Closed && !known {
		if err := s.add(end-1, event{kind: kindClosed}); err != nil {
			return err
		}
	}
	// The exit is no chunk: it is the last number that is missing, because what was dropped is
	// older than what exists.
	if missing := s.lastMissing(end); page.Exited && !s.exit && missing > 0 {
		code := -1
		if page.ExitCode != nil {
			code = *page.ExitCode
		}
		if err := s.add(missing, exitEvent(code, page.Signal, page.Lost)); err != nil {
			return err
		}
	}
	s.skip(end, page)
	return nil
}

// lastMissing returns the last number below end whose event is not known; 0 for none.
func (s *sorter) lastMissing(end uint64) uint64 {
	for seq := end - 1; seq >= s.next; seq-- {
		if _, known := s.early[seq]; !known {
			return seq
		}
	}
	return 0
}

// skip gives up the events below end that are missing.
func (s *sorter) skip(end uint64, page *wire.ReadResult) {
	if s.next >= end {
		return
	}
	var known []uint64
	here := s.total // bytes of what is dropped there and arrived here
	for seq, e := range s.early {
		if seq < end {
			known = append(known, seq)
		}
		if seq < page.TruncatedBefore {
			here += uint64(len(e.data))
		}
	}
	slices.Sort(known)
	if lost := end - s.next - uint64(len(known)); lost > 0 {
		gap := event{kind: kindGap, lost: LostOutputError{Chunks: lost}}
		if page.TruncatedBytes > here {
			gap.lost.Bytes = page.TruncatedBytes - here
		}
		s.push(gap)
	}
	for _, seq := range known {
		e := s.early[seq]
		delete(s.early, seq)
		s.push(e)
	}
	s.next = end
	s.advance()
}

// exitEvent returns the event of an exit. The code of a process whose machine was lost is not its own.
func exitEvent(code int, signal string, lost bool) event {
	if lost {
		code = -1
	}
	return event{kind: kindExit, code: code, signal: osprocess.SignalNumber(signal), gone: lost}
}

// outputEvent returns the event of a chunk. A terminal has one stream.
func outputEvent(c wire.Chunk) event {
	e := event{kind: kindOutput, data: c.Chunk}
	if c.Stream == executor.Stderr.String() {
		e.stream = executor.Stderr
	}
	return e
}

// take takes an event from the connection. It blocks while much output waits for OnOutput.
func (p *process) take(seq uint64, e event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && !p.events.end && (p.events.size >= maxQueue && p.calls == 0 ||
		p.events.size >= maxBusy) {
		p.changed.Wait()
	}
	if err := p.events.add(seq, e); err != nil {
		p.lose(err)
	}
	p.changed.Broadcast()
	if p.events.gap() {
		p.fill()
	}
}

// resumed is called after a cut: events may have been missed.
func (p *process) resumed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fill()
}

// fill reads what is missing, in a goroutine. The caller holds p.mu.
func (p *process) fill() {
	switch {
	case p.err != nil || p.events.end || !p.running:
	case p.filling:
		p.again = true
	default:
		p.filling = true
		p.work.Go(p.read)
	}
}

// read reads until nothing is missing.
func (p *process) read() {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer func() { p.filling = false }()
	for p.again = true; p.again || p.events.gap(); {
		if p.err != nil || p.events.end {
			return
		}
		p.again = false
		before := p.events.next
		var page wire.ReadResult
		p.mu.Unlock()
		err := p.client.Repeat(p.life, "process/read",
			wire.Read{ProcessID: p.id, AfterSeq: before - 1}, &page)
		if err == nil && page.TruncatedBefore > 0 {
			err = p.readOlder(&page, before-1)
		}
		p.mu.Lock()
		var lost *wire.TransportError
		switch {
		case errors.As(err, &lost), errors.Is(err, context.Canceled):
			return // lost is called with the reason
		case err == nil:
			err = p.events.merge(&page)
		}
		if err == nil && page.Failure != nil {
			p.failure = *page.Failure
		}
		if err == nil && p.events.gap() && p.events.next == before && !p.again {
			err = errOrder
		}
		if err != nil {
			p.lose(err)
		}
		p.changed.Broadcast()
	}
}

// readOlder adds to a page what the server retains only for reads with a limit: it has that on disk.
func (p *process) readOlder(page *wire.ReadResult, after uint64) error {
	most := uint64(1 << 20)
	var older []wire.Chunk
	for first := page.TruncatedBefore; after+1 < first; {
		var part wire.ReadResult
		if err := p.client.Repeat(p.life, "process/read",
			wire.Read{ProcessID: p.id, AfterSeq: after, MaxBytes: &most}, &part); err != nil {
			return err
		}
		if len(part.Chunks) == 0 || part.Chunks[0].Seq >= first {
			break
		}
		if older == nil || part.TruncatedBefore > 0 { // also what has gone since the last part
			page.TruncatedBefore, page.TruncatedBytes = part.TruncatedBefore, part.TruncatedBytes
		}
		for _, c := range part.Chunks {
			if c.Seq < first {
				older = append(older, c)
			}
		}
		after = part.Chunks[len(part.Chunks)-1].Seq
	}
	page.Chunks = append(older, page.Chunks...)
	return nil
}
