// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func ExamplePolicy_Rule() {
	p := sandbox.WorkspaceWrite("/work")
	for _, a := range []sandbox.Access{
		{Op: sandbox.Write, Path: "/work/main.go"},
		{Op: sandbox.Write, Path: "/work/.git/config"},
		{Op: sandbox.Read, Path: "/etc/hosts"},
		{Op: sandbox.Connect, Net: "tcp", Addr: "example.com:443"},
	} {
		fmt.Println(a, "->", p.Rule(a))
	}
	// Output:
	// write /work/main.go -> allow
	// write /work/.git/config -> deny
	// read /etc/hosts -> allow
	// connect example.com:443 -> deny
}

func ExampleNew() {
	p, err := sandbox.New(sandbox.Managed, sandbox.NetworkNone,
		sandbox.SpecialEntry(sandbox.TokenRoot, sandbox.LevelRead),
		sandbox.PathEntry("/repo", sandbox.LevelWrite),
		sandbox.PathEntry("/repo/private", sandbox.LevelDeny),
		sandbox.PathEntry("/repo/private/out", sandbox.LevelWrite),
		sandbox.GlobEntry("/repo/**/*.env"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"/repo/a", "/repo/private/key", "/repo/private/out/a",
		"/repo/sub/prod.env"} {
		fmt.Println(name, p.LevelAt(name))
	}
	// Output:
	// /repo/a write
	// /repo/private/key deny
	// /repo/private/out/a write
	// /repo/sub/prod.env deny
}

func ExamplePolicy_Resolve() {
	p := sandbox.WorkspaceWrite().Bind(sandbox.Places{Dir: "/work"})
	r, err := p.Resolve()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("root", r.Root)
	for _, w := range r.Writable {
		fmt.Println(w.Root, w.Protected)
	}
	// Output:
	// root read
	// /work [/work/.agents /work/.codex /work/.git /work/.sallyport]
}

func ExamplePolicy_With() {
	p := sandbox.ReadOnly()
	write := sandbox.Access{Op: sandbox.Write, Path: "/data/out/log"}
	connect := sandbox.Access{Op: sandbox.Connect, Net: "tcp", Addr: "example.com:443"}
	q := p.With(sandbox.Grant{Path: "/data/out", Level: sandbox.LevelWrite},
		sandbox.Grant{Addr: "example.com:443"})
	fmt.Println(p.Rule(write), p.Rule(connect))
	fmt.Println(q.Rule(write), q.Rule(connect), q.Covers(p))
	// Output:
	// deny deny
	// allow allow true
}
