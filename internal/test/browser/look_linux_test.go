// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	_ "embed"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// views are all of them, and filled is what shows that a view has what lived puts there.
var (
	views  = []string{"questions", "sessions", "runs", "changes", "recordings", "machine"}
	filled = map[string]string{"questions": "question~npm", "sessions": "session~listening",
		"runs": "run~../out/file", "changes": "stage", "recordings": "recording", "machine": "revoke"}
)

//go:embed look.js
var lookScript string

// lived returns a seat with something in every view, and its console in a tab.
func lived(t *testing.T) (*seat, *tab) {
	t.Helper()
	s := newSeat(t)
	s.write("note.txt", "first\nsecond\nthird\n")
	s.deniedRun()
	s.says("run", "--", "sh", "-c", "echo fine")
	s.says("run", "--", "false")
	s.stageID(`sed -i s/second/2nd/ note.txt; mkdir -p src; echo 'package main' > src/main.go; chmod +x note.txt`)
	s.record(`printf 'building \033[32mok\033[0m\n'; sleep 0.2; printf 'tested \033[31mfailed\033[0m\n'`)
	rule := s.asks("--", "touch", "ruled")
	s.must("approve", "--rule", rule.id)
	rule.decided()
	s.detached(`printf 'listening on \033[1mhttp://127.0.0.1:8080\033[0m\n'; cat`)
	s.detached(`echo all tests pass; exit 0`)
	s.asks("--justification", "The release needs the tag", "--", "git", "push", "origin", "v1.2.0")
	s.asks("--", "npm", "install", "left-pad")
	p := open(t, s.console())
	p.view("questions")
	p.until(`sp.all(["question"]).length === 2`)
	return s, p
}

// show opens a view as lived has filled it, with a detail where it has one.
func (p *tab) show(view string) {
	p.t.Helper()
	if view == "terminal" {
		p.openSession("listening")
		p.shows("listening on")
		return
	}
	p.view(view)
	p.wait(filled[view])
	switch view {
	case "runs":
		p.click(filled[view])
		p.wait("run-detail", "run-denial")
	case "changes":
		p.click(filled[view])
		p.click("change~note.txt")
		p.wait("diff~2nd")
	case "recordings":
		p.click(filled[view])
		p.click("play")
		p.shows("failed")
	}
}

// TestLook: in every view, light and dark: contrast, names of controls, nothing wider than 360 px.
func TestLook(t *testing.T) {
	t.Parallel()
	s, p := lived(t)
	for _, view := range views {
		t.Run(view, func(t *testing.T) {
			p.in(t, s)
			p.size(1280, 800)
			p.show(view)
			for _, scheme := range []string{"light", "dark"} {
				p.scheme(scheme)
				p.wantContrast(view + ", " + scheme)
			}
			p.wantNames(view)
			p.size(360, 740)
			p.until(`innerWidth === 360`)
			if wide := eval[[]string](p, `(`+lookScript+`).wide()`); len(wide) != 0 {
				t.Errorf("wider than 360 px: %q", wide)
			}
		})
	}
}

// TestLookOfTerminal is TestLook for an open terminal, whose text has colors of its own.
func TestLookOfTerminal(t *testing.T) {
	t.Parallel()
	s := newSeat(t)
	s.detached(`echo listening; cat`)
	p := open(t, s.console())
	p.openSession("listening")
	p.shows("listening")
	p.wantContrast("terminal")
	p.wantNames("terminal")
	p.size(360, 740)
	p.until(`innerWidth === 360`)
	if wide := eval[[]string](p, `(`+lookScript+`).wide()`); len(wide) != 0 {
		t.Errorf("wider than 360 px: %q", wide)
	}
}

// wantContrast fails the test where a text has less contrast than WCAG 2.2 AA asks for.
func (p *tab) wantContrast(where string) {
	p.t.Helper()
	for _, fault := range eval[[]string](p, `(`+lookScript+`).contrast()`) {
		p.t.Errorf("%s: %s", where, printable(fault))
	}
}

// wantNames fails the test where a control has no name for a screen reader.
func (p *tab) wantNames(where string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	tree, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target,
	) (accessibility.GetFullAXTreeResult, error) {
		return cdp.Call(ctx, target, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	})
	if err != nil {
		p.t.Fatal(err)
	}
	controls := 0
	for _, node := range tree.Nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		switch role := strings.Trim(string(node.Role.Value), `"`); role {
		case "button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "slider", "switch", "tab", "listbox",
			"menuitem", "spinbutton", "DisclosureTriangle":
			controls++
			if node.Name == nil || strings.Trim(string(node.Name.Value), `" `) == "" {
				p.t.Errorf("%s: a %s without a name: node %d", where, role, node.BackendDOMNodeID)
			}
		}
	}
	if controls < len(views) {
		p.t.Errorf("%s: only %d controls were found", where, controls)
	}
}

// TestKeyboard: every view is opened, and every control in it reached, by keys alone, and the focus is seen.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	s, p := lived(t)
	for _, view := range views {
		t.Run(view, func(t *testing.T) {
			p.in(t, s)
			p.focus("nav-" + view)
			p.keys(kb.Enter)
			p.wait("view-"+view, filled[view])
			unseen := map[string]bool{}
			missed := []string{view}
			// Lists change meanwhile: twice around, and as far as it is now.
			for i := 0; len(missed) > 0 && i < 2*eval[int](p, `(`+lookScript+`).tabStops().length`)+10; i++ {
				p.keys(kb.Tab)
				if plain := eval[string](p, `(`+lookScript+`).unseenFocus()`); plain != "" {
					unseen[plain] = true
				}
				missed = eval[[]string](p, `(`+lookScript+`).notReached()`)
			}
			for el := range unseen {
				t.Errorf("the focus on %s is not seen", printable(el))
			}
			for _, el := range missed {
				t.Errorf("not reached by Tab: %s", printable(el))
			}
		})
	}
}

// focus presses Tab until an element has the focus.
func (p *tab) focus(id string) {
	p.t.Helper()
	for range 200 {
		if eval[bool](p, `document.activeElement?.closest("[data-testid]")?.dataset.testid === `+js(id)) {
			return
		}
		p.keys(kb.Tab)
	}
	p.t.Fatalf("%s is not reached by Tab", id)
}
