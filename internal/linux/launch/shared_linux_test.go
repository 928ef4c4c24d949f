// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A holding is a sandbox that a holder keeps.
type holding struct {
	null   *os.File
	holder *Process
	enter  []*os.File
	trees  []*os.File
}

// hold starts a holder.
func hold(t *testing.T, l *starter) *holding {
	t.Helper()
	s := &Script{Namespaces: NewUser | NewPID | NewMount | NewIPC | NewUTS, Steps: append(ownSteps(),
		Step{Op: OpShare, Path: "/proc/self/ns/user"}, Step{Op: OpShare, Path: "/proc/self/ns/ipc"},
		Step{Op: OpShare, Path: "/proc/self/ns/uts"},
		Step{Op: OpTmpfs, Tree: 1, Mode: 0o755}, Step{Op: OpMkfile, Tree: 1, Path: "made", Mode: 0o600},
		Step{Op: OpShare, Tree: 1},
		Step{Op: OpHold})}
	sent, err := NewHandover("test")
	if err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	n := null(t)
	h := &holding{null: n}
	if h.holder, err = l.Launcher.Start(nil, s, Files{Stdin: n, Stdout: n, Stderr: n,
		Share: sent.Theirs()}); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		f, err := sent.Take()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if i < 3 {
			h.enter = append(h.enter, f)
		} else {
			h.trees = append(h.trees, f)
		}
	}
	return h
}

func (h *holding) end(t *testing.T) {
	t.Helper()
	if err := h.holder.Kill(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.holder.WaitAll(), h.holder.Close()); err != nil {
		t.Error(err)
	}
}

// inside returns a script for a command in a sandbox that is held.
func inside(last Step, steps ...Step) *Script {
	s := &Script{Enter: true, Namespaces: NewPID | NewMount, Steps: []Step{{Op: OpDieWithParent}}}
	s.Steps = append(append(s.Steps, steps...), Step{Op: OpStartCommand})
	s.Steps = append(s.Steps, second(last)...)
	return s
}

// output starts a script and returns what it prints.
func (h *holding) output(t *testing.T, l *starter, pre *Preforked, s *Script,
	enter ...*os.File) (string, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := l.Launcher.Start(pre, s, Files{Stdin: h.null, Stdout: w, Stderr: w,
		Enter: append(h.enter, enter...), Trees: h.trees})
	w.Close()
	if err != nil {
		return "", err
	}
	out, err := io.ReadAll(r)
	finishAll(t, p)
	return strings.TrimSpace(string(out)), err
}

// TestEnter: commands that enter have the namespaces of the holder, and process and mount namespaces of
// their own.
func TestEnter(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := launcher(t)
	h := hold(t, l)
	const text = "readlink /proc/self/ns/user /proc/self/ns/ipc /proc/self/ns/uts; echo $$; readlink /proc/self/ns/mnt"
	proc := []Step{{Op: OpProc, Tree: 1}, {Op: OpAttach, Tree: 1, Path: "/proc"}}
	first, err := h.output(t, l, nil, inside(shStep(text), proc...))
	if err != nil {
		t.Fatal(err)
	}
	second, err := h.output(t, l, nil, inside(shStep(text), proc...))
	a, b := strings.Split(first, "\n"), strings.Split(second, "\n")
	if err != nil || len(a) != 5 || len(b) != 5 {
		t.Fatalf("%v\n%s\n%s", err, first, second)
	}
	own, _ := os.Readlink("/proc/self/ns/user")
	for i := range 3 {
		if a[i] != b[i] || a[i] == own {
			t.Errorf("%s and %s, outside %s", a[i], b[i], own)
		}
	}
	if a[3] != "2" || b[3] != "2" {
		t.Errorf("processes %s and %s", a[3], b[3])
	}
	h.end(t)
	var gone *EnterError
	if _, err := h.output(t, l, nil, inside(shStep("exit 0"))); err != nil && !errors.As(err, &gone) {
		t.Errorf("in namespaces whose holder has ended: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantNoChildren(t)
}

// TestEnterErrors: what cannot be entered, and steps that fail inside, leave nothing.
func TestEnterErrors(t *testing.T) {
	testenv.NeedUserNS(t)
	l := launcher(t)
	h := hold(t, l)
	for _, test := range []struct {
		name  string
		s     *Script
		enter []*os.File
		want  string
	}{
		{"no namespaces", &Script{Enter: true, Steps: inside(shStep("exit 0")).Steps}, []*os.File{null(t)}, "enter a shared sandbox: setns: invalid argument"},
		{"a step of the first task", inside(shStep("exit 0"), Step{Op: OpMkdir, Path: "/nowhere/x"}), nil, "mkdir /nowhere/x: mkdirat: no such file or directory"},
		{"a step of the command", inside(Step{Op: OpExec, Path: "/nowhere", Argv: []string{"x"}}), nil, "exec /nowhere: execve: no such file or directory"},
		{"no mount there", inside(shStep("exit 0"), Step{Op: OpExpectMount, Path: "/usr/bin"}), nil, "expect-mount /usr/bin: replaced while the sandbox was built"},
		{"another root of a mount", inside(shStep("exit 0"), Step{Op: OpExpectMount, Path: "/", ID: ID{Dev: 1, Ino: 1}}), nil, "expect-mount /: replaced while the sandbox was built"},
		{"a tree that is not there", inside(shStep("exit 0"), Step{Op: OpTake, Tree: 1, From: 7}), nil, "take needs entry 7 of Files.Trees"},
		{"a file that is not in the tree", inside(shStep("exit 0"), Step{Op: OpTake, Tree: 1, From: 1, Path: "none"}), nil, "take 1 from 1 none: open_tree: no such file or directory"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := h.output(t, l, nil, test.s, test.enter...)
			if err == nil || !strings.Contains(err.Error(),
				strings.TrimPrefix(test.want, "take 1 from 1 none: ")) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	h.end(t)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantNoChildren(t)
}

// TestKeptMounts: a command begins with mounts that another one has made, and changes nothing for a third.
func TestKeptMounts(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := launcher(t)
	h := hold(t, l)
	defer h.end(t)
	sent, err := NewHandover("test")
	if err != nil {
		t.Fatal(err)
	}
	defer sent.Close()
	n := null(t)
	r, w := pipe(t)
	s := inside(shStep("ls /mnt /media"),
		Step{Op: OpShare, Path: "/proc/self/ns/mnt"}, Step{Op: OpSetMount, Path: "/", Recursive: true,
			Private: true},
		Step{Op: OpTake, Tree: 1, From: 1}, Step{Op: OpAttach, Tree: 1, Path: "/mnt"},
		Step{Op: OpPart}, Step{Op: OpTake, Tree: 2, From: 1}, Step{Op: OpAttach, Tree: 2, Path: "/media"})
	p, err := l.Launcher.Start(nil, s, Files{Stdin: n, Stdout: w, Stderr: w, Enter: h.enter, Trees: h.trees,
		Share: sent.Theirs()})
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	out, err := io.ReadAll(r)
	finishAll(t, p)
	mounts, takeErr := sent.Take()
	if err != nil || takeErr != nil || strings.Count(string(out), "made") != 2 {
		t.Fatalf("%v, %v, %s", err, takeErr, out)
	}
	defer mounts.Close()
	for range 2 {
		next := inside(shStep("ls /mnt /media; echo changed >/mnt/made"),
			Step{Op: OpExpectMount, Path: "/mnt"},
			Step{Op: OpSetMount, Path: "/mnt", Set: AttrReadOnly})
		got, err := h.output(t, l, nil, next, mounts)
		if err != nil || strings.Count(got, "made") < 1 || strings.Contains(got, "media:\nmade") ||
			!strings.Contains(got, "cannot create /mnt/made") {
			t.Errorf("%v, %s", err, got)
		}
	}
}

// TestPreforkInside: a task that waits in the namespaces of a sandbox, with its own mounts, takes a script;
// one that is dropped, that does not fit or that fails leaves no descriptor in this process, whose table
// it shares.
func TestPreforkInside(t *testing.T) {
	testenv.NeedUserNS(t)
	l := launcher(t)
	h := hold(t, l)
	defer h.end(t)
	first := []Step{
		{Op: OpDieWithParent}, {Op: OpTake, Tree: 1, From: 1}, {Op: OpAttach, Tree: 1, Path: "/mnt", Own: true},
		{Op: OpProc, Tree: 2}, {Op: OpAttach, Tree: 2, Path: "/proc"},
	}
	from := Files{Enter: h.enter, Trees: h.trees}
	begin := func() *Preforked { return l.Prefork(NewPID|NewMount, first, from) }
	s := inside(shStep("ls /mnt; cut -d' ' -f1 /proc/self/stat >/dev/null; echo $$"), first[1:]...)
	other := inside(shStep("ls /mnt"), Step{Op: OpTake, Tree: 1, From: 1},
		Step{Op: OpAttach, Tree: 1, Path: "/mnt"})
	fails := func() *Preforked {
		return l.Prefork(NewPID|NewMount, []Step{first[0], first[1], {Op: OpProc, Tree: 2},
			{Op: OpAttach, Tree: 2, Path: "/nowhere"}}, from)
	}
	h.round(t, l, begin(), s, "made\n2")
	before := openFiles(t)
	for range 20 {
		h.round(t, l, begin(), s, "made\n2")
		h.round(t, l, begin(), other, "made")
		h.round(t, l, fails(), s, "made\n2")
		begin().Drop()
		fails().Drop()
	}
	wantNoFiles(t, before)
}

func (h *holding) round(t *testing.T, l *starter, pre *Preforked, s *Script, want string) {
	t.Helper()
	if got, err := h.output(t, l, pre, s); err != nil || got != want {
		t.Errorf("%v, %q", err, got)
	}
}

// TestHolderSignals: a holder stays when processes inside ask it to end, and ends everything with itself.
func TestHolderSignals(t *testing.T) {
	testenv.NeedUserNS(t)
	l := launcher(t)
	h := hold(t, l)
	handle, err := unix.PidfdOpen(h.holder.PID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(handle)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGCHLD} {
		if err := unix.PidfdSendSignal(handle, sig, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if h.holder.Empty(0) {
		t.Error("it has ended")
	}
	if got, err := h.output(t, l, nil, inside(shStep("echo there"))); err != nil || got != "there" {
		t.Errorf("%v, %q", err, got)
	}
	h.end(t)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 0); n != 1 || err != nil {
		t.Errorf("the handle does not tell the end: %d, %v", n, err)
	}
}
