// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestOutput: two readers of one process have offsets of their own. The early one gets
// every byte; the late one gets what is retained, and the gap is counted.
func TestOutput(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	const lines = 250_000
	for _, tt := range []struct {
		name   string
		retain executor.Retention
		kept   int // half of it from the beginning
	}{
		{"memory", executor.Retention{Memory: 1 << 20}, 1 << 20},
		{"memory and a file", executor.Retention{Memory: 256 << 10, File: 1 << 20}, 1 << 20},
		{"a file alone", executor.Retention{File: 1 << 10}, 1 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			all, out := printAndRead(t, tt.retain, lines)
			lost := uint64(len(all) - tt.kept)
			var late []byte
			missing := uint64(0)
			for at := uint64(0); ; {
				c, err := out.Read(t.Context(), at)
				if err != nil {
					break
				}
				late, missing, at = append(late, c.Data...), missing+c.Missing, c.End()
			}
			half := tt.kept / 2
			if missing != lost || len(late) != tt.kept || !bytes.Equal(late[:half], all[:half]) ||
				!bytes.HasSuffix(all, late[half:]) {
				t.Errorf("the late reader got %d bytes and missed %d, want %d and %d", len(late), missing,
					tt.kept, lost)
			}
			if total, n := out.Size(); total != uint64(len(all)) || n != lost || out.LineCount() != lines ||
				out.Err() != nil {
				t.Errorf("%d bytes, %d missing, %d lines, %v", total, n, out.LineCount(), out.Err())
			}
			if err := out.Close(); err != nil {
				t.Error(err)
			}
			if left, _ := os.ReadDir(filepath.Join(state, "sallyport", "output")); len(left) > 0 {
				t.Errorf("files %v are left after Close", left)
			}
		})
	}
}

// printAndRead runs a process that prints lines of 8 bytes, with a reader from the
// beginning, and returns what it printed. The process waits until the reader has got what
// it printed before, so that the reader misses nothing. OnOutput is called with bytes that
// are retained already.
func printAndRead(t *testing.T, retain executor.Retention, lines int) (all []byte, out executor.Output) {
	t.Helper()
	e := newExecutor(t)
	spec := newSpec(sandbox.FullAccess(), "sh", "-c", fmt.Sprintf("read -r go; seq %d %d", 1_000_000,
		1_000_000+lines-1))
	spec.PipeStdin, spec.Retain = true, retain
	read := make(chan uint64, 1)   // offsets behind what was read
	started := make(chan struct{}) // out is set
	spec.OnOutput = func(_ executor.Stream, p []byte) {
		<-started
		all = append(all, p...)
		if total, _ := out.Size(); total != uint64(len(all)) {
			t.Errorf("%d bytes are retained when OnOutput has %d", total, len(all))
		}
		for at := range read {
			if at == uint64(len(all)) {
				return
			}
		}
	}
	p, err := e.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	out = p.Output()
	close(started)
	var early []byte
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(read)
		for at := uint64(0); ; {
			c, err := out.Read(t.Context(), at)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil || c.Missing > 0 {
				t.Errorf("the early reader at %d: %d missing, %v", at, c.Missing, err)
				return
			}
			early = append(early, c.Data...)
			at = c.End()
			read <- at
		}
	})
	if _, err := p.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if len(all) != 8*lines || !bytes.Equal(early, all) {
		t.Errorf("the early reader got %d bytes of %d, want %d", len(early), len(all), 8*lines)
	}
	return all, out
}

// TestNoRetention: without retention the output is empty and complete.
func TestNoRetention(t *testing.T) {
	e := newExecutor(t)
	p, err := e.Start(t.Context(), newSpec(sandbox.FullAccess(), "echo", "text"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.Output().Read(t.Context(), 0); !errors.Is(err, io.EOF) {
		t.Errorf("Read gives %+v, %v", c, err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if total, missing := p.Output().Size(); total != 0 || missing != 0 || p.Output().Err() != nil ||
		p.Output().Close() != nil {
		t.Errorf("%d bytes, %d missing, %v", total, missing, p.Output().Err())
	}
}
