// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/sallyport-dev/sallyport/executor"
)

// leftRunning says which processes a command left running: by name, the order in
// which they were found, and how many of each.
func leftRunning(left []executor.Survivor) string {
	const most = 8 // names; more make no line for people
	var names []string
	count := make(map[string]int)
	for _, s := range left {
		name := printable(s.Name)
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	words := "ended one process that the command left running: "
	if len(left) > 1 {
		words = fmt.Sprintf("ended %d processes that the command left running: ", len(left))
	}
	for i, name := range names {
		if i == most {
			return words + ", ..."
		}
		if i > 0 {
			words += ", "
		}
		words += name
		if n := count[name]; n > 1 {
			words += fmt.Sprintf(" (%d)", n)
		}
	}
	return words
}

// printable makes a name harmless for a terminal: processes choose their own.
func printable(name string) string {
	if name == "" {
		return "?"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return '?'
	}, name)
}
