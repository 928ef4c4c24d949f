// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"sync"
)

// A Holding is what the value of an environment variable is to the programs that obey it.
type Holding int

const (
	NoCode      Holding = iota
	ACommand            // a command, which a shell or the program itself takes apart
	APrompt             // text in which a shell performs expansions
	AStartup            // the same, and the result names a script
	AFile               // a file, or a list of files and directories, with code or settings that run code
	SomeOptions         // options, of which some name files with code
	AFunction           // a function that a shell imports
	GitSettings         // settings of git
)

// variables are the environment variables that make programs run, load or interpret what they
// name.
var variables = sync.OnceValue(func() map[string]Holding {
	all := map[string]Holding{
		"BASH_ENV": AStartup, "ENV": AStartup,
		"GIT_CONFIG_PARAMETERS": GitSettings, "GIT_CONFIG_COUNT": GitSettings,
	}
	for kind, names := range map[Holding]string{
		ACommand: `BROWSER EDITOR FCEDIT GIT_ASKPASS GIT_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND
			GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND HGEDITOR JJ_EDITOR KUBE_EDITOR KUBECTL_EXTERNAL_DIFF
			LESSCLOSE LESSOPEN MAKESHELL MANOPT MANPAGER MANROFFOPT BATPAGER BAT_PAGER DELTA_PAGER GH_PAGER
			GH_EDITOR GH_BROWSER PAGER PROMPT_COMMAND PSQL_EDITOR PSQL_PAGER RSYNC_RSH RSYNC_CONNECT_PROG
			SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR SVN_EDITOR SVN_SSH SYSTEMD_EDITOR SYSTEMD_PAGER VISUAL CVS_RSH
			CVSEDITOR TAR_RSH CARGO_BUILD_RUSTC_WRAPPER CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER RUSTC RUSTC_WRAPPER
			RUSTC_WORKSPACE_WRAPPER RUSTDOC CARGO_BUILD_RUSTC CARGO_BUILD_RUSTDOC CMAKE_C_COMPILER_LAUNCHER
			CMAKE_CXX_COMPILER_LAUNCHER CCACHE_PREFIX CCACHE_PREFIX_CPP CONFIG_SHELL FZF_DEFAULT_COMMAND
			FZF_CTRL_T_COMMAND FZF_ALT_C_COMMAND npm_config_editor npm_config_script_shell npm_config_shell
			npm_config_git npm_config_node_gyp DEBUGINFOD_PAGER`,
		APrompt: "PS0 PS1 PS2 PS3 PS4 PROMPT PROMPT2 PROMPT3 PROMPT4 RPROMPT RPROMPT2 RPS1 RPS2 SPROMPT",
		AFile: `LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH LOCPATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH
			DYLD_FRAMEWORK_PATH DYLD_FALLBACK_LIBRARY_PATH DYLD_FALLBACK_FRAMEWORK_PATH GIT_CONFIG
			GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_DIR GIT_EXEC_PATH GIT_TEMPLATE_DIR INPUTRC ZDOTDIR FPATH
			PYTHONSTARTUP PYTHONPATH PYTHONHOME PYTHONBREAKPOINT PYTHONWARNINGS PYTHONPLATLIBDIR PYTHONUSERBASE
			NODE_PATH PERL5LIB PERLLIB PERL5DB RUBYLIB BUNDLE_GEMFILE GEM_PATH GEM_HOME PHPRC PHP_INI_SCAN_DIR
			LUA_INIT LUA_PATH LUA_CPATH R_PROFILE R_PROFILE_USER R_ENVIRON R_ENVIRON_USER JULIA_LOAD_PATH
			JULIA_DEPOT_PATH CLASSPATH TCLLIBPATH AWKPATH AWKLIBPATH AWK_LIBRARY_PATH GAWK_EXTENSIONS
			GUILE_LOAD_PATH EMACSLOADPATH VIMINIT EXINIT GVIMINIT VIMRUNTIME MYVIMRC LESSKEY LESSKEYIN
			LESSKEY_CONTENT SCREENRC MAKEFILES CMAKE_TOOLCHAIN_FILE CMAKE_PROJECT_TOP_LEVEL_INCLUDES GOENV
			GOROOT GOTOOLDIR CARGO_HOME RUSTUP_HOME npm_config_userconfig npm_config_globalconfig
			npm_config_prefix npm_config_node_options NPM_CONFIG_USERCONFIG NPM_CONFIG_GLOBALCONFIG
			PIP_CONFIG_FILE RIPGREP_CONFIG_PATH WGETRC SYSTEM_WGETRC ANSIBLE_CONFIG OPENSSL_CONF OPENSSL_ENGINES
			OPENSSL_MODULES SASL_PATH QT_PLUGIN_PATH GTK_MODULES GTK_PATH GIO_EXTRA_MODULES
			GDK_PIXBUF_MODULE_FILE LIBGL_DRIVERS_PATH VK_ICD_FILENAMES HGRCPATH SVN_CONFIG_DIR COMPILER_PATH
			GCC_EXEC_PREFIX CORECLR_PROFILER_PATH CORECLR_PROFILER DOTNET_STARTUP_HOOKS DOTNET_ADDITIONAL_DEPS`,
		SomeOptions: `NODE_OPTIONS PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS MAVEN_OPTS MAVEN_ARGS
			GRADLE_OPTS SBT_OPTS TAR_OPTIONS GOFLAGS RUSTFLAGS CARGO_ENCODED_RUSTFLAGS RUSTDOCFLAGS MAKEFLAGS
			GNUMAKEFLAGS MFLAGS PYTEST_ADDOPTS PYTEST_PLUGINS BUN_OPTIONS ELIXIR_ERL_OPTIONS ERL_FLAGS
			ERL_AFLAGS ERL_ZFLAGS`,
	} {
		for _, name := range strings.Fields(names) {
			all[name] = kind
		}
	}
	return all
})

// Holds returns what the value of a variable is.
func Holds(name string) Holding {
	if kind := variables()[name]; kind != NoCode {
		return kind
	}
	switch {
	case strings.HasPrefix(name, "BASH_FUNC_"):
		return AFunction
	case strings.HasPrefix(name, "GIT_CONFIG_KEY_"), strings.HasPrefix(name, "GIT_CONFIG_VALUE_"):
		return GitSettings
	case strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"):
		return AFile
	case strings.HasPrefix(name, "CARGO_TARGET_") &&
		(strings.HasSuffix(name, "_RUNNER") || strings.HasSuffix(name, "_LINKER")):
		return ACommand
	}
	return NoCode
}

// RunsCode reports whether an environment variable of this name makes programs run, load or
// interpret something that its value names, or that its value is: a command, a script that shells
// read at their start, a prompt in which they run commands, a function, a library, settings of git.
func RunsCode(name string) bool { return Holds(name) != NoCode }

// Replaces reports whether such a variable does so when a program starts, whatever the program is
// told to do: a script that shells read, a function that has the name of a program, a library,
// settings and options. With one of them a program may be another one than its name says.
func Replaces(name string) bool {
	switch Holds(name) {
	case NoCode, ACommand, APrompt:
		return false
	}
	return true
}

// optionsOf are the programs that take the options in a variable for their own.
var optionsOf = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"NODE_OPTIONS": "node", "PERL5OPT": "perl", "RUBYOPT": "ruby", "TAR_OPTIONS": "tar", "MAKEFLAGS": "make",
		"GNUMAKEFLAGS": "make", "BUN_OPTIONS": "bun",
	}
})

// OptionsOf returns the program that takes the options in a variable for its own; "" is none.
func OptionsOf(variable string) string { return optionsOf()[variable] }
