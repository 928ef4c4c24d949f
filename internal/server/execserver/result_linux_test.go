// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/sallyport-dev/sallyport"
)

// TestResultParts: the work for a part of a result does not grow with the result. What is measured is the
// memory that server and client ask for.
func TestResultParts(t *testing.T) {
	d := drive(t, run(t, runOptions()), nil)
	asked := func(size int) (second uint64) {
		id := d.runs(nil, "--big", "sh", "-c",
			fmt.Sprintf(`head -c %d /dev/zero | tr '\0' '\001'`, size))
		d.wait(id, map[string]any{"exit": true})
		var text []byte
		for n := 1; ; n++ {
			var got struct {
				Part     []byte
				Complete bool
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			d.result(&got, "run/result", map[string]any{"runId": id, "from": len(text)})
			if runtime.ReadMemStats(&after); n == 2 {
				second = after.TotalAlloc - before.TotalAlloc
			}
			if text = append(text, got.Part...); got.Complete {
				break
			}
		}
		var res sallyport.Result
		if err := res.UnmarshalJSON(text); err != nil ||
			!bytes.Equal([]byte(res.Stdout.String()), bytes.Repeat([]byte{1}, size)) {
			t.Fatalf("%d bytes came, %v", len(text), err)
		}
		return second
	}
	const size, times = 1 << 20, 4 // a byte is 12 in the result
	if one, more := asked(size), asked(times*size); more > 2*one {
		t.Errorf("a part of %d bytes takes %d bytes, and one of %d times as many %d", size, one, times, more)
	}
}
