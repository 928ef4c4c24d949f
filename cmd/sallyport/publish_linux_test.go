// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// TestPublish: this machine reaches a server of a command at the published port, and no other one, and
// only while it runs. A port in use is told before the command runs.
func TestPublish(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "python3")
	s := newManagedStage(t)
	const server = `python3 -c 'if True:
	import socket, sys
	a, b = socket.create_server(("127.0.0.1", 3000)), socket.create_server(("127.0.0.1", 3001))
	print("ready", flush=True)
	c = a.accept()[0]
	c.sendall(b"inside"); c.close()
	sys.stdin.read()
	b.setblocking(False)
	try: b.accept(); print("3001 was reached", flush=True)
	except BlockingIOError: pass
'`
	for _, network := range []string{"none", "proxy"} {
		t.Run(network, func(t *testing.T) {
			port := freePort(t)
			cmd := s.command(t, nil, "--net", network, "--publish", "3000:"+port, "--", "sh", "-c", server)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(stdout)
			if line, err := lines.ReadString('\n'); line != "ready\n" {
				t.Fatalf("%q, %v", line, err)
			}
			if text := reach(t, port); text != "inside" {
				t.Errorf("%q", text)
			}
			out, err := s.command(t, nil, "--publish", "1:"+port, "--", "echo", "ran").CombinedOutput()
			if err == nil || strings.Contains(string(out), "ran\n") ||
				!strings.Contains(string(out), "port "+port+" of this machine is in use") {
				t.Errorf("%q, %v", out, err)
			}
			_ = stdin.Close()
			rest, _ := io.ReadAll(lines)
			if err := cmd.Wait(); err != nil || len(rest) > 0 {
				t.Errorf("%q, %v", rest, err)
			}
			if l, err := net.Listen("tcp4", "127.0.0.1:"+port); err != nil {
				t.Errorf("the port stays open: %v", err)
			} else {
				_ = l.Close()
			}
		})
	}
	for name, words := range map[string][]string{
		"the network of the host": {"--net", "host"}, "no sandbox": {"-s", "full-access"}, "a service of this machine": {"--allow-host", "localhost:3000"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := s.command(t, nil, append(words, "--publish", "3000:"+freePort(t), "--",
				"true")...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "sandbox not available") {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}

// TestPublishSettings: the user's settings publish ports, but none where a command has the network of the
// host, and a project publishes none.
func TestPublishSettings(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	port := freePort(t)
	file := s.root + "/settings.toml"
	if err := os.WriteFile(file, []byte("network.publish = ['3000:"+port+"']\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		words []string
		want  string
	}{
		"a file":                      {nil, `"published":[{"port":3000,"host_port":` + port + `}]`},
		"a file, and the same flag":   {[]string{"--publish", "3000:" + port}, `"published":[{"port":3000,"host_port":` + port + `}]`},
		"with the network of a host":  {[]string{"--net", "host"}, ""},
		"without a sandbox":           {[]string{"-s", "full-access"}, ""},
		"a flag, where it cannot be":  {[]string{"--net", "host", "--publish", "3000:" + port}, "leave out --publish"},
		"a flag, twice the same port": {[]string{"--publish", "1:" + port}, "is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _ := s.command(t, nil, append(append([]string{"--config", file, "--json"}, tt.words...),
				"--", "true")...).CombinedOutput()
			if !strings.Contains(string(out), tt.want) || tt.want == "" &&
				(strings.Contains(string(out), "published") ||
					!strings.Contains(string(out), `"exit_code":0`)) {
				t.Errorf("%s", out)
			}
		})
	}
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// reach returns what a port of this machine says first.
func reach(t *testing.T, port string) string {
	t.Helper()
	c, err := net.Dial("tcp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	text, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestLocalBinding: a program that uses the proxy reaches the server of its own command, and by no way a
// service of this machine, with the setting and without.
func TestLocalBinding(t *testing.T) {
	t.Parallel()
	testenv.RunAsOrdinary(t)
	testenv.NeedProgram(t, "curl")
	testenv.NeedProgram(t, "python3")
	s := newManagedStage(t)
	_, port, err := net.SplitHostPort(originOf(t, "of this machine"))
	must(t, err)
	script := `printf own >index.html; python3 -m http.server 8123 --bind 127.0.0.1 >log 2>&1 & ` +
		`until grep -q Serving log; do read -t 0.05 x <>fifo; done; curl -s http://localhost:8123/; echo " $?"; curl -s http://127.0.0.1:` + port + `/; echo " $?"; kill $!`
	for value, want := range map[string]string{"false": "own 0\n 7\n", "true": "own 0\n 7\n"} {
		config := filepath.Join(s.root, "home", value+".toml")
		must(t, os.WriteFile(config, []byte("[network]\nallow = ['example.org']\nallow_local_binding = "+
			value+"\n"), 0o600))
		r := s.json(t, "--config", config, "--", "bash", "-c",
			"mkfifo -m 600 fifo; export PYTHONUNBUFFERED=1; "+script+"; rm fifo log")
		if !strings.Contains(r.Output, want) || strings.Contains(r.Output, "this machine") {
			t.Errorf("%s: %q", value, r.Output)
		}
	}
}
