// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/nearest"
	"github.com/sallyport-dev/sallyport/internal/printable"
)

// A flag is one option of a command. It is data: the parser, the help text and the
// completion read the same table.
type flag struct {
	long   string // without dashes
	short  byte   // 0 for none
	value  string // the name of the value in the help, "" for a switch
	rest   bool   // all words up to "--" are values
	toggle bool   // a switch that can be turned off, too: --name=false
	help   string // one or more lines
	group  string // heading in the help text
	words  []string
	key    string // of the settings, whose words are offered when there are none; "" for none
	// kind is what the completion offers for the value when there are no words; "" is that of
	// completions.
	kind completionKind
	// set takes the value, "" for a switch that stands alone. Its error follows the
	// flag's name.
	set func(value string) error
	// shapes says that the flag decides what a program may touch. It is recorded.
	shapes bool
	// hidden flags are those of another command: its help has them.
	hidden bool
	// unsupported flags are refused by name; the help leaves them out.
	unsupported bool
}

func (f *flag) name() string { return "--" + f.long }

// shortest is the flag as people write it most: "-s" or "--rw".
func (f *flag) shortest() string {
	if f.short != 0 {
		return "-" + string(rune(f.short))
	}
	return f.name()
}

// parse sets the flags in args and returns the words after them, which begin
// after "--" or with the first word that is not a flag. After an error it goes on
// as well as it can, so that --quiet and --json count wherever they stand, and
// returns the first error.
func parse(flags []flag, args []string) (rest []string, err error) {
	for len(args) > 0 {
		word := args[0]
		if word == "--" {
			return args[1:], err
		}
		if len(word) < 2 || word[0] != '-' {
			return args, err
		}
		var e error
		if strings.HasPrefix(word, "--") {
			args, e = parseLong(flags, args)
		} else {
			args, e = parseShort(flags, args)
		}
		if err == nil {
			err = e
		}
	}
	return nil, err
}

// parseAnywhere is parse for commands whose flags may also stand behind their words.
func parseAnywhere(flags []flag, args []string) (words []string, err error) {
	for {
		rest, err := parse(flags, args)
		if err != nil || len(rest) == 0 {
			return words, err
		}
		if read := len(args) - len(rest); read > 0 && args[read-1] == "--" {
			return append(words, rest...), nil
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

// parseLong takes "--name", "--name=value" or "--name" "value" off args.
func parseLong(flags []flag, args []string) ([]string, error) {
	name, value, inline := strings.Cut(args[0][2:], "=")
	args = args[1:]
	f := findLong(flags, name)
	switch {
	case f == nil:
		return args, unknownFlag(flags, "--"+name)
	case f.rest && !inline:
		return f.takeRest(args)
	case f.value == "" && inline && !f.toggle:
		return args, failure("%s takes no value", f.name())
	case f.value != "" && !inline && len(args) == 0:
		return args, failure("%s needs a value: %s %s", f.name(), f.name(), f.value)
	case f.value != "" && !inline:
		value, args = args[0], args[1:]
	}
	return args, f.give(f.name(), value)
}

// takeRest takes all words up to "--".
func (f *flag) takeRest(args []string) ([]string, error) {
	end := slices.Index(args, "--")
	if end <= 0 {
		return args, failure("%s needs words and -- after them: %s %s -- PROGRAM", f.name(), f.name(), f.value)
	}
	for _, word := range args[:end] {
		if err := f.give(f.name(), word); err != nil {
			return args[end:], err
		}
	}
	return args[end:], nil
}

// parseShort takes a cluster such as "-q", "-qv", "-sMODE" or "-s" "MODE" off
// args.
func parseShort(flags []flag, args []string) ([]string, error) {
	cluster := args[0][1:]
	args = args[1:]
	var err error
	fail := func(e error) {
		if err == nil {
			err = e
		}
	}
	for cluster != "" {
		written := "-" + cluster[:1]
		f := findShort(flags, cluster[0])
		cluster = cluster[1:]
		switch {
		case f == nil:
			fail(unknownFlag(flags, written))
		case f.value == "" && !(f.toggle && strings.HasPrefix(cluster, "=")):
			fail(f.give(written, ""))
			continue
		case cluster != "":
			fail(f.give(written, strings.TrimPrefix(cluster, "=")))
		case len(args) == 0:
			fail(failure("%s needs a value: %s %s", written, written, f.value))
		default:
			fail(f.give(written, args[0]))
			args = args[1:]
		}
		break
	}
	return args, err
}

// give hands a value to a flag.
func (f *flag) give(written, value string) error {
	if f.unsupported {
		return failure("%s is not supported in this version; leave it out", written)
	}
	if err := f.set(value); err != nil {
		return failure("%s: %v", written, err)
	}
	return nil
}

func findLong(flags []flag, name string) *flag {
	return findFlag(flags, func(f *flag) bool { return f.long == name })
}

func findShort(flags []flag, letter byte) *flag {
	return findFlag(flags, func(f *flag) bool { return f.short == letter })
}

func findFlag(flags []flag, match func(*flag) bool) *flag {
	for i := range flags {
		if match(&flags[i]) {
			return &flags[i]
		}
	}
	return nil
}

// unknownFlag names the flag and the nearest one that exists.
func unknownFlag(flags []flag, written string) error {
	var known []string
	for i := range flags {
		if !flags[i].unsupported {
			known = append(known, flags[i].name())
		}
	}
	if ours := spelledElsewhere()[strings.ToLower(written)]; ours != "" {
		first, _, _ := strings.Cut(ours, " ")
		if slices.ContainsFunc(flags, func(f flag) bool { return first == f.name() || first == f.shortest() }) {
			return failure("unknown flag %s; did you mean %q?", printable.Word(written), ours)
		}
	}
	return failure("unknown flag %s%s", printable.Word(written), nearest.Clause(written, known, "see --help"))
}

// chosen returns the function that sets *to to one of the words.
func chosen(to *string, words []string) func(string) error {
	return func(v string) error {
		if !slices.Contains(words, v) {
			return fmt.Errorf("invalid value %s (%s)%s", quote(v), strings.Join(words, ", "), nearest.Clause(v, words, ""))
		}
		*to = v
		return nil
	}
}

// on returns the function that switches *to on.
func on(to *bool) func(string) error {
	return func(string) error { *to = true; return nil }
}

var errEmptyValue = errors.New("the value is empty")

// text returns the function that sets *to to any text that is not empty.
func text(to *string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errEmptyValue
		}
		*to = v
		return nil
	}
}

// list returns the function that adds a text to *to.
func list(to *[]string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errEmptyValue
		}
		*to = append(*to, v)
		return nil
	}
}

// describe returns the flags for people, by group, in the order of the table.
func describe(flags []flag) string {
	const column = 26
	var b strings.Builder
	for i, f := range flags {
		if f.unsupported || f.hidden {
			continue
		}
		if i == 0 || f.group != flags[i-1].group {
			b.WriteString("\n")
			if f.group != "" {
				b.WriteString(f.group + ":\n")
			}
		}
		head := "      " + f.name()
		if f.short != 0 {
			head = "  " + f.shortest() + ", " + f.name()
		}
		if f.value != "" {
			head += " " + f.value
		}
		if len(head) >= column {
			b.WriteString(head + "\n")
			head = ""
		}
		for line := range strings.SplitSeq(f.help, "\n") {
			fmt.Fprintf(&b, "%-*s%s\n", column, head, line)
			head = ""
		}
	}
	return b.String()
}
