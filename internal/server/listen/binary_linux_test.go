// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// TestBinaryOutput reads output in binary messages, in the order of the numbers and beside the other
// events, and as before by a client that did not ask, also of the same session.
func TestBinaryOutput(t *testing.T) {
	url := run(t, options())
	r := &racer{webSocket: connect(t, url, nil)}
	deadline(t, r.webSocket)
	post := func(text string) {
		t.Helper()
		if err := r.post(text); err != nil {
			t.Fatal(err)
		}
	}
	until := func(text string) []byte {
		t.Helper()
		m, err := r.until(text)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Clone(m)
	}
	post(`{"id":0,"method":"initialize","params":{"clientName":"test","binaryOutput":true}}`)
	var hello struct{ Result wire.InitializeResult }
	if err := json.Unmarshal(until(`"sessionId"`), &hello); err != nil || !hello.Result.Environment.Capabilities.BinaryOutput {
		t.Fatalf("%+v, %v", hello, err)
	}
	post(`{"method":"initialized"}`)
	const size = 300_000
	if _, err := r.start(`["sh","-c","printf error >&2; head -c 300000 /dev/zero; cat"]`, piped); err != nil {
		t.Fatal(err)
	}
	until(`"sandboxType"`)
	got := map[string][]byte{}
	for seq := uint64(1); len(got["stdout"]) < size; seq++ {
		m, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		o, err := wire.DecodeFrame(m)
		if err != nil || o.ProcessID != "p1" || o.Seq != seq {
			t.Fatalf("%+v, %v", o, err)
		}
		got[o.Stream] = append(got[o.Stream], o.Chunk.Chunk...)
	}
	if string(got["stderr"]) != "error" || !bytes.Equal(got["stdout"], make([]byte, size)) {
		t.Errorf("stderr %q, %d bytes of stdout", got["stderr"], len(got["stdout"]))
	}
	_ = r.close()

	other := &racer{webSocket: connect(t, url, nil)}
	deadline(t, other.webSocket)
	old := &caller{t: t, speaker: other.webSocket}
	var m message
	for { // the server may not have seen the end of the connection
		m = old.call("initialize", map[string]any{"clientName": "test", "resumeSessionId": hello.Result.SessionID})
		if m.Error == nil || m.Error.Code != -32010 {
			break
		}
	}
	old.post(map[string]any{"method": "initialized"})
	old.call("process/write", map[string]any{"processId": "p1", "chunk": []byte("text"), "writeId": "w"})
	o := old.await(func(m *message) bool { return m.Method == "process/output" })
	if string(o.Params.Chunk) != "text" {
		t.Errorf("%+v", o)
	}
}

// TestBinaryLines requires that lines, which cannot be binary, stay text.
func TestBinaryLines(t *testing.T) {
	c := &caller{t: t, speaker: runLines(t, false)}
	c.call("initialize", map[string]any{"clientName": "test", "binaryOutput": true})
	c.post(map[string]any{"method": "initialized"})
	c.call("process/start", script("p", "/", "echo hello"))
	o := c.await(func(m *message) bool { return m.Method == "process/output" })
	if !strings.Contains(string(o.Params.Chunk), "hello") {
		t.Errorf("%+v", o)
	}
	c.ended("p")
}
