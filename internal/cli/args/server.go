// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/otel"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// Complete adds to the options of an exec-server, whose Environ and Managed are set, what every one of this
// user has: judged runs, their numbers, where output is kept, and the audit log, which it returns: it must be
// closed after the server. Telemetry is that of [Env].
func Complete(o *execserver.Options, telemetry *otel.Process) *Audit {
	o.Version = hostfacts.ReadBuild().Version
	log := ServerAudit(&Env{Environ: o.Environ, Dir: o.Dir, Managed: o.Managed})
	o.Prepare, o.Audit = Prepare(o.Managed, o.Environ, log, telemetry), log
	o.Hidden = append(o.Hidden, log.hidden()...)
	dir, err := dirs.Dir()
	if err == nil { // without it, less output can be replayed, and reads say so
		o.LogDir = filepath.Join(dir, "replay")
	}
	if !errors.Is(err, errors.ErrUnsupported) {
		o.RunNumber = func(after uint64) (uint64, error) { return dirs.Number("sessions", after) }
	}
	return log
}

// ClientFlags are the flags that say which clients a server lets in.
func ClientFlags(s *listen.Options) []syntax.Flag {
	return []syntax.Flag{
		{Long: "ws-auth", Value: "KIND", Words: []string{listen.AuthCapability, listen.AuthSigned}, Set: syntax.SetText(&s.Auth.Kind), Help: "clients need a token: capability-token or\nsigned-bearer-token (default: no token)"},
		{Long: "ws-token-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.Auth.TokenFile), Help: "holds the capability token"},
		{Long: "ws-token-sha256", Value: "HEX", Set: syntax.SetText(&s.Auth.TokenSHA256), Help: "the token's SHA-256 hash, instead of the file"},
		{Long: "ws-shared-secret-file", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.Auth.SecretFile), Help: "holds the secret that signs bearer tokens (HS256)"},
		{Long: "ws-issuer", Value: "TEXT", Set: syntax.SetText(&s.Auth.Issuer), Help: "issuer that bearer tokens must have"},
		{Long: "ws-audience", Value: "TEXT", Set: syntax.SetText(&s.Auth.Audience), Help: "audience that bearer tokens must have"},
		{Long: "ws-max-clock-skew-seconds", Value: "N", Set: func(v string) error {
			var n int
			err := Whole(&n, 0)(v)
			skew := time.Duration(n) * time.Second
			s.Auth.Skew = &skew
			return err
		}, Help: "tolerated difference of clocks (default 30)"},
		{Long: "tls-cert", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.TLS.Cert), Help: "serve wss:// with this certificate (PEM)"},
		{Long: "tls-key", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.TLS.Key), Help: "its private key"},
		{Long: "tls-client-ca", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&s.TLS.ClientCA), Help: "clients need a certificate signed by this authority"},
	}
}

// Whole returns the function that sets *to to a whole number of at least least.
func Whole(to *int, least int) func(string) error {
	return func(v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > 1_000_000 {
			return fmt.Errorf("invalid number %s; use a whole number of at least %d", syntax.QuoteFlag(v), least)
		}
		*to = n
		return nil
	}
}

// Duration returns the function that sets *to.
func Duration(to *time.Duration) func(string) error {
	return func(v string) error {
		d, err := config.ParseDuration(v)
		if err == nil && d <= 0 {
			err = errors.New("it must be more than zero")
		}
		*to = d
		return err
	}
}

// CredsVariable names a file with credentials for the hub of a fleet.
const CredsVariable = "SALLYPORT_NATS_CREDS"
