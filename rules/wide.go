// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/command/programs"
	"github.com/sallyport-dev/sallyport/internal/command/script"
)

// alone are programs that are told by their words what to do: without a word that says it, a prefix
// allows anything. The words are flags that say nothing either; "*" is any word that is an option.
var alone = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"env": "-i -S --", "sudo": "-n -E -u --", "doas": "", "su": "-c", "xargs": "", "exec": "", "eval": "", "command": "",
		"nice": "", "nohup": "", "time": "", "timeout": "", "git": "", "rm": "-r -f -rf -fr", "ssh": "", "find": "",
		"osascript": "-e", "cmd": "/c /C /k", "powershell": powerFlags, "pwsh": powerFlags,
		"npm": "run run-script exec x", "pnpm": "run exec dlx", "yarn": "run exec dlx", "bun": "run x -e --eval", "deno": "eval run task",
		"npx": "", "bunx": "", "uvx": "", "uv": "run tool", "just": "", "task": "", "docker": "run exec compose container", "podman": "run exec container",
		"docker-compose": "run exec", "kubectl": "exec run", "tmux": "*", "screen": "*", "at": "", "batch": "", "script": "*", "expect": "-c", "socat": "*",
		"sallyport": "run exec *", "make": "-f --file --eval -C", "busybox": "", "toybox": "", "watch": "*", "parallel": "*", "entr": "*", "nsenter": "*",
	}
})

const powerFlags = "-Command -command -c -NoProfile -nologo -EncodedCommand -File"

// further are words that may follow a prefix: the command itself, and options or operands that
// launchers take before it.
const further = "sallyport-further-words"

var furthers = [][]string{
	{further, "x"}, {"x", further, "x"}, {"x", "x", further, "x"}, {"--", further, "x"}, {"x", "--", further, "x"},
}

// furthersOf are those that only some prefixes take: behind a word, the last one or any.
var furthersOf = []struct {
	last, any string
	words     []string
}{
	{any: "su runuser sg busybox toybox", words: []string{"-c", further}},
	{any: "su runuser", words: []string{"x", "-c", further}},
	{last: "-c", words: []string{"alias.x=!" + further, "x"}},
	{last: "-o", words: []string{"ProxyCommand=" + further, "x"}}, {last: "-o", words: []string{"DPkg::Pre-Invoke::=" + further}},
	{last: "-E", words: []string{"env", further}},
	{any: "socat", words: []string{"EXEC:" + further}}, {any: "socat", words: []string{"-", "EXEC:" + further}},
}

// suffixes are what may follow a prefix.
func suffixes(words []string) [][]string {
	all := slices.Clip(furthers)
	last := path.Base(words[len(words)-1])
	if programs.IsShell(last) {
		all = append(all, []string{"-c", further})
	}
	for _, f := range furthersOf {
		if f.last != "" && f.last == last ||
			slices.ContainsFunc(words, func(w string) bool {
				return f.any != "" &&
					slices.Contains(strings.Fields(f.any), w)
			}) {
			all = append(all, f.words)
		}
	}
	return all
}

// wide reports whether a prefix, which is not empty, allows any command: further words behind it
// are a command, a script, or code that a program runs. Words that options of the prefix do not
// ask for do not count: "tar" may be told to run programs, and is not wide.
func wide(prefix []string) bool {
	program := strings.TrimSuffix(path.Base(strings.ReplaceAll(prefix[0], `\`, "/")), ".exe")
	words := append([]string{program}, prefix[1:]...)
	if flags, ok := alone()[program]; ok && !slices.ContainsFunc(words[1:], func(w string) bool {
		return !slices.Contains(strings.Fields(flags), w) &&
			(!strings.Contains(flags, "*") || !strings.HasPrefix(w, "-"))
	}) {
		return true
	}
	if program == "git" {
		if starts, _, _ := programs.Git.Starts(words); len(starts) == 0 {
			return true // options alone
		}
	}
	for _, more := range suffixes(words) {
		r := script.Read(append(slices.Clip(words), more...))
		if runsFurther(r, more) {
			return true
		}
	}
	return false
}

// runsFurther reports whether a reading runs what the further words say.
func runsFurther(r *script.Reading, more []string) bool {
	is := func(text string) bool { return strings.TrimSpace(text) == further }
	for _, u := range r.Uses[min(1, len(r.Uses)):] {
		if is(u.Args[0]) {
			return true
		}
	}
	return slices.ContainsFunc(r.Codes(), is) ||
		more[0] == further && slices.ContainsFunc(r.Files, func(f script.File) bool {
			return !f.Maybe && slices.ContainsFunc(f.Names,
				func(n string) bool { return strings.HasPrefix(n, further) })
		})
}
