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
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	hubHelp = `Serve the hub of a fleet: NATS with JetStream, in this process.

  sallyport fleet hub
  sallyport fleet hub --listen 0.0.0.0:4222 --tls-cert FILE --tls-key FILE

The first line of standard output is its URL. Without tenants and nodes, all
users of this machine are let in, and other machines are not. With the first
fleet add-tenant or add-node it asks for credentials, at once and for ever.
SIGINT and SIGTERM end it; what it stored is there when it starts again.
`
	addTenantHelp = `Write credentials for a tenant, which sees nothing of other tenants.

  sallyport fleet add-tenant NAME [--store DIR]

It prints the path of the new file, DIR/creds/NAME.creds. A hub that runs is
told. Users with these credentials run commands on all nodes of the tenant.
`
	addNodeHelp = `Write credentials for a node.

  sallyport fleet add-node NAME [--tenant TENANT] [--store DIR]

It prints the path of the new file, DIR/creds/NAME.creds. A hub that runs is
told. Without --tenant the node serves every tenant, always in a sandbox.
`
	removeTenantHelp = `Cut a tenant off: close its connections, and remove its nodes, its
credentials and what it has stored in the hub.

  sallyport fleet remove-tenant NAME [--store DIR]
`
	removeNodeHelp = `Cut a node off: close its connections, and remove its credentials.

  sallyport fleet remove-node NAME [--store DIR]
`
)

// hubOptions are the flags of hub.
type hubOptions struct {
	listen   string
	tls      listen.TLS
	insecure bool
}

func storeFlags(o *Options) []syntax.Flag {
	return []syntax.Flag{{Long: "store", Value: "DIR", Kind: syntax.Directories,
		Set:  syntax.SetText(&o.store),
		Help: "the files of the hub (default: fleet in the state\ndirectory)"}}
}

func hubFlags(o *Options) []syntax.Flag {
	h := &o.hub
	h.listen = "127.0.0.1:4222"
	return append([]syntax.Flag{
		{Long: "listen", Value: "IP:PORT", Set: syntax.SetText(&h.listen),
			Help: "serve there; port 0 is a free one\n(default 127.0.0.1:4222)"},
		{Long: "tls-cert", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&h.tls.Cert),
			Help: "encrypt, with this certificate (PEM)"},
		{Long: "tls-key", Value: "FILE", Kind: syntax.Files, Set: syntax.SetText(&h.tls.Key),
			Help: "its private key"},
		{Long: "insecure", Set: syntax.SetOn(&h.insecure),
			Help: "let other machines in without credentials, or\nwithout TLS"},
	}, storeFlags(o)...)
}

func addNodeFlags(o *Options) []syntax.Flag {
	return append([]syntax.Flag{{Long: "tenant", Value: "NAME", Set: syntax.SetText(&o.tenant),
		Help: "the node serves this tenant alone"}}, storeFlags(o)...)
}

// directory returns the store that the flags name; empty for the default.
func (o *Options) directory(env *Env) string {
	if o.store == "" {
		return ""
	}
	return args.Absolute(o.store, env.Dir, env.Variable("HOME"))
}

func runHub(ctx context.Context, env *Env, o *Options, _ []string) error {
	encryption, err := o.hub.tls.Config()
	if err != nil {
		return explain.NewError("%v", err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer collectLess()()
	h, err := hub.Start(ctx, hub.Options{Listen: o.hub.listen, Store: o.directory(env), TLS: encryption,
		Insecure: o.hub.insecure, Say: func(line string) { env.Say(line) }})
	if err != nil {
		return explain.NewError("%v", err)
	}
	if h.Exposed() && encryption == nil && !o.hub.insecure {
		env.Say("warning: messages between machines are not encrypted; use --tls-cert and --tls-key")
	}
	if err := env.Print(h.URL() + "\n"); err != nil {
		_ = h.Close() // the error says more
		return err
	}
	if err := h.Wait(); err != nil {
		return explain.NewError("%v", err)
	}
	return nil
}

// nameOf returns the one word of a verb.
func nameOf(verb string, words []string) (string, error) {
	if len(words) == 0 || words[0] == "" {
		return "", explain.NewError("the name is missing: sallyport fleet %s NAME", verb)
	}
	return words[0], nil
}

// added prints the path of new credentials.
func added(env *Env, path string, err error) error {
	if err != nil {
		return explain.NewError("%v", err)
	}
	return env.Print(text.Word(path) + "\n")
}

func addTenant(ctx context.Context, env *Env, o *Options, words []string) error {
	name, err := nameOf("add-tenant", words)
	if err != nil {
		return err
	}
	path, err := hub.AddTenant(ctx, o.directory(env), name)
	return added(env, path, err)
}

func addNode(ctx context.Context, env *Env, o *Options, words []string) error {
	name, err := nameOf("add-node", words)
	if err != nil {
		return err
	}
	path, err := hub.AddNode(ctx, o.directory(env), name, o.tenant)
	return added(env, path, err)
}

func removeTenant(ctx context.Context, env *Env, o *Options, words []string) error {
	name, err := nameOf("remove-tenant", words)
	if err == nil {
		err = hub.RemoveTenant(ctx, o.directory(env), name)
	}
	return failed(err)
}

func removeNode(ctx context.Context, env *Env, o *Options, words []string) error {
	name, err := nameOf("remove-node", words)
	if err == nil {
		err = hub.RemoveNode(ctx, o.directory(env), name)
	}
	return failed(err)
}

// failed is the error of a verb that prints nothing.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return explain.NewError("%v", err)
}
