// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/sallyport-dev/sallyport"
)

// Record is a recorded run: its Result without the output, when it started, and the
// flags that decide what the command may touch.
type Record struct {
	Version int // of the line that was read; Append writes the current one
	Start   time.Time
	Flags   []string
	sallyport.Result

	// Line is the whole line that was read, without its newline.
	Line []byte
}

// A header holds the members of a line beside those of the result.
type header struct {
	Version int       `json:"v"`
	Start   time.Time `json:"start"`
	Flags   []string  `json:"flags"`
}

// UnmarshalJSON reads a line. Unknown members are ignored.
func (r *Record) UnmarshalJSON(data []byte) error {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	*r = Record{Version: h.Version, Start: h.Start, Flags: h.Flags}
	return r.Result.UnmarshalJSON(data)
}

// Log is what was read. The zero Log is empty.
type Log struct {
	Records []Record // oldest first
	Skipped int      // lines that are no records
}

// ReadLog reads the records in a state directory. Without a file there are none.
func ReadLog(dir string) (Log, error) {
	// The newer file first: if it is rotated meanwhile, it is read twice, and
	// not missed.
	newer, err := readFile(filepath.Join(dir, fileName))
	if err != nil {
		return Log{}, fmt.Errorf("runlog: %w", err)
	}
	older, err := readFile(filepath.Join(dir, oldName))
	if err != nil {
		return Log{}, fmt.Errorf("runlog: %w", err)
	}
	log, seen := ParseLog(slices.Concat(older, []byte("\n"), newer)), map[string]bool{}
	log.Records = slices.DeleteFunc(log.Records, func(r Record) bool {
		again := seen[string(r.Line)]
		seen[string(r.Line)] = true
		return again
	})
	return log, nil
}

// readFile reads a file, but no more than one of ours can hold.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 4*maxFile))
}

// ParseLog reads lines. Empty ones are ignored, those that are no records
// are skipped and counted. It keeps references to data.
func ParseLog(data []byte) Log {
	var log Log
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		r, ok := parse(line)
		if !ok {
			log.Skipped++
			// Where a disk was full, a line may begin in the middle of another one.
			i := bytes.LastIndex(line, []byte(`{"v":`))
			if i <= 0 {
				continue
			}
			if r, ok = parse(line[i:]); !ok {
				continue
			}
		}
		log.Records = append(log.Records, r)
	}
	return log
}

// parse reads one line.
func parse(line []byte) (Record, bool) {
	var r Record
	if len(line) > maxLine || json.Unmarshal(line, &r) != nil || r.Version < 1 || r.Run == "" {
		return Record{}, false
	}
	r.Line = line
	return r, true
}
