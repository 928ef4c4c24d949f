// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A net is a hub in memory: each message is delivered by a goroutine of its subscriber, in order.
type network struct {
	mu   sync.Mutex
	subs []*sub
	lose func(subject string, data []byte) bool // nil loses nothing
	work sync.WaitGroup
	sent int
}

type message struct {
	subject string
	data    []byte
}

type sub struct {
	pattern []string
	queue   chan message
	gone    chan struct{}
}

// An end is a transport on it.
type end struct {
	*network
	id   string
	down bool
	cuts []func()
	back []func()
}

func (n *network) end(id string) *end { return &end{network: n, id: id} }

func (e *end) ID() string { return e.id }

func (e *end) Account() string { return "" }

func (e *end) Publish(subject string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return errors.New("no connection")
	}
	e.sent++
	if e.lose != nil && e.lose(subject, data) {
		return nil
	}
	words := strings.Split(subject, ".")
	for _, s := range e.subs {
		if matches(s.pattern, words) {
			select {
			case s.queue <- message{subject, bytes.Clone(data)}:
			default:
				panic("a subscriber has more messages than there is credit for")
			}
		}
	}
	return nil
}

func matches(pattern, words []string) bool {
	if len(pattern) != len(words) {
		return false
	}
	for i, p := range pattern {
		if p != "*" && p != words[i] {
			return false
		}
	}
	return true
}

func (e *end) Subscribe(subject string, receive func(string, []byte)) (func(), error) {
	s := &sub{strings.Split(subject, "."), make(chan message, 10_000), make(chan struct{})}
	e.mu.Lock()
	e.subs = append(e.subs, s)
	e.mu.Unlock()
	e.work.Go(func() {
		for {
			select {
			case m := <-s.queue:
				receive(m.subject, m.data)
			case <-s.gone:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(s.gone) }), nil
}

func (e *end) OnCut(cut, back func()) func() {
	e.cuts, e.back = append(e.cuts, cut), append(e.back, back)
	return func() {}
}

// cut takes the connection of an end, or gives it back.
func (e *end) cut(down bool) {
	e.mu.Lock()
	e.down = down
	e.mu.Unlock()
	for i := range e.cuts {
		if down {
			e.cuts[i]()
		} else {
			e.back[i]()
		}
	}
}

// pair returns a client, and a node that passes each link on.
func pair(t *testing.T, n *network) (*Client, *end, <-chan *Link, *Node) {
	t.Helper()
	links := make(chan *Link, 100)
	release := make(chan struct{})
	at := n.end("node")
	node, err := NewNode(at, Own, "n1", Handler{
		Open: func(_ Peer, _ json.RawMessage, l *Link) {
			links <- l
			<-release
		},
		Call: func(_ context.Context, p Peer, method string, params json.RawMessage) (any, error) {
			if method == "fail" {
				return nil, &CallError{Reason: "why", Message: "no"}
			}
			return map[string]any{"method": method, "client": p.Client, "params": params}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	from := n.end("c1")
	c, err := NewClient(from, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		close(release)
		node.Close()
		n.work.Wait()
	})
	return c, from, links, node
}

func open(t *testing.T, c *Client, links <-chan *Link) (near, far *Link) {
	t.Helper()
	near, err := c.Open(Address{Own, "n1"}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return near, <-links
}

// TestMessages: messages of all sizes arrive as they are, both ways.
func TestMessages(t *testing.T) {
	c, _, links, _ := pair(t, new(network))
	near, far := open(t, c, links)
	for _, size := range []int{0, 1, maxPiece - partHead, maxPiece - 1, maxPiece, maxPiece + 1, 3 << 20, wire.MaxFrame} {
		for _, way := range [][2]*Link{{near, far}, {far, near}} {
			message := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			written := make(chan error, 1)
			go func() {
				written <- way[0].WriteBatch([]wire.Outgoing{{Data: message, Binary: size%2 == 1}})
			}()
			got, err := way[1].ReadMessage()
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			if err != nil || !bytes.Equal(got.Data, message) || got.Binary != (size%2 == 1) {
				t.Fatalf("%d bytes: %d arrived, binary %v, %v", size, len(got.Data), got.Binary, err)
			}
		}
	}
	if err := near.Close(); err != nil {
		t.Error(err)
	}
	if _, err := far.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
}

// TestBatches: many small messages go together, and come out apart.
func TestBatches(t *testing.T) {
	n := new(network)
	c, _, links, _ := pair(t, n)
	near, far := open(t, c, links)
	var all []wire.Outgoing
	for i := range 1000 {
		all = append(all, wire.Outgoing{Data: fmt.Append(nil, i)})
	}
	if err := near.WriteBatch(all); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 1000; {
		batch, err := far.ReadBatch()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range batch {
			if string(m.Data) != fmt.Sprint(i) {
				t.Fatalf("%d: %s", i, m.Data)
			}
			i++
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sent > 20 {
		t.Errorf("%d messages of the hub", n.sent)
	}
}

// TestCredit: who is not read sends no more than it has credit for, and others go on.
func TestCredit(t *testing.T) {
	n := new(network)
	c, _, links, _ := pair(t, n)
	near, far := open(t, c, links)
	other, otherFar := open(t, c, links)
	written := make(chan int, 1)
	go func() {
		sum := 0
		for {
			if near.Write(make([]byte, 10_000)) != nil {
				written <- sum
				return
			}
			sum += 10_000
		}
	}()
	for range 100 {
		if err := other.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := otherFar.Read(); err != nil {
			t.Fatal(err)
		}
	}
	far.Cut("enough")
	if sum := <-written; sum > firstCredit+2*maxPiece {
		t.Errorf("%d bytes without credit", sum)
	}
}

// TestLoss: a message that is lost ends the link at both ends, and never lets others pass.
func TestLoss(t *testing.T) {
	n := new(network)
	c, _, links, _ := pair(t, n)
	near, far := open(t, c, links)
	if err := near.Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	if got, err := far.Read(); string(got) != "1" || err != nil {
		t.Fatal(got, err)
	}
	n.mu.Lock()
	n.lose = func(_ string, data []byte) bool { return bytes.Contains(data, []byte("second")) }
	n.mu.Unlock()
	for _, text := range []string{"second", "third"} {
		if err := near.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var closed *ClosedError
	if got, err := far.Read(); !errors.As(err, &closed) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := near.Read(); !errors.As(err, &closed) || !errors.Is(err, wire.ErrClosed) {
		t.Errorf("the other end: %v", err)
	}
}

// TestCut: where the connection of one end is cut, both ends of its links end, and new ones work.
func TestCut(t *testing.T) {
	n := new(network)
	c, from, links, _ := pair(t, n)
	near, far := open(t, c, links)
	from.cut(true)
	if _, err := near.Read(); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("near: %v", err)
	}
	from.cut(false)
	if _, err := far.Read(); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("far: %v", err)
	}
	near, far = open(t, c, links)
	go func() { _ = near.Write([]byte("again")) }()
	if got, err := far.Read(); string(got) != "again" || err != nil {
		t.Error(got, err)
	}
}

// TestReplace: a link is replaced by one of its own client at once, by that of another one only where its
// client is gone.
func TestReplace(t *testing.T) {
	n := new(network)
	c, from, links, node := pair(t, n)
	_, far := open(t, c, links)
	if node.Replace(far, Peer{Client: "c2"}, time.Minute) {
		t.Error("a client that is there was cut")
	}
	n.mu.Lock()
	n.lose = func(subject string, _ []byte) bool { return strings.Contains(subject, ".down.") }
	n.mu.Unlock()
	if !node.Replace(far, Peer{Client: "c2"}, 10*time.Millisecond) || far.Err() == nil {
		t.Error("a client that is gone kept its link")
	}
	n.mu.Lock()
	n.lose = nil
	n.mu.Unlock()
	_, far = open(t, c, links)
	if !node.Replace(far, Peer{Client: from.id}, time.Minute) || far.Err() == nil {
		t.Error("the client itself")
	}
}

// TestCalls: calls are answered, also with errors, and all nodes are asked.
func TestCalls(t *testing.T) {
	c, _, _, _ := pair(t, new(network))
	var got struct{ Method, Client string }
	if err := c.Call(t.Context(), Address{Own, "n1"}, "some", nil, &got); err != nil || got.Method != "some" ||
		got.Client != "c1" {
		t.Error(got, err)
	}
	var failed *CallError
	if err := c.Call(t.Context(), Address{Own, "n1"}, "fail", nil, &got); !errors.As(err, &failed) ||
		failed.Reason != "why" {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := c.Call(ctx, Address{Own, "absent"}, "some", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	answers := make(chan Address, 1)
	stop, err := c.Ask(Own, "record", nil, func(a Address, _ json.RawMessage) { answers <- a })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if a := <-answers; a != (Address{Own, "n1"}) {
		t.Error(a)
	}
}

func TestSubjects(t *testing.T) {
	for _, row := range []struct {
		scope   Scope
		subject string
		want    Peer
		ok      bool
	}{
		{Own, "sp.own.up.n1.C", Peer{"", "C"}, true},
		{Own, "sp.own.ask.C", Peer{"", "C"}, true},
		{Shared, "sp.all.ACC.up.n1.C", Peer{"ACC", "C"}, true},
		{Shared, "sp.all.ACC.ask.C", Peer{"ACC", "C"}, true},
		{Shared, "sp.all.ask.C", Peer{}, false},
		{Own, "sp.own.down.C.n1", Peer{}, false},
		{Own, "sp.own.up.n1.C.D", Peer{}, false},
	} {
		if got, ok := row.scope.peer(row.subject); ok != row.ok || ok && got != row.want {
			t.Errorf("%s: %+v, %v", row.subject, got, ok)
		}
	}
}

// FuzzFrames: nothing that arrives ends the process, takes memory without bound or is read past its end; what
// was written is read.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{byte(kindData), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 'x'})
	f.Add([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response"}`))
	f.Add([]byte{byte(kindData), 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 3, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeFrame(data)
		if err != nil {
			return
		}
		if again := got.append(nil); !bytes.Equal(again, data) {
			t.Errorf("%x became %x", data, again)
		}
		number, parts, err := decodeParts(got.body)
		if got.kind != kindData || err != nil {
			return
		}
		body := append([]byte(nil), got.body[:8]...)
		for _, p := range parts {
			body = appendPart(body, p)
		}
		if !bytes.Equal(body, got.body) {
			t.Errorf("%d: %x became %x", number, got.body, body)
		}
	})
}
