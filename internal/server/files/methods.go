// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/sallyport-dev/sallyport/internal/server/wire"
)

// maxReadFile is how many bytes of a file one answer carries, in base64 and with what is around
// them.
const maxReadFile = (wire.MaxFrame - 4<<10) / 4 * 3

// decoders decode the parameters of requests, by method.
var decoders = sync.OnceValue(func() map[string]func(json.RawMessage) (*Request, error) {
	return map[string]func(json.RawMessage) (*Request, error){
		"fs/readFile":      onFile(readFile),
		"fs/getMetadata":   onFile(getMetadata),
		"fs/canonicalize":  onFile(canonicalize),
		"fs/readDirectory": onFile(readDirectory),
		"fs/writeFile":     onFile(writeFile),
		"fs/createDirectory": changing(func(t Target, p *wire.CreateDirectory) error {
			return CreateDirectory(t, p.Recursive)
		}),
		"fs/remove": changing(func(t Target, p *wire.Remove) error {
			return Remove(t, p.Recursive, p.Force)
		}),
		"fs/walk":    onFile(walkRequest),
		"fs/copy":    decoded(copying),
		"fs/rename":  decoded(renaming),
		"fs/chmod":   changing(func(t Target, p *wire.Chmod) error { return Chmod(t, uint64(p.Mode)) }),
		"fs/symlink": changing(func(t Target, p *wire.Symlink) error { return Symlink(p.Target, t) }),
		"fs/append":  changing(func(t Target, p *wire.Append) error { return Append(t, p.Data) }),
		"fs/open":    decoded(opening),
		"fs/readBlock": onHandle(UsesHandle, func(p *wire.ReadBlock) string { return p.HandleID },
			func(h *Handles, p *wire.ReadBlock) (any, error) {
				block, end, err := h.ReadBlock(p.HandleID, p.Offset, p.Len)
				return wire.ReadBlockResult{Chunk: block, EOF: end}, err
			}),
		"fs/writeBlock": onHandle(UsesHandle, func(p *wire.WriteBlock) string { return p.HandleID },
			func(h *Handles, p *wire.WriteBlock) (any, error) {
				return struct{}{}, h.WriteBlock(p.HandleID, p.Offset, p.Chunk)
			}),
		"fs/close": onHandle(ClosesHandle, func(p *wire.Close) string { return p.HandleID },
			func(h *Handles, p *wire.Close) (any, error) { return struct{}{}, h.Close(p.HandleID) }),
	}
})

// extensions are the methods that are none of the protocol.
var extensions = map[string]bool{"fs/rename": true, "fs/chmod": true, "fs/symlink": true, "fs/append": true}

// reads are the methods that change nothing; fs/open does where it replaces.
var reads = map[string]bool{"fs/readFile": true, "fs/getMetadata": true, "fs/canonicalize": true,
	"fs/readDirectory": true, "fs/walk": true, "fs/open": true, "fs/readBlock": true, "fs/close": true}

// decoded returns the decoder for a method that is performed as of says.
func decoded[T any](of func(*T) *Request) func(json.RawMessage) (*Request, error) {
	return func(params json.RawMessage) (*Request, error) {
		p, err := wire.Decode[T](params)
		if err != nil {
			return nil, err
		}
		return of(p), nil
	}
}

// about are the parameters of a method about one file.
type about[T any] interface {
	*T
	Of() *wire.File
}

// onFile returns the decoder for a method about one file.
func onFile[T any, P about[T]](perform func(context.Context, Target,
	P) (any, error)) func(json.RawMessage) (*Request, error) {
	return decoded(func(p *T) *Request {
		f := P(p).Of()
		return &Request{Sandbox: f.Sandbox, Perform: func(ctx context.Context, s *Server) (any, error) {
			t, err := s.target(f)
			if err != nil {
				return nil, err
			}
			return perform(ctx, t, p)
		}}
	})
}

// changing is onFile for a method without a result.
func changing[T any, P about[T]](change func(Target, P) error) func(json.RawMessage) (*Request, error) {
	return onFile(func(_ context.Context, t Target, p P) (any, error) { return struct{}{}, change(t, p) })
}

// onHandle returns the decoder for a method about a handle.
func onHandle[T any](use HandleUse, id func(*T) string,
	perform func(*Handles, *T) (any, error)) func(json.RawMessage) (*Request, error) {
	return decoded(func(p *T) *Request {
		return &Request{Handle: id(p), Use: use, Perform: func(_ context.Context, s *Server) (any, error) {
			return perform(&s.handles, p)
		}}
	})
}

func readFile(_ context.Context, t Target, _ *wire.File) (any, error) {
	data, err := Read(t, maxReadFile)
	return wire.ReadFileResult{Data: data}, err
}

func getMetadata(_ context.Context, t Target, _ *wire.File) (any, error) {
	info, err := Stat(t)
	return wire.Metadata{
		IsDirectory: info.IsDirectory, IsFile: info.IsFile, IsSymlink: info.IsSymlink, Size: info.Size,
		ModifiedMs: info.ModifiedMs,
	}, err
}

func canonicalize(_ context.Context, t Target, _ *wire.File) (any, error) {
	if err := follows(t); err != nil {
		return nil, err
	}
	path, err := Canonicalize(t.Path)
	return wire.CanonicalizeResult{Path: wire.URI(path)}, err
}

// follows refuses a target with NoFollow for a method that knows no such thing.
func follows(t Target) error {
	if t.NoFollow {
		return invalid("`followSymlinks` false is not supported by this method; leave it out")
	}
	return nil
}

func readDirectory(_ context.Context, t Target, _ *wire.File) (any, error) {
	if err := follows(t); err != nil {
		return nil, err
	}
	entries, err := ReadDirectory(t.Path)
	result := wire.ReadDirectoryResult{Entries: make([]wire.DirectoryEntry, len(entries))}
	for i, e := range entries {
		result.Entries[i] = wire.DirectoryEntry{FileName: e.Name, IsDirectory: e.IsDirectory,
			IsFile: e.IsFile}
	}
	return result, err
}

func writeFile(_ context.Context, t Target, p *wire.WriteFile) (any, error) {
	data, err := p.Data()
	if err != nil {
		return nil, refuse("fs/writeFile requires valid base64 dataBase64: " + err.Error())
	}
	return struct{}{}, Write(t, data, p.Atomic)
}

func walkRequest(ctx context.Context, t Target, p *wire.Walk) (any, error) {
	if err := follows(t); err != nil {
		return nil, err
	}
	found, err := Walk(ctx, t.Path, WalkOptions{
		MaxDepth: p.MaxDepth, MaxDirectories: p.MaxDirectories, MaxEntries: p.MaxEntries,
		FollowDirectorySymlinks: p.FollowDirectorySymlinks, PruneHiddenDirectories: p.PruneHiddenDirectories,
	})
	if err != nil {
		return nil, err
	}
	result := wire.WalkResult{Entries: make([]wire.WalkEntry, len(found.Entries)),
		Errors: make([]wire.WalkError, len(found.Errors)), Truncated: found.Truncated}
	for i, e := range found.Entries {
		kind := "file"
		if e.IsDirectory {
			kind = "directory"
		}
		result.Entries[i] = wire.WalkEntry{Path: wire.URI(e.Path), Kind: kind}
	}
	for i, e := range found.Errors {
		result.Errors[i] = wire.WalkError{Path: wire.URI(e.Path), Message: Failure(e.Err).Message}
	}
	return result, nil
}

func copying(p *wire.Copy) *Request {
	return &Request{Sandbox: p.Sandbox, Perform: func(ctx context.Context, s *Server) (any, error) {
		source, err := s.Path(p.Source)
		if err != nil {
			return nil, err
		}
		destination, err := s.Path(p.Destination)
		if err != nil {
			return nil, err
		}
		return struct{}{}, Copy(ctx, source, destination, p.Recursive)
	}}
}

func renaming(p *wire.Rename) *Request {
	return &Request{Sandbox: p.Sandbox, Perform: func(_ context.Context, s *Server) (any, error) {
		source, err := s.target(&wire.File{Path: p.Source, Follow: p.Follow})
		if err != nil {
			return nil, err
		}
		destination, err := s.target(&wire.File{Path: p.Destination, Follow: p.Follow})
		if err != nil {
			return nil, err
		}
		return struct{}{}, Rename(source, destination, p.Replace)
	}}
}

func opening(p *wire.Open) *Request {
	return &Request{Sandbox: p.Sandbox, Handle: p.HandleID, Use: OpensHandle, Writes: p.Mode == "replace",
		Perform: func(_ context.Context, s *Server) (any, error) {
			t, err := s.target(&p.File)
			if err != nil {
				return nil, err
			}
			return wire.OpenResult{HandleID: p.HandleID}, s.handles.Open(p.HandleID, t, p.Mode == "replace")
		}}
}
