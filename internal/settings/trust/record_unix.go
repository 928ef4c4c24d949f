// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sallyport-dev/sallyport/internal/text"
)

const (
	recordVersion = 1
	recordExt     = ".json"
	maxRecord     = 4 << 20 // bytes; more than 1025 names of 255 bytes need
)

// recordName is the name of the file with the record of a directory.
func recordName(dir string) string { return hash([]byte(dir)) + recordExt }

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// record returns what Trust records.
func (p *Project) record(now time.Time) Record {
	r := Record{
		Version: recordVersion, Dir: p.Dir, Device: p.id.device, Inode: p.id.inode, Born: p.id.born,
		Time: now.UTC().Truncate(time.Second),
	}
	for _, f := range p.Files {
		r.Files = append(r.Files, Hash{f.Name, hash(f.Data)})
	}
	return r
}

// encode returns the one form of a record.
func (r Record) encode() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "\t")
	return append(text, '\n'), err
}

// decode reads a record, which must be in the form that encode gives it, so that nothing in
// it can be read in two ways. The offset is where it is wrong.
func decode(data []byte, name string) (r Record, offset int, err error) {
	var syntax *json.SyntaxError
	var value *json.UnmarshalTypeError
	switch err := json.Unmarshal(data, &r); {
	case errors.As(err, &syntax):
		return Record{}, int(syntax.Offset), err
	case errors.As(err, &value):
		return Record{}, int(value.Offset), err
	case err != nil:
		return Record{}, 0, err
	}
	form, err := r.encode()
	switch {
	case err != nil:
		return Record{}, 0, err
	case !bytes.Equal(form, data):
		return Record{}, difference(form, data),
			errors.New("it is not in the form in which sallyport writes it")
	}
	return r, 0, r.check(name)
}

// difference returns where two texts begin to differ.
func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// check returns an error for a record that no Trust has made for the file of that name.
func (r Record) check(name string) error {
	switch {
	case r.Version != recordVersion:
		return fmt.Errorf("version %d is not supported", r.Version)
	case !filepath.IsAbs(r.Dir) || filepath.Clean(r.Dir) != r.Dir:
		return fmt.Errorf("invalid directory %s", text.Word(r.Dir))
	case recordName(r.Dir) != name:
		return fmt.Errorf("it is the record of %s and has another name", text.Word(r.Dir))
	case r.Time.IsZero():
		return errors.New("it has no time")
	case len(r.Files) == 0:
		return errors.New("it has no files")
	case !slices.IsSortedFunc(r.Files, func(a, b Hash) int { return strings.Compare(a.Name, b.Name) }):
		return errors.New("its files are not in order")
	}
	for i, f := range r.Files {
		sum, err := hex.DecodeString(f.SHA256)
		switch {
		case f.Name != trustConfigFile && (path.Dir(f.Name) != rulesDir || path.Ext(f.Name) != rulesExt ||
			path.Clean(f.Name) != f.Name):
			return fmt.Errorf("invalid file name %s", text.Word(f.Name))
		case err != nil || len(sum) != sha256.Size || strings.ToLower(f.SHA256) != f.SHA256:
			return fmt.Errorf("invalid hash of %s", text.Word(f.Name))
		case i > 0 && r.Files[i-1].Name == f.Name:
			return fmt.Errorf("%s is there twice", text.Word(f.Name))
		}
	}
	return nil
}

// compare sets the state of a project by its record.
func (p *Project) compare(r Record) {
	var why []string
	if !p.id.same(identity{r.Device, r.Inode, r.Born}) {
		why = append(why, "this is another directory than the one that was trusted")
	}
	was := map[string]string{}
	for _, f := range r.Files {
		was[f.Name] = f.SHA256
	}
	for _, f := range p.Files {
		name := text.Word(strings.TrimPrefix(f.Name, configDir+"/"))
		switch sum, ok := was[f.Name]; {
		case !ok:
			why = append(why, name+" is new")
		case sum != hash(f.Data):
			why = append(why, name+" changed since "+r.Time.Local().Format(time.DateOnly))
		}
		delete(was, f.Name)
	}
	for _, f := range r.Files {
		if _, gone := was[f.Name]; gone {
			why = append(why, text.Word(strings.TrimPrefix(f.Name, configDir+"/"))+" is missing")
		}
	}
	const most = 3
	if p.State = Trusted; len(why) > 0 {
		p.State = Changed
	}
	if more := len(why) - most; more > 0 {
		why = append(why[:most], fmt.Sprintf("and %d more", more))
	}
	p.Why = strings.Join(why, ", ")
}
