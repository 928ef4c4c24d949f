// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
)

// ReadConfig are the parameters of environmentConfig/read. Which paths a client wants does not
// matter to a server without configuration.
type ReadConfig struct{ CWD string } // a URI

// DecodeReadConfig reads the parameters of environmentConfig/read.
func DecodeReadConfig(params json.RawMessage) (*ReadConfig, error) {
	f := object(params, "EnvironmentConfigReadParams")
	r := &ReadConfig{CWD: f.text("cwd")}
	paths := append(f.values(f.need("configPaths")), f.values(f.need("requirementsPaths"))...)
	if f.err == nil && len(paths) == 0 {
		f.err = errors.New("at least one config or requirements path is required")
	}
	for _, path := range paths {
		if keys := f.listOf(path); f.err == nil && len(keys) == 0 {
			f.err = errors.New("TOML paths must contain at least one key segment")
		}
	}
	return r, f.err
}

// ConfigResult is the result of environmentConfig/read. The directories are URIs.
type ConfigResult struct {
	HomeDir      string       `json:"userHomeDir"`
	CodexHome    string       `json:"codexHomeDir"`
	Hostname     string       `json:"hostname"`
	Config       ConfigLayers `json:"config"`
	Requirements ConfigLayers `json:"requirements"`
}

// ConfigLayers are the layers of a configuration. Layers must not be nil; it is empty here, and a
// client adds what it has from elsewhere at the index.
type ConfigLayers struct {
	Layers              []struct{} `json:"layers"`
	CloudInsertionIndex int        `json:"cloudInsertionIndex"`
}

// CapabilityRoot is a directory in which a client wants to find capabilities.
type CapabilityRoot struct {
	ID      string
	Path    string // a URI
	Sandbox *Sandbox
}

// DecodeDiscover reads the parameters of capabilityRoots/discoverV1.
func DecodeDiscover(params json.RawMessage) ([]CapabilityRoot, error) {
	f := object(params, "CapabilityRootsDiscoverParams")
	var roots []CapabilityRoot
	for _, v := range f.values(f.need("roots")) {
		r := object(v, "CapabilityRoot")
		roots = append(roots, CapabilityRoot{ID: r.text("id"), Path: r.text("path"), Sandbox: r.sandbox()})
		f.fail(r.err)
	}
	return roots, f.err
}

// DiscoverResult is the result of capabilityRoots/discoverV1. Roots must not be nil.
type DiscoverResult struct {
	Roots []Discovery `json:"roots"`
}

// Discovery is what was found in a root. This version finds nothing, so there are no types for it;
// the lists must not be nil.
type Discovery struct {
	ID                 string     `json:"id"`
	Path               string     `json:"path"` // a URI
	Plugin             *struct{}  `json:"plugin"`
	Skills             []struct{} `json:"skills"`
	NamespaceManifests []struct{} `json:"namespaceManifests"`
	Warnings           []string   `json:"warnings"`
	Error              *string    `json:"error"` // nil for none
}
