// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/safefile"
)

// GrantHome opens what shells, ssh, the desktop and tools run later out of a home directory.
const GrantHome = "home-config"

// homeNames are the names in a home directory that programs run or obey later, by the grant that opens
// them. Those with one are protected wherever a command could write to them, also where they are missing;
// a suggestion that opens any of them has a warning. Caches, histories and settings that only change how
// something looks are not here.
var homeNames = []struct {
	grant string // empty for names that are only warned of: nothing protects them
	later Later
	names []string
}{
	{GrantHome, Starts, []string{
		// Shells.
		".profile", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion",
		".bashrc", ".bashrc.d", ".inputrc", ".zshenv", ".zprofile", ".zshrc", ".zlogin", ".zlogout", ".zsh",
		".oh-my-zsh", ".oh-my-bash", ".p10k.zsh", ".fzf.bash", ".fzf.zsh", ".kshrc", ".mkshrc", ".cshrc",
		".tcshrc", ".login", ".logout", ".xonshrc", ".config/bash", ".config/elvish", ".config/fish",
		".config/nushell", ".config/powershell", ".config/starship.toml", ".config/xonsh", ".config/zsh",
		// The system at a login, ssh, mail.
		".pam_environment", ".config/environment.d", ".config/user-dirs.dirs", ".ssh", ".rhosts", ".shosts",
		".forward", ".procmailrc", ".mailcap", ".muttrc", ".gnupg/gpg-agent.conf",
		// The desktop and its services.
		".xprofile", ".xsession", ".xsessionrc", ".xinitrc", ".xserverrc", ".Xclients", ".xbindkeysrc",
		".config/autostart", ".config/autostart-scripts", ".config/plasma-workspace", ".config/systemd",
		".config/awesome", ".config/bspwm", ".config/hypr", ".config/i3", ".config/niri", ".config/openbox",
		".config/sway", ".config/sxhkd", ".config/waybar", ".local/share/applications",
		".local/share/dbus-1", ".local/share/gnome-shell/extensions", ".local/share/systemd",
		// Directories of programs that stand in PATH, and what programs load at every start.
		"bin", ".local/bin", ".local/lib", ".cargo/bin", ".cargo/env", "go/bin", ".npm-global/bin",
		".yarn/bin", ".bun/bin", ".deno/bin", ".dotnet/tools", ".krew/bin", ".pixi/bin", ".asdf", ".nodenv",
		".nvm", ".pyenv", ".rbenv", ".rustup", ".rvm", ".sdkman", ".volta", ".local/share/mise",
	}},
	{GrantHome, Obeyed, []string{
		// Tools whose settings name programs.
		".gitconfig", ".config/git", ".hgrc", ".config/hg", ".config/jj", ".npmrc", ".yarnrc", ".yarnrc.yml",
		".cargo/config", ".cargo/config.toml", ".gradle/gradle.properties", ".gradle/init.d",
		".gradle/init.gradle", ".gradle/init.gradle.kts", ".mavenrc", ".aws/config", ".docker/cli-plugins",
		".docker/config.json", ".kube/config", ".kube/kuberc", ".config/containers", ".config/gh/config.yml",
		".config/nix", ".local/share/helm/plugins", ".terraform.d/plugins", ".terraformrc", ".lessfilter",
		".psqlrc", ".sqliterc",
	}},
	{GrantAgents, Obeyed, []string{
		".agents", ".aider.conf.yml", ".claude", ".claude.json", ".cline", ".codex", ".continue",
		".config/amp", ".config/crush", ".config/goose", ".config/opencode", ".copilot", ".cursor",
		".factory", ".gemini", ".kiro", ".opencode", ".qwen", ".roo", ".windsurf",
	}},
	{GrantEditors, Obeyed, []string{
		".vimrc", ".gvimrc", ".vim", ".exrc", ".nvimrc", ".config/nvim", ".config/vim", ".local/share/nvim",
		".emacs", ".emacs.el", ".emacs.d", ".config/emacs", ".doom.d", ".config/doom", ".spacemacs",
		".spacemacs.d", ".config/helix", ".config/kak", ".config/micro", ".config/zed", ".vscode",
		".vscode-server", ".vscode-oss", ".cursor-server", ".config/Code/User", ".config/Cursor/User",
		".config/VSCodium/User", ".config/sublime-text", ".gdbinit", ".gdbearlyinit", ".config/gdb",
		".lldbinit", ".pdbrc", ".perldb", ".ipython/profile_default/startup", ".Rprofile", ".Renviron",
		".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".iex.exs", ".byebugrc", ".direnvrc", ".envrc",
		".config/direnv", ".config/mise", ".config/lazygit", ".tmux.conf", ".tmux", ".config/tmux",
		".screenrc", ".config/zellij", ".wezterm.lua", ".config/wezterm", ".config/alacritty",
		".config/ghostty", ".config/kitty",
	}},
	// What fewer people have, or what holds caches and data as well, which tools change all the time.
	{"", Starts, []string{
		".local/share/gnome-shell", "Library/LaunchAgents", ".local/share/zinit", ".starship",
		".config/polybar", ".config/rofi", ".config/wofi", ".config/eww", ".config/dunst",
		".config/mako", ".config/qtile", ".xmonad", ".config/xmonad", ".config/herbstluftwm",
		".config/river", ".config/labwc", ".config/lxsession", ".config/lxqt", ".config/xfce4",
		".kde", ".config/kdeconnect", ".local/share/plasma", ".local/share/kservices5",
		".local/share/kio", ".config/dconf", ".config/pulse", ".config/wireplumber",
		".config/pipewire", ".config/ion", ".config/oil", ".local/share/bash-completion",
		".local/share/zsh", ".zfunc", ".zplug", ".zinit", ".antigen", ".antidote",
		".config/sheldon", ".config/autokey", ".config/espanso", ".config/input-remapper",
		".config/ulauncher", ".config/albert", ".config/home-manager", ".config/nixpkgs",
		".guix-profile", ".config/guix", ".config/homebrew", ".config/chezmoi",
		".local/share/chezmoi",
	}},
	{"", Obeyed, []string{
		".pythonrc", ".pythonrc.py", ".pythonstartup", ".gemrc", ".my.cnf", ".bazelrc",
		".haskeline", ".octaverc", ".guile", ".curlrc", ".wgetrc", ".lesskey", ".mbsyncrc",
		".msmtprc", ".hammerspoon", ".hyper.js", ".condarc", ".netrc", ".replyrc", ".tigrc",
		".lftprc", ".ackrc", ".ripgreprc", ".sbclrc", ".clisprc", ".eclrc", ".rdebugrc",
		".vimspector.json", ".tofurc", "sitecustomize.py", "usercustomize.py", ".config/Code",
		".config/Cursor", ".config/VSCodium", ".config/Windsurf", ".config/JetBrains",
		".local/share/JetBrains", ".codeium", ".config/github-copilot", ".config/gh",
		".config/glab-cli", ".config/pip", ".config/uv", ".config/pypoetry", ".config/npm",
		".config/pnpm", ".config/yarn", ".ipython", ".jupyter", ".config/matplotlib", ".gdbinit.d",
		".gnupg", ".docker", ".kube", ".aws", ".terraform.d", ".gradle", ".m2", ".sbt", ".bundle",
		".mozilla", ".local/share/code-server", ".config/sallyport", ".config/husky",
		".config/mpv", ".weechat", ".irssi", ".config/lf", ".config/ranger", ".config/nnn",
		".config/yazi", ".config/mc", ".config/lldb", ".config/radare2", ".config/ipython", ".pip",
		".config/cargo", ".config/composer", ".composer/vendor", ".ghc", ".config/utop",
		".local/share/gh", ".subversion", ".config/tig", ".config/atuin", ".config/bat", ".kimi",
		".newsboat", ".config/newsboat", ".ansible/plugins", ".ansible/roles",
		".ansible/collections", ".packer.d", ".config/helm", ".local/share/helm", ".config/rclone",
		".config/yt-dlp", ".config/nano", ".SpaceVim.d", ".eclipse", ".netbeans",
		".config/qutebrowser", ".config/nyxt", ".config/pdm", ".config/conda", ".julia/config",
		".maxima", ".sage", ".config/rstudio", ".config/quarto", ".config/pandoc",
		".local/share/pandoc", ".config/latexmk", "texmf", ".config/vlc", ".config/mcp",
	}},
}

// homeTable is what the table is searched with.
type homeTable struct {
	rows   []ToolName
	byName map[string]ToolName
	later  map[string]Later // all names, also those that are only warned of
	full   map[string]bool  // directories with so many of the names that reading them is faster
}

var homeFiles = sync.OnceValue(func() *homeTable {
	const several = 8
	t := &homeTable{byName: map[string]ToolName{}, full: map[string]bool{}, later: map[string]Later{}}
	in := map[string]int{}
	for _, of := range homeNames {
		for _, name := range of.names {
			t.later[name] = of.later
			if of.grant == "" {
				continue
			}
			n := ToolName{Name: name, Grant: of.grant, Linked: true, Home: true}
			t.rows, t.byName[name] = append(t.rows, n), n
			dir := filepath.Dir(name)
			in[dir]++
			t.full[dir] = in[dir] >= several
		}
	}
	return t
})

// OpenedInHome returns the names in a home directory that a grant opens.
func OpenedInHome(grant string) (names []string) {
	for _, of := range homeNames {
		if of.grant == grant {
			names = append(names, of.names...)
		}
	}
	return names
}

// BelowHome returns the line of the name in a home directory that a path is or lies in, and where that is;
// false for every other path. All paths are absolute and clean.
func BelowHome(homes []string, path string) (n ToolName, at string, ok bool) {
	for _, home := range homes {
		rest, inside := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/")
		for ; inside && rest != "."; rest = filepath.Dir(rest) {
			if n, ok = homeFiles().byName[rest]; ok {
				return n, filepath.Join(home, rest), true
			}
		}
	}
	return ToolName{}, "", false
}

// HoldsHome reports whether a directory is a home directory, has one in it, or has names of the table in
// it that are further below in a home directory.
func HoldsHome(dir, home string) bool {
	return safefile.Within(home, dir) || safefile.Within(dir, home) &&
		slices.ContainsFunc(homeFiles().rows, func(n ToolName) bool {
			at := filepath.Join(home, n.Name)
			return at != dir && safefile.Within(at, dir)
		})
}
