// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write above.txt")

func TestIsPublic(t *testing.T) {
	for name, want := range map[string]bool{
		"com": true, "co.uk": true, "github.io": true, "xn--p1ai": true,
		"example.com": false, "uk.com.example": false, "internal": false, "localhost": false, "": false,
		// All names below these are public suffixes, but for one.
		"ck": true, "www.ck": false, "other.ck": true, "kawasaki.jp": true, "city.kawasaki.jp": false, "x.kawasaki.jp": true, "bd": true,
		// Some are.
		"amazonaws.com": true, "compute.amazonaws.com": true, "eu-west-1.amazonaws.com": true, "rds.amazonaws.com": true,
		"windows.net": true, "core.windows.net": true, "fastly.net": true, "azurecontainer.io": true,
		// The public list lacks them.
		"nip.io": true, "azure.com": true, "cloudapp.azure.com": true, "myqcloud.com": true, "serveo.net": true,
		"github.com": false, "google.com": false, "debian.org": false, "mazonaws.com": false, "com\nfastly.net": false,
	} {
		if IsPublicSuffix(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestAbove: above.txt has all that is above a rule of the list, and is no rule itself.
func TestAbove(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/net").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "publicsuffix", "table_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "var rules = [...]string{")
	list, _, _ = strings.Cut(list, "\n}")
	rules := regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(list, -1)
	isRule, found := map[string]bool{}, map[string]bool{}
	for _, r := range rules {
		isRule[r[1]] = true
	}
	for _, r := range rules {
		for name := r[1]; !strings.HasPrefix(r[1], "!") && strings.Contains(name, "."); {
			if _, name, _ = strings.Cut(name, "."); !isRule[name] {
				found[name] = true
			}
		}
	}
	var names []string
	for name := range found {
		names = append(names, name+"\n")
	}
	slices.Sort(names)
	want := strings.Join(names, "")
	if *update {
		if err := os.WriteFile("above.txt", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if above != want || len(rules) < 5000 {
		t.Errorf("above.txt is not that of the %d rules; run go generate", len(rules))
	}
}
