// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestCutEverywhere: a connection is cut at every boundary between two messages in turn. The
// client resumes its session and sends again what has no answer; each line is typed once, and its
// output comes once, in order.
func TestCutEverywhere(t *testing.T) {
	url := run(t, options())
	for n := 0; ; n++ {
		c := &cutClient{t: t, url: url, left: n}
		c.play()
		switch {
		case c.left >= 0 && n < 10:
			t.Fatalf("the session has %d messages, which are too few", n)
		case c.left >= 0:
			t.Logf("cut at %d boundaries", n)
			return // there was nothing to cut any more
		}
	}
}

// errCut is the end of a connection by the test.
var errCut = errors.New("the connection was cut")

// A cutClient plays a session over connections. The first one is cut when a number of messages
// has been sent and received.
type cutClient struct {
	t    *testing.T
	url  string
	left int // messages before the cut; below zero it is over

	conn    *webSocket
	session string
	id      int
	output  map[uint64]string // by number, however it came
}

// boundary counts a message, and cuts the connection in place of the last one.
func (c *cutClient) boundary() error {
	if c.left == 0 {
		_ = c.conn.close()
	}
	if c.left--; c.left == -1 {
		return errCut
	}
	return nil
}

func (c *cutClient) send(v any) error {
	text, err := json.Marshal(v)
	return errors.Join(err, c.boundary(), c.conn.send(text, false))
}

// ask sends a request and returns its answer.
func (c *cutClient) ask(method string, params map[string]any) (message, error) {
	c.id++
	if err := c.send(map[string]any{"id": c.id, "method": method, "params": params}); err != nil {
		return message{}, err
	}
	for {
		m, err := c.next()
		if err != nil || string(m.ID) == fmt.Sprint(c.id) {
			return m, err
		}
	}
}

// next receives a message.
func (c *cutClient) next() (m message, err error) {
	if err := c.boundary(); err != nil {
		return m, err
	}
	text, err := c.conn.receive()
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, err
	}
	if m.Method == "process/output" {
		c.keep(m.Params.Seq, string(m.Params.Chunk))
	}
	return m, nil
}

// keep keeps a piece of output, which is the same as often as it comes.
func (c *cutClient) keep(seq uint64, text string) {
	if had, ok := c.output[seq]; ok && had != text {
		c.t.Errorf("number %d is %q and %q", seq, had, text)
	}
	c.output[seq] = text
}

// connect makes or resumes the session.
func (c *cutClient) connect() error {
	c.conn = connect(c.t, c.url, nil)
	deadline(c.t, c.conn)
	for {
		params := map[string]any{"clientName": "test", "extensionMethods": true}
		if c.session != "" {
			params["resumeSessionId"] = c.session
		}
		m, err := c.ask("initialize", params)
		if err != nil {
			return err
		}
		if m.Error != nil && m.Error.Code == -32010 {
			continue // the server has not seen the end of the other connection
		}
		var result struct{ SessionID string }
		if m.Error != nil || json.Unmarshal(m.Result, &result) != nil {
			c.t.Fatalf("%s, %+v", m.Result, m.Error)
		}
		if c.session != "" && c.session != result.SessionID {
			c.t.Errorf("session %s, want %s", result.SessionID, c.session)
		}
		if c.session == "" {
			c.session, c.output = result.SessionID, map[uint64]string{}
		}
		return c.send(map[string]any{"method": "initialized"})
	}
}

// repeat makes a request, again after a cut.
func (c *cutClient) repeat(method string, params map[string]any) (m message) {
	c.t.Helper()
	for {
		var err error
		if c.conn == nil {
			err = c.connect()
		}
		if err == nil {
			m, err = c.ask(method, params)
		}
		switch {
		case err == nil:
			return m
		case c.left >= 0:
			c.t.Fatal(err)
		}
		c.conn, c.left = nil, -1_000_000 // no further cut
	}
}

// play plays the session and checks its output.
func (c *cutClient) play() {
	c.t.Helper()
	m := c.repeat("process/start", script("p", "/", "while read x; do echo got $x; done; echo end"))
	if m.Error != nil && m.Error.Message != "process p already exists" { // it came before the cut
		c.t.Fatalf("%+v", m.Error)
	}
	want := ""
	for i := range 3 {
		line := fmt.Sprintln(i)
		want += "got " + line
		m := c.repeat("process/write", map[string]any{"processId": "p", "chunk": base64.StdEncoding.EncodeToString([]byte(line)), "writeId": fmt.Sprint(i)})
		if string(m.Result) != `{"status":"accepted"}` {
			c.t.Errorf("%s, %+v", m.Result, m.Error)
		}
	}
	if m := c.repeat("process/closeStdin", map[string]any{"processId": "p", "writeId": "end"}); m.Error != nil {
		c.t.Errorf("%+v", m.Error)
	}
	var p struct {
		Chunks []struct {
			Seq   uint64
			Chunk []byte
		}
		NextSeq uint64
		Closed  bool
	}
	for after := uint64(0); !p.Closed || len(p.Chunks) > 0; after = p.NextSeq - 1 { // also what came without a connection
		m := c.repeat("process/read", map[string]any{"processId": "p", "afterSeq": after, "waitMs": 30_000})
		if m.Error != nil || json.Unmarshal(m.Result, &p) != nil {
			c.t.Fatalf("%s, %+v", m.Result, m.Error)
		}
		for _, chunk := range p.Chunks {
			c.keep(chunk.Seq, string(chunk.Chunk))
		}
	}
	var got strings.Builder
	for seq := uint64(1); seq <= uint64(len(c.output)); seq++ {
		got.WriteString(c.output[seq])
	}
	if got.String() != want+"end\n" {
		c.t.Errorf("cut: %q, want %q", got.String(), want+"end\n")
	}
	_ = c.conn.close()
}
