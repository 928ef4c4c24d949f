// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/net/access"
	"github.com/sallyport-dev/sallyport/internal/run/accesses"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/questions"
	"github.com/sallyport-dev/sallyport/internal/run/records"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// An attempt is one process of a run, from its start to its end.
type attempt struct {
	spec     *executor.Spec
	process  executor.Process
	start    time.Time
	fanout   *fanout
	exit     *executor.Exit
	end      End
	duration time.Duration
	kept     output.Captured // of the output, at its end
	denials  []sandbox.Denial

	questions questions.Command     // asked while it runs
	hosts     *access.HostQuestions // of its hosts; nil for none
	accesses  *accesses.Questions   // of what it is denied; nil for none
	limit     questions.PausedTimer // of its time
	input     *process.FeedFailure

	mu    sync.Mutex
	cause End // why it was stopped first; empty when it was not

	stopped chan struct{} // closed when there is a cause
	told    chan struct{} // closed when its start was reported
}

// begin starts the command under a policy. An error says why there is no process.
func (x *execution) begin(ctx context.Context, policy sandbox.Policy) (*attempt, error) {
	if err := x.unchanged(); err != nil {
		return nil, err
	}
	if env, left := x.look.Env(x.env); x.opened && len(left) > 0 {
		x.env = env
		x.note("beside a command that could put programs there, it runs without these directories of PATH: " +
			strings.Join(left, ", "))
	}
	if err := x.stageable(policy); err != nil {
		return nil, err // whatever led there: the host's files do not change
	}
	if x.runner.AuditRequired {
		if err := x.sync(ctx); err != nil {
			return nil, &AuditError{err}
		}
	}
	x.attempts++
	a := &attempt{stopped: make(chan struct{}), told: make(chan struct{})}
	defer close(a.told)
	x.stopped, x.limit = a.stopped, &a.limit
	a.fanout = x.newFanout(a.stopped, func() { a.stop(EndOutput) })
	a.spec = &executor.Spec{
		Run: x.id, Attempt: x.attempts,
		Args: x.argv(), Arg0: x.cmd.Arg0, Dir: x.dir, Env: x.environment(),
		Policy: policy, Network: x.runner.live, Publish: x.cmd.Publish, Allow: x.allow, Level: x.cmd.Level,
		Tmp: x.cmd.Tmp, NoCaches: x.cmd.NoCaches, NoObserver: x.cmd.NoObserver,
		ProtectHardLinks: x.cmd.ProtectHardLinks, OwnershipErrors: x.cmd.OwnershipErrors,
		Explain: x.cmd.Explain, Digest: x.runner.Audit != nil,
		Stdout: x.direct(executor.Stdout), Stderr: x.direct(executor.Stderr),
		Resources: x.cmd.Resources, Files: x.cmd.Files,
		OnOutput: a.output, OnDenied: x.cmd.OnDenied, OnListen: x.listens, OnRecord: x.recorder(),
		Retain: x.retain,
		Grace:  x.cmd.Grace, Ready: x.cmd.Ready, OnStop: x.cmd.OnStop, Stage: x.stage(),
	}
	input := x.input(a.spec)
	x.questionsOf(a)

	a.start = time.Now()
	p, err := x.launch(ctx, a.spec)
	if err != nil {
		a.questions.Close()
		a.fanout.close()
		if errors.Is(err, ErrEndUnknown) {
			return nil, unknownEnd(err)
		}
		return nil, noSandbox(err)
	}
	a.began(p)
	x.terminal.Begin(a.spec, x.args)
	x.emit(event.Started{Sandbox: x.sandboxOf(policy, p.Sandbox()), Withheld: x.withheld})
	switch {
	case input == nil:
	case a.spec.TTY != nil:
		if x.keys == nil {
			x.keys = process.TypeKeys(input)
		}
		a.input = &x.keys.FeedFailure
		x.keys.Reach(p)
	default:
		a.input = process.Feed(p, input)
	}
	return a, nil
}

// unchanged returns an error if what the decision rests on is not as it was.
func (x *execution) unchanged() error {
	switch changed, err := x.look.Start(x.opened); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case changed != "":
		return fmt.Errorf("%w: %s changed before it was started; ask again", ErrRefused, changed)
	}
	return x.bound() // a link may have changed since
}

// output takes output once the start was reported, so that events are in order.
func (a *attempt) output(s executor.Stream, p []byte) {
	<-a.told
	a.fanout.write(s, p)
}

// follow waits for the end of an attempt. The error says that the run was cut short or
// that the end of the process is not known.
func (x *execution) follow(ctx context.Context, a *attempt) error {
	release := a.watch(ctx, x.cmd)
	// The goroutine keeps its stack for as long as the command lives, so the large part
	// is a function of its own.
	var err error
	a.exit, err = a.process.Wait()
	release()
	a.questions.Close()
	return x.followed(ctx, a, err)
}

// followed records and reports the end of an attempt whose Wait returned err.
func (x *execution) followed(ctx context.Context, a *attempt, err error) error {
	a.duration = time.Since(a.start)
	a.fanout.close()
	a.kept = a.fanout.kept.Snapshot()
	a.end = a.ending()
	seen, likeliest := x.denied(a)
	a.denials = likeliest
	for _, q := range a.exit.Quarantined {
		x.emit(event.Quarantined{Quarantined: q})
	}
	for _, d := range seen {
		x.emit(event.Denied{Denial: d})
	}
	if len(a.exit.Survivors) > 0 {
		x.emit(event.Survived{Survivors: a.exit.Survivors, By: a.exit.SurvivorsBy})
	}
	x.emit(event.Exited{Code: a.exit.Code, Signal: a.exit.Signal, Survivors: a.exit.Survivors,
		Duration: a.duration})
	switch {
	case errors.Is(noSandbox(err), ErrNoSandbox):
		a.end = EndUnavailable // the sandbox could not be built; the command did not run
		return noSandbox(err)
	case err != nil:
		if a.end = EndFailed; errors.As(err, new(*LostError)) {
			a.end = EndLost
		}
		return unknownEnd(err)
	case errors.Is(a.exit.Broken, executor.ErrSharedEnded):
		a.end = EndFailed
		return fmt.Errorf("sallyport: the command was killed: %w", a.exit.Broken)
	case a.exit.Broken != nil:
		a.end = EndFailed
		return fmt.Errorf("sallyport: the sandbox did not hold: %w", a.exit.Broken)
	case a.end == EndCanceled && x.session && ctx.Err() == nil && a.asked() == EndCanceled:
		return nil // the session was terminated by its owner
	case a.end == EndCanceled:
		return canceled(ctx)
	case a.end == EndRefused:
		return x.refused
	case a.end == EndFailed:
		return fmt.Errorf("sallyport: %w: something else ended its supervision", ErrEndUnknown)
	}
	return nil
}

// unknownEnd returns the error for a command whose end is not known because of err.
func unknownEnd(err error) error {
	if errors.As(err, new(*LostError)) { // which says so in its own words
		return fmt.Errorf("sallyport: %w", err)
	}
	return fmt.Errorf("sallyport: %w: %w", ErrEndUnknown, err)
}

// denied returns what the sandbox denied to an attempt, each with its rule and its grant: as it
// came, and the likeliest cause of a failure first. Only where nothing observed the command,
// the denial may be a guess.
func (x *execution) denied(a *attempt) (seen, likeliest []sandbox.Denial) {
	r := x.deniedRun(a)
	r.Named = r.Named && a.exit.Sandbox.Level != "seatbelt" // which has no named grants
	denials, code := slices.Clone(a.exit.Denials), a.code()
	var stdout, stderr []byte
	if code != 0 || !a.exit.Sandbox.Observed { // else it is not read
		stdout, stderr = newOutput(a.kept.Stdout).Bytes(), newOutput(a.kept.Stderr).Bytes()
	}
	if len(denials) == 0 && !a.exit.Sandbox.Observed {
		denials = r.Guess(code, stdout, stderr)
	}
	if len(a.exit.Sandbox.Hidden) > 0 {
		denials = append(denials, r.Hidden(code, stdout, stderr)...)
	}
	denials = append(denials, r.Rights(code, denials)...)
	for i := range denials {
		if d := &denials[i]; x.confined != "" && d.Op != sandbox.Syscall && d.Op != sandbox.Signal {
			d.Rule, d.NoGrant = x.confined, true // what flags grant goes with the policy that they made
		}
	}
	r.Complete(denials)
	return denials, r.Weigh(denials, code, stdout, stderr)
}

// deniedRun is an attempt to which things were denied.
func (x *execution) deniedRun(a *attempt) *reach.DeniedRun {
	return &reach.DeniedRun{
		Policy: a.spec.Policy, Dir: x.dir, Args: x.args, Env: x.env, OS: x.host.OS, Local: x.host.Local,
		Caches: !x.cmd.NoCaches, Executor: x.runner.executor(), Spec: a.spec,
		Named: a.spec.Policy.Mode() == sandbox.Managed,
	}
}

// input gives a Spec its standard input, and returns what has to be copied there.
func (x *execution) input(spec *executor.Spec) io.Reader {
	input := x.cmd.Stdin
	f, isFile := input.(*os.File)
	if x.cmd.TTY != nil {
		spec.TTY = x.cmd.TTY
		x.terminal.Add(spec)
		if x.session {
			return nil // the session's owner types it
		}
		if input == nil || isFile && f == nil {
			return strings.NewReader("") // the null device: it ends at once
		}
		return input
	}
	if isFile {
		spec.Stdin, input = f, nil // a nil file is the null device, too
	}
	spec.PipeStdin = input != nil || x.pipe
	return input
}

// direct returns the writer of a stream if it is a file that the command gets itself: not
// where a terminal takes its place or the output has to be counted.
func (x *execution) direct(s executor.Stream) *os.File {
	switch {
	case x.cmd.TTY != nil && s == executor.Stdout, x.cmd.Resources.Output > 0:
		return nil
	case s == executor.Stdout:
		return asFile(x.cmd.Stdout)
	}
	return asFile(x.cmd.Stderr)
}

// asFile returns w if it is a file.
func asFile(w io.Writer) *os.File {
	f, _ := w.(*os.File)
	return f
}

// watch stops the process when ctx ends or the time limit is exceeded, and forwards
// signals and sizes. The returned function ends that; it must be called once.
func (a *attempt) watch(ctx context.Context, c *Cmd) (release func()) {
	detach := context.AfterFunc(ctx, func() { a.stop(EndCanceled) })
	a.limit.Start(c.Timeout, func() {
		if ctx.Err() != nil {
			a.stop(EndCanceled) // a cancellation that is there wins a tie
			return
		}
		a.stop(EndTimedOut)
	})
	over := make(chan struct{})
	var forwarding sync.WaitGroup
	if c.Signals != nil {
		forwarding.Go(func() {
			process.Forward(c.Signals, over, func(sig int) {
				if sig <= 0 {
					return
				}
				err := a.signal(sig)
				if (errors.Is(err, os.ErrProcessDone) || errors.Is(err, errors.ErrUnsupported)) &&
					process.AsksToEnd(sig) {
					a.stop(EndCanceled) // what is left may wait for a sink; or the executor cannot pass it on
				}
			})
		})
	}
	if c.Resizes != nil && c.TTY != nil {
		forwarding.Go(func() {
			process.Forward(c.Resizes, over, func(s Size) {
				if a.process.Resize(s) == nil {
					a.fanout.execution.terminal.Resize(s)
				}
			})
		})
	}
	return func() {
		detach()
		a.limit.Stop()
		close(over)
		forwarding.Wait()
	}
}

// signal sends a signal to the process. A call that waits for the answer to a question returns then: the
// process may handle the signal, and can do that only after the call.
func (a *attempt) signal(sig int) error {
	err := a.process.Signal(sig)
	if process.AsksToEnd(sig) {
		a.questions.Interrupt()
	}
	return err
}

// began sets the process, which may have exceeded its output limit by now.
func (a *attempt) began(p executor.Process) {
	a.mu.Lock()
	a.process = p
	late := a.cause != ""
	a.mu.Unlock()
	if late {
		p.Stop()
	}
}

// stop ends the process for a reason; the first reason counts.
func (a *attempt) stop(why End) {
	a.mu.Lock()
	if a.cause == "" {
		a.cause = why
		close(a.stopped)
	}
	p := a.process
	a.mu.Unlock()
	if p != nil {
		p.Stop()
	}
}

// ending says how the process ended. A stop that came after its end does not count.
func (a *attempt) ending() End {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.exit.Stopped && a.cause != "":
		return a.cause
	case a.exit.Limit != "":
		return endOfLimit(a.exit.Limit)
	case a.cause == EndOutput, a.cause == EndRefused:
		// it ended by itself first, but not all of its output was passed on; or for want of the host
		return a.cause
	case a.exit.Stopped:
		return EndCanceled // by the executor's own end
	case a.exit.Signal != 0:
		return EndSignaled
	case a.exit.Code < 0:
		return EndFailed
	}
	return EndExited
}

// asked returns why the process was stopped; empty when it was not.
func (a *attempt) asked() End {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause
}

// canceled returns the error for a run whose context has ended.
func canceled(ctx context.Context) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrClosed):
		return cause
	case cause == nil:
		return fmt.Errorf("sallyport: canceled: %w", ErrClosed)
	}
	return fmt.Errorf("sallyport: canceled: %w", cause)
}

// A fanout distributes the output of an attempt: to the buffers of the Result and to a
// session, to the writers of the Cmd and to the events.
type fanout struct {
	execution *execution
	kept      *output.Capture
	writers   *output.Writers
	toFile    [2]bool // streams whose writer is a file: they are not kept
	events    records.Outputs

	budget   output.Budget // of both streams
	exceeded bool
	onExcess func() // called when the output exceeds the budget
}

// newFanout returns a fanout that calls onExcess when the output exceeds its limit.
func (x *execution) newFanout(stopped <-chan struct{}, onExcess func()) *fanout {
	f := &fanout{execution: x, kept: x.cmd.Retention.capture(),
		budget: output.NewBudget(x.cmd.Resources.Output), onExcess: onExcess}
	f.events = records.Outputs{Queue: x.runner.outputs(), Of: x.event(0, nil), Waits: x.runner.WaitForEvents,
		Stopped: stopped}
	var writers [2]io.Writer
	for i, w := range []io.Writer{x.cmd.Stdout, x.cmd.Stderr} {
		file, isFile := w.(*os.File)
		if isFile && (file == nil || x.direct(executor.Stream(i)) != nil) {
			continue // there is none, or the command has it itself
		}
		writers[i], f.toFile[i] = w, isFile
	}
	f.writers = output.NewWriters(writers[0], writers[1])
	return f
}

// write takes the next bytes of a stream. Bytes beyond the budget are counted, and nothing gets them.
func (f *fanout) write(s executor.Stream, p []byte) {
	n := f.budget.Take(len(p))
	over := len(p) - n
	p = p[:n]
	if over > 0 && !f.exceeded {
		f.exceeded = true
		f.onExcess()
	}
	if !f.toFile[s] {
		f.kept.Write(s, p)
		f.kept.Omit(s, over)
		if f.execution.onOutput != nil {
			f.execution.onOutput(p, over)
		}
	}
	f.execution.terminal.Output(s, p, f.events.Stopped)
	f.writers.Write(s, p)
	f.events.Write(s, p)
}

// close says that the output is complete, and gives the writers a limited time for what waits.
func (f *fanout) close() {
	f.writers.Close()
	f.events.Close()
}

// inputErr returns a *ReaderError if the command did not get all of its input.
func (a *attempt) inputErr() error {
	if err := a.input.Err(); err != nil {
		return &ReaderError{err}
	}
	return nil
}

// writerErr returns a *WriterError if the writer of a stream did not get everything.
func (f *fanout) writerErr(s executor.Stream) error {
	missed, err := f.writers.Missed(s)
	if missed == 0 && err == nil {
		return nil
	}
	return &WriterError{Missed: missed, Err: err}
}

// endOfLimit returns the end of a run that exceeded a limit.
func endOfLimit(limit string) End {
	switch limit {
	case executor.LimitMemory:
		return EndOOM
	case executor.LimitPIDs:
		return EndPIDs
	case executor.LimitDisk:
		return EndDisk
	case executor.LimitOutput:
		return EndOutput
	}
	return EndFailed
}

// enforced returns the limits that the executor enforced and the one on output, which the
// Runner enforces.
func (x *execution) enforced(a *attempt) []executor.Enforced {
	most := x.cmd.Resources.Output
	if most == 0 {
		return a.exit.Limits
	}
	return append(slices.Clone(a.exit.Limits), executor.Enforced{
		Limit: executor.LimitOutput, Value: float64(most), By: executor.ByWatch, Hit: a.fanout.exceeded,
	})
}
