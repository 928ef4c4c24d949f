// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/hub"
	"github.com/sallyport-dev/sallyport/internal/fleet/node"
	"github.com/sallyport-dev/sallyport/internal/run/durable"
	"github.com/sallyport-dev/sallyport/internal/run/process"
	"github.com/sallyport-dev/sallyport/internal/server/execserver"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const nodeHelp = `Offer this machine to a fleet: run commands for clients of its gateways.

  sallyport fleet node --nats nats://HOST:4222 [--creds FILE]
  sallyport fleet node --nats URL --label zone=a --slots 8

The first line of standard output is "node NAME ready". The managed
configuration of this machine bounds what clients can ask for. With credentials
for all tenants nothing runs without a sandbox. SIGINT and SIGTERM end the node
and all that runs there; a node that was drained exits with 0.
`

// nodeOptions are the flags of node.
type nodeOptions struct {
	client         clientOptions
	name           string
	labels         []string
	slots          int
	requireSandbox bool
}

func nodeFlags(o *Options) []syntax.Flag {
	n := &o.node
	return append(n.client.flags("never"),
		syntax.Flag{Long: "name", Value: "NAME", Set: syntax.SetText(&n.name),
			Help: "the name of the node (default: that of the\ncredentials, or of this machine)"},
		syntax.Flag{Long: "label", Value: "KEY=VALUE", Set: syntax.SetList(&n.labels),
			Help: "a label by which clients choose it (repeatable)"},
		syntax.Flag{Long: "slots", Value: "N", Set: args.Whole(&n.slots, 1),
			Help: "run up to N commands at once (default: the number of\nprocessors, at least 4)"},
		syntax.Flag{Long: "require-sandbox", Set: syntax.SetOn(&n.requireSandbox),
			Help: "run nothing without a sandbox"})
}

func runNode(ctx context.Context, env *Env, o *Options, _ []string) (err error) {
	n := &o.node
	labels, err := fleet.ParseLabels(n.labels)
	if err != nil {
		return explain.NewError("--label: %v", err)
	}
	path, creds, err := n.client.credentials(env)
	if err != nil {
		return err
	}
	name, err := n.nodeName(&creds)
	if err != nil {
		return err
	}
	ctx, hurry, stop := listen.Ends(ctx)
	defer stop()
	conn, err := n.client.connect(ctx, env, "sallyport node "+name, 0)
	if ctx.Err() != nil {
		return nil // it was told to end
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	s := execserver.Options{Environ: env.Environ, Dir: env.Dir, Managed: env.Managed, FileHelper: env.FileHelper,
		RequireSandbox: n.requireSandbox}
	if err := protect(&s, path); err != nil {
		return err
	}
	log := args.Complete(&s, env.Telemetry)
	defer log.Close() //nolint:errcheck // each process that was not kept said so
	done, err := remember(&s, name)
	if err != nil {
		return err
	}
	defer done()
	defer collectLess()()
	served, err := node.Start(ctx, conn, node.Options{Name: name, Labels: labels,
		Slots: cmp.Or(n.slots, max(runtime.NumCPU(), leastSlots)), Level: level(ctx), Version: s.Version,
		Shared: creds.Shared, Server: s})
	if err != nil {
		return explain.NewError("%v", err)
	}
	defer func() {
		if closed := served.Close(hurry); err == nil && closed != nil && hurry.Err() == nil {
			err = explain.NewError("the node has ended, with an error: %v", closed)
		}
	}()
	if err := env.Print("node " + name + " ready\n"); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-served.Left():
		if err := served.Err(); err != nil {
			return explain.NewError("%v", err)
		}
	case <-conn.Over():
		return explain.NewError("%v", conn.Err())
	}
	return nil
}

// leastSlots is the default where a machine has few processors: commands mostly wait.
const leastSlots = 4

// protect has commands neither read nor change a file with credentials.
func protect(s *execserver.Options, path string) error {
	if path == "" {
		return nil
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return explain.NewError("cannot use the credentials: %v", err)
	}
	s.Kept, s.Hidden = []string{path}, []string{real}
	return nil
}

// remember has the server keep what the next node with the name needs to know, after what the last one has
// left was ended: also commands without a sandbox, where it was killed. Done is for when the server has
// ended.
func remember(s *execserver.Options, name string) (done func(), err error) {
	dir, err := dirs.Dir()
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil // this system has none
	}
	dir = filepath.Join(dir, "nodes", name)
	if err == nil {
		s.Leftovers, err = process.OpenLeftovers(filepath.Join(dir, "commands"))
	}
	if err != nil {
		return nil, explain.NewError("cannot start the node %s: %v; a node of this user with that name may be alive, "+
			"and then give this one another --name", name, err)
	}
	if s.Durable, err = durable.Open(filepath.Join(dir, "output")); err != nil {
		_ = s.Leftovers.Close() // the error says more
		return nil, explain.NewError("cannot keep the output of commands: %v", err)
	}
	return func() {
		_ = s.Durable.Close() // what it was given is on its way to the disk
		_ = s.Leftovers.Close()
	}, nil
}

// nodeName returns the name that flags, credentials or this machine give.
func (n *nodeOptions) nodeName(creds *hub.User) (string, error) {
	switch {
	case creds.Node && n.name != "" && n.name != creds.Name:
		return "", explain.NewError("--name %s: these credentials are those of the node %s", syntax.QuoteFlag(n.name),
			syntax.QuoteFlag(creds.Name))
	case creds.Node:
		return creds.Name, nil
	case n.name != "" && !bus.Token(n.name):
		return "", explain.NewError("--name %s: use 1 to 64 letters, digits, - and _", syntax.QuoteFlag(n.name))
	case n.name != "":
		return n.name, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", explain.NewError("this machine has no name: %v; use --name", err)
	}
	return hostName(host), nil
}

// hostName makes the name of a node out of that of a machine.
func hostName(host string) string {
	name := strings.Map(func(r rune) rune {
		if bus.Token("x" + string(r)) {
			return r
		}
		return '-'
	}, host)
	const most = 64
	if name = strings.TrimLeft(name, "-"); len(name) > most {
		name = name[:most]
	}
	return cmp.Or(name, "node")
}

// level returns the strongest sandbox level of this machine, as doctor tells it; "none" for none.
func level(ctx context.Context) string {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("it took too long"))
	defer cancel()
	for _, l := range explain.Levels(ctx) {
		if l.Available {
			return l.Level
		}
	}
	return "none"
}
