// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestHost has requests for names that are the console's and names that are not: the latter are refused
// before anything else, also with the secrets, and also for the page.
func TestHost(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Hosts: []string{"Box.example", "tunnel.example:8443", "[2001:db8::1]"}},
		"127.0.0.1:0")
	k := r.mustEnter()
	for _, test := range []struct {
		host string
		want int
	}{
		{"ADDR", 200}, {"localhost:PORT", 200}, {"LOCALHOST:PORT", 200}, {"box.example",
			200}, {"BOX.example:PORT", 200},
		{"tunnel.example:8443", 200}, {"[2001:db8::1]", 200}, {"[2001:db8::1]:PORT", 200},
		{"", 403}, {"127.0.0.1", 403}, {"127.0.0.1:1", 403}, {"127.0.0.2:PORT", 403}, {"localhost", 403},
		{"localhost:1", 403}, {"localhost.:PORT", 403}, {"127.0.0.1.:PORT", 403}, {"[::1]:PORT", 403},
		{"[::ffff:127.0.0.1]:PORT", 403}, {"2130706433:PORT", 403}, {"0.0.0.0:PORT", 403}, {"evil.example",
			403},
		{"evil.example:PORT", 403}, {"box.example:1", 403}, {"box.example.", 403}, {"a.box.example", 403},
		{"tunnel.example", 403}, {"tunnel.example:PORT", 403}, {"user@ADDR", 400},
	} {
		t.Run(test.host, func(t *testing.T) {
			for _, path := range []string{"/", "/app.js", "/session", "/ws", "/nothing"} {
				a := r.send("GET " + path + " HTTP/1.1\r\nHost: " + test.host + "\r\n" + k.headers() + "\r\n")
				if test.want == 200 && path != "/" && path != "/app.js" && path != "/session" {
					continue // another status says what is wrong there
				}
				if a.StatusCode != test.want {
					t.Errorf("%s: status %d, want %d: %s", path, a.StatusCode, test.want, a.body)
				}
			}
		})
	}
	for name, request := range map[string]string{
		"in the request line": "GET http://evil.example/ HTTP/1.1\r\nHost: ADDR\r\n\r\n",
		"HTTP/1.0 without":    "GET / HTTP/1.0\r\n\r\n",
	} {
		if a := r.send(request); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d", name, a.StatusCode)
		}
	}
	if a := r.send("GET / HTTP/1.1\r\nHost: ADDR\r\nHost: " +
		"evil.example\r\n\r\n"); a.StatusCode != http.StatusBadRequest {
		t.Errorf("two: status %d", a.StatusCode)
	}
}

// TestHostOfOtherAddresses has consoles that do not listen on 127.0.0.1.
func TestHostOfOtherAddresses(t *testing.T) {
	t.Parallel()
	six := start(t, Options{}, "[::1]:0")
	all := start(t, Options{}, "0.0.0.0:0")
	all.address = "127.0.0.1:" + all.port
	for _, test := range []struct {
		name, host string
		of         *running
		want       int
	}{
		{"IPv6", "ADDR", six, 200}, {"IPv6, by name", "localhost:PORT", six, 200}, {"IPv6, in full",
			"[0:0:0:0:0:0:0:1]:PORT", six, 403},
		{"IPv6, the other one", "127.0.0.1:PORT", six, 403}, {"every address", "127.0.0.1:PORT", all, 200},
		{"every address, a name", "evil.example:PORT", all, 403}, {"every address, as it listens",
			"0.0.0.0:PORT", all, 403},
		{"every address, localhost", "localhost:PORT", all, 403},
	} {
		if a := test.of.send("GET / HTTP/1.1\r\nHost: " + test.host + "\r\n\r\n"); a.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", test.name, a.StatusCode, test.want)
		}
	}
}

// TestOrigin has requests of other pages, which are refused also with the secrets.
func TestOrigin(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Hosts: []string{"box.example"}}, "127.0.0.1:0")
	k := r.mustEnter()
	for _, test := range []struct {
		name, host, origin string
		want, socket       int
	}{
		{"this page", "ADDR", "Origin: http://ADDR\r\n", 200, 101},
		{"this page by its name", "localhost:PORT", "Origin: http://localhost:PORT\r\n", 200, 101},
		{"behind a proxy that encrypts", "box.example", "Origin: https://box.example\r\n", 200, 101},
		{"none", "ADDR", "", 200, 403},
		{"empty", "ADDR", "Origin: \r\n", 403, 403},
		{"null", "ADDR", "Origin: null\r\n", 403, 403},
		{"another port", "ADDR", "Origin: http://127.0.0.1:1\r\n", 403, 403},
		{"no port", "ADDR", "Origin: http://127.0.0.1\r\n", 403, 403},
		{"another name of this address", "ADDR", "Origin: http://localhost:PORT\r\n", 403, 403},
		{"encrypted", "ADDR", "Origin: https://ADDR\r\n", 403, 403},
		{"with a path", "ADDR", "Origin: http://ADDR/\r\n", 403, 403},
		{"longer", "ADDR", "Origin: http://ADDR.evil.example\r\n", 403, 403},
		{"another site", "ADDR", "Origin: https://evil.example\r\n", 403, 403},
		{"two", "ADDR", "Origin: http://ADDR\r\nOrigin: https://evil.example\r\n", 403, 403},
		{"of an extension", "ADDR", "Origin: chrome-extension://abc\r\n", 403, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			head := "Host: " + test.host + "\r\n" + test.origin + k.headers() + "\r\n"
			for _, path := range []string{"/", "/app.js", "/session"} {
				if a := r.send("GET " + path + " HTTP/1.1\r\n" + head); a.StatusCode != test.want {
					t.Errorf("%s: status %d, want %d", path, a.StatusCode, test.want)
				}
			}
			request := strings.Replace(k.upgrade(), "Origin: http://ADDR\r\n", test.origin, 1)
			conn, a := r.dial(strings.Replace(request, "Host: ADDR", "Host: "+test.host, 1))
			_ = conn.Close()
			if a.StatusCode != test.socket {
				t.Errorf("WebSocket: status %d, want %d", a.StatusCode, test.socket)
			}
		})
	}
}

// TestSecrets has every path with every part of the secrets.
func TestSecrets(t *testing.T) {
	t.Parallel()
	r, other := start(t, Options{}, "127.0.0.1:0"), start(t, Options{}, "127.0.0.1:0")
	k, second, foreign := r.mustEnter(), r.mustEnter(), other.mustEnter()
	cases := []struct {
		name string
		keys keys
		want bool
	}{
		{"both", k, true}, {"the other pair", second, true}, {"none", keys{}, false},
		{"cookie only", keys{k.cookie, ""}, false}, {"secret only", keys{"", k.secret}, false},
		{"of two pairs", keys{k.cookie, second.secret}, false}, {"the other way", keys{second.cookie,
			k.secret}, false},
		{"exchanged", keys{k.secret, k.cookie}, false}, {"of another console", foreign, false},
		{"cookie of another console", keys{foreign.cookie, k.secret}, false}, {"cut", keys{k.cookie,
			k.secret[1:]}, false},
		{"hash", keys{fmt.Sprintf("%x", hash(k.cookie)), fmt.Sprintf("%x", hash(k.secret))}, false},
	}
	paths := []string{"/session", "/ws", "/nothing", "/../app.js", "/app.js/", "//app.js",
		"/%2e%2e/secrets.json", "/dist/app.js",
		"/index.html", "/.", "/readyz", "/?token=x&secret=" + k.secret}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range paths {
				want := map[bool]int{true: 404, false: 401}[test.want]
				switch {
				case path == "/session" && test.want:
					want = 200
				case path[1] == '?':
					want = 200 // the page, which needs none
				case path == "/ws":
					conn, a := r.dial(test.keys.upgrade())
					_ = conn.Close()
					if a.StatusCode != map[bool]int{true: 101, false: 401}[test.want] {
						t.Errorf("WebSocket: status %d", a.StatusCode)
					}
					continue
				}
				for _, method := range []string{"GET", "PUT", "DELETE", "OPTIONS"} {
					a := r.send(method + " " + path + " HTTP/1.1\r\nHost: ADDR\r\n" + test.keys.headers() +
						"\r\n")
					want := want
					if method != "GET" && want == 200 {
						want = 405
					}
					if a.StatusCode != want {
						t.Errorf("%s %s: status %d, want %d", method, path, a.StatusCode, want)
					}
				}
			}
		})
	}
	for name, request := range map[string]string{
		"secret in the address": "GET /session?secret=" + k.secret + " HTTP/1.1\r\nHost: " +
			"ADDR\r\n" + k.cookieHeader() + "\r\n",
		"header of the WebSocket": upgrade("Origin: http://ADDR\r\n" + k.headers() +
			"Sec-WebSocket-Protocol: sallyport\r\n"),
		"subprotocol of a request": "GET /session HTTP/1.1\r\nHost: ADDR\r\n" + k.cookieHeader() +
			"Sec-WebSocket-Protocol: sallyport.secret." + k.secret + "\r\n\r\n",
		"cookie of another port": "GET /session HTTP/1.1\r\nHost: ADDR\r\nCookie: " +
			"sallyport-1=" + k.cookie + "\r\n" +
			k.secretHeader() + "\r\n",
	} {
		if a := r.send(request); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: status %d", name, a.StatusCode)
		}
	}
	// Another server of the address has set cookies of the same name.
	for _, cookies := range []string{"NAME=planted; NAME=" + k.cookie,
		"NAME=" + k.cookie + "; NAME=planted"} {
		a := r.send("GET /session HTTP/1.1\r\nHost: ADDR\r\nCookie: " +
			strings.ReplaceAll(cookies, "NAME", "sallyport-PORT") + "\r\n" + k.secretHeader() + "\r\n")
		if a.StatusCode != http.StatusOK {
			t.Errorf("a planted cookie: status %d", a.StatusCode)
		}
	}
}

// TestSecretsOutlive has consoles that are started again, with other roles and later.
func TestSecretsOutlive(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		before, after Options
		later         time.Duration
		want          int
	}{
		{"the same", Options{}, Options{}, 0, 200}, {"view-only again", Options{ViewOnly: true},
			Options{ViewOnly: true}, 0, 200},
		{"nearly expired", Options{}, Options{}, secretTime - 1, 200}, {"expired", Options{}, Options{},
			secretTime, 401},
		{"view-only at a whole one", Options{ViewOnly: true}, Options{}, 0, 401},
		{"whole at a view-only one", Options{}, Options{ViewOnly: true}, 0, 401},
		{"of another exec-server", Options{}, Options{Scope: "wss://b.example"}, 0, 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			test.before.Dir, test.after.Dir = dir, dir
			first := start(t, test.before, "127.0.0.1:0")
			k := first.mustEnter()
			first.stop()
			now := first.clock.Now().Add(test.later)
			test.after.Now = func() time.Time { return now }
			again := start(t, test.after, first.address)
			if a := again.send("GET /session HTTP/1.1\r\nHost: ADDR\r\n" + k.headers() +
				"\r\n"); a.StatusCode != test.want {
				t.Errorf("status %d, want %d", a.StatusCode, test.want)
			}
			again.stop()
			elsewhere := start(t, test.before, "127.0.0.1:0")
			if elsewhere.address == first.address {
				t.Fatal("the same address")
			}
			if a := elsewhere.send("GET /session HTTP/1.1\r\nHost: ADDR\r\n" + k.headers() +
				"\r\n"); a.StatusCode != 401 {
				t.Errorf("at another address: status %d", a.StatusCode)
			}
			file := filepath.Join(dir, secretsFile)
			text, err := os.ReadFile(file)
			if err != nil || strings.Contains(string(text), k.cookie) || strings.Contains(string(text),
				k.secret) {
				t.Errorf("the file has a secret: %v", err)
			}
			if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("its mode: %v, %v", info.Mode(), err)
			}
		})
	}
}

// TestSecretsExpire has a page that is open when its secrets expire, and one that was not.
func TestSecretsExpire(t *testing.T) {
	t.Parallel()
	r := start(t, Options{}, "127.0.0.1:0")
	k := r.mustEnter()
	r.clock.pass(secretTime - 1) // a nanosecond is left
	p := r.open(k)
	if text, status := p.receive(); status != statusPolicy || !strings.Contains(text, "expired") {
		t.Errorf("the open page got %q, %d", text, status)
	}
	r.clock.pass(1)
	if a := r.send("GET /session HTTP/1.1\r\nHost: ADDR\r\n" + k.headers() + "\r\n"); a.StatusCode != 401 {
		t.Errorf("status %d", a.StatusCode)
	}
}

// TestToken has tokens that can be exchanged, and those that cannot.
func TestToken(t *testing.T) {
	t.Parallel()
	r := start(t, Options{FixedToken: "fixed"}, "127.0.0.1:0")
	plain := start(t, Options{}, "127.0.0.1:0")
	used, old := r.Token(), r.Token()
	exchange := func(of *running, token string) int {
		_, a := of.enter(token)
		return a.StatusCode
	}
	if got := exchange(r, used); got != 200 {
		t.Fatalf("the first time: %d", got)
	}
	r.clock.pass(TokenTime - 1)
	young := r.Token()
	last := r.Token()
	for _, test := range []struct {
		name, token string
		of          *running
		pass        time.Duration
		want        int
	}{
		{"used", used, r, 0, 401}, {"wrong", "AAAAAAAAAAAAAAAAAAAAAAAAAA", r, 0, 401}, {"empty", "", r, 0,
			400},
		{"fixed", "fixed", r, 0, 200}, {"fixed, again", "fixed", r, 0, 200}, {"longer than fixed", "fixed2",
			r, 0, 401},
		{"of another console", plain.Token(), r, 0, 401}, {"fixed of another", "fixed", plain, 0, 401},
		{"too old", old, r, 1, 401}, {"young", young, r, 0, 200}, {"nearly too old", last, r, TokenTime - 2,
			200},
		{"fixed, later", "fixed", r, 100 * secretTime, 200},
	} {
		r.clock.pass(test.pass)
		if got := exchange(test.of, test.token); got != test.want {
			t.Errorf("%s: status %d, want %d", test.name, got, test.want)
		}
	}
}

// TestTokenOnce has many pages exchange one token at once: one of them gets secrets.
func TestTokenOnce(t *testing.T) {
	t.Parallel()
	r := start(t, Options{}, "127.0.0.1:0")
	token := r.Token()
	got := make(chan bool)
	const pages = 16
	for range pages {
		go func() { got <- r.take(token) }()
	}
	n := 0
	for range pages {
		if <-got {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d pages have used it", n)
	}
}

// TestRequests has odd requests, large ones and other methods.
func TestRequests(t *testing.T) {
	t.Parallel()
	r := start(t, Options{}, "127.0.0.1:0")
	post := func(kind, body string) string {
		return fmt.Sprintf("POST /session HTTP/1.1\r\nHost: ADDR\r\nContent-Type: %s\r\nContent-Length: "+
			"%d\r\n\r\n%s", kind,
			len(body), body)
	}
	for _, test := range []struct {
		name, request string
		want          int
	}{
		{"the page", "GET / HTTP/1.1\r\nHost: ADDR\r\n\r\n", 200},
		{"its head", "HEAD / HTTP/1.1\r\nHost: ADDR\r\n\r\n", 200},
		{"POST of the page", "POST / HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 0\r\n\r\n", 405},
		{"PUT of the script", "PUT /app.js HTTP/1.1\r\nHost: ADDR\r\nContent-Length: 0\r\n\r\n", 405},
		{"TRACE", "TRACE / HTTP/1.1\r\nHost: ADDR\r\n\r\n", 405},
		{"CONNECT", "CONNECT ADDR HTTP/1.1\r\nHost: ADDR\r\n\r\n", 401},
		{"of all", "OPTIONS * HTTP/1.1\r\nHost: ADDR\r\n\r\n", 401},
		{"CORS", "OPTIONS /session HTTP/1.1\r\nHost: ADDR\r\nOrigin: " +
			"http://ADDR\r\nAccess-Control-Request-Method: POST\r\n\r\n", 401},
		{"large header", "GET / HTTP/1.1\r\nHost: ADDR\r\nX-A: " + strings.Repeat("x", 64<<10) + "\r\n\r\n",
			431},
		{"many cookies", "GET /session HTTP/1.1\r\nHost: ADDR\r\nCookie: " +
			strings.Repeat("sallyport-PORT=x; ", 1000) + "\r\n\r\n", 401},
		{"large body", post("application/json", `{"token":"`+strings.Repeat("x", 1<<20)+`"}`), 413},
		{"a form", post("application/x-www-form-urlencoded", "token=x"), 415},
		{"plain text", post("text/plain", `{"token":"x"}`), 415},
		{"no JSON", post("application/json", "token"), 400},
		{"twice", post("application/json", `{"token":"a","token":"b"}`), 400},
		{"other letters", post("application/json", `{"TOKEN":"`+r.Token()+`"}`), 400},
		{"no UTF-8", post("application/json", "{\"token\":\"\xff\"}"), 400},
		{"garbage", "\x16\x03\x01\r\n\r\n", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			if a := r.send(test.request); a.StatusCode != test.want {
				t.Errorf("status %d, want %d: %.100s", a.StatusCode, test.want, a.body)
			}
		})
	}
}

// TestHeaders has what is served with each answer.
func TestHeaders(t *testing.T) {
	t.Parallel()
	r := start(t, Options{}, "127.0.0.1:0")
	k, entered := r.enter(r.Token())
	get := func(path, headers string) answer {
		return r.send("GET " + path + " HTTP/1.1\r\nHost: ADDR\r\n" + headers + "\r\n")
	}
	index := get("/", "")
	csp := regexp.MustCompile(`^default-src 'none'; script-src 'self'; style-src 'nonce-([A-Z2-7]{26})'; ` +
		`style-src-attr 'unsafe-inline'; connect-src 'self'; font-src 'self'; img-src 'self' data:; ` +
		`frame-ancestors 'none'; base-uri 'none'; form-action 'none'$`)
	found := csp.FindStringSubmatch(index.Header.Get("Content-Security-Policy"))
	if found == nil || !strings.Contains(index.body, `nonce="`+found[1]+`"`) || strings.Contains(index.body,
		"{{") {
		t.Errorf("the page has another policy: %q\n%s", index.Header.Get("Content-Security-Policy"),
			index.body)
	}
	if again := get("/", ""); again.Header.Get(
		"Content-Security-Policy") == index.Header.Get("Content-Security-Policy") {
		t.Error("the nonce is the same for two requests")
	}
	inline := regexp.MustCompile(`(?i)<script(?: [^>]*)?>[^<]|<style|\son[a-z]+=|javascript:|https?://`)
	if found := inline.FindString(index.body); found != "" {
		t.Errorf("the page has %q, which its policy or its promise forbids", found)
	}
	for name, a := range map[string]answer{"the page": index, "a script": get("/app.js", ""),
		"401": get("/session", ""),
		"404": get("/nothing", k.headers()), "exchange": entered, "session": get("/session", k.headers()),
		"403": get("/", "Origin: null\r\n")} {
		for header, want := range map[string]string{"X-Content-Type-Options": "nosniff",
			"Referrer-Policy":            "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"} {
			if got := a.Header.Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
		for header := range a.Header {
			if strings.HasPrefix(header, "Access-Control-") {
				t.Errorf("%s: %s", name, header)
			}
		}
		if want := map[bool]string{true: "no-cache", false: "no-store"}[name ==
			"a script"]; a.Header.Get("Cache-Control") != want {
			t.Errorf("%s: it is kept: %q", name, a.Header.Get("Cache-Control"))
		}
		if a.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", name)
		}
	}
	cookie := entered.Header.Get("Set-Cookie")
	want := "sallyport-" + r.port + "=" + k.cookie + "; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"
	if cookie != want {
		t.Errorf("the cookie is %q, want %q", cookie, want)
	}
}

// TestPageFiles has every file that is embedded: it is served with its kind, and has no address of another
// site that a browser would load.
func TestPageFiles(t *testing.T) {
	t.Parallel()
	r := start(t, Options{}, "127.0.0.1:0")
	for path, f := range pageFiles() {
		a := r.send("GET " + path + " HTTP/1.1\r\nHost: ADDR\r\n\r\n")
		if a.StatusCode != http.StatusOK || f.kind == "" || a.Header.Get("Content-Type") != f.kind {
			t.Errorf("%s: status %d, %q", path, a.StatusCode, a.Header.Get("Content-Type"))
		}
		// Other names of it are none: what is served is not looked up in a directory.
		for _, other := range []string{"/." + path, "/x/.." + path, "/%2e%2e" + path, "/" + path, path + "/.",
			"/dist" + path, "/index.html"} {
			a := r.send("GET " + other + " HTTP/1.1\r\nHost: ADDR\r\n\r\n")
			if a.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: status %d", other, a.StatusCode)
			}
		}
	}
}
