// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// invoke runs Main in this process, in the workspace dir.
func invoke(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
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
	code = Main(args, &Env{Stdin: null, Stdout: out, Stderr: errs, Environ: testenv.Environ(), Dir: dir})
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
	args := append([]string{"run", "--", "/bin/true"}, slices.Repeat([]string{strings.Repeat("x", 100_000)}, 64)...)
	code, stdout, stderr := invoke(t, t.TempDir(), args...)
	const want = "sallyport: /bin/true: arguments and environment are too long for this system; "
	if code != codeCannotRun || stdout != "" || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr %.300q", code, stdout, stderr)
	}
}

// TestZeroByte cannot be asked for on a real command line.
func TestZeroByte(t *testing.T) {
	testenv.NeedUserNS(t)
	code, stdout, stderr := invoke(t, t.TempDir(), "run", "--", "/bin/echo", "a\x00b")
	if code != codeFailed || stdout != "" || !strings.Contains(stderr, "NUL") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// TestInProcess runs a command through Main twice: nothing of the first run may
// be left for the second.
func TestInProcess(t *testing.T) {
	testenv.NeedUserNS(t)
	testenv.NeedInotify(t)
	for range 2 {
		code, stdout, stderr := invoke(t, t.TempDir(), "run", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3")
		if code != 3 || stdout != "out\n" || stderr != "err\n" {
			t.Fatalf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
		}
	}
}

func TestClassify(t *testing.T) {
	pathError := func(errno syscall.Errno) error { return &fs.PathError{Op: "stat", Path: "/x", Err: errno} }
	tests := []struct {
		name string
		err  error
		code int
		end  string
		says string
	}{
		{"usage", failure("no %s", "sense"), 125, "failed", "no sense"},
		{"proxy", &userError{121, sallyport.EndUnavailable, "w", "m"}, 121, "unavailable", "w; m"},
		{"unsupported", fmt.Errorf("%w: %w", sallyport.ErrNoSandbox, &sandbox.UnsupportedError{Need: "n", Have: "h", Hint: "do"}),
			121, "unavailable", "sandbox not available: needs n, but h; do"},
		{"no sandbox", sallyport.ErrNoSandbox, 121, "unavailable", "no sandbox; run sallyport doctor to see what is missing"},
		{"forbidden", fmt.Errorf("%w: rule 3", sallyport.ErrForbidden), 122, "forbidden", "forbidden: rule 3"},
		{"refused", fmt.Errorf("%w: no approver", sallyport.ErrRefused), 123, "refused", "refused: no approver"},
		{"not found", &executor.StartError{Program: "p", NotFound: true, Err: errors.New("p: not found in PATH")},
			127, "not_found", "p: not found in PATH"},
		{"missing file", &executor.StartError{Program: "./p", NotFound: true, Err: fmt.Errorf("x: %w", pathError(syscall.ENOENT))},
			127, "not_found", "./p: no such file"},
		{"missing interpreter", &executor.StartError{Program: "./p", NotFound: true, Err: syscall.ENOENT},
			127, "not_found", "./p: not found inside the sandbox (the program or its interpreter); check its first line"},
		{"not executable", &executor.StartError{Program: "./p", Err: syscall.EACCES},
			126, "failed", "./p: permission denied; check that it is executable (chmod +x) and that the policy lets it be read"},
		{"directory", &executor.StartError{Program: "./p", Err: pathError(syscall.EISDIR)}, 126, "failed", "./p: is a directory"},
		{"busy", &executor.StartError{Program: "./p", Err: pathError(syscall.ETXTBSY)}, 126, "failed", "./p: cannot be executed: text file busy"},
		{"anything", errors.New("sallyport: first line\nsecond   line"), 125, "failed", "first line second line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if e := classify(tt.err); e.code != tt.code || string(e.end) != tt.end || e.String() != tt.says {
				t.Errorf("%d %s %q, want %d %s %q", e.code, e.end, e, tt.code, tt.end, tt.says)
			}
		})
	}
}

func TestMainNeedsNoRunner(t *testing.T) {
	if err := dispatch(context.Background(), &Env{Dir: "/"}, []string{"nonsense"}); err == nil {
		t.Error("nonsense was understood")
	}
}
