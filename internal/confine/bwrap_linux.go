// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package confine

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

	"github.com/sallyport-dev/sallyport/internal/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/plan"
	"github.com/sallyport-dev/sallyport/internal/state"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// bwrapPlaces are where bubblewrap is looked for. PATH is not asked: a command
// could have put something there.
var bwrapPlaces = [...]string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/wrappers/bin/bwrap"}

// A systemBwrap is what was found out about the system's bubblewrap.
type systemBwrap struct {
	program string
	version [2]int
	setuid  bool
	lack    *sandbox.UnsupportedError // why it cannot be used, or nil
}

// lacksBwrap says why the bwrap level cannot be had, or nil. The first call
// starts bubblewrap twice: for its version, and with all options.
func (h *Host) lacksBwrap() *sandbox.UnsupportedError {
	return h.systemBwrap().lack
}

func (h *Host) systemBwrap() *systemBwrap {
	h.bwrapOnce.Do(func() { h.bwrap = findBwrap() })
	return h.bwrap
}

const bwrapMend = "install bubblewrap 0.5 or newer from the system's packages"

func findBwrap() *systemBwrap {
	b := new(systemBwrap)
	lack := func(have, hint string) *systemBwrap {
		b.lack = &sandbox.UnsupportedError{Need: "the system's bubblewrap", Have: have, Hint: hint}
		return b
	}
	for _, at := range bwrapPlaces {
		real, err := filepath.EvalSymlinks(at)
		if err != nil {
			continue
		}
		if why := unsafePlace(real); why != "" {
			return lack(fmt.Sprintf("%s is not used, because %s", real, why), "reinstall it from the system's packages")
		}
		b.program = real
		break
	}
	if b.program == "" {
		return lack("it is not installed", bwrapMend)
	}
	if st, err := os.Stat(b.program); err == nil {
		b.setuid = st.Mode()&fs.ModeSetuid != 0
	}
	out, err := runBwrap(b.program, "--version")
	if err != nil {
		return lack(fmt.Sprintf("%s --version failed: %v", b.program, err), bwrapMend)
	}
	b.version = bwrapVersion(out)
	if b.version[0] == 0 && b.version[1] < 5 {
		return lack(fmt.Sprintf("%s is %s", b.program, strings.TrimSpace(out)), bwrapMend)
	}
	// The real thing: everything that a machine may refuse, around a program
	// that is known to be there.
	if _, err := runBwrap(b.program, append(append(plan.BwrapBase(), "--unshare-net"), b.program, "--version")...); err != nil {
		return lack(fmt.Sprintf("%s cannot make a sandbox here: %v", b.program, err), bwrapHint())
	}
	return b
}

// bwrapHint is the mend where bubblewrap may not make namespaces either.
func bwrapHint() string {
	if h := hostfacts.NamespaceHint(); h != hostfacts.SeeDoctor {
		return h
	}
	return "allow it to make user namespaces, and a fresh /proc in them"
}

// unsafePlace says why somebody else could have changed a program, or "".
func unsafePlace(name string) string {
	for at := name; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return at + " cannot be looked at: " + err.Error()
		}
		if st.Mode&0o022 != 0 {
			return at + " can be written to by others"
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

// runBwrap runs bubblewrap without an environment and returns its output. An
// error carries the first line that it wrote about it.
func runBwrap(program string, args ...string) (string, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{}, "/", patience
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		if line, _, _ := strings.Cut(strings.TrimSpace(words.String()), "\n"); line != "" {
			return "", errors.New(line)
		}
		return "", err
	}
	return out.String(), nil
}

// bwrapVersion reads "bubblewrap 0.8.0"; zero when it says something else.
func bwrapVersion(s string) (v [2]int) {
	_, number, ok := strings.Cut(strings.TrimSpace(s), " ")
	parts := strings.Split(number, ".")
	if !ok || len(parts) < 2 {
		return v
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil || major < 0 || minor < 0 {
		return v
	}
	return [2]int{major, minor}
}

// bwrapFor is what a plan needs to know about bubblewrap for a request.
func (h *Host) bwrapFor(pr *plan.Request) (*plan.Bwrap, error) {
	b := h.systemBwrap()
	for _, r := range pr.Rules {
		if r.Level == sandbox.LevelWrite && (b.program == r.Path || strings.HasPrefix(b.program, strings.TrimSuffix(r.Path, "/")+"/")) {
			return nil, &sandbox.UnsupportedError{
				Need: "a bubblewrap that no command can change", Have: fmt.Sprintf("%s lies below the writable %s", b.program, r.Path),
				Hint: "name narrower writable folders",
			}
		}
	}
	folder, _, err := h.private()
	if err != nil {
		return nil, err
	}
	out := &plan.Bwrap{
		Program: b.program, Argv0: b.version[0] > 0 || b.version[1] >= 9,
		File: filepath.Join(folder, "nothing"), Folder: filepath.Join(folder, "none"),
	}
	if err := nothing(out.File, out.Folder); err != nil {
		return nil, state.TmpError(err)
	}
	return out, nil
}

// nothing makes the empty file and folder that nobody can open. They stay: any
// number of runs may use them at once.
func nothing(file, folder string) error {
	if err := syscall.Mkdir(folder, 0); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mkdir", Path: folder, Err: err}
	}
	if err := unix.Mknod(file, unix.S_IFREG, 0); err != nil && !errors.Is(err, fs.ErrExist) {
		return &fs.PathError{Op: "mknod", Path: file, Err: err}
	}
	for name, kind := range map[string]uint32{file: unix.S_IFREG, folder: unix.S_IFDIR} {
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
