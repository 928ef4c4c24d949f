// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/oneshot"
)

// folderEvents are what can happen to names in a folder, and to the folder.
const folderEvents = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_DELETE | unix.IN_MOVED_FROM |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// A watcher is the one inotify descriptor of a keeper. Its goroutine sleeps without
// a thread and reads under the keeper's lock, so that Finish can read
// what is there already.
type watcher struct {
	fd     int
	events *oneshot.Waiter
	done   chan struct{} // closed when the goroutine has ended
	quit   chan struct{} // closed when it is to end
	buf    []byte
}

// rest is how long after one look at the events the next one waits. The first event
// is looked at when it happens; a command that makes thousands of files does not wake
// us for each of them.
const rest = 5 * time.Millisecond

// startWatcher opens inotify. handle is called with the mutex that guard locks.
func startWatcher(k *keeper) (*watcher, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	events, err := oneshot.New(fd)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	w := &watcher{fd: fd, events: events, done: make(chan struct{}), quit: make(chan struct{}), buf: make([]byte, 16<<10)}
	go w.look(k)
	return w, nil
}

// look handles events until the watcher is stopped.
func (w *watcher) look(k *keeper) {
	defer close(w.done)
	for {
		if w.events.Wait() != nil { // it was closed
			return
		}
		k.mu.Lock()
		if k.watcher == w {
			k.drain()
		}
		k.mu.Unlock()
		select {
		case <-time.After(rest):
		case <-w.quit:
			return
		}
	}
}

// stop ends the goroutine. The keeper's lock is not held, and the keeper does not
// know the watcher any more.
func (w *watcher) stop() {
	close(w.quit)
	_ = w.events.Close() // an epoll descriptor has nothing to lose
	<-w.done
	letGo := sendAway(w.fd)
	unix.Close(w.fd)
	letGo()
}

// sendAway lets the kernel close fd, in its own time, once this process has closed
// it too. The last close of an inotify descriptor waits for all processors to pass
// a point, which was seen to take 6 to 30 ms, and the end of a process waits for
// it as well. A descriptor that is on its way through a pair of sockets which only
// hold each other is garbage, see unix(7), and the kernel collects that in a
// thread of its own. It may do so at once, so the pair is let go after this process
// has closed fd, or its close would be the last one after all. If this fails, the
// close takes its time.
func sendAway(fd int) (letGo func()) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return func() {}
	}
	_ = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(fd, pair[1]), nil, unix.MSG_DONTWAIT)
	return func() {
		unix.Close(pair[0])
		unix.Close(pair[1])
	}
}

// drain handles the events that are there. k.mu is held.
func (k *keeper) drain() {
	w := k.watcher
	if w == nil {
		return
	}
	for {
		n, err := unix.Read(w.fd, w.buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		walkEvents(w.buf[:n], k.event)
	}
}

// walkEvents cuts what inotify gave into events, see inotify(7). Names are padded
// with zero bytes. A cut-off event at the end does not occur and is dropped.
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

// event handles one event. k.mu is held.
func (k *keeper) event(wd int32, mask uint32, name string) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for _, f := range k.folders {
			k.moved(f)
			k.lookOver(f)
		}
		return
	}
	for _, f := range k.folders {
		if f.wd != int(wd) {
			continue
		}
		switch {
		case mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF|unix.IN_UNMOUNT|unix.IN_IGNORED) != 0:
			if mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0 {
				f.wd = -1
			}
			k.moved(f)
			k.lookOver(f)
		case mask&(unix.IN_DELETE|unix.IN_MOVED_FROM) != 0:
			if n := f.watched[name]; n != nil && n.ours > 0 {
				n.ours--
			}
			k.check(f, name)
		case mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0:
			if n := f.watched[name]; n != nil {
				k.appeared(f, n, true)
			}
			k.check(f, name)
		}
	}
}

// lookOver looks at every name of the folder, for when it is not known what has
// happened. k.mu is held.
func (k *keeper) lookOver(f *folder) {
	for _, n := range f.watched {
		n.ours = 0
		k.appeared(f, n, false)
	}
	for name := range f.placed {
		k.check(f, name)
	}
	for _, x := range f.fixed {
		k.checkFixed(f, x.name)
	}
}

// arm makes inotify tell about the folder, once for all who need it. It returns
// why it cannot. k.mu is held.
func (k *keeper) arm(f *folder) error {
	if f.wd >= 0 {
		return nil
	}
	if k.watcher == nil {
		w, err := k.startWatcher()
		if err != nil {
			return err
		}
		k.watcher = w
	}
	wd, err := unix.InotifyAddWatch(k.watcher.fd, fdPath(f.fd), folderEvents)
	if err != nil {
		return err
	}
	f.wd = wd
	return nil
}

// disarm ends what arm has begun. k.mu is held.
func (k *keeper) disarm(f *folder) {
	if f.wd < 0 {
		return
	}
	wd := f.wd
	f.wd = -1
	for _, other := range k.folders {
		if other.wd == wd {
			return // the same folder under another path
		}
	}
	if k.watcher != nil {
		// It fails for a folder that is gone, and then it has ended by itself.
		_, _ = unix.InotifyRmWatch(k.watcher.fd, uint32(wd))
	}
}
