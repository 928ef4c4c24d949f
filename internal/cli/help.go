// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
)

func helpUsage() string {
	return `Explain sallyport or one of its verbs.

  sallyport help [VERB]
`
}

func helpVerb(_ context.Context, env *Env, args []string) error {
	if len(args) == 0 {
		return env.put([]byte(overview()))
	}
	var known []string
	for _, v := range verbs() {
		if v.short == "" {
			continue
		}
		if v.name == args[0] {
			return env.put([]byte(v.usage()))
		}
		known = append(known, v.name)
	}
	if strings.HasPrefix(args[0], "-") {
		return env.put([]byte(helpUsage()))
	}
	return usage("there is no verb %s in this version%s", quote(args[0]), hint(args[0], known, "sallyport help lists them"))
}

// overview is the help text of the whole program.
func overview() string {
	var b strings.Builder
	b.WriteString(`sallyport runs a command in the narrowest sandbox and says what happened.

  sallyport run -- go test ./...
  sallyport run --rw /srv/data -c 'make && make install'

Verbs:
`)
	for _, v := range verbs() {
		if v.short != "" {
			fmt.Fprintf(&b, "  %-12s%s\n", v.name, v.short)
		}
	}
	b.WriteString("\nsallyport help VERB, or sallyport VERB --help, explains one.\n")
	return b.String()
}
