/** Every turn that this page has seen, live or read again; pages read them, and one stream fills them. */

import { defineStore } from 'pinia'
import { computed, reactive, ref } from 'vue'
import type { KernelEvent } from '@/core/events'
import { api } from '@/core/http'
import { Live, type LiveState } from '@/core/live'
import { emptyTurn, isRunning, take, type Turn } from '@/core/turn'

interface RunLog {
  run: string
  session: string
  events: KernelEvent[]
}

type Listener = (event: KernelEvent) => void

export const useTurns = defineStore('turns', () => {
  const turns = reactive(new Map<string, Turn>())
  const state = ref<LiveState>('off')
  /** Counts how often lists have to be read again, because events were missed. */
  const resets = ref(0)
  const listeners = new Set<Listener>()

  const live = new Live({
    onEvent: (event) => {
      seen(event)
      for (const listener of listeners) listener(event)
    },
    onReset: () => {
      resets.value++
      for (const turn of turns.values()) if (isRunning(turn)) void read(turn.run, true).catch(() => undefined)
    },
    onState: (now) => (state.value = now),
  })

  const running = computed(() => [...turns.values()].filter(isRunning))

  /** Events that came before those that are missing, by run. */
  const early = new Map<string, KernelEvent[]>()

  function seen(event: KernelEvent): void {
    const turn = held(event.run, event.session)
    if (event.seq <= turn.last + 1) {
      take(turn, event)
      return
    }
    early.set(event.run, [...(early.get(event.run) ?? []), event])
    void read(event.run, true).catch(() => undefined)
  }

  function held(run: string, session: string): Turn {
    if (!turns.has(run)) turns.set(run, emptyTurn(run, session))
    return turns.get(run) as Turn
  }

  const reading = new Map<string, Promise<Turn>>()

  /** The turn of a run, read from its log; with `again` even where it is known. ApiError. */
  function read(run: string, again = false): Promise<Turn> {
    const known = turns.get(run)
    if (known && !again && known.last >= 0) return Promise.resolve(known)
    const begun = reading.get(run)
    if (begun) return begun
    const work = fetched(run).finally(() => reading.delete(run))
    reading.set(run, work)
    return work
  }

  async function fetched(run: string): Promise<Turn> {
    const log = await api.get<RunLog>(`/api/runs/${run}/log`)
    const turn = held(run, log.session)
    for (const event of log.events) take(turn, event)
    for (const event of early.get(run) ?? []) take(turn, event)
    early.delete(run)
    return turn
  }

  /** Calls `listener` with every event of every run; the answer ends that. */
  function listen(listener: Listener): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  return { turns, state, resets, running, read, listen, start: () => live.start(), stop: () => live.stop() }
})
