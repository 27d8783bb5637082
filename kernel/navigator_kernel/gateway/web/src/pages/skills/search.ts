/** Search as you type, by the router: one request at a time counts, the last. */

import { onScopeDispose, ref, shallowRef, watch, type Ref } from 'vue'
import { api } from '@/core/http'
import type { Skill } from './types'

export const DELAY = 200 // milliseconds after the last letter
const MOST = 200 // skills of an answer

export function useSearch(query: Ref<string>) {
  /** Best first; null while nothing is searched for. */
  const found = shallowRef<Skill[] | null>(null)
  const isSearching = ref(false)
  const error = ref<unknown>(null)
  let timer: ReturnType<typeof setTimeout> | undefined
  let controller: AbortController | null = null

  function stop(): void {
    clearTimeout(timer)
    controller?.abort()
    controller = null
  }

  async function ask(q: string): Promise<void> {
    const mine = new AbortController()
    controller = mine
    try {
      const answer = await api.get<{ skills: Skill[] }>('/api/skills', { q, limit: MOST }, mine.signal)
      if (controller !== mine) return // a later letter was typed
      found.value = answer.skills
      error.value = null
    } catch (problem) {
      if (controller !== mine) return
      error.value = problem
    }
    isSearching.value = false
  }

  function begin(delay: number): void {
    stop()
    const q = query.value.trim().slice(0, 2_000)
    isSearching.value = q !== ''
    if (q) timer = setTimeout(() => void ask(q), delay)
    else {
      found.value = null
      error.value = null
    }
  }

  watch(query, () => begin(DELAY))
  if (query.value.trim()) begin(0)
  onScopeDispose(stop)
  return { found, isSearching, error, again: () => begin(0) }
}
