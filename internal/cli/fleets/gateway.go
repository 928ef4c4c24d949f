// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/fleet/gateway"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const gatewayHelp = `Serve the nodes of a fleet as one exec-server.

  sallyport fleet gateway --nats nats://HOST:4222 --listen ws://127.0.0.1:7777
  sallyport fleet gateway --nats URL --creds FILE --listen wss://IP:PORT
    --tls-cert FILE --tls-key FILE --ws-auth capability-token
    --ws-token-file FILE

The first line of standard output is its URL. ?label=KEY=VALUE in the URL of a
client chooses nodes. A gateway keeps nothing: a client that was cut goes on at
another one. A port that other machines can reach needs --ws-auth or
--tls-client-ca. SIGINT and SIGTERM end it; commands go on.
`

// gatewayOptions are the flags of gateway.
type gatewayOptions struct {
	client  clientOptions
	serve   listen.Options
	clients int
}

func gatewayFlags(o *Options) []syntax.Flag {
	g := &o.gateway
	g.serve.Listen = "ws://127.0.0.1:0"
	flags := append(g.client.flags("never"),
		syntax.Flag{Long: "listen", Value: "URL", Set: syntax.SetText(&g.serve.Listen),
			Help: "ws://IP:PORT or wss://IP:PORT (port 0 is a free one),\nor unix:///PATH (default ws://127.0.0.1:0)"},
		syntax.Flag{Long: "max-clients", Value: "N", Set: args.Whole(&g.clients, 1),
			Help: "serve up to N clients at once (default 16384)"})
	flags = append(flags, args.ClientFlags(&g.serve)...)
	return append(flags, syntax.Flag{Long: "insecure", Set: syntax.SetOn(&g.serve.Insecure),
		Help: "allow a port that other machines reach without a\ntoken"})
}

// manyClients is how many clients a gateway serves if no flag says it.
const manyClients = 16384

func runGateway(ctx context.Context, env *Env, o *Options, _ []string) error {
	g := &o.gateway
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	conn, err := g.client.connect(ctx, env, "sallyport gateway", 0)
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	defer collectLess()()
	served, err := gateway.New(ctx, conn, gateway.Options{})
	if err != nil {
		return explain.NewError("%v", err)
	}
	defer served.Shutdown(context.WithoutCancel(ctx)) //nolint:errcheck // it has no error
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		select {
		case <-conn.Over():
			end()
		case <-ctx.Done():
		}
	}()
	s := g.serve
	s.Gateway, s.Stdin, s.Stdout, s.MaxClients = served, env.Stdin, env.Stdout, g.clients
	if s.MaxClients == 0 {
		s.MaxClients = manyClients
	}
	if err := listen.Run(ctx, s); err != nil {
		return explain.NewError("%v", err)
	}
	select {
	case <-conn.Over():
		return explain.NewError("%v", conn.Err())
	default:
		return nil
	}
}
