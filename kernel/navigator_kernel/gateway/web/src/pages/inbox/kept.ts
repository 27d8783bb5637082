/** The list of the inbox: what waits now, and what waited while the page was open. */

import type { Waiting } from '@/stores/inbox'

/** Those shown before stay in their place, with their newest facts; new ones come in front. */
export function merged(shown: readonly Waiting[], now: readonly Waiting[], removed: ReadonlySet<string>): Waiting[] {
  const newest = new Map(now.map((one) => [one.id, one]))
  const before = new Set(shown.map((one) => one.id))
  const added = now.filter((one) => !before.has(one.id) && !removed.has(one.id))
  return [...added, ...shown.map((one) => newest.get(one.id) ?? one)]
}

/** Whether a key that was pressed there is text. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
}
