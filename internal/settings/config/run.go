// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval/program"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/command/environ"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
)

// A Run is what flags and settings say about one run. The zero value of a member means that nothing
// has set it.
type Run struct {
	// Cmd has those members that a row of the table sets.
	Cmd sallyport.Cmd

	Sandbox, Profile                    string // as flags gave them
	Base                                string // the mode that holds
	Network, Inherit, Dir, Workspace    string
	Writable, Readable, Denied, Grants  []string
	Variables                           []string // "K=V" or "K", in the order given
	HasScript                           bool
	Descriptors                         []int
	TTY                                 *bool
	Quiet, Verbose                      bool
	JSON, JSONL, JSONLDrop, Interactive bool
	Detach, Help, NoConfig              bool
	Config                              string

	AskFor       []string
	Approved     string // the ID of what a person has approved in an agent; empty for none
	ApprovalWait time.Duration
	// AskInConsole has questions without a terminal wait for an open console.
	AskInConsole bool
	Approver     program.Approver  // one without arguments is none
	Reviewer     guardian.Guardian // without its key; one without a model is none
	ReviewerKey  string            // the name of the variable with the key; may be empty
	StrictReview bool
	Telemetry    bool // is sent

	// StageName is that of --stage=NAME; empty for a new stage.
	StageName string

	// Record says that the terminal is recorded; RecordFile is the FILE of --record, empty for one in Dir of
	// Recordings.
	Record     bool
	RecordFile string
	Recordings Recordings

	// Join names the sandbox to run in; empty for one of its own. Idle is how long it waits for a run
	// before it ends, if this one starts it.
	Join string
	Idle time.Duration

	// Audit says what becomes of records of the run.
	Audit Audit

	// Server is the one to run on.
	Server Server

	// Given are the settings that flags gave, and Shape those flags that decide what the program may touch,
	// so that the command line can be written again; values of variables are masked. Local are the flags that
	// are not sent to a server.
	Given Values
	Shape []string
	Local []*Flag

	sent  []string // the other flags, each as one word
	given []string // all flags, each as one word
}

// Audit is what settings say about the audit log.
type Audit struct {
	Path      string // absolute, or AuditOff; empty and AuditState mean the one in the state directory
	KeyFile   string // absolute; empty means that of the log itself
	Retention time.Duration
	Required  *bool // nil where nothing says so
	Sync      bool

	// Runs is how many ended runs are shown, the newest; 0 is the default. Output is how many bytes of what
	// they printed are kept; 0 is nothing.
	Runs   int
	Output int64
}

// Recordings say how terminals are recorded. Zero members are the defaults.
type Recordings struct {
	Dir, Format       string
	MaxSize, MaxTotal int64 // in bytes
	MaxAge            time.Duration
}

// A Flag is a flag of run, which sets the value of its row.
type Flag struct {
	syntax.Flag
	// Sets is the value that a switch gives; empty is "true".
	Sets string
	// Local flags are about the program that takes them, and are not sent to a server. It is what a client
	// does in place of one, for the error of a server that gets it; empty for flags that are sent.
	Local string

	optional func(string) error // of a value that is Optional; nil for none

	after   string         // the flag before it in the help text; empty for that of a row above
	several bool           // the value has elements, with commas between them
	bare    string         // the key that a value without "=" sets; empty for that of the row
	to      func(*Run) any // the member of a run that keeps the value as it was given; nil for none
	row     *Key
}

// RunFlags returns the flags of run in the order of the help text. They must not be changed.
var RunFlags = sync.OnceValue(func() (flags []*Flag) {
	var moved []*Flag
	for _, group := range groups {
		for i := range keys {
			for j := range keys[i].Flags {
				switch f := &keys[i].Flags[j]; {
				case f.Group != group:
					continue
				case f.after != "":
					moved = append(moved, f)
					fallthrough
				default:
					f.row, f.Key = &keys[i], keys[i].Name
					flags = append(flags, f)
				}
			}
		}
	}
	for range moved { // each follows one that may be moved, too
		for _, f := range moved {
			flags = slices.DeleteFunc(flags, func(o *Flag) bool { return o == f })
			flags = slices.Insert(flags, 1+slices.IndexFunc(flags,
				func(o *Flag) bool { return o.Long == f.after }), f)
		}
	}
	return flags
})

// FindFlag returns the flag of run that a word names, such as "--sandbox" or "-s"; nil for other words.
func FindFlag(word string) *Flag {
	for _, f := range RunFlags() {
		if word == f.Name() || word == f.Shortest() {
			return f
		}
	}
	return nil
}

// Flags returns all flags of run, bound to r.
func (r *Run) Flags() []syntax.Flag {
	flags := make([]syntax.Flag, len(RunFlags()))
	for i, f := range RunFlags() {
		flags[i] = f.Flag
		flags[i].Set = func(v string) error { return r.record(f, v) }
	}
	return flags
}

// record takes the value of a flag and notes it, for a server and in shape.
func (r *Run) record(f *Flag, v string) error {
	if err := r.take(f, v); err != nil {
		return err
	}
	word := f.Name() + "=" + v
	if f.Value == "" && v == "" {
		word = f.Name()
	}
	r.given = append(r.given, word)
	if f.Local != "" {
		r.Local = append(r.Local, f)
	} else {
		r.sent = append(r.sent, word)
	}
	switch name, _, set := strings.Cut(v, "="); {
	case !f.Shapes:
	case f.Value == "":
		r.Shape = append(r.Shape, f.Shortest()+strings.TrimPrefix(word, f.Name()))
	case f.bare != "" && set:
		r.Shape = append(r.Shape, f.Shortest(), name+"="+environ.Masked)
	default:
		r.Shape = append(r.Shape, f.Shortest(), v)
	}
	return nil
}

// take takes the value of a flag.
func (r *Run) take(f *Flag, v string) error {
	k, values := f.row, []string{v}
	switch {
	case f.Optional != "":
		if f.optional != nil {
			if err := f.optional(v); err != nil {
				return err
			}
		}
		values[0] = "true"
	case f.Value == "" && v == "":
		values[0] = cmp.Or(f.Sets, "true")
	case f.bare != "" && !strings.Contains(v, "="):
		k = Find(f.bare)
	case f.several:
		values = strings.Split(v, ",")
	case len(f.Words) > 0:
		if err := syntax.SetChosen(&v, f.Words)(v); err != nil {
			return err
		}
	}
	if f.to != nil {
		put(f.to(r), v)
	}
	if r.Given == nil {
		r.Given = Values{}
	}
	switch {
	case !k.IsList() || k.Whole:
		delete(r.Given, k.Name) // the last one counts
	case f.bare != "":
		name, _, _ := strings.Cut(v, "=")
		r.Given.Forget(f.Key, name)
		r.Given.Forget(f.bare, name)
	}
	for _, text := range values {
		if !slices.Contains(f.Words, text) { // of which proxy is no value of the key
			if err := k.Check(text); err != nil {
				return err
			}
		}
		if k.Name != "" {
			r.Given[k.Name] = append(r.Given[k.Name], Setting{text, Origin{Layer: Flags, File: f.Shortest()}})
		}
		k.put(r, text)
	}
	return nil
}

// Words returns what a server gets for the flags and these words of a command: its "args".
func (r *Run) Words(command []string) []string { return slices.Concat(r.sent, []string{"--"}, command) }

// Apply sets what holds, in place of what flags alone said. What is built in is what a run does anyway.
func (r *Run) Apply(e *Effective) {
	r.Base = e.Base
	for _, k := range Keys() {
		if k.to != nil {
			clearMember(k.to(r))
		}
	}
	for _, k := range Keys() {
		for _, s := range e.Values[k.Name].Settings {
			if s.Origin.Layer != BuiltIn && !e.superseded(k, s) && !e.missing(k, s) {
				k.put(r, s.Text)
			}
		}
	}
}

// superseded reports whether a variable is set by a file, and a flag passes it on.
func (e *Effective) superseded(k *Key, s Setting) bool {
	if k.Name != "environment.set" || s.Origin.Layer == Flags {
		return false
	}
	name, _, _ := strings.Cut(s.Text, "=")
	passed := e.layers[len(e.layers)-1].values["environment.pass"]
	return slices.ContainsFunc(passed, func(p Setting) bool { return p.Text == name })
}

// missing reports whether a setting of a file opens a path that is not there on this machine.
// Nothing is lost then, while a flag for it is likely a mistake.
func (e *Effective) missing(k *Key, s Setting) bool {
	if s.Origin.Layer == Flags || !k.paths || strings.HasPrefix(s.Text, ":") {
		return false
	}
	_, err := os.Stat(e.path(s.Text))
	return errors.Is(err, os.ErrNotExist)
}

// grace is a duration of which none is not the default.
type grace time.Duration

// kept is a number of bytes of which none is not the default.
type kept int

// is returns what sets a member to whether the value is a word.
func is(to *bool, word string) func(string) {
	return func(text string) { *to = text == word }
}

// stage sets the stage of a run, with the name that a flag gave.
func (r *Run) stage(text string) {
	r.Cmd.Stage = nil
	if text == "true" {
		r.Cmd.Stage = &executor.Staging{Name: r.StageName}
	}
}

// checkStageName refuses a name that is meant as something else. The empty one is that of a new stage.
func checkStageName(name string) error {
	if name == "true" || name == "false" {
		return fmt.Errorf("%s is no name of a stage", quoted(name))
	}
	return nil
}

// threshold takes an element of reviewer.thresholds; an empty one is none of them.
func (r *Run) threshold(text string) {
	risk, need, err := guardian.ParseThreshold(text)
	switch {
	case text == "":
		r.Reviewer.Thresholds = nil
	case err == nil && r.Reviewer.Thresholds == nil:
		r.Reviewer.Thresholds = guardian.Thresholds{risk: need}
	case err == nil:
		r.Reviewer.Thresholds[risk] = need
	}
}

// put gives the checked text of a value, or of an element of one, to the member of a run that is for it.
func (k *Key) put(r *Run, text string) {
	if k.to != nil {
		put(k.to(r), text)
	}
}

// put gives a checked text to a member.
func put(member any, text string) {
	switch to := member.(type) {
	case *string:
		*to = text
	case *[]string:
		*to = append(*to, text)
	case *bool:
		*to = text == "true"
	case **bool:
		on := text == "true"
		*to = &on
	case *time.Duration:
		*to, _ = ParseDuration(text)
	case *int64:
		*to, _ = ParseSize(text)
	case *float64:
		*to, _ = ParseCPUs(text)
	case *int:
		*to, _ = ParsePIDs(text)
	case *[]int:
		n, _ := strconv.Atoi(text)
		*to = append(*to, n)
	case *grace:
		d, _ := ParseDuration(text)
		*to = grace(cmp.Or(d, -1))
	case *kept:
		n, _ := ParseSize(text)
		*to = kept(cmp.Or(n, -1))
	case func(string):
		to(text)
	}
}

// clearMember has nothing set a member.
func clearMember(member any) {
	if set, ok := member.(func(string)); ok {
		set("")
	} else {
		reflect.ValueOf(member).Elem().SetZero()
	}
}

// checkDescriptor checks an element of --fd.
func checkDescriptor(text string) error {
	if n, err := strconv.ParseUint(text, 10, 20); err != nil || n < 3 {
		return fmt.Errorf("%s is not a descriptor above the standard ones; use numbers from 3 on",
			quoted(text))
	}
	return nil
}

// notNone refuses a duration of zero.
func notNone(text string) error {
	if d, _ := ParseDuration(text); d <= 0 {
		return errors.New("it must be more than zero")
	}
	return nil
}
