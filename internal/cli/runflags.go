// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/caches"
	"github.com/sallyport-dev/sallyport/internal/environ"
	"github.com/sallyport-dev/sallyport/internal/notes"
	"github.com/sallyport-dev/sallyport/internal/protect"
	"github.com/sallyport-dev/sallyport/internal/seccomp"
)

// runOptions are the flags of run. The zero value of a member means that
// its flag was not given.
type runOptions struct {
	sandbox, profile                            string
	network, tmp, level, approval, ownership    string
	writable, readable, denied, allowed, grants []string
	noCaches, noObserver, protectHardLinks      bool

	dir            string
	script, shell  string
	hasScript      bool
	login          bool
	timeout, grace time.Duration
	hasGrace       bool
	variables      []string // "K=V" or "K", in the order given
	inherit        string
	tty, hasTTY    bool
	descriptors    []int

	resources    executor.Resources
	maxOutput    int64
	hasMaxOutput bool

	json, jsonl, jsonlDrop, quiet, verbose, interactive, help bool

	// shape are the flags that decide what the program may touch, as they were given,
	// so that the command line can be written again; values of variables are masked.
	shape []string
}

// ownershipError is the word of --ownership for the kernel's errors.
const ownershipError = "error"

// The words of flags, the default first where there is one.
var (
	sandboxWords   = []string{"workspace-write", "read-only", "full-access", "danger-full-access"}
	profileWords   = []string{":workspace", ":read-only", ":danger-full-access", profileMinimal}
	networkWords   = []string{"none", "host", "proxy"}
	levelWords     = []string{"bwrap", "native", "landlock"}
	approvalWords  = []string{"untrusted", "on-request", "granular", "on-failure", "never"}
	inheritWords   = []string{"all", "core", "none"}
	ownershipWords = []string{"ignore", ownershipError}
	shellWordList  = []string{"bash", "zsh", "sh", "pwsh"}
)

// runFlags returns all flags of run, bound to o.
func runFlags(o *runOptions) []flag {
	flags := slices.Concat(o.sandboxFlags(), o.programFlags(), o.limitFlags(), o.outputFlags())
	for i := range flags {
		if f := flags[i]; f.shapes {
			flags[i].set = func(v string) error { return o.record(&f, v) }
		}
	}
	// Most of these are limits and walls: to ignore one would give a weaker run than the
	// one that was asked for.
	for _, name := range []string{"remote", "allow-host", "deny-host", "rules"} {
		flags = append(flags, flag{long: name, value: "VALUE", unsupported: true})
	}
	return append(flags, flag{long: "detach", unsupported: true})
}

// record sets a flag and notes it in shape.
func (o *runOptions) record(f *flag, v string) error {
	if err := f.set(v); err != nil {
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

func (o *runOptions) sandboxFlags() []flag {
	const group = "What the program may touch"
	return []flag{
		{long: "sandbox", short: 's', value: "MODE", group: group, shapes: true, words: sandboxWords, set: chosen(&o.sandbox, sandboxWords),
			help: "read-only, workspace-write, or full-access (alias\ndanger-full-access), which builds no sandbox\n(default workspace-write)"},
		{long: "profile", short: 'P', value: "NAME", group: group, shapes: true, words: profileWords, set: chosen(&o.profile, profileWords),
			help: "in place of -s: :workspace, :read-only,\n:danger-full-access, or :minimal, which shows only\nsystem files and the workspace"},
		{long: "rw", value: "PATH", group: group, shapes: true, kind: completeFiles, set: list(&o.writable), help: "allow writing below PATH (repeatable)"},
		{long: "ro", value: "PATH", group: group, shapes: true, kind: completeFiles, set: list(&o.readable), help: "allow reading PATH and deny writing it (repeatable)"},
		{long: "deny", value: "PATH", group: group, shapes: true, kind: completeFiles, set: list(&o.denied),
			help: "deny reading and writing PATH or what matches a glob\nsuch as '**/.env' (repeatable)"},
		{long: "grant", value: "NAME", group: group, shapes: true, kind: completeGrants, set: oneOf(&o.grants, grantNames, protect.Known),
			help: "open a named set, such as git, ssh-agent, cache:npm\nor credentials:gh; sallyport doctor lists them\n(repeatable; NAME,NAME)"},
		{long: "tmp", value: "WHERE", group: group, shapes: true, words: []string{"private", "host"}, kind: completeDirectories, set: text(&o.tmp),
			help: "/tmp is private and removed afterwards, host, or a\ndirectory (default private)"},
		{long: "no-caches", group: group, shapes: true, set: on(&o.noCaches), help: "no private layers over toolchain caches"},
		{long: "no-observer", group: group, shapes: true, set: on(&o.noObserver), help: "do not observe system calls: no unix sockets, and\ndenials are not known"},
		{long: "protect-hard-links", group: group, shapes: true, set: on(&o.protectHardLinks),
			help: "deny writing to files that have names elsewhere,\nsuch as in the store of a package manager"},
		{long: "ownership", value: "HOW", group: group, shapes: true, words: ownershipWords, set: chosen(&o.ownership, ownershipWords),
			help: "changes of owners by root, which the sandbox cannot\nmake: ignore (they succeed without effect and are\ncounted) or error (default ignore)"},
		{long: "net", value: "NET", group: group, shapes: true, words: networkWords, set: chosen(&o.network, networkWords),
			help: "none or host; proxy is not supported yet\n(default none, host with full-access)"},
		{long: "allow", value: "NAME", group: group, shapes: true, kind: completeOpenings, set: oneOf(&o.allowed, openingNames, nil),
			help: "open one thing that is closed by default: unix,\nuserns, ...; sallyport doctor lists them\n(repeatable; NAME,NAME)"},
		{long: "level", value: "LEVEL", group: group, shapes: true, words: levelWords, set: chosen(&o.level, levelWords),
			help: "least sandbox level accepted: native, bwrap or\nlandlock (default bwrap)"},
		{long: "approval", short: 'a', value: "WHEN", group: group, words: approvalWords, set: chosen(&o.approval, approvalWords),
			help: "when to ask: untrusted, on-request, granular,\non-failure or never. Approvals are not supported yet:\na program that needs one does not run"},
	}
}

func (o *runOptions) programFlags() []flag {
	const group = "The program"
	return []flag{
		{long: "cd", short: 'C', value: "DIR", group: group, shapes: true, kind: completeDirectories, set: text(&o.dir), help: "working directory and workspace (default current);\nother relative paths in flags begin there"},
		{long: "command", short: 'c', value: "SCRIPT", group: group, set: func(v string) error { o.script, o.hasScript = v, true; return nil },
			help: "run a script in a shell in place of PROGRAM"},
		{long: "shell", value: "SHELL", group: group, words: shellWordList, set: text(&o.shell), help: "shell for the script (default $SHELL)"},
		{long: "login", group: group, set: on(&o.login), help: "run it as a login shell"},
		{long: "env", short: 'e', value: "K[=V]", group: group, shapes: true, set: o.variable, help: "set a variable, or pass one on (repeatable)"},
		{long: "env-inherit", value: "WHICH", group: group, shapes: true, words: inheritWords, set: chosen(&o.inherit, inheritWords),
			help: "pass on all, core or none of our variables, except\nwhat looks like a secret (default all)"},
		{long: "tty", short: 't', toggle: true, group: group, shapes: true, set: toggled(&o.tty, &o.hasTTY),
			help: "a terminal of its own; -t=false passes ours on\n(default on when stdin and stdout are terminals)"},
		{long: "fd", value: "N", group: group, shapes: true, set: o.descriptor, help: "hand on descriptor N (repeatable; N,N); pipes that\nwords name as /dev/fd/N need no flag"},
		{long: "interactive", short: 'i', group: group, set: on(&o.interactive), help: "keep stdin open (run always does)"},
		{long: "timeout", value: "DUR", group: group, set: parsed(&o.timeout, nil, parseDuration), help: "stop it after a time such as 30 (seconds), 1.5, 5m\nor 1h30m (default never)"},
		{long: "kill-after", value: "DUR", group: group, set: parsed(&o.grace, &o.hasGrace, parseDuration), help: "time between SIGTERM and SIGKILL (default 2s)"},
	}
}

func (o *runOptions) limitFlags() []flag {
	const group = "Limits of the program and all that it starts (default none)"
	l := &o.resources
	return []flag{
		{long: "memory", value: "SIZE", group: group, shapes: true, set: parsed(&l.Memory, nil, parseLimit), help: "memory, such as 512MiB; it is killed above that"},
		{long: "cpus", value: "N", group: group, shapes: true, set: parsed(&l.CPUs, nil, parseCPUs), help: "processors, such as 1.5; it is slowed down to that"},
		{long: "pids", value: "N", group: group, shapes: true, set: parsed(&l.PIDs, nil, parsePIDs), help: "processes and threads at once"},
		{long: "disk", value: "SIZE", group: group, shapes: true, set: parsed(&l.Disk, nil, parseLimit), help: "growth of its writable directories, /tmp included"},
		{long: "output", value: "SIZE", group: group, shapes: true, set: parsed(&l.Output, nil, parseLimit), help: "bytes on stdout and stderr, which are pipes then"},
	}
}

func (o *runOptions) outputFlags() []flag {
	const group = "Output"
	return []flag{
		{long: "json", group: group, set: on(&o.json), help: "capture the output; print one JSON object at the end"},
		{long: "jsonl", group: group, set: on(&o.jsonl), help: "print events as JSON lines, the result object last"},
		{long: "jsonl-drop", group: group, set: on(&o.jsonlDrop), help: "drop and count output that the reader of --jsonl is\ntoo slow for (default: the program waits)"},
		{long: "max-output", value: "SIZE", group: group, set: parsed(&o.maxOutput, &o.hasMaxOutput, parseSize), help: "bytes of each stream in the object (default 1MiB)"},
		{long: "quiet", short: 'q', group: group, set: on(&o.quiet), help: "print no messages"},
		{long: "verbose", short: 'v', group: group, set: on(&o.verbose), help: "print the launch script, limits and usage"},
		{long: "help", short: 'h', group: group, set: on(&o.help), help: "print this text"},
	}
}

// openingNames are the names of --allow.
func openingNames() []string {
	var names []string
	for _, o := range seccomp.Openings() {
		names = append(names, o.Name)
	}
	return names
}

// grantNames are the names of --grant.
func grantNames() []string {
	var names []string
	for _, g := range protect.NamedGrants() {
		names = append(names, g.Name)
	}
	return names
}

// variable takes a value of --env.
func (o *runOptions) variable(v string) error {
	if name, _, _ := strings.Cut(v, "="); name == "" {
		return fmt.Errorf("%s names no variable; use K=V or K", quote(v))
	}
	o.variables = append(o.variables, v)
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
	var bad *executor.LimitError
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
	case o.noCaches && slices.ContainsFunc(o.grants, isCache):
		return failure("--no-caches and --grant %s cannot be combined; use one of them", o.grants[slices.IndexFunc(o.grants, isCache)])
	case o.quiet && o.verbose:
		return failure("-q and -v cannot be combined; use one of them")
	case seccomp.Complete(o.allowed) != nil:
		return openings(seccomp.Complete(o.allowed))
	case errors.As(o.resources.Check(), &bad):
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
