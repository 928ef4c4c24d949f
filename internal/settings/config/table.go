// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/cli/getopt"
	"github.com/sallyport-dev/sallyport/network"
)

// The headings of flags in the help text.
const (
	groupSandbox  = "What the program may touch"
	groupApproval = "Whether it runs, and who is asked"
	groupProgram  = "The program"
	groupLimits   = "Limits of the program and all that it starts (default none)"
	groupOutput   = "Output"
	groupConfig   = "Configuration (sallyport help config)"
)

// groups are the headings in their order.
var groups = []string{groupSandbox, groupApproval, groupProgram, groupLimits, groupOutput, groupConfig}

// keys is the table of all settings, in the order in which they are shown, and of the flags of run. The
// schema, the variables, the flags, their help and the messages are made from it, and what a value does to a
// run. Rows without a name are flags that concern one run only.
var keys = []Key{
	{Name: "sandbox", Type: Text, Words: []string{ReadOnly, WorkspaceWrite, FullAccess, Minimal}, Order: Words, Default: WorkspaceWrite, Help: "What commands may touch: read-only, workspace-write, full-access (no sandbox), :minimal, or the name of a profile.",
		Flags: []Flag{
			{to: func(r *Run) any { return &r.Sandbox }, Flag: getopt.Flag{Long: "sandbox", Short: 's', Value: "MODE", Group: groupSandbox, Shapes: true, Words: []string{WorkspaceWrite, ReadOnly, FullAccess, "danger-full-access"}, Help: "read-only, workspace-write, or full-access (alias\ndanger-full-access), which builds no sandbox\n(default workspace-write)"}},
			{to: func(r *Run) any { return &r.Profile }, Flag: getopt.Flag{Long: "profile", Short: 'P', Value: "NAME", Group: groupSandbox, Shapes: true, Help: "in place of -s: a profile of the configuration, or\n:minimal, which shows only system files and the\nworkspace"}},
		}},
	{Name: "approval_wait", Type: Duration, Default: "0s", to: func(r *Run) any { return &r.ApprovalWait }, Help: "How long a question without a terminal waits for sallyport approve or deny: 30s, or seconds.",
		Flags: []Flag{{after: "approval", Flag: getopt.Flag{Long: "approval-wait", Value: "DUR", Group: groupApproval, Help: "how long a question without a terminal waits for\nsallyport approve or deny (default not at all)"}}}},
	{Name: "approval", Type: Word, Words: []string{"untrusted", "granular", "on-request", "on-failure", "never"}, Order: Words, Default: "on-request", Help: "When to ask. Without a terminal and approval_wait the default is never. A table of sandbox_approval, rules, request_permissions, skill_approval and mcp_elicitations is granular.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "approval", Short: 'a', Value: "WHEN", Group: groupApproval, Words: []string{"untrusted", "on-request", "granular", "on-failure", "never"}, Help: "when to ask: untrusted (about all that is not known\nto only read), on-request, granular, on-failure or\nnever (default on-request on a terminal or with\n--approval-wait, else never)"}}}},
	{Name: "level", Type: Word, Words: []string{"native", "bwrap", "landlock"}, Order: Words, Default: "bwrap", to: func(r *Run) any { return &r.Cmd.Level }, Help: "The least level of the sandbox that is accepted.",
		Flags: []Flag{{after: "allow", Flag: getopt.Flag{Long: "level", Value: "LEVEL", Group: groupSandbox, Shapes: true, Words: []string{"bwrap", "native", "landlock"}, Help: "least sandbox level accepted: native, bwrap or\nlandlock (default bwrap)"}}}},
	{Name: "rules", Type: List, Words: []string{BuiltinReadOnly}, Order: Narrows, Default: BuiltinReadOnly, Help: "Rule files beside those in the directory rules. builtin:read-only lets commands that only read run without approval.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "rules", Value: "FILE", Kind: getopt.Files, Group: groupApproval, Help: "rules about commands, beside those of the\nconfiguration (repeatable)"}}}},
	{Name: "read", Profile: "read", Project: "read", Type: List, Words: tokens, Order: Opens, paths: true, ofMode: true, check: checkPlace, to: func(r *Run) any { return &r.Readable }, Help: "Paths to read and not to write: paths, :workspace, :tmp, :home, :minimal.",
		Flags: []Flag{{after: "rw", Flag: getopt.Flag{Long: "ro", Value: "PATH", Kind: getopt.Files, Group: groupSandbox, Shapes: true, Help: "allow reading PATH and deny writing it (repeatable)"}}}},
	{Name: "write", Profile: "write", Project: "write", Type: List, Words: tokens, Order: Opens, paths: true, ofMode: true, check: checkPlace, to: func(r *Run) any { return &r.Writable }, Help: "Paths to write below: paths, :workspace, :tmp, :home.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "rw", Value: "PATH", Kind: getopt.Files, Group: groupSandbox, Shapes: true, Help: "allow writing below PATH (repeatable)"}}}},
	{Name: "deny", Profile: "deny", Project: "deny", Type: List, Order: Narrows, check: checkDenied, to: func(r *Run) any { return &r.Denied }, Help: "Paths and globs, such as **/.env, that are neither read nor written. Deny wins.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "deny", Value: "PATH", Kind: getopt.Files, Group: groupSandbox, Shapes: true, Help: "deny reading and writing PATH or what matches a glob\nsuch as '**/.env' (repeatable)"}}}},
	{Name: "grants", Profile: "grants", Project: "grants", Type: List, Order: Opens, ofMode: true, covers: named, check: checkGrant, to: func(r *Run) any { return &r.Grants }, Help: "Named grants, such as git, cache:npm or net:npm. sallyport doctor lists them.",
		Flags: []Flag{{several: true, Flag: getopt.Flag{Long: "grant", Value: "NAME", Kind: getopt.Grants, Group: groupSandbox, Shapes: true, Help: "open a named set, such as git, net:npm, ssh-agent\nor credentials:gh; sallyport doctor lists them\n(repeatable; NAME,NAME)"}}}},
	{Name: "allow", Profile: "allow", Project: "allow", Type: List, Order: Opens, covers: named, check: checkOpening, to: func(r *Run) any { return &r.Cmd.Allow }, Help: "Things that are closed by default, such as unix or userns. sallyport doctor lists them.",
		Flags: []Flag{{after: "publish", several: true, Flag: getopt.Flag{Long: "allow", Value: "NAME", Kind: getopt.Openings, Group: groupSandbox, Shapes: true, Help: "open one thing that is closed by default: unix,\nuserns, ...; sallyport doctor lists them\n(repeatable; NAME,NAME)"}}}},
	{Name: "tmp", Type: Text, Words: []string{"private", "host"}, Order: Words, Default: "private", to: func(r *Run) any { return &r.Cmd.Tmp }, Help: "What commands see as /tmp: private (removed afterwards), host, or a directory.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "tmp", Value: "WHERE", Kind: getopt.Directories, Group: groupSandbox, Shapes: true, Help: "/tmp is private and removed afterwards, host, or a\ndirectory (default private)"}}}},
	{Name: "caches", Type: Bool, Order: FalseFirst, Default: "true", to: func(r *Run) any { return is(&r.Cmd.NoCaches, "false") }, Help: "Private layers over the caches of toolchains.",
		Flags: []Flag{{Sets: "false", Flag: getopt.Flag{Long: "no-caches", Group: groupSandbox, Shapes: true, Help: "no private layers over toolchain caches"}}}},
	{Name: "observer", Type: Bool, Order: TrueFirst, Default: "true", to: func(r *Run) any { return is(&r.Cmd.NoObserver, "false") }, Help: "Observe system calls, so that denials are known.",
		Flags: []Flag{{Sets: "false", Flag: getopt.Flag{Long: "no-observer", Group: groupSandbox, Shapes: true, Help: "do not observe system calls: no unix sockets, and\ndenials are not known"}}}},
	{Name: "protect_hard_links", Type: Bool, Order: TrueFirst, Default: "false", to: func(r *Run) any { return &r.Cmd.ProtectHardLinks }, Help: "Deny writing to files that have names elsewhere.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "protect-hard-links", Group: groupSandbox, Shapes: true, Help: "deny writing to files that have names elsewhere,\nsuch as in the store of a package manager"}}}},
	{Name: "ownership", Type: Word, Words: []string{"error", "ignore"}, Order: Words, Default: "ignore", to: func(r *Run) any { return is(&r.Cmd.OwnershipErrors, "error") }, Help: "What changes of owners by root do, which the sandbox cannot make: ignore or error.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "ownership", Value: "HOW", Group: groupSandbox, Shapes: true, Words: []string{"ignore", "error"}, Help: "changes of owners by root, which the sandbox cannot\nmake: ignore (they succeed without effect and are\ncounted) or error (default ignore)"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Dir }, Flags: []Flag{{Flag: getopt.Flag{Long: "cd", Short: 'C', Value: "DIR", Kind: getopt.Directories, Group: groupProgram, Shapes: true, Help: "working directory and workspace (default current);\nother relative paths in flags begin there"}}}},
	{Type: Any, to: func(r *Run) any { return func(v string) { r.Cmd.Script, r.HasScript = v, true } }, Flags: []Flag{{Flag: getopt.Flag{Long: "command", Short: 'c', Value: "SCRIPT", Group: groupProgram, Help: "run a script in a shell in place of PROGRAM"}}}},
	{Name: "shell", Type: Text, Words: []string{"bash", "zsh", "sh", "pwsh"}, to: func(r *Run) any { return &r.Cmd.Shell }, Help: "The shell for scripts. By default $SHELL.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "shell", Value: "SHELL", Group: groupProgram, Help: "shell for the script (default $SHELL)"}}}},
	{Name: "login", Type: Bool, Default: "false", to: func(r *Run) any { return &r.Cmd.Login }, Help: "Run scripts in a login shell.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "login", Group: groupProgram, Help: "run it as a login shell"}}}},
	{Name: "tty", Type: Bool, to: func(r *Run) any { return &r.TTY }, Help: "Give commands a terminal of their own. By default where stdin and stdout are terminals.",
		Flags: []Flag{{Local: "set tty", Flag: getopt.Flag{Long: "tty", Short: 't', Toggle: true, Group: groupProgram, Shapes: true, Help: "a terminal of its own; -t=false passes ours on\n(default on when stdin and stdout are terminals)"}}}},
	{Type: Any, check: checkDescriptor, to: func(r *Run) any { return &r.Descriptors }, Flags: []Flag{{Local: "leave it out", several: true, Flag: getopt.Flag{Long: "fd", Value: "N", Group: groupProgram, Shapes: true, Help: "pass descriptor N (repeatable; N,N); pipes that\nwords name as /dev/fd/N need no flag"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.Interactive }, Flags: []Flag{{Local: "set openStdin", Flag: getopt.Flag{Long: "interactive", Short: 'i', Group: groupProgram, Help: "keep stdin open (run always does)"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.JSON }, Flags: []Flag{{Local: "run/result has the object", Flag: getopt.Flag{Long: "json", Group: groupOutput, Help: "capture the output; print one JSON object at the end"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.JSONL }, Flags: []Flag{{Local: "set events", Flag: getopt.Flag{Long: "jsonl", Group: groupOutput, Help: "print events as JSON lines, the result object last"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.JSONLDrop }, Flags: []Flag{{Local: "set events", Flag: getopt.Flag{Long: "jsonl-drop", Group: groupOutput, Help: "drop and count output that the reader of --jsonl is\ntoo slow for (default: the program waits)"}}}},
	{Name: "max_output", Type: Size, Default: "1MiB", to: func(r *Run) any { return (*kept)(&r.Cmd.Retention.Bytes) }, Help: "Bytes of each stream that a result keeps.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "max-output", Value: "SIZE", Group: groupOutput, Help: "bytes of each stream in the object (default 1MiB)"}}}},
	{Name: "quiet", Type: Bool, Default: "false", to: func(r *Run) any { return &r.Quiet }, Help: "Print no messages.",
		Flags: []Flag{{Local: "leave it out", Flag: getopt.Flag{Long: "quiet", Short: 'q', Group: groupOutput, Help: "print no messages"}}}},
	{Name: "verbose", Type: Bool, Default: "false", to: func(r *Run) any { return &r.Verbose }, Help: "Print the launch script, limits and usage.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "verbose", Short: 'v', Group: groupOutput, Help: "print the launch script, limits and usage"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.Help }, Flags: []Flag{{Local: "run sallyport run --help", Flag: getopt.Flag{Long: "help", Short: 'h', Group: groupOutput, Help: "print this text"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Config }, Flags: []Flag{{Flag: getopt.Flag{Long: "config", Value: "FILE", Kind: getopt.Files, Group: groupConfig, Help: "read this file in place of the user's config.toml"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.NoConfig }, Flags: []Flag{{Flag: getopt.Flag{Long: "no-config", Group: groupConfig, Help: "read no files and variables but the managed ones"}}}},

	{Name: "limits.timeout", Profile: "limits.timeout", Type: Duration, Order: Smaller, to: func(r *Run) any { return &r.Cmd.Timeout }, Help: "How long a command may run.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "timeout", Value: "DUR", Group: groupProgram, Help: "stop it after a time such as 30 (seconds), 1.5, 5m\nor 1h30m (default never)"}}}},
	{Type: Bool, to: func(r *Run) any { return &r.Detach }, Flags: []Flag{{Local: "leave it out", Flag: getopt.Flag{Long: "detach", Group: groupProgram, Help: "leave it running as a session, and print its ID; see\nsallyport help attach"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Join }, Flags: []Flag{{Local: "leave it out", Flag: getopt.Flag{Long: "join", Value: "NAME", Group: groupProgram, Shapes: true, Help: "run in the sandbox NAME of this workspace, which the\nfirst such run starts: programs in it share the\nnetwork and /tmp; see sallyport help sandboxes"}}}},
	{Type: Duration, check: notNone, to: func(r *Run) any { return &r.Idle }, Flags: []Flag{{Local: "leave it out", Flag: getopt.Flag{Long: "idle", Value: "DUR", Group: groupProgram, Help: "end that sandbox after so long without a program,\nif this run starts it (default 10m)"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Server.URL }, Flags: []Flag{{Local: "connect to that server", Flag: getopt.Flag{Long: "remote", Value: "URL", Group: groupProgram, Help: "run on an exec-server (ws://, wss:// or unix://),\nby the settings and rules there"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Server.TokenFile }, Flags: []Flag{{Local: "connect to that server", Flag: getopt.Flag{Long: "remote-token-file", Value: "FILE", Group: groupProgram, Help: "holds the token for that server (default:\n$SALLYPORT_REMOTE_TOKEN)"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Server.Cert }, Flags: []Flag{{Local: "connect to that server", Flag: getopt.Flag{Long: "remote-tls-cert", Value: "FILE", Group: groupProgram, Help: "our certificate for that server (PEM; wss:// only)"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Server.Key }, Flags: []Flag{{Local: "connect to that server", Flag: getopt.Flag{Long: "remote-tls-key", Value: "FILE", Group: groupProgram, Help: "its private key"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Server.CA }, Flags: []Flag{{Local: "connect to that server", Flag: getopt.Flag{Long: "remote-tls-ca", Value: "FILE", Group: groupProgram, Help: "trust servers that a certificate in it signed, in\nplace of the system's"}}}},
	{Name: "limits.kill_after", Profile: "limits.kill_after", Type: Duration, Order: Smaller, Default: "2s", to: func(r *Run) any { return (*grace)(&r.Cmd.Grace) }, Help: "Time between SIGTERM and SIGKILL when a command is stopped.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "kill-after", Value: "DUR", Group: groupProgram, Help: "time between SIGTERM and SIGKILL (default 2s)"}}}},
	{Name: "limits.memory", Profile: "limits.memory", Type: Size, Order: Smaller, check: notZero, to: func(r *Run) any { return &r.Cmd.Resources.Memory }, Help: "Memory of a command and all that it starts.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "memory", Value: "SIZE", Group: groupLimits, Shapes: true, Help: "memory, such as 512MiB; it is killed above that"}}}},
	{Name: "limits.cpus", Profile: "limits.cpus", Type: CPUs, Order: Smaller, to: func(r *Run) any { return &r.Cmd.Resources.CPUs }, Help: "Processors, such as 1.5.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "cpus", Value: "N", Group: groupLimits, Shapes: true, Help: "processors, such as 1.5; it is slowed down to that"}}}},
	{Name: "limits.pids", Profile: "limits.pids", Type: Count, Order: Smaller, to: func(r *Run) any { return &r.Cmd.Resources.PIDs }, Help: "Processes and threads at once.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "pids", Value: "N", Group: groupLimits, Shapes: true, Help: "processes and threads at once"}}}},
	{Name: "limits.disk", Profile: "limits.disk", Type: Size, Order: Smaller, check: notZero, to: func(r *Run) any { return &r.Cmd.Resources.Disk }, Help: "Growth of the writable directories, /tmp included.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "disk", Value: "SIZE", Group: groupLimits, Shapes: true, Help: "growth of its writable directories, /tmp included"}}}},
	{Name: "limits.output", Profile: "limits.output", Type: Size, Order: Smaller, check: notZero, to: func(r *Run) any { return &r.Cmd.Resources.Output }, Help: "Bytes on stdout and stderr, which are pipes then.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "output", Value: "SIZE", Group: groupLimits, Shapes: true, Help: "bytes on stdout and stderr, which are pipes then"}}}},

	{Name: "network.mode", Profile: "network", Project: "network", Type: Word, Words: []string{NetNone, NetLimited, NetFull, NetHost}, Order: Words, to: func(r *Run) any { return &r.Network }, Help: "none, host, or the managed network: limited (reading requests only) or full. By default none, and host with full-access.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "net", Value: "NET", Group: groupSandbox, Shapes: true, Words: []string{NetNone, NetHost, NetProxy}, Help: "none, host, or proxy: hosts that policy allows, in the\nmode of the settings, else full\n(default none, host with full-access)"}}}},
	{Name: "network.allow", Type: List, Order: Opens, apart: true, covers: network.Covers, check: checkAllowed, Help: "Patterns of hosts that may be reached, such as *.example.com:443. Without network.mode the mode is full.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "allow-host", Value: "PATTERN", Group: groupSandbox, Shapes: true, Help: "allow hosts: example.com, *.example.com:443; implies\n--net proxy, for these hosts only where the settings\nturn the network off (repeatable)"}}}},
	{Name: "network.deny", Type: List, Order: Narrows, check: checkPattern, Help: "Patterns of hosts that may not be reached. Deny wins.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "deny-host", Value: "PATTERN", Group: groupSandbox, Shapes: true, Help: "deny hosts; a denial wins, and opens no network\n(repeatable)"}}}},
	{Name: "network.allow_private", Type: Bool, Order: FalseFirst, Default: "false", Help: "Let allowed names have private addresses, but not those of cloud metadata."},
	{Name: "network.allow_local_binding", Type: Bool, Order: FalseFirst, Default: "false", Help: "Have programs that use the proxy reach servers of their own command at localhost (NO_PROXY)."},
	{Name: "network.require_sni", Type: Bool, Order: TrueFirst, Default: "false", Help: "Refuse TLS without a server name."},
	{Name: "network.ask", Type: Bool, Default: "false", Help: "Ask about hosts that no pattern names, while the command runs that wants to reach them.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "ask-net", Group: groupSandbox, Shapes: true, Help: "ask about hosts that no pattern names, while the\nprogram runs; implies\n--net proxy, unless the settings turn the network off"}}}},
	{Name: keyPublish, Type: List, Order: Opens, apart: true, covers: publishes, check: checkPublish, Help: "Ports of commands that this machine reaches at its 127.0.0.1: PORT, or PORT:HOSTPORT.",
		Flags: []Flag{{several: true, Flag: getopt.Flag{Long: "publish", Value: "PORT", Group: groupSandbox, Shapes: true, Help: "reach the program's server at PORT from this machine's\n127.0.0.1:PORT; PORT:HOSTPORT for another port there\n(repeatable; PORT,PORT)"}}}},
	{Name: "network.upstream", Type: Text, Words: []string{network.UpstreamEnvironment, network.UpstreamNone}, Order: Fixes, Default: network.UpstreamEnvironment, check: checkUpstream, mask: network.MaskUpstream, Help: "The proxy by which allowed hosts are reached: http://[USER:PASSWORD@]HOST:PORT, https://..., socks5h://..., none, or environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY)."},
	{Name: "network.mitm.exclude", Type: List, Order: Narrows, check: checkPattern, Help: "Patterns of hosts whose TLS is not opened. The mode limited refuses TLS to them."},
	{Name: "network.mitm.extra_ca", Type: List, check: checkFile, Help: "Files of certificates (PEM) that servers are verified by, beside those of the system, where TLS is opened."},
	{Name: "network.mitm.rules", Type: Tables, table: requestRules, check: checkRequestRule, Help: "Rules by name that permit some requests to hosts, and no others: hosts, and optionally methods, paths, query, headers, strip, set."},
	{Name: "network.credentials", Type: Tables, table: credentials, check: checkCredential, Help: "Credentials by name that commands use and do not get: env, hosts, and optionally file, find, form, where, shape."},

	{Name: "environment.inherit", Type: Word, Words: []string{"none", "core", "all"}, Order: Words, Default: "all", to: func(r *Run) any { return &r.Inherit }, Help: "Which variables commands get: all, core or none, except what looks like a secret.",
		Flags: []Flag{{after: "env", Flag: getopt.Flag{Long: "env-inherit", Value: "WHICH", Group: groupProgram, Shapes: true, Words: []string{"all", "core", "none"}, Help: "pass on all, core or none of our variables, except\nwhat looks like a secret (default all)"}}}},
	{Name: "environment.exclude", Type: List, Order: Narrows, to: func(r *Run) any { return &r.Cmd.EnvPolicy.Exclude }, Help: "Patterns of names that commands do not get."},
	{Name: "environment.include_only", Type: List, to: func(r *Run) any { return &r.Cmd.EnvPolicy.IncludeOnly }, Help: "Patterns of the only names that commands get."},
	{Name: "environment.pass", Project: "environment.pass", Type: List, Order: Opens, apart: true, covers: named, to: func(r *Run) any { return &r.Variables }, Help: "Names of variables to pass on, also if they look like secrets."},
	{Name: "environment.set", Project: "environment.set", Type: Map, to: func(r *Run) any { return &r.Variables }, Help: "Variables to set.",
		Flags: []Flag{{after: "login", bare: "environment.pass", Flag: getopt.Flag{Long: "env", Short: 'e', Value: "K[=V]", Group: groupProgram, Shapes: true, Help: "set a variable, or pass one on (repeatable)"}}}},
	{Name: "environment.ignore_default_excludes", Type: Bool, Order: FalseFirst, Default: "false", to: func(r *Run) any { return &r.Cmd.EnvPolicy.KeepSecrets }, Help: "Pass on what looks like a secret, too."},

	{Type: Bool, to: func(r *Run) any { return &r.Cmd.Unsandboxed }, Flags: []Flag{{Flag: getopt.Flag{Long: "escalate", Group: groupApproval, Shapes: true, Help: "ask to run it outside of the sandbox"}}}},
	{Type: List, to: func(r *Run) any { return &r.AskFor }, Flags: []Flag{{Flag: getopt.Flag{Long: "ask-for", Value: "PATH|HOST", Kind: getopt.Files, Group: groupApproval, Shapes: true, Help: "ask for writing PATH, or reaching HOST[:PORT], as\nwell; a path begins with /, . or ~, or has a /\n(repeatable)"}}}},
	{Type: Text, to: func(r *Run) any { return &r.Cmd.Justification }, Flags: []Flag{{Flag: getopt.Flag{Long: "justification", Value: "TEXT", Group: groupApproval, Help: "what the question says about the reason"}}}},
	{Type: Any, to: func(r *Run) any { return &r.Cmd.PrefixRule }, Flags: []Flag{{Flag: getopt.Flag{Long: "prefix-rule", Value: "WORD...", Rest: true, Group: groupApproval, Help: "the rule that the question proposes to remember:\nall words up to --"}}}},
	{Name: "hooks.approver", Type: List, Whole: true, to: func(r *Run) any { return &r.Approver.Args }, Help: "A program, and its arguments, that is asked for approval before a person.",
		Flags: []Flag{{Flag: getopt.Flag{Long: "approver", Value: "PROG", Kind: getopt.Programs, Group: groupApproval, Help: "a program that is asked before a person"}}}},
	{Name: "hooks.approver_timeout", Type: Duration, Default: "60s", to: func(r *Run) any { return &r.Approver.Timeout }, Help: "How long it may take."},
	{Name: "hooks.approver_failure", Type: Word, Words: []string{"deny", "none"}, Default: "deny", to: func(r *Run) any { return is(&r.Approver.PassOnFailure, "none") }, Help: "What its failure means: deny, or none, which asks the next approver."},
	{Name: "reviewer.base_url", Type: Text, check: guardian.CheckURL, to: func(r *Run) any { return &r.Reviewer.BaseURL }, Help: "The address of the API of the reviewing model, such as https://api.openai.com/v1."},
	{Name: "reviewer.model", Type: Text, to: func(r *Run) any { return &r.Reviewer.Model }, Help: "The model that reviews before a person is asked, with on-request and granular."},
	{Name: "reviewer.api_key_env", Type: Text, to: func(r *Run) any { return &r.ReviewerKey }, Help: "The variable with its key, which commands get only by environment.pass."},
	{Name: "reviewer.timeout", Type: Duration, Default: "90s", to: func(r *Run) any { return &r.Reviewer.Timeout }, Help: "How long a review may take."},
	{Name: "reviewer.thresholds", Type: Map, check: checkThreshold, to: func(r *Run) any { return r.threshold }, Help: "The authorization that a risk needs, such as high = \"medium\"; deny denies it always."},
	{Name: "reviewer.strict", Type: Bool, Order: TrueFirst, Default: "false", to: func(r *Run) any { return &r.StrictReview }, Help: "Have the model review every command, each time anew, also those that need no approval."},
	{Name: "reviewer.shadow", Type: Bool, Default: "false", to: func(r *Run) any { return &r.Reviewer.Shadow }, Help: "Ask the model, print what it says, and decide without it."},
	{Name: "audit.path", Type: Text, Later: "the audit log", Help: "Where the audit log is."},
	{Name: "audit.checkpoint_key_file", Type: Text, Later: "the audit log", Help: "The key of its checkpoints."},
	{Name: "audit.retention", Type: Duration, Later: "the audit log", Help: "How long it is kept."},
	{Name: "telemetry.enabled", Type: Bool, Later: "telemetry", Help: "Send traces and metrics, as the OTEL_ variables say."},
	{Name: "sessions.max", Type: Count, Later: "sessions of the command line", Help: "How many sessions may be alive."},
	{Name: "sessions.spill", Type: Size, Later: "sessions of the command line", Help: "Output of a session that is kept in a file."},
	{Name: "sessions.detached_for", Type: Duration, Later: "sessions of the command line", Help: "How long a session lives without a client."},
	{Name: "remote", Type: Text, Later: "running on other machines", Help: "The exec-server to run on."},
}
