// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trustenv has the files and the environment variables by which programs find the certificates
// that they trust. It is pure: it reads neither.
package trustenv

import "strings"

// Files are where systems have all certificates in one file, the usual ones first.
var Files = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Gentoo
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL
	"/etc/ssl/cert.pem",                                 // Alpine
	"/usr/local/share/certs/ca-root-nss.crt",
}

// A row is one variable, with who reads it.
type row struct{ name, readers string }

// table lists the variables that name a file of certificates. That of node adds to its own, the others
// take the place of those of the program: so the file has all. SSL_CERT_DIR names a directory and is left
// alone.
var table = []row{
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

// Names returns the variables that name a file.
func Names() []string {
	out := make([]string, len(table))
	for i, r := range table {
		out[i] = r.name
	}
	return out
}

// javaOptions is the variable whose options every Java program reads.
const javaOptions = "JAVA_TOOL_OPTIONS"

// WithJava returns the environment env, "K=V", with options that have Java trust the file of PKCS #12 at
// path, which has no password. They stand behind other options, where they win. It does not change env.
func WithJava(env []string, path string) []string {
	const name = "javax.net.ssl.trustStore"
	out, options := make([]string, 0, len(env)+1), ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, javaOptions+"="); ok {
			options = value + " "
		} else {
			out = append(out, entry)
		}
	}
	return append(out, javaOptions+"="+options+"-D"+name+"="+path+" -D"+name+"Type=PKCS12 -D"+name+"Password=")
}

// Set returns the environment env, "K=V", with the variables that name the file at path. What env has of
// them is removed. It does not change env.
func Set(env []string, path string) []string {
	ours := map[string]bool{native: true}
	for _, r := range table {
		ours[r.name] = true
	}
	out := make([]string, 0, len(env)+len(ours))
	for _, entry := range env {
		if name, _, _ := strings.Cut(entry, "="); !ours[name] {
			out = append(out, entry)
		}
	}
	for _, r := range table {
		out = append(out, r.name+"="+path)
	}
	return append(out, native+"=1")
}
