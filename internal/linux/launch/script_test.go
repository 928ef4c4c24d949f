// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"errors"
	goflag "flag"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = goflag.Bool("update", false, "write the golden files anew")

// everyStep is a script with each step and each field in it. It makes no sense
// to perform it.
func everyStep() *Script {
	id := ID{Dev: 259, Ino: 1234}
	const all = ^uint64(0)
	return &Script{
		Namespaces: NewUser | NewMount | NewPID | NewNet | NewIPC | NewUTS | NewCgroup,
		Steps: []Step{
			{Op: OpDieWithParent, Label: "the tree ends with its front end"},
			{Op: OpSubreaper}, {Op: OpMapUser, UID: 1000, GID: 100},
			{Op: OpShare, Path: "/proc/self/ns/mnt", Label: "other commands begin here"}, {Op: OpShare, Tree: 9}, {Op: OpPart},
			{Op: OpTake, Tree: 10, From: 1, Path: "nothing"}, {Op: OpExpectMount, Path: "/w", ID: id}, {Op: OpHold, Label: "until it is killed"},
			{Op: OpOpen, Tree: 1, Path: "/a place", ID: id},
			{Op: OpClone, Tree: 2, Path: "/w", ID: id, Recursive: true, Label: "writable"},
			{Op: OpClone, Tree: 3, From: 1},
			{Op: OpSetTree, Tree: 2, Recursive: true, Private: true, Set: AttrNoSuid | AttrNoDev},
			{Op: OpSetMount, Path: "/", Recursive: true, Private: true, Set: AttrReadOnly | AttrNoExec},
			{Op: OpSetMount, Path: "/proc", Clear: AttrReadOnly | 1<<40},
			{Op: OpAttach, Tree: 2, Path: "/w", ID: id, Own: true},
			{Op: OpPin, Path: "/w/directory", ID: id, Label: "stays where it is"},
			{Op: OpReopen, Path: "/dev/tty", Stdio: 3, Value: 2, Offset: 7},
			{Op: OpTmpfs, Tree: 4, Mode: 0o755}, {Op: OpProc, Tree: 5, Set: AttrReadOnly}, {Op: OpDevpts, Tree: 6},
			{Op: OpOverlay, Tree: 7, Path: "/home/u/a cache", ID: id, Set: AttrNoDev, Layers: &Layers{Upper: Layer{"/s/upper", id}, Work: Layer{"/s/work", id}}},
			{Op: OpOverlay, Tree: 8},
			{Op: OpMkdir, Path: "/dev/x", Mode: 0o700}, {Op: OpMkfile, Path: "/dev/y", Mode: 0}, {Op: OpChmod, Path: "/dev/y", Mode: 0o1777},
			{Op: OpSymlink, Path: "/dev/fd", Dest: "/proc/self/fd"}, {Op: OpPivot, Path: "/new"}, {Op: OpLoopback}, {Op: OpListen, Path: "127.0.0.1:3128"}, {Op: OpNetlink, Value: 12, Data: []byte("12345678")}, {Op: OpSetting, Tree: 5, Path: "sys/net/a", Data: []byte("1 1")},
			{Op: OpRefuseWrite, Path: "/proc/sysrq-trigger"}, {Op: OpDropBounding, Value: 40}, {Op: OpSecureBits, Value: 0xcf},
			{Op: OpClearAmbient}, {Op: OpNoNewPrivs}, {Op: OpCaps, Value: 0x100},
			{Op: OpSeccomp, Filter: Filter{6, all}},
			{Op: OpTerminal, Path: "/dev/pts/ptmx", Cols: 80, Rows: 24, Stdio: 3}, {Op: OpStartCommand}, {Op: OpNewGroup}, {Op: OpCaps, Label: "two\nlines\x1b[31m"},
			{Op: OpLandlock, Ruleset: &Ruleset{Handled: 0x3fff, HandledNet: 3, Scoped: 1, Rules: []Rule{
				{Path: "/w", Access: 2}, {Path: "/with space", Access: 4}, {Stdio: 3, Access: 0x4002}}}},
			{Op: OpStdio}, {Op: OpLimit, Resource: 4}, {Op: OpLimit, Resource: 7, Soft: 1024, Hard: all}, {Op: OpLimit, Resource: 77},
			{Op: OpChdir, Path: "/w"}, {Op: OpCloseFiles}, {Op: OpPass, Value: 3}, {Op: OpJoin, From: 1}, {Op: OpAffinity, Data: []byte{5}}, {Op: OpCloseFiles, Value: 4}, {Op: OpCloseFiles, Keep: []int{5, 63}},
			{Op: OpMemory, Value: 4, Data: []byte("data")}, {Op: OpObserve, Filter: Filter{6, 7}, Value: 5}, {Op: OpResetSignals},
			{Op: OpExec, Path: "/bin/sh", Argv: []string{"", "-c", "echo \"a\"\nb # c", "\xff", "é"}, Env: []string{"SECRET=not printed"}},
		},
	}
}

func TestScriptString(t *testing.T) {
	const golden = "testdata/every-step.golden"
	got := everyStep().String()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("run with -update after a look at this:\n%s", diff)
	}
	if lines := strings.Count(got, "\n"); lines != len(everyStep().Steps)+1 {
		t.Errorf("%d lines for %d steps", lines, len(everyStep().Steps))
	}
	if strings.Contains(got, "SECRET") {
		t.Error("the environment is printed")
	}
}

// TestEveryOpIsCovered: the golden script has each step, and each has a name of its own.
func TestEveryOpIsCovered(t *testing.T) {
	seen, named := make(map[Op]bool), make(map[string]bool)
	for _, s := range everyStep().Steps {
		seen[s.Op] = true
	}
	for o := OpNone + 1; o < opEnd; o++ {
		t.Run(o.String(), func(t *testing.T) {
			if !seen[o] {
				t.Error("not in the golden script")
			}
			if named[o.String()] || o.String() == "" {
				t.Errorf("step %d prints as %q", o, o)
			}
			named[o.String()] = true
		})
	}
}

func TestUnknownOps(t *testing.T) {
	for o, want := range map[Op]string{OpNone: "op(0)", 200: "op(200)"} {
		if got := o.String(); got != want {
			t.Errorf("step %d prints as %q", o, got)
		}
	}
}

func TestNamespacesString(t *testing.T) {
	if got := Namespaces(0).String(); got != "none" {
		t.Errorf("no namespaces print as %q", got)
	}
	if got := (NewNet | NewUser).String(); got != "user net" {
		t.Errorf("two namespaces print as %q", got)
	}
}

func TestErrorTexts(t *testing.T) {
	cases := []struct {
		name string
		err  error
		want string
	}{
		{"script", &ScriptError{Step: 2, Reason: "why"}, "launch: step 3: why"},
		{"clone", &StepError{Index: -1, Call: "clone", Errno: syscall.EPERM}, "launch: clone: operation not permitted"},
		{"step", &StepError{Index: 0, Step: Step{Op: OpChdir, Path: "/a b"}, Call: "chdir", Errno: syscall.ENOENT},
			`launch: step 1, chdir "/a b": chdir: no such file or directory`},
		{"label", &StepError{Index: 4, Step: Step{Op: OpClone, Path: "/w", Label: "writable"}, Call: "open_tree", Errno: syscall.EPERM},
			"launch: step 5, clone /w (writable): open_tree: operation not permitted"},
		{"compare", &StepError{Index: 4, Step: Step{Op: OpClone, Path: "/w"}, Call: "compare"},
			"launch: step 5, clone /w: replaced while the sandbox was built"},
		{"refuse-write", &StepError{Index: 4, Step: Step{Op: OpRefuseWrite, Path: "/w"}, Call: "openat"},
			"launch: step 5, refuse-write /w: it can be opened for writing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.err.Error(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if !errors.Is(cases[2].err, os.ErrNotExist) {
		t.Error("a step that met ENOENT is not os.ErrNotExist")
	}
}

// FuzzStepString: any step prints as one line.
func FuzzStepString(f *testing.F) {
	for i := range everyStep().Steps {
		f.Add(uint8(i), "/path", "label", uint64(i), int64(-1))
	}
	f.Fuzz(func(t *testing.T, op uint8, path, label string, value uint64, offset int64) {
		s := Step{
			Op: Op(op%uint8(opEnd-1)) + 1, Path: path, Label: label, Dest: label, Tree: int(op),
			From: int(offset),
			ID:   ID{Dev: value, Ino: uint64(offset)}, Set: value, Clear: uint64(offset), Value: value,
			Mode: uint32(value),
			Soft: value, Hard: value + 1, Offset: offset, Filter: Filter{value}, Argv: []string{path, label},
			Env:     []string{label},
			Ruleset: &Ruleset{Handled: value, Rules: []Rule{{Path: path, Access: value}}},
			Layers:  &Layers{Upper: Layer{Path: path}},
		}
		if line := s.String(); strings.ContainsAny(line, "\n\r\x00\x1b") || !utf8.ValidString(line) {
			t.Errorf("the step prints as %q", line)
		}
	})
}

// TestSameSteps: what a step points to counts, too.
func TestSameSteps(t *testing.T) {
	steps := func() []Step {
		return []Step{{Op: OpClone, Path: "/a", Layers: &Layers{Upper: Layer{Path: "/u"}}, Data: []byte("x")},
			{Op: OpAttach, Path: "/b"}}
	}
	base := steps()
	if !SameSteps(base, steps()) || !SameSteps(nil, base[:0]) || SameSteps(base, base[:1]) {
		t.Error("equal steps differ, or a part of them does not")
	}
	for name, change := range map[string]func(*Step){
		"inode": func(s *Step) { s.ID.Ino = 1 }, "layers": func(s *Step) { s.Layers.Lower[MaxLower-1].ID.Ino = 1 }, "data": func(s *Step) { s.Data[0]++ },
	} {
		other := steps()
		if change(&other[0]); SameSteps(base, other) {
			t.Errorf("%s does not count", name)
		}
	}
}
