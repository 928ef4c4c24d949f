// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// serveVar has TestMain serve a store, as a process of its own.
const serveVar = "SALLYPORT_TEST_HUB"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveVar); dir != "" {
		h, err := Start(context.Background(), Options{Listen: "127.0.0.1:0", Store: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(h.URL())
		_ = h.Wait()
		return
	}
	// The tests need a state directory of their own, for the lock of sockets.
	home, err := os.MkdirTemp("", "hub")
	if err != nil {
		panic(err)
	}
	if err := os.Setenv("XDG_STATE_HOME", home); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(home); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// start serves a store until the test ends.
func start(t *testing.T, o Options) *Hub {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	h, err := Start(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// newStore returns the path of a store that does not exist.
func newStore(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "store")
}

// tenants adds tenants and nodes to a store; a node is NAME@ or NAME@TENANT. It returns the credentials by
// name.
func tenants(t *testing.T, store string, names ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range names {
		var path string
		var err error
		if node, tenant, ok := strings.Cut(name, "@"); ok {
			name = node
			path, err = AddNode(t.Context(), store, node, tenant)
		} else {
			path, err = AddTenant(t.Context(), store, name)
		}
		if err != nil {
			t.Fatal(err)
		}
		all[name] = path
	}
	return all
}

// A client speaks the protocol of NATS by hand: it can say what a client of the fleet never would.
type client struct {
	t *testing.T
	p *probe
	n int // subscriptions
}

// A message is one that a client got: its subject and body.
type message struct{ subject, body string }

var errClosed = errors.New("the hub closed the connection")

// dial connects with a file of credentials; empty means none.
func dial(t *testing.T, url, creds string) (*client, error) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "nats://"))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { c.Close() })
	if creds != "" {
		text, err := os.ReadFile(creds)
		if err != nil {
			return nil, err
		}
		p, err := newProbe(c, text)
		if err != nil {
			return nil, err
		}
		return &client{t: t, p: p}, c.SetDeadline(time.Now().Add(time.Minute))
	}
	p := &probe{c, bufio.NewReader(c)}
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	fmt.Fprintf(c, "CONNECT {}\r\nPING\r\n")
	_, err = p.until("PONG")
	return &client{t: t, p: p}, err
}

func mustDial(t *testing.T, url, creds string) *client {
	t.Helper()
	c, err := dial(t, url, creds)
	if err != nil {
		t.Fatalf("%s: %v", creds, err)
	}
	return c
}

func (c *client) sub(subject string) {
	c.n++
	fmt.Fprintf(c.p.c, "SUB %s %d\r\n", subject, c.n)
}

// pub publishes; reply may be empty.
func (c *client) pub(subject, reply, body string) {
	fmt.Fprintf(c.p.c, "PUB %s %s %d\r\n%s\r\n", subject, reply, len(body), body)
}

// message reads one from its first line.
func (c *client) message(line string) (message, error) {
	words := strings.Fields(line)
	n, err := strconv.Atoi(words[len(words)-1])
	if err != nil {
		return message{}, err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(c.p.r, b)
	return message{words[1], string(b[:n])}, err
}

// flush returns the messages that have arrived, and what the hub has refused.
func (c *client) flush() (got []message, refused []string) {
	c.t.Helper()
	_, _ = io.WriteString(c.p.c, "PING\r\n")
	for {
		line, err := c.p.line()
		switch {
		case err != nil:
			c.t.Fatal(errClosed, err)
		case line == "PONG":
			return got, refused
		case line == "PING":
			_, _ = io.WriteString(c.p.c, "PONG\r\n")
		case strings.HasPrefix(line, "MSG "):
			m, err := c.message(line)
			if err != nil {
				c.t.Fatal(err)
			}
			got = append(got, m)
		case strings.HasPrefix(line, "-ERR"):
			refused = append(refused, line)
		}
	}
}

// closed waits until the hub closes the connection.
func (c *client) closed() {
	c.t.Helper()
	for {
		if line, err := c.p.line(); err != nil {
			if !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "reset") {
				c.t.Errorf("%v, want a connection that was closed", err)
			}
			return
		} else if line == "PING" {
			_, _ = io.WriteString(c.p.c, "PONG\r\n")
		}
	}
}

// call sends a request to the engine, and returns its answer.
func (c *client) call(inbox, subject, body string) string {
	c.t.Helper()
	c.sub(inbox + ".1")
	c.pub(subject, inbox+".1", body)
	for {
		line, err := c.p.until("")
		if err != nil {
			c.t.Fatalf("%s: %v", subject, err)
		}
		if strings.HasPrefix(line, "MSG ") {
			m, err := c.message(line)
			if err != nil {
				c.t.Fatal(err)
			}
			fmt.Fprintf(c.p.c, "UNSUB %d\r\n", c.n)
			return m.body
		}
		if line == "PING" {
			_, _ = io.WriteString(c.p.c, "PONG\r\n")
		}
	}
}

// put writes a value to the bucket `nodes`, which the hub has acknowledged when it returns nil.
func (c *client) put(key, value string) error {
	c.t.Helper()
	var ack struct {
		Seq   uint64
		Error *answerError
	}
	answer := c.call("_INBOX.x", "$KV.nodes."+key, value)
	if err := json.Unmarshal([]byte(answer), &ack); err != nil {
		return err
	}
	if ack.Error != nil {
		return ack.Error
	}
	if ack.Seq == 0 {
		return fmt.Errorf("no acknowledgement: %s", answer)
	}
	return nil
}

// get reads a value of the bucket `nodes`; empty for none.
func (c *client) get(key string) string {
	c.t.Helper()
	var found struct{ Message struct{ Data []byte } }
	answer := c.call("_INBOX.x", "$JS.API.STREAM.MSG.GET.KV_nodes", `{"last_by_subj":"$KV.nodes.`+key+`"}`)
	if err := json.Unmarshal([]byte(answer), &found); err != nil {
		c.t.Fatal(err)
	}
	return string(found.Message.Data)
}
