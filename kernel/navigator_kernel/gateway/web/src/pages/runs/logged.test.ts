import { expect, test } from 'vitest'
import { fits, placed, type LoggedRun } from './logged'

const ALL = { q: '', state: '', skill: '', session: '' }

function run(name: string, more: Partial<LoggedRun> = {}): LoggedRun {
  return {
    run: name, session: 's', turn: 0, message: 'Write a Song', started: '', elapsed: 1, state: 'success', summary: '',
    skills: ['song'], requests: 0, input_tokens: 0, output_tokens: 0, cost: null, ...more,
  }
}

test('a run fits when each part of the filter does', () => {
  expect(fits(run('1'), ALL)).toBe(true)
  expect(fits(run('1'), { ...ALL, q: 'song  WRITE' })).toBe(true)
  expect(fits(run('1'), { ...ALL, q: 'poem' })).toBe(false)
  expect(fits(run('1'), { ...ALL, skill: 'son' })).toBe(false)
  expect(fits(run('1'), { ...ALL, state: 'failed' })).toBe(false)
})

test('a run that comes in takes its place, is there once, and goes where it does not fit', () => {
  const names = (held: LoggedRun[]) => held.map((one) => one.run)
  const held = [run('5'), run('3')]
  expect(names(placed(held, run('6'), ALL))).toEqual(['6', '5', '3'])
  expect(names(placed(held, run('4'), ALL))).toEqual(['5', '4', '3'])
  expect(names(placed(held, run('1'), ALL))).toEqual(['5', '3'])
  expect(placed(held, run('3', { state: 'failed' }), ALL)[1]?.state).toBe('failed')
  expect(names(placed(held, run('5', { state: 'failed' }), { ...ALL, state: 'success' }))).toEqual(['3'])
  expect(names(placed([], run('5'), ALL))).toEqual(['5'])
})
