// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// A Flag is a flag of run. Those without a key concern one run only.
type Flag struct {
	Long  string // without dashes
	Short byte   // 0 for none
	Value string // the name of the value in the help, empty for a switch
	// Rest says that all words up to "--" are values.
	Rest bool
	// Toggle says that a switch can be turned off, too.
	Toggle bool
	Help   string // one or more lines
	Group  string // heading in the help text
	// Key is the name of the key that it sets; Sets is the value that a switch gives it.
	Key, Sets string
	// Words are the usual values; empty for those of the key.
	Words []string
	// Shapes says that the flag decides what a program may touch. It is recorded.
	Shapes bool
	// Local flags are about the program that takes them, and are not sent to a server. It is what a client
	// does in place of one, for the error of a server that gets it; empty for flags that are sent.
	Local string
}

// The headings of flags in the help text.
const (
	groupSandbox  = "What the program may touch"
	groupApproval = "Whether it runs, and who is asked"
	groupProgram  = "The program"
	groupLimits   = "Limits of the program and all that it starts (default none)"
	groupOutput   = "Output"
	groupConfig   = "Configuration (sallyport help config)"
)

// RunFlags returns the flags of run in the order of the help text. They must not be changed.
func RunFlags() []Flag { return runFlags }

var runFlags = []Flag{
	{
		Long: "sandbox", Short: 's', Value: "MODE", Group: groupSandbox, Key: "sandbox", Shapes: true, Words: []string{WorkspaceWrite, ReadOnly, FullAccess, "danger-full-access"},
		Help: "read-only, workspace-write, or full-access (alias\ndanger-full-access), which builds no sandbox\n(default workspace-write)",
	},
	{
		Long: "profile", Short: 'P', Value: "NAME", Group: groupSandbox, Key: "sandbox", Shapes: true,
		Help: "in place of -s: a profile of the configuration, or\n:minimal, which shows only system files and the\nworkspace",
	},
	{Long: "rw", Value: "PATH", Group: groupSandbox, Key: "write", Shapes: true, Help: "allow writing below PATH (repeatable)"},
	{Long: "ro", Value: "PATH", Group: groupSandbox, Key: "read", Shapes: true, Help: "allow reading PATH and deny writing it (repeatable)"},
	{Long: "deny", Value: "PATH", Group: groupSandbox, Key: "deny", Shapes: true, Help: "deny reading and writing PATH or what matches a glob\nsuch as '**/.env' (repeatable)"},
	{Long: "grant", Value: "NAME", Group: groupSandbox, Key: "grants", Shapes: true, Help: "open a named set, such as git, net:npm, ssh-agent\nor credentials:gh; sallyport doctor lists them\n(repeatable; NAME,NAME)"},
	{Long: "tmp", Value: "WHERE", Group: groupSandbox, Key: "tmp", Shapes: true, Help: "/tmp is private and removed afterwards, host, or a\ndirectory (default private)"},
	{Long: "no-caches", Group: groupSandbox, Key: "caches", Sets: "false", Shapes: true, Help: "no private layers over toolchain caches"},
	{Long: "no-observer", Group: groupSandbox, Key: "observer", Sets: "false", Shapes: true, Help: "do not observe system calls: no unix sockets, and\ndenials are not known"},
	{Long: "protect-hard-links", Group: groupSandbox, Key: "protect_hard_links", Sets: "true", Shapes: true, Help: "deny writing to files that have names elsewhere,\nsuch as in the store of a package manager"},
	{
		Long: "ownership", Value: "HOW", Group: groupSandbox, Key: "ownership", Shapes: true, Words: []string{"ignore", "error"},
		Help: "changes of owners by root, which the sandbox cannot\nmake: ignore (they succeed without effect and are\ncounted) or error (default ignore)",
	},
	{Long: "net", Value: "NET", Group: groupSandbox, Key: "network.mode", Shapes: true, Words: []string{NetNone, NetHost, NetProxy}, Help: "none, host, or proxy: hosts that policy allows, in the\nmode of the settings, else full\n(default none, host with full-access)"},
	{Long: "allow-host", Value: "PATTERN", Group: groupSandbox, Key: "network.allow", Shapes: true, Help: "allow hosts: example.com, *.example.com:443; implies\n--net proxy, for these hosts only where the settings\nturn the network off (repeatable)"},
	{Long: "deny-host", Value: "PATTERN", Group: groupSandbox, Key: "network.deny", Shapes: true, Help: "deny hosts; a denial wins, and opens no network\n(repeatable)"},
	{Long: "ask-net", Group: groupSandbox, Key: "network.ask", Sets: "true", Shapes: true, Help: "ask about hosts that no pattern names, while the\nprogram runs; implies\n--net proxy, unless the settings turn the network off"},
	{Long: "publish", Value: "PORT", Group: groupSandbox, Key: keyPublish, Shapes: true, Help: "reach the program's server at PORT from this machine's\n127.0.0.1:PORT; PORT:HOSTPORT for another port there\n(repeatable; PORT,PORT)"},
	{Long: "allow", Value: "NAME", Group: groupSandbox, Key: "allow", Shapes: true, Help: "open one thing that is closed by default: unix,\nuserns, ...; sallyport doctor lists them\n(repeatable; NAME,NAME)"},
	{Long: "level", Value: "LEVEL", Group: groupSandbox, Key: "level", Shapes: true, Words: []string{"bwrap", "native", "landlock"}, Help: "least sandbox level accepted: native, bwrap or\nlandlock (default bwrap)"},

	{
		Long: "approval", Short: 'a', Value: "WHEN", Group: groupApproval, Key: "approval", Words: []string{"untrusted", "on-request", "granular", "on-failure", "never"},
		Help: "when to ask: untrusted (about all that is not known\nto only read), on-request, granular, on-failure or\nnever (default on-request on a terminal or with\n--approval-wait, else never)",
	},
	{Long: "approval-wait", Value: "DUR", Group: groupApproval, Key: "approval_wait", Help: "how long a question without a terminal waits for\nsallyport approve or deny (default not at all)"},
	{Long: "rules", Value: "FILE", Group: groupApproval, Key: "rules", Help: "rules about commands, beside those of the\nconfiguration (repeatable)"},
	{Long: "escalate", Group: groupApproval, Shapes: true, Help: "ask to run it outside of the sandbox"},
	{Long: "ask-for", Value: "PATH|HOST", Group: groupApproval, Shapes: true, Help: "ask for writing PATH, or reaching HOST[:PORT], as\nwell; a path begins with /, . or ~, or has a /\n(repeatable)"},
	{Long: "justification", Value: "TEXT", Group: groupApproval, Help: "what the question says about the reason"},
	{Long: "prefix-rule", Value: "WORD...", Rest: true, Group: groupApproval, Help: "the rule that the question proposes to remember:\nall words up to --"},
	{Long: "approver", Value: "PROG", Group: groupApproval, Key: "hooks.approver", Help: "a program that is asked before a person"},

	{Long: "cd", Short: 'C', Value: "DIR", Group: groupProgram, Shapes: true, Help: "working directory and workspace (default current);\nother relative paths in flags begin there"},
	{Long: "command", Short: 'c', Value: "SCRIPT", Group: groupProgram, Help: "run a script in a shell in place of PROGRAM"},
	{Long: "shell", Value: "SHELL", Group: groupProgram, Key: "shell", Help: "shell for the script (default $SHELL)"},
	{Long: "login", Group: groupProgram, Key: "login", Sets: "true", Help: "run it as a login shell"},
	{Long: "env", Short: 'e', Value: "K[=V]", Group: groupProgram, Key: "environment.set", Shapes: true, Help: "set a variable, or pass one on (repeatable)"},
	{
		Long: "env-inherit", Value: "WHICH", Group: groupProgram, Key: "environment.inherit", Shapes: true, Words: []string{"all", "core", "none"},
		Help: "pass on all, core or none of our variables, except\nwhat looks like a secret (default all)",
	},
	{Long: "tty", Short: 't', Local: "set tty", Toggle: true, Group: groupProgram, Key: "tty", Sets: "true", Shapes: true, Help: "a terminal of its own; -t=false passes ours on\n(default on when stdin and stdout are terminals)"},
	{Long: "fd", Local: "leave it out", Value: "N", Group: groupProgram, Shapes: true, Help: "hand on descriptor N (repeatable; N,N); pipes that\nwords name as /dev/fd/N need no flag"},
	{Long: "interactive", Short: 'i', Local: "set openStdin", Group: groupProgram, Help: "keep stdin open (run always does)"},
	{Long: "timeout", Value: "DUR", Group: groupProgram, Key: "limits.timeout", Help: "stop it after a time such as 30 (seconds), 1.5, 5m\nor 1h30m (default never)"},
	{Long: "detach", Local: "leave it out", Group: groupProgram, Help: "leave it running as a session, and print its ID; see\nsallyport help attach"},
	{Long: "join", Local: "leave it out", Value: "NAME", Group: groupProgram, Shapes: true, Help: "run in the sandbox NAME of this workspace, which the\nfirst such run starts: programs in it share the\nnetwork and /tmp; see sallyport help sandboxes"},
	{Long: "idle", Local: "leave it out", Value: "DUR", Group: groupProgram, Help: "end that sandbox after so long without a program,\nif this run starts it (default 10m)"},
	{Long: "remote", Local: "connect to that server", Value: "URL", Group: groupProgram, Help: "run on an exec-server (ws://, wss:// or unix://),\nby the settings and rules there"},
	{Long: "remote-token-file", Local: "connect to that server", Value: "FILE", Group: groupProgram, Help: "holds the token for that server (default:\n$SALLYPORT_REMOTE_TOKEN)"},
	{Long: "remote-tls-cert", Local: "connect to that server", Value: "FILE", Group: groupProgram, Help: "our certificate for that server (PEM; wss:// only)"},
	{Long: "remote-tls-key", Local: "connect to that server", Value: "FILE", Group: groupProgram, Help: "its private key"},
	{Long: "remote-tls-ca", Local: "connect to that server", Value: "FILE", Group: groupProgram, Help: "trust servers that a certificate in it signed, in\nplace of the system's"},
	{Long: "kill-after", Value: "DUR", Group: groupProgram, Key: "limits.kill_after", Help: "time between SIGTERM and SIGKILL (default 2s)"},

	{Long: "memory", Value: "SIZE", Group: groupLimits, Key: "limits.memory", Shapes: true, Help: "memory, such as 512MiB; it is killed above that"},
	{Long: "cpus", Value: "N", Group: groupLimits, Key: "limits.cpus", Shapes: true, Help: "processors, such as 1.5; it is slowed down to that"},
	{Long: "pids", Value: "N", Group: groupLimits, Key: "limits.pids", Shapes: true, Help: "processes and threads at once"},
	{Long: "disk", Value: "SIZE", Group: groupLimits, Key: "limits.disk", Shapes: true, Help: "growth of its writable directories, /tmp included"},
	{Long: "output", Value: "SIZE", Group: groupLimits, Key: "limits.output", Shapes: true, Help: "bytes on stdout and stderr, which are pipes then"},

	{Long: "json", Local: "run/result has the object", Group: groupOutput, Help: "capture the output; print one JSON object at the end"},
	{Long: "jsonl", Local: "set events", Group: groupOutput, Help: "print events as JSON lines, the result object last"},
	{Long: "jsonl-drop", Local: "set events", Group: groupOutput, Help: "drop and count output that the reader of --jsonl is\ntoo slow for (default: the program waits)"},
	{Long: "max-output", Value: "SIZE", Group: groupOutput, Key: "max_output", Help: "bytes of each stream in the object (default 1MiB)"},
	{Long: "quiet", Short: 'q', Local: "leave it out", Group: groupOutput, Key: "quiet", Sets: "true", Help: "print no messages"},
	{Long: "verbose", Short: 'v', Group: groupOutput, Key: "verbose", Sets: "true", Help: "print the launch script, limits and usage"},
	{Long: "help", Short: 'h', Local: "run sallyport run --help", Group: groupOutput, Help: "print this text"},

	{Long: "config", Value: "FILE", Group: groupConfig, Help: "read this file in place of the user's config.toml"},
	{Long: "no-config", Group: groupConfig, Help: "read no files and variables but the managed ones"},
}
