// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/sandbox"
	profile "github.com/sallyport-dev/sallyport/sandbox/wire"
)

// all are the capabilities of a server of this version that matter here.
var all = wire.Capabilities{ProcessTTYSize: true, ProcessPrivateTmp: true, ProcessResize: true,
	ProcessConfine: true, Stages: true}

// TestBeyond: what the wire cannot say is refused by name, before a connection is made.
func TestBeyond(t *testing.T) {
	for _, test := range []struct {
		name string
		ask  func(*executor.Spec)
		want string
	}{
		{"files", func(s *executor.Spec) { s.Files = map[int]*os.File{3: os.Stdin} }, "remote exec-server does not support inherited file descriptors"},
		{"standard input", func(s *executor.Spec) { s.Stdin = os.Stdin }, "remote exec-server does not support inherited file descriptors"},
		{"standard output", func(s *executor.Spec) { s.Stdout = os.Stdout }, "remote exec-server does not support inherited file descriptors"},
		{"standard error", func(s *executor.Spec) { s.Stderr = os.Stderr }, "remote exec-server does not support inherited file descriptors"},
		{"stops", func(s *executor.Spec) { s.OnStop = func() {} }, "notice of a process that was stopped"},
		{"calls that wait", func(s *executor.Spec) {
			s.AskAccess = func(context.Context, executor.AccessQuestion) bool { return true }
		}, "calls that wait for an answer"},
		{"script", func(s *executor.Spec) { s.Explain = true }, "the script of the sandbox"},
		{"ports", func(s *executor.Spec) { s.Publish = []network.Publish{{}} }, "published ports"},
		{"grants by name", func(s *executor.Spec) { s.Allow = []string{"unix"} }, "allowed by name (unix)"},
		{"tmp", func(s *executor.Spec) { s.Tmp = "/elsewhere" }, "a directory in the place of /tmp"},
		{"bytes in an argument", func(s *executor.Spec) { s.Args = []string{"a", "\xff"} }, "argument 1 with text that is not UTF-8"},
		{"bytes in a variable", func(s *executor.Spec) { s.Env = []string{"A=\xff"} }, "text that is not UTF-8"},
		{"variable without a value", func(s *executor.Spec) { s.Env = []string{"A"} }, "without a name or a value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := New(Options{Dial: func(context.Context) (io.ReadWriteCloser, error) {
				t.Error("it connected")
				return nil, errors.ErrUnsupported
			}})
			defer func() { _ = e.Close() }()
			spec := &executor.Spec{Args: []string{"a"}, Dir: "/"}
			test.ask(spec)
			_, err := e.Start(t.Context(), spec)
			var failure *Error
			var unsupported *sandbox.UnsupportedError
			if !errors.As(err, &failure) || failure.Class != ClassUnsupported ||
				!errors.As(err, &unsupported) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// TestConfine: what only servers with the extension do is sent to them, and refused by name elsewhere.
func TestConfine(t *testing.T) {
	for _, test := range []struct {
		name string
		ask  func(*executor.Spec)
		want string
	}{
		{"memory", func(s *executor.Spec) { s.Resources.Memory = 1 << 30 }, "needs limits of resources, but exec-server sessions do not support it"},
		{"processors", func(s *executor.Spec) { s.Resources.CPUs = 1 }, "limits of resources"},
		{"no observer", func(s *executor.Spec) { s.NoObserver = true }, "a run without an observer"},
		{"no caches", func(s *executor.Spec) { s.NoCaches = true }, "a run without overlays"},
		{"hard links", func(s *executor.Spec) { s.ProtectHardLinks = true }, "protection of hard links"},
		{"owners", func(s *executor.Spec) { s.OwnershipErrors = true }, "changes of owners"},
		{"stage", func(s *executor.Spec) { s.Stage = &executor.Staging{Name: "a"} }, "a stage"},
		{"level", func(s *executor.Spec) { s.Level = "native" }, "the sandbox level native"},
	} {
		t.Run(test.name, func(t *testing.T) {
			spec := &executor.Spec{Args: []string{"a"}, Dir: "/", Policy: sandbox.FullAccess()}
			test.ask(spec)
			var unsupported *sandbox.UnsupportedError
			if _, err := request(spec, "p", wire.Capabilities{}); !errors.As(err, &unsupported) ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			s, err := request(spec, "p", all)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := wire.Decode[wire.Start](text)
			if err != nil {
				t.Fatal(err)
			}
			there := &executor.Spec{Args: spec.Args, Dir: spec.Dir, Policy: spec.Policy}
			if got.Confine.Apply(there, ""); !reflect.DeepEqual(wire.ConfineOf(there),
				wire.ConfineOf(spec)) ||
				*got.Confine == (wire.Confine{}) {
				t.Errorf("%s: %+v", text, got.Confine)
			}
		})
	}
}

// TestPolicies: a policy reaches the server as it is, or not at all.
func TestPolicies(t *testing.T) {
	managed := func(net sandbox.Network, entries ...sandbox.Entry) sandbox.Policy {
		p, err := sandbox.New(sandbox.Managed, net, entries...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		tmp    string
		can    wire.Capabilities
		want   string // in the error; empty for none
	}{
		{"full", sandbox.FullAccess(), "", wire.Capabilities{}, ""},
		{"private tmp", sandbox.ReadOnly(), "", all, ""},
		{"no private tmp", sandbox.ReadOnly(), "", wire.Capabilities{}, "needs a private /tmp"},
		{"host tmp", sandbox.ReadOnly(), "host", wire.Capabilities{}, ""},
		{"proxy", managed(sandbox.NetworkProxy), "", all, "needs a managed network, but exec-server sessions do not support it; use a server that has the capability networkProxyLaunch"},
		{"relative", managed(sandbox.NetworkNone, sandbox.PathEntry("a", sandbox.LevelRead)), "", all, "sandbox policy custom is not supported by this executor: policy cannot be written"},
		{"unknown place", managed(sandbox.NetworkNone, sandbox.SpecialEntry("future", sandbox.LevelDeny)), "", all, "the wire changes it"},
		{"bytes in a glob", managed(sandbox.NetworkNone, sandbox.GlobEntry("/a/\xff*")), "", all, "is not supported by this executor"},
		{"bytes in a path", managed(sandbox.NetworkHost, sandbox.PathEntry("/a/\xff %?#", sandbox.LevelWrite)), "", all, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, err := request(&executor.Spec{Args: []string{"a"}, Dir: "/", Policy: test.policy,
				Tmp: test.tmp}, "p", test.can)
			var unsupported *sandbox.UnsupportedError
			if test.want != "" {
				if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, want %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			arrived(t, s, test.policy)
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"/", "/a", "/a/b", "/a/.git", "/tmp", "/w/é", "/w/a b"})
		var entries []sandbox.Entry
		for range rapid.IntRange(0, 6).Draw(t, "entries") {
			level := sandbox.Level(rapid.IntRange(0, 2).Draw(t, "level"))
			e := sandbox.PathEntry(names.Draw(t, "path"), level)
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				e = sandbox.GlobEntry(path.Join("/a", names.Draw(t, "glob")) + "/**/*.env")
			case 1:
				e = sandbox.SpecialEntry(rapid.SampledFrom([]string{sandbox.TokenMinimal,
					sandbox.TokenProjectRoots}).Draw(t, "token"), level)
			}
			e.SkipMissing = rapid.Bool().Draw(t, "skip")
			entries = append(entries, e)
		}
		policy, err := sandbox.New(sandbox.Managed,
			sandbox.Network(rapid.SampledFrom([]int{0, 2}).Draw(t, "network")), entries...)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "bound") {
			policy = policy.Bind(sandbox.Places{Dir: "/w", SlashTmp: "/tmp"})
		}
		s, err := request(&executor.Spec{Args: []string{"a"}, Dir: "/", Policy: policy}, "p", all)
		if err != nil {
			t.Fatalf("%v: %v", policy.Entries(), err)
		}
		arrived(t, s, policy)
	})
}

// arrived checks that a server reads the policy that was sent.
func arrived(t interface{ Fatalf(string, ...any) }, s *wire.Start, policy sandbox.Policy) {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := wire.Decode[wire.Start](text)
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Fatalf("%s: %+v, %v", text, got, err)
	}
	if policy.Mode() == sandbox.Full {
		if got.Sandbox != nil {
			t.Fatalf("%s", text)
		}
		return
	}
	back, err := profile.ParseProfile(got.Sandbox.Permissions)
	if err != nil || !back.Covers(policy) || !policy.Covers(back) || !samePolicy(back, policy) {
		t.Fatalf("%s: %v, %v, want %v", text, back.Entries(), err, policy.Entries())
	}
}

// TestSandboxOf: a server that says less than the policy demands is not believed.
func TestSandboxOf(t *testing.T) {
	external, err := sandbox.New(sandbox.External, sandbox.NetworkNone)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind   string
		policy sandbox.Policy
		level  string
		ok     bool
	}{
		{"none", sandbox.FullAccess(), "none", true},
		{"none", external, "none", true},
		{"none", sandbox.ReadOnly(), "none", false},
		{"", sandbox.ReadOnly(), "none", false},
		{"windowsRestrictedToken", sandbox.ReadOnly(), "none", false},
		{"linuxSeccomp", sandbox.ReadOnly(), "bwrap", true},
		{"macosSeatbelt", sandbox.ReadOnly(), "seatbelt", true},
	} {
		if s, ok := sandboxOf(test.kind, test.policy); s.Level != test.level || ok != test.ok {
			t.Errorf("%q, %s: %+v, %v", test.kind, test.policy, s, ok)
		}
	}
}

// TestStartErrors: the answers of servers become typed errors that keep code and data.
func TestStartErrors(t *testing.T) {
	spec := &executor.Spec{Args: []string{"prog"}, Dir: "/w"}
	for _, test := range []struct {
		code    int64
		message string
		check   func(error) bool
	}{
		{-32603, "No such file or directory (os error 2)", func(err error) bool {
			var start *executor.StartError
			return errors.As(err, &start) && start.NotFound && start.Program == "prog" &&
				errors.Is(err, fs.ErrNotExist)
		}},
		{-32603, "Permission denied (os error 13)", func(err error) bool {
			var start *executor.StartError
			return errors.As(err, &start) && !start.NotFound && errors.Is(err, fs.ErrPermission)
		}},
		{-32603, "No such file or directory (os error 2): the working directory /w does not exist", func(err error) bool {
			var dir *executor.DirError
			return errors.As(err, &dir) && dir.Dir == "/w" &&
				err.Error() == "the working directory /w does not exist"
		}},
		{-32603, "sandbox: needs user namespaces, but this kernel forbids them", func(err error) bool {
			var unsupported *sandbox.UnsupportedError
			return errors.As(err, &unsupported) && unsupported.Need == "user namespaces" &&
				strings.HasPrefix(err.Error(), "failed to spawn process: ")
		}},
		{-32602, "argv must not be empty", func(err error) bool {
			return err.Error() == "failed to spawn process: argv must not be empty (-32602)"
		}},
	} {
		err := startError(spec, &wire.Error{Code: test.code, Message: test.message,
			Data: json.RawMessage(`{"a":1}`)})
		var failure *Error
		var answer *wire.Error
		if !test.check(err) || !errors.As(err, &failure) || failure.Class != ClassSpawn ||
			failure.Code() != test.code || !errors.As(err, &answer) || answer.Data == nil {
			t.Errorf("%s: %v", test.message, err)
		}
	}
	for class, want := range map[Class]string{
		ClassWrite: "failed to write to process: x", ClassTerminate: "failed to terminate process: x",
		ClassTransport: "executor transport failure: failed to wait for process: x", ClassUnsupported: "x",
	} {
		if got := (&Error{Class: class, Err: errors.New("x")}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, word := range testenv.Hostile() {
		testenv.Printed(t, (&Error{Err: errors.New(word)}).Error(), 1)
		testenv.Printed(t, startError(spec, &wire.Error{Code: -32603,
			Message: textNotFound + word}).Error(), 1)
		testenv.Printed(t, startError(spec, &wire.Error{Code: -32603,
			Message: textSandbox + word}).Error(), 1)
	}
	if got := fmt.Sprint(&LostOutputError{Bytes: 5, Chunks: 1},
		&LostOutputError{Chunks: 2}); !strings.HasPrefix(got, "5 bytes of") ||
		!strings.Contains(got, "2 chunks of") {
		t.Error(got)
	}
}
