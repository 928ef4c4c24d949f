// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Session is the stage of one command, or of those of a shared sandbox, which may run at the same time. The
// zero Session is that of one command that has not begun. A nil Session is that of a command without a stage.
type Session struct {
	Shared bool // it is of a shared sandbox

	mu    sync.Mutex // guards what follows
	stage *Stage
	made  bool       // by the first of the commands, and it has not started yet
	new   bool       // by one of them
	users int        // commands that run or start
	began bool       // one of them runs, so the stage is mounted
	trees []*os.File // overlays by root, as a launch has made them; nil entries are of files
}

const stageHint = "run it without --stage, or on a Linux machine with the native level"

// Levels returns which of the accepted levels a command with a stage may run at.
func Levels(spec *executor.Spec, levels []string) ([]string, error) {
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

// Join takes the stage for a command that is to start: the one that its Spec asks for or, in a shared sandbox,
// the one that this has. State is the state directory. Drop or Finish gives it back.
func (st *Session) Join(state string, spec *executor.Spec) error {
	if err := holdsStages(state); err != nil {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	asked := *spec.Stage
	if st.stage != nil { // the sandbox has one
		other := asked.ID != st.stage.ID
		if asked.ID == "" {
			other = asked.Name != "" && asked.Name != st.stage.Name
		}
		if other {
			return InUse(st.stage.ID)
		}
		asked.ID = st.stage.ID
	}
	if st.users == 0 {
		err := st.open(state, spec, &asked)
		if errors.Is(err, executor.ErrNoStage) && spec.Stage.ID == "" { // it was applied or discarded
			err = st.open(state, spec, spec.Stage)
		}
		if err != nil {
			return err
		}
	}
	st.users++
	return nil
}

// open opens the stage for the first of the commands.
func (st *Session) open(state string, spec *executor.Spec, asked *executor.Staging) error {
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
	s, made, err := Store{State: state}.Use(workspace, dir, asked)
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
func settle(ctx context.Context, s *Stage) error {
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
			Hint: "set XDG_STATE_HOME to a directory on a disk, such as a volume of the container, or run it " +
				"without --stage"}
	}
	return nil
}

// Drop gives up the stage of a command that did not start, begun if it was recorded that it began.
func (st *Session) Drop(begun bool) {
	if st == nil {
		return
	}
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
func (st *Session) close() {
	st.unmount()
	st.stage.unmark()
	st.stage.Unlock()
}

// unmount closes the overlays, which no command has any more.
func (st *Session) unmount() {
	for _, f := range st.trees {
		if f != nil {
			f.Close()
		}
	}
	st.trees, st.began = nil, false
}

// Finish gives up the stage of a command that has ended, and returns what is in it.
func (st *Session) Finish() (*executor.Staged, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.users--
	s := st.stage
	if st.users == 0 {
		st.unmount()
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
		list := changes.Read
		if st.users == 0 { // its overlays are not mounted any more
			list = changes.Tidy
		}
		entries, err = list(ctx, all, base)
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
	case len(entries) == 0 && st.new && s.Name == "" && !st.Shared:
		return out, s.Forget() // it would only be in the way of those with changes
	}
	return out, s.End()
}

// Add adds the stage to a request that is complete but for that. Table is what is mounted on the host; nil is
// not known. Begun says that it is recorded that this command begins, and becomes so.
func (st *Session) Add(r *plan.Request, table *hostfacts.MountTable, begun *bool) error {
	if st == nil {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.Shared && st.began && st.trees == nil {
		return InUse(st.stage.ID) // this kernel does not pass its mounts on
	}
	roots, err := st.newRoots(r, table)
	if err != nil {
		return err
	}
	now := changes.Now()
	if st.stage.Began != 0 {
		now = time.Unix(0, st.stage.Began)
	}
	policy := PolicyOf(r.Spec.Policy, r.Spec.Dir, r.Spec.Tmp)
	if err := st.stage.Begin(policy, roots, now, !*begun); err != nil {
		return err
	}
	*begun = true
	for i := range st.stage.Roots {
		s, err := st.root(i)
		if err != nil {
			return err
		}
		r.Staged = append(r.Staged, s)
	}
	slices.SortFunc(r.Staged, func(x, y plan.Staged) int { return strings.Compare(x.Path, y.Path) })
	seeStaged(r)
	return nil
}

// newRoots returns the roots that the command needs and the stage does not have.
func (st *Session) newRoots(r *plan.Request, table *hostfacts.MountTable) ([]Root, error) {
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
	var roots []Root
	for _, s := range need {
		has := func(o Root) bool { return o.Path == s.Path || !o.File && safefile.Within(s.Path, o.Path) }
		if slices.ContainsFunc(roots, has) || slices.ContainsFunc(st.stage.Roots, has) {
			continue
		}
		root := Root{Path: s.Path, File: s.Kind == plan.KindFile}
		var err error
		if root.ID, err = apply.Identify(root.Host()); err != nil {
			return nil, &executor.RootError{Path: s.Path, Why: "cannot be staged: " + hostfacts.Reason(err)}
		}
		if err := st.layable(s, table); err != nil {
			return nil, err
		}
		roots = append(roots, root)
	}
	return roots, nil
}

// layable returns why no overlay can lie over a directory, as far as that is known before one is made.
func (st *Session) layable(s plan.Spot, table *hostfacts.MountTable) error {
	if s.Kind == plan.KindFile {
		return nil
	}
	no := func(have, hint string) error {
		return &sandbox.UnsupportedError{Need: "a stage over " + text.Word(s.Path), Have: have, Hint: hint}
	}
	if state := st.stage.store().State; safefile.Within(state, s.Path) {
		return no("the state directory "+text.Word(state)+", which holds what is staged, lies in it",
			"set XDG_STATE_HOME to a directory outside of it, or make only directories beside it writable")
	}
	if table == nil {
		return nil // the kernel refuses what it must
	}
	if below := table.Mounted(s.Path); below != "" {
		return no(fmt.Sprintf("another file system is mounted in it at %s, over which this kernel lays nothing "+
			"for users",
			text.Word(below)),
			"make only directories writable in which nothing is mounted, unmount it, or run it without --stage")
	}
	return nil
}

// root returns a root of the stage for the plan.
func (st *Session) root(n int) (s plan.Staged, err error) {
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
func seeStaged(r *plan.Request) {
	for i := range r.Rules {
		u := &r.Rules[i]
		for _, s := range slices.Backward(r.Staged) { // the nearest
			if s.Kind == plan.KindDirectory && u.Path != s.Path && safefile.Within(u.Path, s.Path) {
				u.Kind = stagedKind(s.Upper.Path, u.Path[len(s.Path)+1:], u.Kind)
				if u.Kind == plan.KindLink && u.Level != sandbox.LevelRead {
					u.Kind = plan.KindMissing // what it leads to has rules of its own
				}
				break
			}
		}
	}
}

// Trees adds the overlays of other commands to the files of a launch.
func (st *Session) Trees(files *launch.Files) {
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

// Claim returns ErrMounted where another command has mounted the stage since the launch was planned. Else no
// other command is launched with it before release.
func (st *Session) Claim(p *plan.Plan) (release func(), err error) {
	if st == nil {
		return func() {}, nil
	}
	st.mu.Lock()
	if st.began && p.Has(launch.OpOverlay) && st.outdated(p) {
		st.mu.Unlock()
		return nil, ErrMounted
	}
	return st.mu.Unlock, nil
}

// outdated reports whether a plan makes an overlay that is there.
func (st *Session) outdated(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Script.Steps, func(s launch.Step) bool {
		return s.Op == launch.OpOverlay && st.tree(s.Path) != nil
	})
}

// tree returns the overlay over a root, if a launch has made it.
func (st *Session) tree(root string) *os.File {
	i := slices.IndexFunc(st.stage.Roots, func(r Root) bool { return r.Path == root })
	if i < 0 || i >= len(st.trees) {
		return nil
	}
	return st.trees[i]
}

// ErrMounted says that another command has mounted the stage meanwhile.
var ErrMounted = errors.New("the stage was mounted by another command")

// Take takes the overlays that a launch has made, for other commands, which has succeeded. The stage is claimed.
func (st *Session) Take(sent *launch.Handover, p *plan.Plan) error {
	st.began, st.made = true, false
	if !st.Shared || sent == nil && p.Has(launch.OpOverlay) && st.trees == nil {
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
			i := slices.IndexFunc(st.stage.Roots, func(r Root) bool { return r.Path == made[s.Tree] })
			if i < 0 {
				f.Close()
				continue
			}
			st.trees[i] = f
		}
	}
	return nil
}

// Explain returns why the stage could not be mounted; nil if the launch failed for another reason.
func (st *Session) Explain(err error) error {
	var step *launch.StepError
	if st == nil || !errors.As(err, &step) || step.Step.Op != launch.OpOverlay || step.Call == "compare" ||
		step.Errno == syscall.ENOENT {
		return nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if !slices.ContainsFunc(st.stage.Roots, func(r Root) bool { return r.Path == step.Step.Path }) {
		return nil
	}
	no := &sandbox.UnsupportedError{Need: "a stage over " + text.Word(step.Step.Path),
		Have: fmt.Sprintf("the kernel makes no overlay over it (%s: %v)", step.Call, step.Errno),
		Hint: "use directories and an XDG_STATE_HOME on a file system such as ext4, xfs or btrfs, or run it without --stage"}
	switch step.Errno {
	case syscall.EPERM, syscall.ENODEV, syscall.ENOSYS:
		no.Have = fmt.Sprintf("this kernel gives users no overlayfs (%s: %v)", step.Call, step.Errno)
		no.Hint = stageHint
	}
	return no
}

// Hold returns what the sandbox keeps open as long as it may write; nil without a stage.
func (st *Session) Hold() *os.File {
	if st == nil {
		return nil
	}
	return st.stage.Hold()
}
