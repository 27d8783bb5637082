import { expect, test } from 'vitest'
import type { KernelEvent } from '@/core/events'
import { length, timeline } from './timeline'

let seq = 0

function event(type: string, payload: unknown, ms: number, step: number | null = null, parent: number | null = null): KernelEvent {
  const ts = new Date(Date.UTC(2026, 0, 1) + ms).toISOString()
  return { type, payload, run: 'r', session: 's', turn: 0, seq: seq++, step, parent, ts } as unknown as KernelEvent
}

function log(): KernelEvent[] {
  seq = 0
  return [
    event('RunStarted', { message: 'hello', session: 's', language: 'en' }, 0),
    event('StepStarted', { agent: 'skills', packet: { task_spec: { target: 'skill:a' } } }, 100, 0),
    event('SkillLoaded', { skill: 'a', kind: 'B', digest: '' }, 110, 0, 1),
    event('ToolCallStarted', { call: 'c1', tool: 'read', args: { file: 'x' } }, 200, 0),
    event('ToolCallCompleted', { call: 'c1', tool: 'read', state: 'success', elapsed: 0.3, result: 'r' }, 500, 0, 3),
    event('RunContent', { text: 'one ' }, 600, 0),
    event('RunContent', { text: 'two' }, 700, 0),
    event('StepCompleted', { agent: 'skills', report: { state: 'success' } }, 800, 0, 1),
    event('RunCompleted', { state: 'success', summary: 'done', sections: {} }, 900),
  ]
}

test('what belongs to a step or a call is below it, and both have a duration', () => {
  const rows = timeline(log())
  expect(rows.map((row) => [row.type, row.depth, row.duration])).toEqual([
    ['RunStarted', 0, null],
    ['StepStarted', 0, expect.closeTo(0.7)],
    ['SkillLoaded', 1, null],
    ['ToolCallStarted', 1, expect.closeTo(0.3)],
    ['RunContent', 1, expect.closeTo(0.1)],
    ['RunCompleted', 0, null],
  ])
  expect(rows[1]).toMatchObject({ offset: 0.1, state: 'success', detail: 'skills · skill:a', isOpen: false })
  expect(rows[4]?.detail).toBe('one two')
  expect(length(rows)).toBe(0.9)
})

test('a step that has not ended stays open, and the rest of the log is shown', () => {
  const rows = timeline(log().slice(0, 4))
  expect(rows.filter((row) => row.isOpen).map((row) => row.type)).toEqual(['StepStarted', 'ToolCallStarted'])
  expect(timeline([])).toEqual([])
})

test('every event of the log is in a row, also one of a kind that the page does not know', () => {
  const events = [...log(), event('Invented', { a: 1 }, 950, 7, 99)]
  const rows = timeline(events)
  expect(rows.flatMap((row) => row.events)).toHaveLength(events.length)
  expect(rows.at(-1)).toMatchObject({ type: 'Invented', depth: 0, detail: '{"a":1}' })
})
