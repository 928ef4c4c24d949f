// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// A HostError reports a URI of a path on another machine.
type HostError struct{ URI, System string }

// Error returns the reason.
func (e *HostError) Error() string { return fmt.Sprintf("'%s' is invalid on '%s'", e.URI, e.System) }

// Path returns the absolute, clean path that a "file:" URI names on a system, which is only for
// the error: file:///p, file:/p and file://localhost/p are the same. A URI of another machine is
// a *HostError.
func Path(uri, system string) (string, error) {
	scheme, _, ok := strings.Cut(uri, ":")
	if !ok || scheme == "" || strings.ContainsAny(scheme, "/?#%") {
		return "", errors.New("invalid URI: relative URL without a base")
	}
	if !strings.EqualFold(scheme, "file") {
		return "", fmt.Errorf("unsupported path URI scheme `%s`", scheme)
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "", errors.New("invalid URI: " + strings.TrimPrefix(err.Error(), "parse "))
	case u.RawQuery != "" || u.ForceQuery:
		return "", errors.New("query parameters are not allowed in path URIs")
	case strings.Contains(uri, "#"):
		return "", errors.New("fragments are not allowed in path URIs")
	case u.User != nil, u.Host != "" && !strings.EqualFold(u.Host, "localhost"):
		return "", &HostError{URI: uri, System: system}
	case strings.ContainsRune(u.Path, 0):
		return "", errors.New("invalid URI: the path contains a NUL character")
	case !path.IsAbs(u.Path):
		return "", errors.New("invalid URI: the path is not absolute")
	}
	return path.Clean(u.Path), nil
}

// URI returns the "file:" URI of an absolute path.
func URI(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }
