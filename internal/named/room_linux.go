// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/filelock"
	"github.com/sallyport-dev/sallyport/internal/peer"
	"github.com/sallyport-dev/sallyport/internal/printable"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/internal/tree"
)

// The names in the state directory.
const (
	roomName   = "named"      // the directory of what follows
	lockName   = "start.lock" // held by the run that starts a keeper
	logName    = "keeper.log" // what the last one printed on standard error
	socketType = ".sock"      // the end of the name of a socket
)

const (
	maxLine  = 4 << 20          // bytes; a policy has as many entries as its run
	patience = 20 * time.Second // how long one end waits for the line of the other
)

// errGone says that no keeper answers: it has ended, or is ending. With errNone there was none.
var (
	errGone = errors.New("the sandbox is ending")
	errNone = fmt.Errorf("no process listens: %w", errGone)
)

// A room is the open directory of the sockets.
type room struct {
	*os.Root
	dir *os.File
}

// openRoom opens the directory in a state directory, and makes it with create.
func openRoom(state string, create bool) (*room, error) {
	parent, err := tree.OpenPath(state)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	open := tree.Open
	if create {
		open = tree.Make
	}
	root, err := open(parent, roomName)
	if err != nil {
		return nil, err
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &room{root, dir}, nil
}

// makeRoom opens the directory of this user, and makes it if it is missing.
func makeRoom() (*room, error) {
	dir, err := state.Dir()
	if err != nil {
		return nil, err
	}
	return openRoom(dir, true)
}

// findRoom opens the directory of this user; nil where there is none.
func findRoom() (*room, error) {
	dirs := state.Existing()
	if len(dirs) == 0 {
		return nil, nil //nolint:nilnil // there is none, and nothing failed
	}
	r, err := openRoom(dirs[0], false) // that of makeRoom
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return r, err
}

func (r *room) close() {
	_ = r.Close() // nothing is written through either
	_ = r.dir.Close()
}

// address is that of the socket of a name. It is short enough, however long the name of the directory is.
func (r *room) address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: fmt.Sprintf("/proc/self/fd/%d/%s", r.dir.Fd(), name+socketType), Net: "unix"}
}

// names returns the names of sandboxes for which there is a socket, sorted.
func (r *room) names() ([]string, error) {
	files, err := r.dir.ReadDir(-1)
	var names []string
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), socketType); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// lock waits until no other process starts a keeper. The lock ends with the file.
func (r *room) lock() (*os.File, error) {
	f, err := r.OpenFile(lockName, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// listen makes the socket of a name. The run that starts the keeper has found that no other one listens.
func (r *room) listen(name string) (*net.UnixListener, error) {
	if err := r.Remove(name + socketType); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", r.address(name))
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the name may lead elsewhere then
	if err := r.Chmod(name+socketType, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// call asks the keeper of a name. The connection and the files are the caller's. The error is errGone, a
// [*RefusedError], or that of the system.
func (r *room) call(name string, asked *call) (*net.UnixConn, *reply, []*os.File, error) {
	c, err := net.DialUnix("unix", nil, r.address(name))
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return nil, nil, nil, errNone
	case errors.Is(err, fs.ErrPermission):
		return nil, nil, nil, foreign(name)
	case err != nil:
		return nil, nil, nil, err
	}
	var answer *reply
	var files []*os.File
	who, err := peer.Of(c)
	if err == nil {
		who.Close()
		if !who.Own() {
			err = foreign(name)
		}
	}
	if err == nil {
		_ = c.SetDeadline(time.Now().Add(patience)) // an error is that of the next call
		answer, files, err = ask(c, asked)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("the process that holds the sandbox %s does not answer at %s; kill it", printable.Word(name), printable.Word(filepath.Join(r.Name(), name+socketType)))
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, c.Close())
	}
	return c, answer, files, nil
}

// foreign is the error for a sandbox of another user.
func foreign(name string) error {
	return &RefusedError{Name: name, Why: "the state directory belongs to another user, or others can enter it", Fix: "set XDG_STATE_HOME to a directory of yours"}
}

// explain returns the error for a state directory that cannot be used.
func explain(name string, err error) error {
	var other *tree.ForeignError
	if errors.As(err, &other) || errors.Is(err, fs.ErrPermission) {
		return foreign(name)
	}
	return fmt.Errorf("cannot use the directory of named sandboxes: %w", err)
}

// send writes a line, and with it files.
func send(c *net.UnixConn, v any, files ...*os.File) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			if err := control(f, func(fd int) { fds[i] = fd }); err != nil {
				return err
			}
		}
		oob = unix.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(line, oob, nil)
	if err == nil && n < len(line) {
		_, err = c.Write(line[n:])
	}
	return err
}

// control calls f with the descriptor of a file, whose mode does not change as by [os.File.Fd].
func control(file *os.File, f func(fd int)) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) { f(int(fd)) })
}

// readCall reads the line of a client.
func readCall(in *bufio.Reader) (*call, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	asked := new(call)
	return asked, json.Unmarshal(line, asked)
}

// ask sends a call and returns the reply with its files, which are the caller's. The error is errGone when
// the keeper ends before it has answered.
func ask(c *net.UnixConn, asked *call) (*reply, []*os.File, error) {
	asked.Version = version
	if err := send(c, asked); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) { // it may have said why
		return nil, nil, err
	}
	answer := new(reply)
	line, files, err := receive(c)
	if err == nil {
		err = json.Unmarshal(line, answer)
	}
	if err != nil {
		closeAll(files)
		return nil, nil, err
	}
	return answer, files, nil
}

// receive reads a line with its files.
func receive(c *net.UnixConn) (line []byte, files []*os.File, err error) {
	const most = 64 // files
	buf, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*most))
	for !bytes.HasSuffix(line, []byte("\n")) {
		n, m, _, _, err := c.ReadMsgUnix(buf, oob)
		switch {
		case errors.Is(err, unix.ECONNRESET), errors.Is(err, io.EOF), err == nil && n == 0:
			return nil, files, errGone
		case err != nil:
			return nil, files, err
		}
		got, err := filesOf(oob[:m])
		files = append(files, got...)
		if err != nil {
			return nil, files, err
		}
		if line = append(line, buf[:n]...); len(line) > maxLine {
			return nil, files, errors.New("the answer is too long")
		}
	}
	return line, files, nil
}

// filesOf returns the files that came with a message.
func filesOf(oob []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "shared"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// logFile opens the file for what a keeper prints.
func (r *room) logFile() (*os.File, error) {
	return r.OpenFile(logName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
}
