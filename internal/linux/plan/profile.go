// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	_ "embed" // the fixed parts of a profile
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// profileHead is what every profile begins with. In Seatbelt the last rule that matches
// decides; what no rule matches is decided by the default. The denials after it name
// operations that the default does not cover.
//
//go:embed profile.sb
var profileHead string

// profileNetwork opens the host's network: every address, the name service, and the
// services that decide for a TLS handshake whether a certificate is trusted.
//
//go:embed profile-network.sb
var profileNetwork string

// param names a value and returns the expression for it.
func (s *seatbelt) param(key, value string) string {
	if p := (Param{key, value}); !slices.Contains(s.params, p) {
		s.params = append(s.params, p)
	}
	return fmt.Sprintf(`(param "%s")`, key)
}

func (s *seatbelt) printf(format string, args ...any) { fmt.Fprintf(&s.text, format, args...) }

// write writes the profile.
func (s *seatbelt) write() {
	s.text.WriteString(profileHead)
	s.writeDevices()
	read := s.filters("READABLE_ROOT", s.regions(sandbox.LevelRead), s.hides(sandbox.LevelRead))
	s.printf("\n; readable\n")
	s.allow("file-read* file-map-executable process-exec*", read)
	s.writeMetadata()
	written := s.filters("WRITABLE_ROOT", s.regions(sandbox.LevelWrite), s.hides(sandbox.LevelWrite))
	if len(written) > 0 {
		s.printf("\n; writable\n")
		s.allow("file-write*", written)
	}
	s.printf("\n; no programs that run as another user\n(deny file-write-setugid)\n")
	s.writePins()
	if s.req.network() == sandbox.NetworkHost {
		s.text.WriteString(profileNetwork)
		if len(written) > 0 {
			s.printf("; unix sockets in writable directories\n")
			s.allow("network-outbound network-bind", written)
		}
	}
}

func (s *seatbelt) allow(ops string, filters []string) {
	if len(filters) > 0 { // without a filter a rule would be about everything
		s.printf("(allow %s\n  %s)\n", ops, strings.Join(filters, "\n  "))
	}
}

// writeDevices opens the devices. Everything else in /dev stays closed, also where the
// whole disk is readable: other terminals of the same user are there.
func (s *seatbelt) writeDevices() {
	s.printf("\n; devices\n(allow file-read* (literal \"/dev\"))\n")
	for _, d := range s.devices {
		switch d {
		case "fd":
			s.printf("(allow file-read* file-write-data (subpath \"/dev/fd\"))\n")
		case "null", "zero", "tty":
			s.printf("(allow file-read* file-write-data (literal \"/dev/%s\"))\n", d)
		default:
			s.printf("(allow file-read* (literal \"/dev/%s\"))\n", d)
		}
	}
}

// writeMetadata lets programs look up the directories above what they may read, without
// listing them. The loader lists the root itself.
func (s *seatbelt) writeMetadata() {
	set := map[string]bool{}
	for _, g := range s.regions(sandbox.LevelRead) {
		for at := path.Dir(g.Path); g.Path != "/"; at = path.Dir(at) {
			if at == "/" || s.req.LevelAt(at) < sandbox.LevelRead {
				set[at] = true
			}
			if at == "/" {
				break
			}
		}
	}
	if s.req.Root >= sandbox.LevelRead {
		delete(set, "/")
	} else {
		// Three links that every path to temporary files and settings begins with.
		for _, link := range []string{"/", "/etc", "/tmp", "/var"} {
			set[link] = true
		}
		s.printf("(allow file-read-data (literal \"/\"))\n")
	}
	if len(set) == 0 {
		return
	}
	var out []string
	for i, name := range slices.Sorted(maps.Keys(set)) {
		out = append(out, "(literal "+s.param(fmt.Sprintf("ABOVE_%d", i), name)+")")
	}
	s.printf("\n; the way to what is readable\n")
	s.allow("file-read-metadata", out)
}

// writePins denies that the pinned directories are moved or removed.
func (s *seatbelt) writePins() {
	var out []string
	for i, name := range s.pins() {
		out = append(out, "(literal "+s.param(fmt.Sprintf("PIN_%d", i), name)+")")
	}
	for i, pin := range s.patternPins() {
		out = append(out, fmt.Sprintf("(require-all (vnode-type DIRECTORY) (regex %s))",
			s.param(fmt.Sprintf("PIN_PATTERN_%d", i), pin)))
	}
	if len(out) > 0 {
		s.printf("\n; directories that stay where they are, because rules are about what is in them\n(deny file-write-unlink\n  %s)\n",
			strings.Join(out, "\n  "))
	}
}

// filters writes regions as filters, with names for their parameters.
func (s *seatbelt) filters(word string, regions []region, hides []string) []string {
	var out []string
	for i, g := range regions {
		key := fmt.Sprintf("%s_%d", word, i)
		kind := "subpath"
		if g.Kind == KindFile {
			kind = "literal"
		}
		self := fmt.Sprintf("(%s %s)", kind, s.param(key, g.Path))
		var not []string
		if g.Path == "/" {
			not = append(not, `(require-not (subpath "/dev"))`)
		}
		if within(dataVolume, g.Path) {
			not = append(not, `(require-not (subpath "`+dataVolume+`"))`)
		}
		for j, x := range g.except {
			not = append(not, s.without(fmt.Sprintf("%s_EXCLUDED_%d", key, j), x)...)
		}
		for j, h := range hides {
			not = append(not, fmt.Sprintf("(require-not (regex %s))",
				s.param(fmt.Sprintf("%s_PATTERN_%d", word, j), h)))
		}
		if len(not) > 0 {
			self = fmt.Sprintf("(require-all\n    %s\n    %s)", self, strings.Join(not, "\n    "))
		}
		out = append(out, self)
	}
	return out
}

// without carves a path out: by name where a file exists, and in any case by an expression
// that matches every spelling that could become the same file.
func (s *seatbelt) without(key string, x Rule) []string {
	var out []string
	if x.Kind != KindMissing {
		p := s.param(key, x.Path)
		out = append(out, fmt.Sprintf("(require-not (literal %s))", p),
			fmt.Sprintf("(require-not (subpath %s))", p))
	}
	return append(out, fmt.Sprintf("(require-not (regex %s))", s.param(key+"_ANY_CASE", treeExpr(x.Path))))
}
