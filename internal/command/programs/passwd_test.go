// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"strings"
	"testing"
)

func TestPasswdShell(t *testing.T) {
	const text = "# comment:x:7:7::/:/bin/no\n" +
		"root:x:0:0:root:/root:/bin/bash\n" +
		"\n" +
		"+nis:x:8:8::/:/bin/no\n" +
		"short:x:9:9\n" +
		"long:x:10:1:a:b:c:/bin/no\n" +
		"ann:x:1000:1000:Ann,,,:/home/ann:/usr/bin/zsh\r\n" +
		"again:x:1000:1000::/home/x:/bin/no\n" +
		"daemon:x:1:1::/:\n" +
		"big:x:4294967295:1::/:/bin/big\n" +
		"sign:x:+5:5::/:/bin/no\n" +
		"last:x:77:77::/:/bin/last"
	for _, tt := range []struct {
		name  string
		uid   uint32
		shell string
		ok    bool
	}{
		{"root", 0, "/bin/bash", true},
		{"first of two, CR LF", 1000, "/usr/bin/zsh", true},
		{"empty field", 1, "/bin/sh", true},
		{"largest uid", 4294967295, "/bin/big", true},
		{"no newline at the end", 77, "/bin/last", true},
		{"comment", 7, "", false},
		{"directory service", 8, "", false},
		{"too few fields", 9, "", false},
		{"too many fields", 10, "", false},
		{"signed number", 5, "", false},
		{"absent", 4242, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := PasswdShell([]byte(text), tt.uid)
			if got != tt.shell || ok != tt.ok {
				t.Errorf("PasswdShell = %q, %v; want %q, %v", got, ok, tt.shell, tt.ok)
			}
		})
	}
}

func FuzzPasswdShell(f *testing.F) {
	f.Add([]byte("root:x:0:0:root:/root:/bin/bash\n"), uint32(0))
	f.Add([]byte(":::\n::0::::\r\n"), uint32(0))
	f.Fuzz(func(t *testing.T, text []byte, uid uint32) {
		got, ok := PasswdShell(text, uid)
		if ok != (got != "") || strings.ContainsAny(got, ":\n") {
			t.Errorf("PasswdShell = %q, %v", got, ok)
		}
	})
}
