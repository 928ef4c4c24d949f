// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"reflect"
	"testing"
)

// checkPlain compares the reader of plain texts with the interpreter, and reports whether the
// text is plain.
func checkPlain(t *testing.T, text string) bool {
	t.Helper()
	source, err := scan("f", []byte(text))
	if err != nil {
		return false
	}
	fast := newProgram("f")
	if !fast.plain(string(source.text)) {
		return false
	}
	slow, err := interpret("f", source)
	if err != nil {
		t.Errorf("%q: the interpreter says %v", text, err)
		return true
	}
	for _, pair := range [][2]any{{fast.rules, slow.rules}, {fast.examples, slow.examples},
		{fast.hosts, slow.hosts}, {fast.networks, slow.networks}, {fast.words, slow.words}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%q: %v, the interpreter says %v", text, pair[0], pair[1])
		}
	}
	return true
}

func TestPlain(t *testing.T) {
	for _, test := range []struct {
		text  string
		plain bool
	}{
		{"", true},
		{"# x\n\n", true},
		{`prefix_rule(pattern=["a", "b c"], decision="allow")`, true},
		{`prefix_rule(pattern = [ "a", ["b","c é"] ], match = [["a"]])` + "\n", true},
		{`prefix_rule(pattern=["a"], )`, true},
		{`network_rule(host="h", protocol="https", decision="deny")` + "\r\n", true},
		{`host_executable(name="a", paths=["/a"])` + "\n\n# x\n", true},
		{`prefix_rule(pattern=["a"]) # why`, true},
		{"# x\n\nprefix_rule(\n  pattern = [\"a\"], # y\n  match=[[\"a\"]],\n) # z\n \nprefix_rule(pattern=[\"b\"])", true},
		{` prefix_rule(pattern=["a"])`, false},
		{`prefix_rule(pattern=["a"])prefix_rule(pattern=["b"])`, false},
		{`prefix_rule(pattern=["a"]) prefix_rule(pattern=["b"])`, false},
		{`prefix_rule(pattern=["a"]); prefix_rule(pattern=["b"])`, false},
		{"prefix_rule(pattern=[\"a\"])\n prefix_rule(pattern=[\"b\"])", false},
		{`prefix_rule(pattern=["a"] decision="allow")`, false},
		{`prefix_rule(pattern=["a"],, decision="allow")`, false},
		{`prefix_rule(,pattern=["a"])`, false},
		{`prefix_rule(pattern=["a"], canonical_matching=True)`, false},
		{`prefix_rule(pattern=["a\\n"])`, false},
		{`prefix_rule(pattern=["a"], justification=null)`, false},
		{`prefix_rule(pattern=["a"], justification=1)`, false},
		{`prefix_rule(pattern=["a"], pattern=["b"])`, false},
		{`prefix_rule(pattern=["a" "b"])`, false},
		{`prefix_rule(pattern=["a",])`, false},
		{`prefix_rule(pattern=["a"]) + prefix_rule(pattern=["b"])`, false},
		{`prefix_rule(pattern=["a"])(decision="allow")`, false},
		{`prefix_rule(pattern=["a"]`, false},
		{`prefix_rule(pattern)`, false},
		{`prefix_rule()`, false},
		{"prefix_rule(pattern=[\n\"a\"])", true},
		{"prefix_rule(pattern=[ # x\n\"a\"])", false},
		{"\"\"\"\nprefix_rule(pattern=[\"a\"])\n\"\"\"", false},
		{"prefix_rule(['a'])", false},
		{"prefix_rule(['a']); prefix_rule(['b'])", false},
		{" prefix_rule(['a'])", false},
		{"prefix_rule(['a']) prefix_rule(['b'])", false},
		{"prefix_rule(['a'],,)", false},
		{"prefix_rule(,['a'])", false},
		{"prefix_rule(['a' 'b'])", false},
		{"prefix_rule([,])", false},
		{"prefix_rule(['''a'''])", false},
		{"prefix_rule([r'a'])", false},
		{"prefix_rule(['\\n'])", false},
		{"prefix_rule(['a\nb'])", false},
		{"prefix_rule(decision='allow', ['a'])", false},
		{"prefix_rule(['a'] + ['b'])", false},
		{"prefix_rule(['a']).x", false},
		{"prefix_rule", false},
		{"prefix_rule(['a']", false},
		{"prefix_rule([])", false},
		{"prefix_rule(['a'], ['b'], pattern=['a'])", false},
		{"print('a')", false},
		{"x = 1", false},
	} {
		if got := checkPlain(t, test.text); got != test.plain {
			t.Errorf("%q: %v", test.text, got)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, r := range vectors(f) {
		for _, source := range readAll(r.Rules) {
			f.Add(string(source.Text))
		}
	}
	f.Add("prefix_rule([\"a\", ['b',],], canonical_matching=True, match = ['a b']) # c\n\nhost_executable(\n name='a', paths=['/a'])")
	f.Fuzz(func(t *testing.T, text string) { checkPlain(t, text) })
}
