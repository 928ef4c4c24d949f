// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/daemon"
)

// A Joined is an Executor whose commands start in a named sandbox. The sandbox does not become idle before
// it is closed.
type Joined struct {
	*local.Joined
	conn *net.UnixConn
}

// Close closes the Executor and leaves the sandbox.
func (j *Joined) Close() error {
	err := j.Joined.Close()
	_ = j.conn.Close() // nothing was written
	return err
}

// Join joins the sandbox of a name, and starts a keeper if there is none. Of several processes that do so at
// once, one does. The end of ctx cancels a start. The error is a [*RefusedError], a
// [*sandbox.UnsupportedError], a [*StartError], or that of the system.
func Join(ctx context.Context, r *Request, s *Starter) (*Joined, error) {
	form, err := r.encode()
	if err != nil {
		return nil, err
	}
	own, err := makeRoom()
	if err != nil {
		return nil, explain(r.Name, err)
	}
	defer own.close()
	j, err := own.join(form)
	if !errors.Is(err, errGone) {
		return j, err
	}
	lock, err := own.lock()
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if j, err = own.join(form); !errors.Is(err, errGone) { // another process has started it meanwhile
		return j, err
	}
	return own.start(ctx, form, s)
}

// join joins a sandbox whose keeper listens.
func (r *room) join(form *run) (*Joined, error) {
	c, answer, files, err := r.call(form.Name, &call{Do: doJoin, Run: form})
	if err != nil {
		return nil, err
	}
	return take(c, answer, files, nil)
}

// take returns the sandbox of which the parts came. What is not used is closed.
func take(c *net.UnixConn, answer *reply, files []*os.File, err error) (*Joined, error) {
	switch {
	case err != nil:
	case answer.Gone:
		err = errGone
	case answer.Refused != nil:
		err = answer.Refused
	case answer.Unsupported != nil:
		err = answer.Unsupported
	case answer.Failed != "":
		err = errors.New(answer.Failed)
	case answer.Parts == nil || answer.Parts.Namespaces < 1 || answer.Parts.Trees < 0 || len(files) != answer.Parts.Namespaces+answer.Parts.Trees+1:
		err = errors.New("the answer of the process that holds the sandbox is invalid")
	}
	if err != nil {
		closeAll(files)
		return nil, errors.Join(err, c.Close())
	}
	p := answer.Parts
	j := &Joined{conn: c, Joined: local.Join(local.SharedParts{
		Network: p.Network, Hosts: p.Hosts, Tmp: string(p.Tmp), PIDs: p.PIDs,
		Namespaces: files[:p.Namespaces:p.Namespaces], Trees: files[p.Namespaces : len(files)-1 : len(files)-1], Holder: files[len(files)-1],
	})}
	_ = c.SetDeadline(time.Time{})                             // an error is that of the next call
	j.UseSockets(&remoteSockets{c: c, in: bufio.NewReader(c)}) // all that came before was read
	return j, nil
}

// start starts a keeper that opens the sandbox, and joins it.
func (r *room) start(ctx context.Context, form *run, s *Starter) (*Joined, error) {
	failed := func(err error) error { return &StartError{Name: form.Name, Reason: err.Error(), Err: err} }
	log, err := r.logFile()
	if err != nil {
		return nil, failed(err)
	}
	defer log.Close()
	c, theirs, err := pair()
	if err != nil {
		return nil, failed(err)
	}
	cmd, err := daemon.Spawn(s.Program, keeperEnviron(s.Environ), theirs, nil, log)
	theirs.Close()
	if err != nil {
		return nil, errors.Join(failed(err), c.Close())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // so that it is no zombie while this process lives
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	answer, files, err := ask(c, &call{Do: doStart, Run: form, IdleMS: s.Idle.Milliseconds()})
	switch {
	case !stop():
		err = failed(context.Cause(ctx))
	case errors.Is(err, errGone):
		err = &StartError{Name: form.Name, Reason: daemon.Reason(log.Name(), <-ended)}
	case err == nil && answer.Failed != "":
		err = &StartError{Name: form.Name, Reason: answer.Failed}
	}
	return take(c, answer, files, err)
}

// pair returns two ends of a connection, of which the second is for another process.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "keeper"), os.NewFile(uintptr(fds[1]), "keeper")
	defer ours.Close()
	c, err := connOf(ours)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return c, theirs, nil
}

// connOf returns the connection of a socket, which has a descriptor of its own.
func connOf(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	own, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("it is no unix socket"), c.Close())
	}
	return own, nil
}

// keeperEnviron returns what a keeper gets of an environment: what leads to the state directory and to
// programs. It lives longer than the run, whose variables may hold secrets.
func keeperEnviron(environ []string) []string {
	names := []string{"HOME", "PATH", "XDG_STATE_HOME"}
	return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return !slices.Contains(names, name)
	})
}

// List returns the sandboxes of this user, by their names.
func List(context.Context) (Infos, error) {
	r, err := findRoom()
	if r == nil {
		return nil, err
	}
	defer r.close()
	all := Infos{}
	names, err := r.names()
	for _, name := range names {
		c, answer, files, cerr := r.call(name, &call{Do: doList})
		switch {
		case errors.Is(cerr, errGone):
			continue
		case cerr != nil:
			err = errors.Join(err, cerr)
			continue
		case answer.Info != nil:
			all = append(all, *answer.Info)
		}
		closeAll(files)
		_ = c.Close() // all was read
	}
	return all, err
}

// Stop ends the sandbox of a name with all that runs in it, and waits for that. The error is ErrUnknown
// where there is none.
func Stop(_ context.Context, name string) error {
	r, err := findRoom()
	if r == nil {
		return cmp.Or(err, ErrUnknown)
	}
	defer r.close()
	c, answer, files, err := r.call(name, &call{Do: doStop})
	switch {
	case err == nil:
		_, err = take(c, answer, files, nil) // why it goes on
	case errors.Is(err, errNone):
		return ErrUnknown
	case errors.Is(err, errGone): // as it must
		return nil
	}
	return err
}
