// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/sandbox"
	profile "github.com/sallyport-dev/sallyport/sandbox/wire"
)

// check returns an error for a Spec that is invalid everywhere, or that no message can express.
func check(spec *executor.Spec) error {
	if len(spec.Args) == 0 {
		return executor.ErrNoArgs
	}
	if err := spec.Resources.Check(); err != nil {
		return err
	}
	if spec.TTY != nil && spec.PipeStdin {
		return errors.New("a terminal is standard input and output already; do not set PipeStdin with TTY")
	}
	if len(spec.Files) > 0 || spec.Stdin != nil || spec.Stdout != nil || spec.Stderr != nil {
		return refused(errInherited, "inherited file descriptors")
	}
	if !path.IsAbs(spec.Dir) {
		return &executor.DirError{Dir: spec.Dir, Err: errors.New("it is not absolute")}
	}
	texts := []struct{ where, text string }{
		{"the program's own name", spec.Arg0}, {"the working directory", spec.Dir}, {"the directory for /tmp", spec.Tmp},
	}
	for i, arg := range spec.Args {
		texts = append(texts, struct{ where, text string }{fmt.Sprintf("argument %d", i), arg})
	}
	for _, entry := range spec.Env {
		name, _, ok := strings.Cut(entry, "=")
		where := fmt.Sprintf("the environment variable %q", name)
		if !ok || name == "" {
			return refuse(where+" without a name or a value", "leave it out")
		}
		texts = append(texts, struct{ where, text string }{where, entry})
	}
	for _, t := range texts {
		switch {
		case strings.ContainsRune(t.text, 0):
			return &executor.NULError{Where: t.where}
		// a directory is a URI, which has room for every byte
		case !utf8.ValidString(t.text) && t.text != spec.Dir:
			return refuse(t.where+" with text that is not UTF-8", "")
		}
	}
	return beyond(spec, &wire.Capabilities{ProcessConfine: true, Stages: true})
}

// beyond returns an error for what a Spec asks for beyond the words of the wire, at a server that can do so
// much.
func beyond(spec *executor.Spec, can *wire.Capabilities) error {
	r := spec.Resources
	r.Output = 0 // the caller's
	limits := r != executor.Resources{}
	const always = 6 // the first ones no server can
	for i, b := range []struct {
		asked     bool
		need, fix string
	}{
		{len(spec.Publish) > 0, "published ports", "leave out Publish"},
		{spec.AskAccess != nil, "calls that wait for an answer", "leave out AskWrites"},
		{spec.OnStop != nil, "notice of a process that was stopped", "leave out OnStop"},
		{spec.Explain, "the script of the sandbox", "leave out Explain"},
		{len(spec.Allow) > 0, "what is allowed by name (" + strings.Join(spec.Allow, ", ") + ")", ""},
		{spec.Tmp != "" && spec.Tmp != tmpHost, "a directory in the place of /tmp", "use the machine's /tmp (host)"},
		{limits, "limits of resources", "leave out the limits"},
		{spec.NoObserver, "a run without an observer", "leave out NoObserver"},
		{spec.NoCaches, "a run without overlays over caches", "leave out NoCaches"},
		{spec.ProtectHardLinks, "protection of hard links", ""},
		{spec.OwnershipErrors, "errors for changes of owners", ""},
		{spec.Level == "native", "the sandbox level native", "use the level bwrap"},
	} {
		if b.asked && (i < always || !can.ProcessConfine) {
			return refuse(b.need, b.fix)
		}
	}
	if spec.Stage != nil && !can.Stages {
		return refuse("a stage", "use a newer server, or run it without a stage")
	}
	return nil
}

const (
	tmpHost    = "host"    // of [executor.Spec]
	tmpPrivate = "private" // of process/start
)

// request returns the parameters of process/start.
func request(spec *executor.Spec, id string, can wire.Capabilities) (*wire.Start, error) {
	if err := beyond(spec, &can); err != nil {
		return nil, err
	}
	s := &wire.Start{
		ProcessID: id, Argv: spec.Args, CWD: wire.URI(path.Clean(spec.Dir)), Env: map[string]string{},
		TTY: spec.TTY != nil, PipeStdin: spec.PipeStdin, Arg0: spec.Arg0,
	}
	for _, entry := range spec.Env {
		name, value, _ := strings.Cut(entry, "=")
		s.Env[name] = value // the last one counts, as for programs
	}
	if spec.TTY != nil && can.ProcessTTYSize {
		size := spec.TTY.OrUsual()
		s.Size = &wire.TTYSize{Cols: size.Cols, Rows: size.Rows}
	}
	if can.ProcessConfine {
		s.Confine = wire.ConfineOf(spec)
	}
	policy := spec.Policy
	if policy.Mode() == sandbox.Full {
		return s, nil
	}
	if policy.Mode() == sandbox.Managed && spec.Tmp != tmpHost {
		if !can.ProcessPrivateTmp {
			return nil, refuse("a private /tmp",
				"use the machine's /tmp (host), as far as the policy allows it")
		}
		s.Tmp = tmpPrivate
	}
	if policy.Network() == sandbox.NetworkProxy {
		var err error
		if s.Network, err = networkOf(spec, can); err != nil {
			return nil, err
		}
		policy = policy.WithNetwork(sandbox.NetworkNone) // and beside that the proxy
	}
	permissions, err := permissionsOf(policy)
	if err != nil {
		return nil, err
	}
	s.Sandbox = &wire.Sandbox{Permissions: permissions, CWD: s.CWD, WindowsLevel: "disabled"}
	return s, nil
}

// permissionsOf returns a policy as the wire has it. What the wire would change is refused.
func permissionsOf(policy sandbox.Policy) ([]byte, error) {
	words := fmt.Errorf("sandbox policy %s is not supported by this executor", policy.Name())
	text, err := profile.MarshalProfileURI(policy)
	if err != nil {
		return nil, refused(fmt.Errorf("%w: %w", words, err), "a policy that the wire can express")
	}
	back, err := profile.ParseProfile(text)
	if err != nil || !samePolicy(back, policy) {
		return nil, refused(fmt.Errorf("%w: the wire changes it", words),
			"a policy that the wire can express")
	}
	return text, nil
}

// samePolicy reports whether two policies are written alike, apart from granted hosts: those
// are asked about.
func samePolicy(a, b sandbox.Policy) bool {
	clean := func(p sandbox.Policy) []sandbox.Entry {
		entries := p.Entries()
		for i, e := range entries {
			if name, ok := e.Place.Absolute(); ok && e.Place.Kind == sandbox.PlacePath {
				entries[i].Place.Path = name
			}
		}
		return entries
	}
	return a.Mode() == b.Mode() && a.Network() == b.Network() && a.Unrestricted() == b.Unrestricted() &&
		a.GlobScanDepth() == b.GlobScanDepth() && slices.Equal(clean(a), clean(b))
}

// sandboxOf returns what a server says that it enforces, and false when that is less than the
// policy demands.
func sandboxOf(kind string, policy sandbox.Policy) (executor.Sandbox, bool) {
	s := executor.Sandbox{Level: "none"}
	switch kind {
	case "none", "":
		return s, policy.Mode() != sandbox.Managed
	case "macosSeatbelt":
		s.Level = "seatbelt"
	case "linuxSeccomp":
		s.Level = "bwrap"
	default:
		return s, false
	}
	s.Mechanism = []string{"exec-server"}
	return s, true
}
