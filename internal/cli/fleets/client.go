// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"cmp"
	"context"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// Variables that say which hub it is, where flags do not.
const (
	hubVariable   = "SALLYPORT_NATS"
	credsVariable = args.CredsVariable
)

// hubTime is how long the verbs that end by themselves wait for a hub.
const hubTime = 10 * time.Second

// clientOptions are the flags of verbs that connect to a hub.
type clientOptions struct {
	url, creds, ca string
	timeout        time.Duration // zero: not given
}

// clientFlags are those flags; wait says how long a verb waits for a hub if nothing is given.
func (c *clientOptions) flags(wait string) []syntax.Flag {
	return []syntax.Flag{
		{Long: "nats", Value: "URL", Set: syntax.SetText(&c.url),
			Help: "the hub: nats://HOST[:PORT] (default $" + hubVariable + ")"},
		{Long: "creds", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&c.creds),
			Help: "credentials of add-tenant or add-node (default\n$" + credsVariable + ")"},
		{Long: "tls-ca", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&c.ca),
			Help: "trust the certificate authorities in FILE instead of\nthe system's; the hub must use TLS"},
		{Long: "connect-timeout", Value: "DUR", Set: args.Duration(&c.timeout),
			Help: "fail if there is no hub for DUR (default " + wait + ")"},
	}
}

// credentials returns the file with the credentials, as an absolute path, and what it says of itself.
func (c *clientOptions) credentials(env *Env) (path string, of hub.User, err error) {
	if path = cmp.Or(c.creds, env.Variable(credsVariable)); path != "" {
		path = args.Absolute(path, env.Dir, env.Variable("HOME"))
	}
	if of, err = hub.ReadCreds(path); err != nil {
		return "", of, explain.NewError("%v", err)
	}
	return path, of, nil
}

// connect connects to the hub. Wait is how long there may be none, if no flag says it; zero is for ever.
func (c *clientOptions) connect(ctx context.Context, env *Env, name string, wait time.Duration) (*bus.Conn, error) {
	path, of, err := c.credentials(env)
	if err != nil {
		return nil, err
	}
	url := cmp.Or(c.url, env.Variable(hubVariable))
	if url == "" {
		return nil, explain.NewError("no hub was given; use --nats nats://HOST:PORT, which sallyport fleet hub prints")
	}
	o := bus.Options{URL: url, Creds: path, Name: name, Timeout: cmp.Or(c.timeout, wait), CAFlag: "--tls-ca",
		Say: func(line string) { env.Say(line) }}
	if c.ca != "" {
		o.CA = args.Absolute(c.ca, env.Dir, env.Variable("HOME"))
	}
	conn, err := of.Connect(ctx, o)
	if err != nil {
		return nil, explain.NewError("%v", err)
	}
	return conn, nil
}
