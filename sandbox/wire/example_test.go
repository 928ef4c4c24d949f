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
	old, err := wire.MarshalLegacy(p)
	fmt.Println(string(old), err)
	_, err = wire.MarshalLegacy(p.WithEntries(sandbox.PathEntry("/secret", sandbox.LevelDeny)))
	fmt.Println(err)
	// Output:
	// workspace-write, network none
	// {"type":"workspace-write","exclude_tmpdir_env_var":true,"exclude_slash_tmp":true} <nil>
	// policy cannot be written as a sandbox policy: entry /secret=deny denies, which needs direct enforcement
}
