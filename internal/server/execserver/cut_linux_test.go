// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A cutStream is a connection that is cut in place of a message, when left are sent and received.
type cutStream struct {
	*end
	left *atomic.Int64
}

// boundary counts a message.
func (c cutStream) boundary() error {
	if c.left.Add(-1) == -1 {
		_ = c.close()
		return errCut
	}
	return nil
}

func (c cutStream) Read() ([]byte, error) {
	text, err := c.end.Read()
	if err == nil {
		err = c.boundary()
	}
	return text, err
}

func (c cutStream) Write(message []byte) error {
	if err := c.boundary(); err != nil {
		return err
	}
	return c.end.Write(message)
}

// TestCutEverywhere: a connection is cut at every boundary between two messages in turn. The
// client resumes its session and sends again what has no answer; each line is typed once, and its
// output comes once, in order.
func TestCutEverywhere(t *testing.T) {
	server := run(t, options())
	for n := int64(3); ; n++ { // without the handshake there is no session
		var left atomic.Int64
		left.Store(n)
		playCut(t, server, &left)
		if left.Load() >= 0 { // there was nothing to cut any more
			if n < 10 {
				t.Errorf("the session has %d messages, which are too few", n)
			}
			return
		}
	}
}

// playCut plays a session whose connection is cut, and checks its output.
func playCut(t *testing.T, server testServer, left *atomic.Int64) {
	t.Helper()
	var mu sync.Mutex
	output := map[uint64]string{} // by number, however it came
	keep := func(seq uint64, text string) {
		mu.Lock()
		defer mu.Unlock()
		if had, ok := output[seq]; ok && had != text {
			t.Errorf("number %d is %q and %q", seq, had, text)
		}
		output[seq] = text
	}
	c, err := wire.Connect(t.Context(),
		wire.ClientTarget{Dial: func(context.Context) (wire.Stream, error) {
			return cutStream{connect(t, server), left}, nil
		}}, wire.ClientOptions{Name: "test", Extensions: true,
			OnNotify: func(method string, params json.RawMessage) {
				var o struct {
					Seq   uint64
					Chunk []byte
				}
				if err := json.Unmarshal(params, &o); err != nil {
					t.Error(err)
				} else if method == "process/output" {
					keep(o.Seq, string(o.Chunk))
				}
			}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(result any, method string, params map[string]any) {
		t.Helper()
		err := c.Repeat(t.Context(), method, params, result)
		if err != nil && !strings.Contains(err.Error(), "process p already exists") {
			// it came before the cut
			t.Fatal(err)
		}
	}
	ask(nil, "process/start", script("p", "/", "while read x; do echo got $x; done; echo end"))
	want := ""
	for i := range 3 {
		want += fmt.Sprintf("got %d\n", i)
		var answer struct{ Status string }
		ask(&answer, "process/write", map[string]any{"processId": "p", "chunk": fmt.Appendln(nil, i),
			"writeId": fmt.Sprint(i)})
		if answer.Status != "accepted" {
			t.Errorf("%+v", answer)
		}
	}
	ask(nil, "process/closeStdin", map[string]any{"processId": "p", "writeId": "end"})
	var p page
	for after := uint64(0); !p.Closed || len(p.Chunks) > 0; after = p.NextSeq - 1 {
		// also what came without a connection
		p = page{}
		ask(&p, "process/read", map[string]any{"processId": "p", "afterSeq": after, "waitMs": 30_000})
		for _, chunk := range p.Chunks {
			keep(chunk.Seq, string(chunk.Chunk))
		}
	}
	mu.Lock()
	defer mu.Unlock()
	var got strings.Builder
	for seq := uint64(1); seq <= uint64(len(output)); seq++ {
		got.WriteString(output[seq])
	}
	if got.String() != want+"end\n" {
		t.Errorf("%q, want %q", got.String(), want+"end\n")
	}
}
