// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import "sync"

// The tables are made when they are needed: making them at every start took 40 µs.

// A Launcher is a program, or a command of one, that runs the command that its words end with. The
// zero Launcher has no options that take a value.
type Launcher struct {
	Assigns bool // NAME=VALUE stands before the command
	Shell   bool // without a command it is a shell
	Script  bool // the words are a script, too: together, or the first of them
	Apart   bool // the command runs in a container or on another machine

	short string   // options of one letter that take a value
	long  []string // long options that take a value
	skip  int      // operands before the command
	loose bool     // options are not all known: the command may begin at any word
	never string   // options with which nothing runs
}

// launchers run a command with their own words, or with most of them.
var launchers = sync.OnceValue(func() map[string]Launcher {
	all := map[string]Launcher{
		"caffeinate": {short: "tw"}, "capsh": {loose: true}, "cgexec": {short: "g"},
		"chpst":   {short: "uUbemdocpfrtl/n"},
		"chroot":  {Shell: true, long: []string{"groups", "userspec"}, skip: 1},
		"choom":   {short: "np", long: []string{"adjust", "pid"}},
		"chrt":    {short: "TPDp", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, skip: 1},
		"command": {never: "vV"}, "cross-env": {Assigns: true}, "cross-env-shell": {Assigns: true, Script: true},
		"dbus-run-session": {long: []string{"config-file", "dbus-daemon"}},
		"doas":             {Shell: true, short: "Cu", Assigns: true},
		"dotenv":           {loose: true}, "dotenvx": {loose: true}, "dtach": {loose: true}, "abduco": {loose: true},
		"env":      {short: "uCSa", long: []string{"unset", "chdir", "split-string", "argv0"}, Assigns: true},
		"envchain": {skip: 1}, "exec": {short: "a"},
		"faketime": {short: "p", long: []string{"pid"}, skip: 1},
		"flock":    {short: "wEc", long: []string{"timeout", "conflict-exit-code", "command"}, skip: 1},
		"gosu":     {skip: 1}, "hyperfine": {loose: true, Script: true},
		"ionice":  {short: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}},
		"nice":    {short: "n", long: []string{"adjustment"}},
		"npx":     {short: "pcw", long: []string{"package", "call", "workspace", "cache", "registry", "userconfig", "loglevel", "script-shell", "node-options"}},
		"nsenter": {Shell: true, loose: true},
		"numactl": {short: "iwpPmNCx", long: []string{"interleave", "weighted-interleave", "preferred", "preferred-many", "membind", "cpunodebind", "physcpubind"}},
		"pkexec":  {long: []string{"user"}}, "proxychains": {short: "f"}, "proxychains4": {short: "f"},
		"repeat":    {skip: 1}, // of zsh
		"screen":    {loose: true, Script: true},
		"setuidgid": {skip: 1}, "s6-setuidgid": {skip: 1}, "ssh-agent": {short: "aEOPt"}, "sshpass": {short: "dfpP"},
		"ssh":     {short: "BbcDEeFIiJLlmOoPpQRSWw", skip: 1, Script: true, Apart: true},
		"mosh":    {short: "p", long: []string{"ssh", "server", "port", "predict"}, skip: 1, Apart: true},
		"stdbuf":  {short: "ioe", long: []string{"input", "output", "error"}},
		"su-exec": {skip: 1},
		"sudo":    {Shell: true, short: "CDghpRrtTUuac", Assigns: true, long: []string{"auth-type", "chdir", "chroot", "class", "close-from", "command-timeout", "group", "host", "login-class", "other-user", "prompt", "role", "type", "user"}},
		"taskset": {skip: 1}, "time": {short: "fo", long: []string{"format", "output"}},
		"timeout": {short: "ks", long: []string{"kill-after", "signal"}, skip: 1}, "unshare": {Shell: true, loose: true},
		"ifne": {short: "n"},
		"uvx":  uv, "watchexec": {loose: true, Script: true}, "zpty": {loose: true, Script: true},
	}
	for _, name := range barePrograms {
		all[name] = Launcher{}
	}
	for _, name := range loosePrograms {
		all[name] = Launcher{loose: true}
	}
	return all
})

// barePrograms have no options that take a value.
var barePrograms = []string{
	"-", "builtin", "catchsegv", "coproc", "eatmydata", "linux32", "linux64", "nocorrect", "noglob",
	"nohup", "setsid",
	"torsocks", "tsocks", "unbuffer", "chronic", "bunx", "pnpx", "torify", "dbus-launch",
	"zrun", "with-contenv",
}

// loosePrograms have options that are not all known: the command may begin at any word.
var loosePrograms = []string{
	"cpulimit", "fakeroot", "firejail", "gdb", "ltrace", "prlimit", "rlwrap", "runuser",
	"sallyport", "setarch",
	"setpriv", "softlimit", "start-stop-daemon", "strace", "systemd-inhibit", "systemd-run",
	"valgrind", "xvfb-run",
	"bwrap", "tini", "dumb-init", "mispipe", "parallel", "entr", "sem", "daemonize", "daemon", "xterm",
	"wait-on", "wait-for-it",
	"gnome-terminal", "konsole", "alacritty", "kitty", "foot", "proot", "rr", "heaptrack", "uftrace",
	"bpftrace", "nodemon", "onchange",
	"reflex", "minijail0", "nsjail", "catatonit", "foreground", "background", "systemd-nspawn",
	"systemd-cat", "logsave",
}

// uv are the options of uv run and uvx.
var uv = Launcher{short: "pPfiCw", long: []string{
	"with", "with-editable", "with-requirements", "python", "extra", "no-extra", "group",
	"no-group", "only-group",
	"package", "directory", "project", "env-file", "index", "default-index", "index-url",
	"extra-index-url", "find-links",
	"from", "cache-dir", "config-file", "color", "refresh-package", "reinstall-package",
	"upgrade-package", "resolution",
	"prerelease", "exclude-newer", "link-mode", "config-setting", "keyring-provider", "index-strategy",
	"python-platform",
	"allow-insecure-host", "no-build-isolation-package", "no-binary-package", "no-build-package",
	"constraints", "overrides",
}}

// Xargs are the options of xargs.
var Xargs = Launcher{short: "adEILnPs", long: []string{
	"arg-file", "delimiter", "max-args", "max-chars", "max-procs", "process-slot-var",
}}

// Watch are the options of watch, which hands its words to a shell.
var Watch = Launcher{short: "nq", long: []string{"interval", "equexit"}}

// CMake are what "cmake -E" runs a command with.
var CMake = map[string]Launcher{"env": {Assigns: true}, "time": {}, "chdir": {skip: 1}}

// finders are programs that run a command for what they find, with the words before it.
var finders = sync.OnceValue(func() map[string][]string {
	find, fd := []string{"-exec", "-execdir", "-ok", "-okdir"}, []string{"-x", "-X", "--exec", "--exec-batch"}
	return map[string][]string{"find": find, "bfs": find, "gfind": find, "fd": fd, "fdfind": fd}
})

// Finding returns the words before a command that a program runs for what it finds; nil for programs
// that find nothing.
func Finding(name string) []string { return finders()[name] }
