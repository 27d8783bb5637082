/** The kernel's commands for a page: they come from what a tool declares, and name parts of this page only. */

import type { Payloads } from '@/core/events'
import { PAGES, type PageName } from '@/router'

const SHOWN_BY: Record<string, PageName> = {
  task: 'planner',
  tasks: 'planner',
  note: 'planner',
  notes: 'planner',
  project: 'planner',
  projects: 'planner',
  approvals: 'inbox',
  sessions: 'chat',
}

/** The page that a command means by its target; null for anything that is not a page of ours. */
export function pageOf(target: unknown): PageName | null {
  if (typeof target !== 'string') return null
  const name = target.replace(/^[#/]+/, '').split(/[/?:]/)[0]?.toLowerCase() ?? ''
  return PAGES.find((page) => page.name === name)?.name ?? SHOWN_BY[name] ?? null
}

/** The text of a command that shows one. */
export function textOf(command: Payloads['UICommand']): string {
  const { message, text, target, title } = command.payload
  return [title, message ?? text ?? target].filter((one): one is string => typeof one === 'string').join('\n\n')
}
