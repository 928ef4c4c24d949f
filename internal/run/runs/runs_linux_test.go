// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

var errFlags = errors.New("unknown flag")

// newTable returns a Table of runs without a sandbox, which is closed when the test ends, and the
// number of those that are busy.
func newTable(t *testing.T, hidden ...string) (*Table, *atomic.Int64) {
	t.Helper()
	return tableOf(t, hidden, nil)
}

// tableOf is newTable for a server whose files hidden are closed to runs, and kept read-only.
func tableOf(t *testing.T, hidden, kept []string) (*Table, *atomic.Int64) {
	t.Helper()
	busy := new(atomic.Int64)
	tab := New(func(_ context.Context, r *Request) (*Prepared, error) {
		p := &Prepared{Runner: &sallyport.Runner{Policy: sandbox.FullAccess()},
			Cmd: &sallyport.Cmd{Args: r.Args, Dir: r.Dir, Grace: -1}}
		switch r.Args[0] {
		case "--broken":
			return nil, errFlags
		case "--rules":
			p.Runner.Rules = rules.Load(rules.Host{}, rules.Source{Name: "x.rules", Text: []byte("(")})
		case "--sandbox":
			p.Runner.Policy, p.Cmd.Args, p.Cmd.Tmp = sandbox.ReadOnly(), r.Args[1:], "host"
		case "--private":
			p.Runner.Policy, p.Cmd.Args = sandbox.WorkspaceWrite(), r.Args[1:]
		case "--write":
			p.Runner.Policy, p.Cmd.Args, p.Cmd.Tmp = sandbox.WorkspaceWrite(), r.Args[1:], "host"
		}
		return p, nil
	}, nil, hidden, kept, func(n int) { busy.Add(int64(n)) })
	t.Cleanup(func() {
		tab.Close()
		if len(tab.owners) != 0 {
			t.Errorf("%d owners are left", len(tab.owners))
		}
		if n := busy.Load(); n != 0 {
			t.Errorf("%d are busy after the end", n)
		}
	})
	return tab, busy
}

// begin starts a run that must start.
func begin(t *testing.T, tab *Table, q Request, args ...string) *Run {
	t.Helper()
	r, err := tab.Reserve("me")
	if err != nil {
		t.Fatal(err)
	}
	q.Args, q.Dir = args, t.TempDir()
	if res, err := r.Start(t.Context(), &q); err != nil {
		t.Fatal(err)
	} else if res != nil {
		t.Fatal(res.Error)
	}
	return r
}

// ended waits for the end of a run.
func ended(t *testing.T, r *Run) *sallyport.Result {
	t.Helper()
	reply, err := r.Wait(t.Context(), Until{For: time.Minute, ExitOnly: true})
	if err != nil || reply.Result == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	return reply.Result
}

// TestNumbers: no number is given twice, also where the run was not started, has ended or was
// removed, and for other owners.
func TestNumbers(t *testing.T) {
	tab, _ := newTable(t)
	seen := map[string]bool{}
	for i, args := range [][]string{{"true"}, {"/nonexistent"}, {"--broken"}, {"--rules"}, {"true"}} {
		r, err := tab.Reserve(fmt.Sprint("owner", i%2))
		if err != nil || seen[r.ID()] {
			t.Fatalf("%s, %v", r.ID(), err)
		}
		seen[r.ID()] = true
		res, err := r.Start(t.Context(), &Request{Args: args, Dir: t.TempDir()})
		var invalid *Error
		switch args[0] {
		case "true":
			if res != nil || err != nil {
				t.Errorf("%+v, %v", res, err)
			}
			ended(t, r)
			if err := tab.Remove(r.owner, r.ID()); err != nil {
				t.Error(err)
			}
		case "/nonexistent":
			if err != nil || res == nil || res.End != sallyport.EndNotFound {
				t.Errorf("%+v, %v", res, err)
			}
		default:
			if !errors.As(err, &invalid) || invalid.Reason != Invalid || invalid.ExitCode != 125 ||
				args[0] == "--broken" && !errors.Is(err, errFlags) {
				t.Errorf("%s: %+v, %v", args, res, err)
			}
		}
		if _, err := tab.Find(r.owner, r.ID()); err == nil {
			t.Errorf("run %s is known", r.ID())
		}
	}
}

// TestEndedRuns: the last 64 runs that have ended are retained.
func TestEndedRuns(t *testing.T) {
	tab, _ := newTable(t)
	live := begin(t, tab, Request{}, "sleep", "600")
	var all []*Run
	for range maxEnded + 3 {
		r := begin(t, tab, Request{}, "true")
		ended(t, r)
		all = append(all, r)
	}
	for i, r := range append(all, live) {
		if _, err := tab.Find("me", r.ID()); (err == nil) != (i >= 3) {
			t.Errorf("run %d: %v", i, err)
		}
	}
	if n := len(tab.List("me")); n != maxEnded+1 {
		t.Errorf("%d runs", n)
	}
}

// TestForgotten: a run that has ended is forgotten after its time, and what was prepared is freed.
func TestForgotten(t *testing.T) {
	tab, busy := newTable(t)
	freed := make(chan struct{})
	prepare := tab.prepare
	tab.prepare = func(ctx context.Context, r *Request) (*Prepared, error) {
		p, err := prepare(ctx, r)
		p.Close = func() { close(freed) }
		return p, err
	}
	r := begin(t, tab, Request{}, "true")
	ended(t, r)
	tab.work.Wait()
	if n := busy.Load(); n != 1 { // a server with it must not end: its output is there
		t.Errorf("%d are busy while the run is known", n)
	}
	o := tab.owners["me"]
	if o.Time != time.Hour {
		t.Errorf("it would be known for %v", o.Time)
	}
	o.Pause()
	o.Time = time.Nanosecond
	o.Resume()
	<-freed
	if _, err := tab.Find("me", r.ID()); err == nil {
		t.Error("it is known")
	}
}

// TestWriteOnce: a write with the ID of an earlier one is not repeated, and has the same answer; the
// writes are in their order, before the end of the input.
func TestWriteOnce(t *testing.T) {
	tab, _ := newTable(t)
	r := begin(t, tab, Request{OpenStdin: true}, "cat")
	var waits []<-chan struct{}
	want := ""
	for i := range 50 {
		text := fmt.Sprintln(i)
		for range 2 {
			done, _ := r.Write(fmt.Sprint("w", i), []byte(text))
			waits = append(waits, done)
		}
		want += text
	}
	end, _ := r.CloseInput()
	late, err := r.Write("late", []byte("x"))
	for _, w := range append(waits, end, late) {
		<-w
	}
	var e *Error
	if !errors.As(err(), &e) || e.Reason != InputClosed && e.Reason != Ended {
		t.Errorf("%v", err())
	}
	if res := ended(t, r); string(res.Stdout.Bytes()) != want {
		t.Errorf("%q", res.Stdout.Bytes())
	}
}

// TestInputFull: a run that does not read takes a bounded amount of input, and the answer says how
// much of it.
func TestInputFull(t *testing.T) {
	const maxInput = 16 << 20
	tab, _ := newTable(t)
	r := begin(t, tab, Request{OpenStdin: true}, "sleep", "600")
	first, firstErr := r.Write("", make([]byte, maxInput))
	second, secondErr := r.Write("", make([]byte, 1))
	<-second
	var e *Error
	if !errors.As(secondErr(), &e) || e.Reason != InputFull || e.Taken != 0 {
		t.Errorf("%v", secondErr())
	}
	<-first
	if !errors.As(firstErr(), &e) || e.Reason != InputFull || e.Taken == 0 || e.Taken >= maxInput {
		t.Errorf("%v, %+v", firstErr(), e)
	}
}

// TestPages: pages have all of the output, whatever their size, and are complete at the end only.
func TestPages(t *testing.T) {
	tab, _ := newTable(t)
	const size = 3 << 20 // more than memory holds
	r := begin(t, tab, Request{}, "sh", "-c",
		fmt.Sprintf("head -c %d /dev/zero | tr '\\0' a; echo end >&2", size))
	ended(t, r)
	for _, most := range []uint64{0, 100_000, DefaultPage, 1 << 40} {
		after, text := uint64(0), uint64(0)
		if most == 0 {
			after, text = size, size // byte by byte
		}
		for done := false; !done; {
			page := r.Page(after, most)
			for _, d := range page.Chunks {
				if d.Offset != text || d.Missing != 0 {
					t.Fatalf("a chunk at %d, %d bytes missing, want %d", d.Offset, d.Missing, text)
				}
				text += uint64(len(d.Data))
			}
			if most > 0 && page.Next-after > min(most, MaxPage) || most == 0 && page.Next-after > 1 {
				t.Fatalf("%d bytes in a page of %d", page.Next-after, most)
			}
			after, done = page.Next, page.Complete
		}
		if text != size+4 {
			t.Errorf("pages of %d: %d bytes, want %d", most, text, size+4)
		}
	}
}

// TestLongResult: a result that no message carries goes without its output, and says so.
func TestLongResult(t *testing.T) {
	tab, _ := newTable(t)
	for size, whole := range map[int]bool{100_000: true, 2 << 20: false} {
		res := ended(t, begin(t, tab, Request{}, "head", "-c", fmt.Sprint(size), "/dev/zero"))
		text, err := Encode(res).MarshalJSON()
		var got sallyport.Result
		if err = errors.Join(err, json.Unmarshal(text, &got)); err != nil || len(text) > maxResult {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		said := strings.Contains(string(text),
			"its output is too long for one message; read it with run/read")
		if said == whole || whole != (len(got.Stdout.Bytes()) == size) || got.Stdout.Total != uint64(size) {
			t.Errorf("%d bytes: %d are in the result, %d in all, it says so: %v", size,
				len(got.Stdout.Bytes()), got.Stdout.Total, said)
		}
	}
}

// TestHidden: a run in a sandbox that reads the whole disk does not read the secrets of the server, and
// of the client. A file that is not on this machine changes nothing.
func TestHidden(t *testing.T) {
	testenv.NeedUserNS(t)
	secret := filepath.Join(t.TempDir(), "token")
	if err := testenv.WriteProgram(secret, "swordfish\n"); err != nil {
		t.Fatal(err)
	}
	hides, _ := newTable(t, secret)
	plain, _ := newTable(t)
	for _, test := range []struct {
		name  string
		tab   *Table
		files []string
		reads bool
	}{
		{"of the server", hides, nil, false},
		{"of the client", plain, []string{"/nowhere/key", secret}, false},
		{"of another machine", plain, []string{"/nowhere/key"}, true},
	} {
		r := begin(t, test.tab, Request{Hidden: test.files}, "--sandbox", "cat", secret)
		if res := ended(t, r); (res.ExitCode == 0) != test.reads ||
			strings.Contains(res.Output.String(), "swordfish") != test.reads {
			t.Errorf("%s: %s, %v, %q", test.name, res, res.Error, res.Output.String())
		}
	}
}

// TestPrivateTmp: each run has a /tmp of its own, which is empty when it starts and gone when it has ended.
func TestPrivateTmp(t *testing.T) {
	testenv.NeedUserNS(t)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	tab, _ := newTable(t)
	const script = "test ! -e /tmp/note && echo x >/tmp/note && echo made && read x; cat /tmp/note"
	waits := begin(t, tab, Request{OpenStdin: true}, "--private", "sh", "-c", script)
	until := Until{For: time.Minute, Match: regexp.MustCompile("made")}
	if _, err := waits.Wait(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if res := ended(t, begin(t, tab, Request{}, "--private", "sh", "-c",
			script)); string(res.Stdout.Bytes()) != "made\nx\n" {
			t.Errorf("a later run: %q, %q", res.Stdout.Bytes(), res.Stderr.Bytes())
		}
	}
	waits.CloseInput()
	if res := ended(t, waits); string(res.Stdout.Bytes()) != "made\nx\n" {
		t.Errorf("the first run: %q, %q", res.Stdout.Bytes(), res.Stderr.Bytes())
	}
	tab.Close()
	left, err := filepath.Glob(os.Getenv("XDG_STATE_HOME") + "/sallyport/tmp/*")
	if len(left) != 0 || err != nil {
		t.Errorf("%q, %v", left, err)
	}
}

// TestKept: no run in a sandbox changes, replaces, renames or moves away the files that decide who is let
// in, and none starts where they are reached by a link that it can change.
func TestKept(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct {
		name, script, kept string
		refused            bool
	}{
		{"write", "echo x >d/ca", "d/ca", false},
		{"replace", "echo x >new && mv -f new d/ca", "d/ca", false},
		{"remove", "rm -f d/ca && echo x >d/ca", "d/ca", false},
		{"move the directory", "mv d e && mkdir d && echo x >d/ca", "d/ca", false},
		{"by a link", "true", "link", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "d", "ca")
			if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700),
				os.WriteFile(file, []byte("ca"), 0o600),
				os.Symlink("d/ca", filepath.Join(dir, "link"))); err != nil {
				t.Fatal(err)
			}
			tab, _ := tableOf(t, nil, []string{filepath.Join(dir, test.kept)})
			r, err := tab.Reserve("me")
			if err != nil {
				t.Fatal(err)
			}
			q := &Request{Args: []string{"--write", "sh", "-c", test.script + "; cat d/ca"}, Dir: dir}
			_, err = r.Start(t.Context(), q)
			if test.refused {
				if in := new(reach.Error); !errors.As(err, &in) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			res := ended(t, r)
			if text, err := os.ReadFile(file); string(text) != "ca" || err != nil ||
				!strings.Contains(res.Output.String(), "ca") {
				t.Errorf("%q, %v: %s, %v, %q", text, err, res, res.Error, res.Output.String())
			}
		})
	}
}

// TestSuggestionsPlanned: a run, with a reader and without, is told of no grant with which its sandbox
// would not be built: a repository whose configuration cannot be read lies in what the grant would open.
func TestSuggestionsPlanned(t *testing.T) {
	testenv.NeedUserNS(t)
	tab, _ := newTable(t)
	shut := t.TempDir()
	git := filepath.Join(shut, "real", ".git")
	err := errors.Join(os.MkdirAll(filepath.Join(git, "objects"), 0o700),
		os.Mkdir(filepath.Join(git, "refs"), 0o700),
		os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600),
		os.WriteFile(filepath.Join(git, "config"), nil, 0o600), // too big to know what git obeys
		os.Truncate(filepath.Join(git, "config"), 17<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, reader := range []bool{false, true} {
		r := begin(t, tab, Request{Reader: reader}, "--sandbox", "/bin/sh", "-c", "echo x >"+shut+
			"/a || exit 3")
		res := ended(t, r)
		if d := res.Denials(); res.ExitCode != 3 || len(d) != 1 || d[0].Grant != "" ||
			!strings.Contains(d[0].Rule, "cannot be read") {
			t.Errorf("reader %v: %d, %+v", reader, res.ExitCode, d)
		}
	}
}

// A closing is an executor that stops the table when a process has been started.
type closing struct {
	wrapped
	table   *Table
	stopped chan struct{}
}

func (c closing) Start(ctx context.Context, spec *executor.Spec) (executor.Process, error) {
	p, err := c.wrapped.Start(ctx, spec)
	go func() {
		c.table.Stop()
		close(c.stopped)
	}()
	<-c.table.life.Done()
	return p, err
}

// TestClosedMeanwhile: a command that has begun when the table is closed is ended, and what became of it is
// told: it is not one that never ran.
func TestClosedMeanwhile(t *testing.T) {
	var tab *Table
	stopped := make(chan struct{})
	tab = New(func(_ context.Context, r *Request) (*Prepared, error) {
		return &Prepared{Runner: &sallyport.Runner{Policy: sandbox.FullAccess()},
			Cmd: &sallyport.Cmd{Args: r.Args, Dir: r.Dir, Grace: -1},
			own: closing{wrapped{tab.exec.Another()}, tab, stopped}}, nil
	}, nil, nil, nil, func(int) {})
	defer tab.Close()
	r, err := tab.Reserve("me")
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Start(t.Context(), &Request{Args: []string{"sleep", "600"}, Dir: t.TempDir()})
	if err != nil || res == nil || res.End != sallyport.EndCanceled || res.ExitCode == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	<-stopped
}
