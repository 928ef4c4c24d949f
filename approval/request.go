// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// Kind is what a question is about.
type Kind string

// The kinds.
const (
	KindCommand Kind = "command" // whether a command runs, or where
	KindNetwork Kind = "network" // whether a host may be reached
	KindPatch   Kind = "patch"   // whether files may be changed
	KindAccess  Kind = "access"  // whether what was denied may be opened
)

// Outside is what a Request requires that is about leaving the sandbox.
const Outside = "outside"

// Network is what a Request requires beside Outside where hosts are judged in the sandbox: outside of it none
// is. Alone it opens nothing.
const Network = "network"

// A Request is one question: everything that an approver is shown. An approval covers what
// stands in it, and nothing wider. Approvers must not change it.
type Request struct {
	ID   string `json:"id"` // unique; the Runner sets it
	Kind Kind   `json:"kind"`
	// Args is the command, with its shell in front of a script; Script is that script alone,
	// or empty.
	Args   []string `json:"argv"`
	Script string   `json:"script"`
	Dir    string   `json:"cwd"`
	// Arg0 is argv[0] of the program where that is another word than the first of Args. Variables are those
	// that the caller, or settings, chose for the command, as "NAME=value" by name: what looks like a secret
	// is masked. Input is what its standard input is, in words; empty is the null device or a terminal.
	Arg0      string   `json:"arg0,omitempty"`
	Variables []string `json:"variables,omitempty"`
	Input     string   `json:"input,omitempty"`
	// Program is the file that runs, without links; empty where it is not known. Digest is the
	// SHA-256 of what it holds; empty where it cannot be read, which only commands in the sandbox
	// cannot change. Files are the files that such commands can change.
	Program string `json:"program"`
	Digest  string `json:"program_sha256,omitempty"`
	Files   []File `json:"files,omitempty"`
	// Environment is the executor; empty for this machine.
	Environment string `json:"environment,omitempty"`
	// Reason is why it is asked, and Justification what the caller says.
	Reason        string `json:"reason"`
	Justification string `json:"justification"`
	// Requires is what would be opened: "outside" (files and network), "network" beside it, "write:/p",
	// "read:/p", "host:h:443", "grant:git", "allow:unix". Empty means that only the command itself is
	// asked about.
	Requires []string `json:"requires"`
	// Denials are the evidence, of an attempt that was made; Runs is how often the command ran
	// already.
	Denials []sandbox.Denial `json:"denials"`
	Runs    int              `json:"runs"`
	// Waiting says that the command runs, and that what it asks for waits for the answer: nothing was
	// repeated, and nothing will be.
	Waiting bool `json:"waiting,omitempty"`
	// WaitMS is for how long it waits, in milliseconds: without an answer until then it is denied. 0 is for a
	// command that does not wait.
	WaitMS int64 `json:"wait_ms,omitempty"`
	// Offers are the rules and hosts that can be remembered, and the paths that an answer opens, Available
	// the answers in the order in which they are offered.
	Offers    []Offer  `json:"offers"`
	Available []Answer `json:"available_decisions"`

	// Key identifies the command with all that an approval for the session depends on; requests
	// with one Key and equal Kind and Requires are the same question. Empty means that the answer
	// is not remembered.
	Key string `json:"-"`
	// Keys are those of the parts of a request, such as the files of a patch, beside Key: what was
	// approved for the session counts for each of them, and a request all of whose parts were approved
	// is not asked. Nil is for a request that is one thing.
	Keys []string `json:"-"`
}

// An Offer is what an answer remembers for good, or which path it opens.
type Offer struct {
	Answer Answer   `json:"decision"`
	Rule   []string `json:"rule,omitempty"` // the prefix that would be allowed
	Host   string   `json:"host,omitempty"` // on every port, for Protocol
	// Protocol is that of a rule about the host: "http", "https", "socks5_tcp" or "socks5_udp".
	Protocol string `json:"protocol,omitempty"`
	Deny     bool   `json:"deny,omitempty"` // the host is remembered as one that is denied
	// Path is what is opened for a command that waits: the path that it asks for (the first one of two, which
	// are opened together), or its directory, which means everything below it.
	Path string `json:"path,omitempty"`
}

// MarshalJSON writes the request as events have it: lists that are empty are there as well.
func (r Request) MarshalJSON() ([]byte, error) {
	type plain Request
	out := plain(r)
	out.Args, out.Requires, out.Offers = list(r.Args), list(r.Requires), list(r.Offers)
	out.Denials, out.Available = list(r.Denials), list(r.Available)
	return json.Marshal(out)
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// Given returns what decides about the command beside its words, directory and program, in lines that are
// the same for all who are asked. Texts of others in it are escaped.
func (r *Request) Given() (lines []string) {
	if n := len(r.Args) - 1; r.Script != "" && n > 0 && r.Args[n] == r.Script &&
		(r.Program == "" || n != 2 || r.Args[1] != "-c") { // else the program says it
		lines = append(lines, "shell: "+text.Line(strings.Join(r.Args[:n], " ")))
	}
	if r.Arg0 != "" {
		lines = append(lines, "called by the name: "+text.Word(r.Arg0))
	}
	for _, v := range r.Variables {
		lines = append(lines, "variable: "+text.Line(v))
	}
	if r.Input != "" {
		lines = append(lines, "standard input: "+text.Line(r.Input))
	}
	return lines
}

// Takes reports whether an answer may be given. Denied and Abort always may.
func (r *Request) Takes(d *Decision) bool {
	switch d.Answer {
	case Denied, Abort, TimedOut:
		return true
	case ApprovedRule:
		return slices.ContainsFunc(r.Offers, func(o Offer) bool {
			return o.Answer == ApprovedRule &&
				slices.Equal(o.Rule, d.Rule)
		})
	case ApprovedHost:
		return slices.ContainsFunc(r.Offers, func(o Offer) bool {
			return o.Answer == ApprovedHost &&
				o.Host == d.Host && o.Deny == d.Deny
		})
	}
	return slices.Contains(r.Available, d.Answer) && (d.Path == "" || slices.ContainsFunc(r.Offers,
		func(o Offer) bool { return o.Answer == d.Answer && o.Path == d.Path }))
}

// key is Key with what is required; empty if the answer is not remembered.
func (r *Request) key() string {
	if r.Key == "" {
		return ""
	}
	what := r.Requires
	if len(r.Keys) > 0 {
		what = r.Args // of which the parts are the whole
	}
	return r.Key + "\x00" + string(r.Kind) + "\x00" + strings.Join(what, "\x00")
}

// keys are those under which an approval for the session is remembered.
func (r *Request) keys() []string {
	if r.Key == "" || len(r.Keys) == 0 {
		return []string{r.key()}
	}
	keys := make([]string, 0, len(r.Keys))
	for _, key := range r.Keys {
		keys = append(keys, r.Key+"\x00"+string(r.Kind)+"\x00"+key)
	}
	return keys
}

// Directory returns the directory that is offered beside what a command waits for; empty for none.
func (r *Request) Directory() string {
	for _, o := range r.Offers {
		if o.Path != "" && o.Path != r.Offers[0].Path {
			return o.Path
		}
	}
	return ""
}

// DecideOn is [Request.Decide] with the offer for a path; an empty path is that of the first offer.
func (r *Request) DecideOn(a Answer, path string) Decision {
	d := r.Decide(a)
	if path != "" && a.Approves() {
		d.Path = path
	}
	return d
}

// Decide returns the decision with an answer, and with the rule, host or path of its first offer.
func (r *Request) Decide(a Answer) Decision {
	d := Decision{Answer: a}
	if i := slices.IndexFunc(r.Offers, func(o Offer) bool { return o.Answer == a }); i >= 0 {
		d.Rule, d.Host, d.Path = r.Offers[i].Rule, r.Offers[i].Host, r.Offers[i].Path
	}
	return d
}
