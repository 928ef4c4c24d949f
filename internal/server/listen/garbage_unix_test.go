// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package listen

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// speaks answers one connection at a socket as an exec-server whose answer to the second request is
// text; without text it says nothing.
func speaks(t *testing.T, l net.Listener, text string) {
	t.Helper()
	served := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(served)
		s, err := wire.Accept(w, r)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		for _, answer := range []string{`{"id":1,"result":{"sessionId":"s"}}`, "", text} {
			if _, err := s.Read(); err != nil {
				t.Error(err)
			}
			if answer != "" {
				_ = s.Write([]byte(answer))
			}
		}
		_, _ = s.Read() // until the caller has gone
	})}
	go server.Serve(l) //nolint:errcheck // it ends with Close
	t.Cleanup(func() {
		<-served
		server.Close()
	})
}

// TestListenerGarbage: a listener that talks nonsense, or does not talk, is named, and the others
// are listed.
func TestListenerGarbage(t *testing.T) {
	home(t)
	defer func(old time.Duration) { patience = old }(patience)
	patience = time.Second
	dir := directory(t)
	name := func(i int) string { return fmt.Sprintf("%s/1%d-0123456789abcdef.sock", dir, i) }
	answers := []string{
		`{"id":2,"result":{"questions":[{"digest":"a","request":null}]}}`,
		`{"id":2,"result":{"questions":[{"digest":"a","request":1}]}}`,
		`{"id":2,"result":7}`, `{"id":2,"error":{"code":-1,"message":"what"}}`, "x", "",
	}
	for i, text := range answers {
		speaks(t, listenAt(t, name(i)), text)
	}
	var serving sync.WaitGroup
	for i, says := range []string{"x\n", `{"version":1,"pending":[]}` + "\n", ""} {
		l := listenAt(t, name(len(answers)+i))
		serving.Go(func() {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if _, err := io.WriteString(c, says); err != nil {
				t.Error(err)
			}
			_, _ = io.Copy(io.Discard, c)
		})
	}
	p := newPost(t, passes)
	out := p.ask(t, request("abc-1"))
	if l := list(t); len(l.Silent) != len(answers)+3 || len(l.Pending) != 1 ||
		strings.Contains(strings.Join(l.Silent, ""), "\n") {
		t.Errorf("%q", l.Silent)
	}
	serving.Wait()
	if err := p.questions.Answer("abc-1", approval.Decision{}); err != nil || (<-out).err != nil {
		t.Error(err)
	}
}

// session returns a client of the one process that asks.
func session(t *testing.T) (questionSocket, *wire.Client) {
	t.Helper()
	found, err := socketsIn(socketsDir)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	c, err := wire.Connect(t.Context(), wire.ClientTarget{URL: "unix://" + found[0].path},
		wire.ClientOptions{Name: "test", Extensions: true, Resume: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return found[0], c
}

// TestCallerGarbage: nonsense is refused, and the question stays open.
func TestCallerGarbage(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	out := p.ask(t, request("abc-1"))
	at, c := session(t)
	var all struct{ Questions []struct{ Digest string } }
	if err := c.Call(t.Context(), "question/list", nil, &all); err != nil || len(all.Questions) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	own := all.Questions[0].Digest
	for _, test := range []struct {
		name, params, want string
	}{
		{"no object", `1`, "expected struct"},
		{"no decision", `{"id":"abc-1","digest":"` + own + `"}`, "missing field `decision`"},
		{"no digest", `{"id":"abc-1","decision":"approved"}`, "missing field `digest`"},
		{"no ID", `{"digest":"` + own + `","decision":"approved"}`, "missing field `id`"},
		{"an unknown decision", `{"id":"abc-1","digest":"` + own + `","decision":"yes"}`, "is no decision"},
		{"none", `{"id":"abc-1","digest":"` + own + `","decision":"none"}`, "is no decision"},
		{"timed out", `{"id":"abc-1","digest":"` + own + `","decision":"timed_out"}`, "is no decision"},
		{"no digest of ours", `{"id":"abc-1","digest":"","decision":"approved"}`, "another question"},
		{"another digest", `{"id":"abc-1","digest":"` + strings.Repeat("0", 64) + `","decision":"approved"}`, "another question"},
		{"a part of the ID", `{"id":"abc","digest":"` + own + `","decision":"approved"}`, "not open"},
		{"not offered", `{"id":"abc-1","digest":"` + own + `","decision":"network_policy_amendment"}`, "not offered"},
	} {
		if err := c.Call(t.Context(), "question/answer", json.RawMessage(test.params), nil); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
	for _, says := range []string{"x\n", `{"version":1,"do":"answer","id":"abc-1","decision":"approved"}` +
		"\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""} {
		raw, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: at.path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(raw, says)
		_ = raw.CloseWrite()
		if got, _ := io.ReadAll(raw); says != "" && !strings.HasPrefix(string(got), "HTTP/1.1 400") {
			t.Errorf("%q: %q", says, got)
		}
		raw.Close()
	}
	if err := list(t).Answer("abc-1", approval.Denied, "", ""); err != nil ||
		(<-out).d.Answer != approval.Denied {
		t.Error(err)
	}
}

// TestIdleCallers: who connects and says nothing, or takes no answers, keeps no one from answering, and does
// not hold up the end.
func TestIdleCallers(t *testing.T) {
	home(t)
	p := newPost(t, passes)
	out := p.ask(t, request("abc-1"))
	for range 20 {
		at, _ := session(t)
		c, err := net.Dial("unix", at.path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	at, _ := session(t)
	flood(t, at.path)
	if err := list(t).Answer("abc-1", approval.Approved, "", ""); err != nil ||
		(<-out).d.Answer != approval.Approved {
		t.Error(err)
	}
	start := time.Now()
	p.Close()
	if waited := time.Since(start); waited > time.Second {
		t.Errorf("the end took %v", waited)
	}
}

// flood makes requests and reads no answer, until the server takes no more.
func flood(t *testing.T, path string) {
	t.Helper()
	var raw net.Conn
	s, err := wire.Over(t.Context(), "", func(context.Context) (_ net.Conn, err error) {
		raw, err = net.Dial("unix", path)
		return raw, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for _, text := range []string{`{"id":1,"method":"initialize","params":{"clientName":"test","extensionMethods":true}}`, `{"method":"initialized"}`} {
		if err := s.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	for {
		_ = raw.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		if s.Write([]byte(`{"id":2,"method":"question/list"}`)) != nil {
			return
		}
	}
}
