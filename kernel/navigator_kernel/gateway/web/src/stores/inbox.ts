/** What waits for a person: approvals of all sessions, those of the terminal, MCP and editors too. */

import { defineStore } from 'pinia'
import { computed, ref, watch } from 'vue'
import { api, ApiError } from '@/core/http'
import { useTurns } from './turns'

export interface Waiting {
  id: string
  session: string
  subject: string
  question: string
  asked: string
  expires: string
  packets: Record<string, unknown>[]
}

const LATER = 500 // milliseconds

export type ApprovalAnswer = 'yes' | 'session' | 'no' | 'cancel'

export const useInbox = defineStore('inbox', () => {
  const waiting = ref<Waiting[]>([])
  const error = ref<unknown>(null)
  const isRead = ref(false)
  const turns = useTurns()
  const count = computed(() => waiting.value.length)

  let asked = 0

  async function read(): Promise<void> {
    const mine = ++asked
    try {
      const held = (await api.get<{ approvals: Waiting[] }>('/api/approvals')).approvals
      if (mine !== asked) return
      waiting.value = held
      error.value = null
    } catch (found) {
      if (mine !== asked) return
      if (found instanceof ApiError && found.status === 403) waiting.value = []
      else error.value = found
    }
    isRead.value = true
  }

  /** Answers once, and begins the run that goes on. ApiError, where it was answered elsewhere or has expired. */
  async function answer(id: string, said: ApprovalAnswer, reason = ''): Promise<{ run: string; session: string }> {
    try {
      return await api.post(`/api/approvals/${encodeURIComponent(id)}`, { answer: said, reason })
    } finally {
      await read()
    }
  }

  let isFollowing = false
  let timer: ReturnType<typeof setTimeout> | undefined

  /** Now and once more: a turn keeps what it waits for only behind its last event. */
  function readTwice(): void {
    void read()
    clearTimeout(timer)
    timer = setTimeout(() => void read(), LATER)
  }

  /** Keeps the list up to date from now on. */
  function follow(): void {
    void read()
    if (isFollowing) return
    isFollowing = true
    turns.listen((event) => {
      if (['ApprovalRequested', 'ApprovalResolved', 'RunCompleted', 'RunError', 'RunCancelled'].includes(event.type)) readTwice()
    })
    watch(() => turns.resets, () => void read())
  }

  return { waiting, count, error, isRead, read, answer, follow }
})
