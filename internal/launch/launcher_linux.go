// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errKilled says that the first task was killed, by hand or for want of memory.
var errKilled = errors.New("launch: the kernel killed the process that built the sandbox")

// A Launcher starts processes. The zero Launcher is ready to use. Its methods
// may be called from several goroutines at once.
//
// The kernel ties a parent-death signal to the thread that cloned, so a
// Launcher keeps a few operating-system threads (at most twice the number of
// processors, made as they are needed) until Close.
type Launcher struct {
	// AnyThread has launches done by the threads that ask for them: two changes of
	// threads less each time, which is one part in twenty of a short run. It may be
	// set, before the first launch, only in a program of which all goroutines are
	// known: a goroutine that ends while it is locked to its thread ends the thread,
	// and with it whatever that thread has launched.
	AnyThread bool

	mu      sync.Mutex
	work    chan func()
	threads int
	jobs    int            // that a thread does or will do
	wg      sync.WaitGroup // threads
	under   sync.WaitGroup // launches that are under way
	zombies sync.WaitGroup // reapers that are being collected
	closed  bool
	alive   map[*Process]struct{} // with AnyThread: those that Close has to end, which the end of threads does otherwise

	self   int // pidfd of this process
	reaper int // the reaper's image
	ready  bool
	old    atomic.Bool // clone3 is missing

	ahead func(*Script) *Head // how a test has Start begin; nil
}

// prepare makes the descriptors that all launches share.
func (l *Launcher) prepareLocked() error {
	if l.ready {
		return nil
	}
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("launch: pidfd_open: %w (needs Linux 5.3 or newer)", err)
	}
	self, err = raise(self)
	if err != nil {
		return err
	}
	image, err := reaperFile()
	if err != nil {
		unix.Close(self)
		return err
	}
	l.self, l.reaper, l.ready = self, image, true
	l.work = make(chan func(), mostThreads()) // no head start waits for a thread
	return nil
}

// raise moves a descriptor above the standard ones. It closes the one it was given.
func raise(n int) (int, error) {
	if n > 2 {
		return n, nil
	}
	up, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3)
	unix.Close(n)
	if err != nil {
		return -1, fmt.Errorf("launch: duplicate a descriptor: %w", err)
	}
	return up, nil
}

// run performs f on one of the launcher's threads and waits for it.
func (l *Launcher) run(f func()) error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	if err := l.prepareLocked(); err != nil {
		l.mu.Unlock()
		return err
	}
	done := make(chan struct{})
	job := l.jobLocked(f, done)
	l.mu.Unlock()
	if l.AnyThread {
		job()
		return nil
	}
	l.work <- job
	<-done
	return nil
}

// jobLocked makes room for a job, which the caller sends to work at once. It closes
// over at its end: whoever begins another one then finds the thread free.
func (l *Launcher) jobLocked(f func(), over chan<- struct{}) func() {
	if l.jobs++; !l.AnyThread && l.threads < l.jobs && l.threads < mostThreads() {
		l.addThreadLocked()
	}
	l.under.Add(1) // Close waits for it
	return func() {
		f()
		l.mu.Lock()
		l.jobs--
		l.mu.Unlock()
		l.under.Done()
		close(over)
	}
}

func mostThreads() int { return 2 * runtime.GOMAXPROCS(0) }

func (l *Launcher) addThreadLocked() {
	l.threads++
	l.wg.Add(1)
	go l.thread()
}

// Prepare makes what the first launch needs, as Start does otherwise, and starts
// the thread that performs it: for callers who have something else to do before
// that. It returns why that cannot be had, [ErrClosed] after Close, or nil.
func (l *Launcher) Prepare() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if err := l.prepareLocked(); err != nil {
		return err
	}
	if l.threads == 0 && !l.AnyThread {
		l.addThreadLocked()
	}
	return nil
}

// thread serves launches on a locked thread. Returning while locked ends the
// thread, and with it whatever it started and is still alive. That is not so
// for the main thread, which Go parks instead; so the main thread is held until
// another one has taken the work.
func (l *Launcher) thread() {
	runtime.LockOSThread()
	if unix.Gettid() != os.Getpid() {
		l.serve()
		return
	}
	taken := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(taken)
		l.serve()
	}()
	<-taken
	runtime.UnlockOSThread()
}

func (l *Launcher) serve() {
	defer l.wg.Done()
	for f := range l.work {
		f()
	}
}

// collectLater waits for a reaper without holding up its owner.
func (l *Launcher) collectLater(p *Process) {
	l.background(func() {
		_ = p.collect() // there is nobody to tell, and nothing to lose
		p.file.Close()
		p.collected()
	})
}

// background has f done without holding up anybody but Close.
func (l *Launcher) background(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed { // Close may be waiting already, and kills what is left
		go f()
		return
	}
	l.zombies.Go(f)
}

// Close ends the launcher's threads; processes that are still running are
// killed by the kernel. It waits for launches that are under way, and may be
// called twice.
func (l *Launcher) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	ready := l.ready
	l.mu.Unlock()
	if ready {
		l.under.Wait() // before the close: they may not have been taken up yet
		close(l.work)
		l.wg.Wait()
		l.endAll()
		l.zombies.Wait()
		unix.Close(l.self)
		unix.Close(l.reaper)
	}
	return nil
}

// endAll ends what the end of threads has not ended: it does to the reapers what the
// kernel does when a thread ends.
func (l *Launcher) endAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.alive {
		p.die()
	}
	l.alive = nil
}

// die does to the reaper what the kernel does when the thread ends that launched it.
func (p *Process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dies != 0 && !p.gone {
		_ = unix.PidfdSendSignal(p.pidfd, p.dies, nil, 0) // gone is what it is to be
	}
}

// mind notes that a process is there, or has been collected.
func (l *Launcher) mind(p *Process, there bool) {
	if !l.AnyThread {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !there {
		delete(l.alive, p)
		return
	}
	if l.alive == nil {
		l.alive = make(map[*Process]struct{})
	}
	l.alive[p] = struct{}{}
}

// Start performs a script. The three descriptors become 0, 1 and 2 of the
// command; they stay the caller's. Start returns when the command's program
// has been executed, or when a step failed, with a *StepError; it blocks for
// about as long as the kernel needs (a millisecond).
func (l *Launcher) Start(s *Script, stdin, stdout, stderr *os.File) (*Process, error) {
	var h *Head
	if l.ahead != nil {
		h = l.ahead(s)
	}
	return l.StartAt(h, s, stdin, stdout, stderr)
}

// StartAt is Start with a head start, which may be nil. Where that cannot be used,
// the script is started as by Start. The head is used up.
func (l *Launcher) StartAt(h *Head, s *Script, stdin, stdout, stderr *os.File) (*Process, error) {
	defer h.Drop()
	if len(s.Steps) == 0 {
		return nil, &ScriptError{Reason: "the script is empty"}
	}
	stdio, release, err := raisedStdio(stdin, stdout, stderr)
	if err != nil {
		return nil, err
	}
	defer release()
	status, statusEnd, err := statusPipe()
	if err != nil {
		return nil, err
	}
	defer unix.Close(statusEnd)
	var p *Process
	var startErr error
	if p, err = h.launch(s, stdio, statusEnd); errors.Is(err, errNoHead) {
		err = l.run(func() { p, startErr = l.launch(s, stdio, statusEnd) })
	}
	runtime.KeepAlive(stdin)
	runtime.KeepAlive(stdout)
	runtime.KeepAlive(stderr)
	if err = errors.Join(err, startErr); err != nil {
		status.Close()
		return nil, err
	}
	p.status = status
	return p, nil
}

// raisedStdio gives the three descriptors numbers above 2: the script moves
// them down one after the other, and must not overwrite one it still needs.
func raisedStdio(files ...*os.File) (stdio [3]int, release func(), err error) {
	var own []int
	release = func() {
		for _, n := range own {
			unix.Close(n)
		}
	}
	for i, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			release()
			return stdio, nil, fmt.Errorf("launch: standard descriptor %d: %w", i, err)
		}
		var dup int
		var dupErr error
		if err := raw.Control(func(n uintptr) {
			dup, dupErr = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 3)
		}); err != nil {
			dupErr = err
		}
		if dupErr != nil {
			release()
			return stdio, nil, fmt.Errorf("launch: standard descriptor %d: %w", i, dupErr)
		}
		own = append(own, dup)
		stdio[i] = dup
	}
	return stdio, release, nil
}

// statusPipe is how the reaper tells how the command ended. The reading end
// waits in the runtime's poller, so no thread is blocked by it.
func statusPipe() (*os.File, int, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, fmt.Errorf("launch: status pipe: %w", err)
	}
	for i := range p {
		up, err := raise(p[i])
		if err != nil {
			unix.Close(p[1-i])
			return nil, -1, err
		}
		p[i] = up
	}
	if err := unix.SetNonblock(p[0], true); err != nil {
		unix.Close(p[0])
		unix.Close(p[1])
		return nil, -1, fmt.Errorf("launch: status pipe: %w", err)
	}
	return os.NewFile(uintptr(p[0]), "status"), p[1], nil
}

// cloneArgs is struct clone_args (linux/sched.h) up to cgroup. Kernels that do not
// know the last member take the size without it.
type cloneArgs struct {
	flags, pidfd uint64
	_, _         uint64 // child_tid, parent_tid
	exitSignal   uint64
	_            [5]uint64 // stack, stack_size, tls, set_tid, set_tid_size
	cgroup       uint64
}

const cloneClearSighand = 0x100000000

// launch performs one script on the current thread.
func (l *Launcher) launch(s *Script, stdio [3]int, statusEnd int) (*Process, error) {
	passed, release, err := l.pass(s, statusEnd)
	if err != nil {
		return nil, err
	}
	defer release()
	for {
		old := l.old.Load()
		enter, closeEnter, err := enterFirst(s, old)
		if err != nil {
			return nil, err
		}
		defer closeEnter()
		passed.procs = enter
		low, err := compile(s, stdio, passed, old, noHead)
		if err != nil {
			return nil, err
		}
		// The kernel gets both of these as numbers, so they must not lie on the
		// stack, which may move.
		pidfd, args := new(int32), new(cloneArgs)
		*pidfd = -1
		at := pin(low, pidfd).v
		*args = cloneArgs{
			flags:      uint64(s.Namespaces) | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | cloneClearSighand,
			pidfd:      uint64(at),
			exitSignal: uint64(unix.SIGCHLD),
		}
		c := &context{script: &low.calls[0], slots: &low.words[0]}
		if old {
			c.nr = unix.SYS_CLONE
			c.args = [5]uintptr{
				uintptr(s.Namespaces) | unix.CLONE_VM | unix.CLONE_VFORK | unix.CLONE_PIDFD | uintptr(unix.SIGCHLD),
				0, at,
			}
		} else {
			c.nr = unix.SYS_CLONE3
			c.args = [5]uintptr{pin(low, args).v, args.into(s.Cgroup)}
		}
		pid := spawnBlocked(c)
		runtime.KeepAlive(low)
		runtime.KeepAlive(s)
		if (pid == -int64(unix.ENOSYS) || pid == -int64(unix.EPERM)) && !old {
			l.old.Store(true) // container runtimes answer so, older ones with EPERM
			continue
		}
		if pid < 0 {
			return nil, cloneError(s, syscall.Errno(-pid))
		}
		// A caller that closed 0 to 2 may put something else there later.
		handle, err := raise(int(*pidfd))
		if err != nil {
			_ = unix.Kill(int(pid), unix.SIGKILL)
			_, _ = unix.Wait4(int(pid), nil, 0, nil)
			return nil, err
		}
		return l.finish(s, low, c, int(pid), handle)
	}
}

// compile lowers a script, of which the first steps may be done, and joins the lists of
// its two tasks.
func compile(s *Script, stdio [3]int, passed files, old bool, done int) (*lowering, error) {
	low, err := lower(s, stdio, passed, old, done)
	if err != nil {
		return nil, err
	}
	// The second task's list begins behind the first one's last call.
	end := low.fork + 1
	for end < len(low.calls) && low.origin[end] == low.origin[low.fork] {
		end++
	}
	if end == len(low.calls) {
		return nil, &ScriptError{Step: len(s.Steps) - 1, Reason: "nothing follows start-command"}
	}
	low.calls[low.fork].want = uintptr(unsafe.Pointer(&low.calls[end]))
	return low, nil
}

// finish turns what the child left in the context into a process or an error.
func (l *Launcher) finish(s *Script, low *lowering, c *context, pid, pidfd int) (*Process, error) {
	p := &Process{
		pid: pid, owner: l, ownPID: s.Namespaces&NewPID != 0,
		reading: make(chan struct{}, 1), known: make(chan struct{}),
	}
	p.command = int(low.words[low.calls[low.fork].out])
	if c.errno != 0 || p.command == 0 {
		p.pidfd = pidfd
		p.reap()
		unix.Close(pidfd)
		if c.errno == 0 {
			return nil, errKilled
		}
		i := (uintptr(unsafe.Pointer(c.failed)) - uintptr(unsafe.Pointer(&low.calls[0]))) / unsafe.Sizeof(call{})
		step := low.origin[i]
		if step == low.origin[low.fork] && int(i) > low.fork && !p.ownPID {
			// The reaper failed after the command had been executed, and there is
			// no process namespace that would take the command along.
			_ = unix.Kill(-p.command, unix.SIGKILL)
		}
		return nil, &StepError{Index: step, Step: s.Steps[step], Call: low.names[i], Errno: syscall.Errno(c.errno)}
	}
	p.pidfd = pidfd
	if err := p.watch(); err != nil {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
		p.reap()
		unix.Close(pidfd)
		return nil, err
	}
	// What is behind start-command is the command's own.
	for i := 0; i < low.origin[low.fork] && p.dies == 0; i++ {
		if s.Steps[i].Op == OpDieWithParent {
			p.dies = syscall.Signal(s.Steps[i].Signal)
		}
	}
	l.mind(p, true)
	return p, nil
}

// spawnBlocked blocks all signals around spawn, so that no handler of the Go
// runtime runs in the child, which shares the runtime's memory. And it tells the
// scheduler that this thread is in a system call: a set-up step that blocks must not
// hold up the garbage collector. The signals are blocked in there, because a goroutine
// that is not locked to its thread may come out of a call on another one.
//
//go:nosplit
func spawnBlocked(c *context) int64 {
	all, old := ^uint64(0), uint64(0)
	entersyscall()
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 2 /* SIG_SETMASK */, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	pid := spawn(c)
	syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, 2, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
	exitsyscall()
	return pid
}

//go:noescape
func spawn(c *context) int64

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
