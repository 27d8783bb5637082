/** The lists of the page and the run that is looked at; both are read again while turns go on. */

import { onBeforeUnmount, onMounted, ref, shallowRef, watch } from 'vue'
import { useTurns } from '@/stores/turns'
import { readAll, readRun, type Run, type RunState, type Stored } from './flows'

const CHANGES: ReadonlySet<string> = new Set(
  'StepStarted StepCompleted ApprovalRequested ApprovalResolved RunCompleted RunError RunCancelled'.split(' '),
)
const PAUSE = 150 // milliseconds, so that many events read once

export function useFlows() {
  const turns = useTurns()
  const stored = shallowRef<Stored[]>([])
  const runs = shallowRef<RunState[]>([])
  const chosen = ref('')
  const run = shallowRef<Run | null>(null)
  const isRead = ref(false)
  const error = ref<unknown>(null)
  const runError = ref<unknown>(null)
  let count = 0

  async function read(): Promise<void> {
    const mine = ++count
    try {
      const held = await readAll()
      if (mine !== count) return
      stored.value = held.workflows
      runs.value = held.runs
      error.value = null
    } catch (problem) {
      if (mine === count) error.value = problem
    }
    isRead.value = true
  }

  async function readChosen(): Promise<void> {
    const token = chosen.value
    if (!token) return
    try {
      const held = await readRun(token)
      if (chosen.value !== token) return
      run.value = held
      runError.value = null
    } catch (problem) {
      if (chosen.value === token) runError.value = problem
    }
  }

  async function readBoth(): Promise<void> {
    await Promise.all([read(), readChosen()])
  }

  watch(chosen, () => {
    run.value = null
    runError.value = null
    void readChosen()
  })
  let timer: ReturnType<typeof setTimeout> | undefined
  const stop = turns.listen((event) => {
    if (!CHANGES.has(event.type)) return
    clearTimeout(timer)
    timer = setTimeout(() => void readBoth(), PAUSE)
  })
  watch(() => turns.resets, () => void readBoth())
  onMounted(() => void read())
  onBeforeUnmount(() => {
    stop()
    clearTimeout(timer)
  })

  return { stored, runs, chosen, run, isRead, error, runError, read, readChosen, readBoth }
}
