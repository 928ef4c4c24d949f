// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// codexTable is the table of Codex that has the MCP servers, by their names.
const codexTable = "mcp_servers"

// A tomlPage is a text in TOML with tables of MCP servers.
type tomlPage struct {
	text   []byte
	parts  []syntax.TOMLPart
	values map[string]any
	tables map[string]any // [mcp_servers]; nil if there is none
}

func newTOMLPage(txt []byte) (*tomlPage, error) {
	parts, values, err := syntax.ForeignTOML(txt)
	var bad *syntax.TOMLError
	if errors.As(err, &bad) {
		return nil, &RefusedError{Line: bad.Line, Column: bad.Column,
			Why: "it is not valid TOML: " + bad.Text}
	}
	p := &tomlPage{text: txt, parts: parts, values: values}
	var ok bool
	if p.tables, ok = values[codexTable].(map[string]any); !ok && values[codexTable] != nil {
		return nil, p.refused(codexTable + " is not a table")
	}
	return p, err
}

// refused is the error for the first part of the servers.
func (p *tomlPage) refused(why string) error {
	e := &RefusedError{Why: why}
	if i := slices.IndexFunc(p.parts,
		func(t syntax.TOMLPart) bool { return t.Path[0] == codexTable }); i >= 0 {
		e.Line, e.Column = p.parts[i].Pos.Line, p.parts[i].Pos.Column
	}
	return e
}

// entry returns the server with a name; found is false if there is none.
func (p *tomlPage) entry(name string) (e entry, found bool) {
	table, _ := p.tables[name].(map[string]any)
	e.Command, _ = table["command"].(string)
	list, _ := table["args"].([]any)
	for _, v := range list {
		e.Args = append(e.Args, fmt.Sprint(v))
	}
	return e, p.tables[name] != nil
}

// put writes a table for a server at the end of the text, or changes the program and the arguments of the
// one that is there.
func (p *tomlPage) put(name string, e entry) ([]byte, error) {
	args := make([]string, len(e.Args))
	for i, a := range e.Args {
		args[i] = syntax.QuoteTOML(a)
	}
	path, eol := []string{codexTable, name}, eolOf(p.text)
	lines := []string{"command = " + syntax.QuoteTOML(e.Command), "args = [" + strings.Join(args, ", ") + "]",
		fmt.Sprintf("tool_timeout_sec = %d", e.Timeout)}
	var edits []edit
	for _, t := range p.parts {
		for i, key := range []string{"command", "args"} {
			if slices.Equal(t.Path, append(path, key)) {
				edits = append(edits, edit{t.Begin, t.End, lines[i]})
			}
		}
	}
	if _, found := p.entry(name); !found {
		before, after := eol, eol
		switch body := bytes.TrimPrefix(p.text, []byte(bom)); {
		case len(body) == 0 || bytes.HasSuffix(body, []byte(eol+eol)):
			before = ""
		case body[len(body)-1] != '\n': // there was no line end, and is none
			before, after = eol+eol, ""
		}
		lines = slices.Insert(lines, 0, "["+syntax.JoinKeys(path)+"]")
		edits = []edit{{len(p.text), len(p.text), before + strings.Join(lines, eol) + after}}
	}
	return p.checked(splice(p.text, edits...), name, &e)
}

// cut removes the table of a server, those below it, and the empty line before.
func (p *tomlPage) cut(name string) ([]byte, error) {
	var edits []edit
	inside := false
	for _, t := range p.parts {
		if t.Header {
			inside = len(t.Path) >= 2 && slices.Equal(t.Path[:2], []string{codexTable, name})
		}
		if !inside {
			continue
		}
		if t.Header {
			edits = append(edits, edit{from: t.Begin})
			if eol := eolOf(p.text); bytes.HasSuffix(p.text[:t.Begin], []byte(eol+eol)) {
				edits[len(edits)-1].from -= len(eol)
			}
		}
		line, _, _ := bytes.Cut(p.text[t.End:], []byte("\n"))
		edits[len(edits)-1].to = min(t.End+len(line)+1, len(p.text))
	}
	return p.checked(splice(p.text, edits...), name, nil)
}

// checked returns a text if the server in it is the one that is wanted, nil for none.
func (p *tomlPage) checked(txt []byte, name string, want *entry) ([]byte, error) {
	if now, err := newTOMLPage(txt); err == nil {
		e, found := now.entry(name)
		if found == (want != nil) && (want == nil || e.same(*want)) {
			return txt, nil
		}
	}
	return nil, p.refused("the servers are not written as tables of their own; write " +
		syntax.JoinKeys([]string{codexTable, name}) + " as [" + syntax.JoinKeys([]string{codexTable,
		name}) + "]")
}
