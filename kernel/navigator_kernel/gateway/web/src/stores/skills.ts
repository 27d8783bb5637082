/** The catalogue of skills, read page by page, and what the last checks found. */

import { defineStore } from 'pinia'
import { computed, ref, shallowRef } from 'vue'
import { api, ApiError, part } from '@/core/http'
import { runJob } from '@/core/jobs'
import type { News, Skill, Updated, Verified } from '@/pages/skills/types'

const PAGE = 500

export interface Returned {
  to: string
  changed: boolean
  skills: { name: string; action: 'kept' | 'restored' | 'removed' }[]
}

export const useSkills = defineStore('skills', () => {
  const all = shallowRef<Skill[]>([])
  const isWhole = ref(false)
  const isLoading = ref(false)
  /** Counts the times that all of it was read or changed here; 0 before the first. */
  const version = ref(0)
  const error = ref<unknown>(null)
  /** Names of skills whose files are not those that were installed. */
  const changed = shallowRef<ReadonlyMap<string, Verified>>(new Map())
  const news = shallowRef<ReadonlyMap<string, News>>(new Map())
  let generation = 0

  const marks = computed(() => ({
    changed: new Set(changed.value.keys()),
    outdated: new Set([...news.value.values()].filter((one) => one.state !== 'current').map((one) => one.name)),
  }))

  /** Reads all pages; a later call ends an earlier one. The first time each page is shown when it comes. */
  async function load(): Promise<void> {
    const mine = ++generation
    const isFirst = !isWhole.value
    const found: Skill[] = []
    isLoading.value = true
    error.value = null
    try {
      let cursor = ''
      do {
        const page = await api.get<{ skills: Skill[]; next: string }>('/api/skills', { limit: PAGE, cursor })
        if (mine !== generation) return
        found.push(...page.skills)
        cursor = page.next
        if (isFirst) all.value = [...found]
      } while (cursor)
      all.value = found
      isWhole.value = true
      version.value++
    } catch (problem) {
      if (mine === generation) error.value = problem
    } finally {
      if (mine === generation) isLoading.value = false
    }
  }

  /** Compares one installed skill with its receipt, or all; the answer has those that were looked at. ApiError. */
  async function verify(name = ''): Promise<Verified[]> {
    let found: Verified[]
    try {
      found = (await api.post<{ skills: Verified[] }>('/api/skills/verify', { name })).skills
    } catch (problem) {
      if (!(problem instanceof ApiError && problem.code === 'integrity')) throw problem
      found = problem.data['skills'] as Verified[]
    }
    const held = new Map(name ? changed.value : [])
    for (const one of found) {
      if (one.ok) held.delete(one.name)
      else held.set(one.name, one)
    }
    changed.value = held
    return found
  }

  /** Compares installed skills with their sources, `names` or all. ApiError. */
  async function check(names: string[] = [], user = false): Promise<News[]> {
    const body = { names, check: true, diff: names.length > 0, user }
    const found = await runJob<{ skills: News[] }>(() => api.post('/api/skills/update', body))
    const held = new Map(news.value)
    for (const one of found.skills) held.set(one.name, one)
    news.value = held
    return found.skills
  }

  /** Updates one skill. One that can do more than before stays `pending` until `agreed` has its digest. ApiError. */
  async function update(name: string, user: boolean, agreed: string[] = []): Promise<Updated | undefined> {
    const body = { names: [name], user, agreed }
    const found = (await runJob<{ skills: Updated[] }>(() => api.post('/api/skills/update', body))).skills.find((one) => one.name === name)
    if (found?.action !== 'updated') return found
    forget(name)
    await load()
    return found
  }

  async function uninstall(name: string, user: boolean): Promise<void> {
    await runJob(() => api.remove<{ job: string }>(`/api/skills/${part(name)}?user=${user}`))
    forget(name)
    await load()
  }

  async function rollback(isTrial: boolean): Promise<Returned> {
    const found = await runJob<Returned>(() => api.post('/api/skills/rollback', { check: isTrial }))
    if (!isTrial) {
      news.value = new Map()
      changed.value = new Map()
      await load()
    }
    return found
  }

  async function turn(name: string, isOn: boolean): Promise<void> {
    await api.post(`/api/skills/${isOn ? 'enable' : 'disable'}`, { name })
    all.value = all.value.map((one) => (one.name === name ? { ...one, enabled: isOn } : one))
    version.value++
  }

  function forget(name: string): void {
    news.value = new Map([...news.value].filter(([held]) => held !== name))
    changed.value = new Map([...changed.value].filter(([held]) => held !== name))
  }

  return { all, isWhole, isLoading, version, error, changed, news, marks, load, verify, check, update, uninstall, rollback, turn }
})
