// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecode(t *testing.T) {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	for _, test := range []struct {
		name, text string
		want       Message
	}{
		{"request", `{"id":1,"method":"a"}`, Message{Kind: KindRequest, ID: Number(1), Method: "a"}},
		{"with the version", `{"jsonrpc":"2.0","id":-7,"method":"a","params":null,"extra":{"a":[1]}}`, Message{Kind: KindRequest, ID: Number(-7), Method: "a", Params: raw("null")}},
		{"text as ID", `{"id":"1","method":"a","params":[1, 2]}`, Message{Kind: KindRequest, ID: ID{kind: idText, text: "1"}, Method: "a", Params: raw("[1, 2]")}},
		{"spaces", " {\t\"id\" : 0 ,\r\n\"method\" : \"a\" , \"params\" : { \"b\" : 1 } } ", Message{Kind: KindRequest, ID: Number(0), Method: "a", Params: raw(`{ "b" : 1 }`)}},
		{"escaped name", `{"i\u0064":1,"method":"\u0061"}`, Message{Kind: KindRequest, ID: Number(1), Method: "a"}},
		{"least ID", `{"id":-9223372036854775808,"method":"a"}`, Message{Kind: KindRequest, ID: Number(-1 << 63), Method: "a"}},
		{"trace", `{"id":1,"method":"a","trace":{"traceparent":"00-0af7-b7ad-01","tracestate":null}}`, Message{Kind: KindRequest, ID: Number(1), Method: "a", Trace: &Trace{Parent: "00-0af7-b7ad-01"}}},
		{"notification", `{"method":"a","params":{}}`, Message{Kind: KindNotification, Method: "a", Params: raw("{}")}},
		{"response", `{"id":1,"result":null}`, Message{Kind: KindResponse, ID: Number(1), Result: raw("null")}},
		{"response wins", `{"id":1,"error":{},"result":{}}`, Message{Kind: KindResponse, ID: Number(1), Result: raw("{}")}},
		{"error", `{"id":1,"error":{"code":-32603,"message":"m","data":{"a":1}}}`, Message{Kind: KindError, ID: Number(1), Error: &Error{Code: -32603, Message: "m", Data: raw(`{"a":1}`)}}},
		{"quote at the end of a text", `{"method":"a\\\"","params":"}"}`, Message{Kind: KindNotification, Method: `a\"`, Params: raw(`"}"`)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := DecodeMessage([]byte(test.text))
			if err != nil || !reflect.DeepEqual(*got, test.want) {
				t.Errorf("%+v, %v, want %+v", got, err, test.want)
			}
		})
	}
}

// object returns an object with n members.
func object(n int, last string) string {
	var b strings.Builder
	b.WriteString(`{"method":"a","params":{`)
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return b.String() + `"` + last + `":1}}`
}

func TestDecodeErrors(t *testing.T) {
	deep := func(n int) string {
		return `{"method":"a","params":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	// n values in all
	many := func(n int) string { return `{"method":"a","params":[` + strings.Repeat("1,", n-4) + `1]}` }
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "JSON"}, {"text", "x", "JSON"}, {"half", `{"id":7,"method":`, "JSON"}, {"two objects", `{}{}`, "JSON"},
		{"array", "[]", "expected a JSON-RPC object"}, {"number", "42", "expected a JSON-RPC object"}, {"string", `"a"`, "expected a JSON-RPC object"},
		{"empty object", "{}", "missing field `id`"},
		{"only an ID", `{"id":1}`, "missing field `error`"},
		{"fraction", `{"id":1.5,"method":"a"}`, "RequestId"}, {"exponent", `{"id":1e3,"method":"a"}`, "RequestId"}, {"null", `{"id":null,"method":"a"}`, "RequestId"},
		{"object as ID", `{"id":{},"method":"a"}`, "RequestId"}, {"2^63", `{"id":9223372036854775808,"method":"a"}`, "RequestId"},
		{"number as method", `{"method":5,"id":1}`, "invalid type: number, expected a string"},
		{"trace", `{"id":1,"method":"a","trace":5}`, "invalid trace context"},
		{"error without code", `{"id":1,"error":{"message":"m"}}`, "missing field `code`"},
		{"error without message", `{"id":1,"error":{"code":1}}`, "missing field `message`"},
		{"code as text", `{"id":1,"error":{"code":"1","message":""}}`, `invalid type: string "1", expected i64`},
		{"member twice", `{"id":1,"method":"a","method":"b"}`, "duplicate JSON object key `method`"},
		{"member twice, escaped", `{"id":1,"method":"a","\u006dethod":"b"}`, "duplicate JSON object key `method`"},
		{"member twice, below", `{"method":"a","params":[{"x":{"y":1,"y":2}}]}`, "duplicate JSON object key `y`"},
		{"member twice of many", object(1000, "k7"), "duplicate JSON object key `k7`"},
		{"member twice at the bound", object(16, "k0"), "duplicate JSON object key `k0`"},
		{"no UTF-8", "{\"method\":\"\xff\"}", "invalid UTF-8"},
		{"too deep", deep(maxDepth), "nested more than"},
		{"too many values", many(MaxValues + 1), "more than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := DecodeMessage([]byte(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v, %v, want %s", m, err, test.want)
			}
		})
	}
	for name, text := range map[string]string{
		"deep": deep(maxDepth - 1), "many values": many(MaxValues), "many members": object(1000, "k1000"), "same names in two objects": `{"method":"a","params":[{"x":1},{"x":1}],"x":{"method":1}}`,
	} {
		if _, err := DecodeMessage([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEncode(t *testing.T) {
	text := func(b []byte, err error) string {
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for _, test := range []struct{ got, want string }{
		{text(Response(Number(3), map[string]string{"a": "<&>"})), `{"id":3,"result":{"a":"<&>"}}`},
		{text(Response(ID{kind: idText, text: `a"b`}, struct{}{})), `{"id":"a\"b","result":{}}`},
		{text(Failure(Malformed(), &Error{Code: CodeInvalidRequest, Message: "m"})), `{"error":{"code":-32600,"message":"m"},"id":-1}`},
		{text(Notification("a/b", []int{1})), `{"method":"a/b","params":[1]}`},
	} {
		if test.got != test.want {
			t.Errorf("%s, want %s", test.got, test.want)
		}
		if _, err := DecodeMessage([]byte(test.got)); err != nil {
			t.Errorf("%s: %v", test.got, err)
		}
	}
	if _, err := Response(Number(1), func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

// FuzzDecodeMessage compares the decoder with package encoding/json: it accepts nothing that is not one
// object in UTF-8, finds the same members, and never one of two with the same name.
func FuzzDecodeMessage(f *testing.F) {
	for _, s := range []string{
		`{"id":1,"method":"a","params":{"b":[1,"c",{"d":null}]},"trace":{"traceparent":"x"}}`,
		`{"id":"x","result":{}}`, `{"id":1,"error":{"code":1,"message":""}}`,
		`{"a":1,"\u0061":2}`, `[1,2]`, ` {"method" : "a\\" } `, `{"":{},"params":""}`,
		`{"method":"a","params":1e5}`, "{\"id\":1,\"method\":\"\xc3\x28\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeMessage(data)
		if err != nil {
			return
		}
		var members map[string]json.RawMessage
		if !utf8.Valid(data) || json.Unmarshal(data, &members) != nil {
			t.Fatalf("accepted %q", data)
		}
		if !bytes.Equal(m.Params, members["params"]) || m.Kind == KindResponse &&
			!bytes.Equal(m.Result, members["result"]) {
			t.Errorf("%q: %+v", data, m)
		}
		var method string
		if members["method"] != nil && (json.Unmarshal(members["method"], &method) != nil ||
			method != m.Method) {
			t.Errorf("%q: the method %q", data, m.Method)
		}
		if twice(json.NewDecoder(bytes.NewReader(data))) {
			t.Errorf("%q has a member twice", data)
		}
	})
}

// twice reports whether an object of the next value has a member twice.
func twice(d *json.Decoder) bool {
	d.UseNumber()
	start, _ := d.Token() // it is valid
	if start != json.Delim('{') && start != json.Delim('[') {
		return false
	}
	names := map[any]bool{}
	for d.More() {
		if start == json.Delim('{') {
			name, _ := d.Token()
			if names[name] {
				return true
			}
			names[name] = true
		}
		if twice(d) {
			return true
		}
	}
	_, _ = d.Token()
	return false
}

// BenchmarkDecode decodes the message that is sent most.
func BenchmarkDecode(b *testing.B) {
	text := []byte(`{"id":17,"method":"process/write","params":{"processId":"65104-05b416e7","chunk":"aGVsbG8K","writeId":"3"}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeMessage(text); err != nil {
			b.Fatal(err)
		}
	}
}
