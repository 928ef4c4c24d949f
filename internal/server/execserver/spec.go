// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/server/stages"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/sandbox"
	profile "github.com/sallyport-dev/sallyport/sandbox/wire"
)

// hostTmp has processes see the machine's /tmp, as their policy says: files of clients lie
// there too. Clients can ask for a private one.
const hostTmp = "host"

// coreNames are the variables of envPolicy.inherit "core".
var coreNames = []string{
	"PATH", "SHELL", "TMPDIR", "TEMP", "TMP", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "USER",
}

// spec returns what the executor has to start for a request.
func (s *Server) spec(w *wire.Start, p *process) (*executor.Spec, *wire.Error) {
	if failure := unsupported(w.Unsupported); failure != nil {
		return nil, failure
	}
	if w.Argv[0] == "" {
		return nil, &wire.Error{Code: wire.CodeInternal, Message: "missing program for pipe spawn"}
	}
	host, _ := s.exec.Host(s.life) // it never fails on this machine
	dir, err := wire.Path(w.CWD, host.OS)
	var foreign *wire.HostError
	switch {
	case errors.As(err, &foreign):
		return nil, invalid(fmt.Sprintf("cwd URI `%s` is not valid on this exec-server host: %v", w.CWD, err))
	case err != nil:
		return nil, invalid(err.Error())
	}
	ceiling, failure := s.ceiling(workspace(w.Sandbox, dir, host.OS))
	if failure != nil {
		return nil, failure
	}
	env, err := s.env(w, ceiling)
	if err != nil {
		return nil, invalid(err.Error())
	}
	tmp := hostTmp
	if w.Tmp == wire.TmpPrivate {
		tmp = ""
	}
	wish := &config.Wish{Name: "process/start", Policy: sandbox.FullAccess(), Flags: flags(w)}
	policy, holds, failure := s.policy(ceiling, wish, w.Sandbox, dir, env, host.OS)
	if failure != nil {
		return nil, failure
	}
	spec := &executor.Spec{
		Args: w.Argv, Arg0: w.Arg0, Dir: dir, Env: env, Policy: policy, Tmp: tmp,
		OnOutput: p.onOutput, OnExit: p.onExit, OnDenied: p.onDenied, AwaitStreams: true,
		Grace: -1, // terminate means at once
	}
	failure = p.network(spec, w, ceiling, holds)
	if failure == nil {
		failure = confine(spec, w, p.session.credential)
	}
	if failure != nil {
		return nil, failure
	}
	if holds != nil {
		if err := bound(ceiling, holds, spec, wish.Places.Home); err != nil {
			return nil, barred(err)
		}
		_, p.most = holds.Limits()
	}
	p.stream = executor.Stream.String
	switch {
	case w.TTY:
		spec.TTY = new(executor.Size)
		if w.Size != nil {
			spec.TTY = &executor.Size{Cols: w.Size.Cols, Rows: w.Size.Rows}
		}
		p.stream = func(executor.Stream) string { return "pty" }
	default:
		spec.PipeStdin = w.PipeStdin
	}
	return spec, nil
}

// unsupported refuses members that are not supported: without them, a process could do more
// than the client wants, or less.
func unsupported(names []string) *wire.Error {
	if len(names) == 0 {
		return nil
	}
	return invalid(fmt.Sprintf("`%s` is not supported by this exec-server; leave it out", names[0]))
}

// env returns the environment of a process.
func (s *Server) env(w *wire.Start, ceiling *config.Config) ([]string, error) {
	vars := map[string]string{}
	if w.EnvPolicy != nil {
		inherited := s.opts.Environ
		if ceiling != nil {
			var err error
			if inherited, err = ceiling.Inherited(inherited); err != nil {
				return nil, err
			}
		}
		policy := environ.Policy{
			KeepSecrets: w.EnvPolicy.IgnoreDefaultExcludes, Exclude: w.EnvPolicy.Exclude,
			Set:         w.EnvPolicy.Set,
			IncludeOnly: w.EnvPolicy.IncludeOnly, Core: coreNames,
		}
		if err := policy.Inherit.UnmarshalText([]byte(w.EnvPolicy.Inherit)); err != nil {
			return nil, err
		}
		result, err := policy.Apply(inherited)
		if err != nil {
			return nil, err
		}
		for _, entry := range result.Env {
			name, value, _ := strings.Cut(entry, "=")
			vars[name] = value
		}
	}
	for name, value := range w.Env {
		if name == "" || strings.Contains(name, "=") {
			return nil, &environ.NameError{Name: name, Reason: "it is empty or contains ="}
		}
		if !environ.Forbidden(name) {
			vars[name] = value
		}
	}
	env := make([]string, 0, len(vars)) // never nil, which means the same here
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, nil
}

// policy returns the policy of a process, bound to its places, and what holds for it; nil without a ceiling.
// Without a sandbox it is that of the wish: the client decides. The wish gets what the sandbox says.
func (s *Server) policy(ceiling *config.Config, wish *config.Wish, w *wire.Sandbox, dir string, env []string,
	system string) (sandbox.Policy, *config.Effective, *wire.Error) {
	var err error
	switch {
	case w == nil && ceiling == nil:
		return wish.Policy, nil, nil
	case w == nil:
		w = new(wire.Sandbox)
	case len(w.Unsupported) > 0:
		return wish.Policy, nil, unsupported(w.Unsupported)
	default:
		if wish.Policy, err = profile.ParseProfile(w.Permissions); err != nil {
			return wish.Policy, nil, invalid(err.Error())
		}
	}
	var failure *wire.Error
	if wish.Places, failure = s.places(w, dir, env, system); failure != nil {
		return wish.Policy, nil, failure
	}
	policy, holds, failure := narrow(ceiling, wish)
	if failure != nil {
		return policy, nil, failure
	}
	if policy.Mode() == sandbox.Managed {
		for _, name := range s.opts.Hidden {
			policy = policy.WithEntries(sandbox.PathEntry(name, sandbox.LevelDeny))
		}
	}
	policy, err = reach.Area{Policy: policy.Bind(wish.Places), HostTmp: true}.Keep(s.opts.Kept)
	if err != nil {
		return policy, nil, startFailure(err)
	}
	return policy, holds, nil
}

// places returns what the special places of a policy mean for a process.
func (s *Server) places(w *wire.Sandbox, dir string, env []string,
	system string) (sandbox.Places, *wire.Error) {
	places, err := s.exec.Places(s.life, dir, env, hostTmp)
	if err != nil {
		return places, startFailure(err)
	}
	var failure *wire.Error
	path := func(member, uri string) string {
		name, err := wire.Path(uri, system)
		if err != nil && failure == nil {
			failure = invalid(member + ": " + err.Error())
		}
		return name
	}
	if w.CWD != "" {
		places.Dir = path("sandbox.cwd", w.CWD)
	}
	for _, uri := range w.WorkspaceRoots {
		places.Workspaces = append(places.Workspaces, path("sandbox.workspaceRoots", uri))
	}
	if w.HomeDir != "" {
		places.Home = path("sandbox.userHomeDir", w.HomeDir)
	}
	switch len(w.TempDirs) {
	case 0:
	case 1:
		places.TmpDir = path("sandbox.temporaryDirectories", w.TempDirs[0])
	default:
		failure = invalid("sandbox.temporaryDirectories: more than one is not supported by this exec-server; name one")
	}
	return places, failure
}

// startFailure returns the error for a process that could not be started: the text of the
// system as clients know it, and what it was about.
func startFailure(err error) *wire.Error {
	if stage := new(executor.StageError); errors.As(err, &stage) {
		return stages.Failure(err)
	}
	message := err.Error()
	var nul *executor.NULError
	var start *executor.StartError
	var errno syscall.Errno
	switch {
	case errors.As(err, &nul):
		message = "nul byte found in provided data: " + message
	case errors.As(err, &start) && start.NotFound:
		message = "No such file or directory (os error 2): " + message
	case errors.As(err, &errno):
		text := errno.Error()
		message = fmt.Sprintf("%s%s (os error %d): %s", strings.ToUpper(text[:1]), text[1:],
			int(errno), message)
	}
	return &wire.Error{Code: wire.CodeInternal, Message: message}
}

// wasDenied reports whether the sandbox denied something that may be why the process failed: by
// what was seen, or where nothing observed it, by what it printed. The caller holds p.mu.
func (p *process) wasDenied() bool {
	if p.code == 0 || p.spec.Policy.Mode() == sandbox.Full {
		return false
	}
	denials := p.denials
	guess := len(denials) == 0 && !p.running.Sandbox().Observed
	if len(denials) == 0 && !guess {
		return false
	}
	r := p.suggestions()
	said := make([]byte, p.end-p.offset(p.kept))
	p.log.ReadAt(said, p.offset(p.kept)) // it is in memory
	if guess {
		denials = r.Guess(p.code, nil, said)
	}
	r.Complete(denials)
	return slices.ContainsFunc(r.Weigh(denials, p.code, bytes.TrimSpace(said)),
		func(d sandbox.Denial) bool { return d.Harmless == "" })
}
