// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package dirs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The names in the directory of the daemon.
const (
	socketName = "daemon.sock"
	logName    = "daemon.log" // what the last one printed on standard error
)

// runtimeVariable names the directory for sockets of this user, as the XDG base directory rules
// have it.
const runtimeVariable = "XDG_RUNTIME_DIR"

// maxPath is the length of the longest path of a socket, on the system with the shorter ones.
const maxPath = 103

// DaemonSocket returns the path of the daemon's socket: in $XDG_RUNTIME_DIR/sallyport or, where that
// variable does not name a directory of this user's that is closed to others, in the state
// directory. It is empty where there is no directory for it yet, and so no daemon. It makes
// nothing, and env is that of the user.
func DaemonSocket(env func(string) string) (string, error) {
	dir := runtimeDir(env)
	if dir == "" {
		for _, d := range Existing() {
			dir = filepath.Join(d, "daemon")
			break
		}
	}
	err := safefile.CheckOwn(dir)
	switch {
	case dir == "" || errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return filepath.Join(dir, socketName), nil
}

// runtimeDir returns the directory below $XDG_RUNTIME_DIR; empty where that does not count. With
// an environment that another user's process has passed on, as by sudo(8), it is another user's.
func runtimeDir(env func(string) string) string {
	dir := env(runtimeVariable)
	info, err := os.Stat(dir)
	if err != nil || !filepath.IsAbs(dir) || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return ""
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return ""
	}
	return filepath.Join(dir, "sallyport")
}

// makeDir makes the directory of the socket and opens it.
func makeDir(env func(string) string) (*os.Root, string, error) {
	dir := runtimeDir(env)
	if dir == "" {
		d, err := Dir()
		if err != nil {
			return nil, "", err
		}
		dir = filepath.Join(d, "daemon")
	}
	root, err := safefile.MakeDirs(dir)
	return root, dir, err
}

// StartDaemon starts the daemon unless one listens already, and returns the path of its socket. The
// program and its arguments are this command line up to the flags that say where it listens; env
// looks up a variable of environ, which the daemon gets. Of several processes that start it at
// once, one does. Start blocks until clients can connect; when ctx ends first, the daemon that is
// starting is killed. Errors are those about the directory, and [*StartError].
func StartDaemon(ctx context.Context, program []string, environ []string) (string, error) {
	env := func(name string) string { return lookUp(environ, name) }
	root, dir, err := makeDir(env)
	if err != nil {
		return "", err
	}
	defer root.Close()
	path := filepath.Join(dir, socketName)
	if len(path) > maxPath {
		return "", &DaemonError{Reason: "the path " + text.Word(path) + " is too long for a socket; set " +
			runtimeVariable + " to a shorter directory of yours with mode 0700"}
	}
	switch there, err := listens(ctx, path); {
	case err != nil:
		return "", err
	case there:
		return path, nil
	}
	lock, err := Lock("daemon")
	if err != nil {
		return "", err
	}
	defer lock.Close()
	switch there, err := listens(ctx, path); {
	case err != nil:
		return "", err
	case there: // another process has started it meanwhile
		return path, nil
	}
	log, err := root.OpenFile(logName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	err = start(ctx, append(program, "--listen", "unix://"+path), environ, log)
	// The lock is in the state directory, and the socket may not be: who has another state directory may have
	// started the daemon meanwhile.
	if err != nil {
		if there, _ := listens(ctx, path); !there {
			return "", err
		}
	}
	return path, nil
}

// lookUp returns the value of a variable; the last one counts.
func lookUp(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if n, v, ok := strings.Cut(e, "="); ok && n == name {
			value = v
		}
	}
	return value
}

// listens reports whether a process of this user, outside of sandboxes, listens at a socket. Errors are
// returned where something is there, such as a socket of another's: a second daemon could not listen.
func listens(ctx context.Context, path string) (bool, error) {
	c, err := DialSocket(ctx, path, true)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return false, nil
	}
	if err != nil {
		return false, &DaemonError{Reason: err.Error(), Err: err}
	}
	_ = c.Close() // nothing was written
	return true, nil
}

// start starts the program in a session of its own, and returns when it has printed a line, which
// it does when it listens.
func start(ctx context.Context, args, environ []string, log *os.File) error {
	ready, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	cmd, err := spawn(args, environ, out, log)
	_ = out.Close() // the child has its own
	if err != nil {
		return &DaemonError{Reason: err.Error(), Err: err}
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(ready).ReadString('\n')
	if err == nil && line != "" && stop() {
		go cmd.Wait() //nolint:errcheck // so that it is no zombie while this process lives
		return nil
	}
	stop()
	err = cmd.Wait()
	if ctx.Err() != nil {
		return &DaemonError{Reason: context.Cause(ctx).Error(), Err: context.Cause(ctx)}
	}
	return &DaemonError{Reason: reason(log.Name(), err), Err: err}
}

// spawn starts a program that outlives this process, in a session of its own and in the directory "/". It
// gets no other descriptors than these. The caller waits for it.
func spawn(args, environ []string, stdout, log *os.File) (*exec.Cmd, error) {
	closeOthers()
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it outlives this process
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", environ, stdout, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// What this process ignores, as in a job that a script has put in the background, its children
	// would ignore, and with them every command. What it catches they do not.
	caught := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTERM,
		syscall.SIGTSTP} {
		if signal.Ignored(s) {
			signal.Notify(caught, s)
		}
	}
	defer signal.Stop(caught)
	return cmd, cmd.Start()
}

// reason says why a program that was started has ended, from the file with what it printed and the error
// of its end.
func reason(log string, err error) string {
	s, _ := os.ReadFile(log) // empty after an error
	if line, _, _ := bytes.Cut(bytes.TrimSpace(s), []byte("\n")); len(line) > 0 {
		return strings.TrimPrefix(text.Line(string(line)), "sallyport: ")
	}
	return fmt.Sprintf("it ended before it listened (%v)", err)
}

// closeOthers keeps descriptors that this process was started with from the daemon: it would hold
// a lock of a script, or a pipe, for as long as it lives.
func closeOthers() {
	names, _ := os.ReadDir("/dev/fd") // without it, they stay open
	for _, n := range names {
		if fd, err := strconv.Atoi(n.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
