// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// File is the file that a request is about.
type File struct {
	Path     string // a URI
	NoFollow bool   // followSymlinks is false
	Sandbox  *Sandbox
}

// file reads the members that requests about one file share.
func (f *fields) file() File {
	file := File{Path: f.text("path")}
	file.NoFollow, file.Sandbox = !f.choice("followSymlinks", true), f.sandbox()
	return file
}

// sandbox reads the member of that name; nil when it is absent or null.
func (f *fields) sandbox() (s *Sandbox) {
	if v := f.optional("sandbox"); v != nil && f.err == nil {
		s, f.err = decodeSandbox(v)
	}
	return s
}

// choice returns a boolean; otherwise when it is absent or null.
func (f *fields) choice(name string, otherwise bool) bool {
	if f.optional(name) == nil {
		return otherwise
	}
	return f.flag(name, false)
}

// number returns a whole number from 0 that must be there.
func (f *fields) number(name, kind string) uint64 {
	v := f.need(name)
	if string(v) == "null" {
		f.fail(expected(v, kind))
	}
	if n := f.natural(name, kind); n != nil {
		return *n
	}
	return 0
}

// DecodeFile reads the parameters of a request about a file that have no further ones:
// fs/readFile, fs/getMetadata, fs/canonicalize and fs/readDirectory.
func DecodeFile(params json.RawMessage) (*File, error) {
	f := object(params, "FsParams")
	file := f.file()
	return &file, f.err
}

// ReadFileResult is the result of fs/readFile.
type ReadFileResult struct {
	Data []byte `json:"dataBase64"`
}

// WriteFile are the parameters of fs/writeFile.
type WriteFile struct {
	File
	Data []byte
	Err  error // of Data: it is not base64
	// Atomic puts a new file in the place of the old one. It is an extension.
	Atomic bool
}

// DecodeWriteFile reads the parameters of fs/writeFile.
func DecodeWriteFile(params json.RawMessage) (*WriteFile, error) {
	f := object(params, "FsWriteFileParams")
	w := &WriteFile{File: f.file(), Atomic: f.choice("atomic", false)}
	w.Data, w.Err = decodeData(f.text("dataBase64"))
	return w, f.err
}

// Open are the parameters of fs/open.
type Open struct {
	File
	HandleID string
	Replace  bool // mode is "replace", not "read"
}

// DecodeOpen reads the parameters of fs/open.
func DecodeOpen(params json.RawMessage) (*Open, error) {
	f := object(params, "FsOpenParams")
	o := &Open{HandleID: f.text("handleId"), File: f.file()}
	switch mode := f.optionalText("mode"); {
	case mode == nil || *mode == "read":
	case *mode == "replace":
		o.Replace = true
	default:
		f.fail(fmt.Errorf("unknown variant `%s`, expected `read` or `replace`", *mode))
	}
	return o, f.err
}

// OpenResult is the result of fs/open.
type OpenResult struct {
	HandleID string `json:"handleId"`
}

// ReadBlock are the parameters of fs/readBlock.
type ReadBlock struct {
	HandleID    string
	Offset, Len uint64
}

// DecodeReadBlock reads the parameters of fs/readBlock.
func DecodeReadBlock(params json.RawMessage) (*ReadBlock, error) {
	f := object(params, "FsReadBlockParams")
	return &ReadBlock{HandleID: f.text("handleId"), Offset: f.number("offset", "u64"), Len: f.number("len", "usize")}, f.err
}

// ReadBlockResult is the result of fs/readBlock.
type ReadBlockResult struct {
	Chunk []byte `json:"chunk"`
	EOF   bool   `json:"eof"`
}

// WriteBlock are the parameters of fs/writeBlock.
type WriteBlock struct {
	HandleID string
	Offset   uint64
	Chunk    []byte
}

// DecodeWriteBlock reads the parameters of fs/writeBlock.
func DecodeWriteBlock(params json.RawMessage) (*WriteBlock, error) {
	f := object(params, "FsWriteBlockParams")
	return &WriteBlock{HandleID: f.text("handleId"), Offset: f.number("offset", "u64"), Chunk: f.data("chunk")}, f.err
}

// Close are the parameters of fs/close.
type Close struct{ HandleID string }

// DecodeClose reads the parameters of fs/close.
func DecodeClose(params json.RawMessage) (*Close, error) {
	f := object(params, "FsCloseParams")
	return &Close{HandleID: f.text("handleId")}, f.err
}

// CreateDirectory are the parameters of fs/createDirectory.
type CreateDirectory struct {
	File
	Recursive bool
}

// DecodeCreateDirectory reads the parameters of fs/createDirectory.
func DecodeCreateDirectory(params json.RawMessage) (*CreateDirectory, error) {
	f := object(params, "FsCreateDirectoryParams")
	return &CreateDirectory{File: f.file(), Recursive: f.choice("recursive", true)}, f.err
}

// Metadata is the result of fs/getMetadata.
type Metadata struct {
	IsDirectory bool  `json:"isDirectory"`
	IsFile      bool  `json:"isFile"`
	IsSymlink   bool  `json:"isSymlink"`
	Size        int64 `json:"size"`
	CreatedMs   int64 `json:"createdAtMs"` // 0: not known
	ModifiedMs  int64 `json:"modifiedAtMs"`
}

// CanonicalizeResult is the result of fs/canonicalize.
type CanonicalizeResult struct {
	Path string `json:"path"` // a URI
}

// ReadDirectoryResult is the result of fs/readDirectory. Entries must not be nil.
type ReadDirectoryResult struct {
	Entries []DirectoryEntry `json:"entries"`
}

// DirectoryEntry is something in a directory.
type DirectoryEntry struct {
	FileName    string `json:"fileName"`
	IsDirectory bool   `json:"isDirectory"`
	IsFile      bool   `json:"isFile"`
}

// Walk are the parameters of fs/walk.
type Walk struct {
	File
	MaxDepth, MaxDirectories, MaxEntries uint64
	FollowDirectorySymlinks              bool
	PruneHiddenDirectories               bool
}

// DecodeWalk reads the parameters of fs/walk.
func DecodeWalk(params json.RawMessage) (*Walk, error) {
	f := object(params, "FsWalkParams")
	w := &Walk{File: f.file()}
	options := f.need("options")
	if f.err != nil {
		return w, f.err
	}
	o := object(options, "WalkOptions")
	w.MaxDepth, w.MaxDirectories, w.MaxEntries = o.number("maxDepth", "usize"), o.number("maxDirectories", "usize"), o.number("maxEntries", "usize")
	w.FollowDirectorySymlinks, w.PruneHiddenDirectories = o.flag("followDirectorySymlinks", true), o.choice("pruneHiddenDirectories", false)
	return w, o.err
}

// WalkResult is the result of fs/walk. The lists must not be nil.
type WalkResult struct {
	Entries   []WalkEntry `json:"entries"`
	Errors    []WalkError `json:"errors"`
	Truncated bool        `json:"truncated"`
}

// WalkEntry is something that a walk found.
type WalkEntry struct {
	Path string `json:"path"` // a URI
	Kind string `json:"kind"` // "directory" or "file"
}

// WalkError is a directory that a walk could not read.
type WalkError struct {
	Path    string `json:"path"` // a URI
	Message string `json:"message"`
}

// Remove are the parameters of fs/remove.
type Remove struct {
	File
	Recursive, Force bool
}

// DecodeRemove reads the parameters of fs/remove.
func DecodeRemove(params json.RawMessage) (*Remove, error) {
	f := object(params, "FsRemoveParams")
	return &Remove{File: f.file(), Recursive: f.choice("recursive", true), Force: f.choice("force", true)}, f.err
}

// Copy are the parameters of fs/copy.
type Copy struct {
	Source, Destination string // URIs
	Recursive           bool
	Sandbox             *Sandbox
}

// DecodeCopy reads the parameters of fs/copy.
func DecodeCopy(params json.RawMessage) (*Copy, error) {
	f := object(params, "FsCopyParams")
	c := &Copy{Source: f.text("sourcePath"), Destination: f.text("destinationPath"), Recursive: f.flag("recursive", true), Sandbox: f.sandbox()}
	if f.err == nil && !f.choice("followSymlinks", true) {
		f.err = errors.New("`followSymlinks` false is not supported by fs/copy, which copies links as links; leave it out")
	}
	return c, f.err
}

// WatchMissing are the parameters of fs/watchMissing.
type WatchMissing struct {
	WatchID uint64
	Missing []string // URIs
	Sandbox *Sandbox
}

// DecodeWatchMissing reads the parameters of fs/watchMissing.
func DecodeWatchMissing(params json.RawMessage) (*WatchMissing, error) {
	f := object(params, "FsWatchMissingParams")
	w := &WatchMissing{WatchID: f.number("watchId", "u64"), Missing: f.list("missing"), Sandbox: f.sandbox()}
	if present := f.optionalText("present"); present != nil {
		f.fail(errors.New("`present` is not supported by this exec-server; leave it out"))
	}
	return w, f.err
}

// WatchMissingResult is the result of fs/watchMissing.
type WatchMissingResult struct {
	Watching bool `json:"watching"`
}

// MethodMissingChanged is the notification that something that was missing is there.
const MethodMissingChanged = "fs/missingChanged"

// MissingChanged are its parameters.
type MissingChanged struct {
	WatchID uint64 `json:"watchId"`
}

// Rename are the parameters of fs/rename, which is an extension.
type Rename struct {
	Source, Destination string // URIs
	Replace             bool
	NoFollow            bool
	Sandbox             *Sandbox
}

// DecodeRename reads the parameters of fs/rename.
func DecodeRename(params json.RawMessage) (*Rename, error) {
	f := object(params, "FsRenameParams")
	r := &Rename{Source: f.text("sourcePath"), Destination: f.text("destinationPath"), Replace: f.choice("replace", false), NoFollow: !f.choice("followSymlinks", true)}
	r.Sandbox = f.sandbox()
	return r, f.err
}

// Chmod are the parameters of fs/chmod, which is an extension.
type Chmod struct {
	File
	Mode uint64
}

// DecodeChmod reads the parameters of fs/chmod.
func DecodeChmod(params json.RawMessage) (*Chmod, error) {
	f := object(params, "FsChmodParams")
	c := &Chmod{File: f.file(), Mode: f.number("mode", "u32")}
	return c, f.err
}

// Symlink are the parameters of fs/symlink, which is an extension.
type Symlink struct {
	File
	Target string // the text of the link, no URI
}

// DecodeSymlink reads the parameters of fs/symlink.
func DecodeSymlink(params json.RawMessage) (*Symlink, error) {
	f := object(params, "FsSymlinkParams")
	s := &Symlink{File: f.file(), Target: f.text("target")}
	return s, f.err
}

// Append are the parameters of fs/append, which is an extension.
type Append struct {
	File
	Data []byte
}

// DecodeAppend reads the parameters of fs/append.
func DecodeAppend(params json.RawMessage) (*Append, error) {
	f := object(params, "FsAppendParams")
	a := &Append{File: f.file(), Data: f.data("dataBase64")}
	return a, f.err
}
