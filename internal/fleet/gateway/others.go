// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/fleet"
	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// A way is how a request finds its nodes, where that is not the one of the session.
type way int

const (
	forAll  way = iota + 1 // all nodes, whose lists are put together
	forSome                // the node that knows what it is about
)

var methods = map[string]way{
	"run/list": forAll, "question/list": forAll, "stage/list": forAll, "sandbox/list": forAll,
	"question/answer": forSome, "question/forget": forSome, "stage/changes": forSome, "stage/diff": forSome,
	"stage/apply": forSome, "stage/discard": forSome, "sandbox/stop": forSome,
}

// unknowns are the reasons with which a node says that it does not know what a request is about.
var unknowns = []string{"unknownQuestion", "unknownStage", "unknownSandbox", "unknownRun"}

// side returns a client of a node, beside the session, with the same credential.
func (c *connection) side(ctx context.Context, node *fleet.Record) (*wire.Client, error) {
	c.mu.Lock()
	known := c.sides[node.Name]
	c.mu.Unlock()
	if known != nil && known.Err() == nil {
		return known, nil
	}
	of := *node
	made, err := wire.Connect(ctx, wire.ClientTarget{Dial: func(context.Context) (wire.Stream, error) {
		l, err := c.gateway.open(&of, fleet.Opening{Credential: c.credential})
		if lost := new(executor.LostError); errors.As(err, &lost) {
			return nil, errors.Join(wire.ErrServerEnded, lost)
		}
		if err != nil {
			return nil, err
		}
		return l, nil
	}}, wire.ClientOptions{Name: "sallyport gateway", Extensions: true})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	other := c.sides[node.Name]
	switch {
	case c.sides == nil: // the connection has ended
	case other == nil || other.Err() != nil:
		c.sides[node.Name] = made
		return made, nil
	}
	go made.Close() //nolint:errcheck // it was not used
	if c.sides == nil {
		return nil, context.Canceled
	}
	return other, nil
}

// on returns what performs a request on a node that is not that of the session.
func (c *connection) on(node *fleet.Record, method string, params json.RawMessage,
) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		s, err := c.side(ctx, node)
		if err != nil {
			return nil, err
		}
		var result json.RawMessage
		err = s.Call(ctx, method, params, &result)
		return result, err //nolint:wrapcheck // the client gets the node's own error
	}
}

// aside performs a request about a run of another node.
func (c *connection) aside(ctx context.Context, method string, params json.RawMessage, of *subject) (any, error) {
	name, boot, _ := fleet.SplitRun(of.RunID)
	lost := &executor.LostError{Machine: name}
	if _, known := c.gateway.registry.IsLost(name, 0, 0); !known {
		return nil, unknownRun(of.RunID)
	} else if node, ok := c.gateway.registry.Find(name); ok {
		result, err := c.on(&node, method, params)(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return result, err
		case boot < node.Boot && wire.RefusalOf(err).Reason == "unknownRun":
		case !errors.As(err, &lost):
			return nil, err
		}
	}
	if result := lostAnswer(lost, &pending{method, *of}); result != nil {
		return result, nil
	}
	return nil, lostFailure(lost)
}

func unknownRun(id string) *wire.Error {
	failure := refuse("unknown run %q; run/list has those that there are", id)
	failure.Data = json.RawMessage(`{"reason":"unknownRun"}`)
	return failure
}

// some has the node perform a request that knows what it is about.
func (c *connection) some(ctx context.Context, method string, params json.RawMessage) (any, error) {
	var last error
	for _, node := range c.gateway.registry.Nodes() {
		if node.State == fleet.Lost {
			continue
		}
		result, err := c.on(&node, method, params)(ctx)
		switch {
		case err == nil || ctx.Err() != nil:
			return result, err
		case last == nil || !slices.Contains(unknowns, wire.RefusalOf(err).Reason):
			last = err
		}
		if failure := new(wire.Error); errors.As(err, &failure) &&
			!slices.Contains(unknowns, wire.RefusalOf(err).Reason) {
			return nil, err // the node that knows it
		}
	}
	if last == nil {
		last = placeFailure(fleet.ErrNoNode)
	}
	return nil, last
}

// versions are those of the lists of nodes, by name; as text it is the version of all of them.
type versions map[string]string

func (v versions) String() string {
	text, _ := json.Marshal(v) // it always encodes
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseVersions(text string) (v versions) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &v) != nil {
		return nil
	}
	return v
}

// all returns the lists of all nodes as one.
func (c *connection) all(ctx context.Context, method string, params json.RawMessage) (any, error) {
	var wait wire.ListWait
	if params != nil && (strings.HasPrefix(method, "run/") || strings.HasPrefix(method, "question/")) {
		p, err := wire.DecodeList(params)
		if err != nil {
			return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
		}
		wait = *p
	}
	if wait.Since != "" {
		c.awaitLists(ctx, method, parseVersions(wait.Since), wait.WaitMs)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	var mu sync.Mutex
	whole, seen := make(map[string]json.RawMessage), make(versions)
	lists := make(map[string]map[string]json.RawMessage)
	var errs []error
	var work sync.WaitGroup
	for _, node := range c.gateway.registry.Nodes() {
		if node.State == fleet.Lost {
			continue
		}
		work.Go(func() {
			got, err := c.list(ctx, &node, method)
			mu.Lock()
			defer mu.Unlock()
			if got != nil {
				lists[node.Name] = got
			}
			errs = append(errs, err)
		})
	}
	work.Wait()
	if err := errors.Join(errs...); err != nil { // what cannot be read is not empty
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		for member, value := range lists[name] {
			if member == "version" {
				var version string
				_ = json.Unmarshal(value, &version) // empty for another form
				seen[name] = version
				continue
			}
			whole[member] = join(whole[member], value)
		}
	}
	if len(lists) == 0 {
		whole[strings.Split(method, "/")[0]+"s"] = json.RawMessage("[]")
		if method == "question/list" {
			whole["approved"], whole["omitted"] = json.RawMessage("[]"), json.RawMessage("0")
		}
	}
	if method == "run/list" || method == "question/list" {
		whole["version"], _ = json.Marshal(seen.String()) // it always encodes
	}
	return whole, ctx.Err()
}

// list returns the list of a node. It has none if it was lost meanwhile, has left, or does not know the
// method.
func (c *connection) list(ctx context.Context, node *fleet.Record, method string,
) (got map[string]json.RawMessage, err error) {
	result, err := c.on(node, method, nil)(ctx)
	if err == nil {
		text, _ := result.(json.RawMessage)
		err = json.Unmarshal(text, &got)
	}
	refused := new(wire.Error)
	if now, alive := c.gateway.registry.Find(node.Name); err == nil || !alive || now.Boot != node.Boot ||
		errors.As(err, &refused) && refused.Code == wire.CodeNoMethod {
		return got, nil
	}
	return nil, fmt.Errorf("the node %s does not say what it has: %w", node.Name, err)
}

// join puts two lists, or two numbers, together.
func join(a, b json.RawMessage) json.RawMessage {
	var list, more []json.RawMessage
	var n, m int
	switch {
	case a == nil:
		return b
	case json.Unmarshal(a, &list) == nil && json.Unmarshal(b, &more) == nil:
		a, _ = json.Marshal(append(list, more...)) // it was JSON
	case json.Unmarshal(a, &n) == nil && json.Unmarshal(b, &m) == nil:
		a, _ = json.Marshal(n + m) // likewise
	}
	return a
}

// maxWaitMs is the longest time to wait for a list: a day.
const maxWaitMs = 24 * 60 * 60 * 1000

// awaitLists waits until the list of a node has another version, a node comes or goes, the time is over or
// ctx ends.
func (c *connection) awaitLists(ctx context.Context, method string, since versions, waitMs uint64) {
	ctx, end := context.WithTimeout(ctx, time.Duration(min(waitMs, maxWaitMs))*time.Millisecond)
	defer end()
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	asked := make(map[string]bool)
	for {
		changed := c.gateway.registry.Changed()
		for _, node := range c.gateway.registry.Nodes() {
			version, known := since[node.Name]
			switch {
			case node.State == fleet.Lost && known, node.State != fleet.Lost && !known:
				return
			case !known || asked[node.Name]:
				continue
			}
			asked[node.Name] = true
			work.Go(func() {
				params, _ := json.Marshal(wire.ListWait{Since: version, WaitMs: waitMs}) // it always encodes
				_, _ = c.on(&node, method, params)(ctx)                                  // an error is looked at again
				end()
			})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
