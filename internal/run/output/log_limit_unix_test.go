// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// limitEnv makes this program one that may not write long files, in the directory that
// the variable names.
const limitEnv = "SALLYPORT_TEST_OUTLOG"

// TestFileBreaksOff: from where the file cannot be written, bytes are missing that
// memory lost, and everything before and after is as it was, with the right numbers.
func TestFileBreaksOff(t *testing.T) {
	testenv.RunAsOrdinary(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), limitEnv+"="+filepath.Join(t.TempDir(), "spill"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// limited makes the ring of a file go around, forbids to write its end, and writes on.
func limitedLog(dir string) error {
	const (
		fileCap = 1 << 20
		allowed = 700_000
		before  = 3_000_000
		size    = 5_000_000
	)
	store := &Store{Dir: dir}
	file, err := store.Create(fileCap)
	if err != nil {
		return err
	}
	l := NewLog(100_000, file, nil)
	l.index.stride = 4 << 20 // no entry lies in what the ring has
	all := noise(size)
	for off := 0; off < size; off += 5000 {
		if off == before {
			if err := unix.Setrlimit(unix.RLIMIT_FSIZE,
				&unix.Rlimit{Cur: allowed, Max: allowed}); err != nil {
				return err
			}
		}
		l.Write(stdout, all[off:off+5000])
	}
	l.End()
	if !errors.Is(file.Err(), unix.EFBIG) {
		return fmt.Errorf("the file says %w", file.Err())
	}
	spans, _ := l.spans()
	if len(spans) != 3 || spans[0].from != 0 || spans[2].to != size || spans[1].to < before-50_000 ||
		spans[1].to-spans[1].from > fileCap/2 {
		return fmt.Errorf("kept: %v", spans)
	}
	lines, more := l.Lines(1, 0)
	if more {
		return errors.New("too many lines")
	}
	gaps, kept := 0, uint64(0)
	number, at := 1, uint64(0)
	for _, line := range lines {
		number += bytes.Count(all[at:line.Offset], newline)
		at = line.Offset
		if line.Number != number || line.Missing == 0 &&
			!bytes.Equal(line.Data, all[line.Offset:line.Offset+line.Size]) {
			return fmt.Errorf("line %d at %d, want %d", line.Number, line.Offset, number)
		}
		if kept += line.Size; line.Missing > 0 {
			gaps++
		}
	}
	for i, s := range spans {
		kept += uint64(bytes.Count(all[s.from:s.to], newline))
		for _, off := range []uint64{s.from, (s.from + s.to) / 2, s.to - 1} {
			number := bytes.Count(all[:off], newline) + 1
			one, _ := l.Lines(number, number)
			if len(one) == 0 || one[len(one)-1].Number != number && one[0].Missing == 0 {
				return fmt.Errorf("span %d: line %d: %+v", i, number, one)
			}
		}
	}
	if gaps != 2 || kept+missing(l) != size {
		return fmt.Errorf("%d gaps, %d bytes and %d missing", gaps, kept, missing(l))
	}
	found, err := l.Search(context.Background(), regexp.MustCompile(strings.Repeat("never", 3)), 0)
	if err != nil || found.Missing != missing(l) || found.Searched+found.Missing != size {
		return fmt.Errorf("searched: %+v, %w", found, err)
	}
	return store.Close()
}
