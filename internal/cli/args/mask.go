// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"slices"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
)

// maskEvent returns an event in which what looks like a secret is masked, wherever words of a command stand.
// What the event refers to stays as it is. Command lines of survivors are masked where they are read.
func maskEvent(e event.Event) event.Event {
	switch b := e.Body.(type) {
	case event.Judged:
		b.Args, b.Reason = environ.Mask(b.Args), environ.MaskText(b.Reason)
		e.Body = b
	case event.ApprovalRequested:
		b.Request = maskRequest(b.Request)
		e.Body = b
	case event.ReviewStarted:
		maskReview(&b.Review, &b.Action)
		e.Body = b
	case event.ReviewCompleted:
		maskReview(&b.Review, &b.Action)
		e.Body = b
	case event.ApprovalDecided:
		b.Rule, b.Message = environ.Mask(b.Rule), environ.MaskText(b.Message)
		e.Body = b
	case event.Retrying:
		b.Reason = environ.MaskText(b.Reason)
		e.Body = b
	case event.Ended:
		b.Error = environ.MaskText(b.Error)
		e.Body = b
	}
	return e
}

func maskRequest(r *approval.Request) *approval.Request {
	q := *r
	q.Args, q.Script, q.Arg0 = environ.Mask(r.Args), environ.MaskText(r.Script), environ.MaskText(r.Arg0)
	q.Reason, q.Justification = environ.MaskText(r.Reason), environ.MaskText(r.Justification)
	q.Offers = slices.Clone(r.Offers)
	for i := range q.Offers {
		q.Offers[i].Rule = environ.Mask(q.Offers[i].Rule)
	}
	return &q
}

func maskReview(r *approval.Review, action *string) {
	if *action == "" && r.Request != nil {
		*action = r.Request.Action()
	}
	*action = environ.MaskText(*action)
	r.Rationale, r.Failure = environ.MaskText(r.Rationale), environ.MaskText(r.Failure)
}
