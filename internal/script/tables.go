// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"strings"
	"sync"
)

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
	script  bool     // the words are a script, too: together, or the first of them
	apart   bool     // the command runs in a container or on another machine
}

// programs run a command with their own words, or with most of them.
var programs = sync.OnceValue(func() map[string]program {
	all := map[string]program{
		"caffeinate": {short: "tw"}, "capsh": {loose: true}, "cgexec": {short: "g"},
		"chpst":   {short: "uUbemdocpfrtl/n"},
		"chroot":  {shell: true, long: []string{"groups", "userspec"}, skip: 1},
		"chrt":    {short: "TPDp", long: []string{"sched-runtime", "sched-period", "sched-deadline"}, skip: 1},
		"command": {never: "vV"}, "cross-env": {assigns: true}, "cross-env-shell": {assigns: true, script: true},
		"dbus-run-session": {long: []string{"config-file", "dbus-daemon"}},
		"doas":             {shell: true, short: "Cu", assigns: true},
		"dotenv":           {loose: true}, "dotenvx": {loose: true}, "dtach": {loose: true}, "abduco": {loose: true},
		"env":      {short: "uCSa", long: []string{"unset", "chdir", "split-string", "argv0"}, assigns: true},
		"envchain": {skip: 1}, "exec": {short: "a"},
		"faketime": {short: "p", long: []string{"pid"}, skip: 1},
		"flock":    {short: "wEc", long: []string{"timeout", "conflict-exit-code", "command"}, skip: 1},
		"gosu":     {skip: 1}, "hyperfine": {loose: true, script: true},
		"ionice":  {short: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}},
		"nice":    {short: "n", long: []string{"adjustment"}},
		"npx":     {short: "pcw", long: []string{"package", "call", "workspace", "cache", "registry", "userconfig", "loglevel", "script-shell", "node-options"}},
		"nsenter": {shell: true, loose: true},
		"numactl": {short: "iwpPmNCx", long: []string{"interleave", "weighted-interleave", "preferred", "preferred-many", "membind", "cpunodebind", "physcpubind"}},
		"pkexec":  {long: []string{"user"}}, "proxychains": {short: "f"}, "proxychains4": {short: "f"},
		"repeat":    {skip: 1}, // of zsh
		"screen":    {loose: true, script: true},
		"setuidgid": {skip: 1}, "s6-setuidgid": {skip: 1}, "ssh-agent": {short: "aEOPt"}, "sshpass": {short: "dfpP"},
		"ssh":     {short: "BbcDEeFIiJLlmOoPpQRSWw", skip: 1, script: true, apart: true},
		"mosh":    {short: "p", long: []string{"ssh", "server", "port", "predict"}, skip: 1, apart: true},
		"stdbuf":  {short: "ioe", long: []string{"input", "output", "error"}},
		"su-exec": {skip: 1},
		"sudo":    {shell: true, short: "CDghpRrtTUuac", assigns: true, long: []string{"auth-type", "chdir", "chroot", "class", "close-from", "command-timeout", "group", "host", "login-class", "other-user", "prompt", "role", "type", "user"}},
		"taskset": {skip: 1}, "time": {short: "fo", long: []string{"format", "output"}},
		"timeout": {short: "ks", long: []string{"kill-after", "signal"}, skip: 1}, "unshare": {shell: true, loose: true},
		"ifne": {short: "n"},
		"uvx":  uv, "watchexec": {loose: true, script: true}, "zpty": {loose: true, script: true},
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
	"torsocks", "tsocks", "unbuffer", "chronic", "bunx", "pnpx", "torify", "dbus-launch",
	"zrun", "with-contenv",
}

// loosePrograms have options that are not all known: the command may begin at any word.
var loosePrograms = []string{
	"cpulimit", "fakeroot", "firejail", "gdb", "ltrace", "prlimit", "rlwrap", "runuser", "sallyport", "setarch",
	"setpriv", "softlimit", "start-stop-daemon", "strace", "systemd-inhibit", "systemd-run", "valgrind", "xvfb-run",
	"bwrap", "tini", "dumb-init", "mispipe", "parallel", "entr", "sem", "daemonize", "daemon", "xterm", "wait-on", "wait-for-it",
	"gnome-terminal", "konsole", "alacritty", "kitty", "foot", "proot", "rr", "heaptrack", "uftrace", "bpftrace", "nodemon", "onchange",
	"reflex", "minijail0", "nsjail", "catatonit", "foreground", "background", "systemd-nspawn", "systemd-cat", "logsave",
}

// uv are the options of uv run and uvx.
var uv = program{short: "pPfiCw", long: []string{
	"with", "with-editable", "with-requirements", "python", "extra", "no-extra", "group", "no-group", "only-group",
	"package", "directory", "project", "env-file", "index", "default-index", "index-url", "extra-index-url", "find-links",
	"from", "cache-dir", "config-file", "color", "refresh-package", "reinstall-package", "upgrade-package", "resolution",
	"prerelease", "exclude-newer", "link-mode", "config-setting", "keyring-provider", "index-strategy", "python-platform",
	"allow-insecure-host", "no-build-isolation-package", "no-binary-package", "no-build-package", "constraints", "overrides",
}}

// A family is a program whose first operand says what it does.
type family struct {
	short string             // options before that which take a value
	long  []string           //
	subs  map[string]program // those that run a command; several words with blanks between
	quiet string             // those that run none of their words
}

// container runs a command behind the name of an image or of what runs already.
var container = program{loose: true, apart: true}

var containers = family{short: "Hclf", long: []string{"host", "context", "config", "log-level", "file", "project-name", "profile", "env-file", "project-directory", "url", "connection", "namespace", "address"}, subs: map[string]program{
	"run": container, "exec": container, "create": container, "container run": container, "container exec": container,
	"container create": container, "compose run": container, "compose exec": container, "sandbox run": container,
}, quiet: "attach build builder buildx commit context cp diff events export history image images import info inspect kill load login logout logs network node pause plugin port ps pull push rename restart rm rmi save search secret service stack start stats stop swarm system tag top unpause update version volume wait scout manifest compose container"}

// families are such programs. What is neither in subs nor in quiet may run its words.
var families = sync.OnceValue(func() map[string]family {
	all := map[string]family{
		"npm": {subs: map[string]program{"exec": npmExec, "x": npmExec, "explore": {skip: 1}},
			quiet: "access adduser audit bin bugs cache ci clean-install completion config create dedupe ddp deprecate diff dist-tag docs doctor edit explain find-dupes fund get help hook i init install install-ci-test install-test in ins it link ln list ll la login logout ls org outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart rm root run run-script sbom search set shrinkwrap star stars start stop t team test token tst un undeprecate uninstall unpublish unstar update up upgrade version view why whoami r remove"},
		"pnpm": {short: "CFw", long: []string{"dir", "filter", "workspace-dir", "prefix"}, subs: map[string]program{"exec": {short: "c"}, "dlx": {short: "c", long: []string{"package"}}},
			quiet: "add audit bin build config create dedupe deploy env fetch i import init install install-test it licenses link list ln ls la ll outdated pack patch patch-commit patch-remove prune publish rb rebuild remove rm root run server setup start store stop t test un uninstall unlink up update upgrade why"},
		"yarn": {long: []string{"cwd"}, subs: map[string]program{"exec": {}, "dlx": {short: "pq", long: []string{"package"}}, "run": {long: []string{"inspect", "inspect-brk"}}, "workspace": {skip: 1}, "workspaces foreach": {loose: true}, "node": {}},
			quiet: "add audit autoclean bin build cache config constraints create dedupe explain generate-lock-entry global help import info init install licenses link list lint login logout node outdated owner pack patch plugin policies publish rebuild remove set start stage tag team test unlink unplug up upgrade upgrade-interactive version versions why workspaces"},
		"bun": {long: []string{"cwd", "config", "env-file"}, subs: map[string]program{"x": {}, "run": {}, "exec": {script: true}},
			quiet: "add audit build c create i init install link ls outdated patch pm publish remove rm test uninstall unlink update upgrade why"},
		"deno":   {quiet: "add bench bundle cache check clean compile completions coverage doc fmt info init install jupyter lint lsp outdated publish remove run task test types uninstall upgrade", subs: map[string]program{"x": {}}},
		"uv":     {long: uv.long, subs: map[string]program{"run": uv, "tool run": uv, "x": uv}, quiet: "add auth build cache export format help init lock pip publish python remove self sync tool tree venv version"},
		"pipx":   {subs: map[string]program{"run": {short: "i", long: []string{"spec", "with", "index-url", "pip-args", "python", "backend"}}}, quiet: "completions ensurepath environment help inject install install-all interpreter list pin reinstall reinstall-all uninject uninstall uninstall-all unpin upgrade upgrade-all upgrade-shared"},
		"poetry": {short: "CP", long: []string{"directory", "project"}, subs: map[string]program{"run": {}}, quiet: "about add build cache check config debug env export help init install list lock new publish remove search self shell show source sync update version"},
		"pipenv": {subs: map[string]program{"run": {}}, quiet: "check clean graph install lock open remove requirements scripts shell sync uninstall update upgrade verify audit"},
		"pdm":    {short: "pc", long: []string{"project", "config"}, subs: map[string]program{"run": {long: []string{"venv", "env-file", "site-packages"}}}, quiet: "add build cache completion config export fix import info init install list lock new outdated plugin publish py python remove search self show sync update use venv"},
		"hatch":  {short: "ep", long: []string{"env", "project", "cache-dir", "data-dir", "config"}, subs: map[string]program{"run": {script: true}}, quiet: "build clean config dep env fmt new project publish python self shell status test version"},
		"rye":    {subs: map[string]program{"run": {}}, quiet: "add build config fetch fmt init install lint list lock pin publish remove self show sync test toolchain tools uninstall version"},
		"pixi":   {subs: map[string]program{"run": {short: "e", long: []string{"environment", "manifest-path"}}, "exec": {short: "sc", long: []string{"spec", "channel", "with"}}}, quiet: "add auth build clean config global info init install list lock project remove search self-update shell task tree update upgrade upload workspace"},
		"conda":  condaFamily, "mamba": condaFamily, "micromamba": condaFamily,
		"bundle": {subs: map[string]program{"exec": {}}, quiet: "add binstubs cache check clean config console doctor env gem help info init inject install issue licenses list lock open outdated package platform plugin pristine remove show update version viz"},
		"gem":    {subs: map[string]program{"exec": {short: "gv", long: []string{"gem", "version"}}}, quiet: "build cert check cleanup contents dependency environment fetch help info install list lock open outdated owner pristine push query search signin signout sources specification stale uninstall unpack update which yank"},
		"mise":   mise, "rtx": mise,
		"asdf":   {subs: map[string]program{"exec": {}, "env": {skip: 1}}, quiet: "current global help info install latest list local plugin reshim set shell shim-versions uninstall update version where which"},
		"direnv": {subs: map[string]program{"exec": {skip: 1}}, quiet: "allow block deny edit export fetchurl grant help hook log permit prune reload status stdlib version watch"},
		"nix":    {long: []string{"option", "extra-experimental-features"}, subs: map[string]program{"run": {loose: true}, "shell": {loose: true, script: true}, "develop": {loose: true, script: true}}, quiet: "build copy daemon derivation doctor edit eval flake fmt hash help key log nar path-info print-dev-env profile registry search show-config store upgrade-nix why-depends config"},
		"guix":   {subs: map[string]program{"shell": {loose: true}, "environment": {loose: true}}, quiet: "archive build challenge describe download edit gc graph hash home import install lint locate pack package publish pull refresh remove repl search show size style system time-machine upgrade weather"},
		"perf":   {subs: map[string]program{"stat": {loose: true}, "record": {loose: true}, "trace": {loose: true}, "mem": {loose: true}, "c2c": {loose: true}, "sched": {loose: true}, "kvm": {loose: true}, "lock": {loose: true}, "timechart": {loose: true}, "ftrace": {loose: true}, "top": {loose: true}, "kwork": {loose: true}}, quiet: "annotate archive bench buildid-cache buildid-list config data diff evlist help inject iostat kallsyms list probe report script test version"},
		"tmux":   {short: "fLScT", subs: tmuxCommands(), quiet: "a attach attach-session bind choose-tree copy-mode detach display display-message has has-session info kill-pane kill-server kill-session kill-window last-window list-clients list-keys list-panes list-sessions list-windows ls lsw lsp next-window capture-pane rename rename-session rename-window resize-pane select-layout select-pane select-window set set-option setenv show show-options start-server switch-client"},
		"busctl": {quiet: "call capture get-property introspect list monitor set-property status tree wait emit"},
		"xcrun":  {short: "", long: []string{"sdk", "toolchain"}, subs: map[string]program{}},
		"rustup": {subs: map[string]program{"run": {skip: 1}}, quiet: "check completions component default doc help install man override self set show target toolchain uninstall update which"},
		"rbenv":  versions, "pyenv": versions, "nodenv": versions, "goenv": versions, "jenv": versions, "phpenv": versions, "plenv": versions, "volta": versions, "nvm": versions, "fnm": versions,
		"op": secretsFamily, "doppler": secretsFamily, "infisical": secretsFamily, "chamber": secretsFamily, "aws-vault": secretsFamily, "envkey": secretsFamily, "teller": secretsFamily, "sops": secretsFamily, "vault-env": secretsFamily,
		"docker": containers, "podman": containers, "nerdctl": containers, "docker-compose": containers, "podman-compose": containers, "finch": containers, "ctr": containers, "crictl": containers, "runc": containers, "crun": containers,
		"kubectl": kube, "oc": kube, "k3s": kube, "minikube": kube, "microk8s": kube,
		"lxc":       {subs: map[string]program{"exec": container}, quiet: "cluster config console copy delete export file image import info init launch list monitor move network pause profile project publish query rename restart restore snapshot start stop storage version warning"},
		"toolbox":   {subs: map[string]program{"run": container}, quiet: "create enter help init-container list rm rmi"},
		"distrobox": {subs: map[string]program{"enter": container}, quiet: "assemble create ephemeral export generate-entry list rm stop upgrade version"},
		"flatpak":   {subs: map[string]program{"run": container, "enter": container}, quiet: "build-bundle config create-usb documents history info install kill list make-current mask override permissions pin ps remote-add remote-delete remote-info remote-ls remote-modify remotes repair search uninstall update"},
		"snap":      {subs: map[string]program{"run": container}, quiet: "alias aliases changes connect connections disable disconnect download enable find get help info install interface interfaces known list login logout logs refresh remove restart revert services set start stop switch tasks version wait warnings whoami"},
		"foreman":   {subs: map[string]program{"run": {short: "ef"}}, quiet: "check export help start version"},
		"heroku":    {subs: map[string]program{"run": container}},
		"cargo": {short: "CZ", long: []string{"color", "config", "manifest-path", "explain"}, subs: map[string]program{"watch": {loose: true, script: true}, "with": {loose: true}, "flamegraph": {loose: true}},
			quiet: "add audit b bench build c check clean clippy config d deny doc expand fetch fix fmt generate-lockfile help info init install locate-project login logout machete metadata miri nextest new outdated owner package pkgid publish r read-manifest remove report run rustc rustdoc search t test tree udeps uninstall update upgrade vendor verify-project version yank"},
		"go":   {short: "C", quiet: "bug build clean doc env fix fmt generate get help install list mod test tool version vet work telemetry"},
		"gh":   {short: "R", quiet: "api attestation auth browse cache codespace completion config gist gpg-key help issue label org pr preview project release repo ruleset run search secret ssh-key status variable workflow"},
		"glab": {quiet: "api auth check-update ci completion config help incident issue iteration job label mr release repo schedule snippet ssh-key token user variable version"},
		"just": {quiet: "*"},
	}
	return all
})

var npmExec = program{short: "pcw", long: []string{"package", "call", "workspace", "cache", "registry", "script-shell"}}

var condaFamily = family{subs: map[string]program{"run": {short: "np", long: []string{"name", "prefix", "cwd"}}}, quiet: "activate build clean compare config create deactivate doctor env export info init install list notices package remove rename search uninstall update upgrade"}

var mise = family{short: "CE", long: []string{"cd", "env", "jobs"}, subs: map[string]program{"exec": {loose: true}, "x": {loose: true}, "watch": {loose: true}}, quiet: "activate alias backends bin-paths cache completion config current deactivate direnv doctor en env fmt generate global help implode install install-into latest link list local lock ls ls-remote outdated plugins prune reshim registry run search self-update set settings shell shims sync tasks tool trust uninstall unset unuse up upgrade use version where which r i"}

var versions = family{subs: map[string]program{"exec": {loose: true}, "run": {loose: true}},
	quiet: "alias commands current default deactivate env fetch global help hooks init install list list-remote local ls ls-remote pin prefix rehash root setup shell shims uninstall unalias uninstall use version version-file version-name version-origin versions virtualenv whence which"}

var secretsFamily = family{subs: map[string]program{"run": {loose: true, script: true}, "exec": {loose: true}, "exec-env": {skip: 1, script: true}, "exec-file": {skip: 1, script: true}},
	quiet: "account add clear configure configs connect decrypt delete document edit encrypt environments export get group history import inject item list list-services login logout me open projects publish read remove rotate secrets setup show signin signout update user vault version whoami write"}

var kube = family{short: "nsv", long: []string{"namespace", "context", "cluster", "kubeconfig", "user", "server", "token", "as", "as-group", "cache-dir", "certificate-authority", "request-timeout"},
	subs:  map[string]program{"exec": container, "run": container, "debug": container, "rsh": container, "kubectl": {}},
	quiet: "annotate api-resources api-versions apply attach auth autoscale certificate cluster-info completion config cordon cp create delete describe diff drain edit events explain expose get help kustomize label logs options patch plugin port-forward proxy replace rollout scale set taint top uncordon version wait status start stop"}

// tmuxCommands hand their words to a shell, or run them.
func tmuxCommands() map[string]program {
	all := map[string]program{}
	for _, name := range strings.Fields("new new-session neww new-window splitw split-window respawnp respawn-pane respawnw respawn-window run run-shell if if-shell pipep pipe-pane popup display-popup send send-keys bind-key set-hook confirm-before command-prompt source-file wait-for") {
		all[name] = program{loose: true, script: true}
	}
	return all
}

// xargsOptions are those of xargs.
var xargsOptions = program{short: "adEILnPs", long: []string{
	"arg-file", "delimiter", "max-args", "max-chars", "max-procs", "process-slot-var",
}}

// watchOptions are those of watch, which hands its words to a shell.
var watchOptions = program{short: "nq", long: []string{"interval", "equexit"}}

// shells read a script from an option, a file or the standard input.
var shells = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields("ash bash csh dash elvish fish ksh ksh93 mksh nu oksh osh pdksh posh rbash rc rksh rzsh sh tcsh xonsh yash ysh zsh") {
		all[name] = true
	}
	return all
})

// A scriptOption is an option whose value is a script, wherever it stands.
type scriptOption struct {
	short string // letters
	long  []string
	glued bool // the value stands in the same word, or there is none
	kind  valueKind
}

// A valueKind is what the value of an option is.
type valueKind int

const (
	aScript      valueKind = iota
	anSSHSetting           // a line of the configuration of ssh
	aTarAction             // exec=SCRIPT, or a script
	aGitSetting            // KEY=VALUE
	aCodeFile              // the name of a file with settings or code
	someCode               // a text in another language
)

// scriptOptions are such options, by program.
var scriptOptions = sync.OnceValue(func() map[string][]scriptOption {
	script := func(short string, long ...string) scriptOption { return scriptOption{short: short, long: long} }
	ssh := []scriptOption{{short: "o", kind: anSSHSetting}, {short: "F", kind: aCodeFile}, {short: "I", kind: aCodeFile}}
	pack := []scriptOption{script("", "upload-pack", "exec")}
	return map[string][]scriptOption{
		"ack":               {script("", "pager")},
		"ag":                {script("", "pager")},
		"at":                {{short: "f", kind: aCodeFile}},
		"bat":               {script("", "pager")},
		"cargo":             {{long: []string{"config"}, kind: aCodeFile}},
		"compgen":           {script("CW")},
		"complete":          {script("CW")},
		"doppler":           {script("", "command")},
		"emacs":             {{short: "l", long: []string{"load", "script"}, kind: aCodeFile}, {short: "f", long: []string{"eval", "execute", "funcall"}, kind: someCode}},
		"env":               {script("S", "split-string")},
		"expect":            {{short: "c", kind: someCode}, {short: "f", kind: aCodeFile}},
		"fzf":               {script("", "preview", "bind", "tmux", "become", "with-shell")},
		"gcc":               {script("", "wrapper")},
		"git archive":       {script("", "exec")},
		"git clone":         {script("u", "upload-pack"), {short: "c", long: []string{"config"}, kind: aGitSetting}, {long: []string{"template"}, kind: aCodeFile}},
		"git daemon":        {script("", "access-hook")},
		"git difftool":      {script("x", "extcmd")},
		"git fetch":         pack,
		"git fetch-pack":    pack,
		"git filter-branch": {script("", "setup", "env-filter", "tree-filter", "index-filter", "parent-filter", "msg-filter", "commit-filter", "tag-name-filter")},
		"git grep":          {{short: "O", long: []string{"open-files-in-pager"}, glued: true}},
		"git instaweb":      {script("bd", "browser", "httpd")},
		"git ls-remote":     pack,
		"git pull":          pack,
		"git push":          {script("", "receive-pack", "exec")},
		"git rebase":        {script("x", "exec")},
		"git send-email":    {script("", "sendmail-cmd", "to-cmd", "cc-cmd", "header-cmd", "smtp-server")},
		"git send-pack":     {script("", "receive-pack", "exec")},
		"git init":          {{long: []string{"template"}, kind: aCodeFile}},
		"go":                {script("", "toolexec", "exec", "vettool")},
		"infisical":         {script("", "command")},
		"install":           {script("", "strip-program")},
		"make":              {script("", "eval")},
		"man":               {script("PH", "pager", "html", "browser")},
		"mapfile":           {script("C")},
		"ncat":              {script("ec", "exec", "sh-exec", "lua-exec")},
		"nc":                {script("ec")},
		"netcat":            {script("ec")},
		"nodemon":           {script("x", "exec")},
		"npm":               {script("c", "call")},
		"npx":               {script("c", "call")},
		"nix-shell":         {script("", "run", "command")},
		"readarray":         {script("C")},
		"flock":             {script("c", "command")},
		"rg":                {script("", "pre", "hostname-bin")},
		"rsync":             {script("e", "rsh", "rsync-path")},
		"runuser":           {script("c", "command", "session-command")},
		"scp":               {script("SD"), ssh[0], ssh[1]},
		"screen":            {script("X")},
		"script":            {script("c", "command")},
		"sftp":              {script("SD"), ssh[0], ssh[1], {short: "b", kind: aCodeFile}},
		"sg":                {script("c", "command")},
		"sort":              {script("", "compress-program")},
		"split":             {script("", "filter")},
		"ssh":               ssh,
		"start-stop-daemon": {script("xa", "exec", "startas")},
		"su":                {script("c", "command", "session-command")},
		"tar":               {script("IF", "to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command"), {long: []string{"checkpoint-action"}, kind: aTarAction}},
		"tcpdump":           {script("z")},
		"vagrant":           {script("c", "command")},
		"wget":              {script("", "use-askpass")},
		"zip":               {script("", "unzip-command"), {long: []string{"TT"}}},
	}
})

// sshCommands are settings of ssh that run a command on this machine.
var sshCommands = map[string]bool{
	"proxycommand": true, "localcommand": true, "knownhostscommand": true, "xauthlocation": true,
}

// gitOptions are the options of git that stand before its command and take a value.
var gitOptions = program{short: "Cc", long: []string{
	"git-dir", "work-tree", "namespace", "super-prefix", "config-env", "attr-source", "exec-path",
}}

// gitCommands are settings of git whose value is a command, without the name that may stand between
// their two parts.
var gitCommands = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(`browser.cmd browser.path core.alternaterefscommand core.askpass core.editor core.fsmonitor
		core.gitproxy core.pager core.sshcommand credential.helper diff.command diff.external diff.textconv difftool.cmd difftool.path
		filter.clean filter.process filter.smudge gc.recentobjectshook gpg.program gpg.defaultkeycommand guitool.cmd hook.command imap.tunnel
		instaweb.browser instaweb.httpd interactive.difffilter man.cmd man.path merge.driver mergetool.cmd mergetool.path receive.procreceiverefs
		remote.receivepack remote.uploadpack sendemail.cccmd sendemail.headercmd sendemail.sendmailcmd sendemail.smtpserver sendemail.tocmd
		sequence.editor submodule.update tar.command trailer.cmd trailer.command uploadpack.packobjectshook web.browser lfs.customtransfer`) {
		all[name] = true
	}
	return all
})

// gitFiles are settings of git whose value is a file or a directory with settings or code.
var gitFiles = map[string]bool{
	"core.hookspath": true, "core.attributesfile": true, "include.path": true, "includeif.path": true, "init.templatedir": true,
}

// finders are the programs that run a command for what they find, with the words before it.
var finders = sync.OnceValue(func() map[string][]string {
	find, fd := []string{"-exec", "-execdir", "-ok", "-okdir"}, []string{"-x", "-X", "--exec", "--exec-batch"}
	return map[string][]string{"find": find, "bfs": find, "gfind": find, "fd": fd, "fdfind": fd}
})
