// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/sallyport-dev/sallyport/sandbox"
)

// deviceNames are the devices that a command gets, by their names below /dev.
// The pseudo-terminals have rules of their own.
func deviceNames() []string {
	return []string{"null", "zero", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr"}
}

// profileHead is what every profile begins with. In Seatbelt the last rule that
// matches decides; what no rule is about falls to the default. The denials after
// it name operations that the default has been seen not to reach.
const profileHead = `(version 1)
(deny default)
(deny file-link file-clone nvram* process-info*)

; processes of this sandbox, and no others
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))

; facts about the machine; no list of processes
(allow sysctl-read
  (sysctl-name "hw.activecpu")
  (sysctl-name "hw.byteorder")
  (sysctl-name "hw.cachelinesize")
  (sysctl-name "hw.cachelinesize_compat")
  (sysctl-name "hw.cpufamily")
  (sysctl-name "hw.cputype")
  (sysctl-name "hw.cpusubtype")
  (sysctl-name "hw.cputhreadtype")
  (sysctl-name "hw.cpu64bit_capable")
  (sysctl-name "hw.l1dcachesize")
  (sysctl-name "hw.l1icachesize")
  (sysctl-name "hw.l2cachesize")
  (sysctl-name "hw.l3cachesize")
  (sysctl-name "hw.logicalcpu")
  (sysctl-name "hw.logicalcpu_max")
  (sysctl-name "hw.machine")
  (sysctl-name "hw.memsize")
  (sysctl-name "hw.model")
  (sysctl-name "hw.ncpu")
  (sysctl-name "hw.nperflevels")
  (sysctl-name "hw.packages")
  (sysctl-name "hw.pagesize")
  (sysctl-name "hw.pagesize_compat")
  (sysctl-name "hw.physicalcpu")
  (sysctl-name "hw.physicalcpu_max")
  (sysctl-name "hw.tbfrequency")
  (sysctl-name "hw.vectorunit")
  (sysctl-name-prefix "hw.optional.")
  (sysctl-name-prefix "hw.perflevel")
  (sysctl-name-prefix "machdep.cpu.")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.boottime")
  (sysctl-name "kern.clockrate")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.iossupportversion")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osproductversioncompat")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "sysctl.proc_native")
  (sysctl-name "sysctl.proc_translated")
  (sysctl-name "vm.loadavg"))

; services: names of users and groups, log lines, sleep, preferences to read
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.PowerManagement.control")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.cfprefsd.agent")
  (local-name "com.apple.cfprefsd.agent"))
(allow user-preference-read)
(allow ipc-posix-shm-read* (ipc-posix-name-prefix "apple.cfprefs."))

; semaphores, and the one segment by which OpenMP knows itself
(allow ipc-posix-sem)
(allow ipc-posix-shm-read-data ipc-posix-shm-write-create ipc-posix-shm-write-unlink
  (ipc-posix-name-regex "^/__KMP_REGISTERED_LIB_[0-9]+$"))

; terminals: those that the command makes, and settings of the one it was given
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write*
  (require-all (regex "^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow file-ioctl (literal "/dev/tty") (regex "^/dev/ttys[0-9]+$"))
`

// profileNetwork opens the host's network: every address, the name service, and
// the services that a TLS handshake asks whether a certificate is trusted.
const profileNetwork = `
; the host's network
(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-inbound (local ip "*:*"))
(allow network-bind (local ip "*:*"))
(allow system-socket (require-all (socket-domain AF_SYSTEM) (socket-protocol 2)))
(allow sysctl-read (sysctl-name-prefix "net.routetable."))
(allow mach-lookup
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.SecurityServer")
  (global-name "com.apple.ocspd")
  (global-name "com.apple.networkd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.system.notification_center"))
(allow ipc-posix-shm-read-data (ipc-posix-name "apple.shm.notification_center"))
`

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
	writable := s.regions(sandbox.LevelWrite)
	written := s.filters("WRITABLE_ROOT", writable, s.hides(sandbox.LevelWrite))
	if len(written) > 0 {
		s.printf("\n; writable\n")
		s.allow("file-write*", written)
	}
	s.printf("\n; no programs that run as somebody else\n(deny file-write-setugid)\n")
	s.writePins()
	if s.req.network() == sandbox.NetworkHost {
		s.text.WriteString(profileNetwork)
		if len(written) > 0 {
			s.printf("; unix sockets in writable places\n")
			s.allow("network-outbound network-bind", written)
		}
	}
}

func (s *seatbelt) allow(ops string, filters []string) {
	if len(filters) > 0 { // without a filter a rule would be about everything
		s.printf("(allow %s\n  %s)\n", ops, strings.Join(filters, "\n  "))
	}
}

// writeDevices opens the devices. Everything else in /dev stays closed, also
// where the whole disk is readable: other terminals of the same user are there.
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

// writeMetadata lets programs look up the folders above what they may read,
// without listing them. The loader lists the root itself.
func (s *seatbelt) writeMetadata() {
	set := map[string]bool{}
	for _, g := range s.regions(sandbox.LevelRead) {
		for at := path.Dir(g.Path); g.Path != "/"; at = path.Dir(at) {
			if at == "/" || s.level(at, false) < sandbox.LevelRead {
				set[at] = true
			}
			if at == "/" {
				break
			}
		}
	}
	if s.root >= sandbox.LevelRead {
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
	i := 0
	for name := range sorted(set) {
		out = append(out, "(literal "+s.param(fmt.Sprintf("ABOVE_%d", i), name)+")")
		i++
	}
	s.printf("\n; the way to what is readable\n")
	s.allow("file-read-metadata", out)
}

// writePins keeps folders from being moved or removed.
func (s *seatbelt) writePins() {
	var out []string
	for i, name := range s.pins() {
		out = append(out, "(literal "+s.param(fmt.Sprintf("PIN_%d", i), name)+")")
	}
	for i, pin := range s.patternPins() {
		out = append(out, fmt.Sprintf("(require-all (vnode-type DIRECTORY) (regex %s))", s.param(fmt.Sprintf("PIN_PATTERN_%d", i), pin)))
	}
	if len(out) > 0 {
		s.printf("\n; folders that stay where they are, because rules are about what is in them\n(deny file-write-unlink\n  %s)\n",
			strings.Join(out, "\n  "))
	}
}

// filters writes regions as filters, with names for their parameters.
func (s *seatbelt) filters(word string, regions []region, hides []string) []string {
	var out []string
	for i, g := range regions {
		key := fmt.Sprintf("%s_%d", word, i)
		self := fmt.Sprintf("(subpath %s)", s.param(key, g.Path))
		if g.Kind == KindFile {
			self = fmt.Sprintf("(literal %s)", s.param(key, g.Path))
		}
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
			not = append(not, fmt.Sprintf("(require-not (regex %s))", s.param(fmt.Sprintf("%s_PATTERN_%d", word, j), h)))
		}
		if len(not) > 0 {
			self = fmt.Sprintf("(require-all\n    %s\n    %s)", self, strings.Join(not, "\n    "))
		}
		out = append(out, self)
	}
	return out
}

// without carves a path out: by name where something is there, and in any case
// by an expression that takes every spelling that could become the same file.
func (s *seatbelt) without(key string, x Rule) []string {
	var out []string
	if x.Kind != KindMissing {
		p := s.param(key, x.Path)
		out = append(out, fmt.Sprintf("(require-not (literal %s))", p), fmt.Sprintf("(require-not (subpath %s))", p))
	}
	return append(out, fmt.Sprintf("(require-not (regex %s))", s.param(key+"_ANY_CASE", treeExpr(x.Path))))
}
