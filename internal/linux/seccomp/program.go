// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package seccomp

// Program returns the compiled deny list of o as the kernel reads it on a little-endian
// machine: one struct sock_filter per word. The error is an [UnsupportedArchError] or an
// [UnknownOpeningError] or a [MissingOpeningsError].
func Program(o Options) ([]uint64, error) {
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
