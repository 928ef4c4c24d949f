// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package pending

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/filelock"
	"github.com/sallyport-dev/sallyport/internal/peer"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/internal/tree"
)

// socketsDir is the directory of the sockets in the state directory.
const socketsDir = "approvals"

// socketName is the name of a socket: the process, and random digits.
var socketName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([1-9][0-9]{0,9})-[0-9a-f]{16}\.sock$`) })

// A room is the open directory of the sockets. It is closed with its file.
type room struct{ *os.File }

// openRoom opens the directory in a state directory, and makes it with create.
func openRoom(dir string, create bool) (room, error) {
	root, err := tree.OpenPath(dir)
	if err != nil {
		return room{}, err
	}
	defer root.Close()
	open := tree.Open
	if create {
		open = tree.Make
	}
	all, err := open(root, socketsDir)
	if err != nil {
		return room{}, err
	}
	defer all.Close()
	f, err := all.Open(".")
	return room{f}, err
}

// locked calls f while no other process makes or removes a socket. After an error of the lock, the
// room is closed.
func (r room) locked(f func() error) error {
	if err := filelock.Wait(r.File); err != nil {
		return fmt.Errorf("the directory of questions: %w", err)
	}
	defer filelock.Lock(r.File, unix.LOCK_UN) //nolint:errcheck // it cannot fail on an open file
	return f()
}

// listen makes the socket and serves it. Stop waits for what is being served.
func (p *Post) listen() (stop func(), err error) {
	dir, err := state.Dir()
	if err != nil {
		return nil, err
	}
	r, err := openRoom(dir, true)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d-%016x.sock", os.Getpid(), rand.Uint64())
	var l *net.UnixListener
	// Between bind(2) and listen(2) it looks like the socket of a dead process.
	err = r.locked(func() error {
		if l, err = net.ListenUnix("unix", &net.UnixAddr{Name: r.path(dir, name), Net: "unix"}); err != nil {
			return err
		}
		return unix.Fchmodat(int(r.Fd()), name, 0o600, 0)
	})
	if err != nil {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
		return nil, errors.Join(err, r.Close())
	}
	l.SetUnlinkOnClose(false) // the name may lead elsewhere then
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { p.serve(ctx, l) })
	return func() {
		cancel()
		_ = l.Close()                           // it fails when it is closed already
		_ = unix.Unlinkat(int(r.Fd()), name, 0) // a stale one is removed by List
		serving.Wait()
		r.Close()
	}, nil
}

// serve answers calls until the listener is closed.
func (p *Post) serve(ctx context.Context, l *net.UnixListener) {
	room := make(chan struct{}, maxCalls)
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		room <- struct{}{}
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		calls.Go(func() {
			defer func() {
				_ = c.Close() // what was to be written is written
				<-room
			}()
			_ = c.SetReadDeadline(time.Now().Add(patience))
			_ = c.SetWriteDeadline(time.Now().Add(2 * patience))
			stop := context.AfterFunc(ctx, func() {
				const moment = 200 * time.Millisecond // for the reply to what has ended the question
				_ = c.SetReadDeadline(time.Unix(1, 0))
				_ = c.SetWriteDeadline(time.Now().Add(moment))
			})
			defer stop()
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			p.converse(ctx, c)
		})
	}
}

// converse answers one call. Another user gets no word.
func (p *Post) converse(ctx context.Context, c *net.UnixConn) {
	who, err := peer.Of(c)
	if err != nil {
		return
	}
	defer who.Close()
	if !who.Own() {
		return
	}
	confined := who.Confined()
	line, err := readLine(c, maxCall)
	if err != nil && !errors.Is(err, errInvalid) {
		return
	}
	var answer *reply
	if asked, err := decodeCall(line); confined {
		answer = refusal(ErrConfined)
	} else if err != nil {
		answer = refusal(err)
	} else {
		answer = p.perform(ctx, asked)
	}
	answer.Version = version
	if line, err := encode(answer); err == nil {
		_, _ = c.Write(line) // who has gone does not need it
	}
}

// A door is the socket of a process.
type door struct {
	dir  string // the state directory
	name string
	pid  int
}

// doors returns the sockets in the state directories.
func doors() ([]door, error) {
	const most = 4096
	var all []door
	for _, dir := range state.Existing() {
		r, err := openRoom(dir, false)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		names, err := r.Readdirnames(most)
		r.Close()
		if err != nil && len(names) == 0 {
			continue // it is empty
		}
		slices.Sort(names)
		for _, name := range names {
			if m := socketName().FindStringSubmatch(name); m != nil {
				pid, _ := strconv.Atoi(m[1]) // it has digits only
				all = append(all, door{dir, name, pid})
			}
		}
	}
	return all, nil
}

// errGone says that no process listens at a socket.
var errGone = errors.New("the process has ended")

// call asks the process. A socket at which no process listens is removed.
func (d door) call(c *call) (*reply, error) {
	r, err := openRoom(d.dir, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	conn, err := d.dial(r)
	if errors.Is(err, unix.ECONNREFUSED) {
		err = r.locked(func() error {
			if conn, err = d.dial(r); errors.Is(err, unix.ECONNREFUSED) {
				_ = unix.Unlinkat(int(r.Fd()), d.name, 0) // another one has removed it
				return errGone
			}
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // all was read
	if err := conn.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		return nil, err
	}
	who, err := peer.Of(conn)
	if err != nil {
		return nil, err
	}
	who.Close()
	if !who.Own() {
		return nil, errors.New("another user listens there")
	}
	c.Version = version
	line, err := encode(c)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(line); err != nil && !errors.Is(err, unix.EPIPE) { // it may have said why
		return nil, err
	}
	line, err = readLine(conn, maxReply)
	if errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	return decodeReply(line)
}

// dial connects to a socket of this user's; what is no socket, such as a link, is left alone.
func (d door) dial(r room) (*net.UnixConn, error) {
	var st unix.Stat_t
	switch err := unix.Fstatat(int(r.Fd()), d.name, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return nil, errGone
	case err != nil:
		return nil, err
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid():
		return nil, errors.New("it is no socket of this user's")
	}
	return net.DialUnix("unix", nil, &net.UnixAddr{Name: r.path(d.dir, d.name), Net: "unix"}) // a full queue is an error
}

// path is for people and for systems without names below descriptors.
func (d door) path() string { return filepath.Join(d.dir, socketsDir, d.name) }
