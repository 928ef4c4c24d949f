// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/sallyport-dev/sallyport/network"
)

// TestAnswers has the bytes of every answer of the proxy's own.
func TestAnswers(t *testing.T) {
	json403 := func(header, body string) string {
		return fmt.Sprintf("HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\nx-proxy-error: %s\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s", header, len(body), body)
	}
	text := func(status, headers, body string) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\ncontent-type: text/plain\r\n%sconnection: close\r\ncontent-length: %d\r\n\r\n%s", status, headers, len(body), body)
	}
	get := func(url, host string) string {
		return "GET " + url + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
	}
	opened := []string{"api.example.com", "*.example.com", "!evil.example.com:80"}
	for _, test := range []struct {
		name    string
		mode    network.Mode
		request string
		want    string
	}{
		{"not_allowed", network.Full, get("http://evil.test/x?secret", "evil.test"), json403("blocked-by-allowlist",
			`{"status":"blocked","host":"evil.test","reason":"not_allowed","decision":"deny","source":"baseline_policy","protocol":"http","port":80,"message":"Domain not in allowlist.","call_id":"call-1","hint":"HINT"}`)},
		{"not_allowed_local", network.Full, get("http://127.1:8080/", "127.0.0.1:8080"), json403("blocked-by-allowlist",
			`{"status":"blocked","host":"127.0.0.1","reason":"not_allowed_local","decision":"deny","source":"baseline_policy","protocol":"http","port":8080,"message":"Sandbox policy blocks local/private network addresses.","call_id":"call-1","hint":"HINT"}`)},
		{"not_allowed_local by name", network.Full, get("http://loop.example.com/", "loop.example.com"), json403("blocked-by-allowlist",
			`{"status":"blocked","host":"loop.example.com","reason":"not_allowed_local","decision":"deny","source":"baseline_policy","protocol":"http","port":80,"message":"Sandbox policy blocks local/private network addresses.","call_id":"call-1","hint":"HINT"}`)},
		{"denied", network.Full, get("http://EVIL.example.com./", "evil.example.com"), json403("blocked-by-denylist",
			`{"status":"blocked","host":"evil.example.com","reason":"denied","decision":"deny","source":"baseline_policy","protocol":"http","port":80,"message":"Domain denied by the sandbox policy.","call_id":"call-1","rule":"evil.example.com:80","hint":"HINT"}`)},
		{"method_not_allowed", network.Limited, "DELETE http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n", json403("blocked-by-method-policy",
			`{"status":"blocked","host":"api.example.com","reason":"method_not_allowed","decision":"deny","source":"mode_guard","protocol":"http","port":80,"message":"Method not allowed in limited mode.","call_id":"call-1","hint":"HINT"}`)},
		{"websocket in limited", network.Limited, "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n", json403("blocked-by-method-policy",
			`{"status":"blocked","host":"api.example.com","reason":"method_not_allowed","decision":"deny","source":"mode_guard","protocol":"http","port":80,"message":"Method not allowed in limited mode.","call_id":"call-1","hint":"HINT"}`)},
		{"mitm_required", network.Limited, "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", text("403 Forbidden", "x-proxy-error: blocked-by-mitm-required\r\n", "MITM required for limited HTTPS.")},
		{"proxy_disabled", network.None, get("http://api.example.com/", "api.example.com"), json403("blocked-by-policy",
			`{"status":"blocked","host":"api.example.com","reason":"proxy_disabled","decision":"deny","source":"proxy_state","protocol":"http","port":80,"message":"network proxy is disabled","call_id":"call-1","hint":"HINT"}`)},
		{"dns_failed", network.Full, get("http://dead.example.com/", "dead.example.com"), json403("blocked-by-policy",
			`{"status":"blocked","host":"dead.example.com","reason":"dns_failed","decision":"deny","source":"baseline_policy","protocol":"http","port":80,"message":"cannot resolve dead.example.com: the name has no address","call_id":"call-1","hint":"HINT"}`)},
		{"CONNECT dns_failed", network.Full, "CONNECT dead.example.com:443 HTTP/1.1\r\n\r\n",
			text("502 Bad Gateway", "", "cannot resolve dead.example.com: the name has no address\n")},
		{"CONNECT", network.Full, "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n", text("403 Forbidden", "x-proxy-error: blocked-by-allowlist\r\n", "Domain not in allowlist.")},
		{"CONNECT of HTTP/1.0", network.Full, "CONNECT evil.test:443 HTTP/1.0\r\n\r\n", text("403 Forbidden", "x-proxy-error: blocked-by-allowlist\r\n", "Domain not in allowlist.")},
		{"CONNECT that accepts JSON", network.Full, "CONNECT evil.test:443 HTTP/1.1\r\nAccept: application/json\r\n\r\n", json403("blocked-by-allowlist",
			`{"status":"blocked","host":"evil.test","reason":"not_allowed","decision":"deny","source":"baseline_policy","protocol":"https_connect","port":443,"message":"Domain not in allowlist.","call_id":"call-1","hint":"HINT"}`)},
		{"HEAD", network.Full, "HEAD http://evil.test/ HTTP/1.0\r\n\r\n", json403("blocked-by-allowlist",
			`{"status":"blocked","host":"evil.test","reason":"not_allowed","decision":"deny","source":"baseline_policy","protocol":"http","port":80,"message":"Domain not in allowlist.","call_id":"call-1","hint":"HINT"}`)},
		{"malformed host", network.Full, get("http://a..b/", "a"), text("400 Bad Request", "", "the request is refused: invalid_host\n")},
		{"Host of another", network.Full, get("http://api.example.com/", "evil.test"), text("400 Bad Request", "", "the request is refused: host_mismatch\n")},
		{"scheme", network.Full, get("ftp://api.example.com/", "api.example.com"), text("400 Bad Request", "", "the request is refused: unsupported_scheme\n")},
		{"malformed head", network.Full, "GET http://api.example.com/\r\n\r\n", text("400 Bad Request", "", "the request is refused: malformed request line\n")},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, makePolicy(t, network.Config{Mode: test.mode}, opened...), "127.0.0.1:1")
			got := l.send(test.request)
			want := test.want
			if events := l.told(); strings.Contains(want, "HINT") {
				hint := events[0].Decision.Hint(network.Request{Host: mustHost(t, events[0].Host),
					Port: events[0].Port})
				if hint == "" {
					t.Error("no hint")
				}
				body := strings.ReplaceAll(want[strings.Index(want, "{"):], "HINT", jsonText(hint))
				header, _, _ := strings.Cut(strings.TrimPrefix(want[strings.Index(want, "x-proxy-error: "):],
					"x-proxy-error: "), "\r\n")
				want = json403(header, body)
			}
			if strings.HasPrefix(test.request, "HEAD ") {
				want, _, _ = strings.Cut(want, "{")
			}
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(got, "secret") {
				t.Error("the answer has the query of the URL")
			}
		})
	}
}

func jsonText(s string) string { return strings.ReplaceAll(s, `"`, `\"`) }

func mustHost(t *testing.T, text string) network.Host {
	t.Helper()
	h, err := network.ParseHost(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestHeadAnswers sends HEAD requests on one connection: no answer has a body, which a client would
// take for the next answer.
func TestHeadAnswers(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"), "")
	var sent, want string
	for _, host := range []string{"api.example.com", "evil.test", "a..b"} {
		sent += "HEAD http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
	}
	got := l.send(sent)
	for answer := range strings.SplitSeq(strings.TrimSuffix(got, "\r\n\r\n"), "\r\n\r\n") {
		want += strings.Fields(answer)[1] + " "
	}
	if want != "502 403 400 " || strings.Contains(got, "{") {
		t.Errorf("%q", got)
	}
}

// TestUnreachable has the answers when an allowed host does not answer: no policy, but a failure.
func TestUnreachable(t *testing.T) {
	for _, test := range []struct{ name, request, want string }{
		{"GET", "GET http://api.example.com/ HTTP/1.0\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"CONNECT", "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 502 Bad Gateway\r\n"},
		{"SOCKS5", "\x05\x01\x00\x05\x01\x00\x03\x0fapi.example.com\x00\x50", "\x05\x00\x05\x05"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, full(t, "api.example.com"), "")
			if got := l.send(test.request); !strings.HasPrefix(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			events := l.told()
			if len(events) != 2 || events[0].Decision.Ruling != network.Allow ||
				events[1].Cause != DialFailed || events[1].Resolved.IsValid() {
				t.Errorf("told %+v", events)
			}
		})
	}
}

// TestForwarded has the bytes that the server gets: rebuilt from what was judged.
func TestForwarded(t *testing.T) {
	for _, test := range []struct{ name, request, want string }{
		{"spellings", "GET HTTP://API.Example.COM.:080/a%2f\\?q=http://evil.test/ HTTP/1.1\r\nHost: Api.example.com\r\nX-Name: a \t\r\n\r\n",
			"GET /a%2f\\?q=http://evil.test/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nX-Name: a\r\n\r\n"},
		{"port", "GET http://api.example.com:8080?x HTTP/1.0\r\n\r\n",
			"GET /?x HTTP/1.1\r\nHost: api.example.com:8080\r\nConnection: close\r\n\r\n"},
		{"address", "GET http://[2606:2800:0220:1::34]:81/ HTTP/1.0\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: [2606:2800:220:1::34]:81\r\nConnection: close\r\n\r\n"},
		{"two slashes", "GET http://api.example.com//evil.test/a%2f?x HTTP/1.0\r\n\r\n",
			"GET //evil.test/a%2f?x HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"},
		{"not a URL", "GET http://api.example.com/%zz?a;%\"<> HTTP/1.0\r\nx_y: 1\r\nForwarded: for=x\r\nX-Forwarded-For: y\r\n\r\n",
			"GET /%zz?a;%\"<> HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nForwarded: for=x\r\nX-Forwarded-For: y\r\nX_y: 1\r\n\r\n"},
		{"OPTIONS of the server", "OPTIONS http://api.example.com HTTP/1.0\r\n\r\n",
			"OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n"},
		{"hop by hop", "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nProxy-Authorization: Basic c2VjcmV0\r\nConnection: keep-alive, x-one\r\nX-One: 1\r\nX-Two: 2\r\nKeep-Alive: 5\r\nTE: trailers\r\nProxy-Connection: keep-alive\r\nUpgrade: h2c\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nX-Two: 2\r\n\r\n"},
		{"length", "POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 3\r\n\r\nabcGET http://evil.test/ HTTP/1.1\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"},
		{"length that Connection names", "POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: Content-Length, Host\r\nContent-Length: 3\r\n\r\nabc",
			"POST / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"},
		{"chunks that Connection names", "POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"},
		{"headers twice", "GET http://api.example.com/ HTTP/1.0\r\ncookie: b\r\nX-A: 1\r\nCookie: a\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nCookie: b\r\nCookie: a\r\nX-A: 1\r\n\r\n"},
		{"empty body", "POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"},
		{"chunks", "POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: Chunked\r\nTrailer: X-Late\r\n\r\n0003;ext=\"a;b\"\r\nabc\r\n2 \r\nde\r\n0\r\nX-Late: 1\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := make(chan string, 1)
			origin := listen(t, func(conn net.Conn) {
				p := make([]byte, len(test.want))
				n, _ := io.ReadFull(conn, p)
				got <- string(p[:n])
				_, _ = io.WriteString(conn, okResponse)
				_, _ = io.Copy(io.Discard, conn)
			})
			l := newLab(t, full(t, "api.example.com", "[2606:2800:220:1::34]"), origin)
			answer := l.send(test.request)
			if sent := <-got; sent != test.want {
				t.Errorf("the server gets\n%q, want\n%q", sent, test.want)
			}
			if !strings.Contains(answer, "\r\n\r\nok") {
				t.Errorf("the client gets %q", answer)
			}
		})
	}
}

// TestResponses has the bytes that the client gets.
func TestResponses(t *testing.T) {
	const ok, closing = "HTTP/1.1 200 OK\r\n", "Connection: close\r\n"
	for _, test := range []struct{ name, method, version, server, want string }{
		{"length", "GET", "1.1", okResponse + "extra", ok + closing + "Content-Length: 2\r\n\r\nok"},
		{"hop by hop", "GET", "1.1", ok + "Connection: x-a\r\nX-A: 1\r\nKeep-Alive: 3\r\nProxy-Authenticate: Basic\r\nX-B: 2\r\nContent-Length: 0\r\n\r\n", ok + closing + "Content-Length: 0\r\nX-B: 2\r\n\r\n"},
		{"chunks", "GET", "1.1", ok + "Transfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n0\r\nX: y\r\n\r\n", ok + closing + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{"chunks for an old client", "GET", "1.0", ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", ok + closing + "\r\nok"},
		{"until the end", "GET", "1.1", "HTTP/1.0 200 OK\r\n\r\nok", ok + closing + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"},
		{"HEAD", "HEAD", "1.1", ok + "Content-Length: 9\r\n\r\n", ok + closing + "Content-Length: 9\r\n\r\n"},
		{"length that Connection names", "GET", "1.1", ok + "Connection: content-length\r\nContent-Length: 2\r\n\r\nok", ok + closing + "Content-Length: 2\r\n\r\nok"},
		{"chunks of HTTP/1.0", "GET", "1.1", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 502"},
		{"length and chunks", "GET", "1.1", ok + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 502"},
		{"one length twice", "GET", "1.1", ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", "HTTP/1.1 502"},
		{"HEAD of chunks", "HEAD", "1.1", ok + "Transfer-Encoding: chunked\r\n\r\n", ok + closing + "\r\n"},
		{"not modified", "GET", "1.1", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "HTTP/1.1 304 Not Modified\r\n" + closing + "Content-Length: 9\r\n\r\n"},
		{"no words", "GET", "1.1", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 \r\n" + closing + "Content-Length: 0\r\n\r\n"},
		{"lines that end in LF", "GET", "1.1", "HTTP/1.1 200 OK\nX: a\n b\nContent-Length: 2\n\nok", "HTTP/1.1 502"},
		{"control byte", "GET", "1.1", "HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 502"},
		{"control byte in a header", "GET", "1.1", "HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 502"},
		{"a status below 100", "GET", "1.1", "HTTP/1.1 099 x\r\n\r\n" + okResponse, "HTTP/1.1 502"},
		{"another version", "GET", "1.1", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 502"},
		{"a huge head", "GET", "1.1", ok + "X: " + strings.Repeat("x", maxHead) + "\r\n\r\n", "HTTP/1.1 502"},
		{"no content", "GET", "1.1", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n" + closing + "\r\n"},
		{"interim", "GET", "1.1", "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + okResponse, "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + ok + closing + "Content-Length: 2\r\n\r\nok"},
		{"interim for an old client", "GET", "1.0", "HTTP/1.1 103 Early Hints\r\n\r\n" + okResponse, ok + closing + "Content-Length: 2\r\n\r\nok"},
		{"cut", "GET", "1.1", ok + "Content-Length: 9\r\n\r\nok", ok + closing + "Content-Length: 9\r\n\r\nok"},
		{"cut chunks", "GET", "1.1", ok + "Transfer-Encoding: chunked\r\n\r\n9\r\nok", ok + closing + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"},
		{"nothing", "GET", "1.1", "", "HTTP/1.1 502"},
		{"no HTTP", "GET", "1.1", "SSH-2.0-x\r\n", "HTTP/1.1 502"},
		{"two lengths", "GET", "1.1", ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nok", "HTTP/1.1 502"},
		{"switch that was not asked for", "GET", "1.1", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 502"},
		{"interim without end", "GET", "1.0", strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", maxInterim+1), "HTTP/1.1 502"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, full(t, "api.example.com"), listen(t, answerAny(test.server)))
			got := l.send(test.method + " http://api.example.com/ HTTP/" + test.version +
				"\r\nHost: api.example.com\r\nConnection: close\r\n\r\n")
			if got != test.want && !(strings.HasSuffix(test.want, "502") &&
				strings.HasPrefix(got, test.want)) {
				t.Errorf("got\n%q, want\n%q", got, test.want)
			}
		})
	}
}

// TestKeepAlive sends several requests on one connection: each is judged anew, by the policy of
// now.
func TestKeepAlive(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"), listen(t, answerAny(okResponse)))
	const allowed = "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n"
	const refused = "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
	got := l.send(allowed + refused + allowed + strings.Replace(refused, "\r\n\r\n",
		"\r\nConnection: close\r\n\r\n", 1) + allowed)
	if n, m := strings.Count(got, "HTTP/1.1 200"), strings.Count(got, "HTTP/1.1 403"); n != 2 || m != 2 {
		t.Errorf("%d allowed, %d refused, want 2 and 2, in %q", n, m, got)
	}
	conn := l.connect()
	head := make([]byte, len("HTTP/1.1 200"))
	for i, policy := range []*network.Policy{l.now(), full(t, "!*", "api.example.com"), nil} {
		l.mu.Lock()
		l.policy = policy
		l.mu.Unlock()
		if _, err := io.WriteString(conn, allowed); err != nil {
			t.Fatal(err)
		}
		want := []string{"HTTP/1.1 200", "HTTP/1.1 403", "HTTP/1.1 403"}[i]
		if _, err := io.ReadFull(conn, head); err != nil || string(head) != want {
			t.Fatalf("%q, %v, want %q", head, err, want)
		}
		skipAnswer(t, conn)
	}
}

// TestConnectBehind has CONNECT behind a request, sent before its response: the tunnel begins behind that.
func TestConnectBehind(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"), listen(t, answerAny(okResponse)))
	got := l.send("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n" +
		connectAPI + "hello")
	first, rest, _ := strings.Cut(got, connected)
	if !strings.HasPrefix(first, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(first, "\r\n\r\nok") ||
		rest != okResponse {
		t.Errorf("%q", got)
	}
}

// TestStreams has a server that sends a piece of its body and waits for the client to have it: none is
// held back, and neither is the head.
func TestStreams(t *testing.T) {
	step := make(chan struct{})
	l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4<<10))
		for _, piece := range []string{"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
			"one ", "two "} {
			_, _ = io.WriteString(conn, piece)
			<-step
		}
	}))
	conn := l.connect()
	_, _ = io.WriteString(conn, "GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
	var got []byte
	for _, until := range []string{"\r\n\r\n", "one \r\n", "two \r\n"} {
		for p := make([]byte, 1); !bytes.HasSuffix(got, []byte(until)); got = append(got, p...) {
			if _, err := io.ReadFull(conn, p); err != nil {
				t.Fatalf("%q: %v", got, err)
			}
		}
		step <- struct{}{}
	}
}

// TestLargeBodies sends and gets more than any buffer holds, at once.
func TestLargeBodies(t *testing.T) {
	text := strings.Repeat("large body ", 200_000)
	l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		q, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		_, _ = io.Copy(conn, q.Body)
	}))
	for _, framed := range []string{fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(text), text),
		fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(text), text)} {
		conn := l.connect()
		go func() {
			_, _ = io.WriteString(conn,
				"POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n"+framed)
		}()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(res.Body); err != nil || string(got) != text {
			t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
		}
		res.Body.Close()
	}
}

// skipAnswer reads the rest of an answer with a Content-Length.
func skipAnswer(t *testing.T, r io.Reader) {
	t.Helper()
	var head bytes.Buffer
	for one := make([]byte, 1); !bytes.HasSuffix(head.Bytes(), []byte("\r\n\r\n")); head.Write(one) {
		if _, err := io.ReadFull(r, one); err != nil {
			t.Fatal(err)
		}
	}
	var n int64
	_, after, _ := strings.Cut(strings.ToLower(head.String()), "content-length: ")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, r, n); err != nil {
		t.Fatal(err)
	}
}

// TestEarlyResponse has a server that answers before it has read the request.
func TestEarlyResponse(t *testing.T) {
	const refusal = "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
	l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
		_, _ = io.ReadFull(conn, make([]byte, 10))
		_, _ = io.WriteString(conn, refusal)
	}))
	conn := l.connect()
	if _, err := io.WriteString(conn,
		"POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 1000\r\n\r\npart"); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, len("HTTP/1.1 413"))
	if _, err := io.ReadFull(conn, head); err != nil || string(head) != "HTTP/1.1 413" {
		t.Errorf("%q, %v", head, err)
	}
}

// TestExpect has a client that waits for the server's word before it sends the body.
func TestExpect(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
		p := make([]byte, 4<<10)
		if n, _ := conn.Read(p); !bytes.Contains(p[:n], []byte("Expect: 100-continue\r\n")) {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
		if _, err := io.ReadFull(conn, p[:3]); err == nil {
			_, _ = io.WriteString(conn, okResponse)
		}
	}))
	conn := l.connect()
	_, _ = io.WriteString(conn,
		"POST http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n")
	const interim = "HTTP/1.1 100 Continue\r\n\r\n"
	p := make([]byte, len(interim))
	if _, err := io.ReadFull(conn, p); err != nil || string(p) != interim {
		t.Fatalf("%q, %v", p, err)
	}
	_, _ = io.WriteString(conn, "abc")
	if all, err := io.ReadAll(conn); err != nil || !bytes.HasSuffix(all, []byte("ok")) {
		t.Errorf("%q, %v", all, err)
	}
}

// TestWebsocket switches protocols, with bytes that come before they should.
func TestWebsocket(t *testing.T) {
	l := newLab(t, full(t, "api.example.com"), listen(t, func(conn net.Conn) {
		p := make([]byte, 4<<10)
		if n, _ := conn.Read(p); !bytes.Contains(p[:n],
			[]byte("Connection: Upgrade\r\nSec-Websocket-Key: y\r\nUpgrade: websocket\r\n")) {
			return
		}
		_, _ = io.WriteString(conn,
			"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nearly ")
		_, _ = io.Copy(conn, conn)
	}))
	got := l.send("GET http://api.example.com/ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: y\r\n\r\nping")
	if want := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nSec-Websocket-Accept: x\r\nUpgrade: websocket\r\n\r\nearly ping"; got != want {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
}

// TestAsk has a decider allow, and the words of a decision that it refuses.
func TestAsk(t *testing.T) {
	for _, test := range []struct {
		name   string
		ruling network.Ruling
		want   string
	}{
		{"allow", network.Allow, "HTTP/1.1 200"},
		{"deny", network.Deny, `"decision":"deny","source":"decider"`},
		{"no answer yet", network.Ask, `"decision":"ask","source":"decider"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newLab(t, makePolicy(t, network.Config{Mode: network.Full, Ask: true}),
				listen(t, answerAny(okResponse)), func(l *lab) {
					l.command.Ask = func(_ context.Context, r network.Request) network.Decision {
						if r.Host.Name() != "new.example.com" || r.Port != 80 || r.Method != "GET" {
							t.Errorf("asked about %+v", r)
						}
						return network.Decision{Ruling: test.ruling, Reason: network.NotAllowed,
							Source: network.Decider}
					}
				})
			got := l.send("GET http://new.example.com/ HTTP/1.0\r\n\r\n")
			if !strings.Contains(got, test.want) {
				t.Errorf("%q, want %q", got, test.want)
			}
			if asked := l.zone.questions(); (len(asked) == 1) != (test.ruling == network.Allow) {
				t.Errorf("resolved %q", asked)
			}
		})
	}
}
