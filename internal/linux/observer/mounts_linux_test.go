// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
	"golang.org/x/sys/unix"
)

// readOnlyMount returns a directory on a mount of its own that is read-only.
func readOnlyMount(t *testing.T) int {
	t.Helper()
	testenv.NeedRoot(t) // only root can make a mount outside of a namespace
	fd, err := unix.OpenTree(unix.AT_FDCWD, t.TempDir(), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	must(t, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
	return fd
}

// TestMountIDAgain: what is known of a mount is not believed of another one that has got its
// number, and not at all where the command may make mounts.
func TestMountIDAgain(t *testing.T) {
	closed := readOnlyMount(t)
	f, err := os.Open(t.TempDir())
	must(t, err)
	defer f.Close()
	open := int(f.Fd())
	for _, c := range []struct {
		name     string
		ownRoots bool
		known    facts
		want     bool // of the read-only mount with the same number
	}{
		{"the number can come again", false, facts{mount: 7}, true},
		{"the number is unique", false, facts{mount: 7, unique: true}, false},
		{"the command makes mounts", true, facts{mount: 7, unique: true}, true},
	} {
		r := selfRequest(t)
		r.cfg.OwnRoots = c.ownRoots
		if r.shownBy(&c.known, open).readOnly {
			t.Fatalf("%s: the writable mount is read-only", c.name)
		}
		if got := r.shownBy(&c.known, closed).readOnly; got != c.want {
			t.Errorf("%s: the other mount is read-only: %v, want %v", c.name, got, c.want)
		}
	}
	var st facts
	r := selfRequest(t)
	if errno := r.stat(open, "", &st); errno != 0 {
		t.Fatal(errno)
	}
	t.Logf("the kernel gives unique ids: %v", st.unique)
}

// TestDirectoryAgain: the same holds for what is known of a directory.
func TestDirectoryAgain(t *testing.T) {
	for _, ownRoots := range []bool{false, true} {
		r := selfRequest(t)
		r.cfg.OwnRoots, r.cfg.Judge = ownRoots, &stuckJudge{}
		p := place{dir: -1, parent: facts{mount: 7, ino: 9, unique: true}}
		r.directoryOf(&p)
		if got := len(r.directories); got != map[bool]int{false: 1, true: 0}[ownRoots] {
			t.Errorf("own roots %v: %d directories are remembered", ownRoots, got)
		}
	}
}

// TestDirectoryNumberAgain: a repository is remembered by the path that its directory has, not
// by that of a removed directory with the same number.
func TestDirectoryNumberAgain(t *testing.T) {
	r := selfRequest(t)
	dir := realTemp(t)
	policy, err := sandbox.WorkspaceWrite(dir).Bind(sandbox.Places{Dir: dir,
		Workspaces: []string{dir}}).Resolve()
	must(t, err)
	judge := protect.NewJudge(&policy, protect.Names{Roots: []string{dir}})
	r.cfg.Judge = judge
	must(t, os.Mkdir(dir+"/now", 0o755))
	p, lerr := r.find(atCwd, []byte(dir+"/now/.git"), true)
	if lerr != nil {
		t.Fatal(lerr.errno)
	}
	defer p.close()
	key := directoryID{p.parent.mount, p.parent.dev, p.parent.ino}
	r.directories = map[directoryID]directory{key: {since: time.Now()}}
	if _, errno := r.ruled(sandbox.Write, &p, true); errno != 0 {
		t.Error(errno)
	}
	must(t, os.Mkdir(dir+"/now/.git", 0o755))
	ruling := judge.Rule(protect.Access{Op: sandbox.Write, Path: dir + "/now/.git/config", Creates: true})
	made := judge.Made().Places
	if errno := ruling.Answer(); errno != 0 || !slices.Equal(made, []string{dir + "/now/.git"}) {
		t.Errorf("%v, made are %q", errno, made)
	}
}
