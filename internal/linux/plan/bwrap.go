// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/seccomp"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The descriptors that bubblewrap is started with.
const (
	bwrapStatus = 3 // a socket, where it writes its status
	bwrapGate   = 4 // the same one, which the process that builds the sandbox reads to its end
	bwrapFilter = 5
	bwrapArgs   = 6

	// bwrapMost is how many arguments bubblewrap takes (MAX_ARGS in its bubblewrap.c is
	// 9000), less those before and after the options.
	bwrapMost = 8900
)

// BwrapBase returns the options that every use of bubblewrap has, and that a probe must
// try: everything that a machine may refuse.
func BwrapBase() []string {
	return []string{
		"--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--die-with-parent", "--new-session", "--cap-drop", "ALL",
		"--ro-bind", "/", "/", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/dev/shm", "--proc", "/proc",
	}
}

// A bwrapPlan is one plan for bubblewrap while it is made.
type bwrapPlan struct {
	host *Host
	req  *Request
	plan *Plan
	args []string
	// sealed are directories in memory that are made read-only when they are full.
	sealed []string
	err    error
}

// bwrapped plans a command for which bubblewrap makes the namespaces and mounts. The
// options are passed in a file, not as arguments: they hold the environment, and
// every process can read the arguments of a program. Bubblewrap itself gets no
// environment, because it is not confined and the command's may hold LD_PRELOAD.
func bwrapped(h *Host, r *Request) (*Plan, error) {
	b := &bwrapPlan{host: h, req: r, plan: &Plan{Level: LevelBwrap, Weaker: weaker(h, r), Pipes: true},
		args: BwrapBase()}
	switch {
	case r.Bwrap == nil:
		return nil, unsupported("bubblewrap", "none was found", "install bubblewrap 0.5 or newer")
	case r.Root == sandbox.LevelDeny:
		return nil, unsupported("a root that shows only listed paths", "the bwrap level cannot enforce it",
			"use a machine with the native level")
	}
	if err := r.unproxied("bubblewrap makes the private network, and no socket in it that leads out"); err != nil {
		return nil, err
	}
	if r.network() == sandbox.NetworkNone && slices.Contains(r.Spec.Allow, seccomp.OpenICMP) {
		return nil, unsupported("a private network for the opening icmp",
			"bubblewrap cannot allow ping sockets there",
			"leave the opening icmp out, use the host's network, or a machine with the native level")
	}
	if len(r.Spec.Files) > 0 {
		return nil, unsupported("descriptors beyond the three standard ones",
			"the bwrap level cannot pass them on", "leave them out, or use a machine with the native level")
	}
	if r.Spec.TTY != nil {
		b.plan.Weaker = append(b.plan.Weaker,
			"the terminal has no job control and no name inside: bubblewrap starts the command in a session without one")
	}
	b.plan.Mechanism = []string{"bwrap", "userns", "mountns", "pidns", "ipcns", "utsns", "seccomp"}
	if r.network() == sandbox.NetworkNone {
		b.add("--unshare-net")
		b.plan.Mechanism = slices.Insert(b.plan.Mechanism, 4, "netns")
	}
	b.system()
	for _, u := range r.Rules {
		b.place(u)
	}
	if u := r.rule("/run"); u == nil || u.Kind == KindMissing {
		b.sealed = append(b.sealed, "/run")
	}
	b.add("--file", fmt.Sprint(bwrapGate), "/dev/null") // internal/linux has the reason
	for _, s := range append(b.sealed, "/dev", "/sys") {
		b.add("--remount-ro", s)
	}
	b.add("--seccomp", fmt.Sprint(bwrapFilter), "--json-status-fd", fmt.Sprint(bwrapStatus), "--chdir",
		cmp.Or(r.Dir, r.Spec.Dir), "--clearenv")
	label := strings.Join(b.args, " ") // without the environment
	for _, entry := range r.environ() {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			b.add("--setenv", name, value)
		}
	}
	if r.Bwrap.Argv0 {
		b.add("--argv0", r.argv()[0])
	}
	if len(b.args) > bwrapMost {
		b.fail("a policy and an environment that bubblewrap can take",
			fmt.Sprintf("they make %d arguments, it takes at most %d", len(b.args), bwrapMost),
			"deny directories instead of many files, pass fewer variables, or use a machine with the native level")
	}
	if b.err != nil {
		return nil, b.err
	}
	b.write(label)
	return b.plan, nil
}

func (b *bwrapPlan) add(args ...string) { b.args = append(b.args, args...) }

func (b *bwrapPlan) fail(need, have, hint string) {
	if b.err == nil {
		b.err = unsupported(need, have, hint)
	}
}

// system covers the system's own directories as the native level does.
func (b *bwrapPlan) system() {
	if b.host.groupSpace() != 0 {
		b.add("--unshare-cgroup-try")
	}
	for _, d := range b.req.Devices {
		if !b.req.denies("/dev/" + d) {
			b.add("--dev-bind", "/dev/"+d, "/dev/"+d)
		}
	}
	for _, c := range b.host.ProcCovers {
		b.add("--ro-bind", "/proc/"+c, "/proc/"+c)
	}
	for _, m := range b.host.ProcMasks {
		b.add("--ro-bind", b.req.Bwrap.File, "/proc/"+m)
	}
	b.add("--perms", "0755", "--tmpfs", "/run", "--perms", "0755", "--tmpfs", "/sys")
	for _, s := range slices.Concat(b.host.SysShows, b.host.RunShows) {
		if b.req.LevelAt(s.Path) != sandbox.LevelDeny {
			b.add("--ro-bind", s.Path, s.Path)
		}
	}
	if t := b.req.Tmp; t != nil {
		b.add("--bind", t.Source.Path, t.At)
	}
}

// place turns one rule into a mount, when it changes anything. Rules come sorted, so
// directories are mounted before what is in them.
func (b *bwrapPlan) place(u Rule) {
	t := b.req.Tmp
	if b.req.isTmp(u.Path) && u.Level == sandbox.LevelWrite {
		return // the private directory stands there
	}
	for _, own := range []string{"/proc", "/sys", "/dev"} {
		if !within(u.Path, own) {
			continue
		}
		if u.Level != sandbox.LevelRead {
			b.fail("rules outside the system's own directories",
				fmt.Sprintf("%s cannot be made %s at the bwrap level", u.Path, levelWord(u.Level)),
				"leave /dev, /proc and /sys out of the policy")
		}
		return
	}
	inTmp := t != nil && u.Path != t.At && within(u.Path, t.At) && !b.req.shown(path.Dir(u.Path), t.At)
	if u.Auto && inTmp {
		return // the host's is not visible, and the policy does not ask for it
	}
	above := b.req.levelAbove(u.Path)
	covered := within(u.Path, "/run") || t != nil && within(u.Path, t.At)
	if u.Kind == KindMissing || u.Level == above && !covered && !u.Pin {
		return
	}
	if covered && u.Level == sandbox.LevelDeny && above == b.req.Root {
		return // nothing of the host's is visible there
	}
	if inTmp {
		b.plan.Points = append(b.plan.Points, Point{Below: t.Source.Path, Path: below(u.Path, t.At),
			Dir: u.Kind == KindDirectory})
	}
	if u.Kind == KindLink { // bubblewrap would mount over what it leads to
		b.fail("the symbolic link "+u.Path+" as it is", "bubblewrap cannot mount over one",
			"replace it by what it leads to")
		return
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

// mask hides a path. What is visible again below it would need mount points in a directory
// that the command may not enter.
func (b *bwrapPlan) mask(u Rule) {
	switch o := b.req.reopened(u.Path); {
	case o != nil && u.Auto:
		// Our own state, of which the command gets a directory: another one in memory
		// stands there, with nothing but the mount points.
		b.add("--perms", "0111", "--tmpfs", u.Path)
		b.sealed = append(b.sealed, u.Path)
	case o != nil:
		b.fail(fmt.Sprintf("the entry %s=%s below the denied %s", o.Path, o.Level, u.Path),
			"the bwrap level cannot enforce it",
			"leave one of them out, or use a machine with the native level")
	case u.Kind == KindDirectory:
		b.add("--ro-bind", b.req.Bwrap.Directory, u.Path)
	default:
		b.add("--ro-bind", b.req.Bwrap.File, u.Path)
	}
}

// write writes the script that starts bubblewrap. Bubblewrap's init process in the sandbox
// has the command's user and no filter of its own, so the command can take it over; the
// filter around bubblewrap, which permits the calls for namespaces, is there for that. A
// set-uid bubblewrap could not do its work with it.
func (b *bwrapPlan) write(label string) {
	r, p := b.req, b.plan
	filter := make([]byte, 0, 8*len(r.Filter))
	for _, w := range r.Filter {
		filter = binary.LittleEndian.AppendUint64(filter, w)
	}
	argv := append([]string{"bwrap", "--args", fmt.Sprint(bwrapArgs), "--", r.Program}, r.Spec.Args[1:]...)
	p.add(subreaper(r)...)
	p.add(limited(r)...)
	if len(r.Guard) > 0 {
		p.add(launch.Step{Op: launch.OpNoNewPrivs}, launch.Step{Op: launch.OpSeccomp, Filter: r.Guard,
			Label: "around bubblewrap"})
	}
	p.add(
		launch.Step{Op: launch.OpChdir, Path: "/"},
		launch.Step{Op: launch.OpPass, Value: bwrapStatus, Label: "bubblewrap's status"},
		launch.Step{Op: launch.OpPass, Value: bwrapGate, Label: "the same"},
		launch.Step{Op: launch.OpCloseFiles, Value: bwrapGate + 1},
		launch.Step{Op: launch.OpMemory, Value: bwrapFilter, Data: filter,
			Label: fmt.Sprintf("a filter of %d instructions", len(r.Filter))},
		launch.Step{Op: launch.OpMemory, Value: bwrapArgs,
			Data: []byte(strings.Join(b.args, "\x00") + "\x00"), Label: label},
		launch.Step{Op: launch.OpResetSignals},
		launch.Step{Op: launch.OpExec, Path: r.Bwrap.Program, Argv: argv})
}
