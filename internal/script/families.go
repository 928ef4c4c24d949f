// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import "strings"

// A subcommand is one of a family that runs a command.
type subcommand struct {
	name    string
	at      int // of its last word
	program program
}

// first returns where the operand may stand that says what a program of the family does: behind
// an option that is not known, the next one may be it as well.
func (f *family) first(args []string) []int {
	p := program{short: f.short, long: f.long}
	var all []int
	most := 1
	for i := 1; i < len(args) && len(all) < most; i++ {
		switch w := args[i]; {
		case w == Rest:
			return all
		case strings.HasPrefix(w, "--") && len(w) > 2:
			if _, _, cut := strings.Cut(w, "="); !cut {
				if p.takes(w[2:]) {
					i++
				} else {
					most = 2
				}
			}
		case len(w) > 1 && w[0] == '-' && w != "--":
			if at := strings.IndexAny(w[1:], p.short); at >= 0 && at+2 == len(w) {
				i++
			} else {
				most = 2
			}
		case w != "--":
			all = append(all, i)
		}
	}
	return all
}

// commands returns what runs a command.
func (f *family) commands(args []string) []subcommand {
	var all []subcommand
	for _, i := range f.first(args) {
		if p, ok := f.subs[args[i]]; ok {
			all = append(all, subcommand{args[i], i, p})
			continue
		}
		for j := i + 1; j < len(args); j++ {
			if p, ok := f.subs[args[i]+" "+args[j]]; ok {
				all = append(all, subcommand{args[i] + " " + args[j], j, p})
				break
			}
		}
	}
	return all
}

// open reports whether the family may run words of a command that its table does not say.
func (f *family) open(args []string) bool {
	first := f.first(args)
	if len(first) == 0 || f.quiet == "*" {
		return false
	}
	for _, i := range first {
		if _, ok := f.subs[args[i]]; ok || strings.Contains(" "+f.quiet+" ", " "+args[i]+" ") {
			return false
		}
	}
	return true
}
