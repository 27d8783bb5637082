/** Sessions, the runs of each, drafts, and messages that are being sent. */

import { defineStore } from 'pinia'
import { reactive, ref, watch } from 'vue'
import { api, ApiError } from '@/core/http'
import { useTurns } from './turns'
import { useUi } from './ui'

export interface KeptSession {
  id: string
  title: string
  created: string
  updated: string
  turns: number
  waiting: string // `approval`, `question` or empty
  run: string // the turn that is under way, or empty
}

/** A turn as it is known before its events are read; `answer` is the summary of its report. */
export interface Entry {
  run: string
  message: string
  answer: string
  state: string
  started: string
  isLogged: boolean // its events can be read
}

export interface Talk {
  entries: Entry[]
  next: string // of earlier runs
  isRead: boolean
  isReading: boolean
  error: unknown
  /** Messages that were sent, and whose run is not known yet. */
  sending: string[]
}

interface LoggedRun {
  run: string
  session: string
  message: string
  summary: string
  state: string
  started: string
}

const AT_ONCE = 20 // runs that are listed at a time
const ENDS = ['RunCompleted', 'RunError', 'RunCancelled']

export const useChat = defineStore('chat', () => {
  const turns = useTurns()
  const ui = useUi()
  const sessions = ref<KeptSession[]>([])
  const next = ref('')
  const isRead = ref(false)
  const error = ref<unknown>(null)
  const talks = reactive(new Map<string, Talk>())
  const drafts = reactive(new Map<string, string>())
  const sent = reactive(new Map<string, string>()) // the last message of each session
  /** The session that is open, or was open last. */
  const current = ref('')

  async function readSessions(more = false): Promise<void> {
    try {
      const query = { limit: 40, cursor: more ? next.value : undefined }
      const found = await api.get<{ sessions: KeptSession[]; next: string }>('/api/sessions', query)
      const known = new Set(found.sessions.map((one) => one.id))
      sessions.value = more ? [...sessions.value.filter((one) => !known.has(one.id)), ...found.sessions] : found.sessions
      next.value = found.next
      error.value = null
    } catch (problem) {
      error.value = problem
    }
    isRead.value = true
  }

  async function remove(session: string): Promise<void> {
    await api.remove(`/api/sessions/${encodeURIComponent(session)}`)
    talks.delete(session)
    drafts.delete(session)
    await readSessions()
  }

  function talk(session: string): Talk {
    if (!talks.has(session)) {
      talks.set(session, { entries: [], next: '', isRead: false, isReading: false, error: null, sending: [] })
    }
    return talks.get(session) as Talk
  }

  /** The newest runs of the session, or with `earlier` those before the ones that are known. */
  async function readTalk(session: string, earlier = false): Promise<void> {
    const held = talk(session)
    if (held.isReading) return
    held.isReading = true
    try {
      const query = { session, limit: AT_ONCE, cursor: earlier ? held.next : undefined }
      const found = await api.get<{ runs: LoggedRun[]; next: string }>('/api/runs', query)
      add(held, found.runs.map(entryOf))
      if (earlier || !held.isRead) held.next = found.next
      if (!held.next) add(held, await said(session))
      held.error = null
      held.isRead = true
    } catch (problem) {
      held.error = problem
    }
    held.isReading = false
  }

  /** Shows a run that was begun in the session, before its first event comes. */
  function began(session: string, run: string, message = ''): void {
    const held = talk(session)
    add(held, [{ run, message, answer: '', state: 'running', started: new Date().toISOString(), isLogged: true }])
    void turns.read(run).catch(() => undefined)
  }

  /** Sends a message. ApiError, and nothing was sent. */
  async function send(session: string, message: string, language?: string): Promise<void> {
    const held = talk(session)
    held.sending.push(message)
    try {
      const path = `/api/sessions/${encodeURIComponent(session)}/runs`
      const body = language ? { message, language } : { message }
      const { run } = await api.post<{ run: string }>(path, body)
      held.isRead = true
      sent.set(session, message)
      began(session, run, message)
    } finally {
      drop(held.sending, message)
    }
  }

  let isFollowing = false
  let timer: ReturnType<typeof setTimeout> | undefined

  /** Keeps lists up to date from now on. */
  function follow(): void {
    void readSessions()
    if (isFollowing) return
    isFollowing = true
    turns.listen((event) => {
      if (event.type === 'RunStarted' && talks.has(event.session)) {
        const held = talk(event.session)
        drop(held.sending, event.payload.message)
        const { run, ts } = event
        add(held, [{ run, message: event.payload.message, answer: '', state: 'running', started: ts, isLogged: true }])
      }
      if (event.type === 'UICommand' && event.payload.type === 'toast' && event.session === current.value) {
        const { message, type } = event.payload.payload
        ui.tell(String(message ?? ''), type === 'error' || type === 'success' ? type : 'info')
      }
      if (event.type === 'RunStarted' || ENDS.includes(event.type)) soon()
    })
    watch(
      () => turns.resets,
      () => {
        soon()
        for (const session of talks.keys()) if (session === current.value) void readTalk(session)
      },
    )
  }

  function soon(): void {
    clearTimeout(timer)
    timer = setTimeout(() => void readSessions(), 250) // milliseconds; several events come together
  }

  return { sessions, talks, next, isRead, error, drafts, sent, current, readSessions, remove, talk, readTalk, began, send, follow }
})

function entryOf(run: LoggedRun): Entry {
  return { run: run.run, message: run.message, answer: run.summary, state: run.state, started: run.started, isLogged: true }
}

interface Said {
  role: string
  text: string
  run: string
  ts: string
}

/** What the session remembers of turns, which may be more than there are logs; nothing of a session that is new. */
async function said(session: string): Promise<Entry[]> {
  try {
    const path = `/api/sessions/${encodeURIComponent(session)}`
    const { history } = await api.get<{ history: Said[] }>(path, { last: 1000 })
    return entriesOf(history)
  } catch (problem) {
    if (problem instanceof ApiError && problem.status === 404) return []
    throw problem
  }
}

/** Of each run what the person said and what was answered. */
export function entriesOf(history: Said[]): Entry[] {
  const found = new Map<string, Entry>()
  for (const one of history) {
    const held = found.get(one.run) ?? { run: one.run, message: '', answer: '', state: 'success', started: one.ts, isLogged: false }
    if (one.role === 'user') held.message = one.text
    else held.answer = one.text
    found.set(one.run, held)
  }
  return [...found.values()]
}

/** Adds entries in the order of their runs, whose names begin with the time; of one that is known the state changes. */
export function add(held: Talk, more: Entry[]): void {
  const known = new Map(held.entries.map((one) => [one.run, one]))
  for (const one of more) {
    const before = known.get(one.run)
    if (before && one.isLogged) before.state = one.state
  }
  const fresh = more.filter((one) => !known.has(one.run))
  if (!fresh.length) return
  held.entries = [...held.entries, ...fresh].sort((a, b) => (a.run < b.run ? -1 : 1))
}

function drop(list: string[], text: string): void {
  const at = list.indexOf(text)
  if (at >= 0) list.splice(at, 1)
}
