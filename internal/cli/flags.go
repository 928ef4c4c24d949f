// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
)

// A flag is one option of a verb. It is data: the parser, the help text and the
// completion read the same table.
type flag struct {
	long  string // without dashes
	short byte   // 0 for none
	value string // what the value is called, "" for a switch
	// toggle is a switch that can be turned off, too: --name=false.
	toggle bool
	help   string
	group  string // heading in the help text
	words  []string
	// kind is what the completion offers for the value when there are no words.
	kind completionKind
	// set takes the value, "" for a switch that stands alone. Its error is a clause that follows
	// the flag's name.
	set func(value string) error
	// missing says why this version does not take the flag, a clause. It is in the
	// table so that it is refused in words; the help leaves it out.
	missing string
}

// name returns the flag as it is written: "--long".
func (f *flag) name() string { return "--" + f.long }

// flagError is a bad value of a flag that exists.
func flagError(written string, err error) error {
	return usage("%s: %v", written, err)
}

// parse sets the flags in args and returns the words after them, which begin
// after "--" or with the first word that is not a flag. After an error it goes on
// as well as it can, so that --quiet and --json count wherever they stand, and
// returns the first error.
func parse(flags []flag, args []string) (rest []string, err error) {
	fail := func(e error) {
		if err == nil {
			err = e
		}
	}
	for len(args) > 0 {
		word := args[0]
		switch {
		case word == "--":
			return args[1:], err
		case len(word) < 2 || word[0] != '-':
			return args, err
		case strings.HasPrefix(word, "--"):
			args = parseLong(flags, args, fail)
		default:
			args = parseShort(flags, args, fail)
		}
	}
	return nil, err
}

// parseLong takes "--name", "--name=value" or "--name" "value" off args.
func parseLong(flags []flag, args []string, fail func(error)) []string {
	name, value, inline := strings.Cut(args[0][2:], "=")
	args = args[1:]
	f := findLong(flags, name)
	switch {
	case f == nil:
		fail(unknownFlag(flags, "--"+name))
		return args
	case f.value == "" && inline && !f.toggle:
		fail(usage("%s takes no value", f.name()))
		return args
	case f.value == "":
		give(f, f.name(), value, fail)
		return args
	case !inline && len(args) == 0:
		fail(usage("%s needs a value: %s %s", f.name(), f.name(), f.value))
		return args
	case !inline:
		value, args = args[0], args[1:]
	}
	give(f, f.name(), value, fail)
	return args
}

// parseShort takes a cluster such as "-q", "-qv", "-sMODE" or "-s" "MODE" off
// args.
func parseShort(flags []flag, args []string, fail func(error)) []string {
	cluster := args[0][1:]
	args = args[1:]
	for cluster != "" {
		letter := cluster[0]
		cluster = cluster[1:]
		written := "-" + string(rune(letter))
		f := findShort(flags, letter)
		switch {
		case f == nil:
			fail(unknownFlag(flags, written))
			return args
		case f.toggle && strings.HasPrefix(cluster, "="):
			give(f, written, cluster[1:], fail)
			return args
		case f.value == "":
			give(f, written, "", fail)
			continue
		case cluster != "":
			give(f, written, strings.TrimPrefix(cluster, "="), fail)
		case len(args) == 0:
			fail(usage("%s needs a value: %s %s", written, written, f.value))
		default:
			give(f, written, args[0], fail)
			args = args[1:]
		}
		return args
	}
	return args
}

// give hands a value to a flag.
func give(f *flag, written, value string, fail func(error)) {
	if f.missing != "" {
		fail(usage("%s %s", written, f.missing))
		return
	}
	if err := f.set(value); err != nil {
		fail(flagError(written, err))
	}
}

func findLong(flags []flag, name string) *flag {
	for i := range flags {
		if flags[i].long == name {
			return &flags[i]
		}
	}
	return nil
}

func findShort(flags []flag, letter byte) *flag {
	for i := range flags {
		if flags[i].short == letter {
			return &flags[i]
		}
	}
	return nil
}

// unknownFlag names the flag and the nearest one that exists.
func unknownFlag(flags []flag, written string) error {
	known := make([]string, 0, len(flags))
	for i := range flags {
		if flags[i].missing == "" {
			known = append(known, flags[i].name())
		}
	}
	return usage("there is no flag %s%s", written, hint(written, known, "see --help"))
}

// chosen returns the function that sets *to to one of the words.
func chosen(to *string, words []string) func(string) error {
	return func(v string) error {
		for _, w := range words {
			if w == v {
				*to = v
				return nil
			}
		}
		return fmt.Errorf("%q is none of %s%s", v, strings.Join(words, ", "), hint(v, words, ""))
	}
}

// on returns the function that switches *to on.
func on(to *bool) func(string) error {
	return func(string) error { *to = true; return nil }
}

// toggled returns the function that switches *to on or off, and notes in *given that
// it was.
func toggled(to, given *bool) func(string) error {
	return func(v string) error {
		switch v {
		case "", "true":
			*to, *given = true, true
		case "false":
			*to, *given = false, true
		default:
			return fmt.Errorf("%q is neither true nor false", v)
		}
		return nil
	}
}

// text returns the function that sets *to to any text that is not empty.
func text(to *string) func(string) error {
	return func(v string) error {
		if v == "" {
			return fmt.Errorf("the value is empty")
		}
		*to = v
		return nil
	}
}

// list returns the function that adds a text to *to.
func list(to *[]string) func(string) error {
	return func(v string) error {
		if v == "" {
			return fmt.Errorf("the value is empty")
		}
		*to = append(*to, v)
		return nil
	}
}

// describe returns the flags for people, by group, in the order of the table.
func describe(flags []flag) string {
	var b strings.Builder
	group := ""
	for i := range flags {
		f := &flags[i]
		if f.missing != "" {
			continue
		}
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n%s:\n", group)
		}
		head := "      " + f.name()
		if f.short != 0 {
			head = fmt.Sprintf("  -%c, %s", f.short, f.name())
		}
		if f.value != "" {
			head += " " + f.value
		}
		lines := strings.Split(f.help, "\n")
		if len(head) > 27 {
			fmt.Fprintf(&b, "%s\n%28s%s\n", head, "", lines[0])
		} else {
			fmt.Fprintf(&b, "%-28s%s\n", head, lines[0])
		}
		for _, l := range lines[1:] {
			fmt.Fprintf(&b, "%28s%s\n", "", l)
		}
	}
	return b.String()
}
