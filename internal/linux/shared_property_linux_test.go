// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A probed workspace changes between commands, of which one runs in a shared sandbox and one in its own.
type probed struct {
	*arena
	home   string
	shared *Shared
	policy sandbox.Policy
	done   []string // what was changed
	fail   func(format string, a ...any)
}

// probedIn makes a workspace below an arena.
func probedIn(t *testing.T, a *arena, name string) *probed {
	t.Helper()
	b := *a
	p := &probed{arena: &b, home: a.base + "/home", fail: t.Errorf}
	b.ws = filepath.Join(a.base, name)
	for _, d := range []string{b.ws + "/sub/deep", b.ws + "/ro", b.ws + "/denied", p.home + "/.npm", p.home +
		"/.cache/go-build", p.home + "/go/pkg/mod"} {
		must(t, os.MkdirAll(d, 0o755))
	}
	write(t, b.ws+"/file", "x")
	write(t, b.ws+"/sub/a.secret", "x")
	p.policy = b.policy().WithEntries(sandbox.PathEntry(b.ws+"/ro", sandbox.LevelRead),
		sandbox.PathEntry(b.ws+"/denied", sandbox.LevelDeny),
		sandbox.PathEntry(b.out+"/other", sandbox.LevelDeny),
		sandbox.PathEntry(b.out+"/dir", sandbox.LevelWrite), sandbox.GlobEntry(b.ws+"/**/*.secret"))
	s, err := a.host.Open(t.Context(), &executor.SharedSpec{Policy: p.policy})
	must(t, err)
	p.shared = s
	return p
}

// list names all paths that are asked about.
func (p *probed) list(t *testing.T) {
	t.Helper()
	var names []string
	for _, dir := range []string{p.ws, p.out, p.home} {
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err == nil && len(names) < 400 {
				names = append(names, name)
				if d.IsDir() && dir == p.ws {
					for _, n := range []string{".git", ".codex", ".agents", ".sallyport", "go.mod", "new",
						"x.secret", "denied", "ro"} {
						names = append(names, name+"/"+n)
					}
				}
			}
			return nil
		})
	}
	slices.Sort(names)
	names = slices.Compact(names)
	write(t, p.base+"/list", strings.Join(names, "\n"))
}

// seen is what a command says about every path: whether it may read, write, make and move there.
func (p *probed) seen(t *testing.T, in *Shared) string {
	t.Helper()
	exit := new(executor.Exit)
	j := &job{in: in, policy: &p.policy, after: exit, env: []string{"PATH=/usr/bin:/bin", "HOME=" + p.home,
		"GORACE=atexit_sleep_ms=0"},
		args: []string{os.Getenv(programVar), partAttack, "probe", "list=" + p.base + "/list"}}
	res, err := p.run(t, j)
	if err != nil {
		return fmt.Sprintf("it does not start: %v", err)
	}
	return fmt.Sprintf("%s%s\nexit %d, lost %v, broken %v", res.out, res.err, res.code, res.lost, exit.Broken)
}

// machineMounts is the table of this machine's mounts.
func machineMounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	return string(text)
}

// same compares both.
func (p *probed) same(t *testing.T) {
	t.Helper()
	p.list(t)
	var alone, shared string
	undisturbed(t, func() bool { // by what others mount on this machine
		mounts := machineMounts(t)
		alone, shared = p.seen(t, nil), p.seen(t, p.shared)
		return shared == alone || machineMounts(t) == mounts
	})
	if shared != alone {
		p.fail("after %q\n%s", p.done, difference(shared, alone))
	}
	// Once more, when it begins with mounts that are known.
	undisturbed(t, func() bool {
		kept, mounts := p.kept(), machineMounts(t)
		if shared := p.seen(t, p.shared); shared != alone {
			if machineMounts(t) != mounts {
				alone = p.seen(t, nil)
				return false
			}
			p.fail("the second time, after %q\n%s", p.done, difference(shared, alone))
		}
		return p.linked() || kept == p.kept() && (kept != nil || !strings.Contains(alone, "\nexit 0"))
	})
}

// linked reports whether the workspace has a symbolic link. One at a closed name is mounted over itself, and
// such mounts are not kept.
func (p *probed) linked() (found bool) {
	_ = filepath.WalkDir(p.ws, func(_ string, d fs.DirEntry, err error) error {
		found = found || err == nil && d.Type()&fs.ModeSymlink != 0
		return nil
	})
	return found
}

// kept returns the mounts that were used last.
func (p *probed) kept() *root {
	p.shared.mu.Lock()
	defer p.shared.mu.Unlock()
	if len(p.shared.roots) == 0 {
		return nil
	}
	return p.shared.roots[0]
}

// difference shows the lines that two texts do not have in common.
func difference(shared, alone string) string {
	var b strings.Builder
	one, two := strings.Split(shared, "\n"), strings.Split(alone, "\n")
	for _, line := range one {
		if !slices.Contains(two, line) {
			fmt.Fprintf(&b, "shared: %s\n", line)
		}
	}
	for _, line := range two {
		if !slices.Contains(one, line) {
			fmt.Fprintf(&b, "alone:  %s\n", line)
		}
	}
	return b.String()
}

// probeAttacks are for the test above.
func probeAttacks() map[string]attack {
	return map[string]attack{"probe": probe}
}

// probe prints what can be done at each path of a list, and which mounts there are.
func probe(kv map[string]string) outcome {
	text, err := os.ReadFile(kv["list"])
	if err != nil {
		return bad("%v", err)
	}
	var b strings.Builder
	for name := range strings.SplitSeq(string(text), "\n") {
		fmt.Fprintf(&b, "%s %s\n", name, probeOne(name))
	}
	text, err = os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return bad("%v", err)
	}
	var mounts []string
	for line := range bytes.Lines(text) {
		w := strings.Fields(string(line))
		if i := slices.Index(w, "-"); i > 0 && len(w) > i+1 {
			mounts = append(mounts, fmt.Sprintln("mount", w[4], w[5], w[6:i], w[i+1]))
		}
	}
	slices.Sort(mounts)
	fmt.Print(b.String(), strings.Join(mounts, ""))
	return fine("probed")
}

// probeOne tries everything at one path, and takes it back.
func probeOne(name string) string {
	said := func(err error) string {
		if err == nil {
			return "yes"
		}
		return errnoName(err)
	}
	open := func(at string, flags int) error {
		fd, err := unix.Open(at, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(name, &st); err != nil {
		made := open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		if made == nil {
			_ = unix.Unlink(name)
		}
		return fmt.Sprintf("missing (%s), made: %s", errnoName(err), said(made))
	}
	out := fmt.Sprintf("kind %o, read: %s, ", st.Mode&unix.S_IFMT, said(open(name, unix.O_RDONLY)))
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		made := open(name+"/probe", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
		if made == nil {
			_ = unix.Unlink(name + "/probe")
		}
		list, err := os.ReadDir(name)
		var have []string
		for _, e := range list {
			have = append(have, e.Name())
		}
		out += fmt.Sprintf("made in it: %s, list: %s %q, ", said(made), said(errors.Unwrap(err)), have)
	} else {
		out += fmt.Sprintf("write: %s, ", said(open(name, unix.O_WRONLY|unix.O_APPEND)))
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK && filepath.Base(name) == ".git" {
		return out // whether it can be moved depends on whether it was found yet, in any sandbox
	}
	moved := unix.Rename(name, name+".moved")
	if moved == nil {
		if err := unix.Rename(name+".moved", name); err != nil {
			return out + "it was moved and does not come back: " + errnoName(err)
		}
	}
	return out + "moved: " + said(moved)
}

// A change is what the host does to a workspace. What fails has no effect.
type change struct {
	name string
	do   func(p *probed)
}

// layGit makes what git init does.
func layGit(dir string) {
	for _, d := range []string{"/hooks", "/objects", "/refs/heads", "/info"} {
		_ = os.MkdirAll(dir+d, 0o755)
	}
	_ = os.WriteFile(dir+"/HEAD", []byte("ref: refs/heads/main\n"), 0o644)
	_ = os.WriteFile(dir+"/config", []byte("[core]\n\tbare = false\n"), 0o644)
}

func changesOf() []change {
	var all []change
	add := func(name string, do func(p *probed)) { all = append(all, change{name, do}) }
	addRepositories(add)
	addFiles(add)
	addDirectories(add)
	return all
}

func addRepositories(add func(string, func(*probed))) {
	for _, d := range []string{"", "/sub", "/sub/deep", "/ro"} {
		add("git init"+d, func(p *probed) { layGit(p.ws + d + "/.git") })
		add("rm -r .git in"+d, func(p *probed) { _ = os.RemoveAll(p.ws + d + "/.git") })
		add("new .git in"+d, func(p *probed) {
			_ = os.RemoveAll(p.ws + d + "/.git")
			layGit(p.ws + d + "/.git")
		})
		add("a file .git in"+d, func(p *probed) {
			_ = os.RemoveAll(p.ws + d + "/.git")
			layGit(p.base + "/elsewhere")
			_ = os.WriteFile(p.ws+d+"/.git", []byte("gitdir: "+p.base+"/elsewhere\n"), 0o644)
		})
		add("a link .git in"+d, func(p *probed) {
			_ = os.RemoveAll(p.ws + d + "/.git")
			_ = os.Symlink("../out", p.ws+d+"/.git")
		})
		add("config replaced in"+d, func(p *probed) {
			_ = os.WriteFile(p.ws+d+"/.git/config.new", []byte("[core]\n"), 0o644)
			_ = os.Rename(p.ws+d+"/.git/config.new", p.ws+d+"/.git/config")
		})
	}
}

func addFiles(add func(string, func(*probed))) {
	for _, n := range []string{".codex", ".agents", ".sallyport"} {
		add("mkdir "+n, func(p *probed) { _ = os.Mkdir(p.ws+"/"+n, 0o755) })
		add("rm "+n, func(p *probed) { _ = os.RemoveAll(p.ws + "/" + n) })
		add("new "+n, func(p *probed) {
			_ = os.RemoveAll(p.ws + "/" + n)
			_ = os.Mkdir(p.ws+"/"+n, 0o755)
		})
		add("a file "+n, func(p *probed) {
			_ = os.RemoveAll(p.ws + "/" + n)
			_ = os.WriteFile(p.ws+"/"+n, nil, 0o644)
		})
	}
	for _, n := range []string{"/go.mod", "/package.json", "/sub/go.mod", "/Cargo.toml",
		"/.vscode/tasks.json", "/.envrc", "/sub/b.secret", "/x.secret", "/denied/f", "/ro/f"} {
		add("write "+n, func(p *probed) {
			_ = os.MkdirAll(filepath.Dir(p.ws+n), 0o755)
			_ = os.WriteFile(p.ws+n, []byte("{}"), 0o644)
		})
		add("rm "+n, func(p *probed) { _ = os.Remove(p.ws + n) })
		add("replace "+n, func(p *probed) {
			_ = os.WriteFile(p.base+"/newer", []byte("{}"), 0o644)
			_ = os.Rename(p.base+"/newer", p.ws+n)
		})
	}
}

func addDirectories(add func(string, func(*probed))) {
	for _, n := range []string{"/sub", "/sub/deep", "/ro", "/denied"} {
		add("move away "+n, func(p *probed) { _ = os.Rename(p.ws+n, p.ws+n+"-away") })
		add("move back "+n, func(p *probed) { _ = os.Rename(p.ws+n+"-away", p.ws+n) })
		add("new "+n, func(p *probed) {
			_ = os.RemoveAll(p.ws + n)
			_ = os.MkdirAll(p.ws+n, 0o755)
		})
		add("a link "+n, func(p *probed) {
			_ = os.RemoveAll(p.ws + n)
			_ = os.Symlink("../out", p.ws+n)
		})
		add("a file "+n, func(p *probed) {
			_ = os.RemoveAll(p.ws + n)
			_ = os.WriteFile(p.ws+n, nil, 0o644)
		})
	}
	add("exchange sub and ro", func(p *probed) {
		_ = unix.Renameat2(unix.AT_FDCWD, p.ws+"/sub", unix.AT_FDCWD, p.ws+"/ro", unix.RENAME_EXCHANGE)
	})
	add("exchange denied and sub", func(p *probed) {
		_ = unix.Renameat2(unix.AT_FDCWD, p.ws+"/sub", unix.AT_FDCWD, p.ws+"/denied", unix.RENAME_EXCHANGE)
	})
	add("a new workspace", func(p *probed) {
		_ = os.RemoveAll(p.ws + "-old")
		_ = os.Rename(p.ws, p.ws+"-old")
		_ = os.MkdirAll(p.ws+"/sub/deep", 0o755)
	})
	add("the old workspace", func(p *probed) {
		_ = unix.Renameat2(unix.AT_FDCWD, p.ws+"-old", unix.AT_FDCWD, p.ws, unix.RENAME_EXCHANGE)
	})
	for _, n := range []string{"/.npm", "/.cache/go-build", "/go/pkg/mod", "/.cache"} {
		add("rm cache "+n, func(p *probed) { _ = os.RemoveAll(p.home + n) })
		add("mkdir cache "+n, func(p *probed) { _ = os.MkdirAll(p.home+n, 0o755) })
	}
	add("other replaced", func(p *probed) {
		_ = os.WriteFile(p.base+"/newer", []byte("x"), 0o644)
		_ = os.Rename(p.base+"/newer", p.out+"/other")
	})
	add("new out/dir", func(p *probed) {
		_ = os.RemoveAll(p.out + "/dir")
		_ = os.Mkdir(p.out+"/dir", 0o755)
	})
}

// TestSharedSeesChanges: after each change of the workspace a command that begins with known mounts may
// do at each path what one with new mounts may.
func TestSharedSeesChanges(t *testing.T) {
	testenv.RunAsOrdinary(t)
	a := newArena(t)
	every := 12 / testenv.Rounds(1, 12) // all as root in the long form
	for i, c := range changesOf() {
		if i%every != 0 {
			continue // the random ones below have all
		}
		t.Run(c.name, func(t *testing.T) {
			p := probedIn(t, a, fmt.Sprintf("named-%d", i))
			defer p.close(t)
			p.same(t)
			p.done = append(p.done, c.name)
			c.do(p)
			p.same(t)
		})
	}
}

// TestSharedSeesRandomChanges does several changes before each command.
func TestSharedSeesRandomChanges(t *testing.T) {
	testenv.RunAsOrdinary(t)
	old := flag.Lookup("rapid.checks").Value.String()
	must(t, flag.Set("rapid.checks", strconv.Itoa(testenv.Rounds(5, 20))))
	must(t, flag.Set("rapid.nofailfile", "true")) // the seed is printed
	defer func() { must(t, flag.Set("rapid.checks", old)) }()
	a := newArena(t)
	all := changesOf()
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		p := probedIn(t, a, fmt.Sprintf("random-%d", round))
		defer p.close(t)
		p.fail = r.Fatalf
		for range rapid.IntRange(2, 4).Draw(r, "commands") {
			for range rapid.IntRange(1, 3).Draw(r, "changes") {
				c := rapid.SampledFrom(all).Draw(r, "change")
				p.done = append(p.done, c.name)
				c.do(p)
			}
			p.done = append(p.done, "run")
			p.same(t)
		}
	})
}

func (p *probed) close(t *testing.T) {
	t.Helper()
	if err := p.shared.Close(); err != nil {
		t.Error(err)
	}
}

// TestSharedInodeUsedAgain: another directory that has the number of one that was removed is not taken for
// it. The mount over the first one has gone with it.
func TestSharedInodeUsedAgain(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, name := range []string{".git", ".codex", "denied", "ro", "sub/.git", ""} {
		t.Run("at "+name, func(t *testing.T) {
			a := newArena(t)
			p := probedIn(t, a, "again")
			defer p.close(t)
			at := filepath.Join(p.ws, name)
			must(t, os.MkdirAll(at, 0o755))
			if strings.HasSuffix(name, ".git") {
				layGit(at)
			}
			p.same(t)
			number := func() uint64 {
				var st unix.Stat_t
				must(t, unix.Stat(at, &st))
				return st.Ino
			}
			first := number()
			again := false
			for range 40 {
				must(t, os.RemoveAll(at))
				must(t, os.MkdirAll(at, 0o755))
				if again = number() == first; again {
					break
				}
			}
			if !again {
				t.Log("this file system does not use numbers again")
			}
			if strings.HasSuffix(name, ".git") {
				layGit(at)
			}
			if name == "" {
				must(t, os.MkdirAll(p.ws+"/sub/deep", 0o755))
			}
			p.done = append(p.done, "removed and made again")
			p.same(t)
		})
	}
}
