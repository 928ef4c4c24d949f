// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/internal/test/testenv"
)

// newInspected is a stage whose settings have the mode limited, and a server over TLS that it allows and
// trusts.
func newInspected(t *testing.T, more string) (*managedStage, string) {
	t.Helper()
	testenv.RunAsOrdinary(t)
	s := newManagedStage(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %d\n", r.Method, r.Host, r.URL, len(body))
	}))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	trusted := s.root + "/home/origin.pem"
	must(t, os.WriteFile(trusted,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	must(t, os.MkdirAll(s.root+"/home/.config/sallyport", 0o700))
	text := fmt.Sprintf("[network]\nmode = 'limited'\nallow = ['%s']\n[network.mitm]\nextra_ca = ['~/origin.pem']\n%s", host, more)
	must(t, os.WriteFile(s.root+"/home/.config/sallyport/config.toml", []byte(text), 0o600))
	return s, host
}

// certificateFiles are the bundles below a directory.
func certificateFiles(t *testing.T, root string) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == "certificates.pem" || d.Name() == "certificates.p12") {
			found = append(found, name)
		}
		return nil
	}))
	return found
}

// javaGet makes a Java program that prints what a URL has.
const javaGet = `cat >X.java <<'END'
public class X { public static void main(String[] a) throws Exception {
  try (var in = new java.net.URL(a[0]).openStream()) { in.transferTo(System.out); } } }
END
`

// TestInspectPrograms: programs read over TLS without options of theirs, and what writes is refused with
// the reason.
func TestInspectPrograms(t *testing.T) {
	t.Parallel()
	s, host := newInspected(t, "")
	for _, tt := range []struct {
		name, needs, script, want string
	}{
		{"curl", "curl", `curl -sS https://HOST/a?b`, "GET HOST /a?b 0\n"},
		{"curl without the variables", "curl", `env -i curl -sS https://HOST/a`, "GET HOST /a 0\n"},
		{"curl by SOCKS5", "curl", `curl -sS --socks5-hostname 127.0.0.1:3128 https://HOST/a`, "GET HOST /a 0\n"},
		{"curl that writes", "curl", `curl -sS -d x -o /dev/null -w '%{http_code} %header{x-proxy-error}' https://HOST/a`, "403 blocked-by-method-policy"},
		{"curl that writes past the proxy", "curl", `env -i curl -sS -X DELETE -o /dev/null -w '%{http_code}' https://HOST/a`, "403"},
		{"a websocket", "curl", `curl -sS --http1.1 -o /dev/null -w '%{http_code}' -H 'Connection: Upgrade' -H 'Upgrade: websocket' https://HOST/a`, "403"},
		{"another host inside", "curl", `curl -sS -o /dev/null -w '%{http_code}' -H 'Host: evil.test' https://HOST/a`, "400"},
		{"Python urllib", "python3", `python3 -c 'import urllib.request; print(urllib.request.urlopen("https://HOST/py").read().decode(), end="")'`, "GET HOST /py 0\n"},
		{"Node", "node", `node -e 'fetch("https://HOST/node").then(r => r.text()).then(t => process.stdout.write(t))'`, "GET HOST /node 0\n"},
		{"Go", "", `act fetch https://HOST/go`, "200 GET HOST /go 0\n\n"},
		{"Go, knows of no proxy", "", `act direct https://HOST/go`, "200 GET HOST /go 0\n\n"},
		{"Java", "javac", javaGet + `java X.java https://HOST/java 2>/dev/null`, "GET HOST /java 0\n"},
		{"Java without options", "javac", javaGet + `unset JAVA_TOOL_OPTIONS; java X.java https://HOST/java 2>&1 | grep -m1 -o 'PKIX path building failed'`, "PKIX path building failed\n"},
		{"the store of Java", "", `f=/run/sallyport/certificates.p12; test -s $f && ! chmod u+w $f 2>/dev/null && ! touch $f 2>/dev/null && ! mv $f $f.2 2>/dev/null && ! touch ${f%/*}/x 2>/dev/null && echo closed`, "closed\n"},
		{"the file", "", `echo x >"$SSL_CERT_FILE" || echo closed`, "closed\n"},
		{"the file, of its owner", "", `stat -c %u "$SSL_CERT_FILE" | grep -qx "$(id -u)" && ! chmod u+w "$SSL_CERT_FILE" 2>/dev/null && ! touch "$SSL_CERT_FILE" 2>/dev/null && echo closed`, "closed\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.needs != "" {
				testenv.NeedProgram(t, tt.needs)
			}
			r := s.json(t, "--", "sh", "-c", strings.ReplaceAll(tt.script, "HOST", host))
			if want := strings.ReplaceAll(tt.want, "HOST", host); !strings.HasSuffix(r.Output, want) {
				t.Errorf("%q, want %q", r.Output, want)
			}
			if blocked := strings.Contains(tt.want, "403"); blocked != slices.ContainsFunc(r.NetworkDenials,
				func(d networkDenial) bool { return d.Reason == "method_not_allowed" }) {
				t.Errorf("denials %+v", r.NetworkDenials)
			}
		})
	}
}

// TestInspectFiles: while a command runs, its certificates are in one file that it sees in the place of
// the system's, no key is on disk, and the file is gone afterwards.
func TestInspectFiles(t *testing.T) {
	t.Parallel()
	s, _ := newInspected(t, "")
	cmd := s.command(t, nil, "--", "sh", "-c", `cat "$SSL_CERT_FILE"; echo END; read line`)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var inside strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "END"; {
		inside.WriteString(lines.Text() + "\n")
	}
	files := certificateFiles(t, s.root)
	if len(files) != 2 {
		t.Fatalf("%q", files)
	}
	text, err := os.ReadFile(files[1])
	must(t, err)
	if string(text) != inside.String() || strings.Contains(inside.String(), "PRIVATE") {
		t.Errorf("%d bytes inside, %d outside", inside.Len(), len(text))
	}
	for _, name := range files {
		info, err := os.Stat(name)
		must(t, err)
		if info.Mode().Perm() != 0o444 {
			t.Error(name, info.Mode())
		}
	}
	must(t, filepath.WalkDir(s.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be read has nothing of ours
		}
		if text, _ := os.ReadFile(name); strings.Contains(string(text), "PRIVATE KEY") &&
			!strings.Contains(name, "/bin/") && !strings.Contains(name, "/act") {
			t.Errorf("a key in %s", name)
		}
		return nil
	}))
	in.Close()
	_ = cmd.Wait() // read has no line
	if files := certificateFiles(t, s.root); len(files) > 0 {
		t.Errorf("left: %q", files)
	}
}

// TestInspectNothing: without the mode limited there is no file, and no variable.
func TestInspectNothing(t *testing.T) {
	t.Parallel()
	s, host := newInspected(t, "")
	must(t, os.WriteFile(s.root+"/home/.config/sallyport/config.toml",
		[]byte("[network]\nmode = 'full'\nallow = ['"+host+"']\n"), 0o600))
	cmd := s.command(t, nil, "--", "sh", "-c",
		`echo "[$SSL_CERT_FILE]"; grep -c sallyport /etc/ssl/certs/ca-certificates.crt; read line`)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "[]\n" {
		t.Errorf("%q", line)
	}
	if files := certificateFiles(t, s.root); len(files) > 0 {
		t.Errorf("%q", files)
	}
	in.Close()
	_ = cmd.Wait() // read has no line
}

// TestInspectErrors: a host that is not opened is refused by name, and a file that is missing stops the run.
func TestInspectErrors(t *testing.T) {
	t.Parallel()
	s, host := newInspected(t, "exclude = ['127.0.0.0/8']\n")
	r := s.json(t, "--", "act", "tunnel", host)
	if r.Output != "403 blocked-by-mitm-required\n" || len(r.NetworkDenials) != 1 ||
		r.NetworkDenials[0].Reason != "mitm_required" {
		t.Errorf("%+v", r)
	}
	must(t, os.Remove(s.root+"/home/origin.pem"))
	out, err := s.command(t, nil, "--", "true").CombinedOutput()
	if err == nil || !strings.Contains(string(out),
		"no such file or directory; fix or remove network.mitm.extra_ca") {
		t.Errorf("%q, %v", out, err)
	}
}
