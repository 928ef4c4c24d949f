// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package syntax

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	full "github.com/pelletier/go-toml/v2"
)

// dump writes items as "LINE:COL KEY LINE:COL VALUE".
func dump(items []TOMLItem) (lines []string) {
	for _, i := range items {
		lines = append(lines, fmt.Sprintf("%d:%d %s %s", i.Pos.Line, i.Pos.Column, i.Key(), show(i.Value)))
	}
	return lines
}

func show(v TOMLValue) string {
	text := fmt.Sprintf("%d:%d ", v.Pos.Line, v.Pos.Column)
	switch v.Kind {
	case Table:
		return text + "{" + strings.Join(dump(v.Items), "; ") + "}"
	case Array:
		parts := make([]string, len(v.List))
		for i, e := range v.List {
			parts[i] = show(e)
		}
		return text + "[" + strings.Join(parts, ", ") + "]"
	case String:
		return text + QuoteTOML(v.Text)
	}
	return text + v.Text
}

func TestParseTOML(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"comments", "# a\n\n  # b", nil},
		{"a string", "a = \"b\"", []string{`1:1 a 1:5 "b"`}},
		{"escapes", `a = "\t\u00e9\""`, []string{`1:1 a 1:5 "\té\""`}},
		{"a literal string", `a = '\n'`, []string{`1:1 a 1:5 "\\n"`}},
		{"lines", "a = \"\"\"\nx\ny\"\"\"\nb = 1", []string{`1:1 a 1:5 "x\ny"`, "4:1 b 4:5 1"}},
		{"numbers", "a = 1_000\nb = -1.5\nc = 0x1F\nd = inf", []string{"1:1 a 1:5 1000", "2:1 b 2:5 -1.5", "3:1 c 3:5 0x1F", "4:1 d 4:5 inf"}},
		{"a date", "a = 1979-05-27", []string{"1:1 a 1:5 1979-05-27"}},
		{"columns in characters", "\"é\" = [\"ü\", 'x']", []string{`1:1 "é" 1:1 [1:8 "ü", 1:13 "x"]`}},
		{"a wide character", "a = \"😀\" # 😀\nb = 2", []string{`1:1 a 1:5 "😀"`, "2:1 b 2:5 2"}},
		{"CRLF", "a = 1\r\n\r\n[t]\r\nb = 2\r\n", []string{"1:1 a 1:5 1", "3:2 t 3:2 {}", "4:1 t.b 4:5 2"}},
		{"headers", "[a.b]\nc = 1\n[a]\nd = 2", []string{"1:4 a.b 1:4 {}", "2:1 a.b.c 2:5 1", "3:2 a 3:2 {}", "4:1 a.d 4:5 2"}},
		{"dotted keys", "a.b.c = 1\na.b.d = 2\na.e = 3", []string{"1:5 a.b.c 1:9 1", "2:5 a.b.d 2:9 2", "3:3 a.e 3:7 3"}},
		{"a header below a dotted key", "[a]\nb.c = 1\n[a.b.d]", []string{"1:2 a 1:2 {}", "2:3 a.b.c 2:7 1", "3:6 a.b.d 3:6 {}"}},
		{"an inline table", "a = { b = 1, c.d = 2 }", []string{"1:1 a 1:1 {}", "1:7 a.b 1:11 1", "1:16 a.c.d 1:20 2"}},
		{"tables in an array", "a = [{ b = 1 }, { b.c = [{}] }]", []string{"1:1 a 1:1 [1:6 {1:8 b 1:12 1}, 1:17 {1:21 b.c 1:21 [1:26 {}]}]"}},
		{"quoted keys", `"a.b" = 1` + "\n'c d'.e = 2", []string{`1:1 "a.b" 1:9 1`, `2:7 "c d".e 2:11 2`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			items, err := ParseTOML([]byte(tt.text))
			if got := dump(items); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"twice", "a = 1\nb = 2\na = 3", "3:1: a is defined twice, first in line 1; remove one"},
		{"twice, quoted", "a = 1\n\"a\" = 3", "2:1: a is defined twice, first in line 1; remove one"},
		{"header twice", "[a]\n[a]", "2:2: a is defined twice, first in line 1; remove one"},
		{"header of a value", "a = 1\n[a]", "2:2: a is defined twice, first in line 1; remove one"},
		{"header below a value", "a = 1\n[a.b]", "2:4: nothing can be added to a here, line 1 has it; write its keys there"},
		{"header of dotted keys", "a.b = 1\n[a]", "2:2: a is defined twice, first in line 1; remove one"},
		{"a dotted key into a header", "[a.b]\nc = 1\n[a]\nb.d = 2", "4:3: nothing can be added to a.b here, line 1 has it; write its keys there"},
		{"inline over implied", "[x.a.b]\n[x]\na = {}", "3:1: x.a is defined twice, first in line 1; remove one"},
		{"into an inline table", "a = { b = 1 }\na.c = 2", "2:3: nothing can be added to a here, line 1 has it; write its keys there"},
		{"header into an inline table", "a = { b = {} }\n[a.b.c]", "2:6: nothing can be added to a here, line 1 has it; write its keys there"},
		{"twice in an inline table", "a = { b = 1, b = 2 }", "1:14: a.b is defined twice, first in line 1; remove one"},
		{"twice in a table in an array", "a = [{ b = 1, b = 2 }]", "1:15: b is defined twice, first in line 1; remove one"},
		{"an array of tables", "[[a.b]]", "1:5: [[a.b]] makes an array of tables, and no key is one; write [a.b]"},
		{"a byte order mark", "\ufeffa = 1", "1:1: the text begins with a byte order mark; remove it"},
		{"not UTF-8", "a = 1\nb = \"é\xff\"", "2:7: the text is not UTF-8"},
		{"a surrogate", "a = \"\xed\xa0\x80\"", "1:6: the text is not UTF-8"},
		{"too large", strings.Repeat("#", MaxTOML+1), "1:1: the file is larger than 256 KiB"},
		{"many parts", strings.Repeat("a.", maxDepth) + "a = 1", "1:33: the key has more than 16 parts"},
		{"deep arrays", "a = " + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), "1:1: arrays are nested too deep"},
		{"deep tables", "a = " + strings.Repeat("{a=", 10_000) + "1" + strings.Repeat("}", 10_000), "1:51: the key has more than 16 parts"},
		{"deep tables and arrays", "a = " + strings.Repeat("[{a=", 10_000) + "1" + strings.Repeat("}]", 10_000), ""},
		{"NUL in a string", "a = \"\x00\"", "1:6: "},
		{"NUL in a comment", "# \x00", "1:3: "},
		{"NUL", "\x00", "1:1: "},
		{"no value", "a =", "1:3: expected value, not end of input"},
		{"no end", "a = \"b", "1:"},
		{"a bare carriage return", "a = 1\rb = 2", "1:"},
		{"an unknown escape", `a = "\q"`, "1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			items, err := ParseTOML([]byte(tt.text))
			var at *TOMLError
			if items != nil || !errors.As(err, &at) || !strings.HasPrefix(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("%d items, %v; want %q", len(items), err, tt.want)
			}
		})
	}
}

// TestParseTime: no text of the greatest size takes long, whatever it repeats.
func TestParseTime(t *testing.T) {
	const most = 10 * time.Second // 500 times what it takes; a square of the size would be minutes
	for _, part := range []string{"[", "{a=", "a=1\n", "a.", "1,", "x = [" +
		strings.Repeat("1,", MaxTOML/2-8) + "]", "é", "[a]\n", "\"", "'''"} {
		text := strings.Repeat(part, MaxTOML/len(part))
		for _, before := range []string{"", "a = ["} {
			start := time.Now()
			_, _ = ParseTOML([]byte(before + text)[:min(MaxTOML, len(before)+len(text))])
			if took := time.Since(start); took > most {
				t.Errorf("%q after %q takes %v", part[:min(len(part), 9)], before, took)
			}
		}
	}
}

// notOurs are texts that the full decoder refuses and this reader takes: values that no key
// takes, and that are refused by their kind or text later.
func notOurs(text string) bool {
	items, _ := ParseTOML([]byte(text))
	var odd func(TOMLValue) bool
	odd = func(v TOMLValue) bool {
		for _, e := range v.List {
			if odd(e) {
				return true
			}
		}
		for i := range v.Items {
			if odd(v.Items[i].Value) {
				return true
			}
		}
		return v.Kind == Date || v.Kind == Number // such as 1e999, or February 30
	}
	for i := range items {
		if odd(items[i].Value) {
			return true
		}
	}
	return false
}

func FuzzParseTOML(f *testing.F) {
	for _, s := range []string{
		"a = 1", "[a]\nb.c = \"x\"\n[a.b.d]", "a = { b = [1, {c = true}] }", "a.b = 1\n[a]",
		"[a.b]\n[a]\nb.c = 1", "\"\" = ''",
		"a = \"\"\"\\\n  x\"\"\"", "é = 1", "[[a]]", "a = 1979-05-27T07:32:00Z", "a = [\n# x\n1,\n]",
		"x.a.b=1\nx.a={}", "[x.a.b]\n[x]\na={}", "a={b.c=1,b.d=2}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		items, err := ParseTOML([]byte(s))
		again, other := ParseTOML([]byte(s))
		if !reflect.DeepEqual(items, again) || fmt.Sprint(err) != fmt.Sprint(other) {
			t.Fatal("not the same twice")
		}
		lines := strings.Split(s, "\n")
		inside := func(p TOMLPos) {
			if p.Line < 1 || p.Line > len(lines) || p.Column < 1 ||
				p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 {
				t.Errorf("%v is not in %q", p, s)
			}
		}
		if err != nil {
			var at *TOMLError
			if !errors.As(err, &at) {
				t.Fatalf("%T", err)
			}
			inside(at.TOMLPos)
			return
		}
		for i := range items {
			inside(items[i].Pos)
			inside(items[i].Value.Pos)
		}
		var all map[string]any
		if bad := full.Unmarshal([]byte(s), &all); bad != nil && !notOurs(s) {
			t.Errorf("%q is accepted, and the full decoder says %v", s, bad)
		}
	})
}

// TestQuote: what is quoted reads as it was.
func TestQuote(t *testing.T) {
	for _, s := range []string{"", `a"b\c`, "a\nb\tc\x00\x1f\x7f", "é😀"} {
		items, err := ParseTOML([]byte("a = " + QuoteTOML(s)))
		if err != nil || items[0].Value.Text != s {
			t.Errorf("%q: %v, %v", s, items, err)
		}
	}
	if got := JoinKeys([]string{"a", "b c", ""}); got != `a."b c".""` {
		t.Error(got)
	}
}
