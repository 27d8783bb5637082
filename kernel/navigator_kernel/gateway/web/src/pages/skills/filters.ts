import type { Finding, FindingLevel, Skill } from './types'

export const FILTERS = ['all', 'installed', 'own', 'shipped', 'off', 'changed', 'outdated'] as const
export type Filter = (typeof FILTERS)[number]

/** What checks have found, by the names of skills. */
export interface Marks {
  changed: ReadonlySet<string>
  outdated: ReadonlySet<string>
}

export function fits(skill: Skill, filter: Filter, marks: Marks): boolean {
  switch (filter) {
    case 'all':
      return true
    case 'installed':
      return skill.status === 'managed'
    case 'own':
      return skill.status === 'unmanaged'
    case 'shipped':
      return skill.status === 'shipped'
    case 'off':
      return !skill.enabled
    case 'changed':
      return marks.changed.has(skill.name)
    case 'outdated':
      return marks.outdated.has(skill.name)
  }
}

export function counts(skills: readonly Skill[], marks: Marks): Record<Filter, number> {
  const found = Object.fromEntries(FILTERS.map((filter) => [filter, 0])) as Record<Filter, number>
  for (const skill of skills) for (const filter of FILTERS) if (fits(skill, filter, marks)) found[filter]++
  return found
}

const AROUND = 4 // characters that a host writes around a name and a description
const TOKEN = 4 // characters

/** Tokens of a skill in the list that a host shows its model in every request. */
export function listingTokens(skill: Pick<Skill, 'name' | 'description'>): number {
  return Math.ceil((skill.name.length + skill.description.length + AROUND) / TOKEN)
}

export const LEVELS: readonly FindingLevel[] = ['error', 'warning', 'note']

/** The findings by level, worst first; levels without any are left out. */
export function byLevel(findings: readonly Finding[]): { level: FindingLevel; findings: Finding[] }[] {
  return LEVELS.map((level) => ({ level, findings: findings.filter((one) => one.level === level) })).filter(
    (group) => group.findings.length,
  )
}
