// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package args

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/guardian"
	"github.com/sallyport-dev/sallyport/internal/cli/explain"
	"github.com/sallyport-dev/sallyport/internal/dirs"
	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/run/tty"
	"github.com/sallyport-dev/sallyport/internal/server/listen"
	"github.com/sallyport-dev/sallyport/internal/settings/config"
	"github.com/sallyport-dev/sallyport/internal/settings/trust"
	"github.com/sallyport-dev/sallyport/rules"
	"github.com/sallyport-dev/sallyport/rules/files"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// FileVariable names a file that is read in place of the user's config.toml.
const FileVariable = config.VariablePrefix + "CONFIG"

// LoadConfig reads the settings for a workspace. File and none are --config and --no-config.
func LoadConfig(env *Env, dir, file string, none bool) (*config.Config, error) {
	in := config.Input{
		Managed: env.Managed, RequireSandbox: env.RequireSandbox,
		Dir: dir, Home: env.Variable("HOME"), Environ: env.Environ, Proxies: env.Proxies,
		OnlyManaged: none, Account: grants.DatabaseHome, Terminal: env.Asks || tty.Is(env.Stdin) &&
			tty.Is(env.Stderr),
	}
	if none {
		return config.Load(in)
	}
	var err error
	if in.Project, in.Untrusted, err = projectFiles(dir); err != nil {
		return nil, err
	}
	if in.User, err = configFor(env.Variable, dir); err != nil {
		return nil, err
	}
	if in.File = cmp.Or(file, env.Variable(FileVariable)); in.File != "" {
		in.File = Absolute(in.File, env.Dir, in.Home)
	}
	if in.File != "" && file == "" {
		if err := CheckSettings(in.File, dir); err != nil {
			return nil, err
		}
	}
	return config.Load(in)
}

// projectFiles returns the files of the project in a workspace if they are trusted, or why they
// do not count. Files that were trusted and are others now, or gone, are a [*trust.ChangedError]:
// a command in a directory above may have removed them, with all that they denied.
func projectFiles(dir string) (trusted []config.ProjectFile, why string, err error) {
	p, err := trust.Read(dir)
	var refused *trust.RefusedError
	switch {
	case errors.As(err, &refused):
		return nil, "the settings of the project are not used: " + refused.Error(),
			mustStay(dir, refused.Error())
	case err != nil:
		return nil, "", err
	case p.State == trust.None:
		return nil, "", mustStay(dir, "they are gone")
	case p.State == trust.Untrusted:
		return nil, "the settings in .sallyport are not used, because they are not trusted; run sallyport trust to see them", nil
	case p.State == trust.Changed:
		return nil, "", &trust.ChangedError{Dir: p.Dir, Why: p.Why}
	}
	for _, f := range p.Files {
		trusted = append(trusted, config.ProjectFile{Path: f.Path, Text: f.Data})
	}
	return trusted, "", nil
}

// mustStay returns an error if files of the project were trusted that cannot be used.
func mustStay(dir, why string) error {
	recorded, err := trust.Recorded(dir)
	if recorded && err == nil {
		err = &trust.ChangedError{Dir: hostfacts.RealPath(dir), Why: why}
	}
	return err
}

// Configure reads the settings for a program in dir and applies them.
func (o *Options) Configure(env *Env, dir string) (*config.Effective, error) {
	c, err := LoadConfig(env, dir, o.Config, o.NoConfig)
	if err != nil {
		return nil, err
	}
	e, err := c.Resolve(o.Given)
	if err != nil {
		return nil, err
	}
	o.Apply(e)
	if !o.HasScript {
		o.Cmd.Shell, o.Cmd.Login = "", false // they are for scripts
	}
	if o.Quiet && o.Verbose { // the one that was asked for last
		o.Verbose = len(o.Given["verbose"]) > 0
		o.Quiet = !o.Verbose
	}
	if len(o.Given["hooks.approver"]) > 0 && e.Approval() == approval.Never {
		e.Notes = append(e.Notes, "--approver is not asked, because approval is never; use -a on-request")
	}
	if len(o.Given["ask_writes"]) > 0 && o.Cmd.AskWrites && e.Approval() == approval.Never {
		e.Notes = append(e.Notes, "--ask-writes asks nothing, because approval is never; use -a on-request, "+
			"--approver PROG, or --approval-wait DUR")
	}
	o.Cmd.Publish = e.Publish()
	if err := cmp.Or(o.checkReview(), e.CheckHosts()); err != nil {
		return nil, explain.NewError("%v", err)
	}
	if err := o.loadCredentials(env, e); err != nil {
		return nil, err
	}
	return e, o.check()
}

// Runner returns the Runner for a policy in dir, with the rules and the approval policy that hold.
// Person is asked last, beside those that answer from elsewhere. The Post must be closed after
// the Runner. The error is about hosts, or about settings that commands can change.
func (o *Options) Runner(env *Env, e *config.Effective, policy sandbox.Policy, dir string,
	person approval.Approver) (*sallyport.Runner, *listen.QuestionServer, error) {
	if err := o.settingsFile(env, e); err != nil {
		return nil, nil, err
	}
	r := &sallyport.Runner{Policy: policy, Approval: e.Approval(), SafeList: e.ReadOnlyRules(),
		Permits: e.Permits, Writable: e.Writable(), AnswerTime: o.ApprovalWait,
		Tracer: env.Telemetry.Tracer(o.Telemetry)}
	if o.Quiet {
		env.Telemetry.Quiet()
	}
	post := &listen.QuestionServer{Beside: person, Wait: o.ApprovalWait, InConsole: o.AskInConsole,
		Remembered: r.Approvals, Revoke: r.RevokeApproval}
	var before []approval.Approver
	if len(o.Approver.Args) > 0 {
		if err := o.approverFiles(e, policy, dir); err != nil {
			return nil, nil, err
		}
		before, post.BeforeIsFinal = append(before, &o.Approver), true
	}
	switch g := o.guardian(env, policy); {
	case g == nil:
	case o.StrictReview:
		r.Reviewer = post.Alone(g)
	case r.Approval != approval.Untrusted:
		before = append(before, g)
	}
	if len(before) > 0 {
		post.Before = approval.Chain(before...)
	}
	if r.Approver = post; r.Reviewer != nil && r.Approval != approval.Untrusted {
		r.Approver = post.Before // the review is the answer, if the program does not refuse
	}
	if file := dirs.DefaultRules(env.Variable); file != "" && !o.NoConfig {
		r.Remember = func(_ []string, line string) error {
			if err := os.MkdirAll(filepath.Dir(filepath.Dir(filepath.Dir(file))), 0o700); err != nil {
				// of a new home
				return err
			}
			lock, err := dirs.Lock("rules")
			if err != nil {
				return err
			}
			defer lock.Close()
			return files.Append(file, line)
		}
	}
	if sources := slices.Concat(e.Rules(), o.Beside); len(sources) > 0 {
		r.Rules = rules.Load(rules.Host{Dir: dir, Home: env.Variable("HOME")}, sources...)
	}
	var err error
	r.Network, err = o.hosts(e, r.Rules)
	return r, post, err
}

// checkReview returns why there can be no strict review although settings want it.
func (o *Options) checkReview() error {
	switch {
	case !o.StrictReview:
	case o.Reviewer.Model == "":
		return errors.New("reviewer.strict needs a model, and none is named; set reviewer.model")
	case o.Reviewer.Shadow:
		return errors.New("reviewer.strict and reviewer.shadow cannot be combined, because a shadow review decides nothing; remove one of them")
	}
	return nil
}

// guardian returns the reviewing model, or nil. It gets the key from our own environment.
func (o *Options) guardian(env *Env, policy sandbox.Policy) *guardian.Guardian {
	g := &o.Reviewer
	if g.Model == "" {
		return nil
	}
	g.Policy = policy
	if o.ReviewerKey != "" {
		g.Key = func() (string, error) {
			if key := env.Variable(o.ReviewerKey); key != "" {
				return key, nil
			}
			return "", &sallyport.VariableError{Name: o.ReviewerKey, By: "reviewer.api_key_env"}
		}
	}
	if g.Shadow && !o.Quiet {
		g.Reviewed = func(r approval.Review) {
			said := r.Risk + " risk, authorization " + r.Authorization + ": " + r.Rationale
			if r.Rationale == "" {
				said = r.Decision.Message
			}
			env.say("the reviewer's decision, which does not count, is " + r.Decision.Answer.String() +
				" (" + said + ")")
		}
	}
	return g
}
