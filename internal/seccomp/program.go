// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Program returns the compiled filter of [Default] in the form in which the
// kernel reads it on a little-endian machine: one struct sock_filter per word.
// The caller must not change it. The programs that nearly every command gets
// are kept ready, because compiling costs more than the kernel needs to take
// one; a test holds them to what Compile makes.
func Program(o Options) ([]uint64, error) {
	if len(o.Allow) == 0 && o.OwnPID && !o.HostSpaces {
		if ready := readyMade(o.Arch, o.HostNetwork); ready != nil {
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
func readyMade(arch string, hostNetwork bool) []uint64 {
	switch {
	case arch == "amd64" && hostNetwork:
		return readyAmd64Host[:]
	case arch == "amd64":
		return readyAmd64None[:]
	case arch == "arm64" && hostNetwork:
		return readyArm64Host[:]
	case arch == "arm64":
		return readyArm64None[:]
	}
	return nil
}
