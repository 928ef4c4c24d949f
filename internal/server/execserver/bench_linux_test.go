// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"fmt"
	"testing"
)

// BenchmarkStart starts /bin/true and waits for its end, one at a time.
func BenchmarkStart(b *testing.B) {
	c, _ := meet(b, run(b, options()), nil)
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprint("p", n)
		params := script(id, "/", "")
		params["argv"], params["pipeStdin"] = []string{"/bin/true"}, false
		c.post(map[string]any{"id": id, "method": "process/start", "params": params})
		c.ended(id)
		c.events = c.events[:0]
	}
}

// BenchmarkOutput reads 64 MiB of output.
func BenchmarkOutput(b *testing.B) {
	c, _ := meet(b, run(b, options()), nil)
	const size = 64 << 20 // bytes
	b.SetBytes(size)
	n := 0
	for b.Loop() {
		n++
		id := fmt.Sprint("p", n)
		c.post(map[string]any{"id": id, "method": "process/start",
			"params": script(id, "/", fmt.Sprintf("head -c %d /dev/zero", size))})
		for closed := []byte("process/closed"); ; {
			text, err := c.receive()
			if err != nil {
				b.Fatal(err)
			}
			if len(text) < 200 && bytes.Contains(text, closed) {
				break
			}
		}
	}
}
