// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Program returns the compiled filter of [Default] in the form in which the
// kernel reads it on a little-endian machine: one struct sock_filter per word.
// The caller must not change it. The programs that nearly every command gets
// are kept ready, because compiling costs more than the kernel needs to take
// one; a test holds them to what Compile makes.
func Program(o Options) ([]uint64, error) {
	if len(o.Allow) == 0 && o.OwnPID && !o.HostSpaces && !o.ObserveReads {
		if ready := readyMade(o); ready != nil {
			return ready, nil
		}
	}
	f, err := Default(o)
	if err != nil {
		return nil, err
	}
	prog, err := f.Compile()
	if err != nil {
		return nil, err
	}
	return Words(prog), nil
}

// Words packs a program as the kernel reads it on a little-endian machine.
func Words(prog []Instruction) []uint64 {
	words := make([]uint64, len(prog))
	for i, in := range prog {
		words[i] = uint64(in.Code) | uint64(in.JT)<<16 | uint64(in.JF)<<24 | uint64(in.K)<<32
	}
	return words
}

// readyMade returns a program made beforehand, or nil.
func readyMade(o Options) []uint64 {
	for _, r := range readyPrograms() {
		if r.arch == o.Arch && r.host == o.HostNetwork && r.observe == o.Observe {
			return r.words
		}
	}
	return nil
}

// A readyProgram is for commands at the native level without openings.
type readyProgram struct {
	arch          string
	host, observe bool
	words         []uint64
}

func readyPrograms() [8]readyProgram {
	return [...]readyProgram{
		{"amd64", false, false, readyAmd64None[:]},
		{"amd64", true, false, readyAmd64Host[:]},
		{"amd64", false, true, readyAmd64NoneSeen[:]},
		{"amd64", true, true, readyAmd64HostSeen[:]},
		{"arm64", false, false, readyArm64None[:]},
		{"arm64", true, false, readyArm64Host[:]},
		{"arm64", false, true, readyArm64NoneSeen[:]},
		{"arm64", true, true, readyArm64HostSeen[:]},
	}
}
