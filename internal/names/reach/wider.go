// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"os"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// The flags of run that open more than one path or address.
const (
	wholeNetwork = "--net host"
	allSockets   = "--allow unix"
	noSandbox    = "-s full-access"
)

// wider returns the flags that allow an access together with much more, for one that no narrow
// grant allows. It is empty for what the policy denies by a rule of its own.
func (r *DeniedRun) wider(d *sandbox.Denial) string {
	switch d.Op {
	case sandbox.Connect, sandbox.Bind:
		switch {
		case d.Net == "unix" || strings.HasPrefix(d.Addr, "/") || strings.HasPrefix(d.Addr, "@"):
			return allSockets
		case r.Policy.Network() != sandbox.NetworkHost:
			return wholeNetwork
		}
	case sandbox.Signal:
		return noSandbox
	case sandbox.Read, sandbox.Write, sandbox.Exec:
		return r.widerPath(d)
	}
	return ""
}

// widerPath is wider for files: the nearest existing path, whatever else it opens.
func (r *DeniedRun) widerPath(d *sandbox.Denial) string {
	if d.Path == "" || d.Source == sandbox.Guessed {
		return ""
	}
	g := asGrant(d)
	if n, at, ok := r.later(d.Path); ok && d.Op == sandbox.Write && n.Grant == grants.GrantHome {
		// what exists alone, or what is missing with the rest of the table
		if g.Path = r.existing(d.Path); !inside(g.Path, at) {
			g = sandbox.Grant{Name: n.Grant}
		}
		return g.String()
	}
	if r.allowed(d) {
		return r.heldFile(d, g)
	}
	g.Path = r.existing(r.needed(d))
	if r.Policy.With(g).Rule(d.Access) != sandbox.Allow {
		return "" // denied by an entry, which no grant opens
	}
	if g.Path == "/" || ofKernel(d.Path) {
		return noSandbox
	}
	if locked, ok := strings.CutSuffix(d.Path, ".lock"); ok && locked != d.Path {
		file := sandbox.Grant{Path: locked, Level: g.Level}
		if r.files != nil && r.files.exists(locked) && HeldByItself(locked) {
			return g.String() + " " + file.String() // it becomes the file, which is protected by itself
		}
	}
	if n, at, ok := grants.BelowHome(r.homes(), d.Path); ok && d.Op == sandbox.Write && !inside(g.Path, at) &&
		!slices.Contains(r.Policy.Named(), n.Grant) {
		return g.String() + " " + sandbox.Grant{Name: n.Grant}.String() // the name stays closed in it
	}
	return g.String()
}

// heldFile is widerPath for a file that the sandbox protects in a directory that may be written, such as the
// settings of git in a home: it cannot be replaced, unless it is granted by itself.
func (r *DeniedRun) heldFile(d *sandbox.Denial, g sandbox.Grant) string {
	if d.Op != sandbox.Write || d.Errno != "EBUSY" && d.Errno != "EROFS" || r.files == nil ||
		!r.files.exists(d.Path) || !HeldByItself(d.Path) {
		return ""
	}
	return g.String()
}

// HeldByItself reports whether the sandbox protects a file of this name also where its directory may be
// written: it is settings that name programs which others run.
func HeldByItself(name string) bool {
	return slices.Contains(obeyedFiles, path.Base(name)) || slices.Contains(startFiles, path.Base(name))
}

// asGrant returns the grant for the path of a denial alone.
func asGrant(d *sandbox.Denial) sandbox.Grant {
	level := sandbox.LevelRead
	if d.Op == sandbox.Write {
		level = sandbox.LevelWrite
	}
	return sandbox.Grant{Path: d.Path, Level: level}
}

// startFiles are read by shells and by the system at a login or when a job is due.
var startFiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc",
	".zshenv", ".zprofile", ".zlogin", ".zlogout",
	".cshrc", ".tcshrc", ".login", ".kshrc", ".mkshrc", ".inputrc", ".xprofile", ".xinitrc", ".xsession",
	"profile", "bash.bashrc", "bashrc", "environment", "crontab",
	".xsessionrc", ".xserverrc", ".pam_environment", ".forward", ".procmailrc", ".mailcap",
}

// startPlaces are directories of such files, as they stand in a path.
var startPlaces = []string{
	"/.config/fish/", "/.config/autostart/", "/.config/systemd/", "/.config/environment.d/", "/.bashrc.d/",
	"/.zsh/", "/.oh-my-zsh/", "/.oh-my-bash/", "/.config/zsh/", "/.config/bash/",
	"/etc/profile.d/", "/etc/zsh/", "/etc/fish/", "/etc/cron", "/etc/init.d/", "/etc/systemd/",
	"/var/spool/cron/", "/.ssh/", "/.local/bin/",
	"/.config/nushell/", "/.config/powershell/", "/.config/elvish/", "/.local/share/systemd/",
	"/.local/share/dbus-1/", "/.config/plasma-workspace/", "/.config/autostart-scripts/",
	"/.config/i3/", "/.config/sway/", "/.config/hypr/", "/.local/share/applications/",
	"/.local/share/gnome-shell/", "/Library/LaunchAgents/", "/.config/direnv/",
	"/.nvm/", "/.rvm/", "/.sdkman/", "/.asdf/", "/.pyenv/", "/.rbenv/", "/.nodenv/", "/.volta/",
	"/.config/mise/", "/.local/share/mise/", "/.local/share/zinit/", "/.starship/",
	"/etc/pam.d/", "/etc/sudoers", "/etc/ssh/", "/etc/xdg/", "/etc/udev/", "/etc/apt/", "/etc/ld.so.",
	"/etc/polkit-1/", "/etc/dbus-1/", "/etc/NetworkManager/", "/etc/X11/",
	"/.config/waybar/", "/.config/polybar/", "/.config/rofi/", "/.config/wofi/", "/.config/eww/",
	"/.config/dunst/", "/.config/mako/", "/.config/sxhkd/", "/.config/awesome/", "/.config/qtile/",
	"/.xmonad/", "/.config/xmonad/", "/.config/bspwm/", "/.config/herbstluftwm/",
	"/.config/river/", "/.config/niri/", "/.config/labwc/", "/.config/openbox/", "/.config/lxsession/",
	"/.config/lxqt/", "/.config/xfce4/", "/.kde/", "/.config/kdeconnect/", "/.local/share/plasma/",
	"/.local/share/kservices5/", "/.local/share/kio/", "/.config/dconf/", "/.config/pulse/",
	"/.config/wireplumber/", "/.config/pipewire/", "/.config/xonsh/", "/.config/ion/", "/.config/oil/",
	"/.local/share/bash-completion/", "/.local/share/zsh/", "/.zfunc/", "/.zplug/", "/.zinit/",
	"/.antigen/", "/.antidote/", "/.config/sheldon/", "/.config/autokey/",
	"/.config/espanso/", "/.config/input-remapper/", "/.config/ulauncher/", "/.config/albert/",
	"/.config/home-manager/", "/.config/nix/", "/.config/nixpkgs/", "/.guix-profile/", "/.config/guix/",
	"/.config/homebrew/", "/.config/chezmoi/", "/.local/share/chezmoi/",
}

// obeyedFiles are settings in a home directory that name programs which others run.
var obeyedFiles = []string{
	".gitconfig", ".hgrc", ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".emacs", ".emacs.el", ".gdbinit",
	".gdbearlyinit", ".lldbinit", ".tmux.conf", ".screenrc", ".npmrc", ".yarnrc", ".yarnrc.yml",
	".pythonrc", ".pythonrc.py", ".pythonstartup", ".pdbrc", ".Rprofile", ".Renviron", ".irbrc", ".pryrc",
	".gemrc", ".psqlrc", ".sqliterc", ".my.cnf", ".bazelrc", ".ghci", ".haskeline", ".ocamlinit",
	".octaverc", ".guile",
	".curlrc", ".wgetrc", ".lesskey", ".lessfilter", ".muttrc", ".mbsyncrc", ".msmtprc", ".wezterm.lua",
	".hammerspoon", ".hyper.js", ".claude.json", ".mcp.json", ".aider.conf.yml", ".condarc", ".netrc",
	".pre-commit-config.yaml", ".envrc", ".perldb", ".replyrc", ".tigrc", ".lftprc", ".ackrc", ".ripgreprc",
	".xbindkeysrc", ".sbclrc", ".clisprc", ".eclrc", ".rdebugrc", ".byebugrc", ".vimspector.json",
	".terraformrc", ".tofurc",
	"sitecustomize.py", "usercustomize.py", "CLAUDE.md", "AGENTS.md", "GEMINI.md",
}

// obeyedPlaces are directories of such settings, and of what programs load, as they stand in a path.
var obeyedPlaces = []string{
	"/.config/git/", "/.config/hg/", "/.config/jj/", "/.config/nvim/", "/.config/vim/", "/.vim/",
	"/.local/share/nvim/", "/.config/helix/", "/.config/zed/", "/.config/kak/", "/.config/micro/",
	"/.emacs.d/", "/.config/emacs/", "/.doom.d/", "/.config/doom/",
	"/.config/Code/", "/.config/Cursor/", "/.config/VSCodium/", "/.config/Windsurf/", "/.vscode/",
	"/.vscode-server/", "/.vscode-oss/", "/.cursor/", "/.cursor-server/", "/.config/JetBrains/",
	"/.local/share/JetBrains/", "/.config/sublime-text/",
	"/.claude/", "/.codex/", "/.gemini/", "/.qwen/", "/.copilot/", "/.kiro/", "/.roo/", "/.windsurf/",
	"/.codeium/", "/.continue/", "/.cline/", "/.agents/", "/.factory/", "/.augment/",
	"/.config/opencode/", "/.opencode/", "/.config/goose/", "/.config/crush/", "/.config/amp/",
	"/.config/github-copilot/",
	"/.config/tmux/", "/.tmux/", "/.config/kitty/", "/.config/alacritty/", "/.config/wezterm/",
	"/.config/ghostty/", "/.config/lazygit/", "/.config/gh/", "/.config/glab-cli/", "/.config/pip/",
	"/.config/uv/", "/.config/pypoetry/", "/.config/npm/", "/.config/pnpm/", "/.config/yarn/",
	"/.config/containers/",
	"/.ipython/", "/.jupyter/", "/.config/matplotlib/", "/.gdbinit.d/", "/.config/gdb/", "/.gnupg/",
	"/.docker/", "/.kube/", "/.aws/", "/.terraform.d/", "/.gradle/", "/.m2/", "/.sbt/", "/.bundle/",
	"/.mozilla/", "/.local/share/code-server/", "/.local/lib/", "/.rustup/", "/.config/sallyport/",
	"/.config/husky/", "/.config/mpv/", "/.weechat/", "/.irssi/",
	"/.config/zellij/", "/.config/lf/", "/.config/ranger/", "/.config/nnn/", "/.config/yazi/", "/.config/mc/",
	"/.config/lldb/", "/.config/radare2/", "/.config/ipython/", "/.pip/", "/.config/cargo/",
	"/.config/composer/", "/.composer/vendor/",
	"/.ghc/", "/.config/utop/", "/.local/share/gh/", "/.subversion/", "/.config/tig/", "/.config/atuin/",
	"/.config/bat/", "/.pi/", "/.kimi/", "/.newsboat/", "/.config/newsboat/", "/.ansible/plugins/",
	"/.ansible/roles/", "/.ansible/collections/",
	"/.packer.d/", "/.config/helm/", "/.local/share/helm/", "/.config/rclone/", "/.config/yt-dlp/",
	"/.config/nano/", "/.spacemacs.d/", "/.SpaceVim.d/", "/.eclipse/", "/.netbeans/",
	"/.config/qutebrowser/", "/.config/nyxt/", "/.config/pdm/",
	"/.config/conda/", "/.julia/config/", "/.maxima/", "/.sage/", "/.config/rstudio/", "/.config/quarto/",
	"/.config/pandoc/", "/.local/share/pandoc/", "/.config/latexmk/", "/texmf/",
	"/.config/vlc/", "/.amp/",
	"/.config/mcp/", "/.openhands/", "/.iflow/", "/.grok/", "/.vibe/",
}

// cacheTrees are whole caches, of which other tools and later runs execute parts.
var cacheTrees = []string{"/.cache", "/.npm", "/.cargo", "/.rustup", "/.gradle", "/.m2", "/.pnpm-store",
	"/.yarn", "/go", "/go/pkg", "/go/pkg/mod", "/.local", "/.local/share"}

// GrantWarning says, in a few words, what suggested flags open beyond what was denied, or why it is
// dangerous; empty for a narrow grant. Home is the home directory; it may be empty.
func GrantWarning(flags, home string) string {
	switch {
	case strings.HasPrefix(flags, wholeNetwork):
		return "opens the whole network"
	case strings.HasPrefix(flags, allSockets):
		return "opens all unix sockets"
	case strings.HasPrefix(flags, noSandbox):
		return "warning: builds no sandbox at all"
	}
	list, _ := sandbox.ParseGrants(flags)
	for _, g := range list {
		switch g.Name {
		case grants.Docker:
			return "warning: root on this machine"
		case grants.GrantHome:
			return "warning: shells, ssh and other programs outside run what is in them"
		}
		if hosts := grants.Hosts(g.Name); strings.HasPrefix(g.Name, grants.HostPrefix) && len(hosts) > 1 {
			return "opens " + strings.Join(hosts, ", ")
		}
		if g.Path == "" || g.Level != sandbox.LevelWrite {
			continue
		}
		if text := warningOf(g.Path, home); text != "" {
			return text
		}
	}
	return ""
}

// warningOf is Warning for writing below a path.
func warningOf(name, home string) string {
	at := name + "/"
	in := func(place string) bool { return strings.Contains(at, place) }
	base := path.Base(name)
	cache := func(tree string) bool { return home != "" && name == home+tree }
	switch {
	case slices.Contains(startFiles, base) || slices.ContainsFunc(startPlaces, in):
		return "warning: programs outside run it at their start"
	case in("/.git/hooks/") || strings.HasSuffix(name, "/.git"):
		return "warning: git outside runs what is in it"
	case in("/bin/") || in("/sbin/") || inPath(name):
		return "warning: programs outside are run from it by their names"
	case slices.ContainsFunc(cacheTrees, cache):
		return "warning: a whole cache, from which other programs run code"
	case slices.Contains(obeyedFiles, base) || isLater(name, home) || slices.ContainsFunc(obeyedPlaces, in) ||
		home != "" && name == home+"/.config":
		return "warning: other programs obey it, and it can have them run something"
	case home != "" && inside(home, name):
		return "warning: a whole home directory"
	case name == "/" || !strings.Contains(strings.TrimPrefix(name, "/"), "/"):
		return "warning: a whole directory of the system"
	}
	return ""
}

// isLater reports whether a path has the name of one that other programs run or obey where it is in a
// project, or is one in a home directory.
func isLater(name, home string) bool {
	_, ok := grants.FindTool(path.Base(name))
	if !ok {
		_, _, ok = grants.BelowHome([]string{home}, name)
	}
	return ok
}

// inPath reports whether a path is a directory of this process's PATH, lies in one, or has one in it.
func inPath(name string) bool {
	for dir := range strings.SplitSeq(os.Getenv("PATH"), ":") {
		if dir = path.Clean(dir); path.IsAbs(dir) && dir != "/" &&
			(inside(name, dir) || inside(dir, name) && name != "/") {
			return true
		}
	}
	return false
}
