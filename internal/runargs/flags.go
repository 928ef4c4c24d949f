// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runargs

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/credswap"
	"github.com/sallyport-dev/sallyport/internal/environ"
	"github.com/sallyport-dev/sallyport/internal/failure"
	"github.com/sallyport-dev/sallyport/internal/getopt"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
	"github.com/sallyport-dev/sallyport/network"
	"github.com/sallyport-dev/sallyport/rules"
)

// Options are the flags of run. The zero value of a member means that
// its flag was not given.
type Options struct {
	settings

	sandbox, profile string // as they were given
	Dir              string
	Script           string
	HasScript        bool
	Descriptors      []int
	Config           string
	NoConfig         bool

	escalate      bool
	askFor        []string
	justification string
	prefixRule    []string

	JSON, JSONL, JSONLDrop, Interactive, Detach, Help bool

	// Join names the sandbox to run in; empty for one of its own. Idle is how long it waits for a run
	// before it ends, if this one starts it.
	Join string
	Idle time.Duration

	// Beside are rules that count after those of the settings.
	Beside []rules.Source

	// Server is the one to run on.
	Server Server

	// given are the settings that flags gave, and shape those flags that decide what the
	// program may touch, so that the command line can be written again; values of variables
	// are masked.
	Given config.Values
	Shape []string

	local  []*config.Flag // the flags that were given and are not sent to a server
	others []string       // the other ones, each as one word
}

// Words returns what a server gets for the flags and these words of a command: its "args".
func (o *Options) Words(command []string) []string {
	return slices.Concat(o.others, []string{"--"}, command)
}

// settings are what keys of the configuration set, and the flags for them. The zero value of a
// member means that nothing has set it.
type settings struct {
	base                                        string // the mode
	network, Tmp, Level, ownership              string
	Writable, Readable, Denied, Allowed, Grants []string
	noCaches, noObserver, protectHardLinks      bool

	shell          string
	login          bool
	Timeout, grace time.Duration
	hasGrace       bool
	Variables      []string // "K=V" or "K", in the order given
	inherit        string
	exclude, only  []string // patterns of names of variables
	keepSecrets    bool
	TTY, HasTTY    bool

	Publish        []network.Publish // ports of the program
	Resources      executor.Resources
	maxOutput      int64
	hasMaxOutput   bool
	Quiet, Verbose bool

	approver        []string
	approverTimeout time.Duration
	approverPasses  bool // its failure
	ApprovalWait    time.Duration

	reviewerKey string        // the name of the variable with it; may be empty
	secrets     *credswap.Set // credentials that the command does not get; nil for none
}

// ownershipError is the word of --ownership for the kernel's errors.
const ownershipError = "error"

// Flags returns all flags of run, bound to o.
func Flags(o *Options) []getopt.Flag {
	table, own := config.RunFlags(), o.setters()
	flags := make([]getopt.Flag, len(table))
	for i := range table {
		t, f := &table[i], &flags[i]
		set := own[t.Long]
		if set == nil {
			set = func(v string) error { return o.give(t, v) }
		}
		*f = getopt.Flag{
			Long: t.Long, Short: t.Short, Value: t.Value, Toggle: t.Toggle, Help: t.Help, Group: t.Group, Rest: t.Rest,
			Words: t.Words, Key: t.Key, Shapes: t.Shapes, Set: func(v string) error { return o.record(t, f, set, v) },
		}
	}
	return flags
}

// setters returns the functions that take the values of flags without a key.
func (o *Options) setters() map[string]func(string) error {
	return map[string]func(string) error{
		"cd":                getopt.Text(&o.Dir),
		"command":           func(v string) error { o.Script, o.HasScript = v, true; return nil },
		"fd":                o.descriptor,
		"detach":            getopt.On(&o.Detach),
		"join":              getopt.Text(&o.Join),
		"idle":              o.idle,
		"remote":            getopt.Text(&o.Server.URL),
		"remote-token-file": getopt.Text(&o.Server.TokenFile),
		"remote-tls-cert":   getopt.Text(&o.Server.Cert),
		"remote-tls-key":    getopt.Text(&o.Server.Key),
		"remote-tls-ca":     getopt.Text(&o.Server.CA),
		"interactive":       getopt.On(&o.Interactive),
		"json":              getopt.On(&o.JSON),
		"jsonl":             getopt.On(&o.JSONL),
		"jsonl-drop":        getopt.On(&o.JSONLDrop),
		"help":              getopt.On(&o.Help),
		"config":            getopt.Text(&o.Config),
		"no-config":         getopt.On(&o.NoConfig),
		"escalate":          getopt.On(&o.escalate),
		"ask-for":           getopt.List(&o.askFor),
		"justification":     getopt.Text(&o.justification),
		"prefix-rule":       func(v string) error { o.prefixRule = append(o.prefixRule, v); return nil },
	}
}

// give takes the value of a flag that has a key.
func (o *Options) give(f *config.Flag, v string) error {
	key, values := config.Find(f.Key), []string{v}
	switch {
	case f.Value == "" && v == "":
		values[0] = f.Sets
	case f.Long == "profile":
		o.profile = v
	case f.Long == "env" && !strings.Contains(v, "="):
		key = config.Find("environment.pass")
	case f.Long == "grant", f.Long == "allow", f.Long == "publish":
		values = strings.Split(v, ",")
	case len(f.Words) > 0:
		if err := getopt.Chosen(&v, f.Words)(v); err != nil {
			return err
		}
		if f.Long == "sandbox" {
			o.sandbox = v
		}
	}
	if o.Given == nil {
		o.Given = config.Values{}
	}
	switch {
	case !key.IsList() || key.Whole:
		delete(o.Given, key.Name) // the last one counts
	case f.Long == "env":
		name, _, _ := strings.Cut(v, "=")
		o.Given.Forget("environment.set", name)
		o.Given.Forget("environment.pass", name)
	}
	for _, text := range values {
		if proxied := f.Long == "net" && text == config.NetProxy; !proxied { // which is no value of the key
			if err := key.Check(text); err != nil {
				return err
			}
		}
		name := "--" + f.Long
		if f.Short != 0 && len(f.Long) > 2 {
			name = "-" + string(rune(f.Short))
		}
		o.Given[key.Name] = append(o.Given[key.Name], config.Setting{Text: text, Origin: config.Origin{Layer: config.Flags, File: name}})
		o.set(key.Name, text)
	}
	return nil
}

// fields has the field of each key that is taken as it is.
var fields = map[string]func(*settings) any{
	"approval_wait":                       func(s *settings) any { return &s.ApprovalWait },
	"level":                               func(s *settings) any { return &s.Level },
	"read":                                func(s *settings) any { return &s.Readable },
	"write":                               func(s *settings) any { return &s.Writable },
	"deny":                                func(s *settings) any { return &s.Denied },
	"grants":                              func(s *settings) any { return &s.Grants },
	"allow":                               func(s *settings) any { return &s.Allowed },
	"tmp":                                 func(s *settings) any { return &s.Tmp },
	"protect_hard_links":                  func(s *settings) any { return &s.protectHardLinks },
	"ownership":                           func(s *settings) any { return &s.ownership },
	"network.mode":                        func(s *settings) any { return &s.network },
	"shell":                               func(s *settings) any { return &s.shell },
	"login":                               func(s *settings) any { return &s.login },
	"tty":                                 func(s *settings) any { return &s.TTY },
	"quiet":                               func(s *settings) any { return &s.Quiet },
	"verbose":                             func(s *settings) any { return &s.Verbose },
	"environment.inherit":                 func(s *settings) any { return &s.inherit },
	"environment.exclude":                 func(s *settings) any { return &s.exclude },
	"environment.include_only":            func(s *settings) any { return &s.only },
	"environment.pass":                    func(s *settings) any { return &s.Variables },
	"environment.set":                     func(s *settings) any { return &s.Variables },
	"environment.ignore_default_excludes": func(s *settings) any { return &s.keepSecrets },
	"hooks.approver":                      func(s *settings) any { return &s.approver },
	"hooks.approver_timeout":              func(s *settings) any { return &s.approverTimeout },
	"limits.timeout":                      func(s *settings) any { return &s.Timeout },
	"limits.kill_after":                   func(s *settings) any { return &s.grace },
}

// set takes the checked text of a key, or of an element of one.
func (s *settings) set(key, text string) {
	if field := fields[key]; field != nil {
		switch to := field(s).(type) {
		case *string:
			*to = text
		case *[]string:
			*to = append(*to, text)
		case *bool:
			*to = text == "true"
		case *time.Duration:
			*to, _ = config.ParseDuration(text)
		}
	}
	switch key {
	case "caches":
		s.noCaches = text != "true"
	case "observer":
		s.noObserver = text != "true"
	case "tty":
		s.HasTTY = true
	case "max_output":
		s.maxOutput, _ = config.ParseSize(text)
		s.hasMaxOutput = true
	case "hooks.approver_failure":
		s.approverPasses = text == "none"
	case "limits.kill_after":
		s.hasGrace = true
	}
	config.SetLimit(&s.Resources, key, text)
}

// record sets a flag and notes it, for a server and in shape.
func (o *Options) record(t *config.Flag, f *getopt.Flag, set func(string) error, v string) error {
	if err := set(v); err != nil {
		return err
	}
	switch {
	case t.Local != "":
		o.local = append(o.local, t)
	case f.Value == "" && v == "":
		o.others = append(o.others, f.Name())
	default:
		o.others = append(o.others, f.Name()+"="+v)
	}
	switch name, _, set := strings.Cut(v, "="); {
	case !f.Shapes:
	case f.Value == "" && v != "":
		o.Shape = append(o.Shape, f.Shortest()+"="+v)
	case f.Value == "":
		o.Shape = append(o.Shape, f.Shortest())
	case f.Long == "env" && set:
		o.Shape = append(o.Shape, f.Shortest(), name+"="+environ.Masked)
	default:
		o.Shape = append(o.Shape, f.Shortest(), v)
	}
	return nil
}

// Openings returns an error about --allow.
func Openings(err error) error {
	var more *seccomp.MissingOpeningsError
	if errors.As(err, &more) {
		return failure.New("--allow %s opens unix sockets and set-uid bits, too, because no filter sees its requests; add --allow %s", more.Name, strings.Join(more.Missing, ","))
	}
	return failure.New("%v", err)
}

// isCache reports whether a grant is for the caches of a toolchain.
func isCache(grant string) bool { return strings.HasPrefix(grant, caches.GrantPrefix) }

// Check returns what is wrong with flags and words together.
func (o *Options) Check(words []string) error {
	switch {
	case o.sandbox != "" && o.profile != "":
		return failure.New("-s %s and -P %s cannot be combined; use one of them", o.sandbox, o.profile)
	case o.JSON && o.JSONL:
		return failure.New("--json and --jsonl cannot be combined; --jsonl ends with the object of --json")
	case o.JSONLDrop && !o.JSONL:
		return failure.New("--jsonl-drop needs --jsonl")
	case o.Server.Check() != nil:
		return o.Server.Check()
	case o.Server.URL != "" && len(o.Descriptors) > 0:
		return failure.New("--fd and --remote cannot be combined; descriptors stay on this machine")
	case o.Detach && o.Captures():
		return failure.New("--detach and --json or --jsonl cannot be combined; sallyport wait --json ID prints the result")
	case o.Detach && len(o.Descriptors) > 0:
		return failure.New("--detach and --fd cannot be combined: a session has no descriptors of its caller")
	case o.checkJoin() != nil:
		return o.checkJoin()
	case o.HasScript && len(words) > 0:
		return failure.New("unexpected argument %s after -c; put it into the script", getopt.Quote(words[0]))
	case o.HasScript && strings.TrimSpace(o.Script) == "":
		return failure.New("command args are empty: the script of -c is empty")
	case !o.HasScript && o.shell != "":
		return failure.New("--shell needs a script: sallyport run --shell %s -c SCRIPT", notes.ShellWord(o.shell))
	case !o.HasScript && o.login:
		return failure.New("--login needs a script: sallyport run --login -c SCRIPT")
	case !o.HasScript && len(words) == 0:
		return failure.New("command args are empty; use sallyport run [FLAGS] -- PROGRAM [ARG...]")
	case !o.HasScript && words[0] == "":
		return failure.New("the name of the program is empty")
	case o.Quiet && o.Verbose:
		return failure.New("-q and -v cannot be combined; use one of them")
	}
	return nil
}

// Check returns what is wrong with settings together, of flags and files.
func (s *settings) check() error {
	var bad *executor.LimitError
	switch {
	case s.noCaches && slices.ContainsFunc(s.Grants, isCache):
		return failure.New("--no-caches and --grant %s cannot be combined; use one of them", s.Grants[slices.IndexFunc(s.Grants, isCache)])
	case seccomp.Complete(s.Allowed) != nil:
		return Openings(seccomp.Complete(s.Allowed))
	case errors.As(s.Resources.Check(), &bad):
		return failure.New("--%s: %s", bad.Limit, bad.Reason)
	}
	return nil
}
