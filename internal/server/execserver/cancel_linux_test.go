// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// TestCancelStart cancels the start of a process that waits for its turn. It does not run, its ID is
// free again, and the others start in their order.
func TestCancelStart(t *testing.T) {
	s := New(Options{})
	near, far := net.Pipe()
	stream, client := wire.LinesOn(far), wire.LinesOn(near)
	over := make(chan error, 1)
	go func() { over <- s.Serve(stream, "") }()
	post := func(text string) {
		t.Helper()
		if err := client.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	closed := 0 // processes
	next := func(kind wire.Kind) string {
		t.Helper()
		for {
			text, err := client.Read()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "process/closed") {
				closed++
			}
			if m, err := wire.DecodeMessage(text); err == nil && m.Kind == kind {
				return string(text)
			}
		}
	}
	post(`{"id":0,"method":"initialize","params":{"clientName":"test","extensionMethods":true}}`)
	next(wire.KindResponse)
	post(`{"method":"initialized"}`)
	var c *connection
	s.mu.Lock()
	for c = range s.connections {
	}
	s.mu.Unlock()
	c.starts <- struct{}{} // as a start that takes long
	dir := t.TempDir()
	start := func(id string) {
		post(fmt.Sprintf(`{"id":%q,"method":"process/start","params":{"processId":%q,"argv":["/bin/sh","-c","echo %s >>log"],"cwd":"file://%s","env":{},"tty":false}}`, id, id, id, dir))
	}
	start("a")
	start("b")
	start("c")
	post(`{"method":"request/cancel","params":{"id":"b"}}`)
	if got := next(wire.KindError); !strings.Contains(got, "-32800") || !strings.Contains(got, `"id":"b"`) {
		t.Errorf("%s", got)
	}
	<-c.starts
	for _, id := range []string{"a", "c"} {
		if got := next(wire.KindResponse); !strings.Contains(got, `"id":"`+id+`"`) {
			t.Errorf("%s: %s", id, got)
		}
	}
	start("b")
	next(wire.KindResponse)
	for closed < 3 {
		next(wire.KindNotification)
	}
	_ = client.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log"))
	if lines := strings.Fields(string(text)); err != nil || len(lines) != 3 || strings.Count(string(text), "b") != 1 {
		t.Errorf("%q, %v", text, err)
	}
}
