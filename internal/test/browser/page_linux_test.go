// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience is how long a tab may take for what takes a moment.
const patience = 90 * time.Second

//go:embed page.js
var pageScript string

// A tab is a page of the console, alone in its browser context. At the end of the test it must not have
// asked another server for anything, nor thrown an exception, nor broken its own Content-Security-Policy.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu     sync.Mutex
	faults []string
	asked  []string // the addresses of all requests
}

// open opens a console in a tab of 1280 by 800 and waits until it is connected.
func open(t *testing.T, c *served) *tab {
	t.Helper()
	p := newTab(t, c.origin)
	p.visit(c.url)
	return p
}

// newTab returns an empty tab.
func newTab(t *testing.T, origin string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(shared.context(t), chromedp.WithNewBrowserContext())
	p := &tab{t: t, ctx: ctx, origin: origin}
	t.Cleanup(cancel)
	t.Cleanup(p.verify)
	if err := chromedp.Do(ctx); err != nil { // without a limit, which would be one of the whole tab
		t.Fatal(err)
	}
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	p.do(call(network.Enable, network.EnableParams{}), call(log.Enable, cdp.Empty{}),
		call(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: pageScript}),
		call(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	p.size(1280, 800)
	p.scheme("light")
	return p
}

// call is an action that calls the browser.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

// hear keeps what the tab did.
func (p *tab) hear(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, ev.Request.URL)
	case *network.EventWebSocketCreated:
		p.asked = append(p.asked, ev.URL)
	case *runtime.EventExceptionThrown:
		p.faults = append(p.faults, "exception: "+(&chromedp.ExceptionError{ExceptionDetails: ev.ExceptionDetails}).Error())
	case *log.EventEntryAdded:
		if ev.Entry.Source == log.EntrySourceSecurity || strings.Contains(ev.Entry.Text, "Content Security Policy") {
			p.faults = append(p.faults, "policy: "+ev.Entry.Text)
		}
	}
}

// verify says what the tab must not have done.
func (p *tab) verify() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, fault := range p.faults {
		p.t.Errorf("the page: %s", printable(fault))
	}
	host := strings.TrimPrefix(p.origin, "http://")
	for _, url := range p.asked {
		own := strings.HasPrefix(url, p.origin+"/") || strings.HasPrefix(url, "ws://"+host+"/")
		if !own && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			p.t.Errorf("the page asked %s", printable(url))
		}
	}
	if len(p.asked) == 0 && !p.t.Failed() {
		p.t.Error("no request of the tab was seen")
	}
}

// in has the helpers report to a subtest, until its end.
func (p *tab) in(t *testing.T, s *seat) {
	before := p.t
	p.t, s.t = t, t
	t.Cleanup(func() { p.t, s.t = before, before })
}

// do runs actions.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("%v; the page says:\n%s", err, p.says())
	}
}

// says returns the text of the page, for a message.
func (p *tab) says() string {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.title + "\n" + (document.body?.innerText ?? "")`))
	if err != nil {
		return err.Error()
	}
	return printable(text)
}

// eval returns the value of an expression; it waits for a promise.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v; the page says:\n%s", printable(expression), err, p.says())
	}
	return got
}

// js returns a value as an expression.
func js(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the tests give strings
	}
	return string(text)
}

// visit opens an address and waits until the page is connected.
func (p *tab) visit(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate(url))
	p.connected("connected")
}

// connected waits for a state of the connection.
func (p *tab) connected(state string) {
	p.t.Helper()
	p.until(`sp.all(["connection-state"]).some((el) => el.textContent.trim() === ` + js(state) + `)`)
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	eval[bool](p, `sp.until(() => `+expression+`).then(() => true)`)
}

// wait waits for a visible element. The steps of a path are "testid" or "testid~text that is in it".
func (p *tab) wait(path ...string) {
	p.t.Helper()
	p.until(`sp.all(` + js(path) + `).length > 0`)
}

// gone waits until there is no such element.
func (p *tab) gone(path ...string) {
	p.t.Helper()
	p.until(`sp.all(` + js(path) + `).length === 0`)
}

// count returns how many such elements are visible now.
func (p *tab) count(path ...string) int {
	p.t.Helper()
	return eval[int](p, `sp.all(`+js(path)+`).length`)
}

// text waits for an element and returns its text.
func (p *tab) text(path ...string) string {
	p.t.Helper()
	return eval[string](p, `sp.until(() => sp.all(`+js(path)+`)[0]).then((el) => el.textContent)`)
}

// click waits for an element that can be clicked and clicks on it; again, if it was moved meanwhile.
func (p *tab) click(path ...string) {
	p.t.Helper()
	for range 20 {
		at := eval[struct{ X, Y float64 }](p, `sp.where(`+js(path)+`)`)
		p.do(chromedp.MouseClickXY(at.X, at.Y))
		if eval[bool](p, `sp.hit()`) {
			return
		}
	}
	p.t.Fatalf("%q does not stay in its place", path)
}

// keys types. What is no character is of package kb.
func (p *tab) keys(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// view opens a view by its link.
func (p *tab) view(name string) {
	p.t.Helper()
	p.click("nav-" + name)
	p.wait("view-" + name)
}

// size sets the size of the window.
func (p *tab) size(width, height int64) {
	p.t.Helper()
	p.do(chromedp.EmulateViewport(width, height))
}

// scheme chooses light or dark.
func (p *tab) scheme(name string) {
	p.t.Helper()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name},
		{Name: "prefers-reduced-motion", Value: "reduce"}}
	p.do(call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}))
}

// clipboard returns what was copied.
func (p *tab) clipboard() string {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	_, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-read"}, Setting: browser.PermissionSettingGranted,
		Origin: p.origin, BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return eval[string](p, `navigator.clipboard.readText()`)
}
