// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package network

import "testing"

func TestParsePublish(t *testing.T) {
	for text, want := range map[string]Publish{
		"3000": {3000, 3000}, "3000:8080": {3000, 8080}, "1:65535": {1, 65535}, "3000:0": {3000, 3000},
		"": {}, "0": {}, "0:80": {}, "65536": {}, "080": {}, "+80": {}, "-1": {}, "80:": {}, ":80": {}, "80:90:100": {}, "a": {}, "127.0.0.1:80": {}, "80:65536": {}, " 80": {},
	} {
		p, err := ParsePublish(text)
		if valid := want.Port != 0; (err == nil) != valid || valid &&
			(p != want || p.Host() != want.HostPort) {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
	}
	if p := (Publish{Port: 80}); p.Host() != 80 {
		t.Error("0 is not the same port")
	}
}
