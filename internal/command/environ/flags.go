// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	"slices"
	"strings"
	"sync"
)

// A passwordFlag is a flag that holds a password although its name does not say so. The
// value is in the same word, behind '=' if the flag is long.
type passwordFlag struct {
	flag     string
	apart    bool // or in the next word
	userPair bool // it is "user:password"
}

// passwordFlags are the flags of known programs.
var passwordFlags = []struct {
	programs []string
	flags    []passwordFlag
}{
	{
		// "-p VALUE" asks for the password, and VALUE is the name of a database.
		[]string{
			"mysql", "mysqladmin", "mysqlcheck", "mysqldump", "mysqlimport", "mysqlpump", "mysqlsh",
			"mysqlshow", "mysqlslap",
			"mariadb", "mariadb-admin", "mariadb-check", "mariadb-dump", "mariadb-import",
			"mariadb-show", "mycli",
		},
		[]passwordFlag{{flag: "-p"}},
	},
	{[]string{"7z", "7za", "7zr", "7zz", "rar", "unrar"}, []passwordFlag{{flag: "-p"}, {flag: "-hp"}}},
	{
		[]string{"sshpass", "mongo", "mongosh", "mongodump", "mongoexport", "mongoimport",
			"mongorestore", "login"},
		[]passwordFlag{{flag: "-p", apart: true}},
	},
	{[]string{"redis-cli"}, []passwordFlag{{flag: "-a", apart: true}}},
	{[]string{"ldapadd", "ldapdelete", "ldapmodify", "ldapsearch", "ldapwhoami"}, []passwordFlag{{flag: "-w", apart: true}}},
	{[]string{"sqlcmd", "bcp", "zip", "unzip", "ipmitool"}, []passwordFlag{{flag: "-P", apart: true}}},
	{
		[]string{"curl"},
		[]passwordFlag{
			{"-u", true, true}, {"--user", true, true}, {"-U", true, true}, {"--proxy-user", true, true},
		},
	},
}

// flagsOf returns the password flags of a program; nil if it has none.
func flagsOf(program string) []passwordFlag { return flagsByProgram()[program] }

var flagsByProgram = sync.OnceValue(func() map[string][]passwordFlag {
	m := map[string][]passwordFlag{}
	for _, row := range passwordFlags {
		for _, program := range row.programs {
			m[program] = row.flags
		}
	}
	return m
})

// flagsInP are flags of any program that begin with -p and are not "-pPASSWORD". What
// follows one of "=:-." in the flag does not count.
var flagsInP = []string{
	"page", "parallel", "parallelism", "param", "parameters", "params", "parents", "path", "paths", "pattern",
	"pedantic", "perm", "perms", "pi", "pid", "pipe", "pixel_format", "pix_fmt", "pkgdir", "plan",
	"platform", "plugin",
	"plugins", "policy", "pool", "port", "ports", "prefix", "preserve", "preset", "pretty", "print",
	"print0", "printf",
	"priority", "process", "processor", "processorpath", "profile", "profiles", "progress",
	"project", "prompt",
	"properties", "property", "props", "protocol", "provider", "proxy", "prune", "pthread", "public", "push",
	"pxzvf", "python",
	// Flags that name their secret themselves.
	"pass", "passin", "passout", "passphrase", "passwd", "password", "private", "privatekey", "pwd",
}

// switches are flags without a value that look like the name of a secret, in lower case.
var switches = []string{"--pass-through", "--passthrough", "--passwithnotests", "--private"}

// flag returns what may be kept of a word if it is a flag with a password, or one that
// announces it, and whether it is.
func (m *masking) flag(w string) (string, bool) {
	bare := strings.TrimLeft(w, quotes)
	for _, f := range m.flags {
		rest, ok := strings.CutPrefix(bare, f.flag)
		if ok && strings.Trim(rest, quotes) == "" {
			switch {
			case f.apart && f.userPair:
				m.next = expectPair
			case f.apart:
				m.next = expectSecret
			}
			return w, true
		}
		if ok && strings.HasPrefix(f.flag, "--") {
			rest, ok = strings.CutPrefix(rest, "=")
		}
		if !ok {
			continue
		}
		begin := w[:len(w)-len(rest)]
		if f.userPair {
			return begin + maskPair(rest), true
		}
		return begin + Masked + closing(w), true
	}
	if rest, ok := strings.CutPrefix(bare, "-p"); ok && isPassword(rest) {
		return w[:len(w)-len(rest)] + Masked + closing(w), true
	}
	return "", false
}

// isPassword reports whether what follows -p, for a program that is not known, may be a
// password: it is not a cluster of short flags, a port, a range, or the rest of a longer
// flag.
func isPassword(rest string) bool {
	const least = 4
	if len(rest) < least || strings.Trim(rest, "0123456789.,:/-+*") == "" {
		return false
	}
	name := rest
	if i := strings.IndexAny(rest, "=:-."); i >= 0 {
		if name = rest[:i]; rest[i] == '=' || rest[i] == ':' {
			return false
		}
	}
	return !slices.Contains(flagsInP, "p"+strings.ToLower(name))
}

// takesSecret reports whether a flag without a value in it says that the next word is a
// secret.
func takesSecret(flag string) bool {
	return !strings.Contains(flag, "=") && SecretName(flag) &&
		!strings.HasPrefix(flag, "--no-") && !slices.Contains(switches, strings.ToLower(flag))
}
