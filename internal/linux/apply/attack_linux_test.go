// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/safefile"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// put writes a file of the stage, as a command in an overlay would.
func (x *trial) put(path, text string) {
	x.Helper()
	name := filepath.Join(x.dir, "upper", path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
		os.WriteFile(name, []byte(text), 0o644)); err != nil {
		x.Fatal(err)
	}
}

// TestSwappedForLinks applies while the directories on the way are exchanged for links to elsewhere: at
// every step once, and at random while another program does nothing else.
//
// Attack: a program beside has a link in the place of a directory, or of the root, that leads to files
// which the stage must not reach. Wall: directories are opened one in the other, and no link is followed.
func TestSwappedForLinks(t *testing.T) {
	for _, swapped := range []string{"host", "host/d", "host/d/f"} {
		t.Run(swapped, func(t *testing.T) {
			for round := range testenv.Rounds(32, 100) {
				top := mkdir(t, t.TempDir(), "x")
				x := newTrial(t, top)
				x.host(hosts...)
				outside := mkdir(t, top, "outside")
				if err := perform(outside, hosts); err != nil {
					t.Fatal(err)
				}
				for _, path := range []string{"a", "d/e", "d/n", "d/f/g", "d/f/n", "d/f/m/n"} {
					x.put(path, "new")
				}
				if err := unix.Mknod(filepath.Join(x.dir, "upper/b"), unix.S_IFCHR, 0); err != nil {
					t.Fatal(err)
				}
				// without a record of what was there: nothing is a conflict
				s, err := openStage(x.dir, x.root)
				if err != nil {
					t.Fatal(err)
				}
				want := look(t, outside)
				link, at := filepath.Join(top, "link"), filepath.Join(top, swapped)
				to, _ := strings.CutPrefix(swapped, "host")
				if err := os.Symlink(outside+to, link); err != nil {
					t.Fatal(err)
				}
				swap := func() {
					_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, link,
						unix.RENAME_EXCHANGE)
				}
				n, even := 0, round%2 == 0
				s.step = func(string) {
					if n++; even && n == 1+round/2 {
						swap()
					}
				}
				t.Run("", func(t *testing.T) {
					if !even {
						testenv.Swap(t, at, link)
					}
					a, err := Apply(context.Background(), s, executor.ApplyOptions{Force: round%4 > 1})
					if err == nil && a.Left != 0 {
						t.Errorf("%+v", a)
					}
				})
				if diff := cmp.Diff(want, look(t, outside)); diff != "" {
					t.Fatalf("round %d: it was applied through the link: %s", round, diff)
				}
				if err := safefile.RemoveTreePath(top); err != nil {
					t.Fatal(err)
				}
				mkdir(t, top)
			}
		})
	}
}

// TestTampered applies stages that were edited by hand, or that a command made what it may not make.
func TestTampered(t *testing.T) {
	testenv.RunAsOrdinary(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.host(op{Do: "mkdir", A: ".git", N: 0o755}, op{Do: "mkdir", A: ".git/hooks", N: 0o755},
		op{Do: "mkdir", A: "sub", N: 0o755},
		op{Do: "mkdir", A: "sub/.git", N: 0o755}, op{Do: "write", A: "sub/.git/config", B: "old", N: 1})
	x.put("a", "new")
	x.put(".git/hooks/pre-commit", "evil")
	x.put(".envrc", "evil")
	x.put("b/planted", "it is a file of the host")
	x.put("setuid", "evil")
	x.put("d/"+tempName("4f2a0123456789ab"), "evil")
	upper := func(name string) string { return filepath.Join(x.dir, "upper", name) }
	err := errors.Join(unix.Mkfifo(upper("pipe"), 0o600), os.Chmod(upper("setuid"), 0o4755|os.ModeSetuid),
		unix.Mknod(upper("sub"), unix.S_IFCHR, 0), os.Symlink("/etc", upper("etc")))
	if err != nil {
		t.Fatal(err)
	}
	if testenv.IsRoot() {
		if err := unix.Mknod(upper("disk"), unix.S_IFBLK, int(unix.Mkdev(8, 0))); err != nil {
			t.Log("no devices here: ", err)
		}
	}
	s := x.open()
	s.Closed = func(path string) error { // as protected names are
		for name := range strings.SplitSeq(path, "/") {
			if name == ".git" || name == ".envrc" {
				return errors.New(name + " stays closed")
			}
		}
		return nil
	}
	before := look(t, x.root)
	outside := filepath.Join(x.dir, "outside")
	line, err := json.Marshal(note{Path: []byte("../stage/outside")})
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Join(mkdir(t, outside), tempName(s.ID))
	if err := errors.Join(os.WriteFile(temp, nil, 0o600),
		os.WriteFile(filepath.Join(x.dir, journalName), append(line, '\n'), 0o600)); err != nil {
		t.Fatal(err)
	}
	a := x.apply(executor.ApplyOptions{Force: true})
	if _, err := os.Lstat(temp); err != nil {
		t.Errorf("the journal leads out of the root: %v", err)
	}
	refused := map[string]string{}
	for _, r := range a.Refused {
		refused[r.Path] = r.Reason
	}
	for path, why := range map[string]string{
		".git/hooks/pre-commit": "policy", ".envrc": "policy", "pipe": "special", "setuid": "set-uid",
		"sub":                 "what is in it",
		"d/" + tempName(s.ID): "temporary",
	} {
		if !strings.Contains(refused[path], why) {
			t.Errorf("%s: %q, want %q", path, refused[path], why)
		}
	}
	now := look(t, x.root)
	for path := range now {
		if _, ok := before[path]; !ok && path != "b/planted" && path != "etc" {
			t.Errorf("%s was applied", path)
		}
	}
	if now["etc"].Text != "/etc" || now["sub/.git/config"] != before["sub/.git/config"] {
		t.Errorf("%+v, %+v", now["etc"], now["sub/.git/config"])
	}
	if a.Left != len(a.Refused) || len(x.changes()) != len(a.Refused) {
		t.Errorf("left %d of %q, refused %+v", a.Left, x.changes(), a.Refused)
	}
}

// TestMountBelow: a directory with another file system in it is not removed, and nothing is written to
// the other.
func TestMountBelow(t *testing.T) {
	testenv.NeedUserNS(t)
	x := newTrial(t, mkdir(t, t.TempDir(), "x"))
	x.host(hosts...)
	x.put("d/f/g", "new")
	if err := unix.Mknod(filepath.Join(x.dir, "upper/m"), unix.S_IFCHR, 0); err != nil {
		t.Fatal(err)
	}
	x.host(op{Do: "mkdir", A: "m", N: 0o755}, op{Do: "mkdir", A: "m/n", N: 0o755})
	x.open()
	inNamespaces(t, &childTask{Stage: x.dir, Root: x.root, Mounts: []string{"d/f", "m/n"}})
	if now := look(t, x.root); now["m/n"].Kind == "" || now["d/f/g"].Kind == "" {
		t.Errorf("%+v", now)
	}
}

// mounted applies while file systems are mounted below the root, and reports what is in them.
func (c *childTask) mounted() error {
	for _, m := range c.Mounts {
		dir := filepath.Join(c.Root, m)
		if err := errors.Join(unix.Mount("tmpfs", dir, "tmpfs", 0, ""),
			os.WriteFile(filepath.Join(dir, "g"), []byte("mounted"), 0o644)); err != nil {
			return err
		}
	}
	s, err := openStage(c.Stage, c.Root)
	if err != nil {
		return err
	}
	a, err := Apply(context.Background(), s, executor.ApplyOptions{Force: true})
	if err == nil && len(a.Refused) == 0 {
		return fmt.Errorf("nothing failed: %+v", a)
	}
	for _, m := range c.Mounts {
		text, err := os.ReadFile(filepath.Join(c.Root, m, "g"))
		if err != nil || string(text) != "mounted" {
			return fmt.Errorf("%s: %q, %w", m, text, err)
		}
	}
	return nil
}
