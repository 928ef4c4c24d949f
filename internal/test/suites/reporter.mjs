// Copyright 2026 The sallyport Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A reporter for node --test: one line of JSON for each test as it ends.
import { basename } from 'node:path'

export default async function * lines (source) {
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.details?.type === 'suite') continue
    const skipped = data.skip !== undefined || data.todo !== undefined
    const state = skipped ? 'skip' : type === 'test:pass' ? 'pass' : 'fail'
    const reason = data.details?.error?.cause?.message ?? data.details?.error?.message ?? String(data.skip ?? '')
    const place = `${basename(data.file ?? '')}:${data.line ?? 0}`
    yield JSON.stringify({ test: `${place} ${data.name}`.replaceAll(': ', ':'), state, reason: String(reason) }) + '\n'
  }
}
