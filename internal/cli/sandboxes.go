// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/failure"
	"github.com/sallyport-dev/sallyport/internal/getopt"
	"github.com/sallyport-dev/sallyport/internal/named"
	"github.com/sallyport-dev/sallyport/internal/nearest"
	"github.com/sallyport-dev/sallyport/internal/runargs"
	"github.com/sallyport-dev/sallyport/sandbox"
)

const sandboxesHelp = `List the named sandboxes of this user, or end some.

  sallyport sandboxes [--json]
  sallyport sandboxes stop NAME...

  sallyport run --join web -- python3 -m http.server 8000 &
  sallyport run --join web -- curl -s http://127.0.0.1:8000/

The first run --join NAME starts the sandbox. Later ones of the same workspace
start their programs in it: these share the network, /tmp and /dev/shm. Each run
has its own flags, and none may open more than the first one did. The sandbox
ends when no program has run in it for the time of --idle. To stop it ends the
programs in it, too.
`

// keeperName is the command that holds a named sandbox. It is not for people.
const keeperName = "__sandbox"

// manyNames is more than one command line has.
const manyNames = 1 << 20

func keeperCommand(ctx context.Context, env *Env, _ *options, _ []string) error {
	if err := named.Keep(ctx, env.Stdin); err != nil {
		return failure.New("%v", err)
	}
	return nil
}

func sandboxesFlags(o *options) []getopt.Flag {
	return []getopt.Flag{{Long: "json", Set: getopt.On(&o.json), Help: "print a JSON array"}}
}

func sandboxesCommand(ctx context.Context, env *Env, o *options, words []string) error {
	switch {
	case len(words) == 0:
		all, err := named.List(ctx)
		switch {
		case err != nil:
			return err
		case o.json && all == nil:
			return env.write("[]\n")
		case o.json:
			return env.printJSON(all)
		}
		return env.print(all.String())
	case words[0] != "stop":
		return failure.New("unknown argument %s%s", getopt.Quote(words[0]), nearest.Clause(words[0], []string{"stop"}, "see sallyport help sandboxes"))
	case o.json:
		return failure.New("--json is for the list: sallyport sandboxes --json")
	case len(words) == 1:
		return failure.New("the name of a sandbox is missing; sallyport sandboxes lists them")
	}
	var first error
	for _, name := range words[1:] {
		err := named.Stop(ctx, name)
		if errors.Is(err, named.ErrUnknown) {
			err = failure.New("unknown sandbox %s; sallyport sandboxes lists them", getopt.Quote(name))
		}
		if err == nil {
			continue
		}
		if first != nil {
			env.say(failure.Classify(err).String())
		} else {
			first = err
		}
	}
	return first
}

// sandboxWords complete the arguments of sandboxes.
func sandboxWords(before []string) (getopt.Kind, []candidate) {
	if len(before) == 0 || before[0] != "stop" {
		return getopt.Words, []candidate{{word: "stop"}}
	}
	list, _ := named.List(context.Background()) // what does not answer is not offered
	var all []candidate
	for _, i := range list {
		all = append(all, candidate{i.Name, i.Workspace})
	}
	return getopt.Words, all
}

// join has the commands of a Runner start in the sandbox of --join, and returns what leaves it.
func join(ctx context.Context, env *Env, o *runargs.Options, runner *sallyport.Runner, cmd *sallyport.Cmd, policy sandbox.Policy) (leave func() error, err error) {
	if o.Join == "" {
		return func() error { return nil }, nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, failure.New("this program does not know its own file: %v", err)
	}
	j, err := o.Sandbox(ctx, &env.Env, cmd, policy, []string{program, keeperName})
	if err != nil {
		return nil, err
	}
	runner.Executor = j
	return j.Close, nil
}
