/** What a preview found, and which of it is to be installed. */

import type { Declared, Finding } from '@/pages/skills/types'

export interface Coming extends Declared {
  name: string
  path: string
  subpath: string
  digest: string
  /** The digest in the lock that it replaces; empty for a new skill. */
  was: string
  files: number
  verdict: string
  changed: boolean
  findings: Finding[]
}

export interface LeftOut {
  name: string
  path: string
  state: 'skipped' | 'blocked'
  reason: string
  why: string
  msg: string
  hint: string
  failure: boolean
  skill?: string
  findings?: Finding[]
  blocked_by?: string[]
}

export interface Outcome {
  source: string
  commit: string
  level: string
  changed: boolean
  counts: { found: number; installed: number; there: number; skipped: number; blocked: number }
  skills: Coming[]
  left_out: LeftOut[]
}

export type Row = { key: string; name: string; findings: Finding[] } & ({ coming: Coming; left: null } | { coming: null; left: LeftOut })

export const SHOWN = ['all', 'new', 'there', 'findings', 'blocked', 'skipped'] as const
export type Shown = (typeof SHOWN)[number]

/** All skills of the source by name; blocked ones first, for they need a person. */
export function rowsOf(found: Outcome): Row[] {
  const coming: Row[] = found.skills.map((one) => ({ key: `+${one.subpath}`, name: one.name, findings: one.findings, coming: one, left: null }))
  const left: Row[] = found.left_out.map((one, at) => ({ key: `-${at} ${one.path}`, name: one.name, findings: one.findings ?? [], coming: null, left: one }))
  const rank = (row: Row) => (row.left?.state === 'blocked' ? 0 : row.left ? 2 : 1)
  return [...coming, ...left].sort((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

export function isShown(row: Row, shown: Shown): boolean {
  switch (shown) {
    case 'all':
      return true
    case 'new':
      return row.coming?.changed ?? false
    case 'there':
      return row.coming?.changed === false
    case 'findings':
      return row.findings.some((one) => one.level !== 'note')
    case 'blocked':
      return row.left?.state === 'blocked'
    case 'skipped':
      return row.left?.state === 'skipped'
  }
}

/** Places in the source of skills that could come and are not chosen: `./` makes each a path, which no name is. */
export function excluded(found: Outcome, chosen: ReadonlySet<string>): string[] {
  const places = found.skills.filter((one) => !chosen.has(one.subpath)).map((one) => one.subpath)
  return places.map((place) => (place ? `./${place}` : '.'))
}

/** The lines of the lock file that would change, as a difference. */
export function lockDifference(found: Outcome, chosen: ReadonlySet<string>): string {
  const lines = [`--- skills.lock.json`, `+++ skills.lock.json`]
  for (const one of found.skills) {
    if (!one.changed || !chosen.has(one.subpath)) continue
    if (one.was) lines.push(`-"${one.name}": ${one.was}`)
    lines.push(`+"${one.name}": ${one.digest}${found.commit ? ` @ ${found.commit.slice(0, 12)}` : ''}`)
  }
  return lines.join('\n')
}

export interface LockCounts {
  added: number
  replaced: number
  same: number
}

export function lockCounts(found: Outcome, chosen: ReadonlySet<string>): LockCounts {
  const picked = found.skills.filter((one) => one.changed && chosen.has(one.subpath))
  const replaced = picked.filter((one) => one.was).length
  return { added: picked.length - replaced, replaced, same: found.skills.filter((one) => !one.changed).length }
}

/** The command of a hint such as `read it; to install it all the same: navigator skill install …`. */
export function commandIn(hint: string): string {
  return /(?:^|: )(navigator [^\n]+)$/.exec(hint.trim())?.[1] ?? ''
}

/** Why skills were left out, the largest group first; what the person did not choose is not said again. */
export function reasons(found: Outcome): { why: string; state: string; names: string[] }[] {
  const groups = new Map<string, { why: string; state: string; names: string[] }>()
  for (const one of found.left_out) {
    if (one.reason === 'excluded') continue
    const key = `${one.state} ${one.why}`
    const held = groups.get(key) ?? { why: one.why, state: one.state, names: [] }
    held.names.push(one.name)
    groups.set(key, held)
  }
  return [...groups.values()].sort((a, b) => b.names.length - a.names.length)
}
