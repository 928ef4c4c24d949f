// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/strictjson"
)

// The kinds of authentication.
const (
	AuthCapability = "capability-token"
	AuthSigned     = "signed-bearer-token"
)

// Auth says how clients of a WebSocket prove who they are. The zero Auth lets every client in.
type Auth struct {
	Kind string // AuthCapability, AuthSigned, or empty for none
	// TokenFile holds the token of AuthCapability, or TokenSHA256 is its hash in hexadecimal.
	TokenFile, TokenSHA256 string
	// SecretFile holds the secret of AuthSigned, at least 32 bytes.
	SecretFile string
	// Issuer and Audience are what tokens of AuthSigned must name; empty for any.
	Issuer, Audience string
	// Skew is how far the clocks of those who sign may differ; nil means 30 seconds.
	Skew *time.Duration
}

const (
	defaultSkew = 30 * time.Second
	leastSecret = 32
)

// The errors of options. Clients of the protocol know their texts.
var (
	errNoKind    = errors.New("websocket auth flags require `--ws-auth capability-token` or `--ws-auth signed-bearer-token`")
	errStdio     = errors.New("WebSocket auth requires a WebSocket listener, not stdio")
	errNoToken   = errors.New("`--ws-token-file` or `--ws-token-sha256` is required when `--ws-auth capability-token` is set")
	errTwoTokens = errors.New("`--ws-token-file` and `--ws-token-sha256` are mutually exclusive")
	errNoSecret  = errors.New("`--ws-shared-secret-file` is required when `--ws-auth signed-bearer-token` is set")
)

// A gate lets requests in. It returns who the client is, for the resumption of sessions, or why
// it is not let in.
type gate func(*http.Request) (credential string, err error)

// open lets every client in, as the same one.
func open(*http.Request) (string, error) { return "", nil }

// gate checks the options and reads the files that they name.
func (a *Auth) gate() (gate, error) {
	capability := a.TokenFile != "" || a.TokenSHA256 != ""
	signed := a.SecretFile != "" || a.Issuer != "" || a.Audience != "" || a.Skew != nil
	switch a.Kind {
	case "":
		if capability || signed {
			return nil, errNoKind
		}
		return open, nil
	case AuthCapability:
		if signed {
			return nil, errors.New("`--ws-shared-secret-file`, `--ws-issuer`, `--ws-audience` and `--ws-max-clock-skew-seconds` need `--ws-auth signed-bearer-token`")
		}
		return a.capability()
	case AuthSigned:
		if capability {
			return nil, errors.New("`--ws-token-file` and `--ws-token-sha256` need `--ws-auth capability-token`")
		}
		return a.signed()
	}
	return nil, fmt.Errorf("unknown kind of authentication %q; use %s or %s", a.Kind, AuthCapability, AuthSigned)
}

// capability returns the gate for one token that all clients know.
func (a *Auth) capability() (gate, error) {
	var want [sha256.Size]byte
	switch {
	case a.TokenFile != "" && a.TokenSHA256 != "":
		return nil, errTwoTokens
	case a.TokenSHA256 != "":
		sum, err := hex.DecodeString(a.TokenSHA256)
		if err != nil || len(sum) != len(want) {
			return nil, errors.New("`--ws-token-sha256` must be 64 hexadecimal digits; sha256sum prints them")
		}
		want = [sha256.Size]byte(sum)
	case a.TokenFile != "":
		token, err := readSecret(a.TokenFile, 1)
		if err != nil {
			return nil, err
		}
		want = sha256.Sum256(token)
	default:
		return nil, errNoToken
	}
	return func(r *http.Request) (string, error) {
		token, err := bearer(r)
		if err != nil {
			return "", err
		}
		got := sha256.Sum256([]byte(token))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			return "", errors.New("invalid authorization token")
		}
		return "capability", nil
	}, nil
}

// readSecret reads a file without the space around its text.
func readSecret(name string, least int) ([]byte, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret of the listener: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) < least {
		return nil, fmt.Errorf("the secret in %s has %d bytes; write at least %d", name, len(text), least)
	}
	return text, nil
}

// absolute returns the absolute paths of files. Empty names are left out.
func absolute(names ...string) ([]string, error) {
	var files []string
	for _, name := range names {
		if name == "" {
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, fmt.Errorf("cannot find the files of the listener: %w", err)
		}
		files = append(files, path)
	}
	return files, nil
}

// secrets returns files with secrets, absolute and without symbolic links. Empty names are left out.
func secrets(names ...string) ([]string, error) {
	files, err := absolute(names...)
	for i := 0; i < len(files) && err == nil; i++ {
		files[i], err = filepath.EvalSymlinks(files[i])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find the secret of the listener: %w", err)
	}
	return files, nil
}

// errNoBearer is the answer to a request without a token.
var errNoBearer = errors.New("missing authorization token")

// bearer returns the token of a request.
func bearer(r *http.Request) (string, error) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return "", errNoBearer
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return "", errNoBearer
	}
	return token, nil
}

// signed returns the gate for tokens in JWT form (RFC 7519) that are signed with HS256.
func (a *Auth) signed() (gate, error) {
	if a.SecretFile == "" {
		return nil, errNoSecret
	}
	secret, err := readSecret(a.SecretFile, leastSecret)
	if err != nil {
		return nil, err
	}
	skew := defaultSkew
	if a.Skew != nil {
		skew = *a.Skew
	}
	return func(r *http.Request) (string, error) {
		token, err := bearer(r)
		if err != nil {
			return "", err
		}
		c, ok := verify(token, secret)
		if !ok || !c.valid(time.Now(), skew, a.Issuer, a.Audience) {
			return "", errors.New("invalid authorization token")
		}
		if c.Subject == "" {
			sum := sha256.Sum256([]byte(token))
			return "token " + hex.EncodeToString(sum[:]), nil
		}
		return "subject " + c.Issuer + "\x00" + c.Subject, nil // a new token of the same client
	}, nil
}

// claims are what a token says. Their names are case-sensitive (RFC 7519, section 4).
type claims struct {
	Issuer    string   `json:"iss"`
	Subject   string   `json:"sub"`
	Audience  audience `json:"aud"`
	Expires   *float64 `json:"exp"` // seconds since 1970
	NotBefore *float64 `json:"nbf"`
}

// audience is a string or a list of strings.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(a))
	}
	*a = make([]string, 1)
	return json.Unmarshal(text, &(*a)[0])
}

// verify returns the claims of a token with the right signature. Only HS256 counts: a token
// does not choose how it is checked.
func verify(token string, secret []byte) (*claims, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	var raw [3][]byte
	for i, part := range parts {
		var err error
		if raw[i], err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return nil, false
		}
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if !hmac.Equal(mac.Sum(nil), raw[2]) {
		return nil, false
	}
	var header struct {
		Algorithm string          `json:"alg"`
		Critical  json.RawMessage `json:"crit"` // demands that are not understood here
	}
	if strictjson.Unmarshal(raw[0], &header) != nil || header.Algorithm != "HS256" || header.Critical != nil {
		return nil, false
	}
	c := new(claims)
	return c, strictjson.Unmarshal(raw[1], c) == nil
}

// valid reports whether the claims hold now.
func (c *claims) valid(now time.Time, skew time.Duration, issuer, audience string) bool {
	seconds, allowed := float64(now.UnixNano())/1e9, skew.Seconds()
	switch {
	case c.Expires == nil || seconds >= *c.Expires+allowed:
		return false
	case c.NotBefore != nil && seconds < *c.NotBefore-allowed:
		return false
	case issuer != "" && c.Issuer != issuer:
		return false
	}
	return audience == "" || slices.Contains(c.Audience, audience)
}
