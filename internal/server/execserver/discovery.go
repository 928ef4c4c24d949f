// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package execserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sallyport-dev/sallyport/internal/server/files"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// maxRoots is how many roots one request has inspected.
const maxRoots = 256

// readConfig answers for a server that has no configuration for its clients.
func (c *connection) readConfig(id wire.ID, p *wire.ReadConfig) {
	host, _ := c.server.exec.Host(c.life) // it never fails on this machine
	if _, err := (&files.Server{System: host.OS}).Path(p.CWD); err != nil {
		c.fail(id, files.Failure(err))
		return
	}
	home, err := os.UserHomeDir()
	if err != nil {
		c.fail(id, &wire.Error{Code: wire.CodeInternal,
			Message: "the home directory is not known: " + err.Error()})
		return
	}
	codex, _ := c.server.variable("CODEX_HOME")
	if !filepath.IsAbs(codex) {
		codex = filepath.Join(home, ".codex")
	}
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	none := wire.ConfigLayers{Layers: []struct{}{}}
	c.answer(id, wire.ConfigResult{HomeDir: wire.URI(home), CodexHome: wire.URI(codex),
		Hostname: cmp.Or(name, "localhost"), Config: none, Requirements: none})
}

// discover looks for capabilities, after the requests about files that came before.
func (c *connection) discover(id wire.ID, p *wire.Discover) {
	roots := p.Roots
	if len(roots) > maxRoots {
		c.fail(id, refuse(fmt.Sprintf("at most %d capability roots can be inspected at once", maxRoots)))
		return
	}
	c.files.add(id, &files.Request{Perform: func(ctx context.Context, s *files.Server) (any, error) {
		result := wire.DiscoverResult{Roots: make([]wire.Discovery, len(roots))}
		for i, root := range roots {
			found := wire.Discovery{ID: root.ID, Path: root.Path, Skills: []struct{}{},
				NamespaceManifests: []struct{}{}, Warnings: []string{}}
			if err := s.Inspect(root); err != nil {
				text := fmt.Sprintf("failed to inspect capability root %s: %s", root.Path,
					files.Failure(err).Message)
				found.Error = &text
			}
			result.Roots[i] = found
		}
		return result, ctx.Err()
	}})
}
