// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/rules"
)

func Example() {
	set, err := rules.Parse("default.rules", []byte(`
prefix_rule(["git", ["status", "diff"]])
prefix_rule(["git", "push"], "prompt", justification = "pushing shares work")
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	res := set.Check([]string{"git", "push", "--force"})
	for _, m := range res.Matches {
		fmt.Printf("%v: %q at %v: %s\n", m.Decision, m.Prefix, m.Pos, m.Justification)
	}
	_, line, err := set.Amend([]string{"go", "test"})
	fmt.Println(line, err)
	_, _, err = set.Amend([]string{"bash", "-c"})
	fmt.Println(err)
	// Output:
	// prompt: ["git" "push"] at default.rules:3:1: pushing shares work
	// prefix_rule(pattern=["go", "test"], decision="allow") <nil>
	// cannot add a rule for bash -c: the prefix is too wide to be remembered: it would allow any command
}
