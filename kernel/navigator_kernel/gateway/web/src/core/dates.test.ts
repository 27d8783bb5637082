import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { distance, endOfWeek, fromInput, hour, languageOf, moment, toInput } from './dates'

beforeEach(() => vi.stubEnv('TZ', 'Asia/Shanghai'))
afterEach(() => vi.unstubAllEnvs())

test('a time is written in the zone and the language of the browser', () => {
  const now = new Date('2026-11-26T00:00:00Z')
  expect(moment('2026-11-27T07:00:00Z', null, 'en-US', now)).toContain('Fri, Nov 27')
  expect(moment('2026-11-27T07:00:00Z', null, 'zh-CN', now)).toContain('11月27日')
  expect(moment('2027-11-27T07:00:00Z', null, 'en-US', now)).toContain('2027')
  expect(hour('2026-11-27T07:00:00Z', '2026-11-27T08:30:00Z', 'zh-CN')).toBe('15:00–16:30')
  expect(languageOf('en', ['zh-CN', 'en-GB'])).toBe('en-GB')
  expect(languageOf('zh', ['en-US'])).toBe('zh-CN')
})

test('what an input holds is the same time again', () => {
  expect(toInput('2026-11-27T07:00:00+00:00')).toBe('2026-11-27T15:00')
  expect(fromInput('2026-11-27T15:00')).toBe('2026-11-27T07:00:00.000Z')
  expect([fromInput(''), fromInput('x'), toInput(null)]).toEqual([null, null, ''])
})

test('a week ends before the day that begins one in the language', () => {
  const thursday = new Date(2026, 10, 26, 12)
  expect(endOfWeek(thursday, 'zh-CN')).toEqual(new Date(2026, 10, 30))
  const sunday = new Date(2026, 10, 29, 12)
  expect(endOfWeek(sunday, 'zh-CN')).toEqual(new Date(2026, 10, 30))
  expect(endOfWeek(new Date(2026, 10, 30), 'zh-CN')).toEqual(new Date(2026, 11, 7))
})

test('a distance is told in words', () => {
  const now = new Date('2026-11-26T12:00:00Z')
  expect(distance('2026-11-26T11:58:00Z', 'en', now)).toBe('2 minutes ago')
  expect(distance('2026-11-27T13:00:00Z', 'zh-CN', now)).toBe('明天')
  expect(distance('2026-11-27T11:59:00Z', 'zh-CN', now)).toBe('23小时后')
  expect(distance('', 'en', now)).toBe('')
})
