// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const execServerHelp = `Run processes for a client, by the exec-server protocol.

  sallyport exec-server [--listen ws://127.0.0.1:PORT] [flags]
  sallyport exec-server --listen unix:///PATH
  sallyport exec-server --listen fd://            (a socket of systemd)
  sallyport exec-server --listen stdio

The client decides what runs, and in which sandbox. The first line of standard
output is the URL, once clients can connect. A port that other machines reach
needs --ws-auth or --tls-client-ca. SIGTERM and SIGINT end the server with all
of its processes.
`

func execServerFlags(o *options) []syntax.Flag {
	s := &o.serve
	s.Listen = "ws://127.0.0.1:0"
	return []syntax.Flag{
		{Long: "listen", Value: "URL", Set: syntax.SetText(&s.Listen), Help: "ws://IP:PORT or wss://IP:PORT (port 0 is a free\none), unix:///PATH, fd:// (systemd) or stdio\n(default ws://127.0.0.1:0)"},
		{Long: "concurrent-requests", Value: "N", Set: whole(&s.Server.Starts, 1), Help: "start up to N processes of a connection at once\n(default 1)"},
		{Long: "detached", Value: "DUR", Set: duration(&s.Server.Detached), Help: "how long a session without a connection can be\nresumed (default 15m)"},
		{Long: "idle", Value: "DUR", Set: duration(&s.Idle), Help: "end after that long without a client and a process\n(default: never)"},
		{Long: "ws-auth", Value: "KIND", Words: []string{listen.AuthCapability, listen.AuthSigned}, Set: syntax.SetText(&s.Auth.Kind), Help: "clients need a token: capability-token or\nsigned-bearer-token (default: no token)"},
		{Long: "ws-token-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.Auth.TokenFile), Help: "holds the capability token"},
		{Long: "ws-token-sha256", Value: "HEX", Set: syntax.SetText(&s.Auth.TokenSHA256), Help: "its hash, in place of it"},
		{Long: "ws-shared-secret-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.Auth.SecretFile), Help: "holds the secret that signs bearer tokens (HS256)"},
		{Long: "ws-issuer", Value: "TEXT", Set: syntax.SetText(&s.Auth.Issuer), Help: "the issuer that bearer tokens must name"},
		{Long: "ws-audience", Value: "TEXT", Set: syntax.SetText(&s.Auth.Audience), Help: "the audience that they must name"},
		{Long: "ws-max-clock-skew-seconds", Value: "N", Set: func(v string) error {
			var n int
			err := whole(&n, 0)(v)
			skew := time.Duration(n) * time.Second
			s.Auth.Skew = &skew
			return err
		}, Help: "how far clocks may differ (default 30)"},
		{Long: "tls-cert", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.TLS.Cert), Help: "serve wss:// with this certificate (PEM)"},
		{Long: "tls-key", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.TLS.Key), Help: "its private key"},
		{Long: "tls-client-ca", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.TLS.ClientCA), Help: "clients need a certificate that this one signed"},
		{Long: "isolate", Set: syntax.SetOn(&s.Server.Isolate), Help: "each process of a session gets a sandbox of its own,\nwith its own loopback and /tmp"},
		{Long: "allow-http", Set: syntax.SetOn(&s.Server.AllowHTTP), Help: "clients may make HTTP requests from this machine"},
		{Long: "allow-http-env", Value: "NAME", Set: syntax.SetList(&s.Server.HTTPEnv), Help: "clients may put the value of the variable into\nheaders of them; * for all (repeatable)"},
		{Long: "insecure", Set: syntax.SetOn(&s.Insecure), Help: "listen without a token where other machines reach it"},
	}
}

// whole returns the function that sets *to to a whole number of at least least.
func whole(to *int, least int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > 1_000_000 {
			return fmt.Errorf("invalid number %s; use a whole number of at least %d", syntax.QuoteFlag(v), least)
		}
		*to = n
		return nil
	}
}

// duration returns the function that sets *to.
func duration(to *time.Duration) func(string) error {
	return func(v string) error {
		d, err := config.ParseDuration(v)
		if err == nil && d <= 0 {
			err = errors.New("it must be more than zero")
		}
		*to = d
		return err
	}
}

func execServerCommand(ctx context.Context, env *Env, o *options, _ []string) error {
	s := o.serve
	s.Stdin, s.Stdout = env.Stdin, env.Stdout
	s.Server.Environ, s.Server.Dir, s.Server.Managed = env.Environ, env.Dir, env.Managed
	args.Complete(&s.Server)
	if program, err := os.Executable(); err == nil { // without it, files in a sandbox are refused
		s.Server.FileHelper = []string{program, fileHelperName}
	}
	if err := listen.Run(ctx, s); err != nil {
		return explain.NewError("%v", err)
	}
	return nil
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
