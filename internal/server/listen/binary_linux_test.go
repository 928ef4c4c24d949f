// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// TestBinaryOutput reads output in binary messages, in the order of the numbers and beside the other
// events, and as before by a client that did not ask, also of the same session. Requests may be binary.
func TestBinaryOutput(t *testing.T) {
	url := run(t, options())
	r := &racer{webSocket: connect(t, url, nil)}
	deadline(t, r.webSocket)
	next := func() []byte {
		t.Helper()
		m, err := r.next()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if err := r.send([]byte(`{"id":0,"method":"initialize","params":{"clientName":"test","binaryOutput":true}}`), true); err != nil {
		t.Fatal(err)
	}
	var hello struct{ Result wire.InitializeResult }
	if err := json.Unmarshal(next(), &hello); err != nil ||
		!hello.Result.Environment.Capabilities.BinaryOutput {
		t.Fatalf("%+v, %v", hello, err)
	}
	if err := r.post(`{"method":"initialized"}`); err != nil {
		t.Fatal(err)
	}
	const size = 300_000
	if _, err := r.start(`["sh","-c","printf error >&2; head -c 300000 /dev/zero; cat"]`, piped); err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for seq := uint64(1); len(got["stdout"]) < size; {
		m := next()
		if bytes.Contains(m, []byte(`"sandboxType"`)) {
			continue // the answer comes beside the events
		}
		o, err := wire.DecodeFrame(m)
		if err != nil || o.ProcessID != "p1" || o.Seq != seq {
			t.Fatalf("%+v, %v", o, err)
		}
		got[o.Stream] = append(got[o.Stream], o.Chunk.Chunk...)
		seq++
	}
	if string(got["stderr"]) != "error" || !bytes.Equal(got["stdout"], make([]byte, size)) {
		t.Errorf("stderr %q, %d bytes of stdout", got["stderr"], len(got["stdout"]))
	}

	w := connect(t, url, nil)
	deadline(t, w)
	old := &caller{t: t, speaker: w}
	if m := old.call("initialize", map[string]any{"clientName": "test",
		"resumeSessionId": hello.Result.SessionID, "takeOver": true}); m.Error != nil {
		t.Fatalf("%+v", m.Error)
	}
	old.post(map[string]any{"method": "initialized"})
	old.call("process/write", map[string]any{"processId": "p1", "chunk": []byte("text"), "writeId": "w"})
	old.printed()
	if o := old.events[0]; string(o.Params.Chunk) != "text" {
		t.Errorf("%+v", o)
	}
}
