// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestPlantedMountPoint: a command leaves a link in the private /tmp, which the
// next command of the same Host gets again. A workspace below /tmp needs a mount
// point there, and making it must not follow the link.
func TestPlantedMountPoint(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	outer, err := os.MkdirTemp("/tmp", "sallyport-points-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(outer) })
	ws := filepath.Join(outer, "made", "ws")
	must(t, os.MkdirAll(ws, 0o755))
	file := filepath.Join(outer, "made", "file")
	must(t, os.WriteFile(file, nil, 0o644))

	res := mustRun(t, a, &job{args: sh("ln -s " + a.out + " /tmp/" + filepath.Base(outer))})
	if res.code != 0 {
		t.Fatalf("the link was not planted: %s", res.err)
	}
	for _, root := range []string{ws, file} {
		p := sandbox.WorkspaceWrite(root).Bind(sandbox.Places{Dir: a.ws, SlashTmp: "/tmp"})
		_, err := a.host.Start(t.Context(), &executor.Spec{Args: sh("true"), Dir: a.ws,
			Env: []string{"PATH=/usr/bin:/bin"}, Policy: p},
			[3]*os.File{null(t), null(t), null(t)})
		if err == nil {
			t.Errorf("%s: the command ran although its mount point leads elsewhere", root)
		}
	}
	if _, err := os.Lstat(filepath.Join(a.out, "made")); err == nil {
		t.Error("a directory was made outside, through the planted link")
	}
}

// TestMountPointIsPipe: a command leaves a named pipe where a later one of the same Host needs
// a file as a mount point. Opening it would wait for a reader, before any time limit counts.
func TestMountPointIsPipe(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	outer, err := os.MkdirTemp("/tmp", "sallyport-points-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(outer) })
	file := filepath.Join(outer, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	if res := mustRun(t, a, &job{args: sh("mkdir " + outer + " && mkfifo " + file)}); res.code != 0 {
		t.Fatalf("the named pipe was not planted: %s", res.err)
	}
	p := sandbox.WorkspaceWrite(file).Bind(sandbox.Places{Dir: a.ws, SlashTmp: "/tmp"})
	_, err = a.host.Start(t.Context(), &executor.Spec{Args: sh("true"), Dir: a.ws,
		Env: []string{"PATH=/usr/bin:/bin"}, Policy: p},
		[3]*os.File{null(t), null(t), null(t)})
	var root *executor.RootError
	if !errors.As(err, &root) || !strings.Contains(root.Why, "named pipe") {
		t.Errorf("%v, want that the mount point is a named pipe", err)
	}
}

func null(t *testing.T) *os.File {
	t.Helper()
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}
