// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func Example() {
	r := &sallyport.Runner{
		Policy: sandbox.WorkspaceWrite("."),
	}
	defer r.Close()

	res, err := r.Run(context.Background(), sallyport.Script("echo hello"))
	if err != nil {
		log.Fatal(err) // it did not run: forbidden, refused, or no sandbox to run it in
	}
	fmt.Print(res.Output)
	for _, d := range res.Denials() {
		fmt.Println("kept from:", d)
	}
	// Output: hello
}

// With a named grant a command may work with git: commits and branches, but not
// hooks and configuration, which git outside of the sandbox would obey.
func Example_grant() {
	r := &sallyport.Runner{
		Policy: sandbox.WorkspaceWrite(".").With(sandbox.Grant{Name: "git"}),
	}
	defer r.Close()

	res, err := r.Run(context.Background(), sallyport.Script("git add -A && git commit -m step"))
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range res.Quarantined {
		fmt.Println("appeared and was moved away:", q.Path)
	}
}

// A policy can say everything with the names of this package.
func ExampleEnvPolicy() {
	policy := sallyport.EnvPolicy{
		Inherit:     sallyport.InheritAll,
		KeepSecrets: false,
		Exclude:     []string{"AWS_*"},
		Set:         map[string]string{"LANG": "C.UTF-8"},
		IncludeOnly: []string{"PATH", "LANG", "*_TOKEN"},
		Named:       []string{"CI_TOKEN"},
		Runtime:     map[string]string{"AGENT": "reviewer"},
		RuntimeOnly: []string{"AGENT_PARENT"},
		System:      "linux",
		Core:        []string{"PATH"}, // for InheritCore
	}
	caller := []string{"PATH=/usr/bin", "AWS_REGION=x", "CI_TOKEN=t", "NPM_TOKEN=n", "AGENT_PARENT=a"}

	res, err := policy.Apply(caller)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(res.Env)
	fmt.Println(res.Withheld)
	// Output:
	// [AGENT=reviewer CI_TOKEN=t LANG=C.UTF-8 PATH=/usr/bin]
	// [AGENT_PARENT AWS_REGION NPM_TOKEN]
}
