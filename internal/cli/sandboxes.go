// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/cli/sessions"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const sandboxesHelp = `List the named sandboxes of this user, or stop some.

  sallyport sandboxes [--json]
  sallyport sandboxes stop NAME...

  sallyport run --join web -- python3 -m http.server 8000 &
  sallyport run --join web -- curl -s http://127.0.0.1:8000/

The first run --join NAME starts the sandbox. Later ones from the same workspace
start their programs in it; they share the network, /tmp and /dev/shm. Each run
has its own flags, but none may open more than the first one did. The sandbox
ends when no program has run in it for the time of --idle. Stopping it ends the
programs in it.
`

// manyNames is more than one command line has.
const manyNames = 1 << 20

func sandboxesFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "json", Set: syntax.SetOn(&o.json), Help: "print a JSON array"}}
}

func sandboxesCommand(ctx context.Context, env *Env, o *options, words []string) error {
	switch {
	case len(words) == 0:
		all, err := sessions.NamedSandboxes(ctx, env.sessions())
		if err != nil {
			return err
		}
		return env.answer(all, o.json, true)
	case words[0] != "stop":
		return explain.NewError("unknown argument %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], []string{"stop"}, "see sallyport help sandboxes"))
	case o.json:
		return explain.NewError("--json is for the list: sallyport sandboxes --json")
	case len(words) == 1:
		return explain.NewError("the name of a sandbox is missing; sallyport sandboxes lists them")
	}
	return sessions.StopSandboxes(ctx, env.sessions(), words[1:])
}

// sandboxWords complete the arguments of sandboxes.
func sandboxWords(before []string) (syntax.FlagKind, []candidate) {
	if len(before) == 0 || before[0] != "stop" {
		return syntax.Words, []candidate{{"stop"}}
	}
	// what does not answer is not offered
	list, _ := sessions.NamedSandboxes(context.Background(), System().sessions())
	var all []candidate
	for _, i := range list {
		all = append(all, candidate{i.Name, i.Workspace})
	}
	return syntax.Words, all
}
