// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package sallyport_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sallyport-dev/sallyport"
)

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
	c := sallyport.Command("make", "test")
	c.Env = []string{"PATH=/usr/bin", "AWS_REGION=x", "CI_TOKEN=t", "NPM_TOKEN=n", "AGENT_PARENT=a"}
	c.EnvPolicy = policy

	res, err := c.EnvPolicy.Apply(c.Env) // as Run does
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(res.Env)
	fmt.Println(res.Withheld)
	// Output:
	// [AGENT=reviewer CI_TOKEN=t LANG=C.UTF-8 PATH=/usr/bin]
	// [AGENT_PARENT AWS_REGION NPM_TOKEN]
}

// TestEnvPolicyJSON uses the names of the configuration that other agents have, too.
func TestEnvPolicyJSON(t *testing.T) {
	const text = `{"inherit":"all","ignore_default_excludes":true,"exclude":["A*"],"set":{"B":"1"},"include_only":["C"]}`
	var p sallyport.EnvPolicy
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	want := sallyport.EnvPolicy{
		Inherit: sallyport.InheritAll, KeepSecrets: true, Exclude: []string{"A*"},
		Set: map[string]string{"B": "1"}, IncludeOnly: []string{"C"},
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	if out, err := json.Marshal(p); err != nil || string(out) != text {
		t.Errorf("written as %s, %v; want %s", out, err, text)
	}
	if err := json.Unmarshal([]byte(`{"inherit":"some"}`), &p); err == nil {
		t.Error("an unknown inherit value was accepted")
	}
	if _, err := json.Marshal(sallyport.EnvPolicy{Inherit: 9}); err == nil {
		t.Error("an unknown inherit value was written")
	}
	for i, want := range map[sallyport.EnvInherit]string{sallyport.InheritNone: "none", sallyport.InheritCore: "core"} {
		text, err := i.MarshalText()
		var back sallyport.EnvInherit
		if backErr := back.UnmarshalText(text); err != nil || backErr != nil || i.String() != want || string(text) != want || back != i {
			t.Errorf("%v is written as %q (%v) and read as %v (%v), want %s", i, text, err, back, backErr, want)
		}
	}
	if got := sallyport.EnvInherit(9).String(); got != "inherit(9)" {
		t.Errorf("an unknown value is %q", got)
	}
}
