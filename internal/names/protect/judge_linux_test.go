// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func errnoOf(j *PolicyJudge, op sandbox.Op, path string, creates bool) syscall.Errno {
	ruling := j.Rule(Access{Op: op, Path: path, Creates: creates})
	return ruling.Answer()
}

// TestJudge asks about names directly.
func TestJudge(t *testing.T) {
	ws, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	must(t, os.MkdirAll(ws+"/old/.git", 0o755))
	res, err := sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws},
		SlashTmp: "/tmp"}).WithEntries(
		sandbox.PathEntry(ws+"/shut", sandbox.LevelDeny),
		sandbox.PathEntry(ws+"/shut/open", sandbox.LevelRead),
		sandbox.GlobEntry(ws+"/**/*.key")).Resolve()
	must(t, err)
	j := NewJudge(&res, Names{
		Roots: []string{ws}, Ruled: []string{ws + "/known/.git/config"}, Protected: []string{ws + "/.git"},
		Free: []string{ws + "/tmp", ws + "/cache"},
	})
	j.start = time.Now().Add(time.Hour) // what exists is older
	for _, c := range []struct {
		name string
		op   sandbox.Op
		path string
		made bool
		want syscall.Errno
	}{
		{"an ordinary file", sandbox.Write, "/x", true, 0},
		{"a claimed name", sandbox.Write, "/.git", true, unix.EROFS},
		{"a claimed name that is there", sandbox.Write, "/.git", false, unix.EROFS},
		{"in a claimed name", sandbox.Write, "/.git/hooks/x", true, unix.EROFS},
		{"a name that is only noticed", sandbox.Write, "/noticed", true, 0},
		{"a denied directory", sandbox.Read, "/shut/x", false, unix.EACCES},
		{"the directory itself", sandbox.Read, "/shut", false, unix.EACCES},
		{"opened below it", sandbox.Read, "/shut/open/x", false, 0},
		{"a denied pattern", sandbox.Read, "/a/b.key", false, unix.EACCES},
		{"below a denied pattern", sandbox.Exec, "/a.key/x", false, unix.EACCES},
		{"writing what matches", sandbox.Write, "/n.key", true, unix.EACCES},
		{"a repository that was found", sandbox.Write, "/known/.git/hooks/x", true, 0},
		{"an old one that was none", sandbox.Write, "/old/.git/hooks/x", true, 0},
		{"a new one", sandbox.Write, "/new/.git", true, 0},
		{"a name that begins like one", sandbox.Write, "/.github/x", true, 0},
		{"behind one that begins like one", sandbox.Write, "/.github/.git", true, 0},
		{"in the private directory", sandbox.Write, "/tmp/r/.git/hooks", true, 0},
		{"in a layer", sandbox.Write, "/cache/r/.git/hooks", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := errnoOf(j, c.op, ws+c.path, c.made); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
	t.Run("bare ones", func(t *testing.T) { bareOnes(t, ws) })
	t.Run("an old one where not all were looked for", func(t *testing.T) {
		partly := NewJudge(&res, Names{Roots: []string{ws}, Partial: true})
		partly.start = j.start
		if got := errnoOf(partly, sandbox.Write, ws+"/old/.git/hooks/x", true); got != unix.EROFS {
			t.Errorf("%v", got)
		}
	})
	t.Run("a young one of somebody else", func(t *testing.T) {
		young := NewJudge(&res, Names{Roots: []string{ws}})
		young.start = time.Unix(0, 0)
		if got := errnoOf(young, sandbox.Write, ws+"/old/.git/config", false); got != unix.EROFS {
			t.Errorf("%v", got)
		}
	})
}

// TestMade: what looks like the making of a repository below a root is remembered.
func TestMade(t *testing.T) {
	policy, err := sandbox.WorkspaceWrite("/w").Bind(sandbox.Places{Dir: "/w",
		Workspaces: []string{"/w"}}).Resolve()
	must(t, err)
	judge := NewJudge(&policy, Names{Roots: []string{"/w"}, Free: []string{"/w/cache"},
		Protected: []string{"/w/.git"}})
	for _, name := range []string{
		"/w/a/.git", "/w/b.git/HEAD", "/w/b.git/objects", "/w/c/refs", // made
		// not
		"/w/.git", "/w/d/HEADS", "/w/a/.git/HEAD", "/w/a/.git/objects", "/w/cache/e/.git",
		"/tmp/f/.git", "/w",
	} {
		judge.Rule(Access{Op: sandbox.Write, Path: name, Creates: true})
	}
	judge.Rule(Access{Op: sandbox.Write, Path: "/w/g/.git"})
	judge.Rule(Access{Op: sandbox.Read, Path: "/w/h/.git", Creates: true})
	if want := []string{"/w/a/.git", "/w/b.git", "/w/c"}; !slices.Equal(judge.Made().Places, want) {
		t.Errorf("%q, want %q", judge.Made().Places, want)
	}
	if (*PolicyJudge)(nil).Made().Places != nil {
		t.Error("a judge that is not there has seen something")
	}
}

// bareOnes has bare repositories where not all were looked for, with a policy that does not ask about every
// name.
func bareOnes(t *testing.T, ws string) {
	bound, err := sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws},
		SlashTmp: "/tmp"}).Resolve()
	must(t, err)
	res := &bound
	for _, name := range []string{"b.git/HEAD", "b.git/objects/x", "b.git/refs/x", "b.git/hooks/x",
		"linked/HEAD", "linked/commondir", "none/HEAD", "none/objects/x", "tmp/b/HEAD", "tmp/b/objects/x",
		"tmp/b/refs/x", "found/HEAD", "found/objects/x", "found/refs/x"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(ws, name), nil, 0o644))
	}
	names := Names{Roots: []string{ws}, Free: []string{ws + "/tmp"}, Ruled: []string{ws + "/found/config"},
		Partial: true}
	j := NewJudge(res, names)
	j.start = time.Now().Add(time.Hour) // what exists is older
	whole := names
	whole.Partial = false
	for _, c := range []struct {
		path string
		want syscall.Errno
	}{
		{"/b.git/config", unix.EROFS},
		{"/b.git/HEAD", unix.EROFS},
		{"/b.git/hooks/post-receive", unix.EROFS},
		{"/b.git/work/deep/file", unix.EROFS},
		{"/linked/config", unix.EROFS},
		{"/b.git", 0}, // as a directory with a .git in it
		{"/none/config", 0},
		{"/x", 0},
		{"/tmp/b/config", 0},
		{"/found/description", 0}, // mounts hold what is closed in it
	} {
		at := ws + c.path
		if got := errnoOf(j, sandbox.Write, at, false); got != c.want {
			t.Errorf("%s: %v, want %v", c.path, got, c.want)
		}
		if got := errnoOf(NewJudge(res, whole), sandbox.Write, at, false); got != 0 {
			t.Errorf("%s, everything looked at: %v", c.path, got)
		}
		if c.want != 0 && !j.EveryName(filepath.Dir(at)) {
			t.Errorf("%s: the judge is not asked", c.path)
		}
	}
	if j.EveryName(ws + "/none") {
		t.Error("the judge is asked about every name")
	}
	young := NewJudge(res, names)
	young.start = time.Unix(0, 0)
	for _, j := range []*PolicyJudge{j, young} { // the command moves an old one to where it has made its own
		for _, name := range []string{"/b.git/HEAD", "/b.git/objects", "/b.git/refs"} {
			j.note(ws + name)
		}
	}
	if got := errnoOf(j, sandbox.Write, ws+"/b.git/config", true); got != unix.EROFS {
		t.Errorf("an old one in the place of the command's own: %v", got)
	}
	if got := errnoOf(young, sandbox.Write, ws+"/b.git/config", true); got != 0 {
		t.Errorf("the command's own: %v", got)
	}
}

// TestMine: a repository is the command's own by the file that it has made, not by the path: a person's
// does not become its own where it is moved to.
func TestMine(t *testing.T) {
	for _, c := range []struct {
		name string
		act  func(t *testing.T, j *PolicyJudge, ws string) // between the making of a/.git and the question
		at   string                                        // what is written
		want syscall.Errno
	}{
		{"made", func(*testing.T, *PolicyJudge, string) {}, "/a/.git/config", 0},
		{"made and moved", func(t *testing.T, j *PolicyJudge, ws string) {
			j.settle()
			must(t, os.Rename(ws+"/a", ws+"/z"))
		}, "/z/.git/config", 0},
		{"a person's", func(*testing.T, *PolicyJudge, string) {}, "/theirs/.git/config", unix.EROFS},
		{"a person's, moved there", func(t *testing.T, _ *PolicyJudge, ws string) {
			must(t, os.Rename(ws+"/a", ws+"/z"))
			must(t, os.Rename(ws+"/theirs", ws+"/a"))
		}, "/a/.git/config", unix.EROFS},
		{"a person's, moved there later", func(t *testing.T, j *PolicyJudge, ws string) {
			j.settle()
			must(t, os.Rename(ws+"/a", ws+"/z"))
			must(t, os.Rename(ws+"/theirs", ws+"/a"))
		}, "/a/.git/config", unix.EROFS},
		{"a person's in its place", func(t *testing.T, j *PolicyJudge, ws string) {
			j.settle()
			must(t, os.Rename(ws+"/a/.git", ws+"/a/git"))
			must(t, os.Mkdir(ws+"/a/.git", 0o755))
		}, "/a/.git/config", unix.EROFS},
	} {
		t.Run(c.name, func(t *testing.T) {
			ws, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			res, err := sandbox.WorkspaceWrite(ws).Bind(sandbox.Places{Dir: ws, Workspaces: []string{ws},
				SlashTmp: "/tmp"}).Resolve()
			must(t, err)
			j := NewJudge(&res, Names{Roots: []string{ws}})
			must(t, os.MkdirAll(ws+"/theirs/.git", 0o755))
			must(t, os.Mkdir(ws+"/a", 0o755))
			if got := errnoOf(j, sandbox.Write, ws+"/a/.git", true); got != 0 {
				t.Fatal(got)
			}
			must(t, os.Mkdir(ws+"/a/.git", 0o755))
			c.act(t, j, ws)
			if got := errnoOf(j, sandbox.Write, ws+c.at, true); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			ids := j.Made().IDs
			id, known := identify(filepath.Dir(ws + c.at))
			if known && slices.Contains(ids, id) != (c.want == 0) {
				t.Errorf("%v of %v", id, ids)
			}
		})
	}
}

// TestUnknownPath: a path that is not known, as of what was removed, is looked at once.
func TestUnknownPath(t *testing.T) {
	j := &PolicyJudge{protected: map[string]bool{"/w/.git": true}}
	for path, want := range map[string]bool{"": false, "w": false, "/w": false, "/w/.git": true, "/w/.git/x/y": true} {
		if got := j.inProtected(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}
