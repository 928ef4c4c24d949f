// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install writes sallyport into the settings of agents: an MCP server, and a hook that judges what
// they run.
//
// [Prepare] reads the files and returns what would change; [Change.Apply] writes one. Nothing is written
// before, so that a person can look at [Change.Diff] first.
//
// The files belong to others. An entry is added as text, and all other bytes stay, with comments, order
// and layout. What is ours is told by its form and program, or because the file did not have it
// before the first change, which a backup keeps. Removing cuts the entry out, and what is empty then and was
// not there before; if the rest says what the backup says, the result is the backup, byte for byte.
//
// A file is refused if it is not what it seems: a link, no regular file, read-only, not valid, or changed
// between reading and writing.
package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
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
	Force   bool     // replace a server of the same name that is not ours
	Dir     string   // the current directory, absolute
	Home    string   // absolute
	// Variable returns a variable of the environment. Nil is an empty environment.
	Variable func(name string) string
}

// A RefusedError says why a file is not changed.
type RefusedError struct {
	Path         string
	Line, Column int // from 1, in characters; 0 if the reason has no place
	Why          string
	Err          error // of the system, or nil
}

// Error is a sentence with the place.
func (e *RefusedError) Error() string {
	s := text.Word(e.Path)
	if e.Line > 0 {
		s += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	return s + " is not changed: " + text.Line(e.Why)
}

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// ErrForeign says that there is a server of the name that is not ours.
var ErrForeign = fmt.Errorf("it is not an entry of sallyport")

// refusedAt is the error for a place in a text.
func refusedAt(txt []byte, at int, why string) error {
	before := txt[:min(at, len(txt))]
	line := bytes.TrimPrefix(before[bytes.LastIndexByte(before, '\n')+1:], []byte(bom))
	return &RefusedError{Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1,
		Why: why}
}

// A work is a file of an agent, and what is to be done with it.
type work struct {
	*Options
	agent *agent
	toml  bool
	parts []Part // that are in the file
	// before is the text before our first change, nil for no file. Known says that there is a record of it.
	before  []byte
	known   bool
	strings map[string]bool // in before; nil until they are looked at
}

// wanted is the server as it is installed.
func (w *work) wanted() entry {
	return entry{w.agent.kind, w.Command, append([]string{MCP.String()}, w.Extra...), w.agent.timeout}
}

// isOwn reports whether a program is ours by its name.
func (w *work) isOwn(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == DefaultName || program == w.Command
}

// shaped reports whether a server could be ours by its form.
func (e entry) shaped() bool { return e.Command != "" && len(e.Args) > 0 && e.Args[0] == MCP.String() }

// isOurs reports whether a server is ours.
func (w *work) isOurs(name string, e entry) bool {
	if !e.shaped() || w.isOwn(e.Command) {
		return e.shaped()
	}
	was, err := w.servers(w.before)
	_, had := was[name]
	return w.known && err == nil && !had
}

// servers returns the servers in a text by their names. Those that are no objects are empty.
func (w *work) servers(txt []byte) (map[string]entry, error) {
	all := map[string]entry{}
	if w.toml {
		p, err := newTOMLPage(txt)
		if err != nil {
			return nil, err
		}
		for name := range p.tables {
			all[name], _ = p.entry(name)
		}
		return all, nil
	}
	p := newPage(txt)
	top, rest, err := p.find(w.agent.top)
	if err != nil || len(rest) > 0 {
		return nil, err
	}
	if err := p.mustBe('{', top, encode(w.agent.top)); err != nil {
		return nil, err
	}
	for _, it := range p.items(top) {
		e := entry{Command: p.str(p.member(it.value, "command"))}
		for _, arg := range p.items(p.member(it.value, "args")) {
			e.Args = append(e.Args, p.str(arg.value))
		}
		all[it.name] = e
	}
	return all, nil
}

// add installs a part into a text.
func (w *work) add(txt []byte, part Part) ([]byte, error) {
	if part == Hook {
		return w.addHooks(txt)
	}
	all, err := w.servers(txt)
	if err != nil {
		return nil, err
	}
	old, found := all[w.Name]
	if found && !w.isOurs(w.Name, old) {
		if !w.Force {
			return nil, &RefusedError{Why: fmt.Sprintf("it has a server %q that is not ours", w.Name),
				Err: ErrForeign}
		}
		if txt, err = w.cutServer(txt); err != nil {
			return nil, err
		}
		found = false
	}
	if found && old.same(w.wanted()) {
		return txt, nil
	}
	if w.toml {
		p, err := newTOMLPage(txt)
		if err != nil {
			return nil, err
		}
		return p.put(w.Name, w.wanted())
	}
	p := newPage(txt)
	if !found {
		return p.put(encode(w.wanted()), false, w.agent.top, w.Name)
	}
	var edits []edit
	n, _, err := p.find(w.agent.top, w.Name)
	for _, it := range p.items(n) {
		switch it.name {
		case "command":
			edits = append(edits, p.replacing(it.value, encode(w.wanted().Command)))
		case "args":
			edits = append(edits, p.replacing(it.value, encode(w.wanted().Args)))
		}
	}
	return splice(txt, edits...), err
}

// cutServer removes the server with the name.
func (w *work) cutServer(txt []byte) ([]byte, error) {
	if w.toml {
		p, err := newTOMLPage(txt)
		if err != nil {
			return nil, err
		}
		return p.cut(w.Name)
	}
	p := newPage(txt)
	return p.cutMember(w.agent.top, w.Name)
}

// A hookPlace is where a hook of ours is: what is removed, and its command line.
type hookPlace struct {
	in   node
	at   int
	line node
}

// hooks returns the hooks of ours for an event. One whose program has another name is ours if it has our
// form, was not there before, and there is none that is ours by its program; sure leaves it out.
func (w *work) hooks(p *page, e event, sure bool) (places []hookPlace, err error) {
	list, rest, err := p.find("hooks", e.name)
	if err != nil || len(rest) > 0 {
		return nil, err
	}
	if err := p.mustBe('[', list, encode(e.name)); err != nil {
		return nil, err
	}
	var likely []hookPlace
	look := func(n node, in node, at int) {
		place := hookPlace{in, at, p.member(n, "command")}
		e.command.Command = p.str(place.line)
		program := hookProgram(e.command.Command, w.agent.name)
		var form bytes.Buffer
		if program != "" && w.isOwn(program) {
			places = append(places, place)
		} else if program != "" && w.known && json.Compact(&form, p.plain[n.begin:n.end]) == nil &&
			form.String() == encode(e.command) && !w.said(e.command.Command) {
			likely = append(likely, place)
		}
	}
	for i, it := range p.items(list) {
		if !w.agent.groups {
			look(it.value, list, i)
			continue
		}
		group := p.member(it.value, "hooks")
		commands := p.items(group)
		for j, command := range commands {
			if len(commands) > 1 { // the group is not ours alone
				look(command.value, group, j)
			} else {
				look(command.value, list, i)
			}
		}
	}
	if len(places) == 0 && !sure {
		places = likely
	}
	return places, nil
}

// said reports whether the text before had a string.
func (w *work) said(s string) bool {
	if w.strings == nil {
		w.strings = map[string]bool{}
		d := json.NewDecoder(bytes.NewReader(newPage(w.before).plain))
		for token, err := d.Token(); err == nil; token, err = d.Token() {
			if text, ok := token.(string); ok {
				w.strings[text] = true
			}
		}
	}
	return w.strings[s]
}

// addHooks adds the hooks for all events, or changes their command lines.
func (w *work) addHooks(txt []byte) ([]byte, error) {
	p := newPage(txt)
	if version, rest, err := p.find("version"); err != nil {
		return nil, err
	} else if w.agent.version && len(rest) > 0 {
		if txt, err = p.put("1", false, "version"); err != nil {
			return nil, err
		}
	} else if w.agent.version && strings.IndexByte("-0123456789", p.kind(version)) < 0 {
		return nil, refusedAt(txt, version.begin, `"version" is not a number`)
	}
	line := hookLine(w.Command, w.agent.name, w.Extra)
	for _, e := range w.agent.events {
		p := newPage(txt)
		places, err := w.hooks(p, e, false)
		if err != nil {
			return nil, err
		}
		if len(places) == 0 {
			e.command.Command = line
			value := encode(e.command)
			if w.agent.groups {
				value = encode(hookGroup{e.matcher, []hookCommand{e.command}})
			}
			if txt, err = p.put(value, true, "hooks", e.name); err != nil {
				return nil, err
			}
		}
		var edits []edit
		for _, place := range places {
			if p.str(place.line) != line {
				edits = append(edits, edit{place.line.begin, place.line.end, encode(line)})
			}
		}
		txt = splice(txt, edits...)
	}
	return txt, nil
}

// has reports whether a part is installed in a text. All says that a server may have another name, and leaves
// out what is ours only because it was not there before.
func (w *work) has(txt []byte, part Part, all bool) (bool, error) {
	if part == MCP {
		servers, err := w.servers(txt)
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			e := servers[name]
			own := e.shaped() && w.isOwn(e.Command)
			if name == w.Name && w.isOurs(name, e) || all && own {
				return true, err
			}
		}
		return false, err
	}
	for _, e := range w.agent.events {
		if places, err := w.hooks(newPage(txt), e, all); len(places) > 0 || err != nil {
			return true, err
		}
	}
	return false, nil
}

// remove takes a part, which is installed, out of a text. The result is nil where there was no file before
// and nothing of anybody is in it now.
func (w *work) remove(txt []byte, part Part) (out []byte, err error) {
	if part == MCP {
		if out, err = w.cutServer(txt); err == nil && !w.toml {
			out, err = w.prune(out, w.agent.top)
		}
	} else {
		out, err = w.cutHooks(txt)
	}
	switch {
	case err != nil:
		return nil, err
	case w.before == nil && strings.Trim(string(bytes.TrimPrefix(out, []byte(bom))), "{} \t\r\n") == "":
		return nil, nil
	case w.before == nil:
		return out, nil
	}
	before := w.before
	if all, _ := w.servers(before); part == MCP {
		if _, replaced := all[w.Name]; replaced { // by force
			before, _ = w.cutServer(before) // no text is the same as out
		}
	}
	if w.sameBut(out, before) {
		out = w.before
	}
	return out, nil
}

// sameBut reports whether two texts say the same, with the same comments, and differ in blanks and commas.
// For JSON, a text without a value says what an empty object says.
func (w *work) sameBut(a, b []byte) bool {
	say := func(txt []byte) (what any, how string) {
		said := map[string]any{}
		if w.toml {
			if p, err := newTOMLPage(txt); err == nil {
				what = p.values
			}
		} else if p := newPage(txt); p.err == nil {
			what = said
			if n := p.root; n != (node{}) && json.Unmarshal(p.plain, &said) == nil && len(said) == 0 {
				txt = splice(txt, edit{n.begin, n.begin + 1, ""}, edit{n.end - 1, n.end, ""})
			}
		}
		return what, strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", ",", "").Replace(string(txt))
	}
	what, how := say(a)
	same, alike := say(b)
	return how == alike && what != nil && reflect.DeepEqual(what, same)
}

// cutHooks removes the hooks of ours for all events.
func (w *work) cutHooks(txt []byte) (out []byte, err error) {
	for _, e := range w.agent.events {
		all, err := w.hooks(newPage(txt), e, false)
		for range all { // what is found when they are gone is not ours
			p := newPage(txt)
			if all, err = w.hooks(p, e, false); err == nil {
				txt = p.cut(all[0].in, all[0].at)
			}
		}
		if err != nil {
			return nil, err
		}
		if txt, err = w.prune(txt, "hooks", e.name); err != nil {
			return nil, err
		}
	}
	p := newPage(txt)
	others := p.member(p.root, "hooks") != (node{}) && !w.had("hooks") // who need the version
	if w.agent.version && !w.had("version") && !others && p.member(p.root, "version") != (node{}) {
		return p.cutMember("version")
	}
	return txt, nil
}

// prune removes what has a path, and what it is in, if it is empty and was not there before.
func (w *work) prune(txt []byte, path ...string) ([]byte, error) {
	for ; len(path) > 0; path = path[:len(path)-1] {
		p := newPage(txt)
		n, rest, err := p.find(path...)
		if err != nil || len(rest) == 0 && (len(bytes.TrimSpace(txt[n.begin+1:n.end-1])) > 0 ||
			w.had(path...)) {
			return txt, err
		}
		if len(rest) == 0 {
			if txt, err = p.cutMember(path...); err != nil {
				return nil, err
			}
		}
	}
	return txt, nil
}

// had reports whether the text before had a value with a path.
func (w *work) had(path ...string) bool {
	_, rest, err := newPage(w.before).find(path...)
	return err == nil && len(rest) == 0
}
