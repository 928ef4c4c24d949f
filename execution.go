// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/questions"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An execution is a command on its way through a run: what the Cmd asks for, with
// everything in it fixed.
type execution struct {
	runner   *Runner
	cmd      *Cmd
	id       string
	callerID string // of the Cmd
	trace    event.TraceContext
	start    time.Time
	attempts int

	life    context.Context        // of the command; nil before it runs
	stopped <-chan struct{}        // of the last attempt
	limit   *questions.PausedTimer // likewise
	waits   questions.Timers       // of those who wait for it
	resumed func()                 // called when no question is open any more; nil for nothing

	session  bool // it is a session, whose input stays open
	pipe     bool // it gets a pipe as standard input
	retain   executor.Retention
	queue    *process.InputQueue         // of a session with input; nil for others
	again    func()                      // called before another attempt; nil for nothing
	onOutput func(p []byte, omitted int) // gets the output that the Result keeps; nil for none

	args     []string
	patch    *patching // that the command applies; nil for none
	dir      string
	given    []string // Env of the Cmd
	inherits []string // the variables of the caller
	env      []string
	own      []string // of env, the variables that win over a profile
	withheld []string
	warned   []string
	policy   sandbox.Policy // bound
	places   sandbox.Places // that it is bound to
	retry    judge.Retry    // what may be asked after a denial
	rule     *Rule          // that decided about it; nil for none
	version  string         // of the policies, when it was judged
	sandbox  *Sandbox       // in which it runs; nil for one of its own
	narrowed bool           // it has a policy of its own: alone, and others that of the rest, bound
	alone    sandbox.Policy
	others   sandbox.Policy
	apart    string            // why it ran in one of its own all the same
	confined string            // the rule that made the policy narrower, for people; empty for none
	host     executor.HostInfo // the machine that it runs on

	asIs struct { // before anything was approved
		policy sandbox.Policy
		env    []string
	}
	allow  []string    // openings
	look   *reach.Look // at what an approval rests on; nil for none
	opened bool        // an approval opens more than the sandbox, or the command has none
	input0 process.InputStart
	keys   *process.Keys // typed on the command's terminal; nil if nothing is
	first  *Result       // of the attempt before the last

	terminal records.Terminal // that is recorded

	mu        sync.Mutex // guards the rest
	questions int
	approvals []event.ApprovalDecided
	noted     []string // warnings about approvals
	refused   error    // what a question that ended the command came to
}

// newExecution fixes what a command means: its argument vector, directory, environment
// and policy. Its errors are about the Cmd.
func (r *Runner) newExecution(ctx context.Context, c *Cmd) (*execution, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(ctx)
	}
	err := c.check()
	if err != nil {
		return nil, err
	}
	x := &execution{runner: r, cmd: c, id: runID(), callerID: c.CallerID, start: time.Now(), allow: c.Allow,
		input0: process.InputStartOf(c.Stdin, c.TTY != nil)}
	if c.TTY != nil {
		x.terminal.To = c.Record
	}
	x.host, err = r.executor().Host(ctx)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, err
	}
	if x.given, x.inherits = slices.Clone(c.Env), slices.Clone(c.EnvPolicy.Base); x.inherits == nil {
		x.inherits = os.Environ()
	}
	before := x.given
	if before == nil {
		before = x.inherits
	}
	now := r.setting()
	x.places, err = r.places(ctx, c, cmp.Or(c.Dir, now.dir), before)
	if err != nil {
		return nil, err
	}
	x.dir = x.places.Dir
	if c.Policy != nil {
		x.narrowed, x.others, x.alone = true, now.policy.Bind(x.places), c.Policy.Bind(x.places)
		now.policy = *c.Policy
	}
	if err := x.bound(); err != nil {
		return nil, err
	}
	if err := x.confine(now.policy); err != nil {
		return nil, err
	}
	x.args = c.Args
	switch {
	case c.Patch != "":
		x.args = []string{patchName, c.Patch}
	case c.Script != "":
		x.args, err = r.shell(ctx, c)
	}
	if err == nil {
		x.patch, err = x.patching()
	}
	if err == nil {
		err = x.checkStage()
	}
	return x, err
}

// traced begins the trace of the run. What is known by then has an end: the event [event.Ended].
func (x *execution) traced() {
	x.trace = x.cmd.Trace.Valid()
	if x.runner.Tracer == nil {
		return
	}
	begin := event.Run{ID: x.id, CallerID: x.callerID, Tool: x.tool(), TTY: x.cmd.TTY != nil, Start: x.start,
		Trace: x.trace}
	err := strict.Call("Tracer", func() error { x.trace = x.runner.Tracer.Begin(begin).Valid(); return nil })
	if err != nil {
		x.note("there is no trace: " + err.Error())
	}
}

// environment returns the variables of a process: those of the command, and where it belongs in a trace.
// No approval rests on these, for each run has its own.
func (x *execution) environment() []string {
	if x.trace.Parent == "" {
		return x.env
	}
	env := slices.DeleteFunc(slices.Clone(x.env), func(entry string) bool {
		return strings.HasPrefix(entry, "TRACEPARENT=") || strings.HasPrefix(entry, "TRACESTATE=")
	})
	env = append(env, "TRACEPARENT="+x.trace.Parent)
	if x.trace.State != "" {
		env = append(env, "TRACESTATE="+x.trace.State)
	}
	return env
}

// tool is the kind of call, for telemetry.
func (x *execution) tool() string {
	switch {
	case x.patch != nil:
		return "apply_patch"
	case x.session:
		return "unified_exec"
	}
	return "shell"
}

// confine sets the policy, and what depends on it: the environment.
func (x *execution) confine(p sandbox.Policy) error {
	x.policy = p.Bind(x.places)
	if err := wholeDisk(p, x.policy, x.dir); err != nil {
		return err
	}
	x.warned = x.warnings(x.places.Home)
	return x.setEnvironment()
}

// bound returns an error if the policy that the Cmd has is wider than the Runner's.
func (x *execution) bound() error {
	if !x.narrowed {
		return nil
	}
	var real func(string) string
	if x.host.Local {
		real = hostfacts.Deepest
	}
	if err := x.others.Bounds(x.alone, real); err != nil {
		return fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	return nil
}

// wholeDisk refuses a policy for which "/" is a workspace or a writable root. Beside an
// entry that shows the disk read-only the stricter of the two would count, so nothing
// would be writable, without a word about it. A policy that says ":root=write" means it,
// and the executor says whether that is available.
func wholeDisk(p, bound sandbox.Policy, dir string) error {
	if p.Mode() != sandbox.Managed || p.Unrestricted() {
		return nil
	}
	meant := slices.ContainsFunc(p.Entries(), func(e sandbox.Entry) bool {
		return e.Place.Kind == sandbox.PlaceSpecial && e.Place.Token == sandbox.TokenRoot &&
			e.Level == sandbox.LevelWrite
	})
	written := slices.ContainsFunc(bound.Entries(), func(e sandbox.Entry) bool {
		return e.Place.Kind == sandbox.PlacePath && e.Place.Path == "/" && e.Level == sandbox.LevelWrite
	})
	if meant || !written {
		return nil
	}
	why := "as a writable root would make the whole disk writable"
	if dir == "/" {
		why = "as the workspace would make the whole disk writable"
	}
	return &executor.RootError{Path: "/", Why: why, Fix: "name a directory, or use a read-only policy"}
}

// warnings lists parts of the policy that are likely not meant.
func (x *execution) warnings(home string) []string {
	p := x.policy
	if x.privateTmp() { // what is below the host's /tmp is hidden, a home too
		p = p.WithEntries(sandbox.PathEntry("/tmp", sandbox.LevelRead))
	}
	if !x.host.Local {
		return p.Warnings(home, nil) // the paths are those of another machine
	}
	known := make(map[string]string) // some are asked for twice
	real := func(name string) string {
		if known[name] == "" {
			known[name] = hostfacts.RealPath(name)
		}
		return known[name]
	}
	out := p.Warnings(home, real)
	if x.privateTmp() && x.cmd.Tmp == "" && real(x.dir) == real("/tmp") {
		out = append(out, text.Word(x.dir)+
			" is a private directory that starts empty and is removed with the runner; set Tmp to \"host\" for the host's")
	}
	return out
}

// reach knows what commands can change, with the policy of this one as it is now and with what
// others of this Runner were given.
func (x *execution) reach() *reach.Reach {
	r := x.runner
	r.mu.Lock()
	more := slices.Concat(r.Writable, r.opened)
	r.mu.Unlock()
	more = append(more, x.others.Writes()...)
	if filepath.IsAbs(x.cmd.Tmp) {
		more = append(more, x.cmd.Tmp)
	}
	return reach.New(reach.Area{Policy: x.policy, Workspace: x.dir, HostTmp: x.cmd.Tmp == "host",
		Writable: more})
}

// opens notes what commands of the Runner may write to from now on.
func (r *Runner) opens(required []string) {
	_, grants := approval.Opened(required)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range grants {
		if filepath.IsAbs(g.Path) && !slices.Contains(r.opened, g.Path) {
			r.opened = append(r.opened, g.Path)
		}
	}
}

// leave gives the command what a rule that leads outside does. What it finds by its environment there must be
// out of reach, as it itself is. Where nothing confines commands, everything is as it was.
func (x *execution) leave() error {
	confined, in := x.host.Local && x.policy.Mode() == sandbox.Managed, x.reach()
	if err := x.open([]string{approval.Outside}); err != nil || !confined {
		return err
	}
	var dropped []string
	if x.env, dropped = in.Environ(x.dir, x.env); len(dropped) > 0 {
		x.note("it runs without variables that lead to what commands can change: " +
			strings.Join(dropped, ", "))
	}
	return nil
}

// places returns what the special places of a policy are on the executor's machine.
func (r *Runner) places(ctx context.Context, c *Cmd, dir string, env []string) (sandbox.Places, error) {
	places, err := executor.PlacesIn(ctx, r.executor(), c.Stage, dir, env, c.Tmp)
	if !errors.Is(err, errors.ErrUnsupported) {
		return places, err
	}
	if !strings.HasPrefix(dir, "/") {
		return sandbox.Places{}, &CmdError{Field: "Dir", Reason: "it must be absolute for this executor"}
	}
	return sandbox.Places{Dir: dir}, nil
}

// shell returns the argument vector that runs the script of c.
func (r *Runner) shell(ctx context.Context, c *Cmd) ([]string, error) {
	args, err := r.executor().Shell(ctx, c.Shell, c.Script, c.Login)
	if !errors.Is(err, errors.ErrUnsupported) {
		return args, err
	}
	if c.Shell != "" || c.Login {
		return nil, &CmdError{Field: "Shell", Reason: "this executor knows no shells by name; use Args"}
	}
	return []string{"/bin/sh", "-c", c.Script}, nil
}

// setEnvironment applies the environment policy and adds what every command gets.
func (x *execution) setEnvironment() (err error) {
	managed := x.policy.Mode() == sandbox.Managed
	c := environ.Command{
		Env: x.given, Base: x.inherits, System: x.host.OS, Dir: x.dir, Sandbox: x.policy.Name(),
		Network: x.policy.Network().String(),
		Offline: x.policy.Network() == sandbox.NetworkNone, ReadOnlyGit: managed &&
			!slices.Contains(x.policy.Named(), reach.GitGrant), PrivateTmp: x.privateTmp(),
	}
	res, own, err := c.Apply(environ.Policy(x.cmd.EnvPolicy))
	if wrong := new(environ.NameError); errors.As(err, &wrong) {
		return &CmdError{Field: "Env", Reason: wrong.Error()}
	}
	x.env, x.withheld, x.own = res.Env, res.Withheld, own
	return err
}

// replaced says which variables that the caller has set by name have another value in a managed network.
func (x *execution) replaced(a *attempt) []string {
	if a.spec.Policy.Network() != sandbox.NetworkProxy {
		return nil
	}
	names := environ.Replaced(maps.Keys(x.cmd.EnvPolicy.Set))
	if len(names) == 0 {
		return nil
	}
	return []string{"the managed network sets " + strings.Join(names, ", ") +
		", so the values given are not used; localhost is the command itself without them, and " +
		"network.upstream names another proxy"}
}

// argv returns the arguments to execute. A login shell reads the user's profile, which may
// change variables that must win, so its script sets them again.
func (x *execution) argv() []string {
	if !x.cmd.Login {
		return x.args
	}
	args, last := slices.Clone(x.args), len(x.args)-1
	args[last] = programs.ShellKindOf(args[0]).Export(x.own) + args[last]
	return args
}

// listens tells that the command is about to listen at a port of its own network.
func (x *execution) listens(port uint16) {
	x.emit(event.Listening{Port: port})
	if x.cmd.OnListen != nil {
		x.cmd.OnListen(port)
	}
}

// privateTmp reports whether the command sees a /tmp of its own.
func (x *execution) privateTmp() bool {
	return x.policy.Mode() == sandbox.Managed && x.cmd.Tmp != "host"
}

// emit passes an event to the Runner's sink and its logger.
func (x *execution) emit(b event.Body) {
	e := x.event(0, b)
	x.runner.events.Emit(e)
	x.terminal.Mark(b)
	records.Write(x.runner.Logger, x.tool(), &e)
}

// event is one of this attempt, or of one that many later, before it is numbered.
func (x *execution) event(later int, b event.Body) event.Event {
	return event.Event{Run: x.id, Attempt: x.attempts + later, CallerID: x.callerID, Body: b}
}

// ended reports the end of the run to the sink and the logger.
func (x *execution) ended(res *Result, err error) {
	e := event.Ended{ExitCode: -1, End: string(endOf(err)), Duration: time.Since(x.start)}
	if res != nil {
		e.ExitCode, e.End = res.ExitCode, string(res.End)
	}
	if err != nil {
		e.Error = err.Error()
	}
	x.emit(e)
	x.flush()
	last := x.event(0, e)
	records.Ended(x.runner.Logger, &last, x.args[0], x.dir)
}

// flush gives the sink its time for what happened: all that it needs, if commands wait for it
// and this one was not stopped. The time limit goes on.
func (x *execution) flush() {
	if !x.runner.WaitForEvents || x.life == nil {
		x.runner.events.Flush(nil, nil)
		return
	}
	life := x.life
	if left := x.limit.Left(); left > 0 {
		limited, cancel := context.WithTimeout(life, left)
		defer cancel()
		life = limited
	}
	x.runner.events.Flush(x.stopped, life.Done())
}

// syncTime is how long a run waits until the audit log has kept what happened in it.
const syncTime = 10 * time.Second

// errNoAudit is the cause where an audit log is required and there is none.
var errNoAudit = errors.New("there is none; set Audit")

// sync waits until the audit log has kept what happened until now.
func (x *execution) sync(ctx context.Context) error {
	if x.runner.Audit == nil {
		return errNoAudit
	}
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	return x.runner.events.Sync(ctx)
}

// kept returns the end of a run once the audit log has it.
func (x *execution) kept(res *Result, err error) (*Result, error) {
	if x.runner.Audit == nil {
		return res, err
	}
	why := x.sync(context.Background()) // a run that was canceled is kept, too
	switch {
	case why == nil:
	case x.runner.AuditRequired:
		err = errors.Join(err, &AuditError{why})
	case res != nil:
		res.Notices = append(res.Notices, "the audit log lacks the end of this run: "+why.Error())
	}
	return res, err
}

// endOf names the end of a command that did not run, or whose end is not known.
func endOf(err error) End {
	var start *executor.StartError
	var lost *LostError
	switch {
	case errors.As(err, &lost):
		return EndLost
	case errors.Is(err, ErrForbidden):
		return EndForbidden
	case errors.Is(err, ErrRefused):
		return EndRefused
	case errors.Is(err, ErrNoSandbox):
		return EndUnavailable
	case errors.Is(err, context.Canceled), errors.Is(err, ErrClosed):
		return EndCanceled
	case errors.As(err, &start) && start.NotFound:
		return EndNotFound
	}
	return EndFailed
}

// runID returns the identity of a run. It must be unique, not secret, so the runtime's
// generator suffices.
func runID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }
