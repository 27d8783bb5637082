import { expect, test } from 'vitest'
import { share, total, type ModelUsage } from './sum'

const model = (cost: number | null, tokens: number): ModelUsage => ({
  model: 'm', requests: 2, input_tokens: tokens, output_tokens: 10, cached_tokens: 1, cost, unknown: 1,
})

test('totals say whether all prices are known', () => {
  expect(total([model(0.5, 90), model(0.25, 290)])).toMatchObject({ requests: 4, input: 380, cost: 0.75, priced: 'all', unknown: 2 })
  expect(total([model(0.5, 90), model(null, 90)]).priced).toBe('some')
  expect(total([model(null, 90)]).priced).toBe('none')
})

test('a share is of all tokens, and nothing of nothing', () => {
  const held = [model(0, 90), model(0, 290)]
  expect(held.map((one) => share(one, total(held)))).toEqual([0.25, 0.75])
  const nothing = { ...model(0, 0), output_tokens: 0 }
  expect(share(nothing, total([nothing]))).toBe(0)
})
