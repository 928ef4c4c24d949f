// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// doorWith runs a server with the bounds until the test ends, and returns its URL.
func doorWith(t *testing.T, g gate, open int, change func(*handler, *http.Server)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := execserver.New(options().Server)
	d := newDoor(ownServer{server}, g, defaultClients)
	h := d.http()
	if change != nil {
		change(d, h)
	}
	over := make(chan error, 1)
	go func() { over <- h.Serve(newBoundedListener(l, open)) }()
	t.Cleanup(func() {
		if err := errors.Join(h.Close(), server.Close()); err != nil {
			t.Error(err)
		}
		d.wait()
		if err := <-over; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "ws://" + l.Addr().String()
}

// dialPlain connects to a server and sends a text.
func dialPlain(t *testing.T, url, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "ws://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	deadline(t, &webSocket{Conn: c})
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSlowRequests: a client that does not finish its request, or does not send the body that it
// announced, is cut after a time. A connection that was upgraded is not.
func TestSlowRequests(t *testing.T) {
	url := doorWith(t, open, maxOpen(defaultClients), func(_ *handler, h *http.Server) {
		for _, limit := range []*time.Duration{&h.ReadHeaderTimeout, &h.ReadTimeout, &h.WriteTimeout,
			&h.IdleTimeout} {
			if *limit != 10*time.Second {
				t.Errorf("a request may take %v", *limit)
			}
			*limit /= 100 // none stays none
		}
	})
	c, _ := meet(t, url, nil)
	for _, test := range []struct{ name, text string }{
		{"nothing", ""},
		{"half a line", "GET / HT"},
		{"half a head", "GET / HTTP/1.1\r\nHost: x\r\nX-A: "},
		{"no body", "POST /readyz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"},
		{"half a body", "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"},
		{"no second request", "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := io.Copy(io.Discard, dialPlain(t, url, test.text)); errors.Is(err,
				os.ErrDeadlineExceeded) {
				t.Error("the connection was not cut")
			}
		})
	}
	c.served()
}

// TestLargeHead: the head of a request is bounded.
func TestLargeHead(t *testing.T) {
	url := doorWith(t, open, maxOpen(defaultClients), nil)
	c := dialPlain(t, url, "GET / HTTP/1.1\r\nHost: x\r\nX-A: "+strings.Repeat("a", 2*maxHead))
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", response.Status)
	}
}

// TestOpenConnections: connections that send no request are bounded too. The next one is told
// so, clients that are served go on, and a place is free when one of the others has gone.
func TestOpenConnections(t *testing.T) {
	most := 8
	if testenv.IsLong() {
		most = 1000
		var limit unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil && limit.Cur < 4096 {
			most = int(limit.Cur) / 4 // both ends of each, and the rest of the program
		}
	}
	url := doorWith(t, open, most, nil)
	c, _ := meet(t, url, nil)
	var idle []net.Conn
	for range most - 1 {
		idle = append(idle, dialPlain(t, url, ""))
	}
	refused := dialPlain(t, url, "") // accepted after all of them
	response, err := http.ReadResponse(bufio.NewReader(refused), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable ||
		string(body) != "too many connections\n" {
		t.Errorf("%s, %q, %v", response.Status, body, err)
	}
	c.served()
	for _, conn := range idle {
		_ = conn.Close()
	}
	for { // until the server has seen the end of one
		w, response, err := dial(url, nil)
		if err == nil && w != nil {
			_ = w.close()
			return
		}
		if response != nil && response.StatusCode != http.StatusServiceUnavailable {
			t.Fatalf("%s", response.Status)
		}
	}
}

// TestManyConnections: connections that only connect are bounded, and do not keep the server
// from its clients.
func TestManyConnections(t *testing.T) {
	const most = 4
	url := doorWith(t, open, maxOpen(defaultClients),
		func(d *handler, _ *http.Server) { d.slots = make(chan struct{}, most) })
	c, _ := meet(t, url, nil)
	for range most - 1 {
		connect(t, url, nil)
	}
	_, response, err := dial(url, nil)
	if err != nil || response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%v, %v", response, err)
	}
	c.served()
}

// TestPenalty: the answer to a wrong token takes a second; that to the right one, and that to
// none, takes no time.
func TestPenalty(t *testing.T) {
	a := Auth{Kind: AuthCapability, TokenFile: writeFile(t, "swordfish")}
	g, err := a.gate()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		header http.Header
		status int
		want   time.Duration
	}{
		{"right", bearerHeader("swordfish"), http.StatusBadRequest, 0}, // no WebSocket is asked for
		{"none", http.Header{}, http.StatusUnauthorized, 0},
		{"wrong", bearerHeader("swordfisi"), http.StatusUnauthorized, time.Second},
		{"prefix", bearerHeader("swordfis"), http.StatusUnauthorized, time.Second},
		{"long", bearerHeader(strings.Repeat("s", 16<<10)), http.StatusUnauthorized, time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := execserver.New(execserver.Options{})
				d := newDoor(ownServer{server}, g, defaultClients)
				defer d.wait()
				defer func() { _ = server.Close() }()
				w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
				r.Header = test.header
				began := time.Now()
				d.ServeHTTP(w, r)
				if took := time.Since(began); w.Code != test.status || took != test.want {
					t.Errorf("%d after %v, want %d after %v", w.Code, took, test.status, test.want)
				}
			})
		})
	}
}

// TestPenaltyEnds: the end of the server does not wait for those who wait.
func TestPenaltyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := maxOpen(defaultClients)
		p := newPenalty(most)
		for range most {
			go p.wait()
		}
		synctest.Wait()
		began := time.Now()
		p.end()
		if took := time.Since(began); took != 0 {
			t.Errorf("the end took %v", took)
		}
		if len(p.waiting) != most {
			t.Errorf("%d places are taken, want all", len(p.waiting))
		}
		p.wait() // who comes later finds no place, and does not wait for one
	})
}

// TestGuesses: a client that leaves without waiting for the answer, and comes back with the next
// token, has taken a place for each of them until the time is over. So guesses are bounded, not
// only their answers.
func TestGuesses(t *testing.T) {
	const most = 4
	a := Auth{Kind: AuthCapability, TokenFile: writeFile(t, "swordfish")}
	g, err := a.gate()
	if err != nil {
		t.Fatal(err)
	}
	var d *handler
	guessed := make(chan struct{}, 2*most)
	counted := func(r *http.Request) (string, error) {
		defer func() { guessed <- struct{}{} }()
		return g(r)
	}
	url := doorWith(t, counted, most, func(made *handler, _ *http.Server) {
		d = made
		d.penalty.time = time.Hour
	})
	for i := range most {
		c := dialPlain(t, url, fmt.Sprintf("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %d\r\n\r\n", i))
		<-guessed
		_ = c.Close()
	}
	c := dialPlain(t, url, "")
	answer, err := io.ReadAll(c)
	if err != nil || !bytes.HasPrefix(answer, []byte("HTTP/1.1 503 ")) {
		t.Errorf("%q, %v", answer, err)
	}
	if len(guessed) != 0 {
		t.Errorf("%d more guesses were looked at", len(guessed))
	}
}

// TestLargeMessage: a message above the limit ends its connection, and the server goes on.
func TestLargeMessage(t *testing.T) {
	url := run(t, options())
	w := connect(t, url, nil)
	deadline(t, w)
	_ = w.send([]byte(`{"id":1,"method":"`+strings.Repeat("x", 17<<20)+`"}`), false) // it may be cut before
	if text, err := w.receive(); err == nil {
		t.Errorf("it was answered: %.100s", text)
	}
	meet(t, url, nil)
}
