// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCountEnds: counting what a command has written ends when it must, however much that
// is. The free space decides then.
func TestCountEnds(t *testing.T) {
	dir, over := t.TempDir(), make(chan struct{})
	close(over)
	const limit = 1 << 40
	for _, c := range []struct {
		name string
		over chan struct{}
		most int64 // the free space at the start
		want bool
	}{
		{"in time", nil, 1 << 59, false},
		{"late, and enough is free", over, limit / 2, false},
		{"late, and little is free", over, 1 << 59, true},
	} {
		d, err := newDiskWatch(limit, []string{dir})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, c.name), make([]byte, 1<<16), 0o600); err != nil {
			t.Fatal(err)
		}
		d.disks[0].most += c.most
		d.again = 1
		if got := d.exceeded(nil, c.over); got != c.want || (d.counted >= 1<<16) == (c.over != nil) {
			t.Errorf("%s: exceeded %v, want %v; counted %d", c.name, got, c.want, d.counted)
		}
	}
}
