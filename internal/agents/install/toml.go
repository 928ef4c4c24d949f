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
	tables map[string]any // [mcp_servers]; nil if there is none
}

func newTOMLPage(text []byte) (*tomlPage, error) {
	parts, values, err := syntax.ForeignTOML(text)
	if err != nil {
		var bad *syntax.TOMLError
		if errors.As(err, &bad) {
			return nil, &RefusedError{Line: bad.Line, Column: bad.Column, Why: "it is not valid TOML: " + bad.Text}
		}
		return nil, err
	}
	p := &tomlPage{text: text, parts: parts}
	if all, ok := values[codexTable]; ok {
		if p.tables, ok = all.(map[string]any); !ok {
			return nil, p.refused([]string{codexTable}, fmt.Sprintf("%q is not a table", codexTable))
		}
	}
	return p, nil
}

// refused is the error for the part with a path.
func (p *tomlPage) refused(path []string, why string) error {
	e := &RefusedError{Why: why}
	if i := slices.IndexFunc(p.parts, func(t syntax.TOMLPart) bool { return slices.Equal(t.Path, path) }); i >= 0 {
		e.Line, e.Column = p.parts[i].Pos.Line, p.parts[i].Pos.Column
	}
	return e
}

// entry returns the server with a name, as JSON would have it. It is not found if there is none.
func (p *tomlPage) entry(name string) (e entry, found bool, err error) {
	value, found := p.tables[name]
	if !found {
		return e, false, nil
	}
	table, ok := value.(map[string]any)
	if !ok {
		return e, true, p.refused([]string{codexTable, name}, fmt.Sprintf("%q is not a table", name))
	}
	e.Command, _ = table["command"].(string)
	list, _ := table["args"].([]any)
	for _, v := range list {
		s, _ := v.(string)
		e.Args = append(e.Args, s)
	}
	return e, true, nil
}

func tomlArray(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = syntax.QuoteTOML(w)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// byHand is the error for a server that has no header of its own.
func (p *tomlPage) byHand(name string) error {
	for _, t := range p.parts {
		if t.Path[0] == codexTable && t.Inline {
			return p.refused(t.Path, fmt.Sprintf("%s is written in one line; write [%s] there",
				syntax.JoinKeys(t.Path), syntax.JoinKeys([]string{codexTable, name})))
		}
	}
	return p.refused([]string{codexTable}, fmt.Sprintf("%s has no header of its own; write [%s] there",
		name, syntax.JoinKeys([]string{codexTable, name})))
}

// add writes a table for a server, which must be missing, at the end of the text.
func (p *tomlPage) add(name string, e entry) ([]byte, error) {
	if i := slices.IndexFunc(p.parts, func(t syntax.TOMLPart) bool {
		return t.Inline && slices.Equal(t.Path, []string{codexTable})
	}); i >= 0 {
		return nil, p.byHand(name)
	}
	eol := eolOf(p.text)
	body := bytes.TrimPrefix(p.text, []byte(bom))
	before, after := "", eol
	switch {
	case len(body) == 0:
	case body[len(body)-1] != '\n':
		before, after = eol+eol, "" // there was no line end, and is none
	case !bytes.HasSuffix(body, []byte(eol+eol)):
		before = eol
	}
	lines := []string{"[" + syntax.JoinKeys([]string{codexTable, name}) + "]",
		"command = " + syntax.QuoteTOML(e.Command), "args = " + tomlArray(e.Args),
		fmt.Sprintf("tool_timeout_sec = %d", e.Timeout)}
	return slices.Concat(p.text, []byte(before+strings.Join(lines, eol)+after)), nil
}

// update changes the command and the arguments of a server.
func (p *tomlPage) update(name string, e entry) ([]byte, error) {
	var edits []edit
	for _, t := range p.parts {
		switch {
		case slices.Equal(t.Path, []string{codexTable, name, "command"}):
			edits = append(edits, edit{t.Begin, t.End, "command = " + syntax.QuoteTOML(e.Command)})
		case slices.Equal(t.Path, []string{codexTable, name, "args"}):
			edits = append(edits, edit{t.Begin, t.End, "args = " + tomlArray(e.Args)})
		}
	}
	out := splice(p.text, edits...)
	if now, err := newTOMLPage(out); err == nil {
		if got, _, _ := now.entry(name); got.same(e) {
			return out, nil
		}
	}
	return nil, p.byHand(name)
}

// remove removes the table of a server, those below it, and the empty line before.
func (p *tomlPage) remove(name string) ([]byte, error) {
	var edits []edit
	prefix, inside := []string{codexTable, name}, false
	for _, t := range p.parts {
		begins := len(t.Path) >= 2 && slices.Equal(t.Path[:2], prefix)
		if t.Header {
			inside = begins
		} else if begins && !inside {
			return nil, p.byHand(name)
		}
		if !inside {
			continue
		}
		if t.Header {
			edits = append(edits, edit{from: t.Begin})
			if gap := bytes.TrimRight(p.text[:t.Begin], "\r\n"); len(gap) > 0 && t.Begin-len(gap) > len(eolOf(p.text)) {
				edits[len(edits)-1].from -= len(eolOf(p.text))
			}
		}
		end := len(p.text)
		if n := bytes.IndexByte(p.text[t.End:], '\n'); n >= 0 {
			end = t.End + n + 1
		}
		edits[len(edits)-1].to = end
	}
	out := splice(p.text, edits...)
	now, err := newTOMLPage(out)
	if err != nil || now.tables[name] != nil || len(edits) == 0 {
		return nil, p.byHand(name)
	}
	return out, nil
}
