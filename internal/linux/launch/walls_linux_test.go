// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"golang.org/x/sys/unix"
)

// identity is what a plan would have noted of a file.
func identity(t *testing.T, name string) ID {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(name, &st); err != nil {
		t.Fatal(err)
	}
	return ID{Dev: st.Dev, Ino: st.Ino}
}

// swap exchanges two files, as another process would in between.
func swap(t *testing.T, a, b string) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Fatal(err)
	}
}

// TestSwappedDirectory: a directory that was exchanged after the look stops the
// launch, wherever the script uses it; one that was not lets it through.
func TestSwappedDirectory(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	cases := []struct {
		name  string
		swaps bool
		id    func(s *Script, id ID)
	}{
		{"clone", true, func(s *Script, id ID) { s.Steps[3].ID = id }},
		{"attach", true, func(s *Script, id ID) { s.Steps[5].ID = id }},
		{"clone of the planned one", false, func(s *Script, id ID) { s.Steps[3].ID = id }},
		{"attach over the planned one", false, func(s *Script, id ID) { s.Steps[5].ID = id }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			work, evil := filepath.Join(dir, "work"), filepath.Join(dir, "evil")
			for _, d := range []string{work, evil} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s := &Script{Namespaces: NewUser | NewMount | NewPID, Steps: append(ownSteps(),
				Step{Op: OpSetMount, Path: "/", Recursive: true, Private: true},
				Step{Op: OpClone, Tree: 1, Path: work},
				Step{Op: OpSetTree, Tree: 1, Set: AttrReadOnly},
				Step{Op: OpAttach, Tree: 1, Path: work},
				Step{Op: OpStartCommand})}
			s.Steps = append(s.Steps, second(shStep("touch "+work+"/x 2>/dev/null && exit 1; exit 0"))...)
			c.id(s, identity(t, work))
			n := null(t)
			l := launcher(t)
			if c.swaps {
				swap(t, work, evil)
				_, err := l.Start(s, n, n, n)
				var step *StepError
				if !errors.As(err, &step) || step.Call != "compare" || step.Step.Path != work {
					t.Fatalf("got %v, want a failed comparison of %s", err, work)
				}
				if !strings.Contains(err.Error(), "replaced") {
					t.Errorf("the message is %q", err)
				}
				return
			}
			if st := finishAll(t, start(t, l, s)); st != 0 {
				t.Errorf("status %#x: the mount was not read-only", uint32(st))
			}
		})
	}
}

// TestPrivateTrees: a copy that is made private no longer follows the host,
// neither as a slave nor as a peer.
func TestPrivateTrees(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "grep")
	run := func(private bool) string {
		dir := t.TempDir()
		s := &Script{Namespaces: NewUser | NewMount | NewPID, Steps: append(ownSteps(),
			Step{Op: OpTmpfs, Tree: 1}, Step{Op: OpAttach, Tree: 1, Path: dir},
			Step{Op: OpClone, Tree: 2, Path: dir},
			Step{Op: OpSetTree, Tree: 2, Private: private, Set: AttrNoSuid | AttrNoDev},
			Step{Op: OpAttach, Tree: 2, Path: dir},
			Step{Op: OpStartCommand})}
		s.Steps = append(s.Steps,
			second(shStep("grep "+filepath.Base(filepath.Dir(dir))+" /proc/self/mountinfo | tail -1"))...)
		out, _ := output(t, launcher(t), s)
		return out
	}
	if out := run(true); !strings.Contains(out, "nosuid,nodev") || strings.Contains(out, "shared:") ||
		strings.Contains(out, "master:") {
		t.Errorf("the mount is %q", out)
	}
}

func TestRefuseWriteLetsPass(t *testing.T) {
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s := &Script{Namespaces: NewUser | NewMount | NewPID, Steps: append(ownSteps(),
		Step{Op: OpSetMount, Path: "/", Recursive: true, Private: true, Set: AttrReadOnly},
		Step{Op: OpRefuseWrite, Path: file}, Step{Op: OpRefuseWrite, Path: dir + "/missing"},
		Step{Op: OpStartCommand})}
	s.Steps = append(s.Steps, second(shStep("exit 0"))...)
	if st := finishAll(t, start(t, launcher(t), s)); st != 0 {
		t.Errorf("status %#x", uint32(st))
	}
}

// TestLandlockStdio: a rule for a standard descriptor lets the command open that
// file again; without one it may not. A file in memory takes a rule too.
func TestLandlockStdio(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedLandlock(t, 3)
	const writes = LandlockWriteFile | LandlockTruncate
	memory := func(t *testing.T) *os.File {
		n, err := unix.MemfdCreate("out", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(n), "out")
	}
	disk := func(t *testing.T) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	cases := []struct {
		name string
		open func(*testing.T) *os.File
		rule []Rule
		want string
	}{
		{"file with a rule", disk, []Rule{{Stdio: 2, Access: writes}}, "again\n"},
		{"file without", disk, nil, "first\n"},
		{"file with a rule for another", disk, []Rule{{Stdio: 1, Access: writes}}, "first\n"},
		{"memory with a rule", memory, []Rule{{Stdio: 2, Access: writes}}, "again\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			out := c.open(t)
			defer out.Close()
			s := &Script{Steps: append([]Step{{Op: OpNoNewPrivs}, {Op: OpStartCommand},
				{Op: OpLandlock, Ruleset: &Ruleset{Handled: writes, Rules: c.rule}}},
				second(shStep("echo first; echo again > /proc/self/fd/1"))...)}
			n := null(t)
			p, err := launcher(t).Start(s, n, out, n)
			if err != nil {
				t.Fatal(err)
			}
			finishAll(t, p)
			if _, err := out.Seek(0, io.SeekStart); err != nil {
				t.Fatal(err)
			}
			if b, err := io.ReadAll(out); err != nil || string(b) != c.want {
				t.Errorf("the file holds %q, %v; want %q", b, err, c.want)
			}
		})
	}
}

// TestReopen: a standard descriptor opened anew keeps its place and its offset.
func TestReopen(t *testing.T) {
	testenv.RunAsOrdinary(t)
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	again := func(stdio int, id ID) Step {
		return Step{Op: OpReopen, Stdio: stdio, Path: path, ID: id, Value: unix.O_WRONLY, Offset: 4}
	}
	id := identity(t, path)
	s := before(script(plain, shStep("printf out; printf err >&2")), again(2, id), again(3, id))
	if st := finishAll(t, start(t, launcher(t), s)); st != 0 {
		t.Errorf("status %#x", uint32(st))
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "0123outerr" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	n := null(t)
	_, err := launcher(t).Start(before(script(plain, shStep("exit 0")), again(2, ID{Ino: 1})), n, n, n)
	wantStepError(t, err, 2, "compare", unix.ESTALE)
}

func TestArgumentsAreExact(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	odd := "a b\n\t\"'\\$`*\x01\x7f\x80\xff\xc3\xa9"
	cases := []struct {
		name string
		argv []string
		env  []string
	}{
		{"odd bytes", []string{"helper:args", odd, "", "-x", "--", "="}, []string{"A=" + odd, "EMPTY=", "=odd", "NOEQUALS", "A=twice"}},
		{"empty name", []string{"", "helper:args", "x"}, []string{"B=1"}},
		{"no environment", []string{"helper:args"}, nil},
		{"nearly 128 KiB in one", []string{"helper:args", strings.Repeat("x", 128<<10-1)}, nil},
		{"many", append([]string{"helper:args"}, strings.Split(strings.Repeat("y,", 20000), ",")...), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			st := helperStep(t, "args")
			st.Argv, st.Env = c.argv, c.env
			var want strings.Builder
			for _, a := range c.argv {
				fmt.Fprintf(&want, "arg %q\n", a)
			}
			for _, e := range c.env {
				fmt.Fprintf(&want, "env %q\n", e)
			}
			got, _ := output(t, launcher(t), script(own, st))
			if got != want.String() {
				t.Errorf("the program saw %.300q\nwant %.300q", got, want.String())
			}
		})
	}
}

func TestTooManyArguments(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	n := null(t)
	for _, c := range []struct {
		name string
		argv []string
	}{
		{"one of 128 KiB", []string{"true", strings.Repeat("x", 128<<10)}},
		{"8 MB in all", append([]string{"true"}, strings.Split(strings.Repeat(strings.Repeat("x", 1000)+",", 8000), ",")...)},
	} {
		for _, k := range kinds {
			t.Run(c.name+"/"+k.name, func(t *testing.T) {
				s := script(k.kind, Step{Op: OpExec, Path: "/bin/true", Argv: c.argv})
				_, err := launcher(t).Start(s, n, n, n)
				wantStepError(t, err, len(s.Steps)-1, "execve", unix.E2BIG)
			})
		}
	}
}

// TestReaperImage: what becomes process 1 is a program that is small, complete,
// sealed and not readable.
func TestReaperImage(t *testing.T) {
	code, err := reaperCode()
	if err != nil {
		t.Fatal(err)
	}
	image := reaperImage(code)
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	if f.Type != elf.ET_EXEC || f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || len(f.Progs) != 1 {
		t.Fatalf("header %+v with %d segments", f.FileHeader, len(f.Progs))
	}
	seg := f.Progs[0]
	if seg.Type != elf.PT_LOAD || seg.Flags != elf.PF_R|elf.PF_X || seg.Off != 0 ||
		seg.Filesz != uint64(len(image)) || seg.Memsz != seg.Filesz {
		t.Errorf("segment %+v of %d bytes", seg.ProgHeader, len(image))
	}
	if at := f.Entry - seg.Vaddr; at >= seg.Filesz || !bytes.Equal(image[at:], code) {
		t.Errorf("the entry point %#x is not the start of the code", f.Entry)
	}
	if len(image) > 1024 {
		t.Errorf("the image has %d bytes", len(image))
	}
	n, err := reaperFile()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(n)
	seals, err := unix.FcntlInt(uintptr(n), unix.F_GET_SEALS, 0)
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if err != nil || seals&all != all {
		t.Errorf("seals %#x, %v; want %#x", seals, err, all)
	}
	var st unix.Stat_t
	if err := unix.Fstat(n, &st); err != nil || st.Mode&0o777 != 0o111 {
		t.Errorf("mode %o, %v", st.Mode, err)
	}
	if _, err := unix.Write(n, []byte{0}); !errors.Is(err, unix.EPERM) {
		t.Errorf("a write gives %v, want EPERM", err)
	}
}

// TestProcessOneIsClosed: nothing of process 1 can be looked into from inside,
// not even by the real root.
func TestProcessOneIsClosed(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	l := launcher(t)
	// Not even its command line: for a moment that is still the caller's.
	if out, _ := output(t, l,
		script(walled, shStep("cat /proc/1/cmdline /proc/1/status 2>/dev/null; ls -d /proc/1 2>/dev/null"))); out != "" {
		t.Errorf("process 1 is seen from inside: %q", out)
	}
	if out, _ := output(t, l,
		script(walled, shStep("test -d /proc/$$ && test -d /proc/2 && sleep 0 & wait; ls -d /proc/2"))); out != "/proc/2\n" {
		t.Errorf("the command does not see itself: %q", out)
	}
	for _, name := range []string{"mem", "environ", "maps", "auxv", "fd/0", "exe", "root/etc", "cwd/",
		"map_files/", "syscall", "stack", "ns/pid"} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("cd /; f=/proc/1/%s; if [ -h ${f%%/} ]; then readlink ${f%%/}; ls $f/; else cat $f; fi > /dev/null 2>&1 && echo open", name)
			if out, _ := output(t, l, script(walled, shStep(text))); out != "" {
				t.Errorf("opened: %q", out)
			}
		})
	}
	// The same text opens a process that is ours.
	if out, _ := output(t, l,
		script(walled, shStep("cat /proc/self/maps > /dev/null && echo open"))); out != "open\n" {
		t.Errorf("a process of its own is closed too: %q", out)
	}
}

// TestReaperFromOutside: the reaper is closed by itself, also where nothing hides
// it: a process of the same user cannot look into it. (Into one in a user
// namespace it can, because the creator of a user namespace has all rights there.)
func TestReaperFromOutside(t *testing.T) {
	if os.Geteuid() == 0 { // root may look into everything
		testenv.RunAsOrdinary(t)
		return
	}
	for _, old := range []bool{false, true} {
		l := launcher(t)
		l.old.Store(old)
		p, _ := ready(t, l, plain, "sleep 1000 & echo ready; wait")
		name := func(file string) string { return fmt.Sprintf("/proc/%d/%s", p.PID(), file) }
		// The launch is over when the reaper's memory is its own; on a busy machine the
		// kernel may still be filling that in.
		b, err := os.ReadFile(name("cmdline"))
		for end := time.Now().Add(time.Minute); err == nil && len(b) == 0 && time.Now().Before(end); {
			runtime.Gosched()
			b, err = os.ReadFile(name("cmdline"))
		}
		if err != nil || string(b) != "sallyport-reaper\x00" {
			t.Errorf("the command line is %q, %v", b, err)
		}
		for _, file := range []string{"mem", "environ", "maps", "auxv", "fd"} {
			if f, err := os.Open(name(file)); err == nil {
				if b, err := io.ReadAll(io.LimitReader(f, 16)); err == nil {
					t.Errorf("%s opens and reads %q", file, b)
				}
				f.Close()
			}
		}
		for _, link := range []string{"exe", "cwd", "root", "fd/0"} {
			if to, err := os.Readlink(name(link)); err == nil {
				t.Errorf("%s leads to %s", link, to)
			}
		}
		if err := unix.PtraceSeize(p.PID()); !errors.Is(err, unix.EPERM) {
			t.Errorf("ptrace gives %v, want EPERM", err)
		}
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if err := p.WaitAll(); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCallerStaysDumpable: the child shares the caller's memory for a while, and
// what it does to itself must not stick to the caller.
func TestCallerStaysDumpable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	// Package syscall, unlike this one, takes it away when it starts a program as
	// another user.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, k kind, l *starter) {
		finishAll(t, start(t, l, script(k, shStep("exit 0"))))
		if d, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || d != 1 {
			t.Errorf("dumpable is %d, %v", d, err)
		}
	})
}
