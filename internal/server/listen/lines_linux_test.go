// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// socketOf runs a server on a socket and returns its path.
func socketOf(t *testing.T, o Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	o.Listen = "unix://" + path
	run(t, o)
	return path
}

func connectTo(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err == nil {
		err = c.SetDeadline(time.Now().Add(time.Minute))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestUnixLines: a client of a socket may send lines from the first byte on, several at once. It has the
// sessions of clients with WebSockets.
func TestUnixLines(t *testing.T) {
	path := socketOf(t, options())
	c := connectTo(t, path)
	lines := &caller{t: t, speaker: &linePeer{c, bufio.NewReader(c)}}
	session := lines.greet(nil)
	web := &caller{t: t, speaker: connect(t, "unix://"+path, nil)}
	if got := web.greet(session); got != session {
		t.Errorf("session %s, want %s", got, session)
	}
	c = connectTo(t, path)
	const hello = `{"id":1,"method":"initialize","params":{"clientName":"test","extensionMethods":true}}` + "\n" +
		`{"method":"initialized"}` + "\n" + `{"id":2,"method":"environment/status"}` + "\n"
	if _, err := io.Copy(c, iotest.OneByteReader(strings.NewReader(hello))); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	for _, want := range []string{`"id":1,`, `"id":2,`} {
		if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, want) {
			t.Errorf("%q, %v, want %s", line, err, want)
		}
	}
}

// TestUnixNoLines: where a token is needed, and for anything else than a message, there is HTTP.
func TestUnixNoLines(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(secret, []byte("0123456789abcdef0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	guarded := options()
	guarded.Auth = Auth{Kind: AuthCapability, TokenFile: secret}
	for _, test := range []struct {
		name string
		o    Options
		text string
	}{
		{"token", guarded, `{"id":1,"method":"initialize","params":{"clientName":"test"}}` + "\n\r\n\r\n"},
		{"no message", options(), "[]\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connectTo(t, socketOf(t, test.o))
			if _, err := io.WriteString(c, test.text); err != nil {
				t.Fatal(err)
			}
			if answer, _ := io.ReadAll(c); !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
				t.Errorf("%q", answer)
			}
		})
	}
}

// A clocked connection notes the times that are set for reads, and its end.
type clocked struct {
	net.Conn
	times  []time.Time
	closed bool
}

func (c *clocked) SetReadDeadline(t time.Time) error { c.times = append(c.times, t); return nil }
func (c *clocked) Close() error                      { c.closed = true; return c.Conn.Close() }
func (c *clocked) Unwrap() net.Conn                  { return c.Conn }

// TestUnixTimes: a client has a time for its first byte and none afterwards, and is closed where it
// sends none or the server ends.
func TestUnixTimes(t *testing.T) {
	const hello = `{"id":1,"method":"initialize","params":{"clientName":"test"}}` + "\n"
	for _, test := range []struct {
		name, sends string
		over        bool // the server ends
		answer      string
	}{
		{"a message", hello, false, `{"id":1,`}, {"nothing", "", false, ""}, {"a message at the end", hello, true, ""}, {"another protocol at the end", "G", true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			client, ok := connectTo(t, path).(*net.UnixConn)
			own, err := l.Accept()
			if err != nil || !ok {
				t.Fatal(err)
			}
			server := execserver.New(execserver.Options{})
			defer server.Close()
			lines := &lineListener{handler: newDoor(ownServer{server}, open, defaultClients), http: make(chan net.Conn),
				over: make(chan struct{})}
			if test.over {
				lines.handler.close()
				close(lines.over)
			}
			if _, err := io.WriteString(client, test.sends); err != nil {
				t.Fatal(err)
			}
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			c, before := &clocked{Conn: own}, time.Now()
			lines.serve(c)
			if len(c.times) != 2 || c.times[0].Before(before.Add(requestTime)) || !c.times[1].IsZero() ||
				!c.closed || len(lines.handler.slots) != 0 {
				t.Errorf("%v, closed %v, %d clients", c.times, c.closed, len(lines.handler.slots))
			}
			text, err := io.ReadAll(client) // what was not read is a reset
			if !strings.HasPrefix(string(text), test.answer) || test.answer == "" && len(text) > 0 {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}
