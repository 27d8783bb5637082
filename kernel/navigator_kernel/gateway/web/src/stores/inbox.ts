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
  /** The packets as YAML. */
  orders?: string[]
  /** What the report that asks says: of a tool its name, its path, and the change of a file as a diff. */
  facts?: Record<string, unknown>
}

// A turn keeps what it waits for before its last event comes
const CHANGES = ['ApprovalResolved', 'RunCompleted', 'RunError', 'RunCancelled']

export type ApprovalAnswer = 'yes' | 'session' | 'no' | 'cancel'

/** Whether a yes can be for the whole session: to a change of a file it is for that change alone. */
export function isLasting(subject: string): boolean {
  return subject.includes('@sha256:')
}

export const useInbox = defineStore('inbox', () => {
  const waiting = ref<Waiting[]>([])
  const error = ref<unknown>(null)
  const isRead = ref(false)
  /** Whether the token's role may not see approvals. */
  const isDenied = ref(false)
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
      isDenied.value = false
    } catch (found) {
      if (mine !== asked) return
      isDenied.value = found instanceof ApiError && found.status === 403
      if (isDenied.value) waiting.value = []
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

  /** Keeps the list up to date from now on. */
  function follow(): void {
    void read()
    if (isFollowing) return
    isFollowing = true
    turns.listen((event) => {
      if (CHANGES.includes(event.type)) void read()
    })
    watch(() => turns.resets, () => void read())
  }

  return { waiting, count, error, isRead, isDenied, read, answer, follow }
})
