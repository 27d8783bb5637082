import { expect, test } from 'vitest'
import type { Waiting } from '@/stores/inbox'
import { merged } from './kept'

const one = (id: string, question = ''): Waiting => ({
  id, session: 's', subject: '', question, asked: '', expires: '', packets: [], orders: [], facts: {},
})

test('what was answered stays in its place, what is new comes first, what was removed does not come back', () => {
  const first = merged([], [one('a'), one('b')], new Set())
  expect(first.map((held) => held.id)).toEqual(['a', 'b'])
  const second = merged(first, [one('c'), one('b', 'new')], new Set())
  expect(second.map((held) => held.id)).toEqual(['c', 'a', 'b'])
  expect(second[2]?.question).toBe('new')
  expect(merged([], [one('a')], new Set(['a']))).toEqual([])
})
