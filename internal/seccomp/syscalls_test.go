// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/testenv"
)

// TestTablesMatchXSys compares both tables, name by name, with the ones that
// golang.org/x/sys/unix generates from the kernel's headers.
func TestTablesMatchXSys(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), testenv.NeedProgram(t, "go"), "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys")
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off")
	dir, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot find the sources of golang.org/x/sys: %v", err)
	}
	line := regexp.MustCompile(`(?m)^\tSYS_([A-Z0-9_]+) += (\d+)$`)
	for _, arch := range bothArches {
		t.Run(arch, func(t *testing.T) {
			name := filepath.Join(string(bytes.TrimSpace(dir)), "unix", "zsysnum_linux_"+arch+".go")
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, m := range line.FindAllStringSubmatch(string(src), -1) {
				if m[1] == "ARCH_SPECIFIC_SYSCALL" { // the start of a gap, not a call
					continue
				}
				found++
				want, _ := strconv.Atoi(m[2])
				call := strings.ToLower(m[1])
				if nr, ok := SyscallNumber(arch, call); !ok || nr != want {
					t.Errorf("%s is %d (known %v), want %d", call, nr, ok, want)
				}
				if back, _ := SyscallName(arch, want); back != call {
					t.Errorf("%d is %q, want %q", want, back, call)
				}
			}
			if found < 300 {
				t.Fatalf("only %d calls in %s", found, name)
			}
			here := 0
			for _, n := range archOf(arch).names {
				if n != "" {
					here++
				}
			}
			if here != found {
				t.Errorf("the table has %d names, the sources %d", here, found)
			}
		})
	}
}

func TestLookups(t *testing.T) {
	for _, tc := range []struct {
		name, arch, call string
		nr               int
		ok               bool
	}{
		{"first of amd64", "amd64", "read", 0, true},
		{"first of arm64", "arm64", "io_setup", 0, true},
		{"common number", "amd64", "openat2", 437, true},
		{"common number on arm64", "arm64", "openat2", 437, true},
		{"6.18", "arm64", "file_setattr", 469, true},
		{"not on arm64", "arm64", "open", 0, false},
		{"unknown call", "amd64", "nothing", 0, false},
		{"empty call", "amd64", "", 0, false},
		{"unknown architecture", "mips", "read", 0, false},
		{"empty architecture", "", "read", 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nr, ok := SyscallNumber(tc.arch, tc.call)
			if nr != tc.nr || ok != tc.ok {
				t.Errorf("got %d, %v", nr, ok)
			}
		})
	}
	for _, nr := range []int{-1, 340, 1 << 20, 0x40000000} { // 340 is a gap of amd64
		if name, ok := SyscallName("amd64", nr); ok || name != "" {
			t.Errorf("%d is %q", nr, name)
		}
	}
	if _, ok := SyscallName("s390x", 1); ok {
		t.Error("s390x has a table")
	}
	if _, ok := AuditArch("386"); ok {
		t.Error("386 has an audit architecture")
	}
}
