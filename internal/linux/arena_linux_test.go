// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/network"

	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An arena is a workspace, an area outside of it and a Host.
type arena struct {
	host *Host
	base string // holds all of the below; not in /tmp, which commands have for themselves
	ws   string // writable
	out  string // must stay as it is
}

// patience bounds every wait for an event that must come.
const patience = time.Minute

// newArena makes an arena that ends with t.
func newArena(t testing.TB) *arena {
	t.Helper()
	testenv.NeedUserNS(t)
	testenv.NeedLandlock(t, 6)
	testenv.NeedSeccomp(t)
	base, err := os.MkdirTemp("/var/tmp", "sallyport-arena-")
	must(t, err)
	t.Cleanup(func() {
		if err := safefile.RemoveTreePath(base); err != nil {
			t.Error(err)
		}
	})
	must(t, os.Chmod(base, 0o755))
	t.Setenv("XDG_STATE_HOME", filepath.Join(base, "state"))
	a := &arena{host: new(Host), base: base, ws: filepath.Join(base, "ws"), out: filepath.Join(base, "out")}
	a.host.Facts().GroupsV1 = false // TestGroupsV1 is about the other machines
	t.Cleanup(func() {
		if err := a.host.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, d := range []string{a.ws, a.ws + "/dir", a.ws + "/.git", a.ws + "/.git/hooks", a.out,
		a.out + "/dir"} {
		must(t, os.Mkdir(d, 0o755))
	}
	for name, text := range map[string]string{
		a.ws + "/file": "hello", a.ws + "/.git/config": "[core]\n", a.ws +
			"/.git/HEAD": "ref: refs/heads/main\n",
		a.out + "/canary": "canary", a.out + "/other": "other", a.out + "/dir/deep": "deep",
	} {
		write(t, name, text)
	}
	must(t, syscall.Mkfifo(a.out+"/pipe", 0o666))
	return a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

// policy is the default policy of the arena: the workspace and /tmp.
func (a *arena) policy() sandbox.Policy {
	return bind(sandbox.WorkspaceWrite(a.ws), a.ws)
}

func bind(p sandbox.Policy, dir string) sandbox.Policy {
	return p.Bind(sandbox.Places{Dir: dir, Workspaces: []string{dir}, SlashTmp: "/tmp"})
}

// A job is one run in an arena. The zero values are those of the arena.
type job struct {
	in     *Shared // nil: a sandbox of its own
	args   []string
	dir    string
	env    []string
	policy *sandbox.Policy
	allow  []string
	tmp    string
	stdin  *os.File // nil: the null device
	stdout *os.File // nil: captured
	change func(*plan.Plan)
	during func(*Child)   // performed while the command runs
	after  *executor.Exit // gets what is known at the end
	blind  bool           // without an observer
	links  bool           // hard links are protected
	hosts  *network.Live  // of a managed network
	ports  []network.Publish

	ownership bool // changes of owners fail
	explain   bool // the sandbox has its script
	ask       func(context.Context, executor.AccessQuestion) bool
	level     string
	stage     *executor.Staging
}

// A result is how a run ended.
type result struct {
	code, signal int
	lost         error
	out, err     string
	survivors    int
}

func (a *arena) request(j *job) *executor.Spec {
	r := &executor.Spec{Args: j.args, Dir: j.dir, Env: j.env, Policy: a.policy(), Allow: j.allow, Tmp: j.tmp,
		NoObserver: j.blind, ProtectHardLinks: j.links, OwnershipErrors: j.ownership, Explain: j.explain,
		Network: j.hosts, Publish: j.ports, Stage: j.stage, Level: j.level, AskAccess: j.ask}
	if r.Dir == "" {
		r.Dir = a.ws
	}
	if r.Env == nil {
		r.Env = []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0"}
	}
	if j.policy != nil {
		r.Policy = *j.policy
	}
	return r
}

// start starts a job, with a function that changes its plan, or nil.
func (a *arena) start(r *executor.Spec, change func(*plan.Plan), stdio ...*os.File) (*Child, error) {
	return a.startIn(nil, r, change, stdio...)
}

// startIn starts a job in a shared sandbox, or with nil in one of its own.
func (a *arena) startIn(in *Shared, r *executor.Spec, change func(*plan.Plan),
	stdio ...*os.File) (*Child, error) {
	switch {
	case change == nil && in != nil:
		return in.Start(context.Background(), r, [3]*os.File(stdio))
	case change == nil:
		return a.host.Start(context.Background(), r, [3]*os.File(stdio))
	}
	// Where a wall is taken away, the observer may not stand in for it.
	r.NoObserver = true
	return startChangedIn(a.host, in, r, change, [3]*os.File(stdio))
}

// startChanged starts a command as Start does, but by a plan that it changes before it is
// performed. It does not prefork: nothing is known then of the first steps.
func startChanged(h *Host, spec *executor.Spec, change func(*plan.Plan), stdio [3]*os.File) (*Child, error) {
	return startChangedIn(h, nil, spec, change, stdio)
}

func startChangedIn(h *Host, in *Shared, spec *executor.Spec, change func(*plan.Plan),
	stdio [3]*os.File) (*Child, error) {
	levels, err := h.accepted(spec)
	for err == nil {
		a := h.attempt(levels[0], spec, stdio)
		a.shared = in
		var p *plan.Plan
		if p, err = a.plan(); err == nil {
			change(p)
			err = makePoints(p.Points)
		}
		var c *Child
		if err == nil {
			if c, err = a.launch(p); err == nil {
				return c, nil
			}
		}
		a.release()
		var no *refusal
		if err = a.learn(err, maxTries); errors.As(err, &no) && len(levels) > 1 {
			levels, err = levels[1:], nil
		}
	}
	return nil, err
}

// run performs a job to its end. With an error nothing was started.
func (a *arena) run(t testing.TB, j *job) (result, error) {
	t.Helper()
	stdin := j.stdin
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		must(t, err)
		defer null.Close()
		stdin = null
	}
	outR, outW := pipe(t)
	errR, errW := pipe(t)
	stdout := j.stdout
	if stdout == nil {
		stdout = outW
	}
	c, err := a.startIn(j.in, a.request(j), j.change, stdin, stdout, errW)
	outW.Close()
	errW.Close()
	if err != nil {
		outR.Close()
		errR.Close()
		return result{}, err
	}
	outText, errText := drain(outR), drain(errR)
	if j.during != nil {
		j.during(c)
	}
	var res result
	res.code, res.signal, res.lost = c.Wait()
	res.survivors = len(c.Survivors())
	_ = c.Kill() // nobody is left, or it ends them
	must(t, c.WaitAll())
	exit := j.after
	if exit == nil {
		exit = new(executor.Exit)
	}
	exit.Code = res.code
	must(t, c.Close(exit))
	res.out, res.err = <-outText, <-errText
	return res, nil
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	must(t, err)
	return r, w
}

// drain reads to the end in the background, and closes.
func drain(r *os.File) <-chan string {
	text := make(chan string, 1)
	_ = r.SetReadDeadline(time.Now().Add(patience)) // a pipe can
	go func() {
		b, err := io.ReadAll(r)
		if err != nil {
			b = fmt.Appendf(b, "\nread: %v", err)
		}
		r.Close()
		text <- string(b)
	}()
	return text
}

// attack runs attacks in one sandbox and returns their outcomes.
func (a *arena) attack(t testing.TB, j *job, names []string, kv ...string) map[string]outcome {
	t.Helper()
	j.args = slices.Concat([]string{os.Getenv(programVar), partAttack, strings.Join(names, ","), "ws=" + a.ws,
		"out=" + a.out}, kv)
	res, err := a.run(t, j)
	if err != nil {
		t.Fatalf("the attack did not start: %v", err)
	}
	outcomes := make(map[string]outcome)
	for line := range strings.Lines(res.out + "\n" + res.err) {
		w := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(w) >= 2 {
			detail := ""
			if len(w) == 3 {
				detail = w[2]
			}
			outcomes[w[0]] = outcome{w[1], detail}
		}
	}
	if res.lost != nil || res.code != 0 {
		t.Errorf("the attacker ended with %d, signal %d, %v\n%s%s", res.code, res.signal, res.lost,
			res.out, res.err)
	}
	return outcomes
}

// expect runs attacks and makes a subtest of each outcome, all of which must be
// word.
func (a *arena) expect(t *testing.T, word string, j *job, names []string, kv ...string) {
	t.Helper()
	got := a.attack(t, j, names, kv...)
	for _, n := range names {
		t.Run(n, func(t *testing.T) {
			v := got[n]
			if v.word != word {
				t.Errorf("%s %s, want %s", v.word, v.detail, word)
			}
			t.Log(v.word, v.detail)
		})
	}
}

// snapshot describes a directory with everything below it: kinds, modes, owners,
// sizes, both times that a change leaves, link targets and contents.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(name, &st); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %o %d:%d %d links %d m%d.%d c%d.%d", strings.TrimPrefix(name, dir), st.Mode,
			st.Uid, st.Gid, st.Size, st.Nlink,
			st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(name)
			b.WriteString(" -> " + to)
		case d.Type().IsRegular():
			text, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(text))
		}
		b.WriteString("\n")
		return nil
	}))
	return b.String()
}

// nameAll makes the protected names that a workspace lacks.
func nameAll(t *testing.T, ws string) {
	t.Helper()
	for _, n := range sandbox.ProtectedNames() {
		must(t, os.MkdirAll(ws+"/"+n, 0o755))
	}
}

// unchanged checks at the end of t that directories are as they are now.
func unchanged(t *testing.T, dirs ...string) {
	t.Helper()
	for _, d := range dirs {
		before := snapshot(t, d)
		t.Cleanup(func() {
			if after := snapshot(t, d); after != before {
				t.Errorf("%s was changed:\n%s\nbefore it was:\n%s", d, after, before)
			}
		})
	}
}

// trimmed takes the ends of lines off.
func trimmed(s string) string { return strings.TrimSpace(s) }

// sh runs a line of shell.
func sh(line string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", line, "sh"}, args...)
}
