// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package named

import (
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestCheckName(t *testing.T) {
	for _, test := range []struct {
		name, value string
		ok          bool
	}{
		{"letters", "web", true}, {"all kinds", "Web-2_b.x", true}, {"hyphen first", "-x", true}, {"64 letters", strings.Repeat("x", 64), true},
		{"empty", "", false}, {"65 letters", strings.Repeat("x", 65), false}, {"dot first", ".x", false}, {"dots", "..", false},
		{"slash", "a/b", false}, {"NUL", "a\x00", false}, {"line", "a\n", false}, {"space", "a b", false}, {"other letters", "wéb", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := CheckName(test.value); (err == nil) != test.ok {
				t.Errorf("%q: %v", test.value, err)
			}
		})
	}
}

// bound returns the workspace preset in /w with more entries.
func bound(entries ...sandbox.Entry) sandbox.Policy {
	return sandbox.WorkspaceWrite().WithEntries(entries...).Bind(sandbox.Places{Dir: "/w", SlashTmp: "/tmp"})
}

func TestRefuse(t *testing.T) {
	own := &Request{Name: "n", Workspace: "/w", Policy: bound(sandbox.PathEntry("/data", sandbox.LevelWrite), sandbox.PathEntry("/secret", sandbox.LevelDeny)).With(sandbox.Grant{Name: "git"}), Openings: []string{"--allow unix"}}
	with := func(f func(r *Request)) *Request {
		r := *own
		f(&r)
		return &r
	}
	for _, test := range []struct {
		name string
		r    *Request
		want string // in the error; empty for none
	}{
		{"same", own, ""},
		{"fewer grants and openings", with(func(r *Request) {
			r.Policy, r.Openings = bound(sandbox.PathEntry("/secret", sandbox.LevelDeny)), nil
		}), ""},
		{"read only", with(func(r *Request) {
			r.Policy = sandbox.ReadOnly().WithEntries(sandbox.PathEntry("/secret", sandbox.LevelDeny)).Bind(sandbox.Places{Dir: "/w"})
		}), ""},
		{"another workspace", with(func(r *Request) { r.Workspace = "/v" }), "its workspace is /w, and that of this run is /v; use another name"},
		{"another network", with(func(r *Request) { r.Policy = r.Policy.WithNetwork(sandbox.NetworkHost) }), "its network is none, and that of this run is host; use --net none"},
		{"full access", with(func(r *Request) { r.Policy = sandbox.FullAccess() }), "this run builds no sandbox"},
		{"every file", with(func(r *Request) { r.Policy = sandbox.FullAccess().WithNetwork(sandbox.NetworkNone) }), "this run may write /,"},
		{"writes more", with(func(r *Request) { r.Policy = r.Policy.WithEntries(sandbox.PathEntry("/srv", sandbox.LevelWrite)) }), "this run may write /srv, and the run that started the sandbox may not; leave that out"},
		{"denies less", with(func(r *Request) { r.Policy = bound() }), "this run may read /secret,"},
		{"another grant", with(func(r *Request) { r.Policy = r.Policy.With(sandbox.Grant{Name: "docker"}) }), "this run has --grant docker, which"},
		{"another opening", with(func(r *Request) { r.Openings = []string{"--allow unix", "--allow userns"} }), "this run has --allow userns, which the run that started the sandbox did not have; leave that out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			no := refuse(own, test.r)
			switch {
			case test.want == "" && no != nil:
				t.Error(no)
			case test.want != "" && (no == nil || !strings.HasPrefix(no.Error(), "cannot join the sandbox n: "+test.want)):
				t.Errorf("%v, want %q", no, test.want)
			}
		})
	}
	own.Policy = bound(sandbox.GlobEntry("**/.env"))
	if no := refuse(own, with(func(r *Request) { r.Policy = bound() })); no == nil || !strings.Contains(no.Why, "denies less") {
		t.Errorf("without a pattern: %v", no)
	}
}

func TestList(t *testing.T) {
	if got := (Infos{}).String(); got != "" {
		t.Errorf("%q for none", got)
	}
	left := int64(599_900)
	now := time.Now()
	got := Infos{
		{Name: "db", Workspace: "/w", Since: now.Add(-3 * time.Hour), Running: 2},
		{Name: "web", Workspace: "/a b", Network: sandbox.NetworkHost, Since: now, IdleLeft: &left},
	}.String()
	want := `NAME   NETWORK   STARTED   RUNNING   IDLE LEFT   WORKSPACE
db     none      3h ago    2         -           /w
web    host      0s ago    0         10m         /a b
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
