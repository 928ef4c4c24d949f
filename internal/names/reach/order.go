// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// Weigh notes which denials are known to be harmless. It returns them in the order in which they
// are likely to be the cause, if the command failed. Said is what the command printed, as far as
// it was captured; it may be empty.
//
// The order is a guess about facts: nothing tells why a program ended. First come denials
// whose error stands in the output, best in one line with their name; then those of the
// program that was started itself, whose exit code is the command's; then the last ones before
// the end, because programs try much before they give up. What was only inferred comes after
// what was seen, and what is harmless at the end. A system call that nothing opens comes after
// one of the same process that a flag opens: programs fall back to it, as ping to raw sockets.
func (r *DeniedRun) Weigh(denials []sandbox.Denial, exit int, said ...[]byte) []sandbox.Denial {
	for i := range denials {
		denials[i].Harmless = r.Habit(&denials[i], exit)
	}
	if exit == 0 {
		return denials
	}
	lines := bytes.Split(bytes.ToLower(bytes.Join(said, []byte("\n"))), []byte("\n"))
	type weight struct{ harmless, guessed, fallback, silent, other int }
	weights := make(map[*sandbox.Denial]weight, len(denials))
	order := make([]*sandbox.Denial, len(denials))
	for i := range denials {
		d := &denials[i]
		order[i] = d
		weights[d] = weight{
			harmless: less(d.Harmless == ""), guessed: less(d.Source.Evidence()),
			fallback: less(!isFallback(d, denials)),
			silent:   -mentioned(d, lines), other: less(r.started(d)),
		}
	}
	slices.SortStableFunc(order, func(a, b *sandbox.Denial) int {
		u, v := weights[a], weights[b]
		return cmp.Or(cmp.Compare(u.harmless, v.harmless), cmp.Compare(u.guessed, v.guessed),
			cmp.Compare(u.fallback, v.fallback), cmp.Compare(u.silent, v.silent),
			cmp.Compare(u.other, v.other), b.Time.Compare(a.Time))
	})
	sorted := make([]sandbox.Denial, len(order))
	for i, d := range order {
		sorted[i] = *d
	}
	return sorted
}

// isFallback reports whether the process of a refused system call, which nothing opens, was
// refused another one that a flag opens.
func isFallback(d *sandbox.Denial, all []sandbox.Denial) bool {
	return d.Op == sandbox.Syscall && d.Grant == "" && d.PID != 0 &&
		slices.ContainsFunc(all, func(o sandbox.Denial) bool {
			return o.Op == sandbox.Syscall && o.Grant != "" && o.PID == d.PID
		})
}

// less is 0 for what comes first.
func less(first bool) int {
	if first {
		return 0
	}
	return 1
}

// started returns whether a denial is of the program that the command names.
func (r *DeniedRun) started(d *sandbox.Denial) bool {
	if len(r.Args) == 0 {
		return false
	}
	name := path.Base(r.Args[0])
	called, _, _ := strings.Cut(d.Name, " ")
	return name == path.Base(d.Program) || name == called
}

// errorWords are the texts of errors in lower case, as C libraries, Go, Python and Node
// print them.
var errorWords = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"EROFS":        {"read-only file system", "erofs"},
		"EACCES":       {"permission denied", "eacces"},
		"EPERM":        {"operation not permitted", "not permitted", "eperm"},
		"EBUSY":        {"device or resource busy", "resource busy", "ebusy"},
		"EXDEV":        {"cross-device link", "exdev"},
		"ENETUNREACH":  append([]string{"network is unreachable", "network unreachable", "enetunreach"}, lookupWords...),
		"ECONNREFUSED": append([]string{"connection refused", "econnrefused"}, lookupWords...),
	}
})

// lookupWords are what programs print when no name server answers.
var lookupWords = []string{
	"name resolution", "resolve host", "could not resolve", "no such host", "dns", "enotfound", "eai_again",
	"name or service not known", "server misbehaving",
}

// proxyWords are what programs print when a proxy refuses a host.
var proxyWords = []string{"403", "forbidden", "proxy", "tunnel", "socks", "not in allowlist",
	"sandbox policy"}

// mentioned returns 2 where a line of the output has the error of a denial and its name, 1
// where one has the error, and 0 otherwise.
func mentioned(d *sandbox.Denial, lines [][]byte) int {
	words, about := errorWords()[d.Errno], d.Target()
	if d.Source == sandbox.Proxied {
		words = proxyWords
		if i := strings.LastIndexByte(about, ':'); i >= 0 {
			about = about[:i] // programs rarely print the port
		} else {
			words = lookupWords // of a name
		}
	}
	if words == nil && d.Errno != "" {
		words = []string{strings.ToLower(d.Errno)}
	}
	const telling = 3 // letters: shorter names are in many words
	target := strings.ToLower(about)
	name := path.Base(target)
	if len(name) < telling {
		name = path.Join(path.Base(path.Dir(target)), name)
	}
	best := 0
	for _, line := range lines {
		if !slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(line, []byte(w)) }) {
			continue
		}
		if len(name) >= telling && bytes.Contains(line, []byte(name)) {
			return 2
		}
		best = 1
	}
	return best
}
