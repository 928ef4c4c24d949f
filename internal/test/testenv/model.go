// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A Model answers a client of the Responses API with the calls of a script, one a request, and then
// with a message. It keeps what the client says that the calls returned. The zero value calls nothing.
type Model struct {
	// Script are the calls. Each gets the outputs of those before it, in JSON, and returns the name of
	// a tool and its arguments. A name "space.tool" is that of a tool in a name space.
	Script []func(outputs []string) (tool string, arguments map[string]any)

	mu   sync.Mutex
	said []string // the outputs in the newest request
}

// Said returns the outputs of all calls, in JSON.
func (m *Model) Said() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said
}

// ServeHTTP implements [http.Handler] with the part of the API that clients need.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Input []struct {
			Type   string
			Output json.RawMessage
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || !strings.HasSuffix(r.URL.Path, "/responses") || json.Unmarshal(body, &request) != nil {
		http.NotFound(w, r)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = nil
	for _, item := range request.Input {
		if item.Type == "function_call_output" {
			m.said = append(m.said, string(item.Output))
		}
	}
	item := map[string]any{"type": "message", "role": "assistant",
		"content": []any{map[string]any{"type": "output_text", "text": "done"}}}
	if n := len(m.said); n < len(m.Script) {
		tool, arguments := m.Script[n](m.said)
		text, _ := json.Marshal(arguments)
		item = map[string]any{"type": "function_call", "name": tool,
			"call_id": fmt.Sprintf("call_%d", n), "arguments": string(text)}
		if space, name, ok := strings.Cut(tool, "."); ok {
			item["namespace"], item["name"] = space, name
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
	for _, event := range []map[string]any{
		{"type": "response.created", "response": map[string]any{"id": "r"}},
		{"type": "response.output_item.done", "item": item},
		{"type": "response.completed", "response": map[string]any{"id": "r", "usage": usage}},
	} {
		text, _ := json.Marshal(event)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], text)
	}
}
