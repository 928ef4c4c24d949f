// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// request makes one in which DUMMY is the dummy, in base64 behind "Basic", too.
func request(t *testing.T, dummy, target, body string, headers ...string) *http.Request {
	t.Helper()
	put := func(s string) string { return strings.ReplaceAll(s, "DUMMY", dummy) }
	r, err := http.NewRequest("POST", put(target), strings.NewReader(put(body)))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		value = put(value)
		if plain, ok := strings.CutPrefix(value, "Basic "); ok {
			value = "Basic " + base64.StdEncoding.EncodeToString([]byte(plain))
		}
		r.Header.Add(name, value)
	}
	return r
}

// sent returns a request as one text, with what is inside of Basic.
func sent(t *testing.T, r *http.Request) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(r.URL.String() + "\n")
	for name, values := range r.Header {
		for _, v := range values {
			if coded, ok := strings.CutPrefix(v, "Basic "); ok {
				p, err := base64.StdEncoding.DecodeString(coded)
				if err != nil {
					t.Fatal(err)
				}
				v = "Basic " + string(p)
			}
			b.WriteString(name + ": " + v + "\n")
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b.String() + string(body)
}

// TestRequest: the dummy is replaced where it was asked for, and nowhere else.
func TestRequest(t *testing.T) {
	const own = "https://api.example.com/x"
	for _, c := range []struct {
		name, value       string
		where             []string
		target, body      string
		headers           []string
		swapped, remained int
	}{
		{"bearer", github, nil, own, "", []string{"Authorization: Bearer DUMMY"}, 1, 0},
		{"a header", github, nil, own, "", []string{"X-Api-Key: DUMMY", "Cookie: a=b; t=DUMMY; c=d"}, 2, 0},
		{"token", github, nil, own, "", []string{"Authorization: token DUMMY"}, 1, 0},
		{"password", github, nil, own, "", []string{"Authorization: Basic me:DUMMY"}, 1, 0},
		{"user", github, nil, own, "", []string{"Authorization: Basic DUMMY:x-oauth-basic"}, 1, 0},
		{"a JWT", jwt, nil, own, "", []string{"Authorization: Bearer DUMMY", "Authorization: Basic jwt:DUMMY"}, 2, 0},
		{"the query by default", github, nil, own + "?key=DUMMY", "", nil, 0, 1},
		{"the body by default", github, nil, own, "key=DUMMY", nil, 0, 1},
		{"the path", github, CredentialPlaces, own + "/DUMMY/y", "", nil, 0, 1},
		{"the query", github, []string{"query"}, own + "?key=DUMMY&b=DUMMY", "", []string{"X-Key: DUMMY"}, 2, 1},
		{"the body", github, []string{"body"}, own, "DUMMY and DUMMY", []string{"X-Key: DUMMY"}, 2, 1},
		{"bearer only", github, []string{"bearer"}, own, "", []string{"Authorization: Bearer DUMMY", "X-Key: DUMMY", "Authorization: Basic x:DUMMY"}, 1, 2},
		{"basic only", github, []string{"basic"}, own, "", []string{"Authorization: Bearer DUMMY", "Authorization: Basic x:DUMMY"}, 1, 1},
		{"header only", github, []string{"header"}, own, "", []string{"X-Key: DUMMY", "Authorization: Basic x:DUMMY"}, 1, 1},
		{"a compressed body", github, CredentialPlaces, own, "DUMMY", []string{"Content-Encoding: gzip"}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, one(c.value, c.where...))
			dummy := dummyOf(t, s, "ONE")
			r := request(t, dummy, c.target, c.body, c.headers...)
			size := r.ContentLength
			r.Header.Set("Range", "bytes=0-9")
			r.Header.Set("Request-Range", "bytes=0-9")
			r.Header.Set("Accept-Encoding", "br")
			if err := s.Request(host(t, "api.example.com"), 443, false, r); err != nil {
				t.Fatal(err)
			}
			text := sent(t, r)
			if n, left := strings.Count(text, c.value), strings.Count(text, dummy); n != c.swapped ||
				left != c.remained {
				t.Errorf("%d, %d, want %d, %d:\n%s", n, left, c.swapped, c.remained, text)
			}
			if r.ContentLength != size || r.Header.Get("Range")+r.Header.Get("Request-Range") != "" ||
				r.Header.Get("Accept-Encoding") != "identity" {
				t.Errorf("%d of %d, %v", r.ContentLength, size, r.Header)
			}
		})
	}
}

// TestEscaped: values with punctuation are found as forms, URLs and JSON have them.
func TestEscaped(t *testing.T) {
	const value = `a1/b2+c3&d4"e5=f6<g7>h8`
	s := open(t, one(value, "body", "query"))
	dummy := dummyOf(t, s, "ONE")
	for name, form := range map[string]func(string) string{
		"query": url.QueryEscape, "path": url.PathEscape, "small": smallEscapes, "JSON": inJSON(false), "JSON in HTML": inJSON(true),
		"slashes": func(v string) string { return strings.ReplaceAll(v, "/", `\/`) },
	} {
		got := through(t, s.outward[s.entries[0]], []byte("x="+form(dummy)+";"))
		if got != "x="+form(value)+";" {
			t.Errorf("%s: %q for %q", name, got, form(dummy))
		}
		if back := through(t, s.inward, []byte(got)); back != "x="+form(dummy)+";" {
			t.Errorf("%s: %q came back", name, back)
		}
	}
}

// TestMisuse: a dummy that goes to another host is refused, wherever it is.
func TestMisuse(t *testing.T) {
	for _, c := range []struct {
		name, host, target, body, header string
		port                             uint16
		inBody                           bool
	}{
		{"bearer", "evil.example", "https://evil.example/", "", "Authorization: Bearer DUMMY", 443, false},
		{"basic", "evil.example", "https://evil.example/", "", "Authorization: Basic x:DUMMY", 443, false},
		{"a header", "evil.example", "https://evil.example/", "", "Referer: https://x/?DUMMY", 443, false},
		{"the query", "evil.example", "https://evil.example/?a=DUMMY", "", "A: b", 443, false},
		{"the path", "evil.example", "https://evil.example/DUMMY", "", "A: b", 443, false},
		{"the body", "evil.example", "https://evil.example/", "a DUMMY b", "A: b", 443, true},
		{"the host of another one", "two.example.com", "https://two.example.com/", "", "Authorization: Bearer DUMMY", 443, false},
		{"the body of another one", "two.example.com", "https://two.example.com/", "DUMMY", "A: b", 443, true},
		{"below the host", "x.api.example.com", "https://x.api.example.com/", "", "A: DUMMY", 443, false},
		{"another port", "api.example.com", "https://api.example.com:8443/", "", "A: DUMMY", 8443, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := one(github)
			first.Hosts = []string{"api.example.com:443"}
			s := open(t, first, Credential{Name: "two", Env: "TWO", Value: []byte("abcdefgh12345"),
				Hosts: []string{"two.example.com"}, Where: CredentialPlaces})
			r := request(t, dummyOf(t, s, "ONE"), c.target, c.body, c.header)
			err := s.Request(host(t, c.host), c.port, false, r)
			if c.inBody {
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.ReadAll(r.Body)
			}
			var misuse *CredentialMisuseError
			if !errors.As(err, &misuse) || misuse.Name != "one" ||
				strings.Contains(err.Error(), dummyOf(t, s, "ONE")[4:]) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestOthersPass: requests without dummies are left as they are.
func TestOthersPass(t *testing.T) {
	s := open(t, one(github, CredentialPlaces...))
	r := request(t, "ghp_", "https://other.example/DUMMY?a=DUMMY", "body DUMMY", "Authorization: Basic a:b",
		"Range: bytes=0-9", "Accept-Encoding: br")
	before := r.URL.String() + r.Header.Get("Authorization") + r.Header.Get("Range") + r.Header.Get("Accept-Encoding")
	if err := s.Request(host(t, "other.example"), 443, false, r); err != nil {
		t.Fatal(err)
	}
	if after := r.URL.String() + r.Header.Get("Authorization") + r.Header.Get("Range") + r.Header.Get("Accept-Encoding"); after != before {
		t.Errorf("%s, want %s", after, before)
	}
	if body, err := io.ReadAll(r.Body); string(body) != "body ghp_" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

// TestPlain: over plain HTTP no host may have a dummy.
func TestPlain(t *testing.T) {
	s := open(t, one(github))
	dummy := dummyOf(t, s, "ONE")
	var misuse *CredentialMisuseError
	for _, v := range []string{dummy, "Bearer " + dummy, "Basic " +
		base64.StdEncoding.EncodeToString([]byte("x:"+dummy)), "/x?a=" + dummy} {
		if err := s.Plain("api.example.com:80", v); !errors.As(err, &misuse) || !misuse.Plain {
			t.Errorf("%s: %v", v, err)
		}
	}
	for _, v := range []string{"", "Bearer x", "Basic eDp5", "Basic ?", github} {
		if err := s.Plain("api.example.com:80", v); err != nil {
			t.Errorf("%s: %v", v, err)
		}
	}
	src := pieces{[]byte("a" + dummy[:9]), []byte(dummy[9:])}
	if out, err := io.ReadAll(s.PlainBody("api.example.com:80", &src)); !errors.As(err, &misuse) ||
		string(out) != "a" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestPrefix: of two values one of which begins with the other, each is replaced by its own dummy.
func TestPrefix(t *testing.T) {
	long, short := "abcd1234efgh5678", "abcd1234"
	for _, order := range [][2]string{{long, short}, {short, long}} {
		s := open(t, Credential{Name: "a", Env: "A", Value: []byte(order[0]),
			Hosts: []string{"api.example.com"}, Where: CredentialPlaces},
			Credential{Name: "b", Env: "B", Value: []byte(order[1]), Hosts: []string{"api.example.com"},
				Where: CredentialPlaces})
		text := order[0] + " " + order[1] + " " + long[:12] + " " + short
		env := s.Env()
		dummies := map[string]string{order[0]: env["A"], order[1]: env["B"]}
		want := env["A"] + " " + env["B"] + " " + dummies[short] + long[8:12] + " " + dummies[short]
		for cut := range len(text) {
			if got := through(t, s.inward, []byte(text[:cut]), []byte(text[cut:])); got != want {
				t.Fatalf("cut at %d: %q, want %q", cut, got, want)
			}
		}
		r := request(t, "", "https://api.example.com/", env["A"]+env["B"], "X-A: "+env["A"], "X-B: "+env["B"])
		if err := s.Request(host(t, "api.example.com"), 443, false, r); err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(r.Body); string(body) != order[0]+order[1] || err != nil ||
			r.Header.Get("X-A") != order[0] || r.Header.Get("X-B") != order[1] {
			t.Errorf("%q, %v, %v", body, err, r.Header)
		}
	}
}

// TestEcho: a server that repeats what it gets, in every way, gets the value and gives the dummy back.
func TestEcho(t *testing.T) {
	var got string
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Header.Get("X-Token") + r.Header.Get("Authorization") + string(body)
		w.Header().Set("X-Echo", r.Header.Get("X-Token"))
		w.Header().Set(r.Header.Get("X-Name"), "1")
		w.Header().Set("Location", "https://other.example/?t="+url.QueryEscape(r.Header.Get("X-Token")))
		w.Header().Add("Set-Cookie", "t="+r.Header.Get("X-Token"))
		w.Header().Set("Trailer", "X-Last")
		var out io.Writer = w
		if kind := r.URL.Query().Get("z"); kind != "" {
			w.Header().Set("Content-Encoding", kind)
			if kind == "gzip" {
				z := gzip.NewWriter(w)
				defer z.Close()
				out = z
			}
		}
		flush := http.NewResponseController(w)
		text := string(body) + " " + r.Header.Get("Authorization") + " " +
			url.QueryEscape(r.Header.Get("X-Token")) + " " + inJSON(true)(r.Header.Get("X-Token"))
		for i := range len(text) { // byte by byte
			_, _ = io.WriteString(out, text[i:i+1])
			_ = flush.Flush()
		}
		w.Header().Set("X-Last", r.Header.Get("X-Token"))
	}
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	for _, value := range []string{github, jwt, `x1/y2+z3&a4"b5`} {
		for _, user := range []string{"", "u", "us", "use"} {
			for _, coding := range []string{"", "gzip"} {
				s := open(t, one(value, CredentialPlaces...))
				dummy := dummyOf(t, s, "ONE")
				r := request(t, dummy, server.URL+"/?z="+coding, "body DUMMY end", "X-Token: DUMMY",
					"Authorization: Basic "+user+":DUMMY")
				if value == github {
					r.Header.Set("X-Name", dummy)
				} else {
					r.Header.Set("X-Name", "X-Other")
				}
				if err := s.Request(host(t, "api.example.com"), 443, false, r); err != nil {
					t.Fatal(err)
				}
				resp, err := transport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.Response(host(t, "api.example.com"), 443, false, resp); err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Count(got, value) != 2 {
					t.Errorf("the server got %q", got)
				}
				var b bytes.Buffer
				b.Write(body)
				_ = resp.Header.Write(&b)
				_ = resp.Trailer.Write(&b)
				real, back := b.String(), base64.StdEncoding.EncodeToString([]byte(user+":"+value))
				for _, leak := range []string{value, back[8 : len(back)-4], url.QueryEscape(value),
					inJSON(true)(value)} {
					if strings.Contains(strings.ToLower(real), strings.ToLower(leak)) {
						t.Errorf("%q is in %q", leak, real)
					}
				}
				if resp.Header.Get("X-Echo") != dummy || resp.Trailer.Get("X-Last") != dummy ||
					!strings.HasPrefix(string(body), "body "+dummy+" end") {
					t.Errorf("%v, %v, %q", resp.Header, resp.Trailer, body)
				}
			}
		}
	}
}

func TestResponse(t *testing.T) {
	s := open(t, one(github))
	response := func(headers ...string) *http.Response {
		r := &http.Response{Status: "200 " + github, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader("a " + github)), ContentLength: 42}
		for _, h := range headers {
			name, value, _ := strings.Cut(h, ": ")
			r.Header.Add(name, value)
		}
		return r
	}
	for _, coding := range []string{"br", "zstd", "deflate", "gzip, gzip", "x"} {
		var bad *CredentialEncodingError
		if err := s.Response(host(t, "api.example.com"), 443, false,
			response("Content-Encoding: "+coding)); !errors.As(err, &bad) {
			t.Errorf("%s: %v", coding, err)
		}
	}
	r := response("Content-Encoding: gzip") // and it is not
	if err := s.Response(host(t, "api.example.com"), 443, false, r); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(r.Body); err == nil || len(out) > 0 {
		t.Errorf("%q, %v", out, err)
	}
	r = response()
	if err := s.Response(host(t, "api.example.com"), 443, false, r); err != nil ||
		strings.Contains(r.Status, github) || r.ContentLength != 42 {
		t.Errorf("%q, %d, %v", r.Status, r.ContentLength, err)
	}
	if r = response("Content-Encoding: br"); s.Response(host(t, "other.example"), 443, false, r) != nil ||
		!strings.Contains(r.Status, github) {
		t.Errorf("the response of another host: %v", r)
	}
	// Another protocol begins: what comes is replaced, and what goes is written.
	var written bytes.Buffer
	r = response()
	r.Body = &duplex{r.Body, &written}
	if err := s.Response(host(t, "api.example.com"), 443, false, r); err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r.Body)
	w, _ := r.Body.(io.Writer)
	_, _ = io.WriteString(w, "x")
	if string(out) != "a "+dummyOf(t, s, "ONE") || err != nil || written.String() != "x" {
		t.Errorf("%q, %v, %q", out, err, written.String())
	}
}

type duplex struct {
	io.ReadCloser
	io.Writer
}
