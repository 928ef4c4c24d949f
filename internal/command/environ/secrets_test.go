// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import (
	_ "embed"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/names.txt
var corpus string

// TestSecretNames decides about the real names in testdata.
func TestSecretNames(t *testing.T) {
	counts := make(map[string]int)
	for line := range strings.Lines(corpus) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		kind, name, _ := strings.Cut(line, " ")
		if kind != "secret" && kind != "innocent" {
			t.Fatalf("line %q", line)
		}
		counts[kind]++
		res, err := Policy{Inherit: InheritAll}.Apply([]string{name + "=x"})
		if err != nil {
			t.Fatal(err)
		}
		if withheld := slices.Contains(res.Withheld, name); withheld != (kind == "secret") {
			t.Errorf("%s is %s, withheld is %v", name, kind, withheld)
		}
	}
	if counts["secret"] < 80 || counts["innocent"] < 80 {
		t.Errorf("the corpus has %v names, at least 80 of each are needed", counts)
	}
}

// fakeKey is a private key in form alone. It is put together here, so that scanners for
// secrets do not find it in this file.
var fakeKey = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEhidden\nhidden==\n-----END RSA " + "PRIVATE KEY-----"

// TestSecretValues: a value that is a secret in form is withheld whatever its name is,
// and what is passed explicitly still passes.
func TestSecretValues(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		secret      bool
	}{
		{"address", "postgres://me:hunter2@db.example/x", true},
		{"address without a user", "redis://:hunter2@cache:6379/0", true},
		{"address of a proxy", "http://me:hunter2@proxy.example:3128", true},
		{"second address", "https://a.example/ https://me:hunter2@b.example/simple", true},
		{"in a list", "https://me:hunter2@proxy.example,direct", true},
		{"in options", "-Durl=jdbc:postgresql://me:hunter2@h/db -Dx=1", true},
		{"several hosts", "mongodb+srv://me:hunter2@h1,h2/db", true},
		{"at sign in the password", "amqp://me:hun@ter2@h/", true},
		{"slash in the password", "postgres://me:hun/ter2@h/x", true},
		{"number sign in the password", "postgres://me:hun#ter2@h/x", true},
		{"digits as password", "postgres://me:1234@h/x", true},
		{"user alone", "ssh://git@github.com/x/y.git", false},
		{"user and port", "ssh://git@github.com:22/x", false},
		{"user and a path like scp", "ssh://git@github.com:me/x@v1", false},
		{"empty password", "https://me:@host/", false},
		{"at sign in the path", "https://me@h/a:b@c", false},
		{"port and at sign in the path", "http://localhost:5173/@vite/client", false},
		{"port of a variable", "http://localhost:$PORT/@vite/client", false},
		{"list of addresses", "https://h1.example,https://me@h2.example/", false},
		{"address of version 6", "http://[::1]:80/@x", false},
		{"scp", "git@github.com:x/y@z", false},
		{"bus", "unix:path=/run/user/1000/bus,guid=abc", false},
		{"file", "file:///home/a:b@c", false},
		{"hidden already", "https://me:***@host/", false},

		{"private key", fakeKey, true},
		{"private key with escapes", strings.ReplaceAll(fakeKey, "\n", `\n`), true},
		{"private key of OpenSSH", strings.ReplaceAll(fakeKey, "RSA", "OPENSSH"), true},
		{"private key of GnuPG", strings.ReplaceAll(fakeKey, "RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"), true},
		{"private key without a kind", strings.ReplaceAll(fakeKey, "RSA ", ""), true},
		{"private key in base64", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlF", true},
		{"certificate", "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", false},
		{"certificate in base64", "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUU=", false},
		{"public key", "-----BEGIN PUBLIC KEY-----\nMIIE\n-----END PUBLIC KEY-----", false},

		{"token of GitHub", "ghp_" + strings.Repeat("a1B2", 9), true},
		{"token in a text", `{"auth":"glpat-` + strings.Repeat("x", 20) + `"}`, true},
		{"web token", "eyJhbGciOi" + "JIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", true},
		{"short", "ghp_abc", false},
		{"in a word", "xghp_" + strings.Repeat("a1B2", 9), false},
		{"a name like one", "npm_config_global_prefix_of_all_the_packages_here", false},

		{"connection string", "Server=h;User=me;Password=hunter2;", true},
		{"account", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=aHVudGVyMg==", true},
		{"parameter", "jdbc:mysql://h/db?user=me&password=hunter2", true},
		{"parameter without a value", "https://h/?password=", false},
		{"function of a shell", "() {  local password=$1;\n echo; password=$1 }", false},
		{"header", "AUTHORIZATION: basic aHVudGVyMg==", true},
		{"colors", "*.key=01;31:*.pem=01;31", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := []string{"SOME_URL=" + tt.value}
			res, err := Policy{Inherit: InheritAll}.Apply(base)
			if err != nil {
				t.Fatal(err)
			}
			if withheld := slices.Contains(res.Withheld, "SOME_URL"); withheld != tt.secret {
				t.Errorf("withheld is %v", withheld)
			}
			for how, p := range map[string]Policy{
				"named":   {Named: []string{"SOME_URL"}},
				"set":     {Set: map[string]string{"SOME_URL": tt.value}},
				"secrets": {Inherit: InheritAll, KeepSecrets: true},
			} {
				if res, err := p.Apply(base); err != nil || !slices.Equal(res.Env, base) {
					t.Errorf("%s: it does not pass: %v, %v", how, res.Withheld, err)
				}
			}
		})
	}
}

// FuzzSecretValue puts an address and a key somewhere in a value.
func FuzzSecretValue(f *testing.F) {
	f.Add("https://a:", "@b://c")
	f.Add("-----BEGIN ", "-----END ")
	f.Add("ghp_", "LS0tLS1CRUdJTi")
	f.Fuzz(func(t *testing.T, before, after string) {
		SecretName(before + after)
		for _, secret := range []string{"postgres://me:hunter2@h/x", fakeKey} {
			if !SecretValue(before + " " + secret + " " + after) {
				t.Errorf("%q is no secret between %q and %q", secret, before, after)
			}
		}
		if got := maskValues(before + " " + fakeKey + " " + after); strings.Count(got,
			"MIIEhidden") > strings.Count(after, "MIIEhidden")+strings.Count(before, "MIIEhidden") {
			t.Errorf("the key is not masked in %q", got)
		}
		masked := maskValues(before)
		if again := maskValues(masked); again != masked {
			t.Errorf("%q is masked to %q, and that to %q", before, masked, again)
		}
	})
}
