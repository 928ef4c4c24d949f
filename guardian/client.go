// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package guardian

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// A Form is a form of the API.
type Form string

// The forms.
const (
	Responses Form = "responses"
	Chat      Form = "chat"
)

const (
	maxAttempts = 3
	firstDelay  = 200 * time.Millisecond // doubled each time, 10 % more or less
	maxResponse = 1 << 20                // bytes: an answer is a few sentences
	maxHeader   = 64 << 10
)

// CheckURL returns what is wrong with the address of an API.
func CheckURL(text string) error {
	_, err := parseURL(text)
	return err
}

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, errors.New("the address of the reviewer is no URL such as https://HOST/v1")
	case u.User != nil:
		return nil, errors.New("the address of the reviewer has a name or password; use reviewer.api_key_env")
	case u.Fragment != "":
		return nil, errors.New("the address of the reviewer has a fragment")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return u, nil
	}
	return nil, errors.New("the address of the reviewer needs https; http is for this machine only")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// A client sends one question.
type client struct {
	http       *http.Client
	url, model string
	form       Form
	key        string
	close      func()
}

// client returns one for the settings as they are now.
func (g *Guardian) client() (*client, error) {
	if g.Model == "" {
		return nil, errNoModel
	}
	u, err := parseURL(g.BaseURL)
	if err != nil {
		return nil, err
	}
	c := &client{model: g.Model, form: g.Form, close: func() {}}
	for form, end := range map[Form]string{Responses: "/responses", Chat: "/chat/completions"} {
		if strings.HasSuffix(u.Path, end) {
			c.form, c.url = form, u.String()
		}
	}
	if c.form == "" && u.Hostname() == "api.openai.com" {
		c.form = Responses
	}
	if c.url == "" && c.form == Responses {
		c.url = u.JoinPath("responses").String()
	} else if c.url == "" {
		c.form, c.url = Chat, u.JoinPath("chat/completions").String()
	}
	if g.Key != nil {
		if c.key, err = g.Key(); err != nil {
			return nil, err
		}
		if c.key = strings.TrimSpace(c.key); strings.ContainsFunc(c.key,
			func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, errors.New("the key of the reviewer has characters that no key has")
		}
	}
	c.http = &http.Client{}
	if g.Client != nil {
		*c.http = *g.Client
	} else {
		t := &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: maxHeader, Protocols: new(http.Protocols),
		}
		t.Protocols.SetHTTP1(true)
		c.http.Transport, c.close = t, t.CloseIdleConnections
	}
	// Another host would get the question, and one that is chosen by the answer of the first.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// A transientError is one after which the question is sent again.
type transientError struct{ why string }

func (e *transientError) Error() string { return e.why }

// ask sends the question until it is answered, and counts how often.
func (c *client) ask(ctx context.Context, question string, attempts *int) (answer, error) {
	body, err := c.body(question)
	if err != nil {
		return answer{}, &FailedError{err.Error(), true}
	}
	for n := 1; ; n++ {
		*attempts = n
		a, err := c.send(ctx, body)
		var again *transientError
		switch {
		case err == nil:
			return a, nil
		case ctx.Err() != nil:
			return a, ctx.Err()
		case !errors.As(err, &again):
			return a, &FailedError{Why: err.Error()}
		case n == maxAttempts:
			return a, &FailedError{Why: fmt.Sprintf("%v (%d attempts)", err, n)}
		}
		delay := firstDelay << (n - 1)
		delay += time.Duration((rand.Float64() - 0.5) * 0.2 * float64(delay))
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return a, ctx.Err()
		}
	}
}

// body is the request in its form.
func (c *client) body(question string) ([]byte, error) {
	format := map[string]any{"name": "approval_review", "strict": true, "schema": json.RawMessage(schema)}
	body := map[string]any{"model": c.model, "stream": false}
	if c.form == Responses {
		format["type"] = "json_schema"
		body["store"] = false
		body["instructions"] = policy
		body["input"] = []any{map[string]any{"role": "user",
			"content": []any{map[string]any{"type": "input_text", "text": question}}}}
		body["text"] = map[string]any{"format": format}
	} else {
		body["messages"] = []any{map[string]any{"role": "system", "content": policy},
			map[string]any{"role": "user", "content": question}}
		body["response_format"] = map[string]any{"type": "json_schema", "json_schema": format}
	}
	return json.Marshal(body)
}

// send sends the question once.
func (c *client) send(ctx context.Context, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return answer{}, errors.New("the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return answer{}, &transientError{cause(err)}
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	_ = res.Body.Close()
	if err := status(res.StatusCode); err != nil {
		return answer{}, err
	}
	switch {
	case err != nil:
		return answer{}, &transientError{"the connection was cut"}
	case len(text) > maxResponse:
		return answer{}, fmt.Errorf("its response is larger than %d MiB", maxResponse>>20)
	}
	texts, err := c.texts(text)
	if err != nil {
		return answer{}, &transientError{err.Error()}
	}
	a, err := combine(texts, c.key)
	if err != nil {
		return answer{}, &transientError{err.Error()}
	}
	return a, nil
}

// status returns the error for the status of a response. What else the server says is not handed
// on, because it may repeat the key or the question.
func status(code int) error {
	said := fmt.Sprintf("it answered with HTTP status %d", code)
	switch {
	case code == http.StatusOK:
		return nil
	case code == http.StatusTooManyRequests || code >= 500:
		return &transientError{said}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return errors.New(said + "; check the key that reviewer.api_key_env names")
	case code >= 300 && code < 400:
		return errors.New(said +
			", and redirects are not followed; set reviewer.base_url to the address itself")
	}
	return errors.New(said + "; check reviewer.base_url and reviewer.model")
}

// A response is the envelope of answers in either form.
type response struct {
	Error      json.RawMessage `json:"error"` // null or missing where there is none
	Status     string          `json:"status"`
	Incomplete json.RawMessage `json:"incomplete_details"`
	Choices    []choice        `json:"choices"`
	Output     []output        `json:"output"`
}

// A choice is an answer of the chat form.
type choice struct {
	Finish  json.RawMessage `json:"finish_reason"` // nil where there is none; null is not finished
	Error   json.RawMessage `json:"error"`         // of a gateway to several models
	Message struct {
		Role    string          `json:"role"`
		Content string          `json:"content"`
		Refusal string          `json:"refusal"`
		Error   json.RawMessage `json:"error"`
		Calls   json.RawMessage `json:"tool_calls"`
	} `json:"message"`
}

// An output is an item of the responses form.
type output struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Status  string `json:"status"`
	Content []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// The errors of responses without an answer.
var (
	errEnvelope = errors.New("its response is no JSON of this API")
	errReported = errors.New("its response reports an error")
	errRefused  = errors.New("the model refused to answer")
	errCut      = errors.New("its response is not complete")
)

// finished are the reasons for which a model ends an answer by itself. Others, such as length and
// content_filter, cut it.
var finished = []string{`"stop"`, `"eos"`, `"eos_token"`, `"end_turn"`}

// texts returns the answers in a response. An error, a refusal or an answer that was cut, beside
// others too, means that there is none.
func (c *client) texts(body []byte) ([]string, error) {
	var r response
	if err := strict.Unmarshal(body, &r); err != nil {
		return nil, errEnvelope
	}
	if given(r.Error) {
		return nil, errReported
	}
	if c.form == Chat {
		return r.chat()
	}
	if r.Status != "" && r.Status != "completed" || given(r.Incomplete) {
		return nil, errCut
	}
	var texts []string
	for _, o := range r.Output {
		if o.Type != "message" {
			continue
		}
		if !speaks(o.Role) {
			return nil, errEnvelope
		}
		if o.Status != "" && o.Status != "completed" {
			return nil, errCut
		}
		for _, part := range o.Content {
			if part.Type == "refusal" || part.Refusal != "" {
				return nil, errRefused
			}
			if part.Type != "reasoning_text" {
				texts = append(texts, part.Text)
			}
		}
	}
	return texts, nil
}

// chat returns the answers of the chat form.
func (r *response) chat() (texts []string, err error) {
	for _, choice := range r.Choices {
		if choice.Finish != nil && !slices.Contains(finished, string(choice.Finish)) {
			return nil, errCut
		}
		m := &choice.Message
		switch {
		case given(choice.Error) || given(m.Error):
			return nil, errReported
		case m.Refusal != "":
			return nil, errRefused
		case !speaks(m.Role):
			return nil, errEnvelope
		case given(m.Calls) && string(m.Calls) != "[]":
			return nil, errCut // it waits for what it calls
		}
		texts = append(texts, choice.Message.Content)
	}
	return texts, nil
}

// speaks reports whether a message with a role is one of the model.
func speaks(role string) bool { return role == "" || role == "assistant" }

// given reports whether a member is there and not null.
func given(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// cause says why a request failed, without the address, which may have secrets in its query, and
// without that of a proxy.
func cause(err error) string {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &op):
		return text.Line(op.Error())
	case errors.As(err, &cert):
		return "its certificate is not trusted (" + text.Line(cert.Error()) + ")"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was cut"
	}
	return "the connection failed"
}
