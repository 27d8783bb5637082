import { expect, test } from 'vitest'
import { ApiError } from '@/core/http'
import { changesOf, grouped, isConflict, type Task } from './tasks'

function task(id: number, start: Date | null, end: Date | null = null): Task {
  const at = '2026-11-01T00:00:00Z'
  return {
    id,
    title: `task ${id}`,
    description: '',
    project_id: 1,
    priority: 3,
    status: 'open',
    start_time: start?.toISOString() ?? null,
    end_time: end?.toISOString() ?? null,
    created_at: at,
    updated_at: at,
  }
}

test('open tasks are ordered by when they are due', () => {
  const now = new Date(2026, 10, 25, 12) // a Wednesday
  const held = [
    task(1, new Date(2026, 10, 24, 23, 59)),
    task(2, new Date(2026, 10, 24, 9), new Date(2026, 10, 25, 18)),
    task(3, new Date(2026, 10, 25, 0)),
    task(4, new Date(2026, 10, 25, 23, 59)),
    task(5, new Date(2026, 10, 26, 0)),
    task(6, new Date(2026, 10, 29, 23, 59)),
    task(7, new Date(2026, 10, 30, 0)),
    task(8, null),
  ]
  const found = Object.fromEntries([...grouped(held, now, 'zh-CN')].map(([name, of]) => [name, of.map((one) => one.id)]))
  expect(found).toEqual({ overdue: [1], today: [2, 3, 4], week: [5, 6], later: [7], untimed: [8] })
})

test('only what differs is sent', () => {
  const before = task(1, null)
  expect(changesOf(before, { ...before, title: 'x', priority: 5, updated_at: 'later' })).toEqual({ title: 'x', priority: 5 })
  expect(changesOf(before, { ...before })).toEqual({})
})

test('a write that came too late is a conflict, another refusal is not', () => {
  const problem = (status: number, code: string) => new ApiError({ status, code, detail: '', hint: '' })
  expect([problem(412, 'precondition'), problem(409, 'conflict')].map(isConflict)).toEqual([true, true])
  expect([problem(403, 'role'), problem(409, 'busy'), new Error('x')].map(isConflict)).toEqual([false, false, false])
})
