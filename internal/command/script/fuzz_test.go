// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// seeds adds the scripts of all tables.
func seeds(f *testing.F) {
	for _, r := range readLines[spelling](f, "spellings.jsonl") {
		f.Add(strings.Join(r.words(), "\x00"))
	}
	for _, r := range readLines[benign](f, "benign.jsonl") {
		f.Add("bash\x00-lc\x00" + r.Script)
	}
	for _, words := range hostile {
		f.Add(words)
	}
}

// FuzzRead checks that reading ends, and that the lists agree with each other.
func FuzzRead(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, words string) {
		if len(words) > maxScript {
			return
		}
		argv := strings.Split(words, "\x00")
		begin := time.Now()
		r := Read(argv)
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("took %v", d)
		}
		if (r.Plain == nil) != (r.Opaque != "") {
			t.Errorf("%d plain commands, opaque because of %q", len(r.Plain), r.Opaque)
		}
		for _, c := range r.Plain {
			if !slices.ContainsFunc(r.Uses, func(u Command) bool { return slices.Equal(u.Args, c.Args) }) {
				t.Errorf("plain command %q is not among the uses %q", c.Args, argvs(r.Uses))
			}
		}
		for i := range r.Uses {
			if len(r.Uses[i].Args) == 0 {
				t.Error("a command without words")
			} else if r.Uses[i].Args[0] != Rest && r.Uses[i].Begins([][]string{{r.Uses[i].Args[0]}},
				nil) == No && r.Uses[i].Exact() {
				t.Errorf("%q does not begin with itself", r.Uses[i].Args)
			}
		}
	})
}

// FuzzPlain asks bash for a second opinion on what has a plain list.
func FuzzPlain(f *testing.F) {
	bash := needBash(f)
	f.Add("a \u0080; b")
	f.Add("git commit -m 'a  b' && ls \"c d\"")
	for _, r := range readLines[plainRow](f, "plain.jsonl") {
		f.Add(r.Script)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkBash(t, bash, text)
	})
}
