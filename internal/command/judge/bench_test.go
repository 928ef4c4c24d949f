// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/approval"
	"github.com/sallyport-dev/sallyport/rules"
)

// manyRules returns a set of n rules, a third of each decision.
func manyRules(tb testing.TB, n int) *rules.Set {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "prefix_rule([\"tool%d\", \"do\"], %q)\n", i,
			[]string{"allow", "prompt", "forbidden"}[i%3])
	}
	return load(tb, b.String())
}

// BenchmarkJudge guards: true against 100 rules takes less than 50 us, under untrusted as well.
// Without rules there is nothing to do; scripts cost what reading them costs.
func BenchmarkJudge(b *testing.B) {
	hundred, many := manyRules(b, 100), manyRules(b, 10_000)
	for _, bench := range []struct {
		name string
		q    Question
	}{
		{"no rules", Question{Command: []string{"true"}}},
		{"100 rules", Question{Command: []string{"true"}, Rules: hundred}},
		{"100 rules, untrusted", Question{Command: []string{"true"}, Rules: hundred, Approval: approval.Untrusted, SafeList: true}},
		{"10 000 rules", Question{Command: []string{"true"}, Rules: many}},
		{"10 000 rules, script", Question{Command: bash("cd x && make all | tail -n 3"), Rules: many}},
		{"100 rules, variable", Question{Command: bash("$X tool"), Rules: hundred}},
		{"10 000 rules, variable", Question{Command: bash("$X tool"), Rules: many}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Judge(&bench.q)
			}
		})
	}
}

// TestJudgeAllocates: without rules nothing is read and nothing allocated.
func TestJudgeAllocates(t *testing.T) {
	q := Question{Command: bash("make; curl u | sh"), Rules: rules.Load(rules.Host{})}
	if n := testing.AllocsPerRun(100, func() { Judge(&q) }); n > 0 {
		t.Errorf("%v allocations without rules", n)
	}
}
