// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// work does operations in the host's tree.
func (x *trial) host(ops ...op) {
	x.Helper()
	if err := perform(x.root, ops); err != nil {
		x.Fatal(err)
	}
}

// hosts is what tests of conflicts begin with.
var hosts = []op{
	{Do: "write", A: "a", B: "old", N: 1}, {Do: "write", A: "b", B: "old", N: 1},
	{Do: "mkdir", A: "d", N: 0o755}, {Do: "write", A: "d/e", B: "old", N: 1},
	{Do: "mkdir", A: "d/f", N: 0o755},
	{Do: "write", A: "d/f/g", B: "old", N: 1},
}

// TestConflicts: where the host was changed meanwhile, and not to the same, nothing is applied. Force
// overwrites.
func TestConflicts(t *testing.T) {
	testenv.RunAsOrdinary(t)
	write := func(path, text string) op { return op{Do: "write", A: path, B: text, N: 1} }
	for _, test := range []struct {
		name         string
		stage, host  []op
		want         []string // reason and path
		kept, forced string   // path and kind after force; "" is missing
	}{
		{name: "one side only", stage: []op{write("a", "new")}},
		{name: "another file", stage: []op{write("a", "new")}, host: []op{write("b", "theirs")}},
		{"content", []op{write("a", "new")}, []op{write("a", "theirs")}, []string{"content a"}, "a",
			"----------"},
		{"replaced", []op{write("a", "new")}, []op{{Do: "replace", A: "a", B: "theirs", N: 1}},
			[]string{"content a"}, "a", "----------"},
		{name: "the same", stage: []op{write("a", "new")}, host: []op{write("a", "new")}},
		{"mode", []op{write("a", "new")}, []op{{Do: "chmod", A: "a", N: 0o600}}, []string{"mode a"}, "a",
			"----------"},
		{"kind", []op{write("a", "new")}, []op{{Do: "rm", A: "a"}, {Do: "symlink", A: "a", B: "b"}},
			[]string{"kind a"}, "a", "----------"},
		{"deleted", []op{write("a", "new")}, []op{{Do: "rm", A: "a"}}, []string{"deleted a"}, "a",
			"----------"},
		{"deleted with its directory", []op{write("d/f/g", "new")}, []op{{Do: "rmtree", A: "d"}},
			[]string{"deleted d/f/g"}, "d/f/g", "----------"},
		{name: "both deleted", stage: []op{{Do: "rm", A: "a"}}, host: []op{{Do: "rm", A: "a"}}},
		{"deleted what was changed", []op{{Do: "rm", A: "a"}}, []op{write("a", "theirs")},
			[]string{"content a"}, "a", ""},
		{"both made", []op{write("n", "new")}, []op{write("n", "theirs")}, []string{"content n"}, "n",
			"----------"},
		{"made by others as a directory", []op{write("n", "new")}, []op{{Do: "mkdir", A: "n", N: 0o755}},
			[]string{"kind n"}, "n", "----------"},
		{"changed in a deleted directory", []op{{Do: "rmtree", A: "d"}}, []op{write("d/f/g", "theirs")},
			[]string{"content d"}, "d", ""},
		{"made in a deleted directory", []op{{Do: "rmtree", A: "d"}}, []op{write("d/f/n", "theirs")},
			[]string{"content d"}, "d", ""},
		{name: "removed in a deleted directory", stage: []op{{Do: "rmtree", A: "d"}},
			host: []op{{Do: "rm", A: "d/f/g"}}},
		{"a directory that became a file", []op{{Do: "rmtree", A: "d"}, write("d", "new")},
			[]op{write("d/e", "theirs")},
			[]string{"content d"}, "d", "----------"},
		{"two", []op{write("a", "new"), write("b", "new"), write("n", "new")},
			[]op{write("a", "theirs"), write("b", "theirs")},
			[]string{"content a", "content b"}, "n", "----------"},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newTrial(t, mkdir(t, t.TempDir(), "x"))
			x.host(hosts...)
			x.run(test.stage...)
			x.host(test.host...)
			before := look(t, x.root)
			a, err := Apply(context.Background(), x.stage, executor.ApplyOptions{})
			var got []string
			for _, c := range a.Conflicts {
				got = append(got, c.Reason+" "+c.Path)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("conflicts (- want, + got): %s", diff)
			}
			var conflict *executor.ConflictError
			if len(test.want) == 0 {
				if err != nil || a.Left != 0 || len(x.changes()) != 0 {
					t.Errorf("%+v, %v, left %q", a, err, x.changes())
				}
				return
			}
			if !errors.As(err, &conflict) || len(a.Applied) > 0 {
				t.Errorf("%+v, %v", a, err)
			}
			if diff := cmp.Diff(before, look(t, x.root)); diff != "" {
				t.Errorf("something was applied: %s", diff)
			}
			x.apply(executor.ApplyOptions{Force: true})
			if s := look(t, x.root)[test.kept]; s.Kind != test.forced || len(x.changes()) > 0 {
				t.Errorf("by force: %+v, left %q", s, x.changes())
			}
			x.clean()
		})
	}
}

// TestSelected: paths choose what is at and below them; a dry run changes nothing.
func TestSelected(t *testing.T) {
	testenv.RunAsOrdinary(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.run(op{Do: "write", A: "a", B: "new", N: 1}, op{Do: "rmtree", A: "d/f"},
		op{Do: "mkdir", A: "n", N: 0o750},
		op{Do: "mkdir", A: "n/m", N: 0o711}, op{Do: "write", A: "n/m/x", B: "new", N: 1},
		op{Do: "write", A: "n/y", B: "new", N: 1})
	before := look(t, x.root)
	a := x.apply(executor.ApplyOptions{DryRun: true})
	if want := []string{"a", "d/f", "n/m/x", "n/y"}; !slices.Equal(a.Applied, want) || a.Left != len(want) {
		t.Errorf("a dry run: %+v", a)
	}
	if diff := cmp.Diff(before, look(t, x.root)); diff != "" {
		t.Fatalf("a dry run: %s", diff)
	}
	a = x.apply(executor.ApplyOptions{Paths: []string{filepath.Join(x.root, "n/m")}})
	if !slices.Equal(a.Applied, []string{"n/m/x"}) || a.Left != 3 {
		t.Errorf("n/m: %+v", a)
	}
	now := look(t, x.root)
	if now["n"].Mode != "0750" || now["n/m"].Mode != "0711" || now["n/m/x"].Kind == "" ||
		now["n/y"].Kind != "" {
		t.Errorf("n/m: %+v", now)
	}
	if got := x.changes(); !slices.Equal(got, []string{"modified a", "deleted d/f", "added n/y"}) {
		t.Errorf("left %q", got)
	}
	none := executor.ApplyOptions{Paths: []string{x.root + "/none"}}
	if _, err := Apply(context.Background(), x.stage, none); !errors.Is(err, executor.ErrNoChange) {
		t.Errorf("a path without a change: %v", err)
	}
	if left, err := Discard(context.Background(), x.stage, filepath.Join(x.root, "a")); left != 2 ||
		err != nil {
		t.Errorf("discard: %d, %v", left, err)
	}
	if got := x.changes(); !slices.Equal(got, []string{"deleted d/f", "added n/y"}) {
		t.Errorf("left %q", got)
	}
	x.apply(executor.ApplyOptions{})
	x.clean()
}

// TestChangedAtTheLastMoment: what another program does to a file at any moment while it is applied is
// not lost.
func TestChangedAtTheLastMoment(t *testing.T) {
	for name, ops := range map[string][]op{
		"a": {{Do: "write", A: "a", B: "new", N: 1}}, "n": {{Do: "write", A: "n", B: "new", N: 1}},
		"b": {{Do: "rm", A: "b"}}, "d": {{Do: "rmtree", A: "d"}, {Do: "write", A: "d", B: "new", N: 1}},
		"d/f": {{Do: "rmtree", A: "d/f"}},
	} {
		for at := 1; ; at++ {
			x := newTrial(t, mkdir(t, t.TempDir(), "x"))
			x.host(hosts...)
			x.run(ops...)
			file, n, done := name, 0, false
			if strings.HasPrefix(name, "d") {
				file = name + "/theirs"
			}
			x.stage.step = func(string) {
				if n++; n == at { // where the name is a directory no more, it is too late for it
					done = os.WriteFile(filepath.Join(x.root, file), []byte("theirs, longer"), 0o644) == nil
				}
			}
			_, err := Apply(context.Background(), x.stage, executor.ApplyOptions{})
			if n < at {
				break
			}
			text, readErr := os.ReadFile(filepath.Join(x.root, file))
			if done && (readErr != nil || string(text) != "theirs, longer") {
				t.Errorf("%s at %d: %q, %v, %v", name, at, text, readErr, err)
			}
			x.stage.step = nil
			x.clean()
		}
	}
}

// TestPutBack: what another program wrote at the last moment is put back also where it, or a third one, has
// removed what took its place.
func TestPutBack(t *testing.T) {
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.run(op{Do: "write", A: "a", B: "new", N: 1})
	a, n := filepath.Join(x.root, "a"), 0
	x.stage.step = func(string) {
		if _, err := os.Lstat(filepath.Join(x.root, tempName(x.stage.ID))); err != nil {
			return
		}
		var err error
		switch n++; n {
		case 1: // before the exchange
			err = os.WriteFile(a, []byte("theirs, longer"), 0o644)
		case 2:
			err = os.Remove(a)
		}
		if err != nil {
			t.Error(err)
		}
	}
	_, err := Apply(context.Background(), x.stage, executor.ApplyOptions{})
	text, readErr := os.ReadFile(a)
	if n != 2 || err == nil || readErr != nil || string(text) != "theirs, longer" {
		t.Errorf("after %d steps %q, %v, %v", n, text, readErr, err)
	}
	x.stage.step = nil
	x.clean()
}

// TestKeptInClosedDirectories: directories without rights are opened for a moment by their owner.
func TestKeptInClosedDirectories(t *testing.T) {
	testenv.RunAsOrdinary(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.host(op{Do: "chmod", A: "d/f", N: 0o555}, op{Do: "chmod", A: "d", N: 0o555})
	x.run(op{Do: "write", A: "d/e", B: "new", N: 1}, op{Do: "rm", A: "d/f/g"},
		op{Do: "chmod", A: "d/f", N: 0o500},
		op{Do: "write", A: "d/f/n", B: "new", N: 1})
	x.apply(executor.ApplyOptions{})
	now := look(t, x.root)
	if now["d"].Mode != "0555" || now["d/f"].Mode != "0500" || now["d/f/n"].Kind == "" ||
		now["d/f/g"].Kind != "" {
		t.Errorf("%+v", now)
	}
	x.clean()
}

// TestMoved: a root that is not the one that was recorded is refused, with the fix.
func TestMoved(t *testing.T) {
	for name, move := range map[string]func(root string) error{
		"moved": func(root string) error { return os.Rename(root, root+".away") },
		"another": func(root string) error {
			return errors.Join(os.Rename(root, root+".away"),
				os.Mkdir(root, 0o755))
		},
		"a link": func(root string) error {
			return errors.Join(os.Rename(root, root+".away"), os.Symlink(root+".away", root))
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, mkdir(t, t.TempDir(), "x"))
			x.host(hosts...)
			if err := os.WriteFile(filepath.Join(x.dir, "upper", "a"), []byte("new"), 0o644); err != nil {
				t.Fatal(err)
			}
			x.open()
			if err := move(x.root); err != nil {
				t.Fatal(err)
			}
			_, err := Apply(context.Background(), x.stage, executor.ApplyOptions{Force: true})
			var told *executor.StageError
			if !errors.As(err, &told) ||
				!strings.Contains(told.Why, "not the directory that the stage was made") ||
				told.Fix == "" {
				t.Errorf("error %v", err)
			}
			if _, err := Discard(context.Background(), x.stage, filepath.Join(x.root, "a")); !errors.As(err,
				&told) {
				t.Errorf("discard: %v", err)
			}
			if text, _ := os.ReadFile(x.root + ".away/a"); string(text) != "old\n" {
				t.Errorf("it was applied: %q", text)
			}
		})
	}
}

// TestImmutable: a file that cannot be changed is named, the others are applied, and the next call completes.
func TestImmutable(t *testing.T) {
	testenv.NeedRoot(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	f, err := os.Open(filepath.Join(x.root, "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const immutable = 0x10 // FS_IMMUTABLE_FL
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags|immutable)
	}
	if err != nil {
		t.Log("files cannot be immutable here: ", err)
		return
	}
	change := func() error { return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags) }
	t.Cleanup(func() { _ = change() })
	x.run(op{Do: "write", A: "a", B: "new", N: 1}, op{Do: "write", A: "d/e", B: "new", N: 1})
	x.put("b", "new")
	x.open() // and record what the host has
	a, err := Apply(context.Background(), x.stage, executor.ApplyOptions{})
	var told *executor.StageError
	if !errors.As(err, &told) || !strings.Contains(told.Why, filepath.Join(x.root, "b")) ||
		!strings.Contains(told.Fix, "chattr") {
		t.Errorf("error %v", err)
	}
	if !slices.Equal(a.Applied, []string{"a", "d/e"}) || a.Left != 1 {
		t.Errorf("%+v", a)
	}
	x.clean()
	if err := change(); err != nil {
		t.Fatal(err)
	}
	if x.stage, err = openStage(x.dir, x.root); err != nil { // as another process does
		t.Fatal(err)
	}
	if a := x.apply(executor.ApplyOptions{}); !slices.Equal(a.Applied, []string{"b"}) || a.Left != 0 {
		t.Errorf("%+v", a)
	}
}

// TestSingleFile: a stage of one file has a copy of it, which is applied, or becomes what the host has.
func TestSingleFile(t *testing.T) {
	testenv.RunAsOrdinary(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.host(op{Do: "mkdir", A: "n", N: 0o755})
	x.put("a", "new\n")
	s, err := openStage(x.dir, x.root)
	if err != nil {
		t.Fatal(err)
	}
	s.Roots[0].Name = "a"
	second := s.Roots[0] // so that a change is left
	second.Root, second.Name, second.Upper = filepath.Join(x.root, "n"), "", mkdir(t, x.dir, "second")
	if second.ID, err = Identify(second.Root); err != nil {
		t.Fatal(err)
	}
	s.Roots = append(s.Roots, second)
	if err := os.WriteFile(filepath.Join(second.Upper, "b"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.stage = s
	path := executor.ApplyOptions{Paths: []string{filepath.Join(x.root, "a")}}
	if a := x.apply(path); a.Left != 1 || !slices.Equal(x.changes(), []string{"added b"}) {
		t.Errorf("%+v, %q", a, x.changes())
	}
	x.host(op{Do: "write", A: "a", B: "theirs", N: 1})
	if left, err := Discard(context.Background(), s, path.Paths...); err != nil || left != 1 {
		t.Errorf("%d, %v", left, err)
	}
	text, err := os.ReadFile(filepath.Join(x.dir, "upper/a"))
	if err != nil || string(text) != "theirs\n" || !slices.Equal(x.changes(), []string{"added b"}) {
		t.Errorf("%q, %v, %q", text, err, x.changes())
	}
}

// TestUnreadable: attributes of files that their owner cannot read are seen and applied.
func TestUnreadable(t *testing.T) {
	testenv.RunAsOrdinary(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.run(op{Do: "setattr", A: "a", B: "new"}, op{Do: "chmod", A: "a", N: 0o200},
		op{Do: "write", A: "n", B: "new", N: 1}, op{Do: "setattr", A: "n", B: "new"},
		op{Do: "chmod", A: "n", N: 0})
	if diff := cmp.Diff([]string{"mode a", "added n"}, x.changes()); diff != "" {
		t.Errorf("(- want, + got): %s", diff)
	}
	x.apply(executor.ApplyOptions{})
	for path, mode := range map[string]string{"a": "0200", "n": "0000"} {
		if s := look(t, x.root)[path]; s.Attrs != "map[user.test:new]" || s.Mode != mode {
			t.Errorf("%s is %+v", path, s)
		}
	}
	x.clean()
}
