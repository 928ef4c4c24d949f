// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Limits of what one reader can hold: lines of a file and of a function.
const (
	maxFileLines     = 600
	maxFuncLines     = 65
	maxTestFuncLines = 80 // of test files, whose functions are often tables
)

// header is how every Go file begins.
const header = "// Copyright 2026 The sallyport Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"

// skipRoom is the only room that may skip tests.
const skipRoom = "internal/test/testenv"

// The names of the rules, as findings and waivers spell them.
const (
	ruleHeader     = "license header"
	ruleFileLines  = "file length"
	ruleFuncLines  = "function length"
	ruleInit       = "no init"
	ruleGOOS       = "no runtime.GOOS"
	ruleSleep      = "no time.Sleep"
	ruleSkip       = "no skip"
	ruleTypeName   = "type name"
	rulePackageDoc = "package comment"
)

// A source is one parsed Go file. Its path is relative to the module, with slashes.
type source struct {
	path string
	text string
	file *ast.File
	fset *token.FileSet
}

// A breach is a rule that a file breaks, and how.
type breach struct {
	file, rule, what string
}

func (b breach) String() string {
	return fmt.Sprintf("%s: %s: %s", b.file, b.rule, b.what)
}

// TestSources checks every Go file of the module.
func TestSources(t *testing.T) {
	sources, err := parseSources(moduleDir(t))
	if err != nil {
		t.Fatal(err)
	}
	breaches := slices.Concat(checkSources(sources), checkPackageDocs(sources))
	for _, finding := range applyWaivers(breaches, sourceWaivers) {
		t.Error(finding)
	}
}

// parseSources reads every Go file below dir that the go command would look at.
func parseSources(dir string) ([]source, error) {
	var sources []source
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			base := entry.Name()
			if name != dir && (base[0] == '.' || base[0] == '_' || base == "testdata" || base == "vendor" ||
				base == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || !entry.Type().IsRegular() {
			return nil
		}
		inside, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		one, err := parseSource(filepath.ToSlash(inside), string(text))
		if err != nil {
			return err
		}
		sources = append(sources, one)
		return nil
	})
	return sources, err
}

// parseSource parses one file.
func parseSource(name, text string) (source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return source{path: name, text: text, file: file, fset: fset}, err
}

// checkSources returns the breaches of the rules that look at one file alone.
func checkSources(sources []source) []breach {
	var breaches []breach
	for _, s := range sources {
		add := func(rule, format string, args ...any) {
			breaches = append(breaches, breach{file: s.path, rule: rule, what: fmt.Sprintf(format, args...)})
		}
		if !strings.HasPrefix(s.text, header) {
			add(ruleHeader, "the file does not begin with the two lines of the license and an empty one")
		}
		if lines := strings.Count(s.text, "\n"); lines > maxFileLines {
			add(ruleFileLines, "%d lines, at most %d", lines, maxFileLines)
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			checkNode(s, node, add)
			return true
		})
	}
	return breaches
}

// checkNode applies the rules about one piece of syntax.
func checkNode(s source, node ast.Node, add func(rule, format string, args ...any)) {
	line := func() int { return s.fset.Position(node.Pos()).Line }
	switch node := node.(type) {
	case *ast.FuncDecl:
		name := node.Name.Name
		if name == "init" && node.Recv == nil {
			add(ruleInit, "line %d: init runs without a call", line())
		}
		most := maxFuncLines
		if strings.HasSuffix(s.path, "_test.go") {
			most = maxTestFuncLines
		}
		if lines := s.fset.Position(node.End()).Line - line() + 1; lines > most {
			add(ruleFuncLines, "%s has %d lines, at most %d", name, lines, most)
		}
	case *ast.TypeSpec:
		if emptyTypeName(node.Name.Name) {
			add(ruleTypeName, "line %d: %s says nothing about what it is", line(), node.Name.Name)
		}
	case *ast.SelectorExpr:
		left, ok := node.X.(*ast.Ident)
		if !ok {
			return
		}
		switch called := left.Name + "." + node.Sel.Name; {
		case called == "runtime.GOOS" && !slices.Contains(perOSRooms, path.Dir(s.path)):
			add(ruleGOOS, "line %d: code for one system stands in that system's file", line())
		case called == "time.Sleep":
			add(ruleSleep, "line %d: wait for the event itself, or use testing/synctest", line())
		case skips(called) && path.Dir(s.path) != skipRoom:
			add(ruleSkip, "line %d: %s hides a test; ask testenv for the fact that is missing",
				line(), called)
		}
	}
}

// skips reports whether the call, written as receiver.method, ends a test or a
// benchmark without a result. Receivers are known by their usual names.
func skips(called string) bool {
	receiver, method, _ := strings.Cut(called, ".")
	return slices.Contains([]string{"t", "b", "f", "tb"}, receiver) &&
		slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method)
}

// emptyTypeName reports whether a type is named after nothing, alone or as the
// last word of its name.
func emptyTypeName(name string) bool {
	for i, letter := range name {
		if (i == 0 || letter >= 'A' && letter <= 'Z') && emptyName(name[i:]) {
			return true
		}
	}
	return false
}

// checkPackageDocs asks every package for a comment that says what it is. A test
// file can carry it only in a package that has nothing else.
func checkPackageDocs(sources []source) []breach {
	var dirs []string
	files := map[string][]source{}
	for _, s := range sources {
		dir := path.Dir(s.path)
		if files[dir] == nil {
			dirs = append(dirs, dir)
		}
		files[dir] = append(files[dir], s)
	}
	var breaches []breach
	for _, dir := range dirs {
		candidates := slices.DeleteFunc(slices.Clone(files[dir]), func(s source) bool {
			return strings.HasSuffix(s.path, "_test.go")
		})
		if len(candidates) == 0 {
			candidates = files[dir]
		}
		if !slices.ContainsFunc(candidates, func(s source) bool { return isPackageDoc(s, dir) }) {
			breaches = append(breaches, breach{file: dir, rule: rulePackageDoc,
				what: fmt.Sprintf("package %s has no comment that begins with its name",
					candidates[0].file.Name.Name)})
		}
	}
	return breaches
}

// isPackageDoc reports whether the file of the directory dir carries the package's
// comment, in the form that go doc expects. A command is named after its directory.
func isPackageDoc(s source, dir string) bool {
	doc, name := s.file.Doc.Text(), s.file.Name.Name
	if name != "main" {
		return strings.HasPrefix(doc, "Package "+name+" ")
	}
	command := path.Base(dir) + " "
	return strings.HasPrefix(doc, "Command "+command) || strings.HasPrefix(strings.ToLower(doc), command)
}

// applyWaivers takes out the breaches that are waived and adds the waivers that
// have no reason or nothing to waive.
func applyWaivers(breaches []breach, waivers []waiver) []string {
	var findings []string
	used := make([]bool, len(waivers))
	for _, b := range breaches {
		i := slices.IndexFunc(waivers, func(w waiver) bool { return w.file == b.file && w.rule == b.rule })
		if i < 0 {
			findings = append(findings, b.String())
			continue
		}
		used[i] = true
	}
	for i, w := range waivers {
		if w.why == "" {
			findings = append(findings, fmt.Sprintf("%s: %s: the waiver has no reason", w.file, w.rule))
		}
		if !used[i] {
			findings = append(findings, fmt.Sprintf("%s: %s: the waiver is no longer needed", w.file, w.rule))
		}
	}
	return findings
}

// TestSourceChecksFind breaks every rule about one file on purpose.
func TestSourceChecksFind(t *testing.T) {
	const head = header + "package p\n\n"
	long := func(lines int) string { return strings.Repeat("\n", lines) }
	tests := []struct {
		name string
		path string // p/p.go when empty
		text string
		want string // part of the only finding; empty: none
	}{
		{name: "clean", text: head + "func F() {}\n"},
		{name: "no header", text: "package p\n", want: ruleHeader},
		{name: "another year", text: strings.Replace(head, "2026", "2025", 1), want: ruleHeader},
		{name: "header is the package comment", text: strings.Replace(head, "\n\n", "\n", 1), want: ruleHeader},
		{name: "longest file", text: head + long(maxFileLines-strings.Count(head, "\n"))},
		{name: "too long a file", text: head + long(maxFileLines), want: ruleFileLines},
		{name: "longest function", text: head + "func F() {" + long(maxFuncLines-1) + "}\n"},
		{name: "too long a function", text: head + "func F() {" + long(maxFuncLines) + "}\n", want: ruleFuncLines},
		{name: "init", text: head + "func init() {}\n", want: ruleInit},
		{name: "method init", text: head + "type T int\n\nfunc (T) init() {}\n"},
		{name: "GOOS", text: head + "import \"runtime\"\n\nvar s = runtime.GOOS\n", want: ruleGOOS},
		{name: "GOOS in a comment", text: head + "// runtime.GOOS and time.Sleep and t.Skip()\nvar s = \"runtime.GOOS\"\n"},
		{name: "GOOS in a room for systems", path: "internal/linux/x.go", text: head + "import \"runtime\"\n\nvar s = runtime.GOOS\n"},
		{name: "GOOS below a room for systems", path: "internal/linux/sub/x.go", text: head + "import \"runtime\"\n\nvar s = runtime.GOOS\n", want: ruleGOOS},
		{name: "Sleep", text: head + "import \"time\"\n\nfunc F() { time.Sleep(1) }\n", want: ruleSleep},
		{name: "Sleep in a test", path: "p/p_test.go", text: head + "import \"time\"\n\nfunc F() { time.Sleep(1) }\n", want: ruleSleep},
		{name: "Sleep as a value", text: head + "import \"time\"\n\nvar wait = time.Sleep\n", want: ruleSleep},
		{name: "Skip", path: "p/p_test.go", text: head + "func F(t T) { t.Skip(1) }\n", want: ruleSkip},
		{name: "Skipf of a benchmark", path: "p/p_test.go", text: head + "func F(b T) { b.Skipf(1) }\n", want: ruleSkip},
		{name: "Skip in testenv", path: "internal/test/testenv/x.go", text: head + "func F(t T) { t.Skip(1) }\n"},
		{name: "Skip of something else", text: head + "func F(scanner T) { scanner.Skip(1) }\n"},
		{name: "type without meaning", text: head + "type ProcessManager struct{}\n", want: ruleTypeName},
		{name: "type that only sounds like one", text: head + "type Database struct{}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			name := test.path
			if name == "" {
				name = "p/p.go"
			}
			s, err := parseSource(name, test.text)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, applyWaivers(checkSources([]source{s}), nil), test.want)
		})
	}
}

// TestPackageDocsFind looks for comments where there are none.
func TestPackageDocsFind(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{name: "comment", files: map[string]string{"p/p.go": "// Package p is here.\npackage p\n"}},
		{name: "comment in one of two", files: map[string]string{"p/a.go": "package p\n", "p/doc.go": "// Package p is here.\npackage p\n"}},
		{name: "none", files: map[string]string{"p/p.go": "package p\n"}, want: rulePackageDoc},
		{name: "detached", files: map[string]string{"p/p.go": "// Package p is here.\n\npackage p\n"}, want: rulePackageDoc},
		{name: "another name", files: map[string]string{"p/p.go": "// Package q is here.\npackage p\n"}, want: rulePackageDoc},
		{name: "only in a test", files: map[string]string{"p/p.go": "package p\n", "p/p_test.go": "// Package p is here.\npackage p\n"}, want: rulePackageDoc},
		{name: "tests alone", files: map[string]string{"p/p_test.go": "// Package p is here.\npackage p\n"}},
		{name: "command", files: map[string]string{"cmd/tool/main.go": "// Command tool does it.\npackage main\n"}},
		{name: "command by its name", files: map[string]string{"cmd/tool/main.go": "// Tool does it.\npackage main\n"}},
		{name: "command without", files: map[string]string{"cmd/tool/main.go": "package main\n"}, want: rulePackageDoc},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var sources []source
			for name, text := range test.files {
				s, err := parseSource(name, text)
				if err != nil {
					t.Fatal(err)
				}
				sources = append(sources, s)
			}
			expect(t, applyWaivers(checkPackageDocs(sources), nil), test.want)
		})
	}
}

func TestWaivers(t *testing.T) {
	long := breach{file: "p/p.go", rule: ruleFileLines, what: "900 lines"}
	tests := []struct {
		name     string
		breaches []breach
		waivers  []waiver
		want     string
	}{
		{name: "waived", breaches: []breach{long}, waivers: []waiver{{file: "p/p.go", rule: ruleFileLines, why: "a table"}}},
		{name: "another rule", breaches: []breach{long}, want: ruleFileLines},
		{name: "no reason", breaches: []breach{long}, waivers: []waiver{{file: "p/p.go", rule: ruleFileLines}}, want: "no reason"},
		{name: "stale", waivers: []waiver{{file: "p/p.go", rule: ruleFileLines, why: "a table"}}, want: "no longer needed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expect(t, applyWaivers(test.breaches, test.waivers), test.want)
		})
	}
}

// TestParseSourcesSkips looks only at files that the go command would compile.
func TestParseSourcesSkips(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.go", "sub/b.go", "testdata/c.go", ".cache/d.go", "_old/e.go",
		"sub/f.txt"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("package p\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sources, err := parseSources(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range sources {
		got = append(got, s.path)
	}
	if want := []string{"a.go", "sub/b.go"}; !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}
