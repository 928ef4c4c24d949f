// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// below returns what holds for a policy in a workspace below a managed configuration. DIR in its text is a
// directory with a program ls and rules.
func below(t *testing.T, managed string, w *config.Wish) (*config.Config, *config.Effective, string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sallyport-ceiling") //nolint:usetesting // no command has that for its /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	rule := func(where string) string {
		return `prefix_rule(pattern=["true"], decision="allow", sandbox="` + where + `")`
	}
	for name, text := range map[string]string{
		"ro.rules": rule("read-only"), "ws.rules": rule("workspace-write"), "net.rules": `network_rule(host="a.example", protocol="https", decision="deny")`,
		"no.rules": `prefix_rule(pattern=["date"], decision="forbidden")`, "ls": "#!/bin/sh\n", "managed.toml": strings.ReplaceAll(managed, "DIR", dir),
	} {
		err = errors.Join(err, testenv.WriteProgram(filepath.Join(dir, name), text))
	}
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Managed: dir, Environ: []string{"HOME=/home/nobody", "HTTPS_PROXY=http://b.example:1"}})
	t.Cleanup(func() { _ = s.Close() })
	c, failure := s.ceiling("/srv")
	if failure != nil || c == nil {
		t.Fatalf("%v, %+v", c, failure)
	}
	_, e, failure := narrow(c, w)
	if failure != nil {
		t.Fatalf("%+v", failure)
	}
	return c, e, dir
}

// TestBound: what the managed configuration says beside the policy holds for a process, and what it does not
// say stays as the client has it.
func TestBound(t *testing.T) {
	const untrusted = `approval = "untrusted"` + "\n"
	for _, test := range []struct {
		name, managed string
		policy        sandbox.Policy
		change        func(s *executor.Spec, dir string)
		want          string // what differs, or the error
	}{
		{"nothing", `limits.timeout = "1h"`, sandbox.ReadOnly(), nil, "host landlock"},
		{"limits", `limits.pids = 9`, sandbox.ReadOnly(), nil, "host landlock 9"},
		{"private /tmp", `tmp = "private"`, sandbox.ReadOnly(), nil, " landlock"},
		{"level", `level = "native"`, sandbox.ReadOnly(), nil, "host native"},
		{"no caches", `caches = false`, sandbox.ReadOnly(), nil, "host landlock caches"},
		{"no observer, as asked for", `observer = false`, sandbox.ReadOnly(), nil, "host landlock observer"},
		{"hard links", `protect_hard_links = true`, sandbox.ReadOnly(), nil, "host landlock links"},
		{"ownership", `ownership = "error"`, sandbox.ReadOnly(), nil, "host landlock ownership"},
		{"a rule for read-only", `rules = ["DIR/ro.rules"]`, sandbox.WorkspaceWrite(), nil, "122 forbidden: a rule says sandbox=read-only"},
		{"as it says", `rules = ["DIR/ro.rules"]`, sandbox.ReadOnly(), nil, "host landlock"},
		{"a rule for the workspace", `rules = ["DIR/ws.rules"]`, sandbox.FullAccess(), nil, "122 forbidden: a rule says sandbox=workspace-write"},
		{"as it says too", `rules = ["DIR/ws.rules"]`, sandbox.WorkspaceWrite(), nil, "host landlock"},
		{"by another name", `rules = ["DIR/no.rules"]`, sandbox.ReadOnly(), func(s *executor.Spec, _ string) { s.Arg0 = "date" }, "122 forbidden"},
		{"what reads only", untrusted, sandbox.ReadOnly(), func(s *executor.Spec, _ string) { s.Args = []string{"ls"} }, "host landlock"},
		{"what others write", untrusted + `write = ["DIR"]`, sandbox.ReadOnly(), func(s *executor.Spec, dir string) { s.Args, s.Env = []string{"ls"}, []string{"PATH=" + dir} }, "123 refused"},
		{"dangerous where all is writable", `approval = "on-request"`, sandbox.FullAccess(), func(s *executor.Spec, _ string) { s.Args = []string{"rm", "-rf", "/"} }, "123 refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			places := sandbox.Places{Dir: "/srv", SlashTmp: "/tmp"}
			c, e, dir := below(t, test.managed, &config.Wish{
				Name: "process/start", Policy: test.policy, Places: places,
				Flags: map[string][]string{"observer": {fmt.Sprint(!strings.HasPrefix(test.name,
					"no observer"))}},
			})
			spec := &executor.Spec{Args: []string{"true"}, Dir: "/srv", Env: []string{"PATH=/usr/bin:/bin"},
				Policy: test.policy.Bind(places), Tmp: hostTmp, Level: "landlock"}
			if test.change != nil {
				test.change(spec, dir)
			}
			err := bound(c, e, spec, "/home/nobody")
			got := spec.Tmp + " " + spec.Level
			for word, is := range map[string]bool{
				fmt.Sprint(spec.Resources.PIDs): spec.Resources.PIDs > 0, "caches": spec.NoCaches,
				"observer": spec.NoObserver,
				"links":    spec.ProtectHardLinks, "ownership": spec.OwnershipErrors,
			} {
				if is {
					got += " " + word
				}
			}
			if over := new(refusal); errors.As(err, &over) {
				got = fmt.Sprint(over.code, " ", over)
			} else if err != nil {
				t.Fatal(err)
			}
			if got != test.want && (err == nil || !strings.HasPrefix(got, test.want)) {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestBoundHosts: what the managed configuration denies is denied behind what a client allows, and hosts are
// reached by the proxy that it names.
func TestBoundHosts(t *testing.T) {
	for _, test := range []struct{ name, managed, client, want string }{
		{"nothing", `limits.pids = 9`, "", ""},
		{"denied", `network.deny = ["x.example"]`, "", "x.example"},
		{"denied by a rule", `rules = ["DIR/net.rules"]`, "", "a.example"},
		{"server names", `network.require_sni = true`, "", "sni"},
		{"its proxy", `network.upstream = "http://c.example:2"`, "http://d.example:3", "by c.example:2"},
		{"no proxy", `network.upstream = "none"`, "http://d.example:3", ""},
		{"the proxy of the server in the place of a client's", `limits.pids = 9`, "http://d.example:3", "by b.example:1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, e, _ := below(t, test.managed, &config.Wish{Name: "process/start", Policy: sandbox.ReadOnly()})
			var to network.Config
			if test.client != "" {
				var err error
				if to.Upstream, err = network.ParseUpstream(test.client, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := boundHosts(c, e, &to); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, entry := range to.Entries {
				if entry.Deny && entry.Source != "" {
					got = append(got, entry.Pattern)
				}
			}
			if to.RequireSNI {
				got = append(got, "sni")
			}
			for _, p := range to.Upstream.Proxies() {
				got = append(got, "by "+p.Authority())
			}
			if text := strings.Join(slices.Compact(got), " "); text != test.want {
				t.Errorf("%q, want %q", text, test.want)
			}
		})
	}
	c, e, _ := below(t, "network.upstream = \"environment\"\nnetwork.allow = [\"a.example\"]",
		&config.Wish{Name: "process/start", Policy: sandbox.ReadOnly()})
	var to network.Config
	if over := new(config.CeilingError); !errors.As(boundHosts(c, e, &to), &over) {
		t.Error("a proxy that may not be reached is used")
	}
}

// TestFlags: all that a client asks for beside its policy is looked at.
func TestFlags(t *testing.T) {
	allow := func(p wire.ProxyConfig) *wire.Start { return &wire.Start{Network: &wire.NetworkProxy{Proxy: p}} }
	confined := func(c wire.Confine) *wire.Start { return &wire.Start{Confine: &c} }
	for _, test := range []struct {
		start *wire.Start
		want  string
	}{
		{new(wire.Start), ""}, {confined(wire.Confine{}), ""}, {confined(wire.Confine{Memory: 5}), "limits.memory=[5]"}, {confined(wire.Confine{Disk: 5}), "limits.disk=[5]"},
		{confined(wire.Confine{CPUs: 0.5}), "limits.cpus=[0.5]"}, {confined(wire.Confine{PIDs: 5}), "limits.pids=[5]"}, {confined(wire.Confine{Level: "bwrap"}), "level=[bwrap]"},
		{confined(wire.Confine{NoObserver: true}), "observer=[false]"}, {confined(wire.Confine{NoCaches: true}), "caches=[false]"},
		{confined(wire.Confine{ProtectHardLinks: true}), "protect_hard_links=[true]"}, {confined(wire.Confine{OwnershipErrors: true}), "ownership=[error]"},
		{allow(wire.ProxyConfig{Mode: "full"}), "network.mode=[full]"}, {allow(wire.ProxyConfig{Mode: "limited"}), "network.mode=[limited]"},
		{allow(wire.ProxyConfig{AllowLocalBinding: true}), "network.allow_private=[true] network.mode=[full]"},
		{allow(wire.ProxyConfig{Domains: map[string]string{"a": "allow", "b": "deny"}}), "network.allow=[a] network.mode=[full]"},
	} {
		var got []string
		all := flags(test.start)
		for _, key := range slices.Sorted(maps.Keys(all)) {
			got = append(got, fmt.Sprintf("%s=%v", key, all[key]))
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%q, want %q", text, test.want)
		}
	}
}

// TestWorkspace: the settings are those for the one root of a sandbox, for its directory where it has another
// number of them, and for the directory of the process.
func TestWorkspace(t *testing.T) {
	for _, test := range []struct {
		w    *wire.Sandbox
		want string
	}{
		{nil, "/d"}, {&wire.Sandbox{CWD: "file:///c", WorkspaceRoots: []string{"file:///r"}}, "/r"}, {&wire.Sandbox{CWD: "file:///c"}, "/c"},
		{&wire.Sandbox{CWD: "file:///c", WorkspaceRoots: []string{"file:///r", "file:///s"}}, "/c"}, {&wire.Sandbox{CWD: "c"}, "/d"},
	} {
		if got := workspace(test.w, "/d", "linux"); got != test.want {
			t.Errorf("%+v: %s, want %s", test.w, got, test.want)
		}
	}
}

// TestExplain: each path of a request is looked at.
func TestExplain(t *testing.T) {
	_, e, _ := below(t, `deny = ["/usr/secret"]`, &config.Wish{Name: "fs/copy", Policy: sandbox.ReadOnly()})
	other := errors.New("other")
	for text, denied := range map[string]bool{
		`{"path":"file:///usr/secret/x"}`:                                         true,
		`{"sourcePath":"file:///usr/secret","destinationPath":"file:///usr/x"}`:   true,
		`{"sourcePath":"file:///usr/x","destinationPath":"file:///usr/secret/x"}`: true,
		`{"path":"file:///usr/x"}`:                                                false,
		`{"path":"secret"}`:                                                       false, `x`: false,
	} {
		err := explain(e, &files.Request{Method: "fs/copy", Params: []byte(text)}, "linux", other)
		if is := !errors.Is(err, other); is != denied {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := explain(e, &files.Request{Params: []byte(`{"path":"file:///usr/secret/x"}`)}, "linux",
		nil); err != nil {
		t.Errorf("of a request that was performed: %v", err)
	}
}

// TestForbiddenVariables: no client sets what no command gets.
func TestForbiddenVariables(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	env, err := s.env(&wire.Start{Env: map[string]string{"OPENAI_IDENTITY_TOKEN_FILE": "/x", "A": "1"}}, nil)
	if err != nil || !slices.Equal(env, []string{"A=1"}) {
		t.Errorf("%q, %v", env, err)
	}
}
