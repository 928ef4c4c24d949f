// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
)

const helpHelp = `Explain sallyport or one of its commands.

  sallyport help [COMMAND]
`

func helpCommand(_ context.Context, env *Env, _ *options, words []string) error {
	if len(words) == 0 {
		return env.print(overview())
	}
	c, err := findCommand(words[0])
	if err != nil {
		return err
	}
	return env.print(c.usage())
}

// overview is the help text of the whole program.
func overview() string {
	var b strings.Builder
	b.WriteString(`sallyport runs a program in the narrowest sandbox and reports what happened.

  sallyport run -- go test ./...
  sallyport run --rw /srv/data -c 'make && make install'

Commands:
`)
	for _, c := range commands() {
		if c.short != "" {
			fmt.Fprintf(&b, "  %-12s%s\n", c.name, c.short)
		}
	}
	b.WriteString("\nsallyport help COMMAND, or sallyport COMMAND --help, explains one.\n")
	return b.String()
}
