// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestWalls checks the import graph of the module on every system.
func TestWalls(t *testing.T) {
	dir := moduleDir(t)
	// The sources are read here, so that a cached result of this test ends when
	// one of them changes: what go list reads, package testing does not see.
	if _, err := parseSources(dir); err != nil {
		t.Fatal(err)
	}
	for _, goos := range systems {
		t.Run(goos, func(t *testing.T) {
			t.Parallel()
			for _, finding := range checkGraph(loadGraph(t, dir, goos)) {
				t.Error(finding)
			}
		})
	}
}

// checkGraph returns what is wrong with the graph, one sentence each.
func checkGraph(graph []pkg) []string {
	checks := []func(pkg) []string{checkKnown, checkLayers, checkWalls, checkTestOnly, checkModules,
		checkTestModules, checkLoad}
	var findings []string
	for _, p := range graph {
		for _, check := range checks {
			findings = append(findings, check(p)...)
		}
	}
	return findings
}

// checkKnown asks for a line in the table, and for a name that says something.
func checkKnown(p pkg) []string {
	var findings []string
	if _, ok := layers[p.name]; !ok {
		findings = append(findings,
			fmt.Sprintf("package %s is not in the table of layers: give it a line", p.name))
	}
	last := p.name[strings.LastIndex(p.name, "/")+1:]
	if emptyName(last) {
		findings = append(findings, fmt.Sprintf("package %s: %q says nothing about what is in it",
			p.name, last))
	}
	return findings
}

// checkLayers holds the order of the layers.
func checkLayers(p pkg) []string {
	from, ok := layers[p.name]
	if !ok {
		return nil
	}
	var findings []string
	for _, path := range p.imports {
		name, inside := room(path)
		if !inside || testOnly[name] {
			continue
		}
		if to, ok := layers[name]; ok && to >= from {
			findings = append(findings,
				fmt.Sprintf("%s (layer %d) imports %s (layer %d): imports go to lower layers only",
					p.name, from, name, to))
		}
	}
	return findings
}

// checkWalls holds the forbidden edges.
func checkWalls(p pkg) []string {
	var findings []string
	for _, path := range p.imports {
		name, inside := room(path)
		if !inside {
			name = path
		}
		for _, w := range walls {
			if !matches(w.from, p.name, true) || matches(w.apart, p.name, true) {
				continue
			}
			if !matches(w.to, name, inside) || matches(w.except, name, inside) {
				continue
			}
			findings = append(findings, fmt.Sprintf("%s -> %s is forbidden: %s", p.name, name, w.reason))
		}
	}
	return findings
}

// checkTestOnly keeps rooms for tests out of everything that is no test.
func checkTestOnly(p pkg) []string {
	var findings []string
	for _, path := range p.imports {
		if name, inside := room(path); inside && testOnly[name] && !testOnly[p.name] {
			findings = append(findings, fmt.Sprintf("%s imports %s outside its tests", p.name, name))
		}
	}
	return findings
}

// checkModules gives every third-party module its room.
func checkModules(p pkg) []string {
	var findings []string
	for _, path := range p.imports {
		if _, inside := room(path); inside || standard(path) ||
			moduleOf(path, slices.Collect(maps.Keys(sharedModules))) != "" {
			continue
		}
		if moduleOf(path, slices.Collect(maps.Keys(testModules))) != "" {
			findings = append(findings, fmt.Sprintf("%s imports %s, which is for test files only",
				p.name, path))
			continue
		}
		module := moduleOf(path, slices.Collect(maps.Keys(roomModules)))
		switch {
		case module == "":
			findings = append(findings,
				fmt.Sprintf("%s imports %s, a module without a room: give it a line in the table",
					p.name, path))
		case !slices.Contains(roomModules[module], p.name):
			findings = append(findings, fmt.Sprintf("%s imports %s, which lives in %s alone", p.name, path,
				strings.Join(roomModules[module], " and ")))
		}
	}
	return findings
}

// checkTestModules lets test files import the modules for tests and, beyond those,
// what their package may import.
func checkTestModules(p pkg) []string {
	var rest []string
	for _, path := range p.testImports {
		if moduleOf(path, slices.Collect(maps.Keys(testModules))) == "" {
			rest = append(rest, path)
		}
	}
	findings := checkModules(pkg{name: p.name, imports: rest})
	for i := range findings {
		findings[i] = "tests: " + findings[i]
	}
	return findings
}

// moduleOf returns the module of the list that the import path belongs to, or
// nothing.
func moduleOf(path string, modules []string) string {
	for _, module := range modules {
		if under(path, module) {
			return module
		}
	}
	return ""
}

// checkLoad looks at everything that a room links.
func checkLoad(p pkg) []string {
	var findings []string
	for _, l := range loads {
		if l.room != p.name {
			continue
		}
		for _, path := range p.deps {
			if _, inside := room(path); !inside && matches(l.never, path, false) {
				findings = append(findings, fmt.Sprintf("%s links %s: %s", p.name, path, l.reason))
			}
		}
	}
	return findings
}

// emptyName reports whether a name belongs to those that fit everything.
func emptyName(name string) bool {
	switch strings.ToLower(name) {
	case "manager", "managers", "helper", "helpers", "util", "utils", "common", "base", "misc":
		return true
	}
	return false
}

// TestTable looks for lines of the table that mean nothing.
func TestTable(t *testing.T) {
	known := func(name string) bool { _, ok := layers[name]; return ok || name == anyRoom }
	for _, w := range walls {
		if w.reason == "" || len(w.from) == 0 || len(w.to) == 0 {
			t.Errorf("wall %+v is incomplete", w)
		}
		for _, name := range slices.Concat(w.from, w.apart) {
			if !known(name) {
				t.Errorf("wall with the unknown room %q: %s", name, w.reason)
			}
		}
	}
	for _, l := range loads {
		if !known(l.room) || l.reason == "" {
			t.Errorf("load %+v is incomplete", l)
		}
	}
	for module, rooms := range roomModules {
		for _, name := range rooms {
			if !known(name) {
				t.Errorf("module %s lives in the unknown room %q", module, name)
			}
		}
		if len(rooms) != 1 && !slices.Contains([]string{"golang.org/x/text", "golang.org/x/net/http/httpguts",
			"mvdan.cc/sh/v3"}, module) {
			t.Errorf("module %s has %d rooms, want one", module, len(rooms))
		}
	}
	for _, name := range slices.Concat(doors, sinks, perOSRooms, slices.Collect(maps.Keys(testOnly))) {
		if !known(name) {
			t.Errorf("room %q has no layer", name)
		}
	}
}

// TestChecksFind breaks every rule about imports on purpose.
func TestChecksFind(t *testing.T) {
	const m = modulePath + "/"
	tests := []struct {
		name string
		pkg  pkg
		want string // part of the only finding; empty: none
	}{
		{name: "clean room", pkg: pkg{name: "internal/linux/plan", imports: []string{"fmt", m + "sandbox", "golang.org/x/sys/unix"}}},
		{name: "clean root", pkg: pkg{name: ".", imports: []string{"context", m + "event", m + "executor/local"}}},
		{name: "clean tests", pkg: pkg{name: "sandbox", testImports: []string{"pgregory.net/rapid", m + "internal/test/testenv"}}},
		{name: "main", pkg: pkg{name: "cmd/sallyport", imports: []string{m + "internal/cli", "os"}}},
		{name: "unknown package", pkg: pkg{name: "internal/new"}, want: "give it a line"},
		{name: "upward", pkg: pkg{name: "network", imports: []string{m + "internal/linux/plan"}}, want: "layer 4) imports internal/linux/plan (layer 6)"},
		{name: "sideways", pkg: pkg{name: "internal/linux/plan", imports: []string{m + "event"}}, want: "lower layers only"},
		{name: "sandbox on anything", pkg: pkg{name: "sandbox", imports: []string{"os"}}, want: "cannot look at this one"},
		{name: "sink beside event", pkg: pkg{name: "audit", imports: []string{m + "internal/command/judge"}}, want: "a sink hears"},
		{name: "sink on event", pkg: pkg{name: "audit", imports: []string{m + "event"}}},
		{name: "launch on a module", pkg: pkg{name: "internal/linux/launch", imports: []string{"go.uber.org/goleak"}}, want: "test files only"},
		{name: "launch on std", pkg: pkg{name: "internal/linux/launch", imports: []string{"unsafe", "syscall", "golang.org/x/sys/unix"}}},
		{name: "main past the command line", pkg: pkg{name: "cmd/sallyport", imports: []string{m + "sandbox"}}, want: "main only calls"},
		{name: "root on a system call", pkg: pkg{name: ".", imports: []string{"syscall"}}, want: "root is portable"},
		{name: "raw calls that talk", pkg: pkg{name: "internal/linux/seccomp", imports: []string{"log/slog"}}, want: "stay raw"},
		{name: "testing in a room", pkg: pkg{name: "event", imports: []string{"testing"}}, want: "flags into every program"},
		{name: "testing in testenv", pkg: pkg{name: "internal/test/testenv", imports: []string{"testing"}}},
		{name: "cgo", pkg: pkg{name: "internal/linux/plan", imports: []string{"C"}}, want: "no cgo"},
		{name: "testenv outside tests", pkg: pkg{name: "internal/linux/plan", imports: []string{m + "internal/test/testenv"}}, want: "outside its tests"},
		{name: "testenv in a room for tests", pkg: pkg{name: "internal/test/e2e", imports: []string{m + "internal/test/testenv"}}},
		{name: "bench imported", pkg: pkg{name: "internal/cli", imports: []string{m + "internal/test/e2e"}}, want: "outside its tests"},
		{name: "module in a wrong room", pkg: pkg{name: "internal/linux/plan", imports: []string{"github.com/spf13/cobra"}}, want: "lives in internal/cli alone"},
		{name: "subpackage of a module", pkg: pkg{name: "internal/text", imports: []string{"golang.org/x/text/width"}}},
		{name: "name that only begins like a module", pkg: pkg{name: "internal/text", imports: []string{"golang.org/x/textual"}}, want: "module without a room"},
		{name: "unknown module", pkg: pkg{name: "internal/linux/plan", imports: []string{"example.com/left-pad"}}, want: "module without a room"},
		{name: "unknown module in tests", pkg: pkg{name: "internal/linux/plan", testImports: []string{"github.com/stretchr/testify/assert"}}, want: "tests: internal/linux/plan imports"},
		{name: "another room's module in tests", pkg: pkg{name: "event", testImports: []string{"github.com/spf13/cobra"}}, want: "lives in internal/cli alone"},
		{name: "root links a server", pkg: pkg{name: ".", deps: []string{"net/http"}}, want: "must not carry servers"},
		{name: "root links a broker", pkg: pkg{name: ".", deps: []string{"github.com/nats-io/nats.go"}}, want: "must not carry servers"},
		{name: "root links cobra", pkg: pkg{name: ".", deps: []string{"github.com/spf13/cobra"}}, want: "must not carry servers"},
		{name: "binary links testing", pkg: pkg{name: "cmd/sallyport", deps: []string{"testing"}}, want: "tests are no part of it"},
		{name: "another room links a server", pkg: pkg{name: "guardian", deps: []string{"net/http"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expect(t, checkGraph([]pkg{test.pkg}), test.want)
		})
	}
}

// TestChecksFindTwice is for edges that more than one rule forbids: the reason of
// the named wall must be among the findings.
func TestChecksFindTwice(t *testing.T) {
	const m = modulePath + "/"
	tests := []struct {
		name string
		pkg  pkg
		want string
	}{
		{name: "room on root", pkg: pkg{name: "internal/linux", imports: []string{modulePath}}, want: "the root tells the story"},
		{name: "door on door", want: "a door translates",
			pkg: pkg{name: "internal/server/console", imports: []string{m + "internal/fleet/gateway"}}},
		{name: "launch on a room", pkg: pkg{name: "internal/linux/launch", imports: []string{m + "sandbox"}}, want: "no Go runtime"},
		{name: "sandbox on a room", pkg: pkg{name: "sandbox", imports: []string{m + "internal/strict"}}, want: "rest on nothing"},
		{name: "sink on a sink", pkg: pkg{name: "audit", imports: []string{m + "recording"}}, want: "a sink hears"},
		{name: "package name without meaning", pkg: pkg{name: "internal/util"}, want: "says nothing"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			findings := checkGraph([]pkg{test.pkg})
			if !slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, test.want) }) {
				t.Errorf("findings %q, want one with %q", findings, test.want)
			}
		})
	}
}

// TestDecodeGraph reads what go list writes, packages without files included.
func TestDecodeGraph(t *testing.T) {
	const stream = `{"ImportPath": "` + modulePath + `", "Imports": ["fmt"], "Deps": ["fmt", "io"]}
{"ImportPath": "` + modulePath + `/event", "TestImports": ["testing"], "XTestImports": ["fmt", "testing"]}
{"ImportPath": "` + modulePath + `/internal/empty", "Error": {"Err": "no Go files"}}`
	graph, err := decodeGraph([]byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	want := []pkg{
		{name: ".", imports: []string{"fmt"}, deps: []string{"fmt", "io"}},
		{name: "event", testImports: []string{"fmt", "testing"}},
	}
	if got, want := fmt.Sprintf("%+v", graph), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("graph %s\nwant  %s", got, want)
	}
	for _, broken := range []string{`{"ImportPath": "example.com/other"}`, `{"ImportPath"`} {
		if _, err := decodeGraph([]byte(broken)); err == nil {
			t.Errorf("no error for %s", broken)
		}
	}
}

// expect compares findings with the one that is wanted, or with none.
func expect(t *testing.T, findings []string, want string) {
	t.Helper()
	switch {
	case want == "" && len(findings) > 0:
		t.Errorf("findings %q, want none", findings)
	case want != "" && (len(findings) != 1 || !strings.Contains(findings[0], want)):
		t.Errorf("findings %q, want exactly one with %q", findings, want)
	}
}
