// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/client"
	"github.com/sallyport-dev/sallyport/execserver"
	"github.com/sallyport-dev/sallyport/executor/remote"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// fileHelper has this program serve files on its standard input and output.
const fileHelper = "serve-files"

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	if len(os.Args) == 2 && os.Args[1] == fileHelper {
		if err := execserver.ServeFiles(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	testenv.SkipExamples()
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// newServer returns a server whose state is the test's, and that is closed when the test ends.
func newServer(t *testing.T, o execserver.Options) *execserver.Server {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	s := execserver.New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A client of a server, on a connection of Serve, or with near in memory.
func connect(t *testing.T, s *execserver.Server, near bool) *wire.Client {
	t.Helper()
	var serving sync.WaitGroup
	dial := func(ctx context.Context) (wire.Stream, error) {
		if near {
			c, err := s.Dial(ctx)
			return wire.LinesOn(c), err
		}
		client, own := net.Pipe()
		serving.Go(func() { _ = s.Serve(t.Context(), own) })
		return wire.LinesOn(client), nil
	}
	c, err := wire.Connect(t.Context(), wire.ClientTarget{Dial: dial},
		wire.ClientOptions{Name: "test", Extensions: true, Resume: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); serving.Wait() })
	return c
}

// TestEnvironment: clients are told the directory of the options, and inherit their variables.
func TestEnvironment(t *testing.T) {
	t.Setenv("OF_PROCESS", "yes")
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, dir string
		options   execserver.Options
		out       string
	}{
		{"zero", wd, execserver.Options{}, "yes"},
		{"relative", filepath.Join(wd, "sub"), execserver.Options{Dir: "sub"}, "yes"},
		{"no variables", "/srv", execserver.Options{Dir: "/srv", Environ: []string{}}, ""},
		{"variables", "/srv", execserver.Options{Dir: "/srv", Environ: []string{"OF_PROCESS=other"}}, "other"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, newServer(t, test.options), false)
			if env := c.Server().Environment; env == nil || env.CWD != "file://"+test.dir ||
				env.Version == "" || !env.Capabilities.Runs {
				t.Errorf("%+v", env)
			}
			start := map[string]any{
				"processId": "p", "argv": []string{"/bin/sh", "-c", "printf %s \"$OF_PROCESS\""}, "cwd": "file:///", "env": map[string]string{}, "tty": false,
				"envPolicy": map[string]any{"inherit": "all", "ignoreDefaultExcludes": true, "exclude": []string{}, "set": map[string]string{}, "includeOnly": []string{}},
			}
			if err := c.Call(t.Context(), "process/start", start, nil); err != nil {
				t.Fatal(err)
			}
			var out []byte
			for after, over := uint64(0), false; !over; {
				var page struct {
					Chunks  []struct{ Chunk []byte }
					NextSeq uint64
					Closed  bool
				}
				if err := c.Call(t.Context(), "process/read",
					map[string]any{"processId": "p", "afterSeq": after, "waitMs": 10000}, &page); err != nil {
					t.Fatal(err)
				}
				for _, chunk := range page.Chunks {
					out = append(out, chunk.Chunk...)
				}
				after, over = page.NextSeq-1, page.Closed
			}
			if string(out) != test.out {
				t.Errorf("%q, want %q", out, test.out)
			}
		})
	}
}

// TestCeiling: the managed configuration of the options bounds clients.
func TestCeiling(t *testing.T) {
	testenv.NeedUserNS(t)
	etc := t.TempDir()
	if err := os.WriteFile(filepath.Join(etc, "managed.toml"), []byte("sandbox = \"read-only\"\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	e := remote.New(remote.Options{Dial: newServer(t, execserver.Options{Managed: etc}).Dial})
	defer e.Close()
	for _, test := range []struct {
		name   string
		policy sandbox.Policy
		runs   bool
	}{
		{"read-only", sandbox.ReadOnly(), true},
		{"workspace", sandbox.WorkspaceWrite("."), false},
		{"none", sandbox.FullAccess(), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &sallyport.Runner{Policy: test.policy, Executor: e}
			defer r.Close()
			res, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"true"},
				Dir: t.TempDir(), Tmp: "host"})
			if test.runs && (err != nil || res.ExitCode != 0) || !test.runs &&
				(err == nil || !strings.Contains(err.Error(), "more than the managed configuration allows")) {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
}

// TestApprover: the approver of the options answers about judged runs. Without it, and without a client that
// answers, there is no approval.
func TestApprover(t *testing.T) {
	for _, test := range []struct {
		name     string
		approver approval.Approver
		starts   bool
	}{
		{"none", nil, false},
		{"approves", approval.Fixed(approval.Decision{Answer: approval.Approved}), true},
		{"denies", approval.Fixed(approval.Decision{}), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			testenv.NeedUserNS(t)
			t.Setenv("XDG_CONFIG_HOME", t.TempDir())
			s := newServer(t, execserver.Options{Managed: t.TempDir(), Approver: test.approver})
			c, err := client.Dial(t.Context(), client.Options{Server: remote.Options{Dial: s.Dial}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			dir := t.TempDir()
			res, err := c.Run(t.Context(),
				&client.Cmd{Flags: []string{"-s", "full-access", "-a", "untrusted"},
					Args: []string{"touch", "ran"}, Dir: dir})
			if _, bad := os.Stat(filepath.Join(dir, "ran")); (err == nil) != test.starts ||
				(bad == nil) != test.starts || !test.starts && !errors.Is(err, sallyport.ErrRefused) {
				t.Errorf("%v, %v, %v", res, err, bad)
			}
		})
	}
}

// TestFiles: requests about files in a sandbox are performed by the program of the options in that sandbox,
// and refused without one.
func TestFiles(t *testing.T) {
	testenv.NeedUserNS(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ws := t.TempDir()
	if err := os.WriteFile(filepath.Join(ws, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	special := func(kind, access string) map[string]any {
		return map[string]any{"path": map[string]any{"type": "special",
			"value": map[string]any{"kind": kind}}, "access": access}
	}
	in := map[string]any{
		"permissions": map[string]any{"type": "managed", "network": "restricted", "file_system": map[string]any{
			"type": "restricted", "entries": []any{special("root", "read"), special("project_roots", "read")},
		}},
		"cwd": "file://" + ws, "workspaceRoots": []string{"file://" + ws}, "windowsSandboxLevel": "disabled",
	}
	for _, test := range []struct {
		name   string
		helper []string
		refuse string // empty for not
	}{
		{"without", nil, "file operations in a sandbox are not available"},
		{"with", []string{program, fileHelper}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := connect(t, newServer(t, execserver.Options{Managed: t.TempDir(),
				FileHelper: test.helper}), false)
			var read struct{ DataBase64 []byte }
			err := c.Call(t.Context(), "fs/readFile", map[string]any{"path": "file://" + ws + "/file",
				"sandbox": in}, &read)
			if test.refuse != "" && (err == nil || !strings.Contains(err.Error(), test.refuse)) ||
				test.refuse == "" && (err != nil || string(read.DataBase64) != "text") {
				t.Errorf("%q, %v", read.DataBase64, err)
			}
			err = c.Call(t.Context(), "fs/writeFile", map[string]any{"path": "file://" + ws + "/file",
				"dataBase64": []byte("x"), "sandbox": in}, nil)
			if text, bad := os.ReadFile(filepath.Join(ws, "file")); err == nil || bad != nil ||
				string(text) != "text" {
				t.Errorf("%v; it has %q, %v", err, text, bad)
			}
		})
	}
}

// TestClientsApart: clients of Dial and of Serve neither resume sessions of each other nor see their
// runs. The wall is the credential.
func TestClientsApart(t *testing.T) {
	s := newServer(t, execserver.Options{Managed: t.TempDir()})
	for _, near := range []bool{false, true} {
		owner, other := connect(t, s, near), connect(t, s, !near)
		var started struct {
			RunID string `json:"runId"`
		}
		if err := owner.Call(t.Context(), "run/start",
			map[string]any{"args": []string{"-s", "full-access", "--", "cat"}, "openStdin": true},
			&started); err != nil {
			t.Fatal(err)
		}
		has := func(c *wire.Client) bool {
			var list struct{ Runs []json.RawMessage }
			if err := c.Call(t.Context(), "run/list", struct{}{}, &list); err != nil {
				t.Fatal(err)
			}
			return len(list.Runs) > 0
		}
		if !has(owner) || has(other) {
			t.Errorf("near %v: its owner sees the run: %v, others: %v", near, has(owner), has(other))
		}
		if err := owner.Call(t.Context(), "run/remove", started, nil); err != nil {
			t.Error(err)
		}
		client, own := net.Pipe()
		var serving sync.WaitGroup
		if near {
			serving.Go(func() { _ = s.Serve(t.Context(), own) })
		} else {
			c, err := s.Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			client, _ = c.(net.Conn)
		}
		stream := wire.LinesOn(client)
		if err := stream.Write([]byte(`{"id":1,"method":"initialize","params":{"clientName":"x","takeOver":true,"resumeSessionId":"` + owner.Server().SessionID + `"}}`)); err != nil {
			t.Fatal(err)
		}
		if answer, err := stream.Read(); err != nil ||
			!strings.Contains(string(answer), "unknown session id") {
			t.Errorf("near %v: %s, %v", near, answer, err)
		}
		_ = stream.Close()
		serving.Wait()
	}
}

// TestLogger: the logger of a program with this package is its own.
func TestLogger(t *testing.T) {
	if log.Writer() != os.Stderr {
		t.Errorf("it writes to %v", log.Writer())
	}
}

// long is more than a test needs, and less than the time for which a client tries to resume.
const long = 30 * time.Second

// TestClose: the end of a server ends its commands and connections at once; nothing is served afterwards.
func TestClose(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*execserver.Server) error
		told bool // clients know how the command ended
	}{
		{"Close", (*execserver.Server).Close, false},
		{"Shutdown", func(s *execserver.Server) error { return s.Shutdown(context.Background()) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, execserver.Options{Managed: t.TempDir()})
			e := remote.New(remote.Options{Dial: s.Dial})
			defer e.Close()
			r := &sallyport.Runner{Policy: sandbox.FullAccess(), Executor: e}
			defer r.Close()
			client, own := net.Pipe()
			defer client.Close()
			served := make(chan error, 1)
			go func() { served <- s.Serve(t.Context(), own) }()
			session, err := r.Start(t.Context(), &sallyport.Cmd{Args: []string{"sleep", "600"}, Dir: "/"})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if err := test.end(s); err != nil {
				t.Error(err)
			}
			if err := <-served; !errors.Is(err, execserver.ErrClosed) {
				t.Errorf("Serve: %v", err)
			}
			res, err := session.Wait(t.Context())
			if late := time.Since(begin); late > long {
				t.Errorf("it took %v", late)
			}
			if test.told && (err != nil || res.ExitCode == 0) || !test.told &&
				!errors.Is(err, sallyport.ErrEndUnknown) && (res == nil || res.ExitCode == 0) {
				t.Errorf("%+v, %v", res, err)
			}
			if c, err := s.Dial(t.Context()); !errors.Is(err, execserver.ErrClosed) || c != nil {
				t.Errorf("Dial: %v", err)
			}
			client, own = net.Pipe()
			if err := s.Serve(t.Context(), own); !errors.Is(err, execserver.ErrClosed) {
				t.Errorf("Serve afterwards: %v", err)
			}
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("the connection is not closed: %v", err)
			}
			if _, err := r.Run(t.Context(), &sallyport.Cmd{Args: []string{"true"}, Dir: "/"}); !errors.Is(err,
				execserver.ErrClosed) {
				t.Errorf("Run afterwards: %v", err)
			}
		})
	}
}

// A conn is a connection whose methods tests write; nil is that of net.Conn.
type conn struct {
	net.Conn
	read func(p []byte) (int, error)
}

func (c conn) Read(p []byte) (int, error) {
	if c.read != nil {
		return c.read(p)
	}
	return c.Conn.Read(p)
}

// TestServeEnds: Serve says why a connection has ended, and closes it.
func TestServeEnds(t *testing.T) {
	cause := errors.New("the cause")
	for _, test := range []struct {
		name string
		ctx  func(context.Context) context.Context
		read func([]byte) (int, error)
		end  bool // the client ends the connection
		want string
	}{
		{name: "by the client", end: true},
		{name: "by the context", ctx: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancelCause(ctx)
			cancel(cause)
			return ctx
		}, want: "the cause"},
		{name: "without a context", ctx: func(context.Context) context.Context { return nil }, want: "the context is nil"},
		{name: "by an error", read: func([]byte) (int, error) { return 0, cause }, want: "the cause"},
		{name: "by a panic", read: func([]byte) (int, error) { panic(cause) }, want: "the connection panicked"},
		{name: "by a wrong number", read: func(p []byte) (int, error) { return len(p) + 1, nil }, want: "impossible number of bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, execserver.Options{Managed: t.TempDir()})
			client, own := net.Pipe()
			defer client.Close()
			if test.end {
				_ = client.Close()
			}
			ctx := t.Context()
			if test.ctx != nil {
				ctx = test.ctx(ctx)
			}
			err := s.Serve(ctx, conn{own, test.read})
			if test.want == "" && err != nil || test.want != "" &&
				(err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if _, err := own.Write([]byte{0}); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("it is open: %v", err)
			}
		})
	}
}
