// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"net"
	"os"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const execServerHelp = `Run processes for clients that speak the exec-server protocol.

  sallyport exec-server [--listen ws://127.0.0.1:PORT] [flags]
  sallyport exec-server --listen unix:///PATH
  sallyport exec-server --listen fd://            (systemd socket activation)
  sallyport exec-server --listen stdio

The client decides what runs, and in which sandbox. Once clients can connect,
the URL is printed as the first line of standard output. A port that other
machines can reach needs --ws-auth or --tls-client-ca. SIGTERM and SIGINT end
the server and all of its processes.
`

func execServerFlags(o *options) []syntax.Flag {
	s := &o.serve
	s.Listen = "ws://127.0.0.1:0"
	return slices.Concat([]syntax.Flag{
		{Long: "listen", Value: "URL", Set: syntax.SetText(&s.Listen), Help: "ws://IP:PORT or wss://IP:PORT (port 0 is a free\none), unix:///PATH, fd:// (systemd) or stdio\n(default ws://127.0.0.1:0)"},
		{Long: "concurrent-requests", Value: "N", Set: args.Whole(&s.Server.Starts, 1), Help: "start up to N processes of a connection at once\n(default 1)"},
		{Long: "detached", Value: "DUR", Set: args.Duration(&s.Server.Detached), Help: "how long a session without a connection can be\nresumed (default 15m)"},
		{Long: "idle", Value: "DUR", Set: args.Duration(&s.Idle), Help: "exit after DUR without clients and processes\n(default: never)"},
	}, args.ClientFlags(s), []syntax.Flag{
		{Long: "isolate", Set: syntax.SetOn(&s.Server.Isolate), Help: "give each process of a session its own sandbox, with\nits own loopback and /tmp"},
		{Long: "require-sandbox", Set: syntax.SetOn(&s.Server.RequireSandbox),
			Help: "run nothing without a sandbox, and do nothing with\nfiles outside of one"},
		{Long: "allow-http", Set: syntax.SetOn(&s.Server.AllowHTTP), Help: "let clients make HTTP requests from this machine"},
		{Long: "allow-http-env", Value: "NAME", Set: syntax.SetList(&s.Server.HTTPEnv), Help: "let clients use the value of variable NAME in request\nheaders; * for all (repeatable)"},
		{Long: "insecure", Set: syntax.SetOn(&s.Insecure), Help: "allow a port that other machines reach without a\ntoken"},
		metricsFlag(&o.metrics),
	})
}

func execServerCommand(ctx context.Context, env *Env, o *options, _ []string) error {
	s := o.serve
	s.Stdin, s.Stdout = env.Stdin, env.Stdout
	s.Server.Environ, s.Server.Dir, s.Server.Managed = env.Environ, env.Dir, env.Managed
	log := args.Complete(&s.Server, env.Telemetry)
	defer log.Close()                                //nolint:errcheck // each process that was not kept said so
	if program, err := os.Executable(); err == nil { // without it, files in a sandbox are refused
		s.Server.FileHelper = []string{program, fileHelperName}
	}
	stop, err := env.serveMetrics(ctx, o.metrics)
	if err != nil {
		return err
	}
	defer stop()
	if err := listen.Run(ctx, s); err != nil {
		return explain.NewError("%v", err)
	}
	return nil
}

// metricsFlag is the flag of servers that show metrics.
func metricsFlag(address *string) syntax.Flag {
	return syntax.Flag{Long: "metrics", Value: "HOST:PORT", Set: syntax.SetText(address),
		Help: "show metrics for Prometheus there, to all who reach\nit; port 0 is a free one"}
}

// serveMetrics shows metrics at an address until stop is called or ctx ends; empty shows none.
func (e *Env) serveMetrics(ctx context.Context, address string) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return nil, explain.NewError("invalid address %s; use HOST:PORT, such as 127.0.0.1:9464",
			syntax.QuoteFlag(address))
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, explain.NewError("cannot show metrics: %v", err)
	}
	e.say("metrics at http://" + l.Addr().String() + "/metrics")
	ctx, cancel := context.WithCancel(ctx)
	e.Telemetry.Served()
	over := make(chan struct{})
	go func() {
		defer close(over)
		if err := e.Telemetry.Serve(ctx, l); err != nil {
			e.say("metrics are not shown any more: " + explain.OneLine(err))
		}
	}()
	return func() {
		cancel()
		<-over
	}, nil
}

// fileHelperName is the command that exec-server runs in a sandbox, for what clients want done
// with files there. It is not for people.
const fileHelperName = "__files"

func fileHelperCommand(_ context.Context, env *Env, _ *options, _ []string) error {
	if err := execserver.ServeFiles(env.Stdin, env.Stdout); err != nil {
		return explain.NewError("%v", err)
	}
	return nil
}
