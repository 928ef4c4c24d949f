// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The statuses with which a page is told the end of its WebSocket (RFC 6455, and its registry).
const (
	statusLeaves  = 1001 // the console ends
	statusPolicy  = 1008 // the secrets have expired
	statusRestart = 1012 // the exec-server has ended: connect again
)

// maxReason is the longest reason of such an end, in bytes.
const maxReason = 123

// maxCalls is how many methods of this process a page may wait for at once.
const maxCalls = 64

// reads are the methods of a view-only console, with the members of their parameters. All other methods are
// refused, and other members are left out: a new one could change something.
var reads = map[string][]string{
	"initialize": {"clientName", "extensionMethods"}, "environment/info": nil, "environment/status": nil,
	"run/list": {"since", "waitMs"}, "run/read": {"runId", "after", "maxBytes", "waitMs"},
	"run/screen": {"runId"}, "run/result": {"runId", "output", "from"}, "run/wait": {"runId", "timeoutMs"},
	"sandbox/list": nil, "stage/list": {"since", "waitMs"}, "stage/changes": {"stageId", "paths", "after"},
	"stage/diff": {"stageId", "paths", "from"}, "question/list": {"since", "waitMs"},
	"history/list": {"before", "limit", "search", "since", "waitMs"}, "history/read": {"id"},
	"history/output": {"id", "from"},
	"recording/list": {"since", "waitMs"}, "recording/read": {"name", "from"},
	"machine/read": {"since", "waitMs"},
}

// Refused returns the error for a request that is refused for a reason, a word for programs.
func Refused(code int64, message, reason string) *wire.Error {
	data, _ := json.Marshal(map[string]string{"reason": reason}) // words always encode
	return &wire.Error{Code: code, Message: message, Data: data}
}

// connect serves the WebSocket of a page.
func (s *Server) connect(w http.ResponseWriter, r *http.Request, expires time.Time) {
	select {
	case s.pages <- struct{}{}:
	default:
		http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
		return
	}
	defer func() { <-s.pages }()
	browser, err := wire.Accept(w, r, protocol)
	if err != nil {
		return // the request was answered
	}
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	up, err := s.o.Dial(ctx)
	if err != nil {
		wire.CloseFor(browser, statusRestart, cut(text.Line(err.Error())))
		return
	}
	p := &relay{s: s, page: wire.NewConn(browser), up: wire.NewConn(up),
		calls: map[wire.ID]context.CancelFunc{}}
	ended := make(chan ending, 3)
	var work sync.WaitGroup
	work.Go(func() { ended <- p.fromServer(up) })
	work.Go(func() { ended <- p.fromPage(ctx, browser) })
	timer := time.AfterFunc(expires.Sub(s.o.Now()), func() {
		ended <- ending{statusPolicy, "the secrets have expired; open the address that the console prints"}
	})
	defer timer.Stop()
	var end ending
	select {
	case end = <-ended:
	case <-ctx.Done():
		end = ending{statusLeaves, "the console ends"}
	}
	cancel()
	wire.CloseFor(browser, end.status, end.reason)
	p.page.Close()
	p.up.Close()
	work.Wait()
	p.work.Wait()
}

// cut shortens a reason to what a close frame takes, in UTF-8.
func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxReason)], "") }

// An ending is why a page is not served any more.
type ending struct {
	status int
	reason string
}

// A relay is between a page and an exec-server.
type relay struct {
	s        *Server
	page, up *wire.Conn // for writing; their streams are read here
	work     sync.WaitGroup

	mu    sync.Mutex
	hello wire.ID                        // of an initialize that was not answered; zero for none
	calls map[wire.ID]context.CancelFunc // that are answered here
}

// fromServer relays what the exec-server sends, as it is.
func (p *relay) fromServer(up wire.Stream) ending {
	for {
		data, err := up.Read()
		if err != nil {
			return ending{statusRestart, "the exec-server has ended"}
		}
		if p.page.Send(p.described(data)) != nil {
			return ending{statusLeaves, ""}
		}
	}
}

// described adds to the answer to initialize what this console is. Other messages are returned as they are.
func (p *relay) described(data []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hello == (wire.ID{}) {
		return data
	}
	m, err := wire.DecodeMessage(data)
	if err != nil || m.ID != p.hello || m.Kind != wire.KindResponse {
		return data
	}
	p.hello = wire.ID{}
	var result map[string]any
	if json.Unmarshal(m.Result, &result) != nil {
		return data
	}
	result["viewOnly"] = p.s.o.ViewOnly
	changed, err := wire.Response(m.ID, result)
	if err != nil {
		return data
	}
	return changed
}

// fromPage relays what the page sends.
func (p *relay) fromPage(ctx context.Context, browser wire.Stream) ending {
	for {
		data, err := browser.Read()
		if err != nil {
			return ending{statusLeaves, ""}
		}
		m, err := wire.DecodeMessage(data)
		if err != nil {
			p.fail(wire.Malformed(), &wire.Error{Code: wire.CodeInvalidRequest, Message: err.Error()})
			continue
		}
		if p.s.o.ViewOnly {
			if data = p.narrowed(m); data == nil {
				continue
			}
		}
		if m.Kind == wire.KindRequest && p.s.o.Methods[m.Method] != nil {
			p.call(ctx, m)
			continue
		}
		if m.Kind == wire.KindNotification && m.Method == wire.MethodCancel && p.cancel(m.Params) {
			continue
		}
		if m.Kind == wire.KindRequest && m.Method == "initialize" {
			p.mu.Lock()
			p.hello = m.ID
			p.mu.Unlock()
		}
		if p.up.Send(data) != nil {
			return ending{statusRestart, "the exec-server has ended"}
		}
	}
}

// narrowed returns a message as a view-only console relays it, and nil for one that it refuses.
func (p *relay) narrowed(m *wire.Message) []byte {
	if m.Kind == wire.KindNotification && (m.Method == "initialized" || m.Method == wire.MethodCancel) {
		data, _ := wire.Notification(m.Method, m.Params) // it was decoded
		return data
	}
	if m.Kind != wire.KindRequest {
		return nil // a page that only looks was asked nothing
	}
	members, ok := reads[m.Method]
	var given map[string]json.RawMessage
	if ok && len(m.Params) > 0 {
		ok = json.Unmarshal(m.Params, &given) == nil
	}
	if !ok {
		p.fail(m.ID, Refused(wire.CodeInvalidRequest,
			"this console is view-only; start one without --view-only to change something", "viewOnly"))
		return nil
	}
	params := map[string]json.RawMessage{}
	for _, name := range members {
		if v := given[name]; v != nil {
			params[name] = v
		}
	}
	if m.Method == "run/wait" { // a wait for output moves where the next one begins
		params["for"] = json.RawMessage("{}")
	}
	m.Params, _ = json.Marshal(params) // it was decoded
	data, _ := wire.Request(m.ID, m.Method, m.Params, wire.Trace{})
	return data
}

func (p *relay) fail(id wire.ID, e *wire.Error) {
	if data, err := wire.Failure(id, e); err == nil { // what cannot be encoded has no answer
		_ = p.page.Send(data) // the reader sees the end of the connection
	}
}

// call answers a request in this process.
func (p *relay) call(ctx context.Context, m *wire.Message) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	full, twice := len(p.calls) >= maxCalls, p.calls[m.ID] != nil
	if !full && !twice {
		p.calls[m.ID] = cancel
	}
	p.mu.Unlock()
	if full || twice {
		cancel()
		p.fail(m.ID, &wire.Error{Code: wire.CodeInvalidRequest,
			Message: "too many requests at once, or an ID in use"})
		return
	}
	p.work.Go(func() {
		result, err := p.s.o.Methods[m.Method](ctx, m.Params)
		canceled := ctx.Err() != nil
		p.mu.Lock()
		delete(p.calls, m.ID)
		p.mu.Unlock()
		cancel()
		var refused *wire.Error
		switch {
		case err == nil:
			data, encoding := wire.Response(m.ID, result)
			if encoding == nil {
				_ = p.page.Send(data) // as in fail
				return
			}
			refused = &wire.Error{Code: wire.CodeInternal, Message: encoding.Error()}
		case canceled:
			refused = &wire.Error{Code: wire.CodeCanceled, Message: "the request was canceled"}
		case !errors.As(err, &refused):
			refused = &wire.Error{Code: wire.CodeInternal, Message: text.Line(err.Error())}
		}
		p.fail(m.ID, refused)
	})
}

// cancel cancels a request that is answered here, and reports whether there is one.
func (p *relay) cancel(params json.RawMessage) bool {
	var c wire.Canceled
	if json.Unmarshal(params, &c) != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	stop := p.calls[c.ID]
	if stop != nil {
		stop()
	}
	return stop != nil
}
