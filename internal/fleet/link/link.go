// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// maxPiece is how many bytes of messages one frame has. The hub takes 1 MiB.
	maxPiece = 128 << 10
	// firstCredit is what both ends may send before they have heard of their peer.
	firstCredit = 64 << 10
	// A receiver gives credit for at most maxWindow bytes, and for less where one connection has many links:
	// the hub ends a connection on which too much waits, with the sessions of everybody.
	maxWindow, minWindow = 512 << 10, 16 << 10
	allWindows           = 64 << 20
)

// A Link is a connection of messages: a wire.BatchStream. One goroutine reads and one writes at a time.
type Link struct {
	channel uint64
	publish func(kind, []byte) error // one frame, as it is sent, to the peer
	window  func() int               // how many bytes may be on their way to this end
	gone    func()                   // called once when it is over

	mu       sync.Mutex
	changed  sync.Cond // something below has
	err      error     // it is over; io.EOF after a proper end
	arrived  []part    // what was not read
	next     uint64    // the number of the next frame that must come
	received uint64    // bytes that came, and that were read
	taken    uint64
	promised uint64 // how many the peer may have sent
	sent     uint64
	limit    uint64 // of sent
	number   uint64 // of the next frame to send

	frame []byte // of kindData, as it is sent; used by the writer
}

func newLink(channel uint64, publish func(kind, []byte) error, window func() int, gone func()) *Link {
	l := &Link{channel: channel, publish: publish, window: window, gone: sync.OnceFunc(gone),
		promised: firstCredit, limit: firstCredit}
	l.changed.L = &l.mu
	return l
}

// send sends a frame to the peer.
func (l *Link) send(k kind, body []byte) error {
	f := frame{k, l.channel, body}
	return l.publish(k, f.append(make([]byte, 0, frameHead+len(body))))
}

// receive takes a frame of the peer. It does not block.
func (l *Link) receive(f frame) {
	switch f.kind {
	case kindData:
		if err := l.arrive(f.body); err != nil {
			l.end(err, true)
		}
	case kindCredit:
		if len(f.body) == 8 {
			l.mu.Lock()
			l.limit = max(l.limit, min(binary.BigEndian.Uint64(f.body), l.sent+maxWindow+firstCredit))
			l.mu.Unlock()
			l.changed.Broadcast()
		}
	case kindClose:
		why := io.EOF
		if len(f.body) > 0 {
			why = cut("%s", f.body)
		}
		l.end(why, false)
	}
}

// arrive takes data.
func (l *Link) arrive(body []byte) error {
	number, parts, err := decodeParts(body)
	if err != nil {
		return cut("%v", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if number != l.next {
		return cut("messages were lost")
	}
	l.next++
	for _, p := range parts {
		l.received += p.size()
	}
	if l.received > l.promised+maxPiece {
		return cut("the peer sent more than it had credit for")
	}
	l.arrived = append(l.arrived, parts...)
	l.changed.Broadcast()
	return nil
}

// Read implements wire.Stream.
func (l *Link) Read() ([]byte, error) {
	m, err := l.ReadMessage()
	return m.Data, err
}

// ReadMessage returns the next message, and whether it is a binary one. It blocks until there is one.
func (l *Link) ReadMessage() (m wire.Outgoing, err error) {
	for more := true; more; {
		p, err := l.take()
		if err != nil {
			return m, err
		}
		switch {
		case !p.more && m.Data == nil:
			m.Data = p.data
		case len(m.Data)+len(p.data) > wire.MaxFrame:
			err = cut("a message of more than %d bytes", wire.MaxFrame)
			l.end(err, true)
			return m, err
		default:
			m.Data = append(m.Data, p.data...)
		}
		m.Binary, more = p.binary, p.more
	}
	return m, nil
}

// ReadBatch returns the next messages that are there whole, at least one and about 256 KiB of them at most.
// It blocks until there is one.
func (l *Link) ReadBatch() ([]wire.Outgoing, error) {
	const most = 256 << 10
	m, err := l.ReadMessage()
	if err != nil {
		return nil, err
	}
	batch, size := []wire.Outgoing{m}, len(m.Data)
	for size < most && l.hasWhole() {
		more, err := l.ReadMessage()
		if err != nil {
			return batch, nil //nolint:nilerr // the next call says so
		}
		batch, size = append(batch, more), size+len(more.Data)
	}
	return batch, nil
}

func (l *Link) hasWhole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.arrived {
		if !p.more {
			return true
		}
	}
	return false
}

// take waits for the next part, and gives the peer credit for more.
func (l *Link) take() (p part, err error) {
	l.mu.Lock()
	for len(l.arrived) == 0 && l.err == nil {
		l.changed.Wait()
	}
	if len(l.arrived) == 0 {
		defer l.mu.Unlock()
		return p, l.err
	}
	p, l.arrived = l.arrived[0], l.arrived[1:]
	if len(l.arrived) == 0 {
		l.arrived = nil
	}
	l.taken += p.size()
	credit := uint64(0)
	if l.err == nil {
		window := uint64(l.window()) //nolint:gosec // it is positive
		if l.taken+window >= l.promised+window/2 {
			l.promised = max(l.promised, l.taken+window)
			credit = l.promised
		}
	}
	l.mu.Unlock()
	if credit > 0 {
		l.give(credit)
	}
	return p, nil
}

func (l *Link) give(credit uint64) {
	if err := l.send(kindCredit, binary.BigEndian.AppendUint64(nil, credit)); err != nil {
		l.end(cut("%v", err), false)
	}
}

// Write implements wire.Stream.
func (l *Link) Write(message []byte) error {
	return l.WriteBatch([]wire.Outgoing{{Data: message}})
}

// MaxBatch is how many bytes of messages go into one frame.
func (l *Link) MaxBatch() int { return maxPiece }

// WriteBatch implements wire.BatchStream. It blocks while there is no credit.
func (l *Link) WriteBatch(messages []wire.Outgoing) error {
	room := 0
	for _, m := range messages {
		data := m.Data
		for first := true; first || len(data) > 0; first = false {
			if room == 0 {
				if err := l.flush(); err != nil {
					return err
				}
				room = maxPiece
			}
			n := min(max(room-partHead, 1), len(data))
			if l.frame == nil {
				head := frame{kindData, l.channel, make([]byte, 8)}
				l.frame = head.append(nil)
			}
			l.frame = appendPart(l.frame, part{n < len(data), m.Binary, data[:n]})
			data, room = data[n:], max(room-n-partHead, 0)
		}
	}
	return l.flush()
}

// dataHead is the head of a frame of kindData, with its number.
const dataHead = frameHead + 8

// flush sends what WriteBatch has put together, when there is credit for a byte of it.
func (l *Link) flush() error {
	if len(l.frame) <= dataHead {
		return nil
	}
	l.mu.Lock()
	for l.sent >= l.limit && l.err == nil {
		l.changed.Wait()
	}
	if err := l.err; err != nil {
		l.mu.Unlock()
		if err == io.EOF { //nolint:errorlint // the value of end
			err = wire.ErrClosed
		}
		return err
	}
	binary.BigEndian.PutUint64(l.frame[frameHead:], l.number)
	l.number++
	l.sent += uint64(len(l.frame) - dataHead)
	l.mu.Unlock()
	err := l.publish(kindData, l.frame)
	l.frame = l.frame[:dataHead]
	if err != nil {
		err = cut("%v", err)
		l.end(err, false)
	}
	return err
}

// end ends the link, and tells the peer why.
func (l *Link) end(err error, tell bool) {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = err
	}
	l.mu.Unlock()
	l.changed.Broadcast()
	if !first {
		return
	}
	if tell {
		_ = l.send(kindClose, []byte(err.Error())) // a peer that does not hear it finds out
	}
	l.gone()
}

// Close implements wire.Stream. The peer reads what was written, and then io.EOF.
func (l *Link) Close() error {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = wire.ErrClosed
	}
	l.mu.Unlock()
	if first {
		l.changed.Broadcast()
		_ = l.send(kindClose, nil)
		l.gone()
	}
	return nil
}

// Cut ends the link without a proper end, and tells the peer why.
func (l *Link) Cut(why string) { l.end(cut("%s", why), true) }

// Err returns why the link is over; nil while it is not.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
