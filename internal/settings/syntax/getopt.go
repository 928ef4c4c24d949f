// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A FlagKind says where the candidates for a word come from. The zero Kind is nowhere.
type FlagKind string

// The kinds that the completion scripts know, and those that become words before.
const (
	Words       FlagKind = "words" // the lines that follow
	Files       FlagKind = "files"
	Directories FlagKind = "directories"
	Programs    FlagKind = "commands" // in PATH
	Openings    FlagKind = "openings" // of --allow
	Grants      FlagKind = "grants"   // of --grant
)

// A Flag is one option of a command. It is data: the parser, the help text and the
// completion read the same table.
type Flag struct {
	Long   string // without dashes
	Short  byte   // 0 for none
	Value  string // the name of the value in the help, "" for a switch
	Rest   bool   // all words up to "--" are values
	Toggle bool   // a switch that can be turned off, too: --name=false
	// Optional is the name of a value that a switch also takes, after "=" only; empty for none.
	Optional string
	Help     string // one or more lines
	Group    string // heading in the help text
	Words    []string
	Key      string // of the settings, whose words are offered when there are none; "" for none
	// FlagKind is what the completion offers for the value when there are no words; "" is nothing.
	Kind FlagKind
	// Set takes the value, "" for a switch that stands alone. Its error follows the
	// flag's name.
	Set func(value string) error
	// Shapes says that the flag decides what a program may touch. It is recorded.
	Shapes bool
	// Hidden flags are not in the help: those of another command, and those that programs write.
	Hidden bool
}

// Name is the flag with its dashes.
func (f *Flag) Name() string { return "--" + f.Long }

// Shortest is the flag as people write it most: "-s" or "--rw".
func (f *Flag) Shortest() string {
	if f.Short != 0 {
		return "-" + string(rune(f.Short))
	}
	return f.Name()
}

// An FlagError is what is wrong with the words of a command line.
type FlagError struct{ text string }

func newError(format string, args ...any) error { return &FlagError{fmt.Sprintf(format, args...)} }

// Error returns one sentence.
func (e *FlagError) Error() string { return e.text }

// ParseFlags sets the flags in args and returns the words after them, which begin
// after "--" or with the first word that is not a flag. After an error it goes on
// as well as it can, so that --quiet and --json count wherever they stand, and
// returns the first error.
func ParseFlags(flags []Flag, args []string) (rest []string, err error) {
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

// ParseFlagsAnywhere is parse for commands whose flags may also stand behind their words.
func ParseFlagsAnywhere(flags []Flag, args []string) (words []string, err error) {
	words, after, err := ParseFlagsAround(flags, args)
	return append(words, after...), err
}

// ParseFlagsAround is ParseFlagsAnywhere that keeps the words after "--" apart: nil where there is none.
func ParseFlagsAround(flags []Flag, args []string) (words, after []string, err error) {
	for {
		rest, err := ParseFlags(flags, args)
		read := len(args) - len(rest)
		switch {
		case err != nil:
			return words, nil, err
		case read > 0 && args[read-1] == "--":
			return words, slices.Grow(rest, 1), nil
		case len(rest) == 0:
			return words, nil, nil
		}
		words, args = append(words, rest[0]), rest[1:]
	}
}

// parseLong takes "--name", "--name=value" or "--name" "value" off args.
func parseLong(flags []Flag, args []string) ([]string, error) {
	name, value, inline := strings.Cut(args[0][2:], "=")
	args = args[1:]
	f := FindLong(flags, name)
	switch {
	case f == nil:
		return args, UnknownFlag(flags, "--"+name)
	case f.Rest && !inline:
		return f.takeRest(args)
	case f.Value == "" && inline && f.Optional != "" && value == "":
		return args, newError("%s: %v", f.Name(), errEmptyValue)
	case f.Value == "" && inline && !f.Toggle && f.Optional == "":
		return args, newError("%s takes no value", f.Name())
	case f.Value != "" && !inline && len(args) == 0:
		return args, newError("%s needs a value: %s %s", f.Name(), f.Name(), f.Value)
	case f.Value != "" && !inline:
		value, args = args[0], args[1:]
	}
	return args, f.Give(f.Name(), value)
}

// takeRest takes all words up to "--".
func (f *Flag) takeRest(args []string) ([]string, error) {
	end := slices.Index(args, "--")
	if end <= 0 {
		return args, newError("%s needs words and -- after them: %s %s -- PROGRAM", f.Name(),
			f.Name(), f.Value)
	}
	for _, word := range args[:end] {
		if err := f.Give(f.Name(), word); err != nil {
			return args[end:], err
		}
	}
	return args[end:], nil
}

// parseShort takes a cluster such as "-q", "-qv", "-sMODE" or "-s" "MODE" off
// args.
func parseShort(flags []Flag, args []string) ([]string, error) {
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
		f := FindShort(flags, cluster[0])
		cluster = cluster[1:]
		switch {
		case f == nil:
			fail(UnknownFlag(flags, written))
		case f.Value == "" && !(f.Toggle && strings.HasPrefix(cluster, "=")):
			fail(f.Give(written, ""))
			continue
		case cluster != "":
			fail(f.Give(written, strings.TrimPrefix(cluster, "=")))
		case len(args) == 0:
			fail(newError("%s needs a value: %s %s", written, written, f.Value))
		default:
			fail(f.Give(written, args[0]))
			args = args[1:]
		}
		break
	}
	return args, err
}

// Give hands a value to a flag.
func (f *Flag) Give(written, value string) error {
	if err := f.Set(value); err != nil {
		return newError("%s: %v", written, err)
	}
	return nil
}

func FindLong(flags []Flag, name string) *Flag {
	return findFlag(flags, func(f *Flag) bool { return f.Long == name })
}

func FindShort(flags []Flag, letter byte) *Flag {
	return findFlag(flags, func(f *Flag) bool { return f.Short == letter })
}

func findFlag(flags []Flag, match func(*Flag) bool) *Flag {
	for i := range flags {
		if match(&flags[i]) {
			return &flags[i]
		}
	}
	return nil
}

// UnknownFlag names the flag and the nearest one that exists.
func UnknownFlag(flags []Flag, written string) error {
	var known []string
	for i := range flags {
		known = append(known, flags[i].Name())
	}
	if ours := SpelledElsewhere()[strings.ToLower(written)]; ours != "" {
		first, _, _ := strings.Cut(ours, " ")
		if slices.ContainsFunc(flags, func(f Flag) bool {
			return first == f.Name() ||
				first == f.Shortest()
		}) {
			return newError("unknown flag %s; did you mean %q?", text.Word(written), ours)
		}
	}
	return newError("unknown flag %s%s", text.Word(written), NearestClause(written, known, "see --help"))
}

// SetChosen returns the function that sets *to to one of the words.
func SetChosen(to *string, words []string) func(string) error {
	return func(v string) error {
		if !slices.Contains(words, v) {
			return fmt.Errorf("invalid value %s (%s)%s", QuoteFlag(v), strings.Join(words, ", "),
				NearestClause(v, words, ""))
		}
		*to = v
		return nil
	}
}

// SetOn returns the function that switches *to on.
func SetOn(to *bool) func(string) error {
	return func(string) error { *to = true; return nil }
}

var errEmptyValue = errors.New("the value is empty")

// SetText returns the function that sets *to to any text that is not empty.
func SetText(to *string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errEmptyValue
		}
		*to = v
		return nil
	}
}

// SetList returns the function that adds a text to *to.
func SetList(to *[]string) func(string) error {
	return func(v string) error {
		if v == "" {
			return errEmptyValue
		}
		*to = append(*to, v)
		return nil
	}
}

// DescribeFlags returns the flags for people, by group, in the order of the table.
func DescribeFlags(flags []Flag) string {
	const column = 26
	var b strings.Builder
	for i, f := range flags {
		if f.Hidden {
			continue
		}
		if i == 0 || f.Group != flags[i-1].Group {
			b.WriteString("\n")
			if f.Group != "" {
				b.WriteString(f.Group + ":\n")
			}
		}
		head := "      " + f.Name()
		if f.Short != 0 {
			head = "  " + f.Shortest() + ", " + f.Name()
		}
		if f.Value != "" {
			head += " " + f.Value
		}
		if f.Optional != "" {
			head += "[=" + f.Optional + "]"
		}
		if len(head) >= column {
			b.WriteString(head + "\n")
			head = ""
		}
		for line := range strings.SplitSeq(f.Help, "\n") {
			fmt.Fprintf(&b, "%-*s%s\n", column, head, line)
			head = ""
		}
	}
	return b.String()
}

// QuoteFlag returns s in quotes, with what does not print escaped, and shortened when it
// is long.
func QuoteFlag(s string) string {
	const most = 80
	if len(s) > most {
		s = s[:most] + "..."
	}
	return fmt.Sprintf("%q", s)
}
