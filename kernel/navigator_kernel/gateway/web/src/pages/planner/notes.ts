/** Notes: a list in pages, a search by meaning, and the links of one. */

import { ref, shallowRef } from 'vue'
import { api } from '@/core/http'

export interface Note {
  id: number
  title: string
  content: string
  score?: number
}

export interface LinkedNote {
  id: number
  note_id: number
  title: string
  relation: string
  outgoing: boolean
}

const PAGE = 50
const FOUND = 20

/** The newest notes, or those that a search found; a newer reading replaces an older one. */
export function useNotes() {
  const notes = shallowRef<Note[]>([])
  const query = ref('')
  const isMore = ref(false)
  const isRead = ref(false)
  const error = ref<unknown>(null)
  let cursor = ''
  let count = 0

  async function page(): Promise<Note[]> {
    const held = await api.get<{ notes: Note[]; next: string }>('/api/notes', { limit: PAGE, cursor })
    cursor = held.next
    return held.notes
  }

  async function read(): Promise<void> {
    const mine = ++count
    const wanted = query.value.trim()
    try {
      cursor = ''
      const found = wanted
        ? (await api.get<{ notes: Note[] }>('/api/notes/search', { query: wanted, limit: FOUND })).notes
        : await page()
      if (mine !== count) return
      notes.value = found
      isMore.value = !wanted && cursor !== ''
      error.value = null
    } catch (problem) {
      if (mine !== count) return
      error.value = problem
    }
    isRead.value = true
  }

  async function readMore(): Promise<void> {
    const mine = count
    const found = await page()
    if (mine !== count) return
    notes.value = [...notes.value, ...found]
    isMore.value = cursor !== ''
  }

  return { notes, query, isMore, isRead, error, read, readMore }
}

export function readNote(id: number): Promise<Note> {
  return api.get<Note>(`/api/notes/${id}`)
}

export async function readLinks(id: number): Promise<LinkedNote[]> {
  return (await api.get<{ links: LinkedNote[] }>(`/api/notes/${id}/links`)).links
}
