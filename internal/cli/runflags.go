// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/config"
	"github.com/sallyport-dev/sallyport/internal/environ"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// runOptions are the flags of run. The zero value of a member means that
// its flag was not given.
type runOptions struct {
	settings

	sandbox, profile string // as they were given
	dir              string
	script           string
	hasScript        bool
	descriptors      []int
	config           string
	noConfig         bool

	escalate      bool
	askFor        []string
	justification string
	prefixRule    []string

	json, jsonl, jsonlDrop, interactive, help bool

	// given are the settings that flags gave, and shape those flags that decide what the
	// program may touch, so that the command line can be written again; values of variables
	// are masked.
	given config.Values
	shape []string
}

// settings are what keys of the configuration set, and the flags for them. The zero value of a
// member means that nothing has set it.
type settings struct {
	base                                        string // the mode
	network, tmp, level, approval, ownership    string
	writable, readable, denied, allowed, grants []string
	noCaches, noObserver, protectHardLinks      bool

	shell          string
	login          bool
	timeout, grace time.Duration
	hasGrace       bool
	variables      []string // "K=V" or "K", in the order given
	inherit        string
	exclude, only  []string // patterns of names of variables
	keepSecrets    bool
	tty, hasTTY    bool

	resources      executor.Resources
	maxOutput      int64
	hasMaxOutput   bool
	quiet, verbose bool

	approver        []string
	approverTimeout time.Duration
	approverPasses  bool // its failure
	approvalWait    time.Duration

	reviewerKey string // the name of the variable with it; may be empty
}

// ownershipError is the word of --ownership for the kernel's errors.
const ownershipError = "error"

// runFlags returns all flags of run, bound to o.
func runFlags(o *runOptions) []flag {
	table := config.RunFlags()
	flags := make([]flag, len(table))
	for i := range table {
		t, f := &table[i], &flags[i]
		*f = flag{
			long: t.Long, short: t.Short, value: t.Value, toggle: t.Toggle, help: t.Help, group: t.Group, rest: t.Rest,
			words: t.Words, key: t.Key, shapes: t.Shapes, unsupported: t.Later, set: o.setter(t),
		}
		if f.shapes {
			set := f.set
			f.set = func(v string) error { return o.record(f, set, v) }
		}
	}
	return flags
}

// setter returns the function that takes the value of a flag.
func (o *runOptions) setter(f *config.Flag) func(string) error {
	switch f.Long {
	case "cd":
		return text(&o.dir)
	case "command":
		return func(v string) error { o.script, o.hasScript = v, true; return nil }
	case "fd":
		return o.descriptor
	case "interactive":
		return on(&o.interactive)
	case "json":
		return on(&o.json)
	case "jsonl":
		return on(&o.jsonl)
	case "jsonl-drop":
		return on(&o.jsonlDrop)
	case "help":
		return on(&o.help)
	case "config":
		return text(&o.config)
	case "no-config":
		return on(&o.noConfig)
	case "escalate":
		return on(&o.escalate)
	case "ask-for":
		return list(&o.askFor)
	case "justification":
		return text(&o.justification)
	case "prefix-rule":
		return func(v string) error { o.prefixRule = append(o.prefixRule, v); return nil }
	}
	return func(v string) error { return o.give(f, v) }
}

// give takes the value of a flag that has a key.
func (o *runOptions) give(f *config.Flag, v string) error {
	key, values := config.Find(f.Key), []string{v}
	switch {
	case f.Value == "" && v == "":
		values[0] = f.Sets
	case f.Long == "profile":
		o.profile = v
	case f.Long == "env" && !strings.Contains(v, "="):
		key = config.Find("environment.pass")
	case f.Long == "grant", f.Long == "allow":
		values = strings.Split(v, ",")
	case len(f.Words) > 0:
		if err := chosen(&v, f.Words)(v); err != nil {
			return err
		}
		if f.Long == "sandbox" {
			o.sandbox = v
		}
		if v == "proxy" {
			values[0] = config.NetFull
		}
	}
	if o.given == nil {
		o.given = config.Values{}
	}
	switch {
	case !key.IsList() || key.Whole:
		delete(o.given, key.Name) // the last one counts
	case f.Long == "env":
		name, _, _ := strings.Cut(v, "=")
		o.given.Forget("environment.set", name)
		o.given.Forget("environment.pass", name)
	}
	for _, text := range values {
		if err := key.Check(text); err != nil {
			return err
		}
		name := "--" + f.Long
		if f.Short != 0 && len(f.Long) > 2 {
			name = "-" + string(rune(f.Short))
		}
		o.given[key.Name] = append(o.given[key.Name], config.Setting{Text: text, Origin: config.Origin{Layer: config.Flags, File: name}})
		o.set(key.Name, text)
	}
	return nil
}

// set takes the checked text of a key, or of an element of one.
func (s *settings) set(key, text string) {
	yes := text == "true"
	switch key {
	case "approval":
		s.approval = text
	case "approval_wait":
		s.approvalWait, _ = config.ParseDuration(text)
	case "level":
		s.level = text
	case "read":
		s.readable = append(s.readable, text)
	case "write":
		s.writable = append(s.writable, text)
	case "deny":
		s.denied = append(s.denied, text)
	case "grants":
		s.grants = append(s.grants, text)
	case "allow":
		s.allowed = append(s.allowed, text)
	case "tmp":
		s.tmp = text
	case "caches":
		s.noCaches = !yes
	case "observer":
		s.noObserver = !yes
	case "protect_hard_links":
		s.protectHardLinks = yes
	case "ownership":
		s.ownership = text
	case "network.mode":
		s.network = text
	case "shell":
		s.shell = text
	case "login":
		s.login = yes
	case "tty":
		s.tty, s.hasTTY = yes, true
	case "max_output":
		s.maxOutput, _ = config.ParseSize(text)
		s.hasMaxOutput = true
	case "quiet":
		s.quiet = yes
	case "verbose":
		s.verbose = yes
	case "environment.inherit":
		s.inherit = text
	case "environment.exclude":
		s.exclude = append(s.exclude, text)
	case "environment.include_only":
		s.only = append(s.only, text)
	case "environment.pass", "environment.set":
		s.variables = append(s.variables, text)
	case "environment.ignore_default_excludes":
		s.keepSecrets = yes
	case "hooks.approver":
		s.approver = append(s.approver, text)
	case "hooks.approver_timeout":
		s.approverTimeout, _ = config.ParseDuration(text)
	case "hooks.approver_failure":
		s.approverPasses = text == "none"
	default:
		s.limit(key, text)
	}
}

// limit is set for limits.
func (s *settings) limit(key, text string) {
	l := &s.resources
	switch key {
	case "limits.timeout":
		s.timeout, _ = config.ParseDuration(text)
	case "limits.kill_after":
		s.grace, _ = config.ParseDuration(text)
		s.hasGrace = true
	case "limits.memory":
		l.Memory, _ = config.ParseLimit(text)
	case "limits.cpus":
		l.CPUs, _ = config.ParseCPUs(text)
	case "limits.pids":
		l.PIDs, _ = config.ParsePIDs(text)
	case "limits.disk":
		l.Disk, _ = config.ParseLimit(text)
	case "limits.output":
		l.Output, _ = config.ParseLimit(text)
	}
}

// record sets a flag and notes it in shape.
func (o *runOptions) record(f *flag, set func(string) error, v string) error {
	if err := set(v); err != nil {
		return err
	}
	switch name, _, set := strings.Cut(v, "="); {
	case f.value == "" && v != "":
		o.shape = append(o.shape, f.shortest()+"="+v)
	case f.value == "":
		o.shape = append(o.shape, f.shortest())
	case f.long == "env" && set:
		o.shape = append(o.shape, f.shortest(), name+"="+environ.Masked)
	default:
		o.shape = append(o.shape, f.shortest(), v)
	}
	return nil
}

// openings returns an error about --allow.
func openings(err error) error {
	var more *seccomp.MissingOpeningsError
	if errors.As(err, &more) {
		return failure("--allow %s opens unix sockets and set-uid bits, too, because no filter sees its requests; add --allow %s", more.Name, strings.Join(more.Missing, ","))
	}
	return failure("%v", err)
}

// isCache reports whether a grant is for the caches of a toolchain.
func isCache(grant string) bool { return strings.HasPrefix(grant, caches.GrantPrefix) }

// check returns what is wrong with flags and words together.
func (o *runOptions) check(words []string) error {
	switch {
	case o.sandbox != "" && o.profile != "":
		return failure("-s %s and -P %s cannot be combined; use one of them", o.sandbox, o.profile)
	case o.json && o.jsonl:
		return failure("--json and --jsonl cannot be combined; --jsonl ends with the object of --json")
	case o.jsonlDrop && !o.jsonl:
		return failure("--jsonl-drop needs --jsonl")
	case o.hasScript && len(words) > 0:
		return failure("unexpected argument %s after -c; put it into the script", quote(words[0]))
	case o.hasScript && strings.TrimSpace(o.script) == "":
		return failure("command args are empty: the script of -c is empty")
	case !o.hasScript && o.shell != "":
		return failure("--shell needs a script: sallyport run --shell %s -c SCRIPT", notes.ShellWord(o.shell))
	case !o.hasScript && o.login:
		return failure("--login needs a script: sallyport run --login -c SCRIPT")
	case !o.hasScript && len(words) == 0:
		return failure("command args are empty; use sallyport run [FLAGS] -- PROGRAM [ARG...]")
	case !o.hasScript && words[0] == "":
		return failure("the name of the program is empty")
	case o.quiet && o.verbose:
		return failure("-q and -v cannot be combined; use one of them")
	}
	return nil
}

// check returns what is wrong with settings together, of flags and files.
func (s *settings) check() error {
	var bad *executor.LimitError
	switch {
	case s.noCaches && slices.ContainsFunc(s.grants, isCache):
		return failure("--no-caches and --grant %s cannot be combined; use one of them", s.grants[slices.IndexFunc(s.grants, isCache)])
	case seccomp.Complete(s.allowed) != nil:
		return openings(seccomp.Complete(s.allowed))
	case errors.As(s.resources.Check(), &bad):
		return failure("--%s: %s", bad.Limit, bad.Reason)
	}
	return nil
}

// runHelpText is the help text of run above the flags, exitCodesHelp the one below.
const (
	runHelpText = `Run a program in the sandbox, and exit as it exits.

  sallyport run [FLAGS] [--] PROGRAM [ARG...]
  sallyport run [FLAGS] -c SCRIPT

  sallyport run -- go test ./...
  sallyport run --rw /srv/data --timeout 5m -c 'make && make install'
  sallyport run --grant git -- git commit -am "fix"

By default the program can read and execute every file of this machine, write in
the workspace and a private /tmp, and use no network. In the workspace .git,
.agents, .codex and .sallyport cannot be changed or created. Settings of agents
and editors there (.claude, .vscode, .envrc, ...) cannot be changed; new ones,
and new repositories, are named afterwards. Writes to toolchain caches go to a
private layer of the workspace. Flags end at the first word that is not one.
`
	exitCodesHelp = `Exit codes: the program's own; 128+n killed by signal n; 121 sandbox not
available; 122 forbidden; 123 refused, or no approver; 124 timed out; 125 an
error of sallyport; 126 cannot be executed; 127 not found.
`
)

// runHelp is the help text of run.
func runHelp() string {
	return runHelpText + describe(runFlags(&runOptions{})) + "\n" + exitCodesHelp
}
