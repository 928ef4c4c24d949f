// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// wantStepError checks which step failed and how.
func wantStepError(t *testing.T, err error, index int, call string, errno syscall.Errno) {
	t.Helper()
	var step *StepError
	if !errors.As(err, &step) {
		t.Errorf("got %v, want a *StepError", err)
		return
	}
	if step.Index != index || step.Call != call || step.Errno != errno {
		t.Errorf("step %d, call %q, errno %v; want step %d, call %q, errno %v\n%v",
			step.Index, step.Call, step.Errno, index, call, errno, err)
	}
	if !errors.Is(err, errno) {
		t.Errorf("%v does not unwrap to its errno", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "launch: ") || strings.Contains(text, "\n") {
		t.Errorf("the message %q", text)
	}
}

// A refusal is a script whose step fails.
type refusal struct {
	name  string
	steps []Step // the last one fails; they stand before start-command
	after bool   // or behind it
	call  string
	errno syscall.Errno
}

// noRights takes all rights away, so that the step behind it is refused.
func noRights(s Step) []Step { return []Step{{Op: OpCaps}, s} }

// refusals lists at least one failure for each step that can fail. The directory
// dir holds what they need.
func refusals(t *testing.T, dir string) []refusal {
	t.Helper()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"file", "other"} {
		if err := os.WriteFile(in(name), []byte("text"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(in("file"), in("link")); err != nil {
		t.Fatal(err)
	}
	wrong := ID{Dev: 1, Ino: 1}
	clone := Step{Op: OpClone, Tree: 9, Path: in("file")}
	return append([]refusal{
		{"open a missing path", []Step{{Op: OpOpen, Tree: 9, Path: in("missing")}}, false, "openat2", unix.ENOENT},
		{"open a link", []Step{{Op: OpOpen, Tree: 9, Path: in("link")}}, false, "openat2", unix.ELOOP},
		{"open a replaced file", []Step{{Op: OpOpen, Tree: 9, Path: in("file"), ID: wrong}}, false, "compare", unix.ESTALE},
		{"clone a missing path", []Step{{Op: OpClone, Tree: 9, Path: in("missing")}}, false, "openat2", unix.ENOENT},
		{"clone through a link", []Step{{Op: OpClone, Tree: 9, Path: in("link")}}, false, "openat2", unix.ELOOP},
		{"clone a replaced file", []Step{{Op: OpClone, Tree: 9, Path: in("file"), ID: wrong}}, false, "compare", unix.ESTALE},
		{"clone without rights", noRights(clone), false, "open_tree", unix.EPERM},
		{"clone an own path that is missing", []Step{{Op: OpClone, Tree: 9, Path: in("missing"), Own: true}}, false, "open_tree", unix.ENOENT},
		{"set-tree with an unknown attribute", []Step{clone, {Op: OpSetTree, Tree: 9, Set: 1 << 40}}, false, "mount_setattr", unix.EINVAL},
		{"set-mount on a missing path", []Step{{Op: OpSetMount, Path: in("missing"), Set: AttrReadOnly}}, false, "mount_setattr", unix.ENOENT},
		{"attach to a missing path", []Step{clone, {Op: OpAttach, Tree: 9, Path: in("missing")}}, false, "openat2", unix.ENOENT},
		{"attach through a link", []Step{clone, {Op: OpAttach, Tree: 9, Path: in("link")}}, false, "openat2", unix.ELOOP},
		{"attach over a replaced file", []Step{clone, {Op: OpAttach, Tree: 9, Path: in("other"), ID: wrong}}, false, "compare", unix.ESTALE},
		{"attach a file over a directory", []Step{clone, {Op: OpAttach, Tree: 9, Path: dir}}, false, "move_mount", unix.EINVAL},
		{"pin a missing path", []Step{{Op: OpPin, Path: in("missing")}}, false, "openat2", unix.ENOENT},
		{"pin a file", []Step{{Op: OpPin, Path: in("file")}}, false, "openat2", unix.ENOTDIR},
		{"pin through a link", []Step{{Op: OpPin, Path: in("link")}}, false, "openat2", unix.ELOOP},
		{"pin a replaced directory", []Step{{Op: OpPin, Path: dir, ID: wrong}}, false, "compare", unix.ESTALE},
		{"pin without rights", noRights(Step{Op: OpPin, Path: dir}), false, "open_tree", unix.EPERM},
		{"tmpfs", noRights(Step{Op: OpTmpfs, Tree: 9}), false, "fsopen", unix.EPERM},
		{"proc", noRights(Step{Op: OpProc, Tree: 9}), false, "fsopen", unix.EPERM},
		{"devpts", noRights(Step{Op: OpDevpts, Tree: 9}), false, "fsopen", unix.EPERM},
		{"mkdir", []Step{{Op: OpMkdir, Path: in("file")}}, false, "mkdirat", unix.EEXIST},
		{"mkfile", []Step{{Op: OpMkfile, Path: in("file")}}, false, "mknodat", unix.EEXIST},
		{"chmod", []Step{{Op: OpChmod, Path: in("missing")}}, false, "fchmodat", unix.ENOENT},
		{"symlink", []Step{{Op: OpSymlink, Path: in("file"), Dest: "x"}}, false, "symlinkat", unix.EEXIST},
		{"pivot", []Step{{Op: OpPivot, Path: in("missing")}}, false, "chdir", unix.ENOENT},
		{"loopback", []Step{{Op: OpLoopback}}, false, "ioctl", unix.EPERM},
		{"setting of a tree that is read-only", []Step{{Op: OpProc, Tree: 9, Set: AttrReadOnly}, {Op: OpSetting, Tree: 9, Path: "sys/user/max_net_namespaces", Data: []byte("1")}}, false, "openat", unix.EROFS},
		{"setting to a value that is invalid", []Step{{Op: OpProc, Tree: 9}, {Op: OpSetting, Tree: 9, Path: "sys/user/max_net_namespaces", Data: []byte("x")}}, false, "write", unix.EINVAL},
		{"refuse-write of a file that opens", []Step{{Op: OpRefuseWrite, Path: in("file")}}, false, "openat", unix.ESTALE},
	}, taskRefusals(in)...)
}

func taskRefusals(in func(string) string) []refusal {
	handles := &Ruleset{Handled: 2, Rules: []Rule{{Path: in("missing"), Access: 2}}}
	unknown := &Ruleset{Handled: 1 << 62}
	directoryRight := &Ruleset{Handled: 1 << 7, Rules: []Rule{{Path: in("file"), Access: 1 << 7}}}
	return []refusal{
		{"map-user of another user", []Step{{Op: OpMapUser, UID: 54321, GID: 54321}}, false, "write", unix.EPERM},
		{"drop-bounding-set", noRights(Step{Op: OpDropBounding, Value: 1}), false, "prctl", unix.EPERM},
		{"secure-bits", noRights(Step{Op: OpSecureBits, Value: 1}), false, "prctl", unix.EPERM},
		{"capabilities", noRights(Step{Op: OpCaps, Value: 1}), false, "capset", unix.EPERM},
		{"seccomp", []Step{{Op: OpNoNewPrivs}, {Op: OpSeccomp, Filter: Filter{0xffff}}}, false, "seccomp", unix.EINVAL},
		{"landlock on a missing path", []Step{{Op: OpNoNewPrivs}, {Op: OpLandlock, Ruleset: handles}}, true, "openat2", unix.ENOENT},
		{"landlock with an unknown right", []Step{{Op: OpNoNewPrivs}, {Op: OpLandlock, Ruleset: unknown}}, true, "landlock_create_ruleset", unix.EINVAL},
		{"landlock with a directory's right for a file", []Step{{Op: OpNoNewPrivs}, {Op: OpLandlock, Ruleset: directoryRight}}, true, "landlock_add_rule", unix.EINVAL},
		{"landlock without no-new-privs", []Step{{Op: OpCaps}, {Op: OpLandlock, Ruleset: &Ruleset{Handled: 2}}}, true, "landlock_restrict_self", unix.EPERM},
		{"limit", []Step{{Op: OpLimit, Resource: 99}}, true, "prlimit64", unix.EINVAL},
		{"chdir to a missing directory", []Step{{Op: OpChdir, Path: in("missing")}}, true, "chdir", unix.ENOENT},
		{"chdir to a file", []Step{{Op: OpChdir, Path: in("file")}}, true, "chdir", unix.ENOTDIR},
		{"exec of a missing program", []Step{{Op: OpExec, Path: in("missing"), Argv: []string{"x"}}}, true, "execve", unix.ENOENT},
		{"exec of a file without the right", []Step{{Op: OpExec, Path: in("file"), Argv: []string{"x"}}}, true, "execve", unix.EACCES},
		{"exec of a directory", []Step{{Op: OpExec, Path: in("."), Argv: []string{"x"}}}, true, "execve", unix.EACCES},
	}
}

func TestRefusedSteps(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedLandlock(t, 1)
	l := launcher(t)
	finishAll(t, start(t, l, script(own, shStep("exit 0")))) // makes what launches share
	l.reapers.Wait()
	n := null(t)
	for _, c := range refusals(t, t.TempDir()) {
		t.Run(c.name, func(t *testing.T) {
			s := &Script{Namespaces: NewUser | NewPID | NewMount, Steps: ownSteps()}
			last, extra := shStep("exit 0"), c.steps
			if c.after && c.steps[len(c.steps)-1].Op == OpExec {
				last, extra = c.steps[0], nil
			}
			s.Steps = append(s.Steps, Step{Op: OpStartCommand})
			index := len(s.Steps) - 2 + len(c.steps)
			if c.after {
				s.Steps = append(s.Steps, second(last, extra...)...)
				index = len(s.Steps) - 4 // before close-files, reset-signals, exec
				if extra == nil {
					index = len(s.Steps) - 1
				}
			} else {
				s.Steps = append(s.Steps, second(last)...)
				before(s, c.steps...)
			}
			files, mounts := openFiles(t), mountTable(t)
			_, err := l.Start(s, n, n, n)
			wantStepError(t, err, index, c.call, c.errno)
			wantNoFiles(t, files)
			if mountTable(t) != mounts {
				t.Error("the mounts of the caller changed")
			}
		})
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantNoChildren(t)
}

func mountTable(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRefusedClone: the kernel may refuse the namespaces themselves.
func TestRefusedClone(t *testing.T) {
	if os.Geteuid() == 0 {
		testenv.RunAsOrdinary(t)
		return
	}
	n := null(t)
	l := launcher(t)
	s := script(own, shStep("exit 0"))
	s.Namespaces = NewPID
	_, err := l.Start(s, n, n, n)
	wantStepError(t, err, -1, "clone", unix.EPERM)
}

// TestRefusedReaper: when the reaper cannot be executed, the command, which was
// executed before it, does not stay behind.
func TestRefusedReaper(t *testing.T) {
	testenv.NeedUserNS(t)
	each(t, func(t *testing.T, k kind, l *starter) {
		finishAll(t, start(t, l, script(k, shStep("exit 0"))))
		junk, err := unix.MemfdCreate("junk", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(junk, []byte("no program at all")); err != nil {
			t.Fatal(err)
		}
		if err := unix.Fchmod(junk, 0o755); err != nil {
			t.Fatal(err)
		}
		good := l.reaper
		l.reaper = junk
		r, w := pipe(t)
		s := script(k, shStep("sleep 1000; sleep 1000"))
		_, err = l.Start(s, null(t), w, w)
		l.reaper = good
		unix.Close(junk)
		w.Close()
		index := -1
		for i, st := range s.Steps {
			if st.Op == OpStartCommand {
				index = i
			}
		}
		wantStepError(t, err, index, "execveat", unix.ENOEXEC)
		wantEOF(t, r)
	})
}

func TestScriptErrors(t *testing.T) {
	begin := func(steps ...Step) *Script { return before(script(plain, shStep("exit 0")), steps...) }
	end := func(steps ...Step) *Script { return script(plain, shStep("exit 0"), steps...) }
	cases := []struct {
		name   string
		script *Script
		step   int
		reason string
	}{
		{"empty", &Script{}, 0, "empty"},
		{"no step at all", begin(Step{}), 2, "cannot be performed"},
		{"unknown step", begin(Step{Op: 200}), 2, "cannot be performed"},
		{"unknown namespace", &Script{Namespaces: 1, Steps: begin().Steps}, 0, "unknown namespaces"},
		{"NUL in a path", begin(Step{Op: OpMkdir, Path: "a\x00b"}), 2, "NUL"},
		{"NUL in an argument", script(plain, Step{Op: OpExec, Path: "/x", Argv: []string{"a\x00"}}), 8, "NUL"},
		{"NUL in a variable", script(plain, Step{Op: OpExec, Path: "/x", Env: []string{"\x00"}}), 8, "NUL"},
		{"NUL in the program", script(plain, Step{Op: OpExec, Path: "\x00"}), 8, "NUL"},
		{"NUL in a link", begin(Step{Op: OpSymlink, Path: "a", Dest: "\x00"}), 2, "NUL"},
		{"no exec", &Script{Steps: []Step{{Op: OpStartCommand}, {Op: OpNewGroup}}}, 1, "exec"},
		{"no start-command", &Script{Steps: []Step{{Op: OpNewGroup}}}, 0, "start-command"},
		{"exec first", &Script{Steps: []Step{shStep("x")}}, 0, "before start-command"},
		{"two start-commands", begin(Step{Op: OpStartCommand}), 3, "twice"},
		{"two execs", end(shStep("x")), 9, "one exec"},
		{"tree used before it is made", begin(Step{Op: OpAttach, Tree: 1, Path: "/"}), 2, "not made"},
		{"tree attached twice", begin(Step{Op: OpClone, Tree: 1, Path: "/"}, Step{Op: OpAttach, Tree: 1, Path: "/"}, Step{Op: OpAttach, Tree: 1, Path: "/"}), 4, "not made"},
		{"clone from nothing", begin(Step{Op: OpClone, Tree: 2, From: 1}), 2, "not made"},
		{"tree made twice", begin(Step{Op: OpOpen, Tree: 1, Path: "/"}, Step{Op: OpTmpfs, Tree: 1}), 3, "made twice"},
		{"tree without a number", begin(Step{Op: OpTmpfs}), 2, "tree number"},
		{"negative tree", begin(Step{Op: OpTmpfs, Tree: -1}), 2, "tree number"},
		{"no filter", begin(Step{Op: OpSeccomp}), 2, "1 to 4096"},
		{"filter too long", begin(Step{Op: OpSeccomp, Filter: make(Filter, 4097)}), 2, "1 to 4096"},
		{"no ruleset", end(Step{Op: OpLandlock}), 6, "ruleset"},
		{"ruleset that handles nothing", end(Step{Op: OpLandlock, Ruleset: &Ruleset{}}), 6, "ruleset"},
		{"rule without a place", end(Step{Op: OpLandlock, Ruleset: &Ruleset{Handled: 1, Rules: []Rule{{Access: 1}}}}), 6, "rule"},
		{"rule with two places", end(Step{Op: OpLandlock, Ruleset: &Ruleset{Handled: 1, Rules: []Rule{{Access: 1, Path: "/", Stdio: 1}}}}), 6, "rule"},
		{"rule for descriptor 3", end(Step{Op: OpLandlock, Ruleset: &Ruleset{Handled: 1, Rules: []Rule{{Access: 1, Stdio: 4}}}}), 6, "rule"},
		{"capability 64", begin(Step{Op: OpDropBounding, Value: 64}), 2, "63"},
	}
	l := launcher(t)
	n := null(t)
	finishAll(t, start(t, l, script(plain, shStep("exit 0"))))
	l.reapers.Wait()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			files := openFiles(t)
			_, err := l.Start(c.script, n, n, n)
			var script *ScriptError
			if !errors.As(err, &script) {
				t.Fatalf("got %v, want a *ScriptError", err)
			}
			if script.Step != c.step || !strings.Contains(script.Reason, c.reason) {
				t.Errorf("step %d, %q; want step %d and %q", script.Step, script.Reason, c.step, c.reason)
			}
			wantNoFiles(t, files)
		})
	}
}

func TestBadStandardFiles(t *testing.T) {
	l := launcher(t)
	finishAll(t, start(t, l, script(plain, shStep("exit 0")))) // makes what launches share
	l.reapers.Wait()
	n := null(t)
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	cases := []struct {
		name  string
		files [3]*os.File
	}{
		{"no input", [3]*os.File{nil, n, n}},
		{"no errors", [3]*os.File{n, n, nil}},
		{"closed output", [3]*os.File{n, closed, n}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := openFiles(t)
			if _, err := l.Start(script(plain, shStep("exit 0")), c.files[0], c.files[1],
				c.files[2]); err == nil {
				t.Error("no error")
			}
			wantNoFiles(t, before)
		})
	}
}
