// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package fleets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	nodesHelp = `List the nodes that run commands for these credentials.

  sallyport fleet nodes --nats URL [--creds FILE] [--json]

A node that was not heard for 1.5 seconds is lost, with all that it had.
`
	sessionsHelp = `List the sessions of a tenant on all nodes.

  sallyport fleet sessions --nats URL [--creds FILE] [--json]

A session is starting until it starts its first command, running while it has
one or a client, and ended when it has neither; lost, if its node is.
`
	drainHelp = `Have a node take no new sessions and end when nothing runs there any more.

  sallyport fleet drain [--deadline DUR] [--no-wait] NODE

At the deadline, what still runs there is ended. It returns when the node has
ended.
`
	undrainHelp = `Have a node that is drained take sessions again.

  sallyport fleet undrain NODE
`
	killHelp = `End a session with everything that it has started.

  sallyport fleet kill SESSION
`
)

// operateOptions are the flags of verbs that show and change what a tenant has.
type operateOptions struct {
	client   clientOptions
	json     bool
	deadline time.Duration
	noWait   bool
}

func operateFlags(o *Options) []syntax.Flag { return o.operate.client.flags("10s") }

func listFlags(o *Options) []syntax.Flag {
	return append([]syntax.Flag{{Long: "json", Set: syntax.SetOn(&o.operate.json), Help: "print JSON"}},
		operateFlags(o)...)
}

// defaultDeadline is how long a drain waits for commands if no flag says it.
const defaultDeadline = 10 * time.Minute

func drainFlags(o *Options) []syntax.Flag {
	return append([]syntax.Flag{
		{Long: "deadline", Value: "DUR", Set: args.Duration(&o.operate.deadline),
			Help: "end what still runs after DUR (default 10m)"},
		{Long: "no-wait", Set: syntax.SetOn(&o.operate.noWait),
			Help: "return when the node takes no new sessions"},
	}, operateFlags(o)...)
}

// operate calls do with what an account has.
func operate(ctx context.Context, env *Env, o *Options, do func(context.Context, *fleet.Control) error) error {
	conn, err := o.operate.client.connect(ctx, env, "sallyport fleet", hubTime)
	if err != nil {
		return err
	}
	defer conn.Close()
	c, err := fleet.NewControl(ctx, conn)
	if err != nil {
		return explain.NewError("%v", err)
	}
	defer c.Close()
	return do(ctx, c)
}

// operateOn is operate for a verb with one word.
func operateOn(ctx context.Context, env *Env, o *Options, what string, words []string,
	do func(context.Context, *fleet.Control, string) error) error {
	if len(words) == 0 || words[0] == "" {
		return explain.NewError("the %s is missing", what)
	}
	return operate(ctx, env, o, func(ctx context.Context, c *fleet.Control) error {
		return failed(do(ctx, c, words[0]))
	})
}

// A nodeList is the answer of nodes. Its member names stay.
type nodeList struct {
	Type  string       `json:"type"` // always "nodes"
	Nodes []listedNode `json:"nodes"`
}

type listedNode struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Slots   int               `json:"slots"`
	Free    int               `json:"free"`
	Level   string            `json:"level"`
	Version string            `json:"version"`
	State   fleet.State       `json:"state"`
	Since   time.Time         `json:"since"` // of its start
}

func listNodes(ctx context.Context, env *Env, o *Options, _ []string) error {
	return operate(ctx, env, o, func(_ context.Context, c *fleet.Control) error {
		answer := nodeList{Type: "nodes", Nodes: []listedNode{}}
		for _, n := range c.Nodes() {
			one := listedNode{n.Name, n.Labels, n.Slots, n.Free, n.Level, n.Version, n.State,
				time.UnixMilli(n.SinceMs).UTC()}
			if one.Labels == nil {
				one.Labels = map[string]string{}
			}
			if one.State == fleet.Lost {
				one.Free = 0
			}
			answer.Nodes = append(answer.Nodes, one)
		}
		if o.operate.json {
			return env.PrintJSON(answer)
		}
		return env.Print(answer.String())
	})
}

// String is the list for people.
func (l *nodeList) String() string {
	return table("NAME\tSTATE\tFREE\tSLOTS\tLEVEL\tVERSION\tSTARTED\tLABELS", l.Nodes, func(n listedNode) string {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			labels = append(labels, text.Word(key+"="+n.Labels[key]))
		}
		return fmt.Sprintf("%s\t%s\t%d\t%d\t%s\t%s\t%s ago\t%s", text.Word(n.Name), text.Word(string(n.State)), n.Free,
			n.Slots, text.Word(n.Level), text.Word(n.Version), explain.Age(time.Since(n.Since)),
			strings.Join(labels, " "))
	})
}

// A sessionList is the answer of sessions. Its member names stay.
type sessionList struct {
	Type     string          `json:"type"` // always "fleet_sessions"
	Sessions []listedSession `json:"sessions"`
}

type listedSession struct {
	ID      string             `json:"id"`
	Node    string             `json:"node"` // empty before it has one
	State   fleet.SessionState `json:"state"`
	Started time.Time          `json:"started"`
}

func listSessions(ctx context.Context, env *Env, o *Options, _ []string) error {
	return operate(ctx, env, o, func(ctx context.Context, c *fleet.Control) error {
		all, err := c.Sessions(ctx)
		if err != nil {
			return failed(err)
		}
		answer := sessionList{Type: "fleet_sessions", Sessions: []listedSession{}}
		for _, s := range all {
			answer.Sessions = append(answer.Sessions,
				listedSession{s.ID, s.Node, s.State, time.UnixMilli(s.Started).UTC()})
		}
		if o.operate.json {
			return env.PrintJSON(answer)
		}
		return env.Print(answer.String())
	})
}

// String is the list for people.
func (l *sessionList) String() string {
	return table("ID\tSTATE\tNODE\tSTARTED", l.Sessions, func(s listedSession) string {
		node := "-"
		if s.Node != "" {
			node = text.Word(s.Node)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s ago", text.Word(s.ID), text.Word(string(s.State)), node,
			explain.Age(time.Since(s.Started)))
	})
}

// table returns a table for people; empty for no rows.
func table[R any](head string, rows []R, line func(R) string) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, head) // a builder has no errors
	for _, r := range rows {
		_, _ = fmt.Fprintln(w, line(r))
	}
	_ = w.Flush()
	return b.String()
}

func drain(ctx context.Context, env *Env, o *Options, words []string) error {
	return operateOn(ctx, env, o, "name of the node", words,
		func(ctx context.Context, c *fleet.Control, name string) error {
			deadline := o.operate.deadline
			if deadline == 0 {
				deadline = defaultDeadline
			}
			return c.Drain(ctx, name, deadline, !o.operate.noWait)
		})
}

func undrain(ctx context.Context, env *Env, o *Options, words []string) error {
	return operateOn(ctx, env, o, "name of the node", words,
		func(ctx context.Context, c *fleet.Control, name string) error { return c.Undrain(ctx, name) })
}

func kill(ctx context.Context, env *Env, o *Options, words []string) error {
	return operateOn(ctx, env, o, "ID of the session", words,
		func(ctx context.Context, c *fleet.Control, id string) error { return c.Kill(ctx, id) })
}
