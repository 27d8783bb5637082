import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { effectScope, nextTick, ref } from 'vue'
import { DELAY, useSearch } from './search'

interface Asked {
  q: string
  answer: (names: string[]) => void
}
const asked: Asked[] = []

beforeEach(() => {
  asked.length = 0
  vi.useFakeTimers()
  vi.stubGlobal('fetch', (address: string) => {
    return new Promise<Response>((resolve) => {
      const q = new URLSearchParams(address.split('?')[1]).get('q') ?? ''
      asked.push({ q, answer: (names) => resolve(Response.json({ skills: names.map((name) => ({ name })) })) })
    })
  })
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

test('letters that follow each other ask once, and an answer that comes late is dropped', async () => {
  const query = ref('')
  const scope = effectScope()
  const search = scope.run(() => useSearch(query)) as ReturnType<typeof useSearch>
  for (const text of ['p', 'pd', 'pdf']) {
    query.value = text
    await nextTick()
    vi.advanceTimersByTime(DELAY / 2)
  }
  vi.advanceTimersByTime(DELAY)
  expect(asked.map((one) => one.q)).toEqual(['pdf'])
  query.value = 'csv'
  await nextTick()
  vi.advanceTimersByTime(DELAY)
  asked[1]?.answer(['csv-report'])
  await vi.runAllTimersAsync()
  asked[0]?.answer(['pdf'])
  await vi.runAllTimersAsync()
  expect(search.found.value?.map((one) => one.name)).toEqual(['csv-report'])
  expect(search.isSearching.value).toBe(false)
  query.value = ' '
  await nextTick()
  expect(search.found.value).toBeNull()
  scope.stop()
})
