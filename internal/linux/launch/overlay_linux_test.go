// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// overlaid is a script that runs a line of shell in an overlay, and its directories.
type overlaid struct {
	lower, upper, work string
	script             *Script
}

// overlay makes directories below base and a script whose command runs in the overlay
// that they give.
func overlay(t *testing.T, base, line string) *overlaid {
	t.Helper()
	o := &overlaid{lower: filepath.Join(base, "lower"), upper: filepath.Join(base, "upper"),
		work: filepath.Join(base, "work")}
	for _, d := range []string{o.lower, o.upper, o.work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(o.lower, "file"), []byte("host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.lower, "gone"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.unmark(t) }) // or the test could not remove the directory
	o.script = &Script{Namespaces: NewUser | NewMount | NewPID, Steps: append(ownSteps(),
		Step{Op: OpSetMount, Path: "/", Recursive: true, Private: true},
		Step{
			Op: OpOverlay, Tree: 1, Path: o.lower, ID: identity(t, o.lower), Set: AttrNoSuid | AttrNoDev,
			Layers: &Layers{Upper: Layer{o.upper, identity(t, o.upper)},
				Work: Layer{o.work, identity(t, o.work)}},
		},
		Step{Op: OpSetMount, Path: "/", Recursive: true, Private: true, Set: AttrReadOnly},
		Step{Op: OpAttach, Tree: 1, Path: o.lower, ID: identity(t, o.lower)},
		Step{Op: OpStartCommand})}
	o.script.Steps = append(o.script.Steps, second(shStep(line), Step{Op: OpChdir, Path: o.lower})...)
	return o
}

// TestOverlay: what is written in an overlay is found in the upper directory and
// nowhere else, whatever the directories are called.
func TestOverlay(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, name := range []string{
		"plain", "a,b", "a:b", `a\b`, `a\:b`, "a b", "a\nb", "lowerdir=,upperdir=:", "\xff\xfe",
		strings.Repeat("x", 200), "%s", "é\u202e",
	} {
		t.Run(name, func(t *testing.T) {
			o := overlay(t, filepath.Join(t.TempDir(), name),
				"cat file; echo changed >file; echo new >new; rm -f gone; mkdir -p d; cat file new; ls")
			l := launcher(t)
			for range 2 { // the second time with what the first has left
				before := o.list(t)
				out, _ := output(t, l, o.script)
				o.unmark(t)
				if after := o.list(t); after != before {
					t.Errorf("the shown directory was changed from %s to %s", before, after)
				}
				if b, err := os.ReadFile(filepath.Join(o.upper, "file")); err != nil ||
					string(b) != "changed\n" {
					t.Errorf("the upper directory has %q, %v", b, err)
				}
				if !strings.Contains(out, "changed\nnew\nd\nfile\nnew\n") {
					t.Errorf("inside: %s", out)
				}
			}
		})
	}
}

// TestOverlayLower: further directories are shown over the first one, the uppermost one wins,
// and none is written to.
func TestOverlayLower(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	base := filepath.Join(t.TempDir(), "a:b,c")
	o := overlay(t, base, "cat file both under; echo x >file; echo x >both; rm under; ls")
	var lower [MaxLower]Layer
	for i, name := range []string{"over", "under"} {
		dir := filepath.Join(base, "more-"+name)
		if err := errors.Join(os.Mkdir(dir, 0o755),
			os.WriteFile(filepath.Join(dir, name), []byte(name+"\n"), 0o644),
			os.WriteFile(filepath.Join(dir, "both"), []byte("both "+name+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
		lower[i] = Layer{dir, identity(t, dir)}
	}
	o.script.Steps[overlayStep(o.script)].Layers.Lower = lower
	before := o.list(t)
	out, _ := output(t, launcher(t), o.script)
	if want := "host\nboth over\nunder\nboth\nfile\ngone\nover\n"; out != want {
		t.Errorf("inside: %q, want %q", out, want)
	}
	if after := o.list(t); after != before {
		t.Errorf("the shown directory was changed from %s to %s", before, after)
	}
	for i, name := range []string{"over", "under"} {
		for file, want := range map[string]string{name: name + "\n", "both": "both " + name + "\n"} {
			if text, err := os.ReadFile(filepath.Join(lower[i].Path, file)); err != nil ||
				string(text) != want {
				t.Errorf("%s in %s: %q, %v", file, name, text, err)
			}
		}
	}
	lower[1].ID.Ino++ // exchanged since
	o.script.Steps[overlayStep(o.script)].Layers.Lower = lower
	n := null(t)
	_, err := launcher(t).Start(o.script, n, n, n)
	var step *StepError
	if !errors.As(err, &step) || step.Call != "compare" {
		t.Errorf("a directory that was exchanged: %v", err)
	}
}

// unmark removes the kernel's mark of a volatile overlay.
func (o *overlaid) unmark(t *testing.T) {
	t.Helper()
	inner := filepath.Join(o.work, "work")
	for _, d := range []string{"", "incompat", "incompat/volatile"} {
		if err := os.Chmod(filepath.Join(inner, d), 0o700); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(inner); err != nil {
		t.Fatal(err)
	}
}

// list describes the lower directory.
func (o *overlaid) list(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(o.lower)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(o.lower, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + " " + string(text))
	}
	return b.String()
}

// TestOverlaySwapped: a directory that was exchanged after the look, or is a link by
// now, stops the launch.
func TestOverlaySwapped(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	cases := []struct {
		name      string
		directory func(o *overlaid) string
	}{
		{"lower", func(o *overlaid) string { return o.lower }},
		{"upper", func(o *overlaid) string { return o.upper }},
		{"work", func(o *overlaid) string { return o.work }},
	}
	for _, c := range cases {
		for _, link := range []bool{false, true} {
			name := c.name + " exchanged"
			if link {
				name = c.name + " replaced by a link"
			}
			t.Run(name, func(t *testing.T) {
				base := t.TempDir()
				o := overlay(t, base, "true")
				evil := filepath.Join(base, "evil")
				want := "compare"
				if link {
					want = "openat2"
					if err := os.Symlink(c.directory(o)+".old", evil); err != nil {
						t.Fatal(err)
					}
				} else if err := os.Mkdir(evil, 0o755); err != nil {
					t.Fatal(err)
				}
				swap(t, c.directory(o), evil)
				n := null(t)
				_, err := launcher(t).Start(o.script, n, n, n)
				var step *StepError
				if !errors.As(err, &step) || step.Call != want || step.Step.Op != OpOverlay {
					t.Fatalf("got %v, want %s to fail", err, want)
				}
			})
		}
	}
}

// TestOverlayRefused: what the kernel makes no overlay of is a failed step, and
// says so before anything runs.
func TestOverlayRefused(t *testing.T) {
	testenv.NeedUserNS(t)
	cases := []struct {
		name string
		mod  func(o *overlaid, s *Step)
	}{
		{"a file", func(o *overlaid, s *Step) { s.Path, s.ID = filepath.Join(o.lower, "file"), ID{} }},
		{"nothing", func(o *overlaid, s *Step) { s.Path, s.ID = filepath.Join(o.lower, "none"), ID{} }},
		{"work elsewhere", func(_ *overlaid, s *Step) { s.Layers.Work = Layer{Path: "/dev/shm"} }},
		{"an upper directory that is no disk", func(_ *overlaid, s *Step) { s.Layers.Upper, s.Layers.Work = Layer{Path: "/proc"}, Layer{Path: "/proc"} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := overlay(t, t.TempDir(), "touch ran")
			c.mod(o, &o.script.Steps[overlayStep(o.script)])
			n := null(t)
			_, err := launcher(t).Start(o.script, n, n, n)
			var step *StepError
			if !errors.As(err, &step) || step.Step.Op != OpOverlay {
				t.Fatalf("got %v, want a failed overlay", err)
			}
		})
	}
	for _, c := range []struct {
		name string
		mod  func(s *Step)
	}{
		{"no layers", func(s *Step) { s.Layers = nil }},
		{"no tree", func(s *Step) { s.Tree = 0 }},
		{"a NUL byte", func(s *Step) { s.Layers.Upper.Path = "/a\x00b" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := overlay(t, t.TempDir(), "true")
			c.mod(&o.script.Steps[overlayStep(o.script)])
			n := null(t)
			_, err := launcher(t).Start(o.script, n, n, n)
			var mistake *ScriptError
			if !errors.As(err, &mistake) {
				t.Fatalf("got %v, want a *ScriptError", err)
			}
		})
	}
}

func overlayStep(s *Script) int {
	for i, st := range s.Steps {
		if st.Op == OpOverlay {
			return i
		}
	}
	return -1
}

// TestHold: the lock on the held descriptor lasts until the last process of the
// tree is gone, although its owner has closed it, and the command has no copy.
func TestHold(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "grep")
	each(t, func(t *testing.T, k kind, l *starter) {
		name := filepath.Join(t.TempDir(), "held")
		locked := func(how int) (*os.File, error) {
			f, err := os.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			return f, unix.Flock(int(f.Fd()), unix.LOCK_EX|how)
		}
		held, err := locked(unix.LOCK_NB)
		if err != nil {
			t.Fatal(err)
		}
		r, w := pipe(t)
		endR, endW := pipe(t)
		if err := unix.SetNonblock(int(endR.Fd()), false); err != nil { // or the shell's read would not wait
			t.Fatal(err)
		}
		s := script(k, shStep("ls -l /proc/self/fd | grep -c held; exec >/dev/null; read line"))
		p, err := l.StartWith(s, Files{Stdin: endR, Stdout: w, Stderr: w, Hold: []*os.File{held}})
		if err != nil {
			t.Fatal(err)
		}
		held.Close()
		w.Close()
		buf := make([]byte, 8)
		if n, err := r.Read(buf); err != nil || string(buf[:n]) != "0\n" {
			t.Errorf("the command sees %q of it, %v", buf[:n], err)
		}
		again, err := locked(unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			t.Errorf("while the tree lives: %v", err)
		}
		again.Close()
		endW.Close()
		endR.Close()
		finishAll(t, p)
		again, err = locked(0) // the kernel frees it in the reaper's last moments
		if err != nil {
			t.Errorf("after its end: %v", err)
		}
		again.Close()
	})
}
