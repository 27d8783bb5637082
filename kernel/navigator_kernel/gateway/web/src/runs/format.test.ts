import { expect, test } from 'vitest'
import { dollars, duration, relative } from './format'

test('durations have a unit that fits', () => {
  expect([0.0204, 1.54, 125.4].map((one) => duration(one, 'en'))).toEqual(['20 ms', '1.5 s', '2 min 5 s'])
  expect(duration(1.5, 'zh')).toBe('1.5 秒')
})

test('a time is said from now', () => {
  const now = Date.parse('2026-01-01T12:00:00Z')
  expect(relative('2026-01-01T11:55:00Z', 'en', now)).toBe('5 minutes ago')
  expect(relative('2026-01-02T11:59:00Z', 'zh', now)).toBe('23小时后')
  expect(relative('', 'en', now)).toBe('')
})

test('a small price keeps its digits', () => {
  expect([0, 0.000123, 12.3456].map((one) => dollars(one, 'en'))).toEqual(['$0.00', '$0.000123', '$12.35'])
})
