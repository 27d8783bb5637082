/** What the gateway says of skills (docs/reference/http-api.md). */

export interface Skill {
  name: string
  description: string
  kind: string // 'A' runs a command, 'B' is a prompt
  status: 'managed' | 'unmanaged' | 'shipped'
  level: string
  enabled: boolean
  path: string
  links: string[]
  source: string
  commit: string
  claimed_source: string
}

export interface Permissions {
  effects: string[]
  reads: string[]
  network: boolean
  dynamic: boolean
}

export interface Declared {
  description: string
  kind: string
  license: string
  command?: string
  tools: string[]
  permissions?: Permissions
  problems: string[]
}

export interface Receipt {
  ref: string
  subpath: string
  digest: string
  verdict: string
  installed_at: string
  files: { path: string; size: number; mode: string; sha256: string }[]
  [key: string]: unknown
}

export interface Detail extends Skill, Declared {
  files: string[]
  receipt: Receipt | null
}

export type FindingLevel = 'note' | 'warning' | 'error'

export interface Finding {
  code: string
  level: FindingLevel
  path: string
  message: string
  line: number | null
  text?: string
}

/** An installed skill compared with its source. */
export interface News {
  name: string
  state: 'current' | 'changed' | 'moved' | 'deleted' | 'unreachable'
  from: string
  to: string
  path: string
  edited: string[]
  problem: string
  change: { can: Record<string, string[]>; findings: Finding[] } | null
  diff?: string
}

/** What became of an update; `pending` until a person agrees to the new bytes, which `digest` names. */
export interface Updated extends News {
  action: string
  digest: string
}

export interface Verified {
  name: string
  ok: boolean
  by_you: boolean
  modified: string[]
  missing: string[]
  extra: string[]
  mode: string[]
}

export interface Listing {
  host: string
  skills: number
  characters: number
  tokens: number
  limit: number
  limit_tokens: number
  beyond: number
  names: string[]
}
