// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// Conditions are what people and models say that ends a wait. The zero Conditions are none.
type Conditions struct {
	Exit, Input, Port bool
	Match             string        // a regular expression; empty for none
	Quiet             time.Duration // at least a millisecond; 0 for none
}

// Add adds the conditions in a text: exit, quiet=DUR, input, port or match=RE, with commas between them,
// where match=RE is the last. The error is one sentence.
func (c *Conditions) Add(text string) error {
	for more := true; more; {
		var one string
		if strings.HasPrefix(text, "match=") {
			one, more = text, false
		} else {
			one, text, more = strings.Cut(text, ",")
		}
		switch name, value, given := strings.Cut(one, "="); {
		case name == "exit" && !given:
			c.Exit = true
		case name == "input" && !given:
			c.Input = true
		case name == "port" && !given:
			c.Port = true
		case name == "match" && value != "":
			c.Match = value
		case name == "quiet" && given:
			d, err := syntax.ParseDuration(value)
			if err == nil && d < time.Millisecond {
				err = errors.New("it must be at least 1ms")
			}
			if err != nil {
				return fmt.Errorf("quiet: %w", err)
			}
			c.Quiet = d
		default:
			return fmt.Errorf("invalid condition %s; use exit, quiet=DUR, input, match=RE or port",
				syntax.QuoteFlag(one))
		}
	}
	return nil
}

// Until returns what ends a wait of at most so long: the end of the run, or a condition. The error is that
// of [Pattern].
func (c *Conditions) Until(longest time.Duration) (Until, error) {
	match, err := Pattern(c.Match)
	u := Until{For: longest, Quiet: c.Quiet, Input: c.Input, Match: match, Port: c.Port}
	u.ExitOnly = u.Quiet == 0 && !u.Input && u.Match == nil && !u.Port
	return u, err
}
