// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A cached arena has a home with a cache of npm, and a workspace that is a
// package.
type cached struct {
	*arena
	home string
}

func newCached(t *testing.T) *cached {
	t.Helper()
	c := &cached{arena: newArena(t)}
	c.home = filepath.Join(c.base, "home")
	c.npm(t, c.home)
	write(t, c.ws+"/package.json", "{}")
	return c
}

// npm makes a cache below a home.
func (c *cached) npm(t *testing.T, home string) {
	t.Helper()
	must(t, os.MkdirAll(home+"/.npm/dir", 0o755))
	write(t, home+"/.npm/entry", "clean\n")
	write(t, home+"/.npm/gone", "clean\n")
	write(t, home+"/.npm/dir/deep", "clean\n")
	must(t, os.Symlink("entry", home+"/.npm/link"))
	must(t, syscall.Mkfifo(home+"/.npm/pipe", 0o666))
}

func (c *cached) env(more ...string) []string {
	return append([]string{"PATH=/usr/bin:/bin", "HOME=" + c.home}, more...)
}

// sh runs a line of shell and returns what it printed on both streams.
func (c *cached) sh(t *testing.T, j *job, line string) string {
	t.Helper()
	j.args = sh(line)
	if j.env == nil {
		j.env = c.env()
	}
	res, err := c.run(t, j)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return res.out + res.err
}

// in is a job in a workspace of its own.
func (c *cached) in(t *testing.T, name string) *job {
	t.Helper()
	ws := filepath.Join(c.base, name)
	must(t, os.MkdirAll(ws, 0o755))
	write(t, ws+"/package.json", "{}")
	p := bind(sandbox.WorkspaceWrite(ws), ws)
	return &job{dir: ws, policy: &p}
}

// TestCaches: a command may do with a cache what it likes, finds it again in the
// next run of its workspace, and neither the host nor another workspace does.
func TestCaches(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	unchanged(t, c.home)
	got := c.sh(t, &job{}, `cd $HOME/.npm && echo poison >entry && rm gone && mv dir moved && chmod 700 moved/deep && ln -sf /etc/passwd link &&
		echo new >new && touch -d 2001-01-01 moved/deep && mkdir -p a/b && rmdir a/b && cat entry new moved/deep`)
	if got != "poison\nnew\nclean\n" {
		t.Errorf("the first run: %q", got)
	}
	if got := c.sh(t, &job{},
		"cd $HOME/.npm && ls && cat entry"); got != "a\nentry\nlink\nmoved\nnew\npipe\npoison\n" {
		t.Errorf("the second run: %q", got)
	}
	if got := c.sh(t, c.in(t, "other"),
		"cd $HOME/.npm && ls && cat entry"); got != "dir\nentry\ngone\nlink\npipe\nclean\n" {
		t.Errorf("another workspace: %q", got)
	}
	deeper := &job{dir: c.ws + "/dir"}
	if got := c.sh(t, deeper, "cat $HOME/.npm/entry"); got != "poison\n" {
		t.Errorf("a directory of the workspace: %q", got)
	}
}

// TestCacheClasses: what a run writes is there for those that may do the same, shown to those
// that may do less, and never seen by those that may do more. It holds as well where the host has
// no cache, so that a variable names a private directory.
func TestCacheClasses(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, home := range []bool{true, false} {
		t.Run(fmt.Sprintf("the host has a cache %v", home), func(t *testing.T) {
			c := newCached(t)
			if !home {
				must(t, os.RemoveAll(c.home+"/.npm"))
			}
			policies := map[string]sandbox.Policy{
				"none": c.policy(), "proxy": c.policy().WithNetwork(sandbox.NetworkProxy), "host": c.policy().WithNetwork(sandbox.NetworkHost),
				"reads": bind(sandbox.ReadOnly(), c.ws), "reads with network": bind(sandbox.ReadOnly(), c.ws).WithNetwork(sandbox.NetworkHost),
				"git": c.policy().With(sandbox.Grant{Name: "git"}), "more": c.policy().WithEntries(sandbox.PathEntry(c.out+"/dir", sandbox.LevelWrite)),
				"less": c.policy().WithEntries(shut(c.out + "/dir")),
			}
			all := []string{"none", "proxy", "host", "reads", "reads with network", "git", "more",
				"less", "unix"}
			run := func(name, line string) string {
				p, j := policies[name], &job{}
				if j.policy = &p; name == "unix" {
					j.policy, j.allow = nil, []string{"unix"}
				}
				return c.sh(t, j, "cd ${npm_config_cache:-$HOME/.npm} && "+line)
			}
			for _, name := range all {
				if got := run(name, "echo "+strings.Fields(name)[0]+" >own; echo x >'of "+name+
					"'; cat own"); !strings.HasSuffix(got, strings.Fields(name)[0]+"\n") {
					t.Errorf("%s writes: %q", name, got)
				}
			}
			for name, want := range map[string][]string{
				"none": {"host", "none", "proxy"}, "proxy": {"host", "proxy"}, "host": {"host"}, "reads": {"host", "none", "proxy"},
				"reads with network": {"host"}, "git": {"git"}, "more": {"more"}, "less": {"less"}, "unix": {"unix"},
			} {
				got := run(name, "ls -d of*")
				if want := "of " + strings.Join(want, "\nof ") + "\n"; got != want {
					t.Errorf("%s sees %q, want %q", name, got, want)
				}
			}
			if got := run("none", "cat own"); got != "none\n" && home {
				t.Errorf("its own files do not come first: %q", got)
			}
			list, err := caches.List(c.base + "/state/sallyport")
			if err != nil || len(list) != 1 || list[0].InUse {
				t.Errorf("the list is %v, %v", list, err)
			}
			done, err := caches.Clear(c.base+"/state/sallyport", "")
			if left, _ := os.ReadDir(c.base + "/state/sallyport/caches"); err != nil ||
				len(done.Removed) != 1 || len(left) != 0 {
				t.Errorf("cleared: %v, %v; left %v", done, err, left)
			}
		})
	}
}

// TestCacheOnce: a run that may not write leaves nothing in the state directory, also when it was
// killed and the next one begins.
func TestCacheOnce(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	unchanged(t, c.home)
	policy := bind(sandbox.ReadOnly(), c.ws)
	const line = "cd $HOME/.npm; ls -d new* dir 2>/dev/null; echo x >new && mkdir -p new-dir/in && chmod 000 new-dir . && echo written"
	for range 2 {
		if got := c.sh(t, &job{policy: &policy}, line); got != "dir\nwritten\n" {
			t.Errorf("%q", got)
		}
		slots, err := filepath.Glob(c.base + "/state/sallyport/caches/*/once-0/*")
		if err != nil || len(slots) != 0 {
			t.Errorf("left: %v, %v", slots, err)
		}
	}
	slots, err := filepath.Glob(c.base + "/state/sallyport/caches/*/once-0")
	if err != nil || len(slots) != 1 {
		t.Fatalf("%v, %v", slots, err)
	}
	must(t, os.MkdirAll(slots[0]+"/npm/upper/new-dir", 0o755))
	if got := c.sh(t, &job{policy: &policy}, line); got != "dir\nwritten\n" {
		t.Errorf("after a run that was killed: %q", got)
	}
}

// TestCacheWalls: an overlay opens nothing but itself.
func TestCacheWalls(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	unchanged(t, c.home, c.out)
	state := filepath.Join(c.base, "state")
	for _, l := range []struct{ name, line string }{
		{"the directory above", "echo x >$HOME/x"},
		{"the directory itself is a mount", "mv $HOME/.npm $HOME/.npm2"},
		{"through a link", "ln -s $1/canary $HOME/.npm/out && echo x >$HOME/.npm/out"},
		{"a hard link into it", "ln $1/canary $HOME/.npm/hard"},
		{"the upper directory", "ls $2/sallyport/caches"},
		{"the state directory", "echo x >$2/sallyport/x"},
		{"set-id bits", "cp /bin/true $HOME/.npm/t && chmod u+s $HOME/.npm/t"},
		{"a device", "mknod $HOME/.npm/null c 1 3"},
		{"a mark of what was removed", "mknod $HOME/.npm/white c 0 0"},
	} {
		t.Run(l.name, func(t *testing.T) {
			res, err := c.run(t, &job{args: sh(l.line, c.out, state), env: c.env()})
			if err != nil || res.code == 0 {
				t.Errorf("%q ended with %d, %v: %s%s", l.line, res.code, err, res.out, res.err)
			}
		})
	}
}

// TestCachePipe: a named pipe that lies in a cache leads to nobody outside.
func TestCachePipe(t *testing.T) {
	c := newCached(t)
	outside, err := syscall.Open(c.home+"/.npm/pipe", syscall.O_RDWR|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	must(t, err)
	defer syscall.Close(outside)
	c.sh(t, &job{}, "exec 3<>$HOME/.npm/pipe; echo leak >&3")
	if n, err := syscall.Read(outside, make([]byte, 8)); !errors.Is(err, syscall.EAGAIN) {
		t.Errorf("%d bytes came out, %v", n, err)
	}
}

// TestNoCaches: nothing is added, and the host's cache is read-only.
func TestNoCaches(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	unchanged(t, c.home)
	r := c.request(&job{args: sh("echo x >$HOME/.npm/entry"), env: c.env()})
	r.NoCaches = true
	if got := runOne(t, c.host, r); got == "" {
		t.Error("the cache could be written to")
	}
	if _, err := os.Lstat(c.base + "/state/sallyport/caches"); err == nil {
		t.Error("a layer was made")
	}
}

// runOne runs a request and returns its standard error.
func runOne(t *testing.T, h *Host, r *executor.Spec) string {
	t.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	errR, errW := pipe(t)
	c, err := h.Start(context.Background(), r, [3]*os.File{null, null, errW})
	errW.Close()
	must(t, err)
	text := drain(errR)
	_, _, _ = c.Wait()
	must(t, c.WaitAll())
	must(t, c.Close(new(executor.Exit)))
	return <-text
}

// TestCachePlaces: what the policy says about a place counts more than the cache.
func TestCachePlaces(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const private = "-plain/npm"
	for _, p := range []struct {
		name   string
		policy func(c *cached) sandbox.Policy
		env    []string // beside HOME and PATH
		tmp    string
		before func(t *testing.T, c *cached)
		line   string
		want   string // with NPM for the host's cache; empty: see writes
		cache  string // part of npm_config_cache
	}{
		{name: "denied", line: "ls NPM 2>/dev/null; echo $npm_config_cache; echo x >$npm_config_cache/x && echo ok", cache: private, want: "ok",
			policy: func(c *cached) sandbox.Policy { return c.policy().WithEntries(shut(c.home)) }},
		{name: "something in it denied", line: "cat NPM/entry; cat NPM/dir/deep 2>/dev/null; echo $npm_config_cache", cache: private, want: "clean",
			policy: func(c *cached) sandbox.Policy {
				return c.policy().WithEntries(shut(c.home +
					"/.npm/dir"))
			}},
		{name: "read-only by name", line: "echo x >NPM/x || echo $npm_config_cache", cache: private, want: "Read-only",
			policy: func(c *cached) sandbox.Policy {
				return c.policy().WithEntries(sandbox.PathEntry(c.home+"/.npm", sandbox.LevelRead))
			}},
		{name: "no cache on the host", line: "ls NPM; echo x >$npm_config_cache/x && echo $npm_config_cache", cache: private,
			before: func(t *testing.T, c *cached) { must(t, os.RemoveAll(c.home+"/.npm")) }},
		{name: "a file in its place", line: "cat NPM; echo $npm_config_cache", cache: private, want: "file",
			before: func(t *testing.T, c *cached) {
				must(t, os.RemoveAll(c.home+"/.npm"))
				write(t, c.home+"/.npm", "file\n")
			}},
		{name: "moved by a variable", line: "cat $npm_config_cache/entry; echo x >$npm_config_cache/entry && echo x >>NPM/entry || echo ro", want: "ro",
			cache: "", env: []string{"npm_config_cache=HOME/moved"},
			before: func(t *testing.T, c *cached) {
				must(t, os.Mkdir(c.home+"/moved", 0o755))
				write(t, c.home+"/moved/entry", "moved\n")
			}},
		{name: "a link outside of the roots", line: "cat NPM/entry; echo x >NPM/entry && cat NPM/entry", want: "clean\nx",
			before: func(t *testing.T, c *cached) {
				must(t, os.Rename(c.home+"/.npm", c.home+"/real"))
				must(t, os.Symlink("real", c.home+"/.npm"))
			}},
		{name: "the host's /tmp", tmp: "host", line: "echo x >NPM/entry; cat NPM/entry; ls STATE/sallyport", want: "x\n"},
		{name: "no home", env: []string{"HOME="}, line: "echo $npm_config_cache", cache: private},
	} {
		t.Run(p.name, func(t *testing.T) {
			c := newCached(t)
			if p.before != nil {
				p.before(t, c)
			}
			unchanged(t, c.home)
			j := &job{tmp: p.tmp, env: c.env()}
			for _, e := range p.env {
				j.env = append(j.env, strings.Replace(e, "HOME/", c.home+"/", 1))
			}
			if slices.Contains(p.env, "HOME=") {
				j.env = []string{"PATH=/usr/bin:/bin"}
			}
			if p.policy != nil {
				policy := p.policy(c)
				j.policy = &policy
			}
			line := strings.NewReplacer("NPM", c.home+"/.npm", "STATE", c.base+"/state").Replace(p.line)
			got := c.sh(t, j, line)
			if !strings.Contains(got, p.want) || !strings.Contains(got, p.cache) || p.cache == "" &&
				strings.Contains(got, private) {
				t.Errorf("%q printed %q", line, got)
			}
		})
	}
}

func shut(path string) sandbox.Entry { return sandbox.PathEntry(path, sandbox.LevelDeny) }

// TestCacheInWorkspace: with the home as workspace the caches in it are still not
// the command's to change, with an overlay or without one.
func TestCacheInWorkspace(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	write(t, c.home+"/package.json", "{}")
	unchanged(t, c.home+"/.npm")
	policy := bind(sandbox.WorkspaceWrite(c.home), c.home)
	j := &job{dir: c.home, policy: &policy}
	if got := c.sh(t, j, "echo x >.npm/entry; cat .npm/entry; echo y >other; cat other"); got != "x\ny\n" {
		t.Errorf("with an overlay: %q", got)
	}
	// A rule below it leaves no place for an overlay.
	narrow := policy.WithEntries(shut(c.home + "/.npm/dir"))
	j = &job{dir: c.home, policy: &narrow}
	if got := c.sh(t, j, "echo x >.npm/entry || cat .npm/entry; echo $npm_config_cache"); !strings.Contains(got, "Read-only") || !strings.Contains(got, "-plain/npm") {
		t.Errorf("without one: %q", got)
	}
	// Nor is a link in a root followed, which a command could have put there.
	must(t, os.Symlink(".npm", c.home+"/link"))
	_, err := c.run(t, &job{dir: c.home, policy: &policy, args: sh("true"),
		env: c.env("npm_config_cache=" + c.home + "/link")})
	var unsupported *sandbox.UnsupportedError
	if !errors.As(err, &unsupported) || !strings.Contains(unsupported.Have, c.home+"/link") {
		t.Errorf("a link in a root: %v", err)
	}
}

// TestCacheWithoutOverlay: where the kernel makes no overlay, the second try of
// the same start takes the variables, and the next start does so at once.
func TestCacheWithoutOverlay(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	unchanged(t, c.home)
	r := c.request(&job{args: sh("echo x >$npm_config_cache/x && test ! -w $HOME/.npm/entry"), env: c.env()})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	must(t, err)
	defer null.Close()
	at := c.host.attempt(plan.LevelNative, r, [3]*os.File{null, null, null})
	p, err := at.plan()
	must(t, err)
	i := slices.IndexFunc(p.Script.Steps, func(s launch.Step) bool { return s.Op == launch.OpOverlay })
	if i < 0 {
		t.Fatal("no overlay was planned")
	}
	// on another file system, which the kernel refuses
	p.Script.Steps[i].Layers.Work = launch.Layer{Path: "/dev/shm"}
	_, err = at.launch(p)
	at.release()
	if err = at.learn(err, maxTries); !errors.Is(err, errPlanAgain) {
		t.Fatalf("got %v, want another plan", err)
	}
	if got := runOne(t, c.host, r); got != "" {
		t.Errorf("the second try: %s", got)
	}
	at = c.host.attempt(plan.LevelNative, r, [3]*os.File{null, null, null})
	p, err = at.plan()
	must(t, err)
	at.release()
	if text := p.Script.String(); !strings.Contains(text,
		"toolchain cache npm, private: the kernel makes no overlay") {
		t.Errorf("the script does not say why:\n%s", text)
	}
	// A directory that was replaced is no reason to do without: the run is refused.
	if c.host.caches.Learn(&launch.StepError{Step: launch.Step{Op: launch.OpOverlay, Path: "/x"},
		Call: "compare"}) {
		t.Error("a replaced directory counts as one without overlays")
	}
}

// TestCacheSlots: runs of one workspace at the same time do not share a layer.
func TestCacheSlots(t *testing.T) {
	testenv.RunAsOrdinary(t)
	const runs = 20
	c := newCached(t)
	unchanged(t, c.home)
	type running struct {
		child *Child
		in    *os.File
		out   <-chan string
		begun *os.File
	}
	var all []running
	for i := range runs {
		inR, inW := pipe(t)
		must(t, syscall.SetNonblock(int(inR.Fd()), false)) // or the shell's read would not wait
		outR, outW := pipe(t)
		begunR, begunW := pipe(t)
		r := c.request(&job{args: sh(fmt.Sprintf("echo %d >$HOME/.npm/id && echo begun >&2; read line; cat $HOME/.npm/id", i)), env: c.env()})
		child, err := c.host.Start(context.Background(), r, [3]*os.File{inR, outW, begunW})
		must(t, err)
		for _, f := range []*os.File{inR, outW, begunW} {
			f.Close()
		}
		all = append(all, running{child: child, in: inW, out: drain(outR), begun: begunR})
	}
	for i, r := range all {
		if b := make([]byte, 5); !readFull(r.begun, b) || string(b) != "begun" {
			t.Errorf("run %d says %q", i, b)
		}
		r.begun.Close()
	}
	for i, r := range all {
		r.in.Close()
		code, _, err := r.child.Wait()
		must(t, errors.Join(err, r.child.WaitAll(), r.child.Close(new(executor.Exit))))
		if got := <-r.out; got != fmt.Sprintf("%d\n", i) || code != 0 {
			t.Errorf("run %d ended with %d and finds %q", i, code, got)
		}
	}
	list, err := caches.List(c.base + "/state/sallyport")
	if err != nil || len(list) != 1 || list[0].Files != runs || list[0].InUse {
		t.Errorf("the list is %v, %v", list, err)
	}
}

func readFull(f *os.File, b []byte) bool {
	for n := 0; n < len(b); {
		m, err := f.Read(b[n:])
		if err != nil {
			return false
		}
		n += m
	}
	return true
}

// TestCacheForeignOwner: a file of another owner, whom the command's namespace does
// not know, can be read and removed but not changed, as outside for everybody but
// the real root.
func TestCacheForeignOwner(t *testing.T) {
	testenv.NeedRoot(t)
	c := newCached(t)
	must(t, os.Chown(c.home+"/.npm/entry", 12345, 12345))
	must(t, os.Chmod(c.home+"/.npm/entry", 0o666))
	must(t, os.Chown(c.home+"/.npm/dir", 12345, 12345))
	must(t, os.Chmod(c.home+"/.npm/dir", 0o777))
	unchanged(t, c.home)
	for _, l := range []struct{ line, want string }{
		{"cat entry", "clean"},
		{"echo x >>entry", "Value too large"},
		{"touch dir/new", "Value too large"},
		{"rm -f entry && echo mine >entry && cat entry", "mine"},
	} {
		if got := c.sh(t, &job{}, "cd $HOME/.npm; "+l.line); !strings.Contains(got, l.want) {
			t.Errorf("%s: %q, want %q", l.line, got, l.want)
		}
	}
}

// TestCacheFacts: the plan names the directories with what stands there.
func TestCacheFacts(t *testing.T) {
	c := newCached(t)
	r := c.request(&job{args: sh("true"), env: c.env()})
	at := c.host.attempt(plan.LevelNative, r, [3]*os.File{os.Stdin, os.Stdout, os.Stderr})
	p, err := at.plan()
	must(t, err)
	defer at.release()
	i := slices.IndexFunc(p.Script.Steps, func(s launch.Step) bool { return s.Op == launch.OpOverlay })
	if i < 0 {
		t.Fatalf("no overlay:\n%s", p.Script.String())
	}
	s := p.Script.Steps[i]
	for name, id := range map[string]launch.ID{s.Path: s.ID, s.Layers.Upper.Path: s.Layers.Upper.ID,
		s.Layers.Work.Path: s.Layers.Work.ID} {
		if spot, err := hostfacts.Look(name); err != nil || spot.ID != id || spot.Kind != plan.KindDirectory {
			t.Errorf("%s is planned as %v and is %v, %v", name, id, spot, err)
		}
	}
	if at.caches.Hold() == nil {
		t.Error("nothing holds the slot")
	}
}
