// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/tty"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// runVerb runs one command. It returns the command's exit code as an exitCode.
func runVerb(ctx context.Context, env *Env, args []string) error {
	var o runOptions
	words, err := parse(runFlags(&o), args)
	if o.help && err == nil {
		return env.put([]byte(runUsage()))
	}
	if err == nil {
		err = o.check(words)
	}
	report := newReport(env, &o, words)
	if err != nil {
		return report.failed(err)
	}
	console, err := o.console(env)
	if err != nil {
		return report.failed(err)
	}
	defer console.close()
	cmd, err := o.command(env, words)
	if err != nil {
		return report.failed(err)
	}
	for _, name := range o.absent(env) {
		report.note("-e " + name + ": it is not set here, so the command does not get it")
	}
	policy, err := o.policy(cmd.Dir)
	if err != nil {
		return report.failed(err)
	}
	report.warn(policy, cmd.Dir)
	return execute(ctx, &sallyport.Runner{Policy: policy}, cmd, report, console)
}

// execute runs cmd, reports how it ended, and closes the Runner.
func execute(ctx context.Context, runner *sallyport.Runner, cmd *sallyport.Cmd, report *report, console *console) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	report.attach(runner, cmd, cancel)
	signals := forwardSignals(console)
	defer signals.stop(report.env.Last)
	console.attach(cmd, signals)
	cmd.Signals = signals.channel()
	cmd.Ready = signals.ready
	if err := console.begin(); err != nil {
		_ = runner.Close() // nothing has run, and the error above it says more
		return report.failed(err)
	}
	start := time.Now()
	res, err := runner.Run(ctx, cmd)
	console.close()
	about := report.about(res, err)
	if about.Run == "" {
		about.Run = report.identity()
	}
	recording := report.record(about, start)
	if closed := runner.Close(); err == nil && closed != nil {
		report.note("cleaning up: " + plain(closed))
	}
	recording.wait(report)
	return report.done(res, err, about)
}

// command returns the command that the flags describe.
func (o *runOptions) command(env *Env, words []string) (*sallyport.Cmd, error) {
	dir, err := o.folder(env)
	if err != nil {
		return nil, err
	}
	cmd := &sallyport.Cmd{
		Args: words, Script: o.script, Shell: o.shell, Login: o.login,
		Dir: dir, Env: env.Environ, EnvPolicy: o.environment(env),
		Timeout: o.timeout, Grace: o.grace, Retention: o.retention(),
		Allow: o.allowed, Level: o.level, NoCaches: o.noCaches, NoObserver: o.blind,
		Resources: o.resources,
	}
	if env.Environ == nil {
		cmd.Env = []string{} // nil would be the environment of this process
	}
	if o.hasGrace && o.grace == 0 {
		cmd.Grace = -1
	}
	if cmd.Tmp, err = o.tmpFolder(); err != nil {
		return nil, err
	}
	if err := o.ownTmp(dir); err != nil {
		return nil, err
	}
	if env.Stdin != nil {
		cmd.Stdin = env.Stdin
	}
	return cmd, nil
}

// limits returns how much of the output is kept.
func (o *runOptions) retention() sallyport.Retention {
	switch {
	case !o.hasMaxOutput:
		return sallyport.Retention{}
	case o.maxOutput == 0:
		return sallyport.Retention{Bytes: -1} // 0 would be the default
	}
	return sallyport.Retention{Bytes: o.maxOutput}
}

// folder returns the working directory, absolute and there.
func (o *runOptions) folder(env *Env) (string, error) {
	if filepath.IsAbs(o.dir) {
		return o.dir, mustBeFolder("-C", o.dir)
	}
	if env.Dir == "" {
		return "", sentence("the current directory is not there any more; go to one that exists, or name one with -C")
	}
	dir := filepath.Join(env.Dir, o.dir)
	if o.dir == "" {
		return dir, nil
	}
	return dir, mustBeFolder("-C", dir)
}

// tmpFolder returns what Cmd.Tmp takes.
func (o *runOptions) tmpFolder() (string, error) {
	switch o.tmp {
	case "", "private", "host":
		return o.tmp, nil
	}
	if !filepath.IsAbs(o.tmp) {
		return "", usage("--tmp: %s is none of private, host and an absolute path", quote(o.tmp))
	}
	return o.tmp, mustBeFolder("--tmp", o.tmp)
}

// mustBeFolder returns what is wrong with a folder that a flag names.
func mustBeFolder(flag, dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return sentence("%s: there is no folder %s", flag, dir)
	case errors.Is(err, syscall.ENOTDIR):
		return sentence("%s: part of %s is a file, not a folder", flag, dir)
	case err != nil:
		return sentence("%s: %s cannot be used: %v", flag, dir, cause(err))
	case !info.IsDir():
		return sentence("%s: %s is a file, not a folder", flag, dir)
	}
	return nil
}

// environment returns what the command gets of our variables.
func (o *runOptions) environment(env *Env) sallyport.EnvPolicy {
	var policy sallyport.EnvPolicy
	if tty.Is(env.Stdin) && tty.Is(env.Stdout) {
		policy.Inherit = sallyport.InheritAll
	}
	switch o.inherit {
	case "all":
		policy.Inherit = sallyport.InheritAll
	case "core":
		policy.Inherit = sallyport.InheritCore
	case "none":
		policy.Inherit = sallyport.InheritNone
	}
	if o.ownTerminal(env) {
		policy.Named = append(policy.Named, "TERM")
	}
	for _, v := range o.variables {
		name, value, set := strings.Cut(v, "=")
		// The last flag for a name counts.
		delete(policy.Set, name)
		policy.Named = slices.DeleteFunc(policy.Named, func(n string) bool { return n == name })
		switch {
		case !set:
			policy.Named = append(policy.Named, name)
		case policy.Set == nil:
			policy.Set = map[string]string{name: value}
		default:
			policy.Set[name] = value
		}
	}
	return policy
}

// absent returns the names of -e K that are not set here.
func (o *runOptions) absent(env *Env) []string {
	var names []string
	for _, v := range o.variables {
		if !strings.Contains(v, "=") && !slices.ContainsFunc(env.Environ, func(e string) bool { return strings.HasPrefix(e, v+"=") }) {
			names = append(names, v)
		}
	}
	return names
}

// policy returns what a command in dir may touch.
func (o *runOptions) policy(dir string) (sandbox.Policy, error) {
	policy := o.preset()
	switch o.network {
	case "none":
		policy = policy.WithNetwork(sandbox.NetworkNone)
	case "host":
		policy = policy.WithNetwork(sandbox.NetworkHost)
	case "proxy":
		return policy, &sentenceError{
			code:  codeUnavailable,
			words: "--net proxy: the proxy is not available in this version",
			mend:  "use --net none, or --net host for the whole network",
		}
	}
	entries, err := o.entries(dir, policy.Name() == sandbox.FullAccess().Name())
	if err != nil {
		return policy, err
	}
	policy = policy.WithEntries(entries...)
	for _, name := range o.grants {
		policy = policy.With(sandbox.Grant{Name: name})
	}
	return policy, nil
}

// ownTmp refuses flags that mean the host's /tmp where the command gets one of its
// own: what it wrote there would be gone, and what it should read would not be
// there.
func (o *runOptions) ownTmp(dir string) error {
	if o.tmp == "host" || o.preset().Mode() == sandbox.Full {
		return nil
	}
	tmp := realPath("/tmp")
	for flag, names := range map[string][]string{"--rw": o.writable, "--ro": o.readable} {
		for _, name := range names {
			if realPath(name) == tmp {
				return usage("%s: the command gets a /tmp of its own in place of %s; add --tmp host to show the host's, or name a folder below it", flag, name)
			}
		}
	}
	if o.tmp == "" && realPath(dir) == tmp {
		return sentence("the workspace is %s, and the command would get a private one in its place, so nothing that it writes would stay; use --tmp host for the host's, --tmp private if that is meant, or a folder below it", dir)
	}
	return nil
}

// realPath resolves symbolic links, or returns the name when it cannot.
func realPath(name string) string {
	if at, err := filepath.EvalSymlinks(name); err == nil {
		return at
	}
	return name
}

// entries returns the entries of --rw, --ro and --deny. With full access, --rw
// opens nothing that is not open.
func (o *runOptions) entries(dir string, full bool) ([]sandbox.Entry, error) {
	var entries []sandbox.Entry
	for _, name := range o.writable {
		if err := mustBeThere("--rw", name, dir); err != nil {
			return nil, err
		}
		if !full {
			entries = append(entries, sandbox.PathEntry(name, sandbox.LevelWrite))
		}
	}
	for _, name := range o.readable {
		if err := mustBeThere("--ro", name, dir); err != nil {
			return nil, err
		}
		entries = append(entries, sandbox.PathEntry(name, sandbox.LevelRead))
	}
	for _, name := range o.denied {
		entries = append(entries, denyEntries(name, dir)...)
	}
	return entries, nil
}

// denyEntries returns the entries for one --deny. A name that has the marks of a
// pattern and is a file as well is both.
func denyEntries(name, dir string) []sandbox.Entry {
	if !strings.ContainsAny(name, "*?[{") {
		return []sandbox.Entry{sandbox.PathEntry(name, sandbox.LevelDeny)}
	}
	entries := []sandbox.Entry{sandbox.GlobEntry(name)}
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	if _, err := os.Lstat(name); err == nil {
		entries = append(entries, sandbox.PathEntry(name, sandbox.LevelDeny))
	}
	return entries
}

// mustBeThere returns what is wrong with a path that a flag opens. A relative one
// is refused, because with -C it could be meant below either folder; dir is
// the one that the message proposes.
func mustBeThere(flag, name, dir string) error {
	if !filepath.IsAbs(name) {
		return usage("%s: %s is not an absolute path; write %s %s", flag, quote(name), flag, quote(filepath.Join(dir, name)))
	}
	switch _, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return sentence("%s: %s does not exist; create it first", flag, name)
	case err != nil:
		return sentence("%s: %s cannot be used: %v", flag, name, cause(err))
	}
	return nil
}
