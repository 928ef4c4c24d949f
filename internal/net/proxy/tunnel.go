// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/network"
)

const (
	tunnelTick = idleTime / 4
	// tunnelPiece is how much is copied until it is counted, in bytes. The kernel moves it from
	// one connection to the other.
	tunnelPiece = 1 << 20
)

var (
	errIdle = errors.New("no data arrived in time")
	errSNI  = errors.New("the server name is not that of the host")
)

// A flow is one direction of a tunnel.
type flow struct {
	from, to net.Conn
	ahead    *bufio.Reader // of from, with what was read before; nil for nothing
	bytes    int64
	last     atomic.Int64 // when bytes came, in Unix nanoseconds; 0 once it has ended
}

// A tunnel is two connections that are one.
type tunnel struct {
	a        *access
	up, down flow
}

// tunnel copies between the client and a server until both directions have ended, one of them
// fails, or nothing came for too long. Ahead has what was read of the server before. With sniff,
// TLS is for the host of the request or another one that is allowed.
func (c *client) tunnel(a *access, server net.Conn, ahead *bufio.Reader, sniff bool) Cause {
	t := &tunnel{a: a}
	t.up.from, t.up.to, t.up.ahead = c.conn, server, c.r
	t.down.from, t.down.to, t.down.ahead = server, c.conn, ahead
	now := time.Now().UnixNano()
	t.up.last.Store(now)
	t.down.last.Store(now)

	var upErr error
	done := make(chan struct{})
	go func() {
		defer close(done)
		if upErr = t.run(&t.up, &t.down, sniff); upErr != nil {
			t.cut()
		}
	}()
	err := t.run(&t.down, &t.up, false)
	if err != nil {
		t.cut()
	}
	<-done
	a.up += t.up.bytes
	a.down += t.down.bytes
	switch {
	case errors.Is(upErr, errSNI):
		return SNIRefused
	case errors.Is(err, errIdle) || errors.Is(upErr, errIdle):
		return Idle
	case err != nil || upErr != nil:
		return Failed
	}
	return Ended
}

// cut ends both directions.
func (t *tunnel) cut() {
	_ = t.up.from.Close()
	_ = t.up.to.Close()
}

// run copies one direction. Nil means that its end was passed on.
func (t *tunnel) run(f, other *flow, sniff bool) error {
	if sniff {
		if err := t.sniff(f, other); err != nil {
			return whole(err)
		}
	}
	if err := f.flush(); err != nil {
		return err
	}
	err := t.wait(f, other, func() (bool, error) {
		piece := &io.LimitedReader{R: f.from, N: tunnelPiece}
		n, err := io.Copy(f.to, piece)
		f.count(int(n))
		return err == nil && piece.N > 0, err
	})
	if err != nil {
		return err
	}
	f.last.Store(0)
	half, ok := f.to.(halfCloser)
	if !ok {
		return io.ErrUnexpectedEOF
	}
	return half.CloseWrite()
}

// wait repeats a step until it is done or fails. Time that passes without bytes is no failure
// before it is too long in both directions. A direction notes its bytes at least once a tick, so
// that of the other one may have had some since.
func (t *tunnel) wait(f, other *flow, step func() (done bool, err error)) error {
	for {
		_ = f.from.SetReadDeadline(time.Now().Add(tunnelTick))
		done, err := step()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			latest := time.Unix(0, max(f.last.Load(), other.last.Load()))
			if time.Since(latest) >= idleTime+tunnelTick {
				return errIdle
			}
			continue
		}
		if err != nil || done {
			return err
		}
	}
}

// count notes bytes.
func (f *flow) count(n int) {
	if f.bytes += int64(n); n > 0 {
		f.last.Store(time.Now().UnixNano())
	}
}

// flush passes on what was read before.
func (f *flow) flush() error {
	if f.ahead == nil {
		return nil
	}
	for f.ahead.Buffered() > 0 {
		p, _ := f.ahead.Peek(f.ahead.Buffered())
		n, err := f.to.Write(p)
		f.count(n)
		if err != nil {
			return err
		}
		_, _ = f.ahead.Discard(n)
	}
	f.ahead = nil
	return nil
}

// sniff looks at what the client sends first, however late. If it is TLS, its first message is
// read as a whole and judged before any byte goes on. A server that speaks first is not held up.
func (t *tunnel) sniff(f, other *flow) error {
	err := t.wait(f, other, func() (bool, error) {
		_, err := f.ahead.Peek(1)
		return err == nil, err
	})
	if errors.Is(err, io.EOF) {
		return nil // and so says the copy
	}
	if err != nil {
		return err
	}
	if first, _ := f.ahead.Peek(1); first[0] != recordHandshake {
		s := &screen{t: t, f: f, other: other}
		return s.run()
	}
	p, err := t.a.readHello(f.from, f.ahead)
	if err != nil {
		return err
	}
	n, err := f.to.Write(p)
	f.count(n)
	return err
}

// readHello reads the first message of a TLS client as a whole, and judges it. It returns what was read.
func (a *access) readHello(from net.Conn, ahead *bufio.Reader) ([]byte, error) {
	_ = from.SetReadDeadline(time.Now().Add(helloTime))
	h, p, err := readHello(ahead)
	switch {
	case errors.Is(err, errNoHello):
		return nil, a.refuseName("")
	case err != nil:
		return nil, err
	}
	return p, a.checkName(h)
}

// checkName compares the server name with the host of the request. Another one is judged as a
// host of its own. Without one, and with an encrypted hello inside, it is as the policy says.
func (a *access) checkName(h hello) error {
	policy := a.s.policy()
	// An encrypted hello may be for a host with request rules or credentials.
	hides := h.ech && !a.opened && (policy.HasRequestRules() || a.s.command.Rewriter != nil)
	if a.shut || hides || policy.RequireSNI() && (h.name == "" || h.ech) {
		return a.refuseName(h.name)
	}
	if h.name == "" {
		return nil
	}
	host, err := network.ParseHost(h.name)
	if err != nil {
		return a.refuseName(h.name)
	}
	if host == a.req.Host {
		return nil
	}
	r := a.req
	r.Host = host
	if d := policy.Decide(r); d.Ruling != network.Allow || policy.Inspects(host, r.Port) ||
		a.s.viewOf(policy, host, r.Port) != (policyView{}) {
		return a.refuseName(h.name) // or its requests would not be seen
	}
	return nil
}

// refuseName tells that TLS is for a host that is not allowed, or that it is malformed.
func (a *access) refuseName(name string) error {
	refused := access{s: a.s, req: a.req, raw: name, start: a.start}
	refused.req.Host, _ = network.ParseHost(name)
	refused.decide(network.Decision{Ruling: network.Deny, Reason: network.SNIMismatch,
		Source: network.BaselinePolicy})
	return errSNI
}
