// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"path/filepath"
	"strings"
	"sync"
)

// The grants that open the names.
const (
	GrantAgents  = "agent-config"
	GrantEditors = "editor-config"
)

// A ToolName is one name at the top of a workspace, or a pattern of such names with one star at its
// beginning.
type ToolName struct {
	Name  string // with slashes for one further below
	Grant string // the one grant that opens it
	// Tracked says that it is a file of the project that git changes in daily work, such as
	// instructions: where git may write, it may be changed, and is then named.
	Tracked bool
	// Linked says that a link is usual there, so it is not refused where a sandbox cannot keep it as it is.
	Linked bool
	// Home says that it is a name in a home directory, where a missing one cannot be made.
	Home bool
}

// names is the table, sorted by grant and name. A name that two kinds of programs use has the
// grant of the kind that runs more of it without a question. Build files are not here: what they
// say runs at the next build.
var names = []ToolName{
	{Name: ".agent", Grant: GrantAgents, Linked: true},          // Antigravity: rules, workflows
	{Name: ".aiassistant", Grant: GrantAgents, Linked: true},    // JetBrains AI Assistant: rules
	{Name: ".aider.conf.yml", Grant: GrantAgents, Linked: true}, // Aider: commands for tests and lint
	{Name: ".amazonq", Grant: GrantAgents, Linked: true},        // Amazon Q: servers, agents, rules
	{Name: ".amp", Grant: GrantAgents, Linked: true},            // Amp: servers, permissions
	{Name: ".augment", Grant: GrantAgents, Linked: true},        // Augment: commands, rules
	{Name: ".claude", Grant: GrantAgents},                       // Claude Code: hooks, permissions, instructions
	{Name: ".cline", Grant: GrantAgents, Linked: true},          // Cline: hooks, skills
	{Name: ".clinerules", Grant: GrantAgents, Linked: true},     // Cline: rules, hooks
	{Name: ".codebuddy", Grant: GrantAgents, Linked: true},      // CodeBuddy: hooks, servers
	{Name: ".continue", Grant: GrantAgents, Linked: true},       // Continue: servers, rules
	{Name: ".crush", Grant: GrantAgents, Linked: true},          // Crush: skills
	{Name: ".crush.json", Grant: GrantAgents, Linked: true},     // Crush: servers, language servers
	{Name: ".cursor", Grant: GrantAgents},                       // Cursor: servers, hooks, rules
	{Name: ".cursorrules", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: ".factory", Grant: GrantAgents, Linked: true}, // Factory: hooks, servers, droids
	{Name: ".gemini", Grant: GrantAgents},                // Gemini CLI: servers, hooks, settings
	{Name: ".github/agents", Grant: GrantAgents, Linked: true},
	{Name: ".github/chatmodes", Grant: GrantAgents, Linked: true},
	{Name: ".github/copilot", Grant: GrantAgents, Linked: true}, // Copilot: settings, hooks
	{Name: ".github/copilot-instructions.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: ".github/hooks", Grant: GrantAgents, Linked: true}, // Copilot: hooks
	{Name: ".github/instructions", Grant: GrantAgents, Linked: true},
	{Name: ".github/prompts", Grant: GrantAgents, Linked: true},
	{Name: ".github/skills", Grant: GrantAgents, Linked: true},
	{Name: ".goose", Grant: GrantAgents, Linked: true}, // Goose: recipes, skills
	{Name: ".goosehints", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: ".grok", Grant: GrantAgents, Linked: true},          // Grok CLI: servers, settings
	{Name: ".iflow", Grant: GrantAgents, Linked: true},         // iFlow: hooks, servers, settings
	{Name: ".junie", Grant: GrantAgents, Linked: true},         // Junie: servers, guidelines
	{Name: ".kilo", Grant: GrantAgents, Linked: true},          // Kilo CLI: plugins, servers
	{Name: ".kilocode", Grant: GrantAgents, Linked: true},      // Kilo Code: servers, rules
	{Name: ".kilocodemodes", Grant: GrantAgents, Linked: true}, // Kilo Code: what each mode may do
	{Name: ".kiro", Grant: GrantAgents, Linked: true},          // Kiro: hooks, servers, steering
	{Name: ".lingma", Grant: GrantAgents, Linked: true},        // Lingma: rules
	{Name: ".mcp.json", Grant: GrantAgents},                    // programs that agents start as MCP servers
	{Name: ".opencode", Grant: GrantAgents, Linked: true},      // opencode: plugins, commands, agents
	{Name: ".openhands", Grant: GrantAgents, Linked: true},     // OpenHands: its setup script, hooks
	{Name: ".openhands_instructions", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: ".pi", Grant: GrantAgents, Linked: true},       // Pi: extensions
	{Name: ".qoder", Grant: GrantAgents, Linked: true},    // Qoder: rules, commands
	{Name: ".qwen", Grant: GrantAgents, Linked: true},     // Qwen Code: servers, hooks, settings
	{Name: ".roo", Grant: GrantAgents, Linked: true},      // Roo Code: servers, rules
	{Name: ".roomodes", Grant: GrantAgents, Linked: true}, // Roo Code: what each mode may do
	{Name: ".rovodev", Grant: GrantAgents, Linked: true},  // Rovo Dev: servers
	{Name: ".rules", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: ".tabnine", Grant: GrantAgents, Linked: true},  // Tabnine: servers, guidelines
	{Name: ".trae", Grant: GrantAgents, Linked: true},     // Trae: servers, rules
	{Name: ".vibe", Grant: GrantAgents, Linked: true},     // Mistral Vibe: tools, servers
	{Name: ".windsurf", Grant: GrantAgents, Linked: true}, // Windsurf: hooks, workflows, rules
	{Name: ".windsurfrules", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: ".zencoder", Grant: GrantAgents, Linked: true}, // Zencoder: rules
	{Name: "AGENT.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "AGENTS.local.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "AGENTS.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "AGENTS.override.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "CLAUDE.local.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "CLAUDE.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "CODEBUDDY.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "CRUSH.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "GEMINI.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "IFLOW.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "QWEN.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "WARP.md", Grant: GrantAgents, Tracked: true, Linked: true},
	{Name: "codemcp.toml", Grant: GrantAgents, Tracked: true, Linked: true}, // codemcp: commands
	{Name: "crush.json", Grant: GrantAgents, Linked: true},                  // Crush: servers, language servers
	{Name: "gptme.toml", Grant: GrantAgents, Tracked: true, Linked: true},   // gptme: commands
	{Name: "opencode.json", Grant: GrantAgents, Linked: true},               // opencode: servers, plugins, permissions
	{Name: "opencode.jsonc", Grant: GrantAgents, Linked: true},              // the same

	{Name: "*.code-workspace", Grant: GrantEditors, Linked: true},  // VS Code: tasks, launches, settings
	{Name: "*.sublime-project", Grant: GrantEditors, Linked: true}, // Sublime Text: language servers, builds
	{Name: ".Renviron", Grant: GrantEditors, Linked: true},         // variables of every R that starts here
	{Name: ".Rprofile", Grant: GrantEditors, Linked: true},         // code that every R runs that starts here
	{Name: ".autoenv", Grant: GrantEditors, Linked: true},          // the script that autoenv runs
	{Name: ".autoenv.zsh", Grant: GrantEditors, Linked: true},      // the script that zsh-autoenv runs
	{Name: ".autoenv_leave.zsh", Grant: GrantEditors, Linked: true},
	{Name: ".byebugrc", Grant: GrantEditors, Linked: true}, // commands of byebug
	{Name: ".config/lefthook.yml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".config/mise", Grant: GrantEditors, Linked: true}, // mise: variables, tasks, hooks
	{Name: ".config/mise.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".devcontainer", Grant: GrantEditors, Linked: true}, // commands on this machine and in containers
	{Name: ".devcontainer.json", Grant: GrantEditors, Linked: true},
	{Name: ".dir-locals-2.el", Grant: GrantEditors, Linked: true},
	{Name: ".dir-locals.el", Grant: GrantEditors, Linked: true}, // Emacs: variables and code
	{Name: ".direnv", Grant: GrantEditors, Linked: true},        // what direnv has evaluated
	{Name: ".envrc", Grant: GrantEditors},                       // the script that direnv runs in a shell
	{Name: ".exrc", Grant: GrantEditors, Linked: true},          // Vim and Neovim
	{Name: ".fleet", Grant: GrantEditors, Linked: true},         // Fleet: run configurations
	{Name: ".gdbinit", Grant: GrantEditors, Linked: true},       // commands of gdb
	{Name: ".ghci", Grant: GrantEditors, Linked: true},          // commands of GHCi and of the language server
	{Name: ".helix", Grant: GrantEditors, Linked: true},         // Helix: language servers
	{Name: ".hg", Grant: GrantEditors},                          // Mercurial: hooks and extensions in hgrc, history
	{Name: ".husky", Grant: GrantEditors},                       // scripts that git runs as hooks
	{Name: ".idea", Grant: GrantEditors},                        // JetBrains: run configurations, watchers, settings
	{Name: ".idx", Grant: GrantEditors, Linked: true},           // Firebase Studio: what starts with the workspace
	{Name: ".iex.exs", Grant: GrantEditors, Linked: true},       // code that IEx runs
	{Name: ".irbrc", Grant: GrantEditors, Linked: true},         // code that irb runs
	{Name: ".jj", Grant: GrantEditors, Linked: true},            // Jujutsu: configuration, history
	{Name: ".lazygit.yml", Grant: GrantEditors, Linked: true},   // commands of lazygit
	{Name: ".lefthook", Grant: GrantEditors, Linked: true},      // scripts that git runs as hooks
	{Name: ".lefthook-local", Grant: GrantEditors, Linked: true},
	{Name: ".lefthook-local.yml", Grant: GrantEditors, Linked: true},
	{Name: ".lefthook.json", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".lefthook.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".lefthook.yaml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".lefthook.yml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".lldbinit", Grant: GrantEditors, Linked: true}, // commands of lldb
	{Name: ".local.vimrc", Grant: GrantEditors, Linked: true},
	{Name: ".lvimrc", Grant: GrantEditors, Linked: true},
	{Name: ".mise", Grant: GrantEditors, Linked: true}, // mise: variables, tasks, hooks
	{Name: ".mise.local.toml", Grant: GrantEditors, Linked: true},
	{Name: ".mise.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".neoconf.json", Grant: GrantEditors, Linked: true}, // Neovim: language servers
	{Name: ".nova", Grant: GrantEditors, Linked: true},         // Nova: tasks, settings
	{Name: ".nvim.lua", Grant: GrantEditors, Linked: true},     // Neovim
	{Name: ".nvimrc", Grant: GrantEditors, Linked: true},
	{Name: ".ocamlinit", Grant: GrantEditors, Linked: true},
	{Name: ".overcommit.yml", Grant: GrantEditors, Tracked: true, Linked: true}, // what git runs as hooks
	{Name: ".p4config", Grant: GrantEditors, Linked: true},                      // Perforce: a server may be a command
	{Name: ".pdbrc", Grant: GrantEditors, Linked: true},                         // commands of the debugger of Python
	{Name: ".pijul", Grant: GrantEditors, Linked: true},                         // Pijul: hooks, history
	{Name: ".pre-commit-config.yaml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".projectile", Grant: GrantEditors, Linked: true},
	{Name: ".pryrc", Grant: GrantEditors, Linked: true},                 // code that pry runs
	{Name: ".ropeproject/config.py", Grant: GrantEditors, Linked: true}, // code that language servers of Python run
	{Name: ".rust-analyzer.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: ".rvmrc", Grant: GrantEditors, Linked: true},                        // the script that RVM runs
	{Name: ".shadowenv.d", Grant: GrantEditors, Linked: true},                  // what shadowenv evaluates
	{Name: ".sl", Grant: GrantEditors, Linked: true},                           // Sapling: hooks and extensions, history
	{Name: ".theia", Grant: GrantEditors, Linked: true},                        // Theia: tasks, launches, settings
	{Name: ".tool-versions", Grant: GrantEditors, Tracked: true, Linked: true}, // asdf and mise: which programs a name means
	{Name: ".vim/coc-settings.json", Grant: GrantEditors, Linked: true},        // Vim: language servers
	{Name: ".vimrc", Grant: GrantEditors, Linked: true},
	{Name: ".vscode", Grant: GrantEditors},                                         // VS Code: tasks, launches, settings
	{Name: ".ycm_extra_conf.py", Grant: GrantEditors, Tracked: true, Linked: true}, // code that YouCompleteMe runs
	{Name: ".zed", Grant: GrantEditors, Linked: true},                              // Zed: tasks, language servers
	{Name: "_darcs", Grant: GrantEditors, Linked: true},                            // Darcs: hooks in its preferences, history
	{Name: "_vimrc", Grant: GrantEditors, Linked: true},
	{Name: "captainhook.json", Grant: GrantEditors, Tracked: true, Linked: true}, // what git runs as hooks
	{Name: "lefthook-local.yml", Grant: GrantEditors, Linked: true},
	{Name: "lefthook.json", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: "lefthook.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: "lefthook.yaml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: "lefthook.yml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: "mise.local.toml", Grant: GrantEditors, Linked: true},
	{Name: "mise.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: "mise/config.toml", Grant: GrantEditors, Tracked: true, Linked: true},
	{Name: "prek.toml", Grant: GrantEditors, Tracked: true, Linked: true},          // what git runs as hooks
	{Name: "rust-analyzer.toml", Grant: GrantEditors, Tracked: true, Linked: true}, // what rust-analyzer runs
}

// namesAt is the lines by their names. A pattern is a star and what follows the last dot of a name.
var namesAt = sync.OnceValue(func() map[string]*ToolName {
	at := make(map[string]*ToolName, len(names))
	for i := range names {
		at[names[i].Name] = &names[i]
	}
	return at
})

// FindTool returns the line of a name, and false for a name that is not in the table.
func FindTool(name string) (ToolName, bool) {
	found, ok := namesAt()[name]
	if dot := strings.LastIndexByte(name, '.'); !ok && dot > 0 && !strings.Contains(name, "/") {
		found, ok = namesAt()["*"+name[dot:]]
	}
	if !ok {
		return ToolName{}, false
	}
	n := *found
	n.Name = name
	return n, true
}

// Below returns the line of the name in root that a path is or lies in, and where that is;
// false for every other path. Both paths are absolute and clean.
func Below(root, path string) (n ToolName, at string, ok bool) {
	rest, inside := strings.CutPrefix(path, strings.TrimSuffix(root, "/")+"/")
	if !inside {
		return ToolName{}, "", false
	}
	for end := 0; end < len(rest); { // its first element, its first two, ...
		next := strings.IndexByte(rest[end+1:], '/')
		if end += 1 + next; next < 0 {
			end = len(rest)
		}
		if n, ok = FindTool(rest[:end]); ok || strings.Count(rest[:end], "/") >= maxSlashes {
			break
		}
	}
	if !ok {
		return ToolName{}, "", false
	}
	return n, filepath.Join(root, n.Name), true
}

// maxSlashes is how many slashes a name of the table has at most.
const maxSlashes = 1

// ToolGrants returns the names of the grants, sorted.
func ToolGrants() []string { return []string{GrantAgents, GrantEditors, GrantHome} }

// Opened returns the names at the top of a workspace that a grant opens; nil for a name that is not one of
// [ToolGrants].
func Opened(grant string) []string {
	var list []string
	for _, n := range names {
		if n.Grant == grant {
			list = append(list, n.Name)
		}
	}
	return list
}
