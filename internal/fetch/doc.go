// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fetch makes HTTP requests for the clients of an exec-server.
//
// A [Client] sends what a [Request] says and adds as little as HTTP allows: no variable of the
// environment names a proxy, no cookies are kept, nothing is decompressed, and there is no
// User-Agent. What it gets is returned as it came; every status is a result.
//
// Headers may be secret. A secret header, and those that carry credentials by their meaning, go to
// the scheme, host and port of the URL only: a redirect to another one leaves them out, also when
// it leads back later.
//
// The package does not decide which hosts may be reached, and it knows no protocol but HTTP.
package fetch
