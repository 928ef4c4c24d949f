// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"path"
	"reflect"
	"strings"
	"testing"
)

func TestDecodeStart(t *testing.T) {
	const need = `"processId":"p","argv":["a"],"cwd":"file:///","env":{"A":"1"},"tty":false`
	want := Start{ProcessID: "p", Argv: []string{"a"}, CWD: "file:///", Env: map[string]string{"A": "1"}}
	with := func(change func(*Start)) Start {
		s := want
		change(&s)
		return s
	}
	for _, test := range []struct {
		name, rest string
		want       Start
	}{
		{"needed", ``, want},
		{"unknown members", `,"x":1,"metadata":{"threadId":"t"}`, want},
		{"nulls", `,"arg0":null,"envPolicy":null,"sandbox":null,"managedNetwork":null,"networkProxy":null,"shellSnapshot":null`, want},
		{"what asks for nothing", `,"enforceManagedNetwork":false,"managedNetwork":{},"credentialProviders":[]`, want},
		{"stdin", `,"pipeStdin":true,"arg0":"b"`, with(func(s *Start) { s.PipeStdin, s.Arg0 = true, "b" })},
		{"variables", `,"envPolicy":{"inherit":"core","ignoreDefaultExcludes":true,"exclude":["X*"],"set":{"B":"2"},"includeOnly":[]}`, with(func(s *Start) {
			s.EnvPolicy = &EnvPolicy{Inherit: "core", IgnoreDefaultExcludes: true, Exclude: []string{"X*"},
				Set: map[string]string{"B": "2"}, IncludeOnly: []string{}}
		})},
		{"sandbox", `,"sandbox":{"permissions":{"type":"disabled"},"windowsSandboxLevel":"disabled","cwd":"file:///a","workspaceRoots":["file:///b"],"sandboxOverride":"noOverride","useLegacyLandlock":false}`, with(func(s *Start) {
			s.Sandbox = &Sandbox{WindowsLevel: "disabled",
				Permissions: json.RawMessage(`{"type":"disabled"}`), CWD: "file:///a",
				WorkspaceRoots: []string{"file:///b"}}
		})},
		{"unsupported", `,"enforceManagedNetwork":true,"credentialProviders":"x"`, with(func(s *Start) {
			s.Unsupported = []string{"enforceManagedNetwork", "credentialProviders"}
		})},
		{"network", `,"enforceManagedNetwork":true,"networkProxy":{"proxy":{"enabled":true},"auditMetadata":{"a":"b"},"environmentId":"e"}`, with(func(s *Start) {
			s.Network = &NetworkProxy{Proxy: ProxyConfig{Enabled: true, SOCKS5: true, SOCKS5UDP: true,
				AllowUpstream: true, Mode: "full"}, EnvironmentID: "e",
				AuditMetadata: json.RawMessage(`{"a":"b"}`)}
		})},
		{"whole network", `,"networkProxy":{"executionId":"x","policyDecisionTimeoutMs":5,"proxy":{"enabled":true,"enableSocks5":false,"enableSocks5Udp":false,"allowUpstreamProxy":false,"mode":"limited","domains":{"a":"allow","b":"deny"},"unixSockets":{"/s":"none"},"allowLocalBinding":true}}`, with(func(s *Start) {
			s.Network = &NetworkProxy{ExecutionID: "x", DecisionTimeoutMs: 5,
				Proxy: ProxyConfig{Enabled: true, Mode: "limited",
					Domains:     map[string]string{"a": "allow", "b": "deny"},
					UnixSockets: map[string]string{"/s": "none"}, AllowLocalBinding: true}}
		})},
		{"sockets", `,"networkProxy":{"proxy":{"enabled":true,"unixSockets":{"/s":"allow"}}}`, with(func(s *Start) {
			s.Network = &NetworkProxy{Proxy: ProxyConfig{Enabled: true, SOCKS5: true, SOCKS5UDP: true,
				AllowUpstream: true, Mode: "full", UnixSockets: map[string]string{"/s": "allow"}},
				Unsupported: []string{"networkProxy.proxy.unixSockets"}}
			s.Unsupported = []string{"networkProxy.proxy.unixSockets"}
		})},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Decode[Start](json.RawMessage("{" + need + test.rest + "}"))
			if err != nil || !reflect.DeepEqual(*got, test.want) {
				t.Errorf("%+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// TestErrors has the texts that clients know.
func TestErrors(t *testing.T) {
	decode := func(f func(json.RawMessage) error) func(string) error {
		return func(text string) error { return f(json.RawMessage(text)) }
	}
	start := decode(func(p json.RawMessage) error { _, err := Decode[Start](p); return err })
	read := decode(func(p json.RawMessage) error { _, err := Decode[Read](p); return err })
	write := decode(func(p json.RawMessage) error { _, err := Decode[Write](p); return err })
	signal := decode(func(p json.RawMessage) error {
		_, err := DecodeSignal(p, func(name string) bool { return name == "SIGTERM" })
		return err
	})
	initialize := decode(func(p json.RawMessage) error { _, err := Decode[Initialize](p); return err })
	nothing := decode(func(p json.RawMessage) error { _, err := DecodeNothing(p); return err })
	answer := decode(func(p json.RawMessage) error { _, err := DecodePolicyAnswer(p); return err })
	const need = `"processId":"p","argv":["a"],"cwd":"file:///","env":{},"tty":false`
	for _, test := range []struct {
		name   string
		decode func(string) error
		params string
		want   string // empty for none
	}{
		{"no params", initialize, "", "invalid type: null, expected struct InitializeParams"},
		{"null as params", initialize, "null", "invalid type: null, expected struct InitializeParams"},
		{"array as params", start, "[]", "invalid type: sequence, expected struct ExecParams"},
		{"no name", initialize, "{}", "missing field `clientName`"},
		{"empty session", initialize, `{"clientName":"x","resumeSessionId":""}`, "resumeSessionId must not be empty"},
		{"extension methods", initialize, `{"clientName":"x","extensionMethods":true}`, ""},
		{"extension methods by name", initialize, `{"clientName":"x","extensionMethods":["process/list"]}`, "invalid type: sequence, expected a boolean"},
		{"no process", start, "{}", "missing field `processId`"},
		{"no program", start, `{"processId":"p"}`, "missing field `argv`"},
		{"no terminal", start, `{"processId":"p","argv":["a"],"cwd":"","env":{}}`, "missing field `tty`"},
		{"empty program", start, strings.Replace("{"+need+"}", `["a"]`, "[]", 1), "argv must not be empty"},
		{"program as text", start, strings.Replace("{"+need+"}", `["a"]`, `"true"`, 1), `invalid type: string "true", expected a sequence`},
		{"number in the program", start, strings.Replace("{"+need+"}", `["a"]`, `["a",1]`, 1), "invalid type: number, expected a string"},
		{"null as a switch", start, "{" + need + `,"pipeStdin":null}`, "invalid type: null, expected a boolean"},
		{"null as a variable", start, strings.Replace("{"+need+"}", `"env":{}`, `"env":{"A":null}`, 1), "invalid type: null, expected a string"},
		{"unknown word", start, "{" + need + `,"envPolicy":{"inherit":"bogus"}}`, "unknown variant `bogus`, expected one of `core`, `all`, `none`"},
		{"half a policy", start, "{" + need + `,"envPolicy":{"inherit":"all"}}`, "missing field `ignoreDefaultExcludes`"},
		{"empty sandbox", start, "{" + need + `,"sandbox":{}}`, "missing field `permissions`"},
		{"half a sandbox", start, "{" + need + `,"sandbox":{"permissions":{}}}`, "missing field `windowsSandboxLevel`"},
		{"a proxy that is off", start, "{" + need + `,"networkProxy":{"proxy":{"enabled":false}}}`, "networkProxy: the proxy is not enabled; leave networkProxy out"},
		{"no time to decide", start, "{" + need + `,"networkProxy":{"proxy":{"enabled":true},"policyDecisionTimeoutMs":0}}`, "networkProxy: policyDecisionTimeoutMs must not be 0"},
		{"unknown mode", start, "{" + need + `,"networkProxy":{"proxy":{"enabled":true,"mode":"none"}}}`, "unknown variant `none`, expected `full` or `limited`"},
		{"unknown word of a host", start, "{" + need + `,"networkProxy":{"proxy":{"enabled":true,"domains":{"a":"ask"}}}}`, `networkProxy: a: "ask" is neither allow nor deny`},
		{"an answer", answer, `{"decision":{"type":"allow"}}`, ""}, {"a refusal", answer, `{"decision":{"type":"deny","reason":"no"}}`, ""},
		{"a refusal without a reason", answer, `{"decision":{"type":"ask"}}`, "missing field `reason`"},
		{"no answer", answer, `{}`, "missing field `decision`"}, {"an answer as text", answer, `{"decision":"allow"}`, `invalid type: string "allow", expected struct NetworkPolicyDecision`},
		{"another answer", answer, `{"decision":{"type":"yes"}}`, "unknown variant `yes`, expected one of `allow`, `deny`, `ask`"},
		{"a long reason", answer, `{"decision":{"type":"deny","reason":"` + strings.Repeat("x", 1025) + `"}}`, "the reason is too long"},
		{"negative number", read, `{"processId":"p","afterSeq":-1}`, "invalid number"},
		{"fraction", read, `{"processId":"p","afterSeq":1.5}`, "invalid number"},
		{"text as number", read, `{"processId":"p","maxBytes":"many"}`, `invalid type: string "many", expected usize`},
		{"number as process", read, `{"processId":5}`, "invalid type: number, expected a string"},
		{"nulls", read, `{"processId":"p","afterSeq":null,"maxBytes":null,"waitMs":null}`, ""},
		{"no write ID", write, `{"processId":"p","chunk":"eA=="}`, "missing field `writeId`"},
		{"empty write ID", write, `{"processId":"p","chunk":"eA==","writeId":""}`, "writeId must not be empty"},
		{"no chunk", write, `{"processId":"p","writeId":"2"}`, "missing field `chunk`"},
		{"no base64", write, `{"processId":"p","chunk":"!!","writeId":"2"}`, "Invalid symbol 33, offset 0."},
		{"base64 with a line end", write, `{"processId":"p","chunk":"eA=\n=","writeId":"2"}`, "Invalid symbol 10, offset 3."},
		{"no padding", write, `{"processId":"p","chunk":"aGk","writeId":"2"}`, "Invalid padding"},
		{"bits that are lost", write, `{"processId":"p","chunk":"eB==","writeId":"2"}`, "Invalid padding"},
		{"unknown signal", signal, `{"processId":"p","signal":"term"}`, "unknown variant `term`, expected `interrupt` or a signal of this system, such as `SIGTERM`"},
		{"no signal", signal, `{"processId":"p"}`, "missing field `signal`"},
		{"array for nothing", nothing, "[]", "invalid type: sequence, expected unit"},
		{"nothing", nothing, "", ""}, {"null for nothing", nothing, "null", ""}, {"object for nothing", nothing, "{}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if err := test.decode(test.params); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

func TestPath(t *testing.T) {
	for _, test := range []struct{ uri, want, err string }{
		{"file:///p", "/p", ""}, {"file:/p", "/p", ""}, {"file://localhost/p", "/p", ""}, {"FILE:///p", "/p", ""},
		{"file:///a/../b/./c%20d%25", "/b/c d%", ""}, {"file:///a%2Fb", "/a/b", ""}, {"file:///../..", "/", ""},
		{"/p", "", "invalid URI: relative URL without a base"}, {"", "", "invalid URI: relative URL without a base"}, {"p", "", "invalid URI: relative URL without a base"},
		{"/a:b", "", "invalid URI: relative URL without a base"},
		{"https://x/y", "", "unsupported path URI scheme `https`"},
		{"file:///a?q", "", "query parameters are not allowed in path URIs"}, {"file:///a?", "", "query parameters are not allowed in path URIs"},
		{"file:///a#f", "", "fragments are not allowed in path URIs"}, {"file:///a#", "", "fragments are not allowed in path URIs"},
		{"file://other/p", "", "'file://other/p' is invalid on 'linux'"}, {"file://me@localhost/p", "", "'file://me@localhost/p' is invalid on 'linux'"},
		{"file:///a%00b", "", "invalid URI: the path contains a NUL character"},
		{"file:p", "", "invalid URI: the path is not absolute"}, {"file:", "", "invalid URI: the path is not absolute"},
		{"file:///a%zz", "", `invalid URI: "file:///a%zz": invalid URL escape "%zz"`},
	} {
		t.Run(test.uri, func(t *testing.T) {
			got, err := Path(test.uri, "linux")
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got != test.want || text != test.err {
				t.Errorf("%q, %q, want %q, %q", got, text, test.want, test.err)
			}
			var host *HostError
			if errors.As(err, &host) != strings.Contains(test.err, "is invalid on") {
				t.Errorf("%T", err)
			}
		})
	}
}

// FuzzPath: a URI names a clean absolute path, or is refused, and every path has a URI.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"file:///a/../b", "file:/%2e%2e/x", "/tmp/ü", "file://localhost//x",
		"file:///a%2f..%2fb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := Path(s, "linux")
		if err == nil && (!path.IsAbs(got) || path.Clean(got) != got || strings.ContainsRune(got, 0)) {
			t.Errorf("%q: %q", s, got)
		}
		if name := path.Clean("/" + s); !strings.ContainsRune(name, 0) {
			if back, err := Path(URI(name), "linux"); err != nil || back != name {
				t.Errorf("%q became %q, %q, %v", name, URI(name), back, err)
			}
		}
	})
}

// FuzzDecode: no parameters make a decoder fail otherwise than with an error, and what it
// accepts has what it needs.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"processId":"p","argv":["a"],"cwd":"file:///","env":{"A":"1"},"tty":false,"sandbox":{"permissions":{},"windowsSandboxLevel":"x"}}`))
	f.Add([]byte(`{"processId":"p","chunk":"aGk=","writeId":"1","signal":"interrupt","afterSeq":1,"clientName":""}`))
	f.Add([]byte(`{"processId":"p","cols":80,"rows":24,"graceMs":5,"writeId":"1"}`))
	f.Add([]byte(`[1]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // package jsonrpc refuses it
		}
		params := json.RawMessage(strings.TrimSpace(string(data)))
		if s, err := Decode[Start](params); err == nil && len(s.Argv) == 0 {
			t.Errorf("%s", data)
		}
		if w, err := Decode[Write](params); err == nil && w.WriteID == "" {
			t.Errorf("%s", data)
		}
		_, _ = Decode[Read](params)
		_, _ = DecodeSignal(params, func(string) bool { return false })
		_, _ = Decode[Terminate](params)
		if r, err := Decode[Resize](params); err == nil && (r.Cols == 0 || r.Rows == 0) {
			t.Errorf("%s", data)
		}
		_, _ = Decode[CloseStdin](params)
		_, _ = Decode[Initialize](params)
		_, _ = DecodeNothing(params)
	})
}
