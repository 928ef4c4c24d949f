// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// fullDisk is a script that fills the disk of a required log: before it exists, and again while it does, up
// to the last byte. $disk is the file system, $log the log, and $flags are those of run.
const fullDisk = `
fill() { cat /dev/zero >"$disk/fill" 2>&-; true; }
try() { sallyport run $flags -- sh -c 'echo >ran'; }
fill
try
echo "full: $?, $(test -e ran; echo $?)"
rm "$disk/fill"
try >id || exit 3
test -z "$flags" || sallyport wait $(cat id) || exit 4
sallyport audit verify || exit 5
echo "room: $?"
fill
i=0 kept=2
while test $i != 99; do # each one leaves less room
	i=$((i+1))
	rm ran
	try 2>said >id
	code=$?
	test -z "$flags" -o $code != 0 || sallyport wait $(cat id) 2>&- # the end may not be kept
	test $code = 0 -o $code = 125 || exit 6
	if ! test -e ran; then break; fi
	test $code != 0 || kept=$((kept+1))
done
test ! -e ran || exit 7
echo "full again: $code"
cat said
rm "$disk/fill"
try >id || exit 8
test -z "$flags" || sallyport wait $(cat id) || exit 9
sallyport audit verify || exit 10
sallyport audit show --json --kind run >runs || exit 11
test "$flags" || test $(wc -l <runs) -ge $kept || exit 12
echo "room again: $?"
`

// TestFullDisk: on a disk that is really full nothing runs where the log is required, one sentence says why
// and what to do, and once there is room the log goes on and verifies.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedUserNS(t)
	for _, test := range []struct{ name, log, settings, flags string }{
		{"run", "log", "audit.path = 'DISK/log'\naudit.required = true\n", ""},
		{"a daemon", "log", "audit.path = 'DISK/log'\n", "--detach"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newParlor(t)
			disk := filepath.Join(filepath.Dir(d.work), "disk")
			config := filepath.Join(d.home, ".config", "sallyport")
			for _, dir := range []string{disk, config} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			settings := strings.ReplaceAll(test.settings, "DISK", disk)
			if err := os.WriteFile(filepath.Join(config, "config.toml"), []byte(settings), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := d.command(t, "ontmpfs", disk, "sh", "-c", fullDisk)
			cmd.Env = append(cmd.Env, "disk="+disk, "flags="+test.flags)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER,
				Unshareflags: unix.CLONE_NEWNS,
				UidMappings:  []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
				GidMappings:  []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
			out, err := cmd.CombinedOutput()
			says := func(file string) string {
				return "sallyport: the audit log is required and cannot be written: " +
					filepath.Join(disk, "log", file) +
					": no space left on device; make room or fix its permissions, " +
					"set audit.path to another directory, or set audit.required = false to run without\n"
			}
			want := says("key") + "full: 125, 1\nroom: 0\nfull again: 125\n" + says("audit.jsonl") +
				"room again: 0\n"
			if err != nil || string(out) != want {
				t.Errorf("%v\n%s, want\n%s", err, out, want)
			}
		})
	}
}
