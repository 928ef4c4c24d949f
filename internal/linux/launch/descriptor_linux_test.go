// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// more gives a script's program more descriptors than the standard ones.
func more(text string, steps ...Step) *Script {
	s := &Script{Steps: []Step{
		{Op: OpDieWithParent}, {Op: OpSubreaper}, {Op: OpStartCommand}, {Op: OpNewGroup}, {Op: OpStdio},
	}}
	s.Steps = append(s.Steps, steps...)
	s.Steps = append(s.Steps, Step{Op: OpResetSignals}, shStep(text))
	return s
}

func TestMoreDescriptors(t *testing.T) {
	testenv.RunAsOrdinary(t)
	l := launcher(t)
	r, w := pipe(t)
	defer w.Close()
	if _, err := w.WriteString("through the pipe"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	large := strings.Repeat("x", 1<<20)
	got, st := outputWith(t, l, Files{Status: r},
		more(`cat <&3; echo; cat <&4; echo; wc -c <&5; cat <&6; ls /proc/self/fd | wc -l`,
			Step{Op: OpPass, Value: 3}, Step{Op: OpCloseFiles, Value: 4},
			Step{Op: OpMemory, Value: 4, Data: []byte("a\x00b")},
			Step{Op: OpMemory, Value: 5, Data: []byte(large)}, Step{Op: OpMemory, Value: 6}))
	// Seven, and the one that ls reads the directory through.
	if want := "through the pipe\na\x00b\n1048576\n8\n"; got != want || st.ExitStatus() != 0 {
		t.Errorf("%q, %v", got, st.ExitStatus())
	}
}

// TestKeptDescriptors: the program has the descriptors that are kept under their numbers, and
// no others, also where ours have those numbers.
func TestKeptDescriptors(t *testing.T) {
	l := launcher(t)
	extra := make(map[int]*os.File)
	for n, text := range map[int]string{3: "three", 4: "four", 63: "sixty-three"} {
		r, w := pipe(t)
		if _, err := w.WriteString(text); err != nil {
			t.Fatal(err)
		}
		w.Close()
		extra[n] = r
	}
	got, st := outputWith(t, l, Files{Extra: extra},
		more(`cat <&3; cat <&4; cat </dev/fd/63; ls /proc/self/fd | wc -l`,
			Step{Op: OpCloseFiles, Keep: []int{3, 4, 63}}))
	// Six, and the one that ls reads the directory through.
	if want := "threefoursixty-three7\n"; got != want || st.ExitStatus() != 0 {
		t.Errorf("%q, %v", got, st.ExitStatus())
	}
	n := null(t)
	if _, err := l.StartWith(more(`:`, Step{Op: OpCloseFiles, Keep: []int{5}}),
		Files{Stdin: n, Stdout: n, Stderr: n}); err == nil {
		t.Error("a descriptor that was not given is kept")
	}
}

// TestRuleIdentity: a Landlock rule is for the file that was planned.
func TestRuleIdentity(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedLandlock(t, 1)
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		t.Fatal(err)
	}
	l := launcher(t)
	start := func(id ID) error {
		s := more(`:`, Step{Op: OpNoNewPrivs},
			Step{Op: OpLandlock, Ruleset: &Ruleset{Handled: 2,
				Rules: []Rule{{Path: dir, Access: 2, ID: id}}}})
		n := null(t)
		p, err := l.Start(s, n, n, n)
		if err == nil {
			finishAll(t, p)
		}
		return err
	}
	if err := start(ID{Dev: st.Dev, Ino: st.Ino}); err != nil {
		t.Error(err)
	}
	var step *StepError
	if err := start(ID{Dev: st.Dev, Ino: st.Ino + 1}); !errors.As(err, &step) || step.Call != "compare" {
		t.Errorf("%v", err)
	}
}

func TestDescriptorNumbers(t *testing.T) {
	l := launcher(t)
	for _, c := range []struct {
		name string
		step Step
	}{
		{"standard", Step{Op: OpMemory, Value: 2}}, {"too high", Step{Op: OpMemory, Value: 10}}, {"no number", Step{Op: OpPass}},
		{"a listener without a file for it", Step{Op: OpObserve, Filter: Filter{6}}},
		{"no file", Step{Op: OpPass, Value: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := null(t)
			var script *ScriptError
			if _, err := l.Start(more(`:`, c.step), n, n, n); !errors.As(err, &script) {
				t.Errorf("%v", err)
			}
		})
	}
}
