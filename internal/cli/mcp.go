// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/server/mcp"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const mcpHelp = `Serve sandboxed commands to an agent by the Model Context Protocol.

  sallyport mcp [FLAGS of run]                 (standard input and output)
  sallyport mcp --http 127.0.0.1:0 [FLAGS of run]
  sallyport mcp install|uninstall AGENT        (sallyport mcp install --help)

The flags of run apply to every command; -C DIR is the workspace. Without -a,
the agent can ask for approvals: the client asks its user, or the agent has
the user run sallyport approve. With --http, the URL is the first line of
standard output, and clients need the token in the token file.
`

// The words of --approvals.
const (
	approvalsAuto = "auto"
	approvalsCall = "call"
)

func mcpFlags(o *options) []syntax.Flag {
	m := &o.mcp
	flags := []syntax.Flag{
		{Long: "http", Value: "HOST:PORT", Set: syntax.SetText(&m.http),
			Help: "serve HTTP there; port 0 is a free one"},
		{Long: "token-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&m.tokenFile),
			Help: "holds the token of --http, and is created if missing\n" +
				"(default $XDG_RUNTIME_DIR/sallyport/mcp-token)"},
		{Long: "insecure", Set: syntax.SetOn(&m.insecure),
			Help: "allow an address that other machines reach"},
		metricsFlag(&o.metrics),
		{Long: "approvals", Value: "HOW", Words: []string{approvalsAuto, approvalsCall},
			Set: syntax.SetText(&m.approvals),
			Help: "auto: ask by the client where it can; call: always\n" +
				"have the agent repeat the call (default auto)"},
		{Long: "help", Short: 'h', Set: syntax.SetOn(&o.help), Hidden: true},
	}
	own := flags
	for _, f := range o.run.Flags() {
		if syntax.FindLong(own, f.Long) == nil && f.Long != "command" {
			f.Hidden = true
			flags = append(flags, f)
		}
	}
	return flags
}

// fewCollections is how much garbage there may be, in percent of what is used. That is a few MiB, so at the
// usual 100 each third call waits for the collector, which has a part in twelve of the processor time.
const fewCollections = 400

// mcpOptions are the flags of mcp itself.
type mcpOptions struct {
	http, tokenFile, approvals string
	insecure                   bool
}

func mcpCommand(ctx context.Context, env *Env, o *options, _ []string) error {
	m := &o.mcp
	server, log, err := env.mcpServer(o)
	defer log.Close() //nolint:errcheck // each command that was not kept said so
	switch {
	case err != nil:
		return err
	case m.http == "" && (m.tokenFile != "" || m.insecure):
		return explain.NewError("--token-file and --insecure need --http HOST:PORT")
	case m.approvals != "" && m.approvals != approvalsAuto && m.approvals != approvalsCall:
		return explain.NewError("unknown word %s of --approvals; use auto or call",
			syntax.QuoteFlag(m.approvals))
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(fewCollections)
	}
	end, err := env.serveMetrics(ctx, o.metrics)
	if err != nil {
		return err
	}
	defer end()
	if m.http == "" {
		if err := mcp.New(server).ServeLines(ctx, env.Stdin, env.Stdout); err != nil {
			return explain.NewError("%v", err)
		}
		return nil
	}
	l, err := mcp.Listen(m.http, m.insecure)
	if err != nil {
		return explain.NewError("%v", err)
	}
	file, err := env.tokenFile(m.tokenFile)
	if err != nil {
		_ = l.Close() // nothing was served
		return err
	}
	token, err := mcp.Token(file)
	if err != nil {
		_ = l.Close() // nothing was served
		return explain.NewError("%v", err)
	}
	server.Hidden = []string{hostfacts.RealPath(file)}
	err = mcp.New(server).ServeHTTP(ctx, l, token, func(url string) error { return env.print(url + "\n") })
	if err != nil {
		return explain.NewError("%v", err)
	}
	return nil
}

// tokenFile returns the absolute path of the file with the token.
func (e *Env) tokenFile(name string) (string, error) {
	if name != "" {
		return args.Absolute(name, e.Dir, e.Variable("HOME")), nil
	}
	dir := e.Variable("XDG_RUNTIME_DIR")
	if dir == "" {
		return "", explain.NewError("XDG_RUNTIME_DIR is not set; use --token-file FILE")
	}
	dir = filepath.Join(dir, "sallyport")
	root, err := safefile.MakeDirs(dir)
	if err != nil {
		return "", explain.NewError("cannot make the directory of the token: %v", explain.SystemCause(err))
	}
	root.Close()
	return filepath.Join(dir, "mcp-token"), nil
}

// mcpServer returns the options of the server. What is wrong with the flags of run is said before it starts.
func (e *Env) mcpServer(o *options) (mcp.Options, *args.Audit, error) {
	none := mcp.Options{}
	root, err := o.run.Directory(&e.Env)
	if err != nil {
		return none, nil, err
	}
	words := o.run.Words(nil)
	made := mcp.Options{
		Version: hostfacts.ReadBuild().Version,
		Args:    words[:len(words)-1], Dir: e.Dir, Root: root, Environ: append([]string{}, e.Environ...),
		ByCall: o.mcp.approvals == approvalsCall,
		Check: func(ctx context.Context, r *runs.Request) (any, error) {
			return args.ExplainRequest(ctx, e.Managed, e.Environ, r)
		},
	}
	if _, err := dirs.Dir(); !errors.Is(err, errors.ErrUnsupported) {
		made.Number = func(after uint64) (uint64, error) { return dirs.Number("sessions", after) }
	}
	var trial args.Options
	defer trial.Close()
	if _, err := syntax.ParseFlags(trial.Flags(), made.Args); err != nil {
		return none, nil, err
	}
	if len(o.run.Local) > 0 {
		f := o.run.Local[0]
		return none, nil, explain.NewError("--%s is not supported by mcp", f.Long)
	}
	_, err = trial.Configure(&e.Env, root)
	log := args.NewAudit(trial.Audit, o.mcp.http != "")
	made.Prepare = args.Prepare(e.Managed, e.Environ, log, e.Telemetry)
	if stage := trial.Cmd.Stage; err == nil && stage != nil {
		// One for the whole conversation: commands without a name would each make another one.
		made.Stage = cmp.Or(stage.Name, "mcp-"+strings.ToLower(rand.Text()[:8]))
	}
	return made, log, err
}
