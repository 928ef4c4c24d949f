// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/internal/test/testenv"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A project is a small real one: files, and commands that must do inside what
// they do outside.
type project struct {
	name     string
	programs []string
	files    map[string]string
	script   string
	want     []string // parts of the output
}

func projects() []project {
	return []project{
		{
			name: "C build", programs: []string{"make", "gcc"},
			files: map[string]string{
				"Makefile": "all: hello\n\t./hello\nhello: hello.c\n\tgcc -O1 -o hello hello.c\n",
				"hello.c":  "#include <stdio.h>\nint main(void) { puts(\"built\"); return 0; }\n",
			},
			script: "make", want: []string{"built"},
		},
		{
			name: "npm test", programs: []string{"npm", "node"},
			files: map[string]string{
				"package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"node test.js"}}`,
				"test.js": `const http = require('http'), { Worker } = require('worker_threads');
const server = http.createServer((q, r) => r.end('served')).listen(0, '127.0.0.1', () => {
  http.get({ port: server.address().port }, r => r.on('data', d => {
    console.log(String(d));
    new Worker("console.log('worked')", { eval: true }).on('exit', () => server.close());
  }));
});`,
			},
			script: "npm test", want: []string{"served", "worked"},
		},
		{
			name: "Python with processes and a database", programs: []string{"python3"},
			files: map[string]string{"main.py": `import multiprocessing, sqlite3
def square(x): return x * x
if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print("squares", sum(pool.map(square, range(10))))
    db = sqlite3.connect("data.db")
    db.execute("pragma journal_mode=wal")
    db.execute("create table t (v)")
    db.execute("insert into t values (42)")
    db.commit()
    print("row", db.execute("select v from t").fetchone()[0])
`},
			script: "python3 main.py", want: []string{"squares 285", "row 42"},
		},
		{
			name: "TCP on loopback", programs: []string{"python3"},
			files: map[string]string{"tcp.py": `import socket, threading
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    server = socket.socket(family)
    server.bind((host, 0))
    server.listen()
    def serve():
        peer, _ = server.accept()
        peer.sendall(b"hello from " + host.encode())
        peer.close()
    threading.Thread(target=serve).start()
    print(socket.create_connection(server.getsockname()[:2]).recv(100).decode())
`},
			script: "python3 tcp.py", want: []string{"hello from 127.0.0.1", "hello from ::1"},
		},
		{
			name: "shell script with jobs and pipes", programs: nil,
			files: map[string]string{"job.sh": `set -e
tmp=$(mktemp); echo data >"$tmp"; cat "$tmp"
(echo one; echo two) | sort -r | head -n 1
sleep 0.01 & wait
cat <<END
here
END
echo done >/dev/stderr`},
			script: "sh job.sh", want: []string{"data", "two", "here", "done"},
		},
	}
}

// TestRealProjects runs them in a workspace, by the default policy.
func TestRealProjects(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.Clean(t)
	for _, p := range projects() {
		t.Run(p.name, func(t *testing.T) {
			for _, program := range p.programs {
				testenv.NeedProgram(t, program)
			}
			c := sallyport.Script(p.script)
			c.Dir = t.TempDir()
			for name, text := range p.files {
				if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c.Shell, c.EnvPolicy = "/bin/sh", sallyport.EnvPolicy{Inherit: sallyport.InheritAll}
			wantAll(t, run(t, newRunner(t, sandbox.WorkspaceWrite(".")), c), p.want)
		})
	}
}

func wantAll(t *testing.T, res *sallyport.Result, want []string) {
	t.Helper()
	out := res.Output.String()
	if res.ExitCode != 0 {
		t.Errorf("exit %d:\n%s", res.ExitCode, out)
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("%q is missing in:\n%s", w, out)
		}
	}
}

// TestGitReads looks at a repository, whose .git is read-only.
func TestGitReads(t *testing.T) {
	testenv.RunAsOrdinary(t)
	testenv.Clean(t)
	testenv.NeedProgram(t, "git")
	dir := t.TempDir()
	outside := newRunner(t, sandbox.FullAccess())
	made := sallyport.Script(`git init -q . && git config user.email a@example.org && git config user.name a &&
		echo text >file && git add file && git commit -qm first && echo more >>file`)
	made.Dir, made.Shell, made.EnvPolicy = dir, "/bin/sh", sallyport.EnvPolicy{Inherit: sallyport.InheritAll}
	wantAll(t, run(t, outside, made), nil)

	inside := newRunner(t, sandbox.WorkspaceWrite("."))
	c := sallyport.Script("git status --short && git log --oneline && git diff --stat && ! git commit -qam second 2>/dev/null && echo kept")
	c.Dir, c.Shell, c.EnvPolicy = dir, "/bin/sh", sallyport.EnvPolicy{Inherit: sallyport.InheritAll}
	wantAll(t, run(t, inside, c), []string{" M file", "first", "file | 1 +", "kept"})
}
