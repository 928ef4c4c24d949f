// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"path"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/sandbox"
)

func testPlaces() sandbox.Places {
	return sandbox.Places{
		Dir: "/w", Workspaces: []string{"/w"}, TmpDir: "/var/tmp/me", SlashTmp: "/tmp",
		Minimal: []string{"/usr", "/bin", "/etc/ld.so.cache"}, Home: "/home/me",
	}
}

// mustNew is sandbox.New for tables.
func mustNew(t *testing.T, mode sandbox.Mode, net sandbox.Network, entries ...sandbox.Entry) sandbox.Policy {
	t.Helper()
	p, err := sandbox.New(mode, net, entries...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The generators draw from few names, so that paths meet often.

func drawPath(t *rapid.T) string {
	names := []string{"a", "ab", "b", ".git", ".codex", "x.env"}
	return path.Join(append([]string{"/"}, rapid.SliceOfN(rapid.SampledFrom(names), 0, 4).Draw(t,
		"path")...)...)
}

func drawEntry(t *rapid.T) sandbox.Entry {
	level := sandbox.Level(rapid.IntRange(0, int(sandbox.LevelWrite)).Draw(t, "level"))
	var e sandbox.Entry
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0:
		e = sandbox.GlobEntry(rapid.SampledFrom([]string{"/a/**/*.env", "/a/*", "/b/**/.git",
			"/ab/x.env"}).Draw(t, "glob"))
	case 1, 2:
		e = sandbox.SpecialEntry(rapid.SampledFrom([]string{
			sandbox.TokenRoot, sandbox.TokenProjectRoots, sandbox.TokenTmpDir, sandbox.TokenSlashTmp,
			sandbox.TokenMinimal, "future",
		}).Draw(t, "token"), level)
	case 3:
		e = sandbox.PathEntry(rapid.SampledFrom([]string{"a", "../b", "~/x"}).Draw(t, "relative"), level)
	default:
		e = sandbox.PathEntry(drawPath(t), level)
	}
	e.SkipMissing = rapid.Bool().Draw(t, "skip")
	return e
}

// drawPolicy draws a policy without NetworkProxy, for which the forms have no word.
func drawPolicy(t *rapid.T) sandbox.Policy {
	net := rapid.SampledFrom([]sandbox.Network{sandbox.NetworkNone, sandbox.NetworkHost}).Draw(t, "network")
	entries := make([]sandbox.Entry, rapid.IntRange(0, 6).Draw(t, "entries"))
	for i := range entries {
		entries[i] = drawEntry(t)
	}
	var p sandbox.Policy
	var err error
	switch rapid.IntRange(0, 6).Draw(t, "shape") {
	case 0:
		return sandbox.FullAccess()
	case 1:
		return sandbox.FullAccess().WithNetwork(sandbox.NetworkNone).WithNetwork(net)
	case 2:
		p, err = sandbox.New(sandbox.External, net)
	case 3:
		p = sandbox.Policy{}.WithNetwork(net)
	case 4, 5:
		p = sandbox.WorkspaceWrite().WithNetwork(net).WithEntries(drawEntry(t))
	default:
		p, err = sandbox.New(sandbox.Managed, net, entries...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func drawAccess(t *rapid.T) sandbox.Access {
	a := sandbox.Access{Op: sandbox.Op(rapid.IntRange(0, int(sandbox.Syscall)).Draw(t, "op"))}
	switch a.Op {
	case sandbox.Connect, sandbox.Bind:
		a.Net = rapid.SampledFrom([]string{"tcp", "unix", "http"}).Draw(t, "net")
		a.Addr = rapid.SampledFrom([]string{"h:1", "127.0.0.1:1", "junk:junk", "/a/b", "@x",
			""}).Draw(t, "addr")
	default:
		a.Path = drawPath(t)
	}
	return a
}
