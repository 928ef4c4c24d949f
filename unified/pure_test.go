// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package unified

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/sandbox"
)

func TestClamps(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	tests := []struct {
		name   string
		system string
		asked  int
		want   int
	}{
		{"row 17 as asked", "linux", 1000, 1000},
		{"row 17 too short", "linux", 1, 250},
		{"row 17 too long", "linux", 30_001, 30_000},
		{"row 17 Windows 1", "windows", 1000, 10_000},
		{"row 17 Windows 2", "windows", 2000, 10_000},
		{"row 17 Windows 5", "windows", 5000, 10_000},
		{"Windows longer", "windows", 12_000, 12_000},
		{"row 7i", "linux", 120_000, 30_000},
		{"not said", "linux", 0, 10_000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := startYield(ms(test.asked), test.system); got != ms(test.want) {
				t.Errorf("got %v, want %d ms", got, test.want)
			}
		})
	}
	t.Run("a write", func(t *testing.T) {
		for asked, want := range map[int]int{0: 250, 10: 250, 900: 900, 40_000: 30_000} {
			if got := writeYield(ms(asked)); got != ms(want) {
				t.Errorf("%d: got %v, want %d ms", asked, got, want)
			}
		}
	})
}

func TestOutputTokens(t *testing.T) {
	n := func(n int) *int { return &n }
	tests := []struct {
		name       string
		asked      *int
		policy     int
		compatible bool
		want       int
	}{
		{"nothing said", nil, 0, false, 10_000},
		{"asked for the default", n(10_000), 0, false, 10_000},
		{"asked for more than the default", n(20_000), 0, false, 10_000},
		{"asked for less", n(7000), 0, false, 7000},
		{"nothing said, as Codex", nil, 0, true, 2500},
		{"asked for the default, as Codex", n(10_000), 0, true, 2500},
		{"a policy, as Codex", n(10_000), 4000, true, 4000},
		{"no policy, as Codex", n(50_000), -1, true, 50_000},
		{"row 42 more than the policy", n(9000), 4000, false, 4000},
		{"less than the policy", n(100), 4000, false, 100},
		{"nothing asked, a wide policy", nil, 20_000, false, 10_000},
		{"no policy", n(50_000), -1, false, 50_000},
		{"none", n(0), 4000, false, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := outputTokens(test.asked, test.policy, test.compatible); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	want := map[string]string{
		"NO_COLOR": "1", "TERM": "dumb", "LANG": "C.UTF-8", "LC_CTYPE": "C.UTF-8", "LC_ALL": "C.UTF-8", "COLORTERM": "",
		"PAGER": "cat", "GIT_PAGER": "cat", "GH_PAGER": "cat", "SALLYPORT_CI": "1",
	}
	t.Run("row 16 from an empty map, exact", func(t *testing.T) {
		if diff := cmp.Diff(want, Variables("", false)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("row 16 the other name", func(t *testing.T) {
		delete(want, "SALLYPORT_CI")
		want["CODEX_CI"], want["TERM"] = "1", "xterm"
		if diff := cmp.Diff(want, Variables("xterm", true)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("row 16 overrides NO_COLOR, keeps PATH", func(t *testing.T) {
		p := sallyport.EnvPolicy{IncludeOnly: []string{"PATH"}, Set: map[string]string{"TERM": "vt52"}, Runtime: map[string]string{"X": "1"}}
		res, err := withVariables(p, "", false).Apply([]string{"NO_COLOR=0", "PATH=/bin"})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(res.Env, " ")
		for _, s := range []string{"NO_COLOR=1", "PATH=/bin", "TERM=dumb", "X=1"} {
			if !strings.Contains(got, s) {
				t.Errorf("%s lacks %s", got, s)
			}
		}
		if len(p.Runtime) != 1 {
			t.Error("the policy of the owner was changed")
		}
	})
}

func TestRequestJSON(t *testing.T) {
	yes, tokens := true, 7
	tests := []struct {
		name string
		text string
		want Request
		err  string
	}{
		{name: "the least", text: `{"cmd":"ls"}`, want: Request{Command: "ls"}},
		{
			name: "everything",
			text: `{"cmd":"ls","workdir":"d","shell":"bash","login":true,"tty":true,"yield_time_ms":1500,"max_output_tokens":7,
				"sandbox_permissions":"require_escalated","justification":"j","prefix_rule":["a","b"],"environment_id":"e",
				"until_idle_ms":20,"until_input_wait":true,"min_bytes":5}`,
			want: Request{
				Command: "ls", Dir: "d", Shell: "bash", Login: &yes, TTY: true, Yield: seconds(1.5), MaxOutputTokens: &tokens,
				Permissions: RequireEscalated, Justification: "j", PrefixRule: []string{"a", "b"}, EnvironmentID: "e",
				Until: Conditions{Idle: 20 * time.Millisecond, InputWait: &yes, MinBytes: 5},
			},
		},
		{name: "null is absent", text: `{"cmd":"ls","tty":null,"login":null,"workdir":null,"yield_time_ms":null}`, want: Request{Command: "ls"}},
		{name: "a yield of zero is the shortest", text: `{"cmd":"ls","yield_time_ms":0}`, want: Request{Command: "ls", Yield: 1}},
		{name: "numbers as models write them", text: `{"cmd":"ls","yield_time_ms":1e3}`, want: Request{Command: "ls", Yield: seconds(1)}},
		{name: "a number beyond all", text: `{"cmd":"ls","yield_time_ms":9007199254740992}`, want: Request{Command: "ls", Yield: mostMilliseconds * time.Millisecond}},
		{name: "an unknown key", text: `{"cmd":"ls","command":"x"}`, err: "exec_command: invalid argument `command`: unknown argument"},
		{name: "another letter case", text: `{"Cmd":"ls"}`, err: "unknown argument"},
		{name: "twice", text: `{"cmd":"ls","cmd":"rm"}`, err: "given twice"},
		{name: "missing", text: `{"tty":true}`, err: "invalid argument `cmd`: missing"},
		{name: "null for what is required", text: `{"cmd":null}`, err: "missing"},
		{name: "a list", text: `["ls"]`, err: "not a JSON object"},
		{name: "no JSON", text: `{"cmd":`, err: "unexpected end"},
		{name: "a number as text", text: `{"cmd":"ls","yield_time_ms":"10"}`, err: "must be a whole number, 0 or more"},
		{name: "a negative number", text: `{"cmd":"ls","yield_time_ms":-1}`, err: "must be a whole number, 0 or more"},
		{name: "a fraction", text: `{"cmd":"ls","max_output_tokens":1.5}`, err: "must be a whole number, 0 or more"},
		{name: "a truth as text", text: `{"cmd":"ls","tty":"true"}`, err: "must be true or false"},
		{name: "a command as a list", text: `{"cmd":["ls"]}`, err: "must be a string"},
		{name: "a bad pattern", text: `{"cmd":"ls","until_regex":"("}`, err: "error parsing regexp: missing closing ): `(`"},
		{name: "a bad wish", text: `{"cmd":"ls","sandbox_permissions":"root"}`, err: `"root" is not use_default, require_escalated or with_additional_permissions`},
		{name: "a bad stdin", text: `{"cmd":"ls","stdin":"file"}`, err: `"file" is not null, pipe or tty`},
		{name: "two stdins", text: `{"cmd":"ls","stdin":"pipe","tty":true}`, err: "use one of the two"},
		{name: "a reason alone", text: `{"cmd":"ls","justification":"j"}`, err: "`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: \"require_escalated\"` for unsandboxed execution, or omit `justification`."},
		{name: "additional permissions alone", text: `{"cmd":"ls","additional_permissions":{}}`, err: "`additional_permissions` requires `sandbox_permissions` set to `with_additional_permissions`"},
		{name: "additional permissions of another kind", text: `{"cmd":"ls","additional_permissions":[]}`, err: "must be an object"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got Request
			err := json.Unmarshal([]byte(test.text), &got)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestWriteRequestJSON(t *testing.T) {
	tests := []struct {
		name, text string
		want       WriteRequest
		err        string
	}{
		{name: "the least", text: `{"session_id":1000}`, want: WriteRequest{SessionID: 1000}},
		{name: "text", text: `{"session_id":1000,"chars":"\u0003","yield_time_ms":250,"eof":true}`,
			want: WriteRequest{SessionID: 1000, Chars: "\x03", EOF: true, Yield: MinYield}},
		{name: "no id", text: `{"chars":"x"}`, err: "invalid argument `session_id`: missing"},
		{name: "an id as text", text: `{"session_id":"1000"}`, err: "must be a whole number, 0 or more"},
		{name: "an argument of the other tool", text: `{"session_id":1,"tty":true}`, err: "write_stdin: invalid argument `tty`: unknown argument"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got WriteRequest
			err := json.Unmarshal([]byte(test.text), &got)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want %s", err, test.err)
				}
			} else if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{"cmd":"ls"}`, `{"session_id":1,"chars":"x"}`, `{"cmd":"ls","cmd":null}`, `{"cmd":"ls","yield_time_ms":1e308}`, `{"cmd":"\ud800"}`, `{`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := Request{CallID: "c", Command: "before"}
		q := before
		var argument *Error
		if err := q.UnmarshalJSON(data); err != nil {
			if !reflect.DeepEqual(q, before) {
				t.Errorf("%q is refused and changed the request to %+v", data, q)
			}
		} else if !json.Valid(data) || q.CallID != "c" || q.Yield < 0 || q.Until.Idle < 0 || q.Until.MinBytes < 0 {
			t.Errorf("%q became %+v", data, q)
		}
		var w WriteRequest
		if err := w.UnmarshalJSON(data); err != nil && !isKind(err, ErrArgument, &argument) {
			t.Errorf("%q: %v is no ErrArgument", data, err)
		} else if err == nil && w.SessionID < 0 {
			t.Errorf("%q became %+v", data, w)
		}
	})
}

// answered returns a response whose output is s.
func answered(s output.Snapshot, tokens int) *Response {
	r := &Response{ChunkID: "0a1b2c", WallTime: seconds(1.23456), tokens: tokens}
	r.setOutput(s)
	return r
}

// kept returns what a buffer of the cap keeps of the chunks.
func kept(most int, chunks ...string) output.Snapshot {
	b := output.NewBuffer(most)
	for _, c := range chunks {
		_, _ = b.Write([]byte(c))
	}
	return b.Drain()
}

func TestText(t *testing.T) {
	three := 3
	tests := []struct {
		name string
		r    *Response
		set  func(*Response)
		want string
	}{
		{"row 44 running", answered(kept(100, "hello\n"), 100), func(r *Response) { r.SessionID = 1000 },
			"Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nProcess running with session ID 1000\nOriginal token count: 2\nOutput:\nhello\n"},
		{"row 44 exited", answered(kept(100, "hello\n"), 100), func(r *Response) { r.ExitCode = &three },
			"Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nProcess exited with code 3\nOriginal token count: 2\nOutput:\nhello\n"},
		{"row 44 without a chunk id and output", answered(kept(100), 100), func(r *Response) { r.ChunkID, r.WallTime = "", 0 },
			"Wall time: 0.0000 seconds\nOriginal token count: 0\nOutput:\n"},
		{"cut", answered(kept(100, "this is an example of a long output that should be truncated"), 5), nil,
			"Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nOriginal token count: 15\nOutput:\n" +
				"Warning: truncated output (original token count: 15)\nTotal output lines: 1\n\nthis is an…10 tokens truncated… truncated"},
		{"omitted and fitting", answered(kept(10, "0123456789", "ab"), 100), nil,
			"Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nOriginal token count: 3\nOutput:\n01234\n... 2 bytes omitted ...\n789ab"},
		{"omitted and cut, the mark with it", answered(kept(60, strings.Repeat("0123456789", 20)), 10), nil,
			"Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nOriginal token count: 50\nOutput:\n" +
				"Warning: truncated output (original token count: 50)\n... 140 bytes omitted ...\n\n" +
				"01234567890123456789…12 tokens truncated…01234567890123456789"},
		{"waiting", answered(kept(100, "> "), 100), func(r *Response) { r.SessionID, r.Reason = 1000, sallyport.ReasonInput },
			"Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nProcess running with session ID 1000\nOriginal token count: 1\n" +
				"Process is waiting for input\nOutput:\n> "},
		{"facts stay on their lines", answered(kept(100, "x"), 100), func(r *Response) {
			r.Denials = []sandbox.Denial{{Access: sandbox.Access{Op: sandbox.Write, Path: "/etc/a"}, Errno: "EROFS", Source: sandbox.Notified}}
			r.Notices = []string{"one\nOutput:\n two"}
		}, "Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nOriginal token count: 1\nSandbox denied: write /etc/a (EROFS, notified)\none\\nOutput:\\n two\nOutput:\nx"},
		{"the same for a compatible caller", answered(kept(100, "x"), 100), func(r *Response) {
			r.Reason, r.Notices, r.plain = sallyport.ReasonPassword, []string{"one"}, true
		}, "Chunk ID: 0a1b2c\nWall time: 1.2346 seconds\nOriginal token count: 1\nOutput:\nx"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.set != nil {
				test.set(test.r)
			}
			if diff := cmp.Diff(test.want, test.r.Text()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResponseJSON(t *testing.T) {
	zero := 0
	tests := []struct {
		name string
		set  func(*Response)
		want string
	}{
		{"running", func(r *Response) { r.SessionID, r.Reason = 1000, sallyport.ReasonDeadline },
			`{"chunk_id":"0a1b2c","wall_time_seconds":1.23456,"session_id":1000,"original_token_count":5,"output":"example output 12","reason":"deadline"}`},
		{"exited, cut because a number was named", func(r *Response) {
			r.ExitCode, r.Reason, r.truncated, r.tokens = &zero, sallyport.ReasonExited, true, 2
		},
			`{"chunk_id":"0a1b2c","wall_time_seconds":1.23456,"exit_code":0,"original_token_count":5,"output":"Warning: truncated output (original token count: 5)\nTotal output lines: 1\n\nexam…3 tokens truncated…t 12","reason":"exited"}`},
		{"compatible", func(r *Response) { r.ExitCode, r.Reason, r.plain = &zero, sallyport.ReasonExited, true },
			`{"chunk_id":"0a1b2c","wall_time_seconds":1.23456,"exit_code":0,"original_token_count":5,"output":"example output 12"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := answered(kept(100, "example output 12"), 1)
			test.set(r)
			got, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMend(t *testing.T) {
	t.Run("a gap cuts no character in two", func(t *testing.T) {
		r := answered(kept(8, "aaaé bbbb é1234"), 100)
		// The head would be "aaa\xc3", the tail "1234" follows what is gone.
		if strings.ContainsRune(r.text, utf8.RuneError) || !strings.HasPrefix(r.text, "aaa\n... ") {
			t.Errorf("got %q", r.text)
		}
	})
	t.Run("draws", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			s := kept(rapid.IntRange(0, 40).Draw(t, "cap"), rapid.String().Draw(t, "text"))
			r := &Response{}
			r.setOutput(s)
			if !utf8.ValidString(r.text) {
				t.Fatalf("%q", r.text)
			}
			if s.Omitted == 0 && r.text != string(s.Bytes()) {
				t.Fatalf("%q became %q", s.Bytes(), r.text)
			}
		})
	})
	t.Run("holding back and giving back is everything", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			all := rapid.SliceOf(rapid.SampledFrom([]byte("a\xc3\xa9\xf0\x9f\x98\x80\xff"))).Draw(t, "bytes")
			s := kept(1000, string(all))
			told, back := holdBack(s)
			if got := append(told.Bytes(), back.Bytes()...); !bytes.Equal(got, all) || len(back.Head) > 3 {
				t.Fatalf("%q became %q and %q", all, told.Bytes(), back.Bytes())
			}
			if told.Total+back.Total != uint64(len(all)) {
				t.Fatalf("%d and %d of %d", told.Total, back.Total, len(all))
			}
		})
	})
}

func TestErrorTexts(t *testing.T) {
	cause, code := errors.New("M"), 1
	denied := &Response{ExitCode: &code, text: "M", Denials: []sandbox.Denial{{}}}
	invalidRequest := func(q Request) error {
		_, err := (&Tools{System: "Linux"}).command(&q)
		return err
	}
	tests := []struct {
		err  error
		want string
	}{
		{notCreated(cause), "Failed to create unified exec process: M"},
		{failed("M", nil), "Unified exec process failed: M"},
		{unknownProcess(7), "Unknown process id 7"},
		{notWritten(0, cause), "failed to write to stdin"},
		{notWritten(3, cause), "failed to write to stdin; the first 3 bytes were accepted"},
		{&Error{Kind: ErrStdinClosed}, "stdin is closed for this session; rerun exec_command with tty=true to keep stdin open"},
		{invalidRequest(Request{}), "missing command line for unified exec request"},
		{denied.Denied(), "Command denied by sandbox: M"},
		{invalidRequest(Request{Command: "x", Dir: "PATH\x00"}), `PATH\0 is not valid on Linux`},
		{unavailable(), "unified exec is unavailable in this session"},
		{&Error{Kind: ErrNoInterrupt}, "process interrupt is not supported by this process backend"},
		{invalidRequest(Request{Command: "x", EnvironmentID: "ID"}), "unknown turn environment id `ID`"},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			if got := test.err.Error(); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
	if got, want := WriteText(unknownProcess(7)), "write_stdin failed: Unknown process id 7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := ExecText("ls", failed("M", nil)), "exec_command failed for `ls`: Unified exec process failed: M"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// parts cuts p as the deltas are cut.
func parts(p []byte, size int) (list []string) {
	for len(p) > 0 {
		one := nextPiece(p, size)
		list = append(list, string(one))
		p = p[len(one):]
	}
	return list
}

func TestSplit(t *testing.T) {
	a, b := strings.Repeat("a", 4096), strings.Repeat("b", 4096)
	tests := []struct {
		name string
		text string
		size int
		want []string
	}{
		{"row 31 letters", "hello word!", 5, []string{"hello", " word", "!"}},
		{"row 31 letters of two bytes", "éàü", 3, []string{"é", "à", "ü"}},
		{"row 31 a stray byte", "\xffab", deltaBytes, []string{"\xff", "ab"}},
		{"row 31 a stray byte in the middle", a + "\xff" + b, deltaBytes, []string{a, "\xff", b}},
		{"a character larger than a piece", "😀", 3, []string{"\xf0", "\x9f", "\x98", "\x80"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parts([]byte(test.text), test.size)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("row 31 1024 stray bytes", func(t *testing.T) {
		if got := parts(bytes.Repeat([]byte{0xff}, 1024), deltaBytes); len(got) != 1024 {
			t.Errorf("got %d pieces", len(got))
		}
	})
}

func TestCutter(t *testing.T) {
	draw := func(t *rapid.T) {
		var all []byte
		var got []byte
		var missing, end uint64
		c := &cutter{
			size: rapid.IntRange(4, 20).Draw(t, "size"), most: rapid.IntRange(0, 30).Draw(t, "most"),
			emit: func(d Delta) {
				missing += d.Missing
				got = append(got, d.Data...)
				if len(d.Data) > 20 {
					t.Fatalf("%d bytes in one delta", len(d.Data))
				}
			},
		}
		for range rapid.IntRange(0, 20).Draw(t, "pieces") {
			data := rapid.SliceOf(rapid.SampledFrom([]byte("ab\xc3\xa9\xe2\x82\xac\xff"))).Draw(t, "data")
			c.push(sallyport.Delta{Offset: end, Data: data})
			end += uint64(len(data))
			all = append(all, data...)
		}
		c.close()
		if uint64(len(got))+missing != end {
			t.Fatalf("row 48: %d bytes and %d missing of %d", len(got), missing, end)
		}
		if !bytes.HasPrefix(all, got) {
			t.Fatalf("%q is no beginning of %q", got, all)
		}
		if missing == 0 && utf8.Valid(all) != utf8.Valid(got) {
			t.Fatalf("%q became %q", all, got)
		}
	}
	t.Run("draws", func(t *testing.T) { rapid.Check(t, draw) })

	t.Run("row 46 a character in two pieces, with errors between", func(t *testing.T) {
		var got []string
		c := &cutter{size: deltaBytes, most: maxDeltas, emit: func(d Delta) {
			got = append(got, fmt.Sprintf("%s %d %d %q", d.Stream, d.Offset, d.Missing, d.Data))
		}}
		c.push(sallyport.Delta{Data: []byte("A\xc3")})
		c.push(sallyport.Delta{Offset: 2, Stream: executor.Stderr, Data: []byte("err")})
		c.push(sallyport.Delta{Offset: 5, Data: []byte("\xa9B\xc3")})
		c.push(sallyport.Delta{Offset: 18, Missing: 10, Data: []byte("C\xe2\x82")})
		c.close()
		want := []string{`stdout 0 0 "A"`, `stderr 2 0 "err"`, `stdout 1 0 "é"`, `stdout 6 0 "B"`, `stdout 7 0 "\xc3"`, `stdout 18 10 "C"`,
			`stdout 19 0 "\xe2"`, `stdout 20 0 "\x82"`}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBuffers(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		name   string
		most   int
		chunks []string
		head   string
		tail   string
		lost   uint64
	}{
		{"row 9", 10, []string{"0123456789"}, "01234", "56789", 0},
		{"row 10", 10, []string{"0123456789", "ab"}, "01234", "789ab", 2},
		{"row 11", 10, []string{"0123456789", "ABCDEFGHIJK"}, "01234", "GHIJK", 11},
		{"row 12", 10, []string{"01", "234", "567", "89", "a"}, "01234", "6789a", 1},
		{"row 13 empty chunks", 10, []string{"0", "", "1", "2", "3", "4", "", "5", "6", "7", "8", "9", "a", "", "b"}, "01234", "789ab", 2},
		{"row 14 no budget", 0, []string{"abc"}, "", "", 3},
		{"row 15 a budget of one", 1, []string{"abc"}, "", "c", 2},
		{"row 1", mib, []string{strings.Repeat("a", mib), "b", "c"}, strings.Repeat("a", mib/2), strings.Repeat("a", mib/2-2) + "bc", 2},
		{"row 2", mib, []string{strings.Repeat("a", mib), "bc"}, strings.Repeat("a", mib/2), strings.Repeat("a", mib/2-2) + "bc", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := kept(test.most, test.chunks...)
			if string(got.Head) != test.head || string(got.Tail) != test.tail || got.Omitted != test.lost {
				t.Errorf("got %d, %d and %d bytes", len(got.Head), len(got.Tail), got.Omitted)
			}
		})
	}
}

func TestVictim(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	// Twelve processes, the first used longest ago; the last eight are protected.
	list := func(change func(l []storeEntry)) []storeEntry {
		l := make([]storeEntry, 12)
		for i := range l {
			l[i].lastUsed = at(i)
		}
		change(l)
		return l
	}
	tests := []struct {
		name   string
		change func(l []storeEntry)
		want   int // -1: none
	}{
		{"row 24 an exited one outside the protected", func(l []storeEntry) { l[2].exited = true }, 2},
		{"row 24 the least recent of two exited ones", func(l []storeEntry) { l[1].exited, l[3].exited = true, true }, 1},
		{"row 24 none exited", func([]storeEntry) {}, 0},
		{"row 24 exited and protected", func(l []storeEntry) { l[9].exited = true }, 0},
		{"row 24 by use and not by place", func(l []storeEntry) { l[0].lastUsed = at(99) }, 1},
		{"row 25 exited and locked", func(l []storeEntry) { l[2].exited, l[2].locked = true, true }, -1},
		{"exited and locked, another exited", func(l []storeEntry) { l[1].exited, l[1].locked, l[3].exited = true, true, true }, 3},
		{"the least recent is locked", func(l []storeEntry) { l[0].locked = true }, 1},
		{"all are locked", func(l []storeEntry) {
			for i := range l {
				l[i].locked = true
			}
		}, -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, ok := leastRecent(list(test.change), ProtectedProcesses)
			if !ok {
				got = -1
			}
			if got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	t.Run("all are protected", func(t *testing.T) {
		if got, ok := leastRecent(make([]storeEntry, ProtectedProcesses), ProtectedProcesses); ok {
			t.Errorf("got %d", got)
		}
	})
}

func TestJoinDir(t *testing.T) {
	tests := []struct{ name, base, dir, want string }{
		{"row 43 relative", "/w", "sub", "/w/sub"},
		{"row 43 upward", "/w/x", "../y", "/w/y"},
		{"absolute", "/w", "/tmp", "/tmp"},
		{"none", "/w", "", "/w"},
		{"no base", "", "sub", "sub"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := joinDir(test.base, test.dir); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
