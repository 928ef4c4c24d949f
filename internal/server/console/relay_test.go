// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// echo answers with its parameters.
func echo(_ context.Context, params json.RawMessage) (any, error) { return params, nil }

// TestRelay has messages of both sides.
func TestRelay(t *testing.T) {
	t.Parallel()
	wait := make(chan struct{})
	r := start(t, Options{Methods: map[string]Method{
		"history/list": echo,
		"history/read": func(context.Context, json.RawMessage) (any, error) {
			return nil,
				errors.New("no\nsuch run")
		},
		"machine/read": func(context.Context, json.RawMessage) (any, error) {
			return nil, Refused(wire.CodeInvalidRequest, "not here", "notHere")
		},
		"question/list": func(ctx context.Context, _ json.RawMessage) (any, error) {
			close(wait)
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}}, "127.0.0.1:0")
	p := r.open(r.mustEnter())
	p.send(`{"id":1,"method":"initialize","params":{"clientName":"page","takeOver":true}}`)
	p.upstream(`{"id":1,"method":"initialize","params":{"clientName":"page","takeOver":true}}`)
	p.says(`{"id":1,"result":{"sessionId":"s"}}`)
	p.expect(`{"id":1,"result":{"sessionId":"s","viewOnly":false}}`)
	p.send(`{"method":"initialized"}`)
	p.upstream(`{"method":"initialized"}`)
	p.send(`{"id":"a","method":"run/start","params":{"args":["--","true"]}}`)
	p.upstream(`{"id":"a","method":"run/start","params":{"args":["--","true"]}}`)
	p.says(`{"id":9,"method":"run/approve","params":{}}`)
	p.expect(`{"id":9,"method":"run/approve","params":{}}`)
	p.send(`{"id":9,"result":{"decision":"approved"}}`)
	p.upstream(`{"id":9,"result":{"decision":"approved"}}`)
	p.says(`{"id":1,"result":{"x":1}}`)
	p.expect(`{"id":1,"result":{"x":1}}`) // as it is: only the answer to initialize is added to
	p.send(`{"id":2,"method":"history/list","params":{"limit":3}}`)
	p.expect(`{"id":2,"result":{"limit":3}}`)
	p.send(`{"id":3,"method":"history/read"}`)
	p.expect(`{"error":{"code":-32603,"message":"no\\nsuch run"},"id":3}`)
	p.send(`{"id":4,"method":"machine/read"}`)
	p.expect(`{"error":{"code":-32600,"message":"not here","data":{"reason":"notHere"}},"id":4}`)
	p.send(`{"id":5,"method":"question/list"}`)
	<-wait
	p.send(`{"id":5,"method":"history/list"}`)
	p.expect(`{"error":{"code":-32600,"message":"too many requests at once, or an ID in use"},"id":5}`)
	p.send(`{"method":"request/cancel","params":{"id":5}}`)
	p.expect(`{"error":{"code":-32800,"message":"the request was canceled"},"id":5}`)
	p.send(`{"method":"request/cancel","params":{"id":5}}`)
	p.upstream(`{"method":"request/cancel","params":{"id":5}}`)
	p.send(`{"id":6,"id":7,"method":"history/list"}`)
	p.send(`{"id":6,"method":"run/list"}`)
	p.upstream(`{"id":6,"method":"run/list"}`) // and not the one before
	if got, _ := p.receive(); !strings.Contains(got, `duplicate JSON object key`) {
		t.Errorf("a message that two readers may read in two ways: %s", got)
	}
}

// TestRelayEnds has the ends of a connection, and what the page is told.
func TestRelayEnds(t *testing.T) {
	t.Parallel()
	down := errors.New("cannot connect: " + strings.Repeat("x", 200))
	for _, test := range []struct {
		name   string
		end    func(r *running, p *page)
		status int
	}{
		{"the exec-server ends", func(_ *running, p *page) { _ = p.up.Close() }, statusRestart},
		{"the console ends", func(r *running, _ *page) { go r.stop() }, statusLeaves},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := start(t, Options{}, "127.0.0.1:0")
			p := r.open(r.mustEnter())
			test.end(r, p)
			if text, status := p.receive(); status != test.status {
				t.Errorf("the page got %q, %d", text, status)
			}
		})
	}
	t.Run("the page ends", func(t *testing.T) {
		r := start(t, Options{}, "127.0.0.1:0")
		p := r.open(r.mustEnter())
		_ = p.conn.Close()
		if _, err := p.up.Read(); err == nil {
			t.Error("the exec-server's connection goes on")
		}
	})
	t.Run("no exec-server", func(t *testing.T) {
		r := start(t, Options{Dial: func(context.Context) (wire.Stream, error) { return nil, down }},
			"127.0.0.1:0")
		conn, a := r.dial(r.mustEnter().upgrade())
		defer conn.Close()
		p := &page{t: t, conn: conn}
		if text, status := p.receive(); a.StatusCode != 101 ||
			status != statusRestart || !strings.HasPrefix(down.Error(), text) {
			t.Errorf("the page got %q, %d", text, status)
		}
	})
}

// TestTooManyPages opens as many as are served, and one more.
func TestTooManyPages(t *testing.T) {
	t.Parallel()
	r := start(t, Options{}, "127.0.0.1:0")
	k := r.mustEnter()
	var all []*page
	for range maxPages {
		all = append(all, r.open(k))
	}
	if a := r.send(k.upgrade()); a.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: status %d", a.StatusCode)
	}
	for _, p := range all {
		_ = p.conn.Close()
	}
}

// TestViewOnly has every method that a page could call: those that change something reach neither this
// process nor the exec-server, and of the others nothing does that could change something.
func TestViewOnly(t *testing.T) {
	t.Parallel()
	called := map[string]Method{}
	for _, name := range []string{"question/list", "question/answer", "question/forget",
		"config/allow",
		"approval/revoke",
		"history/list"} {
		called[name] = echo
	}
	r := start(t, Options{ViewOnly: true, Methods: called}, "127.0.0.1:0")
	p := r.open(r.mustEnter())
	p.send(`{"id":1,"method":"initialize","params":{"clientName":"page","extensionMethods":true,` +
		`"approvals":true,` +
		`"resumeSessionId":"s","observeSessionId":"s","takeOver":true,"binaryOutput":true}}`)
	p.upstream(`{"id":1,"method":"initialize","params":{"clientName":"page","extensionMethods":true}}`)
	p.says(`{"id":1,"result":{"sessionId":"s"}}`)
	p.expect(`{"id":1,"result":{"sessionId":"s","viewOnly":true}}`)
	p.send(`{"method":"initialized"}`)
	p.upstream(`{"method":"initialized","params":null}`)
	for _, method := range []string{"run/start", "run/write", "run/closeStdin", "run/resize", "run/signal",
		"run/terminate",
		"run/remove", "sandbox/stop", "stage/apply", "stage/discard", "question/answer", "question/forget",
		"config/allow",
		"approval/revoke", "process/start", "process/write", "process/read", "process/signal",
		"process/terminate",
		"process/resize", "process/closeStdin", "process/list", "fs/readFile", "fs/writeFile", "fs/remove",
		"fs/open",
		"http/request", "environmentConfig/read", "capabilityRoots/discoverV1", "Run/Start", "run/start " +
			"", "", "something/new"} {
		if reads[method] != nil {
			t.Errorf("%s is a read", method)
		}
		p.send(`{"id":2,"method":"` + method + `","params":{"runId":"1"}}`)
		p.expect(`{"error":{"code":-32600,` +
			`"message":"this console is view-only; start one without --view-only to change ` +
			`something","data":{"reason":"viewOnly"}},"id":2}`)
	}
	for _, dropped := range []string{`{"id":9,"result":{"decision":"approved"}}`,
		`{"id":9,"error":{"code":1,"message":""}}`,
		`{"method":"something/new"}`} {
		p.send(dropped) // what comes next is the next request
	}
	p.send(`{"id":3,"method":"run/read","params":{"runId":"1","after":0,"reader":{"leaves":true},` +
		`"Reader":{}}}`)
	p.upstream(`{"id":3,"method":"run/read","params":{"after":0,"runId":"1"}}`)
	p.send(`{"id":4,"method":"run/wait","params":{"runId":"1","timeoutMs":0,"for":{"match":"x"}}}`)
	p.upstream(`{"id":4,"method":"run/wait","params":{"for":{},"runId":"1","timeoutMs":0}}`)
	p.send(`{"id":5,"method":"history/list","params":{"limit":1,"delete":true}}`)
	p.expect(`{"id":5,"result":{"limit":1}}`)
	p.send(`{"id":6,"method":"run/list","params":[]}`)
	if got, _ := p.receive(); !strings.Contains(got, "viewOnly") {
		t.Errorf("parameters that are no object: %s", got)
	}
	p.send(`{"method":"request/cancel","params":{"id":3}}`)
	p.upstream(`{"method":"request/cancel","params":{"id":3}}`)
	for method := range reads {
		if slices.ContainsFunc([]string{"start", "write", "answer", "forget", "apply", "discard", "stop",
			"signal"},
			func(word string) bool { return strings.HasSuffix(method, "/"+word) }) {
			t.Errorf("%s is a read", method)
		}
	}
}
