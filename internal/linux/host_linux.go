// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/internal/linux/limits"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/internal/net/proxy"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Host starts commands on this machine. The zero Host is ready to use; its methods may be
// called from several goroutines at once.
type Host struct {
	// Only, when it is not empty, is the one level that is used, for probes. It is set
	// before the first use.
	Only string

	shared *pool // of another Host; nil for own
	own    pool

	groups   limits.Groups
	caches   caches.Store
	proxy    proxy.Proxy
	children atomic.Int32 // that were not closed yet
	stopped  atomic.Int32 // whose whole tree was signaled
	outgrown atomic.Bool  // a tree could not be killed

	factsOnce sync.Once
	facts     *plan.Host

	sealOnce sync.Once
	sealed   launch.Filter
	sealErr  error

	bwrapOnce sync.Once
	bwrap     *Bubblewrap
	bwrapLack *sandbox.UnsupportedError

	making  sync.Mutex // guards files and bundles, and is held while they are made
	files   *files
	bundles map[proxy.Interceptor]*bundle // of certificates, for commands whose TLS is opened

	mu     sync.Mutex // guards what follows
	closed bool
	taken  *launch.Launcher // nil before the first use
	// why connections are not redirected; empty while nothing is known
	unredirected string
	unrouted     bool // nor come to sockets at some ports
	// names that commands without a network ask for are not seen
	unnamed  bool
	onlyIPv4 bool // connections by IPv6 are not redirected
	noTrees  bool // trees of other namespaces are not copied
	// why no observer is available; empty while nothing is known
	unobserved string
	lacking    map[string]*sandbox.UnsupportedError // levels that are not available, as launches have shown
}

// files are what a Host has on disk.
type files struct {
	*kept
	alone bool      // no other Host uses kept
	tmp   *dirs.Tmp // the private /tmp
}

var errClosed = errors.New("the executor of this machine is closed")

// Facts returns what is known about the machine. It looks once.
func (h *Host) Facts() *plan.Host {
	h.factsOnce.Do(func() { h.facts = hostfacts.Gather() })
	return h.facts
}

// findBwrap returns the system's bubblewrap, or why it cannot be used. It looks once.
func (h *Host) findBwrap() (*Bubblewrap, *sandbox.UnsupportedError) {
	h.bwrapOnce.Do(func() { h.bwrap, h.bwrapLack = FindBubblewrap() })
	return h.bwrap, h.bwrapLack
}

// onDisk returns what the Host has on disk, which is made once.
func (h *Host) onDisk() (*files, error) {
	h.making.Lock()
	defer h.making.Unlock()
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	if h.files != nil {
		return h.files, nil
	}
	dir, tmp, err := dirs.NewTmp()
	if err != nil {
		// In another sandbox nothing can be written and no namespace made. The latter is
		// the better reason.
		if none := h.namespaces(); none != nil {
			err = none
		}
		return nil, err
	}
	k, same := h.pool().keep(dir)
	if !same {
		k = newKept(dir)
	}
	h.files = &files{kept: k, alone: !same, tmp: tmp}
	return h.files, nil
}

// namespaces returns why user namespaces are not available here, or nil. It tries to make
// one, and ends before any program is executed, because a directory is none.
func (h *Host) namespaces() error {
	f, err := os.Open(os.DevNull)
	if err != nil {
		return nil // that says nothing about namespaces
	}
	defer f.Close()
	_, err = h.launcher().Start(nil, &launch.Script{Namespaces: launch.NewUser, Steps: []launch.Step{
		{Op: launch.OpMapUser, UID: os.Geteuid(), GID: os.Getegid()},
		{Op: launch.OpStartCommand},
		{Op: launch.OpExec, Path: "/", Argv: []string{"/"}},
	}}, launch.Files{Stdin: f, Stdout: f, Stderr: f})
	var step *launch.StepError
	if !errors.As(err, &step) || step.Step.Op == launch.OpExec {
		return nil
	}
	return Explain(&executor.Spec{Args: []string{"/"}}, err)
}

// closeTime is how long Close waits for the kernel and the disk. What commands have left can
// take longer: processes that wait for a slow disk, a private /tmp with millions of files.
// After a time limit or a cancellation the caller is not to wait long: less than a second for
// one command, and a moment for each other one.
func (h *Host) closeTime() time.Duration {
	if n := h.stopped.Load(); n > 0 {
		return min(800*time.Millisecond+time.Duration(n)*100*time.Millisecond, time.Minute)
	}
	return time.Minute
}

// Close kills whatever still runs and removes the private /tmp. After closeTime it returns an
// error, and removing goes on in the background; the next start removes what is left. It may
// be called twice.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	launches := h.launcherLocked()
	h.mu.Unlock()
	h.making.Lock() // a call that makes files has made them, and later ones get errClosed
	made := h.files
	h.making.Unlock()

	late, cancel := context.WithTimeout(context.Background(), h.closeTime())
	defer cancel()
	// What a command could still use is removed when the kernel has killed everything.
	// Where all commands are over, nothing waits for the end of their namespaces.
	launcher := begin(late, "the kernel still ends processes of a command", func() error {
		return errors.Join(h.giveBack(launches), h.groups.Close()) // groups are empty then
	})
	var err error
	if h.children.Load() > 0 {
		err = launcher()
	}
	if made == nil {
		return errors.Join(err, launcher(), h.own.close())
	}
	if berr := h.removeBundles(); berr != nil {
		err = errors.Join(err, fmt.Errorf("remove the file of certificates: %w", berr))
	}
	// both wait for the disk
	removed := begin(late, "removing the private /tmp takes long; later starts remove the rest",
		made.tmp.Remove)
	// It takes the lock of the journal, and counts what a command left in quarantine.
	kept := begin(late, "giving up protected names takes long; the next start does the rest",
		func() error { return h.leave(made) })
	err = errors.Join(err, kept())
	if rerr := removed(); rerr != nil {
		err = errors.Join(err, fmt.Errorf("remove the private /tmp: %w", rerr))
	}
	return errors.Join(err, launcher())
}

// leave gives up what h has in common with others, or alone.
func (h *Host) leave(made *files) (err error) {
	if made.alone {
		err = made.close()
	} else if h.shared != nil {
		err = made.protector.Bound()
	}
	return errors.Join(err, h.own.close())
}

// begin calls f in a goroutine. The function that it returns waits for the error of f, or
// returns what is late when the context ends first; f goes on then. Called again it returns
// nil.
func begin(late context.Context, what string, f func() error) (wait func() error) {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	waited := false
	return func() error {
		if waited {
			return nil
		}
		waited = true
		select {
		case err := <-ended:
			return err
		case <-late.Done():
		}
		select { // what has ended meanwhile is not late
		case err := <-ended:
			return err
		default:
			return errors.New(what)
		}
	}
}

// makePoints makes mount points in the directory that stands at /tmp. Earlier commands may
// have written there, so no link is followed out of it.
func makePoints(points []plan.Point) error {
	for _, p := range points {
		if err := makePoint(p); err != nil {
			return &executor.RootError{
				Path: p.Path, Why: "cannot be made as a mount point in the private /tmp: " +
					hostfacts.Reason(err),
				Fix: "an earlier command may have put something else there; use a new Runner, or a workspace outside of /tmp",
			}
		}
	}
	return nil
}

func makePoint(p plan.Point) error {
	root, err := os.OpenRoot(p.Below)
	if err != nil {
		return err
	}
	defer root.Close()
	dir := p.Path
	if !p.Dir {
		dir = filepath.Dir(dir)
	}
	if err := root.MkdirAll(dir, 0o700); err != nil || p.Dir {
		return err
	}
	// What exists is not opened: a named pipe would be waited for.
	f, err := root.OpenFile(p.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		return f.Close()
	}
	if info, e := root.Lstat(p.Path); e == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("it is a %s", hostfacts.KindWord(info.Mode()))
	} else if e == nil {
		return nil
	}
	return err
}
