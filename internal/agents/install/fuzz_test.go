// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"testing"
)

// works are the files of a fuzz test.
func works(before []byte) []*work {
	var all []*work
	for _, part := range []struct {
		agent string
		parts []Part
	}{{Claude, []Part{MCP}}, {Claude, []Part{Hook}}, {Cursor, []Part{Hook}}, {Gemini, []Part{MCP, Hook}}} {
		for i := range agents {
			if agents[i].name == part.agent {
				all = append(all, &work{Options: &Options{Agent: part.agent, Name: DefaultName,
					Command: program},
					agent: &agents[i], parts: part.parts, before: before, known: true})
			}
		}
	}
	return all
}

// FuzzJSON: what is installed into any text that is accepted is in it, and the rest is as before; removing
// gives the same bytes.
func FuzzJSON(f *testing.F) {
	for _, original := range originals {
		f.Add([]byte(original.txt))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		if before == nil {
			before = []byte{}
		}
		for _, w := range works(before) {
			var err error
			txt := before
			for _, part := range w.parts {
				if is, err := w.has(txt, part, true); is || err != nil {
					return // it has ours, or is refused
				}
				if txt, err = w.add(txt, part); err != nil {
					return
				}
				if is, err := w.has(txt, part, false); !is || err != nil {
					t.Fatalf("%s %s is not in it: %v\n%q\n%q", w.Agent, part, err, before, txt)
				}
				if again, err := w.add(txt, part); err != nil || !bytes.Equal(again, txt) {
					t.Fatalf("%s %s is in it twice: %v\n%q", w.Agent, part, err, again)
				}
			}
			p := newPage(txt)
			if p.err != nil || !json.Valid(p.plain) || !bytes.Equal(commentsOf(t, before), commentsOf(t,
				txt)) {
				t.Fatalf("%s: %v, or comments differ\n%q\n%q", w.Agent, p.err, before, txt)
			}
			for _, part := range w.parts {
				if txt, err = w.remove(txt, part); err != nil {
					t.Fatalf("%s %s: %v", w.Agent, part, err)
				}
			}
			if !bytes.Equal(txt, before) {
				t.Fatalf("%s: it is\n%q, it was\n%q", w.Agent, txt, before)
			}
		}
	})
}

// commentsOf returns what JSON does not have, without commas.
func commentsOf(t *testing.T, txt []byte) (out []byte) {
	p := newPage(txt)
	if p.err != nil {
		t.Fatal(p.err)
	}
	for i, c := range p.text {
		if c != p.plain[i] && c != ',' {
			out = append(out, c)
		}
	}
	return out
}

// FuzzTOML is FuzzJSON for the configuration of Codex.
func FuzzTOML(f *testing.F) {
	for _, original := range tomlOriginals {
		f.Add([]byte(original.txt))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		if before == nil {
			before = []byte{}
		}
		w := works(before)[0]
		for i := range agents {
			if agents[i].name == Codex {
				w.agent, w.toml = &agents[i], true
			}
		}
		if is, err := w.has(before, MCP, true); is || err != nil {
			return
		}
		txt, err := w.add(before, MCP)
		if err != nil {
			return
		}
		if is, err := w.has(txt, MCP, false); !is || err != nil || !bytes.HasPrefix(txt, before) {
			t.Fatalf("it is not in it: %v\n%q", err, txt)
		}
		if txt, err = w.remove(txt, MCP); err != nil || !bytes.Equal(txt, before) {
			t.Fatalf("%v: it is\n%q, it was\n%q", err, txt, before)
		}
	})
}
