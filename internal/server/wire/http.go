// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// HTTPRequest are the parameters of http/request.
type HTTPRequest struct {
	_         struct{}     `rule:"name=HttpRequestParams"`
	Method    string       `json:"method" rule:"need"`
	URL       string       `json:"url" rule:"need"`
	RequestID string       `json:"requestId" rule:"need"`
	Stream    bool         `json:"streamResponse,omitempty" rule:"nonnull"`
	Headers   []HTTPHeader `json:"headers,omitempty"`
	Body      []byte       `json:"bodyBase64,omitempty"`
	TimeoutMs *uint64      `json:"timeoutMs,omitempty"`                             // nil for none
	Redirect  string       `json:"redirectPolicy,omitempty" rule:"one=follow|stop"` // empty is "follow"
}

// HTTPHeader is a header of a request. The value of the variable Env of the server follows Value,
// unless Env is empty.
type HTTPHeader struct {
	_     struct{} `rule:"name=HttpHeader"`
	Name  string   `json:"name" rule:"need"`
	Value string   `json:"value" rule:"need"`
	Env   string   `json:"valueEnvVar,omitempty" rule:"filled"`
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
