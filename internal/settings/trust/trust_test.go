// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/linux/hostfacts"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

const (
	configFile = ".sallyport/config.toml"
	rules      = ".sallyport/rules"
	rule       = rules + "/x.rules"
)

// ordinary is a user who is not the one under test.
const ordinary = 1

// newProject makes a project with a configuration and a rule, and an empty state directory.
func newProject(t *testing.T) string {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", hostfacts.RealPath(t.TempDir()))
	dir := filepath.Join(hostfacts.RealPath(t.TempDir()), "project")
	fill(t, dir)
	return dir
}

func fill(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, rules), 0o755), write(dir, configFile, "level = \"native\"\n"),
		write(dir, rule, "# one\n"))
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// read reads a project, which must succeed.
func read(t *testing.T, dir string) *Project {
	t.Helper()
	p, err := Read(dir)
	must(t, err)
	return p
}

// trusted makes a project that is trusted.
func trusted(t *testing.T) string {
	t.Helper()
	dir := newProject(t)
	must(t, read(t, dir).Trust())
	if p := read(t, dir); p.State != Trusted || p.Why != "" {
		t.Fatalf("after Trust it is in the state %d: %s", p.State, p.Why)
	}
	return dir
}

// TestRead: the files are read in order, by the directory's real name; nothing is looked for in
// the directories above, and what holds no file is no project.
func TestRead(t *testing.T) {
	dir := newProject(t)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(dir, link), write(dir, rules+"/.hidden.rules", "x"),
		write(dir, rules+"/notes.txt", "x"),
		os.MkdirAll(dir+"/below", 0o755), os.MkdirAll(dir+"/empty/.sallyport", 0o755),
		os.MkdirAll(dir+"/norules/.sallyport/rules", 0o755))
	p := read(t, link)
	if p.State != Untrusted || p.Dir != dir || len(p.Files) != 2 || p.Files[0].Name != configFile ||
		p.Files[1].Name != rule ||
		p.Files[1].Path != dir+"/"+rule || string(p.Files[1].Data) != "# one\n" {
		t.Errorf("%+v", p)
	}
	for _, name := range []string{"below", "empty", "norules", "missing"} {
		if p := read(t, filepath.Join(dir, name)); p.State != None || len(p.Files) != 0 {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if err := read(t, dir+"/below").Trust(); !errors.Is(err, ErrNoFiles) {
		t.Errorf("trusting nothing: %v", err)
	}
}

// TestTrust: what is trusted stays so until it is revoked, also when the directory is gone.
func TestTrust(t *testing.T) {
	testenv.RunAsOrdinary(t)
	dir := trusted(t)
	records, err := List()
	must(t, err)
	if len(records) != 1 || records[0].Dir != dir || len(records[0].Files) != 2 ||
		time.Since(records[0].Time) > time.Hour {
		t.Errorf("%+v", records)
	}
	must(t, os.RemoveAll(dir))
	for _, want := range []bool{true, false} {
		if found, err := Revoke(dir + "/"); found != want || err != nil {
			t.Errorf("revoke: %v, %v, want %v", found, err, want)
		}
	}
	fill(t, dir)
	if p := read(t, dir); p.State != Untrusted {
		t.Errorf("after Revoke it is in the state %d", p.State)
	}
}

// TestChanged: nothing but what was trusted is trusted.
func TestChanged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	today := time.Now().Format(time.DateOnly)
	for _, test := range []struct {
		name   string
		change func(dir string) error
		why    string
	}{
		{"edit the configuration", func(dir string) error { return write(dir, configFile, "level = \"none\"\n") }, "config.toml changed since " + today},
		{"edit a rule", func(dir string) error { return write(dir, rule, "# two\n") }, "rules/x.rules changed since " + today},
		{"add a rule file", func(dir string) error { return write(dir, rules+"/y.rules", "") }, "rules/y.rules is new"},
		{"remove a rule file", func(dir string) error { return os.Remove(dir + "/" + rule) }, "rules/x.rules is missing"},
		{"remove all rules", func(dir string) error { return os.RemoveAll(dir + "/" + rules) }, "rules/x.rules is missing"},
		{"rename a rule file", func(dir string) error { return os.Rename(dir+"/"+rule, dir+"/"+rules+"/a.rules") }, "rules/a.rules is new, rules/x.rules is missing"},
		{"a name that moves terminals", func(dir string) error { return write(dir, rules+"/\x1b[2J.rules", "") }, `"rules/\x1b[2J.rules" is new`},
		{"many", func(dir string) error {
			return errors.Join(write(dir, rules+"/1.rules", ""), write(dir, rules+"/2.rules", ""),
				write(dir, rules+"/3.rules", ""), write(dir, rules+"/4.rules", ""))
		}, "rules/1.rules is new, rules/2.rules is new, rules/3.rules is new, and 1 more"},
		{"another checkout with the same files", func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".away"), os.CopyFS(dir, os.DirFS(dir+".away")))
		}, "this is another directory than the one that was trusted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := trusted(t)
			must(t, test.change(dir))
			p := read(t, dir)
			if p.State != Changed || p.Why != test.why {
				t.Errorf("state %d: %s", p.State, p.Why)
			}
			must(t, p.Trust())
			if now := read(t, dir); p.State != Trusted || p.Why != "" || now.State != Trusted {
				t.Errorf("trusted again it is in the state %d, then %d", p.State, now.State)
			}
		})
	}
}

// TestMoved: trust stays with the name; the same directory under another one is not trusted.
func TestMoved(t *testing.T) {
	dir := trusted(t)
	must(t, os.Rename(dir, dir+".moved"))
	if p := read(t, dir+".moved"); p.State != Untrusted {
		t.Errorf("state %d", p.State)
	}
}

// TestIdentity: a device number may change where the time of birth is known.
func TestIdentity(t *testing.T) {
	for _, test := range []struct {
		name string
		a, b identity
		same bool
	}{
		{"same", identity{1, 2, 3}, identity{1, 2, 3}, true},
		{"another device number", identity{1, 2, 3}, identity{9, 2, 3}, true},
		{"made later", identity{1, 2, 3}, identity{1, 2, 9}, false},
		{"another inode", identity{1, 2, 3}, identity{1, 9, 3}, false},
		{"no birth", identity{1, 2, 0}, identity{1, 2, 3}, true},
		{"no birth, another device", identity{1, 2, 0}, identity{9, 2, 3}, false},
	} {
		if test.a.same(test.b) != test.same || test.b.same(test.a) != test.same {
			t.Errorf("%s: want %v", test.name, test.same)
		}
	}
}

// TestTrustWhatWasRead: a file that changes between showing and recording is not trusted.
func TestTrustWhatWasRead(t *testing.T) {
	dir := newProject(t)
	p := read(t, dir)
	must(t, write(dir, rule, "# planted meanwhile\n"), p.Trust())
	if p := read(t, dir); p.State != Changed {
		t.Errorf("what was not shown is in the state %d", p.State)
	}
	must(t, write(dir, rule, "# one\n"))
	if p := read(t, dir); p.State != Trusted {
		t.Errorf("what was shown is in the state %d: %s", p.State, p.Why)
	}
}

// TestRefused: files that something else than their user and their name can change are not
// even read, trusted or not.
func TestRefused(t *testing.T) {
	testenv.RunAsOrdinary(t)
	link := func(name string) func(dir string) error {
		return func(dir string) error {
			at := filepath.Join(dir, name)
			return errors.Join(os.Rename(at, dir+"/elsewhere"), os.Symlink(dir+"/elsewhere", at))
		}
	}
	chmod := func(name string, mode fs.FileMode) func(dir string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
	}
	chown := func(name string) func(dir string) error {
		return func(dir string) error { return os.Lchown(filepath.Join(dir, name), ordinary, ordinary) }
	}
	instead := func(name string, f func(path string) error) func(dir string) error {
		return func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, name)), f(filepath.Join(dir, name)))
		}
	}
	for _, test := range []struct {
		name   string
		change func(dir string) error
		at     string
		why    string
	}{
		{"linked .sallyport", link(".sallyport"), ".sallyport", "it is a symbolic link"},
		{"linked rules", link(rules), rules, "it is a symbolic link"},
		{"linked configuration", link(configFile), configFile, "it is a symbolic link"},
		{"linked rule", link(rule), rule, "it is a symbolic link"},
		{"link to nothing", instead(configFile, func(path string) error { return os.Symlink("/nowhere", path) }), configFile, "it is a symbolic link"},
		{"hard link", func(dir string) error { return os.Link(dir+"/"+rule, dir+"/elsewhere") }, rule, "hard link"},
		{"foreign directory", chown(".sallyport"), ".sallyport", "it belongs to another user"},
		{"foreign rules", chown(rules), rules, "it belongs to another user"},
		{"foreign file", chown(rule), rule, "it belongs to another user"},
		{"file for everyone", chmod(configFile, 0o666), configFile, "every user can write"},
		{"directory for everyone", chmod(".sallyport", 0o777), ".sallyport", "every user can write"},
		{"rules for everyone", chmod(rules, 0o1777), rules, "every user can write"},
		{"named pipe", instead(rule, func(path string) error { return unix.Mkfifo(path, 0o600) }), rule, "it is no regular file"},
		{"directory for a file", instead(configFile, func(path string) error { return os.Mkdir(path, 0o700) }), configFile, "it is no regular file"},
		{"file for a directory", instead(rules, func(path string) error { return os.WriteFile(path, nil, 0o600) }), rules, "it is no directory"},
		{"file for .sallyport", instead(".sallyport", func(path string) error { return os.WriteFile(path, nil, 0o600) }), ".sallyport", "it is no directory"},
		{"large configuration", func(dir string) error { return os.Truncate(dir+"/"+configFile, maxConfig+1) }, configFile, "larger than 256 KiB"},
		{"large rule", func(dir string) error { return os.Truncate(dir+"/"+rule, 100<<20) }, rule, "larger than 4096 KiB"},
		{"large in all", func(dir string) error {
			var errs []error
			for i := range 5 {
				at := fmt.Sprintf("%s/%d.rules", rules, i)
				errs = append(errs, write(dir, at, ""), os.Truncate(filepath.Join(dir, at), maxRules))
			}
			return errors.Join(errs...)
		}, rules + "/3.rules", "larger than 16 MiB"},
		{"many", func(dir string) error {
			var errs []error
			for i := range maxFiles {
				errs = append(errs, write(dir, fmt.Sprintf("%s/%d.rules", rules, i), ""))
			}
			return errors.Join(errs...)
		}, rules, "more than 1024 rule files"},
		{"name that is no text", func(dir string) error { return write(dir, rules+"/\xff.rules", "") }, rules + "/\xff.rules", "not valid UTF-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.HasPrefix(test.name, "foreign") {
				testenv.NeedRoot(t)
			}
			dir := trusted(t)
			must(t, test.change(dir))
			p, err := Read(dir)
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Path != filepath.Join(dir, test.at) ||
				!strings.Contains(refused.Why, test.why) {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// TestOwners: root's files are as good as the user's own, and it does not matter who owns an
// empty directory.
func TestOwners(t *testing.T) {
	testenv.RunAsOrdinary(t)
	f, err := os.Open("/etc/passwd")
	must(t, err)
	defer f.Close()
	must(t, checkOwner(f))
	if testenv.IsRoot() {
		empty := filepath.Join(t.TempDir(), ".sallyport")
		must(t, os.Mkdir(empty, 0o755), os.Lchown(empty, ordinary, ordinary))
		if p, err := Read(filepath.Dir(empty)); err != nil || p.State != None {
			t.Errorf("an empty directory: %+v, %v", p, err)
		}
	}
}

// TestRecordDamaged: a record that Trust has not written so is an error with its place, and
// says how to forget it.
func TestRecordDamaged(t *testing.T) {
	testenv.RunAsOrdinary(t)
	replace := func(old, by string) func(path string) error {
		return func(path string) error {
			text, err := os.ReadFile(path)
			if err == nil && !strings.Contains(string(text), old) {
				err = fmt.Errorf("no %q in %s", old, text)
			}
			return errors.Join(err, os.WriteFile(path,
				[]byte(strings.Replace(string(text), old, by, 1)), 0o600))
		}
	}
	cut := func(path string) error { return os.Truncate(path, 20) }
	for _, test := range []struct {
		name   string
		damage func(path string) error
		place  string // line and column
	}{
		{"empty", func(path string) error { return os.Truncate(path, 0) }, ":1:1: "},
		{"cut", cut, ":3:"},
		{"no JSON", replace("{", "("), ":1:"},
		{"unknown member", replace(`"v": 1,`, `"v": 1, "all": true,`), ":2:9: "},
		{"member twice", replace(`"v": 1,`, `"v": 1, "v": 1,`), ":2:9: "},
		{"other case", replace(`"files"`, `"Files"`), ":8:3: "},
		{"text after it", replace("\n}\n", "\n}\n{}"), ":19:"},
		{"another type", replace(`"v": 1,`, `"v": "1",`), ":2:"},
		{"another version", replace(`"v": 1,`, `"v": 2,`), ":1:1: "},
		{"another directory", replace(`"dir": "/`, `"dir": "/other/`), ":1:1: "},
		{"no hash", replace(`"sha256": "`, `"sha256": "00`), ":1:1: "},
		{"large", func(path string) error { return os.Truncate(path, maxRecord+1) }, ":1:1: "},
		{"link", func(path string) error {
			return errors.Join(os.Rename(path, path+".away"), os.Symlink(path+".away", path))
		}, ":1:1: "},
		{"hard link", func(path string) error { return os.Link(path, path+".away") }, ":1:1: "},
		{"for everyone", func(path string) error { return os.Chmod(path, 0o666) }, ":1:1: "},
		{"foreign", func(path string) error { return os.Lchown(path, ordinary, ordinary) }, ":1:1: "},
		{"named pipe", func(path string) error {
			err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600))
			w, err2 := os.OpenFile(path, os.O_RDWR, 0) // a writer that writes nothing
			t.Cleanup(func() { w.Close() })
			return errors.Join(err, err2)
		}, ":1:1: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "foreign" {
				testenv.NeedRoot(t)
			}
			dir := trusted(t)
			path := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport/trust", recordName(dir))
			must(t, test.damage(path))
			_, err := Read(dir)
			var damaged *RecordError
			if !errors.As(err, &damaged) || !strings.HasPrefix(err.Error(), path+test.place) ||
				!strings.HasSuffix(err.Error(), "sallyport trust --revoke "+dir) {
				t.Errorf("%v", err)
			}
			if records, err := List(); len(records) != 0 || !errors.As(err, &damaged) {
				t.Errorf("listed are %+v, %v", records, err)
			}
			if found, err := Revoke(dir); !found || err != nil {
				t.Errorf("revoke: %v, %v", found, err)
			}
			if p := read(t, dir); p.State != Untrusted {
				t.Errorf("after Revoke it is in the state %d", p.State)
			}
		})
	}
}

// TestRecordOfAnother: the record of one project is not that of another, whatever its name.
func TestRecordOfAnother(t *testing.T) {
	dir := trusted(t)
	other := dir + ".other"
	fill(t, other)
	all := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport/trust")
	must(t, os.Rename(filepath.Join(all, recordName(dir)), filepath.Join(all, recordName(other))))
	var damaged *RecordError
	if p, err := Read(other); !errors.As(err, &damaged) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestStateInProject: records in the project are its own words, also where a variable that it
// has set leads there; those of a home directory are not.
func TestStateInProject(t *testing.T) {
	dir := trusted(t)
	outside := os.Getenv("XDG_STATE_HOME")
	must(t, os.CopyFS(dir+"/planted", os.DirFS(outside)), os.Chmod(dir+"/planted/sallyport", 0o700),
		os.Chmod(dir+"/planted/sallyport/trust", 0o700))
	t.Setenv("XDG_STATE_HOME", dir+"/planted")
	p := read(t, dir)
	if p.State != Untrusted {
		t.Errorf("a planted record makes the state %d", p.State)
	}
	var refused *RefusedError
	if err := p.Trust(); !errors.As(err, &refused) {
		t.Errorf("recorded in the project: %v", err)
	}
	must(t, os.MkdirAll(dir+"/.local", 0o700), os.Rename(dir+"/planted", dir+"/.local/state"))
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", dir)
	if p := read(t, dir); p.State != Untrusted {
		t.Errorf("a record in a planted HOME makes the state %d", p.State)
	}
}

// TestStateHidden: where the state directory is hidden, as from a sallyport in the sandbox,
// nothing is trusted, and that is no error.
func TestStateHidden(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.NeedOrdinaryUser(t)
	dir := trusted(t)
	state := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport")
	must(t, os.Chmod(state, 0))
	p := read(t, dir)
	must(t, os.Chmod(state, 0o700))
	if p.State != Untrusted {
		t.Errorf("state %d", p.State)
	}
}

// TestUnfinished: what a killed process has left does not matter.
func TestUnfinished(t *testing.T) {
	dir := trusted(t)
	all := filepath.Join(os.Getenv("XDG_STATE_HOME"), "sallyport/trust")
	must(t, os.WriteFile(all+"/new", []byte("{"), 0o600), write(dir, rule, "# two\n"))
	must(t, read(t, dir).Trust())
	if p := read(t, dir); p.State != Trusted {
		t.Errorf("state %d: %s", p.State, p.Why)
	}
	entries, err := os.ReadDir(all)
	must(t, err)
	if len(entries) != 1 || entries[0].Name() != recordName(dir) {
		t.Errorf("%v", entries)
	}
}

// FuzzDecode: a record that decodes is the one form of itself, and belongs to its file.
func FuzzDecode(f *testing.F) {
	p := &Project{Dir: "/w", Files: []File{{Name: configFile}, {Name: rule}}}
	text, err := p.record(time.Unix(1, 0)).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, offset, err := decode(data, recordName("/w"))
		if offset < 0 || offset > len(data) {
			t.Errorf("offset %d of %d", offset, len(data))
		}
		if err != nil {
			return
		}
		form, err := r.encode()
		if err != nil || string(form) != string(data) || r.Dir != "/w" || len(r.Files) == 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
