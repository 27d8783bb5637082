/** The list of runs: read page by page, narrowed by a filter, and kept up to date. */

import { onBeforeUnmount, reactive, ref, shallowRef, watch } from 'vue'
import { api, ApiError } from '@/core/http'
import { useTurns } from '@/stores/turns'
import { placed, type Filter, type LoggedRun } from './logged'

const PAGE = 100
const PAUSE = 250 // milliseconds after a key

export function useRunList(first: Partial<Filter>) {
  const turns = useTurns()
  const filter = reactive<Filter>({ q: '', state: '', skill: '', session: '', ...first })
  const runs = shallowRef<LoggedRun[]>([])
  const isReading = ref(false)
  const isComplete = ref(false)
  const error = ref<unknown>(null)
  let cursor = ''
  let generation = 0

  /** Reads the next page; pages without a run that fits are passed over. */
  async function more(): Promise<void> {
    if (isReading.value || isComplete.value) return
    const mine = generation
    isReading.value = true
    error.value = null
    try {
      for (let found = 0; !found && !isComplete.value; ) {
        const page = await api.get<{ runs: LoggedRun[]; next: string }>('/api/runs', { ...filter, limit: PAGE, cursor })
        if (mine !== generation) return
        found = page.runs.length
        const known = new Set(runs.value.map((one) => one.run))
        runs.value = [...runs.value, ...page.runs.filter((one) => !known.has(one.run))]
        cursor = page.next
        isComplete.value = !cursor
      }
    } catch (problem) {
      if (mine === generation) error.value = problem
    } finally {
      if (mine === generation) isReading.value = false
    }
  }

  function restart(): Promise<void> {
    generation++
    cursor = ''
    runs.value = []
    isReading.value = isComplete.value = false
    return more()
  }

  /** Reads one run again, that has begun or ended. */
  async function refresh(run: string): Promise<void> {
    try {
      runs.value = placed(runs.value, await api.get<LoggedRun>(`/api/runs/${run}`), filter)
    } catch (problem) {
      if (!(problem instanceof ApiError)) throw problem // it is gone, or the list is read again when the server is back
    }
  }

  const stopListening = turns.listen((event) => {
    if (['RunStarted', 'RunCompleted', 'RunError', 'RunCancelled'].includes(event.type)) void refresh(event.run)
  })
  let timer: ReturnType<typeof setTimeout> | undefined
  watch(filter, () => {
    clearTimeout(timer)
    timer = setTimeout(() => void restart(), PAUSE)
  })
  watch(() => turns.resets, restart)
  onBeforeUnmount(() => {
    clearTimeout(timer)
    stopListening()
  })
  void more()

  return { filter, runs, isReading, isComplete, error, more, restart }
}
