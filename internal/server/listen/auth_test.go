// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sallyport-dev/sallyport/internal/server/execserver"
)

// sign returns a token in JWT form.
func sign(secret []byte, header, claims string) string {
	text := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." +
		base64.RawURLEncoding.EncodeToString([]byte(claims))
	mac := hmac.New(sha256.New, secret)
	if strings.Contains(header, "HS384") {
		mac = hmac.New(sha512.New384, secret)
	}
	mac.Write([]byte(text))
	sum := mac.Sum(nil)
	if strings.Contains(header, `"none"`) {
		sum = nil
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sum)
}

// unused sets bits at the end of a token that stand for nothing.
func unused(token string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1 // 32 bytes leave two bits unused
	return token[:last] + string(digits[strings.IndexByte(digits, token[last])|1])
}

func bearerHeader(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestStartErrors: a server that would not be what was asked for does not start.
func TestStartErrors(t *testing.T) {
	secret, short := writeFile(t, strings.Repeat("s", 32)), writeFile(t, "too short")
	empty := writeFile(t, " \n")
	skew := time.Second
	hash := strings.Repeat("ab", 32)
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"no token", Options{Auth: Auth{Kind: AuthCapability}}, "`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set"},
		{"two tokens", Options{Auth: Auth{Kind: AuthCapability, TokenFile: secret, TokenSHA256: hash}}, "`--ws-token-file` and `--ws-token-sha256` are mutually exclusive"},
		{"token without kind", Options{Auth: Auth{TokenSHA256: hash}}, "websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`"},
		{"secret without kind", Options{Auth: Auth{SecretFile: secret}}, "websocket auth flags require"},
		{"skew without kind", Options{Auth: Auth{Skew: &skew}}, "websocket auth flags require"},
		{"secret for a token", Options{Auth: Auth{Kind: AuthCapability, TokenSHA256: hash, SecretFile: secret}}, "need `--ws-auth signed-bearer-token`"},
		{"token for a secret", Options{Auth: Auth{Kind: AuthSigned, SecretFile: secret, TokenFile: secret}}, "need `--ws-auth capability-token`"},
		{"no secret", Options{Auth: Auth{Kind: AuthSigned}}, "`--ws-shared-secret-file` is required"},
		{"short secret", Options{Auth: Auth{Kind: AuthSigned, SecretFile: short}}, "has 9 bytes; write at least 32"},
		{"empty token", Options{Auth: Auth{Kind: AuthCapability, TokenFile: empty}}, "has 0 bytes"},
		{"missing file", Options{Auth: Auth{Kind: AuthCapability, TokenFile: "/missing/token"}}, "cannot read the secret"},
		{"not a hash", Options{Auth: Auth{Kind: AuthCapability, TokenSHA256: "abc"}}, "64 hexadecimal digits"},
		{"unknown kind", Options{Auth: Auth{Kind: "password"}}, "unknown kind of authentication"},
		{"stdio", Options{Listen: "stdio", Auth: Auth{Kind: AuthCapability, TokenSHA256: hash}}, "WebSocket auth requires a WebSocket listener, not stdio"},
		{"all addresses", Options{Listen: "ws://0.0.0.0:0"}, "without authentication"},
		{"all addresses, IPv6", Options{Listen: "ws://[::]:0"}, "without authentication"},
		{"another address", Options{Listen: "ws://192.0.2.1:0"}, "without authentication"},
		{"a name", Options{Listen: "ws://localhost:0"}, "invalid listen address"},
		{"no port", Options{Listen: "ws://127.0.0.1"}, "invalid listen address"},
		{"a path", Options{Listen: "ws://127.0.0.1:0/x"}, "invalid listen address"},
		{"another scheme", Options{Listen: "http://127.0.0.1:0"}, "unsupported listen address"},
		{"nothing", Options{}, "unsupported listen address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Run(context.Background(), test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// get returns the status of a request to a door.
func get(t *testing.T, a Auth, method, path string, header http.Header) int {
	t.Helper()
	g, err := a.gate()
	if err != nil {
		t.Fatal(err)
	}
	server := execserver.New(execserver.Options{})
	defer func() { _ = server.Close() }()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, nil)
	if header != nil {
		r.Header = header
	}
	d := newDoor(ownServer{server}, g, defaultClients)
	d.penalty.time = 0 // TestPenalty is about it
	d.ServeHTTP(w, r)
	return w.Code
}

// TestHTTP: web pages, clients without the token and other paths are refused. The answer 400
// is that for a client that was let in and asks for no WebSocket.
func TestHTTP(t *testing.T) {
	sum := sha256.Sum256([]byte("swordfish"))
	token := Auth{Kind: AuthCapability, TokenSHA256: hex.EncodeToString(sum[:])}
	file := Auth{Kind: AuthCapability, TokenFile: writeFile(t, "swordfish\n")}
	with := func(h http.Header, name, value string) http.Header {
		h = h.Clone()
		h.Add(name, value)
		return h
	}
	right := bearerHeader("swordfish")
	for _, test := range []struct {
		name         string
		a            Auth
		method, path string
		header       http.Header
		want         int
	}{
		{"no token needed", Auth{}, "GET", "/", nil, 400},
		{"right token", token, "GET", "/", right, 400},
		{"right token from a file", file, "GET", "/", right, 400},
		{"scheme in another case", token, "GET", "/", http.Header{"Authorization": {"bEARER swordfish"}}, 400},
		{"no token", token, "GET", "/", nil, 401},
		{"wrong token", token, "GET", "/", bearerHeader("sword"), 401},
		{"hash as token", token, "GET", "/", bearerHeader(token.TokenSHA256), 401},
		{"another scheme", token, "GET", "/", http.Header{"Authorization": {"Basic swordfish"}}, 401},
		{"two headers", token, "GET", "/", with(right, "Authorization", "Bearer x"), 401},
		{"token in the query", token, "GET", "/?token=swordfish", nil, 401},
		{"token as a subprotocol", token, "GET", "/", http.Header{"Sec-Websocket-Protocol": {"swordfish"}}, 401},
		{"web page", Auth{}, "GET", "/", http.Header{"Origin": {"http://127.0.0.1"}}, 403},
		{"web page with an empty origin", Auth{}, "GET", "/", http.Header{"Origin": {""}}, 403},
		{"web page with the token", token, "GET", "/", with(right, "Origin", "null"), 403},
		{"web page asks for readyz", Auth{}, "GET", "/readyz", http.Header{"Origin": {"http://x"}}, 403},
		{"readyz", token, "GET", "/readyz", nil, 200},
		{"POST readyz", token, "POST", "/readyz", nil, 405},
		{"healthz", Auth{}, "GET", "/healthz", nil, 404},
		{"another path", token, "GET", "/x", right, 404},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := get(t, test.a, test.method, test.path, test.header); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
}

// TestSigned: a token counts with the right signature, in its time and for this server only.
func TestSigned(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	a := Auth{Kind: AuthSigned, SecretFile: writeFile(t, string(secret)), Issuer: "house", Audience: "door"}
	now := time.Now().Unix()
	claims := func(exp, nbf int64, rest string) string {
		return fmt.Sprintf(`{"exp":%d,"nbf":%d,%s}`, now+exp, now+nbf, rest)
	}
	const hs256, who = `{"alg":"HS256","typ":"JWT"}`, `"iss":"house","aud":"door"`
	good := claims(60, 0, who)
	for _, test := range []struct {
		name, token string
		want        int
	}{
		{"right", sign(secret, hs256, good), 400},
		{"one of several audiences", sign(secret, hs256, claims(60, 0, `"iss":"house","aud":["x","door"]`)), 400},
		{"expired 20 s ago", sign(secret, hs256, claims(-20, 0, who)), 400},
		{"expired 31 s ago", sign(secret, hs256, claims(-31, 0, who)), 401},
		{"from in 20 s", sign(secret, hs256, claims(60, 20, who)), 400},
		{"from in 40 s", sign(secret, hs256, claims(60, 40, who)), 401},
		{"an end in two cases", sign(secret, hs256, claims(-60, 0, fmt.Sprintf(`"EXP":%d,`, now+60)+who)), 401},
		{"an end in another case", sign(secret, hs256, fmt.Sprintf(`{"Exp":%d,%s}`, now+60, who)), 401},
		{"an end twice", sign(secret, hs256, claims(60, 0, fmt.Sprintf(`"exp":%d,`, now+60)+who)), 401},
		{"a start in two cases", sign(secret, hs256, claims(60, 60, fmt.Sprintf(`"Nbf":%d,`, now)+who)), 401},
		{"an issuer in another case", sign(secret, hs256, claims(60, 0, `"Iss":"house","aud":"door"`)), 401},
		{"another issuer beside it", sign(secret, hs256, claims(60, 0, who+`,"ISS":"x","Aud":"x"`)), 400},
		{"an audience twice", sign(secret, hs256, claims(60, 0, `"aud":"x",`+who)), 401},
		{"an algorithm in another case", sign(secret, `{"ALG":"HS256"}`, good), 401},
		{"two algorithms", sign(secret, `{"alg":"none","alg":"HS256"}`, good), 401},
		{"text after the claims", sign(secret, hs256, good+"{}"), 401},
		{"without end", sign(secret, hs256, "{"+who+"}"), 401},
		{"end as text", sign(secret, hs256, `{"exp":"9999999999",`+who+"}"), 401},
		{"another issuer", sign(secret, hs256, claims(60, 0, `"iss":"x","aud":"door"`)), 401},
		{"no issuer", sign(secret, hs256, claims(60, 0, `"aud":"door"`)), 401},
		{"another audience", sign(secret, hs256, claims(60, 0, `"iss":"house","aud":"x"`)), 401},
		{"no audience", sign(secret, hs256, claims(60, 0, `"iss":"house"`)), 401},
		{"another secret", sign([]byte("other"), hs256, good), 401},
		{"no signature", sign(secret, `{"alg":"none"}`, good), 401},
		{"another algorithm", sign(secret, `{"alg":"HS384"}`, good), 401},
		{"algorithm that does not say", sign(secret, `{}`, good), 401},
		{"demands", sign(secret, `{"alg":"HS256","crit":["x"]}`, good), 401},
		{"the same algorithm twice", sign(secret, `{"alg":"HS256","alg":"HS256"}`, good), 401},
		{"text after the header", sign(secret, hs256+"{}", good), 401},
		{"a start as text", sign(secret, hs256, fmt.Sprintf(`{"exp":%d,"nbf":"1",%s}`, now+60, who)), 401},
		{"a null end", sign(secret, hs256, `{"exp":null,`+who+"}"), 401},
		{"an end beyond time", sign(secret, hs256, `{"exp":-1e300,`+who+"}"), 401},
		{"four parts", sign(secret, hs256, good) + ".x", 401},
		{"padding", sign(secret, hs256, good) + "=", 401},
		{"a longer signature", sign(secret, hs256, good) + "AA", 401},
		{"unused bits of the signature", unused(sign(secret, hs256, good)), 401},
		{"two parts", "a.b", 401},
		{"not base64", "a.b.!", 401},
		{"nothing", "", 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := get(t, a, "GET", "/", bearerHeader(test.token)); got != test.want {
				t.Errorf("%d, want %d", got, test.want)
			}
		})
	}
	zero := time.Duration(0)
	a.Skew = &zero
	if got := get(t, a, "GET", "/", bearerHeader(sign(secret, hs256, claims(-1, 0, who)))); got != 401 {
		t.Errorf("without skew: %d", got)
	}
}

// TestSubject: names of claims are case-sensitive (RFC 7519), so that a claim of another case is not
// that of another client.
func TestSubject(t *testing.T) {
	secret := []byte(strings.Repeat("s", 32))
	let, err := (&Auth{Kind: AuthSigned, SecretFile: writeFile(t, string(secret))}).gate()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, claims, want string }{
		{"one", `"sub":"a"`, "subject \x00a"},
		{"a second one in another case", `"sub":"a","Sub":"b","SUB":"c"`, "subject \x00a"},
		{"an issuer in another case", `"sub":"a","iss":"i","Iss":"j"`, "subject i\x00a"},
		{"in another case alone", `"SUB":"b"`, "token "},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header = bearerHeader(sign(secret, `{"alg":"HS256"}`,
				fmt.Sprintf(`{"exp":%d,%s}`, time.Now().Unix()+60, test.claims)))
			who, err := let(r)
			if err != nil || who != test.want && !(strings.HasPrefix(who, test.want) &&
				test.want == "token ") {
				t.Errorf("%q, %v, want %q", who, err, test.want)
			}
		})
	}
}

// FuzzToken: no text but a signed one is a token.
func FuzzToken(f *testing.F) {
	secret := []byte(strings.Repeat("s", 32))
	f.Add(sign([]byte("other"), `{"alg":"HS256"}`, `{"exp":9999999999}`))
	f.Add("..")
	f.Add("")
	name := filepath.Join(f.TempDir(), "secret")
	if err := os.WriteFile(name, secret, 0o600); err != nil {
		f.Fatal(err)
	}
	let, err := (&Auth{Kind: AuthSigned, SecretFile: name}).gate()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header = bearerHeader(token)
		if _, err := let(r); err == nil {
			t.Errorf("%q", token)
		}
	})
}
