// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/rules"
)

const netHelp = `Show what the network policy of a run says about a host, without resolving it or
connecting to it.

  sallyport net test HOST[:PORT] [--method METHOD] [--json] [FLAGS of run]
  sallyport net test https://HOST[:PORT] ...

The policy comes from the configuration, the rules about hosts and these flags;
sallyport run with the same flags has the same policy. Without --method it
judges a connection, as for https, by default to port 443. With --method it
judges a plain HTTP request, by default to port 80, or for a URL a request
inside TLS. Write IPv6 addresses as [2001:db8::7]:443.

The exit code is 0 if the host is allowed, 1 if it is denied or would be asked
about, and 125 if the host or a setting is not valid.
`

// netRunFlags are the flags of run that decide about the network.
var netRunFlags = []string{"net", "allow-host", "deny-host", "ask-net", "grant", "sandbox", "profile",
	"rules", "cd", "config", "no-config"}

func netFlags(o *options) []syntax.Flag {
	flags := []syntax.Flag{
		{Long: "method", Value: "METHOD", Set: syntax.SetText(&o.method), Help: "judge an HTTP request with this method, such as POST"},
		o.jsonFlag(),
	}
	for _, f := range o.run.Flags() {
		if slices.Contains(netRunFlags, f.Long) {
			f.Group = ""
			flags = append(flags, f)
		}
	}
	return flags
}

func netCommand(_ context.Context, env *Env, o *options, words []string) error {
	switch {
	case len(words) == 0:
		return explain.NewError("net needs a subcommand: test; see sallyport help net")
	case words[0] != "test":
		return explain.NewError("unknown command net %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], []string{"test"}, "see sallyport help net"))
	case len(words) == 1:
		return explain.NewError("no host given; try sallyport net test example.org:443")
	}
	dir, e, err := o.run.Settings(&env.Env)
	if err != nil {
		return err
	}
	set := rules.Load(rules.Host{Dir: dir, Home: env.Variable("HOME")}, e.Rules()...)
	answer, err := args.Ask(e, set, words[1], o.method)
	if err != nil {
		return env.unloaded(err, env.Dir, explain.CodeFailed)
	}
	return env.answer(answer, o.json, answer.Allowed())
}

// netWords completes the words of net.
func netWords(before []string) (syntax.FlagKind, []candidate) {
	if len(before) == 0 {
		return syntax.Words, []candidate{{"test", "what the policy says about a host"}}
	}
	return syntax.Words, nil
}
