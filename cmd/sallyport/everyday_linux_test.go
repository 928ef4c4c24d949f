// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// An everyday is a command of daily work as it is typed, and what is said of it.
type everyday struct {
	dir     string // of the workshop
	command string // flags of run, "--", and the command for a shell
	first   string // a pattern for the first line of ours; empty for none
}

// program is the tool that a command needs.
func (e *everyday) program() string {
	_, command, _ := strings.Cut(e.command, "-- ")
	name, _, _ := strings.Cut(command, " ")
	return name
}

// toolsVar has the tests of everyday commands play those of all tools that are installed, which
// takes minutes.
const toolsVar = "SALLYPORT_TEST_TOOLS"

// quick are programs that start in no time and that every machine for tests has.
var quick = regexp.MustCompile(`^(git|sh|ls|find|grep|sed|tar|cp|mv|rm|mkdir|touch|chmod|ln|dd|sort|du|diff|env|sleep|act|false)$`)

// quiet are commands that succeed. Nothing of ours is printed.
var quiet = []everyday{
	{"git", "-- git status", ""}, {"git", "-- git log --oneline", ""}, {"git", "-- git diff --stat", ""}, {"git", "-- git show --stat", ""},
	{"git", "-- git blame f", ""}, {"git", "-- git branch -a", ""}, {"git", "-- git describe --always --dirty", ""}, {"git", "-- git grep a", ""},
	{"git", "-- git stash list", ""}, {"git", "-- git shortlog -sn HEAD", ""}, {"git", "--grant git -- git add f", ""}, {"git", "--grant git -- git commit -qam two", ""},
	{"plain", "-- ls -la", ""}, {"plain", "-- find . -name x", ""}, {"plain", "-- grep -r text .", ""}, {"plain", "-- sed -i s/a/b/ file", ""}, {"plain", "-- tar cf x.tar file", ""},
	{"plain", "-- cp file copy", ""}, {"plain", "-- sort -o sorted file", ""}, {"plain", "-- du -s .", ""}, {"plain", "-- sh -c 'echo x >new; mktemp'", ""},
	{"go", "-- go build ./...", ""}, {"go", "-- go vet ./...", ""}, {"go", "-- go test ./...", ""}, {"go", "-- go list ./...", ""}, {"go", "-- go mod tidy", ""},
	{"go", "-- go run .", ""}, {"go", "-- go env GOPATH", ""}, {"go", "-- gofmt -l .", ""},
	{"npm", "-- npm ci", ""}, {"npm", "-- npm test", ""}, {"npm", "-- npm ls", ""}, {"npm", "-- npm pack --dry-run", ""}, {"npm", "-- node -e 0", ""}, {"npm", "-- pnpm install", ""}, {"npm", "-- yarn install", ""},
	{"py", "-- python3 a.py", ""}, {"py", "-- python3 -q </dev/null", ""}, {"py", "-- python3 -m venv --without-pip .venv", ""}, {"py", "-- python3 -m unittest", ""},
	{"py", "-- python3 -m json.tool x.json", ""}, {"py", "-- pip --version", ""}, {"py", "-- pip list", ""}, {"py", "-- pytest -q", ""},
	{"c", "-- make", ""}, {"c", "-- gcc -O2 -c x.c", ""}, {"c", "-- cmake -S . -B build", ""}, {"c", "--grant cache:ccache -- ccache gcc -c x.c", ""},
	{"c", "-- gdb -batch -ex 'info files' /bin/sh", ""}, {"c", "-- less x.c", ""}, {"c", "-- vim -es -c q x.c", ""}, {"rust", "-- cargo build --offline", ""},
}

// failing are commands that fail, with the cause in the first line of ours. Where the sandbox
// is not the cause, there is no line.
var failing = []everyday{
	{"git", "-- git add f", `write .*/\.git/index\.lock .*--grant git$`},
	{"git", "-- git commit -qam two", `write .*/\.git/index\.lock .*--grant git$`},
	{"git", "-- git config a.b c", `write .*/\.git/config.* .*--grant git --rw .*/\.git/config$`},
	{"git", "-- git tag x", `write .*/\.git/refs/tags/x\.lock .*--grant git$`},
	{"git", "-- git checkout -q -b side", `write .*/\.git/.* .*--grant git$`},
	{"git", "-- git ls-remote git://192.0.2.1/x", `network is off \(192\.0\.2\.1:9418, git\); allow with --net host$`},
	{"git", "-- git log nosuch", ""},
	{"plain", "-- git init -q", `write .*/plain/\.git .*--grant git$`},
	{"plain", "-- sh -c 'echo x >../out/file'", `write .*/out/file \(EROFS\); allow with --rw .*/out/file$`},
	{"plain", "-- sh -c 'echo x >>$HOME/.lesshst; echo x >../out/file'", `write .*/out/file `},
	{"plain", "-- mkdir ../out/new", `write .*/out/new \(EROFS\); allow with --rw .*/out$`},
	{"plain", "-- rm ../out/file", `write .*/out/file `},
	{"plain", "-- mv file ../out/moved", `write .*/out/moved `},
	{"plain", "-- cp file /etc/sallyport-test", `write /etc/sallyport-test \(EROFS\)($|: no grant opens it: this user may not |; allow with --rw /etc \(warning: )`},
	{"plain", "-- touch ../out/file", `write .*/out/file `},
	{"plain", "-- chmod 600 ../out/file", `write .*/out/file `},
	{"plain", "-- ln -s x ../out/link", `write .*/out/link `},
	{"plain", "-- sed -i s/a/b/ ../out/file", `write .*/out/`},
	{"plain", "-- dd if=file of=../out/file status=none", `write .*/out/file `},
	{"plain", "-- tar xf x.tar -C ../out", `write .*/out/inner`},
	{"plain", "-- sh -c 'echo x >.vscode/tasks.json'", `write .*/\.vscode/tasks\.json \(EROFS\); allow with --grant editor-config$`},
	{"plain", "-- sh -c 'echo x >$HOME/.bashrc'", `write ~/\.bashrc \(EROFS\); allow with --rw .*/\.bashrc \(warning: `},
	{"plain", "--timeout 50ms -- sleep 60", `timed out after 50ms$`},
	{"plain", "--deny file -- sh -c 'cat file'", `read .*/plain/file \(EACCES\); denied by `},
	{"plain", "-- false", ""},
	{"plain", "-- unshare -U true", `unshare\(CLONE_NEWUSER\) \(EPERM\); allow with --allow userns$`},
	{"plain", "-- getent hosts sallyport.example", `network is off \(DNS lookup, getent\)`},
	{"plain", "-- curl -s http://192.0.2.1/", `network is off \(192\.0\.2\.1:80, curl\)`},
	{"plain", "-- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'", `network is off \(192\.0\.2\.1:80, bash\)`},
	{"go", "-- go build -o ../out/program .", `write .*/out`},
	{"go", "-- go get example.org/x@v1.0.0", `network is off \(DNS lookup, go\)`},
	{"go", "-- go vet ./nosuch", ""},
	{"npm", "-- npm install left-pad --fetch-retries=0", `network is off \(DNS lookup, npm\)`},
	{"npm", "-- node -e 'require(\"fs\").writeFileSync(\"../out/file\", \"x\")'", `write .*/out/file `},
	{"npm", "-- npm run nosuch", ""},
	{"py", "-- python3 -c 'open(\"../out/file\", \"w\")'", `write .*/out/file `},
	{"py", "-- pip install --retries 0 sallyport-test", `network is off \(DNS lookup, pip\)`},
	{"c", "-- make install PREFIX=../out", `write .*/out/installed `},
	{"c", "-- gcc -o ../out/x x.c", `write .*/out/x `},
	{"c", "-- gcc nosuch.c", ""},
	{"c", "-- ccache gcc -c x.c", `write .*--grant cache:ccache$`},
}

// newWorkshop makes a directory with a small project of each kind.
func newWorkshop(t *testing.T) string {
	t.Helper()
	root := workRoot(t)
	for name, text := range map[string]string{
		"plain/file": "text a\n", "plain/.vscode/tasks.json": "{}\n", "plain/inner": "x\n", "out/file": "old\n", "home/.bashrc": "\n", "home/.lesshst": "\n", "git/f": "a\n",
		"go/go.mod": "module example.org/w\n\ngo 1.20\n", "go/main.go": "package main\n\nfunc main() {}\n",
		"go/main_test.go":       "package main\n\nimport \"testing\"\n\nfunc TestMain_(t *testing.T) {}\n",
		"npm/package.json":      `{"name":"w","version":"1.0.0","scripts":{"test":"node -e 0"}}`,
		"npm/package-lock.json": `{"name":"w","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{"":{"name":"w","version":"1.0.0"}}}`,
		"npm/pnpm-lock.yaml":    "lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n", "npm/yarn.lock": "",
		"py/a.py": "import b\n", "py/b.py": "x = 1\n", "py/x.json": "{}\n", "py/requirements.txt": "",
		"py/test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test(self): pass\n",
		"c/x.c":        "int main(void) { return 0; }\n", "c/CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nadd_executable(x x.c)\n",
		"c/Makefile":      "x: x.c\n\t$(CC) -g -o x x.c\ninstall:\n\tcp x.c $(PREFIX)/installed\n",
		"rust/Cargo.toml": "[package]\nname = \"w\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "rust/src/main.rs": "fn main() {}\n",
	} {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	setup := "cd " + root + "/plain && { ! command -v tar || tar cf x.tar inner; } && rm inner && cd ../git && git init -q . && git add f && git -c user.name=a -c user.email=a@example.org commit -qm one && echo b >>f"
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", setup)
	cmd.Env = everydayEnv(root, "")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return root
}

// everydayEnv is the environment at a desk: the machine's tools, and a home of its own. What
// tools are installed below the real home stays usable.
func everydayEnv(root, bin string) []string {
	env := []string{
		"HOME=" + root + "/home", "XDG_STATE_HOME=" + root + "/state", "GORACE=" + noRaceSleep, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "PIP_BREAK_SYSTEM_PACKAGES=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "PATH=" + bin + ":" + os.Getenv("PATH"),
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return env
	}
	for name, dir := range map[string]string{"RUSTUP_HOME": home + "/.rustup",
		"PYENV_ROOT": home + "/.pyenv"} {
		if _, err := os.Stat(dir); err == nil {
			env = append(env, name+"="+dir)
		}
	}
	return env
}

// warmGo returns a variable that leads to a cache with what the Go commands of the tables need,
// for the tests of all tools: each of them would compile the standard library otherwise.
func warmGo(t *testing.T) []string {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil || os.Getenv(toolsVar) == "" {
		return nil
	}
	root := newWorkshop(t)
	goCache := []string{"GOCACHE=" + root + "/home/go-build"}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c",
		"go vet ./... && go test ./... && go build -o /dev/null .")
	cmd.Dir, cmd.Env = root+"/go", append(everydayEnv(root, ""), goCache...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return goCache
}

// ours returns the lines of ours in what was printed.
func ours(stderr string) []string {
	var out []string
	for line := range strings.Lines(stderr) {
		if rest, ok := strings.CutPrefix(line, "sallyport: "); ok {
			out = append(out, strings.TrimSuffix(rest, "\n"))
		}
	}
	return out
}

// playEveryday runs the commands whose programs are there, the slow ones with toolsVar only.
func playEveryday(t *testing.T, list []everyday, least int,
	check func(t *testing.T, e *everyday, code int, lines []string)) {
	if len(list) < least {
		t.Errorf("%d commands, want %d", len(list), least)
	}
	testenv.NeedProgram(t, "git")
	bin, goCache := placeAct(t), warmGo(t)
	for _, e := range list {
		program := e.program()
		_, err := exec.LookPath(program)
		if program != "act" && err != nil || !quick.MatchString(program) && os.Getenv(toolsVar) == "" {
			continue // which tools a machine has decides
		}
		t.Run(e.command, func(t *testing.T) {
			root := newWorkshop(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "/bin/sh", "-c", "exec sallyport run "+e.command)
			cmd.Dir, cmd.Env = filepath.Join(root, e.dir), append(everydayEnv(root, bin), goCache...)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			code := testenv.Code(cmd.ProcessState)
			check(t, &e, code, ours(stderr.String()))
			if t.Failed() {
				t.Logf("exit code %d, %v, stdout %.1000s, stderr %.2000s", code, err, out, stderr.String())
			}
		})
	}
}

// TestOrdinaryCommandsAreQuiet: nothing of ours is printed when an ordinary command succeeds.
func TestOrdinaryCommandsAreQuiet(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	playEveryday(t, quiet, 40, func(t *testing.T, _ *everyday, code int, lines []string) {
		if code != 0 {
			t.Error("it failed")
		}
		if len(lines) > 0 {
			t.Errorf("we said %q", lines)
		}
	})
}

// TestFailuresNameTheirCause: the first line of ours is the true cause, and there are three at
// most.
func TestFailuresNameTheirCause(t *testing.T) {
	t.Parallel()
	testenv.NeedUserNS(t)
	playEveryday(t, failing, 25, func(t *testing.T, e *everyday, code int, lines []string) {
		if code == 0 {
			t.Error("it succeeded")
		}
		switch {
		case e.first == "" && len(lines) > 0:
			t.Errorf("we said %q", lines)
		case e.first != "" && (len(lines) == 0 || len(lines) > 3 ||
			!regexp.MustCompile(e.first).MatchString(lines[0])):
			t.Errorf("we said %q, want first %s", lines, e.first)
		}
	})
}
