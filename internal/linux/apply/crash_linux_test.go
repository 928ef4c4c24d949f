// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// crashFiles are the files of a stage of which a third each is new, changed and deleted.
func crashFiles() int { return testenv.Rounds(60, 300) }

func crashName(i int) string { return fmt.Sprintf("d%d/f%d", i%7, i) }

// crashTrial makes a tree and a stage over it, and returns what the files were and will be; empty is no file.
func crashTrial(t *testing.T, top string) (x *trial, before, after map[string]string) {
	x = newTrial(t, top)
	before, after = map[string]string{}, map[string]string{}
	write := func(root, name, text string) {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var ops []op
	for i := range crashFiles() {
		name := crashName(i)
		if i%3 > 0 {
			before[name] = fmt.Sprintf("old %d", i)
			write(x.root, name, before[name])
		}
		n := 1 + i%500
		after[name] = strings.Repeat(fmt.Sprintf("new %d\n", i), n)
		switch i % 3 {
		case 2:
			after[name] = ""
			ops = append(ops, op{Do: "rm", A: name})
		default:
			ops = append(ops, op{Do: "mkdir", A: filepath.Dir(name), N: 0o755},
				op{Do: "write", A: name, B: fmt.Sprintf("new %d", i), N: n})
		}
	}
	for i := range crashFiles() / 10 { // a new tree
		dir := fmt.Sprintf("n/m%d", i%3)
		name := fmt.Sprintf("%s/f%d", dir, i)
		after[name] = "new\n"
		ops = append(ops, op{Do: "mkdir", A: "n", N: 0o755}, op{Do: "mkdir", A: dir, N: 0o755},
			op{Do: "write", A: name, B: "new", N: 1})
	}
	x.run(ops...)
	return x, before, after
}

// halfway fails where a file is neither the old nor the new one.
func halfway(t testing.TB, root string, before, after map[string]string) {
	t.Helper()
	for name, want := range after {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if string(text) != want && string(text) != before[name] {
			t.Errorf("%s is neither old nor new: %.40q", name, text)
		}
	}
}

// finished fails where the tree has not what it should have.
func finished(t testing.TB, root string, after map[string]string) {
	t.Helper()
	for name, want := range after {
		text, err := os.ReadFile(filepath.Join(root, name))
		if string(text) != want || (want == "") != errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %.40q, %v", name, text, err)
		}
	}
}

// TestKilled kills applies at random steps: each file is the old or the new one then, and the next call
// completes, and removes what the killed one has left.
func TestKilled(t *testing.T) {
	testenv.RunAsOrdinary(t)
	top := t.TempDir()
	steps := 3 * crashFiles()
	for round := range testenv.Rounds(10, 30) {
		r := rand.New(rand.NewPCG(uint64(round), 34))
		dir := mkdir(t, top, fmt.Sprint(round))
		x, before, after := crashTrial(t, dir)
		for range 1 + r.IntN(3) {
			cmd := child(t, &childTask{Stage: x.dir, Root: x.root, Apply: true, Kill: 1 + r.IntN(steps)})
			out, err := cmd.CombinedOutput()
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if !ok || err != nil && status.Signal() != syscall.SIGKILL {
				t.Fatalf("%v: %s", err, out)
			}
			halfway(t, x.root, before, after)
		}
		s, err := openStage(x.dir, x.root)
		if err != nil {
			t.Fatal(err)
		}
		x.stage = s
		if a := x.apply(executor.ApplyOptions{}); a.Left != 0 || len(a.Refused) > 0 {
			t.Errorf("round %d: %+v", round, a)
		}
		finished(t, x.root, after)
		x.clean()
		if err := safefile.RemoveTreePath(dir); err != nil {
			t.Fatal(err)
		}
		mkdir(t, dir)
	}
}

// TestAtOnce: of two applies of one stage, one does the work, and the other finds it done.
func TestAtOnce(t *testing.T) {
	x, _, after := crashTrial(t, mkdir(t, t.TempDir(), "x"))
	done := make(chan error)
	const both = 2
	for range both {
		go func() {
			s, err := openStage(x.dir, x.root)
			if err == nil {
				_, err = Apply(context.Background(), s, executor.ApplyOptions{})
			}
			done <- err
		}()
	}
	for range both {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	finished(t, x.root, after)
	x.clean()
}

// TestFullDisk applies to a file system that is too small, at ever more bytes: what is there is old or
// new, and the stage has the rest.
func TestFullDisk(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	for i := range 30 {
		x.put(crashName(i), strings.Repeat("new text\n", 1000))
	}
	x.put("n/m/big", strings.Repeat("new text\n", 20_000))
	inNamespaces(t, &childTask{Stage: x.dir, Root: x.root, Full: true})
}

// full applies the stage to a file system of Root that grows until all is applied.
func (c *childTask) full() error {
	const page = 4 << 10
	old := strings.Repeat("old text\n", 200)
	size := 0
	options := func() string { return fmt.Sprintf("size=%d,mode=0755", size) }
	size = 40 * page
	if err := unix.Mount("tmpfs", c.Root, "tmpfs", 0, options()); err != nil {
		return err
	}
	for i := range 20 {
		name := filepath.Join(c.Root, crashName(i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
			os.WriteFile(name, []byte(old), 0o644)); err != nil {
			return err
		}
	}
	for failed := 0; ; failed++ {
		s, err := openStage(c.Stage, c.Root)
		if err != nil {
			return err
		}
		a, err := Apply(context.Background(), s, executor.ApplyOptions{})
		var told *executor.StageError
		switch {
		case err == nil && a.Left == 0 && failed > 10:
			return c.whole()
		case !errors.Is(err, unix.ENOSPC) || !errors.As(err, &told) || a.Left == 0 ||
			!strings.Contains(told.Fix, "free some"):
			return fmt.Errorf("at %d bytes: %+v, %w", size, a, err)
		}
		for i := range 30 {
			text, err := os.ReadFile(filepath.Join(c.Root, crashName(i)))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			if s := string(text); s != old && s != strings.Repeat("new text\n", 1000) && (s != "" || i < 20) {
				return fmt.Errorf("at %d bytes, file %d has %d bytes", size, i, len(s))
			}
		}
		size += 2 * page
		if err := unix.Mount("", c.Root, "", unix.MS_REMOUNT, options()); err != nil {
			return err
		}
	}
}

// whole looks whether all was applied.
func (c *childTask) whole() error {
	for i := range 30 {
		text, err := os.ReadFile(filepath.Join(c.Root, crashName(i)))
		if err != nil || string(text) != strings.Repeat("new text\n", 1000) {
			return fmt.Errorf("file %d has %d bytes, %w", i, len(text), err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(c.Root, "n/m/big")); err != nil || len(text) != 180_000 {
		return fmt.Errorf("%d bytes, %w", len(text), err)
	}
	return nil
}
