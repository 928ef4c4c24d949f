// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// invoke runs Main in this process, in the workspace dir.
func invoke(t *testing.T, dir string, words ...string) (code int, stdout, stderr string) {
	t.Helper()
	files := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(files, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	out, errs := open("stdout"), open("stderr")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	code = Main(words, &Env{Env: args.Env{Stdin: null, Stdout: out, Stderr: errs,
		Environ: testenv.Environ(), Dir: dir}})
	read := func(f *os.File) string {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return code, read(out), read(errs)
}

// TestTooLong runs a command with more arguments than any system takes; from
// outside they would not even reach us.
func TestTooLong(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	args := append([]string{"run", "--", "/bin/true"},
		slices.Repeat([]string{strings.Repeat("x", 100_000)}, 64)...)
	code, stdout, stderr := invoke(t, t.TempDir(), args...)
	const want = "sallyport: /bin/true: arguments and environment are too long for this system; "
	if code != explain.CodeCannotRun || stdout != "" || !strings.HasPrefix(stderr, want) ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr %.300q", code, stdout, stderr)
	}
}

// TestZeroByte cannot be asked for on a real command line.
func TestZeroByte(t *testing.T) {
	testenv.NeedUserNS(t)
	code, stdout, stderr := invoke(t, t.TempDir(), "run", "--", "/bin/echo", "a\x00b")
	if code != explain.CodeFailed || stdout != "" || !strings.Contains(stderr, "NUL") ||
		strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestInProcess runs a command through Main twice: nothing of the first run may
// be left for the second.
func TestInProcess(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	for range 2 {
		code, stdout, stderr := invoke(t, t.TempDir(), "run", "--", "/bin/sh", "-c",
			"echo out; echo err >&2; exit 3")
		if code != 3 || stdout != "out\n" || stderr != "err\n" {
			t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	}
}

func TestMainNeedsNoRunner(t *testing.T) {
	if err := dispatch(context.Background(), &Env{Env: args.Env{Dir: "/"}},
		[]string{"nonsense"}); err == nil {
		t.Error("nonsense was understood")
	}
}
