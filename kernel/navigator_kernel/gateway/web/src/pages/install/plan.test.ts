import { expect, test } from 'vitest'
import { commandIn, excluded, lockCounts, lockDifference, reasons, rowsOf, type Coming, type LeftOut, type Outcome } from './plan'

const coming = (name: string, more: Partial<Coming> = {}): Coming => ({
  name, path: '', subpath: `skills/${name}`, digest: `sha256:${name}`, was: '', files: 1, verdict: 'ok', changed: true, findings: [],
  description: '', kind: 'B', license: '', tools: [], problems: [], ...more,
})
const left = (name: string, more: Partial<LeftOut> = {}): LeftOut => ({
  name, path: name, state: 'skipped', reason: 'example', why: 'an example', msg: '', hint: '', failure: false, ...more,
})
const found: Outcome = {
  source: 's', commit: 'c'.repeat(40), level: 'project', changed: true,
  counts: { found: 5, installed: 2, there: 1, skipped: 1, blocked: 1 },
  skills: [coming('b', { was: 'sha256:old' }), coming('a'), coming('root', { subpath: '', changed: false })],
  left_out: [left('x'), left('evil', { state: 'blocked', reason: 'scanner', why: 'the scanner blocks it' }), left('y', { reason: 'excluded' })],
}

test('what is not chosen is named by its path, so that no other skill of that name is meant', () => {
  expect(excluded(found, new Set(['skills/a']))).toEqual(['./skills/b', '.'])
})

test('the lock changes by what is chosen alone', () => {
  const chosen = new Set(['skills/a', 'skills/b'])
  expect(lockCounts(found, chosen)).toEqual({ added: 1, replaced: 1, same: 1 })
  expect(lockDifference(found, new Set(['skills/b'])).split('\n').slice(2)).toEqual(['-"b": sha256:old', '+"b": sha256:b @ cccccccccccc'])
})

test('blocked skills come first, skipped ones last', () => {
  expect(rowsOf(found).map((row) => row.name)).toEqual(['evil', 'a', 'b', 'root', 'x', 'y'])
})

test('the summary does not repeat what the person did not choose', () => {
  expect(reasons(found).map((group) => group.names)).toEqual([['x'], ['evil']])
})

test('the command of a hint is found, and a sentence is none', () => {
  const command = 'navigator skill install a/b --skill evil --accept evil:encoded-execute'
  expect(commandIn(`read it; to install it all the same: ${command}`)).toBe(command)
  expect(commandIn('move the folder away')).toBe('')
})
