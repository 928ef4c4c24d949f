// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/linux/launch"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// TestTrust: the certificates are mounted over the system's file and, for Java, in a /run of ours, and the
// variables name both; what a command does not see is not named.
func TestTrust(t *testing.T) {
	const file = "/etc/ssl/cert.pem"
	for _, tt := range []struct {
		name        string
		rules       []Rule
		root        sandbox.Level
		bundle, own bool
		weaker      int
	}{
		{"usual", nil, sandbox.LevelRead, true, true, 0},
		{"the file is denied", []Rule{rule(file, sandbox.LevelDeny, KindFile)}, sandbox.LevelRead, false, true, 1},
		{"/run is the host's", []Rule{rule("/run", sandbox.LevelWrite, KindDirectory)}, sandbox.LevelRead, true, false, 1},
		{"the host's /run is readable", []Rule{rule("/run", sandbox.LevelRead, KindDirectory)}, sandbox.LevelRead, true, true, 0},
		{"something in /run", []Rule{rule("/run/x", sandbox.LevelWrite, KindDirectory)}, sandbox.LevelRead, true, true, 0},
		{"/run is denied", []Rule{rule("/run", sandbox.LevelDeny, KindDirectory)}, sandbox.LevelRead, true, true, 0},
		{"the host's place is shown", []Rule{rule("/run/sallyport", sandbox.LevelRead, KindDirectory)}, sandbox.LevelRead, true, false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := Spot{Path: file, Kind: KindFile, ID: launch.ID{Dev: 1, Ino: 5}}
			r := request(tt.rules...).with(network(sandbox.NetworkProxy)).with(func(r *Request) {
				r.Env = []string{"JAVA_TOOL_OPTIONS=-Xmx1g"}
				r.Trust = &Trust{Bundle: Spot{Path: "/state/b.pem", Kind: KindFile},
					Store: Spot{Path: "/state/b.p12", Kind: KindFile}, Files: []Spot{at}}
			})
			p, err := Make(host(t, "ubuntu-abi7"), r)
			if err != nil {
				t.Fatal(err)
			}
			steps := p.Script.Steps
			env := strings.Join(steps[len(steps)-1].Env, "\n")
			mounted := func(name string) bool {
				return slices.ContainsFunc(steps, func(s launch.Step) bool {
					return s.Op == launch.OpAttach &&
						s.Path == name
				})
			}
			if mounted(file) != tt.bundle && !slices.ContainsFunc(tt.rules,
				func(r Rule) bool { return r.Path == file }) ||
				strings.Contains(env, "SSL_CERT_FILE="+file) != tt.bundle {
				t.Errorf("the bundle, mounted %v: %s", mounted(file), env)
			}
			if mounted(storePlace) != tt.own || strings.Contains(env, "trustStore="+storePlace) != tt.own ||
				!strings.Contains(env, "-Xmx1g") {
				t.Errorf("the store of Java, mounted %v: %s", mounted(storePlace), env)
			}
			n := 0
			for _, text := range p.Weaker {
				if strings.Contains(text, "trust the certificates") {
					n++
				}
			}
			if n != tt.weaker {
				t.Errorf("%q", p.Weaker)
			}
			if _, err := run(&p.Script, p.Points); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCopies: where a file has a copy the command sees that, read-only, and where none can be mounted nothing
// runs.
func TestCopies(t *testing.T) {
	const name = "/home/u/.config/gh/hosts.yml"
	for _, tt := range []struct {
		name, at string
		rules    []Rule
		fails    bool
	}{
		{"usual", name, nil, false},
		{"below a denied directory", name, []Rule{rule("/home/u/.config/gh", sandbox.LevelDeny, KindDirectory)}, false},
		{"below a writable directory", name, []Rule{rule("/home/u", sandbox.LevelWrite, KindDirectory)}, false},
		{"in /run", "/run/secrets/x", nil, false},
		{"in /proc", "/proc/x", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rules := append(tt.rules, rule(tt.at, sandbox.LevelRead, KindFile))
			p, err := Make(host(t, "ubuntu-abi7"), request(rules...).with(func(r *Request) {
				r.Copies = map[string]Spot{tt.at: {Path: "/state/copy-0", Kind: KindFile}}
			}))
			if (err != nil) != tt.fails {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			m, err := run(&p.Script, p.Points)
			if err != nil {
				t.Fatal(err)
			}
			if v := m.look(tt.at); v.source != "/state/copy-0" || !v.ro {
				t.Errorf("the command sees %+v", v)
			}
		})
	}
}
