// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostile are command lines that are large or deep; words are joined by NUL.
var hostile = []string{
	"bash\x00-c\x00" + strings.Repeat("(", 300),
	"bash\x00-c\x00" + strings.Repeat("$(", 150) + "rm",
	"bash\x00-c\x00" + strings.Repeat("((", 90),
	"bash\x00-c\x00" + strings.Repeat("if ", 20_000),
	"bash\x00-c\x00echo " + strings.Repeat("{a,b}", 40),
	"bash\x00-c\x00echo {1..99999999999} {a..z..0} {z..a..-5} {1..-3..2}",
	"bash\x00-c\x00a=xxxxxxxxxxxxxxxx;" + strings.Repeat("a=$a$a;", 64) + "$a",
	"bash\x00-c\x00" + strings.Repeat("a+=x b+=$a ", 200) + "; $b $a",
	"bash\x00-c\x00f() { f \"$@\" x; }; f y",
	"bash\x00-c\x00f() { g; }; g() { f; f; }; f",
	"bash\x00-c\x00f() {" + strings.Repeat(" f \"$@\" a; f \"$@\" b;", 8) + "}; f",
	"bash\x00-c\x00f() { " + fan("abcdefghijkl") + "}; f",
	"bash\x00-c\x00" + chain(40) + "x0() { v=$1; }; $v",
	"bash\x00-c\x00echo " + strings.Repeat("*a", 40_000),
	"bash\x00-c\x00x=" + strings.Repeat("\\a*", 30_000),
	"bash\x00-c\x00echo {" + strings.Repeat(",", 100_000),
	"bash\x00-c\x00" + strings.Repeat("{a,", 199) + strings.Repeat("x", 50_000),
	"bash\x00-c\x00echo " + strings.Repeat("{a,b", 150) + strings.Repeat("}", 150),
	"strace\x00" + strings.Repeat("-e\x00a\x00", 2000) + "rm",
	"bash\x00-c\x00" + strings.Repeat("eval \"eval 'eval ", 100),
	"bash\x00-c\x00a=$b; b=$a; $a $b",
	"bash\x00-c\x00eval 'eval \"$0\"'; eval \"$(echo eval)\"",
	"bash\x00-c\x00alias a='a b'; a",
	"bash\x00-c\x00set -- \"$@\" \"$@\"; shift; shift; \"$@\"",
	"bash\x00-c\x00IFS=a; IFS=$IFS; x=bab; $x",
	strings.Repeat("env\x00", 50) + "rm",
	strings.Repeat("unshare\x00", 50) + "rm",
	"parallel\x00:::\x00" + strings.Repeat("x\x00", 500),
	"sh\x00-c\x00if;&", "sh\x00-c\x00a \u0080; rm", "sh.\x00-c\x00A", "sh\x00-c\x00-", "sh\x00-c\x00+0",
	"bash\x00-c\x00-x", "", "\x00", "rm", "git\x00-c", "git\x00-C\x00-c\x00status", "xargs\x00-I",
	"bash\x00-c", "bash\x00-o", "find\x00-exec",
	Rest + "\x00" + Gap, "bash\x00-c\x00" + Rest + " " + Gap,
}

// fan is calls of a function with one more argument each.
func fan(letters string) string {
	var b strings.Builder
	for _, r := range letters {
		b.WriteString("f \"$@\" " + string(r) + "; ")
	}
	return b.String()
}

// chain is functions that call each other twice.
func chain(n int) string {
	var b strings.Builder
	for i := n; i > 0; i-- {
		b.WriteString("x" + strconv.Itoa(i) + "() { x" + strconv.Itoa(i-1) + " $1; x" +
			strconv.Itoa(i-1) + " $1 y; }; ")
	}
	return b.String()
}

// TestLimits wants an end, and no plain list, for what is too large or too deep.
func TestLimits(t *testing.T) {
	deep := strings.Repeat("eval ", maxDepth+2) + "x"
	many := strings.Repeat("a;", 10) + strings.Repeat("x; ", maxScript)
	for _, test := range []struct {
		name string
		argv []string
		want Reason
	}{
		{"deep wrappers", append(strings.Fields(strings.Repeat("env ", maxDepth+2)), "rm"), TooDeep},
		{"deep scripts", []string{"bash", "-lc", deep}, TooDeep},
		{"brackets", []string{"bash", "-c", strings.Repeat("(", maxNesting+1)}, TooDeep},
		{"long", []string{"bash", "-c", many}, TooLong},
		{"many", []string{"bash", "-c", "sudo " + strings.Repeat("x\n", maxUses) + manyCommands(maxUses+10)}, TooMany},
		{"scripts in scripts", strings.Fields("parallel" + scriptsOf(30_000, 20)), TooLong},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := Read(test.argv)
			if r.Opaque != test.want || r.Plain != nil {
				t.Errorf("opaque because of %q with %d plain commands, want %q", r.Opaque,
					len(r.Plain), test.want)
			}
			if len(r.Unknown) == 0 || len(r.Uses) == 0 {
				t.Errorf("%d uses, unknown %v: want both", len(r.Uses), r.Unknown)
			}
		})
	}
}

// scriptsOf returns n words of a size, each another one.
func scriptsOf(size, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(" " + strings.Repeat("x", size+i))
	}
	return b.String()
}

func manyCommands(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("c" + strings.Repeat("x", i%7) + strings.Repeat("y", i/7%30) + strings.Repeat("z",
			i/210) + "\n")
	}
	return b.String()
}

// TestOpaque names the reason for each kind of script that is not plain.
func TestOpaque(t *testing.T) {
	for text, want := range map[string]Reason{
		"":                 Empty,
		"  \n":             Empty,
		"a &&":             Syntax,
		"a > b":            Redirection,
		"a &":              Background,
		"! a":              Negation,
		"a |& b":           Operator,
		"(a)":              Compound,
		"if a; then b; fi": Compound,
		"f() { a; }":       Function,
		"export A":         Declaration,
		"unset A":          Declaration,
		"A=b":              Assignment,
		"a # b":            Comment,
		"# b":              Comment,
		"a $b":             Expansion,
		"a \"$(b)\"":       Expansion,
		"a $'b'":           Quoting,
		"'a'":              Quoting,
		"a \"\\\"\"":       Quoting,
		"a *":              Character,
		"a\rb":             Character,
		"a " + Gap:         Character,
		"1":                CommandName,
		"a@b":              CommandName,
		"a\x00b":           Encoding,
		"a \xff":           Encoding,
		"a \u0080; b":      Character,
		"a \u0081; b":      Character,
		"in":               CommandName,
		"a; b $c; (d)":     Expansion,
	} {
		r := Read([]string{"sh", "-c", text})
		if r.Opaque != want || len(r.Plain) > 0 || safe(r) {
			t.Errorf("%q: opaque because of %q with %q, want %q", text, r.Opaque, argvs(r.Plain), want)
		}
	}
}

// TestWrapper knows the three words that hand a script to a shell, and what is none.
func TestWrapper(t *testing.T) {
	for _, test := range []struct {
		words string
		want  bool
	}{
		{"bash -c x", true}, {"bash -lc x", true}, {"/usr/bin/zsh -c x", true}, {"./sh -lc x", true}, {"bash.exe -c x", true},
		{"dash -c x", false}, {"bash -cl x", false}, {"bash -x -c x", false}, {"bash -c x y", false}, {"bash -c", false}, {"bashx -c x", false},
	} {
		if r := Read(strings.Fields(test.words)); r.Wrapper != test.want {
			t.Errorf("%q: wrapper %v, want %v", test.words, r.Wrapper, test.want)
		}
	}
	if r := Read(nil); r.Opaque != Empty || r.Plain != nil || r.Uses != nil || safe(r) || r.Dangerous() {
		t.Errorf("no words: %+v", r)
	}
}

// TestPositions says where commands stand in the outermost script, and what runs them.
func TestPositions(t *testing.T) {
	r := Read([]string{"bash", "-c", "ls\n  env A=1 nice \\\n  rm x && sh -c 'a; b'"})
	want := map[string]string{"ls": "1:1 ", "env": "2:3 ", "nice": "2:3 env", "rm": "2:3 env", "sh": "3:11 ",
		"a": "3:11 sh -c", "b": "3:11 sh -c", "bash": "0:0 "}
	for _, c := range r.Uses {
		got := strings.TrimSpace(strings.Join([]string{itoa(c.Line) + ":" + itoa(c.Column), c.Through}, " "))
		if w, ok := want[c.Args[0]]; !ok || got != strings.TrimSpace(w) {
			t.Errorf("%q: %q, want %q", c.Args, got, w)
		}
		delete(want, c.Args[0])
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if p := Read([]string{"bash", "-c", "a\n b;c"}).Plain; len(p) != 3 || p[2].Line != 2 || p[2].Column != 4 {
		t.Errorf("plain positions: %+v", p)
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// TestUnknown names the places behind which anything may run.
func TestUnknown(t *testing.T) {
	for text, want := range map[string]Reason{
		"$x a":                  DynamicName,
		"\"$x\" a":              DynamicName,
		"curl u | sh":           StandardInput,
		"bash":                  StandardInput,
		"eval \"$x\"":           DynamicScript,
		"sh -c \"$x\"":          DynamicScript,
		"sh -c \"a $(b) c\"":    DynamicScript,
		"bash \"$x\"":           DynamicScript,
		". <(curl u)":           DynamicScript,
		"bash <(curl u)":        DynamicScript,
		"a; if":                 Syntax,
		"sh -c 'if'":            Syntax,
		"read x; $x":            DynamicName,
		"${x/a/b} c":            DynamicName,
		"sudo $x":               DynamicName,
		"parallel -j2 < f":      StandardInput,
		"f() { \"$@\"; }; g":    DynamicName,
		"source /dev/stdin":     StandardInput,
		"a\nx=(b\n":             Syntax,
		"eval 'x=b'; . f; $y z": DynamicName,
	} {
		r := Read([]string{"bash", "-c", text})
		found := false
		for _, u := range r.Unknown {
			found = found || u.Why == want
		}
		if !found {
			t.Errorf("%q: unknown %v, want %q", text, r.Unknown, want)
		}
	}
	for _, text := range []string{"a | b", "bash f", ". f", "x=a; $x b", "bash --version", "[ -f x ]",
		"a <(b)", "f() { \"$@\"; }; f a; f b",
		"f() { ls | while read -r d; do f \"$d\"; done; }; f .", "f() { f; g; }; g() { f; }; f"} {
		if r := Read([]string{"bash", "-c", text}); len(r.Unknown) > 0 {
			t.Errorf("%q: unknown %v, want all known", text, r.Unknown)
		}
	}
}

// TestBegins compares commands with placeholders.
func TestBegins(t *testing.T) {
	pattern := [][]string{{"git", "hub"}, {"push"}}
	for _, test := range []struct {
		words []string
		want  Certainty
	}{
		{[]string{"git", "push"}, Yes},
		{[]string{"hub", "push", "x"}, Yes},
		{[]string{"git"}, No},
		{[]string{"git", "pull"}, No},
		{[]string{"git", Gap}, Maybe},
		{[]string{"git", "p" + Gap}, Maybe},
		{[]string{"git", "p" + Gap + "u" + Gap + "h"}, Maybe},
		{[]string{"git", "p" + Gap + "x"}, No},
		{[]string{"git", "push" + Gap + "h"}, No},
		{[]string{"git", Rest, "pull"}, Maybe},
		{[]string{"git", Rest}, Maybe},
		{[]string{"git", Rest, "push"}, Maybe},
		{[]string{"git", "push", Rest}, Yes},
		{[]string{Rest}, Maybe},
		{[]string{Rest, "x"}, Maybe},
		{[]string{"x", Rest}, No},
		{[]string{Gap + "/git", "push"}, Maybe},
		{[]string{Gap + "/gi", "push"}, No},
	} {
		c := Command{Args: test.words}
		if got := c.Begins(pattern, nil); got != test.want {
			t.Errorf("%q: %v, want %v", c.Words(), got, test.want)
		}
	}
}

// TestHostile reads what is made to take long.
func TestHostile(t *testing.T) {
	for _, words := range hostile {
		begin := time.Now()
		if r := Read(strings.Split(words, "\x00")); len(r.Uses) == 0 {
			t.Errorf("%.80q: no uses", words)
		}
		t.Logf("%.40q %v", words, time.Since(begin))
	}
}

// BenchmarkRead guards the claim that a script of 200 lines is read in 1 ms.
func BenchmarkRead(b *testing.B) {
	lines := strings.Repeat(`set -euo pipefail
cd "$ROOT/src" && go build -trimpath -o "$OUT" ./cmd/app
for f in a b c; do
	cp "$f" "$OUT/$f" || exit 1
done
if [ -n "${CI:-}" ]; then
	go test -count=1 ./... 2>&1 | tee test.log | grep -v 'no test files'
fi
log "built $(git rev-parse --short HEAD) at $(date +%F)"
find . -name '*.tmp' -exec rm {} +
`, 20)
	argv := []string{"bash", "-lc", "log() { echo \"$@\" >&2; }\nOUT=/tmp/out\n" + lines}
	b.ReportAllocs()
	for b.Loop() {
		Read(argv)
	}
}
