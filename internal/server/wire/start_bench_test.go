// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"testing"
)

// startText are the parameters of a process/start as clients send it.
const startText = `{"processId":"proc-1","argv":["/bin/bash","-lc","make test && echo \"done\""],"cwd":"file:///home/me/project",` +
	`"env":{"HOME":"/home/me","PATH":"/usr/local/bin:/usr/bin:/bin","LANG":"C.UTF-8","TERM":"dumb","USER":"me"},"tty":false,"pipeStdin":true,` +
	`"envPolicy":{"inherit":"core","ignoreDefaultExcludes":false,"exclude":["*KEY*","*TOKEN*"],"set":{"CI":"1"},"includeOnly":[]},` +
	`"sandbox":{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":{"kind":"root"}},"access":"read"},` +
	`{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"}]},"network":"restricted"},"windowsSandboxLevel":"disabled",` +
	`"cwd":"file:///home/me/project","workspaceRoots":["file:///home/me/project"]},"metadata":{"threadId":"t","turnId":"u"}}`

func BenchmarkDecodeStart(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode[Start](json.RawMessage(startText)); err != nil {
			b.Fatal(err)
		}
	}
}
