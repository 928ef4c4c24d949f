// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package linux

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// outside runs a program without a sandbox, with the arena's home.
func (c *cached) outside(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q outside: %v\n%s", args, err, out)
	}
	return string(out)
}

// goEnv is an environment for the go command that reads nothing of the machine's.
func (c *cached) goEnv(goProgram string) []string {
	return []string{
		"PATH=" + filepath.Dir(goProgram) + ":/usr/bin:/bin", "HOME=" + c.home,
		"GOTOOLCHAIN=local", "GOFLAGS=-buildvcs=false", "GOENV=off", "CGO_ENABLED=0", "GOPROXY=off",
	}
}

// compiled counts what the go command compiled anew, by what it prints with -x.
func compiled(out string) int {
	return len(regexp.MustCompile(`(?m)/compile -o `).FindAllString(out, -1))
}

// module makes a module with a package that needs others of the library, which
// needs no runtime to be compiled.
func module(t *testing.T, dir string, program bool) {
	t.Helper()
	must(t, os.MkdirAll(dir+"/in", 0o755))
	write(t, dir+"/go.mod", "module example.org/m\n\ngo 1.26\n")
	write(t, dir+"/in/in.go", "package in\n\nfunc Two() int { return 2 }\n")
	write(t, dir+"/lib.go", "package m\n\nimport \"example.org/m/in\"\n\nfunc Four() int { return in.Two() * in.Two() }\n")
	if program {
		must(t, os.MkdirAll(dir+"/cmd", 0o755))
		write(t, dir+"/cmd/main.go",
			"package main\n\nimport \"example.org/m\"\n\nfunc main() { println(m.Four()) }\n")
	}
}

// TestGoCache: what the host has compiled is not compiled again inside, what is
// compiled inside is there for the next run, and the host's cache stays as it is,
// to the inode. A command that poisons every entry reaches nobody else.
func TestGoCache(t *testing.T) {
	testenv.RunAsOrdinary(t)
	goProgram := testenv.NeedProgram(t, "go")
	c := newCached(t)
	env := c.goEnv(goProgram)
	program := os.Geteuid() == 0 && testenv.IsLong() // once is enough: it compiles the runtime
	module(t, c.ws, program)
	if n := compiled(c.outside(t, c.ws, env, goProgram, "build", "-x", "./...")); n < 2 {
		t.Fatalf("outside, %d packages were compiled", n)
	}
	other := c.in(t, "other")
	module(t, other.dir, false)
	c.outside(t, other.dir, env, goProgram, "build", "./...")
	must(t, os.MkdirAll(c.home+"/go/pkg/mod", 0o755)) // else both are made
	must(t, os.MkdirAll(c.home+"/go/pkg/sumdb", 0o755))
	unchanged(t, c.home)
	build := func(j *job) (int, string) {
		t.Helper()
		j.args, j.env = []string{goProgram, "build", "-x", "./..."}, env
		res, err := c.run(t, j)
		must(t, err)
		if res.code != 0 {
			t.Errorf("inside: %d\n%s", res.code, res.err)
		}
		return compiled(res.err), res.err
	}
	for range 2 {
		if n, text := build(&job{}); n != 0 {
			t.Errorf("inside, %d packages were compiled that the host has:\n%s", n, text)
		}
	}
	write(t, c.ws+"/in/in.go", "package in\n\nfunc Two() int { return 1 + 1 }\n")
	if n, _ := build(&job{}); n == 0 {
		t.Error("a change was not compiled")
	}
	if n, text := build(&job{}); n != 0 {
		t.Errorf("what a run has compiled was compiled again: %d\n%s", n, text)
	}
	c.sh(t, &job{}, `for f in $HOME/.cache/go-build/*/*-d; do echo poison >"$f"; done`)
	if got := c.sh(t, &job{}, `cat $HOME/.cache/go-build/*/*-d | sort -u | head -c 9`); got != "poison\n" {
		t.Errorf("the poison is %q", got)
	}
	if n, text := build(other); n != 0 {
		t.Errorf("another workspace compiled %d packages:\n%s", n, text)
	}
}

// A tool is an installed program that is tried when it is there: none is needed.
type tool struct {
	name  string
	setUp func(t *testing.T, c *cached) // outside, before the home is looked at
	line  string                        // inside; ends with what is printed
	want  string
	grows string // below the home, what the tool leaves in the layer
}

// installed finds a program where every user may start it.
func installed(name string) string {
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	if path, err := exec.LookPath(name); err == nil && os.Geteuid() == 0 {
		return path
	}
	return ""
}

// TestTools: what people do first with a package works, as it does outside, and
// leaves the host's cache as it is.
func TestTools(t *testing.T) {
	testenv.RunAsOrdinary(t)
	for _, tool := range []tool{
		{
			name: "npm", grows: ".npm/_logs",
			setUp: func(t *testing.T, c *cached) {
				must(t, os.MkdirAll(c.ws+"/local", 0o755))
				write(t, c.ws+"/local/package.json", `{"name":"local","version":"1.0.0","main":"i.js"}`)
				write(t, c.ws+"/local/i.js", "module.exports = 42\n")
			},
			line: `npm install --no-audit --no-fund --no-update-notifier ./local >&2 && npm cache verify >&2 && node -p 'require("local")'`, want: "42\n",
		},
		{
			name: "pip3", grows: ".cache/pip",
			setUp: func(t *testing.T, c *cached) {
				write(t, c.ws+"/requirements.txt", "tiny\n")
				must(t, os.MkdirAll(c.home+"/.cache/pip", 0o755))
				must(t, os.WriteFile(c.ws+"/tiny-1.0-py3-none-any.whl", wheel(t), 0o644))
			},
			line: `pip3 install --no-index --no-deps --target lib ./tiny-1.0-py3-none-any.whl >&2 && touch $(pip3 cache dir)/x && PYTHONPATH=lib python3 -c 'import tiny; print(tiny.answer)'`,
			want: "42\n",
		},
		{
			name: "cargo", grows: ".cargo/registry",
			setUp: func(t *testing.T, c *cached) {
				must(t, os.MkdirAll(c.home+"/.cargo/registry", 0o755))
				must(t, os.MkdirAll(c.home+"/.cargo/git", 0o755)) // else it is made
				must(t, os.MkdirAll(c.ws+"/src", 0o755))
				write(t, c.ws+"/Cargo.toml",
					"[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n")
				write(t, c.ws+"/src/main.rs", "fn main() { println!(\"42\") }\n")
			},
			line: `cargo build --offline >&2 && touch $HOME/.cargo/registry/x && ./target/debug/tiny`, want: "42\n",
		},
	} {
		path := installed(tool.name)
		if path == "" {
			t.Logf("%s is not installed for this user; what it does is not tried", tool.name)
			continue
		}
		t.Run(tool.name, func(t *testing.T) {
			c := newCached(t)
			tool.setUp(t, c)
			unchanged(t, c.home)
			env := c.env("GOTOOLCHAIN=local")
			env[0] = "PATH=" + filepath.Dir(path) + ":/usr/bin:/bin"
			if home := os.Getenv("HOME"); os.Geteuid() == 0 && home != "" {
				env = append(env, "RUSTUP_HOME="+home+"/.rustup")
			}
			res, err := c.run(t, &job{args: sh(tool.line), env: env})
			must(t, err)
			if res.code != 0 || res.out != tool.want {
				t.Errorf("%d, %q\n%s", res.code, res.out, res.err)
			}
			if got := c.sh(t, &job{env: env}, "ls -A $HOME/"+tool.grows); got == "" {
				t.Errorf("nothing was left in %s", tool.grows)
			}
		})
	}
}

// wheel is the smallest package that pip installs.
func wheel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{"tiny.py", "answer = 42\n"},
		{"tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"},
		{"tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"tiny-1.0.dist-info/RECORD", "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\ntiny-1.0.dist-info/WHEEL,,\ntiny-1.0.dist-info/RECORD,,\n"},
	} {
		e, err := w.Create(f[0])
		must(t, err)
		_, err = e.Write([]byte(f[1]))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// TestKilledFrontEndFreesSlot: after SIGKILL of the program that runs a command, the
// next run gets the same layer.
func TestKilledFrontEndFreesSlot(t *testing.T) {
	testenv.RunAsOrdinary(t)
	c := newCached(t)
	f := startFront(t, c.arena, "hold", "hold")
	before, err := filepath.Glob(c.base + "/state/sallyport/caches/*/*slot-*")
	if err != nil || len(before) != 1 {
		t.Fatalf("slots: %v, %v", before, err)
	}
	slot, err := os.Open(before[0])
	must(t, err)
	defer slot.Close()
	if err := unix.Flock(int(slot.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		t.Fatal("the slot of a run is free")
	}
	must(t, f.cmd.Process.Kill())
	_ = f.cmd.Wait()
	must(t, unix.Flock(int(slot.Fd()), unix.LOCK_EX)) // waits for the reaper, which the kernel ends with it
	must(t, unix.Flock(int(slot.Fd()), unix.LOCK_UN))
	policy := bind(sandbox.WorkspaceWrite(c.ws), c.ws)
	if got := c.sh(t, &job{policy: &policy}, "echo x >$HOME/.npm/x && echo ok"); got != "ok\n" {
		t.Errorf("the next run: %q", got)
	}
	if _, err := os.Stat(before[0] + "/npm/upper/x"); err != nil {
		t.Errorf("the next run took another slot: %v", err)
	}
}
