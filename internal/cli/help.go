// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

const helpHelp = `Show the help of sallyport or of one of its commands.

  sallyport help [--man] [COMMAND [SUBCOMMAND]]

With --man it prints a manual page. make install installs all of them; so does
this:

  dir=${XDG_DATA_HOME:-~/.local/share}/man/man1; mkdir -p $dir
  sallyport help --man >$dir/sallyport.1
  for c in run ps attach logs send wait screen kill play recordings rm stages \
    changes apply discard why console audit check patch net init trust config \
    approvals approve deny hook setup exec-server fleet mcp grants doctor \
    caches sandboxes version completion help; do
    sallyport help --man $c >$dir/sallyport-$c.1; done
`

func helpFlags(o *options) []syntax.Flag {
	return []syntax.Flag{{Long: "man", Set: syntax.SetOn(&o.man),
		Help: "print a manual page, in the macros of man(7)"}}
}

func helpCommand(_ context.Context, env *Env, o *options, words []string) error {
	var c *command
	if c = subcommand(words); c == nil && len(words) > 0 {
		var err error
		if c, err = findCommand(words[0]); err != nil {
			return err
		}
		if len(words) > 1 {
			return explain.NewError("unexpected argument %s; see sallyport help %s", syntax.QuoteFlag(words[1]),
				c.name)
		}
	}
	switch {
	case o.man:
		return env.write(manual(c))
	case c == nil:
		return env.print(overview())
	}
	return env.print(c.usage())
}

const overviewExamples = `  sallyport run -- go test ./...
  sallyport run --rw /srv/data -c 'make && make install'
`

// shownCommands are the commands for people.
func shownCommands() []command {
	return slices.DeleteFunc(commands(), func(c command) bool { return c.short == "" })
}

// overview is the help text of the whole program.
func overview() string {
	var b strings.Builder
	b.WriteString("sallyport runs a program in the narrowest sandbox and reports what happened.\n\n" +
		overviewExamples + "\nCommands:\n")
	for _, c := range shownCommands() {
		fmt.Fprintf(&b, "  %-12s%s\n", c.name, c.short)
	}
	b.WriteString("\nFor details: sallyport help COMMAND, or sallyport COMMAND --help.\n")
	return b.String()
}
