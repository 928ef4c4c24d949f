// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// TestOptionsToken: Options are printed, logged and encoded without their token.
func TestOptionsToken(t *testing.T) {
	o := Options{URL: "wss://host:1", Token: "swordfish", TLS: &tls.Config{ServerName: "swordfish"}}
	e := New(o)
	defer e.Close()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("connects", "options", o)
	text, err := json.Marshal(struct{ URL, Token any }{o.URL,
		struct{ Options Options }{Options{Token: o.Token}}})
	if err != nil && !strings.Contains(err.Error(), "unsupported type") { // Dial is a function
		t.Error(err)
	}
	for _, said := range []string{
		fmt.Sprint(o), fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o), fmt.Sprintf("%v", &o),
		fmt.Sprintf("%s %q", o, o),
		fmt.Sprintf("%v", []Options{o}), fmt.Sprintf("%+v", struct{ O Options }{o}),
		log.String(), string(text),
		fmt.Sprintf("%v %+v %#v", e, e, e),
	} {
		if strings.Contains(said, "swordfish") {
			t.Errorf("%q", said)
		}
	}
	// What is not exported has no method that is asked, and other verbs than v follow pointers.
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%t"} {
		for _, v := range []any{o, &o, e, struct{ e *Executor }{e}, struct{ O *Options }{&o}, []any{o, e}} {
			said := strings.ToLower(fmt.Sprintf(verb, v))
			for _, token := range []string{"swordfish", fmt.Sprintf("%x", "swordfish")} {
				if strings.Contains(said, token) {
					t.Errorf("%s of %T: %s", verb, v, said)
				}
			}
		}
	}
	if said := fmt.Sprintf("%+v", o); !strings.Contains(said, "wss://host:1") ||
		!strings.Contains(said, secret) {
		t.Errorf("%q", said)
	}
	if said := fmt.Sprint(Options{}); strings.Contains(said, secret) {
		t.Errorf("without a token: %q", said)
	}
}
