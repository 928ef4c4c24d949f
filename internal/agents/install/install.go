// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install writes sallyport into the settings of agents: an MCP server, and a hook that judges what
// they run.
//
// [Prepare] reads the files and returns what would change; [Change.Apply] writes one. Nothing is written
// before, so that a person can look at [Change.Diff] first.
//
// The files belong to others. An entry is added as text, and all other bytes stay, with comments, order
// and layout. What is ours is told by its form: a program of ours, or one that was not in the file before
// the first change, which a backup keeps. Removing looks first whether the file is what installing makes of
// the backup. If so the result is the same without the removed entry, byte for byte; if not, the entry is
// cut out, and what is empty then and was not there before.
//
// A file is refused if it is not what it seems: a link, no regular file, read-only, not valid, or changed
// between reading and writing.
package install

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// DefaultName is the name of the MCP server in the settings of an agent.
const DefaultName = "sallyport"

// A Part is one of the things that an agent is given. The zero Part is the MCP server.
type Part uint8

// The parts.
const (
	MCP Part = iota
	Hook
)

// String is the part as it stands in a sentence, and the word of the command line.
func (p Part) String() string { return [...]string{"mcp", "hook"}[p] }

// Options say what to install, and where.
type Options struct {
	Agent   string
	Name    string   // of the MCP server; must not be empty
	Command string   // the program, as the agent calls it
	Extra   []string // arguments that are added
	Project bool     // in the files of the project in Dir, not in those of the user
	Force   bool     // replace an entry of the same name that is not ours
	Dir     string   // the current directory, absolute
	Home    string   // absolute
	// Variable returns a variable of the environment. Nil is an empty environment.
	Variable func(name string) string
}

func (o *Options) variable(name string) string {
	if o.Variable == nil || name == "" {
		return ""
	}
	return o.Variable(name)
}

// A RefusedError says why a file is not changed.
type RefusedError struct {
	Path         string
	Line, Column int // from 1, in characters; 0 if the reason has no place
	Why          string
	Err          error // of the system; nil if there is none
}

// Error is a sentence with the place.
func (e *RefusedError) Error() string {
	s := text.Word(e.Path)
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	return s + " is not changed: " + text.Line(e.Why)
}

// Unwrap returns the error of the system.
func (e *RefusedError) Unwrap() error { return e.Err }

// refusedAt is the error for a place in a text.
func refusedAt(txt []byte, at int, why string) *RefusedError {
	before := txt[:min(at, len(txt))]
	begin := bytes.LastIndexByte(before, '\n') + 1
	return &RefusedError{Line: bytes.Count(before, []byte("\n")) + 1,
		Column: utf8.RuneCount(bytes.TrimPrefix(before[begin:], []byte(bom))) + 1, Why: why}
}

// A spec is one entry of ours.
type spec struct {
	part  Part
	name  string // of a server
	entry entry  // that server
	line  string // the command of a hook
}

// A work is a file of an agent and what is to be done with it.
type work struct {
	*Options
	agent *agent
	toml  bool
	parts []Part // that are in the file
	// before is the text before our first change, nil for no file. Known says that there is a record of it.
	before []byte
	known  bool
}

// want returns what is to be installed.
func (w *work) want(part Part) spec {
	return spec{part: part, name: w.Name, line: hookLine(w.Command, w.agent.name, w.Extra),
		entry: entry{w.agent.kind, w.Command, append([]string{MCP.String()}, w.Extra...), w.agent.timeout}}
}

// shaped reports whether a server could be ours by its form.
func (e entry) shaped() bool { return e.Command != "" && len(e.Args) > 0 && e.Args[0] == MCP.String() }

// isOwn reports whether a program is ours by its name.
func (w *work) isOwn(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == DefaultName || program == w.Command
}

// oursServer reports whether a server of that name is ours.
func (w *work) oursServer(name string, e entry) bool {
	if !e.shaped() {
		return false
	}
	if name == DefaultName || w.isOwn(e.Command) {
		return true
	}
	_, was, err := w.server(w.before, name)
	return w.known && !was && err == nil
}

// oursHook reports whether a hook is ours.
func (w *work) oursHook(line string) bool {
	program := hookProgram(line, w.agent.name)
	return program != "" && (w.isOwn(program) || w.known && !bytes.Contains(w.before, []byte(encode(line))))
}

// server returns the server with a name in a text.
func (w *work) server(txt []byte, name string) (e entry, found bool, err error) {
	if w.toml {
		p, err := newTOMLPage(txt)
		if err != nil {
			return e, false, err
		}
		return p.entry(name)
	}
	p, err := newPage(txt)
	if err != nil {
		return e, false, err
	}
	n, rest, err := p.find([]string{w.agent.top, name})
	if err != nil || len(rest) > 0 {
		return e, false, err
	}
	return p.entry(n), true, nil
}

// entry reads a server.
func (p *page) entry(n *node) (e entry) {
	command, _ := n.member(p.text, "command")
	e.Command = command.str(p.text)
	if args, _ := n.member(p.text, "args"); args != nil {
		for _, it := range args.items {
			e.Args = append(e.Args, it.value.str(p.text))
		}
	}
	return e
}

// add writes an entry, or changes the program and arguments of the one that is there.
func (w *work) add(txt []byte, s spec) ([]byte, error) {
	switch {
	case s.part == Hook:
		return w.addHook(txt, s.line)
	case w.toml:
		return w.addTable(txt, s)
	}
	p, err := newPage(txt)
	if err != nil {
		return nil, err
	}
	path := []string{w.agent.top, s.name}
	n, rest, err := p.find(path)
	switch {
	case err != nil:
		return nil, err
	case len(rest) > 0:
		return p.put(path, encode(s.entry), false)
	case !p.entry(n).shaped():
		return splice(txt, p.replacing(n, encode(s.entry))), nil
	}
	var edits []edit
	for _, it := range n.items {
		switch old := p.entry(n); {
		case it.name == "command" && old.Command != s.entry.Command:
			edits = append(edits, p.replacing(&it.value, encode(s.entry.Command)))
		case it.name == "args" && !slices.Equal(old.Args, s.entry.Args):
			edits = append(edits, p.replacing(&it.value, encode(s.entry.Args)))
		}
	}
	return splice(txt, edits...), nil
}

// replacing is the edit that puts a value in the place of another, in as many lines.
func (p *page) replacing(n *node, value string) edit {
	if bytes.IndexByte(p.text[n.begin:n.end], '\n') >= 0 {
		value = p.render("", value, p.indent(n.begin))
	}
	return edit{n.begin, n.end, value}
}

func (w *work) addTable(txt []byte, s spec) ([]byte, error) {
	p, err := newTOMLPage(txt)
	if err != nil {
		return nil, err
	}
	old, found, err := p.entry(s.name)
	switch {
	case err != nil:
		return nil, err
	case old.same(s.entry):
		return txt, nil
	case old.shaped():
		return p.update(s.name, s.entry)
	case found:
		if txt, err = p.remove(s.name); err != nil {
			return nil, err
		}
		if p, err = newTOMLPage(txt); err != nil {
			return nil, err
		}
	}
	return p.add(s.name, s.entry)
}

// A hookPlace is where a hook is.
type hookPlace struct {
	list  *node // of groups or commands
	at    int   // in it
	group *node // the commands of the group; nil for an agent without groups
	in    int   // in group
	value *node // the command line
}

// hooks returns the hooks of ours for an event.
func (w *work) hooks(p *page, event string) (list *node, places []hookPlace, err error) {
	if list, err = p.array([]string{"hooks", event}); list == nil || err != nil {
		return nil, nil, err
	}
	add := func(place hookPlace, n *node) {
		value, _ := n.member(p.text, "command")
		if place.value = value; w.oursHook(value.str(p.text)) {
			places = append(places, place)
		}
	}
	for i := range list.items {
		n := &list.items[i].value
		if !w.agent.groups {
			add(hookPlace{list: list, at: i}, n)
			continue
		}
		commands, _ := n.member(p.text, "hooks")
		for j := 0; commands != nil && j < len(commands.items); j++ {
			add(hookPlace{list, i, commands, j, nil}, &commands.items[j].value)
		}
	}
	return list, places, nil
}

// addHook adds the hooks for all events.
func (w *work) addHook(txt []byte, line string) ([]byte, error) {
	if w.agent.version {
		p, err := newPage(txt)
		if err != nil {
			return nil, err
		}
		switch n, err := p.root.member(txt, "version"); {
		case err != nil:
			return nil, err
		case n != nil && n.kind != '0':
			return nil, p.wrongKind(n, "version", '0')
		case n == nil:
			if txt, err = p.put([]string{"version"}, "1", false); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range w.agent.events {
		p, err := newPage(txt)
		if err != nil {
			return nil, err
		}
		_, places, err := w.hooks(p, e.name)
		if err != nil {
			return nil, err
		}
		if len(places) == 0 {
			e.command.Command = line
			value := encode(e.command)
			if w.agent.groups {
				value = encode(hookGroup{e.matcher, []hookCommand{e.command}})
			}
			if txt, err = p.put([]string{"hooks", e.name}, value, true); err != nil {
				return nil, err
			}
			continue
		}
		var edits []edit
		for _, place := range places {
			if place.value.str(p.text) != line {
				edits = append(edits, edit{place.value.begin, place.value.end, encode(line)})
			}
		}
		txt = splice(txt, edits...)
	}
	return txt, nil
}

// installed returns the entries of ours in a text.
func (w *work) installed(txt []byte) (all []spec, err error) {
	for _, part := range w.parts {
		if part == Hook {
			p, err := newPage(txt)
			if err != nil {
				return nil, err
			}
			for _, e := range w.agent.events {
				_, places, err := w.hooks(p, e.name)
				if err != nil {
					return nil, err
				}
				if len(places) > 0 {
					all = append(all, spec{part: Hook, line: places[0].value.str(txt)})
					break
				}
			}
			continue
		}
		names, err := w.serverNames(txt)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			e, _, err := w.server(txt, name)
			if err == nil && w.oursServer(name, e) {
				e.Type, e.Timeout = w.agent.kind, w.agent.timeout
				all = append(all, spec{part: MCP, name: name, entry: e})
			}
		}
	}
	return all, nil
}

// serverNames returns the names of all servers in a text.
func (w *work) serverNames(txt []byte) (names []string, err error) {
	if w.toml {
		p, err := newTOMLPage(txt)
		if err != nil {
			return nil, err
		}
		for name := range p.tables {
			names = append(names, name)
		}
		slices.Sort(names)
		return names, nil
	}
	p, err := newPage(txt)
	if err != nil {
		return nil, err
	}
	n, rest, err := p.find([]string{w.agent.top})
	if err != nil || len(rest) > 0 {
		return nil, err
	}
	if n.kind != '{' {
		return nil, p.wrongKind(n, w.agent.top, '{')
	}
	for _, it := range n.items {
		names = append(names, it.name)
	}
	return names, nil
}
