// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha1" //nolint:gosec // what registries of npm name packages by
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// netPrograms are what people run to reach a host: URL, TLS_URL and HOST name it, and "reached" is what
// the program prints if it does.
var netPrograms = []struct {
	name   string
	long   bool // it takes seconds
	needs  []string
	script string
}{
	{"curl", false, []string{"curl"}, `curl -sSf --max-time 60 $URL/word`},
	{"curl over TLS", false, []string{"curl"}, `curl -sSfk --max-time 60 $TLS_URL/word`},
	{"curl by SOCKS5", false, []string{"curl"}, `curl -sSf --max-time 60 --socks5-hostname 127.0.0.1:3128 $URL/word`},
	{"Python urllib", false, []string{"python3"}, `python3 -c 'import urllib.request, os; print(urllib.request.urlopen(os.environ["URL"] + "/word").read().decode())'`},
	{"Python requests", true, []string{"python3", "python3 -c 'import requests'"}, `python3 -c 'import requests, os; r = requests.get(os.environ["URL"] + "/word"); r.raise_for_status(); print(r.text)'`},
	{"Node fetch", false, []string{"node"}, `node -e 'fetch(process.env.URL + "/word").then(async r => { if (!r.ok) process.exit(9); console.log(await r.text()) }).catch(e => { console.error(e); process.exit(8) })'`},
	{"Go, static", false, nil, `if [ -n "$HTTP_PROXY" ]; then ACT fetch $URL/word; else ACT direct $URL/word; fi`},
	{"Go, static, knows of no proxy", false, nil, `ACT direct $URL/word`},
	{"git over HTTP", false, []string{"git"}, `git clone -q $URL/repository.git copy && cat copy/file`},
	{"git over TLS", true, []string{"git"}, `git -c http.sslVerify=false clone -q $TLS_URL/repository.git copy && cat copy/file`},
	{"npm", true, []string{"npm"}, `npm install --silent --cache .cache --registry $URL --no-audit --no-fund --fetch-retries=0 tiny-package && cat node_modules/tiny-package/word`},
	{"pip", true, []string{"pip"}, `pip --isolated download -q --no-deps --no-cache-dir --retries 0 --disable-pip-version-check --index-url $URL/simple --trusted-host $HOST -d . tiny-package && unzip -p tiny_package-1.0-py3-none-any.whl tiny_package.py 2>/dev/null || python3 -c 'import zipfile; print(zipfile.ZipFile("tiny_package-1.0-py3-none-any.whl").read("tiny_package.py").decode())'`},
	{"Java", true, []string{"javac"}, `cat >X.java <<'END'
import java.net.*; import java.io.*;
public class X { public static void main(String[] a) throws Exception {
  try (var in = new URL(System.getenv("URL") + "/word").openStream()) { in.transferTo(System.out); } } }
END
java X.java`},
}

// registry serves a word, a repository, and a package for npm and for pip.
func registry(t *testing.T) http.Handler {
	t.Helper()
	const word = "reached\n"
	bare := filepath.Join(t.TempDir(), "repository.git")
	if _, err := exec.LookPath("git"); err == nil {
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `set -e; git init -q "$0.work"; cd "$0.work"; printf 'reached\n' >file; git add file
			git -c user.name=a -c user.email=a@example.org commit -qm one; git clone -q --bare . "$0"; git -C "$0" update-server-info`, bare)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var npm, wheel bytes.Buffer
	gz := gzip.NewWriter(&npm)
	tw := tar.NewWriter(gz)
	for name, text := range map[string]string{"package/package.json": `{"name":"tiny-package","version":"1.0.0"}`, "package/word": word} {
		_ = tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))})
		_, _ = io.WriteString(tw, text)
	}
	_, _ = tw.Close(), gz.Close()
	zw := zip.NewWriter(&wheel)
	for name, text := range map[string]string{
		"tiny_package.py": "# reached\n", "tiny_package-1.0.dist-info/RECORD": "",
		"tiny_package-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-package\nVersion: 1.0\n",
		"tiny_package-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	} {
		f, _ := zw.Create(name)
		_, _ = io.WriteString(f, text)
	}
	_ = zw.Close()
	sum := sha1.Sum(npm.Bytes()) //nolint:gosec // see above

	mux := http.NewServeMux()
	mux.HandleFunc("/word", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, word) })
	mux.Handle("/repository.git/", http.FileServer(http.Dir(filepath.Dir(bare))))
	mux.HandleFunc("/tiny-package", func(w http.ResponseWriter, r *http.Request) {
		version := map[string]any{"name": "tiny-package", "version": "1.0.0",
			"dist": map[string]any{"tarball": "http://" + r.Host + "/npm.tgz",
				"shasum": hex.EncodeToString(sum[:])}}
		_ = json.NewEncoder(w).Encode(map[string]any{"name": "tiny-package",
			"dist-tags": map[string]any{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version}})
	})
	mux.HandleFunc("/npm.tgz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(npm.Bytes()) })
	mux.HandleFunc("/simple/tiny-package/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w,
			`<html><body><a href="/tiny_package-1.0-py3-none-any.whl">tiny_package-1.0-py3-none-any.whl</a></body></html>`)
	})
	mux.HandleFunc("/tiny_package-1.0-py3-none-any.whl",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(wheel.Bytes()) })
	return mux
}

// missing reports whether a program, or what a command tries, is not there.
func missing(what string) bool {
	return exec.CommandContext(context.Background(), "/bin/sh", "-c", "command -v "+what+" >/dev/null || "+
		what+" 2>/dev/null").Run() != nil
}

// TestNetPrograms: real programs reach a host that is allowed and not one that is refused, with the
// variables of a proxy and without. Both names are this machine's loopback, so what is let through by
// mistake is seen.
func TestNetPrograms(t *testing.T) {
	t.Parallel()
	testenv.NeedRoot(t) // for names of its own; what an ordinary user gets is in TestManagedRedirect
	testenv.NeedUserNS(t)
	testenv.NeedProgram(t, "unshare")
	s := newManagedStage(t)
	handler := registry(t)
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	portOf := func(server *httptest.Server) string {
		_, port, err := net.SplitHostPort(server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	hosts := filepath.Join(s.root, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost allowed.test refused.test\n"),
		0o644); err != nil {
		t.Fatal(err)
	}
	// The command does not read that file: there it would find an address that is allowed, by any name.
	flags := []string{"--deny", "/etc/hosts"}
	for _, port := range []string{portOf(plain), portOf(secure)} {
		flags = append(flags, "--allow-host", "allowed.test:"+port, "--allow-host", "127.0.0.1:"+port)
	}
	for _, program := range netPrograms {
		if program.long && !testenv.IsLong() || slices.ContainsFunc(program.needs, missing) {
			continue // which tools a machine has decides
		}
		for _, variables := range []bool{true, false} {
			for _, host := range []string{"allowed.test", "refused.test"} {
				t.Run(fmt.Sprintf("%s/variables %v/%s", program.name, variables, host), func(t *testing.T) {
					dir, err := os.MkdirTemp(s.root+"/w", "")
					if err != nil {
						t.Fatal(err)
					}
					script := strings.ReplaceAll(program.script, "ACT", s.bin+"/act")
					if !variables {
						script = "unset JAVA_TOOL_OPTIONS NODE_USE_ENV_PROXY $(env | grep -i _proxy | cut -d= -f1); " + script
					}
					words := append([]string{"run"}, flags...)
					words = append(words, "-e", "URL=http://"+host+":"+portOf(plain), "-e",
						"TLS_URL=https://"+host+":"+portOf(secure), "-e", "HOST="+host, "-c", script)
					ctx, cancel := context.WithTimeout(t.Context(), attackBound)
					defer cancel()
					cmd := exec.CommandContext(ctx, "unshare",
						append([]string{"-m", "sh", "-c",
							`mount --bind "$0" /etc/hosts && exec sallyport "$@"`, hosts}, words...)...)
					cmd.Dir = dir
					cmd.Env = append(everydayEnv(s.root, s.bin), "NODE_TLS_REJECT_UNAUTHORIZED=0")
					out, err := cmd.CombinedOutput()
					reached := strings.Contains(string(out), "reached")
					if allowed := host == "allowed.test"; reached != allowed || (err == nil) != allowed &&
						program.name[:2] != "Go" {
						t.Errorf("%v\n%s", err, out)
					}
				})
			}
		}
	}
}
