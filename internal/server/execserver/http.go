// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

const (
	// maxHTTPRequests is how many HTTP requests of one connection are in progress at once.
	maxHTTPRequests = 32
	// maxHTTPBytes is how many bytes of their bodies, and of answers that are not streamed, are
	// held at once.
	maxHTTPBytes = 32 << 20
	// maxBody is how many bytes of a body one answer carries, with the head of the answer.
	maxBody = (wire.MaxFrame - 2<<20) / 4 * 3
	// deltaBytes is the most that one notification has of a streamed body.
	deltaBytes = 64 << 10
)

// The reasons why a request fails that are not those of the network.
var (
	errHTTPTime = errors.New("no complete answer within timeoutMs")
	errLongBody = fmt.Errorf("the body is longer than %d bytes, the most that one answer carries; set `streamResponse`", maxBody)
	errHTTPFull = fmt.Errorf("bodies of requests and answers in progress take %d bytes, the most of one connection; set `streamResponse`, or wait for an answer", maxHTTPBytes)
)

// httpRequests are the HTTP requests of one connection that are in progress.
type httpRequests struct {
	client *files.HTTPClient // nil before the first; only the goroutine of connection.serve sets it

	mu      sync.Mutex
	running int
	held    int                 // bytes, see maxHTTPBytes
	streams map[string]struct{} // IDs of those that are streamed
}

// close ends what is kept for further requests. No request may be in progress.
func (h *httpRequests) close() {
	if h.client != nil {
		h.client.Close()
	}
}

// begin announces a request. It ends with end.
func (h *httpRequests) begin(p *wire.HTTPRequest) *wire.Error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, used := h.streams[p.RequestID]
	switch {
	case used:
		return invalid(fmt.Sprintf("http/request requestId `%s` is in use by a streamed response", p.RequestID))
	case h.running >= maxHTTPRequests:
		return refuse(fmt.Sprintf("limit of http requests (%d) reached; wait for the end of one of them first", maxHTTPRequests))
	case h.held+len(p.Body) > maxHTTPBytes:
		return refuse(errHTTPFull.Error())
	}
	if h.client == nil {
		h.client = files.NewHTTPClient()
	}
	if h.streams == nil {
		h.streams = make(map[string]struct{})
	}
	h.running++
	h.held += len(p.Body)
	if p.Stream {
		h.streams[p.RequestID] = struct{}{}
	}
	return nil
}

// end ends a request, after its last message was queued: a client that does not read has no more
// of them than others.
func (h *httpRequests) end(p *wire.HTTPRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	h.held -= len(p.Body)
}

// free frees the ID of a stream, before its last message is queued: the client may use it again
// when it has that.
func (h *httpRequests) free(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, id)
}

// hold takes n bytes of what may be held, and reports whether they are left. Negative n gives
// bytes back.
func (h *httpRequests) hold(n int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held+n > maxHTTPBytes {
		return false
	}
	h.held += n
	return true
}

// requestHTTP makes an HTTP request beside all other requests.
func (c *connection) requestHTTP(id wire.ID, p *wire.HTTPRequest) {
	r, failure := c.server.httpRequest(p)
	if failure == nil {
		failure = c.server.boundHTTP()
	}
	if failure == nil {
		failure = c.http.begin(p)
	}
	if failure != nil {
		c.fail(id, failure)
		return
	}
	ctx, done := c.cancelable(id)
	c.work.Go(func() {
		defer c.http.end(p)
		defer done()
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		defer context.AfterFunc(c.server.serving, func() { end(ErrClosed) })()
		cancel := func() {}
		if p.TimeoutMs != nil {
			ctx, cancel = context.WithTimeoutCause(ctx, milliseconds(*p.TimeoutMs), errHTTPTime)
		}
		defer cancel()
		c.performHTTP(ctx, id, p, r)
	})
}

// httpRequest returns what a client asks for, or why that is not done.
func (s *Server) httpRequest(p *wire.HTTPRequest) (*files.HTTPRequest, *wire.Error) {
	if !s.opts.AllowHTTP {
		return nil, refuse("http/request is not allowed by this exec-server; start it with `--allow-http`")
	}
	headers := make([]files.HTTPHeader, len(p.Headers))
	for i, h := range p.Headers {
		headers[i] = files.HTTPHeader{Name: h.Name, Value: h.Value}
		if h.Env == "" {
			continue
		}
		// What is not allowed has the same error whether it exists or not.
		if !slices.Contains(s.opts.HTTPEnv, "*") && !slices.Contains(s.opts.HTTPEnv, h.Env) {
			return nil, invalid(fmt.Sprintf("http/request header %s must not contain the environment variable %s: start the exec-server with `--allow-http-env %s`", h.Name, h.Env, h.Env))
		}
		value, ok := s.variable(h.Env)
		if !ok {
			return nil, invalid(fmt.Sprintf("http/request header %s requires executor environment variable %s", h.Name, h.Env))
		}
		headers[i].Value, headers[i].Secret = h.Value+value, true
	}
	r, err := files.NewHTTPRequest(p.Method, p.URL, headers)
	if err != nil {
		return nil, invalid("http/request " + err.Error())
	}
	r.SetBody(p.Body)
	if p.Redirect == "stop" {
		r.StopAtRedirects()
	}
	return r, nil
}

// variable returns the value of a variable of the server.
func (s *Server) variable(name string) (value string, ok bool) {
	for _, entry := range s.opts.Environ {
		if v, found := strings.CutPrefix(entry, name+"="); found {
			value, ok = v, true
		}
	}
	return value, ok
}

// performHTTP performs a request and answers it.
func (c *connection) performHTTP(ctx context.Context, id wire.ID, p *wire.HTTPRequest, r *files.HTTPRequest) {
	answer, err := c.http.client.Do(ctx, r)
	if err != nil {
		c.failHTTP(ctx, id, p, err)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	result := wire.HTTPResult{Status: answer.Status, Headers: []wire.HTTPField{}, Body: []byte{}}
	for _, h := range answer.Headers {
		result.Headers = append(result.Headers, wire.HTTPField{Name: h.Name, Value: h.Value})
	}
	if p.Stream {
		c.answer(id, result)
		c.streamBody(ctx, p, answer.Body)
		return
	}
	body := heldBody{requests: &c.http}
	defer body.release()
	if err := body.read(ctx, answer.Body); err != nil {
		c.failHTTP(ctx, id, p, err)
		return
	}
	result.Body = append(result.Body, body.bytes.Bytes()...)
	c.answer(id, result)
}

// failHTTP sends the error of a request that got no answer.
func (c *connection) failHTTP(ctx context.Context, id wire.ID, p *wire.HTTPRequest, err error) {
	if p.Stream {
		c.http.free(p.RequestID)
	}
	if c.life.Err() == nil && !c.wasCanceled(ctx, id) { // else there is no client that waits
		c.fail(id, &wire.Error{Code: wire.CodeInternal, Message: "http/request failed: " + err.Error()})
	}
}

// A heldBody is the body of an answer that is not streamed.
type heldBody struct {
	requests *httpRequests
	bytes    bytes.Buffer
	held     int
}

// release gives the bytes back.
func (b *heldBody) release() { b.requests.hold(-b.held) }

// read reads the whole body.
func (b *heldBody) read(ctx context.Context, from io.Reader) error {
	part := make([]byte, 32<<10)
	for {
		n, err := from.Read(part)
		switch {
		case b.bytes.Len()+n > maxBody:
			return errLongBody
		case !b.requests.hold(n):
			return errHTTPFull
		}
		b.held += n
		b.bytes.Write(part[:n])
		if err != nil {
			return bodyError(ctx, err)
		}
	}
}

// bodyError returns why a body is not complete; nil when it is. Err is from its reader.
func bodyError(ctx context.Context, err error) error {
	switch {
	case err == io.EOF: //nolint:errorlint // readers return it as it is; what wraps it is another error
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

// streamBody sends the body of an answer. It reads no faster than the client does.
func (c *connection) streamBody(ctx context.Context, p *wire.HTTPRequest, body io.Reader) {
	part := make([]byte, deltaBytes)
	delta := wire.BodyDelta{RequestID: p.RequestID}
	var err error
	for err == nil {
		var n int
		if n, err = body.Read(part); n > 0 {
			delta.Seq++
			delta.Data = part[:n]
			c.sendDelta(delta)
		}
	}
	c.http.free(p.RequestID)
	if c.life.Err() != nil {
		return
	}
	delta.Seq++
	delta.Data, delta.Done = []byte{}, true
	if err = bodyError(ctx, err); err != nil {
		text := "http/request failed: " + err.Error()
		delta.Error = &text
	}
	c.sendDelta(delta)
}

// sendDelta queues a piece of a body. A connection that has ended needs none; its end also ends
// the reads of the body.
func (c *connection) sendDelta(d wire.BodyDelta) {
	if text, err := wire.Notification(wire.MethodBodyDelta, d); err == nil {
		// texts and numbers always encode
		_ = c.conn.Send(text)
	}
}
