// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/peer"
	"github.com/sallyport-dev/sallyport/internal/sockets"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A keeper holds one named sandbox. Connections end with its process.
type keeper struct {
	own     *Request // of the run that started it
	idle    time.Duration
	since   time.Time
	room    *room
	shared  executor.Shared
	parts   local.SharedParts
	sockets sockets.Registry // of the commands of all runs

	over     chan struct{} // closed when the sandbox is to end
	empty    chan struct{} // closed when it is to end and no run is left
	mu       sync.Mutex    // guards what follows
	ending   bool
	running  int
	deadline time.Time   // of the idle time, while nothing runs
	timer    *time.Timer // likewise
}

// Keep is the keeper of one sandbox, until that ends. The process must end after it. Stdin is the connection
// to the run that started it, which is the first to join. SIGTERM and SIGINT end the sandbox.
func Keep(ctx context.Context, stdin *os.File) error {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGINT)
	defer stop()
	first, err := connOf(stdin)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(first, maxLine)
	asked, err := readCall(in)
	if err != nil {
		return err
	}
	e := new(local.Executor)
	k, l, err := open(ctx, e, asked)
	if err == nil {
		k.serve(ctx, l, first, in)
	} else {
		_ = send(first, failure(err)) // a run that is gone does not need it
	}
	return e.Close()
}

// failure is the reply with an error.
func failure(err error) *reply {
	var unsupported *sandbox.UnsupportedError
	if errors.As(err, &unsupported) {
		return &reply{Unsupported: unsupported}
	}
	return &reply{Failed: err.Error()}
}

// open opens the sandbox that a call describes, and listens.
func open(ctx context.Context, e *local.Executor, asked *call) (*keeper, *net.UnixListener, error) {
	if asked.Version != version || asked.Do != doStart || asked.Run == nil || asked.IdleMS <= 0 {
		return nil, nil, errors.New("the call is invalid")
	}
	own, err := asked.Run.decode()
	if err == nil {
		err = CheckName(own.Name)
	}
	if err != nil {
		return nil, nil, err
	}
	k := &keeper{
		own: own, idle: time.Duration(asked.IdleMS) * time.Millisecond, since: time.Now(),
		over: make(chan struct{}), empty: make(chan struct{}),
	}
	k.timer = time.AfterFunc(time.Hour, k.expire)
	k.timer.Stop() // until the first run has left
	if k.shared, err = e.Open(ctx, &executor.SharedSpec{Policy: own.Policy}); err != nil {
		return nil, nil, err
	}
	k.parts, _ = local.Parts(k.shared) // it is this Executor's
	if k.room, err = makeRoom(); err != nil {
		return nil, nil, err
	}
	l, err := k.room.listen(own.Name)
	return k, l, err
}

// serve answers runs until the sandbox has ended.
func (k *keeper) serve(ctx context.Context, l *net.UnixListener, first *net.UnixConn, in *bufio.Reader) {
	k.enter() // before the socket is known
	go k.joined(first, in)
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return // it was closed
			}
			go func() {
				k.converse(c)
				_ = c.Close() // what was to be written is written
			}()
		}
	}()
	select {
	case <-ctx.Done():
	case <-k.shared.Done():
	case <-k.over:
	}
	k.finish()
	_ = l.Close() // nothing is written through it
	k.end()
}

// converse answers the call of a process.
func (k *keeper) converse(c *net.UnixConn) {
	who, err := peer.Of(c)
	if err != nil {
		return
	}
	welcome := who.Own() && !who.Confined()
	who.Close()
	if !welcome {
		_ = send(c, &reply{Refused: &RefusedError{Name: k.own.Name, Why: "it belongs to another user, or this run is in a sandbox itself", Fix: "use a sandbox of your own"}})
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(patience)) // an error is that of the next read
	in := bufio.NewReaderSize(c, maxLine)
	asked, err := readCall(in)
	if err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	switch asked.Do {
	case doList:
		_ = send(c, &reply{Info: k.info()})
	case doStop:
		k.finish()
		select {} // the connection ends with this process
	case doJoin:
		if no := k.judge(asked); no != nil {
			_ = send(c, no)
		} else if !k.enter() {
			_ = send(c, &reply{Gone: true})
		} else {
			k.joined(c, in)
		}
	default:
		_ = send(c, &reply{Failed: "the call is invalid"})
	}
}

// judge returns the reply to a run that may not join, or nil.
func (k *keeper) judge(asked *call) *reply {
	if asked.Version != version {
		return &reply{Refused: &RefusedError{Name: k.own.Name, Why: "another version of sallyport has started it", Fix: "end it with sallyport sandboxes stop, or use another name"}}
	}
	if asked.Run == nil {
		return &reply{Failed: "the call is invalid"}
	}
	r, err := asked.Run.decode()
	if err != nil {
		return failure(err)
	}
	if no := refuse(k.own, r); no != nil {
		return &reply{Refused: no}
	}
	return nil
}

// joined hands on the parts to a run that was counted, and returns when it has left.
func (k *keeper) joined(c *net.UnixConn, in *bufio.Reader) {
	defer k.leave()
	p := &parts{
		Network: k.parts.Network, Hosts: k.parts.Hosts, Tmp: []byte(k.parts.Tmp), PIDs: k.parts.PIDs,
		Namespaces: len(k.parts.Namespaces), Trees: len(k.parts.Trees),
	}
	if err := send(c, &reply{Parts: p}, slices.Concat(k.parts.Namespaces, k.parts.Trees, []*os.File{k.parts.Holder})...); err == nil {
		k.answer(c, in)
	}
}

// enter counts a run, until leave. It reports whether the sandbox goes on.
func (k *keeper) enter() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending {
		return false
	}
	k.running++
	k.timer.Stop()
	return true
}

func (k *keeper) leave() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running--
	switch {
	case k.running > 0:
	case k.ending:
		close(k.empty)
	default:
		k.deadline = time.Now().Add(k.idle)
		k.timer.Reset(k.idle)
	}
}

// expire ends a sandbox that nothing has used for long enough.
func (k *keeper) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running == 0 && !time.Now().Before(k.deadline) { // else a run came meanwhile
		k.finishLocked()
	}
}

// finish has the sandbox end. From now on no keeper is found at its name, and another one may be started.
func (k *keeper) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.finishLocked()
}

func (k *keeper) finishLocked() {
	if k.ending {
		return
	}
	k.ending = true
	k.timer.Stop()
	_ = k.room.Remove(k.own.Name + socketType) // a stale one is replaced
	close(k.over)
	if k.running == 0 {
		close(k.empty)
	}
}

// end ends the sandbox. What runs in it ends first, for it may write in the /tmp that is removed.
func (k *keeper) end() {
	const patience = 5 * time.Second                                                                 // a run may have been stopped, and not see it
	_ = control(k.parts.Holder, func(fd int) { _ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) }) // it may be gone
	<-k.shared.Done()
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-k.empty:
	case <-late.C:
	}
	_ = k.shared.Close() // the next start removes what could not be removed
}

// info describes the sandbox.
func (k *keeper) info() *Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := &Info{
		Name: k.own.Name, Workspace: k.own.Workspace, Network: k.own.Policy.Network(), Since: k.since.Round(0),
		Running: k.running, PID: os.Getpid(), Idle: k.idle.Milliseconds(),
	}
	if k.running == 0 {
		left := max(time.Until(k.deadline).Milliseconds(), 0)
		i.IdleLeft = &left
	}
	return i
}
