/** One install from the form to its summary. It is kept while the person looks at other pages. */

import { defineStore } from 'pinia'
import { computed, reactive, ref, shallowRef } from 'vue'
import { api } from '@/core/http'
import { runJob, type Progress } from '@/core/jobs'
import { excluded, type Outcome } from '@/pages/install/plan'
import { useSkills } from './skills'

export interface Form {
  source: string
  ref: string
  user: boolean
}

export const useInstall = defineStore('install', () => {
  const form = reactive<Form>({ source: '', ref: '', user: false })
  /** What was asked for when the preview began: the form may be edited since. */
  const asked = ref<Form | null>(null)
  const preview = shallowRef<Outcome | null>(null)
  const result = shallowRef<Outcome | null>(null)
  const chosen = shallowRef<ReadonlySet<string>>(new Set())
  const busy = ref<'' | 'preview' | 'install'>('')
  const progress = ref<Progress>({ done: 0, all: 0 })
  const error = ref<unknown>(null)
  const isStale = computed(() => !!asked.value && (['source', 'ref', 'user'] as const).some((key) => asked.value?.[key] !== form[key]))

  async function work(kind: 'preview' | 'install', body: Record<string, unknown>): Promise<Outcome | null> {
    busy.value = kind
    progress.value = { done: 0, all: 0 }
    error.value = null
    try {
      return await runJob<Outcome>(() => api.post(`/api/skills/${kind}`, body), (now) => (progress.value = now))
    } catch (problem) {
      error.value = problem
      return null
    } finally {
      busy.value = ''
    }
  }

  /** Looks at all skills of the source; those that would come are chosen. */
  async function look(): Promise<void> {
    const source = { source: form.source.trim(), ref: form.ref.trim(), user: form.user }
    asked.value = { ...form }
    preview.value = null
    result.value = null
    const found = await work('preview', { ...source, all: true })
    if (!found) return
    preview.value = found
    chosen.value = new Set(found.skills.filter((one) => one.changed).map((one) => one.subpath))
  }

  /** Installs the chosen skills, of the commit that the preview showed. */
  async function install(): Promise<void> {
    const held = preview.value
    const wanted = asked.value
    if (!held || !wanted) return
    const body = { source: wanted.source.trim(), ref: wanted.ref.trim(), user: wanted.user, commit: held.commit }
    const found = await work('install', { ...body, all: true, exclude: excluded(held, chosen.value) })
    if (!found) return
    result.value = found
    void useSkills().load()
  }

  function again(): void {
    preview.value = null
    result.value = null
    asked.value = null
    error.value = null
  }

  return { form, asked, preview, result, chosen, busy, progress, error, isStale, look, install, again }
})
