// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/patch"
)

// maxPatch is how many bytes a patch may have.
const maxPatch = 4 << 20

// patch applies a patch: all of it or nothing.
func (s *Server) patch(c *call) (*answer, error) {
	x := c.args.execution(s)
	if c.args.err != nil {
		return nil, c.args.err
	}
	if s.opts.Stage != "" {
		return nil, errors.New("this conversation is staged, and a patch would change the files " +
			"themselves: change them by exec")
	}
	changes, err := patch.Parse(x.patch)
	if err != nil {
		return nil, fmt.Errorf("invalid patch: %w", err)
	}
	a, err := s.perform(c, x)
	if err != nil || a.input != nil {
		return a, err
	}
	summary := fmt.Sprint(a.facts["output"])
	applied := a.facts["state"] == stateEnded && string(asJSON(a.facts["exit_code"])) == "0"
	if a.facts["state"] == stateEnded && string(asJSON(a.facts["exit_code"])) == "1" {
		return nil, errors.New("the patch does not apply, and nothing was changed: " +
			strings.TrimSpace(summary))
	}
	files := []map[string]string{}
	for _, h := range changes.Hunks {
		action := map[patch.Kind]string{patch.Add: "add", patch.Delete: "delete",
			patch.Update: "update"}[h.Kind]
		file := map[string]string{"path": h.Path, "action": action}
		if h.To != "" {
			file["action"], file["to"] = "move", h.To
		}
		files = append(files, file)
	}
	if !applied {
		files = files[:0]
	}
	a.facts["applied"], a.facts["files"], a.facts["summary"] = applied, files, summary
	delete(a.facts, "output")
	return a, nil
}
