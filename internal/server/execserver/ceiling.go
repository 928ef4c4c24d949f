// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/command/judge"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/names/reach"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The managed configuration bounds what clients decide themselves as it bounds runs: a request is what flags
// for the same policy would be. It is read for each request, as for each run.

// ownershipError is the word of the key ownership for the errors of the kernel.
const ownershipError = "error"

// ceiling reads the managed configuration for a workspace. Nil is that there is none. What cannot be read
// refuses the request.
func (s *Server) ceiling(dir string) (*config.Config, *wire.Error) {
	managed := cmp.Or(s.opts.Managed, config.System)
	if !s.opts.RequireSandbox && !config.HasCeiling(managed) {
		return nil, nil
	}
	home, _ := s.variable("HOME")
	c, err := config.Load(config.Input{
		Managed: managed, OnlyManaged: true, RequireSandbox: s.opts.RequireSandbox,
		Dir: cmp.Or(dir, "/"), Home: home,
		Proxies: append([]string{}, s.opts.Environ...), Account: grants.DatabaseHome,
	})
	switch {
	case err != nil:
		return nil, barred(err)
	case !c.Ceiling():
		return nil, nil
	}
	return c, nil
}

// barred returns the error for what the managed configuration does not allow: that of a run.
func barred(err error) *wire.Error { return runFailure(runs.NotRun(err)) }

// narrow returns what a client gets that asks for a policy, not bound, and what holds for it.
func narrow(c *config.Config, w *config.Wish) (sandbox.Policy, *config.Effective, *wire.Error) {
	if c == nil {
		return w.Policy, nil, nil
	}
	e, err := c.Client(w)
	if err != nil {
		return w.Policy, nil, barred(err)
	}
	return e.Narrow(w.Policy), e, nil
}

// workspace is what the ceiling takes for the workspace of a request: the one root of its sandbox, or the
// directory.
func workspace(w *wire.Sandbox, dir, system string) string {
	uri := ""
	switch {
	case w == nil:
	case len(w.WorkspaceRoots) == 1:
		uri = w.WorkspaceRoots[0]
	default:
		uri = w.CWD
	}
	if root, err := wire.Path(uri, system); err == nil { // another one is refused later
		return root
	}
	return dir
}

// bound applies what holds to a process, and returns why it does not run.
func bound(c *config.Config, e *config.Effective, spec *executor.Spec, home string) error {
	is := func(key, text string) bool { return e.Values[key].Text() == text }
	if c.Sets("tmp") { // else a client has the host's
		spec.Tmp = ""
	}
	if c.Sets("level") {
		spec.Level = e.Values["level"].Text()
	}
	spec.NoCaches, spec.NoObserver = is("caches", "false"), is("observer", "false")
	spec.ProtectHardLinks, spec.OwnershipErrors = is("protect_hard_links", "true"),
		is("ownership", ownershipError)
	spec.Resources, _ = e.Limits()
	set := rules.Load(rules.Host{Dir: spec.Dir, Home: home}, e.Rules()...)
	if set.Empty() && !c.Sets("approval") {
		return nil
	}
	in := reach.New(reach.Area{Policy: spec.Policy, Workspace: spec.Dir, HostTmp: spec.Tmp == hostTmp,
		Writable: e.ClientsWrite()})
	d := judge.Judge(&judge.Question{
		Command: spec.Args, Arg0: spec.Arg0, Rules: set, Host: rules.Host{Dir: spec.Dir, Home: home},
		Site: &reach.Site{Reach: in, Dir: spec.Dir, Env: spec.Env}, Approval: e.Approval(),
		SafeList: e.ReadOnlyRules(),
		Place:    judge.PlaceOf(spec.Policy),
	})
	switch {
	case d.Err != nil:
		return fmt.Errorf("nothing runs because the rules do not load: %w", d.Err)
	case d.Answer == judge.Forbid:
		return &refusal{"forbidden: " + d.Reason, 122}
	case d.Answer == judge.Ask:
		return &refusal{"refused: " + d.Reason + ", and there is no one to ask; use run/start", 123}
	case d.Where == rules.ReadOnly && !sandbox.ReadOnly().Covers(spec.Policy),
		d.Where == rules.WorkspaceWrite && judge.PlaceOf(spec.Policy) != judge.Restricted:
		return &refusal{fmt.Sprintf("forbidden: a rule says sandbox=%s, and the request asks for more; ask for that sandbox", d.Where), 122}
	}
	return nil
}

// A refusal says why a process does not run, in the words and with the exit code of a run.
type refusal struct {
	text string
	code int
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) ExitCode() int { return r.code }

// flags are those of a run for what a process has beside its policy.
func flags(w *wire.Start) map[string][]string {
	flags := map[string][]string{}
	if c := w.Confine; c != nil {
		for _, f := range []struct {
			asks      bool
			key, text string
		}{
			{c.Memory > 0, "limits.memory", strconv.FormatInt(c.Memory, 10)}, {c.Disk > 0, "limits.disk", strconv.FormatInt(c.Disk, 10)},
			{c.CPUs > 0, "limits.cpus", strconv.FormatFloat(c.CPUs, 'f', -1, 64)}, {c.PIDs > 0, "limits.pids", strconv.Itoa(c.PIDs)},
			{c.Level != "", "level", c.Level}, {c.NoObserver, "observer", "false"}, {c.NoCaches, "caches", "false"},
			{c.ProtectHardLinks, "protect_hard_links", "true"}, {c.OwnershipErrors, "ownership", ownershipError},
		} {
			if f.asks {
				flags[f.key] = []string{f.text}
			}
		}
	}
	n := w.Network
	if n == nil {
		return flags
	}
	flags["network.mode"] = []string{config.NetFull}
	if n.Proxy.Mode == network.Limited.String() {
		flags["network.mode"][0] = config.NetLimited
	}
	if n.Proxy.AllowLocalBinding {
		flags["network.allow_private"] = []string{"true"}
	}
	for pattern, word := range n.Proxy.Domains {
		if wire.Allows(word) {
			flags["network.allow"] = append(flags["network.allow"], pattern)
		}
	}
	return flags
}

// boundHosts applies what holds to a managed network: what is denied, and by which proxy hosts are reached.
func boundHosts(c *config.Config, e *config.Effective, to *network.Config) error {
	for _, s := range e.Values["network.deny"].Settings {
		to.Entries = append(to.Entries, network.Entry{Pattern: s.Text, Deny: true, Source: s.Origin.Place()})
	}
	for _, r := range rules.Load(rules.Host{}, e.Rules()...).Networks() {
		if r.Decision != rules.Allow {
			to.Entries = append(to.Entries, network.Entry{Pattern: r.Host, Deny: true, Source: r.String()})
		}
	}
	to.RequireSNI = to.RequireSNI || e.Values["network.require_sni"].Text() == "true"
	if !c.Sets("network.upstream") && to.Upstream == nil {
		return nil
	}
	var err error
	to.Upstream, err = e.Upstream()
	return err
}

// boundHTTP returns why no HTTP request is made for a client: nothing judges the hosts that it reaches, as
// with the network of the host.
func (s *Server) boundHTTP() *wire.Error {
	c, failure := s.ceiling(s.opts.Dir)
	if failure != nil || c == nil {
		return failure
	}
	if _, err := c.Client(&config.Wish{Name: "http/request",
		Policy: sandbox.Policy{}.WithNetwork(sandbox.NetworkHost)}); err != nil {
		return barred(err)
	}
	return nil
}

// filePolicies are what a request about files without a sandbox asks for: everything, or where it only reads
// what may be read.
func filePolicies(r *files.Request) []sandbox.Policy {
	if r.Writes {
		return []sandbox.Policy{sandbox.FullAccess()}
	}
	return []sandbox.Policy{sandbox.FullAccess(), sandbox.ReadOnly(), {}}
}

// explain returns the error of a request about files that a helper could not perform: that of the ceiling,
// where it denies one of the paths.
func explain(e *config.Effective, r *files.Request, system string, err error) error {
	var paths struct{ Path, SourcePath, DestinationPath string }
	var over *config.CeilingError
	if e == nil || err == nil || json.Unmarshal(r.Params, &paths) != nil {
		return err
	}
	for _, uri := range []string{paths.Path, paths.SourcePath, paths.DestinationPath} {
		if name, bad := wire.Path(uri, system); bad == nil && errors.As(e.Denies(r.Method, name), &over) {
			return barred(over)
		}
	}
	return err
}

// hidesFiles reports whether a client may not see every file; also where that is not known.
func (s *Server) hidesFiles() bool {
	c, failure := s.ceiling(s.opts.Dir)
	if failure == nil {
		_, _, failure = narrow(c, &config.Wish{Name: wire.MethodMissingChanged, Policy: sandbox.FullAccess()})
	}
	return failure != nil
}
