// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package consoles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/server/console"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
)

// A proposal is the result of config/allow. The member names stay.
type proposal struct {
	File   string   `json:"file"`
	Text   string   `json:"text"`  // of the file as it will be, or is
	Added  []string `json:"added"` // lines that the file has not
	Digest string   `json:"digest"`
	Done   bool     `json:"done"` // it was written, and is trusted
}

// allow is config/allow: it shows what would allow the denials of a run in its project, and writes that if a
// person confirms what was shown.
func (h *history) allow(_ context.Context, params json.RawMessage) (any, error) {
	var p struct {
		ID      string `json:"id" rule:"need"`
		Confirm string `json:"confirm"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	r, err := h.find(p.ID)
	if err != nil {
		return nil, err
	}
	words := explain.KeepingCommand(*r, "")
	if words == nil {
		return nil, console.Refused(wire.CodeInvalidRequest,
			"no setting of the project allows what this run was denied", "nothingToAllow")
	}
	change, settings, err := h.env.Proposed(words[3:]) // behind "sallyport config allow"
	if err != nil {
		return nil, err
	}
	answer := proposal{File: change.Path, Text: string(change.New), Added: added(change),
		Digest: digestOf(change)}
	switch p.Confirm {
	case "":
		return answer, nil
	case answer.Digest:
	default:
		return nil, console.Refused(wire.CodeInvalidRequest,
			"the file has changed since it was shown; look at it again", "otherDigest")
	}
	if err := change.Write(); err != nil {
		return nil, err
	}
	answer.Done = true
	return answer, h.env.Allowed(settings, r.Dir)
}

// added returns the lines of the new text that the old one has not.
func added(p *trust.Proposal) []string {
	old := slices.Collect(strings.Lines(string(p.Old)))
	lines := []string{}
	for line := range strings.Lines(string(p.New)) {
		if !slices.Contains(old, line) {
			lines = append(lines, strings.TrimRight(line, "\r\n"))
		}
	}
	return lines
}

// digestOf identifies a change of a file.
func digestOf(p *trust.Proposal) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", p.Path, p.Old, p.New))
	return hex.EncodeToString(sum[:])
}
