// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package environ

import "strings"

// TrustFiles are where systems have all certificates in one file, the usual ones first.
var TrustFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Gentoo
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL
	"/etc/ssl/cert.pem",                                 // Alpine
	"/usr/local/share/certs/ca-root-nss.crt",
}

// A trustRow is one variable, with who reads it.
type trustRow struct{ name, readers string }

// trustTable lists the variables that name a file of certificates. That of node adds to its own, the others
// take the place of those of the program: so the file has all. SSL_CERT_DIR names a directory and is left
// alone.
var trustTable = []trustRow{
	{"SSL_CERT_FILE", "openssl, go, python, ruby, rust"},
	{"CURL_CA_BUNDLE", "curl, requests"},
	{"REQUESTS_CA_BUNDLE", "requests"},
	{"NODE_EXTRA_CA_CERTS", "node"},
	{"GIT_SSL_CAINFO", "git"},
	{"CARGO_HTTP_CAINFO", "cargo"},
	{"PIP_CERT", "pip"},
	{"AWS_CA_BUNDLE", "aws"},
	{"BUNDLE_SSL_CA_CERT", "bundler"},
	{"npm_config_cafile", "npm, pnpm"},
	{"NPM_CONFIG_CAFILE", "npm, pnpm"},
	{"YARN_HTTPS_CA_FILE_PATH", "yarn"},
	{"DENO_CERT", "deno"},
	{"CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "gcloud"},
	{"NIX_SSL_CERT_FILE", "nix"},
	{"GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "gRPC"},
	{"HTTPLIB2_CA_CERTS", "httplib2"},
	{"HEX_CACERTS_PATH", "hex"},
	{"JULIA_SSL_CA_ROOTS_PATH", "julia"},
	{"COMPOSER_CAFILE", "composer"},
}

// native has uv use the certificates of the system, and of SSL_CERT_FILE.
const native = "UV_NATIVE_TLS"

// TrustNames returns the variables that name a file.
func TrustNames() []string {
	out := make([]string, len(trustTable))
	for i, r := range trustTable {
		out[i] = r.name
	}
	return out
}

// trustJavaOptions is the variable whose options every Java program reads.
const trustJavaOptions = "JAVA_TOOL_OPTIONS"

// WithJavaTrust returns the environment env, "K=V", with options that have Java trust the file of PKCS #12 at
// path, which has no password. They stand behind other options, where they win. It does not change env.
func WithJavaTrust(env []string, path string) []string {
	const name = "javax.net.ssl.trustStore"
	out, options := make([]string, 0, len(env)+1), ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, trustJavaOptions+"="); ok {
			options = value + " "
		} else {
			out = append(out, entry)
		}
	}
	return append(out, trustJavaOptions+"="+options+"-D"+name+"="+path+" -D"+name+"Type=PKCS12 -D"+
		name+"Password=")
}

// SetTrust returns the environment env, "K=V", with the variables that name the file at path. What env has of
// them is removed. It does not change env.
func SetTrust(env []string, path string) []string {
	ours := map[string]bool{native: true}
	for _, r := range trustTable {
		ours[r.name] = true
	}
	out := make([]string, 0, len(env)+len(ours))
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !ours[name] {
			out = append(out, entry)
		}
	}
	for _, r := range trustTable {
		out = append(out, r.name+"="+path)
	}
	return append(out, native+"=1")
}
