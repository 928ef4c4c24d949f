// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package hostfacts

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestInterpreter(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"plain text", "echo hi\n", ""},
		{"shell", "#!/bin/sh\necho\n", "/bin/sh"},
		{"blank and argument", "#! \t/usr/bin/env  python3 -x\n", "/usr/bin/env python3 -x"},
		{"no end of line", "#!/bin/sh", "/bin/sh"},
		{"nothing behind it", "#!\n/bin/sh", ""},
		{"cut ELF header", "\x7fELF\x02\x01", ""},
		{"ELF of zeros", "\x7fELF\x02\x01" + strings.Repeat("\x00", 100), ""},
		{"32 bits", "\x7fELF\x01\x01" + strings.Repeat("\x00", 100), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := strings.Join(InterpreterOf(strings.NewReader(c.text)), " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	t.Run("a real program", func(t *testing.T) {
		if got := Interpreter("/bin/sh"); !strings.Contains(got, "ld") || !strings.HasPrefix(got, "/") {
			t.Errorf("%q", got)
		}
	})
}

func FuzzInterpreter(f *testing.F) {
	f.Add([]byte("#!/bin/sh\n"))
	if b, err := os.ReadFile("/bin/sh"); err == nil {
		f.Add(b[:1024])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, got := range InterpreterOf(bytes.NewReader(b)) {
			if strings.ContainsAny(got, "\x00") || got == "" || !bytes.Contains(b, []byte(got)) {
				t.Errorf("%q is not in the file", got)
			}
		}
	})
}
