// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sallyport-dev/sallyport/event"
	"github.com/sallyport-dev/sallyport/executor"
	"github.com/sallyport-dev/sallyport/sandbox"
)

// A Record is a line that was read: the members of [event.Report] by their names, as
// far as they are of use later. Members that a line does not have are zero.
type Record struct {
	Version int       `json:"v"`
	Start   time.Time `json:"start"`
	Flags   []string  `json:"flags"`
	Run     string    `json:"run"`

	Args       []string      `json:"argv"`
	Dir        string        `json:"cwd"`
	ExitCode   int           `json:"exit_code"`
	Signal     int           `json:"signal"`
	TimedOut   bool          `json:"timed_out"`
	End        string        `json:"end"`
	DurationMS int64         `json:"duration_ms"`
	Attempts   int           `json:"attempts"` // 0: it did not run
	Sandbox    event.Sandbox `json:"sandbox"`
	Error      string        `json:"error"`

	Denials        []sandbox.Denial       `json:"denials"`
	DenialsOmitted int                    `json:"denials_omitted"`
	Survivors      int                    `json:"survivors"`
	SurvivorList   []Survivor             `json:"survivor_list"`
	Quarantined    []executor.Quarantined `json:"quarantined"`
	Limits         []Limit                `json:"limits"`
	Withheld       []string               `json:"withheld"`
	Warnings       []string               `json:"warnings"`

	// Line is the whole line without its end, with the members that are not above.
	Line []byte `json:"-"`
}

// A Survivor is a process that outlived the command.
type Survivor struct {
	PID     int    `json:"pid"`
	Name    string `json:"name"`
	Command string `json:"command"`
}

// A Limit is one that the command ran under.
type Limit struct {
	Limit string  `json:"limit"`
	Value float64 `json:"value"`
	By    string  `json:"by"`
	Hit   bool    `json:"hit"`
}

// A Log is what was read. The zero Log is an empty one.
type Log struct {
	Records []Record // oldest first
	Skipped int      // lines that are no records
}

// Read reads what is in the folder. Without a file there are no records.
func Read(folder string) (Log, error) {
	// The newer file first: when it becomes the older one meanwhile, it is read
	// twice, and not missed.
	newer, err := readFile(filepath.Join(folder, fileName))
	if err != nil {
		return Log{}, fmt.Errorf("runlog: %w", err)
	}
	older, err := readFile(filepath.Join(folder, oldName))
	if err != nil {
		return Log{}, fmt.Errorf("runlog: %w", err)
	}
	log := Parse(older)
	more := Parse(newer)
	log.Skipped += more.Skipped
	seen := make(map[string]bool, len(log.Records))
	for _, r := range log.Records {
		seen[string(r.Line)] = true
	}
	for _, r := range more.Records {
		if !seen[string(r.Line)] {
			log.Records = append(log.Records, r)
		}
	}
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

// Parse reads lines. Those that are empty count nothing, those that are no records
// are skipped and counted. It keeps references to data.
func Parse(data []byte) Log {
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
