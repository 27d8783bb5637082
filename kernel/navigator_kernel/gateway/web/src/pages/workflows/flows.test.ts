import { expect, test } from 'vitest'
import { lineAt, secondsOf, sessionOf, stepsOf, type Run, type Try } from './flows'
import { renamed, template } from './template'

function attempt(step: number, state: string, ended = '2026-11-26T04:00:02.500Z'): Try {
  return { step, attempt: 1, started: '2026-11-26T04:00:00Z', ended, state, summary: '' }
}

const step = { text: 'x', skill: 's', agent: 'skills', input: 'i', output: '' }

function run(...tries: Try[]): Run {
  return { token: 't', session: 's', state: 'running', plan: { name: 'n', description: '', steps: [step, step, step] }, tries }
}

test('a step has the state of its last try, and none before its first', () => {
  const held = run(attempt(1, 'pending'), attempt(1, 'success'), attempt(2, 'error'))
  expect(stepsOf(held, false).map((one) => [one.number, one.state, one.tries.length])).toEqual([
    [1, 'success', 2],
    [2, 'error', 1],
    [3, '', 0],
  ])
})

test('a try without an end was cut off where no turn is under way', () => {
  expect(stepsOf(run(attempt(1, 'running', '')), true)[0]?.state).toBe('running')
  expect(stepsOf(run(attempt(1, 'running', '')), false)[0]?.state).toBe('cut')
})

test('a try takes as long as from its start to its end', () => {
  expect(secondsOf(attempt(1, 'success'))).toBe(2.5)
  expect(secondsOf(attempt(1, 'running', ''))).toBe(null)
})

test('a line is found by its number', () => {
  expect(lineAt('a\nbcd\ne', 2)).toEqual([2, 5])
  expect(lineAt('a', 9)).toEqual([0, 1])
})

test('a template takes the name that is typed, until the head has another one', () => {
  const text = template('one', { description: 'd', step: 's' })
  expect(renamed(text, 'one', 'two')).toBe(template('two', { description: 'd', step: 's' }))
  expect(renamed(text, 'other', 'two')).toBe(text)
})

test('the conversation of a run has a name that the kernel takes', () => {
  expect(sessionOf('greet_all', 36 ** 7)).toBe('wf-greet_all-10000000')
  expect(sessionOf('统计词条', 36 ** 7)).toBe('wf-10000000')
  expect(sessionOf('a'.repeat(80), 36 ** 7)).toMatch(/^[\w-]{1,64}$/)
})
