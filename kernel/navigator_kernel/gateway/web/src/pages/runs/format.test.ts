import { expect, test } from 'vitest'
import { dollars, duration } from './format'

test('durations have a unit that fits', () => {
  expect([0.0204, 1.54, 125.4].map((one) => duration(one, 'en'))).toEqual(['20 ms', '1.5 s', '2 min 5 s'])
  expect(duration(1.5, 'zh')).toBe('1.5 秒')
})

test('a small price keeps its digits', () => {
  expect([0, 0.000123, 12.3456].map((one) => dollars(one, 'en'))).toEqual(['$0.00', '$0.000123', '$12.35'])
})
