// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// keptEnded is how many ended sessions a Runner knows, see Runner.Session.
const keptEnded = 64

// numbers is what seq 1 n prints.
func numbers(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.Bytes()
}

// over waits for the end of a session that must end well.
func over(t *testing.T, s *sallyport.Session) *sallyport.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	res, err := s.Wait(ctx)
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("%+v, %v", res, err)
	}
	return res
}

// A reading is what a reader got.
type reading struct {
	data    []byte
	missing uint64
	gaps    []uint64 // offsets at which they end
}

// read reads a session from an offset to its end, and fails the test when the offsets
// do not fit together.
func read(t *testing.T, s *sallyport.Session, from uint64) reading {
	t.Helper()
	var got reading
	next := from
	for d, err := range s.Deltas(t.Context(), from) {
		if err != nil {
			t.Error(err)
			return got
		}
		if d.Offset != next+d.Missing {
			t.Errorf("at %d: a piece at %d behind %d missing bytes", next, d.Offset, d.Missing)
		}
		if len(d.Data) > 64<<10 || len(d.Data) == 0 && d.Missing == 0 {
			t.Errorf("a piece of %d bytes", len(d.Data))
		}
		if d.Missing > 0 {
			got.gaps = append(got.gaps, d.Offset)
		}
		got.data, got.missing = append(got.data, d.Data...), got.missing+d.Missing
		next = d.Offset + uint64(len(d.Data))
	}
	return got
}

// whole fails the test unless the reading is all of want.
func (r reading) whole(t *testing.T, want []byte) {
	t.Helper()
	if r.missing != 0 || len(r.data) != len(want) || sha256.Sum256(r.data) != sha256.Sum256(want) {
		t.Errorf("%d bytes and %d missing, want all %d; the same: %v", len(r.data), r.missing, len(want),
			bytes.Equal(r.data, want))
	}
}

// piped starts a script whose input is a pipe.
func piped(t *testing.T, r *sallyport.Runner, script string) *sallyport.Session {
	t.Helper()
	return begin(t, r, &sallyport.Cmd{Script: script, Shell: "sh", OpenStdin: true})
}

// TestSessionLate: a reader that comes when 30 MB are there misses nothing, from any
// offset on; lines and matches are found that only the file has.
func TestSessionLate(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	r := sessionRunner(t)
	const lines = 4_000_000
	all := numbers(lines)
	s := piped(t, r, fmt.Sprintf("seq 1 %d", lines))
	res := over(t, s)
	if res.Output.Total != uint64(len(all)) || res.Output.Omitted != uint64(len(all)-output.DefaultBytes) {
		t.Errorf("%d bytes, %d omitted", res.Output.Total, res.Output.Omitted)
	}
	read(t, s, 0).whole(t, all)
	const cursor = 12_345_678
	read(t, s, cursor).whole(t, all[cursor:])
	if got := read(t, s, uint64(len(all))+1); len(got.data) > 0 || got.missing > 0 {
		t.Errorf("behind the end: %d bytes", len(got.data))
	}
	if total, missing := s.Size(); total != uint64(len(all)) || missing != 0 || s.SpillErr() != nil {
		t.Errorf("%d bytes, %d missing, %v", total, missing, s.SpillErr())
	}
	t.Run("lines", func(t *testing.T) {
		if n := s.LineCount(); n != lines {
			t.Errorf("%d lines", n)
		}
		found, more := s.Lines(2_000_000, 2_000_002)
		if more || len(found) != 3 {
			t.Fatalf("%+v, %v", found, more)
		}
		for i, l := range found {
			text := fmt.Sprint(2_000_000 + i)
			if l.Number != 2_000_000+i || string(l.Data) != text || l.Size != 7 || l.Missing != 0 ||
				!bytes.HasPrefix(all[l.Offset:], []byte(text+"\n")) {
				t.Errorf("%+v", l)
			}
		}
	})
	t.Run("search", func(t *testing.T) {
		found, err := s.Search(t.Context(), regexp.MustCompile(`^2[0-9]45678$`), 3)
		if err != nil || !found.More || found.Missing != 0 || len(found.Matches) != 3 {
			t.Fatalf("%+v, %v", found, err)
		}
		for i, m := range found.Matches {
			text := fmt.Sprintf("2%d45678", i)
			if fmt.Sprint(m.Line) != text || string(m.Data[m.Start:m.End]) != text ||
				!bytes.HasPrefix(all[m.Offset:], []byte(text)) {
				t.Errorf("%+v", m)
			}
		}
		if found, err := s.Search(t.Context(), regexp.MustCompile("none"), 0); err != nil ||
			found.Searched != uint64(len(all)) || found.Matches != nil {
			t.Errorf("%+v, %v", found, err)
		}
		if _, err := s.Search(t.Context(), nil, 0); err == nil {
			t.Errorf("%v", err)
		}
	})
}

// TestSessionReaders: readers of a session that goes on do not disturb each other, nor
// the session.
func TestSessionReaders(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	r := sessionRunner(t)
	const half, cursor = 300_000, 1_000_000
	all := numbers(half)
	all = append(append(all, "middle\n"...), all...)
	s := piped(t, r, fmt.Sprintf("seq 1 %d; echo middle; read x; seq 1 %d", half, half))

	var readers sync.WaitGroup
	var mu sync.Mutex
	got := make(map[string]reading)
	for name, from := range map[string]uint64{"one": 0, "two": 0, "cursor": cursor} {
		readers.Go(func() {
			what := read(t, s, from)
			mu.Lock()
			defer mu.Unlock()
			got[name] = what
		})
	}
	// One stops in the middle of its first piece until everything is over.
	stopped, release := make(chan struct{}), make(chan struct{})
	readers.Go(func() {
		sum := sha256.New()
		for d, err := range s.Deltas(t.Context(), 0) {
			if err != nil || d.Missing > 0 {
				t.Errorf("the one that stopped: %d missing, %v", d.Missing, err)
			}
			if d.Offset == 0 {
				close(stopped)
				<-release
			}
			sum.Write(d.Data)
		}
		if [sha256.Size]byte(sum.Sum(nil)) != sha256.Sum256(all) {
			t.Error("the one that stopped got something else")
		}
	})
	// One is canceled while nothing comes.
	ctx, cancel := context.WithCancel(t.Context())
	middle := uint64(len(all)/2 + len("middle\n")/2 + 1)
	readers.Go(func() {
		next := uint64(0)
		for d, err := range s.Deltas(ctx, 0) {
			if err != nil {
				if !errors.Is(err, context.Canceled) || next != middle || d.Offset != next {
					t.Errorf("the one that was canceled: %v at %d and %d", err, next, d.Offset)
				}
				return
			}
			if next = d.Offset + uint64(len(d.Data)); next == middle {
				cancel()
			}
		}
		t.Error("the one that was canceled came to the end")
	})
	// One ends by itself.
	for _, err := range s.Deltas(t.Context(), 0) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	<-stopped
	<-ctx.Done()
	if _, err := s.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	over(t, s)
	close(release)
	readers.Wait()
	got["one"].whole(t, all)
	got["two"].whole(t, all)
	got["cursor"].whole(t, all[cursor:])
	if out := send(t, s, "", sallyport.Until{}, sallyport.ReasonExited); !strings.HasPrefix(out, "1\n2\n") ||
		!strings.HasSuffix(out, "\n300000\n") {
		t.Errorf("the reply has %d bytes", len(out))
	}
}

// TestSessionGaps: what is kept nowhere is counted to the byte.
func TestSessionGaps(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const lines = 1_000_000
	all := numbers(lines)
	total := uint64(len(all))
	for _, c := range []struct {
		name  string
		spill int64
		kept  uint64 // half of it from the beginning
	}{
		{"no file", -1, output.DefaultBytes},
		{"a file as long as memory", 1 << 20, 1 << 20},
		{"a file of 3 MiB", 3 << 20, 3 << 20},
		{"a file that is long enough", 16 << 20, total},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sessionRunner(t)
			r.Spill = c.spill
			s := piped(t, r, fmt.Sprintf("seq 1 %d", lines))
			over(t, s)
			lost := total - c.kept
			got := read(t, s, 0)
			if size, missing := s.Size(); size != total || missing != lost || got.missing != lost ||
				s.SpillErr() != nil {
				t.Fatalf("%d bytes, %d missing, %d to the reader, %v; want %d and %d", size, missing,
					got.missing, s.SpillErr(), total, lost)
			}
			if lost == 0 {
				got.whole(t, all)
				return
			}
			half := c.kept / 2
			if len(got.gaps) != 1 || got.gaps[0] != total-half || !bytes.Equal(got.data[:half], all[:half]) ||
				!bytes.Equal(got.data[half:], all[total-half:]) {
				t.Errorf("%d bytes, gaps before %v", len(got.data), got.gaps)
			}
			found, err := s.Search(t.Context(), regexp.MustCompile(`^(77|500000|999999)$`), 0)
			if err != nil || found.Missing != lost || len(found.Matches) != 2 ||
				found.Matches[1].Line != 999_999 {
				t.Errorf("%+v, %v", found, err)
			}
			gap, _ := s.Lines(500_000, 500_000)
			if len(gap) != 1 || gap[0].Missing != lost || gap[0].Offset != half || s.LineCount() != lines {
				t.Errorf("%+v of %d lines", gap, s.LineCount())
			}
		})
	}
}

// TestSessionFiles is about the files themselves.
func TestSessionFiles(t *testing.T) {
	testenv.RunAsOrdinary(t)
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	directory := filepath.Join(state, "sallyport", "output")
	files := func(t *testing.T) []string {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(directory, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	t.Run("its own only", func(t *testing.T) {
		r := sessionRunner(t)
		s := begin(t, r, sallyport.Command("cat"))
		if n := len(files(t)); n != 1 {
			t.Fatalf("%d files", n)
		}
		for name, want := range map[string]os.FileMode{files(t)[0]: 0o600, directory: os.ModeDir | 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
		if err := s.Close(); err != nil || len(files(t)) > 0 {
			t.Errorf("after Close: %v, %v", files(t), err)
		}
		begin(t, r, sallyport.Command("cat"))
		over(t, piped(t, r, "echo text"))
		if n := len(files(t)); n != 2 {
			t.Errorf("%d files", n)
		}
		if err := r.Close(); err != nil || len(files(t)) > 0 {
			t.Errorf("after the Runner's Close: %v, %v", files(t), err)
		}
	})
	t.Run("forgotten", func(t *testing.T) {
		r := sessionRunner(t)
		first := piped(t, r, "exit 0")
		over(t, first)
		for n := 2; n <= keptEnded+3; n++ {
			over(t, piped(t, r, "exit 0"))
			if _, ok := r.Session(first.ID()); ok != (n <= keptEnded) {
				t.Fatalf("after %d: the first one is known: %v", n, ok)
			}
		}
		if !settle(t, func() bool { return len(files(t)) == keptEnded }) {
			// they go behind the end that is told
			t.Fatalf("there are %d files", len(files(t)))
		}
		if err := r.Close(); err != nil || len(files(t)) > 0 {
			t.Errorf("%v, %v", files(t), err)
		}
	})
	t.Run("a start that failed", func(t *testing.T) {
		r := sessionRunner(t)
		for _, c := range []*sallyport.Cmd{{Args: []string{"no-such-program"}, Dir: t.TempDir()},
			{Args: []string{"cat"}, Dir: "/no/such/directory"}} {
			if _, err := r.Start(t.Context(), c); err == nil || len(files(t)) > 0 {
				t.Errorf("%v, %v", err, files(t))
			}
		}
	})
	t.Run("out of the command's sight", func(t *testing.T) {
		r := sessionRunner(t)
		c := sh(`cat "$1"/* "$2" || ls -la "$1" || ls /proc/self/fd/ | grep -q '[4-9]' || echo no`)
		c = sallyport.Command("sh", "-c", c.Script, "sh", directory)
		c.OpenStdin, c.Tmp = true, "host" // so that where the state directory lies can be seen
		other := begin(t, r, sallyport.Command("echo", "secret"))
		over(t, other)
		c.Args = append(c.Args, files(t)[0])
		s := begin(t, r, c)
		if out := over(t, s).Output.String(); strings.Contains(out, "secret") ||
			!strings.HasSuffix(out, "no\n") || len(files(t)) != 2 {
			t.Errorf("%q", out)
		}
	})
}

// TestSessionNoFile: without a file the session runs, and says what it lacks, once.
func TestSessionNoFile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	t.Run("a file in the directory's place", func(t *testing.T) {
		state := t.TempDir()
		t.Setenv("XDG_STATE_HOME", state)
		if err := os.Mkdir(filepath.Join(state, "sallyport"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "sallyport", "output"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		withoutFile(t, sessionRunner(t))
	})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_STATE_HOME", filepath.Join(file, "below"))
	t.Run("no state directory, no sandbox",
		func(t *testing.T) { withoutFile(t, newRunner(t, sandbox.FullAccess())) })
	t.Run("no state directory", func(t *testing.T) {
		r := sessionRunner(t)
		for range keptEnded + 1 { // places are given back
			_, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"cat"}, Dir: t.TempDir()})
			if err == nil || !strings.Contains(err.Error(), file) ||
				!strings.Contains(err.Error(), "set XDG_STATE_HOME to a directory with room") {
				t.Fatalf("%v", err)
			}
		}
	})
}

func withoutFile(t *testing.T, r *sallyport.Runner) {
	t.Helper()
	s := piped(t, r, "seq 1 200000")
	over(t, s)
	if err := s.SpillErr(); err == nil || !strings.HasPrefix(err.Error(),
		"sallyport: only a part of a long output is retained: ") ||
		!strings.Contains(err.Error(), "not a directory") {
		t.Fatalf("%v", err)
	}
	for i := range 2 {
		reply, err := s.Await(t.Context(), sallyport.Until{For: enough})
		if err != nil || len(reply.Notices) != 1-i || i == 0 && reply.Notices[0] != s.SpillErr().Error() {
			t.Errorf("reply %d: %q, %v", i, reply.Notices, err)
		}
	}
	total := uint64(len(numbers(200_000)))
	if got := read(t, s, 0); got.missing != total-output.DefaultBytes {
		t.Errorf("%d missing", got.missing)
	}
}
