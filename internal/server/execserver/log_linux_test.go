// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// TestReplayLog reads more output than memory keeps, by another connection and with the numbers that
// the events had. Nothing stays on disk.
func TestReplayLog(t *testing.T) {
	o := options()
	o.LogDir = filepath.Join(t.TempDir(), "logs")
	server := run(t, o)
	c, id := meet(t, server, nil)
	c.started(script("p", t.TempDir(), "seq 1 600000; cat"))
	var want []byte
	for i := range 600_000 {
		want = fmt.Appendln(want, i+1)
	}
	seqs := map[uint64][]byte{}
	for size := 0; size < len(want); {
		m := c.until(func(m *message) bool { return m.Method == "process/output" })
		seqs[m.Params.Seq] = m.Params.Chunk
		size += len(m.Params.Chunk)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	c = resumed(t, server, id)
	c.post(map[string]any{"method": "initialized"})
	var got []byte
	for after := uint64(0); len(got) < len(want); {
		var page struct {
			Chunks                   []wire.Chunk
			NextSeq, TruncatedBefore uint64
		}
		m := c.call("process/read", map[string]any{"processId": "p", "afterSeq": after, "maxBytes": 1 << 30})
		if m.Error != nil || json.Unmarshal(m.Result, &page) != nil || len(page.Chunks) == 0 ||
			page.TruncatedBefore != 0 {
			t.Fatalf("after %d: %+v, truncated before %d, %d chunks", after, m.Error, page.TruncatedBefore,
				len(page.Chunks))
		}
		for _, chunk := range page.Chunks {
			if chunk.Seq != after+1 || !bytes.Equal(seqs[chunk.Seq], chunk.Chunk) {
				t.Fatalf("chunk %d after %d is another one than the event", chunk.Seq, after)
			}
			after = chunk.Seq
			got = append(got, chunk.Chunk...)
		}
		if page.NextSeq != after+1 {
			t.Fatalf("nextSeq %d after %d", page.NextSeq, after)
		}
	}
	// Without maxBytes a client takes a page for all that there is, so it has what memory keeps.
	m := c.call("process/read", map[string]any{"processId": "p", "afterSeq": 0})
	if !bytes.Contains(m.Result, []byte("truncatedBefore")) {
		t.Errorf("%.200s", m.Result)
	}
	if !bytes.Equal(got, want) {
		t.Error("the output is another one")
	}
	if entries, err := os.ReadDir(o.LogDir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}
