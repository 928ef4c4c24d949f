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
	"github.com/sallyport-dev/sallyport/internal/protect"
)

// runOptions is what the flags of run say. The zero value of a member means that
// its flag was not given.
type runOptions struct {
	sandbox, profile                    string
	network, tmp, level, approval       string
	writable, readable, denied, allowed []string
	grants                              []string

	noCaches bool
	blind    bool

	dir            string
	script, shell  string
	hasScript      bool
	login          bool
	timeout, grace time.Duration
	hasGrace       bool

	variables []string // "K=V" or "K", in the order given
	inherit   string

	resources executor.Resources

	maxOutput    int
	hasMaxOutput bool

	tty, hasTTY bool

	json, jsonl, quiet, verbose, interactive, help bool
}

// The words of flags, the default first where there is one.
var (
	sandboxWords  = []string{"workspace-write", "read-only", "full-access", "danger-full-access"}
	networkWords  = []string{"none", "host", "proxy"}
	levelWords    = []string{"bwrap", "native", "landlock"}
	approvalWords = []string{"untrusted", "on-request", "granular", "on-failure", "never"}
	inheritWords  = []string{"all", "core", "none"}
	tmpWords      = []string{"private", "host"}
)

// runFlags returns all flags of run, bound to o.
func runFlags(o *runOptions) []flag {
	flags := o.sandboxFlags()
	flags = append(flags, o.commandFlags()...)
	flags = append(flags, o.limitFlags()...)
	flags = append(flags, o.outputFlags()...)
	return append(flags, missingFlags()...)
}

func (o *runOptions) sandboxFlags() []flag {
	const group = "What the command may touch"
	return []flag{
		{long: "sandbox", short: 's', value: "MODE", group: group, words: sandboxWords, set: chosen(&o.sandbox, sandboxWords),
			help: "read-only, workspace-write or full-access, which builds no\nsandbox (alias danger-full-access) (default workspace-write)"},
		{long: "profile", short: 'P', value: "NAME", group: group, words: profileWords, set: o.takeProfile,
			help: "instead of -s: :workspace, :read-only,\n:danger-full-access, or :minimal, which shows the system's\nown files and the workspace and nothing else"},
		{long: "rw", value: "PATH", group: group, kind: completeFiles, set: list(&o.writable),
			help: "let it write below PATH too, an absolute path (repeatable)"},
		{long: "ro", value: "PATH", group: group, kind: completeFiles, set: list(&o.readable),
			help: "let it read PATH but not write it, also inside the\nworkspace, an absolute path (repeatable)"},
		{long: "deny", value: "PATH", group: group, kind: completeFiles, set: list(&o.denied),
			help: "keep it from reading and writing PATH, or what matches it\nas a glob such as '**/.env'; a relative one is meant below\nthe working directory (repeatable)"},
		{long: "grant", value: "NAME", group: group, kind: completeGrants, set: o.grant,
			help: "open what belongs together, by name: with git, git init,\ncommits and branches work, while hooks and configuration\nstay as they are; with cache:npm and the like, a private\nlayer over a tool's cache; sallyport doctor lists the\nnames (repeatable)"},
		{long: "tmp", value: "WHERE", group: group, words: tmpWords, kind: completeFolders, set: text(&o.tmp),
			help: "what /tmp is: private (removed afterwards), host, or a\nfolder (default private)"},
		{long: "no-caches", group: group, set: on(&o.noCaches),
			help: "no private layers over toolchain caches, which are\nread-only then"},
		{long: "no-observer", group: group, set: on(&o.blind),
			help: "do not watch its system calls: what it was kept from is\nnot known then, and it gets no unix sockets"},
		{long: "net", value: "NET", group: group, words: networkWords, set: chosen(&o.network, networkWords),
			help: "none, a loopback of its own, or host; proxy is not built\nyet and refused (default none, host with full-access)"},
		{long: "allow", value: "NAME", group: group, kind: completeOpenings, set: o.allow,
			help: "open one thing that is shut by default, such as unix or\nuserns; sallyport doctor lists them (repeatable)"},
		{long: "level", value: "LEVEL", group: group, words: levelWords, set: chosen(&o.level, levelWords),
			help: "the least sandbox level accepted, native, bwrap or\nlandlock: the best one is taken, and below it nothing\nruns (default bwrap)"},
		{long: "approval", short: 'a', value: "WHEN", group: group, words: approvalWords, set: chosen(&o.approval, approvalWords),
			help: "when to ask: untrusted, on-request, granular, on-failure\nor never. Approvals are not built yet: with every word\nnobody is asked, and what needs an approval does not run"},
	}
}

func (o *runOptions) commandFlags() []flag {
	const group = "The command"
	return []flag{
		{long: "cd", short: 'C', value: "DIR", group: group, kind: completeFolders, set: text(&o.dir),
			help: "the working directory and workspace (default the current one)"},
		{long: "command", short: 'c', value: "SCRIPT", group: group, set: func(v string) error { o.script, o.hasScript = v, true; return nil },
			help: "run a script of the user's shell instead of CMD"},
		{long: "shell", value: "SHELL", group: group, words: []string{"bash", "zsh", "sh", "pwsh"}, set: text(&o.shell),
			help: "the shell for the script"},
		{long: "login", group: group, set: on(&o.login),
			help: "make it a login shell"},
		{long: "env", short: 'e', value: "K[=V]", group: group, set: o.variable,
			help: "set a variable, or pass on one of ours whatever its name\n(repeatable)"},
		{long: "env-inherit", value: "WHICH", group: group, words: inheritWords, set: chosen(&o.inherit, inheritWords),
			help: "all, core or none of our variables; never those whose names\nlook like secrets (default all on a terminal, else core)"},
		{long: "tty", short: 't', toggle: true, group: group, set: toggled(&o.tty, &o.hasTTY),
			help: "give it a terminal of its own, made in the sandbox: jobs,\nkeys and window sizes work as usual; -t=false hands on ours\n(default on when input and output are terminals, without\n--json and --jsonl, and not in the background)"},
		{long: "interactive", short: 'i', group: group, set: on(&o.interactive),
			help: "keep standard input open; run hands it on in any case"},
		{long: "timeout", value: "DUR", group: group, set: duration(&o.timeout, nil),
			help: "end the command after DUR, such as 30s (default never)"},
		{long: "kill-after", value: "DUR", group: group, set: duration(&o.grace, &o.hasGrace),
			help: "the time between asking it to end and killing it\n(default 2s)"},
	}
}

func (o *runOptions) outputFlags() []flag {
	const group = "What is printed"
	return []flag{
		{long: "json", group: group, set: on(&o.json),
			help: "capture the output and print one JSON object at the end"},
		{long: "jsonl", group: group, set: on(&o.jsonl),
			help: "print each event as a JSON object on a line of its own; the\nlast one is the object of --json"},
		{long: "max-output", value: "SIZE", group: group, set: o.size,
			help: "how much of each stream the object keeps, half of it from\nthe end: 65536, 64k, 10MB (default 1MiB)"},
		{long: "quiet", short: 'q', group: group, set: on(&o.quiet),
			help: "say nothing of our own"},
		{long: "verbose", short: 'v', group: group, set: on(&o.verbose),
			help: "print on standard error how the sandbox was built"},
		{long: "help", short: 'h', group: group, set: on(&o.help),
			help: "print this text"},
	}
}

// missingFlags are the flags of later versions. Most are limits and walls:
// ignoring one would give a weaker run than the one that was asked for.
func missingFlags() []flag {
	const gone = "is not in this version, which could not keep what it asks for; leave it out"
	flags := []flag{
		{long: "detach", missing: gone},
	}
	for _, name := range []string{
		"remote", "allow-host", "deny-host", "rules",
	} {
		flags = append(flags, flag{long: name, value: "VALUE", missing: gone})
	}
	return flags
}

// allow takes a name of --allow.
func (o *runOptions) allow(name string) error {
	var names []string
	for _, opening := range openings() {
		if opening.Name == name {
			o.allowed = append(o.allowed, name)
			return nil
		}
		names = append(names, opening.Name)
	}
	return errors.New("nothing named " + quote(name) + " can be allowed" + hint(name, names, "sallyport doctor lists the names"))
}

// grant takes a name of --grant.
func (o *runOptions) grant(name string) error {
	var names []string
	for _, g := range protect.NamedGrants() {
		if g.Name == name {
			o.grants = append(o.grants, name)
			return nil
		}
		names = append(names, g.Name)
	}
	return errors.New("there is no grant named " + quote(name) + hint(name, names, "the names are "+strings.Join(names, ", ")))
}

// variable takes a value of --env.
func (o *runOptions) variable(v string) error {
	name, _, _ := strings.Cut(v, "=")
	if name == "" {
		return errors.New(quote(v) + " names no variable; write K=V or K")
	}
	o.variables = append(o.variables, v)
	return nil
}

// size takes a value of --max-output.
func (o *runOptions) size(v string) error {
	n, err := parseSize(v)
	if err != nil {
		return err
	}
	o.maxOutput, o.hasMaxOutput = n, true
	return nil
}

// duration returns the function that sets *to, and *given where that is not nil.
func duration(to *time.Duration, given *bool) func(string) error {
	return func(v string) error {
		d, err := parseDuration(v)
		if err != nil {
			return err
		}
		*to = d
		if given != nil {
			*given = true
		}
		return nil
	}
}

// isCache reports whether a grant is for the caches of a toolchain.
func isCache(grant string) bool { return strings.HasPrefix(grant, caches.GrantPrefix) }

// check returns what is wrong with flags and words together.
func (o *runOptions) check(words []string) error {
	switch {
	case o.sandbox != "" && o.profile != "":
		return usage("-s %s and -P %s do not go together; each says what the command may touch", o.sandbox, o.profile)
	case o.json && o.jsonl:
		return usage("--json and --jsonl do not go together; --jsonl ends with the object of --json")
	case o.hasScript && len(words) > 0:
		return usage("-c takes the whole command line, so %s cannot follow it; put it into the script", quote(words[0]))
	case o.hasScript && strings.TrimSpace(o.script) == "":
		return usage("command args are empty: the script after -c has nothing to run")
	case !o.hasScript && o.shell != "":
		return usage("--shell needs a script: sallyport run --shell %s -c SCRIPT", o.shell)
	case !o.hasScript && o.login:
		return usage("--login needs a script: sallyport run --login -c SCRIPT")
	case !o.hasScript && len(words) == 0:
		return usage("command args are empty: nothing to run; sallyport run [FLAGS] -- CMD [ARG...]")
	case !o.hasScript && words[0] == "":
		return usage("the name of the program is empty")
	case o.noCaches && slices.ContainsFunc(o.grants, isCache):
		return usage("--no-caches and --grant %s do not go together; leave one of the two out", o.grants[slices.IndexFunc(o.grants, isCache)])
	case o.quiet && o.verbose:
		return usage("-q and -v do not go together")
	}
	return o.checkLimits()
}

// runUsage is the help text of run.
func runUsage() string {
	return `Run a command in the sandbox, and exit as it exits.

  sallyport run [FLAGS] [--] CMD [ARG...]
  sallyport run [FLAGS] -c SCRIPT

Flags end at the first word that is not one. The command reads and runs
everything on this machine, writes in the workspace and in a /tmp of its own,
and has no network. .git, .agents, .codex and .sallyport stay as they are, and
do not come into being. What it writes to caches of toolchains stays in a
private layer of the workspace.
` + describe(runFlags(&runOptions{})) + `
Exit codes: the command's own; 128+n when signal n ended it; 121 the sandbox
cannot be had here; 122 forbidden; 123 refused, or nobody could be asked;
124 timed out; 125 an error of ours; 126 found but cannot be run; 127 not found.
`
}
