/** The token: taken from the address once, and kept for this tab only. */

import { defineStore } from 'pinia'
import { ref } from 'vue'
import { api, useToken } from '@/core/http'

export type Role = 'read' | 'chat' | 'approve' | 'admin'
const ROLES: readonly Role[] = ['read', 'chat', 'approve', 'admin'] // each may do what those before it may
const KEPT = 'navigator.token'
const FORM = /^nav_[\w-]{10,200}$/

/** The token in `#token=…`; the address is replaced at once, so that no history keeps it. */
export function takeFragment(): string {
  const found = /^#\/?token=([^&]*)/.exec(window.location.hash)
  if (!found) return ''
  window.history.replaceState(null, '', `${window.location.pathname}#/chat`)
  const text = decodeURIComponent(found[1] ?? '')
  return FORM.test(text) ? text : ''
}

export const useAccess = defineStore('access', () => {
  const isIn = ref(false)
  const wasRefused = ref(false)
  /** Of the token; empty until the server has named it. */
  const role = ref<Role | ''>('')

  function leave(): void {
    sessionStorage.removeItem(KEPT)
    useToken('', () => undefined)
    isIn.value = false
    role.value = ''
  }

  function keep(token: string): void {
    sessionStorage.setItem(KEPT, token)
    useToken(token, () => {
      wasRefused.value = true
      leave()
    })
    wasRefused.value = false
    isIn.value = true
    void readRole()
  }

  async function readRole(): Promise<void> {
    try {
      role.value = (await api.get<{ role: Role }>('/api/token')).role
    } catch {
      setTimeout(() => isIn.value && void readRole(), 3_000)
    }
  }

  /** Whether the token's role may do what needs `wanted`. */
  function may(wanted: Role): boolean {
    return role.value !== '' && ROLES.indexOf(role.value) >= ROLES.indexOf(wanted)
  }

  /** With the token of the address or of this tab; nothing where there is none. */
  function begin(given: string): void {
    const token = given || sessionStorage.getItem(KEPT) || ''
    if (token) keep(token)
  }

  /** Tries a token that the person typed. ApiError where the gateway refuses it. */
  async function enter(token: string): Promise<void> {
    useToken(token, () => undefined)
    await api.get('/api/skills', { limit: 1 })
    keep(token)
  }

  return { isIn, wasRefused, role, may, begin, enter, leave }
})
