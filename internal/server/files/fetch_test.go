// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestInvalid: what HTTP does not allow, or would be another request than it looks, is refused
// before anything is sent. The reason does not repeat what may be secret.
func TestInvalid(t *testing.T) {
	const web = "http://127.0.0.1:1/"
	header := func(name, value string) []HTTPHeader { return []HTTPHeader{{Name: name, Value: value}} }
	for _, test := range []struct {
		name, method, url string
		headers           []HTTPHeader
		want              string
	}{
		{"no method", "", web, nil, "method is invalid: invalid HTTP method"},
		{"space in the method", "GET /", web, nil, "method is invalid: invalid HTTP method"},
		{"line end in the method", "GET\r\nX: y", web, nil, "method is invalid: invalid HTTP method"},
		{"long method", strings.Repeat("A", maxHeader+1), web, nil, "method is invalid: invalid HTTP method"},
		{"CONNECT", "CONNECT", web, nil, "method is invalid: CONNECT is not supported"},
		{"no scheme", "GET", "127.0.0.1/x", nil, "url is invalid: relative URL without a base"},
		{"file", "GET", "file:///etc/passwd", nil, "only supports http and https URLs, got file"},
		{"file with a host", "GET", "file://localhost/etc/passwd", nil, "only supports http and https URLs, got file"},
		{"ftp", "GET", "ftp://127.0.0.1/", nil, "only supports http and https URLs, got ftp"},
		{"unix", "GET", "unix:///run/x", nil, "only supports http and https URLs, got unix"},
		{"no host", "GET", "http:///x", nil, "url is invalid: empty host"},
		{"opaque", "GET", "http:127.0.0.1", nil, "url is invalid: empty host"},
		{"only a port", "GET", "http://:80/", nil, "url is invalid: empty host"},
		{"line end in the URL", "GET", "http://user:s3cret@127.0.0.1/\r\nX: y", nil, "url is invalid: net/url: invalid control character in URL"},
		{"bad port", "GET", "http://user:s3cret@127.0.0.1:x/", nil, `url is invalid: invalid port ":x" after host`},
		{"no header name", "GET", web, header("", "x"), "header name is invalid: invalid HTTP header name"},
		{"colon in a header name", "GET", web, header("A: b", "x"), "header name is invalid: invalid HTTP header name"},
		{"line end in a header name", "GET", web, header("A\r\nB", "x"), "header name is invalid: invalid HTTP header name"},
		{"line end in a header", "GET", web, header("A", "s3cret\r\nB: c"), "header value is invalid: failed to parse header value"},
		{"line feed in a header", "GET", web, header("A", "s3cret\nB: c"), "header value is invalid: failed to parse header value"},
		{"zero byte in a header", "GET", web, header("A", "s3cret\x00"), "header value is invalid: failed to parse header value"},
		{"line end in Host", "GET", web, header("Host", "x\r\nA: b"), "header value is invalid: failed to parse header value"},
		{"long header", "GET", web, header("A", strings.Repeat("s3cret", maxHeader)), "header value is invalid: failed to parse header value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := NewHTTPRequest(test.method, test.url, test.headers)
			var invalid *InvalidHTTPError
			if !errors.As(err, &invalid) || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}

// fetched sends a request and returns the answer with its body.
func fetched(t *testing.T, method, url string, change func(*HTTPRequest),
	headers ...HTTPHeader) (*HTTPAnswer, string, error) {
	t.Helper()
	r, err := NewHTTPRequest(method, url, headers)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(r)
	}
	c := NewHTTPClient()
	defer c.Close()
	a, err := c.Do(t.Context(), r)
	if err != nil {
		return nil, "", err
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a, string(body), nil
}

// echo is a web server that answers with what it got.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header()["Date"] = nil
	w.Header().Add("X-Many", "1")
	w.Header().Add("X-Many", "2")
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprintf(w, "%s %s host=%s %v %s", r.Method, r.URL, r.Host, r.Header, body)
}

// TestSent: what the caller says is sent, and nothing else is added to it. The answer has everything.
func TestSent(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(echo))
	defer web.Close()
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // would refuse
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	a, body, err := fetched(t, "PATCH", web.URL+"/p?q=1", func(r *HTTPRequest) { r.SetBody([]byte("data")) },
		HTTPHeader{Name: "x-a", Value: " b\t"}, HTTPHeader{Name: "X-A", Value: "c"},
		HTTPHeader{Name: "host", Value: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "PATCH /p?q=1 host=other map[Content-Length:[4] X-A:[b c]] data"; body != want {
		t.Errorf("%s, want %s", body, want)
	}
	want := []HTTPHeader{{Name: "content-length", Value: fmt.Sprint(len(body))},
		{Name: "content-type", Value: "text/plain; charset=utf-8"}, {Name: "x-many", Value: "1"},
		{Name: "x-many", Value: "2"}}
	if a.Status != http.StatusTeapot || !reflect.DeepEqual(a.Headers, want) {
		t.Errorf("%d, %v, want %v", a.Status, a.Headers, want)
	}
}

// TestAsItCame: nothing is decompressed, and nothing is asked for that would have to be.
func TestAsItCame(t *testing.T) {
	const packed = "\x1f\x8bnot really"
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "" {
			t.Errorf("Accept-Encoding: %s", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, packed)
	}))
	defer web.Close()
	if _, body, err := fetched(t, "GET", web.URL, nil); err != nil || body != packed {
		t.Errorf("%q, %v", body, err)
	}
}

// TestRedirects: redirects to HTTP servers are followed up to a bound, with the body where the
// status says so; another scheme is an error; credentials and secrets stay with the first server.
func TestRedirects(t *testing.T) {
	var mu sync.Mutex
	hops := 0
	other := httptest.NewServer(http.HandlerFunc(echo))
	defer other.Close()
	mux := http.NewServeMux()
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusFound
		if r.URL.Query().Get("keep") != "" {
			status = http.StatusTemporaryRedirect
		}
		w.Header().Set("Location", r.URL.Query().Get("url"))
		w.WriteHeader(status)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hops++
		mu.Unlock()
		http.Redirect(w, r, "/loop", http.StatusFound)
	})
	mux.HandleFunc("/end", echo)
	web := httptest.NewServer(mux)
	defer web.Close()
	to := func(location, more string) string {
		return web.URL + "/to?url=" +
			url.QueryEscape(location) + more
	}
	headers := []HTTPHeader{{Name: "X-Key", Value: "s3cret", Secret: true},
		{Name: "Authorization", Value: "a"}, {Name: "Cookie", Value: "c"}, {Name: "X-Plain", Value: "p"}}
	body := func(r *HTTPRequest) { r.SetBody([]byte("data")) }
	for _, test := range []struct {
		name, method, url string
		change            func(*HTTPRequest)
		has, lacks        []string // of the body of the answer, or of the error
		failed            bool
	}{
		{"same server", "GET", to("/end", ""), nil, []string{"s3cret", "Authorization", "Cookie", "X-Plain", "Referer"}, nil, false},
		{"another server", "GET", to(other.URL, ""), nil, []string{"X-Plain"}, []string{"s3cret", "Authorization", "Cookie", "Referer"}, false},
		{"another name of the server", "GET", to(strings.Replace(web.URL, "127.0.0.1", "localhost", 1)+"/end", ""), nil, []string{"X-Plain"}, []string{"s3cret", "Authorization", "Cookie", "Referer"}, false},
		{"body kept", "POST", to("/end", "&keep=1"), body, []string{"POST", "data"}, nil, false},
		{"body dropped", "POST", to("/end", ""), body, []string{"GET"}, []string{"data"}, false},
		{"stop", "GET", to(other.URL, ""), (*HTTPRequest).StopAtRedirects, nil, []string{"X-Plain"}, false},
		{"a file", "GET", to("file:///etc/passwd", ""), nil, []string{"only supports http and https URLs, got file"}, []string{"s3cret"}, true},
		{"no host", "GET", to("http:///x", ""), nil, []string{"empty host"}, []string{"s3cret"}, true},
		{"loop", "GET", web.URL + "/loop", nil, []string{"too many redirects"}, []string{"s3cret"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, text, err := fetched(t, test.method, test.url, test.change, headers...)
			if (err != nil) != test.failed {
				t.Fatalf("%s, %v", text, err)
			}
			if err != nil {
				text = err.Error()
			}
			for _, want := range test.has {
				if !strings.Contains(text, want) {
					t.Errorf("%s lacks %s", text, want)
				}
			}
			for _, bad := range test.lacks {
				if strings.Contains(text, bad) {
					t.Errorf("%s has %s", text, bad)
				}
			}
		})
	}
	if hops != maxRedirects+1 {
		t.Errorf("%d requests of a loop, want %d", hops, maxRedirects+1)
	}
}

// TestOrigin: a server is a scheme, a host and a port, however it is written.
func TestOrigin(t *testing.T) {
	for _, test := range []struct{ a, b string }{
		{"http://a", "http://A:80/x"}, {"https://a:443", "https://a"}, {"http://[::1]", "http://[::1]:80"}, {"http://u:p@a/", "http://a"},
	} {
		if origin(parsed(t, test.a)) != origin(parsed(t, test.b)) {
			t.Errorf("%s is another server than %s", test.a, test.b)
		}
	}
	for _, test := range []struct{ a, b string }{
		{"http://a", "https://a"}, {"http://a", "http://a:443"}, {"http://a", "http://b"}, {"http://a", "http://a."}, {"http://a", "http://x.a"},
	} {
		if origin(parsed(t, test.a)) == origin(parsed(t, test.b)) {
			t.Errorf("%s is the server %s", test.a, test.b)
		}
	}
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestFailures: an error tells the cause and the URL, without its password. The end of the context
// ends a request, with its cause.
func TestFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	if _, _, err := fetched(t, "GET", "http://user:s3cret@"+closed+"/x", nil); err == nil ||
		!strings.HasPrefix(err.Error(), "error sending request for url (http://"+closed+"/x): dial tcp ") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Errorf("%v", err)
	}

	long := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-A", strings.Repeat("a", 2*maxHeader))
	}))
	defer long.Close()
	if _, _, err := fetched(t, "GET", long.URL, nil); err == nil ||
		!strings.Contains(err.Error(), "exceeded") {
		t.Errorf("a long head: %v", err)
	}

	asked := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	defer silent.Close()
	errEnough := errors.New("that was enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-asked
		cancel(errEnough)
	}()
	r, err := NewHTTPRequest("GET", silent.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := NewHTTPClient()
	defer c.Close()
	if _, err := c.Do(ctx, r); !errors.Is(err, errEnough) {
		t.Errorf("%v", err)
	}
}

// FuzzNewRequest: what is accepted is one request on the wire, to an HTTP server, with the headers
// that were given.
func FuzzNewRequest(f *testing.F) {
	f.Add("GET", "http://a/x?y", "X-A", "b")
	f.Add("GET / HTTP/1.1\r\n", "http://a/\r\nX: y", "A\r\nB", "b\r\nX-Key: c")
	f.Add("CONNECT", "file:///x", "Host", "x y")
	f.Fuzz(func(t *testing.T, method, address, name, value string) {
		r, err := NewHTTPRequest(method, address, []HTTPHeader{{Name: name, Value: value}})
		if err != nil {
			return
		}
		if r.url.Scheme != "http" && r.url.Scheme != "https" || r.url.Hostname() == "" {
			t.Errorf("%q is asked", address)
		}
		var sent bytes.Buffer
		request := &http.Request{Method: r.method, URL: r.url, Host: r.host, Header: r.header,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		if request.Write(&sent) != nil {
			return // net/http refuses more
		}
		in := bufio.NewReader(&sent)
		got, err := http.ReadRequest(in)
		if err != nil {
			return // of a form that a server refuses
		}
		if got.Method != method || len(got.Header) > 1 {
			t.Errorf("%q, %v", got.Method, got.Header)
		}
		if rest, _ := io.ReadAll(in); len(rest) > 0 {
			t.Errorf("%q is left", rest)
		}
	})
}
