// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/executor/local"
	"github.com/sallyport-dev/sallyport/internal/cli/args"
	"github.com/sallyport-dev/sallyport/internal/settings/syntax"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// A recorder is an executor and an approver of a run that starts nothing.
type recorder struct {
	executor.Executor
	spec  *executor.Spec
	asked *approval.Request
}

func (r *recorder) Start(_ context.Context, spec *executor.Spec) (executor.Process, error) {
	r.spec = spec
	return nil, errors.New("nothing runs here")
}

func (r *recorder) decide(_ context.Context, q *approval.Request) (approval.Decision, error) {
	r.asked = q
	return approval.Decision{Answer: approval.Approved}, nil
}

// An outcome is what check says about a run, or what a run does.
type outcome struct {
	decision, mode, network string
	requires, offer         string
}

// ran returns what a run with flags does; "invalid" where it is not valid.
func ran(t *testing.T, dir string, words []string) outcome {
	t.Helper()
	env, o := &args.Env{Environ: testenv.Environ(), Dir: dir}, new(args.Options)
	args, err := syntax.ParseFlags(o.Flags(), words)
	if err == nil {
		err = o.Check(args)
	}
	invalid := outcome{decision: "invalid"}
	if err != nil {
		return invalid
	}
	e, err := o.Configure(env, dir)
	if err != nil {
		return invalid
	}
	cmd, err := o.Command(env, dir, args)
	if err != nil {
		return invalid
	}
	policy, err := o.Policy(dir, env.Variable("HOME"))
	if err != nil {
		return invalid
	}
	runner, post, err := o.Runner(env, e, policy, dir, nil)
	if err != nil {
		return invalid
	}
	defer post.Close()
	defer runner.Close()
	r := &recorder{Executor: new(local.Executor)}
	runner.Executor, runner.Approver = r, approval.Func(r.decide)
	_, err = runner.Run(t.Context(), cmd)
	out := outcome{decision: "allow", mode: policy.Name(), network: policy.Network().String()}
	switch {
	case errors.Is(err, sallyport.ErrForbidden):
		out.decision = "forbidden"
	case r.asked != nil:
		out.decision, out.requires = "prompt", strings.Join(r.asked.Requires, " ")
		for _, offer := range r.asked.Offers {
			out.offer = strings.Join(offer.Rule, " ")
		}
	}
	if r.spec != nil {
		out.mode, out.network = r.spec.Policy.Name(), r.spec.Policy.Network().String()
	} else if out.decision != "forbidden" {
		return invalid // such as the root as a writable directory
	}
	return out
}

// checked returns what check says about that run.
func checked(t *testing.T, dir string, words []string) outcome {
	t.Helper()
	code, stdout, stderr := invoke(t, dir, slices.Concat([]string{"check", "--explain", "--json"}, words)...)
	if code != 0 {
		return outcome{decision: "invalid"}
	}
	var e struct {
		Decision string
		Approval struct {
			Requires []string
			Offers   [][]string
		}
		Sandbox struct{ Mode, Network string }
	}
	if err := json.Unmarshal([]byte(stdout), &e); err != nil {
		t.Fatalf("%q: %v, %s", words, err, stderr)
	}
	out := outcome{decision: e.Decision, mode: e.Sandbox.Mode, network: e.Sandbox.Network}
	if e.Decision == "prompt" {
		out.requires = strings.Join(e.Approval.Requires, " ")
		for _, rule := range e.Approval.Offers {
			out.offer = strings.Join(rule, " ")
		}
	}
	return out
}

// TestExplainIsRun: check --explain says what a run with the same flags, settings and rules does:
// whether it is asked about, what the question would open and offer, and where it runs. The rows are
// drawn from all of them.
func TestExplainIsRun(t *testing.T) {
	base := t.TempDir()
	t.Setenv("HOME", base)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(base, "config"))
	dir := filepath.Join(base, "w")
	write := func(name, text string) string {
		name = filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("w/file", "")
	rule := func(name, text string) []string { return []string{"--rules", write(name, text)} }
	denies := rule("denies.rules", `network_rule("a.example.com", "https", "deny")`)
	axes := [][][]string{
		{{"-a", "untrusted"}, {"-a", "on-request"}, {"-a", "granular"}, {"-a", "never"}},
		{nil, {"--escalate"}, {"--ask-for", "/etc"}, {"--ask-for", "a.example.com"}, {"--escalate", "--ask-for", "/etc"}, {"--escalate", "--justification", "why"}},
		{nil, nil, rule("allow.rules", `prefix_rule(["touch"])`), rule("prompt.rules", `prefix_rule(["touch"], "prompt")`), rule("forbid.rules", `prefix_rule(["touch"], "forbidden")`),
			rule("outside.rules", `prefix_rule(["touch"], sandbox = "outside")`),
			rule("narrow.rules", `prefix_rule(["touch"], sandbox = "read-only")`), denies},
		{nil, nil, {"--net", "proxy"}, {"--net", "host"}, {"--allow-host", "b.example.com"}, {"--deny-host", "c.example.com"}, {"--config", write("limited.toml", "network.mode = 'limited'\n")},
			{"--config", write("denies.toml", "network.deny = ['c.example.com']\n")}, {"--config", write("asks.toml", "[network]\nallow = ['b.example.com']\nask = true\n")}},
		{nil, nil, nil, {"--deny", "secret"}, {"--rw", "/var"}, {"--grant", "git"}},
		{nil, nil, {"-s", "read-only"}, {"-s", "full-access"}},
		{{"--"}, {"--prefix-rule", "touch", "x", "--"}},
		{{"touch", "x", "y"}, {"rm", "-rf", "x"}, {"cat", "x"}},
	}
	rows := 250
	if testing.Short() {
		rows = 60
	}
	random, seen := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	for range rows {
		var words []string
		for _, axis := range axes {
			words = append(words, axis[random.IntN(len(axis))]...)
		}
		want, got := ran(t, dir, words), checked(t, dir, words)
		if got != want {
			t.Errorf("%q:\ncheck says %+v\nrun does   %+v", words, got, want)
		}
		seen[want.decision]++
		if want.requires != "" {
			seen[want.requires]++
		}
	}
	for _, kind := range []string{"allow", "prompt", "forbidden", approval.Outside, approval.Outside + " " +
		approval.Network, "write:/etc"} {
		if seen[kind] == 0 {
			t.Errorf("no row is %q", kind)
		}
	}
}
