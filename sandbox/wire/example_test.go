// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/sandbox"
	"github.com/sallyport-dev/sallyport/sandbox/wire"
)

func ExampleParseProfile() {
	p, err := wire.ParseProfile([]byte(`{"type":"managed","network":"restricted","file_system":{"type":"restricted","entries":[
		{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},
		{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"}]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p)
	out, err := wire.MarshalProfile(p)
	fmt.Println(string(out), err)
	_, err = wire.MarshalProfile(p.With(sandbox.Grant{Name: "git"}))
	fmt.Println(err)
	// Output:
	// workspace-write, network none
	// {"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"}]},"network":"restricted"} <nil>
	// policy cannot be written as a permission profile: named grants cannot be expressed
}
