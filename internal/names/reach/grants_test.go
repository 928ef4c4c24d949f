// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestGrants(t *testing.T) {
	deny := func(op sandbox.Op, names ...string) []sandbox.Denial {
		var ds []sandbox.Denial
		for _, n := range names {
			ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: op, Path: n}})
		}
		return ds
	}
	connect := func(addrs ...string) []sandbox.Denial {
		var ds []sandbox.Denial
		for _, a := range addrs {
			ds = append(ds, sandbox.Denial{Access: sandbox.Access{Op: sandbox.Connect, Net: "tcp", Addr: a}})
		}
		return ds
	}
	rw := func(n string) sandbox.Grant { return sandbox.Grant{Level: sandbox.LevelWrite, Path: n} }
	ro := func(n string) sandbox.Grant { return sandbox.Grant{Level: sandbox.LevelRead, Path: n} }
	for _, tt := range []struct {
		name string
		ds   []sandbox.Denial
		want []sandbox.Grant
	}{
		{"nothing", nil, nil},
		{"one", deny(sandbox.Write, "/etc/x"), []sandbox.Grant{rw("/etc/x")}},
		{"twice", deny(sandbox.Write, "/etc/x", "/etc/x"), []sandbox.Grant{rw("/etc/x")}},
		{"write includes read and exec", slices.Concat(deny(sandbox.Read, "/etc/x"), deny(sandbox.Write, "/etc/x"), deny(sandbox.Exec, "/etc/x")), []sandbox.Grant{rw("/etc/x")}},
		{"exec is read", deny(sandbox.Exec, "/opt/x"), []sandbox.Grant{ro("/opt/x")}},
		{"three stay apart", deny(sandbox.Write, "/d/e/f/1", "/d/e/f/2", "/d/e/f/3"), []sandbox.Grant{rw("/d/e/f/1"), rw("/d/e/f/2"), rw("/d/e/f/3")}},
		{"four are a directory", deny(sandbox.Write, "/d/e/f/1", "/d/e/f/2", "/d/e/f/3", "/d/e/f/4"), []sandbox.Grant{rw("/d/e/f")}},
		{"a directory takes reads along", slices.Concat(deny(sandbox.Write, "/d/e/f/1", "/d/e/f/2", "/d/e/f/3", "/d/e/f/4"), deny(sandbox.Read, "/d/e/f/5/6")), []sandbox.Grant{rw("/d/e/f")}},
		{"reads are no reason to write", slices.Concat(deny(sandbox.Write, "/d/e/f/1"), deny(sandbox.Read, "/d/e/f/2", "/d/e/f/3", "/d/e/f/4", "/d/e/f/5")),
			[]sandbox.Grant{ro("/d/e/f"), rw("/d/e/f/1")}},
		{"never a top-level directory", deny(sandbox.Write, "/etc/1", "/etc/2", "/etc/3", "/etc/4"), []sandbox.Grant{rw("/etc/1"), rw("/etc/2"), rw("/etc/3"), rw("/etc/4")}},
		{"never the second level", deny(sandbox.Write, "/usr/lib/1", "/usr/lib/2", "/usr/lib/3", "/usr/lib/4"),
			[]sandbox.Grant{rw("/usr/lib/1"), rw("/usr/lib/2"), rw("/usr/lib/3"), rw("/usr/lib/4")}},
		{"never a hidden directory", deny(sandbox.Write, "/home/u/.ssh/1", "/home/u/.ssh/2", "/home/u/.ssh/3", "/home/u/.ssh/4"),
			[]sandbox.Grant{rw("/home/u/.ssh/1"), rw("/home/u/.ssh/2"), rw("/home/u/.ssh/3"),
				rw("/home/u/.ssh/4")}},
		{"caches are no secret", deny(sandbox.Write, "/home/u/.cache/x/1", "/home/u/.cache/x/2", "/home/u/.cache/x/3", "/home/u/.cache/x/4"), []sandbox.Grant{rw("/home/u/.cache/x")}},
		{"protected names stay apart", deny(sandbox.Write, "/d/e/f/1", "/d/e/f/2", "/d/e/f/3", "/d/e/f/4", "/d/e/f/.git", "/d/e/f/.codex/a"),
			[]sandbox.Grant{rw("/d/e/f"), rw("/d/e/f/.codex/a"), rw("/d/e/f/.git")}},
		{"nothing for the root, top directories and homes", deny(sandbox.Write, "/", "/etc", "/home/u", "/Users/u", "/root", "rel", "", "/a/../b"), nil},
		{"hosts", connect("b.example:443", "A.example:80", "a.example:80", "a.example:443", "a.example"), []sandbox.Grant{{Addr: "a.example"}, {Addr: "b.example:443"}}},
		{"nothing for loopback and junk", connect("127.0.0.1:80", "localhost:1", "[::]:1", "x:y:z", "*.example:1"), nil},
		{"nothing for unix, bind and signal", []sandbox.Denial{
			{Access: sandbox.Access{Op: sandbox.Connect, Net: "unix", Addr: "/run/x"}}, {Access: sandbox.Access{Op: sandbox.Bind, Addr: "10.0.0.1:1"}}, {Access: sandbox.Access{Op: sandbox.Signal}}, {},
		}, nil},
		{"directories of directories", deny(sandbox.Write, directories("/d/e/f", 4, 4)...), []sandbox.Grant{rw("/d/e/f")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, SuggestGrants(tt.ds), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}

// directories returns n directories with m files each.
func directories(root string, n, m int) []string {
	var out []string
	for i := range n {
		for j := range m {
			out = append(out, fmt.Sprintf("%s/%d/%d", root, i, j))
		}
	}
	return out
}

// TestGrantsSuffice checks that grants allow what was denied, and that none is superfluous.
func TestGrantsSuffice(t *testing.T) {
	names := []string{"/", "/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/c/e", "/a/b/c/f", "/a/b/c/g",
		"/a/b/c/.git", "/a/b/c/.git/x", "/a/.h/b/c"}
	addrs := []string{"h:1", "h:2", "g:1", "h", "127.0.0.1:1", "0.0.0.0:1", "junk:junk", ""}
	rapid.Check(t, func(t *rapid.T) {
		p := sandbox.ReadOnly()
		if rapid.Bool().Draw(t, "closed") {
			p = sandbox.Policy{}.Bind(sandbox.Places{Dir: "/w", Minimal: []string{"/usr"}})
		}
		var ds []sandbox.Denial
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			a := sandbox.Access{Op: sandbox.Op(rapid.IntRange(0, int(sandbox.Signal)).Draw(t, "op"))}
			if isFile(a.Op) {
				a.Path = rapid.SampledFrom(names).Draw(t, "path")
			} else {
				a.Addr = rapid.SampledFrom(addrs).Draw(t, "addr")
			}
			if p.Rule(a) == sandbox.Deny {
				ds = append(ds, sandbox.Denial{Access: a})
			}
		}
		gs := SuggestGrants(ds)
		q := p.With(gs...)
		for _, d := range ds {
			if isFile(d.Op) && suggestible(d.Path) && q.Rule(d.Access) != sandbox.Allow {
				t.Fatalf("%v is not allowed by %v", d, gs)
			}
		}
		for i := range gs {
			rest := slices.Delete(slices.Clone(gs), i, i+1)
			if p.With(rest...).Covers(q) {
				t.Fatalf("%v is superfluous in %v", gs[i], gs)
			}
		}
	})
}
