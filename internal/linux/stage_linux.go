// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/apply"
	"github.com/sallyport-dev/sallyport/internal/linux/changes"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/stage"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A staging is the stage of one command, or of those of a shared sandbox that run at the same time.
type staging struct {
	shared *Shared // nil for one command

	mu    sync.Mutex // guards what follows
	stage *stage.Stage
	made  bool       // by the first of the commands, and it has not started yet
	new   bool       // by one of them
	users int        // commands that run or start
	began bool       // one of them runs, so the stage is mounted
	trees []*os.File // overlays by root, as a launch has made them; nil entries are of files
}

const stageHint = "run it without --stage, or on a Linux machine with the native level"

// stages returns the levels at which a command with a stage may run.
func stages(spec *executor.Spec, levels []string) ([]string, error) {
	switch {
	case spec.Policy.Mode() != sandbox.Managed:
		return nil, &executor.StageError{Why: "a command with the policy " + spec.Policy.Name() +
			" has no sandbox, so nothing holds its changes back", Fix: "leave out --stage, or use another policy"}
	case levels[0] != plan.LevelNative:
		return nil, &sandbox.UnsupportedError{Need: "a stage", Have: "the level " + levels[0] +
			" has no copy-on-write layers", Hint: stageHint}
	}
	return levels[:1], nil
}

// openStage returns the stage of a command that is to start.
func (h *Host) openStage(in *Shared, spec *executor.Spec) (*staging, error) {
	own, err := h.onDisk()
	if err != nil {
		return nil, err
	}
	if err := holdsStages(own.state); err != nil {
		return nil, err
	}
	if in == nil {
		st := &staging{users: 1}
		return st, st.open(own.state, spec, spec.Stage)
	}
	in.staging.mu.Lock()
	defer in.staging.mu.Unlock()
	st := &in.staging
	if st.users > 0 {
		if s := spec.Stage; s.ID != "" && s.ID != st.stage.ID || s.ID == "" && s.Name != "" && s.Name != st.stage.Name {
			return nil, stage.InUse(st.stage.ID)
		}
		st.users++
		return st, nil
	}
	asked := *spec.Stage
	if st.stage != nil { // the sandbox has one
		if asked.ID == "" && asked.Name == "" {
			asked.ID = st.stage.ID
		} else if asked.ID != st.stage.ID && (asked.ID != "" || asked.Name != st.stage.Name) {
			return nil, stage.InUse(st.stage.ID)
		}
	}
	err = st.open(own.state, spec, &asked)
	if errors.Is(err, executor.ErrNoStage) && spec.Stage.ID == "" { // it was applied or discarded
		err = st.open(own.state, spec, spec.Stage)
	}
	if err != nil {
		return nil, err
	}
	st.shared, st.users = in, 1
	return st, nil
}

// open opens the stage for the first of the commands.
func (st *staging) open(state string, spec *executor.Spec, asked *executor.Staging) error {
	res, err := spec.Policy.Resolve()
	if err != nil {
		return err
	}
	dir := hostfacts.RealPath(spec.Dir)
	workspace := dir
	for _, w := range res.Writable { // those higher up first
		if real := hostfacts.RealPath(w.Root); safefile.Within(dir, real) && real != "/tmp" {
			workspace = real
		}
	}
	s, made, err := stage.Store{State: state}.Use(workspace, dir, asked)
	if err != nil {
		return err
	}
	if s.Began != 0 { // a run was killed
		if err := settle(context.Background(), s); err != nil {
			s.Unlock()
			return err
		}
	}
	st.stage, st.made, st.new, st.began = s, made, made, false
	return nil
}

// settle records what the host's files were that a run has met which has ended, or was killed.
func settle(ctx context.Context, s *stage.Stage) error {
	all, base, err := s.Changes()
	if err == nil {
		err = base.Update(ctx, all, time.Unix(0, s.Began))
	}
	if err != nil {
		return &executor.StageError{ID: s.ID, Err: err, Why: err.Error()}
	}
	return s.End()
}

// holdsStages returns why the state directory cannot hold what overlays write.
func holdsStages(state string) error {
	var fs unix.Statfs_t
	if unix.Statfs(state, &fs) == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return &sandbox.UnsupportedError{Need: "a stage",
			Have: "the state directory " + text.Word(state) + " is on an overlay itself, which cannot hold another one",
			Hint: "set XDG_STATE_HOME to a directory on a disk, such as a volume of the container, or run it without --stage"}
	}
	return nil
}

// drop gives up the stage of a command that did not start, begun if it was recorded that it began.
func (st *staging) drop(begun bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.users--
	switch {
	case st.made && st.users == 0:
		_ = st.stage.Forget()
	case begun:
		_ = st.stage.Undo(st.users == 0) // what stays is a number
	}
	if st.users == 0 {
		st.close()
	}
}

// close frees what the commands had; the next one opens the stage again.
func (st *staging) close() {
	for _, f := range st.trees {
		if f != nil {
			f.Close()
		}
	}
	st.trees, st.began = nil, false
	st.stage.Unlock()
}

// finish gives up the stage of a command that has ended, and returns what is in it.
func (st *staging) finish() (*executor.Staged, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.users--
	s := st.stage
	if st.users == 0 {
		defer st.close()
	}
	out := &executor.Staged{ID: s.ID, Name: s.Name, Changes: []executor.Change{}}
	ctx := context.Background()
	all, base, err := s.Changes()
	if err == nil {
		err = base.Update(ctx, all, time.Unix(0, s.Began))
	}
	var entries []changes.Entry
	if err == nil {
		entries, err = changes.Read(ctx, all, base)
	}
	if err != nil {
		return out, &executor.StageError{ID: s.ID, Err: err, Why: err.Error()}
	}
	for i := range entries {
		if entries[i].Way {
			continue
		}
		if out.Total++; out.Total <= executor.MaxChanges {
			out.Changes = append(out.Changes, entries[i].Change)
		}
	}
	switch {
	case st.users > 0:
		return out, nil
	case len(entries) == 0 && st.new && s.Name == "" && st.shared == nil:
		return out, s.Forget() // it would only be in the way of those with changes
	}
	return out, s.End()
}

// addStage adds the stage to a request that is complete but for that.
func (a *attempt) addStage(r *plan.Request) error {
	st := a.stage
	if st == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.shared != nil && st.began && st.trees == nil {
		return stage.InUse(st.stage.ID) // this kernel does not pass its mounts on
	}
	roots, err := a.newRoots(r)
	if err != nil {
		return err
	}
	now := changes.Now()
	if st.stage.Began != 0 {
		now = time.Unix(0, st.stage.Began)
	}
	policy := stage.PolicyOf(a.spec.Policy, a.spec.Dir, a.spec.Tmp)
	if err := st.stage.Begin(policy, roots, now, !*a.begun); err != nil {
		return err
	}
	*a.begun = true
	for i := range st.stage.Roots {
		s, err := a.stagedRoot(i)
		if err != nil {
			return err
		}
		r.Staged = append(r.Staged, s)
	}
	slices.SortFunc(r.Staged, func(x, y plan.Staged) int { return strings.Compare(x.Path, y.Path) })
	a.seeStaged(r)
	return nil
}

// newRoots returns the roots that the command needs and the stage does not have.
func (a *attempt) newRoots(r *plan.Request) ([]stage.Root, error) {
	var need []plan.Spot
	for i := range r.Rules {
		if plan.Stages(r, &r.Rules[i]) {
			need = append(need, r.Rules[i].Spot)
		}
	}
	if t := r.Tmp; t != nil && t.Asked {
		need = append(need, t.Source)
		slices.SortFunc(need, func(x, y plan.Spot) int { return strings.Compare(x.Path, y.Path) })
	}
	var roots []stage.Root
	for _, s := range need {
		has := func(o stage.Root) bool { return o.Path == s.Path || !o.File && safefile.Within(s.Path, o.Path) }
		if slices.ContainsFunc(roots, has) || slices.ContainsFunc(a.stage.stage.Roots, has) {
			continue
		}
		root := stage.Root{Path: s.Path, File: s.Kind == plan.KindFile}
		var err error
		if root.ID, err = apply.Identify(root.Host()); err != nil {
			return nil, &executor.RootError{Path: s.Path, Why: "cannot be staged: " + hostfacts.Reason(err)}
		}
		if err := a.layable(s); err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// layable returns why no overlay can lie over a directory, as far as that is known before one is made.
func (a *attempt) layable(s plan.Spot) error {
	own, err := a.host.onDisk()
	if err != nil || s.Kind == plan.KindFile {
		return err
	}
	no := func(have, hint string) error {
		return &sandbox.UnsupportedError{Need: "a stage over " + text.Word(s.Path), Have: have, Hint: hint}
	}
	if safefile.Within(own.state, s.Path) {
		return no("the state directory "+text.Word(own.state)+", which holds what is staged, lies in it",
			"set XDG_STATE_HOME to a directory outside of it, or make only directories beside it writable")
	}
	table, err := own.mounts.Table()
	if err != nil {
		return nil //nolint:nilerr // the kernel refuses what it must
	}
	if below := table.Mounted(s.Path); len(below) > 0 {
		return no(fmt.Sprintf("another file system is mounted in it at %s, over which this kernel lays nothing for users",
			text.Word(below[0])), "make only directories writable in which nothing is mounted, unmount it, or run it without --stage")
	}
	return nil
}

// stagedRoot returns a root of the stage for the plan.
func (a *attempt) stagedRoot(n int) (s plan.Staged, err error) {
	st := a.stage
	root := &st.stage.Roots[n]
	changed := func(why string) error {
		return &executor.StageError{ID: st.stage.ID, Why: text.Word(root.Path) + " " + why,
			Fix: "apply or discard the stage " + st.stage.ID + ", or use a new one"}
	}
	id, err := apply.Identify(root.Host())
	if err == nil {
		s.Spot, err = hostfacts.Look(root.Path)
	}
	kind := plan.KindDirectory
	if root.File {
		kind = plan.KindFile
	}
	switch {
	case err != nil:
		return s, changed("cannot be reached any more: " + hostfacts.Reason(err))
	case !id.Is(root.ID) || s.Kind != kind:
		return s, changed("is another directory now than when the stage was made")
	case root.File:
		s.Upper, err = hostfacts.Look(st.stage.Copy(n))
		return s, err
	case n < len(st.trees) && st.trees[n] != nil:
		s.Tree = plan.HolderTrees + 1
		for _, f := range st.trees[:n] {
			if f != nil {
				s.Tree++
			}
		}
	}
	var upper, work string
	if st.began && st.trees != nil { // it is mounted, so nothing is unmarked
		upper = st.stage.Upper(n)
		s.Upper, err = hostfacts.Look(upper)
		if s.Tree > 0 {
			return s, err
		}
	}
	if upper, work, err = st.stage.Layers(n); err == nil {
		s.Upper, err = hostfacts.Look(upper)
	}
	if err == nil {
		s.Work, err = hostfacts.Look(work)
	}
	return s, err
}

// seeStaged has the rules say what is at their paths in the stage, where earlier commands may have removed it,
// or put something else.
func (a *attempt) seeStaged(r *plan.Request) {
	for i := range r.Rules {
		u := &r.Rules[i]
		for _, s := range slices.Backward(r.Staged) { // the nearest
			if s.Kind == plan.KindDirectory && u.Path != s.Path && safefile.Within(u.Path, s.Path) {
				u.Kind = stagedKind(s.Upper.Path, u.Path[len(s.Path)+1:], u.Kind)
				break
			}
		}
	}
}

// stagedKind returns what is at a path of an overlay, relative to its top, over a host that has kind there.
func stagedKind(upper, rel string, kind plan.Kind) plan.Kind {
	at := upper
	for name := range strings.SplitSeq(rel, "/") {
		fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return plan.KindMissing // a directory that is closed, or something else than one
		}
		if at != upper && changes.IsOpaque(fd) {
			kind = plan.KindMissing
		}
		var st unix.Stat_t
		err = unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		unix.Close(fd)
		at = filepath.Join(at, name)
		switch {
		case errors.Is(err, unix.ENOENT):
			return kind // below, everything is the host's
		case err != nil || changes.IsWhiteout(&st):
			return plan.KindMissing
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR { // and where a name follows, nothing is there
			kind = plan.KindMissing
		}
	}
	spot, err := hostfacts.Look(at)
	if err != nil {
		return plan.KindMissing
	}
	return spot.Kind
}

// stagedTrees adds the overlays of other commands to the files of a launch.
func (st *staging) stagedTrees(files *launch.Files) {
	if st == nil || st.trees == nil {
		return
	}
	files.Trees = slices.Clone(files.Trees)
	for _, f := range st.trees {
		if f != nil {
			files.Trees = append(files.Trees, f)
		}
	}
}

// claim returns errPlanAgain where another command has mounted the stage since the launch was planned. Else no
// other command is launched with it before release.
func (st *staging) claim(p *plan.Plan) (release func(), err error) {
	if st == nil {
		return func() {}, nil
	}
	st.mu.Lock()
	if st.began && p.Has(launch.OpOverlay) && st.outdated(p) {
		st.mu.Unlock()
		return nil, errStaged
	}
	return st.mu.Unlock, nil
}

// outdated reports whether a plan makes an overlay that is there.
func (st *staging) outdated(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Script.Steps, func(s launch.Step) bool {
		return s.Op == launch.OpOverlay && slices.ContainsFunc(st.stage.Roots, func(r stage.Root) bool {
			return r.Path == s.Path && s.Layers.Durable && st.tree(r.Path) != nil
		})
	})
}

// tree returns the overlay over a root, if a launch has made it.
func (st *staging) tree(root string) *os.File {
	i := slices.IndexFunc(st.stage.Roots, func(r stage.Root) bool { return r.Path == root })
	if i < 0 || i >= len(st.trees) {
		return nil
	}
	return st.trees[i]
}

// errStaged says that another command has mounted the stage meanwhile.
var errStaged = errors.New("the stage was mounted by another command")

// take takes the overlays that a launch has made, for other commands, which has succeeded. The stage is claimed.
func (st *staging) take(sent *launch.Handover, p *plan.Plan) error {
	st.began = true
	if st.shared == nil || sent == nil && p.Has(launch.OpOverlay) && st.trees == nil {
		return nil // no other command can have them
	}
	for len(st.trees) < len(st.stage.Roots) {
		st.trees = append(st.trees, nil)
	}
	made := map[int]string{}
	for _, s := range p.Script.Steps {
		switch s.Op {
		case launch.OpOverlay:
			made[s.Tree] = s.Path
		case launch.OpShare:
			f, err := sent.Take()
			if err != nil {
				return err
			}
			i := slices.IndexFunc(st.stage.Roots, func(r stage.Root) bool { return r.Path == made[s.Tree] })
			if i < 0 {
				f.Close()
				continue
			}
			st.trees[i] = f
		}
	}
	return nil
}

// explainStage returns why a stage could not be mounted; nil if the launch failed for another reason.
func (a *attempt) explainStage(err error) error {
	var step *launch.StepError
	if a.stage == nil || !errors.As(err, &step) || step.Step.Op != launch.OpOverlay || step.Step.Layers == nil ||
		!step.Step.Layers.Durable || vanished(err) {
		return nil
	}
	no := &sandbox.UnsupportedError{Need: "a stage over " + text.Word(step.Step.Path),
		Have: fmt.Sprintf("the kernel makes no overlay over it (%s: %v)", step.Call, step.Errno),
		Hint: "use directories and an XDG_STATE_HOME on a file system such as ext4, xfs or btrfs, or run it without --stage"}
	switch step.Errno {
	case syscall.EPERM, syscall.ENODEV, syscall.ENOSYS:
		no.Have = fmt.Sprintf("this kernel gives users no overlayfs (%s: %v)", step.Call, cmp.Or(step.Errno, 0))
		no.Hint = stageHint
	}
	return no
}
