// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	_ "embed"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// above has the names that are no public suffixes, and have some below them: amazonaws.com, ck. They are made
// from the rules of the module that publicsuffix is of, whose table cannot be asked what is below a name.
//
//go:generate go test . -run TestAbove -update
//go:embed above.txt
var above string

// sharedSuffix are further names below which many owners have names, and which the public list lacks: of
// clouds, tunnels, and of names that are addresses.
const sharedSuffix = `
aliyuncs.com
app.github.dev
azure.com
backblazeb2.com
cloudapp.azure.com
devtunnels.ms
glitch.me
loca.lt
localtunnel.me
myqcloud.com
nip.io
oraclecloud.com
serveo.net
sslip.io
traefik.me
wordpress.com
xip.io
`

// IsPublicSuffix reports whether names below this one are of different owners: everybody can register
// one directly below it, such as "com", "co.uk" and "github.io", or below a name that is below it, such
// as "amazonaws.com" (s3.amazonaws.com is a public suffix) and "ck" (of which every name is one), or by
// a list of our own. A top-level name that is not listed, as of a private network, is none. The name is
// in lower case, with A-labels.
func IsPublicSuffix(name string) bool {
	if name == "" || strings.Contains(name, "\n") {
		return false
	}
	suffix, registry := publicsuffix.PublicSuffix(name)
	return suffix == name && (registry || strings.Contains(name, ".")) ||
		strings.Contains("\n"+above+sharedSuffix, "\n"+name+"\n")
}
