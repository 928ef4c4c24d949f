// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/tasks"
)

// directoryEvents are what can happen to names in a directory, and to the directory.
const directoryEvents = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_MOVED_FROM |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// A watcher is the one inotify descriptor of a protector. Its goroutine sleeps without a
// thread and reads under the protector's lock, so that Finish can read first.
type watcher struct {
	fd     int
	waiter *tasks.Waiter
	done   chan struct{} // closed when the goroutine has ended
	quit   chan struct{} // closed when it is to end
	buf    []byte
}

// pause is the time between two reads of events. The first event is read when it happens;
// a command that creates thousands of files does not wake the process for each of them.
const pause = 5 * time.Millisecond

// restFor is how many times as long as it has worked the goroutine rests, so that a command in
// a large repository does not have it work all the time.
const restFor = 4

// startWatcher opens inotify.
func startWatcher(k *Protector) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	waiter, err := tasks.NewWaiter(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	w := &watcher{fd: fd, waiter: waiter, done: make(chan struct{}), quit: make(chan struct{}),
		buf: make([]byte, 16<<10)}
	go w.run(k)
	return w, nil
}

// run handles events until the watcher is stopped.
func (w *watcher) run(k *Protector) {
	defer close(w.done)
	for {
		if w.waiter.Wait() != nil { // it was closed
			return
		}
		began := time.Now()
		k.mu.Lock()
		if k.watcher == w {
			k.readEvents()
		}
		k.mu.Unlock()
		select {
		case <-time.After(max(pause, restFor*time.Since(began))):
		case <-w.quit:
			return
		}
	}
}

// stop ends the goroutine. The protector's lock is not held, and the protector has forgotten the
// watcher.
func (w *watcher) stop() {
	close(w.quit)
	_ = w.waiter.Close() // an epoll descriptor has nothing to lose
	<-w.done
	closeLater(w.fd)
}

// closeLater closes an inotify descriptor without waiting. The last close of one waits for
// all processors to pass a point, which takes 6 to 30 ms, and the end of a process waits
// for it as well. A descriptor that is on its way through a pair of sockets which only hold
// each other is garbage, see unix(7), and the kernel collects that in a thread of its own.
// The pair is closed after fd, or the close of fd could be the last one after all. If
// sending fails, the close takes its time.
func closeLater(fd int) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(pair[0])
		defer unix.Close(pair[1])
		_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(fd, pair[1]), nil, unix.MSG_DONTWAIT)
	}
	unix.Close(fd)
}

// readEvents handles the events that are there now. Those that come meanwhile are left: a
// program that makes them faster than they are handled must not keep the lock from others.
func (k *Protector) readEvents() {
	w := k.watcher
	if w == nil {
		return
	}
	left, err := unix.IoctlGetInt(w.fd, unix.TIOCINQ) // FIONREAD: the bytes that are there
	for err == nil && left > 0 {
		var n int
		n, err = unix.Read(w.fd, w.buf)
		if errors.Is(err, unix.EINTR) {
			err = nil
			continue
		}
		if n <= 0 {
			break
		}
		left -= n
		walkEvents(w.buf[:n], k.event)
	}
	k.lookDirty()
}

// walkEvents splits what inotify returned into events, see inotify(7). Names are padded
// with zero bytes. An incomplete event at the end does not occur and is dropped.
func walkEvents(b []byte, handle func(wd int32, mask uint32, name string)) {
	for len(b) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		size := uint64(binary.NativeEndian.Uint32(b[12:]))
		b = b[unix.SizeofInotifyEvent:]
		if size > uint64(len(b)) {
			return
		}
		name, _, _ := bytes.Cut(b[:size], []byte{0})
		handle(wd, mask, string(name))
		b = b[size:]
	}
}

// event handles one event.
func (k *Protector) event(wd int32, mask uint32, name string) {
	k.mark(wd, mask)
	for _, d := range k.dirs {
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			k.checkAll(d)
		case d.wd != int(wd):
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0:
			if mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
				d.wd = -1
			}
			k.checkAll(d)
		case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
			if n := d.watched[name]; n != nil && n.ours > 0 {
				n.ours--
			}
			d.checkName(name)
		case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
			if n := d.watched[name]; n != nil {
				k.appeared(n, true)
			}
			d.checkName(name)
		}
	}
}

// checkAll looks at the directory and at every name in it, for when it is not known what
// has happened.
func (k *Protector) checkAll(d *directory) {
	if other, _ := k.moved(d); other >= 0 {
		unix.Close(other)
	}
	for _, n := range d.watched {
		n.ours = 0
		k.appeared(n, false)
	}
	for _, o := range d.objects {
		o.check()
	}
}

// arm makes inotify report about the directory, once for all holds. It returns why it
// cannot.
func (k *Protector) arm(d *directory) error {
	if d.wd >= 0 {
		return nil
	}
	if k.watcher == nil {
		err := k.failing("inotify")
		if err == nil {
			k.watcher, err = startWatcher(k)
		}
		if err != nil {
			return err
		}
	}
	wd, err := unix.InotifyAddWatch(k.watcher.fd, fdPath(d.fd), directoryEvents|unix.IN_MASK_ADD)
	if err != nil {
		return err
	}
	d.wd = wd
	return nil
}

// disarm ends what arm has begun.
func (k *Protector) disarm(d *directory) {
	if d.wd < 0 {
		return
	}
	wd := d.wd
	d.wd = -1
	for _, other := range k.dirs {
		if other.wd == wd {
			return // the same directory under another path
		}
	}
	if slices.ContainsFunc(k.scopes, func(s *scope) bool { return slices.Contains(s.wds, wd) }) {
		return
	}
	if k.watcher != nil {
		// It fails for a directory that is gone, and then it has ended by itself.
		_, _ = unix.InotifyRmWatch(k.watcher.fd, uint32(wd))
	}
}
