// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"
)

// Launching returns what is known of a program that runs the command that its words end with.
func Launching(name string) (Launcher, bool) {
	l, ok := launchers()[name]
	return l, ok
}

// Idle reports whether the options of a launcher say that it runs nothing.
func (l Launcher) Idle(args []string) bool {
	for _, w := range args[1:] {
		if l.never != "" && strings.HasPrefix(w, "-") && w != "--" && strings.ContainsAny(w, l.never) {
			return true
		}
		if !strings.HasPrefix(w, "-") || w == "--" {
			break
		}
	}
	return false
}

// maxStarts is at how many words of a command line another command may begin.
const maxStarts = 256

// Starts returns where the command may begin in the words of a launcher, and the words before it
// that set variables for it, NAME=VALUE. More reports that it may begin at later words as well.
func (l Launcher) Starts(args []string) (starts []int, sets []string, more bool) {
	skip := l.skip
	for i := 1; i < len(args); i++ {
		w := args[i]
		switch cut := strings.Contains(w, "="); {
		case w == Rest, l.loose:
			starts, more = AnyWord(args, i)
			return starts, sets, more
		case w == "--":
			i++
			for l.Assigns && i < len(args) && strings.Contains(args[i], "=") {
				sets = append(sets, args[i])
				i++
			}
			if i += skip; i < len(args) {
				return []int{i}, sets, false
			}
			return nil, sets, false
		case strings.HasPrefix(w, "--"):
			if !cut && l.takes(w[2:]) {
				i++
			}
		case len(w) > 1 && w[0] == '-':
			if at := strings.IndexAny(w[1:], l.short); at >= 0 && at+2 == len(w) {
				i++
			}
		case l.Assigns && cut: // whatever the name: env takes every word with =
			sets = append(sets, w)
		case skip > 0:
			skip--
		default:
			return []int{i}, sets, false
		}
	}
	return nil, sets, false
}

// AnyWord returns all positions from one at which a command can begin. More reports that there are
// too many.
func AnyWord(args []string, from int) (starts []int, more bool) {
	for i := from; i < len(args); i++ {
		if strings.HasPrefix(args[i], "-") {
			continue
		}
		if len(starts) == maxStarts {
			return starts, true
		}
		starts = append(starts, i)
	}
	return starts, false
}

// takes reports whether a long option, which may be abbreviated, takes a value.
func (l Launcher) takes(name string) bool {
	return slices.ContainsFunc(l.long, func(o string) bool { return strings.HasPrefix(o, name) })
}
