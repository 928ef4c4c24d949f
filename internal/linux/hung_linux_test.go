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
)

// TestHungMount: a mount in the workspace whose server does not answer is named and read-only, and commands
// start. The rest of the workspace is protected and writable as ever.
func TestHungMount(t *testing.T) {
	testenv.NeedRoot(t)
	if unix.Access("/dev/fuse", unix.W_OK) != nil {
		t.Log("this user may not use /dev/fuse")
		return
	}
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	a := newArena(t)
	at := a.ws + "/remote"
	must(t, os.Mkdir(at, 0o755))
	must(t, os.MkdirAll(a.ws+"/sub/.git/objects", 0o755))
	must(t, unix.Mount("hung", at, "fuse.hung", 0,
		fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd)))
	t.Cleanup(func() {
		_ = unix.Unmount(at, unix.MNT_FORCE|unix.MNT_DETACH)
		unix.Close(fd) // the mount ends without an answer
	})
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
