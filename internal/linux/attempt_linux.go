// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/limits"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/linux/stage"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/protect"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An attempt is one try to start a command at one level.
type attempt struct {
	held
	host        *Host
	level       string
	spec        *executor.Spec
	stdio       [3]*os.File
	dry         bool     // only plan: claim no names
	shared      *Shared  // nil for a sandbox of its own
	begun       *bool    // it is recorded that the command of the stage begins; nil without one
	likely      *root    // that the preforked task began with
	root        *root    // mounts that the command begins with, or has made for others
	fits        *root    // the same, after the start
	fixed       []string // what approved commands run, which stays as it is
	layerIndex  int      // which of those with layers of caches shares them
	layerSource *root    // that one; nil for none
	preforked   *launch.Preforked
	resolved    sandbox.Resolved
	overlays    []plan.Overlay
	copies      map[string]plan.Spot
	linked      []string        // places whose files may have names elsewhere,
	own         []string        // and those that only the command has
	reaches     *network.Policy // which hosts; nil without a managed network
	// at which a command without a network asks for names; zero if that is not seen
	server netip.AddrPort
	// how connections come to the proxy without rules; nil where there are some, or nothing
	routed *plan.Routed
}

// held is what the host holds for one command until its process tree has ended. Members
// that are nil hold nothing.
type held struct {
	names     *protect.Protection
	caches    *caches.Layers
	stage     *stage.Session
	bounds    *limits.Bounds
	observer  *observation
	services  *granted
	network   *access.Service
	published *access.Published
	member    *access.CommandSockets // of the network of a shared sandbox
	apart     func()                 // ends that it counts there as unobserved; nil where it does not
	notice    *dirs.PublishedNotice  // where it writes
}

// attempt starts to make the control group that the limits of the command need.
func (h *Host) attempt(level string, spec *executor.Spec, stdio [3]*os.File) *attempt {
	return &attempt{host: h, level: level, spec: spec, stdio: stdio,
		held: held{bounds: limits.New(&h.groups, spec.Resources)}}
}

// release releases what an attempt that failed holds.
func (a *attempt) release() {
	a.preforked.Drop()
	a.leave()
	a.observer.close()
	a.bounds.Release()
	a.names.Release()
	a.caches.Release()
	a.services.close()
	a.network.Close()
	a.member.Leave()
	a.leavePeers()
	a.published.Close()
	a.notice.Withdraw()
}

// prefork starts to make the namespaces of the native level, in a shared sandbox with the mounts that
// the command likely begins with. With limits the first task may have to start in a control group, which
// is not there yet.
func (a *attempt) prefork() {
	r := a.spec.Resources
	if a.level != plan.LevelNative || a.host.lacks(a.level) != nil || r.Memory != 0 ||
		r.CPUs != 0 || r.PIDs != 0 {
		return
	}
	facts := a.host.Facts()
	namespaces := plan.Namespaces(facts, a.spec.Policy.Network())
	first, from := plan.First(facts), launch.Files{}
	if s := a.shared; s != nil {
		if a.likely = s.likely(); a.likely != nil {
			first = plan.FirstInside(facts, a.spec, s.parts.PIDs)
		}
		namespaces, from = plan.Inside(facts, s.parts.PIDs),
			launch.Files{Enter: s.enter(a.likely), Trees: s.parts.Trees}
	}
	a.preforked = a.host.launcher().Prefork(namespaces, first, from)
}

// waitReady waits until the command may start. The preforked task occupies a thread, so it
// is dropped after a time that is far longer than an approval rule takes.
func (a *attempt) waitReady(ctx context.Context) error {
	const patience = 50 * time.Millisecond
	if a.spec.Ready != nil {
		defer time.AfterFunc(patience, a.preforked.Drop).Stop()
	}
	return process.WaitReady(ctx, a.spec)
}

// plan gathers the facts and plans the launch. A *refusal says that the next level may do.
func (a *attempt) plan() (*plan.Plan, error) {
	if why := a.host.lacks(a.level); why != nil {
		return nil, &refusal{a.level, why}
	}
	r := &plan.Request{Level: a.level, Spec: a.spec, Env: a.spec.Env, Limits: limits.Defaults()}
	err := a.addNetwork(r)
	if err != nil {
		return nil, err
	}
	if err := a.publish(r); err != nil {
		return nil, err
	}
	r.Program, err = hostfacts.Lookup(a.spec.Args[0], a.spec.Dir, a.spec.Env)
	if err != nil && a.stage == nil {
		return nil, err
	}
	if a.level != plan.LevelNone {
		if err := a.gather(r); err != nil {
			return nil, err
		}
		a.ownNameServer(r)
	}
	if a.stage != nil {
		see := stage.Stat(r.Staged)
		if r.Program, err = hostfacts.LookupIn(a.spec.Args[0], a.spec.Dir, a.spec.Env, see); err != nil {
			return nil, err
		}
	}
	if a.level == plan.LevelNative {
		if err := a.addTrust(r); err != nil {
			return nil, err
		}
		if err := a.addSettings(r); err != nil {
			return nil, err
		}
		if err := a.addIncludes(r); err != nil {
			return nil, err
		}
	}
	if r.Entry, err = a.bounds.At(a.level, writable(r), a.shared != nil); err != nil {
		return nil, err
	}
	if a.shared != nil {
		r.Entry = a.shared.total.Entry(r.Entry)
	}
	p, err := a.make(r)
	if err != nil {
		return nil, a.refusal(hidden(a.spec, err))
	}
	return p, a.meet(r)
}

// refusal returns err, or a *refusal for what a weaker level than native cannot enforce.
// What the best level cannot enforce is refused at once.
func (a *attempt) refusal(err error) error {
	var no *sandbox.UnsupportedError
	if (a.level == plan.LevelBwrap || a.level == plan.LevelLandlock) && errors.As(err, &no) {
		return &refusal{a.level, no}
	}
	return err
}

// gather adds to a request what a sandbox must know: what is at the paths of the policy, the
// caches of toolchains and the system call filter. It claims protected names that are
// missing.
func (a *attempt) gather(r *plan.Request) (err error) {
	if err := a.describeStdio(r); err != nil {
		return err
	}
	res, err := a.spec.Policy.Resolve()
	if err != nil {
		return err
	}
	a.resolved = res
	r.Root, r.Narrow = res.Root, narrowings(&res)
	if err := a.addFilter(r, &res); err != nil {
		return err
	}
	if err := a.addServices(r, &res); err != nil {
		return err
	}
	own, err := a.host.onDisk()
	if err != nil {
		return err
	}
	q := &protect.Request{
		Services: a.services.FoundServices,
		Policy:   &res, Dir: a.spec.Dir, Mounts: a.level != plan.LevelLandlock,
		Alone: a.level == plan.LevelNative, Copies: a.level == plan.LevelNative,
		Links: a.level == plan.LevelNative, Judged: r.Observe && !slices.Contains(a.spec.Allow, "userns"),
		Fixed: a.fixed, Tmp: a.spec.Tmp, PrivateTmp: a.privateTmp(own), Homes: grants.Homes(),
		Trusted: trust.Unchanged, Scans: own.scans, Table: &own.mounts,
	}
	q.State, q.NoState = dirs.Protected()
	q.Settings, q.SettingsFile = dirs.ProtectedDirs(os.Getenv, q.Homes), dirs.ProtectedFile(os.Getenv)
	q.Own = hostfacts.OwnBuild()
	// in a stage nothing of the host's is claimed, and what is applied is judged
	if !a.dry && a.stage == nil {
		q.Protector = own.protector
	}
	if a.names, err = protect.New(q); err != nil {
		return err
	}
	r.Rules, r.Tmp = a.names.Rules(), a.names.Tmp()
	r.Dir = visibleDir(r)
	addShown(r, &res, a.services.FoundServices)
	layers := caches.Request{
		Plan: r, Args: a.spec.Args, Dir: hostfacts.RealPath(a.spec.Dir), State: own.state,
		Policy: &res, Allow: a.spec.Allow, Disabled: a.spec.NoCaches, Overlays: a.level == plan.LevelNative,
		Dry: a.dry || a.stage != nil,
	}
	layers.Like = a.borrow(&layers)
	a.caches, err = a.host.caches.Prepare(layers)
	if err != nil {
		return err
	}
	if l := a.caches; l != nil {
		r.Rules, r.Overlays, r.Env = l.Rules, l.Overlays, l.Env
	}
	if err := a.addStage(r); err != nil {
		return err
	}
	a.overlays, a.linked, a.own = r.Overlays, r.SharedPlaces(), r.OwnPlaces()
	if a.level == plan.LevelBwrap {
		return a.addBwrap(r, own.state)
	}
	return nil
}

// describeStdio adds what the standard streams of the command are.
func (a *attempt) describeStdio(r *plan.Request) (err error) {
	for i, f := range a.stdio {
		if a.spec.TTY != nil && (i < 2 || a.spec.Stderr == nil) {
			continue // the terminal takes its place
		}
		if r.Stdio[i], err = hostfacts.DescribeStdio(i, f, a.level == plan.LevelNative); err != nil {
			return err
		}
	}
	return nil
}

// addBwrap adds the system's bubblewrap and, unless that is set-uid, the filter around it.
func (a *attempt) addBwrap(r *plan.Request, dir string) error {
	program, _ := a.host.findBwrap()
	var err error
	if r.Bwrap, err = program.For(r.Rules, dir); err != nil {
		return a.refusal(err)
	}
	if program.SetUID {
		return nil
	}
	r.Guard, err = a.host.filter(a.level, a.spec, unobserved, "userns")
	return err
}

// launch performs a plan.
func (a *attempt) launch(p *plan.Plan) (_ *Child, err error) {
	files := launch.Files{
		Stdin: a.stdio[0], Stdout: a.stdio[1], Stderr: a.stdio[2], Extra: a.spec.Files,
		Hold: []*os.File{a.caches.Hold(), a.names.Lock(), a.notice.Hold(), a.stage.Hold()},
	}
	release, err := a.stage.Claim(p)
	if err != nil {
		return nil, err
	}
	defer release()
	a.bounds.Files(&files)
	if p.Has(launch.OpObserve) {
		if a.observer, err = a.observe(p); err != nil {
			return nil, err
		}
		files.Observer = a.observer.inbox.Theirs()
	} else if a.shared != nil {
		a.apart = a.shared.peers.Add()
	}
	var sent handovers
	defer sent.close()
	if err := sent.open(p, &files); err != nil {
		return nil, err
	}
	a.enter(&files)
	a.stage.Trees(&files)
	if a.shared != nil && a.shared.demux != nil {
		a.member = a.shared.demux.Join()
	}
	var monitor *BubblewrapMonitor
	if p.Pipes {
		if monitor, err = OpenBubblewrap(&files); err != nil {
			return nil, err
		}
	}
	proc, err := a.host.launcher().Start(a.preforked, &p.Script, files)
	a.observer.started()
	if err != nil {
		if monitor != nil {
			monitor.Abandon()
		}
		return nil, a.bounds.Explain(err)
	}
	proc.OnStop = a.spec.OnStop
	c := a.host.newChild(p, a.spec, proc, monitor)
	if err := a.receive(c, &sent, p); err != nil {
		_ = c.Kill()
		return nil, errors.Join(err, c.WaitAll(), c.Close(new(executor.Exit)))
	}
	c.hold(a.held)
	if a.shared != nil {
		c.shared = a.shared
		a.shared.add(c)
	}
	a.leave()
	return c, nil
}

// writable returns the directories that a command may write to, each where the host has it.
func writable(r *plan.Request) []string {
	var out []string
	for _, u := range r.Rules {
		if r.Tmp != nil && u.Path == r.Tmp.At {
			continue // the private directory is mounted over it
		}
		staged := slices.ContainsFunc(r.Staged,
			func(s plan.Staged) bool { return safefile.Within(u.Path, s.Path) })
		if u.Level == sandbox.LevelWrite && u.Kind != plan.KindMissing && !u.Pin && !staged {
			out = append(out, u.Path)
		}
	}
	for _, s := range r.Staged {
		out = append(out, s.Upper.Path)
	}
	if r.Tmp != nil {
		out = append(out, r.Tmp.Source.Path)
	}
	for _, o := range r.Overlays {
		out = append(out, o.Upper.Path)
	}
	return out
}
