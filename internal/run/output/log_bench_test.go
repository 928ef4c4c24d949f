// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// benchSize is what one round writes.
const benchSize = 512 << 20

// BenchmarkWrite measures 512 MiB of lines through a Log without a file, with one of
// the usual cap, with one that takes all of it, against write(2) of the same chunks to
// a file, which is what a person would compare it with.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10} {
		chunk := noise(size)
		b.Run(fmt.Sprintf("%dKiB/memory", size>>10), func(b *testing.B) {
			b.SetBytes(benchSize)
			for b.Loop() {
				benchWrite(NewLog(0, nil, nil), chunk)
			}
		})
		for _, file := range []struct {
			name string
			most int64
		}{{"ring", usual}, {"all", benchSize}} {
			b.Run(fmt.Sprintf("%dKiB/%s", size>>10, file.name), func(b *testing.B) {
				store := &Store{Dir: filepath.Join(b.TempDir(), "spill")}
				defer store.Close()
				b.SetBytes(benchSize)
				for b.Loop() {
					f, err := store.Create(file.most)
					if err != nil {
						b.Fatal(err)
					}
					benchWrite(NewLog(0, f, nil), chunk)
					if err := f.Remove(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("%dKiB/write", size>>10), func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "out")
			b.SetBytes(benchSize)
			for b.Loop() {
				f, err := os.Create(name)
				if err != nil {
					b.Fatal(err)
				}
				for n := 0; n < benchSize; n += len(chunk) {
					if _, err := f.Write(chunk); err != nil {
						b.Fatal(err)
					}
				}
				f.Close()
				os.Remove(name)
			}
		})
	}
}

func benchWrite(l *Log, chunk []byte) {
	for n := 0; n < benchSize; n += len(chunk) {
		l.Write(stdout, chunk)
	}
	l.End()
}

// BenchmarkSession is what a short output costs that has a file.
func BenchmarkSession(b *testing.B) {
	store := &Store{Dir: filepath.Join(b.TempDir(), "spill")}
	defer store.Close()
	for b.Loop() {
		f, err := store.Create(usual)
		if err != nil {
			b.Fatal(err)
		}
		l := NewLog(0, f, nil)
		l.Write(stdout, []byte("hello\n"))
		l.End()
		if err := f.Remove(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFind looks at the middle of a file of 64 MiB.
func BenchmarkFind(b *testing.B) {
	store := &Store{Dir: filepath.Join(b.TempDir(), "spill")}
	defer store.Close()
	f, err := store.Create(usual)
	if err != nil {
		b.Fatal(err)
	}
	l := NewLog(0, f, nil)
	all := noise(64 << 20)
	for off := 0; off < len(all); off += 64 << 10 {
		l.Write(stdout, all[off:off+64<<10])
	}
	l.End()
	middle := l.LineCount() / 2
	b.Run("20 lines", func(b *testing.B) {
		for b.Loop() {
			if lines, _ := l.Lines(middle, middle+19); len(lines) != 20 {
				b.Fatal(len(lines))
			}
		}
	})
	for name, re := range map[string]string{"literal": `never\x01`, "class": `[A-Z]{12}\x01`} {
		b.Run("search "+name, func(b *testing.B) {
			b.SetBytes(int64(len(all)))
			for b.Loop() {
				if found, err := l.Search(b.Context(), regexp.MustCompile(re), 0); err != nil ||
					found.Searched != uint64(len(all)) {
					b.Fatal(found, err)
				}
			}
		})
	}
}
