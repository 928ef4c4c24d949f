// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"go.starlark.net/starlark"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// TestErrors has one file per error, with the place that people are sent to.
func TestErrors(t *testing.T) {
	defer func(d time.Duration) { maxTime = d }(maxTime)
	maxTime = time.Hour // TestMaxTime has it
	for _, test := range []struct{ name, text, want string }{
		{"a call behind others on its line", `prefix_rule(["é"]); prefix_rule([])`, "f:1:21: invalid pattern element: pattern cannot be empty"},
		{"a call over several lines", "\nx = [\n  prefix_rule(\n    [1],\n)]", "f:3:3: invalid pattern element: pattern element must be a string or list of strings (got int)"},
		{"a function in parentheses", "p = prefix_rule\n(p)([])", "f:2:2: invalid pattern element: pattern cannot be empty"},
		{"the innermost call", "def f():\n  prefix_rule([])\n\ndef g():\n  f()\ng()", "f:2:3: invalid pattern element: pattern cannot be empty"},
		{"an example that fails", "x = 1; prefix_rule(['a'], match=['b'])", `f:1:8: expected every example to match at least one rule. rules: ["a"]; unmatched examples: ["b"]`},
		{"a NUL in an example", `prefix_rule(['a'], not_match=[['a', '\0']])`, "f:1:1: expected example to not match rule `a`: unable to render example"},
		{"an invalid sandbox", `prefix_rule(['a'], sandbox='none')`, "f:1:1: invalid rule: sandbox must be one of read-only, workspace-write, outside (got none)"},
		{"a seventh argument", `prefix_rule(['a'], 'allow', [], [], 'x', True, 'outside')`, "f:1:1: prefix_rule: got 7 positional arguments, want at most 6"},
		{"None for a string", `prefix_rule(['a'], justification=None)`, "f:1:1: prefix_rule: for parameter \"justification\": got NoneType, want string"},

		{"endless loop", "def f():\n  for i in range(1 << 20):\n    for j in range(1 << 20):\n      pass\nf()", "f:3:5: the file takes more than 10000000 steps; is there a loop without end?"},
		{"endless range", "for i in range(1 << 40): pass", "f:1:10: range of 1099511627776 elements: a loop over it takes more than 10000000 steps"},
		{"endless recursion", "def f(): f()\nf()", "f:1:10: Starlark stack overflow"},
		{"a large product", "x = [[0] * (1 << 29)]", "f:1:10: the product has more than 1048576 elements"},
		{"a large product of a name", "x = 'a'\nx *= 1 << 30", "f:2:3: the product has more than 16777216 elements"},
		{"a large number", "x = 2\nfor i in range(99): x = x * x", "f:2:27: the product has more than 65536 bits"},
		{"a large element", "x = ['a']\nx[0] *= 3", "f:2:6: *= is for names only; use x[i] = x[i] * y"},
		{"too many rules", "x = ['a'] * (1 << 20)\nprefix_rule([x, 'b'])", "f:2:1: the rules and examples of the file have more than 1048576 words or 16 MiB; split the file"},
		{"too long a pattern", "prefix_rule(['a'] * 1001)", "f:1:1: invalid pattern element: pattern has more than 1000 elements"},
		{"brackets", strings.Repeat("[", 1<<21), "f:1:10001: the expression is nested too deep; split it"},
		{"signs", "x = " + strings.Repeat("-", 1<<21) + "1", "f:1:10003: the expression is nested too deep; split it"},
		{"conditions", "if x: pass\n" + strings.Repeat("elif x: pass\n", 1<<17), "f:9998:9: the expression is nested too deep; split it"},
		{"size", "#" + strings.Repeat("x", MaxFile), "f: the file has more than 4 MiB; split it"},

		{"f-strings", "a = 'A'\nb = [2]\nx = [f'{a}', f\"{{{b[0]}}}\", fr'{ a.lower() }\\d', f'''{a}\n{b[0] * 2}''', f'x', f'\\q{a}\\x41']; prefix_rule(x, match = [['A', '{2}', 'a\\\\d', 'A\\n4', 'x', '\\\\qAA']])", ""},
		{"a call behind f-strings", "a = f'é{1 + 1}{2}'; b = f'{a}'; prefix_rule([])", "f:1:33: invalid pattern element: pattern cannot be empty"},
		{"a name in an f-string", "x = 1\ny = f'{nope}'", "f:2:"},
		{"arguments in an f-string", "x = {}\ny = f'{**x}'", "f:2:"},
		{"strings in an f-string", "x = {'k': 'v'}\ny = f'{x[\"k\"]}'\nz = f\"{x['k'] + '-'}\"\nprefix_rule([y, z], match = ['v v-'])", ""},
		{"a list in an f-string", "y = [f'{[x,y]}']", `f:1:8: only short expressions of names, indexes, calls and sums are supported in f-strings; use "{}".format(x)`},
		{"a conversion in an f-string", "y = f'{x!r}'", "f:1:7: only short"},
		{"no expression in an f-string", "y = f'{}'", "f:1:7: only short"},
		{"half an f-string", "y = f'{x'", "f:1:7: only short"},
		{"a brace in an f-string", "y = f'a}'", "f:1:8: only short"},
		{"F-string", "x = 1\ny = [F'{x}']", "f:2:12: got string literal, want ']'"},
		{"annotation of a variable", "x: str = 'a'", "f:1:3: got ':', want newline; type annotations are not supported, remove them"},
		{"annotation of a result", "def f() -> None:\n  pass", "f:1:10: got '-', want ':'; type annotations are not supported, remove them"},
		{"escapes of codex", "x = [\"\\q\", '\\xe9\\377\\7', r\"\\q\", '\\\\d', '''\\\n\\.''', \"\\é\"]; prefix_rule(x, match = [['\\\\q', \"éÿ\\a\", r'\\q', r'\\d', r'\\.', r'\\é']])", ""},
		{"a call behind escapes", `x = "é\q\xff\300"; prefix_rule([])`, "f:1:20: invalid pattern element: pattern cannot be empty"},
		{"a call behind escapes of other lines", "x = '\\q'\nx = '\\q'; y = '''\\q\n\\q'''; prefix_rule([])", "f:3:8: invalid pattern element: pattern cannot be empty"},
		{"many escapes", "x = '" + strings.Repeat("\\q", 1<<20) + "'", "f:1:5: the file has more than 10000 f-strings and escapes that stand for themselves; use .format and two backslashes"},
		{"half an escape", `x = "\x4"`, `f:1:5: `},
		{"open bracket", "x = [\n1,\n", "f:1:5: '[' is not closed"},
		{"tab in the indentation", "def f():\n\tpass", "f:1:9: tabs are not allowed: the next line is indented with one; use spaces"},
		{"tab in the first line", "\tx = 1", "f:1:1: tabs are not allowed; use spaces"},
		{"tab in a line", "x =\t1", "f:1:4: tabs are not allowed; use spaces"},
		{"tab in brackets", "x = [\n\t1]", "f:2:1: tabs are not allowed; use spaces"},
		{"tab behind a statement", "x = 1\t# x", "f:1:6: tabs are not allowed; use spaces"},
		{"tabs where they do not count", "x = 1\n\t\n\t# a\tb\ny = '\t' # \t\n\t", ""},
		{"byte order mark", "\xef\xbb\xbfx = 1", "f:1:1: byte order mark at the beginning of the file; save it as UTF-8 without one"},
		{"invalid UTF-8", "x = 1\ny = '\xff'", "f:2:6: stream did not contain valid UTF-8"},
		{"NUL", "x = 1\n# \x00", "f:2:3: NUL byte in the file; remove it"},
		{"carriage return", "x = 1\ry = 2", "f:1:6: carriage return without a line feed; remove it"},
		{"CRLF", "def f():\r\n  x = '''a\r\nb'''\r\n  prefix_rule([x])\r\nf()\r\n", ""},
		{"a line end in a string", "x = 'a\\\r\n[[[['", ""},
		{"print", "print('x')", "f:1:1: undefined: print"},
		{"print of one's own", "def print(x): pass\nprint(1)", ""},
		{"set", "x = set()", "f:1:5: this Starlark dialect does not support sets"},
		{"load", "load('a', 'b')", "f:1:1: load not implemented by this application"},
		{"fail below a built-in", "def f(x):\n  fail('a')\nsorted([1], key=f)", "f:2:3: fail: a"},
		{"products that are small", "x = [1] * 2\nx *= 2\ny = 2 * 'a' + '-' * 0\nz = 1.5 * 2\nprefix_rule(x[4:] or ['a' * 2])", ""},
		{"a product of a string and a string", "x = 'a' * 'b'", "f:1:9: unknown binary op: string * string"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse("f", []byte(test.text))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, test.want) || got != "" && test.want == "" {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

func TestStack(t *testing.T) {
	for text, want := range map[string]string{
		"def f():\n  prefix_rule([])\ndef g():\n  f()\ng()": "f:5:1 <module>, f:4:3 g, f:2:3 f",
		"x = [\n  nope()]":                      "",
		"def f(): f()\nf()":                     "f:2:1 <module>" + strings.Repeat(", f:1:10 f", 19),
		"[prefix_rule(1) for x in 'a'.elems()]": "f:1:2 <module>",
	} {
		var e *LoadError
		if _, err := Parse("f", []byte(text)); !errors.As(err, &e) {
			t.Fatalf("%q: %v", text, err)
		}
		var got []string
		for _, frame := range e.Stack {
			got = append(got, frame.String()+" "+frame.Function)
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSplitWords(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
		ok   bool
	}{
		{"git push", []string{"git", "push"}, true},
		{" a\tb\nc ", []string{"a", "b", "c"}, true},
		{"a\rb c\u00a0d", []string{"a\rb", "c\u00a0d"}, true},
		{`'a b' "c d" e\ f`, []string{"a b", "c d", "e f"}, true},
		{`"\$\a\"" '\'`, []string{`$\a"`, `\`}, true},
		{"a\"b\"'c' '' \"\"", []string{"abc", "", ""}, true},
		{"a#b # c\nd", []string{"a#b", "d"}, true},
		{"a | b; c>d", []string{"a", "|", "b;", "c>d"}, true},
		{"a\\\nb", []string{"ab"}, true},
		{"# only", nil, true},
		{"", nil, true},
		{"'a", nil, false},
		{`"a`, nil, false},
		{`a\`, nil, false},
	} {
		got, err := splitWords(test.line)
		if !slices.Equal(got, test.want) || (err == nil) != test.ok {
			t.Errorf("%q: %q, %v; want %q", test.line, got, err, test.want)
		}
	}
}

func TestNormalHost(t *testing.T) {
	for _, test := range []struct{ raw, host, problem string }{
		{"api.example.com", "api.example.com", ""},
		{" API.Example.com.:443 ", "api.example.com", ""},
		{"É.example", "É.example", ""},
		{"[::1]:80", "::1", ""},
		{"[::1]", "::1", ""},
		{"::1", "::1", ""},
		{"a:b:c", "a:b:c", ""},
		{"a:", "a:", ""},
		{":80", ":80", ""},
		{"a:http", "a:http", ""},
		{"", "", "cannot be empty"},
		{"...", "", "cannot be empty"},
		{".:80", "", "cannot be empty"},
		{"[]", "", "cannot be empty"},
		{"https://a", "", "must be a hostname or IP literal (without scheme or path)"},
		{"*/", "", "must be a hostname or IP literal (without scheme or path)"},
		{"[a/", "", "must be a hostname or IP literal (without scheme or path)"},
		{"[::1", "", "has an invalid bracketed IPv6 literal"},
		{" [::1]x ", "", "contains an unsupported suffix:  [::1]x "},
		{"[::1]:", "", "contains an unsupported suffix: [::1]:"},
		{"a *", "", "must be a specific host; wildcards are not allowed"},
		{"a b", "", "cannot contain whitespace"},
		{"a\u00a0b", "", "cannot contain whitespace"},
	} {
		if host, problem := normalHost(test.raw); host != test.host || problem != test.problem {
			t.Errorf("%q: %q, %q; want %q, %q", test.raw, host, problem, test.host, test.problem)
		}
	}
}

func TestCanonical(t *testing.T) {
	for _, test := range []struct {
		pattern, word string
		same          bool
	}{
		{"GIT", "git", true}, {"SS", "ß", true}, {"fi", "\ufb01", true}, {"e\u0301", "\u00e9", true}, {"\u212b", "å", true},
		{"\u212a", "k", true}, {"ς", "Σ", true}, {"i\u0307", "İ", true}, {"Stra\u00dfe", "STRASSE", true}, {"ẞ", "ss", true},
		{"git", "ｇｉｔ", false}, {"git", "g\u200bit", false}, {"git", "g\u00adit", false}, {"i", "ı", false}, {"git", "git ", false}, {"git", "git.exe", false},
	} {
		set, err := Parse("f", []byte("prefix_rule(['"+test.pattern+"'], canonical_matching = True)"))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(set.Check([]string{test.word, "x"}).Matches) == 1; got != test.same {
			t.Errorf("%q and %q: %v", test.pattern, test.word, got)
		}
	}
}

// TestFold compares the folding of every letter with that of golang.org/x/text.
func TestFold(t *testing.T) {
	same := map[string]rune{} // the first letter with a folding, as golang.org/x/text has it
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || !unicode.IsGraphic(r) || unicode.Is(unicode.Cherokee, r) {
			continue // they fold both cases of Cherokee, each to the other
		}
		theirs := norm.NFD.String(cases.Fold().String(norm.NFD.String(string(r))))
		first, ok := same[theirs]
		if !ok {
			same[theirs], first = r, r
		}
		if fold(string(r)) != fold(string(first)) {
			t.Errorf("%q (%U) is not %q (%U)", r, r, first, first)
		}
		if n := len([]rune(theirs)); n > 1 && fold(string(r)) != fold(theirs) {
			t.Errorf("%q (%U) is not %q", r, r, theirs)
		}
	}
	ours := map[string]string{}
	for theirs, r := range same {
		if other, ok := ours[fold(string(r))]; ok {
			t.Errorf("%q and %q are the same", theirs, other)
		}
		ours[fold(string(r))] = theirs
	}
}

func FuzzParse(f *testing.F) {
	for _, r := range vectors(f) {
		for _, source := range readAll(r.Rules) {
			f.Add(string(source.Text))
		}
	}
	f.Add("x = [1] * 2\nx *= 3\nhost_executable('a', ['/a'])\nnetwork_rule('h', 'https', 'deny')")
	f.Add("'''\\\r\n'''\t# x\n\t\nif x:\n  [lambda: -y for y in {}]")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Parse("f", []byte(text))
		if (set == nil) != (err != nil) {
			t.Fatalf("%v, %v", set, err)
		}
		if err != nil {
			if strings.Contains(err.Error(), interpreterFailed) {
				t.Error(err)
			}
			return
		}
		for _, r := range set.rules { // what is in a Set matches itself
			argv := make([]string, len(r.pattern))
			for i := range argv {
				argv[i] = r.pattern[i][0]
			}
			if len(set.Check(argv).Matches) == 0 {
				t.Errorf("no rule for %q", argv)
			}
		}
	})
}

func FuzzSplitWords(f *testing.F) {
	for _, line := range []string{"a 'b c' \"d\\\"e\" # f", "\\", "a\\\nb", "''"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words, err := splitWords(line)
		if err != nil {
			return
		}
		for _, word := range words {
			if strings.ContainsRune(word, 0) {
				return
			}
		}
		if again, err := splitWords(JoinWords(words)); err != nil || !slices.Equal(words, again) {
			t.Errorf("%q became %q, then %q, %v", line, words, again, err)
		}
	})
}

func FuzzNormalHost(f *testing.F) {
	for _, host := range []string{"a.b.:80", "[::1]:80", "*", "a b", "A:"} {
		f.Add(host)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		host, problem := normalHost(raw)
		if (host == "") == (problem == "") {
			t.Fatalf("%q: %q, %q", raw, host, problem)
		}
		if strings.ContainsAny(host, "*/?# \t\n") || strings.HasSuffix(host, ".") ||
			strings.ToLower(host) != host && strings.Map(asciiLower, host) != host {
			t.Errorf("%q became %q", raw, host)
		}
	})
}

// TestMaxTime: a file is executed for 10 seconds at most. The clock moves before the execution only.
func TestMaxTime(t *testing.T) {
	for late, want := range map[time.Duration]string{9 * time.Second: "",
		11 * time.Second: "the file takes longer than 10s"} {
		synctest.Test(t, func(t *testing.T) {
			p, thread := newProgram("f"), &starlark.Thread{}
			p.watch(thread)
			<-time.After(late)
			_, err := starlark.ExecFileOptions(&dialect, thread, "f", "x = [i for i in range(100)]", nil)
			if p.limit != want || (err != nil) != (want != "") {
				t.Errorf("after %v: %q, %v", late, p.limit, err)
			}
		})
	}
}

// TestMaxMemory: a file takes a limited amount of memory.
func TestMaxMemory(t *testing.T) {
	if maxMemory != 256<<20 {
		t.Errorf("a file may take %d bytes", maxMemory)
	}
	defer func(d time.Duration, n uint64) { maxTime, maxMemory = d, n }(maxTime, maxMemory)
	maxTime, maxMemory = time.Hour, 8<<20
	_, err := execute("f", []byte("x = []\nfor i in range(4000): x += ['a' * (1 << 16)]"))
	// When memory is looked at decides which part of the line it is.
	want := regexp.MustCompile(`^f:2:\d+: the file takes more than 8 MiB of memory`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("%v, want %s", err, want)
	}
}
