import { expect, test } from 'vitest'
import type { Texts } from './i18n'

const files = import.meta.glob<{ default: Texts }>('./locales/*.ts', { eager: true })

/** `{ a: { b: 'text {name}' } }` as `a.b` with the names of its places. */
function texts(held: Record<string, unknown>, head = ''): [string, string[]][] {
  return Object.entries(held).flatMap(([name, value]) => {
    const key = head ? `${head}.${name}` : name
    if (typeof value !== 'string') return texts(value as Record<string, unknown>, key)
    return [[key, [...new Set(value.match(/\{\w+\}/g))].sort()] as [string, string[]]]
  })
}

test('every text is there in both languages, with the same places', () => {
  expect(Object.keys(files).length).toBeGreaterThan(8)
  for (const [path, { default: held }] of Object.entries(files)) {
    expect([path, Object.fromEntries(texts(held.zh))]).toEqual([path, Object.fromEntries(texts(held.en))])
  }
})
