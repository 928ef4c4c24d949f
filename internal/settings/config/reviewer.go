// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"

	"github.com/sallyport-dev/sallyport/guardian"
)

// StrictReview reports whether every command is reviewed.
func (e *Effective) StrictReview() bool { return e.Values["reviewer.strict"].Text() == "true" }

// ReviewerKey is the name of the variable with the key of the reviewing model; it may be empty.
func (e *Effective) ReviewerKey() string { return e.Values["reviewer.api_key_env"].Text() }

// CheckReview returns why there can be no strict review although settings want it.
func (e *Effective) CheckReview() error {
	switch {
	case !e.StrictReview():
	case e.Values["reviewer.model"].Text() == "":
		return errors.New("reviewer.strict needs a model, and none is named; set reviewer.model")
	case e.Values["reviewer.shadow"].Text() == "true":
		return errors.New("reviewer.strict and reviewer.shadow cannot be combined, because a shadow review decides nothing; remove one of them")
	}
	return nil
}

// Reviewer returns the reviewing model without its key, nil if none is named.
func (e *Effective) Reviewer() *guardian.Guardian {
	text := func(key string) string { return e.Values["reviewer."+key].Text() }
	g := &guardian.Guardian{BaseURL: text("base_url"), Model: text("model"), Shadow: text("shadow") == "true", Thresholds: guardian.Thresholds{}}
	if g.Model == "" {
		return nil
	}
	g.Timeout, _ = ParseDuration(text("timeout")) // it was checked
	for _, t := range e.Values["reviewer.thresholds"].Texts() {
		if risk, need, err := guardian.ParseThreshold(t); err == nil {
			g.Thresholds[risk] = need
		}
	}
	return g
}
