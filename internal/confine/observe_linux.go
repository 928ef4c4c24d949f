// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/internal/notify"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// observing says how much of a command's calls is seen.
type observing uint8

const (
	unobserved observing = iota
	observed
	observedReads // and what only reads, which costs programs that read much
)

// observes decides how a request is observed at a level. Bubblewrap installs filters
// without listeners only.
func (h *Host) observes(r *executor.Spec, level string) observing {
	h.mu.Lock()
	blind := h.blind
	h.mu.Unlock()
	if r.NoObserver || blind != "" || level != plan.LevelNative && level != plan.LevelLandlock {
		return unobserved
	}
	if res, err := r.Policy.Resolve(); err == nil && hides(&res) {
		return observedReads
	}
	return observed
}

// hides reports whether a policy keeps files from being read.
func hides(res *sandbox.Resolved) bool {
	return res.Root == sandbox.LevelDeny || len(res.Globs) > 0 ||
		slices.ContainsFunc(res.Paths, func(p sandbox.PathRule) bool { return p.Level == sandbox.LevelDeny && !p.Auto })
}

// withoutObserver remembers that a listener cannot be had here, and reports whether
// that is why a launch failed.
func (h *Host) withoutObserver(err error) bool {
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op != launch.OpObserve {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.blind != "":
		return false // it was planned without
	case step.Errno == syscall.EBUSY:
		h.blind = "another supervisor around this process already gets its calls"
	default:
		h.blind = fmt.Sprintf("this kernel gives no listener (%v)", step.Errno)
	}
	return true
}

// blindness says what is weaker for want of an observer that the level usually has;
// empty when nothing is.
func (h *Host) blindness(r *executor.Spec, p *plan.Plan) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.NoObserver || h.blind == "" || p.Observe || p.Level != plan.LevelNative && p.Level != plan.LevelLandlock {
		return ""
	}
	return "what the command is kept from is not seen, and unix sockets are refused: " + h.blind
}

// A watching is the observer of one command. Nil watches nothing.
type watching struct {
	inbox      *notify.Inbox
	supervisor *notify.Supervisor
}

// observe begins to wait for the listener of a plan. It returns nil for a plan that
// hands none out.
func (h *Host) observe(r *executor.Spec, p *plan.Plan, keep *keeping) (*watching, error) {
	if !p.Observe {
		return nil, nil //nolint:nilnil // nil watches nothing
	}
	res, err := r.Policy.Resolve()
	if err != nil {
		return nil, err
	}
	inbox, err := notify.Listen()
	if err != nil {
		return nil, err
	}
	cfg := notify.Config{
		Judge:          newJudge(&res, keep),
		PrivateNetwork: p.Script.Namespaces&launch.NewNet != 0,
		NoSockets:      p.Level == plan.LevelLandlock && res.Network != sandbox.NetworkHost,
		UnixOpen:       p.Level == plan.LevelLandlock || slices.Contains(r.Allow, "unix"),
		OwnRoots:       slices.Contains(r.Allow, "userns"),
		Reads:          hides(&res),
	}
	if p.Level == plan.LevelLandlock {
		cfg.Flat = flatPlaces(&p.Script)
	}
	s, err := inbox.Serve(cfg)
	if err != nil {
		inbox.Started()
		return nil, err
	}
	p.Script.Observer = inbox.Theirs()
	return &watching{inbox, s}, nil
}

// flatPlaces are the places that a script's ruleset lets be written to.
func flatPlaces(s *launch.Script) []string {
	out := []string{}
	for _, st := range s.Steps {
		if st.Ruleset == nil {
			continue
		}
		for _, u := range st.Ruleset.Rules {
			if u.Path != "" {
				out = append(out, u.Path)
			}
		}
	}
	return out
}

// started says that the launch is over.
func (w *watching) started() {
	if w != nil {
		w.inbox.Started()
	}
}

// onFailed has f called when the observer cannot go on.
func (w *watching) onFailed(f func()) {
	if w != nil {
		w.supervisor.OnFailed(f)
	}
}

// close ends the watch and returns what was seen.
func (w *watching) close() notify.Report {
	if w == nil {
		return notify.Report{}
	}
	return w.supervisor.Close()
}

// A judge knows what the mounts of a command cannot hold: names that are not there
// yet, files that a pattern denies and that were made later, and repositories that
// nobody knew of at the start.
type judge struct {
	base    sandbox.Level
	entries []sandbox.PathRule
	globs   []sandbox.Glob
	shut    map[string]bool // names that must not come into being
	shutIn  map[string]bool // their folders
	denies  bool            // an entry denies a path
	roots   []string        // writable roots
	free    []string        // places in them where anything may be made
	rules   map[string]plan.Rule
	partly  bool // not every repository was looked for
	start   time.Time
	made    map[string]bool // git folders that the command itself has made
	flat    bool
}

// maxMade bounds how many repositories of a command's own are remembered. Those beyond
// it are shut like somebody else's.
const maxMade = 1 << 16

// looked is how long before a judge begins its work the folders may have been searched.
// It is more than a tick, too, by which file systems tell times.
const looked = 100 * time.Millisecond

func newJudge(res *sandbox.Resolved, keep *keeping) *judge {
	j := &judge{base: res.Root, entries: res.Paths, shut: map[string]bool{}, shutIn: map[string]bool{}, made: map[string]bool{}, start: time.Now().Add(-looked)}
	for _, pattern := range res.Globs {
		if g, err := sandbox.CompileGlob(pattern); err == nil { // else the policy was refused
			j.globs = append(j.globs, g)
		}
	}
	j.denies = slices.ContainsFunc(res.Paths, func(p sandbox.PathRule) bool { return p.Level == sandbox.LevelDeny && !p.Auto })
	j.free = append(j.free, keep.layers...)
	if g := keep.g; g != nil {
		j.roots, j.rules, j.partly, j.flat = g.roots, g.rules, g.partly, g.flat
		if g.private != "" {
			j.free = append(j.free, g.private)
		}
		for _, c := range slices.Concat(g.claims, g.late) {
			if !c.Notice {
				j.shut[c.Path], j.shutIn[filepath.Dir(c.Path)] = true, true
			}
		}
	}
	return j
}

// File implements [notify.Judge].
func (j *judge) File(op sandbox.Op, path string, made bool) syscall.Errno {
	if j.denied(path) && (op == sandbox.Write || !j.above(path)) {
		return unix.EACCES
	}
	if op != sandbox.Write {
		return 0
	}
	if made && j.shut[path] {
		return j.wall()
	}
	// Most names are decided here.
	i := strings.Index(path, "/.git")
	if i < 0 || j.repository(path, i, made) {
		return 0
	}
	return j.wall()
}

// Folder implements [notify.Judge].
func (j *judge) Folder(dir string) bool {
	return len(j.globs) > 0 || j.denies || j.shutIn[dir] || strings.Contains(dir, "/.git")
}

// Special implements [notify.Judge].
func (j *judge) Special(name string) bool { return name == ".git" }

// wall is the error that a protected name gives at this level.
func (j *judge) wall() syscall.Errno {
	if j.flat {
		return unix.EACCES
	}
	return unix.EROFS
}

// denied reports whether an entry of the policy denies a path, as opposed to its
// being left out.
func (j *judge) denied(path string) bool {
	for _, g := range j.globs {
		if g.MatchTree(path) {
			return true
		}
	}
	for i := len(j.entries) - 1; i >= 0; i-- { // folders come first, so the last one is the nearest
		if e := &j.entries[i]; hostfacts.Below(path, e.Path) {
			return e.Level == sandbox.LevelDeny && !e.Auto
		}
	}
	return false
}

// above reports whether a folder leads to something that an entry shows where
// nothing else is visible: it shows the way there then.
func (j *judge) above(path string) bool {
	return j.base == sandbox.LevelDeny && slices.ContainsFunc(j.entries, func(e sandbox.PathRule) bool {
		return e.Level != sandbox.LevelDeny && e.Path != path && hostfacts.Below(e.Path, path)
	})
}

// repository reports whether a write in or to a git folder may pass: every one in a
// folder that is known, since mounts hold what they must there, and in one that the
// command has made itself. I is where the first such name begins.
func (j *judge) repository(path string, i int, made bool) bool {
	const name = "/.git"
	for {
		end := i + len(name)
		if (end == len(path) || path[end] == '/') && j.inRoot(path[:end]) {
			return j.gitFolder(path[:end], end == len(path), made)
		}
		next := strings.Index(path[end:], name)
		if next < 0 {
			return true
		}
		i = end + next
	}
}

// inRoot reports whether a name lies in a workspace.
func (j *judge) inRoot(name string) bool {
	inside := func(at string) bool { return name != at && hostfacts.Below(name, at) }
	return slices.ContainsFunc(j.roots, inside) && !slices.ContainsFunc(j.free, inside)
}

// gitFolder judges a write to the git folder at, or, when it is not the folder
// itself that is written, to something in it.
func (j *judge) gitFolder(at string, itself, made bool) bool {
	for ruled := range j.rules {
		if hostfacts.Below(ruled, at) {
			return true
		}
	}
	if slices.ContainsFunc(j.roots, func(root string) bool { return hostfacts.Below(root, at) }) {
		return true
	}
	if itself && made {
		if len(j.made) < maxMade {
			j.made[at] = true
		}
		return true
	}
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, at, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) != nil {
		return true // there is none to protect
	}
	born := time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
	if st.Mask&unix.STATX_BTIME == 0 || born.Before(j.start) {
		return !j.partly // what is older was found, or is none
	}
	return j.made[at]
}

// Hidden implements [notify.Judge].
func (j *judge) Hidden(op sandbox.Op, path string) bool {
	denied := j.denied(path)
	if !denied && (j.base != sandbox.LevelDeny || j.listed(path)) {
		return false
	}
	if denied && op == sandbox.Write {
		return true
	}
	_, err := os.Lstat(path)
	return err == nil
}

// listed reports whether an entry shows a path.
func (j *judge) listed(path string) bool {
	for i := len(j.entries) - 1; i >= 0; i-- {
		if e := &j.entries[i]; hostfacts.Below(path, e.Path) {
			return e.Level != sandbox.LevelDeny
		}
	}
	return false
}
