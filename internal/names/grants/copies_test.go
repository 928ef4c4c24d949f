// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package grants

import (
	"encoding/base64"
	"strings"
	"testing"
)

// TestMask: secrets are replaced and everything else stays as it is; what is not understood is not shown.
func TestMask(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("user:longpassword"))
	for _, tt := range []struct {
		name string
		form form
		text string
		want string // "same": nothing is a secret; "": it is not understood
	}{
		{"npm", ini, "registry=https://r.example/\n//r.example/:_authToken=npm-token-abc\n; note\n@auth0:registry=https://r.example/x/\n", "registry=https://r.example/\n//r.example/:_authToken=DUMMY\n; note\n@auth0:registry=https://r.example/x/\n"},
		{"npm with spaces and quotes", ini, "_auth = \"" + basic + "\"\nalways-auth=true\n", "_auth = \"DUMMY\"\nalways-auth=true\n"},
		{"npm from the environment", ini, "//r.example/:_authToken=${NPM_TOKEN}\n", "same"},
		{"npm without a secret", ini, "registry=https://r.example/\nfund=false\n", "same"},
		{"npm with a secret in a comment", ini, "# //r.example/:_authToken=abcdefgh\nfund=false\n", "#\nfund=false\n"},
		{"npm with a proxy", ini, "https-proxy=http://user:longpassword@proxy.example:8080/\n", "https-proxy=http://DUMMY@proxy.example:8080/\n"},
		{"the secret a second time", ini, "_authToken=abcdefgh12345678\ninit-author-name=abcdefgh12345678\n", ""},
		{"a line that is nothing", ini, "_authToken=x\nsome words that are no setting\n", ""},
		{"binary", ini, "_auth=\x00\n", ""},
		{"no end of line", ini, "_authToken=abcdefgh", "_authToken=DUMMY"},
		{"other ends of lines", ini, "a=b\r\n_authToken=abcdefgh\r\n", "a=b\r\n_authToken=DUMMY\r\n"},

		{"pip", ini, "[global]\nindex-url = https://user:longpassword@pip.example/simple\nextra-index-url =\n    https://token-that-is-long@b.example/simple\n    https://c.example/@scope/x\ntrusted-host = b.example\n",
			"[global]\nindex-url = https://DUMMY@pip.example/simple\nextra-index-url =\n    https://DUMMY@b.example/simple\n    https://c.example/@scope/x\ntrusted-host = b.example\n"},
		{"pip with a keyring", ini, "[global]\nkeyring-provider = import\n", "same"},
		{"pip with a password that was not escaped", ini, "[global]\nindex-url = https://user:pass/word@pip.example/simple\n", ""},
		{"pip with a query", ini, "[global]\nfind-links = https://x.example/?sig=abcdefgh&v=1\n", "[global]\nfind-links = https://x.example/?sig=DUMMY&v=1\n"},
		{"a secret of two lines", ini, "[pypi]\npassword = one\n    twotwo\n", "[pypi]\npassword = DUMMY\n    DUMMY\n"},
		{"pypirc", ini, "[pypi]\nusername = __token__\npassword = pypi-AgEIcHlwaS5vcmcabcdef\n", "[pypi]\nusername = __token__\npassword = DUMMY\n"},

		{"gradle", properties, "org.gradle.jvmargs=-Xmx1g\nmavenUser=me\nmavenPassword=longpassword\nsystemProp.http.proxyPassword: longpassword2\n", "org.gradle.jvmargs=-Xmx1g\nmavenUser=me\nmavenPassword=DUMMY\nsystemProp.http.proxyPassword: DUMMY\n"},
		{"gradle, in arguments", properties, "org.gradle.jvmargs=-Xmx1g -Djavax.net.ssl.trustStorePassword=longpassword\n", "org.gradle.jvmargs=-Xmx1g -Djavax.net.ssl.trustStorePassword=DUMMY\n"},
		{"gradle, several lines", properties, "mavenPassword=long\\\npassword\n", ""},

		{"yarn", spaced, "registry \"https://r.example\"\n\"//r.example/:_authToken\" \"abcdefgh\"\n", "registry \"https://r.example\"\n\"//r.example/:_authToken\" \"DUMMY\"\n"},
		{"yarn berry", yaml, "npmScopes:\n  acme:\n    npmRegistryServer: \"https://r.example\"\n    npmAuthToken: abcdefgh\nnodeLinker: node-modules\n", "npmScopes:\n  acme:\n    npmRegistryServer: \"https://r.example\"\n    npmAuthToken: DUMMY\nnodeLinker: node-modules\n"},
		{"a block of YAML", yaml, "npmAuthToken: |\n  abcdefgh\n", ""},
		{"a map of YAML in one line", yaml, "npmRegistries: {\"//r\": {npmAuthToken: abcdefgh}}\n", ""},
		{"Bundler", bundle, "---\nBUNDLE_GEMS__EXAMPLE__COM: \"user:longpassword\"\nBUNDLE_PATH: \"vendor\"\n", "---\nBUNDLE_GEMS__EXAMPLE__COM: \"DUMMY\"\nBUNDLE_PATH: \"vendor\"\n"},
		{"Cargo", toml, "[registries.x]\nindex = \"https://x.example\"\ntoken = \"abcdefgh\"\n\n[net]\nretry = 2\n[registry]\nglobal-credential-providers = [\"cargo:token\"]\n", "[registries.x]\nindex = \"https://x.example\"\ntoken = \"DUMMY\"\n\n[net]\nretry = 2\n[registry]\nglobal-credential-providers = [\"cargo:token\"]\n"},
		{"Cargo in one line", toml, "registries.x = { index = \"https://x.example\", token = \"abcdefgh\" }\n", ""},
		{"Cargo without a secret", toml, "[build]\nrustflags = [\n  \"-C\",\n  \"target-cpu=native\",\n]\n[target.x86_64-unknown-linux-gnu]\nlinker = \"clang\"\n", "same"},

		{"git", git, "[user]\n\tname = A\n\tsigningkey = ABCDEF0123456789\n[url \"https://me:longpassword@git.example/\"]\n\tinsteadOf = https://git.example/\n[alias]\n\tkeys = !gpg -k\n", "[user]\n\tname = A\n\tsigningkey = ABCDEF0123456789\n[url \"https://DUMMY@git.example/\"]\n\tinsteadOf = https://git.example/\n[alias]\n\tkeys = !gpg -k\n"},
		{"git without a secret", git, "[credential \"https://github.com\"]\n\thelper = !gh auth git-credential\n[url \"ssh://git@github.com/\"]\n\tinsteadOf = https://github.com/\n[core]\n\teditor = vim\n\tpager = less -R\n", "same"},
		{"git with a header", git, "[http \"https://x\"]\n\textraheader = AUTHORIZATION: basic " + basic + "\n", "[http \"https://x\"]\n\textraheader = DUMMY\n"},

		{"Maven", xmlText, "<settings xmlns=\"http://maven.apache.org/SETTINGS/1.0.0\"><!-- password: x --><mirrors><mirror><url>https://m.example/</url></mirror></mirrors><servers><server><id>a</id><username>u</username><password>long&amp;password</password><configuration><httpHeaders><property><name>X</name><value>abcdefgh</value></property></httpHeaders></configuration></server></servers></settings>",
			"<settings xmlns=\"http://maven.apache.org/SETTINGS/1.0.0\"><mirrors><mirror><url>https://m.example/</url></mirror></mirrors><servers><server><id>a</id><username>u</username><password>DUMMY</password><configuration><httpHeaders><property><name>DUMMY</name><value>DUMMY</value></property></httpHeaders></configuration></server></servers></settings>"},
		{"servers of agents", jsonText, `{"mcpServers":{"x":{"command":"npx","env":{"API_KEY":"abcdefgh"}}},"security":{"auth":{"selectedType":"oauth"}}}`,
			"{\n\t\"mcpServers\": {\n\t\t\"x\": {\n\t\t\t\"command\": \"npx\",\n\t\t\t\"env\": {\n\t\t\t\t\"API_KEY\": \"DUMMY\"\n\t\t\t}\n\t\t}\n\t},\n\t\"security\": {\n\t\t\"auth\": {\n\t\t\t\"selectedType\": \"oauth\"\n\t\t}\n\t}\n}\n"},
		{"agents without a secret", jsonText, `{"env":{"MAX_THINKING_TOKENS":"10000"},"model":"opus","security":{"auth":{"selectedType":"oauth"}}}`, "same"},
		{"servers of agents in one line", toml, "[mcp_servers.x]\nenv = { API_KEY = \"abcdefgh\" }\n", ""},
		{"Maven without a secret", xmlText, "<settings><localRepository>/x</localRepository></settings>", "same"},
		{"Maven that is not whole", xmlText, "<settings><servers><server><password>x", ""},
		{"entities", xmlText, "<!DOCTYPE s [<!ENTITY p \"x\">]><settings><password>&p;</password></settings>", ""},
		{"NuGet", xmlText, "<configuration><packageSources><add key=\"a\" value=\"https://a.example/\"></add></packageSources><packageSourceCredentials><a><add key=\"Username\" value=\"me\"></add><add key=\"ClearTextPassword\" value=\"longpassword\"></add></a></packageSourceCredentials><apikeys><add key=\"https://a.example/\" value=\"abcdefgh\"></add></apikeys></configuration>",
			"<configuration><packageSources><add key=\"a\" value=\"https://a.example/\"></add></packageSources><packageSourceCredentials><a><add key=\"Username\" value=\"me\"></add><add key=\"ClearTextPassword\" value=\"DUMMY\"></add></a></packageSourceCredentials><apikeys><add key=\"https://a.example/\" value=\"DUMMY\"></add></apikeys></configuration>"},

		{"Docker", jsonText, `{"auths":{"r.example":{"auth":"` + basic + `"}},"credsStore":"x","proxies":{"default":{"httpProxy":"http://u:longpassword@p.example"}}}`,
			"{\n\t\"auths\": {\n\t\t\"r.example\": {\n\t\t\t\"auth\": \"BASIC\"\n\t\t}\n\t},\n\t\"credsStore\": \"x\",\n\t\"proxies\": {\n\t\t\"default\": {\n\t\t\t\"httpProxy\": \"http://DUMMY@p.example\"\n\t\t}\n\t}\n}\n"},
		{"Docker without a secret", jsonText, `{"auths":{"r.example":{}},"credsStore":"desktop","currentContext":"default"}`, "same"},
		{"Docker with headers", jsonText, `{"HttpHeaders":{"X-Meta":"abcdefgh"}}`, "{\n\t\"HttpHeaders\": {\n\t\t\"X-Meta\": \"DUMMY\"\n\t}\n}\n"},
		{"two values", jsonText, `{} {"auth":"x"}`, ""},
		{"no JSON", jsonText, `auth`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, changed, ok := mask(tt.form, tt.text)
			want := strings.ReplaceAll(strings.ReplaceAll(tt.want, "DUMMY", SecretDummy), "BASIC", basicDummy())
			if want == "same" {
				want = tt.text
			}
			if got != want || ok != (tt.want != "") || ok && changed != (want != tt.text) {
				t.Errorf("%q, %v, %v\nwant %q", got, changed, ok, want)
			}
		})
	}
}

// FuzzMask: no secret that stands in a text by a line of its form is left in the copy.
func FuzzMask(f *testing.F) {
	f.Add(uint8(ini), "registry=https://x/\n", "fund=false\n")
	f.Add(uint8(yaml), "a:\n  - b\n", "# c\n")
	f.Add(uint8(toml), "x = [\n", "]\n")
	f.Fuzz(func(t *testing.T, kind uint8, before, after string) {
		const secret = "Zq8secretvalue7Xw"
		lines := map[form]string{
			ini: "_authToken=" + secret + "\n", git: "\ttoken = " + secret + "\n",
			properties: "mavenPassword=" + secret + "\n",
			spaced:     "_authToken " + secret + "\n", toml: "token = \"" + secret + "\"\n",
			yaml: "npmAuthToken: " + secret + "\n",
		}
		line, known := lines[form(kind)]
		if !known || strings.Contains(before+after, secret) || strings.Contains(before+after, "alias") {
			return
		}
		if !strings.HasSuffix(before, "\n") {
			before += "\n"
		}
		if got, _, ok := mask(form(kind), before+line+after); ok && strings.Contains(got, secret) {
			t.Errorf("%q", got)
		}
	})
}
