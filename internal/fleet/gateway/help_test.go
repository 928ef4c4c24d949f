// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A partition is a proxy in front of the hub, which can hold up everything without a word.
type partition struct {
	mu   sync.Mutex
	open chan struct{} // closed while bytes pass
}

// partition has the next connections go through a proxy.
func (s *site) partition() *partition {
	s.t.Helper()
	p := &partition{open: make(chan struct{})}
	close(p.open)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	target, err := url.Parse(s.hub.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	var work sync.WaitGroup
	s.t.Cleanup(func() {
		_ = l.Close()
		p.resume()
		work.Wait()
	})
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				to, err := net.Dial("tcp", target.Host)
				if err != nil {
					return
				}
				defer to.Close()
				work.Go(func() { p.copy(to, c) })
				p.copy(c, to)
			})
		}
	})
	s.url = "nats://" + l.Addr().String()
	return p
}

func (p *partition) copy(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		p.mu.Lock()
		open := p.open
		p.mu.Unlock()
		<-open
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

func (p *partition) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = make(chan struct{})
}

func (p *partition) resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.open:
	default:
		close(p.open)
	}
}

// A raw client speaks with a gateway message by message.
type raw struct {
	t      testing.TB
	stream wire.Stream
	last   int64
	passed []*wire.Message // that came before the answer that was waited for
	far    *breakable
}

// A breakable is a stream that can end without a proper end.
type breakable struct {
	wire.Stream
	broken atomic.Bool
}

func (b *breakable) Read() ([]byte, error) {
	text, err := b.Stream.Read()
	if err != nil && b.broken.Load() {
		err = errors.New("the connection is cut")
	}
	return text, err //nolint:wrapcheck // of the test
}

// cut ends the connection without a proper end.
func (c *raw) cut() {
	c.far.broken.Store(true)
	_ = c.stream.Close()
}

// raw connects a client, which resumes a session unless that is empty.
func (s *site) raw(g *gateway.Gateway, session string) (c *raw, hello wire.InitializeResult) {
	s.t.Helper()
	near, other := wire.Pipe()
	c = &raw{t: s.t, stream: near, far: &breakable{Stream: other}}
	go func() { _ = g.Serve(c.far, "", nil) }()
	s.t.Cleanup(func() { _ = near.Close() })
	params := map[string]any{"clientName": "raw", "extensionMethods": true}
	if session != "" {
		params["resumeSessionId"] = session
	}
	if failure := c.call("initialize", params, &hello); failure != nil {
		s.t.Fatal(failure)
	}
	c.post(map[string]any{"method": "initialized"})
	return c, hello
}

func (c *raw) post(m any) {
	c.t.Helper()
	text, err := json.Marshal(m)
	if err == nil {
		err = c.stream.Write(text)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next message; nil at the end.
func (c *raw) read() *wire.Message {
	c.t.Helper()
	data, err := c.stream.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	m, err := wire.DecodeMessage(data)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

// call returns the error of a request.
func (c *raw) call(method string, params, result any) *wire.Error {
	c.t.Helper()
	c.last++
	c.post(map[string]any{"id": c.last, "method": method, "params": params})
	for {
		m := c.read()
		if m == nil {
			c.t.Fatalf("%s has no answer", method)
		}
		if n, ok := m.ID.Int(); !ok || n != c.last || m.Kind != wire.KindResponse && m.Kind != wire.KindError {
			c.passed = append(c.passed, m)
			continue
		}
		if m.Kind == wire.KindError {
			return m.Error
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				c.t.Fatal(err)
			}
		}
		return nil
	}
}

var begin = time.Now()

// now is the time in seconds.
func now() float64 { return time.Since(begin).Seconds() }

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
