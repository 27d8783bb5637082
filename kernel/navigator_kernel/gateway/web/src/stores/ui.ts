/** Notices, the theme, and what is open over the page. */

import { defineStore } from 'pinia'
import { ref } from 'vue'
import { ApiError } from '@/core/http'

export type Theme = 'system' | 'light' | 'dark'
export interface Notice {
  id: number
  kind: 'info' | 'success' | 'error'
  text: string
  hint: string
}

const KEPT = 'navigator.theme'
const SHOWN = 6_000 // milliseconds

export const useUi = defineStore('ui', () => {
  const notices = ref<Notice[]>([])
  const theme = ref<Theme>((localStorage.getItem(KEPT) as Theme | null) ?? 'system')
  const isPaletteOpen = ref(false)
  /** The run whose choice the drawer explains; empty while it is closed. */
  const explained = ref('')
  let count = 0

  function tell(text: string, kind: Notice['kind'] = 'info', hint = ''): void {
    const id = ++count
    notices.value = [...notices.value.slice(-3), { id, kind, text, hint }]
    setTimeout(() => dismiss(id), kind === 'error' ? 2 * SHOWN : SHOWN)
  }

  /** Shows what went wrong; `fallback` where the error has no text of its own. */
  function fail(error: unknown, fallback: string): void {
    const held = error instanceof ApiError ? error : null
    tell(held?.detail || fallback, 'error', held?.hint ?? '')
  }

  function dismiss(id: number): void {
    notices.value = notices.value.filter((one) => one.id !== id)
  }

  function useTheme(value: Theme): void {
    theme.value = value
    localStorage.setItem(KEPT, value)
    applyTheme(value)
  }

  return { notices, theme, isPaletteOpen, explained, tell, fail, dismiss, useTheme }
})

export function applyTheme(value: Theme): void {
  if (value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = value
}
