// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0

package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Bucket has values by key, which the hub keeps on its disk. A key is one token of a subject.
type Bucket struct {
	kv   jetstream.KeyValue
	name string
}

// Errors of buckets.
var (
	ErrNoKey   = errors.New("there is no such key")
	ErrChanged = errors.New("the value is another one by now")
)

// Bucket returns a bucket of the account, which is made unless it is there. Keep is how long a value is kept
// after it was written; zero means for ever. Hubs without JetStream are an error.
func (c *Conn) Bucket(ctx context.Context, name string, keep time.Duration) (*Bucket, error) {
	kv, err := c.js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = c.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, TTL: keep, History: 1})
		if errors.Is(err, jetstream.ErrBucketExists) { // another client was faster
			kv, err = c.js.KeyValue(ctx, name)
		}
	}
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders),
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return nil, fmt.Errorf("the hub keeps nothing: it needs JetStream (nats-server -js): %w", err)
	case err != nil:
		return nil, fmt.Errorf("cannot use the bucket %s of the hub: %w", name, err)
	}
	return &Bucket{kv, name}, nil
}

// Get returns a value, and its revision for Update. There is none: ErrNoKey. While there is no hub, or it
// does not serve buckets yet, it blocks until ctx ends, at most for a time in which a hub is started again.
func (b *Bucket) Get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	err = b.perform(ctx, func(ctx context.Context) error {
		e, err := b.kv.Get(ctx, key)
		if err == nil {
			value, revision = e.Value(), e.Revision()
		}
		return err //nolint:wrapcheck // below
	})
	return value, revision, b.explain(key, err)
}

// perform asks the hub again and again while there is none, and where no answer comes, as when it was cut
// meanwhile.
func (b *Bucket) perform(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, hubTime)
	defer cancel()
	for {
		once, cancel := context.WithTimeout(ctx, tryTime)
		err := ask(once)
		cancel()
		if !errors.Is(err, nats.ErrReconnectBufExceeded) && !errors.Is(err, nats.ErrDisconnected) &&
			!errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, nats.ErrConnectionReconnecting) &&
			!errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		pause := time.NewTimer(reconnectWait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// hubTime is how long a hub may be away before who needs it hears of it, and tryTime how long an answer may
// take before it is asked again.
const hubTime, tryTime = 20 * time.Second, 3 * time.Second

// Put writes a value whatever there is.
func (b *Bucket) Put(ctx context.Context, key string, value []byte) error {
	return b.explain(key, b.perform(ctx, func(ctx context.Context) error {
		_, err := b.kv.Put(ctx, key, value)
		return err //nolint:wrapcheck // explain does it
	}))
}

// Update writes a value if that of a revision is still there, and else is ErrChanged. The revision 0 is that
// of a key that does not exist. After an answer that did not come, what this has written itself is a change,
// too.
func (b *Bucket) Update(ctx context.Context, key string, value []byte, revision uint64) error {
	return b.explain(key, b.perform(ctx, func(ctx context.Context) (err error) {
		if revision == 0 {
			_, err = b.kv.Create(ctx, key, value)
		} else {
			_, err = b.kv.Update(ctx, key, value, revision)
		}
		return err //nolint:wrapcheck // explain does it
	}))
}

// Delete removes a key that has not changed since a revision.
func (b *Bucket) Delete(ctx context.Context, key string, revision uint64) error {
	return b.explain(key, b.kv.Delete(ctx, key, jetstream.LastRevision(revision)))
}

// All calls each for all keys.
func (b *Bucket) All(ctx context.Context, each func(key string, value []byte)) error {
	w, err := b.kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return b.explain("", err)
	}
	defer w.Stop() //nolint:errcheck // nothing is to be told
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok || e == nil { // the last one that there is
				return nil
			}
			each(e.Key(), e.Value())
		case <-ctx.Done():
			return fmt.Errorf("cannot list the bucket %s of the hub: %w", b.name, context.Cause(ctx))
		}
	}
}

func (b *Bucket) explain(key string, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrKeyDeleted):
		return ErrNoKey
	case errors.Is(err, jetstream.ErrKeyExists),
		errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return ErrChanged
	}
	return fmt.Errorf("cannot use %s in the bucket %s of the hub: %w", key, b.name, err)
}
