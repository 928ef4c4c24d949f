// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// staged runs a line of shell in a stage, and returns what it printed and left.
func (a *arena) staged(t *testing.T, j *job, line string) (string, *executor.Staged) {
	t.Helper()
	j.args, j.after = sh(line), new(executor.Exit)
	if j.stage == nil {
		j.stage = &executor.Staging{Name: "test"}
	}
	res, err := a.run(t, j)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	if w := j.after.Sandbox.Warnings; len(w) > 0 {
		t.Errorf("%s: warnings %q", line, w)
	}
	if j.after.Stage == nil {
		t.Fatalf("%s: no stage", line)
	}
	return res.out + res.err, j.after.Stage
}

// changesIn are changes as short words.
func changesIn(s *executor.Staged) string {
	var out []string
	for _, c := range s.Changes {
		out = append(out, c.Kind+" "+c.Path)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestStaged: the host's tree stays as it is, whatever a command does, and the next command of the stage sees
// it.
func TestStaged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range []struct{ name, line, want, then, sees string }{
		{"write", "echo new >file", "modified file", "cat file", "new"},
		{"make", "echo new >new", "added new", "cat new", "new"},
		{"delete", "rm file", "deleted file", "ls", "dir"},
		{"delete a directory", "rm -r dir", "deleted dir", "ls", "file"},
		{"rename", "mv file moved", "added moved, deleted file", "cat moved", "hello"},
		{"modes", "chmod 600 file", "mode file", "stat -c %a file", "600"},
		{"mkdir", "mkdir -p a/b && echo x >a/b/c", "added a/b/c", "cat a/b/c", "x"},
		{"link", "ln -s dir link && ln file hard", "added hard, added link", "readlink link", "dir"},
		{"replace", "rm -r dir && echo x >dir", "type dir", "cat dir", "x"},
		{"nothing", "cat file >/dev/null; echo hello | tr -d '\\n' >file; touch -r dir dir", "", "cat file",
			"hello"},
		{"times", "touch -d 2001-01-01 file", "", "stat -c %Y file", ""},
		{"attack outside", "echo x >../out/canary; rm -r ../out/dir; echo 1 >fine", "added fine",
			"cat ../out/canary", "canary"},
		{"protected", "echo x >.git/config; mv .git g; rm -r .git; mkdir .codex; cat .git/HEAD", "",
			"cat .git/HEAD",
			"ref: refs/heads/main"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			unchanged(t, a.ws, a.out)
			out, left := a.staged(t, &job{}, test.line)
			if got := changesIn(left); got != test.want && test.want != "" ||
				left.Total != len(left.Changes) {
				t.Errorf("changes %q, want %q\n%s", got, test.want, out)
			}
			got, _ := a.staged(t, &job{}, test.then)
			if test.sees != "" && trimmed(got) != test.sees {
				t.Errorf("the second command sees %q, want %q\n%s", got, test.sees, out)
			}
			res, err := a.run(t, &job{args: sh("cat file && ls -A")})
			must(t, err)
			if res.out != "hello.git\ndir\nfile\n" {
				t.Errorf("without the stage: %q", res.out+res.err)
			}
		})
	}
}

// TestStagedEqual: a file that was written again with what it held is none of the stage's, so that what the user
// writes later is seen there, and is no conflict.
func TestStagedEqual(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	_, left := a.staged(t, &job{}, "cp file copy && cat copy >file && rm copy && echo x >new")
	if got := changesIn(left); got != "added new" {
		t.Fatalf("changes %q", got)
	}
	must(t, os.WriteFile(filepath.Join(a.ws, "file"), []byte("edited"), 0o600))
	out, left := a.staged(t, &job{}, "cat file; echo more >>file")
	if got := changesIn(left); trimmed(out) != "edited" || got != "modified file, added new" &&
		got != "added new, modified file" {
		t.Errorf("the next command sees %q, changes %q", out, got)
	}
}

// stagedPolicy is one for the arena with entries.
func (a *arena) with(entries ...sandbox.Entry) *sandbox.Policy {
	p := a.policy().WithEntries(entries...)
	return &p
}

func level(l sandbox.Level, names ...string) (out []sandbox.Entry) {
	for _, n := range names {
		out = append(out, sandbox.PathEntry(n, l))
	}
	return out
}

// TestStagedRoots: roots that lie in each other, single files, read-only and denied paths, and /tmp.
func TestStagedRoots(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, test := range []struct {
		name   string
		job    func(a *arena) *job
		line   string
		want   string
		output string
	}{
		{"two roots",
			func(a *arena) *job { return &job{policy: a.with(level(sandbox.LevelWrite, a.out+"/dir")...)} },
			"echo x >../out/dir/deep; echo y >file; cat ../out/dir/deep", "modified deep, modified file",
			"x"},
		{"a root in a root",
			func(a *arena) *job { return &job{policy: a.with(level(sandbox.LevelWrite, a.ws+"/dir")...)} },
			"echo x >dir/in; cat dir/in", "added dir/in", "x"},
		{"read-only between", func(a *arena) *job {
			mustNot(os.MkdirAll(a.ws+"/ro/rw", 0o755))
			return &job{policy: a.with(append(level(sandbox.LevelRead, a.ws+"/ro"),
				level(sandbox.LevelWrite, a.ws+"/ro/rw")...)...)}
		}, "echo x >ro/rw/in; echo y >ro/no; cat ro/rw/in", "added ro/rw/in", "x"},
		{"denied",
			func(a *arena) *job { return &job{policy: a.with(level(sandbox.LevelDeny, a.ws+"/dir")...)} },
			"ls dir; echo x >dir/in; rmdir dir; mv dir d; echo done", "", "done"},
		{"denied and opened", func(a *arena) *job {
			mustNot(os.MkdirAll(a.ws+"/no/yes", 0o755))
			return &job{policy: a.with(append(level(sandbox.LevelDeny, a.ws+"/no"),
				level(sandbox.LevelWrite, a.ws+"/no/yes")...)...)}
		}, "echo x >no/yes/in; cat no/yes/in", "added no/yes/in", "x"},
		{"a single file", func(a *arena) *job {
			return &job{policy: a.with(level(sandbox.LevelWrite, a.out+"/canary")...)}
		}, "echo x >../out/canary; echo y >../out/other; cat ../out/canary ../out/other", "modified canary",
			"x\nother"},
		{"a directory at /tmp", func(a *arena) *job { return &job{tmp: a.out + "/dir"} },
			"echo x >/tmp/deep; cat /tmp/deep", "modified deep", "x"},
		{"a directory of the workspace at /tmp", func(a *arena) *job { return &job{tmp: a.ws + "/dir"} },
			"echo x >/tmp/in; cat dir/in", "added dir/in", "x"},
		{"the private /tmp", func(*arena) *job { return &job{} }, "echo x >/tmp/in; cat /tmp/in", "", "x"},
		{"a minimal root", func(a *arena) *job {
			p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone, slices.Concat(
				level(sandbox.LevelWrite, a.ws), level(sandbox.LevelRead, "/usr", "/bin", "/lib", "/lib64",
					"/etc"))...)
			mustNot(err)
			p = bind(p, a.ws)
			return &job{policy: &p}
		}, "echo x >file; cat file; ls ../out", "modified file", "x"},
		{"hard links protected", func(a *arena) *job {
			mustNot(os.Link(a.ws+"/file", a.out+"/dir/hard"))
			return &job{links: true}
		}, "echo x >file; cat file", "modified file", "x"},
		{"hard links", func(a *arena) *job {
			mustNot(os.Link(a.ws+"/file", a.out+"/dir/hard"))
			return &job{}
		}, "echo x >file; cat file", "modified file", "x"},
		{"private caches", func(a *arena) *job {
			mustNot(os.WriteFile(a.ws+"/go.mod", []byte("module m\n"), 0o644))
			return &job{env: []string{"PATH=/usr/bin:/bin", "HOME=" + a.base + "/none"}}
		}, "echo x >$GOCACHE/new; cat $GOCACHE/new", "", "x"},
		{"unobserved", func(*arena) *job { return &job{blind: true} }, "mkdir .codex; echo x >file; cat file",
			"added .codex, modified file", "x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			j := test.job(a)
			unchanged(t, a.ws, a.out)
			out, left := a.staged(t, j, test.line)
			if changesIn(left) != test.want || !strings.HasPrefix(out, test.output) &&
				!strings.HasSuffix(trimmed(out), test.output) {
				t.Errorf("changes %q, want %q; output %q, want %q", changesIn(left), test.want, out,
					test.output)
			}
			if len(j.after.New) > 0 || len(j.after.HardLinks) > 0 || len(j.after.Quarantined) > 0 {
				t.Errorf("the host's tree is reported: %+v", j.after)
			}
		})
	}
}

// TestStagedPolicies: a command that may do less than an earlier one finds its walls over what that one has
// left.
func TestStagedPolicies(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := func(l sandbox.Level) func(a *arena) *sandbox.Policy {
		return func(a *arena) *sandbox.Policy { return a.with(level(l, a.ws+"/dir")...) }
	}
	readOnly := func(a *arena) *sandbox.Policy {
		p := bind(sandbox.ReadOnly(), a.ws)
		return &p
	}
	narrower := func(a *arena) *sandbox.Policy {
		p := bind(sandbox.WorkspaceWrite(a.ws+"/dir"), a.ws)
		return &p
	}
	for _, test := range []struct {
		name, first string
		policy      func(a *arena) *sandbox.Policy
		line, want  string
	}{
		{"read-only directory that is gone", "rm -r dir", dir(sandbox.LevelRead), "ls; echo x >new; cat new",
			"file\nx"},
		{"read-only directory that is new", "rm -r dir; mkdir dir; echo x >dir/in", dir(sandbox.LevelRead),
			"cat dir/in; echo y 2>/dev/null >dir/in || echo denied", "x\ndenied"},
		{"denied directory that is a file", "rm -r dir; echo x >dir", dir(sandbox.LevelDeny),
			"cat dir 2>/dev/null || echo denied", "denied"},
		{"denied directory that is a link", "rm -r dir; ln -s ../out dir", dir(sandbox.LevelDeny),
			"echo x >dir/canary; cat dir/canary", "canary"},
		{"writable directory that is a link", "rm -r dir; ln -s ../out dir", dir(sandbox.LevelWrite),
			"echo x 2>/dev/null >dir/canary; cat dir/canary", "canary"},
		{"nothing is writable", "echo x >file", readOnly, "cat file; echo y 2>/dev/null >file || echo denied",
			"x\ndenied"},
		{"a part is writable", "echo x >file; echo x >dir/in", narrower,
			"cd dir; cat ../file in; echo y >in; cat in; echo y 2>/dev/null >../file || echo denied",
			"x\nx\ny\ndenied"},
		{"denied file below", "mkdir dir/a; echo x >dir/a/s", func(a *arena) *sandbox.Policy {
			return a.with(level(sandbox.LevelDeny, a.ws+"/dir/a/s")...)
		}, "cat dir/a/s 2>/dev/null || echo denied", "denied"},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newArena(t)
			unchanged(t, a.ws, a.out)
			a.staged(t, &job{}, test.first)
			out, _ := a.staged(t, &job{policy: test.policy(a)}, "{ "+test.line+"; } 2>/dev/null")
			if trimmed(out) != test.want {
				t.Errorf("%q, want %q", out, test.want)
			}
		})
	}
}

// TestStagedDisk: what is written in a stage counts for the limit.
func TestStagedDisk(t *testing.T) {
	testenv.NeedProgram(t, "dd")
	a := newArena(t)
	unchanged(t, a.ws)
	spec := a.request(&job{args: sh("dd if=/dev/zero of=big bs=64k count=10000; sleep 60"),
		stage: &executor.Staging{}})
	spec.Resources.Disk = 1 << 20
	c, err := a.host.Start(context.Background(), spec, nulls(t))
	must(t, err)
	exit := new(executor.Exit)
	exit.Code, exit.Signal, err = c.Wait()
	must(t, errors.Join(err, c.Kill(), c.WaitAll(), c.Close(exit)))
	if exit.Limit != executor.LimitDisk {
		t.Errorf("%+v", exit)
	}
}

func mustNot(err error) {
	if err != nil {
		panic(err)
	}
}
