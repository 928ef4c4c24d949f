// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Socket is the socket of a service, held open so that no other file gets its number.
type Socket struct {
	Grant string
	Named string // the path as it is written
	Path  string // the same without symbolic links
	File  *os.File
	// To is where connections to File lead: File itself, or a socket beside it that can do
	// less.
	To       *os.File
	Dev, Ino uint64 // of File
}

// A FoundServices is what the grants of one command open. The nil Found is nothing.
type FoundServices struct {
	Sockets []Socket
	Devices []Device
	// Places are where services are that were not granted, as the command may name them.
	Places   []string
	Warnings []string // for people
	set      []string // variables
}

// FindServices opens the sockets of the services that names grant, for a command on a network, and lists
// devices. Env is the environment of this process, and not the command's, which a model may have
// chosen. A service that is not there is a *sandbox.UnsupportedError with the fix.
func FindServices(names, env []string, network sandbox.Network) (*FoundServices, error) {
	if err := checkNetwork(names, network); err != nil {
		return nil, err
	}
	f := &FoundServices{}
	for _, g := range Services() {
		if !slices.Contains(names, g.Name) || strings.HasPrefix(g.Name, LoopbackPrefix) {
			continue
		}
		if g.Warning != "" {
			f.Warnings = append(f.Warnings, "grant "+g.Name+": "+g.Warning)
		}
		if g.Name == GPU {
			f.findDevices("/", numberOf)
			continue
		}
		if err := f.findSocket(g, env); err != nil {
			f.Close()
			return nil, err
		}
	}
	for _, p := range ServicePlaces(env, os.Geteuid()) {
		if !slices.Contains(names, p.Grant) {
			f.Places = append(f.Places, p.Path)
		}
	}
	return f, nil
}

// findSocket adds the socket of one grant: the first that is there.
func (f *FoundServices) findSocket(g Service, env []string) error {
	var first error
	for _, p := range ServicePlaces(env, os.Geteuid()) {
		if p.Grant != g.Name {
			continue
		}
		s, err := open(p)
		if err == nil {
			f.Sockets = append(f.Sockets, *s)
			f.setVariable(g, s, env)
			return nil
		}
		if first == nil || errors.Is(first, os.ErrNotExist) {
			first = err
		}
	}
	have := "the variable " + g.Variable + " names none"
	switch {
	case first != nil:
		have = first.Error()
	case variable(env, g.Variable) == "":
		have = "the variable " + g.Variable + " is not set"
	}
	return &sandbox.UnsupportedError{Need: "a running service for the grant " + g.Name, Have: have,
		Hint: hint(g.Name)}
}

// hint is the fix for a service that is not there.
func hint(grant string) string {
	switch grant {
	case SSHAgent:
		return `start one with: eval "$(ssh-agent)" && ssh-add; or leave the grant out`
	case GPGAgent:
		return "start it with: gpgconf --launch gpg-agent; or leave the grant out"
	}
	return "start Docker, set DOCKER_HOST to unix:// and the path of its socket, or leave the grant out"
}

// setVariable has the command find the socket, by its place without links: those may not be
// there inside.
func (f *FoundServices) setVariable(g Service, s *Socket, env []string) {
	switch home := variable(env, g.Variable); {
	case g.Name == Docker:
		f.set = append(f.set, g.Variable+"=unix://"+s.Path)
	case g.Name == SSHAgent:
		f.set = append(f.set, g.Variable+"="+s.Path)
	case home != "":
		f.set = append(f.set, g.Variable+"="+home)
	}
}

// open opens the socket at a place without connecting to it.
func open(p ServicePlace) (*Socket, error) {
	s := &Socket{Grant: p.Grant, Named: p.Path}
	var err error
	if s.Path, err = filepath.EvalSymlinks(p.Path); err != nil {
		return nil, fmt.Errorf("%s cannot be found: %w", text.Word(p.Path), cause(err))
	}
	if s.File, err = openSocket(s.Path, p.Grant == Docker); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(s.File.Fd()), &st); err != nil {
		s.File.Close()
		return nil, err
	}
	s.Dev, s.Ino, s.To = st.Dev, st.Ino, s.File
	if p.Grant != GPGAgent {
		return s, nil
	}
	at := filepath.Join(filepath.Dir(s.Path), gpgRestricted)
	if s.To, err = openSocket(at, false); err != nil {
		s.File.Close()
		return nil, fmt.Errorf("the restricted socket is not usable: %w", err)
	}
	return s, nil
}

// openSocket opens the file of a socket that belongs to this user or, where roots says so, to
// root. It follows no link.
func openSocket(path string, roots bool) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened: %w", text.Word(path), err)
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	switch own := int(st.Uid) == os.Geteuid(); {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFSOCK:
		err = fmt.Errorf("%s is not a socket", text.Word(path))
	case !own && !(roots && st.Uid == 0):
		err = fmt.Errorf("the socket %s belongs to the user with the number %d and not to this one (%d)",
			text.Word(path), st.Uid, os.Geteuid())
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

// cause returns the error of the system without the path, which the sentence names.
func cause(err error) error {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// Env returns an environment with the variables that name the sockets.
func (f *FoundServices) Env(env []string) []string {
	if f == nil || len(f.set) == 0 {
		return env
	}
	out := slices.Clone(env)
	for _, entry := range f.set {
		name, _, _ := strings.Cut(entry, "=")
		out = slices.DeleteFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		out = append(out, entry)
	}
	return out
}

// Close closes the sockets. It may be called twice.
func (f *FoundServices) Close() {
	if f == nil {
		return
	}
	for _, s := range f.Sockets {
		s.File.Close()
		if s.To != s.File {
			s.To.Close()
		}
	}
	f.Sockets = nil
}
