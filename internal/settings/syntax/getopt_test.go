// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is a small set of flags and what they set.
type sample struct {
	on, verbose bool
	mode        string
	roots       []string
}

func (s *sample) flags() []Flag {
	return []Flag{
		{Long: "on", Short: 'o', Set: SetOn(&s.on), Group: "All", Help: "switch on"},
		{Long: "verbose", Short: 'v', Set: SetOn(&s.verbose), Group: "All", Help: "say more"},
		{Long: "mode", Short: 'm', Value: "MODE", Set: SetChosen(&s.mode, []string{"fast", "slow"}), Group: "All", Help: "how"},
		{Long: "root", Value: "PATH", Set: SetList(&s.roots), Group: "All", Help: "where"},
		{Long: "picky", Short: 'l', Value: "X", Set: func(string) error { return errors.New("no value fits") }},
	}
}

func TestParseFlags(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want sample
		rest []string
		err  string
	}{
		{name: "nothing"},
		{name: "words only", args: []string{"a", "--on"}, rest: []string{"a", "--on"}},
		{name: "long and short", args: []string{"--on", "-v", "x"}, want: sample{on: true, verbose: true}, rest: []string{"x"}},
		{name: "cluster", args: []string{"-ov"}, want: sample{on: true, verbose: true}},
		{name: "cluster with value", args: []string{"-ovmfast"}, want: sample{on: true, verbose: true, mode: "fast"}},
		{name: "value after", args: []string{"-m", "slow", "-o"}, want: sample{on: true, mode: "slow"}},
		{name: "value after equals sign", args: []string{"--mode=slow"}, want: sample{mode: "slow"}},
		{name: "short value after equals sign", args: []string{"-m=slow"}, want: sample{mode: "slow"}},
		{name: "last value counts", args: []string{"-m", "slow", "-m", "fast"}, want: sample{mode: "fast"}},
		{name: "repeated", args: []string{"--root", "a", "--root=b"}, want: sample{roots: []string{"a", "b"}}},
		{name: "value like a flag", args: []string{"--root", "--on"}, want: sample{roots: []string{"--on"}}},
		{name: "two dashes end the flags", args: []string{"-o", "--", "-v"}, want: sample{on: true}, rest: []string{"-v"}},
		{name: "only the first two dashes", args: []string{"--", "--", "x"}, rest: []string{"--", "x"}},
		{name: "a dash is a word", args: []string{"-", "-o"}, rest: []string{"-", "-o"}},
		{name: "an empty word is a word", args: []string{"", "-o"}, rest: []string{"", "-o"}},

		{name: "unknown long", args: []string{"--moed", "x"}, rest: []string{"x"}, err: `unknown flag --moed; did you mean "--mode"?`},
		{name: "unknown with value", args: []string{"--modd=x"}, err: `unknown flag --modd; did you mean "--mode"?`},
		{name: "far from all", args: []string{"--zzzzzz"}, err: "unknown flag --zzzzzz; see --help"},
		{name: "beginning of a long one", args: []string{"--verb"}, err: `unknown flag --verb; did you mean "--verbose"?`},
		{name: "unknown short", args: []string{"-x"}, err: "unknown flag -x; see --help"},
		{name: "goes on after an error", args: []string{"--bad", "-o", "--", "x"}, want: sample{on: true}, rest: []string{"x"},
			err: "unknown flag --bad; see --help"},
		{name: "the first error counts", args: []string{"--picky=1", "--bad"}, err: "--picky: no value fits"},
		{name: "refused, short", args: []string{"-l", "1", "x"}, rest: []string{"x"}, err: "-l: no value fits"},
		{name: "switch with value", args: []string{"--on=true"}, err: "--on takes no value"},
		{name: "no value left", args: []string{"--mode"}, err: "--mode needs a value: --mode MODE"},
		{name: "no value left, short", args: []string{"-om"}, want: sample{on: true}, err: "-m needs a value: -m MODE"},
		{name: "not one of the words", args: []string{"-m", "fats"}, err: `-m: invalid value "fats" (fast, slow); did you mean "fast"?`},
		{name: "empty value", args: []string{"--root="}, err: "--root: the value is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got sample
			rest, err := ParseFlags(got.flags(), tt.args)
			if text := errorText(err); text != tt.err {
				t.Errorf("error %q, want %q", text, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(sample{})); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
			if !slices.Equal(rest, tt.rest) {
				t.Errorf("rest %q, want %q", rest, tt.rest)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// FuzzParseFlags checks on any words that nothing is lost: the words after the flags
// are the end of the arguments, and what stands before them is flags.
func FuzzParseFlags(f *testing.F) {
	f.Add("--on\x00-m\x00fast\x00x")
	f.Add("-ovm=\x00--\x00-v")
	f.Add("--mode")
	f.Add("-\x00--root=\xff")
	f.Fuzz(func(t *testing.T, joined string) {
		args := strings.Split(joined, "\x00")
		var s sample
		rest, err := ParseFlags(s.flags(), args)
		if !slices.Equal(rest, args[len(args)-len(rest):]) {
			t.Fatalf("%q: the rest %q is not the end", args, rest)
		}
		used := args[:len(args)-len(rest)]
		if len(used) > 0 && used[0] != "--" && !strings.HasPrefix(used[0], "-") {
			t.Fatalf("%q: %q was taken for a flag", args, used[0])
		}
		if err != nil && strings.Contains(err.Error(), "\n") && !strings.Contains(joined, "\n") {
			t.Fatalf("%q: the error has more than one line: %v", args, err)
		}
	})
}
