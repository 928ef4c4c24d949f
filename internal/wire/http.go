// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// HTTPRequest are the parameters of http/request.
type HTTPRequest struct {
	RequestID string
	Method    string
	URL       string
	Headers   []HTTPHeader
	Body      []byte
	TimeoutMs *uint64 // nil for none
	Stop      bool    // redirectPolicy is "stop", not "follow"
	Stream    bool    // streamResponse
}

// HTTPHeader is a header of a request. The value of the variable Env of the server follows Value,
// unless Env is empty.
type HTTPHeader struct{ Name, Value, Env string }

// DecodeHTTPRequest reads the parameters of http/request.
func DecodeHTTPRequest(params json.RawMessage) (*HTTPRequest, error) {
	f := object(params, "HttpRequestParams")
	r := &HTTPRequest{Method: f.text("method"), URL: f.text("url"), RequestID: f.text("requestId"), Stream: f.flag("streamResponse", false)}
	for _, v := range f.values(f.optional("headers")) {
		h := object(v, "HttpHeader")
		header := HTTPHeader{Name: h.text("name"), Value: h.text("value")}
		if name := h.optionalText("valueEnvVar"); name != nil {
			if header.Env = *name; *name == "" {
				h.fail(errors.New("valueEnvVar must not be empty"))
			}
		}
		f.fail(h.err)
		r.Headers = append(r.Headers, header)
	}
	if v := f.optional("bodyBase64"); v != nil {
		r.Body = f.data("bodyBase64")
	}
	r.TimeoutMs = f.natural("timeoutMs", "u64")
	switch policy := f.optionalText("redirectPolicy"); {
	case policy == nil || *policy == "follow":
	case *policy == "stop":
		r.Stop = true
	default:
		f.fail(fmt.Errorf("unknown variant `%s`, expected `follow` or `stop`", *policy))
	}
	return r, f.err
}

// values returns the values of an array; nil for nil.
func (f *fields) values(v []byte) (list []json.RawMessage) {
	switch {
	case v == nil:
	case v[0] != '[':
		f.fail(expected(v, "a sequence"))
	default:
		f.fail(json.Unmarshal(v, &list))
	}
	return list
}

// HTTPField is a header of an answer.
type HTTPField struct {
	Name  string `json:"name"` // in lower case
	Value string `json:"value"`
}

// HTTPResult is the result of http/request. Headers and Body must not be nil.
type HTTPResult struct {
	Status  int         `json:"status"`
	Headers []HTTPField `json:"headers"`
	Body    []byte      `json:"bodyBase64"` // empty when it is streamed
}

// MethodBodyDelta is the notification of a piece of a streamed body.
const MethodBodyDelta = "http/request/bodyDelta"

// BodyDelta are its parameters. The last one is done and has no data.
type BodyDelta struct {
	RequestID string  `json:"requestId"`
	Seq       uint64  `json:"seq"` // from 1
	Data      []byte  `json:"deltaBase64"`
	Done      bool    `json:"done"`
	Error     *string `json:"error"` // why the body is not complete; nil when it is
}
