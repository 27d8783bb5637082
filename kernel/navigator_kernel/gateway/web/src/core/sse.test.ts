import { expect, test } from 'vitest'
import { SseParser } from './sse'

const STREAM = '\uFEFF: ping\n\nid: r:0\nevent: RunStarted\ndata: {"a":1}\n\ndata: one\ndata: two\r\n\r\nevent: none\n\n'

test('events are the same whatever the pieces they come in', () => {
  const whole = new SseParser().push(STREAM)
  expect(whole).toEqual([
    { id: 'r:0', event: 'RunStarted', data: '{"a":1}' },
    { id: 'r:0', event: 'message', data: 'one\ntwo' },
  ])
  for (let size = 1; size < 12; size++) {
    const parser = new SseParser()
    const found = []
    for (let at = 0; at < STREAM.length; at += size) found.push(...parser.push(STREAM.slice(at, at + size)))
    expect(found).toEqual(whole)
  }
})
