// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A holding is what the value of an environment variable is to the programs that obey it.
type holding int

const (
	noCode      holding = iota
	aCommand            // a command, which a shell or the program itself takes apart
	aPrompt             // text in which a shell performs expansions
	aStartup            // the same, and the result names a script
	aFile               // a file, or a list of files and directories, with code or settings that run code
	someOptions         // options, of which some name files with code
	aFunction           // a function that a shell imports
	gitSettings         // settings of git
)

// variables are the environment variables that make programs run, load or interpret what they
// name.
var variables = sync.OnceValue(func() map[string]holding {
	all := map[string]holding{
		"BASH_ENV": aStartup, "ENV": aStartup,
		"GIT_CONFIG_PARAMETERS": gitSettings, "GIT_CONFIG_COUNT": gitSettings,
	}
	for kind, names := range map[holding]string{
		aCommand: `BROWSER EDITOR FCEDIT GIT_ASKPASS GIT_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND
			GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND HGEDITOR JJ_EDITOR KUBE_EDITOR KUBECTL_EXTERNAL_DIFF
			LESSCLOSE LESSOPEN MAKESHELL MANOPT MANPAGER MANROFFOPT BATPAGER BAT_PAGER DELTA_PAGER GH_PAGER
			GH_EDITOR GH_BROWSER PAGER PROMPT_COMMAND PSQL_EDITOR PSQL_PAGER RSYNC_RSH RSYNC_CONNECT_PROG
			SSH_ASKPASS SUDO_ASKPASS SUDO_EDITOR SVN_EDITOR SVN_SSH SYSTEMD_EDITOR SYSTEMD_PAGER VISUAL CVS_RSH
			CVSEDITOR TAR_RSH CARGO_BUILD_RUSTC_WRAPPER CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER RUSTC RUSTC_WRAPPER
			RUSTC_WORKSPACE_WRAPPER RUSTDOC CARGO_BUILD_RUSTC CARGO_BUILD_RUSTDOC CMAKE_C_COMPILER_LAUNCHER
			CMAKE_CXX_COMPILER_LAUNCHER CCACHE_PREFIX CCACHE_PREFIX_CPP CONFIG_SHELL FZF_DEFAULT_COMMAND
			FZF_CTRL_T_COMMAND FZF_ALT_C_COMMAND npm_config_editor npm_config_script_shell npm_config_shell
			npm_config_git npm_config_node_gyp DEBUGINFOD_PAGER`,
		aPrompt: "PS0 PS1 PS2 PS3 PS4 PROMPT PROMPT2 PROMPT3 PROMPT4 RPROMPT RPROMPT2 RPS1 RPS2 SPROMPT",
		aFile: `LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH LOCPATH DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH
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
		someOptions: `NODE_OPTIONS PERL5OPT RUBYOPT JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS MAVEN_OPTS MAVEN_ARGS
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

// holds returns what the value of a variable is.
func holds(name string) holding {
	if kind := variables()[name]; kind != noCode {
		return kind
	}
	switch {
	case strings.HasPrefix(name, "BASH_FUNC_"):
		return aFunction
	case strings.HasPrefix(name, "GIT_CONFIG_KEY_"), strings.HasPrefix(name, "GIT_CONFIG_VALUE_"):
		return gitSettings
	case strings.HasPrefix(name, "LD_"), strings.HasPrefix(name, "DYLD_"):
		return aFile
	case strings.HasPrefix(name, "CARGO_TARGET_") && (strings.HasSuffix(name, "_RUNNER") || strings.HasSuffix(name, "_LINKER")):
		return aCommand
	}
	return noCode
}

// RunsCode reports whether an environment variable of this name makes programs run, load or
// interpret something that its value names, or that its value is: a command, a script that shells
// read at their start, a prompt in which they run commands, a function, a library, settings of git.
func RunsCode(name string) bool { return holds(name) != noCode }

// Replaces reports whether such a variable does so when a program starts, whatever the program is
// told to do: a script that shells read, a function that has the name of a program, a library,
// settings and options. With one of them a program may be another one than its name says.
func Replaces(name string) bool {
	switch holds(name) {
	case noCode, aCommand, aPrompt:
		return false
	}
	return true
}

// optionsOf are the programs that take the options in a variable for their own.
var optionsOf = map[string]string{
	"NODE_OPTIONS": "node", "PERL5OPT": "perl", "RUBYOPT": "ruby", "TAR_OPTIONS": "tar", "MAKEFLAGS": "make",
	"GNUMAKEFLAGS": "make", "BUN_OPTIONS": "bun",
}

// assign lists what a script sets by an assignment that runs code.
func (rd *reader) assign(at place, a *syntax.Assign) {
	switch {
	case a.Name == nil && a.Value != nil: // of export, "NAME=VALUE"
		for _, text := range at.scope.texts(a.Value) {
			if name, value, ok := strings.Cut(text, "="); ok {
				rd.value(at, name, value)
			}
		}
	case a.Name == nil:
	case a.Index != nil && (a.Name.Value == "functions" || a.Name.Value == "aliases"): // of zsh
		for _, text := range at.scope.texts(a.Value) {
			rd.nested(at, a.Name.Value, text, nil)
		}
	case a.Value != nil && holds(a.Name.Value) != noCode:
		for _, text := range at.scope.texts(a.Value) {
			rd.value(at, a.Name.Value, text)
		}
	}
}

// value lists what a variable that runs code runs.
func (rd *reader) value(at place, name, text string) {
	in := at.deeper(name)
	switch holds(name) {
	case aCommand:
		in.scope = &scope{outer: at.scope, at: at.offset}
		rd.script(in, text)
	case aPrompt:
		rd.prompt(in, text)
		if name == "PS4" && strings.Contains(text, Gap) {
			rd.unknown(at, DynamicScript)
		}
	case aStartup:
		rd.prompt(in, text)
		if dynamic(text) {
			rd.unknown(at, DynamicScript)
		} else if text != "" {
			rd.startup(in, text)
		}
	case aFile:
		for _, f := range strings.Split(text, ":") {
			if f != "" {
				rd.file(File{Names: []string{f}})
			}
		}
	case someOptions:
		if program := optionsOf[name]; program != "" {
			rd.through(in, program, append([]string{program}, strings.Fields(text)...))
		}
	case aFunction:
		rd.nested(in, name, "f "+text, nil)
	case gitSettings:
		rd.gitVariable(in, name, text)
	}
}

// startup lists what shells read at their start, where that is a descriptor.
func (rd *reader) startup(at place, name string) {
	if in, ok := at.descriptor(name); ok {
		at.stdin = in
		rd.input(at, at.through, nil)
		return
	}
	rd.file(File{Names: []string{name}})
}

// prompt lists the commands in a text in which a shell performs expansions.
func (rd *reader) prompt(at place, text string) {
	for _, t := range unique([]string{text, ansiC(text)}) {
		if !strings.ContainsAny(t, "$`") {
			continue
		}
		end := "_"
		for strings.Contains(t, end) {
			end += "_"
		}
		sh := parse(": <<" + end + "\n" + strings.ReplaceAll(t, Rest, Gap) + "\n" + end + "\n")
		if sh.why != "" {
			rd.unknown(at, sh.why)
		}
		if sh.file == nil {
			continue
		}
		in := at
		in.scope = &scope{outer: at.scope, at: at.offset}
		for _, s := range sh.file.Stmts {
			for _, r := range s.Redirs {
				rd.inner(in, r)
			}
		}
	}
}

// prompted lists the commands of a variable that is expanded as a prompt.
func (rd *reader) prompted(at place, pe *syntax.ParamExp) {
	if pe.Exp == nil || pe.Exp.Op != syntax.OtherParamOps || pe.Param == nil {
		return
	}
	if word := pe.Exp.Word; word == nil || literal(word) != "P" {
		return
	}
	values, from := at.scope.named(pe)
	if pe.Excl || from == computed {
		rd.unknown(at, DynamicScript)
	}
	for _, v := range values {
		for _, text := range v.words {
			if dynamic(text) {
				rd.unknown(at, DynamicScript)
			}
			rd.prompt(at.deeper("@P"), text)
		}
	}
}

// variables lists what variables run that a script sets otherwise than by an assignment.
func (rd *reader) variables(at place) {
	for _, name := range slices.Sorted(maps.Keys(at.scope.vars)) {
		if holds(name) == noCode {
			continue
		}
		for _, a := range at.scope.vars[name].assigned {
			if a.unknown && a.word == nil && !a.list || a.unknown && a.list && !a.each {
				rd.unknown(at, DynamicScript)
			}
			for _, w := range a.words {
				for _, text := range at.scope.texts(w) {
					rd.value(at, name, text)
				}
			}
			for _, text := range a.fixed {
				rd.value(at, name, text)
			}
		}
	}
}
