// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"

	"github.com/sallyport-dev/sallyport/internal/strict"
)

// File is the file that a request is about. It is the parameters of fs/readFile, fs/getMetadata,
// fs/canonicalize and fs/readDirectory.
type File struct {
	_       struct{} `rule:"name=FsParams"`
	Path    string   `json:"path" rule:"need"` // a URI
	Follow  bool     `json:"followSymlinks" rule:"true"`
	Sandbox *Sandbox `json:"sandbox,omitempty"`
}

// Of returns the file, also of parameters that have more.
func (f *File) Of() *File { return f }

// ReadFileResult is the result of fs/readFile.
type ReadFileResult struct {
	Data []byte `json:"dataBase64"`
}

// WriteFile are the parameters of fs/writeFile.
type WriteFile struct {
	_ struct{} `rule:"name=FsWriteFileParams"`
	File
	// Atomic puts a new file in the place of the old one. It is an extension.
	Atomic  bool   `json:"atomic,omitempty"`
	Encoded string `json:"dataBase64" rule:"need" schema:"base64"`
}

// Data returns the bytes to write, or why they are not base64, which is an error of its own.
func (w *WriteFile) Data() ([]byte, error) { return strict.Base64([]byte(w.Encoded)) }

// Open are the parameters of fs/open.
type Open struct {
	_        struct{} `rule:"name=FsOpenParams"`
	HandleID string   `json:"handleId" rule:"need"`
	File
	Mode string `json:"mode,omitempty" rule:"one=read|replace"` // empty is "read"
}

// OpenResult is the result of fs/open.
type OpenResult struct {
	HandleID string `json:"handleId"`
}

// ReadBlock are the parameters of fs/readBlock.
type ReadBlock struct {
	_        struct{} `rule:"name=FsReadBlockParams"`
	HandleID string   `json:"handleId" rule:"need"`
	Offset   uint64   `json:"offset" rule:"need"`
	Len      uint64   `json:"len" rule:"need,as=usize"`
}

// ReadBlockResult is the result of fs/readBlock.
type ReadBlockResult struct {
	Chunk []byte `json:"chunk"`
	EOF   bool   `json:"eof"`
}

// WriteBlock are the parameters of fs/writeBlock.
type WriteBlock struct {
	_        struct{} `rule:"name=FsWriteBlockParams"`
	HandleID string   `json:"handleId" rule:"need"`
	Offset   uint64   `json:"offset" rule:"need"`
	Chunk    []byte   `json:"chunk" rule:"need"`
}

// Close are the parameters of fs/close.
type Close struct {
	_        struct{} `rule:"name=FsCloseParams"`
	HandleID string   `json:"handleId" rule:"need"`
}

// CreateDirectory are the parameters of fs/createDirectory.
type CreateDirectory struct {
	_ struct{} `rule:"name=FsCreateDirectoryParams"`
	File
	Recursive bool `json:"recursive" rule:"true"`
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
	_ struct{} `rule:"name=FsWalkParams"`
	File
	WalkOptions `json:"options" rule:"need"`
}

// WalkOptions bound a walk.
type WalkOptions struct {
	MaxDepth                uint64 `json:"maxDepth" rule:"need,as=usize"`
	MaxDirectories          uint64 `json:"maxDirectories" rule:"need,as=usize"`
	MaxEntries              uint64 `json:"maxEntries" rule:"need,as=usize"`
	FollowDirectorySymlinks bool   `json:"followDirectorySymlinks" rule:"need"`
	PruneHiddenDirectories  bool   `json:"pruneHiddenDirectories,omitempty"`
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
	_ struct{} `rule:"name=FsRemoveParams"`
	File
	Recursive bool `json:"recursive" rule:"true"`
	Force     bool `json:"force" rule:"true"`
}

// Copy are the parameters of fs/copy.
type Copy struct {
	_           struct{} `rule:"name=FsCopyParams"`
	Source      string   `json:"sourcePath" rule:"need"`      // a URI
	Destination string   `json:"destinationPath" rule:"need"` // a URI
	Recursive   bool     `json:"recursive" rule:"need"`
	Sandbox     *Sandbox `json:"sandbox,omitempty"`
	Follow      bool     `json:"followSymlinks" rule:"true"` // always
}

// Validate returns what is wrong with the parameters.
func (c *Copy) Validate() error {
	if !c.Follow {
		return errors.New("`followSymlinks` false is not supported by fs/copy, which copies links as links; leave it out")
	}
	return nil
}

// WatchMissing are the parameters of fs/watchMissing.
type WatchMissing struct {
	_       struct{} `rule:"name=FsWatchMissingParams"`
	WatchID uint64   `json:"watchId" rule:"need"`
	Missing []string `json:"missing" rule:"need"` // URIs
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	Present *string  `json:"present,omitempty" schema:"-"` // always nil
}

// Validate returns what is wrong with the parameters.
func (w *WatchMissing) Validate() error {
	if w.Present != nil {
		return errors.New("`present` is not supported by this exec-server; leave it out")
	}
	return nil
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
	_           struct{} `rule:"name=FsRenameParams"`
	Source      string   `json:"sourcePath" rule:"need"`      // a URI
	Destination string   `json:"destinationPath" rule:"need"` // a URI
	Replace     bool     `json:"replace,omitempty"`
	Follow      bool     `json:"followSymlinks" rule:"true"`
	Sandbox     *Sandbox `json:"sandbox,omitempty"`
}

// Chmod are the parameters of fs/chmod, which is an extension.
type Chmod struct {
	_ struct{} `rule:"name=FsChmodParams"`
	File
	Mode uint32 `json:"mode" rule:"need"`
}

// Symlink are the parameters of fs/symlink, which is an extension.
type Symlink struct {
	_ struct{} `rule:"name=FsSymlinkParams"`
	File
	Target string `json:"target" rule:"need"` // the text of the link, no URI
}

// Append are the parameters of fs/append, which is an extension.
type Append struct {
	_ struct{} `rule:"name=FsAppendParams"`
	File
	Data []byte `json:"dataBase64" rule:"need"`
}
