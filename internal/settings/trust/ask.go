// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// Ask shows the files whole on the controlling terminal and asks whether to trust them, which
// is for the caller to record. It blocks until the user answers or ctx ends. The error is
// [tty.ErrNoTerminal] without a terminal.
func (p *Project) Ask(ctx context.Context) (yes bool, err error) {
	t, err := tty.OpenPrompt(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	before := "never trusted before"
	if p.State == Changed {
		before = p.Why
	}
	err = t.Show(fmt.Sprintf("sallyport: trust the files of this project?\n  %s\n  (%s)\n",
		text.Word(p.Dir), before) +
		"They can narrow what commands may do here. What is under [project] can widen it.\n")
	for i := 0; i < len(p.Files) && err == nil; i++ {
		f := p.Files[i]
		if err = t.Show(fmt.Sprintf("\n%s, %d bytes:\n", text.Word(f.Name), len(f.Data))); err == nil {
			err = t.Quote(string(f.Data))
		}
	}
	if err == nil {
		err = t.Show("\n")
	}
	if err != nil {
		return false, err
	}
	key, err := t.Ask(tty.Choice{Key: "y", Words: []string{"yes"}, Text: "trust these files"},
		tty.Choice{Key: "n", Words: []string{"no"}, Text: "do not trust them"})
	return key == "y" && err == nil, err
}

// A Listing is the answer of sallyport trust --list. The member names of its JSON form stay.
type Listing struct {
	Type     string   `json:"type"` // always "trust"
	Projects []Record `json:"projects"`
}

// String returns the list for people.
func (l Listing) String() string {
	if len(l.Projects) == 0 {
		return "No project is trusted.\n"
	}
	var b strings.Builder
	for _, r := range l.Projects {
		fmt.Fprintf(&b, "%s  %4d files  %s\n", r.Time.Local().Format(time.DateTime), len(r.Files),
			text.Word(r.Dir))
	}
	return b.String()
}
