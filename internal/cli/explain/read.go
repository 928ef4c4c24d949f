// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/audit"
)

// Record is a recorded run: its Result without the output, when it started, and the
// flags that decide what the command may touch.
type Record struct {
	Version int // of the line that was read; Body has the current one
	Start   time.Time
	Flags   []string
	sallyport.Result

	// Line is the JSON form that was read.
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

// ReadLog reads the records of runs in the directory of an audit log, or with newest only those of the newest
// file that has some. A directory that is not there has none.
func ReadLog(dir string, newest bool) (Log, error) {
	if !newest {
		return readLog(dir)
	}
	var log Log
	files, err := audit.Files(dir)
	for i := len(files) - 1; i >= 0 && err == nil && len(log.Records) == 0; i-- {
		var one Log
		one, err = readLog(files[i])
		log.Records, log.Skipped = one.Records, log.Skipped+one.Skipped
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return log, err
}

func readLog(path string) (Log, error) {
	var log Log
	err := audit.Read(path, audit.Filter{Kind: RecordKind}, func(l audit.Record) error {
		if r, ok := ParseRecord(bytes.Clone(l.Body)); l.Bad == "" && ok {
			log.Records = append(log.Records, r)
		} else {
			log.Skipped++
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return log, err
}

// ParseRecord reads the body of one record, which it keeps.
func ParseRecord(line []byte) (Record, bool) {
	var r Record
	if len(line) > maxLine || json.Unmarshal(line, &r) != nil || r.Version < 1 || r.Run == "" {
		return Record{}, false
	}
	r.Line = line
	return r, true
}
