// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// hang mounts a file system whose server does not answer at remote in the workspace.
func hang(t *testing.T, a *arena) (at string, ok bool) {
	t.Helper()
	testenv.NeedRoot(t)
	if unix.Access("/dev/fuse", unix.W_OK) != nil {
		t.Log("this user may not use /dev/fuse")
		return "", false
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	at = a.ws + "/remote"
	must(t, os.Mkdir(at, 0o755))
	must(t, unix.Mount("hung", at, "fuse.hung", 0,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)))
	t.Cleanup(func() {
		_ = unix.Unmount(at, unix.MNT_FORCE|unix.MNT_DETACH)
		unix.Close(fd) // the mount ends without an answer
	})
	return at, true
}

// TestHungMount: a mount in the workspace whose server does not answer is named and read-only, and commands
// start. The rest of the workspace is protected and writable as ever.
func TestHungMount(t *testing.T) {
	a := newArena(t)
	must(t, os.MkdirAll(a.ws+"/sub/.git/objects", 0o755))
	at, ok := hang(t, a)
	if !ok {
		return
	}
	var after executor.Exit
	res := mustRun(t, a, &job{after: &after, args: sh(`echo x >sub/new && echo x >new; echo x >sub/.git/config || echo started`)})
	if !strings.Contains(res.out, "started") {
		t.Errorf("%+v", res)
	}
	if !slices.ContainsFunc(after.Sandbox.Warnings, func(w string) bool { return strings.Contains(w, at) }) {
		t.Errorf("warnings %q", after.Sandbox.Warnings)
	}
	waiting := func() int {
		all := make([]byte, 1<<20)
		return strings.Count(string(all[:runtime.Stack(all, true)]), "hostfacts.readMount(")
	}
	before := waiting()
	for range 2 {
		mustRun(t, a, &job{args: sh("true")})
	}
	if now := waiting(); before == 0 || now > before {
		t.Errorf("%d threads wait for mounts, after the first command %d", now, before)
	}
}

// TestHungMountSearched: nothing waits for a mount whose server does not answer: neither the search for what
// a pattern denies, which hides it, nor the observer where a command opens what is hidden, nor what counts
// files.
func TestHungMountSearched(t *testing.T) {
	a := newArena(t)
	at, ok := hang(t, a)
	if !ok {
		return
	}
	pattern := a.policy().WithEntries(sandbox.GlobEntry(a.ws + "/**/.env"))
	var after executor.Exit
	res := mustRun(t, a, &job{after: &after, policy: &pattern,
		args: sh(`cat remote/.env || cat remote/.env || ls remote || echo x >new && echo started`)})
	if !strings.Contains(res.out, "started") {
		t.Errorf("with a pattern: %+v", res)
	}
	if !slices.ContainsFunc(after.Sandbox.Warnings, func(w string) bool {
		return strings.Contains(w, at) && strings.Contains(w, "hidden")
	}) {
		t.Errorf("warnings %q", after.Sandbox.Warnings)
	}
	const limit = 8 << 20
	for _, c := range []struct {
		name, line string
		exceeds    bool
	}{
		{"little", "echo x >new; echo started", false},
		{"much", "head -c 200m /dev/zero >big" + stay, true},
	} {
		b := a.bounded(t, executor.Resources{Disk: limit}, c.line)
		exceeded := b.after.Limit == executor.LimitDisk
		if exceeded != c.exceeds || !exceeded && !strings.Contains(b.out, "started") {
			t.Errorf("%s: %+v", c.name, b)
		}
	}
}
