// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"bytes"
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
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sallyport-dev/sallyport/internal/strict"
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
	return nil, fmt.Errorf("unknown kind of authentication %q; use %s or %s", a.Kind,
		AuthCapability, AuthSigned)
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
	options := []jwt.ParserOption{
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithStrictDecoding(),
		jwt.WithExpirationRequired(), jwt.WithLeeway(skew),
	}
	if a.Issuer != "" {
		options = append(options, jwt.WithIssuer(a.Issuer))
	}
	if a.Audience != "" {
		options = append(options, jwt.WithAudience(a.Audience))
	}
	parser := jwt.NewParser(options...)
	return func(r *http.Request) (string, error) {
		token, err := bearer(r)
		if err != nil {
			return "", err
		}
		c := new(claims)
		if _, err := parser.ParseWithClaims(token, c, keyOf(secret)); err != nil {
			return "", errors.New("invalid authorization token")
		}
		if c.Subject == "" {
			sum := sha256.Sum256([]byte(token))
			return "token " + hex.EncodeToString(sum[:]), nil
		}
		return "subject " + c.Issuer + "\x00" + c.Subject, nil // a new token of the same client
	}, nil
}

// claims are what a token says. Their names are case-sensitive (RFC 7519, section 4), and none is there
// twice.
type claims struct{ jwt.RegisteredClaims }

// UnmarshalJSON implements json.Unmarshaler.
func (c *claims) UnmarshalJSON(text []byte) error {
	var times struct { // package jwt takes them in quotes, too
		Expires   *float64 `json:"exp"`
		NotBefore *float64 `json:"nbf"`
	}
	return errors.Join(strict.Unmarshal(text, &times), strict.Unmarshal(text, &c.RegisteredClaims))
}

// keyOf returns the secret for a token whose header says one algorithm, once, and has no demands that are not
// understood here. Package jwt takes the last of several members.
func keyOf(secret []byte) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		part, _, _ := strings.Cut(t.Raw, ".")
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return nil, err
		}
		var header struct {
			Critical json.RawMessage `json:"crit"`
		}
		if err := strict.Unmarshal(text, &header); err != nil {
			return nil, err
		}
		if header.Critical != nil {
			return nil, errors.New("the token has demands that are not understood")
		}
		return secret, nil
	}
}
