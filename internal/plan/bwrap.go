// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The descriptors that bubblewrap is started with.
const (
	// BwrapStatus is where it writes its status; whoever performs the plan sets
	// From of the one OpPass step to a pipe of its own.
	BwrapStatus = 3
	bwrapFilter = 4
	bwrapArgs   = 5

	// bwrapMost is how many words of options bubblewrap takes (MAX_ARGS in its
	// bubblewrap.c is 9000), less those before and behind them.
	bwrapMost = 8900
)

// BwrapBase are the options that every use of bubblewrap has, and that a probe
// must try: everything that may be refused on a machine.
func BwrapBase() []string {
	return []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--proc", "/proc",
	}
}

// A bwrapping is one plan for bubblewrap in the making.
type bwrapping struct {
	host *Host
	req  *Request
	plan *Plan
	args []string
	// sealed are folders in memory that are made read-only when all is in them.
	sealed []string
	err    error
}

// bwrapped plans a run in which bubblewrap makes the namespaces and mounts. The
// options are handed over in a file, not as words: they hold the environment,
// and the words of a program are everybody's to read. Bubblewrap itself gets no
// environment, because it is not confined and the command's may hold LD_PRELOAD.
func bwrapped(h *Host, r *Request) (*Plan, error) {
	if err := supported(r); err != nil {
		return nil, err
	}
	b := &bwrapping{host: h, req: r, plan: &Plan{Level: LevelBwrap, Weaker: weaker(h, r), Pipes: true}}
	switch {
	case r.Bwrap == nil:
		b.fail("bubblewrap", "none was found", "install bubblewrap 0.5 or newer")
	case r.Root == sandbox.LevelDeny:
		b.fail("a root that shows only listed paths", "the bwrap level cannot hold it", "use a machine with the native level")
	}
	if b.err != nil {
		return nil, b.err
	}
	if r.Spec.TTY != nil {
		b.plan.Weaker = append(b.plan.Weaker, "the terminal has no job control and no name inside: bubblewrap starts the command in a session without one")
	}
	b.plan.Mechanism = []string{"bwrap", "userns", "mountns", "pidns", "ipcns", "utsns", "seccomp"}
	b.args = BwrapBase()
	if r.network() == sandbox.NetworkNone {
		b.args = append(b.args, "--unshare-net")
		b.plan.Mechanism = slices.Insert(b.plan.Mechanism, 4, "netns")
	}
	b.system()
	for _, u := range r.Rules {
		b.place(u)
	}
	if b.err != nil {
		return nil, b.err
	}
	for _, s := range b.sealed {
		b.add("--remount-ro", s)
	}
	b.add("--remount-ro", "/dev", "--remount-ro", "/sys")
	if !slices.ContainsFunc(r.Rules, func(u Rule) bool { return u.Path == "/run" && u.Kind != KindMissing }) {
		b.add("--remount-ro", "/run")
	}
	b.add("--seccomp", fmt.Sprint(bwrapFilter), "--json-status-fd", fmt.Sprint(BwrapStatus), "--chdir", r.Spec.Dir, "--clearenv")
	for _, entry := range r.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			b.add("--setenv", name, value)
		}
	}
	if r.Bwrap.Argv0 {
		b.add("--argv0", r.argv()[0])
	}
	if len(b.args) > bwrapMost {
		b.fail("a policy and an environment that bubblewrap can take", fmt.Sprintf("they make %d words, and it takes %d", len(b.args), bwrapMost),
			"deny folders instead of many files, pass fewer variables, or use a machine with the native level")
		return nil, b.err
	}
	b.write()
	return b.plan, nil
}

func (b *bwrapping) add(words ...string) { b.args = append(b.args, words...) }

func (b *bwrapping) fail(need, have, hint string) {
	if b.err == nil {
		b.err = &sandbox.UnsupportedError{Need: need, Have: have, Hint: hint}
	}
}

// system covers the system's own folders as the native level does.
func (b *bwrapping) system() {
	for _, c := range b.host.ProcCovers {
		b.add("--ro-bind", "/proc/"+c, "/proc/"+c)
	}
	for _, m := range b.host.ProcMasks {
		b.add("--ro-bind", b.req.Bwrap.File, "/proc/"+m)
	}
	b.add("--perms", "0755", "--tmpfs", "/run", "--perms", "0755", "--tmpfs", "/sys")
	for _, s := range slices.Concat(b.host.SysShows, b.host.RunShows) {
		if b.levelAt(s.Path) != sandbox.LevelDeny {
			b.add("--ro-bind", s.Path, s.Path)
		}
	}
	if t := b.req.Tmp; t != nil {
		b.add("--bind", t.Source.Path, t.At)
	}
}

// levelAt is the level that a path has by the rules at and above it.
func (b *bwrapping) levelAt(name string) sandbox.Level {
	for _, u := range b.req.Rules {
		if u.Path == name {
			return u.Level
		}
	}
	return levelOver(b.req, name)
}

// place turns one rule into a mount, when it changes anything. Rules come
// sorted, so folders are mounted before what is in them.
func (b *bwrapping) place(u Rule) {
	t := b.req.Tmp
	if t != nil && u.Path == t.At && u.Level == sandbox.LevelWrite {
		return // the private folder stands there
	}
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if !within(u.Path, own) {
			continue
		}
		if u.Level != sandbox.LevelRead {
			b.fail("rules outside the system's own folders", fmt.Sprintf("%s cannot be made %s at the bwrap level", u.Path, levelWord(u.Level)),
				"leave /dev, /proc and /sys out of the policy")
		}
		return
	}
	if u.Auto && t != nil && u.Path != t.At && within(u.Path, t.At) && !b.hosted(u.Path) {
		return // the host's is not visible, and nobody asked for it
	}
	covered := within(u.Path, "/run") || t != nil && within(u.Path, t.At)
	if u.Kind == KindMissing || u.Level == levelOver(b.req, u.Path) && !covered && !u.Pin {
		return
	}
	if covered && u.Level == sandbox.LevelDeny && levelOver(b.req, u.Path) == b.req.Root {
		return // nothing of the host's is visible there
	}
	if t != nil && u.Path != t.At && within(u.Path, t.At) && !b.hosted(u.Path) {
		b.plan.Points = append(b.plan.Points, Point{
			Below: t.Source.Path, Path: strings.TrimPrefix(u.Path, t.At+"/"), Folder: u.Kind == KindFolder,
		})
	}
	switch u.Level {
	case sandbox.LevelWrite:
		b.add("--bind", u.Path, u.Path)
	case sandbox.LevelRead:
		b.add("--ro-bind", u.Path, u.Path)
	default:
		b.mask(u)
	}
}

// hosted reports whether the host's files stand at a path below /tmp, because a
// rule between the two has brought them back.
func (b *bwrapping) hosted(name string) bool {
	return slices.ContainsFunc(b.req.Rules, func(u Rule) bool {
		return u.Path != name && u.Path != b.req.Tmp.At && within(name, u.Path) && within(u.Path, b.req.Tmp.At) &&
			u.Kind != KindMissing && u.Level != sandbox.LevelDeny
	})
}

// mask hides a path. What is visible again below it would need mount points in
// a folder that nobody may enter.
func (b *bwrapping) mask(u Rule) {
	for _, o := range b.req.Rules {
		if o.Path != u.Path && within(o.Path, u.Path) && o.Level != sandbox.LevelDeny && o.Kind != KindMissing {
			if u.Auto {
				// Our own state, of which the command gets a folder: another one in memory
				// stands there, with nothing but the mount points.
				b.add("--perms", "0111", "--tmpfs", u.Path)
				b.sealed = append(b.sealed, u.Path)
				return
			}
			b.fail(fmt.Sprintf("the entry %s=%s below the denied %s", o.Path, o.Level, u.Path), "the bwrap level cannot hold it",
				"leave one of them out, or use a machine with the native level")
			return
		}
	}
	if u.Kind == KindFolder {
		b.add("--ro-bind", b.req.Bwrap.Folder, u.Path)
		return
	}
	b.add("--ro-bind", b.req.Bwrap.File, u.Path)
}

// write lays down the script that starts bubblewrap. Its first process inside
// has the command's user and no filter of its own, so the command can take it
// over; the filter around bubblewrap, which leaves it the calls for namespaces,
// is there for that. A set-uid bubblewrap could not do its work with it.
func (b *bwrapping) write() {
	r := b.req
	filter := make([]byte, 0, 8*len(r.Filter))
	for _, w := range r.Filter {
		filter = binary.LittleEndian.AppendUint64(filter, w)
	}
	argv := append([]string{"bwrap", "--args", fmt.Sprint(bwrapArgs), "--", r.Program}, r.Spec.Args[1:]...)
	steps := []launch.Step{
		{Op: launch.OpDieWithParent, Signal: sigUsr2, Label: "the reaper ends the group, and bubblewrap its namespaces"},
		{Op: launch.OpSubreaper},
		{Op: launch.OpStartCommand},
	}
	steps = append(append(steps, session(r, hostMultiplexer)...), launch.Step{Op: launch.OpStdio})
	for _, l := range r.Limits {
		steps = append(steps, launch.Step{Op: launch.OpLimit, Resource: l.Resource, Soft: l.Soft, Hard: l.Hard})
	}
	if len(r.Guard) > 0 {
		steps = append(steps, launch.Step{Op: launch.OpNoNewPrivs}, launch.Step{Op: launch.OpSeccomp, Filter: r.Guard, Label: "around bubblewrap"})
	}
	b.plan.Script.Steps = append(steps,
		launch.Step{Op: launch.OpChdir, Path: "/"},
		launch.Step{Op: launch.OpPass, Value: BwrapStatus, Label: "bubblewrap's status"},
		launch.Step{Op: launch.OpCloseFiles, Value: BwrapStatus + 1},
		launch.Step{Op: launch.OpMemory, Value: bwrapFilter, Data: filter, Label: fmt.Sprintf("a filter of %d instructions", len(r.Filter))},
		launch.Step{Op: launch.OpMemory, Value: bwrapArgs, Data: []byte(strings.Join(b.args, "\x00") + "\x00"), Label: b.options()},
		launch.Step{Op: launch.OpResetSignals},
		launch.Step{Op: launch.OpExec, Path: r.Bwrap.Program, Argv: argv})
}

// options are the options for people, without the environment.
func (b *bwrapping) options() string {
	env := slices.Index(b.args, "--clearenv")
	return strings.Join(b.args[:env+1], " ")
}
