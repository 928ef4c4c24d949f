// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"slices"
	"strings"
	"sync"
)

// An Option is an option whose value is a script, wherever it stands.
type Option struct {
	short string // letters
	long  []string
	glued bool // the value stands in the same word, or there is none
	Kind  Kind
}

// A Kind is what the value of an option is.
type Kind int

const (
	ScriptValue Kind = iota
	SSHSetting       // a line of the configuration of ssh
	TarAction        // exec=SCRIPT, or a script
	GitSetting       // KEY=VALUE
	CodeFile         // the name of a file with settings or code
	SomeCode         // a text in another language
	AptSetting       // NAME=VALUE
	ApartValue       // a script that runs on another machine
)

// options are such options, by program.
var options = sync.OnceValue(func() map[string][]Option {
	script := func(short string, long ...string) Option { return Option{short: short, long: long} }
	ssh := []Option{{short: "o", Kind: SSHSetting}, {short: "F", Kind: CodeFile},
		{short: "I", Kind: CodeFile}}
	apt := []Option{{short: "o", long: []string{"option"}, Kind: AptSetting}}
	pack := []Option{script("", "upload-pack", "exec")}
	return map[string][]Option{
		"ack":               {script("", "pager")},
		"ag":                {script("", "pager")},
		"at":                {{short: "f", Kind: CodeFile}},
		"apt":               apt,
		"apt-get":           apt,
		"aws":               {{long: []string{"command", "parameters"}, Kind: ApartValue}},
		"bat":               {script("", "pager")},
		"bazel":             {script("", "run_under")},
		"c++":               {script("", "wrapper")},
		"cc":                {script("", "wrapper")},
		"clang":             {script("", "wrapper")},
		"cargo":             {{long: []string{"config"}, Kind: CodeFile}},
		"compgen":           {script("CW")},
		"complete":          {script("CW")},
		"ctest":             {script("", "test-command")},
		"dpkg":              {script("", "pre-invoke", "post-invoke", "status-logger")},
		"doppler":           {script("", "command")},
		"emacs":             {{short: "l", long: []string{"load", "script"}, Kind: CodeFile}, {short: "f", long: []string{"eval", "execute", "funcall"}, Kind: SomeCode}},
		"env":               {script("S", "split-string")},
		"expect":            {{short: "c", Kind: SomeCode}, {short: "f", Kind: CodeFile}},
		"flatpak":           {script("", "command")},
		"fly":               {{short: "C", long: []string{"command"}, Kind: ApartValue}},
		"flyctl":            {{short: "C", long: []string{"command"}, Kind: ApartValue}},
		"fzf":               {script("", "preview", "bind", "tmux", "become", "with-shell")},
		"g++":               {script("", "wrapper")},
		"gcc":               {script("", "wrapper")},
		"gcloud":            {{long: []string{"command"}, Kind: ApartValue}},
		"git archive":       {script("", "exec")},
		"git clone":         {script("u", "upload-pack"), {short: "c", long: []string{"config"}, Kind: GitSetting}, {long: []string{"template"}, Kind: CodeFile}},
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
		"git init":          {{long: []string{"template"}, Kind: CodeFile}},
		"go":                {script("", "toolexec", "exec", "vettool")},
		"infisical":         {script("", "command")},
		"install":           {script("", "strip-program")},
		"make":              {script("E", "eval")},
		"man":               {script("PH", "pager", "html", "browser")},
		"mise":              {script("c", "command")},
		"mapfile":           {script("C")},
		"ncat":              {script("ec", "exec", "sh-exec", "lua-exec")},
		"nc":                {script("ec")},
		"netcat":            {script("ec")},
		"pip":               {script("", "editor")},
		"pip3":              {script("", "editor")},
		"rake":              {{short: "epE", long: []string{"execute", "execute-print", "execute-continue"}, Kind: SomeCode}},
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
		"screen":            {script("X"), {short: "c", Kind: CodeFile}},
		"script":            {script("c", "command")},
		"sftp":              {script("SD"), ssh[0], ssh[1], {short: "b", Kind: CodeFile}},
		"sg":                {script("c", "command")},
		"sort":              {script("", "compress-program")},
		"split":             {script("", "filter")},
		"sqlite3":           {{long: []string{"init"}, Kind: CodeFile}},
		"ssh":               ssh,
		"start-stop-daemon": {script("xa", "exec", "startas")},
		"su":                {script("c", "command", "session-command")},
		"tar":               {script("IF", "to-command", "use-compress-program", "info-script", "new-volume-script", "rsh-command", "rmt-command"), {long: []string{"checkpoint-action"}, Kind: TarAction}},
		"tmux":              {{short: "f", Kind: CodeFile}},
		"tcpdump":           {script("z")},
		"vagrant":           {script("c", "command")},
		"wget":              {script("", "use-askpass")},
		"zip":               {script("", "unzip-command"), {long: []string{"TT"}}},
	}
})

// sshCommands are settings of ssh that run a command on this machine.
var sshCommands = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"proxycommand": true, "localcommand": true, "knownhostscommand": true, "xauthlocation": true,
	}
})

// Options returns the options of a program, or of a command of git, whose values run something.
func Options(name string) []Option { return options()[name] }

// A Value is that of an option on a command line.
type Value struct {
	Text  string
	After []string // the words behind it, which may be its arguments
}

// Values returns the values of an option in the words of a command.
func (o *Option) Values(args []string) []Value {
	var all []Value
	for i, w := range args[1:] {
		if w == "--" && o.Kind != TarAction {
			break
		}
		text, found, inline := o.value(w)
		if !found || !inline && o.glued {
			continue
		}
		after := args[i+2:]
		if !inline && len(after) > 0 {
			text, after = after[0], after[1:]
		}
		all = append(all, Value{text, after})
	}
	return all
}

// value returns the value in a word. Found reports whether the word has the option, inline whether
// the value is in it.
func (o *Option) value(w string) (value string, found, inline bool) {
	if strings.HasPrefix(w, "--") {
		w, value, inline = strings.Cut(w, "=")
		found = len(w) > 3 && slices.ContainsFunc(o.long,
			func(l string) bool { return strings.HasPrefix(l, w[2:]) })
	} else if len(w) > 1 && w[0] == '-' {
		if letter := strings.IndexAny(w[1:], o.short); letter >= 0 && o.short != "" {
			value, found = w[letter+2:], true
			inline = value != ""
		} else if slices.Contains(o.long, w[1:]) && len(w) > 2 {
			found = true // of programs that write long options with one dash
		} else if key, v, ok := strings.Cut(w[1:], "="); ok && slices.Contains(o.long, key) {
			value, found, inline = v, true, true
		}
	}
	return value, found, inline
}

// SSHCommand reports whether a setting of ssh, in lower case, is a command that runs on this machine.
func SSHCommand(key string) bool { return sshCommands()[key] }

// AptCommand reports whether a setting of apt, in lower case, is a command.
func AptCommand(key string) bool {
	return strings.Contains(key, "invoke") || strings.Contains(key, "install-pkgs") ||
		strings.Contains(key, "autodetect") || strings.HasPrefix(key, "dir::bin::")
}

// SSHFile reports whether a setting of ssh, in lower case, is a file with settings or code.
func SSHFile(key string) bool {
	return key == "include" || key == "pkcs11provider" || key == "securitykeyprovider"
}

// OldTar returns the scripts that tar runs by options that are written without a dash: their values
// are the words behind, in the order of the letters.
func OldTar(args []string) []string {
	if len(args) < 2 || strings.HasPrefix(args[1], "-") {
		return nil
	}
	var all []string
	next := 2
	for i := range len(args[1]) {
		c := args[1][i]
		if strings.IndexByte("bCfFgHIKLNTVX", c) < 0 || next >= len(args) {
			continue
		}
		if c == 'I' || c == 'F' {
			all = append(all, args[next])
		}
		next++
	}
	return all
}

// Socat returns the scripts in addresses of socat.
func Socat(addresses []string) []string {
	var all []string
	for _, w := range addresses {
		for _, part := range strings.Split(w, "!!") {
			kind, text, ok := strings.Cut(part, ":")
			switch strings.ToLower(kind) {
			case "exec", "system", "shell", "exec1", "shell1":
				if ok {
					command, _, _ := strings.Cut(text, ",")
					all = append(all, text, command, strings.Trim(command, `'"`))
				}
			}
		}
	}
	return all
}

// XargsMark returns the mark for which xargs puts a line of its input; "" is none. Split reports
// whether it takes the words between blanks.
func XargsMark(args []string) (mark string, split bool) {
	split = true
	for i, w := range args[1:] {
		if strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "0da") ||
			strings.HasPrefix(w, "--n") || strings.HasPrefix(w, "--d") || strings.HasPrefix(w, "--a") {
			split = false // the words are not those between blanks
		}
		switch {
		case w == "-I" && i+2 < len(args):
			mark = args[i+2]
		case strings.HasPrefix(w, "-I") || strings.HasPrefix(w, "-i"):
			mark = w[2:]
		case strings.HasPrefix(w, "--replace"):
			mark = strings.TrimPrefix(strings.TrimPrefix(w, "--replace"), "=")
		}
		if mark == "" && (w == "-i" || w == "--replace") {
			mark = "{}"
		}
	}
	return mark, split
}
