// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/linux/plan"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// places are the paths at which bubblewrap is looked for. PATH is not used: a command could
// have put a program there.
var places = [...]string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/wrappers/bin/bwrap"}

// A Bubblewrap is a bubblewrap that works on this machine.
type Bubblewrap struct {
	Path         string
	Major, Minor uint
	SetUID       bool
}

const installHint = "install bubblewrap 0.5 or newer from the system's packages"

// FindBubblewrap returns the system's bubblewrap, or why the bwrap level is not available. It runs
// bubblewrap twice: for its version, and with all options.
func FindBubblewrap() (*Bubblewrap, *sandbox.UnsupportedError) {
	lack := func(have, hint string) (*Bubblewrap, *sandbox.UnsupportedError) {
		return nil, &sandbox.UnsupportedError{Need: "the system's bubblewrap", Have: have, Hint: hint}
	}
	var p Bubblewrap
	for _, at := range places {
		real, err := filepath.EvalSymlinks(at)
		if err != nil {
			continue
		}
		if why := unsafeProgram(real); why != "" {
			return lack(fmt.Sprintf("%s is not used, because %s", real, why),
				"reinstall it from the system's packages")
		}
		p.Path = real
		break
	}
	if p.Path == "" {
		return lack("it is not installed", installHint)
	}
	if st, err := os.Stat(p.Path); err == nil {
		p.SetUID = st.Mode()&fs.ModeSetuid != 0
	}
	out, err := run(p.Path, "--version")
	if err != nil {
		return lack(fmt.Sprintf("%s --version failed: %v", p.Path, err), installHint)
	}
	p.Major, p.Minor = version(out)
	if p.Major == 0 && p.Minor < 5 {
		return lack(fmt.Sprintf("%s is %s", p.Path, strings.TrimSpace(out)), installHint)
	}
	// A whole sandbox, around a program that exists in any case.
	if _, err := run(p.Path, append(plan.BwrapBase(), "--unshare-net", p.Path, "--version")...); err != nil {
		hint := hostfacts.NamespaceHint()
		if hint == hostfacts.SeeDoctor {
			hint = "allow it to make user namespaces, and a fresh /proc in them"
		}
		return lack(fmt.Sprintf("%s cannot make a sandbox here: %v", p.Path, err), hint)
	}
	return &p, nil
}

// unsafeProgram returns how another user could have changed a program, or "".
func unsafeProgram(name string) string {
	for at := name; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return "lstat " + at + " fails: " + err.Error()
		}
		if st.Mode&0o022 != 0 {
			return at + " is writable for other users"
		}
		// In a user namespace the system's owner has the overflow number.
		if st.Uid != 0 && strconv.Itoa(int(st.Uid)) != hostfacts.OneLine("/proc/sys/kernel/overflowuid") {
			return at + " does not belong to root"
		}
		if at == "/" {
			return ""
		}
	}
}

// run runs bubblewrap without an environment and returns its output. The error is the
// first line that bubblewrap writes about it.
func run(program string, args ...string) (string, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", patience
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n"); line != "" {
			return "", errors.New(line)
		}
		return "", err
	}
	return stdout.String(), nil
}

// version reads "bubblewrap 0.8.0"; it returns zeros for anything else.
func version(s string) (major, minor uint) {
	if n, err := fmt.Sscanf(s, "bubblewrap %d.%d", &major, &minor); n != 2 || err != nil {
		return 0, 0
	}
	return major, minor
}

// For returns what a plan needs to know about the program for these rules. It makes the
// empty file and directory that are mounted over what is denied in the state directory.
// A *sandbox.UnsupportedError refuses rules under which a command could change bubblewrap.
func (p *Bubblewrap) For(rules []plan.Rule, state string) (*plan.Bwrap, error) {
	for _, r := range rules {
		if r.Level == sandbox.LevelWrite && hostfacts.Below(p.Path, r.Path) {
			return nil, &sandbox.UnsupportedError{
				Need: "a bubblewrap that no command can change",
				Have: fmt.Sprintf("%s is below the writable %s", p.Path, r.Path),
				Hint: "name narrower writable directories",
			}
		}
	}
	b := &plan.Bwrap{
		Program: p.Path, Argv0: p.Major > 0 || p.Minor >= 9,
		File: filepath.Join(state, "nothing"), Directory: filepath.Join(state, "none"),
	}
	return b, makeEmpty(b.File, b.Directory)
}

// makeEmpty makes the file and directory of mode 000, unless they exist. They stay: any
// number of runs may use them at once.
func makeEmpty(file, dir string) error {
	if err := syscall.Mkdir(dir, 0); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	if err := unix.Mknod(file, unix.S_IFREG, 0); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mknod", Path: file, Err: err}
	}
	for name, kind := range map[string]uint32{file: unix.S_IFREG, dir: unix.S_IFDIR} {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			return &fs.PathError{Op: "lstat", Path: name, Err: err}
		}
		if st.Mode != kind || kind == unix.S_IFREG && st.Size != 0 {
			return fmt.Errorf("%s is not empty and of mode 000; remove it", name)
		}
	}
	return nil
}
