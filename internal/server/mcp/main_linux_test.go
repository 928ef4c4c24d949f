// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

func TestMain(m *testing.M) {
	testenv.DefaultSignals()
	testenv.MostlyWait()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testenv.HungMounts))
}

// A facts is the structured content of an answer.
type facts struct {
	State, Run, Output, Cursor, Reason, End, CWD, Title, Summary, Decision string
	SessionID                                                              string `json:"session_id"`
	ExitCode                                                               *int   `json:"exit_code"`
	Truncated, Delivered, Alternate, Applied                               bool
	Omitted                                                                int `json:"omitted_bytes"`
	Tokens                                                                 int `json:"original_token_count"`
	Start                                                                  int `json:"start_line"`
	Last                                                                   int `json:"end_line"`
	LinesTotal                                                             int `json:"lines_total"`
	Total                                                                  int `json:"matches_total"`
	New                                                                    []executor.New
	Matches                                                                []struct {
		Line int
		Text string
	}
	Rows, Cols int
	Lines      []string
	Position   struct {
		Row, Col int
		Visible  bool
	}
	Denials  []struct{ Op, Path, Grant string }
	Approval struct {
		ID, Kind, Reason, Expires string
		Requires, Offers          []string
	}
	Approvals []struct{ ID, Decision, Source string }
	Sessions  []struct {
		ID    string `json:"session_id"`
		Cmd   string
		State string
		TTY   bool
		Code  *int `json:"exit_code"`
	}
	Files []struct{ Path, Action string }

	Stage          struct{ ID, Name string }
	ChangesTotal   int `json:"changes_total"`
	ChangesOmitted int `json:"changes_omitted"`
	Changes        []change
	Diff           string

	text   string // of the content
	size   int    // of the structured content in JSON
	failed bool
	links  []string
}

// A change is one of a stage.
type change struct{ Path, Kind string }

// A client calls the tools of a server in memory.
type client struct {
	t testing.TB
	*sdk.ClientSession
	server *mcp.Server
	dir    string
}

// options are those of a server for a workspace, without the configuration of this machine.
func options(t testing.TB, dir string, flags ...string) mcp.Options {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_STATE_HOME", home+"/state")
	environ := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + home + "/state"}
	return mcp.Options{Prepare: args.Prepare("", nil, nil, nil), Args: flags, Dir: dir, Root: dir, Environ: environ,
		Check: func(ctx context.Context, r *runs.Request) (any, error) {
			return args.ExplainRequest(ctx, "", nil, r)
		}}
}

// open connects a client with some options to a new server for a directory of its own.
func open(t testing.TB, opts *sdk.ClientOptions, flags ...string) *client {
	t.Helper()
	return openAt(t, "", opts, flags...)
}

// openAt is open for a revision of the protocol; empty is the newest one.
func openAt(t testing.TB, revision string, opts *sdk.ClientOptions, flags ...string) *client {
	t.Helper()
	testenv.NeedUserNS(t)
	dir := t.TempDir()
	if len(flags) > 0 && flags[0] == "call" {
		o := options(t, dir, flags[1:]...)
		o.ByCall = true
		return connect(t, mcp.New(o), dir, revision, opts)
	}
	return connect(t, mcp.New(options(t, dir, flags...)), dir, revision, opts)
}

// outside returns a directory that the sandbox shows and does not open.
func outside(t testing.TB) string {
	t.Helper()
	// A name that looks like one of a single run is not granted.
	dir := "/var/tmp/mcp-" + strings.ToLower(t.Name()) + map[bool]string{true: "-root"}[os.Getuid() == 0]
	_ = os.RemoveAll(dir) // of a test that was killed
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// connect connects a client to a server, which is closed at the end of the test.
func connect(t testing.TB, server *mcp.Server, dir, revision string, opts *sdk.ClientOptions) *client {
	t.Helper()
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.ServeLines(ctx, far, far) }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts).Connect(ctx,
		&sdk.IOTransport{Reader: near, Writer: near},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close() // the server sees the end
		<-served            //nolint:errcheck // what matters was answered
		server.Close()
		cancel()
	})
	return &client{t, session, server, dir}
}

// members are arguments.
type members = map[string]any

// call calls a tool.
func (c *client) call(tool string, arguments members) *facts {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		c.t.Fatalf("%s: %v", tool, err)
	}
	return factsOf(c.t, res)
}

// factsOf reads an answer.
func factsOf(t testing.TB, res *sdk.CallToolResult) *facts {
	t.Helper()
	f := &facts{failed: res.IsError}
	for _, content := range res.Content {
		switch content := content.(type) {
		case *sdk.TextContent:
			f.text += content.Text
		case *sdk.ResourceLink:
			f.links = append(f.links, content.URI)
		}
	}
	if res.StructuredContent == nil {
		return f
	}
	data, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, f); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	f.size = len(data)
	return f
}

// ok fails the test unless a call was answered.
func (f *facts) ok(t testing.TB) *facts {
	t.Helper()
	if f.failed {
		t.Fatalf("the call failed: %s", f.text)
	}
	return f
}

// exits fails the test unless the run has ended with a code.
func (f *facts) exits(t testing.TB, code int) *facts {
	t.Helper()
	f.ok(t)
	if f.State != "ended" || f.ExitCode == nil || *f.ExitCode != code {
		t.Fatalf("state %s, exit code %v, want %d: %s", f.State, f.ExitCode, code, f.text)
	}
	return f
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

func contains(t testing.TB, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
