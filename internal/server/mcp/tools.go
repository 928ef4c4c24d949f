// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	_ "embed" // instructions and tools
	"encoding/json"
	"maps"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// instructions are what a client tells its model about the server.
//
//go:embed instructions.txt
var instructions string

// described has the tools as clients see them, and the members that all answers about a run have.
//
//go:embed tools.json
var described []byte

// A tool is one that the server has.
type tool struct {
	sdk.Tool
	known []string // the names of its arguments
	run   func(*Server, *call) (*answer, error)
}

// A schema is that of an object.
type schema struct {
	Type       string                     `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required,omitempty"`
	Additional *bool                      `json:"additionalProperties,omitempty"`
}

// functions are what the tools do.
func functions() map[string]func(*Server, *call) (*answer, error) {
	return map[string]func(*Server, *call) (*answer, error){
		"exec": (*Server).exec, "write": (*Server).write, "wait": (*Server).wait, "read": (*Server).read,
		"screen": (*Server).screen, "signal": (*Server).signal, "list": (*Server).list,
		"patch": (*Server).patch,
		"check": (*Server).check, "changes": (*Server).changes,
	}
}

// tools returns all that there are.
var tools = sync.OnceValue(func() (all []*tool) {
	var from struct {
		Result schema
		Tools  []struct {
			sdk.Tool
			InputSchema  schema `json:"inputSchema"`
			OutputSchema schema `json:"outputSchema"`
			Result       bool   // the answer is about a run
		}
	}
	if err := json.Unmarshal(described, &from); err != nil {
		panic(err) // it is a part of the program
	}
	does := functions()
	for _, t := range from.Tools {
		if t.Result {
			maps.Copy(t.OutputSchema.Properties, from.Result.Properties)
			t.OutputSchema.Required = append(t.OutputSchema.Required, from.Result.Required...)
		}
		t.Tool.InputSchema, t.Tool.OutputSchema = t.InputSchema, t.OutputSchema
		all = append(all, &tool{t.Tool, slices.Sorted(maps.Keys(t.InputSchema.Properties)), does[t.Name]})
	}
	return all
})
