import { expect, test } from 'vitest'
import { byLevel, counts, fits, listingTokens } from './filters'
import type { Finding, Skill } from './types'

const skill = (name: string, more: Partial<Skill> = {}): Skill => ({
  name, description: '', kind: 'B', status: 'managed', level: 'project', enabled: true, path: '', links: [], source: '', commit: '', claimed_source: '', ...more,
})
const marks = { changed: new Set(['b']), outdated: new Set<string>() }
const skills = [skill('a'), skill('b', { status: 'unmanaged' }), skill('c', { status: 'shipped', enabled: false })]

test('each filter shows the skills of its state', () => {
  expect(counts(skills, marks)).toEqual({ all: 3, installed: 1, own: 1, shipped: 1, off: 1, changed: 1, outdated: 0 })
  expect(skills.filter((one) => fits(one, 'changed', marks)).map((one) => one.name)).toEqual(['b'])
})

test('findings are grouped by level, worst first', () => {
  const found = (['note', 'error', 'note'] as const).map((level): Finding => ({ code: 'c', level, path: 'p', message: 'm', line: 1 }))
  expect(byLevel(found).map((group) => [group.level, group.findings.length])).toEqual([['error', 1], ['note', 2]])
})

test('an entry of a list costs a token for four characters', () => {
  expect(listingTokens({ name: 'abcd', description: 'x'.repeat(13) })).toBe(6)
})
