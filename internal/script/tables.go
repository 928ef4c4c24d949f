// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import "sync"

// The tables are made when they are needed: making them at every start took 40 µs.

// A program runs the command that its words end with.
type program struct {
	short   string   // options of one letter that take a value
	long    []string // long options that take a value
	skip    int      // operands before the command
	assigns bool     // NAME=VALUE stands before the command
	loose   bool     // options are not all known: the command may begin at any word
	never   string   // options with which nothing runs
	shell   bool     // without a command it is a shell
}

// programs run a command with their own words, or with most of them.
var programs = sync.OnceValue(func() map[string]program {
	all := map[string]program{
		"caffeinate": {short: "tw"}, "chroot": {shell: true, long: []string{"groups", "userspec"}, skip: 1},
		"chrt":    {short: "TPDp", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, skip: 1},
		"command": {never: "vV"}, "dbus-run-session": {long: []string{"config-file", "dbus-daemon"}},
		"doas": {shell: true, short: "Cu", assigns: true},
		"env":  {short: "uCSa", long: []string{"unset", "chdir", "split-string", "argv0"}, assigns: true},
		"exec": {short: "a"}, "flock": {short: "wEc", long: []string{"timeout", "conflict-exit-code", "command"}, skip: 1},
		"ionice": {short: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}},
		"nice":   {short: "n", long: []string{"adjustment"}}, "nsenter": {shell: true, loose: true},
		"pkexec": {long: []string{"user"}}, "proxychains": {short: "f"}, "proxychains4": {short: "f"},
		"setuidgid": {skip: 1}, "ssh-agent": {short: "aEOPt"},
		"stdbuf":  {short: "ioe", long: []string{"input", "output", "error"}},
		"sudo":    {shell: true, short: "CDghpRrtTUuac", assigns: true, long: []string{"auth-type", "chdir", "chroot", "class", "close-from", "command-timeout", "group", "host", "login-class", "other-user", "prompt", "role", "type", "user"}},
		"taskset": {skip: 1}, "time": {short: "fo", long: []string{"format", "output"}},
		"timeout": {short: "ks", long: []string{"kill-after", "signal"}, skip: 1}, "unshare": {shell: true, loose: true},
		"ifne": {short: "n"},
	}
	for _, name := range barePrograms {
		all[name] = program{}
	}
	for _, name := range loosePrograms {
		all[name] = program{loose: true}
	}
	return all
})

// barePrograms have no options that take a value.
var barePrograms = []string{
	"-", "builtin", "catchsegv", "coproc", "eatmydata", "linux32", "linux64", "nocorrect", "noglob", "nohup", "setsid",
	"torsocks", "tsocks", "unbuffer", "entr", "dumb-init", "chronic",
}

// loosePrograms have options that are not all known: the command may begin at any word.
var loosePrograms = []string{
	"cpulimit", "fakeroot", "firejail", "gdb", "ltrace", "prlimit", "rlwrap", "runuser", "sallyport", "setarch",
	"setpriv", "softlimit", "start-stop-daemon", "strace", "systemd-inhibit", "systemd-run", "valgrind", "xvfb-run",
	"bwrap", "tini", "mispipe", "parallel",
}

// xargsOptions are those of xargs.
var xargsOptions = program{short: "adEILnPs", long: []string{
	"arg-file", "delimiter", "max-args", "max-chars", "max-procs", "process-slot-var",
}}

// watchOptions are those of watch, which hands its words to a shell.
var watchOptions = program{short: "nq", long: []string{"interval", "equexit"}}

// shells read a script from an option, a file or the standard input.
var shells = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"ash": true, "bash": true, "dash": true, "fish": true, "ksh": true, "ksh93": true, "mksh": true, "oksh": true,
		"pdksh": true, "posh": true, "rbash": true, "rksh": true, "rzsh": true, "sh": true, "yash": true, "zsh": true,
	}
})

// A scriptOption is an option whose value is a script, wherever it stands.
type scriptOption struct {
	short  string // letters
	long   []string
	prefix []string // what comes before the script in the value; nil is nothing
}

// scriptOptions are such options, by program.
var scriptOptions = sync.OnceValue(func() map[string]scriptOption {
	return map[string]scriptOption{
		"compgen":           {short: "CW"},
		"env":               {short: "S", long: []string{"split-string"}},
		"git rebase":        {short: "x", long: []string{"exec"}},
		"git difftool":      {short: "x", long: []string{"extcmd"}},
		"git filter-branch": {long: []string{"setup", "env-filter", "tree-filter", "index-filter", "parent-filter", "msg-filter", "commit-filter", "tag-name-filter"}},
		"git clone":         {short: "u", long: []string{"upload-pack"}},
		"git fetch":         {long: []string{"upload-pack"}},
		"git push":          {long: []string{"receive-pack", "exec"}},
		"mapfile":           {short: "C"},
		"readarray":         {short: "C"},
		"flock":             {short: "c", long: []string{"command"}},
		"rsync":             {short: "e", long: []string{"rsh", "rsync-path"}},
		"runuser":           {short: "c", long: []string{"command", "session-command"}},
		"scp":               {short: "oS", prefix: sshCommands},
		"script":            {short: "c", long: []string{"command"}},
		"sftp":              {short: "oS", prefix: sshCommands},
		"ssh":               {short: "o", prefix: sshCommands},
		"su":                {short: "c", long: []string{"command", "session-command"}},
		"tar": {short: "IF", long: []string{
			"to-command", "use-compress-program", "checkpoint-action", "info-script", "new-volume-script", "rsh-command",
		}, prefix: []string{"exec=", ""}},
	}
})

// sshCommands are settings of ssh that run a command on this machine.
var sshCommands = []string{"proxycommand", "localcommand", "knownhostscommand"}

// commandVariables are environment variables with a command that other programs run.
var commandVariables = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"BROWSER": true, "EDITOR": true, "GIT_ASKPASS": true, "GIT_EDITOR": true, "GIT_EXTERNAL_DIFF": true, "GIT_PAGER": true,
		"GIT_PROXY_COMMAND": true, "GIT_SEQUENCE_EDITOR": true, "GIT_SSH": true, "GIT_SSH_COMMAND": true, "LESSCLOSE": true,
		"LESSOPEN": true, "MANPAGER": true, "PAGER": true, "PROMPT_COMMAND": true, "RSYNC_RSH": true, "SSH_ASKPASS": true,
		"SUDO_ASKPASS": true, "VISUAL": true,
	}
})

// gitOptions are the options of git that stand before its command and take a value.
var gitOptions = program{short: "Cc", long: []string{
	"git-dir", "work-tree", "namespace", "super-prefix", "config-env", "attr-source", "exec-path",
}}

// gitCommands are settings of git whose value is a command; one of those that end with a dot
// has a name between its two parts.
var gitCommands = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"core.askpass": true, "core.editor": true, "core.fsmonitor": true, "core.gitproxy": true, "core.pager": true,
		"core.sshcommand": true, "credential.helper": true, "diff.external": true, "sequence.editor": true,
		"browser.cmd": true, "diff.command": true, "diff.textconv": true, "difftool.cmd": true, "filter.clean": true,
		"filter.process": true, "filter.smudge": true, "gpg.program": true, "guitool.cmd": true, "man.cmd": true,
		"merge.driver": true, "mergetool.cmd": true, "remote.receivepack": true, "remote.uploadpack": true,
		"trailer.command": true, "trailer.cmd": true,
	}
})

// finders are the programs that run a command for what they find, with the words before it.
var finders = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		"find":   {"-exec", "-execdir", "-ok", "-okdir"},
		"fd":     {"-x", "-X", "--exec", "--exec-batch"},
		"fdfind": {"-x", "-X", "--exec", "--exec-batch"},
		"bfs":    {"-exec", "-execdir", "-ok", "-okdir"},
	}
})
