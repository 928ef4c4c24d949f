// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet is what the parts of a fleet of exec-servers agree on, and how those who use its nodes know
// them: packages node, gateway and hub are the parts, bus and link what lies between.
//
// A node is an exec-server whose connections are links. The hub keeps what must outlive processes: which node
// has a session (bucket sessions), which node was asked to perform a start (bucket starts), and which nodes
// were lost (bucket nodes). All else is asked from the nodes, who alone know.
package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/fleet/bus"
	"github.com/sallyport-dev/sallyport/internal/fleet/link"
)

const (
	// LifeInterval is how often a node says that it lives. One that was silent for Lease is lost: together
	// with the interval at which that is looked at, within 2 seconds.
	LifeInterval = 400 * time.Millisecond
	Lease        = 1500 * time.Millisecond
	watchTime    = 250 * time.Millisecond
	// again is how long a watcher whose connection was made, or made again, waits for the nodes to be back.
	again = 3 * time.Second
	// keepSessions and keepStarts are how long the hub keeps where a session is, after it was used last, and
	// where a start with a key went.
	keepSessions = 48 * time.Hour
	keepStarts   = 24 * time.Hour
)

// A State is that of a node.
type State string

// The states. A node that has left is not listed.
const (
	Ready    State = "ready"
	Draining State = "draining"
	Lost     State = "lost"
	Left     State = "left"
)

// A Record is what a node says of itself.
type Record struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels"`
	Slots   int               `json:"slots"`
	Free    int               `json:"free"`
	Level   string            `json:"level"`
	Version string            `json:"version"`
	State   State             `json:"state"`
	SinceMs int64             `json:"since"` // when it was started, in milliseconds
	// Boot counts the starts of a node with this name. Epoch is at least that, and grows when the node was
	// fenced.
	Boot     uint64 `json:"boot"`
	Epoch    uint64 `json:"epoch"`
	Instance string `json:"instance"` // random, of this process
	// Cuts counts how often its connection to the hub was cut: its links ended then, and what was on its way
	// is lost.
	Cuts   uint64 `json:"cuts,omitempty"`
	Shared bool   `json:"shared,omitempty"`
	// Info is the environmentInfo of its exec-server; only in answers to MethodRecord.
	Info json.RawMessage `json:"info,omitempty"`
}

// Address is where the node is reached.
func (r *Record) Address() link.Address {
	if r.Shared {
		return link.Address{Scope: link.Shared, Node: r.Name}
	}
	return link.Address{Scope: link.Own, Node: r.Name}
}

// RunPrefix is what the IDs of its runs begin with.
func (r *Record) RunPrefix() string { return fmt.Sprintf("%s-%d-", r.Name, r.Boot) }

// SplitRun reads the node and its boot in the ID of a run.
func SplitRun(id string) (node string, boot uint64, ok bool) {
	words := strings.Split(id, "-")
	if len(words) < 3 {
		return "", 0, false
	}
	boot, err := strconv.ParseUint(words[len(words)-2], 10, 64)
	node = strings.Join(words[:len(words)-2], "-")
	return node, boot, err == nil && bus.Token(node)
}

// Kept is what the hub keeps of a node: in the account of the node its boot, in that of a tenant what it was
// declared.
type Kept struct {
	Boot   uint64 `json:"boot"`
	Lost   uint64 `json:"lost"` // the highest epoch that was declared lost; 0 is none
	Record Record `json:"record"`
}

// Calls of nodes.
const (
	MethodRecord   = "record"   // of all nodes: their Record, with Info
	MethodSessions = "sessions" // of all nodes: []Session of the account
	MethodReserve  = "reserve"  // Reserve: Reserved
	MethodKill     = "kill"     // Kill
	MethodDrain    = "drain"    // Drain: {} when it is done
	MethodUndrain  = "undrain"
	MethodFence    = "fence" // Fence: Record
)

// Reserve asks for a slot for a session that starts something soon.
type Reserve struct {
	Session string `json:"session"`
	// Free is how many slots are believed to be free; a node with fewer refuses. 0 takes any.
	Free int `json:"free"`
	// Level, if not empty, is one that the node must enforce.
	Level string `json:"level,omitempty"`
}

// Reserved is the answer.
type Reserved struct {
	OK     bool   `json:"ok"`
	Record Record `json:"record"` // after it
}

// Kill ends a session.
type Kill struct {
	Session string `json:"session"`
	// Unused has only a slot that is reserved for it be free again, and a session end that has neither a
	// client nor anything that runs.
	Unused bool `json:"unused,omitempty"`
}

// Drain asks a node to take no new sessions, and to leave when what runs has ended, or at the deadline.
type Drain struct {
	DeadlineMs int64 `json:"deadlineMs"`
}

// Fence tells a node that it was declared lost in an epoch: it ends what it has of the account.
type Fence struct {
	Epoch uint64 `json:"epoch"`
}

// A Session is one of a node, or of the hub where its node is not there.
type Session struct {
	ID      string       `json:"id"`
	Node    string       `json:"node"`
	State   SessionState `json:"state"`
	Started int64        `json:"started"` // milliseconds
}

// A SessionState is that of a session.
type SessionState string

// The states of a session: starting has started nothing yet, running has something alive or a client, ended
// has neither, or its node has left, and lost was on a node that was lost.
const (
	SessionStarting SessionState = "starting"
	SessionRunning  SessionState = "running"
	SessionEnded    SessionState = "ended"
	SessionLost     SessionState = "lost"
)

// Opening says what a link is for.
type Opening struct {
	// Session is the ID of the session that is opened, or resumed; empty: one that no client knows, for
	// requests about runs.
	Session string `json:"session,omitempty"`
	// Credential is the client's as the gateway knows it. It is told apart from those of other accounts.
	Credential string `json:"credential,omitempty"`
	// Epoch is that of the session; a node with another one refuses.
	Epoch uint64 `json:"epoch,omitempty"`
	// TakesOver says that the client wants the session also if another connection has it, and Observes that
	// it leaves it to that.
	TakesOver bool `json:"takesOver,omitempty"`
	Observes  bool `json:"observes,omitempty"`
}

// KeptSession is what the hub keeps of a session.
type KeptSession struct {
	Node       string            `json:"node,omitempty"` // empty: it has started nothing yet
	Shared     bool              `json:"shared,omitempty"`
	Epoch      uint64            `json:"epoch,omitempty"`
	Boot       uint64            `json:"boot,omitempty"`
	Started    int64             `json:"started"`
	Resumed    int               `json:"resumed,omitempty"` // how often, before it started anything
	Credential string            `json:"credential,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// KeptStart is what the hub keeps of a start with a key: the node that was asked to perform it.
type KeptStart struct {
	Node    string `json:"node"`
	Shared  bool   `json:"shared,omitempty"`
	Boot    uint64 `json:"boot"`
	Epoch   uint64 `json:"epoch"`
	Session string `json:"session"`
}

// Errors about nodes.
var (
	// ErrNoSlot says that no node has a free slot.
	ErrNoSlot = errors.New("no free slot")
	// ErrNoNode says that there is no node which a session may be placed on.
	ErrNoNode = errors.New("no node")
)

// ParseLabels reads labels, each KEY=VALUE.
func ParseLabels(words []string) (map[string]string, error) {
	labels := make(map[string]string)
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" || len(w) > 256 {
			return nil, fmt.Errorf("invalid label %q; use KEY=VALUE with at most 256 bytes", w)
		}
		labels[key] = value
	}
	return labels, nil
}

// levels are those of sandboxes that other ones can stand in for, the strongest first.
var levels = []string{"native", "bwrap", "landlock"}

// Enforces reports whether a machine with a sandbox level has the one that is asked for, or a stronger one.
// Empty asks for none.
func Enforces(has, asked string) bool {
	h, a := slices.Index(levels, has), slices.Index(levels, asked)
	return asked == "" || has == asked || h >= 0 && h <= a
}

// matches reports whether a node has all of the labels.
func (r *Record) matches(labels map[string]string) bool {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if value, ok := r.Labels[key]; !ok || value != labels[key] {
			return false
		}
	}
	return true
}

// Buckets returns where the hub keeps sessions, and starts with a key.
func Buckets(ctx context.Context, conn *bus.Conn) (sessions, starts *bus.Bucket, err error) {
	if sessions, err = conn.Bucket(ctx, "sessions", keepSessions); err == nil {
		starts, err = conn.Bucket(ctx, "starts", keepStarts)
	}
	return sessions, starts, err
}
