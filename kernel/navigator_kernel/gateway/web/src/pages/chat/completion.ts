/** What can follow `/`, `#` and `@` in a message. */

import { api } from '@/core/http'

export type Mark = '/' | '#' | '@'

/** What is being written: the mark, where it stands in the text, and what follows it up to the caret. */
export interface Begun {
  mark: Mark
  at: number
  query: string
}

export interface Suggestion {
  value: string // what is put in place of mark and query
  label: string
  detail: string
  /** A folder: the list goes on below it. */
  goesOn: boolean
}

const MOST = 30

/** `/` and `#` count at the start of a line, `@` behind a space or a Chinese character too. */
export function begun(text: string, caret: number): Begun | null {
  const before = text.slice(0, caret)
  const call = /(?:^|\n)[ \t]*([/#])([\p{L}\p{N}_-]*)$/u.exec(before)
  if (call) return { mark: call[1] as Mark, at: caret - (call[2] ?? '').length - 1, query: call[2] ?? '' }
  const file = /(?:^|[\s，。：；、（(\u4e00-\u9fff])@([^\s@"'，。；：、？！（）()<>|]*)$/u.exec(before)
  return file ? { mark: '@', at: caret - (file[1] ?? '').length - 1, query: file[1] ?? '' } : null
}

/** The text with the suggestion in place, and where the caret goes. */
export function completed(text: string, caret: number, begin: Begun, chosen: Suggestion): { text: string; caret: number } {
  const end = chosen.goesOn || text[caret] === ' ' ? '' : ' '
  const head = `${text.slice(0, begin.at)}${chosen.value}${end}`
  return { text: head + text.slice(caret), caret: head.length }
}

interface Named {
  name: string
  description: string
}

let skills: Promise<{ skills: Named[]; next: string }> | null = null
let workflows: Promise<{ workflows: Named[] }> | null = null

/** Lists are read again after this, since they may have changed. */
export function forget(): void {
  skills = workflows = null
}

export async function suggestionsFor(begin: Begun): Promise<Suggestion[]> {
  if (begin.mark === '@') {
    const { paths } = await api.get<{ paths: string[] }>('/api/files', { prefix: begin.query })
    return paths.slice(0, MOST).map((path) => ({ value: fileMention(path), label: path, detail: '', goesOn: path.endsWith('/') }))
  }
  if (begin.mark === '#') {
    workflows ??= api.get('/api/workflows')
    return ranked((await workflows).workflows, begin)
  }
  skills ??= api.get('/api/skills', { limit: 500 })
  const { skills: known, next } = await skills
  const found = ranked(known, begin)
  if (found.length >= 5 || !next || !begin.query) return found
  const more = await api.get<{ skills: Named[] }>('/api/skills', { q: begin.query, limit: 20 })
  const names = new Set(found.map((one) => one.label))
  return [...found, ...more.skills.filter((one) => !names.has(one.name)).map((one) => named(one, begin.mark))]
}

/** Those whose name begins with the query first, then those that hold it. */
function ranked(all: Named[], begin: Begun): Suggestion[] {
  const query = begin.query.toLowerCase()
  const place = (one: Named) => one.name.toLowerCase().indexOf(query)
  const found = all.filter((one) => place(one) >= 0)
  found.sort((a, b) => Number(place(a) > 0) - Number(place(b) > 0) || a.name.localeCompare(b.name))
  return [...new Map(found.map((one) => [one.name, one])).values()].slice(0, MOST).map((one) => named(one, begin.mark))
}

function named(one: Named, mark: Mark): Suggestion {
  return { value: `${mark}${one.name}`, label: one.name, detail: one.description, goesOn: false }
}

/** A path with a space is quoted; of a folder the quote stays open. */
function fileMention(path: string): string {
  return /[\s，。；：、？！（）()<>|]/.test(path) ? `@"${path}${path.endsWith('/') ? '' : '"'}` : `@${path}`
}
