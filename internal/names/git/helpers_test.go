// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// tempDir returns a new directory without symbolic links in its name.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// put writes a file, and the directories that it is in. A name with a slash at its end
// is a directory.
func put(t testing.TB, path, text string) {
	t.Helper()
	dir := filepath.Dir(path)
	if strings.HasSuffix(path, "/") {
		dir = path
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if dir == path {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// link makes a symbolic link, and the directories that it is in.
func link(t testing.TB, target, path string) {
	t.Helper()
	put(t, filepath.Dir(path)+"/", "")
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// remove takes away a file, or a directory with all that is in it.
func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// gitCommand returns a git with a configuration of its own.
func gitCommand(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testenv.NeedProgram(t, "git"), append([]string{
		"-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main",
		"-c", "protocol.file.allow=always", "-c", "advice.detachedHead=false", "-c",
		"gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(testenv.Environ(), "HOME="+os.DevNull, "XDG_CONFIG_HOME="+os.DevNull,
		"GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_CONFIG_GLOBAL="+os.DevNull)
	return cmd
}

// git runs git, which must succeed, and returns what it wrote.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := gitCommand(t, dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q in %s: %v\n%s", args, dir, err, out)
	}
	return string(out)
}

// gitWorks reports whether git succeeds, and what it wrote.
func gitWorks(t testing.TB, dir string, args ...string) (string, bool) {
	t.Helper()
	out, err := gitCommand(t, dir, args...).CombinedOutput()
	return string(out), err == nil
}

// plainRepository makes a repository with one commit.
func plainRepository(t testing.TB, dir string) {
	t.Helper()
	put(t, dir+"/file", "text\n")
	git(t, dir, "init", "-q")
	git(t, dir, "add", "file")
	git(t, dir, "commit", "-qm", "first")
}

// open returns the repository, which must be there.
func open(t testing.TB, work string) *Repository {
	t.Helper()
	r, err := Open(work)
	if err != nil || r == nil {
		t.Fatalf("Open(%q) = %v, %v", work, r, err)
	}
	return r
}

// find returns the path from the list.
func find(paths []Path, path string) (Path, bool) {
	for _, p := range paths {
		if p.Path == path {
			return p, true
		}
	}
	return Path{}, false
}

// want checks one path of a list by its marks: m missing, f directory, s symbolic link.
func want(t testing.TB, paths []Path, path, marks string) {
	t.Helper()
	p, ok := find(paths, path)
	if !ok {
		t.Errorf("%s is not in the list:\n%+v", path, paths)
		return
	}
	got := ""
	if p.Missing {
		got += "m"
	}
	if p.IsDir {
		got += "f"
	}
	if p.Symlink {
		got += "s"
	}
	if got != marks {
		t.Errorf("%s is %q, want %q (%s)", path, got, marks, p.Why)
	}
	if p.Why == "" {
		t.Errorf("%s has no reason", path)
	}
}
