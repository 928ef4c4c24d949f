// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"slices"
)

// ReadConfig are the parameters of environmentConfig/read. Which paths a client wants does not
// matter to a server without configuration.
type ReadConfig struct {
	_                 struct{}   `rule:"name=EnvironmentConfigReadParams"`
	CWD               string     `json:"cwd" rule:"need"` // a URI
	ConfigPaths       [][]string `json:"configPaths" rule:"need"`
	RequirementsPaths [][]string `json:"requirementsPaths" rule:"need"`
}

// Validate returns what is wrong with the paths.
func (r *ReadConfig) Validate() error {
	paths := append(r.ConfigPaths, r.RequirementsPaths...)
	if len(paths) == 0 {
		return errors.New("at least one config or requirements path is required")
	}
	if slices.ContainsFunc(paths, func(keys []string) bool { return len(keys) == 0 }) {
		return errors.New("TOML paths must contain at least one key segment")
	}
	return nil
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

// Discover are the parameters of capabilityRoots/discoverV1.
type Discover struct {
	_     struct{}         `rule:"name=CapabilityRootsDiscoverParams"`
	Roots []CapabilityRoot `json:"roots" rule:"need"`
}

// CapabilityRoot is a directory in which a client wants to find capabilities.
type CapabilityRoot struct {
	ID      string   `json:"id" rule:"need"`
	Path    string   `json:"path" rule:"need"` // a URI
	Sandbox *Sandbox `json:"sandbox,omitempty"`
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
