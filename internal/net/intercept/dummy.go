// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"crypto/rand"
	"strings"
)

// prefixes are how values of services begin: programs look at them. Of two that fit, the longer one
// stands first.
var prefixes = []string{
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "glptt-", "gldt-",
	"sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk_live_", "sk_test_", "rk_live_",
	"rk_test_", "pk_live_", "pk_test_", "sk-",
	"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xapp-1-", "AKIA", "ASIA", "AIza", "ya29.", "npm_",
	"pypi-AgEIcHlwaS5vcmc", "pypi-",
	"hf_", "gsk_", "xai-", "r8_", "pplx-", "dop_v1_", "doo_v1_", "SG.", "dckr_pat_", "dckr_oat_",
	"tskey-auth-", "tskey-api-",
	"lin_api_", "shpat_", "shpss_", "figd_", "ntn_", "secret_", "rubygems_", "cio", "NRAK-", "glsa_", "hvs.",
	"hvb.", "pul-", "ATATT3", "ATCTT3",
	"sntrys_", "sntryu_", "lsv2_pt_", "rnd_", "vercel_", "eyJ",
}

const (
	// minRandom is how many characters of a dummy are random, at least: it must not be found by chance.
	minRandom = 6
	tries     = 64
)

const (
	lower = "abcdefghijklmnopqrstuvwxyz"
	upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digit = "0123456789"
)

// prefixOf returns how long the part of a value is that its dummy keeps.
func prefixOf(value []byte, shape string) int {
	if shape != "" {
		return len(shape)
	}
	for _, p := range prefixes {
		if bytes.HasPrefix(value, []byte(p)) {
			return len(p)
		}
	}
	return 0
}

// classOf returns the characters that may stand in a dummy for one of a value; empty for one that is
// kept, as it is punctuation. Of hexadecimal values the letters stay hexadecimal.
func classOf(b byte, hex bool) string {
	class := ""
	switch {
	case '0' <= b && b <= '9':
		return digit
	case 'a' <= b && b <= 'z':
		class = lower
	case 'A' <= b && b <= 'Z':
		class = upper
	}
	if hex && class != "" {
		return class[:6]
	}
	return class
}

// makeDummy returns a dummy for a value: random, but for the prefix and punctuation. Taken are values and
// dummies that it must not contain, nor be part of.
func makeDummy(e *entry, shape string, taken [][]byte) error {
	rest := e.real[prefixOf(e.real, shape):]
	if count(rest) < minRandom && shape == "" {
		rest = e.real
	}
	if count(rest) < minRandom {
		return &CredentialError{e.name,
			"its value has too few letters and digits to make a dummy of; use a longer one, or a shorter shape"}
	}
	hex := isHex(rest)
	dummy := bytes.Clone(e.real)
	random := dummy[len(dummy)-len(rest):]
	for range tries {
		for i, b := range rest {
			if class := classOf(b, hex); class != "" {
				random[i] = class[below(len(class))]
			}
		}
		if !overlaps(dummy, taken) {
			e.dummy = dummy
			return nil
		}
	}
	clear(dummy)
	return &CredentialError{e.name,
		"no dummy could be made that is no part of another credential; use longer values"}
}

// overlaps reports whether a dummy contains one of the others, or is part of one.
func overlaps(dummy []byte, others [][]byte) bool {
	for _, o := range others {
		if bytes.Contains(dummy, o) || bytes.Contains(o, dummy) {
			return true
		}
	}
	return false
}

// count returns how many characters of a value are not kept.
func count(value []byte) (n int) {
	for _, b := range value {
		if classOf(b, false) != "" {
			n++
		}
	}
	return n
}

// isHex reports whether a value consists of hexadecimal digits and punctuation.
func isHex(value []byte) bool {
	for _, b := range value {
		if classOf(b, false) != "" && !strings.ContainsRune("0123456789abcdefABCDEF", rune(b)) {
			return false
		}
	}
	return true
}

// below returns a random number from 0 to n-1; n is at most 26.
func below(n int) int {
	var b [1]byte
	for {
		_, _ = rand.Read(b[:]) // it never fails
		if int(b[0]) < 256-256%n {
			return int(b[0]) % n
		}
	}
}
