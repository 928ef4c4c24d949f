// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	removal "github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

const (
	chaosTime  = 20 * time.Second
	chaosAtOne = 4
	// chaosSeed repeats a run, as far as the machine lets it.
	chaosSeed = "SALLYPORT_TEST_SEED"
	// endTime is how long after its time limit and grace a run may last: two seconds, see
	// docs/decisions/0025-waits.md, and six more for a machine that does other work; with the
	// race detector everything takes longer.
	endTime = 8*time.Second + (sparse-1)*time.Second
)

// A chaosUser is one of the users of TestChaos with the directories of its own.
type chaosUser struct {
	id                                  int
	work, home, state, canary, exchange string
}

// A chaos is a machine on which several users run commands.
type chaos struct {
	root, bin, shared string
	users             []*chaosUser
	seed              uint64

	mu      sync.Mutex
	runs    map[string]int
	longest time.Duration // beyond limit and grace
	past    []pastRun
}

// A pastRun is a run that has ended, for a message about what it may have left.
type pastRun struct {
	begin, end time.Time
	killed     string // the workspace, if sallyport itself was killed
	about      string
}

// TestChaos lets users run hostile commands at once, in workspaces of their own and in one
// that they share, kills processes of theirs at random moments and cleans up now and then,
// while directories and links are exchanged outside, too. Nothing outside of the workspaces
// changes, every run ends in time with all of its processes, and nothing is left.
func TestChaos(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	testenv.NeedUserNS(t)
	c := newChaos(t)
	before := c.canaries(t)
	var stop []func()
	for _, u := range c.users {
		stop = append(stop, c.startSwaps(t, u))
	}
	var all sync.WaitGroup
	end := time.Now().Add(chaosTime)
	for worker := range chaosAtOne {
		r := rand.New(rand.NewPCG(c.seed, uint64(worker)))
		all.Go(func() {
			for time.Now().Before(end) && !t.Failed() {
				c.one(t, r)
			}
		})
	}
	all.Wait()
	t.Logf("runs: %v; the longest ended %v after its time limit and grace", c.runs, c.longest)
	for _, f := range stop {
		f()
	}
	c.cleaned(t)
	if diff := cmp.Diff(before, c.canaries(t)); diff != "" {
		t.Errorf("something outside has changed (-before +after):\n%s", diff)
	}
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	root, err := os.MkdirTemp("/var/tmp", "sallyport-chaos-")
	must(t, err)
	t.Cleanup(func() {
		if err := removal.RemoveTreePath(root); err != nil {
			t.Error(err)
		}
	})
	c := &chaos{root: root, bin: filepath.Join(root, "bin"), shared: filepath.Join(root, "shared"),
		seed: rand.Uint64(), runs: map[string]int{}}
	if text := os.Getenv(chaosSeed); text != "" {
		c.seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("%s=%d", chaosSeed, c.seed)
	must(t, os.Chmod(root, 0o755))
	for _, dir := range []string{c.bin, c.shared} {
		must(t, os.Mkdir(dir, 0o755))
	}
	must(t, os.Chmod(c.shared, 0o777|fs.ModeSticky))
	self, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, testenv.WriteProgram(c.bin+"/sallyport", self))
	must(t, os.Link(c.bin+"/sallyport", c.bin+"/chaos"))
	ids := []int{os.Geteuid()}
	if ids[0] == 0 {
		ids = append(ids, 65534)
	}
	for _, id := range ids {
		c.users = append(c.users, c.newUser(t, id))
	}
	return c
}

func (c *chaos) newUser(t *testing.T, id int) *chaosUser {
	t.Helper()
	name := func(what string) string { return filepath.Join(c.root, what+"-"+strconv.Itoa(id)) }
	u := &chaosUser{id: id, work: name("work"), home: name("home"), state: name("state"),
		canary: name("canary"), exchange: filepath.Join(c.shared, "exchange-"+strconv.Itoa(id))}
	for _, dir := range []string{u.work, u.home, u.state, u.canary, u.exchange, u.canary + "/dir",
		u.work + "/home"} {
		must(t, os.Mkdir(dir, 0o755))
	}
	for _, dir := range []string{u.canary, u.home} {
		must(t, os.WriteFile(dir+"/file", []byte("text"), 0o640))
		must(t, os.WriteFile(dir+"/.bashrc", []byte("# "+dir), 0o644))
		must(t, os.Symlink("file", dir+"/link"))
	}
	must(t, os.WriteFile(u.canary+"/dir/deep", []byte("deep"), 0o600))
	must(t, os.Chmod(u.exchange, 0o777))
	must(t, filepath.WalkDir(c.root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "-"+strconv.Itoa(id)) {
			err = os.Lchown(path, id, id)
		}
		return err
	}))
	return u
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// canaries describes everything that must not change: by path kind, mode, owner, links,
// times and content.
func (c *chaos) canaries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, u := range c.users {
		for _, dir := range []string{u.canary, u.home} {
			must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				var st syscall.Stat_t
				if err := syscall.Lstat(path, &st); err != nil {
					return err
				}
				text, _ := os.ReadFile(path)
				to, _ := os.Readlink(path)
				all[path] = fmt.Sprintf("%o %d:%d %d links, changed %v, %q, %x", st.Mode, st.Uid, st.Gid,
					st.Nlink, st.Ctim, to, sha256.Sum256(text))
				return nil
			}))
		}
	}
	return all
}

// as returns a command of a user with an environment of the test's own.
func (c *chaos) as(t *testing.T, u *chaosUser, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = c.root
	cmd.Env = append([]string{"PATH=" + c.bin + ":/usr/bin:/bin", "GORACE=" + noRaceSleep,
		"GOCOVERDIR="}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() != u.id {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u.id), Gid: uint32(u.id)}
	}
	return cmd
}

// startSwaps starts a process that exchanges directories and links of its user outside of any
// sandbox, in a directory of the shared one. It returns what ends the process.
func (c *chaos) startSwaps(t *testing.T, u *chaosUser) func() {
	t.Helper()
	args := []string{c.bin + "/chaos", "swap"}
	// Of the protected names one, or every run there would be refused.
	for i, name := range []string{[]string{".codex", ".git"}[min(u.id, 1)], "sub"} {
		args = append(args, filepath.Join(u.exchange, name)+":"+c.users[i%len(c.users)].canary)
	}
	if u != c.users[0] { // a user may exchange its own state directory
		args = append(args, c.shared+"/sallyport:"+c.users[0].canary)
	}
	cmd := c.as(t, u, nil, args...)
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	return func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("exchanging names: %v", err)
		}
	}
}

// states are the environments in which runs look for their state directory.
func (c *chaos) states(u *chaosUser) [][]string {
	return [][]string{
		{"HOME=" + u.home, "XDG_STATE_HOME=" + u.state},
		{"HOME=" + u.work + "/home"}, // in the workspace
		{"HOME=" + u.home, "XDG_STATE_HOME=" + c.shared},
	}
}

// one runs one command of one user, or cleans up.
func (c *chaos) one(t *testing.T, r *rand.Rand) {
	u := c.users[r.IntN(len(c.users))]
	env := c.states(u)[max(0, r.IntN(6)-3)]
	job := wardenJob{Seed: r.Uint64(), Within: 1500 * time.Millisecond, Signals: r.IntN(4)}
	if slices.Contains(env, "XDG_STATE_HOME="+c.shared) {
		job.Signals = 0 // what a killed run has left is recorded there, where commands of others remove it
	}
	const clean = 10 // one of so many
	if r.IntN(clean) == 0 {
		const most = time.Minute // it waits for starts and ends, and removes everything
		c.watch(t, "doctor --clean", u, env, &job, most, "doctor", "--clean")
		return
	}
	places := []string{u.work, u.work, u.work, c.shared, c.shared}
	for _, o := range c.users {
		places = append(places, o.exchange)
	}
	at := places[r.IntN(len(places))]
	limit, grace := time.Duration(200+r.IntN(1000))*time.Millisecond,
		time.Duration(100+r.IntN(400))*time.Millisecond
	args := []string{"run", "-C", at, "--timeout", limit.String(), "--kill-after", grace.String()}
	switch r.IntN(8) {
	case 0:
		args = append(args, "--no-observer")
	case 1:
		args = append(args, "--rw", c.shared)
	case 2:
		if !slices.Contains([]string{u.work, c.shared}, at) { // it lets the command make a .git that stays
			args = append(args, "--grant", "git")
		}
	case 3:
		args = append(args, "--net", "host")
	case 4:
		args = append(args, "--pids", "64", "--memory", "1GiB")
	}
	env = append(env, "TMPDIR="+[]string{"/tmp", at, c.shared}[r.IntN(3)])
	// A Go program that a signal ends before it begins prints its goroutines.
	args = append(args, "--", "/bin/sh", "-c", `exec "$@" 2>/dev/null`, "sh", c.bin+"/chaos", "hostile",
		strconv.FormatUint(r.Uint64(), 10))
	for _, o := range c.users {
		args = append(args, o.canary, o.home)
	}
	c.watch(t, "run", u, env, &job, limit+grace+endTime, args...)
}

// watch runs sallyport under a warden and checks when it and its processes have ended.
func (c *chaos) watch(t *testing.T, name string, u *chaosUser, env []string, job *wardenJob,
	most time.Duration, args ...string) {
	job.Late = most
	text, err := json.Marshal(job)
	if err != nil {
		t.Error(err)
		return
	}
	cmd := c.as(t, u, env, append([]string{c.bin + "/chaos", "warden", string(text), c.bin +
		"/sallyport"}, args...)...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &limited{Writer: &stderr, left: 16 << 10}
	begin := time.Now()
	err = cmd.Run()
	var report wardenReport
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &report)
	}
	late := report.Front - report.Stopped - most
	c.mu.Lock()
	c.runs[name+" "+ending(report.Status)]++
	past := pastRun{begin: begin, end: time.Now(), about: fmt.Sprintf("user %d, %q %q: %+v %.2000q", u.id,
		env, args, report, stderr.String())}
	if slices.ContainsFunc(report.Sent, killsSallyport) && name == "run" {
		past.killed = args[2]
	}
	c.past = append(c.past, past)
	c.longest = max(c.longest, late+endTime)
	c.mu.Unlock()
	strange := ""
	for _, word := range []string{"panic:", "fatal error:", "DATA RACE", "goroutine "} {
		// These signals make the runtime print its goroutines.
		if strings.Contains(stderr.String(), word) &&
			!slices.Contains(report.Sent, "segmentation fault to sallyport") &&
			!slices.Contains(report.Sent, "quit to sallyport") {
			strange = word
		}
	}
	if err != nil || late > 0 || report.Rest > endTime || strange != "" {
		t.Errorf("%v: user %d, %q %q\n%+v, at most %v: %s\n%s", err, u.id, env, args, report, most,
			strange, &stderr)
	}
}

// killsSallyport reports whether a warden has sent what ends sallyport without a last look.
func killsSallyport(sent string) bool {
	return slices.Contains([]string{"killed to sallyport", "segmentation fault to sallyport",
		"quit to sallyport"}, sent)
}

// ending says in a word how a program ended.
func ending(status int) string {
	w := syscall.WaitStatus(status)
	if w.Signaled() {
		return w.Signal().String()
	}
	return strconv.Itoa(w.ExitStatus())
}

// A limited writer takes a number of bytes and drops the rest.
type limited struct {
	io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, err := l.Writer.Write(b[:n])
	return len(b), err
}

// cleaned cleans up as every user and checks that nothing of sallyport's is left.
func (c *chaos) cleaned(t *testing.T) {
	t.Helper()
	for _, u := range c.users {
		for i, env := range c.states(u) {
			out, err := c.as(t, u, env, c.bin+"/sallyport", "doctor", "--clean").CombinedOutput()
			// Another user may have taken the name in the shared directory.
			if err != nil && i < 2 && !onlyAppeared(string(out)) {
				t.Errorf("doctor --clean as %d in %q: %v\n%s", u.id, env, err, out)
			}
		}
		for _, state := range []string{u.state, u.work + "/home/.local/state", c.shared} {
			c.stateLeft(t, filepath.Join(state, "sallyport"))
		}
	}
	for _, dir := range []string{c.users[0].work, c.users[len(c.users)-1].work, c.shared} {
		for _, name := range []string{".codex", ".agents", ".sallyport", ".git"} {
			if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && !c.documented(dir, info) {
				t.Errorf("%s is left in %s: %v, since %v", name, dir, info.Mode(), info.ModTime())
				c.suspects(t, info.ModTime())
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), c.root) {
		t.Errorf("a mount is left, or not: %v\n%s", err, mounts)
	}
}

// onlyAppeared reports whether all that doctor leaves to people are repositories which appeared where a run
// was killed: one that is exchanged outside, or that a command made without a last look.
func onlyAppeared(report string) bool {
	failed := 0
	for line := range strings.Lines(report) {
		if strings.Contains(line, "FAILED") {
			failed++
			if !strings.Contains(line, "was killed, and a .git has appeared there since") {
				return false
			}
		}
	}
	return failed > 0
}

// documented reports whether docs/sandbox.md says that what exists at a protected name may stay: what
// a command made whose sallyport was killed before its last look.
func (c *chaos) documented(dir string, info fs.FileInfo) bool {
	return slices.ContainsFunc(c.past, func(p pastRun) bool {
		return p.killed == dir && p.begin.Before(info.ModTime()) && p.end.After(info.ModTime())
	})
}

// stateLeft checks that a state directory holds nothing of a run but what is documented:
// records, caches, and what is quarantined. A link is the work of a command or of the
// exchanges in the shared directory, and stays.
func (c *chaos) stateLeft(t *testing.T, dir string) {
	t.Helper()
	for _, pattern := range []string{"tmp/*", "guard/h-*", "output/*"} {
		left, err := filepath.Glob(filepath.Join(dir, pattern))
		left = slices.DeleteFunc(left, func(path string) bool {
			info, err := os.Lstat(path)
			return err == nil && info.Mode()&fs.ModeSymlink != 0
		})
		if err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	}
}

// suspects names the runs that were there at a time.
func (c *chaos) suspects(t *testing.T, when time.Time) {
	t.Helper()
	for _, p := range c.past {
		if p.begin.Before(when) && p.end.After(when) {
			t.Logf("%v to %v: %s", p.begin, p.end, p.about)
		}
	}
}
