// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"sync"
)

// A family is a program whose first operand says what it does.
type family struct {
	short string              // options before that which take a value
	long  []string            //
	subs  map[string]Launcher // those that run a command; several words with blanks between
	quiet string              // those that run none of their words
}

// container runs a command behind the name of an image or of what runs already.
var container = Launcher{loose: true, Apart: true}

var apartScript = Launcher{loose: true, Script: true, Apart: true}

func containers() family {
	return family{short: "Hclf", long: []string{"host", "context", "config", "log-level", "file",
		"project-name", "profile", "env-file", "project-directory", "url", "connection", "namespace",
		"address"}, subs: map[string]Launcher{
		"run": container, "exec": container, "create": container, "container run": container, "container exec": container,
		"container create": container, "compose run": container, "compose exec": container, "sandbox run": container,
	}, quiet: "attach build builder buildx commit context cp diff events export history image images import info inspect kill load login logout logs network node pause plugin port ps pull push rename restart rm rmi save search secret service stack start stats stop swarm system tag top unpause update version volume wait scout manifest compose container"}
}

// families are such programs. What is neither in subs nor in quiet may run its words.
var families = sync.OnceValue(func() map[string]family {
	all := map[string]family{
		"npm": {subs: map[string]Launcher{"exec": npmExec, "x": npmExec, "explore": {skip: 1}},
			quiet: "access adduser audit bin bugs cache ci clean-install completion config create dedupe ddp deprecate diff dist-tag docs doctor edit explain find-dupes fund get help hook i init install install-ci-test install-test in ins it link ln list ll la login logout ls org outdated owner pack ping pkg prefix profile prune publish query rebuild repo restart rm root run run-script sbom search set shrinkwrap star stars start stop t team test token tst un undeprecate uninstall unpublish unstar update up upgrade version view why whoami r remove"},
		"pnpm": {short: "CFw", long: []string{"dir", "filter", "workspace-dir", "prefix"}, subs: map[string]Launcher{"exec": {short: "c"}, "dlx": {short: "c", long: []string{"package"}}},
			quiet: "add audit bin build config create dedupe deploy env fetch i import init install install-test it licenses link list ln ls la ll outdated pack patch patch-commit patch-remove prune publish rb rebuild remove rm root run server setup start store stop t test un uninstall unlink up update upgrade why"},
		"yarn": {long: []string{"cwd"}, subs: map[string]Launcher{"exec": {}, "dlx": {short: "pq", long: []string{"package"}}, "run": {long: []string{"inspect", "inspect-brk"}}, "workspace": {skip: 1}, "workspaces foreach": {loose: true}, "node": {}},
			quiet: "add audit autoclean bin build cache config constraints create dedupe explain generate-lock-entry global help import info init install licenses link list lint login logout node outdated owner pack patch plugin policies publish rebuild remove set start stage tag team test unlink unplug up upgrade upgrade-interactive version versions why workspaces"},
		"bun": {long: []string{"cwd", "config", "env-file"}, subs: map[string]Launcher{"x": {}, "run": {}, "exec": {Script: true}},
			quiet: "add audit build c create i init install link ls outdated patch pm publish remove rm test uninstall unlink update upgrade why"},
		"deno":   {quiet: "add bench bundle cache check clean compile completions coverage doc fmt info init install jupyter lint lsp outdated publish remove run task test types uninstall upgrade", subs: map[string]Launcher{"x": {}}},
		"uv":     {long: uv.long, subs: map[string]Launcher{"run": uv, "tool run": uv, "x": uv}, quiet: "add auth build cache export format help init lock pip publish python remove self sync tool tree venv version"},
		"pipx":   {subs: map[string]Launcher{"run": {short: "i", long: []string{"spec", "with", "index-url", "pip-args", "python", "backend"}}}, quiet: "completions ensurepath environment help inject install install-all interpreter list pin reinstall reinstall-all uninject uninstall uninstall-all unpin upgrade upgrade-all upgrade-shared"},
		"poetry": {short: "CP", long: []string{"directory", "project"}, subs: map[string]Launcher{"run": {}}, quiet: "about add build cache check config debug env export help init install list lock new publish remove search self shell show source sync update version"},
		"pipenv": {subs: map[string]Launcher{"run": {}}, quiet: "check clean graph install lock open remove requirements scripts shell sync uninstall update upgrade verify audit"},
		"pdm":    {short: "pc", long: []string{"project", "config"}, subs: map[string]Launcher{"run": {long: []string{"venv", "env-file", "site-packages"}}}, quiet: "add build cache completion config export fix import info init install list lock new outdated plugin publish py python remove search self show sync update use venv"},
		"hatch":  {short: "ep", long: []string{"env", "project", "cache-dir", "data-dir", "config"}, subs: map[string]Launcher{"run": {Script: true}}, quiet: "build clean config dep env fmt new project publish python self shell status test version"},
		"rye":    {subs: map[string]Launcher{"run": {}}, quiet: "add build config fetch fmt init install lint list lock pin publish remove self show sync test toolchain tools uninstall version"},
		"pixi":   {subs: map[string]Launcher{"run": {short: "e", long: []string{"environment", "manifest-path"}}, "exec": {short: "sc", long: []string{"spec", "channel", "with"}}}, quiet: "add auth build clean config global info init install list lock project remove search self-update shell task tree update upgrade upload workspace"},
		"conda":  condaFamily(), "mamba": condaFamily(), "micromamba": condaFamily(),
		"bundle": {subs: map[string]Launcher{"exec": {}}, quiet: "add binstubs cache check clean config console doctor env gem help info init inject install issue licenses list lock open outdated package platform plugin pristine remove show update version viz"},
		"gem":    {subs: map[string]Launcher{"exec": {short: "gv", long: []string{"gem", "version"}}}, quiet: "build cert check cleanup contents dependency environment fetch help info install list lock open outdated owner pristine push query search signin signout sources specification stale uninstall unpack update which yank"},
		"mise":   mise(), "rtx": mise(),
		"asdf":   {subs: map[string]Launcher{"exec": {}, "env": {skip: 1}}, quiet: "current global help info install latest list local plugin reshim set shell shim-versions uninstall update version where which"},
		"direnv": {subs: map[string]Launcher{"exec": {skip: 1}}, quiet: "allow block deny edit export fetchurl grant help hook log permit prune reload status stdlib version watch"},
		"nix":    {long: []string{"option", "extra-experimental-features"}, subs: map[string]Launcher{"run": {loose: true}, "shell": {loose: true, Script: true}, "develop": {loose: true, Script: true}}, quiet: "build copy daemon derivation doctor edit eval flake fmt hash help key log nar path-info print-dev-env profile registry search show-config store upgrade-nix why-depends config"},
		"guix":   {subs: map[string]Launcher{"shell": {loose: true}, "environment": {loose: true}}, quiet: "archive build challenge describe download edit gc graph hash home import install lint locate pack package publish pull refresh remove repl search show size style system time-machine upgrade weather"},
		"perf":   {subs: map[string]Launcher{"stat": {loose: true}, "record": {loose: true}, "trace": {loose: true}, "mem": {loose: true}, "c2c": {loose: true}, "sched": {loose: true}, "kvm": {loose: true}, "lock": {loose: true}, "timechart": {loose: true}, "ftrace": {loose: true}, "top": {loose: true}, "kwork": {loose: true}}, quiet: "annotate archive bench buildid-cache buildid-list config data diff evlist help inject iostat kallsyms list probe report script test version"},
		"tmux":   {short: "fLScT", subs: tmuxCommands(), quiet: "a attach attach-session bind choose-tree copy-mode detach display display-message has has-session info kill-pane kill-server kill-session kill-window last-window list-clients list-keys list-panes list-sessions list-windows ls lsw lsp next-window capture-pane rename rename-session rename-window resize-pane select-layout select-pane select-window set set-option setenv show show-options start-server switch-client"},
		"busctl": {quiet: "call capture get-property introspect list monitor set-property status tree wait emit"},
		"xcrun":  {short: "", long: []string{"sdk", "toolchain"}, subs: map[string]Launcher{}},
		"rustup": {subs: map[string]Launcher{"run": {skip: 1}}, quiet: "check completions component default doc help install man override self set show target toolchain uninstall update which"},
		"rbenv":  versions(), "pyenv": versions(), "nodenv": versions(), "goenv": versions(), "jenv": versions(), "phpenv": versions(), "plenv": versions(), "volta": versions(), "nvm": versions(), "fnm": versions(),
		"op": secretsFamily(), "doppler": secretsFamily(), "infisical": secretsFamily(), "chamber": secretsFamily(), "aws-vault": secretsFamily(), "envkey": secretsFamily(), "teller": secretsFamily(), "sops": secretsFamily(), "vault-env": secretsFamily(),
		"docker": containers(), "podman": containers(), "nerdctl": containers(), "docker-compose": containers(), "podman-compose": containers(), "finch": containers(), "ctr": containers(), "crictl": containers(), "runc": containers(), "crun": containers(),
		"kubectl": kube(), "oc": kube(), "k3s": kube(), "minikube": kube(), "microk8s": kube(),
		"lxc":       {subs: map[string]Launcher{"exec": container}, quiet: "cluster config console copy delete export file image import info init launch list monitor move network pause profile project publish query rename restart restore snapshot start stop storage version warning"},
		"toolbox":   {subs: map[string]Launcher{"run": container}, quiet: "create enter help init-container list rm rmi"},
		"distrobox": {subs: map[string]Launcher{"enter": container}, quiet: "assemble create ephemeral export generate-entry list rm stop upgrade version"},
		"flatpak":   {subs: map[string]Launcher{"run": container, "enter": container}, quiet: "build-bundle config create-usb documents history info install kill list make-current mask override permissions pin ps remote-add remote-delete remote-info remote-ls remote-modify remotes repair search uninstall update"},
		"snap":      {subs: map[string]Launcher{"run": container}, quiet: "alias aliases changes connect connections disable disconnect download enable find get help info install interface interfaces known list login logout logs refresh remove restart revert services set start stop switch tasks version wait warnings whoami"},
		"foreman":   {subs: map[string]Launcher{"run": {short: "ef"}}, quiet: "check export help start version"},
		"cargo": {short: "CZ", long: []string{"color", "config", "manifest-path", "explain"}, subs: map[string]Launcher{"watch": {loose: true, Script: true}, "with": {loose: true}, "flamegraph": {loose: true}},
			quiet: "add audit b bench build c check clean clippy config d deny doc expand fetch fix fmt generate-lockfile help info init install locate-project login logout machete metadata miri nextest new outdated owner package pkgid publish r read-manifest remove report run rustc rustdoc search t test tree udeps uninstall update upgrade vendor verify-project version yank"},
		"go":     {short: "C", quiet: "bug build clean doc env fix fmt generate get help install list mod test tool version vet work telemetry"},
		"gh":     {short: "R", quiet: "api attestation auth browse cache codespace completion config gist gpg-key help issue label org pr preview project release repo ruleset run search secret ssh-key status variable workflow"},
		"glab":   {quiet: "api auth check-update ci completion config help incident issue iteration job label mr release repo schedule snippet ssh-key token user variable version"},
		"just":   {quiet: "*"},
		"gcloud": {subs: map[string]Launcher{"compute ssh": container}, quiet: "*"}, "heroku": {subs: map[string]Launcher{"run": apartScript, "run:detached": apartScript, "local:run": {}}, quiet: "*"},
		"nomad": {subs: map[string]Launcher{"exec": container, "alloc exec": container}, quiet: "*"}, "consul": {subs: map[string]Launcher{"exec": apartScript, "lock": {loose: true, Script: true}, "watch": {loose: true, Script: true}}, quiet: "*"},
		"ip": {short: "nbl", subs: map[string]Launcher{"netns exec": {skip: 1}, "vrf exec": {skip: 1}}, quiet: "*"}, "meson": {subs: map[string]Launcher{"devenv": {loose: true}}, quiet: "*"},
	}
	return all
})

var npmExec = Launcher{short: "pcw", long: []string{"package", "call", "workspace", "cache", "registry",
	"script-shell"}}

func condaFamily() family {
	return family{subs: map[string]Launcher{"run": {short: "np", long: []string{"name", "prefix", "cwd"}}},
		quiet: "activate build clean compare config create deactivate doctor env export info init install list notices package remove rename search uninstall update upgrade"}
}

func mise() family {
	return family{short: "CE", long: []string{"cd", "env", "jobs"},
		subs:  map[string]Launcher{"exec": {loose: true}, "x": {loose: true}, "watch": {loose: true}},
		quiet: "activate alias backends bin-paths cache completion config current deactivate direnv doctor en env fmt generate global help implode install install-into latest link list local lock ls ls-remote outdated plugins prune reshim registry run search self-update set settings shell shims sync tasks tool trust uninstall unset unuse up upgrade use version where which r i"}
}

func versions() family {
	return family{subs: map[string]Launcher{"exec": {loose: true}, "run": {loose: true}},
		quiet: "alias commands current default deactivate env fetch global help hooks init install list list-remote local ls ls-remote pin prefix rehash root setup shell shims uninstall unalias uninstall use version version-file version-name version-origin versions virtualenv whence which"}
}

func secretsFamily() family {
	return family{subs: map[string]Launcher{"run": {loose: true, Script: true}, "exec": {loose: true},
		"exec-env": {skip: 1, Script: true}, "exec-file": {skip: 1, Script: true}},
		quiet: "account add clear configure configs connect decrypt delete document edit encrypt environments export get group history import inject item list list-services login logout me open projects publish read remove rotate secrets setup show signin signout update user vault version whoami write"}
}

func kube() family {
	return family{short: "nsv", long: []string{"namespace", "context", "cluster", "kubeconfig", "user",
		"server", "token", "as", "as-group", "cache-dir", "certificate-authority", "request-timeout"},
		subs: map[string]Launcher{"exec": container, "run": container, "debug": container, "rsh": container,
			"kubectl": {}},
		quiet: "annotate api-resources api-versions apply attach auth autoscale certificate cluster-info completion config cordon cp create delete describe diff drain edit events explain expose get help kustomize label logs options patch plugin port-forward proxy replace rollout scale set taint top uncordon version wait status start stop"}
}

// tmuxCommands hand their words to a shell, or run them.
func tmuxCommands() map[string]Launcher {
	all := map[string]Launcher{}
	for _, name := range strings.Fields("new new-session neww new-window splitw split-window respawnp respawn-pane respawnw respawn-window run run-shell if if-shell pipep pipe-pane popup display-popup send send-keys bind-key set-hook confirm-before command-prompt source-file wait-for") {
		all[name] = Launcher{loose: true, Script: true}
	}
	return all
}

// A Subcommand is one of a family that runs a command.
type Subcommand struct {
	Name     string // of one or two words
	At       int    // of its last word
	Launcher Launcher
}

// first returns where the operand may stand that says what a program of the family does: behind
// an option that is not known, the next one may be it as well.
func (f *family) first(args []string) []int {
	p := Launcher{short: f.short, long: f.long}
	var all []int
	most := 1
	for i := 1; i < len(args) && len(all) < most; i++ {
		switch w := args[i]; {
		case w == Rest:
			return all
		case strings.HasPrefix(w, "--") && len(w) > 2:
			if _, _, cut := strings.Cut(w, "="); !cut {
				if p.takes(w[2:]) {
					i++
				} else {
					most = 2
				}
			}
		case len(w) > 1 && w[0] == '-' && w != "--":
			if at := strings.IndexAny(w[1:], p.short); at >= 0 && at+2 == len(w) {
				i++
			} else {
				most = 2
			}
		case w != "--":
			all = append(all, i)
		}
	}
	return all
}

// Subcommands returns what runs a command in the words of a program whose first operand says what
// it does; nil for other programs.
func Subcommands(name string, args []string) []Subcommand {
	f, ok := families()[name]
	if !ok {
		return nil
	}
	return f.commands(args)
}

// commands returns what runs a command.
func (f *family) commands(args []string) []Subcommand {
	var all []Subcommand
	for _, i := range f.first(args) {
		if p, ok := f.subs[args[i]]; ok {
			all = append(all, Subcommand{args[i], i, p})
			continue
		}
		for j := i + 1; j < len(args); j++ {
			if p, ok := f.subs[args[i]+" "+args[j]]; ok {
				all = append(all, Subcommand{args[i] + " " + args[j], j, p})
				break
			}
		}
	}
	return all
}

// open reports whether the family may run words of a command that its table does not say.
func (f *family) open(args []string) bool {
	first := f.first(args)
	if len(first) == 0 || f.quiet == "*" {
		return false
	}
	for _, i := range first {
		if _, ok := f.subs[args[i]]; ok || strings.Contains(" "+f.quiet+" ", " "+args[i]+" ") {
			return false
		}
	}
	return true
}
