// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sessions

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Sandbox describes a named sandbox. The member names of its JSON form stay.
type Sandbox struct {
	Name      string    `json:"name"`
	Workspace string    `json:"workspace"`
	Network   string    `json:"network"`
	Since     time.Time `json:"since"`
	Running   int       `json:"running"` // runs that have joined it and have not ended
	PID       int       `json:"pid"`     // of the process that holds it
	Idle      int64     `json:"idle_ms"`
	IdleLeft  *int64    `json:"idle_left_ms"` // null while something runs
}

// Sandboxes are several of them.
type Sandboxes []Sandbox

// NamedSandboxes returns the named sandboxes of this user, by their names; none where no daemon runs.
func NamedSandboxes(ctx context.Context, env *Env) (Sandboxes, error) {
	list := Sandboxes{}
	var all wire.SandboxList
	if err := new(Options).listed(ctx, env, "sandbox/list", &all); err != nil {
		return nil, err
	}
	for _, s := range all.Sandboxes {
		if err := runs.CheckName(s.Name); err != nil {
			return nil, err
		}
		list = append(list, Sandbox{
			s.Name, s.Workspace, s.Network, time.UnixMilli(s.Started), s.Running, s.PID, s.Idle, s.IdleLeft,
		})
	}
	return list, nil
}

// StopSandboxes ends named sandboxes with everything in them, and waits for that.
func StopSandboxes(ctx context.Context, env *Env, names []string) error {
	unknown := func(name string) error {
		return explain.NewError("unknown sandbox %s; sallyport sandboxes lists them", syntax.QuoteFlag(name))
	}
	return new(Options).each(ctx, env, names, unknown, func(c client, name string) error {
		err := c.Repeat(ctx, "sandbox/stop", map[string]any{"name": name}, nil)
		if why, _ := reasonOf(err); why == runs.UnknownSandbox {
			return unknown(name)
		}
		return err
	})
}

// String is the list for people; empty for none.
func (all Sandboxes) String() string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(w, "NAME\tNETWORK\tSTARTED\tRUNNING\tIDLE LEFT\tWORKSPACE") // a builder has no errors
	for _, s := range all {
		left := "-"
		if s.IdleLeft != nil {
			left = explain.Age((time.Duration(*s.IdleLeft) * time.Millisecond).Round(time.Second))
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s ago\t%d\t%s\t%s\n",
			s.Name, s.Network, explain.Age(time.Since(s.Since)), s.Running, left, text.Word(s.Workspace))
	}
	_ = w.Flush()
	return b.String()
}
