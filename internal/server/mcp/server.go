// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"io"
	"os/exec"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
)

// Options say how a Server serves.
type Options struct {
	// Version is told to clients; it may be empty.
	Version string
	// Prepare and Number are those of the table of runs; Prepare must not be nil.
	Prepare runs.Prepare
	Number  runs.Number
	// Args are flags of run that all commands get, Dir is the absolute directory that relative names in them
	// begin in, and Root the workspace that they name, absolute.
	Args      []string
	Dir, Root string
	// Environ holds the variables that commands may inherit, as "NAME=value". It is not nil.
	Environ []string
	// Stage is the name of the stage that all commands have; empty for none. Without one there is no tool
	// changes.
	Stage string
	// Check explains a command that would run for a Request, as an object in JSON. It must not be nil.
	Check func(ctx context.Context, r *runs.Request) (any, error)
	// ByCall has all clients repeat a call after an approval, also those that can be asked within one.
	ByCall bool
	// Hidden are absolute paths that no command in a sandbox reads. One that asks to leave it has them: under
	// a policy that denies paths nothing may leave.
	Hidden []string
}

// owner is the owner of all runs: who reaches the server reaches all of them.
const owner = "mcp"

// A Server serves the runs of one process to clients. Make one with New.
type Server struct {
	opts  Options
	runs  *runs.Table
	mcp   *sdk.Server
	life  context.Context //nolint:containedctx // of what outlives a call
	end   context.CancelFunc
	work  sync.WaitGroup // what outlives a call
	shell func() string

	mu     sync.Mutex
	starts process.Recent[*start] // by the IDs of questions
}

// New returns a Server. The caller must call Close.
func New(opts Options) *Server {
	s := &Server{opts: opts, starts: process.Recent[*start]{Most: maxStarts}, shell: sync.OnceValue(shell)}
	s.life, s.end = context.WithCancel(context.Background())
	s.runs = runs.New(opts.Prepare, opts.Number, nil, nil, func(int) {})
	s.mcp = sdk.NewServer(&sdk.Implementation{Name: "sallyport", Version: opts.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}}})
	for _, t := range tools() {
		if t.Name == "changes" && opts.Stage == "" {
			continue
		}
		s.mcp.AddTool(&t.Tool, s.handler(t))
	}
	s.addResources()
	return s
}

// shell returns the shell of scripts.
func shell() string {
	if _, err := exec.LookPath("bash"); err == nil {
		return "bash"
	}
	return "sh"
}

// Close ends all runs, and waits until nothing of them is left. It may be called more than once.
func (s *Server) Close() {
	s.end()
	s.runs.Close()
	s.work.Wait()
}

// ServeLines speaks with one client, in messages of a line, until the client sends no more or ctx ends.
// Then it ends all runs, and answers what was asked before. A line that is no message is answered with an
// error. It closes in.
func (s *Server) ServeLines(ctx context.Context, in io.ReadCloser, out io.Writer) error {
	defer s.Close()
	c := newConnection(in, out, s.stop)
	err := s.mcp.Run(ctx, c)
	if ctx.Err() != nil || c.over.Load() {
		return nil // that is how it ends
	}
	return err
}

// maxMessage is how many bytes a message has at most.
const maxMessage = 8 << 20

// stop ends all runs; no further ones start.
func (s *Server) stop() {
	s.end()
	s.runs.Stop()
}
