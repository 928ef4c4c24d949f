// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval/terminal"
	"github.com/sallyport-dev/sallyport/internal/agents/hooks"
	"github.com/sallyport-dev/sallyport/internal/agents/install"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/strict"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/rules"
)

const hookHelp = `Answer the hook of an agent that is about to run a command.

  sallyport hook claude|codex|cursor|gemini [--mode MODE] [FLAGS of run]
  sallyport hook doctor
  sallyport hook install|uninstall AGENT     (sallyport hook install --help)

The agent writes an event on standard input and obeys the answer on standard
output. The command is judged as by sallyport check --explain with the same
flags, in the directory of the event: what is forbidden is denied, what needs
approval is asked about, and everything else is allowed. With --mode contain
the agent runs it by sallyport run with these flags.

The exit code is 0 if there is an answer, and 2 for every failure, which blocks
the command. doctor lists the agents that it finds, asks their hooks about a
command, and exits with 1 if a hook is missing or does not work.
`

// codeBlock is the exit code by which a hook blocks in every agent that reads exit codes. With others some of
// them run the command.
const codeBlock = 2

// hookTime is how long a hook takes for everything: an agent that waits too long runs the command. On a busy
// machine a long script takes seconds, and half of what installed entries allow is left for the start.
const hookTime = install.HookSeconds * time.Second / 2

// Modes of a hook.
const (
	modeContain = "contain"
	modeJudge   = "judge"
)

// A hookVerb is a word after "hook".
type hookVerb struct {
	name, about string
	flags       func(o *options) []syntax.Flag
	// run gets the words that are no flags of its own.
	run func(ctx context.Context, env *Env, o *options, words []string) error
	// misused is the exit code for words that are not valid.
	misused int
}

// hookVerbs returns the words after "hook", in the order of their completion.
func hookVerbs() (verbs []hookVerb) {
	for _, a := range hooks.Agents() {
		answer := func(ctx context.Context, env *Env, o *options, words []string) error {
			return hookAnswer(ctx, env, o, a, words)
		}
		verbs = append(verbs, hookVerb{a.Name, "answer a hook of " + a.Name, answerFlags, answer, codeBlock})
	}
	return append(verbs, hookVerb{"doctor", "check the hooks of the agents of this user", noFlags, hookDoctor,
		explain.CodeFailed})
}

// findHookVerb returns the verb with a name, or nil.
func findHookVerb(name string) *hookVerb {
	for _, v := range hookVerbs() {
		if v.name == name {
			return &v
		}
	}
	return nil
}

func hookFlags(o *options) []syntax.Flag {
	return []syntax.Flag{
		{Long: "mode", Value: "MODE", Words: []string{modeContain, modeJudge},
			Set: syntax.SetChosen(&o.mode, []string{modeContain, modeJudge}),
			Help: "contain (what is allowed runs by sallyport run)\n" +
				"or judge (it runs as it is) (default contain)"},
	}
}

// notOfHooks are the flags of run that are about one command, or about another machine.
var notOfHooks = []string{"command", "prefix-rule", "justification", "help", "remote", "remote-token-file",
	"remote-tls-cert", "remote-tls-key", "remote-tls-ca", "fd", "approved"}

// answerFlags are those of an agent's hook.
func answerFlags(o *options) []syntax.Flag {
	return append(slices.DeleteFunc(o.run.Flags(),
		func(f syntax.Flag) bool { return slices.Contains(notOfHooks, f.Long) }), hookFlags(o)[0])
}

// hookWords completes the words of hook.
func hookWords(before []string) (syntax.FlagKind, []candidate) {
	var all []candidate
	switch {
	case len(before) == 0:
		for _, v := range hookVerbs() {
			all = append(all, candidate{v.name, v.about})
		}
		_, verbs := installWords(before)
		all = append(all, verbs...)
	case before[len(before)-1] == "--mode":
		all = []candidate{{modeContain}, {modeJudge}}
	}
	return syntax.Words, all
}

// flagsOfHook are the flags after words.
func flagsOfHook(before []string) []syntax.Flag {
	o := new(options)
	if len(before) > 0 {
		if v := findHookVerb(before[0]); v != nil {
			return v.flags(o)
		}
	}
	return hookFlags(o)
}

func hookCommand(ctx context.Context, env *Env, o *options, words []string) error {
	misused := func(code int, err error) error {
		return explain.ErrorWith(code, sallyport.EndFailed, explain.OneLine(err), "")
	}
	if len(words) == 0 {
		return misused(codeBlock, errors.New("no agent given; try sallyport hook claude"))
	}
	v := findHookVerb(words[0])
	if v == nil {
		_, all := hookWords(nil)
		var names []string
		for _, c := range all {
			names = append(names, c[0])
		}
		return misused(codeBlock, fmt.Errorf("unknown command hook %s%s", syntax.QuoteFlag(words[0]),
			syntax.NearestClause(words[0], names, "see sallyport help hook")))
	}
	help := syntax.Flag{Long: "help", Short: 'h', Set: syntax.SetOn(&o.help)}
	rest, err := syntax.ParseFlagsAnywhere(append(v.flags(o), help), words[1:])
	switch {
	case err != nil:
		return misused(v.misused, err)
	case o.help:
		c, err := findCommand("hook")
		if err != nil {
			return err
		}
		return env.print(c.usage())
	}
	o.given = words[1:]
	return v.run(ctx, env, o, rest)
}

// A hook answers one event of an agent.
type hook struct {
	env   *Env
	agent *hooks.Agent
	run   *args.Options // what the flags say
	flags []string      // the flags of run, as they were given
	mode  string
}

// hookAnswer reads an event and prints the answer. Every error has the exit code that blocks.
func hookAnswer(ctx context.Context, env *Env, o *options, agent *hooks.Agent, words []string) error {
	h := &hook{env: env, agent: agent, run: &o.run, mode: o.mode}
	var answer []byte
	var call *hooks.Call
	var err error
	deadline := time.Now().Add(hookTime)
	if len(words) > 0 {
		err = fmt.Errorf("unexpected argument %s; see sallyport help hook", syntax.QuoteFlag(words[0]))
	} else {
		call, err = within(deadline, "the event does not end", h.read)
	}
	if err == nil && call != nil { // nil is no opinion
		answer, err = within(deadline, "the judgement took too long", func() ([]byte, error) {
			h.flags = runFlagsOf(o)
			return h.answer(ctx, call)
		})
	}
	if err == nil && len(answer) > 0 {
		err = env.write(string(answer))
	}
	if err != nil {
		return explain.ErrorWith(codeBlock, sallyport.EndFailed, "blocked: "+
			strings.TrimPrefix(explain.Classify(err).String(), "sallyport: "), "")
	}
	return nil
}

// runFlagsOf are the flags of run among the words of a hook, which are valid.
func runFlagsOf(o *options) (words []string) {
	flags := answerFlags(new(options))
	for rest := o.given; len(rest) > 0; {
		f, inline := flagOf(flags, rest[0])
		n := 1
		if f != nil && f.Value != "" && !inline {
			n = 2
		}
		if rest[0] != "--" && (f == nil || f.Long != "mode") {
			words = append(words, rest[:n]...)
		}
		rest = rest[n:]
	}
	return words
}

// within returns what f does, or an error if that takes until the deadline, or f panics. Then f goes on.
func within[T any](deadline time.Time, late string, f func() (T, error)) (T, error) {
	type result struct {
		out T
		err error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		err := strict.Call("the hook", func() (err error) { r.out, err = f(); return err })
		done <- result{r.out, err}
	}()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case r := <-done:
		return r.out, r.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("%s (%s)", late, hookTime)
	}
}

// read reads the event.
func (h *hook) read() (*hooks.Call, error) {
	if h.env.Stdin == nil {
		return nil, errors.New("no event: standard input is closed")
	}
	event, err := io.ReadAll(io.LimitReader(h.env.Stdin, hooks.MaxEvent+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read the event: %w", explain.SystemCause(err))
	case len(event) > hooks.MaxEvent:
		return nil, fmt.Errorf("the event has more than %d bytes", hooks.MaxEvent)
	}
	return h.agent.Decode(event)
}

// answer judges the command of an event.
func (h *hook) answer(ctx context.Context, call *hooks.Call) ([]byte, error) {
	if strings.ContainsRune(call.Command, 0) {
		return call.Encode(hooks.Answer{Reason: "sallyport: the command has a NUL character"}), nil
	}
	in := &Env{Env: h.env.Env, Name: h.env.Name}
	// questions are the agent's: a person is reached by it
	in.Stdin, in.Asks = nil, true
	if in.Dir = call.Dir; !filepath.IsAbs(in.Dir) && h.env.Dir != "" {
		in.Dir = filepath.Join(h.env.Dir, call.Dir)
	}
	if outside := apart(in.Dir, call.Roots, h.env.Dir); outside != "" {
		return call.Encode(hooks.Answer{Reason: "sallyport: it would run in " + text.Word(outside) +
			", outside of the workspace; run it there, and change the directory within the command"}), nil
	}
	h.run.Cmd.Script, h.run.HasScript = call.Command, true
	dir, e, err := h.run.Settings(&in.Env)
	if err != nil {
		return nil, err
	}
	program := h.program()
	run, words := h.run, []string(nil)
	runs := slices.Concat(h.flags, []string{"-c", call.Command})
	inner, innerWords, ie, contained := h.contained(in, program, call.Command, dir, e)
	if contained {
		h.run.Close()
		run, words, e = inner, innerWords, ie
		_, runs = hooks.Contained(call.Command)
		if dir, err = run.Directory(&in.Env); err != nil {
			return nil, err
		}
	}
	q := explain.Question{Command: words, Layers: e.Rules(), Brief: true,
		Host: rules.Host{Dir: dir, Home: in.Variable("HOME")}}
	x, err := run.Explain(ctx, &in.Env, q, e)
	if err != nil {
		return nil, err
	}
	a := h.decide(x)
	rewrites, mark := h.mode != modeJudge && !contained, []string(nil)
	switch {
	case a.Decision == hooks.Ask:
		mark = h.ask(&a, call, x, runs)
	case a.Decision == hooks.Deny:
		rewrites = false
	case !rewrites:
		a.Decision, a.Reason = hooks.Allow, "sallyport: allowed"
	}
	if rewrites || mark != nil {
		a.Command = hooks.Wrap(program, slices.Concat(mark, runs))
	}
	return call.Encode(a), nil
}

// ask adds to an answer what a person is shown. It returns the words that have a run count as approved, once,
// in front of its words; nil where it does not: all of the question has to be shown, to a person.
func (h *hook) ask(a *hooks.Answer, call *hooks.Call, x *explain.Explanation, words []string) []string {
	const most = 10_000 // bytes of a question
	a.Instead = instead(x)
	if x.Asked == nil {
		return nil
	}
	why := ""
	if a.Question = terminal.Text(x.Asked); len(a.Question) > most {
		a.Question = strings.ToValidUTF8(a.Question[:most], "") + "...\n"
		why = "the question is too long to be shown"
	}
	switch {
	case h.mode == modeJudge || !call.Rewritten():
		return nil
	case why != "":
	case x.Review:
		why = "a model reviews it"
	case !call.Attended():
		why = "in this permission mode the agent may ask no one"
	default:
		id, err := approvable(x.Asked, words)
		if err == nil {
			return []string{approvedFlag, id}
		}
		why = explain.OneLine(err)
	}
	a.Question += "An answer here does not approve it: " + text.Line(why) + ".\n"
	return nil
}

// apart returns the directory of a command, without links, if it lies in none of the roots; with none, that
// is where the hook runs.
func apart(dir string, roots []string, here string) string {
	real := hostfacts.RealPath(dir)
	for _, root := range roots {
		if safefile.Within(real, hostfacts.RealPath(root)) {
			return ""
		}
	}
	if len(roots) == 0 && safefile.Within(real, hostfacts.RealPath(here)) {
		return ""
	}
	return real
}

// decide makes an answer of an explanation, as if everything could be contained.
func (h *hook) decide(x *explain.Explanation) hooks.Answer {
	const most = 2000 // bytes of a reason
	reason := x.Approval.Reason
	if reason == "" {
		reason = x.Path
	}
	if len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + "..."
	}
	switch x.Decision {
	case rules.Allow:
		return hooks.Answer{Decision: hooks.Contain,
			Reason: "sallyport: it runs in the sandbox " + x.Sandbox.Mode}
	case rules.Prompt:
		return hooks.Answer{Decision: hooks.Ask, Reason: "sallyport: " + text.Line(reason)}
	}
	return hooks.Answer{Reason: "sallyport: " + text.Line(reason)}
}

// instead says what a person can do where the agent does not ask.
func instead(x *explain.Explanation) string {
	fix := "; this agent cannot ask: the user can run it with sallyport run --approval-wait 5m " +
		"and answer with sallyport approve"
	if r := x.Rule; r != nil {
		fix += ", or change the rule at " + rules.Pos{File: r.File, Line: r.Line, Col: r.Column}.String()
	}
	return fix
}

// program is the name that this program was called by, which means the same in every directory.
func (h *hook) program() string {
	name := h.env.Name
	if name == "" {
		name = "sallyport"
	}
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		name = filepath.Join(h.env.Dir, name)
	}
	return name
}

// contained returns the run that a command is, if it is a run of ours that may do no more than that of the
// hook.
func (h *hook) contained(in *Env, program, command, dir string, e *config.Effective) (*args.Options, []string,
	*config.Effective, bool) {
	name, all := hooks.Contained(command)
	if all == nil || name != program && !h.means(in, name, dir, e) {
		return nil, nil, nil, false
	}
	o := new(args.Options)
	words, err := syntax.ParseFlags(o.Flags(), all)
	if err != nil || o.Help || o.Check(words) != nil {
		return nil, nil, nil, false
	}
	_, inner, err := o.Settings(&in.Env)
	if err != nil {
		return nil, nil, nil, false
	}
	if o.Wider(inner, &h.run.Run, e) != "" {
		o.Close()
		return nil, nil, nil, false
	}
	return o, words, inner, true
}

// means reports whether a name that another one wrote is this program: PATH leads to it, also that of a
// shell, to which an empty element is the current directory, and commands can put nothing in its place.
func (h *hook) means(in *Env, name, dir string, e *config.Effective) bool {
	policy, err := h.run.Policy(dir, in.Variable("HOME"))
	if name != "sallyport" || err != nil {
		return false
	}
	site, list := h.run.Site(&in.Env, e, policy, dir), in.Variable("PATH")
	return site.Reach.Path(list) == list && site.Named([]string{name}) == nil
}
