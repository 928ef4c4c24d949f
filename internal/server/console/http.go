// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

//go:embed dist
var dist embed.FS

// A file of the page.
type file struct {
	text []byte
	kind string // of its content
}

// kinds are the kinds of content by the ends of names.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".css": "text/css; " +
		"charset=utf-8", ".woff2": "font/woff2", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}

// pageFiles returns the files of the page by the paths of their URLs. No others are served.
func pageFiles() map[string]file {
	files := map[string]file{}
	_ = fs.WalkDir(dist, "dist", func(name string, d fs.DirEntry, err error) error { // it is in memory
		if err == nil && !d.IsDir() {
			text, _ := dist.ReadFile(name)
			at := strings.TrimPrefix(name, "dist")
			if at == "/index.html" {
				at = "/"
			}
			files[at] = file{text, kinds[path.Ext(name)]}
		}
		return nil
	})
	return files
}

// The words of a WebSocket's handshake.
const (
	protocol       = "sallyport"
	secretProtocol = "sallyport.secret." // and the secret of the page
	secretHeader   = "X-Sallyport-Secret"
)

// nonceMark is where a page has its nonce.
var nonceMark = []byte("{{nonce}}")

// policy is the Content-Security-Policy of the page.
func policy(nonce string) string {
	return "default-src 'none'; script-src 'self'; style-src 'nonce-" + nonce + "'; style-src-attr " +
		"'unsafe-inline'; " +
		"connect-src 'self'; font-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri " +
		"'none'; " +
		"form-action 'none'"
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !s.knowsHost(r) {
		http.Error(w, "this name is not one of the console's; open the address that it has printed, or "+
			"start it with --host NAME",
			http.StatusForbidden)
		return
	}
	if !s.knowsOrigin(r) {
		http.Error(w, "requests of other web pages are not allowed", http.StatusForbidden)
		return
	}
	f, public := s.files[r.URL.Path]
	switch {
	case public:
		s.serveFile(w, r, f)
	case r.URL.Path == "/session" && r.Method == http.MethodPost:
		s.exchange(w, r)
	default:
		s.closed(w, r)
	}
}

// closed answers a request that needs the secrets.
func (s *Server) closed(w http.ResponseWriter, r *http.Request) {
	expires, ok := s.admitted(r)
	switch {
	case !ok:
		http.Error(w, "the secrets of this console are missing, wrong or expired; open the address that it "+
			"prints",
			http.StatusUnauthorized)
	case r.URL.Path != "/session" && r.URL.Path != "/ws":
		http.NotFound(w, r)
	case r.Method != http.MethodGet:
		notAllowed(w, "GET")
	case r.URL.Path == "/session":
		s.answer(w, session{Expires: expires.UnixMilli(), ViewOnly: s.o.ViewOnly})
	default:
		s.connect(w, r, expires)
	}
}

func notAllowed(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}

// knowsHost reports whether a request is for a name of this console: else a page of another site may have had
// its name resolved to this machine.
func (s *Server) knowsHost(r *http.Request) bool {
	host := strings.ToLower(r.Host)
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && host == at.String() || s.local && host == "localhost:"+s.port || s.isNamed(host)
}

// isNamed reports whether Options.Hosts has a host.
func (s *Server) isNamed(host string) bool {
	return slices.ContainsFunc(s.o.Hosts, func(name string) bool {
		name = strings.ToLower(name)
		_, _, err := net.SplitHostPort(name)
		return host == name || err != nil && host == net.JoinHostPort(strings.Trim(name, "[]"), s.port)
	})
}

// knowsOrigin reports whether a request is of the page of this console, or of no page: that is so for what a
// person opens, for files that a page includes, and for other programs, but never for a WebSocket of a page.
func (s *Server) knowsOrigin(r *http.Request) bool {
	values := r.Header["Origin"]
	if len(values) == 0 {
		return r.URL.Path != "/ws"
	}
	host := strings.ToLower(r.Host)
	plain, encrypted := values[0] == "http://"+host, values[0] == "https://"+host
	// In front of a host that was named there may be a proxy that encrypts.
	return len(values) == 1 && (encrypted && (s.o.TLS || s.isNamed(host)) || plain && !s.o.TLS)
}

// serveFile serves a file of the page, which has no secrets.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, f file) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		notAllowed(w, "GET, HEAD")
		return
	}
	text := f.text
	if r.URL.Path == "/" {
		nonce := rand.Text()
		w.Header().Set("Content-Security-Policy", policy(nonce))
		text = bytes.ReplaceAll(text, nonceMark, []byte(nonce))
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	w.Header().Set("Content-Type", f.kind)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
}

// cookieName returns the name of the cookie: browsers send cookies to every port of an address.
func (s *Server) cookieName() string { return "sallyport-" + s.port }

// admitted returns when the secrets of a request expire, and false where they do not open this console.
func (s *Server) admitted(r *http.Request) (time.Time, bool) {
	var cookies []string
	for _, c := range r.CookiesNamed(s.cookieName()) { // another server of the address may have set one, too
		cookies = append(cookies, c.Value)
	}
	page := r.Header.Get(secretHeader)
	if r.URL.Path == "/ws" { // pages cannot set headers of WebSockets
		page = ""
		for _, list := range r.Header["Sec-Websocket-Protocol"] {
			for word := range strings.SplitSeq(list, ",") {
				if secret, ok := strings.CutPrefix(strings.TrimSpace(word), secretProtocol); ok {
					page = secret
				}
			}
		}
	}
	return s.secrets.check(cookies, page)
}

// A session is the answer to an exchange, and to who asks for it again. The member names stay.
type session struct {
	Secret   string `json:"secret,omitempty"`
	Expires  int64  `json:"expiresMs"` // since 1970
	ViewOnly bool   `json:"viewOnly"`
}

// exchange exchanges a token for secrets.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Token string `json:"token"`
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // empty is none
	if kind != "application/json" {
		http.Error(w, "send the token as application/json", http.StatusUnsupportedMediaType)
		return
	}
	text := new(bytes.Buffer)
	if _, err := text.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		http.Error(w, "the body cannot be read, or is too long", http.StatusRequestEntityTooLarge)
		return
	}
	if strict.Unmarshal(text.Bytes(), &given) != nil || given.Token == "" {
		http.Error(w, `send {"token": TOKEN}`, http.StatusBadRequest)
		return
	}
	if !s.take(given.Token) {
		http.Error(w, "the token is wrong, was used, or is older than 10 minutes; start the console again "+
			"for a new one",
			http.StatusUnauthorized)
		return
	}
	cookie, page, expires, err := s.secrets.add()
	if err != nil {
		http.Error(w, "the secrets cannot be kept: "+err.Error(), http.StatusInternalServerError)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: cookie, Path: "/", HttpOnly: true,
		Secure:   s.o.TLS,
		SameSite: http.SameSiteStrictMode, MaxAge: int(secretTime / time.Second)})
	s.answer(w, session{page, expires.UnixMilli(), s.o.ViewOnly})
}

func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who has gone needs no answer
}

// take reports whether a token can be exchanged, and uses it up.
func (s *Server) take(token string) bool {
	h, fixed := hash(token), hash(s.o.FixedToken)
	if s.o.FixedToken != "" && subtle.ConstantTimeCompare(h[:], fixed[:]) == 1 {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.tokens[h]
	delete(s.tokens, h)
	return ok && s.o.Now().Before(end)
}
