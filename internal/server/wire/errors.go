// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"

	"github.com/sallyport-dev/sallyport/internal/text"
)

// A TransportError reports a connection that has ended, or that cannot be made.
type TransportError struct {
	// Sent says that the request was sent: whether it was performed is not known.
	Sent bool
	Err  error // why; not nil
}

// Error returns one sentence with the reason.
func (e *TransportError) Error() string {
	s := "the connection to the exec-server is not available: "
	if e.Sent {
		s = "the connection to the exec-server ended before the answer, so the request may have been performed: "
	}
	return s + text.Line(e.Err.Error())
}

// Unwrap returns the reason.
func (e *TransportError) Unwrap() error { return e.Err }

// ErrClientClosed is the cause of a *TransportError after Close.
var ErrClientClosed = errors.New("the client is closed")

// ErrCallTooLong is the error for a request that is longer than one message may be.
var ErrCallTooLong = fmt.Errorf("the request is longer than %d bytes, the most that one message carries; send less at once", MaxFrame)

// errSilent is the cause when a server does not answer.
var errSilent = fmt.Errorf("the server did not answer within %v", handshakeTime)

// ErrServerEnded is wrapped by what a Target.Dial returns when the server has ended and none comes in its
// place that has the session.
var ErrServerEnded = errors.New("the server has ended")

// final reports whether an error of a connection or a handshake stays the same when it is tried
// again.
func final(err error) bool {
	var answer *Error
	var status *StatusError
	var malformed *MalformedError
	switch {
	case errors.As(err, &answer):
		// The server has not seen the end of the last connection yet, or has trouble of its own, as a gateway
		// without its hub.
		return answer.Code != CodeAttached && answer.Code != CodeInternal
	case errors.As(err, &status):
		return status.Status < 500
	}
	return errors.As(err, &malformed) || errors.Is(err, ErrURL) || errors.Is(err, ErrTooLong) ||
		errors.Is(err, errSession) || errors.Is(err, ErrServerEnded)
}
