// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/linux/caches"
	"github.com/sallyport-dev/sallyport/internal/names/grants"
	"github.com/sallyport-dev/sallyport/internal/text"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// NothingOpens begins the rule of a denial that nothing opens which would be suggested: the sandbox is
// not built with it, or protects the path beyond the policy.
const NothingOpens = "no grant opens it: "

// maxPlans bounds how often is planned for one run, a few milliseconds each. What is not proved is not
// suggested.
const maxPlans = 32

// errUnchecked is about flags that were not tried because there were too many.
var errUnchecked = fmt.Errorf("a run checks at most %d suggestions", maxPlans)

// A proof returns why flags do not allow an access; nil is that they do.
type proof func(flags string, a sandbox.Access) error

// prove takes back what is not enough, or puts a narrower grant that is in its place: what enforces a policy
// plans the command with the flags. Mostly one plan with all of them says that all do.
func (r *DeniedRun) prove(denials []sandbox.Denial) {
	why := r.proof()
	var flags []string
	var open []*sandbox.Denial
	for i := range denials {
		d := &denials[i]
		if _, ok := sandbox.ParseGrants(cmp.Or(d.Grant, d.Wider)); ok && isFile(d.Op) &&
			d.Path != "" && why != nil {
			open, flags = append(open, d), append(flags, cmp.Or(d.Grant, d.Wider))
		}
	}
	enough := true
	for _, d := range open {
		enough = enough && why(strings.Join(flags, " "), r.tried(d)) == nil
	}
	for i := 0; i < len(open) && !enough; i++ {
		r.settle(open[i], why)
	}
}

// tried is the access that a plan must allow for a denial. A missing directory above the cache of the
// tool that ran is not needed with the grant of the cache, which is there or elsewhere then: the command
// must start.
func (r *DeniedRun) tried(d *sandbox.Denial) sandbox.Access {
	if len(r.Args) == 0 {
		return d.Access
	}
	grant, _ := caches.GrantAbove(d.Path, r.Env, path.Base(r.Args[0]))
	if grant != "" && strings.Contains(d.Grant, grant) && !r.files.exists(d.Path) {
		return sandbox.Access{Op: sandbox.Read, Path: r.Dir}
	}
	return d.Access
}

// settle leaves a denial with flags that are enough, if there are any.
func (r *DeniedRun) settle(d *sandbox.Denial, why proof) {
	flags := cmp.Or(d.Grant, d.Wider)
	refused := why(flags, r.tried(d))
	if refused == nil {
		return
	}
	g := asGrant(d)
	g.Path = r.needed(d)
	for g.Path != "/" && !r.files.exists(g.Path) {
		g.Path = path.Dir(g.Path)
	}
	narrower := g.String()
	failed, _ := sandbox.ParseGrants(flags)
	switch {
	case errors.Is(refused, errUnchecked):
		d.Grant, d.Wider = "", ""
		d.Rule = "whether " + flags + " opens it was not checked: " + errUnchecked.Error()
	case len(failed) > 1 || failed[0].Path == "" || !inside(g.Path, failed[0].Path) ||
		why(narrower, d.Access) != nil:
		d.Grant, d.Wider = "", ""
		d.Rule = NothingOpens + "with " + flags + ", " + text.Line(refused.Error())
	case d.Grant != "" && (g.Path == d.Path || !hidden(g.Path)) &&
		GrantWarning(narrower, r.variable("HOME")) == "" && r.opens(g, d.Access):
		d.Grant = narrower
	default:
		d.Grant, d.Wider = "", narrower
	}
}

// proof is nil where nothing is known of what a sandbox would enforce. Each of its plans is made once.
func (r *DeniedRun) proof() proof {
	e, ok := executor.As[interface {
		Opens(context.Context, *executor.Spec) (func(sandbox.Access) error, executor.Writing, error)
	}](r.Executor)
	if !ok || r.Spec == nil || r.files == nil || r.Policy.Mode() != sandbox.Managed {
		return nil
	}
	known := map[string]proof{}
	return func(flags string, a sandbox.Access) error {
		if known[flags] == nil {
			closes, err := func(sandbox.Access) error { return nil },
				errUnchecked
			if len(known) < maxPlans {
				spec := *r.Spec
				opened, _ := sandbox.ParseGrants(flags)
				spec.Policy = r.Policy.With(opened...)
				for _, g := range opened {
					// what a directory opens may be held by itself, which only an entry ends
					write := sandbox.Access{Op: sandbox.Write, Path: g.Path}
					without := r.Policy.With(others(opened, g)...)
					if grants.HeldByItself(g.Path) && without.Rule(write) == sandbox.Allow {
						spec.Policy = spec.Policy.WithEntries(sandbox.PathEntry(g.Path, g.Level))
					}
				}
				if closes, _, err = e.Opens(context.Background(), &spec); err != nil {
					err = fmt.Errorf("the command would not start: %w", err)
				}
			}
			known[flags] = func(_ string, a sandbox.Access) error {
				if err != nil {
					return err
				}
				return closes(a)
			}
		}
		return known[flags](flags, a)
	}
}

// others returns grants without one.
func others(list []sandbox.Grant, but sandbox.Grant) []sandbox.Grant {
	return slices.DeleteFunc(slices.Clone(list), func(g sandbox.Grant) bool { return g == but })
}
