// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sallyport-dev/sallyport/internal/run/output"
	"github.com/sallyport-dev/sallyport/internal/run/runs"
	"github.com/sallyport-dev/sallyport/internal/text"
)

// The address of the output of a run.
const (
	outputPrefix = "sallyport://runs/"
	outputSuffix = "/output"
	plainText    = "text/plain"
	diffSuffix   = "/diff"
	diffText     = "text/x-diff"
)

// addResources serves the output of runs.
func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: outputPrefix + "{run}" + outputSuffix,
		Name:  "output",
		Title: "Output of a run", Description: "All bytes that are retained of the output of a run.",
		MIMEType: plainText}, s.readOutput)
	if s.opts.Stage != "" {
		s.mcp.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: outputPrefix + "{run}" + diffSuffix,
			Name: "diff", Title: "Changes of the conversation", MIMEType: diffText,
			Description: "A unified diff of what the commands of this conversation changed.",
		}, s.readDiff)
	}
	s.mcp.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			res, err := next(ctx, method, req)
			if list, ok := res.(*sdk.ListResourcesResult); ok && err == nil {
				for _, info := range s.runs.List(owner) {
					if r, err := s.runs.Find(owner, info.ID); err == nil { // else it has not begun
						list.Resources = append(list.Resources, resourceOf(r, &info))
						if s.opts.Stage != "" {
							list.Resources = append(list.Resources, diffOf(r))
						}
					}
				}
			}
			var wire *jsonrpc.Error
			if method == "resources/read" && errors.As(err, &wire) &&
				wire.Code == jsonrpc.CodeInvalidParams &&
				revisionOf(req) < newRevision {
				const notFound = -32002 // of the revisions before
				older := *wire
				older.Code = notFound
				return nil, &older
			}
			return res, err
		}
	})
}

// revisionOf returns the revision of the protocol that a request speaks.
func revisionOf(req sdk.Request) string {
	if r, ok := req.(*sdk.ReadResourceRequest); ok {
		return r.ProtocolVersion()
	}
	return ""
}

func addressOf(r *runs.Run) string { return outputPrefix + r.ID() + outputSuffix }

// resourceOf describes the output of a run.
func resourceOf(r *runs.Run, info *runs.Info) *sdk.Resource {
	const long = 80
	total, _ := r.Size()
	return &sdk.Resource{URI: addressOf(r), Name: "output of run " + r.ID(), MIMEType: plainText,
		Size: int64(min(total, math.MaxInt64)), Title: text.Line(shortened(info.Script, long))}
}

// linkTo returns the link to the output of a run.
func linkTo(r *runs.Run) sdk.Content {
	total, _ := r.Size()
	size := int64(min(total, math.MaxInt64))
	return &sdk.ResourceLink{URI: addressOf(r), Name: "output of run " + r.ID(), MIMEType: plainText,
		Size: &size}
}

// unknownResource is the error for an address at which there is nothing.
func unknownResource(uri string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams,
		Message: fmt.Sprintf("unknown resource %s; resources/list has those that there are",
			text.Word(shortened(uri, 200)))}
}

// readOutput returns the output of a run.
func (s *Server) readOutput(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult,
	error) {
	uri := req.Params.URI
	id := strings.TrimSuffix(strings.TrimPrefix(uri, outputPrefix), outputSuffix)
	r, err := s.runs.Find(owner, id)
	if err != nil {
		return nil, unknownResource(uri)
	}
	var all []byte
	to, _ := r.Size()
	for at := uint64(0); at < to; {
		page := r.Page(at, to-at)
		for _, c := range page.Chunks {
			if c.Missing > 0 {
				all = append(all, output.Marker(c.Missing)...)
			}
			all = append(all, c.Data...)
		}
		if page.Next <= at {
			break
		}
		at = page.Next
	}
	return &sdk.ReadResourceResult{Cacheable: sdk.Cacheable{CacheScope: "private"},
		Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: plainText, Text: text.Decode(all)}}}, nil
}
